#define _DEFAULT_SOURCE /* TIOCGWINSZ */
#include "tools/live/terminal.h"

#include "base/shown.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ------------------------------------------------------------------ what it can do */

/** Does the user's locale have UTF-8? The program's own stays as it is. */
static bool is_utf8(void)
{
    locale_t const of = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!of)
        return false;
    bool const utf8 = !strcmp(nl_langinfo_l(CODESET, of), "UTF-8");
    freelocale(of);
    return utf8;
}

bool live_terminal_open(live_terminal *t)
{
    const char *kind = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    *t = (live_terminal){.utf8 = is_utf8(), .colours = !no_colour || !*no_colour};
    live_terminal_measure(t);
    return isatty(STDERR_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
}

void live_terminal_measure(live_terminal *t)
{
    struct winsize size = {0};
    bool const known = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    t->columns = known && size.ws_col ? size.ws_col : 80;
    t->rows = known && size.ws_row ? size.ws_row : 24;
}

/* ------------------------------------------------------------------ the block */

/** Write all at once, so that no half of a block is seen. */
static void send(const qat_writer *w)
{
    size_t done = 0;
    while (!w->failed && done < w->count) {
        ssize_t const n = write(STDERR_FILENO, w->bytes + done, w->count - done);
        if (n < 0 && errno != EINTR)
            return;
        done += n > 0 ? (size_t)n : 0;
    }
}

/** Go back to the first line of the block. A narrower terminal has wrapped it: start anew. */
static void go_back(const live_terminal *t, qat_writer *w)
{
    if (t->drawn && (t->columns <= t->drawn_columns || t->rows <= t->drawn))
        qat_write_text(w, "\033[H\033[2J");
    else if (t->drawn)
        qat_write_text(w, "\033[%dA\r", t->drawn);
}

void live_terminal_draw(live_terminal *t, const qat_writer *block, int lines, int columns)
{
    qat_writer w = {0};
    go_back(t, &w);
    qat_write_bytes(&w, block->bytes, block->count);
    qat_write_text(&w, "\033[J");
    send(&w);
    t->drawn = w.failed ? t->drawn : lines;
    t->drawn_columns = w.failed ? t->drawn_columns : columns;
    qat_writer_free(&w);
}

void live_terminal_clear(live_terminal *t)
{
    qat_writer w = {0};
    if (!t->drawn)
        return;
    live_terminal_measure(t);
    go_back(t, &w);
    qat_write_text(&w, "\033[J");
    send(&w);
    t->drawn = 0;
    qat_writer_free(&w);
}

/* ------------------------------------------------------------------ lines */

/** Has this character one column everywhere? Latin letters, dots, bars, braille, blocks. */
static bool is_narrow(int32_t character)
{
    return (character >= ' ' && character < 0x300) || (character >= 0x2500 && character < 0x2600) ||
           (character >= 0x2800 && character < 0x2900);
}

void live_put(live_line *line, int style, const char *text)
{
    bool const styled = style && line->terminal->colours && *text;
    if (styled)
        qat_write_text(line->to, "\033[%dm", style);
    while (*text && line->columns < line->most) {
        size_t n;
        bool plain;
        int32_t const c = qat_character(text, &n, &plain);
        bool const shown = plain && is_narrow(c) && (c < 0x80 || line->terminal->utf8);
        qat_write_bytes(line->to, shown ? text : "?", shown ? n : 1);
        line->columns++;
        text += n;
    }
    if (styled)
        qat_write_text(line->to, "\033[0m");
}

void live_putf(live_line *line, int style, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    live_put(line, style, text);
}

void live_fill(live_line *line, int column)
{
    while (line->columns < column && line->columns < line->most) {
        qat_write_u8(line->to, ' ');
        line->columns++;
    }
}
