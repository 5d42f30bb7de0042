#include "base/words.h"
#include "base/number.h"

#include <fnmatch.h>
#include <string.h>

static int min3(int a, int b, int c)
{
    int const m = a < b ? a : b;
    return m < c ? m : c;
}

int qat_edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    int const n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    int rows[3][LONGEST + 1]; /* the row before the last, the last row, this row */
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++)
        before[j] = last[j] = j;
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min3(now[j], before[j - 2] + 1, now[j]);
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

void qat_small_letters(const char *name, char *text, size_t max)
{
    size_t n = 0;
    for (; name[n] && n + 1 < max; n++)
        text[n] = name[n] == '-' ? '_' : qat_lower(name[n]);
    text[n] = 0;
}

bool qat_without_end(const char *text, const char *end, char *cut, size_t max)
{
    size_t const n = strlen(text), more = strlen(end);
    size_t const left = n > more && strcmp(text + n - more, end) == 0 ? n - more : n;
    if (left >= max)
        return false;
    memcpy(cut, text, left);
    cut[left] = 0;
    return true;
}

/** Is `word` one of the words of "a_b_c"? */
static bool is_word_of(const char *word, const char *words)
{
    size_t const length = strlen(word);
    for (const char *at = words; at; at = strchr(at, '_')) {
        at += *at == '_';
        if (length > 1 && strcspn(at, "_") == length && !strncmp(at, word, length))
            return true;
    }
    return false;
}

static void drop_underscores(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != '_')
            *to++ = *from;
    *to = 0;
}

int qat_name_distance(const char *written, const char *name)
{
    enum { WORD = 3 };
    char a[64], b[64];
    qat_small_letters(written, a, sizeof a);
    qat_small_letters(name, b, sizeof b);
    bool const word = is_word_of(a, b) || is_word_of(b, a);
    drop_underscores(a);
    drop_underscores(b);
    int const d = 2 * qat_edit_distance(a, b);
    return word && d > WORD ? WORD : d;
}

bool qat_matches(const char *pattern, const char *name)
{
    return !fnmatch(pattern, name, 0);
}
