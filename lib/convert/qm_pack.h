/** Private to lib/convert: weights of few codes, several in a byte, and
 *  integers of fewer than four bytes. */
#ifndef QAT_CONVERT_QM_PACK_H
#define QAT_CONVERT_QM_PACK_H

#include "qat/convert.h"

/** The bytes of a constant in a file, and how they hold its codes (docs/qm-format.md). */
typedef struct qm_packed {
    uint8_t packing, listed;
    uint8_t *bytes; /* free() them; NULL where packing is 0 */
    size_t count;   /* of bytes; where packing is 0, of the tensor's own */
} qm_packed;

/** Pack the codes or the integers of a constant in the fewest bytes; of equal forms, the simplest.
 */
qat_status qm_pack(const qat_qtensor *t, qm_packed *packed, qat_error *err);
/**
 * May each tensor of the graph be packed: is it a constant of codes of fewer than 8 bits, or of
 * integers, which only kernels read that take it so, in a file of the graph's form? Tensors that
 * share their numbers are packed in one way, or not at all.
 * @param may  one for each tensor
 */
void qm_may_pack(const qat_qgraph *graph, bool *may);

/**
 * Do the scales of the channels of a tensor follow, bit for bit, from the multipliers of the first
 * layer whose weights it is? A reader then makes them of these (qi_scale_bits).
 */
bool qm_scales_follow(const qat_qgraph *graph, int index);

#endif
