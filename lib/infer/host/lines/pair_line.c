#include "infer/host/lines/pair_line.h"

#include "infer/arithmetic/fixedpoint.h"

uint8_t qi_pair_line_code(const qi_pair_line *l, uint8_t a, uint8_t b)
{
    int32_t const x = 256 * (int8_t)(a ^ l->flip[0]), y = 256 * (int8_t)(b ^ l->flip[1]);
    int32_t const low = x * l->low[0] + y * l->low[1] + l->add_low;
    int32_t const high = x * l->high[0] + y * l->high[1] + l->add_high + (low >> 16);
    return (uint8_t)(qi_clamp(high >> 16, l->lo, l->hi) ^ l->y_flip);
}

/* ------------------------------------------------------------------ where the core's steps are */

/** Positions are in units of 2^-32 of a code, slopes and bounds of B in units of 2^-24. */
enum { NEAR = 1 << 20, MOST_PAIRS = 256, REACH = 4, HALF = 128 };

/** An operand: what it adds to the position, and the rescaled value, by u + 128; and its codes. */
struct operand {
    int64_t at[QI_TABLE];
    int32_t value[QI_TABLE];
    int first, end;
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

static void fill_operand(const qi_combine *c, int which, const qi_tensor *t, struct operand *o)
{
    int const by = t->type == QI_U8 ? 0 : HALF;
    o->first = qi_code_lo(t) + by;
    o->end = qi_code_hi(t) + by + 1;
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

/** Without the sign's 2^30. */
static int64_t position(const struct operand o[2], int i, int j)
{
    return o[0].at[i] + o[1].at[j] + (INT64_C(1) << 31);
}

static void add_pair(const qi_combine *c, const struct operand o[2], int i, int j,
                     struct near_pairs *pairs)
{
    int32_t const step = (int32_t)((position(o, i, j) + NEAR) >> 32);
    int64_t const code = (int64_t)step + c->y.zero_point;
    int32_t const value = qi_scaled(&c->y, o[0].value[i] + o[1].value[j]);
    if (code <= c->y.lo || code > c->y.hi)
        return;
    if (pairs->count < MOST_PAIRS)
        pairs->of[pairs->count] =
            (struct near_pair){{i - HALF, j - HALF}, code * (1 << 24), value >= step};
    pairs->count++;
}

/** Returns 0 if there are too many. */
static int find_pairs(const qi_combine *c, const struct operand o[2], struct near_pairs *pairs)
{
    uint32_t b[QI_TABLE];
    for (int j = 0; j < QI_TABLE; j++)
        b[j] = (uint32_t)o[1].at[j] + (UINT32_C(1) << 31) + NEAR;
    for (int i = o[0].first; i < o[0].end && pairs->count <= MOST_PAIRS; i++) {
        uint32_t const a = (uint32_t)o[0].at[i];
        int some = 0;
        for (int j = o[1].first; j < o[1].end; j++)
            some |= a + b[j] <= 2 * NEAR;
        for (int j = o[1].first; some && j < o[1].end; j++)
            if (a + b[j] <= 2 * NEAR)
                add_pair(c, o, i, j, pairs);
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

static int try_slopes(const qi_combine *c, const struct operand o[2],
                      const struct near_pairs *pairs, const int64_t slope[2], qi_pair_line *line)
{
    struct room const room = room_of(pairs, slope);
    if (room.least > room.most)
        return 0;
    struct error const a = error_of(&o[0], slope[0]), b = error_of(&o[1], slope[1]);
    int64_t const sign = c->y.right > 0 ? INT64_C(1) << (31 - c->y.right) : 0;
    int64_t const middle =
        c->y.zero_point * (INT64_C(1) << 32) + (INT64_C(1) << 31) - a.middle - b.middle;
    int64_t add = middle >> 8;
    add = add < room.least ? room.least : add > room.most ? room.most : add;
    int64_t const off = add * 256 - middle;
    return a.size + b.size + sign + (off < 0 ? -off : off) + 2 < NEAR && split(slope, add, line);
}

int qi_pair_line_of_node(const qi_model *model, const qi_node *node, qi_pair_line *line)
{
    enum { WIDTH = 2 * REACH + 1 };
    qi_combine const c = qi_combine_of(model, node);
    struct operand o[2];
    struct near_pairs pairs = {0};
    *line = (qi_pair_line){.flip = {c.a.flip ^ 0x80, c.b.flip ^ 0x80},
                           .y_flip = c.y.y_flip,
                           .lo = (int8_t)c.y.lo,
                           .hi = (int8_t)c.y.hi};
    fill_operand(&c, 0, qi_input(model, node, 0), &o[0]);
    fill_operand(&c, 1, qi_input(model, node, 1), &o[1]);
    if (!find_pairs(&c, o, &pairs))
        return 0;
    for (int k = 0; k < WIDTH * WIDTH; k++) {
        int64_t const slope[2] = {slope_of(&o[0]) + k % WIDTH - REACH,
                                  slope_of(&o[1]) + k / WIDTH - REACH};
        if (try_slopes(&c, o, &pairs, slope, line))
            return 1;
    }
    return 0;
}
