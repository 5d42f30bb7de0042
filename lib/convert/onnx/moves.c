/** Operators that move codes, or what codes stand for. */
#include "convert/onnx/import.h"

#include <math.h>
#include <string.h>

qat_status oq_moved_input(builder *b, bool monotone, oq_operand *x)
{
    *x = oq_input(oq_of(b), 0);
    qat_status const st = x->v.op ? oq_settle(oq_of(b), b->node->inputs[0], false, x) : QAT_OK;
    if (st)
        return st;
    if (x->v.tensor < 0)
        return fv_refuse(b, "its input is not quantized");
    return x->v.function && (monotone || oq_rows(&x->v) > 1) ? oq_own_grid(oq_of(b), x) : QAT_OK;
}

static qat_status build_identity(builder *b)
{
    oq_operand const x = oq_input(oq_of(b), 0);
    if (!oq_is_given(&x))
        return fv_refuse(b, "its input is not known");
    oq_output(oq_of(b), 0, &x.v, x.shape.rank, x.shape.dims);
    return QAT_OK;
}

/* ------------------------------------------------------------------ other shapes */

static qat_status build_reshape(builder *b)
{
    oq_operand x;
    int64_t dims[QAT_FOREIGN_RANK], known = 1, all = 1;
    int n, unknown = -1;
    qat_status st = oq_moved_input(b, false, &x);
    if (!st)
        st = fv_ints(b, 1, "shape", dims, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    if (n < 1)
        return fv_refuse(b, "it has no shape");
    for (int i = 0; i < x.shape.rank; i++)
        all *= x.shape.dims[i];
    for (int i = 0; i < n; i++) {
        if (dims[i] == 0 && !fv_attr_int(b, "allowzero", 0) && i < x.shape.rank)
            dims[i] = x.shape.dims[i];
        if (dims[i] == -1 && unknown < 0)
            unknown = i;
        else if (dims[i] < 1 || dims[i] > INT32_MAX || (known *= dims[i]) > INT32_MAX)
            return fv_refuse(b, "shape: %lld is not a dimension", (long long)dims[i]);
    }
    if (unknown >= 0)
        dims[unknown] = all / known;
    return oq_reshape(oq_of(b), &x, n, dims);
}

static qat_status build_flatten(builder *b)
{
    oq_operand x;
    int64_t dims[] = {1, 1};
    int axis = 0;
    qat_status st = oq_moved_input(b, false, &x);
    if (st)
        return st;
    int64_t const given = fv_attr_int(b, "axis", 1);
    if (given == x.shape.rank)
        axis = x.shape.rank;
    else
        st = fv_axis(b, given, x.shape.rank, &axis);
    for (int i = 0; i < x.shape.rank; i++)
        dims[i >= axis] *= x.shape.dims[i];
    return st ? st : oq_reshape(oq_of(b), &x, 2, dims);
}

/** Squeeze and Unsqueeze: the axes that are removed, or added. */
static qat_status axes_of(builder *b, int rank, bool named[QAT_FOREIGN_RANK], int *n)
{
    int64_t axes[QAT_FOREIGN_RANK];
    qat_status st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, n);
    int const all = rank < 0 ? -rank - 1 + *n : rank;
    if (!st && all > QAT_FOREIGN_RANK)
        return fv_refuse(b, "axes: %d dimensions would be too many", all);
    for (int i = 0; i < *n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], all, &axis);
        if (!st && named[axis])
            return fv_refuse(b, "axes: %d is named twice", axis);
        if (!st)
            named[axis] = true;
    }
    return st;
}

static qat_status build_squeeze(builder *b)
{
    oq_operand x;
    int64_t dims[QAT_FOREIGN_RANK];
    bool named[QAT_FOREIGN_RANK] = {false};
    int n = 0, rank = 0;
    qat_status st = oq_moved_input(b, false, &x);
    if (!st)
        st = axes_of(b, x.shape.rank, named, &n);
    for (int i = 0; i < x.shape.rank && !st; i++) {
        if (named[i] && x.shape.dims[i] != 1)
            return fv_refuse(b, "axes: dimension %d is %lld", i, (long long)x.shape.dims[i]);
        if (n < 0 ? x.shape.dims[i] != 1 : !named[i])
            dims[rank++] = x.shape.dims[i];
    }
    return st ? st : oq_reshape(oq_of(b), &x, rank, dims);
}

static qat_status build_unsqueeze(builder *b)
{
    oq_operand x;
    int64_t dims[QAT_FOREIGN_RANK];
    bool named[QAT_FOREIGN_RANK] = {false};
    int n = 0;
    qat_status st = oq_moved_input(b, false, &x);
    if (!st)
        st = axes_of(b, -x.shape.rank - 1, named, &n);
    if (!st && n < 1)
        return fv_refuse(b, "it has no axes");
    for (int i = 0, k = 0; !st && i < x.shape.rank + n; i++)
        dims[i] = named[i] ? 1 : x.shape.dims[k++];
    return st ? st : oq_reshape(oq_of(b), &x, x.shape.rank + n, dims);
}

/** Weights may be transposed, too. */
static qat_status transpose_constant(builder *b, const oq_operand *x, const int *perm)
{
    const qat_foreign_tensor *from = x->v.constant.codes;
    int64_t dims[QAT_FOREIGN_RANK], step[QAT_FOREIGN_RANK], next = 1;
    oq_value v = x->v;
    for (int i = from->rank - 1; i >= 0; next *= from->dims[i--])
        step[i] = next;
    for (int i = 0; i < from->rank; i++)
        dims[i] = from->dims[perm[i]];
    qat_foreign_tensor *t = fv_constant(b, QAT_FOREIGN_INT, from->rank, dims);
    if (!t)
        return fv_graph_error(b);
    t->stored = from->stored;
    for (size_t i = 0; i < t->count; i++) {
        size_t rest = i, at = 0;
        for (int d = from->rank - 1; d >= 0; d--) {
            at += rest % (size_t)dims[d] * (size_t)step[perm[d]];
            rest /= (size_t)dims[d];
        }
        ((int64_t *)t->ints)[i] = from->ints[at];
    }
    v.constant.codes = t;
    for (int i = 0; i < from->rank; i++)
        if (perm[i] == x->v.constant.axis) {
            v.constant.axis = i;
            break;
        }
    oq_output(oq_of(b), 0, &v, t->rank, dims);
    return QAT_OK;
}

static qat_status build_transpose(builder *b)
{
    oq_importer *q = oq_of(b);
    oq_operand x = oq_input(q, 0);
    int64_t given[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    int perm[QAT_FOREIGN_RANK], seen = 0;
    int const rank = x.shape.rank, n = fv_attr_ints(b, "perm", given, QAT_FOREIGN_RANK);
    bool const is_constant = x.v.constant.codes != NULL;
    qat_status st = is_constant ? QAT_OK : oq_moved_input(b, false, &x);
    if (!st && n && n != rank)
        return fv_refuse(b, "attribute perm has %d numbers for %d dimensions", n, rank);
    for (int i = 0; i < rank && !st; i++) {
        int64_t const axis = n ? given[i] : rank - 1 - i;
        if (axis < 0 || axis >= rank || seen >> axis & 1)
            return fv_refuse(b, "attribute perm is no order of %d dimensions", rank);
        perm[i] = (int)axis;
        seen |= 1 << axis;
        dims[i] = x.shape.dims[axis];
    }
    if (st || is_constant)
        return st ? st : transpose_constant(b, &x, perm);
    st = oq_transpose(q, &x, perm);
    if (!st)
        oq_output(q, 0, &x.v, rank, dims);
    return st;
}

/* ------------------------------------------------------------------ parts */

/** Codes begin, begin + step, .. of each dimension, as output i. */
static qat_status take(builder *b, const oq_operand *x, int i, const int64_t *begin_at,
                       const int64_t *steps, const int64_t *dims)
{
    oq_importer *q = oq_of(b);
    int const rank = x->shape.rank;
    int32_t params[2 * QI_MAX_RANK] = {0, 0, 0, 0, 1, 1, 1, 1}, to[QI_MAX_RANK];
    oq_value v = x->v;
    qat_status st = oq_few_dims(q, rank);
    if (!st)
        st = oq_dims(q, v.n_last, rank, dims, to);
    for (int d = 0; d < rank && !st; d++) {
        int const at = oq_place(v.n_last, rank, d);
        params[at] = (int32_t)begin_at[d];
        params[QI_MAX_RANK + at] = (int32_t)steps[d];
    }
    if (!st)
        st = oq_append_like(q, x->v.tensor, "part", rank, to, &v.tensor);
    if (!st)
        st = oq_move(q, "strided_slice", x->v.tensor, v.tensor, 2 * QI_MAX_RANK, params);
    if (!st)
        oq_output(q, i, &v, rank, dims);
    return st;
}

/** A part without values: a constant of these dimensions, of no codes or of no reals. */
static qat_status give_empty(builder *b, const oq_operand *x, int i, const int64_t *dims)
{
    const qat_qtensor *codes = &oq_of(b)->graph->tensors[x->v.tensor];
    qat_foreign_tensor *t =
        fv_constant(b, x->v.is_real ? QAT_FOREIGN_FLOAT : QAT_FOREIGN_INT, x->shape.rank, dims);
    if (!t)
        return fv_graph_error(b);
    t->stored = x->v.is_real ? OQ_FLOAT : codes->type == QI_S8 ? OQ_INT8 : OQ_UINT8;
    fv_output_constant(b, i, t);
    return QAT_OK;
}

static qat_status build_split(builder *b)
{
    oq_operand x;
    int axis, n;
    int64_t sizes[OQ_OPERANDS], at[QAT_FOREIGN_RANK] = {0}, steps[QAT_FOREIGN_RANK],
                                dims[QAT_FOREIGN_RANK];
    qat_status st = oq_moved_input(b, false, &x);
    if (!st)
        st = fv_axis(b, fv_attr_int(b, "axis", 0), x.shape.rank, &axis);
    if (!st)
        st = fv_ints(b, 1, "split", sizes, OQ_OPERANDS, &n);
    if (st)
        return st;
    int const parts = b->node->n_outputs;
    int64_t const length = x.shape.dims[axis];
    if (parts < 1 || parts > OQ_OPERANDS || (n >= 0 && n != parts))
        return fv_refuse(b, "%d sizes for %d outputs", n, parts);
    int64_t const each = (length + parts - 1) / parts;
    memcpy(dims, x.shape.dims, sizeof dims);
    for (int i = 0; i < QAT_FOREIGN_RANK; i++)
        steps[i] = 1;
    for (int i = 0; i < parts && !st; i++) {
        int64_t const left = length - at[axis];
        dims[axis] = n >= 0 ? sizes[i] : left < each ? left : each;
        if (dims[axis] < 0 || dims[axis] > left)
            return fv_refuse(b, "its parts are not those of %lld", (long long)length);
        st = dims[axis] ? take(b, &x, i, at, steps, dims) : give_empty(b, &x, i, dims);
        at[axis] += dims[axis];
    }
    if (!st && at[axis] != length)
        return fv_refuse(b, "its parts have %lld of the %lld positions of dimension %d",
                         (long long)at[axis], (long long)length, axis);
    return st;
}

/** A bound of Slice as a position: counted from the end if negative, and limited. */
static int64_t position(int64_t at, int64_t length, int64_t lowest, int64_t highest)
{
    int64_t const from_start = at < 0 ? at + length : at;
    return from_start < lowest ? lowest : from_start > highest ? highest : from_start;
}

static qat_status build_slice(builder *b)
{
    oq_operand x;
    int64_t starts[QAT_FOREIGN_RANK], ends[QAT_FOREIGN_RANK], axes[QAT_FOREIGN_RANK];
    int64_t by[QAT_FOREIGN_RANK], at[QAT_FOREIGN_RANK] = {0}, steps[QAT_FOREIGN_RANK];
    int64_t dims[QAT_FOREIGN_RANK];
    int n, n_ends, n_axes, n_steps;
    bool is_empty = false;
    qat_status st = oq_moved_input(b, false, &x);
    if (!st)
        st = fv_ints(b, 1, "starts", starts, QAT_FOREIGN_RANK, &n);
    if (!st)
        st = fv_ints(b, 2, "ends", ends, QAT_FOREIGN_RANK, &n_ends);
    if (!st)
        st = fv_ints(b, 3, "axes", axes, QAT_FOREIGN_RANK, &n_axes);
    if (!st)
        st = fv_ints(b, 4, "steps", by, QAT_FOREIGN_RANK, &n_steps);
    if (st)
        return st;
    if (n < 1 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        return fv_refuse(b, "%d starts, %d ends, %d axes and %d steps", n, n_ends, n_axes, n_steps);
    memcpy(dims, x.shape.dims, sizeof dims);
    for (int i = 0; i < QAT_FOREIGN_RANK; i++)
        steps[i] = 1;
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, n_axes < 0 ? i : axes[i], x.shape.rank, &axis);
        if (st)
            return st;
        int64_t const step = n_steps < 0 ? 1 : by[i], length = x.shape.dims[axis];
        if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
            return fv_refuse(b, "a step of %lld", (long long)step);
        int64_t const first = step > 0 ? position(starts[i], length, 0, length)
                                       : position(starts[i], length, 0, length - 1);
        int64_t const end = step > 0 ? position(ends[i], length, 0, length)
                                     : position(ends[i], length, -1, length - 1);
        int64_t const room = step > 0 ? end - first : first - end, size = step > 0 ? step : -step;
        at[axis] = first;
        steps[axis] = step;
        dims[axis] = room > 0 && length > 0 ? (room + size - 1) / size : 0;
        is_empty = is_empty || !dims[axis];
    }
    return is_empty ? give_empty(b, &x, 0, dims) : take(b, &x, 0, at, steps, dims);
}

/** The code that fills the places of Pad. */
static qat_status fill_code(builder *b, const oq_operand *x, int32_t *code)
{
    oq_importer *q = oq_of(b);
    oq_operand const value = oq_input(q, 2);
    const qat_foreign_tensor *c = value.shape.constant;
    oq_target const grid = oq_same_codes(q, x, -1);
    const oq_constant *own = &value.v.constant;
    *code = x->v.is_real ? grid.zero_point : 0;
    if (own->codes && own->codes->count == 1)
        *code = oq_code_of(own->scales[0] * (float)(own->codes->ints[0] - own->zero_point), &grid);
    else if (c && c->count == 1 && x->v.is_real && c->type == QAT_FOREIGN_FLOAT)
        *code = oq_code_of(c->floats[0], &grid);
    else if (c && c->count == 1 && !x->v.is_real && c->type == QAT_FOREIGN_INT)
        *code = (int32_t)c->ints[0];
    else if (oq_is_given(&value))
        return fv_refuse(b, "the value that it fills in is not a constant");
    else if (x->v.is_real && fv_attr(b, "value")) /* before opset 11 */
        *code = oq_code_of((float)fv_attr_real(b, "value", 0), &grid);
    return QAT_OK;
}

static qat_status build_pad(builder *b)
{
    enum { BEFORE = 0, AFTER = QI_MAX_RANK, VALUE = 2 * QI_MAX_RANK, PARAMS };
    oq_importer *q = oq_of(b);
    oq_operand x;
    int64_t pads[2 * QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    int32_t params[PARAMS] = {0}, to[QI_MAX_RANK];
    int n;
    qat_status st = oq_moved_input(b, true, &x);
    if (!st)
        st = fv_ints(b, 1, "pads", pads, 2 * QAT_FOREIGN_RANK, &n);
    if (!st && strcmp(fv_attr_text(b, "mode", "constant"), "constant") != 0)
        return fv_refuse(b, "attribute mode = %.20s", fv_attr_text(b, "mode", ""));
    int const rank = x.shape.rank;
    if (!st)
        st = oq_few_dims(q, rank);
    if (!st && (n != 2 * rank || (b->node->n_inputs > 3 && b->node->inputs[3] >= 0)))
        return fv_refuse(b, "%d pads for %d dimensions; axes are not supported", n, rank);
    if (!st)
        st = fill_code(b, &x, &params[VALUE]);
    for (int i = 0; i < rank && !st; i++) {
        int const at = oq_place(x.v.n_last, rank, i);
        if (pads[i] < 0 || pads[rank + i] < 0 || pads[i] > INT32_MAX || pads[rank + i] > INT32_MAX)
            return fv_refuse(b, "pads: only 0 and more are supported");
        params[BEFORE + at] = (int32_t)pads[i];
        params[AFTER + at] = (int32_t)pads[rank + i];
        dims[i] = x.shape.dims[i] + pads[i] + pads[rank + i];
    }
    int const from = x.v.tensor;
    if (!st)
        st = oq_dims(q, x.v.n_last, rank, dims, to);
    if (!st)
        st = oq_append_like(q, from, "padded", rank, to, &x.v.tensor);
    if (!st)
        st = oq_move(q, "pad", from, x.v.tensor, PARAMS, params);
    if (!st)
        oq_output(q, 0, &x.v, rank, dims);
    return st;
}

const fv_operator oq_moves[] = {
    {"Identity", build_identity},   {"Dropout", build_identity},
    {"Reshape", build_reshape},     {"Flatten", build_flatten},
    {"Squeeze", build_squeeze},     {"Unsqueeze", build_unsqueeze},
    {"Transpose", build_transpose}, {"Split", build_split},
    {"Slice", build_slice},         {"Pad", build_pad},
    {"Gather", oq_gather},          {NULL, NULL},
};
