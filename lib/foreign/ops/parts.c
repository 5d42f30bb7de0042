/** Parts of values, and values joined: what several operators need. */
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

qat_status fv_empty(builder *b, int rank, const int64_t *dims, fv *part)
{
    qat_foreign_tensor *t = fv_constant(b, QAT_FOREIGN_FLOAT, rank, dims);
    *part = (fv){.constant = t};
    return t ? QAT_OK : fv_graph_error(b);
}

bool fv_is_empty(const fv *x)
{
    return x && x->constant && !x->constant->count;
}

static qat_status check_part(const builder *b, const fv *x, int axis, int64_t count)
{
    if (axis < fv_first(x))
        return fv_refuse(b, "a part of the batch");
    if (count < 1)
        return fv_refuse(b, "an empty part of dimension %d", axis);
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

/* ------------------------------------------------------------------ values joined */

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
