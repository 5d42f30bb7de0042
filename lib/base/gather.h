/** What every rank knows, for every rank. */
#ifndef QAT_BASE_GATHER_H
#define QAT_BASE_GATHER_H

#include "qat/ranks.h"

/**
 * Give all ranks the parts of all. All must call it, with as many bytes.
 * @param all  [ranks->count][bytes]; the own part is set already
 */
qat_status qat_ranks_gather(const qat_ranks *ranks, int channel, void *all, size_t bytes,
                            qat_error *err);

#endif
