/**
 * Small graphs around one op each, for every op that has a gradient: odd and even shapes, batches
 * of 1 and 3, every attribute. They are built with float and with double, with the same values.
 *
 * To add an op, add lines to a table (gradient_cases.c, gradient_cases_fold.c). A test fails if a
 * registered op has a gradient and no line.
 */
#ifndef QAT_TESTS_GRADIENT_CASES_H
#define QAT_TESTS_GRADIENT_CASES_H

#include "qat/graph.h"

typedef enum gradient_fill {
    FILL_NONE,     /* end of the inputs */
    FILL_PLAIN,    /* uniform in (-1, 1) */
    FILL_POSITIVE, /* uniform in (0.5, 1.5) */
    FILL_CLEAR,    /* uniform in (-2, 8), at least 0.01 away from the bounds of clamps */
    FILL_DISTINCT, /* a shuffled row of steps of 0.02: no two alike */
    FILL_LABELS    /* classes of the first input's last dimension */
} gradient_fill;

typedef enum gradient_kind {
    KIND_DATA,  /* a graph input whose gradient is checked; dims[0] is the batch */
    KIND_FIXED, /* a graph input without one */
    KIND_PARAM, /* a trainable parameter */
    KIND_STATE  /* a parameter that is not trained */
} gradient_kind;

enum { GRADIENT_MAX_INPUTS = 8 };

typedef struct gradient_input {
    gradient_fill fill;
    gradient_kind kind;
    int dims[QAT_MAX_RANK]; /* up to the first 0 */
} gradient_input;

typedef struct gradient_case {
    const char *op, *attrs;
    gradient_input inputs[GRADIENT_MAX_INPUTS];
    qat_mode mode;
    int64_t step;
} gradient_case;

/** One input of a case: fill, kind, dims. */
#define INPUT(fill_, kind_, ...)                                                                   \
    {                                                                                              \
        .fill = fill_, .kind = kind_, .dims = { __VA_ARGS__ }                                      \
    }

/** Lines of a table: an op, its attributes, its inputs; in eval mode, or in train mode at a step.
 */
#define EVAL(op_, attrs_, ...)                                                                     \
    {                                                                                              \
        .op = op_, .attrs = attrs_, .inputs = {__VA_ARGS__}, .mode = QAT_MODE_EVAL                 \
    }
#define TRAIN(step_, op_, attrs_, ...)                                                             \
    {                                                                                              \
        .op = op_, .attrs = attrs_, .inputs = {__VA_ARGS__}, .mode = QAT_MODE_TRAIN, .step = step_ \
    }

/** All tables; each ends with an op that is NULL. */
extern const gradient_case *const gradient_tables[];
extern const gradient_case gradient_float_cases[], gradient_fold_cases[];

/** Case number i over all tables, or NULL. */
const gradient_case *gradient_case_at(int i);

/** An op whose gradient is not that of its value, and what tests it instead. */
typedef struct gradient_exemption {
    const char *op, *reason;
} gradient_exemption;
extern const gradient_exemption gradient_exemptions[]; /* ends with NULL */

/** A case's graph: inputs, the node under test, a scalar loss, all values filled. */
typedef struct gradient_graph {
    qat_graph *graph;
    qat_node *node, *loss;
    qat_run run;
} gradient_graph;

/**
 * Build, plan (QAT_PLAN_TRAIN) and fill. Asserts with Check that this works.
 * @param times  factor on the batch of the inputs
 */
gradient_graph gradient_build(const qat_registry *registry, const gradient_case *c, int times);
void gradient_free(gradient_graph *g);

/** Is this a node whose gradient is compared? */
bool gradient_is_compared(const qat_node *node);

#endif
