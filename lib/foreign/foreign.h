/** From a foreign float network to a trainable graph. */
#ifndef QAT_FOREIGN_FOREIGN_H
#define QAT_FOREIGN_FOREIGN_H

#include "foreign/graph.h"
#include "qat/graph.h"

typedef struct qat_foreign_options {
    int height, width, channels; /* of the data */
    int head;                    /* outputs of a new last layer; 0: keep the file's */
    double bn_momentum;
} qat_foreign_options;

/** The value of a parameter of the built graph. */
typedef struct qat_foreign_param {
    const char *name;
    qat_shape shape;
    const float *values;
} qat_foreign_param;

/** Values of the parameters, in memory of their own. A new last layer has none. */
typedef struct qat_foreign_params {
    int count, capacity;
    qat_foreign_param *at;
    qat_arena arena;
} qat_foreign_params;
void qat_foreign_params_free(qat_foreign_params *params);

/**
 * Build the network that leads to the file's first output, behind `input` ([1, H, W, C], or of
 * another shape with that many values for networks that do not take pictures).
 * @param last    the node of the first output
 * @param params  the values of the network's parameters; empty before the call
 * @return QAT_ERR_UNSUPPORTED names what cannot be taken: node, operator, attribute
 */
qat_status qat_foreign_build(const qat_foreign_graph *from, qat_graph *graph, qat_node *input,
                             const qat_foreign_options *options, qat_node **last,
                             qat_foreign_params *params, qat_error *err);

/** Set the parameters of a planned graph that have these names and shapes. Returns how many. */
int qat_foreign_fill(const qat_foreign_params *params, qat_graph *graph);

/** Read the .onnx or .tflite file at path (its first bytes tell which) and build it. */
qat_status qat_foreign_open(const char *path, uint64_t memory, qat_graph *graph, qat_node *input,
                            const qat_foreign_options *options, qat_node **last,
                            qat_foreign_params *params, qat_error *err);

#endif
