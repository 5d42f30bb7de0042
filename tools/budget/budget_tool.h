/** qat-train --budget: what comes before the training with the chosen bits. */
#ifndef QAT_TOOLS_BUDGET_TOOL_H
#define QAT_TOOLS_BUDGET_TOOL_H

#include "qat/budget.h"
#include "tools/common/tool.h"

/** What --budget is asked for. */
typedef struct budget_wanted {
    const char *dir; /* of the run */
    bool resume, overwrite;
    const tool_list *plugins;
    uint64_t memory;
    const qat_log *log;
    bool (*stop)(void *context);
} budget_wanted;

/** Refuse a folder that has a run whose files would be replaced by accident. */
qat_status budget_spare_run(const budget_wanted *w, qat_error *err);
/** Before a float training: refuse a budget that nothing fits, and what cannot be searched. */
qat_status budget_check(const qat_recipe *recipe, const budget_wanted *w, qat_error *err);

/**
 * The recipe of the float training that comes first if the recipe has no train.init: without
 * quantization, in DIR/float. Free it. *recipe is NULL if there is nothing to train.
 * @param dir  receives the folder
 */
qat_status budget_float_recipe(qat_recipe **recipe, const qat_recipe *of, const budget_wanted *w,
                               char dir[1024], qat_error *err);
/** Is there a run in the folder that can be continued? */
bool budget_is_begun(const char *dir);
/** Set train.init to that training's checkpoint. */
qat_status budget_use_float(qat_recipe *recipe, const char *dir, qat_error *err);

/** Search, and print what was found. *chosen is the recipe to train; free it. */
qat_status budget_search(qat_recipe **chosen, const qat_recipe *recipe, const budget_wanted *w,
                         qat_error *err);

#endif
