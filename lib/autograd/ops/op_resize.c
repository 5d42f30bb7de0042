/**
 * resize_nearest, resize_bilinear: pictures of another height and width, as TensorFlow's kernels
 * compute them, with positions in float32. Along an axis with `in` and `out` positions
 *
 *     ratio = in / out, or with align_corners and out > 1: (in - 1) / (out - 1)
 *     p = i ratio, or with half_pixel_centers (i + 1/2) ratio, bilinear: less 1/2
 *
 *     nearest    y[i] = x[floor(p)], with align_corners the rounded p; the last x beyond the end
 *     bilinear   y[i] = (1 - (p - l)) x[l] + (p - l) x[u],  l = max(floor(p), 0),
 *                u = min(ceil(p), in - 1)
 */
#include "autograd/loops/tiles.h"
#include "autograd/ops/op.h"

#include <math.h>

/** An output position of one axis: input positions and their shares. Nearest: lower, 1. */
struct place {
    int lower, upper;
    qat_real below, above;
};

struct resize {
    const qat_shape *x, *y;
    bool bilinear, align, half_pixel;
    struct place *rows, *columns;
    size_t bytes;
};

static struct resize resize_of(const qat_node *node, void *scratch)
{
    qat_carve carve = {scratch, 0};
    struct resize r = {.x = &node->inputs[0]->shape,
                       .y = &node->shape,
                       .bilinear = node->op == &qat_op_resize_bilinear,
                       .align = qat_attr(node, "align_corners") != 0,
                       .half_pixel = qat_attr(node, "half_pixel_centers") != 0};
    r.rows = qat_carve_take(&carve, (size_t)r.y->dims[1], sizeof *r.rows);
    r.columns = qat_carve_take(&carve, (size_t)r.y->dims[2], sizeof *r.columns);
    r.bytes = carve.used;
    return r;
}

static struct place place_of(const struct resize *r, int in, int out, int i)
{
    bool const align = r->align && out > 1;
    float const ratio = align ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    float p = (r->half_pixel ? (float)i + 0.5F : (float)i) * ratio;
    if (!r->bilinear) {
        int const near = (int)(r->align ? roundf(p) : floorf(p));
        int const at = near < in ? near : in - 1;
        return (struct place){at, at, 1, 0};
    }
    if (r->half_pixel)
        p -= 0.5F;
    int const lower = p > 0 ? (int)floorf(p) : 0, upper = (int)ceilf(p);
    qat_real const part = (qat_real)(p - (float)lower);
    return (struct place){lower < in ? lower : in - 1, upper < in ? upper : in - 1, 1 - part, part};
}

/** The resize with its places. */
static struct resize placed(const qat_node *node)
{
    struct resize r = resize_of(node, node->scratch);
    for (int i = 0; i < r.y->dims[1]; i++)
        r.rows[i] = place_of(&r, r.x->dims[1], r.y->dims[1], i);
    for (int i = 0; i < r.y->dims[2]; i++)
        r.columns[i] = place_of(&r, r.x->dims[2], r.y->dims[2], i);
    return r;
}

/* ------------------------------------------------------------------ forward, backward */

struct pass {
    const struct resize *r;
    const qat_node *node;
};

/** The input pixel [n, h, w] in an array of the input's shape. */
static size_t pixel(const struct resize *r, int n, int h, int w)
{
    const int *d = r->x->dims;
    return (((size_t)n * (size_t)d[1] + (size_t)h) * (size_t)d[2] + (size_t)w) * (size_t)d[3];
}

/** One row of the output, counted over [N, OH]. */
static void forward_row(void *context, int row, int thread)
{
    const struct pass *p = context;
    const struct resize *r = p->r;
    size_t const channels = (size_t)r->y->dims[3];
    int const n = row / r->y->dims[1];
    struct place const v = r->rows[row % r->y->dims[1]];
    const qat_real *x = p->node->inputs[0]->value;
    qat_real *y = p->node->value + (size_t)row * (size_t)r->y->dims[2] * channels;
    for (int j = 0; j < r->y->dims[2]; j++, y += channels) {
        struct place const h = r->columns[j];
        const qat_real *a = x + pixel(r, n, v.lower, h.lower);
        const qat_real *b = x + pixel(r, n, v.lower, h.upper);
        const qat_real *c = x + pixel(r, n, v.upper, h.lower);
        const qat_real *d = x + pixel(r, n, v.upper, h.upper);
        for (size_t i = 0; i < channels; i++)
            y[i] = r->bilinear ? v.below * (h.below * a[i] + h.above * b[i]) +
                                     v.above * (h.below * c[i] + h.above * d[i])
                               : a[i];
    }
}

static void add_share(qat_real *dx, const qat_real *dy, qat_real share, size_t n)
{
    for (size_t i = 0; share != 0 && i < n; i++)
        dx[i] += share * dy[i];
}

/** One picture, as neighbouring outputs add to the same pixel. */
static void backward_picture(void *context, int n, int thread)
{
    const struct pass *p = context;
    const struct resize *r = p->r;
    size_t const channels = (size_t)r->y->dims[3];
    qat_real *dx = p->node->inputs[0]->grad;
    const qat_real *dy =
        p->node->grad + (size_t)n * (size_t)r->y->dims[1] * (size_t)r->y->dims[2] * channels;
    for (int i = 0; i < r->y->dims[1]; i++)
        for (int j = 0; j < r->y->dims[2]; j++, dy += channels) {
            struct place const v = r->rows[i], h = r->columns[j];
            add_share(dx + pixel(r, n, v.lower, h.lower), dy, v.below * h.below, channels);
            add_share(dx + pixel(r, n, v.lower, h.upper), dy, v.below * h.above, channels);
            add_share(dx + pixel(r, n, v.upper, h.lower), dy, v.above * h.below, channels);
            add_share(dx + pixel(r, n, v.upper, h.upper), dy, v.above * h.above, channels);
        }
}

static void resize_forward(qat_node *node, const qat_run *run)
{
    struct resize const r = placed(node);
    struct pass pass = {&r, node};
    qat_parallel(r.y->dims[0] * r.y->dims[1], forward_row, &pass);
}

static void resize_backward(qat_node *node, const qat_run *run)
{
    struct resize const r = placed(node);
    struct pass pass = {&r, node};
    if (node->inputs[0]->grad)
        qat_parallel(r.y->dims[0], backward_picture, &pass);
}

/* ------------------------------------------------------------------ op */

/** A side of the output; 0: too large. */
static int side_of(const qat_node *node, const char *attr, int in)
{
    int const given = (int)qat_attr(node, attr);
    int64_t const side = given ? given : (int64_t)in * (int)qat_attr(node, "factor");
    return side <= UINT16_MAX ? (int)side : 0;
}

static qat_status resize_shape(qat_node *node, qat_error *err)
{
    const qat_shape *in = &node->inputs[0]->shape;
    char text[64];
    if (in->rank != 4)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s is not [N, H, W, C]",
                        qat_shape_text(in, text));
    int const h = side_of(node, "height", in->dims[1]), w = side_of(node, "width", in->dims[2]);
    if (!h || !w)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s would get a side of more than %d",
                        qat_shape_text(in, text), UINT16_MAX);
    if (qat_attr(node, "align_corners") != 0 && qat_attr(node, "half_pixel_centers") != 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "align_corners = yes needs half_pixel_centers = no");
    node->shape = QAT_SHAPE(in->dims[0], h, w, in->dims[3]);
    node->scratch_bytes = resize_of(node, NULL).bytes;
    return QAT_OK;
}

static const qat_attr_def resize_attrs[] = {
    {"factor", QAT_ATTR_INT, 2, 1, 65535, NULL, "output size as a multiple of the input's"},
    {"height", QAT_ATTR_INT, 0, 0, 65535, NULL, "rows of the output; 0: by factor"},
    {"width", QAT_ATTR_INT, 0, 0, 65535, NULL, "columns of the output; 0: by factor"},
    {"align_corners", QAT_ATTR_CHOICE, 0, 0, 1, "no|yes",
     "yes: the pixels in the corners stay where they are"},
    {"half_pixel_centers", QAT_ATTR_CHOICE, 1, 0, 1, "no|yes",
     "yes: a pixel is an area, and its place is its centre"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

#define RESIZE(op, text)                                                                           \
    const qat_op qat_op_##op = {                                                                   \
        .name = #op,                                                                               \
        .meaning = text,                                                                           \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .attrs = resize_attrs,                                                                     \
        .shape = resize_shape,                                                                     \
        .forward = resize_forward,                                                                 \
        .backward = resize_backward,                                                               \
        .forgets_scratch = true,                                                                   \
        .quant = QAT_QUANT(op),                                                                    \
    };
RESIZE(resize_nearest, "pictures of another size: the nearest pixel")
RESIZE(resize_bilinear, "pictures of another size: between the four nearest pixels")
