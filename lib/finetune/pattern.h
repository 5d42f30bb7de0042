/**
 * Lists of name patterns in recipes: "conv1, block*", separated by commas. A pattern is a shell
 * pattern (* ? [..], where * also matches '/'). It matches the whole name of a parameter, or a part
 * of it that ends before a '/'. For example, "conv1" matches conv1/weights and conv1/bn/gamma.
 */
#ifndef QAT_FINETUNE_PATTERN_H
#define QAT_FINETUNE_PATTERN_H

#include "qat/graph.h"

enum { QAT_PATTERN_MAX = 200 };

/**
 * Get the next item of a comma list, without the blanks around it. Returns false at the end of the
 * list.
 */
bool qat_list_next(const char **at, char item[QAT_PATTERN_MAX]);

bool qat_pattern_matches(const char *pattern, const char *name);
/** Does any of the list's patterns match? */
bool qat_patterns_match(const char *list, const char *name);

#endif
