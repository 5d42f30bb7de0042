/**
 * resize_nearest, resize_bilinear: x [N,H,W,C] -> y [N,OH,OW,C], same codes. op_resize.c has the
 * rules.
 */
#ifndef QK_RESIZE_H
#define QK_RESIZE_H

#include "infer/arithmetic/positions.h"
#include "infer/kernels/values.h"

typedef struct qk_resize {
    int32_t batch, channels;
    int32_t type; /* qi_type */
    qi_axis v, h; /* vertical, horizontal */
} qk_resize;

/* ------------------------------------------------------------------ nearest */

QK_INLINE void qk_nearest_row(const int32_t *columns, int32_t n, size_t pixel, const uint8_t *row,
                              uint8_t *y)
{
    for (int32_t i = 0; i < n; i++)
        memcpy(y + (size_t)i * pixel, row + (size_t)columns[i] * pixel, pixel);
}

/** Scratch: an int32 for each output column. */
QK_INLINE void qk_resize_nearest_run(const qk_resize *p, const void *x, void *y, void *scratch)
{
    size_t const pixel = (size_t)p->channels * qi_type_bytes(p->type);
    size_t const row = (size_t)p->h.in * pixel;
    const uint8_t *picture = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    int32_t *columns = (int32_t *)scratch;
    for (int32_t i = 0; i < p->h.out; i++)
        columns[i] = qi_nearest_position(&p->h, i);
    for (int32_t n = 0; n < p->batch; n++, picture += (size_t)p->v.in * row)
        for (int32_t i = 0; i < p->v.out; i++, to += (size_t)p->h.out * pixel)
            qk_nearest_row(columns, p->h.out, pixel,
                           picture + (size_t)qi_nearest_position(&p->v, i) * row, to);
}

/* ------------------------------------------------------------------ bilinear */

/** Blends the codes at the four corners: above left, above right, below left, below right. */
typedef int32_t qk_blend_fn(const int32_t corner[4], const qi_place *v, const qi_place *h);

/** The place of an output position. */
typedef qi_place qk_place_fn(const qi_axis *a, int32_t i);

QK_INLINE int32_t qk_blend_fixed(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int64_t const sum = (int64_t)corner[0] * v->fixed[0] * h->fixed[0] +
                        (int64_t)corner[2] * v->fixed[1] * h->fixed[0] +
                        (int64_t)corner[1] * v->fixed[0] * h->fixed[1] +
                        (int64_t)corner[3] * v->fixed[1] * h->fixed[1];
    return (int32_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
}

/**
 * The same for axes of at most QK_NARROW outputs, in 32 bits. The rounded ratio is off by at most
 * half a unit for each output, so a position lies at most 2^9 units before the input and 2^10
 * behind it. The two weights then sum to at most 2^11 in size, and the sum below to 2^7 2^11 2^11 =
 * 2^29.
 */
enum { QK_NARROW = 1 << 10 };

QK_INLINE int32_t qk_blend_narrow(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int32_t const left = corner[0] * v->fixed[0] + corner[2] * v->fixed[1];
    int32_t const right = corner[1] * v->fixed[0] + corner[3] * v->fixed[1];
    int32_t const sum = left * h->fixed[0] + right * h->fixed[1];
    return (sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20);
}

/** With exact weights, which are below 3 * 2^16 in size: the sum is below 2^45. */
QK_INLINE int64_t qk_exact_sum(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int64_t const left = (int64_t)corner[0] * v->fixed[0] + (int64_t)corner[2] * v->fixed[1];
    int64_t const right = (int64_t)corner[1] * v->fixed[0] + (int64_t)corner[3] * v->fixed[1];
    return left * h->fixed[0] + right * h->fixed[1];
}

/** What exact weights sum to. */
QK_INLINE int64_t qk_exact_whole(const qi_place *v, const qi_place *h)
{
    return (int64_t)(v->fixed[0] + v->fixed[1]) * (h->fixed[0] + h->fixed[1]);
}

QK_INLINE int32_t qk_blend_exact(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    return qi_divide_half_up(qk_exact_sum(corner, v, h), qk_exact_whole(v, h));
}

QK_INLINE int32_t qk_blend_even(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    return qi_divide_half_even(qk_exact_sum(corner, v, h), qk_exact_whole(v, h));
}

/** corner * v * h, multiplied from the left as the reference does. */
QK_INLINE qi_binary32 qk_share(int32_t corner, qi_binary32 v, qi_binary32 h)
{
    return qi_b32_mul(qi_b32_mul(qi_b32_of(corner), v), h);
}

/** The value of the reference, operation by operation. */
QK_INLINE int32_t qk_blend_by_steps(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    qi_binary32 sum = qk_share(corner[0], v->weight[0], h->weight[0]);
    sum = qi_b32_add(sum, qk_share(corner[2], v->weight[1], h->weight[0]));
    sum = qi_b32_add(sum, qk_share(corner[1], v->weight[0], h->weight[1]));
    sum = qi_b32_add(sum, qk_share(corner[3], v->weight[1], h->weight[1]));
    return qi_clamp(qi_b32_floor(qi_b32_add(sum, qi_b32_round(1, -1))), 0, 255);
}

/**
 * The same value, usually from one sum with 48 fractional bits. The two weights of an axis lie in
 * [-1/2, 3/2] and sum to 1, so the four shares sum to at most 255 * 2 * 2. The reference rounds
 * each share twice, their sum three times, and once more after adding 1/2. Here the four weights
 * are truncated. The difference is below
 *
 *   (1020 * 2 + 1020 * 3 + 256 + 255 * 8) 2^-24 = 7396 2^-24 < 2^-11
 *
 * Only if the value is that close to a step of floor() is it computed as the reference does.
 */
QK_INLINE int32_t qk_blend_float(const int32_t corner[4], const qi_place *v, const qi_place *h)
{
    int64_t const one = INT64_C(1) << 48, near = INT64_C(1) << (48 - 11);
    int64_t const left = (int64_t)corner[0] * v->fixed[0] + (int64_t)corner[2] * v->fixed[1];
    int64_t const right = (int64_t)corner[1] * v->fixed[0] + (int64_t)corner[3] * v->fixed[1];
    int64_t const sum = left * h->fixed[0] + right * h->fixed[1] + one / 2; /* below 2^60 */
    int64_t const part = sum & (one - 1);
    if (part < near || part > one - near)
        return qk_blend_by_steps(corner, v, h);
    return (int32_t)(sum >> 48);
}

/** Compute one output pixel from the two rows between which it lies. */
QK_INLINE void qk_blend_pixel(const void *above, const void *below, const qi_place *v,
                              const qi_place *h, size_t channels, int type, qk_blend_fn *blend,
                              void *QK_RESTRICT y)
{
    size_t const left = (size_t)h->lower * channels, right = (size_t)h->upper * channels;
    for (size_t c = 0; c < channels; c++) {
        int32_t const corner[4] = {(int32_t)qi_value_at(type, above, left + c),
                                   (int32_t)qi_value_at(type, above, right + c),
                                   (int32_t)qi_value_at(type, below, left + c),
                                   (int32_t)qi_value_at(type, below, right + c)};
        qi_store_value(type, y, c, blend(corner, v, h));
    }
}

/** Scratch: a qi_place for each output column. */
QK_INLINE void qk_resize_blended(const qk_resize *p, qk_place_fn *place, int type,
                                 qk_blend_fn *blend, const void *x, void *y, void *scratch)
{
    size_t const channels = (size_t)p->channels, pixel = channels * qi_type_bytes(type);
    size_t const row = (size_t)p->h.in * pixel;
    const uint8_t *picture = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    qi_place *columns = (qi_place *)scratch;
    for (int32_t i = 0; i < p->h.out; i++)
        columns[i] = place(&p->h, i);
    for (int32_t n = 0; n < p->batch; n++, picture += (size_t)p->v.in * row)
        for (int32_t i = 0; i < p->v.out; i++) {
            qi_place const line = place(&p->v, i);
            for (int32_t j = 0; j < p->h.out; j++, to += pixel)
                qk_blend_pixel(picture + (size_t)line.lower * row,
                               picture + (size_t)line.upper * row, &line, &columns[j], channels,
                               type, blend, to);
        }
}

/** Of uint8. */
QK_INLINE void qk_resize_u8_run(const qk_resize *p, const void *x, void *y, void *scratch)
{
    qk_resize_blended(p, qi_float_place, QI_U8, qk_blend_float, x, y, scratch);
}

/** Of int8, with more than QK_NARROW outputs along an axis. */
QK_INLINE void qk_resize_s8_run(const qk_resize *p, const void *x, void *y, void *scratch)
{
    qk_resize_blended(p, qi_fixed_place, QI_S8, qk_blend_fixed, x, y, scratch);
}

/** Of int8, with fewer. */
QK_INLINE void qk_resize_narrow_run(const qk_resize *p, const void *x, void *y, void *scratch)
{
    qk_resize_blended(p, qi_fixed_place, QI_S8, qk_blend_narrow, x, y, scratch);
}

/** Of 16-bit codes. */
QK_INLINE void qk_resize_wide_run(const qk_resize *p, const void *x, void *y, void *scratch)
{
    qk_resize_blended(p, qi_fixed_place, QI_S16, qk_blend_fixed, x, y, scratch);
}

/** With rounding ONCE, of any codes. */
QK_INLINE void qk_resize_exact_run(const qk_resize *p, const void *x, void *y, void *scratch)
{
    qk_resize_blended(p, qi_exact_place, p->type, qk_blend_exact, x, y, scratch);
}

/** With rounding EVEN, of 8-bit codes. */
QK_INLINE void qk_resize_even_run(const qk_resize *p, const void *x, void *y, void *scratch)
{
    qk_resize_blended(p, qi_exact_place, p->type, qk_blend_even, x, y, scratch);
}

#endif
