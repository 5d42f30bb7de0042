#include "infer/host/lines/product_line.h"

#include "infer/arithmetic/fixedpoint.h"
#include "infer/host/lines/even_pairs.h"
#include "infer/kernels/binary.h"

static int32_t difference_of(qi_codes c, uint8_t byte)
{
    return (byte ^ c.flip) - c.offset;
}

uint8_t qi_product_line_code(const qi_product_line *l, uint8_t a, uint8_t b)
{
    int32_t const p = difference_of(l->a, a) * difference_of(l->b, b) - l->centre;
    int32_t const part = (p * l->low >> 16) + (p < -l->centre ? l->jump : 0);
    int32_t const code = (p * l->high + part + l->add) >> 16;
    return (uint8_t)(qi_clamp(code, l->lo, l->hi) ^ l->y_flip);
}

/* ------------------------------------------------------------------ products and their codes */

struct range {
    int32_t least, most;
};

static struct range differences_of(const qi_tensor *t)
{
    return (struct range){qi_code_lo(t) - t->zero_point, qi_code_hi(t) - t->zero_point};
}

static struct range products_of(struct range a, struct range b)
{
    int32_t const corner[] = {a.least * b.least, a.least * b.most, a.most * b.least,
                              a.most * b.most};
    struct range r = {corner[0], corner[0]};
    for (int i = 1; i < 4; i++) {
        r.least = corner[i] < r.least ? corner[i] : r.least;
        r.most = corner[i] > r.most ? corner[i] : r.most;
    }
    return r;
}

/** How a product becomes a signed code. */
struct scaling {
    qi_scaling y;
    int is_even;
    qk_pairs even; /* rounding EVEN */
};

static int32_t code_of(const struct scaling *s, int32_t product)
{
    const qi_scaling *y = &s->y;
    if (s->is_even) /* of a product and 1; QI_U8 codes are reduced by 128 */
        return qk_product_even(&s->even, product, 1) - y->y_flip;
    return qi_clamp(qi_scaled(y, product) + y->zero_point, y->lo, y->hi);
}

/** The first product with at least this code; r.most + 1 if there is none. */
static int32_t first_with(const struct scaling *s, struct range r, int32_t code)
{
    int32_t below = r.least - 1, from = r.most + 1;
    while (from - below > 1) {
        int32_t const middle = below + (from - below) / 2;
        if (code_of(s, middle) >= code)
            from = middle;
        else
            below = middle;
    }
    return from;
}

/* ------------------------------------------------------------------ the line */

/** A product, the code that it has, and the side of zero on which it is. */
struct point {
    int32_t product, code;
    int negative;
};

enum { MOST_POINTS = 2 * QI_TABLE + 2 };

struct points {
    int count;
    struct point of[MOST_POINTS];
};

static void add_point(const struct scaling *s, struct range r, int32_t product,
                      struct points *points)
{
    if (product >= r.least && product <= r.most)
        points->of[points->count++] = (struct point){product, code_of(s, product), product < 0};
}

static void find_points(const struct scaling *s, struct range r, struct points *points)
{
    add_point(s, r, 0, points);
    add_point(s, r, -1, points);
    for (int32_t code = s->y.lo + 1; code <= s->y.hi; code++) {
        int32_t const first = first_with(s, r, code);
        add_point(s, r, first, points);
        add_point(s, r, first - 1, points);
    }
}

/** The bounds of one side for what is added to M (p - centre). */
struct room {
    int64_t least, most;
};

static struct room room_of(const qi_scaling *y, const struct points *points, int negative,
                           int64_t slope, int32_t centre)
{
    int64_t const one = INT64_C(1) << 32;
    struct room room = {INT64_MIN, INT64_MAX};
    for (int i = 0; i < points->count; i++) {
        const struct point *p = &points->of[i];
        int64_t const least = p->code * one - slope * (p->product - centre);
        if (p->negative != negative)
            continue;
        room.least = p->code > y->lo && least > room.least ? least : room.least;
        room.most = p->code < y->hi && least + one - 1 < room.most ? least + one - 1 : room.most;
    }
    return room;
}

/** The multiple of 2^16 in the room that is nearest to `nominal`, all without their 16 lower bits.
 */
static int multiple_in(struct room room, int64_t nominal, int64_t *multiple)
{
    int64_t const least = room.least > INT64_MIN ? (room.least + UINT16_MAX) >> 16 : nominal;
    int64_t const most = room.most < INT64_MAX ? room.most >> 16 : nominal;
    *multiple = nominal < least ? least : nominal > most ? most : nominal;
    return room.least == INT64_MIN || room.most == INT64_MAX || least <= most;
}

static int try_slope(const qi_scaling *y, const struct points *points, int64_t slope,
                     qi_product_line *line)
{
    enum { MOST_JUMP = 1 << 14, MOST_ADD = 1 << 29 };
    int64_t const high = (slope + (1 << 15)) >> 16;
    int64_t const nominal = y->zero_point * (1 << 16) + (1 << 15) + (slope * line->centre >> 16);
    int64_t add, below;
    if (!multiple_in(room_of(y, points, 0, slope, line->centre), nominal, &add) ||
        !multiple_in(room_of(y, points, 1, slope, line->centre), nominal, &below))
        return 0;
    line->high = (int16_t)high;
    line->low = (int16_t)(slope - high * (1 << 16));
    line->jump = (int16_t)(below - add);
    line->add = (int32_t)add;
    return high <= INT16_MAX && below - add > -MOST_JUMP && below - add < MOST_JUMP &&
           add > -MOST_ADD && add < MOST_ADD;
}

/** What makes all products 16 bits; 0 if they are. */
static int16_t centre_of(struct range r)
{
    return r.least >= INT16_MIN && r.most <= INT16_MAX ? 0 : (int16_t)((r.least + r.most) / 2);
}

int qi_product_line_of_node(const qi_model *model, const qi_node *node, qi_product_line *line)
{
    enum { REACH = 4 };
    qi_combine const c = qi_combine_of(model, node);
    struct range const r = products_of(differences_of(qi_input(model, node, 0)),
                                       differences_of(qi_input(model, node, 1)));
    int const is_even = node->rounding == QI_ROUND_EVEN;
    struct scaling s = {.y = c.y, .is_even = is_even};
    struct points points = {0};
    if (is_even)
        s.even = qi_even_product_of(model, node);
    *line = (qi_product_line){.a = c.a,
                              .b = c.b,
                              .centre = centre_of(r),
                              .y_flip = c.y.y_flip,
                              .lo = (int8_t)c.y.lo,
                              .hi = (int8_t)c.y.hi};
    if (c.y.right <= 0)
        return 0;
    find_points(&s, r, &points);
    for (int k = 0; k <= 2 * REACH; k++) {
        int const away = k % 2 ? (k + 1) / 2 : -k / 2;
        if (try_slope(&c.y, &points, (int64_t)(c.y.mult >> (c.y.right - 1)) + away, line))
            return 1;
    }
    return 0;
}
