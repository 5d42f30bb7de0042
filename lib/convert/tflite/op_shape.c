/**
 * Operators that reshape or join codes: RESHAPE, SQUEEZE, EXPAND_DIMS, CONCATENATION, PACK; and
 * SHAPE, whose result is always known at import.
 */
#include "convert/tflite/import.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_DIM = 1 << 28 };

/** Set output 0 to the values of input 0 in another shape: known integers, or what runs. */
static qat_status reshape_to(tfl_importer *im, const tfl_shape *y)
{
    const int64_t *values;
    int count, input = -1;
    if (tfl_is_known(im, 0)) {
        qat_status const known = tfl_ints(im, 0, "its input", &values, &count);
        if (!known && tfl_count(y) != count)
            return tfl_refuse(im, "%d values do not fit", count);
        return known ? known : tfl_fold(im, 0, y, values);
    }
    bool const plain = tfl_has_input(im, 0) && tfl_is_plain(tfl_tensor_of(im, 0));
    qat_status const st = plain ? tfl_integers(im, 0, &input) : tfl_input(im, 0, &input);
    return st ? st : tfl_view_output(im, 0, y, input);
}

/* ------------------------------------------------------------------ RESHAPE */

/**
 * The new shape: input 1 if it is known, else the option, in which old models write [0] for a
 * scalar. -1 stands for the remaining values.
 */
static qat_status new_shape(tfl_importer *im, int64_t dims[TFL_MAX_RANK], int *rank)
{
    fb_vector const option = fb_items(&im->op->options, RESHAPE_NEW_SHAPE, 4);
    bool const from_input = tfl_has_input(im, 1) && (tfl_is_known(im, 1) || !option.count);
    const int64_t *values = NULL;
    *rank = (int)option.count;
    qat_status const st = from_input ? tfl_ints(im, 1, "its new shape", &values, rank) : QAT_OK;
    if (st)
        return st;
    if (*rank > TFL_MAX_RANK)
        return tfl_refuse(im, "its output has rank %d; at most %d is supported", *rank,
                          TFL_MAX_RANK);
    for (int i = 0; i < *rank; i++)
        dims[i] = values ? values[i] : fb_i32_at(&option, (uint32_t)i);
    if (!values && *rank == 1 && dims[0] == 0)
        *rank = 0;
    return QAT_OK;
}

/** Replace the one -1, and check that the number of values stays the same. */
static qat_status complete_shape(tfl_importer *im, const int64_t dims[TFL_MAX_RANK], int64_t count,
                                 tfl_shape *y)
{
    int64_t product = 1;
    int unknown = -1;
    for (int i = 0; i < y->rank; i++) {
        if (dims[i] == -1 && unknown < 0)
            unknown = i;
        else if (dims[i] < 1 || dims[i] > MAX_DIM / product)
            return tfl_refuse(im, "its new shape has a dimension of %" PRId64, dims[i]);
        else
            product *= dims[i];
        y->dims[i] = (int32_t)dims[i];
    }
    if (unknown >= 0 && count % product == 0)
        y->dims[unknown] = (int32_t)(count / product);
    if (tfl_count(y) != count)
        return tfl_refuse(im, "%" PRId64 " values do not fit its new shape", count);
    return QAT_OK;
}

static qat_status import_reshape(tfl_importer *im)
{
    tfl_shape x, y = {0};
    int64_t dims[TFL_MAX_RANK];
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &x);
    if (!st)
        st = new_shape(im, dims, &y.rank);
    if (!st)
        st = complete_shape(im, dims, tfl_count(&x), &y);
    return st ? st : reshape_to(im, &y);
}

/* ------------------------------------------------------------------ SQUEEZE, EXPAND_DIMS */

/** Which dimensions are removed: those listed, or all that are 1. */
static qat_status squeezed(tfl_importer *im, const tfl_shape *x, unsigned *mask)
{
    fb_vector const dims = fb_items(&im->op->options, SQUEEZE_DIMS, 4);
    qat_status st = QAT_OK;
    int axis;
    *mask = 0;
    for (uint32_t i = 0; i < dims.count && !st; i++) {
        st = tfl_axis(im, fb_i32_at(&dims, i), x->rank, &axis);
        if (!st && x->dims[axis] != 1)
            st = tfl_refuse(im, "dimension %d is %d instead of 1", axis, (int)x->dims[axis]);
        if (!st)
            *mask |= 1u << axis;
    }
    for (int i = 0; i < x->rank && !dims.count; i++)
        *mask |= (unsigned)(x->dims[i] == 1) << i;
    return st;
}

static qat_status import_squeeze(tfl_importer *im)
{
    tfl_shape x, y = {0};
    unsigned mask;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &x);
    if (!st)
        st = squeezed(im, &x, &mask);
    if (st)
        return st;
    for (int i = 0; i < x.rank; i++)
        if (!(mask >> i & 1u))
            y.dims[y.rank++] = x.dims[i];
    return reshape_to(im, &y);
}

static qat_status import_expand_dims(tfl_importer *im)
{
    tfl_shape x, y;
    int64_t value;
    int axis;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK - 1, &x);
    if (!st)
        st = tfl_int(im, 1, "its axis", &value);
    if (!st)
        st = tfl_axis(im, value, x.rank + 1, &axis);
    if (st)
        return st;
    y.rank = x.rank + 1;
    for (int i = 0; i < y.rank; i++)
        y.dims[i] = i < axis ? x.dims[i] : i == axis ? 1 : x.dims[i - 1];
    return reshape_to(im, &y);
}

/* ------------------------------------------------------------------ CONCATENATION */

/** The sum of the inputs' dimensions along axis; the other dimensions must be equal. */
static qat_status joined_shape(tfl_importer *im, int *axis, tfl_shape *y)
{
    tfl_shape x;
    int64_t sum = 0;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, y);
    if (!st)
        st = tfl_axis(im, fb_i32(&im->op->options, CONCATENATION_AXIS, 0), y->rank, axis);
    for (int i = 0; i < im->op->n_inputs && !st; i++) {
        st = tfl_input_shape(im, i, y->rank, y->rank, &x);
        for (int j = 0; j < y->rank && !st; j++)
            if (j != *axis && x.dims[j] != y->dims[j])
                st = tfl_refuse(im, "dimension %d of input %d is %d instead of %d", j, i,
                                (int)x.dims[j], (int)y->dims[j]);
        sum += st ? 0 : x.dims[*axis];
    }
    if (st)
        return st;
    if (sum > MAX_DIM)
        return tfl_refuse(im, "its output would be too large");
    y->dims[*axis] = (int32_t)sum;
    return QAT_OK;
}

/** Join known vectors. */
static qat_status fold_concat(tfl_importer *im, const tfl_shape *y)
{
    int64_t const room = tfl_count(y);
    const int64_t *values;
    int count;
    size_t n = 0;
    qat_status const fits = tfl_check_known(im, y);
    if (fits)
        return fits;
    int64_t *joined = qat_arena_array(&im->arena, (size_t)room, sizeof *joined);
    if (!joined)
        return qat_out_of_memory(im->err, NULL);
    for (int i = 0; i < im->op->n_inputs; i++) {
        qat_status const st = tfl_ints(im, i, "one of its inputs", &values, &count);
        if (st)
            return st;
        if (n + (size_t)count > (size_t)room)
            return tfl_refuse(im, "%d values of input %d do not fit its shape", count, i);
        memcpy(joined + n, values, (size_t)count * sizeof *joined);
        n += (size_t)count;
    }
    return tfl_fold(im, 0, y, joined);
}

/** The reference joins int8 tensors only if they have the same grid. So must real numbers have. */
static qat_status check_grids(tfl_importer *im, int n, const int *inputs, int output)
{
    const qat_qtensor *y = &im->graph->tensors[output];
    for (int i = 0; i < n; i++) {
        const qat_qtensor *x = &im->graph->tensors[inputs[i]];
        if (x->type != y->type || ((y->type == QI_S8 || tfl_is_real(im)) && !qat_same_grid(x, y)))
            return tfl_refuse(im,
                              "input %d (%s) differs from its output in type, scale or zero point; "
                              "only uint8 inputs may differ, and only in scale and zero point",
                              i, x->name);
    }
    return QAT_OK;
}

/**
 * Join the inputs, one behind the other along an axis of y. x: their shapes; NULL: those of the
 * operator's inputs. Each is as long along the axis as it has values.
 */
static qat_status join(tfl_importer *im, const tfl_shape *x, int axis, const tfl_shape *y)
{
    int output = -1, inputs[TFL_MAX_OPERANDS];
    int const n = im->op->n_inputs;
    tfl_merged m;
    qat_status st = tfl_inputs(im, n, inputs);
    if (!st)
        st = tfl_merge_cut(im, y, 1u << axis, &m);
    if (!st)
        st = tfl_output(im, 0, y, inputs[0], &output);
    for (int i = 0; i < n && !st; i++) {
        const tfl_shape *from = x ? x : &tfl_value_of(im, i)->shape;
        tfl_shape part = m.shape;
        part.dims[m.place[axis]] = (int32_t)(tfl_count(from) / (tfl_count(y) / y->dims[axis]) *
                                             (m.shape.dims[m.place[axis]] / y->dims[axis]));
        st = tfl_view(im, "part", from, &part, &inputs[i]);
    }
    if (!st)
        st = check_grids(im, n, inputs, output);
    int const whole = output;
    if (!st && !tfl_same_shape(&m.shape, y))
        st = tfl_between(im, "joined", &m.shape, whole, &output);
    qat_emit e = tfl_emit(im, n, inputs, output);
    if (!st && im->op->code == TFL_CONCATENATION)
        st = tfl_activation(im, CONCATENATION_ACTIVATION, &e);
    if (!st)
        st = qat_emit_concat(&e, m.place[axis], im->err);
    qat_emit const view = tfl_emit(im, 1, &output, whole);
    return st || output == whole ? st : qat_emit_reshape(&view, im->err);
}

static qat_status import_concatenation(tfl_importer *im)
{
    tfl_shape y;
    int axis;
    qat_status const st = joined_shape(im, &axis, &y);
    if (!st && tfl_is_known(im, 0) && y.rank == 1)
        return fold_concat(im, &y);
    return st ? st : join(im, NULL, axis, &y);
}

/* ------------------------------------------------------------------ known integers */

static qat_status import_shape(tfl_importer *im)
{
    tfl_shape x;
    int64_t dims[TFL_MAX_RANK];
    qat_status const st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (st)
        return st;
    for (int i = 0; i < x.rank; i++)
        dims[i] = x.dims[i];
    return tfl_fold(im, 0, &(tfl_shape){1, {x.rank}}, dims);
}

/** Join known scalars into a vector. */
static qat_status fold_pack(tfl_importer *im, int axis)
{
    int64_t values[TFL_MAX_OPERANDS];
    int const n = im->op->n_inputs;
    tfl_shape x;
    qat_status st = QAT_OK;
    if (axis != 0 && axis != -1)
        return tfl_refuse(im, "axis %d; scalars can only be packed along axis 0", axis);
    for (int i = 0; i < n && !st; i++) {
        st = tfl_input_shape(im, i, 0, 0, &x);
        if (!st)
            st = tfl_int(im, i, "one of its inputs", &values[i]);
    }
    return st ? st : tfl_fold(im, 0, &(tfl_shape){1, {n}}, values);
}

/** Every input gets a new dimension of 1 at the axis, along which they are joined. */
static qat_status pack_codes(tfl_importer *im, const tfl_shape *x, int axis)
{
    tfl_shape y = {.rank = x->rank + 1}, other;
    qat_status st = QAT_OK;
    for (int d = 0; d < y.rank; d++)
        y.dims[d] = d == axis ? im->op->n_inputs : x->dims[d - (d > axis)];
    for (int i = 0; i < im->op->n_inputs && !st; i++) {
        st = tfl_input_shape(im, i, x->rank, x->rank, &other);
        if (!st && !tfl_same_shape(&other, x))
            st = tfl_refuse(im, "input %d has another shape than input 0", i);
    }
    return st ? st : join(im, x, axis, &y);
}

static qat_status import_pack(tfl_importer *im)
{
    tfl_shape x;
    int axis = fb_i32(&im->op->options, PACK_AXIS, 0);
    if (tfl_is_known(im, 0))
        return fold_pack(im, axis);
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK - 1, &x);
    if (!st)
        st = tfl_axis(im, axis, x.rank + 1, &axis);
    return st ? st : pack_codes(im, &x, axis);
}

const tfl_handler tfl_shape_handlers[] = {
    {TFL_RESHAPE, TFL_OPTIONS_RESHAPE, 1, 2, 1, import_reshape},
    {TFL_SQUEEZE, TFL_OPTIONS_SQUEEZE, 1, 1, 1, import_squeeze},
    {TFL_EXPAND_DIMS, TFL_OPTIONS_EXPAND_DIMS, 2, 2, 1, import_expand_dims},
    {TFL_CONCATENATION, TFL_OPTIONS_CONCATENATION, 1, TFL_MAX_OPERANDS, 1, import_concatenation},
    {TFL_SHAPE, TFL_OPTIONS_SHAPE, 1, 1, 1, import_shape},
    {TFL_PACK, TFL_OPTIONS_PACK, 1, TFL_MAX_OPERANDS, 1, import_pack},
    {0}};
