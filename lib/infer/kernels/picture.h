/**
 * From a picture to the pixels that a network takes: the sizes, the crop and the resizing of
 * docs/preprocessing.md. Training and qat-run do it here, and so does a network as C source. A
 * picture comes row by row, so that a camera's frame need not be in memory.
 */
#ifndef QK_PICTURE_H
#define QK_PICTURE_H

#include "infer/kernels/parts/features.h"

#include <stddef.h>
#include <stdint.h>

/** What a network takes. */
typedef struct qk_picture {
    int32_t height, width, channels; /* channels: 1 or 3 */
    int32_t resize_short;            /* 0, or the short side before the centre is cut out */
    int32_t central_crop;            /* 0, or a share in millionths: picture_filter.h resizes */
    int32_t is_bgr;                  /* blue first */
} qk_picture;

/** One direction: pixels begin .. begin + from - 1 become `to`; of these the network takes some. */
typedef struct qk_side {
    int32_t from, to, begin, first; /* first: the first of them that it takes */
} qk_side;

/** A picture on its way. */
typedef struct qk_picture_state {
    qk_side rows, columns;
    int32_t format; /* QK_GREY .. */
    int32_t row;    /* the next one of the picture */
    int32_t line;   /* the next one of the network's */
    uint32_t *sums; /* [2, width channels]; picture_filter.h: [3, width channels] */
} qk_picture_state;

enum {
    QK_GREY = 1,
    QK_RGB565 = 2, /* red in the upper bits of two bytes, the lower byte first */
    QK_RGB = 3,
    QK_RGB565_BIG = 4, /* the upper byte first */
    QK_MOST_SIDE = QK_LARGE ? 1 << 20 : 32767,
    QK_MOST_RESIZED = QK_LARGE ? 1 << 28 : 32767
};

/** a / b, by the division of 32 bits where that is enough. Without QK_LARGE it always is: 2 32767^2
 * + 32767 < 2^32. */
QK_INLINE uint64_t qk_quotient(uint64_t a, uint64_t b)
{
    return QK_LARGE && (a | b) >> 32 ? a / b : (uint32_t)a / (uint32_t)b;
}

/* ------------------------------------------------------------------ sizes */

/** The short side becomes `shorter`, the long one keeps the shape, rounded half up. */
QK_INLINE int qk_sides_short(qk_side *rows, qk_side *columns, int32_t shorter)
{
    qk_side *least = rows->from <= columns->from ? rows : columns;
    qk_side *most = least == rows ? columns : rows;
    uint64_t const of = 2 * (uint64_t)least->from;
    uint64_t const longer =
        qk_quotient(2 * (uint64_t)most->from * (uint64_t)shorter + (uint64_t)least->from, of);
    if (longer > QK_MOST_RESIZED)
        return -1;
    least->to = shorter;
    most->to = (int32_t)longer;
    return 0;
}

/** Cut the middle out of a side: share millionths of of / by, rounded half up, at least 1. */
QK_INLINE void qk_side_cut(qk_side *s, uint64_t of, uint64_t by, int32_t share)
{
    uint64_t const million = 1000000;
    uint64_t const twice = 2 * million * by;
    int32_t const n = (int32_t)((2 * of * (uint64_t)share + million * by) / twice);
    int32_t const kept = n > 0 ? n : 1;
    s->begin = (s->from - kept) / 2;
    s->from = kept;
}

/** The middle share of the largest rectangle that has the network's shape. */
QK_INLINE void qk_sides_share(const qk_picture *p, qk_side *rows, qk_side *columns)
{
    uint64_t const h = (uint64_t)rows->from, w = (uint64_t)columns->from;
    uint64_t const height = (uint64_t)p->height, width = (uint64_t)p->width;
    int const is_wide = w * height > h * width;
    qk_side_cut(rows, is_wide ? h : w * height, is_wide ? 1 : width, p->central_crop);
    qk_side_cut(columns, is_wide ? h * width : w, is_wide ? height : 1, p->central_crop);
}

/**
 * What becomes of the two sides of a picture. Returns 0, or -1: a side is not 1 .. QK_MOST_SIDE, or
 * the resized picture is larger than QK_MOST_RESIZED or smaller than what is cut out of it.
 */
QK_INLINE int qk_picture_sides(const qk_picture *p, int32_t height, int32_t width, qk_side *rows,
                               qk_side *columns)
{
    qk_side const none = {0, 0, 0, 0};
    *rows = *columns = none;
    rows->from = height;
    rows->to = p->height;
    columns->from = width;
    columns->to = p->width;
    if (height < 1 || width < 1 || height > QK_MOST_SIDE || width > QK_MOST_SIDE)
        return -1;
    if (p->central_crop) {
        qk_sides_share(p, rows, columns);
    } else if (p->resize_short) {
        if (qk_sides_short(rows, columns, p->resize_short))
            return -1;
        rows->first = (rows->to - p->height) / 2;
        columns->first = (columns->to - p->width) / 2;
    }
    return rows->to < p->height || columns->to < p->width ? -1 : 0;
}

/* ------------------------------------------------------------------ pixels */

QK_INLINE uint8_t qk_luma(const uint8_t rgb[3])
{
    return (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) >> 8);
}

/** 5, 6 and 5 bits; the upper ones are repeated below. */
QK_INLINE void qk_rgb_of_565(uint32_t v, uint8_t rgb[3])
{
    uint32_t const r = v >> 11 & 31, g = v >> 5 & 63, b = v & 31;
    rgb[0] = (uint8_t)(r << 3 | r >> 2);
    rgb[1] = (uint8_t)(g << 2 | g >> 4);
    rgb[2] = (uint8_t)(b << 3 | b >> 2);
}

/** Bytes of n pixels. */
QK_INLINE size_t qk_picture_bytes(int32_t n, int32_t format)
{
    return (size_t)n * (size_t)(format == QK_RGB565_BIG ? 2 : format);
}

/** A pixel in the channels that the network takes: of one channel, only to[0]. */
QK_INLINE void qk_picture_pixel(const qk_picture *p, int32_t format, const uint8_t *row, int32_t x,
                                uint8_t to[3])
{
    const uint8_t *at = row + qk_picture_bytes(x, format);
    uint8_t rgb[3];
    if (format == QK_GREY) {
        to[0] = to[1] = to[2] = at[0];
        return;
    }
    if (format != QK_RGB) {
        qk_rgb_of_565(format == QK_RGB565 ? (uint32_t)at[0] | (uint32_t)at[1] << 8
                                          : (uint32_t)at[1] | (uint32_t)at[0] << 8,
                      rgb);
        at = rgb;
    }
    to[0] = p->channels == 1 ? qk_luma(at) : at[p->is_bgr ? 2 : 0];
    to[1] = at[1];
    to[2] = at[p->is_bgr ? 0 : 2];
}

/* ------------------------------------------------------------------ resizing */

/** The two pixels that an output pixel lies between, and their weights. */
typedef struct qk_between {
    int32_t lower, upper;
    uint32_t weight[2];
} qk_between;

enum { QK_BLEND_BITS = 11, QK_SUM_BITS = 2 * QK_BLEND_BITS };

/**
 * Half-pixel centres: output pixel i of `to` has its centre at (i + 1/2) from / to - 1/2 in the
 * input, which is n / 2to with n = (2i + 1) from - to. The floor of this is the lower pixel. The
 * rest, rounded to 11 bits (half up), is the weight of the upper pixel. Both stay inside the
 * picture.
 */
QK_INLINE qk_between qk_between_of(const qk_side *s, int32_t output)
{
    qk_between pair = {0, 0, {1u << QK_BLEND_BITS, 0}};
    int64_t const n = (2 * ((int64_t)output + s->first) + 1) * s->from - s->to;
    uint64_t const two_to = 2 * (uint64_t)s->to;
    uint64_t const lower = n > 0 ? qk_quotient((uint64_t)n, two_to) : 0;
    if (n <= 0)
        return pair;
    if (lower >= (uint64_t)s->from - 1) {
        pair.lower = pair.upper = s->from - 1;
        return pair;
    }
    uint64_t const rest = (uint64_t)n - lower * two_to;
    pair.lower = (int32_t)lower;
    pair.upper = pair.lower + 1;
    pair.weight[1] = (uint32_t)qk_quotient((rest << QK_BLEND_BITS) + (uint64_t)s->to, two_to);
    pair.weight[0] = (1u << QK_BLEND_BITS) - pair.weight[1];
    return pair;
}

/** A row of the picture at the network's width, times 2^11. */
QK_INLINE void qk_picture_squeeze(const qk_picture *p, const qk_picture_state *s,
                                  const uint8_t *row, uint32_t *to)
{
    uint8_t a[3], b[3];
    for (int32_t x = 0; x < p->width; x++) {
        qk_between const pair = qk_between_of(&s->columns, x);
        qk_picture_pixel(p, s->format, row, pair.lower, a);
        qk_picture_pixel(p, s->format, row, pair.upper, b);
        for (int32_t k = 0; k < p->channels; k++)
            *to++ = a[k] * pair.weight[0] + b[k] * pair.weight[1];
    }
}

/** A sum as a byte. Sums are below 2^31. */
QK_INLINE uint8_t qk_pixel_of(uint32_t sum)
{
    uint32_t const value = (sum + (1u << (QK_SUM_BITS - 1))) >> QK_SUM_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

/** One of the network's lines, of two squeezed rows. */
QK_INLINE void qk_picture_blend(const qk_picture *p, qk_picture_state *s, const qk_between *pair,
                                uint8_t *in)
{
    size_t const n = (size_t)p->width * (size_t)p->channels;
    const uint32_t *lower = s->sums + (size_t)(pair->lower & 1) * n;
    const uint32_t *upper = s->sums + (size_t)(pair->upper & 1) * n;
    uint8_t *to = in + (size_t)s->line++ * n;
    for (size_t i = 0; i < n; i++)
        to[i] = qk_pixel_of(lower[i] * pair->weight[0] + upper[i] * pair->weight[1]);
}

/* ------------------------------------------------------------------ a picture */

/**
 * Begin a picture.
 * @param format  of its pixels: QK_GREY ..
 * Returns 0, or -1: the network does not take such a picture.
 */
QK_INLINE int qk_picture_start(const qk_picture *p, qk_picture_state *s, int32_t height,
                               int32_t width, int32_t format)
{
    size_t const n = 3 * (size_t)p->width * (size_t)p->channels;
    s->format = format;
    s->row = 0;
    s->line = 0;
    for (size_t i = 0; p->central_crop && i < n; i++)
        s->sums[i] = 0;
    return format < QK_GREY || format > QK_RGB565_BIG
               ? -1
               : qk_picture_sides(p, height, width, &s->rows, &s->columns);
}

/**
 * Take the next row of the picture.
 * @param in  the network's input, [height, width, channels]
 * Returns 1 when all of it is there; further rows change nothing.
 */
QK_INLINE int qk_picture_row(const qk_picture *p, qk_picture_state *s, const uint8_t *row,
                             uint8_t *in)
{
    size_t const n = (size_t)p->width * (size_t)p->channels;
    int32_t const r = s->row++;
    int is_squeezed = 0;
    while (s->line < p->height) {
        qk_between const pair = qk_between_of(&s->rows, s->line);
        if (r < pair.lower)
            break;
        if (!is_squeezed)
            qk_picture_squeeze(p, s, row, s->sums + (size_t)(r & 1) * n);
        is_squeezed = 1;
        if (r < pair.upper)
            break;
        qk_picture_blend(p, s, &pair, in);
    }
    return s->line == p->height;
}

#endif
