/** Layers with weights: convolutions and fully connected layers. */
#include "export/onnx/write.h"
#include "qat/rounding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { X, WEIGHTS, BIAS, MULT };

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

/**
 * How far weights of fewer than 8 bits are shifted left in the forms of float32 multipliers: as far
 * as their type and int32 sums have room. A sum then has so many fractional bits, which keep more
 * of the .qm's bias and of its first rounding. In profile onnx sums have none, as in the .qm.
 */
static int spare_bits(const onnx_writer *w, const qi_node *node)
{
    const qi_tensor *t = onnx_in(w, node, WEIGHTS)->of;
    onnx_type const type = weight_type(w, t);
    bool const is_whole = type == ONNX_S4 || type == ONNX_U4;
    int spare = w->integer || w->even || is_whole ? 0 : 8 - t->bits;
    while (spare > node->fraction &&
           node->max_accumulator > INT32_MAX >> (spare - node->fraction + 1))
        spare--;
    return spare;
}

/** The same codes, shifted. */
static const void *shifted(onnx_writer *w, const void *codes, size_t count, int by)
{
    const uint8_t *from = codes;
    uint8_t *to = by && from ? onnx_take(&w->m, count, 1) : NULL;
    for (size_t i = 0; to && i < count; i++)
        to[i] = (uint8_t)(from[i] << by);
    return to ? to : codes;
}

static weights write_weights(onnx_writer *w, const qi_node *node, const void *values, int rank,
                             const int64_t *dims, int channel_axis)
{
    onnx_tensor *t = onnx_in(w, node, WEIGHTS);
    int const spare = spare_bits(w, node);
    onnx_type const type = weight_type(w, t->of);
    bool const many = t->of->channel_scales >= 0;
    int const n = many ? (int)dims[channel_axis] : 1;
    float *scales = onnx_take(&w->m, (size_t)n, sizeof *scales);
    uint8_t *zeros = onnx_take(&w->m, (size_t)n, 1);
    weights made = {"", "", "", many ? channel_axis : -1};
    if (!values || !scales || !zeros)
        return made;
    if (w->integer) { /* ConvInteger has one zero point in ONNX Runtime */
        made.codes = onnx_constant(&w->m, t->of->name, t->value.type, rank, dims, values);
        made.zero_point = onnx_zero_point(w, t);
        return made;
    }
    for (int i = 0; i < n; i++) {
        scales[i] = ldexpf(scale_at(w, t, i), -spare);
        zeros[i] = (uint8_t)(t->of->zero_point << spare);
    }
    int64_t const count = n;
    made.codes = onnx_constant(&w->m, t->of->name, type, rank, dims,
                               shifted(w, values, t->of->bytes, spare));
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

/**
 * Rounding TWICE first rounds a sum times M0, 1/2 to 1, so it gives a code 2^-(n+1) codes earlier
 * than one rounding: 1 / (2 M0) units of a sum. This is that, of 2^spare units, where codes are not
 * below the zero point; below it, its sign would be the other one.
 */
static int32_t first_rounding(const onnx_writer *w, const qi_node *node, size_t channel, int spare)
{
    const qi_tensor *mult = onnx_in(w, node, MULT)->of;
    bool const one = mult->bytes == sizeof(int32_t);
    bool const is_above = onnx_clamp_of(w, node).lo >= onnx_out(w, node)->of->zero_point;
    if (!spare || !is_above || node->rounding != QI_ROUND_TWICE)
        return 0;
    int64_t const m = qi_value_at(QI_S32, mult->data, one ? 0 : channel);
    bool const is_normal = m >= INT64_C(1) << 30; /* of a stranger's file it may be any number */
    return is_normal ? (int32_t)lround(ldexp(0x1p30 / (double)m, spare - node->fraction)) : 0;
}

/**
 * The bias as codes; of rank 3: one for each plane. 64 bits become 32, which ONNX has. Only of
 * integers may it have all fractional bits: otherwise its scale must be that of x times that of the
 * weights, and it is rounded.
 */
static qat_status write_bias(onnx_writer *w, const qi_node *node, int rank, const char **name)
{
    const onnx_tensor *b = onnx_in(w, node, BIAS);
    size_t const n = (size_t)b->of->dims[0];
    int64_t const dims[] = {b->of->dims[0], 1, 1};
    int32_t *codes = onnx_take(&w->m, n, sizeof *codes);
    int const spare = spare_bits(w, node), drop = w->integer ? 0 : node->fraction - spare;
    for (size_t i = 0; codes && i < n; i++) {
        int64_t const value = qi_value_at(b->of->type, b->of->data, i);
        if (value < INT32_MIN || value > INT32_MAX)
            return onnx_refuse(w, node, "its bias needs more than 32 bits");
        codes[i] = drop < 0 ? (int32_t)value * (1 << -drop) : qi_rdbp((int32_t)value, drop);
        int64_t const sum = (int64_t)codes[i] + first_rounding(w, node, i, spare);
        codes[i] = (int32_t)(sum > INT32_MAX ? INT32_MAX : sum);
    }
    *name = codes ? onnx_constant(&w->m, b->of->name, ONNX_S32, rank, dims, codes) : "";
    return QAT_OK;
}

/** The bias as real numbers: its scale is that of x times that of the weights. */
static const char *real_bias(onnx_writer *w, const qi_node *node, const char *codes, bool many)
{
    const onnx_tensor *x = onnx_in(w, node, X), *t = onnx_in(w, node, WEIGHTS);
    int64_t const n = many ? onnx_in(w, node, BIAS)->of->dims[0] : 1;
    float *scales = onnx_take(&w->m, (size_t)n, sizeof *scales);
    for (int i = 0; scales && i < n; i++)
        scales[i] = x->scale * ldexpf(scale_at(w, t, i), -spare_bits(w, node));
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

/** What a layer becomes: of real numbers, of codes, of integers. NULL: there is none. */
typedef struct product {
    const char *real, *qlinear, *integer;
    bool microsoft; /* qlinear is of com.microsoft: its bias stands before the output's scale */
} product;

/** An operator with its bias; of integers, the bias comes later. */
typedef struct summed {
    onnx_node *node;
    const char *bias;
    bool coded; /* it gives codes, or integers */
    int rank;   /* of the integer operator's bias */
} summed;

/** Append the operator. @param codes  of x, as it wants them; @param rank  of an integer bias */
static qat_status write_product(onnx_writer *w, const qi_node *node, const weights *k,
                                const char *codes, const product *op, int rank, summed *made)
{
    onnx_tensor *x = onnx_in(w, node, X), *y = onnx_out(w, node);
    *made =
        (summed){.bias = "", .rank = rank, .coded = w->operators && (op->qlinear || w->integer)};
    qat_status const st = write_bias(w, node, w->integer ? rank : 1, &made->bias);
    if (st)
        return st;
    if (w->integer) {
        const char *const inputs[] = {codes, k->codes, onnx_zero_point(w, x), k->zero_point, NULL};
        made->node = onnx_add(&w->m, op->integer, inputs);
        return QAT_OK;
    }
    if (!made->coded) {
        const char *const inputs[] = {onnx_dequantized(w, x, codes, onnx_name(&w->m, x->of->name)),
                                      dequantized(w, onnx_in(w, node, WEIGHTS)->of->name, k->codes,
                                                  k->scale, k->zero_point, k->axis),
                                      real_bias(w, node, made->bias, k->axis >= 0), NULL};
        made->node = onnx_add(&w->m, op->real, inputs);
        return QAT_OK;
    }
    const char *const inputs[] = {
        codes, onnx_scale(w, x), onnx_zero_point(w, x), k->codes, k->scale, k->zero_point, NULL};
    made->node = onnx_add(&w->m, op->qlinear, inputs);
    if (op->microsoft) {
        onnx_microsoft(&w->m, made->node);
        onnx_input(&w->m, made->node, made->bias);
    }
    onnx_input(&w->m, made->node, onnx_scale(w, y));
    onnx_input(&w->m, made->node, onnx_zero_point(w, y));
    if (!op->microsoft)
        onnx_input(&w->m, made->node, made->bias);
    return QAT_OK;
}

/** The operator's output: codes, or real numbers. */
static const char *output(onnx_writer *w, const qi_node *node, const summed *made)
{
    const char *name =
        onnx_output(&w->m, made->node, onnx_name(&w->m, onnx_out(w, node)->of->name));
    return w->integer ? onnx_summed(w, node, made->bias, made->rank, name) : name;
}

static const char *planes(onnx_writer *w, const qi_node *node)
{
    return onnx_as(&w->m, &onnx_in(w, node, X)->value, ONNX_PLANES);
}

static void finish(onnx_writer *w, const qi_node *node, const summed *made)
{
    const char *name = output(w, node, made);
    (made->coded ? onnx_coded : onnx_quantized)(w, node, ONNX_PLANES, name);
}

static const product convolution = {"Conv", "QLinearConv", "ConvInteger", false},
                     transposed = {"ConvTranspose", NULL, "ConvInteger", false},
                     matrix = {"Gemm", "QGemm", "MatMulInteger", true};

static qat_status write_conv(onnx_writer *w, const qi_node *node, bool depthwise)
{
    const onnx_value *k = &onnx_in(w, node, WEIGHTS)->value, *x = &onnx_in(w, node, X)->value;
    const onnx_value *y = &onnx_out(w, node)->value;
    const int *perm = depthwise ? onnx_last_first : onnx_to_planes;
    int64_t dims[ONNX_RANK];
    onnx_window window = window_of(w, node);
    summed made;
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
    qat_status const st = write_product(w, node, &made_of, planes(w, node), &convolution, 3, &made);
    if (st)
        return st;
    onnx_attr_window(&w->m, made.node, &window, true);
    onnx_attr_int(&w->m, made.node, "group", depthwise ? x->dims[3] : onnx_param(node, "groups"));
    finish(w, node, &made);
    return QAT_OK;
}

static qat_status conv2d(onnx_writer *w, const qi_node *node)
{
    return write_conv(w, node, false);
}

static qat_status depthwise_conv2d(onnx_writer *w, const qi_node *node)
{
    return write_conv(w, node, true);
}

/** [O,KH,KW,I] as [O,I,KH,KW], upside down and mirrored. */
static const void *turned(onnx_writer *w, const onnx_value *k)
{
    const uint8_t *from = onnx_permuted(&w->m, k->data, 1, k->dims, onnx_to_planes);
    int64_t const taps = k->dims[1] * k->dims[2], planes = k->dims[0] * k->dims[3];
    uint8_t *to = onnx_take(&w->m, (size_t)(planes * taps), 1);
    for (int64_t i = 0; from && to && i < planes * taps; i++)
        to[i] = from[i / taps * taps + taps - 1 - i % taps];
    return to;
}

/**
 * The transposed convolution of integers is a convolution of the turned kernel over x with zero
 * points between its pixels, and around them.
 */
static qat_status transpose_integers(onnx_writer *w, const qi_node *node, const onnx_window *window)
{
    onnx_tensor *x = onnx_in(w, node, X);
    const onnx_value *k = &onnx_in(w, node, WEIGHTS)->value, *y = &onnx_out(w, node)->value;
    int64_t const *d = x->value.dims, *s = window->strides;
    int64_t const n = w->m.batched ? -1 : d[0];
    int64_t const apart[] = {n, d[3], d[1], 1, d[2], 1},
                  wide[] = {n, d[3], d[1] * s[0], d[2] * s[1]};
    int64_t const between[12] = {[9] = s[0] - 1, [11] = s[1] - 1};
    int64_t around[8] = {0};
    int64_t const dims[] = {k->dims[0], k->dims[3], k->dims[1], k->dims[2]};
    const char *zero = onnx_zero_point(w, x), *codes = planes(w, node);
    summed made;
    for (int i = 0; i < 2; i++) {
        around[2 + i] = window->kernel[i] - 1 - window->pads[i];
        around[6 + i] = y->dims[1 + i] - 1 + window->kernel[i] - around[2 + i] - wide[2 + i];
    }
    codes = onnx_both(w, "Reshape", codes, onnx_vector(&w->m, "shape", ONNX_S64, 6, apart));
    codes = onnx_output(
        &w->m,
        onnx_add(&w->m, "Pad",
                 (const char *const[]){codes, onnx_vector(&w->m, "pads", ONNX_S64, 12, between),
                                       zero, NULL}),
        onnx_name(&w->m, "Pad"));
    codes = onnx_both(w, "Reshape", codes, onnx_vector(&w->m, "shape", ONNX_S64, 4, wide));
    codes = onnx_output(
        &w->m,
        onnx_add(&w->m, "Pad",
                 (const char *const[]){codes, onnx_vector(&w->m, "pads", ONNX_S64, 8, around), zero,
                                       NULL}),
        onnx_name(&w->m, "Pad"));
    weights const made_of = write_weights(w, node, turned(w, k), 4, dims, 0);
    qat_status const st = write_product(w, node, &made_of, codes, &transposed, 3, &made);
    if (!st)
        finish(w, node, &made);
    return st;
}

static qat_status transpose_conv2d(onnx_writer *w, const qi_node *node)
{
    const onnx_value *k = &onnx_in(w, node, WEIGHTS)->value, *x = &onnx_in(w, node, X)->value;
    const onnx_value *y = &onnx_out(w, node)->value;
    int64_t const dims[] = {k->dims[3], k->dims[0], k->dims[1], k->dims[2]};
    onnx_window window = window_of(w, node);
    int64_t more[2] = {0};
    summed made;
    if (w->integer)
        return transpose_integers(w, node, &window);
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
    qat_status const st = write_product(w, node, &made_of, planes(w, node), &transposed, 3, &made);
    if (st)
        return st;
    onnx_attr_window(&w->m, made.node, &window, false);
    onnx_attr_ints(&w->m, made.node, "output_padding", 2, more);
    finish(w, node, &made);
    return QAT_OK;
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
    static const int last_first[ONNX_RANK] = {0, 1, 3, 2};
    const onnx_value *y = &onnx_out(w, node)->value, *k = &onnx_in(w, node, WEIGHTS)->value;
    int64_t const dims[] = {1, 1, k->dims[0], k->dims[1], k->dims[0]};
    onnx_value rows;
    onnx_form order;
    summed made;
    const char *codes = write_rows(w, node, &rows, &order);
    const void *columns =
        order == ONNX_FLAT ? onnx_columns(&w->m, &rows, k->data, 1, k->dims[0]) : k->data;
    if (w->integer && columns) /* MatMulInteger wants [I,O] */
        columns = onnx_permuted(&w->m, columns, 1, dims, last_first);
    weights const made_of = write_weights(w, node, columns, 2, w->integer ? dims + 3 : k->dims, 0);
    qat_status const st = write_product(w, node, &made_of, codes, &matrix, 1, &made);
    if (st)
        return st;
    if (!w->integer)
        onnx_attr_int(&w->m, made.node, "transB", 1);
    const char *name = output(w, node, &made);
    if (y->rank != 2)
        name = onnx_reshape(&w->m, y->name, name, y->rank, y->dims);
    (made.coded ? onnx_coded : onnx_quantized)(w, node, ONNX_PLAIN, name);
    return QAT_OK;
}

const onnx_op onnx_layers[] = {{"conv2d", conv2d},
                               {"depthwise_conv2d", depthwise_conv2d},
                               {"transpose_conv2d", transpose_conv2d},
                               {"fully_connected", fully_connected},
                               {NULL, NULL}};
