/*
 * Weights in PyTorch's layout. A network is computed here in PyTorch's order [N, C, H, W], with
 * loops that share nothing with the library, and by the library after train.init. Also what is
 * refused, and torchvision's names.
 */
#include "base/parallel.h"
#include "checkpoint/restore.h"
#include "common/suite.h"
#include "common/temp.h"
#include "networks/torchvision.h"
#include "qat/train.h"
#include "recipe/recipe.h"
#include "unit/networks/network_build.h"
#include "unit/train/npz_write.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char told[8192]; /* what the log said */

static void tell(void *context, const char *text)
{
    (void)context;
    size_t const n = strlen(told);
    snprintf(told + n, sizeof told - n, "%s\n", text);
}

/* ------------------------------------------------------------------ a network in PyTorch's order
 */

/** Feature maps [C, H, W]. */
typedef struct map {
    int c, h, w;
    double v[1600];
} map;

static double at(const map *x, int c, int h, int w)
{
    bool const outside = h < 0 || w < 0 || h >= x->h || w >= x->w;
    return outside ? 0 : x->v[(c * x->h + h) * x->w + w];
}

/** Weights [O, C / groups, K, K], bias or NULL. */
static map conv(const map *x, const float *w, const float *b, int out, int kernel, int stride,
                int pad, int groups)
{
    int const depth = x->c / groups;
    map y = {.c = out,
             .h = (x->h + 2 * pad - kernel) / stride + 1,
             .w = (x->w + 2 * pad - kernel) / stride + 1};
    for (int o = 0; o < out; o++)
        for (int i = 0; i < y.h; i++)
            for (int j = 0; j < y.w; j++) {
                double sum = b ? (double)b[o] : 0;
                for (int c = 0; c < depth; c++)
                    for (int k = 0; k < kernel * kernel; k++)
                        sum += (double)w[(o * depth + c) * kernel * kernel + k] *
                               at(x, o / (out / groups) * depth + c, i * stride + k / kernel - pad,
                                  j * stride + k % kernel - pad);
                y.v[(o * y.h + i) * y.w + j] = sum;
            }
    return y;
}

/** Transposed, stride 1: each pixel adds a window of weights [I, O, K, K], of which `pad` is cut
 * off. */
static map transposed(const map *x, const float *w, int out, int kernel, int pad)
{
    map y = {.c = out, .h = x->h + kernel - 1 - 2 * pad, .w = x->w + kernel - 1 - 2 * pad};
    for (int i = 0; i < x->c * x->h * x->w; i++)
        for (int k = 0; k < out * kernel * kernel; k++) {
            int const o = k / (kernel * kernel), c = i / (x->h * x->w);
            int const row = i / x->w % x->h + k / kernel % kernel - pad;
            int const column = i % x->w + k % kernel - pad;
            if (row >= 0 && row < y.h && column >= 0 && column < y.w)
                y.v[(o * y.h + row) * y.w + column] +=
                    x->v[i] * (double)w[c * out * kernel * kernel + k];
        }
    return y;
}

/** gamma, beta, mean, variance; then ReLU. */
static void norm_relu(map *x, float *const p[4])
{
    int const pixels = x->h * x->w;
    for (int i = 0; i < x->c * pixels; i++) {
        int const c = i / pixels;
        double const y = (x->v[i] - (double)p[2][c]) / sqrt((double)p[3][c] + 1e-5);
        x->v[i] = fmax(y * (double)p[0][c] + (double)p[1][c], 0);
    }
}

/** 3x3, stride 2, padding 1: the largest, or the mean of nine values, zeros of the padding among
 *  them. */
static map pool(const map *x, bool max)
{
    map y = {.c = x->c, .h = (x->h - 1) / 2 + 1, .w = (x->w - 1) / 2 + 1};
    for (int i = 0; i < y.c * y.h * y.w; i++) {
        int const c = i / (y.h * y.w), h = i / y.w % y.h, w = i % y.w;
        double most = -INFINITY, sum = 0;
        for (int k = 0; k < 9; k++) {
            int const row = 2 * h + k / 3 - 1, column = 2 * w + k % 3 - 1;
            sum += at(x, c, row, column);
            if (row >= 0 && column >= 0 && row < x->h && column < x->w)
                most = fmax(most, at(x, c, row, column));
        }
        y.v[i] = max ? most : sum / 9;
    }
    return y;
}

static void linear(const double *x, const float *w, const float *b, int in, int out, bool relu,
                   double *y)
{
    for (int o = 0; o < out; o++) {
        y[o] = (double)b[o];
        for (int i = 0; i < in; i++)
            y[o] += (double)w[o * in + i] * x[i];
        y[o] = relu ? fmax(y[o], 0) : y[o];
    }
}

/* ------------------------------------------------------------------ its weights */

enum { SIDE = 28, CLASSES = 10, ARRAYS = 23, FEATURES = 32 };

/** In the order of a state_dict. A 3x3 kernel of 3 channels and a square matrix fit both ways. */
static const struct {
    const char *name, *shape;
    int count;
} parts[ARRAYS] = {
    {"conv1.weight", "3, 1, 7, 7", 147},
    {"bn1.weight", "3,", 3},
    {"bn1.bias", "3,", 3},
    {"bn1.running_mean", "3,", 3},
    {"bn1.running_var", "3,", 3},
    {"bn1.num_batches_tracked", "", 1},
    {"conv2.weight", "3, 3, 3, 3", 81},
    {"conv2.bias", "3,", 3},
    {"bn2.weight", "3,", 3},
    {"bn2.bias", "3,", 3},
    {"bn2.running_mean", "3,", 3},
    {"bn2.running_var", "3,", 3},
    {"conv3.weight", "6, 1, 3, 3", 54},
    {"conv3.bias", "6,", 6},
    {"conv4.weight", "8, 3, 1, 1", 24},
    {"bn4.weight", "8,", 8},
    {"bn4.bias", "8,", 8},
    {"bn4.running_mean", "8,", 8},
    {"bn4.running_var", "8,", 8},
    {"up.weight", "8, 8, 3, 3", 576},
    {"fc1.weight", "32, 32", 1024},
    {"fc1.bias", "32,", 32},
    {"fc2.weight", "10, 32", 320},
};

static float weights[ARRAYS][1024];
static const int64_t batches = 7;

static void fill_weights(void)
{
    uint32_t state = 12345;
    for (int i = 0; i < ARRAYS; i++)
        for (int k = 0; k < parts[i].count; k++) {
            state = state * 1664525u + 1013904223u;
            float const u = (float)(state >> 8) / (1 << 24);
            bool const positive = strstr(parts[i].name, "running_var") != NULL;
            weights[i][k] = positive ? 0.5F + u : u - 0.5F;
        }
}

static float *part(const char *name)
{
    for (int i = 0; i < ARRAYS; i++)
        if (!strcmp(parts[i].name, name))
            return weights[i];
    ck_abort_msg("no %s", name);
    return NULL;
}

/** All arrays, from `first` on, with a prefix before their names. */
static void write_weights(const char *prefix)
{
    static char names[ARRAYS][80];
    npz_array arrays[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        bool const count = strstr(parts[i].name, "tracked") != NULL;
        snprintf(names[i], sizeof names[i], "%s%s.npy", prefix, parts[i].name);
        arrays[i] = (npz_array){names[i], count ? "<i8" : "<f4", parts[i].shape,
                                count ? (const void *)&batches : weights[i],
                                count ? sizeof batches : (size_t)parts[i].count * sizeof(float)};
    }
    npz_write(folder, "w.npz", arrays, ARRAYS);
}

/** fc2 has no bias in the file: it begins with zeros. */
static void expected(const float *pixels, double y[CLASSES])
{
    static map x;
    static const float zeros[CLASSES] = {0};
    double hidden[FEATURES];
    x = (map){.c = 1, .h = SIDE, .w = SIDE};
    for (int i = 0; i < SIDE * SIDE; i++)
        x.v[i] = (double)pixels[i];
    x = conv(&x, part("conv1.weight"), NULL, 3, 7, 2, 3, 1);
    norm_relu(&x, (float *[]){part("bn1.weight"), part("bn1.bias"), part("bn1.running_mean"),
                              part("bn1.running_var")});
    x = pool(&x, true);
    x = conv(&x, part("conv2.weight"), part("conv2.bias"), 3, 3, 1, 1, 1);
    norm_relu(&x, (float *[]){part("bn2.weight"), part("bn2.bias"), part("bn2.running_mean"),
                              part("bn2.running_var")});
    x = conv(&x, part("conv3.weight"), part("conv3.bias"), 6, 3, 2, 1, 3);
    x = conv(&x, part("conv4.weight"), NULL, 8, 1, 1, 0, 2);
    norm_relu(&x, (float *[]){part("bn4.weight"), part("bn4.bias"), part("bn4.running_mean"),
                              part("bn4.running_var")});
    x = transposed(&x, part("up.weight"), 8, 3, 1);
    x = pool(&x, false);
    ck_assert_int_eq(x.c * x.h * x.w, FEATURES);
    linear(x.v, part("fc1.weight"), part("fc1.bias"), FEATURES, FEATURES, true, hidden);
    linear(hidden, part("fc2.weight"), zeros, FEATURES, CLASSES, false, y);
}

/* ------------------------------------------------------------------ the same as a recipe */

/* clang-format off */
#define DATA "[data]\nkind = digits\ntrain_count = 64\ntest_count = 20\n"
#define CONV(name, more) "[layer." name "]\nop = conv2d\nbatch_norm = yes\nactivation = relu\n" more
static const char network[] =
    DATA "[model]\narch = layers\n[train]\nbatch = 16\nepochs = 0\n"
    CONV("conv1", "filters = 3\nkernel = 7\nstride = 2\npadding = 3\n")
    "[layer.max]\nop = max_pool2d\nkernel = 3\nstride = 2\npadding = 1\n"
    CONV("conv2", "filters = 3\npadding = 1, 1\n")
    "[layer.conv3]\nop = depthwise_conv2d\nmultiplier = 2\nstride = 2\npadding = 1, 1, 1, 1\nbias = yes\n"
    CONV("conv4", "filters = 8\nkernel = 1\ngroups = 2\npadding = valid\n")
    "[layer.up]\nop = transpose_conv2d\nfilters = 8\nstride = 1\npadding = 1\n"
    "[layer.mean]\nop = average_pool2d\nkernel = 3\nstride = 2\npadding = 1\ncount_padding = yes\n"
    "[layer.flat]\nop = flatten\n"
    "[layer.fc1]\nop = fully_connected\nunits = 32\nbias = yes\nactivation = relu\n"
    "[layer.logits]\nop = fully_connected\nunits = 10\nbias = yes\n";
/* clang-format on */

enum { MOST_SETS = 8 };

static qat_status train(const char *text, const char *run, const char *const *sets, qat_error *err)
{
    char dir[TEST_PATH_MAX], file[TEST_PATH_MAX], init[TEST_PATH_MAX + 16];
    const char *all[MOST_SETS + 1];
    qat_log const log = {tell, NULL};
    qat_recipe *r;
    int n = 0;
    snprintf(init, sizeof init, "train.init=%s", test_temp_path(file, folder, "w.npz"));
    all[n++] = init;
    for (; n < MOST_SETS && sets[n - 1]; n++)
        all[n] = sets[n - 1];
    told[0] = 0;
    qat_status st = qat_recipe_parse(&r, text, "torch.ini", all, n, err);
    if (st)
        return st;
    qat_train_options const o = {
        .dir = test_temp_path(dir, folder, run), .log = &log, .overwrite = true};
    st = qat_train(r, &o, NULL, err);
    qat_recipe_free(r);
    return st;
}

#define TRAIN(text, run, ...) train(text, run, (const char *const[]){__VA_ARGS__, NULL}, &err)
#define MUST(call)            ck_assert_msg((call) == QAT_OK, "%s", err.message)
#define SAYS(text)            ck_assert_msg(strstr(told, text) != NULL, "'%s' is not in: %s", text, told)
#define PYTORCH               "train.init_layout=pytorch"

/** The float network of run's checkpoint gives the outputs that were computed above. */
static void check_outputs(const char *run)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_restored *r;
    qat_error err;
    double y[CLASSES], largest = 0;
    MUST(qat_restore(&r, test_temp_path(path, test_temp_path(dir, folder, run), "last.ckpt"), NULL,
                     0, &err));
    MUST(qat_graph_plan(r->float_graph, 1, QAT_PLAN_EVAL, &err));
    qat_graph_init_params(r->float_graph, 0);
    MUST(qat_checkpoint_params(r->checkpoint, r->float_graph, &err));
    float *x = qat_graph_find(r->float_graph, QAT_INPUT_NAME)->value;
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = sinf((float)i * 0.37F) + 0.2F * cosf((float)(i % SIDE));
    expected(x, y);
    qat_graph_forward(r->float_graph, &(qat_run){.mode = QAT_MODE_EVAL});
    const float *ours = qat_graph_output_at(r->float_graph, 0)->value;
    for (int i = 0; i < CLASSES; i++)
        largest = fmax(largest, fabs(y[i]));
    ck_assert(largest > 0.01);
    for (int i = 0; i < CLASSES; i++)
        ck_assert_double_eq_tol((double)ours[i], y[i], 1e-5 * largest);
    qat_restored_free(r);
}

static void setup(void)
{
    test_folder_make();
    network_setup();
    qat_set_threads(2);
    fill_weights();
}

static void teardown(void)
{
    network_teardown();
    test_folder_remove();
}

/* ------------------------------------------------------------------ tests */

/**
 * Matched by order: fc2 is called logits here, and bn1 is conv1/bn. conv2's bias goes into the mean
 * of the batch norm behind it. _i: the training graph is float; quantized, folded at once.
 */
START_TEST(test_by_order)
{
    qat_error err;
    write_weights("");
    MUST(TRAIN(network, "a", PYTORCH, _i ? "quant.enabled=yes" : "quant.enabled=no"));
    SAYS("matched by their order: conv1 -> conv1, bn1 -> conv1/bn, conv2 -> conv2");
    SAYS("fc2 -> logits");
    check_outputs("a");
}
END_TEST

static const char map_rules[] =
    "train.init_map=net.bn1:conv1/bn, net.bn2:conv2/bn, net.bn4:conv4/bn, net.fc2:logits, net.:";

START_TEST(test_by_map)
{
    qat_error err;
    write_weights("net.");
    MUST(TRAIN(network, "a", PYTORCH, map_rules));
    SAYS("PyTorch's names, matched by name");
    check_outputs("a");
}
END_TEST

/** The averages and their count are those of the file. */
START_TEST(test_averages_stay)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_error err;
    qat_checkpoint *c;
    write_weights("");
    MUST(TRAIN(network, "a", PYTORCH, "train.steps=1", "train.lr=0"));
    MUST(qat_checkpoint_load(
        &c, test_temp_path(path, test_temp_path(dir, folder, "a"), "last.ckpt"), &err));
    for (int i = 0; i < c->n_params; i++) {
        if (!strcmp(c->params[i].name, "conv1/bn/ema_steps"))
            ck_assert_float_eq(c->params[i].values[0], 8);
        if (!strcmp(c->params[i].name, "conv4/bn/ema_steps"))
            ck_assert_float_eq(c->params[i].values[0], 1000001);
    }
    qat_checkpoint_free(c);
}
END_TEST

static void check_refused(qat_status st, const qat_error *err, const char *says)
{
    ck_assert_int_eq(st, QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err->message, says) != NULL, "'%s' is not in: %s", says, err->message);
}

START_TEST(test_refused)
{
    qat_error err;
    char set[TEST_PATH_MAX + 16], path[TEST_PATH_MAX];
    write_weights("");
    check_refused(TRAIN(network, "a", "train.lr=0"), &err,
                  "'conv1.weight' is a name of PyTorch's, whose weights have another order: set "
                  "train.init_layout = pytorch");
    check_refused(TRAIN(network, "a", PYTORCH, "train.init_map=bn1:conv1/bn"), &err,
                  "neither names nor order");
    SAYS("in the file: conv1 [3, 1, 7, 7], conv1/bn (batch norm) [3], conv2 [3, 3, 3, 3]");
    SAYS("in the network: conv1 [3, 7, 7, 1], conv1/bn (batch norm) [3]");
    MUST(TRAIN(network, "a", PYTORCH));
    snprintf(set, sizeof set, "train.init=%s", test_temp_path(path, folder, "a/last.ckpt"));
    check_refused(TRAIN(network, "b", set, PYTORCH), &err, "this is a checkpoint");
    check_refused(TRAIN(network, "b", PYTORCH, "layer.conv2.batch_norm=no"), &err, "neither names");
}
END_TEST

/** Two layers of one shape whose names do not say which is first. */
START_TEST(test_order_that_is_not_certain)
{
    static const float w[2][18] = {{0}};
    static const char two[] =
        DATA "[model]\narch = layers\n[train]\nbatch = 16\nepochs = 0\n"
             "[layer.a]\nop = global_average_pool\n[layer.b]\nop = fully_connected\nunits = 3\n"
             "[layer.c]\nop = fully_connected\nunits = 3\n"
             "[layer.d]\nop = fully_connected\nunits = 3\n"
             "[layer.e]\nop = fully_connected\nunits = 10\n";
    static const struct {
        const char *second, *third;
        bool certain;
    } names[] = {{"net.1.weight.npy", "net.2.weight.npy", true},
                 {"net.9.weight.npy", "net.10.weight.npy", true},
                 {"net.2.weight.npy", "net.1.weight.npy", false},
                 {"fc1.weight.npy", "fc2.weight.npy", true},
                 {"key.weight.npy", "value.weight.npy", false},
                 {"net1.key.weight.npy", "net1.query.weight.npy", false}};
    static const float last[30] = {0};
    qat_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        npz_array const arrays[] = {{"in.weight.npy", "<f4", "3, 1", w[0], 12},
                                    {names[i].second, "<f4", "3, 3", w[0], 36},
                                    {names[i].third, "<f4", "3, 3", w[1], 36},
                                    {"out.weight.npy", "<f4", "10, 3", last, sizeof last}};
        npz_write(folder, "w.npz", arrays, 4);
        qat_status const st = TRAIN(two, "a", PYTORCH);
        if (names[i].certain)
            MUST(st);
        else
            check_refused(st, &err, "neither names nor order");
    }
}
END_TEST

/* ------------------------------------------------------------------ features behind a flatten */

enum { PIXELS = 4, MAPS = 3, FLAT = PIXELS * MAPS };

/** Maps [2, 2, 3], flattened; then `between`; then ten outputs. */
#define FLATTENED(flat, between)                                                                   \
    DATA "[model]\narch = layers\n[train]\nbatch = 16\nepochs = 0\n"                               \
         "[layer.conv]\nop = conv2d\nfilters = 3\nkernel = 14\nstride = 14\npadding = valid\n"     \
         "[layer.flat]\n" flat between "[layer.logits]\nop = fully_connected\nunits = 10\n"

/** Every value of a vector or of a row says where it was: 1, 2, 3 ... */
static void write_flattened(bool norm)
{
    static float kernel[MAPS * 196], rows[CLASSES * FLAT], vector[FLAT];
    for (int i = 0; i < CLASSES * FLAT; i++)
        rows[i] = (float)(1 + i);
    for (int i = 0; i < FLAT; i++)
        vector[i] = (float)(1 + i);
    npz_array const arrays[] = {{"conv.weight.npy", "<f4", "3, 1, 14, 14", kernel, sizeof kernel},
                                {"logits.weight.npy", "<f4", "10, 12", rows, sizeof rows},
                                {"norm.weight.npy", "<f4", "12,", vector, sizeof vector},
                                {"norm.bias.npy", "<f4", "12,", vector, sizeof vector},
                                {"norm.running_mean.npy", "<f4", "12,", vector, sizeof vector},
                                {"norm.running_var.npy", "<f4", "12,", vector, sizeof vector}};
    npz_write(folder, "w.npz", arrays, norm ? 6 : 2);
}

static qat_checkpoint *checkpoint_of(const char *run)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_checkpoint *c;
    qat_error err;
    MUST(qat_checkpoint_load(
        &c, test_temp_path(path, test_temp_path(dir, folder, run), "last.ckpt"), &err));
    return c;
}

static const float *values_of(const qat_checkpoint *c, const char *name)
{
    for (int i = 0; i < c->n_params; i++)
        if (!strcmp(c->params[i].name, name))
            return c->params[i].values;
    ck_abort_msg("the checkpoint has no %s", name);
    return NULL;
}

/** Pixel p of map m is feature m * PIXELS + p in PyTorch, and feature p * MAPS + m here. */
static void check_turned(const qat_checkpoint *c, const char *name, int rows)
{
    const float *v = values_of(c, name);
    for (int i = 0; i < rows * FLAT; i++) {
        int const p = i % FLAT / MAPS, m = i % MAPS;
        ck_assert_msg(v[i] == (float)(1 + i / FLAT * FLAT + m * PIXELS + p), "%s[%d] is %g", name,
                      i, (double)v[i]);
    }
}

/** Quantization rewrites the training graph; the order comes from the float graph. */
static const char *const quantized[][3] = {
    {"quant.enabled=no"},
    {"quant.enabled=yes"},
    {"quant.enabled=yes", "quant.activation_ranges=tqt"},
    {"quant.enabled=yes", "quant.activation_ranges=lsq"},
};

START_TEST(test_batch_norm_behind_flatten)
{
    static const char text[] = FLATTENED("op = flatten\n", "[layer.norm]\nop = batch_norm\n");
    qat_error err;
    write_flattened(true);
    MUST(TRAIN(text, "a", PYTORCH, quantized[_i][0], quantized[_i][1]));
    qat_checkpoint *c = checkpoint_of("a");
    check_turned(c, "logits/weights", CLASSES);
    check_turned(c, "norm/gamma", 1);
    check_turned(c, "norm/beta", 1);
    check_turned(c, "norm/ema_mean", 1);
    check_turned(c, "norm/ema_variance", 1);
    qat_checkpoint_free(c);
}
END_TEST

START_TEST(test_ops_behind_flatten)
{
    static const char *const texts[] = {
        FLATTENED("op = flatten\n", "[layer.act]\nop = relu\n"),
        FLATTENED("op = flatten\n", "[layer.act]\nop = relu\n"
                                    "[layer.sum]\nop = add\ninput = flat, act\n"),
        FLATTENED("op = reshape\nd1 = 4\nd2 = 3\n", "[layer.act]\nop = tanh\n"),
        FLATTENED("op = reshape\nd1 = 1\nd2 = 1\nd3 = 12\n", "[layer.act]\nop = relu\n"),
    };
    qat_error err;
    write_flattened(false);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        MUST(TRAIN(texts[i], "a", PYTORCH, quantized[_i][0], quantized[_i][1]));
        qat_checkpoint *c = checkpoint_of("a");
        check_turned(c, "logits/weights", CLASSES);
        qat_checkpoint_free(c);
    }
}
END_TEST

START_TEST(test_order_that_is_not_known)
{
    static const char text[] = FLATTENED("op = reshape\nd1 = 3\nd2 = 2\nd3 = 2\n", "");
    qat_error err;
    write_flattened(false);
    ck_assert_int_eq(TRAIN(text, "a", PYTORCH), QAT_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err.message, "logits/weights: the order of the features of flat (op "
                                      "reshape) in PyTorch is not known; leave it out") != NULL,
                  "%s", err.message);
    MUST(TRAIN(text, "a", PYTORCH, "train.init_skip=logits/weights"));
}
END_TEST

/* ------------------------------------------------------------------ counts of batches */

/** A count of 0 stays beside initial averages, also if a bias then goes into the mean. Beside real
 *  averages it is no count. */
START_TEST(test_count_of_zero)
{
    static const char text[] = FLATTENED("op = flatten\n", "");
    static const float kernel[MAPS * 196], bias[] = {0.5F, 0.25F, 0.75F}, zeros[3],
                                           ones[] = {1, 1, 1}, mean[] = {0, 0, 2};
    static const int64_t none = 0;
    qat_error err;
    npz_array arrays[] = {{"conv.weight.npy", "<f4", "3, 1, 14, 14", kernel, sizeof kernel},
                          {"conv.bias.npy", "<f4", "3,", bias, sizeof bias},
                          {"conv.bn.weight.npy", "<f4", "3,", ones, sizeof ones},
                          {"conv.bn.bias.npy", "<f4", "3,", zeros, sizeof zeros},
                          {"conv.bn.running_mean.npy", "<f4", "3,", _i ? mean : zeros, 12},
                          {"conv.bn.running_var.npy", "<f4", "3,", ones, sizeof ones},
                          {"conv.bn.num_batches_tracked.npy", "<i8", "", &none, sizeof none}};
    npz_write(folder, "w.npz", arrays, 7);
    MUST(TRAIN(text, "a", PYTORCH, "layer.conv.batch_norm=yes", "layer.conv.activation=relu"));
    qat_checkpoint *c = checkpoint_of("a");
    ck_assert_float_eq(values_of(c, "conv/bn/ema_steps")[0], _i ? 1e6F : 0);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(values_of(c, "conv/bn/ema_mean")[i], (_i ? mean[i] : 0) - bias[i]);
    qat_checkpoint_free(c);
}
END_TEST

/** A bias without a place is refused, or left out with its layer. With the batch norm behind it
 * left out, it is in no mean. */
START_TEST(test_bias_left_out)
{
    static const char text[] = FLATTENED("op = flatten\n", "");
    static const float kernel[MAPS * 196], bias[] = {0.5F, 0.25F, 0.75F}, rows[CLASSES * FLAT],
                                           ones[] = {1, 1, 1};
    qat_error err;
    npz_array arrays[] = {{"conv.weight.npy", "<f4", "3, 1, 14, 14", kernel, sizeof kernel},
                          {"conv.bias.npy", "<f4", "3,", bias, sizeof bias},
                          {"logits.weight.npy", "<f4", "10, 12", rows, sizeof rows},
                          {"conv.bn.running_mean.npy", "<f4", "3,", ones, sizeof ones},
                          {"conv.bn.running_var.npy", "<f4", "3,", ones, sizeof ones}};
    npz_write(folder, "w.npz", arrays, 3);
    ck_assert_int_eq(TRAIN(text, "a", PYTORCH, "layer.conv.bias=no"), QAT_ERR_ARGUMENT);
    ck_assert_msg(strstr(err.message, "it has a bias for the layer conv, which has none in this "
                                      "network (train.init_skip can leave out the layer)") != NULL,
                  "%s", err.message);
    MUST(TRAIN(text, "a", PYTORCH, "layer.conv.bias=no", "train.init_skip=conv/*"));
    npz_write(folder, "w.npz", arrays, 5);
    MUST(TRAIN(text, "b", PYTORCH, "layer.conv.batch_norm=yes", "train.init_skip=conv/bn/*"));
    qat_checkpoint *c = checkpoint_of("b");
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(values_of(c, "conv/bn/ema_mean")[i], 0);
    qat_checkpoint_free(c);
}
END_TEST

/* ------------------------------------------------------------------ torchvision's names */

static int hits; /* layers of the network that a name was for */

static void name_is(const qat_recipe *r, const qat_graph *g, const char *module, const char *end)
{
    char name[QAT_NAME_MAX], full[QAT_NAME_MAX + 16];
    ck_assert_msg(qat_torchvision_name(r, module, name), "%s has no name here", module);
    snprintf(full, sizeof full, "%s%s", name, end);
    ck_assert_msg(qat_graph_find(g, full) != NULL, "%s: there is no %s", module, full);
    hits++;
}

/** A convolution and the batch norm behind it. */
static void pair_is(const qat_recipe *r, const qat_graph *g, const char *conv, const char *norm)
{
    name_is(r, g, conv, "/weights");
    name_is(r, g, norm, "/gamma");
}

static int layers_of(const qat_graph *g)
{
    int n = 0;
    for (int i = 0; i < qat_graph_nodes(g); i++) {
        const qat_node *node = qat_graph_node(g, i);
        n += node->is_param && (strstr(node->name, "/weights") || strstr(node->name, "/gamma"));
    }
    return n;
}

static qat_recipe *recipe_of(const char *arch)
{
    char text[64];
    qat_recipe *r;
    snprintf(text, sizeof text, "[model]\narch = %s\nconvention = pytorch\n", arch);
    ck_assert_int_eq(qat_recipe_parse(&r, text, "n.ini", NULL, 0, NULL), QAT_OK);
    return r;
}

static void check_resnet(const char *arch, const int blocks[4], int convs)
{
    char text[64], conv[48], norm[48], name[QAT_NAME_MAX];
    qat_recipe *r = recipe_of(arch);
    snprintf(text, sizeof text, "[model]\narch = %s\nconvention = pytorch\n", arch);
    qat_graph *g = build(text, input_of(64, 64, 3, 10));
    hits = 0;
    pair_is(r, g, "conv1", "bn1");
    name_is(r, g, "fc", "/weights");
    for (int s = 1; s <= 4; s++)
        for (int b = 0; b < blocks[s - 1]; b++) {
            for (int k = 1; k <= convs; k++) {
                snprintf(conv, sizeof conv, "layer%d.%d.conv%d", s, b, k);
                snprintf(norm, sizeof norm, "layer%d.%d.bn%d", s, b, k);
                pair_is(r, g, conv, norm);
            }
            snprintf(conv, sizeof conv, "layer%d.%d.downsample.0", s, b);
            snprintf(norm, sizeof norm, "layer%d.%d.downsample.1", s, b);
            if (b == 0 && (s > 1 || convs == 3))
                pair_is(r, g, conv, norm);
        }
    ck_assert_int_eq(hits, layers_of(g));
    ck_assert(!qat_torchvision_name(r, "layer1.0.conv1.x", name));
    qat_graph_free(g);
    qat_recipe_free(r);
}

START_TEST(test_names_of_resnets)
{
    check_resnet("resnet18", (const int[]){2, 2, 2, 2}, 2);
    check_resnet("resnet34", (const int[]){3, 4, 6, 3}, 2);
    check_resnet("resnet50", (const int[]){3, 4, 6, 3}, 3);
}
END_TEST

START_TEST(test_names_of_mobilenet)
{
    char a[48], b[48], name[QAT_NAME_MAX];
    qat_recipe *r = recipe_of("mobilenet_v2");
    qat_graph *g =
        build("[model]\narch = mobilenet_v2\nconvention = pytorch\n", input_of(64, 64, 3, 10));
    hits = 0;
    pair_is(r, g, "features.0.0", "features.0.1");
    pair_is(r, g, "features.18.0", "features.18.1");
    name_is(r, g, "classifier.1", "/weights");
    for (int block = 1; block <= 17; block++) {
        int const nested = block == 1 ? 1 : 2;
        for (int k = 0; k < nested; k++) {
            snprintf(a, sizeof a, "features.%d.conv.%d.0", block, k);
            snprintf(b, sizeof b, "features.%d.conv.%d.1", block, k);
            pair_is(r, g, a, b);
        }
        snprintf(a, sizeof a, "features.%d.conv.%d", block, nested);
        snprintf(b, sizeof b, "features.%d.conv.%d", block, nested + 1);
        pair_is(r, g, a, b);
    }
    ck_assert_int_eq(hits, layers_of(g));
    ck_assert(!qat_torchvision_name(r, "features.2.conv.4", name));
    ck_assert(!qat_torchvision_name(r, "features.2.conv.0.2", name));
    ck_assert(!qat_torchvision_name(r, "classifier.0", name));
    char value[QAT_RECIPE_VALUE_MAX];
    ck_assert_str_eq(qat_recipe_get(r, "model.activation", value), "relu6");
    ck_assert(r->model.multiplier == 1);
    ck_assert(r->model.bn_epsilon == 1e-5 && r->model.bn_momentum == 0.9);
    qat_graph_free(g);
    qat_recipe_free(r);
}
END_TEST

START_TEST(test_convention)
{
    qat_graph *g =
        build("[model]\narch = resnet50\nconvention = pytorch\n", input_of(64, 64, 3, 9));
    check_shape(g, "stage2/block1/conv1/relu", "[1, 16, 16, 128]"); /* the stride is the 3x3's */
    check_shape(g, "stage2/block1/conv2/relu", "[1, 8, 8, 128]");
    qat_padding const stem = qat_attr_padding(qat_graph_find(g, "conv1"), "padding");
    ck_assert(stem.kind == QAT_PADDING_EXPLICIT && stem.top == 3 && stem.right == 3);
    qat_graph_free(g);
    refuse("[model]\narch = inception_v3\nconvention = pytorch\n", input_of(80, 80, 3, 9),
           "n.ini:3: model.convention = pytorch cannot be combined with model.arch = inception_v3");
    refuse("[model]\narch = layers\n[layer.a]\nop = conv2d\nfilters = 2\npadding = 1, 2, 3\n",
           input_of(8, 8, 3, 9), "n.ini:6: ");
    refuse("[model]\narch = layers\n[layer.a]\nop = conv2d\nfilters = 2\npadding = 3\n",
           input_of(8, 8, 3, 9), "each must be less than the window, which is 3 high and 3 wide");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("torch_layout");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_by_order, 0, 2);
    tcase_add_test(tc, test_by_map);
    tcase_add_test(tc, test_averages_stay);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_order_that_is_not_certain);
    tcase_add_loop_test(tc, test_batch_norm_behind_flatten, 0, 4);
    tcase_add_loop_test(tc, test_ops_behind_flatten, 0, 4);
    tcase_add_test(tc, test_order_that_is_not_known);
    tcase_add_loop_test(tc, test_count_of_zero, 0, 2);
    tcase_add_test(tc, test_bias_left_out);
    tcase_add_test(tc, test_names_of_resnets);
    tcase_add_test(tc, test_names_of_mobilenet);
    tcase_add_test(tc, test_convention);
    Suite *suite = suite_create("torch_layout");
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
