/**
 * batch_matmul: y[.., m, n] = the sum over k of a[.., m, k] b[.., k, n], of which either may be a
 * constant. The dims before the last two broadcast. Each matrix may be stored transposed.
 *
 *   acc = sum of (a - Z_a)(b - Z_b)                  int32, or int64 of 16-bit codes
 *   y   = clamp(requantize(acc, mult, shift) + Z_y)  TWICE or EVEN; of 16-bit codes LONG
 */
#include "infer/kernels/batch_matmul.h"
#include "infer/model/code.h"
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
    int32_t const rounding = is_wide ? QI_ROUND_LONG : QI_ROUND_TWICE;
    if (!qi_rule_counts(&c, 2, 2, PARAMS,
                        qi_rounding_or(model, node, rounding, 1U << QI_ROUND_EVEN)) ||
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

static qk_matrix operand(const struct matrix *m, const qi_tensor *t)
{
    qk_matrix k = {.rows = m->rows,
                   .columns = m->columns,
                   .row_step = (int32_t)m->row_step,
                   .column_step = (int32_t)m->column_step,
                   .codes = qi_codes_of(t)};
    for (int d = 0; d < ROW; d++)
        k.batch_step[d] = (int32_t)m->batch_step[d];
    return k;
}

static void fill(const qi_call *call, void *params)
{
    const qi_tensor *a = qi_input(call->model, call->node, 0);
    const qi_tensor *b = qi_input(call->model, call->node, 1);
    const qi_tensor *y = qi_output(call->model, call->node);
    const int32_t *p = call->node->params;
    struct matrix const of_a = matrix_of(a, p[TRANSPOSE_A]), of_b = matrix_of(b, p[TRANSPOSE_B]);
    struct matrix const of_y = matrix_of(y, 0);
    *(qk_batch_matmul *)params = (qk_batch_matmul){.batch = {of_y.batch[0], of_y.batch[1]},
                                                   .a = operand(&of_a, a),
                                                   .b = operand(&of_b, b),
                                                   .y_type = y->type,
                                                   .mult = p[MULT],
                                                   .shift = p[SHIFT],
                                                   .rounding = call->node->rounding,
                                                   .zero_point = y->zero_point,
                                                   .lo = p[CLAMP_LO],
                                                   .hi = p[CLAMP_HI]};
}

static void run(const qi_call *call)
{
    qk_batch_matmul p;
    fill(call, &p);
    qk_batch_matmul_run(&p, call->in[0], call->in[1], call->out[0]);
}

const qi_kernel qi_kernel_batch_matmul = {
    .name = "batch_matmul", .check = check, .run = run, .products = QI_PRODUCTS_MATRIX};
const qi_code qi_code_batch_matmul = {"qk_batch_matmul", sizeof(qk_batch_matmul), fill, NULL, 0, 0};
