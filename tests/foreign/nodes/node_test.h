/** A test of the ONNX project: a network, its inputs, its answers. */
#ifndef QAT_TESTS_FOREIGN_NODE_TEST_H
#define QAT_TESTS_FOREIGN_NODE_TEST_H

#include "foreign/foreign.h"
#include "qat/qat.h"

enum { NODE_TEST_TENSORS = 64 };

typedef struct node_test {
    const char *folder;
    qat_arena arena;
    qat_foreign_graph *graph;
    int n_inputs, n_outputs;
    const qat_foreign_tensor *inputs[NODE_TEST_TENSORS], *outputs[NODE_TEST_TENSORS];
    bool is_batch; /* the first dimension of input 0 is the batch; no: input 0 is one sample */
} node_test;

/**
 * Read model.onnx and test_data_set_0. A tensor that is not there, or has no numbers, is NULL. Of
 * operators that give the same integers in float32, integers are floats.
 */
qat_status node_test_read(node_test *t, const char *folder, qat_error *err);
void node_test_free(node_test *t);

/** Floats? Numbers that float32 has: some tests of the archive hold 64-bit rubbish. */
bool node_test_floats(const qat_foreign_tensor *tensor);

/**
 * Ways to give a network its inputs: as parts of one array that a Split in front of the network
 * makes, as a batch or as one sample; or the first as data, again as a batch or as one sample, and
 * those behind it as constants.
 * @return false: this test cannot be given its inputs so
 */
bool node_test_feed(node_test *t, int way);
const char *node_test_way(int way); /* NULL: there are no more */
/** All inputs as constants. */
void node_test_feed_all(node_test *t);

/** The sizes of data for input 0, and its values in their order. */
void node_test_sizes(const node_test *t, qat_foreign_options *options);
void node_test_write(const node_test *t, qat_node *input);

#endif
