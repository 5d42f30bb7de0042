/**
 * Operators of integers that are known at import, such as shapes and sizes of a model whose batch
 * was free: what they compute is known as well. FILL may also make codes, which are constants.
 */
#include "convert/tflite/import.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------ one or two operands */

/** Rounded toward minus infinity. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/** All operands have 32 bits, or are as small: nothing overflows 64. */
static qat_status compute(tfl_importer *im, int64_t a, int64_t b, int64_t *y)
{
    int const code = im->op->code;
    bool const divides = code == TFL_DIV || code == TFL_FLOOR_DIV || code == TFL_FLOOR_MOD;
    if (divides && b == 0)
        return tfl_refuse(im, "it divides by 0");
    *y = code == TFL_ADD             ? a + b
         : code == TFL_SUB           ? a - b
         : code == TFL_MUL           ? a * b
         : code == TFL_DIV           ? a / b
         : code == TFL_FLOOR_DIV     ? floor_div(a, b)
         : code == TFL_FLOOR_MOD     ? a - floor_div(a, b) * b
         : code == TFL_MAXIMUM       ? (a > b ? a : b)
         : code == TFL_MINIMUM       ? (a < b ? a : b)
         : code == TFL_EQUAL         ? a == b
         : code == TFL_NOT_EQUAL     ? a != b
         : code == TFL_GREATER       ? a > b
         : code == TFL_GREATER_EQUAL ? a >= b
         : code == TFL_LESS          ? a < b
         : code == TFL_LESS_EQUAL    ? a <= b
         : code == TFL_NEG           ? -a
                                     : (a < 0 ? -a : a); /* ABS */
    return QAT_OK;
}

/** The values of input i, none of more than 32 bits. */
static qat_status small_ints(tfl_importer *im, int i, const int64_t **values)
{
    int count;
    qat_status st = tfl_ints(im, i, "one of its inputs", values, &count);
    for (int k = 0; k < count && !st; k++)
        if ((*values)[k] < INT32_MIN || (*values)[k] > INT32_MAX)
            st = tfl_refuse(im, "its input %d holds %" PRId64, i, (*values)[k]);
    return st;
}

/** The position of a value in an operand that broadcasts to y, of its position in y. */
static size_t broadcast_from(const tfl_shape *x, const tfl_shape *y, size_t at)
{
    size_t from = 0, stride = 1;
    for (int i = 1; i <= x->rank; i++) {
        size_t const dim = (size_t)y->dims[y->rank - i];
        from += x->dims[x->rank - i] > 1 ? at % dim * stride : 0;
        stride *= (size_t)x->dims[x->rank - i];
        at /= dim;
    }
    return from;
}

/** One, two or three operands, of which two are `like`. */
static qat_status fold_elementwise(tfl_importer *im)
{
    int64_t results[TFL_MAX_KNOWN_INTS] = {0};
    const int64_t *values[3] = {0};
    tfl_shape x[3], y = {0};
    int const n = im->op->n_inputs, code = im->op->code;
    bool const may_limit = code == TFL_ADD || code == TFL_SUB || code == TFL_MUL || code == TFL_DIV;
    uint8_t const activation =
        may_limit ? fb_u8(&im->op->options, BINARY_ACTIVATION, TFL_ACT_NONE) : TFL_ACT_NONE;
    qat_status st = QAT_OK;
    if (activation != TFL_ACT_NONE)
        return tfl_refuse(im, "fused activation %u is not supported (only NONE is)", activation);
    for (int i = 0; i < n && !st; i++) {
        tfl_shape const before = y;
        st = tfl_input_shape(im, i, 0, QI_MAX_RANK, &x[i]);
        if (!st)
            st = small_ints(im, i, &values[i]);
        if (!st)
            st = tfl_broadcast(im, &before, &x[i], &y);
    }
    if (!st)
        st = tfl_check_known(im, &y);
    for (size_t k = 0; !st && k < (size_t)tfl_count(&y); k++) {
        int64_t of[3] = {0};
        for (int i = 0; i < n; i++)
            of[i] = values[i][broadcast_from(&x[i], &y, k)];
        if (n == 3)
            results[k] = of[0] ? of[1] : of[2];
        else
            st = compute(im, of[0], of[1], &results[k]);
    }
    return st ? st : tfl_fold(im, 0, &y, results);
}

/* ------------------------------------------------------------------ vectors */

/** The product, sum, largest or smallest of a vector. */
static qat_status fold_reduction(tfl_importer *im)
{
    int const code = im->op->code;
    const int64_t *values, *axes;
    int count, n_axes;
    tfl_shape x, y = {.dims = {1}};
    int64_t result = code == TFL_REDUCE_PROD;
    qat_status st = tfl_input_shape(im, 0, 0, 1, &x);
    if (!st)
        st = tfl_ints(im, 0, "its input", &values, &count);
    if (!st)
        st = tfl_ints(im, 1, "its axes", &axes, &n_axes);
    if (st)
        return st;
    if (n_axes < 1 || x.rank < 1)
        return tfl_fold(im, 0, &x, values);
    for (int i = 0; i < count; i++) {
        int64_t const v = values[i];
        bool const first = i == 0;
        if (v < INT32_MIN || v > INT32_MAX || result > INT32_MAX || result < INT32_MIN)
            return tfl_refuse(im, "its numbers are too large");
        result = code == TFL_REDUCE_PROD  ? result * v
                 : code == TFL_SUM        ? result + v
                 : code == TFL_REDUCE_MAX ? (first || v > result ? v : result)
                                          : (first || v < result ? v : result);
    }
    y.rank = fb_u8(&im->op->options, REDUCER_KEEP_DIMS, 0) != 0;
    return tfl_fold(im, 0, &y, &result);
}

static qat_status fold_gather(tfl_importer *im)
{
    int64_t results[TFL_MAX_KNOWN_INTS];
    const int64_t *values, *indices;
    int count, n = 0;
    tfl_shape x, y;
    qat_status st = tfl_input_shape(im, 0, 1, 1, &x);
    if (!st)
        st = tfl_input_shape(im, 1, 0, QI_MAX_RANK, &y);
    if (!st)
        st = tfl_ints(im, 0, "its input", &values, &count);
    if (!st)
        st = tfl_ints(im, 1, "its indices", &indices, &n);
    for (int i = 0; i < n && !st; i++) {
        if (indices[i] < 0 || indices[i] >= count)
            st = tfl_refuse(im, "index %" PRId64 " of a dimension of %d", indices[i], count);
        else
            results[i] = values[indices[i]];
    }
    return st ? st : tfl_fold(im, 0, &y, results);
}

static qat_status fold_unpack(tfl_importer *im)
{
    const int64_t *values;
    int count;
    tfl_shape x;
    qat_status st = tfl_input_shape(im, 0, 1, 1, &x);
    if (!st)
        st = tfl_ints(im, 0, "its input", &values, &count);
    if (!st && count != im->op->n_outputs)
        st = tfl_refuse(im, "%d values for %d outputs", count, im->op->n_outputs);
    for (int i = 0; i < im->op->n_outputs && !st; i++)
        st = tfl_fold(im, i, &(tfl_shape){0}, &values[i]);
    return st;
}

static qat_status fold_range(tfl_importer *im)
{
    int64_t results[TFL_MAX_KNOWN_INTS], start = 0, limit = 0, delta = 0, n = 0;
    qat_status st = tfl_int(im, 0, "its start", &start);
    if (!st)
        st = tfl_int(im, 1, "its limit", &limit);
    if (!st)
        st = tfl_int(im, 2, "its delta", &delta);
    if (!st && (delta == 0 || start < INT32_MIN || start > INT32_MAX || limit < INT32_MIN ||
                limit > INT32_MAX || delta < INT32_MIN || delta > INT32_MAX))
        st = tfl_refuse(im, "from %" PRId64 " to %" PRId64 " by %" PRId64, start, limit, delta);
    for (int64_t v = start; !st && (delta > 0 ? v < limit : v > limit); v += delta) {
        if (n == TFL_MAX_KNOWN_INTS)
            return tfl_refuse(im, "it would make more than %d integers", TFL_MAX_KNOWN_INTS);
        results[n++] = v;
    }
    return st ? st : tfl_fold(im, 0, &(tfl_shape){1, {(int32_t)n}}, results);
}

/** The shape to which shapes broadcast. */
static qat_status fold_broadcast_args(tfl_importer *im)
{
    int64_t dims[TFL_MAX_RANK];
    tfl_shape x[2], y;
    for (int i = 0; i < 2; i++) {
        const int64_t *values;
        int count;
        qat_status const st = tfl_ints(im, i, "a shape", &values, &count);
        if (st)
            return st;
        if (count > TFL_MAX_RANK)
            return tfl_refuse(im, "a shape of rank %d", count);
        x[i] = (tfl_shape){.rank = count};
        for (int d = 0; d < count; d++) {
            if (values[d] < 1 || values[d] > INT32_MAX)
                return tfl_refuse(im, "a shape with a dimension of %" PRId64, values[d]);
            x[i].dims[d] = (int32_t)values[d];
        }
    }
    qat_status const st = tfl_broadcast(im, &x[0], &x[1], &y);
    for (int d = 0; d < y.rank && !st; d++)
        dims[d] = y.dims[d];
    return st ? st : tfl_fold(im, 0, &(tfl_shape){1, {y.rank}}, dims);
}

static qat_status import_rank(tfl_importer *im)
{
    tfl_shape x;
    qat_status const st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &x);
    return st ? st : tfl_fold(im, 0, &(tfl_shape){0}, &(int64_t){x.rank});
}

/* ------------------------------------------------------------------ FILL */

qat_status tfl_read_shape(tfl_importer *im, int i, tfl_shape *shape)
{
    const int64_t *dims;
    int count;
    qat_status const st = tfl_ints(im, i, "its shape", &dims, &count);
    *shape = (tfl_shape){.rank = count};
    if (!st && count > TFL_MAX_RANK)
        return tfl_refuse(im, "a shape of rank %d", count);
    for (int d = 0; d < count && !st; d++) {
        if (dims[d] < 1 || dims[d] > INT32_MAX)
            return tfl_refuse(im, "a shape with a dimension of %" PRId64, dims[d]);
        shape->dims[d] = (int32_t)dims[d];
    }
    return st;
}

/** A constant, every code of which is that of a constant. */
static qat_status fill_codes(tfl_importer *im, const tfl_shape *shape)
{
    int const index = im->op->outputs[0];
    tfl_value *v = &im->values[index];
    qat_qtensor t;
    int value;
    qat_status st = tfl_input(im, 1, &value);
    if (!st)
        st = tfl_describe(im, index, &t);
    if (st)
        return st;
    const qat_qtensor *x = &im->graph->tensors[value];
    size_t const each = qi_type_bytes(t.type);
    if (!x->data || qat_qtensor_count(x) != 1 || !qat_same_grid(x, &t) || v->known ||
        im->model->tensors[index].data || tfl_count(shape) < 1)
        return tfl_refuse(im, "its value, %s, is not a constant on the grid of its output",
                          x->name);
    const uint8_t *code = x->data;
    st = tfl_take_room(im, im->op->inputs[1], (size_t)tfl_count(shape) * each, &t.data);
    for (size_t i = 0; !st && i < (size_t)tfl_count(shape); i++)
        memcpy((uint8_t *)t.data + i * each, code, each);
    if (!st)
        st = tfl_append(im, &t, shape, &v->tensor);
    v->known = !st;
    v->shape = *shape;
    return st;
}

static qat_status import_fill(tfl_importer *im)
{
    int64_t values[TFL_MAX_KNOWN_INTS], value = 0;
    tfl_shape shape;
    qat_status st = tfl_read_shape(im, 0, &shape);
    if (!st && !tfl_is_known(im, 1))
        return fill_codes(im, &shape);
    if (!st)
        st = tfl_int(im, 1, "its value", &value);
    for (int i = 0; i < TFL_MAX_KNOWN_INTS; i++)
        values[i] = value;
    return st ? st : tfl_fold(im, 0, &shape, values);
}

/* ------------------------------------------------------------------ which */

static const tfl_handler folded[] = {
    {TFL_ADD, TFL_OPTIONS_ADD, 2, 2, 1, fold_elementwise},
    {TFL_SUB, TFL_OPTIONS_SUB, 2, 2, 1, fold_elementwise},
    {TFL_MUL, TFL_OPTIONS_MUL, 2, 2, 1, fold_elementwise},
    {TFL_DIV, TFL_OPTIONS_DIV, 2, 2, 1, fold_elementwise},
    {TFL_FLOOR_DIV, TFL_OPTIONS_FLOOR_DIV, 2, 2, 1, fold_elementwise},
    {TFL_FLOOR_MOD, TFL_OPTIONS_FLOOR_MOD, 2, 2, 1, fold_elementwise},
    {TFL_MAXIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, fold_elementwise},
    {TFL_MINIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, fold_elementwise},
    {TFL_EQUAL, TFL_OPTIONS_EQUAL, 2, 2, 1, fold_elementwise},
    {TFL_NOT_EQUAL, TFL_OPTIONS_NOT_EQUAL, 2, 2, 1, fold_elementwise},
    {TFL_GREATER, TFL_OPTIONS_GREATER, 2, 2, 1, fold_elementwise},
    {TFL_GREATER_EQUAL, TFL_OPTIONS_GREATER_EQUAL, 2, 2, 1, fold_elementwise},
    {TFL_LESS, TFL_OPTIONS_LESS, 2, 2, 1, fold_elementwise},
    {TFL_LESS_EQUAL, TFL_OPTIONS_LESS_EQUAL, 2, 2, 1, fold_elementwise},
    {TFL_SELECT, TFL_OPTIONS_SELECT, 3, 3, 1, fold_elementwise},
    {TFL_SELECT_V2, TFL_OPTIONS_SELECT_V2, 3, 3, 1, fold_elementwise},
    {TFL_NEG, TFL_OPTIONS_NEG, 1, 1, 1, fold_elementwise},
    {TFL_ABS, TFL_OPTIONS_ABS, 1, 1, 1, fold_elementwise},
    {TFL_REDUCE_PROD, TFL_OPTIONS_REDUCER, 2, 2, 1, fold_reduction},
    {TFL_SUM, TFL_OPTIONS_REDUCER, 2, 2, 1, fold_reduction},
    {TFL_REDUCE_MAX, TFL_OPTIONS_REDUCER, 2, 2, 1, fold_reduction},
    {TFL_REDUCE_MIN, TFL_OPTIONS_REDUCER, 2, 2, 1, fold_reduction},
    {TFL_GATHER, TFL_OPTIONS_GATHER, 2, 2, 1, fold_gather},
    {TFL_UNPACK, TFL_OPTIONS_UNPACK, 1, 1, 0, fold_unpack},
    {TFL_RANGE, TFL_OPTIONS_RANGE, 3, 3, 1, fold_range},
    {TFL_BROADCAST_ARGS, TFL_NO_OPTIONS, 2, 2, 1, fold_broadcast_args},
    {0}};

const tfl_handler *tfl_folding(tfl_importer *im)
{
    bool known = im->op->n_inputs > 0;
    for (int i = 0; i < im->op->n_inputs && known; i++)
        known = tfl_is_known(im, i);
    for (const tfl_handler *h = folded; known && h->run; h++)
        if (h->code == im->op->code)
            return h;
    return NULL;
}

const tfl_handler tfl_known_handlers[] = {{TFL_RANK, TFL_OPTIONS_RANK, 1, 1, 1, import_rank},
                                          {TFL_FILL, TFL_OPTIONS_FILL, 2, 2, 1, import_fill},
                                          {0}};
