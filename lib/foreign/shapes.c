/** Operators that move values or rename dimensions. */
#include "foreign/build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ other dimensions */

static qat_status give_reshaped(builder *b, const fv *in, int rank, const int64_t *dims)
{
    fv x = *in;
    qat_status const st = fv_reshape(b, &x, rank, dims);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

/** A shape that counts the outputs of the old last layer counts those of the new one. */
static void follow_head(const builder *b, const fv *x, int n, int64_t *dims)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++)
        product =
            dims[i] > 0 && dims[i] <= INT32_MAX && product <= INT32_MAX ? product * dims[i] : 0;
    if (!b->head_was || product == fv_count(x) * x->size[0])
        return;
    for (int i = 1; i < n; i++)
        if (dims[i] == b->head_was) {
            dims[i] = b->options->head;
            return;
        }
}

static qat_status build_reshape(builder *b)
{
    fv *x;
    int n, unknown = -1;
    int64_t dims[QAT_FOREIGN_RANK], known = 1;
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_ints(b, 1, "shape", dims, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    if (n < 1)
        return fv_refuse(b, "it has no shape");
    bool const zero_copies = !fv_attr_int(b, "allowzero", 0);
    for (int i = 0; i < n; i++) {
        if (dims[i] == 0 && zero_copies && i < x->rank)
            dims[i] = x->dims[i];
        if (dims[i] == -1)
            unknown = i;
    }
    follow_head(b, x, n, dims);
    for (int i = 0; i < n; i++)
        if (i != unknown && (dims[i] <= 0 || dims[i] > INT32_MAX || (known *= dims[i]) > INT32_MAX))
            return fv_refuse(b, "shape: %lld is not a dimension", (long long)dims[i]);
    if (unknown >= 0)
        dims[unknown] = fv_count(x) * x->size[0] / known;
    return give_reshaped(b, x, n, dims);
}

static qat_status build_flatten(builder *b)
{
    fv *x;
    int axis;
    qat_status st = fv_data(b, 0, &x);
    if (st)
        return st;
    int64_t const given = fv_attr_int(b, "axis", 1);
    if (given == x->rank)
        return fv_refuse(b, "attribute axis = %lld: it would flatten the batch", (long long)given);
    st = fv_axis(b, given, x->rank, &axis);
    if (!st && axis != 1 && (axis == 0 || x->rank < 1))
        return fv_refuse(b, "attribute axis = %lld: it would flatten the batch", (long long)given);
    int64_t dims[] = {1, 1};
    for (int i = 0; i < x->rank && !st; i++)
        dims[i >= axis] *= x->dims[i];
    return st ? st : give_reshaped(b, x, 2, dims);
}

static qat_status build_squeeze(builder *b)
{
    fv *x;
    int n = 0, rank = 0;
    int64_t axes[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    bool removed[QAT_FOREIGN_RANK] = {false};
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, &n);
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], x->rank, &axis);
        if (!st && x->dims[axis] != 1)
            return fv_refuse(b, "axes: dimension %d is %lld", axis, (long long)x->dims[axis]);
        if (!st)
            removed[axis] = true;
    }
    if (st)
        return st;
    for (int i = 0; i < x->rank; i++)
        if (!(n < 0 ? i > 0 && x->dims[i] == 1 : removed[i]))
            dims[rank++] = x->dims[i];
    if (rank < 1)
        return fv_refuse(b, "it removes the batch, the first dimension");
    return give_reshaped(b, x, rank, dims);
}

static qat_status build_unsqueeze(builder *b)
{
    fv *x;
    int n;
    int64_t axes[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    bool added[QAT_FOREIGN_RANK] = {false};
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    int const rank = x->rank + (n > 0 ? n : 0);
    if (n < 1 || rank > QAT_FOREIGN_RANK)
        return fv_refuse(b, "axes: %d dimensions would be too many", rank);
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], rank, &axis);
        if (!st && added[axis])
            return fv_refuse(b, "axes: %d is named twice", axis);
        if (!st)
            added[axis] = true;
    }
    for (int i = 0, k = 0; i < rank && !st; i++)
        dims[i] = added[i] ? 1 : x->dims[k++];
    return st ? st : give_reshaped(b, x, rank, dims);
}

static qat_status build_transpose(builder *b)
{
    fv *in, x;
    int64_t given[QAT_FOREIGN_RANK];
    int perm[QAT_FOREIGN_RANK], seen = 0;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    int const n = fv_attr_ints(b, "perm", given, QAT_FOREIGN_RANK);
    for (int i = 0; i < x.rank; i++) {
        int64_t const axis = n ? given[i < n ? i : 0] : x.rank - 1 - i;
        if (axis < 0 || axis >= x.rank || (n && n != x.rank) || seen >> axis & 1)
            return fv_refuse(b, "attribute perm does not list the %d dimensions of the input",
                             x.rank);
        perm[i] = (int)axis;
        seen |= 1 << axis;
    }
    st = fv_permute(b, &x, perm);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

/* ------------------------------------------------------------------ parts */

/** The order in which dimension `axis` is a dimension of its own in memory: as it is, if it can. */
static qat_status part_shape(builder *b, fv *x, int axis, qat_shape *shape, int *at)
{
    int first = -1, count = 0;
    bool whole = true;
    for (int i = 1; i < x->n_atoms; i++)
        if (x->axis[x->memory[i]] == axis) {
            whole = whole &&
                    (first < 0 || (first + count == i && x->memory[i] == x->memory[i - 1] + 1));
            first = first < 0 ? i : first;
            count++;
        }
    if (!whole || first < 0) {
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
        bool const same = qat_shape_channels(now) == (int)x->dims[axis];
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

/** The same value with another length of one dimension. */
static fv resized(const fv *x, qat_node *node, int axis, int64_t length)
{
    fv v = {.node = node, .rank = x->rank};
    int now[FV_ATOMS];
    memcpy(v.dims, x->dims, sizeof v.dims);
    v.dims[axis] = length;
    bool given = false;
    for (int a = 0; a < x->n_atoms; a++) {
        now[a] = -1;
        if (a && x->axis[a] == axis && (given || length == 1))
            continue;
        now[a] = v.n_atoms;
        v.size[v.n_atoms] = a && x->axis[a] == axis ? length : x->size[a];
        v.axis[v.n_atoms++] = x->axis[a];
        given = given || (a && x->axis[a] == axis);
    }
    for (int i = 0, n = 0; i < x->n_atoms; i++)
        if (now[x->memory[i]] >= 0)
            v.memory[n++] = now[x->memory[i]];
    return v;
}

/** Positions begin, begin + step ... of a dimension: `count` of them. */
static qat_status take_part(builder *b, fv x, int axis, int64_t begin, int64_t step, int64_t count,
                            fv *part)
{
    qat_shape shape;
    int at;
    if (axis == 0)
        return fv_refuse(b, "a part of the batch");
    if (count < 1)
        return fv_refuse(b, "an empty part of dimension %d", axis);
    *part = x;
    if (count == x.dims[axis] && step == 1)
        return QAT_OK;
    qat_status const st = part_shape(b, &x, axis, &shape, &at);
    if (st)
        return st;
    qat_node *from = fv_shaped(b, &x, shape);
    qat_node *y = fv_add(b, "strided_slice", "", from, "axis=%d begin=%lld count=%lld step=%lld",
                         at, (long long)begin, (long long)count, (long long)step);
    *part = resized(&x, y, axis, count);
    return y ? QAT_OK : fv_graph_error(b);
}

static int64_t within(int64_t i, int64_t lo, int64_t hi)
{
    return i < lo ? lo : i > hi ? hi : i;
}

enum { MANY = 64 };

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
        int64_t const step = n_steps < 0 ? 1 : steps[i];
        st = fv_axis(b, n_axes < 0 ? i : axes[i], x.rank, &axis);
        if (st)
            return st;
        int64_t const d = x.dims[axis];
        if (step < 1)
            return fv_refuse(b, "steps: %lld is not supported", (long long)step);
        int64_t const from = within(begins[i] < 0 ? begins[i] + d : begins[i], 0, d);
        int64_t const to = within(ends[i] < 0 ? ends[i] + d : ends[i], 0, d);
        if (axis == 0 && from == 0 && to == d && step == 1)
            continue;
        st = take_part(b, x, axis, from, step, to > from ? (to - from - 1) / step + 1 : 0, &x);
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
            st = take_part(b, whole, axis, at, 1, length, &part);
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

/** A constant index: one position (the dimension goes), or a run of them. */
static qat_status build_gather(builder *b)
{
    fv *x, part;
    int axis;
    const fv *index = fv_input(b, 1);
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 0), x->rank, &axis);
    if (st)
        return st;
    const qat_foreign_tensor *c = index ? index->constant : NULL;
    if (!c || c->type != QAT_FOREIGN_INT || c->count < 1 || c->rank > 1)
        return fv_refuse(b, "its indices are not known integers of at most one dimension");
    for (size_t i = 0; i < c->count; i++)
        if (c->ints[i] < -INT32_MAX || c->ints[i] > INT32_MAX)
            return fv_refuse(b, "an index of %lld", (long long)c->ints[i]);
    int64_t const d = x->dims[axis], first = c->ints[0] < 0 ? c->ints[0] + d : c->ints[0];
    int64_t const step = c->count > 1 ? c->ints[1] - c->ints[0] : 1;
    for (size_t i = 1; i < c->count; i++)
        if (c->ints[i] - c->ints[i - 1] != step || step < 1)
            return fv_refuse(b, "its indices are not evenly spaced");
    if (first < 0 || first + ((int64_t)c->count - 1) * step >= d)
        return fv_refuse(b, "an index outside 0..%lld", (long long)d - 1);
    st = take_part(b, *x, axis, first, step, (int64_t)c->count, &part);
    if (st || c->rank == 1) {
        if (!st)
            fv_output(b, 0, &part);
        return st;
    }
    int64_t dims[QAT_FOREIGN_RANK];
    int rank = 0;
    for (int i = 0; i < part.rank; i++)
        if (i != axis)
            dims[rank++] = part.dims[i];
    return give_reshaped(b, &part, rank, dims);
}

/* ------------------------------------------------------------------ Concat */

static qat_status build_concat(builder *b)
{
    enum { MOST = 256 };
    qat_node *nodes[MOST];
    fv *first;
    int axis, at = 0;
    int64_t length = 0;
    int const n = b->node->n_inputs;
    if (n < 1 || n > MOST)
        return fv_refuse(b, "%d inputs; at most %d are possible", n, MOST);
    qat_status st = fv_data(b, 0, &first);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 1), first->rank, &axis);
    if (st)
        return st;
    if (axis == 0)
        return fv_refuse(b, "it joins along the batch, the first dimension");
    fv model = *first;
    for (int i = 0; i < n && !st; i++) {
        fv *in, x;
        st = fv_data(b, i, &in);
        if (st)
            return st;
        x = *in;
        if (x.rank != model.rank || x.rank < 2 || x.rank > 4)
            return fv_refuse(b, "inputs of %d and %d dimensions; 2 to 4 are possible", x.rank,
                             model.rank);
        for (int k = 0; k < x.rank; k++)
            if (k != axis && x.dims[k] != model.dims[k])
                return fv_refuse(b, "inputs that differ in dimension %d", k);
        length += x.dims[axis];
        st = fv_picture(b, &x, &nodes[i]);
    }
    if (st)
        return st;
    at = axis == 1 ? 3 : model.rank == 4 ? axis - 1 : 2;
    char attrs[32];
    char name[QAT_NAME_MAX];
    snprintf(attrs, sizeof attrs, "axis=%d", at == 3 ? -1 : at);
    snprintf(name, sizeof name, "%s", b->name);
    qat_node *y = qat_apply(b->graph, "concat", name, attrs, n, nodes);
    int64_t dims[QAT_FOREIGN_RANK];
    memcpy(dims, model.dims, sizeof dims);
    dims[axis] = length;
    fv const out = fv_channels_last(y, model.rank, dims);
    fv_output(b, 0, &out);
    return y ? QAT_OK : fv_graph_error(b);
}

/* ------------------------------------------------------------------ Pad */

/** x + c, a bias. */
static qat_node *shifted(builder *b, const char *part, qat_node *x, float c)
{
    qat_node *y = fv_add(b, "bias", part, x, " ");
    float *to = y ? fv_param(b, y, 0) : NULL;
    for (int i = 0; to && i < qat_shape_channels(&y->shape); i++)
        to[i] = c;
    return to ? y : NULL;
}

/** Padding with another number than 0 is padding with 0 of values that are smaller by it. */
static qat_status build_pad(builder *b)
{
    fv *in, x;
    qat_node *from;
    int n;
    int64_t pads[2 * QAT_FOREIGN_RANK], before[QAT_FOREIGN_RANK] = {0};
    int64_t after[QAT_FOREIGN_RANK] = {0}, axes[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    int n_axes = -1;
    const qat_foreign_tensor *value = NULL;
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = fv_ints(b, 1, "pads", pads, 2 * QAT_FOREIGN_RANK, &n);
    if (!st)
        st = fv_floats(b, 2, "value", &value);
    if (!st && b->node->n_inputs > 3)
        st = fv_ints(b, 3, "axes", axes, QAT_FOREIGN_RANK, &n_axes);
    if (st)
        return st;
    x = *in;
    int const listed = n_axes < 0 ? x.rank : n_axes;
    if (strcmp(fv_attr_text(b, "mode", "constant"), "constant") != 0)
        return fv_refuse(b, "attribute mode = %.20s is not supported",
                         fv_attr_text(b, "mode", "constant"));
    float const with =
        value && value->count ? value->floats[0] : (float)fv_attr_real(b, "value", 0);
    if (!(fabsf(with) < 1e30F))
        return fv_refuse(b, "padding with %g is not supported", (double)with);
    if (n != 2 * listed || x.rank > 4 || x.rank < 3)
        return fv_refuse(b, "pads has %d numbers for %d dimensions", n, x.rank);
    for (int i = 0; i < listed && !st; i++) {
        int axis;
        st = fv_axis(b, n_axes < 0 ? i : axes[i], x.rank, &axis);
        if (st)
            return st;
        before[axis] = pads[i];
        after[axis] = pads[i + listed];
    }
    bool any = false;
    for (int i = 0; i < x.rank; i++) {
        if (before[i] < 0 || after[i] < 0 || before[i] > 65536 || after[i] > 65536)
            return fv_refuse(b, "pads: only 0..65536 are supported");
        if (i == 0 && before[i] + after[i] > 0)
            return fv_refuse(b, "it pads the batch, the first dimension");
        any = any || before[i] + after[i] > 0;
        dims[i] = x.dims[i] + before[i] + after[i];
    }
    if (!any) {
        fv_output(b, 0, &x);
        return QAT_OK;
    }
    st = fv_picture(b, &x, &from);
    if (st)
        return st;
    int const h = x.rank == 4 ? 2 : 0, w = x.rank - 1; /* dimension 0 is not padded */
    if (with != 0)
        from = shifted(b, "below", from, -with);
    qat_node *y =
        !from ? NULL
              : fv_add(b, "pad", "", from, "top=%d bottom=%d left=%d right=%d front=%d back=%d",
                       (int)before[h], (int)after[h], (int)before[w], (int)after[w], (int)before[1],
                       (int)after[1]);
    if (with != 0 && y)
        y = shifted(b, "above", y, with);
    fv const out = fv_channels_last(y, x.rank, dims);
    fv_output(b, 0, &out);
    return y ? QAT_OK : fv_graph_error(b);
}

const fv_operator fv_shape_operators[] = {
    {"Reshape", build_reshape},
    {"Flatten", build_flatten},
    {"Squeeze", build_squeeze},
    {"Unsqueeze", build_unsqueeze},
    {"Transpose", build_transpose},
    {"Slice", build_slice},
    {"Split", build_split},
    {"Gather", build_gather},
    {"Concat", build_concat},
    {"Pad", build_pad},
    {NULL, NULL},
};
