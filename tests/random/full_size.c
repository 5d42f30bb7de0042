/**
 * Runs the published networks at full size. Their weights are random, and their ranges are
 * calibrated on drawn pictures. Each one is frozen in both layouts and written as a .qm. On two
 * other pictures, every tensor of the engine is compared with the exact evaluation, byte for byte.
 *
 *     full_size [--tensors] [--keep=DIR] all | NAME...
 *
 * A NAME is NAME or NAME/uint8 or NAME/int8. Without arguments the names are printed. --keep leaves
 * DIR/NAME-LAYOUT.qm for qat-inspect.
 *
 * Each line says how many bytes were compared, and how many different codes the tensors have: the
 * least, the median, and those of the output (with --tensors: of every tensor). A network whose
 * outputs are all zero would pass the comparison; because of these counts it fails.
 */
#include "base/files/file.h"
#include "base/rng.h"
#include "qat/convert.h"
#include "qat/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 2, CHANNELS = 3, ANSWER_CODES = 32, MEDIAN_CODES = 64 };
enum { CALIBRATION, VERIFICATION };

static bool show_tensors;
static const char *keep_dir;

#define RELU6 "activation = relu6\n"

static const struct network {
    const char *name, *model;
    int side, classes;
} networks[] = {
    {"mobilenet_v1_1.0_224", RELU6 "arch = mobilenet_v1_1.0_224", 224, 1000},
    {"mobilenet_v1_1.0_192", RELU6 "arch = mobilenet_v1_1.0_192", 192, 1000},
    {"mobilenet_v1_1.0_160", RELU6 "arch = mobilenet_v1_1.0_160", 160, 1000},
    {"mobilenet_v1_1.0_128", RELU6 "arch = mobilenet_v1_1.0_128", 128, 1000},
    {"mobilenet_v1_0.75_224", RELU6 "arch = mobilenet_v1_0.75_224", 224, 1000},
    {"mobilenet_v1_0.75_192", RELU6 "arch = mobilenet_v1_0.75_192", 192, 1000},
    {"mobilenet_v1_0.75_160", RELU6 "arch = mobilenet_v1_0.75_160", 160, 1000},
    {"mobilenet_v1_0.75_128", RELU6 "arch = mobilenet_v1_0.75_128", 128, 1000},
    {"mobilenet_v1_0.5_224", RELU6 "arch = mobilenet_v1_0.5_224", 224, 1000},
    {"mobilenet_v1_0.5_192", RELU6 "arch = mobilenet_v1_0.5_192", 192, 1000},
    {"mobilenet_v1_0.5_160", RELU6 "arch = mobilenet_v1_0.5_160", 160, 1000},
    {"mobilenet_v1_0.5_128", RELU6 "arch = mobilenet_v1_0.5_128", 128, 1000},
    {"mobilenet_v1_0.25_224", RELU6 "arch = mobilenet_v1_0.25_224", 224, 1000},
    {"mobilenet_v1_0.25_192", RELU6 "arch = mobilenet_v1_0.25_192", 192, 1000},
    {"mobilenet_v1_0.25_160", RELU6 "arch = mobilenet_v1_0.25_160", 160, 1000},
    {"mobilenet_v1_0.25_128", RELU6 "arch = mobilenet_v1_0.25_128", 128, 1000},
    {"mobilenet_v2", RELU6 "arch = mobilenet_v2\nmultiplier = 1", 224, 1000},
    {"resnet20", "arch = resnet20", 32, 10},
    {"resnet32", "arch = resnet32", 32, 10},
    {"resnet56", "arch = resnet56", 32, 10},
    {"resnet18", "arch = resnet18", 224, 1000},
    {"resnet34", "arch = resnet34", 224, 1000},
    {"resnet50", "arch = resnet50", 224, 1000},
    {"resnet101", "arch = resnet101", 224, 1000},
    {"resnet152", "arch = resnet152", 224, 1000},
    {"inception_v3", "arch = inception_v3", 299, 1000},
    {"inception_v3_relu6", RELU6 "arch = inception_v3", 299, 1000},
    {"inception_small", "arch = inception_small", 32, 10},
    {"inception_small_relu6", RELU6 "arch = inception_small", 32, 10},
    {"mobilenet_v2_0.35_96", RELU6 "arch = mobilenet_v2\nmultiplier = 0.35", 96, 1000},
    {"resnet50_width_8_64", "arch = resnet50\nwidth = 8", 64, 100},
    {"pytorch_resnet18", "arch = resnet18\nconvention = pytorch", 224, 1000},
    {"pytorch_resnet50", "arch = resnet50\nconvention = pytorch", 224, 1000},
    {"pytorch_mobilenet_v2", "arch = mobilenet_v2\nconvention = pytorch", 224, 1000},
    {"pytorch_resnet18_width_8_64", "arch = resnet18\nwidth = 8\nconvention = pytorch", 64, 100},
    {"pytorch_mobilenet_v2_0.35_96", "arch = mobilenet_v2\nmultiplier = 0.35\nconvention = pytorch",
     96, 100},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static const char *const layouts[] = {"uint8", "int8"};
static const float mean[CHANNELS] = {127.5f, 127.5f, 127.5f},
                   std[CHANNELS] = {127.5f, 127.5f, 127.5f};

/** One network in one layout. All members are released together. */
struct bench {
    const struct network *network;
    qat_layout layout;
    qat_registry *registry;
    qat_recipe *recipe;
    qat_graph *graph, *training, *eval;
    qat_qgraph *integers;
    qat_verifier *verifier;
    uint8_t *qm, *pixels; /* pixels: BATCH pictures */
    float *values;
    size_t qm_bytes;
};

static void release(struct bench *b)
{
    qat_verifier_free(b->verifier);
    qat_qgraph_free(b->integers);
    qat_graph_free(b->eval);
    qat_graph_free(b->training);
    qat_graph_free(b->graph);
    qat_recipe_free(b->recipe);
    qat_registry_free(b->registry);
    free(b->qm);
    free(b->pixels);
    free(b->values);
}

/* ------------------------------------------------------------------ pictures */

/** Two waves and some noise in each channel. */
static void draw(uint8_t *pixels, int side, uint64_t stream, uint64_t index)
{
    qat_rng rng = qat_rng_at(1, stream, index);
    double wave[CHANNELS][2][4];
    for (int i = 0; i < CHANNELS * 8; i++)
        (&wave[0][0][0])[i] = qat_rng_uniform(&rng);
    for (int i = 0; i < side * side * CHANNELS; i++) {
        double const x = (double)(i / CHANNELS % side) / side;
        double const y = (double)(i / CHANNELS / side) / side;
        double value = 0.5 + 0.2 * (qat_rng_uniform(&rng) - 0.5);
        for (int k = 0; k < 2; k++) {
            const double *w = wave[i % CHANNELS][k];
            value += 0.35 * w[3] * sin(6.28 * (6 * w[0] * x + 6 * w[1] * y + w[2]));
        }
        pixels[i] = (uint8_t)fmin(fmax(255 * value, 0), 255);
    }
}

static qat_status fill(struct bench *b, uint64_t stream, qat_error *err)
{
    int const side = b->network->side;
    size_t const n = (size_t)(side * side * CHANNELS);
    float table[CHANNELS * 256];
    if (!b->pixels)
        b->pixels = malloc(BATCH * n);
    if (!b->values)
        b->values = malloc(BATCH * n * sizeof *b->values);
    if (!b->pixels || !b->values)
        return qat_out_of_memory(err, NULL);
    qat_pixel_values(CHANNELS, mean, std, table);
    for (size_t i = 0; i < BATCH; i++)
        draw(b->pixels + i * n, side, stream, i);
    for (size_t i = 0; i < BATCH * n; i++)
        b->values[i] = table[i % CHANNELS * 256 + b->pixels[i]];
    return QAT_OK;
}

/* ------------------------------------------------------------------ from a name to a .qm */

static qat_status build(struct bench *b, qat_error *err)
{
    char text[256];
    qat_input_info const input = {.height = b->network->side,
                                  .width = b->network->side,
                                  .channels = CHANNELS,
                                  .classes = b->network->classes};
    snprintf(text, sizeof text, "[model]\nbn_momentum = 0\n%s\n", b->network->model);
    qat_status st = qat_registry_create(&b->registry, err);
    if (!st)
        st = qat_recipe_parse(&b->recipe, text, b->network->name, NULL, 0, err);
    if (!st)
        st = qat_network_build(&b->graph, b->registry, b->recipe, &input, err);
    return st;
}

static bool ends_with(const char *name, const char *end)
{
    size_t const n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/**
 * Give batch norm values as after some training: all channels are different, and some exceed
 * ReLU6's 6.
 */
static void spread_channels(qat_graph *graph)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *p = qat_graph_node(graph, i);
        bool const gamma = ends_with(p->name, "/gamma"), beta = ends_with(p->name, "/beta");
        qat_rng rng = qat_rng_at(1, qat_hash_name(p->name), 0);
        for (size_t k = 0; (gamma || beta) && k < qat_shape_count(&p->shape); k++)
            p->value[k] =
                (float)(gamma ? 0.5 + 2.5 * qat_rng_uniform(&rng) : 2 * qat_rng_uniform(&rng) - 1);
    }
}

/** Random weights; one batch gives batch norm its averages and every tensor its range. */
static qat_status calibrate(struct bench *b, const qat_quant_options *options, qat_error *err)
{
    qat_run const run = {.mode = QAT_MODE_TRAIN, .seed = 1};
    qat_status st = qat_create_training_graph(&b->training, b->graph, options, err);
    if (!st)
        st = qat_graph_plan(b->training, BATCH, QAT_PLAN_KEEP, err);
    if (!st)
        st = qat_graph_set_batch(b->training, BATCH, err);
    if (!st)
        st = fill(b, CALIBRATION, err);
    if (st)
        return st;
    qat_graph_init_params(b->training, 1);
    spread_channels(b->training);
    qat_node *x = qat_graph_find(b->training, QAT_INPUT_NAME);
    memcpy(x->value, b->values, qat_shape_count(&x->shape) * sizeof *x->value);
    memset(qat_graph_find(b->training, QAT_LABEL_NAME)->value, 0, BATCH * sizeof(float));
    qat_graph_forward(b->training, &run);
    qat_graph_update(b->training, &run);
    return QAT_OK;
}

static qat_status export(struct bench *b, const qat_quant_options *options, qat_error *err)
{
    qat_qm_metadata const metadata = {.description = b->network->name};
    qat_status st = qat_create_eval_graph(&b->eval, b->graph, options, err);
    if (!st)
        st = qat_graph_plan(b->eval, BATCH, QAT_PLAN_KEEP, err);
    if (st)
        return st;
    qat_graph_init_params(b->eval, 0);
    qat_graph_copy_params(b->eval, b->training);
    qat_graph_free(b->training); /* large */
    b->training = NULL;
    st = qat_freeze(&b->integers, b->eval, QAT_PROFILE_PAPER, NULL, err);
    if (!st)
        st = qat_qgraph_add_input_table(b->integers, CHANNELS, mean, std, err);
    return st ? st : qat_qm_write(b->integers, &metadata, &b->qm, &b->qm_bytes, err);
}

/* ------------------------------------------------------------------ comparing */

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/** Codes in use: the least and the median of the tensors compared, the answer's. */
struct codes {
    int least, median, answer;
};

static qat_status count_codes(const struct bench *b, struct codes *codes, qat_error *err)
{
    int n = 0, *counts = calloc((size_t)b->integers->n_tensors + 1, sizeof *counts);
    if (!counts)
        return qat_out_of_memory(err, NULL);
    for (int i = 0; i < b->integers->n_tensors; i++)
        if (qat_verifier_codes(b->verifier, i) > 0)
            counts[n++] = qat_verifier_codes(b->verifier, i);
    qsort(counts, (size_t)n, sizeof *counts, by_value);
    codes->least = counts[0];
    codes->median = counts[n / 2];
    codes->answer = qat_verifier_codes(b->verifier, b->integers->outputs[0]);
    free(counts);
    return QAT_OK;
}

/** The integer graph multiplies as often as the float one, and has its weights. */
static qat_status check_size(const struct bench *b, qat_error *err)
{
    qat_network_size size;
    qat_network_size const integers = qat_qgraph_size_of(b->integers);
    qat_status const st = qat_network_size_of(b->graph, &size, err);
    if (st || (integers.macs == size.macs && integers.parameters <= size.parameters &&
               (double)integers.parameters > 0.98 * (double)size.parameters))
        return st;
    return qat_fail(err, QAT_ERR_MISMATCH,
                    "%" PRId64 " parameters and %" PRId64 " multiply-adds, in integers %" PRId64
                    " and %" PRId64,
                    size.parameters, size.macs, integers.parameters, integers.macs);
}

/**
 * Concatenations and the pools between them share one range, so nothing on the way to them is
 * requantized.
 */
static qat_status check_classes(const struct bench *b, qat_error *err)
{
    for (int i = 0; i < b->integers->n_ops; i++)
        if (!strcmp(b->integers->ops[i].op, "requantize"))
            return qat_fail(err, QAT_ERR_MISMATCH, "%s is requantized", b->integers->ops[i].name);
    return QAT_OK;
}

static void print_tensors(const struct bench *b)
{
    for (int i = 0; i < b->integers->n_tensors; i++)
        if (qat_verifier_codes(b->verifier, i) > 0)
            printf("    %3d codes, %s\n", qat_verifier_codes(b->verifier, i),
                   b->integers->tensors[i].name);
}

static qat_status judge(struct bench *b, double seconds, qat_error *err)
{
    struct codes codes = {0};
    const qat_compare *r = qat_verifier_result(b->verifier);
    qat_status st = count_codes(b, &codes, err);
    if (st)
        return st;
    printf("%s %s: %" PRId64 " tensors, %" PRId64 " bytes compared, %" PRId64
           " differing; codes: least %d, median %d, answer %d; furthest from float32 %.3f quanta; "
           ".qm %zu bytes; %.1f s\n",
           b->network->name, layouts[b->layout], r->tensors, r->bytes, r->differing, codes.least,
           codes.median, codes.answer, r->layers_max_quanta, b->qm_bytes, seconds);
    if (show_tensors)
        print_tensors(b);
    int const answer_wanted =
        b->network->classes < ANSWER_CODES ? b->network->classes : ANSWER_CODES;
    if (r->differing)
        return qat_fail(err, QAT_ERR_MISMATCH, "first difference: %s", r->first);
    if (codes.median < MEDIAN_CODES || codes.answer < answer_wanted)
        return qat_fail(err, QAT_ERR_MISMATCH, "too few codes to mean anything");
    st = qat_verifier_judge(b->verifier, err);
    if (!st)
        st = check_size(b, err);
    return st ? st : check_classes(b, err);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static qat_status run(struct bench *b, qat_error *err)
{
    double const start = now();
    qat_quant_options options = qat_quant_defaults();
    options.layout = b->layout;
    qat_status st = build(b, err);
    if (!st)
        st = calibrate(b, &options, err);
    if (!st)
        st = export(b, &options, err);
    if (!st)
        st = qat_verifier_create(&b->verifier, b->integers, b->eval, b->qm, b->qm_bytes, NULL,
                                 b->registry, BATCH, err);
    if (!st)
        st = fill(b, VERIFICATION, err);
    const void *const pixels[] = {b->pixels};
    const float *const values[] = {b->values};
    if (!st)
        st = qat_verifier_batch(b->verifier, pixels, values, BATCH, err);
    return st ? st : judge(b, now() - start, err);
}

static qat_status keep(const struct bench *b, qat_error *err)
{
    char path[512];
    if (!keep_dir)
        return QAT_OK;
    snprintf(path, sizeof path, "%s/%s-%s.qm", keep_dir, b->network->name, layouts[b->layout]);
    return qat_file_write_atomic(path, b->qm, b->qm_bytes, err);
}

/** One `ok -` or `not ok -` line. */
static bool passes(const struct network *network, qat_layout layout)
{
    qat_error err;
    struct bench b = {.network = network, .layout = layout};
    qat_status st = run(&b, &err);
    if (!st)
        st = keep(&b, &err);
    if (st)
        printf("not ok - %s %s: %s\n", network->name, layouts[layout], err.message);
    else
        printf("ok - %s %s: engine and exact evaluation\n", network->name, layouts[layout]);
    fflush(stdout);
    release(&b);
    return st == QAT_OK;
}

/** Is the network in this layout asked for by "NAME" or "NAME/LAYOUT"? */
static bool is_named(const char *word, int network, int layout)
{
    size_t const n = strlen(networks[network].name);
    return !strcmp(word, "all") ||
           (!strncmp(word, networks[network].name, n) &&
            (!word[n] || (word[n] == '/' && !strcmp(word + n + 1, layouts[layout]))));
}

int main(int argc, char **argv)
{
    int failed = 0, known = 0;
    if (argc < 2) {
        for (int i = 0; i < NETWORKS; i++)
            printf("%s\n", networks[i].name);
        return 0;
    }
    for (int a = 1; a < argc; a++) {
        show_tensors |= !strcmp(argv[a], "--tensors");
        keep_dir = strncmp(argv[a], "--keep=", 7) ? keep_dir : argv[a] + 7;
        for (int i = 0; i < NETWORKS; i++)
            for (int layout = 0; layout < 2; layout++)
                if (is_named(argv[a], i, layout)) {
                    known++;
                    failed += !passes(&networks[i], (qat_layout)layout);
                }
    }
    if (!known)
        fprintf(stderr, "full_size: no network is called so; without arguments the names\n");
    return failed || !known ? 1 : 0;
}
