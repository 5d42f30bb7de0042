/**
 * Makes a one-op integer graph in profile tflite from a golden operator case (ops/ of the golden
 * data). The graph is built from the case's parameters and tensors, by the same functions that
 * build frozen layers and imported models.
 */
#ifndef QAT_TESTS_CASE_GRAPH_H
#define QAT_TESTS_CASE_GRAPH_H

#include "base/files/npy.h"
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
 * Build the case in a folder. QAT_ERR_UNSUPPORTED: the case is not an integer op (its input is
 * float). Free it with case_graph_free, also after a failure.
 */
qat_status case_graph_load(struct case_graph *c, const char *folder, const char *op,
                           qat_error *err);
void case_graph_free(struct case_graph *c);

#endif
