/**
 * A stranger's text for people's eyes. Names of layers, classes and files may hold any bytes, also
 * those that move a terminal's cursor, set its title, or write a line anew.
 */
#ifndef QAT_BASE_SHOWN_H
#define QAT_BASE_SHOWN_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QAT_SHOWN_PER_BYTE = 5 }; /* a byte becomes at most this many: "\\x1b" when quoted */

/**
 * Copy text into to[max] (max > 0). These become \xNN, byte by byte:
 *
 *     control characters     U+0000..U+001F, U+007F..U+009F, also line ends and tabs
 *     what turns or hides    U+00AD, U+061C, U+180E, U+200B..U+200F, U+2028..U+202E,
 *                            U+2060..U+206F, U+FEFF, U+FFF9..U+FFFB, U+E0000..U+E0FFF
 *     what is no UTF-8       bytes outside of a whole, shortest character
 *
 * All other characters stay. Example: "a\033[31m" becomes "a\x1b[31m". The copy is cut to fit, at a
 * whole character.
 * @param quoted  write a backslash before '"' and each '\', as in the strings of Graphviz
 */
void qat_shown(char *to, size_t max, const char *text, bool quoted);

/** Does qat_shown (not quoted) leave the text as it is? */
bool qat_is_plain(const char *text);

/**
 * The character of UTF-8 at the start of text, of *n bytes; -1 if the first byte begins none (then
 * *n is 1). *plain: does qat_shown leave it? text must not be empty.
 */
int32_t qat_character(const char *text, size_t *n, bool *plain);

/** Append a text of any bytes as a string of JSON: what qat_shown changes becomes \\uNNNN. */
void qat_write_json(qat_writer *w, const char *text);
/** Append a field of CSV, in quotes if it needs them (RFC 4180). */
void qat_write_csv(qat_writer *w, const char *text);

#endif
