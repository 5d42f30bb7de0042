/**
 * resize_bilinear and resize_nearest on a host. A tile is one row of outputs.
 *
 * bilinear: the two input rows become one row of sums, and the outputs are blends of two of its
 * pixels (blend.h). If few of the input's columns are read, only these get sums.
 *
 *   packed   head | where each output row lies | where each output column lies |
 *   scratch  | one sum for each column and channel of the input |
 *
 * nearest: pixels are copied. Successive rows that are equal are copied as a whole.
 *
 *   packed   | the input row of each output row | the input column of each output column |
 */
#include "infer/host/drivers/resize_plan.h"
#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"
#include "infer/kernels/resize.h"

#include <string.h>

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    return y->dims[0] * y->dims[1];
}

/* ------------------------------------------------------------------ bilinear */

static int bilinear_accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    enum { MOST = 1 << 20 }; /* sums of a row: each thread has room for them */
    const qi_tensor *x = qi_input(model, node, 0);
    return isa->elementwise && (int64_t)x->dims[2] * x->dims[3] <= MOST &&
           qi_resize_plan_of(model, node).fits;
}

/** Start of a packed node. */
struct head {
    qi_resize_plan plan;
    qi_between places[]; /* of rows, then of columns */
};

static size_t bilinear_packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    return sizeof(struct head) + (size_t)(y->dims[1] + y->dims[2]) * sizeof(qi_between);
}

static void bilinear_pack(const qi_isa *isa, const qi_model *model, const qi_node *node,
                          void *packed)
{
    struct head *head = packed;
    head->plan = qi_resize_plan_of(model, node);
    qi_between *to = head->places;
    for (int32_t i = 0; i < head->plan.v.axis.out; i++)
        *to++ = qi_resize_between(&head->plan, &head->plan.v, i);
    for (int32_t i = 0; i < head->plan.h.axis.out; i++)
        *to++ = qi_resize_between(&head->plan, &head->plan.h, i);
}

static size_t bilinear_scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0);
    size_t const sum = (size_t)qi_resize_plan_of(model, node).blend.bits / 8;
    return (size_t)x->dims[2] * (size_t)x->dims[3] * sum + QI_SLACK;
}

/** The two input rows of a tile. */
struct rows {
    const uint8_t *above, *below;
    const uint32_t *weight;
};

/** Blend the codes first..end - 1 of the rows. */
static void blend_rows(const qi_blend *b, const qi_blend_loops *loops, const struct rows *rows,
                       uint8_t *sums, size_t first, size_t end)
{
    loops->rows(b->flip, rows->above + first, rows->below + first, rows->weight,
                sums + first * (size_t)b->bits / 8, end - first);
}

/** Are so few columns read that only these should get sums? A call costs as much as CALL sums. */
static int is_sparse(const qi_axis *h, size_t channels)
{
    enum { CALL = 64 };
    return (size_t)h->out * (2 * channels + CALL) < (size_t)h->in * channels;
}

static void run_bilinear(const qi_fast_call *call, int32_t index)
{
    const struct head *head = call->packed;
    const qi_blend *blend = &head->plan.blend;
    const qi_axis *v = &head->plan.v.axis, *h = &head->plan.h.axis;
    const qi_elementwise *inner = call->isa->elementwise;
    const qi_blend_loops *loops = blend->bits == 16 ? &inner->words : &inner->lanes;
    const qi_between *row = &head->places[index % v->out];
    qi_columns const columns = {head->places + v->out, (size_t)h->out,
                                (size_t)qi_output(call->model, call->node)->dims[3]};
    size_t const c = columns.channels, in = (size_t)h->in * c;
    const uint8_t *picture =
        (const uint8_t *)call->in[0] + (size_t)(index / v->out) * (size_t)v->in * in;
    struct rows const rows = {picture + (size_t)row->lower * in, picture + (size_t)row->upper * in,
                              row->weight};
    if (is_sparse(h, c))
        for (size_t i = 0; i < columns.count; i++)
            blend_rows(blend, loops, &rows, call->scratch, (size_t)columns.at[i].lower * c,
                       (size_t)(columns.at[i].upper + 1) * c);
    else
        blend_rows(blend, loops, &rows, call->scratch, 0, in);
    loops->columns(blend, &columns, call->scratch,
                   (uint8_t *)call->out + (size_t)index * columns.count * c);
}

const qi_fast qi_fast_resize_bilinear = {.kernel = &qi_kernel_resize_bilinear,
                                         .accepts = bilinear_accepts,
                                         .packed_bytes = bilinear_packed_bytes,
                                         .pack = bilinear_pack,
                                         .scratch = bilinear_scratch,
                                         .tiles = tiles,
                                         .run = run_bilinear};

/* ------------------------------------------------------------------ nearest */

static int nearest_accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->elementwise != NULL;
}

static size_t nearest_packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *y = qi_output(model, node);
    return (size_t)(y->dims[1] + y->dims[2]) * sizeof(int32_t);
}

static void nearest_pack(const qi_isa *isa, const qi_model *model, const qi_node *node,
                         void *packed)
{
    int32_t *to = packed;
    for (int d = 1; d < 3; d++) {
        qi_axis const axis = qi_resize_axis_of(model, node, d);
        for (int32_t i = 0; i < axis.out; i++)
            *to++ = qi_nearest_position(&axis, i);
    }
}

static void run_nearest(const qi_fast_call *call, int32_t index, int32_t end)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *rows = call->packed, *columns = rows + y->dims[1];
    size_t const pixel = (size_t)x->dims[3];
    size_t const in = (size_t)x->dims[2] * pixel, out = (size_t)y->dims[2] * pixel;
    uint8_t *to = (uint8_t *)call->out + (size_t)index * out;
    const uint8_t *copied = NULL;
    for (; index < end; index++, to += out) {
        size_t const picture = (size_t)(index / y->dims[1]) * (size_t)x->dims[1];
        const uint8_t *from =
            (const uint8_t *)call->in[0] + (picture + (size_t)rows[index % y->dims[1]]) * in;
        if (from == copied)
            memcpy(to, to - out, out);
        else
            qk_nearest_row(columns, y->dims[2], pixel, from, to);
        copied = from;
    }
}

const qi_fast qi_fast_resize_nearest = {.kernel = &qi_kernel_resize_nearest,
                                        .accepts = nearest_accepts,
                                        .packed_bytes = nearest_packed_bytes,
                                        .pack = nearest_pack,
                                        .tiles = tiles,
                                        .run_tiles = run_nearest};
