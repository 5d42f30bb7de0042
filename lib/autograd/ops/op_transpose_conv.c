/**
 * transpose_conv2d: y[n, i s + k - pad, j s + l - pad, o] += x[n,i,j,c] w[o,k,l,c]
 *
 * It is the data gradient of a convolution v that goes from y to x, and conv.h computes all three:
 *
 *     y     data gradient of v for x              dx    v of dy
 *     dw    weight gradient of v, of dy and x
 *
 * The filters of v are this op's input channels. So v has the weights [c,k,l,o], which are made of
 * w in each pass.
 */
#include "autograd/conv/conv.h"
#include "autograd/graph/shared.h"
#include "autograd/loops/padding.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/ops/op.h"

#include <assert.h>
#include <string.h>

/** v, and what its node needs in one pass. The arrays lie behind the scratch of v. */
struct transposed {
    qat_conv v;
    qat_window window;
    size_t taps;
    qat_real *weights, *weight_gradient; /* [c,k,l,o] */
    qat_real *dx;
    size_t bytes;
};

static qat_status transposed_of(struct transposed *t, const qat_node *node, void *scratch,
                                qat_error *err)
{
    const qat_shape *in = &node->inputs[0]->shape;
    int const filters = (int)qat_attr(node, "filters");
    qat_status st = qat_transposed_window_of(&t->window, node, err);
    if (!st)
        st = qat_conv_make(&t->v, &t->window, in->dims[0], qat_shards_of(node), filters,
                           in->dims[3], 1, err);
    if (st)
        return st;
    t->taps = (size_t)t->window.kernel_h * (size_t)t->window.kernel_w;
    size_t const weights = t->taps * (size_t)filters * (size_t)in->dims[3];
    qat_carve carve = {scratch, qat_conv_scratch_bytes(&t->v)};
    t->weights = qat_carve_take(&carve, weights, sizeof(qat_real));
    t->weight_gradient = qat_carve_take(&carve, weights, sizeof(qat_real));
    t->dx = qat_carve_take(&carve, qat_shape_count(in), sizeof(qat_real));
    t->bytes = carve.used;
    return QAT_OK;
}

/** The one that `shape` accepted. */
static struct transposed accepted(const qat_node *node)
{
    struct transposed t;
    qat_status const st = transposed_of(&t, node, node->scratch, NULL);
    assert(st == QAT_OK);
    (void)st;
    return t;
}

/* ------------------------------------------------------------------ weights */

/** w: the node's weights or their gradient, [O,KH,KW,C]. */
struct turn {
    const struct transposed *t;
    qat_real *w;
    bool back;
};

/** One filter, there or back. */
static void turn_filter(void *context, int o, int thread)
{
    const struct turn *turn = context;
    const struct transposed *t = turn->t;
    size_t const channels = (size_t)t->v.filters, filters = (size_t)t->v.channels;
    qat_real *w = turn->w + (size_t)o * t->taps * channels;
    for (size_t k = 0; k < t->taps; k++, w += channels)
        for (size_t c = 0; c < channels; c++) {
            size_t const at = (c * t->taps + k) * filters + (size_t)o;
            if (turn->back)
                w[c] += t->weight_gradient[at];
            else
                t->weights[at] = w[c];
        }
}

static void turn_weights(const struct transposed *t, const qat_node *w)
{
    struct turn turn = {t, w->value, false};
    qat_parallel(t->v.channels, turn_filter, &turn);
}

static void add_weight_gradient(const struct transposed *t, const qat_node *w)
{
    struct turn turn = {t, w->grad, true};
    qat_parallel(t->v.channels, turn_filter, &turn);
}

/* ------------------------------------------------------------------ op */

static int transposed_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    struct transposed t;
    if (transposed_of(&t, node, NULL, err))
        return -1;
    const qat_window *w = &t.window;
    /* an output pixel lies under one tap of stride_h stride_w */
    size_t const seen = t.taps * (size_t)t.v.filters / (size_t)(w->stride_h * w->stride_w);
    defs[0] =
        (qat_param_def){.name = "weights",
                        .shape = QAT_SHAPE(t.v.channels, w->kernel_h, w->kernel_w, t.v.filters),
                        .init = QAT_INIT_HE,
                        .fan_in = qat_fan((int64_t)seen),
                        .fan_out = t.v.depth,
                        .trainable = true,
                        .decay = true};
    return 1;
}

static qat_status transposed_shape(qat_node *node, qat_error *err)
{
    struct transposed t;
    qat_status const st = transposed_of(&t, node, NULL, err);
    if (st)
        return st;
    node->shape = QAT_SHAPE(node->inputs[0]->shape.dims[0], t.window.in_h, t.window.in_w,
                            (int)qat_attr(node, "filters"));
    node->scratch_bytes = t.bytes;
    return QAT_OK;
}

static void transposed_forward(qat_node *node, const qat_run *run)
{
    struct transposed const t = accepted(node);
    turn_weights(&t, node->inputs[1]);
    qat_conv_backward(&t.v, NULL, t.weights, node->inputs[0]->value, node->value, false, NULL,
                      node->scratch);
}

static void transposed_backward(qat_node *node, const qat_run *run)
{
    struct transposed const t = accepted(node);
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    if (w->grad) {
        memset(t.weight_gradient, 0, qat_shape_count(&w->shape) * sizeof *t.weight_gradient);
        qat_conv_backward(&t.v, node->grad, NULL, x->value, NULL, false, t.weight_gradient,
                          node->scratch);
        add_weight_gradient(&t, w);
    }
    if (x->grad) {
        turn_weights(&t, w);
        qat_conv_forward(&t.v, node->grad, t.weights, t.dx, node->scratch);
        qat_accumulate(x->grad, t.dx, qat_shape_count(&x->shape));
    }
}

static const qat_attr_def transposed_attrs[] = {
    {"filters", QAT_ATTR_INT, 0, 1, 65536, NULL, "number of output channels; must be given"},
    {"kernel", QAT_ATTR_INT, 3, 1, QAT_WINDOW_MAX, NULL, "window height"},
    {"kernel_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "window width; 0: same as kernel"},
    {"stride", QAT_ATTR_INT, 2, 1, QAT_WINDOW_MAX, NULL,
     "rows of the output between neighbouring windows"},
    {"stride_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL,
     "columns between neighbouring windows; 0: same as stride"},
    {"padding", QAT_ATTR_PADDING, 0, 0, 0, NULL,
     "what is cut off the output. same: it is input x stride; valid: nothing; or pixels: "
     "N | rows,columns | top,bottom,left,right, PyTorch's padding"},
    {"extra", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL,
     "rows more at the bottom, with padding in pixels: PyTorch's output_padding"},
    {"extra_w", QAT_ATTR_INT, 0, 0, QAT_WINDOW_MAX, NULL, "columns more at the right"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_transpose_conv2d = {
    .name = "transpose_conv2d",
    .meaning = "transposed convolution without bias: each input pixel adds a window to the output",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = transposed_attrs,
    .params = transposed_params,
    .shape = transposed_shape,
    .forward = transposed_forward,
    .backward = transposed_backward,
    .forgets_scratch = true,
    .quant = QAT_QUANT(transpose_conv2d),
};
