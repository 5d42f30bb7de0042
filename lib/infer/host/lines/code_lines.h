/**
 * Straight lines instead of roundings, for functions of one code x. They are many: if one operand
 * of add, sub or mul has the same code for many codes of the other one (a row of channels, beside a
 * picture), then for that code the op is such a function; and so are requantize and many tables.
 * With u = -128..127, the code of x as signed, or 255 less where the function falls,
 *
 *   y = clamp(floor((floor((256 u + part(u)) M / 2^16) + add) / 2^right))
 *
 * M has 15 bits. part is one of two bytes, below `from` and from there on: so the line has steps as
 * fine as u / 256, and a jump at `from`. The jump stands for the second rounding of mul, whose ties
 * go away from zero. All of this is 16-bit arithmetic.
 *
 * The line rises on both sides of `from`. So its codes are right if they are at the first and the
 * last u of each code, on each side. With phi = part M + 2^16 add these are bounds for phi:
 *
 *   code 2^(16 + right) - 256 u M  <=  phi  <  (code + 1) 2^(16 + right) - 256 u M
 *
 * Where they leave no phi, the two u that say so say which M are too steep or too flat.
 */
#ifndef QI_HOST_CODE_LINES_H
#define QI_HOST_CODE_LINES_H

#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"

/** The line of one function. */
typedef struct qi_code_line {
    int16_t mult, add;
    uint8_t flip;
    int8_t from;
    uint8_t part[2];
} qi_code_line;

/**
 * Lines of one node, which have `right` in common: by byte of the row, or by channel. Each byte of
 * a line has a table of its own, so that lines are laid out by looking up.
 */
enum {
    QI_LINE_MULT,    /* two bytes, the lower one first */
    QI_LINE_ADD = 2, /* likewise */
    QI_LINE_FLIP = 4,
    QI_LINE_FROM,
    QI_LINE_FIRST,  /* part below `from` */
    QI_LINE_CHANGE, /* what is added to it from there on */
    QI_LINE_BYTES
};

typedef struct qi_code_line_table {
    int32_t right, jumps; /* jumps: some line has two parts */
    uint8_t of[QI_LINE_BYTES][QI_TABLE];
} qi_code_line_table;

void qi_code_line_set(qi_code_line_table *lines, int which, const qi_code_line *line);

enum { QI_LINE_FINEST = 8, QI_LINE_COARSEST = 3 }; /* right */

/**
 * A line through the codes.
 * @param code   as signed, by x as unsigned, 0..255; they rise or fall, and are in lo..hi
 * @param flip   turns bytes of x into signed codes
 * @param from   the first x after the jump, 0..256
 * @param guess  a slope to try first, or 0
 * @return       1; or 0 if there is none with this `right`
 */
int qi_code_line_fit(const int8_t code[QI_TABLE], int32_t lo, int32_t hi, uint8_t flip,
                     int32_t from, int32_t right, int32_t guess, qi_code_line *line);

/** The code that a line gives for a byte of x, as inner loops compute it. */
int32_t qi_code_line_code(const qi_code_line *line, int32_t right, int32_t lo, int32_t hi,
                          uint8_t x);

/**
 * The lines of add, sub or mul.
 * @param row     which input is the row, 0 or 1
 * @param needed  for each byte of the row, whether its line is needed
 * @return        1; or 0: some byte that is needed has no line
 */
int qi_code_lines_of_node(const qi_model *model, const qi_node *node, int row,
                          const uint8_t needed[QI_TABLE], qi_code_line_table *lines);

/* ------------------------------------------------------------------ laid out for inner loops */

/** Lines are laid out for this many codes: the fewest of whole blocks and pixels, at least some. */
size_t qi_lines_length(size_t channels, size_t block);

/** Bytes for the lines of this many codes. */
size_t qi_lines_bytes(size_t codes, size_t block);

/** Lay out the lines of pixels: line[i] is that of channel i, out of `lines`. */
void qi_lines_lay_out(const qi_elementwise *inner, const qi_code_line_table *lines,
                      const uint8_t *line, size_t channels, size_t codes, void *at);

/** y = the lines of x. `at` holds lines for `length` codes; lo, hi and y_flip as in qi_scaling. */
void qi_lines_run(const qi_elementwise *inner, const qi_code_line_table *lines, const void *at,
                  size_t length, const qi_scaling *limits, const uint8_t *x, uint8_t *y, size_t n);

#endif
