/** Names that people write: the nearest one, and patterns. */
#ifndef QAT_BASE_WORDS_H
#define QAT_BASE_WORDS_H

#include <stdbool.h>

/** Edit distance with insertions, deletions, substitutions and swaps of neighbours. */
int qat_edit_distance(const char *a, const char *b);

/** Does name match the pattern, a shell's: * ? [..], with * also matching '/'? */
bool qat_matches(const char *pattern, const char *name);

/** "1 sample", "2 samples": what follows the word. */
static inline const char *qat_plural(long long count)
{
    return count == 1 ? "" : "s";
}

#endif
