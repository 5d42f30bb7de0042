/**
 * Integer forward: finds which fake_quant ends which layer, by walking back from each fake_quant:
 *
 *     fake_quant <- relu.. <- bn_fold_train <- bias <- conv             ACCUMULATE
 *     fake_quant <- relu.. <- bias <- conv
 *     fake_quant <- relu.. <- add, pool, softmax, concat, custom ..     OTHER
 *     fake_quant <- relu.. <- a node that has codes                     REQUANTIZE
 *     fake_quant <- input                                               INPUT
 */
#include "autograd/graph/backend.h"
#include "autograd/loops/tiles.h"
#include "base/arena.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fakequant/weights.h"
#include "infer/host/parts.h"
#include "layer/layer.h"
#include "live/live.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/** The layer that ends in a fake_quant. */
static fwd_layer layer_of(qat_node *fake_quant)
{
    qat_layer const l = qat_layer_before(fake_quant);
    return (fwd_layer){.output = fake_quant,
                       .head = l.head,
                       .bias = l.bias,
                       .bn = l.norm,
                       .activation = l.clamp,
                       .act_min = l.min,
                       .act_max = l.max};
}

static fwd_kind kind_of(const fwd_graph *f, const fwd_layer *l)
{
    if (qat_node_is_input(l->head))
        return FWD_INPUT;
    if (fwd_codes_of(f, l->head)->has)
        return FWD_REQUANTIZE;
    return qat_has_role(l->head, QAT_ROLE_ACCUMULATE) ? FWD_ACCUMULATE : FWD_OTHER;
}

static qat_status refuse(const qat_node *node, const char *why, qat_error *err)
{
    return qat_fail(err, QAT_ERR_UNSUPPORTED, "forward = integer: node '%s' (op %s) %s", node->name,
                    node->op ? node->op->name : "none", why);
}

/* ------------------------------------------------------------------ accumulating layers */

static bool has_own_values(const qat_node *weights)
{
    const qat_quantizer *by = qat_node_quantizer(weights);
    return by && by->own_values;
}

/**
 * Check that the sums fit int32 for all codes. Weights of a scheme may have more bits than asked
 * for: any number up to 8. Sums below EXACT are whole numbers in float32, which has 24 bits: the
 * two that are left are for the errors of products and partial sums.
 */
static qat_status check_depth(const fwd_graph *f, fwd_layer *l, qat_error *err)
{
    enum { EXACT = 1 << 22 };
    int const bits = has_own_values(l->weights) ? 8 : (int)l->weights->attrs[FQW_BITS];
    int64_t const largest = ((INT64_C(1) << fwd_codes_of(f, l->head->inputs[0])->bits) - 1) *
                            ((INT64_C(1) << bits) - 1) * l->depth;
    l->in_float = f->simulates && largest < EXACT;
    if (largest <= INT32_MAX)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "forward = integer: node '%s' (op %s) sums %" PRId64
                    " products, which can leave int32",
                    l->head->name, l->head->op->name, l->depth);
}

/** The input's pixels a stride apart, and at least one of them under each window. */
static int64_t spread_size(int in, int stride, int out, int pad)
{
    int64_t const apart = (int64_t)(in - 1) * stride + 1, reached = (int64_t)out - pad;
    return apart > reached ? apart : reached;
}

/** The convolution that sums a transposed one: over an input whose pixels are a stride apart. */
static qat_status spread_window(fwd_layer *l, qat_error *err)
{
    qat_window w;
    qat_status const st = qat_transposed_window_of(&w, l->head, err);
    if (st)
        return st;
    int const top = w.kernel_h - 1 - w.pad_top, left = w.kernel_w - 1 - w.pad_left;
    int64_t const high = spread_size(w.out_h, w.stride_h, w.in_h, top);
    int64_t const wide = spread_size(w.out_w, w.stride_w, w.in_w, left);
    if (high > INT32_MAX || wide > INT32_MAX)
        return refuse(l->head, "has too large an input", err);
    l->spread_h = w.stride_h;
    l->spread_w = w.stride_w;
    l->window = (qat_window){.in_h = (int)high,
                             .in_w = (int)wide,
                             .out_h = w.in_h,
                             .out_w = w.in_w,
                             .kernel_h = w.kernel_h,
                             .kernel_w = w.kernel_w,
                             .stride_h = 1,
                             .stride_w = 1,
                             .dilation_h = 1,
                             .dilation_w = 1,
                             .pad_top = top,
                             .pad_left = left};
    return QAT_OK;
}

static qat_status describe(const fwd_graph *f, fwd_layer *l, qat_error *err)
{
    const qat_node *head = l->head, *w = head->inputs[head->n_data];
    if (!qat_node_quantizes(w, true))
        return refuse(head, "has float weights", err);
    /* qat_quant_check_forward refuses fgq and inq */
    if (w->op != &qat_op_fake_quant_weights && !qat_is_quantizer_op(w->op) && !has_own_values(w))
        return refuse(w, "does not give values on a grid (own_values)", err);
    const qat_shape *shape = &w->shape;
    l->weights = w;
    l->depthwise = qat_channel_axis(head) > 0;
    l->fully_connected = shape->rank == 2;
    l->channels = shape->dims[qat_channel_axis(head)];
    l->depth = (int64_t)(qat_shape_count(shape) / (size_t)l->channels);
    qat_status const st = l->fully_connected            ? QAT_OK
                          : head->op->quant->transposed ? spread_window(l, err)
                                                        : qat_window_of(&l->window, head, err);
    return st ? st : check_depth(f, l, err);
}

static qi_window window_of(const fwd_layer *l)
{
    const qat_shape *x = &l->head->inputs[0]->shape;
    const qat_window *w = &l->window;
    if (l->fully_connected)
        return (qi_window){.n = (int32_t)fwd_rows(l),
                           .h = 1,
                           .w = 1,
                           .c = (int32_t)l->depth,
                           .oh = 1,
                           .ow = 1,
                           .o = l->channels,
                           .kernel_h = 1,
                           .kernel_w = 1,
                           .stride_h = 1,
                           .stride_w = 1,
                           .dilation_h = 1,
                           .dilation_w = 1};
    return (qi_window){.n = x->dims[0],
                       .h = w->in_h,
                       .w = w->in_w,
                       .c = x->dims[3],
                       .oh = w->out_h,
                       .ow = w->out_w,
                       .o = l->channels,
                       .kernel_h = w->kernel_h,
                       .kernel_w = w->kernel_w,
                       .stride_h = w->stride_h,
                       .stride_w = w->stride_w,
                       .dilation_h = w->dilation_h,
                       .dilation_w = w->dilation_w,
                       .pad_top = w->pad_top,
                       .pad_left = w->pad_left};
}

/** n zeros of `size` bytes, which live as long as the plan. Sets ok to false if there is no memory.
 */
static void *take(fwd_graph *f, bool *ok, size_t n, size_t size)
{
    void *memory = *ok ? qat_arena_array(&f->memory, n, size) : NULL;
    *ok = *ok && memory;
    return memory;
}

/** What the sums are computed with. Those of a simulation are computed by the head itself. */
static bool allocate_sums(fwd_graph *f, fwd_layer *l)
{
    bool ok = true;
    size_t const wide = qat_wide_pattern((size_t)l->channels);
    qi_type const x = f->options->layout == QAT_LAYOUT_INT8 ? QI_S8 : QI_U8;
    qi_window const window = window_of(l);
    int32_t const groups =
        l->fully_connected || l->depthwise ? 1 : window.c / l->weights->shape.dims[3];
    if (l->in_float) {
        l->wide.per_z = take(f, &ok, wide, sizeof(qat_real));
        return ok;
    }
    if (l->spread_h)
        l->spread = take(f, &ok, fwd_spread_bytes(l) + CORE_CODES_SLACK, 1);
    if (l->depthwise)
        l->differences = take(f, &ok, (size_t)l->depth * wide, sizeof *l->differences);
    else
        l->sums = ok ? qi_host_parts()->sums_make(&window, groups, (const qi_type[]){x, x}) : NULL;
    return ok && (l->depthwise || l->sums);
}

static bool allocate_layer(fwd_graph *f, fwd_layer *l)
{
    bool ok = true;
    size_t const n = (size_t)l->channels, wide = qat_wide_pattern(n);
    size_t const weights = qat_shape_count(&l->weights->shape);
    l->weight_codes = take(f, &ok, weights + CORE_CODES_SLACK, 1);
    l->weight_scales = take(f, &ok, n, sizeof(float));
    l->sum = take(f, &ok, 2 * n + 1, sizeof(double));
    l->least = take(f, &ok, 2 * n, sizeof(int32_t));
    l->partial = take(f, &ok, 2 * (size_t)QAT_BLOCKS * wide, sizeof(double) + sizeof(int32_t));
    l->significand = take(f, &ok, n, sizeof(int64_t));
    l->biases = take(f, &ok, n, sizeof(double));
    l->multipliers = take(f, &ok, n, sizeof(double));
    l->wide.bias = take(f, &ok, 5 * wide, sizeof(int32_t));
    l->wide.z_scale = take(f, &ok, 2 * wide, sizeof(qat_real));
    l->range.smallest = take(f, &ok, 2 * wide, sizeof(int32_t));
    if (!ok || !allocate_sums(f, l))
        return false;
    l->squares = l->sum + n;
    l->total = l->sum + 2 * n;
    l->most = l->least + n;
    l->range.shift = l->range.smallest + wide;
    l->wide.mult = l->wide.bias + wide;
    l->wide.left = l->wide.mult + wide;
    l->wide.right = l->wide.left + wide;
    l->wide.even = l->wide.right + wide;
    l->wide.z_offset = l->wide.z_scale + wide;
    return true;
}

static void free_sums(fwd_graph *f)
{
    for (int i = 0; i < f->n_layers; i++)
        qi_host_parts()->sums_free(f->layers[i].sums);
    f->n_layers = 0;
}

void fwd_free_layers(fwd_graph *f)
{
    free_sums(f);
    qat_arena_free(&f->memory);
    qat_aligned_free(f->scratch);
}

/* ------------------------------------------------------------------ the graph */

static qat_status check_inputs(const fwd_graph *f, const fwd_layer *l, qat_error *err)
{
    for (int i = 0; i < l->head->n_data; i++)
        if (!fwd_codes_of(f, l->head->inputs[i])->has)
            return refuse(l->head, "reads a tensor that is not quantized", err);
    return QAT_OK;
}

/** Check what only some kinds of layers may have. */
static qat_status check_layer(const fwd_graph *f, const fwd_layer *l, qat_error *err)
{
    switch (l->kind) {
    case FWD_ACCUMULATE:
        return check_inputs(f, l, err);
    case FWD_OTHER:
        if (!l->head->op || !l->head->op->quant)
            return refuse(l->head, "has no integer form", err);
        if (l->bias || l->bn)
            return refuse(l->bn ? l->bn : l->bias, "follows no convolution", err);
        return check_inputs(f, l, err);
    default:
        return l->bias || l->bn
                   ? refuse(l->output, "quantizes a tensor that is already quantized", err)
                   : QAT_OK;
    }
}

/** Does only the next node of the layer read it? */
static bool is_private(const fwd_graph *f, const qat_node *node)
{
    for (int i = 0; i < qat_graph_outputs(f->graph); i++)
        if (qat_graph_output_at(f->graph, i) == node)
            return false;
    return qat_node_consumers(node) == 1;
}

/** Index the nodes of an accumulating layer. */
static void index_layer(fwd_graph *f, fwd_layer *l)
{
    const qat_node *raw = fwd_raw_of(l);
    f->heads[l->head->index] = l;
    if (!l->bn)
        return;
    f->batch_norms[l->bn->index] = l;
    if (l->bias)
        f->batch_norms[l->bias->index] = l;
    if (raw)
        f->raws[raw->index] = l;
    l->is_noted = is_private(f, l->head) && (!l->bias || is_private(f, l->bias)) &&
                  (!raw || is_private(f, raw));
}

static qat_status add_layer(fwd_graph *f, const fwd_layer *layer, qat_error *err)
{
    fwd_layer *l = &f->layers[f->n_layers++];
    *l = *layer;
    f->ends[l->output->index] = l;
    if (l->kind == FWD_ACCUMULATE) {
        qat_status const st = describe(f, l, err);
        if (st)
            return st;
        if (!allocate_layer(f, l))
            return qat_out_of_memory(err, l->head->name);
        index_layer(f, l);
    }
    fwd_codes *codes = fwd_codes_of(f, l->output);
    codes->has = true;
    codes->bits = l->kind == FWD_PASS ? fwd_codes_of(f, l->head->inputs[0])->bits
                                      : (int)l->output->attrs[FQ_BITS];
    return QAT_OK;
}

static qat_status find_at(fwd_graph *f, qat_node *node, qat_error *err)
{
    fwd_layer l;
    if (node->op == &qat_op_fake_quant || fwd_quantizes_alone(node)) {
        l = layer_of(node);
        l.kind = kind_of(f, &l);
    } else if (qat_has_role(node, QAT_ROLE_PASS) && fwd_codes_of(f, node->inputs[0])->has) {
        l = (fwd_layer){.kind = FWD_PASS, .head = node, .output = node};
    } else if (qat_node_quantizes(node, false)) {
        return refuse(node, "has codes by a rule of its own", err);
    } else {
        return QAT_OK;
    }
    qat_status const st = check_layer(f, &l, err);
    return st ? st : add_layer(f, &l, err);
}

void fwd_find_nothing(fwd_graph *f)
{
    size_t const n = (size_t)f->nodes;
    free_sums(f);
    memset(f->codes, 0, n * sizeof *f->codes);
    memset(f->ends, 0, 4 * n * sizeof(fwd_layer *));
    memset(f->outlives, 0, n * sizeof *f->outlives);
}

qat_status fwd_find(fwd_graph *f, qat_error *err)
{
    bool ok = true;
    qat_status st = QAT_OK;
    fwd_free_layers(f); /* of a plan that failed before */
    f->scratch = NULL;
    f->scratch_bytes = 0;
    f->rehearsed = false;
    f->nodes = qat_graph_nodes(f->graph);
    size_t const n = (size_t)f->nodes;
    f->codes = take(f, &ok, n, sizeof *f->codes);
    f->layers = take(f, &ok, n, sizeof *f->layers);
    f->ends = take(f, &ok, 4 * n, sizeof(fwd_layer *));
    f->outlives = take(f, &ok, n, sizeof *f->outlives);
    if (!ok)
        return qat_out_of_memory(err, "integer forward");
    f->heads = f->ends + n;
    f->batch_norms = f->heads + n;
    f->raws = f->batch_norms + n;
    for (int i = 0; i < f->nodes; i++) {
        const qat_node *node = qat_graph_node(f->graph, i);
        if (!qat_node_quantizes(node, true))
            continue;
        f->outlives[node->inputs[0]->index] = true;
        f->outlives[node->index] = qat_weights_freeze(node);
    }
    for (int i = 0; !st && i < f->nodes; i++)
        st = find_at(f, qat_graph_node(f->graph, i), err);
    return st;
}
