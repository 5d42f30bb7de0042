/** The weights of resize_bilinear in lowest terms, and the constants that divide its sums. */
#include "infer/host/drivers/resize_plan.h"

#include <string.h>

/* ------------------------------------------------------------------ places of an axis */

static qi_place place_of(const qi_resize_plan *p, const qi_axis *a, int32_t i)
{
    return p->is_fixed ? qi_fixed_place(a, i) : qi_exact_place(a, i);
}

static int64_t whole_of(const qi_place *place)
{
    return (int64_t)place->fixed[0] + place->fixed[1];
}

/** A position as a multiple of 1 / whole. */
static int64_t position_of(const qi_place *place)
{
    return place->lower * whole_of(place) + place->fixed[1];
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t const rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/**
 * Positions are first + i step, so what divides these two and the whole divides all weights. A
 * whole of 1 becomes 2: n is above 1, and even where ties go down, which only happens with whole
 * powers of two.
 */
static qi_blend_axis axis_of(const qi_resize_plan *p, qi_axis axis)
{
    qi_place const first = place_of(p, &axis, 0), second = place_of(p, &axis, axis.out > 1);
    int64_t const whole = whole_of(&first), from = position_of(&first);
    int64_t const both = common_divisor(from, position_of(&second) - from);
    int64_t const least = whole / common_divisor(whole, both);
    return (qi_blend_axis){axis, least > 1 ? least : 2};
}

qi_between qi_resize_between(const qi_resize_plan *p, const qi_blend_axis *a, int32_t i)
{
    qi_place const place = place_of(p, &a->axis, i);
    int64_t const upper =
        place.lower == place.upper ? 0 : place.fixed[1] * a->whole / whole_of(&place);
    return (qi_between){place.lower, place.upper, {(uint32_t)(a->whole - upper), (uint32_t)upper}};
}

/* ------------------------------------------------------------------ the blend */

static int bit_length(uint64_t a)
{
    int bits = 0;
    for (; a; a >>= 1)
        bits++;
    return bits;
}

/** Fill in what sums of that many bits are divided with. Returns 0 if they do not suffice. */
static int divide_by(qi_blend *b, uint64_t n, int bits)
{
    uint64_t const most = 255 * n + n / 2; /* of t */
    int const right = bit_length(n - 1) - 1;
    if (most >> bits)
        return 0;
    uint64_t const one = UINT64_C(1) << (bits + right), mult = (one + n - 1) / n;
    b->n = (uint32_t)n;
    b->half = (uint32_t)(n / 2);
    b->mult = (uint32_t)mult;
    b->right = right;
    b->bits = bits;
    return (n * mult - one) * most < one;
}

/**
 * Are the float32 operations of uint8 exact? A whole of 2^k, k <= 6, means that the ratio is a
 * multiple of 2^-k, and has 16 + k bits; a position has 17 + k + 1 at most, which float32 holds. So
 * it does the shares of a code (8 + 7 + 7 bits) and their sums. What it adds is then 1/2, half up.
 */
static int is_exact_float(const qi_blend_axis *a)
{
    enum { MOST = 1 << 6 };
    return a->whole <= MOST && (a->whole & (a->whole - 1)) == 0;
}

qi_resize_plan qi_resize_plan_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    int const has_rounding = node->rounding == QI_ROUND_ONCE || node->rounding == QI_ROUND_EVEN;
    qi_resize_plan p;
    memset(&p, 0, sizeof p);
    p.is_fixed = !has_rounding && y->type == QI_S8;
    p.v = axis_of(&p, qi_resize_axis_of(model, node, 1));
    p.h = axis_of(&p, qi_resize_axis_of(model, node, 2));
    p.blend.flip = y->type == QI_S8 ? 0x80 : 0;
    p.blend.is_even = node->rounding == QI_ROUND_EVEN;
    uint64_t const n = (uint64_t)p.v.whole * (uint64_t)p.h.whole;
    p.fits = divide_by(&p.blend, n, 16) || divide_by(&p.blend, n, 32);
    if (p.is_fixed)
        p.blend.below = p.blend.flip * p.blend.n; /* negative codes are rounded away from zero */
    else if (!has_rounding)
        p.fits &= is_exact_float(&p.v) && is_exact_float(&p.h);
    return p;
}
