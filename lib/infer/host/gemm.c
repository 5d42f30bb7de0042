/** Layers and pieces of matrix products, for every instruction set; see gemm.h. */
#include "infer/host/gemm.h"

#include "infer/host/fast.h"

qi_gemm_layer qi_gemm_layer_of(const qi_model *model, const qi_node *node, int32_t clamp)
{
    const void *in[QI_ACC_INPUTS];
    for (int32_t i = 0; i < QI_ACC_INPUTS; i++)
        in[i] = qi_input(model, node, i)->data;
    qi_call const call = {.model = model, .node = node, .in = in};
    const qi_tensor *w = qi_input(model, node, 1);
    return (qi_gemm_layer){.depth = (int32_t)(qi_count(w) / w->dims[0]),
                           .channels = w->dims[0],
                           .weights = w->data,
                           .x_codes = qi_codes_of(qi_input(model, node, 0)),
                           .w_codes = qi_codes_of(w),
                           .y_is_signed = qi_output(model, node)->type == QI_S8,
                           .max_accumulator = node->max_accumulator,
                           .requant = qi_requant_of(&call, clamp)};
}

static int32_t divide_up(int64_t a, int64_t b)
{
    return (int32_t)((a + b - 1) / b);
}

static int32_t at_most(int32_t x, int32_t limit)
{
    return x < limit ? x : limit;
}

/**
 * A block is a whole number of row tiles whose x stays in the second-level cache beside a panel of
 * weights. Blocks are smaller if that gives threads more to share. If there are too few rows,
 * groups of panels are shared.
 */
qi_gemm_split qi_gemm_split_of(const qi_gemm *gemm, int32_t rows, int32_t depth, int32_t channels)
{
    enum { BLOCK_BYTES = 1 << 15, ENOUGH = 16 };
    int32_t const row_tiles = divide_up(rows, gemm->row_tile);
    int32_t const panels = divide_up(channels, gemm->channel_tile);
    int32_t const by_size = at_most(divide_up((int64_t)rows * depth, BLOCK_BYTES), row_tiles);
    int32_t const by_share = at_most(ENOUGH, row_tiles / 2);
    int32_t const blocks = by_size > by_share ? by_size : by_share > 1 ? by_share : 1;
    int32_t const groups = at_most(divide_up(ENOUGH, blocks), panels);
    return (qi_gemm_split){.rows = rows,
                           .channels = channels,
                           .row_tiles = row_tiles,
                           .panels = panels,
                           .channel_tile = gemm->channel_tile,
                           .blocks = blocks,
                           .groups = groups};
}

qi_gemm_piece qi_gemm_piece_at(const qi_gemm_split *s, int32_t tile)
{
    int64_t const block = tile / s->groups, group = tile % s->groups;
    int64_t const first_tile = s->row_tiles * block / s->blocks;
    int64_t const end_tile = s->row_tiles * (block + 1) / s->blocks;
    int32_t const row = (int32_t)(s->rows * first_tile / s->row_tiles);
    int32_t const first_panel = (int32_t)(s->panels * group / s->groups);
    int32_t const end_panel = (int32_t)(s->panels * (group + 1) / s->groups);
    return (qi_gemm_piece){.row = row,
                           .rows = (int32_t)(s->rows * end_tile / s->row_tiles) - row,
                           .first_channel = first_panel * s->channel_tile,
                           .end_channel = at_most(end_panel * s->channel_tile, s->channels)};
}

int32_t qi_gemm_most_rows(const qi_gemm_split *s)
{
    int64_t const tiles = divide_up(s->row_tiles, s->blocks);
    return at_most(divide_up(s->rows * tiles, s->row_tiles), s->rows);
}

size_t qi_gemm_copy_bytes(const qi_gemm_split *s, size_t depth)
{
    size_t const bytes = (size_t)qi_gemm_most_rows(s) * depth + QI_SLACK;
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}
