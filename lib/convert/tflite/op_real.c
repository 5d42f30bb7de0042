/**
 * Operators of float32 between DEQUANTIZE and QUANTIZE that compute one number from one: where all
 * of it comes from one 8-bit tensor and constants of one value, it is a function of one code, which
 * is known for all 256 at import. QUANTIZE makes a table of it.
 *
 *     q -> DEQUANTIZE -> SQUARE -> MUL by 0.5 -> QUANTIZE -> y
 */
#include "convert/tflite/import.h"

#include <math.h>
#include <string.h>

/**
 * Operators that move numbers, or compare them, do the same with the codes that DEQUANTIZE made
 * them of.
 */
bool tfl_moves(int code)
{
    static const int codes[] = {TFL_RESHAPE,
                                TFL_SQUEEZE,
                                TFL_EXPAND_DIMS,
                                TFL_TRANSPOSE,
                                TFL_STRIDED_SLICE,
                                TFL_SLICE,
                                TFL_SPLIT,
                                TFL_SPLIT_V,
                                TFL_UNPACK,
                                TFL_PACK,
                                TFL_CONCATENATION,
                                TFL_GATHER,
                                TFL_TILE,
                                TFL_REVERSE_V2,
                                TFL_PAD,
                                TFL_MIRROR_PAD,
                                TFL_BROADCAST_TO,
                                TFL_DEPTH_TO_SPACE,
                                TFL_SPACE_TO_DEPTH,
                                TFL_RESIZE_NEAREST_NEIGHBOR,
                                TFL_ARG_MAX,
                                TFL_ARG_MIN,
                                TFL_REDUCE_MAX,
                                TFL_REDUCE_MIN};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

bool tfl_is_real(const tfl_importer *im)
{
    for (int i = 0; i < im->op->n_inputs; i++)
        if (tfl_has_input(im, i) && tfl_value_of(im, i)->real_of >= 0)
            return true;
    return false;
}

/** A constant, or a function of the codes of tensor `of` of the file. */
struct operand {
    int of; /* -1: a constant */
    float values[TFL_CODES];
};

void tfl_reals(const tfl_importer *im, int index, float reals[TFL_CODES])
{
    const tfl_value *v = &im->values[index];
    const qat_qtensor *x = &im->graph->tensors[im->values[v->real_of].tensor];
    for (int i = 0; i < TFL_CODES; i++)
        reals[i] =
            v->reals ? v->reals[i] : x->scale * (float)(qat_code_at(x->type, i) - x->zero_point);
}

/** Input i of an operator; its shape becomes *shape, if it is not a constant. */
static qat_status read_operand(tfl_importer *im, int i, struct operand *o, tfl_shape *shape)
{
    const tfl_tensor *t = tfl_tensor_of(im, i);
    const tfl_value *v = tfl_value_of(im, i);
    float constant;
    o->of = v ? v->real_of : -1;
    if (v && v->known && o->of >= 0 &&
        qi_type_bytes(im->graph->tensors[im->values[o->of].tensor].type) == 1) {
        tfl_reals(im, im->op->inputs[i], o->values);
        *shape = v->shape;
        return QAT_OK;
    }
    if (!v || o->of >= 0 || t->type != TFL_FLOAT32 || !t->data || t->data_bytes != sizeof constant)
        return tfl_refuse(im, "tensor %d (%s) is float32, and not a function of one 8-bit code",
                          v ? im->op->inputs[i] : -1, v ? t->name : "none");
    memcpy(&constant, t->data, sizeof constant);
    for (int k = 0; k < TFL_CODES; k++)
        o->values[k] = constant;
    return QAT_OK;
}

static float limit(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/** As the reference has it: beyond the cutoffs another formula. */
static float logistic(float x)
{
    return x > 16.619047164916992188f ? 1.0f : x < -9.0f ? expf(x) : 1.0f / (1.0f + expf(-x));
}

static float of_one(int code, float x)
{
    return code == TFL_SQUARE         ? x * x
           : code == TFL_SQRT         ? sqrtf(x)
           : code == TFL_RSQRT        ? 1.0f / sqrtf(x)
           : code == TFL_ABS          ? fabsf(x)
           : code == TFL_NEG          ? -x
           : code == TFL_EXP          ? expf(x)
           : code == TFL_LOG          ? logf(x)
           : code == TFL_SIN          ? sinf(x)
           : code == TFL_COS          ? cosf(x)
           : code == TFL_FLOOR        ? floorf(x)
           : code == TFL_CEIL         ? ceilf(x)
           : code == TFL_TANH         ? tanhf(x)
           : code == TFL_LOGISTIC     ? logistic(x)
           : code == TFL_RELU         ? limit(x, 0.0f, INFINITY)
           : code == TFL_RELU_N1_TO_1 ? limit(x, -1.0f, 1.0f)
                                      : limit(x, 0.0f, 6.0f); /* RELU6 */
}

static float of_two(int code, float a, float b)
{
    return code == TFL_ADD                  ? a + b
           : code == TFL_SUB                ? a - b
           : code == TFL_MUL                ? a * b
           : code == TFL_DIV                ? a / b
           : code == TFL_MAXIMUM            ? (a > b ? a : b)
           : code == TFL_MINIMUM            ? (a < b ? a : b)
           : code == TFL_SQUARED_DIFFERENCE ? (a - b) * (a - b)
                                            : powf(a, b);
}

static qat_status import_real(tfl_importer *im)
{
    struct operand a, b = {.of = -1};
    int const index = im->op->outputs[0], code = im->op->code;
    bool const has_activation =
        code == TFL_ADD || code == TFL_SUB || code == TFL_MUL || code == TFL_DIV;
    tfl_shape shape = {0};
    qat_emit e = {.act_min = -INFINITY, .act_max = INFINITY};
    qat_status st = read_operand(im, 0, &a, &shape);
    if (!st && im->op->n_inputs == 2)
        st = read_operand(im, 1, &b, &shape);
    if (!st && has_activation)
        st = tfl_activation(im, BINARY_ACTIVATION, &e);
    if (st)
        return st;
    if (im->values[index].known || im->model->tensors[index].data)
        return tfl_refuse(im, "its output already has a value");
    if ((a.of < 0) == (b.of < 0) &&
        (a.of < 0 || im->values[a.of].tensor != im->values[b.of].tensor))
        return tfl_refuse(im, "it computes with the float32 numbers of two tensors");
    float *reals = qat_arena_array(&im->arena, TFL_CODES, sizeof *reals);
    if (!reals)
        return qat_out_of_memory(im->err, NULL);
    for (int i = 0; i < TFL_CODES; i++) {
        float const x = a.values[i];
        float const y = im->op->n_inputs == 2 ? of_two(code, x, b.values[i]) : of_one(code, x);
        reals[i] = limit(y, e.act_min, e.act_max);
    }
    im->values[index] = (tfl_value){.known = true,
                                    .shape = shape,
                                    .tensor = -1,
                                    .real_of = a.of >= 0 ? a.of : b.of,
                                    .reals = reals};
    return QAT_OK;
}

static const tfl_handler reals[] = {
    {TFL_SQUARE, TFL_OPTIONS_SQUARE, 1, 1, 1, import_real},
    {TFL_SQRT, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_RSQRT, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_ABS, TFL_OPTIONS_ABS, 1, 1, 1, import_real},
    {TFL_NEG, TFL_OPTIONS_NEG, 1, 1, 1, import_real},
    {TFL_EXP, TFL_OPTIONS_EXP, 1, 1, 1, import_real},
    {TFL_LOG, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_SIN, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_COS, TFL_OPTIONS_COS, 1, 1, 1, import_real},
    {TFL_FLOOR, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_CEIL, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_TANH, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_LOGISTIC, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_RELU, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_RELU6, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_RELU_N1_TO_1, TFL_NO_OPTIONS, 1, 1, 1, import_real},
    {TFL_ADD, TFL_OPTIONS_ADD, 2, 2, 1, import_real},
    {TFL_SUB, TFL_OPTIONS_SUB, 2, 2, 1, import_real},
    {TFL_MUL, TFL_OPTIONS_MUL, 2, 2, 1, import_real},
    {TFL_DIV, TFL_OPTIONS_DIV, 2, 2, 1, import_real},
    {TFL_MAXIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, import_real},
    {TFL_MINIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, import_real},
    {TFL_SQUARED_DIFFERENCE, TFL_OPTIONS_SQUARED_DIFFERENCE, 2, 2, 1, import_real},
    {TFL_POW, TFL_OPTIONS_POW, 2, 2, 1, import_real},
    {0}};

const tfl_handler *tfl_real(const tfl_importer *im)
{
    const tfl_op *op = im->op;
    if (op->n_outputs < 1 || im->model->tensors[op->outputs[0]].type != TFL_FLOAT32)
        return NULL;
    for (const tfl_handler *h = reals; h->run; h++)
        if (h->code == op->code)
            return h;
    return NULL;
}
