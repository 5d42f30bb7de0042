/**
 * Quantized .onnx graphs: two spellings of one convolution, whose codes are computed here in
 * float32; values that move; what is refused, with its sentence. The files are written here.
 */
#include "common/onnx_build.h"
#include "common/suite.h"
#include "qat/border.h"
#include "qat/convert.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7 };
enum { SIDE = 3, CHANNELS = 2, PIXELS = SIDE * SIDE, VALUES = CHANNELS * PIXELS };

typedef struct constant {
    const char *name;
    int type, rank;
    int64_t dims[4];
    const void *values;
    size_t bytes;
} constant;

/** inputs: names separated by blanks. */
typedef struct node {
    const char *op, *inputs, *output;
    const char *attr; /* an integer, or NULL */
    int64_t value;
} node;

static const float scales[] = {0.05f, 0, 0.1f}; /* of x and y */
static const float w_scales[] = {0.01f, 0.03f};
static const uint8_t zero_x = 120, zero_y = 30;
static const int8_t zero_w[] = {0, 0}, weights[] = {50, -100, 127, 3};
static const int32_t bias[] = {700, -350}, no_zero;
static const float real_bias[] = {0.35f, -0.525f};
static const int64_t two_rows[] = {1, 18};

#define ONE(name, type, value)                                                                     \
    {                                                                                              \
        name, type, 0, {0}, &(value), sizeof(value)                                                \
    }
static const constant constants[] = {
    ONE("sx", FLOAT, scales[0]),
    ONE("zx", UINT8, zero_x),
    ONE("sy", FLOAT, scales[2]),
    ONE("zy", UINT8, zero_y),
    ONE("z32", INT32, no_zero),
    {"sw", FLOAT, 1, {2}, w_scales, sizeof w_scales},
    {"zw", INT8, 1, {2}, zero_w, sizeof zero_w},
    {"w", INT8, 4, {2, 2, 1, 1}, weights, sizeof weights},
    {"b", INT32, 1, {2}, bias, sizeof bias},
    {"bf", FLOAT, 1, {2}, real_bias, sizeof real_bias},
    {"rows", INT64, 1, {2}, two_rows, sizeof two_rows},
};

static void add_constant(qat_writer *g, const constant *c)
{
    qat_writer t = {0};
    for (int i = 0; i < c->rank; i++)
        onnx_number(&t, 1, (uint64_t)c->dims[i]);
    onnx_number(&t, 2, (uint64_t)c->type);
    onnx_text(&t, 8, c->name);
    onnx_bytes(&t, 9, c->values, c->bytes);
    onnx_message(g, ONNX_INITIALIZER, &t);
}

static void add_node(qat_writer *g, const node *n)
{
    qat_writer to = {0}, attr = {0};
    char names[256], *rest;
    snprintf(names, sizeof names, "%s", n->inputs);
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        onnx_text(&to, 1, name);
    onnx_text(&to, 2, n->output);
    onnx_text(&to, 3, "the node");
    onnx_text(&to, 4, n->op);
    if (n->attr) {
        onnx_text(&attr, 1, n->attr);
        onnx_number(&attr, 3, (uint64_t)n->value);
        onnx_number(&attr, 20, 2);
        onnx_message(&to, 5, &attr);
    }
    onnx_message(g, ONNX_NODE, &to);
}

static void add_input(qat_writer *g, int type, int rank, const int64_t *dims)
{
    qat_writer shape = {0}, tensor = {0}, kind = {0}, v = {0};
    for (int i = 0; i < rank; i++) {
        qat_writer d = {0};
        onnx_number(&d, 1, (uint64_t)dims[i]);
        onnx_message(&shape, 1, &d);
    }
    onnx_number(&tensor, 1, (uint64_t)type);
    onnx_message(&tensor, 2, &shape);
    onnx_message(&kind, 1, &tensor);
    onnx_text(&v, 1, "x");
    onnx_message(&v, 2, &kind);
    onnx_message(g, ONNX_INPUT, &v);
}

static const int64_t picture[] = {1, CHANNELS, SIDE, SIDE};

/** The bytes of a model: input x, output y; nodes end with one without an op. */
static qat_writer model_of(const node *nodes, int type, int rank, const int64_t *dims)
{
    qat_writer g = {0}, m = {0};
    for (; nodes->op; nodes++)
        add_node(&g, nodes);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        add_constant(&g, &constants[i]);
    add_input(&g, type, rank, dims);
    onnx_value(&g, ONNX_OUTPUT, "y");
    onnx_message(&m, 7, &g);
    return m;
}

static qat_status import(const node *nodes, int type, int rank, const int64_t *dims,
                         qat_qgraph **graph, qat_error *err)
{
    qat_writer m = model_of(nodes, type, rank, dims);
    qat_status const st = qat_onnx_import(graph, m.bytes, m.count, err);
    qat_writer_free(&m);
    return st;
}

/* ------------------------------------------------------------------ what is read */

#define QUANTIZED_INPUT                                                                            \
    {"QuantizeLinear", "x sx zx", "xq", NULL, 0},                                                  \
    {                                                                                              \
        "DequantizeLinear", "xq sx zx", "xr", NULL, 0                                              \
    }
#define NODE(op, in, out)                                                                          \
    {                                                                                              \
        op, in, out, NULL, 0                                                                       \
    }
#define PER_CHANNEL                                                                                \
    {                                                                                              \
        "DequantizeLinear", "w sw zw", "wr", "axis", 0                                             \
    }
#define END NODE(NULL, NULL, NULL)

static int32_t code(float real, float scale, int32_t zero_point)
{
    float const value = rintf(real / scale) + (float)zero_point;
    return (int32_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/** Codes of the convolution, channels last. relu: they are not below the zero point. */
static void expected(const uint8_t *x, bool relu, uint8_t *y)
{
    for (int p = 0; p < PIXELS; p++)
        for (int o = 0; o < 2; o++) {
            int32_t sum = bias[o];
            for (int c = 0; c < 2; c++)
                sum += weights[2 * o + c] * (x[2 * p + c] - zero_x);
            float const m = scales[0] * w_scales[o] / scales[2];
            float const value = rintf((float)sum * m) + (float)zero_y;
            float const least = relu ? (float)zero_y : 0;
            y[2 * p + o] = (uint8_t)(value < least ? least : value > 255 ? 255 : value);
        }
}

/** Import, run, compare. is_real: both ends are float32. */
static void expect(const node *nodes, bool is_real, bool relu)
{
    qat_writer m = model_of(nodes, is_real ? FLOAT : UINT8, 4, picture);
    uint8_t *qm = NULL, x[VALUES], y[VALUES], want[VALUES];
    float reals[VALUES];
    size_t count = 0;
    qi_host *host = NULL;
    qat_error err;
    qat_import_options const how = {.known_answers = true};
    qat_status const st = qat_onnx_to_qm(m.bytes, m.count, &how, &qm, &count, &err);
    ck_assert_msg(!st, "%s", st ? err.message : "");
    qat_writer_free(&m);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "model", NULL, &err), "%s", err.message);
    const qi_tensor *in = qi_tensor_at(qi_host_model(host), qi_input_at(qi_host_model(host), 0));
    const qi_tensor *out = qi_tensor_at(qi_host_model(host), qi_output_at(qi_host_model(host), 0));
    ck_assert_int_eq(in->dims[3], CHANNELS);
    ck_assert_int_eq(in->border, is_real ? QI_BORDER_EVEN : QI_BORDER_NONE);
    ck_assert_int_eq(out->border, is_real ? QI_BORDER_FLOAT32 : QI_BORDER_NONE);
    for (int i = 0; i < VALUES; i++) {
        reals[i] = scales[0] * (float)(i * 13 % 251 - 120) + (i % 3 ? 0 : scales[0] / 2);
        x[i] = (uint8_t)code(reals[i], scales[0], zero_x);
    }
    if (is_real) {
        uint8_t codes[VALUES];
        qat_border_quantize(in, reals, codes);
        ck_assert_mem_eq(codes, x, sizeof x); /* halves to even */
    }
    qi_host_run(host, (const void *[]){x}, (void *[]){y});
    expected(x, relu, want);
    ck_assert_mem_eq(y, want, sizeof y);
    qi_host_close(host);
    free(qm);
}

START_TEST(test_two_spellings)
{
    node const qdq[] = {QUANTIZED_INPUT,
                        PER_CHANNEL,
                        NODE("Conv", "xr wr bf", "c"),
                        NODE("Relu", "c", "r"),
                        NODE("QuantizeLinear", "r sy zy", "yq"),
                        NODE("DequantizeLinear", "yq sy zy", "y"),
                        END};
    node const qoperator[] = {NODE("QLinearConv", "x sx zx w sw zw sy zy b", "y"), END};
    expect(qdq, true, true);
    expect(qoperator, false, false);
}
END_TEST

/** Reals that move between DequantizeLinear and QuantizeLinear are codes that move. */
START_TEST(test_moves)
{
    node const moves[] = {QUANTIZED_INPUT,
                          NODE("Reshape", "xr rows", "flat"),
                          NODE("Relu", "flat", "r"),
                          NODE("QuantizeLinear", "r sy zy", "yq"),
                          NODE("DequantizeLinear", "yq sy zy", "y"),
                          END};
    qat_qgraph *g = NULL;
    qat_error err;
    ck_assert_msg(!import(moves, FLOAT, 4, picture, &g, &err), "%s", err.message);
    ck_assert_int_eq(g->n_ops, 3); /* to the file's order, its shape, the function */
    ck_assert_str_eq(g->ops[0].op, "transpose");
    ck_assert_str_eq(g->ops[1].op, "reshape");
    ck_assert_str_eq(g->ops[2].op, "table");
    const uint8_t *table = g->tensors[g->ops[2].inputs[1]].data;
    for (int i = 0; i < 256; i++) {
        float const real = scales[0] * (float)(i - zero_x);
        ck_assert_int_eq(table[i], code(real < 0 ? 0 : real, scales[2], zero_y));
    }
    qat_qgraph_free(g);
}
END_TEST

/** Codes that move before their scale is told; Concat and Clip of codes. */
START_TEST(test_codes)
{
    node const codes[] = {NODE("Reshape", "x rows", "flat"),
                          {"Concat", "flat flat", "both", "axis", 1},
                          NODE("Clip", "both zx", "clipped"),
                          NODE("DequantizeLinear", "clipped sx zx", "y"),
                          END};
    qat_qgraph *g = NULL;
    qat_error err;
    ck_assert_msg(!import(codes, UINT8, 4, picture, &g, &err), "%s", err.message);
    const qat_qtensor *x = &g->tensors[g->inputs[0]], *y = &g->tensors[g->outputs[0]];
    ck_assert(x->scale == scales[0] && x->zero_point == zero_x && x->border == QI_BORDER_NONE);
    ck_assert(y->scale == scales[0] && y->border == QI_BORDER_FLOAT32 && y->dims[1] == 36);
    ck_assert_int_eq(g->n_ops, 4);
    ck_assert_str_eq(g->ops[2].op, "concat");
    const uint8_t *table = g->tensors[g->ops[3].inputs[1]].data;
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(table[i], i < zero_x ? zero_x : i);
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ what is refused */

typedef struct refusal {
    const char *sentence;
    node nodes[8];
} refusal;

static const refusal refusals[] = {
    {"(Cos): this operator is not supported", {QUANTIZED_INPUT, NODE("Cos", "xr", "y"), END}},
    {"'c' is the result of 'the node', which is computed in reals",
     {QUANTIZED_INPUT, PER_CHANNEL, NODE("Conv", "xr wr", "c"), NODE("Flatten", "c", "y"), END}},
    {"has no finite value for some", {QUANTIZED_INPUT, NODE("Log", "xr", "y"), END}},
    {"its input 'x' is never quantized", {NODE("QuantizeLinear", "bf sx zx", "y"), END}},
    {"input is not quantized", {NODE("Relu", "x", "y"), END}},
    {"its scale, input 1, is not a constant", {NODE("QuantizeLinear", "x x zx", "y"), END}},
    {"its scale is -", {NODE("QuantizeLinear", "x bf zx", "y"), END}},
    {"2 scales for an activation", {NODE("QuantizeLinear", "x sw zx", "y"), END}},
    {"codes of type int32", {NODE("QuantizeLinear", "x sx z32", "y"), END}},
    {"was made with 0.05",
     {NODE("QuantizeLinear", "x sx zx", "q"), NODE("DequantizeLinear", "q sy zx", "y"), END}},
    {"its weights are not constant codes",
     {QUANTIZED_INPUT, NODE("Conv", "xr xr", "y"), NODE("QuantizeLinear", "y sy zy", "z"), END}},
    {"weights have 2 scales along dimension 1",
     {QUANTIZED_INPUT, NODE("DequantizeLinear", "w sw zw", "wr"), NODE("Conv", "xr wr", "c"),
      NODE("QuantizeLinear", "c sy zy", "y"), END}},
    {"is computed in reals and not quantized",
     {QUANTIZED_INPUT, PER_CHANNEL, NODE("Conv", "xr wr", "c"), NODE("Conv", "c wr", "y"), END}},
    {"a function of a result",
     {QUANTIZED_INPUT, PER_CHANNEL, NODE("Conv", "xr wr", "c"), NODE("Tanh", "c", "y"), END}},
    {"it has 1 inputs", {QUANTIZED_INPUT, NODE("Conv", "xr", "y"), END}},
    {"it has 3 inputs and 1 outputs", {NODE("QLinearConv", "x sx zx", "y"), END}},
    {"is not known", {NODE("QuantizeLinear", "nothing sx zx", "y"), END}},
};

START_TEST(test_refused)
{
    static const int64_t unknown[] = {1, 0, 3, 3}, five[] = {1, 1, 1, 1, 1};
    node const none[] = {NODE("Relu", "x", "y"), END};
    qat_qgraph *g = NULL;
    qat_error err;
    const refusal *r = &refusals[_i];
    ck_assert_int_ne(import(r->nodes, FLOAT, 4, picture, &g, &err), QAT_OK);
    ck_assert_ptr_null(g);
    ck_assert_msg(strstr(err.message, r->sentence), "%s: %s", r->sentence, err.message);
    ck_assert_int_ne(import(none, FLOAT, 4, unknown, &g, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, "of unknown size"), "%s", err.message);
    ck_assert_int_ne(import(none, FLOAT, 5, five, &g, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, "5 dimensions"), "%s", err.message);
    ck_assert_int_ne(import(none, INT64, 4, picture, &g, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, "not of uint8, int8 or float"), "%s", err.message);
}
END_TEST

int main(void)
{
    qat_qgraph *g = NULL;
    qat_error err = {0};
    if (qat_onnx_import(&g, "", 0, &err) == QAT_ERR_UNSUPPORTED &&
        strstr(err.message, "without protobuf-c")) {
        puts("SKIP onnx: this build has no protobuf-c");
        return 0;
    }
    Suite *suite = suite_create("onnx");
    TCase *tcase = tcase_create("onnx");
    tcase_add_test(tcase, test_two_spellings);
    tcase_add_test(tcase, test_moves);
    tcase_add_test(tcase, test_codes);
    tcase_add_loop_test(tcase, test_refused, 0, (int)(sizeof refusals / sizeof *refusals));
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
