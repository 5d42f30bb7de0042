/**
 * conv2d and fully_connected of 16-bit codes: the core's own loops over windows and channels, in
 * parts for threads, with the dot products of the instruction set.
 */
#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"

enum { WINDOWS = 4 * QI_TILE, CHANNELS = 16 }; /* of a tile */

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->elementwise && isa->elementwise->dots;
}

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return node->kernel->scratch(model, node);
}

static int32_t windows_of(const qi_model *model, const qi_node *node)
{
    const int32_t *y = qi_output(model, node)->dims;
    return y[0] * y[1] * y[2];
}

static int32_t channels_of(const qi_model *model, const qi_node *node)
{
    return qi_input(model, node, 1)->dims[0];
}

static int32_t conv_tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return (windows_of(model, node) - 1) / WINDOWS + 1;
}

static int32_t fully_connected_tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return (channels_of(model, node) - 1) / CHANNELS + 1;
}

typedef void part_fn(const qi_call *call, int32_t first, int32_t end, qi_dots_fn *dots);

/** The `size` outputs of a tile, fewer in the last. */
static void run_part(const qi_fast_call *fast, part_fn *part, int32_t tile, int32_t size,
                     int32_t all)
{
    void *out[] = {fast->out};
    qi_call const call = {fast->model, fast->node, fast->in, out, fast->scratch};
    int32_t const first = tile * size;
    part(&call, first, all - first < size ? all : first + size, fast->isa->elementwise->dots);
}

static void run_conv(const qi_fast_call *fast, int32_t tile)
{
    run_part(fast, qi_run_conv2d_part, tile, WINDOWS, windows_of(fast->model, fast->node));
}

static void run_fully_connected(const qi_fast_call *fast, int32_t tile)
{
    run_part(fast, qi_run_fully_connected_part, tile, CHANNELS,
             channels_of(fast->model, fast->node));
}

const qi_fast qi_fast_wide_conv2d = {.kernel = &qi_kernel_conv2d,
                                     .accepts = accepts,
                                     .scratch = scratch,
                                     .tiles = conv_tiles,
                                     .run = run_conv,
                                     .is_wide = 1};
const qi_fast qi_fast_wide_fully_connected = {.kernel = &qi_kernel_fully_connected,
                                              .accepts = accepts,
                                              .scratch = scratch,
                                              .tiles = fully_connected_tiles,
                                              .run = run_fully_connected,
                                              .is_wide = 1};
