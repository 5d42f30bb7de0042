/**
 * Property: for every network, the engine's bytes equal those of the exact evaluation.
 *
 * Random small networks (random_net.h) are calibrated, trained for 0..3 steps, frozen and written
 * as a .qm. Every tensor of every sample is compared byte for byte. Some samples are like the
 * calibration data, others are extreme.
 *
 * The test also looks at whether these comparisons mean something. It counts how many tensors have
 * at least min(64, 2^(bits-1)) different codes over all samples. (Small tensors and networks with
 * lsq, bwn or twn do not count.) And it checks that the integer graph is a right image of the float
 * graph: each layer may differ from its float original only by the roundings of its op
 * (qat_verifier_judge), and each file holds what its float graph and parameters say (qat_certify).
 * tests/source/mutants.sh shows that changed kernels are found.
 *
 *     test_property [SEED [NETS [FIRST [BITS]]]]   also QAT_PROPERTY_SEED, _NETS, _FIRST, _BITS
 *     QAT_PROPERTY_BITS=4 test_property       weights and activations of all layers have 4 bits,
 *                                             profile paper. With few bits, the float32 simulation
 *                                             must be the engine: at most 1 % of the bytes differ,
 *                                             of these 99.9 % by one code (with 2..4 bits)
 *
 * A network that fails is saved as property-<seed>-<net>.txt (graph and parameters) and .qm in
 * $QAT_PROPERTY_DIR (default: the current folder). To run it alone: SEED 1 NET.
 */
#include "base/bytes.h"
#include "base/files/file.h"
#include "base/parallel.h"
#include "common/suite.h"
#include "qat/export.h"
#include "random/random_net.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRAIN_BATCH = 16, VERIFY_BATCH = 32, LIKE_BATCHES = 9, MAX_KINDS = 160, MAX_OPS = 64 };
enum { STREAM_TRAIN = 1, STREAM_LIKE, STREAM_EXTREME };

static const double LOOSE = 2.0;       /* quanta */
static const double WIDE_LOOSE = 64.0; /* of 16-bit codes: 1/4 of a quantum of 8 bits */

static uint64_t seed = 20240607;
static uint64_t nets = 300, first_net = 0;
static int all_bits; /* 0: each network has its own */

/* ------------------------------------------------------------------ what was covered */

struct kind {
    char name[48];
    int64_t count;
};

/** Layers against their float originals, by the integer op that writes them. */
struct closeness {
    char op[QAT_QOP_NAME_MAX + 16];
    bool is_wide;
    int64_t layers, loose, unjudged; /* loose: the bound is above LOOSE quanta */
    double quanta, of_bound;         /* the largest: of those that are not loose; of all */
    int64_t values, differing, far;  /* codes; those that are not the float32 layer's; by more than
                                        one quantum */
};

struct coverage {
    struct kind kinds[MAX_KINDS];
    struct closeness ops[MAX_OPS];
    int n_kinds, n_ops;
    int64_t nets, samples, simulated_bytes, simulated_differing, simulated_far;
    int64_t refused; /* networks that no integers can stand for */
    int64_t clamped; /* networks with a clamped bias, which are not in simulated_... */
    int64_t tensors, large, varied, bytes;
    int64_t certified_layers, certified_weights, certified_biases, signal_tensors;
};

static struct coverage covered;

static void cover(const char *name, int64_t count)
{
    for (int i = 0; i < covered.n_kinds; i++) {
        if (strcmp(covered.kinds[i].name, name) == 0) {
            covered.kinds[i].count += count;
            return;
        }
    }
    ck_assert_int_lt(covered.n_kinds, MAX_KINDS);
    struct kind *k = &covered.kinds[covered.n_kinds++];
    snprintf(k->name, sizeof k->name, "%s", name);
    k->count = count;
}

static int64_t count_of(const char *name)
{
    for (int i = 0; i < covered.n_kinds; i++)
        if (strcmp(covered.kinds[i].name, name) == 0)
            return covered.kinds[i].count;
    return 0;
}

static struct closeness *closeness_of(const char *op, bool is_wide)
{
    char name[sizeof covered.ops[0].op];
    snprintf(name, sizeof name, is_wide ? "%s, 16 bits" : "%s", op);
    for (int i = 0; i < covered.n_ops; i++)
        if (strcmp(covered.ops[i].op, name) == 0)
            return &covered.ops[i];
    ck_assert_int_lt(covered.n_ops, MAX_OPS);
    struct closeness *c = &covered.ops[covered.n_ops++];
    snprintf(c->op, sizeof c->op, "%s", name);
    c->is_wide = is_wide;
    return c;
}

static void cover_codes(const qat_layer_check *layer, bool is_wide)
{
    struct closeness *c = closeness_of(layer->op, is_wide);
    c->values += layer->values;
    c->differing += layer->differing;
    c->far += layer->far;
}

static void cover_layer(const qat_layer_check *layer, bool is_wide)
{
    struct closeness *c = closeness_of(layer->op, is_wide);
    if (isinf(layer->bound)) {
        c->unjudged++;
        return;
    }
    c->layers++;
    if (layer->bound > (is_wide ? WIDE_LOOSE : LOOSE))
        c->loose++;
    else
        c->quanta = fmax(c->quanta, layer->quanta);
    c->of_bound = fmax(c->of_bound, layer->quanta / layer->bound);
}

static void cover_convolution(const qat_qop *op)
{
    bool const depthwise = strcmp(op->op, "depthwise_conv2d") == 0;
    cover("stride > 1", op->params[0] > 1 || op->params[1] > 1);
    cover("dilation > 1", op->params[2] > 1 || op->params[3] > 1);
    cover("padding", op->params[4] > 0 || op->params[5] > 0);
    cover(depthwise ? "depth multiplier > 1" : "groups > 1", op->params[6] > 1);
}

/** A multiplier M >= 1 is a left shift of its normalized significand. */
static void cover_multiplier(const qat_qgraph *graph, const qat_qop *op)
{
    if (!strstr(op->op, "conv2d") && strcmp(op->op, "fully_connected") != 0)
        return;
    const qat_qtensor *shift = &graph->tensors[op->inputs[4]];
    bool above_one = false;
    for (int32_t i = 0; i < shift->dims[0]; i++)
        above_one |= ((const int32_t *)shift->data)[i] > 0;
    cover("multiplier >= 1", above_one);
}

static void cover_op(const qat_qgraph *graph, const qat_qop *op)
{
    char name[48];
    snprintf(name, sizeof name, "op %s", op->op);
    cover(name, 1);
    cover("rounding DOUBLE", op->rounding == QI_ROUND_DOUBLE);
    cover("fraction", op->fraction > 0);
    cover("rounding LONG", op->rounding == QI_ROUND_LONG);
    if (op->rounding == QI_ROUND_EVEN) {
        snprintf(name, sizeof name, "rounding EVEN: %s", op->op);
        cover(name, 1);
    }
    if (strstr(op->op, "conv2d"))
        cover_convolution(op);
    cover_multiplier(graph, op);
    const qat_qtensor *a = &graph->tensors[op->inputs[0]];
    if (strcmp(op->op, "add") == 0 || strcmp(op->op, "sub") == 0 || strcmp(op->op, "mul") == 0)
        cover("broadcast",
              qat_qtensor_count(a) != qat_qtensor_count(&graph->tensors[op->inputs[1]]));
}

static void cover_net(const random_net *net, const qat_qgraph *graph)
{
    static const char *const profiles[] = {"paper", "tflite", "onnx"};
    const qat_quant_options *o = &net->options;
    char name[48];
    snprintf(name, sizeof name, "%s, %s", o->layout == QAT_LAYOUT_INT8 ? "int8" : "uint8",
             profiles[net->profile]);
    cover(name, 1);
    cover(o->bn_fold == QAT_FOLD_ONE_PASS ? "fold one_pass" : "fold two_pass", 1);
    snprintf(name, sizeof name, "weights %d bits", o->weight_bits);
    cover(name, 1);
    snprintf(name, sizeof name, "activations %d bits", o->activation_bits);
    cover(name, 1);
    snprintf(name, sizeof name, "weights by %s", o->weight_ranges);
    cover(name, 1);
    snprintf(name, sizeof name, "activations by %s", o->activation_ranges);
    cover(name, 1);
    cover("inputs of fewer bits", o->input_bits != 0);
    cover("powers of two", o->power_of_two);
    cover("layers of their own", o->n_layers);
    cover(net->pixels ? "input pixels" : "input codes", 1);
    cover("two inputs", net->n_inputs == 2);
    cover("several outputs", graph->n_outputs > 1);
    for (int i = 0; i < graph->n_ops; i++)
        cover_op(graph, &graph->ops[i]);
    for (int i = 0; i < qat_graph_nodes(net->graph); i++) {
        const qat_node *node = qat_graph_node(net->graph, i);
        if (!node->op)
            continue;
        if (strstr(node->op->name, "conv2d") || strstr(node->op->name, "pool2d"))
            cover("explicit padding",
                  qat_attr_padding(node, "padding").kind == QAT_PADDING_EXPLICIT);
        snprintf(name, sizeof name, "float %s", node->op->name);
        cover(name, 1);
    }
}

/* ------------------------------------------------------------------ one network */

/** Everything for one case. All members are released together. */
struct bench {
    random_net net;
    qat_graph *training, *eval;
    qat_graph *real, *simulated; /* for the certificate */
    qat_certify_signal *signal;
    qat_optimizer *optimizer;
    qat_qgraph *graph;
    qat_verifier *verifier;
    uint8_t *qm, *plain; /* packed where that is shorter; with a byte for each weight */
    size_t qm_bytes, plain_bytes;
    void *codes[NET_MAX_INPUTS]; /* VERIFY_BATCH samples */
    qi_type types[NET_MAX_INPUTS];
    float *values[NET_MAX_INPUTS];
    qat_qparams input_params[NET_MAX_INPUTS];
};

static size_t input_count(const random_net *net, int input)
{
    const qat_shape *s = &net->inputs[input]->shape;
    return (size_t)s->dims[1] * (size_t)s->dims[2] * (size_t)s->dims[3];
}

static qat_status allocate(struct bench *b, qat_error *err)
{
    for (int i = 0; i < b->net.n_inputs; i++) {
        size_t const n = VERIFY_BATCH * input_count(&b->net, i);
        b->codes[i] = calloc(n, sizeof(int16_t));
        b->values[i] = calloc(n, sizeof *b->values[i]);
        if (!b->codes[i] || !b->values[i])
            return qat_out_of_memory(err, NULL);
    }
    return QAT_OK;
}

static void release(struct bench *b)
{
    for (int i = 0; i < NET_MAX_INPUTS; i++) {
        free(b->codes[i]);
        free(b->values[i]);
    }
    qat_certify_signal_free(b->signal);
    qat_graph_free(b->real);
    qat_graph_free(b->simulated);
    qat_verifier_free(b->verifier);
    qat_qgraph_free(b->graph);
    qat_optimizer_free(b->optimizer);
    qat_graph_free(b->eval);
    qat_graph_free(b->training);
    random_net_free(&b->net);
    free(b->qm);
    free(b->plain);
}

/** Samples first..first+count-1 of a stream into the bench's buffers; real values become codes. */
static void fill(struct bench *b, uint64_t stream, int first, int count)
{
    for (int i = 0; i < b->net.n_inputs; i++) {
        size_t const n = input_count(&b->net, i);
        for (int s = 0; s < count; s++)
            random_net_sample(&b->net, stream, first + s, stream == STREAM_EXTREME, i,
                              (uint8_t *)b->codes[i] + (size_t)s * n, b->values[i] + (size_t)s * n);
        if (b->net.pixels && i == 0)
            continue;
        for (size_t k = 0; k < (size_t)count * n; k++)
            qat_store_code(b->types[i], b->codes[i], k,
                           qat_code(&b->input_params[i], b->values[i][k]));
    }
}

static void feed(struct bench *b, int step)
{
    fill(b, STREAM_TRAIN, step * TRAIN_BATCH, TRAIN_BATCH);
    for (int i = 0; i < b->net.n_inputs; i++) {
        qat_node *x = qat_graph_find(b->training, b->net.inputs[i]->name);
        memcpy(x->value, b->values[i], TRAIN_BATCH * input_count(&b->net, i) * sizeof *x->value);
    }
    qat_node *label = b->net.label ? qat_graph_find(b->training, b->net.label->name) : NULL;
    qat_rng rng = qat_rng_at(b->net.seed, 7, (uint64_t)step);
    for (int s = 0; label && s < TRAIN_BATCH; s++)
        label->value[s] = (float)qat_rng_below(&rng, (uint32_t)b->net.classes);
}

/** Calibrate on some batches (observers only), then train some steps. */
static qat_status train(struct bench *b, qat_error *err)
{
    const random_net *net = &b->net;
    qat_optimizer_options sgd = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    qat_status st = random_net_set_params(&b->net, TRAIN_BATCH, STREAM_TRAIN, err);
    if (!st)
        st = qat_create_training_graph(&b->training, net->graph, &net->options, err);
    if (!st)
        st = qat_graph_plan(b->training, TRAIN_BATCH, QAT_PLAN_TRAIN, err);
    if (!st)
        st = qat_graph_set_batch(b->training, TRAIN_BATCH, err);
    if (!st)
        st = qat_optimizer_create(&b->optimizer, b->training, &sgd, err);
    if (st)
        return st;
    qat_graph_init_params(b->training, net->seed);
    qat_graph_copy_params(b->training, net->graph);
    qat_node *loss = qat_graph_find(b->training, net->loss->name);
    for (int step = 0; step < net->calibration_steps + net->training_steps; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = net->seed};
        feed(b, step);
        qat_graph_forward(b->training, &run);
        if (step >= net->calibration_steps) {
            qat_graph_backward(b->training, loss, &run);
            qat_optimizer_step(b->optimizer, 1e-4);
        }
        qat_graph_update(b->training, &run);
    }
    return QAT_OK;
}

static qat_status export(struct bench *b, qat_error *err)
{
    const random_net *net = &b->net;
    qat_status st = qat_create_eval_graph(&b->eval, net->graph, &net->options, err);
    if (!st)
        st = qat_graph_plan(b->eval, VERIFY_BATCH, QAT_PLAN_KEEP, err);
    if (st)
        return st;
    qat_graph_copy_params(b->eval, b->training);
    st = qat_freeze(&b->graph, b->eval, net->profile, NULL, err);
    if (st)
        return st;
    for (int i = 0; i < net->n_inputs; i++) {
        const qat_qtensor *t = &b->graph->tensors[b->graph->inputs[i]];
        b->types[i] = t->type;
        b->input_params[i] = qat_stored_qparams(t->type, t->bits, t->scale, t->zero_point);
    }
    if (net->pixels)
        st = qat_qgraph_add_input_table(b->graph, net->inputs[0]->shape.dims[3], net->mean,
                                        net->std, err);
    qat_qm_metadata const metadata = {.description = "random network"};
    return st ? st : qat_qm_write(b->graph, &metadata, &b->qm, &b->qm_bytes, err);
}

/** Compare the file with the float graph and the parameters of the training graph. */
static qat_status certify(struct bench *b, qat_error *err)
{
    const random_net *net = &b->net;
    qat_certificate certificate;
    qat_certify_source const source = {
        .graph = net->graph,
        .quant = net->options,
        .profile = net->profile,
        .values = qat_certify_graph_values,
        .context = b->training,
        .channels = net->pixels ? net->inputs[0]->shape.dims[3] : 0,
        .mean = net->mean,
        .std = net->std,
    };
    qat_status const st = qat_certify(&certificate, b->qm, b->qm_bytes, NULL, &source, err);
    covered.certified_layers += certificate.layers;
    covered.certified_weights += certificate.weights;
    covered.certified_biases += certificate.biases;
    ck_assert_int_eq(certificate.n_uncertified, 0);
    return st;
}

static bool uses(const qat_quant_options *o, const char *quantizer)
{
    bool found = !strcmp(o->weight_ranges, quantizer) || !strcmp(o->activation_ranges, quantizer);
    for (int i = 0; i < o->n_layers; i++)
        found |= !strcmp(o->layers[i].weight_ranges, quantizer) ||
                 !strcmp(o->layers[i].activation_ranges, quantizer);
    return found;
}

/** Weights of one magnitude: few different sums, and multipliers so large that bounds are wide. */
static bool has_one_magnitude(const qat_quant_options *o)
{
    return uses(o, "bwn") || uses(o, "twn");
}

/** lsq starts from s = 2 mean |x| / sqrt(P), with 8 bits many times what occurs: few codes then. */
static bool has_few_codes(const qat_quant_options *o)
{
    return uses(o, "lsq") || uses(o, "lsq_full") || has_one_magnitude(o);
}

/** Was a bias clamped to int32? Export warns then that the layer is not the one that was trained.
 */
static bool has_clamped_bias(const struct bench *b)
{
    for (int i = 0; i < qat_verifier_layers(b->verifier); i++)
        if (isinf(qat_verifier_layer(b->verifier, i)->bound))
            return true;
    return false;
}

static void cover_simulation(const struct bench *b)
{
    const qat_compare *r = qat_verifier_result(b->verifier);
    if (has_clamped_bias(b)) {
        covered.clamped++;
        return;
    }
    covered.simulated_bytes += r->simulated_bytes;
    covered.simulated_differing += r->simulated_differing;
    covered.simulated_far += r->simulated_far;
}

/** Networks are verified packed and not, in turn. */
static qat_status verify(struct bench *b, qat_error *err)
{
    bool const plain = b->net.index % 4 == 3;
    qat_status st = qat_verifier_create(&b->verifier, b->graph, b->eval, plain ? b->plain : b->qm,
                                        plain ? b->plain_bytes : b->qm_bytes, NULL,
                                        qat_graph_registry(b->net.graph), VERIFY_BATCH, err);
    for (int i = 0; !st && i <= LIKE_BATCHES; i++) {
        fill(b, i < LIKE_BATCHES ? STREAM_LIKE : STREAM_EXTREME, i * VERIFY_BATCH, VERIFY_BATCH);
        st = qat_verifier_batch(b->verifier, (const void *const *)b->codes,
                                (const float *const *)b->values, VERIFY_BATCH, err);
    }
    if (st)
        return st;
    const qat_compare *r = qat_verifier_result(b->verifier);
    covered.nets++;
    covered.samples += (LIKE_BATCHES + 1) * VERIFY_BATCH;
    covered.tensors += r->tensors;
    if (!has_few_codes(&b->net.options)) {
        covered.large += r->tensors_large;
        covered.varied += r->tensors_varied;
    }
    covered.bytes += r->bytes;
    cover_simulation(b);
    bool const is_wide = b->net.options.activation_bits == QAT_WIDE_BITS;
    for (int i = 0; i < qat_verifier_layers(b->verifier); i++) {
        cover_codes(qat_verifier_layer(b->verifier, i), is_wide);
        if (!has_one_magnitude(&b->net.options))
            cover_layer(qat_verifier_layer(b->verifier, i), is_wide);
    }

    if (r->differing)
        return qat_fail(err, QAT_ERR_MISMATCH, "%" PRId64 " of %" PRId64 " bytes differ, first: %s",
                        r->differing, r->bytes, r->first);
    return qat_verifier_judge(b->verifier, err);
}

/** The float network and the simulated one, with the trained parameters. */
static qat_status make_simulation(struct bench *b, const qat_registry *registry, qat_error *err)
{
    char *text = NULL;
    qat_quant_options quant = b->net.options;
    quant.forward = QAT_FORWARD_FAKE_QUANT;
    qat_status st = qat_graph_write(b->net.graph, &text, err);
    if (!st)
        st = qat_graph_read(&b->real, registry, text, "network", err);
    free(text);
    if (!st)
        st = qat_create_training_graph(&b->simulated, b->net.graph, &quant, err);
    if (!st)
        st = qat_graph_plan(b->real, VERIFY_BATCH, QAT_PLAN_KEEP, err);
    if (!st)
        st = qat_graph_plan(b->simulated, VERIFY_BATCH, QAT_PLAN_KEEP, err);
    if (st)
        return st;
    qat_graph_init_params(b->real, 0);
    qat_graph_init_params(b->simulated, 0);
    qat_graph_copy_params(b->real, b->training);
    qat_graph_copy_params(b->simulated, b->training);
    return qat_certify_signal_create(&b->signal, b->qm, b->qm_bytes, NULL, b->real, b->simulated,
                                     err);
}

/** The engine is about as far from the float network as the simulation. */
static qat_status compare_signal(struct bench *b, const qat_registry *registry, qat_error *err)
{
    qat_certificate certificate = {0};
    qat_status st = make_simulation(b, registry, err);
    for (int i = 0; !st && i < 2; i++) {
        fill(b, STREAM_LIKE, i * VERIFY_BATCH, VERIFY_BATCH);
        st = qat_certify_signal_batch(b->signal, (const void *const *)b->codes,
                                      (const float *const *)b->values, VERIFY_BATCH, err);
    }
    if (!st)
        st = qat_certify_signal_judge(b->signal, &certificate, err);
    covered.signal_tensors += certificate.signal_tensors;
    return st;
}

/* ------------------------------------------------------------------ as .tflite */

struct said {
    int lines;
};

static void count_line(void *context, const char *text)
{
    (void)text;
    ((struct said *)context)->lines++;
}

/** A file for those who compare it with another tool, where QAT_PROPERTY_KEEP says. */
static qat_status keep(const struct bench *b, const char *ending, const uint8_t *bytes,
                       size_t count, qat_error *err)
{
    const char *dir = getenv("QAT_PROPERTY_KEEP");
    char path[512];
    if (!dir)
        return QAT_OK;
    snprintf(path, sizeof path, "%s/%" PRIu64 "-%" PRIu64 ".%s", dir, seed, b->net.index, ending);
    return qat_file_write_atomic(path, bytes, count, err);
}

/** How the file holds its weights. */
static void cover_packing(const qi_model *m)
{
    char name[48];
    for (int32_t i = 0; i < qi_tensor_count(m); i++) {
        const qi_tensor *t = qi_tensor_at(m, i);
        snprintf(name, sizeof name,
                 t->packing == QI_PACKING_TRITS ? "packed, three values"
                 : t->listed                    ? "packed, %d bits, a list"
                                                : "packed, %d bits",
                 t->packing);
        if (t->packing)
            cover(name, 1);
    }
}

/**
 * Write the file again without packing, and without all parts that running does not need. The
 * writer compares the integers, of which it opens one file as a device does.
 */
static qat_status write_forms(struct bench *b, qat_error *err)
{
    qi_host *host = NULL;
    uint8_t *stripped = NULL;
    size_t stripped_bytes = 0;
    qat_qm_form const plain = {.unpacked = true}, short_form = {.without = QAT_QM_ALL_PARTS};
    qat_status st = qi_host_open_bytes(&host, b->qm, b->qm_bytes, "model", NULL, err);
    if (!st)
        st = qat_qm_write_again(host, &plain, &b->plain, &b->plain_bytes, err);
    if (!st)
        st = qat_qm_write_again(host, &short_form, &stripped, &stripped_bytes, err);
    if (!st)
        cover_packing(qi_host_model(host));
    if (!st && (stripped_bytes >= b->qm_bytes || b->qm_bytes > b->plain_bytes))
        st = qat_fail(err, QAT_ERR_MISMATCH, "%zu bytes, %zu stripped, %zu not packed", b->qm_bytes,
                      stripped_bytes, b->plain_bytes);
    free(stripped);
    qi_host_close(host);
    return st;
}

/**
 * The writer reads its file back, and compares multipliers and answers. A network with a profile of
 * its own rounds otherwise, and some have a grid that TensorFlow Lite has not.
 */
static qat_status write_tflite(const struct bench *b, qat_error *err)
{
    bool const tflite = b->net.profile == QAT_PROFILE_TFLITE;
    struct said said = {0};
    qat_log const log = {.line = count_line, .context = &said};
    qat_write_options const options = {.log = &log};
    qi_host *host = NULL;
    uint8_t *bytes[2] = {0};
    size_t count[2] = {0};
    qat_status st = qi_host_open_bytes(&host, b->qm, b->qm_bytes, "model", NULL, err);
    for (int i = 0; i < 2 && !st; i++)
        st = qat_tflite_write(host, &options, &bytes[i], &count[i], err);
    bool fraction = false;
    for (int i = 0; i < b->graph->n_ops; i++)
        fraction |= b->graph->ops[i].fraction > 0;
    cover(fraction ? ".tflite, fraction"
          : tflite ? st ? ".tflite refused" : ".tflite with equal answers"
                   : ".tflite, profile paper",
          1);
    if (st == QAT_ERR_UNSUPPORTED)
        printf("network %" PRIu64 ": %s\n", b->net.index, err->message);
    if (!st && (count[0] != count[1] || memcmp(bytes[0], bytes[1], count[0]) != 0))
        st = qat_fail(err, QAT_ERR_MISMATCH, "two .tflite files of one network differ");
    if (!st && tflite && said.lines && !fraction)
        st = qat_fail(err, QAT_ERR_MISMATCH, "profile tflite rounds otherwise in its .tflite");
    if (!st && tflite && !fraction)
        st = keep(b, "tflite", bytes[0], count[0], err);
    free(bytes[0]);
    free(bytes[1]);
    qi_host_close(host);
    return st == QAT_ERR_UNSUPPORTED ? QAT_OK : st;
}

/** What QAT_PROPERTY_BITS asks for. */
static void set_all_bits(qat_quant_options *o, int bits)
{
    o->weight_bits = o->activation_bits = bits;
    o->n_layers = o->input_bits = 0;
    o->fraction = QAT_FRACTION_AUTO;
}

/** A network that went astray in its training. There must be few of them. */
static qat_status refused(uint64_t index, const char *why, const qat_error *err)
{
    printf("network %" PRIu64 " %s: %s\n", index, why, err->message);
    covered.refused++;
    return QAT_OK;
}

static qat_status run_net(struct bench *b, uint64_t index, const qat_registry *registry,
                          qat_error *err)
{
    qat_status st = random_net_create(&b->net, seed, index, registry, err);
    if (!st && all_bits) {
        set_all_bits(&b->net.options, all_bits);
        b->net.profile = QAT_PROFILE_PAPER;
    }
    if (!st)
        st = allocate(b, err);
    if (!st)
        st = train(b, err);
    if (st)
        return st;
    st = export(b, err);
    if (st == QAT_ERR_UNSUPPORTED || st == QAT_ERR_NUMERIC)
        return refused(index, "cannot be exported", err);
    if (!st)
        st = certify(b, err);
    if (!st)
        st = compare_signal(b, registry, err);
    if (st == QAT_ERR_NUMERIC)
        return refused(index, "has infinite values", err);
    if (!st)
        st = keep(b, "qm", b->qm, b->qm_bytes, err);
    if (!st)
        st = write_forms(b, err);
    if (!st)
        st = write_tflite(b, err);
    if (!st)
        cover_net(&b->net, b->graph);
    return st ? st : verify(b, err);
}

/* ------------------------------------------------------------------ a failing network */

static void write_params(qat_writer *w, const qat_graph *graph)
{
    for (int i = 0; graph && i < qat_graph_nodes(graph); i++) {
        const qat_node *p = qat_graph_node(graph, i);
        if (!p->is_param || !p->value)
            continue;
        qat_write_text(w, "\n%s:", p->name);
        for (size_t k = 0; k < qat_shape_count(&p->shape); k++)
            qat_write_text(w, " %.9g", (double)p->value[k]);
    }
    qat_write_text(w, "\n");
}

static void save(const struct bench *b, const char *message)
{
    const char *dir = getenv("QAT_PROPERTY_DIR");
    char path[512], *text = NULL;
    qat_writer w = {0};
    qat_write_text(&w, "# seed %" PRIu64 ", network %" PRIu64 ": %s\n", seed, b->net.index,
                   message);
    if (b->net.graph && qat_graph_write(b->net.graph, &text, NULL) == QAT_OK)
        qat_write_text(&w, "%s", text);
    write_params(&w, b->eval ? b->eval : b->training);
    int const n = snprintf(path, sizeof path - 4, "%s/property-%" PRIu64 "-%" PRIu64,
                           dir ? dir : ".", seed, b->net.index);
    strcpy(path + n, ".txt");
    if (!w.failed && qat_file_write_atomic(path, w.bytes, w.count, NULL) == QAT_OK)
        printf("saved %s\n", path);
    strcpy(path + n, ".qm");
    if (b->qm && qat_file_write_atomic(path, b->qm, b->qm_bytes, NULL) == QAT_OK)
        printf("saved %s\n", path);
    qat_writer_free(&w);
    free(text);
}

/* ------------------------------------------------------------------ the test */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kind *)a)->name, ((const struct kind *)b)->name);
}

static void print_coverage(double seconds)
{
    printf("%" PRId64 " networks, %" PRId64 " tensors, %" PRId64 " samples, %" PRId64
           " bytes compared with the engine, %.1f s\n",
           covered.nets, covered.tensors, covered.samples, covered.bytes, seconds);
    printf("varied (without lsq, bwn, twn): %" PRId64 " of the %" PRId64
           " tensors that have min(64, 2^(bits-1)) values "
           "take as many distinct codes: %.1f %% (%" PRId64 " tensors have fewer values)\n",
           covered.varied, covered.large,
           covered.large ? 100.0 * (double)covered.varied / (double)covered.large : 0.0,
           covered.tensors - covered.large);
    printf("certified: %" PRId64 " layers, %" PRId64 " weights, %" PRId64 " biases; %" PRId64
           " tensors against the float network\n",
           covered.certified_layers, covered.certified_weights, covered.certified_biases,
           covered.signal_tensors);
    printf("float32 simulation: %" PRId64 " of %" PRId64
           " bytes differ: %.4f %%; of these %.3f %% by more than one quantum (without %" PRId64
           " networks with a clamped bias)\n",
           covered.simulated_differing, covered.simulated_bytes,
           100.0 * (double)covered.simulated_differing / (double)(covered.simulated_bytes + 1),
           100.0 * (double)covered.simulated_far / (double)(covered.simulated_differing + 1),
           covered.clamped);
    for (int i = 0; i < covered.n_ops; i++) {
        const struct closeness *c = &covered.ops[i];
        printf("  %-18s %6" PRId64 " layers, at most %.3f quanta from float32, %.0f %% of their "
               "bounds; %" PRId64 " with bounds above %g, %" PRId64 " with a clamped bias; %.3f %% "
               "of the codes differ, of these %.3f %% by more than one\n",
               c->op, c->layers, c->quanta, 100.0 * c->of_bound, c->loose,
               c->is_wide ? WIDE_LOOSE : LOOSE, c->unjudged,
               100.0 * (double)c->differing / (double)(c->values + 1),
               100.0 * (double)c->far / (double)(c->differing + 1));
    }
    qsort(covered.kinds, (size_t)covered.n_kinds, sizeof *covered.kinds, by_name);
    for (int i = 0; i < covered.n_kinds; i++)
        printf("  %-28s %6" PRId64 "%s", covered.kinds[i].name, covered.kinds[i].count,
               i % 3 == 2 || i == covered.n_kinds - 1 ? "\n" : "");
}

/** A full run has met everything there is to meet. */
static void check_coverage(void)
{
    static const char *const must[] = {"op conv2d",
                                       "op depthwise_conv2d",
                                       "op fully_connected",
                                       "op add",
                                       "op sub",
                                       "op mul",
                                       "op mean",
                                       "op concat",
                                       "op average_pool2d",
                                       "op max_pool2d",
                                       "op softmax",
                                       "op logistic",
                                       "op tanh",
                                       "op requantize",
                                       "op table",
                                       "op reshape",
                                       "op pad",
                                       "op softmax16",
                                       "op prelu",
                                       "rounding LONG",
                                       "float batch_norm",
                                       "float global_average_pool",
                                       "float dropout",
                                       "float bias",
                                       "float relu",
                                       "float relu6",
                                       "float hard_swish",
                                       "stride > 1",
                                       "dilation > 1",
                                       "padding",
                                       "explicit padding",
                                       "groups > 1",
                                       "depth multiplier > 1",
                                       "multiplier >= 1",
                                       "broadcast",
                                       "rounding DOUBLE",
                                       "fraction",
                                       "uint8, paper",
                                       "uint8, tflite",
                                       "uint8, onnx",
                                       "int8, paper",
                                       "int8, tflite",
                                       "int8, onnx",
                                       "rounding EVEN: conv2d",
                                       "rounding EVEN: depthwise_conv2d",
                                       "rounding EVEN: fully_connected",
                                       "rounding EVEN: add",
                                       "rounding EVEN: mul",
                                       "rounding EVEN: mean",
                                       "rounding EVEN: average_pool2d",
                                       "fold one_pass",
                                       "fold two_pass",
                                       "weights by tqt",
                                       "weights by lsq",
                                       "weights by tqt_full",
                                       "weights by lsq_full",
                                       "weights by bwn",
                                       "weights by twn",
                                       "packed, 1 bits, a list",
                                       "packed, three values",
                                       "packed, 2 bits",
                                       "packed, 3 bits",
                                       "packed, 4 bits",
                                       "packed, 5 bits",
                                       "packed, 6 bits",
                                       "packed, 7 bits",
                                       "activations by tqt",
                                       "activations by lsq",
                                       "powers of two",
                                       "layers of their own",
                                       "input pixels",
                                       "two inputs",
                                       "several outputs",
                                       ".tflite with equal answers",
                                       ".tflite, fraction",
                                       ".tflite, profile paper",
                                       "activations 16 bits"};
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        ck_assert_msg(count_of(must[i]) > 0, "nothing covered: %s", must[i]);
    for (int bits = 2; bits <= 8; bits++) {
        char name[48];
        snprintf(name, sizeof name, "weights %d bits", bits);
        ck_assert_msg(count_of(name) > 0, "nothing covered: %s", name);
        snprintf(name, sizeof name, "activations %d bits", bits);
        ck_assert_msg(count_of(name) > 0, "nothing covered: %s", name);
    }
}

/** Every kind of layer was judged, and by bounds that mean something. */
static void check_closeness(void)
{
    enum { LEAST_LAYERS = 40 }; /* of fewer, one or two may be a large share */
    ck_assert_int_gt(covered.n_ops, 10);
    for (int i = 0; i < covered.n_ops; i++) {
        const struct closeness *c = &covered.ops[i];
        ck_assert_msg(c->layers < LEAST_LAYERS || 20 * (c->loose + c->unjudged) <= c->layers,
                      "%s: too few layers judged", c->op);
    }
}

/** With few bits, training sees the device's codes. */
static void check_simulation(void)
{
    ck_assert_int_gt(covered.simulated_bytes, 0);
    ck_assert_int_le(10 * covered.clamped, covered.nets);
    ck_assert_int_le(100 * covered.refused, covered.nets);
    ck_assert_msg(covered.simulated_differing == 0, "bytes differ from the float32 simulation");
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

START_TEST(test_every_byte_equal)
{
    qat_registry *registry = NULL;
    qat_error err;
    int failures = 0;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    qat_set_threads(1); /* tensors this small are not worth a second thread */
    double const start = now();
    printf("seed %" PRIu64 ", networks %" PRIu64 "..%" PRIu64 "\n", seed, first_net,
           first_net + nets - 1);
    fflush(stdout);
    for (uint64_t i = first_net; i < first_net + nets && failures < 5; i++) {
        struct bench b = {0};
        if (run_net(&b, i, registry, &err) != QAT_OK) {
            printf("network %" PRIu64 ": %s: %s\n", i, qat_status_name(err.status), err.message);
            save(&b, err.message);
            failures++;
        }
        release(&b);
    }
    qat_registry_free(registry);
    print_coverage(now() - start);
    fflush(stdout);
    ck_assert_int_eq(failures, 0);
    if (nets >= 300 && !all_bits) {
        check_coverage();
        ck_assert_msg(10 * covered.varied >= 9 * covered.large, "too few tensors vary");
        check_closeness();
    }
    if (all_bits && all_bits < 8)
        check_simulation();
}
END_TEST

/** Networks that a check once refused by mistake. */
START_TEST(test_refused_before)
{
    static const uint64_t found[][2] = {
        {5, 272},  /* a max pool of codes that a coarse bias moved, all of them by 3 quanta */
        {78, 5},   /* a logistic of inputs in steps of 4: its radius is 1, so it saturates at 4 */
        {77, 139}, /* a pad behind a layer whose biases are coarse: no float node has its values */
    };
    qat_registry *registry = NULL;
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        struct bench b = {0};
        seed = found[i][0];
        ck_assert_msg(run_net(&b, found[i][1], registry, &err) == QAT_OK, "%s", err.message);
        release(&b);
    }
    qat_registry_free(registry);
}
END_TEST

static uint64_t setting(int argc, char **argv, int position, const char *name, uint64_t fallback)
{
    const char *text = argc > position ? argv[position] : getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
    seed = setting(argc, argv, 1, "QAT_PROPERTY_SEED", seed);
    nets = setting(argc, argv, 2, "QAT_PROPERTY_NETS", nets);
    first_net = setting(argc, argv, 3, "QAT_PROPERTY_FIRST", first_net);
    all_bits = (int)setting(argc, argv, 4, "QAT_PROPERTY_BITS", 0);
    if (all_bits && (all_bits < 2 || all_bits > 8)) {
        fprintf(stderr, "QAT_PROPERTY_BITS=%d: 2..8 are possible\n", all_bits);
        return 2;
    }
    Suite *suite = suite_create("property");
    TCase *tcase = tcase_create("random networks");
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, test_every_byte_equal);
    tcase_add_test(tcase, test_refused_before);
    suite_add_tcase(suite, tcase);
    return test_run_suite_as(suite, CK_NOFORK, CK_ENV);
}
