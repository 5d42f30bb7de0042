/** Layers with weights: convolutions and fully connected layers. */
#include "export/onnx/write.h"

#include <stdio.h>
#include <string.h>

enum { X, WEIGHTS, BIAS };

/** The weights of a layer in ONNX's order, with what turns them into real numbers. */
typedef struct weights {
    const char *codes, *scale, *zero_point;
    int axis; /* that the scales go along; -1: one scale */
} weights;

/** The scale of output channel i. */
static float scale_at(const onnx_writer *w, const onnx_tensor *t, int i)
{
    float scale = t->scale;
    if (t->of->channel_scales >= 0)
        memcpy(&scale,
               (const uint8_t *)qi_tensor_at(w->from, t->of->channel_scales)->data +
                   (size_t)i * sizeof scale,
               sizeof scale);
    return scale;
}

/** Four bits have a type of their own, which QLinearConv does not take. */
static onnx_type weight_type(const onnx_writer *w, const qi_tensor *t)
{
    bool const halves = w->m.opset >= 21 && !w->operators && t->bits <= 4;
    return t->type == QI_S8 ? (halves ? ONNX_S4 : ONNX_S8) : halves ? ONNX_U4 : ONNX_U8;
}

static weights write_weights(onnx_writer *w, const qi_node *node, const void *values, int rank,
                             const int64_t *dims, int channel_axis)
{
    onnx_tensor *t = onnx_in(w, node, WEIGHTS);
    onnx_type const type = weight_type(w, t->of);
    bool const many = t->of->channel_scales >= 0;
    int const n = many ? (int)dims[channel_axis] : 1;
    float *scales = onnx_take(&w->m, (size_t)n, sizeof *scales);
    uint8_t *zeros = onnx_take(&w->m, (size_t)n, 1);
    weights made = {"", "", "", many ? channel_axis : -1};
    if (!values || !scales || !zeros)
        return made;
    for (int i = 0; i < n; i++) {
        scales[i] = scale_at(w, t, i);
        zeros[i] = (uint8_t)t->of->zero_point;
    }
    int64_t const count = n;
    made.codes = onnx_constant(&w->m, t->of->name, type, rank, dims, values);
    made.scale = onnx_constant(&w->m, "scale", ONNX_FLOAT, many, &count, scales);
    made.zero_point = onnx_constant(&w->m, "zero_point", type, many, &count, zeros);
    return made;
}

static const char *dequantized(onnx_writer *w, const char *wanted, const char *codes,
                               const char *scale, const char *zero_point, int axis)
{
    const char *const inputs[] = {codes, scale, zero_point, NULL};
    onnx_node *node = onnx_add(&w->m, "DequantizeLinear", inputs);
    if (axis >= 0)
        onnx_attr_int(&w->m, node, "axis", axis);
    return onnx_output(&w->m, node, onnx_name(&w->m, wanted));
}

/** The bias as codes. 64 bits become 32, which ONNX has. */
static qat_status write_bias(onnx_writer *w, const qi_node *node, const char **name)
{
    const onnx_tensor *b = onnx_in(w, node, BIAS);
    size_t const n = (size_t)b->of->dims[0];
    int32_t *codes = onnx_take(&w->m, n, sizeof *codes);
    for (size_t i = 0; codes && i < n; i++) {
        int64_t const value = qi_value_at(b->of->type, b->of->data, i);
        if (value < INT32_MIN || value > INT32_MAX)
            return onnx_refuse(w, node, "its bias needs more than 32 bits");
        codes[i] = (int32_t)value;
    }
    *name = codes ? onnx_vector(&w->m, b->of->name, ONNX_S32, (int64_t)n, codes) : "";
    return QAT_OK;
}

/** The bias as real numbers: its scale is that of x times that of the weights. */
static const char *real_bias(onnx_writer *w, const qi_node *node, const char *codes, bool many)
{
    const onnx_tensor *x = onnx_in(w, node, X), *t = onnx_in(w, node, WEIGHTS);
    int64_t const n = many ? onnx_in(w, node, BIAS)->of->dims[0] : 1;
    float *scales = onnx_take(&w->m, (size_t)n, sizeof *scales);
    for (int i = 0; scales && i < n; i++)
        scales[i] = x->scale * scale_at(w, t, i);
    const char *scale = scales ? onnx_constant(&w->m, "scale", ONNX_FLOAT, many, &n, scales) : "";
    return dequantized(w, onnx_in(w, node, BIAS)->of->name, codes, scale, NULL, many ? 0 : -1);
}

/* ------------------------------------------------------------------ convolutions */

static onnx_window window_of(const onnx_writer *w, const qi_node *node)
{
    const qi_tensor *k = onnx_in(w, node, WEIGHTS)->of;
    int32_t const down = onnx_param(node, "dilation_h"), right = onnx_param(node, "dilation_w");
    return (onnx_window){.kernel = {k->dims[1], k->dims[2]},
                         .strides = {onnx_param(node, "stride_h"), onnx_param(node, "stride_w")},
                         .dilations = {down ? down : 1, right ? right : 1},
                         .pads = {onnx_param(node, "pad_top"), onnx_param(node, "pad_left")}};
}

/**
 * The operator: of real numbers, or, in the other form, `qlinear` of codes (NULL: there is none).
 * com.microsoft's has its bias before the output's scale.
 * @param codes  of x, as the operator wants them
 */
static qat_status write_product(onnx_writer *w, const qi_node *node, const weights *k,
                                const char *codes, const char *op, const char *qlinear,
                                bool microsoft, onnx_node **made)
{
    const char *bias = "";
    onnx_tensor *x = onnx_in(w, node, X), *y = onnx_out(w, node);
    qat_status const st = write_bias(w, node, &bias);
    if (st)
        return st;
    if (!w->operators || !qlinear) {
        const char *const inputs[] = {onnx_dequantized(w, x, codes, onnx_name(&w->m, x->of->name)),
                                      dequantized(w, onnx_in(w, node, WEIGHTS)->of->name, k->codes,
                                                  k->scale, k->zero_point, k->axis),
                                      real_bias(w, node, bias, k->axis >= 0), NULL};
        *made = onnx_add(&w->m, op, inputs);
        return QAT_OK;
    }
    const char *const inputs[] = {
        codes, onnx_scale(w, x), onnx_zero_point(w, x), k->codes, k->scale, k->zero_point, NULL};
    *made = onnx_add(&w->m, qlinear, inputs);
    if (microsoft) {
        onnx_microsoft(&w->m, *made);
        onnx_input(&w->m, *made, bias);
    }
    onnx_input(&w->m, *made, onnx_scale(w, y));
    onnx_input(&w->m, *made, onnx_zero_point(w, y));
    if (!microsoft)
        onnx_input(&w->m, *made, bias);
    return QAT_OK;
}

static const char *planes(onnx_writer *w, const qi_node *node)
{
    return onnx_as(&w->m, &onnx_in(w, node, X)->value, ONNX_PLANES);
}

static void finish(onnx_writer *w, const qi_node *node, onnx_node *made, bool coded)
{
    const char *name = onnx_output(&w->m, made, onnx_name(&w->m, onnx_out(w, node)->of->name));
    (coded ? onnx_coded : onnx_quantized)(w, node, ONNX_PLANES, name);
}

static qat_status write_conv(onnx_writer *w, const qi_node *node, bool depthwise)
{
    const onnx_value *k = &onnx_in(w, node, WEIGHTS)->value, *x = &onnx_in(w, node, X)->value;
    const onnx_value *y = &onnx_out(w, node)->value;
    const int *perm = depthwise ? onnx_last_first : onnx_to_planes;
    int64_t dims[ONNX_RANK];
    onnx_window window = window_of(w, node);
    onnx_node *made = NULL;
    for (int i = 0; i < 2; i++) {
        window.pads[2 + i] =
            onnx_pad_behind(x->dims[1 + i], y->dims[1 + i], window.kernel[i], window.strides[i],
                            window.dilations[i], window.pads[i]);
        if (window.pads[2 + i] < 0)
            return onnx_refuse(w, node, "it leaves more than a stride of its input unread");
    }
    for (int i = 0; i < ONNX_RANK; i++)
        dims[i] = k->dims[perm[i]];
    weights const made_of =
        write_weights(w, node, onnx_permuted(&w->m, k->data, 1, k->dims, perm), 4, dims, 0);
    qat_status const st =
        write_product(w, node, &made_of, planes(w, node), "Conv", "QLinearConv", false, &made);
    onnx_attr_window(&w->m, made, &window, true);
    onnx_attr_int(&w->m, made, "group", depthwise ? x->dims[3] : onnx_param(node, "groups"));
    finish(w, node, made, w->operators);
    return st;
}

static qat_status conv2d(onnx_writer *w, const qi_node *node)
{
    return write_conv(w, node, false);
}

static qat_status depthwise_conv2d(onnx_writer *w, const qi_node *node)
{
    return write_conv(w, node, true);
}

static qat_status transpose_conv2d(onnx_writer *w, const qi_node *node)
{
    const onnx_value *k = &onnx_in(w, node, WEIGHTS)->value, *x = &onnx_in(w, node, X)->value;
    const onnx_value *y = &onnx_out(w, node)->value;
    int64_t const dims[] = {k->dims[3], k->dims[0], k->dims[1], k->dims[2]};
    onnx_window window = window_of(w, node);
    int64_t more[2] = {0};
    onnx_node *made = NULL;
    for (int i = 0; i < 2; i++) {
        int64_t const behind = (x->dims[1 + i] - 1) * window.strides[i] + window.kernel[i] -
                               window.pads[i] - y->dims[1 + i];
        window.pads[2 + i] = behind > 0 ? behind : 0;
        more[i] = behind < 0 ? -behind : 0;
        if (more[i] >= window.strides[i])
            return onnx_refuse(w, node, "its output is more than a stride larger than its input");
    }
    weights const made_of = write_weights(
        w, node, onnx_permuted(&w->m, k->data, 1, k->dims, onnx_last_first), 4, dims, 1);
    qat_status const st =
        write_product(w, node, &made_of, planes(w, node), "ConvTranspose", NULL, false, &made);
    onnx_attr_window(&w->m, made, &window, false);
    onnx_attr_ints(&w->m, made, "output_padding", 2, more);
    finish(w, node, made, false);
    return st;
}

/* ------------------------------------------------------------------ fully connected */

/**
 * x as a matrix [rows, I], and its order: from planes, and from what was flattened from planes, the
 * weights' columns take theirs.
 */
static const char *write_rows(onnx_writer *w, const qi_node *node, onnx_value *rows,
                              onnx_form *order)
{
    onnx_tensor *x = onnx_in(w, node, X);
    int64_t const inputs = onnx_in(w, node, WEIGHTS)->of->dims[1];
    int64_t const all = (int64_t)(x->of->bytes / qi_type_bytes(x->of->type));
    onnx_form from = onnx_form_of(&x->value);
    *rows = x->value;
    *order = from;
    if (x->value.rank == 2 && x->value.dims[1] == inputs)
        return onnx_as(&w->m, &x->value, from);
    *rows = (onnx_value){.rank = 2, .dims = {all / inputs, inputs}};
    *order = ONNX_PLAIN;
    if (!onnx_is_flattened(&x->value, rows, order))
        from = ONNX_PLAIN;
    return onnx_reshape(&w->m, x->of->name, onnx_as(&w->m, &x->value, from), 2, rows->dims);
}

static qat_status fully_connected(onnx_writer *w, const qi_node *node)
{
    const onnx_value *y = &onnx_out(w, node)->value, *k = &onnx_in(w, node, WEIGHTS)->value;
    onnx_value rows;
    onnx_form order;
    onnx_node *made = NULL;
    const char *codes = write_rows(w, node, &rows, &order);
    const void *columns =
        order == ONNX_FLAT ? onnx_columns(&w->m, &rows, k->data, 1, k->dims[0]) : k->data;
    weights const made_of = write_weights(w, node, columns, 2, k->dims, 0);
    qat_status const st = write_product(w, node, &made_of, codes, "Gemm", "QGemm", true, &made);
    if (st)
        return st;
    onnx_attr_int(&w->m, made, "transB", 1);
    const char *name = onnx_output(&w->m, made, onnx_name(&w->m, y->name));
    if (y->rank != 2)
        name = onnx_reshape(&w->m, y->name, name, y->rank, y->dims);
    (w->operators ? onnx_coded : onnx_quantized)(w, node, ONNX_PLAIN, name);
    return QAT_OK;
}

const onnx_op onnx_layers[] = {{"conv2d", conv2d},
                               {"depthwise_conv2d", depthwise_conv2d},
                               {"transpose_conv2d", transpose_conv2d},
                               {"fully_connected", fully_connected},
                               {NULL, NULL}};
