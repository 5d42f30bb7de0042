/** Chooses which boxes a detector keeps. Integer models and float networks share this. */
#ifndef QAT_DETECT_CHOOSE_H
#define QAT_DETECT_CHOOSE_H

#include "detect/select.h"

/** A row of the result; box -1: an empty row. */
struct choice {
    int box, class;
    int32_t key;
};

/** The most rows that these rules can give. */
int qat_choice_rows(const qat_choice_rules *rules);

/**
 * Choose among n boxes by c->keys [n, background + classes]. c must have been made for `background
 * + classes` classes and max_detections. Overwrites c->values, order, passed, kept and alive.
 *
 * @param threshold  for keys; it replaces rules->score_threshold
 * @param rows       room for qat_choice_rows; fast: kept box i has max_classes rows, from i
 *                   max_classes on
 * @param found      number of boxes kept (fast) or of rows (regular)
 * @return false: out of memory
 */
bool qat_choose(struct candidates *c, int n, int classes, const qat_choice_rules *rules,
                int32_t threshold, struct choice *rows, int *found);

#endif
