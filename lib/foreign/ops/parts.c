/** Operators that take parts of values and join them: Slice, Split, Gather, Concat. */
#include "foreign/build.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ around a dimension */

qat_status fv_around(builder *b, fv *x, int axis, qat_shape *shape, int *at)
{
    int first = -1, count = 0;
    bool whole = true;
    if (x->dims[axis] == 1 && x->n_atoms == FV_ATOMS)
        return fv_refuse(b, "its input is in more than %d pieces", FV_ATOMS - 1);
    for (int i = 1; i < x->n_atoms; i++)
        if (x->axis[x->memory[i]] == axis) {
            whole = whole &&
                    (first < 0 || (first + count == i && x->memory[i] == x->memory[i - 1] + 1));
            first = first < 0 ? i : first;
            count++;
        }
    if (!whole) {
        qat_status const st = fv_to_channels_last(b, x);
        if (st)
            return st;
        for (int i = x->n_atoms - 1; i > 0; i--)
            if (x->axis[x->memory[i]] == axis)
                first = i;
    }
    int64_t before = 1, after = 1;
    for (int i = 1; i < x->n_atoms; i++)
        if (x->axis[x->memory[i]] != axis)
            *(i < first || first < 0 ? &before : &after) *= x->size[x->memory[i]];
    *at = 2;
    *shape = QAT_SHAPE(1, (int)before, (int)x->dims[axis], (int)after);
    if (after == 1) { /* [N, H, W, C] as it is, if it has this form */
        const qat_shape *now = &x->node->shape;
        bool const same = now->rank > 1 && qat_shape_channels(now) == (int)x->dims[axis];
        *shape = same ? *now : QAT_SHAPE(1, 1, (int)before, (int)x->dims[axis]);
        *at = shape->rank - 1;
    } else if (x->node->shape.rank == 4) {
        for (int d = 1; d < 3; d++) {
            int64_t tail = 1;
            for (int k = d + 1; k < 4; k++)
                tail *= x->node->shape.dims[k];
            if (x->node->shape.dims[d] == x->dims[axis] && tail == after) {
                *shape = x->node->shape;
                *at = d;
            }
        }
    }
    return QAT_OK;
}

fv fv_resized(const fv *x, qat_node *node, int axis, int64_t length)
{
    fv v = {.node = node, .rank = x->rank};
    int now[FV_ATOMS] = {0}, made = -1, n = 0;
    memcpy(v.dims, x->dims, sizeof v.dims);
    v.dims[axis] = length;
    for (int a = 0; a <= x->n_atoms; a++) {
        bool const here = a > 0 && a < x->n_atoms && x->axis[a] == axis;
        bool const beyond = a == x->n_atoms || x->axis[a] > axis;
        bool const makes = made < 0 && length > 1 && (here || beyond);
        if (makes) {
            made = v.n_atoms;
            v.size[v.n_atoms] = length;
            v.axis[v.n_atoms++] = axis;
        }
        if (a == x->n_atoms)
            break;
        now[a] = !here ? v.n_atoms : makes ? made : -1;
        if (!here) {
            v.size[v.n_atoms] = x->size[a];
            v.axis[v.n_atoms++] = x->axis[a];
        }
    }
    for (int i = 0; i < x->n_atoms; i++)
        if (now[x->memory[i]] >= 0)
            v.memory[n++] = now[x->memory[i]];
    if (n < v.n_atoms)
        v.memory[n] = made; /* of a dimension of 1, which fv_around puts last */
    return v;
}

/* ------------------------------------------------------------------ positions of a dimension */

static qat_status check_part(const builder *b, const fv *x, int axis, int64_t count)
{
    if (axis < fv_first(x))
        return fv_refuse(b, "a part of the batch");
    if (count < 1)
        return fv_refuse(b, "an empty part of dimension %d: data have values", axis);
    return QAT_OK;
}

static qat_node *slice(builder *b, const char *name, qat_node *from, int at, int64_t begin,
                       int64_t step, int64_t count)
{
    if (count == from->shape.dims[at])
        return from;
    return fv_add(b, "strided_slice", name, from, "axis=%d begin=%lld count=%lld step=%lld", at,
                  (long long)begin, (long long)count, (long long)step);
}

qat_status fv_part(builder *b, const fv *in, int axis, int64_t begin, int64_t step, int64_t count,
                   fv *part)
{
    qat_shape shape;
    int at;
    fv x = *in;
    *part = x;
    if (count == x.dims[axis] && step == 1)
        return QAT_OK;
    qat_status st = check_part(b, &x, axis, count);
    if (!st)
        st = fv_around(b, &x, axis, &shape, &at);
    if (st)
        return st;
    qat_node *from = fv_shaped(b, &x, shape);
    qat_node *y = from ? slice(b, "", from, at, begin, step, count) : NULL;
    *part = fv_resized(&x, y, axis, count);
    return y ? QAT_OK : fv_graph_error(b);
}

enum { JOINED = 256 }; /* inputs of one concat, as .qm files allow */

/** Join the nodes in groups, and the groups, until one is left. */
static qat_node *join(builder *b, int n, qat_node **nodes, int at)
{
    char attrs[32];
    snprintf(attrs, sizeof attrs, "axis=%d", at);
    for (bool last = false; !last && n > 1;) {
        int made = 0;
        last = n <= JOINED;
        for (int i = 0; i < n; i += JOINED, made++) {
            int const count = n - i < JOINED ? n - i : JOINED;
            nodes[made] = fv_add_all(b, "concat", last ? "" : "group", count, nodes + i, attrs);
            if (!nodes[made])
                return NULL;
        }
        n = made;
    }
    return nodes[0];
}

/** How many positions from at[0] on are a run of even, ascending steps? */
static int64_t run_of(const int64_t *at, int64_t n)
{
    int64_t count = 1;
    int64_t const step = n > 1 ? at[1] - at[0] : 1;
    while (step > 0 && count < n && at[count] - at[count - 1] == step)
        count++;
    return count;
}

static qat_status check_positions(builder *b, const fv *x, int axis, const int64_t *at, int64_t n,
                                  int *runs)
{
    qat_status const st = check_part(b, x, axis, n);
    *runs = 0;
    for (int64_t i = 0; i < n && !st; i++)
        if (at[i] < 0 || at[i] >= x->dims[axis])
            return fv_refuse(b, "a position of %lld, outside 0..%lld, in dimension %d",
                             (long long)at[i], (long long)x->dims[axis] - 1, axis);
    for (int64_t i = 0; i < n && !st; i += run_of(at + i, n - i))
        if (++*runs > QAT_FOREIGN_RUNS_MAX)
            return fv_refuse(b, "its positions are in more than %d runs of even, ascending steps",
                             QAT_FOREIGN_RUNS_MAX);
    return st;
}

qat_status fv_gather(builder *b, const fv *in, int axis, const int64_t *at, int64_t n, fv *y)
{
    enum { BYTES = 1024 }; /* of the node of a run */
    qat_shape shape;
    int place, runs, made = 0;
    fv x = *in;
    qat_status st = check_positions(b, &x, axis, at, n, &runs);
    if (!st && runs == 1)
        return fv_part(b, in, axis, at[0], n > 1 ? at[1] - at[0] : 1, n, y);
    if (!st)
        st = fv_around(b, &x, axis, &shape, &place);
    qat_node *from = st ? NULL : fv_shaped(b, &x, shape);
    qat_node **parts = from ? fv_take(b, &b->arena, (size_t)runs, BYTES) : NULL;
    for (int64_t i = 0, count; parts && i < n; i += count) {
        char name[16];
        count = run_of(at + i, n - i);
        snprintf(name, sizeof name, "part%d", made);
        parts[made] = slice(b, name, from, place, at[i], count > 1 ? at[i + 1] - at[i] : 1, count);
        if (!parts[made++])
            return fv_graph_error(b);
    }
    qat_node *all = parts ? join(b, runs, parts, place) : NULL;
    *y = fv_resized(&x, all, axis, n);
    return all ? QAT_OK : st ? st : fv_graph_error(b);
}

/* ------------------------------------------------------------------ Slice, Split, Gather */

static int64_t within(int64_t i, int64_t lo, int64_t hi)
{
    return i < lo ? lo : i > hi ? hi : i;
}

enum { MANY = 64 };

qat_status fv_cut_of(const builder *b, int64_t length, int64_t begin, int64_t end, int64_t step,
                     fv_cut *cut)
{
    int64_t const back = step < 0;
    if (step == 0 || step < -INT32_MAX)
        return fv_refuse(b, "steps: %lld is not supported", (long long)step);
    int64_t const from = within(begin < 0 ? begin + length : begin, 0, length - back);
    int64_t const to = within(end < 0 ? end + length : end, back ? -1 : 0, length - back);
    int64_t const way = back ? from - to : to - from, each = back ? -step : step;
    int64_t const count = way > 0 ? (way - 1) / each + 1 : 0;
    *cut = (fv_cut){from, count > 1 ? step : 1, count};
    return QAT_OK;
}

static qat_status slice_axis(builder *b, fv *x, int axis, int64_t begin, int64_t end, int64_t step)
{
    fv_cut c;
    qat_status const st = fv_cut_of(b, x->dims[axis], begin, end, step, &c);
    if (st || c.step > 0)
        return st ? st : fv_part(b, x, axis, c.begin, c.step, c.count, x);
    int64_t *at = fv_take(b, &b->arena, (size_t)c.count, sizeof *at);
    for (int64_t i = 0; at && i < c.count; i++)
        at[i] = c.begin + i * c.step;
    return at ? fv_gather(b, x, axis, at, c.count, x) : fv_graph_error(b);
}

static qat_status build_slice(builder *b)
{
    fv *in, x;
    int64_t begins[QAT_FOREIGN_RANK], ends[QAT_FOREIGN_RANK], axes[QAT_FOREIGN_RANK];
    int64_t steps[QAT_FOREIGN_RANK];
    int n, n_ends, n_axes, n_steps;
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = fv_ints(b, 1, "starts", begins, QAT_FOREIGN_RANK, &n);
    if (!st)
        st = fv_ints(b, 2, "ends", ends, QAT_FOREIGN_RANK, &n_ends);
    if (!st)
        st = fv_ints(b, 3, "axes", axes, QAT_FOREIGN_RANK, &n_axes);
    if (!st)
        st = fv_ints(b, 4, "steps", steps, QAT_FOREIGN_RANK, &n_steps);
    if (st)
        return st;
    if (n < 1 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        return fv_refuse(b, "starts, ends, axes and steps have different lengths");
    x = *in;
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, n_axes < 0 ? i : axes[i], x.rank, &axis);
        if (!st)
            st = slice_axis(b, &x, axis, begins[i], ends[i], n_steps < 0 ? 1 : steps[i]);
    }
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

static qat_status build_split(builder *b)
{
    fv *x, part;
    int n, axis;
    int64_t lengths[MANY], at = 0;
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 0), x->rank, &axis);
    if (!st)
        st = fv_ints(b, 1, "split", lengths, MANY, &n);
    if (st)
        return st;
    int const parts = n > 0 ? n : b->node->n_outputs;
    if (parts > MANY || parts < b->node->n_outputs)
        return fv_refuse(b, "%d parts", parts);
    int64_t const each = (x->dims[axis] + parts - 1) / parts;
    fv const whole = *x;
    for (int i = 0; i < parts && !st; i++) {
        int64_t const rest = whole.dims[axis] - at;
        int64_t const length = n > 0 ? lengths[i] : each < rest ? each : rest;
        if (length < 1 || length > rest)
            return fv_refuse(b, "a part of %lld of the %lld left in dimension %d",
                             (long long)length, (long long)rest, axis);
        if (i < b->node->n_outputs && b->node->outputs[i] >= 0) {
            st = fv_part(b, &whole, axis, at, 1, length, &part);
            if (!st)
                fv_output(b, i, &part);
        }
        at += length;
    }
    if (!st && at != whole.dims[axis])
        return fv_refuse(b, "its parts have %lld of the %lld positions of dimension %d",
                         (long long)at, (long long)whole.dims[axis], axis);
    return st;
}

/** Constant positions, of any dimensions, which take the place of the dimension. */
static qat_status build_gather(builder *b)
{
    fv *x, part;
    int axis, rank = 0;
    int64_t dims[2 * QAT_FOREIGN_RANK];
    const fv *index = fv_input(b, 1);
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 0), x->rank, &axis);
    if (st)
        return st;
    const qat_foreign_tensor *c = index ? index->constant : NULL;
    if (!c || c->type != QAT_FOREIGN_INT)
        return fv_refuse(b, "its indices are not known integers");
    int64_t *at = fv_take(b, &b->arena, c->count, sizeof *at);
    if (!at)
        return fv_graph_error(b);
    for (size_t i = 0; i < c->count; i++)
        at[i] = c->ints[i] < 0 ? c->ints[i] + x->dims[axis] : c->ints[i];
    st = fv_gather(b, x, axis, at, (int64_t)c->count, &part);
    if (st)
        return st;
    for (int i = 0; i < axis; i++)
        dims[rank++] = part.dims[i];
    for (int i = 0; i < c->rank; i++)
        dims[rank++] = c->dims[i];
    for (int i = axis + 1; i < part.rank; i++)
        dims[rank++] = part.dims[i];
    st = fv_reshape(b, &part, rank, dims);
    if (!st)
        fv_output(b, 0, &part);
    return st;
}

/* ------------------------------------------------------------------ Concat */

/** Bring the values into one order in memory: that for pictures, of pictures, or the file's. */
static qat_status same_order(builder *b, int n, fv *values)
{
    int axes[QAT_FOREIGN_RANK];
    bool const is_picture = values[0].rank > 2 && values[0].rank < 5;
    qat_status st = QAT_OK;
    for (int i = 0; i < values[0].rank; i++)
        axes[i] = i;
    for (int i = 0; i < n && !st; i++)
        st = is_picture ? fv_to_channels_last(b, &values[i]) : fv_order(b, &values[i], axes);
    return st;
}

static qat_status check_joined(const builder *b, int n, const fv *values, int axis)
{
    for (int i = 0; i < n; i++) {
        const fv *x = &values[i];
        if (x->rank != values->rank)
            return fv_refuse(b, "inputs of %d and %d dimensions", values->rank, x->rank);
        for (int k = 0; k < x->rank; k++)
            if (k != axis && x->dims[k] != values->dims[k])
                return fv_refuse(b, "inputs that differ in dimension %d", k);
    }
    if (axis < fv_first(values))
        return fv_refuse(b, "it joins along the batch, the first dimension");
    return QAT_OK;
}

/** [N, before, length, after] of a value in the common order; pictures as they are. */
static qat_shape joined_shape(const fv *x, int axis, int *at)
{
    int64_t before = 1, after = 1;
    bool const is_picture = x->rank > 2 && x->rank < 5;
    for (int i = fv_first(x); i < x->rank; i++) {
        bool const is_last = is_picture && i < 2, axis_is_last = is_picture && axis < 2;
        bool const is_before = is_last == axis_is_last ? i < axis : !is_last;
        if (i != axis)
            *(is_before ? &before : &after) *= x->dims[i];
    }
    int const length = (int)x->dims[axis];
    if (is_picture && !fv_is_stack(x) && axis > 0) {
        *at = axis == 1 ? 3 : x->rank == 4 ? axis - 1 : 2;
        return QAT_SHAPE(1, x->rank == 4 ? (int)x->dims[2] : 1, (int)x->dims[x->rank - 1],
                         (int)x->dims[1]);
    }
    *at = after == 1 ? 3 : 2;
    return after == 1 ? QAT_SHAPE(1, 1, (int)before, length)
                      : QAT_SHAPE(1, (int)before, length, (int)after);
}

qat_status fv_join(builder *b, int n, const fv *in, int axis, fv *y)
{
    fv *values = fv_take(b, &b->arena, (size_t)n, sizeof *values);
    qat_node **nodes = fv_take(b, &b->arena, (size_t)n, sizeof(qat_node *));
    int at = 0;
    int64_t dims[QAT_FOREIGN_RANK];
    if (!values || !nodes)
        return fv_graph_error(b);
    memcpy(values, in, (size_t)n * sizeof *values);
    qat_status st = check_joined(b, n, values, axis);
    if (!st)
        st = same_order(b, n, values);
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = 0;
    for (int i = 0; i < n && !st; i++) {
        dims[axis] += values[i].dims[axis];
        nodes[i] = fv_shaped(b, &values[i], joined_shape(&values[i], axis, &at));
        st = nodes[i] ? QAT_OK : fv_graph_error(b);
    }
    qat_node *all = st ? NULL : join(b, n, nodes, at);
    if (!all)
        return st ? st : fv_graph_error(b);
    bool const is_picture = in->rank > 2 && in->rank < 5;
    *y =
        is_picture ? fv_channels_last(b, all, in->rank, dims) : fv_in_order(b, all, in->rank, dims);
    return QAT_OK;
}

static qat_status build_concat(builder *b)
{
    fv *x, y;
    int axis;
    int const n = b->node->n_inputs;
    fv *values = fv_take(b, &b->arena, (size_t)n + 1, sizeof *values);
    qat_status st = !values ? fv_graph_error(b) : fv_data(b, 0, &x);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 1), x->rank, &axis);
    for (int i = 0; i < n && !st; i++) {
        st = fv_data(b, i, &x);
        if (!st)
            values[i] = *x;
    }
    if (!st)
        st = fv_join(b, n, values, axis, &y);
    if (!st)
        fv_output(b, 0, &y);
    return st;
}

/* ------------------------------------------------------------------ Expand, Tile */

static qat_status build_expand(builder *b)
{
    fv *in, x;
    int64_t dims[QAT_FOREIGN_RANK];
    int n;
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = fv_ints(b, 1, "shape", dims, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    x = *in;
    st = fv_raise_rank(b, &x, n);
    if (!st && n > x.rank)
        return fv_refuse(b, "more dimensions in front of the batch");
    for (int i = n - 1, k = x.rank - 1; i >= 0 && !st; i--, k--)
        if (dims[i] < 1 ||
            (dims[i] > 1 && dims[i] != x.dims[k] && (x.dims[k] > 1 || k < fv_first(&x))))
            return fv_refuse(b, "dimension %d, of %lld, becomes %lld", k, (long long)x.dims[k],
                             (long long)dims[i]);
    if (!st)
        st = fv_widen(b, &x, n, dims);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

static qat_status build_tile(builder *b)
{
    fv *in, x;
    int64_t repeats[QAT_FOREIGN_RANK];
    int n;
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = fv_ints(b, 1, "repeats", repeats, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    x = *in;
    if (n != x.rank)
        return fv_refuse(b, "%d repeats for %d dimensions", n, x.rank);
    for (int i = 0; i < n && !st; i++) {
        int64_t const d = x.dims[i];
        if (repeats[i] < 1 || repeats[i] > INT32_MAX / d)
            return fv_refuse(b, "%lld repeats", (long long)repeats[i]);
        int64_t *at = fv_take(b, &b->arena, (size_t)(d * repeats[i]), sizeof *at);
        for (int64_t k = 0; at && k < d * repeats[i]; k++)
            at[k] = k % d;
        if (!at)
            return fv_graph_error(b);
        if (repeats[i] > 1)
            st = fv_gather(b, &x, i, at, d * repeats[i], &x);
    }
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

const fv_operator fv_part_operators[] = {
    {"Slice", build_slice},
    {"Split", build_split},
    {"Gather", build_gather},
    {"Concat", build_concat},
    {"Expand", build_expand},
    {"Tile", build_tile},
    {NULL, NULL},
};
