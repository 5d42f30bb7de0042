/**
 * Integer forward of every op that is not a convolution. The layer is frozen as export freezes it,
 * with the parameters of this step, into its own integer graph. The engine's inner loops or the
 * exact evaluation run this graph.
 */
#include "fakequant/ops.h"
#include "integer/quant_ops.h"
#include "live/live.h"

#include <stdio.h>
#include <string.h>

/** A layer while it is frozen. All is in the memory of the graph, which f->frozen is. */
struct frozen {
    fwd_graph *f;
    fwd_layer *l;
    qat_qgraph *graph;
    int n_inputs;           /* of the integer graph: distinct tensors */
    const fwd_codes **from; /* of these */
    const void **codes;     /* of these */
    int *tensors;           /* of these */
    int *inputs;            /* of the head: tensors */
    qat_qparams *params;    /* of the head's inputs */
    fwd_fast *fast;
    qat_exact *exact; /* if there is no fast */
};

static bool frozen_begin(struct frozen *z, fwd_graph *f, fwd_layer *l)
{
    size_t const n = (size_t)l->head->n_data + 1;
    qat_arena *memory = f->frozen->memory;
    qat_qgraph_clear(f->frozen);
    *z = (struct frozen){.f = f,
                         .l = l,
                         .graph = f->frozen,
                         .from = qat_arena_array(memory, n, sizeof *z->from),
                         .codes = qat_arena_array(memory, n, sizeof *z->codes),
                         .tensors = qat_arena_array(memory, n, sizeof *z->tensors),
                         .inputs = qat_arena_array(memory, n, sizeof *z->inputs),
                         .params = qat_arena_array(memory, n, sizeof *z->params)};
    return z->from && z->codes && z->tensors && z->inputs && z->params;
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
        if (z->from[k] == codes) {
            z->inputs[i] = z->tensors[k];
            return QAT_OK;
        }
    z->inputs[i] = add_tensor(z, node, &codes->p, err);
    if (z->inputs[i] < 0)
        return err->status;
    z->from[z->n_inputs] = codes;
    z->codes[z->n_inputs] = codes->bytes;
    z->tensors[z->n_inputs++] = z->inputs[i];
    return QAT_OK;
}

static const qat_node *weights_of(const qat_node *head)
{
    for (int i = head->n_data; i < head->n_inputs; i++)
        if (head->op->quant->weight_params >> (i - head->n_data) & 1u &&
            qat_node_quantizes(head->inputs[i], true))
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

/** Freeze, and take what running needs. */
static qat_status prepare(struct frozen *z, fwd_graph *f, fwd_layer *l, const qat_qparams *p,
                          qat_error *err)
{
    int const batch = l->output->shape.dims[0];
    if (!frozen_begin(z, f, l))
        return qat_out_of_memory(err, l->head->name);
    qat_status const st = freeze(z, p, err);
    z->fast = st ? NULL : fwd_fast_make(f, batch);
    if (st || z->fast)
        return st;
    return qat_exact_create_in(&z->exact, z->graph->memory, z->graph, qat_graph_registry(f->graph),
                               batch, err);
}

static qat_status run(const struct frozen *z, uint8_t *out, qat_error *err)
{
    const qat_shape *shape = &z->l->output->shape;
    if (z->fast) {
        fwd_fast_run(z->fast, z->codes, out);
        return QAT_OK;
    }
    qat_status const st = qat_exact_run(z->exact, z->codes, shape->dims[0], err);
    if (!st)
        memcpy(out, qat_exact_tensor(z->exact, z->graph->outputs[0]), qat_shape_count(shape));
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
    fwd_set_grid(out, p);
    const fwd_codes *in = fwd_codes_of(f, l->head);
    if (l->kind == FWD_REQUANTIZE && !l->activation && same_grid(&in->p, p)) {
        memcpy(out->bytes, in->bytes, qat_shape_count(&l->output->shape));
        return QAT_OK;
    }
    struct frozen z;
    qat_status const st = prepare(&z, f, l, p, err);
    return st ? st : run(&z, out->bytes, err);
}

qat_status fwd_rehearse_other(fwd_graph *f, fwd_layer *l, qat_error *err)
{
    struct frozen z;
    return prepare(&z, f, l, &fwd_codes_of(f, l->output)->p, err);
}
