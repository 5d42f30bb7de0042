/**
 * The certificate refuses a .qm if any field is not what the float network says. A small network
 * with every kind of op is frozen. One field at a time is changed before the file is written. Then
 * qat_certify, or already the engine's reader, must refuse the file. The unchanged file is
 * certified, in both layouts and all profiles.
 */
#include "base/words.h"
#include "certify/certify.h"
#include "common/suite.h"
#include "qat/convert.h"
#include "qat/quantizer.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, SIDE = 8, CHANNELS = 3, STEPS = 3 };

static const float SMALL_MISTAKE = 0.07f;

static qat_registry *registry;
static const float mean[] = {120, 110, 90}, std[] = {60, 70, 55};

/* ------------------------------------------------------------------ an op of a plugin */

static qat_status curve_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void curve_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++) {
        float const x = node->inputs[0]->value[i];
        node->value[i] = x * fabsf(x) / (1.0f + fabsf(x));
    }
}

static const qat_quant curve_quant = {.role = QAT_ROLE_TABLE};
static const qat_op curve = {.name = "curve",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .shape = curve_shape,
                             .forward = curve_forward,
                             .quant = &curve_quant};

/** Its codes pass through in another order, but it has no integer op: the file leaves it out. */
static void turned_forward(qat_node *node, const qat_run *run)
{
    size_t const n = qat_shape_count(&node->shape);
    for (size_t i = 0; i < n; i++)
        node->value[i] = node->inputs[0]->value[n - 1 - i];
}

static const qat_quant turned_quant = {.role = QAT_ROLE_PASS};
static const qat_op turned = {.name = "turned",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .shape = curve_shape,
                              .forward = turned_forward,
                              .quant = &turned_quant};

static const qat_quantizer foreign = {.name = "foreign"};
static const qat_quant foreign_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &foreign};
static const qat_op foreign_op =
    QAT_QUANTIZER_OP("foreign", "a plugin's quantizer of activations", &foreign_quant);

/* ------------------------------------------------------------------ a network */

struct net {
    qat_graph *graph, *training, *eval;
    qat_qgraph *integers;
    qat_certify_source source;
};

static qat_node *layer(qat_graph *g, const char *op, const char *name, const char *attrs,
                       qat_node *x, const char *more)
{
    char full[64];
    x = qat_apply1(g, op, name, attrs, x);
    for (const char *m = more; *m; m++) {
        const char *next = *m == 'b'   ? "bias"
                           : *m == 'n' ? "batch_norm"
                           : *m == '6' ? "relu6"
                                       : "relu";
        snprintf(full, sizeof full, "%s/%s", name, next);
        x = qat_apply1(g, next, full, "", x);
    }
    return x;
}

static void build(struct net *n)
{
    ck_assert_int_eq(qat_graph_create(&n->graph, registry, NULL), QAT_OK);
    qat_graph *g = n->graph;
    qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    x = layer(g, "conv2d", "conv", "filters=4 kernel=3 kernel_w=2 stride=2 stride_w=1", x, "bn6");
    x = layer(g, "depthwise_conv2d", "dw", "kernel=3 multiplier=2 dilation=2", x, "nr");
    qat_node *y = layer(g, "conv2d", "wide", "filters=8 kernel=1 groups=2", x, "b");
    qat_node *sum = qat_apply2(g, "add", "sum", "", x, y);
    sum = qat_apply1(g, "relu", "sum/relu", "", sum);
    qat_node *gate = qat_apply1(g, "logistic", "gate", "", y);
    qat_node *both[] = {qat_apply2(g, "mul", "product", "", sum, gate),
                        qat_apply2(g, "sub", "difference", "", sum, y),
                        qat_apply1(g, "tanh", "tanh", "", y)};
    x = qat_apply(g, "concat", "joined", "axis=3", 3, both);
    x = qat_apply1(g, "max_pool2d", "largest", "kernel=2 kernel_w=3 padding=same", x);
    x = layer(g, "transpose_conv2d", "up", "filters=6 kernel=4 kernel_w=3 stride_w=1", x, "n6");
    x = qat_apply1(g, "average_pool2d", "mean", "kernel=2 stride=1 padding=same", x);
    x = qat_apply1(g, "resize_nearest", "nearest", "factor=2", x);
    x = qat_apply1(g, "resize_bilinear", "bilinear", "height=5 width=6 half_pixel_centers=no", x);
    x = layer(g, "batch_norm", "alone", "", x, "");
    x = qat_apply1(g, "hard_swish", "swish", "", x);
    x = qat_apply1(g, "silu", "silu", "", x);
    x = qat_apply1(g, "gelu", "gelu", "", x);
    x = qat_apply1(g, "relu6", "limit", "", qat_apply1(g, "curve", "curve", "", x));
    x = qat_apply1(g, "global_average_pool", "all", "", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    x = layer(g, "fully_connected", "scores", "units=5", x, "b");
    qat_graph_output(g, qat_apply1(g, "softmax", "answer", "", x));
    ck_assert_int_eq(qat_graph_check(g, NULL), QAT_OK);
}

/** Explicit padding, an average that counts it, rows of a table, vectors that are normalized by
 * themselves. */
static void build_padded(struct net *n)
{
    ck_assert_int_eq(qat_graph_create(&n->graph, registry, NULL), QAT_OK);
    qat_graph *g = n->graph;
    qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    x = layer(g, "conv2d", "conv", "filters=4 kernel=3 stride=2 padding=1,0,2,1", x, "n6");
    x = qat_apply1(g, "max_pool2d", "largest", "kernel=2 stride=1 padding=0,1,1,0", x);
    x = qat_apply1(g, "average_pool2d", "mean",
                   "kernel=2 stride=1 padding=1,0,0,1 count_padding=yes", x);
    x = qat_apply1(g, "strided_slice", "one", "axis=3 begin=1 count=1", x);
    x = qat_apply1(g, "embedding", "rows", "rows=3 units=4", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    x = layer(g, "fully_connected", "scores", "units=5", x, "b");
    qat_graph_output(g, layer(g, "batch_norm", "alone", "", x, ""));
    ck_assert_int_eq(qat_graph_check(g, NULL), QAT_OK);
}

static void build_turned(struct net *n)
{
    ck_assert_int_eq(qat_graph_create(&n->graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(n->graph, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    x = qat_apply1(n->graph, "turned", "around", "", x);
    qat_graph_output(n->graph, layer(n->graph, "conv2d", "conv", "filters=4 kernel=3", x, "b"));
    ck_assert_int_eq(qat_graph_check(n->graph, NULL), QAT_OK);
}

static void (*build_net)(struct net *) = build;

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 24);
}

/** Averages and ranges from a few batches; parameters from a generator, none of them 0 or 1. */
static void train(struct net *n)
{
    uint32_t state = 7;
    for (int i = 0; i < qat_graph_nodes(n->training); i++) {
        qat_node *p = qat_graph_node(n->training, i);
        if (!p->is_param || !p->trainable)
            continue;
        bool const gamma = strstr(p->name, "gamma") != NULL;
        for (size_t k = 0; k < qat_shape_count(&p->shape); k++)
            p->value[k] = gamma ? 0.7f + noise(&state) : noise(&state) - 0.45f;
    }
    qat_node *x = qat_graph_find(n->training, "image");
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < qat_shape_count(&x->shape); i++)
            x->value[i] = 3 * noise(&state) - 1.5f;
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step};
        qat_graph_forward(n->training, &run);
        qat_graph_update(n->training, &run);
    }
}

/** scores: two of the weights of "scores", or NULL. */
static void make_with(struct net *n, const qat_quant_options *options, qat_profile profile,
                      const float *scores)
{
    qat_quant_options o = *options;
    o.input_min = -2;
    o.input_max = 3;
    *n = (struct net){0};
    build_net(n);
    ck_assert_int_eq(qat_create_training_graph(&n->training, n->graph, &o, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(n->training, BATCH, QAT_PLAN_TRAIN, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_set_batch(n->training, BATCH, NULL), QAT_OK);
    qat_graph_init_params(n->training, 3);
    train(n);
    for (int i = 0; scores && i < 2; i++)
        qat_graph_find(n->training, "scores/weights")->value[i] = scores[i];
    ck_assert_int_eq(qat_create_eval_graph(&n->eval, n->graph, &o, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(n->eval, 1, QAT_PLAN_KEEP, NULL), QAT_OK);
    qat_graph_copy_params(n->eval, n->training);
    qat_error err;
    ck_assert_msg(qat_freeze(&n->integers, n->eval, profile, NULL, &err) == QAT_OK, "%s",
                  err.message);
    ck_assert_int_eq(qat_qgraph_add_input_table(n->integers, CHANNELS, mean, std, NULL), QAT_OK);
    n->source = (qat_certify_source){.graph = n->graph,
                                     .quant = o,
                                     .profile = profile,
                                     .values = qat_certify_graph_values,
                                     .context = n->training,
                                     .channels = CHANNELS,
                                     .mean = mean,
                                     .std = std};
}

static void make(struct net *n, qat_layout layout, qat_profile profile, int bits)
{
    qat_quant_options o = qat_quant_defaults();
    o.layout = layout;
    o.weight_bits = o.activation_bits = bits;
    make_with(n, &o, profile, NULL);
}

/** The parameters of the training graph were changed. */
static void freeze_again(struct net *n)
{
    qat_error err;
    qat_qgraph_free(n->integers);
    qat_graph_copy_params(n->eval, n->training);
    ck_assert_msg(qat_freeze(&n->integers, n->eval, n->source.profile, NULL, &err) == QAT_OK, "%s",
                  err.message);
    ck_assert_int_eq(qat_qgraph_add_input_table(n->integers, CHANNELS, mean, std, NULL), QAT_OK);
}

static void unmake(struct net *n)
{
    qat_qgraph_free(n->integers);
    qat_graph_free(n->eval);
    qat_graph_free(n->training);
    qat_graph_free(n->graph);
}

static qat_status certify(const struct net *n, qat_certificate *c, qat_error *err)
{
    uint8_t *qm = NULL;
    size_t count = 0;
    qat_qm_metadata const metadata = {.description = "test"};
    qat_status st = qat_qm_write(n->integers, &metadata, &qm, &count, err);
    if (!st)
        st = qat_certify(c, qm, count, NULL, &n->source, err);
    free(qm);
    return st;
}

/* ------------------------------------------------------------------ one field at a time */

static int changed, refused_by_certificate;

/** The file is refused now. */
static void expect_refusal(const struct net *n, const char *what, const char *name, int k)
{
    qat_error err = {0};
    qat_certificate c;
    qat_status const st = certify(n, &c, &err);
    ck_assert_msg(st != QAT_OK, "%s %d of %s was changed, and nothing noticed", what, k, name);
    ck_assert_str_ne(err.message, "");
    changed++;
    refused_by_certificate += st == QAT_ERR_MISMATCH;
}

#define CHANGE(lvalue, value, what, name, k)                                                       \
    do {                                                                                           \
        __typeof__(lvalue) const kept = (lvalue);                                                  \
        (lvalue) = (value);                                                                        \
        expect_refusal(n, what, name, k);                                                          \
        (lvalue) = kept;                                                                           \
    } while (0)

static void change_values(struct net *n, qat_qtensor *t)
{
    size_t const count = qat_qtensor_count(t), places[] = {0, count / 2, count - 1};
    for (int i = 0; i < 3; i++) {
        size_t const at = places[i];
        if (t->type == QI_S32)
            CHANGE(((int32_t *)t->data)[at], ((int32_t *)t->data)[at] + 1, "value + 1", t->name,
                   (int)at);
        else
            CHANGE(
                ((uint8_t *)t->data)[at],
                (uint8_t)(((uint8_t *)t->data)[at] +
                          (((int8_t *)t->data)[at] == 127 || ((uint8_t *)t->data)[at] == 255 ? -1
                                                                                             : 1)),
                "code + 1", t->name, (int)at);
    }
}

static void change_tensor(struct net *n, qat_qtensor *t)
{
    char const first = *t->name;
    for (int i = 0; i < t->n_channels; i++)
        CHANGE(t->channel_scales[i], t->channel_scales[i] * 1.00001f, "channel scale", t->name, i);
    if (!t->channel_scales)
        CHANGE(t->scale, t->scale * 1.00001f, "scale", t->name, 0);
    CHANGE(t->zero_point, t->zero_point + (t->zero_point > 0 ? -1 : 1), "zero point", t->name, 0);
    CHANGE(t->range_min, t->range_min - 0.5f, "range_min", t->name, 0);
    CHANGE(t->range_max, t->range_max + 0.5f, "range_max", t->name, 0);
    if (t->range_min < t->range_max)
        CHANGE(t->range_min, t->range_max, "range_min is range_max", t->name, 0);
    CHANGE(t->source_index, 3, "source_index", t->name, 0);
    CHANGE(*t->name, first == 'x' ? 'y' : 'x', "name", t->name, 0);
    if (t->type != QI_S32)
        CHANGE(t->bits, t->bits == 8 ? 7 : 8, "bits", t->name, 0);
    if (t->data)
        change_values(n, t);
}

static void change_op(struct net *n, qat_qop *op)
{
    CHANGE(*op->name, '?', "name", op->name, 0);
    CHANGE(op->max_accumulator, op->max_accumulator + 1, "max_accumulator", op->name, 0);
    CHANGE(op->fraction, op->fraction ? op->fraction - 1 : 1, "fraction", op->name, 0);
    CHANGE(op->rounding, op->rounding == QI_ROUND_NONE ? QI_ROUND_TWICE : QI_ROUND_NONE, "rounding",
           op->name, 0);
    for (int i = 0; i < op->n_params; i++) {
        CHANGE(op->params[i], op->params[i] + 1, "parameter + 1", op->name, i);
        CHANGE(op->params[i], op->params[i] - 1, "parameter - 1", op->name, i);
    }
    if (op->n_inputs == 2 && strcmp(op->op, "table") != 0) {
        int const a = op->inputs[0];
        CHANGE(op->inputs[0], op->inputs[1], "inputs", op->name, a);
    }
}

static void change_everything(qat_layout layout, qat_profile profile)
{
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    make(n, layout, profile, 8);
    changed = refused_by_certificate = 0;
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(c.layers, n->integers->n_ops);
    ck_assert_int_eq(c.n_uncertified, 0);
    for (int i = 0; i < n->integers->n_tensors; i++)
        change_tensor(n, &n->integers->tensors[i]);
    for (int i = 0; i < n->integers->n_ops; i++)
        change_op(n, &n->integers->ops[i]);
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_gt(changed, build_net == build ? 400 : 200);
    ck_assert_int_gt(2 * refused_by_certificate, changed);
    unmake(n);
}

START_TEST(test_fields_uint8_paper)
{
    change_everything(QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER);
}
END_TEST

START_TEST(test_fields_uint8_tflite)
{
    change_everything(QAT_LAYOUT_UINT8, QAT_PROFILE_TFLITE);
}
END_TEST

START_TEST(test_fields_int8_paper)
{
    change_everything(QAT_LAYOUT_INT8, QAT_PROFILE_PAPER);
}
END_TEST

START_TEST(test_fields_int8_tflite)
{
    change_everything(QAT_LAYOUT_INT8, QAT_PROFILE_TFLITE);
}
END_TEST

START_TEST(test_fields_onnx)
{
    change_everything(_i ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, QAT_PROFILE_ONNX);
}
END_TEST

START_TEST(test_fields_of_padding)
{
    build_net = build_padded;
    change_everything(_i % 2 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, (qat_profile)(_i / 2));
    build_net = build;
}
END_TEST

/* ------------------------------------------------------------------ the other side */

/**
 * Certify against another parameter, average, range, epsilon or option than those that made the
 * file.
 */
static void change_source(struct net *n)
{
    static const char *const params[] = {
        "conv/weights",         "conv/bias/bias",         "conv/batch_norm/gamma",
        "conv/batch_norm/beta", "dw/batch_norm/ema_mean", "dw/batch_norm/ema_variance",
        "alone/gamma",          "scores/weights",         "wide/bias/bias",
        "conv/relu6/q/range"};
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        qat_node *p = qat_graph_find(n->training, params[i]);
        ck_assert_msg(p != NULL, "%s", params[i]);
        CHANGE(p->value[1], p->value[1] * 1.1f + 0.01f, "parameter", params[i], 1);
    }
    CHANGE(n->source.quant.weight_bits, 7, "weight_bits", "source", 0);
    CHANGE(n->source.quant.activation_bits, 7, "activation_bits", "source", 0);
    CHANGE(n->source.quant.input_max, 3.05f, "input_max", "source", 0);
    CHANGE(n->source.profile, QAT_PROFILE_TFLITE, "profile", "source", 0);
    CHANGE(n->source.profile, QAT_PROFILE_ONNX, "profile", "source", 0);
    CHANGE(n->source.quant.layout, QAT_LAYOUT_INT8, "layout", "source", 0);
}

START_TEST(test_other_sources)
{
    struct net net;
    qat_error err;
    qat_certificate c;
    for (int bits = 2; bits <= 8; bits++) {
        make(&net, QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, bits);
        ck_assert_msg(certify(&net, &c, &err) == QAT_OK, "%d bits: %s", bits, err.message);
        if (bits == 8)
            change_source(&net);
        unmake(&net);
    }
}
END_TEST

/** A message names the layer, the field and both values. */
START_TEST(test_message)
{
    struct net net;
    qat_error err;
    qat_certificate c;
    make(&net, QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 8);
    qat_qop *op = &net.integers->ops[1];
    ck_assert_str_eq(op->name, "conv");
    qat_qtensor *bias = &net.integers->tensors[op->inputs[2]];
    ((int32_t *)bias->data)[2] += 1;
    ck_assert_int_eq(certify(&net, &c, &err), QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "conv, channel 2: the file's bias is"));
    ck_assert_ptr_nonnull(strstr(err.message, "the checkpoint gives"));
    unmake(&net);
}
END_TEST

/** Scales of a plugin's quantizer cannot be computed. They are named and not counted. */
START_TEST(test_foreign_quantizer)
{
    struct net net;
    qat_error err;
    qat_certificate known, c;
    qat_quant_options o = qat_quant_defaults();
    make_with(&net, &o, QAT_PROFILE_PAPER, NULL);
    ck_assert_msg(certify(&net, &known, &err) == QAT_OK, "%s", err.message);
    unmake(&net);
    strcpy(o.activation_ranges, "foreign");
    make_with(&net, &o, QAT_PROFILE_PAPER, NULL);
    ck_assert_msg(certify(&net, &c, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_gt(c.n_uncertified, 0);
    ck_assert_int_eq(c.scales + c.n_uncertified, known.scales);
    ck_assert_ptr_nonnull(strstr(c.uncertified, "conv/relu6/q (foreign)"));
    unmake(&net);
}
END_TEST

/** Values of the training graph, but for one name, which is hidden. */
struct without {
    const qat_graph *graph;
    const char *hidden;
};

static const float *values_without(const void *context, const char *name, size_t *count)
{
    const struct without *w = context;
    return strcmp(name, w->hidden) == 0 ? NULL : qat_certify_graph_values(w->graph, name, count);
}

/** A range, average, weight or bias that the checkpoint lacks is named; so is one that was never
 *  observed. */
START_TEST(test_missing_values)
{
    static const char *const names[] = {"conv/relu6/q/range", "conv/weights", "conv/bias/bias",
                                        "dw/batch_norm/ema_mean", "alone/gamma"};
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    make(n, QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 8);
    qat_certify_source const all = n->source;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct without const some = {n->training, names[i]};
        n->source.values = values_without;
        n->source.context = &some;
        ck_assert_int_eq(certify(n, &c, &err), QAT_ERR_MISMATCH);
        ck_assert_msg(strstr(err.message, "conv") || strstr(err.message, "dw") ||
                          strstr(err.message, "alone"),
                      "%s", err.message);
    }
    n->source = all;
    qat_graph_find(n->training, "conv/relu6/q/range")->value[2] = 0; /* steps observed */
    ck_assert_int_eq(certify(n, &c, &err), QAT_ERR_MISMATCH);
    ck_assert_msg(strstr(err.message, "conv/relu6: the checkpoint holds no range of"), "%s",
                  err.message);
    unmake(n);
}
END_TEST

static double value_of(const struct net *n, const char *param, int i)
{
    return (double)qat_graph_find(n->training, param)->value[i];
}

/** The bias of a channel of "conv", one more and one less. */
static void expect_bias_refused(struct net *n, int channel)
{
    qat_error err;
    qat_certificate c;
    qat_qop *op = &n->integers->ops[1];
    int32_t *code = (int32_t *)n->integers->tensors[op->inputs[2]].data + channel;
    int64_t const kept = op->max_accumulator;
    ck_assert_str_eq(op->name, "conv");
    for (int by = -1; by <= 1; by += 2) {
        *code += by;
        qat_status st = certify(n, &c, &err);
        for (int k = -1; k <= 1 && st == QAT_ERR_FORMAT; k += 2) { /* the engine noticed it */
            op->max_accumulator = kept + k;
            st = certify(n, &c, &err);
        }
        ck_assert_msg(st == QAT_ERR_MISMATCH, "channel %d: bias %d: %d", channel, (int)*code, st);
        ck_assert_msg(strstr(err.message, "the file's bias is"), "%s", err.message);
        *code -= by;
        op->max_accumulator = kept;
    }
}

/** Averages that are much larger than what is left of them: float32's error of a folded bias could
 *  hide one that is off by one. The formula in float32 says which code it must be. */
START_TEST(test_bias_of_large_averages)
{
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    qat_quant_options o = qat_quant_defaults();
    o.input_min = -2;
    o.input_max = 3;
    make_with(n, &o, QAT_PROFILE_PAPER, NULL);
    float *mean_ = qat_graph_find(n->training, "conv/batch_norm/ema_mean")->value;
    float *beta = qat_graph_find(n->training, "conv/batch_norm/beta")->value;
    float *bias = qat_graph_find(n->training, "conv/bias/bias")->value;
    for (int i = 0; i < 4; i++) {
        mean_[i] += 3e5f;
        bias[i] += 3e5f;
        beta[i] += 0.01f;
    }
    freeze_again(n);
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < 4; i++)
        expect_bias_refused(n, i);
    unmake(n);
}
END_TEST

/** A bias as near to a tie as float32's error: both codes beside it are within that error. */
START_TEST(test_bias_near_a_tie)
{
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    make(n, QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 8);
    const qat_qop *op = &n->integers->ops[1];
    double const unit = (double)n->integers->tensors[op->inputs[0]].scale *
                        (double)n->integers->tensors[op->inputs[1]].scale;
    for (int i = 0; i < 4; i++) {
        double const gamma = value_of(n, "conv/batch_norm/gamma", i);
        double const variance = value_of(n, "conv/batch_norm/ema_variance", i);
        double const mean_ = value_of(n, "conv/batch_norm/ema_mean", i);
        double const epsilon = qat_attr(qat_graph_find(n->graph, "conv/batch_norm"), "epsilon");
        double const factor = gamma / sqrt(variance + epsilon);
        double const bias = value_of(n, "conv/bias/bias", i);
        qat_graph_find(n->training, "conv/batch_norm/beta")->value[i] =
            (float)((1000.5 + i) * unit + factor * (mean_ - bias));
    }
    freeze_again(n);
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < 4; i++)
        expect_bias_refused(n, i);
    unmake(n);
}
END_TEST

/** The codes that a tensor has on noise: all are Z. */
static void expect_zero_point_alone(const struct net *n, const char *name)
{
    uint8_t image[SIDE * SIDE * CHANNELS];
    uint32_t state = 11;
    qat_exact *exact = NULL;
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(256 * noise(&state));
    ck_assert_int_eq(qat_exact_create(&exact, n->integers, registry, 1, NULL), QAT_OK);
    ck_assert_int_eq(qat_exact_run(exact, (const void *const[]){image}, 1, NULL), QAT_OK);
    for (int t = 0; t < n->integers->n_tensors; t++) {
        const qat_qtensor *y = &n->integers->tensors[t];
        for (size_t i = 0; strcmp(y->name, name) == 0 && i < qat_qtensor_count(y); i++)
            ck_assert_msg(qat_load_code(y->type, qat_exact_tensor(exact, t), i) == y->zero_point,
                          "%s: value %zu is not the zero point", name, i);
    }
    qat_exact_free(exact);
}

/** A tensor that was 0 in all of training has an empty range: S = 1, and each value the code Z. */
static void expect_empty_ranges(qat_layout layout, qat_profile profile, int bits)
{
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    int emptied = 0;
    make(n, layout, profile, bits);
    for (int i = 0; i < qat_graph_nodes(n->training); i++) {
        qat_node *range = qat_graph_node(n->training, i);
        char name[QAT_NAME_MAX];
        /* the image's range is given, those of weights follow from them */
        if (!qat_matches("*/q/range", range->name) || qat_matches("*/weights/*", range->name) ||
            !qat_without_end(range->name, "/range", name, sizeof name) ||
            strcmp(name, "image/q") == 0)
            continue;
        float const min = range->value[0], max = range->value[1];
        range->value[0] = range->value[1] = 0;
        freeze_again(n);
        ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
        expect_zero_point_alone(n, name);
        range->value[0] = min;
        range->value[1] = max;
        emptied++;
    }
    ck_assert_int_ge(emptied, 12);
    unmake(n);
}

START_TEST(test_empty_ranges)
{
    expect_empty_ranges(QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 8);
    expect_empty_ranges(QAT_LAYOUT_INT8, QAT_PROFILE_PAPER, 4);
    expect_empty_ranges(QAT_LAYOUT_INT8, QAT_PROFILE_TFLITE, 8);
    expect_empty_ranges(QAT_LAYOUT_INT8, QAT_PROFILE_ONNX, 8);
}
END_TEST

/* ------------------------------------------------------------------ signals */

/** A graph that is already built, trained, frozen and written; its float and simulated networks. */
struct signals {
    struct net net;
    qat_graph *real;
    qat_certify_signal *signal;
    uint8_t *qm;
    size_t count;
};

static void begin_signals(struct signals *s)
{
    struct net *n = &s->net;
    char *text = NULL;
    qat_qm_metadata const metadata = {.description = "test"};
    ck_assert_int_eq(qat_freeze(&n->integers, n->eval, QAT_PROFILE_PAPER, NULL, NULL), QAT_OK);
    ck_assert_int_eq(qat_qm_write(n->integers, &metadata, &s->qm, &s->count, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_write(n->graph, &text, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_read(&s->real, registry, text, "real", NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(s->real, BATCH, QAT_PLAN_KEEP, NULL), QAT_OK);
    qat_graph_init_params(s->real, 0);
    qat_graph_copy_params(s->real, n->training);
    free(text);
}

/** From a float graph: training and evaluation graphs, with averages and ranges. */
static void train_signals(struct signals *s)
{
    struct net *n = &s->net;
    qat_quant_options const o = qat_quant_defaults();
    ck_assert_int_eq(qat_create_training_graph(&n->training, n->graph, &o, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(n->training, BATCH, QAT_PLAN_TRAIN, NULL), QAT_OK);
    qat_graph_init_params(n->training, 3);
    train(n);
    ck_assert_int_eq(qat_create_eval_graph(&n->eval, n->graph, &o, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_plan(n->eval, BATCH, QAT_PLAN_KEEP, NULL), QAT_OK);
    qat_graph_copy_params(n->eval, n->training);
}

/** The engine's codes of the graph's input "image", which has values of -1 .. 1, on `simulated`. */
static qat_status judge_signals(struct signals *s, qat_graph *simulated, qat_certificate *c,
                                qat_error *err)
{
    uint32_t state = 5;
    size_t const n = qat_shape_count(&qat_graph_find(s->real, "image")->shape);
    float *values = calloc(n, sizeof *values);
    uint8_t *codes = calloc(n, 1);
    ck_assert_int_eq(
        qat_certify_signal_create(&s->signal, s->qm, s->count, NULL, s->real, simulated, NULL),
        QAT_OK);
    ck_assert_int_eq(qat_certify_signal_judge(s->signal, c, err), QAT_OK);
    ck_assert(isnan(c->engine_snr) && isnan(c->simulation_snr));
    for (size_t i = 0; i < n; i++) {
        codes[i] = (uint8_t)(256 * noise(&state));
        values[i] = (float)(codes[i] - 128) * (2.0f / 255);
    }
    ck_assert_int_eq(qat_certify_signal_batch(s->signal, (const void *const[]){codes},
                                              (const float *const[]){values}, BATCH, NULL),
                     QAT_OK);
    qat_status const st = qat_certify_signal_judge(s->signal, c, err);
    qat_certify_signal_free(s->signal);
    free(values);
    free(codes);
    return st;
}

static void end_signals(struct signals *s)
{
    qat_graph_free(s->real);
    free(s->qm);
    unmake(&s->net);
}

/** A batch norm of vectors: the file changes shapes before and after it, and its output is compared
 *  all the same. */
START_TEST(test_signal_of_reshaped_output)
{
    struct signals s = {0};
    qat_error err;
    qat_certificate c;
    ck_assert_int_eq(qat_graph_create(&s.net.graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(s.net.graph, "image", QAT_SHAPE(1, SIDE));
    qat_graph_output(s.net.graph, qat_apply1(s.net.graph, "batch_norm", "alone", "", x));
    train_signals(&s);
    begin_signals(&s);
    ck_assert_msg(judge_signals(&s, s.net.eval, &c, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(c.signal_tensors, 4); /* image/q, alone/rank4, alone/q, alone/back */
    ck_assert(c.engine_snr > 10 && fabs(c.engine_snr - c.simulation_snr) < 1);
    end_signals(&s);
}
END_TEST

/** Padding that an average counts: its tensor has zeros around the values that it reads. */
START_TEST(test_signal_of_padding)
{
    struct signals s = {0};
    qat_error err;
    qat_certificate c;
    ck_assert_int_eq(qat_graph_create(&s.net.graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(s.net.graph, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    x = qat_apply1(s.net.graph, "average_pool2d", "mean",
                   "kernel=3 stride=1 padding=1,0,2,1 count_padding=yes", x);
    qat_graph_output(s.net.graph, x);
    train_signals(&s);
    begin_signals(&s);
    ck_assert_msg(judge_signals(&s, s.net.eval, &c, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(c.signal_tensors, 3); /* image/q, mean/padded, mean/q */
    end_signals(&s);
}
END_TEST

/** Layers that are a little too far from the float network, one after the other: each hands on more
 *  noise than it reads, and is not excused by that. */
START_TEST(test_signal_of_many_small_mistakes)
{
    enum { LAYERS = 6 };
    struct signals s = {0};
    qat_error err;
    qat_certificate c;
    char name[32];
    ck_assert_int_eq(qat_graph_create(&s.net.graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(s.net.graph, "image", QAT_SHAPE(1, 16));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "fc%d", i);
        x = layer(s.net.graph, "fully_connected", name, "units=16", x, "b");
    }
    qat_graph_output(s.net.graph, x);
    train_signals(&s);
    begin_signals(&s);
    ck_assert_msg(judge_signals(&s, s.net.eval, &c, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < LAYERS; i++) { /* float and simulated network; not the file */
        snprintf(name, sizeof name, "fc%d/weights", i);
        for (size_t k = 0; k < 16 * 16; k++) {
            qat_graph_find(s.real, name)->value[k] *= 1 - SMALL_MISTAKE;
            qat_graph_find(s.net.eval, name)->value[k] *= 1 - SMALL_MISTAKE;
        }
    }
    qat_status const st = judge_signals(&s, s.net.eval, &c, &err);
    ck_assert_int_eq(st, QAT_ERR_MISMATCH);
    ck_assert_msg(strstr(err.message, "too far apart"), "%s", err.message);
    end_signals(&s);
}
END_TEST

/** Biases that do not fit int32 are clamped, with a warning: what follows is another network. */
START_TEST(test_signal_of_clamped_biases)
{
    const char *tiny[] = {"small/weights", "small/q/range"};
    struct signals s = {0};
    qat_error err;
    qat_certificate c;
    ck_assert_int_eq(qat_graph_create(&s.net.graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(s.net.graph, "image", QAT_SHAPE(1, 16));
    x = layer(s.net.graph, "fully_connected", "small", "units=16", x, "");
    x = layer(s.net.graph, "fully_connected", "large", "units=16", x, "b");
    qat_graph_output(s.net.graph, qat_apply1(s.net.graph, "relu", "positive", "", x));
    train_signals(&s);
    for (int i = 0; i < 2; i++) {
        const qat_node *p = qat_graph_find(s.net.training, tiny[i]);
        for (size_t k = 0; k < (i ? 2 : qat_shape_count(&p->shape)); k++)
            p->value[k] *= 1e-12f;
    }
    qat_graph_copy_params(s.net.eval, s.net.training);
    begin_signals(&s);
    ck_assert_int_eq(s.net.integers->ops[1].max_accumulator, INT32_MAX);
    ck_assert_msg(judge_signals(&s, s.net.eval, &c, &err) == QAT_OK, "%s", err.message);
    ck_assert(c.engine_snr < 10 && c.simulation_snr > 30);
    ck_assert_int_eq(c.signal_tensors, 2); /* image/q, small/q; what has no limit is not counted */
    end_signals(&s);
}
END_TEST

/** Weights of scale 1 that are not all 0: a range of 0..0 is refused. */
START_TEST(test_weights_of_scale_1)
{
    static const float ends[] = {-127, 127};
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    qat_quant_options const o = qat_quant_defaults();
    make_with(n, &o, QAT_PROFILE_PAPER, ends);
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < n->integers->n_tensors; i++) {
        qat_qtensor *t = &n->integers->tensors[i];
        if (strcmp(t->name, "scores/weights/q") != 0)
            continue;
        ck_assert(t->scale == 1 && t->range_min == -127 && t->range_max == 127);
        t->range_max = t->range_min = 0;
    }
    ck_assert_int_eq(certify(n, &c, &err), QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "scores/weights/q: its range ends at 0"));
    unmake(n);
}
END_TEST

/** A code of the weights of "wide" is another one. */
static void expect_code_refused(struct net *n, qat_qtensor *t, int place, int code)
{
    int8_t *codes = t->data;
    int8_t const kept = codes[place];
    qat_error err = {0};
    qat_certificate c;
    codes[place] = (int8_t)code;
    ck_assert_msg(certify(n, &c, &err) == QAT_ERR_MISMATCH && strstr(err.message, "wide/weights"),
                  "weight %d with code %d: %s", place, code, err.message);
    codes[place] = kept;
}

/** Binary and ternary weights that are 0: all of a channel, or one of them. */
START_TEST(test_signs_of_zeros)
{
    enum { OF_CHANNEL = 4 };
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    qat_quant_options o = qat_quant_defaults();
    o.layout = QAT_LAYOUT_INT8;
    strcpy(o.weight_ranges, _i ? "twn" : "bwn");
    make_with(n, &o, QAT_PROFILE_PAPER, NULL);
    for (int i = 0; i <= OF_CHANNEL; i++)
        qat_graph_find(n->training, "wide/weights")->value[i] = 0;
    freeze_again(n);
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    for (int i = 0; i < n->integers->n_tensors; i++) {
        qat_qtensor *t = &n->integers->tensors[i];
        if (strcmp(t->name, "wide/weights/q") != 0)
            continue;
        const int8_t *codes = t->data;
        ck_assert_int_eq(codes[0], 0);
        ck_assert_int_eq(codes[OF_CHANNEL], _i ? 0 : 1);
        for (int code = -1; code <= 1; code += 2)
            expect_code_refused(n, t, 0, code);
        if (codes[OF_CHANNEL])
            expect_code_refused(n, t, OF_CHANNEL, -1);
    }
    unmake(n);
}
END_TEST

/** A channel of zeros whose scale would be a power of two. */
START_TEST(test_zeros_by_powers_of_two)
{
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    qat_quant_options o = qat_quant_defaults();
    o.layout = QAT_LAYOUT_INT8;
    o.power_of_two = true;
    make_with(n, &o, QAT_PROFILE_PAPER, NULL);
    memset(qat_graph_find(n->training, "wide/weights")->value, 0, 4 * sizeof(float));
    freeze_again(n);
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    unmake(n);
}
END_TEST

/** The same with a learned range and the lowest code, which is not the code of 0. */
START_TEST(test_zeros_with_all_codes)
{
    static const char *const ranges[] = {"tqt_full", "lsq_full"};
    struct net net, *n = &net;
    qat_error err;
    qat_certificate c;
    qat_quant_options o = qat_quant_defaults();
    o.layout = QAT_LAYOUT_INT8;
    o.weight_bits = 2;
    strcpy(o.weight_ranges, ranges[_i]);
    make_with(n, &o, QAT_PROFILE_PAPER, NULL);
    memset(qat_graph_find(n->training, "wide/weights")->value, 0, 4 * sizeof(float));
    memset(qat_graph_find(n->training, "wide/weights/q/range")->value, 0, 4 * sizeof(float));
    freeze_again(n); /* now channel 0 has never had a range to learn */
    ck_assert_msg(certify(n, &c, &err) == QAT_OK, "%s", err.message);
    unmake(n);
}
END_TEST

/** An op of a plugin that only passes codes on, but is not in the file and no view. */
START_TEST(test_left_out)
{
    struct net net;
    qat_error err;
    qat_certificate c;
    build_net = build_turned;
    make(&net, QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 8);
    build_net = build;
    ck_assert_msg(certify(&net, &c, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(c.n_uncertified, 1);
    ck_assert_msg(strstr(c.uncertified, "around (op turned, which the file leaves out)"), "%s",
                  c.uncertified);
    unmake(&net);
}
END_TEST

static void build_two_readers(struct net *n)
{
    ck_assert_int_eq(qat_graph_create(&n->graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(n->graph, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    qat_graph_output(n->graph, layer(n->graph, "conv2d", "few", "filters=2 kernel=1", x, "b"));
    qat_graph_output(n->graph, layer(n->graph, "conv2d", "many", "filters=2 kernel=1", x, "b"));
    ck_assert_int_eq(qat_graph_check(n->graph, NULL), QAT_OK);
}

static bool has_tensor(const qat_qgraph *g, const char *name)
{
    for (int i = 0; i < g->n_tensors; i++)
        if (strcmp(g->tensors[i].name, name) == 0)
            return true;
    return false;
}

/** Inside a schedule, the input of fewer bits has 8 like the tensor itself: no op is between. */
START_TEST(test_inputs_inside_a_schedule)
{
    struct net net;
    qat_error err;
    qat_certificate c;
    for (int least = 2; least <= 8; least += 6) {
        qat_quant_options o = qat_quant_defaults();
        o.layers[0] = qat_quant_layer_defaults("few");
        o.layers[0].input_bits = 5;
        o.n_layers = 1;
        o.least_activation_bits = least;
        build_net = build_two_readers;
        make_with(&net, &o, QAT_PROFILE_PAPER, NULL);
        build_net = build;
        const qat_node *range = qat_graph_find(net.training, "few/in/q/range");
        range->value[0] = -2; /* as the image's */
        range->value[1] = 3;
        freeze_again(&net);
        ck_assert(has_tensor(net.integers, "few/in/q") == (least < 8));
        ck_assert_msg(certify(&net, &c, &err) == QAT_OK, "%s", err.message);
        unmake(&net);
    }
}
END_TEST

/** The layer of the first reader ends after that of the second. */
static void build_interleaved(struct net *n)
{
    ck_assert_int_eq(qat_graph_create(&n->graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(n->graph, "image", QAT_SHAPE(1, SIDE, SIDE, CHANNELS));
    qat_node *first = qat_apply1(n->graph, "conv2d", "first", "filters=3 kernel=1", x);
    qat_node *second = qat_apply1(n->graph, "conv2d", "second", "filters=3 kernel=1", x);
    qat_node *sum = qat_apply2(n->graph, "add", "sum", "", x, second);
    qat_graph_output(n->graph, qat_apply1(n->graph, "relu", "positive", "", first));
    qat_graph_output(n->graph, sum);
    ck_assert_int_eq(qat_graph_check(n->graph, NULL), QAT_OK);
}

/** Both read the input of fewer bits that is named after the first. */
START_TEST(test_shared_inputs)
{
    struct net net;
    qat_error err;
    qat_certificate c;
    qat_quant_options o = qat_quant_defaults();
    o.input_bits = 5;
    build_net = build_interleaved;
    make_with(&net, &o, QAT_PROFILE_PAPER, NULL);
    build_net = build;
    ck_assert(has_tensor(net.integers, "first/in/q") && !has_tensor(net.integers, "second/in/q"));
    ck_assert_msg(certify(&net, &c, &err) == QAT_OK, "%s", err.message);
    unmake(&net);
}
END_TEST

/** The rows of an embedding are an input of the model instead of a constant. */
START_TEST(test_rows_that_are_no_constant)
{
    struct net net;
    qat_error err;
    qat_certificate c;
    build_net = build_padded;
    make(&net, QAT_LAYOUT_UINT8, QAT_PROFILE_PAPER, 8);
    build_net = build;
    qat_qgraph *g = net.integers;
    int inputs[2] = {g->inputs[0], -1}, *kept = g->inputs;
    for (int i = 0; i < g->n_ops; i++)
        if (strcmp(g->ops[i].op, "gather") == 0)
            inputs[1] = g->ops[i].inputs[0];
    ck_assert_int_ge(inputs[1], 0);
    g->tensors[inputs[1]].data = NULL;
    g->inputs = inputs;
    g->n_inputs = 2;
    ck_assert_int_eq(certify(&net, &c, &err), QAT_ERR_MISMATCH);
    ck_assert_msg(strstr(err.message, "rows: the kind of its rows"), "%s", err.message);
    g->inputs = kept;
    unmake(&net);
}
END_TEST

START_TEST(test_near_code)
{
    ck_assert(cert_near_code(2.5, 1, 0, -128, 127, 0, 2));
    ck_assert(cert_near_code(2.5, 1, 0, -128, 127, 0, 3));
    ck_assert(!cert_near_code(2.5, 1, 0, -128, 127, 0, 4));
    ck_assert(!cert_near_code(NAN, 1, 0, -128, 127, 0, -128));
}
END_TEST

int main(void)
{
    if (qat_registry_create(&registry, NULL) || qat_registry_add(registry, &curve, NULL) ||
        qat_registry_add(registry, &turned, NULL) || qat_registry_add(registry, &foreign_op, NULL))
        return 1;
    Suite *suite = suite_create("certify");
    TCase *tcase = tcase_create("fields");
    tcase_set_timeout(tcase, 60); /* some change several hundred fields */
    tcase_add_test(tcase, test_fields_uint8_paper);
    tcase_add_test(tcase, test_fields_uint8_tflite);
    tcase_add_test(tcase, test_fields_int8_paper);
    tcase_add_test(tcase, test_fields_int8_tflite);
    tcase_add_loop_test(tcase, test_fields_onnx, 0, 2);
    tcase_add_loop_test(tcase, test_fields_of_padding, 0, 6);
    tcase_add_test(tcase, test_other_sources);
    tcase_add_test(tcase, test_message);
    tcase_add_test(tcase, test_foreign_quantizer);
    tcase_add_test(tcase, test_weights_of_scale_1);
    tcase_add_test(tcase, test_signal_of_reshaped_output);
    tcase_add_test(tcase, test_signal_of_padding);
    tcase_add_test(tcase, test_missing_values);
    tcase_add_test(tcase, test_bias_of_large_averages);
    tcase_add_test(tcase, test_bias_near_a_tie);
    tcase_add_loop_test(tcase, test_signs_of_zeros, 0, 2);
    tcase_add_test(tcase, test_zeros_by_powers_of_two);
    tcase_add_loop_test(tcase, test_zeros_with_all_codes, 0, 2);
    tcase_add_test(tcase, test_left_out);
    tcase_add_test(tcase, test_inputs_inside_a_schedule);
    tcase_add_test(tcase, test_shared_inputs);
    tcase_add_test(tcase, test_rows_that_are_no_constant);
    tcase_add_test(tcase, test_near_code);
    tcase_add_test(tcase, test_empty_ranges);
    tcase_add_test(tcase, test_signal_of_many_small_mistakes);
    tcase_add_test(tcase, test_signal_of_clamped_biases);
    suite_add_tcase(suite, tcase);
    int const failed = test_run_suite(suite);
    qat_registry_free(registry);
    return failed;
}
