/*
 * Networks that are broken on purpose in one layer that is chosen at random: the range of its
 * output cut to a tenth, one channel of its weights times 1000, one bias wrong by 30 quanta. The
 * layer must be named first, with its fault: of a checkpoint, of the .qm that is made of it, and of
 * the tensors of another runtime. A network that was trained with 2 bits is not broken.
 */
#include "base/files/npy.h"
#include "base/rng.h"
#include "checkpoint/restore.h"
#include "common/suite.h"
#include "common/temp.h"
#include "debug/debug.h"
#include "deploy/integer_model.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES = 20, SAMPLES = 24 };

static const char recipe_text[] = "[data]\nkind = digits\ntrain_count = 1000\ntest_count = 60\n"
                                  "[model]\nfilters = 6, 8, 8, 10\nstrides = 2, 1, 2, 1\n"
                                  "[train]\nepochs = 3\nbatch = 20\nlr = 0.1\n"
                                  "[quant]\nenabled = yes\nquant_delay = 50%\nema_decay = 0.9\n";

/** The runs: two layouts, and weights of 2 bits with learned ranges. */
static const struct {
    const char *name, *sets[3];
    int n;
} runs[] = {{"uint8", {"quant.layout=uint8"}, 1},
            {"int8", {"quant.layout=int8"}, 1},
            {"few", {"quant.layout=int8", "quant.weight_bits=2", "quant.ranges=lsq"}, 3}};
enum { LAYOUTS = 2, FEW = 2, RUNS };

static qat_error err;
static qat_restored *good, *bad; /* of the same checkpoint */
static qat_dataset *data;

#define MUST(call) ck_assert_msg((call) == QAT_OK, "%s", err.message)

/* ------------------------------------------------------------------ runs */

static char *run_of(char path[TEST_PATH_MAX], int run)
{
    return test_temp_path(path, folder, runs[run].name);
}

static void train_all(void)
{
    test_folder_make();
    for (int run = 0; run < RUNS; run++) {
        char dir[TEST_PATH_MAX];
        qat_recipe *r;
        qat_train_result result;
        MUST(qat_recipe_parse(&r, recipe_text, "test", runs[run].sets, runs[run].n, &err));
        qat_train_options const o = {.dir = run_of(dir, run)};
        MUST(qat_train(r, &o, &result, &err));
        qat_recipe_free(r);
    }
}

static void open_both(int run)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    test_temp_path(path, run_of(dir, run), "last.ckpt");
    MUST(qat_restore(&good, path, NULL, 0, &err));
    MUST(qat_restore(&bad, path, NULL, 0, &err));
    MUST(qat_recipe_open_data(&data, qat_restored_recipe(good), NULL, QAT_SPLIT_TEST, &err));
}

static void close_both(void)
{
    qat_dataset_close(data);
    qat_restored_free(good);
    qat_restored_free(bad);
    data = NULL;
    good = bad = NULL;
}

static qat_debug *run(const qat_debug_source *source, int samples)
{
    qat_debug *d;
    MUST(qat_debug_create(&d, source, &err));
    MUST(qat_debug_run(d, qat_checkpoint_input(good->checkpoint), data, samples, NULL, NULL, &err));
    return d;
}

/* ------------------------------------------------------------------ breaking */

/** Layers with weights. */
static const char *const layers[] = {"conv1", "conv2", "conv3", "conv4", "logits"};
static const char *const outputs[] = {"conv1/relu/q", "conv2/relu/q", "conv3/relu/q",
                                      "conv4/relu/q", "logits/bias/q"};
enum { LAYERS = 5 };

static qat_named_tensor *param(const char *layer, const char *end)
{
    char name[QAT_NAME_MAX];
    snprintf(name, sizeof name, "%s/%s", layer, end);
    for (int i = 0; i < bad->checkpoint->n_params; i++)
        if (strcmp(bad->checkpoint->params[i].name, name) == 0)
            return &bad->checkpoint->params[i];
    ck_abort_msg("no parameter %s", name);
    return NULL;
}

static void break_range(int layer, int channel, double quantum)
{
    float *range = param(outputs[layer], "range")->values;
    range[0] /= 10;
    range[1] /= 10;
}

static void break_channel(int layer, int channel, double quantum)
{
    const qat_named_tensor *w = param(layers[layer], "weights");
    size_t const n = qat_shape_count(&w->shape) / (size_t)w->shape.dims[0];
    for (size_t i = 0; i < n; i++)
        w->values[(size_t)channel * n + i] *= 1000;
}

static void break_bias(int layer, int channel, double quantum)
{
    bool const last = layer == LAYERS - 1;
    param(layers[layer], last ? "bias/bias" : "bn/beta")->values[channel] += (float)(30 * quantum);
}

static const struct fault {
    void (*make)(int layer, int channel, double quantum);
    const char *words[2];          /* of the finding, without and with the good network */
    qat_debug_kind alone, against; /* what it is called without and with the good network */
    bool needs_reference;
} faults[] = {
    {break_range,
     {"beyond its codes", "beyond its codes"},
     QAT_DEBUG_RANGE,
     QAT_DEBUG_RANGE,
     false},
    {break_channel, {"wide", "times"}, QAT_DEBUG_WIDE, QAT_DEBUG_SCALE, false},
    {break_bias, {"", "its bias is off by +30.0 quanta"}, QAT_DEBUG_BIAS, QAT_DEBUG_BIAS, true},
};
enum { FAULTS = 3 };

/** One layer and one of its channels; a quantum of its output. */
struct choice {
    int layer, channel;
    double quantum;
};

static struct choice choose(int fault, int i, const qat_debug *d)
{
    qat_rng rng = qat_rng_at(7, (uint64_t)fault, (uint64_t)i);
    struct choice c = {.layer = (int)(qat_rng_uniform(&rng) * LAYERS)};
    for (int k = 0; k < qat_debug_layers(d); k++) {
        const qat_debug_layer *layer = qat_debug_layer_at(d, k);
        if (strcmp(layer->name, layers[c.layer]))
            continue;
        c.channel = (int)(qat_rng_uniform(&rng) * layer->channels);
        c.quantum = layer->scale;
    }
    return c;
}

/** The layer comes first, and what is said of it. */
static void expect_first(const qat_debug *d, const struct choice *c, qat_debug_kind kind,
                         const char *words, const char *how)
{
    char channel[32];
    const qat_debug_layer *first = qat_debug_layer_at(d, qat_debug_worst(d, 0));
    ck_assert_msg(strcmp(first->name, layers[c->layer]) == 0,
                  "%s: %s was broken, but %s (loss %.1f dB: %s) comes first", how, layers[c->layer],
                  first->name, first->loss, first->finding);
    ck_assert_msg(first->kind == kind || (kind == QAT_DEBUG_SCALE && first->kind == QAT_DEBUG_WIDE),
                  "%s: %s, channel %d: kind %d: %s", how, first->name, c->channel, first->kind,
                  first->finding);
    ck_assert_msg(strstr(first->finding, words) != NULL, "%s: %s: %s", how, first->name,
                  first->finding);
    snprintf(channel, sizeof channel, "channel %d", c->channel);
    if (kind != QAT_DEBUG_RANGE && kind != QAT_DEBUG_COSTLY)
        ck_assert_msg(strstr(first->finding, channel) != NULL, "%s: %s, %s: %s", how, first->name,
                      channel, first->finding);
}

/* ------------------------------------------------------------------ checkpoints and .qm files */

START_TEST(test_broken)
{
    int const fault = _i % FAULTS, choice = _i / FAULTS;
    const struct fault *f = &faults[fault];
    open_both(choice % LAYOUTS);
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good}, 8);
    struct choice const c = choose(fault, choice, d);
    qat_debug_free(d);
    f->make(c.layer, c.channel, c.quantum);
    qat_debug *model = run(&(qat_debug_source){.checkpoint = bad}, SAMPLES);
    if (!f->needs_reference)
        expect_first(model, &c, f->alone, f->words[0], "checkpoint");
    d = run(&(qat_debug_source){.checkpoint = bad, .against = good}, SAMPLES);
    expect_first(d, &c, f->against, f->words[1], "checkpoint against the good one");
    qat_debug_free(d);
    if (!f->needs_reference) {
        d = run(&(qat_debug_source){.model = model->host, .registry = bad->registry}, SAMPLES);
        expect_first(d, &c, f->alone, f->words[0], ".qm alone");
        qat_debug_free(d);
    }
    d = run(&(qat_debug_source){.model = model->host, .registry = bad->registry, .against = good},
            SAMPLES);
    expect_first(d, &c, f->against, f->words[1], ".qm against the good checkpoint");
    qat_debug_free(d);
    qat_debug_free(model);
    close_both();
}
END_TEST

/* ------------------------------------------------------------------ another runtime */

/** The tensors of a batch, as another runtime may write them. */
static void write_dump(const qat_debug *d, const char *dir)
{
    test_temp_write(folder, "dump/made", "", 0);
    for (int i = 0; i < d->n_tensors; i++) {
        const debug_tensor *t = &d->tensors[i];
        char path[TEST_PATH_MAX], file[QAT_NAME_MAX + 8];
        int64_t const dims[] = {DEBUG_BATCH, (int64_t)t->count};
        if (!t->engine)
            continue;
        snprintf(file, sizeof file, "%s.npy", t->t->name);
        for (char *c = file; *c; c++)
            *c = *c == '/' ? '_' : *c;
        MUST(qat_npy_write(test_temp_path(path, dir, file), QAT_NPY_F32, 2, dims, t->engine, &err));
    }
}

START_TEST(test_foreign)
{
    static const char *const words[] = {"its range is too narrow", "weights or multipliers",
                                        "quanta on average"};
    static const qat_debug_kind kinds[] = {QAT_DEBUG_RANGE, QAT_DEBUG_SCALE, QAT_DEBUG_BIAS};
    int const fault = _i % FAULTS, choice = _i / FAULTS;
    char dir[TEST_PATH_MAX];
    test_temp_path(dir, folder, "dump");
    open_both(choice % LAYOUTS);
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good}, DEBUG_BATCH);
    struct choice const c = choose(fault, choice, d);
    write_dump(d, dir);
    qat_debug_free(d);
    d = run(&(qat_debug_source){.checkpoint = good, .dump = dir}, DEBUG_BATCH);
    ck_assert_int_eq(qat_debug_parts(d, QAT_DEBUG_FOREIGN_INTEGER), -1);
    qat_debug_free(d);
    faults[fault].make(c.layer, c.channel, c.quantum);
    d = run(&(qat_debug_source){.checkpoint = bad}, DEBUG_BATCH);
    write_dump(d, dir);
    qat_debug_free(d);
    d = run(&(qat_debug_source){.checkpoint = good, .dump = dir}, DEBUG_BATCH);
    int const parts = qat_debug_parts(d, QAT_DEBUG_FOREIGN_INTEGER);
    ck_assert_str_eq(qat_debug_layer_at(d, parts)->name, layers[c.layer]);
    const qat_debug_layer *first = qat_debug_layer_at(d, qat_debug_worst(d, 0));
    ck_assert_msg(strcmp(first->name, layers[c.layer]) == 0, "%s is not %s: %s", first->name,
                  layers[c.layer], first->finding);
    ck_assert_msg(first->kind == kinds[fault] && strstr(first->finding, words[fault]), "%s: %s",
                  first->name, first->finding);
    qat_debug_free(d);
    test_temp_remove(dir);
    close_both();
}
END_TEST

/* ------------------------------------------------------------------ few bits */

/** How many layers' findings have these words? */
static int found(const qat_debug *d, const char *words)
{
    int n = 0;
    for (int i = 0; i < qat_debug_layers(d); i++)
        n += strstr(qat_debug_layer_at(d, i)->finding, words) != NULL;
    return n;
}

/** How many channels have the rounding of their weights to thank for less than half of a value? */
static int halved(const qat_debug *d)
{
    int n = 0;
    for (int i = 0; i < d->n_tensors; i++)
        for (int c = 0; c < d->tensors[i].channels; c++) {
            const debug_fit *f = &d->tensors[i].of[c].fits[DEBUG_OF_FLOAT];
            double gain = 1, offset;
            if (f->n >= DEBUG_BATCH)
                debug_solve_fit(f, (double)qat_real_scale(d->tensors[i].t), &gain, &offset);
            n += gain < 0.5;
        }
    return n;
}

/** What training has adapted to is no fault; a scale that is another one still is. */
START_TEST(test_few_bits)
{
    open_both(FEW);
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good}, SAMPLES);
    ck_assert_int_ge(halved(d), 1);
    ck_assert_int_eq(found(d, "wrong") + found(d, "--correct-bias"), 0);
    ck_assert_int_ge(found(d, "its weights are rounded, and training has adapted to that"), 1);
    qat_debug_free(d);
    param("conv3", "weights/q/learned")->values[5] *= 8;
    d = run(&(qat_debug_source){.checkpoint = bad, .against = good}, SAMPLES);
    expect_first(d, &(struct choice){.layer = 2, .channel = 5}, QAT_DEBUG_SCALE, "wrong",
                 "a scale against the good one");
    qat_debug_free(d);
    close_both();
}
END_TEST

/** Biases are corrected in a calibration only: there it is advised, and done only once. */
START_TEST(test_calibrated)
{
    static const char *const sets[] = {"quant.weight_bits=2"};
    qat_deploy_options o = {.calibrate = "recipe"};
    open_both(1);
    MUST(qat_restored_set_quant(bad, sets, 1, &err));
    qat_debug *d = run(&(qat_debug_source){.checkpoint = bad, .deploy = &o}, SAMPLES);
    ck_assert_int_ge(found(d, "--correct-bias"), 1);
    ck_assert_int_eq(found(d, "wrong") + found(d, "training"), 0);
    qat_debug_free(d);
    o.correct_bias = true;
    d = run(&(qat_debug_source){.checkpoint = bad, .deploy = &o}, SAMPLES);
    ck_assert_int_eq(found(d, "wrong") + found(d, "training") + found(d, "--correct-bias"), 0);
    qat_debug_free(d);
    close_both();
}
END_TEST

/** The channel that loses most is named, not the one with the largest error. */
static void expect_channel(const qat_debug *d, int i)
{
    const qat_debug_layer *l = qat_debug_layer_at(d, i);
    const debug_tensor *y = &d->tensors[d->ops[i]->outputs[0]];
    const char *at = strstr(l->finding, "(channel ");
    int channel = -1, most = 0;
    ck_assert_msg(at && sscanf(at, "(channel %d:", &channel) == 1, "%s: %s", l->name, l->finding);
    for (int c = 0; c < y->channels; c++)
        most = y->of[c].beyond > y->of[most].beyond ? c : most;
    ck_assert_msg(y->of[channel].beyond == y->of[most].beyond, "%s: not %d: %s", l->name, most,
                  l->finding);
}

/** What is said of a range depends on where it comes from. */
START_TEST(test_ranges)
{
    static const char *const advice[] = {"or more steps to observe it",
                                         "or more steps to observe it", "training chose this"};
    int others = 0;
    open_both(_i);
    for (int i = 0; i < LAYERS; i++) {
        float *ends = param(outputs[i], _i == FEW ? "learned" : "range")->values;
        ends[0] /= 3;
        ends[1] /= 3;
    }
    qat_debug *d = run(&(qat_debug_source){.checkpoint = bad}, SAMPLES);
    ck_assert_int_ge(found(d, "beyond its codes"), 1);
    ck_assert_int_eq(found(d, "beyond its codes"), found(d, advice[_i]));
    for (int i = 0; i < qat_debug_layers(d); i++) {
        const qat_debug_layer *l = qat_debug_layer_at(d, i);
        if (l->kind != QAT_DEBUG_RANGE)
            continue;
        expect_channel(d, i);
        const debug_channel *of = d->tensors[d->ops[i]->outputs[0]].of;
        for (int c = 0; c < l->channels; c++)
            others += of[c].beyond > of[l->worst[0]].beyond;
    }
    ck_assert_int_ge(others, 1); /* they are not the same everywhere */
    qat_debug *alone =
        run(&(qat_debug_source){.model = d->host, .registry = bad->registry}, SAMPLES);
    ck_assert_int_ge(found(alone, "unless training chose this one"), 1);
    qat_debug_free(alone);
    qat_debug_free(d);
    close_both();
}
END_TEST

/** One layer of few bits among those of 8: its own steps are so wide that its loss is small. */
START_TEST(test_mixed_bits)
{
    open_both(1);
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good}, SAMPLES);
    ck_assert_int_eq(found(d, "--sensitivity"), 0);
    qat_debug_free(d);
    qat_quant_options *quant = &bad->checkpoint->quant;
    quant->layers[0] = qat_quant_layer_defaults(layers[2]);
    quant->layers[0].activation_bits = 2;
    quant->n_layers = 1;
    d = run(&(qat_debug_source){.checkpoint = bad}, SAMPLES);
    expect_first(d, &(struct choice){.layer = 2}, QAT_DEBUG_COSTLY, "--sensitivity", "2 bits");
    qat_debug_free(d);
    quant->n_layers = 0;
    close_both();
}
END_TEST

/* ------------------------------------------------------------------ figures */

/** What a whole network says without a fault; and against values that were computed by hand. */
START_TEST(test_figures)
{
    open_both(_i);
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good}, SAMPLES);
    ck_assert_int_eq(qat_debug_samples(d), SAMPLES);
    ck_assert_int_eq(qat_debug_layers(d), LAYERS + 2); /* the table of pixels, the pool */
    for (int i = 1; i < qat_debug_layers(d); i++) {
        const qat_debug_layer *l = qat_debug_layer_at(d, i);
        ck_assert_double_ge(l->whole.snr, 15);
        ck_assert_double_ge(l->own.snr, l->whole.snr - 3); /* errors of layers may cancel a bit */
        ck_assert_double_le(l->bias_error > 0 ? l->bias_error : 0, 1);
        ck_assert_int_ge(l->used, 2);
        ck_assert_int_le(l->used, l->codes);
    }
    qat_debug *alone =
        run(&(qat_debug_source){.model = d->host, .registry = good->registry}, SAMPLES);
    for (int i = 1; i < qat_debug_layers(d); i++)
        ck_assert_double_eq_tol(qat_debug_layer_at(alone, i)->own.snr,
                                qat_debug_layer_at(d, i)->rounding.snr, 1e-9);
    qat_debug_free(alone);
    qat_debug_free(d);
    close_both();
}
END_TEST

/** A layer of the float network whose bias is not a number is told first. */
START_TEST(test_not_finite)
{
    open_both(_i);
    param("logits", "bias/bias")->values[3] = NAN;
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good, .against = bad}, DEBUG_BATCH);
    const qat_debug_layer *first = qat_debug_layer_at(d, qat_debug_worst(d, 0));
    ck_assert_str_eq(first->name, "logits");
    ck_assert_int_eq(first->kind, QAT_DEBUG_NOT_FINITE);
    ck_assert_ptr_nonnull(strstr(first->finding, "the float network's values are not finite"));
    ck_assert(isnan(first->own.snr) && isnan(first->whole.snr));
    ck_assert_int_ge(qat_debug_parts(d, QAT_DEBUG_FLOAT_INTEGER), 0);
    qat_debug_free(d);
    close_both();
}
END_TEST

/** Of two channels that are too small, the smaller one is told. */
START_TEST(test_small_channels)
{
    open_both(1);
    const qat_named_tensor *w = param("logits", "weights");
    size_t const n = qat_shape_count(&w->shape) / (size_t)w->shape.dims[0];
    for (size_t i = 0; i < n; i++) {
        w->values[2 * n + i] *= 0.4f;
        w->values[5 * n + i] *= 0.1f;
    }
    qat_debug *d = run(&(qat_debug_source){.checkpoint = bad, .against = good}, SAMPLES);
    const qat_debug_layer *first = qat_debug_layer_at(d, qat_debug_worst(d, 0));
    ck_assert_str_eq(first->name, "logits");
    ck_assert_msg(strstr(first->finding, "channel 5 (and 1 more): the model's values are 0."), "%s",
                  first->finding);
    qat_debug_free(d);
    close_both();
}
END_TEST

/** Weights that are too large, but by less than a gain that is told: their mean tells them. */
START_TEST(test_moved_weights)
{
    open_both(1);
    const qat_named_tensor *w = param("conv3", "weights");
    size_t const n = qat_shape_count(&w->shape) / (size_t)w->shape.dims[0];
    for (size_t i = 0; i < n; i++)
        w->values[4 * n + i] *= 1.7f;
    qat_debug *d = run(&(qat_debug_source){.checkpoint = bad, .against = good}, SAMPLES);
    expect_first(d, &(struct choice){.layer = 2, .channel = 4}, QAT_DEBUG_SCALE,
                 "quanta on average: its weights are wrong", "weights times 1.7");
    qat_debug_free(d);
    close_both();
}
END_TEST

/** A mean whose output has no height and width, as files of other tools have it. */
START_TEST(test_mean_of_two_dimensions)
{
    qat_deploy_options const o = {.has_profile = true, .profile = QAT_PROFILE_TFLITE};
    qat_qm_metadata const metadata = {.description = ""};
    qi_host_options const options = {.limits = QI_NO_LIMITS};
    qat_graph *eval;
    qat_qgraph *graph = NULL;
    uint8_t *bytes = NULL;
    size_t count = 0;
    qi_host *host = NULL;
    int means = 0;
    open_both(0);
    MUST(qat_restored_eval_graph(good, &o, 1, &eval, &err));
    MUST(qat_restored_freeze(good, &o, eval, &graph, &err));
    MUST(qat_finish_network(graph, &good->checkpoint->input, &err));
    for (int i = 0; i < graph->n_ops; i++) {
        qat_qtensor *y = &graph->tensors[graph->ops[i].outputs[0]];
        if (strcmp(graph->ops[i].op, "mean"))
            continue;
        y->rank = 2;
        y->dims[1] = y->dims[3];
        y->dims[2] = y->dims[3] = 1;
        means++;
    }
    ck_assert_int_eq(means, 1);
    MUST(qat_qm_write(graph, &metadata, &bytes, &count, &err));
    MUST(qi_host_open_bytes(&host, bytes, count, "model", &options, &err));
    qat_debug *d = run(&(qat_debug_source){.model = host, .registry = good->registry}, SAMPLES);
    for (int i = 1; i < qat_debug_layers(d); i++)
        ck_assert_double_ge(qat_debug_layer_at(d, i)->own.snr, 15);
    qat_debug_free(d);
    qi_host_close(host);
    free(bytes);
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    close_both();
}
END_TEST

START_TEST(test_sums)
{
    debug_sums s = {0};
    debug_add(&s, 3, 3);
    debug_add(&s, 4, 4.5);
    qat_debug_error const e = debug_error_of(&s, 0.25);
    ck_assert_double_eq_tol(e.snr, 20, 1e-12); /* 25 / 0.25 */
    ck_assert_double_eq_tol(e.largest, 2, 1e-12);
    ck_assert_double_eq_tol(e.cosine, 27 / (5 * sqrt(29.25)), 1e-12);
    debug_fit f = {0};
    double gain, offset;
    for (int i = 0; i < 10; i++)
        debug_add_fit(&f, i, 3 * i);
    debug_solve_fit(&f, 1, &gain, &offset);
    ck_assert_double_eq_tol(gain, 3, 1e-12);
    ck_assert_double_eq_tol(offset, 9, 1e-12);
    ck_assert(!debug_is_offset(&f));
    f = (debug_fit){0};
    for (int i = 0; i < 10; i++)
        debug_add_fit(&f, i, i + 5 + i % 2);
    ck_assert(debug_is_offset(&f));
}
END_TEST

/* ------------------------------------------------------------------ one layer at a time */

/** By hand: the options of the eval graph, and the exact evaluation instead of the engine. */
static double by_hand(const char *layer, int bits)
{
    qat_deploy_options const none = {0};
    const qat_input_info *input = &bad->checkpoint->input;
    qat_quant_options *quant = &bad->checkpoint->quant;
    qat_accuracy a;
    qat_graph *eval;
    qat_qgraph *graph = NULL;
    qat_quant_layer *own = &quant->layers[quant->n_layers++];
    *own = qat_quant_layer_defaults(layer);
    own->weight_bits = own->activation_bits = bits;
    own->is_float = bits == 0;
    MUST(qat_restored_eval_graph(bad, &none, 60, &eval, &err));
    if (bits) {
        MUST(qat_restored_freeze(bad, &none, eval, &graph, &err));
        MUST(qat_evaluate_exact(graph, bad->registry, input, data, 60, 0, NULL, NULL, &a, &err));
    } else
        MUST(qat_evaluate_graph(eval, input, data, 60, 0, NULL, NULL, &a, &err));
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    quant->n_layers--;
    return qat_main_figure(&a);
}

START_TEST(test_single_layers)
{
    qat_deploy_options const none = {0};
    char(*names)[QAT_NAME_MAX];
    int n, changed = 0;
    open_both(_i);
    MUST(qat_debug_layer_names(good, &names, &n, &err));
    ck_assert_int_eq(n, LAYERS);
    for (int i = 0; i < n; i++) {
        ck_assert_str_eq(names[i], layers[i]);
        for (int bits = 0; bits <= 2; bits += 2) {
            qat_accuracy a, as_is;
            MUST(qat_debug_evaluate(good, &none, names[i], bits, data, 0, NULL, NULL, &a, &err));
            MUST(qat_debug_evaluate(good, &none, NULL, bits, data, 0, NULL, NULL, &as_is, &err));
            ck_assert_double_eq(qat_main_figure(&a), by_hand(names[i], bits));
            changed += bits && qat_main_figure(&a) != qat_main_figure(&as_is);
        }
    }
    ck_assert_int_ge(changed, 2);
    free(names);
    close_both();
}
END_TEST

/* ------------------------------------------------------------------ refusals */

static void refuses_dump(const char *dir, const char *words)
{
    qat_debug *d;
    qat_debug_source const source = {.checkpoint = good, .dump = dir};
    ck_assert_int_ne(qat_debug_create(&d, &source, &err), QAT_OK);
    ck_assert_ptr_null(d);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
}

START_TEST(test_refused_dumps)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    float values[20] = {0};
    test_temp_path(dir, folder, "wrong");
    open_both(0);
    test_temp_write(folder, "wrong/other.npy", "", 0);
    refuses_dump(dir, "holds no tensor of the model");
    test_temp_path(path, dir, "logits_bias_q.npy");
    MUST(qat_npy_write(path, QAT_NPY_F32, 2, (const int64_t[]){2, 9}, values, &err));
    refuses_dump(dir, "18 values in 2 samples, but logits/bias/q has 10 a sample");
    values[7] = NAN;
    MUST(qat_npy_write(path, QAT_NPY_F32, 2, (const int64_t[]){2, 10}, values, &err));
    refuses_dump(dir, "value 7 is not a finite number");
    MUST(qat_npy_write(path, QAT_NPY_F32, 0, NULL, values, &err));
    refuses_dump(dir, "1 values in 0 samples");
    test_temp_write(folder, "wrong/logits_bias_q.npy", "no array", 8);
    refuses_dump(dir, "logits_bias_q.npy");
    close_both();
}
END_TEST

START_TEST(test_refused_folders)
{
    enum { DOTS = 600 };
    char dir[2 * DOTS + 1] = "";
    open_both(0);
    for (int i = 0; i < DOTS; i++)
        memcpy(dir + 2 * i, "./", 3);
    refuses_dump(dir, "the name of this folder is too long");
    close_both();
}
END_TEST

static void refuses_input(const char *words)
{
    qat_debug *d;
    qat_debug_source const source = {.checkpoint = bad, .against = good};
    MUST(qat_debug_create(&d, &source, &err));
    ck_assert_int_eq(
        qat_debug_run(d, qat_checkpoint_input(bad->checkpoint), data, 8, NULL, NULL, &err),
        QAT_ERR_SHAPE);
    ck_assert_msg(strstr(err.message, words) != NULL, "%s", err.message);
    qat_debug_free(d);
}

/** The two networks take other samples. */
START_TEST(test_refused_inputs)
{
    open_both(0);
    good->checkpoint->input.height++;
    refuses_input("the float network takes 29 x 28 x 1 pixels, but the model 28 x 28 x 1 pixels");
    good->checkpoint->input.height--;
    good->checkpoint->input.std[0] = 100;
    refuses_input("with mean 127.5 and std 100, but the model with 127.5 and 127.5");
    close_both();
}
END_TEST

/** The registry is that of one of the checkpoints, unless there is none. */
START_TEST(test_what_is_given)
{
    open_both(0);
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good}, 8), *other;
    qat_debug_source const model = {.model = d->host}, nothing = {.against = good};
    qat_debug_free(run(&(qat_debug_source){.model = d->host, .against = good}, 8));
    ck_assert_int_eq(qat_debug_create(&other, &model, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "there is no registry of ops"));
    ck_assert_int_eq(qat_debug_create(&other, &nothing, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "there is no model and no checkpoint"));
    qat_debug_free(d);
    close_both();
}
END_TEST

START_TEST(test_refused_memory)
{
    open_both(0);
    qat_debug *d = run(&(qat_debug_source){.checkpoint = good}, 8), *other;
    qat_debug_source const source = {.model = d->host, .registry = bad->registry};
    qat_registry_set_memory(bad->registry, 1000);
    ck_assert_int_eq(qat_debug_create(&other, &source, &err), QAT_ERR_LIMIT);
    ck_assert_ptr_null(other);
    ck_assert_msg(strstr(err.message, "--max-memory") != NULL, "%s", err.message);
    qat_debug_free(d);
    close_both();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("debug");
    TCase *t = tcase_create("debug");
    tcase_add_unchecked_fixture(t, train_all, test_folder_remove);
    tcase_add_loop_test(t, test_broken, 0, FAULTS * CHOICES);
    tcase_add_loop_test(t, test_foreign, 0, FAULTS * CHOICES);
    tcase_add_test(t, test_few_bits);
    tcase_add_test(t, test_calibrated);
    tcase_add_loop_test(t, test_ranges, 0, RUNS);
    tcase_add_test(t, test_mixed_bits);
    tcase_add_loop_test(t, test_figures, 0, LAYOUTS);
    tcase_add_loop_test(t, test_single_layers, 0, LAYOUTS);
    tcase_add_test(t, test_sums);
    tcase_add_loop_test(t, test_not_finite, 0, LAYOUTS);
    tcase_add_test(t, test_small_channels);
    tcase_add_test(t, test_moved_weights);
    tcase_add_test(t, test_mean_of_two_dimensions);
    tcase_add_test(t, test_refused_dumps);
    tcase_add_test(t, test_refused_folders);
    tcase_add_test(t, test_refused_inputs);
    tcase_add_test(t, test_what_is_given);
    tcase_add_test(t, test_refused_memory);
    suite_add_tcase(suite, t);
    return test_run_suite(suite);
}
