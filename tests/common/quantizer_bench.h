/** One quantizer node under test, alone behind its input. */
#ifndef QAT_TESTS_QUANTIZER_BENCH_H
#define QAT_TESTS_QUANTIZER_BENCH_H

#include "fakequant/quantizer.h"

/** What the test that runs uses. A checked fixture makes and frees them. */
extern qat_registry *registry;
extern qat_graph *g;
extern qat_error err;

void bench_setup(void);
void bench_teardown(void);

/** Create a quantizer node behind x. x is an input with a gradient, or a parameter. */
struct bench {
    qat_node *x, *q;
};

struct bench bench_build(const char *op, const char *attrs, bool weights, qat_shape shape);
size_t bench_count(const struct bench *b);
/** x: uniform in [lo, hi). */
void bench_fill(const struct bench *b, uint64_t seed, double lo, double hi);
/** Uniform in [-1, 1). */
void bench_random(float *up, size_t n, uint64_t seed);
qat_run bench_train_at(int64_t step);
/** Observe one batch at step 0, so that learning can begin at step 1. */
void bench_observe(const struct bench *b);
/** Upstream gradients of the node's own choice: backward is called on the node itself. */
void bench_backward(const struct bench *b, const float *upstream, const qat_run *run);
float *bench_learned(const struct bench *b);
const float *bench_learned_grad(const struct bench *b);

#endif
