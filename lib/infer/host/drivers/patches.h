/** Patches: the windows of a convolution as rows of a matrix (conv_part.h). */
#ifndef QI_HOST_PATCHES_H
#define QI_HOST_PATCHES_H

#include "infer/host/drivers/conv_part.h"

/**
 * Write the patches of rows first..first + rows - 1 of the part's matrix.
 * @param flip  bits of every byte that change
 * @param x     the first of the part's channels
 */
void qi_fill_patches(const qi_isa *isa, const qi_conv_part *part, uint8_t flip, const uint8_t *x,
                     uint8_t *to, int32_t first, int32_t rows);

#endif
