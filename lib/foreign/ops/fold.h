/** Shared by the files that compute with constants. */
#ifndef QAT_FOREIGN_FOLD_H
#define QAT_FOREIGN_FOLD_H

#include "foreign/build.h"

/** The constant that is input i of the current node; NULL: there is none. */
const qat_foreign_tensor *fold_input(const builder *b, int i);
/** The only output. NULL: there is no room for it. */
qat_status fold_give(builder *b, const qat_foreign_tensor *t);
double fold_value(const qat_foreign_tensor *t, size_t i);
/** Value k of from becomes value i of to, which is of the same kind. */
void fold_copy(const qat_foreign_tensor *to, size_t i, const qat_foreign_tensor *from, size_t k);
/** The constant, repeated where it has 1, in these dimensions, which it fits. */
const qat_foreign_tensor *fold_expand(builder *b, const qat_foreign_tensor *x, int rank,
                                      const int64_t *dims);

extern const fv_operator fold_moves[], fold_arithmetic[];

#endif
