/**
 * QUANTIZE, DEQUANTIZE and CAST. Between 8-bit types, QUANTIZE changes the grid, and CAST between
 * integers keeps the stored numbers. Otherwise they are at the border of the model, where real
 * numbers enter and leave:
 *
 *     float32 input -> QUANTIZE -> q ...      the .qm's input is q, marked as float32 outside
 *     ... q -> DEQUANTIZE -> float32 output   the .qm's output is q, marked so
 *     ... q -> DEQUANTIZE -> QUANTIZE -> r    float arithmetic on one 8-bit tensor: a table
 *
 * CAST does the same with the scale 1 and the zero point 0; into codes it rounds toward zero.
 *
 * If q itself is also a model input or output, a copy of q is marked.
 */
#include "convert/tflite/import.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------ copies */

/**
 * Add a tensor with the grid of the engine tensor `like`, with the name and number of tensor
 * `index` of the file, marked as float32 outside.
 */
static qat_status add_bordered(tfl_importer *im, int index, int like, int *tensor)
{
    qat_qtensor t = im->graph->tensors[like];
    t.data = NULL;
    t.channel_scales = NULL;
    t.n_channels = 0;
    t.border = QI_BORDER_FLOAT32;
    t.source_index = index;
    snprintf(t.name, sizeof t.name, "%s", im->model->tensors[index].name);
    return tfl_append(im, &t, &im->values[index].shape, tensor);
}

static qat_status emit_copy(tfl_importer *im, int from, int to)
{
    qat_emit const e = {.graph = im->graph,
                        .profile = QAT_PROFILE_TFLITE,
                        .name = im->graph->tensors[to].name,
                        .n_inputs = 1,
                        .inputs = &from,
                        .output = to,
                        .act_min = -INFINITY,
                        .act_max = INFINITY};
    return qat_emit_reshape(&e, im->err);
}

static bool is_listed(const int *list, int count, int item)
{
    for (int i = 0; i < count; i++)
        if (list[i] == item)
            return true;
    return false;
}

/* ------------------------------------------------------------------ QUANTIZE */

/** Which model input a tensor of the file is; -1: none. */
static int model_input(const tfl_importer *im, int index)
{
    for (int i = 0; i < im->model->n_inputs; i++)
        if (im->model->inputs[i] == index)
            return i;
    return -1;
}

/** Turn a float32 model input into codes, with the grid of its first QUANTIZE. */
static qat_status quantize_input(tfl_importer *im, int which, const tfl_shape *shape)
{
    int const real = im->op->inputs[0], codes = im->op->outputs[0];
    int tensor = -1;
    qat_status st = tfl_output(im, 0, shape, -1, &tensor);
    if (st)
        return st;
    int *input = &im->inputs[which];
    if (*input < 0 && !is_listed(im->model->outputs, im->model->n_outputs, codes)) {
        im->graph->tensors[tensor].border = QI_BORDER_FLOAT32;
        *input = tensor;
        return QAT_OK;
    }
    if (*input < 0)
        st = add_bordered(im, real, tensor, input);
    if (!st && (im->graph->tensors[*input].border != QI_BORDER_FLOAT32 ||
                !qat_same_grid(&im->graph->tensors[*input], &im->graph->tensors[tensor])))
        return tfl_refuse(im, "its float32 input is quantized on two grids");
    return st ? st : emit_copy(im, *input, tensor);
}

/** Make a table for DEQUANTIZE followed by QUANTIZE. */
static qat_status requantize_real(tfl_importer *im, int real_of, const tfl_shape *shape)
{
    int const input = im->values[real_of].tensor;
    int output = -1;
    uint8_t codes[256];
    int32_t lo, hi;
    qat_status const st = tfl_output(im, 0, shape, -1, &output);
    if (st)
        return st;
    const qat_qtensor *x = &im->graph->tensors[input], *y = &im->graph->tensors[output];
    float reals[TFL_CODES];
    if (qi_type_bytes(x->type) > 1 || qi_type_bytes(y->type) > 1)
        return tfl_refuse(im, "it quantizes real numbers that were made of codes; with 16 bits "
                              "that is not supported");
    qat_tensor_codes(y, &lo, &hi);
    tfl_reals(im, im->op->inputs[0], reals);
    for (int i = 0; i < TFL_CODES; i++) {
        float const code = roundf(reals[i] / y->scale) + (float)y->zero_point;
        if (isnan(code))
            return tfl_refuse(im, "what it quantizes is no number for the code %d",
                              (int)qat_code_at(x->type, i));
        codes[i] = (uint8_t)(code < (float)lo ? lo : code > (float)hi ? hi : (int32_t)code);
    }
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return qat_emit_table(&e, 1, codes, im->err);
}

static qat_status import_quantize(tfl_importer *im)
{
    tfl_shape shape;
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &shape);
    if (st)
        return st;
    if (tfl_tensor_of(im, 0)->type == TFL_FLOAT32) {
        int const which = model_input(im, im->op->inputs[0]);
        int const real_of = tfl_value_of(im, 0)->real_of;
        if (which >= 0)
            return quantize_input(im, which, &shape);
        if (real_of >= 0)
            return requantize_real(im, real_of, &shape);
    }
    input = tfl_value_of(im, 0)->tensor; /* an int32 with a scale is fine here */
    if (tfl_tensor_of(im, 0)->type != TFL_INT32 || input < 0)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_output(im, 0, &shape, -1, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_requantize(&e, im->err);
}

/* ------------------------------------------------------------------ DEQUANTIZE */

/** No op is appended yet: whether these real numbers leave the model is only known at its end. */
static qat_status import_dequantize(tfl_importer *im)
{
    int const index = im->op->outputs[0];
    tfl_shape shape;
    int input = -1;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &shape);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st && im->model->tensors[index].type != TFL_FLOAT32)
        st = tfl_refuse(im, "its output is %s instead of float32",
                        tfl_type_name(im->model->tensors[index].type));
    if (!st && (im->values[index].known || im->model->tensors[index].data))
        st = tfl_refuse(im, "its output already has a value");
    if (!st && im->graph->tensors[input].data)
        st = tfl_refuse(im, "its input, %s, is a constant", im->graph->tensors[input].name);
    if (st)
        return st;
    im->values[index] =
        (tfl_value){.known = true, .shape = shape, .tensor = -1, .real_of = im->op->inputs[0]};
    return QAT_OK;
}

qat_status tfl_real_output(tfl_importer *im, int index, int *tensor)
{
    const tfl_model *m = im->model;
    int const of = im->values[index].real_of, codes = im->values[of].tensor;
    if (im->values[index].reals)
        return tfl_refuse(im, "model output: tensor %d (%s) is computed in floating point", index,
                          m->tensors[index].name);
    bool const shared = is_listed(im->inputs, m->n_inputs, codes) ||
                        (of != index && is_listed(m->outputs, m->n_outputs, of));
    if (!shared) {
        im->graph->tensors[codes].border = QI_BORDER_FLOAT32;
        *tensor = codes;
        return QAT_OK;
    }
    qat_status const st = add_bordered(im, index, codes, tensor);
    return st ? st : emit_copy(im, codes, *tensor);
}

/* ------------------------------------------------------------------ CAST */

/**
 * Make codes of a float32 model input, rounded toward zero: the model's input gets the type, but
 * the scale 1 and the zero point 0.
 */
static qat_status truncate_input(tfl_importer *im, const tfl_shape *shape)
{
    int const from = im->op->inputs[0], which = model_input(im, from);
    int const type = im->model->tensors[im->op->outputs[0]].type;
    int output = -1;
    if (which < 0 || im->inputs[which] >= 0 ||
        (type != TFL_INT8 && type != TFL_UINT8 && type != TFL_INT16 && type != TFL_INT32))
        return tfl_refuse(im, "it makes %s of float32%s", tfl_type_name(type),
                          which < 0 ? " inside the model, which would need floating point"
                          : im->inputs[which] < 0 ? ""
                                                  : " that is also made into other codes");
    qat_status st = tfl_integer_output(im, 0, shape, -1, &output);
    if (st)
        return st;
    qat_qtensor t = im->graph->tensors[output];
    t.scale = 1.0f;
    t.zero_point = 0;
    t.border = QI_BORDER_TRUNCATED;
    t.source_index = from;
    snprintf(t.name, sizeof t.name, "%s", im->model->tensors[from].name);
    st = tfl_append(im, &t, shape, &im->inputs[which]);
    qat_emit const e = tfl_emit(im, 1, &im->inputs[which], output);
    return st ? st : qat_emit_op(&e, "cast", QI_ROUND_NONE, 0, NULL, 0, im->err);
}

/** Make real numbers of codes: on a grid of scale 1 and zero point 0 they leave the model. */
static qat_status cast_to_real(tfl_importer *im, const tfl_shape *shape, int input)
{
    int const index = im->op->outputs[0];
    const qat_qtensor *x = &im->graph->tensors[input];
    tfl_value *v = &im->values[index];
    qat_qtensor t = {.type = x->type, .bits = x->bits, .scale = 1.0f, .source_index = index};
    int output = -1;
    if (v->known || im->model->tensors[index].data || x->type == QI_S64 || x->data)
        return tfl_refuse(im, "it makes float32 of %s, %s", x->name,
                          x->data || v->known ? "a constant, or what it writes has a value already"
                                              : "which is int64");
    snprintf(t.name, sizeof t.name, "%s", im->model->tensors[index].name);
    qat_status const st = tfl_append(im, &t, shape, &output);
    *v = (tfl_value){.known = !st, .shape = *shape, .tensor = output, .real_of = index};
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_op(&e, "cast", QI_ROUND_NONE, 0, NULL, 0, im->err);
}

/** The stored integers, whatever they mean. */
static qat_status import_cast(tfl_importer *im)
{
    tfl_shape shape;
    const int64_t *ints;
    int count, input = -1, output = -1;
    int const to = im->model->tensors[im->op->outputs[0]].type;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &shape);
    if (st)
        return st;
    if (tfl_tensor_of(im, 0)->type == TFL_FLOAT32)
        return truncate_input(im, &shape);
    if (tfl_is_known(im, 0) && (to == TFL_INT32 || to == TFL_INT64)) {
        st = tfl_ints(im, 0, "its input", &ints, &count);
        return st ? st : tfl_fold(im, 0, &shape, ints);
    }
    st = tfl_integers(im, 0, &input);
    if (!st && to == TFL_FLOAT32)
        return cast_to_real(im, &shape, input);
    if (!st)
        st = tfl_integer_output(im, 0, &shape, -1, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_op(&e, "cast", QI_ROUND_NONE, 0, NULL, 0, im->err);
}

const tfl_handler tfl_border_handlers[] = {
    {TFL_CAST, TFL_OPTIONS_CAST, 1, 1, 1, import_cast},
    {TFL_QUANTIZE, TFL_OPTIONS_QUANTIZE, 1, 1, 1, import_quantize},
    {TFL_DEQUANTIZE, TFL_OPTIONS_DEQUANTIZE, 1, 1, 1, import_dequantize},
    {0}};
