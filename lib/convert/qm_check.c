/**
 * Checks what can be written as a .qm: the limits of docs/qm-format.md, before the first byte is
 * written.
 */
#include "convert/convert.h"
#include "infer/model/qm_layout.h"
#include "qat/sound.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/** The thing whose value is checked: "tensor 3 (conv1/q)". */
struct subject {
    const char *kind;
    int index;
    const char *name;
};

static qat_status limit(const struct subject *s, const char *field, int64_t value, int64_t lo,
                        int64_t hi, qat_error *err)
{
    if (value >= lo && value <= hi)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    ".qm: %s %d (%s): %s is %" PRId64 ", the format allows %" PRId64 "..%" PRId64,
                    s->kind, s->index, s->name, field, value, lo, hi);
}

static qat_status number(const char *field, int64_t value, int64_t lo, int64_t hi, qat_error *err)
{
    if (value >= lo && value <= hi)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    ".qm: the number of %s is %" PRId64 ", the format allows %" PRId64 "..%" PRId64,
                    field, value, lo, hi);
}

static qat_status scale(const struct subject *s, float value, qat_error *err)
{
    if (isfinite(value) && value >= 0.0f)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, ".qm: %s %d (%s): its scale is %g", s->kind, s->index,
                    s->name, (double)value);
}

static void code_limits(const qat_qtensor *t, int32_t *lo, int32_t *hi)
{
    *lo = *hi = 0;
    if (!qi_type_has_codes(t->type))
        return;
    *lo = t->type == QI_U8 ? 0 : -(1 << (t->bits - 1));
    *hi = *lo + (1 << t->bits) - 1;
}

/* ------------------------------------------------------------------ tensors */

static qat_status check_dims(const struct subject *s, const qat_qtensor *t, qat_error *err)
{
    int64_t product = 1;
    qat_status st = limit(s, "its rank", t->rank, 1, QI_MAX_RANK, err);
    for (int i = 0; !st && i < QI_MAX_RANK; i++) {
        int64_t const most = i < t->rank ? QM_MAX_TENSOR_VALUES : 1;
        st = limit(s, "a dimension", t->dims[i], 1, most, err);
        product *= t->dims[i];
        if (!st)
            st = limit(s, "its number of values", product, 1, QM_MAX_TENSOR_VALUES, err);
    }
    return st;
}

static qat_status check_codes(const struct subject *s, const qat_qtensor *t, qat_error *err)
{
    int32_t lo, hi;
    qat_status st = QAT_OK;
    if (!t->data || !qi_type_has_codes(t->type))
        return QAT_OK;
    code_limits(t, &lo, &hi);
    for (size_t i = 0; !st && i < qat_qtensor_count(t); i++)
        st = limit(s, "one of its codes", qi_value_at(t->type, t->data, i), lo, hi, err);
    return st;
}

static qat_status check_channel_scales(const struct subject *s, const qat_qtensor *t,
                                       qat_error *err)
{
    if (!t->channel_scales)
        return QAT_OK;
    qat_status st =
        limit(s, "the zero_point of a tensor with channel scales", t->zero_point, 0, 0, err);
    if (!st && t->n_channels != t->dims[0] && t->n_channels != t->dims[t->rank - 1])
        st =
            qat_fail(err, QAT_ERR_ARGUMENT,
                     ".qm: tensor %d (%s) has %d channel scales, but its first and last dimensions "
                     "are %d and %d",
                     s->index, s->name, t->n_channels, t->dims[0], t->dims[t->rank - 1]);
    for (int i = 0; !st && i < t->n_channels; i++)
        st = scale(s, t->channel_scales[i], err);
    return st;
}

static qat_status check_tensor(const qat_qtensor *t, int index, qat_error *err)
{
    struct subject const s = {"tensor", index, t->name};
    int32_t lo, hi;
    static const int least[] = {
        [QI_U8] = 1, [QI_S8] = 2, [QI_S32] = 32, [QI_S64] = 64, [QI_S16] = 9};
    qat_status st = limit(&s, "its type", t->type, QI_U8, QI_TYPES - 1, err);
    if (!st)
        st = limit(&s, "bits", t->bits, least[t->type], 8 * (int)qi_type_bytes(t->type), err);
    if (!st)
        st = limit(&s, "border", t->border, QI_BORDER_NONE,
                   t->type != QI_S64 && !t->data ? QI_BORDER_EVEN : QI_BORDER_NONE, err);
    if (!st)
        st = check_dims(&s, t, err);
    if (st)
        return st;
    code_limits(t, &lo, &hi);
    st = limit(&s, "zero_point", t->zero_point, lo, hi, err);
    if (!st)
        st = scale(&s, t->scale, err);
    if (!st)
        st = check_channel_scales(&s, t, err);
    if (!st)
        st = limit(&s, "source_index", t->source_index, -1, INT32_MAX, err);
    return st ? st : check_codes(&s, t, err);
}

static qat_status check_tensors(const qat_qgraph *graph, qat_error *err)
{
    int64_t count = graph->n_tensors;
    for (int i = 0; i < graph->n_tensors; i++)
        count += graph->tensors[i].channel_scales != NULL; /* each becomes a tensor of the file */
    qat_status st = number("tensors", count, 1, QM_MAX_TENSORS, err);
    for (int i = 0; !st && i < graph->n_tensors; i++)
        st = check_tensor(&graph->tensors[i], i, err);
    return st;
}

/* ------------------------------------------------------------------ states */

/** The tensor that a state takes its values from is an activation of the same codes and dims. */
static qat_status check_state(const qat_qgraph *graph, int index, qat_error *err)
{
    const qat_qtensor *t = &graph->tensors[index];
    struct subject const s = {"state", index, t->name};
    qat_status const st = limit(&s, "its next tensor", t->next, 0, graph->n_tensors - 1, err);
    if (st)
        return st;
    const qat_qtensor *next = &graph->tensors[t->next];
    if (!t->data && !next->data && !next->is_state && next->type == t->type &&
        next->bits == t->bits && next->zero_point == t->zero_point && next->rank == t->rank &&
        memcmp(next->dims, t->dims, sizeof t->dims) == 0)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    ".qm: state %d (%s) takes the values of %s, which is no activation of the same "
                    "codes and dimensions",
                    index, t->name, next->name);
}

static qat_status check_states(const qat_qgraph *graph, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < graph->n_tensors && !st; i++)
        if (graph->tensors[i].is_state)
            st = check_state(graph, i, err);
    return st;
}

/* ------------------------------------------------------------------ nodes */

/** Check a tensor to which a node or the model refers. */
static qat_status reference(const struct subject *s, const qat_qgraph *graph, int tensor,
                            qat_error *err)
{
    return limit(s, "a tensor index", tensor, 0, graph->n_tensors - 1, err);
}

static qat_status write_once(const struct subject *s, const qat_qgraph *graph, int tensor,
                             uint8_t *written, qat_error *err)
{
    qat_status const st = reference(s, graph, tensor, err);
    if (st)
        return st;
    const qat_qtensor *t = &graph->tensors[tensor];
    if (t->data)
        return qat_fail(err, QAT_ERR_ARGUMENT, ".qm: %s %d (%s) writes the constant %s", s->kind,
                        s->index, s->name, t->name);
    if (written[tensor])
        return qat_fail(err, QAT_ERR_ARGUMENT, ".qm: %s %d (%s) writes %s a second time", s->kind,
                        s->index, s->name, t->name);
    written[tensor] = 1;
    return QAT_OK;
}

static qat_status check_read(const struct subject *s, const qat_qgraph *graph, int tensor,
                             const uint8_t *written, qat_error *err)
{
    qat_status const st = reference(s, graph, tensor, err);
    if (st || graph->tensors[tensor].data || written[tensor])
        return st;
    return qat_fail(err, QAT_ERR_ARGUMENT, ".qm: %s %d (%s) reads %s before it is written", s->kind,
                    s->index, s->name, graph->tensors[tensor].name);
}

static qat_status check_node(const qat_qgraph *graph, int index, uint8_t *written, qat_error *err)
{
    const qat_qop *op = &graph->ops[index];
    struct subject const s = {"node", index, op->name};
    qat_status st = limit(&s, "its number of inputs", op->n_inputs, 1, QM_MAX_NODE_INPUTS, err);
    if (!st)
        st = limit(&s, "its number of outputs", op->n_outputs, 1, QM_MAX_NODE_OUTPUTS, err);
    if (!st)
        st = limit(&s, "its number of parameters", op->n_params, 0, QI_MAX_PARAMS, err);
    if (!st)
        st = limit(&s, "rounding", op->rounding, QI_ROUND_NONE, QI_ROUND_ONCE, err);
    if (!st)
        st = limit(&s, "fraction", op->fraction, 0, QI_MAX_FRACTION, err);
    if (!st)
        st = limit(&s, "max_accumulator", op->max_accumulator, 0, INT64_MAX, err);
    for (int i = 0; !st && i < op->n_inputs; i++)
        st = check_read(&s, graph, op->inputs[i], written, err);
    for (int i = 0; !st && i < op->n_outputs; i++)
        st = write_once(&s, graph, op->outputs[i], written, err);
    return st;
}

static bool is_listed(const int *tensors, int count, int tensor)
{
    for (int i = 0; i < count; i++)
        if (tensors[i] == tensor)
            return true;
    return false;
}

/** Only inputs and outputs of the model may have a border. */
static qat_status check_borders(const qat_qgraph *graph, qat_error *err)
{
    for (int i = 0; i < graph->n_tensors; i++)
        if (graph->tensors[i].border && !is_listed(graph->inputs, graph->n_inputs, i) &&
            !is_listed(graph->outputs, graph->n_outputs, i))
            return qat_fail(
                err, QAT_ERR_ARGUMENT,
                ".qm: tensor %d (%s) has a border, but is neither an input nor an output", i,
                graph->tensors[i].name);
    return QAT_OK;
}

static qat_status check_epilogue(const qat_qgraph *graph, qat_error *err)
{
    const qat_qepilogue *e = &graph->epilogue;
    struct subject const s = {"epilogue", 0, e->name};
    if (!*e->name)
        return QAT_OK;
    qat_status st = limit(&s, "its number of inputs", e->n_inputs, 1, QM_MAX_EPILOGUE_INPUTS, err);
    if (!st)
        st = limit(&s, "its number of parameters", e->n_params, 0, QM_MAX_EPILOGUE_PARAMS, err);
    for (int i = 0; !st && i < e->n_inputs; i++) {
        st = reference(&s, graph, e->inputs[i], err);
        if (!st && !graph->tensors[e->inputs[i]].data &&
            !is_listed(graph->outputs, graph->n_outputs, e->inputs[i]))
            st =
                qat_fail(err, QAT_ERR_ARGUMENT,
                         ".qm: the epilogue %s reads %s, which is neither an output nor a constant",
                         e->name, graph->tensors[e->inputs[i]].name);
    }
    return st;
}

static qat_status check_flow(const qat_qgraph *graph, uint8_t *written, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < graph->n_tensors; i++)
        written[i] = graph->tensors[i].is_state;
    for (int i = 0; !st && i < graph->n_inputs; i++)
        st = write_once(&(struct subject){"input", i, "of the model"}, graph, graph->inputs[i],
                        written, err);
    for (int i = 0; !st && i < graph->n_ops; i++)
        st = check_node(graph, i, written, err);
    for (int i = 0; !st && i < graph->n_tensors; i++)
        if (!graph->tensors[i].data && !written[i])
            st = qat_fail(err, QAT_ERR_ARGUMENT, ".qm: tensor %d (%s) is never written", i,
                          graph->tensors[i].name);
    for (int i = 0; !st && i < graph->n_outputs; i++) {
        struct subject const s = {"output", i, "of the model"};
        st = reference(&s, graph, graph->outputs[i], err);
        const qat_qtensor *t = st ? NULL : &graph->tensors[graph->outputs[i]];
        if (!st && (t->data || t->is_state))
            st = qat_fail(err, QAT_ERR_ARGUMENT, ".qm: output %d is the %s %s", i,
                          t->data ? "constant" : "state", t->name);
    }
    return st;
}

static qat_status check_nodes(const qat_qgraph *graph, qat_error *err)
{
    qat_status st = number("nodes", graph->n_ops, 0, QM_MAX_NODES, err);
    if (!st)
        st = number("inputs", graph->n_inputs, 1, QM_MAX_IO, err);
    if (!st)
        st = number("outputs", graph->n_outputs, 1, QM_MAX_IO, err);
    if (st)
        return st;
    uint8_t *written = calloc((size_t)graph->n_tensors, 1);
    if (!written)
        return qat_out_of_memory(err, ".qm");
    st = check_flow(graph, written, err);
    free(written);
    if (!st)
        st = check_borders(graph, err);
    return st ? st : check_epilogue(graph, err);
}

/* ------------------------------------------------------------------ metadata */

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static qat_status check_statistics(const qi_preprocessing *p, qat_error *err)
{
    for (int c = 0; c < p->channels && c < 4; c++) {
        float const mean = float_of(p->mean_bits[c]), std = float_of(p->std_bits[c]);
        if (!isfinite(mean) || !isfinite(std) || !(std > 0.0f))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            ".qm: preprocessing: channel %d has mean %g and std %g", c,
                            (double)mean, (double)std);
    }
    return QAT_OK;
}

static qat_status check_reals(const qat_qtensor *t, const qi_preprocessing *p, qat_error *err)
{
    struct subject const s = {"preprocessing of input", 0, "real numbers"};
    qat_status st = t->type == QI_S16
                        ? QAT_OK
                        : limit(&s, "the type of its tensor", t->type, QI_U8, QI_S8, err);
    if (!st)
        st = limit(&s, "the border of its tensor", t->border, QI_BORDER_NONE, QI_BORDER_NONE, err);
    if (!st)
        st = limit(&s, "channels", p->channels, t->dims[t->rank - 1], t->dims[t->rank - 1], err);
    int32_t const of_pictures[] = {p->height, p->width, p->resize_short, p->central_crop,
                                   p->channel_order};
    for (int i = 0; !st && i < 5; i++)
        st = limit(&s, "a picture's size", of_pictures[i], 0, 0, err);
    return st ? st : check_statistics(p, err);
}

static qat_status check_pixels(const qat_qtensor *t, const qi_preprocessing *p, qat_error *err)
{
    struct subject const s = {"preprocessing of input", 0, "pictures"};
    qat_status st = limit(&s, "the type of its tensor", t->type, QI_U8, QI_U8, err);
    if (!st)
        st = limit(&s, "the rank of its tensor", t->rank, 4, 4, err);
    if (!st)
        st = limit(&s, "the batch of its tensor", t->dims[0], 1, 1, err);
    int32_t const size[] = {p->height, p->width, p->channels};
    static const char *const field[] = {"height", "width", "channels"};
    for (int i = 0; !st && i < 3; i++) {
        st = limit(&s, field[i], size[i], 1, i == 2 ? 4 : QM_MAX_SIDE, err);
        if (!st)
            st = limit(&s, field[i], size[i], t->dims[i + 1], t->dims[i + 1], err);
    }
    if (!st)
        st = limit(&s, "central_crop", p->central_crop, 0, QM_MILLION, err);
    if (!st)
        st = limit(&s, "resize_short", p->resize_short, 0, p->central_crop ? 0 : QM_MAX_SIDE, err);
    if (!st)
        st = limit(&s, "channel_order", p->channel_order, 0, 2, err);
    return st ? st : check_statistics(p, err);
}

static qat_status check_sound(const qat_qtensor *t, const qi_preprocessing *p, qat_error *err)
{
    struct subject const s = {"preprocessing of input", 0, "sounds"};
    int const size[] = {1, p->height, p->width, p->channels};
    qat_status st = limit(&s, "the type of its tensor", t->type, QI_U8, QI_U8, err);
    if (!st)
        st = limit(&s, "the rank of its tensor", t->rank, 4, 4, err);
    for (int i = 0; !st && i < 4; i++)
        st = limit(&s, "a dimension of its tensor", t->dims[i], size[i], size[i], err);
    if (!st)
        st = limit(&s, "frames", p->height, 1, QM_MAX_SIDE, err);
    if (!st)
        st = limit(&s, "bands", p->width, QI_SOUND_BANDS, QI_SOUND_BANDS, err);
    if (!st)
        st = limit(&s, "channels", p->channels, 1, 1, err);
    int32_t const of_pictures[] = {p->resize_short, p->central_crop, p->channel_order};
    for (int i = 0; !st && i < 3; i++)
        st = limit(&s, "a picture's setting", of_pictures[i], 0, 0, err);
    return st ? st : check_statistics(p, err);
}

static qat_status check_preprocessing(const qat_qgraph *graph, const qi_preprocessing *p,
                                      qat_error *err)
{
    struct subject const s = {"preprocessing of input", 0, "samples"};
    const qat_qtensor *t = &graph->tensors[graph->inputs[0]];
    qat_status const st = limit(&s, "kind", p->kind, 0, 3, err);
    if (st || p->kind == 0)
        return st;
    return p->kind == 3   ? check_sound(t, p, err)
           : p->kind == 2 ? check_reals(t, p, err)
                          : check_pixels(t, p, err);
}

static qat_status check_metadata(const qat_qgraph *graph, const qat_qm_metadata *m, qat_error *err)
{
    qat_status st = number("labels", m->n_labels, 0, QM_MAX_LABELS, err);
    if (!st && m->n_labels > 0 && !m->labels)
        st = qat_fail(err, QAT_ERR_ARGUMENT, ".qm: %d labels announced, none given", m->n_labels);
    if (!st && !m->kat_inputs != !m->kat_outputs)
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      ".qm: a known-answer test needs both its inputs and its outputs");
    bool has_state = false;
    for (int i = 0; i < graph->n_tensors; i++)
        has_state = has_state || graph->tensors[i].is_state;
    if (!st)
        st = number("steps of the known-answer test", m->kat_steps, 0,
                    has_state ? QM_MAX_KAT_STEPS : 1, err);
    return st ? st : check_preprocessing(graph, &m->preprocessing, err);
}

qat_status qat_qm_check(const qat_qgraph *graph, const qat_qm_metadata *metadata, qat_error *err)
{
    qat_status st = check_tensors(graph, err);
    if (!st)
        st = check_states(graph, err);
    if (!st)
        st = check_nodes(graph, err);
    return st ? st : check_metadata(graph, metadata, err);
}
