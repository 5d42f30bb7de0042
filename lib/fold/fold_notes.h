/**
 * Notes: tensors [rows, channels] stored in 16 bits per value, because backward does not need the
 * precision of float. Each channel has its own grid:
 *
 *     x = step q + least,   q in 0 .. 65535
 *
 * Integer forward keeps z and raw of bn_fold_train in this form. For int32 sums with x = scale sum
 * + offset, q has as many leading bits as fit, and stands for the middle of its interval:
 *
 *     q = (sum - smallest) >> shift      step = scale 2^shift
 *     least = scale (smallest + (2^shift - 1) / 2) + offset
 */
#ifndef QAT_FOLD_FOLD_NOTES_H
#define QAT_FOLD_FOLD_NOTES_H

#include "qat/graph.h"

/** Coefficients per channel, repeated as in wide.h. */
typedef struct qat_note_grid {
    int channels;
    qat_real *step, *least;
    qat_real *per_step; /* of reals: 1 / step, or 0 */
} qat_note_grid;

/** Further coefficients for notes of sums, repeated as in wide.h. */
typedef struct qat_sum_range {
    int32_t *smallest, *shift;
} qat_sum_range;

/** Set one channel. Call qat_note_lay_sums after all channels are set. */
void qat_note_set_sums(const qat_note_grid *g, const qat_sum_range *s, int channel, int32_t least,
                       int32_t most, qat_real scale, qat_real offset);
void qat_note_lay_sums(const qat_note_grid *g, const qat_sum_range *s);

/**
 * Set the grid from the smallest to the largest real of each channel.
 * @param partial  room for qat_column_partials(rows, channels) values
 */
void qat_note_set_reals(const qat_note_grid *g, const qat_real *x, size_t rows, qat_real *partial);

/** Make notes and reals of the values [at, at + n). */
void qat_note_sums(const qat_note_grid *g, const qat_sum_range *s, const int32_t *sums, size_t at,
                   size_t n, uint16_t *q);
void qat_note_reals(const qat_note_grid *g, const qat_real *x, size_t at, size_t n, uint16_t *q);
void qat_note_read(const qat_note_grid *g, const uint16_t *q, size_t at, size_t n, qat_real *x);

#endif
