/**
 * transpose_conv2d as matrix products (conv_part.h), one for each phase.
 *
 * Let s be the stride of an axis. The output at o = q - pad reads the taps k = q % s + t s. Tap k
 * takes it to the input q / s - t. So all outputs with the same phase q % s read the same taps, and
 * together are a convolution of stride 1, with these taps in reverse:
 *
 *   stride 2, kernel 3, pad 1      o     q   phase   taps   inputs
 *                                  0     1     1      1     0
 *                                  1     2     0      2 0   0 1
 *                                  2     3     1      1     1
 *                                  3     4     0      2 0   1 2
 *
 * Each weight belongs to one phase. Its outputs lie s pixels apart. A phase without taps, if the
 * kernel is smaller than the stride, has one of weight Z_w on one channel: its sums are 0.
 *
 *   packed | how phases run | phase 0, 0 | phase 0, 1 | .. | phase 1, 0 | .. | the weights of a
 *            phase while it is packed |
 */
#include "infer/host/drivers/conv_part.h"

/** One axis of a phase. */
struct phase {
    int32_t phase;
    int32_t taps;
    int32_t pad; /* of its convolution; may be -1 */
};

static int32_t taps_of(int32_t kernel, int32_t stride, int32_t phase)
{
    return phase < kernel ? (kernel - 1 - phase) / stride + 1 : 0;
}

/** The phase of an axis that has output `first`. */
static struct phase phase_of(int32_t kernel, int32_t stride, int32_t pad, int32_t first)
{
    int32_t const phase = (first + pad) % stride, input = (first + pad) / stride;
    int32_t const taps = taps_of(kernel, stride, phase);
    return (struct phase){.phase = phase, .taps = taps, .pad = taps - 1 - input};
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/** The first outputs of all phases lie in a rectangle; some of a small output have none. */
static int32_t phases_w(const qi_window *g)
{
    return least(g->stride_w, g->ow);
}

static int32_t parts_of(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    (void)isa;
    qi_window const g = qi_transpose_window(model, node);
    return least(g.stride_h, g.oh) * phases_w(&g);
}

/** Each phase has a header, and columns for each channel: there must not be too many. */
static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    enum { MOST_PHASES = 1 << 10, MOST_COLUMNS = 1 << 18 };
    qi_window const g = qi_transpose_window(model, node);
    int64_t const phases = (int64_t)g.stride_h * g.stride_w;
    return isa->gemm && qi_input(model, node, 0)->kind != QI_CONSTANT && phases <= MOST_PHASES &&
           phases * g.o <= MOST_COLUMNS;
}

/* ------------------------------------------------------------------ phases */

/** Both axes of a part. */
struct phases {
    struct phase h, w;
};

static struct phases phases_of(const qi_window *g, int32_t number)
{
    int32_t const w = phases_w(g);
    return (struct phases){phase_of(g->kernel_h, g->stride_h, g->pad_top, number / w),
                           phase_of(g->kernel_w, g->stride_w, g->pad_left, number % w)};
}

/** The taps of a phase as a kernel; one pixel of one channel if there are none. */
static qi_window with_taps(qi_window g, int32_t taps_h, int32_t taps_w)
{
    g.kernel_h = taps_h;
    g.kernel_w = taps_w;
    if (!taps_h || !taps_w)
        g.kernel_h = g.kernel_w = g.c = 1;
    return g;
}

/** A part without the place of its weights. */
static qi_conv_part placed(const qi_model *model, const qi_node *node, int32_t number)
{
    qi_window const all = qi_transpose_window(model, node);
    struct phases const p = phases_of(&all, number);
    int32_t const y = number / phases_w(&all), x = number % phases_w(&all);
    size_t const pixel = (size_t)all.o, line = (size_t)all.ow * pixel;
    qi_window g = with_taps(all, p.h.taps, p.w.taps);
    int const has_taps = p.h.taps && p.w.taps;
    g.oh = (all.oh - 1 - y) / all.stride_h + 1;
    g.ow = (all.ow - 1 - x) / all.stride_w + 1;
    g.stride_h = g.stride_w = 1;
    g.pad_top = has_taps ? p.h.pad : 0;
    g.pad_left = has_taps ? p.w.pad : 0;
    return (qi_conv_part){.g = g,
                          .x_codes = qi_codes_of(qi_input(model, node, 0)),
                          .x_pixel = (size_t)all.c,
                          .y_at = (size_t)y * line + (size_t)x * pixel,
                          .y_pixel = (size_t)all.stride_w * pixel,
                          .y_line = (size_t)all.stride_h * line,
                          .y_picture = (size_t)all.oh * line};
}

/** The product of a part, without weights. */
static qi_gemm_layer product_of(const qi_isa *isa, const qi_model *model, const qi_node *node,
                                int32_t number)
{
    qi_conv_part const part = placed(model, node, number);
    qi_gemm_layer product = qi_gemm_layer_of(model, node, QI_TRANSPOSE_CLAMP_LO);
    product.depth = (int32_t)qi_conv_depth(&part.g);
    product.weights = NULL;
    qi_conv_part_segment(isa->gemm, &part, &product);
    return product;
}

/* ------------------------------------------------------------------ packed weights */

/** The phases 0 to (kernel - 1) % stride of an axis have a tap more than the others. */
struct axis {
    int32_t stride, longer;
    int32_t taps[2]; /* of the first ones, and of the others */
};

static struct axis axis_of(int32_t kernel, int32_t stride)
{
    int32_t const most = taps_of(kernel, stride, 0);
    return (struct axis){stride, (kernel - 1) % stride + 1, {most, most - 1}};
}

/** The bytes of the phases before one of an axis; bytes: of a longer one, of another. */
static size_t before(const struct axis *axis, int32_t phase, const size_t bytes[2])
{
    int32_t const first = least(phase, axis->longer);
    return (size_t)first * bytes[0] + (size_t)(phase - first) * bytes[1];
}

/** The bytes of the packed layer before the weights of a phase. */
static size_t packed_before(const qi_isa *isa, const qi_model *model, const qi_node *node,
                            int32_t phase_h, int32_t phase_w)
{
    qi_window const g = qi_transpose_window(model, node);
    struct axis const h = axis_of(g.kernel_h, g.stride_h), w = axis_of(g.kernel_w, g.stride_w);
    qi_gemm_layer product = qi_gemm_layer_of(model, node, QI_TRANSPOSE_CLAMP_LO);
    size_t bytes[2][2], rows[2];
    product.weights = NULL;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            qi_window const kernel = with_taps(g, h.taps[i], w.taps[j]);
            product.depth = (int32_t)qi_conv_depth(&kernel);
            bytes[i][j] = qi_conv_align(isa->gemm->packed_bytes(&product));
        }
        rows[i] = before(&w, w.stride, bytes[i]);
    }
    return qi_conv_plan_bytes(parts_of(isa, model, node)) + before(&h, phase_h, rows) +
           before(&w, phase_w, bytes[phase_h >= h.longer]);
}

static qi_conv_part part_of(const qi_isa *isa, const qi_model *model, const qi_node *node,
                            int32_t number)
{
    qi_window const g = qi_transpose_window(model, node);
    struct phases const p = phases_of(&g, number);
    qi_conv_part part = placed(model, node, number);
    part.packed_at = packed_before(isa, model, node, p.h.phase, p.w.phase);
    return part;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_transpose_window(model, node);
    qi_window const most =
        with_taps(g, taps_of(g.kernel_h, g.stride_h, 0), taps_of(g.kernel_w, g.stride_w, 0));
    return packed_before(isa, model, node, g.stride_h, 0) + (size_t)g.o * qi_conv_depth(&most);
}

/** Write the taps of a phase in reverse, [O, KH, KW, C]. */
static void reverse(const qi_window *g, const struct phases *p, const uint8_t *w, uint8_t *to)
{
    size_t const c = (size_t)g->c;
    for (int32_t o = 0; o < g->o; o++)
        for (int32_t i = p->h.taps - 1; i >= 0; i--)
            for (int32_t j = p->w.taps - 1; j >= 0; j--, to += c) {
                int32_t const ky = p->h.phase + i * g->stride_h;
                int32_t const kx = p->w.phase + j * g->stride_w;
                size_t const tap =
                    ((size_t)o * (size_t)g->kernel_h + (size_t)ky) * (size_t)g->kernel_w +
                    (size_t)kx;
                memcpy(to, w + tap * c, c);
            }
}

static const qi_conv_layer layer = {.parts = parts_of, .part = part_of, .product = product_of};

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    qi_window const g = qi_transpose_window(model, node);
    int32_t const parts = parts_of(isa, model, node);
    uint8_t *codes = (uint8_t *)packed + packed_before(isa, model, node, g.stride_h, 0);
    qi_conv_plan(&layer, isa, model, node, packed);
    for (int32_t i = 0; i < parts; i++) {
        struct phases const p = phases_of(&g, i);
        qi_conv_part const part = part_of(isa, model, node, i);
        qi_gemm_layer product = product_of(isa, model, node, i);
        if (p.h.taps && p.w.taps)
            reverse(&g, &p, qi_input(model, node, 1)->data, codes);
        else
            memset(codes, qi_zero_byte(product.w_codes), (size_t)g.o);
        product.weights = codes;
        isa->gemm->pack(&product, (uint8_t *)packed + part.packed_at);
    }
}

/* ------------------------------------------------------------------ tiles */

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return qi_conv_scratch(&layer, isa, model, node);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return qi_conv_tile_count(&layer, isa, model, node);
}

const qi_fast qi_fast_transpose_conv2d = {.kernel = &qi_kernel_transpose_conv2d,
                                          .accepts = accepts,
                                          .packed_bytes = packed_bytes,
                                          .pack = pack,
                                          .scratch = scratch,
                                          .tiles = tiles,
                                          .run_tiles = qi_conv_run_tiles,
                                          .product = qi_conv_product};
