/**
 * batch_matmul: y[.., m, n] = the sum over k of a[.., m, k] b[.., k, n], of which either may be a
 * constant. The dims before the last two broadcast. Each matrix may be stored transposed.
 *
 *   acc = sum of (a - Z_a)(b - Z_b)                  int32, or int64 of 16-bit codes
 *   y   = clamp(requantize(acc, mult, shift) + Z_y)  TWICE; of 16-bit codes LONG
 */
#include "infer/model/op.h"

enum { TRANSPOSE_A, TRANSPOSE_B, MULT, SHIFT, CLAMP_LO, CLAMP_HI, PARAMS };
enum { ROW = QI_MAX_RANK - 2, COLUMN };

/** The rows and columns of an operand as it is multiplied, and its batches, of rank 4. */
struct matrix {
    int32_t batch[ROW], rows, columns;
    size_t row_step, column_step, batch_step[ROW];
};

static struct matrix matrix_of(const qi_tensor *t, int is_transposed)
{
    struct matrix m;
    size_t step[QI_MAX_RANK];
    int const row = is_transposed ? COLUMN : ROW, column = is_transposed ? ROW : COLUMN;
    qi_broadcast_strides(t, step);
    for (int d = 0; d < ROW; d++) {
        m.batch[d] = qi_aligned_dim(t, d);
        m.batch_step[d] = step[d];
    }
    m.rows = qi_aligned_dim(t, row);
    m.columns = qi_aligned_dim(t, column);
    m.row_step = step[row];
    m.column_step = step[column];
    return m;
}

static void rule_batches(qi_checker *c, const struct matrix *a, const struct matrix *b,
                         const struct matrix *y)
{
    for (int d = 0; d < ROW; d++) {
        int32_t const da = a->batch[d], db = b->batch[d];
        qi_rule(c, da == db || da == 1 || db == 1, QI_ERR_SHAPE, "batches of the inputs", da, db);
        qi_rule(c, y->batch[d] == (da == 1 ? db : da), QI_ERR_SHAPE, "batches of the output",
                y->batch[d], da == 1 ? db : da);
    }
}

static qi_status check(const qi_model *model, const qi_node *node, int32_t index, qi_error *err)
{
    enum { MOST = 33025, MOST_WIDE = (1 << 17) - 1 }; /* 255^2 and 2^30 times these fit */
    qi_checker c = {model, node, index, err, QI_OK};
    int const is_wide = qi_is_wide(qi_output(model, node));
    if (!qi_rule_counts(&c, 2, 2, PARAMS, is_wide ? QI_ROUND_LONG : QI_ROUND_TWICE) ||
        !qi_rule_codes_or_wide(&c, 0, 1))
        return c.status;
    const int32_t *p = node->params;
    qi_rule_range(&c, "transpose_a", p[TRANSPOSE_A], 0, 1);
    qi_rule_range(&c, "transpose_b", p[TRANSPOSE_B], 0, 1);
    struct matrix const a = matrix_of(qi_input(model, node, 0), p[TRANSPOSE_A]);
    struct matrix const b = matrix_of(qi_input(model, node, 1), p[TRANSPOSE_B]);
    struct matrix const y = matrix_of(qi_output(model, node), 0);
    rule_batches(&c, &a, &b, &y);
    qi_rule(&c, a.columns == b.rows, QI_ERR_SHAPE, "columns of a", a.columns, b.rows);
    qi_rule(&c, a.columns <= (is_wide ? MOST_WIDE : MOST), QI_ERR_OVERFLOW, "products of a sum",
            a.columns, is_wide ? MOST_WIDE : MOST);
    qi_rule(&c, y.rows == a.rows, QI_ERR_SHAPE, "rows of the output", y.rows, a.rows);
    qi_rule(&c, y.columns == b.columns, QI_ERR_SHAPE, "columns of the output", y.columns,
            b.columns);
    qi_rule_multiplier(&c, MULT);
    if (is_wide)
        qi_rule_range(&c, "shift of a long sum", p[SHIFT], -31, 7);
    qi_rule_clamp(&c, CLAMP_LO);
    return c.status;
}

/** q - Z of value i. */
static inline int32_t difference_at(const void *codes, size_t i, qi_codes c)
{
    return c.is_wide ? ((const int16_t *)codes)[i]
                     : (((const uint8_t *)codes)[i] ^ c.flip) - c.offset;
}

/** What is the same for all sums of a call. */
struct product {
    struct matrix a, b;
    const void *a_codes, *b_codes;
    qi_codes of_a, of_b;
};

/** The sum for one value of y; a, b: the values where its row and its column begin. */
static int64_t sum_of(const struct product *v, size_t a, size_t b)
{
    int64_t sum = 0;
    for (int32_t k = 0; k < v->a.columns; k++)
        sum += (int64_t)difference_at(v->a_codes, a + (size_t)k * v->a.column_step, v->of_a) *
               difference_at(v->b_codes, b + (size_t)k * v->b.row_step, v->of_b);
    return sum;
}

static int32_t code_of(const qi_call *call, const qi_tensor *y, int64_t sum)
{
    const int32_t *p = call->node->params;
    int32_t const value = qi_is_wide(y) ? qi_requantize_i64(sum, p[MULT], p[SHIFT])
                                        : qi_requantize((int32_t)sum, p[MULT], p[SHIFT]);
    return qi_clamp(qi_saturate_i64((int64_t)value + y->zero_point), p[CLAMP_LO], p[CLAMP_HI]);
}

/** One product of two matrices, whose values begin at a and b; y's at `to`. */
static void run_product(const qi_call *call, const struct product *v, size_t a, size_t b, size_t to)
{
    const qi_tensor *y = qi_output(call->model, call->node);
    for (int32_t i = 0; i < v->a.rows; i++)
        for (int32_t j = 0; j < v->b.columns; j++, to++)
            qi_store_value(y->type, call->out[0], to,
                           code_of(call, y,
                                   sum_of(v, a + (size_t)i * v->a.row_step,
                                          b + (size_t)j * v->b.column_step)));
}

static void run(const qi_call *call)
{
    const qi_tensor *a = qi_input(call->model, call->node, 0);
    const qi_tensor *b = qi_input(call->model, call->node, 1);
    const int32_t *p = call->node->params;
    struct product const v = {matrix_of(a, p[TRANSPOSE_A]),
                              matrix_of(b, p[TRANSPOSE_B]),
                              call->in[0],
                              call->in[1],
                              qi_codes_of(a),
                              qi_codes_of(b)};
    struct matrix const y = matrix_of(qi_output(call->model, call->node), 0);
    size_t const each = (size_t)y.rows * (size_t)y.columns;
    for (size_t i = 0, n = 0; i < (size_t)y.batch[0]; i++)
        for (size_t j = 0; j < (size_t)y.batch[1]; j++, n++)
            run_product(call, &v, i * v.a.batch_step[0] + j * v.a.batch_step[1],
                        i * v.b.batch_step[0] + j * v.b.batch_step[1], n * each);
}

const qi_kernel qi_kernel_batch_matmul = {
    .name = "batch_matmul", .check = check, .run = run, .products = QI_PRODUCTS_MATRIX};
