/** What a detector keeps of its boxes: shared by integer models and float networks. */
#ifndef QAT_DETECT_CHOOSE_H
#define QAT_DETECT_CHOOSE_H

#include "detect/select.h"

/** A row of the result; box -1: an empty one. */
struct choice {
    int box, class;
    int32_t key;
};

/** Rows that rules can give. */
int qat_choice_rows(const qat_choice_rules *rules);

/**
 * Choose among n boxes by c->keys [n, background + classes] (overwritten: c->values, order, passed,
 * kept, alive). c was made for `background + classes` classes and max_detections.
 *
 * @param threshold  of keys, in place of rules->score_threshold
 * @param rows       qat_choice_rows; fast: kept box i has the max_classes rows from
 *                   i max_classes on
 * @param found      boxes kept (fast) or rows (regular)
 * @return false: out of memory
 */
bool qat_choose(struct candidates *c, int n, int classes, const qat_choice_rules *rules,
                int32_t threshold, struct choice *rows, int *found);

#endif
