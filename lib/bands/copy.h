/** Private to lib/bands: a graph that is made of another one, tensor by tensor and op by op. */
#ifndef QAT_BANDS_COPY_H
#define QAT_BANDS_COPY_H

#include "bands/bands.h"

#include "base/arena.h"

typedef struct band_copy {
    const qat_qgraph *from;
    qat_banded *to;
    int tensors_room, ops_room;
    int *map; /* tensors of the first graph in the new one; -1: not there */
    qat_error *err;
} band_copy;

/** Begin an empty graph. QAT_ERR_NOMEM, with nothing to free. */
qat_status band_copy_begin(band_copy *c, qat_banded *to, const qat_qgraph *from, qat_error *err);
/** Append a tensor that has the codes of tensor `from`; *made becomes its index. */
qat_status band_copy_tensor(band_copy *c, const qat_qtensor *t, int from, int *made);
/** Append tensor i of the first graph as it is. */
qat_status band_copy_same_tensor(band_copy *c, int i);
/**
 * Append an op whose tensors are of the new graph. from: the op that it does a part of; -1: none.
 * QAT_ERR_UNSUPPORTED: there are too many.
 */
qat_status band_copy_new_op(band_copy *c, const qat_qop *op, int from);
/** Append op i of the first graph as it is. */
qat_status band_copy_same_op(band_copy *c, int i);
/** After all tensors and ops: states, inputs, outputs, the epilogue. */
qat_status band_copy_end(band_copy *c);
/** "of, what"; of is cut if that is too long. What has no name gets none. */
void band_copy_name(char name[QAT_NAME_MAX], const char *of, const char *what);

#endif
