/**
 * Prints as JSON how long a training step takes: forward, backward, SGD with momentum, and the
 * update of averages and ranges. It is in float, or with simulated quantization, or with forward on
 * integers.
 *
 *     train_step [--net mobilenet_v1|resnet20] [--batch N] [--threads N] [--steps N] [--ops yes]
 *                [--phase float|delay|batch|frozen] [--bn_fold two_pass|one_pass]
 *                [--layout uint8|int8] [--forward simulated|integer|fake_quant]
 *
 * mobilenet_v1: width 0.25, pictures of 128 pixels, batch 32. resnet20: CIFAR's, 32 pixels, batch
 * 64. There are ten classes and random pictures. Phases of quantization: delay: before it starts;
 * batch: batch norm uses the statistics of the batch; frozen: it uses its averages. cpu_ms is the
 * processor time of all threads, which other programs disturb less. --ops adds the milliseconds a
 * step of each kind of op, for each pass.
 */
#include "base/parallel.h"
#include "qat/qat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { STEPS_MAX = 4096, KINDS_MAX = 64, PASSES = 3 };
enum phase { PHASE_FLOAT, PHASE_DELAY, PHASE_BATCH, PHASE_FROZEN, PHASES };

static const char *const phase_names[] = {"float", "delay", "batch", "frozen", NULL};
static const char *const net_names[] = {"mobilenet_v1", "resnet20", NULL};
static const char *const fold_names[] = {"two_pass", "one_pass", NULL};
static const char *const layout_names[] = {"uint8", "int8", NULL};
static const char *const forward_names[] = {"simulated", "integer", "fake_quant", NULL};
static const char *const yes_names[] = {"no", "yes", NULL};

static const struct {
    const char *recipe;
    int side, batch;
} nets[] = {
    {"[model]\narch = mobilenet_v1\nmultiplier = 0.25\n", 128, 32},
    {"[model]\narch = resnet\ndepth = 20\n", 32, 64},
};

struct options {
    int net, phase, fold, layout, forward, ops;
    int batch, threads, steps;
};

static int fail(const char *what, const char *message)
{
    fprintf(stderr, "train_step: %s: %s\n", what, message);
    return EXIT_FAILURE;
}

/* ------------------------------------------------------------------ arguments */

static bool choose(int *choice, const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0) {
            *choice = i;
            return true;
        }
    return false;
}

static bool parse_one(struct options *o, const char *name, const char *text)
{
    int const number = atoi(text);
    if (strcmp(name, "--net") == 0)
        return choose(&o->net, net_names, text);
    if (strcmp(name, "--phase") == 0)
        return choose(&o->phase, phase_names, text);
    if (strcmp(name, "--bn_fold") == 0)
        return choose(&o->fold, fold_names, text);
    if (strcmp(name, "--layout") == 0)
        return choose(&o->layout, layout_names, text);
    if (strcmp(name, "--forward") == 0)
        return choose(&o->forward, forward_names, text);
    if (strcmp(name, "--ops") == 0)
        return choose(&o->ops, yes_names, text);
    if (strcmp(name, "--batch") == 0)
        return (o->batch = number) > 0;
    if (strcmp(name, "--threads") == 0)
        return (o->threads = number) > 0;
    return strcmp(name, "--steps") == 0 && (o->steps = number) > 0 && number <= STEPS_MAX;
}

static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (!parse_one(o, argv[i], argv[i + 1]))
            return false;
    if (!o->batch)
        o->batch = nets[o->net].batch;
    return argc % 2 == 1;
}

/* ------------------------------------------------------------------ the network */

/** The recipe's network in float. */
static qat_status build_float(qat_graph **graph, const qat_registry *registry,
                              const struct options *o, qat_error *err)
{
    qat_recipe *recipe;
    int const side = nets[o->net].side;
    qat_input_info const input = {.height = side, .width = side, .channels = 3, .classes = 10};
    *graph = NULL;
    qat_status st = qat_recipe_parse(&recipe, nets[o->net].recipe, net_names[o->net], NULL, 0, err);
    if (!st)
        st = qat_network_build(graph, registry, recipe, &input, err);
    qat_recipe_free(recipe);
    return st;
}

static qat_quant_options quant_options(const struct options *o)
{
    qat_quant_options q = qat_quant_defaults();
    q.layout = (qat_layout)o->layout;
    q.bn_fold = (qat_bn_fold)o->fold;
    q.forward = (qat_forward)o->forward;
    q.weight_delay = q.activation_delay = o->phase == PHASE_DELAY ? STEPS_MAX + 10 : 0;
    if (o->phase == PHASE_FROZEN)
        q.bn_freeze_delay = 1; /* the first step observes */
    return q;
}

static qat_status build(qat_graph **graph, const qat_registry *registry, const struct options *o,
                        qat_error *err)
{
    qat_graph *plain;
    qat_status st = build_float(&plain, registry, o, err);
    if (st || o->phase == PHASE_FLOAT) {
        *graph = plain;
        return st;
    }
    qat_quant_options const q = quant_options(o);
    st = qat_create_training_graph(graph, plain, &q, err);
    qat_graph_free(plain);
    return st;
}

static void fill(qat_graph *graph)
{
    qat_node *image = qat_graph_find(graph, QAT_INPUT_NAME);
    qat_node *label = qat_graph_find(graph, QAT_LABEL_NAME);
    uint64_t state = 1;
    for (size_t i = 0; i < qat_shape_count(&image->shape); i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        image->value[i] = (float)((double)(state >> 40) / 8388608.0 - 1.0);
    }
    for (size_t i = 0; i < qat_shape_count(&label->shape); i++)
        label->value[i] = (float)(i * 7 % 10);
}

/* ------------------------------------------------------------------ timing */

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Seconds by kind of op and pass, and of each step. */
struct times {
    const char *kinds[KINDS_MAX];
    double seconds[KINDS_MAX][PASSES];
    int n_kinds, n_steps;
    double last, optimizer;
    double steps[STEPS_MAX], cpu[STEPS_MAX];
};

static double *seconds_of(struct times *t, const char *kind)
{
    int i = 0;
    while (i < t->n_kinds && strcmp(t->kinds[i], kind))
        i++;
    if (i == KINDS_MAX)
        exit(fail("more kinds of ops than expected", kind));
    t->kinds[i] = kind;
    t->n_kinds += i == t->n_kinds;
    return t->seconds[i];
}

static void watch(void *context, const qat_node *node, qat_pass pass)
{
    struct times *t = context;
    double const at = now(CLOCK_PROCESS_CPUTIME_ID);
    seconds_of(t, node->op->name)[pass] += at - t->last;
    t->last = at;
}

static void step(qat_graph *graph, qat_node *loss, qat_optimizer *optimizer, const qat_run *run,
                 struct times *t)
{
    t->last = now(CLOCK_PROCESS_CPUTIME_ID);
    qat_graph_forward(graph, run);
    qat_graph_backward(graph, loss, run);
    double const start = now(CLOCK_PROCESS_CPUTIME_ID);
    qat_optimizer_step(optimizer, 0.001);
    t->last = now(CLOCK_PROCESS_CPUTIME_ID);
    t->optimizer += t->last - start;
    qat_graph_update(graph, run);
}

static void measure(qat_graph *graph, qat_optimizer *optimizer, const struct options *o,
                    struct times *t)
{
    qat_node *loss = qat_graph_find(graph, QAT_LOSS_NAME);
    qat_run run = {.mode = QAT_MODE_TRAIN};
    for (; run.step < 2; run.step++)
        step(graph, loss, optimizer, &run, t);
    t->optimizer = 0;
    if (o->ops)
        qat_graph_watch(graph, watch, t);
    for (; t->n_steps < o->steps; t->n_steps++, run.step++) {
        double const start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        step(graph, loss, optimizer, &run, t);
        t->steps[t->n_steps] = now(CLOCK_MONOTONIC) - start;
        t->cpu[t->n_steps] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    }
}

/* ------------------------------------------------------------------ the report */

static int by_value(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_ops(const struct times *t)
{
    static const char *const passes[] = {"forward", "backward", "update"};
    double const scale = 1e3 / t->n_steps;
    printf(", \"ops_ms\": {");
    for (int i = 0; i < t->n_kinds; i++) {
        printf("%s\n  \"%s\": {", i ? "," : "", t->kinds[i]);
        for (int p = 0; p < PASSES; p++)
            printf("%s\"%s\": %.3f", p ? ", " : "", passes[p], scale * t->seconds[i][p]);
        printf("}");
    }
    printf(",\n  \"optimizer\": {\"step\": %.3f}}", scale * t->optimizer);
}

/** Of the process so far. */
static long peak_kbytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void report(const struct options *o, const qat_graph *graph, struct times *t)
{
    qsort(t->steps, (size_t)t->n_steps, sizeof t->steps[0], by_value);
    qsort(t->cpu, (size_t)t->n_steps, sizeof t->cpu[0], by_value);
    printf(
        "{\"net\": \"%s\", \"phase\": \"%s\", \"bn_fold\": \"%s\", \"layout\": \"%s\", "
        "\"forward\": \"%s\", \"batch\": %d, \"threads\": %d, \"steps\": %d, \"min_ms\": %.2f, "
        "\"median_ms\": %.2f, "
        "\"cpu_min_ms\": %.2f, \"images_per_s\": %.1f, \"arena_bytes\": %zu, \"peak_kbytes\": %ld",
        net_names[o->net], phase_names[o->phase], fold_names[o->fold], layout_names[o->layout],
        forward_names[o->forward], o->batch, o->threads, t->n_steps, 1e3 * t->steps[0],
        1e3 * t->steps[t->n_steps / 2], 1e3 * t->cpu[0], o->batch / t->steps[0],
        qat_graph_arena_bytes(graph), peak_kbytes());
    if (o->ops)
        print_ops(t);
    printf("}\n");
}

static int run(const struct options *o, const qat_registry *registry)
{
    static struct times times;
    qat_error err;
    qat_graph *graph = NULL;
    qat_optimizer *optimizer = NULL;
    qat_optimizer_options const sgd = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    qat_status st = build(&graph, registry, o, &err);
    if (!st)
        st = qat_graph_plan(graph, o->batch, QAT_PLAN_TRAIN, &err);
    if (!st)
        st = qat_optimizer_create(&optimizer, graph, &sgd, &err);
    if (!st) {
        qat_graph_init_params(graph, 1);
        fill(graph);
        measure(graph, optimizer, o, &times);
        report(o, graph, &times);
    }
    qat_optimizer_free(optimizer);
    qat_graph_free(graph);
    return st ? fail("network", err.message) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options o = {.threads = qat_threads(), .steps = 20};
    qat_registry *registry;
    qat_error err;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr,
                "usage: train_step [--net mobilenet_v1|resnet20] [--batch N] [--threads N]\n"
                "                  [--steps N] [--ops yes] [--phase float|delay|batch|frozen]\n"
                "                  [--bn_fold two_pass|one_pass] [--layout uint8|int8]\n"
                "                  [--forward simulated|integer|fake_quant]\n");
        return 2;
    }
    qat_set_threads(o.threads);
    if (qat_registry_create(&registry, &err))
        return fail("registry", err.message);
    int const result = run(&o, registry);
    qat_registry_free(registry);
    return result;
}
