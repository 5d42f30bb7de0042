#include "kernels/one_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 128, GUARD_BYTE = 0xa5 };

/* ------------------------------------------------------------------ random numbers */

uint32_t node_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) ^ (uint32_t)(*seed >> 11);
}

int32_t node_random_in(uint64_t *seed, int32_t lo, int32_t hi)
{
    return (int32_t)(lo + (int64_t)(node_random(seed) % (uint64_t)((int64_t)hi - lo + 1)));
}

int32_t node_lowest(qi_type type, int bits)
{
    return type == QI_U8 ? 0 : -(1 << (bits - 1));
}

int32_t node_zero_point(uint64_t *seed, qi_type type, int bits)
{
    return node_lowest(type, bits) + node_random_in(seed, 0, (1 << bits) - 1);
}

int32_t node_outputs(int32_t size, int32_t pad, int32_t kernel, int32_t dilation, int32_t stride,
                     uint64_t *seed)
{
    int32_t const extent = (kernel - 1) * dilation + 1;
    int32_t const most = (size - 1 + pad) / stride + 1; /* the last window begins in the picture */
    int32_t const same = (size + stride - 1) / stride, valid = (size - extent + stride) / stride;
    int32_t const which = node_random_in(seed, 0, 3);
    int32_t const n = which == 0 ? most : which == 1 && valid > 0 ? valid : same;
    return n < most ? n : most;
}

/* ------------------------------------------------------------------ building */

void node_init(one_node *n, const qi_kernel *kernel, qi_rounding rounding, uint64_t *seed)
{
    memset(n, 0, sizeof *n);
    n->seed = seed;
    n->node = (qi_node){.kernel = kernel,
                        .name = "node",
                        .inputs = n->inputs,
                        .outputs = &n->output,
                        .params = n->params,
                        .n_outputs = 1,
                        .rounding = rounding};
    n->model.tensors = n->tensors;
    n->model.nodes = &n->node;
    n->model.n_nodes = 1;
}

void node_free(one_node *n)
{
    for (size_t i = 0; i < sizeof n->memory / sizeof n->memory[0]; i++)
        free(n->memory[i]);
}

static qi_tensor *add_tensor(one_node *n, qi_tensor_kind kind, qi_type type, int bits,
                             int32_t zero_point, int rank, const int32_t *dims)
{
    qi_tensor *t = &n->tensors[n->model.n_tensors++];
    *t = (qi_tensor){.name = "tensor",
                     .type = (uint8_t)type,
                     .kind = (uint8_t)kind,
                     .rank = (uint8_t)rank,
                     .bits = (uint8_t)bits,
                     .zero_point = zero_point,
                     .dims = {1, 1, 1, 1},
                     .channel_scales = -1};
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    t->bytes = (size_t)qi_count(t) * qi_type_bytes(type);
    return t;
}

/** Memory of the newest tensor, which becomes an input: bytes at an alignment, garbage behind. */
static void *add_input(one_node *n, qi_tensor *t)
{
    int32_t const index = n->model.n_tensors - 1;
    size_t const shift = t->kind == QI_CONSTANT ? 0
                                                : (size_t)node_random_in(n->seed, 0, 63) &
                                                      ~(qi_type_bytes(t->type) - 1);
    uint8_t *memory = malloc(shift + t->bytes + QI_SLACK);
    if (!memory)
        abort();
    for (size_t i = 0; i < shift + t->bytes + QI_SLACK; i++)
        memory[i] = (uint8_t)node_random(n->seed);
    n->memory[index] = memory;
    n->inputs[n->node.n_inputs] = index;
    n->in[n->node.n_inputs++] = memory + shift;
    if (t->kind == QI_CONSTANT)
        t->data = memory + shift;
    return memory + shift;
}

static int32_t filled(one_node *n, node_fill fill, int32_t lo, int32_t hi)
{
    if (fill == FILL_RANDOM)
        return node_random_in(n->seed, lo, hi);
    if (fill == FILL_EXTREMES)
        return node_random(n->seed) & 1 ? lo : hi;
    if (fill == FILL_SIGNS)
        return node_random(n->seed) & 1 ? -1 : 1;
    return fill == FILL_LOWEST ? lo : hi;
}

void node_codes(one_node *n, qi_tensor_kind kind, qi_type type, int bits, int32_t zero_point,
                int rank, const int32_t *dims, node_fill fill)
{
    qi_tensor *t = add_tensor(n, kind, type, bits, zero_point, rank, dims);
    void *codes = add_input(n, t);
    for (size_t i = 0; i < (size_t)qi_count(t); i++)
        qi_store_value(type, codes, i, filled(n, fill, qi_code_lo(t), qi_code_hi(t)));
}

void node_s32(one_node *n, int32_t count, const int32_t *values)
{
    qi_tensor *t = add_tensor(n, QI_CONSTANT, QI_S32, 32, 0, 1, &count);
    memcpy(add_input(n, t), values, t->bytes);
}

void node_requantization(one_node *n, int32_t channels, int32_t shift_lo, int32_t shift_hi)
{
    int32_t *values = malloc((size_t)channels * sizeof *values);
    int const one_for_all = node_random_in(n->seed, 0, 3) == 0;
    int32_t const count = one_for_all ? 1 : channels;
    if (!values)
        abort();
    for (int32_t i = 0; i < channels; i++)
        values[i] = node_random_in(n->seed, -40000, 40000);
    node_s32(n, channels, values);
    for (int32_t i = 0; i < count; i++) {
        int const any = node_random_in(n->seed, 0, 15);
        values[i] = node_random_in(n->seed, any ? 1 << 30 : 0, INT32_MAX);
    }
    node_s32(n, count, values);
    int32_t const f = n->node.fraction;
    for (int32_t i = 0; i < count; i++)
        values[i] = qi_clamp(node_random_in(n->seed, shift_lo, shift_hi) - f, -31, 31);
    node_s32(n, count, values);
    free(values);
}

void node_output(one_node *n, qi_type type, int bits, int32_t zero_point, int rank,
                 const int32_t *dims)
{
    n->output = n->model.n_tensors;
    add_tensor(n, QI_ACTIVATION, type, bits, zero_point, rank, dims);
}

void node_params(one_node *n, int count, const int32_t *params)
{
    memcpy(n->params, params, (size_t)count * sizeof *params);
    n->node.n_params = count;
}

bool node_check(one_node *n)
{
    qi_error err = {0};
    qi_status st = n->node.kernel->check(&n->model, &n->node, 0, &err);
    if (st == QI_ERR_OVERFLOW && err.limit != INT32_MAX) { /* it says what it should have been */
        n->node.max_accumulator = err.limit;
        st = n->node.kernel->check(&n->model, &n->node, 0, &err);
    }
    if (st)
        fprintf(stderr, "%s refuses: %s: %lld, limit %lld\n", n->node.kernel->name, err.what,
                (long long)err.value, (long long)err.limit);
    return !st;
}

/* ------------------------------------------------------------------ comparing */

/** Bytes between guards. */
struct guarded {
    uint8_t *memory, *bytes;
    size_t count;
};

/** QI_FAST_ALIGN-aligned but for `shift`; filled with garbage. */
static struct guarded guard(size_t count, size_t shift, uint64_t *seed)
{
    size_t const all = (GUARD + shift + count + GUARD + 63) / 64 * 64;
    struct guarded g = {aligned_alloc(QI_FAST_ALIGN, all), NULL, count};
    if (!g.memory)
        abort();
    memset(g.memory, GUARD_BYTE, all);
    g.bytes = g.memory + GUARD + shift;
    for (size_t i = 0; i < count; i++)
        g.bytes[i] = (uint8_t)node_random(seed);
    return g;
}

/** Frees it; false if a guard byte has changed. */
static bool release(struct guarded *g, const char *what, const char *which)
{
    bool whole = true;
    for (int i = 1; i <= GUARD; i++)
        whole &= g->bytes[-i] == GUARD_BYTE && g->bytes[g->count + (size_t)i - 1] == GUARD_BYTE;
    if (!whole)
        fprintf(stderr, "%s: writes outside its %s\n", what, which);
    free(g->memory);
    return whole;
}

static void run_core(const one_node *n, const void *const *in, void *y)
{
    const qi_kernel *kernel = n->node.kernel;
    size_t const bytes = kernel->scratch ? kernel->scratch(&n->model, &n->node) : 0;
    void *scratch = malloc(bytes + 1);
    void *out[] = {y};
    qi_call const call = {&n->model, &n->node, in, out, scratch};
    if (!scratch)
        abort();
    kernel->run(&call);
    free(scratch);
}

/** Run all tiles, beginning with any of them, each run of tiles with new garbage in its scratch. */
static void run_tiles(const one_node *n, const qi_fast *fast, const qi_fast_call *call,
                      const struct guarded *scratch)
{
    int32_t const tiles = fast->tiles(call->isa, &n->model, &n->node);
    int32_t const first = node_random_in(n->seed, 0, tiles - 1);
    for (int32_t i = 0; i < tiles;) {
        int32_t const at = (first + i) % tiles, most = at < first ? first - at : tiles - at;
        int32_t const count = node_random_in(n->seed, 1, most);
        memset(scratch->bytes, (int)(node_random(n->seed) & 0xff), scratch->count);
        qi_fast_run_tiles(fast, call, at, at + count);
        i += count;
    }
}

static bool same(const one_node *n, const uint8_t *got, const uint8_t *expected, const char *what)
{
    size_t const bytes = n->tensors[n->output].bytes;
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != expected[i]) {
            fprintf(stderr, "%s: byte %zu of %zu is %d, scalar %d\n", what, i, bytes, got[i],
                    expected[i]);
            return false;
        }
    return true;
}

/** May the output lie over input k? */
static bool may_replace(const one_node *n, int32_t k)
{
    int const in_place = n->node.kernel->in_place;
    const qi_tensor *x = &n->tensors[n->inputs[k]];
    return (k == 0 ? in_place == QI_OVER_FIRST || in_place == QI_OVER_EITHER
                   : k < n->node.n_inputs && in_place == QI_OVER_EITHER) &&
           x->kind == QI_ACTIVATION && x->bytes == n->tensors[n->output].bytes;
}

/**
 * Run the core, and the same tiles of the driver, in place: input k is copied to where the output
 * is.
 */
static bool compare_in_place(const one_node *n, const qi_fast *fast, qi_fast_call call, int32_t k,
                             const struct guarded *scratch, const uint8_t *expected,
                             const char *what)
{
    size_t const bytes = n->tensors[n->output].bytes;
    size_t const item = qi_type_bytes(n->tensors[n->output].type);
    bool good = true;
    for (int core = fast->in_place ? 0 : 1; core < 2 && may_replace(n, k); core++) {
        char which[320];
        snprintf(which, sizeof which, "%s, over input %d%s", what, (int)k, core ? ", core" : "");
        size_t const shift = (size_t)node_random_in(n->seed, 0, 63) & ~(item - 1);
        struct guarded both = guard(bytes, shift, n->seed);
        memcpy(both.bytes, n->in[k], bytes);
        call.in[k] = call.out = both.bytes;
        if (core)
            run_core(n, call.in, both.bytes);
        else
            run_tiles(n, fast, &call, scratch);
        good &= same(n, both.bytes, expected, which);
        good &= release(&both, which, "output");
    }
    return good;
}

bool node_compare(one_node *n, const qi_fast *fast, const qi_isa *isa, const char *what,
                  bool may_leave)
{
    if (!fast->accepts(isa, &n->model, &n->node)) {
        if (!may_leave)
            fprintf(stderr, "%s: left to the core\n", what);
        return may_leave;
    }
    size_t const pack = fast->packed_bytes ? fast->packed_bytes(isa, &n->model, &n->node) : 0;
    size_t const work = fast->scratch ? fast->scratch(isa, &n->model, &n->node) : 0;
    size_t const bytes = n->tensors[n->output].bytes;
    uint8_t *expected = malloc(bytes);
    struct guarded packed = guard(pack, 0, n->seed), scratch = guard(work, 0, n->seed);
    size_t const item = qi_type_bytes(n->tensors[n->output].type);
    size_t const shift = (size_t)node_random_in(n->seed, 0, 63) & ~(item - 1);
    struct guarded out = guard(bytes, shift, n->seed);
    qi_fast_call call = {.isa = isa,
                         .model = &n->model,
                         .node = &n->node,
                         .out = out.bytes,
                         .packed = packed.bytes,
                         .scratch = scratch.bytes};
    if (!expected)
        abort();
    memcpy(call.in, n->in, sizeof n->in);
    if (fast->packed_bytes)
        fast->pack(isa, &n->model, &n->node, packed.bytes);
    run_core(n, n->in, expected);
    run_tiles(n, fast, &call, &scratch);
    bool good = same(n, out.bytes, expected, what);
    good &= compare_in_place(n, fast, call, 0, &scratch, expected, what);
    good &= compare_in_place(n, fast, call, 1, &scratch, expected, what);
    good &= release(&packed, what, "packed weights");
    good &= release(&scratch, what, "scratch");
    good &= release(&out, what, "output");
    free(expected);
    return good;
}
