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

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7, BOOLEAN = 9 };
enum { SIDE = 3, CHANNELS = 2, PIXELS = SIDE * SIDE, VALUES = CHANNELS * PIXELS };

typedef struct constant {
    const char *name;
    int type, rank;
    int64_t dims[4];
    const void *values;
    size_t bytes;
} constant;

/** op: behind its domain and a colon, if it has one. inputs: names separated by blanks. */
typedef struct node {
    const char *op, *inputs, *output;
    const char *attr; /* an integer, or of "value" a real; or NULL */
    int64_t value;
} node;

static const float scales[] = {0.05f, 0, 0.1f, 0.2f}; /* of x, of y, and one more */
static const float w_scales[] = {0.01f, 0.03f};
static const uint8_t zero_x = 120, zero_y = 30;
static const int8_t zero_w[] = {0, 0}, weights[] = {50, -100, 127, 3};
static const uint8_t zeros[] = {100, 20}, three_zeros[] = {1, 2, 3};
static const int32_t bias[] = {700, -350}, no_zero;
static const float real_bias[] = {0.35f, -0.525f};
static const int32_t wide_zeros[] = {700, 2};
static const int64_t halves[] = {2, 9};
static const int64_t two_rows[] = {1, 18}, far_away = 1000, one_axis = 1;
static const int64_t one_around[] = {0, 0, 1, 1, 0, 0, 1, 1};
static const int8_t nine_rows[18] = {1, -1};
static const float whole = 1;

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
    ONE("s1", FLOAT, whole),
    {"around", INT64, 1, {8}, one_around, sizeof one_around},
    {"w9", INT8, 2, {9, 2}, nine_rows, sizeof nine_rows},
    {"column", INT32, 2, {2, 1}, bias, sizeof bias},
    {"sw", FLOAT, 1, {2}, w_scales, sizeof w_scales},
    {"zw", INT8, 1, {2}, zero_w, sizeof zero_w},
    {"z2", UINT8, 1, {2}, zeros, sizeof zeros},
    {"z3", UINT8, 1, {3}, three_zeros, sizeof three_zeros},
    {"s2", FLOAT, 1, {2}, scales + 2, sizeof w_scales},
    {"w", INT8, 4, {2, 2, 1, 1}, weights, sizeof weights},
    {"b", INT32, 1, {2}, bias, sizeof bias},
    ONE("b1", INT32, bias[0]),
    {"bf", FLOAT, 1, {2}, real_bias, sizeof real_bias},
    {"far", INT64, 1, {1}, &far_away, sizeof far_away},
    {"one", INT64, 1, {1}, &one_axis, sizeof one_axis},
    {"b2", INT32, 1, {2}, wide_zeros, sizeof wide_zeros},
    {"half", INT64, 1, {2}, halves, sizeof halves},
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

static void onnx_real(qat_writer *w, int field, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    qat_write_u8(w, (uint8_t)(field << 3 | 5));
    qat_write_u32(w, bits);
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
    const char *colon = strchr(n->op, ':');
    onnx_text(&to, 4, colon ? colon + 1 : n->op);
    if (colon)
        onnx_bytes(&to, 7, n->op, (size_t)(colon - n->op));
    bool const is_real = n->attr && !strcmp(n->attr, "value");
    if (n->attr)
        onnx_text(&attr, 1, n->attr);
    if (is_real)
        onnx_real(&attr, 2, (float)n->value);
    else if (n->attr)
        onnx_number(&attr, 3, (uint64_t)n->value);
    if (n->attr) {
        onnx_number(&attr, 20, is_real ? 1 : 2);
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

/** Operators that are named by older or other rules: their ops, and where their numbers stand. */
START_TEST(test_named_otherwise)
{
    node const pads[] = {
        QUANTIZED_INPUT, {"Pad", "xr around", "p", "value", 2}, NODE("Relu", "p", "y"), END};
    node const mean[] = {NODE("com.microsoft:QLinearReduceMean", "x sx zx sy zy", "y"), END};
    qat_qgraph *g = NULL;
    qat_error err;
    ck_assert_msg(!import(pads, FLOAT, 4, picture, &g, &err), "%s", err.message);
    ck_assert_str_eq(g->ops[0].op, "pad");
    ck_assert_int_eq(g->ops[0].params[2 * QI_MAX_RANK], code(2, scales[0], zero_x));
    qat_qgraph_free(g);
    ck_assert_msg(!import(mean, UINT8, 4, picture, &g, &err), "%s", err.message);
    ck_assert_str_eq(g->ops[g->n_ops - 1].op, "mean");
    qat_qgraph_free(g);
}
END_TEST

/** exp(135) is more than float32 holds; the logarithm of 1 + exp(135) is not. */
START_TEST(test_softplus_is_finite)
{
    node const nodes[] = {NODE("DequantizeLinear", "x s1 zx", "xr"), NODE("Softplus", "xr", "r"),
                          NODE("QuantizeLinear", "r s1 zy", "y"), END};
    qat_qgraph *g = NULL;
    qat_error err;
    ck_assert_msg(!import(nodes, UINT8, 4, picture, &g, &err), "%s", err.message);
    ck_assert_str_eq(g->ops[0].op, "table");
    const uint8_t *table = g->tensors[g->ops[0].inputs[1]].data;
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(table[i], code((float)log1p(exp(i - zero_x)), whole, zero_y));
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

/** A part without values joins nothing. */
START_TEST(test_parts_without_values)
{
    node const parts[] = {NODE("Slice", "x far far one", "none"),
                          NODE("DequantizeLinear", "none sx zx", "nothing"),
                          NODE("DequantizeLinear", "x sx zx", "xr"),
                          {"Concat", "nothing xr", "both", "axis", 1},
                          NODE("QuantizeLinear", "both sx zx", "q"),
                          {"Concat", "none q none x", "y", "axis", 1},
                          END};
    qat_qgraph *g = NULL;
    qat_error err;
    ck_assert_msg(!import(parts, UINT8, 4, picture, &g, &err), "%s", err.message);
    ck_assert_int_eq(g->tensors[g->outputs[0]].dims[3], 2 * CHANNELS);
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ several scales, products */

/** Import, and run on these reals; answers: as many as the network has. */
static void run_reals(const node *nodes, int rank, const int64_t *dims, const float *x,
                      float *answers, int n)
{
    qat_writer m = model_of(nodes, FLOAT, rank, dims);
    uint8_t *qm = NULL;
    int16_t in[64], out[512];
    size_t count = 0;
    qi_host *host = NULL;
    qat_error err;
    qat_import_options const how = {.known_answers = true};
    qat_status const st = qat_onnx_to_qm(m.bytes, m.count, &how, &qm, &count, &err);
    ck_assert_msg(!st, "%s", st ? err.message : "");
    qat_writer_free(&m);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "model", NULL, &err), "%s", err.message);
    const qi_model *model = qi_host_model(host);
    ck_assert_int_eq(qat_tensor_values(qi_tensor_at(model, qi_output_at(model, 0))), n);
    qat_border_quantize_at(model, qi_input_at(model, 0), x, in);
    qi_host_run(host, (const void *[]){in}, (void *[]){out});
    qat_border_dequantize_at(model, qi_output_at(model, 0), out, answers);
    qi_host_close(host);
    free(qm);
}

/** Value i of a picture with channels last, on ties and beyond every code, too. */
static float value_at(int i)
{
    return w_scales[i % 2] * ((float)(i * 37 % 301 - 150) + (i % 3 ? 0 : 0.5f));
}

/** At the network's ends, and between them, where the zero points may be equal or not. */
START_TEST(test_scale_of_each_channel)
{
    static const char *const zero_points[] = {"z2", "zw", "z2"};
    char q[2][32];
    float x[VALUES], y[VALUES];
    snprintf(q[0], sizeof q[0], "x sw %s", zero_points[_i]);
    snprintf(q[1], sizeof q[1], "q sw %s", zero_points[_i]);
    node const ends[] = {NODE("QuantizeLinear", q[0], "q"), NODE("DequantizeLinear", q[1], "y"),
                         END};
    node const middle[] = {QUANTIZED_INPUT, NODE("QuantizeLinear", "xr sw z2", "q"),
                           NODE("DequantizeLinear", "q sw z2", "y"), END};
    for (int i = 0; i < VALUES; i++)
        x[i] = value_at(i);
    run_reals(_i < 2 ? ends : middle, 4, picture, x, y, VALUES);
    for (int i = 0; i < VALUES; i++) {
        bool const is_u8 = _i != 1;
        float const scale = w_scales[i % 2], zero = is_u8 ? (float)zeros[i % 2] : 0;
        float const real =
            _i < 2 ? x[i] : scales[0] * (float)(code(x[i], scales[0], zero_x) - zero_x);
        float const lo = is_u8 ? 0 : -128, q1 = rintf(real / scale) + zero;
        ck_assert_float_eq(y[i], scale * ((q1 < lo ? lo : q1 > lo + 255 ? lo + 255 : q1) - zero));
    }
}
END_TEST

/** A layer whose outputs have a scale each, with a Relu between. */
START_TEST(test_layer_with_several_scales)
{
    node const layer[] = {QUANTIZED_INPUT,
                          PER_CHANNEL,
                          NODE("Conv", "xr wr bf", "c"),
                          NODE("Relu", "c", "r"),
                          NODE("QuantizeLinear", "r sw z2", "yq"),
                          NODE("DequantizeLinear", "yq sw z2", "y"),
                          END};
    float x[VALUES], y[VALUES];
    for (int i = 0; i < VALUES; i++)
        x[i] = scales[0] * (float)(i * 13 % 251 - 120) / 20;
    run_reals(layer, 4, picture, x, y, VALUES);
    for (int p = 0; p < PIXELS; p++)
        for (int o = 0; o < 2; o++) {
            double sum = (double)real_bias[o];
            for (int c = 0; c < 2; c++)
                sum += (double)w_scales[o] * weights[2 * o + c] * (double)scales[0] *
                       (code(x[2 * p + c], scales[0], zero_x) - zero_x);
            double const scale = (double)w_scales[o], most = scale * (255 - zeros[o]);
            sum = sum < 0 ? 0 : sum > most ? most : sum;
            ck_assert_double_le(fabs((double)y[2 * p + o] - sum), 0.51 * scale);
        }
}
END_TEST

/** DequantizeLinear may give codes another scale than they were made with. */
START_TEST(test_codes_with_another_scale)
{
    node const other[] = {NODE("QuantizeLinear", "x sx zx", "q"),
                          NODE("DequantizeLinear", "q sy zy", "y"), END};
    float x[VALUES], y[VALUES];
    for (int i = 0; i < VALUES; i++)
        x[i] = value_at(i);
    run_reals(other, 4, picture, x, y, VALUES);
    for (int i = 0; i < VALUES; i++)
        ck_assert_float_eq(y[i], scales[2] * (float)(code(x[i], scales[0], zero_x) - zero_y));
}
END_TEST

/** x x', both computed: a matrix, and a list, whose product with itself is a number. */
START_TEST(test_product_of_inputs)
{
    enum { ROWS = 3, DEEP = 6 };
    static const int64_t matrix[] = {ROWS, DEEP}, list[] = {ROWS * DEEP};
    node const product[] = {QUANTIZED_INPUT,
                            NODE("Transpose", "xr", "xt"),
                            NODE("MatMul", "xr xt", "r"),
                            NODE("QuantizeLinear", "r sy zy", "yq"),
                            NODE("DequantizeLinear", "yq sy zy", "y"),
                            END};
    int const rows = _i ? 1 : ROWS, deep = _i ? ROWS * DEEP : DEEP;
    float x[ROWS * DEEP], y[ROWS * ROWS];
    int32_t q[ROWS * DEEP];
    for (int i = 0; i < ROWS * DEEP; i++) {
        x[i] = value_at(i);
        q[i] = code(x[i], scales[0], zero_x) - zero_x;
    }
    run_reals(product, _i ? 1 : 2, _i ? list : matrix, x, y, rows * rows);
    for (int i = 0; i < rows * rows; i++) {
        int32_t sum = 0;
        for (int k = 0; k < deep; k++)
            sum += q[i / rows * deep + k] * q[i % rows * deep + k];
        float const value = rintf((float)sum * (scales[0] * scales[0] / scales[2])) + (float)zero_y;
        float const limited = value < 0 ? 0 : value > 255 ? 255 : value;
        ck_assert_float_eq(y[i], scales[2] * (limited - (float)zero_y));
    }
}
END_TEST

/* ------------------------------------------------------------------ Gather */

/** Rows of a table of codes at positions that are an input; what is no position is the nearest. */
START_TEST(test_embedding)
{
    static const int64_t shape[] = {1, 4};
    static const int64_t at[] = {2, 0, -5, 9};
    static const int rows[] = {2, 0, 0, 2};
    node const codes[] = {NODE("Gather", "z3 x", "g"), NODE("DequantizeLinear", "g sx zx", "y"),
                          END};
    node const reals[] = {NODE("DequantizeLinear", "z3 sx zx", "t"), NODE("Gather", "t x", "g"),
                          NODE("QuantizeLinear", "g sy zy", "yq"),
                          NODE("DequantizeLinear", "yq sy zy", "y"), END};
    float const s = _i ? scales[2] : scales[0];
    qat_qgraph *g = NULL;
    qat_error err;
    uint8_t *qm = NULL, codes_out[4];
    size_t count = 0;
    qi_host *host = NULL;
    qat_qm_metadata const metadata = {0};
    ck_assert_msg(!import(_i ? reals : codes, INT64, 2, shape, &g, &err), "%s", err.message);
    ck_assert_int_eq(g->tensors[g->inputs[0]].type, QI_S64);
    ck_assert_msg(!qat_qm_write(g, &metadata, &qm, &count, &err), "%s", err.message);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "model", NULL, &err), "%s", err.message);
    qi_host_run(host, (const void *[]){at}, (void *[]){codes_out});
    float y[4];
    qat_border_dequantize_at(qi_host_model(host), qi_output_at(qi_host_model(host), 0), codes_out,
                             y);
    for (int i = 0; i < 4; i++) {
        float const real = scales[0] * (float)(three_zeros[rows[i]] - zero_x);
        ck_assert_float_eq(y[i], _i ? s * (float)(code(real, s, zero_y) - zero_y) : real);
    }
    qi_host_close(host);
    free(qm);
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
    {"this operator of the domain 'com.microsoft' is not supported",
     {QUANTIZED_INPUT, NODE("com.microsoft:Relu", "xr", "y"), END}},
    {"its parts have 1 of the 3 positions of dimension 2",
     {QUANTIZED_INPUT, {"Split", "xr one", "y", "axis", 2}, END}},
    {"its bias has a value for each row",
     {QUANTIZED_INPUT, NODE("Reshape", "xr half", "r"), NODE("DequantizeLinear", "w9 sx", "wr"),
      NODE("Gemm", "r wr column", "g"), NODE("QuantizeLinear", "g sy zy", "y"), END}},
    {"has no finite value for some", {QUANTIZED_INPUT, NODE("Log", "xr", "y"), END}},
    {"its input 'x' is never quantized", {NODE("QuantizeLinear", "bf sx zx", "y"), END}},
    {"input is not quantized", {NODE("Relu", "x", "y"), END}},
    {"its scale, input 1, is not a constant", {NODE("QuantizeLinear", "x x zx", "y"), END}},
    {"its scale is -", {NODE("QuantizeLinear", "x bf zx", "y"), END}},
    {"2 scales for dimension 2, of 3", {{"QuantizeLinear", "x sw z2", "y", "axis", 2}, END}},
    {"axis 4 of 4 dimensions", {{"QuantizeLinear", "x sw z2", "y", "axis", 4}, END}},
    {"2 scales, but 3 zero points", {NODE("QuantizeLinear", "x sw z3", "y"), END}},
    {"2 scales for an activation",
     {NODE("QuantizeLinear", "x sx zx", "q"), NODE("QLinearSigmoid", "q sw z2 sy zy", "y"), END}},
    {"is quantized in two ways",
     {NODE("QuantizeLinear", "x sw z2", "p"), NODE("QuantizeLinear", "x s2 z2", "q"), END}},
    {"rows of 3 times columns of 2",
     {QUANTIZED_INPUT, NODE("Transpose", "xr", "xt"), NODE("MatMul", "xr xt", "r"),
      NODE("QuantizeLinear", "r sy zy", "y"), END}},
    {"a product of a single number",
     {QUANTIZED_INPUT, NODE("DequantizeLinear", "zx sx zx", "k"), NODE("MatMul", "xr k", "r"),
      NODE("QuantizeLinear", "r sy zy", "y"), END}},
    {"codes of type int32", {NODE("QuantizeLinear", "x sx z32", "y"), END}},
    {"an index of 1000, outside the 3 positions",
     {QUANTIZED_INPUT, {"Gather", "xr far", "y", "axis", 2}, END}},
    {"axis 4 of 4 dimensions", {QUANTIZED_INPUT, {"Gather", "xr one", "y", "axis", 4}, END}},
    {"its indices are neither constants nor an input",
     {QUANTIZED_INPUT, NODE("Gather", "bf xq", "y"), END}},
    {"its indices are no list of integers", {QUANTIZED_INPUT, NODE("Gather", "xr bf", "y"), END}},
    {"its data have no values",
     {NODE("QuantizeLinear", "x sx zx", "q"), NODE("Slice", "q far far one", "n"),
      NODE("Gather", "n q", "y"), END}},
    {"its zero point is 700, of codes 0 to 255",
     {NODE("QuantizeLinear", "x sx zx", "q"), NODE("DequantizeLinear", "q sy b1", "y"), END}},
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
    {"2 scales do not fit dimension -996 of its constant",
     {QUANTIZED_INPUT,
      {"DequantizeLinear", "w sw zw", "wr", "axis", -1000},
      NODE("Gather", "wr one", "y"),
      END}},
    {"2 scales do not fit dimension 5",
     {QUANTIZED_INPUT,
      {"DequantizeLinear", "w sw zw", "wr", "axis", 5},
      NODE("Gather", "wr one", "y"),
      END}},
    {"for each index of dimension 0",
     {QUANTIZED_INPUT,
      NODE("Reshape", "xr half", "r"),
      {"QuantizeLinear", "r sw z2", "y", "axis", 0},
      END}},
    {"its zero point is 700, of codes 0 to 255",
     {NODE("QuantizeLinear", "x sx zx", "q"), NODE("DequantizeLinear", "q sw b2", "y"), END}},
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
    ck_assert_msg(strstr(err.message, "which only Gather takes as indices"), "%s", err.message);
    ck_assert_int_ne(import(none, BOOLEAN, 4, picture, &g, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, "not of uint8, int8, int32"), "%s", err.message);
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
    tcase_add_test(tcase, test_named_otherwise);
    tcase_add_test(tcase, test_softplus_is_finite);
    tcase_add_test(tcase, test_codes);
    tcase_add_test(tcase, test_parts_without_values);
    tcase_add_loop_test(tcase, test_scale_of_each_channel, 0, 3);
    tcase_add_test(tcase, test_layer_with_several_scales);
    tcase_add_test(tcase, test_codes_with_another_scale);
    tcase_add_loop_test(tcase, test_product_of_inputs, 0, 2);
    tcase_add_loop_test(tcase, test_embedding, 0, 2);
    tcase_add_loop_test(tcase, test_refused, 0, (int)(sizeof refusals / sizeof *refusals));
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
