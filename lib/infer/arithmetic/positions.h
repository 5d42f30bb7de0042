/**
 * Where the positions of a resized picture lie in the original, along an axis: the rules of
 * resize_nearest and resize_bilinear (docs/arithmetic.md, section 11).
 */
#ifndef QI_POSITIONS_H
#define QI_POSITIONS_H

#include "infer/arithmetic/binary32.h"

/** One axis: its input and output positions, and the two options. */
typedef struct qi_axis {
    int32_t in, out;
    int align_corners, half_pixel;
} qi_axis;

/** Do the corners lie on each other? A single output position has no second corner. */
static inline int qi_is_aligned(const qi_axis *a)
{
    return a->align_corners && a->out > 1;
}

/** The ratio as a float. */
static inline qi_binary32 qi_axis_ratio(const qi_axis *a)
{
    return qi_is_aligned(a) ? qi_b32_divide(a->in - 1, a->out - 1) : qi_b32_divide(a->in, a->out);
}

/** (i + 1/2) ratio, or i ratio, as a float. */
static inline qi_binary32 qi_axis_scaled(const qi_axis *a, int32_t i)
{
    return qi_b32_mul(qi_b32_round(2 * i + a->half_pixel, -1), qi_axis_ratio(a));
}

/** With align_corners it is rounded, even if there is one output. */
static inline int32_t qi_nearest_position(const qi_axis *a, int32_t i)
{
    qi_binary32 const p = qi_axis_scaled(a, i);
    int32_t const near = a->align_corners ? qi_b32_nearest(p) : qi_b32_floor(p);
    return near < a->in ? near : a->in - 1;
}

/** Two input positions and their weights. */
typedef struct qi_place {
    int32_t lower, upper;
    int32_t fixed[2];      /* weights of lower and upper: 10 fractional bits, uint8: 24; exact ones:
                              two whole numbers, to be divided by their sum */
    qi_binary32 weight[2]; /* uint8: as the reference computes them */
} qi_place;

/** A place whose weights are whole numbers. */
static inline qi_place qi_place_of(int32_t lower, int32_t upper, int32_t of_lower, int32_t of_upper)
{
    qi_place const place = {lower, upper, {of_lower, of_upper}, {{0, 0}, {0, 0}}};
    return place;
}

/**
 * Positions with 10 fractional bits: lower = trunc(p / 2^10), upper = ceil(p / 2^10), both kept
 * inside the input.
 */
static inline qi_place qi_fixed_place(const qi_axis *a, int32_t i)
{
    enum { ONE = 1 << 10 };
    int const align = qi_is_aligned(a);
    int32_t const in = align ? a->in - 1 : a->in, out = align ? a->out - 1 : a->out;
    int32_t const ratio = (in * ONE + out / 2) / out;
    int32_t const p = i * ratio + (a->half_pixel ? ratio / 2 - ONE / 2 : 0);
    int32_t const lower = qi_clamp(p / ONE, 0, a->in - 1);
    int32_t const upper = qi_clamp((p + ONE - 1) / ONE, 0, a->in - 1);
    int32_t const part = p - lower * ONE;
    return qi_place_of(lower, upper, ONE - part, part);
}

/** floor(a / b), b > 0 */
static inline int32_t qi_floor_of_quotient(int64_t a, int64_t b)
{
    return (int32_t)(a / b - (a % b < 0));
}

/**
 * Positions as they are, which are fractions. Example: 5 positions become 6, half_pixel: i = 1 lies
 * at (3 * 5 / 6 - 1) / 2 = 9/12, so the weights of 0 and 1 are 3 and 9.
 */
static inline qi_place qi_exact_place(const qi_axis *a, int32_t i)
{
    int const align = qi_is_aligned(a);
    int64_t const in = align ? a->in - 1 : a->in, out = align ? a->out - 1 : a->out;
    int64_t const whole = a->half_pixel ? 2 * out : out; /* p = at / whole */
    int64_t const at = a->half_pixel ? (2 * (int64_t)i + 1) * in - out : i * in;
    int32_t const floor = qi_floor_of_quotient(at, whole);
    int32_t const lower = qi_clamp(floor, 0, a->in - 1);
    int32_t const upper = qi_clamp(floor + (at % whole != 0), 0, a->in - 1);
    int32_t const part = (int32_t)(at - lower * whole);
    return qi_place_of(lower, upper, (int32_t)whole - part, part);
}

/** floor(weight 2^24) */
static inline int32_t qi_weight_fraction(qi_binary32 weight)
{
    return qi_b32_floor(qi_b32_parts(weight.mant, weight.exp + 24));
}

static inline qi_place qi_float_place(const qi_axis *a, int32_t i)
{
    qi_binary32 p = qi_axis_scaled(a, i);
    if (a->half_pixel)
        p = qi_b32_sub(p, qi_b32_round(1, -1));
    int32_t const lower = qi_clamp(qi_b32_floor(p), 0, a->in - 1);
    int32_t const upper = qi_clamp(qi_b32_ceil(p), 0, a->in - 1);
    qi_binary32 const part = qi_b32_sub(p, qi_b32_of(lower));
    qi_binary32 const rest = qi_b32_sub(qi_b32_of(1), part);
    qi_place place = qi_place_of(lower, upper, qi_weight_fraction(rest), qi_weight_fraction(part));
    place.weight[0] = rest;
    place.weight[1] = part;
    return place;
}

#endif
