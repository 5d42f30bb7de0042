/**
 * Parts of bench/claims, which tests claims of the documents. Each claim is printed as "claim:
 * WHAT: found|not found: FIGURES".
 */
#ifndef QAT_BENCH_CLAIMS_H
#define QAT_BENCH_CLAIMS_H

#include "qat/qat.h"

/** A way to scale an accumulator. */
typedef struct claims_rule {
    const char *name;
    qat_requantize_fn *requantize;
} claims_rule;

enum { CLAIMS_RULES = 5 };
/** The engine's own is the first. */
extern const claims_rule claims_rules[CLAIMS_RULES];

/** Bias of the rules over random accumulators. */
void claims_rounding(void);

/* ------------------------------------------------------------------ a network */

/** A trained network, quantized, and data that it is asked about. */
typedef struct claims_net {
    const char *path;
    int64_t samples; /* at most; 0: all */
    qat_restored *restored;
    qat_dataset *data;
    qat_graph *eval;
    qat_qgraph *graph; /* of integers */
} claims_net;

/** weight_bits: for a float network, which is quantized after training. */
qat_status claims_open(claims_net *net, const char *path, int64_t samples, int weight_bits,
                       qat_error *err);
void claims_close(claims_net *net);

/** Which samples were answered correctly. */
typedef struct claims_answers {
    int64_t n, n_right;
    uint8_t *right; /* [n], 0 or 1 */
} claims_answers;

/** Answer with the exact evaluation of net->graph and this rule (NULL: the engine's). */
qat_status claims_ask_integers(const claims_net *net, qat_requantize_fn *rule,
                               claims_answers *answers, qat_error *err);
/** Answer with the float32 simulation. visit (or NULL) can change what nodes computed. */
qat_status claims_ask_simulation(const claims_net *net, qat_visit *visit, void *context,
                                 claims_answers *answers, qat_error *err);
void claims_free_answers(claims_answers *answers);

/**
 * Print "claim: WHAT costs accuracy: ...". It is found if more answers changed from right to wrong
 * than from wrong to right, by more than chance explains: wrong - right > 1.96 sqrt(wrong + right)
 * (McNemar's test).
 */
void claims_print_cost(const char *what, const claims_answers *base, const claims_answers *other);

/** All that is asked of a network; prints. */
qat_status claims_about_integers(claims_net *net, qat_error *err);
qat_status claims_about_simulation(claims_net *net, qat_error *err);

#endif
