/**
 * Tables of 256 entries: pixels to codes, curves, elementwise ops of plugins.
 *
 *     pixels    equal to the float32 formula of docs/arithmetic.md, section 1. With inputs of -1..1
 *               every pixel is a tie, and only that formula says how it is rounded
 *     others    |entry - (f(S_x (q - Z_x)) / S_y + Z_y)| <= 1/2 + 2^-11
 *
 * The 2^-11: expf and tanhf are wrong by a few U, and 255 codes multiply this.
 */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 256 };
static const double TABLE_SLACK = 0x1p-11;

/** In codes: of 16 bits, 2^8 times as many. */
static double slack_of(const qi_tensor *y)
{
    return ldexp(TABLE_SLACK, y->bits > 8 ? y->bits - 8 : 0);
}

/** One table: of channel `row`, where there are several. */
struct table {
    cert *c;
    const char *name;
    const qi_tensor *x, *y, *codes;
    int rows;
};

static int32_t code_at(const struct table *t, int row, int position)
{
    size_t const at = (size_t)(t->rows > 1 ? row : 0) * ENTRIES + (size_t)position;
    return cert_code(t->codes, at);
}

/** The entries' type and scale are those of the output. */
static qat_status check_entries(const cert *c, const struct table *t)
{
    const qi_tensor *e = t->codes, *y = t->y;
    qat_status st = cert_equal(c, e->name, "the type", e->type, y->type);
    if (!st)
        st = cert_equal(c, e->name, "the number of bits", e->bits, y->bits);
    if (!st)
        st = cert_equal(c, e->name, "the rank", e->rank, t->rows > 1 ? 2 : 1);
    if (!st)
        st = cert_equal(c, e->name, "the zero point", e->zero_point, y->zero_point);
    if (!st)
        st = cert_equal(c, e->name, "the scale (as the bits of its float32)", e->scale_bits,
                        y->scale_bits);
    for (int i = 0; !st && i < 2; i++)
        st = cert_equal(c, e->name, "the range (as the bits of its float32)", e->range_bits[i],
                        y->range_bits[i]);
    return st;
}

static qat_status table_of(cert *c, const qi_node *node, const char *name, struct table *t)
{
    char entries[QAT_NAME_MAX];
    *t = (struct table){.c = c,
                        .name = name,
                        .x = cert_tensor(c, node->inputs[0]),
                        .y = cert_tensor(c, node->outputs[0])};
    qat_status st = cert_check_form(c, name, node, 2, 0, QI_ROUND_NONE, 0);
    if (st)
        return st;
    if (t->x->type == QI_S16)
        return qat_fail(c->err, QAT_ERR_MISMATCH,
                        "%s: the file's table is for %s, whose codes have 16 bits; this layer's "
                        "have at most 8",
                        name, t->x->name);
    t->codes = cert_tensor(c, node->inputs[1]);
    t->rows = t->codes->rank == 2 ? t->codes->dims[0] : 1;
    cert_part_name(entries, name, "table");
    c->result->tables += (int64_t)t->rows * ENTRIES;
    st = cert_check_name(c, name, t->codes, entries);
    return st ? st : check_entries(c, t);
}

/** Position of a code of x. */
static int position_of(const qi_tensor *x, int32_t code)
{
    return x->type == QI_S8 ? code + 128 : code;
}

static double real_of(const qi_tensor *x, int32_t code)
{
    return (double)cert_scale(x) * (code - x->zero_point);
}

/** One entry against the real value that its input stands for. */
static qat_status check_entry(const struct table *t, int row, int32_t code, double value,
                              double slack)
{
    int32_t lo, hi;
    int32_t const entry = code_at(t, row, position_of(t->x, code));
    double const scale = (double)cert_scale(t->y);
    cert_codes_of(t->y, &lo, &hi);
    if (cert_near_code(value, scale, t->y->zero_point, lo, hi, slack, entry))
        return QAT_OK;
    return qat_fail(
        t->c->err, QAT_ERR_MISMATCH,
        "%s, channel %d: the file's table gives the code %d for the input code %d, but this input "
        "stands for %.9g, and the layer's function gives %.4f before rounding",
        t->name, row, (int)entry, (int)code, real_of(t->x, code),
        fmin(fmax(value / scale + t->y->zero_point, lo), hi));
}

/* ------------------------------------------------------------------ pixels */

static int32_t code_in_float32(const qi_tensor *y, float value, float half)
{
    int32_t lo, hi;
    cert_codes_of(y, &lo, &hi);
    float const scale = cert_scale(y);
    float const min = (float)(lo - y->zero_point) * scale,
                max = (float)(hi - y->zero_point) * scale;
    float const inverse = (float)(hi - lo) / (max - min);
    float const zero = floorf(-min * inverse + 0.5f);
    float const inside = fminf(fmaxf(value, min), max);
    float const steps = floorf((inside - min) / scale - zero + half);
    return (int32_t)fmin(fmax((double)steps + y->zero_point, lo), hi);
}

int32_t cert_code_in_float32(const qi_tensor *t, float value)
{
    return code_in_float32(t, value, 0.5f);
}

int32_t cert_code_with_ties(const qi_tensor *t, float value)
{
    return code_in_float32(t, value, 0.5f + 0x1p-15f);
}

int32_t cert_code_of_bound(const qi_tensor *t, double bound)
{
    int32_t lo, hi;
    cert_codes_of(t, &lo, &hi);
    if (isinf(bound))
        return bound < 0 ? lo : hi;
    if (t->bits < 8)
        return cert_code_with_ties(t, (float)bound);
    double const code = round((double)(float)(bound / (double)cert_scale(t))) + t->zero_point;
    return (int32_t)fmin(fmax(code, lo), hi);
}

static qat_status check_pixel(const struct table *t, int channel, int pixel)
{
    const qat_certify_source *s = t->c->source;
    float const centred = (float)pixel - s->mean[channel];
    float const value = centred / s->std[channel];
    int32_t const entry = code_at(t, channel, pixel), expected = cert_code_in_float32(t->y, value);
    if (entry == expected)
        return check_entry(t, channel, pixel,
                           (pixel - (double)s->mean[channel]) / (double)s->std[channel],
                           slack_of(t->y));
    return qat_fail(t->c->err, QAT_ERR_MISMATCH,
                    "%s, channel %d: the file's table gives the code %d for pixel %d, but (pixel - "
                    "%g) / %g has the code %d",
                    t->name, channel, (int)entry, pixel, (double)s->mean[channel],
                    (double)s->std[channel], (int)expected);
}

static qat_status check_pixel_tensor(const cert *c, const struct table *t)
{
    qat_status st = cert_equal(c, t->x->name, "the type", t->x->type, QI_U8);
    if (!st)
        st = cert_equal(c, t->x->name, "the number of bits", t->x->bits, 8);
    if (!st)
        st = cert_equal(c, t->x->name, "the zero point", t->x->zero_point, 0);
    if (!st)
        st = cert_check_scale_1(c, t->x);
    if (!st)
        st = cert_check_range(c, t->x->name, t->x, 0, 255);
    for (int i = 0; !st && i < QI_MAX_RANK; i++)
        st = cert_equal(c, t->x->name, "a dimension", t->x->dims[i], t->y->dims[i]);
    return st;
}

qat_status cert_check_pixels(cert *c, const qi_node *op)
{
    struct table t;
    int const channels = c->source->channels;
    qat_status st = table_of(c, op, op->name, &t);
    if (!st)
        st = check_pixel_tensor(c, &t);
    if (!st && t.rows != 1 && t.rows != channels)
        st = cert_equal(c, op->name, "the number of tables", t.rows, channels);
    for (int channel = 0; !st && channel < channels; channel++)
        for (int pixel = 0; !st && pixel < ENTRIES; pixel++)
            st = check_pixel(&t, channel, pixel);
    return st;
}

/* ------------------------------------------------------------------ curves */

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double hard_swish(double x)
{
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double gelu(double x)
{
    return x * erfc(-x / sqrt(2)) / 2;
}

static double limited_to_16_bits(double x)
{
    return fmin(fmax(x, -0x1p15), 0x1p15 - 1);
}

/** x times a multiplier of 16 bits, before its shift. */
static double times(double x, int32_t mult)
{
    return floor(x * fmin(floor(mult * 0x1p-16 + 0.5), 0x1p15 - 1) * 0x1p-15 + 0.5);
}

/** In TensorFlow Lite's 16 bits: docs/arithmetic.md, section 11. */
static int32_t hard_swish_in_tflite(int32_t x, float sx, float sy)
{
    int32_t mult, shift;
    double const fine = 128.0 * x;
    cert_requantize_multiplier((double)(sx / 128 / (3.0f / 32768)), &mult, &shift);
    double const part =
        shift > 0 ? limited_to_16_bits(2 * times(limited_to_16_bits(ldexp(fine, shift - 1)), mult))
                  : round(ldexp(times(fine, mult), shift > -15 ? shift : -15));
    cert_requantize_multiplier((double)(sx / 128 / sy), &mult, &shift);
    double const product = floor((part + 0x1p15) / 2) * times(fine, mult);
    return (int32_t)round(ldexp(trunc(product * 0x1p-15), shift));
}

const cert_curve *cert_curve_of(const qat_node *node)
{
    static const cert_curve curves[] = {
        {"logistic", 0, 1, logistic, cert_check_sigmoid, NULL},
        {"tanh", -1, 1, tanh, cert_check_sigmoid, NULL},
        {"hard_swish", 0, 0, hard_swish, NULL, hard_swish_in_tflite},
        {"silu", 0, 0, silu, NULL, NULL},
        {"gelu", 0, 0, gelu, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if (qat_node_is_op(node, curves[i].op))
            return &curves[i];
    return NULL;
}

/** An entry of TensorFlow Lite's own making. */
static qat_status check_tflite(const struct table *t, const cert_op *op, const cert_curve *curve,
                               int32_t code)
{
    int32_t const lo = cert_code_of_bound(t->y, op->act_min),
                  hi = cert_code_of_bound(t->y, op->act_max);
    int64_t const expected =
        (int64_t)t->y->zero_point +
        curve->tflite(code - t->x->zero_point, cert_scale(t->x), cert_scale(t->y));
    return cert_equal(t->c, t->name, "an entry of the table",
                      code_at(t, 0, position_of(t->x, code)),
                      expected < lo   ? lo
                      : expected > hi ? hi
                                      : expected);
}

static double limited(const cert_op *op, double value)
{
    return fmin(fmax(value, op->act_min), op->act_max);
}

/** Check the entry of one code. */
typedef qat_status entry_check(const struct table *t, const cert_op *op, int32_t code);

/** The one table of an op, entry by entry. */
static qat_status check_one_table(cert *c, const cert_op *op, entry_check *check)
{
    struct table t;
    int32_t lo, hi;
    qat_status st = table_of(c, op->node, op->name, &t);
    if (st)
        return st;
    cert_codes_of(t.x, &lo, &hi);
    for (int32_t code = lo; !st && code <= hi; code++)
        st = check(&t, op, code);
    return st ? st : cert_equal(c, op->name, "the number of tables", t.rows, 1);
}

static qat_status check_curve_entry(const struct table *t, const cert_op *op, int32_t code)
{
    const cert_curve *curve = cert_curve_of(op->head);
    bool const own = curve->tflite && t->c->source->profile == QAT_PROFILE_TFLITE;
    double const value = curve->value(real_of(t->x, code));
    return own ? check_tflite(t, op, curve, code)
               : check_entry(t, 0, code, limited(op, value), TABLE_SLACK);
}

qat_status cert_check_curve(cert *c, const cert_op *op)
{
    return check_one_table(c, op, check_curve_entry);
}

static qat_status check_row_number(const struct table *t, const cert_op *op, int32_t code)
{
    return check_entry(t, 0, code, fmin(fmax(real_of(t->x, code), 0), op->act_max), TABLE_SLACK);
}

/** The nearest whole numbers from 0 to act_max: the rows of an embedding. */
qat_status cert_check_row_numbers(cert *c, const cert_op *op)
{
    return check_one_table(c, op, check_row_number);
}

/* ------------------------------------------------------------------ profile onnx */

static qat_status check_even_entry(const struct table *t, const cert_op *op, int32_t code)
{
    int32_t const least = cert_code_of_bound(t->y, op->act_min),
                  most = cert_code_of_bound(t->y, op->act_max);
    float const real = (float)real_of(t->x, code);
    double const steps = (double)(float)((double)real / (double)cert_scale(t->y));
    double const expected = fmin(fmax(rint(steps) + t->y->zero_point, least), most);
    return cert_equal(t->c, t->name, "an entry of the table",
                      code_at(t, 0, position_of(t->x, code)), (int64_t)expected);
}

/** What DequantizeLinear, a clamp and QuantizeLinear make of each code. */
qat_status cert_check_even_table(cert *c, const cert_op *op)
{
    return check_one_table(c, op, check_even_entry);
}

/** The codes from the other end, which stand for -x. */
qat_status cert_check_negated(cert *c, const qi_node *node, const char *name)
{
    struct table t;
    int32_t lo, hi;
    qat_status st = table_of(c, node, name, &t);
    if (st)
        return st;
    cert_codes_of(t.x, &lo, &hi);
    st = cert_equal(c, name, "the scale (as the bits of its float32)", t.y->scale_bits,
                    t.x->scale_bits);
    if (!st)
        st = cert_equal(c, name, "the zero point", t.y->zero_point, lo + hi - t.x->zero_point);
    if (!st)
        st = cert_equal(c, name, "the type", t.y->type, t.x->type);
    if (!st)
        st = cert_equal(c, name, "the number of bits", t.y->bits, t.x->bits);
    for (int i = 0; !st && i < 2; i++) {
        float const end = -cert_float(t.x->range_bits[1 - i]);
        if (cert_float(t.y->range_bits[i]) != end)
            st =
                qat_fail(c->err, QAT_ERR_MISMATCH, "%s: an end of its range is %.9g, expected %.9g",
                         name, (double)cert_float(t.y->range_bits[i]), (double)end);
    }
    for (int i = 0; !st && i < QI_MAX_RANK; i++)
        st = cert_equal(c, name, "a dimension", t.y->dims[i], t.x->dims[i]);
    for (int32_t code = lo; !st && code <= hi; code++)
        st = cert_equal(c, name, "an entry of the table", code_at(&t, 0, position_of(t.x, code)),
                        lo + hi - code);
    return st ? st : cert_equal(c, name, "the number of tables", t.rows, 1);
}

/* ------------------------------------------------------------------ elementwise ops of plugins */

/** The float op on one sample, its parameters being the source's. */
struct sample {
    qat_node y, x;
    qat_node *inputs;   /* copies of all of them */
    qat_node **readers; /* pointers to these */
    size_t values, channels;
};

static void sample_free(struct sample *s)
{
    qat_aligned_free(s->x.value);
    qat_aligned_free(s->y.value);
    qat_aligned_free(s->y.scratch);
    free(s->inputs);
    free(s->readers);
}

static qat_status give_parameters(cert *c, struct sample *s, const qat_node *head)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < head->n_inputs; i++) {
        const float *values = NULL;
        s->inputs[i] = *head->inputs[i];
        s->readers[i] = i == 0 ? &s->x : &s->inputs[i];
        if (i >= head->n_data)
            st = cert_values(c, s->inputs[i].name, qat_shape_count(&s->inputs[i].shape), &values);
        s->inputs[i].value = (float *)(uintptr_t)values; /* forward only reads it */
    }
    return st;
}

static qat_status sample_init(cert *c, struct sample *s, const qat_node *head)
{
    *s = (struct sample){.y = *head, .x = *head->inputs[0]};
    s->x.shape.dims[0] = 1;
    s->y.scratch = NULL;
    s->values = qat_shape_count(&s->x.shape);
    s->channels = (size_t)qat_shape_channels(&s->x.shape);
    s->x.value = qat_aligned_alloc(s->values * sizeof(float));
    s->y.value = qat_aligned_alloc(s->values * sizeof(float));
    s->inputs = calloc((size_t)head->n_inputs, sizeof *s->inputs);
    s->readers = calloc((size_t)head->n_inputs, sizeof(qat_node *));
    if (!s->x.value || !s->y.value || !s->inputs || !s->readers)
        return qat_out_of_memory(c->err, "certificate");
    qat_status st = give_parameters(c, s, head);
    s->y.inputs = s->readers;
    if (!st)
        st = head->op->shape(&s->y, c->err);
    if (!st)
        s->y.scratch = qat_aligned_alloc(s->y.scratch_bytes);
    if (!st && !s->y.scratch)
        st = qat_out_of_memory(c->err, "certificate");
    return st;
}

static qat_status check_samples(const struct table *t, const cert_op *op, struct sample *s)
{
    int32_t lo, hi;
    qat_status st = QAT_OK;
    cert_codes_of(t->x, &lo, &hi);
    for (int32_t code = lo; !st && code <= hi; code++) {
        for (size_t i = 0; i < s->values; i++)
            s->x.value[i] = (float)real_of(t->x, code);
        s->y.op->forward(&s->y, &(qat_run){.mode = QAT_MODE_EVAL});
        for (size_t i = 0; !st && i < s->channels; i++)
            st = check_entry(t, (int)i, code, limited(op, (double)s->y.value[i]), TABLE_SLACK);
    }
    return st;
}

qat_status cert_check_custom_table(cert *c, const cert_op *op)
{
    struct table t;
    struct sample s = {0};
    qat_status st = table_of(c, op->node, op->name, &t);
    if (!st)
        st = sample_init(c, &s, op->head);
    if (!st)
        st = check_samples(&t, op, &s);
    sample_free(&s);
    return st;
}

/* ------------------------------------------------------------------ kernels of plugins */

/** What the kernel computes is not known. Scale and zero point were compared already. */
qat_status cert_check_custom(cert *c, const cert_op *op)
{
    char why[QAT_NAME_MAX];
    snprintf(why, sizeof why, "op %s", op->node->kernel->name);
    cert_uncertified(c, op->name, why);
    return QAT_OK;
}
