/** Resizes pictures with prefiltering, for pictures that become smaller. */
#ifndef QAT_DATASETS_IMAGE_FILTER_H
#define QAT_DATASETS_IMAGE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/** Resize [from_h, from_w, channels] to [to_h, to_w, channels]; false: out of memory. */
bool qat_image_resize_filtered(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h,
                               int to_w, int channels);

#endif
