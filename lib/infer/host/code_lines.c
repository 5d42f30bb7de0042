#include "infer/host/code_lines.h"

#include "infer/host/ask.h"

/* ------------------------------------------------------------------ one line */

/** u M + jump(u), as the inner loops compute it. */
static int64_t value_at(const qi_code_line *line, int32_t u)
{
    int32_t const step = u >= line->from ? line->step : 0;
    return (int64_t)u * line->low + (int64_t)((u - 128) * 256 + step) * line->high;
}

/** Choose `add`: code 2^right <= value + add < (code + 1) 2^right, but for codes that saturate. */
static int fit_add(const int32_t code[QI_TABLE], int32_t lo, int32_t hi, int32_t right,
                   qi_code_line *line)
{
    int64_t const one = INT64_C(1) << right;
    int64_t least = INT64_MIN, most = INT64_MAX, lowest = INT64_MAX, highest = INT64_MIN;
    for (int32_t u = 0; u < QI_TABLE; u++) {
        int64_t const value = value_at(line, u), from = code[u] * one - value;
        if (code[u] > lo && from > least)
            least = from;
        if (code[u] < hi && from + one - 1 < most)
            most = from + one - 1;
        lowest = value < lowest ? value : lowest;
        highest = value > highest ? value : highest;
    }
    if (least == INT64_MIN && most == INT64_MAX)
        least = most = 0;
    if (least == INT64_MIN)
        least = most;
    if (most == INT64_MAX)
        most = least;
    int64_t const add = least + (most - least) / 2;
    line->add = (int32_t)add;
    return least <= most && add >= INT32_MIN && add <= INT32_MAX && lowest + add >= INT32_MIN &&
           highest + add <= INT32_MAX;
}

/** Write M as low + 256 high, with `more` in high. Returns 0 if one of them does not fit 16 bits.
 */
static int split(int32_t slope, int32_t more, qi_code_line *line)
{
    int32_t const high = (slope >> 8) + more, low = slope - high * 256;
    line->low = (int16_t)low;
    line->high = (int16_t)high;
    return low >= INT16_MIN && low <= INT16_MAX && high >= INT16_MIN && high <= INT16_MAX;
}

/** Try the steps about jump / |high|. */
static int fit_jump(const int32_t code[QI_TABLE], int32_t lo, int32_t hi, int32_t jump,
                    int32_t right, qi_code_line *line)
{
    int32_t const size = line->high < 0 ? -line->high : line->high;
    int32_t const nominal = size > 0 ? (jump + size / 2) / size : 0;
    for (int32_t step = nominal - 1; step <= nominal + 1; step++) {
        line->step = (uint8_t)step;
        if (step > 0 && step <= UINT8_MAX && fit_add(code, lo, hi, right, line))
            return 1;
    }
    return 0;
}

/** Where M is flat, the jump is more than 255 times `high`; then `high` may be more than M / 256.
 */
int qi_code_line_fit(const int32_t code[QI_TABLE], int32_t lo, int32_t hi, int32_t slope,
                     int32_t jump, int32_t from, int32_t right, qi_code_line *line)
{
    enum { MOST = 120, APART = 40 };
    *line = (qi_code_line){.from = (uint8_t)from};
    if (split(slope, 0, line) && fit_add(code, lo, hi, right, line))
        return 1;
    if (jump == 0 || from >= QI_TABLE)
        return 0;
    for (int32_t more = 0; more <= MOST; more += APART)
        if (split(slope, slope < 0 ? -more : more, line) &&
            fit_jump(code, lo, hi, jump, right, line))
            return 1;
    return 0;
}

/* ------------------------------------------------------------------ the lines of a node */

/** a / 2^n, rounded */
static int64_t shifted(int64_t a, int32_t n)
{
    return (a + (INT64_C(1) << (n - 1))) >> n;
}

/** M and the jump of one line. */
struct nominal {
    int64_t slope;
    int32_t jump, from;
};

/** mul: y = R((x - Z_x) w); ties of R go away from zero, which is at x = Z_x. */
static struct nominal of_mul(const qi_model *model, const qi_node *node, int row, int byte,
                             int32_t right)
{
    const int32_t *p = node->params;
    int32_t const r = -p[QI_MUL_SHIFT];
    qi_codes const codes = qi_codes_of(qi_input(model, node, row));
    int32_t const w = (byte ^ codes.flip) - codes.offset;
    int32_t const zero = qi_codes_of(qi_input(model, node, 1 - row)).offset;
    return (struct nominal){.slope = shifted((int64_t)w * p[QI_MUL_MULT], 31 + r - right),
                            .jump = r > 0 && r <= right ? 1 << (right - r) : 0,
                            .from = w < 0 ? zero + 1 : zero};
}

/** add, sub: the slope of the rescaled operand, all of whose 256 steps together are measured. */
static struct nominal of_add(const qi_model *model, const qi_node *node, int row, int32_t right)
{
    const int32_t *p = node->params;
    int const mult = row ? QI_ADD_MULT_A : QI_ADD_MULT_B;
    int32_t const offset = qi_codes_of(qi_input(model, node, 1 - row)).offset;
    int64_t const all =
        (int64_t)qi_requantize((255 - offset) * (1 << p[QI_ADD_LEFT_SHIFT]), p[mult], p[mult + 1]) -
        qi_requantize(-offset * (1 << p[QI_ADD_LEFT_SHIFT]), p[mult], p[mult + 1]);
    int64_t const rise = all * p[QI_ADD_MULT_Y] / 255;
    int const falls = row == 0 && node->kernel == &qi_kernel_sub;
    return (struct nominal){.slope = shifted(falls ? -rise : rise, 31 - p[QI_ADD_SHIFT_Y] - right)};
}

static int fit_all(const qi_model *model, const qi_node *node, int row,
                   const uint8_t needed[QI_TABLE], qi_code_line_table *lines)
{
    enum { MOST = (1 << 23) - 1 };
    int const is_mul = node->kernel == &qi_kernel_mul;
    int const clamp = is_mul ? QI_MUL_CLAMP_LO : QI_ADD_CLAMP_LO;
    int32_t const flip = qi_output(model, node)->type == QI_U8 ? 0x80 : 0;
    int32_t const lo = node->params[clamp] - flip, hi = node->params[clamp + 1] - flip;
    uint8_t answers[QI_TABLE][QI_CHUNK];
    int32_t code[QI_TABLE];
    for (int byte = 0; byte < QI_TABLE; byte++) {
        if (byte % QI_CHUNK == 0)
            qi_ask_pairs(model, node, row, byte, answers);
        if (!needed[byte])
            continue;
        for (int u = 0; u < QI_TABLE; u++)
            code[u] = (int8_t)(answers[u][byte % QI_CHUNK] ^ flip);
        struct nominal const n = is_mul ? of_mul(model, node, row, byte, lines->right)
                                        : of_add(model, node, row, lines->right);
        if (n.slope < -MOST || n.slope > MOST ||
            !qi_code_line_fit(code, lo, hi, (int32_t)n.slope, n.jump, n.from, lines->right,
                              &lines->of[byte]))
            return 0;
    }
    return 1;
}

int qi_code_lines_of_node(const qi_model *model, const qi_node *node, int row,
                          const uint8_t needed[QI_TABLE], qi_code_line_table *lines)
{
    enum { FINEST = 22, COARSEST = 16 }; /* 10 bits of codes, or more where lines are steep */
    memset(lines, 0, sizeof *lines);
    for (lines->right = FINEST; lines->right >= COARSEST; lines->right--)
        if (fit_all(model, node, row, needed, lines))
            return 1;
    return 0;
}
