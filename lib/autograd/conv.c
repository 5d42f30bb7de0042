#include "autograd/conv.h"

#include "autograd/gemm.h"
#include "autograd/tiles.h"
#include "autograd/vector.h"

enum {
    STRIP_VALUES = 48 * 1024, /* 192 KB of float: a strip stays in the second cache */
    STRIP_LEAST = 64,         /* rows: fewer make thin products */
    STRIP_MOST = 512,
    PARTIAL_VALUES = 1 << 23 /* of all blocks' weight gradients, unless one alone is larger */
};

static size_t pixels(const qat_conv *c)
{
    return (size_t)c->window.out_h * (size_t)c->window.out_w;
}

static size_t weights(const qat_conv *c)
{
    return (size_t)c->filters * (size_t)c->depth;
}

static void cut(qat_conv *c)
{
    int const rows = STRIP_VALUES / c->depth / 16 * 16;
    c->strip = rows < STRIP_LEAST ? STRIP_LEAST : rows > STRIP_MOST ? STRIP_MOST : rows;
    c->forward_blocks = qat_blocks_of((size_t)c->batch * pixels(c), (size_t)c->strip);
    size_t const affordable = PARTIAL_VALUES / weights(c) + 1;
    c->backward_blocks = qat_blocks_of((size_t)c->batch, 1);
    if ((size_t)c->backward_blocks > affordable)
        c->backward_blocks = (int)affordable;
}

qat_status qat_conv_of(qat_conv *c, const qat_node *node, qat_error *err)
{
    qat_status const st = qat_window_of(&c->window, node, err);
    if (st)
        return st;
    const qat_window *w = &c->window;
    const qat_shape *in = &node->inputs[0]->shape;
    c->batch = in->dims[0];
    c->channels = in->dims[3];
    c->filters = (int)qat_attr(node, "filters");
    c->groups = (int)qat_attr(node, "groups");
    if (c->channels % c->groups || c->filters % c->groups)
        return qat_fail(err, QAT_ERR_SHAPE, "%d groups must divide %d channels and %d filters",
                        c->groups, c->channels, c->filters);
    int64_t const depth = (int64_t)w->kernel_h * w->kernel_w * (c->channels / c->groups);
    if (depth > INT32_MAX / QAT_BLOCKS / STRIP_LEAST)
        return qat_fail(err, QAT_ERR_SHAPE, "a filter of %lld weights is too large",
                        (long long)depth);
    c->depth = (int)depth;
    c->direct = w->kernel_h == 1 && w->kernel_w == 1 && w->stride_h == 1 && w->stride_w == 1;
    cut(c);
    return QAT_OK;
}

/** Pointers into scratch. */
struct places {
    qat_real *strips;  /* [QAT_BLOCKS][strip][depth]; none when direct */
    qat_real *partial; /* [backward_blocks][filters][depth] */
};

static size_t place(const qat_conv *c, void *scratch, struct places *places)
{
    qat_carve carve = {scratch, 0};
    int const blocks =
        c->forward_blocks > c->backward_blocks ? c->forward_blocks : c->backward_blocks;
    size_t const strips = c->direct ? 0 : (size_t)blocks * (size_t)c->strip * (size_t)c->depth;
    places->strips = qat_carve_take(&carve, strips, sizeof(qat_real));
    places->partial =
        qat_carve_take(&carve, (size_t)c->backward_blocks * weights(c), sizeof(qat_real));
    return carve.used;
}

size_t qat_conv_scratch_bytes(const qat_conv *c)
{
    struct places places;
    return place(c, NULL, &places);
}

/** One pass over the batch, forward or backward. */
struct pass {
    const qat_conv *c;
    struct places at;
    const qat_real *x, *w, *dy;
    qat_real *y, *dx, *dw;
};

/** Some rows of the patch matrix of one group. */
struct rows {
    int group;
    size_t begin, end;
    const qat_real *patches;
    int stride; /* from row to row */
};

static int per_group(const qat_conv *c)
{
    return c->filters / c->groups;
}

/* Make rows' patches in a block's strip, or point into x. */
static void take_patches(const struct pass *p, int block, struct rows *rows)
{
    const qat_conv *c = p->c;
    int const count = c->channels / c->groups, channel = rows->group * count;
    if (c->direct) {
        rows->patches = p->x + rows->begin * (size_t)c->channels + channel;
        rows->stride = c->channels;
        return;
    }
    qat_real *strip = p->at.strips + (size_t)block * (size_t)c->strip * (size_t)c->depth;
    qat_im2col(&c->window, p->x, c->channels, channel, count, rows->begin, rows->end, strip);
    rows->patches = strip;
    rows->stride = c->depth;
}

/* Values of y or dy, and weights, that belong to rows' group. */
static size_t output_at(const qat_conv *c, const struct rows *rows)
{
    return rows->begin * (size_t)c->filters + (size_t)(rows->group * per_group(c));
}

static size_t weights_at(const qat_conv *c, const struct rows *rows)
{
    return (size_t)(rows->group * per_group(c)) * (size_t)c->depth;
}

/* ------------------------------------------------------------------ forward */

static void forward_block(void *context, int block, int thread)
{
    const struct pass *p = context;
    const qat_conv *c = p->c;
    size_t const total = (size_t)c->batch * pixels(c), strip = (size_t)c->strip;
    qat_span const strips = qat_block_span((total + strip - 1) / strip, c->forward_blocks, block);
    for (size_t s = strips.begin; s < strips.end; s++)
        for (int g = 0; g < c->groups; g++) {
            qat_span const span = qat_tile_span(total, strip, (int)s);
            struct rows rows = {.group = g, .begin = span.begin, .end = span.end};
            take_patches(p, block, &rows);
            qat_gemm(QAT_AS_IS, QAT_TRANSPOSED, (int)(rows.end - rows.begin), per_group(c),
                     c->depth, rows.patches, rows.stride, p->w + weights_at(c, &rows), c->depth, 0,
                     p->y + output_at(c, &rows), c->filters);
        }
}

void qat_conv_forward(const qat_conv *c, const qat_real *x, const qat_real *w, qat_real *y,
                      void *scratch)
{
    struct pass p = {.c = c, .x = x, .w = w, .y = y};
    place(c, scratch, &p.at);
    qat_parallel(c->forward_blocks, forward_block, &p);
}

/* ------------------------------------------------------------------ backward */

/* dw (+)= dy^T patches */
static void weight_gradient(const struct pass *p, int block, const struct rows *rows, bool first)
{
    const qat_conv *c = p->c;
    qat_real *dw = p->at.partial + (size_t)block * weights(c) + weights_at(c, rows);
    qat_gemm(QAT_TRANSPOSED, QAT_AS_IS, per_group(c), c->depth, (int)(rows->end - rows->begin),
             p->dy + output_at(c, rows), c->filters, rows->patches, rows->stride, first ? 0 : 1, dw,
             c->depth);
}

/* dx += adjoint of im2col (dy w); overwrites the block's strip */
static void data_gradient(const struct pass *p, int block, const struct rows *rows)
{
    const qat_conv *c = p->c;
    int const m = (int)(rows->end - rows->begin), count = c->channels / c->groups;
    const qat_real *dy = p->dy + output_at(c, rows), *w = p->w + weights_at(c, rows);
    if (c->direct) {
        qat_real *dx = p->dx + rows->begin * (size_t)c->channels + rows->group * count;
        qat_gemm(QAT_AS_IS, QAT_AS_IS, m, c->depth, per_group(c), dy, c->filters, w, c->depth, 1,
                 dx, c->channels);
        return;
    }
    qat_real *strip = p->at.strips + (size_t)block * (size_t)c->strip * (size_t)c->depth;
    qat_gemm(QAT_AS_IS, QAT_AS_IS, m, c->depth, per_group(c), dy, c->filters, w, c->depth, 0, strip,
             c->depth);
    qat_col2im(&c->window, strip, c->channels, rows->group * count, count, rows->begin, rows->end,
               p->dx);
}

static void backward_block(void *context, int block, int thread)
{
    const struct pass *p = context;
    const qat_conv *c = p->c;
    qat_span const images = qat_block_span((size_t)c->batch, c->backward_blocks, block);
    size_t const begin = images.begin * pixels(c), total = images.end * pixels(c) - begin;
    int const strips = qat_tiles_of(total, (size_t)c->strip);
    for (int s = 0; s < strips; s++)
        for (int g = 0; g < c->groups; g++) {
            qat_span const span = qat_tile_span(total, (size_t)c->strip, s);
            struct rows rows = {.group = g, .begin = begin + span.begin, .end = begin + span.end};
            if (p->dw) {
                take_patches(p, block, &rows);
                weight_gradient(p, block, &rows, s == 0);
            }
            if (p->dx)
                data_gradient(p, block, &rows);
        }
}

void qat_conv_backward(const qat_conv *c, const qat_real *x, const qat_real *w, const qat_real *dy,
                       qat_real *dx, qat_real *dw, void *scratch)
{
    struct pass p = {.c = c, .x = x, .w = w, .dy = dy, .dx = dx, .dw = dw};
    place(c, scratch, &p.at);
    qat_parallel(c->backward_blocks, backward_block, &p);
    if (dw)
        qat_accumulate_parts(dw, p.at.partial, c->backward_blocks, weights(c), weights(c));
}
