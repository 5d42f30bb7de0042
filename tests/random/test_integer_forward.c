/**
 * Property: training on integers computes what the exported model computes. With forward = integer
 * and frozen batch norm, every tensor of a training step equals the exported model's, byte for
 * byte. The networks are random (random_net.c).
 *
 * A network is trained on integers for some steps, with its own delays. Then its forward pass runs
 * once more. The model is exported with the same parameters, and the engine runs the same batch.
 * Networks with dropout are compared in evaluation mode, because export leaves dropout out. Every
 * second network keeps all values (QAT_PLAN_TRAIN_KEEP), so that no ops run in chains.
 *
 * Both plans must give the same bits, and so must 1, 2 and 4 threads. With fewer than 8 bits, a
 * simulation must too: its sums are those of float32, and all else is the integers' (live.h).
 *
 *     test_integer_forward [SEED [NETS [FIRST]]]
 */
#include "base/parallel.h"
#include "common/suite.h"
#include "fakequant/bits.h"
#include "qat/convert.h"
#include "random/random_net.h"
#include "rewrite/options.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, STEPS = 4, STREAM = 1 };

static uint64_t seed = 20240611;
static uint64_t nets = 200, first_net = 0;
static int64_t tensors, bytes_compared, internal_tensors, frozen, schedules, refused, eights, tiny;

struct bench {
    random_net net;
    qat_graph *training, *eval;
    qat_graph *lean;     /* an eval graph of few bits, planned to keep no values */
    qat_graph *compared; /* with the engine: the training graph or the lean one */
    qat_optimizer *optimizer;
    qat_qgraph *graph;
    uint8_t *qm, *codes[NET_MAX_INPUTS];
    size_t qm_bytes;
    qi_host *host;
    int64_t differing;
    int sample;
    char first[256];
};

static void release(struct bench *b)
{
    for (int i = 0; i < NET_MAX_INPUTS; i++)
        free(b->codes[i]);
    qi_host_close(b->host);
    qat_qgraph_free(b->graph);
    qat_optimizer_free(b->optimizer);
    qat_graph_free(b->eval);
    qat_graph_free(b->lean);
    qat_graph_free(b->training);
    random_net_free(&b->net);
    free(b->qm);
}

/* ------------------------------------------------------------------ training */

static bool has_dropout(const qat_graph *graph)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        if (qat_node_is_op(qat_graph_node(graph, i), "dropout"))
            return true;
    return false;
}

static void feed(struct bench *b, qat_graph *graph, int step)
{
    uint8_t bytes[1 << 14];
    for (int i = 0; i < b->net.n_inputs; i++) {
        qat_node *x = qat_graph_find(graph, b->net.inputs[i]->name);
        size_t const n = qat_shape_count(&x->shape) / BATCH;
        ck_assert_uint_le(n, sizeof bytes);
        for (int s = 0; s < BATCH; s++)
            random_net_sample(&b->net, STREAM, step * BATCH + s, false, i, bytes,
                              x->value + (size_t)s * n);
    }
    qat_node *label = b->net.label ? qat_graph_find(graph, b->net.label->name) : NULL;
    for (int s = 0; label && s < BATCH; s++)
        label->value[s] = (float)((step + s) % b->net.classes);
}

/** Leave out what forward = integer refuses; learned ranges, powers of two, bits, schemes stay. */
static void only_integers(qat_quant_options *o)
{
    if (!qat_quant_has_integers(o->weight_ranges))
        strcpy(o->weight_ranges, "tqt");
    for (int i = 0; i < o->n_layers; i++)
        if (!qat_quant_has_integers(o->layers[i].weight_ranges))
            strcpy(o->layers[i].weight_ranges, "lsq");
}

static qat_status set_up(struct bench *b, uint64_t index, qat_forward forward, qat_plan plan,
                         const qat_registry *registry, qat_error *err)
{
    qat_optimizer_options const sgd = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    random_net *net = &b->net;
    qat_quant_options *o = &net->options;
    qat_status st = random_net_create(net, seed, index, registry, err);
    only_integers(o);
    o->freeze_bits = o->freeze_bits ? 8 : 0; /* weights of any bits may freeze */
    random_net_make_narrow(net);
    o->forward = forward;
    o->profile = net->profile;
    o->bn_freeze_delay = STEPS;
    if (index % 4 == 1) {
        o->dampen = 0.5;
        o->dampened = STEPS;
    }
    if (index % 3) /* integers from the first step on: values are kept as codes alone */
        o->weight_delay = o->activation_delay = 0;
    if (!st)
        st = random_net_set_params(net, BATCH, STREAM, err);
    if (!st)
        st = qat_create_training_graph(&b->training, net->graph, o, err);
    if (!st)
        st = qat_graph_plan(b->training, BATCH, plan, err);
    if (!st)
        st = qat_optimizer_create(&b->optimizer, b->training, &sgd, err);
    if (st)
        return st;
    qat_graph_init_params(b->training, net->seed);
    qat_graph_copy_params(b->training, net->graph);
    return QAT_OK;
}

static bool ends_with(const char *name, const char *end)
{
    size_t const length = strlen(name), n = strlen(end);
    return length >= n && strcmp(name + length - n, end) == 0;
}

/** How many weights are frozen at a code. */
static int64_t count_frozen(const qat_graph *graph)
{
    int64_t n = 0;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        for (size_t k = 0; ends_with(node->name, "/q/frozen") && k < qat_shape_count(&node->shape);
             k++)
            n += node->value[k] > 0;
    }
    return n;
}

/** Make the weights oscillate: from step to step they grow and shrink, neighbours in turn. */
static void shake(qat_graph *graph, int step)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (!node->is_param || !ends_with(node->name, "/weights"))
            continue;
        for (size_t k = 0; k < qat_shape_count(&node->shape); k++)
            node->value[k] *= (k + (size_t)step) % 2 ? 1.3f : 1 / 1.3f;
    }
}

/** A network that began inside a schedule of bits leaves it in the middle of the run. */
static void leave_schedule(struct bench *b, int step)
{
    qat_quant_options *o = &b->net.options;
    if (step != STEPS / 2 || (!o->least_weight_bits && !o->least_activation_bits))
        return;
    o->least_weight_bits = o->least_activation_bits = 0;
    qat_set_least_bits(b->training, 0, 0, true);
    schedules++;
}

static qat_status train(struct bench *b, qat_error *err)
{
    bool const freezes = b->net.options.freeze_bits > 0;
    qat_node *loss = qat_graph_find(b->training, b->net.loss->name);
    qat_status st = QAT_OK;
    for (int step = 0; !st && step < STEPS; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = b->net.seed};
        feed(b, b->training, step);
        leave_schedule(b, step);
        qat_graph_forward(b->training, &run);
        st = qat_graph_run_status(b->training, err);
        if (st)
            break;
        ck_assert_ptr_null(qat_graph_find_nonfinite(b->training));
        qat_graph_backward(b->training, loss, &run);
        ck_assert_ptr_null(qat_graph_find_nonfinite(b->training)); /* not what took its memory */
        qat_optimizer_step(b->optimizer, 1e-4);
        if (freezes)
            shake(b->training, step);
        qat_graph_update(b->training, &run);
    }
    return st;
}

/* ------------------------------------------------------------------ comparing */

static qat_status export(struct bench *b, qat_error *err)
{
    qat_qm_metadata const metadata = {.description = "random network"};
    qat_status st = qat_create_eval_graph(&b->eval, b->net.graph, &b->net.options, err);
    if (!st)
        st = qat_graph_plan(b->eval, 1, QAT_PLAN_KEEP, err);
    if (!st) {
        qat_graph_copy_params(b->eval, b->training);
        st = qat_freeze(&b->graph, b->eval, b->net.profile, NULL, err);
    }
    if (!st)
        st = qat_qm_write(b->graph, &metadata, &b->qm, &b->qm_bytes, err);
    if (!st)
        st = qi_host_open_bytes(&b->host, b->qm, b->qm_bytes, "model", NULL, err);
    return st;
}

static void compare(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    struct bench *b = context;
    qat_qparams p;
    const qat_qtensor *t = &b->graph->tensors[tensor];
    const qat_node *node = qat_graph_find(b->compared, t->name);
    const uint8_t *codes = node ? qat_integer_codes(node, &p) : NULL, *engine = data;
    size_t const n = qat_qtensor_bytes(t);
    if (!codes) {
        internal_tensors++;
        return;
    }
    ck_assert_uint_eq(n * BATCH, qat_shape_count(&node->shape));
    codes += (size_t)b->sample * n;
    tensors++;
    bytes_compared += (int64_t)n;
    for (size_t i = 0; i < n; i++)
        if (codes[i] != engine[i] && b->differing++ == 0)
            snprintf(b->first, sizeof b->first, "%s, sample %d, value %zu: graph %d, engine %d",
                     t->name, b->sample, i, qat_qtensor_code(t, codes[i]),
                     qat_qtensor_code(t, engine[i]));
}

static void run_sample(struct bench *b, int sample)
{
    const void *inputs[NET_MAX_INPUTS];
    void *outputs[64] = {NULL};
    b->sample = sample;
    for (int i = 0; i < b->graph->n_inputs; i++) {
        const qat_qtensor *t = &b->graph->tensors[b->graph->inputs[i]];
        qat_qparams p;
        const uint8_t *codes = qat_integer_codes(qat_graph_find(b->compared, t->name), &p);
        ck_assert_ptr_nonnull(codes);
        inputs[i] = codes + (size_t)sample * qat_qtensor_bytes(t);
    }
    ck_assert_int_le(b->graph->n_outputs, 64);
    qi_host_run_visit(b->host, NULL, inputs, outputs, compare, b);
}

/** The eval graph, whose plan keeps no values. Its first run is the one that is compared. */
static qat_status run_eval(struct bench *b, qat_error *err)
{
    qat_graph *graph = NULL;
    qat_status st = qat_create_eval_graph(&graph, b->net.graph, &b->net.options, err);
    if (!st)
        st = qat_graph_plan(graph, 2 * BATCH, QAT_PLAN_EVAL, err);
    if (!st)
        st = qat_graph_set_batch(graph, BATCH, err);
    if (!st) {
        qat_graph_copy_params(graph, b->training);
        qat_simulate_integers(graph, true);
        feed(b, graph, STEPS);
        qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
        st = qat_graph_run_status(graph, err);
    }
    b->compared = b->lean = graph;
    return st;
}

static qat_status run_net(struct bench *b, uint64_t index, qat_forward forward, bool of_eval,
                          const qat_registry *registry, qat_error *err)
{
    qat_plan const plan = index % 2 ? QAT_PLAN_TRAIN_KEEP : QAT_PLAN_TRAIN;
    qat_status st = set_up(b, index, forward, plan, registry, err);
    if (!st && forward == QAT_FORWARD_SIMULATED && !qat_quant_simulates_integers(&b->net.options)) {
        eights++;
        return QAT_OK;
    }
    if (!st)
        st = train(b, err);
    if (st)
        return st;
    frozen += count_frozen(b->training);
    qat_run const run = {.mode = has_dropout(b->training) ? QAT_MODE_EVAL : QAT_MODE_TRAIN,
                         .step = STEPS,
                         .seed = b->net.seed};
    feed(b, b->training, STEPS);
    qat_graph_forward(b->training, &run);
    st = qat_graph_run_status(b->training, err);
    if (!st)
        st = export(b, err);
    b->compared = b->training;
    if (!st && of_eval)
        st = run_eval(b, err);
    for (int s = 0; !st && s < BATCH; s++)
        run_sample(b, s);
    if (!st && b->differing)
        st = qat_fail(err, QAT_ERR_MISMATCH, "%" PRId64 " bytes differ, first: %s", b->differing,
                      b->first);
    return st;
}

static void compare_networks(qat_forward forward, bool of_eval)
{
    qat_registry *registry = NULL;
    qat_error err;
    int failures = 0;
    tensors = bytes_compared = internal_tensors = frozen = schedules = refused = eights = 0;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    qat_set_threads(1); /* tensors this small are not worth a second thread */
    for (uint64_t i = first_net; i < first_net + nets && failures < 5; i++) {
        struct bench b = {0};
        qat_status const st = run_net(&b, i, forward, of_eval, registry, &err);
        if (st == QAT_ERR_UNSUPPORTED) { /* scales that hard_swish does not take */
            refused++;
        } else if (st) {
            printf("network %" PRIu64 ": %s: %s\n", i, qat_status_name(err.status), err.message);
            failures++;
        }
        release(&b);
    }
    qat_registry_free(registry);
    printf("%" PRIu64 " networks, %" PRId64 " tensors, %" PRId64 " bytes compared; %" PRId64
           " tensors within layers; %" PRId64 " weights frozen, %" PRId64
           " schedules of bits ended; %" PRId64 " networks refused, %" PRId64
           " of 8 bits left out\n",
           nets, tensors, bytes_compared, internal_tensors, frozen, schedules, refused, eights);
    ck_assert_int_eq(failures, 0);
    ck_assert_uint_le(100 * (uint64_t)refused, nets);
    ck_assert_int_gt(bytes_compared, 0);
    ck_assert_int_lt(20 * internal_tensors, tensors); /* nearly all have codes in training */
    ck_assert(nets < 100 || (frozen > 0 && schedules > 0 && 2 * (uint64_t)eights < nets));
}

START_TEST(test_training_forward_is_the_engine)
{
    compare_networks(QAT_FORWARD_INTEGER, false);
}
END_TEST

/** Of the training graph, and of the eval graph. */
START_TEST(test_simulation_of_few_bits_is_the_engine)
{
    compare_networks(QAT_FORWARD_SIMULATED, _i);
}
END_TEST

/* ------------------------------------------------------------------ threads */

static const qat_forward forwards[] = {QAT_FORWARD_INTEGER, QAT_FORWARD_SIMULATED};

/** How a network is trained. */
struct way {
    qat_forward forward;
    qat_plan plan;
    int threads;
};

/** Hash of all parameters after training. */
static uint64_t trained(uint64_t index, struct way way, const qat_registry *registry)
{
    struct bench b = {0};
    qat_error err;
    uint64_t hash = UINT64_C(14695981039346656037);
    qat_set_threads(way.threads);
    qat_status st = set_up(&b, index, way.forward, way.plan, registry, &err);
    if (!st)
        st = train(&b, &err);
    ck_assert_msg(!st || st == QAT_ERR_UNSUPPORTED, "network %" PRIu64 ": %s", index, err.message);
    for (int i = 0; i < qat_graph_nodes(b.training); i++) {
        const qat_node *node = qat_graph_node(b.training, i);
        const uint8_t *value = (const uint8_t *)node->value;
        for (size_t k = 0; node->is_param && k < qat_shape_count(&node->shape) * sizeof(float); k++)
            hash = (hash ^ value[k]) * UINT64_C(1099511628211);
    }
    release(&b);
    return hash;
}

START_TEST(test_same_bits_for_all_threads)
{
    qat_registry *registry = NULL;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    for (uint64_t i = first_net; i < first_net + nets && i < first_net + 10; i++) {
        struct way way = {forwards[_i], QAT_PLAN_TRAIN, 1};
        uint64_t const one = trained(i, way, registry);
        for (way.threads = 2; way.threads <= 4; way.threads *= 2)
            ck_assert_uint_eq(trained(i, way, registry), one);
    }
    qat_registry_free(registry);
}
END_TEST

/** Chains change no bit of what is learned, and neither does keeping values as codes. */
START_TEST(test_same_bits_for_all_plans)
{
    qat_registry *registry = NULL;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    for (uint64_t i = first_net; i < first_net + nets; i++) {
        struct way const a = {forwards[_i], QAT_PLAN_TRAIN, 1};
        struct way const b = {forwards[_i], QAT_PLAN_TRAIN_KEEP, 1};
        ck_assert_msg(trained(i, a, registry) == trained(i, b, registry), "network %" PRIu64, i);
    }
    qat_registry_free(registry);
}
END_TEST

/** Has it channels whose products are no normal numbers of float32? A simulation has 0 for them. */
static bool has_tiny_weights(const qat_graph *graph)
{
    bool found = false;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        bool const is_weights = node->is_param && ends_with(node->name, "/weights");
        for (size_t k = 0; is_weights && k < qat_shape_count(&node->shape); k++)
            found |= node->value[k] != 0 && fabsf(node->value[k]) < 0x1p-100f;
    }
    return found;
}

/** Is its simulation of few bits, and exact? */
static bool simulates_integers(uint64_t index, const qat_registry *registry)
{
    struct bench b = {0};
    qat_error err;
    bool const does = !set_up(&b, index, QAT_FORWARD_SIMULATED, QAT_PLAN_TRAIN, registry, &err) &&
                      qat_quant_simulates_integers(&b.net.options);
    bool const is_tiny = does && has_tiny_weights(b.training);
    tiny += is_tiny;
    release(&b);
    return does && !is_tiny;
}

/** What is learned of few bits is the same, whether the sums are integers or float32. */
START_TEST(test_same_bits_as_the_simulation)
{
    static const struct way integers = {QAT_FORWARD_INTEGER, QAT_PLAN_TRAIN, 1};
    static const struct way simulation = {QAT_FORWARD_SIMULATED, QAT_PLAN_TRAIN, 1};
    qat_registry *registry = NULL;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    for (uint64_t i = first_net; i < first_net + nets; i++)
        ck_assert_msg(!simulates_integers(i, registry) ||
                          trained(i, simulation, registry) == trained(i, integers, registry),
                      "network %" PRIu64, i);
    qat_registry_free(registry);
    ck_assert_uint_le(10 * (uint64_t)tiny, nets);
}
END_TEST

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : seed;
    nets = argc > 2 ? strtoull(argv[2], NULL, 10) : nets;
    first_net = argc > 3 ? strtoull(argv[3], NULL, 10) : first_net;
    Suite *suite = suite_create("integer forward");
    TCase *tcase = tcase_create("random networks");
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, test_training_forward_is_the_engine);
    tcase_add_loop_test(tcase, test_simulation_of_few_bits_is_the_engine, 0, 2);
    tcase_add_loop_test(tcase, test_same_bits_for_all_plans, 0, 2);
    tcase_add_loop_test(tcase, test_same_bits_for_all_threads, 0, 2);
    tcase_add_test(tcase, test_same_bits_as_the_simulation);
    suite_add_tcase(suite, tcase);
    return test_run_suite_as(suite, CK_NOFORK, CK_ENV);
}
