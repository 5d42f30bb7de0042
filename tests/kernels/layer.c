#include "kernels/layer.h"

#include <check.h>
#include <stdio.h>

static int32_t up_to(uint64_t *seed, int32_t most)
{
    return most > 0 ? node_random_in(seed, 1, most) : 0;
}

static qi_type random_type(uint64_t *seed)
{
    return node_random(seed) & 1 ? QI_U8 : QI_S8;
}

static int32_t random_dilation(uint64_t *seed)
{
    return node_random_in(seed, 0, 2) ? 1 : node_random_in(seed, 2, 3);
}

static node_fill random_fill(uint64_t *seed)
{
    return (node_fill)node_random_in(seed, 0, FILLS - 1);
}

struct layer layer_random(const struct layer *most, uint64_t *seed)
{
    struct layer l = *most;
    l.h = up_to(seed, most->h);
    l.w = up_to(seed, most->w);
    l.c = up_to(seed, most->c);
    l.o = up_to(seed, most->o);
    l.batch = up_to(seed, most->batch);
    l.kernel_h = up_to(seed, most->kernel_h);
    l.kernel_w = up_to(seed, most->kernel_w);
    l.stride_h = up_to(seed, most->stride_h);
    l.stride_w = up_to(seed, most->stride_w);
    l.dilation_h = random_dilation(seed);
    l.dilation_w = random_dilation(seed);
    l.pad_top = node_random_in(seed, 0, (l.kernel_h - 1) * l.dilation_h);
    l.pad_left = node_random_in(seed, 0, (l.kernel_w - 1) * l.dilation_w);
    l.x = random_type(seed);
    l.weights = random_type(seed);
    l.y = random_type(seed);
    l.bits = node_random_in(seed, 0, 2) ? 8 : node_random_in(seed, 2, 7);
    l.relu = (int)(node_random(seed) & 1);
    l.even = node_random_in(seed, 0, 3) == 0;
    l.fraction = node_random_in(seed, 0, 1) ? node_random_in(seed, 0, QI_MAX_FRACTION) : 0;
    l.x_fill = random_fill(seed);
    l.w_fill = random_fill(seed);
    return l;
}

/** Shapes, and what comes before the clamp among the parameters. */
struct shapes {
    int rank;
    int32_t x[4], w[4], y[4];
    int n_params;
    int32_t params[QI_MAX_PARAMS];
};

static struct shapes window_shapes(const struct layer *l, uint64_t *seed)
{
    int32_t const m = l->multiplier, o = m ? l->c * m : l->o;
    int32_t const groups = l->groups ? l->groups : 1;
    int32_t const oh =
        node_outputs(l->h, l->pad_top, l->kernel_h, l->dilation_h, l->stride_h, seed);
    int32_t const ow =
        node_outputs(l->w, l->pad_left, l->kernel_w, l->dilation_w, l->stride_w, seed);
    return (struct shapes){.rank = 4,
                           .x = {l->batch, l->h, l->w, l->c},
                           .w = {m ? 1 : o, l->kernel_h, l->kernel_w, m ? o : l->c / groups},
                           .y = {l->batch, oh, ow, o},
                           .n_params = 7,
                           .params = {l->stride_h, l->stride_w, l->dilation_h, l->dilation_w,
                                      l->pad_top, l->pad_left, m ? m : groups}};
}

/** Outputs of a transposed convolution along an axis: all, as SAME, or any number. */
static int32_t spread_outputs(int32_t size, int32_t pad, int32_t kernel, int32_t stride,
                              uint64_t *seed)
{
    int32_t const all = (size - 1) * stride + kernel - 2 * pad, same = size * stride;
    int32_t const which = node_random_in(seed, 0, 2);
    return which == 0 && all > 0 ? all : which == 1 ? same : node_random_in(seed, 1, same + 3);
}

static struct shapes transposed_shapes(const struct layer *l, uint64_t *seed)
{
    int32_t const oh = spread_outputs(l->h, l->pad_top, l->kernel_h, l->stride_h, seed);
    int32_t const ow = spread_outputs(l->w, l->pad_left, l->kernel_w, l->stride_w, seed);
    return (struct shapes){.rank = 4,
                           .x = {l->batch, l->h, l->w, l->c},
                           .w = {l->o, l->kernel_h, l->kernel_w, l->c},
                           .y = {l->batch, oh, ow, l->o},
                           .n_params = 4,
                           .params = {l->stride_h, l->stride_w, l->pad_top, l->pad_left}};
}

static struct shapes shapes_of(const struct layer *l, const qi_kernel *kernel, uint64_t *seed)
{
    if (kernel == &qi_kernel_transpose_conv2d)
        return transposed_shapes(l, seed);
    if (l->kernel_h)
        return window_shapes(l, seed);
    return (struct shapes){
        .rank = 2, .x = {l->batch, l->c}, .w = {l->o, l->c}, .y = {l->batch, l->o}};
}

static int32_t fraction_of(const struct layer *l, const int32_t w[4])
{
    int64_t const channels = l->kernel_h && !l->multiplier ? w[0] : l->kernel_h ? w[3] : w[0];
    int64_t const depth = (int64_t)w[0] * w[1] * (l->kernel_h ? w[2] * w[3] : 1) / channels;
    int64_t const most = depth << 2 * l->bits;
    int32_t f = l->fraction;
    while (f > 0 && most << f >= INT32_MAX / 2)
        f--;
    return f;
}

/** Every eighth layer has a multiplier with which many sums are ties. */
static void make_ties(one_node *n, uint64_t *seed)
{
    enum { MULT = 3 };
    int32_t *mult = (int32_t *)(uintptr_t)n->in[MULT];
    if (node_random_in(seed, 0, 7) == 0)
        mult[0] = 1 << 30;
}

void layer_build(one_node *n, const struct layer *l, const qi_kernel *kernel, uint64_t *seed)
{
    struct shapes s = shapes_of(l, kernel, seed);
    int32_t const x_zero = node_zero_point(seed, l->x, l->bits);
    int32_t const w_zero = l->weights == QI_S8 ? 0 : node_zero_point(seed, QI_U8, l->bits);
    int32_t const zero_point = node_zero_point(seed, l->y, 8);
    int32_t const lowest = node_lowest(l->y, 8), lo = l->relu ? zero_point : lowest;
    s.params[s.n_params++] = lo;
    s.params[s.n_params++] =
        node_random_in(seed, 0, 1) ? lowest + 255 : node_random_in(seed, lo, lowest + 255);
    node_init(n, kernel, l->even ? QI_ROUND_EVEN : QI_ROUND_TWICE, seed);
    n->node.fraction = l->even ? 0 : fraction_of(l, s.w);
    node_codes(n, QI_ACTIVATION, l->x, l->bits, x_zero, s.rank, s.x, l->x_fill);
    node_codes(n, QI_CONSTANT, l->weights, l->bits, w_zero, s.rank, s.w, l->w_fill);
    node_requantization(n, s.y[s.rank - 1], l->shift_lo, l->shift_hi);
    if (l->even)
        make_ties(n, seed);
    node_output(n, l->y, 8, zero_point, s.rank, s.y);
    node_params(n, s.n_params, s.params);
}

void layer_compare(const struct layer *l, const qi_kernel *kernel, const qi_fast *fast,
                   const qi_isa *isa, bool may_leave, uint64_t *seed)
{
    char what[350];
    one_node n;
    snprintf(
        what, sizeof what,
        "%s: x %dx%dx%dx%d in %d groups to %d channels, or each to %d, kernel %dx%d stride %d,%d "
        "dilation "
        "%d,%d pad %d,%d types %d %d %d bits %d relu %d shifts %d..%d fraction %d even %d fills %d "
        "%d",
        isa->name, l->batch, l->h, l->w, l->c, l->groups, l->o, l->multiplier, l->kernel_h,
        l->kernel_w, l->stride_h, l->stride_w, l->dilation_h, l->dilation_w, l->pad_top,
        l->pad_left, l->x, l->weights, l->y, l->bits, l->relu, l->shift_lo, l->shift_hi,
        l->fraction, l->even, l->x_fill, l->w_fill);
    layer_build(&n, l, kernel, seed);
    bool const leaves = may_leave && n.tensors[1].type == QI_U8 && n.tensors[1].zero_point == 0;
    ck_assert_msg(node_check(&n), "%s", what);
    ck_assert_msg(node_compare(&n, fast, isa, what, leaves), "%s", what);
    node_free(&n);
}
