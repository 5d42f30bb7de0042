/**
 * Square colour pictures of any number of classes, drawn when they are requested: a set of the
 * shape of ImageNet takes no memory. A class is a pattern: two colours, and two waves whose sum
 * decides between them. A picture shows it in an ellipse of random place and size, in front of a
 * transition of two other colours, in random light, with noise. All of it is integer arithmetic.
 */
#include "datasets/procedural/procedural.h"

#include <stdlib.h>

enum {
    SIDE = 256,
    CLASSES = 1000,
    TURN = 1 << 12, /* of a wave */
    UNIT = 1 << 12, /* the picture's side */
    NOISE = 32      /* values of noise */
};

static const qat_square square = {
    .what = "patterns", .side = SIDE, .smallest = 8, .largest = 1024, .train = 10000, .test = 2000};

typedef struct patterns {
    int32_t *numbers; /* of the pictures; some may be left out */
    uint64_t seed, stream;
} patterns;

typedef struct colour {
    int rgb[3];
} colour;

/** A wave: its turns across the picture and down, in 1/UNIT, and where it begins. */
typedef struct wave {
    int across, down, phase;
} wave;

typedef struct scene {
    colour pattern[2], behind[2];
    wave waves[2], light;
    int x, y, rx, ry; /* of the ellipse, in 1/UNIT */
} scene;

static int between(qat_rng *rng, int low, int high)
{
    return low + (int)qat_rng_below(rng, (uint32_t)(high - low + 1));
}

static colour draw_colour(qat_rng *rng)
{
    colour c;
    for (int k = 0; k < 3; k++)
        c.rgb[k] = between(rng, 20, 235);
    return c;
}

static wave draw_wave(qat_rng *rng, int most)
{
    wave w;
    w.across = between(rng, -most, most);
    w.down = between(rng, -most, most);
    w.phase = between(rng, 0, TURN - 1);
    return w;
}

/** What all pictures of a class have in common. */
static void draw_class(scene *s, int label)
{
    enum { MOST_TURNS = 12 };
    qat_rng rng = qat_rng_at(qat_hash_name("patterns"), 0, (uint64_t)label);
    for (int i = 0; i < 2; i++) {
        s->pattern[i] = draw_colour(&rng);
        s->waves[i] = draw_wave(&rng, MOST_TURNS * TURN);
    }
}

static void draw_rest(scene *s, qat_rng *rng)
{
    for (int i = 0; i < 2; i++) {
        s->behind[i] = draw_colour(rng);
        s->waves[i].phase = between(rng, 0, TURN - 1);
    }
    s->light = draw_wave(rng, TURN / 2);
    s->x = between(rng, UNIT / 3, UNIT - UNIT / 3);
    s->y = between(rng, UNIT / 3, UNIT - UNIT / 3);
    s->rx = between(rng, UNIT / 4, UNIT / 2);
    s->ry = between(rng, UNIT / 4, UNIT / 2);
}

/** A wave's height at a place, 0..TURN / 2: it rises and falls in straight lines. */
static int height_at(const wave *w, int x, int y)
{
    int const turns = (int)(((int64_t)w->across * x + (int64_t)w->down * y) / UNIT) + w->phase;
    int const place = turns & (TURN - 1);
    return place < TURN / 2 ? place : TURN - place;
}

static bool is_inside(const scene *s, int x, int y)
{
    int64_t const dx = (int64_t)(x - s->x) * s->ry, dy = (int64_t)(y - s->y) * s->rx;
    int64_t const reach = (int64_t)s->rx * s->ry;
    return dx * dx + dy * dy <= reach * reach;
}

static void paint_pixel(const scene *s, int x, int y, uint64_t noise, uint8_t *pixel)
{
    bool const inside = is_inside(s, x, y);
    const colour *c = inside ? s->pattern : s->behind;
    int const mix = inside ? (height_at(&s->waves[0], x, y) + height_at(&s->waves[1], x, y)) / 2
                           : (x + y) / 4; /* 0..TURN / 2 */
    int const light = height_at(&s->light, x, y) * 64 / TURN - 16;
    for (int k = 0; k < 3; k++) {
        int const grain = (int)(noise >> (8 * k) & (NOISE - 1)) - NOISE / 2;
        int const v = c[0].rgb[k] + (c[1].rgb[k] - c[0].rgb[k]) * mix / (TURN / 2) + light + grain;
        pixel[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

static qat_status patterns_get(const qat_dataset *d, int index, void *values, int *label,
                               qat_error *err)
{
    const patterns *own = d->own;
    int const side = d->info.height;
    qat_rng rng = qat_rng_at(own->seed, own->stream, (uint64_t)own->numbers[index]);
    scene s;
    uint8_t *pixel = values;
    (void)err;
    *label = d->labels[index];
    draw_class(&s, *label);
    draw_rest(&s, &rng);
    for (int i = 0; i < side; i++)
        for (int k = 0; k < side; k++, pixel += 3)
            paint_pixel(&s, k * UNIT / side, i * UNIT / side, qat_rng_next(&rng), pixel);
    return QAT_OK;
}

/** Of as many pictures in sequence as there are classes, each has another one. */
static bool draw_labels(qat_dataset *d, const patterns *own, uint32_t classes)
{
    uint32_t *order = malloc(classes * sizeof *order);
    for (uint32_t i = 0; order && i < (uint32_t)d->info.count; i++) {
        qat_rng rng = qat_rng_at(own->seed, qat_hash(own->stream, 1), i / classes);
        if (i % classes == 0)
            qat_rng_shuffle(&rng, order, classes);
        d->labels[i] = (int32_t)order[i % classes];
    }
    bool const good = order != NULL;
    free(order);
    return good;
}

static qat_status patterns_open(qat_dataset *d, const qat_dataset_options *o, qat_split split,
                                qat_error *err)
{
    enum { MAX_CLASSES = 65536 };
    int const classes = o->classes ? o->classes : CLASSES;
    if (classes < 1 || classes > MAX_CLASSES)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: classes %d, not in 1..%d", classes,
                        MAX_CLASSES);
    qat_status st = qat_procedural_square(d, o, split, &square, err);
    if (st)
        return st;
    size_t const count = (size_t)d->info.count;
    patterns *own = d->own = qat_arena_take(&d->arena, sizeof *own);
    st = qat_dataset_hold(d, d->info.name, count * 2 * sizeof(int32_t), err);
    if (st)
        return st;
    d->labels = qat_arena_array(&d->arena, count, sizeof *d->labels);
    int32_t *numbers = qat_arena_array(&d->arena, count, sizeof *numbers);
    if (!own || !d->labels || !numbers)
        return qat_out_of_memory(err, d->info.name);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (int32_t)i;
    *own = (patterns){numbers, o->seed, qat_procedural_stream(d, split)};
    d->info.classes = classes;
    return draw_labels(d, own, (uint32_t)classes) ? QAT_OK : qat_out_of_memory(err, d->info.name);
}

static void patterns_keep(qat_dataset *d, const int *kept, int n)
{
    patterns *own = d->own;
    qat_keep_items(own->numbers, sizeof *own->numbers, kept, n);
}

const qat_dataset_kind qat_kind_patterns = {.name = "patterns",
                                            .needs_path = false,
                                            .resizes = true,
                                            .open = patterns_open,
                                            .get = patterns_get,
                                            .keep = patterns_keep};
