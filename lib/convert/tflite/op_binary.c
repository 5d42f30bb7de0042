/** Operators with two operands that broadcast: ADD, SUB, MUL, MAXIMUM, MINIMUM, PRELU. */
#include "convert/tflite/import.h"

/** NumPy's rule: shapes aligned at their ends, equal dimensions or a 1 on one side. */
static qat_status broadcast(tfl_importer *im, const tfl_shape *a, const tfl_shape *b, tfl_shape *y)
{
    y->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= y->rank; i++) {
        int32_t const da = i <= a->rank ? a->dims[a->rank - i] : 1;
        int32_t const db = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (da != db && da != 1 && db != 1)
            return tfl_refuse(im, "dimensions %d and %d do not fit", (int)da, (int)db);
        y->dims[y->rank - i] = da > db ? da : db;
    }
    return QAT_OK;
}

/** Get both inputs, and make the output with their common shape and type. */
static qat_status begin(tfl_importer *im, int inputs[2], int *output)
{
    tfl_shape a, b, y;
    qat_status st = tfl_input_shape(im, 0, 0, 4, &a);
    if (!st)
        st = tfl_input_shape(im, 1, 0, 4, &b);
    if (!st)
        st = tfl_inputs(im, 2, inputs);
    if (!st)
        st = broadcast(im, &a, &b, &y);
    if (!st && im->graph->tensors[inputs[0]].type != im->graph->tensors[inputs[1]].type)
        st = tfl_refuse(im, "its inputs have different types");
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
    return st ? st : qat_emit_mul(&e, im->err);
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
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    return st ? st : qat_emit_prelu(&e, im->err);
}

/** The shape of a product of two matrices with batches before them. */
static qat_status product_shape(tfl_importer *im, const tfl_shape *a, bool transpose_a,
                                const tfl_shape *b, bool transpose_b, tfl_shape *y)
{
    int const last_a = a->rank - 1, last_b = b->rank - 1;
    tfl_shape const of_a = {a->rank - 2, {a->dims[0], a->dims[1]}};
    tfl_shape const of_b = {b->rank - 2, {b->dims[0], b->dims[1]}};
    int32_t const inner_a = a->dims[last_a - transpose_a];
    int32_t const inner_b = b->dims[last_b - !transpose_b];
    if (inner_a != inner_b)
        return tfl_refuse(im, "it sums %d and %d products", (int)inner_a, (int)inner_b);
    qat_status const st = broadcast(im, &of_a, &of_b, y);
    y->dims[y->rank++] = a->dims[last_a - !transpose_a];
    y->dims[y->rank++] = b->dims[last_b - transpose_b];
    return st;
}

static qat_status import_batch_matmul(tfl_importer *im)
{
    tfl_shape a, b, y;
    int inputs[2], output = -1;
    bool const transpose_a = fb_u8(&im->op->options, BATCH_MATMUL_ADJ_X, 0) != 0;
    bool const transpose_b = fb_u8(&im->op->options, BATCH_MATMUL_ADJ_Y, 0) != 0;
    qat_status st = tfl_input_shape(im, 0, 2, 4, &a);
    if (!st)
        st = tfl_input_shape(im, 1, 2, 4, &b);
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
    {TFL_MAXIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, import_extreme},
    {TFL_MINIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 2, 2, 1, import_extreme},
    {TFL_PRELU, TFL_NO_OPTIONS, 2, 2, 1, import_prelu},
    {TFL_BATCH_MATMUL, TFL_OPTIONS_BATCH_MATMUL, 2, 2, 1, import_batch_matmul},
    {0}};
