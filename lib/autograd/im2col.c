/**
 * Patch matrices. For one output pixel and one kernel row the values lie in runs that are
 * contiguous in the image and in the patch: without dilation and with all channels it is one run of
 * kernel_w * channels values, cut at the image's left and right edge; otherwise one for each tap.
 *
 *     image row   . . [a b c] . .      patch    ... | a b c | ...     one run, kernel_w = 3
 *     at the edge     [0|a b] . .               ... | 0 a b | ...     zero, then a shorter run
 */
#include "autograd/real.h"
#include "autograd/window.h"

#include <string.h>

/** What does not change from pixel to pixel. */
struct patches {
    const qat_window *w;
    size_t channels, channel, count; /* of the image; the first one taken, how many */
    bool one_run;                    /* kernel_w taps lie together */
};

/** An output pixel, and its window on the image. */
struct pixel {
    size_t image; /* n * in_h * in_w: pixels before this image */
    int y, x;     /* of the output */
    int top, left;
    int first, last; /* kernel columns inside the image */
};

static struct patches patches_of(const qat_window *w, int channels, int channel, int count)
{
    return (struct patches){w, (size_t)channels, (size_t)channel, (size_t)count,
                            w->dilation_w == 1 && count == channels};
}

static inline void place_window(struct pixel *p, const qat_window *w)
{
    p->top = p->y * w->stride_h - w->pad_top;
    p->left = p->x * w->stride_w - w->pad_left;
    p->first = 0;
    p->last = w->kernel_w;
    if (p->left >= 0 && p->left + (w->kernel_w - 1) * w->dilation_w < w->in_w)
        return;
    qat_reach const taps = qat_window_reach(w->in_w, w->kernel_w, w->dilation_w, p->left);
    p->first = taps.first < taps.last ? taps.first : 0;
    p->last = taps.first < taps.last ? taps.last : 0;
}

static struct pixel pixel_at(const qat_window *w, size_t row)
{
    size_t const per_image = (size_t)w->out_h * (size_t)w->out_w;
    size_t const in_image = row % per_image;
    struct pixel p = {.image = row / per_image * (size_t)w->in_h * (size_t)w->in_w,
                      .y = (int)(in_image / (size_t)w->out_w),
                      .x = (int)(in_image % (size_t)w->out_w)};
    place_window(&p, w);
    return p;
}

static inline void next_pixel(struct pixel *p, const qat_window *w)
{
    if (++p->x == w->out_w) {
        p->x = 0;
        if (++p->y == w->out_h) {
            p->y = 0;
            p->image += (size_t)w->in_h * (size_t)w->in_w;
        }
    }
    place_window(p, w);
}

/* Where tap (k_y, k_x) of a pixel's window begins in x. The tap must lie inside. */
static inline size_t tap_at(const struct patches *s, const struct pixel *p, int k_y, int k_x)
{
    size_t const y = (size_t)(p->top + k_y * s->w->dilation_h);
    size_t const x = (size_t)(p->left + k_x * s->w->dilation_w);
    return (p->image + y * (size_t)s->w->in_w + x) * s->channels + s->channel;
}

static inline bool row_inside(const struct patches *s, const struct pixel *p, int k_y)
{
    int const y = p->top + k_y * s->w->dilation_h;
    return y >= 0 && y < s->w->in_h && p->first < p->last;
}

static inline void clear(qat_real *values, size_t n)
{
    if (n)
        memset(values, 0, n * sizeof *values);
}

static inline void copy_row(const struct patches *s, const struct pixel *p, int k_y,
                            const qat_real *x, qat_real *patch)
{
    size_t const n = s->count, first = (size_t)p->first, last = (size_t)p->last;
    clear(patch, first * n);
    if (s->one_run)
        memcpy(patch + first * n, x + tap_at(s, p, k_y, p->first), (last - first) * n * sizeof *x);
    else
        for (int k = p->first; k < p->last; k++)
            memcpy(patch + (size_t)k * n, x + tap_at(s, p, k_y, k), n * sizeof *x);
    clear(patch + last * n, ((size_t)s->w->kernel_w - last) * n);
}

void qat_im2col(const qat_window *w, const qat_real *x, int channels, int channel, int count,
                size_t begin, size_t end, qat_real *patches)
{
    struct patches const s = patches_of(w, channels, channel, count);
    size_t const row = (size_t)w->kernel_w * s.count;
    struct pixel p = pixel_at(w, begin);
    for (size_t r = begin; r < end; r++, next_pixel(&p, w))
        for (int k = 0; k < w->kernel_h; k++, patches += row) {
            if (row_inside(&s, &p, k))
                copy_row(&s, &p, k, x, patches);
            else
                clear(patches, row);
        }
}

static inline void add_run(qat_real *restrict y, const qat_real *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static inline void add_row(const struct patches *s, const struct pixel *p, int k_y,
                           const qat_real *patch, qat_real *dx)
{
    size_t const n = s->count;
    if (s->one_run)
        add_run(dx + tap_at(s, p, k_y, p->first), patch + (size_t)p->first * n,
                (size_t)(p->last - p->first) * n);
    else
        for (int k = p->first; k < p->last; k++)
            add_run(dx + tap_at(s, p, k_y, k), patch + (size_t)k * n, n);
}

QAT_VECTOR void qat_col2im(const qat_window *w, const qat_real *patches, int channels, int channel,
                           int count, size_t begin, size_t end, qat_real *dx)
{
    struct patches const s = patches_of(w, channels, channel, count);
    size_t const row = (size_t)w->kernel_w * s.count;
    struct pixel p = pixel_at(w, begin);
    for (size_t r = begin; r < end; r++, next_pixel(&p, w))
        for (int k = 0; k < w->kernel_h; k++, patches += row)
            if (row_inside(&s, &p, k))
                add_row(&s, &p, k, patches, dx);
}
