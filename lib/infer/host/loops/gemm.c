/** Layers and pieces of matrix products, for every instruction set; see gemm.h. */
#include "infer/host/loops/gemm.h"

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
                           .x_bits = qi_input(model, node, 0)->bits,
                           .y_is_signed = qi_output(model, node)->type == QI_S8,
                           .max_accumulator = node->max_accumulator,
                           .requant = qi_requant_of(&call, clamp)};
}

static int32_t divide_up(int64_t a, int64_t b)
{
    int64_t const quotient = (a + b - 1) / b;
    return (int32_t)(quotient < INT32_MAX ? quotient : INT32_MAX);
}

static int32_t at_most(int32_t x, int32_t limit)
{
    return x < limit ? x : limit;
}

enum { NEAR = 1 << 17, FAR = 1 << 18, MANY_WEIGHTS = 1 << 20, ENOUGH = 16 };

/** blocks: as many as the size of x asks for. */
static void share(qi_gemm_split *s, int32_t blocks, int is_far)
{
    int32_t const by_size = at_most(blocks, s->row_tiles);
    int32_t const by_share = is_far ? 1 : at_most(ENOUGH, s->row_tiles / 2);
    s->blocks = by_size > by_share ? by_size : by_share > 1 ? by_share : 1;
    s->groups = at_most(divide_up(ENOUGH, s->blocks), s->panels);
    s->least_blocks = by_size;
}

/**
 * A block is a whole number of row tiles. Blocks of few bytes of x stay in the nearer caches
 * while every panel of weights passes by; weights that the second level cannot hold should pass as
 * seldom as possible, so that blocks are large then. Blocks are smaller if that gives threads more
 * to share; if there are too few rows for that, groups of panels are shared.
 */
qi_gemm_split qi_gemm_split_of(const qi_gemm *gemm, int32_t rows, int32_t depth, int32_t channels)
{
    int const is_far = (int64_t)depth * channels >= MANY_WEIGHTS;
    qi_gemm_split s = {.rows = rows,
                       .channels = channels,
                       .row_tiles = divide_up(rows, gemm->row_tile),
                       .panels = divide_up(channels, gemm->channel_tile),
                       .channel_tile = gemm->channel_tile};
    int32_t const by_size = divide_up((int64_t)rows * depth, is_far ? FAR : NEAR);
    share(&s, by_size, is_far);
    s.joins = gemm->joins && s.blocks > by_size ? s.blocks / by_size : 1;
    return s;
}

qi_gemm_split qi_gemm_split_lines(const qi_gemm *gemm, int32_t lines, int32_t line, size_t bytes,
                                  int32_t depth, int32_t channels)
{
    int const is_far = (int64_t)depth * channels >= MANY_WEIGHTS;
    qi_gemm_split s = {.rows = lines * line,
                       .channels = channels,
                       .row_tiles = lines,
                       .panels = divide_up(channels, gemm->channel_tile),
                       .channel_tile = gemm->channel_tile};
    share(&s, is_far ? divide_up((int64_t)lines * (int64_t)bytes, FAR) : 1, is_far);
    s.joins = s.blocks; /* the driver copies few lines at a time */
    return s;
}

qi_gemm_split qi_gemm_split_among(qi_gemm_split s, int32_t products, int64_t bytes)
{
    int32_t const by_cache = divide_up(bytes, FAR);
    int32_t const by_size =
        at_most(by_cache > s.least_blocks ? by_cache : s.least_blocks, s.row_tiles);
    int32_t const by_share = at_most(divide_up(ENOUGH, products), s.blocks);
    s.blocks = by_size > by_share ? by_size : by_share;
    s.groups = at_most(divide_up(ENOUGH, (int64_t)s.blocks * products), s.panels);
    s.joins = 1;
    return s;
}

qi_gemm_piece qi_gemm_pieces(const qi_gemm_split *s, int32_t first, int32_t end)
{
    int64_t const block = first / s->groups, group = first % s->groups;
    int const is_whole = group == 0 && end - first >= s->groups;
    int64_t const blocks = is_whole ? at_most((end - first) / s->groups, s->joins) : 1;
    int32_t const count = is_whole ? s->groups : at_most(end - first, s->groups - (int32_t)group);
    int64_t const first_tile = s->row_tiles * block / s->blocks;
    int64_t const end_tile = s->row_tiles * (block + blocks) / s->blocks;
    int32_t const row = (int32_t)(s->rows * first_tile / s->row_tiles);
    int32_t const first_panel = (int32_t)(s->panels * group / s->groups);
    int32_t const end_panel = (int32_t)(s->panels * (group + count) / s->groups);
    return (qi_gemm_piece){.row = row,
                           .rows = (int32_t)(s->rows * end_tile / s->row_tiles) - row,
                           .first_channel = first_panel * s->channel_tile,
                           .end_channel = at_most(end_panel * s->channel_tile, s->channels),
                           .next = first + (int32_t)blocks * count};
}

int32_t qi_gemm_most_rows(const qi_gemm_split *s)
{
    int64_t const tiles = divide_up((int64_t)s->row_tiles * s->joins, s->blocks);
    return at_most(divide_up(s->rows * tiles, s->row_tiles), s->rows);
}

size_t qi_gemm_copy_bytes(const qi_gemm_split *s, size_t depth)
{
    size_t const bytes = (size_t)qi_gemm_most_rows(s) * depth + QI_SLACK;
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}
