/** concat on a host: the core's copies, cut into tiles for threads. */
#include "infer/host/loops/fast.h"
#include "infer/model/op.h"

#include <string.h>

enum { TILE = 32768 };

/** Values of t from the axis on: what one step of the axes before it covers. */
static size_t inner_values(const qi_model *model, const qi_node *node, const qi_tensor *t)
{
    size_t n = 1;
    for (int d = node->params[QI_CONCAT_AXIS]; d < t->rank; d++)
        n *= (size_t)t->dims[d];
    return n;
}

/** Steps of the axes before the concatenated one in a tile. */
static size_t tile_steps(size_t whole)
{
    return whole < TILE ? TILE / whole : 1;
}

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->elementwise != NULL;
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    size_t const whole = inner_values(model, node, y), each = tile_steps(whole);
    return (int32_t)((y->bytes / whole + each - 1) / each);
}

/** Parts are often so short that a call of memcpy takes longer than the copy. */
static void copy_part(uint8_t *restrict to, const uint8_t *restrict from, size_t n)
{
    enum { PIECE = 32, MOST = 512 };
    if (n < PIECE || n > MOST) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 0; i + PIECE < n; i += PIECE)
        memcpy(to + i, from + i, PIECE);
    memcpy(to + n - PIECE, from + n - PIECE, PIECE); /* may overlap the one before */
}

static void run(const qi_fast_call *call, int32_t index)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    size_t const whole = inner_values(call->model, call->node, y), steps = y->bytes / whole;
    size_t const each = tile_steps(whole), first = (size_t)index * each;
    size_t const end = first + each < steps ? first + each : steps;
    uint8_t *to = call->out;
    for (int32_t i = 0; i < call->node->n_inputs; i++) {
        size_t const part =
            inner_values(call->model, call->node, qi_input(call->model, call->node, i));
        const uint8_t *from = call->in[i];
        for (size_t j = first; from != to && j < end; j++) /* else the planner put it there */
            copy_part(to + j * whole, from + j * part, part);
        to += part;
    }
}

const qi_fast qi_fast_concat = {
    .kernel = &qi_kernel_concat, .accepts = accepts, .tiles = tiles, .run = run};
