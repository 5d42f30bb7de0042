/**
 * embedding: y[.., :] = w[i, :], with i = x[.., 0] rounded: a row of a table for each number. A
 * number below the first row counts as the first, one beyond the last as the last.
 *
 * The table's gradient is cut into tiles of columns; each adds the rows in the order of x. The
 * numbers have no gradient.
 */
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/ops/op.h"

#include <math.h>
#include <string.h>

enum { TILE_COLUMNS = 16, TILE_ROWS = 64 };

static int embedding_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    int const rows = (int)qat_attr(node, "rows"), units = (int)qat_attr(node, "units");
    defs[0] = (qat_param_def){.name = "weights",
                              .shape = QAT_SHAPE(rows, units),
                              .init = QAT_INIT_GLOROT,
                              .fan_in = rows,
                              .fan_out = units,
                              .trainable = true,
                              .decay = true};
    return 1;
}

static qat_status embedding_shape(qat_node *node, qat_error *err)
{
    char text[64];
    node->shape = node->inputs[0]->shape;
    int *last = &node->shape.dims[node->shape.rank - 1];
    if (node->shape.rank < 2 || *last != 1)
        return qat_fail(err, QAT_ERR_SHAPE, "an input of %s: its last dimension must be 1",
                        qat_shape_text(&node->shape, text));
    *last = (int)qat_attr(node, "units");
    return QAT_OK;
}

/** The row for a number; for NaN the first. */
static size_t row_of(qat_real x, int rows)
{
    qat_real const last = (qat_real)(rows - 1);
    return !(x > 0) ? 0 : (size_t)(x >= last ? last : x + (qat_real)0.5);
}

struct job {
    const qat_real *x, *w, *dy;
    qat_real *y, *dw;
    size_t count; /* of numbers */
    int rows;
    size_t units;
};

static struct job job_of(const qat_node *node)
{
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    return (struct job){.x = x->value,
                        .w = w->value,
                        .dy = node->grad,
                        .y = node->value,
                        .dw = w->grad,
                        .count = qat_shape_count(&x->shape),
                        .rows = w->shape.dims[0],
                        .units = (size_t)w->shape.dims[1]};
}

static void take_rows(void *context, int tile, int thread)
{
    const struct job *j = context;
    qat_span const span = qat_tile_span(j->count, TILE_ROWS, tile);
    for (size_t i = span.begin; i < span.end; i++)
        memcpy(j->y + i * j->units, j->w + row_of(j->x[i], j->rows) * j->units,
               j->units * sizeof *j->y);
}

static void embedding_forward(qat_node *node, const qat_run *run)
{
    struct job j = job_of(node);
    qat_parallel(qat_tiles_of(j.count, TILE_ROWS), take_rows, &j);
}

static void add_columns(void *context, int tile, int thread)
{
    const struct job *j = context;
    qat_span const span = qat_tile_span(j->units, TILE_COLUMNS, tile);
    for (size_t i = 0; i < j->count; i++) {
        qat_real *to = j->dw + row_of(j->x[i], j->rows) * j->units;
        for (size_t k = span.begin; k < span.end; k++)
            to[k] += j->dy[i * j->units + k];
    }
}

static void embedding_backward(qat_node *node, const qat_run *run)
{
    struct job j = job_of(node);
    if (j.dw)
        qat_parallel(qat_tiles_of(j.units, TILE_COLUMNS), add_columns, &j);
}

static const qat_attr_def embedding_attrs[] = {
    {"rows", QAT_ATTR_INT, 0, 1, 32768, NULL, "rows of the table; must be given"},
    {"units", QAT_ATTR_INT, 0, 1, 1 << 16, NULL, "values of each row; must be given"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_embedding = {
    .name = "embedding",
    .meaning = "a row of a table for each number",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = embedding_attrs,
    .params = embedding_params,
    .shape = embedding_shape,
    .forward = embedding_forward,
    .backward = embedding_backward,
    .quant = QAT_QUANT(embedding),
};
