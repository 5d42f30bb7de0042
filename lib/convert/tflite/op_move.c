/**
 * Operators that move codes: PAD, PADV2, TRANSPOSE, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR; and
 * ARG_MAX, which gives the position of the largest.
 */
#include "convert/tflite/import.h"

#include <inttypes.h>

/** Codes do not change: the op ignores scales, but not zero points. */
static qat_status emit_move(tfl_importer *im, const char *op, int input, int output, int n_params,
                            const int32_t *params)
{
    qat_emit const e = tfl_emit(im, 1, &input, output);
    qat_status const st = qat_require_same_grid(&e, op, 0, im->err);
    return st ? st : qat_emit_op(&e, op, QI_ROUND_NONE, n_params, params, 0, im->err);
}

/* ------------------------------------------------------------------ PAD, PADV2 */

enum { PAD_BEFORE = 0, PAD_AFTER = QI_MAX_RANK, PAD_VALUE = 2 * QI_MAX_RANK, PAD_PARAMS };

/** Read before and after of every axis; y is x enlarged by them. */
static qat_status read_pads(tfl_importer *im, const tfl_shape *x, tfl_shape *y,
                            int32_t params[PAD_PARAMS])
{
    const int64_t *pads;
    int count;
    qat_status const st = tfl_ints(im, 1, "its paddings", &pads, &count);
    if (st)
        return st;
    if (count != 2 * x->rank)
        return tfl_refuse(im, "%d paddings for rank %d", count, x->rank);
    *y = *x;
    for (int i = 0; i < x->rank; i++) {
        int64_t const before = pads[2 * i], after = pads[2 * i + 1];
        if (before < 0 || after < 0 || before > INT16_MAX || after > INT16_MAX)
            return tfl_refuse(im, "paddings %" PRId64 " and %" PRId64 " of dimension %d", before,
                              after, i);
        params[PAD_BEFORE + i] = (int32_t)before;
        params[PAD_AFTER + i] = (int32_t)after;
        y->dims[i] += (int32_t)(before + after);
    }
    return QAT_OK;
}

/** Read PADV2's third input: one code on the output's grid. */
static qat_status read_pad_value(tfl_importer *im, int output, int32_t *code)
{
    int value;
    *code = im->graph->tensors[output].zero_point;
    if (im->op->code == TFL_PAD)
        return QAT_OK;
    qat_status const st = tfl_input(im, 2, &value);
    if (st)
        return st;
    const qat_qtensor *v = &im->graph->tensors[value], *y = &im->graph->tensors[output];
    if (!v->data || qat_qtensor_count(v) != 1 || v->type != y->type ||
        v->zero_point != y->zero_point)
        return tfl_refuse(im, "its value, %s, is not a constant on the grid of its output",
                          v->name);
    *code = (int32_t)qi_value_at(v->type, v->data, 0);
    return QAT_OK;
}

static qat_status import_pad(tfl_importer *im)
{
    tfl_shape x, y;
    int32_t params[PAD_PARAMS] = {0};
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = read_pads(im, &x, &y, params);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    if (!st)
        st = read_pad_value(im, output, &params[PAD_VALUE]);
    return st ? st : emit_move(im, "pad", input, output, PAD_PARAMS, params);
}

/* ------------------------------------------------------------------ TRANSPOSE */

static qat_status read_permutation(tfl_importer *im, const tfl_shape *x, tfl_shape *y,
                                   int32_t perm[QI_MAX_RANK])
{
    const int64_t *values;
    int count, axis;
    unsigned seen = 0;
    qat_status st = tfl_ints(im, 1, "its permutation", &values, &count);
    if (!st && count != x->rank)
        st = tfl_refuse(im, "a permutation of %d axes for rank %d", count, x->rank);
    y->rank = x->rank;
    for (int i = 0; i < QI_MAX_RANK; i++)
        perm[i] = i;
    for (int i = 0; i < count && !st; i++) {
        st = tfl_axis(im, values[i], x->rank, &axis);
        if (st)
            break;
        if (seen >> axis & 1u)
            return tfl_refuse(im, "its permutation names axis %d twice", axis);
        seen |= 1u << axis;
        perm[i] = axis;
        y->dims[i] = x->dims[axis];
    }
    return st;
}

static qat_status import_transpose(tfl_importer *im)
{
    tfl_shape x, y;
    int32_t perm[QI_MAX_RANK];
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = read_permutation(im, &x, &y, perm);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    return st ? st : emit_move(im, "transpose", input, output, QI_MAX_RANK, perm);
}

/* ------------------------------------------------------------------ REVERSE_V2 */

/** Slices from the last position to the first. */
static qat_status import_reverse(tfl_importer *im)
{
    tfl_shape x;
    const int64_t *axes;
    int count, axis, input = -1, output = -1;
    int32_t params[2 * QI_MAX_RANK] = {0, 0, 0, 0, 1, 1, 1, 1};
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_ints(im, 1, "its axes", &axes, &count);
    for (int i = 0; !st && i < count; i++) {
        st = tfl_axis(im, axes[i], x.rank, &axis);
        if (!st) {
            params[axis] = x.dims[axis] - 1;
            params[QI_MAX_RANK + axis] = -1;
        }
    }
    if (!st)
        st = tfl_output(im, 0, &x, input, &output);
    return st ? st : emit_move(im, "strided_slice", input, output, 2 * QI_MAX_RANK, params);
}

/* ------------------------------------------------------------------ RESIZE */

static qat_status import_resize(tfl_importer *im, const char *op, int align_corners,
                                int half_pixel_centers)
{
    const fb_table *o = &im->op->options;
    int32_t const params[] = {fb_u8(o, align_corners, 0) != 0,
                              fb_u8(o, half_pixel_centers, 0) != 0};
    tfl_shape x;
    const int64_t *size;
    int count, input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 4, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_ints(im, 1, "its new size", &size, &count);
    if (!st &&
        (count != 2 || size[0] < 1 || size[1] < 1 || size[0] > UINT16_MAX || size[1] > UINT16_MAX))
        st = tfl_refuse(im, "its new size is not two numbers of 1 to %d", UINT16_MAX);
    if (st)
        return st;
    x.dims[1] = (int32_t)size[0];
    x.dims[2] = (int32_t)size[1];
    st = tfl_output(im, 0, &x, input, &output);
    return st ? st : emit_move(im, op, input, output, 2, params);
}

static qat_status import_resize_bilinear(tfl_importer *im)
{
    return import_resize(im, "resize_bilinear", RESIZE_BILINEAR_ALIGN_CORNERS,
                         RESIZE_BILINEAR_HALF_PIXEL);
}

static qat_status import_resize_nearest(tfl_importer *im)
{
    return import_resize(im, "resize_nearest", RESIZE_NEAREST_ALIGN_CORNERS,
                         RESIZE_NEAREST_HALF_PIXEL);
}

/* ------------------------------------------------------------------ ARG_MAX, ARG_MIN */

/** Make an output of positions, int32 or int64, without a scale. */
static qat_status position_output(tfl_importer *im, const tfl_shape *shape, int *output)
{
    const tfl_tensor *t = &im->model->tensors[im->op->outputs[0]];
    if (!tfl_is_plain(t) || (t->type != TFL_INT32 && t->type != TFL_INT64))
        return tfl_refuse(im, "its output is %s with %u scales", tfl_type_name(t->type),
                          t->scales.count);
    return tfl_integer_output(im, 0, shape, -1, output);
}

/** A table that reverses the order of the codes: the smallest becomes the largest. */
static qat_status reverse(tfl_importer *im, const tfl_shape *shape, int *tensor)
{
    uint8_t codes[256];
    int const input = *tensor;
    qat_status const st = tfl_between(im, "reversed", shape, input, tensor);
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)~qat_code_at(im->graph->tensors[input].type, i);
    qat_emit const e = tfl_emit(im, 1, &input, *tensor);
    return st ? st : qat_emit_table(&e, 1, codes, im->err);
}

static qat_status import_arg_max(tfl_importer *im)
{
    tfl_shape x, y = {0};
    int64_t value;
    int axis, input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_int(im, 1, "its axis", &value);
    if (!st)
        st = tfl_axis(im, value, x.rank, &axis);
    for (int i = 0; !st && i < x.rank; i++)
        if (i != axis)
            y.dims[y.rank++] = x.dims[i];
    if (!st && im->op->code == TFL_ARG_MIN)
        st = reverse(im, &x, &input);
    if (!st)
        st = position_output(im, &y, &output);
    if (st)
        return st;
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return qat_emit_op(&e, "arg_max", QI_ROUND_NONE, 1, &(int32_t){axis}, 0, im->err);
}

const tfl_handler tfl_move_handlers[] = {
    {TFL_PAD, TFL_OPTIONS_PAD, 2, 2, 1, import_pad},
    {TFL_PADV2, TFL_OPTIONS_PADV2, 3, 3, 1, import_pad},
    {TFL_TRANSPOSE, TFL_OPTIONS_TRANSPOSE, 2, 2, 1, import_transpose},
    {TFL_REVERSE_V2, TFL_OPTIONS_REVERSE_V2, 2, 2, 1, import_reverse},
    {TFL_RESIZE_BILINEAR, TFL_OPTIONS_RESIZE_BILINEAR, 2, 2, 1, import_resize_bilinear},
    {TFL_RESIZE_NEAREST_NEIGHBOR, TFL_OPTIONS_RESIZE_NEAREST_NEIGHBOR, 2, 2, 1,
     import_resize_nearest},
    {TFL_ARG_MAX, TFL_OPTIONS_ARG_MAX, 2, 2, 1, import_arg_max},
    {TFL_ARG_MIN, TFL_OPTIONS_ARG_MIN, 2, 2, 1, import_arg_max},
    {0}};
