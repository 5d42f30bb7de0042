/** Conv, ConvTranspose, Gemm and MatMul with constant weights: sums of products. */
#include "convert/onnx/import.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ constants */

/** Where weight i of the engine's order lies in the file's. */
typedef size_t oq_order_fn(const qat_foreign_tensor *w, int groups, size_t i);

/** [O, KH, KW, C] in [O, C, KH, KW]. */
static size_t conv_place(const qat_foreign_tensor *w, int groups, size_t i)
{
    size_t const depth = (size_t)w->dims[1];
    size_t const taps = w->count / depth / (size_t)w->dims[0];
    return (i / (taps * depth) * depth + i % depth) * taps + i / depth % taps;
}

/** [1, KH, KW, O] in [O, 1, KH, KW]. */
static size_t depthwise_place(const qat_foreign_tensor *w, int groups, size_t i)
{
    size_t const filters = (size_t)w->dims[0];
    return i % filters * (w->count / filters) + i / filters;
}

/** [O, I] in [I, O]. */
static size_t transposed_place(const qat_foreign_tensor *w, int groups, size_t i)
{
    size_t const depth = (size_t)w->dims[0], outputs = (size_t)w->dims[1];
    return i % depth * outputs + i / depth;
}

static size_t same_place(const qat_foreign_tensor *w, int groups, size_t i)
{
    return i;
}

static int32_t zero_point_of(const oq_constant *c, size_t i)
{
    return c->zero_points ? (int32_t)c->zero_points[i] : c->zero_point;
}

/** Scales of the weights for each output: those of the file, times what the outputs are multiplied
 *  by. The sign of the latter goes into the codes. */
static float *output_scales(oq_importer *q, const oq_constant *c, const oq_affine *affine, int n)
{
    float *scales = fv_take(&q->b, &q->b.arena, (size_t)n, sizeof *scales);
    for (int o = 0; scales && o < n; o++) {
        float const gain = affine ? fabsf(affine->gain[affine->n > 1 ? o : 0]) : 1;
        scales[o] = c->scales[c->n_scales > 1 ? o : 0] * (gain > 0 ? gain : 1);
    }
    return scales;
}

static float sign_of(const oq_affine *affine, size_t o)
{
    float const gain = affine ? affine->gain[affine->n > 1 ? o : 0] : 1;
    return gain > 0 ? 1.0f : gain < 0 ? -1.0f : 0.0f;
}

/** Codes of the weights in the engine's order. */
struct weights {
    const oq_constant *c;
    const oq_affine *affine;
    oq_order_fn *place;
    int groups, outputs;
    size_t inner; /* values of one output, or of one after another */
    bool each; /* a scale for each output: code - zero point, with the sign of what multiplies it */
};

static int64_t weight_of(const struct weights *w, size_t i)
{
    size_t const at = w->place(w->c->codes, w->groups, i), o = at / w->inner % (size_t)w->outputs;
    int64_t const code = w->c->codes->ints[at];
    if (!w->each)
        return code;
    int32_t const zero = zero_point_of(w->c, w->c->n_scales > 1 ? o : 0);
    return (code - zero) * (int64_t)sign_of(w->affine, o);
}

/** Set the type and zero point that hold all weights: int8 and 0, if they do. */
static bool find_type(const struct weights *w, qat_qtensor *t)
{
    int64_t lo = 0, hi = 0;
    for (size_t i = 0; i < w->c->codes->count; i++) {
        int64_t const code = weight_of(w, i);
        lo = code < lo ? code : lo;
        hi = code > hi ? code : hi;
    }
    if (w->each) {
        bool const is_signed = lo >= INT8_MIN && hi <= INT8_MAX;
        t->type = is_signed ? QI_S8 : QI_U8;
        t->zero_point = is_signed ? 0 : (int32_t)-lo;
        return is_signed || hi - lo <= UINT8_MAX;
    }
    t->zero_point = w->c->zero_point;
    return t->type == QI_S8 ? lo >= INT8_MIN && hi <= INT8_MAX : lo >= 0 && hi <= UINT8_MAX;
}

static bool is_code_type(int stored, bool *is_signed)
{
    *is_signed = stored == OQ_INT8 || stored == OQ_INT4;
    return *is_signed || stored == OQ_UINT8 || stored == OQ_UINT4;
}

/**
 * Append weights of these dimensions.
 * @param axis  of the file's dimensions: that of the outputs
 */
static qat_status append_weights(oq_importer *q, const oq_operand *x, int axis, int rank,
                                 const int32_t *dims, oq_order_fn *place, int groups,
                                 const oq_affine *affine, int *tensor)
{
    const oq_constant *c = &x->v.constant;
    const qat_foreign_tensor *from = c->codes;
    struct weights w = {.c = c,
                        .affine = affine,
                        .place = place,
                        .groups = groups,
                        .outputs = (int)from->dims[axis],
                        .inner = 1,
                        .each = c->n_scales > 1 || affine};
    bool is_signed;
    if (!is_code_type(from->stored, &is_signed))
        return fv_refuse(&q->b, "its weights are of type %s; of 8 and 4 bits are supported",
                         oq_type_name(from->stored));
    if (c->n_scales > 1 && (c->axis != axis || c->n_scales != (size_t)w.outputs))
        return fv_refuse(&q->b,
                         "its weights have %zu scales along dimension %d; one for each of "
                         "dimension %d is supported",
                         c->n_scales, c->axis, axis);
    if (affine && affine->n > 1 && affine->n != w.outputs)
        return fv_refuse(&q->b, "%d factors behind it for %d outputs", affine->n, w.outputs);
    for (int i = axis + 1; i < from->rank; i++)
        w.inner *= (size_t)from->dims[i];
    qat_qtensor t = {.type = is_signed ? QI_S8 : QI_U8,
                     .bits = 8,
                     .rank = rank,
                     .scale = c->scales[0],
                     .n_channels = w.each ? w.outputs : 0,
                     .source_index = -1};
    if (!find_type(&w, &t))
        return fv_refuse(&q->b, "its weights differ from their zero points by more than 255 codes");
    uint8_t *codes = fv_take(&q->b, &q->b.arena, from->count, 1);
    t.data = codes;
    t.channel_scales = w.each ? output_scales(q, c, affine, w.outputs) : NULL;
    if (!codes || (w.each && !t.channel_scales))
        return fv_graph_error(&q->b);
    if (w.each)
        t.scale = t.channel_scales[0];
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    qat_part_name(t.name, q->b.name, "weights");
    for (size_t i = 0; i < from->count; i++)
        codes[i] = (uint8_t)(weight_of(&w, i) + (w.each ? t.zero_point : 0));
    qat_status const st = oq_append_constant(q, &t);
    *tensor = t.source_index;
    if (!st)
        q->graph->tensors[*tensor].source_index = -1;
    return st;
}

/** The bias's code i on the products' scale. Codes on another scale are brought to it. */
static double bias_code(const oq_operand *b, size_t i, double scale)
{
    const oq_constant *c = &b->v.constant;
    const qat_foreign_tensor *t = c->codes ? c->codes : b->shape.constant;
    size_t const at = t->count == 1 ? 0 : i;
    if (t->type == QAT_FOREIGN_FLOAT)
        return (double)t->floats[at] / scale;
    if (!c->codes)
        return (double)t->ints[at];
    size_t const s = c->n_scales > 1 ? at : 0;
    double const factor = (double)c->scales[s] / scale;
    double const code = (double)(t->ints[at] - zero_point_of(c, s));
    return fabs(factor - 1) < 1e-5 ? code : code * factor;
}

/** Is b, if there is one, a constant with a value for each output? */
static qat_status check_bias(oq_importer *q, const oq_operand *b, int channels)
{
    const oq_constant *c = &b->v.constant;
    const qat_foreign_tensor *t = c->codes ? c->codes : b->shape.constant;
    if (!oq_is_given(b))
        return QAT_OK;
    if (!t || t->type == QAT_FOREIGN_OTHER || (t->count != (size_t)channels && t->count != 1))
        return fv_refuse(&q->b, "its bias is not a constant of %d values", channels);
    if (t->rank > 1 && (size_t)t->dims[t->rank - 1] != t->count)
        return fv_refuse(&q->b, "its bias has a value for each row, not for each output");
    if (c->codes && c->n_scales > 1 && (c->n_scales != (size_t)channels || t->count == 1))
        return fv_refuse(&q->b, "its bias has %zu scales for %d outputs", c->n_scales, channels);
    return QAT_OK;
}

/** int32 on the scale S_x S_w. *tensor -1: there is no bias. */
static qat_status append_bias(oq_importer *q, const oq_operand *b, int x, int w, int channels,
                              const oq_constant *of_weights, const oq_affine *affine, int *tensor)
{
    qat_status const st = check_bias(q, b, channels);
    *tensor = -1;
    if (st || (!oq_is_given(b) && !affine))
        return st;
    int32_t *codes = fv_take(&q->b, &q->b.arena, (size_t)channels, sizeof *codes);
    if (!codes)
        return fv_graph_error(&q->b);
    const qat_qtensor *tensors = q->graph->tensors, *weights = &tensors[w];
    for (int i = 0; i < channels; i++) {
        float const s = weights->channel_scales ? weights->channel_scales[i] : weights->scale;
        float const before = of_weights->scales[of_weights->n_scales > 1 ? i : 0];
        double const scale = (double)tensors[x].scale * (double)s;
        double code = 0;
        if (oq_is_given(b)) /* of codes: on the products' scale before they are multiplied */
            code = bias_code(b, (size_t)i, (double)tensors[x].scale * (double)before) *
                   (double)sign_of(affine, (size_t)i);
        if (affine)
            code += (double)affine->offset[affine->n > 1 ? i : 0] / scale;
        code = rint(code);
        if (!(fabs(code) <= INT32_MAX))
            return fv_refuse(&q->b, "its bias of channel %d is %g quanta", i, code);
        codes[i] = (int32_t)code;
    }
    char name[QAT_NAME_MAX];
    qat_part_name(name, q->b.name, "bias");
    *tensor = qat_qgraph_constant_s32(q->graph, name, channels, 1, codes, q->err);
    return qat_append_status(*tensor, q->err);
}

qat_status oq_append_wide(oq_importer *q, int like, const char *part, int *tensor)
{
    qat_qtensor t = q->graph->tensors[like];
    t.type = QI_S16;
    t.bits = 16;
    t.zero_point = 0;
    t.data = NULL;
    t.source_index = -1;
    t.border = QI_BORDER_NONE;
    t.channel_scales = NULL;
    t.n_channels = 0;
    qat_part_name(t.name, q->b.name, part);
    *tensor = qat_qgraph_tensor(q->graph, &t, q->err);
    return qat_append_status(*tensor, q->err);
}

qat_status oq_widen(oq_importer *q, int *x)
{
    int const from = *x;
    qat_status const st = oq_append_wide(q, from, "wide", x);
    if (st)
        return st;
    qat_emit e = oq_emit(q, 1, &from, *x, NULL);
    e.profile = QAT_PROFILE_PAPER;
    return qat_emit_requantize(&e, q->err);
}

/**
 * A layer whose result the file does not quantize gives 16-bit codes. Without a scale, they reach
 * to the largest sum that it can have. Bring the inputs to the types for it.
 */
static qat_status widen(oq_importer *q, int inputs[3], bool depthwise, oq_target *target)
{
    if (target->type != QI_S16)
        return QAT_OK;
    const qat_qtensor *x = &q->graph->tensors[inputs[QAT_IN_X]];
    const qat_qtensor *w = &q->graph->tensors[inputs[QAT_IN_WEIGHTS]];
    const int32_t *short_bias =
        inputs[QAT_IN_BIAS] < 0 ? NULL : q->graph->tensors[inputs[QAT_IN_BIAS]].data;
    int const channels = w->dims[depthwise ? w->rank - 1 : 0];
    int64_t *bounds = fv_take(&q->b, &q->b.arena, (size_t)channels, sizeof *bounds);
    int64_t *bias = fv_take(&q->b, &q->b.arena, (size_t)channels, sizeof *bias);
    double largest = 0;
    if (!bounds || !bias)
        return fv_graph_error(&q->b);
    qat_accumulator_bounds(x, w, depthwise, bounds);
    for (int i = 0; i < channels; i++) {
        bias[i] = short_bias ? short_bias[i] : 0;
        double const s = (double)(w->channel_scales ? w->channel_scales[i] : w->scale);
        double const real =
            (double)(bounds[i] + (bias[i] < 0 ? -bias[i] : bias[i])) * s * (double)x->scale;
        largest = real > largest ? real : largest;
    }
    if (!(target->scale > 0))
        target->scale = (float)(largest / INT16_MAX);
    if (!(target->scale > 0 && isfinite(target->scale)))
        target->scale = 1;
    qat_qtensor t = {.type = QI_S64,
                     .bits = 64,
                     .rank = 1,
                     .dims = {channels, 1, 1, 1},
                     .scale = 1,
                     .data = (uint8_t *)bias,
                     .source_index = -1};
    qat_part_name(t.name, q->b.name, "wide_bias");
    qat_status const st = oq_append_constant(q, &t);
    inputs[QAT_IN_BIAS] = t.source_index;
    if (!st)
        q->graph->tensors[inputs[QAT_IN_BIAS]].source_index = -1;
    return st ? st : oq_widen(q, &inputs[QAT_IN_X]);
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

qat_status oq_picture_output(oq_importer *q, const oq_operand *x, const int64_t out[2],
                             int64_t channels, const oq_target *target, int *output, int *picture)
{
    int const rank = x->shape.rank;
    int64_t dims[QAT_FOREIGN_RANK] = {x->shape.dims[0], channels};
    int32_t four[QI_MAX_RANK];
    for (int i = 4 - rank; i < 2; i++)
        dims[rank - 2 + i] = out[i];
    qat_status st = oq_append_output(q, target, 1, rank, dims, output);
    *picture = *output;
    if (st || rank == 4)
        return st;
    memcpy(four, (int32_t[]){(int32_t)dims[0], 1, (int32_t)dims[2], (int32_t)dims[1]}, sizeof four);
    return oq_append_like(q, *output, "windows", 4, four, picture);
}

qat_status oq_window_output(oq_importer *q, const oq_operand *x, const fv_window *w,
                            int64_t channels, const oq_target *target, int *output, int *picture)
{
    int const rank = x->shape.rank;
    int64_t out[] = {1, 1};
    for (int i = 4 - rank; i < 2; i++)
        out[i] = windows(w, i, x->shape.dims[rank - 2 + i]);
    return oq_picture_output(q, x, out, channels, target, output, picture);
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

static qat_status emit_conv(oq_importer *q, oq_operand *in, int n, const oq_target *wanted)
{
    oq_target own = *wanted;
    const oq_target *target = &own;
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
                        (int)c.groups, target->affine, &inputs[QAT_IN_WEIGHTS]);
    if (!st)
        st = append_bias(q, &in[2], inputs[QAT_IN_X], inputs[QAT_IN_WEIGHTS], o, &in[1].v.constant,
                         target->affine, &inputs[QAT_IN_BIAS]);
    if (!st)
        st = widen(q, inputs, c.is_depthwise, &own);
    if (!st)
        st = oq_window_output(q, &in[0], &w, o, target, &output, &picture);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 3, inputs, picture, target);
    qat_window const window = oq_window(&w);
    st = (c.is_depthwise ? qat_emit_depthwise_conv2d : qat_emit_conv2d)(&e, &window, q->err);
    return st ? st : oq_window_done(q, output, picture);
}

/* ------------------------------------------------------------------ ConvTranspose */

/** [O, KH, KW, C] in [C, O, KH, KW]. */
static size_t transposed_conv_place(const qat_foreign_tensor *w, int groups, size_t i)
{
    size_t const channels = (size_t)w->dims[0], filters = (size_t)w->dims[1];
    size_t const taps = w->count / channels / filters;
    size_t const c = i % channels, t = i / channels % taps, o = i / channels / taps;
    return (c * filters + o) * taps + t;
}

/** [O, KH, KW, C / groups] in [C, O / groups, KH, KW], the taps from the last to the first. */
static size_t turned_place(const qat_foreign_tensor *w, int groups, size_t i)
{
    size_t const depth = (size_t)w->dims[0] / (size_t)groups, filters = (size_t)w->dims[1];
    size_t const taps = w->count / (size_t)w->dims[0] / filters;
    size_t const c = i % depth, t = i / depth % taps, o = i / depth / taps;
    return ((o / filters * depth + c) * filters + o % filters) * taps + taps - 1 - t;
}

/** Codes of 0 behind each pixel of [N, H, W, C]: [N, H sh, W sw, C]. */
static qat_status spread(oq_importer *q, int *picture, const int64_t stride[2])
{
    qat_qtensor const x = q->graph->tensors[*picture];
    int32_t const h = x.dims[1], w = x.dims[2], c = x.dims[3];
    int32_t const sh = (int32_t)stride[0], sw = (int32_t)stride[1];
    qat_status st = oq_pad_middle(q, picture, h * w, c, sw - 1);
    if (!st)
        st = oq_pad_middle(q, picture, h, w * sw * c, sh - 1);
    int32_t const dims[] = {x.dims[0], h * sh, w * sw, c};
    return st ? st : oq_reshape_to(q, picture, "spread", 4, dims);
}

/** Either a transposed convolution, or, with groups or dilations, a convolution over the pixels
 * with zeros between them. */
static qat_status emit_transposed(oq_importer *q, oq_operand *in, int n, const oq_target *wanted)
{
    oq_target own = *wanted;
    const oq_target *target = &own;
    fv_transposed t;
    int inputs[3], output, picture;
    qat_status st = check_layer(q, in);
    const qat_foreign_tensor *w = in[1].v.constant.codes;
    if (!st)
        st = fv_transposed_of(&q->b, &in[0].shape, w, &t);
    if (!st)
        st = oq_picture(q, &in[0], &inputs[QAT_IN_X]);
    if (st)
        return st;
    const fv_window *v = &t.window;
    bool const simple = t.groups == 1 && v->dilation[0] == 1 && v->dilation[1] == 1;
    if (t.groups > 1 && in[1].v.constant.n_scales > 1)
        return fv_refuse(&q->b, "weights with several scales in several groups");
    int64_t const rows = (int64_t)q->graph->tensors[inputs[QAT_IN_X]].dims[1] * v->stride[0];
    int64_t const columns = (int64_t)q->graph->tensors[inputs[QAT_IN_X]].dims[2] * v->stride[1];
    if (!simple && (rows > INT16_MAX || columns > INT16_MAX))
        return fv_refuse(&q->b, "a picture of %lld x %lld with zeros between its pixels",
                         (long long)rows, (long long)columns);
    if (!simple)
        st = spread(q, &inputs[QAT_IN_X], v->stride);
    int32_t const depth = (int32_t)(w->dims[0] / t.groups);
    int32_t const dims[] = {(int32_t)t.filters, (int32_t)v->kernel[0], (int32_t)v->kernel[1],
                            depth};
    if (!st)
        st = append_weights(q, &in[1], 1, 4, dims, simple ? transposed_conv_place : turned_place,
                            (int)t.groups, target->affine, &inputs[QAT_IN_WEIGHTS]);
    if (!st)
        st = append_bias(q, &in[2], inputs[QAT_IN_X], inputs[QAT_IN_WEIGHTS], dims[0],
                         &in[1].v.constant, target->affine, &inputs[QAT_IN_BIAS]);
    if (!st)
        st = widen(q, inputs, false, &own);
    if (!st)
        st = oq_picture_output(q, &in[0], t.out, t.filters, target, &output, &picture);
    if (st)
        return st;
    qat_window window = oq_window(v);
    if (!simple) {
        window.stride_h = window.stride_w = 1;
        window.pad_top = (int)((v->kernel[0] - 1) * v->dilation[0] - v->before[0]);
        window.pad_left = (int)((v->kernel[1] - 1) * v->dilation[1] - v->before[1]);
    }
    if (window.pad_top < 0 || window.pad_left < 0 || v->before[0] >= v->kernel[0] * v->dilation[0])
        return fv_refuse(&q->b, "it cuts off more than its window has");
    qat_emit const e = oq_emit(q, 3, inputs, picture, target);
    st = (simple ? qat_emit_transpose_conv2d : qat_emit_conv2d)(&e, &window, q->err);
    return st ? st : oq_window_done(q, output, picture);
}

/* ------------------------------------------------------------------ Gemm, MatMul */

/** x [.., I] times weights [I, O], or transposed [O, I]. */
static qat_status emit_product(oq_importer *q, oq_operand *in, bool transposed,
                               const oq_operand *bias, const oq_target *wanted)
{
    oq_target own = *wanted;
    const oq_target *target = &own;
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
    qat_status st = oq_order(q, &in[0], 0);
    inputs[QAT_IN_X] = in[0].v.tensor;
    if (!st)
        st = append_weights(q, &in[1], !transposed, 2, dims,
                            transposed ? same_place : transposed_place, 1, target->affine,
                            &inputs[QAT_IN_WEIGHTS]);
    if (!st)
        st = append_bias(q, bias, inputs[QAT_IN_X], inputs[QAT_IN_WEIGHTS], dims[0],
                         &in[1].v.constant, target->affine, &inputs[QAT_IN_BIAS]);
    if (!st)
        st = widen(q, inputs, false, &own);
    int64_t to[QAT_FOREIGN_RANK];
    memcpy(to, x->dims, sizeof to);
    to[x->rank - 1] = outputs;
    if (!st)
        st = oq_append_output(q, target, 0, x->rank, to, &output);
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
    const qat_foreign_tensor *w = in[1].v.constant.codes;
    if (!w || w->rank != 2)
        return oq_matrix_product(q, in, target);
    qat_status const st = check_layer(q, in);
    return st ? st : emit_product(q, in, false, &none, target);
}

const oq_operator oq_layer_operators[] = {
    {"Conv", "QLinearConv", 2, 6, 8, emit_conv},
    {"Gemm", "QGemm", 2, 7, 6, emit_gemm},
    {"MatMul", "QLinearMatMul", 2, 6, -1, emit_mat_mul},
    {"ConvTranspose", "QLinearConvTranspose", 2, 6, 8, emit_transposed},
    {NULL, NULL, 0, 0, 0, NULL},
};
