/** Convolutions of volumes [N, C, D, H, W]. */
#ifndef QAT_FOREIGN_VOLUMES_H
#define QAT_FOREIGN_VOLUMES_H

#include "foreign/ops/window.h"

/**
 * Add the convolution of x.
 * @param w  [O, C / groups, KD, KH, KW]
 */
qat_status fv_volume(builder *b, fv *x, const qat_foreign_tensor *w, int64_t groups,
                     const fv_direction d[FV_DIRECTIONS], const qat_foreign_tensor *bias);

/** The same of ConvTranspose; w is [C, O / groups, KD, KH, KW]. */
qat_status fv_transposed_volume(builder *b, fv *x, const qat_foreign_tensor *w,
                                const fv_transposed *t, const qat_foreign_tensor *bias);

#endif
