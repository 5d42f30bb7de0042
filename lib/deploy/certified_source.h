/** Private to libqat: the source with which an exported file must agree. */
#ifndef QAT_DEPLOY_CERTIFIED_SOURCE_H
#define QAT_DEPLOY_CERTIFIED_SOURCE_H

#include "qat/train.h"

enum { QAT_CERTIFY_BATCH = 8, QAT_CERTIFY_SAMPLES = 64 };

/** A source of the certificate, and what its values are looked up in. */
typedef struct qat_certified_source {
    qat_checkpoint *checkpoint; /* the file, read again */
    qat_recipe *recipe;         /* its recipe, with the keys that were set for this export */
    qat_graph *float_graph;     /* its network, not planned */
    const qat_graph *eval; /* where values come from that the checkpoint does not hold, or NULL */
    bool raw_parameters;   /* those of the last step, not their averages */
    bool averages_only;    /* only batch norm's averages are the eval graph's */
    bool calibrated;
    qat_graph *real, *simulated; /* planned for QAT_CERTIFY_BATCH: the float network; as trained */
    const char *text;            /* "the checkpoint" */
    qat_certify_source source;
} qat_certified_source;

/**
 * The source for each way to export:
 *
 *     as trained        the checkpoint: float graph, parameters or their averages, batch norm's
 *                       averages, ranges
 *     --reestimate-bn   the checkpoint, but batch norm's new averages as they were taken
 *     --ptq             the folded float graph with the eval graph's parameters: weights behind
 *                       folding, equalization and clipping, biases behind their correction, and
 *                       the ranges that calibration estimated (certify_calibration.c looks at the
 *                       way there)
 *
 * The checkpoint is read from its file again: nothing that the export did to its own copy counts.
 * eval and folded (the float graph without batch norms of a calibrated network) are borrowed.
 * Refuses a file that was replaced in the meantime. The source must not move; free it even after a
 * failure.
 */
qat_status qat_certified_source_open(qat_certified_source *source, const qat_restored *restored,
                                     const qat_deploy_options *options, const qat_graph *eval,
                                     const qat_graph *folded, qat_error *err);
void qat_certified_source_close(qat_certified_source *source);

/** A parameter of the checkpoint as it is evaluated; NULL: it has none of this name. */
const float *qat_certified_parameter(const qat_certified_source *source, const char *name,
                                     size_t *count);

/**
 * What the file says beside its graph: preprocessing, labels, description, digest, epilogue, known
 * answers; against recipe and checkpoint. And pictures (or rows of real numbers) through the file's
 * own path and through the one of the training data: the codes must be equal.
 * @param data         the data set of the recipe, if it is open, for its labels; else NULL
 * @param output       the path of the file: pictures are written beside it if TMPDIR cannot be
 * @param certificate  pictures of 2 or 4 channels are not compared: they are named there
 */
qat_status qat_certify_file(const qat_certified_source *source, const qi_model *model,
                            const qat_dataset *data, qat_error *err);
qat_status qat_certify_pictures(const qat_certified_source *source, const qi_model *model,
                                const char *output, qat_certificate *certificate, int64_t *codes,
                                qat_error *err);
/** Note in the certificate what it does not cover. */
void qat_certify_leave_out(qat_certificate *certificate, const char *what, const char *why);
qat_status qat_certify_rows(const qat_certified_source *source, const qi_model *model,
                            int64_t *codes, qat_error *err);

/**
 * Of a calibrated network: folded against the checkpoint, eval against folded.
 * @param folded  planned for max_batch
 */
qat_status qat_certify_calibration(const qat_certified_source *source,
                                   const qat_deploy_options *options, qat_graph *folded,
                                   int max_batch, const qat_graph *eval, qat_error *err);

#endif
