/**
 * What the terminal behind standard error can show, and a block of lines that is drawn there again
 * and again, in place.
 *
 * Nothing of the terminal is changed for longer than a block is written: the cursor stays visible,
 * each line ends without a style, and there is no other screen. So there is nothing to restore,
 * whatever ends the program.
 */
#ifndef QAT_TOOLS_LIVE_TERMINAL_H
#define QAT_TOOLS_LIVE_TERMINAL_H

#include "base/bytes.h"

#include <stdbool.h>

typedef struct live_terminal {
    bool utf8, colours;
    int columns, rows;        /* now */
    int drawn, drawn_columns; /* lines and columns of the block that stands there; 0: none */
} live_terminal;

/** false: there is no terminal, or one that cannot move its cursor (TERM=dumb). */
bool live_terminal_open(live_terminal *terminal);
/** Ask for its size: it may have changed. */
void live_terminal_measure(live_terminal *terminal);
/** Draw a block in place of the one that stands there. Its lines end with a line feed. */
void live_terminal_draw(live_terminal *terminal, const qat_writer *block, int lines, int columns);
/** Remove the block. */
void live_terminal_clear(live_terminal *terminal);

/** A line of a block, which never gets wider than `most` columns. */
typedef struct live_line {
    const live_terminal *terminal;
    qat_writer *to;
    int columns, most;
} live_line;

/** Styles: those of SGR ("31": red); 0: none. */
enum { LIVE_DIM = 2, LIVE_RED = 31, LIVE_GREEN, LIVE_YELLOW, LIVE_BLUE, LIVE_MAGENTA, LIVE_CYAN };

/** Append text. What is not known to have one column, or cannot be shown, becomes '?'. */
void live_put(live_line *line, int style, const char *text);
void live_putf(live_line *line, int style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Append blanks up to a column. */
void live_fill(live_line *line, int column);

#endif
