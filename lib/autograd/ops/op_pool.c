/**
 * Pools: max_pool2d, average_pool2d (over the pixels inside the image), global_average_pool.
 *
 * Windows may overlap, but only within one image, so a tile is an image. The innermost loops run
 * over channels.
 */
#include "autograd/loops/padding.h"
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/loops/window.h"
#include "autograd/ops/op.h"

#include <assert.h>
#include <string.h>

#define POOL_ATTRS                                                                                 \
    {"kernel", QAT_ATTR_INT, 2, 1, QAT_WINDOW_MAX, NULL, "window height"},                         \
        {"kernel_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "window width; 0: same as kernel"}, \
        {"stride",                                                                                 \
         QAT_ATTR_INT,                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         QAT_WINDOW_MAX,                                                                           \
         NULL,                                                                                     \
         "rows between neighbouring windows; 0: same as kernel"},                                  \
        {"stride_w",                                                                               \
         QAT_ATTR_INT,                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         QAT_WINDOW_MAX,                                                                           \
         NULL,                                                                                     \
         "columns between neighbouring windows; 0: same as stride"},                               \
        QAT_PADDING_ATTR(1)

static const qat_attr_def max_attrs[] = {
    POOL_ATTRS,
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static const qat_attr_def average_attrs[] = {
    POOL_ATTRS,
    {"count_padding", QAT_ATTR_CHOICE, 0, 0, 1, "no|yes",
     "no: the mean of the pixels inside the image, TensorFlow's; yes: padding counts as zeros, "
     "PyTorch's default"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

static qat_status pool_shape(qat_node *node, qat_error *err)
{
    qat_window w;
    qat_status const st = qat_window_of(&w, node, err);
    const qat_shape *in = &node->inputs[0]->shape;
    if (!st)
        node->shape = QAT_SHAPE(in->dims[0], w.out_h, w.out_w, in->dims[3]);
    return st;
}

/* The window that `shape` accepted. */
static qat_window accepted(const qat_node *node)
{
    qat_window w;
    qat_status const st = qat_window_of(&w, node, NULL);
    assert(st == QAT_OK);
    (void)st;
    return w;
}

/** What one output pixel reads: input rows top..bottom-1, columns left..right-1 (never empty). */
struct area {
    int top, bottom, left, right;
    size_t channels, in_w; /* of the input */
    int divisor;           /* of an average */
};

static struct area area_of(const qat_window *w, size_t channels, int y, int x)
{
    struct area a = {.channels = channels, .in_w = (size_t)w->in_w};
    a.top = y * w->stride_h - w->pad_top;
    a.left = x * w->stride_w - w->pad_left;
    a.bottom = a.top + w->kernel_h < w->in_h ? a.top + w->kernel_h : w->in_h;
    a.right = a.left + w->kernel_w < w->in_w ? a.left + w->kernel_w : w->in_w;
    a.top = a.top < 0 ? 0 : a.top;
    a.left = a.left < 0 ? 0 : a.left;
    a.divisor = (a.bottom - a.top) * (a.right - a.left);
    return a;
}

static size_t pixel_at(const struct area *a, int y, int x)
{
    return ((size_t)y * a->in_w + (size_t)x) * a->channels;
}

/**
 * One output pixel: y from x, or dx from dy (and x, y). x and dx point to the image, y and dy to
 * the pixel; first holds one int per channel.
 */
struct pixel {
    struct area area;
    const qat_real *x, *dy;
    qat_real *y, *dx;
    int *first;
};
typedef void pixel_fn(const struct pixel *p);

/** A pass over the batch, cut into blocks of images. */
struct pass {
    const qat_node *node;
    qat_window w;
    pixel_fn *fn;
    bool counts_padding; /* its averages divide by all of the window */
    int blocks;
};

static void each_pixel(const struct pass *pass, size_t image, int *first)
{
    const qat_node *node = pass->node, *in = node->inputs[0];
    size_t const channels = (size_t)node->shape.dims[3];
    size_t const in_at = image * (size_t)pass->w.in_h * (size_t)pass->w.in_w * channels;
    size_t at = image * (size_t)pass->w.out_h * (size_t)pass->w.out_w * channels;
    struct pixel p = {.x = in->value + in_at, .first = first};
    p.dx = in->grad ? in->grad + in_at : NULL;
    for (int y = 0; y < pass->w.out_h; y++)
        for (int x = 0; x < pass->w.out_w; x++, at += channels) {
            p.area = area_of(&pass->w, channels, y, x);
            if (pass->counts_padding)
                p.area.divisor = pass->w.kernel_h * pass->w.kernel_w;
            p.y = node->value + at;
            p.dy = node->grad ? node->grad + at : NULL;
            pass->fn(&p);
        }
}

static void pool_block(void *context, int block, int thread)
{
    const struct pass *pass = context;
    int *scratch = pass->node->scratch;
    qat_span const images = qat_block_span((size_t)pass->node->shape.dims[0], pass->blocks, block);
    for (size_t n = images.begin; n < images.end; n++)
        each_pixel(pass, n, scratch ? scratch + block * pass->node->shape.dims[3] : NULL);
}

static void run_pool(const qat_node *node, pixel_fn *fn, bool counts_padding)
{
    struct pass pass = {node, accepted(node), fn, counts_padding,
                        qat_blocks_of((size_t)node->shape.dims[0], 1)};
    qat_parallel(pass.blocks, pool_block, &pass);
}

/* ------------------------------------------------------------------ max */

QAT_VECTOR static void raise_to(qat_real *restrict y, const qat_real *restrict x, size_t n)
{
    for (size_t c = 0; c < n; c++)
        y[c] = x[c] > y[c] ? x[c] : y[c];
}

static void max_pixel(const struct pixel *p)
{
    const struct area *a = &p->area;
    memcpy(p->y, p->x + pixel_at(a, a->top, a->left), a->channels * sizeof *p->y);
    for (int y = a->top; y < a->bottom; y++)
        for (int x = a->left; x < a->right; x++)
            raise_to(p->y, p->x + pixel_at(a, y, x), a->channels);
}

QAT_VECTOR static void mark_equal(int *restrict first, const qat_real *restrict x,
                                  const qat_real *restrict y, int tap, size_t n)
{
    for (size_t c = 0; c < n; c++)
        first[c] = x[c] == y[c] ? tap : first[c];
}

QAT_VECTOR static void add_marked(qat_real *restrict dx, const qat_real *restrict dy,
                                  const int *restrict first, int tap, size_t n)
{
    for (size_t c = 0; c < n; c++)
        dx[c] += first[c] == tap ? dy[c] : 0;
}

/* Runs from the last tap to the first, so that the mark that stays is the first maximum. */
static void max_pixel_gradient(const struct pixel *p)
{
    const struct area *a = &p->area;
    int const width = a->right - a->left, taps = (a->bottom - a->top) * width;
    for (size_t c = 0; c < a->channels; c++)
        p->first[c] = -1; /* stays -1 if the maximum is NaN */
    for (int t = taps - 1; t >= 0; t--)
        mark_equal(p->first, p->x + pixel_at(a, a->top + t / width, a->left + t % width), p->y, t,
                   a->channels);
    for (int t = 0; t < taps; t++)
        add_marked(p->dx + pixel_at(a, a->top + t / width, a->left + t % width), p->dy, p->first, t,
                   a->channels);
}

static qat_status max_shape(qat_node *node, qat_error *err)
{
    qat_status const st = pool_shape(node, err);
    if (!st)
        node->scratch_bytes = (size_t)qat_blocks_of((size_t)node->shape.dims[0], 1) *
                              (size_t)node->shape.dims[3] * sizeof(int);
    return st;
}

static void max_forward(qat_node *node, const qat_run *run)
{
    run_pool(node, max_pixel, false);
}

static void max_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        run_pool(node, max_pixel_gradient, false);
}

const qat_op qat_op_max_pool2d = {
    .name = "max_pool2d",
    .meaning = "largest value of a window; if there are several, the gradient goes to the first",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = max_attrs,
    .shape = max_shape,
    .forward = max_forward,
    .backward = max_backward,
    .quant = QAT_QUANT(max_pool2d),
};

/* ------------------------------------------------------------------ average */

static bool counts_padding(const qat_node *node)
{
    return qat_attr(node, "count_padding") > 0;
}

static void average_pixel(const struct pixel *p)
{
    const struct area *a = &p->area;
    qat_real const scale = 1 / (qat_real)a->divisor;
    memset(p->y, 0, a->channels * sizeof *p->y);
    for (int y = a->top; y < a->bottom; y++)
        for (int x = a->left; x < a->right; x++)
            qat_vector_add(p->y, p->x + pixel_at(a, y, x), a->channels);
    for (size_t c = 0; c < a->channels; c++)
        p->y[c] *= scale;
}

static void average_pixel_gradient(const struct pixel *p)
{
    const struct area *a = &p->area;
    qat_real const scale = 1 / (qat_real)a->divisor;
    for (int y = a->top; y < a->bottom; y++)
        for (int x = a->left; x < a->right; x++)
            qat_vector_add_scaled(p->dx + pixel_at(a, y, x), p->dy, scale, a->channels);
}

static void average_forward(qat_node *node, const qat_run *run)
{
    run_pool(node, average_pixel, counts_padding(node));
}

static void average_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        run_pool(node, average_pixel_gradient, counts_padding(node));
}

const qat_op qat_op_average_pool2d = {
    .name = "average_pool2d",
    .meaning = "mean of the values of a window: of those inside the image, or of all",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = average_attrs,
    .shape = pool_shape,
    .forward = average_forward,
    .backward = average_backward,
    .quant = QAT_QUANT(average_pool2d),
};

/* ------------------------------------------------------------------ global average */

static qat_status global_shape(qat_node *node, qat_error *err)
{
    const qat_shape *in = &node->inputs[0]->shape;
    char text[64];
    if (in->rank != 4)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s is not [N, H, W, C]",
                        qat_shape_text(in, text));
    node->shape = QAT_SHAPE(in->dims[0], 1, 1, in->dims[3]);
    return QAT_OK;
}

static size_t pixels_of(const qat_node *node)
{
    return (size_t)node->inputs[0]->shape.dims[1] * (size_t)node->inputs[0]->shape.dims[2];
}

static void global_forward_image(void *context, int image, int thread)
{
    const qat_node *node = context;
    size_t const pixels = pixels_of(node), channels = (size_t)node->shape.dims[3];
    const qat_real *x = node->inputs[0]->value + (size_t)image * pixels * channels;
    qat_real *y = node->value + (size_t)image * channels;
    memset(y, 0, channels * sizeof *y);
    for (size_t i = 0; i < pixels; i++)
        qat_vector_add(y, x + i * channels, channels);
    for (size_t c = 0; c < channels; c++)
        y[c] /= (qat_real)pixels;
}

static void global_backward_image(void *context, int image, int thread)
{
    const qat_node *node = context;
    size_t const pixels = pixels_of(node), channels = (size_t)node->shape.dims[3];
    qat_real *dx = node->inputs[0]->grad + (size_t)image * pixels * channels;
    for (size_t i = 0; i < pixels; i++)
        qat_vector_add_scaled(dx + i * channels, node->grad + (size_t)image * channels,
                              1 / (qat_real)pixels, channels);
}

static void global_forward(qat_node *node, const qat_run *run)
{
    qat_parallel(node->shape.dims[0], global_forward_image, node);
}

static void global_backward(qat_node *node, const qat_run *run)
{
    if (node->inputs[0]->grad)
        qat_parallel(node->shape.dims[0], global_backward_image, node);
}

const qat_op qat_op_global_average_pool = {
    .name = "global_average_pool",
    .meaning = "mean over the whole image, with the output [N, 1, 1, C]",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = global_shape,
    .forward = global_forward,
    .backward = global_backward,
    .quant = QAT_QUANT(global_average_pool),
};
