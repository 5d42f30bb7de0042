/**
 * Integer forward of every op that is not a convolution. The layer is frozen as export freezes it,
 * with the parameters of this step, into its own integer graph. The engine's inner loops or the
 * exact evaluation run this graph.
 */
#include "fakequant/ops.h"
#include "integer/quant_ops.h"
#include "live/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A layer while it is frozen. */
struct frozen {
    fwd_graph *f;
    fwd_layer *l;
    qat_qgraph *graph;
    int n_inputs;        /* of the integer graph: distinct tensors */
    const void **codes;  /* of these */
    int *tensors;        /* of these */
    int *inputs;         /* of the head: tensors */
    qat_qparams *params; /* of the head's inputs */
};

static bool frozen_alloc(struct frozen *z)
{
    size_t const n = (size_t)z->l->head->n_data + 1;
    z->graph = qat_qgraph_new();
    z->codes = calloc(n, sizeof *z->codes);
    z->tensors = calloc(n, sizeof *z->tensors);
    z->inputs = calloc(n, sizeof *z->inputs);
    z->params = calloc(n, sizeof *z->params);
    return z->graph && z->codes && z->tensors && z->inputs && z->params;
}

static void frozen_free(struct frozen *z)
{
    qat_qgraph_free(z->graph);
    free(z->codes);
    free(z->tensors);
    free(z->inputs);
    free(z->params);
}

/** Append the tensor of a node's codes, for one sample. */
static int add_tensor(const struct frozen *z, const qat_node *node, const qat_qparams *p,
                      qat_error *err)
{
    qat_qtensor t = {.type = z->f->options->layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8,
                     .bits = fwd_codes_of(z->f, node)->bits,
                     .rank = node->shape.rank,
                     .scale = p->scale,
                     .zero_point = p->zero_point,
                     .range_min = p->min,
                     .range_max = p->max,
                     .source_index = -1};
    snprintf(t.name, sizeof t.name, "%s", node->name);
    memcpy(t.dims, node->shape.dims, sizeof t.dims);
    t.dims[0] = 1;
    return qat_qgraph_tensor(z->graph, &t, err);
}

/**
 * The tensor of input i of the layer: the one of an earlier input with the same node, or a new one.
 */
static qat_status add_input(struct frozen *z, int i, const qat_node *node, qat_error *err)
{
    const fwd_codes *codes = fwd_codes_of(z->f, node);
    z->params[i] = codes->p;
    for (int k = 0; k < z->n_inputs; k++)
        if (z->codes[k] == codes->bytes) {
            z->inputs[i] = z->tensors[k];
            return QAT_OK;
        }
    z->inputs[i] = add_tensor(z, node, &codes->p, err);
    if (z->inputs[i] < 0)
        return err->status;
    z->codes[z->n_inputs] = codes->bytes;
    z->tensors[z->n_inputs++] = z->inputs[i];
    return QAT_OK;
}

static const qat_node *weights_of(const qat_node *head)
{
    for (int i = head->n_data; i < head->n_inputs; i++)
        if (head->op->quant->weight_params >> (i - head->n_data) & 1u &&
            head->inputs[i]->op == &qat_op_fake_quant_weights)
            return head->inputs[i];
    return NULL;
}

/** Append the inputs, the output, and the ops between. */
static qat_status freeze(struct frozen *z, const qat_qparams *p, qat_error *err)
{
    fwd_layer *l = z->l;
    bool const requantize = l->kind == FWD_REQUANTIZE;
    int const n = requantize ? 1 : l->head->n_data;
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < n; i++)
        st = add_input(z, i, requantize ? l->head : l->head->inputs[i], err);
    int const output = st ? -1 : add_tensor(z, l->output, p, err);
    if (output < 0)
        return err->status;
    const qat_node *own = l->activation ? l->activation : l->output;
    qat_fused_layer const layer = {.graph = z->graph,
                                   .profile = z->f->options->profile,
                                   .options = z->f->options,
                                   .head = requantize ? own : l->head,
                                   .weights = requantize ? NULL : weights_of(l->head),
                                   .act_min = l->act_min,
                                   .act_max = l->act_max,
                                   .n_inputs = n,
                                   .inputs = z->inputs,
                                   .input_params = z->params,
                                   .output = output,
                                   .output_params = *p};
    st = requantize ? qat_freeze_requantize(&layer, err) : qat_freeze_layer(&layer, err);
    return st ? st : qat_qgraph_set_io(z->graph, z->n_inputs, z->tensors, 1, &output, err);
}

static qat_status evaluate(struct frozen *z, qat_error *err)
{
    const qat_node *output = z->l->output;
    int const batch = output->shape.dims[0];
    qat_exact *exact = NULL;
    if (fwd_run_fast(z->f, z->graph, z->codes, fwd_codes_of(z->f, output)->bytes, batch))
        return QAT_OK;
    qat_status st = qat_exact_create(&exact, z->graph, qat_graph_registry(z->f->graph), batch, err);
    if (!st)
        st = qat_exact_run(exact, z->codes, batch, err);
    if (!st)
        memcpy(fwd_codes_of(z->f, output)->bytes, qat_exact_tensor(exact, z->graph->outputs[0]),
               qat_shape_count(&output->shape));
    qat_exact_free(exact);
    return st;
}

static bool same_grid(const qat_qparams *a, const qat_qparams *b)
{
    return memcmp(&a->scale, &b->scale, sizeof a->scale) == 0 && a->zero_point == b->zero_point &&
           a->lo == b->lo && a->hi == b->hi;
}

qat_status fwd_other(fwd_graph *f, fwd_layer *l, const qat_qparams *p, qat_error *err)
{
    fwd_codes *out = fwd_codes_of(f, l->output);
    out->p = *p;
    out->live = true;
    const fwd_codes *in = fwd_codes_of(f, l->head);
    if (l->kind == FWD_REQUANTIZE && !l->activation && same_grid(&in->p, p)) {
        memcpy(out->bytes, in->bytes, qat_shape_count(&l->output->shape));
        return QAT_OK;
    }
    struct frozen z = {.f = f, .l = l};
    qat_status st = QAT_OK;
    if (!frozen_alloc(&z))
        st = qat_out_of_memory(err, l->head->name);
    if (!st)
        st = freeze(&z, p, err);
    if (!st)
        st = evaluate(&z, err);
    frozen_free(&z);
    return st;
}
