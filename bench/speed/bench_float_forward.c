/**
 * Prints as JSON how long libqat's float network takes for one picture: MobileNet v1 with its batch
 * norms folded into biases. The integer engine is compared with it.
 *
 *     bench_float_forward [--alpha A] [--resolution R] [--threads N] [--runs N]
 */
#include "base/parallel.h"
#include "qat/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    double alpha;
    int resolution, threads, runs;
};

static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        double const value = atof(argv[i + 1]);
        if (strcmp(argv[i], "--alpha") == 0)
            o->alpha = value;
        else if (strcmp(argv[i], "--resolution") == 0)
            o->resolution = (int)value;
        else if (strcmp(argv[i], "--threads") == 0)
            o->threads = (int)value;
        else if (strcmp(argv[i], "--runs") == 0)
            o->runs = (int)value;
        else
            return false;
    }
    return argc % 2 == 1 && o->alpha > 0 && o->resolution >= 32 && o->threads > 0 && o->runs > 0;
}

/* ------------------------------------------------------------------ the network */

static qat_node *layer(qat_graph *graph, qat_node *x, const char *op, int number, const char *attrs)
{
    char name[40];
    snprintf(name, sizeof name, "%s%d", op, number);
    x = qat_apply1(graph, op, name, attrs, x);
    snprintf(name, sizeof name, "%s%d/bias", op, number);
    x = qat_apply1(graph, "bias", name, "", x);
    snprintf(name, sizeof name, "%s%d/relu6", op, number);
    return qat_apply1(graph, "relu6", name, "", x);
}

static qat_node *conv(qat_graph *graph, qat_node *x, int number, int filters, int kernel,
                      int stride)
{
    char attrs[64];
    snprintf(attrs, sizeof attrs, "filters=%d kernel=%d stride=%d", filters, kernel, stride);
    return layer(graph, x, "conv2d", number, attrs);
}

static qat_node *depthwise(qat_graph *graph, qat_node *x, int number, int stride)
{
    char attrs[64];
    snprintf(attrs, sizeof attrs, "kernel=3 stride=%d", stride);
    return layer(graph, x, "depthwise_conv2d", number, attrs);
}

static void build(qat_graph *graph, const struct options *o)
{
    static const struct {
        int filters, stride;
    } blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                  {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    int const first = (int)(32 * o->alpha) < 8 ? 8 : (int)(32 * o->alpha);
    qat_node *x = qat_graph_input(graph, "image", QAT_SHAPE(1, o->resolution, o->resolution, 3));
    x = conv(graph, x, 0, first, 3, 2);
    for (int i = 0; i < (int)(sizeof blocks / sizeof blocks[0]); i++) {
        x = depthwise(graph, x, i + 1, blocks[i].stride);
        x = conv(graph, x, i + 1, (int)(blocks[i].filters * o->alpha), 1, 1);
    }
    x = qat_apply1(graph, "global_average_pool", "pool", "", x);
    x = qat_apply1(graph, "fully_connected", "logits", "units=1000", x);
    qat_apply1(graph, "softmax", "answer", "", x);
}

/* ------------------------------------------------------------------ time */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const struct options *o, double *ms)
{
    qsort(ms, (size_t)o->runs, sizeof *ms, ascending);
    printf("{\"model\": \"mobilenet_v1_%g_%d\", \"threads\": %d, \"runs\": %d, \"min_ms\": %.4f, "
           "\"median_ms\": %.4f}\n",
           o->alpha, o->resolution, o->threads, o->runs, ms[0], ms[o->runs / 2]);
}

static int fail(const char *message)
{
    fprintf(stderr, "bench_float_forward: %s\n", message);
    return EXIT_FAILURE;
}

static int run(const struct options *o, qat_graph *graph)
{
    qat_error err;
    double *ms = malloc((size_t)o->runs * sizeof *ms);
    build(graph, o);
    if (!ms || qat_graph_check(graph, &err) || qat_graph_plan(graph, 1, QAT_PLAN_EVAL, &err)) {
        free(ms);
        return fail(ms ? err.message : "out of memory");
    }
    qat_graph_init_params(graph, 1);
    qat_node *image = qat_graph_find(graph, "image");
    for (size_t i = 0; i < qat_shape_count(&image->shape); i++)
        image->value[i] = (qat_real)((double)(i * 2654435761u % 1000) / 500.0 - 1.0);
    for (int i = -3; i < o->runs; i++) { /* the first three are not counted */
        double const start = now_ms();
        qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
        if (i >= 0)
            ms[i] = now_ms() - start;
    }
    print_times(o, ms);
    free(ms);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options o = {.alpha = 1, .resolution = 224, .threads = 1, .runs = 60};
    qat_registry *registry = NULL;
    qat_graph *graph = NULL;
    qat_error err;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "usage: %s [--alpha A] [--resolution R] [--threads N] [--runs N]\n",
                argv[0]);
        return 2;
    }
    qat_set_threads(o.threads);
    if (qat_registry_create(&registry, &err) || qat_graph_create(&graph, registry, &err)) {
        qat_registry_free(registry);
        return fail(err.message);
    }
    int const result = run(&o, graph);
    qat_graph_free(graph);
    qat_registry_free(registry);
    return result;
}
