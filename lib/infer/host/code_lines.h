/**
 * Straight lines instead of roundings. If one operand of add, sub or mul has the same code for many
 * codes of the other operand x (a row of channels, beside a picture), then for that code the op is
 * a function of x alone, and it is nearly a straight line. With u = 0..255, the code of x as
 * unsigned,
 *
 *   y = clamp(floor((u M + add + jump(u)) / 2^right)),     jump(u) = step high if u >= from
 *
 * M = low + 256 high has 23 bits, low and high have 16. The jump stands for the second rounding,
 * whose ties go away from zero: lines on the two sides of zero are not quite one line. Whether
 * there are such numbers is not proved but checked: for all 256 u and each code of the row, the
 * line must give the core's code.
 */
#ifndef QI_HOST_CODE_LINES_H
#define QI_HOST_CODE_LINES_H

#include "infer/host/elementwise.h"
#include "infer/host/fast.h"

/** The line of one code of the row. */
typedef struct qi_code_line {
    int16_t low, high;
    int32_t add;
    uint8_t from, step;
} qi_code_line;

typedef struct qi_code_line_table {
    int32_t right;
    qi_code_line of[QI_TABLE]; /* by byte of the row; to codes that are signed, as in qi_scaling */
} qi_code_line_table;

/**
 * A line through the codes.
 * @param code   by u; they rise or fall, and are in lo..hi
 * @param slope  M, |M| < 2^23
 * @param jump   size of the jump, >= 0, in units of 2^-right; 0: none
 * @return       1; or 0 if none of the lines that were tried gives these codes
 */
int qi_code_line_fit(const int32_t code[QI_TABLE], int32_t lo, int32_t hi, int32_t slope,
                     int32_t jump, int32_t from, int32_t right, qi_code_line *line);

/**
 * The lines of add, sub or mul.
 * @param row     which input is the row, 0 or 1
 * @param needed  for each byte of the row, whether its line is needed
 * @return        1; or 0: some byte that is needed has no line
 */
int qi_code_lines_of_node(const qi_model *model, const qi_node *node, int row,
                          const uint8_t needed[QI_TABLE], qi_code_line_table *lines);

#endif
