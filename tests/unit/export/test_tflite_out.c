/**
 * A model as .tflite: what its metadata say, what is refused and with which words. That the
 * integers are the model's is for golden/test_tflite_again.c and random/test_property.c.
 */
#include "base/shown.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "convert/tflite/model.h"
#include "export/tflite/file.h"
#include "foreign/foreign.h"
#include "integer/quant_ops.h"
#include "qat/export.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_error err;
static float input_scale = 0.7f, answer_scale = 0.3f; /* of x; of c and y */
static int fraction;
static bool reals_outside; /* at both ends, as an imported .onnx file has them */

static int tensor(qat_qgraph *g, const char *name, int rank, const int32_t *dims, float scale,
                  const void *data)
{
    qat_qtensor t = {.type = QI_U8,
                     .bits = 8,
                     .rank = rank,
                     .dims = {1, 1, 1, 1},
                     .scale = scale,
                     .zero_point = 3,
                     .data = (void *)data,
                     .source_index = -1};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    snprintf(t.name, sizeof t.name, "%s", name);
    return qat_qgraph_tensor(g, &t, NULL);
}

/** x [1,3,4,2] --conv2d--> c [1,3,4,2] --average_pool2d--> y; pad: the pool's, at the top. */
static qi_host *make(const char *name, qat_profile profile, double change, int pad)
{
    static const int32_t picture[] = {1, 3, 4, 2}, pooled[] = {1, 2, 4, 2}, kernel[] = {2, 1, 1, 2};
    static const char *const labels[] = {"cat", "a\ndog"};
    static const uint8_t codes[4] = {1, 9, 200, 4}, in[24] = {1, 2, 3}, out[16] = {0};
    const void *ins[] = {in}, *outs[] = {out};
    qat_window const window = {.stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1};
    qat_qgraph *g = qat_qgraph_new();
    int const x = tensor(g, name, 4, picture, input_scale, NULL);
    int const c = tensor(g, "c", 4, picture, answer_scale, NULL);
    int const w = tensor(g, "w", 4, kernel, 0.1f, codes),
              y = tensor(g, "y", 4, pooled, answer_scale, NULL);
    qat_emit e = {.graph = g,
                  .profile = profile,
                  .name = "conv",
                  .n_inputs = 3,
                  .inputs = (const int[]){x, w, -1},
                  .output = c,
                  .act_min = -INFINITY,
                  .act_max = INFINITY,
                  .fraction = fraction};
    ck_assert_int_eq(qat_emit_conv2d(&e, &window, &err), QAT_OK);
    int32_t *mult = g->tensors[g->ops[0].inputs[QAT_IN_MULT]].data;
    *mult = (int32_t)(*mult * change);
    int32_t const pool[] = {2, 1, 1, 1, pad, 0, 0, 255};
    e.name = "pool";
    e.inputs = &c;
    e.n_inputs = 1;
    e.output = y;
    ck_assert_int_eq(qat_emit_op(&e, "average_pool2d", QI_ROUND_NONE, 8, pool, 0, &err), QAT_OK);
    g->tensors[x].border = reals_outside ? QI_BORDER_EVEN : QI_BORDER_NONE;
    g->tensors[y].border = reals_outside ? QI_BORDER_FLOAT32 : QI_BORDER_NONE;
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 1, &y, &err), QAT_OK);
    qi_preprocessing const numbers = {
        .kind = 2, .channels = 2, .std_bits = {0x3f800000, 0x3f800000}};
    qat_qm_metadata const meta = {.description = "small \033[31m",
                                  .labels = labels,
                                  .n_labels = 2,
                                  .preprocessing = reals_outside ? (qi_preprocessing){0} : numbers,
                                  .kat_inputs = ins,
                                  .kat_outputs = outs};
    uint8_t *qm = NULL;
    size_t count;
    qi_host *host = NULL;
    ck_assert_msg(!qat_qm_write(g, &meta, &qm, &count, &err), "%s", err.message);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "m", NULL, &err), "%s", err.message);
    free(qm);
    qat_qgraph_free(g);
    return host;
}

static void refuses(qi_host *host, const char *says)
{
    uint8_t *bytes;
    size_t count;
    ck_assert_int_ne(qat_tflite_write(host, NULL, &bytes, &count, &err), QAT_OK);
    ck_assert_ptr_null(bytes);
    ck_assert_msg(strstr(err.message, says) != NULL, "%s", err.message);
    qi_host_close(host);
}

static bool holds(const uint8_t *bytes, size_t count, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= count; i++)
        if (memcmp(bytes + i, text, strlen(text)) == 0)
            return true;
    return false;
}

START_TEST(what_the_file_says)
{
    uint8_t *bytes;
    size_t count;
    tfl_model m;
    qi_host *host = make("\xff\033[31m\xc3\xa9", QAT_PROFILE_TFLITE, 1, 0);
    ck_assert_msg(!qat_tflite_write(host, NULL, &bytes, &count, &err), "%s", err.message);
    ck_assert_int_eq(tfl_model_parse(&m, bytes, count, &err), QAT_OK);
    for (int i = 0; i < m.n_tensors; i++)
        ck_assert_msg(qat_is_plain(m.tensors[i].name), "%s", m.tensors[i].name);
    ck_assert_str_eq(m.tensors[m.inputs[0]].name, "\\xff\\x1b[31m\xc3\xa9");
    ck_assert_ptr_nonnull(strstr(m.description, "made by qat "));
    ck_assert(holds(bytes, count, "M001"));
    ck_assert(holds(bytes, count, "qat_known_answer"));
    ck_assert(holds(bytes, count, "serving_default"));
    ck_assert(holds(bytes, count, "labels.txtcat\na\\x0adog\nPK"));
    tfl_model_free(&m);
    free(bytes);
    qi_host_close(host);
}
END_TEST

/** Codes behind a QUANTIZE, before a DEQUANTIZE. The writer checks that they are the model's. */
START_TEST(real_numbers_in_and_out)
{
    uint8_t *bytes = NULL;
    size_t count;
    qat_qgraph *read = NULL;
    qi_host *host = make("x", QAT_PROFILE_TFLITE, 1, 0);
    qat_write_options const options = {.struct_size = sizeof options, .float_io = true};
    ck_assert_msg(!qat_tflite_write(host, &options, &bytes, &count, &err), "%s", err.message);
    ck_assert_msg(!qat_tflite_import(&read, bytes, count, &err), "%s", err.message);
    ck_assert_int_eq(read->tensors[read->inputs[0]].border, QI_BORDER_FLOAT32);
    ck_assert_int_eq(read->tensors[read->outputs[0]].border, QI_BORDER_FLOAT32);
    ck_assert_int_eq(read->n_ops, 2);
    ck_assert(!holds(bytes, count, "qat_known_answer"));
    qat_qgraph_free(read);
    free(bytes);
    qi_host_close(host);
}
END_TEST

static void count_even(void *context, const char *line)
{
    *(int *)context += strstr(line, "input x") && strstr(line, "half to even");
}

/** Of a .qm that takes and gives real numbers: an output is real, an input that rounds to even is
 *  not, and the log says so. */
START_TEST(real_numbers_of_the_model)
{
    int told = 0;
    uint8_t *bytes = NULL;
    size_t count;
    tfl_model m;
    qat_log const log = {.line = count_even, .context = &told};
    qat_write_options const options = {.struct_size = sizeof options, .log = &log};
    reals_outside = true;
    qi_host *host = make("x", QAT_PROFILE_TFLITE, 1, 0);
    reals_outside = false;
    ck_assert_msg(!qat_tflite_write(host, &options, &bytes, &count, &err), "%s", err.message);
    ck_assert_int_eq(tfl_model_parse(&m, bytes, count, &err), QAT_OK);
    ck_assert_int_ne(m.tensors[m.inputs[0]].type, TFL_FLOAT32);
    ck_assert_int_eq(m.tensors[m.outputs[0]].type, TFL_FLOAT32);
    ck_assert_int_eq(told, 1);
    ck_assert(!holds(bytes, count, "qat_known_answer"));
    tfl_model_free(&m);
    free(bytes);
    qi_host_close(host);
}
END_TEST

START_TEST(what_is_refused)
{
    qat_write_options const later = {.struct_size = sizeof later + 8};
    uint8_t *bytes;
    size_t count;
    qi_host *host = make("x", QAT_PROFILE_TFLITE, 1, 0);
    ck_assert_int_eq(qat_tflite_write(host, &later, &bytes, &count, &err), QAT_ERR_UNSUPPORTED);
    qi_host_close(host);
    refuses(make("x", QAT_PROFILE_TFLITE, 0.99, 0), "conv: its multiplier is 0.23");
    refuses(make("x", QAT_PROFILE_TFLITE, 1, 1),
            "layer pool (average_pool2d): its padding is neither SAME nor VALID");
    input_scale = 0.5f;
    answer_scale = 1e-11f; /* the accumulator has fractional bits, so M 2^-f can be stored */
    fraction = 11;
    refuses(make("x", QAT_PROFILE_TFLITE, 1, 0),
            "conv: a unit of its sum is 5.0000001e+09 codes of its output, but TensorFlow Lite's "
            "multipliers end at 1.07374182e+09");
    input_scale = 0.7f;
    answer_scale = 0.3f;
    fraction = 0;
}
END_TEST

/** s [1,4] is kept: y = x + s, and then s = y. The file has s as an input and y twice. */
START_TEST(states_are_fed)
{
    static const int32_t row[] = {1, 4};
    static const uint8_t codes[4] = {3, 3, 3, 3};
    const void *known[] = {codes};
    uint8_t *qm = NULL, *bytes = NULL;
    size_t count;
    tfl_model m;
    qi_host *host = NULL;
    qat_qgraph *g = qat_qgraph_new();
    int const x = tensor(g, "x", 2, row, 0.5f, NULL), s = tensor(g, "s", 2, row, 0.5f, NULL);
    int const y = tensor(g, "y", 2, row, 0.5f, NULL);
    g->tensors[s].is_state = true;
    g->tensors[s].next = y;
    qat_emit const e = {.graph = g,
                        .profile = QAT_PROFILE_TFLITE,
                        .name = "sum",
                        .n_inputs = 2,
                        .inputs = (const int[]){x, s},
                        .output = y,
                        .act_min = -INFINITY,
                        .act_max = INFINITY};
    ck_assert_int_eq(qat_emit_add(&e, "add", &err), QAT_OK);
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 1, &y, &err), QAT_OK);
    qat_qm_metadata const meta = {.kat_inputs = known, .kat_outputs = known};
    ck_assert_msg(!qat_qm_write(g, &meta, &qm, &count, &err), "%s", err.message);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "m", NULL, &err), "%s", err.message);
    ck_assert_msg(!qat_tflite_write(host, NULL, &bytes, &count, &err), "%s", err.message);
    ck_assert_int_eq(tfl_model_parse(&m, bytes, count, &err), QAT_OK);
    ck_assert_int_eq(m.n_inputs, 2);
    ck_assert_int_eq(m.n_outputs, 2);
    ck_assert_str_eq(m.tensors[m.inputs[1]].name, "s");
    ck_assert_int_eq(m.outputs[0], m.outputs[1]);
    tfl_model_free(&m);
    free(bytes);
    free(qm);
    qi_host_close(host);
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ float networks */

enum { HEIGHT = 9, WIDTH = 7, CHANNELS = 3, VALUES = HEIGHT * WIDTH * CHANNELS };

static qat_graph *float_network(const qat_registry *registry)
{
    qat_graph *g;
    qat_graph_create(&g, registry, &err);
    qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, HEIGHT, WIDTH, CHANNELS));
    x = qat_apply1(g, "conv2d", "c1", "filters=4 kernel=3 stride=2", x);
    x = qat_apply1(g, "bias", "c1/bias", "", x);
    x = qat_apply1(g, "batch_norm", "c1/norm", "", x);
    x = qat_apply1(g, "relu6", "c1/relu", "", x);
    qat_node *y = qat_apply1(g, "depthwise_conv2d", "dw", "kernel=3 multiplier=1", x);
    y = qat_apply1(g, "batch_norm", "dw/norm", "", y);
    y = qat_apply1(g, "logistic", "dw/logistic", "", y);
    x = qat_apply2(g, "add", "sum", "", x, y);
    x = qat_apply1(g, "batch_norm", "norm", "", x);
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

/** Written, read and built again, a network gives the same answers. Memory may run out. */
START_TEST(a_float_network_comes_back)
{
    qat_registry *registry;
    uint8_t *bytes = NULL;
    size_t count;
    long n = 0;
    qat_foreign_graph *read = NULL;
    qat_foreign_params params = {0};
    qat_node *last;
    qat_foreign_options const options = {HEIGHT, WIDTH, CHANNELS, 0, 0.9};
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    qat_graph *g = float_network(registry), *again;
    for (bool failed = true; failed;) {
        test_fail_alloc_after(n++);
        qat_status const st = qat_tflite_write_float(g, NULL, &bytes, &count, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
    }
    ck_assert_msg(!qat_float_tflite_parse(&read, bytes, count, "m.tflite", 0, &err), "%s",
                  err.message);
    qat_graph_create(&again, registry, &err);
    qat_node *x = qat_graph_input(again, "input", QAT_SHAPE(1, HEIGHT, WIDTH, CHANNELS));
    ck_assert_msg(!qat_foreign_build(read, again, x, &options, &last, &params, &err), "%s",
                  err.message);
    qat_graph_output(again, last);
    ck_assert_int_eq(qat_graph_plan(again, 1, QAT_PLAN_EVAL, &err), QAT_OK);
    qat_graph_init_params(again, 1);
    ck_assert_int_eq(qat_foreign_fill(&params, again), params.count);
    const float *want = answer(g, "image"), *is = answer(again, "input");
    for (int i = 0; i < 5; i++)
        ck_assert_float_eq_tol(is[i], want[i], 1e-5f * (1 + fabsf(want[i])));
    qat_foreign_params_free(&params);
    qat_foreign_free(read);
    qat_graph_free(again);
    free(bytes);
    qat_graph_free(g);
    qat_registry_free(registry);
}
END_TEST

static void count_line(void *context, const char *text)
{
    ck_assert_ptr_nonnull(strstr(text, "1 of 2 layers round otherwise"));
    ++*(int *)context;
}

/** One unit of the last place of a multiplier is a rounding; 2^-10 is not. */
START_TEST(other_roundings_are_told)
{
    int lines = 0;
    qat_log const log = {count_line, &lines};
    uint8_t *bytes;
    size_t count;
    qi_host *host = make("x", QAT_PROFILE_TFLITE, 1 - 0x1p-28, 0);
    qat_write_options const options = {.log = &log};
    ck_assert_msg(!qat_tflite_write(host, &options, &bytes, &count, &err), "%s", err.message);
    ck_assert_int_eq(lines, 1);
    free(bytes);
    qi_host_close(host);
}
END_TEST

START_TEST(too_large_a_file)
{
    static const uint8_t constant[1000];
    qat_writer w = {0};
    tfo_file f;
    ck_assert_int_eq(tfo_file_init(&f, 1, 1, 1, 1, &err), QAT_OK);
    (void)tfo_add_buffer(&f, constant, sizeof constant);
    ck_assert_int_eq(tfo_file_write(&f, &w, 999, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.message,
                     "its constants take 1000 bytes; a .tflite file holds at most 999");
    ck_assert_uint_eq(w.count, 0);
    ck_assert_int_eq(tfo_file_write(&f, &w, 1001, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "the file would take "));
    qat_writer_free(&w);
    tfo_file_free(&f);
}
END_TEST

START_TEST(memory_runs_out)
{
    qi_host *host = make("x", QAT_PROFILE_TFLITE, 1, 0);
    bool failed;
    long n = 0;
    do {
        uint8_t *bytes = NULL;
        size_t count;
        test_fail_alloc_after(n++);
        qat_status const st = qat_tflite_write(host, NULL, &bytes, &count, &err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        free(bytes);
    } while (failed);
    ck_assert_int_gt(n, 20);
    qi_host_close(host);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tflite_out");
    TCase *tcase = tcase_create("tflite_out");
    tcase_add_test(tcase, what_the_file_says);
    tcase_add_test(tcase, real_numbers_in_and_out);
    tcase_add_test(tcase, real_numbers_of_the_model);
    tcase_add_test(tcase, what_is_refused);
    tcase_add_test(tcase, states_are_fed);
    tcase_add_test(tcase, a_float_network_comes_back);
    tcase_add_test(tcase, other_roundings_are_told);
    tcase_add_test(tcase, too_large_a_file);
    tcase_add_test(tcase, memory_runs_out);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
