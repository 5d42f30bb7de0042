/**
 * Exact evaluation of conv2d, depthwise_conv2d, transpose_conv2d and fully_connected
 * (quant_conv.c), with differences from the zero_points in float64. Convolutions and fully
 * connected layers are matrix products by OpenBLAS dgemm; they are exact because every sum is an
 * integer below 2^31, or of 16-bit codes below 2^47. Depthwise sums are loops. The shared rounding
 * turns the sums into codes. Tiles do not depend on the number of threads.
 */
#include "autograd/loops/gemm.h"
#include "base/parallel.h"
#include "infer/arithmetic/fixedpoint.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** How the accumulators of an op become codes. */
struct output_stage {
    const qat_qtensor *y, *bias_of;
    const void *bias; /* of 32 or 64 bits */
    const int32_t *mult, *shift;
    bool per_channel, is_wide;
    qi_rounding rounding;
    int64_t one;              /* 2^fraction */
    qat_requantize_fn *other; /* NULL: qi_requantize */
    int32_t zero_point, lo, hi;
};

static struct output_stage output_stage_of(const qat_exact_call *call)
{
    const qat_qop *op = call->op;
    return (struct output_stage){
        .y = qat_exact_output(call),
        .bias_of = qat_exact_input(call, QAT_IN_BIAS),
        .bias = call->in[QAT_IN_BIAS],
        .mult = call->in[QAT_IN_MULT],
        .shift = call->in[QAT_IN_SHIFT],
        .per_channel = qat_exact_input(call, QAT_IN_SHIFT)->dims[0] > 1,
        .is_wide = qat_exact_input(call, QAT_IN_X)->type == QI_S16,
        .rounding = op->rounding,
        .one = INT64_C(1) << op->fraction,
        .other = call->requantize,
        .zero_point = qat_exact_output(call)->zero_point,
        .lo = op->params[op->n_params - 2],
        .hi = op->params[op->n_params - 1],
    };
}

static int32_t scaled_to_output(const struct output_stage *o, int64_t acc, int m)
{
    int32_t const narrow = (int32_t)acc; /* all of it, without a rounding for 64 bits */
    if (o->rounding == QI_ROUND_DOUBLE) {
        int64_t const significand = ((int64_t)o->mult[2 * m + 1] << 32) | (uint32_t)o->mult[2 * m];
        return o->is_wide ? qi_requantize_double_i64(acc, significand, o->shift[m])
                          : qi_requantize_double(narrow, significand, o->shift[m]);
    }
    if (o->rounding == QI_ROUND_LONG)
        return qi_requantize_i64(acc, o->mult[m], o->shift[m]);
    if (o->rounding == QI_ROUND_EVEN)
        return qat_exact_even((float)narrow, o->mult[m], o->shift[m]);
    return (o->other ? o->other : qi_requantize)(narrow, o->mult[m], o->shift[m]);
}

/**
 * Store the codes of consecutive output channels from `first` on, at value `at` of the output.
 * sums: exact integers, without bias.
 */
static void store_codes(const struct output_stage *o, int first, int channels, const double *sums,
                        void *codes, size_t at)
{
    for (int i = 0; i < channels; i++) {
        int const channel = first + i;
        int64_t const acc =
            (int64_t)sums[i] * o->one + qi_value_at(o->bias_of->type, o->bias, (size_t)channel);
        int32_t const scaled = scaled_to_output(o, acc, o->per_channel ? channel : 0);
        int64_t const code = (int64_t)scaled + o->zero_point;
        qat_exact_store_clamped(o->y, codes, at + (size_t)i, code, o->lo, o->hi);
    }
}

/** Differences of n codes from value `at` on. Of 16-bit codes they are the codes. */
static void read_differences(const qat_exact_call *call, const double difference[256], size_t at,
                             int n, double *to)
{
    const uint8_t *bytes = (const uint8_t *)call->in[QAT_IN_X];
    const int16_t *wide = call->in[QAT_IN_X];
    if (qat_exact_input(call, QAT_IN_X)->type == QI_S16)
        for (int i = 0; i < n; i++)
            to[i] = wide[at + (size_t)i];
    else
        for (int i = 0; i < n; i++)
            to[i] = difference[bytes[at + (size_t)i]];
}

/** A convolution as a matrix product. A fully connected layer is a convolution of 1x1 pixels. */
struct product {
    const qat_exact_call *call;
    struct output_stage out;
    int groups, rows_tile; /* rows: output pixels of the whole batch */
    int64_t rows;
    int depth, channels; /* of one group: values per row, output channels */
    int in_h, in_w, in_c, kernel_h, kernel_w, out_h, out_w;
    bool transposed;
    double difference[256]; /* q - Z of an input byte */
    double *weights;        /* [groups, channels, depth] differences */
    double *scratch;        /* by thread: rows_tile * (depth + channels) */
};

/**
 * The row or column (axis 0 or 1) of the input under tap k for output `out`; -1: none. A transposed
 * convolution has the taps that lie on a multiple of the stride.
 */
static int under_tap(const struct product *p, int axis, int out, int k)
{
    const int32_t *prm = p->call->op->params;
    int const size = axis ? p->in_w : p->in_h;
    int at = p->transposed ? out + prm[2 + axis] - k
                           : out * prm[axis] + k * prm[2 + axis] - prm[4 + axis];
    if (p->transposed && at % prm[axis])
        return -1;
    at = p->transposed ? at / prm[axis] : at;
    return at < 0 || at >= size ? -1 : at;
}

/** Write the differences for one output pixel and group, kernel position after kernel position. */
static void gather_row(const struct product *p, int64_t row, int group, double *to)
{
    int const ox = (int)(row % p->out_w), oy = (int)(row / p->out_w % p->out_h);
    size_t const picture =
        (size_t)(row / p->out_w / p->out_h) * (size_t)p->in_h * (size_t)p->in_w * (size_t)p->in_c;
    int const n = p->depth / (p->kernel_h * p->kernel_w);
    for (int ky = 0; ky < p->kernel_h; ky++) {
        int const y = under_tap(p, 0, oy, ky);
        for (int kx = 0; kx < p->kernel_w; kx++, to += n) {
            int const x = under_tap(p, 1, ox, kx);
            if (y < 0 || x < 0) {
                memset(to, 0, (size_t)n * sizeof *to);
                continue;
            }
            size_t const pixel = ((size_t)y * (size_t)p->in_w + (size_t)x) * (size_t)p->in_c;
            read_differences(p->call, p->difference, picture + pixel + (size_t)(group * n), n, to);
        }
    }
}

static void product_tile(void *context, int tile, int thread)
{
    const struct product *p = context;
    int64_t const first = (int64_t)tile * p->rows_tile;
    int const rows = (int)(p->rows - first < p->rows_tile ? p->rows - first : p->rows_tile);
    size_t const row_values = (size_t)p->depth + (size_t)p->channels;
    double *a = p->scratch + (size_t)thread * (size_t)p->rows_tile * row_values;
    double *c = a + (size_t)p->rows_tile * (size_t)p->depth;
    size_t const y = (size_t)first * (size_t)(p->groups * p->channels);
    for (int g = 0; g < p->groups; g++) {
        for (int r = 0; r < rows; r++) {
            double *to = a + (size_t)r * (size_t)p->depth;
            if (p->in_h)
                gather_row(p, first + r, g, to);
            else
                read_differences(p->call, p->difference, (size_t)(first + r) * (size_t)p->depth,
                                 p->depth, to);
        }
        const double *w = p->weights + (size_t)g * (size_t)p->channels * (size_t)p->depth;
        qat_gemm_f64(QAT_AS_IS, QAT_TRANSPOSED, rows, p->channels, p->depth, a, p->depth, w,
                     p->depth, 0.0, c, p->channels);
        for (int r = 0; r < rows; r++)
            store_codes(&p->out, g * p->channels, p->channels, c + (size_t)r * (size_t)p->channels,
                        p->call->out[0],
                        y + ((size_t)r * (size_t)p->groups + (size_t)g) * (size_t)p->channels);
    }
}

/** Tiles of about half a megabyte, for any number of threads. */
static int rows_per_tile(const struct product *p)
{
    int64_t const fit = (1 << 16) / ((int64_t)p->depth + p->channels);
    int64_t const rows = fit < 1 ? 1 : fit > 1024 ? 1024 : fit;
    return (int)(rows < p->rows ? rows : p->rows);
}

/** Check on the weights that sums fit int32, because the graph may come from anywhere. */
static qat_status check_accumulator(const qat_exact_call *call, bool depthwise, qat_error *err)
{
    int64_t largest;
    return qat_largest_accumulator(
        qat_exact_input(call, QAT_IN_X), qat_exact_input(call, QAT_IN_WEIGHTS),
        qat_exact_input(call, QAT_IN_BIAS), depthwise, call->op->rounding, call->op->fraction,
        call->op->name, &largest, err);
}

static void fill_differences(const qat_qtensor *t, double difference[256])
{
    int32_t whole[256];
    qat_exact_differences(t, whole);
    for (int i = 0; i < 256; i++)
        difference[i] = whole[i];
}

/** The difference of every weight from the zero_point; NULL: out of memory. */
static double *difference_values(const qat_qtensor *w)
{
    double difference[256];
    size_t const count = qat_qtensor_count(w);
    double *values = malloc(count * sizeof *values);
    fill_differences(w, difference);
    for (size_t i = 0; values && i < count; i++)
        values[i] = difference[((const uint8_t *)w->data)[i]];
    return values;
}

static qat_status run_product(struct product *p, qat_error *err)
{
    const qat_exact_call *call = p->call;
    qat_status st = check_accumulator(call, false, err);
    if (st)
        return st;
    p->out = output_stage_of(call);
    p->rows_tile = rows_per_tile(p);
    size_t const tile_values = (size_t)p->rows_tile * ((size_t)p->depth + (size_t)p->channels);
    p->weights = difference_values(qat_exact_input(call, QAT_IN_WEIGHTS));
    p->scratch = malloc((size_t)qat_threads() * tile_values * sizeof *p->scratch);
    if (p->weights && p->scratch)
        st = qat_gemm_prepare(err);
    if (p->weights && p->scratch && !st) {
        fill_differences(qat_exact_input(call, QAT_IN_X), p->difference);
        qat_parallel((int)((p->rows + p->rows_tile - 1) / p->rows_tile), product_tile, p);
    } else if (!st) {
        st = qat_out_of_memory(err, call->op->name);
    }
    free(p->weights);
    free(p->scratch);
    return st;
}

static qat_status windowed(const qat_exact_call *call, int groups, bool transposed, qat_error *err)
{
    const qat_qtensor *x = qat_exact_input(call, QAT_IN_X),
                      *w = qat_exact_input(call, QAT_IN_WEIGHTS);
    const qat_qtensor *y = qat_exact_output(call);
    struct product p = {
        .call = call,
        .groups = groups,
        .transposed = transposed,
        .rows = (int64_t)call->batch * y->dims[0] * y->dims[1] * y->dims[2],
        .depth = w->dims[1] * w->dims[2] * w->dims[3],
        .channels = w->dims[0] / groups,
        .in_h = x->dims[1],
        .in_w = x->dims[2],
        .in_c = x->dims[3],
        .kernel_h = w->dims[1],
        .kernel_w = w->dims[2],
        .out_h = y->dims[1],
        .out_w = y->dims[2],
    };
    return run_product(&p, err);
}

static qat_status exact_conv2d(const qat_exact_call *call, qat_error *err)
{
    return windowed(call, call->op->params[6], false, err);
}

static qat_status exact_transpose_conv2d(const qat_exact_call *call, qat_error *err)
{
    return windowed(call, 1, true, err);
}

static qat_status exact_fully_connected(const qat_exact_call *call, qat_error *err)
{
    const qat_qtensor *w = qat_exact_input(call, QAT_IN_WEIGHTS);
    size_t const values = qat_qtensor_count(qat_exact_input(call, QAT_IN_X));
    struct product p = {
        .call = call,
        .groups = 1,
        .rows = (int64_t)(values / (size_t)w->dims[1]) * call->batch,
        .depth = w->dims[1],
        .channels = w->dims[0],
    };
    return run_product(&p, err);
}

/** Depthwise: plain float64 sums, one per output channel of a pixel. */
struct depthwise {
    const qat_exact_call *call;
    struct output_stage out;
    double difference[256]; /* q - Z of an input byte */
    double *weights;        /* differences, [KH, KW, output channels] */
    double *sums;           /* by thread: output channels, then an input pixel */
};

static void add_products(const double *x, const double *w, int channels, int multiplier,
                         double *sums)
{
    if (multiplier == 1) {
        for (int c = 0; c < channels; c++)
            sums[c] += x[c] * w[c];
        return;
    }
    for (int c = 0; c < channels; c++)
        sums[c] += x[c / multiplier] * w[c];
}

static void depthwise_pixel(const struct depthwise *d, size_t picture, int oy, int ox, double *sums)
{
    const qat_qtensor *x = qat_exact_input(d->call, QAT_IN_X),
                      *w = qat_exact_input(d->call, QAT_IN_WEIGHTS);
    const int32_t *prm = d->call->op->params;
    const double *weights = d->weights;
    int const channels = w->dims[3];
    double *pixel = sums + channels;
    memset(sums, 0, (size_t)channels * sizeof *sums);
    for (int ky = 0; ky < w->dims[1]; ky++) {
        int const iy = oy * prm[0] + ky * prm[2] - prm[4];
        for (int kx = 0; kx < w->dims[2]; kx++, weights += channels) {
            int const ix = ox * prm[1] + kx * prm[3] - prm[5];
            if (iy < 0 || iy >= x->dims[1] || ix < 0 || ix >= x->dims[2])
                continue;
            size_t const at = (size_t)iy * (size_t)x->dims[2] + (size_t)ix;
            read_differences(d->call, d->difference, picture + at * (size_t)x->dims[3], x->dims[3],
                             pixel);
            add_products(pixel, weights, channels, prm[6], sums);
        }
    }
}

/** Compute one row of output pixels of one picture. */
static void depthwise_tile(void *context, int tile, int thread)
{
    const struct depthwise *d = context;
    const qat_qtensor *x = qat_exact_input(d->call, QAT_IN_X), *y = qat_exact_output(d->call);
    int const channels = y->dims[3];
    double *sums = d->sums + (size_t)thread * (size_t)(channels + x->dims[3]);
    size_t const values = (size_t)x->dims[1] * (size_t)x->dims[2] * (size_t)x->dims[3];
    size_t const picture = (size_t)(tile / y->dims[1]) * values;
    size_t to = (size_t)tile * (size_t)y->dims[2] * (size_t)channels;
    for (int ox = 0; ox < y->dims[2]; ox++, to += (size_t)channels) {
        depthwise_pixel(d, picture, tile % y->dims[1], ox, sums);
        store_codes(&d->out, 0, channels, sums, d->call->out[0], to);
    }
}

static qat_status exact_depthwise_conv2d(const qat_exact_call *call, qat_error *err)
{
    const qat_qtensor *y = qat_exact_output(call);
    struct depthwise d = {.call = call, .out = output_stage_of(call)};
    qat_status st = check_accumulator(call, true, err);
    if (st)
        return st;
    d.weights = difference_values(qat_exact_input(call, QAT_IN_WEIGHTS));
    size_t const values = (size_t)y->dims[3] + (size_t)qat_exact_input(call, QAT_IN_X)->dims[3];
    d.sums = malloc((size_t)qat_threads() * values * sizeof *d.sums);
    if (d.weights && d.sums) {
        fill_differences(qat_exact_input(call, QAT_IN_X), d.difference);
        qat_parallel(call->batch * y->dims[0] * y->dims[1], depthwise_tile, &d);
    } else {
        st = qat_out_of_memory(err, call->op->name);
    }
    free(d.weights);
    free(d.sums);
    return st;
}

/* ------------------------------------------------------------------ rows */

/**
 * The largest multiplier of accumulators, computed from the scales and not from the integers that
 * are to be checked.
 */
static double largest_multiplier(const qat_qgraph *graph, const qat_qop *op)
{
    const qat_qtensor *w = &graph->tensors[op->inputs[QAT_IN_WEIGHTS]];
    double scale = (double)w->scale;
    for (int i = 0; w->channel_scales && i < w->n_channels; i++)
        scale = fmax(scale, (double)w->channel_scales[i]);
    return ldexp(qat_input_scale(graph, op, QAT_IN_X) * scale / qat_output_scale(graph, op),
                 -op->fraction);
}

/**
 * For long sums in float32, 2^-20 of the largest accumulator is added. LONG cuts M to 15 bits,
 * which moves 2^15 codes by up to 1. The float layer has the rounded bias. A clamped bias may be
 * any distance away; freeze has warned about it.
 */
static double bound(const qat_qgraph *graph, const qat_qop *op)
{
    double const m = largest_multiplier(graph, op);
    bool const is_wide = graph->tensors[op->inputs[QAT_IN_X]].type == QI_S16;
    double const coarse = op->rounding == QI_ROUND_LONG ? 1.0 : 0.0;
    if (op->max_accumulator >= (is_wide ? (INT64_C(1) << 47) - 1 : INT32_MAX))
        return INFINITY;
    return qat_requantized_quanta(m) + coarse + m / (1 << 20) * (double)op->max_accumulator;
}

const qat_integer_op qat_integer_conv2d = {
    .name = "conv2d", .exact = exact_conv2d, .is_wide = true, .bound = bound};
const qat_integer_op qat_integer_depthwise_conv2d = {
    .name = "depthwise_conv2d", .exact = exact_depthwise_conv2d, .is_wide = true, .bound = bound};
const qat_integer_op qat_integer_transpose_conv2d = {
    .name = "transpose_conv2d", .exact = exact_transpose_conv2d, .is_wide = true, .bound = bound};
const qat_integer_op qat_integer_fully_connected = {
    .name = "fully_connected", .exact = exact_fully_connected, .is_wide = true, .bound = bound};
