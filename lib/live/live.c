/**
 * Integer forward, node after node (live.h). An accumulating layer with batch norm is computed
 * when its bn_fold_train runs, because the statistics of the batch are known then. Without batch
 * norm, its codes are made together with its sums.
 *
 * If this batch is the first that a quantizer observes, its grid is not known until all of the
 * batch is seen. Such a node is simulated in this step, and its codes are read off its values.
 * (A fake_quant after a batch norm need not be: the sums give its range in advance.) Layers after a
 * dropout that do not accumulate are simulated too, while dropout scales the values it keeps: a
 * pool has no integers for two grids.
 */
#include "live/live.h"
#include "autograd/graph/backend.h"
#include "autograd/graph/shared.h"
#include "autograd/loops/tail.h"
#include "fakequant/ops.h"
#include "fold/fold.h"
#include "live/integer_forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Keep the first error. */
static void failed(fwd_graph *f, const qat_error *err)
{
    if (!f->error.status)
        f->error = *err;
}

static void out_of_memory(fwd_graph *f, const fwd_layer *l)
{
    qat_error err = {0};
    qat_out_of_memory(&err, l->head->name);
    failed(f, &err);
}

/** Make the reals of codes for nodes that read them. */
static void show(fwd_graph *f, const fwd_layer *l)
{
    if (!qat_node_is_coded(l->output))
        fwd_decode(f, l->output);
}

/* ------------------------------------------------------------------ accumulating layers */

/** Compute the sums. Without batch norm also the codes, unless the range is not known yet. */
static void run_head(fwd_graph *f, fwd_layer *l, const qat_run *run)
{
    if (!fwd_sums(f, l, run)) {
        out_of_memory(f, l);
        return;
    }
    if (l->bn)
        return;
    fwd_set_reals(f, l);
    qat_qparams p;
    bool const known = !qat_node_qparams(l->output, &p, NULL);
    if (known)
        fwd_set_multipliers(f, l, NULL, NULL, &p);
    fwd_requantize(f, l, &p, known, NULL);
}

static float clamped(const fwd_layer *l, float y)
{
    return y < l->act_min ? l->act_min : y > l->act_max ? l->act_max : y;
}

/** y for one sum of a channel, with the operations of the float layer. */
static float output_of(const fwd_layer *l, qat_fold_line line, int c, int32_t sum)
{
    float const z = (float)sum * l->wide.z_scale[c] + l->wide.z_offset[c];
    return clamped(l, z * line.slope[c] + line.offset[c]);
}

/** If slope > 0, the extremes of a channel are those of its sums. */
static void observe(const fwd_layer *l, qat_fold_line line, const qat_run *run)
{
    float min = INFINITY, max = -INFINITY;
    for (int c = 0; c < l->channels; c++) {
        min = fminf(min, output_of(l, line, c, l->least[c]));
        max = fmaxf(max, output_of(l, line, c, l->most[c]));
    }
    qat_fake_quant_observe(l->output, run, min, max);
}

/**
 * The grid of the codes after a batch norm. The sums give a fake_quant its range. A quantizer
 * observes values later, so its grid is known only if it observed a batch before this one, or
 * learned.
 */
static bool grid_after_bn(const fwd_layer *l, qat_fold_line line, const qat_run *run,
                          qat_qparams *p)
{
    if (fwd_quantizes_alone(l->output))
        return !qat_node_qparams(l->output, p, NULL);
    observe(l, line, run);
    *p = *qat_fake_quant_params(l->output);
    return true;
}

/**
 * The sums of z and z^2 from those of the integers. Shards add up these: in the step in which a
 * range is first observed, each has a grid of its own.
 */
static void add_up_reals(fwd_layer *l)
{
    double const rows = *l->total;
    for (int c = 0; c < l->channels; c++) {
        double const scale = (double)l->wide.z_scale[c], offset = (double)l->wide.z_offset[c];
        double const sum = scale * l->sum[c];
        l->sum[c] = sum + rows * offset;
        l->squares[c] = scale * scale * l->squares[c] + 2 * offset * sum + rows * offset * offset;
    }
}

/** E[z] and Var[z] from the sums of all shards. */
static void real_moments(fwd_layer *l)
{
    double const rows = *l->total;
    for (int c = 0; c < l->channels; c++) {
        double const mean = l->sum[c] / rows, variance = l->squares[c] / rows - mean * mean;
        l->sum[c] = mean;
        l->squares[c] = variance < 0 ? 0 : variance;
    }
}

/** E[z] and Var[z] from the moments of the sums. */
static void moments(fwd_layer *l)
{
    double const rows = *l->total;
    for (int c = 0; c < l->channels; c++) {
        double const scale = (double)l->wide.z_scale[c], mean = l->sum[c] / rows;
        double const variance = l->squares[c] / rows - mean * mean;
        l->sum[c] = scale * mean + (double)l->wide.z_offset[c];
        l->squares[c] = variance < 0 ? 0 : scale * scale * variance;
    }
}

/** Add up what the batch norm needs of the batch (qat_shared.forward_sums). */
static int sum_batch(fwd_graph *f, fwd_layer *l, const qat_run *run, double **sums)
{
    bool const wants_z = qat_bn_fold_wants_z(l->bn, run);
    fwd_set_reals(f, l); /* here, because the folded bias is not computed before the head */
    fwd_statistics(l, wants_z);
    if (!wants_z)
        return qat_bn_fold_sums(l->bn, run, sums);
    *l->total = (double)fwd_rows(l);
    if (qat_is_shared(l->bn))
        add_up_reals(l);
    *sums = l->sum;
    return 2 * l->channels + 1;
}

static void run_batch_norm(fwd_graph *f, fwd_layer *l, const qat_run *run)
{
    if (qat_bn_fold_wants_z(l->bn, run) && qat_is_shared(l->bn))
        real_moments(l);
    else if (qat_bn_fold_wants_z(l->bn, run))
        moments(l);
    qat_fold_line const line = qat_bn_fold_begin(l->bn, run, l->sum, l->squares);
    qat_qparams p;
    bool const known = grid_after_bn(l, line, run, &p);
    if (known)
        fwd_set_multipliers(f, l, line.slope, line.offset, &p);
    fwd_set_notes(l, &line.grid);
    fwd_requantize(f, l, &p, known, &line);
    if (qat_tail_last(l->bn) != l->output)
        qat_bn_fold_values(l->bn);
    else
        show(f, l);
}

/* ------------------------------------------------------------------ the end of a layer */

/** Is the range first observed in this step? */
static bool is_late(const qat_node *output)
{
    qat_qparams p;
    return fwd_quantizes_alone(output) ? qat_node_qparams(output, &p, NULL) != QAT_OK
                                       : qat_fake_quant_is_late(output);
}

static const qat_qparams *params_of(const qat_node *output)
{
    return fwd_quantizes_alone(output) ? qat_quantizer_used(output, 0)
                                       : qat_fake_quant_params(output);
}

/** Must the codes be read off simulated values? */
static bool is_simulated(const fwd_graph *f, const fwd_layer *l)
{
    if (l->kind == FWD_INPUT)
        return true;
    if (l->kind == FWD_ACCUMULATE)
        return !fwd_codes_of(f, l->output)->live;
    for (int i = 0; l->kind == FWD_OTHER && i < l->head->n_data; i++)
        if (fwd_codes_of(f, l->head->inputs[i])->dropped)
            return true;
    return is_late(l->output);
}

/**
 * Compute a layer on integers, after the float forward has. False: it has none for the scales of
 * this step (hard_swish of profile tflite has none for some). Export would refuse them too, but
 * later steps have others. A layer that no scales suit is an error, unless it is only simulated.
 */
static bool runs_on_integers(fwd_graph *f, fwd_layer *l, const qat_qparams *p)
{
    qat_error err = {0};
    if (l->kind == FWD_ACCUMULATE)
        return true;
    qat_status const st = fwd_other(f, l, p, &err);
    if (f->simulates ? st && st != QAT_ERR_NOMEM : st == QAT_ERR_UNSUPPORTED && l->freezes)
        return false;
    if (st)
        failed(f, &err);
    return true;
}

/** The float forward has run: replace its values by codes. */
static void end_layer(fwd_graph *f, fwd_layer *l)
{
    const qat_qparams *p = params_of(l->output);
    if (is_simulated(f, l) || !runs_on_integers(f, l, p))
        fwd_encode(f, l->output, p);
    else
        show(f, l);
}

/** An op that passes codes on. A dropout scales the values that it keeps. */
static void end_pass(fwd_graph *f, const fwd_layer *l, const qat_run *run)
{
    const fwd_codes *in = fwd_codes_of(f, l->head->inputs[0]);
    const qat_quant *quant = l->head->op->quant;
    bool const drops = quant->training_factor && run->mode == QAT_MODE_TRAIN;
    qat_qparams p = in->p;
    if (drops)
        p.scale *= (float)quant->training_factor(l->head);
    fwd_encode(f, l->output, &p);
    fwd_codes_of(f, l->output)->dropped = in->dropped || drops;
}

/* ------------------------------------------------------------------ the engine */

static bool inputs_live(const fwd_graph *f, const fwd_layer *l)
{
    return fwd_codes_of(f, l->head->inputs[0])->live;
}

/** Is this the end of a layer whose batch norm has already made its codes? */
static bool ends_with_codes(const fwd_graph *f, const fwd_layer *end)
{
    return end && end->bn && fwd_codes_of(f, end->output)->live;
}

/** Run a node that does not accumulate, and its tail. */
static void run_other(fwd_graph *f, qat_node *node, const qat_run *run)
{
    fwd_layer *end = f->ends[qat_tail_last(node)->index];
    if (ends_with_codes(f, end)) {
        if (fwd_quantizes_alone(node)) /* which observes, and keeps what its backward needs */
            qat_node_forward(node, run);
        show(f, end);
        return;
    }
    qat_node_forward(node, run);
    if (end && end->kind == FWD_PASS)
        end_pass(f, end, run);
    else if (end)
        end_layer(f, end);
}

static void run_node(void *context, qat_node *node, const qat_run *run)
{
    fwd_graph *f = context;
    fwd_layer *head = f->heads[node->index], *bn = f->batch_norms[node->index];
    if (f->error.status)
        return;
    if (head && inputs_live(f, head))
        run_head(f, head, run);
    else if (bn && bn->bn == node) {
        double *sums;
        if (!qat_is_shared(node))
            sum_batch(f, bn, run, &sums);
        run_batch_norm(f, bn, run);
    } else if (!bn) /* a bias before a batch norm waits for it */
        run_other(f, node, run);
}

static int forward_sums(void *context, qat_node *node, const qat_run *run, double **sums)
{
    fwd_graph *f = context;
    fwd_layer *bn = f->batch_norms[node->index];
    if (f->error.status)
        return 0;
    return bn && bn->bn == node ? sum_batch(f, bn, run, sums)
                                : node->op->shared->forward_sums(node, run, sums);
}

/** A node's grid: its own if it is known, the one of the node whose codes it passes on, or i's. */
static qat_qparams likely_grid(const fwd_graph *f, const qat_node *node, int i)
{
    qat_qparams p;
    int32_t lo, hi;
    const fwd_layer *end = f->ends[node->index];
    if (end->kind == FWD_PASS)
        return fwd_codes_of(f, end->head->inputs[0])->p;
    if (!qat_node_qparams(node, &p, NULL))
        return p;
    qat_code_range(f->options->layout, fwd_codes_of(f, node)->bits, false, &lo, &hi);
    return qat_choose_qparams(-1, (float)(i + 1), lo, hi, false);
}

/**
 * Before the first run, take all memory of the runs to come: freeze every layer on grids of which
 * those that are not known yet differ, and on grids of which they do not. A layer may refuse one of
 * these.
 */
static qat_status rehearse(fwd_graph *f, int differ, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < f->nodes; i++)
        if (f->codes[i].has)
            f->codes[i].p = likely_grid(f, qat_graph_node(f->graph, i), i * differ);
    for (int i = 0; st != QAT_ERR_NOMEM && i < f->n_layers; i++) {
        fwd_layer *l = &f->layers[i];
        if (l->kind == FWD_ACCUMULATE)
            st = fwd_reserve_sums(f, l) ? QAT_OK : qat_out_of_memory(err, l->head->name);
        else if (l->kind == FWD_OTHER || l->kind == FWD_REQUANTIZE)
            st = fwd_rehearse_other(f, l, err);
        l->freezes |= !st;
    }
    return st == QAT_ERR_NOMEM ? st : QAT_OK;
}

static bool begin(void *context, const qat_run *run)
{
    fwd_graph *f = context;
    qat_error err;
    f->error = (qat_error){0};
    bool const rehearses = !f->rehearsed && !f->off && !f->refused;
    for (int differ = 0; rehearses && differ <= 1; differ++)
        if (rehearse(f, differ, &err))
            failed(f, &err);
    f->rehearsed |= rehearses;
    for (int i = 0; i < f->nodes; i++) {
        f->codes[i].bytes = qat_node_codes(qat_graph_node(f->graph, i));
        f->codes[i].live = f->codes[i].dropped = false;
    }
    return !f->off && !f->refused && (run->mode != QAT_MODE_TRAIN || run->step >= f->start);
}

static qat_status plan(void *context, qat_graph *graph, qat_error *err)
{
    fwd_graph *f = context;
    qat_status const st = fwd_find(f, err);
    f->refused = st == QAT_ERR_UNSUPPORTED && f->simulates;
    if (!f->refused)
        return st;
    fwd_find_nothing(f);
    return QAT_OK;
}

static bool has_codes(const void *context, const qat_node *node)
{
    return fwd_codes_of(context, node)->has;
}

static bool reads_codes(const void *context, const qat_node *node, int input)
{
    const fwd_graph *f = context;
    return f->heads[node->index] && input == 0;
}

static size_t note_bytes(const void *context, const qat_node *node)
{
    const fwd_graph *f = context;
    const fwd_layer *l = f->batch_norms[node->index];
    if (!l || l->bn != node || !l->is_noted)
        return 0;
    int const tensors = fwd_raw_of(l) ? 2 : 1;
    return (size_t)tensors * qat_shape_count(&node->shape) * sizeof(uint16_t);
}

static const qat_node *last_reader(const void *context, const qat_node *node)
{
    const fwd_graph *f = context;
    fwd_layer *const of[] = {f->heads[node->index], f->batch_norms[node->index],
                             f->raws[node->index]};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i] && of[i]->is_noted && of[i]->bn != node)
            return of[i]->bn;
    return NULL;
}

/** A layer that accumulates gets its codes together with its sums, or after the batch norm. */
static const qat_node *makes_codes(const void *context, const qat_node *node)
{
    const fwd_layer *l = ((const fwd_graph *)context)->ends[node->index];
    if (!l || l->kind != FWD_ACCUMULATE)
        return NULL;
    return l->bn ? l->bn : l->head;
}

/**
 * A quantizer of weights observes them anew in its update, and the log of ranges asks for them. If
 * they may freeze, the update also reads their codes off the quantizer's own values.
 */
static bool outlives_readers(const void *context, const qat_node *node)
{
    const fwd_graph *f = context;
    return f->outlives[node->index];
}

/** A simulation's values are kept in float32, as without a backend. */
static bool always(const void *context)
{
    const fwd_graph *f = context;
    return f->start == 0 && !f->simulates;
}

static void decode(void *context, const qat_node *node)
{
    fwd_decode(context, node);
}

static qat_status status(const void *context, qat_error *err)
{
    const fwd_graph *f = context;
    return f->error.status ? qat_fail(err, f->error.status, "%s", f->error.message) : QAT_OK;
}

static void free_graph(void *context)
{
    fwd_graph *f = context;
    fwd_free_layers(f);
    qat_qgraph_free(f->frozen);
    free(f);
}

static const qat_backend backend = {.plan = plan,
                                    .has_codes = has_codes,
                                    .reads_codes = reads_codes,
                                    .always = always,
                                    .makes_codes = makes_codes,
                                    .note_bytes = note_bytes,
                                    .last_reader = last_reader,
                                    .outlives_readers = outlives_readers,
                                    .begin = begin,
                                    .forward_sums = forward_sums,
                                    .forward = run_node,
                                    .decode = decode,
                                    .status = status,
                                    .free = free_graph};

static qat_status set_up(qat_graph *graph, bool simulates, qat_error *err)
{
    const qat_quant_options *o = qat_graph_quant_options(graph);
    fwd_graph *f = calloc(1, sizeof *f);
    qat_qgraph *frozen = f ? qat_qgraph_new() : NULL;
    if (!frozen) {
        free(f);
        return qat_out_of_memory(err, "integer forward");
    }
    f->frozen = frozen;
    f->graph = graph;
    f->options = o;
    f->simulates = simulates;
    f->start = o->weight_delay > o->activation_delay ? o->weight_delay : o->activation_delay;
    qat_graph_set_backend(graph, &backend, f);
    return QAT_OK;
}

qat_status qat_integer_forward(qat_graph *training, qat_error *err)
{
    return set_up(training, false, err);
}

qat_status qat_simulated_forward(qat_graph *graph, bool on, qat_error *err)
{
    qat_status const st = set_up(graph, true, err);
    if (!st)
        qat_simulate_integers(graph, on);
    return st;
}

void qat_simulate_integers(qat_graph *graph, bool on)
{
    fwd_graph *f = qat_graph_backend(graph, &backend);
    if (f && f->simulates)
        f->off = !on;
}

const uint8_t *qat_integer_codes(const qat_node *node, qat_qparams *p)
{
    const fwd_graph *f = qat_graph_backend(node->graph, &backend);
    const fwd_codes *codes = f ? fwd_codes_of(f, node) : NULL;
    if (!codes || !codes->live)
        return NULL;
    *p = codes->p;
    return codes->bytes;
}
