/**
 * Measures the loss of a network in simulation.
 *
 *     train.init -> float graph -> training graph with observed ranges, run in eval mode: batch
 * norm is folded with its averages, and all weights and activations are quantized
 *
 * All samples are seen in the same order in every pass, without augmentation, and sums go over
 * batches in order. So a loss has the same bits for any number of threads.
 */
#include "budget/meter.h"

#include "base/bytes.h"
#include "base/checksums/sha256.h"
#include "budget/override.h"
#include "evaluate/data.h"
#include "fakequant/ops.h"
#include "finetune/init.h"
#include "networks/network.h"
#include "qat/ptq.h"
#include "recipe/archs.h"
#include "recipe/recipe.h"
#include "task/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 100, SAMPLE_SEED = 1 };

/* ------------------------------------------------------------------ opening */

static qat_status open_registry(budget_meter *m, qat_error *err)
{
    const qat_budget_options *o = m->options;
    qat_status const st =
        o->n_plugins
            ? qat_open_registry_files(&m->registry, &m->plugins, o->plugins, o->n_plugins, err)
            : qat_open_registry(&m->registry, &m->plugins, m->recipe->plugin.path, err);
    if (!st)
        qat_registry_set_memory(m->registry, o->memory);
    return st;
}

static qat_status open_data(budget_meter *m, qat_error *err)
{
    const qat_recipe *r = m->recipe;
    qat_status st = qat_recipe_open_data(&m->data, r, NULL, QAT_SPLIT_TRAIN, err);
    if (st)
        return st;
    int64_t const there = qat_dataset_info_of(m->data)->count;
    m->samples = r->budget.samples < there ? r->budget.samples : there;
    return qat_input_info_of(&m->input, m->registry, r, qat_dataset_info_of(m->data), err);
}

/** Batch norm's averages are used in any case; so one convolution is enough. */
static qat_quant_options simulation(const qat_quant_options *wanted)
{
    qat_quant_options o = qat_quant_observed(wanted);
    o.forward = QAT_FORWARD_FAKE_QUANT; /* visits change values, which codes would not follow */
    o.bn_fold = QAT_FOLD_ONE_PASS;
    return o;
}

qat_status budget_meter_open(budget_meter *m, const qat_recipe *recipe,
                             const qat_budget_options *options, qat_error *err)
{
    qat_quant_options quant;
    *m = (budget_meter){.recipe = recipe, .options = options};
    qat_status st = open_registry(m, err);
    if (!st)
        st = open_data(m, err);
    if (!st)
        st = qat_network_build(&m->float_graph, m->registry, recipe, &m->input, err);
    if (!st)
        st = qat_task_open(&m->input, m->float_graph, recipe, err);
    if (!st)
        st = qat_recipe_quant_options(&quant, recipe, m->registry, &m->input, 0, 0, err);
    if (!st)
        st = qat_check_integers(m->float_graph, &quant, err);
    if (!st)
        st = qat_create_training_graph(&m->wanted, m->float_graph, &quant, err);
    quant = st ? quant : simulation(&quant);
    if (!st)
        st = qat_create_training_graph(&m->simulated, m->float_graph, &quant, err);
    return st;
}

void budget_meter_close(budget_meter *m)
{
    for (int i = 0; m->overrides && i < qat_graph_nodes(m->simulated); i++)
        budget_override_free(m->overrides[i]);
    free(m->overrides);
    free(m->ranges);
    qat_loader_free(m->loader);
    qat_dataset_close(m->data);
    qat_graph_free(m->simulated);
    qat_graph_free(m->wanted);
    qat_task_close(&m->input);
    qat_graph_free(m->float_graph);
    qat_registry_free(m->registry);
    qat_plugins_free(m->plugins);
    *m = (budget_meter){0};
}

/* ------------------------------------------------------------------ passes */

qat_node *budget_loss_of(qat_graph *graph)
{
    qat_node *own = qat_graph_find(graph, QAT_OWN_LOSS_NAME);
    return own ? own : qat_graph_find(graph, QAT_LOSS_NAME);
}

static qat_status feed(budget_meter *m, qat_graph *graph, const qat_batch *batch, int count,
                       qat_error *err)
{
    const qat_task *task = m->input.task;
    qat_status const st = qat_feed_graph(graph, batch, count, err);
    return !st && task->feed ? task->feed(&m->input, m->recipe, graph, batch, err) : st;
}

qat_status budget_meter_pass(budget_meter *m, qat_graph *graph, budget_batch_fn *fn, void *context,
                             qat_error *err)
{
    qat_status st = qat_loader_seek(m->loader, 0, 0, err);
    for (int64_t done = 0; !st && done < m->samples;) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(m->loader, &batch, err);
        if (st)
            break;
        int64_t const left = m->samples - done;
        int const count = batch->count < left ? batch->count : (int)left;
        st = feed(m, graph, batch, count, err);
        if (!st)
            st = fn(context, graph, (double)count / (double)m->samples, err);
        done += count;
    }
    return st;
}

typedef struct loss_sum {
    const budget_meter *m;
    double sum;
} loss_sum;

static void visit(void *context, qat_node *node)
{
    const budget_meter *m = context;
    if (m->overrides[node->index])
        budget_override_apply(m->overrides[node->index], node);
}

static qat_status add_loss(void *context, qat_graph *graph, double share, qat_error *err)
{
    loss_sum *s = context;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    (void)err;
    qat_graph_forward_visit(graph, &run, visit, (void *)s->m);
    s->sum += share * (double)budget_loss_of(graph)->value[0];
    return QAT_OK;
}

qat_status budget_meter_loss(budget_meter *m, double *loss, qat_error *err)
{
    loss_sum s = {.m = m};
    qat_status const st = budget_meter_pass(m, m->simulated, add_loss, &s, err);
    *loss = s.sum;
    return st;
}

/* ------------------------------------------------------------------ preparing */

static qat_status read_weights(budget_meter *m, qat_error *err)
{
    const qat_recipe *r = m->recipe;
    bool const gradients = r->budget.sensitivity == QAT_SENSITIVITY_HESSIAN;
    qat_status st = qat_graph_plan(m->float_graph, gradients ? m->batch : 1,
                                   gradients ? QAT_PLAN_TRAIN : QAT_PLAN_EVAL, err);
    if (st)
        return st;
    qat_graph_init_params(m->float_graph, (uint64_t)r->train.seed);
    if (qat_net_is_imported(r))
        st = qat_net_fill_imported(m->float_graph, r, &m->input, m->options->log, err);
    return st ? st : qat_init_from_file(m->float_graph, m->float_graph, r, m->options->log, err);
}

static qat_status open_loader(budget_meter *m, qat_error *err)
{
    qat_loader_options const o = {.batch = m->batch,
                                  .shuffle = true,
                                  .seed = SAMPLE_SEED,
                                  .threads = (int)m->recipe->data.threads,
                                  .prefetch = (int)m->recipe->data.prefetch,
                                  .memory = qat_data_memory(m->recipe)};
    return qat_open_loader(&m->loader, m->data, &m->input, &o, err);
}

static qat_status note_extents(void *context, qat_graph *graph, double share, qat_error *err)
{
    (void)graph, (void)share, (void)err;
    qat_calibrator_extents(context);
    return QAT_OK;
}

static qat_status count_values(void *context, qat_graph *graph, double share, qat_error *err)
{
    (void)graph, (void)share, (void)err;
    qat_calibrator_count(context);
    return QAT_OK;
}

/** Give all activations so many bits (0: those of their first choice), and find their ranges. */
static void find_ranges(budget_meter *m, const budget_network *net, qat_calibrator *calibrator,
                        const char *estimator, int bits)
{
    for (int i = 0; i < net->n_nodes; i++)
        if (net->item_of[i] >= 0 && !net->tensors[net->item_of[i]].weights)
            qat_graph_node(m->simulated, i)->attrs[FQ_BITS] =
                bits ? bits : net->items[net->item_of[i]].bits[0];
    qat_calibrator_commit(calibrator, qat_estimator_find(estimator), 0);
}

/** Does an activation that goes by this estimator have a choice of so many bits? */
static bool asks_for(const budget_network *net, bool narrows, int bits)
{
    for (int i = 0; i < net->n_items; i++)
        for (int c = 0; c < net->items[i].n; c++)
            if (!net->tensors[i].weights && net->tensors[i].narrows == narrows &&
                net->items[i].bits[c] == bits)
                return true;
    return false;
}

/** Find the ranges for so many bits of all activations that go by this estimator, and note them. */
static void note_ranges(budget_meter *m, const budget_network *net, qat_calibrator *calibrator,
                        bool narrows, int bits)
{
    if (!asks_for(net, narrows, bits))
        return;
    find_ranges(m, net, calibrator, narrows ? "mse" : "minmax", bits);
    for (int i = 0; i < net->n_items; i++) {
        const budget_tensor *t = &net->tensors[i];
        if (t->weights || t->narrows != narrows)
            continue;
        m->ranges[i][bits][0] = t->quantizer->inputs[1]->value[RANGE_MIN];
        m->ranges[i][bits][1] = t->quantizer->inputs[1]->value[RANGE_MAX];
    }
}

static qat_status observe(budget_meter *m, const budget_network *net, qat_error *err)
{
    qat_calibrator *calibrator = NULL;
    qat_status st = qat_calibrator_create(&calibrator, m->simulated, err);
    if (!st)
        st = budget_meter_pass(m, m->simulated, note_extents, calibrator, err);
    if (!st)
        st = budget_meter_pass(m, m->simulated, count_values, calibrator, err);
    for (int bits = 2; !st && bits <= 8; bits++) {
        note_ranges(m, net, calibrator, true, bits);
        note_ranges(m, net, calibrator, false, bits);
    }
    if (!st)
        find_ranges(m, net, calibrator, "minmax", 0);
    qat_calibrator_free(calibrator);
    return st;
}

qat_status budget_meter_prepare(budget_meter *m, budget_network *net, qat_error *err)
{
    m->batch = qat_batch_that_fits(m->float_graph, MOST_BATCH);
    m->overrides = calloc((size_t)net->n_nodes + 1, sizeof *m->overrides);
    m->ranges = calloc((size_t)net->n_items + 1, sizeof *m->ranges);
    qat_status st = m->overrides && m->ranges ? QAT_OK : qat_out_of_memory(err, "budget");
    if (!st)
        st = read_weights(m, err);
    if (!st)
        st = qat_graph_plan(m->simulated, m->batch, QAT_PLAN_KEEP, err);
    if (!st)
        st = open_loader(m, err);
    if (st)
        return st;
    qat_graph_init_params(m->simulated, 0);
    qat_graph_copy_params(m->simulated, m->float_graph);
    st = observe(m, net, err);
    for (int i = 0; !st && i < net->n_items; i++)
        st = budget_meter_set(m, net, i, net->items[i].bits[0], err);
    return st;
}

qat_status budget_meter_digest(const budget_meter *m, uint8_t digest[32], qat_error *err)
{
    qat_writer w = {0};
    for (int i = 0; i < qat_graph_nodes(m->float_graph); i++) {
        const qat_node *node = qat_graph_node(m->float_graph, i);
        if (!node->is_param)
            continue;
        qat_write_text(&w, "%s\n", node->name);
        qat_write_bytes(&w, node->value, qat_shape_count(&node->shape) * sizeof *node->value);
    }
    qat_sha256(w.bytes, w.failed ? 0 : w.count, digest);
    bool const failed = w.failed;
    qat_writer_free(&w);
    return failed ? qat_out_of_memory(err, "budget") : QAT_OK;
}

/* ------------------------------------------------------------------ bits */

static void set_activation(budget_meter *m, const budget_network *net, int item, int bits)
{
    for (int i = 0; i < net->n_nodes; i++) {
        qat_node *node = qat_graph_node(m->simulated, i);
        if (net->item_of[i] != item)
            continue;
        node->attrs[FQ_KIND] = FQ_RANGE;
        node->attrs[FQ_BITS] = bits;
        node->attrs[FQ_MIN] = (double)m->ranges[item][bits][0];
        node->attrs[FQ_MAX] = (double)m->ranges[item][bits][1];
    }
}

qat_status budget_meter_set(budget_meter *m, const budget_network *net, int item, int bits,
                            qat_error *err)
{
    const budget_tensor *t = &net->tensors[item];
    budget_override **override = &m->overrides[t->quantizer->index];
    if (!t->weights) {
        set_activation(m, net, item, bits);
        return QAT_OK;
    }
    t->quantizer->attrs[FQW_BITS] = bits;
    budget_override_free(*override);
    *override = NULL;
    return t->narrows ? budget_override_make(override, t->quantizer, t->all_codes, err) : QAT_OK;
}

/* ------------------------------------------------------------------ rounding errors */

/** One forward of a batch, after which weights have their values. */
static qat_status forward_once(budget_meter *m, qat_error *err)
{
    const qat_batch *batch = NULL;
    loss_sum ignored = {.m = m};
    qat_status st = qat_loader_seek(m->loader, 0, 0, err);
    if (!st)
        st = qat_loader_next(m->loader, &batch, err);
    if (!st)
        st = feed(m, m->simulated, batch, 1, err);
    return st ? st : add_loss(&ignored, m->simulated, 1, err);
}

/** The weights before batch norm scaled them. */
static const qat_node *raw_weights(const qat_node *quantizer)
{
    const qat_node *from = quantizer->inputs[0];
    return from->is_param ? from : from->inputs[FOLDW_W];
}

qat_status budget_meter_error(budget_meter *m, const budget_network *net, int item, int bits,
                              double *squares, qat_error *err)
{
    const qat_node *q = net->tensors[item].quantizer;
    *squares = 0;
    qat_status st = budget_meter_set(m, net, item, bits, err);
    if (!st)
        st = forward_once(m, err);
    if (st)
        return st;
    const float *raw = raw_weights(q)->value, *folded = q->inputs[0]->value;
    for (size_t i = 0; i < qat_shape_count(&q->shape); i++) {
        if (raw[i] == 0 || folded[i] == 0)
            continue; /* 0 has a code: no error */
        double const factor = (double)folded[i] / (double)raw[i];
        double const error = ((double)q->value[i] - (double)folded[i]) / factor;
        *squares += error * error;
    }
    return budget_meter_set(m, net, item, net->items[item].bits[0], err);
}
