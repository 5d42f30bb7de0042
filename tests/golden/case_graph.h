/**
 * A golden operator case (ops/ of the golden data) as a one-op integer graph, profile tflite: built
 * in code from the case's parameters and tensors, by the same functions as frozen layers and
 * imported models.
 */
#ifndef QAT_TESTS_CASE_GRAPH_H
#define QAT_TESTS_CASE_GRAPH_H

#include "base/npy.h"
#include "qat/quant.h"

enum { CASE_MAX_INPUTS = 16, CASE_MAX_OUTPUTS = 8 };

struct case_graph {
    qat_qgraph *graph;
    int n_inputs;                    /* of the graph: tensors with role input */
    qat_npy inputs[CASE_MAX_INPUTS]; /* their bytes */
    int n_outputs;
    qat_npy expected[CASE_MAX_OUTPUTS]; /* out0.npy ... */
    bool exact; /* has the exact evaluation this op? (not those of imported models alone) */
};

/** Is there a builder for this operator ("CONV_2D")? */
bool case_graph_knows(const char *op);

/**
 * Build the case in a folder. QAT_ERR_UNSUPPORTED: a kind that is not an integer op (float input).
 * Free with case_graph_free, after failure too.
 */
qat_status case_graph_load(struct case_graph *c, const char *folder, const char *op,
                           qat_error *err);
void case_graph_free(struct case_graph *c);

#endif
