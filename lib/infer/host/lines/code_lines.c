#include "infer/host/lines/code_lines.h"

#include "infer/host/lines/ask.h"

int32_t qi_code_line_code(const qi_code_line *l, int32_t right, int32_t lo, int32_t hi, uint8_t x)
{
    int32_t const u = (int8_t)(x ^ l->flip);
    int32_t const product = (256 * u + l->part[u >= l->from]) * l->mult >> 16;
    return qi_clamp(qi_clamp(product + l->add, INT16_MIN, INT16_MAX) >> right, lo, hi);
}

/* ------------------------------------------------------------------ what bounds a line */

/** The first u of each code on one side, and the last ones: bounds from below and from above. */
struct ends {
    int count[2];
    int32_t u[2][QI_TABLE], code[2][QI_TABLE];
};

static void add_end(struct ends *e, int which, int32_t i, int32_t code)
{
    e->u[which][e->count[which]] = i - QI_TABLE / 2;
    e->code[which][e->count[which]++] = code;
}

/** Codes that are limited bound the line from one side. Returns 0 if some code is below another. */
static int find_ends(const int8_t code[QI_TABLE], int32_t lo, int32_t hi, int32_t from,
                     struct ends ends[2])
{
    ends[0].count[0] = ends[0].count[1] = ends[1].count[0] = ends[1].count[1] = 0;
    for (int first = 0, next; first < QI_TABLE; first = next) {
        struct ends *e = &ends[first >= from];
        for (next = first + 1; next < QI_TABLE && code[next] == code[first] && next != from;)
            next++;
        if (next < QI_TABLE && code[next] < code[first])
            return 0;
        if (code[first] > lo)
            add_end(e, 0, first, code[first]);
        if (code[first] < hi)
            add_end(e, 1, next - 1, code[first] + 1);
    }
    return 1;
}

/** Bounds of phi, and the u that set them. */
struct room {
    int64_t least, most;
    int32_t u[2], code[2];
};

static const int64_t none = INT64_C(1) << 62;

static struct room room_of(const struct ends *e, int32_t right, int64_t mult)
{
    struct room r = {-none, none, {0, 0}, {0, 0}};
    int at[2] = {0, 0};
    for (int i = 0; i < e->count[0]; i++) {
        int64_t const phi = e->code[0][i] * (INT64_C(1) << (16 + right)) - 256 * e->u[0][i] * mult;
        at[0] = phi > r.least ? i : at[0];
        r.least = phi > r.least ? phi : r.least;
    }
    for (int i = 0; i < e->count[1]; i++) {
        int64_t const phi = e->code[1][i] * (INT64_C(1) << (16 + right)) - 256 * e->u[1][i] * mult;
        at[1] = phi <= r.most ? i : at[1];
        r.most = phi <= r.most ? phi - 1 : r.most;
    }
    for (int which = 0; which < 2 && r.least > r.most; which++) { /* then both sides have some */
        r.u[which] = e->u[which][at[which]];
        r.code[which] = e->code[which][at[which]];
    }
    return r;
}

/* ------------------------------------------------------------------ one line */

/** A part for which phi is in the room, or -1. */
static int32_t part_in(const struct room *r, int64_t mult, int64_t add)
{
    int64_t const base = add * (1 << 16);
    int64_t part = 0;
    if (r->least > base)
        part = mult ? (r->least - base + mult - 1) / mult : QI_TABLE;
    return part < QI_TABLE && base + part * mult <= r->most ? (int32_t)part : -1;
}

/** The largest `add` that may do; the next ones are smaller. */
static int64_t first_add(const struct room *a, const struct room *b)
{
    int64_t const most = a->most < b->most ? a->most : b->most;
    int64_t const least = a->least > b->least ? a->least : b->least;
    return most < none ? most >> 16 : least > -none ? (least >> 16) + 1 : 0;
}

static int choose_parts(const struct room *below, const struct room *above, int64_t mult,
                        qi_code_line *line)
{
    int64_t const first = first_add(below, above);
    for (int64_t add = first; add > first - QI_TABLE / 2; add--) {
        int32_t const part[2] = {part_in(below, mult, add), part_in(above, mult, add)};
        if (part[0] < 0 || part[1] < 0)
            continue;
        line->mult = (int16_t)mult;
        line->add = (int16_t)add;
        line->part[0] = (uint8_t)part[0];
        line->part[1] = (uint8_t)part[1];
        return add >= INT16_MIN && add <= INT16_MAX;
    }
    return 0;
}

/** One part for both sides if there is one. */
static int choose(const struct room r[2], int64_t mult, qi_code_line *line)
{
    struct room const both = {r[0].least > r[1].least ? r[0].least : r[1].least,
                              r[0].most < r[1].most ? r[0].most : r[1].most,
                              {0, 0},
                              {0, 0}};
    return choose_parts(&both, &both, mult, line) || choose_parts(&r[0], &r[1], mult, line);
}

struct slopes {
    int64_t least, most;
};

/** Leave out slopes for which there is no phi; which are those above or below one of them. */
static void cut(const struct room *r, int32_t right, struct slopes *slopes)
{
    int64_t const one = INT64_C(1) << (16 + right);
    int64_t const run = 256 * (int64_t)(r->u[1] - r->u[0]);
    int64_t const rise = (r->code[1] - r->code[0]) * one - 1;
    if (run > 0) /* run M <= rise */
        slopes->most = rise < 0 ? -1 : rise / run;
    else
        slopes->least = run == 0 ? slopes->most + 1 : rise >= 0 ? 0 : (-rise - run - 1) / -run;
}

/** Try a slope: 1 if there is a line, 0 if there may be, -1 if there is none (then it is cut). */
static int try_slope(const struct ends ends[2], int32_t right, int64_t slope, struct slopes *slopes,
                     qi_code_line *line)
{
    struct room const r[] = {room_of(&ends[0], right, slope), room_of(&ends[1], right, slope)};
    for (int side = 0; side < 2; side++)
        if (r[side].least > r[side].most) {
            cut(&r[side], right, slopes);
            return -1;
        }
    return choose(r, slope, line);
}

/** The slopes that leave room are all those between two of them. First `guess`, then the middle. */
static int fit_rising(const struct ends ends[2], int32_t right, int64_t guess, qi_code_line *line)
{
    enum { MOST_CUTS = 40, TRIES = 31 };
    struct slopes slopes = {0, INT16_MAX};
    if (guess > 0 && guess < slopes.most && try_slope(ends, right, guess, &slopes, line) == 1)
        return 1;
    for (int upper = 0; upper < 2; upper++)
        for (int cuts = 0; cuts < MOST_CUTS && slopes.least <= slopes.most; cuts++) {
            int const found =
                try_slope(ends, right, upper ? slopes.most : slopes.least, &slopes, line);
            if (found == 1)
                return 1;
            if (found == 0)
                break;
        }
    for (int i = 0; i < TRIES && slopes.least <= slopes.most; i++) {
        int64_t const away = (i + 1) / 2, part = (TRIES + 1) / 2 + (i % 2 ? away : -away);
        int64_t const at = slopes.least + (slopes.most - slopes.least) * part / (TRIES + 1);
        if (try_slope(ends, right, at, &slopes, line) == 1)
            return 1;
    }
    return 0;
}

/** A line of rising codes with a jump before code `from`. */
static int fit_jump(const int8_t code[QI_TABLE], int32_t lo, int32_t hi, int32_t from,
                    int32_t right, int32_t guess, qi_code_line *line)
{
    struct ends ends[2];
    line->from = (int8_t)(from < QI_TABLE ? from - QI_TABLE / 2 : INT8_MAX);
    if (!find_ends(code, lo, hi, from, ends) || !fit_rising(ends, right, guess, line))
        return 0;
    if (from == QI_TABLE)
        line->part[1] = line->part[0];
    return 1;
}

/** Flat lines have few steps and a coarse phi; then a jump elsewhere helps. */
static int fit_flat(const int8_t code[QI_TABLE], int32_t lo, int32_t hi, int32_t right,
                    qi_code_line *line)
{
    enum { MOST_STEPS = 8, APART = 8 };
    if (code[QI_TABLE - 1] - code[0] > MOST_STEPS)
        return 0;
    for (int i = 1; i < QI_TABLE; i += APART)
        if (fit_jump(code, lo, hi, i, right, 0, line))
            return 1;
    return 0;
}

/** Is any line through these codes steeper than M can be? */
static int is_steep(const int8_t code[QI_TABLE], int32_t right)
{
    int32_t const all = code[QI_TABLE - 1] - code[0];
    int32_t const rise = (all < 0 ? -all : all) - 1; /* between the inner ends */
    int last = QI_TABLE - 1, first = 0;
    while (first < last && code[first + 1] == code[0])
        first++;
    while (last > first && code[last - 1] == code[QI_TABLE - 1])
        last--;
    return rise > 0 && rise * (INT64_C(1) << (16 + right)) > 256 * (last - first + 1) * INT16_MAX;
}

int qi_code_line_fit(const int8_t code[QI_TABLE], int32_t lo, int32_t hi, uint8_t flip,
                     int32_t from, int32_t right, int32_t guess, qi_code_line *line)
{
    int const falls = code[0] > code[QI_TABLE - 1];
    int8_t rising[QI_TABLE];
    for (int i = 0; i < QI_TABLE; i++)
        rising[i] = code[falls ? QI_TABLE - 1 - i : i];
    *line = (qi_code_line){.flip = (uint8_t)(falls ? ~flip : flip)};
    if (is_steep(rising, right))
        return 0;
    return fit_jump(rising, lo, hi, falls ? QI_TABLE - from : from, right, guess, line) ||
           fit_flat(rising, lo, hi, right, line);
}

/* ------------------------------------------------------------------ the lines of a node */

void qi_code_line_set(qi_code_line_table *lines, int which, const qi_code_line *line)
{
    uint8_t const bytes[QI_LINE_BYTES] = {
        (uint8_t)line->mult, (uint8_t)(line->mult >> 8),
        (uint8_t)line->add,  (uint8_t)(line->add >> 8),
        line->flip,          (uint8_t)line->from,
        line->part[0],       (uint8_t)(line->part[1] - line->part[0])};
    for (int i = 0; i < QI_LINE_BYTES; i++)
        lines->of[i][which] = bytes[i];
    lines->jumps |= line->part[0] != line->part[1];
}

/** The first x of the other input after zero: there the ties of mul turn round. */
static int32_t jump_of(const qi_combine *c, int row)
{
    return c->kind == QI_COMBINE_MUL ? (row ? c->a : c->b).offset : 0;
}

/** The core's codes, by chunks of the row's bytes. */
struct answers {
    uint8_t of[QI_TABLE / QI_CHUNK][QI_TABLE][QI_CHUNK];
};

static void ask_all(const qi_model *model, const qi_node *node, int row,
                    const uint8_t needed[QI_TABLE], struct answers *answers)
{
    for (int first = 0; first < QI_TABLE; first += QI_CHUNK)
        if (memchr(needed + first, 1, QI_CHUNK))
            qi_ask_pairs(model, node, row, first, answers->of[first / QI_CHUNK]);
}

/** What the slope is proportional to, but for the row's scale. */
static int32_t weight_of(const qi_combine *c, int row, int byte)
{
    qi_codes const codes = row ? c->b : c->a;
    int32_t const difference = (byte ^ codes.flip) - codes.offset;
    return c->kind != QI_COMBINE_MUL ? 1 : difference < 0 ? -difference : difference;
}

static void codes_of_byte(const qi_combine *c, const struct answers *answers, int byte,
                          int8_t code[QI_TABLE])
{
    for (int u = 0; u < QI_TABLE; u++)
        code[u] = (int8_t)(answers->of[byte / QI_CHUNK][u][byte % QI_CHUNK] ^ c->y.y_flip);
}

/** The finest `right` at which no line is too steep. */
static int32_t finest_right(const qi_combine *c, const uint8_t needed[QI_TABLE],
                            const struct answers *answers)
{
    int32_t right = QI_LINE_FINEST;
    for (int byte = 0; byte < QI_TABLE; byte++) {
        int8_t code[QI_TABLE];
        if (!needed[byte])
            continue;
        codes_of_byte(c, answers, byte, code);
        while (right > QI_LINE_COARSEST && is_steep(code, right))
            right--;
    }
    return right;
}

static int fit_all(const qi_combine *c, int row, const uint8_t needed[QI_TABLE],
                   const struct answers *answers, qi_code_line_table *lines)
{
    uint8_t const flip = (row ? c->a : c->b).flip ^ 0x80;
    int32_t slope = 0, weight = 0; /* of the line before */
    for (int byte = 0; byte < QI_TABLE; byte++) {
        int8_t code[QI_TABLE];
        qi_code_line line;
        if (!needed[byte])
            continue;
        codes_of_byte(c, answers, byte, code);
        int32_t const own = weight_of(c, row, byte), guess = weight ? slope * own / weight : 0;
        if (!qi_code_line_fit(code, c->y.lo, c->y.hi, flip, jump_of(c, row), lines->right, guess,
                              &line))
            return 0;
        slope = line.mult;
        weight = own;
        qi_code_line_set(lines, byte, &line);
    }
    return 1;
}

int qi_code_lines_of_node(const qi_model *model, const qi_node *node, int row,
                          const uint8_t needed[QI_TABLE], qi_code_line_table *lines)
{
    qi_combine const c = qi_combine_of(model, node);
    struct answers answers;
    ask_all(model, node, row, needed, &answers);
    *lines = (qi_code_line_table){.right = finest_right(&c, needed, &answers)};
    return fit_all(&c, row, needed, &answers, lines);
}

/* ------------------------------------------------------------------ laid out */

static size_t greatest_divisor(size_t a, size_t b)
{
    while (b) {
        size_t const rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

size_t qi_lines_length(size_t channels, size_t block)
{
    enum { LEAST = 256, MOST = 4096 };
    size_t const length = channels * (block / greatest_divisor(channels, block));
    if (length > MOST)
        return channels; /* whose last block is not whole */
    return length * ((LEAST + length - 1) / length);
}

static size_t whole_blocks(size_t codes, size_t block)
{
    return (codes + block - 1) / block * block;
}

size_t qi_lines_bytes(size_t codes, size_t block)
{
    return whole_blocks(codes, block) * QI_LINE_BYTES;
}

/** mult | add | flip | from | first | change */
struct laid_out {
    int16_t *mult, *add;
    uint8_t *flip, *from, *first, *change;
};

static struct laid_out laid_out_at(const void *at, size_t codes)
{
    int16_t *mult = (int16_t *)(uintptr_t)at;
    uint8_t *flip = (uint8_t *)(mult + 2 * codes);
    return (struct laid_out){mult,         mult + codes,     flip,
                             flip + codes, flip + 2 * codes, flip + 3 * codes};
}

enum { SOME = 512 /* codes: whole blocks */ };

/** The numbers of a line for n codes. tables: of the lower and the upper byte. */
static void lay_out_words(const qi_elementwise *inner, const uint8_t (*tables)[QI_TABLE],
                          const uint8_t *codes, size_t n, int16_t *to)
{
    uint8_t lower[SOME], upper[SOME];
    inner->lookup(tables[0], codes, lower, n);
    inner->lookup(tables[1], codes, upper, n);
    inner->join(lower, upper, to, n);
}

/** Fill n codes: those of `channels` successive lines, again and again, from `first` on. */
static void repeat(const uint8_t *line, size_t channels, size_t first, uint8_t *codes, size_t n)
{
    for (size_t i = 0, part, c = first % channels; i < n; i += part, c = 0) {
        part = channels - c < n - i ? channels - c : n - i;
        memcpy(codes + i, line + c, part);
    }
}

void qi_lines_lay_out(const qi_elementwise *inner, const qi_code_line_table *lines,
                      const uint8_t *line, size_t channels, size_t codes, void *at)
{
    size_t const all = whole_blocks(codes, inner->line_block);
    struct laid_out const to = laid_out_at(at, all);
    for (size_t i = 0; i < all; i += SOME) {
        size_t const n = all - i < SOME ? all - i : SOME;
        uint8_t some[SOME];
        repeat(line, channels, i, some, n);
        lay_out_words(inner, &lines->of[QI_LINE_MULT], some, n, to.mult + i);
        lay_out_words(inner, &lines->of[QI_LINE_ADD], some, n, to.add + i);
        inner->lookup(lines->of[QI_LINE_FLIP], some, to.flip + i, n);
        inner->lookup(lines->of[QI_LINE_FROM], some, to.from + i, n);
        inner->lookup(lines->of[QI_LINE_FIRST], some, to.first + i, n);
        inner->lookup(lines->of[QI_LINE_CHANGE], some, to.change + i, n);
    }
}

void qi_lines_run(const qi_elementwise *inner, const qi_code_line_table *lines, const void *at,
                  size_t length, const qi_scaling *limits, const uint8_t *x, uint8_t *y, size_t n)
{
    struct laid_out const to = laid_out_at(at, whole_blocks(length, inner->line_block));
    qi_lines const l = {.mult = to.mult,
                        .add = to.add,
                        .flip = to.flip,
                        .from = to.from,
                        .first = to.first,
                        .change = to.change,
                        .length = length,
                        .right = lines->right,
                        .jumps = lines->jumps,
                        .lo = (int8_t)limits->lo,
                        .hi = (int8_t)limits->hi,
                        .y_flip = limits->y_flip};
    inner->lines(&l, x, y, n);
}
