/** strided_slice, transpose, pad: values move to other positions, or stay out. */
#include "autograd/loops/tiles.h"
#include "autograd/ops/op.h"

#include <string.h>

/** A walk over one image of [d1, d2, d3]: of the smaller tensor, and where its values lie in the
 *  larger one. */
struct walk {
    size_t dims[3];
    size_t first;
    size_t step[3];
    size_t image, other_image; /* values of one image */
};

/** to: the tensor that is walked, or the other one. */
static void walk_image(const struct walk *w, int image, const qat_real *from, qat_real *to,
                       bool walked_is_to, bool add)
{
    size_t at = (size_t)image * w->image;
    for (size_t i = 0; i < w->dims[0]; i++)
        for (size_t j = 0; j < w->dims[1]; j++)
            for (size_t k = 0; k < w->dims[2]; k++, at++) {
                size_t const other = (size_t)image * w->other_image + w->first + i * w->step[0] +
                                     j * w->step[1] + k * w->step[2];
                qat_real const x = from[walked_is_to ? other : at];
                qat_real *y = &to[walked_is_to ? at : other];
                *y = add ? *y + x : x;
            }
}

static void steps_of(const qat_shape *shape, size_t steps[3])
{
    size_t next = 1;
    for (int i = 3; i > 0; i--) {
        steps[i - 1] = next;
        next *= i < shape->rank ? (size_t)shape->dims[i] : 1;
    }
}

static size_t dim_of(const qat_shape *shape, int i)
{
    return i < shape->rank ? (size_t)shape->dims[i] : 1;
}

static size_t image_of(const qat_shape *shape)
{
    return qat_shape_count(shape) / (size_t)shape->dims[0];
}

/** A walk over the shape `walked`. */
static struct walk walk_of(const qat_shape *walked, const qat_shape *other)
{
    struct walk w = {.image = image_of(walked), .other_image = image_of(other)};
    for (int i = 0; i < 3; i++)
        w.dims[i] = dim_of(walked, i + 1);
    steps_of(other, w.step);
    return w;
}

struct job {
    struct walk walk;
    const qat_real *from;
    qat_real *to;
    bool walked_is_to, add;
};

static void image_tile(void *context, int image, int thread)
{
    const struct job *j = context;
    walk_image(&j->walk, image, j->from, j->to, j->walked_is_to, j->add);
}

static void run(const qat_node *node, struct job job)
{
    qat_parallel(node->shape.dims[0], image_tile, &job);
}

/* ------------------------------------------------------------------ strided_slice */

static qat_status slice_shape(qat_node *node, qat_error *err)
{
    const qat_shape *in = &node->inputs[0]->shape;
    int const axis = (int)qat_attr(node, "axis");
    double const count = qat_attr(node, "count"), begin = qat_attr(node, "begin");
    char text[64];
    if (axis >= in->rank)
        return qat_fail(err, QAT_ERR_SHAPE, "axis %d of %s", axis, qat_shape_text(in, text));
    if (begin + (count - 1) * qat_attr(node, "step") >= in->dims[axis])
        return qat_fail(err, QAT_ERR_SHAPE, "positions %d .. of axis %d of %s reach beyond its end",
                        (int)begin, axis, qat_shape_text(in, text));
    node->shape = *in;
    node->shape.dims[axis] = (int)count;
    return QAT_OK;
}

static struct walk slice_walk(const qat_node *node)
{
    struct walk w = walk_of(&node->shape, &node->inputs[0]->shape);
    int const i = (int)qat_attr(node, "axis") - 1;
    w.first = (size_t)qat_attr(node, "begin") * w.step[i];
    w.step[i] *= (size_t)qat_attr(node, "step");
    return w;
}

static void slice_forward(qat_node *node, const qat_run *unused)
{
    run(node, (struct job){slice_walk(node), node->inputs[0]->value, node->value, true, false});
}

static void slice_backward(qat_node *node, const qat_run *unused)
{
    if (node->inputs[0]->grad)
        run(node, (struct job){slice_walk(node), node->grad, node->inputs[0]->grad, false, true});
}

static const qat_attr_def slice_attrs[] = {
    {"axis", QAT_ATTR_INT, QAT_MAX_RANK - 1, 1, QAT_MAX_RANK - 1, NULL, "dimension"},
    {"begin", QAT_ATTR_INT, 0, 0, INT32_MAX, NULL, "first position"},
    {"count", QAT_ATTR_INT, 0, 1, INT32_MAX, NULL, "number of positions; must be given"},
    {"step", QAT_ATTR_INT, 1, 1, INT32_MAX, NULL, "distance between positions"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_strided_slice = {
    .name = "strided_slice",
    .meaning = "evenly spaced positions of one dimension",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = slice_attrs,
    .shape = slice_shape,
    .forward = slice_forward,
    .backward = slice_backward,
    .quant = QAT_QUANT(strided_slice),
};

/* ------------------------------------------------------------------ transpose */

/** perm[i]: the input's dimension that becomes dimension i, from 0; the batch stays. */
static void perm_of(const qat_node *node, int perm[3])
{
    perm[0] = (int)qat_attr(node, "d1");
    perm[1] = (int)qat_attr(node, "d2");
    perm[2] = (int)qat_attr(node, "d3");
}

static qat_status transpose_shape(qat_node *node, qat_error *err)
{
    const qat_shape *in = &node->inputs[0]->shape;
    int perm[3], seen = 0;
    char text[64];
    perm_of(node, perm);
    if (in->rank != QAT_MAX_RANK)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s is not [N, d1, d2, d3]",
                        qat_shape_text(in, text));
    for (int i = 0; i < 3; i++)
        seen |= 1 << perm[i];
    if (seen != 14)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "d1 = %d, d2 = %d, d3 = %d: each of 1, 2, 3 must be there", perm[0],
                        perm[1], perm[2]);
    node->shape = *in;
    for (int i = 0; i < 3; i++)
        node->shape.dims[i + 1] = in->dims[perm[i]];
    return QAT_OK;
}

static struct walk transpose_walk(const qat_node *node)
{
    struct walk w = walk_of(&node->shape, &node->inputs[0]->shape);
    size_t const step[3] = {w.step[0], w.step[1], w.step[2]};
    int perm[3];
    perm_of(node, perm);
    for (int i = 0; i < 3; i++)
        w.step[i] = step[perm[i] - 1];
    return w;
}

static void transpose_forward(qat_node *node, const qat_run *unused)
{
    run(node, (struct job){transpose_walk(node), node->inputs[0]->value, node->value, true, false});
}

static void transpose_backward(qat_node *node, const qat_run *unused)
{
    if (node->inputs[0]->grad)
        run(node,
            (struct job){transpose_walk(node), node->grad, node->inputs[0]->grad, false, true});
}

static const qat_attr_def transpose_attrs[] = {
    {"d1", QAT_ATTR_INT, 1, 1, 3, NULL, "dimension of the input that becomes the first"},
    {"d2", QAT_ATTR_INT, 2, 1, 3, NULL, "that becomes the second"},
    {"d3", QAT_ATTR_INT, 3, 1, 3, NULL, "that becomes the third"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_transpose = {
    .name = "transpose",
    .meaning = "the dimensions behind the batch in another order",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = transpose_attrs,
    .shape = transpose_shape,
    .forward = transpose_forward,
    .backward = transpose_backward,
    .quant = QAT_QUANT(transpose),
};

/* ------------------------------------------------------------------ pad */

static const char *const sides[] = {"top", "left", "front", "bottom", "right", "back"};

static qat_status pad_shape(qat_node *node, qat_error *err)
{
    const qat_shape *in = &node->inputs[0]->shape;
    char text[64];
    if (in->rank != QAT_MAX_RANK)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s is not [N, H, W, C]",
                        qat_shape_text(in, text));
    node->shape = *in;
    for (int i = 0; i < 3; i++) {
        double const size =
            in->dims[i + 1] + qat_attr(node, sides[i]) + qat_attr(node, sides[i + 3]);
        if (size > INT32_MAX)
            return qat_fail(err, QAT_ERR_SHAPE, "a dimension of %.0f", size);
        node->shape.dims[i + 1] = (int)size;
    }
    return QAT_OK;
}

static struct walk pad_walk(const qat_node *node)
{
    struct walk w = walk_of(&node->inputs[0]->shape, &node->shape);
    for (int i = 0; i < 3; i++)
        w.first += (size_t)qat_attr(node, sides[i]) * w.step[i];
    return w;
}

static void pad_forward(qat_node *node, const qat_run *unused)
{
    memset(node->value, 0, qat_shape_count(&node->shape) * sizeof *node->value);
    run(node, (struct job){pad_walk(node), node->inputs[0]->value, node->value, false, false});
}

static void pad_backward(qat_node *node, const qat_run *unused)
{
    if (node->inputs[0]->grad)
        run(node, (struct job){pad_walk(node), node->grad, node->inputs[0]->grad, true, true});
}

#define SIDE(name, meaning)                                                                        \
    {                                                                                              \
        name, QAT_ATTR_INT, 0, 0, 65536, NULL, meaning                                             \
    }

static const qat_attr_def pad_attrs[] = {
    SIDE("top", "rows before the image"),      SIDE("bottom", "rows behind it"),
    SIDE("left", "columns before the image"),  SIDE("right", "columns behind it"),
    SIDE("front", "channels before its own"),  SIDE("back", "channels behind them"),
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_pad = {
    .name = "pad",
    .meaning = "zeros around an image [N, H, W, C]",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = pad_attrs,
    .shape = pad_shape,
    .forward = pad_forward,
    .backward = pad_backward,
    .quant = QAT_QUANT(pad),
};
