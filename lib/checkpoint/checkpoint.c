/**
 * A checkpoint in memory: copies its tensors into a graph's parameters, and exchanges parameters
 * and averages.
 */
#include "checkpoint/checkpoint.h"

#include "qat/quantizer.h"

#include <stdlib.h>
#include <string.h>

qat_checkpoint *qat_checkpoint_new(void)
{
    return calloc(1, sizeof(qat_checkpoint));
}

static void free_tensors(qat_named_tensor *tensors, int count)
{
    for (int i = 0; tensors && i < count; i++)
        free(tensors[i].values);
    free(tensors);
}

void qat_checkpoint_free(qat_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (int i = 0; checkpoint->labels && i < checkpoint->input.classes; i++)
        free(checkpoint->labels[i]);
    free(checkpoint->labels);
    free_tensors(checkpoint->params, checkpoint->n_params);
    free_tensors(checkpoint->slots, checkpoint->n_slot_tensors);
    free(checkpoint->recipe);
    free(checkpoint->graph);
    free(checkpoint->log);
    free(checkpoint->plugins);
    qat_data_digest_free(&checkpoint->data[QAT_SPLIT_TRAIN]);
    qat_data_digest_free(&checkpoint->data[QAT_SPLIT_TEST]);
    free(checkpoint);
}

/** Find a parameter from *at on, and then before it: names come in the graph's order. */
static qat_named_tensor *find_tensor(const qat_checkpoint *c, const char *name, int *at)
{
    for (int i = 0; i < c->n_params; i++) {
        qat_named_tensor *t = &c->params[*at];
        *at = *at + 1 < c->n_params ? *at + 1 : 0;
        if (!strcmp(t->name, name))
            return t;
    }
    return NULL;
}

qat_status qat_checkpoint_params(const qat_checkpoint *checkpoint, qat_graph *graph, qat_error *err)
{
    int next = 0;
    qat_graph_init_params(graph, 0);
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (!node->is_param)
            continue;
        const qat_named_tensor *t = find_tensor(checkpoint, node->name, &next);
        char a[64], b[64];
        if (!t && node->trainable && !qat_is_learned_range(node->name))
            return qat_fail(err, QAT_ERR_FORMAT, "the checkpoint has no parameter %s", node->name);
        if (!t)
            continue; /* a rewrite's constant, or a range that was never observed: keeps its initial
                         value */
        if (!qat_shape_equal(&t->shape, &node->shape))
            return qat_fail(err, QAT_ERR_SHAPE, "parameter %s is %s in the checkpoint, but %s here",
                            node->name, qat_shape_text(&t->shape, a),
                            qat_shape_text(&node->shape, b));
        memcpy(node->value, t->values, qat_shape_count(&t->shape) * sizeof *t->values);
    }
    return QAT_OK;
}

void qat_checkpoint_set_task(qat_checkpoint *c, const qat_task *task)
{
    qat_accuracy *const of[] = {&c->float_accuracy, &c->integer_accuracy, &c->simulated_accuracy};
    c->input.task = task;
    for (int i = 0; i < 3; i++)
        if (of[i]->n && !of[i]->task)
            of[i]->task = task;
}

bool qat_checkpoint_swap_averages(qat_checkpoint *checkpoint)
{
    qat_checkpoint *c = checkpoint;
    int next = 0;
    for (int k = c->n_slots - 1; c->averaged && k < c->n_slot_tensors; k += c->n_slots) {
        qat_named_tensor *average = &c->slots[k], *param = find_tensor(c, average->name, &next);
        if (!param || !qat_shape_equal(&average->shape, &param->shape) ||
            qat_is_learned_range(param->name)) /* its average would start without observations */
            continue;
        float *values = param->values;
        param->values = average->values;
        average->values = values;
    }
    return c->averaged;
}

/* ------------------------------------------------------------------ questions */

const qat_input_info *qat_checkpoint_input(const qat_checkpoint *c)
{
    return &c->input;
}

const char *qat_checkpoint_label(const qat_checkpoint *c, int i)
{
    return c->labels ? c->labels[i] : NULL;
}

bool qat_checkpoint_quantized(const qat_checkpoint *c)
{
    return c->quantized;
}

const qat_quant_options *qat_checkpoint_quant(const qat_checkpoint *c)
{
    return &c->quant;
}

const qat_named_tensor *qat_checkpoint_tensors(const qat_checkpoint *c, int *count)
{
    *count = c->n_params;
    return c->params;
}

const qat_plugin_file *qat_checkpoint_plugins(const qat_checkpoint *c, int *count)
{
    *count = c->n_plugins;
    return c->plugins;
}

int64_t qat_checkpoint_step(const qat_checkpoint *c)
{
    return c->step;
}

const uint8_t *qat_checkpoint_digest(const qat_checkpoint *c)
{
    return c->digest;
}

const qat_accuracy *qat_checkpoint_accuracy(const qat_checkpoint *c, qat_judged which)
{
    return which == QAT_JUDGED_FLOAT     ? &c->float_accuracy
           : which == QAT_JUDGED_INTEGER ? &c->integer_accuracy
                                         : &c->simulated_accuracy;
}
