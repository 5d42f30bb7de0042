/** What qat_restored holds; a checkpoint beside a run, such as a teacher. */
#ifndef QAT_CHECKPOINT_RESTORE_H
#define QAT_CHECKPOINT_RESTORE_H

#include "checkpoint/checkpoint.h"

struct qat_restored {
    qat_checkpoint *checkpoint;
    qat_recipe *recipe;
    qat_plugins *plugins;
    qat_registry *registry;
    qat_graph *float_graph; /* not planned */
    char *path;             /* the checkpoint's file: the certificate reads it again */
    bool raw_parameters;    /* params hold the last step's values, not their averages */
    char **sets;            /* what qat_restored_set_quant was given */
    int n_sets;
    char *warning; /* a sentence about plugins that are not the run's own, or NULL */
    bool one_step; /* float_graph and the checkpoint's input are those of one step */
    bool borrows;  /* plugins and registry belong to somebody else */
};

/**
 * Like qat_restore, with the ops and plugins of a run instead of files. Nothing is opened: the
 * checkpoint's plugins must be among those of the run. registry and plugins (may be NULL) are
 * borrowed until the result is freed.
 */
qat_status qat_restore_with(qat_restored **restored, const char *path, qat_registry *registry,
                            qat_plugins *plugins, qat_error *err);

/** Plan a graph of the checkpoint and give it its parameters. After an error it is freed: NULL. */
qat_status qat_restored_plan(const qat_restored *restored, qat_graph **graph, int max_batch,
                             qat_plan plan, qat_error *err);

#endif
