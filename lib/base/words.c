#include "base/words.h"

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

bool qat_matches(const char *pattern, const char *name)
{
    return !fnmatch(pattern, name, 0);
}
