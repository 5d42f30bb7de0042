/**
 * dw[o, t, c] += sum_p dy[p, o] x[p + t, c]
 *
 * The rows of the product are taps and channels of x, its columns are filters, its steps are the
 * pixels of a band, or of several small images. A block of bands leaves its sum as [group][tap,
 * channel][filter]. The blocks are added in order and transposed on the way into dw.
 */
#include "autograd/conv/conv_pass.h"

#include <string.h>

struct pass {
    const qat_conv *c;
    const qat_conv_places *at;
    qat_product_fn *multiply;
    const qat_real *x, *dy;
    qat_real *dw;
};

static int per_group(const qat_conv *c)
{
    return c->filters / c->groups;
}

static int channels_of_group(const qat_conv *c)
{
    return c->channels / c->groups;
}

/** The taps that see some of the image. */
struct taps {
    qat_taps y, x;
};

/** Walks through the rows of a group's product: channel by channel, seen through tap after tap. */
struct row {
    int channel, i, j; /* of the group; of the taps that see some of the image */
    ptrdiff_t source;  /* distance from the begin of a band */
    size_t depth;      /* (k_y * kernel_w + k_x) * channels + channel */
};

static struct row row_at(const qat_conv *c, const struct taps *t, int i, int j)
{
    size_t const k_y = (size_t)(t->y.first + i * t->y.step);
    size_t const k_x = (size_t)(t->x.first + j * t->x.step);
    ptrdiff_t const at_y = t->y.at + i * t->y.hop, at_x = t->x.at + j * t->x.hop;
    return (struct row){
        .i = i,
        .j = j,
        .source = at_y * c->weight_gradient.row + at_x * c->weight_gradient.pixel,
        .depth = (k_y * (size_t)c->window.kernel_w + k_x) * (size_t)channels_of_group(c),
    };
}

static void next_row(const qat_conv *c, const struct taps *t, struct row *row)
{
    row->source++;
    row->depth++;
    if (++row->channel < channels_of_group(c))
        return;
    bool const turns = row->j + 1 == t->x.count;
    *row = row_at(c, t, row->i + turns, turns ? 0 : row->j + 1);
}

/** What a block of bands works with. */
struct block {
    qat_real *buffer, *dw;
    qat_segment *segments;
};

/** A band, or n images that are one band each. */
struct images {
    qat_band first;
    int n;
};

/** The grid pixels of a band for which a tap is inside the image; of a padded copy, all. */
static void set_reach(const struct pass *p, const struct taps *t, const struct row *row,
                      const qat_band *band, qat_reach *y, qat_reach *x)
{
    const qat_window *w = &p->c->window;
    *y = (qat_reach){band->begin, band->end};
    *x = (qat_reach){0, w->out_w};
    if (p->c->weight_gradient.padded)
        return;
    int const at_y = t->y.at + row->i * t->y.hop, at_x = t->x.at + row->j * t->x.hop;
    qat_reach const seen = qat_window_reach(w->in_h, w->out_h, w->stride_h, at_y);
    y->first = seen.first > y->first ? seen.first : y->first;
    y->last = seen.last < y->last ? seen.last : y->last;
    *x = qat_window_reach(w->in_w, w->out_w, w->stride_w, at_x);
}

/*
 * Set the steps of a product: the pixels of a row, with rows as segments; if rows follow each other
 * without gaps, an image is one segment.
 */
static void set_steps(const struct pass *p, const struct taps *t, const struct row *row,
                      const struct images *images, qat_segment *segments, qat_product *product)
{
    const qat_slide *s = &p->c->weight_gradient;
    int const width = p->c->window.out_w;
    ptrdiff_t const a_step = s->x.step * s->pixel, a_row = s->y.step * s->row;
    ptrdiff_t const image = (ptrdiff_t)qat_conv_image_values(s),
                    pixels = p->c->window.out_h * width;
    qat_reach y, x;
    set_reach(p, t, row, &images->first, &y, &x);
    bool const merged = x.first == 0 && x.last == width && a_row == width * a_step;
    int const rows = y.last > y.first ? y.last - y.first : 0, every = merged && rows ? rows : 1;
    product->segments = segments;
    product->n_segments = images->n * rows / every;
    product->count = (x.last > x.first ? x.last - x.first : 0) * every;
    product->a_step = a_step;
    product->b_step = p->c->filters;
    for (int i = 0; i < images->n; i++)
        for (int r = 0; r < rows; r += every) {
            int const at = y.first - images->first.begin + r;
            *segments++ = (qat_segment){i * image + at * a_row + x.first * a_step,
                                        i * pixels + at * width + x.first};
        }
}

/* Compute the next rows of group g, for all filters. */
static void multiply_rows(const struct pass *p, const struct taps *t, const qat_real *x,
                          const qat_real *dy, int g, struct row *row, qat_product *product,
                          qat_real *dw)
{
    const qat_conv *c = p->c;
    int const n = per_group(c);
    size_t to[QAT_PRODUCT_ROWS];
    product->apart = row->channel + QAT_PRODUCT_ROWS <= channels_of_group(c);
    for (int i = 0; i < product->rows; i++, next_row(c, t, row)) {
        product->a[i] = x + row->source + g * channels_of_group(c);
        to[i] = ((size_t)g * (size_t)c->depth + row->depth) * (size_t)n;
    }
    for (int i = product->rows; i < QAT_PRODUCT_ROWS; i++)
        product->a[i] = product->a[0];
    for (int o = 0; o < n; o += QAT_PRODUCT_COLUMNS) {
        product->columns = n - o < QAT_PRODUCT_COLUMNS ? n - o : QAT_PRODUCT_COLUMNS;
        product->b = dy + g * n + o;
        for (int i = 0; i < product->rows; i++)
            product->c[i] = dw + to[i] + o;
        p->multiply(product);
    }
}

/* In place, each tap has steps of its own; of padded copies, all taps have the same. */
static void multiply_images(const struct pass *p, const struct images *images,
                            const struct block *block)
{
    const qat_conv *c = p->c;
    const qat_band *band = &images->first;
    struct taps const t = {qat_axis_taps(&c->forward.y, 0), qat_axis_taps(&c->forward.x, 0)};
    size_t const pixel_row = band->image * (size_t)c->window.out_h + (size_t)band->begin;
    const qat_real *dy = p->dy + pixel_row * (size_t)c->window.out_w * (size_t)c->filters;
    int const taps = t.y.count * t.x.count, together = c->weight_gradient.padded ? taps : 1;
    qat_product product = {.add = true};
    for (int tap = 0; tap < taps; tap += together) {
        struct row const first = row_at(c, &t, tap / t.x.count, tap % t.x.count);
        set_steps(p, &t, &first, images, block->segments, &product);
        for (int g = 0; g < c->groups; g++) {
            struct row row = first;
            for (int left = together * channels_of_group(c); left > 0; left -= product.rows) {
                product.rows = left < QAT_PRODUCT_ROWS ? left : QAT_PRODUCT_ROWS;
                multiply_rows(p, &t, band->at, dy, g, &row, &product, block->dw);
            }
        }
    }
}

static void multiply_block(void *context, int index, int thread)
{
    const struct pass *p = context;
    const qat_conv *c = p->c;
    size_t const weights = (size_t)c->filters * (size_t)c->depth;
    qat_span const span = qat_conv_bands(&c->weight_gradient, c->blocks, index);
    struct block const block = {.buffer = qat_conv_buffer(p->at, index),
                                .dw = p->at->partial + (size_t)index * weights,
                                .segments =
                                    p->at->segments + (size_t)index * p->at->block_segments};
    memset(block.dw, 0, weights * sizeof *block.dw);
    for (int i = (int)span.begin, end = (int)span.end, n; i < end; i += n) {
        n = end - i < c->together ? end - i : c->together;
        struct images const images = {qat_slide_band(&c->weight_gradient, p->x, i, block.buffer),
                                      n};
        for (int j = 1; j < n; j++)
            qat_slide_band(&c->weight_gradient, p->x, i + j,
                           block.buffer + (size_t)j * c->weight_gradient.buffer);
        multiply_images(p, &images, &block);
    }
}

/* ------------------------------------------------------------------ sum of the blocks */

enum { DEPTHS = 16, FILTERS = 64 }; /* of a tile: it writes whole cache lines of dw */

/* dw[o][k] += sum over blocks of partial[k][o], for one k and filters [o, o + n) of a group. */
static void add_blocks(const struct pass *p, size_t at, size_t n, size_t hop, qat_real *dw)
{
    const qat_conv *c = p->c;
    qat_real sum[FILTERS];
    memcpy(sum, p->at->partial + at, n * sizeof *sum);
    for (int b = 1; b < c->blocks; b++) {
        const qat_real *part = p->at->partial + (size_t)b * (size_t)c->filters * (size_t)c->depth;
        for (size_t i = 0; i < n; i++)
            sum[i] += part[at + i];
    }
    for (size_t i = 0; i < n; i++)
        dw[i * hop] += sum[i];
}

static int tiles_of_group(const qat_conv *c)
{
    return qat_tiles_of((size_t)c->depth, DEPTHS);
}

static void add_tile(void *context, int tile, int thread)
{
    const struct pass *p = context;
    const qat_conv *c = p->c;
    size_t const depth = (size_t)c->depth, filters = (size_t)per_group(c);
    size_t const group = (size_t)(tile / tiles_of_group(c));
    qat_span const k = qat_tile_span(depth, DEPTHS, tile % tiles_of_group(c));
    for (size_t o = 0; o < filters; o += FILTERS) {
        size_t const n = filters - o < FILTERS ? filters - o : FILTERS;
        for (size_t i = k.begin; i < k.end; i++)
            add_blocks(p, (group * depth + i) * filters + o, n, depth,
                       p->dw + (group * filters + o) * depth + i);
    }
}

void qat_conv_weights_pass(const qat_conv *c, const qat_conv_places *at, const qat_real *x,
                           const qat_real *dy, qat_real *dw)
{
    struct pass p = {.c = c, .at = at, .x = x, .dy = dy, .dw = dw, .multiply = qat_product_best()};
    qat_parallel(c->blocks, multiply_block, &p);
    qat_parallel(c->groups * tiles_of_group(c), add_tile, &p);
}
