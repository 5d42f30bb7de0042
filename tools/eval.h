/** qat-eval's parts: what is measured, and how of a .qm. */
#ifndef QAT_TOOLS_EVAL_H
#define QAT_TOOLS_EVAL_H

#include "common/tool.h"

/** What was measured; n = 0: not. */
typedef struct eval_results {
    qat_accuracy quantized, floating;
    const char *isa;         /* of a .qm's run, or NULL */
    char left_in_float[400]; /* layers: then `quantized` is the float32 simulation's */
    qat_error why_float;     /* of each of those layers */
    char data[256];
    int classes; /* of the network */
} eval_results;

/** The data's name and the network's classes. */
void eval_note_data(eval_results *results, const qat_dataset *data, int classes);

/** What the command line says of a .qm's run. */
typedef struct eval_request {
    const char *data, *dump_dir, *isa; /* or NULL */
    double central_crop;               /* 0: none */
    int64_t samples;                   /* 0: all */
    const tool_list *plugins;
} eval_request;

/** The kind of --data that holds pictures in files, or NULL. */
const char *eval_picture_kind(const char *data);

/** A .qm on the engine; recipe: of the test data, NULL: request->data. */
qat_status eval_model(const char *path, const qat_recipe *recipe, const eval_request *request,
                      eval_results *results, qat_error *err);

#endif
