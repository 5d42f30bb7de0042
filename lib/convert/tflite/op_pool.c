/** AVERAGE_POOL_2D, MAX_POOL_2D, and operators over axes: MEAN, SUM, REDUCE_MAX and its kind. */
#include "convert/tflite/import.h"

static qat_status import_pool(tfl_importer *im, const char *op)
{
    const fb_table *o = &im->op->options;
    qat_window const window = {.kernel_h = fb_i32(o, POOL_FILTER_H, 0),
                               .kernel_w = fb_i32(o, POOL_FILTER_W, 0),
                               .stride_h = fb_i32(o, POOL_STRIDE_H, 0),
                               .stride_w = fb_i32(o, POOL_STRIDE_W, 0),
                               .dilation_h = 1,
                               .dilation_w = 1};
    tfl_shape x, y;
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 4, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_window_shape(im, &x, &window, fb_u8(o, POOL_PADDING, 0), x.dims[3], &y);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    if (st)
        return st;
    qat_emit e = tfl_emit(im, 1, &input, output);
    st = tfl_activation(im, POOL_ACTIVATION, &e);
    return st ? st : qat_emit_pool(&e, op, &window, im->err);
}

static qat_status import_average_pool(tfl_importer *im)
{
    return import_pool(im, "average_pool2d");
}

static qat_status import_max_pool(tfl_importer *im)
{
    return import_pool(im, "max_pool2d");
}

/** Which axes are reduced. Axes may be negative, and may be named more than once. */
static qat_status axis_mask(tfl_importer *im, int rank, unsigned *mask)
{
    const int64_t *axes;
    int count, axis;
    qat_status st = tfl_ints(im, 1, "its axes", &axes, &count);
    *mask = 0;
    for (int i = 0; i < count && !st; i++) {
        st = tfl_axis(im, axes[i], rank, &axis);
        if (!st)
            *mask |= 1u << axis;
    }
    return st;
}

static tfl_shape reduced(const tfl_shape *x, unsigned mask, bool keep)
{
    tfl_shape y = {0};
    for (int i = 0; i < x->rank; i++)
        if (!(mask >> i & 1u))
            y.dims[y.rank++] = x->dims[i];
        else if (keep)
            y.dims[y.rank++] = 1;
    return y;
}

/** Of more axes than the engine has, neighbours that are all reduced or all kept become one. */
static qat_status merge_axes(tfl_importer *im, const tfl_shape *x, unsigned *mask, int *input)
{
    int kinds[TFL_MAX_RANK];
    unsigned const axes = *mask;
    tfl_merged m;
    for (int d = 0; d < TFL_MAX_RANK; d++)
        kinds[d] = axes >> d & 1u;
    tfl_merge(x, kinds, &m);
    if (m.shape.rank > QI_MAX_RANK)
        return tfl_refuse(im, "its axes of rank %d would be %d in the engine, which supports %d",
                          x->rank, m.shape.rank, QI_MAX_RANK);
    *mask = 0;
    for (int d = 0; d < x->rank; d++)
        if (axes >> d & 1u && (x->dims[d] > 1 || x->rank <= QI_MAX_RANK))
            *mask |= 1u << m.place[d];
    return tfl_view(im, "whole", x, &m.shape, input);
}

/** Get the input, the axes and the shape of the output. */
static qat_status begin_axes(tfl_importer *im, unsigned *mask, int *input, tfl_shape *y)
{
    tfl_shape x;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = axis_mask(im, x.rank, mask);
    if (!st)
        *y = reduced(&x, *mask, fb_u8(&im->op->options, REDUCER_KEEP_DIMS, 0) != 0);
    if (!st)
        st = tfl_integers(im, 0, input);
    return st ? st : merge_axes(im, &x, mask, input);
}

/** The same of codes. */
static qat_status begin_axes_of_codes(tfl_importer *im, unsigned *mask, int *input, tfl_shape *y)
{
    int codes;
    qat_status const st = tfl_input(im, 0, &codes);
    return st ? st : begin_axes(im, mask, input, y);
}

static qat_status import_mean(tfl_importer *im)
{
    tfl_shape y;
    unsigned mask;
    int input = -1, output = -1;
    qat_status st = begin_axes_of_codes(im, &mask, &input, &y);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    if (st)
        return st;
    return mask ? qat_emit_mean(&e, mask, im->err) : qat_emit_requantize(&e, im->err);
}

static qat_status import_sum(tfl_importer *im)
{
    tfl_shape y;
    unsigned mask;
    int input = -1, output = -1;
    qat_status st = begin_axes_of_codes(im, &mask, &input, &y);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    if (st)
        return st;
    if (!mask)
        return tfl_refuse(im, "only sums over one axis or more are supported");
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return qat_emit_sum(&e, mask, im->err);
}

/** REDUCE_ANY and REDUCE_ALL are the largest and the smallest truth value. */
static qat_status import_reduce(tfl_importer *im)
{
    bool const truths = im->op->code == TFL_REDUCE_ANY || im->op->code == TFL_REDUCE_ALL;
    bool const largest = im->op->code == TFL_REDUCE_MAX || im->op->code == TFL_REDUCE_ANY;
    tfl_shape y;
    unsigned mask;
    int input = -1, output = -1;
    qat_status st = (truths ? begin_axes : begin_axes_of_codes)(im, &mask, &input, &y);
    if (!st && truths && tfl_tensor_of(im, 0)->type != TFL_BOOL)
        st = tfl_refuse(im, "its input is %s instead of bool",
                        tfl_type_name(tfl_tensor_of(im, 0)->type));
    if (!st)
        st = tfl_integer_output(im, 0, &y, input, &output);
    if (st)
        return st;
    if (!qat_same_grid(&im->graph->tensors[input], &im->graph->tensors[output]))
        return tfl_refuse(im, "its output has another grid than its input");
    int32_t const params[] = {(int32_t)mask, largest ? QI_LARGEST : QI_SMALLEST};
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return mask ? qat_emit_op(&e, "reduce", QI_ROUND_NONE, 2, params, 0, im->err)
                : qat_emit_reshape(&e, im->err);
}

const tfl_handler tfl_pool_handlers[] = {
    {TFL_AVERAGE_POOL_2D, TFL_OPTIONS_POOL_2D, 1, 1, 1, import_average_pool},
    {TFL_MAX_POOL_2D, TFL_OPTIONS_POOL_2D, 1, 1, 1, import_max_pool},
    {TFL_MEAN, TFL_OPTIONS_REDUCER, 2, 2, 1, import_mean},
    {TFL_SUM, TFL_OPTIONS_REDUCER, 2, 2, 1, import_sum},
    {TFL_REDUCE_MAX, TFL_OPTIONS_REDUCER, 2, 2, 1, import_reduce},
    {TFL_REDUCE_MIN, TFL_OPTIONS_REDUCER, 2, 2, 1, import_reduce},
    {TFL_REDUCE_ANY, TFL_OPTIONS_REDUCER, 2, 2, 1, import_reduce},
    {TFL_REDUCE_ALL, TFL_OPTIONS_REDUCER, 2, 2, 1, import_reduce},
    {0}};
