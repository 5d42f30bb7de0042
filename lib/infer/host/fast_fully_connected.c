/** fully_connected as a matrix product of x [rows, I] and w [O, I]; see gemm.h. */
#include "infer/host/fast.h"
#include "infer/host/gemm.h"

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    if (!isa->gemm || qi_input(model, node, 0)->kind != QI_ACTIVATION)
        return 0;
    qi_gemm_layer const layer = qi_gemm_layer_of(model, node, QI_FULLY_CONNECTED_CLAMP_LO);
    return !isa->gemm->accepts || isa->gemm->accepts(&layer);
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

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_layer const layer = qi_gemm_layer_of(model, node, QI_FULLY_CONNECTED_CLAMP_LO);
    return qi_gemm_scratch(isa->gemm, &layer);
}

static qi_gemm_split split_of(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = qi_input(model, node, 1);
    int32_t const rows = (int32_t)(qi_count(qi_input(model, node, 0)) / w->dims[1]);
    return qi_gemm_split_of(isa->gemm, rows, w->dims[1], w->dims[0]);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_split const split = split_of(isa, model, node);
    return split.blocks * split.groups;
}

static void run(const qi_fast_call *call, int32_t tile)
{
    qi_gemm_split const split = split_of(call->isa, call->model, call->node);
    qi_gemm_piece const piece = qi_gemm_piece_at(&split, tile);
    const qi_tensor *w = qi_input(call->model, call->node, 1);
    size_t const row = (size_t)piece.row, depth = (size_t)w->dims[1];
    qi_gemm_run const product = {.packed = call->packed,
                                 .x = (const uint8_t *)call->in[0] + row * depth,
                                 .x_stride = depth,
                                 .rows = piece.rows,
                                 .first_channel = piece.first_channel,
                                 .end_channel = piece.end_channel,
                                 .y = (uint8_t *)call->out + row * (size_t)split.channels,
                                 .y_stride = (size_t)split.channels,
                                 .scratch = call->scratch};
    call->isa->gemm->run(&product);
}

const qi_fast qi_fast_fully_connected = {.kernel = &qi_kernel_fully_connected,
                                         .accepts = accepts,
                                         .packed_bytes = packed_bytes,
                                         .pack = pack,
                                         .scratch = scratch,
                                         .tiles = tiles,
                                         .run = run};
