/** Finds lines; see sum_line.h. */
#include "infer/host/loops/sum_line.h"

/**
 * Numbers of one sequence modulo m, several at a time: that of t = 0..SOME - 1, then the next SOME.
 * Going from t to t + 1 takes `step` away.
 */
enum { SOME = 16 };
struct sequence {
    int32_t m, step, step_some; /* step_some: SOME steps, modulo m */
    int32_t at[SOME];
};

/** a - b modulo m, of 0 <= a, b < m. */
static inline int32_t difference(int32_t a, int32_t b, int32_t m)
{
    int32_t const d = a - b;
    return d + (m & d >> 31);
}

/** value - j step modulo m. */
static int32_t value_at(int64_t value, int32_t j, int32_t step, int32_t m)
{
    int64_t const back = (int64_t)j * step % m, at = (value - back) % m;
    return (int32_t)(at < 0 ? at + m : at);
}

static struct sequence sequence_from(int64_t value, int32_t j, int32_t q, int32_t m)
{
    struct sequence s = {.m = m, .step = (int32_t)((UINT64_C(1) << q) % (uint32_t)m)};
    s.step_some = (int32_t)((int64_t)s.step * SOME % m);
    s.at[0] = value_at(value, j, s.step, m);
    for (int i = 1; i < SOME; i++)
        s.at[i] = difference(s.at[i - 1], s.step, m);
    return s;
}

static void next(struct sequence *s)
{
    for (int i = 0; i < SOME; i++)
        s->at[i] = difference(s->at[i], s->step_some, s->m);
}

/** The least and the largest of `count` numbers; m - 1 and 0 if there are none. */
static void extremes(struct sequence *s, int32_t count, int32_t *least, int32_t *largest)
{
    int32_t low[SOME], high[SOME];
    for (int i = 0; i < SOME; i++) {
        low[i] = s->m - 1;
        high[i] = 0;
    }
    for (; count >= SOME; count -= SOME, next(s))
        for (int i = 0; i < SOME; i++) {
            low[i] = s->at[i] < low[i] ? s->at[i] : low[i];
            high[i] = s->at[i] > high[i] ? s->at[i] : high[i];
        }
    for (int i = 0; i < count; i++) {
        low[i] = s->at[i] < low[i] ? s->at[i] : low[i];
        high[i] = s->at[i] > high[i] ? s->at[i] : high[i];
    }
    *least = low[0];
    *largest = high[0];
    for (int i = 1; i < SOME; i++) {
        *least = low[i] < *least ? low[i] : *least;
        *largest = high[i] > *largest ? high[i] : *largest;
    }
}

int qi_sum_line_find(int negative, int32_t mult, int32_t right, int32_t first, int32_t end,
                     int64_t most, qi_sum_line *line)
{
    int const q = 31 + right;
    int64_t const half = INT64_C(1) << 30;
    int64_t const c = (INT64_C(1) << (30 + right)) + (negative ? -half : half);
    *line = (qi_sum_line){0, 0};
    if (mult == 0)
        return 1;
    int32_t least, largest;
    struct sequence steps = sequence_from(c, first, q, mult);
    extremes(&steps, end - first, &least, &largest);
    /* From C + t 2^q up to the next multiple of m; from there, m down. */
    struct sequence up = sequence_from(-c, 0, q, mult);
    int32_t const last = right > 18 ? INT32_C(1) << (31 - right) : QI_SUM_LINE_OFFSET;
    for (int32_t t = 0; t < last; t += SOME, next(&up)) {
        int some = 0;
        for (int i = 0; i < SOME; i++)
            some |= (up.at[i] < mult - largest) | (mult - up.at[i] <= least);
        for (int i = 0; some && i < SOME && t + i < last; i++) {
            int const goes_up = up.at[i] < mult - largest;
            if (!goes_up && mult - up.at[i] > least)
                continue;
            int64_t const b = (c + (t + i) * (INT64_C(1) << q) + up.at[i]) / mult - !goes_up;
            *line = (qi_sum_line){(int32_t)b, t + i};
            return b + most <= INT32_MAX;
        }
    }
    return 0;
}

enum { MOST_RIGHT = 15, MOST_SHIFT = 23, MOST_STEPS = 512, MOST_BITS = 61 };

int32_t qi_sum_line_turn(int32_t mult, int32_t right, int64_t most, int i)
{
    enum { PARTS = 64 };
    if (mult <= 0 || right < 1 || right > MOST_RIGHT)
        return 0;
    /* The last step is at about 2^8 2^q / m, or at most. Turns move it by parts of one. */
    int64_t const by_codes = (INT64_C(1) << (39 + right)) / mult;
    int64_t const last = by_codes < most ? by_codes : most;
    int64_t const by = (mult / PARTS) / (last + 1) + 1;
    int64_t const turned = mult + (i % 2 ? -by : by) * (i / 2 + 1);
    return turned > 0 && turned <= INT32_MAX ? (int32_t)turned : 0;
}

/** a / 2^n, rounded up. */
static int64_t shift_up(int64_t a, int n)
{
    return -(-a >> n);
}

int64_t qi_sum_line_zero(const qi_sum_steps *s)
{
    return shift_up(-(int64_t)s->bias, s->fraction);
}

/** What is left of a at that sum: 0 <= rest < 2^fraction. */
static int64_t rest_of(const qi_sum_steps *s)
{
    return qi_sum_line_zero(s) * (INT64_C(1) << s->fraction) + s->bias;
}

/** b' mult - t 2^q of a line must lie in low..high - 1, so that all its steps are right. */
struct room {
    int64_t low, high;
};

/** a / b, b > 0. */
struct quotient {
    int64_t whole;
    int32_t rest; /* 0 <= rest < b */
};

static struct quotient quotient_of(int64_t a, int32_t b)
{
    int64_t const down = a / b - (a % b < 0);
    return (struct quotient){down, (int32_t)(a - down * b)};
}

/** That of the sum of both numerators. */
static struct quotient sum_of(struct quotient x, struct quotient y, int32_t b)
{
    int64_t const rest = (int64_t)x.rest + y.rest;
    int const carry = rest >= b;
    return (struct quotient){x.whole + y.whole + carry, (int32_t)(rest - (carry ? b : 0))};
}

/** Make room for the steps to first..end - 1, all of them at sums of one sign. */
static void narrow(struct room *r, const qi_sum_steps *s, int32_t mult, int32_t first, int32_t end)
{
    int64_t const one = INT64_C(1) << (31 + s->right), half = INT64_C(1) << 30;
    int64_t const slope = mult * (INT64_C(1) << s->fraction), rest = rest_of(s);
    int64_t const c = one / 2 + (first > 0 ? half : -half);
    struct quotient const by_one = quotient_of(one, s->mult);
    struct quotient step =
        quotient_of(first * one - c, s->mult); /* the a at which code j begins, not rounded up */
    for (int64_t j = first; j < end; j++, step = sum_of(step, by_one, s->mult)) {
        int64_t const from = shift_up(step.whole + (step.rest > 0) - rest, s->fraction);
        int64_t const at = j * one - from * slope;
        r->low = at > r->low ? at : r->low;
        r->high = at + slope < r->high ? at + slope : r->high;
    }
}

/**
 * Sums are counted from that of zero here: products stay small, however large the bias is. Codes up
 * to 0 begin at negative sums.
 */
static struct room room_of(qi_sum_side side, const qi_sum_steps *s, int32_t mult, int32_t first,
                           int32_t end)
{
    int64_t const none = INT64_MAX / 2, slope = mult * (INT64_C(1) << s->fraction);
    struct room r = {-none, none};
    /* The code of the first a >= 0 is not negative, that of the last a < 0 not positive. */
    if (side == QI_SUMS_POSITIVE)
        r.low = 0;
    if (side == QI_SUMS_NEGATIVE)
        r.high = (INT64_C(1) << (31 + s->right)) + slope;
    narrow(&r, s, mult, first, end < 1 ? end : 1);
    narrow(&r, s, mult, first > 1 ? first : 1, end);
    if (r.low == -none)
        r.low = r.high - slope;
    return r;
}

/**
 * The least t < last with a multiple of m in low + t 2^q .. low + t 2^q + width - 1, or -1. *up:
 * how far it is from the first of these.
 */
static int64_t first_multiple(int64_t low, int64_t width, int q, int32_t m, int64_t last,
                              int32_t *up)
{
    int32_t const below = width < INT32_MAX ? (int32_t)width : INT32_MAX;
    struct sequence ups = sequence_from(-low, 0, q, m);
    for (int64_t t = 0; t < last; t += SOME, next(&ups)) {
        int some = 0;
        for (int i = 0; i < SOME; i++)
            some |= ups.at[i] < below;
        for (int i = 0; some && i < SOME && t + i < last; i++)
            if (ups.at[i] < below) {
                *up = ups.at[i];
                return t + i;
            }
    }
    return -1;
}

int qi_sum_line_fit(qi_sum_side side, const qi_sum_steps *s, int32_t mult, int32_t first,
                    int32_t end, qi_sum_line *line)
{
    *line = (qi_sum_line){0, 0};
    if (s->right > MOST_SHIFT || end - first > MOST_STEPS || s->mult <= 0 || mult <= 0)
        return 0;
    int const f = s->whole ? s->fraction : 0; /* b counts 2^f */
    int const q = 31 + s->right - f, most_bits = MOST_BITS - q;
    int64_t const one = INT64_C(1) << q, unit = INT64_C(1) << s->fraction;
    int64_t const last = most_bits < 13 ? INT64_C(1) << most_bits : QI_SUM_LINE_OFFSET;
    int64_t const limit = INT32_MAX - ((s->most + unit) >> f) - 1;
    struct room const room = room_of(side, s, mult, first, end);
    int64_t const low = shift_up(room.low, f), high = shift_up(room.high, f);
    int32_t up = 0;
    int64_t const t = low < high ? first_multiple(low, high - low, q, mult, last, &up) : -1;
    if (t < 0)
        return 0;
    int64_t const b = (low + t * one + up) / mult;
    *line = (qi_sum_line){0, (int32_t)t};
    line->add = (int32_t)(s->whole ? b - qi_sum_line_zero(s) : b - rest_of(s) + s->bias);
    return b >= -limit && b <= limit;
}
