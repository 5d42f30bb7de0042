#include "autograd/conv/conv_pass.h"
#include "autograd/graph/shared.h"

/* Limit for the weight gradients of all blocks together, in values; a single one may be larger. */
enum { PARTIAL_VALUES = 1 << 23 };

/*
 * Small images that are one band each go through a product of the weight gradient together, up to
 * so many values of x: its sums, which are read and written each time, then count little.
 */
enum { TOGETHER_VALUES = 32 * 1024 };

/* With so many channels, the rows of a product of the weight gradient belong to one tap: it reads x
 * in place, where the tap is inside the image. With fewer, they belong to several; x is padded. */
enum { IN_PLACE_CHANNELS = 8 };

static size_t weight_count(const qat_conv *c)
{
    return (size_t)c->filters * (size_t)c->depth;
}

/*
 * Without a window every pixel is a row of the product, so the whole batch becomes one column of
 * pixels.
 */
static void flatten(qat_conv *c)
{
    qat_window *w = &c->window;
    size_t const pixels = (size_t)c->batch * (size_t)w->in_h * (size_t)w->in_w;
    if (w->kernel_h > 1 || w->kernel_w > 1 || w->stride_h > 1 || w->stride_w > 1 ||
        pixels > INT32_MAX)
        return;
    c->batch = 1;
    w->in_h = w->out_h = (int)pixels;
    w->in_w = w->out_w = 1;
}

/* At most as many as a block has. */
static int images_together(const qat_conv *c)
{
    if (c->weight_gradient.bands > 1)
        return 1;
    size_t const fit = TOGETHER_VALUES / qat_conv_image_values(&c->weight_gradient);
    int const of_block = (c->batch + c->blocks - 1) / c->blocks;
    return fit < 1 ? 1 : fit < (size_t)of_block ? (int)fit : of_block;
}

static void cut(qat_conv *c, int shards)
{
    size_t const batch = (size_t)c->batch, in = (size_t)c->channels, out = (size_t)c->filters;
    c->forward = qat_slide_forward(&c->window, batch, in, 1, QAT_SLIDE_VALUES);
    c->gradient = qat_slide_gradient(&c->window, batch, out, QAT_SLIDE_VALUES);
    c->weight_gradient = c->forward;
    if (c->channels / c->groups >= IN_PLACE_CHANNELS)
        qat_slide_in_place(&c->weight_gradient);
    size_t const affordable = PARTIAL_VALUES / weight_count(c) + 1;
    c->blocks = qat_blocks_in_shard(qat_blocks_of(batch * (size_t)c->forward.bands, 1), shards);
    if ((size_t)c->blocks > affordable)
        c->blocks = (int)affordable;
    c->together = images_together(c);
}

qat_status qat_conv_make(qat_conv *c, const qat_window *window, int batch, int shards, int channels,
                         int filters, int groups, qat_error *err)
{
    const qat_window *w = &c->window;
    c->window = *window;
    c->batch = batch;
    c->channels = channels;
    c->filters = filters;
    c->groups = groups;
    if (c->channels % c->groups || c->filters % c->groups)
        return qat_fail(err, QAT_ERR_SHAPE, "%d groups must divide %d channels and %d filters",
                        c->groups, c->channels, c->filters);
    int64_t const depth = (int64_t)w->kernel_h * w->kernel_w * (c->channels / c->groups);
    if (depth > INT32_MAX / 512)
        return qat_fail(err, QAT_ERR_SHAPE, "a filter of %lld weights is too large",
                        (long long)depth);
    c->depth = (int)depth;
    flatten(c);
    cut(c, shards);
    return QAT_OK;
}

qat_status qat_conv_of(qat_conv *c, const qat_node *node, qat_error *err)
{
    qat_window window;
    const qat_shape *in = &node->inputs[0]->shape;
    qat_status const st = qat_window_of(&window, node, err);
    return st ? st
              : qat_conv_make(c, &window, in->dims[0], qat_shards_of(node), in->dims[3],
                              (int)qat_attr(node, "filters"), (int)qat_attr(node, "groups"), err);
}

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t padded(int columns)
{
    return ((size_t)columns + QAT_PRODUCT_PAD - 1) / QAT_PRODUCT_PAD * QAT_PRODUCT_PAD;
}

/* Values in all panels: those for the outputs, or those for the data gradient. */
static size_t packed(const qat_conv *c)
{
    int const in = c->channels / c->groups, out = c->filters / c->groups;
    size_t const taps = (size_t)c->window.kernel_h * (size_t)c->window.kernel_w;
    size_t const forward = (size_t)in * padded(out), gradient = (size_t)out * padded(in);
    return (size_t)c->groups * taps * largest(forward, gradient);
}

size_t qat_conv_place(const qat_conv *c, void *scratch, qat_conv_places *p)
{
    qat_carve carve = {scratch, 0};
    size_t const taps = (size_t)c->window.kernel_h * (size_t)c->window.kernel_w;
    p->band = largest(c->forward.buffer, c->gradient.buffer);
    p->band = largest(p->band, (size_t)c->together * c->weight_gradient.buffer);
    p->block_segments = (size_t)c->together * (size_t)c->weight_gradient.rows;
    p->bands = qat_carve_take(&carve, QAT_BLOCKS * p->band, sizeof(qat_real));
    p->packed = qat_carve_take(&carve, packed(c), sizeof(qat_real));
    p->partial = qat_carve_take(&carve, (size_t)c->blocks * weight_count(c), sizeof(qat_real));
    p->segments =
        qat_carve_take(&carve, largest(taps, QAT_BLOCKS * p->block_segments), sizeof(qat_segment));
    return carve.used;
}

size_t qat_conv_scratch_bytes(const qat_conv *c)
{
    qat_conv_places places;
    return qat_conv_place(c, NULL, &places);
}

void qat_conv_forward(const qat_conv *c, const qat_real *x, const qat_real *w, qat_real *y,
                      void *scratch)
{
    qat_conv_places at;
    qat_conv_place(c, scratch, &at);
    qat_conv_forward_pass(c, &at, x, w, y);
}

void qat_conv_backward(const qat_conv *c, const qat_real *x, const qat_real *w, const qat_real *dy,
                       qat_real *dx, bool add, qat_real *dw, void *scratch)
{
    qat_conv_places at;
    qat_conv_place(c, scratch, &at);
    if (dw)
        qat_conv_weights_pass(c, &at, x, dy, dw);
    if (dx)
        qat_conv_data_pass(c, &at, dy, w, dx, add);
}
