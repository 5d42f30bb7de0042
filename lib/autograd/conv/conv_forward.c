/**
 * Outputs; and data gradients, which are made in the same way: a slide over x or dy. Its grid
 * pixels are the rows of a matrix product, up to QAT_PRODUCT_ROWS at a time. A segment is a tap, or
 * a row of taps that lie together. The weights are packed in the same order.
 *
 *     packed, group by group, phase by phase:  [panel of 32 columns][tap][channel][column]
 *
 * In the forward pass, channel and column belong to x and y; in the gradient's pass, to dy and dx.
 */
#include "autograd/conv/conv_pass.h"

struct pass {
    const qat_conv *c;
    const qat_conv_places *at;
    const qat_slide *s;
    qat_product_fn *multiply;
    const qat_real *source, *w;
    qat_real *target;
    int in, out;         /* channels of one group in source and target */
    int target_channels; /* of all groups */
    bool gradient, add;
};

/** Pixels that share their taps. */
struct phase {
    int y, x;
    qat_taps ty, tx;
    bool runs;     /* the taps of a row form one segment */
    int first;     /* first segment */
    size_t packed; /* where its panels begin within the group's */
};

static size_t panel_width(int columns)
{
    int const most = columns < QAT_PRODUCT_COLUMNS ? columns : QAT_PRODUCT_COLUMNS;
    return (size_t)(most + QAT_PRODUCT_PAD - 1) / QAT_PRODUCT_PAD * QAT_PRODUCT_PAD;
}

static size_t padded_columns(const struct pass *p)
{
    return (size_t)(p->out + QAT_PRODUCT_PAD - 1) / QAT_PRODUCT_PAD * QAT_PRODUCT_PAD;
}

/* Rows of a panel in this phase. */
static size_t depth_of(const struct pass *p, const struct phase *h)
{
    return (size_t)h->ty.count * (size_t)h->tx.count * (size_t)p->in;
}

static size_t packed_of_group(const struct pass *p)
{
    size_t const taps = (size_t)p->c->window.kernel_h * (size_t)p->c->window.kernel_w;
    return taps * (size_t)p->in * padded_columns(p);
}

static int segments_of(const struct phase *h)
{
    return h->runs ? h->ty.count : h->ty.count * h->tx.count;
}

static void set_taps(const struct pass *p, struct phase *h)
{
    h->ty = qat_axis_taps(&p->s->y, h->y);
    h->tx = qat_axis_taps(&p->s->x, h->x);
    h->runs = h->tx.hop == 1 && p->c->groups == 1;
}

static int phases_along(const qat_axis *a)
{
    return a->spread < a->target ? a->spread : a->target;
}

static struct phase first_phase(const struct pass *p)
{
    struct phase h = {0};
    set_taps(p, &h);
    return h;
}

static bool next_phase(const struct pass *p, struct phase *h)
{
    h->first += segments_of(h);
    h->packed += depth_of(p, h) * padded_columns(p);
    if (++h->x == phases_along(&p->s->x)) {
        h->x = 0;
        h->y++;
    }
    if (h->y == phases_along(&p->s->y))
        return false;
    set_taps(p, h);
    return true;
}

/* ------------------------------------------------------------------ packing */

static void set_segments(const struct pass *p, const struct phase *h)
{
    int const across = h->runs ? 1 : h->tx.count;
    int const count = h->runs ? h->tx.count * p->in : p->in;
    for (int i = 0; i < segments_of(h); i++) {
        ptrdiff_t const y = h->ty.at + i / across * h->ty.hop;
        ptrdiff_t const x = h->tx.at + i % across * h->tx.hop;
        p->at->segments[h->first + i] =
            (qat_segment){y * p->s->row + x * p->s->pixel, (ptrdiff_t)i * count};
    }
}

/*
 * Pack one row of a panel: the weights of one tap between channel `in` of a group and its outputs.
 */
static void pack_row(const struct pass *p, int group, size_t tap, int in, int column, int columns,
                     size_t width, qat_real *to)
{
    const qat_conv *c = p->c;
    size_t const channels = (size_t)(c->channels / c->groups), depth = (size_t)c->depth;
    size_t const filter = (size_t)group * (size_t)(c->filters / c->groups);
    size_t const hop = p->gradient ? 1 : depth;
    const qat_real *w = p->w + tap * channels;
    w += p->gradient ? (filter + (size_t)in) * depth + (size_t)column
                     : (filter + (size_t)column) * depth + (size_t)in;
    for (int j = 0; j < columns; j++)
        to[j] = w[(size_t)j * hop];
    for (size_t j = (size_t)columns; j < width; j++)
        to[j] = 0;
}

static void pack_panel(const struct pass *p, const struct phase *h, int group, int column)
{
    int const rest = p->out - column;
    int const columns = rest < QAT_PRODUCT_COLUMNS ? rest : QAT_PRODUCT_COLUMNS;
    size_t const width = panel_width(rest);
    qat_real *to = p->at->packed + (size_t)group * packed_of_group(p) + h->packed +
                   (size_t)column * depth_of(p, h);
    for (int i = 0; i < h->ty.count; i++)
        for (int j = 0; j < h->tx.count; j++) {
            int const k_y = h->ty.first + i * h->ty.step, k_x = h->tx.first + j * h->tx.step;
            size_t const tap = (size_t)k_y * (size_t)p->c->window.kernel_w + (size_t)k_x;
            for (int k = 0; k < p->in; k++, to += width)
                pack_row(p, group, tap, k, column, columns, width, to);
        }
}

static int panels_of(const struct pass *p)
{
    return qat_tiles_of((size_t)p->out, QAT_PRODUCT_COLUMNS);
}

static void pack_tile(void *context, int tile, int thread)
{
    const struct pass *p = context;
    struct phase h = first_phase(p);
    do
        pack_panel(p, &h, tile / panels_of(p), tile % panels_of(p) * QAT_PRODUCT_COLUMNS);
    while (next_phase(p, &h));
}

/* ------------------------------------------------------------------ products */

/** Walks through the pixels of a band and phase, in order. */
struct pixels {
    const qat_real *source; /* of the pixel */
    qat_real *target;
    ptrdiff_t source_hop, target_hop, source_turn,
        target_turn;       /* to the next pixel; to the first one of the next row */
    int x, y, width, left; /* column, row, number of columns, pixels left */
};

static struct pixels pixels_of(const struct pass *p, const struct phase *h, const qat_band *band)
{
    const qat_slide *s = p->s;
    int const end_y = qat_axis_reach(&s->y, h->y), width = qat_axis_reach(&s->x, h->x);
    int const rows = (end_y < band->end ? end_y : band->end) - band->begin;
    ptrdiff_t const pixel = p->target_channels, row = s->x.target * pixel;
    size_t const y = band->image * (size_t)s->y.target + (size_t)band->begin * (size_t)s->y.spread +
                     (size_t)h->y;
    struct pixels at = {.source = band->at, .y = band->begin, .width = width};
    at.left = rows > 0 ? rows * width : 0;
    at.target = p->target + (y * (size_t)s->x.target + (size_t)h->x) * (size_t)pixel;
    at.source_hop = s->x.step * s->pixel;
    at.target_hop = s->x.spread * pixel;
    at.source_turn = s->y.step * s->row - width * at.source_hop;
    at.target_turn = s->y.spread * row - width * at.target_hop;
    return at;
}

static inline void next_pixel(struct pixels *at)
{
    at->source += at->source_hop;
    at->target += at->target_hop;
    if (++at->x < at->width)
        return;
    at->x = 0;
    at->y++;
    at->source += at->source_turn;
    at->target += at->target_turn;
}

/*
 * Take the next pixels as the rows of a product. A grid row of exactly half a product is taken
 * alone: rows at the border then leave out taps.
 */
static void take_rows(struct pixels *at, qat_product *product)
{
    int const most = at->width == QAT_PRODUCT_ROWS / 2 ? QAT_PRODUCT_ROWS / 2 : QAT_PRODUCT_ROWS;
    product->rows = at->left < most ? at->left : most;
    bool const in_one_row = at->x + QAT_PRODUCT_ROWS <= at->width;
    product->apart = in_one_row && product->rows == QAT_PRODUCT_ROWS ? (int)at->source_hop : 0;
    at->left -= product->rows;
    for (int i = 0; i < product->rows; i++) {
        product->a[i] = at->source;
        product->c[i] = at->target;
        next_pixel(at);
    }
    for (int i = product->rows; i < QAT_PRODUCT_ROWS; i++)
        product->a[i] = product->a[0];
}

/* Compute all columns of a group for the current rows. Afterwards c points to the next group. */
static void multiply_group(const struct pass *p, const struct phase *h, int group,
                           qat_product *product)
{
    const qat_real *packed = p->at->packed + (size_t)group * packed_of_group(p) + h->packed;
    for (int column = 0, n; column < p->out; column += n) {
        int const rest = p->out - column;
        n = rest < QAT_PRODUCT_COLUMNS ? rest : QAT_PRODUCT_COLUMNS;
        product->columns = n;
        product->b_step = (ptrdiff_t)panel_width(rest);
        product->b = packed + (size_t)column * depth_of(p, h);
        p->multiply(product);
        for (int i = 0; i < product->rows; i++)
            product->c[i] += n;
    }
}

/*
 * Leave out the rows of taps that see only padding from all of the grid rows [first, last]: with
 * finite weights they add nothing.
 */
static void choose_segments(const struct pass *p, const struct phase *h, int first, int last,
                            qat_product *product)
{
    const qat_axis *y = &p->s->y;
    int const across = h->runs ? 1 : h->tx.count;
    int begin = 0, end = h->ty.count;
    while (begin < end && last * y->step + h->ty.at + begin * h->ty.hop < 0)
        begin++;
    while (begin < end && first * y->step + h->ty.at + (end - 1) * h->ty.hop >= y->source)
        end--;
    product->segments = p->at->segments + h->first + begin * across;
    product->n_segments = (end - begin) * across;
}

static void multiply_phase(const struct pass *p, const struct phase *h, const qat_band *band)
{
    struct pixels at = pixels_of(p, h, band);
    qat_product product = {
        .count = h->runs ? h->tx.count * p->in : p->in, .a_step = 1, .padded = true, .add = p->add};
    while (at.left > 0) {
        int const first = at.y;
        take_rows(&at, &product);
        choose_segments(p, h, first, at.x ? at.y : at.y - 1, &product);
        multiply_group(p, h, 0, &product);
        for (int g = 1; g < p->c->groups; g++) {
            for (int i = 0; i < QAT_PRODUCT_ROWS; i++)
                product.a[i] += p->in;
            multiply_group(p, h, g, &product);
        }
    }
}

static void multiply_block(void *context, int block, int thread)
{
    const struct pass *p = context;
    qat_span const bands = qat_conv_bands(p->s, QAT_BLOCKS, block);
    for (size_t i = bands.begin; i < bands.end; i++) {
        qat_band const band =
            qat_slide_band(p->s, p->source, (int)i, qat_conv_buffer(p->at, block));
        struct phase h = first_phase(p);
        do
            multiply_phase(p, &h, &band);
        while (next_phase(p, &h));
    }
}

static void run(struct pass *p)
{
    struct phase h = first_phase(p);
    do
        set_segments(p, &h);
    while (next_phase(p, &h));
    p->multiply = qat_product_best();
    qat_parallel(p->c->groups * panels_of(p), pack_tile, p);
    qat_parallel(QAT_BLOCKS, multiply_block, p);
}

void qat_conv_forward_pass(const qat_conv *c, const qat_conv_places *at, const qat_real *x,
                           const qat_real *w, qat_real *y)
{
    run(&(struct pass){.c = c,
                       .at = at,
                       .s = &c->forward,
                       .source = x,
                       .w = w,
                       .target = y,
                       .in = c->channels / c->groups,
                       .out = c->filters / c->groups,
                       .target_channels = c->filters});
}

void qat_conv_data_pass(const qat_conv *c, const qat_conv_places *at, const qat_real *dy,
                        const qat_real *w, qat_real *dx, bool add)
{
    run(&(struct pass){.c = c,
                       .at = at,
                       .s = &c->gradient,
                       .source = dy,
                       .w = w,
                       .target = dx,
                       .in = c->filters / c->groups,
                       .out = c->channels / c->groups,
                       .target_channels = c->channels,
                       .gradient = true,
                       .add = add});
}
