/** Plans the graphs of the shards: which nodes have samples, and which ops know how to be joined.
 */
#include "autograd/shards/own.h"

#include "autograd/graph/shared.h"

#include <stdlib.h>
#include <string.h>

/** A node without a batch that is made of samples: what is it, if its op does not add up? */
static qat_status check_total(const qat_node *node, qat_error *err)
{
    bool samples = false, totals = false, learns = false;
    for (int k = 0; k < node->n_inputs; k++) {
        const core_node *input = core_of(node->inputs[k]);
        samples |= input->kind == CORE_SAMPLES;
        totals |= input->kind == CORE_TOTAL;
        learns |= input->kind == CORE_FIXED && (input->node.op || input->node.trainable);
    }
    bool const cut = node->graph->shards > 1;
    if (!cut || node->op->shared || (samples && !totals) || (!samples && !learns))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "train.shards: node '%s' (%s) mixes %s: its part of a shard is not known",
                    node->name, node->op->name,
                    samples ? "samples with what is made of all samples"
                            : "what is made of all samples with parameters");
}

/** Nobody would join what such an op has seen of each part. */
static qat_status check_update(const qat_node *node, qat_error *err)
{
    if (!node->op || !node->op->update || node->op->shared)
        return QAT_OK;
    return qat_fail(
        err, QAT_ERR_UNSUPPORTED,
        "node '%s' (%s) updates its parameters from the batch, but its op does not say how it "
        "does so when others have seen the batch (train.shards, train.asynchronous)",
        node->name, node->op->name);
}

static qat_status find_kind(core_node *core, bool has_batch, qat_error *err)
{
    const qat_node *node = &core->node;
    core->kind = has_batch ? CORE_SAMPLES : CORE_FIXED;
    for (int k = 0; !has_batch && k < node->n_inputs; k++)
        if (core_of(node->inputs[k])->kind != CORE_FIXED)
            core->kind = CORE_TOTAL;
    for (int k = 0; core->kind != CORE_FIXED && k < node->n_inputs; k++)
        core_of(node->inputs[k])->partial |= core_of(node->inputs[k])->kind == CORE_FIXED;
    qat_status const st = core->kind == CORE_FIXED ? QAT_OK : check_update(node, err);
    return !st && core->kind == CORE_TOTAL ? check_total(node, err) : st;
}

/** A node has a batch dimension if another batch gives it another size. */
qat_status qat_core_find_kinds(qat_graph *graph, qat_error *err)
{
    int const other = graph->max_batch > 1 ? graph->max_batch - 1 : 2;
    size_t *counts = calloc((size_t)graph->count + 1, sizeof *counts);
    qat_status st = counts ? QAT_OK : qat_out_of_memory(err, "plan");
    for (int i = 0; !st && i < graph->count; i++)
        counts[i] = qat_shape_count(&graph->nodes[i]->node.shape);
    if (!st)
        st = qat_core_infer_all(graph, other, err);
    for (int i = 0; !st && i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        st = find_kind(core, qat_shape_count(&core->node.shape) != counts[i], err);
    }
    free(counts);
    return st ? st : qat_core_infer_all(graph, graph->max_batch, err);
}

static qat_status plan_one(qat_shards *s, int i, qat_plan plan, qat_error *err)
{
    qat_graph *graph = s->graphs[i];
    qat_samples const samples = qat_shards_samples(s, i);
    graph->first = s->graphs[0];
    graph->shard = s->first + i;
    graph->shards = s->tree.shards;
    graph->split_batch_norm = s->split_batch_norm;
    for (int k = 0; k < i; k++)
        graph->bytes_before += s->graphs[k]->memory_bytes;
    return qat_graph_plan(graph, samples.end - samples.begin, plan, err);
}

qat_status qat_shards_plan(qat_shards *s, qat_graph *const *graphs, qat_plan plan, qat_error *err)
{
    qat_status st = QAT_OK;
    memcpy(s->graphs, graphs, (size_t)s->own * sizeof *s->graphs);
    free(s->ready);
    s->ready = calloc((size_t)graphs[0]->count + 1, sizeof *s->ready);
    if (!s->ready)
        return qat_out_of_memory(err, "shards");
    for (int i = 0; !st && i < s->own; i++)
        st = plan_one(s, i, plan, err);
    return st;
}
