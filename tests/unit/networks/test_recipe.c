/* Recipes: defaults, every kind of value, canonical text, and each message for a wrong recipe. */
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "qat/train.h"
#include "recipe/reader.h"

#include <check.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qat_recipe *parse(const char *text)
{
    qat_recipe *r;
    qat_error err;
    ck_assert_msg(qat_recipe_parse(&r, text, "r.ini", NULL, 0, &err) == QAT_OK, "%s", err.message);
    return r;
}

static void refuse(const char *text, const char *message)
{
    qat_recipe *r;
    qat_error err;
    ck_assert_int_ne(qat_recipe_parse(&r, text, "r.ini", NULL, 0, &err), QAT_OK);
    ck_assert_ptr_null(r);
    ck_assert_str_eq(err.message, message);
}

START_TEST(test_defaults)
{
    qat_recipe *r = parse("");
    ck_assert_int_eq(r->data.kind, 0);
    ck_assert_int_eq(r->model.arch, QAT_ARCH_CONVNET);
    ck_assert_int_eq(r->model.filters.n, 3);
    ck_assert_int_eq(r->model.filters.v[2], 64);
    ck_assert_int_eq(r->data.mean.n, 0);
    ck_assert(!r->quant.enabled);
    ck_assert(isnan(r->quant.input_min));
    ck_assert_int_eq(r->quant.weight_delay.unit, QAT_UNIT_AUTO);
    ck_assert_int_eq(r->quant.bn_freeze_delay.unit, QAT_UNIT_NEVER);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_values)
{
    qat_recipe *r = parse("; a comment\n"
                          "# another\n"
                          "[data]\n"
                          "kind = idx            ; behind a value\n"
                          "path = ${QAT_DATA}/some where\n"
                          "mean = 1, 2.5 ,3\n"
                          "  flip = on\r\n"
                          "[model]\n"
                          "filters = 8 , 16\n"
                          "hidden =\n"
                          "[train]\n"
                          "lr = 2.5e-3\n"
                          "every = 2.5 epochs\n"
                          "warmup = 100 steps\n"
                          "log_every = 1 epoch\n"
                          "[quant]\n"
                          "layout = int8\n"
                          "quant_delay = 60%\n"
                          "input_min = -3");
    ck_assert_int_eq(r->data.kind, 2);
    ck_assert_str_eq(r->data.path, "${QAT_DATA}/some where");
    ck_assert_int_eq(r->data.mean.n, 3);
    ck_assert_double_eq(r->data.mean.v[1], 2.5);
    ck_assert(r->data.flip);
    ck_assert_int_eq(r->model.filters.n, 2);
    ck_assert_int_eq(r->model.hidden.n, 0);
    ck_assert_double_eq(r->train.lr, 2.5e-3);
    ck_assert_int_eq(qat_steps_resolve(&r->train.every, 100, 0, 0), 250);
    ck_assert_int_eq(qat_steps_resolve(&r->train.warmup, 0, 0, 0), 100);
    ck_assert_int_eq(qat_steps_resolve(&r->train.log_every, 77, 0, 0), 77);
    ck_assert_int_eq(qat_steps_resolve(&r->quant.quant_delay, 0, 1000, 0), 600);
    ck_assert_int_eq(qat_steps_resolve(&r->quant.weight_delay, 0, 0, 600), 600);
    ck_assert_int_eq(qat_steps_resolve(&r->quant.bn_freeze_delay, 0, 0, 0), INT64_MAX);
    ck_assert_int_eq(r->quant.layout, QAT_LAYOUT_INT8);
    ck_assert_double_eq(r->quant.input_min, -3);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_unknown_names)
{
    refuse("[train]\nepoch = 3\n", "r.ini:2: unknown key train.epoch; the nearest is train.epochs");
    refuse("[train]\n\n; x\nmomemtum = 3\n",
           "r.ini:4: unknown key train.momemtum; the nearest is train.momentum");
    refuse("[data]\nbatch = 3\n", "r.ini:2: unknown key data.batch; the nearest is train.batch");
    refuse("\n[trian]\n", "r.ini:2: unknown section [trian]; the nearest is [train]");
    refuse("[layr.conv]\n", "r.ini:1: unknown section [layr.conv]; the nearest is [layer.NAME]");
    refuse("[layer]\n", "r.ini:1: unknown section [layer]; the nearest is [layer.NAME]");
}
END_TEST

/** Keys as people write them who know other programs. */
START_TEST(test_nearest_keys)
{
    static const char *const cases[][2] = {
        {"train.learning_rate", "train.lr"},
        {"train.LR", "train.lr"},
        {"train.batch_size", "train.batch"},
        {"train.BatchSize", "train.batch"},
        {"data.batch_size", "train.batch"},
        {"train.num_epochs", "train.epochs"},
        {"train.max-epochs", "train.epochs"},
        {"train.optimiser", "train.optimizer"},
        {"train.weightdecay", "train.weight_decay"},
        {"train.weight-decay", "train.weight_decay"},
        {"train.decay", "train.weight_decay"},
        {"train.wd", "train.weight_decay"},
        {"train.dropout_rate", "model.dropout"},
        {"model.dropout_rate", "model.dropout"},
        {"train.scheduler", "train.schedule"},
        {"train.lr_schedule", "train.schedule"},
        {"train.min_lr", "train.final_lr"},
        {"train.warmup_steps", "train.warmup"},
        {"train.log_interval", "train.log_every"},
        {"train.log", "train.log_every"},
        {"train.num_workers", "data.threads"},
        {"data.num_classes", "data.classes"},
        {"model.num_classes", "data.classes"},
        {"data.root", "data.path"},
        {"data.image_size", "data.height"},
        {"data.dataset", "data.kind"},
        {"model.architecture", "model.arch"},
        {"model.batchnorm", "model.batch_norm"},
        {"model.width_multiplier", "model.multiplier"},
        {"quant.bits", "quant.weight_bits"},
        {"quant.weights_bits", "quant.weight_bits"},
        {"quant.act_bits", "quant.activation_bits"},
        {"quant.delay", "quant.quant_delay"},
        {"output.out", "output.dir"},
        {"output.directory", "output.dir"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128], message[160];
        const char *dot = strchr(cases[i][0], '.');
        snprintf(text, sizeof text, "[%.*s]\n%s = 3\n", (int)(dot - cases[i][0]), cases[i][0],
                 dot + 1);
        snprintf(message, sizeof message, "r.ini:2: unknown key %s; the nearest is %s", cases[i][0],
                 cases[i][1]);
        refuse(text, message);
    }
}
END_TEST

START_TEST(test_nearest_sections)
{
    static const char *const cases[][2] = {
        {"training", "train"}, {"dataset", "data"},         {"quantize", "quant"},
        {"network", "model"},  {"quantization", "quant"},   {"Train", "train"},
        {"outputs", "output"}, {"distillation", "distill"}, {"detector", "detect"},
        {"models", "model"},   {"optimizer", "train"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64], message[128];
        snprintf(text, sizeof text, "[%s]\n", cases[i][0]);
        snprintf(message, sizeof message, "r.ini:1: unknown section [%s]; the nearest is [%s]",
                 cases[i][0], cases[i][1]);
        refuse(text, message);
    }
}
END_TEST

START_TEST(test_bad_values)
{
    refuse("[train]\nbatch = 0\n", "r.ini:2: train.batch = 0: expected an integer in 1..65536");
    refuse("[train]\nbatch = 1.5\n", "r.ini:2: train.batch = 1.5: expected an integer in 1..65536");
    refuse("[train]\nbatch = 99999999999999999999\n",
           "r.ini:2: train.batch = 99999999999999999999: expected an integer in 1..65536");
    refuse("[train]\nmomentum = 1\n",
           "r.ini:2: train.momentum = 1: expected a number in 0..0.99999");
    refuse("[train]\nlr = nan\n", "r.ini:2: train.lr = nan: expected a number in 0..1e+30");
    refuse("[train]\nbeta2 = 1\n", "r.ini:2: train.beta2 = 1: expected a number in 0..0.9999999");
    refuse("[train]\nlr = 0.1x\n", "r.ini:2: train.lr = 0.1x: expected a number in 0..1e+30");
    refuse("[train]\nlr =\n", "r.ini:2: train.lr = : expected a number in 0..1e+30");
    refuse("[quant]\nenabled = maybe\n", "r.ini:2: quant.enabled = maybe: expected yes or no");
    refuse("[quant]\nlayout = int4\n", "r.ini:2: quant.layout = int4: expected one of uint8|int8");
    refuse("[quant]\nweight_bits = 9\n",
           "r.ini:2: quant.weight_bits = 9: expected an integer in 2..8");
    refuse("[model]\nfilters = 8, 0\n", "r.ini:2: model.filters = 8, 0: expected at most 24 "
                                        "integers in 1..65536, separated by commas");
    refuse("[model]\nfilters = 8 9\n", "r.ini:2: model.filters = 8 9: expected at most 24 "
                                       "integers in 1..65536, separated by commas");
    refuse("[data]\nstd = 0\n", "r.ini:2: data.std = 0: expected 1 to 4 numbers in "
                                "1e-30..1e+30, separated by commas, or auto");
    refuse("[train]\nwarmup = 1.5\n", "r.ini:2: train.warmup = 1.5: expected a number of steps, "
                                      "for example 1200, '2.5 epochs', '60%' or never");
    refuse("[train]\nwarmup = auto\n", "r.ini:2: train.warmup = auto: expected a number of "
                                       "steps, for example 1200, '2.5 epochs', '60%' or never");
}
END_TEST

START_TEST(test_lines)
{
    char text[512];
    refuse("lr = 1\n", "r.ini:1: 'lr' comes before the first [section]");
    refuse("[train\nlr = 1\n", "r.ini:1: the ] of the section is missing");
    refuse("[train]\nlr 1\n", "r.ini:2: expected [section], key = value, or a comment (; or #)");
    refuse("[train]\nlr = 1\n\nlr = 2\n", "r.ini:4: train.lr was already set in line 2");
    refuse("[train]\nlr = 1\n[data]\n[train]\nlr = 2\n",
           "r.ini:5: train.lr was already set in line 2");
    snprintf(text, sizeof text, "[data]\npath = %0193d\n", 7);
    refuse(text, "r.ini:2: the line has 200 characters, but at most 199 are possible");
    snprintf(text, sizeof text, "[data]\npath = %0192d", 7);
    qat_recipe *r = parse(text);
    ck_assert_uint_eq(strlen(r->data.path), 192);
    qat_recipe_free(r);
    snprintf(text, sizeof text, "[layer.%050d]\n", 7);
    refuse(text, "r.ini:1: the section name has 56 characters, but at most 49 are possible");
}
END_TEST

START_TEST(test_layer_sections)
{
    qat_recipe *r = parse("[layer.a]\nop = conv2d\nfilters = 3\n[layer.b]\nop = relu\ninput = a\n");
    ck_assert_int_eq(r->n_layers, 2);
    ck_assert_str_eq(r->layers[0].name, "a");
    ck_assert_int_eq(r->layers[0].line, 1);
    ck_assert_int_eq(r->layers[0].n_entries, 2);
    ck_assert_str_eq(r->layers[0].entries[1].key, "filters");
    ck_assert_str_eq(r->layers[0].entries[1].value, "3");
    ck_assert_int_eq(r->layers[1].entries[1].line, 6);
    qat_recipe_free(r);
    refuse("[layer.a]\nop = relu\n[layer.a]\n", "r.ini:3: section [layer.a] is already in line 1");
    refuse("[layer.a]\nop = relu\nop = tanh\n", "r.ini:3: op was already set in line 2");
    refuse("[layer.a b]\n", "r.ini:1: the layer name 'a b' may only have letters, digits, '_', '-' "
                            "and '.'");
    refuse("[layer.loss]\n",
           "r.ini:1: a layer cannot be called 'loss': this name belongs to the network itself");
}
END_TEST

START_TEST(test_quant_layer_sections)
{
    qat_recipe *again, *r = parse("[quant.layer conv*]\nweight_bits = 4\nfloat = no\n"
                                  "[quant.layer @last]\nranges = tqt\n");
    char *text;
    ck_assert_int_eq(r->n_quant_layers, 2);
    ck_assert_str_eq(r->quant_layers[0].name, "conv*");
    ck_assert_int_eq(r->quant_layers[1].line, 4);
    ck_assert_str_eq(r->quant_layers[0].entries[1].value, "no");
    ck_assert_int_eq(qat_recipe_write(r, &text, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_parse(&again, text, "again.ini", NULL, 0, NULL), QAT_OK);
    ck_assert_int_eq(again->n_quant_layers, 2);
    ck_assert_int_eq(qat_recipe_same_run(r, again, NULL), QAT_OK);
    free(text);
    qat_recipe_free(again);
    again = parse("[quant.layer conv*]\nweight_bits = 5\nfloat = no\n"
                  "[quant.layer @last]\nranges = tqt\n");
    ck_assert_int_eq(qat_recipe_same_run(r, again, NULL), QAT_ERR_ARGUMENT);
    qat_recipe_free(again);
    qat_recipe_free(r);
    refuse("[quant.layer a]\nweight_bits = 4\n[quant.layer a]\n",
           "r.ini:3: section [quant.layer a] is already in line 1");
    refuse("[quant.layer a]\nweight_bits = 9\n",
           "r.ini:2: [quant.layer a] weight_bits = 9: expected an integer in 2..8");
    refuse("[quant.layer a]\nfloat = maybe\n",
           "r.ini:2: [quant.layer a] float = maybe: expected yes or no");
    refuse("[quant.layer a]\nsymetric = yes\n",
           "r.ini:2: unknown key symetric in [quant.layer a]; the nearest is symmetric");
    refuse(
        "[quant.layer a]\nranges = a_name_that_is_far_too_long_for_it\n",
        "r.ini:2: [quant.layer a] ranges = a_name_that_is_far_too_long_for_it: expected the name "
        "of a quantizer");
}
END_TEST

START_TEST(test_many_layers)
{
    char text[8192];
    size_t at = 0;
    for (int i = 0; i < 100; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "[layer.l%d]\nop = relu\n", i);
    qat_recipe *r = parse(text);
    ck_assert_int_eq(r->n_layers, 100);
    ck_assert_str_eq(r->layers[99].name, "l99");
    ck_assert_int_eq(r->layers[99].line, 199);
    qat_recipe_free(r);
}
END_TEST

static void refuse_set(const char *set, const char *message)
{
    qat_recipe *r;
    qat_error err;
    ck_assert_int_ne(qat_recipe_parse(&r, "[layer.a]\nop = relu\n", "r.ini", &set, 1, &err),
                     QAT_OK);
    ck_assert_str_eq(err.message, message);
}

/** The same by a part of the message. */
static void refuse_in(const char *set, const char *part)
{
    qat_recipe *r;
    qat_error err = {0};
    ck_assert_int_eq(qat_recipe_parse(&r, "[layer.a]\nop = relu\n", "r.ini", &set, 1, &err),
                     QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, part), "%s", err.message);
}

START_TEST(test_sets)
{
    const char *sets[] = {"train.lr=0.5", "train.lr=0.25", "layer.a.op=tanh", "layer.a.rate=1",
                          "model.name=a=b"};
    qat_recipe *r;
    ck_assert_int_eq(
        qat_recipe_parse(&r, "[train]\nlr = 1\n[layer.a]\nop = relu\n", "r.ini", sets, 5, NULL),
        QAT_OK);
    ck_assert_double_eq(r->train.lr, 0.25);
    ck_assert_str_eq(r->layers[0].entries[0].value, "tanh");
    ck_assert_str_eq(r->layers[0].entries[1].value, "1");
    ck_assert_str_eq(r->model.name, "a=b");
    qat_recipe_free(r);
    refuse_set("train.epoch=1",
               "--set train.epoch=1: unknown key train.epoch; the nearest is train.epochs");
    refuse_set("quantize.bits=4", "--set quantize.bits=4: unknown section [quantize]; the nearest "
                                  "key is quant.weight_bits");
    refuse_set("train.lr", "--set train.lr: expected section.key=value");
    refuse_set("lr=1", "--set lr=1: expected section.key=value");
    refuse_set("layer.b.op=relu", "--set layer.b.op=relu: there is no section [layer.b]");
    refuse_set("train.batch=-1",
               "--set train.batch=-1: train.batch = -1: expected an integer in 1..65536");
}
END_TEST

/** A checkpoint holds the recipe as text: a value that is read back as another one is refused. */
START_TEST(values_that_a_line_cannot_hold)
{
    static const char comment[] =
        "begins with ';' or contains ' ;', which starts a comment in a recipe";
    const char *const texts[] = {"data.path=x ;y", "data.path=;y", "model.name=x\t;y",
                                 "layer.a.op=;relu"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse_in(texts[i], comment);
    refuse_in("data.path=x\ny", "data.path contains a line break");
    refuse_in("layer.a.op=relu\nunits = 3", "op contains a line break");
    refuse_in("data.path= x", "data.path begins or ends with a blank");
    refuse_in("layer.a.op=relu ", "op begins or ends with a blank");
    refuse_in("quant.layer a]b.weight_bits=4", "the pattern 'a]b'");
}
END_TEST

/** What is written is read back as the same, a ';' inside a word too. */
START_TEST(semicolons_inside_words_stay)
{
    const char *sets[] = {"data.path=a;b", "model.name=#1"};
    char *text;
    qat_recipe *r, *again;
    ck_assert_int_eq(qat_recipe_parse(&r, "", "r.ini", sets, 2, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_write(r, &text, NULL), QAT_OK);
    ck_assert_int_eq(qat_recipe_parse(&again, text, "again", NULL, 0, NULL), QAT_OK);
    ck_assert_str_eq(again->data.path, "a;b");
    ck_assert_str_eq(again->model.name, "#1");
    free(text);
    qat_recipe_free(r);
    qat_recipe_free(again);
}
END_TEST

START_TEST(test_optimizer_keys)
{
    qat_recipe *r = parse("[train]\noptimizer = rmsprop\nschedule = piecewise\n"
                          "milestones = 100 ,50% , 2.5 epochs\n[distill]\nteacher = t.ckpt\n");
    ck_assert_int_eq(r->train.optimizer, QAT_OPTIMIZER_RMSPROP);
    ck_assert_int_eq(r->train.schedule, QAT_SCHEDULE_PIECEWISE);
    ck_assert_int_eq(r->train.milestones.n, 3);
    ck_assert_int_eq(qat_steps_resolve(&r->train.milestones.v[0], 10, 80, 0), 100);
    ck_assert_int_eq(qat_steps_resolve(&r->train.milestones.v[1], 10, 80, 0), 40);
    ck_assert_int_eq(qat_steps_resolve(&r->train.milestones.v[2], 10, 80, 0), 25);
    ck_assert(isnan(r->train.epsilon));
    ck_assert_str_eq(r->distill.teacher, "t.ckpt");
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_profile_onnx)
{
    refuse("[quant]\nprofile = onnx\nfraction = 4\n",
           "r.ini:3: quant.fraction = 4 cannot be combined with quant.profile = onnx: sums of ONNX "
           "Runtime have no fractional bits");
    refuse(
        "[quant]\nenabled = yes\nlayout = int8\nprofile = onnx\nactivation_bits = 16\n",
        "r.ini:4: quant.profile = onnx cannot be combined with quant.activation_bits = 16: 16-bit "
        "activations are TensorFlow Lite's, which have int8 weights and its roundings; their "
        "scales are observed");
}
END_TEST

/** What forward = integer cannot do is refused by its key, in [quant] and in single layers. */
START_TEST(test_integer_forward)
{
#define INTEGER "[quant]\nenabled = yes\nforward = integer\n"
    refuse(INTEGER "weight_ranges = inq\n",
           "r.ini:4: quant.weight_ranges = inq cannot be combined with quant.forward = integer: "
           "with none and inq some values have no code, and with fgq a channel has several "
           "scales");
    refuse(INTEGER "ranges = ema\nactivation_ranges = none\n",
           "r.ini:5: quant.activation_ranges = none cannot be combined with quant.forward = "
           "integer: with none and inq some values have no code, and with fgq a channel has "
           "several scales");
    refuse(INTEGER "[quant.layer a*]\nweight_bits = 4\nfloat = yes\n",
           "r.ini:4: [quant.layer a*] float = yes cannot be combined with quant.forward = integer");
    refuse(INTEGER "[quant.layer a*]\nweight_ranges = fgq\n",
           "r.ini:4: [quant.layer a*] weight_ranges = fgq cannot be combined with quant.forward = "
           "integer");
    qat_recipe_free(parse(INTEGER "[quant.layer a*]\nweight_bits = 4\nranges = ema\n"));
    qat_recipe_free(parse(INTEGER "dampen = 0.1\nfreeze_threshold = 0.1\n"
                                  "weight_bits = 4\nweight_bits_schedule = 8 until 10\n"));
    qat_recipe_free(parse(INTEGER "ranges = tqt\npower_of_two = yes\n"
                                  "[quant.layer a*]\nranges = lsq\n"));
    static const char *const schemes[] = {"dorefa", "weight_norm", "apot", "bwn", "twn"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        char text[128];
        snprintf(text, sizeof text, INTEGER "weight_ranges = %s\n", schemes[i]);
        qat_recipe_free(parse(text));
    }
    qat_recipe_free(parse("[quant]\nforward = integer\nranges = tqt\n"));
#undef INTEGER
}
END_TEST

/** Keys that are wrong only together. The message has the line of one and the values of both. */
START_TEST(test_clashes)
{
    refuse("[train]\nbatch = 16\nshards = 17\n",
           "r.ini:3: train.shards = 17 cannot be combined with train.batch = 16: each part of a "
           "batch has at least one sample");
    refuse("[train]\nasynchronous = yes\nshards = 2\n",
           "r.ini:2: train.asynchronous = yes cannot be combined with train.shards = 2: each rank "
           "takes whole batches");
    refuse("[train]\nnesterov = yes\noptimizer = adamw\n",
           "r.ini:2: train.nesterov = yes cannot be combined with train.optimizer = adamw: only "
           "sgd has Nesterov's momentum");
    refuse("[train]\ninitial_accumulator = 0.5\n",
           "r.ini:2: train.initial_accumulator = 0.5 cannot be combined with train.optimizer = "
           "sgd: only "
           "rmsprop and adagrad use it");
    refuse("[train]\nclip_norm = 1\nclip_value = 0.5\n",
           "r.ini:3: train.clip_value = 0.5 cannot be combined with train.clip_norm = 1: clip by "
           "the norm "
           "or by value, not by both");
    refuse("[train]\n\nschedule = piecewise\n", "r.ini:3: train.schedule = piecewise cannot be "
                                                "combined with train.milestones = : give at least "
                                                "one step");
    refuse("[train]\nmilestones = 50%\n", "r.ini:2: train.milestones = 50% cannot be combined with "
                                          "train.schedule = cosine: milestones "
                                          "need schedule = piecewise");
    refuse("[train]\naverage_ramp = yes\n", "r.ini:2: train.average_ramp = yes cannot be combined "
                                            "with train.average_decay = 0: there is no "
                                            "average without average_decay");
    refuse("[train]\nmilestones = 1, never\n", "r.ini:2: train.milestones = 1, never: expected at "
                                               "most 6 numbers of steps, for example 1200, "
                                               "'2.5 epochs' or '60%'");
    refuse("[data]\ncrop_area = 0.5, 0.2\n",
           "r.ini:2: data.crop_area = 0.5, 0.2: expected a least and a largest value");
    refuse("[data]\ncrop_aspect = 1, 2, 3\n",
           "r.ini:2: data.crop_aspect = 1, 2, 3: expected a least and a largest value");
    const char *sets[] = {"train.optimizer=adam", "train.nesterov=yes"};
    qat_recipe *r;
    qat_error err;
    ck_assert_int_eq(qat_recipe_parse(&r, "", "r.ini", sets, 2, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message,
                     "--set train.nesterov=yes: train.nesterov = yes cannot be combined with "
                     "train.optimizer = adam: only sgd has Nesterov's momentum");
    ck_assert_int_eq(qat_recipe_parse(&r, "[train]\nnesterov = yes\n", "r.ini", sets, 1, &err),
                     QAT_ERR_ARGUMENT); /* the file's own line */
    ck_assert_ptr_nonnull(
        strstr(err.message, "r.ini:2: train.nesterov = yes cannot be combined with"));
    ck_assert_int_eq(qat_recipe_parse(&r, "[train]\nnesterov = no\n", "r.ini", sets, 2, &err),
                     QAT_ERR_ARGUMENT); /* what replaces a line is not that line's fault */
    ck_assert_ptr_nonnull(strstr(err.message, "--set train.nesterov=yes: train.nesterov = yes"));
}
END_TEST

/* ------------------------------------------------------------------ keys without effect */

typedef struct told {
    int lines;
    char text[2048];
} told;

static void note_line(void *context, const char *text)
{
    told *t = context;
    size_t const n = strlen(t->text);
    t->lines++;
    snprintf(t->text + n, sizeof t->text - n, "%s\n", text);
}

/** What is told of a recipe. */
static told idle_of(const char *text, const char *const *sets, int n_sets)
{
    told t = {0};
    qat_log const log = {note_line, &t};
    qat_recipe *r;
    qat_error err;
    ck_assert_msg(!qat_recipe_parse(&r, text, "r.ini", sets, n_sets, &err), "%s", err.message);
    ck_assert_int_eq(qat_recipe_tell_idle(r, &log, &err), QAT_OK);
    qat_recipe_free(r);
    return t;
}

/**
 * Keys without effect, each in a recipe of its own: the section, the key, and the setting that
 * would give it an effect.
 */
static const struct idle {
    const char *section, *key, *with;
} idles[] = {
    {"train", "init_skip = logits", "init = a.ckpt"},
    {"train", "init_map = a:b", "init = a.ckpt"},
    {"train", "epochs = 3", "batch = 8"},
    {"train", "sync_batch_norm = no", "shards = 2"},
    {"train", "factor = 0.5", "schedule = staircase"},
    {"train", "every = 3 epochs", "schedule = exponential"},
    {"train", "final_lr = 0.1", "schedule = polynomial"},
    {"train", "power = 2", "schedule = polynomial"},
    {"train", "momentum = 0.5", "optimizer = rmsprop"},
    {"train", "rms_decay = 0.5", "optimizer = rmsprop"},
    {"train", "beta1 = 0.5", "optimizer = adamw"},
    {"train", "epsilon = 1", "optimizer = adam"},
    {"distill", "temperature = 2", "teacher = a.ckpt"},
    {"distill", "weight = 0.3", "teacher = a.ckpt"},
    {"quant", "forward = integer", "enabled = yes"},
    {"quant", "quant_delay = 3", "enabled = yes"},
    {"quant", "ema_decay = 0.5", "enabled = yes"},
    {"quant", "range_rate = 10", "enabled = yes\nranges = tqt"},
    {"quant", "learn_delay = 10", "enabled = yes\nactivation_ranges = pact"},
    {"model", "depth = 26", "arch = resnet"},
    {"model", "multiplier = 0.5", "arch = mobilenet_v2"},
    {"detect", "nms_iou = 0.5", "max_detections = 100"},
    {"quant", "inq_stages = 1, 2, 3, 4", "enabled = yes\nranges = inq"},
    {"quant", "inq_stages = 1, 2, 3, 4", "enabled = yes\n[quant.layer conv*]\nweight_ranges = inq"},
    {"quant", "weight_bits_schedule = 8 until 5, 4 until 9", "enabled = yes\nweight_bits = 2"},
    {"quant", "activation_bits_schedule = 8 until 5", "enabled = yes\ninput_bits = 4"},
    {"quant", "activation_bits_schedule = 8 until 5",
     "enabled = yes\n[quant.layer conv*]\nactivation_bits = 4"},
    {"quant", "freeze_share = 0.1", "enabled = yes\nfreeze_threshold = 0.1\nweight_bits = 4"},
    {"quant", "freeze_threshold = 0.1", "enabled = yes\nweight_bits = 4"},
    {"quant", "freeze_threshold = 0.1", "enabled = yes\n[quant.layer conv*]\nweight_bits = 2"},
    {"data", "crop_aspect = 0.5, 2", "crop_area = 0.5"},
    {"data", "one_class = yes", "kind = scenes"},
    {"data", "value = age", "kind = table"},
    {"attributes", "value = l2", "[data]\nkind = table\nvalue = age"},
    {"attributes", "within = 3", "[data]\nkind = faces"},
    {"quant", "dampen = 0.1", "enabled = yes"},
    {"quant", "dampen = 0.1", "enabled = yes\nranges = tqt\n[quant.layer a]\nranges = dorefa"},
    {"quant", "freeze_threshold = 0.1", "enabled = yes\n[budget]\nflash = 1M"},
    {"quant", "weight_bits_schedule = 8 until 5", "enabled = yes\n[budget]\nflash = 1M"},
    {"quant", "power_of_two = yes", "enabled = yes"},
    {"data", "jpeg_scale = auto", "kind = folder"},
    {"regression", "loss = l1", "[data]\nkind = tones"},
};

/** Keys that these networks, kinds or settings make idle: a whole recipe each, and what is told. */
static const struct idle_with {
    const char *text, *says;
} idles_with[] = {
    {"[quant]\ninq_stages = 1, 2, 3, 4\n", "inq_stages has no effect without quant.e"},
    {"[quant]\nweight_bits_schedule = 8 until 5\n", "without quant.enabled = yes"},
    {"[quant]\nlearn_delay = 5\n", "learn_delay has no effect without quant.enabled = yes"},
    {"[quant]\nactivation_bits = 4\n", "has no effect on the training without quant.enabled = yes"},
    {"[quant]\nenabled = yes\nweight_bits = 4\nweight_ranges = bwn\n",
     "weight_bits has no effect with quant.weight_ranges = bwn or twn"},
    {"[quant]\nenabled = yes\nactivation_bits = 4\nactivation_ranges = none\n",
     "activation_bits has no effect with quant.activation_ranges = none"},
    {"[quant]\nactivation_bits_schedule = 8 until 5\ninput_bits = 4\n", "without quant.enabled"},
    {"[quant]\nenabled = yes\ndampen = 1\nweight_ranges = dorefa\n",
     "dampen has no effect with weights by dorefa"},
    {"[quant]\nenabled = yes\nweight_bits_schedule = 8 until 5\nweight_ranges = twn\n",
     "weight_bits_schedule has no effect with quant.weight_ranges = bwn or twn"},
    {"[quant]\nenabled = yes\nactivation_bits_schedule = 8 until 5\ninput_bits = 4\n"
     "activation_ranges = none\n",
     "activation_bits_schedule has no effect with quant.activation_ranges = none"},
    {"[quant]\nenabled = yes\n[quant.layer conv*]\nper_channel = no\n",
     "r.ini:4: [quant.layer conv*] per_channel has no effect with quant.layout = uint8"},
    {"[quant]\nenabled = yes\nlayout = int8\n[quant.layer conv*]\nsymmetric = yes\n",
     "r.ini:5: [quant.layer conv*] symmetric has no effect with quant.layout = int8"},
    {"[data]\njpeg_scale = auto\nkind = coco\n", "data.jpeg_scale has no effect without"},
    {"[data]\njpeg_scale = auto\nkind = wav\n", "data.jpeg_scale has no effect without"},
    {"[model]\narch = mobilenet_ssd\ndropout = 0.1\n", "dropout has no effect with a detector"},
    {"[model]\narch = mobilenet_ssd\noutput = softmax\n", "output has no effect with a detector"},
    {"[train]\nlabel_smoothing = 0.1\n[model]\narch = mobilenet_ssd\n", "with a detector"},
    {"[model]\narch = mlp\nbatch_norm = no\n", "batch_norm has no effect with model.arch = mlp"},
    {"[model]\narch = mlp\nbn_epsilon = 0.1\n", "bn_epsilon has no effect with model.arch = mlp"},
    {"[model]\nbatch_norm = no\nbn_momentum = 0.5\n", "bn_momentum has no effect with model.batch"},
    {"[model]\nonnx = a.onnx\nbn_epsilon = 0.1\n", "bn_epsilon has no effect with model.onnx"},
    {"[model]\nonnx = a.onnx\nactivation = relu6\n", "activation has no effect with model.onnx"},
    {"[model]\ntflite = a.tflite\nbatch_norm = no\n", "batch_norm has no effect with model.onnx"},
    {"[model]\nonnx = a.onnx\ndropout = 0.1\n", "dropout has no effect with a detector"},
};

START_TEST(test_idle_with)
{
    const struct idle_with *i = &idles_with[_i];
    told const t = idle_of(i->text, NULL, 0);
    ck_assert_msg(t.lines == 1 && strstr(t.text, i->says), "%s", t.text);
}
END_TEST

START_TEST(test_idle_keys)
{
    const struct idle *i = &idles[_i];
    char text[256], message[256];
    const char *idle_train = !strcmp(i->key, "epochs = 3")  ? "steps = 5\n"
                             : strstr(i->with, "optimizer") ? "optimizer = adagrad\n"
                             : strstr(i->with, "schedule")  ? "schedule = constant\n"
                                                            : "";
    snprintf(text, sizeof text, "[%s]\n%s\n%s", i->section, i->key,
             strcmp(i->section, "train") ? "" : idle_train);
    told t = idle_of(text, NULL, 0);
    ck_assert_msg(t.lines == 1, "%s: %s", i->key, t.text);
    snprintf(message, sizeof message, "r.ini:2: %s.%.*s has no effect with", i->section,
             (int)strcspn(i->key, " "), i->key);
    ck_assert_msg(strstr(t.text, message) != NULL, "%s: %s", message, t.text);
    bool const detects = !strcmp(i->section, "detect");
    snprintf(text, sizeof text, "%s[%s]\n%s\n%s\n",
             detects ? "[model]\narch = mobilenet_ssd\n" : "", i->section, i->key, i->with);
    t = idle_of(text, NULL, 0);
    ck_assert_msg(t.lines == 0, "%s", t.text);
}
END_TEST

/**
 * A default value gives no warning, and the canonical text has all defaults. --set is named as the
 * source.
 */
START_TEST(test_idle_defaults_and_sets)
{
    static const char *const set[] = {"distill.weight=0.25"};
    qat_recipe *r = parse("[train]\nlr = 0.1\n");
    char *text;
    ck_assert_int_eq(qat_recipe_write(r, &text, NULL), QAT_OK);
    ck_assert_int_eq(idle_of(text, NULL, 0).lines, 0);
    free(text);
    qat_recipe_free(r);
    told const t = idle_of("[distill]\nweight = 0.5\n", set, 1);
    ck_assert_str_eq(t.text, "--set distill.weight=0.25: distill.weight has no effect without "
                             "distill.teacher\n");
    static const char *const off[] = {"quant.enabled=no"}; /* on purpose */
    ck_assert_int_eq(
        idle_of("[quant]\nenabled = yes\nranges = lsq\nquant_delay = 5\nlearn_delay = 6\n", off, 1)
            .lines,
        0);
}
END_TEST

/** Where one layer's weights have bits of their choice, the key has an effect. */
START_TEST(test_idle_bits)
{
    told const t = idle_of("[quant]\nenabled = yes\nweight_bits = 4\nweight_ranges = bwn\n"
                           "[quant.layer a]\nranges = tqt\n",
                           NULL, 0);
    ck_assert_msg(t.lines == 0, "%s", t.text);
}
END_TEST

/** A value that is not learned needs nothing. */
START_TEST(test_idle_values)
{
    told t = idle_of("[data]\nkind = faces\n[attributes]\nvalue = none\nhigh = 90\nsteps = 9\n",
                     NULL, 0);
    ck_assert_msg(t.lines == 2 && strstr(t.text, "attributes.steps has no effect without a value"),
                  "%s", t.text);
    t = idle_of("[data]\nkind = table\n[attributes]\nvalue = l2\nvalue_weight = 2\n", NULL, 0);
    ck_assert_msg(t.lines == 2 && strstr(t.text, "r.ini:4: attributes.value has no effect without"),
                  "%s", t.text);
}
END_TEST

/** Checkpoints of runs that do not use younger keys keep their bytes; the others say what they use.
 */
START_TEST(test_young_keys)
{
    char *text;
    qat_recipe *r = parse("[train]\nlr = 0.1\nshards = 1\n");
    ck_assert_int_eq(qat_recipe_write_run(r, &text, NULL), QAT_OK);
    ck_assert(!strstr(text, "\nshards =") && !strstr(text, "\nsync_batch_norm =") &&
              !strstr(text, "\nasynchronous =") && !strstr(text, "\njpeg_scale ="));
    free(text);
    qat_recipe_free(r);
    r = parse("[train]\nasynchronous = yes\n");
    ck_assert_int_eq(qat_recipe_write_run(r, &text, NULL), QAT_OK);
    ck_assert(strstr(text, "\nasynchronous = yes\n"));
    free(text);
    qat_recipe_free(r);
    r = parse("[data]\njpeg_scale = auto\n");
    ck_assert_int_eq(qat_recipe_write_run(r, &text, NULL), QAT_OK);
    ck_assert(strstr(text, "\njpeg_scale = auto\n"));
    free(text);
    qat_recipe_free(r);
    r = parse("[train]\nshards = 4\nsync_batch_norm = no\n");
    ck_assert_int_eq(qat_recipe_write_run(r, &text, NULL), QAT_OK);
    ck_assert(strstr(text, "\nshards = 4\n") && strstr(text, "\nsync_batch_norm = no\n"));
    free(text);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_canonical)
{
    qat_recipe *r = parse("[train]\nlr = 0.1\nwarmup = 2.50 epochs\n[model]\narch = layers\n"
                          "filters = 8,16\n[data]\nmean = 0.1,0.2,0.3\n[quant]\nquant_delay = 33%\n"
                          "[layer.x]\nop = conv2d\nfilters = 4\n");
    char *first, *second;
    ck_assert_int_eq(qat_recipe_write(r, &first, NULL), QAT_OK);
    qat_recipe *again = parse(first);
    ck_assert_int_eq(qat_recipe_write(again, &second, NULL), QAT_OK);
    ck_assert_str_eq(first, second);
    ck_assert_ptr_nonnull(strstr(first, "warmup = 2.5 epochs\n"));
    ck_assert_ptr_nonnull(strstr(first, "mean = 0.1, 0.2, 0.3\n"));
    ck_assert_ptr_nonnull(strstr(first, "[layer.x]\nop = conv2d\nfilters = 4\n"));
    ck_assert_int_eq(qat_recipe_same_run(r, again, NULL), QAT_OK);
    free(first);
    free(second);
    qat_recipe_free(r);
    qat_recipe_free(again);
}
END_TEST

START_TEST(test_longest_canonical_line)
{
    char text[512] = "[model]\narch = convnet\nfilters = 65536";
    for (int i = 1; i < QAT_LIST_MAX; i++)
        strcat(text, ",65536");
    qat_recipe *r = parse(text);
    char *written;
    ck_assert_int_eq(qat_recipe_write(r, &written, NULL), QAT_OK);
    qat_recipe *again = parse(written);
    ck_assert_int_eq(again->model.filters.n, QAT_LIST_MAX);
    free(written);
    qat_recipe_free(r);
    qat_recipe_free(again);
    strcpy(text, "[train]\nschedule = piecewise\nmilestones = 1.2345678901234567e-5epochs");
    for (int i = 1; i < QAT_MAX_MILESTONES; i++)
        strcat(text, ",1.2345678901234567e-5epochs");
    r = parse(text);
    ck_assert_int_eq(qat_recipe_write(r, &written, NULL), QAT_OK);
    again = parse(written);
    ck_assert_int_eq(again->train.milestones.n, QAT_MAX_MILESTONES);
    free(written);
    qat_recipe_free(r);
    qat_recipe_free(again);
}
END_TEST

START_TEST(test_same_run)
{
    qat_recipe *a = parse("[train]\nlr = 0.1\nthreads = 1\n[layer.x]\nop = relu\n");
    qat_recipe *b = parse("[train]\nlr = 0.1\nthreads = 2\n[layer.x]\nop = relu\n");
    qat_recipe *c = parse("[train]\nlr = 0.2\n[layer.x]\nop = relu\n");
    qat_recipe *d = parse("[train]\nlr = 0.1\n[layer.x]\nop = tanh\n");
    qat_error err;
    ck_assert_int_eq(qat_recipe_same_run(a, b, &err), QAT_OK);
    ck_assert_int_eq(qat_recipe_same_run(a, c, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(
        err.message,
        "train.lr is '0.2', but in the checkpoint's recipe '0.1': it is not the same run");
    ck_assert_int_eq(qat_recipe_same_run(a, d, &err), QAT_ERR_ARGUMENT);
    ck_assert_str_eq(err.message,
                     "[layer.x] differs from the checkpoint's recipe: it is not the same run");
    qat_recipe_free(a);
    qat_recipe_free(b);
    qat_recipe_free(c);
    qat_recipe_free(d);
}
END_TEST

START_TEST(test_keys_text)
{
    char *text;
    int n;
    const qat_key *k = qat_recipe_keys(&n);
    ck_assert_int_eq(qat_recipe_keys_text(&text, NULL), QAT_OK);
    for (int i = 0; i < n; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s = %s  (", k[i].name, k[i].initial);
        ck_assert_msg(strstr(text, line) != NULL, "%s", line);
        ck_assert_msg(k[i].meaning && *k[i].meaning, "%s", k[i].name);
    }
    free(text);
}
END_TEST

START_TEST(test_paths)
{
    char text[64];
    qat_error err;
    setenv("QAT_DATA", "/data", 1);
    ck_assert_int_eq(qat_expand_path("${QAT_DATA}/x", text, sizeof text, &err), QAT_OK);
    ck_assert_str_eq(text, "/data/x");
    unsetenv("QAT_DATA");
    ck_assert_int_eq(qat_expand_path("${QAT_DATA}/x", text, sizeof text, &err), QAT_OK);
    ck_assert_str_eq(text, "../shared/data/x");
    ck_assert_int_eq(qat_expand_path("plain", text, sizeof text, &err), QAT_OK);
    ck_assert_str_eq(text, "plain");
    ck_assert_int_eq(qat_expand_path("${HOME}/x", text, sizeof text, &err), QAT_ERR_ARGUMENT);
    ck_assert_int_eq(qat_expand_path("a/long/path", text, 5, &err), QAT_ERR_ARGUMENT);
}
END_TEST

START_TEST(test_files)
{
    qat_recipe *r;
    qat_error err;
    ck_assert_int_eq(qat_recipe_load(&r, "no/such.ini", NULL, 0, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "no/such.ini"));
}
END_TEST

/** Every recipe of the repository can be read, and each of its keys has an effect. */
START_TEST(test_shipped)
{
    const char *root = getenv("QAT_SOURCE_ROOT");
    char pattern[512];
    glob_t found;
    told t = {0};
    qat_log const log = {note_line, &t};
    snprintf(pattern, sizeof pattern, "%s/recipes/*.ini", root ? root : ".");
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    snprintf(pattern, sizeof pattern, "%s/recipes/*/*.ini", root ? root : ".");
    glob(pattern, GLOB_APPEND, NULL, &found);
    ck_assert_uint_ge(found.gl_pathc, 8);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        qat_recipe *r;
        qat_error err;
        ck_assert_msg(!qat_recipe_load(&r, found.gl_pathv[i], NULL, 0, &err), "%s", err.message);
        ck_assert_int_eq(qat_recipe_tell_idle(r, &log, &err), QAT_OK);
        ck_assert_msg(t.lines == 0, "%s", t.text);
        qat_recipe_free(r);
    }
    globfree(&found);
}
END_TEST

START_TEST(test_out_of_memory)
{
    const char *set = "train.lr=0.5";
    long n = 0;
    bool failed;
    do {
        qat_recipe *r;
        char *text = NULL;
        test_fail_alloc_after(n++);
        qat_status st =
            qat_recipe_parse(&r, "[data]\npath = x\n[layer.a]\nop = relu\n[layer.b]\nop = tanh\n",
                             "r.ini", &set, 1, NULL);
        if (!st)
            st = qat_recipe_write(r, &text, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        free(text);
        qat_recipe_free(r);
    } while (failed);
    ck_assert_int_gt(n, 3);
}
END_TEST

/* A recipe is written into checkpoints, from which it must be read again: --set makes no section
 * and no key that a file cannot have. */
START_TEST(test_sets_that_no_file_can_have)
{
    static const struct {
        const char *set, *message;
    } sets[] = {
        {"quant.layer aaaaaaaaaabbbbbbbbbbccccccccccdddddddd.weight_bits=4",
         ": the pattern has 38 characters, but at most 37 are possible"},
        {"quant.layer a ;b.weight_bits=4", ": the pattern contains ' ;', which starts a comment"},
        {"layer.a.b:c=1", ": 'b:c' cannot be the name of a key"},
        {"layer.a.;=1", ": ';' cannot be the name of a key"}};
    char expected[256];
    qat_recipe *r;
    qat_error err;
    snprintf(expected, sizeof expected, "--set %s%s", sets[_i].set, sets[_i].message);
    ck_assert_int_eq(qat_recipe_parse(&r, "[layer.a]\n", "r.ini", &sets[_i].set, 1, &err),
                     QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(r);
    ck_assert_str_eq(err.message, expected);
}
END_TEST

/** A text of `n` lines made by `line`, after `before`; free() it. */
static char *many_lines(const char *before, const char *line, int n)
{
    enum { LINE = 80 };
    size_t const most = strlen(before) + (size_t)n * LINE + 1;
    char *text = malloc(most);
    ck_assert_ptr_nonnull(text);
    size_t at = (size_t)snprintf(text, most, "%s", before);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, most - at, line, i);
    return text;
}

/* Names are compared one by one: without limits one megabyte of them took 47 seconds. The limits
 * are LAYERS_MAX, QAT_QUANT_LAYERS_MAX, ENTRIES_MAX and TEXT_BYTES_MAX. */
START_TEST(test_too_many_names)
{
    static const struct {
        const char *before, *line;
        int n;
        const char *message;
    } texts[] = {
        {"", "[layer.l%d]\n", 8193, "r.ini:8193: more than 8192 sections [layer.NAME]"},
        {"", "[quant.layer l%d]\n", 257, "r.ini:257: more than 256 sections [quant.layer PATTERN]"},
        {"[layer.a]\n", "k%d = 1\n", 65, "r.ini:66: k64: more than 64 keys in one section"},
        {"", ";%060d\n", 70000, "r.ini: a recipe of more than 4194304 bytes"}};
    char *text = many_lines(texts[_i].before, texts[_i].line, texts[_i].n);
    refuse(text, texts[_i].message);
    free(text);
}
END_TEST

/** Every kind of key as text and as a number. */
/** Sizes with letters: of bytes by 1024, of counts by 1000. */
START_TEST(test_budget)
{
    char text[QAT_RECIPE_VALUE_MAX];
    qat_recipe *r = parse("[budget]\nflash = 32K\nram = 1M\nmacs_bits = 3G\n"
                          "weight_bits = 8, 3\nactivation_bits =\nkeep = @first, a/*\n");
    ck_assert_int_eq(r->budget.flash, 32 * 1024);
    ck_assert_int_eq(r->budget.ram, 1024 * 1024);
    ck_assert_int_eq(r->budget.macs_bits, INT64_C(3000000000));
    ck_assert_double_eq(qat_recipe_number(r, "budget.macs_bits"), 3e9);
    ck_assert_str_eq(qat_recipe_get(r, "budget.flash", text), "32768");
    ck_assert_int_eq(r->budget.weight_bits.n, 2);
    ck_assert_int_eq(r->budget.activation_bits.n, 0);
    qat_recipe_free(r);
    refuse("[budget]\nflash = 32k\n",
           "r.ini:2: budget.flash = 32k: expected bytes in 0..2147483647, such as 32K or 1M");
    refuse("[budget]\nram = 1G\n",
           "r.ini:2: budget.ram = 1G: expected bytes in 0..2147483647, such as 32K or 1M");
    refuse("[budget]\nflash = 4096M\n",
           "r.ini:2: budget.flash = 4096M: expected bytes in 0..2147483647, such as 32K or 1M");
    refuse("[budget]\nmacs_bits = 9999999999999999G\n",
           "r.ini:2: budget.macs_bits = 9999999999999999G: expected an integer in "
           "0..9000000000000000, such as 2500K, 40M or 3G");
    refuse("[budget]\nweight_bits = 4, 9\n",
           "r.ini:2: budget.weight_bits = 4, 9: expected at most 24 integers in 2..8, separated by "
           "commas");
    refuse("[budget]\nactivation_bits = 4, 8, 4\n",
           "r.ini:2: budget.activation_bits = 4,8,4: 4 is given twice");
}
END_TEST

START_TEST(test_ask)
{
    char text[QAT_RECIPE_VALUE_MAX];
    qat_recipe *r =
        parse("[data]\nkind = shapes\n[train]\nlr = 0.25\nsteps = 70\nevery = 2 epochs\n"
              "[output]\ndir = here\nbest = no\n");
    ck_assert_str_eq(qat_recipe_get(r, "data.kind", text), "shapes");
    ck_assert_str_eq(qat_recipe_get(r, "train.every", text), "2 epochs");
    ck_assert_str_eq(qat_recipe_get(r, "output.dir", text), "here");
    ck_assert_double_eq(qat_recipe_number(r, "data.kind"), r->data.kind);
    ck_assert_double_eq(qat_recipe_number(r, "train.lr"), 0.25);
    ck_assert_double_eq(qat_recipe_number(r, "train.steps"), 70);
    ck_assert_double_eq(qat_recipe_number(r, "output.best"), 0);
    ck_assert(isnan(qat_recipe_number(r, "quant.input_min")));
    static const char *const no_numbers[] = {"output.dir", "train.every", "train.stepz", "steps",
                                             ""};
    for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++)
        ck_assert(isnan(qat_recipe_number(r, no_numbers[i])));
    ck_assert_ptr_null(qat_recipe_get(r, "train.stepz", text));
    ck_assert_ptr_null(qat_recipe_get(r, ".steps", text));
    ck_assert_str_eq(qat_recipe_source(r), "r.ini");
    qat_recipe_free(r);
}
END_TEST

static char *written(const qat_recipe *r)
{
    char *text = NULL;
    ck_assert_int_eq(qat_recipe_write(r, &text, NULL), QAT_OK);
    return text;
}

/** A key that is set gives the recipe that a file with this line gives; a refused one changes
 * nothing. */
START_TEST(test_set)
{
    static const char lines[] = "[model]\narch = resnet20\n[train]\nsteps = 7\n";
    static const char *const refused[][2] = {{"train.steps", "many"},
                                             {"train.stepz", "1"},
                                             {"model.depth", "32"},
                                             {"train.schedule", "plateaux"},
                                             {"quant.weight_bits", "9"}};
    qat_error err;
    qat_recipe *r = parse(lines), *same = parse("[model]\narch = mlp\n[train]\nsteps = 100\n");
    char *before = written(r), *want = written(same);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_int_eq(qat_recipe_set(r, refused[i][0], refused[i][1], &err), QAT_ERR_ARGUMENT);
        ck_assert_msg(strstr(err.message, refused[i][0]) != NULL, "%s", err.message);
        char *after = written(r);
        ck_assert_str_eq(after, before);
        free(after);
    }
    ck_assert_int_eq(qat_recipe_set(r, "train.steps", "100", &err), QAT_OK);
    ck_assert_msg(qat_recipe_set(r, "model.arch", "mlp", &err) == QAT_OK, "%s", err.message);
    char *after = written(r); /* nothing of resnet20 is left */
    ck_assert_str_eq(after, want);
    free(after);
    free(want);
    free(before);
    qat_recipe_free(same);
    qat_recipe_free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recipe");
    TCase *tc = tcase_create("recipe");
    tcase_add_test(tc, test_defaults);
    tcase_add_test(tc, test_budget);
    tcase_add_test(tc, test_ask);
    tcase_add_test(tc, test_set);
    tcase_add_test(tc, test_values);
    tcase_add_test(tc, test_unknown_names);
    tcase_add_test(tc, test_nearest_keys);
    tcase_add_test(tc, test_nearest_sections);
    tcase_add_test(tc, test_bad_values);
    tcase_add_test(tc, test_lines);
    tcase_add_test(tc, test_layer_sections);
    tcase_add_test(tc, test_quant_layer_sections);
    tcase_add_test(tc, test_many_layers);
    tcase_add_test(tc, test_sets);
    tcase_add_test(tc, values_that_a_line_cannot_hold);
    tcase_add_test(tc, semicolons_inside_words_stay);
    tcase_add_test(tc, test_optimizer_keys);
    tcase_add_test(tc, test_clashes);
    tcase_add_loop_test(tc, test_idle_keys, 0, (int)(sizeof idles / sizeof *idles));
    tcase_add_loop_test(tc, test_idle_with, 0, (int)(sizeof idles_with / sizeof *idles_with));
    tcase_add_test(tc, test_idle_defaults_and_sets);
    tcase_add_test(tc, test_idle_bits);
    tcase_add_test(tc, test_idle_values);
    tcase_add_test(tc, test_integer_forward);
    tcase_add_test(tc, test_profile_onnx);
    tcase_add_test(tc, test_young_keys);
    tcase_add_test(tc, test_canonical);
    tcase_add_test(tc, test_longest_canonical_line);
    tcase_add_test(tc, test_same_run);
    tcase_add_test(tc, test_keys_text);
    tcase_add_loop_test(tc, test_sets_that_no_file_can_have, 0, 4);
    tcase_add_loop_test(tc, test_too_many_names, 0, 4);
    tcase_add_test(tc, test_paths);
    tcase_add_test(tc, test_files);
    tcase_add_test(tc, test_shipped);
    tcase_add_test(tc, test_out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
