/**
 * Functions from one code to one code on a host: requantize, logistic, tanh and table. Packing asks
 * the core's kernel for the answers to all 256 bytes. A run looks them up. If all answers are the
 * byte with some bits flipped (requantize between uint8 and int8 of one scale), it flips bits
 * instead.
 *
 *   packed | head | table of 256 answers by byte | that of the next channel (table [C,256]) | ..
 */
#include "infer/host/elementwise.h"
#include "infer/host/fast.h"

enum { TILE = 16384, HEAD = 64 };

/** Start of a packed node. */
struct head {
    int32_t channels;
    int32_t flips; /* every answer is byte ^ flip */
    uint8_t flip;
};

static int32_t channels_of(const qi_model *model, const qi_node *node)
{
    return node->kernel == &qi_kernel_table
               ? (int32_t)(qi_count(qi_input(model, node, 1)) / QI_TABLE)
               : 1;
}

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->elementwise && qi_count(qi_input(model, node, 0)) > QI_TABLE;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return HEAD + (size_t)channels_of(model, node) * QI_TABLE;
}

/* ------------------------------------------------------------------ packing */

/**
 * The answers of the node's kernel, run on a tensor of all bytes. Bytes that are not codes of x get
 * answers too, which are never read.
 */
static void ask_kernel(const qi_model *model, const qi_node *node, uint8_t *answers)
{
    uint8_t bytes[QI_TABLE];
    qi_tensor tensors[] = {*qi_input(model, node, 0), *qi_output(model, node)};
    int32_t const indices[] = {0, 1};
    qi_model small = *model;
    qi_node one = *node;
    for (int i = 0; i < QI_TABLE; i++)
        bytes[i] = (uint8_t)i;
    for (int i = 0; i < 2; i++) {
        tensors[i].rank = 1;
        tensors[i].bytes = QI_TABLE;
        for (int d = 0; d < QI_MAX_RANK; d++)
            tensors[i].dims[d] = d ? 1 : QI_TABLE;
    }
    small.tensors = tensors;
    one.inputs = indices;
    one.outputs = indices + 1;
    const void *in[] = {bytes};
    void *out[] = {answers};
    qi_call const call = {&small, &one, in, out, NULL};
    one.kernel->run(&call);
}

/** Copy the tables of the file, ordered by byte instead of by code. */
static void copy_tables(const qi_model *model, const qi_node *node, uint8_t *tables)
{
    const qi_tensor *t = qi_input(model, node, 1);
    const uint8_t *from = t->data;
    uint8_t const flip = qi_input(model, node, 0)->type == QI_S8 ? 0x80 : 0;
    for (size_t i = 0; i < t->bytes; i++)
        tables[i] = from[i ^ flip];
}

/** Is the answer to each code of x the byte with some bits flipped? */
static int only_flips(const qi_tensor *x, const uint8_t *answers, uint8_t *flip)
{
    *flip = (uint8_t)(qi_code_lo(x) ^ answers[(uint8_t)qi_code_lo(x)]);
    for (int32_t q = qi_code_lo(x); q <= qi_code_hi(x); q++)
        if (answers[(uint8_t)q] != ((uint8_t)q ^ *flip))
            return 0;
    return 1;
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    struct head *head = packed;
    uint8_t *tables = (uint8_t *)packed + HEAD;
    memset(packed, 0, HEAD);
    head->channels = channels_of(model, node);
    if (node->kernel == &qi_kernel_table)
        copy_tables(model, node, tables);
    else
        ask_kernel(model, node, tables);
    head->flips = head->channels == 1 && only_flips(qi_input(model, node, 0), tables, &head->flip);
}

/* ------------------------------------------------------------------ running */

/** Codes of a tile, which is whole pixels. */
static size_t tile_codes(const qi_model *model, const qi_node *node)
{
    size_t const channels = (size_t)channels_of(model, node);
    return channels < TILE ? TILE / channels * channels : channels;
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    size_t const tile = tile_codes(model, node);
    return (int32_t)((qi_input(model, node, 0)->bytes + tile - 1) / tile);
}

static void run(const qi_fast_call *call, int32_t index)
{
    const qi_elementwise *inner = call->isa->elementwise;
    const struct head *head = call->packed;
    const uint8_t *tables = (const uint8_t *)call->packed + HEAD;
    size_t const all = qi_input(call->model, call->node, 0)->bytes;
    size_t const tile = tile_codes(call->model, call->node), at = (size_t)index * tile;
    size_t const n = all - at < tile ? all - at : tile;
    const uint8_t *x = (const uint8_t *)call->in[0] + at;
    uint8_t *y = (uint8_t *)call->out + at;
    if (head->flips)
        inner->flip(head->flip, x, y, n);
    else if (head->channels == 1)
        inner->lookup(tables, x, y, n);
    else
        inner->lookup_channels(tables, (size_t)head->channels, x, y, n);
}

#define MAP(op)                                                                                    \
    const qi_fast qi_fast_##op = {.kernel = &qi_kernel_##op,                                       \
                                  .accepts = accepts,                                              \
                                  .packed_bytes = packed_bytes,                                    \
                                  .pack = pack,                                                    \
                                  .tiles = tiles,                                                  \
                                  .run = run,                                                      \
                                  .in_place = 1}
MAP(requantize);
MAP(logistic);
MAP(tanh);
MAP(table);
