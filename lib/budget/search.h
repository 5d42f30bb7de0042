/** Private to lib/budget: the state of a search, which search.c runs and write.c writes. */
#ifndef QAT_BUDGET_SEARCH_H
#define QAT_BUDGET_SEARCH_H

#include "budget/meter.h"
#include "budget/table.h"

enum { BUDGET_PATH_MAX = 1024, BUDGET_POINTS = 12 };

/** What an export with a choice has shown. Solving asks for the same choices again and again. */
typedef struct budget_export {
    struct budget_export *next;
    int64_t other; /* bytes of the .qm that are not weights; -1: not known yet */
    bool has_ram;
    qat_ram_plan ram;
    int choice[]; /* by item */
} budget_export;

struct qat_budget {
    const qat_recipe *recipe;
    char dir[BUDGET_PATH_MAX], recipe_path[BUDGET_PATH_MAX];
    budget_network net;
    budget_limits limits;    /* bytes: of weights */
    int64_t other_flash;     /* bytes of the .qm that are not weights: of least, then of choice */
    int64_t most_flash;      /* of the .qm with the most bits */
    int *least;              /* by item: the choice that makes the smallest .qm */
    qat_ram_plan ram;        /* of choice */
    int *choice;             /* by item */
    int *cuts;               /* limits.cuts; room for all */
    uint64_t flash_cuts;     /* a bit for each of them that holds for one size of flash only */
    budget_export **exports; /* the first; a search that is const adds to them */
    qat_budget_point chosen, points[BUDGET_POINTS];
    int n_points;
    double base_loss; /* with the first choice of each item */
};

/** The path of a file in the search's folder; there must be room for the longest name of a file. */
qat_status budget_path_in(char path[BUDGET_PATH_MAX], const char *dir, const char *name,
                          qat_error *err);

/* exports.c */

/** What is known of a choice; NULL: out of memory. */
budget_export *budget_export_of(const qat_budget *b, const int *choice);
void budget_exports_free(budget_export **exports); /* NULL is fine */

/* needs.c */

/** Room for a pattern: a section's name has 49 characters, "quant.layer " among them. */
enum { BUDGET_PATTERN_MAX = 38 };
/** A pattern that matches this layer alone: its name, or as much of its ends as a section holds. */
bool budget_pattern_of(const budget_network *net, const char *name,
                       char pattern[BUDGET_PATTERN_MAX]);

/** Which bits a recipe gets. */
typedef enum budget_bits {
    BUDGET_CHOSEN,      /* those of a choice */
    BUDGET_BYTE_WEIGHTS /* those of its activations; all weights have 8 bits */
} budget_bits;
/** The recipe with these bits and without [budget], as a recipe that was checked. */
qat_status budget_recipe_of(qat_recipe **made, const qat_recipe *recipe, const budget_network *net,
                            const int *choice, budget_bits bits, qat_error *err);
/**
 * Find least, other_flash and most_flash, set limits, and check that something fits: else
 * QAT_ERR_ARGUMENT, and the message names the least that is possible.
 */
qat_status budget_check_needs(qat_budget *b, const budget_meter *m, qat_error *err);

/**
 * The bytes of the .qm that are not weights, with this choice. Only outputs that are concatenated
 * with different bits change them: they are requantized, by further ops.
 */
qat_status budget_other_flash(int64_t *bytes, const qat_budget *b, const budget_meter *m,
                              const int *choice, qat_error *err);

/* ram.c */

/** The RAM of a choice, and whether budget.ram allows it. */
qat_status budget_find_ram(qat_ram_plan *plan, bool *does_fit, const qat_budget *b,
                           const budget_meter *m, const int *choice, qat_error *err);
/** Check that something fits budget.ram: else QAT_ERR_ARGUMENT, with the least that is possible. */
qat_status budget_check_ram(const qat_budget *b, const budget_meter *m, qat_error *err);
/** What row bands or packed tensors add to the .qm; 0 without budget.ram. */
int64_t budget_flash_for_ram(const qat_budget *b, const qat_ram_plan *plan);
/**
 * Does the choice fit budget.ram? If it does not, the limits get a cut that it does not meet.
 * @param added  receives the bytes of the .qm that make it fit
 */
qat_status budget_fit_or_cut(qat_budget *b, const budget_meter *m, const int *choice,
                             bool *does_fit, int64_t *added, qat_error *err);

/**
 * Add a cut: some activation has fewer bits than in this choice. It holds for one size of flash.
 * Returns false if none can have, or if there is no room.
 */
bool budget_cut_activations(qat_budget *b, const int *choice);
/** Remove these cuts. */
void budget_forget_flash_cuts(qat_budget *b);

/* measure.c */

/** Tell the caller what is done. QAT_ERR_STATE: the search is to stop. */
qat_status budget_tick(const budget_meter *m, int64_t done, int64_t all, qat_error *err);
/** Fill in the losses of all items, from the table or by measuring. */
qat_status budget_measure(qat_budget *b, budget_meter *m, budget_table *table, qat_error *err);
/** The loss that a choice adds in simulation. */
qat_status budget_simulate(qat_budget *b, budget_meter *m, budget_table *table, const int *choice,
                           double *added, qat_error *err);

/* write.c */

/**
 * Write budget.ini, budget.csv, curve.csv and budget.json.
 * @param resume  write nothing if budget.ini is there, for another run: QAT_ERR_STATE
 */
qat_status budget_write(const qat_budget *b, bool resume, qat_error *err);

#endif
