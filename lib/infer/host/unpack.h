/** Packed constants on a host: unpacked once, when a model is opened. */
#ifndef QI_HOST_UNPACK_H
#define QI_HOST_UNPACK_H

#include "infer/model/model.h"

/** The bytes that the packed constants of a model take unpacked, each once. */
uint64_t qi_constants_bytes(const qi_model *model);
/**
 * Unpack them into memory of so many bytes, QI_ALIGN-aligned. All tensors that shared a packed
 * constant then share the unpacked one.
 */
void qi_unpack_constants(qi_model *model, uint8_t *memory);

#endif
