#include "autograd/conv/slide.h"

#include <string.h>

static int greatest_divisor(int a, int b)
{
    while (b) {
        int const rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ------------------------------------------------------------------ taps */

/* Keep the taps with an offset in [low, high]: some grid pixel may see the image through them. */
static qat_taps within(qat_taps t, int low, int high)
{
    while (t.count > 0 && t.at < low) {
        t.first += t.step;
        t.at += t.hop;
        t.count--;
    }
    while (t.count > 0 && t.at + (t.count - 1) * t.hop > high)
        t.count--;
    return t;
}

/*
 * The taps k of a phase of the gradient: phase + pad - k * dilation is a multiple of stride. The
 * last tap has the least offset.
 */
static qat_taps gradient_taps(const qat_axis *a, int phase)
{
    int const step = a->stride / greatest_divisor(a->stride, a->dilation);
    int first = 0;
    while (first < step && (phase + a->pad - first * a->dilation) % a->stride != 0)
        first++;
    if (first == step || first >= a->kernel)
        return (qat_taps){.step = step};
    int const count = (a->kernel - 1 - first) / step + 1, last = first + (count - 1) * step;
    return (qat_taps){.first = last,
                      .step = -step,
                      .count = count,
                      .at = (phase + a->pad - last * a->dilation) / a->stride,
                      .hop = step * a->dilation / a->stride};
}

qat_taps qat_axis_taps(const qat_axis *a, int phase)
{
    qat_taps const forward = {0, 1, a->kernel, -a->pad, a->dilation};
    return within(a->gradient ? gradient_taps(a, phase) : forward, -(a->grid - 1) * a->step,
                  a->source - 1);
}

int qat_axis_reach(const qat_axis *a, int phase)
{
    return a->target > phase ? (a->target - 1 - phase) / a->spread + 1 : 0;
}

/* ------------------------------------------------------------------ axes */

static void include(qat_axis *a, int at)
{
    a->low = at < a->low ? at : a->low;
    a->high = at > a->high ? at : a->high;
}

/* Make the range of offsets include 0, so that a phase without taps needs no special case. */
static void bound_offsets(qat_axis *a)
{
    for (int phase = 0; phase < a->spread && phase < a->target; phase++) {
        qat_taps const t = qat_axis_taps(a, phase);
        if (t.count == 0)
            continue;
        include(a, t.at);
        include(a, t.at + (t.count - 1) * t.hop);
    }
}

static qat_axis forward_axis(int kernel, int dilation, int stride, int pad, int in, int out)
{
    qat_axis a = {.kernel = kernel, .dilation = dilation, .stride = stride, .pad = pad};
    a.source = in;
    a.target = a.grid = out;
    a.step = stride;
    a.spread = 1;
    bound_offsets(&a);
    return a;
}

static qat_axis gradient_axis(int kernel, int dilation, int stride, int pad, int in, int out)
{
    qat_axis a = {.kernel = kernel, .dilation = dilation, .stride = stride, .pad = pad};
    a.gradient = true;
    a.source = out;
    a.target = in;
    a.grid = (in - 1) / stride + 1;
    a.step = 1;
    a.spread = stride;
    bound_offsets(&a);
    return a;
}

static bool leaves(const qat_axis *a)
{
    return a->low < 0 || (a->grid - 1) * a->step + a->high >= a->source;
}

/* ------------------------------------------------------------------ bands */

/* How many source pixels n grid pixels span. */
static size_t span_of(const qat_axis *a, int n)
{
    return (size_t)(n - 1) * (size_t)a->step + (size_t)(a->high - a->low) + 1;
}

static size_t row_values(const qat_slide *s)
{
    return span_of(&s->x, s->x.grid) * s->channels * s->repeat;
}

/* How many grid rows have a source of at most `values` values; at least 1. */
static int rows_within(const qat_slide *s, size_t values)
{
    size_t const most = values / row_values(s), least = span_of(&s->y, 1);
    if (most <= least)
        return 1;
    size_t const rows = (most - least) / (size_t)s->y.step + 1;
    return rows < (size_t)s->y.grid ? (int)rows : s->y.grid;
}

static void cut(qat_slide *s, size_t values)
{
    s->padded = leaves(&s->y) || leaves(&s->x) || s->repeat > 1;
    s->rows = rows_within(s, values);
    s->bands = (s->y.grid - 1) / s->rows + 1;
    s->buffer = s->padded ? span_of(&s->y, s->rows) * row_values(s) : 0;
    s->pixel = (ptrdiff_t)(s->channels * s->repeat);
    s->row = s->padded ? (ptrdiff_t)row_values(s) : s->x.source * s->pixel;
}

qat_slide qat_slide_forward(const qat_window *w, size_t batch, size_t channels, size_t repeat,
                            size_t values)
{
    qat_slide s = {.batch = batch, .channels = channels, .repeat = repeat};
    s.y = forward_axis(w->kernel_h, w->dilation_h, w->stride_h, w->pad_top, w->in_h, w->out_h);
    s.x = forward_axis(w->kernel_w, w->dilation_w, w->stride_w, w->pad_left, w->in_w, w->out_w);
    cut(&s, values);
    return s;
}

qat_slide qat_slide_gradient(const qat_window *w, size_t batch, size_t channels, size_t values)
{
    qat_slide s = {.batch = batch, .channels = channels, .repeat = 1};
    s.y = gradient_axis(w->kernel_h, w->dilation_h, w->stride_h, w->pad_top, w->in_h, w->out_h);
    s.x = gradient_axis(w->kernel_w, w->dilation_w, w->stride_w, w->pad_left, w->in_w, w->out_w);
    cut(&s, values);
    return s;
}

void qat_slide_in_place(qat_slide *s)
{
    s->padded = false;
    s->buffer = 0;
    s->row = s->x.source * s->pixel;
}

static void repeat_values(qat_real *to, const qat_real *from, size_t n, size_t repeat)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < repeat; j++)
            *to++ = from[i];
}

/* Copy one row of the band: zeros, the image's pixels [first, last), zeros. */
static void copy_row(const qat_slide *s, const qat_real *row, qat_real *to)
{
    int const width = (int)span_of(&s->x, s->x.grid);
    int const first = s->x.low < 0 ? 0 : s->x.low;
    int const last = s->x.low + width < s->x.source ? s->x.low + width : s->x.source;
    size_t const pixel = s->channels * s->repeat;
    size_t const before = (size_t)(first - s->x.low) * pixel, n = (size_t)(last - first);
    size_t const after = (size_t)width * pixel - before - n * pixel;
    memset(to, 0, before * sizeof *to);
    if (s->repeat == 1)
        memcpy(to + before, row + (size_t)first * pixel, n * pixel * sizeof *to);
    else
        repeat_values(to + before, row + (size_t)first * s->channels, n * s->channels, s->repeat);
    memset(to + before + n * pixel, 0, after * sizeof *to);
}

static void copy_band(const qat_slide *s, const qat_real *image, const qat_band *band, qat_real *to)
{
    int const top = band->begin * s->y.step + s->y.low;
    int const rows = (int)span_of(&s->y, band->end - band->begin);
    size_t const n = row_values(s);
    for (int r = 0; r < rows; r++, to += n) {
        if (top + r < 0 || top + r >= s->y.source)
            memset(to, 0, n * sizeof *to);
        else
            copy_row(s, image + (size_t)(top + r) * (size_t)s->x.source * s->channels, to);
    }
}

qat_band qat_slide_band(const qat_slide *s, const qat_real *source, int index, qat_real *buffer)
{
    size_t const pixels = (size_t)s->y.source * (size_t)s->x.source;
    int const begin = index % s->bands * s->rows;
    qat_band band = {.image = (size_t)(index / s->bands), .begin = begin};
    band.end = s->y.grid - begin < s->rows ? s->y.grid : begin + s->rows;
    const qat_real *image = source + band.image * pixels * s->channels;
    if (s->padded) {
        copy_band(s, image, &band, buffer);
        band.at = buffer - s->y.low * s->row - s->x.low * s->pixel;
    } else {
        band.at = image + begin * s->y.step * s->row;
    }
    return band;
}
