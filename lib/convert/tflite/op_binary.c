/**
 * Operators whose operands broadcast: ADD, SUB, MUL, DIV, SQUARED_DIFFERENCE,
 * MAXIMUM, MINIMUM, PRELU, comparisons, LOGICAL_AND, LOGICAL_OR, SELECT; and BATCH_MATMUL.
 */
#include "convert/tflite/import.h"

/** Do the first axes, which the engine has as one, broadcast like one? */
static bool fits_merged(const tfl_shape *a, const tfl_shape *y)
{
    int const more = y->rank - a->rank;
    bool same = true, ones = true;
    for (int d = 0; d <= y->rank - QI_MAX_RANK; d++) {
        int32_t const dim = d < more ? 1 : a->dims[d - more];
        same = same && dim == y->dims[d];
        ones = ones && dim == 1;
    }
    return same || ones;
}

qat_status tfl_broadcast(tfl_importer *im, const tfl_shape *a, const tfl_shape *b, tfl_shape *y)
{
    y->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= y->rank; i++) {
        int32_t const da = i <= a->rank ? a->dims[a->rank - i] : 1;
        int32_t const db = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (da != db && da != 1 && db != 1)
            return tfl_refuse(im, "dimensions %d and %d do not fit", (int)da, (int)db);
        y->dims[y->rank - i] = da > db ? da : db;
    }
    if (y->rank > QI_MAX_RANK && !(fits_merged(a, y) && fits_merged(b, y)))
        return tfl_refuse(im, "its shapes broadcast along more axes than the engine has");
    return QAT_OK;
}

/** Get the common shape of the operands i and i + 1. */
static qat_status common_shape(tfl_importer *im, int i, tfl_shape *y)
{
    tfl_shape a, b;
    qat_status st = tfl_input_shape(im, i, 0, TFL_MAX_RANK, &a);
    if (!st)
        st = tfl_input_shape(im, i + 1, 0, TFL_MAX_RANK, &b);
    return st ? st : tfl_broadcast(im, &a, &b, y);
}

static qat_status check_same_type(tfl_importer *im, const int inputs[2])
{
    const qat_qtensor *a = &im->graph->tensors[inputs[0]], *b = &im->graph->tensors[inputs[1]];
    return a->type == b->type && a->bits == b->bits
               ? QAT_OK
               : tfl_refuse(im, "its inputs have different types");
}

/** Get both inputs, and make the output with their common shape and type. */
static qat_status begin(tfl_importer *im, int inputs[2], int *output)
{
    tfl_shape y;
    qat_status st = common_shape(im, 0, &y);
    if (!st)
        st = tfl_inputs(im, 2, inputs);
    if (!st)
        st = check_same_type(im, inputs);
    return st ? st : tfl_output(im, 0, &y, inputs[0], output);
}

/** Do 16-bit codes only have to be shifted? right: by how much. */
static bool are_shifted(tfl_importer *im, const int inputs[2], int output, int right[2])
{
    const qat_qtensor *t = im->graph->tensors;
    int a, b, y;
    if (t[output].type != QI_S16 || im->op->options_type == TFL_NO_OPTIONS ||
        !fb_u8(&im->op->options, BINARY_POWER_OF_TWO, 1))
        return false;
    if (!qat_is_power_of_two(t[inputs[0]].scale, &a) ||
        !qat_is_power_of_two(t[inputs[1]].scale, &b) || !qat_is_power_of_two(t[output].scale, &y))
        return false;
    right[0] = y - a;
    right[1] = y - b;
    return true;
}

static qat_status import_add(tfl_importer *im)
{
    const char *op = im->op->code == TFL_SUB ? "sub" : "add";
    int inputs[2], right[2], output = -1;
    qat_status st = begin(im, inputs, &output);
    qat_emit e = tfl_emit(im, 2, inputs, output);
    if (!st)
        st = tfl_activation(im, BINARY_ACTIVATION, &e);
    if (st || !are_shifted(im, inputs, output, right))
        return st ? st : qat_emit_add(&e, op, im->err);
    if (right[0] < 0 || right[1] < 0 || right[0] > 31 || right[1] > 31 || (right[0] && right[1]))
        return tfl_refuse(im,
                          "its scales are powers of two, and its inputs would be shifted right "
                          "by %d and %d",
                          right[0], right[1]);
    return qat_emit_add_shifted(&e, op, right[0], right[1], im->err);
}

static qat_status import_mul(tfl_importer *im)
{
    int inputs[2], output = -1;
    qat_status st = begin(im, inputs, &output);
    qat_emit e = tfl_emit(im, 2, inputs, output);
    if (!st)
        st = tfl_activation(im, BINARY_ACTIVATION, &e);
    if (st || im->op->code == TFL_MUL)
        return st ? st : qat_emit_mul(&e, im->err);
    return qat_emit_div(&e, im->err);
}

/** The reference compares codes, not real values. */
static qat_status import_extreme(tfl_importer *im)
{
    int inputs[2], output = -1;
    qat_status const st = begin(im, inputs, &output);
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    return st ? st
              : qat_emit_op(&e, im->op->code == TFL_MAXIMUM ? "maximum" : "minimum", QI_ROUND_NONE,
                            0, NULL, 0, im->err);
}

static qat_status import_squared_difference(tfl_importer *im)
{
    int inputs[2], output = -1;
    qat_status st = begin(im, inputs, &output);
    if (!st && im->graph->tensors[output].type != QI_S8)
        st = tfl_refuse(im, "only int8 is supported");
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    return st ? st : qat_emit_squared_difference(&e, im->err);
}

/* ------------------------------------------------------------------ truth values */

/** Make an output of truth values. */
static qat_status truth_output(tfl_importer *im, const tfl_shape *shape, int *output)
{
    int const type = im->model->tensors[im->op->outputs[0]].type;
    if (type != TFL_BOOL)
        return tfl_refuse(im, "its output is %s instead of bool", tfl_type_name(type));
    return tfl_integer_output(im, 0, shape, -1, output);
}

/** The reference has no arithmetic for scales from 1 on. */
static qat_status check_compared(tfl_importer *im, const int inputs[2])
{
    for (int i = 0; i < 2; i++) {
        const qat_qtensor *t = &im->graph->tensors[inputs[i]];
        if (qi_type_bytes(t->type) > 1 || !(t->scale < 1.0f))
            return tfl_refuse(im,
                              "%s is %s with scale %g; only int8 and uint8 with scales below 1 "
                              "are supported",
                              t->name, tfl_type_name(tfl_tensor_of(im, i)->type), (double)t->scale);
    }
    return QAT_OK;
}

static qat_status import_comparison(tfl_importer *im)
{
    tfl_shape y;
    int inputs[2], output = -1;
    qi_comparison const kind = im->op->code == TFL_EQUAL           ? QI_EQUAL
                               : im->op->code == TFL_NOT_EQUAL     ? QI_NOT_EQUAL
                               : im->op->code == TFL_GREATER       ? QI_GREATER
                               : im->op->code == TFL_GREATER_EQUAL ? QI_GREATER_EQUAL
                               : im->op->code == TFL_LESS          ? QI_LESS
                                                                   : QI_LESS_EQUAL;
    qat_status st = common_shape(im, 0, &y);
    if (!st)
        st = tfl_inputs(im, 2, inputs);
    if (!st)
        st = check_same_type(im, inputs);
    if (!st)
        st = check_compared(im, inputs);
    if (!st)
        st = truth_output(im, &y, &output);
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    return st ? st : qat_emit_compare(&e, kind, im->err);
}

static qat_status truth_input(tfl_importer *im, int i, int *tensor)
{
    qat_status const st = tfl_integers(im, i, tensor);
    if (st || tfl_tensor_of(im, i)->type == TFL_BOOL)
        return st;
    return tfl_refuse(im, "input %d is %s instead of bool", i,
                      tfl_type_name(tfl_tensor_of(im, i)->type));
}

static qat_status import_logical(tfl_importer *im)
{
    tfl_shape y;
    int inputs[2], output = -1;
    qat_status st = common_shape(im, 0, &y);
    for (int i = 0; i < 2 && !st; i++)
        st = truth_input(im, i, &inputs[i]);
    if (!st)
        st = truth_output(im, &y, &output);
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    return st ? st
              : qat_emit_op(&e, im->op->code == TFL_LOGICAL_OR ? "maximum" : "minimum",
                            QI_ROUND_NONE, 0, NULL, 0, im->err);
}

/**
 * SELECT does not broadcast, but its condition may have one value, or one for each index of the
 * first axis: it then gets the shape that broadcasts.
 */
static qat_status fit_condition(tfl_importer *im, int *condition, tfl_shape *y)
{
    tfl_shape t, a, b;
    int const from = *condition;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &t);
    if (!st)
        st = tfl_input_shape(im, 1, 0, TFL_MAX_RANK, &a);
    if (!st)
        st = tfl_input_shape(im, 2, 0, TFL_MAX_RANK, &b);
    if (st)
        return st;
    *y = a;
    if (tfl_same_shape(&a, &b) && (tfl_same_shape(&t, &a) || (t.rank <= 1 && tfl_count(&t) == 1)))
        return QAT_OK;
    if (!tfl_same_shape(&a, &b) || t.rank != 1 || a.rank < 1 || a.rank > QI_MAX_RANK ||
        t.dims[0] != a.dims[0])
        return tfl_refuse(im, "its inputs have different shapes");
    for (t.rank = 1; t.rank < a.rank; t.rank++)
        t.dims[t.rank] = 1;
    st = tfl_between(im, "condition", &t, from, condition);
    qat_emit const e = tfl_emit(im, 1, &from, *condition);
    return st ? st : qat_emit_reshape(&e, im->err);
}

/** The reference moves codes, whatever they mean. */
static qat_status import_select(tfl_importer *im)
{
    tfl_shape condition, values = {0}, y;
    int inputs[3], output = -1;
    qat_status st = tfl_input_shape(im, 0, 0, TFL_MAX_RANK, &condition);
    if (!st)
        st = truth_input(im, 0, &inputs[0]);
    if (!st && im->op->code == TFL_SELECT)
        st = fit_condition(im, &inputs[0], &y);
    else if (!st)
        st = common_shape(im, 1, &values);
    if (!st && im->op->code == TFL_SELECT_V2)
        st = tfl_broadcast(im, &condition, &values, &y);
    for (int i = 1; i < 3 && !st; i++)
        st = tfl_integers(im, i, &inputs[i]);
    if (!st)
        st = check_same_type(im, inputs + 1);
    if (!st)
        st = tfl_integer_output(im, 0, &y, inputs[1], &output);
    qat_emit const e = tfl_emit(im, 3, inputs, output);
    return st ? st : qat_emit_op(&e, "select", QI_ROUND_NONE, 0, NULL, 0, im->err);
}

/* ------------------------------------------------------------------ PRELU */

/** Check that alpha broadcasts to x, never x to alpha. */
static qat_status check_alpha(tfl_importer *im)
{
    tfl_shape x, alpha;
    qat_status st = tfl_input_shape(im, 0, 0, 4, &x);
    if (!st)
        st = tfl_input_shape(im, 1, 0, x.rank, &alpha);
    for (int i = 1; !st && i <= alpha.rank; i++)
        if (alpha.dims[alpha.rank - i] > x.dims[x.rank - i])
            st = tfl_refuse(im, "its alpha has a dimension of %d, but its input has %d",
                            (int)alpha.dims[alpha.rank - i], (int)x.dims[x.rank - i]);
    return st;
}

static qat_status import_prelu(tfl_importer *im)
{
    int inputs[2], output = -1;
    qat_status st = check_alpha(im);
    if (!st)
        st = begin(im, inputs, &output);
    if (!st && im->graph->tensors[output].type == QI_S16)
        st = tfl_refuse(im, "only int8 and uint8 are supported"); /* the reference reads bytes */
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    return st ? st : qat_emit_prelu(&e, im->err);
}

/* ------------------------------------------------------------------ BATCH_MATMUL */

/** The shape of a product of two matrices with batches before them. */
static qat_status product_shape(tfl_importer *im, const tfl_shape *a, bool transpose_a,
                                const tfl_shape *b, bool transpose_b, tfl_shape *y)
{
    int const last_a = a->rank - 1, last_b = b->rank - 1;
    tfl_shape of_a = *a, of_b = *b; /* the batches */
    of_a.rank -= 2;
    of_b.rank -= 2;
    int32_t const inner_a = a->dims[last_a - transpose_a];
    int32_t const inner_b = b->dims[last_b - !transpose_b];
    if (inner_a != inner_b)
        return tfl_refuse(im, "it sums %d and %d products", (int)inner_a, (int)inner_b);
    qat_status const st = tfl_broadcast(im, &of_a, &of_b, y);
    y->dims[y->rank++] = a->dims[last_a - !transpose_a];
    y->dims[y->rank++] = b->dims[last_b - transpose_b];
    if (!st && y->rank > QI_MAX_RANK && !(fits_merged(a, y) && fits_merged(b, y)))
        return tfl_refuse(im, "its batches broadcast along more axes than the engine has");
    return st;
}

static qat_status import_batch_matmul(tfl_importer *im)
{
    tfl_shape a, b, y;
    int inputs[2], output = -1;
    bool const transpose_a = fb_u8(&im->op->options, BATCH_MATMUL_ADJ_X, 0) != 0;
    bool const transpose_b = fb_u8(&im->op->options, BATCH_MATMUL_ADJ_Y, 0) != 0;
    qat_status st = tfl_input_shape(im, 0, 2, TFL_MAX_RANK, &a);
    if (!st)
        st = tfl_input_shape(im, 1, 2, TFL_MAX_RANK, &b);
    if (!st)
        st = tfl_inputs(im, 2, inputs);
    if (!st)
        st = product_shape(im, &a, transpose_a, &b, transpose_b, &y);
    if (!st && im->graph->tensors[inputs[0]].type != im->graph->tensors[inputs[1]].type)
        st = tfl_refuse(im, "its inputs have different types");
    if (!st)
        st = tfl_output(im, 0, &y, inputs[0], &output);
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    return st ? st : qat_emit_batch_matmul(&e, transpose_a, transpose_b, im->err);
}

const tfl_handler tfl_binary_handlers[] = {
    {TFL_ADD, TFL_OPTIONS_ADD, 2, 2, 1, import_add},
    {TFL_SUB, TFL_OPTIONS_SUB, 2, 2, 1, import_add},
    {TFL_MUL, TFL_OPTIONS_MUL, 2, 2, 1, import_mul},
    {TFL_DIV, TFL_OPTIONS_DIV, 2, 2, 1, import_mul},
    {TFL_SQUARED_DIFFERENCE, TFL_OPTIONS_SQUARED_DIFFERENCE, 2, 2, 1, import_squared_difference},
    {TFL_EQUAL, TFL_OPTIONS_EQUAL, 2, 2, 1, import_comparison},
    {TFL_NOT_EQUAL, TFL_OPTIONS_NOT_EQUAL, 2, 2, 1, import_comparison},
    {TFL_GREATER, TFL_OPTIONS_GREATER, 2, 2, 1, import_comparison},
    {TFL_GREATER_EQUAL, TFL_OPTIONS_GREATER_EQUAL, 2, 2, 1, import_comparison},
    {TFL_LESS, TFL_OPTIONS_LESS, 2, 2, 1, import_comparison},
    {TFL_LESS_EQUAL, TFL_OPTIONS_LESS_EQUAL, 2, 2, 1, import_comparison},
    {TFL_LOGICAL_AND, TFL_OPTIONS_LOGICAL_AND, 2, 2, 1, import_logical},
    {TFL_LOGICAL_OR, TFL_OPTIONS_LOGICAL_OR, 2, 2, 1, import_logical},
    {TFL_SELECT, TFL_OPTIONS_SELECT, 3, 3, 1, import_select},
    {TFL_SELECT_V2, TFL_OPTIONS_SELECT_V2, 3, 3, 1, import_select},
    {TFL_MAXIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, import_extreme},
    {TFL_MINIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, import_extreme},
    {TFL_PRELU, TFL_NO_OPTIONS, 2, 2, 1, import_prelu},
    {TFL_BATCH_MATMUL, TFL_OPTIONS_BATCH_MATMUL, 2, 2, 1, import_batch_matmul},
    {0}};
