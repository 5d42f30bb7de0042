/** Finds things in the file and in the source, and says what differs. */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

float cert_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** Which of the listed codes a packed constant has at place i, or how far it is above the lowest.
 */
static size_t packed_index(const qi_tensor *t, size_t i)
{
    static const int power[] = {1, 3, 9, 27, 81};
    size_t const row = cert_count(t) / (size_t)t->dims[0], at = i % row;
    size_t const bits = t->packing, index_of_row = i / row;
    const uint8_t *bytes = (const uint8_t *)t->data + t->listed;
    size_t index = 0;
    if (t->packing == QI_PACKING_TRITS)
        return (size_t)(bytes[index_of_row * ((row + 4) / 5) + at / 5] / power[at % 5] % 3);
    bytes += index_of_row * ((row * bits + 7) / 8);
    for (size_t b = 0; b < bits; b++)
        index += (size_t)(bytes[(at * bits + b) / 8] >> (at * bits + b) % 8 & 1) << b;
    return index;
}

int32_t cert_code(const qi_tensor *t, size_t i)
{
    if (!t->is_packed)
        return (int32_t)qi_value_at((qi_type)t->type, t->data, i);
    size_t const index = packed_index(t, i);
    int32_t const lowest = t->type == QI_S8 ? -(1 << (t->bits - 1)) : 0;
    return t->listed ? (int32_t)qi_value_at((qi_type)t->type, t->data, index)
                     : lowest + (int32_t)index;
}

/** The first node that reads the first tensor with these scales as weights. */
static const qi_node *scaled_node(const qi_model *model, int32_t scales)
{
    int32_t weights = 0, i = 0;
    while (qi_tensor_at(model, weights)->channel_scales != scales)
        weights++;
    while (qi_node_at(model, i)->n_inputs < 2 || qi_node_at(model, i)->inputs[1] != weights)
        i++;
    return qi_node_at(model, i);
}

static float derived_scale(const qi_model *model, int32_t scales, int channel)
{
    enum { X, WEIGHTS, BIAS, MULT, SHIFT };
    const qi_node *node = scaled_node(model, scales);
    const qi_tensor *mult = qi_tensor_at(model, node->inputs[MULT]);
    const qi_tensor *shift = qi_tensor_at(model, node->inputs[SHIFT]);
    size_t const at = cert_count(shift) > 1 ? (size_t)channel : 0;
    int const by = shift->is_packed ? ((const int8_t *)shift->data)[at]
                                    : (int)qi_value_at(QI_S32, shift->data, at);
    double const m =
        ldexp((double)qi_value_at(QI_S32, mult->data, (size_t)channel), by - 31 + node->fraction);
    return (float)(m * (double)cert_scale(qi_tensor_at(model, node->outputs[0])) /
                   (double)cert_scale(qi_tensor_at(model, node->inputs[X])));
}

float cert_channel_scale(const qi_model *model, const qi_tensor *weights, int channel)
{
    int32_t const scales = weights->channel_scales;
    const void *bits = scales < 0 ? NULL : qi_tensor_at(model, scales)->data;
    if (scales >= 0 && !bits)
        return derived_scale(model, scales, channel);
    return scales < 0 ? cert_scale(weights)
                      : cert_float((uint32_t)qi_value_at(QI_S32, bits, (size_t)channel));
}

size_t cert_count(const qi_tensor *t)
{
    size_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= (size_t)t->dims[i];
    return count;
}

/* ------------------------------------------------------------------ refusing */

qat_status cert_equal(const cert *c, const char *layer, const char *field, int64_t in_file,
                      int64_t expected)
{
    if (in_file == expected)
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: %s is %lld in the file, but the checkpoint gives %lld", layer, field,
                    (long long)in_file, (long long)expected);
}

qat_status cert_equal_text(const cert *c, const char *layer, const char *field, const char *in_file,
                           const char *expected)
{
    if (strncmp(in_file, expected, QAT_NAME_MAX - 1) == 0)
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: %s is \"%s\" in the file, but the checkpoint gives \"%s\"", layer, field,
                    in_file, expected);
}

void cert_uncertified(cert *c, const char *name, const char *why)
{
    char *names = c->result->uncertified;
    size_t const at = strlen(names);
    snprintf(names + at, QAT_CERTIFY_NAMES_MAX - at, "%s%s (%s)", at ? ", " : "", name, why);
    c->result->n_uncertified++;
}

/* ------------------------------------------------------------------ the source */

const float *qat_certify_graph_values(const void *graph, const char *name, size_t *count)
{
    const qat_node *node = qat_graph_find((qat_graph *)(uintptr_t)graph, name);
    if (!node || !node->is_param || !node->value)
        return NULL;
    *count = qat_shape_count(&node->shape);
    return node->value;
}

const float *cert_find_values(const cert *c, const char *name, size_t *count)
{
    *count = 0;
    return c->source->values(c->source->context, name, count);
}

qat_status cert_values(const cert *c, const char *name, size_t count, const float **values)
{
    size_t there;
    *values = cert_find_values(c, name, &there);
    if (*values && there == count)
        return QAT_OK;
    return qat_fail(
        c->err, QAT_ERR_MISMATCH,
        "%s: the checkpoint holds %zu values of this parameter, but the network has %zu", name,
        there, count);
}

/* ------------------------------------------------------------------ ops and tensors */

int cert_find_tensor(const cert *c, const char *name)
{
    for (int i = 0; i < qi_tensor_count(c->model); i++)
        if (cert_tensor(c, i)->kind == QI_ACTIVATION &&
            strncmp(cert_tensor(c, i)->name, name, QAT_NAME_MAX - 1) == 0)
            return i;
    return -1;
}

static qat_status check_inputs(const cert *c, const qi_node *n, int n_inputs, const int *inputs)
{
    qat_status st = QAT_OK;
    if (n->n_inputs < n_inputs)
        return cert_equal(c, n->name, "the number of inputs", n->n_inputs, n_inputs);
    for (int i = 0; !st && i < n_inputs; i++)
        if (n->inputs[i] != inputs[i])
            st = cert_equal_text(c, n->name, "an input", cert_tensor(c, n->inputs[i])->name,
                                 inputs[i] < 0 ? "a tensor that the file has not"
                                               : cert_tensor(c, inputs[i])->name);
    return st;
}

qat_status cert_find_op(cert *c, const char *tensor, const char *kernel, const char *layer,
                        int n_inputs, const int *inputs, const qi_node **op)
{
    int const index = cert_find_tensor(c, tensor);
    if (index < 0)
        return qat_fail(
            c->err, QAT_ERR_MISMATCH,
            "%s: the checkpoint's network has this layer, but the file has no tensor %s", layer,
            tensor);
    int const writer = c->writer[index];
    if (writer < 0 || c->seen[writer])
        return qat_fail(c->err, QAT_ERR_MISMATCH,
                        "%s: the file has the output %s of this layer, but no op that computes it",
                        layer, tensor);
    c->seen[writer] = true;
    c->result->layers++;
    *op = qi_node_at(c->model, writer);
    qat_status st = cert_equal_text(c, layer, "the layer's name", (*op)->name, layer);
    if (!st && kernel)
        st = cert_equal_text(c, layer, "the op", (*op)->kernel->name, kernel);
    if (!st)
        st = cert_equal(c, layer, "the number of outputs", (*op)->n_outputs, 1);
    return st ? st : check_inputs(c, *op, n_inputs, inputs);
}

static qat_status check_shape(const cert *c, const qi_tensor *t, const qat_shape *shape)
{
    qat_status st = cert_equal(c, t->name, "the rank", t->rank, shape->rank);
    for (int i = 0; !st && i < t->rank; i++)
        st = cert_equal(c, t->name, "a dimension", t->dims[i], i == 0 ? 1 : shape->dims[i]);
    return st;
}

/** All tensors of a class have the very same scale and zero point. */
static qat_status check_class(cert *c, int tensor, int origin)
{
    int const root = cert_root(c, origin), first = c->class_first[root];
    const qi_tensor *t = cert_tensor(c, tensor);
    if (first < 0) {
        c->class_first[root] = tensor;
        return QAT_OK;
    }
    const qi_tensor *same = cert_tensor(c, first);
    if (t->scale_bits == same->scale_bits && t->zero_point == same->zero_point)
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: scale and zero point are %.9g and %d in the file, but those of %s, to "
                    "which it is concatenated, are %.9g and %d; they must be equal",
                    t->name, (double)cert_scale(t), (int)t->zero_point, same->name,
                    (double)cert_scale(same), (int)same->zero_point);
}

/** The range beside scale and zero point is for people; it must follow from them. float32 rounds
 *  (lo - Z) S once: U, of at most 2^bits S. */
qat_status cert_check_range(const cert *c, const char *name, const qi_tensor *t, int32_t lo,
                            int32_t hi)
{
    double const scale = (double)cert_scale(t), slack = (hi - lo + 2) * CERT_U * scale;
    int32_t const ends[] = {lo, hi};
    for (int i = 0; i < 2; i++) {
        double const there = (double)cert_float(t->range_bits[i]);
        double const expected = scale * (ends[i] - t->zero_point);
        if (!(fabs(there - expected) <= slack))
            return qat_fail(c->err, QAT_ERR_MISMATCH,
                            "%s: its range ends at %g in the file, but its scale and codes give %g",
                            name, there, expected);
    }
    return QAT_OK;
}

qat_status cert_check_activation(cert *c, int tensor, const qat_shape *shape, int origin)
{
    const qi_tensor *t = cert_tensor(c, tensor);
    cert_grid grid;
    int32_t lo, hi;
    qi_type const type = c->source->quant.activation_bits == QAT_WIDE_BITS ? QI_S16
                         : c->source->quant.layout == QAT_LAYOUT_INT8      ? QI_S8
                                                                           : QI_U8;
    qat_status st = cert_activation_grid(c, origin, &grid);
    if (!st)
        st = check_shape(c, t, shape);
    if (!st)
        st = cert_equal(c, t->name, "the type", t->type, type);
    if (st)
        return st;
    if (grid.unknown) /* scale and range follow from the file's own word */
        cert_uncertified(c, t->name, c->nodes[cert_root(c, origin)].settings.activations);
    cert_codes(c->source->quant.layout, t->bits, false, &lo, &hi);
    st = cert_equal(c, t->name, "the number of codes", hi - lo, grid.hi - grid.lo);
    if (!st)
        st = cert_check_grid(c, t->name, &grid, cert_scale(t), t->zero_point);
    if (!st)
        st = grid.empty ? QAT_OK : cert_check_range(c, t->name, t, grid.lo, grid.hi);
    c->result->scales += !grid.unknown;
    return st ? st : check_class(c, tensor, origin);
}

void cert_part_name(char name[QAT_NAME_MAX], const char *layer, const char *part)
{
    snprintf(name, QAT_NAME_MAX, "%.*s/%s", QAT_NAME_MAX - 24, layer, part);
}

qat_status cert_check_name(const cert *c, const char *layer, const qi_tensor *t, const char *name)
{
    return *t->name ? cert_equal_text(c, layer, "a constant's name", t->name, name) : QAT_OK;
}

qat_status cert_check_constant(const cert *c, const qi_tensor *t, const char *layer,
                               const char *part, qi_type type, int rows, int columns)
{
    char name[QAT_NAME_MAX];
    cert_part_name(name, layer, part);
    qat_status st = cert_check_name(c, layer, t, name);
    if (!st)
        st = cert_equal(c, name, "the kind", t->kind, QI_CONSTANT);
    if (!st)
        st = cert_equal(c, name, "the type", t->type, type);
    if (!st)
        st = cert_equal(c, name, "the rank", t->rank, columns > 1 ? 2 : 1);
    if (!st)
        st = cert_equal(c, name, "the number of rows", t->dims[0], rows);
    if (!st)
        st = cert_equal(c, name, "the number of columns", t->dims[1], columns);
    if (!st)
        st = cert_equal(c, name, "the range (as the bits of its float32)",
                        t->range_bits[0] | t->range_bits[1], 0);
    return st;
}

qat_status cert_check_form(const cert *c, const char *layer, const qi_node *op, int n_inputs,
                           int n_params, qi_rounding rounding, int64_t max_accumulator)
{
    qat_status st = cert_equal(c, layer, "the number of inputs", op->n_inputs, n_inputs);
    if (!st)
        st = cert_equal(c, layer, "the number of parameters", op->n_params, n_params);
    if (!st)
        st = cert_equal(c, layer, "the rounding", op->rounding, rounding);
    if (!st)
        st = cert_equal(c, layer, "the number of fractional bits", op->fraction, 0);
    return st ? st : cert_equal(c, layer, "max_accumulator", op->max_accumulator, max_accumulator);
}

qi_rounding cert_rounding(const cert *c, const qi_node *op, qi_rounding usual)
{
    const qat_quant_options *o = &c->source->quant;
    int least = cert_tensor(c, op->outputs[0])->bits;
    for (int i = 0; i < op->n_inputs; i++) {
        int const bits = cert_tensor(c, op->inputs[i])->bits;
        least = bits < least ? bits : least;
    }
    if (least > 8 || o->fraction == 0 || c->source->profile == QAT_PROFILE_ONNX)
        return usual;
    bool const of_itself = c->source->profile == QAT_PROFILE_PAPER && least < 8;
    return o->fraction > 0 || of_itself ? QI_ROUND_ONCE : usual;
}

qat_status cert_check_scale_1(const cert *c, const qi_tensor *t)
{
    return cert_equal(c, t->name, "the scale (as the bits of its float32)", t->scale_bits,
                      0x3f800000);
}

/** No tensor comes from a foreign file, or crosses a border as float32. */
qat_status cert_check_origins(const cert *c)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < qi_tensor_count(c->model); i++) {
        const qi_tensor *t = cert_tensor(c, i);
        st = cert_equal(c, t->name, "source_index", t->source_index, -1);
        if (!st)
            st = cert_equal(c, t->name, "the border", t->border, QI_BORDER_NONE);
    }
    return st;
}
