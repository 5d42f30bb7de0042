/** Freeze, input tables, verification and export, on small networks built here. */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "infer/host/host.h"
#include "qat/convert.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, SIDE = 5, CHANNELS = 3, IMAGE = SIDE * SIDE * CHANNELS };

static qat_registry *registry;

/* ------------------------------------------------------------------ networks */

/** An op that nobody can export: it has no quant entry. */
static qat_status cube_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void cube_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        float const x = node->inputs[0]->value[i];
        node->value[i] = x * x * x;
    }
}

static const qat_op cube_without_quant = {.name = "cube_without_quant",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .shape = cube_shape,
                                          .forward = cube_forward};

/** The same as a table. */
static const qat_quant cube_quant = {.role = QAT_ROLE_TABLE};
static const qat_op cube = {.name = "cube",
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .shape = cube_shape,
                            .forward = cube_forward,
                            .quant = &cube_quant};

/** A user's clamp, of which the bounds are data: no function of ours knows its name. */
static void my_clip_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++)
        node->value[i] = fminf(fmaxf(node->inputs[0]->value[i], -0.25f), 0.5f);
}

static const qat_quant my_clip_quant = {
    .role = QAT_ROLE_CLAMP, .clamp_min = -0.25f, .clamp_max = 0.5f};
static const qat_op my_clip = {.name = "my_clip",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .shape = cube_shape,
                               .forward = my_clip_forward,
                               .quant = &my_clip_quant};

/** A user's op with a fixed range, and one whose range has no code for 0. */
static void gate_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++)
        node->value[i] = fminf(fmaxf(2 * node->inputs[0]->value[i] + 0.5f, -0.5f), 1.5f);
}

static const qat_quant gate_quant = {.role = QAT_ROLE_FIXED, .fixed_min = -0.5f, .fixed_max = 1.5f};
static const qat_quant off_grid = {.role = QAT_ROLE_FIXED, .fixed_min = -0.3f, .fixed_max = 1};
static const qat_quant own_norm = {.role = QAT_ROLE_NORM};
static const qat_quant no_bounds = {.role = QAT_ROLE_CLAMP};
#define GATE(op, entry)                                                                            \
    {                                                                                              \
        .name = (op), .min_inputs = 1, .max_inputs = 1, .shape = cube_shape,                       \
        .forward = gate_forward, .quant = &(entry)                                                 \
    }
static const qat_op gates[] = {GATE("gate", gate_quant), GATE("off_grid", off_grid),
                               GATE("own_norm", own_norm), GATE("no_bounds", no_bounds)};

/** An op of its own kernel, which copies codes; the engine's kernel may be given a fault. */
static qat_status copy_freeze(const qat_fused_layer *layer, qat_error *err)
{
    return qat_qgraph_op(layer->graph, "copy", layer->head->name, QI_ROUND_NONE, 1, layer->inputs,
                         1, &layer->output, 0, NULL, 0, err) < 0
               ? err->status
               : QAT_OK;
}

static void copy_forward(qat_node *node, const qat_run *run)
{
    memcpy(node->value, node->inputs[0]->value, qat_shape_count(&node->shape) * sizeof(qat_real));
}

static qat_status copy_exact(const qat_exact_call *call, qat_error *err)
{
    size_t const bytes = qat_qtensor_bytes(&call->graph->tensors[call->op->inputs[0]]);
    memcpy(call->out[0], call->in[0], bytes * (size_t)call->batch);
    return QAT_OK;
}

static const qat_quant copy_quant = {
    .role = QAT_ROLE_CUSTOM, .freeze = copy_freeze, .exact_op = "copy", .exact = copy_exact};
static const qat_op copy = {.name = "copy",
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .shape = cube_shape,
                            .forward = copy_forward,
                            .quant = &copy_quant};

static qi_status copy_check(const qi_model *model, const qi_node *node, int32_t index,
                            qi_error *err)
{
    return node->n_inputs == 1 && node->n_outputs == 1 && node->n_params == 0
               ? QI_OK
               : qi_fail(err, QI_ERR_SHAPE, "copy", index, node->n_inputs, 1);
}

static void copy_run(const qi_call *call)
{
    size_t const bytes = qi_tensor_at(call->model, call->node->inputs[0])->bytes;
    memcpy(call->out[0], call->in[0], bytes);
}

/** Wrong by one in one place, and only where the code there is above the middle. */
static void faulty_run(const qi_call *call)
{
    uint8_t *out = call->out[0];
    copy_run(call);
    out[7] = (uint8_t)(out[7] - (out[7] > 128));
}

static const qi_kernel copy_kernel = {.name = "copy", .check = copy_check, .run = copy_run};
static const qi_kernel faulty_kernel = {.name = "copy", .check = copy_check, .run = faulty_run};
static const qi_kernel_list copies = {(const qi_kernel *const[]){&copy_kernel}, 1};
static const qi_kernel_list faulty = {(const qi_kernel *const[]){&faulty_kernel}, 1};

/** A float graph, and the eval graph made from it after one calibration batch. */
struct net {
    qat_graph *graph, *training, *eval;
    qat_quant_options options;
};

static struct net net_new(void)
{
    struct net n = {.options = qat_quant_defaults()};
    ck_assert_int_eq(qat_graph_create(&n.graph, registry, NULL), QAT_OK);
    return n;
}

static void net_free(struct net *n)
{
    qat_graph_free(n->eval);
    qat_graph_free(n->training);
    qat_graph_free(n->graph);
}

static qat_node *image(struct net *n)
{
    return qat_graph_input(n->graph, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
}

/** Values of a sample, the same every time, spread over -1..1. */
static void fill_values(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((i * 7919 + 13) % 255) / 127.0f - 1.0f;
}

static void check_status(qat_status st, const qat_error *err)
{
    ck_assert_msg(st == QAT_OK, "%s: %s", qat_status_name(st), err->message);
}

/** Create, calibrate (if so) and copy into an eval graph. */
static void make_eval(struct net *n, bool calibrate)
{
    qat_error err;
    check_status(qat_graph_check(n->graph, &err), &err);
    check_status(qat_create_training_graph(&n->training, n->graph, &n->options, &err), &err);
    check_status(qat_graph_plan(n->training, BATCH, QAT_PLAN_TRAIN, &err), &err);
    check_status(qat_graph_set_batch(n->training, BATCH, &err), &err);
    qat_graph_init_params(n->training, 5);
    for (int i = 0; calibrate && i < qat_graph_nodes(n->training); i++) {
        qat_node *node = qat_graph_node(n->training, i);
        if (qat_node_is_input(node))
            fill_values(node->value, qat_shape_count(&node->shape));
    }
    if (calibrate) {
        qat_run const run = {.mode = QAT_MODE_TRAIN};
        qat_graph_forward(n->training, &run);
        qat_graph_update(n->training, &run);
    }
    check_status(qat_create_eval_graph(&n->eval, n->graph, &n->options, &err), &err);
    check_status(qat_graph_plan(n->eval, BATCH, QAT_PLAN_KEEP, &err), &err);
    qat_graph_copy_params(n->eval, n->training);
}

/** conv - BN - ReLU, pool, flatten, FC - bias. */
static struct net small_net(void)
{
    struct net n = net_new();
    qat_node *x = qat_apply1(n.graph, "conv2d", "conv", "filters=4 kernel=3", image(&n));
    x = qat_apply1(n.graph, "batch_norm", "bn", "", x);
    x = qat_apply1(n.graph, "relu", "relu", "", x);
    x = qat_apply1(n.graph, "max_pool2d", "pool", "kernel=2", x);
    x = qat_apply1(n.graph, "flatten", "flat", "", x);
    x = qat_apply1(n.graph, "fully_connected", "fc", "units=3", x);
    qat_graph_output(n.graph, qat_apply1(n.graph, "bias", "fc/b", "", x));
    return n;
}

static struct net copy_net(void)
{
    struct net n = net_new();
    qat_node *x = qat_apply1(n.graph, "conv2d", "conv", "filters=4 kernel=3", image(&n));
    qat_graph_output(n.graph, qat_apply1(n.graph, "copy", "duplicate", "", x));
    return n;
}

/** "conv2d(conv) max_pool2d(pool) ..." */
static void list_ops(const qat_qgraph *graph, char *text, size_t max)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < graph->n_ops && at < max; i++)
        at += (size_t)snprintf(text + at, max - at, "%s%s(%s)", i ? " " : "", graph->ops[i].op,
                               graph->ops[i].name);
}

static void check_ops(struct net *n, const char *expected)
{
    qat_qgraph *graph = NULL;
    qat_error err;
    char text[1024];
    make_eval(n, true);
    check_status(qat_freeze(&graph, n->eval, QAT_PROFILE_PAPER, NULL, &err), &err);
    list_ops(graph, text, sizeof text);
    ck_assert_str_eq(text, expected);
    qat_qgraph_free(graph);
    net_free(n);
}

/* ------------------------------------------------------------------ freeze */

START_TEST(test_layers_become_one_op_each)
{
    struct net n = small_net();
    check_ops(&n, "conv2d(conv) max_pool2d(pool) reshape(flat) fully_connected(fc)");
}
END_TEST

START_TEST(test_tensors_are_named_after_nodes)
{
    struct net n = small_net();
    qat_qgraph *g = NULL;
    make_eval(&n, true);
    ck_assert_int_eq(qat_freeze(&g, n.eval, QAT_PROFILE_PAPER, NULL, NULL), QAT_OK);
    ck_assert_str_eq(g->tensors[g->inputs[0]].name, "image/q");
    for (int i = 0; i < g->n_ops; i++) {
        const qat_qtensor *t = &g->tensors[g->ops[i].outputs[0]];
        const qat_node *node = qat_graph_find(n.eval, t->name);
        ck_assert_msg(node != NULL, "no node is called %s", t->name);
        ck_assert_int_eq(t->rank, node->shape.rank);
        for (int d = 1; d < t->rank; d++)
            ck_assert_int_eq(t->dims[d], node->shape.dims[d]);
        ck_assert_int_eq(t->dims[0], 1);
    }
    qat_qgraph_free(g);
    net_free(&n);
}
END_TEST

/** Tensors of one class already have equal parameters, so nothing is requantized. */
START_TEST(test_redundant_requantizations_are_dropped)
{
    struct net n = net_new();
    qat_node *x = image(&n);
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", x);
    qat_node *b = qat_apply1(n.graph, "conv2d", "b", "filters=2 kernel=3", x);
    qat_node *inner = qat_apply2(n.graph, "concat", "inner", "", a, b);
    qat_graph_output(n.graph, qat_apply2(n.graph, "concat", "outer", "", inner, a));
    check_ops(&n, "conv2d(a) conv2d(b) concat(inner) concat(outer)");
}
END_TEST

/** A fixed range in a class is requantized into it. */
START_TEST(test_fixed_ranges_are_requantized)
{
    struct net n = net_new();
    qat_node *x = image(&n);
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", x);
    qat_node *s = qat_apply1(n.graph, "softmax", "s", "", a);
    qat_graph_output(n.graph, qat_apply2(n.graph, "concat", "cat", "", a, s));
    check_ops(&n, "conv2d(a) softmax(s) requantize(cat/in1/q) concat(cat)");
}
END_TEST

START_TEST(test_relu_between_quantized_tensors)
{
    struct net n = net_new();
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", image(&n));
    qat_node *r = qat_apply1(n.graph, "relu", "r", "", a);
    qat_graph_output(n.graph, qat_apply2(n.graph, "add", "sum", "", a, r));
    check_ops(&n, "conv2d(a) requantize(r) add(sum)");
}
END_TEST

START_TEST(test_elementwise_becomes_a_table)
{
    struct net n = net_new();
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", image(&n));
    qat_graph_output(n.graph, qat_apply1(n.graph, "cube", "third_power", "", a));
    check_ops(&n, "conv2d(a) table(third_power)");
}
END_TEST

/** Fused into a convolution it is the convolution's clamp; of its own it is a requantization. */
START_TEST(test_a_users_clamp_is_fused)
{
    struct net n = net_new();
    qat_node *x = image(&n);
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", x);
    qat_node *b = qat_apply1(n.graph, "my_clip", "b", "", a);
    qat_node *c = qat_apply1(n.graph, "my_clip", "c", "", b);
    qat_node *wide = qat_apply1(n.graph, "conv2d", "wide", "filters=2 kernel=3", x);
    qat_node *both = qat_apply2(n.graph, "concat", "both", "", b, c);
    qat_graph_output(n.graph, qat_apply2(n.graph, "concat", "all", "", both, wide));
    qat_qgraph *graph = NULL;
    qat_error err;
    char text[256];
    make_eval(&n, true);
    /* With the wide range of their class, the bounds are inside the codes. */
    float *range = qat_graph_find(n.eval, "b/q/range")->value;
    range[0] = -2;
    range[1] = 2;
    check_status(qat_freeze(&graph, n.eval, QAT_PROFILE_PAPER, NULL, &err), &err);
    list_ops(graph, text, sizeof text);
    ck_assert_str_eq(text, "conv2d(a) requantize(c) conv2d(wide) concat(both) concat(all)");
    for (int i = 0; i < 2; i++) {
        const qat_qop *op = &graph->ops[i];
        int32_t lo, hi;
        qat_clamp_codes(&graph->tensors[op->outputs[0]], -0.25f, 0.5f, &lo, &hi);
        ck_assert_int_gt(lo, 0);
        ck_assert_int_lt(hi, 255);
        ck_assert_int_eq(op->params[op->n_params - 2], lo);
        ck_assert_int_eq(op->params[op->n_params - 1], hi);
    }
    qat_qgraph_free(graph);
    net_free(&n);
}
END_TEST

START_TEST(test_a_users_fixed_range)
{
    struct net n = net_new();
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", image(&n));
    qat_graph_output(n.graph, qat_apply1(n.graph, "gate", "gate", "", a));
    qat_qgraph *graph = NULL;
    qat_error err;
    char text[256];
    make_eval(&n, true);
    check_status(qat_freeze(&graph, n.eval, QAT_PROFILE_PAPER, NULL, &err), &err);
    list_ops(graph, text, sizeof text);
    ck_assert_str_eq(text, "conv2d(a) table(gate)");
    const qat_qtensor *out = &graph->tensors[graph->outputs[0]];
    ck_assert(out->scale == 2.0f / 256);
    ck_assert_int_eq(out->zero_point, 64);
    qat_qgraph_free(graph);
    net_free(&n);
}
END_TEST

/** A training graph has its batch norms unfolded: it is refused, not frozen without them. */
START_TEST(test_training_graphs_are_refused)
{
    struct net n = small_net();
    qat_qgraph *graph = NULL;
    qat_error err = {0};
    make_eval(&n, true);
    ck_assert_int_eq(qat_freeze(&graph, n.training, QAT_PROFILE_PAPER, NULL, &err),
                     QAT_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "bn_fold_train") != NULL, "%s", err.message);
    ck_assert_ptr_null(graph);
    net_free(&n);
}
END_TEST

START_TEST(test_wrong_quant_entries_are_refused)
{
    static const char *const messages[] = {"0 is a code", "only bias and batch_norm", "clamp_min"};
    struct net n = net_new();
    qat_error err = {0};
    qat_quant_options const options = qat_quant_defaults();
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", image(&n));
    qat_graph_output(n.graph, qat_apply1(n.graph, gates[_i + 1].name, "b", "", a));
    ck_assert_int_eq(qat_create_eval_graph(&n.eval, n.graph, &options, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, messages[_i]) != NULL, "%s", err.message);
    net_free(&n);
}
END_TEST

static void check_refused(struct net *n, bool calibrate, qat_status status, const char *fragment)
{
    qat_qgraph *graph = NULL;
    qat_error err = {0};
    make_eval(n, calibrate);
    ck_assert_int_eq(qat_freeze(&graph, n->eval, QAT_PROFILE_PAPER, NULL, &err), status);
    ck_assert_ptr_null(graph);
    ck_assert_msg(strstr(err.message, fragment) != NULL, "%s", err.message);
    net_free(n);
}

START_TEST(test_unobserved_ranges_are_refused)
{
    struct net n = small_net();
    check_refused(&n, false, QAT_ERR_STATE, "relu/q");
}
END_TEST

START_TEST(test_ops_without_quant_entry_are_refused)
{
    struct net n = net_new();
    qat_node *a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", image(&n));
    qat_graph_output(n.graph, qat_apply1(n.graph, "cube_without_quant", "third_power", "", a));
    qat_error err = {0};
    qat_quant_options const options = qat_quant_defaults();
    qat_qgraph *graph = NULL;
    qat_status st = qat_create_eval_graph(&n.eval, n.graph, &options, &err);
    if (!st) {
        net_free(&n);
        n = net_new();
        a = qat_apply1(n.graph, "conv2d", "a", "filters=2 kernel=1", image(&n));
        qat_graph_output(n.graph, qat_apply1(n.graph, "cube_without_quant", "third_power", "", a));
        make_eval(&n, true);
        st = qat_freeze(&graph, n.eval, QAT_PROFILE_PAPER, NULL, &err);
    }
    ck_assert_int_eq(st, QAT_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "third_power") != NULL, "%s", err.message);
    net_free(&n);
}
END_TEST

/** 40000 weights of code 255 on inputs of -255..255 exceed 2^31. */
START_TEST(test_overflowing_accumulators_are_refused)
{
    struct net n = net_new();
    n.options.input_min = 0;
    qat_node *x = qat_graph_input(n.graph, "wide", QAT_SHAPE(1, 40000));
    qat_graph_output(n.graph, qat_apply1(n.graph, "fully_connected", "huge", "units=1", x));
    make_eval(&n, true);
    qat_node *w = qat_graph_find(n.eval, "huge/weights");
    for (size_t i = 0; i < 40000; i++)
        w->value[i] = 1.0f;
    qat_qgraph *graph = NULL;
    qat_error err = {0};
    ck_assert_int_eq(qat_freeze(&graph, n.eval, QAT_PROFILE_PAPER, NULL, &err), QAT_ERR_NUMERIC);
    ck_assert_msg(strstr(err.message, "huge") != NULL, "%s", err.message);
    net_free(&n);
}
END_TEST

START_TEST(test_nan_weights_are_refused)
{
    struct net n = small_net();
    make_eval(&n, true);
    qat_graph_find(n.eval, "conv/weights")->value[3] = NAN;
    qat_qgraph *graph = NULL;
    qat_error err = {0};
    ck_assert_int_eq(qat_freeze(&graph, n.eval, QAT_PROFILE_PAPER, NULL, &err), QAT_ERR_NUMERIC);
    ck_assert_msg(strstr(err.message, "conv/weights") != NULL, "%s", err.message);
    net_free(&n);
}
END_TEST

/* ------------------------------------------------------------------ input tables */

static const struct {
    float mean, std, min, max;
    qat_layout layout;
    int bits;
} tables[] = {{127.5f, 127.5f, -1, 1, QAT_LAYOUT_UINT8, 8},
              {127.5f, 127.5f, -1, 1, QAT_LAYOUT_INT8, 8},
              {0, 255, 0, 1, QAT_LAYOUT_UINT8, 8},
              {125.3f, 63.0f, -1.989f, 2.059f, QAT_LAYOUT_INT8, 8},
              {0, 1, 0, 255, QAT_LAYOUT_UINT8, 8},
              {100, 30, -2, 2, QAT_LAYOUT_INT8, 3}};

/** A pixel's entry is the code of its real value, for every pixel. */
START_TEST(test_pixel_tables)
{
    float const mean[2] = {tables[_i].mean, 10}, std[2] = {tables[_i].std, 200};
    int32_t lo, hi;
    uint8_t codes[512];
    float values[512];
    qat_code_range(tables[_i].layout, tables[_i].bits, false, &lo, &hi);
    qat_qparams const p = qat_choose_qparams(tables[_i].min, tables[_i].max, lo, hi, true);
    qat_pixel_tables(2, mean, std, &p, codes);
    qat_pixel_values(2, mean, std, values);
    for (int i = 0; i < 512; i++) {
        float const centred = (float)(i % 256) - mean[i / 256];
        ck_assert(values[i] == centred / std[i / 256]);
        ck_assert_uint_eq(codes[i], (uint8_t)qat_code(&p, values[i]));
    }
}
END_TEST

/** With mean 0, std 1 and the range of bytes, a pixel is its own code. */
START_TEST(test_pixel_table_identity)
{
    uint8_t codes[256];
    qat_qparams const p = qat_choose_qparams(0, 255, 0, 255, true);
    qat_pixel_tables(1, (const float[]){0}, (const float[]){1}, &p, codes);
    for (int i = 0; i < 256; i++)
        ck_assert_uint_eq(codes[i], i);
}
END_TEST

START_TEST(test_input_table_comes_first)
{
    struct net n = small_net();
    qat_qgraph *g = NULL;
    qat_error err;
    float const mean[] = {1, 2, 3}, std[] = {100, 110, 120};
    make_eval(&n, true);
    check_status(qat_freeze(&g, n.eval, QAT_PROFILE_PAPER, NULL, &err), &err);
    int const codes = g->inputs[0];
    ck_assert_int_eq(qat_qgraph_add_input_table(g, 2, mean, std, &err), QAT_ERR_SHAPE);
    ck_assert_int_eq(qat_qgraph_add_input_table(g, 3, mean, (const float[]){1, 0, 1}, &err),
                     QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, "channel 1") != NULL, "%s", err.message);
    check_status(qat_qgraph_add_input_table(g, 3, mean, std, &err), &err);
    ck_assert_str_eq(g->ops[0].op, "table");
    ck_assert_int_eq(g->ops[0].outputs[0], codes);
    ck_assert_int_eq(g->ops[0].inputs[0], g->inputs[0]);
    ck_assert_str_eq(g->ops[1].op, "conv2d");
    ck_assert_int_eq(g->tensors[g->inputs[0]].type, QI_U8);
    qat_qgraph_free(g);
    net_free(&n);
}
END_TEST

/* ------------------------------------------------------------------ export */

/** Pixels for three batches, then the end. */
struct feed {
    int batches;
    uint8_t pixels[BATCH * IMAGE];
    const void *inputs[1];
};

static qat_status feed_pixels(void *context, int max_batch, qat_export_batch *batch, qat_error *err)
{
    struct feed *f = context;
    if (f->batches-- <= 0)
        return QAT_OK;
    for (int i = 0; i < max_batch * IMAGE; i++)
        f->pixels[i] = (uint8_t)(i * 37 + f->batches * 11 + i / 7);
    f->inputs[0] = f->pixels;
    *batch = (qat_export_batch){.count = max_batch, .inputs = f->inputs};
    return QAT_OK;
}

static const float half[] = {127.5f, 127.5f, 127.5f};

static qat_export_options pixel_options(struct feed *feed)
{
    return (qat_export_options){.channels = CHANNELS,
                                .mean = half,
                                .std = half,
                                .max_batch = BATCH,
                                .next = feed_pixels,
                                .next_context = feed,
                                .seed = 3};
}

START_TEST(test_export_verifies_and_opens)
{
    struct net n = small_net();
    struct feed feed = {.batches = 3};
    qat_export_options o = pixel_options(&feed);
    o.metadata.description = "small";
    qat_export_result r;
    qat_error err;
    qi_host *host = NULL;
    make_eval(&n, true);
    check_status(qat_export(&r, n.eval, &o, &err), &err);
    ck_assert_int_eq(r.samples, 3 * BATCH);
    ck_assert_int_eq(r.compare.tensors, 5);
    ck_assert_int_eq(r.compare.differing, 0);
    ck_assert_int_eq(r.compare.bytes, r.samples * (IMAGE + SIDE * SIDE * 4 + 2 * 2 * 4 * 2 + 3));
    ck_assert_int_eq(r.compare.simulated_bytes, r.compare.bytes);
    ck_assert_int_eq(r.compare.output_bytes, r.samples * 3);
    ck_assert_uint_eq(r.float_bytes, 4 * (4 * 9 * CHANNELS + 4 + 4 + 16 * 3 + 3));
    qi_host_options const core = {.isa = "scalar"}; /* whose arena is the core's */
    ck_assert_int_eq(qi_host_open_bytes(&host, r.qm, r.qm_bytes, "m", &core, NULL), QAT_OK);
    ck_assert_int_eq(qi_self_test(host->model, host->arena, NULL), QI_OK);
    ck_assert_str_eq(qi_model_description(host->model), "small");
    ck_assert_uint_eq(r.arena_bytes, qi_arena_bytes(host->model));
    qi_host_close(host);
    free(r.qm);
    net_free(&n);
}
END_TEST

START_TEST(test_export_with_random_inputs)
{
    struct net n = small_net();
    qat_export_result first, second;
    qat_error err;
    make_eval(&n, true);
    qat_export_options const o = {.max_batch = BATCH, .random_samples = 10, .seed = 9};
    check_status(qat_export(&first, n.eval, &o, &err), &err);
    check_status(qat_export(&second, n.eval, &o, &err), &err);
    ck_assert_int_eq(first.samples, 10);
    ck_assert_uint_eq(first.qm_bytes, second.qm_bytes);
    ck_assert_mem_eq(first.qm, second.qm, first.qm_bytes);
    free(first.qm);
    free(second.qm);
    net_free(&n);
}
END_TEST

START_TEST(test_export_refuses_one_byte)
{
    struct net n = copy_net();
    struct feed feed = {.batches = 1};
    qat_export_options o = pixel_options(&feed);
    qat_export_result r;
    qat_error err;
    make_eval(&n, true);
    o.kernels = &copies;
    check_status(qat_export(&r, n.eval, &o, &err), &err);
    free(r.qm);
    feed.batches = 1;
    o.kernels = &faulty;
    ck_assert_int_eq(qat_export(&r, n.eval, &o, &err), QAT_ERR_MISMATCH);
    ck_assert_ptr_null(r.qm);
    ck_assert_int_gt(r.compare.differing, 0);
    ck_assert_int_le(r.compare.differing, BATCH);
    ck_assert_msg(strstr(err.message, "duplicate/q, sample ") && strstr(err.message, "value 7: "),
                  "%s", err.message);
    net_free(&n);
}
END_TEST

START_TEST(test_export_needs_data)
{
    struct net n = small_net();
    struct feed feed = {.batches = 0};
    qat_export_options o = pixel_options(&feed);
    qat_export_result r;
    qat_error err;
    make_eval(&n, true);
    ck_assert_int_eq(qat_export(&r, n.eval, &o, &err), QAT_ERR_STATE);
    o.next = NULL;
    ck_assert_int_eq(qat_export(&r, n.eval, &o, &err), QAT_ERR_ARGUMENT);
    net_free(&n);
}
END_TEST

START_TEST(test_allocations_may_fail)
{
    struct net n = small_net();
    make_eval(&n, true);
    bool failed = true;
    for (long count = 0; failed; count++) {
        struct feed feed = {.batches = 1};
        qat_export_options const o = pixel_options(&feed);
        qat_export_result r;
        qat_error err;
        test_fail_alloc_after(count);
        qat_status const st = qat_export(&r, n.eval, &o, &err);
        failed = test_fail_alloc_stop();
        ck_assert_msg(st == (failed ? QAT_ERR_NOMEM : QAT_OK), "allocation %ld: %s: %s", count,
                      qat_status_name(st), err.message);
        free(r.qm);
    }
    net_free(&n);
}
END_TEST

/* ------------------------------------------------------------------ verifier */

/** Three samples of one value each: how many codes a tensor can have shown. */
START_TEST(test_variety_is_counted_where_there_is_room)
{
    struct net n = net_new();
    qat_node *x = qat_graph_input(n.graph, "x", QAT_SHAPE(1, 1, 1, 100));
    x = qat_apply1(n.graph, "relu", "r", "", x);
    qat_graph_output(n.graph, qat_apply1(n.graph, "global_average_pool", "g", "", x));
    qat_node *small = qat_graph_input(n.graph, "y", QAT_SHAPE(1, 1, 1, 10));
    qat_graph_output(n.graph, qat_apply1(n.graph, "relu", "s", "", small));
    qat_export_result r;
    qat_error err;
    make_eval(&n, true);
    qat_export_options const o = {.max_batch = BATCH, .random_samples = 4, .seed = 1};
    check_status(qat_export(&r, n.eval, &o, &err), &err);
    ck_assert_int_eq(r.compare.tensors, 3);
    ck_assert_int_eq(r.compare.tensors_large, 2); /* 400, 400 and 40 values; 64 are asked for */
    ck_assert_int_eq(r.compare.tensors_varied, 2);
    free(r.qm);
    net_free(&n);
}
END_TEST

START_TEST(test_verifier_refuses_foreign_models)
{
    struct net n = small_net(), other = copy_net();
    qat_qgraph *g = NULL;
    qat_export_result r;
    qat_verifier *v = NULL;
    qat_error err;
    make_eval(&n, true);
    make_eval(&other, true);
    qat_export_options const o = {.max_batch = BATCH, .random_samples = 1, .kernels = &copies};
    check_status(qat_export(&r, other.eval, &o, &err), &err);
    check_status(qat_freeze(&g, n.eval, QAT_PROFILE_PAPER, NULL, &err), &err);
    ck_assert_int_eq(qat_verifier_create(&v, g, NULL, r.qm, r.qm_bytes, &copies, registry, 1, &err),
                     QAT_ERR_ARGUMENT);
    r.qm[r.qm_bytes - 1] ^= 1;
    ck_assert_int_eq(qat_verifier_create(&v, g, NULL, r.qm, r.qm_bytes, &copies, registry, 1, &err),
                     QAT_ERR_FORMAT);
    ck_assert_ptr_null(v);
    free(r.qm);
    qat_qgraph_free(g);
    net_free(&n);
    net_free(&other);
}
END_TEST

static void setup(void)
{
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, &cube_without_quant, NULL), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, &cube, NULL), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, &copy, NULL), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, &my_clip, NULL), QAT_OK);
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        ck_assert_int_eq(qat_registry_add(registry, &gates[i], NULL), QAT_OK);
}

static void teardown(void)
{
    qat_registry_free(registry);
}

static void add_freeze_tests(TCase *t)
{
    tcase_add_test(t, test_layers_become_one_op_each);
    tcase_add_test(t, test_tensors_are_named_after_nodes);
    tcase_add_test(t, test_redundant_requantizations_are_dropped);
    tcase_add_test(t, test_fixed_ranges_are_requantized);
    tcase_add_test(t, test_relu_between_quantized_tensors);
    tcase_add_test(t, test_elementwise_becomes_a_table);
    tcase_add_test(t, test_a_users_clamp_is_fused);
    tcase_add_test(t, test_a_users_fixed_range);
    tcase_add_test(t, test_training_graphs_are_refused);
    tcase_add_loop_test(t, test_wrong_quant_entries_are_refused, 0, 3);
    tcase_add_test(t, test_unobserved_ranges_are_refused);
    tcase_add_test(t, test_ops_without_quant_entry_are_refused);
    tcase_add_test(t, test_overflowing_accumulators_are_refused);
    tcase_add_test(t, test_nan_weights_are_refused);
    tcase_add_loop_test(t, test_pixel_tables, 0, (int)(sizeof tables / sizeof *tables));
    tcase_add_test(t, test_pixel_table_identity);
    tcase_add_test(t, test_input_table_comes_first);
}

static void add_export_tests(TCase *t)
{
    tcase_add_test(t, test_export_verifies_and_opens);
    tcase_add_test(t, test_export_with_random_inputs);
    tcase_add_test(t, test_export_refuses_one_byte);
    tcase_add_test(t, test_export_needs_data);
    tcase_add_test(t, test_allocations_may_fail);
    tcase_add_test(t, test_variety_is_counted_where_there_is_room);
    tcase_add_test(t, test_verifier_refuses_foreign_models);
}

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tcase = tcase_create("convert");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    add_freeze_tests(tcase);
    add_export_tests(tcase);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
