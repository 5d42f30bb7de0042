/** Names that people type: find the nearest known name, match patterns. */
#ifndef QAT_BASE_WORDS_H
#define QAT_BASE_WORDS_H

#include <stdbool.h>

/** Edit distance: insertions, deletions, substitutions and swaps of neighbouring characters. */
int qat_edit_distance(const char *a, const char *b);

/** Does name match a shell pattern: * ? [..], where * also matches '/'? */
bool qat_matches(const char *pattern, const char *name);

/** The ending of the plural: "1 sample", "2 samples". */
static inline const char *qat_plural(long long count)
{
    return count == 1 ? "" : "s";
}

#endif
