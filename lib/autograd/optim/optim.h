/** Private to the optimizers: what optim.c passes to the rules in optim_rules.c. */
#ifndef QAT_AUTOGRAD_OPTIM_H
#define QAT_AUTOGRAD_OPTIM_H

#include "qat/graph.h"

enum { OPTIM_MAX_SLOTS = 2 }; /* most slots of a rule; averages have one more */

/** The numbers of one step for one parameter. */
typedef struct optim_numbers {
    qat_real rate, weight_decay;
    qat_real momentum, decay, beta1, beta2, epsilon;
    qat_real unbias1, unbias2; /* Adam: 1 / (1 - beta^t) */
} optim_numbers;

/**
 * Update n values w by their gradients g. a and b are slots 0 and 1 (NULL if the rule has none).
 */
typedef void optim_update(const optim_numbers *numbers, qat_real *w, const qat_real *g, qat_real *a,
                          qat_real *b, size_t n);

typedef struct optim_rule {
    int slots;
    bool has_initial; /* slot 0 starts at options.initial, not at 0 */
    optim_update *update;
} optim_rule;

/** The rule for options that were checked. */
const optim_rule *qat_optim_rule(const qat_optimizer_options *options);

/** g *= scale */
void qat_optim_scale(qat_real *g, qat_real scale, size_t n);
/** g = min(max(g, -limit), limit); NaN stays. */
void qat_optim_clamp(qat_real *g, qat_real limit, size_t n);
/** average -= take (average - w) */
void qat_optim_average(qat_real *average, const qat_real *w, qat_real take, size_t n);

#endif
