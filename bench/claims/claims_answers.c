/**
 * The answers of a network: computed with integers and any rounding, or by the float32 simulation.
 */
#include "bench/claims/claims.h"

#include "checkpoint/restore.h"
#include "evaluate/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 50 };

/**
 * Quantize a float network: weights get this number of bits and activations get 8. Data give the
 * ranges of activations.
 */
static qat_status choose_bits(claims_net *net, int weight_bits, qat_error *err)
{
    char bits[40];
    const char *const sets[] = {bits, "quant.activation_bits=8"};
    snprintf(bits, sizeof bits, "quant.weight_bits=%d", weight_bits);
    return qat_restored_set_quant(net->restored, sets, 2, err);
}

static qat_status freeze(claims_net *net, int weight_bits, qat_error *err)
{
    bool const is_float = !net->restored->checkpoint->quantized;
    qat_deploy_options const o = {.calibrate = is_float ? "recipe" : NULL};
    qat_status st = is_float ? choose_bits(net, weight_bits, err) : QAT_OK;
    if (!st)
        st = qat_restored_eval_graph(net->restored, &o, BATCH, &net->eval, err);
    return st ? st : qat_restored_freeze(net->restored, &o, net->eval, &net->graph, err);
}

qat_status claims_open(claims_net *net, const char *path, int64_t samples, int weight_bits,
                       qat_error *err)
{
    *net = (claims_net){.path = path, .samples = samples};
    qat_status st = qat_restore(&net->restored, path, NULL, 0, err);
    if (!st)
        st = qat_recipe_open_data(&net->data, net->restored->recipe, NULL, QAT_SPLIT_TEST, err);
    const qat_input_info *in = st ? NULL : &net->restored->checkpoint->input;
    if (!st && (in->type != QAT_SAMPLE_U8 || !qat_task_of(in)->distills))
        st = qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: no classifier of pictures", path);
    return st ? st : freeze(net, weight_bits, err);
}

void claims_close(claims_net *net)
{
    qat_qgraph_free(net->graph);
    qat_graph_free(net->eval);
    qat_dataset_close(net->data);
    qat_restored_free(net->restored);
}

/* ------------------------------------------------------------------ asking */

/** What answers a batch: classes[i] of its `count` samples. */
typedef qat_status answer_fn(void *state, const qat_batch *batch, int count, int *classes,
                             qat_error *err);

static void note(claims_answers *a, const qat_batch *batch, const int *classes, int count)
{
    for (int i = 0; i < count; i++) {
        a->right[a->n] = classes[i] == batch->labels[i];
        a->n_right += a->right[a->n++];
    }
}

static qat_status ask_loader(qat_loader *loader, int64_t total, answer_fn *answer, void *state,
                             claims_answers *a, qat_error *err)
{
    int classes[BATCH];
    qat_status st = QAT_OK;
    while (!st && a->n < total) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (st)
            break;
        int const count = batch->count < total - a->n ? batch->count : (int)(total - a->n);
        st = answer(state, batch, count, classes, err);
        if (!st)
            note(a, batch, classes, count);
    }
    return st;
}

static qat_status ask(const claims_net *net, answer_fn *answer, void *state, claims_answers *a,
                      qat_error *err)
{
    int64_t total = qat_dataset_info_of(net->data)->count;
    qat_loader *loader = NULL;
    qat_loader_options const o = {.batch = BATCH, .threads = 1, .prefetch = 4};
    if (net->samples > 0 && net->samples < total)
        total = net->samples;
    *a = (claims_answers){.right = calloc((size_t)total + 1, 1)};
    qat_status st = a->right ? QAT_OK : qat_out_of_memory(err, "claims");
    if (!st)
        st = qat_open_loader(&loader, net->data, &net->restored->checkpoint->input, &o, err);
    if (!st)
        st = ask_loader(loader, total, answer, state, a, err);
    qat_loader_free(loader);
    return st;
}

void claims_free_answers(claims_answers *answers)
{
    free(answers->right);
}

/* ------------------------------------------------------------------ by integers */

struct integers {
    const qat_qgraph *graph;
    qat_exact *exact;
};

static qat_status answer_integers(void *state, const qat_batch *batch, int count, int *classes,
                                  qat_error *err)
{
    const struct integers *s = state;
    const void *const inputs[] = {batch->bytes};
    int const output = s->graph->outputs[0];
    const qat_qtensor *t = &s->graph->tensors[output];
    size_t const n = qat_qtensor_count(t);
    qat_status const st = qat_exact_run(s->exact, inputs, count, err);
    for (int i = 0; !st && i < count; i++) {
        const uint8_t *codes = (const uint8_t *)qat_exact_tensor(s->exact, output) + (size_t)i * n;
        classes[i] = 0;
        for (size_t k = 1; k < n; k++)
            if (qat_qtensor_code(t, codes[k]) > qat_qtensor_code(t, codes[classes[i]]))
                classes[i] = (int)k;
    }
    return st;
}

qat_status claims_ask_integers(const claims_net *net, qat_requantize_fn *rule,
                               claims_answers *answers, qat_error *err)
{
    struct integers s = {.graph = net->graph};
    *answers = (claims_answers){0};
    qat_status st = qat_exact_create(&s.exact, net->graph, net->restored->registry, BATCH, err);
    if (!st)
        qat_exact_set_requantize(s.exact, rule);
    if (!st)
        st = ask(net, answer_integers, &s, answers, err);
    qat_exact_free(s.exact);
    return st;
}

/* ------------------------------------------------------------------ by the simulation */

struct simulation {
    qat_graph *eval;
    qat_visit *visit;
    void *context;
};

static qat_status answer_simulation(void *state, const qat_batch *batch, int count, int *classes,
                                    qat_error *err)
{
    const struct simulation *s = state;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_status const st = qat_feed_graph(s->eval, batch, count, err);
    if (st)
        return st;
    if (s->visit)
        qat_graph_forward_visit(s->eval, &run, s->visit, s->context);
    else
        qat_graph_forward(s->eval, &run);
    const qat_node *out = qat_graph_output_at(s->eval, 0);
    size_t const n = (size_t)qat_shape_channels(&out->shape);
    for (int i = 0; i < count; i++) {
        const float *scores = out->value + (size_t)i * n;
        classes[i] = 0;
        for (size_t k = 1; k < n; k++)
            classes[i] = scores[k] > scores[classes[i]] ? (int)k : classes[i];
    }
    return st;
}

qat_status claims_ask_simulation(const claims_net *net, qat_visit *visit, void *context,
                                 claims_answers *answers, qat_error *err)
{
    struct simulation s = {net->eval, visit, context};
    return ask(net, answer_simulation, &s, answers, err);
}

/* ------------------------------------------------------------------ comparing */

static double percent(const claims_answers *a)
{
    return a->n ? 100.0 * (double)a->n_right / (double)a->n : 0;
}

void claims_print_cost(const char *what, const claims_answers *base, const claims_answers *other)
{
    int64_t lost = 0, won = 0;
    for (int64_t i = 0; i < base->n; i++) {
        lost += base->right[i] && !other->right[i];
        won += !base->right[i] && other->right[i];
    }
    bool const found = (double)(lost - won) > 1.96 * sqrt((double)(lost + won));
    printf("claim: %s costs accuracy: %s: %.2f %% instead of %.2f %%; of %lld answers %lld became "
           "wrong and %lld right\n",
           what, found ? "found" : "not found", percent(other), percent(base), (long long)base->n,
           (long long)lost, (long long)won);
}
