/**
 * pad on a host. A row is what lies along the last axis that is padded, with the axes behind it: of
 * pictures all columns and channels. Each is copied as a whole, with its borders; or it is border.
 * A tile is one row.
 */
#include "infer/host/loops/fast.h"
#include "infer/model/op.h"

#include <string.h>

/** How y is cut into rows. */
struct rows {
    int axis; /* along which a row lies */
    const int32_t *x_dims, *y_dims, *before;
    size_t left, copied, bytes; /* of a row: its border before x, its part of x, all */
};

static struct rows rows_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    struct rows r = {.axis = QI_MAX_RANK - 1,
                     .x_dims = x->dims,
                     .y_dims = y->dims,
                     .before = node->params + QI_PAD_BEFORE};
    size_t inner = 1; /* of one step along the axis */
    for (; r.axis > 0 && x->dims[r.axis] == y->dims[r.axis]; r.axis--)
        inner *= (size_t)x->dims[r.axis];
    r.left = (size_t)r.before[r.axis] * inner;
    r.copied = (size_t)x->dims[r.axis] * inner;
    r.bytes = (size_t)y->dims[r.axis] * inner;
    return r;
}

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    enum { LEAST = 256 }; /* bytes of a row; the core is faster with many short ones */
    struct rows const r = rows_of(model, node);
    int const is_last = r.axis == qi_input(model, node, 0)->rank - 1;
    return isa->elementwise != NULL && (!is_last || r.bytes >= LEAST);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return (int32_t)(qi_output(model, node)->bytes / rows_of(model, node).bytes);
}

/** Where row `index` of y lies along the axes before the row's own. */
static void place_of(const struct rows *r, int32_t index, int32_t *at)
{
    for (int d = r->axis - 1; d >= 0; d--) {
        at[d] = index % r->y_dims[d];
        index /= r->y_dims[d];
    }
}

/** The same for the next row. */
static void next_place(const struct rows *r, int32_t *at)
{
    for (int d = r->axis - 1; d >= 0; d--) {
        if (++at[d] < r->y_dims[d])
            return;
        at[d] = 0;
    }
}

/** The row of x that becomes the row of y there, or -1: this is border. */
static int64_t row_of_x(const struct rows *r, const int32_t *at)
{
    int64_t row = 0;
    for (int d = 0; d < r->axis; d++) {
        int32_t const x = at[d] - r->before[d];
        if (x < 0 || x >= r->x_dims[d])
            return -1;
        row = row * r->x_dims[d] + x;
    }
    return row;
}

static void run(const qi_fast_call *call, int32_t index, int32_t end)
{
    struct rows const r = rows_of(call->model, call->node);
    int const value = (uint8_t)call->node->params[QI_PAD_VALUE];
    uint8_t *to = (uint8_t *)call->out + (size_t)index * r.bytes;
    int32_t at[QI_MAX_RANK] = {0};
    place_of(&r, index, at);
    for (; index < end; index++, to += r.bytes, next_place(&r, at)) {
        int64_t const row = row_of_x(&r, at);
        if (row < 0) {
            memset(to, value, r.bytes);
            continue;
        }
        memset(to, value, r.left);
        memcpy(to + r.left, (const uint8_t *)call->in[0] + (size_t)row * r.copied, r.copied);
        memset(to + r.left + r.copied, value, r.bytes - r.left - r.copied);
    }
}

const qi_fast qi_fast_pad = {
    .kernel = &qi_kernel_pad, .accepts = accepts, .tiles = tiles, .run_tiles = run};
