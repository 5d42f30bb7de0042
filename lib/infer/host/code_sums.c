#include "infer/host/code_sums.h"

#include "infer/host/ask.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ one sum */

static int32_t add_saturating(int32_t a, int32_t b)
{
    return qi_clamp(a + b, INT8_MIN, INT8_MAX);
}

uint8_t qi_code_sum(const qi_code_sums *s, uint8_t a, uint8_t b)
{
    int32_t const half = add_saturating((int8_t)s->a.half[a], (int8_t)s->b.half[b]);
    int32_t const rest = add_saturating((int8_t)s->a.rest[a], (int8_t)s->b.rest[b]);
    int32_t const sum = add_saturating(half, add_saturating(rest, s->a.rank[a] > s->b.rank[b]));
    return (uint8_t)(qi_clamp(sum, s->lo, s->hi) ^ s->y_flip);
}

/* ------------------------------------------------------------------ ranks */

/** An operand in units of 2^-bits of the distance D: a fraction, or the distance of one to 1. */
struct part {
    int64_t fraction;
    int32_t whole;
    uint8_t byte, is_b;
};

enum { PARTS = 2 * QI_TABLE };

/** By fraction. Equal fractions carry, so those of b (the distances) come first. */
static int order(const void *a_, const void *b_)
{
    const struct part *a = a_, *b = b_;
    if (a->fraction != b->fraction)
        return a->fraction < b->fraction ? -1 : 1;
    return b->is_b - a->is_b;
}

/** The rescaled operands in units of D = 2^bits. */
static void fill_parts(const qi_model *model, const qi_node *node, int64_t nudge,
                       struct part parts[PARTS])
{
    const int32_t *p = node->params;
    int const bits = 31 - p[QI_ADD_SHIFT_Y];
    for (int which = 0; which < 2; which++) {
        qi_codes const codes = qi_codes_of(qi_input(model, node, which));
        int const mult = which ? QI_ADD_MULT_B : QI_ADD_MULT_A;
        int const sign = which && node->kernel == &qi_kernel_sub ? -1 : 1;
        for (int i = 0; i < QI_TABLE; i++) {
            int32_t const difference = (i ^ codes.flip) - codes.offset;
            int64_t const s =
                qi_requantize(difference * (1 << p[QI_ADD_LEFT_SHIFT]), p[mult], p[mult + 1]);
            int64_t const x =
                sign * s * p[QI_ADD_MULT_Y] + (which ? 0 : (INT64_C(1) << (bits - 1)) + nudge);
            int64_t const fraction = x & ((INT64_C(1) << bits) - 1);
            parts[which * QI_TABLE + i] =
                (struct part){which ? (INT64_C(1) << bits) - fraction : fraction,
                              (int32_t)(x >> bits), (uint8_t)i, (uint8_t)which};
        }
    }
}

/**
 * Turn fractions into ranks: of a, how many runs of distances are at or below the fraction; of b,
 * one less than the rank that is needed for a carry.
 */
static void rank_parts(struct part parts[PARTS])
{
    int32_t rank = 0, pending = 0;
    qsort(parts, PARTS, sizeof *parts, order);
    for (int i = 0; i < PARTS; i++) {
        rank += !parts[i].is_b && pending;
        pending = parts[i].is_b;
        parts[i].fraction = rank;
    }
}

/* ------------------------------------------------------------------ tables */

struct range {
    int32_t least, most;
};

static struct range range_of(const struct part parts[PARTS], int which)
{
    struct range r = {INT32_MAX, INT32_MIN};
    for (int i = 0; i < PARTS; i++)
        if (parts[i].is_b == which) {
            r.least = parts[i].whole < r.least ? parts[i].whole : r.least;
            r.most = parts[i].whole > r.most ? parts[i].whole : r.most;
        }
    return r;
}

/** Without the whole parts with which every sum is clamped, which the tables may saturate. */
static struct range useful(struct range of, struct range other, const qi_scaling *y)
{
    int32_t const least = y->lo - y->zero_point - other.most - 1;
    int32_t const most = y->hi - y->zero_point - other.least + 1;
    return (struct range){of.least < least ? least : of.least, of.most > most ? most : of.most};
}

/** How much of the zero-point goes to a, so that both operands fit LEAST..MOST. */
static int32_t offset_of_a(struct range a, struct range b, int32_t zero_point)
{
    enum { LEAST = 2 * INT8_MIN, MOST = 2 * INT8_MAX };
    int32_t const lo[] = {LEAST - a.least, zero_point - MOST + b.most};
    int32_t const hi[] = {MOST - a.most, zero_point - LEAST + b.least};
    return ((lo[0] > lo[1] ? lo[0] : lo[1]) + (hi[0] < hi[1] ? hi[0] : hi[1])) / 2;
}

static uint8_t saturated(int32_t x)
{
    return (uint8_t)qi_clamp(x, INT8_MIN, INT8_MAX);
}

static void make_tables(const qi_model *model, const qi_node *node, int64_t nudge, qi_code_sums *s)
{
    qi_scaling const y = qi_combine_of(model, node).y;
    struct part parts[PARTS];
    fill_parts(model, node, nudge, parts);
    rank_parts(parts);
    struct range const a = range_of(parts, 0), b = range_of(parts, 1);
    int32_t const offset = offset_of_a(useful(a, b, &y), useful(b, a, &y), y.zero_point);
    for (int i = 0; i < PARTS; i++) {
        const struct part *p = &parts[i];
        int32_t const whole = p->whole + (p->is_b ? y.zero_point - offset : offset);
        uint8_t const half = saturated(whole >> 1), rest = saturated(whole - (whole >> 1));
        uint8_t const rank = (uint8_t)qi_clamp((int32_t)p->fraction, 0, UINT8_MAX);
        (p->is_b ? s->b.half : s->a.half)[p->byte] = half;
        (p->is_b ? s->b.rest : s->a.rest)[p->byte] = rest;
        (p->is_b ? s->b.rank : s->a.rank)[p->byte] = rank;
    }
}

/* ------------------------------------------------------------------ checking */

/** Are the sums of all pairs the core's codes? */
static int is_exact(const qi_model *model, const qi_node *node, const qi_code_sums *s)
{
    uint8_t answers[QI_TABLE][QI_CHUNK];
    uint8_t const flip = qi_codes_of(qi_input(model, node, 0)).flip;
    for (int b = 0; b < QI_TABLE; b++) {
        if (b % QI_CHUNK == 0)
            qi_ask_pairs(model, node, 1, b, answers);
        for (int u = 0; u < QI_TABLE; u++)
            if (qi_code_sum(s, (uint8_t)u ^ flip, (uint8_t)b) != answers[u][b % QI_CHUNK])
                return 0;
    }
    return 1;
}

/** The thresholds of negative sums are half a unit of the high multiply elsewhere. */
int qi_code_sums_of_node(const qi_model *model, const qi_node *node, qi_code_sums *sums)
{
    static const int64_t nudge[] = {INT64_C(1) << 30, -(INT64_C(1) << 30), 0};
    qi_scaling const y = qi_combine_of(model, node).y;
    memset(sums, 0, sizeof *sums);
    sums->lo = (int8_t)y.lo;
    sums->hi = (int8_t)y.hi;
    sums->y_flip = y.y_flip;
    for (size_t i = 0; i < sizeof nudge / sizeof nudge[0]; i++) {
        make_tables(model, node, nudge[i], sums);
        if (is_exact(model, node, sums))
            return 1;
    }
    return 0;
}
