/**
 * The planner on random graphs. Tensors that are alive at the same time never share memory.
 * (Exceptions: a reshape and its input, a slice and its input, a part and what it is joined to, and
 * an op that runs in place of an input that is needed no more.) Sharing memory gives the same bytes
 * as memory for each. The content of the arena before a run changes nothing. Also the self test,
 * visits, and ops that must be refused.
 */
#include "common/suite.h"
#include "infer/host/host.h"
#include "infer/model/model.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 300, MOST_OPS = 24, VALUES = 256, MOST_TENSORS = 160, MOST_INPUTS = 2 };

/* ------------------------------------------------------------------ random graphs */

/** VALUES values in one of several shapes, so that every tensor fits every op. */
static int random_activation(qat_qgraph *g, codes_of c, uint64_t *seed)
{
    static const int32_t shapes[][4] = {
        {1, 4, 4, 16}, {1, 2, 8, 16}, {1, 1, 16, 16}, {4, 2, 2, 16}};
    return net_activation(g, c, 4, shapes[test_random(seed) % 4]);
}

static int requantize(qat_qgraph *g, int x, codes_of c, uint64_t *seed)
{
    int32_t const params[] = {test_random_in(seed, 1 << 30, INT32_MAX), 0, codes_lo(c),
                              codes_hi(c)};
    int const y = net_activation(g, c, 4, g->tensors[x].dims);
    net_op(g, "requantize", QI_ROUND_TWICE, 1, &x, y, 4, params, 0);
    return y;
}

static int reshape(qat_qgraph *g, int x, codes_of c, uint64_t *seed)
{
    int const y = random_activation(g, c, seed);
    net_op(g, "reshape", QI_ROUND_NONE, 1, &x, y, 0, NULL, 0);
    return y;
}

/** a + b of equal shape; reshapes where it is not. Uses the scratch of add. */
static int add(qat_qgraph *g, int a, int b, codes_of c)
{
    int inputs[] = {a, b};
    if (memcmp(g->tensors[a].dims, g->tensors[b].dims, sizeof g->tensors[a].dims) != 0) {
        inputs[1] = net_activation(g, c, 4, g->tensors[a].dims);
        net_op(g, "reshape", QI_ROUND_NONE, 1, &b, inputs[1], 0, NULL, 0);
    }
    int32_t const params[] = {20, 1 << 30, 0, 1 << 30, 0, 1 << 30, -19, codes_lo(c), codes_hi(c)};
    int const y = net_activation(g, c, 4, g->tensors[a].dims);
    net_op(g, "add", QI_ROUND_TWICE, 2, inputs, y, 9, params, 0);
    return y;
}

/** Not an op in place: every code moves. */
static int transpose(qat_qgraph *g, int x, codes_of c)
{
    const int32_t *from = g->tensors[x].dims;
    int32_t const perm[] = {3, 2, 1, 0}, dims[] = {from[3], from[2], from[1], from[0]};
    int const y = net_activation(g, c, 4, dims);
    net_op(g, "transpose", QI_ROUND_NONE, 1, &x, y, 4, perm, 0);
    return y;
}

/** Some positions of x along an axis. */
static int slice(qat_qgraph *g, int x, codes_of c, int axis, int32_t begin, int32_t count)
{
    int32_t params[] = {0, 0, 0, 0, 1, 1, 1, 1}, dims[QI_MAX_RANK];
    memcpy(dims, g->tensors[x].dims, sizeof dims);
    params[axis] = begin;
    dims[axis] = count;
    int const y = net_activation(g, c, 4, dims);
    net_op(g, "strided_slice", QI_ROUND_NONE, 1, &x, y, 8, params, 0);
    return y;
}

/** Two slices of a, which may go through an op, are joined in either order. */
static int cut_and_join(qat_qgraph *g, int a, codes_of c, uint64_t *seed)
{
    int const axis = test_random_in(seed, 0, 3), n = g->tensors[a].dims[axis];
    if (n < 2)
        return requantize(g, a, c, seed);
    int const cut = test_random_in(seed, 1, n - 1), swap = test_random_in(seed, 0, 1);
    int parts[2];
    for (int i = 0; i < 2; i++) {
        int const part = slice(g, a, c, axis, i ? cut : 0, i ? n - cut : cut);
        parts[i ^ swap] = test_random(seed) % 3 ? requantize(g, part, c, seed) : part;
    }
    int32_t const at[] = {axis};
    int const y = net_activation(g, c, 4, g->tensors[a].dims);
    net_op(g, "concat", QI_ROUND_NONE, 2, parts, y, 1, at, 0);
    return y;
}

static qat_qgraph *random_graph(uint64_t *seed)
{
    codes_of const c = {QI_U8, 8, 100};
    qat_qgraph *g = qat_qgraph_new();
    int made[MOST_OPS + 1];
    ck_assert_ptr_nonnull(g);
    made[0] = random_activation(g, c, seed);
    int const n = test_random_in(seed, 1, MOST_OPS);
    for (int i = 1; i <= n; i++) {
        /* mostly recent tensors, now and then an old one */
        int const back = test_random(seed) % 4 ? (i < 3 ? i : 3) : i;
        int const a = made[i - 1 - (int)(test_random(seed) % (uint32_t)back)];
        int const b = made[test_random(seed) % (uint32_t)i];
        switch (test_random(seed) % 7) {
        case 5:
        case 6:
            made[i] = cut_and_join(g, a, c, seed);
            break;
        case 4:
            made[i] = transpose(g, a, c);
            break;
        case 0:
            made[i] = reshape(g, a, c, seed);
            break;
        case 1:
            made[i] = add(g, a, b, c);
            break;
        default:
            made[i] = requantize(g, a, c, seed);
        }
    }
    net_io(g, made[0], made[n]);
    return g;
}

/* ------------------------------------------------------------------ overlaps */

/** Steps at which a tensor must keep its value, from the graph alone. */
struct life {
    int from, to;
};

static struct life life_of(const qi_model *m, int tensor)
{
    struct life l = {-1, -1};
    for (int i = 0; i < qi_node_count(m); i++) {
        const qi_node *node = qi_node_at(m, i);
        if (node->outputs[0] == tensor)
            l.from = l.to = i;
        for (int j = 0; j < node->n_inputs; j++)
            if (node->inputs[j] == tensor)
                l.to = i;
    }
    for (int i = 0; i < qi_output_count(m); i++)
        if (qi_output_at(m, i) == tensor)
            l.to = qi_node_count(m);
    return l;
}

/** Each value has a number, which its copies have, too. */
struct values {
    int number[MOST_TENSORS][VALUES];
};

/** Numbers of a node's output, whose values are copies or new ones. */
static void number_output(const qi_model *m, const qi_node *node, struct values *v)
{
    const qi_tensor *y = qi_tensor_at(m, node->outputs[0]);
    const char *op = node->kernel->name;
    int *to = v->number[node->outputs[0]];
    uint8_t in[MOST_INPUTS][VALUES], got[VALUES];
    const void *inputs[MOST_INPUTS];
    void *outputs[] = {got};
    bool const copies =
        !strcmp(op, "reshape") || !strcmp(op, "strided_slice") || !strcmp(op, "concat");
    for (int k = 0; k < (int)y->bytes; k++)
        to[k] = node->outputs[0] * VALUES + k;
    /* the kernel itself says which value goes where: VALUES are as many as codes */
    for (int from = 0; copies && from < node->n_inputs; from++) {
        for (int i = 0; i < node->n_inputs; i++) {
            inputs[i] = in[i];
            for (int k = 0; k < VALUES; k++)
                in[i][k] = (uint8_t)(i == from ? k : 0);
        }
        qi_call call = {.model = m, .node = node, .in = inputs, .out = outputs};
        uint8_t first[VALUES];
        node->kernel->run(&call);
        memcpy(first, got, sizeof got);
        for (int k = 0; k < VALUES; k++)
            in[from][k] = (uint8_t)(255 - k);
        node->kernel->run(&call);
        for (int k = 0; k < (int)y->bytes; k++)
            if (first[k] + got[k] == 255)
                to[k] = v->number[node->inputs[from]][first[k]];
    }
}

static struct values *number_values(const qi_model *m)
{
    struct values *v = calloc(1, sizeof *v);
    ck_assert_ptr_nonnull(v);
    ck_assert_int_le(qi_tensor_count(m), MOST_TENSORS);
    for (int i = 0; i < qi_input_count(m); i++)
        for (int k = 0; k < VALUES; k++)
            v->number[qi_input_at(m, i)][k] = qi_input_at(m, i) * VALUES + k;
    for (int i = 0; i < qi_node_count(m); i++)
        number_output(m, qi_node_at(m, i), v);
    return v;
}

/** Does each byte that two tensors share have one value, of both? */
static bool share_values(const qi_model *m, const struct values *v, int a, int b)
{
    const qi_tensor *ta = qi_tensor_at(m, a), *tb = qi_tensor_at(m, b);
    for (size_t k = 0; k < ta->bytes; k++) {
        size_t const at = ta->offset + k;
        if (at >= tb->offset && at < tb->offset + tb->bytes &&
            v->number[a][k] != v->number[b][at - tb->offset])
            return false;
    }
    return true;
}

static bool overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/** Does the op at step write y in place of x, which nothing needs afterwards? */
static bool replaces(const qi_model *m, int step, int x, int y)
{
    if (step < 0 || step >= qi_node_count(m))
        return false;
    const qi_node *node = qi_node_at(m, step);
    int const in_place = node->kernel->in_place;
    bool const may =
        (in_place == QI_OVER_FIRST && node->inputs[0] == x) ||
        (in_place == QI_OVER_EITHER && (node->inputs[0] == x) != (node->inputs[1] == x));
    return may && node->outputs[0] == y && qi_tensor_at(m, x)->offset == qi_tensor_at(m, y)->offset;
}

static void check_pair(const qi_model *m, const struct values *v, int a, int b)
{
    struct life const la = life_of(m, a), lb = life_of(m, b);
    bool const together = la.from <= lb.to && lb.from <= la.to;
    if (together && la.to == lb.from && replaces(m, lb.from, a, b))
        return;
    if (together && lb.to == la.from && replaces(m, la.from, b, a))
        return;
    if (together)
        ck_assert_msg(share_values(m, v, a, b), "tensors %d and %d share memory at the same time",
                      a, b);
}

/** Scratch of a node against everything alive while it runs. */
static void check_scratch(const qi_model *m, int index)
{
    const qi_node *node = qi_node_at(m, index);
    for (int i = 0; node->scratch_bytes && i < qi_tensor_count(m); i++) {
        const qi_tensor *t = qi_tensor_at(m, i);
        struct life const l = life_of(m, i);
        if (t->kind == QI_ACTIVATION && l.from <= index && index <= l.to)
            ck_assert_msg(!overlap(t->offset, t->bytes, node->scratch_offset, node->scratch_bytes),
                          "scratch of node %d lies on tensor %d", index, i);
    }
    ck_assert_uint_le(node->scratch_offset + node->scratch_bytes, qi_arena_bytes(m));
    ck_assert_uint_eq(node->scratch_offset % QI_ALIGN, 0);
}

static size_t activation_bytes(const qi_model *m)
{
    size_t sum = 0;
    for (int i = 0; i < qi_tensor_count(m); i++)
        if (qi_tensor_at(m, i)->kind == QI_ACTIVATION)
            sum += qi_tensor_at(m, i)->bytes;
    return sum;
}

START_TEST(test_no_overlap)
{
    uint64_t seed = (uint64_t)_i + 1;
    qat_qgraph *g = random_graph(&seed);
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    const qi_model *m = host->model;
    struct values *v = number_values(m);
    for (int a = 0; a < qi_tensor_count(m); a++) {
        const qi_tensor *t = qi_tensor_at(m, a);
        ck_assert_int_eq(t->kind, QI_ACTIVATION);
        ck_assert_uint_eq(t->offset % QI_ALIGN, 0);
        ck_assert_uint_le(t->offset + t->bytes, qi_arena_bytes(m));
        for (int b = 0; b < a; b++)
            check_pair(m, v, a, b);
    }
    for (int i = 0; i < qi_node_count(m); i++)
        check_scratch(m, i);
    free(v);
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/** A chain needs two tensors at a time, however long it is; one where every op runs in place. */
START_TEST(test_memory_is_reused)
{
    bool const in_place = _i;
    codes_of const c = {QI_U8, 8, 0};
    qat_qgraph *g = qat_qgraph_new();
    uint64_t seed = 1;
    int const first = random_activation(g, c, &seed);
    int x = first;
    for (int i = 0; i < 40; i++)
        x = in_place ? requantize(g, i % 3 ? x : reshape(g, x, c, &seed), c, &seed)
                     : transpose(g, i % 3 ? x : reshape(g, x, c, &seed), c);
    net_io(g, first, x);
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    ck_assert_uint_eq(qi_arena_bytes(host->model),
                      (in_place ? 1 : 2) * VALUES + 2 * sizeof(void *));
    ck_assert_uint_gt(activation_bytes(host->model), 50 * VALUES);
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/** Does output 0 of node lie where this input does? */
static bool is_in_place(const qi_model *m, int node, int input)
{
    const qi_node *n = qi_node_at(m, node);
    return qi_tensor_at(m, n->inputs[input])->offset == qi_tensor_at(m, n->outputs[0])->offset;
}

/**
 * An op runs in place only of an input that is not needed afterwards, is alone in its memory, and
 * has as many bytes as the output.
 */
START_TEST(test_what_may_not_be_overwritten)
{
    static const int32_t dims[] = {1, 4, 4, 16}, row[] = {1, 1, 1, 16};
    int32_t const params[] = {20, 1 << 30, 0, 1 << 30, 0, 1 << 30, -19, 0, 255};
    codes_of const c = {QI_U8, 8, 100};
    uint64_t seed = 1;
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, c, 4, dims);
    int const a = requantize(g, x, c, &seed); /* 0: x is read again */
    int const b = requantize(g, x, c, &seed); /* 1: now it dies */
    int const d = add(g, a, a, c);            /* 2: a is both inputs */
    int const e = add(g, b, d, c);            /* 3: b dies */
    int const inputs[] = {net_constant(g, c, 4, row, &seed, NULL), e};
    int const f = net_activation(g, c, 4, dims);
    net_op(g, "add", QI_ROUND_TWICE, 2, inputs, f, 9, params, 0); /* 4: input 1 dies */
    int const h = requantize(g, f, c, &seed);                     /* 5: f is an output */
    int const k = add(g, f, h, c);                                /* 6: both are outputs */
    qat_error err;
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 3, (const int[]){f, h, k}, &err), QAT_OK);
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    static const int want[] = {-1, 0, -1, 0, 1, -1, -1}; /* the input that is replaced */
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < qi_node_at(host->model, i)->n_inputs; j++)
            if (qi_tensor_at(host->model, qi_node_at(host->model, i)->inputs[j])->kind ==
                QI_ACTIVATION)
                ck_assert_msg(is_in_place(host->model, i, j) == (want[i] == j), "node %d", i);
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/** Rows of a tensor are parts of it, and are written where they are joined, if that saves memory.
 */
START_TEST(test_parts)
{
    static const int32_t dims[] = {1, 8, 8, 16};
    codes_of const c = {QI_U8, 8, 100};
    uint64_t seed = 1;
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, c, 4, dims), y = net_activation(g, c, 4, dims);
    int parts[4], made[4];
    int32_t const axis[] = {1};
    for (int i = 0; i < 4; i++) {
        parts[i] = slice(g, x, c, 1, 2 * i, 2);
        made[i] = requantize(g, parts[i], c, &seed);
    }
    net_op(g, "concat", QI_ROUND_NONE, 4, made, y, 1, axis, 0);
    net_io(g, x, y);
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    const qi_model *m = host->model;
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(qi_tensor_at(m, parts[i])->offset,
                          qi_tensor_at(m, x)->offset + (size_t)i * 256);
        ck_assert_uint_eq(qi_tensor_at(m, made[i])->offset,
                          qi_tensor_at(m, y)->offset + (size_t)i * 256);
    }
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/** A large tensor stays in memory for a small part of it only if that is no loss. */
START_TEST(test_parts_that_would_lose)
{
    static const int32_t dims[] = {1, 64, 8, 16};
    codes_of const c = {QI_U8, 8, 100};
    uint64_t seed = 1;
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, c, 4, dims);
    int const part = slice(g, x, c, 1, 1, 1);
    int y = requantize(g, part, c, &seed);
    for (int i = 0; i < 6; i++) { /* doubled until it is as large as x */
        int32_t const axis[] = {1}, twice[] = {1, 2 << i, 8, 16};
        int const both[] = {y, y};
        y = net_activation(g, c, 4, twice);
        net_op(g, "concat", QI_ROUND_NONE, 2, both, y, 1, axis, 0);
    }
    int const both[] = {part, part}, end = net_activation(g, c, 4, (int32_t[]){1, 2, 8, 16});
    net_op(g, "concat", QI_ROUND_NONE, 2, both, end, 1, (int32_t[]){1}, 0);
    qat_error err;
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 2, (const int[]){y, end}, &err), QAT_OK);
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    ck_assert_uint_lt(qi_arena_bytes(host->model), 14000); /* 8192 + 4096 and small ones */
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ runs and visits */

/** Every tensor's bytes as they were when visited. */
struct record {
    uint8_t bytes[MOST_TENSORS][VALUES];
    int visits;
    int order[MOST_TENSORS];
};

static void remember(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    struct record *r = context;
    memcpy(r->bytes[tensor], data, qi_tensor_at(model, tensor)->bytes);
    r->order[r->visits++] = tensor;
}

START_TEST(test_arena_content_is_irrelevant)
{
    uint64_t seed = (uint64_t)_i + 1;
    qat_qgraph *g = random_graph(&seed);
    struct record *r = calloc(2, sizeof *r);
    uint8_t in[VALUES], out[2][VALUES];
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    fill_codes(in, VALUES, (codes_of){QI_U8, 8, 0}, &seed);
    for (int k = 0; k < 2; k++) {
        const void *inputs[] = {in};
        void *outputs[] = {out[k]};
        memset(host->arena, k ? 0xff : 0, qi_arena_bytes(host->model));
        qi_run_visit(host->model, host->arena, inputs, outputs, remember, &r[k]);
    }
    ck_assert_mem_eq(out[0], out[1], VALUES);
    ck_assert_mem_eq(&r[0], &r[1], sizeof r[0]);
    ck_assert_int_eq(r[0].visits, 1 + qi_node_count(host->model));
    ck_assert_int_eq(r[0].order[0], qi_input_at(host->model, 0));
    for (int i = 0; i < qi_node_count(host->model); i++)
        ck_assert_int_eq(r[0].order[i + 1], qi_node_at(host->model, i)->outputs[0]);
    ck_assert_mem_eq(r[0].bytes[qi_output_at(host->model, 0)], out[0], VALUES);
    ck_assert_mem_eq(r[0].bytes[qi_input_at(host->model, 0)], in, VALUES);
    void *none[] = {NULL};
    qi_run(host->model, host->arena, (const void *[]){in}, none);
    qi_host_close(host);
    qat_qgraph_free(g);
    free(r);
}
END_TEST

static size_t aligned(size_t bytes)
{
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

/** Plan again, with memory of its own for every tensor of the arena. */
static void plan_apart(qi_model *m)
{
    size_t at = aligned(m->arena_bytes);
    for (int32_t i = 0; i < m->n_tensors; i++) {
        m->tensors[i].offset = at;
        at += aligned(m->tensors[i].bytes);
    }
    m->arena_bytes = at;
}

START_TEST(test_sharing_changes_nothing)
{
    uint64_t seed = (uint64_t)_i + 1;
    qat_qgraph *g = random_graph(&seed);
    struct record *r = calloc(2, sizeof *r);
    uint8_t in[VALUES], *arena;
    qi_host *host = NULL;
    ck_assert_ptr_nonnull(r);
    net_open(&host, g, QI_OK);
    fill_codes(in, VALUES, (codes_of){QI_U8, 8, 0}, &seed);
    const void *inputs[] = {in};
    void *none[] = {NULL};
    qi_run_visit(host->model, host->arena, inputs, none, remember, &r[0]);
    plan_apart(host->model);
    arena = aligned_alloc(QI_FAST_ALIGN, aligned(qi_arena_bytes(host->model)));
    ck_assert_ptr_nonnull(arena);
    qi_run_visit(host->model, arena, inputs, none, remember, &r[1]);
    ck_assert_mem_eq(&r[0], &r[1], sizeof r[0]);
    free(arena);
    qi_host_close(host);
    qat_qgraph_free(g);
    free(r);
}
END_TEST

START_TEST(test_self_test)
{
    codes_of const c = {QI_U8, 8, 3};
    uint64_t seed = 5;
    qat_qgraph *g = qat_qgraph_new();
    int const x = random_activation(g, c, &seed);
    net_io(g, x, requantize(g, x, c, &seed));
    uint8_t in[VALUES], out[VALUES];
    qat_error told;
    fill_codes(in, VALUES, c, &seed);
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    qi_error err;
    ck_assert_int_eq(qi_self_test(host->model, host->arena, &err), QI_ERR_KAT); /* none stored */
    ck_assert_ptr_null(qi_kat_input(host->model, 0));
    qi_run(host->model, host->arena, (const void *[]){in}, (void *[]){out});
    qi_host_close(host);

    for (int wrong = 0; wrong < 2; wrong++) {
        size_t count;
        out[7] = (uint8_t)(out[7] + wrong);
        uint8_t *qm = net_write(g, in, out, &count);
        ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", NULL, &told), QAT_OK);
        ck_assert_mem_eq(qi_kat_input(host->model, 0), in, VALUES);
        ck_assert_mem_eq(qi_kat_output(host->model, 0), out, VALUES);
        ck_assert_int_eq(qi_self_test(host->model, host->arena, &err), wrong ? QI_ERR_KAT : QI_OK);
        if (wrong) {
            ck_assert_int_eq(err.limit, out[7]);
            ck_assert_int_eq(qi_error_tell(&err, "net", &told), QAT_ERR_MISMATCH);
            ck_assert_ptr_nonnull(strstr(told.message, "known"));
        }
        qi_host_close(host);
        free(qm);
    }
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

/** A 3x3 convolution whose fields a test may spoil. */
struct conv_case {
    int32_t x[4], w[4], y[4], params[9];
    int32_t mult, shift;
    int64_t max_accumulator;
    qi_rounding rounding;
    int fraction;
    int n_inputs;
    const char *op;
};

static const struct conv_case good_conv = {.x = {1, 5, 5, 2},
                                           .w = {4, 3, 3, 2},
                                           .y = {1, 3, 3, 4},
                                           .params = {1, 1, 1, 1, 0, 0, 1, 0, 255},
                                           .mult = 1 << 30,
                                           .shift = -8,
                                           /* D 255, 18 weights of 255 - 0, bias 7 */
                                           .max_accumulator = 255 * 18 * 255 + 7,
                                           .rounding = QI_ROUND_TWICE,
                                           .n_inputs = 5,
                                           .op = "conv2d"};

static void try_conv(const struct conv_case *v, qi_status expected)
{
    codes_of const c = {QI_U8, 8, 0};
    int32_t const bias[] = {0, 0, -7, 3};
    qat_qgraph *g = qat_qgraph_new();
    int const x = net_activation(g, c, 4, v->x), y = net_activation(g, c, 4, v->y);
    const uint8_t *data;
    uint64_t seed = 1;
    int const w = net_constant(g, c, 4, v->w, &seed, &data);
    memset((uint8_t *)(uintptr_t)data, 255, qat_qtensor_bytes(&g->tensors[w]));
    int const inputs[] = {x, w, net_s32(g, 4, 1, bias), net_s32(g, 1, 1, &v->mult),
                          net_s32(g, 1, 1, &v->shift)};
    net_op(g, v->op, v->rounding, v->n_inputs, inputs, y, 9, v->params, v->max_accumulator);
    g->ops[0].fraction = v->fraction;
    net_io(g, x, y);
    qi_host *host = NULL;
    net_open(&host, g, expected);
    qi_host_close(host);
    qat_qgraph_free(g);
}

#define TRY_CONV(expected, ...)                                                                    \
    do {                                                                                           \
        struct conv_case v = good_conv;                                                            \
        __VA_ARGS__;                                                                               \
        try_conv(&v, expected);                                                                    \
    } while (0)

START_TEST(test_conv_refused)
{
    TRY_CONV(QI_OK, (void)v);
    TRY_CONV(QI_ERR_UNKNOWN_OP, v.op = "conv9d");
    TRY_CONV(QI_ERR_SHAPE, v.n_inputs = 4);
    TRY_CONV(QI_ERR_PARAM, v.rounding = QI_ROUND_NONE);
    TRY_CONV(QI_ERR_PARAM, v.rounding = QI_ROUND_DOUBLE);
    for (int i = 0; i < 4; i++) { /* strides and dilations */
        TRY_CONV(QI_ERR_PARAM, v.params[i] = 0);
        TRY_CONV(QI_ERR_PARAM, v.params[i] = -1);
        TRY_CONV(QI_ERR_PARAM, v.params[i] = 65536);
        TRY_CONV(QI_ERR_PARAM, v.params[i] = INT32_MIN);
    }
    for (int i = 4; i < 6; i++) { /* pads: below the extent of 3 */
        TRY_CONV(QI_OK, v.params[i] = 2);
        TRY_CONV(QI_ERR_PARAM, v.params[i] = 3);
        TRY_CONV(QI_ERR_PARAM, v.params[i] = -1);
        TRY_CONV(QI_ERR_PARAM, v.params[i] = INT32_MAX);
    }
    TRY_CONV(QI_ERR_SHAPE, v.params[0] = 3); /* the last window begins at row 6 of 5 */
    TRY_CONV(QI_ERR_PARAM, v.params[6] = 0); /* groups */
    TRY_CONV(QI_ERR_SHAPE, v.params[6] = 2); /* 1 input channel each, weights have 2 */
    TRY_CONV(QI_ERR_PARAM, v.params[7] = 200, v.params[8] = 100);
    TRY_CONV(QI_ERR_PARAM, v.params[8] = 256);
    TRY_CONV(QI_ERR_PARAM, v.mult = -1);
    TRY_CONV(QI_ERR_PARAM, v.shift = 32);
    TRY_CONV(QI_ERR_PARAM, v.shift = -32);
    TRY_CONV(QI_ERR_OVERFLOW, v.max_accumulator--);
    enum { SUM = 255 * 18 * 255 };
    TRY_CONV(QI_OK, v.fraction = 10, v.max_accumulator = SUM * 1024 + 7);
    TRY_CONV(QI_ERR_OVERFLOW, v.fraction = 10);
    TRY_CONV(QI_ERR_OVERFLOW, v.fraction = 11, v.max_accumulator = SUM * INT64_C(2048) + 7);
    TRY_CONV(QI_ERR_PARAM, v.fraction = 1, v.rounding = QI_ROUND_EVEN);
    TRY_CONV(QI_ERR_SHAPE, v.y[3] = 3);
    TRY_CONV(QI_ERR_SHAPE, v.x[3] = 3);
    TRY_CONV(QI_ERR_SHAPE, v.y[0] = 2);
    TRY_CONV(QI_ERR_SHAPE, v.w[0] = 5);
}
END_TEST

/** 255 * 255 * depth crosses 2^31 between these depths. */
START_TEST(test_accumulator_limit)
{
    codes_of const c = {QI_U8, 8, 0};
    for (int32_t depth = 33025; depth <= 33027; depth++) {
        int64_t const bound = (int64_t)depth * 255 * 255;
        bool const fits = bound <= INT32_MAX;
        int32_t const xd[] = {depth}, wd[] = {1, depth}, yd[] = {1}, one[] = {1 << 30},
                      zero[] = {0};
        int32_t const shift[] = {-24}, params[] = {0, 255};
        qat_qgraph *g = qat_qgraph_new();
        const uint8_t *data;
        uint64_t seed = 1;
        int const x = net_activation(g, c, 1, xd), y = net_activation(g, c, 1, yd);
        int const w = net_constant(g, c, 2, wd, &seed, &data);
        memset((uint8_t *)(uintptr_t)data, 255, (size_t)depth);
        int const inputs[] = {x, w, net_s32(g, 1, 1, zero), net_s32(g, 1, 1, one),
                              net_s32(g, 1, 1, shift)};
        net_op(g, "fully_connected", QI_ROUND_TWICE, 5, inputs, y, 2, params, bound);
        net_io(g, x, y);
        qi_host *host = NULL;
        net_open(&host, g, fits ? QI_OK : QI_ERR_OVERFLOW);
        if (fits) { /* and the largest sum is computed right */
            uint8_t *in = malloc((size_t)depth), out;
            ck_assert_ptr_nonnull(in);
            memset(in, 255, (size_t)depth);
            qi_run(host->model, host->arena, (const void *[]){in}, (void *[]){&out});
            ck_assert_int_eq(out, (int)((bound / 2 + (1 << 23)) >> 24));
            free(in);
        }
        qi_host_close(host);
        qat_qgraph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_plan");
    TCase *tcase = tcase_create("plan");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, test_no_overlap, 0, GRAPHS);
    tcase_add_loop_test(tcase, test_memory_is_reused, 0, 2);
    tcase_add_test(tcase, test_what_may_not_be_overwritten);
    tcase_add_test(tcase, test_parts);
    tcase_add_test(tcase, test_parts_that_would_lose);
    tcase_add_loop_test(tcase, test_sharing_changes_nothing, 0, GRAPHS);
    tcase_add_loop_test(tcase, test_arena_content_is_irrelevant, 0, GRAPHS);
    tcase_add_test(tcase, test_self_test);
    tcase_add_test(tcase, test_conv_refused);
    tcase_add_test(tcase, test_accumulator_limit);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
