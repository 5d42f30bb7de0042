/**
 * Random parts of pictures by scale and aspect (Szegedy et al., Going deeper with convolutions, 6).
 * For a picture of h x w pixels, a share s of its area and an aspect r, both uniform:
 *
 *     area = h w s,   width = sqrt(area r),   height = sqrt(area / r)     rounded half up
 *
 * The part may be anywhere inside. s and r are drawn in millionths, and the square root of a
 * float64 is correctly rounded everywhere. So a sample is the same on every machine.
 */
#include "datasets/loader/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GREY = 128, MILLION = 1000000 };

int qat_window_below(qat_rng *rng, int n)
{
    return (int)qat_rng_below(rng, (uint32_t)n);
}

bool qat_window_crops(const qat_augment *augment)
{
    return augment->crop_area[0] > 0;
}

static int millionths(float value)
{
    return (int)((double)value * MILLION + 0.5);
}

static int draw_between(qat_rng *rng, const float range[2])
{
    int const low = millionths(range[0]), high = millionths(range[1]);
    return low + qat_window_below(rng, high - low + 1);
}

/** sqrt(area * times / by), rounded half up; area <= 2^28, times <= 2^24. */
static int side_of(int64_t area, int64_t times, int64_t by)
{
    return (int)(sqrt((double)(area * times / by)) + 0.5);
}

bool qat_window_try(qat_window *window, qat_rng *rng, const qat_augment *augment, int height,
                    int width)
{
    int const share = draw_between(rng, augment->crop_area);
    int const aspect = draw_between(rng, augment->crop_aspect);
    int64_t const area = (int64_t)height * width * share / MILLION;
    int const rows = side_of(area, MILLION, aspect), columns = side_of(area, aspect, MILLION);
    if (rows < 1 || columns < 1 || rows > height || columns > width)
        return false;
    int const top = qat_window_below(rng, height - rows + 1);
    *window = (qat_window){top, qat_window_below(rng, width - columns + 1), rows, columns};
    return true;
}

static int at_least_one(double side)
{
    int const pixels = (int)(side + 0.5);
    return pixels > 0 ? pixels : 1;
}

qat_window qat_window_middle(const qat_augment *augment, int height, int width)
{
    double const least = (double)augment->crop_aspect[0], most = (double)augment->crop_aspect[1];
    int const rows = width < height * least ? at_least_one(width / least) : height;
    int const columns = width > height * most ? at_least_one(height * most) : width;
    return (qat_window){(height - rows) / 2, (width - columns) / 2, rows, columns};
}

uint8_t *qat_window_cut(const qat_window *w, const qat_picture *p, int channels)
{
    size_t const row = (size_t)w->width * (size_t)channels;
    uint8_t *out = malloc(row * (size_t)w->height);
    int const first =
        w->left < 0 ? -w->left : 0; /* columns of the window that are inside the picture */
    int const end = p->width - w->left < w->width ? p->width - w->left : w->width;
    if (!out)
        return NULL;
    memset(out, GREY, row * (size_t)w->height);
    for (int y = 0; y < w->height; y++) {
        int const from = w->top + y;
        if (from >= 0 && from < p->height && first < end)
            memcpy(out + (size_t)y * row + (size_t)(first * channels),
                   p->pixels + ((size_t)from * (size_t)p->width + (size_t)(w->left + first)) *
                                   (size_t)channels,
                   (size_t)((end - first) * channels));
    }
    return out;
}

static qat_window draw(const qat_augment *augment, const qat_picture *picture, uint64_t seed,
                       int64_t epoch, int64_t index)
{
    qat_rng rng =
        qat_rng_at(qat_hash(seed, qat_hash_name("part")), (uint64_t)epoch, (uint64_t)index);
    qat_window w;
    for (int i = 0; i < QAT_WINDOW_TRIES; i++)
        if (qat_window_try(&w, &rng, augment, picture->height, picture->width))
            return w;
    return qat_window_middle(augment, picture->height, picture->width);
}

qat_status qat_augment_part(const qat_augment *augment, const qat_picture *picture, uint8_t *values,
                            int height, int width, int channels, uint64_t seed, int64_t epoch,
                            int64_t index, qat_error *err)
{
    qat_window const w = draw(augment, picture, seed, epoch, index);
    uint8_t *part = qat_window_cut(&w, picture, channels);
    if (!part)
        return qat_out_of_memory(err, "augmentation");
    qat_image_resize(part, w.height, w.width, values, height, width, channels);
    free(part);
    return QAT_OK;
}
