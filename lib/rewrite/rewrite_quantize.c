/**
 * Quantizes activations: one fake_quant on the output of every layer, which all its readers read.
 *
 *     conv .. relu -+-> a         conv .. relu -> fake_quant -+-> a
 *                   '-> b                                     '-> b
 *
 *     image -> conv               image -> fake_quant (range of the preprocessing) -> conv
 *     image -> flatten -> fc      image -> fake_quant -> flatten -> fc
 *     softmax ->                  softmax -> fake_quant (range given by the op) ->
 *     x -> average_pool2d ->      x -> average_pool2d -> fake_quant (x's range: it rounds) ->
 *
 *     a --> concat ->             a ----------------> concat -> fake_quant (range r) ->
 *     softmax --^                   (range r)            ^
 *                                 softmax -> fake_quant -+-> fake_quant (range r)
 */
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fakequant/range.h"
#include "rewrite/rewrite.h"

#include <stdio.h>

const qat_op *rw_quantizer_op(const qat_op *named, const rw_settings *settings)
{
    if (settings->power_of_two && named == &qat_op_fake_quant)
        return &qat_op_ema_grid;
    bool const more = settings->power_of_two || settings->dampen > 0 || rw_freezes(settings);
    if (more && named == &qat_op_fake_quant_weights)
        return &qat_op_ema_grid_weights;
    return named;
}

/** Ranges are observed until learning starts, so not before they quantize. */
static int64_t learning_delay(const rw_maker *m, bool weights)
{
    const qat_quant_options *o = m->options;
    int64_t const start = weights ? o->weight_delay : o->activation_delay;
    return rw_delay(m, start != INT64_MAX && start > o->learn_delay ? start : o->learn_delay);
}

void rw_learning_attrs(const rw_maker *m, const qat_op *op, const rw_settings *settings,
                       double attrs[QAT_MAX_ATTRS])
{
    if (!qat_is_quantizer_op(op))
        return;
    attrs[QZ_LEARN] = (double)learning_delay(m, qat_op_quantizer(op)->weights);
    attrs[QZ_DECAY] = m->options->ema_decay;
    attrs[QZ_POWER_OF_TWO] = settings->power_of_two;
    attrs[QZ_DAMPEN] = settings->dampen;
    attrs[QZ_DAMPENED] = settings->dampen > 0 || rw_freezes(settings)
                             ? (double)rw_delay(m, m->options->dampened)
                             : 0;
    attrs[QZ_THRESHOLD] = attrs[QZ_LAST_THRESHOLD] = 1;
    if (!qat_op_quantizer(op)->weights || !rw_freezes(settings))
        return;
    attrs[QZ_FREEZES] = 1;
    attrs[QZ_FREEZE_SHARE] = m->training ? m->options->freeze_share : 0;
    attrs[QZ_THRESHOLD] = m->options->freeze_threshold;
    attrs[QZ_LAST_THRESHOLD] = m->options->freeze_threshold_end;
}

/** The attributes that all fake_quant nodes have, for a tensor with these settings. */
static void common_attrs(const rw_maker *m, const rw_settings *settings,
                         double attrs[QAT_MAX_ATTRS])
{
    for (int i = 0; i < QAT_MAX_ATTRS; i++)
        attrs[i] = 0;
    attrs[FQ_BITS] = settings->activation_bits;
    attrs[FQ_LAYOUT] = m->options->layout;
    attrs[FQ_DECAY] = m->options->ema_decay;
    attrs[FQ_DELAY] = (double)rw_delay(m, m->options->activation_delay);
    attrs[FQ_SCALE] = 1;
}

/** A fake_quant with a known range: of a graph input, or of softmax, logistic, tanh. */
static qat_node *make_fixed(rw_maker *m, const qat_node *origin, const char *name, qat_node *value)
{
    double attrs[QAT_MAX_ATTRS];
    const rw_settings *s = &m->a->settings[origin->index];
    common_attrs(m, s, attrs);
    attrs[FQ_COMMITS] = 1; /* the default: there is nothing to commit */
    if (qat_node_is_input(origin)) {
        attrs[FQ_KIND] = FQ_RANGE;
        attrs[FQ_MIN] = (double)m->options->input_min;
        attrs[FQ_MAX] = (double)m->options->input_max;
    } else {
        qat_qparams const p =
            qat_fixed_qparams(origin->op->quant->fixed_min, origin->op->quant->fixed_max,
                              m->options->layout, s->activation_bits);
        attrs[FQ_KIND] = FQ_GIVEN;
        attrs[FQ_SCALE] = (double)p.scale;
        attrs[FQ_ZERO_POINT] = p.zero_point;
    }
    return qat_apply_values(m->graph, &qat_op_fake_quant, name, attrs, 1, &value);
}

/** The range parameter of a class, named after its first member, or after who reads it. */
static qat_node *class_range(rw_maker *m, int root)
{
    char name[RW_NAME_MAX];
    bool const input = root >= m->a->count;
    const qat_node *first = qat_graph_node(m->a->graph, root - (input ? m->a->count : 0));
    qat_param_def const def = {
        .name = rw_name(name, first->name, input ? "/in/q/range" : "/q/range"),
        .shape = QAT_SHAPE(RANGE_VALUES),
        .init = QAT_INIT_CONSTANT,
    };
    if (!m->range[root])
        m->range[root] = qat_graph_param(m->graph, &def);
    return m->range[root];
}

/** A quantizer with its own parameters, which the class's first node creates. */
static qat_node *make_quantizer(rw_maker *m, int root, const qat_op *op, const char *name,
                                qat_node *value)
{
    const rw_settings *s = &m->a->settings[root];
    double attrs[QAT_MAX_ATTRS] = {
        [QZ_BITS] = s->activation_bits,
        [QZ_LAYOUT] = m->options->layout,
        [QZ_DELAY] = (double)rw_delay(m, m->options->activation_delay),
    };
    qat_node *const inputs[] = {value, m->range[root], m->learned[root]};
    rw_learning_attrs(m, op, s, attrs);
    int const n = !m->range[root] ? 1 : m->learned[root] ? 3 : 2;
    qat_node *node = qat_apply_values(m->graph, op, name, attrs, n, inputs);
    if (node && !m->range[root]) {
        m->range[root] = node->inputs[QZ_RANGE];
        m->learned[root] = qat_node_learned(node);
    }
    return node;
}

qat_node *rw_make_observed(rw_maker *m, int root, const char *name, qat_node *value)
{
    double attrs[QAT_MAX_ATTRS];
    const rw_settings *s = &m->a->settings[root];
    const qat_op *op = rw_quantizer_op(s->activations, s);
    if (op != &qat_op_fake_quant) {
        m->last[root] = make_quantizer(m, root, op, name, value);
        return m->last[root];
    }
    qat_node *const inputs[] = {value, class_range(m, root)};
    common_attrs(m, s, attrs);
    m->last[root] = qat_apply_values(m->graph, op, name, attrs, 2, inputs);
    return m->last[root];
}

qat_node *rw_make_fake_quant(rw_maker *m, const qat_node *tensor, qat_node *value)
{
    char name[RW_NAME_MAX];
    const rw_info *info = &m->a->nodes[tensor->index];
    rw_name(name, tensor->name, "/q");
    switch (info->range) {
    case RW_FIXED:
        return make_fixed(m, qat_graph_node(m->a->graph, info->origin), name, value);
    case RW_OBSERVED:
        return rw_make_observed(m, rw_root(m->a, info->origin), name, value);
    default:
        return value;
    }
}

/** The image of one member of a concatenation, brought into its class if it is not in it. */
static qat_node *member_image(rw_maker *m, const qat_node *concat, int slot)
{
    char base[RW_NAME_MAX], name[RW_NAME_MAX];
    const qat_node *tensor = concat->inputs[slot];
    int const root = rw_root(m->a, concat->index);
    const rw_info *info = &m->a->nodes[tensor->index];
    bool const joined = info->range == RW_OBSERVED && rw_root(m->a, info->origin) == root;
    if (joined || m->a->nodes[concat->index].range != RW_OBSERVED)
        return rw_input(m, tensor);
    for (int i = 0; i < m->n_members; i++)
        if (m->members[i].tensor == tensor->index && m->members[i].root == root)
            return m->members[i].image;
    snprintf(base, sizeof base, "%s/in%d", concat->name, slot);
    qat_node *image = rw_make_observed(m, root, rw_name(name, base, "/q"), rw_input(m, tensor));
    m->members[m->n_members++] = (rw_member){tensor->index, root, image};
    return image;
}

qat_node *rw_make_concat(rw_maker *m, const qat_node *node)
{
    qat_node **data = qat_arena_array(&m->a->arena, (size_t)node->n_data, sizeof *data);
    if (!data) {
        m->no_memory = true;
        return NULL;
    }
    for (int i = 0; i < node->n_data; i++)
        data[i] = member_image(m, node, i);
    return rw_apply_data(m, node, data);
}

/* The last fake_quant of a class is known only after all are made; its attribute is then set. */
void rw_elect_committers(rw_maker *m)
{
    for (int i = 0; i < 2 * m->a->count; i++)
        if (m->last[i])
            m->last[i]->attrs[m->last[i]->op == &qat_op_fake_quant ? FQ_COMMITS : QZ_COMMITS] = 1;
}
