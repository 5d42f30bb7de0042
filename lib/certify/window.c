/**
 * Windows from the float node's attributes, in both directions: [0] rows, [1] columns.
 *
 *     SAME       out = ceil(in / stride), reach = (kernel - 1) dilation + 1. The padding is
 *                (out - 1) stride + reach - in; half of it, rounded down, is before the picture
 *     VALID      no padding
 *     explicit   as given
 *
 * Those of transposed convolutions: SAME cuts off what windows overlap, kernel - stride if this is
 * more than 0; half of it, rounded down, at the beginning. VALID cuts nothing off.
 */
#include "certify/certify.h"

#include <string.h>

static bool has(const qat_node *node, const char *name)
{
    for (const qat_attr_def *a = node->op->attrs; a && a->name; a++)
        if (strcmp(a->name, name) == 0)
            return true;
    return false;
}

/** The first of two attributes that is given and not 0; else the fallback. */
static int either(const qat_node *node, const char *first, const char *second, int fallback)
{
    if (has(node, first) && qat_attr(node, first) != 0)
        return (int)qat_attr(node, first);
    if (has(node, second) && qat_attr(node, second) != 0)
        return (int)qat_attr(node, second);
    return fallback;
}

void cert_window_of(const qat_node *node, cert_window *w)
{
    qat_padding const given = qat_attr_padding(node, "padding");
    bool const same = given.kind == QAT_PADDING_SAME;
    int const explicit_pads[] = {given.top, given.left};
    w->kernel[0] = (int)qat_attr(node, "kernel");
    w->kernel[1] = either(node, "kernel_w", "kernel", 1);
    w->stride[0] = either(node, "stride", "stride", w->kernel[0]);
    w->stride[1] = either(node, "stride_w", "stride", w->kernel[1]);
    w->dilation[0] = either(node, "dilation", "dilation", 1);
    w->dilation[1] = either(node, "dilation_w", "dilation", 1);
    for (int i = 0; i < 2; i++) {
        int const in = node->inputs[0]->shape.dims[1 + i];
        int const out = (in + w->stride[i] - 1) / w->stride[i];
        int const missing = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - in;
        w->pad[i] = !same ? explicit_pads[i] : missing > 0 ? missing / 2 : 0;
    }
}

void cert_transposed_window_of(const qat_node *node, cert_window *w)
{
    qat_padding const given = qat_attr_padding(node, "padding");
    int const explicit_pads[] = {given.top, given.left};
    cert_window_of(node, w);
    for (int i = 0; i < 2; i++) {
        int const overlap = w->kernel[i] > w->stride[i] ? w->kernel[i] - w->stride[i] : 0;
        w->pad[i] = given.kind == QAT_PADDING_SAME ? overlap / 2 : explicit_pads[i];
    }
}
