/**
 * How many images a second a small network learns from, as JSON.
 *
 *     bench_train_step [--batch N] [--threads N] [--width N] [--seconds S]
 *
 * The network: four 3x3 convolutions on 28x28 grey pictures, with batch norm and ReLU, of width,
 * 2 width, 2 width and 4 width channels. A training step is forward, backward, SGD with momentum
 * and the update of the averages. Best of the repetitions that fit into the time.
 */
#include "base/parallel.h"
#include "qat/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    int batch, threads, width;
    double seconds;
};

static int fail(const char *what, const char *message)
{
    fprintf(stderr, "bench_train_step: %s: %s\n", what, message);
    return EXIT_FAILURE;
}

static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        double const value = atof(argv[i + 1]);
        if (strcmp(argv[i], "--batch") == 0)
            o->batch = (int)value;
        else if (strcmp(argv[i], "--threads") == 0)
            o->threads = (int)value;
        else if (strcmp(argv[i], "--width") == 0)
            o->width = (int)value;
        else if (strcmp(argv[i], "--seconds") == 0)
            o->seconds = value;
        else
            return false;
    }
    return argc % 2 == 1 && o->batch > 0 && o->threads > 0 && o->width > 0 && o->seconds > 0;
}

static qat_node *layer(qat_graph *graph, qat_node *x, int number, int filters, int stride)
{
    char name[32], attrs[64];
    snprintf(name, sizeof name, "conv%d", number);
    snprintf(attrs, sizeof attrs, "filters=%d kernel=3 stride=%d", filters, stride);
    x = qat_apply1(graph, "conv2d", name, attrs, x);
    snprintf(name, sizeof name, "conv%d/bn", number);
    x = qat_apply1(graph, "batch_norm", name, "", x);
    snprintf(name, sizeof name, "conv%d/relu", number);
    return qat_apply1(graph, "relu", name, "", x);
}

static qat_node *build(qat_graph *graph, int width)
{
    qat_node *x = qat_graph_input(graph, "image", QAT_SHAPE(1, 28, 28, 1));
    x = layer(graph, x, 1, width, 1);
    x = layer(graph, x, 2, 2 * width, 2);
    x = layer(graph, x, 3, 2 * width, 1);
    x = layer(graph, x, 4, 4 * width, 2);
    x = qat_apply1(graph, "global_average_pool", "pool", "", x);
    x = qat_apply1(graph, "fully_connected", "logits", "units=10", x);
    qat_node *label = qat_graph_input(graph, "label", QAT_SHAPE(1));
    return qat_apply2(graph, "softmax_cross_entropy", "loss", "", x, label);
}

/* Multiply-adds of one image's forward. */
static double macs_of(const qat_graph *graph, int batch)
{
    double macs = 0;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        if (!node->op || node->n_inputs < 2 || !node->inputs[1]->is_param ||
            node->inputs[1]->shape.rank < 2)
            continue;
        const qat_shape *w = &node->inputs[1]->shape;
        double const per_output = (double)qat_shape_count(w) / w->dims[0];
        macs += per_output * (double)qat_shape_count(&node->shape) / batch;
    }
    return macs;
}

static void fill(qat_graph *graph)
{
    qat_node *image = qat_graph_find(graph, "image"), *label = qat_graph_find(graph, "label");
    for (size_t i = 0; i < qat_shape_count(&image->shape); i++)
        image->value[i] = (qat_real)((double)(i * 2654435761u % 1000) / 500.0 - 1.0);
    for (size_t i = 0; i < qat_shape_count(&label->shape); i++)
        label->value[i] = (qat_real)(i % 10);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the fastest step, in the time given. */
static double fastest(qat_graph *graph, qat_node *loss, qat_optimizer *optimizer, double seconds)
{
    double best = 1e30;
    qat_run run = {.mode = QAT_MODE_TRAIN};
    for (double const end = now() + seconds; now() < end; run.step++) {
        double const start = now();
        qat_graph_forward(graph, &run);
        if (optimizer) {
            qat_graph_backward(graph, loss, &run);
            qat_optimizer_step(optimizer, 0.01);
            qat_graph_update(graph, &run);
        }
        double const took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

static int run(const struct options *o, qat_graph *graph)
{
    qat_error err;
    qat_optimizer *optimizer;
    qat_optimizer_options const sgd = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    qat_node *loss = build(graph, o->width);
    if (qat_graph_check(graph, &err) || qat_graph_plan(graph, o->batch, QAT_PLAN_TRAIN, &err) ||
        qat_optimizer_create(&optimizer, graph, &sgd, &err))
        return fail("network", err.message);
    qat_graph_init_params(graph, 1);
    fill(graph);
    double const forward = fastest(graph, loss, NULL, o->seconds);
    double const train = fastest(graph, loss, optimizer, o->seconds);
    double const macs = macs_of(graph, o->batch);
    printf("{\"batch\": %d, \"threads\": %d, \"width\": %d, \"macs\": %.0f, "
           "\"forward_images_per_s\": %.0f, \"train_images_per_s\": %.0f, "
           "\"train_gmac_per_s\": %.1f}\n",
           o->batch, o->threads, o->width, macs, o->batch / forward, o->batch / train,
           3e-9 * macs * o->batch / train);
    qat_optimizer_free(optimizer);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options o = {.batch = 128, .threads = qat_threads(), .width = 16, .seconds = 3};
    qat_registry *registry = NULL;
    qat_graph *graph = NULL;
    qat_error err;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "usage: %s [--batch N] [--threads N] [--width N] [--seconds S]\n", argv[0]);
        return 2;
    }
    qat_set_threads(o.threads);
    if (qat_registry_create(&registry, &err) || qat_graph_create(&graph, registry, &err)) {
        qat_registry_free(registry);
        return fail("graph", err.message);
    }
    int const result = run(&o, graph);
    qat_graph_free(graph);
    qat_registry_free(registry);
    return result;
}
