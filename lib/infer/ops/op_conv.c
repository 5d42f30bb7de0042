/**
 * conv2d: x [N,H,W,C], w [O,KH,KW,C/groups], bias, mult, shift -> y [N,OH,OW,O].
 *
 *   acc = sum over ky, kx, c of (x[oy stride - pad + ky dilation, .., c] - Z_x)(w[o,ky,kx,c] - Z_w)
 *
 * Pixels outside the picture count as Z_x (difference 0). The differences of up to QI_TILE windows
 * are laid out as rows ("patches"). All patches share each pass over the weights:
 *
 *   scratch  | patches [QI_TILE, KH KW C/groups] int16 | one row of weights, int16 |
 */
#include "infer/model/memory.h"
#include "infer/model/op.h"

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, QI_ACC_INPUTS, QI_ACC_INPUTS, QI_CONV_CLAMP_HI + 1,
                        qi_layer_rounding(node, 0)) ||
        !qi_rule_layer(&c))
        return c.status;
    const qi_tensor *w = qi_input(model, node, 1);
    qi_window const g = qi_conv_window(model, node);
    int32_t const groups = node->params[QI_CONV_GROUPS];
    qi_rule(&c, w->rank == 4, QI_ERR_SHAPE, "rank of the weights", w->rank, 4);
    qi_rule_window(&c, &g);
    qi_rule_range(&c, "groups", groups, 1, g.c);
    if (c.status)
        return c.status;
    qi_rule(&c, g.c % groups == 0, QI_ERR_PARAM, "groups: do not divide the input channels", groups,
            g.c);
    qi_rule(&c, g.o % groups == 0, QI_ERR_PARAM, "groups: do not divide the output channels",
            groups, g.o);
    qi_rule(&c, w->dims[0] == g.o, QI_ERR_SHAPE, "output channels of the weights", w->dims[0], g.o);
    qi_rule(&c, w->dims[3] == g.c / groups, QI_ERR_SHAPE, "input channels of the weights",
            w->dims[3], g.c / groups);
    qi_rule_clamp(&c, QI_CONV_CLAMP_LO);
    if (!c.status)
        qi_rule_accumulator(&c, g.o);
    return c.status;
}

static size_t depth_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = qi_input(model, node, 1);
    return (size_t)(qi_count(w) / w->dims[0]);
}

static size_t scratch(const qi_model *model, const qi_node *node)
{
    return (QI_TILE + 1) * depth_of(model, node) * sizeof(int16_t);
}

/** What is the same for all windows of a call. */
struct conv {
    qi_window g;
    const void *x;
    qi_codes codes;
    int32_t group_channels; /* input channels of a group */
};

/** Write the differences of the taps of one kernel row. row: the value where the row begins. */
static void patch_row(int16_t *patch, const struct conv *v, size_t row, qi_taps taps)
{
    size_t const c = (size_t)v->g.c, cg = (size_t)v->group_channels;
    if (c == cg && v->g.dilation_w == 1) { /* taps lie side by side */
        size_t const n = (size_t)(taps.end - taps.first) * c;
        qi_differences(patch + (size_t)taps.first * c, v->x,
                       row + (size_t)(taps.start + taps.first) * c, n, v->codes);
        return;
    }
    for (int32_t kx = taps.first; kx < taps.end; kx++)
        qi_differences(patch + (size_t)kx * cg, v->x,
                       row + (size_t)(taps.start + kx * v->g.dilation_w) * c, cg, v->codes);
}

/**
 * Write the differences of one window, [KH, KW, C/groups]. x: the first value of the group in the
 * picture.
 */
static void patch_of(int16_t *patch, const struct conv *v, size_t x, int32_t oy, int32_t ox)
{
    const qi_window *g = &v->g;
    size_t const row = (size_t)g->kernel_w * (size_t)v->group_channels;
    qi_taps const ty = qi_taps_at(oy, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->h);
    qi_taps const tx = qi_taps_at(ox, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->w);
    int const whole =
        ty.first == 0 && ty.end == g->kernel_h && tx.first == 0 && tx.end == g->kernel_w;
    if (!whole)
        memset(patch, 0, (size_t)g->kernel_h * row * sizeof *patch);
    if (tx.first >= tx.end)
        return;
    for (int32_t ky = ty.first; ky < ty.end; ky++) {
        int32_t const iy = ty.start + ky * g->dilation_h;
        patch_row(patch + (size_t)ky * row, v, x + (size_t)iy * (size_t)g->w * (size_t)g->c, tx);
    }
}

/**
 * Write the patches of windows first..first+rows-1, counted over [N,OH,OW], for the channels of one
 * group.
 */
static void fill_patches(int16_t *patches, const struct conv *v, int32_t first, int32_t rows,
                         size_t depth, int32_t first_channel)
{
    const qi_window *g = &v->g;
    size_t const picture = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    for (int32_t r = 0; r < rows; r++) {
        int32_t const position = first + r, line = position / g->ow;
        size_t const x = (size_t)(line / g->oh) * picture + (size_t)first_channel;
        patch_of(patches + (size_t)r * depth, v, x, line % g->oh, position % g->ow);
    }
}

void qi_run_conv2d_part(const qi_call *call, int32_t first, int32_t end, qi_dots_fn *dots)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *w = qi_input(call->model, call->node, 1);
    int32_t const groups = call->node->params[QI_CONV_GROUPS];
    struct conv const v = {qi_conv_window(call->model, call->node), call->in[0], qi_codes_of(x),
                           x->dims[3] / groups};
    size_t const depth = depth_of(call->model, call->node);
    int32_t const group_outputs = v.g.o / groups;
    int16_t *patches = call->scratch;
    qi_tile tile = {.x = patches,
                    .depth = depth,
                    .weights = qi_rows_of(w, call->in[1]),
                    .weight_codes = qi_codes_of(w),
                    .weight_row = patches + QI_TILE * depth,
                    .requant = qi_requant_of(call, QI_CONV_CLAMP_LO),
                    .y = call->out[0],
                    .y_stride = (size_t)v.g.o,
                    .is_wide = qi_is_wide(x),
                    .dots = dots};
    for (int32_t p = first; p < end; p += QI_TILE) {
        tile.rows = end - p < QI_TILE ? end - p : QI_TILE;
        tile.y_at = (size_t)p * tile.y_stride;
        for (int32_t i = 0; i < groups; i++) {
            fill_patches(patches, &v, p, tile.rows, depth, i * v.group_channels);
            tile.first_channel = i * group_outputs;
            tile.end_channel = tile.first_channel + group_outputs;
            qi_run_tile(&tile);
        }
    }
}

static void run(const qi_call *call)
{
    const int32_t *y = qi_output(call->model, call->node)->dims;
    qi_run_conv2d_part(call, 0, y[0] * y[1] * y[2], NULL); /* at most QM_MAX_TENSOR_VALUES */
}

const qi_kernel qi_kernel_conv2d = {.name = "conv2d",
                                    .check = check,
                                    .scratch = scratch,
                                    .run = run,
                                    .products = QI_PRODUCTS_ROWS,
                                    .max_fraction = QI_MAX_FRACTION,
                                    .reads_packed = 1};
