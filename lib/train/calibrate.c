/**
 * Post-training quantization: the activation ranges of a trained float network, observed on data.
 *
 * The training rewrite runs with weights quantized from step 0, batch norm frozen, activations not
 * yet quantized; only its observers' ranges are kept, everything else stays the checkpoint's.
 */
#include "train/calibrate.h"

#include "train/data.h"

#include <string.h>

/** Is this parameter the range of a fake_quant node? */
static bool is_range(const qat_node *param)
{
    size_t const n = strlen(param->name);
    return n >= 6 && !strcmp(param->name + n - 6, "/range");
}

static qat_status observe(qat_graph *graph, qat_loader *loader, int64_t batches, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int64_t i = 0; i < batches && !st; i++) {
        const qat_batch *batch = NULL;
        st = qat_loader_next(loader, &batch, err);
        if (!st)
            st = qat_feed_graph(graph, batch, batch->count, err);
        if (st)
            break;
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = i};
        qat_graph_forward(graph, &run);
        qat_graph_update(graph, &run);
    }
    return st;
}

static qat_status open_graph(const qat_restored *r, int batch, qat_graph **graph, qat_error *err)
{
    qat_quant_options o = r->checkpoint->quant;
    o.weight_delay = 0;
    o.bn_freeze_delay = 0;
    o.activation_delay = INT64_MAX;
    qat_status st = qat_create_training_graph(graph, r->float_graph, &o, err);
    if (!st)
        st = qat_graph_plan(*graph, batch, QAT_PLAN_KEEP, err);
    if (!st)
        st = qat_checkpoint_params(r->checkpoint, *graph, err);
    return st;
}

static qat_status run_observers(const qat_restored *r, const qat_dataset *data, int64_t samples,
                                qat_graph *graph, int batch, qat_error *err)
{
    qat_loader *loader = NULL;
    int64_t const count = qat_dataset_info_of(data)->count;
    int64_t const wanted = samples < count ? samples : count;
    qat_loader_options const o = {.batch = batch,
                                  .shuffle = true,
                                  .seed = (uint64_t)r->recipe->train.seed,
                                  .threads = 1,
                                  .prefetch = 4};
    qat_status st = qat_open_loader(&loader, data, &r->checkpoint->input, &o, err);
    if (!st)
        st = observe(graph, loader, (wanted + batch - 1) / batch, err);
    qat_loader_free(loader);
    return st;
}

/** Everything the float run knows stays as it was: ranges alone are new. */
static void keep_trained(const qat_checkpoint *c, qat_graph *eval)
{
    for (int i = 0; i < c->n_params; i++) {
        const qat_named_tensor *t = &c->params[i];
        qat_node *node = qat_graph_find(eval, t->name);
        bool const observed = c->quantized && node && !node->trainable && is_range(node);
        if (node && !observed && qat_shape_equal(&node->shape, &t->shape))
            memcpy(node->value, t->values, qat_shape_count(&t->shape) * sizeof *t->values);
    }
}

qat_status qat_calibrate(const qat_restored *r, const char *spec, int64_t samples, qat_graph *eval,
                         qat_error *err)
{
    int const batch = (int)r->recipe->train.batch;
    qat_dataset *data = NULL;
    qat_graph *graph = NULL;
    qat_status st = qat_recipe_open_data(&data, r->recipe, spec, QAT_SPLIT_TRAIN, err);
    if (!st)
        st = open_graph(r, batch, &graph, err);
    if (!st)
        st = run_observers(r, data, samples, graph, batch, err);
    if (!st) {
        qat_graph_copy_params(eval, graph);
        keep_trained(r->checkpoint, eval);
    }
    qat_graph_free(graph);
    qat_dataset_close(data);
    return st;
}
