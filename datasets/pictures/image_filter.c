/**
 * Resizing with prefiltering: every output pixel is a weighted mean of the input pixels under a
 * triangle that is as wide as the reduction. Photo libraries call this bilinear. Rows are resized
 * first, then columns; both results are rounded to bytes.
 *
 *     reach  = max(from / to, 1)                       half the triangle's base, in input pixels
 *     centre = (i + 1/2) from / to
 *     pixels j from (int)(centre - reach + 1/2) to (int)(centre + reach + 1/2) - 1, those inside
 *     weight = max(0, 1 - |j + 1/2 - centre| / reach), divided by their sum, in 2^-22 half up
 *     out    = (sum of weight pixel + 2^21) >> 22
 */
#include "datasets/pictures/image_filter.h"

#include <stdlib.h>
#include <string.h>

enum { WEIGHT_BITS = 22 };

/** The input pixels of one output pixel. */
struct span {
    int first, count;
    int32_t *weights;
};

static double triangle(double x)
{
    double const away = x < 0 ? -x : x;
    return away < 1.0 ? 1.0 - away : 0.0;
}

static void fill_span(struct span *s, int i, int from, int to, double *real)
{
    double const scale = (double)from / to, reach = scale > 1.0 ? scale : 1.0;
    double const centre = (i + 0.5) * scale;
    double sum = 0.0;
    int const begin = (int)(centre - reach + 0.5), end = (int)(centre + reach + 0.5);
    s->first = begin > 0 ? begin : 0;
    s->count = (end < from ? end : from) - s->first;
    for (int j = 0; j < s->count; j++)
        sum += real[j] = triangle((j + s->first - centre + 0.5) / reach);
    for (int j = 0; j < s->count; j++)
        s->weights[j] = (int32_t)(real[j] / sum * (1 << WEIGHT_BITS) + 0.5);
}

/** Make the spans of all outputs. Their weights follow them in one block. */
static struct span *make_spans(int from, int to)
{
    size_t const most = 2 * ((size_t)from / (size_t)to + 2) + 1; /* pixels per span */
    size_t const head = ((size_t)to * sizeof(struct span) + 15) / 16 * 16;
    char *block = malloc(head + (size_t)to * most * sizeof(int32_t));
    double *real = malloc(most * sizeof *real);
    struct span *spans = (struct span *)(void *)block;
    for (int i = 0; block && real && i < to; i++) {
        spans[i].weights = (int32_t *)(void *)(block + head) + (size_t)i * most;
        fill_span(&spans[i], i, from, to, real);
    }
    free(real);
    if (!real) {
        free(block);
        return NULL;
    }
    return spans;
}

/**
 * Filter one axis: lines of `to` outputs from lines of inputs. Neighbours along the axis are `step`
 * bytes apart. Each outer block has lines * step bytes.
 */
static void filter_axis(const struct span *spans, const uint8_t *in, size_t from, uint8_t *out,
                        size_t to, size_t outer, size_t step)
{
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < to; i++) {
            const struct span *s = &spans[i];
            const uint8_t *first = in + (o * from + (size_t)s->first) * step;
            for (size_t k = 0; k < step; k++) {
                int64_t sum = 1 << (WEIGHT_BITS - 1);
                for (int j = 0; j < s->count; j++)
                    sum += (int64_t)s->weights[j] * first[(size_t)j * step + k];
                int64_t const value = sum >> WEIGHT_BITS;
                out[(o * to + i) * step + k] = (uint8_t)(value > 255 ? 255 : value);
            }
        }
}

bool qat_image_resize_filtered(const uint8_t *from, int from_h, int from_w, uint8_t *to, int to_h,
                               int to_w, int channels)
{
    size_t const step = (size_t)channels, h = (size_t)from_h, w = (size_t)to_w;
    struct span *columns = make_spans(from_w, to_w), *rows = make_spans(from_h, to_h);
    uint8_t *narrow = malloc(h * w * step);
    bool const good = columns && rows && narrow;
    if (good) {
        filter_axis(columns, from, (size_t)from_w, narrow, w, h, step);
        filter_axis(rows, narrow, h, to, (size_t)to_h, 1, w * step);
    }
    free(columns);
    free(rows);
    free(narrow);
    return good;
}
