/** Ops that compute values without weights: sums, products, functions, averages. */
#include "export/onnx/write.h"

#include <string.h>

onnx_form onnx_form_in(const onnx_writer *w, const qi_node *node)
{
    const onnx_value *x = &onnx_in(w, node, 0)->value;
    memcpy(onnx_out(w, node)->value.picture, x->picture, sizeof x->picture);
    return onnx_form_of(x);
}

static void take_result(onnx_writer *w, const qi_node *node, onnx_node *made, onnx_form form,
                        bool coded)
{
    const char *name = onnx_output(&w->m, made, onnx_name(&w->m, onnx_out(w, node)->of->name));
    (coded ? onnx_coded : onnx_quantized)(w, node, form, name);
}

/* ------------------------------------------------------------------ two inputs */

onnx_form onnx_form_of_both(const onnx_writer *w, const qi_node *node)
{
    bool pictures = onnx_out(w, node)->value.rank == ONNX_RANK;
    for (int i = 0; i < 2; i++) {
        const onnx_value *x = &onnx_in(w, node, i)->value;
        pictures &= x->data || x->rank == ONNX_RANK;
    }
    for (int i = 0; pictures && i < 2; i++)
        if (onnx_in(w, node, i)->value.data)
            onnx_widen(&onnx_in(w, node, i)->value, ONNX_RANK);
    return pictures ? ONNX_PLANES : ONNX_PLAIN;
}

static qat_status write_both(onnx_writer *w, const qi_node *node, const char *op,
                             const char *qlinear)
{
    onnx_form const form = onnx_form_of_both(w, node);
    if (w->operators && qlinear) {
        take_result(w, node, onnx_qlinear(w, node, qlinear, 2, form), form, true);
        return QAT_OK;
    }
    const char *const inputs[] = {onnx_real(w, onnx_in(w, node, 0), form),
                                  onnx_real(w, onnx_in(w, node, 1), form), NULL};
    take_result(w, node, onnx_add(&w->m, op, inputs), form, false);
    return QAT_OK;
}

/**
 * Sums and products of reals with codes that are int8 in the model: float32 rounds otherwise if
 * they are carried 128 higher, so they are int8 again here.
 */
static qat_status write_signed(onnx_writer *w, const qi_node *node, const char *op)
{
    onnx_form const form = onnx_form_of_both(w, node);
    onnx_tensor *y = onnx_out(w, node);
    const char *reals[3] = {NULL};
    for (int i = 0; i < 2; i++) {
        onnx_tensor *x = onnx_in(w, node, i), plain = *x;
        const char *codes = onnx_as(&w->m, &x->value, form);
        plain.zero_point = NULL;
        plain.carry = 0;
        plain.value.type = ONNX_S8;
        codes = onnx_recoded(w, codes, -x->carry, ONNX_S8);
        reals[i] = onnx_dequantized(w, &plain, codes, onnx_name(&w->m, x->of->name));
    }
    onnx_tensor const carried = *y;
    y->zero_point = NULL;
    y->carry = 0;
    y->value.type = ONNX_S8;
    take_result(w, node, onnx_add(&w->m, op, reals), form, false);
    const char *codes = onnx_as(&w->m, &y->value, form);
    y->zero_point = carried.zero_point;
    y->carry = carried.carry;
    y->value.type = carried.value.type;
    onnx_set(&y->value, form, onnx_recoded(w, codes, y->carry, y->value.type));
    return QAT_OK;
}

/** add and mul. */
static qat_status write_sum(onnx_writer *w, const qi_node *node, const char *op,
                            const char *qlinear)
{
    bool const is_carried =
        onnx_in(w, node, 0)->carry && onnx_in(w, node, 1)->carry && onnx_out(w, node)->carry;
    return is_carried ? write_signed(w, node, op) : write_both(w, node, op, qlinear);
}

static qat_status add(onnx_writer *w, const qi_node *node)
{
    return write_sum(w, node, "Add", "QLinearAdd");
}

static qat_status sub(onnx_writer *w, const qi_node *node)
{
    return write_both(w, node, "Sub", NULL);
}

static qat_status mul(onnx_writer *w, const qi_node *node)
{
    return write_sum(w, node, "Mul", "QLinearMul");
}

static qat_status prelu(onnx_writer *w, const qi_node *node)
{
    return write_both(w, node, "PRelu", NULL);
}

/** They compare codes, whatever these stand for; so all three have the output's scale here. */
static qat_status write_choice(onnx_writer *w, const qi_node *node, const char *op)
{
    onnx_form const form = onnx_form_of_both(w, node);
    onnx_tensor *y = onnx_out(w, node);
    const char *inputs[3] = {NULL};
    for (int i = 0; i < 2; i++)
        inputs[i] = onnx_dequantized(w, y, onnx_as(&w->m, &onnx_in(w, node, i)->value, form),
                                     onnx_name(&w->m, y->of->name));
    take_result(w, node, onnx_add(&w->m, op, inputs), form, false);
    return QAT_OK;
}

static qat_status maximum(onnx_writer *w, const qi_node *node)
{
    return write_choice(w, node, "Max");
}

static qat_status minimum(onnx_writer *w, const qi_node *node)
{
    return write_choice(w, node, "Min");
}

static qat_status batch_matmul(onnx_writer *w, const qi_node *node)
{
    static const char *const transposes[] = {"transpose_a", "transpose_b"};
    const char *inputs[5] = {NULL};
    for (int i = 0; i < 2; i++) {
        onnx_tensor *x = onnx_in(w, node, i);
        int const rank = x->value.rank;
        int perm[ONNX_RANK] = {0, 1, 2, 3};
        inputs[i] =
            w->integer ? onnx_as(&w->m, &x->value, ONNX_PLAIN) : onnx_real(w, x, ONNX_PLAIN);
        if (onnx_param(node, transposes[i])) {
            perm[rank - 1] = rank - 2;
            perm[rank - 2] = rank - 1;
            inputs[i] = onnx_transpose(&w->m, x->of->name, inputs[i], rank, perm);
        }
    }
    if (!w->integer) {
        take_result(w, node, onnx_add(&w->m, "MatMul", inputs), ONNX_PLAIN, false);
        return QAT_OK;
    }
    for (int i = 0; i < 2; i++)
        inputs[2 + i] = onnx_zero_point(w, onnx_in(w, node, i));
    const char *sum =
        onnx_output(&w->m, onnx_add(&w->m, "MatMulInteger", inputs), onnx_name(&w->m, "sum"));
    onnx_computed(w, node, ONNX_PLAIN,
                  onnx_requantized_by(w, node, "mult", "shift", onnx_cast(w, sum, ONNX_S64)));
    return QAT_OK;
}

/* ------------------------------------------------------------------ functions of a value */

static qat_status write_function(onnx_writer *w, const qi_node *node, const char *op,
                                 const char *qlinear, onnx_form form, onnx_node **made)
{
    bool const coded = w->operators && qlinear;
    if (w->integer)
        return onnx_refuse(w, node, "the form integer has no operators for it");
    *made = coded ? onnx_qlinear(w, node, qlinear, 1, form)
                  : onnx_add(&w->m, op,
                             (const char *const[]){onnx_real(w, onnx_in(w, node, 0), form), NULL});
    take_result(w, node, *made, form, coded);
    return QAT_OK;
}

static qat_status logistic(onnx_writer *w, const qi_node *node)
{
    onnx_node *made;
    return write_function(w, node, "Sigmoid", "QLinearSigmoid", onnx_form_in(w, node), &made);
}

static qat_status tanh_(onnx_writer *w, const qi_node *node)
{
    onnx_node *made;
    return write_function(w, node, "Tanh", NULL, onnx_form_in(w, node), &made);
}

/** The beta of softmax(beta x), which is part of its multiplier. 1: also where that is cut off. */
static float beta_of(const onnx_writer *w, const qi_node *node)
{
    double const multiplier =
        onnx_param(node, "mult") * (double)(UINT64_C(1) << onnx_param(node, "shift")) / 0x1p31;
    double const beta = multiplier / ((double)onnx_in(w, node, 0)->scale * (1 << 26));
    return multiplier >= 0x1.fffffp30 || (beta > 0.99999 && beta < 1.00001) ? 1 : (float)beta;
}

static qat_status softmax(onnx_writer *w, const qi_node *node)
{
    float const beta = beta_of(w, node);
    bool const coded = w->operators && beta == 1;
    onnx_node *made;
    if (coded) {
        made = onnx_qlinear(w, node, "QLinearSoftmax", 1, ONNX_PLAIN);
        onnx_attr_int(&w->m, made, "opset", w->m.opset);
    } else {
        const char *x = onnx_real(w, onnx_in(w, node, 0), ONNX_PLAIN);
        if (beta != 1)
            x = onnx_apply(&w->m, "Mul", "beta", x, onnx_scalar(&w->m, "beta", ONNX_FLOAT, &beta));
        made = onnx_add(&w->m, "Softmax", (const char *const[]){x, NULL});
    }
    onnx_attr_int(&w->m, made, "axis", -1);
    take_result(w, node, made, ONNX_PLAIN, coded);
    return QAT_OK;
}

static qat_status l2_normalization(onnx_writer *w, const qi_node *node)
{
    onnx_node *made = NULL;
    qat_status const st = write_function(w, node, "LpNormalization", NULL, ONNX_PLAIN, &made);
    onnx_attr_int(&w->m, made, "axis", -1);
    onnx_attr_int(&w->m, made, "p", 2);
    return st;
}

static qat_status requantize(onnx_writer *w, const qi_node *node)
{
    onnx_form const form = onnx_form_in(w, node);
    if (onnx_out(w, node)->of->type == QI_S32)
        return onnx_refuse(w, node, "QuantizeLinear gives no 32-bit codes");
    onnx_quantized(w, node, form, onnx_real(w, onnx_in(w, node, 0), form));
    return QAT_OK;
}

/* ------------------------------------------------------------------ tables */

/** What is added to a code to be a position: 128 for int8, 256 for each channel before. */
static const char *offsets(onnx_writer *w, const qi_node *node, onnx_form form, int channels)
{
    const onnx_tensor *x = onnx_in(w, node, 0);
    int32_t const first = x->of->type == QI_S8 ? 128 - x->carry : 0;
    int64_t const dims[] = {channels, 1, 1};
    int32_t *values = onnx_take(&w->m, (size_t)channels, sizeof *values);
    for (int i = 0; values && i < channels; i++)
        values[i] = first + 256 * i;
    if (!values || (channels == 1 && first == 0))
        return NULL;
    return onnx_constant(&w->m, "offset", ONNX_S32, form == ONNX_PLANES && channels > 1 ? 3 : 1,
                         dims, values);
}

/** The entry of each code. This gives the .qm's bytes. */
static qat_status table(onnx_writer *w, const qi_node *node)
{
    onnx_tensor *x = onnx_in(w, node, 0), *entries = onnx_in(w, node, 1);
    const qi_tensor *t = entries->of;
    int const channels = t->rank == 2 ? t->dims[0] : 1;
    onnx_form form = onnx_form_in(w, node);
    if (x->of->type == QI_S16)
        return onnx_refuse(w, node, "its table is one of 16-bit codes");
    if (form == ONNX_FLAT && channels > 1)
        form = ONNX_PLAIN;
    const char *codes = onnx_as(&w->m, &x->value, form), *added = offsets(w, node, form, channels);
    int64_t const n = (int64_t)(t->bytes / qi_type_bytes((qi_type)t->type));
    const char *names = onnx_vector(&w->m, t->name, entries->value.type, n, entries->value.data);
    onnx_coded(w, node, form, onnx_looked_up(w, codes, added, names, onnx_out(w, node)->of->name));
    return QAT_OK;
}

/** Codes as the indices of a Gather. */
static qat_status cast(onnx_writer *w, const qi_node *node)
{
    onnx_tensor *x = onnx_in(w, node, 0), *y = onnx_out(w, node);
    if (y->of->type != QI_S32 || !qi_type_has_codes(x->of->type) || x->carry)
        return onnx_refuse(w, node, "only codes become int32 here");
    y->value.type = ONNX_S32;
    onnx_set(&y->value, ONNX_PLAIN, onnx_cast(w, onnx_as(&w->m, &x->value, ONNX_PLAIN), ONNX_S32));
    return QAT_OK;
}

/** Rows of a constant. What is no position is the nearest one. */
static qat_status gather(onnx_writer *w, const qi_node *node)
{
    onnx_tensor *rows = onnx_in(w, node, 0), *indices = onnx_in(w, node, 1);
    bool const is_long = indices->of->type == QI_S64;
    int32_t const axis = onnx_param(node, "axis"), ends[] = {0, rows->of->dims[axis] - 1};
    int64_t const long_ends[] = {ends[0], ends[1]};
    int64_t dims[ONNX_RANK];
    if (!rows->of->data || onnx_param(node, "batch_dims"))
        return onnx_refuse(w, node, "only rows of a constant are written");
    for (int i = 0; i < rows->of->rank; i++)
        dims[i] = rows->of->dims[i];
    const char *inputs[] = {onnx_constant(&w->m, rows->of->name, rows->value.type, rows->of->rank,
                                          dims, rows->value.data),
                            onnx_within(w, onnx_as(&w->m, &indices->value, ONNX_PLAIN),
                                        is_long ? ONNX_S64 : ONNX_S32,
                                        is_long ? (const void *)&long_ends[0] : &ends[0],
                                        is_long ? (const void *)&long_ends[1] : &ends[1]),
                            NULL};
    onnx_node *made = onnx_add(&w->m, "Gather", inputs);
    onnx_attr_int(&w->m, made, "axis", axis);
    onnx_coded(w, node, ONNX_PLAIN,
               onnx_output(&w->m, made, onnx_name(&w->m, onnx_out(w, node)->of->name)));
    return QAT_OK;
}

/* ------------------------------------------------------------------ averages */

/** ReduceSum of codes, and the mean's code. */
static const char *integer_mean(onnx_writer *w, const qi_node *node, onnx_form form,
                                const char *axes)
{
    onnx_tensor *x = onnx_in(w, node, 0), *y = onnx_out(w, node);
    int64_t const each = (int64_t)(x->of->bytes / y->of->bytes);
    const char *sum = onnx_both(w, "ReduceSum", onnx_codes_from(w, x, form, -x->carry), axes);
    sum = onnx_with(w, "Sub", sum, each * (x->of->zero_point + x->carry));
    return onnx_code_of(w, y, y->of->zero_point,
                        onnx_requantized_by(w, node, "mult", "shift", sum));
}

static qat_status mean(onnx_writer *w, const qi_node *node)
{
    const onnx_value *x = &onnx_in(w, node, 0)->value, *y = &onnx_out(w, node)->value;
    int const mask = onnx_param(node, "axis_mask");
    bool const whole = x->rank == 4 && mask == 6, same = x->rank == y->rank;
    onnx_form const form = x->rank == 4 && (whole || same) ? ONNX_PLANES : ONNX_PLAIN;
    const char *name;
    int64_t axes[ONNX_RANK];
    int n = 0;
    bool const coded = w->integer || (w->operators && whole);
    size_t const each = onnx_in(w, node, 0)->of->bytes / onnx_out(w, node)->of->bytes;
    if (w->integer && node->rounding == QI_ROUND_ONCE && each > (1 << 30) / UINT8_MAX)
        return onnx_refuse(w, node, "it averages more codes than 62 bits hold the product of");
    for (int i = 0; i < x->rank; i++)
        if (mask >> i & 1)
            axes[n++] = onnx_axis(form, i);
    if (w->integer) {
        name = integer_mean(w, node, form, onnx_vector(&w->m, "axes", ONNX_S64, n, axes));
    } else if (coded) {
        onnx_node *made = onnx_qlinear(w, node, "QLinearGlobalAveragePool", 1, form);
        onnx_attr_int(&w->m, made, "channels_last", 0);
        name = onnx_output(&w->m, made, onnx_name(&w->m, y->name));
    } else {
        const char *real = onnx_real(w, onnx_in(w, node, 0), form);
        onnx_node *made = onnx_add(&w->m, whole ? "GlobalAveragePool" : "ReduceMean",
                                   (const char *const[]){real, NULL});
        if (!whole && w->m.opset >= 18)
            onnx_input(&w->m, made, onnx_vector(&w->m, "axes", ONNX_S64, n, axes));
        else if (!whole)
            onnx_attr_ints(&w->m, made, "axes", n, axes);
        name = onnx_output(&w->m, made, onnx_name(&w->m, y->name));
    }
    if (!same)
        name = onnx_reshape(&w->m, y->name, name, y->rank, y->dims);
    (coded ? onnx_coded : onnx_quantized)(w, node, same ? form : ONNX_PLAIN, name);
    return QAT_OK;
}

/** The attributes of a pool; false: its window does not fit ONNX's. */
static bool pool_window(const onnx_writer *w, const qi_node *node, onnx_window *window)
{
    const onnx_value *x = &onnx_in(w, node, 0)->value, *y = &onnx_out(w, node)->value;
    *window = (onnx_window){.kernel = {onnx_param(node, "kernel_h"), onnx_param(node, "kernel_w")},
                            .strides = {onnx_param(node, "stride_h"), onnx_param(node, "stride_w")},
                            .pads = {onnx_param(node, "pad_top"), onnx_param(node, "pad_left")}};
    for (int i = 0; i < 2; i++)
        window->pads[2 + i] = onnx_pad_behind(x->dims[1 + i], y->dims[1 + i], window->kernel[i],
                                              window->strides[i], 1, window->pads[i]);
    return window->pads[2] >= 0 && window->pads[3] >= 0;
}

/** The pixels of each window that are inside the picture, along an axis. */
static int64_t inside(const onnx_window *window, int axis, int64_t in, int64_t at)
{
    int64_t const begin = at * window->strides[axis] - window->pads[axis];
    int64_t const end = begin + window->kernel[axis];
    return (end < in ? end : in) - (begin > 0 ? begin : 0);
}

/** A sum of codes, by a convolution with ones, and its quotient. */
static qat_status integer_average(onnx_writer *w, const qi_node *node, const onnx_window *window)
{
    onnx_tensor *x = onnx_in(w, node, 0), *y = onnx_out(w, node);
    int64_t const *d = x->value.dims, *o = y->value.dims;
    int64_t const taps = window->kernel[0] * window->kernel[1],
                  kernel[] = {d[3], 1, window->kernel[0], window->kernel[1]},
                  counts[] = {o[1], o[2]};
    uint8_t *ones = onnx_take(&w->m, (size_t)(d[3] * taps), 1), zero = (uint8_t)x->carry;
    int64_t *whole = onnx_take(&w->m, (size_t)(o[1] * o[2]), sizeof *whole);
    int64_t *half = onnx_take(&w->m, (size_t)(o[1] * o[2]), sizeof *half);
    if (!ones || !whole || !half)
        return QAT_OK; /* onnx_pack says so */
    memset(ones, 1, (size_t)(d[3] * taps));
    bool const once = node->rounding == QI_ROUND_ONCE, even = node->rounding == QI_ROUND_EVEN;
    for (int64_t i = 0; i < o[1] * o[2]; i++) {
        whole[i] = inside(window, 0, d[1], i / o[2]) * inside(window, 1, d[2], i % o[2]);
        half[i] = whole[i] / 2;
        if (once) { /* (2 sum + n + 256 n) / (2 n) - 128, of numbers that are not negative */
            half[i] = 257 * whole[i];
            whole[i] *= 2;
        }
    }
    onnx_node *made =
        onnx_add(&w->m, "ConvInteger",
                 (const char *const[]){onnx_as(&w->m, &x->value, ONNX_PLANES),
                                       onnx_constant(&w->m, "ones", ONNX_U8, 4, kernel, ones),
                                       onnx_scalar(&w->m, "zero_point", ONNX_U8, &zero), NULL});
    onnx_attr_window(&w->m, made, window, false);
    onnx_attr_int(&w->m, made, "group", d[3]);
    const char *sum = onnx_cast(w, onnx_output(&w->m, made, onnx_name(&w->m, "sum")), ONNX_S64);
    const char *halves = onnx_constant(&w->m, "half", ONNX_S64, 2, counts, half);
    const char *pixels = onnx_constant(&w->m, "pixels", ONNX_S64, 2, counts, whole);
    if (once)
        sum = onnx_with(
            w, "Sub",
            onnx_both(w, "Div", onnx_both(w, "Add", onnx_with(w, "Mul", sum, 2), halves), pixels),
            128);
    else if (even)
        sum = onnx_nearest_even(w, onnx_both(w, "Div", onnx_cast(w, sum, ONNX_DOUBLE),
                                             onnx_cast(w, pixels, ONNX_DOUBLE)));
    else
        sum = onnx_divided(w, sum, halves, pixels);
    onnx_coded(w, node, ONNX_PLANES, onnx_code_of(w, y, 0, sum));
    return QAT_OK;
}

static qat_status write_pool(onnx_writer *w, const qi_node *node, bool maximum_)
{
    onnx_window window;
    onnx_node *made;
    if (!pool_window(w, node, &window))
        return onnx_refuse(w, node, "it leaves more than a stride of its input unread");
    if (!maximum_ && w->operators)
        made = onnx_qlinear(w, node, "QLinearAveragePool", 1, ONNX_PLANES);
    else
        made = onnx_add(&w->m, maximum_ ? "MaxPool" : "AveragePool",
                        (const char *const[]){maximum_
                                                  ? onnx_moved(w, node, 0, ONNX_PLANES)
                                                  : onnx_real(w, onnx_in(w, node, 0), ONNX_PLANES),
                                              NULL});
    onnx_attr_window(&w->m, made, &window, false);
    const char *name = onnx_output(&w->m, made, onnx_name(&w->m, onnx_out(w, node)->of->name));
    if (maximum_)
        onnx_arrived(w, node, ONNX_PLANES, name);
    else
        (w->operators ? onnx_coded : onnx_quantized)(w, node, ONNX_PLANES, name);
    return QAT_OK;
}

static qat_status float_average(onnx_writer *w, const qi_node *node)
{
    return write_pool(w, node, false);
}

static qat_status average_pool2d(onnx_writer *w, const qi_node *node)
{
    onnx_window window;
    if (w->integer && pool_window(w, node, &window))
        return integer_average(w, node, &window);
    return onnx_of_codes(w, node, float_average);
}

static qat_status max_pool2d(onnx_writer *w, const qi_node *node)
{
    return write_pool(w, node, true);
}

const onnx_op onnx_values[] = {{"add", add},
                               {"sub", sub},
                               {"mul", mul},
                               {"prelu", prelu},
                               {"maximum", maximum},
                               {"minimum", minimum},
                               {"batch_matmul", batch_matmul},
                               {"logistic", logistic},
                               {"tanh", tanh_},
                               {"softmax", softmax},
                               {"l2_normalization", l2_normalization},
                               {"requantize", requantize},
                               {"table", table},
                               {"cast", cast},
                               {"gather", gather},
                               {"mean", mean},
                               {"average_pool2d", average_pool2d},
                               {"max_pool2d", max_pool2d},
                               {NULL, NULL}};
