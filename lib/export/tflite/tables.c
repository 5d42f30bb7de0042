/**
 * Ops `table`. TensorFlow Lite fills tables for some functions of one code: if its table is ours,
 * the function is written. Any other table is read by GATHER: the codes become int32 positions,
 *
 *     x -> CAST -> ADD the first position of each channel's table -> GATHER of the table -> y
 *
 * which gives the same codes in every kernel. TensorFlow Lite Micro has no CAST from uint8: where x
 * is uint8 and y is int8, a QUANTIZE first subtracts 128. The model's table from pixels to codes is
 * not needed where every pixel is its own code: uint8 pixels are then the codes; for int8, QUANTIZE
 * subtracts 128.
 */
#include "export/tflite/out.h"

#include "export/pixels.h"

#include <math.h>
#include <string.h>

enum { ENTRIES = 256 };

/* ------------------------------------------------------------------ the model's pixels */

/** Does every table give code - first for each uint8 code? */
static bool is_identity(const qat_qtensor *table, int first)
{
    const uint8_t *codes = table->data;
    if (table->type == QI_S16)
        return false;
    for (size_t i = 0; i < qat_qtensor_bytes(table); i++)
        if (codes[i] != (uint8_t)(i % ENTRIES - (size_t)first))
            return false;
    return true;
}

void tfo_find_pixels_table(tfo *o)
{
    const qat_qgraph *g = o->graph;
    int const found = qat_pixels_table(o->model);
    if (found < 0)
        return;
    const qat_qop *op = &g->ops[found];
    int const first = g->tensors[op->outputs[0]].type == QI_S8 ? ENTRIES / 2 : 0;
    if (o->float_io || is_identity(&g->tensors[op->inputs[1]], first))
        o->pixels_table = found;
}

/* ------------------------------------------------------------------ functions */

/** Is the op's table the one that TensorFlow Lite would fill? */
static bool is_filled_by(tfo *o,
                         qat_status (*emit)(const qat_emit *e, float number, qat_error *err),
                         float number)
{
    qat_qgraph *g = qat_qgraph_new();
    qat_error ignored = {0};
    bool same = false;
    if (!g) {
        o->file.failed = true;
        return false;
    }
    int const x = qat_qgraph_tensor(g, tfo_input(o, 0), &ignored);
    qat_qtensor const all = tfo_with_all_bits(tfo_output(o));
    int const y = qat_qgraph_tensor(g, &all, &ignored);
    qat_emit const e = {.graph = g,
                        .profile = QAT_PROFILE_TFLITE,
                        .name = "table",
                        .n_inputs = 1,
                        .inputs = &x,
                        .output = y,
                        .act_min = -INFINITY,
                        .act_max = INFINITY};
    if (x >= 0 && y >= 0 && !emit(&e, number, &ignored) && !strcmp(g->ops[0].op, "table")) {
        const qat_qtensor *its = &g->tensors[g->ops[0].inputs[1]], *ours = tfo_input(o, 1);
        same = qat_qtensor_bytes(its) == qat_qtensor_bytes(ours) &&
               !memcmp(its->data, ours->data, qat_qtensor_bytes(ours));
    }
    o->file.failed = o->file.failed || ignored.status == QAT_ERR_NOMEM;
    qat_qgraph_free(g);
    return same;
}

static qat_status emit_logistic(const qat_emit *e, float number, qat_error *err)
{
    (void)number;
    return qat_emit_sigmoid(e, "logistic", err);
}

static qat_status emit_tanh(const qat_emit *e, float number, qat_error *err)
{
    (void)number;
    return qat_emit_sigmoid(e, "tanh", err);
}

static qat_status emit_hard_swish(const qat_emit *e, float number, qat_error *err)
{
    (void)number;
    return qat_emit_hard_swish(e, err);
}

static float real_exp(float x)
{
    return expf(x);
}

static qat_status emit_exp(const qat_emit *e, float number, qat_error *err)
{
    (void)number;
    return qat_emit_real_table(e, real_exp, err);
}

static qat_status emit_leaky_relu(const qat_emit *e, float number, qat_error *err)
{
    return qat_emit_leaky_relu(e, number, err);
}

/** A function's fixed scale, or 0. */
static const struct function {
    int code;
    float scale;
    qat_status (*emit)(const qat_emit *e, float number, qat_error *err);
} functions[] = {{TFL_LOGISTIC, 1.0f / 256, emit_logistic},
                 {TFL_TANH, 1.0f / 128, emit_tanh},
                 {TFL_HARD_SWISH, 0, emit_hard_swish},
                 {TFL_EXP, 0, emit_exp}};

/** The slope that the lowest code has, with `digits` digits; 0: below zero nothing is left. */
static float slope(const tfo *o, int digits)
{
    const qat_qtensor *x = tfo_input(o, 0), *y = tfo_output(o);
    const uint8_t *codes = tfo_input(o, 1)->data;
    double const real = (double)y->scale * (qat_qtensor_code(y, codes[0]) - y->zero_point);
    double const at = (double)x->scale * (qat_code_at(x->type, 0) - x->zero_point);
    if (at >= 0 || real >= 0)
        return 0;
    double const unit = pow(10, floor(log10(real / at)) - digits + 1);
    return (float)(round(real / at / unit) * unit);
}

/** The operator with this table; -1: none. alpha: of LEAKY_RELU */
static int function_of(tfo *o, float *alpha)
{
    const qat_qtensor *y = tfo_output(o);
    if (tfo_input(o, 1)->rank > 1 || tfo_input(o, 0)->type != y->type)
        return -1;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if ((!functions[i].scale || functions[i].scale == y->scale) &&
            is_filled_by(o, functions[i].emit, 0))
            return functions[i].code;
    for (int digits = 1; digits <= 3; digits++) {
        *alpha = slope(o, digits);
        if (*alpha > 0 && is_filled_by(o, emit_leaky_relu, *alpha))
            return TFL_LEAKY_RELU;
    }
    return -1;
}

/* ------------------------------------------------------------------ GATHER */

/** An int32 tensor of x's shape. */
static int add_positions(tfo *o, const char *part)
{
    qat_qtensor t = *tfo_input(o, 0);
    t.type = QI_S32;
    t.scale = 1.0f;
    return tfo_between(o, &t, part);
}

/** The codes of x as int8, if y is int8. */
static int signed_codes(tfo *o)
{
    qat_qtensor t = *tfo_input(o, 0);
    int const x = tfo_input_index(o, 0);
    if (t.type != QI_U8 || tfo_output(o)->type != QI_S8)
        return x;
    t.type = QI_S8;
    t.zero_point -= ENTRIES / 2;
    int const y = tfo_between(o, &t, "signed");
    tfo_append(o, TFL_QUANTIZE, 1, &x, y);
    return y;
}

/** The first position of each channel's table; int8 codes count from the middle. */
static int add_offsets(tfo *o, int rows, bool is_signed)
{
    int32_t *offsets = qat_arena_array(&o->file.arena, (size_t)rows, sizeof *offsets);
    if (!offsets) {
        o->file.failed = true;
        return 0;
    }
    for (int c = 0; c < rows; c++)
        offsets[c] = c * ENTRIES + (is_signed ? ENTRIES / 2 : 0);
    return tfo_ints(o, "offsets", rows, offsets);
}

static qat_status write_gather(tfo *o, int code)
{
    const qat_qtensor *table = tfo_input(o, 1);
    int const rows = table->rank > 1 ? table->dims[0] : 1, from = signed_codes(o);
    bool const is_signed = o->file.tensors[from].type == TFL_INT8;
    int positions = add_positions(o, "positions");
    qat_qtensor flat = *table;
    flat.rank = 1;
    flat.dims[0] = rows * ENTRIES;
    tfo_tensor d = tfo_describe(&flat);
    d.buffer = tfo_add_buffer(&o->file, table->data, qat_qtensor_bytes(table));
    int const entries = tfo_add_tensor(&o->file, table->name, &d);
    tfo_operator *cast = tfo_append(o, TFL_CAST, 1, &from, positions);
    tfo_option_int(cast, CAST_FROM, o->file.tensors[from].type);
    tfo_option_int(cast, CAST_TO, TFL_INT32);
    if (rows > 1 || is_signed) {
        int const sum = add_positions(o, "entries");
        tfo_append(o, TFL_ADD, 2, (const int[]){positions, add_offsets(o, rows, is_signed)}, sum);
        positions = sum;
    }
    tfo_append(o, code, 2, (const int[]){entries, positions}, tfo_output_index(o));
    return QAT_OK;
}

static qat_status write_not(tfo *o)
{
    const uint8_t *answers = tfo_input(o, 1)->data;
    int const x = tfo_input_index(o, 0);
    if (answers[0] != 1 || answers[1] != 0)
        return tfo_refuse(o, "a table of truth values");
    tfo_append(o, TFL_LOGICAL_NOT, 1, &x, tfo_output_index(o));
    return QAT_OK;
}

qat_status tfo_table(tfo *o, int code)
{
    int const x = tfo_input_index(o, 0);
    float alpha = 0;
    if (tfo_is_truth(tfo_input(o, 0)) && tfo_is_truth(tfo_output(o)))
        return write_not(o);
    if (o->op - o->graph->ops == o->pixels_table) {
        if (x != tfo_output_index(o))
            tfo_append(o, TFL_QUANTIZE, 1, &x, tfo_output_index(o));
        tfo_writes(o, -1);
        return QAT_OK;
    }
    int const function = function_of(o, &alpha);
    if (function < 0 && tfo_input(o, 0)->type == QI_S16)
        return tfo_refuse(o, "a table of 16-bit codes");
    if (function < 0)
        return write_gather(o, code);
    tfo_operator *to = tfo_append(o, function, 1, &x, tfo_output_index(o));
    if (function == TFL_LEAKY_RELU)
        tfo_option_float(to, LEAKY_RELU_ALPHA, alpha);
    return QAT_OK;
}
