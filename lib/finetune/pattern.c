#include "finetune/pattern.h"

#include "base/number.h"
#include "base/words.h"

#include <stdio.h>
#include <string.h>

bool qat_list_next(const char **at, char item[QAT_PATTERN_MAX])
{
    const char *from = *at + strspn(*at, ", \t");
    size_t n = strcspn(from, ",");
    *at = from + n;
    while (n && qat_is_blank(from[n - 1]))
        n--;
    n = n < QAT_PATTERN_MAX ? n : QAT_PATTERN_MAX - 1;
    memcpy(item, from, n);
    item[n] = 0;
    return n > 0;
}

bool qat_pattern_matches(const char *pattern, const char *name)
{
    char part[2 * QAT_NAME_MAX];
    for (size_t n = strcspn(name, "/"); n < sizeof part; n += 1 + strcspn(name + n + 1, "/")) {
        memcpy(part, name, n);
        part[n] = 0;
        if (qat_matches(pattern, part))
            return true;
        if (!name[n])
            return false;
    }
    return false;
}

bool qat_patterns_match(const char *list, const char *name)
{
    char pattern[QAT_PATTERN_MAX];
    while (qat_list_next(&list, pattern))
        if (qat_pattern_matches(pattern, name))
            return true;
    return false;
}
