/** Writes pictures as files in memory: PNG, or JPEG in a build with libjpeg-turbo. */
#ifndef QAT_DATASETS_ENCODE_H
#define QAT_DATASETS_ENCODE_H

#include "qat/dataset.h"

/**
 * Encode a picture of 1 or 3 channels. The bytes depend on nothing but the picture, the quality and
 * the version of the library that writes them.
 * @param quality  of a JPEG, 1..100; 0: a PNG, which loses nothing
 * @param about    what messages name
 * @param bytes    free() them; NULL after an error
 */
qat_status qat_picture_encode(const qat_picture *picture, int channels, int quality,
                              const char *about, uint8_t **bytes, size_t *count, qat_error *err);

/** The part that writes a JPEG; QAT_ERR_UNSUPPORTED in a build without libjpeg-turbo. */
qat_status qat_picture_encode_jpeg(const qat_picture *picture, int channels, int quality,
                                   const char *about, uint8_t **bytes, size_t *count,
                                   qat_error *err);

#endif
