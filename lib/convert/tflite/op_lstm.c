/** UNIDIRECTIONAL_SEQUENCE_LSTM with 8-bit codes and a cell of 16 bits. */
#include "convert/tflite/import.h"

#include <math.h>
#include <string.h>

enum { GATES = 4 };
/** Parameters of the engine's op; its inputs and outputs. */
enum {
    MULT_X,
    SHIFT_X = MULT_X + GATES,
    MULT_H = SHIFT_X + GATES,
    SHIFT_H = MULT_H + GATES,
    MULT_Y = SHIFT_H + GATES,
    SHIFT_Y,
    TANH_BITS,
    CELL_CLIP,
    PARAMS
};
enum { IN_X, IN_H, IN_C, IN_W_X, IN_W_H, IN_BIAS, INPUTS };
enum { OUT_Y, OUT_H, OUT_C, OUTPUTS };
/** Inputs of the operator; of weights and biases the first of four. */
enum { X, W_X = 1, W_H = 5, PEEPHOLES = 9, BIAS = 12, PROJECTION = 16, H = 18, C = 19, NORMS = 20 };
enum { HIDDEN = 4 }; /* the intermediate tensor with the scale of the output before a projection */

/** The engine's tensors and parameters. */
struct lstm {
    int inputs[INPUTS], outputs[OUTPUTS];
    tfl_shape x, h;
    bool is_time_major; /* in the file */
    int32_t params[PARAMS];
};

/** What other forms of the operator have. */
static qat_status check_form(tfl_importer *im)
{
    static const struct {
        int first, count;
        const char *what;
    } absent[] = {{PEEPHOLES, 3, "peepholes"},
                  {PROJECTION, 2, "a projection"},
                  {NORMS, 4, "layer normalization"}};
    const fb_table *options = &im->op->options;
    for (size_t k = 0; k < sizeof absent / sizeof *absent; k++)
        for (int i = 0; i < absent[k].count; i++)
            if (tfl_has_input(im, absent[k].first + i))
                return tfl_refuse(im, "it has %s (input %d)", absent[k].what, absent[k].first + i);
    if (!tfl_has_input(im, W_X))
        return tfl_refuse(im, "it has no input gate (input %d)", W_X);
    if (fb_u8(options, LSTM_ACTIVATION, TFL_ACT_NONE) != TFL_ACT_TANH)
        return tfl_refuse(im, "its activation is not TANH");
    if (im->op->n_intermediates <= HIDDEN || im->op->intermediates[HIDDEN] < 0)
        return tfl_refuse(im, "it has no scale of its hidden state (intermediate tensor %d)",
                          HIDDEN);
    return QAT_OK;
}

/** The first two dimensions change places; of one sequence, or of one step, no code moves. */
static qat_status swap_first(tfl_importer *im, const tfl_shape *from, int input, int output)
{
    static const int32_t perm[] = {1, 0, 2, 3};
    qat_emit const e = tfl_emit(im, 1, &input, output);
    if (from->dims[0] == 1 || from->dims[1] == 1)
        return qat_emit_reshape(&e, im->err);
    return qat_emit_op(&e, "transpose", QI_ROUND_NONE, QI_MAX_RANK, perm, 0, im->err);
}

/** Bring [time, batch, values] into the engine's order. */
static qat_status put_batch_first(tfl_importer *im, struct lstm *l)
{
    tfl_shape const x = l->x;
    l->is_time_major = fb_u8(&im->op->options, LSTM_TIME_MAJOR, 0) != 0;
    if (!l->is_time_major)
        return QAT_OK;
    l->x = (tfl_shape){3, {x.dims[1], x.dims[0], x.dims[2]}};
    int const input = l->inputs[IN_X];
    qat_status const st = tfl_between(im, "batch_first", &l->x, input, &l->inputs[IN_X]);
    return st ? st : swap_first(im, &x, input, l->inputs[IN_X]);
}

static qat_status load_states(tfl_importer *im, struct lstm *l)
{
    qat_status st = tfl_input(im, X, &l->inputs[IN_X]);
    if (!st)
        st = tfl_input_shape(im, X, 3, 3, &l->x);
    if (!st)
        st = put_batch_first(im, l);
    if (!st)
        st = tfl_state(im, H, &l->inputs[IN_H]);
    if (!st)
        st = tfl_input_shape(im, H, 2, 2, &l->h);
    if (!st)
        st = tfl_state(im, C, &l->inputs[IN_C]);
    if (!st && im->graph->tensors[l->inputs[IN_X]].type != QI_S8)
        st = tfl_refuse(im, "its input is not int8");
    return st;
}

/* ------------------------------------------------------------------ weights and biases */

/** Input i as the weights of one gate: int8, one scale, symmetric. */
static qat_status check_weights(tfl_importer *im, int i, int32_t rows, int32_t columns)
{
    const tfl_tensor *t = tfl_tensor_of(im, i);
    if (!t || !t->data || t->type != TFL_INT8 || t->rank != 2 || t->dims[0] != rows ||
        t->dims[1] != columns || t->data_bytes != (size_t)rows * (size_t)columns || t->sparse ||
        t->scales.count != 1 || !tfl_is_scale(fb_f32_at(&t->scales, 0)) ||
        fb_i64_at(&t->zero_points, 0) != 0)
        return tfl_refuse(
            im,
            "input %d, weights of a gate, is not an int8 constant [%d, %d], dense, with "
            "one scale and zero point 0",
            i, (int)rows, (int)columns);
    return QAT_OK;
}

/** The weights of the four gates in one tensor, with a scale for each. */
static qat_status join_weights(tfl_importer *im, int first, const char *part,
                               const tfl_shape *shape, int *tensor)
{
    size_t const bytes = (size_t)shape->dims[1] * (size_t)shape->dims[2];
    qat_qtensor t = {.type = QI_S8, .bits = 8, .n_channels = GATES, .source_index = -1};
    void *scales = NULL;
    qat_status st = QAT_OK;
    for (int g = 0; g < GATES && !st; g++)
        st = check_weights(im, first + g, shape->dims[1], shape->dims[2]);
    if (!st)
        st = tfl_take_room(im, im->op->inputs[first], GATES * sizeof(float), &scales);
    t.channel_scales = scales;
    if (!st)
        st = tfl_take_room(im, im->op->inputs[first], GATES * bytes, &t.data);
    if (st)
        return st;
    qat_part_name(t.name, im->model->tensors[im->op->outputs[0]].name, part);
    for (int g = 0; g < GATES; g++) {
        const tfl_tensor *from = tfl_tensor_of(im, first + g);
        memcpy((uint8_t *)t.data + (size_t)g * bytes, from->data, bytes);
        t.channel_scales[g] = fb_f32_at(&from->scales, 0);
    }
    t.scale = t.channel_scales[0];
    return tfl_append(im, &t, shape, tensor);
}

static qat_status join_biases(tfl_importer *im, int32_t units, int *tensor)
{
    void *values;
    char name[QAT_NAME_MAX];
    size_t const bytes = (size_t)units * sizeof(int32_t);
    for (int g = 0; g < GATES; g++) {
        const tfl_tensor *t = tfl_tensor_of(im, BIAS + g);
        if (!t || !t->data || t->type != TFL_INT32 || t->sparse || t->data_bytes != bytes)
            return tfl_refuse(im,
                              "input %d, the bias of a gate, is not a dense int32 constant of "
                              "%d values",
                              BIAS + g, (int)units);
    }
    qat_status const st = tfl_take_room(im, im->op->inputs[BIAS], GATES * bytes, &values);
    if (st)
        return st;
    for (int g = 0; g < GATES; g++)
        memcpy((uint8_t *)values + (size_t)g * bytes, tfl_tensor_of(im, BIAS + g)->data, bytes);
    qat_part_name(name, im->model->tensors[im->op->outputs[0]].name, "bias");
    *tensor = qat_qgraph_constant_s32(im->graph, name, GATES, units, values, im->err);
    return qat_append_status(*tensor, im->err);
}

/* ------------------------------------------------------------------ parameters */

/** Multipliers of the gates: float32 products of scales to codes of 12 fractional bits. */
static void gate_multipliers(const tfl_importer *im, struct lstm *l)
{
    const qat_qtensor *t = im->graph->tensors;
    for (int side = 0; side < 2; side++)
        for (int g = 0; g < GATES; g++) {
            float const product =
                t[l->inputs[IN_W_X + side]].channel_scales[g] * t[l->inputs[IN_X + side]].scale;
            int32_t *p = l->params + (side ? MULT_H : MULT_X) + g;
            qat_requantize_multiplier((double)(product * 4096.0f), p, p + GATES);
        }
}

static qat_status other_params(tfl_importer *im, struct lstm *l)
{
    const tfl_tensor *hidden = &im->model->tensors[im->op->intermediates[HIDDEN]];
    const qat_qtensor *c = &im->graph->tensors[l->inputs[IN_C]],
                      *h = &im->graph->tensors[l->inputs[IN_H]];
    int32_t *p = l->params;
    float const scale = fb_f32_at(&hidden->scales, 0);
    int exponent;
    if (hidden->scales.count != 1 || !tfl_is_scale(scale) ||
        fb_i64_at(&hidden->zero_points, 0) != h->zero_point)
        return tfl_refuse(im, "its hidden state has other codes than its output");
    if (!qat_is_power_of_two(c->scale, &exponent) || exponent < -15 || exponent > -11)
        return tfl_refuse(im, "the scale of its cell is %g, no power of two from 2^-15 to 2^-11",
                          (double)c->scale);
    qat_requantize_multiplier((double)(float)(0x1p-30 / (double)scale), &p[MULT_Y], &p[SHIFT_Y]);
    p[TANH_BITS] = 15 + exponent;
    float const clip = fb_f32(&im->op->options, LSTM_CELL_CLIP, 0.0f);
    p[CELL_CLIP] = clip > 0.0f ? (int32_t)fminf(clip / c->scale, INT16_MAX) : 0;
    return QAT_OK;
}

/** The op's first output: the operator's, or the same with the batch first. */
static qat_status add_answers(tfl_importer *im, struct lstm *l)
{
    tfl_shape const y = {3, {l->x.dims[0], l->x.dims[1], l->h.dims[1]}};
    int const index = im->op->outputs[0];
    qat_qtensor t;
    if (!l->is_time_major)
        return tfl_output(im, 0, &y, l->inputs[IN_X], &l->outputs[OUT_Y]);
    qat_status const st = tfl_describe(im, index, &t);
    t.source_index = -1;
    qat_part_name(t.name, im->model->tensors[index].name, "sequence");
    return st ? st : tfl_append(im, &t, &y, &l->outputs[OUT_Y]);
}

static qat_status load(tfl_importer *im, struct lstm *l)
{
    qat_status st = check_form(im);
    if (!st)
        st = load_states(im, l);
    if (st)
        return st;
    int32_t const units = l->h.dims[1], inputs = l->x.dims[2];
    st = join_weights(im, W_X, "w_x", &(tfl_shape){3, {GATES, units, inputs}}, &l->inputs[IN_W_X]);
    if (!st)
        st = join_weights(im, W_H, "w_h", &(tfl_shape){3, {GATES, units, units}},
                          &l->inputs[IN_W_H]);
    if (!st)
        st = join_biases(im, units, &l->inputs[IN_BIAS]);
    if (!st)
        st = add_answers(im, l);
    if (!st)
        st = tfl_between(im, "hidden", &l->h, l->inputs[IN_H], &l->outputs[OUT_H]);
    return st ? st : tfl_between(im, "cell", &l->h, l->inputs[IN_C], &l->outputs[OUT_C]);
}

static qat_status import_lstm(tfl_importer *im)
{
    struct lstm l = {0};
    qat_status st = load(im, &l);
    if (!st)
        st = other_params(im, &l);
    if (st)
        return st;
    gate_multipliers(im, &l);
    tfl_next(im, H, l.outputs[OUT_H]);
    tfl_next(im, C, l.outputs[OUT_C]);
    int const op = qat_qgraph_op(im->graph, "lstm", im->model->tensors[im->op->outputs[0]].name,
                                 QI_ROUND_TWICE, INPUTS, l.inputs, OUTPUTS, l.outputs, PARAMS,
                                 l.params, 0, im->err);
    st = qat_append_status(op, im->err);
    if (st || !l.is_time_major)
        return st;
    tfl_shape const y = {3, {l.x.dims[1], l.x.dims[0], l.h.dims[1]}};
    int output = -1;
    st = tfl_output(im, 0, &y, l.outputs[OUT_Y], &output);
    return st ? st : swap_first(im, &y, l.outputs[OUT_Y], output);
}

const tfl_handler tfl_lstm_handlers[] = {{TFL_UNIDIRECTIONAL_SEQUENCE_LSTM,
                                          TFL_OPTIONS_UNIDIRECTIONAL_SEQUENCE_LSTM, 20, 24, 1,
                                          import_lstm},
                                         {0}};
