/**
 * Prints the seconds that a small regression takes to train: two fully connected layers, batches of
 * 256. Its loops last microseconds, so threads that wait for each other in the wrong way make it
 * many times slower on a machine that is busy with other programs. bench/busy.sh does that.
 *
 *     busy [--threads N] [--steps N]
 *
 * The last loss is printed too: it has the same bits for any number of threads.
 */
#include "qat/qat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 256, INPUTS = 16 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static qat_graph *build(const qat_registry *registry, qat_error *err)
{
    qat_graph *g;
    if (qat_graph_create(&g, registry, err))
        return NULL;
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, INPUTS));
    x = qat_apply1(g, "fully_connected", "hidden", "units=64", x);
    x = qat_apply1(g, "bias", "hidden/bias", "", x);
    x = qat_apply1(g, "relu", "hidden/relu", "", x);
    x = qat_apply1(g, "fully_connected", "answer", "units=1", x);
    qat_node *y = qat_graph_input(g, "y", QAT_SHAPE(1, 1));
    qat_apply2(g, "smooth_l1_loss", "loss", "", x, y);
    return g;
}

/** Learn the sum of the sines of the inputs. */
static void fill(qat_graph *g)
{
    float *x = qat_graph_find(g, "x")->value, *y = qat_graph_find(g, "y")->value;
    uint64_t state = 1;
    for (int i = 0; i < BATCH; i++) {
        y[i] = 0;
        for (int k = 0; k < INPUTS; k++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            x[i * INPUTS + k] = (float)((double)(state >> 40) / 8388608.0 - 1.0);
            y[i] += sinf(x[i * INPUTS + k]);
        }
    }
}

static double train(qat_graph *g, qat_optimizer *optimizer, int steps)
{
    qat_node *loss = qat_graph_find(g, "loss");
    qat_run run = {.mode = QAT_MODE_TRAIN};
    double const start = now();
    for (; run.step < steps; run.step++) {
        qat_graph_forward(g, &run);
        qat_graph_backward(g, loss, &run);
        qat_optimizer_step(optimizer, 0.01);
        qat_graph_update(g, &run);
    }
    return now() - start;
}

int main(int argc, char **argv)
{
    int steps = 10000;
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--threads") == 0)
            qat_set_threads(atoi(argv[i + 1]));
        else if (strcmp(argv[i], "--steps") == 0)
            steps = atoi(argv[i + 1]);
    qat_error err;
    qat_registry *registry = NULL;
    qat_graph *g = NULL;
    qat_optimizer *optimizer = NULL;
    qat_optimizer_options const sgd = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    qat_status st = qat_registry_create(&registry, &err);
    if (!st)
        g = build(registry, &err);
    if (!st)
        st = g ? qat_graph_check(g, &err) : QAT_ERR_NOMEM;
    if (!st)
        st = qat_graph_plan(g, BATCH, QAT_PLAN_TRAIN, &err);
    if (!st)
        st = qat_optimizer_create(&optimizer, g, &sgd, &err);
    if (!st) {
        qat_graph_init_params(g, 1);
        fill(g);
        double const seconds = train(g, optimizer, steps);
        printf("%.4f s, loss %.9g\n", seconds, (double)qat_graph_find(g, "loss")->value[0]);
    } else {
        fprintf(stderr, "busy: %s\n", err.message);
    }
    qat_optimizer_free(optimizer);
    qat_graph_free(g);
    qat_registry_free(registry);
    return st ? EXIT_FAILURE : EXIT_SUCCESS;
}
