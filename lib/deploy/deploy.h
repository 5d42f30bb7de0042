/** The parts of an export: deploy.c puts them together. */
#ifndef QAT_DEPLOY_DEPLOY_H
#define QAT_DEPLOY_DEPLOY_H

#include "qat/train.h"

/* deploy_graphs.c */

qat_profile qat_deploy_profile(const qat_restored *restored, const qat_deploy_options *options);
/** How eval graphs are simulated: by fake quantization alone if the recipe asks for it. */
qat_forward qat_deploy_forward(const qat_restored *restored);
/**
 * Check that the network can become integers. After calibration all ranges are observed, whatever
 * the recipe says.
 */
qat_status qat_deploy_check_integers(const qat_restored *restored,
                                     const qat_deploy_options *options, qat_error *err);

/* deploy_feed.c */

enum { QAT_RANDOM_SAMPLES = 200 }; /* without data */

/** The verified model of whole sequences, and what it was made of. */
typedef struct qat_whole {
    const qi_host *host;
    const qat_restored *restored;
} qat_whole;

/** Gives verification data to the exporter. */
typedef struct qat_deploy_feed {
    const qat_restored *restored;
    const qat_whole *whole; /* NULL, or this is one step of it */
    qat_dataset *data;
    qat_loader *loader;
    const qat_deploy_options *options;
    int64_t done, total;
    int64_t batches; /* that came, of all ranks */
    int batch;       /* samples per batch */
    bool pixels;     /* or codes of sounds: batches are bytes */
    const void *input[1];
} qat_deploy_feed;

/** Open the requested data, or the recipe's. If there are none, set `why`. */
qat_status qat_feed_open(qat_deploy_feed *f, const qat_restored *r, const qat_deploy_options *o,
                         char why[512], qat_error *err);
void qat_feed_close(qat_deploy_feed *f);
/** The next batch for the exporter. @param context  a qat_deploy_feed */
qat_status qat_feed_next(void *context, int max_batch, qat_export_batch *out, qat_error *err);

/* stream.c */

/**
 * Run the samples of the feed whole, and frame by frame by the model of one step. Refuses the
 * export if one byte of one tensor differs in any step.
 */
qat_status qat_deploy_compare_stream(const qi_host *whole, const qi_host *step, int steps,
                                     qat_deploy_feed *f, qat_streamed *result, qat_error *err);

/* deploy_write.c */

/**
 * The output may replace an older .qm, but not a checkpoint: neither the exported one, by any path
 * or link, nor another.
 */
qat_status qat_deploy_spare_checkpoints(const char *path, qat_error *err);
/** Write the model beside the target, read it back, and only then give it the target's name. */
qat_status qat_deploy_write(const char *path, const qat_export_result *made, qat_error *err);

#endif
