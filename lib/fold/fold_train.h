/**
 * Private to bn_fold_train: one node in one phase of its run. op_bn_fold_train.c has the equations
 * of the phases, fold_channels.c the arithmetic per channel, fold_values.c the loops over values.
 */
#ifndef QAT_FOLD_FOLD_TRAIN_H
#define QAT_FOLD_FOLD_TRAIN_H

#include "autograd/loops/batch_norm.h"
#include "fakequant/ops.h"
#include "fold/fold.h"

typedef enum qat_fold_phase { QAT_FOLD_PLAIN, QAT_FOLD_BATCH, QAT_FOLD_FROZEN } qat_fold_phase;

/**
 * Pointers into the node's scratch: batch norm's own, and the coefficients per channel for the
 * loops over values, repeated as in wide.h.
 */
typedef struct qat_fold_train {
    const qat_node *node;
    qat_fold_phase phase;
    qat_bn bn;
    qat_real *z_mean;                 /* one_pass: E[z] */
    qat_real *slope, *offset;         /* y = slope z + offset */
    qat_real *z_slope, *z_offset;     /* dz += slope dy + z_slope z + z_offset */
    qat_real *raw_slope, *raw_offset; /* draw += raw_slope raw + raw_offset */
    bool *has_notes;                  /* integer forward: backward reads z and raw on these grids */
    qat_note_grid z_grid, raw_grid;
} qat_fold_train;

static inline const qat_real *qat_fold_input(const qat_fold_train *f, int input)
{
    return f->node->inputs[input]->value;
}

/** two_pass: the raw output; one_pass: NULL. */
static inline qat_node *qat_fold_raw(const qat_node *bn_fold_train)
{
    return bn_fold_train->n_inputs > FOLDT_RAW ? bn_fold_train->inputs[FOLDT_RAW] : NULL;
}

/* ------------------------------------------------------------------ by channel */

/**
 * Set slope and offset. In BATCH, bn holds mean and variance of raw, or of z (one_pass), which
 * become those of the raw output.
 */
void qat_fold_coefficients(qat_fold_train *f);
/** Compute the gradients of gamma and beta from bn's sums of dy and dy z. */
void qat_fold_param_gradients(const qat_fold_train *f);
/** In BATCH: the coefficients of raw's gradient, or of z's (one_pass), from the same sums. */
void qat_fold_gradient_coefficients(qat_fold_train *f);

/* ------------------------------------------------------------------ over values */

/** Compute y and its tail from slope and offset. */
void qat_fold_run_forward(qat_fold_train *f);
/** Make notes of raw, on the grid from its smallest to its largest values. */
void qat_fold_note_raw(qat_fold_train *f);
/** Mask dy by the tail and sum it into bn; in BATCH also dy z. */
void qat_fold_sum_gradient(qat_fold_train *f);
/** Compute the gradients of z and raw from the coefficients of this phase. */
void qat_fold_run_backward(qat_fold_train *f);

#endif
