/**
 * Where do kernels of bit planes pay? Times matrix products of codes of few bits as population
 * counts, beside the engine's product of the same shape with a byte for each code. One JSON object
 * is printed for each shape and numbers of bits. x86 with AVX-512 VPOPCNTDQ only.
 *
 *     sum_k x_k w_k = sum_{i,j} 2^(i+j) popcount(x_i & w_j)     x_i, w_j: bit i and j of all codes
 *
 * `bytes_us`: the engine's product. `planes_us`: a loop of this file. Its codes are unsigned. What
 * zero points add is left out, and so is the requantization, which the engine's product has: about
 * the best that a kernel can do. The planes of x are made in each run, because x comes in bytes.
 * `engine_us`: the engine's own kernel for weights of -1 and 1 and inputs of 2 bits, which does all
 * of it (lib/infer/host/x86/avx512vbmi_gemm.c); 0 for layers for which it does not use that kernel.
 * They take turns, and the fastest repetition counts. `wrong` counts sums that are not those of a
 * plain loop, and an answer of the engine's that is not that with bytes; the exit status is 1 then.
 */
#include "base/rng.h"
#include "bench/speed/gemm_run.h"
#include "infer/host/loops/fast.h"
#include "infer/host/x86/x86.h"
#include "tools/common/tool.h"

#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLANES_TARGET __attribute__((target("avx512f,avx512bw,avx512vpopcntdq")))
#define INLINE_PLANES PLANES_TARGET static inline __attribute__((always_inline))

enum { WORD = 64, LANES = 8, MOST_ROWS = 4, MOST_SUMS = 5 };

struct shape {
    const char *name;
    int32_t rows, depth, channels;
};

/* 3x3 convolutions of ResNet-20 and of a wider network, and 1x1 convolutions. */
static const struct shape shapes[] = {
    {"3x3, 16 channels", 32 * 32, 9 * 16, 16}, {"3x3, 32 channels", 16 * 16, 9 * 32, 32},
    {"3x3, 64 channels", 8 * 8, 9 * 64, 64},   {"3x3, 256 channels", 8 * 8, 9 * 256, 256},
    {"1x1, 256 channels", 14 * 14, 256, 256},  {"1x1, 512 channels", 14 * 14, 512, 512},
    {"1x1, 1024 channels", 7 * 7, 1024, 1024}, {"fully connected", 1, 1024, 1000},
};

/** Codes in bytes, and in planes: of 64 codes of a row, one word for each of their bits. */
struct codes {
    int32_t rows, depth, words;
    int bits;
    uint8_t *bytes;   /* [rows][depth] */
    uint64_t *planes; /* x: [rows][words][bits]; w: [rows / LANES][words][bits][LANES] */
};

static void *allocate(size_t bytes)
{
    void *p = aligned_alloc(QI_FAST_ALIGN, (bytes + 2 * QI_SLACK) / QI_SLACK * QI_SLACK);
    if (!p)
        abort();
    return p;
}

static struct codes random_codes(int32_t rows, int32_t depth, int bits, qat_rng *rng)
{
    struct codes c = {
        .rows = rows, .depth = depth, .words = (depth + WORD - 1) / WORD, .bits = bits};
    size_t const count = (size_t)rows * (size_t)depth;
    c.bytes = allocate(count);
    c.planes = allocate((size_t)rows * (size_t)c.words * (size_t)bits * sizeof *c.planes);
    for (size_t i = 0; i < count; i++)
        c.bytes[i] = (uint8_t)(qat_rng_next(rng) & ((1u << bits) - 1));
    return c;
}

/** The planes of one row, `hop` words apart. */
PLANES_TARGET static void make_planes(const struct codes *c, int32_t row, uint64_t *to, size_t hop)
{
    const uint8_t *from = c->bytes + (size_t)row * (size_t)c->depth;
    for (int32_t k = 0; k < c->depth; k += WORD) {
        int32_t const left = c->depth - k;
        __mmask64 const there = left < WORD ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
        __m512i const codes = _mm512_maskz_loadu_epi8(there, from + k);
        for (int b = 0; b < c->bits; b++, to += hop)
            *to = _mm512_test_epi8_mask(codes, _mm512_set1_epi8((char)(1 << b)));
    }
}

static size_t row_words(const struct codes *c)
{
    return (size_t)c->words * (size_t)c->bits;
}

static void pack_weights(const struct codes *w)
{
    for (int32_t o = 0; o < w->rows; o++)
        make_planes(w, o, w->planes + (size_t)(o / LANES) * LANES * row_words(w) + o % LANES,
                    LANES);
}

/** Counts of a register. GCC would copy them in each step if they were of type __m512i between. */
typedef int64_t counts __attribute__((vector_size(64)));

/** Sums of a few rows of x and LANES channels of w. All numbers but of the place are constants. */
INLINE_PLANES void tile(const struct codes *x, const struct codes *w, int32_t row, int32_t channel,
                        int rows, int x_bits, int w_bits, int32_t *y)
{
    counts sum[MOST_ROWS][MOST_SUMS];
    for (int r = 0; r < rows; r++)
        for (int e = 0; e < x_bits + w_bits - 1; e++)
            sum[r][e] = (counts)_mm512_setzero_si512();
    const uint64_t *xs = x->planes + (size_t)row * row_words(x);
    const uint64_t *ws = w->planes + (size_t)channel * row_words(w);
    for (int32_t k = 0; k < x->words; k++, xs += x_bits, ws += w_bits * LANES)
        for (int j = 0; j < w_bits; j++) {
            __m512i const wj = _mm512_load_si512(ws + j * LANES);
            for (int r = 0; r < rows; r++)
                for (int i = 0; i < x_bits; i++) {
                    uint64_t const xi = xs[(size_t)r * row_words(x) + (size_t)i];
                    __m512i const both = _mm512_and_si512(wj, _mm512_set1_epi64((int64_t)xi));
                    sum[r][i + j] += (counts)_mm512_popcnt_epi64(both);
                }
        }
    for (int r = 0; r < rows; r++) {
        __m512i all = (__m512i)sum[r][0];
        for (int e = 1; e < x_bits + w_bits - 1; e++)
            all = _mm512_add_epi64(all, _mm512_slli_epi64((__m512i)sum[r][e], (unsigned)e));
        int32_t *to = y + (size_t)(row + r) * (size_t)w->rows + (size_t)channel;
        _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi64_epi32(all));
    }
}

/** y [rows of x][rows of w]; rows of w, channels, are a multiple of LANES. */
#define PRODUCT(X, W)                                                                              \
    PLANES_TARGET static void product_##X##_##W(const struct codes *x, const struct codes *w,      \
                                                int32_t *y)                                        \
    {                                                                                              \
        int32_t r = 0;                                                                             \
        for (; r < x->rows; r++)                                                                   \
            make_planes(x, r, x->planes + (size_t)r * row_words(x), 1);                            \
        for (r = 0; r + MOST_ROWS <= x->rows; r += MOST_ROWS)                                      \
            for (int32_t o = 0; o < w->rows; o += LANES)                                           \
                tile(x, w, r, o, MOST_ROWS, X, W, y);                                              \
        for (; r < x->rows; r++)                                                                   \
            for (int32_t o = 0; o < w->rows; o += LANES)                                           \
                tile(x, w, r, o, 1, X, W, y);                                                      \
    }
PRODUCT(2, 1)
PRODUCT(2, 2)
PRODUCT(3, 1)
PRODUCT(3, 2)
PRODUCT(4, 1)
PRODUCT(4, 2)

static const struct method {
    int x_bits, w_bits;
    void (*run)(const struct codes *x, const struct codes *w, int32_t *y);
} methods[] = {{2, 1, product_2_1}, {2, 2, product_2_2}, {3, 1, product_3_1},
               {3, 2, product_3_2}, {4, 1, product_4_1}, {4, 2, product_4_2}};

/** Sums that are not those of a plain loop. */
static int64_t wrong(const struct codes *x, const struct codes *w, const int32_t *y)
{
    int64_t count = 0;
    for (int32_t r = 0; r < x->rows; r++)
        for (int32_t o = 0; o < w->rows; o++) {
            int32_t sum = 0;
            for (int32_t k = 0; k < x->depth; k++)
                sum += x->bytes[(size_t)r * (size_t)x->depth + (size_t)k] *
                       w->bytes[(size_t)o * (size_t)w->depth + (size_t)k];
            count += sum != y[(size_t)r * (size_t)w->rows + (size_t)o];
        }
    return count;
}

/* ------------------------------------------------------------------ the engine's product */

struct engine {
    const qi_gemm *gemm;
    qi_gemm_layer layer;
    int32_t rows;
    int32_t *columns; /* bias of each channel; mult, shift */
    uint8_t *weights, *packed, *scratch, *y;
};

/** Weights of one bit become -1 and 1. x_bits: what the product may know of x */
static struct engine make_engine(const struct codes *x, const struct codes *w, int x_bits,
                                 const qi_gemm *gemm)
{
    size_t const channels = (size_t)w->rows, count = channels * (size_t)w->depth;
    struct engine e = {.gemm = gemm,
                       .rows = x->rows,
                       .columns = allocate((channels + 2) * sizeof(int32_t)),
                       .weights = allocate(count)};
    memset(e.columns, 0, channels * sizeof *e.columns);
    e.columns[channels] = 1 << 30;
    e.columns[channels + 1] = -4;
    for (size_t i = 0; i < count; i++)
        e.weights[i] = w->bits == 1 ? (uint8_t)(2 * w->bytes[i] - 1) : w->bytes[i];
    e.layer = (qi_gemm_layer){.depth = x->depth,
                              .channels = w->rows,
                              .weights = e.weights,
                              .x_bits = x_bits,
                              .w_codes = {.flip = 0x80, .offset = 128},
                              .max_accumulator = (int64_t)x->depth * 15 * 3 + 1,
                              .requant = {.bias = e.columns,
                                          .mult = e.columns + channels,
                                          .shift = e.columns + channels + 1,
                                          .rounding = QI_ROUND_TWICE,
                                          .lo = 0,
                                          .hi = (1 << x->bits) - 1}};
    e.packed = allocate(gemm->packed_bytes(&e.layer));
    gemm->pack(&e.layer, e.packed);
    e.scratch = allocate(qi_gemm_scratch(gemm, &e.layer));
    e.y = allocate((size_t)x->rows * (size_t)w->rows);
    return e;
}

static void run_engine(const struct engine *e, const struct codes *x)
{
    bench_gemm_run(e->gemm, &e->layer, e->rows, e->packed, x->bytes, e->y, e->scratch);
}

static void free_engine(struct engine *e)
{
    free(e->columns);
    free(e->weights);
    free(e->packed);
    free(e->scratch);
    free(e->y);
}

/* ------------------------------------------------------------------ */

/** Does the engine's product make planes of the layer? */
static bool has_planes(const struct engine *e)
{
    return e->gemm->sequence && e->gemm->sequence(e->packed);
}

static void keep_least(double *least, double *from)
{
    double const now = tool_now();
    *least = now - *from < *least ? now - *from : *least;
    *from = now;
}

/** What is wrong; see above. */
static int64_t measure(const struct shape *s, const struct method *m)
{
    qat_rng rng = qat_rng_at(1, 0, 0);
    struct codes x = random_codes(s->rows, s->depth, m->x_bits, &rng);
    struct codes w = random_codes(s->channels, s->depth, m->w_bits, &rng);
    struct engine bytes = make_engine(&x, &w, 0, &qi_gemm_avx512vbmi);
    struct engine own = make_engine(&x, &w, m->x_bits, &qi_gemm_avx512vbmi);
    int32_t *y = allocate((size_t)s->rows * (size_t)s->channels * sizeof *y);
    double least[3] = {1e9, 1e9, 1e9}, now = tool_now(), end = now + 0.5;
    pack_weights(&w);
    while (now < end) {
        run_engine(&bytes, &x);
        keep_least(&least[0], &now);
        m->run(&x, &w, y);
        keep_least(&least[1], &now);
        if (has_planes(&own))
            run_engine(&own, &x);
        keep_least(&least[2], &now);
    }
    int64_t off = wrong(&x, &w, y);
    off += has_planes(&own) && memcmp(bytes.y, own.y, (size_t)s->rows * (size_t)s->channels);
    printf(
        "{\"product\": \"%s\", \"rows\": %d, \"depth\": %d, \"channels\": %d, "
        "\"weight_bits\": %d, \"input_bits\": %d, \"bytes_us\": %.1f, \"planes_us\": %.1f, "
        "\"planes_speed\": %.2f, \"engine_us\": %.1f, \"engine_speed\": %.2f, \"wrong\": %lld}\n",
        s->name, s->rows, s->depth, s->channels, m->w_bits, m->x_bits, least[0] * 1e6,
        least[1] * 1e6, least[0] / least[1], has_planes(&own) ? least[2] * 1e6 : 0,
        has_planes(&own) ? least[0] / least[2] : 0, (long long)off);
    free(x.bytes);
    free(x.planes);
    free(w.bytes);
    free(w.planes);
    free(y);
    free_engine(&bytes);
    free_engine(&own);
    return off;
}

int main(void)
{
    if (qi_isa_runs_here("avx512vbmi") != 1) {
        fprintf(stderr, "bit_planes: this processor has no AVX-512 VPOPCNTDQ and VBMI\n");
        return 1;
    }
    int64_t off = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof methods / sizeof *methods; k++)
            off += measure(&shapes[i], &methods[k]);
    return off != 0;
}
