/** Which rows of its inputs an op needs for some rows of its output. */
#include "bands/bands.h"

#include "infer/model/op.h"

#include <string.h>

/** How rows of the output follow from rows of the inputs. */
typedef enum reach {
    REACH_NONE,   /* not at all, or from all rows */
    REACH_ROW,    /* a row from the same row */
    REACH_WINDOW, /* a row from those of a window */
    REACH_PAD     /* a row from the one `before` rows above it */
} reach;

static const struct {
    const char *op;
    reach reach;
    int stride, dilation, pad; /* places of the parameters of windows; -1: dilation is 1 */
} ops[] = {
    {"conv2d", REACH_WINDOW, QI_CONV_STRIDE_H, QI_CONV_DILATION_H, QI_CONV_PAD_TOP},
    {"depthwise_conv2d", REACH_WINDOW, QI_CONV_STRIDE_H, QI_CONV_DILATION_H, QI_CONV_PAD_TOP},
    {"average_pool2d", REACH_WINDOW, QI_POOL_STRIDE_H, -1, QI_POOL_PAD_TOP},
    {"max_pool2d", REACH_WINDOW, QI_POOL_STRIDE_H, -1, QI_POOL_PAD_TOP},
    {"pad", REACH_PAD, 0, 0, 0},
    {"concat", REACH_ROW, 0, 0, 0},
    {"requantize", REACH_ROW, 0, 0, 0},
    {"pack", REACH_ROW, 0, 0, 0},
    {"unpack", REACH_ROW, 0, 0, 0},
    {"cast", REACH_ROW, 0, 0, 0},
    {"logistic", REACH_ROW, 0, 0, 0},
    {"tanh", REACH_ROW, 0, 0, 0},
    {"table", REACH_ROW, 0, 0, 0},
    {"softmax", REACH_ROW, 0, 0, 0},
    {"l2_normalization", REACH_ROW, 0, 0, 0},
    {"add", REACH_ROW, 0, 0, 0},
    {"sub", REACH_ROW, 0, 0, 0},
    {"mul", REACH_ROW, 0, 0, 0},
    {"div", REACH_ROW, 0, 0, 0},
    {"maximum", REACH_ROW, 0, 0, 0},
    {"minimum", REACH_ROW, 0, 0, 0},
    {"prelu", REACH_ROW, 0, 0, 0},
    {"squared_difference", REACH_ROW, 0, 0, 0},
};

enum { OPS = sizeof ops / sizeof *ops, ROW_AXIS = 1 };
enum { PAD_BEFORE = ROW_AXIS, PAD_AFTER = QI_MAX_RANK + ROW_AXIS };

static int row_of(const qat_qop *op)
{
    for (int i = 0; i < OPS; i++)
        if (!strcmp(ops[i].op, op->op))
            return i;
    return -1;
}

static const qat_qtensor *input_of(const qat_qgraph *graph, const qat_qop *op, int i)
{
    return &graph->tensors[op->inputs[i]];
}

static const qat_qtensor *output_of(const qat_qgraph *graph, const qat_qop *op)
{
    return &graph->tensors[op->outputs[0]];
}

/** The dimension that is aligned with the output's rows, as in broadcasting. */
static int32_t aligned_rows(const qat_qtensor *t)
{
    int const axis = t->rank - (QI_MAX_RANK - ROW_AXIS);
    return axis >= 0 ? t->dims[axis] : 1;
}

/** Can it be sliced and joined by rows? */
static bool is_picture(const qat_qtensor *t)
{
    return t->rank == QI_MAX_RANK && t->dims[0] == 1 && qi_type_has_codes((int)t->type) &&
           !t->data && !t->is_state;
}

bool qat_input_has_rows(const qat_qgraph *graph, const qat_qop *op, int i)
{
    int const row = row_of(op);
    const qat_qtensor *x = input_of(graph, op, i), *y = output_of(graph, op);
    if (row < 0 || x->data || x->is_state)
        return false;
    return ops[row].reach == REACH_ROW ? aligned_rows(x) == y->dims[ROW_AXIS] : i == 0;
}

bool qat_op_has_rows(const qat_qgraph *graph, const qat_qop *op)
{
    int const row = row_of(op);
    bool has_rows = row >= 0 && op->n_outputs == 1 && is_picture(output_of(graph, op)) &&
                    (strcmp(op->op, "concat") || op->params[QI_CONCAT_AXIS] > ROW_AXIS);
    for (int i = 0; has_rows && i < op->n_inputs; i++) {
        const qat_qtensor *x = input_of(graph, op, i);
        bool const is_other = ops[row].reach != REACH_ROW && i > 0; /* weights and so on */
        has_rows =
            is_other || (qat_input_has_rows(graph, op, i) ? is_picture(x) : aligned_rows(x) == 1);
    }
    return has_rows;
}

static int32_t kernel_rows(const qat_qgraph *graph, const qat_qop *op, int row)
{
    return ops[row].dilation < 0 ? op->params[QI_POOL_KERNEL_H]
                                 : input_of(graph, op, 1)->dims[ROW_AXIS];
}

/** The first row of the first window, and the row after the last one: also in the padding. */
static qat_rows window_rows(const qat_qgraph *graph, const qat_qop *op, int row, qat_rows output)
{
    int32_t const stride = op->params[ops[row].stride];
    int32_t const dilation = ops[row].dilation < 0 ? 1 : op->params[ops[row].dilation];
    int32_t const extent = (kernel_rows(graph, op, row) - 1) * dilation + 1;
    int32_t const pad = op->params[ops[row].pad];
    return (qat_rows){output.first * stride - pad, (output.end - 1) * stride - pad + extent};
}

qat_rows qat_rows_needed(const qat_qgraph *graph, const qat_qop *op, qat_rows output)
{
    int const row = row_of(op);
    int32_t const height = input_of(graph, op, 0)->dims[ROW_AXIS];
    qat_rows r = output;
    if (ops[row].reach == REACH_ROW)
        return r;
    if (ops[row].reach == REACH_WINDOW)
        r = window_rows(graph, op, row, output);
    else
        r = (qat_rows){r.first - op->params[PAD_BEFORE], r.end - op->params[PAD_BEFORE]};
    r.first = r.first < 0 ? 0 : r.first > height ? height : r.first;
    r.end = r.end > height ? height : r.end;
    return r.first < r.end ? r : (qat_rows){0, 0};
}

void qat_set_rows(const qat_qgraph *graph, qat_qop *op, qat_rows input, qat_rows output)
{
    int const row = row_of(op);
    if (ops[row].reach == REACH_WINDOW) {
        op->params[ops[row].pad] = input.first - window_rows(graph, op, row, output).first;
    } else if (ops[row].reach == REACH_PAD) {
        int32_t const before = op->params[PAD_BEFORE];
        op->params[PAD_BEFORE] = input.first + before - output.first;
        op->params[PAD_AFTER] = output.end - (input.end + before);
    }
}
