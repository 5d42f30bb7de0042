/** Private to lib/train: the source with which an exported file must agree. */
#ifndef QAT_TRAIN_CERTIFIED_SOURCE_H
#define QAT_TRAIN_CERTIFIED_SOURCE_H

#include "qat/train.h"

/** The source of the certificate, and where its values are looked up. It owns nothing. */
typedef struct qat_certified_source {
    const qat_checkpoint *checkpoint;
    const qat_graph *eval; /* NULL: all values come from the checkpoint */
    bool averages_only;    /* only batch norm's averages come from the eval graph */
    const char *text;      /* "the checkpoint" */
    qat_certify_source source;
} qat_certified_source;

/**
 * The source for each way to export:
 *
 *     as trained        the checkpoint: float graph, parameters, averages, ranges
 *     --reestimate-bn   the checkpoint, but with the new averages of batch norm
 *     --ptq             the folded float graph with the eval graph's parameters: weights after
 *                       folding, equalization and clipping, biases after their correction, and
 *                       the ranges that calibration estimated
 *
 * folded: the float graph of a calibrated network, without batch norms.
 */
void qat_certified_source_of(qat_certified_source *truth, const qat_restored *restored,
                             const qat_deploy_options *options, const qat_graph *eval,
                             const qat_graph *folded);

#endif
