/**
 * Lines of sums (lib/infer/host/loops/sum_line.h): compares them with the two roundings that they
 * stand for, at both sides of every step between codes, at 0 and at the largest sums.
 *
 *     test_sum_line [SEED [CHANNELS]]
 *
 * Channels are random, and those of real networks that have no line of their own multiplier. These
 * must get a turned one. Half of the random channels have a fraction.
 */
#include "kernels/kernel_test.h"

#include "infer/arithmetic/fixedpoint.h"
#include "infer/host/loops/sum_line.h"
#include "qat/infer.h"

/** A channel: codes lo..hi without zero_point, and how its sums become codes. most: largest |sum|.
 */
struct channel {
    int32_t mult, right, lo, hi;
    int64_t most;
    int32_t fraction, bias;
};

struct tally {
    int64_t own, turned, none, codes, differing, scaled, scaled_none;
    int64_t all[2], all_none[2]; /* one line for both signs; of whole sums */
};

static int64_t accumulator(const struct channel *c, int64_t s)
{
    return s * (1 << c->fraction) + c->bias;
}

static int32_t code_of(const struct channel *c, int64_t s)
{
    return qi_clamp(qi_requantize((int32_t)accumulator(c, s), c->mult, -c->right), c->lo, c->hi);
}

/** A line that is tried: for sums of this side, with this multiplier. */
struct trial {
    qi_sum_side side;
    int whole;
    int32_t mult;
    qi_sum_line line;
};

static int32_t code_by(const struct channel *c, const struct trial *l, int64_t s)
{
    int const f = l->whole ? 0 : c->fraction;
    int64_t const at = s * (1 << f) + l->line.add;
    int64_t const code = (at * l->mult >> (31 + c->right - (c->fraction - f))) - l->line.offset;
    if (at > INT32_MAX || at < INT32_MIN) /* what an inner loop holds */
        return INT32_MIN;
    return (int32_t)(code < c->lo ? c->lo : code > c->hi ? c->hi : code);
}

/** Compare sums around s, of the line's side and at most c->most in size. */
static void compare(const struct channel *c, const struct trial *l, int64_t s, struct tally *t)
{
    for (int64_t at = s - 2; at <= s + 2; at++) {
        qi_sum_side const side = accumulator(c, at) < 0 ? QI_SUMS_NEGATIVE : QI_SUMS_POSITIVE;
        if ((l->side != QI_SUMS_ALL && l->side != side) || at > c->most || at < -c->most)
            continue;
        int32_t const wanted = code_of(c, at), got = code_by(c, l, at);
        t->codes++;
        if (wanted == got)
            continue;
        if (!t->differing++)
            printf("multiplier %d by %d, right %d, codes %d..%d, fraction %d, bias %d, side %d, "
                   "whole %d: sum %lld is %d, not %d\n",
                   c->mult, l->mult, c->right, c->lo, c->hi, c->fraction, c->bias, (int)l->side,
                   l->whole, (long long)at, wanted, got);
    }
}

static void compare_all(const struct channel *c, const struct trial *l, struct tally *t)
{
    for (int32_t code = c->lo - 1; code <= c->hi + 1; code++) {
        double const a = (code - 0.5) * (double)(INT64_C(1) << (31 + c->right)) / c->mult;
        double const middle = (a - c->bias) / (1 << c->fraction);
        if (middle < 4e9 && middle > -4e9)
            compare(c, l, (int64_t)middle, t);
    }
    compare(c, l, 0, t);
    compare(c, l, -c->bias / (1 << c->fraction), t);
    compare(c, l, c->most, t);
    compare(c, l, -c->most, t);
}

/** Find the lines of a channel; turns: with turned multipliers alone. Returns whether there is one.
 */
static int check(const struct channel *c, int negative, int turns, struct tally *t)
{
    int32_t const first = negative || c->lo >= 0 ? c->lo + 1 : 1;
    int32_t const end = negative && c->hi >= 0 ? 1 : c->hi + 1;
    struct trial l = {.side = negative ? QI_SUMS_NEGATIVE : QI_SUMS_POSITIVE, .mult = c->mult};
    if (!turns && qi_sum_line_find(negative, c->mult, c->right, first, end, c->most, &l.line)) {
        t->own++;
        compare_all(c, &l, t);
        return 1;
    }
    int64_t const most = (c->most << c->fraction) + (c->bias < 0 ? -(int64_t)c->bias : c->bias);
    qi_sum_steps const steps = {c->mult, c->right, c->fraction, c->bias, most, 0};
    t->scaled += c->fraction > 0;
    for (int i = c->fraction ? -1 : 0; i < (c->fraction ? 0 : QI_SUM_LINE_TURNS); i++) {
        l.mult = i < 0 ? c->mult : qi_sum_line_turn(c->mult, c->right, most, i);
        if (!l.mult || !qi_sum_line_fit(l.side, &steps, l.mult, first, end, &l.line))
            continue;
        t->turned++;
        compare_all(c, &l, t);
        return 1;
    }
    t->none++;
    t->scaled_none += c->fraction > 0;
    return 0;
}

/** One line for all codes; whole: of whole sums, where a shift is left. */
static void check_all(const struct channel *c, int whole, struct tally *t)
{
    int64_t const most = (c->most << c->fraction) + (c->bias < 0 ? -(int64_t)c->bias : c->bias);
    qi_sum_steps const steps = {c->mult, c->right, c->fraction, c->bias, most, whole};
    struct trial l = {.side = QI_SUMS_ALL, .whole = whole, .mult = c->mult};
    if (whole && c->right <= c->fraction)
        return;
    t->all[whole]++;
    if (qi_sum_line_fit(l.side, &steps, l.mult, c->lo + 1, c->hi + 1, &l.line))
        compare_all(c, &l, t);
    else
        t->all_none[whole]++;
}

static struct channel draw(kt_rng *rng)
{
    struct channel c = {.mult = kt_between(rng, 1 << 30, INT32_MAX),
                        .right = kt_between(rng, 1, 15)};
    if (kt_next(rng) % 8 == 0)
        c.mult = kt_between(rng, 1, INT32_MAX);
    int32_t const zero_point = kt_between(rng, -128, 127);
    c.lo = (kt_next(rng) % 2 ? -128 : zero_point) - zero_point;
    c.hi = kt_between(rng, c.lo + zero_point, 127) - zero_point;
    c.most = kt_between(rng, 1, kt_next(rng) % 2 ? 1 << 22 : 1 << 30);
    return c;
}

/** The same with a fraction, as layers of few bits have it: the largest that int32 has room for. */
static struct channel draw_scaled(kt_rng *rng)
{
    struct channel c = draw(rng);
    c.most = kt_between(rng, 1, 1 << kt_between(rng, 1, 24));
    c.fraction = QI_MAX_FRACTION;
    while (c.most << c.fraction > INT32_MAX - (1 << 29))
        c.fraction--;
    c.right = kt_between(rng, 1, c.fraction + 8);
    int32_t const room = (int32_t)(INT32_MAX - (c.most << c.fraction));
    int32_t const most = room >> kt_between(rng, 0, 20);
    c.bias = kt_between(rng, -most, most);
    return c;
}

int main(int argc, char **argv)
{
    /* multiplier, right, codes, largest sum */
    static const struct channel rare[] = {
        {1398455978, 8, 0, 255, 884340, 0, 0},      {1593944290, 8, 0, 128, 799744, 0, 0},
        {1273504148, 8, -130, 125, 309624, 0, 0},   {1597113433, 8, 0, 255, 2945760, 0, 0},
        {1591073920, 9, 0, 127, 2658176, 0, 0},     {1607696174, 9, 0, 255, 5144370, 0, 0},
        {1306161943, 10, -103, 152, 5257845, 0, 0}, {1724819057, 10, 0, 255, 19863480, 0, 0},
        {1372748209, 9, 0, 255, 17628915, 0, 0},    {1473161903, 8, 0, 255, 2852430, 0, 0},
        {2003535426, 9, 0, 255, 4485450, 0, 0},     {1354898514, 8, 0, 255, 2017050, 0, 0},
        {1672079403, 9, 0, 255, 7268265, 0, 0},     {1150139608, 9, 0, 255, 10918590, 0, 0},
        {2146032748, 10, 0, 255, 18581595, 0, 0},   {1449483277, 5, 0, 255, 492789, 0, 0},
        {1711374759, 6, 0, 255, 1085094, 0, 0},
    };
    uint64_t const seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261123;
    int const channels = argc > 2 ? atoi(argv[2]) : 1000;
    kt_rng rng = {seed * 2 + 1};
    struct tally t = {0};
    int missing = 0;
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        missing += !check(&rare[i], 0, 0, &t);
    int const were_rare = t.own == 0;
    for (int i = 0; i < channels; i++) {
        struct channel const c = draw(&rng);
        for (int kind = 0; kind < 4; kind++)
            check(&c, kind % 2, kind / 2, &t);
        struct channel const scaled = draw_scaled(&rng);
        check(&scaled, 0, 1, &t);
        check(&scaled, 1, 1, &t);
        check_all(&scaled, 0, &t);
        check_all(&scaled, 1, &t);
    }
    int const failed = t.differing || missing || !were_rare || !t.own || !t.turned ||
                       t.scaled_none * 1000 > t.scaled || t.all_none[0] * 20 > t.all[0] ||
                       !t.all[0] || t.all_none[1] * 20 > t.all[1] || !t.all[1];
    printf("%s - sum_line: %lld lines, %lld turned ones, %lld not found, %d of them of networks; "
           "with a fraction %lld, %lld not found; for both signs %lld, %lld not found; of whole "
           "sums %lld, %lld not found; %lld codes, "
           "%lld differing (seed %llu)\n",
           failed ? "not ok" : "ok", (long long)t.own, (long long)t.turned, (long long)t.none,
           missing, (long long)t.scaled, (long long)t.scaled_none, (long long)t.all[0],
           (long long)t.all_none[0], (long long)t.all[1], (long long)t.all_none[1],
           (long long)t.codes, (long long)t.differing, (unsigned long long)seed);
    return failed;
}
