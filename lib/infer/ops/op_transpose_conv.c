/**
 * transpose_conv2d: x [N,H,W,C], w [O,KH,KW,C], bias, mult, shift -> y [N,OH,OW,O].
 *
 *     acc[oy,ox,o] = sum over ky, kx, c of (x[iy,ix,c] - Z_x)(w[o,ky,kx,c] - Z_w),
 *                    where oy + pad_top - ky = iy stride_h inside the input, and ox alike
 *
 * Other kernels scatter each input to several outputs. This one gathers: for each output it makes a
 * row with the differences of the pixels under the taps, and zeros under the other taps. Several
 * rows share each pass over the weights.
 *
 *   scratch  | rows [QI_TILE, KH KW C] int16 | one row of weights, int16 |
 */
#include "infer/kernels/memory.h"
#include "infer/model/op.h"

enum { STRIDE_H, STRIDE_W, PAD_TOP, PAD_LEFT, CLAMP_LO, CLAMP_HI };

static void rule_axis(qi_checker *c, int32_t kernel, int32_t stride, int32_t pad)
{
    qi_rule_range(c, "kernel", kernel, 1, QM_MAX_SIDE);
    qi_rule_range(c, "stride", stride, 1, QM_MAX_SIDE);
    qi_rule_range(c, "pad", pad, 0, kernel - 1);
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    qi_checker c = {model, node, index, err, QI_OK};
    if (!qi_rule_counts(&c, QI_ACC_INPUTS, QI_ACC_INPUTS, CLAMP_HI + 1,
                        qi_layer_rounding(node, 0)) ||
        !qi_rule_layer(&c))
        return c.status;
    const qi_tensor *x = qi_input(model, node, 0), *w = qi_input(model, node, 1);
    const qi_tensor *y = qi_output(model, node);
    const int32_t *p = node->params;
    qi_rule(&c, x->rank == 4, QI_ERR_SHAPE, "rank of the input", x->rank, 4);
    qi_rule(&c, w->rank == 4, QI_ERR_SHAPE, "rank of the weights", w->rank, 4);
    qi_rule(&c, y->rank == 4, QI_ERR_SHAPE, "rank of the output", y->rank, 4);
    qi_rule(&c, x->dims[0] == y->dims[0], QI_ERR_SHAPE, "batch of the output", y->dims[0],
            x->dims[0]);
    qi_rule(&c, w->dims[0] == y->dims[3], QI_ERR_SHAPE, "output channels of the weights",
            w->dims[0], y->dims[3]);
    qi_rule(&c, w->dims[3] == x->dims[3], QI_ERR_SHAPE, "input channels of the weights", w->dims[3],
            x->dims[3]);
    rule_axis(&c, w->dims[1], p[STRIDE_H], p[PAD_TOP]);
    rule_axis(&c, w->dims[2], p[STRIDE_W], p[PAD_LEFT]);
    qi_rule_clamp(&c, CLAMP_LO);
    if (!c.status)
        qi_rule_accumulator(&c, w->dims[0]);
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

/** What is the same for all output pixels of a call. */
struct transposed {
    const int32_t *x_dims, *w_dims, *y_dims, *params;
    const void *x;
    qi_codes codes;
};

/**
 * The input position under tap k of output position `out`. -1: the tap falls between two pixels or
 * outside.
 */
static int32_t under_tap(int32_t out, int32_t k, int32_t stride, int32_t pad, int32_t size)
{
    int32_t const at = out + pad - k; /* below 2^29 */
    return at < 0 || at % stride || at / stride >= size ? -1 : at / stride;
}

/** Write the differences under the taps of one output pixel, [KH, KW, C]; x: where it begins. */
static void gather(int16_t *row, const struct transposed *v, size_t x, int32_t oy, int32_t ox)
{
    const int32_t *p = v->params, *xd = v->x_dims;
    size_t const channels = (size_t)xd[3];
    for (int32_t ky = 0; ky < v->w_dims[1]; ky++) {
        int32_t const iy = under_tap(oy, ky, p[STRIDE_H], p[PAD_TOP], xd[1]);
        for (int32_t kx = 0; kx < v->w_dims[2]; kx++, row += channels) {
            int32_t const ix = under_tap(ox, kx, p[STRIDE_W], p[PAD_LEFT], xd[2]);
            if (iy < 0 || ix < 0)
                memset(row, 0, channels * sizeof *row);
            else
                qi_differences(row, v->x, x + ((size_t)iy * (size_t)xd[2] + (size_t)ix) * channels,
                               channels, v->codes);
        }
    }
}

/** Write the rows of output pixels first..first+count-1, counted over [N,OH,OW]. */
static void gather_rows(int16_t *rows, const struct transposed *v, int32_t first, int32_t count,
                        size_t depth)
{
    size_t const picture = (size_t)v->x_dims[1] * (size_t)v->x_dims[2] * (size_t)v->x_dims[3];
    for (int32_t r = 0; r < count; r++) {
        int32_t const position = first + r, line = position / v->y_dims[2];
        size_t const x = (size_t)(line / v->y_dims[1]) * picture;
        gather(rows + (size_t)r * depth, v, x, line % v->y_dims[1], position % v->y_dims[2]);
    }
}

static void run(const qi_call *call)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *w = qi_input(call->model, call->node, 1);
    const qi_tensor *y = qi_output(call->model, call->node);
    struct transposed const v = {x->dims,     w->dims,       y->dims, call->node->params,
                                 call->in[0], qi_codes_of(x)};
    size_t const depth = depth_of(call->model, call->node);
    int32_t const positions = y->dims[0] * y->dims[1] * y->dims[2]; /* <= QM_MAX_TENSOR_VALUES */
    int16_t *rows = call->scratch;
    qi_tile tile = {.x = rows,
                    .depth = depth,
                    .weights = qi_rows_of(w, call->in[1]),
                    .weight_codes = qi_codes_of(w),
                    .weight_row = rows + QI_TILE * depth,
                    .end_channel = y->dims[3],
                    .requant = qi_requant_of(call, CLAMP_LO),
                    .y = call->out[0],
                    .y_stride = (size_t)y->dims[3],
                    .is_wide = qi_is_wide(x)};
    for (int32_t p = 0; p < positions; p += QI_TILE) {
        tile.rows = positions - p < QI_TILE ? positions - p : QI_TILE;
        tile.y_at = (size_t)p * tile.y_stride;
        gather_rows(rows, &v, p, tile.rows, depth);
        qi_run_tile(&tile);
    }
}

const qi_kernel qi_kernel_transpose_conv2d = {.name = "transpose_conv2d",
                                              .check = check,
                                              .scratch = scratch,
                                              .run = run,
                                              .products = QI_PRODUCTS_SPREAD,
                                              .max_fraction = QI_MAX_FRACTION,
                                              .reads_packed = 1};
