/** SVDF: operators with state, which they keep from run to run. */
#include "convert/tflite/import.h"

#include <stdlib.h>

enum { X, W, W_TIME, BIAS, STATE, INPUTS };
/** Parameters of the engine's op. */
enum { RANK, MULT_STATE, SHIFT_STATE, MULT_Y, SHIFT_Y, CLAMP_LO, CLAMP_HI, PARAMS };

/** The engine's tensors, and their shapes in the file. */
struct svdf {
    int inputs[INPUTS], outputs[2];
    tfl_shape x, w, time, state;
    int rank;
};

/** S_a S_b / S_c in float32, as TensorFlow Lite has it, as a multiplier. */
static void multiplier_of(const tfl_importer *im, int a, int b, int c, int32_t *mult,
                          int32_t *shift)
{
    const qat_qtensor *t = im->graph->tensors;
    float const product = t[a].scale * t[b].scale, m = product / t[c].scale;
    qat_requantize_multiplier((double)m, mult, shift);
}

/** Its multipliers are for all filters. */
static qat_status load_weights(tfl_importer *im, int i, int *tensor)
{
    const tfl_tensor *t = tfl_tensor_of(im, i);
    if (t && t->scales.count > 1)
        return tfl_refuse(im, "its weights, tensor %d (%s), have several scales", im->op->inputs[i],
                          t->name);
    return tfl_weights(im, i, 0, tensor);
}

static qat_status load_tensors(tfl_importer *im, struct svdf *s)
{
    qat_status st = tfl_input(im, X, &s->inputs[X]);
    if (!st)
        st = tfl_input_shape(im, X, 2, 2, &s->x);
    if (!st)
        st = tfl_input_shape(im, W, 2, 2, &s->w);
    if (!st)
        st = tfl_input_shape(im, W_TIME, 2, 2, &s->time);
    if (!st)
        st = load_weights(im, W, &s->inputs[W]);
    if (!st)
        st = load_weights(im, W_TIME, &s->inputs[W_TIME]);
    if (!st)
        st = tfl_state(im, STATE, &s->inputs[STATE]);
    if (!st)
        st = tfl_input_shape(im, STATE, 2, 2, &s->state);
    return st;
}

/** Without a bias it is zeros. */
static qat_status load_bias(tfl_importer *im, struct svdf *s, int32_t units)
{
    qat_status const st = tfl_bias(im, BIAS, units, false, &s->inputs[BIAS]);
    if (st || s->inputs[BIAS] >= 0)
        return st;
    int32_t *zeros = calloc((size_t)units, sizeof *zeros);
    char name[QAT_NAME_MAX];
    if (!zeros)
        return qat_out_of_memory(im->err, NULL);
    qat_part_name(name, im->model->tensors[im->op->outputs[0]].name, "bias");
    s->inputs[BIAS] = qat_qgraph_constant_s32(im->graph, name, units, 1, zeros, im->err);
    free(zeros);
    return qat_append_status(s->inputs[BIAS], im->err);
}

static qat_status load(tfl_importer *im, struct svdf *s)
{
    qat_status st = load_tensors(im, s);
    if (st)
        return st;
    s->rank = fb_i32(&im->op->options, SVDF_RANK, 0);
    if (fb_u8(&im->op->options, SVDF_ACTIVATION, TFL_ACT_NONE) != TFL_ACT_RELU)
        return tfl_refuse(im, "its activation is not RELU, which the integer kernel asks for");
    if (s->rank < 1 || s->w.dims[0] % s->rank)
        return tfl_refuse(im, "rank %d of %d filters", s->rank, (int)s->w.dims[0]);
    int32_t const units = s->w.dims[0] / s->rank;
    st = load_bias(im, s, units);
    if (!st)
        st =
            tfl_output(im, 0, &(tfl_shape){2, {s->x.dims[0], units}}, s->inputs[X], &s->outputs[0]);
    return st ? st : tfl_between(im, "state", &s->state, s->inputs[STATE], &s->outputs[1]);
}

/** The engine checks types and shapes once more. */
static qat_status import_svdf(tfl_importer *im)
{
    struct svdf s = {0};
    int32_t params[PARAMS] = {0};
    qat_status const st = load(im, &s);
    if (st)
        return st;
    params[RANK] = s.rank;
    multiplier_of(im, s.inputs[X], s.inputs[W], s.inputs[STATE], &params[MULT_STATE],
                  &params[SHIFT_STATE]);
    multiplier_of(im, s.inputs[STATE], s.inputs[W_TIME], s.outputs[0], &params[MULT_Y],
                  &params[SHIFT_Y]);
    qat_tensor_codes(&im->graph->tensors[s.outputs[0]], &params[CLAMP_LO], &params[CLAMP_HI]);
    tfl_next(im, STATE, s.outputs[1]);
    int const op =
        qat_qgraph_op(im->graph, "svdf", im->model->tensors[im->op->outputs[0]].name,
                      QI_ROUND_TWICE, INPUTS, s.inputs, 2, s.outputs, PARAMS, params, 0, im->err);
    return qat_append_status(op, im->err);
}

const tfl_handler tfl_state_handlers[] = {{TFL_SVDF, TFL_OPTIONS_SVDF, 5, 5, 1, import_svdf}, {0}};
