/**
 * How fast_resize.c computes resize_bilinear: the weights of each axis in lowest terms, and the
 * blend that gives the core's codes.
 *
 * All forms of kernels/resize.h are weighted means of four codes. With rounding NONE, int8 has
 * weights with 10 fractional bits, rounded half away from zero. ONCE and EVEN have fractions, and
 * so has uint8 with rounding NONE where float32 is exact (qi_resize_plan_of). A position before the
 * first pixel or behind the last one is that pixel, so its weights are all and nothing.
 *
 * Example: int8, 32 columns become 64, half_pixel_centers. Column 1 lies at 1/4: its weights are
 * 768 and 256 of 1024, all are multiples of 256, in lowest terms 3 and 1 of 4. So n is 16 if rows
 * double as well, and sums have 16 bits.
 */
#ifndef QI_HOST_RESIZE_PLAN_H
#define QI_HOST_RESIZE_PLAN_H

#include "infer/host/loops/blend.h"
#include "infer/model/op.h"

/** An axis, and what its two weights sum to. */
typedef struct qi_blend_axis {
    qi_axis axis;
    int64_t whole;
} qi_blend_axis;

typedef struct qi_resize_plan {
    int32_t fits;     /* 0: 32 bits do not suffice (resize_plan.c), or float32 rounds */
    int32_t is_fixed; /* weights have 10 fractional bits; else they are exact */
    qi_blend_axis v, h;
    qi_blend blend;
} qi_resize_plan;

qi_resize_plan qi_resize_plan_of(const qi_model *model, const qi_node *node);
/** Where output i of an axis lies, with weights that sum to whole. */
qi_between qi_resize_between(const qi_resize_plan *p, const qi_blend_axis *a, int32_t i);

#endif
