/** concat: joins the inputs one after the other along an axis other than the batch. */
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/ops/op.h"

#include <string.h>

static int axis_of(const qat_node *node)
{
    int const axis = (int)qat_attr(node, "axis");
    return axis < 0 ? node->inputs[0]->shape.rank - 1 : axis;
}

static qat_status refuse(const qat_node *node, int i, qat_error *err)
{
    char text[2][64];
    return qat_fail(err, QAT_ERR_SHAPE, "%s (input %d) does not fit %s along axis %d",
                    qat_shape_text(&node->inputs[i]->shape, text[0]), i,
                    qat_shape_text(&node->inputs[0]->shape, text[1]), axis_of(node));
}

static qat_status concat_shape(qat_node *node, qat_error *err)
{
    int const axis = axis_of(node);
    qat_shape shape = node->inputs[0]->shape;
    if (axis < 1 || axis >= shape.rank) {
        char text[64];
        return qat_fail(err, QAT_ERR_SHAPE, "axis %d of %s: it must be 1..rank-1", axis,
                        qat_shape_text(&shape, text));
    }
    int64_t length = shape.dims[axis];
    for (int i = 1; i < node->n_data; i++) {
        qat_shape in = node->inputs[i]->shape;
        length += in.rank == shape.rank ? in.dims[axis] : 0;
        in.dims[axis] = shape.dims[axis];
        if (length > INT32_MAX || !qat_shape_equal(&in, &shape))
            return refuse(node, i, err);
    }
    shape.dims[axis] = (int)length;
    node->shape = shape;
    return QAT_OK;
}

/* How many values of one image lie together in a shape, from the axis on. */
static size_t run_of(const qat_shape *shape, int axis)
{
    size_t run = 1;
    for (int i = axis; i < shape->rank; i++)
        run *= (size_t)shape->dims[i];
    return run;
}

/* How many runs one image has. In a run every input has one piece: y | a | b | c |. */
static size_t outer_of(const qat_node *node, int axis)
{
    size_t outer = 1;
    for (int i = 1; i < axis; i++)
        outer *= (size_t)node->shape.dims[i];
    return outer;
}

/* Visit the pieces of one image, all of one input before the next. */
static void each_piece(const qat_node *node, int image, bool backward)
{
    int const axis = axis_of(node);
    size_t const run = run_of(&node->shape, axis), outer = outer_of(node, axis);
    size_t at = (size_t)image * outer * run;
    for (int i = 0; i < node->n_data; i++) {
        const qat_node *in = node->inputs[i];
        size_t const piece = run_of(&in->shape, axis), from = (size_t)image * outer * piece;
        for (size_t o = 0; o < outer; o++)
            if (!backward)
                memcpy(node->value + at + o * run, in->value + from + o * piece,
                       piece * sizeof(qat_real));
            else if (in->grad)
                qat_vector_add(in->grad + from + o * piece, node->grad + at + o * run, piece);
        at += piece;
    }
}

static void forward_image(void *context, int image, int thread)
{
    each_piece(context, image, false);
}

static void backward_image(void *context, int image, int thread)
{
    each_piece(context, image, true);
}

static void concat_forward(qat_node *node, const qat_run *run)
{
    qat_parallel(node->shape.dims[0], forward_image, node);
}

static void concat_backward(qat_node *node, const qat_run *run)
{
    qat_parallel(node->shape.dims[0], backward_image, node);
}

static const qat_attr_def concat_attrs[] = {
    {"axis", QAT_ATTR_INT, -1, -1, QAT_MAX_RANK - 1, NULL,
     "dimension along which to join; -1: the last"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_concat = {
    .name = "concat",
    .meaning = "joins tensors along one dimension",
    .min_inputs = 1,
    .max_inputs = -1,
    .attrs = concat_attrs,
    .shape = concat_shape,
    .forward = concat_forward,
    .backward = concat_backward,
    .quant = QAT_QUANT(concat),
};
