#include "foreign/window.h"

#include "qat/graph.h"

#include <stdio.h>
#include <string.h>

/** Read one number for each direction; signals have one direction, the columns. */
static qat_status pair_of(builder *b, const char *name, int directions, int64_t to[2])
{
    int64_t values[2] = {1, 1};
    int const n = fv_attr_ints(b, name, values, 2);
    to[0] = to[1] = 1;
    if (n && n != directions)
        return fv_refuse(b, "attribute %s has %d numbers for %d dimensions", name, n, directions);
    for (int i = 0; i < n; i++)
        to[2 - directions + i] = values[i];
    for (int i = 0; i < 2; i++)
        if (to[i] < 1 || to[i] > 1024)
            return fv_refuse(b, "attribute %s = %lld is outside 1..1024", name, (long long)to[i]);
    return QAT_OK;
}

/** TensorFlow's padding; lower: the odd pixel goes before the image. */
static void same_pads(fv_window *w, int i, int64_t in, bool lower)
{
    int64_t const reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t const out = (in + w->stride[i] - 1) / w->stride[i];
    int64_t const total = (out - 1) * w->stride[i] + reach - in;
    int64_t const less = total > 0 ? total / 2 : 0, more = total > 0 ? total - less : 0;
    w->before[i] = lower ? more : less;
    w->after[i] = lower ? less : more;
}

static qat_status given_pads(builder *b, int directions, fv_window *w)
{
    int64_t pads[4] = {0};
    int const n = fv_attr_ints(b, "pads", pads, 4);
    if (n && n != 2 * directions)
        return fv_refuse(b, "attribute pads has %d numbers for %d dimensions", n, directions);
    for (int i = 0; i < n; i++) {
        if (pads[i] < 0 || pads[i] > QAT_PADDING_MAX)
            return fv_refuse(b, "attribute pads: %lld is outside 0..%d", (long long)pads[i],
                             QAT_PADDING_MAX);
        int64_t *to = i < directions ? w->before : w->after;
        to[2 - directions + i % directions] = pads[i];
    }
    return QAT_OK;
}

/** With ceil_mode a last window may begin inside the image and reach beyond its padding. */
static void round_up(fv_window *w, int i, int64_t in)
{
    int64_t const reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t const room = in + w->before[i] + w->after[i] - reach;
    if (room < 0 || room % w->stride[i] == 0)
        return;
    int64_t const start = (room / w->stride[i] + 1) * w->stride[i] - w->before[i];
    if (start < in)
        w->after[i] += w->stride[i] - room % w->stride[i];
}

qat_status fv_window_of(builder *b, const fv *x, const int64_t *kernel, fv_window *w)
{
    int const directions = x->rank - 2;
    const char *pad = fv_attr_text(b, "auto_pad", "NOTSET");
    bool const lower = !strcmp(pad, "SAME_LOWER"), same = lower || !strcmp(pad, "SAME_UPPER");
    *w = (fv_window){0};
    if (!kernel && !fv_attr(b, "kernel_shape"))
        return fv_refuse(b, "it has no attribute kernel_shape");
    if (directions < 1 || directions > 2)
        return fv_refuse(b, "an input of %d dimensions; 3 and 4 are possible", x->rank);
    if (!same && strcmp(pad, "NOTSET") != 0 && strcmp(pad, "VALID") != 0)
        return fv_refuse(b, "attribute auto_pad = %.20s", pad);
    qat_status st = kernel ? QAT_OK : pair_of(b, "kernel_shape", directions, w->kernel);
    if (kernel)
        memcpy(w->kernel, kernel, sizeof w->kernel);
    if (!st)
        st = pair_of(b, "strides", directions, w->stride);
    if (!st)
        st = pair_of(b, "dilations", directions, w->dilation);
    if (!st && strcmp(pad, "NOTSET") == 0)
        st = given_pads(b, directions, w);
    for (int i = 2 - directions; i < 2 && !st; i++) {
        if (w->kernel[i] < 1 || w->kernel[i] > 1024)
            return fv_refuse(b, "a window of %lld pixels", (long long)w->kernel[i]);
        if (same)
            same_pads(w, i, x->dims[x->rank - 2 + i], lower);
        else if (fv_attr_int(b, "ceil_mode", 0))
            round_up(w, i, x->dims[x->rank - 2 + i]);
    }
    w->kernel[0] = w->kernel[0] ? w->kernel[0] : 1;
    return st;
}

/** What is cut off the output, and what is added to it, in one direction. */
static void cut(fv_transposed *t, int i, int64_t whole, int64_t wanted, bool upper)
{
    fv_window *w = &t->window;
    if (wanted >= 1) {
        int64_t const total = whole + t->extra[i] - wanted, half = total / 2;
        w->before[i] = total < 0 ? 0 : upper ? half : total - half;
        w->after[i] = total < 0 ? 0 : total - w->before[i];
        t->extra[i] -= total < 0 ? total : 0;
    }
    t->out[i] = whole + t->extra[i] - w->before[i] - w->after[i];
}

qat_status fv_transposed_of(builder *b, const fv *x, const qat_foreign_tensor *w, fv_transposed *t)
{
    int const rank = x->rank, directions = rank - 2, first = 2 - directions;
    int64_t shape[2] = {0};
    *t = (fv_transposed){.groups = fv_attr_int(b, "group", 1), .out = {1, 1}};
    if (!w || w->rank != rank || rank < 3 || rank > 4 || w->dims[0] != x->dims[1] ||
        w->dims[1] < 1 || w->dims[1] > 65536 || t->groups < 1 || w->dims[0] % t->groups ||
        w->dims[1] * t->groups > 65536)
        return fv_refuse(b, "weights that do not fit an input of %d dimensions in %lld groups",
                         rank, (long long)t->groups);
    t->filters = w->dims[1] * t->groups;
    int64_t const kernel[] = {rank == 4 ? w->dims[2] : 1, w->dims[rank - 1]};
    qat_status const st = fv_window_of(b, x, kernel, &t->window);
    if (st)
        return st;
    int const n_extra = fv_attr_ints(b, "output_padding", t->extra + first, directions);
    int const n_shape = fv_attr_ints(b, "output_shape", shape + first, directions);
    if ((n_extra && n_extra != directions) || (n_shape && n_shape != directions))
        return fv_refuse(b, "attributes output_padding, output_shape: %d and %d numbers", n_extra,
                         n_shape);
    const char *pad = fv_attr_text(b, "auto_pad", "NOTSET");
    bool const same = !strncmp(pad, "SAME", 4);
    const fv_window *v = &t->window;
    for (int i = first; i < 2; i++) {
        int64_t const in = x->dims[rank - 2 + i];
        int64_t const whole = (in - 1) * v->stride[i] + (v->kernel[i] - 1) * v->dilation[i] + 1;
        if (shape[i] < 0 || shape[i] > INT32_MAX)
            return fv_refuse(b, "attribute output_shape = %lld", (long long)shape[i]);
        cut(t, i, whole,
            shape[i] ? shape[i]
            : same   ? in * v->stride[i]
                     : 0,
            !strcmp(pad, "SAME_UPPER"));
        int64_t const most = v->stride[i] > v->dilation[i] ? v->stride[i] : v->dilation[i];
        if (t->extra[i] < 0 || t->extra[i] >= most)
            return fv_refuse(b,
                             "an output %lld longer than its windows, with a stride of %lld and a "
                             "dilation of %lld",
                             (long long)t->extra[i], (long long)v->stride[i],
                             (long long)v->dilation[i]);
        if (t->out[i] < 1)
            return fv_refuse(b, "it cuts off all of its output");
    }
    return QAT_OK;
}

void fv_window_text(const fv_window *w, bool dilation, char text[FV_WINDOW_TEXT])
{
    int const n = snprintf(
        text, FV_WINDOW_TEXT, "kernel=%d kernel_w=%d stride=%d stride_w=%d padding=%d,%d,%d,%d",
        (int)w->kernel[0], (int)w->kernel[1], (int)w->stride[0], (int)w->stride[1],
        (int)w->before[0], (int)w->after[0], (int)w->before[1], (int)w->after[1]);
    if (dilation)
        snprintf(text + n, FV_WINDOW_TEXT - (size_t)n, " dilation=%d dilation_w=%d",
                 (int)w->dilation[0], (int)w->dilation[1]);
}
