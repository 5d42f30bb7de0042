#include "infer/host/lines/pair_line.h"

#include "infer/arithmetic/fixedpoint.h"
#include "infer/host/lines/even_pairs.h"
#include "infer/kernels/add.h"

uint8_t qi_pair_line_code(const qi_pair_line *l, uint8_t a, uint8_t b)
{
    int32_t const x = 256 * (int8_t)(a ^ l->flip[0]), y = 256 * (int8_t)(b ^ l->flip[1]);
    int32_t const low = x * l->low[0] + y * l->low[1] + l->add_low;
    int32_t const high = x * l->high[0] + y * l->high[1] + l->add_high + (low >> 16);
    return (uint8_t)(qi_clamp(high >> 16, l->lo, l->hi) ^ l->y_flip);
}

/* ------------------------------------------------------------------ where the core's steps are */

/** Positions are in units of 2^-32 of a code, slopes and bounds of B in units of 2^-24. */
enum { NEAR = 1 << 20, MOST_PAIRS = 256, REACH = 4, HALF = 128, POSITION_BITS = 32 };

/** An operand: what it adds to the position, and the rescaled value, by u + 128; and its codes. */
struct operand {
    int64_t at[QI_TABLE];
    int32_t value[QI_TABLE]; /* not with rounding EVEN */
    int by;                  /* u + 128 less the code */
    int first, end;
};

/** A node. Positions are of[0].at + of[1].at + add, without the zero_point; the core's are at most
 * `off` from them. */
struct sums {
    qi_combine c;
    struct operand of[2];
    int64_t add, off;
    int is_even;
    qk_pairs even; /* rounding EVEN */
};

/** A pair whose position is near a step: the line must be at or above `bound`, or below it. */
struct near_pair {
    int32_t u[2];
    int64_t bound;
    int above;
};

struct near_pairs {
    int count;
    struct near_pair of[MOST_PAIRS];
};

static void fill_codes(const qi_tensor *t, struct operand *o)
{
    o->by = t->type == QI_U8 ? 0 : HALF;
    o->first = qi_code_lo(t) + o->by;
    o->end = qi_code_hi(t) + o->by + 1;
}

static void fill_operand(const qi_combine *c, int which, struct operand *o)
{
    qi_codes const codes = which ? c->b : c->a;
    int32_t const mult = which ? c->mult_b : c->mult_a, right = which ? c->right_b : c->right_a;
    int const sign = which && c->kind == QI_COMBINE_SUB ? -1 : 1;
    for (int i = 0; i < QI_TABLE; i++) {
        int32_t const x = (i - codes.offset) * (1 << c->left_shift);
        int64_t const p = (int64_t)sign * qi_requantize(x, mult, -right);
        o->value[i] = (int32_t)p;
        o->at[i] = c->y.right > 0 ? p * c->y.mult >> (c->y.right - 1) : p * c->y.mult * 2;
    }
}

/** i r as a position. |i| < 2^9, |r| < 2^12. */
static int64_t position_of(int32_t i, qi_binary32 r)
{
    int64_t const p = (int64_t)i * r.mant;
    int const left = r.exp + POSITION_BITS;
    return left >= 0 ? p * (INT64_C(1) << left) : p >> (left > -63 ? -left : 63);
}

static void fill_even_operand(qi_binary32 scale, struct operand *o)
{
    for (int i = 0; i < QI_TABLE; i++)
        o->at[i] = position_of(i - o->by, scale);
}

/** Fill what the operands add; 0: with rounding EVEN a multiplier is 4 or more. */
static int fill_sums(const qi_model *model, const qi_node *node, struct sums *s)
{
    enum { HALF_CODE = 31, ROUNDINGS = (1 << 19) + (1 << 16) };
    *s = (struct sums){.c = qi_combine_of(model, node),
                       .is_even = node->rounding == QI_ROUND_EVEN,
                       .add = INT64_C(1) << HALF_CODE};
    for (int i = 0; i < 2; i++)
        fill_codes(qi_input(model, node, i), &s->of[i]);
    if (!s->is_even) {
        s->off = s->c.y.right > 0 ? INT64_C(1) << (31 - s->c.y.right) : 0;
        fill_operand(&s->c, 0, &s->of[0]);
        fill_operand(&s->c, 1, &s->of[1]);
        return 1;
    }
    s->even = qi_even_sum_of(model, node);
    if (!s->even.is_fixed)
        return 0;
    int64_t const zero_point = s->even.zero_point * (INT64_C(1) << POSITION_BITS);
    s->off = ROUNDINGS;
    s->add += position_of(1, s->even.constant) - zero_point;
    fill_even_operand(s->even.scale_a, &s->of[0]);
    fill_even_operand(s->even.scale_b, &s->of[1]);
    return 1;
}

/** The core's value of a pair, without zero_point. With rounding EVEN it is clamped already. */
static int32_t core_value(const struct sums *s, int i, int j)
{
    if (s->is_even)
        return qk_add_even(&s->even, i - s->of[0].by, j - s->of[1].by) - s->even.zero_point;
    return qi_scaled(&s->c.y, s->of[0].value[i] + s->of[1].value[j]);
}

static void add_pair(const struct sums *s, int i, int j, struct near_pairs *pairs)
{
    int64_t const position = s->of[0].at[i] + s->of[1].at[j] + s->add;
    int32_t const step = (int32_t)((position + NEAR) >> POSITION_BITS);
    int64_t const code = (int64_t)step + s->c.y.zero_point;
    if (code <= s->c.y.lo || code > s->c.y.hi)
        return;
    if (pairs->count < MOST_PAIRS)
        pairs->of[pairs->count] =
            (struct near_pair){{i - HALF, j - HALF}, code * (1 << 24), core_value(s, i, j) >= step};
    pairs->count++;
}

/** Returns 0 if there are too many. */
static int find_pairs(const struct sums *s, struct near_pairs *pairs)
{
    const struct operand *o = s->of;
    uint32_t b[QI_TABLE];
    for (int j = 0; j < QI_TABLE; j++)
        b[j] = (uint32_t)o[1].at[j] + (uint32_t)s->add + NEAR;
    for (int i = o[0].first; i < o[0].end && pairs->count <= MOST_PAIRS; i++) {
        uint32_t const a = (uint32_t)o[0].at[i];
        int some = 0;
        for (int j = o[1].first; j < o[1].end; j++)
            some |= a + b[j] <= 2 * NEAR;
        for (int j = o[1].first; some && j < o[1].end; j++)
            if (a + b[j] <= 2 * NEAR)
                add_pair(s, i, j, pairs);
    }
    return pairs->count <= MOST_PAIRS;
}

/* ------------------------------------------------------------------ the line */

static int64_t slope_of(const struct operand *o)
{
    return ((o->at[QI_TABLE - 1] - o->at[0]) / (QI_TABLE - 1) + HALF) >> 8;
}

/** The middle of slope u - at(u), and half its range. */
struct error {
    int64_t middle, size;
};

static struct error error_of(const struct operand *o, int64_t slope)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int i = o->first; i < o->end; i++) {
        int64_t const e = (i - HALF) * slope * 256 - o->at[i];
        least = e < least ? e : least;
        most = e > most ? e : most;
    }
    return (struct error){least + (most - least) / 2, (most - least) / 2 + 1};
}

/** The bounds that the pairs set for B. */
struct room {
    int64_t least, most;
};

static struct room room_of(const struct near_pairs *pairs, const int64_t slope[2])
{
    struct room room = {INT64_MIN, INT64_MAX};
    for (int k = 0; k < pairs->count; k++) {
        const struct near_pair *p = &pairs->of[k];
        int64_t const b = p->bound - slope[0] * p->u[0] - slope[1] * p->u[1];
        if (p->above && b > room.least)
            room.least = b;
        if (!p->above && b - 1 < room.most)
            room.most = b - 1;
    }
    return room;
}

/** Split the line into what inner loops add. Returns 0 if some sum may not fit int32. */
static int split(const int64_t slope[2], int64_t b, qi_pair_line *line)
{
    int64_t low = UINT16_MAX, high = INT64_C(1) << 16;
    for (int i = 0; i < 2; i++) {
        int64_t const upper = (slope[i] + (1 << 15)) >> 16, lower = slope[i] - upper * (1 << 16);
        line->high[i] = (int16_t)upper;
        line->low[i] = (int16_t)lower;
        high += (upper < 0 ? -upper : upper) << 15;
        low += (lower < 0 ? -lower : lower) << 15;
    }
    line->add_high = (int32_t)(b >> 8);
    line->add_low = (int32_t)(b & 0xff) * 256;
    return low <= INT32_MAX && high + (b < 0 ? -(b >> 8) : b >> 8) <= INT32_MAX;
}

static int try_slopes(const struct sums *s, const struct near_pairs *pairs, const int64_t slope[2],
                      qi_pair_line *line)
{
    struct room const room = room_of(pairs, slope);
    if (room.least > room.most)
        return 0;
    struct error const a = error_of(&s->of[0], slope[0]), b = error_of(&s->of[1], slope[1]);
    int64_t const middle =
        s->c.y.zero_point * (INT64_C(1) << POSITION_BITS) + s->add - a.middle - b.middle;
    int64_t add = middle >> 8;
    add = add < room.least ? room.least : add > room.most ? room.most : add;
    int64_t const off = add * 256 - middle;
    return a.size + b.size + s->off + (off < 0 ? -off : off) + 2 < NEAR && split(slope, add, line);
}

int qi_pair_line_of_node(const qi_model *model, const qi_node *node, qi_pair_line *line)
{
    enum { WIDTH = 2 * REACH + 1 };
    struct sums s;
    struct near_pairs pairs = {0};
    int const fits = fill_sums(model, node, &s);
    const qi_scaling *y = &s.c.y;
    *line = (qi_pair_line){.flip = {s.c.a.flip ^ 0x80, s.c.b.flip ^ 0x80},
                           .y_flip = y->y_flip,
                           .lo = (int8_t)y->lo,
                           .hi = (int8_t)y->hi};
    if (!fits || !find_pairs(&s, &pairs))
        return 0;
    for (int k = 0; k < WIDTH * WIDTH; k++) {
        int64_t const slope[2] = {slope_of(&s.of[0]) + k % WIDTH - REACH,
                                  slope_of(&s.of[1]) + k / WIDTH - REACH};
        if (try_slopes(&s, &pairs, slope, line))
            return 1;
    }
    return 0;
}
