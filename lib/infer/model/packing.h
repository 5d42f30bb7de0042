/**
 * Constants whose codes share bytes (docs/qm-format.md, "Packed codes").
 *
 *   data | the list: the code of each index, if there is one | row 0 | row 1 | ..
 *
 * A row has the values of one index of the first dimension, and begins with a byte of its own. So
 * the weights of an output channel are found without those of the others. Rows of codes that are
 * not packed are read in the same way.
 *
 * Narrow integers, shifts, are int32 values of a byte each. Derived scales have no byte: a host
 * makes them of the multipliers of the layer whose weights they belong to.
 */
#ifndef QI_PACKING_H
#define QI_PACKING_H

#include "infer/kernels/parts/rows.h"
#include "infer/model/model.h"

/** The rows of a constant whose bytes are at data. */
qi_rows qi_rows_of(const qi_tensor *t, const void *data);

/**
 * The node with whose multipliers the derived scales of tensor `scales` are made: the first that
 * reads the weights which they belong to. NULL: there is none, or it has other multipliers.
 */
const qi_node *qm_scaled_node(const qi_model *m, int32_t scales);
/** Read and check how a constant is packed, before its bytes are known to be there. */
qi_status qm_read_packing(qi_tensor *t, const uint8_t *record, int32_t index, qi_error *err);
/** Check the bytes of a packed constant: its list, every index, the padding of its rows. */
qi_status qm_check_packed(const qi_tensor *t, int32_t index, qi_error *err);
/** Do two packed constants of the same bytes mean the same codes? */
int qi_same_packing(const qi_tensor *a, const qi_tensor *b);
/** Does the kernel read this input with this packing, which is not 0? */
static inline int qi_kernel_reads(const qi_kernel *kernel, int32_t input, int packing)
{
    return packing < QM_NARROW    ? (kernel->reads_packed & QI_READS_CODES) && input == 1
           : packing == QM_NARROW ? (kernel->reads_packed & QI_READS_NARROW) && input == 4
                                  : 0;
}
/** Check that no node but one whose kernel says so reads packed constants, and no epilogue; and
 * that derived scales have their multipliers. */
qi_status qm_check_packed_inputs(const qi_model *m, qi_error *err);

#endif
