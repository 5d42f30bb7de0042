/**
 * Times the matrix products of MobileNet v1 1.0/224's 1x1 convolutions (and its classifier) on one
 * core, beside the roof of their instructions. One JSON object is printed for each.
 *
 *     gemm [--isa NAME] [--uint8] [--rows M --depth K --channels N]
 *
 * Codes are random. Weights are int8 per channel, over the whole range. With --uint8 they are per
 * tensor and bell-shaped, as trained weights are. Each product runs as in the engine, piece by
 * piece. The fastest repetition counts.
 */
#include "base/rng.h"
#include "bench/speed/gemm_run.h"
#include "infer/host/loops/fast.h"
#include "tools/common/roof.h"
#include "tools/common/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct product {
    const char *name;
    int32_t rows, depth, channels;
};

static const struct product mobilenet[] = {
    {"conv_pw_1", 112 * 112, 32, 64},    {"conv_pw_2", 56 * 56, 64, 128},
    {"conv_pw_3", 56 * 56, 128, 128},    {"conv_pw_4", 28 * 28, 128, 256},
    {"conv_pw_5", 28 * 28, 256, 256},    {"conv_pw_6", 14 * 14, 256, 512},
    {"conv_pw_7-11", 14 * 14, 512, 512}, {"conv_pw_12", 7 * 7, 512, 1024},
    {"conv_pw_13", 7 * 7, 1024, 1024},   {"classifier", 1, 1024, 1001},
};

/** A layer's codes, in buffers of its own. */
struct layer {
    qi_gemm_layer layer;
    uint8_t *weights, *x, *y, *packed, *scratch;
    int32_t *columns; /* bias, mult, shift */
};

static uint8_t *random_bytes(size_t count, qat_rng *rng)
{
    uint8_t *bytes = aligned_alloc(QI_FAST_ALIGN, (count + 2 * QI_SLACK) / QI_SLACK * QI_SLACK);
    if (!bytes)
        abort();
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)qat_rng_next(rng);
    return bytes;
}

static void make_layer(struct layer *l, const struct product *p, const qi_gemm *gemm, int is_uint8)
{
    qat_rng rng = qat_rng_at(1, 0, 0);
    size_t const rows = (size_t)p->rows, depth = (size_t)p->depth, channels = (size_t)p->channels;
    qi_codes const weights = {.flip = is_uint8 ? 0 : 0x80, .offset = is_uint8 ? 121 : 128};
    l->weights = random_bytes(channels * depth, &rng);
    for (size_t i = 0; is_uint8 && i < channels * depth; i++)
        l->weights[i] = (uint8_t)(73 + qat_rng_next(&rng) % 33 + qat_rng_next(&rng) % 33 +
                                  qat_rng_next(&rng) % 33);
    l->x = random_bytes(rows * depth, &rng);
    l->y = random_bytes(rows * channels, &rng);
    l->columns = (int32_t *)(void *)random_bytes(3 * channels * sizeof(int32_t), &rng);
    for (size_t i = 0; i < channels; i++) {
        l->columns[i] = (int32_t)qat_rng_next(&rng) % 1000;
        l->columns[channels + i] = (1 << 30) + (int32_t)(qat_rng_next(&rng) % (1 << 30));
        l->columns[2 * channels + i] = -8;
    }
    qi_requant const requant = {.bias = l->columns,
                                .mult = l->columns + channels,
                                .shift = l->columns + 2 * channels,
                                .mult_step = 1,
                                .shift_step = 1,
                                .rounding = QI_ROUND_TWICE,
                                .zero_point = is_uint8 ? 0 : -128,
                                .lo = is_uint8 ? 0 : -128,
                                .hi = is_uint8 ? 255 : 127};
    l->layer = (qi_gemm_layer){.depth = p->depth,
                               .channels = p->channels,
                               .weights = l->weights,
                               .x_codes = {is_uint8 ? 0 : 0x80, 0},
                               .w_codes = weights,
                               .y_is_signed = !is_uint8,
                               .max_accumulator = (int64_t)p->depth * 255 * 255 + 1000,
                               .requant = requant};
    l->packed = random_bytes(gemm->packed_bytes(&l->layer), &rng);
    gemm->pack(&l->layer, l->packed);
    l->scratch = random_bytes(qi_gemm_scratch(gemm, &l->layer), &rng);
}

static void free_layer(struct layer *l)
{
    free(l->weights);
    free(l->x);
    free(l->y);
    free(l->packed);
    free(l->scratch);
    free(l->columns);
}

/** Seconds of the fastest repetition. */
static double fastest(const struct layer *l, const struct product *p, const qi_gemm *gemm)
{
    double const end = tool_now() + 0.4;
    double best = 1e9;
    for (double now = 0; now < end;) {
        double const start = tool_now();
        bench_gemm_run(gemm, &l->layer, p->rows, l->packed, l->x, l->y, l->scratch);
        now = tool_now();
        best = now - start < best ? now - start : best;
    }
    return best;
}

static const qi_isa *find(const char *name)
{
    const qi_isa *isa;
    for (int i = 0; (isa = qi_isa_entry(i)); i++)
        if (isa->gemm && isa->runs_here() && (!name || strcmp(isa->name, name) == 0))
            return isa;
    return NULL;
}

/** The roof of the sequence that the packed layer uses. */
static const tool_roof *roof_of(const qi_isa *isa, const void *packed, double *gmacs)
{
    const tool_roof *r;
    const char *sequence = isa->gemm->sequence ? isa->gemm->sequence(packed) : NULL;
    for (int i = 0; sequence && (r = tool_roof_at(i)); i++)
        if (strcmp(r->isa, isa->name) == 0 && strcmp(r->sequence, sequence) == 0) {
            *gmacs = tool_roof_measure(r);
            return r;
        }
    return tool_roof_of(isa->name, gmacs);
}

static void measure(const struct product *p, const qi_isa *isa, int is_uint8)
{
    struct layer l;
    double roof;
    make_layer(&l, p, isa->gemm, is_uint8);
    double const seconds = fastest(&l, p, isa->gemm);
    double const gmacs = (double)p->rows * p->depth * p->channels / seconds / 1e9;
    const tool_roof *sequence = roof_of(isa, l.packed, &roof);
    printf("{\"product\": \"%s\", \"rows\": %d, \"depth\": %d, \"channels\": %d, "
           "\"weights\": \"%s\", \"isa\": \"%s\", \"us\": %.1f, \"gmac_per_s\": %.1f",
           p->name, p->rows, p->depth, p->channels, is_uint8 ? "uint8" : "int8", isa->name,
           seconds * 1e6, gmacs);
    if (sequence)
        printf(", \"sequence\": \"%s\", \"roof_gmac_per_s\": %.1f, \"share\": %.2f",
               sequence->sequence, roof, gmacs / roof);
    printf("}\n");
    free_layer(&l);
}

int main(int argc, char **argv)
{
    struct product one = {.name = "one"};
    const char *name = NULL;
    int is_uint8 = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--uint8") == 0) {
            is_uint8 = 1;
            continue;
        }
        if (strcmp(argv[i], "--isa") == 0)
            name = value;
        else if (strcmp(argv[i], "--rows") == 0)
            one.rows = atoi(value);
        else if (strcmp(argv[i], "--depth") == 0)
            one.depth = atoi(value);
        else if (strcmp(argv[i], "--channels") == 0)
            one.channels = atoi(value);
        i++;
    }
    const qi_isa *isa = find(name);
    if (!isa || (one.rows > 0) != (one.depth > 0) || (one.rows > 0) != (one.channels > 0)) {
        fprintf(stderr, "usage: gemm [--isa NAME] [--uint8] [--rows M --depth K --channels N]\n");
        return 2;
    }
    if (one.rows > 0)
        measure(&one, isa, is_uint8);
    for (size_t i = 0; one.rows == 0 && i < sizeof mobilenet / sizeof mobilenet[0]; i++)
        measure(&mobilenet[i], isa, is_uint8);
    return 0;
}
