/**
 * Constants whose codes share bytes (docs/qm-format.md, "Packed codes").
 *
 *   data | the list: the code of each index, if there is one | row 0 | row 1 | ..
 *
 * A row has the values of one index of the first dimension, and begins with a byte of its own. So
 * the weights of an output channel are found without those of the others. Rows of codes that are
 * not packed are read in the same way.
 */
#ifndef QI_PACKING_H
#define QI_PACKING_H

#include "infer/kernels/parts/rows.h"
#include "infer/model/model.h"

/** The rows of a constant whose bytes are at data. */
qi_rows qi_rows_of(const qi_tensor *t, const void *data);

/** Read and check how a constant is packed, before its bytes are known to be there. */
qi_status qm_read_packing(qi_tensor *t, const uint8_t *record, int32_t index, qi_error *err);
/** Check the bytes of a packed constant: its list, every index, the padding of its rows. */
qi_status qm_check_packed(const qi_tensor *t, int32_t index, qi_error *err);
/** Do two packed constants of the same bytes mean the same codes? */
int qi_same_packing(const qi_tensor *a, const qi_tensor *b);
/** Check that no node but one whose kernel says so reads packed codes, and no epilogue. */
qi_status qm_check_packed_inputs(const qi_model *m, qi_error *err);

#endif
