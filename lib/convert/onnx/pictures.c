/** Operators on pictures and signals that have no weights: pools, Resize, the largest values. */
#include "convert/onnx/import.h"
#include "foreign/ops/resize.h"

#include <string.h>

/* ------------------------------------------------------------------ MaxPool */

static qat_status build_max_pool(builder *b)
{
    oq_importer *q = oq_of(b);
    oq_operand x;
    fv_window w;
    int picture, output, windows;
    qat_status st = oq_moved_input(b, true, &x);
    if (!st)
        st = fv_window_of(b, &x.shape, NULL, &w);
    if (!st && (w.dilation[0] > 1 || w.dilation[1] > 1 || fv_attr_int(b, "storage_order", 0)))
        return fv_refuse(b, "attributes dilations, storage_order: only 1 and 0 are supported");
    if (!st && b->node->n_outputs > 1 && b->node->outputs[1] >= 0)
        return fv_refuse(b, "its second output (indices) is not supported");
    bool const is_real = x.v.is_real;
    if (!st)
        st = oq_picture(q, &x, &picture);
    oq_target const target = st ? (oq_target){0} : oq_same_codes(q, &x, b->node->outputs[0]);
    if (!st)
        st = oq_window_output(q, &x, &w, x.shape.dims[1], &target, &output, &windows);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 1, &picture, windows, NULL);
    qat_window const window = oq_window(&w);
    st = qat_emit_pool(&e, "max_pool2d", &window, q->err);
    if (!st)
        st = oq_window_done(q, output, windows);
    if (!st && b->node->outputs[0] >= 0)
        q->values[b->node->outputs[0]].is_real = is_real;
    return st;
}

/* ------------------------------------------------------------------ largest values */

/** The largest of all codes along some dimensions. */
static qat_status keep_largest(builder *b, oq_operand *x, unsigned reduced, bool keep)
{
    enum { PARAMS = 2 };
    oq_importer *q = oq_of(b);
    int64_t dims[QAT_FOREIGN_RANK];
    int32_t to[QI_MAX_RANK], params[PARAMS] = {0, QI_LARGEST};
    int const rank = x->shape.rank, from = x->v.tensor;
    int n = 0;
    qat_status st = oq_few_dims(q, rank);
    if (!st && !keep)
        st = oq_order(q, x, 0);
    for (int i = 0; i < rank && !st; i++) {
        bool const is_reduced = reduced >> i & 1;
        params[0] |= is_reduced ? 1 << oq_place(x->v.n_last, rank, i) : 0;
        if (keep || !is_reduced)
            dims[n++] = is_reduced ? 1 : x->shape.dims[i];
    }
    if (!st && !reduced)
        return fv_refuse(b, "it reduces no dimension");
    int const in = st ? from : x->v.tensor;
    if (!st)
        st = oq_dims(q, x->v.n_last, n, dims, to);
    if (!st)
        st = oq_append_like(q, in, "largest", n, to, &x->v.tensor);
    if (!st)
        st = oq_move(q, "reduce", in, x->v.tensor, PARAMS, params);
    if (!st)
        oq_output(q, 0, &x->v, n, dims);
    return st;
}

static qat_status build_global_max(builder *b)
{
    oq_operand x;
    unsigned reduced = 0;
    qat_status const st = oq_moved_input(b, true, &x);
    for (int i = 2; !st && i < x.shape.rank; i++)
        reduced |= 1u << i;
    return st ? st : keep_largest(b, &x, reduced, true);
}

static qat_status build_reduce_max(builder *b)
{
    oq_operand x;
    unsigned reduced;
    qat_status st = oq_moved_input(b, true, &x);
    if (!st)
        st = oq_reduced(b, x.shape.rank, &reduced);
    return st ? st : keep_largest(b, &x, reduced, fv_attr_int(b, "keepdims", 1) != 0);
}

/* ------------------------------------------------------------------ AveragePool */

/** A depthwise convolution whose weights are 1 and stand for 1 / n. */
static qat_status append_ones(oq_importer *q, const fv_window *w, int64_t channels, int *tensor)
{
    qat_qtensor t = {.type = QI_U8,
                     .bits = 8,
                     .rank = 4,
                     .dims = {1, (int32_t)w->kernel[0], (int32_t)w->kernel[1], (int32_t)channels},
                     .scale = 1.0f / (float)(w->kernel[0] * w->kernel[1]),
                     .source_index = -1};
    qat_part_name(t.name, q->b.name, "ones");
    size_t const count = (size_t)(w->kernel[0] * w->kernel[1] * channels);
    t.data = fv_take(&q->b, &q->b.arena, count, 1);
    if (!t.data)
        return fv_graph_error(&q->b);
    memset(t.data, 1, count);
    qat_status const st = oq_append_constant(q, &t);
    *tensor = t.source_index;
    if (!st)
        q->graph->tensors[*tensor].source_index = -1;
    return st;
}

/**
 * The mean of the pixels inside the picture: on the input's scale, half away from zero, and then on
 * the target's.
 */
static qat_status average_inside(oq_importer *q, oq_operand *x, const fv_window *w,
                                 const oq_target *target)
{
    int from, output, picture;
    qat_status st = oq_picture(q, x, &from);
    oq_target own = st ? *target : oq_same_codes(q, x, q->b.from->n_values);
    if (!st)
        st = oq_window_output(q, x, w, x->shape.dims[1], &own, &output, &picture);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 1, &from, picture, NULL);
    qat_window const window = oq_window(w);
    st = qat_emit_pool(&e, "average_pool2d", &window, q->err);
    if (!st)
        st = oq_window_done(q, output, picture);
    return st ? st : oq_finish(q, own.value, target);
}

static qat_status emit_average_pool(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    fv_window w;
    int inputs[3] = {-1, -1, -1}, output, picture;
    qat_status st = oq_codes(q, &in[0], "input");
    if (!st)
        st = fv_window_of(&q->b, &in[0].shape, NULL, &w);
    if (st)
        return st;
    bool const is_padded = w.before[0] || w.before[1] || w.after[0] || w.after[1];
    bool const counts = fv_attr_int(&q->b, "count_include_pad", 0) != 0;
    if (w.dilation[0] > 1 || w.dilation[1] > 1)
        return fv_refuse(&q->b, "attribute dilations: only 1 is supported");
    if (is_padded && counts && fv_attr_int(&q->b, "ceil_mode", 0))
        return fv_refuse(&q->b, "attribute ceil_mode = 1 with count_include_pad = 1 is not "
                                "supported");
    if (is_padded && !counts)
        return average_inside(q, &in[0], &w, target);
    st = oq_picture(q, &in[0], &inputs[QAT_IN_X]);
    if (!st)
        st = append_ones(q, &w, in[0].shape.dims[1], &inputs[QAT_IN_WEIGHTS]);
    if (!st)
        st = oq_window_output(q, &in[0], &w, in[0].shape.dims[1], target, &output, &picture);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 3, inputs, picture, target);
    qat_window const window = oq_window(&w);
    st = qat_emit_depthwise_conv2d(&e, &window, q->err);
    return st ? st : oq_window_done(q, output, picture);
}

/* ------------------------------------------------------------------ Resize */

static qat_status append_resized(oq_importer *q, oq_operand *x, const fv_resize *r,
                                 const oq_target *target)
{
    int const rank = x->shape.rank;
    int32_t const params[] = {r->align_corners, r->half_pixel_centers};
    int64_t const out[] = {rank == 4 ? r->dims[2] : 1, r->dims[rank - 1]};
    int from, output, picture;
    qat_status st = oq_picture(q, x, &from);
    if (!st)
        st = oq_picture_output(q, x, out, x->shape.dims[1], target, &output, &picture);
    if (!st)
        st = oq_move(q, r->filter == FV_NEAREST ? "resize_nearest" : "resize_bilinear", from,
                     picture, 2, params);
    return st ? st : oq_window_done(q, output, picture);
}

/** On the scale of the input: positions between pixels are rounded to its codes. */
static qat_status build_resize(builder *b)
{
    oq_importer *q = oq_of(b);
    oq_operand x;
    fv_resize r;
    qat_status st = oq_moved_input(b, true, &x);
    if (!st)
        st = fv_resize_of(b, &x.shape, &r);
    if (!st && !r.is_op)
        st = fv_refuse(b,
                       "no integer op has the positions of coordinate_transformation_mode = %.24s "
                       "and nearest_mode = %.24s here",
                       r.place, r.rounding);
    if (st)
        return st;
    bool const is_real = x.v.is_real;
    oq_target const same = oq_same_codes(q, &x, b->node->n_outputs ? b->node->outputs[0] : -1);
    st = append_resized(q, &x, &r, &same);
    if (!st && same.value >= 0)
        q->values[same.value].is_real = is_real;
    return st;
}

const fv_operator oq_picture_moves[] = {
    {"MaxPool", build_max_pool},     {"GlobalMaxPool", build_global_max},
    {"ReduceMax", build_reduce_max}, {"Resize", build_resize},
    {"Upsample", build_resize},      {NULL, NULL},
};

const oq_operator oq_picture_operators[] = {
    {"AveragePool", "QLinearAveragePool", 1, 3, -1, emit_average_pool},
    {NULL, NULL, 0, 0, 0, NULL},
};
