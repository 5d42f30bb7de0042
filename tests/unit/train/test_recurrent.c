/**
 * Networks with a state: gradients through all steps, training, export, and a model that takes one
 * frame a run against the whole sequence.
 */
#include "base/arena.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/restore.h"
#include "common/suite.h"
#include "convert/convert.h"
#include "deploy/deploy.h"
#include "unit/networks/network_build.h"
#include "unit/train/train_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 24, BANDS = 12, UNITS = 10, TESTED = 60, SAMPLES = 20 };

static const char *const cells[] = {"gru", "lstm"};

/** Two epochs of eight steps on drawn words. Loop: cell, layout, profile. */
static void train_cell(const char *name, int cell, int layout, int profile, int stop, bool resume)
{
    char text[800], dir[TEST_PATH_MAX];
    qat_recipe *r;
    qat_error err;
    qat_train_result result;
    snprintf(text, sizeof text,
             "[data]\nkind = words\ntrain_count = 128\ntest_count = %d\n"
             "[model]\narch = layers\nsteps = %d\n"
             "[layer.frame]\nop = fully_connected\nunits = 8\nbias = yes\nactivation = relu\n"
             "[layer.cell]\nop = %s\nunits = %d\n"
             "[layer.logits]\nop = fully_connected\nunits = 10\nbias = yes\n"
             "[train]\nepochs = 2\nbatch = 16\nlog_every = 1\n"
             "[quant]\nenabled = yes\nlayout = %s\nprofile = %s\nema_decay = 0.9\n",
             TESTED, STEPS, cells[cell], UNITS, layout ? "int8" : "uint8",
             profile ? "tflite" : "paper");
    ck_assert_msg(qat_recipe_parse(&r, text, "cell.ini", NULL, 0, &err) == QAT_OK, "%s",
                  err.message);
    stop = stop ? stop : -1;
    qat_train_options const o = {.dir = dir_of(dir, name),
                                 .resume = resume,
                                 .progress = count_steps,
                                 .stop = at_step,
                                 .context = &stop};
    ck_assert_msg(qat_train(r, &o, &result, &err) == QAT_OK, "%s", err.message);
    qat_recipe_free(r);
}

/* ------------------------------------------------------------------ gradients */

static qat_input_info words_of(int steps)
{
    qat_input_info in = input_of(1, steps, 3, 2);
    in.type = QAT_SAMPLE_F32;
    return in;
}

START_TEST(gradients_reach_every_step)
{
    char text[200];
    qat_gradcheck_result result;
    qat_error err;
    snprintf(text, sizeof text,
             "[model]\narch = layers\nsteps = 4\n[layer.in]\nop = fully_connected\nunits = 4\n"
             "bias = yes\n[layer.c]\nop = %s\nunits = 3\n[layer.out]\nop = fully_connected\n"
             "units = 2\n",
             cells[_i]);
    qat_graph *g = build(text, words_of(4));
    qat_node *input = qat_graph_find(g, "input"), *label = qat_graph_find(g, "label");
    qat_graph_want_gradient(g, input);
    ck_assert_int_eq(qat_graph_plan(g, 2, QAT_PLAN_TRAIN, NULL), QAT_OK);
    qat_graph_init_params(g, 3);
    for (int i = 0; i < 2 * 4 * 3; i++)
        input->value[i] = sinf((float)i * 1.7F);
    label->value[0] = 0;
    label->value[1] = 1;
    qat_run const run = {.mode = QAT_MODE_TRAIN};
    ck_assert_msg(qat_gradcheck(g, qat_graph_find(g, "loss"), &run, 1e-2, 40, &result, &err) ==
                      QAT_OK,
                  "%s", err.message);
    ck_assert_msg(result.max_error < 2e-2, "%g at %s", result.max_error, result.worst);
    ck_assert_double_gt(result.max_gradient, 0.01);
    for (int i = 0; i < 2 * 4 * 3; i++) /* the first frame has a share in the answer too */
        ck_assert(input->grad[i] != 0);
    qat_graph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ states that become states */

#define STATE(name) "[layer." name "]\nop = state\nunits = 3\n"
#define LINE                                                                                       \
    "[layer.cb]\nop = carry\ninput = frame, b\n[layer.ca]\nop = carry\ninput = b, a\n"             \
    "[layer.newer]\nop = add\ninput = ca, cb\n[layer.sum]\nop = add\ninput = newer, a\n"           \
    "[layer.out]\nop = fully_connected\nunits = 2\n"

/** The sum of three frames is right, whichever state the recipe names first. */
START_TEST(a_delay_line_holds_the_frames_before)
{
    static const char *const states[] = {STATE("a") STATE("b"), STATE("b") STATE("a")};
    char text[700];
    snprintf(text, sizeof text,
             "[model]\narch = layers\nsteps = 4\n[layer.frame]\nop = flatten\n%s" LINE
             "[quant]\nenabled = no\n",
             states[_i]);
    qat_graph *g = build(text, words_of(4));
    qat_node *input = qat_graph_find(g, "input"), *sum = qat_graph_find(g, "sum");
    qat_graph_output(g, sum);
    ck_assert_int_eq(qat_graph_plan(g, 1, QAT_PLAN_EVAL, NULL), QAT_OK);
    qat_graph_init_params(g, 1);
    for (int i = 0; i < 4 * 3; i++)
        input->value[i] = (float)(1 << i);
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_graph_forward(g, &run);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(sum->value[i],
                           (float)((1 << (3 + i)) + (1 << (6 + i)) + (1 << (9 + i))));
    qat_graph_free(g);
}
END_TEST

START_TEST(a_quantized_delay_line_is_refused)
{
    refuse("[model]\narch = layers\nsteps = 4\n[layer.frame]\nop = flatten\n" STATE("a") STATE("b")
               LINE "[quant]\nenabled = yes\n",
           words_of(4), "layer 'ca' (carry): its value is the state 'b' as it is");
}
END_TEST

/* ------------------------------------------------------------------ what is refused */

#define HEAD "[model]\narch = layers\nsteps = 4\n"
#define GRU  "[layer.c]\nop = gru\nunits = 3\n"

START_TEST(what_cannot_be_unrolled_is_refused)
{
    qat_input_info in = words_of(4);
    refuse("[model]\narch = layers\n" GRU, in, "model.steps must say how many");
    refuse(HEAD "[layer.c]\nop = relu\n", in, "no layer of the network has a state");
    refuse("[model]\narch = layers\nsteps = 3\n" GRU, in, "steps = 3 does not divide the 4");
    refuse(HEAD "[layer.c]\nop = gru\n", in, "units");
    refuse(HEAD "[layer.c]\nop = gru\nunits = 0\n", in, "units");
    refuse(HEAD "[layer.c]\nop = gru\nunit = 3\n", in, "the nearest key is units");
    refuse(HEAD "[layer.c]\nop = lstm\nunits = 3\ninput = input, input\n", in, "2 inputs for one");
    refuse(HEAD "[layer.f]\nop = flatten\nbatch_norm = yes\n" GRU, in, "batch norm cannot come");
    refuse(HEAD "[layer.h]\nop = state\nunits = 3\n", in, "no carry says");
    refuse(HEAD "[layer.f]\nop = flatten\n[layer.h]\nop = state\nunits = 3\n"
                "[layer.n]\nop = carry\ninput = f, f\n",
           in, "must be a state");
    refuse(HEAD "[layer.f]\nop = flatten\n[layer.h]\nop = state\nunits = 3\n"
                "[layer.n]\nop = carry\ninput = f, h\n[layer.o]\nop = relu\ninput = f\n",
           in, "does not depend on it");
    refuse(HEAD "[layer.h]\nop = state\nunits = 2\n[layer.n]\nop = carry\ninput = input, h\n", in,
           "for a state");
    in.type = QAT_SAMPLE_U8;
    refuse(HEAD GRU, in, "only real numbers and sounds have steps");
}
END_TEST

/* ------------------------------------------------------------------ export */

static void path_of(char path[TEST_PATH_MAX], const char *name)
{
    test_temp_path(path, folder, name);
}

/** The words' codes, and the codes that the exact evaluation of whole sequences answers. */
static int whole_answers(const qat_restored *r, uint8_t *codes, uint8_t *answers)
{
    qat_deploy_options const o = {0};
    qat_graph *eval;
    qat_qgraph *graph;
    qat_exact *exact;
    qat_dataset *data;
    float values[STEPS * BANDS];
    int label;
    ck_assert_int_eq(qat_restored_eval_graph(r, &o, 1, &eval, NULL), QAT_OK);
    ck_assert_int_eq(qat_restored_freeze(r, &o, eval, &graph, NULL), QAT_OK);
    ck_assert_int_eq(qat_exact_create(&exact, graph, r->registry, SAMPLES, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_open_data(&data, r->recipe, NULL, QAT_SPLIT_TEST, NULL), QAT_OK);
    const qat_qtensor *in = &graph->tensors[graph->inputs[0]];
    int32_t lo, hi;
    qat_code_range(in->type == QI_S8 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8, 8, false, &lo, &hi);
    qat_qparams const p = qat_given_qparams(in->scale, in->zero_point, lo, hi);
    for (int s = 0; s < SAMPLES; s++) {
        ck_assert_int_eq(qat_dataset_get(data, s, values, &label, NULL), QAT_OK);
        for (int i = 0; i < STEPS * BANDS; i++)
            codes[s * STEPS * BANDS + i] = (uint8_t)qat_code(&p, values[i]);
    }
    ck_assert_int_eq(qat_exact_run(exact, (const void *[]){codes}, SAMPLES, NULL), QAT_OK);
    int const n = (int)qat_qtensor_count(&graph->tensors[graph->outputs[0]]);
    memcpy(answers, qat_exact_tensor(exact, graph->outputs[0]), (size_t)(n * SAMPLES));
    qat_dataset_close(data);
    qat_exact_free(exact);
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    return n;
}

static const qi_tensor *state_of(const qi_model *model)
{
    int i = 0;
    while (qi_tensor_at(model, i)->kind != QI_STATE)
        i++;
    return qi_tensor_at(model, i);
}

/** How many answers differ, frame by frame; one bit of the state changes after a step (-1: none).
 */
static int streamed_differing(const qi_host *host, const uint8_t *codes, const uint8_t *answers,
                              int n, int spoilt)
{
    uint8_t out[64];
    int differing = 0;
    const qi_tensor *state = state_of(qi_host_model(host));
    uint8_t *arena = qat_aligned_alloc(qi_host_sizes(host).host_arena);
    for (int s = 0; s < SAMPLES; s++) {
        qi_host_reset(host, arena);
        for (int t = 0; t < STEPS; t++) {
            const void *in[] = {codes + (s * STEPS + t) * BANDS};
            qi_host_run_visit(host, arena, in, (void *[]){out}, NULL, NULL);
            arena[state->offset] ^= t == spoilt ? 0x40 : 0;
        }
        differing += memcmp(out, answers + s * n, (size_t)n) != 0;
    }
    qat_aligned_free(arena);
    return differing;
}

/** Loop: cell, layout, profile. */
START_TEST(a_stream_is_the_whole_sequence)
{
    static uint8_t codes[SAMPLES * STEPS * BANDS], answers[SAMPLES * 64];
    char path[TEST_PATH_MAX];
    qat_deploy_options const o = {0};
    qat_deploy_result result;
    qat_error err;
    qi_host *host;
    train_cell("run", _i & 1, _i >> 1 & 1, _i >> 2 & 1, 0, false);
    qat_restored *r = restored("run");
    path_of(path, "step.qm");
    ck_assert_msg(qat_deploy(r, path, &o, &result, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(result.compare.differing, 0);
    ck_assert_int_eq(result.streamed.steps, STEPS);
    ck_assert_int_eq(result.streamed.samples, TESTED);
    ck_assert_int_eq(result.streamed.differing, 0);
    ck_assert_int_gt(result.streamed.bytes, result.streamed.samples * STEPS * UNITS * 10);
    ck_assert_str_eq(result.certificate.uncertified, "");
    int const n = whole_answers(r, codes, answers);
    ck_assert_int_eq(qi_host_open(&host, path, NULL, NULL), QAT_OK);
    ck_assert_int_eq(qi_state_count(qi_host_model(host)), 1 + (_i & 1));
    ck_assert_int_eq(streamed_differing(host, codes, answers, n, -1), 0);
    ck_assert_int_gt(streamed_differing(host, codes, answers, n, STEPS - 2), 0);
    qi_host_close(host);
    qat_restored_free(r);
}
END_TEST

START_TEST(another_model_is_no_stream_of_it)
{
    qat_deploy_options const o = {0};
    qat_deploy_result result;
    qat_streamed streamed;
    qat_error err;
    char a[TEST_PATH_MAX], b[TEST_PATH_MAX];
    qi_host *hosts[2];
    path_of(a, "a.qm");
    path_of(b, "b.qm");
    train_cell("one", 0, 1, 0, 2, false);
    qat_restored *r = restored("one");
    ck_assert_int_eq(qat_deploy(r, a, &o, &result, NULL), QAT_OK);
    qat_restored_free(r);
    train_cell("two", 0, 1, 0, 0, false);
    r = restored("two");
    ck_assert_int_eq(qat_deploy(r, b, &o, &result, NULL), QAT_OK);
    qat_restored_free(r);
    ck_assert_int_eq(qi_host_open(&hosts[0], a, NULL, NULL), QAT_OK);
    ck_assert_int_eq(qi_host_open(&hosts[1], b, NULL, NULL), QAT_OK);
    qat_deploy_feed feed = {0};
    ck_assert_int_eq(qat_deploy_compare_stream(hosts[0], hosts[0], 1, &feed, &streamed, &err),
                     QAT_OK);
    ck_assert_int_eq(qat_deploy_compare_stream(hosts[0], hosts[1], 1, &feed, &streamed, &err),
                     QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "differ from the run of the whole sequence"));
    ck_assert_int_eq(qat_deploy_compare_stream(hosts[0], hosts[1], 2, &feed, &streamed, &err),
                     QAT_ERR_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.message, "are not one sequence"));
    qi_host_close(hosts[0]);
    qi_host_close(hosts[1]);
}
END_TEST

START_TEST(calibration_is_refused)
{
    qat_deploy_options const ptq = {.calibrate = "recipe"}, again = {.bn_reestimate = 2};
    qat_deploy_result result;
    qat_error err;
    char path[TEST_PATH_MAX];
    path_of(path, "step.qm");
    train_cell("run", 0, 0, 0, 2, false);
    qat_restored *r = restored("run");
    ck_assert_int_eq(qat_deploy(r, path, &ptq, &result, &err), QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "cannot be calibrated"));
    ck_assert_int_eq(qat_deploy(r, path, &again, &result, &err), QAT_ERR_UNSUPPORTED);
    qat_restored_free(r);
}
END_TEST

/* ------------------------------------------------------------------ the certificate */

static qat_status certify(const qat_qgraph *graph, const qat_certify_source *source, qat_error *err)
{
    qat_certificate c;
    uint8_t *qm = NULL;
    size_t count = 0;
    qat_qm_metadata const metadata = {.description = "test"};
    ck_assert_int_eq(qat_qm_write(graph, &metadata, &qm, &count, NULL), QAT_OK);
    qat_status const st = qat_certify(&c, qm, count, NULL, source, err);
    free(qm);
    return st;
}

/** A state that becomes another tensor, the logits, or has another scale. */
START_TEST(the_certificate_knows_states)
{
    qat_error err;
    qat_graph *float_graph, *eval;
    qat_qgraph *graph;
    train_cell("run", 1, 1, 0, 0, false);
    qat_restored *r = restored("run");
    qat_input_info in = r->checkpoint->input;
    ck_assert_int_eq(qat_network_build_step(&float_graph, r->registry, r->recipe, &in, NULL),
                     QAT_OK);
    ck_assert_int_eq(in.width, 1);
    ck_assert_int_eq(qat_create_eval_graph(&eval, float_graph, &r->checkpoint->quant, NULL),
                     QAT_OK);
    ck_assert_int_eq(qat_graph_plan(eval, 1, QAT_PLAN_KEEP, NULL), QAT_OK);
    ck_assert_int_eq(qat_checkpoint_params(r->checkpoint, eval, NULL), QAT_OK);
    ck_assert_int_eq(qat_freeze(&graph, eval, QAT_PROFILE_PAPER, NULL, NULL), QAT_OK);
    qat_certify_source const source = {.graph = float_graph,
                                       .quant = r->checkpoint->quant,
                                       .profile = QAT_PROFILE_PAPER,
                                       .values = qat_certify_graph_values,
                                       .context = eval};
    ck_assert_msg(certify(graph, &source, &err) == QAT_OK, "%s", err.message);
    qat_qtensor *h = NULL, *m = NULL;
    for (int i = 0; i < graph->n_tensors; i++) {
        h = strcmp(graph->tensors[i].name, "cell/h/q") ? h : &graph->tensors[i];
        m = strcmp(graph->tensors[i].name, "cell/m/q") ? m : &graph->tensors[i];
    }
    ck_assert(h && m && h->is_state && m->is_state);
    int const next = h->next, other = graph->outputs[0];
    graph->tensors[other].zero_point = h->zero_point; /* so that the writer takes it */
    h->next = other;
    ck_assert_int_eq(certify(graph, &source, &err), QAT_ERR_MISMATCH);
    ck_assert_msg(strstr(err.message, "the tensor that it becomes") != NULL, "%s", err.message);
    h->next = next;
    h->scale *= 1.01F;
    ck_assert_int_eq(certify(graph, &source, &err), QAT_ERR_MISMATCH);
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    qat_graph_free(float_graph);
    qat_restored_free(r);
}
END_TEST

/* ------------------------------------------------------------------ runs */

START_TEST(a_run_goes_on_where_it_stopped)
{
    train_cell("all", _i, 1, 0, 0, false);
    train_cell("parts", _i, 1, 0, 7, false);
    train_cell("parts", _i, 1, 0, 0, true);
    same_checkpoints("all", "parts");
    same_logs("all", "parts");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recurrent");
    TCase *tc = tcase_create("networks");
    tcase_add_checked_fixture(tc, network_setup, network_teardown);
    tcase_add_loop_test(tc, gradients_reach_every_step, 0, 2);
    tcase_add_loop_test(tc, a_delay_line_holds_the_frames_before, 0, 2);
    tcase_add_test(tc, a_quantized_delay_line_is_refused);
    tcase_add_test(tc, what_cannot_be_unrolled_is_refused);
    suite_add_tcase(suite, tc);
    tc = tcase_create("runs");
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_loop_test(tc, a_stream_is_the_whole_sequence, 0, 8);
    tcase_add_test(tc, another_model_is_no_stream_of_it);
    tcase_add_test(tc, calibration_is_refused);
    tcase_add_test(tc, the_certificate_knows_states);
    tcase_add_loop_test(tc, a_run_goes_on_where_it_stopped, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
