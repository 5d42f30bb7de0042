/** conv2d: y[n,i,j,o] = sum_{k,l,c} x[n, i s + k d - pad, j s + l d - pad, c] w[o,k,l,c] */
#include "autograd/conv/conv.h"
#include "autograd/loops/padding.h"
#include "autograd/ops/op.h"

#include <assert.h>

static int conv_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    qat_conv c;
    if (qat_conv_of(&c, node, err))
        return -1;
    defs[0] = (qat_param_def){
        .name = "weights",
        .shape = QAT_SHAPE(c.filters, c.window.kernel_h, c.window.kernel_w, c.channels / c.groups),
        .init = QAT_INIT_HE,
        .fan_in = c.depth,
        .fan_out = qat_fan((int64_t)c.window.kernel_h * c.window.kernel_w * (c.filters / c.groups)),
        .trainable = true,
        .decay = true};
    return 1;
}

static qat_status conv_shape(qat_node *node, qat_error *err)
{
    qat_conv c;
    qat_status st = qat_conv_of(&c, node, err);
    if (st)
        return st;
    qat_window w;
    if ((st = qat_window_of(&w, node, err)))
        return st;
    node->shape = QAT_SHAPE(node->inputs[0]->shape.dims[0], w.out_h, w.out_w, c.filters);
    node->scratch_bytes = qat_conv_scratch_bytes(&c);
    return QAT_OK;
}

/* The convolution that `shape` accepted. */
static qat_conv accepted(const qat_node *node)
{
    qat_conv c;
    qat_status const st = qat_conv_of(&c, node, NULL);
    assert(st == QAT_OK);
    (void)st;
    return c;
}

static void conv_forward(qat_node *node, const qat_run *run)
{
    qat_conv const c = accepted(node);
    qat_conv_forward(&c, node->inputs[0]->value, node->inputs[1]->value, node->value,
                     node->scratch);
}

static void conv_backward(qat_node *node, const qat_run *run)
{
    qat_conv const c = accepted(node);
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    qat_conv_backward(&c, x->value, w->value, node->grad, x->grad, !qat_grad_is_new(node, 0),
                      w->grad, node->scratch);
}

static const qat_attr_def conv_attrs[] = {
    {"filters", QAT_ATTR_INT, 0, 1, 65536, NULL, "number of output channels; must be given"},
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
    {"groups", QAT_ATTR_INT, 1, 1, 65536, NULL,
     "number of groups of channels that are convolved separately"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_conv2d = {
    .name = "conv2d",
    .meaning = "two-dimensional convolution without bias",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = conv_attrs,
    .params = conv_params,
    .shape = conv_shape,
    .forward = conv_forward,
    .backward = conv_backward,
    .grads = QAT_GRADS_WRITE,
    .forgets_scratch = true,
    .quant = QAT_QUANT(conv2d),
};
