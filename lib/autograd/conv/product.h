/**
 * The innermost loop of convolutions: a small piece of a matrix product, with its sums in
 * registers.
 *
 *     c[i][j] (+)= sum_{s,k} a[i][segments[s].a + k a_step] b[(segments[s].b + k) b_step + j]
 *
 * The rows of a may lie anywhere in memory. Products run in segments of `count` steps. So one loop
 * makes outputs (rows are pixels, segments taps, steps channels), data gradients (the same over dy)
 * and weight gradients (rows are taps and channels, segments image rows or images, steps pixels).
 * It needs no patch matrix.
 *
 * Every sum runs through segments and steps in order. It uses fused multiply-add if the processor
 * has it. AVX2 and AVX-512 give the same bits; the portable loop may give others.
 */
#ifndef QAT_AUTOGRAD_PRODUCT_H
#define QAT_AUTOGRAD_PRODUCT_H

#include "qat/graph.h"

enum { QAT_PRODUCT_ROWS = 16, QAT_PRODUCT_COLUMNS = 32, QAT_PRODUCT_PAD = 16 };

typedef struct qat_segment {
    ptrdiff_t a, b; /* values; steps */
} qat_segment;

typedef struct qat_product {
    const qat_real
        *a[QAT_PRODUCT_ROWS];      /* all must be readable; those from `rows` on are not used */
    qat_real *c[QAT_PRODUCT_ROWS]; /* only the first `rows` are used */
    const qat_real *b;
    const qat_segment *segments;
    int n_segments, count;
    ptrdiff_t a_step, b_step;
    int rows, columns; /* 1..QAT_PRODUCT_ROWS, 1..QAT_PRODUCT_COLUMNS */
    bool padded;       /* b may be read up to a multiple of QAT_PRODUCT_PAD columns */
    bool add;          /* add to what c holds */
    int apart; /* a[i] = a[0] + i apart, for all QAT_PRODUCT_ROWS; 0: they may lie anywhere */
} qat_product;

typedef void qat_product_fn(const qat_product *product);

/** One implementation of the product. */
typedef struct qat_product_isa {
    const char *name;
    bool (*runs_here)(void);
    qat_product_fn *run;
} qat_product_isa;

/** The implementations in this build, best first; the last one is portable. NULL after it. */
const qat_product_isa *qat_product_at(int i);
/** The first implementation that runs on this processor. */
qat_product_fn *qat_product_best(void);

#endif
