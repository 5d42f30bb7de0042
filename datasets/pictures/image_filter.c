/**
 * Resizing with prefiltering, as infer/kernels/picture_filter.h says, which a device does row by
 * row. Here the weights of all outputs are made first.
 */
#include "datasets/pictures/image_filter.h"

#include "infer/kernels/picture_filter.h"

#include <stdlib.h>
#include <string.h>

/** The input pixels of one output pixel. */
struct span {
    int first, count;
    uint32_t *weights;
};

static void fill_span(struct span *s, const qk_side *side, int i)
{
    qk_span const span = qk_span_of(side, i);
    s->first = span.first;
    s->count = span.end - span.first;
    for (int j = 0; j < s->count; j++)
        s->weights[j] = qk_span_weight(side, &span, i, span.first + j);
}

/** Make the spans of all outputs. Their weights follow them in one block. */
static struct span *make_spans(int from, int to)
{
    size_t const most = 2 * ((size_t)from / (size_t)to + 2) + 1; /* pixels per span */
    size_t const head = ((size_t)to * sizeof(struct span) + 15) / 16 * 16;
    char *block = malloc(head + (size_t)to * most * sizeof(uint32_t));
    qk_side const side = {.from = from, .to = to};
    struct span *spans = (struct span *)(void *)block;
    for (int i = 0; block && i < to; i++) {
        spans[i].weights = (uint32_t *)(void *)(block + head) + (size_t)i * most;
        fill_span(&spans[i], &side, i);
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
                uint32_t sum = 0;
                for (int j = 0; j < s->count; j++)
                    sum += s->weights[j] * first[(size_t)j * step + k];
                out[(o * to + i) * step + k] = qk_pixel_of(sum);
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
