/**
 * Augmentation in integers (the formulas are in docs/preprocessing.md), so that a picture comes out
 * the same on every machine. All changes draw their random numbers in a fixed order from one
 * generator, keyed by (seed, epoch, index). A change that is switched off draws none.
 */
#include "datasets/loader/augment.h"

#include "base/rng.h"
#include "datasets/loader/window.h"

#include <math.h>
#include <string.h>

enum { FACTOR_BITS = 16, FACTOR_ONE = 1 << FACTOR_BITS };

static qat_rng generator(uint64_t seed, int64_t epoch, int64_t index)
{
    return qat_rng_at(qat_hash(seed, qat_hash_name("augment")), (uint64_t)epoch, (uint64_t)index);
}

static uint8_t clamp_u8(int v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/** A random factor in 1 +- strength, Q16. */
static int draw_factor(qat_rng *rng, float strength)
{
    int const reach = (int)(strength * FACTOR_ONE + 0.5F);
    return FACTOR_ONE - reach + (int)qat_rng_below(rng, 2 * (uint32_t)reach + 1);
}

/** pivot + (v - pivot) * factor, rounded half up: |v - pivot| <= 255, factor <= 2^17. */
static uint8_t scale_about(int v, int pivot, int factor)
{
    int const scaled =
        (v - pivot) * factor + FACTOR_ONE / 2; /* rounds down without shifting a negative number */
    int const floored =
        scaled >= 0 ? scaled / FACTOR_ONE : -((-scaled + FACTOR_ONE - 1) / FACTOR_ONE);
    return clamp_u8(pivot + floored);
}

/** How pixels move: the one that comes to (y, x) is that of (y + down, x + right). */
typedef struct motion {
    int down, right;
    bool mirrored; /* then */
} motion;

/** The first numbers that are drawn: an offset of -pad..pad in each direction, and a mirror. */
static motion draw_motion(qat_rng *rng, const qat_augment *a, int height)
{
    motion m = {0};
    int const pad = a->crop_pad, pad_h = height > 1 ? pad : 0; /* a signal has only one row */
    if (pad > 0) {
        m.down = (int)qat_rng_below(rng, 2 * (uint32_t)pad_h + 1) - pad_h;
        m.right = (int)qat_rng_below(rng, 2 * (uint32_t)pad + 1) - pad;
    }
    m.mirrored = a->flip && qat_rng_below(rng, 2);
    return m;
}

/** Shift; new pixels are 0. */
static void crop(int down, int right, uint8_t *values, int height, int width, int channels,
                 uint8_t *scratch)
{
    size_t const row = (size_t)width * (size_t)channels;
    int const first = right < 0 ? -right : 0, last = right > 0 ? width - right : width;
    memcpy(scratch, values, row * (size_t)height);
    memset(values, 0, row * (size_t)height);
    for (int y = 0; y < height; y++) {
        int const from = y + down;
        if (from < 0 || from >= height || first >= last)
            continue;
        memcpy(values + (size_t)y * row + (size_t)first * (size_t)channels,
               scratch + (size_t)from * row + (size_t)(first + right) * (size_t)channels,
               (size_t)(last - first) * (size_t)channels);
    }
}

void qat_augment_mirror(uint8_t *values, int height, int width, int channels)
{
    for (int y = 0; y < height; y++, values += (size_t)width * (size_t)channels) {
        for (int x = 0; x < width / 2; x++) {
            for (int c = 0; c < channels; c++) {
                uint8_t *a = &values[x * channels + c],
                        *b = &values[(width - 1 - x) * channels + c];
                uint8_t const kept = *a;
                *a = *b;
                *b = kept;
            }
        }
    }
}

static void change_about(uint8_t *values, size_t count, int pivot, int factor)
{
    for (size_t i = 0; i < count; i++)
        values[i] = scale_about(values[i], pivot, factor);
}

/** The picture's mean over all channels, rounded half up. */
static int mean_of(const uint8_t *values, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return (int)((2 * sum + count) / (2 * count));
}

/** Change each pixel's distance from its own grey, (77 R + 150 G + 29 B + 128) / 256. */
static void change_saturation(uint8_t *values, size_t pixels, int factor)
{
    for (size_t i = 0; i < pixels; i++, values += 3) {
        int const grey = (77 * values[0] + 150 * values[1] + 29 * values[2] + 128) >> 8;
        change_about(values, 3, grey, factor);
    }
}

/* ------------------------------------------------------------------ hue */

/**
 * A sixth of the circle of hues: the distance between red, yellow, green, cyan, blue and magenta.
 */
enum { SIXTH = 1 << 16, CIRCLE = 6 * SIXTH };

/** The hue of a pixel whose largest and smallest values are `range` > 0 apart. */
static int hue_of(const uint8_t *v, int largest, int range)
{
    int const red = v[0], green = v[1], blue = v[2];
    if (largest == red)
        return (green - blue) * SIXTH / range + (green < blue ? CIRCLE : 0);
    if (largest == green)
        return 2 * SIXTH + (blue - red) * SIXTH / range;
    return 4 * SIXTH + (red - green) * SIXTH / range;
}

/** Set a pixel from its hue, 0 .. CIRCLE - 1, and its largest and smallest values. */
static void set_hue(uint8_t *v, int hue, int largest, int smallest)
{
    /* which of the three values is largest, which is in the middle */
    static const uint8_t most[] = {0, 1, 1, 2, 2, 0}, middle[] = {1, 0, 2, 1, 0, 2};
    int const sector = hue / SIXTH, part = hue % SIXTH;
    int const rest = sector % 2 ? SIXTH - part : part;
    v[0] = v[1] = v[2] = (uint8_t)smallest;
    v[most[sector]] = (uint8_t)largest;
    v[middle[sector]] = (uint8_t)(smallest + ((largest - smallest) * rest + SIXTH / 2) / SIXTH);
}

/** Turn each pixel's hue by 0 <= turn < CIRCLE. Its largest and smallest values stay. */
static void change_hue(uint8_t *values, size_t pixels, int turn)
{
    for (size_t i = 0; i < pixels; i++, values += 3) {
        int const most = values[0] > values[1] ? values[0] : values[1];
        int const least = values[0] < values[1] ? values[0] : values[1];
        int const largest = values[2] > most ? values[2] : most;
        int const smallest = values[2] < least ? values[2] : least;
        if (largest > smallest)
            set_hue(values, (hue_of(values, largest, largest - smallest) + turn) % CIRCLE, largest,
                    smallest);
    }
}

/** A random turn of up to this share of the circle in either direction. */
static int draw_turn(qat_rng *rng, float strength)
{
    int const reach = (int)(strength * CIRCLE + 0.5F);
    return (CIRCLE - reach + (int)qat_rng_below(rng, 2 * (uint32_t)reach + 1)) % CIRCLE;
}

/* ------------------------------------------------------------------ cutout */

/** Every pixel is as often the middle of the square, so a part of it may be outside. */
static void cut_out(qat_rng *rng, int side, uint8_t *values, int height, int width, int channels)
{
    int const mean = mean_of(values, (size_t)height * (size_t)width * (size_t)channels);
    int const top = (int)qat_rng_below(rng, (uint32_t)height) - side / 2;
    int const left = (int)qat_rng_below(rng, (uint32_t)width) - side / 2;
    int const bottom = top + side < height ? top + side : height;
    int const first = left > 0 ? left : 0, last = left + side < width ? left + side : width;
    for (int y = top > 0 ? top : 0; y < bottom; y++)
        memset(values + ((size_t)y * (size_t)width + (size_t)first) * (size_t)channels, mean,
               (size_t)(last - first) * (size_t)channels);
}

/* ------------------------------------------------------------------ all of it */

void qat_augment_u8(const qat_augment *augment, uint8_t *values, int height, int width,
                    int channels, uint64_t seed, int64_t epoch, int64_t index, uint8_t *scratch)
{
    qat_rng rng = generator(seed, epoch, index);
    size_t const pixels = (size_t)height * (size_t)width, count = pixels * (size_t)channels;
    motion const m = draw_motion(&rng, augment, height);
    if (m.down || m.right)
        crop(m.down, m.right, values, height, width, channels, scratch);
    if (m.mirrored)
        qat_augment_mirror(values, height, width, channels);
    if (augment->brightness > 0)
        change_about(values, count, 0, draw_factor(&rng, augment->brightness));
    if (augment->contrast > 0)
        change_about(values, count, mean_of(values, count), draw_factor(&rng, augment->contrast));
    if (augment->saturation > 0 && channels == 3)
        change_saturation(values, pixels, draw_factor(&rng, augment->saturation));
    if (augment->hue > 0 && channels == 3)
        change_hue(values, pixels, draw_turn(&rng, augment->hue));
    if (augment->cutout > 0)
        cut_out(&rng, augment->cutout, values, height, width, channels);
}

/** A row of classes, shifted; what comes from outside is not known. from NULL: all of it. */
static void move_row(const motion *m, const float *from, float *to, int width)
{
    int const first = m->right < 0 ? -m->right : 0;
    int const last = m->right > 0 ? width - m->right : width;
    if (from && first < last)
        memmove(to + first, from + first + m->right, (size_t)(last - first) * sizeof *to);
    for (int x = 0; x < width; x++)
        if (!from || x < first || x >= last)
            to[x] = NAN;
    for (int x = 0; m->mirrored && x < width / 2; x++) {
        float const kept = to[x];
        to[x] = to[width - 1 - x];
        to[width - 1 - x] = kept;
    }
}

void qat_augment_classes(const qat_augment *augment, float *classes, int height, int width,
                         uint64_t seed, int64_t epoch, int64_t index)
{
    qat_rng rng = generator(seed, epoch, index);
    motion const m = draw_motion(&rng, augment, height);
    for (int i = 0; i < height; i++) { /* no row is overwritten before it has moved */
        int const y = m.down < 0 ? height - 1 - i : i, from = y + m.down;
        bool const inside = from >= 0 && from < height;
        move_row(&m, inside ? classes + (size_t)from * (size_t)width : NULL,
                 classes + (size_t)y * (size_t)width, width);
    }
}

void qat_augment_f32(const qat_augment *augment, float *values, size_t count, uint64_t seed,
                     int64_t epoch, int64_t index)
{
    qat_rng rng = generator(seed, epoch, index);
    for (size_t i = 0; i < count; i++)
        values[i] += augment->noise * (float)(2 * qat_rng_uniform(&rng) - 1);
}

bool qat_augment_any(const qat_augment *a)
{
    return a->crop_pad > 0 || a->flip || a->brightness > 0 || a->contrast > 0 ||
           a->saturation > 0 || a->hue > 0 || a->noise > 0 || a->cutout > 0 || a->ssd_expand > 1 ||
           a->ssd_crop || qat_window_crops(a);
}

/** Check that the value is in 0..most (NaN is not). */
static qat_status check_range(const char *key, float value, float most, qat_error *err)
{
    if (value >= 0 && value <= most)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "augment: %s %g, not in 0..%g", key, (double)value,
                    (double)most);
}

/** Check that least and most are in order, and in low..high. */
static qat_status check_interval(const char *key, const float v[2], double low, double high,
                                 qat_error *err)
{
    if ((double)v[0] >= low && v[0] <= v[1] && (double)v[1] <= high)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "augment: %s %g..%g, not within %g..%g", key,
                    (double)v[0], (double)v[1], low, high);
}

static qat_status check_parts(const qat_augment *a, const qat_dataset_info *info, qat_error *err)
{
    enum { MOST_ASPECT = 10 };
    if (a->crop_area[0] == 0)
        return QAT_OK;
    if (a->crop_pad || a->ssd_crop || a->ssd_expand > 1)
        return qat_fail(err, QAT_ERR_ARGUMENT, "augment: crop_area cannot be combined with %s",
                        a->crop_pad   ? "crop_pad"
                        : a->ssd_crop ? "ssd_crop"
                                      : "ssd_expand");
    if (info->targets == QAT_TARGETS_PIXELS)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: crop_area would resize parts of the pictures of %s, but not of "
                        "their masks; crop_pad and flip move both",
                        info->name);
    if (info->height == 1)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: crop_area is for pictures, but %s has signals", info->name);
    qat_status const st = check_interval("crop_area", a->crop_area, 1e-6F, 1, err);
    return st ? st
              : check_interval("crop_aspect", a->crop_aspect, 1.0 / MOST_ASPECT, MOST_ASPECT, err);
}

/** Check what cannot be combined with boxes, and what needs boxes. */
static qat_status check_boxes(const qat_augment *a, const qat_dataset_info *info, qat_error *err)
{
    bool const ssd = a->ssd_crop || a->ssd_expand > 1;
    if (!(a->ssd_expand == 0 || (a->ssd_expand >= 1 && a->ssd_expand <= QAT_SSD_EXPAND_MAX)))
        return qat_fail(err, QAT_ERR_ARGUMENT, "augment: ssd_expand %g, not in 1..%d",
                        (double)a->ssd_expand, QAT_SSD_EXPAND_MAX);
    if (ssd && !info->has_objects)
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "augment: ssd_crop and ssd_expand are for pictures with boxes, but %s has none",
            info->name);
    if (info->has_objects && a->crop_pad)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: crop_pad would cut off boxes of %s; use ssd_crop", info->name);
    return QAT_OK;
}

qat_status qat_augment_check(const qat_augment *a, const qat_dataset_info *info, qat_error *err)
{
    qat_status st = check_range("brightness", a->brightness, 1, err);
    if (!st)
        st = check_range("contrast", a->contrast, 1, err);
    if (!st)
        st = check_range("saturation", a->saturation, 1, err);
    if (!st)
        st = check_range("hue", a->hue, 0.5F, err);
    if (!st)
        st = check_range("noise", a->noise, 1e30F, err);
    if (st)
        return st;
    st = check_boxes(a, info, err);
    if (!st)
        st = check_parts(a, info, err);
    if (st)
        return st;
    if (a->crop_pad < 0 || a->crop_pad > info->width)
        return qat_fail(err, QAT_ERR_ARGUMENT, "augment: crop_pad %d, not in 0..%d (the width)",
                        a->crop_pad, info->width);
    if (a->cutout < 0 || a->cutout > info->width)
        return qat_fail(err, QAT_ERR_ARGUMENT, "augment: cutout %d, not in 0..%d (the width)",
                        a->cutout, info->width);
    bool const pictures = info->type == QAT_SAMPLE_U8, colours = a->saturation > 0 || a->hue > 0;
    if (info->type == QAT_SAMPLE_SOUND && qat_augment_any(a))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: %s has sounds; only time_shift, gain and background change them",
                        info->name);
    if (pictures && a->noise > 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: noise is for real values, but %s has pixels", info->name);
    if (!pictures && (a->crop_pad || a->flip || a->brightness > 0 || a->contrast > 0 || colours ||
                      a->cutout || qat_window_crops(a)))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "augment: %s has real values; only noise can be added to them", info->name);
    if (colours && info->channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT, "augment: %s needs 3 channels, but %s has %d",
                        a->saturation > 0 ? "saturation" : "hue", info->name, info->channels);
    return QAT_OK;
}
