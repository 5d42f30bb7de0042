/**
 * Matrix products (lib/infer/host/loops/gemm.h): compares every variant with the scalar core, byte
 * for byte.
 *
 *     test_gemm [SEED [ROUNDS]]
 *
 * There are five kinds of cases. (1) The number of rows, of channels or the depth takes every
 * value up to beyond each register and tile; the other two are random. (2) There are more rows than
 * one block of a product has, and weights with a zero_point, which gives rows a term (eq. 8). (3)
 * Everything is random. (4) Sums lie on both sides of the steps between codes. (5) Weights are -1
 * and 1, and inputs have 2 or 3 bits: with 2, avx512vbmi must count bits of some of these.
 *
 * Products that can read rows in lines and segments (gemm.h, line_rows) get some of their cases so.
 * Every case chooses layouts, zero_points, fills of codes and weights (all 0, all 255, -128, edges,
 * ..), multipliers and shifts (left shifts, 0, -31), clamps, a misaligned base, strides wider than
 * the rows, and a part of the channels. Bytes around and between the outputs must not change, and
 * neither may those behind the packed layer.
 */
#include "kernels/kernel_test.h"

#include "infer/host/loops/fast.h"
#include "infer/host/loops/gemm.h"
#include "kernels/variants.h"
#include "slow.h"

enum { MOST_ROWS = 64, MOST_DEPTH = 1100, MOST_CHANNELS = 140, GUARD = 0xa5, MARGIN = 64 };

/** A layer, its operands, and the piece that is computed. */
struct test_case {
    qi_gemm_layer layer;
    qi_gemm_run run;
    int32_t bias[MOST_CHANNELS], mult[2 * MOST_CHANNELS], shift[MOST_CHANNELS];
    uint8_t weights[MOST_CHANNELS * MOST_DEPTH];
    int is_asymmetric; /* weights have a zero-point, and take their whole range */
    int binary;        /* 0; or weights are -1 and 1, and inputs have so many bits */
    char text[256];    /* what it is */
};

struct tally {
    int64_t cases, codes, sums, differing; /* sums: bytes of int32 among the codes */
    int64_t counted;                       /* layers whose weights became bits, in these cases */
};

/* ------------------------------------------------------------------ drawing */

/** D sum |w - Z_w| 2^fraction + |bias|, as the engine checks it. */
static int64_t largest_sum(const struct test_case *c, int32_t channel)
{
    const qi_gemm_layer *l = &c->layer;
    int64_t const up = 255 - l->x_codes.offset, down = l->x_codes.offset;
    int64_t sum = 0;
    for (int32_t k = 0; k < l->depth; k++)
        sum += abs((l->weights[channel * l->depth + k] ^ l->w_codes.flip) - l->w_codes.offset);
    return (sum * (up > down ? up : down) << l->requant.fraction) + labs(c->bias[channel]);
}

/** The lowest x' of inputs of few bits. */
static int lowest_input(const struct test_case *c)
{
    return c->layer.x_codes.flip ? 128 - (1 << (c->binary - 1)) : 0;
}

static void draw_binary(struct test_case *c, kt_rng *rng)
{
    qi_gemm_layer *l = &c->layer;
    l->x_bits = c->binary;
    l->x_codes.offset = (int16_t)(lowest_input(c) + kt_between(rng, 0, (1 << c->binary) - 1));
    l->w_codes = (qi_codes){.flip = 0x80, .offset = 128};
    for (int32_t i = 0; i < l->depth * l->channels; i++)
        c->weights[i] = kt_next(rng) % 2 ? 1 : 0xff;
    if (kt_next(rng) % 8 == 0) /* all but one */
        c->weights[kt_next(rng) % (uint32_t)(l->depth * l->channels)] = 2;
}

/** Bring bytes of x to its codes. */
static void limit_inputs(const struct test_case *c, uint8_t *x, size_t bytes)
{
    for (size_t i = 0; c->binary && i < bytes; i++)
        x[i] = (uint8_t)(lowest_input(c) + x[i] % (1 << c->binary)) ^ c->layer.x_codes.flip;
}

static void draw_codes(struct test_case *c, kt_rng *rng)
{
    qi_gemm_layer *l = &c->layer;
    int const symmetric = !c->is_asymmetric && kt_next(rng) % 2;
    l->x_codes.flip = kt_next(rng) % 2 ? 0x80 : 0;
    l->x_codes.offset = (int16_t)(kt_next(rng) % 3 ? kt_between(rng, 0, 255) : 128);
    l->w_codes.flip = symmetric || kt_next(rng) % 2 ? 0x80 : 0;
    l->w_codes.offset = (int16_t)(symmetric ? 128 : kt_between(rng, 0, 255));
    l->y_is_signed = kt_next(rng) % 2;
    l->weights = c->weights;
    kt_fill(c->weights, (size_t)(l->depth * l->channels), (int)(kt_next(rng) % KT_FILLS), rng);
    if (c->is_asymmetric)
        kt_fill(c->weights, (size_t)(l->depth * l->channels), KT_NOISE, rng);
    int const wild = 1 << kt_between(rng, 0, 10);   /* one in so many is no such weight */
    if (!c->is_asymmetric && kt_next(rng) % 3 == 0) /* bell-shaped, as trained weights are */
        for (int32_t i = 0; i < l->depth * l->channels; i++)
            if (kt_next(rng) % (uint32_t)wild || wild == 1)
                c->weights[i] = (uint8_t)(l->w_codes.flip ^
                                          (uint8_t)(l->w_codes.offset + kt_between(rng, -20, 20) +
                                                    kt_between(rng, -20, 20)));
    if (c->binary)
        draw_binary(c, rng);
}

/** The largest fraction <= most with which int32 holds all sums and biases of some size. */
static int32_t fraction_of(struct test_case *c, int32_t most)
{
    qi_gemm_layer *l = &c->layer;
    l->requant.fraction = most;
    for (int32_t i = 0; i < l->channels; i++) {
        c->bias[i] = 1 << 30;
        while (l->requant.fraction > 0 && largest_sum(c, i) > INT32_MAX)
            l->requant.fraction--;
    }
    return l->requant.fraction;
}

/** A multiplier that brings sums of up to most to codes, or, now and then, any. */
static void draw_twice(struct test_case *c, int32_t i, int64_t most, int kind, kt_rng *rng)
{
    int shift = -1;
    while (shift > -31 && (most >> -shift) > 200)
        shift--;
    c->mult[i] = kt_between(rng, 1 << 30, INT32_MAX);
    c->shift[i] = qi_clamp(shift + kt_between(rng, -1, 3), -31, kind == 0 ? -1 : 31);
    if (kind == 2 && kt_next(rng) % 4 == 0)
        c->shift[i] = kt_between(rng, -31, 31);
    if (kind == 2 && kt_next(rng) % 8 == 0)
        c->mult[i] = kt_next(rng) % 2 ? INT32_MAX : kt_between(rng, 0, INT32_MAX);
    if (kind == 2 && kt_next(rng) % 8 == 0)
        c->shift[i] = kt_next(rng) % 2 ? 0 : -31;
}

static void draw_double(struct test_case *c, int32_t i, int64_t most, kt_rng *rng)
{
    int bits = 0;
    while (most >> bits > 200)
        bits++;
    c->mult[2 * i] = (int32_t)kt_next(rng);
    c->mult[2 * i + 1] = kt_between(rng, 1 << 20, (1 << 21) - 1);
    if (kt_next(rng) % 4 == 0) /* few bits: ties occur */
        c->mult[2 * i] = 0, c->mult[2 * i + 1] &= ~0xffff;
    if (kt_next(rng) % 16 == 0)
        c->mult[2 * i] = c->mult[2 * i + 1] = 0;
    c->shift[i] = kt_next(rng) % 16 ? 1 - bits + kt_between(rng, -2, 2) : kt_between(rng, -99, 99);
}

static void draw_requant(struct test_case *c, kt_rng *rng)
{
    qi_gemm_layer *l = &c->layer;
    int const kind = (int)(kt_next(rng) % 6), is_double = kind == 3; /* 0: right shifts alone */
    int const is_sums = kind == 4, is_even = kind == 5;
    int const lowest = l->y_is_signed ? -128 : 0;
    int32_t const f =
        kind < 3 && kt_next(rng) % 2 ? fraction_of(c, kt_between(rng, 0, QI_MAX_FRACTION)) : 0;
    l->requant = (qi_requant){.fraction = f};
    l->max_accumulator = 0;
    for (int32_t i = 0; i < l->channels; i++) {
        c->bias[i] = kt_between(rng, -1000 * (1 << f), 1000 * (1 << f));
        int64_t const most = largest_sum(c, i);
        if (kt_next(rng) % 16 == 0)
            c->bias[i] =
                kt_next(rng) % 2 ? (int32_t)(INT32_MAX - most) : (int32_t)(most - INT32_MAX);
        int64_t const all = largest_sum(c, i);
        l->max_accumulator = all > l->max_accumulator ? all : l->max_accumulator;
        if (is_double)
            draw_double(c, i, most, rng);
        else
            draw_twice(c, i, most, kind, rng);
    }
    int32_t const lo = kt_between(rng, lowest, lowest + 255),
                  hi = kt_between(rng, lo, lowest + 255);
    int const whole = kt_next(rng) % 2;
    l->requant = (qi_requant){.bias = c->bias,
                              .mult = c->mult,
                              .shift = c->shift,
                              .mult_step = kt_next(rng) % 4 != 0,
                              .shift_step = kt_next(rng) % 4 != 0,
                              .rounding = is_sums     ? QI_ROUND_NONE
                                          : is_double ? QI_ROUND_DOUBLE
                                          : is_even   ? QI_ROUND_EVEN
                                                      : QI_ROUND_TWICE,
                              .fraction = f,
                              .zero_point = kt_between(rng, lowest, lowest + 255),
                              .lo = whole ? lowest : lo,
                              .hi = whole ? lowest + 255 : hi};
    if (kt_next(rng) % 3 == 0) { /* as after a ReLU */
        l->requant.lo = l->requant.zero_point;
        l->requant.hi = lowest + 255;
    }
}

/* ------------------------------------------------------------------ comparing */

/** Bytes of an output: a code, or with rounding NONE the sum. */
static int output_bytes(const struct test_case *c)
{
    return c->layer.requant.rounding == QI_ROUND_NONE ? 4 : 1;
}

/** Byte number `byte` of an output. */
static uint8_t expected(const struct test_case *c, int32_t row, int32_t channel, int byte)
{
    const qi_gemm_layer *l = &c->layer;
    int32_t const line = c->run.line ? c->run.line : c->run.rows;
    int32_t const segment = l->segment ? l->segment : l->depth;
    const uint8_t *x = c->run.x + (size_t)(row / line) * c->run.line_stride +
                       (size_t)(row % line) * c->run.x_stride;
    const uint8_t *w = l->weights + (size_t)channel * (size_t)l->depth;
    int32_t sum = 0;
    for (int32_t k = 0; k < l->depth; k++)
        sum += ((x[(size_t)(k / segment) * l->segment_stride + (size_t)(k % segment)] ^
                 l->x_codes.flip) -
                l->x_codes.offset) *
               ((w[k] ^ l->w_codes.flip) - l->w_codes.offset);
    if (l->requant.rounding == QI_ROUND_NONE)
        return (uint8_t)((uint32_t)(sum + l->requant.bias[channel]) >> 8 * byte);
    return (uint8_t)qi_requant_code(&l->requant, channel, sum);
}

/** Every byte of y that belongs to the piece, and every one that does not. */
static void compare(const struct test_case *c, const qi_gemm *gemm, const uint8_t *y, size_t bytes,
                    struct tally *t)
{
    const qi_gemm_run *r = &c->run;
    int reported = 0, each = output_bytes(c);
    for (size_t i = 0; i < bytes; i++) {
        int64_t const at = (int64_t)i - (r->y - y), row = at / (int64_t)r->y_stride;
        int64_t const channel = at % (int64_t)r->y_stride / each;
        int const inside =
            at >= 0 && row < r->rows && channel >= r->first_channel && channel < r->end_channel;
        int const byte = (int)(at % (int64_t)r->y_stride % each);
        int const want = inside ? expected(c, (int32_t)row, (int32_t)channel, byte) : GUARD;
        t->codes += inside;
        t->sums += inside && each > 1;
        if (y[i] == want)
            continue;
        t->differing++;
        if (!reported++ && t->differing < 20)
            printf("%s: %s: row %d, channel %d%s: %d, expected %d\n", gemm->name, c->text, (int)row,
                   (int)channel, inside ? "" : " (not to be written)", y[i], want);
    }
}

static void check_pack(const struct test_case *c, const qi_gemm *gemm, uint8_t *packed,
                       size_t bytes, struct tally *t)
{
    memset(packed, GUARD, bytes + QI_SLACK);
    gemm->pack(&c->layer, packed);
    for (size_t i = 0; i < QI_SLACK; i++)
        if (packed[bytes + i] != GUARD) {
            printf("%s: %s: pack writes past its end\n", gemm->name, c->text);
            t->differing++;
            return;
        }
}

/** Without weights, packed_bytes and scratch say as much as any weights need. */
static void check_most_bytes(const struct test_case *c, const qi_gemm *gemm, size_t bytes,
                             struct tally *t)
{
    qi_gemm_layer any = c->layer;
    any.weights = NULL;
    if (gemm->packed_bytes(&any) >= bytes &&
        qi_gemm_scratch(gemm, &any) >= qi_gemm_scratch(gemm, &c->layer))
        return;
    printf("%s: %s: packed_bytes or scratch without weights is too small\n", gemm->name, c->text);
    t->differing++;
}

/** Bytes of x from its first row to the slack after the last. */
static size_t bytes_of_x(const struct test_case *c)
{
    const qi_gemm_layer *l = &c->layer;
    int32_t const line = c->run.line ? c->run.line : c->run.rows;
    int32_t const segment = l->segment ? l->segment : l->depth;
    return (size_t)(c->run.rows / line - 1) * c->run.line_stride +
           (size_t)(line - 1) * c->run.x_stride +
           (size_t)(l->depth / segment - 1) * l->segment_stride + (size_t)segment + QI_SLACK;
}

/**
 * What run reads instead of the codes, or NULL: the codes themselves. Where rows follow each other,
 * run is asked to flip them there every other time.
 */
static uint8_t *flipped_codes(struct test_case *c, const qi_gemm *gemm, kt_rng *rng)
{
    uint8_t const flip = qi_gemm_flip(gemm, c->layer.x_codes);
    qi_gemm_run *r = &c->run;
    size_t const bytes = bytes_of_x(c);
    uint8_t *to = flip ? kt_memory(bytes) : NULL;
    int const by_run =
        gemm->flips && !r->line && r->x_stride == (size_t)c->layer.depth && kt_next(rng) % 2;
    r->codes = to && by_run ? r->x : NULL;
    if (r->codes)
        memset(to, GUARD, bytes);
    for (size_t i = 0; to && !by_run && i < bytes; i++)
        to[i] = r->x[i] ^ flip;
    return to;
}

static void run_case(struct test_case *c, const qi_gemm *gemm, kt_rng *rng, struct tally *t)
{
    qi_gemm_run *r = &c->run;
    if (c->layer.segment && !gemm->line_rows)
        return;
    int32_t const panels = (c->layer.channels - 1) / gemm->channel_tile + 1;
    int32_t const first = kt_next(rng) % 2 ? 0 : kt_between(rng, 0, panels - 1);
    int32_t const end = kt_next(rng) % 2 ? panels : kt_between(rng, first + 1, panels);
    size_t const packed_bytes = gemm->packed_bytes(&c->layer);
    uint8_t *packed = kt_memory(packed_bytes + QI_SLACK);
    size_t const y_bytes = 2 * MARGIN + (size_t)r->rows * r->y_stride;
    uint8_t *y = kt_memory(y_bytes);
    check_most_bytes(c, gemm, packed_bytes, t);
    check_pack(c, gemm, packed, packed_bytes, t);
    memset(y, GUARD, y_bytes);
    r->packed = packed;
    r->first_channel = first * gemm->channel_tile;
    r->end_channel = end == panels ? c->layer.channels : end * gemm->channel_tile;
    r->y = y + MARGIN + kt_between(rng, 0, 15);
    size_t const scratch = qi_gemm_scratch(gemm, &c->layer);
    uint8_t *memory = kt_memory(scratch + MARGIN);
    memset(memory, GUARD, scratch + MARGIN);
    r->scratch = memory;
    const uint8_t *x = r->x;
    uint8_t *flipped = flipped_codes(c, gemm, rng);
    r->x = flipped ? flipped : x;
    gemm->run(r);
    r->x = x;
    r->codes = NULL;
    free(flipped);
    for (size_t i = 0; i < MARGIN; i++)
        if (memory[scratch + i] != GUARD) {
            printf("%s: %s: scratch written past its end\n", gemm->name, c->text);
            t->differing++;
            break;
        }
    free(memory);
    compare(c, gemm, y, y_bytes - 16, t);
    t->cases++;
    const char *sequence = gemm->sequence ? gemm->sequence(packed) : NULL;
    t->counted += sequence && strstr(sequence, "popcnt") != NULL;
    free(y);
    free(packed);
}

/** Let rows lie in lines, and be of segments; both may overlap. */
static void draw_lines(struct test_case *c, kt_rng *rng)
{
    qi_gemm_run *r = &c->run;
    qi_gemm_layer *l = &c->layer;
    int32_t const segments = kt_between(rng, 2, 5), lines = kt_between(rng, 1, 4);
    if (l->depth % (4 * segments) || r->rows % lines)
        return;
    l->segment = l->depth / segments;
    r->line = r->rows / lines;
    r->x_stride = (size_t)kt_between(rng, 1, l->segment + 9);
    l->segment_stride = (size_t)kt_between(rng, 0, 3 * l->segment);
    r->line_stride = (size_t)kt_between(rng, 0, 3 * l->segment);
}

/** A case of these dimensions with every variant. */
static void check(struct test_case *c, int32_t rows, int32_t depth, int32_t channels, kt_rng *rng,
                  struct tally *tallies)
{
    qi_gemm_run *r = &c->run;
    c->layer = (qi_gemm_layer){.depth = depth, .channels = channels};
    draw_codes(c, rng);
    draw_requant(c, rng);
    int const fill = (int)(kt_next(rng) % KT_FILLS);
    size_t const stride = (size_t)depth + (kt_next(rng) % 2 ? 0 : kt_next(rng) % 70);
    size_t const offset = kt_next(rng) % 16;
    *r = (qi_gemm_run){.x_stride = stride,
                       .rows = rows,
                       .y_stride = (size_t)(channels * output_bytes(c)) +
                                   (kt_next(rng) % 2 ? 0 : kt_next(rng) % 40)};
    if (kt_next(rng) % 2)
        draw_lines(c, rng);
    size_t const bytes = offset + bytes_of_x(c);
    uint8_t *x = malloc(bytes);
    if (!x)
        exit(EXIT_FAILURE);
    kt_fill(x, bytes, KT_NOISE, rng);
    for (int32_t i = 0; i < rows && !c->layer.segment; i++)
        kt_fill(x + offset + (size_t)i * stride, (size_t)depth, fill, rng);
    if (c->layer.segment)
        kt_fill(x + offset, bytes - offset, fill, rng);
    limit_inputs(c, x, bytes);
    r->x = x + offset;
    snprintf(c->text, sizeof c->text,
             "%d rows in lines of %d, K %d in segments of %d, N %d, x ^ %#x - %d, w ^ %#x - %d, "
             "fill %d, rounding %d, fraction %d, zero_point %d, "
             "clamp %d..%d",
             rows, r->line, depth, c->layer.segment, channels, c->layer.x_codes.flip,
             c->layer.x_codes.offset, c->layer.w_codes.flip, c->layer.w_codes.offset, fill,
             c->layer.requant.rounding, c->layer.requant.fraction, c->layer.requant.zero_point,
             c->layer.requant.lo, c->layer.requant.hi);
    for (int i = 0; gemm_variant[i].name; i++)
        if (gemm_variant[i].runs_here())
            run_case(c, gemm_variant[i].table, rng, &tallies[i]);
    free(x);
}

/** The smallest sum >= -most that, without bias, gives at least this code, or most. */
static int32_t first_sum(const struct test_case *c, int32_t channel, int32_t code, int32_t most)
{
    int32_t below = -most, at = most;
    while (below < at) {
        int32_t const middle = (int32_t)(((int64_t)below + at) >> 1);
        if (qi_requant_code(&c->layer.requant, channel, middle) >= code)
            at = middle;
        else
            below = middle + 1;
    }
    return at;
}

/**
 * Sums on both sides of successive steps between codes, one a channel: they are biases, and x is
 * its zero_point. Half of the layers have rounding EVEN, some of these with many ties.
 */
static void check_steps(struct test_case *c, kt_rng *rng, struct tally *tallies)
{
    enum { ROWS = 3 };
    qi_gemm_layer *l = &c->layer;
    uint8_t x[ROWS + QI_SLACK];
    *l = (qi_gemm_layer){.depth = 1, .channels = MOST_CHANNELS};
    draw_codes(c, rng);
    memset(x, l->x_codes.offset ^ l->x_codes.flip, sizeof x);
    int32_t const most = kt_between(rng, 1 << kt_between(rng, 8, 28), 1 << 29);
    int const lowest = l->y_is_signed ? -128 : 0, relu = kt_next(rng) % 2;
    int const is_even = kt_next(rng) % 2;
    int32_t const first = kt_between(rng, 1, 255 - MOST_CHANNELS);
    draw_twice(c, 0, most, 0, rng);
    if (is_even && kt_next(rng) % 4 == 0)
        c->mult[0] = 1 << 30;
    l->max_accumulator = most;
    l->requant = (qi_requant){.bias = c->bias,
                              .mult = c->mult,
                              .shift = c->shift,
                              .rounding = is_even ? QI_ROUND_EVEN : QI_ROUND_TWICE,
                              .zero_point = lowest + (relu ? 0 : kt_between(rng, 0, 255)),
                              .lo = lowest,
                              .hi = lowest + 255};
    memset(c->bias, 0, sizeof c->bias);
    for (int32_t i = 0; i < l->channels; i++)
        c->bias[i] = first_sum(c, i, lowest + first + i, most) - (int32_t)(kt_next(rng) % 2);
    c->run = (qi_gemm_run){.x = x, .x_stride = 1, .rows = ROWS, .y_stride = MOST_CHANNELS};
    snprintf(c->text, sizeof c->text, "steps of sums to %d, zero_point %d, even %d", most,
             l->requant.zero_point, is_even);
    for (int i = 0; gemm_variant[i].name; i++)
        if (gemm_variant[i].runs_here())
            run_case(c, gemm_variant[i].table, rng, &tallies[i]);
}

static void sweep(struct test_case *c, kt_rng *rng, int rounds, struct tally *tallies)
{
    enum { TAILS = 100, MANY = 40 };
    for (int32_t i = 1; i <= TAILS; i++) {
        check(c, kt_between(rng, 1, 14), i, kt_between(rng, 1, 70), rng, tallies);
        check(c, kt_between(rng, 1, 14), kt_between(rng, 1, 70), i, rng, tallies);
        if (i <= MOST_ROWS)
            check(c, i, kt_between(rng, 1, 40), kt_between(rng, 1, 40), rng, tallies);
    }
    for (int i = 0; i < MANY; i++) {
        c->is_asymmetric = i % 4 != 0;
        check(c, kt_between(rng, MOST_ROWS + 1, 700), kt_between(rng, 1, 40),
              kt_between(rng, 1, 40), rng, tallies);
    }
    c->is_asymmetric = 0;
    for (int i = 0; i < rounds; i++)
        check_steps(c, rng, tallies);
    for (int i = 0; i < rounds / 4; i++) {
        c->binary = kt_between(rng, 2, 3);
        check(c, kt_between(rng, 1, kt_next(rng) % 8 ? 14 : 200), kt_between(rng, 240, MOST_DEPTH),
              kt_between(rng, 30, MOST_CHANNELS), rng, tallies);
    }
    c->binary = 0;
    for (int i = 0; i < rounds; i++) {
        int const deep = kt_next(rng) % 8 == 0;
        check(c, kt_between(rng, 1, deep ? 4 : 30), kt_between(rng, 1, deep ? MOST_DEPTH : 300),
              kt_between(rng, 1, deep ? 40 : MOST_CHANNELS), rng, tallies);
    }
}

int main(int argc, char **argv)
{
    static struct test_case c;
    static struct tally tallies[16];
    uint64_t const seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261121;
    int const rounds = argc > 2 ? atoi(argv[2]) : TEST_IS_SLOW ? 500 : 2000;
    kt_rng rng = {seed * 2 + 1};
    int failed = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    sweep(&c, &rng, rounds, tallies);
    for (int i = 0; gemm_variant[i].name; i++) {
        const gemm_entry *v = &gemm_variant[i];
        const struct tally *t = &tallies[i];
        if (!v->runs_here()) {
            printf("SKIP gemm %s: not on this processor\n", v->name);
            continue;
        }
        int const counts = strncmp(v->name, "avx512vbmi", strlen("avx512vbmi")) == 0;
        int const bad = t->differing || !t->codes || !t->sums || counts != (t->counted > 0);
        printf("%s - gemm %s: %lld cases, %lld bytes, %lld of them of sums, %lld layers counted, "
               "%lld differing\n",
               bad ? "not ok" : "ok", v->name, (long long)t->cases, (long long)t->codes,
               (long long)t->sums, (long long)t->counted, (long long)t->differing);
        failed += bad;
    }
    return failed != 0;
}
