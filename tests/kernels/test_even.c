/**
 * Rounding EVEN in lanes (lib/infer/host/loops/even.h): compares the rule by which inner loops take
 * a code, or leave the sum to the scalar function, with that function, at both sides of every step
 * between codes, at 0 and at the largest sums. There a wrong code would be: elsewhere both agree.
 *
 *     test_even [SEED [CHANNELS]]
 *
 * Few of the sums between steps may be left, or the inner loops gain nothing; and a layer of usual
 * sums has to get the tail of these.
 */
#include "kernels/kernel_test.h"

#include "infer/arithmetic/fixedpoint.h"
#include "infer/host/loops/even.h"
#include "infer/host/loops/gemm_pack.h"

enum { CODES = 256, ANY_SUMS = 64 };

struct channel {
    int32_t mult, shift;
    int64_t most; /* largest |sum| */
    int doubled;
};

struct tally {
    int64_t with, without, sums, any, any_left, differing;
};

/** floor(a / 2^n) */
static int32_t shifted(int32_t a, int n)
{
    return a >> n;
}

/** As inner loops compute it. Returns 0: they leave the sum. */
static int value_of(const struct channel *c, const qi_even *e, int32_t sum, int32_t *value)
{
    int64_t const x = (int64_t)sum * (1 << e->left);
    int64_t const p = x * e->mult, h = c->doubled ? p >> 31 : p >> 32;
    if (x < INT32_MIN || x > INT32_MAX || h + e->add + e->span > INT32_MAX ||
        h + e->add < INT32_MIN)
        return -1; /* what a lane cannot hold */
    *value = shifted((int32_t)h + e->add, e->right);
    return *value == shifted((int32_t)h + e->add + e->span, e->right);
}

/** Returns whether the sum is left. */
static int compare(const struct channel *c, const qi_even *e, int64_t sum, struct tally *t)
{
    int32_t got = 0;
    if (sum > c->most || sum < -c->most)
        return 0;
    t->sums++;
    int const takes = value_of(c, e, (int32_t)sum, &got);
    int32_t const wanted = qi_requantize_even((int32_t)sum, c->mult, c->shift);
    /* a zero_point is a code, too: from 2^9 on both are clamped */
    if (takes < 0 || (takes && qi_clamp(got, -CODES, CODES) != qi_clamp(wanted, -CODES, CODES)))
        if (!t->differing++)
            printf("multiplier %d, shift %d, at most %lld, doubled %d: sum %lld is %d, not %d\n",
                   c->mult, c->shift, (long long)c->most, c->doubled, (long long)sum, wanted, got);
    return !takes;
}

static void check(const struct channel *c, kt_rng *rng, struct tally *t)
{
    qi_even e;
    if (!qi_even_of(c->mult, c->shift, c->most, c->doubled, &e)) {
        t->without++;
        return;
    }
    t->with++;
    double const scale = (double)(c->mult & ~127) / (double)(INT64_C(1) << 31);
    double const one = scale * (c->shift < 0 ? 1.0 / (double)(INT64_C(1) << -c->shift)
                                             : (double)(INT64_C(1) << c->shift));
    for (int32_t code = -CODES; code <= CODES && e.mult; code++) {
        double const middle = (code - 0.5) / one;
        for (int64_t d = -2; d <= 2 && middle < 4e9 && middle > -4e9; d++)
            compare(c, &e, (int64_t)middle + d, t);
    }
    for (int i = 0; i < ANY_SUMS; i++, t->any++) {
        int32_t const most = (int32_t)c->most;
        t->any_left += compare(c, &e, kt_between(rng, -most, most), t);
    }
    compare(c, &e, 0, t);
    compare(c, &e, c->most, t);
    compare(c, &e, -c->most, t);
}

static struct channel draw(kt_rng *rng)
{
    struct channel c = {.mult = kt_between(rng, 1 << 30, INT32_MAX),
                        .shift = kt_between(rng, -18, 2),
                        .most = kt_between(rng, 1, 1 << kt_between(rng, 4, 29)),
                        .doubled = (int)(kt_next(rng) % 2)};
    if (kt_next(rng) % 8 == 0)
        c.mult = kt_between(rng, 0, INT32_MAX);
    return c;
}

/** The tail that a layer gets with this multiplier's shift and largest sum. */
static int tail_with(int64_t most, int32_t shift)
{
    int32_t const mult = 1234567890, bias = 0;
    qi_panel_shape const shape = {
        .vectors = 2, .narrow = 1, .lanes = 16, .group = 4, .weight_size = 1};
    qi_gemm_layer const layer = {
        .depth = 4,
        .channels = 1,
        .max_accumulator = most,
        .requant = {.bias = &bias, .mult = &mult, .shift = &shift, .rounding = QI_ROUND_EVEN}};
    qi_packed packed;
    qi_pack_header(&packed, &layer, &shape);
    return packed.tail;
}

int main(int argc, char **argv)
{
    uint64_t const seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261129;
    int const channels = argc > 2 ? atoi(argv[2]) : 4000;
    kt_rng rng = {seed * 2 + 1};
    struct tally t = {0}, odd = {0};
    for (int i = 0; i < channels; i++) {
        struct channel const c = draw(&rng);
        check(&c, &rng, &t);
    }
    /* Ties, no bits that count, sums of 32 bits; every shift. */
    static const int32_t mults[] = {1 << 30, 3 << 29, 127, 0, INT32_MAX};
    static const int64_t most[] = {1, 1 << 12, 1 << 24, (1 << 30) - 1, INT32_MAX};
    for (size_t i = 0; i < sizeof mults / sizeof *mults; i++)
        for (size_t k = 0; k < sizeof most / sizeof *most; k++)
            for (int shift = -31; shift <= 31; shift++)
                for (int doubled = 0; doubled < 2; doubled++)
                    check(&(struct channel){mults[i], shift, most[k], doubled}, &rng, &odd);
    int const tails =
        tail_with(1 << 20, -9) == QI_TAIL_EVEN && tail_with(1 << 29, 2) == QI_TAIL_SCALAR;
    int const failed = t.differing || odd.differing || !t.with || !odd.with || !odd.without ||
                       t.any_left * 50 > t.any || t.sums < t.any || !tails;
    printf("%s - even: %lld channels, %lld left to the scalar function; %lld sums; of %lld random "
           "ones %lld left; %lld differing (seed %llu)\n",
           failed ? "not ok" : "ok", (long long)(t.with + odd.with),
           (long long)(t.without + odd.without), (long long)(t.sums + odd.sums), (long long)t.any,
           (long long)t.any_left, (long long)(t.differing + odd.differing),
           (unsigned long long)seed);
    return failed;
}
