/** fully_connected as a matrix product of x [rows, I] and w [O, I]; see gemm.h. */
#include "infer/host/loops/gemm.h"

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->gemm && qi_input(model, node, 0)->kind != QI_CONSTANT;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_layer const layer = qi_gemm_layer_of(model, node, QI_FULLY_CONNECTED_CLAMP_LO);
    return isa->gemm->packed_bytes(&layer);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    qi_gemm_layer const layer = qi_gemm_layer_of(model, node, QI_FULLY_CONNECTED_CLAMP_LO);
    isa->gemm->pack(&layer, packed);
}

static qi_gemm_split split_of(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = qi_input(model, node, 1);
    int32_t const rows = (int32_t)(qi_count(qi_input(model, node, 0)) / w->dims[1]);
    return qi_gemm_split_of(isa->gemm, rows, w->dims[1], w->dims[0]);
}

/** Bytes of scratch for the flipped codes of a piece; 0 if they are not flipped. */
static size_t flipped_bytes(const qi_isa *isa, const qi_gemm_layer *layer,
                            const qi_gemm_split *split)
{
    return qi_gemm_flip(isa->gemm, layer->x_codes) ? qi_gemm_copy_bytes(split, (size_t)layer->depth)
                                                   : 0;
}

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_layer const layer = qi_gemm_layer_of(model, node, QI_FULLY_CONNECTED_CLAMP_LO);
    qi_gemm_split const split = split_of(isa, model, node);
    return flipped_bytes(isa, &layer, &split) + qi_gemm_scratch(isa->gemm, &layer);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_split const split = split_of(isa, model, node);
    return split.blocks * split.groups;
}

static void run_tiles(const qi_fast_call *call, int32_t first, int32_t end)
{
    qi_gemm_layer const layer =
        qi_gemm_layer_of(call->model, call->node, QI_FULLY_CONNECTED_CLAMP_LO);
    qi_gemm_split const split = split_of(call->isa, call->model, call->node);
    uint8_t const flip = qi_gemm_flip(call->isa->gemm, layer.x_codes);
    size_t const depth = (size_t)layer.depth, copied = flipped_bytes(call->isa, &layer, &split);
    while (first < end) {
        qi_gemm_piece const piece = qi_gemm_pieces(&split, first, end);
        size_t const row = (size_t)piece.row;
        const uint8_t *x = (const uint8_t *)call->in[0] + row * depth;
        if (flip)
            qi_copy_codes(call->isa, call->scratch, x, (size_t)piece.rows * depth, flip);
        qi_gemm_run const product = {.packed = call->packed,
                                     .x = flip ? call->scratch : x,
                                     .x_stride = depth,
                                     .rows = piece.rows,
                                     .first_channel = piece.first_channel,
                                     .end_channel = piece.end_channel,
                                     .y = (uint8_t *)call->out + row * (size_t)split.channels,
                                     .y_stride = (size_t)split.channels,
                                     .scratch = (uint8_t *)call->scratch + copied};
        call->isa->gemm->run(&product);
        first = piece.next;
    }
}

static const void *product(const void *packed)
{
    return packed;
}

const qi_fast qi_fast_fully_connected = {.kernel = &qi_kernel_fully_connected,
                                         .accepts = accepts,
                                         .packed_bytes = packed_bytes,
                                         .pack = pack,
                                         .scratch = scratch,
                                         .tiles = tiles,
                                         .run_tiles = run_tiles,
                                         .product = product};
