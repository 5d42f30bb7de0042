/**
 * Appendix B: rules to scale an accumulator by M = mult 2^(shift - 31), and their mean difference
 * from acc M.
 *
 *     engine           srdhm: ties up       then / 2^n: ties away from zero
 *     RSHL             srdhm                then / 2^n: ties up
 *     SQDMULH          high product cut off then / 2^n: ties away from zero
 *     cut-off shift    srdhm                then / 2^n: cut off
 *     all cut off      floor(acc M)
 */
#include "bench/claims/claims.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>

static int32_t before_shift(int32_t acc, int shift)
{
    return shift > 0 ? qi_saturating_left_shift(acc, shift) : acc;
}

/** SQDMULH: the high half, cut off (towards -infinity). */
static int32_t high_cut_off(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 31);
}

static int32_t ties_up(int32_t acc, int32_t mult, int shift)
{
    int64_t const x = qi_srdhm(before_shift(acc, shift), mult);
    int const n = shift < 0 ? -shift : 0;
    return (int32_t)(n ? (x + (INT64_C(1) << (n - 1))) >> n : x);
}

static int32_t truncating_product(int32_t acc, int32_t mult, int shift)
{
    return qi_rdbp(high_cut_off(before_shift(acc, shift), mult), shift < 0 ? -shift : 0);
}

static int32_t truncating_shift(int32_t acc, int32_t mult, int shift)
{
    return qi_srdhm(before_shift(acc, shift), mult) >> (shift < 0 ? -shift : 0);
}

static int32_t all_cut_off(int32_t acc, int32_t mult, int shift)
{
    return high_cut_off(before_shift(acc, shift), mult) >> (shift < 0 ? -shift : 0);
}

const claims_rule claims_rules[CLAIMS_RULES] = {{"engine", qi_requantize},
                                                {"ties up (RSHL)", ties_up},
                                                {"SQDMULH", truncating_product},
                                                {"cut-off shift", truncating_shift},
                                                {"all cut off", all_cut_off}};

enum { DRAWS = 1000000 };

/** Mean of result - acc M over random multipliers and results of -128 .. 127 quanta. */
static double mean_error(const claims_rule *rule, int n)
{
    qat_rng rng = qat_rng_at(1, 2, (uint64_t)n);
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        int32_t const mult = (1 << 30) + (int32_t)qat_rng_below(&rng, 1u << 30);
        double const m = ldexp(mult, -31 - n);
        int32_t const acc = (int32_t)floor((256 * qat_rng_uniform(&rng) - 128) / m);
        sum += rule->requantize(acc, mult, -n) - acc * m;
    }
    return sum / DRAWS;
}

static void print_claim(const char *what, const claims_rule *rule, double share)
{
    enum { N = 3 };
    double const error = mean_error(rule, N);
    printf("claim: %s: %s: mean error %+.4f quanta at n = %d, of the engine's rule %+.4f, expected "
           "%+.4f\n",
           what, fabs(error) > 0.005 ? "found" : "not found", error, N, mean_error(claims_rules, N),
           share);
}

void claims_rounding(void)
{
    static const int shifts[] = {1, 2, 3, 4, 6, 8, 10};
    printf("mean of result - acc M in quanta, %d draws; M = mult 2^(-n - 31)\n\n| rule |", DRAWS);
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++)
        printf(" n = %d |", shifts[i]);
    printf("\n|---|---|---|---|---|---|---|---|\n");
    for (int r = 0; r < CLAIMS_RULES; r++) {
        printf("| %s |", claims_rules[r].name);
        for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++)
            printf(" %+.4f |", mean_error(&claims_rules[r], shifts[i]));
        printf("\n");
    }
    printf("\n");
    /* a tie is one remainder of 2^n, half of them negative; a cut takes half a step of its place */
    print_claim("ties up have an upward bias", &claims_rules[1], 0.5 / 8);
    print_claim("SQDMULH has a bias", &claims_rules[2], -0.5 / 8);
    print_claim("a shift that cuts off has a bias", &claims_rules[3], -0.5 + 0.5 / 8);
}
