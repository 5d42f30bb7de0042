#include "autograd/window.h"

#include <string.h>

static bool has_attr(const qat_node *node, const char *name)
{
    for (const qat_attr_def *def = node->op->attrs; def && def->name; def++)
        if (strcmp(def->name, name) == 0)
            return true;
    return false;
}

/* The attribute, or the fallback if it is 0 or the op does not have it. */
static int attr_or(const qat_node *node, const char *name, int fallback)
{
    int const value = has_attr(node, name) ? (int)qat_attr(node, name) : 0;
    return value ? value : fallback;
}

/* Output size and leading padding of one direction. Returns false if the window does not fit. */
static bool place(int in, int kernel, int stride, int dilation, bool same, int *out, int *pad)
{
    int const reach = (kernel - 1) * dilation + 1;
    *pad = 0;
    if (!same) {
        *out = in < reach ? 0 : (in - reach) / stride + 1;
        return *out > 0;
    }
    *out = in / stride + (in % stride != 0);
    int64_t const total = (int64_t)(*out - 1) * stride + reach - in;
    *pad = total > 0 ? (int)(total / 2) : 0;
    return true;
}

qat_status qat_window_of(qat_window *w, const qat_node *node, qat_error *err)
{
    char text[64];
    const qat_shape *in = &node->inputs[0]->shape;
    if (in->rank != 4)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s is not [N, H, W, C]",
                        qat_shape_text(in, text));
    w->in_h = in->dims[1];
    w->in_w = in->dims[2];
    w->kernel_h = (int)qat_attr(node, "kernel");
    w->kernel_w = attr_or(node, "kernel_w", w->kernel_h);
    w->stride_h = attr_or(node, "stride", w->kernel_h);
    w->stride_w = attr_or(node, "stride_w", attr_or(node, "stride", w->kernel_w));
    w->dilation_h = attr_or(node, "dilation", 1);
    w->dilation_w = attr_or(node, "dilation_w", w->dilation_h);
    bool const same = qat_attr(node, "padding") == 0;
    bool const high =
        place(w->in_h, w->kernel_h, w->stride_h, w->dilation_h, same, &w->out_h, &w->pad_top);
    bool const wide =
        place(w->in_w, w->kernel_w, w->stride_w, w->dilation_w, same, &w->out_w, &w->pad_left);
    if (!high || !wide)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "kernel %dx%d (dilation %dx%d) does not fit into input %s without padding",
                        w->kernel_h, w->kernel_w, w->dilation_h, w->dilation_w,
                        qat_shape_text(in, text));
    return QAT_OK;
}
