/** What an op of two tensors is; see pairs.h. */
#ifndef QK_PAIRS_LAYER_H
#define QK_PAIRS_LAYER_H

#include "infer/arithmetic/binary32.h"
#include "infer/kernels/parts/features.h"

#include <stddef.h>
#include <stdint.h>

enum { QK_PAIRS_RANK = 4, QK_PAIRS_CODES = 256 };

/** How add and sub bring an operand to their common scale: requantize(q 2^left, mult, shift). */
typedef struct qk_rescaling {
    int32_t left_shift, mult, shift;
} qk_rescaling;

/** One operand: its steps in memory along each axis, 0 where it is repeated. */
typedef struct qk_operand {
    size_t stride[QK_PAIRS_RANK];
    uint8_t flip; /* 0x80 if its codes are signed bytes */
    int32_t zero_point;
} qk_operand;

typedef struct qk_pairs {
    size_t dims[QK_PAIRS_RANK]; /* of the output */
    qk_operand a, b;
    uint8_t is_wide;     /* 16-bit codes */
    uint8_t is_rescaled; /* do the next two count? */
    qk_rescaling of_a, of_b;
    int32_t mult, shift;
    int32_t mult_neg, shift_neg; /* prelu: for negative x; mult, shift are for the others */
    int32_t kind;                /* of compare */
    qi_binary32 scale_a, scale_b, constant; /* add, rounding EVEN; mul: scale_a */
    int64_t fixed;                          /* add, rounding EVEN: the constant in fixed point */
    int32_t is_fixed;                       /* does fixed point do, but for ties? */
    int32_t zero_point, lo, hi;             /* of the output */
} qk_pairs;

/** Computes the code of the output from a and b. */
typedef int32_t qk_combine_fn(const qk_pairs *p, int32_t a, int32_t b);

/** Computes one run along the last axis. */
typedef void qk_pairs_line_fn(const qk_pairs *p, qk_combine_fn *combine, const int32_t *table_a,
                              const uint8_t *a, const int32_t *table_b, const uint8_t *b,
                              uint8_t *y);

#endif
