/**
 * dw[o, t, c] += sum_p dy[p, o] x[p + t, c]
 *
 * The rows of the product are taps and channels of x, its columns are filters, its steps are the
 * pixels of a band. A block of bands leaves its sum as [group][tap, channel][filter]. The blocks
 * are added in order and transposed on the way into dw.
 */
#include "autograd/conv_pass.h"

#include <string.h>

struct pass {
    const qat_conv *c;
    const qat_conv_places *at;
    qat_product_fn *multiply;
    const qat_real *x, *dy;
    qat_real *dw;
    bool merged; /* the rows of a band follow each other without gaps */
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
        .source = at_y * c->forward.row + at_x * c->forward.pixel,
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

/* Set the steps of a product over n bands: the pixels of a row, with rows as segments. */
static void set_steps(const struct pass *p, const qat_band *band, int n, qat_product *product)
{
    const qat_conv *c = p->c;
    int const rows = band->end - band->begin, pixels = c->window.out_w;
    product->segments = p->at->segments;
    product->n_segments = p->merged ? n : n * rows;
    product->count = p->merged ? rows * pixels : pixels;
    product->a_step = c->forward.x.step * c->forward.pixel;
    product->b_step = c->filters;
}

/* Compute the next rows of group g, for all filters. */
static void multiply_rows(const struct pass *p, const struct taps *t, const qat_real *x,
                          const qat_real *dy, int g, struct row *row, qat_product *product,
                          qat_real *dw)
{
    const qat_conv *c = p->c;
    int const n = per_group(c);
    size_t to[QAT_PRODUCT_ROWS];
    product->adjacent = row->channel + QAT_PRODUCT_ROWS <= channels_of_group(c);
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

/* Add the product of a band, or of n images that are one band each. */
static void multiply_bands(const struct pass *p, int index, int n, qat_real *buffer, qat_real *dw)
{
    const qat_conv *c = p->c;
    qat_band const band = qat_sweep_band(&c->forward, p->x, index, buffer);
    for (int i = 1; i < n; i++)
        qat_sweep_band(&c->forward, p->x, index + i, buffer + (size_t)i * c->forward.buffer);
    struct taps const t = {qat_axis_taps(&c->forward.y, 0), qat_axis_taps(&c->forward.x, 0)};
    size_t const first = band.image * (size_t)c->window.out_h + (size_t)band.begin;
    const qat_real *dy = p->dy + first * (size_t)c->window.out_w * (size_t)c->filters;
    int const rows = t.y.count * t.x.count * channels_of_group(c);
    qat_product product = {.add = true};
    set_steps(p, &band, n, &product);
    for (int g = 0; g < c->groups; g++) {
        struct row row = row_at(c, &t, 0, 0);
        for (int r = 0; r < rows; r += product.rows) {
            product.rows = rows - r < QAT_PRODUCT_ROWS ? rows - r : QAT_PRODUCT_ROWS;
            multiply_rows(p, &t, band.at, dy, g, &row, &product, dw);
        }
    }
}

static void multiply_block(void *context, int block, int thread)
{
    const struct pass *p = context;
    size_t const weights = (size_t)p->c->filters * (size_t)p->c->depth;
    qat_real *dw = p->at->partial + (size_t)block * weights;
    qat_span const bands = qat_conv_bands(&p->c->forward, p->c->blocks, block);
    memset(dw, 0, weights * sizeof *dw);
    for (int i = (int)bands.begin, end = (int)bands.end, n; i < end; i += n) {
        n = end - i < p->c->together ? end - i : p->c->together;
        multiply_bands(p, i, n, qat_conv_buffer(p->at, block), dw);
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

/*
 * Set the segments of a product: where rows begin, of one image after the other. Returns true if
 * the rows of an image follow each other without gaps; an image is then one segment.
 */
static bool set_segments(const qat_conv *c, qat_segment *segments)
{
    ptrdiff_t const a = c->forward.y.step * c->forward.row, b = c->window.out_w;
    bool const merged = a == c->window.out_w * c->forward.x.step * c->forward.pixel;
    ptrdiff_t const image = (ptrdiff_t)qat_conv_image_values(&c->forward);
    for (int i = 0; i < c->together; i++)
        for (int r = 0; r < (merged ? 1 : c->forward.rows); r++)
            *segments++ = (qat_segment){i * image + r * a, (i * c->window.out_h + r) * b};
    return merged;
}

void qat_conv_weights_pass(const qat_conv *c, const qat_conv_places *at, const qat_real *x,
                           const qat_real *dy, qat_real *dw)
{
    struct pass p = {.c = c, .at = at, .x = x, .dy = dy, .dw = dw, .multiply = qat_product_best()};
    p.merged = set_segments(c, at->segments);
    qat_parallel(c->blocks, multiply_block, &p);
    qat_parallel(c->groups * tiles_of_group(c), add_tile, &p);
}
