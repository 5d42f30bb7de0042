/**
 * Prints the speed of every convolution of MobileNet v1 0.25 (128 x 128) and ResNet-20 (32 x 32):
 * forward, data gradient and weight gradient. It is compared with the roof, the speed of their
 * inner loop with as many threads, if all operands lie in the first-level cache.
 *
 *     conv_layers [--threads N] [--seconds S] [--batch N] [NAME]
 *
 * There is one JSON object for each layer whose name contains NAME. Each time is the least of the
 * repetitions within S seconds. GFLOP/s count two operations for each weight and output value, also
 * where the weight meets padding: such products are left out, so a layer may pass the roof.
 */
#include "autograd/conv/product.h"
#include "autograd/loops/tiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct layer {
    const char *name, *op, *attrs;
    int size, channels, filters;
};

static const struct layer layers[] = {
    {"mobilenet/conv1", "conv2d", "filters=8 stride=2", 128, 3, 8},
    {"mobilenet/dw1", "depthwise_conv2d", "", 64, 8, 8},
    {"mobilenet/pw1", "conv2d", "filters=16 kernel=1", 64, 8, 16},
    {"mobilenet/dw2", "depthwise_conv2d", "stride=2", 64, 16, 16},
    {"mobilenet/pw2", "conv2d", "filters=32 kernel=1", 32, 16, 32},
    {"mobilenet/dw3", "depthwise_conv2d", "", 32, 32, 32},
    {"mobilenet/pw3", "conv2d", "filters=32 kernel=1", 32, 32, 32},
    {"mobilenet/dw4", "depthwise_conv2d", "stride=2", 32, 32, 32},
    {"mobilenet/pw4", "conv2d", "filters=64 kernel=1", 16, 32, 64},
    {"mobilenet/dw5", "depthwise_conv2d", "", 16, 64, 64},
    {"mobilenet/pw5", "conv2d", "filters=64 kernel=1", 16, 64, 64},
    {"mobilenet/dw6", "depthwise_conv2d", "stride=2", 16, 64, 64},
    {"mobilenet/pw6", "conv2d", "filters=128 kernel=1", 8, 64, 128},
    {"mobilenet/dw7", "depthwise_conv2d", "", 8, 128, 128},
    {"mobilenet/pw7", "conv2d", "filters=128 kernel=1", 8, 128, 128},
    {"mobilenet/dw12", "depthwise_conv2d", "stride=2", 8, 128, 128},
    {"mobilenet/pw12", "conv2d", "filters=256 kernel=1", 4, 128, 256},
    {"mobilenet/dw13", "depthwise_conv2d", "", 4, 256, 256},
    {"mobilenet/pw13", "conv2d", "filters=256 kernel=1", 4, 256, 256},
    {"resnet20/conv1", "conv2d", "filters=16", 32, 3, 16},
    {"resnet20/stage1", "conv2d", "filters=16", 32, 16, 16},
    {"resnet20/stage2/first", "conv2d", "filters=32 stride=2", 32, 16, 32},
    {"resnet20/stage2/shortcut", "conv2d", "filters=32 kernel=1 stride=2", 32, 16, 32},
    {"resnet20/stage2", "conv2d", "filters=32", 16, 32, 32},
    {"resnet20/stage3/first", "conv2d", "filters=64 stride=2", 16, 32, 64},
    {"resnet20/stage3/shortcut", "conv2d", "filters=64 kernel=1 stride=2", 16, 32, 64},
    {"resnet20/stage3", "conv2d", "filters=64", 8, 64, 64},
};

struct options {
    int threads, batch;
    double seconds;
    const char *part;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef void work(void *context);

/** Seconds of the fastest repetition, in the time given. */
static double fastest(work *fn, void *context, double seconds)
{
    double best = 1e30;
    fn(context);
    for (double const end = now() + seconds; now() < end;) {
        double const start = now();
        fn(context);
        double const took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

/* ------------------------------------------------------------------ the roof */

enum { ROOF_DEPTH = 128, ROOF_SEGMENTS = 8, ROOF_REPEATS = 64, ROOF_TILES = 64 };

static void roof_tile(void *context, int tile, int thread)
{
    static const qat_segment segments[ROOF_SEGMENTS]; /* all at the begin: sums stay in registers */
    qat_real a[QAT_PRODUCT_ROWS][ROOF_DEPTH] = {{0}};
    qat_real b[ROOF_DEPTH][QAT_PRODUCT_COLUMNS] = {{0}};
    qat_real c[QAT_PRODUCT_ROWS][QAT_PRODUCT_COLUMNS];
    qat_product p = {.b = b[0],
                     .segments = segments,
                     .n_segments = ROOF_SEGMENTS,
                     .count = ROOF_DEPTH,
                     .a_step = 1,
                     .b_step = QAT_PRODUCT_COLUMNS,
                     .rows = QAT_PRODUCT_ROWS,
                     .columns = QAT_PRODUCT_COLUMNS,
                     .padded = true};
    for (int i = 0; i < QAT_PRODUCT_ROWS; i++) {
        p.a[i] = a[i];
        p.c[i] = c[i];
    }
    qat_product_fn *multiply = qat_product_best();
    for (int i = 0; i < ROOF_REPEATS; i++)
        multiply(&p);
}

static void roof_product(void *context)
{
    qat_parallel(ROOF_TILES, roof_tile, context);
}

static double roof_gflops(double seconds)
{
    double const best = fastest(roof_product, NULL, seconds);
    return 2e-9 * ROOF_TILES * ROOF_REPEATS * QAT_PRODUCT_ROWS * QAT_PRODUCT_COLUMNS * ROOF_DEPTH *
           ROOF_SEGMENTS / best;
}

/* ------------------------------------------------------------------ a layer */

struct timed {
    qat_graph *graph;
    qat_node *node;
    qat_run run;
};

static void forward(void *context)
{
    struct timed *t = context;
    t->node->op->forward(t->node, &t->run);
}

static void backward(void *context)
{
    struct timed *t = context;
    t->node->op->backward(t->node, &t->run);
}

/** Backward of one input alone: the other has no gradient to add to. */
static double backward_of(struct timed *t, int input, double seconds)
{
    qat_node *other = t->node->inputs[!input];
    qat_real *grad = other->grad;
    other->grad = NULL;
    double const best = fastest(backward, t, seconds);
    other->grad = grad;
    return best;
}

static void fill(qat_real *values, const qat_shape *shape)
{
    for (size_t i = 0; i < qat_shape_count(shape); i++)
        values[i] = (qat_real)((double)(i * 2654435761u % 1000) / 500.0 - 1.0);
}

static qat_status build(struct timed *t, const struct layer *l, int batch, qat_error *err)
{
    qat_node *x = qat_graph_input(t->graph, "x", QAT_SHAPE(1, l->size, l->size, l->channels));
    qat_graph_want_gradient(t->graph, x);
    t->node = qat_apply1(t->graph, l->op, "layer", l->attrs, x);
    qat_status st = qat_graph_check(t->graph, err);
    if (!st)
        st = qat_graph_plan(t->graph, batch, QAT_PLAN_TRAIN, err);
    if (st)
        return st;
    qat_graph_init_params(t->graph, 1);
    fill(x->value, &x->shape);
    fill(t->node->grad, &t->node->shape);
    return QAT_OK;
}

static void measure(struct timed *t, const struct layer *l, const struct options *o, double roof)
{
    const qat_shape *w = &t->node->inputs[1]->shape;
    double const per_output = (double)qat_shape_count(w) / l->filters;
    double const gflop = 2e-9 * per_output * (double)qat_shape_count(&t->node->shape);
    double const y = fastest(forward, t, o->seconds);
    double const dx = backward_of(t, 0, o->seconds), dw = backward_of(t, 1, o->seconds);
    printf("{\"layer\": \"%s\", \"batch\": %d, \"threads\": %d, \"mflop\": %.1f, "
           "\"forward_us\": %.0f, \"data_us\": %.0f, \"weights_us\": %.0f, "
           "\"forward_gflops\": %.1f, \"data_gflops\": %.1f, \"weights_gflops\": %.1f, "
           "\"roof_gflops\": %.1f}\n",
           l->name, o->batch, o->threads, gflop * 1e3, y * 1e6, dx * 1e6, dw * 1e6, gflop / y,
           gflop / dx, gflop / dw, roof);
    fflush(stdout);
}

static int run(const struct options *o, const qat_registry *registry)
{
    double const roof = roof_gflops(4 * o->seconds);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        struct timed t = {.run = {.mode = QAT_MODE_TRAIN}};
        qat_error err;
        if (o->part && !strstr(layers[i].name, o->part))
            continue;
        qat_status st = qat_graph_create(&t.graph, registry, &err);
        if (!st)
            st = build(&t, &layers[i], o->batch, &err);
        if (st)
            fprintf(stderr, "conv_layers: %s: %s\n", layers[i].name, err.message);
        else
            measure(&t, &layers[i], o, roof);
        qat_graph_free(t.graph);
        if (st)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool const has_value = i + 1 < argc;
        if (has_value && strcmp(argv[i], "--threads") == 0)
            o->threads = atoi(argv[++i]);
        else if (has_value && strcmp(argv[i], "--batch") == 0)
            o->batch = atoi(argv[++i]);
        else if (has_value && strcmp(argv[i], "--seconds") == 0)
            o->seconds = atof(argv[++i]);
        else if (argv[i][0] != '-' && !o->part)
            o->part = argv[i];
        else
            return false;
    }
    return o->threads > 0 && o->batch > 0 && o->seconds > 0;
}

int main(int argc, char **argv)
{
    struct options o = {.threads = 1, .batch = 32, .seconds = 0.2};
    qat_registry *registry = NULL;
    qat_error err;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "usage: %s [--threads N] [--seconds S] [--batch N] [NAME]\n", argv[0]);
        return 2;
    }
    qat_set_threads(o.threads);
    if (qat_registry_create(&registry, &err)) {
        fprintf(stderr, "conv_layers: %s\n", err.message);
        return EXIT_FAILURE;
    }
    int const result = run(&o, registry);
    qat_registry_free(registry);
    return result;
}
