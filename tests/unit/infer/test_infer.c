/**
 * Compares the kernels of the integer engine with references that are written here directly from
 * the formulas (int64 sums, no tiles, no tables). The layers are small and random: shapes, strides,
 * dilations, groups, padding, bits, both types, extreme codes. All bytes must be equal.
 */
#include "common/common.h"
#include "common/suite.h"
#include "infer/arithmetic/fixedpoint.h"
#include "infer/host/host.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 300, MOST_VALUES = 1 << 16 };

/** One layer under test: a one-op model, its input and what is expected. */
struct trial {
    uint64_t seed;
    qat_qgraph *g;
    codes_of x, w, y;
    int input, output;
    uint8_t in[MOST_VALUES], want[MOST_VALUES], got[MOST_VALUES];
    size_t n_in, n_out;
};

static struct trial *trial_new(int number)
{
    struct trial *t = calloc(1, sizeof *t);
    ck_assert_ptr_nonnull(t);
    t->seed = (uint64_t)number * 977 + 1;
    t->g = qat_qgraph_new();
    ck_assert_ptr_nonnull(t->g);
    t->x = random_codes(&t->seed);
    t->w = random_codes(&t->seed);
    t->y = random_codes(&t->seed);
    return t;
}

static size_t product(const int32_t *dims, int rank)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    return n;
}

static void trial_io(struct trial *t, int x_rank, const int32_t *x, int y_rank, const int32_t *y)
{
    t->n_in = product(x, x_rank);
    t->n_out = product(y, y_rank);
    ck_assert_uint_le(t->n_in, MOST_VALUES);
    ck_assert_uint_le(t->n_out, MOST_VALUES);
    t->input = net_activation(t->g, t->x, x_rank, x);
    t->output = net_activation(t->g, t->y, y_rank, y);
    net_io(t->g, t->input, t->output);
    fill_codes(t->in, t->n_in, t->x, &t->seed);
}

/** The model with its answer, for other processors. */
static void keep(const struct trial *t, const char *what, int number)
{
    char name[64];
    size_t count;
    uint8_t *qm = net_write(t->g, t->in, t->want, &count);
    snprintf(name, sizeof name, "%s_%d", what, number);
    test_keep_model("unit", name, qm, count);
    free(qm);
}

/** Run the model, compare, free. */
static void trial_end(struct trial *t, const char *what, int number)
{
    qi_host *host = NULL;
    net_open(&host, t->g, QI_OK);
    keep(t, what, number);
    memset(host->arena, 0xa5, qi_arena_bytes(host->model));
    const void *in[] = {t->in};
    void *out[] = {t->got};
    qi_run(host->model, host->arena, in, out);
    for (size_t i = 0; i < t->n_out; i++)
        ck_assert_msg(t->got[i] == t->want[i], "%s, trial %d, byte %zu: got %d, expected %d", what,
                      number, i, t->got[i], t->want[i]);
    qi_host_close(host);
    qat_qgraph_free(t->g);
    free(t);
}

/* ------------------------------------------------------------------ accumulating layers */

/** Random bias, mult and shift for channels, per channel or shared. */
struct scaling {
    int32_t bias[64], mult[128], shift[64];
    int n_mult, n_shift;
};

/** Shift that brings accumulators of about largest to codes. */
static struct scaling random_scaling(struct trial *t, int channels, int64_t largest)
{
    struct scaling s = {.n_mult = test_random(&t->seed) & 1 ? channels : 1,
                        .n_shift = test_random(&t->seed) & 1 ? channels : 1};
    int length = 0;
    while (largest >> length)
        length++;
    for (int c = 0; c < channels; c++) {
        s.bias[c] = test_random_in(&t->seed, -1000, 1000);
        s.mult[c] = test_random_in(&t->seed, 1 << 30, INT32_MAX);
        int const shift = 11 - length + test_random_in(&t->seed, -2, 2);
        s.shift[c] = shift < -31 ? -31 : shift;
    }
    return s;
}

static int32_t want_code(const struct scaling *s, const struct trial *t, int o, int64_t acc,
                         int32_t lo, int32_t hi)
{
    int32_t const value = qi_requantize((int32_t)(acc + s->bias[o]), s->mult[s->n_mult > 1 ? o : 0],
                                        s->shift[s->n_shift > 1 ? o : 0]);
    int64_t const code = (int64_t)value + t->y.zero_point;
    return (int32_t)(code < lo ? lo : code > hi ? hi : code);
}

/** The largest |q - zero_point| of codes. */
static int64_t widest(codes_of c)
{
    int64_t const up = codes_hi(c) - c.zero_point, down = c.zero_point - codes_lo(c);
    return up > down ? up : down;
}

struct layer {
    int32_t n, h, w, c, oh, ow, o, kh, kw, sh, sw, dh, dw, pt, pl, groups;
};

static struct layer random_layer(uint64_t *seed)
{
    struct layer v;
    v.n = test_random_in(seed, 1, 2);
    v.h = test_random_in(seed, 1, 9);
    v.w = test_random_in(seed, 1, 9);
    v.kh = test_random_in(seed, 1, 4);
    v.kw = test_random_in(seed, 1, 4);
    v.sh = test_random_in(seed, 1, 3);
    v.sw = test_random_in(seed, 1, 3);
    v.dh = test_random_in(seed, 1, 3);
    v.dw = test_random_in(seed, 1, 3);
    v.groups = test_random_in(seed, 1, 3);
    v.c = v.groups * test_random_in(seed, 1, 20);
    v.o = v.groups * test_random_in(seed, 1, 9);
    v.pt = test_random_in(seed, 0, (v.kh - 1) * v.dh);
    v.pl = test_random_in(seed, 0, (v.kw - 1) * v.dw);
    v.oh = test_random_in(seed, 1, (v.h - 1 + v.pt) / v.sh + 1);
    v.ow = test_random_in(seed, 1, (v.w - 1 + v.pl) / v.sw + 1);
    return v;
}

/** q - zero_point at a pixel; 0 outside the picture. */
static int64_t pixel(const struct trial *t, const struct layer *v, int n, int y, int x, int c)
{
    if (y < 0 || y >= v->h || x < 0 || x >= v->w)
        return 0;
    size_t const at =
        (((size_t)n * (size_t)v->h + (size_t)y) * (size_t)v->w + (size_t)x) * (size_t)v->c +
        (size_t)c;
    return code_at(t->in, at, t->x) - t->x.zero_point;
}

/** max over channels of D sum |w - Z| + |bias|; weight i of channel o at first(o) + i step. */
static int64_t bound_of(const struct trial *t, const uint8_t *w, const struct scaling *s,
                        int o_count, size_t stride, size_t step, size_t depth)
{
    int64_t most = 0;
    for (int o = 0; o < o_count; o++) {
        int64_t sum = 0;
        for (size_t i = 0; i < depth; i++)
            sum +=
                llabs((long long)code_at(w, (size_t)o * stride + i * step, t->w) - t->w.zero_point);
        int64_t const bound = sum * widest(t->x) + llabs((long long)s->bias[o]);
        most = bound > most ? bound : most;
    }
    return most;
}

/** Append the op with its five inputs and the window parameters. */
static void add_layer(struct trial *t, const char *op, const struct layer *v, int weights,
                      const struct scaling *s, int32_t seventh, int32_t lo, int32_t hi,
                      int64_t bound)
{
    int const inputs[] = {t->input, weights, net_s32(t->g, v->o, 1, s->bias),
                          net_s32(t->g, s->n_mult, 1, s->mult),
                          net_s32(t->g, s->n_shift, 1, s->shift)};
    int32_t const params[] = {v->sh, v->sw, v->dh, v->dw, v->pt, v->pl, seventh, lo, hi};
    net_op(t->g, op, QI_ROUND_TWICE, 5, inputs, t->output, 9, params, bound);
}

static void random_clamp(struct trial *t, int32_t *lo, int32_t *hi)
{
    *lo = test_random_in(&t->seed, codes_lo(t->y), t->y.zero_point);
    *hi = test_random_in(&t->seed, t->y.zero_point, codes_hi(t->y));
}

static int64_t conv_sum(const struct trial *t, const struct layer *v, const uint8_t *w, int n,
                        int oy, int ox, int o)
{
    int const cg = v->c / v->groups, group = o / (v->o / v->groups);
    int64_t acc = 0;
    for (int ky = 0; ky < v->kh; ky++)
        for (int kx = 0; kx < v->kw; kx++)
            for (int c = 0; c < cg; c++) {
                size_t const at = (size_t)(((o * v->kh + ky) * v->kw + kx) * cg + c);
                acc += pixel(t, v, n, oy * v->sh - v->pt + ky * v->dh,
                             ox * v->sw - v->pl + kx * v->dw, group * cg + c) *
                       (code_at(w, at, t->w) - t->w.zero_point);
            }
    return acc;
}

static void trial_conv2d(int number)
{
    struct trial *t = trial_new(number);
    struct layer const v = random_layer(&t->seed);
    int32_t const x[] = {v.n, v.h, v.w, v.c}, y[] = {v.n, v.oh, v.ow, v.o};
    int32_t const wd[] = {v.o, v.kh, v.kw, v.c / v.groups};
    size_t const depth = product(wd + 1, 3);
    const uint8_t *w;
    int32_t lo, hi;
    random_clamp(t, &lo, &hi);
    trial_io(t, 4, x, 4, y);
    int const weights = net_constant(t->g, t->w, 4, wd, &t->seed, &w);
    struct scaling const s =
        random_scaling(t, v.o, (int64_t)depth * widest(t->x) * widest(t->w) / 4);
    add_layer(t, "conv2d", &v, weights, &s, v.groups, lo, hi,
              bound_of(t, w, &s, v.o, depth, 1, depth));
    size_t i = 0;
    for (int n = 0; n < v.n; n++)
        for (int oy = 0; oy < v.oh; oy++)
            for (int ox = 0; ox < v.ow; ox++)
                for (int o = 0; o < v.o; o++)
                    t->want[i++] =
                        (uint8_t)want_code(&s, t, o, conv_sum(t, &v, w, n, oy, ox, o), lo, hi);
    trial_end(t, "conv2d", number);
}

static int64_t depthwise_sum(const struct trial *t, const struct layer *v, const uint8_t *w, int n,
                             int oy, int ox, int o)
{
    int64_t acc = 0;
    for (int ky = 0; ky < v->kh; ky++)
        for (int kx = 0; kx < v->kw; kx++) {
            size_t const at = (size_t)((ky * v->kw + kx) * v->o + o);
            acc += pixel(t, v, n, oy * v->sh - v->pt + ky * v->dh, ox * v->sw - v->pl + kx * v->dw,
                         o / (v->o / v->c)) *
                   (code_at(w, at, t->w) - t->w.zero_point);
        }
    return acc;
}

static void trial_depthwise_conv2d(int number)
{
    struct trial *t = trial_new(number + TRIALS);
    struct layer v = random_layer(&t->seed);
    int const multiplier = test_random_in(&t->seed, 1, 3);
    v.c = test_random_in(&t->seed, 1, 20);
    v.o = v.c * multiplier;
    int32_t const x[] = {v.n, v.h, v.w, v.c}, y[] = {v.n, v.oh, v.ow, v.o};
    int32_t const wd[] = {1, v.kh, v.kw, v.o};
    const uint8_t *w;
    int32_t lo, hi;
    random_clamp(t, &lo, &hi);
    trial_io(t, 4, x, 4, y);
    int const weights = net_constant(t->g, t->w, 4, wd, &t->seed, &w);
    size_t const depth = (size_t)(v.kh * v.kw);
    struct scaling const s =
        random_scaling(t, v.o, (int64_t)depth * widest(t->x) * widest(t->w) / 4);
    add_layer(t, "depthwise_conv2d", &v, weights, &s, multiplier, lo, hi,
              bound_of(t, w, &s, v.o, 1, (size_t)v.o, depth));
    size_t i = 0;
    for (int n = 0; n < v.n; n++)
        for (int oy = 0; oy < v.oh; oy++)
            for (int ox = 0; ox < v.ow; ox++)
                for (int o = 0; o < v.o; o++)
                    t->want[i++] =
                        (uint8_t)want_code(&s, t, o, depthwise_sum(t, &v, w, n, oy, ox, o), lo, hi);
    trial_end(t, "depthwise_conv2d", number);
}

/** Sum of row r, output o. */
static int64_t row_sum(const struct trial *t, const uint8_t *w, size_t r, size_t o, size_t depth)
{
    int64_t acc = 0;
    for (size_t i = 0; i < depth; i++)
        acc += (int64_t)(code_at(t->in, r * depth + i, t->x) - t->x.zero_point) *
               (code_at(w, o * depth + i, t->w) - t->w.zero_point);
    return acc;
}

/** With rounding DOUBLE: significands instead of multipliers, shifts to match. */
static void make_double(struct trial *t, struct scaling *s, int channels)
{
    int const n = s->n_mult;
    int const shared_shift = s->n_shift == 1;
    for (int c = 0; c < n; c++) {
        s->mult[2 * c] = (int32_t)(test_random(&t->seed) * 2 + 1);
        s->mult[2 * c + 1] = test_random_in(&t->seed, 1 << 20, (1 << 21) - 1);
    }
    for (int c = 0; c < channels && !shared_shift; c++)
        s->shift[c] += 1;
}

static int32_t want_double(const struct scaling *s, const struct trial *t, int o, int64_t acc,
                           int32_t lo, int32_t hi)
{
    const int32_t *m = s->mult + (s->n_mult > 1 ? 2 * o : 0);
    int64_t const significand = (int64_t)m[1] * (INT64_C(1) << 32) + (uint32_t)m[0];
    int32_t const value = qi_requantize_double((int32_t)(acc + s->bias[o]), significand,
                                               s->shift[s->n_shift > 1 ? o : 0]);
    int64_t const code = (int64_t)value + t->y.zero_point;
    return (int32_t)(code < lo ? lo : code > hi ? hi : code);
}

static void trial_fully_connected(int number)
{
    struct trial *t = trial_new(number + 2 * TRIALS);
    int32_t const rows = test_random_in(&t->seed, 1, 20), depth = test_random_in(&t->seed, 1, 99);
    int32_t const outputs = test_random_in(&t->seed, 1, 17);
    int32_t const x[] = {rows, depth}, y[] = {rows, outputs}, wd[] = {outputs, depth};
    int const is_double = number & 1;
    const uint8_t *w;
    int32_t lo, hi;
    random_clamp(t, &lo, &hi);
    trial_io(t, 2, x, 2, y);
    int const weights = net_constant(t->g, t->w, 2, wd, &t->seed, &w);
    struct scaling s = random_scaling(t, outputs, (int64_t)depth * widest(t->x) * widest(t->w) / 4);
    int64_t const bound = bound_of(t, w, &s, outputs, (size_t)depth, 1, (size_t)depth);
    if (is_double)
        make_double(t, &s, outputs);
    int const inputs[] = {t->input, weights, net_s32(t->g, outputs, 1, s.bias),
                          net_s32(t->g, s.n_mult, is_double ? 2 : 1, s.mult),
                          net_s32(t->g, s.n_shift, 1, s.shift)};
    int32_t const params[] = {lo, hi};
    net_op(t->g, "fully_connected", is_double ? QI_ROUND_DOUBLE : QI_ROUND_TWICE, 5, inputs,
           t->output, 2, params, bound);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outputs; o++) {
            int64_t const acc = row_sum(t, w, (size_t)r, (size_t)o, (size_t)depth);
            t->want[r * outputs + o] = (uint8_t)(is_double ? want_double(&s, t, o, acc, lo, hi)
                                                           : want_code(&s, t, o, acc, lo, hi));
        }
    trial_end(t, "fully_connected", number);
}

/* ------------------------------------------------------------------ binary ops */

/** Codes of a, b where NumPy would broadcast them; dims of rank 4. */
static int32_t stretched(const uint8_t *codes, codes_of c, const int32_t *dims, const int32_t *at)
{
    size_t i = 0;
    for (int d = 0; d < 4; d++)
        i = i * (size_t)dims[d] + (size_t)(dims[d] == 1 ? 0 : at[d]);
    return code_at(codes, i, c);
}

static int64_t shifted(int32_t q, int32_t zero_point, const int32_t *p)
{
    return qi_requantize((q - zero_point) * (1 << 20), p[0], p[1]);
}

/** acc mult 2^(shift - 31) TWICE; or ONCE, in long double, which holds the product. */
static int32_t rounded(qi_rounding rounding, int64_t acc, int32_t mult, int32_t shift)
{
    if (rounding == QI_ROUND_TWICE)
        return qi_requantize((int32_t)acc, mult, shift);
    return (int32_t)floorl(ldexpl((long double)acc * mult, shift - 31) + 0.5L + 0x1p-15L);
}

static qi_rounding some_rounding(struct trial *t, qi_rounding usual)
{
    return test_random(&t->seed) % 2 ? QI_ROUND_ONCE : usual;
}

static int32_t want_binary(int kind, qi_rounding rounding, const struct trial *t, int32_t a,
                           int32_t b, const int32_t *p)
{
    int64_t x;
    if (kind == 2)
        x = (int64_t)(a - t->x.zero_point) * (b - t->w.zero_point);
    else
        x = shifted(a, t->x.zero_point, p + 1) +
            (kind == 0 ? 1 : -1) * shifted(b, t->w.zero_point, p + 3);
    const int32_t *last = kind == 2 ? p : p + 5;
    int64_t const code = (int64_t)rounded(rounding, x, last[0], last[1]) + t->y.zero_point;
    return (int32_t)(code < last[2] ? last[2] : code > last[3] ? last[3] : code);
}

static void trial_binary(int number)
{
    static const char *const ops[] = {"add", "sub", "mul"};
    struct trial *t = trial_new(number + 3 * TRIALS);
    int const kind = number % 3;
    int32_t a[4], b[4], y[4], lo, hi;
    for (int d = 0; d < 4; d++) {
        y[d] = test_random_in(&t->seed, 1, 7);
        a[d] = test_random(&t->seed) % 4 ? y[d] : 1;
        b[d] = test_random(&t->seed) % 4 && a[d] != 1 ? 1 : y[d];
    }
    random_clamp(t, &lo, &hi);
    trial_io(t, 4, a, 4, y);
    int skip = 0; /* leading ones may be left out */
    while (skip < 3 && b[skip] == 1)
        skip++;
    const uint8_t *data;
    int const inputs[] = {t->input, net_constant(t->g, t->w, 4 - skip, b + skip, &t->seed, &data)};
    int32_t const m = test_random_in(&t->seed, 1 << 30, INT32_MAX);
    int32_t const add_params[] = {20, m, -1, 1 << 30, 0, m, -18, lo, hi};
    int32_t const mul_params[] = {m, -8, lo, hi};
    const int32_t *params = kind == 2 ? mul_params : add_params;
    qi_rounding const rounding = some_rounding(t, QI_ROUND_TWICE);
    net_op(t->g, ops[kind], rounding, 2, inputs, t->output, kind == 2 ? 4 : 9, params, 0);
    size_t i = 0;
    for (int32_t j = 0; j < y[0]; j++)
        for (int32_t k = 0; k < y[1]; k++)
            for (int32_t l = 0; l < y[2]; l++)
                for (int32_t c = 0; c < y[3]; c++) {
                    int32_t const at[] = {j, k, l, c};
                    t->want[i++] =
                        (uint8_t)want_binary(kind, rounding, t, stretched(t->in, t->x, a, at),
                                             stretched(data, t->w, b, at), params);
                }
    trial_end(t, ops[kind], number);
}

/* ------------------------------------------------------------------ pools and mean */

static int32_t want_pool(const struct trial *t, const struct layer *v, int average, int once, int n,
                         int oy, int ox, int c)
{
    int64_t sum = 0, count = 0, most = INT32_MIN;
    for (int ky = 0; ky < v->kh; ky++)
        for (int kx = 0; kx < v->kw; kx++) {
            int const y = oy * v->sh - v->pt + ky, x = ox * v->sw - v->pl + kx;
            if (y < 0 || y >= v->h || x < 0 || x >= v->w)
                continue;
            int64_t const q = pixel(t, v, n, y, x, c) + t->x.zero_point;
            sum += q;
            count++;
            most = q > most ? q : most;
        }
    if (!average)
        return (int32_t)most;
    if (once)
        return (int32_t)floor((double)sum / (double)count + 0.5 + 1e-9);
    return (int32_t)((sum >= 0 ? sum + count / 2 : sum - count / 2) / count);
}

static void trial_pool(int number)
{
    struct trial *t = trial_new(number + 4 * TRIALS);
    struct layer v = random_layer(&t->seed);
    int const average = number & 1;
    int32_t lo, hi;
    v.dh = v.dw = 1;
    v.o = v.c;
    v.pt = test_random_in(&t->seed, 0, v.kh - 1);
    v.pl = test_random_in(&t->seed, 0, v.kw - 1);
    v.oh = test_random_in(&t->seed, 1, (v.h - 1 + v.pt) / v.sh + 1);
    v.ow = test_random_in(&t->seed, 1, (v.w - 1 + v.pl) / v.sw + 1);
    t->y = t->x;
    random_clamp(t, &lo, &hi);
    int32_t const x[] = {v.n, v.h, v.w, v.c}, y[] = {v.n, v.oh, v.ow, v.c};
    trial_io(t, 4, x, 4, y);
    int32_t const params[] = {v.kh, v.kw, v.sh, v.sw, v.pt, v.pl, lo, hi};
    qi_rounding const rounding = average ? some_rounding(t, QI_ROUND_NONE) : QI_ROUND_NONE;
    int const once = rounding == QI_ROUND_ONCE;
    net_op(t->g, average ? "average_pool2d" : "max_pool2d", rounding, 1, &t->input, t->output, 8,
           params, 0);
    size_t i = 0;
    for (int n = 0; n < v.n; n++)
        for (int oy = 0; oy < v.oh; oy++)
            for (int ox = 0; ox < v.ow; ox++)
                for (int c = 0; c < v.c; c++)
                    t->want[i++] =
                        (uint8_t)qi_clamp(want_pool(t, &v, average, once, n, oy, ox, c), lo, hi);
    trial_end(t, "pool", number);
}

static void trial_mean(int number)
{
    struct trial *t = trial_new(number + 5 * TRIALS);
    int32_t x[4], y[4], lo, hi;
    int32_t const mask = test_random_in(&t->seed, 1, 15);
    int64_t sums[2401] = {0}, n = 1;
    for (int d = 0; d < 4; d++) {
        x[d] = test_random_in(&t->seed, 1, 7);
        y[d] = mask >> d & 1 ? 1 : x[d];
        n *= mask >> d & 1 ? x[d] : 1;
    }
    random_clamp(t, &lo, &hi);
    trial_io(t, 4, x, 4, y);
    int32_t const params[] = {mask, test_random_in(&t->seed, 1 << 29, INT32_MAX), -5, lo, hi};
    qi_rounding const rounding = some_rounding(t, QI_ROUND_TWICE);
    net_op(t->g, "mean", rounding, 1, &t->input, t->output, 5, params, 0);
    size_t i = 0;
    for (int32_t j = 0; j < x[0]; j++)
        for (int32_t k = 0; k < x[1]; k++)
            for (int32_t l = 0; l < x[2]; l++)
                for (int32_t c = 0; c < x[3]; c++) {
                    int32_t const at[] = {j, k, l, c};
                    int32_t to = 0;
                    for (int d = 0; d < 4; d++)
                        to = to * y[d] + (mask >> d & 1 ? 0 : at[d]);
                    sums[to] += code_at(t->in, i++, t->x);
                }
    for (i = 0; i < t->n_out; i++) {
        int32_t const acc = (int32_t)(sums[i] - n * t->x.zero_point);
        t->want[i] = (uint8_t)qi_clamp(
            rounded(rounding, acc, params[1], params[2]) + t->y.zero_point, lo, hi);
    }
    trial_end(t, "mean", number);
}

/* ------------------------------------------------------------------ elementwise */

static void trial_requantize(int number)
{
    struct trial *t = trial_new(number + 6 * TRIALS);
    int32_t const dims[] = {test_random_in(&t->seed, 1, 600)};
    int32_t lo, hi;
    random_clamp(t, &lo, &hi);
    trial_io(t, 1, dims, 1, dims);
    int32_t const params[] = {test_random_in(&t->seed, 1 << 30, INT32_MAX),
                              test_random_in(&t->seed, -3, 3), lo, hi};
    qi_rounding const rounding = some_rounding(t, QI_ROUND_TWICE);
    net_op(t->g, "requantize", rounding, 1, &t->input, t->output, 4, params, 0);
    for (size_t i = 0; i < t->n_in; i++) {
        int32_t const value =
            rounded(rounding, code_at(t->in, i, t->x) - t->x.zero_point, params[0], params[1]);
        t->want[i] = (uint8_t)qi_clamp(value + t->y.zero_point, lo, hi);
    }
    trial_end(t, "requantize", number);
}

static void trial_sigmoid(int number)
{
    struct trial *t = trial_new(number + 7 * TRIALS);
    int32_t const dims[] = {test_random_in(&t->seed, 1, 600)};
    int const is_tanh = number & 1;
    t->y.zero_point = codes_lo(t->y) + (is_tanh ? 1 << (t->y.bits - 1) : 0);
    trial_io(t, 1, dims, 1, dims);
    int32_t const shift = test_random_in(&t->seed, 20, 24);
    int32_t const params[] = {test_random_in(&t->seed, 1 << 30, INT32_MAX), shift,
                              15 << (27 - shift)};
    net_op(t->g, is_tanh ? "tanh" : "logistic", QI_ROUND_NONE, 1, &t->input, t->output, 3, params,
           0);
    qi_input_scaling const in = {t->x.zero_point, params[0], params[1], params[2]};
    for (size_t i = 0; i < t->n_in; i++) {
        int32_t const q = code_at(t->in, i, t->x), lo = codes_lo(t->y);
        t->want[i] = (uint8_t)(is_tanh ? qi_tanh_code(q, &in, lo, t->y.bits)
                                       : qi_logistic_code(q, &in, lo, t->y.bits));
    }
    trial_end(t, "sigmoid", number);
}

static void trial_softmax(int number)
{
    struct trial *t = trial_new(number + 8 * TRIALS);
    int32_t const dims[] = {test_random_in(&t->seed, 1, 5), test_random_in(&t->seed, 1, 40)};
    t->y.zero_point = codes_lo(t->y);
    trial_io(t, 2, dims, 2, dims);
    int32_t const shift = test_random_in(&t->seed, 18, 25);
    int32_t const params[] = {test_random_in(&t->seed, 1 << 30, INT32_MAX), shift,
                              -(int32_t)((INT64_C(31) << 26) >> shift)};
    net_op(t->g, "softmax", QI_ROUND_NONE, 1, &t->input, t->output, 3, params, 0);
    qi_softmax const s = {params[0],          params[1],      params[2],
                          t->x.type == QI_S8, codes_lo(t->y), t->y.bits};
    for (int32_t r = 0; r < dims[0]; r++)
        qi_softmax_row(t->in + r * dims[1], t->want + r * dims[1], (size_t)dims[1], &s);
    trial_end(t, "softmax", number);
}

static void trial_table(int number)
{
    struct trial *t = trial_new(number + 9 * TRIALS);
    int32_t const channels = test_random_in(&t->seed, 1, 4);
    int32_t const dims[] = {test_random_in(&t->seed, 1, 50), channels};
    int const per_channel = number & 1;
    trial_io(t, 2, dims, 2, dims);
    int32_t const td[] = {channels, 256};
    const uint8_t *table;
    int const inputs[] = {t->input, per_channel
                                        ? net_constant(t->g, t->y, 2, td, &t->seed, &table)
                                        : net_constant(t->g, t->y, 1, td + 1, &t->seed, &table)};
    net_op(t->g, "table", QI_ROUND_NONE, 2, inputs, t->output, 0, NULL, 0);
    for (size_t i = 0; i < t->n_in; i++) {
        int32_t const at = code_at(t->in, i, t->x) + (t->x.type == QI_S8 ? 128 : 0);
        t->want[i] = table[(per_channel ? i % (size_t)channels * 256 : 0) + (size_t)at];
    }
    trial_end(t, "table", number);
}

/* ------------------------------------------------------------------ moving codes */

static void trial_concat_reshape(int number)
{
    struct trial *t = trial_new(number + 10 * TRIALS);
    int const axis = test_random_in(&t->seed, 0, 2);
    int32_t a[3], b[3], y[3];
    for (int d = 0; d < 3; d++) {
        a[d] = b[d] = y[d] = test_random_in(&t->seed, 1, 6);
    }
    b[axis] = test_random_in(&t->seed, 1, 6);
    y[axis] = a[axis] + b[axis];
    t->y = t->x;
    int32_t const flat[] = {(int32_t)product(a, 3)}, flat_y[] = {(int32_t)product(y, 3)};
    trial_io(t, 1, flat, 1, flat_y);
    const uint8_t *data;
    int const shaped = net_activation(t->g, t->x, 3, a);
    int const joined = net_activation(t->g, t->x, 3, y);
    int const parts[] = {shaped, net_constant(t->g, t->x, 3, b, &t->seed, &data)};
    net_op(t->g, "reshape", QI_ROUND_NONE, 1, &t->input, shaped, 0, NULL, 0);
    net_op(t->g, "concat", QI_ROUND_NONE, 2, parts, joined, 1, &axis, 0);
    net_op(t->g, "reshape", QI_ROUND_NONE, 1, &joined, t->output, 0, NULL, 0);
    size_t i = 0;
    for (int32_t j = 0; j < y[0]; j++)
        for (int32_t k = 0; k < y[1]; k++)
            for (int32_t c = 0; c < y[2]; c++) {
                int32_t at[] = {j, k, c};
                bool const first = at[axis] < a[axis];
                at[axis] -= first ? 0 : a[axis];
                const int32_t *d = first ? a : b;
                t->want[i++] = (first ? t->in : data)[(at[0] * d[1] + at[1]) * d[2] + at[2]];
            }
    trial_end(t, "concat", number);
}

/** Every kernel, TRIALS random layers each. */
static void (*const trials[])(int number) = {
    trial_conv2d,         trial_depthwise_conv2d, trial_fully_connected, trial_binary,  trial_pool,
    trial_mean,           trial_requantize,       trial_sigmoid,         trial_softmax, trial_table,
    trial_concat_reshape,
};
enum { N_TRIALS = sizeof trials / sizeof trials[0] };

START_TEST(test_kernel)
{
    for (int number = 0; number < TRIALS; number++)
        trials[_i](number);
}
END_TEST

/** A reshape whose input is a constant has memory of its own. */
START_TEST(test_reshape_of_constant)
{
    struct trial *t = trial_new(_i);
    int32_t const dims[] = {5}, two[] = {1, 5};
    t->y = t->x;
    trial_io(t, 1, dims, 2, two);
    const uint8_t *data;
    int const constant = net_constant(t->g, t->x, 1, dims, &t->seed, &data);
    net_op(t->g, "reshape", QI_ROUND_NONE, 1, &constant, t->output, 0, NULL, 0);
    memcpy(t->want, data, 5);
    trial_end(t, "reshape of a constant", _i);
}
END_TEST

/** Input bytes that are no codes of a tensor below 8 bits are limited to its codes. */
START_TEST(test_input_limited)
{
    struct trial *t = trial_new(_i);
    int32_t const dims[] = {4};
    t->x = t->y = (codes_of){QI_S8, 4, 0};
    trial_io(t, 1, dims, 1, dims);
    net_op(t->g, "reshape", QI_ROUND_NONE, 1, &t->input, t->output, 0, NULL, 0);
    memcpy(t->in, (const int8_t[]){-128, -8, 7, 127}, 4);
    memcpy(t->want, (const int8_t[]){-8, -8, 7, 7}, 4);
    trial_end(t, "limited input", _i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer");
    TCase *tcase = tcase_create("kernels");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, test_kernel, 0, N_TRIALS);
    tcase_add_test(tcase, test_reshape_of_constant);
    tcase_add_test(tcase, test_input_limited);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
