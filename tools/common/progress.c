/** The progress bar. It is shown on a terminal only, and redrawn at most ten times a second. */
#include "tools/common/tool.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR_WIDTH = 24 };

static bool shown; /* the current line shows a bar */
static double last_drawn;

void tool_bar_clear(void)
{
    if (shown)
        fprintf(stderr, "\r\033[K");
    fflush(stderr);
    shown = false;
}

void tool_bar(const char *label, double fraction, const char *text)
{
    if (!isatty(STDERR_FILENO) || (tool_now() - last_drawn < 0.1 && fraction < 1))
        return;
    last_drawn = tool_now();
    char bar[BAR_WIDTH + 1];
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    int const full = (int)(fraction * BAR_WIDTH);
    memset(bar, '-', BAR_WIDTH);
    memset(bar, '#', (size_t)full);
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r\033[K%s [%s] %3.0f %% %s", label, bar, 100 * fraction, text);
    fflush(stderr);
    shown = true;
}

bool tool_tick(void *context, int64_t done, int64_t total)
{
    char text[64];
    snprintf(text, sizeof text, "%lld/%lld", (long long)done, (long long)total);
    if (total > 0)
        tool_bar(context, (double)done / (double)total, text);
    if (done >= total)
        tool_bar_clear();
    return true;
}
