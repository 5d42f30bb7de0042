/** The parts of qat-eval: what it measures, and how it evaluates a .qm. */
#ifndef QAT_TOOLS_EVAL_H
#define QAT_TOOLS_EVAL_H

#include "tools/common/tool.h"
#include "tools/figures/figures.h"

/** The results; n = 0: not measured. */
typedef struct eval_results {
    qat_accuracy quantized, floating;
    const char *isa; /* of a .qm's run, or NULL */
    qat_error
        no_integers; /* if there is one, `quantized` is the result of the float32 simulation */
    char left_in_float[400]; /* then: layers left in float, if that is why */
    char data[256];
    int classes; /* of the network */
    bool looks;  /* make these two as well */
    figures quantized_figures, float_figures;
} eval_results;

/** If results->looks, figures look on at the next evaluation of this input over these data. */
qat_status eval_look_on(const eval_results *results, figures *f, qat_input_info *input,
                        const qat_dataset *data, qat_error *err);

/** Note the name of the data and the number of classes of the network. */
void eval_note_data(eval_results *results, const qat_dataset *data, int classes);

/** The options of the command line for a .qm. */
typedef struct eval_request {
    const char *data, *dump_dir, *isa; /* or NULL */
    double central_crop;               /* 0: none */
    int64_t samples;                   /* 0: all */
    const tool_list *plugins;
} eval_request;

/** Evaluate a .qm on the engine. recipe names the test data; NULL: request->data does. */
qat_status eval_model(const char *path, const qat_recipe *recipe, const eval_request *request,
                      eval_results *results, qat_error *err);

#endif
