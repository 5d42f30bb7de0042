/**
 * resize_bilinear of uint8 with rounding NONE on a host: the core's blend, which has the roundings
 * of float32. Where these are exact, fast_resize.c is faster. A tile is one row of outputs.
 *
 *   packed   | where each output row lies | where each output column lies |
 */
#include "infer/host/loops/fast.h"
#include "infer/kernels/resize.h"
#include "infer/model/op.h"

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->elementwise && node->rounding == QI_ROUND_NONE &&
           qi_input(model, node, 0)->type == QI_U8;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    return (size_t)(y->dims[1] + y->dims[2]) * sizeof(qi_place);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    qi_place *to = packed;
    for (int d = 1; d < 3; d++) {
        qi_axis const axis = qi_resize_axis_of(model, node, d);
        for (int32_t i = 0; i < axis.out; i++)
            *to++ = qi_float_place(&axis, i);
    }
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    return y->dims[0] * y->dims[1];
}

static void run(const qi_fast_call *call, int32_t index)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const qi_place *rows = call->packed, *columns = rows + y->dims[1];
    const qi_place *row = &rows[index % y->dims[1]];
    size_t const channels = (size_t)x->dims[3], in = (size_t)x->dims[2] * channels;
    const uint8_t *picture =
        (const uint8_t *)call->in[0] + (size_t)(index / y->dims[1]) * (size_t)x->dims[1] * in;
    uint8_t *to = (uint8_t *)call->out + (size_t)index * (size_t)y->dims[2] * channels;
    for (int32_t i = 0; i < y->dims[2]; i++, to += channels)
        qk_blend_pixel(picture + (size_t)row->lower * in, picture + (size_t)row->upper * in, row,
                       &columns[i], channels, QI_U8, qk_blend_float, to);
}

const qi_fast qi_fast_resize_float = {.kernel = &qi_kernel_resize_bilinear,
                                      .accepts = accepts,
                                      .packed_bytes = packed_bytes,
                                      .pack = pack,
                                      .tiles = tiles,
                                      .run = run};
