/**
 * Which simulations round as the integers do: those of few bits, if the network has integers; an
 * eval graph if it is asked to.
 */
#include "common/common.h"
#include "common/suite.h"
#include "qat/quant.h"
#include "rewrite/options.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { BATCH = 2, STEPS = 3 };

/* ------------------------------------------------------------------ of options */

START_TEST(test_bits_decide)
{
    qat_quant_options o = qat_quant_defaults();
    ck_assert(!qat_quant_simulates_integers(&o));
    o.weight_bits = 7;
    ck_assert(qat_quant_simulates_integers(&o));
    o.forward = QAT_FORWARD_FAKE_QUANT;
    ck_assert(!qat_quant_simulates_integers(&o));
    o = qat_quant_defaults();
    o.activation_bits = 2;
    ck_assert(qat_quant_simulates_integers(&o));
    o.activation_bits = QAT_WIDE_BITS;
    o.weight_bits = 4; /* no codes of 16 bits */
    ck_assert(!qat_quant_simulates_integers(&o));
    o = qat_quant_defaults();
    o.input_bits = 8;
    ck_assert(!qat_quant_simulates_integers(&o));
    o.input_bits = 4;
    ck_assert(qat_quant_simulates_integers(&o));
    o.input_bits = 0;
    strcpy(o.weight_ranges, "twn"); /* three codes, whatever weight_bits says */
    ck_assert(qat_quant_simulates_integers(&o));
}
END_TEST

START_TEST(test_bits_of_a_layer_decide)
{
    qat_quant_options o = qat_quant_defaults();
    o.n_layers = 1;
    o.layers[0] = qat_quant_layer_defaults("conv");
    ck_assert(!qat_quant_simulates_integers(&o));
    o.layers[0].weight_bits = 4;
    ck_assert(qat_quant_simulates_integers(&o));
    o.layers[0].weight_bits = 0;
    o.layers[0].input_bits = 3;
    ck_assert(qat_quant_simulates_integers(&o));
    o.layers[0].is_float = 1;
    ck_assert(!qat_quant_simulates_integers(&o));
}
END_TEST

START_TEST(test_quantizers_without_integers)
{
    static const char *const none[] = {"fgq", "inq", "none"};
    qat_quant_options o = qat_quant_defaults();
    o.weight_bits = 4;
    strcpy(_i == 2 ? o.activation_ranges : o.weight_ranges, none[_i]);
    ck_assert(!qat_quant_simulates_integers(&o));
}
END_TEST

/* ------------------------------------------------------------------ of networks */

struct net {
    qat_registry *registry;
    qat_graph *plain, *training;
};

static qat_quant_options bits_of(int weight_bits, qat_forward forward)
{
    qat_quant_options o = qat_quant_defaults();
    o.weight_bits = weight_bits;
    o.forward = forward;
    return o;
}

/** One layer between the input and a loss. */
static void make(struct net *n, const qat_quant_options *o, const char *op, const char *args,
                 qat_shape shape)
{
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&n->registry, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&n->plain, n->registry, &err), QAT_OK);
    qat_node *y = qat_apply1(n->plain, op, "layer", args, qat_graph_input(n->plain, "x", shape));
    qat_graph_output(n->plain, y);
    qat_apply1(n->plain, "l2_loss", "loss", "", y);
    ck_assert_int_eq(qat_create_training_graph(&n->training, n->plain, o, &err), QAT_OK);
    ck_assert_msg(!qat_graph_plan(n->training, BATCH, QAT_PLAN_TRAIN_KEEP, &err), "%s",
                  err.message);
    qat_graph_init_params(n->training, 5);
}

static void tear_down(struct net *n)
{
    qat_graph_free(n->training);
    qat_graph_free(n->plain);
    qat_registry_free(n->registry);
}

/** Values from -1 to 1, another order in each step. */
static void fill(qat_graph *graph, int step)
{
    qat_node *x = qat_graph_find(graph, "x");
    size_t const count = qat_shape_count(&x->shape);
    for (size_t i = 0; i < count; i++)
        x->value[i] = -1 + 2 * (float)((i * 7 + (size_t)step) % count) / (float)(count - 1);
}

static void train(struct net *n)
{
    qat_error err;
    for (int step = 0; step < STEPS; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step};
        fill(n->training, step);
        qat_graph_forward(n->training, &run);
        ck_assert_msg(!qat_graph_run_status(n->training, &err), "%s", err.message);
        qat_graph_backward(n->training, qat_graph_find(n->training, "loss"), &run);
        qat_graph_update(n->training, &run);
    }
}

/** The codes that the output had in the last run; NULL: it had none. */
static const uint8_t *codes_of(const qat_graph *graph)
{
    qat_qparams p;
    return qat_integer_codes(qat_graph_output_at(graph, 0), &p);
}

START_TEST(test_few_bits_have_codes)
{
    struct net n = {0};
    qat_quant_options const o = bits_of(8 - 4 * _i, QAT_FORWARD_SIMULATED);
    make(&n, &o, "conv2d", "filters=5 kernel=3", QAT_SHAPE(BATCH, 6, 6, 3));
    train(&n);
    ck_assert_int_eq(codes_of(n.training) != NULL, _i);
    tear_down(&n);
}
END_TEST

/** Depthwise, transposed and strided convolutions, whose sums are of other shapes. */
START_TEST(test_sums_of_float32_are_those_of_integers)
{
    static const char *const layers[][2] = {{"conv2d", "filters=5 kernel=3 stride=2"},
                                            {"depthwise_conv2d", "kernel=3"},
                                            {"transpose_conv2d", "filters=5 kernel=3 stride=2"},
                                            {"fully_connected", "units=9"}};
    struct net n = {0}, same = {0};
    qat_quant_options o = bits_of(4, QAT_FORWARD_SIMULATED);
    qat_shape const shape = _i == 3 ? QAT_SHAPE(BATCH, 50) : QAT_SHAPE(BATCH, 6, 6, 3);
    make(&n, &o, layers[_i][0], layers[_i][1], shape);
    train(&n);
    o.forward = QAT_FORWARD_INTEGER;
    make(&same, &o, layers[_i][0], layers[_i][1], shape);
    train(&same);
    const qat_node *y = qat_graph_output_at(n.training, 0);
    size_t const count = qat_shape_count(&y->shape);
    ck_assert_mem_eq(codes_of(n.training), codes_of(same.training), count);
    ck_assert_mem_eq(y->value, qat_graph_output_at(same.training, 0)->value, count * sizeof(float));
    const qat_node *w = qat_graph_find(n.training, "layer/weights");
    ck_assert_mem_eq(w->grad, qat_graph_find(same.training, "layer/weights")->grad,
                     qat_shape_count(&w->shape) * sizeof(float));
    tear_down(&same);
    tear_down(&n);
}
END_TEST

enum { LONG = 70000 }; /* 255 * 127 * LONG is above 2^31 */

/** Sums that could leave int32 are an error on integers. Their simulation is fake quantization. */
START_TEST(test_networks_without_integers_are_fake_quantized)
{
    struct net n = {0}, same = {0};
    qat_quant_options o = bits_of(7, QAT_FORWARD_SIMULATED);
    make(&n, &o, "fully_connected", "units=2", QAT_SHAPE(BATCH, LONG));
    o.forward = QAT_FORWARD_FAKE_QUANT;
    make(&same, &o, "fully_connected", "units=2", QAT_SHAPE(BATCH, LONG));
    ck_assert_uint_eq(qat_graph_arena_bytes(n.training), qat_graph_arena_bytes(same.training));
    train(&n);
    train(&same);
    ck_assert_ptr_null(codes_of(n.training));
    ck_assert_mem_eq(qat_graph_output_at(n.training, 0)->value,
                     qat_graph_output_at(same.training, 0)->value, BATCH * 2 * sizeof(float));
    ck_assert_mem_eq(qat_graph_find(n.training, "layer/weights")->grad,
                     qat_graph_find(same.training, "layer/weights")->grad,
                     2 * LONG * sizeof(float));
    tear_down(&same);
    tear_down(&n);
}
END_TEST

static qat_graph *eval_graph(const struct net *n, const qat_quant_options *o, qat_plan plan)
{
    qat_graph *eval;
    qat_error err;
    ck_assert_int_eq(qat_create_eval_graph(&eval, n->plain, o, &err), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(eval, BATCH, plan, &err), QAT_OK);
    qat_graph_copy_params(eval, n->training);
    return eval;
}

static void run(qat_graph *eval)
{
    fill(eval, 0);
    qat_graph_forward(eval, &(qat_run){.mode = QAT_MODE_EVAL});
}

/** An eval graph is fake quantization until it is asked, and again afterwards. */
START_TEST(test_eval_graphs_do_if_asked)
{
    struct net n = {0};
    qat_quant_options o = bits_of(4, QAT_FORWARD_INTEGER);
    qat_plan const plan = _i & 1 ? QAT_PLAN_EVAL : QAT_PLAN_KEEP;
    make(&n, &o, "conv2d", "filters=5 kernel=3", QAT_SHAPE(BATCH, 6, 6, 3));
    train(&n);
    o.forward = QAT_FORWARD_FAKE_QUANT;
    qat_graph *plain = eval_graph(&n, &o, plan);
    o.forward = _i & 2 ? QAT_FORWARD_FAKE_QUANT : QAT_FORWARD_SIMULATED;
    qat_graph *eval = eval_graph(&n, &o, plan);
    qat_simulate_integers(plain, true); /* without effect */
    run(plain);
    for (int ask = 0; ask < 3; ask++) {
        const qat_node *y = qat_graph_output_at(eval, 0);
        qat_simulate_integers(eval, ask == 1);
        run(eval);
        ck_assert_int_eq(codes_of(eval) != NULL, ask == 1 && !(_i & 2));
        if (ask != 1)
            ck_assert_mem_eq(y->value, qat_graph_output_at(plain, 0)->value,
                             qat_shape_count(&y->shape) * sizeof(float));
    }
    ck_assert_ptr_null(codes_of(plain));
    qat_graph_free(eval);
    qat_graph_free(plain);
    tear_down(&n);
}
END_TEST

enum { DEPTH = 40000 };

/** One step of a layer whose products are all positive. */
static void sum_up(struct net *n, const qat_quant_options *o)
{
    qat_run const step = {.mode = QAT_MODE_TRAIN};
    make(n, o, "fully_connected", "units=3", QAT_SHAPE(BATCH, DEPTH));
    qat_node *x = qat_graph_find(n->training, "x"),
             *w = qat_graph_find(n->training, "layer/weights");
    fill(n->training, 0);
    for (size_t i = 0; i < qat_shape_count(&x->shape); i++)
        x->value[i] = fabsf(x->value[i]);
    for (size_t i = 0; i < qat_shape_count(&w->shape); i++)
        w->value[i] = fabsf(w->value[i]);
    qat_graph_forward(n->training, &step);
}

/** Sums of 8 bits may be too large for float32. They are those of integers then. */
START_TEST(test_large_sums_are_exact)
{
    struct net n = {0}, same = {0};
    qat_quant_options o = bits_of(7, QAT_FORWARD_SIMULATED);
    sum_up(&n, &o);
    o.forward = QAT_FORWARD_INTEGER;
    sum_up(&same, &o);
    qat_node *z = qat_graph_find(n.training, "layer");
    ck_assert_ptr_nonnull(codes_of(n.training));
    ck_assert_mem_eq(z->value, qat_graph_find(same.training, "layer")->value,
                     BATCH * 3 * sizeof(float));
    tear_down(&same);
    tear_down(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("simulated forward");
    TCase *tcase = tcase_create("few bits");
    tcase_add_test(tcase, test_bits_decide);
    tcase_add_test(tcase, test_bits_of_a_layer_decide);
    tcase_add_loop_test(tcase, test_quantizers_without_integers, 0, 3);
    tcase_add_loop_test(tcase, test_few_bits_have_codes, 0, 2);
    tcase_add_loop_test(tcase, test_sums_of_float32_are_those_of_integers, 0, 4);
    tcase_add_test(tcase, test_networks_without_integers_are_fake_quantized);
    tcase_add_loop_test(tcase, test_eval_graphs_do_if_asked, 0, 4);
    tcase_add_test(tcase, test_large_sums_are_exact);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
