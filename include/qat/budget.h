/**
 * Mixed precision under a budget: the bits of each layer's weights and activations are chosen so
 * that the network fits a device and loses as little as possible. docs/mixed-precision.md has the
 * method.
 *
 *     qat_budget *budget;
 *     qat_budget_options const options = {.dir = "runs/mine"};
 *     if (qat_budget_search(&budget, recipe, &options, &err) == QAT_OK)
 *         puts(qat_budget_recipe(budget));                  // runs/mine/budget.ini: train with it
 *     qat_budget_free(budget);
 */
#ifndef QAT_BUDGET_H
#define QAT_BUDGET_H

#include "qat/export.h"
#include "qat/train.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct qat_budget_options {
    size_t struct_size;         /* sizeof this struct, or 0 */
    const char *dir;            /* NULL: the recipe's [output] dir; it is made */
    bool resume;                /* the folder has a run with its budget.ini: another choice is
                                   refused, and nothing is written */
    bool overwrite;             /* forget what a search has measured, but not budget.table */
    const char *const *plugins; /* files to open instead of those of the recipe's plugin.path */
    int n_plugins;              /* 0: those of the recipe */
    uint64_t memory;            /* the most bytes of one graph; 0: no limit */
    const qat_log *log;         /* notes; may be NULL */
    qat_tick *tick;             /* measurements done, of all; 0 of 0 while choices are fitted into
                                   RAM; may be NULL */
    void *context;
} qat_budget_options;

/** One choice of bits for all layers. */
typedef struct qat_budget_point {
    int64_t flash;     /* bytes of the .qm, with packed weights */
    int64_t macs_bits; /* see budget.macs_bits */
    double predicted;  /* loss added by it: the sum over layers */
    double simulated;  /* loss added by it, measured in simulation, before any fine-tuning */
} qat_budget_point;

/** What was chosen for a layer, and what each choice would cost. */
typedef struct qat_budget_layer {
    char name[QAT_NAME_MAX];
    char op[64];
    int64_t weights, macs;
    int weight_bits, activation_bits; /* 0: it has none that can be chosen */
    bool weights_kept, activations_kept;
    int64_t bytes;     /* of its packed weights */
    int64_t macs_bits; /* with the bits of the activations that it multiplies */
    double loss;       /* predicted, of its weights' and its activations' bits */
    /** The loss that each choice adds, by bits (index bits): NaN: not a choice. */
    double weight_loss[9], activation_loss[9];
} qat_budget_layer;

/** The result of a search. Any number of threads may read it. */
typedef struct qat_budget qat_budget;

/**
 * Search the bits of a recipe with a section [budget]. The network has the weights that train.init
 * (or model.onnx, model.tflite) names. Writes into the folder:
 *
 *     sensitivity.csv   what was measured; an interrupted search continues with it
 *     budget.ini        the recipe with the choice, without [budget]: train with it
 *     budget.csv        a line for each layer
 *     curve.csv         the least predicted loss for several sizes of flash
 *     budget.json       the choice in numbers, for qat-sweep
 *
 * The same recipe gives the same bytes in all of them but sensitivity.csv (whose order depends on
 * what it was used for), for any number of threads, also after an interruption.
 *
 * @return QAT_ERR_ARGUMENT if nothing fits the budget: the message says the least that is possible;
 *         QAT_ERR_STATE if options->resume is set and the choice is another one, if tick stopped
 *         the search, or if the table is of other weights, data or settings; QAT_ERR_UNSUPPORTED
 *         for bits that cannot be searched (16 bits, states, weights of a scheme); QAT_ERR_LIMIT if
 *         the choice is too hard: too many partial choices, or conditions of RAM
 */
qat_status qat_budget_search(qat_budget **budget, const qat_recipe *recipe,
                             const qat_budget_options *options, qat_error *err);
/**
 * Check what a search would refuse before it measures anything, without the trained weights: keys
 * that cannot be combined, and a budget that nothing fits.
 */
qat_status qat_budget_check(const qat_recipe *recipe, const qat_budget_options *options,
                            qat_error *err);
/** Free a result; NULL is allowed. What the functions below returned is then gone. */
void qat_budget_free(qat_budget *budget);

/** How many layers the network has, and layer i, in the order of the network. */
int qat_budget_layers(const qat_budget *budget);
const qat_budget_layer *qat_budget_layer_at(const qat_budget *budget, int i);
/** The sums of the choice. */
const qat_budget_point *qat_budget_chosen(const qat_budget *budget);
/** The bytes of its .qm that are not weights. */
int64_t qat_budget_other_flash(const qat_budget *budget);
/** The RAM that it needs on a device, made to fit budget.ram as by qat_fit_ram. */
const qat_ram_plan *qat_budget_ram(const qat_budget *budget);
/** How many points the curve has, and point i, by rising flash. */
int qat_budget_points(const qat_budget *budget);
const qat_budget_point *qat_budget_point_at(const qat_budget *budget, int i);
/** The path of budget.ini. */
const char *qat_budget_recipe(const qat_budget *budget);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
