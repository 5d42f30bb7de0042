/**
 * Square colour pictures for detection: one to six of ten shapes, turned, bent, of many sizes, in
 * front of a background of two colours, rough texture and scraps, with lighting and noise. A box is
 * the extent of the pixels that are at least half covered by the shape. With options.pixels samples
 * have a class for each pixel instead: that of the last shape which covers half of it, or 0.
 */
#include "base/parallel.h"
#include "datasets/dataset_kind.h"
#include "datasets/procedural/outlines.h"
#include "datasets/procedural/paint.h"
#include "datasets/procedural/procedural.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OBJECTS = 6, TRIES = 8, TILE = 16 };

static const qat_square square = {"scenes", 128, 32, DRAW_MAX_SIDE, 1000, 200};

typedef struct scenes {
    uint8_t *pixels; /* in dataset->values */
    qat_objects *objects;
} scenes;

/** Work space for a picture, and its parts. */
typedef struct scene {
    qat_rng rng;
    paint_canvas canvas;
    float *cover; /* [side side] */
    bool one_class;
    qat_truth *truth;
    int count;
    float *classes; /* [side side], or NULL */
} scene;

static int pixels_of(const scene *s)
{
    return s->canvas.side * s->canvas.side;
}

/**
 * The extent, in pixels, of the mask's pixels that are at least half covered; false: there are
 * none.
 */
static bool extent_of(const scene *s, int *top, int *left, int *bottom, int *right)
{
    int const side = s->canvas.side;
    *top = *left = side;
    *bottom = *right = 0;
    for (int i = 0; i < side * side; i++) {
        int const y = i / side, x = i % side;
        if (s->cover[i] < 0.5F)
            continue;
        *top = y < *top ? y : *top;
        *left = x < *left ? x : *left;
        *bottom = y + 1 > *bottom ? y + 1 : *bottom;
        *right = x + 1 > *right ? x + 1 : *right;
    }
    return *bottom > 0;
}

/** The box of a shape as drawn. Returns false if it overlaps another box too much. */
static bool box_of(const scene *s, qat_truth *t)
{
    int top, left, bottom, right;
    float const side = (float)s->canvas.side;
    if (!extent_of(s, &top, &left, &bottom, &right))
        return false;
    t->box =
        (qat_box){(float)top / side, (float)left / side, (float)bottom / side, (float)right / side};
    t->area = (double)(bottom - top) * (right - left);
    for (int i = 0; i < s->count; i++)
        if (qat_box_covered(&s->truth[i].box, &t->box) > 0.25F ||
            qat_box_covered(&t->box, &s->truth[i].box) > 0.25F)
            return false;
    return true;
}

static void mark_pixels(const scene *s, int label)
{
    for (int i = 0; s->classes && i < pixels_of(s); i++)
        if (s->cover[i] >= 0.5F)
            s->classes[i] = (float)label + 1;
}

static draw_affine random_place(scene *s)
{
    float const side = (float)s->canvas.side;
    float const half_tan = draw_uniform(&s->rng, -0.22F, 0.22F); /* +- 25 degrees */
    float const slant = draw_uniform(&s->rng, -0.25F, 0.25F);
    float const reach = side * draw_uniform(&s->rng, 0.07F, 0.25F);
    float const aspect = draw_uniform(&s->rng, 0.75F, 1.33F);
    draw_point const at = draw_point_random(&s->rng, reach, side - reach);
    float const scale = reach / OUTLINE_REACH;
    return draw_affine_make((draw_point){0, 0}, at, half_tan, slant, scale * aspect, scale);
}

/** Paint one more object if a place for it is found in a few tries. */
static void add_object(scene *s, const paint_colour *a, const paint_colour *b)
{
    draw_mask mask = {s->canvas.side, s->cover};
    for (int i = 0; i < TRIES; i++) {
        qat_truth t = {0};
        int const shape = (int)qat_rng_below(&s->rng, OUTLINES);
        draw_affine const place = random_place(s);
        memset(s->cover, 0, (size_t)pixels_of(s) * sizeof *s->cover);
        outline_draw(&s->rng, &mask, shape, &place);
        if (!box_of(s, &t))
            continue;
        t.label = s->one_class ? 0 : shape;
        s->truth[s->count++] = t;
        mark_pixels(s, t.label);
        paint_colour const ink = paint_standing_out(&s->rng, a, b);
        draw_field const texture = draw_field_random(&s->rng, 30);
        paint_lay(&s->canvas, s->cover, &ink, &texture);
        return;
    }
}

static void paint_scene(scene *s, uint8_t *values)
{
    paint_colour const a = paint_random_colour(&s->rng), b = paint_random_colour(&s->rng);
    paint_background(&s->rng, &s->canvas, &a, &b);
    for (int n = 2 + (int)qat_rng_below(&s->rng, 4); n > 0; n--)
        paint_scrap(&s->rng, &s->canvas, (float)s->canvas.side / 10, s->cover);
    for (int n = 1 + (int)qat_rng_below(&s->rng, MOST_OBJECTS); n > 0; n--)
        add_object(s, &a, &b);
    paint_develop(&s->rng, &s->canvas, PAINT_LIGHT, PAINT_NOISE, values);
}

/* ------------------------------------------------------------------ the set */

typedef struct job {
    qat_dataset *dataset;
    uint64_t seed, stream;
    bool one_class;
    float *space; /* per thread: a canvas and a mask */
} job;

static size_t space_of(const qat_dataset *d)
{
    return 4 * (size_t)d->info.height * (size_t)d->info.width;
}

static void paint_one(const job *j, int i, float *space)
{
    qat_dataset *d = j->dataset;
    qat_objects *objects = &((scenes *)d->own)->objects[i];
    size_t const pixels = space_of(d) / 4;
    scene s = {.rng = qat_rng_at(j->seed, j->stream, (uint64_t)i),
               .canvas = {d->info.height, (float(*)[3])space},
               .cover = space + 3 * pixels,
               .one_class = j->one_class,
               .truth = (qat_truth *)objects->truth,
               .classes = d->targets ? d->targets + (size_t)i * pixels : NULL};
    for (size_t k = 0; s.classes && k < pixels; k++)
        s.classes[k] = 0;
    paint_scene(&s, (uint8_t *)d->values + (size_t)i * d->sample_bytes);
    objects->count = s.count;
}

static void paint_tile(void *context, int tile, int thread)
{
    const job *j = context;
    int const first = tile * TILE, count = j->dataset->info.count;
    for (int i = first; i < count && i < first + TILE; i++)
        paint_one(j, i, j->space + (size_t)thread * space_of(j->dataset));
}

static qat_status paint_all(qat_dataset *d, const qat_dataset_options *o, qat_split split,
                            qat_error *err)
{
    const char *name = d->kind->name;
    job j = {.dataset = d,
             .seed = o->seed,
             .stream = qat_hash(qat_hash_name(name), qat_hash_name(qat_split_name(split))),
             .one_class = o->one_class,
             .space = malloc((size_t)qat_threads() * space_of(d) * sizeof(float))};
    if (!j.space)
        return qat_out_of_memory(err, name);
    qat_parallel((d->info.count - 1) / TILE + 1, paint_tile, &j);
    free(j.space);
    return QAT_OK;
}

static qat_status make_room(qat_dataset *d, qat_error *err)
{
    size_t const count = (size_t)d->info.count;
    qat_status const st = qat_dataset_hold(
        d, d->info.name, (uint64_t)count * (MOST_OBJECTS * sizeof(qat_truth) + sizeof(qat_objects)),
        err);
    if (st)
        return st;
    scenes *own = d->own = qat_arena_take(&d->arena, sizeof *own);
    qat_truth *truth = qat_arena_array(&d->arena, count * MOST_OBJECTS, sizeof *truth);
    if (own)
        own->objects = qat_arena_array(&d->arena, count, sizeof *own->objects);
    if (!own || !truth || !own->objects)
        return qat_out_of_memory(err, d->kind->name);
    for (size_t i = 0; i < count; i++)
        own->objects[i] = (qat_objects){d->info.height, d->info.width, 0, truth + i * MOST_OBJECTS};
    return qat_dataset_allocate(d, err);
}

/** Pixels have a class more, the background, before the others. */
static qat_status set_names(qat_dataset *dataset, const qat_dataset_options *options,
                            qat_error *err)
{
    int const shapes = options->one_class ? 1 : OUTLINES, first = options->pixels;
    const char **names = qat_arena_array(&dataset->arena, OUTLINES + 1, sizeof *names);
    if (!names)
        return qat_out_of_memory(err, dataset->kind->name);
    names[0] = "background";
    for (int i = 0; i < shapes; i++)
        names[first + i] = options->one_class ? "shape" : outline_names[i];
    dataset->info.classes = first + shapes;
    dataset->info.labels = names;
    return QAT_OK;
}

static qat_status scenes_open(qat_dataset *dataset, const qat_dataset_options *options,
                              qat_split split, qat_error *err)
{
    qat_status st = qat_procedural_square(dataset, options, split, &square, err);
    if (!st && options->pixels && options->presence)
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "data: pixels and presence: samples have classes of pixels or labels");
    if (!st)
        st = set_names(dataset, options, err);
    if (st)
        return st;
    dataset->info.has_objects = !options->pixels;
    dataset->info.most_objects = options->pixels ? 0 : MOST_OBJECTS;
    st = make_room(dataset, err);
    if (!st && options->pixels)
        st = qat_dataset_allocate_values(dataset, QAT_TARGETS_PIXELS,
                                         (size_t)dataset->info.height * (size_t)dataset->info.width,
                                         err);
    return st || dataset->undrawn ? st : paint_all(dataset, options, split, err);
}

static const qat_objects *scenes_objects(const qat_dataset *dataset, int index)
{
    const scenes *own = dataset->own;
    return &own->objects[index];
}

static qat_status scenes_get(const qat_dataset *dataset, int index, void *values, int *label,
                             qat_error *err)
{
    (void)err;
    const char *all = dataset->values;
    memcpy(values, all + (size_t)index * dataset->sample_bytes, dataset->sample_bytes);
    *label = 0;
    return QAT_OK;
}

static void scenes_keep(qat_dataset *dataset, const int *kept, int n)
{
    scenes *own = dataset->own;
    qat_keep_items(own->objects, sizeof *own->objects, kept, n);
}

const qat_dataset_kind qat_kind_scenes = {.name = "scenes",
                                          .needs_path = false,
                                          .resizes = true,
                                          .open = scenes_open,
                                          .get = scenes_get,
                                          .objects = scenes_objects,
                                          .keep = scenes_keep};
