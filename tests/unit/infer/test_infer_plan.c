/**
 * The planner on random graphs. Tensors that are alive at the same time never share memory.
 * (Exceptions: a reshape and its input, and an op that runs in place of an input that is needed no
 * more.) Running in place gives the same bytes as running apart. The content of the arena before a
 * run changes nothing. Also the self test, visits, and ops that must be refused.
 */
#include "common/suite.h"
#include "infer/host/host.h"
#include "infer/model/model.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 300, MOST_OPS = 24, VALUES = 48 };

/* ------------------------------------------------------------------ random graphs */

/** VALUES values in one of several shapes, so that every tensor fits every op. */
static int random_activation(qat_qgraph *g, codes_of c, uint64_t *seed)
{
    static const int32_t shapes[][4] = {{1, 4, 4, 3}, {1, 2, 8, 3}, {1, 1, 16, 3}, {4, 2, 2, 3}};
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
        switch (test_random(seed) % 5) {
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

/** The tensor at the start of a chain of reshapes. */
static int origin_of(const qi_model *m, int tensor)
{
    for (int i = qi_node_count(m) - 1; i >= 0; i--) {
        const qi_node *node = qi_node_at(m, i);
        if (node->outputs[0] == tensor && strcmp(node->kernel->name, "reshape") == 0)
            tensor = node->inputs[0];
    }
    return tensor;
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
    return node->kernel->in_place && node->inputs[0] == x && node->outputs[0] == y &&
           (node->n_inputs == 1 || node->inputs[1] != x);
}

static void check_pair(const qi_model *m, int a, int b)
{
    const qi_tensor *ta = qi_tensor_at(m, a), *tb = qi_tensor_at(m, b);
    struct life const la = life_of(m, a), lb = life_of(m, b);
    bool const together = la.from <= lb.to && lb.from <= la.to;
    if (together && la.to == lb.from && replaces(m, lb.from, a, b))
        return;
    if (together && lb.to == la.from && replaces(m, la.from, b, a))
        return;
    if (together && origin_of(m, a) != origin_of(m, b))
        ck_assert_msg(!overlap(ta->offset, ta->bytes, tb->offset, tb->bytes),
                      "tensors %d and %d share memory at the same time", a, b);
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
    for (int a = 0; a < qi_tensor_count(m); a++) {
        const qi_tensor *t = qi_tensor_at(m, a);
        ck_assert_int_eq(t->kind, QI_ACTIVATION);
        ck_assert_uint_eq(t->offset % QI_ALIGN, 0);
        ck_assert_uint_le(t->offset + t->bytes, qi_arena_bytes(m));
        for (int b = 0; b < a; b++)
            check_pair(m, a, b);
    }
    for (int i = 0; i < qi_node_count(m); i++)
        check_scratch(m, i);
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

/** Does output 0 of node lie where its input 0 does? */
static bool is_in_place(const qi_model *m, int node)
{
    const qi_node *n = qi_node_at(m, node);
    return qi_tensor_at(m, n->inputs[0])->offset == qi_tensor_at(m, n->outputs[0])->offset;
}

/**
 * An op runs in place only if input 0 is not needed afterwards, is alone in its memory, and has as
 * many bytes as the output.
 */
START_TEST(test_what_may_not_be_overwritten)
{
    static const int32_t dims[] = {1, 4, 4, 3}, row[] = {1, 1, 1, 3}, both[] = {1, 4, 4, 3};
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
    int const f = net_activation(g, c, 4, both);
    net_op(g, "add", QI_ROUND_TWICE, 2, inputs, f, 9, params, 0); /* 4: input 0 is a constant */
    int const h = requantize(g, f, c, &seed);                     /* 5: f is an output */
    qat_error err;
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 2, (const int[]){f, h}, &err), QAT_OK);
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    static const bool want[] = {false, true, false, true, false, false};
    for (int i = 0; i < 6; i++)
        ck_assert_msg(i == 4 || is_in_place(host->model, i) == want[i], "node %d", i);
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ runs and visits */

/** Every tensor's bytes as they were when visited. */
struct record {
    uint8_t bytes[128][VALUES];
    int visits;
    int order[128];
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

/** Plan again with every op apart from its input. */
static void plan_apart(qi_model *m)
{
    for (int32_t i = 0; i < m->n_nodes; i++)
        m->nodes[i].in_place = 0;
    ck_assert_int_eq(qi_plan_lifetimes(m, NULL), QI_OK);
    ck_assert_int_eq(qi_plan_arena(m, NULL), QI_OK);
}

START_TEST(test_in_place_changes_nothing)
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
    arena = aligned_alloc(QI_ALIGN, qi_arena_bytes(host->model));
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
    tcase_add_loop_test(tcase, test_in_place_changes_nothing, 0, GRAPHS);
    tcase_add_loop_test(tcase, test_arena_content_is_irrelevant, 0, GRAPHS);
    tcase_add_test(tcase, test_self_test);
    tcase_add_test(tcase, test_conv_refused);
    tcase_add_test(tcase, test_accumulator_limit);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
