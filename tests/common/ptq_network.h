/**
 * Networks for tests of post-training quantization. There is a float network, the same with folded
 * batch norms, and the same quantized for evaluation.
 */
#ifndef QAT_TESTS_PTQ_NETWORK_H
#define QAT_TESTS_PTQ_NETWORK_H

#include "qat/ptq.h"

enum { BATCH = 8 };

/** The graphs of the test that runs. A checked fixture makes the first two and frees all. */
extern qat_registry *registry;
extern qat_graph *g, *folded, *eval;
extern qat_quant_options options;

#define MUST(call) ck_assert_msg((call) == QAT_OK, "%s", err.message)

void ptq_setup(void);
void ptq_teardown(void);

/** Op, batch norm and activation in g. */
qat_node *ptq_block(qat_node *x, const char *op, const char *name, const char *attrs,
                    const char *activation);
/** conv - depthwise - pool - conv without bias - flatten - FC, and a batch norm of its own. */
void ptq_build_network(const char *activation);
/** From g: plan it, fill its parameters, fold batch norms. */
void ptq_make_folded(void);
/** From folded, by the options: planned, with its parameters. */
void ptq_make_eval(void);

/** Uniform inputs in [-1, 1); run also gives the first output. */
void ptq_feed(qat_graph *graph, uint64_t seed);
const qat_node *ptq_run(qat_graph *graph, uint64_t seed);
/** Both outputs on the same inputs: equal but for float32's roundings. */
void ptq_same_function(qat_graph *a, qat_graph *b);
/** Ranges of eval by this estimator, over the batches of seeds 1 to 4. */
void ptq_calibrate(const char *estimator);
/** Values of a parameter of eval. */
const float *ptq_range_param(const char *name);

#endif
