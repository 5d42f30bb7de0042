/** Packed weights, narrow integers and derived scales for mutations of .qm files. */
#ifndef QAT_TESTS_QM_PACKING_H
#define QAT_TESTS_QM_PACKING_H

#include "fuzz/mutations/qm_image.h"

/**
 * Give a tensor packed codes of a random form and random indices, behind the data. Mostly they are
 * such as a reader takes; the layer's max_accumulator is not. x: random state.
 */
void qm_pack_weights(qm_image *image, uint8_t *tensor, uint64_t *x);

/** Give the values of an int32 constant a byte each, as shifts have it: mostly their lowest one. */
void qm_narrow(qm_image *image, uint8_t *tensor, uint64_t *x);
/** Give an int32 constant no byte, as scales have it that follow from multipliers. */
void qm_derive(uint8_t *tensor);

#endif
