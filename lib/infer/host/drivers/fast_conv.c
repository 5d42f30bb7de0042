/**
 * conv2d as a matrix product (conv_part.h).
 *
 * Each group of channels is a convolution of its own. A product with fewer channels than a register
 * has would leave lanes empty. So several such groups are one product, of the channels of all of
 * them: weights between channels of different groups are Z_w. This takes no more multiplications,
 * copies longer runs, and requantizes full registers.
 *
 *   packed | how parts run | product 0 | product 1 | .. | the weights of one product while it is
 *            packed |
 */
#include "infer/host/drivers/conv_part.h"

static int32_t groups_of(const qi_node *node)
{
    return node->params[QI_CONV_GROUPS];
}

/**
 * How many groups are one product: the largest divisor of their number of which the narrowest panel
 * holds the channels; fewer if their sums would be too long.
 */
static int32_t merged_groups(const qi_gemm *gemm, const qi_window *g, int32_t groups)
{
    enum { MOST_DEPTH = 1 << 24 }; /* qi_weight_sum */
    int64_t const depth = (int64_t)qi_conv_depth(g) / groups;
    int32_t const fit = gemm->least_channels / (g->o / groups);
    int32_t merged = fit < 1 ? 1 : fit < groups ? fit : groups;
    while (merged > 1 && (groups % merged || merged * depth > MOST_DEPTH))
        merged--;
    return merged;
}

static int32_t parts_of(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_conv_window(model, node);
    int32_t const groups = groups_of(node);
    return groups / merged_groups(isa->gemm, &g, groups);
}

/**
 * Do products of few channels compute enough to be worth their calls? bench_conv measures it. There
 * must not be too many: each has a header and a plan.
 */
static int is_worth(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    enum { OUTPUT = 8, LEAST = 512 }; /* an output takes as long as so many multiplications more */
    enum { MOST_PARTS = 1 << 10 };
    qi_window const g = qi_conv_window(model, node);
    int32_t const parts = parts_of(isa, model, node);
    int64_t const depth = qi_count(qi_input(model, node, 1)) / g.o;
    return parts == 1 || (parts <= MOST_PARTS &&
                          (int64_t)g.n * g.oh * g.ow * (g.o / parts) * (depth + OUTPUT) >= LEAST);
}

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->gemm && qi_input(model, node, 0)->kind != QI_CONSTANT && is_worth(isa, model, node);
}

/** A part without the place of its weights. */
static qi_conv_part placed(const qi_isa *isa, const qi_model *model, const qi_node *node,
                           int32_t number)
{
    qi_window g = qi_conv_window(model, node);
    size_t const item = node->rounding == QI_ROUND_NONE ? sizeof(int32_t) : 1;
    size_t const c = (size_t)g.c, pixel = (size_t)g.o * item, line = (size_t)g.ow * pixel;
    int32_t const parts = parts_of(isa, model, node);
    g.c /= parts;
    g.o /= parts;
    return (qi_conv_part){.g = g,
                          .x_codes = qi_codes_of(qi_input(model, node, 0)),
                          .x_at = (size_t)number * (size_t)g.c,
                          .x_pixel = c,
                          .y_at = (size_t)number * (size_t)g.o * item,
                          .y_pixel = pixel,
                          .y_line = line,
                          .y_picture = (size_t)g.oh * line};
}

/** The channels first..first + channels - 1 of a product. conv2d has no rounding DOUBLE, whose
 * multipliers are pairs. */
static qi_gemm_layer channels_of(const qi_gemm_layer *all, int32_t first, int32_t channels)
{
    qi_gemm_layer part = *all;
    part.channels = channels;
    part.weights = all->weights + (size_t)first * (size_t)all->depth;
    part.requant.bias += first;
    part.requant.mult += first * part.requant.mult_step;
    part.requant.shift += first * part.requant.shift_step;
    return part;
}

/** The product of a part; without weights if it has several groups. */
static qi_gemm_layer product_of(const qi_isa *isa, const qi_model *model, const qi_node *node,
                                int32_t number)
{
    qi_conv_part const part = placed(isa, model, node, number);
    qi_gemm_layer const all = qi_gemm_layer_of(model, node, QI_CONV_CLAMP_LO);
    qi_gemm_layer product = channels_of(&all, number * part.g.o, part.g.o);
    if (part.g.o > qi_output(model, node)->dims[3] / groups_of(node)) {
        product.depth = (int32_t)qi_conv_depth(&part.g);
        product.weights = NULL;
    }
    qi_conv_part_segment(isa->gemm, &part, &product);
    return product;
}

/** The bytes of each product's packed weights, if there are several: enough for any of them. */
static size_t product_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_layer product = product_of(isa, model, node, 0);
    product.weights = NULL;
    return qi_conv_align(isa->gemm->packed_bytes(&product));
}

static qi_conv_part part_of(const qi_isa *isa, const qi_model *model, const qi_node *node,
                            int32_t number)
{
    qi_conv_part part = placed(isa, model, node, number);
    part.packed_at = qi_conv_plan_bytes(parts_of(isa, model, node));
    if (number > 0)
        part.packed_at += (size_t)number * product_bytes(isa, model, node);
    return part;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_layer const product = product_of(isa, model, node, 0);
    int32_t const parts = parts_of(isa, model, node);
    size_t const plan = qi_conv_plan_bytes(parts);
    if (parts == 1 && product.weights)
        return plan + isa->gemm->packed_bytes(&product);
    size_t const bytes = plan + (size_t)parts * product_bytes(isa, model, node);
    return product.weights ? bytes : bytes + (size_t)product.channels * (size_t)product.depth;
}

/** Write the weights of a product of several groups, [channels, KH KW, C]. from: those of its
 * groups, [channels, KH KW, own]. */
static void spread(const qi_conv_part *part, qi_codes codes, int32_t own, const uint8_t *from,
                   uint8_t *to)
{
    const qi_window *g = &part->g;
    int32_t const taps = g->kernel_h * g->kernel_w, channels = g->o / (g->c / own);
    size_t const c = (size_t)g->c, run = (size_t)own;
    memset(to, qi_zero_byte(codes), (size_t)g->o * (size_t)taps * c);
    for (int32_t o = 0; o < g->o; o++)
        for (int32_t i = 0; i < taps; i++, from += run, to += c)
            memcpy(to + (size_t)(o / channels) * run, from, run);
}

static const qi_conv_layer layer = {.parts = parts_of, .part = part_of, .product = product_of};

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    const qi_tensor *w = qi_input(model, node, 1);
    int32_t const parts = parts_of(isa, model, node);
    qi_conv_plan(&layer, isa, model, node, packed);
    for (int32_t i = 0; i < parts; i++) {
        qi_conv_part const part = part_of(isa, model, node, i);
        qi_gemm_layer product = product_of(isa, model, node, i);
        if (!product.weights) {
            size_t const row = (size_t)(qi_count(w) / w->dims[0]);
            uint8_t *codes = (uint8_t *)packed + qi_conv_plan_bytes(parts) +
                             (size_t)parts * product_bytes(isa, model, node);
            spread(&part, product.w_codes, w->dims[3],
                   (const uint8_t *)w->data + (size_t)(i * part.g.o) * row, codes);
            product.weights = codes;
        }
        isa->gemm->pack(&product, (uint8_t *)packed + part.packed_at);
    }
}

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return qi_conv_scratch(&layer, isa, model, node);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return qi_conv_tile_count(&layer, isa, model, node);
}

const qi_fast qi_fast_conv2d = {.kernel = &qi_kernel_conv2d,
                                .accepts = accepts,
                                .packed_bytes = packed_bytes,
                                .pack = pack,
                                .scratch = scratch,
                                .tiles = tiles,
                                .run_tiles = qi_conv_run_tiles,
                                .product = qi_conv_product};
