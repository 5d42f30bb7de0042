#include "autograd/loops/window.h"

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

/* Output size and leading padding of one direction. pads: those before and after; NULL: SAME.
 * Returns false if the window does not fit. */
static bool place(int in, int kernel, int stride, int dilation, const int pads[2], int *out,
                  int *pad)
{
    int const reach = (kernel - 1) * dilation + 1;
    if (pads) {
        int64_t const room = (int64_t)in + pads[0] + pads[1] - reach;
        *pad = pads[0];
        *out = room < 0 ? 0 : (int)(room / stride) + 1;
        return *out > 0;
    }
    *out = in / stride + (in % stride != 0);
    int64_t const total = (int64_t)(*out - 1) * stride + reach - in;
    *pad = total > 0 ? (int)(total / 2) : 0;
    return true;
}

/* A window that lies in the padding alone would see nothing. */
static qat_status check_pads(const qat_window *w, const qat_padding *p, qat_error *err)
{
    int const reach_h = (w->kernel_h - 1) * w->dilation_h + 1;
    int const reach_w = (w->kernel_w - 1) * w->dilation_w + 1;
    if (p->top < reach_h && p->bottom < reach_h && p->left < reach_w && p->right < reach_w)
        return QAT_OK;
    return qat_fail(
        err, QAT_ERR_ARGUMENT,
        "attribute 'padding': %d,%d,%d,%d (top, bottom, left, right): each must be less "
        "than the window, which is %d high and %d wide",
        p->top, p->bottom, p->left, p->right, reach_h, reach_w);
}

/* The attributes of a window, and its padding. */
static qat_status read_window(qat_window *w, const qat_node *node, qat_padding *p, qat_error *err)
{
    char text[64];
    const qat_shape *in = &node->inputs[0]->shape;
    if (in->rank != 4)
        return qat_fail(err, QAT_ERR_SHAPE, "input %s is not [N, H, W, C]",
                        qat_shape_text(in, text));
    w->kernel_h = (int)qat_attr(node, "kernel");
    w->kernel_w = attr_or(node, "kernel_w", w->kernel_h);
    w->stride_h = attr_or(node, "stride", w->kernel_h);
    w->stride_w = attr_or(node, "stride_w", attr_or(node, "stride", w->kernel_w));
    w->dilation_h = attr_or(node, "dilation", 1);
    w->dilation_w = attr_or(node, "dilation_w", w->dilation_h);
    *p = qat_attr_padding(node, "padding");
    w->explicit_pads = p->kind == QAT_PADDING_EXPLICIT;
    return check_pads(w, p, err);
}

qat_status qat_window_of(qat_window *w, const qat_node *node, qat_error *err)
{
    char text[64];
    qat_padding p;
    const qat_shape *in = &node->inputs[0]->shape;
    qat_status const st = read_window(w, node, &p, err);
    if (st)
        return st;
    bool const same = p.kind == QAT_PADDING_SAME;
    int const rows[] = {p.top, p.bottom}, columns[] = {p.left, p.right};
    w->in_h = in->dims[1];
    w->in_w = in->dims[2];
    bool const high = place(w->in_h, w->kernel_h, w->stride_h, w->dilation_h, same ? NULL : rows,
                            &w->out_h, &w->pad_top);
    bool const wide = place(w->in_w, w->kernel_w, w->stride_w, w->dilation_w, same ? NULL : columns,
                            &w->out_w, &w->pad_left);
    if (!high || !wide)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "kernel %dx%d (dilation %dx%d) does not fit into input %s %s padding",
                        w->kernel_h, w->kernel_w, w->dilation_h, w->dilation_w,
                        qat_shape_text(in, text), w->explicit_pads ? "with this" : "without");
    return QAT_OK;
}

/* The output of one direction of a transposed convolution, and its padding. 0: there is none. */
static int64_t transposed_size(int in, int kernel, int stride, qat_padding_kind kind,
                               const int pads[2], int extra, int *pad)
{
    int64_t const apart = (int64_t)in * stride; /* of the windows, without what they overlap */
    int64_t const overlap = kernel > stride ? kernel - stride : 0;
    *pad = kind == QAT_PADDING_SAME ? (int)(overlap / 2) : pads[0];
    if (kind == QAT_PADDING_EXPLICIT)
        return apart - stride + kernel - pads[0] - pads[1] + extra;
    return kind == QAT_PADDING_SAME ? apart : apart + overlap;
}

qat_status qat_transposed_window_of(qat_window *w, const qat_node *node, qat_error *err)
{
    char text[64];
    qat_padding p;
    const qat_shape *in = &node->inputs[0]->shape;
    qat_status const st = read_window(w, node, &p, err);
    if (st)
        return st;
    int const rows[] = {p.top, p.bottom}, columns[] = {p.left, p.right};
    int const extra_h = (int)qat_attr(node, "extra"), extra_w = (int)qat_attr(node, "extra_w");
    if ((extra_h || extra_w) && !w->explicit_pads)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "attributes 'extra' and 'extra_w' go with padding in pixels only");
    if (extra_h >= w->stride_h || extra_w >= w->stride_w)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "attributes 'extra' and 'extra_w': %d and %d must be "
                        "less than the strides %d and %d",
                        extra_h, extra_w, w->stride_h, w->stride_w);
    int64_t const high =
        transposed_size(in->dims[1], w->kernel_h, w->stride_h, p.kind, rows, extra_h, &w->pad_top);
    int64_t const wide = transposed_size(in->dims[2], w->kernel_w, w->stride_w, p.kind, columns,
                                         extra_w, &w->pad_left);
    if (high < 1 || wide < 1 || high > INT32_MAX || wide > INT32_MAX)
        return qat_fail(err, QAT_ERR_SHAPE, "the output for input %s would be %lld x %lld",
                        qat_shape_text(in, text), (long long)high, (long long)wide);
    w->in_h = (int)high;
    w->in_w = (int)wide;
    w->out_h = in->dims[1];
    w->out_w = in->dims[2];
    return QAT_OK;
}
