/** Names that people type: find the nearest known name, match patterns. */
#ifndef QAT_BASE_WORDS_H
#define QAT_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/** Edit distance: insertions, deletions, substitutions and swaps of neighbouring characters. */
int qat_edit_distance(const char *a, const char *b);

/** name in small letters, with _ for -; cut to fit. */
void qat_small_letters(const char *name, char *text, size_t max);

/**
 * How far a name that somebody wrote is from one that exists: twice the edit distance, without
 * regard to capitals, '-' and '_'; 3 if one of the two is a whole word of the other ("batch_size"
 * and "batch"), where that is less.
 */
int qat_name_distance(const char *written, const char *name);

/** text, without `end` if it ends so, in cut[max]. false: there is no room for it. */
bool qat_without_end(const char *text, const char *end, char *cut, size_t max);

/** Does name match a shell pattern: * ? [..], where * also matches '/'? */
bool qat_matches(const char *pattern, const char *name);

/** The ending of the plural: "1 sample", "2 samples". */
static inline const char *qat_plural(long long count)
{
    return count == 1 ? "" : "s";
}

#endif
