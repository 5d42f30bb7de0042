/**
 * Tensors that outlive a run. SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM keep theirs in variables. Any
 * other state is fed: it becomes one more input of the file, and what it turns into one more
 * output, both behind the model's. Who runs the file gives the zero point first, and then what came
 * out of the run before.
 */
#include "export/tflite/out.h"

#include <math.h>
#include <string.h>

enum { GATES = 4 };
enum { SVDF_X, SVDF_W, SVDF_W_TIME, SVDF_BIAS, SVDF_STATE, SVDF_INPUTS };
enum { LSTM_X, LSTM_H, LSTM_C, LSTM_W_X, LSTM_W_H, LSTM_BIAS };
/** Inputs of the operator UNIDIRECTIONAL_SEQUENCE_LSTM, as in convert/tflite/op_lstm.c. */
enum { X, W_X = 1, W_H = 5, BIAS = 12, H = 18, C = 19, INPUTS = 24 };
/** Params of the engine's op. */
enum { PARAM_RANK = 0, PARAM_MULT_Y = 16, PARAM_CELL_CLIP = 19 };

/* ------------------------------------------------------------------ which states */

/** Is input i of the op a state, and its output j what this becomes? */
static bool keeps(const qat_qgraph *g, const qat_qop *op, int i, int j)
{
    const qat_qtensor *t = &g->tensors[op->inputs[i]];
    return t->is_state && t->next == op->outputs[j];
}

static bool is_kept(const qat_qgraph *g, int state)
{
    for (int i = 0; i < g->n_ops; i++) {
        const qat_qop *op = &g->ops[i];
        bool const svdf = !strcmp(op->op, "svdf"), lstm = !strcmp(op->op, "lstm");
        if ((svdf && op->inputs[SVDF_STATE] == state && keeps(g, op, SVDF_STATE, 1)) ||
            (lstm && op->inputs[LSTM_H] == state && keeps(g, op, LSTM_H, 1)) ||
            (lstm && op->inputs[LSTM_C] == state && keeps(g, op, LSTM_C, 2)))
            return true;
    }
    return false;
}

int tfo_fed_states(const qat_qgraph *g, int *states)
{
    int n = 0;
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].is_state && !is_kept(g, i)) {
            if (states)
                states[n] = i;
            n++;
        }
    return n;
}

/** Input i of the op as a variable, which ops behind it read as its output j. */
static qat_status variable(tfo *o, int i, int j, int *index)
{
    if (!keeps(o->graph, o->op, i, j))
        return tfo_refuse(o, "it does not keep its state %s itself", tfo_input(o, i)->name);
    *index = tfo_input_index(o, i);
    o->file.tensors[*index].variable = true;
    o->index[o->op->outputs[j]] = *index;
    return QAT_OK;
}

/* ------------------------------------------------------------------ SVDF */

qat_status tfo_svdf(tfo *o, int code)
{
    const qat_qtensor *bias = tfo_input(o, SVDF_BIAS);
    int inputs[SVDF_INPUTS];
    qat_status const st = variable(o, SVDF_STATE, 1, &inputs[SVDF_STATE]);
    if (st)
        return st;
    for (int i = SVDF_X; i <= SVDF_W_TIME; i++)
        inputs[i] = tfo_input_index(o, i);
    inputs[SVDF_BIAS] =
        tfo_sums(o, bias->name, (int)qat_qtensor_count(bias), bias->data,
                 tfo_input(o, SVDF_STATE)->scale * tfo_input(o, SVDF_W_TIME)->scale);
    tfo_operator *to = tfo_append(o, code, SVDF_INPUTS, inputs, tfo_output_index(o));
    tfo_option_int(to, SVDF_RANK, o->op->params[PARAM_RANK]);
    tfo_option_int(to, SVDF_ACTIVATION, TFL_ACT_RELU);
    return QAT_OK;
}

/* ------------------------------------------------------------------ LSTM */

/** The weights of one gate, which lie in those of all. */
static int gate_weights(tfo *o, int input, int gate)
{
    static const char *const names[] = {"input", "forget", "cell", "output"};
    const qat_qtensor *w = tfo_input(o, input);
    size_t const bytes = qat_qtensor_bytes(w) / GATES;
    qat_qtensor one = *w;
    one.rank = 2;
    one.dims[0] = w->dims[1];
    one.dims[1] = w->dims[2];
    one.scale = w->channel_scales ? w->channel_scales[gate] : w->scale;
    qat_part_name(one.name, w->name, names[gate]);
    tfo_tensor d = tfo_describe(&one);
    d.buffer = tfo_add_buffer(&o->file, (const uint8_t *)w->data + (size_t)gate * bytes, bytes);
    return tfo_add_tensor(&o->file, one.name, &d);
}

/** The scale of the hidden state that gives the op's multiplier. */
static float hidden_scale(const tfo *o)
{
    const int32_t *p = o->op->params + PARAM_MULT_Y;
    float const likely[] = {tfo_input(o, LSTM_H)->scale, tfo_output(o)->scale};
    for (int i = 0; i < 2; i++) {
        int32_t mult, shift;
        qat_requantize_multiplier((double)(float)(0x1p-30 / (double)likely[i]), &mult, &shift);
        if (mult == p[0] && shift == p[1])
            return likely[i];
    }
    return (float)(0x1p-30 / ldexp(p[0], p[1] - 31));
}

/** The operator's inputs, but for its states. */
static void lstm_inputs(tfo *o, int inputs[INPUTS])
{
    const qat_qtensor *h = tfo_input(o, LSTM_H), *w = tfo_input(o, LSTM_W_H);
    const qat_qtensor *bias = tfo_input(o, LSTM_BIAS);
    for (int i = 0; i < INPUTS; i++)
        inputs[i] = -1;
    inputs[X] = tfo_input_index(o, LSTM_X);
    for (int g = 0; g < GATES; g++) {
        int const units = bias->dims[1];
        float const scale = w->channel_scales ? w->channel_scales[g] : w->scale;
        inputs[W_X + g] = gate_weights(o, LSTM_W_X, g);
        inputs[W_H + g] = gate_weights(o, LSTM_W_H, g);
        inputs[BIAS + g] =
            tfo_sums(o, bias->name, units, (const int32_t *)bias->data + (size_t)g * (size_t)units,
                     scale * h->scale);
    }
}

qat_status tfo_lstm(tfo *o, int code)
{
    const int32_t *p = o->op->params;
    int inputs[INPUTS];
    lstm_inputs(o, inputs);
    qat_status st = variable(o, LSTM_H, 1, &inputs[H]);
    if (!st)
        st = variable(o, LSTM_C, 2, &inputs[C]);
    if (st)
        return st;
    qat_qtensor hidden = *tfo_input(o, LSTM_H);
    hidden.scale = hidden_scale(o);
    int const scales = tfo_between(o, &hidden, "hidden");
    tfo_operator *to = tfo_append(o, code, INPUTS, inputs, tfo_output_index(o));
    if (to) {
        to->intermediate = scales;
        to->n_intermediates = TFO_INTERMEDIATES;
    }
    tfo_option_int(to, LSTM_ACTIVATION, TFL_ACT_TANH);
    tfo_option_float(to, LSTM_CELL_CLIP, (float)p[PARAM_CELL_CLIP] * tfo_input(o, LSTM_C)->scale);
    return QAT_OK;
}
