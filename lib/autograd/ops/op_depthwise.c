/**
 * depthwise_conv2d: each input channel c gives `multiplier` output channels o = c * multiplier + m:
 * y[n,i,j,o] = sum_{k,l} x[n, i s + k d - pad, j s + l d - pad, c] w[0,k,l,o]
 *
 * Output, data gradient and weight gradient are slides over bands of x or dy (slide.h), with inner
 * loops over small blocks of taps (depthwise.h). With a multiplier, the bands of x hold each
 * channel `multiplier` times.
 */
#include "autograd/conv/depthwise.h"
#include "autograd/conv/slide.h"
#include "autograd/graph/shared.h"
#include "autograd/loops/padding.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/ops/op.h"

#include <assert.h>
#include <string.h>

struct depthwise {
    qat_window w;
    size_t batch, channels, multiplier, outputs; /* outputs = channels * multiplier */
    qat_slide forward, gradient;
    int blocks; /* of the weight gradient */
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
    if (d->outputs > INT32_MAX)
        return qat_fail(err, QAT_ERR_SHAPE, "%zu channels times a multiplier of %zu are too many",
                        d->channels, d->multiplier);
    d->forward = qat_slide_forward(&d->w, d->batch, d->channels, d->multiplier, QAT_SLIDE_VALUES);
    d->gradient = qat_slide_gradient(&d->w, d->batch, d->outputs, QAT_SLIDE_VALUES);
    d->blocks = qat_blocks_in_shard(qat_blocks_of(d->batch * (size_t)d->forward.bands, 1),
                                    qat_shards_of(node));
    return QAT_OK;
}

/* The convolution that `shape` accepted. */
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
                              .fan_out = qat_fan(taps * (int64_t)d.multiplier),
                              .trainable = true,
                              .decay = true};
    return 1;
}

/** Pointers into scratch. Each block of the work has its own part. */
struct places {
    qat_real *bands;   /* [QAT_BLOCKS][band], padded x or dy */
    qat_real *rows;    /* [QAT_BLOCKS][grid pixels of a row * outputs]; with a multiplier only */
    qat_real *partial; /* [blocks][weights] */
    size_t band, row;
};

static size_t place(const struct depthwise *d, void *scratch, struct places *p)
{
    qat_carve carve = {scratch, 0};
    p->band = d->forward.buffer > d->gradient.buffer ? d->forward.buffer : d->gradient.buffer;
    p->row = d->multiplier > 1 ? (size_t)d->gradient.x.grid * d->outputs : 0;
    p->bands = qat_carve_take(&carve, QAT_BLOCKS * p->band, sizeof(qat_real));
    p->rows = qat_carve_take(&carve, QAT_BLOCKS * p->row, sizeof(qat_real));
    p->partial = qat_carve_take(&carve, (size_t)d->blocks * weights(d), sizeof(qat_real));
    return carve.used;
}

static qat_status depthwise_shape(qat_node *node, qat_error *err)
{
    struct depthwise d;
    struct places p;
    qat_status const st = depthwise_of(&d, node, err);
    if (st)
        return st;
    node->shape = QAT_SHAPE((int)d.batch, d.w.out_h, d.w.out_w, (int)d.outputs);
    node->scratch_bytes = place(&d, NULL, &p);
    return QAT_OK;
}

/** One pass over the batch. */
struct pass {
    struct depthwise d;
    struct places at;
    const qat_real *x, *w, *dy;
    qat_real *y, *dx;
    bool add; /* add to dx */
};

static struct pass pass_of(const qat_node *node)
{
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    struct pass p = {.d = accepted(node),
                     .x = x->value,
                     .w = w->value,
                     .dy = node->grad,
                     .y = node->value,
                     .dx = x->grad,
                     .add = !qat_grad_is_new(node, 0)};
    place(&p.d, node->scratch, &p.at);
    return p;
}

/* ------------------------------------------------------------------ blocks of taps */

/** The taps of both directions, cut into blocks of at most 3 x 3. */
struct tap_grid {
    qat_taps y, x;
};

static int blocks_along(const qat_taps *t)
{
    return (t->count + QAT_DEPTHWISE_TAPS - 1) / QAT_DEPTHWISE_TAPS;
}

static qat_taps block_along(const qat_taps *t, int block)
{
    int const i = block * QAT_DEPTHWISE_TAPS, rest = t->count - i;
    return (qat_taps){.first = t->first + i * t->step,
                      .step = t->step,
                      .count = rest < QAT_DEPTHWISE_TAPS ? rest : QAT_DEPTHWISE_TAPS,
                      .at = t->at + i * t->hop,
                      .hop = t->hop};
}

static struct tap_grid block_of(const struct tap_grid *t, int block)
{
    int const across = blocks_along(&t->x);
    return (struct tap_grid){block_along(&t->y, block / across),
                             block_along(&t->x, block % across)};
}

static int blocks_of(const struct tap_grid *t)
{
    return blocks_along(&t->y) * blocks_along(&t->x);
}

/* The loop over a band with its taps. */
static qat_taps_run run_of(const struct depthwise *d, const qat_slide *s, const qat_band *band,
                           const struct tap_grid *t)
{
    ptrdiff_t const tap = (ptrdiff_t)d->outputs;
    return (qat_taps_run){
        .rows = band->end - band->begin,
        .pixels = s->x.grid,
        .channels = d->outputs,
        .taps_y = t->y.count,
        .taps_x = t->x.count,
        .x = {s->y.step * s->row, s->x.step * s->pixel},
        .tap = {t->y.hop * s->row, t->x.hop * s->pixel},
        .weight = {t->y.step * d->w.kernel_w * tap, t->x.step * tap},
    };
}

/* Where the source and the weights of the first tap begin. */
static const qat_real *source_of(const qat_slide *s, const qat_band *band, const struct tap_grid *t)
{
    return band->at + t->y.at * s->row + t->x.at * s->pixel;
}

static size_t weight_of(const struct depthwise *d, const struct tap_grid *t)
{
    return ((size_t)t->y.first * (size_t)d->w.kernel_w + (size_t)t->x.first) * d->outputs;
}

/** Where the results of a slide go. */
struct target {
    qat_real *at;
    qat_hops hops;
    int rows, pixels;
    bool add;
};

/* Set the target to 0 if a slide has no taps. */
static void clear(const struct target *t, size_t channels)
{
    for (int r = 0; r < t->rows; r++)
        for (int i = 0; i < t->pixels; i++)
            memset(t->at + r * t->hops.row + i * t->hops.pixel, 0, channels * sizeof *t->at);
}

static void filter(const struct pass *p, const qat_slide *s, const qat_band *band,
                   const struct tap_grid *taps, const struct target *t)
{
    if (blocks_of(taps) == 0 && !t->add)
        clear(t, p->d.outputs);
    for (int b = 0; b < blocks_of(taps); b++) {
        struct tap_grid const block = block_of(taps, b);
        qat_taps_run run = run_of(&p->d, s, band, &block);
        run.rows = t->rows;
        run.pixels = t->pixels;
        run.y = t->hops;
        qat_depthwise_filter(&run, source_of(s, band, &block), p->w + weight_of(&p->d, &block),
                             t->add || b > 0, t->at);
    }
}

/* ------------------------------------------------------------------ forward */

static struct tap_grid taps_of(const qat_slide *s, int phase_y, int phase_x)
{
    return (struct tap_grid){qat_axis_taps(&s->y, phase_y), qat_axis_taps(&s->x, phase_x)};
}

/* Distance in y or dy between rows and between pixels. */
static qat_hops output_hops(const struct depthwise *d)
{
    return (qat_hops){d->w.out_w * (ptrdiff_t)d->outputs, (ptrdiff_t)d->outputs};
}

/* Where a band of the forward slide begins in y or dy. */
static size_t output_at(const struct depthwise *d, const qat_band *band)
{
    size_t const row = band->image * (size_t)d->w.out_h + (size_t)band->begin;
    return row * (size_t)d->w.out_w * d->outputs;
}

static void forward_band(const struct pass *p, int index, qat_real *buffer)
{
    const qat_slide *s = &p->d.forward;
    qat_band const band = qat_slide_band(s, p->x, index, buffer);
    struct tap_grid const taps = taps_of(s, 0, 0);
    struct target const y = {.at = p->y + output_at(&p->d, &band),
                             .hops = output_hops(&p->d),
                             .rows = band.end - band.begin,
                             .pixels = s->x.grid};
    filter(p, s, &band, &taps, &y);
}

/* The bands of a block, which all use the block's buffer. */
static qat_span bands_of(const qat_slide *s, int blocks, int block)
{
    return qat_block_span(s->batch * (size_t)s->bands, blocks, block);
}

static qat_real *buffer_of(const struct pass *p, int block)
{
    return p->at.bands + (size_t)block * p->at.band;
}

static void forward_block(void *context, int block, int thread)
{
    const struct pass *p = context;
    qat_span const bands = bands_of(&p->d.forward, QAT_BLOCKS, block);
    for (size_t s = bands.begin; s < bands.end; s++)
        forward_band(p, (int)s, buffer_of(p, block));
}

static void depthwise_forward(qat_node *node, const qat_run *run)
{
    struct pass p = pass_of(node);
    qat_parallel(QAT_BLOCKS, forward_block, &p);
}

/* ------------------------------------------------------------------ data gradient */

/* The pixels of dx that belong to a phase and to the grid points of a band. */
static struct target data_target(const struct pass *p, const qat_band *band, int phase_y,
                                 int phase_x)
{
    const qat_window *w = &p->d.w;
    const qat_slide *s = &p->d.gradient;
    ptrdiff_t const c = (ptrdiff_t)p->d.channels;
    size_t const y = band->image * (size_t)w->in_h + (size_t)(band->begin * w->stride_h + phase_y);
    int const end = qat_axis_reach(&s->y, phase_y);
    return (struct target){.at = p->dx + (y * (size_t)w->in_w + (size_t)phase_x) * p->d.channels,
                           .hops = {w->stride_h * w->in_w * c, w->stride_w * c},
                           .rows = (end < band->end ? end : band->end) - band->begin,
                           .pixels = qat_axis_reach(&s->x, phase_x),
                           .add = p->add};
}

/* dx[i, c] += sum_m row[i, c * multiplier + m] */
static void add_multiplied(const struct depthwise *d, const qat_real *row, int pixels,
                           ptrdiff_t hop, qat_real *dx)
{
    for (int i = 0; i < pixels; i++, dx += hop)
        for (size_t c = 0; c < d->channels; c++, row += d->multiplier)
            for (size_t m = 0; m < d->multiplier; m++)
                dx[c] += row[m];
}

/* With a multiplier: compute each row for the output channels first, then add it up into dx. */
static void data_rows(const struct pass *p, qat_band band, const struct tap_grid *taps,
                      const struct target *dx, qat_real *row)
{
    struct target one = {
        .at = row, .hops = {0, (ptrdiff_t)p->d.outputs}, .rows = 1, .pixels = dx->pixels};
    for (int r = 0; r < dx->rows; r++, band.at += p->d.gradient.row) {
        filter(p, &p->d.gradient, &band, taps, &one);
        add_multiplied(&p->d, row, dx->pixels, dx->hops.pixel, dx->at + r * dx->hops.row);
    }
}

static void data_phase(const struct pass *p, const qat_band *band, int phase_y, int phase_x,
                       int block)
{
    struct tap_grid const taps = taps_of(&p->d.gradient, phase_y, phase_x);
    struct target const dx = data_target(p, band, phase_y, phase_x);
    if (dx.rows <= 0)
        return;
    if (p->d.multiplier == 1) {
        filter(p, &p->d.gradient, band, &taps, &dx);
        return;
    }
    if (!p->add)
        clear(&dx, p->d.channels);
    data_rows(p, *band, &taps, &dx, p->at.rows + (size_t)block * p->at.row);
}

static void data_block(void *context, int block, int thread)
{
    const struct pass *p = context;
    const qat_slide *s = &p->d.gradient;
    qat_span const bands = bands_of(s, QAT_BLOCKS, block);
    for (size_t i = bands.begin; i < bands.end; i++) {
        qat_band const band = qat_slide_band(s, p->dy, (int)i, buffer_of(p, block));
        for (int y = 0; y < s->y.spread && y < s->y.target; y++)
            for (int x = 0; x < s->x.spread && x < s->x.target; x++)
                data_phase(p, &band, y, x, block);
    }
}

/* ------------------------------------------------------------------ weight gradient */

static void weights_band(const struct pass *p, int index, qat_real *buffer, qat_real *dw)
{
    const qat_slide *s = &p->d.forward;
    qat_band const band = qat_slide_band(s, p->x, index, buffer);
    struct tap_grid const taps = taps_of(s, 0, 0);
    const qat_real *dy = p->dy + output_at(&p->d, &band);
    for (int b = 0; b < blocks_of(&taps); b++) {
        struct tap_grid const block = block_of(&taps, b);
        qat_taps_run run = run_of(&p->d, s, &band, &block);
        run.y = output_hops(&p->d);
        qat_depthwise_correlate(&run, source_of(s, &band, &block), dy,
                                dw + weight_of(&p->d, &block));
    }
}

static void weights_block(void *context, int block, int thread)
{
    const struct pass *p = context;
    qat_real *dw = p->at.partial + (size_t)block * weights(&p->d);
    qat_span const bands = bands_of(&p->d.forward, p->d.blocks, block);
    memset(dw, 0, weights(&p->d) * sizeof *dw);
    for (size_t s = bands.begin; s < bands.end; s++)
        weights_band(p, (int)s, buffer_of(p, block), dw);
}

static void depthwise_backward(qat_node *node, const qat_run *run)
{
    struct pass p = pass_of(node);
    qat_real *dw = node->inputs[1]->grad;
    if (p.dx)
        qat_parallel(QAT_BLOCKS, data_block, &p);
    if (!dw)
        return;
    qat_parallel(p.d.blocks, weights_block, &p);
    qat_accumulate_parts(dw, p.at.partial, p.d.blocks, weights(&p.d), weights(&p.d));
}

static const qat_attr_def depthwise_attrs[] = {
    {"multiplier", QAT_ATTR_INT, 1, 1, 65536, NULL, "output channels for each input channel"},
    {"kernel", QAT_ATTR_INT, 3, 1, QAT_WINDOW_MAX, NULL, "window height"},
    {"kernel_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "window width; 0: same as kernel"},
    {"stride", QAT_ATTR_INT, 1, 1, QAT_WINDOW_MAX, NULL, "rows between neighbouring windows"},
    {"stride_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL,
     "columns between neighbouring windows; 0: same as stride"},
    QAT_PADDING_ATTR(0),
    {"dilation", QAT_ATTR_INT, 1, 1, QAT_WINDOW_MAX, NULL,
     "rows between neighbouring taps of the kernel"},
    {"dilation_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL,
     "columns between neighbouring taps; 0: same as dilation"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_depthwise_conv2d = {
    .name = "depthwise_conv2d",
    .meaning = "convolution of each channel separately, without bias",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = depthwise_attrs,
    .params = depthwise_params,
    .shape = depthwise_shape,
    .forward = depthwise_forward,
    .backward = depthwise_backward,
    .grads = QAT_GRADS_WRITE,
    .forgets_scratch = true,
    .quant = QAT_QUANT(depthwise_conv2d),
};
