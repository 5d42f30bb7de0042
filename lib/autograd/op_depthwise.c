/**
 * depthwise_conv2d: every input channel c gives `multiplier` output channels o = c * multiplier +
 * m, y[n,i,j,o] = sum_{k,l} x[n, i s + k d - pad, j s + l d - pad, c] w[0,k,l,o]
 *
 * The loops go tap by tap over rows of output, innermost over channels, so that they vectorize.
 */
#include "autograd/op.h"
#include "autograd/real.h"
#include "autograd/tiles.h"
#include "autograd/vector.h"
#include "autograd/window.h"

#include <assert.h>
#include <string.h>

struct depthwise {
    qat_window w;
    size_t batch, channels, multiplier, outputs; /* outputs = channels * multiplier */
    int blocks;                                  /* of images, in backward */
};

static qat_status depthwise_of(struct depthwise *d, const qat_node *node, qat_error *err)
{
    qat_status const st = qat_window_of(&d->w, node, err);
    if (st)
        return st;
    const qat_shape *in = &node->inputs[0]->shape;
    d->batch = (size_t)in->dims[0];
    d->channels = (size_t)in->dims[3];
    d->multiplier = (size_t)qat_attr(node, "multiplier");
    d->outputs = d->channels * d->multiplier;
    d->blocks = qat_blocks_of(d->batch, 1);
    if (d->outputs > INT32_MAX)
        return qat_fail(err, QAT_ERR_SHAPE, "%zu channels times a multiplier of %zu are too many",
                        d->channels, d->multiplier);
    return QAT_OK;
}

/* What shape accepted. */
static struct depthwise accepted(const qat_node *node)
{
    struct depthwise d;
    qat_status const st = depthwise_of(&d, node, NULL);
    assert(st == QAT_OK);
    (void)st;
    return d;
}

static size_t weights(const struct depthwise *d)
{
    return (size_t)d->w.kernel_h * (size_t)d->w.kernel_w * d->outputs;
}

static int depthwise_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    struct depthwise d;
    if (depthwise_of(&d, node, err))
        return -1;
    int const taps = d.w.kernel_h * d.w.kernel_w;
    defs[0] = (qat_param_def){.name = "weights",
                              .shape = QAT_SHAPE(1, d.w.kernel_h, d.w.kernel_w, (int)d.outputs),
                              .init = QAT_INIT_HE,
                              .fan_in = taps,
                              .fan_out = taps * (int)d.multiplier,
                              .trainable = true,
                              .decay = true};
    return 1;
}

static qat_status depthwise_shape(qat_node *node, qat_error *err)
{
    struct depthwise d;
    qat_status const st = depthwise_of(&d, node, err);
    if (st)
        return st;
    node->shape = QAT_SHAPE((int)d.batch, d.w.out_h, d.w.out_w, (int)d.outputs);
    node->scratch_bytes = (size_t)d.blocks * weights(&d) * sizeof(qat_real);
    return QAT_OK;
}

/** One kernel tap over a stretch of an output row. */
struct tap {
    size_t pixels;   /* of the stretch */
    size_t channels; /* of x */
    size_t multiplier;
    size_t step;    /* values of x from one pixel's tap to the next's */
    size_t x, y, w; /* where the stretch and the tap begin */
};

/* The stretch of output row (image, y) whose tap (k_y, k_x) lies inside; pixels 0: none does. */
static struct tap tap_of(const struct depthwise *d, size_t image, int y, int k_y, int k_x)
{
    const qat_window *w = &d->w;
    int const row = y * w->stride_h + k_y * w->dilation_h - w->pad_top;
    int const offset = k_x * w->dilation_w - w->pad_left;
    qat_reach const reach = qat_window_reach(w->in_w, w->out_w, w->stride_w, offset);
    struct tap t = {.channels = d->channels, .multiplier = d->multiplier};
    if (row < 0 || row >= w->in_h || reach.first >= reach.last)
        return t;
    size_t const column = (size_t)(reach.first * w->stride_w + offset);
    size_t const out_row = image * (size_t)w->out_h + (size_t)y;
    t.pixels = (size_t)(reach.last - reach.first);
    t.step = (size_t)w->stride_w * d->channels;
    t.x = ((image * (size_t)w->in_h + (size_t)row) * (size_t)w->in_w + column) * d->channels;
    t.y = (out_row * (size_t)w->out_w + (size_t)reach.first) * d->outputs;
    t.w = (size_t)(k_y * w->kernel_w + k_x) * d->outputs;
    return t;
}

/* ------------------------------------------------------------------ forward */

QAT_VECTOR static void tap_forward(const struct tap *t, const qat_real *restrict x,
                                   const qat_real *restrict w, qat_real *restrict y)
{
    size_t const n = t->channels, m = t->multiplier;
    for (size_t i = 0; i < t->pixels; i++, x += t->step, y += n * m)
        if (m == 1) {
            for (size_t c = 0; c < n; c++)
                y[c] += x[c] * w[c];
        } else {
            for (size_t c = 0; c < n; c++)
                for (size_t j = 0; j < m; j++)
                    y[c * m + j] += x[c] * w[c * m + j];
        }
}

static void forward_row(void *context, int tile, int thread)
{
    const qat_node *node = context;
    struct depthwise const d = accepted(node);
    size_t const row = (size_t)d.w.out_w * d.outputs;
    memset(node->value + (size_t)tile * row, 0, row * sizeof(qat_real));
    for (int k = 0; k < d.w.kernel_h; k++)
        for (int l = 0; l < d.w.kernel_w; l++) {
            struct tap const t = tap_of(&d, (size_t)(tile / d.w.out_h), tile % d.w.out_h, k, l);
            tap_forward(&t, node->inputs[0]->value + t.x, node->inputs[1]->value + t.w,
                        node->value + t.y);
        }
}

static void depthwise_forward(qat_node *node, const qat_run *run)
{
    qat_parallel(node->shape.dims[0] * node->shape.dims[1], forward_row, node);
}

/* ------------------------------------------------------------------ backward */

QAT_VECTOR static void tap_data(const struct tap *t, const qat_real *restrict dy,
                                const qat_real *restrict w, qat_real *restrict dx)
{
    size_t const n = t->channels, m = t->multiplier;
    for (size_t i = 0; i < t->pixels; i++, dx += t->step, dy += n * m)
        if (m == 1) {
            for (size_t c = 0; c < n; c++)
                dx[c] += dy[c] * w[c];
        } else {
            for (size_t c = 0; c < n; c++)
                for (size_t j = 0; j < m; j++)
                    dx[c] += dy[c * m + j] * w[c * m + j];
        }
}

/* Four pixels at a time where multiplier is 1: the sums wait for memory once in four. */
QAT_VECTOR static void tap_weights(const struct tap *t, const qat_real *restrict x,
                                   const qat_real *restrict dy, qat_real *restrict dw)
{
    size_t const n = t->channels, m = t->multiplier, s = t->step;
    size_t i = 0;
    for (; m == 1 && i + 4 <= t->pixels; i += 4, x += 4 * s, dy += 4 * n)
        for (size_t c = 0; c < n; c++)
            dw[c] += (x[c] * dy[c] + x[c + s] * dy[c + n]) +
                     (x[c + 2 * s] * dy[c + 2 * n] + x[c + 3 * s] * dy[c + 3 * n]);
    for (; i < t->pixels; i++, x += s, dy += n * m)
        for (size_t c = 0; c < n; c++)
            for (size_t j = 0; j < m; j++)
                dw[c * m + j] += x[c] * dy[c * m + j];
}

static void backward_row(const struct depthwise *d, const qat_node *node, size_t image, int y,
                         qat_real *partial)
{
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    for (int k = 0; k < d->w.kernel_h; k++)
        for (int l = 0; l < d->w.kernel_w; l++) {
            struct tap const t = tap_of(d, image, y, k, l);
            if (x->grad)
                tap_data(&t, node->grad + t.y, w->value + t.w, x->grad + t.x);
            if (w->grad)
                tap_weights(&t, x->value + t.x, node->grad + t.y, partial + t.w);
        }
}

static void backward_block(void *context, int block, int thread)
{
    const qat_node *node = context;
    struct depthwise const d = accepted(node);
    qat_real *partial = (qat_real *)node->scratch + (size_t)block * weights(&d);
    memset(partial, 0, weights(&d) * sizeof *partial);
    qat_span const images = qat_block_span(d.batch, d.blocks, block);
    for (size_t n = images.begin; n < images.end; n++)
        for (int y = 0; y < d.w.out_h; y++)
            backward_row(&d, node, n, y, partial);
}

static void depthwise_backward(qat_node *node, const qat_run *run)
{
    struct depthwise const d = accepted(node);
    qat_real *dw = node->inputs[1]->grad;
    qat_parallel(d.blocks, backward_block, node);
    if (dw)
        qat_accumulate_parts(dw, node->scratch, d.blocks, weights(&d), weights(&d));
}

static const qat_attr_def depthwise_attrs[] = {
    {"multiplier", QAT_ATTR_INT, 1, 1, 65536, NULL, "output channels for each input channel"},
    {"kernel", QAT_ATTR_INT, 3, 1, QAT_WINDOW_MAX, NULL, "window height"},
    {"kernel_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "window width; 0: as kernel"},
    {"stride", QAT_ATTR_INT, 1, 1, QAT_WINDOW_MAX, NULL, "rows from one window to the next"},
    {"stride_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "columns; 0: as stride"},
    {"padding", QAT_ATTR_CHOICE, 0, 0, 1, "same|valid",
     "same: output is ceil(input / stride), TensorFlow's padding; valid: none"},
    {"dilation", QAT_ATTR_INT, 1, 1, QAT_WINDOW_MAX, NULL, "rows between the kernel's taps"},
    {"dilation_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "columns; 0: as dilation"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_depthwise_conv2d = {
    .name = "depthwise_conv2d",
    .meaning = "convolution of every channel by itself, without bias",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = depthwise_attrs,
    .params = depthwise_params,
    .shape = depthwise_shape,
    .forward = depthwise_forward,
    .backward = depthwise_backward,
    .quant = QAT_QUANT(depthwise_conv2d),
};
