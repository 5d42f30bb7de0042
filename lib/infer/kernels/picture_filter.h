/**
 * Resizing with prefiltering, for the central crop: every output pixel is a weighted mean of the
 * input pixels under a triangle that is as wide as the reduction. Photo libraries call this
 * bilinear. Rows are resized first, then columns; both results are rounded to bytes.
 *
 *     height of the triangle over pixel j, times 2 to:
 *         h(j)   = 2 max(from, to) - |(2j + 1) to - (2i + 1) from|, at least 0
 *         weight = h(j) / sum of h, in 2^-22 half up
 *     out        = (sum of weight pixel + 2^21) >> 22, at most 255
 */
#ifndef QK_PICTURE_FILTER_H
#define QK_PICTURE_FILTER_H

#include "infer/kernels/picture.h"

/** The pixels under a triangle, first .. end - 1, and the sum of its heights. */
typedef struct qk_span {
    int32_t first, end;
    uint64_t sum;
} qk_span;

/** Not above 0 outside of the triangle. */
QK_INLINE int64_t qk_triangle(const qk_side *s, int32_t output, int32_t j)
{
    int64_t const most = s->from > s->to ? s->from : s->to;
    int64_t const away = (2 * (int64_t)j + 1) * s->to - (2 * (int64_t)output + 1) * s->from;
    return 2 * most - (away < 0 ? -away : away);
}

QK_INLINE qk_span qk_span_of(const qk_side *s, int32_t output)
{
    int64_t const most = s->from > s->to ? s->from : s->to;
    int64_t const before = (2 * (int64_t)output + 1) * s->from - 2 * most - s->to;
    qk_span span = {0, 0, 0};
    if (before >= 0)
        span.first = (int32_t)qk_quotient((uint64_t)before, 2 * (uint64_t)s->to) + 1;
    for (span.end = span.first; span.end < s->from; span.end++) {
        int64_t const height = qk_triangle(s, output, span.end);
        if (height <= 0)
            break;
        span.sum += (uint64_t)height;
    }
    return span;
}

/** The weight of pixel j; 0 outside of the span. */
QK_INLINE uint32_t qk_span_weight(const qk_side *s, const qk_span *span, int32_t output, int32_t j)
{
    if (j < span->first || j >= span->end)
        return 0;
    uint64_t const height = (uint64_t)qk_triangle(s, output, j);
    return (uint32_t)qk_quotient((height << (QK_SUM_BITS + 1)) + span->sum, 2 * span->sum);
}

/** A row of the part at the network's width, in bytes. */
QK_INLINE void qk_filter_squeeze(const qk_picture *p, const qk_picture_state *s, const uint8_t *row,
                                 uint32_t *to)
{
    uint8_t pixel[3];
    for (int32_t x = 0; x < p->width; x++) {
        qk_span const span = qk_span_of(&s->columns, x);
        uint32_t sums[3] = {0, 0, 0};
        for (int32_t j = span.first; j < span.end; j++) {
            uint32_t const weight = qk_span_weight(&s->columns, &span, x, j);
            qk_picture_pixel(p, s->format, row, s->columns.begin + j, pixel);
            for (int32_t k = 0; k < p->channels; k++)
                sums[k] += weight * pixel[k];
        }
        for (int32_t k = 0; k < p->channels; k++)
            *to++ = qk_pixel_of(sums[k]);
    }
}

/** Add a squeezed row to a line, if it lies in the line's span. */
QK_INLINE void qk_filter_add(const qk_picture *p, const qk_picture_state *s, int32_t line,
                             int32_t r)
{
    size_t const n = (size_t)p->width * (size_t)p->channels;
    qk_span const span = qk_span_of(&s->rows, line);
    uint32_t const weight = qk_span_weight(&s->rows, &span, line, r);
    const uint32_t *squeezed = s->sums + 2 * n;
    uint32_t *sums = s->sums + (size_t)(line & 1) * n;
    for (size_t i = 0; weight && i < n; i++)
        sums[i] += weight * squeezed[i];
}

/** A reduction: a row lies under the triangles of at most two lines. */
QK_INLINE void qk_filter_reduce(const qk_picture *p, qk_picture_state *s, const uint8_t *row,
                                uint8_t *in, int32_t r)
{
    size_t const n = (size_t)p->width * (size_t)p->channels;
    qk_filter_squeeze(p, s, row, s->sums + 2 * n);
    for (int32_t line = s->line; line < s->line + 2 && line < p->height; line++)
        qk_filter_add(p, s, line, r);
    while (s->line < p->height && r == qk_span_of(&s->rows, s->line).end - 1) {
        uint32_t *sums = s->sums + (size_t)(s->line & 1) * n;
        uint8_t *to = in + (size_t)s->line++ * n;
        for (size_t i = 0; i < n; i++) {
            to[i] = qk_pixel_of(sums[i]);
            sums[i] = 0;
        }
    }
}

/** No reduction: a line lies between two rows, and many lines may. */
QK_INLINE void qk_filter_enlarge(const qk_picture *p, qk_picture_state *s, const uint8_t *row,
                                 uint8_t *in, int32_t r)
{
    size_t const n = (size_t)p->width * (size_t)p->channels;
    qk_filter_squeeze(p, s, row, s->sums + (size_t)(r & 1) * n);
    while (s->line < p->height) {
        qk_span const span = qk_span_of(&s->rows, s->line);
        qk_between pair = {span.first, span.end - 1, {0, 0}};
        if (r < pair.upper)
            break;
        pair.weight[0] = qk_span_weight(&s->rows, &span, s->line, pair.lower);
        if (pair.upper != pair.lower)
            pair.weight[1] = qk_span_weight(&s->rows, &span, s->line, pair.upper);
        qk_picture_blend(p, s, &pair, in);
    }
}

/** As qk_picture_row, for a central crop. */
QK_INLINE int qk_picture_filter_row(const qk_picture *p, qk_picture_state *s, const uint8_t *row,
                                    uint8_t *in)
{
    int32_t const r = s->row++ - s->rows.begin;
    if (r >= 0 && r < s->rows.from && s->rows.from > s->rows.to)
        qk_filter_reduce(p, s, row, in, r);
    else if (r >= 0 && r < s->rows.from)
        qk_filter_enlarge(p, s, row, in, r);
    return s->line == p->height;
}

#endif
