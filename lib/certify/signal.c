/**
 * Compares the engine's tensors with those of the float network, on data.
 *
 *     r    the float network's value        no quantization at all
 *     s    the simulated network's value    fake quantization, float32
 *     S (q - Z)   the engine's              scale and zero point of the file
 *
 *     signal = sum r^2     noise of the simulation = sum (s - r)^2     of the engine likewise
 *
 * In each layer, the engine rounds where the simulation rounds, so both have about the same noise.
 * Only integers have two more errors: they round twice instead of once, and a bias is rounded to
 * S_x S_w 2^-f, which is M = S_x S_w / S_y 2^-f quanta. So a tensor of n values is refused if
 *
 *     noise of the engine  >  16 (k noise of the simulation + (k - 1) n S_y^2 / 12)
 *                             + n ((2 + M / 2) S_y)^2
 *
 * which allows 12 dB and two quanta. An op that only moves codes allows as many quanta as its
 * input.
 *
 * k >= 1 is the largest ratio of the two noises that an input of the layer already has. So a layer
 * is not blamed for an earlier layer that is far from its simulation. The simulation's noise may be
 * 0, so the noise of a rounding, n S^2 / 12, is added to it: in this ratio, and k - 1 times above.
 * Without a mistake, only coarse biases can make k large. A bias error of M / 2 quanta has 12 (M /
 * 2)^2 = 3 M^2 times the noise of a rounding, 1/12. So k is at most the largest 3 M^2 of the layers
 * before. Example: with 8 bits M is below 1/2, so k stays 1, even in a deep network.
 *
 * After a sum, a clamp may cut off the simulation's noise and not the engine's. So a tensor that
 * add or sub writes is also right if its noise follows from that of what was added:
 *
 *     noise of the engine  <=  n (a + b + (2 + M / 2) S_y)^2,   a, b: root mean squares of theirs
 *
 * A bias may not fit int32: freezing clamps it, and warns. Such a layer is not the one that was
 * trained, so it and what follows it have no limit. Its max_accumulator is then the largest that an
 * accumulator holds.
 *
 * Outputs have a limit of their own. It has k = 1, and the largest M of all layers that lead to
 * them instead of their own M. If an output is a sum, so have the two tensors that it adds. Random
 * networks of 2 to 8 bits stay below these limits (tests/random/test_property.c).
 */
#include "base/arena.h"
#include "base/number.h"
#include "base/words.h"
#include "certify/certify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WORSE = 16, QUANTA = 2;

struct tensor {
    const qat_node *real, *simulated; /* NULL: not compared */
    const qi_node *pad;               /* the op that puts zeros around these values, or NULL */
    double signal, engine, simulation;
    size_t values; /* so far */
};

struct qat_certify_signal {
    qi_host *host;
    const qi_model *model; /* of host */
    qat_graph *real, *simulated;
    int tensors, batch, sample;
    struct tensor *of; /* by tensor of the file */
    int64_t samples;
};

/* ------------------------------------------------------------------ creating */

/** "conv1/relu/q" is the float node "conv1/relu"; pools and reshapes have the node's own name. */
static const qat_node *float_node(const qat_graph *graph, const char *tensor)
{
    char name[QAT_NAME_MAX];
    const qat_node *node =
        qat_without_end(tensor, "/q", name, sizeof name) ? qat_graph_find(graph, name) : NULL;
    return node && (node->op || qat_node_is_input(node)) ? node : NULL;
}

static size_t values_of(const qat_node *node)
{
    return qat_shape_count(&node->shape) / (size_t)node->shape.dims[0];
}

static void pair(struct qat_certify_signal *s, int i, const qat_node *real,
                 const qat_node *simulated)
{
    size_t const n = cert_count(qi_tensor_at(s->model, i));
    if (!real || !simulated || values_of(real) != n || values_of(simulated) != n)
        return;
    s->of[i].real = real;
    s->of[i].simulated = simulated;
}

static void find_tensor(struct qat_certify_signal *s, int i)
{
    const qi_tensor *t = qi_tensor_at(s->model, i);
    if (t->kind == QI_ACTIVATION)
        pair(s, i, float_node(s->real, t->name), qat_graph_find(s->simulated, t->name));
}

/** Ops that the certificate knows by name, apart from those that make layers (walk.c). */
enum kind { OTHER, CHANGES_SHAPE, CHANGES_SCALE, PADS, MOVES, SUMS };

static enum kind kind_of(const qi_node *op)
{
    static const struct {
        const char *op;
        enum kind kind;
    } kinds[] = {{"reshape", CHANGES_SHAPE},
                 {"requantize", CHANGES_SCALE},
                 {"pad", PADS},
                 {"max_pool2d", MOVES},
                 {"concat", MOVES},
                 {"average_pool2d", MOVES},
                 {"add", SUMS},
                 {"sub", SUMS}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(op->kernel->name, kinds[i].op) == 0)
            return kinds[i].kind;
    return OTHER;
}

/**
 * Ops that the float network has not: a change of shape around a batch norm ("bn/rank4",
 * "bn/back") hands on what it reads; a requantization before a concatenation ("joined/in1/q") does
 * so too, and the simulated network has a node of that name. Padding of an average that counts it
 * ("pool/padded") puts zeros around what it reads.
 */
static void find_handed_on(struct qat_certify_signal *s, const qi_node *op)
{
    int const y = op->outputs[0];
    const struct tensor *x = &s->of[op->inputs[0]];
    enum kind const kind = kind_of(op);
    if (s->of[y].real)
        return;
    if (kind == CHANGES_SHAPE)
        pair(s, y, x->real, x->simulated);
    else if (kind == CHANGES_SCALE)
        pair(s, y, x->real, qat_graph_find(s->simulated, qi_tensor_at(s->model, y)->name));
    else if (kind == PADS && x->real && !x->pad)
        s->of[y] = (struct tensor){.real = x->real, .simulated = x->simulated, .pad = op};
}

qat_status qat_certify_signal_create(qat_certify_signal **signal, const void *qm, size_t qm_bytes,
                                     const qi_kernel_list *kernels, qat_graph *real,
                                     qat_graph *simulated, qat_error *err)
{
    qi_host_options const options = {.custom = kernels};
    qat_certify_signal *s = calloc(1, sizeof *s);
    *signal = NULL;
    if (!s)
        return qat_out_of_memory(err, "certificate");
    qat_status const st = qi_host_open_bytes(&s->host, qm, qm_bytes,
                                             "the engine refuses the model: model", &options, err);
    if (st) {
        free(s);
        return st;
    }
    s->model = qi_host_model(s->host);
    s->real = real;
    s->simulated = simulated;
    s->tensors = qi_tensor_count(s->model);
    s->of = calloc((size_t)s->tensors + 1, sizeof *s->of);
    if (!s->of) {
        qat_certify_signal_free(s);
        return qat_out_of_memory(err, "certificate");
    }
    for (int i = 0; i < s->tensors; i++)
        find_tensor(s, i);
    for (int i = 0; i < qi_node_count(s->model); i++)
        find_handed_on(s, qi_node_at(s->model, i));
    *signal = s;
    return QAT_OK;
}

void qat_certify_signal_free(qat_certify_signal *signal)
{
    if (!signal)
        return;
    qi_host_close(signal->host);
    free(signal->of);
    free(signal);
}

/* ------------------------------------------------------------------ running */

static qat_status run_graph(qat_graph *graph, const float *const *inputs, int n_inputs, int batch,
                            qat_error *err)
{
    qat_status const st = qat_graph_set_batch(graph, batch, err);
    int input = 0;
    for (int i = 0; !st && i < qat_graph_nodes(graph) && input < n_inputs; i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (qat_node_is_input(node))
            memcpy(node->value, inputs[input++], qat_shape_count(&node->shape) * sizeof(float));
    }
    if (st)
        return st;
    qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
    return qat_graph_run_status(graph, err);
}

/** Where value i of a padded tensor comes from; false: it is padding. */
static bool find_inside(const qi_model *model, const qi_node *pad, size_t i, size_t *from)
{
    const qi_tensor *x = qi_tensor_at(model, pad->inputs[0]),
                    *y = qi_tensor_at(model, pad->outputs[0]);
    const int32_t *before = pad->params;
    size_t stride = 1;
    *from = 0;
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t const at = (int64_t)(i % (size_t)y->dims[d]) - before[d];
        i /= (size_t)y->dims[d];
        if (at < 0 || at >= x->dims[d])
            return false;
        *from += (size_t)at * stride;
        stride *= (size_t)x->dims[d];
    }
    return true;
}

static void add_value(struct tensor *of, double real, double simulated, double engine)
{
    of->signal += real * real;
    of->engine += (engine - real) * (engine - real);
    of->simulation += (simulated - real) * (simulated - real);
}

static void compare(void *context, const qi_model *model, int32_t index, const void *data)
{
    qat_certify_signal *s = context;
    const qi_tensor *t = qi_tensor_at(model, index);
    struct tensor *of = &s->of[index];
    if (!of->real)
        return;
    size_t const n = cert_count(t), first = (size_t)s->sample * values_of(of->real);
    double const scale = (double)cert_scale(t);
    for (size_t i = 0; i < n; i++) {
        int32_t const code = (int32_t)qi_value_at((qi_type)t->type, data, i);
        size_t from = i;
        bool const inside = !of->pad || find_inside(model, of->pad, i, &from);
        add_value(of, inside ? (double)of->real->value[first + from] : 0,
                  inside ? (double)of->simulated->value[first + from] : 0,
                  scale * (code - t->zero_point));
    }
    of->values += n;
}

qat_status qat_certify_signal_batch(qat_certify_signal *s, const void *const *inputs,
                                    const float *const *real, int batch, qat_error *err)
{
    int const n = qi_input_count(s->model);
    const void **sample = calloc((size_t)n + 1, sizeof *sample);
    void **outputs = calloc((size_t)qi_output_count(s->model) + 1, sizeof *outputs);
    qat_status st = sample && outputs ? QAT_OK : qat_out_of_memory(err, "certificate");
    if (!st)
        st = run_graph(s->real, real, n, batch, err);
    if (!st)
        st = run_graph(s->simulated, real, n, batch, err);
    for (s->sample = 0; !st && s->sample < batch; s->sample++) {
        for (int i = 0; i < n; i++) {
            size_t const bytes = qi_tensor_at(s->model, qi_input_at(s->model, i))->bytes;
            sample[i] = (const uint8_t *)inputs[i] + (size_t)s->sample * bytes;
        }
        qi_host_reset(s->host, NULL);
        qi_host_run_visit(s->host, NULL, sample, outputs, compare, s);
        s->samples++;
    }
    free(sample);
    free(outputs);
    return st;
}

/* ------------------------------------------------------------------ judging */

/** NaN: there are no values, or not all are finite. */
static double decibels(const struct tensor *t, double noise)
{
    return t->values ? qat_decibels(t->signal, noise) : NAN;
}

static void add_outputs(const qat_certify_signal *s, struct tensor *all)
{
    for (int i = 0; i < qi_output_count(s->model); i++) {
        const struct tensor *t = &s->of[qi_output_at(s->model, i)];
        all->signal += t->signal;
        all->engine += t->engine;
        all->simulation += t->simulation;
        all->values += t->values;
    }
}

/** The largest S_x S_w / S_y of a layer with weights, for an accumulator's last bit; 0: it has
 * none. */
static double bias_quanta(const qi_model *model, const qi_node *op)
{
    enum { X, WEIGHTS, BIAS, MULT, SHIFT, INPUTS };
    const qi_tensor *w = op->n_inputs > WEIGHTS ? qi_tensor_at(model, op->inputs[WEIGHTS]) : NULL;
    if (op->n_inputs != INPUTS || w->kind != QI_CONSTANT)
        return 0;
    double scale = (double)cert_scale(w);
    const qi_tensor *scales = w->channel_scales < 0 ? NULL : qi_tensor_at(model, w->channel_scales);
    for (int i = 0; scales && i < scales->dims[0]; i++)
        scale = fmax(scale, (double)cert_channel_scale(model, w, i));
    double const m = (double)cert_scale(qi_tensor_at(model, op->inputs[X])) * scale /
                     (double)cert_scale(qi_tensor_at(model, op->outputs[0]));
    return ldexp(m, -op->fraction);
}

/** Noise of the engine over that of the simulation, where a rounding is the least there is. */
static double ratio_of(const qat_certify_signal *s, int tensor)
{
    const struct tensor *t = &s->of[tensor];
    double const scale = (double)cert_scale(qi_tensor_at(s->model, tensor));
    return t->engine / (t->simulation + (double)t->values * scale * scale / 12 + 1e-300);
}

/** What is known of each tensor of the file while ops are judged in their order. */
struct judged {
    double ratio;  /* of those that are not compared: the largest of what their op reads */
    double quanta; /* what roundings may cost it */
    double coarse; /* the largest M of the layers that lead to it */
    bool clamped;  /* a bias of these layers was clamped */
    bool is_output;
};

/** A layer that reaches the largest accumulator without clamping counts as one, too. */
static bool has_clamped_bias(const qat_certify_signal *s, const qi_node *op)
{
    bool const is_wide = op->n_inputs && op->rounding != QI_ROUND_TWICE &&
                         qi_tensor_at(s->model, op->inputs[0])->type == QI_S16;
    return op->max_accumulator >= (is_wide ? (INT64_C(1) << 47) - 1 : INT32_MAX);
}

/** Its codes are those of its input, or averages of them. */
static bool moves_codes(const qi_node *op)
{
    enum kind const kind = kind_of(op);
    return kind != OTHER && kind != CHANGES_SCALE && kind != SUMS;
}

/** The noise of a sum that what was added explains; 0: it is no sum, or an input is not compared.
 */
static double noise_of_sum(const qat_certify_signal *s, const qi_node *op, double n, double step)
{
    if (kind_of(op) != SUMS)
        return 0;
    for (int i = 0; i < 2; i++) {
        const struct tensor *x = &s->of[op->inputs[i]];
        if (!x->values)
            return 0;
        step += sqrt(x->engine / (double)x->values);
    }
    return n * step * step;
}

/** What a sum adds has the limit of an output if the sum has. */
static void mark_added(const qi_node *op, struct judged *all)
{
    for (int i = 0; kind_of(op) == SUMS && all[op->outputs[0]].is_output && i < 2; i++)
        all[op->inputs[i]].is_output = true;
}

static struct judged judge_inputs(const qat_certify_signal *s, const qi_node *op,
                                  const struct judged *all)
{
    double const m = bias_quanta(s->model, op);
    struct judged y = {
        .ratio = 1, .quanta = QUANTA + m / 2, .coarse = m, .clamped = has_clamped_bias(s, op)};
    double coarse = 0;
    for (int i = 0; i < op->n_inputs; i++) {
        int const x = op->inputs[i];
        y.ratio = fmax(y.ratio, s->of[x].values ? ratio_of(s, x) : all[x].ratio);
        coarse = fmax(coarse, all[x].coarse);
        y.clamped |= all[x].clamped;
        if (moves_codes(op))
            y.quanta = fmax(y.quanta, all[x].quanta);
    }
    y.ratio = fmin(y.ratio, fmax(1, 3 * coarse * coarse));
    y.coarse = fmax(m, coarse);
    return y;
}

static qat_status refuse(const qat_certify_signal *s, const qi_node *op, const char *what,
                         qat_error *err)
{
    const struct tensor *t = &s->of[op->outputs[0]];
    return qat_fail(
        err, QAT_ERR_MISMATCH,
        "%s (op %s)%s: compared with the float network, its signal is %.1f dB above its noise in "
        "the engine, but %.1f dB in the simulated network; these are too far apart "
        "for what rounding can cost",
        qi_tensor_at(s->model, op->outputs[0])->name, op->kernel->name, what,
        decibels(t, t->engine), decibels(t, t->simulation));
}

static qat_status judge_op(const qat_certify_signal *s, const qi_node *op, struct judged *all,
                           qat_error *err)
{
    int const out = op->outputs[0];
    const struct tensor *t = &s->of[out];
    double const scale = (double)cert_scale(qi_tensor_at(s->model, out)), n = (double)t->values;
    struct judged const y = judge_inputs(s, op, all);
    double const step = y.quanta * scale, last = (QUANTA + y.coarse / 2) * scale;
    bool const is_output = all[out].is_output;
    for (int i = 0; i < op->n_outputs; i++)
        all[op->outputs[i]] = y;
    if (!isfinite(t->signal) || !isfinite(t->simulation))
        return qat_fail(err, QAT_ERR_NUMERIC,
                        "%s (op %s): not all values of the float or of the simulated network are "
                        "finite",
                        qi_tensor_at(s->model, out)->name, op->kernel->name);
    if (y.clamped)
        return QAT_OK;
    double const rounding = (y.ratio - 1) * n * scale * scale / 12;
    double const most = WORSE * (y.ratio * t->simulation + rounding) + n * step * step;
    if (!isfinite(most) || !(t->engine <= fmax(most, noise_of_sum(s, op, n, step))))
        return refuse(s, op, "", err);
    double const most_at_end = WORSE * t->simulation + n * last * last;
    if (is_output && y.coarse <= 1 &&
        !(t->engine <= fmax(most_at_end, noise_of_sum(s, op, n, last))))
        return refuse(s, op, ", an output", err);
    return QAT_OK;
}

qat_status qat_certify_signal_judge(const qat_certify_signal *s, qat_certificate *certificate,
                                    qat_error *err)
{
    struct tensor outputs = {0};
    struct judged *all = calloc((size_t)s->tensors + 1, sizeof *all);
    qat_status st = all ? QAT_OK : qat_out_of_memory(err, "certificate");
    add_outputs(s, &outputs);
    certificate->signal_samples = s->samples;
    certificate->signal_tensors = 0;
    certificate->engine_snr = decibels(&outputs, outputs.engine);
    certificate->simulation_snr = decibels(&outputs, outputs.simulation);
    for (int i = 0; !st && i < qi_output_count(s->model); i++)
        all[qi_output_at(s->model, i)].is_output = true;
    for (int i = qi_node_count(s->model) - 1; !st && i >= 0; i--)
        mark_added(qi_node_at(s->model, i), all);
    for (int i = 0; !st && i < qi_node_count(s->model); i++)
        st = judge_op(s, qi_node_at(s->model, i), all, err);
    for (int i = 0; !st && i < s->tensors; i++)
        certificate->signal_tensors += s->of[i].values > 0 && !all[i].clamped;
    free(all);
    return st;
}
