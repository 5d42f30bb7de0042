/**
 * Functions from one code to one code on a host: requantize, logistic, tanh and table; and add, sub
 * and mul of a tensor x
 *
 *   with one constant value           y = x * c
 *   with a function of x itself       y = x * f(x), for example swish with f = logistic
 *
 * Packing asks the core's kernel for the answers to all 256 bytes. A run looks them up. If all
 * answers are the byte with some bits flipped (requantize between uint8 and int8 of one scale), it
 * flips bits instead. If there are several tables, or if looking up is slow, it prefers lines with
 * the same answers (code_lines.h): those of requantize have one, and those of normalized pictures.
 *
 *   packed | head | table of 256 answers by byte | that of the next channel (table [C,256]) | ..
 *          | lines of all channels, laid out |
 */
#include "infer/host/lines/ask.h"
#include "infer/host/lines/code_lines.h"
#include "infer/host/loops/fast.h"

enum { TILE = 16384 };

/** Start of a packed node. */
struct head {
    int32_t channels;
    int32_t input; /* the answers are those to this input's codes */
    int32_t flips; /* every answer is byte ^ flip */
    uint8_t flip;
    int32_t has_lines;
    qi_scaling limits;
    qi_code_line_table lines;
};

static size_t head_bytes(void)
{
    return (sizeof(struct head) + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

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

/* ------------------------------------------------------------------ add, sub, mul as functions */

/** Does the node compute each code of its output from one code of input 0 alone? */
static int is_function(const qi_model *model, const qi_node *node)
{
    return node->n_outputs == 1 &&
           (node->kernel == &qi_kernel_requantize || node->kernel == &qi_kernel_logistic ||
            node->kernel == &qi_kernel_tanh ||
            (node->kernel == &qi_kernel_table && channels_of(model, node) == 1));
}

/** The function f where input `which` of the node is f of the other input, or NULL. */
static const qi_node *function_of_other(const qi_model *model, const qi_node *node, int which)
{
    for (int32_t i = 0; i < model->n_nodes; i++) {
        const qi_node *f = &model->nodes[i];
        if (is_function(model, f) && f->outputs[0] == node->inputs[which] &&
            f->inputs[0] == node->inputs[1 - which])
            return f;
    }
    return NULL;
}

static int is_binary(const qi_node *node)
{
    return node->kernel == &qi_kernel_add || node->kernel == &qi_kernel_sub ||
           node->kernel == &qi_kernel_mul;
}

const qi_node *qi_function_input(const qi_model *model, const qi_node *node)
{
    if (!is_binary(node) || qi_count(qi_output(model, node)) <= QI_TABLE)
        return NULL;
    const qi_node *f = function_of_other(model, node, 1);
    return f ? f : function_of_other(model, node, 0);
}

static int is_one_constant(const qi_tensor *t)
{
    return t->kind == QI_CONSTANT && qi_count(t) == 1;
}

/** The input on which alone the output of add, sub or mul depends, or -1. */
static int only_input(const qi_model *model, const qi_node *node)
{
    const qi_node *f = qi_function_input(model, node);
    if (f)
        return f->outputs[0] == node->inputs[1] ? 0 : 1;
    if (is_one_constant(qi_input(model, node, 1)))
        return 0;
    return is_one_constant(qi_input(model, node, 0)) ? 1 : -1;
}

static int binary_accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->elementwise && qi_count(qi_output(model, node)) > QI_TABLE &&
           only_input(model, node) >= 0;
}

/** May lines be quicker than tables? */
static int wants_lines(const qi_isa *isa, int32_t channels)
{
    const qi_elementwise *inner = isa->elementwise;
    return inner->lines && channels <= QI_TABLE && (size_t)channels > inner->fast_tables;
}

static size_t table_bytes(int32_t channels)
{
    return (size_t)channels * QI_TABLE;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    int32_t const channels = channels_of(model, node);
    size_t const block = isa->elementwise->line_block;
    size_t const bytes = head_bytes() + table_bytes(channels);
    if (!wants_lines(isa, channels))
        return bytes;
    return bytes + qi_lines_bytes(qi_lines_length((size_t)channels, block), block);
}

/* ------------------------------------------------------------------ packing */

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

/** The answers of a function to all bytes. */
static void answer_all(const qi_model *model, const qi_node *node, uint8_t *answers)
{
    uint8_t bytes[QI_TABLE];
    for (int i = 0; i < QI_TABLE; i++)
        bytes[i] = (uint8_t)i;
    if (node->kernel == &qi_kernel_table)
        copy_tables(model, node, answers);
    else
        qi_ask_bytes(model, node, (const void *[]){bytes}, answers);
}

/** The answers of add, sub or mul to all bytes of their only input. */
static void answer_binary(const qi_model *model, const qi_node *node, uint8_t *answers)
{
    uint8_t bytes[QI_TABLE], function[QI_TABLE];
    const qi_node *f = qi_function_input(model, node);
    int const only = only_input(model, node);
    const void *in[2];
    for (int i = 0; i < QI_TABLE; i++)
        bytes[i] = (uint8_t)i;
    if (f)
        answer_all(model, f, function);
    in[only] = bytes;
    in[1 - only] = f ? (const void *)function : qi_input(model, node, 1 - only)->data;
    qi_ask_bytes(model, node, in, answers);
}

/** The least and the largest answer: the lines are limited to them. */
static void set_limits(const qi_model *model, const qi_node *node, const uint8_t *tables,
                       struct head *head)
{
    uint8_t const flip = qi_output(model, node)->type == QI_U8 ? 0x80 : 0;
    head->limits = (qi_scaling){.lo = INT8_MAX, .hi = INT8_MIN, .y_flip = flip};
    for (size_t i = 0; i < table_bytes(head->channels); i++) {
        int32_t const code = (int8_t)(tables[i] ^ flip);
        head->limits.lo = code < head->limits.lo ? code : head->limits.lo;
        head->limits.hi = code > head->limits.hi ? code : head->limits.hi;
    }
}

static int fit_lines(qi_codes x, const uint8_t *tables, struct head *head)
{
    head->lines.jumps = 0;
    for (int32_t c = 0; c < head->channels; c++) {
        qi_code_line line;
        int8_t code[QI_TABLE];
        for (int i = 0; i < QI_TABLE; i++)
            code[i] = (int8_t)(tables[c * QI_TABLE + (i ^ x.flip)] ^ head->limits.y_flip);
        if (!qi_code_line_fit(code, head->limits.lo, head->limits.hi, x.flip ^ 0x80, x.offset,
                              head->lines.right, 0, &line))
            return 0;
        qi_code_line_set(&head->lines, c, &line);
    }
    return 1;
}

static void pack_lines(const qi_isa *isa, const qi_model *model, const qi_node *node,
                       const uint8_t *tables, struct head *head, void *lines)
{
    qi_codes const x = qi_codes_of(qi_input(model, node, head->input));
    size_t const channels = (size_t)head->channels, block = isa->elementwise->line_block;
    uint8_t channel[QI_TABLE];
    for (int i = 0; i < QI_TABLE; i++)
        channel[i] = (uint8_t)i;
    set_limits(model, node, tables, head);
    head->lines.right = QI_LINE_FINEST;
    while (!(head->has_lines = fit_lines(x, tables, head)) && head->lines.right > QI_LINE_COARSEST)
        head->lines.right--;
    if (head->has_lines)
        qi_lines_lay_out(isa->elementwise, &head->lines, channel, channels,
                         qi_lines_length(channels, block), lines);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    struct head *head = packed;
    uint8_t *tables = (uint8_t *)packed + head_bytes();
    memset(packed, 0, head_bytes());
    head->channels = 1;
    if (is_binary(node)) {
        head->input = only_input(model, node);
        answer_binary(model, node, tables);
    } else {
        head->channels = channels_of(model, node);
        answer_all(model, node, tables);
    }
    head->flips =
        head->channels == 1 && only_flips(qi_input(model, node, head->input), tables, &head->flip);
    if (!head->flips && wants_lines(isa, head->channels))
        pack_lines(isa, model, node, tables, head, tables + table_bytes(head->channels));
}

/* ------------------------------------------------------------------ running */

/** Codes of a tile, which is whole pixels, and whole lines of the cache if it can be. */
static size_t tile_codes(const qi_model *model, const qi_node *node)
{
    size_t const channels = (size_t)channels_of(model, node), aligned = channels * QI_FAST_ALIGN;
    size_t const least = aligned < TILE ? aligned : channels;
    return least < TILE ? TILE / least * least : least;
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    size_t const tile = tile_codes(model, node);
    return (int32_t)((qi_output(model, node)->bytes + tile - 1) / tile);
}

static void run(const qi_fast_call *call, int32_t index)
{
    const qi_elementwise *inner = call->isa->elementwise;
    const struct head *head = call->packed;
    const uint8_t *tables = (const uint8_t *)call->packed + head_bytes();
    size_t const channels = (size_t)head->channels;
    size_t const all = qi_output(call->model, call->node)->bytes;
    size_t const tile = tile_codes(call->model, call->node), at = (size_t)index * tile;
    size_t const n = all - at < tile ? all - at : tile;
    const uint8_t *x = (const uint8_t *)call->in[head->input] + at;
    uint8_t *y = (uint8_t *)call->out + at;
    if (head->flips)
        inner->flip(head->flip, x, y, n);
    else if (head->has_lines)
        qi_lines_run(inner, &head->lines, tables + table_bytes(head->channels),
                     qi_lines_length(channels, inner->line_block), &head->limits, x, y, n);
    else if (channels == 1)
        inner->lookup(tables, x, y, n);
    else
        inner->lookup_channels(tables, channels, x, y, n);
}

#define MAP(name, op, accepts_)                                                                    \
    const qi_fast qi_fast_##name = {.kernel = &qi_kernel_##op,                                     \
                                    .accepts = accepts_,                                           \
                                    .packed_bytes = packed_bytes,                                  \
                                    .pack = pack,                                                  \
                                    .tiles = tiles,                                                \
                                    .run = run,                                                    \
                                    .in_place = 1}
MAP(requantize, requantize, accepts);
MAP(logistic, logistic, accepts);
MAP(tanh, tanh, accepts);
MAP(table, table, accepts);
MAP(add_function, add, binary_accepts);
MAP(sub_function, sub, binary_accepts);
MAP(mul_function, mul, binary_accepts);
