/** Operators that take parts of values and join them. */
#include "foreign/build.h"

#include <string.h>

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
    int64_t const count = way > 0 && length > 0 ? (way - 1) / each + 1 : 0;
    *cut = (fv_cut){from, count > 1 ? step : 1, count};
    return QAT_OK;
}

static qat_status cut_axis(builder *b, fv *x, int axis, const fv_cut *c)
{
    if (c->step > 0)
        return fv_part(b, x, axis, c->begin, c->step, c->count, x);
    int64_t *at = fv_take(b, &b->arena, (size_t)c->count, sizeof *at);
    for (int64_t i = 0; at && i < c->count; i++)
        at[i] = c->begin + i * c->step;
    return at ? fv_gather(b, x, axis, at, c->count, x) : fv_graph_error(b);
}

qat_status fv_slice_of(builder *b, int rank, fv_slice *s)
{
    int64_t axes[QAT_FOREIGN_RANK];
    int n_ends, n_axes, n_steps;
    qat_status st = fv_ints(b, 1, "starts", s->begins, QAT_FOREIGN_RANK, &s->n);
    if (!st)
        st = fv_ints(b, 2, "ends", s->ends, QAT_FOREIGN_RANK, &n_ends);
    if (!st)
        st = fv_ints(b, 3, "axes", axes, QAT_FOREIGN_RANK, &n_axes);
    if (!st)
        st = fv_ints(b, 4, "steps", s->steps, QAT_FOREIGN_RANK, &n_steps);
    if (st)
        return st;
    int const n = s->n;
    if (n < 1 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        return fv_refuse(b, "starts, ends, axes and steps have different lengths");
    for (int i = 0; i < n && !st; i++) {
        st = fv_axis(b, n_axes < 0 ? i : axes[i], rank, &s->axes[i]);
        s->steps[i] = n_steps < 0 ? 1 : s->steps[i];
    }
    return st;
}

/** May a part of the dimension be without values? Not of a batch, of which there may be more. */
static bool may_be_empty(const builder *b, const fv *x, int axis)
{
    return axis > 0 || (!fv_first(x) && !b->is_open);
}

static qat_status build_slice(builder *b)
{
    fv *in, x;
    fv_slice s;
    fv_cut cuts[QAT_FOREIGN_RANK];
    int64_t dims[QAT_FOREIGN_RANK];
    bool is_empty = false;
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = fv_slice_of(b, in->rank, &s);
    if (st)
        return st;
    x = *in;
    memcpy(dims, in->dims, sizeof dims);
    for (int i = 0; i < s.n && !st; i++) {
        st = fv_cut_of(b, dims[s.axes[i]], s.begins[i], s.ends[i], s.steps[i], &cuts[i]);
        dims[s.axes[i]] = cuts[i].count;
        is_empty = is_empty || (!cuts[i].count && may_be_empty(b, in, s.axes[i]));
    }
    if (!st && is_empty)
        st = fv_empty(b, in->rank, dims, &x);
    for (int i = 0; i < s.n && !st && !is_empty; i++)
        st = cut_axis(b, &x, s.axes[i], &cuts[i]);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

/** Part i of a Split: `length` positions from `at` on. */
static qat_status give_part(builder *b, int i, const fv *whole, int axis, int64_t at,
                            int64_t length)
{
    fv part;
    int64_t dims[QAT_FOREIGN_RANK];
    if (i >= b->node->n_outputs || b->node->outputs[i] < 0)
        return QAT_OK;
    memcpy(dims, whole->dims, sizeof dims);
    dims[axis] = length;
    bool const is_empty = !length && may_be_empty(b, whole, axis);
    qat_status const st = !is_empty ? fv_part(b, whole, axis, at, 1, length, &part)
                                    : fv_empty(b, whole->rank, dims, &part);
    if (!st)
        fv_output(b, i, &part);
    return st;
}

static qat_status build_split(builder *b)
{
    fv *x;
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
        if (length < 0 || length > rest)
            return fv_refuse(b, "a part of %lld of the %lld left in dimension %d",
                             (long long)length, (long long)rest, axis);
        st = give_part(b, i, &whole, axis, at, length);
        at += length;
    }
    if (!st && at != whole.dims[axis])
        return fv_refuse(b, "its parts have %lld of the %lld positions of dimension %d",
                         (long long)at, (long long)whole.dims[axis], axis);
    return st;
}

/**
 * Constant positions, of any dimensions, which take the place of the dimension. Or the values are
 * constants, and the positions are data.
 */
static qat_status build_gather(builder *b)
{
    fv *x, part;
    int axis, rank = 0;
    int64_t dims[2 * QAT_FOREIGN_RANK];
    const fv *index = fv_input(b, 1), *table = fv_input(b, 0);
    if (table && table->constant && index && index->node) {
        qat_status const given =
            fv_axis(b, fv_attr_int(b, "axis", 0), table->constant->rank, &axis);
        return given ? given : fv_embedding(b, table->constant, axis, index);
    }
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

/** A part without values joins nothing, but has the dimensions of the others. */
static qat_status skip_empty(const builder *b, const fv *part, const fv *x, int axis)
{
    const qat_foreign_tensor *t = part->constant;
    bool fits = t->rank == x->rank;
    for (int i = 0; fits && i < t->rank; i++)
        fits = i == axis ? !t->dims[i] : t->dims[i] == x->dims[i];
    return fits ? QAT_OK : fv_refuse(b, "an input without values that does not fit the others");
}

/** The first input that is data. */
static qat_status first_data(builder *b, fv **x)
{
    int i = 0;
    while (i + 1 < b->node->n_inputs && fv_is_empty(fv_input(b, i)))
        i++;
    return fv_data(b, i, x);
}

static qat_status build_concat(builder *b)
{
    fv *first, *x, y;
    int axis, count = 0;
    int const n = b->node->n_inputs;
    fv *values = fv_take(b, &b->arena, (size_t)n + 1, sizeof *values);
    qat_status st = !values ? fv_graph_error(b) : first_data(b, &first);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 1), first->rank, &axis);
    for (int i = 0; i < n && !st; i++) {
        bool const is_empty = fv_is_empty(fv_input(b, i));
        st = is_empty ? skip_empty(b, fv_input(b, i), first, axis) : fv_data(b, i, &x);
        if (!st && !is_empty)
            values[count++] = *x;
    }
    if (!st)
        st = fv_join(b, count, values, axis, &y);
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
