/** Conv, Gemm and MatMul with constant weights: sums of products. */
#include "convert/onnx/import.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ constants */

/** Where weight i of the engine's order lies in the file's. */
typedef size_t oq_order_fn(const qat_foreign_tensor *w, size_t i);

/** [O, KH, KW, C] in [O, C, KH, KW]. */
static size_t conv_place(const qat_foreign_tensor *w, size_t i)
{
    size_t const depth = (size_t)w->dims[1];
    size_t const taps = w->count / depth / (size_t)w->dims[0];
    return (i / (taps * depth) * depth + i % depth) * taps + i / depth % taps;
}

/** [1, KH, KW, O] in [O, 1, KH, KW]. */
static size_t depthwise_place(const qat_foreign_tensor *w, size_t i)
{
    size_t const filters = (size_t)w->dims[0];
    return i % filters * (w->count / filters) + i / filters;
}

/** [O, I] in [I, O]. */
static size_t transposed_place(const qat_foreign_tensor *w, size_t i)
{
    size_t const depth = (size_t)w->dims[0], outputs = (size_t)w->dims[1];
    return i % depth * outputs + i / depth;
}

static size_t same_place(const qat_foreign_tensor *w, size_t i)
{
    return i;
}

/**
 * Append weights of these dimensions. Codes with several scales become int8 with zero point 0, as
 * the engine has them.
 * @param axis  of the file's dimensions: that of the outputs
 */
static qat_status append_weights(oq_importer *q, const oq_operand *w, int axis, int rank,
                                 const int32_t *dims, oq_order_fn *place, int *tensor)
{
    const oq_constant *c = &w->v.constant;
    bool const each = c->n_scales > 1, is_signed = c->codes->stored == OQ_INT8;
    int32_t const shift = each ? c->zero_point : 0;
    qat_qtensor t = {.type = is_signed || each ? QI_S8 : QI_U8,
                     .bits = 8,
                     .rank = rank,
                     .scale = c->scales[0],
                     .zero_point = c->zero_point - shift,
                     .channel_scales = each ? (float *)c->scales : NULL,
                     .n_channels = each ? (int)c->n_scales : 0,
                     .source_index = -1};
    if (!is_signed && c->codes->stored != OQ_UINT8)
        return fv_refuse(&q->b,
                         "its weights are of type %d of the file; uint8 and int8 are "
                         "supported",
                         c->codes->stored);
    if (each && (c->axis != axis || c->n_scales != (size_t)c->codes->dims[axis]))
        return fv_refuse(&q->b,
                         "its weights have %zu scales along dimension %d; one for each of "
                         "dimension %d is supported",
                         c->n_scales, c->axis, axis);
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    qat_part_name(t.name, q->b.name, "weights");
    uint8_t *codes = fv_take(&q->b, &q->b.arena, c->codes->count, 1);
    t.data = codes;
    for (size_t i = 0; codes && i < c->codes->count; i++) {
        int64_t const code = c->codes->ints[place(c->codes, i)] - shift;
        if (code < (t.type == QI_S8 ? INT8_MIN : 0) || code > (t.type == QI_S8 ? INT8_MAX : 255))
            return fv_refuse(&q->b,
                             "its weights have several scales and the zero point %d: a "
                             "weight of code %lld is not within 128 of it",
                             (int)shift, (long long)(code + shift));
        codes[i] = (uint8_t)code;
    }
    qat_status const st = codes ? oq_append_constant(q, &t) : fv_graph_error(&q->b);
    *tensor = t.source_index;
    if (!st)
        q->graph->tensors[*tensor].source_index = -1;
    return st;
}

/** The bias's code i on the products' scale. Codes on another scale are brought to it. */
static double bias_code(const oq_operand *b, size_t i, double scale)
{
    const qat_foreign_tensor *t = b->v.constant.codes ? b->v.constant.codes : b->shape.constant;
    size_t const at = t->count == 1 ? 0 : i;
    if (t->type == QAT_FOREIGN_FLOAT)
        return rint((double)t->floats[at] / scale);
    if (!b->v.constant.codes)
        return (double)t->ints[at];
    size_t const s = b->v.constant.n_scales > 1 ? at : 0;
    double const factor = (double)b->v.constant.scales[s] / scale;
    double const code = (double)(t->ints[at] - b->v.constant.zero_point);
    return fabs(factor - 1) < 1e-5 ? code : rint(code * factor);
}

/** int32 on the scale S_x S_w. *tensor -1: there is no bias. */
static qat_status append_bias(oq_importer *q, const oq_operand *b, int x, int w, int channels,
                              int *tensor)
{
    const qat_foreign_tensor *t = b->v.constant.codes ? b->v.constant.codes : b->shape.constant;
    *tensor = -1;
    if (!oq_is_given(b))
        return QAT_OK;
    if (!t || t->type == QAT_FOREIGN_OTHER || (t->count != (size_t)channels && t->count != 1))
        return fv_refuse(&q->b, "its bias is not a constant of %d values", channels);
    if (b->v.constant.codes && b->v.constant.n_scales > 1 &&
        b->v.constant.n_scales != (size_t)channels)
        return fv_refuse(&q->b, "its bias has %zu scales for %d outputs", b->v.constant.n_scales,
                         channels);
    int32_t *codes = fv_take(&q->b, &q->b.arena, (size_t)channels, sizeof *codes);
    if (!codes)
        return fv_graph_error(&q->b);
    const qat_qtensor *tensors = q->graph->tensors;
    for (int i = 0; i < channels; i++) {
        const qat_qtensor *weights = &tensors[w];
        float const s = weights->channel_scales ? weights->channel_scales[i] : weights->scale;
        double const code = bias_code(b, (size_t)i, (double)tensors[x].scale * (double)s);
        if (!(fabs(code) <= INT32_MAX))
            return fv_refuse(&q->b, "its bias of channel %d is %g quanta", i, code);
        codes[i] = (int32_t)code;
    }
    char name[QAT_NAME_MAX];
    qat_part_name(name, q->b.name, "bias");
    *tensor = qat_qgraph_constant_s32(q->graph, name, channels, 1, codes, q->err);
    return qat_append_status(*tensor, q->err);
}

/** The data and the weights of a layer are what they must be. */
static qat_status check_layer(oq_importer *q, oq_operand *in)
{
    qat_status const st = oq_codes(q, &in[0], "input");
    if (st)
        return st;
    if (!in[1].v.constant.codes)
        return fv_refuse(&q->b, "its weights are not constant codes");
    return QAT_OK;
}

/* ------------------------------------------------------------------ Conv */

struct conv {
    int64_t filters, depth, kernel[2], groups, channels;
    bool is_depthwise;
};

static qat_status conv_of(oq_importer *q, const oq_operand *in, struct conv *c)
{
    const qat_foreign_tensor *w = in[1].v.constant.codes;
    int const rank = in[0].shape.rank;
    if (w->rank != rank || rank < 3 || rank > 4)
        return fv_refuse(&q->b, "an input of %d dimensions with weights of %d: 3 or 4 are possible",
                         rank, w->rank);
    *c = (struct conv){.filters = w->dims[0],
                       .depth = w->dims[1],
                       .kernel = {rank == 4 ? w->dims[2] : 1, w->dims[rank - 1]},
                       .channels = in[0].shape.dims[1],
                       .groups = fv_attr_int(&q->b, "group", 1)};
    if (c->groups < 1 || c->filters < 1 || c->filters > INT32_MAX || c->groups > c->channels ||
        c->depth < 1 || c->depth * c->groups != c->channels || c->filters % c->groups)
        return fv_refuse(&q->b,
                         "weights of %lld x %lld channels in %lld groups for an input of %lld",
                         (long long)c->filters, (long long)c->depth, (long long)c->groups,
                         (long long)c->channels);
    c->is_depthwise = c->groups == c->channels && c->groups > 1;
    return QAT_OK;
}

/** The number of windows in direction i. */
static int64_t windows(const fv_window *w, int i, int64_t in)
{
    int64_t const reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t const room = in + w->before[i] + w->after[i] - reach;
    return room < 0 ? 0 : room / w->stride[i] + 1;
}

qat_status oq_window_output(oq_importer *q, const oq_operand *x, const fv_window *w,
                            int64_t channels, const oq_target *target, int *output, int *picture)
{
    int const rank = x->shape.rank;
    int64_t dims[QAT_FOREIGN_RANK] = {x->shape.dims[0], channels};
    int32_t four[QI_MAX_RANK];
    for (int i = 4 - rank; i < 2; i++)
        dims[rank - 2 + i] = windows(w, i, x->shape.dims[rank - 2 + i]);
    qat_status st = oq_append_output(q, target, true, rank, dims, output);
    *picture = *output;
    if (st || rank == 4)
        return st;
    memcpy(four, (int32_t[]){(int32_t)dims[0], 1, (int32_t)dims[2], (int32_t)dims[1]}, sizeof four);
    return oq_append_like(q, *output, "windows", 4, four, picture);
}

qat_status oq_window_done(oq_importer *q, int output, int picture)
{
    return output == picture ? QAT_OK : oq_move(q, "reshape", picture, output, 0, NULL);
}

qat_window oq_window(const fv_window *w)
{
    return (qat_window){.kernel_h = (int)w->kernel[0],
                        .kernel_w = (int)w->kernel[1],
                        .stride_h = (int)w->stride[0],
                        .stride_w = (int)w->stride[1],
                        .dilation_h = (int)w->dilation[0],
                        .dilation_w = (int)w->dilation[1],
                        .explicit_pads = true,
                        .pad_top = (int)w->before[0],
                        .pad_left = (int)w->before[1]};
}

static qat_status emit_conv(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    struct conv c;
    fv_window w;
    int inputs[3], output, picture;
    qat_status st = check_layer(q, in);
    if (!st)
        st = conv_of(q, in, &c);
    if (!st)
        st = fv_window_of(&q->b, &in[0].shape, c.kernel, &w);
    if (!st)
        st = oq_picture(q, &in[0], &inputs[QAT_IN_X]);
    if (st)
        return st;
    int32_t const kh = (int32_t)c.kernel[0], kw = (int32_t)c.kernel[1];
    int32_t const o = (int32_t)c.filters, depth = (int32_t)c.depth;
    int32_t const dims[] = {c.is_depthwise ? 1 : o, kh, kw, c.is_depthwise ? o : depth};
    st = append_weights(q, &in[1], 0, 4, dims, c.is_depthwise ? depthwise_place : conv_place,
                        &inputs[QAT_IN_WEIGHTS]);
    if (!st)
        st = append_bias(q, &in[2], inputs[QAT_IN_X], inputs[QAT_IN_WEIGHTS], o,
                         &inputs[QAT_IN_BIAS]);
    if (!st)
        st = oq_window_output(q, &in[0], &w, o, target, &output, &picture);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 3, inputs, picture, target);
    qat_window const window = oq_window(&w);
    st = (c.is_depthwise ? qat_emit_depthwise_conv2d : qat_emit_conv2d)(&e, &window, q->err);
    return st ? st : oq_window_done(q, output, picture);
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
    if (is_padded &&
        (!fv_attr_int(&q->b, "count_include_pad", 0) || fv_attr_int(&q->b, "ceil_mode", 0)))
        return fv_refuse(&q->b, "padding that its averages do not count is not supported");
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

/* ------------------------------------------------------------------ Gemm, MatMul */

/** x [.., I] times weights [I, O], or transposed [O, I]. */
static qat_status emit_product(oq_importer *q, oq_operand *in, bool transposed,
                               const oq_operand *bias, const oq_target *target)
{
    const qat_foreign_tensor *w = in[1].v.constant.codes;
    const fv *x = &in[0].shape;
    int inputs[3], output;
    if (w->rank != 2 || x->rank < 1)
        return fv_refuse(&q->b, "weights of %d dimensions; 2 are supported", w->rank);
    int64_t const depth = w->dims[transposed], outputs = w->dims[!transposed];
    if (depth < 1 || outputs < 1 || depth > INT32_MAX || outputs > INT32_MAX ||
        x->dims[x->rank - 1] != depth)
        return fv_refuse(&q->b, "weights of %lld inputs for rows of %lld", (long long)depth,
                         (long long)x->dims[x->rank - 1]);
    int32_t const dims[] = {(int32_t)outputs, (int32_t)depth};
    qat_status st = oq_order(q, &in[0], false);
    inputs[QAT_IN_X] = in[0].v.tensor;
    if (!st)
        st = append_weights(q, &in[1], !transposed, 2, dims,
                            transposed ? same_place : transposed_place, &inputs[QAT_IN_WEIGHTS]);
    if (!st)
        st = append_bias(q, bias, inputs[QAT_IN_X], inputs[QAT_IN_WEIGHTS], dims[0],
                         &inputs[QAT_IN_BIAS]);
    int64_t to[QAT_FOREIGN_RANK];
    memcpy(to, x->dims, sizeof to);
    to[x->rank - 1] = outputs;
    if (!st)
        st = oq_append_output(q, target, false, x->rank, to, &output);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 3, inputs, output, target);
    return qat_emit_fully_connected(&e, q->err);
}

static qat_status emit_gemm(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    qat_status const st = check_layer(q, in);
    if (st)
        return st;
    if (fv_attr_real(&q->b, "alpha", 1) != 1 ||
        (oq_is_given(&in[2]) && fv_attr_real(&q->b, "beta", 1) != 1) ||
        fv_attr_int(&q->b, "transA", 0) || in[0].shape.rank != 2)
        return fv_refuse(&q->b, "attributes alpha, beta and transA: only 1, 1 and 0 are supported");
    return emit_product(q, in, fv_attr_int(&q->b, "transB", 0) != 0, &in[2], target);
}

static qat_status emit_mat_mul(oq_importer *q, oq_operand *in, int n, const oq_target *target)
{
    oq_operand const none = {.v = {.tensor = -1}};
    qat_status const st = check_layer(q, in);
    return st ? st : emit_product(q, in, false, &none, target);
}

const oq_operator oq_layer_operators[] = {
    {"Conv", "QLinearConv", 2, 6, 8, emit_conv},
    {"Gemm", "QGemm", 2, 7, 6, emit_gemm},
    {"MatMul", "QLinearMatMul", 2, 6, -1, emit_mat_mul},
    {"AveragePool", "QLinearAveragePool", 1, 3, -1, emit_average_pool},
    {NULL, NULL, 0, 0, 0, NULL},
};
