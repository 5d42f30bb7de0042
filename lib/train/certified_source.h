/** Inside lib/train: what an exported file must agree with. */
#ifndef QAT_TRAIN_CERTIFIED_SOURCE_H
#define QAT_TRAIN_CERTIFIED_SOURCE_H

#include "qat/train.h"

/** A source of the certificate, and what its values are looked up in; nothing is owned. */
typedef struct qat_certified_source {
    const qat_checkpoint *checkpoint;
    const qat_graph *eval; /* NULL: all values are the checkpoint's */
    bool averages_only;    /* only batch norm's averages are the eval graph's */
    const char *text;      /* "the checkpoint" */
    qat_certify_source source;
} qat_certified_source;

/**
 * What is certified against, for each way to export:
 *
 *     as trained        the checkpoint: float graph, parameters, averages, ranges
 *     --reestimate-bn   the checkpoint, but batch norm's new averages as they were taken
 *     --ptq             the folded float graph with the eval graph's parameters: weights behind
 *                       folding, equalization and clipping, biases behind their correction, and
 *                       the ranges that calibration estimated
 *
 * folded: the float graph without batch norms of a calibrated network. it must not move.
 */
void qat_certified_source_of(qat_certified_source *truth, const qat_restored *restored,
                             const qat_deploy_options *options, const qat_graph *eval,
                             const qat_graph *folded);

#endif
