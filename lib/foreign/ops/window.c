#include "foreign/ops/window.h"

#include "qat/graph.h"

#include <stdio.h>
#include <string.h>

/** Read one number for each direction; 1 without the attribute. */
static qat_status numbers_of(builder *b, const char *name, int directions, int64_t *to)
{
    for (int i = 0; i < FV_DIRECTIONS; i++)
        to[i] = 1;
    int const n = fv_attr_ints(b, name, to, FV_DIRECTIONS);
    if (n && n != directions)
        return fv_refuse(b, "attribute %s has %d numbers for %d dimensions", name, n, directions);
    for (int i = 0; i < directions; i++)
        if (to[i] < 1 || to[i] > 1024)
            return fv_refuse(b, "attribute %s = %lld is outside 1..1024", name, (long long)to[i]);
    return QAT_OK;
}

static int64_t reach_of(const fv_direction *d)
{
    return (d->kernel - 1) * d->dilation + 1;
}

int64_t fv_windows(const fv_direction *d, int64_t in)
{
    int64_t const room = in + d->before + d->after - reach_of(d);
    return room < 0 ? 0 : room / d->stride + 1;
}

/** TensorFlow's padding; lower: the odd pixel goes before the image. */
static void same_pads(fv_direction *d, int64_t in, bool lower)
{
    int64_t const out = (in + d->stride - 1) / d->stride;
    int64_t const total = (out - 1) * d->stride + reach_of(d) - in;
    int64_t const less = total > 0 ? total / 2 : 0, more = total > 0 ? total - less : 0;
    d->before = lower ? more : less;
    d->after = lower ? less : more;
}

static qat_status given_pads(builder *b, int directions, fv_direction *to)
{
    int64_t pads[2 * FV_DIRECTIONS] = {0};
    int const n = fv_attr_ints(b, "pads", pads, 2 * FV_DIRECTIONS);
    if (n && n != 2 * directions)
        return fv_refuse(b, "attribute pads has %d numbers for %d dimensions", n, directions);
    for (int i = 0; i < n; i++) {
        if (pads[i] < 0 || pads[i] > QAT_PADDING_MAX)
            return fv_refuse(b, "attribute pads: %lld is outside 0..%d", (long long)pads[i],
                             QAT_PADDING_MAX);
        *(i < directions ? &to[i].before : &to[i - directions].after) = pads[i];
    }
    return QAT_OK;
}

/** With ceil_mode a last window may begin inside the image and reach beyond its padding. */
static void round_up(fv_direction *d, int64_t in)
{
    int64_t const room = in + d->before + d->after - reach_of(d);
    if (room < 0 || room % d->stride == 0)
        return;
    int64_t const start = (room / d->stride + 1) * d->stride - d->before;
    if (start < in)
        d->after += d->stride - room % d->stride;
}

qat_status fv_directions_of(builder *b, const fv *x, const int64_t *kernel,
                            fv_direction to[FV_DIRECTIONS])
{
    int const n = x->rank - 2;
    int64_t sizes[FV_DIRECTIONS], strides[FV_DIRECTIONS], dilations[FV_DIRECTIONS];
    const char *pad = fv_attr_text(b, "auto_pad", "NOTSET");
    bool const lower = !strcmp(pad, "SAME_LOWER"), same = lower || !strcmp(pad, "SAME_UPPER");
    if (!kernel && !fv_attr(b, "kernel_shape"))
        return fv_refuse(b, "it has no attribute kernel_shape");
    if (n < 1 || n > FV_DIRECTIONS)
        return fv_refuse(b, "an input of %d dimensions; 3 to 5 are possible", x->rank);
    if (!same && strcmp(pad, "NOTSET") != 0 && strcmp(pad, "VALID") != 0)
        return fv_refuse(b, "attribute auto_pad = %.20s", pad);
    qat_status st = kernel ? QAT_OK : numbers_of(b, "kernel_shape", n, sizes);
    if (!st)
        st = numbers_of(b, "strides", n, strides);
    if (!st)
        st = numbers_of(b, "dilations", n, dilations);
    if (st)
        return st;
    for (int i = 0; i < n; i++) {
        to[i] = (fv_direction){kernel ? kernel[i] : sizes[i], strides[i], dilations[i], 0, 0};
        if (to[i].kernel < 1 || to[i].kernel > 1024)
            return fv_refuse(b, "a window of %lld pixels", (long long)to[i].kernel);
    }
    if (strcmp(pad, "NOTSET") == 0)
        st = given_pads(b, n, to);
    for (int i = 0; i < n && !st; i++) {
        if (same)
            same_pads(&to[i], x->dims[2 + i], lower);
        else if (fv_attr_int(b, "ceil_mode", 0))
            round_up(&to[i], x->dims[2 + i]);
    }
    return st;
}

/** Of pictures and signals: signals have one direction, the columns. */
static fv_window window_of(const fv_direction *d, int rank)
{
    fv_window w = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    for (int i = 4 - rank; i < 2; i++, d++) {
        w.kernel[i] = d->kernel;
        w.stride[i] = d->stride;
        w.dilation[i] = d->dilation;
        w.before[i] = d->before;
        w.after[i] = d->after;
    }
    return w;
}

qat_status fv_window_of(builder *b, const fv *x, const int64_t *kernel, fv_window *w)
{
    fv_direction d[FV_DIRECTIONS];
    if (x->rank < 3 || x->rank > 4)
        return fv_refuse(b, "an input of %d dimensions; 3 and 4 are possible", x->rank);
    qat_status const st = fv_directions_of(b, x, kernel ? kernel + (4 - x->rank) : NULL, d);
    if (!st)
        *w = window_of(d, x->rank);
    return st;
}

/* ------------------------------------------------------------------ ConvTranspose */

/** What is cut off the output, and what is added to it, in one direction. */
static void cut(fv_transposed *t, int i, int64_t whole, int64_t wanted, bool upper)
{
    fv_direction *d = &t->direction[i];
    if (wanted >= 1) {
        int64_t const total = whole + t->longer[i] - wanted, half = total / 2;
        d->before = total < 0 ? 0 : upper ? half : total - half;
        d->after = total < 0 ? 0 : total - d->before;
        t->longer[i] -= total < 0 ? total : 0;
    }
    t->length[i] = whole + t->longer[i] - d->before - d->after;
}

static qat_status check_longer(const builder *b, const fv_direction *d, int64_t longer)
{
    int64_t const most = d->stride > d->dilation ? d->stride : d->dilation;
    if (longer >= 0 && longer < most)
        return QAT_OK;
    return fv_refuse(b,
                     "an output %lld longer than its windows, with a stride of %lld and a dilation "
                     "of %lld",
                     (long long)longer, (long long)d->stride, (long long)d->dilation);
}

static qat_status direction_of(builder *b, fv_transposed *t, int i, int64_t in, int64_t wanted)
{
    const char *pad = fv_attr_text(b, "auto_pad", "NOTSET");
    const fv_direction *d = &t->direction[i];
    int64_t const whole = (in - 1) * d->stride + reach_of(d);
    if (wanted < 0 || wanted > INT32_MAX)
        return fv_refuse(b, "attribute output_shape = %lld", (long long)wanted);
    if (!wanted && !strncmp(pad, "SAME", 4))
        wanted = in * d->stride;
    qat_status st = check_longer(b, d, t->longer[i]);
    if (st)
        return st;
    cut(t, i, whole, wanted, !strcmp(pad, "SAME_UPPER"));
    st = check_longer(b, d, t->longer[i]);
    if (st)
        return st;
    return t->length[i] < 1 ? fv_refuse(b, "it cuts off all of its output") : QAT_OK;
}

qat_status fv_transposed_of(builder *b, const fv *x, const qat_foreign_tensor *w, fv_transposed *t)
{
    int const rank = x->rank, n = rank - 2;
    int64_t shape[FV_DIRECTIONS] = {0};
    *t = (fv_transposed){.groups = fv_attr_int(b, "group", 1), .out = {1, 1}};
    if (!w || w->rank != rank || n < 1 || n > FV_DIRECTIONS || w->dims[0] != x->dims[1] ||
        w->dims[1] < 1 || w->dims[1] > 65536 || t->groups < 1 || w->dims[0] % t->groups ||
        t->groups > 65536 / w->dims[1])
        return fv_refuse(b, "weights that do not fit an input of %d dimensions in %lld groups",
                         rank, (long long)t->groups);
    t->filters = w->dims[1] * t->groups;
    qat_status st = fv_directions_of(b, x, w->dims + 2, t->direction);
    if (st)
        return st;
    int const n_longer = fv_attr_ints(b, "output_padding", t->longer, FV_DIRECTIONS);
    int const n_shape = fv_attr_ints(b, "output_shape", shape, FV_DIRECTIONS);
    if ((n_longer && n_longer != n) || (n_shape && n_shape != n))
        return fv_refuse(b, "attributes output_padding, output_shape: %d and %d numbers", n_longer,
                         n_shape);
    for (int i = 0; i < n && !st; i++)
        st = direction_of(b, t, i, x->dims[2 + i], shape[i]);
    if (st || rank > 4)
        return st;
    t->window = window_of(t->direction, rank);
    for (int i = 0; i < n; i++) {
        t->extra[4 - rank + i] = t->longer[i];
        t->out[4 - rank + i] = t->length[i];
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
