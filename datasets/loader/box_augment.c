/**
 * The augmentation of SSD (Liu et al., 2016, 2.2 and 3.6). It chooses a window of the stored
 * picture, which may reach beyond it, and resizes the window to the size of the sample:
 *
 *     expand   with probability 1/2 the window grows to a height and width r times the picture's,
 *              1 <= r <= ssd_expand, the picture somewhere inside; around it is grey (128)
 *     crop     one of seven, alike in probability: all of it; a part that has an IoU of at least
 *              0.1, 0.3, 0.5, 0.7 or 0.9 with some object; any part. Its sides are uniform in 0.3
 *              to 1 of the window's, neither more than twice as much shrunk as the other; the first
 *              of 50 tries that fits, and holds an object's centre, is taken, else all of it
 *
 * An object stays if its centre is in the window, a crowd if any part of it is. They are cut off at
 * the border of the window. All random numbers are whole pixels, so a sample is the same on every
 * machine.
 */
#include "datasets/loader/box_augment.h"

#include "datasets/loader/augment.h"
#include "datasets/loader/window.h"

#include <stdlib.h>

enum { PERMILLE = 1000, LEAST_SIDE = 300 /* permille */ };

/* ------------------------------------------------------------------ windows */

static qat_window expand(qat_rng *rng, qat_window w, float most)
{
    int const grown = (int)((most - 1) * PERMILLE + 0.5F);
    int const ratio = PERMILLE + qat_window_below(rng, grown + 1);
    int const height = (int)((int64_t)w.height * ratio / PERMILLE);
    int const width = (int)((int64_t)w.width * ratio / PERMILLE);
    int const down = qat_window_below(rng, height - w.height + 1),
              right = qat_window_below(rng, width - w.width + 1);
    return (qat_window){w.top - down, w.left - right, height, width};
}

static int side_of(int side, int permille)
{
    int const n = (int)((int64_t)side * permille / PERMILLE);
    return n > 0 ? n : 1;
}

static qat_window part_of(qat_rng *rng, qat_window w)
{
    int const high = LEAST_SIDE + qat_window_below(rng, PERMILLE - LEAST_SIDE + 1);
    int const low = high / 2 > LEAST_SIDE ? high / 2 : LEAST_SIDE;
    int const most = 2 * high < PERMILLE ? 2 * high : PERMILLE;
    int const wide = low + qat_window_below(rng, most - low + 1);
    int const height = side_of(w.height, high), width = side_of(w.width, wide);
    int const down = qat_window_below(rng, w.height - height + 1),
              right = qat_window_below(rng, w.width - width + 1);
    return (qat_window){w.top + down, w.left + right, height, width};
}

/** The window as fractions of the picture. */
static qat_box box_of(const qat_window *w, const qat_objects *o)
{
    float const height = (float)o->height, width = (float)o->width;
    return (qat_box){(float)w->top / height, (float)w->left / width,
                     (float)(w->top + w->height) / height, (float)(w->left + w->width) / width};
}

static bool holds_centre(const qat_box *window_, const qat_box *b)
{
    qat_centre_box const c = qat_box_centre(b);
    return c.y >= window_->ymin && c.y < window_->ymax && c.x >= window_->xmin &&
           c.x < window_->xmax;
}

/** Does the window overlap an object by at least this IoU, and does an object stay? */
static bool fits(const qat_window *w, const qat_objects *o, float least)
{
    qat_box const b = box_of(w, o);
    bool overlaps = false, stays = false;
    for (int i = 0; i < o->count; i++) {
        const qat_truth *t = &o->truth[i];
        overlaps |= !t->crowd && qat_box_iou(&b, &t->box) >= least;
        stays |= !t->crowd && holds_centre(&b, &t->box);
    }
    return overlaps && stays;
}

static qat_window crop(qat_rng *rng, qat_window w, const qat_objects *o)
{
    static float const least[] = {-1, 0.1F, 0.3F, 0.5F, 0.7F, 0.9F, 0}; /* -1: the whole window */
    float const wanted = least[qat_window_below(rng, (int)(sizeof least / sizeof *least))];
    for (int i = 0; wanted >= 0 && i < QAT_WINDOW_TRIES; i++) {
        qat_window const part = part_of(rng, w);
        if (fits(&part, o, wanted))
            return part;
    }
    return w;
}

/** A part by scale and aspect; if there are objects, with the centre of one inside. */
static qat_window part_by_area(qat_rng *rng, const qat_augment *a, const qat_objects *o)
{
    for (int i = 0; i < QAT_WINDOW_TRIES; i++) {
        qat_window w;
        if (qat_window_try(&w, rng, a, o->height, o->width) && (!o->count || fits(&w, o, 0)))
            return w;
    }
    return qat_window_middle(a, o->height, o->width);
}

static qat_window draw_window(qat_rng *rng, const qat_augment *a, const qat_objects *o)
{
    qat_window w = {0, 0, o->height, o->width};
    if (qat_window_crops(a))
        return part_by_area(rng, a, o);
    if (a->ssd_expand > 1 && qat_rng_below(rng, 2))
        w = expand(rng, w, a->ssd_expand);
    return a->ssd_crop ? crop(rng, w, o) : w;
}

/* ------------------------------------------------------------------ pixels and boxes */

static float within(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static qat_box move_box(const qat_window *w, const qat_objects *o, const qat_box *b)
{
    float const height = (float)w->height, width = (float)w->width;
    return (qat_box){within((b->ymin * (float)o->height - (float)w->top) / height),
                     within((b->xmin * (float)o->width - (float)w->left) / width),
                     within((b->ymax * (float)o->height - (float)w->top) / height),
                     within((b->xmax * (float)o->width - (float)w->left) / width)};
}

static bool has_area(const qat_box *b)
{
    return b->ymax > b->ymin && b->xmax > b->xmin;
}

static void move_objects(const qat_window *w, const qat_objects *o, qat_boxed_sample *s)
{
    qat_box const frame = box_of(w, o);
    s->count = 0;
    for (int i = 0; i < o->count; i++) {
        qat_truth t = o->truth[i];
        bool const stays = t.crowd || holds_centre(&frame, &t.box);
        t.box = move_box(w, o, &t.box);
        if (stays && has_area(&t.box))
            s->truth[s->count++] = t;
    }
}

static void mirror_objects(qat_boxed_sample *s)
{
    for (int i = 0; i < s->count; i++) {
        qat_box *b = &s->truth[i].box;
        float const xmin = b->xmin;
        b->xmin = 1 - b->xmax;
        b->xmax = 1 - xmin;
    }
}

qat_status qat_augment_boxes(const qat_augment *augment, const qat_picture *picture,
                             const qat_objects *objects, qat_boxed_sample *sample, uint64_t seed,
                             int64_t epoch, int64_t index, qat_error *err)
{
    qat_rng rng =
        qat_rng_at(qat_hash(seed, qat_hash_name("boxes")), (uint64_t)epoch, (uint64_t)index);
    qat_window const w = draw_window(&rng, augment, objects);
    uint8_t *part = qat_window_cut(&w, picture, sample->channels);
    if (!part)
        return qat_out_of_memory(err, "augmentation");
    qat_image_resize(part, w.height, w.width, sample->values, sample->height, sample->width,
                     sample->channels);
    free(part);
    move_objects(&w, objects, sample);
    if (augment->flip && qat_rng_below(&rng, 2)) {
        qat_augment_mirror(sample->values, sample->height, sample->width, sample->channels);
        mirror_objects(sample);
    }
    qat_augment colours = *augment;
    colours.flip = false;
    qat_augment_u8(&colours, sample->values, sample->height, sample->width, sample->channels, seed,
                   epoch, index, sample->scratch);
    return QAT_OK;
}
