/**
 * The accumulators of one convolution outside a model, for training. There the weights change from
 * step to step, and batch statistics are taken from the accumulators before they are requantized.
 *
 *   sums[n, oy, ox, o] = sum over ky, kx, i of (x[n, .., g I + i] - Z_x)(w[o, ky, kx, i] - Z_w)
 *
 * The sums are int32, for o in group g of `groups`, with I = C / groups. Pixels outside the picture
 * count as Z_x. A fully connected layer is a convolution of 1x1 pixels. The matrix products are
 * those of gemm.h with the best instruction set of this processor. Processors without one, and
 * groups of few channels and pixels, which the driver leaves to the core, use plain loops.
 */
#ifndef QI_HOST_SUMS_H
#define QI_HOST_SUMS_H

#include "infer/model/op.h"

typedef struct qi_sums qi_sums;

/**
 * Every sum must fit int32 for any codes.
 * @param window  for batches of up to window->n pictures
 * @param types   of x and w: QI_U8 or QI_S8
 * @return free with qi_sums_free; NULL: out of memory
 */
qi_sums *qi_sums_make(const qi_window *window, int32_t groups, const qi_type types[2]);
void qi_sums_free(qi_sums *s);

/**
 * Set what the next runs compute: batches of n, with these zero_points and weights.
 * @param w  codes [O, KH, KW, C / groups], borrowed until the next call
 * @return QI_OK or QI_ERR_NOMEM
 */
qi_status qi_sums_set(qi_sums *s, int32_t n, const int32_t zero_points[2], const uint8_t *w);

/** The number of independent pieces, and the bytes of scratch for each thread that runs them. */
int32_t qi_sums_tiles(const qi_sums *s);
size_t qi_sums_scratch(const qi_sums *s);
/**
 * Run one piece.
 * @param x        codes [n, H, W, C], with QI_SLACK readable bytes after them
 * @param scratch  QI_FAST_ALIGN-aligned
 */
void qi_sums_run(const qi_sums *s, const uint8_t *x, int32_t *sums, void *scratch, int32_t tile);

#endif
