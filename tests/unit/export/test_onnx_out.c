/** A model as ONNX: what lib/foreign reads of the file is what the .qm has. */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "foreign/foreign.h"
#include "integer/quant_ops.h"
#include "qat/convert.h"
#include "qat/export.h"
#include "qat/graph.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** x [1,2,3,2] --conv2d--> [1,2,3,2] --reshape--> [1,12] --fully_connected--> y [1,2] */
enum { X, CONV, FLAT, Y, KERNEL, MATRIX };

typedef struct made {
    qat_qgraph *graph;
    qi_host *host;
    uint8_t *qm;
} made;

static int tensor(qat_qgraph *g, const char *name, int rank, const int32_t *dims, float scale,
                  int32_t zero_point, const void *data)
{
    qat_qtensor t = {.type = QI_U8,
                     .bits = 8,
                     .rank = rank,
                     .dims = {1, 1, 1, 1},
                     .scale = scale,
                     .zero_point = zero_point,
                     .data = (void *)data,
                     .source_index = -1};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    snprintf(t.name, sizeof t.name, "%s", name);
    return qat_qgraph_tensor(g, &t, NULL);
}

static qat_profile profile = QAT_PROFILE_PAPER; /* of all emitted ops */
static int kernel_bits = 8;
static bool reals_outside; /* at both ends, as an imported .onnx file has them */

static qat_emit emit(qat_qgraph *g, const char *name, int n, const int *inputs, int output)
{
    return (qat_emit){.graph = g,
                      .profile = profile,
                      .name = name,
                      .n_inputs = n,
                      .inputs = inputs,
                      .output = output,
                      .act_min = -INFINITY,
                      .act_max = INFINITY};
}

static void write_and_open(made *m)
{
    const char *labels[] = {"a", "two\nlines"};
    size_t count = 0;
    qat_error err;
    uint8_t const in[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const void *answers[] = {in};
    qi_preprocessing const numbers = {
        .kind = 2, .channels = 2, .std_bits = {0x3f800000, 0x3f800000}};
    qat_qm_metadata const meta = {.description = "a small one",
                                  .labels = labels,
                                  .n_labels = 2,
                                  .preprocessing = reals_outside ? (qi_preprocessing){0} : numbers,
                                  .kat_inputs = answers,
                                  .kat_outputs = answers};
    ck_assert_msg(!qat_qm_write(m->graph, &meta, &m->qm, &count, &err), "%s", err.message);
    ck_assert_msg(!qi_host_open_bytes(&m->host, m->qm, count, "model", NULL, &err), "%s",
                  err.message);
}

static made make(const char *const names[6])
{
    static const int32_t picture[] = {1, 2, 3, 2}, flat[] = {1, 12}, out[] = {1, 2},
                         kernel[] = {2, 1, 1, 2}, matrix[] = {2, 12};
    uint8_t codes[4] = {1, 2, 3, 4}, columns[24];
    for (int i = 0; i < 24; i++)
        columns[i] = (uint8_t)(10 + i);
    made m = {.graph = qat_qgraph_new()};
    qat_qgraph *g = m.graph;
    qat_window const window = {
        .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .explicit_pads = true};
    ck_assert_int_eq(tensor(g, names[X], 4, picture, 0.5f, 3, NULL), X);
    tensor(g, names[CONV], 4, picture, 0.25f, 0, NULL);
    tensor(g, names[FLAT], 2, flat, 0.25f, 0, NULL);
    tensor(g, names[Y], 2, out, 2, 128, NULL);
    tensor(g, names[KERNEL], 4, kernel, 0.125f, 2, codes);
    ck_assert_int_eq(tensor(g, names[MATRIX], 2, matrix, 0.0625f, 20, columns), MATRIX);
    g->tensors[KERNEL].bits = kernel_bits;
    qat_emit e = emit(g, "conv", 3, (const int[]){X, KERNEL, -1}, CONV);
    e.act_min = 0;
    ck_assert_int_eq(qat_emit_conv2d(&e, &window, NULL), QAT_OK);
    e = emit(g, "flat", 1, (const int[]){CONV}, FLAT);
    ck_assert_int_eq(qat_emit_reshape(&e, NULL), QAT_OK);
    e = emit(g, "fc", 3, (const int[]){FLAT, MATRIX, -1}, Y);
    ck_assert_int_eq(qat_emit_fully_connected(&e, NULL), QAT_OK);
    g->tensors[X].border = reals_outside ? QI_BORDER_EVEN : QI_BORDER_NONE;
    g->tensors[Y].border = reals_outside ? QI_BORDER_FLOAT32 : QI_BORDER_NONE;
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, (const int[]){X}, 1, (const int[]){Y}, NULL), QAT_OK);
    write_and_open(&m);
    return m;
}

static const char *const plain[] = {"x", "conv", "flat", "y", "kernel", "matrix"};

static void unmake(made *m)
{
    qi_host_close(m->host);
    free(m->qm);
    qat_qgraph_free(m->graph);
}

/** As ONNX, and read back. */
static qat_foreign_graph *through(const made *m, const qat_write_options *options)
{
    uint8_t *bytes = NULL, *again = NULL;
    size_t count = 0, count2 = 0;
    qat_foreign_graph *read = NULL;
    qat_error err;
    qat_status const st = qat_onnx_write(m->host, options, &bytes, &count, &err);
    if (st == QAT_ERR_UNSUPPORTED && strstr(err.message, "without protobuf-c"))
        return NULL;
    ck_assert_msg(!st, "%s", err.message);
    ck_assert_int_eq(qat_onnx_write(m->host, options, &again, &count2, &err), QAT_OK);
    ck_assert_uint_eq(count, count2);
    ck_assert_mem_eq(bytes, again, count);
    ck_assert_msg(!qat_onnx_parse(&read, bytes, count, "m.onnx", 0, &err), "%s", err.message);
    free(bytes);
    free(again);
    return read;
}

static const qat_foreign_node *node_of(const qat_foreign_graph *g, const char *op)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].op, op) == 0)
            return &g->nodes[i];
    return NULL;
}

static int count_of(const qat_foreign_graph *g, const char *op)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += strcmp(g->nodes[i].op, op) == 0;
    return n;
}

static const qat_foreign_tensor *constant_of(const qat_foreign_graph *g, const char *name)
{
    for (int i = 0; i < g->n_values; i++)
        if (strcmp(g->values[i].name, name) == 0)
            return g->values[i].constant;
    return NULL;
}

/** The weights behind a flattened picture [2, 3, 2] have the order of planes [2, 2, 3]. */
static void check_columns(const qat_foreign_tensor *matrix)
{
    ck_assert_ptr_nonnull(matrix);
    for (int o = 0; o < 2; o++)
        for (int c = 0; c < 2; c++)
            for (int i = 0; i < 6; i++)
                ck_assert_int_eq(matrix->ints[o * 12 + c * 6 + i], 10 + o * 12 + i * 2 + c);
}

START_TEST(between_reals)
{
    made m = make(plain);
    qat_foreign_graph *g = through(&m, &(qat_write_options){0});
    if (g) {
        const qat_foreign_value *x = &g->values[g->inputs[0]];
        ck_assert_int_eq(g->opset, 17);
        ck_assert_str_eq(x->name, "x");
        ck_assert_int_eq(x->rank, 4);
        ck_assert_int_eq(x->dims[0], -1); /* any number of samples */
        ck_assert_int_eq(x->dims[1], 2);
        ck_assert_int_eq(x->dims[2], 2);
        ck_assert_int_eq(x->dims[3], 3);
        ck_assert_str_eq(g->values[g->outputs[0]].name, "y");
        ck_assert_int_eq(count_of(g, "Transpose"), 0);
        ck_assert_int_eq(count_of(g, "QuantizeLinear"), 3);
        ck_assert_int_eq(count_of(g, "DequantizeLinear"), 7);
        ck_assert_int_eq(count_of(g, "Clip") + count_of(g, "Relu"), 0); /* saturation does it */
        ck_assert_ptr_nonnull(node_of(g, "Conv"));
        ck_assert_ptr_nonnull(node_of(g, "Gemm"));
        check_columns(constant_of(g, "matrix"));
        ck_assert_int_eq(constant_of(g, "kernel")->ints[3], 4);
        qat_foreign_free(g);
    }
    unmake(&m);
}
END_TEST

START_TEST(operators_of_codes)
{
    made m = make(plain);
    qat_foreign_graph *g =
        through(&m, &(qat_write_options){.form = QAT_ONNX_QOPERATOR, .opset = 13});
    if (g) {
        ck_assert_int_eq(g->opset, 13);
        ck_assert_int_eq(count_of(g, "DequantizeLinear"), 0);
        ck_assert_int_eq(node_of(g, "QLinearConv")->n_inputs, 9);
        ck_assert_str_eq(node_of(g, "QGemm")->domain, "com.microsoft");
        check_columns(constant_of(g, "matrix"));
        qat_foreign_free(g);
    }
    unmake(&m);
}
END_TEST

/** No number of the file is a float; what multiplies has one zero point a tensor, of uint8. */
START_TEST(integers)
{
    made m = make(plain);
    qat_foreign_graph *g = through(&m, &(qat_write_options){.form = QAT_ONNX_INTEGER});
    if (g) {
        ck_assert_int_eq(count_of(g, "DequantizeLinear") + count_of(g, "QuantizeLinear"), 0);
        ck_assert_int_eq(count_of(g, "Transpose"), 0);
        ck_assert_int_eq(node_of(g, "ConvInteger")->n_inputs, 4);
        ck_assert_int_eq(count_of(g, "MatMulInteger"), 1);
        for (int i = 0; i < g->n_values; i++)
            ck_assert(!g->values[i].constant || !g->values[i].constant->floats);
        const qat_foreign_tensor *matrix = constant_of(g, "matrix"); /* [I,O], I like planes */
        ck_assert_int_eq(matrix->dims[0], 12);
        for (int o = 0; o < 2; o++)
            for (int c = 0; c < 2; c++)
                for (int i = 0; i < 6; i++)
                    ck_assert_int_eq(matrix->ints[(c * 6 + i) * 2 + o], 10 + o * 12 + i * 2 + c);
        qat_foreign_free(g);
    }
    unmake(&m);
}
END_TEST

/** An op of two tensors of this type, [1, 256], whose codes are then read from its only input. */
static made make_pair(qi_type type, const char *op)
{
    static const int32_t dims[] = {1, 256};
    made m = {.graph = qat_qgraph_new()};
    tensor(m.graph, "x", 2, dims, 0.5f, 3, NULL);
    tensor(m.graph, "y", 2, dims, 1 / 128.0f, type == QI_S8 ? 0 : 128, NULL);
    m.graph->tensors[0].type = m.graph->tensors[1].type = type;
    qat_emit const e = emit(m.graph, "layer", 1, (const int[]){0}, 1);
    ck_assert_int_eq(strcmp(op, "requantize") ? qat_emit_op(&e, op, QI_ROUND_NONE, 0, NULL, 0, NULL)
                                              : qat_emit_requantize(&e, NULL),
                     QAT_OK);
    qat_qgraph_set_io(m.graph, 1, (const int[]){0}, 1, (const int[]){1}, NULL);
    size_t count;
    qat_qm_metadata const meta = {.description = ""};
    ck_assert_int_eq(qat_qm_write(m.graph, &meta, &m.qm, &count, NULL), QAT_OK);
    ck_assert_int_eq(qi_host_open_bytes(&m.host, m.qm, count, "pair", NULL, NULL), QAT_OK);
    return m;
}

/** x [1,2,3,2] of int8 --average_pool2d--> y: of profile onnx. */
static made make_average(void)
{
    static const int32_t dims[] = {1, 2, 3, 2};
    made m = {.graph = qat_qgraph_new()};
    qat_window const window = {.kernel_h = 2, .kernel_w = 2, .stride_h = 1, .stride_w = 1};
    for (int i = 0; i < 2; i++) {
        tensor(m.graph, plain[i], 4, dims, 0.5f, 3, NULL);
        m.graph->tensors[i].type = QI_S8;
    }
    profile = QAT_PROFILE_ONNX;
    qat_emit const e = emit(m.graph, "pool", 1, (const int[]){0}, 1);
    profile = QAT_PROFILE_PAPER;
    ck_assert_int_eq(qat_emit_pool(&e, "average_pool2d", &window, NULL), QAT_OK);
    qat_qgraph_set_io(m.graph, 1, (const int[]){0}, 1, (const int[]){1}, NULL);
    size_t count;
    qat_qm_metadata const meta = {.description = ""};
    ck_assert_int_eq(qat_qm_write(m.graph, &meta, &m.qm, &count, NULL), QAT_OK);
    ck_assert_int_eq(qi_host_open_bytes(&m.host, m.qm, count, "pool", NULL, NULL), QAT_OK);
    return m;
}

/** The first of the only node of this op: its zero point, and its scale. */
static void check_grid(const qat_foreign_graph *g, const char *op, float scale, int zero_point)
{
    const qat_foreign_node *node = node_of(g, op);
    ck_assert_float_eq(g->values[node->inputs[1]].constant->floats[0], scale);
    ck_assert_int_eq(g->values[node->inputs[2]].constant->ints[0], zero_point);
}

/**
 * Profile onnx: codes of int8 are uint8 in the form qdq, 128 higher, and averages have the scale 1
 * and the zero point 0. Limits are of codes.
 */
START_TEST(profile_onnx)
{
    made m = make_average();
    qat_foreign_graph *g = through(&m, &(qat_write_options){.form = QAT_ONNX_QDQ});
    if (g) {
        check_grid(g, "DequantizeLinear", 1, 0);
        check_grid(g, "QuantizeLinear", 1, 0);
        ck_assert_int_eq(count_of(g, "AveragePool"), 1);
        ck_assert_int_eq(count_of(g, "Add"), 2); /* 128, at both ends */
        qat_foreign_free(g);
        g = through(&m, &(qat_write_options){.form = QAT_ONNX_QOPERATOR});
        check_grid(g, "QLinearAveragePool", 1, 0);
        ck_assert_int_eq(count_of(g, "Add"), 0);
        qat_foreign_free(g);
    }
    unmake(&m);
    profile = QAT_PROFILE_ONNX;
    m = make(plain);
    profile = QAT_PROFILE_PAPER;
    g = through(&m, &(qat_write_options){.form = QAT_ONNX_QDQ});
    if (g) {
        ck_assert_int_eq(count_of(g, "Relu") + count_of(g, "Clip"), 0);
        ck_assert_int_eq(count_of(g, "QuantizeLinear"), 3); /* of the reshape, too */
        qat_foreign_free(g);
    }
    unmake(&m);
}
END_TEST

/**
 * Weights of 4 bits are 16 times as large, and so is the bias: of rounding TWICE it has the 1 / (2
 * M0) of the first rounding, 16 of 16 units for M0 = 1/2. Not where they have types of 4 bits, nor
 * in profile onnx, nor of integers.
 */
START_TEST(spare_bits)
{
    static const struct {
        qat_profile profile;
        qat_write_options options;
        int shift;
    } cases[] = {
        {QAT_PROFILE_PAPER, {.form = QAT_ONNX_QOPERATOR}, 4},
        {QAT_PROFILE_PAPER, {.form = QAT_ONNX_QDQ}, 4},
        {QAT_PROFILE_PAPER, {.form = QAT_ONNX_QDQ, .opset = 21}, 0},
        {QAT_PROFILE_PAPER, {.form = QAT_ONNX_INTEGER}, 0},
        {QAT_PROFILE_ONNX, {.form = QAT_ONNX_QOPERATOR}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel_bits = 4;
        profile = cases[i].profile;
        made m = make(plain);
        profile = QAT_PROFILE_PAPER;
        kernel_bits = 8;
        qat_foreign_graph *g = through(&m, &cases[i].options);
        if (g) {
            const qat_foreign_tensor *k = constant_of(g, "kernel");
            const qat_foreign_node *conv = node_of(g, "QLinearConv");
            for (int w = 0; w < 4; w++)
                ck_assert_int_eq(k->ints[w], (1 + w) << cases[i].shift);
            for (int o = 0; conv && o < 2; o++)
                ck_assert_int_eq(g->values[conv->inputs[8]].constant->ints[o],
                                 cases[i].shift ? 16 : 0);
            qat_foreign_free(g);
        }
        unmake(&m);
    }
}
END_TEST

/** A function of a code is a table of the engine's answers, 128 higher for int8. */
START_TEST(tables_of_the_engine)
{
    for (int type = QI_U8; type <= QI_S8; type++) {
        uint8_t const flip = type == QI_S8 ? 0x80 : 0;
        uint8_t codes[256], answers[256];
        made m = make_pair(type, "requantize");
        for (int i = 0; i < 256; i++)
            codes[i] = (uint8_t)(i ^ flip);
        qi_host_run(m.host, (const void *const[]){codes}, (void *const[]){answers});
        qat_foreign_graph *g = through(&m, &(qat_write_options){.form = QAT_ONNX_INTEGER});
        if (g) {
            const qat_foreign_tensor *table = constant_of(g, "table");
            ck_assert_int_eq(count_of(g, "Cast"), type == QI_S8 ? 5 : 1);
            for (int i = 0; i < 256; i++)
                ck_assert_int_eq(table->ints[i], answers[i] ^ flip);
            qat_foreign_free(g);
        }
        unmake(&m);
    }
}
END_TEST

START_TEST(real_ends)
{
    reals_outside = _i; /* the file has them, or the option makes them */
    made m = make(plain);
    reals_outside = false;
    qat_foreign_graph *g = through(&m, &(qat_write_options){.float_io = !_i});
    if (g) {
        ck_assert_int_eq(count_of(g, "QuantizeLinear"), 4);
        ck_assert_int_eq(count_of(g, "DequantizeLinear"), 8);
        ck_assert_str_eq(g->values[g->inputs[0]].name, "x");
        ck_assert_str_eq(g->values[g->outputs[0]].name, "y");
        qat_foreign_free(g);
    }
    unmake(&m);
}
END_TEST

/** Names are made different, and visible. */
START_TEST(hostile_names)
{
    static const char *const same[] = {"", "same", "same", "\xff\n", "same", "scale"};
    made m = make(same);
    qat_foreign_graph *g = through(&m, &(qat_write_options){0});
    if (g) {
        ck_assert_str_eq(g->values[g->outputs[0]].name, "\\xff\\x0a");
        ck_assert_str_eq(g->values[g->inputs[0]].name, "value");
        for (int i = 0; i < g->n_nodes; i++)
            for (int k = 0; k < i; k++)
                ck_assert_int_ne(g->nodes[i].outputs[0], g->nodes[k].outputs[0]);
        qat_foreign_free(g);
    }
    unmake(&m);
}
END_TEST

static void refused(const made *m, const qat_write_options *options, const char *sentence)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    qat_error err = {0};
    ck_assert_int_ne(qat_onnx_write(m->host, options, &bytes, &count, &err), QAT_OK);
    ck_assert_ptr_null(bytes);
    ck_assert_msg(strstr(err.message, sentence) || strstr(err.message, "without protobuf-c"), "%s",
                  err.message);
}

START_TEST(what_is_refused)
{
    made m = make(plain);
    refused(&m, &(qat_write_options){.opset = 12}, "opset 12: 13 to 21 can be written");
    refused(&m, &(qat_write_options){.opset = 22}, "opset 22");
    refused(&m, &(qat_write_options){.struct_size = 4096}, "of a later version");
    unmake(&m);
    m = make_pair(QI_S8, "l2_normalization");
    refused(&m, &(qat_write_options){.form = QAT_ONNX_INTEGER},
            "layer 'layer' (l2_normalization) cannot be written as ONNX: the form integer has no "
            "operators for it");
    unmake(&m);
    m = (made){.graph = qat_qgraph_new()};
    int32_t const dims[] = {1, 12};
    for (int i = 0; i < 2; i++)
        tensor(m.graph, plain[i], 2, dims, 0.5f, 0, NULL);
    m.graph->tensors[1].type = QI_S16;
    m.graph->tensors[1].bits = 16;
    qat_emit const e = emit(m.graph, "to wide", 1, (const int[]){0}, 1);
    ck_assert_int_eq(qat_emit_requantize(&e, NULL), QAT_OK);
    qat_qgraph_set_io(m.graph, 1, (const int[]){0}, 1, (const int[]){0}, NULL);
    size_t count;
    qat_qm_metadata const meta = {.description = ""};
    ck_assert_int_eq(qat_qm_write(m.graph, &meta, &m.qm, &count, NULL), QAT_OK);
    ck_assert_int_eq(qi_host_open_bytes(&m.host, m.qm, count, "wide", NULL, NULL), QAT_OK);
    refused(&m, &(qat_write_options){0},
            "layer 'to wide' (requantize) cannot be written as ONNX: 16-bit codes need opset 21");
    unmake(&m);
}
END_TEST

/* ------------------------------------------------------------------ float networks */

enum { HEIGHT = 9, WIDTH = 7, CHANNELS = 3, VALUES = HEIGHT * WIDTH * CHANNELS };

static qat_graph *float_network(const qat_registry *registry)
{
    qat_graph *g;
    qat_error err = {0};
    qat_graph_create(&g, registry, &err);
    qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, HEIGHT, WIDTH, CHANNELS));
    x = qat_apply1(g, "conv2d", "c1", "filters=4 kernel=3 stride=2", x);
    x = qat_apply1(g, "bias", "c1/bias", "", x);
    x = qat_apply1(g, "relu6", "c1/relu", "", x);
    qat_node *y = qat_apply1(g, "depthwise_conv2d", "dw", "kernel=3 multiplier=1", x);
    y = qat_apply1(g, "batch_norm", "dw/norm", "", y);
    y = qat_apply1(g, "logistic", "dw/logistic", "", y);
    x = qat_apply2(g, "add", "sum", "", x, y);
    x = qat_apply1(g, "max_pool2d", "pool", "kernel=2 stride=2", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    x = qat_apply1(g, "fully_connected", "fc", "units=5", x);
    x = qat_apply1(g, "bias", "fc/bias", "", x);
    qat_graph_output(g, x);
    ck_assert_msg(!qat_graph_check(g, &err), "%s", err.message);
    ck_assert_int_eq(qat_graph_plan(g, 1, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(g, 7);
    for (int i = 0; i < qat_graph_nodes(g); i++) {
        const qat_node *n = qat_graph_node(g, i);
        for (size_t k = 0; n->is_param && n->shape.rank == 1 && k < qat_shape_count(&n->shape); k++)
            n->value[k] = 0.25f + 0.125f * (float)k;
    }
    return g;
}

static const float *answer(qat_graph *g, const char *input)
{
    qat_node *x = qat_graph_find(g, input);
    for (int i = 0; i < VALUES; i++)
        x->value[i] = sinf((float)i);
    qat_graph_forward(g, &(qat_run){.mode = QAT_MODE_EVAL});
    return qat_graph_output_at(g, 0)->value;
}

static void check_weights(const qat_foreign_graph *read, qat_graph *g, const char *name)
{
    const qat_node *p = qat_graph_find(g, name);
    const qat_foreign_tensor *c = constant_of(read, name);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->count, qat_shape_count(&p->shape));
    ck_assert_mem_eq(c->floats, p->value, c->count * sizeof(float));
}

/** A file as a network that is not trained. NULL: this build has no ONNX. */
static qat_graph *built(const qat_registry *registry, const uint8_t *bytes, size_t count)
{
    qat_error err = {0};
    qat_foreign_graph *read = NULL;
    qat_foreign_params params = {0};
    qat_node *last;
    qat_graph *g;
    qat_foreign_options const options = {HEIGHT, WIDTH, CHANNELS, 0, 0.9};
    qat_status st = qat_onnx_parse(&read, bytes, count, "m.onnx", 0, &err);
    ck_assert_msg(!st, "%s", err.message);
    qat_graph_create(&g, registry, &err);
    qat_node *x = qat_graph_input(g, "input", QAT_SHAPE(1, HEIGHT, WIDTH, CHANNELS));
    st = qat_foreign_build(read, g, x, &options, &last, &params, &err);
    ck_assert_msg(!st, "%s", err.message);
    qat_graph_output(g, last);
    ck_assert_int_eq(qat_graph_plan(g, 1, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(g, 1);
    ck_assert_int_eq(qat_foreign_fill(&params, g), params.count);
    qat_foreign_params_free(&params);
    qat_foreign_free(read);
    return g;
}

static qat_status write_float(qat_graph *g, uint8_t **bytes, size_t *count)
{
    qat_error err = {0};
    qat_status const st = qat_onnx_write_float(g, &(qat_write_options){0}, bytes, count, &err);
    ck_assert_msg(!st || st == QAT_ERR_UNSUPPORTED, "%s", err.message);
    return st;
}

/**
 * Written, read and built again, a network gives the same answers; parameters keep their names and
 * values. What is read and written untrained has the same bytes, from the second file on: the first
 * is another network's, with an input of another name.
 */
START_TEST(a_float_network_comes_back)
{
    qat_registry *registry;
    qat_error err = {0};
    uint8_t *bytes = NULL;
    size_t count = 0;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    qat_graph *g = float_network(registry);
    if (write_float(g, &bytes, &count) == QAT_OK) {
        qat_foreign_graph *read = NULL;
        ck_assert_int_eq(qat_onnx_parse(&read, bytes, count, "m.onnx", 0, &err), QAT_OK);
        check_weights(read, g, "c1/bias/bias");
        check_weights(read, g, "dw/norm/ema_variance");
        qat_foreign_free(read);
        for (int i = 0; i < 3; i++) {
            uint8_t *before = bytes;
            size_t const count_before = count;
            qat_graph *again = built(registry, bytes, count);
            const float *want = answer(g, i == 0 ? "image" : "input"), *is = answer(again, "input");
            ck_assert_mem_eq(is, want, 5 * sizeof *is);
            qat_graph_free(g);
            g = again;
            ck_assert_int_eq(write_float(g, &bytes, &count), QAT_OK);
            if (i > 0) {
                ck_assert_uint_eq(count, count_before);
                ck_assert_mem_eq(bytes, before, count);
            }
            free(before);
        }
        free(bytes);
    }
    ck_assert_int_ne(
        qat_onnx_write_float(g, &(qat_write_options){.opset = 12}, &bytes, &count, &err), QAT_OK);
    qat_graph_free(g);
    qat_registry_free(registry);
}
END_TEST

START_TEST(no_memory)
{
    made m = make(plain);
    qat_write_options const options = {.form = (qat_onnx_form)_i};
    bool failed = true;
    for (long n = 0; failed; n++) {
        uint8_t *bytes = NULL;
        size_t count = 0;
        qat_error err = {0};
        test_fail_alloc_after(n);
        qat_status const st = qat_onnx_write(m.host, &options, &bytes, &count, &err);
        failed = test_fail_alloc_stop();
        if (st == QAT_ERR_UNSUPPORTED)
            break;
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        free(bytes);
    }
    unmake(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("onnx_out");
    TCase *t = tcase_create("onnx_out");
    tcase_add_test(t, between_reals);
    tcase_add_test(t, operators_of_codes);
    tcase_add_test(t, integers);
    tcase_add_test(t, profile_onnx);
    tcase_add_test(t, spare_bits);
    tcase_add_test(t, tables_of_the_engine);
    tcase_add_loop_test(t, real_ends, 0, 2);
    tcase_add_test(t, hostile_names);
    tcase_add_test(t, what_is_refused);
    tcase_add_test(t, a_float_network_comes_back);
    tcase_add_loop_test(t, no_memory, QAT_ONNX_QDQ, QAT_ONNX_INTEGER + 1);
    suite_add_tcase(s, t);
    return test_run_suite(s);
}
