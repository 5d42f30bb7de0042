/**
 * fully_connected: y[n,u] = sum_i x[n,i] w[u,i], with x flattened to [N, I].
 *
 * All three products are cut into tiles of their output. One product sums a tile over the whole
 * depth, so there are no partial sums. The weight gradient is computed in scratch and added once,
 * so its bits do not depend on the value it is added to.
 */
#include "autograd/loops/gemm.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/ops/op.h"

enum { TILE_ROWS = 64, TILE_COLUMNS = 512 };

static int inputs_of(const qat_node *node)
{
    const qat_shape *in = &node->inputs[0]->shape;
    return (int)(qat_shape_count(in) / (size_t)in->dims[0]);
}

static int fc_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    int const units = (int)qat_attr(node, "units"), inputs = inputs_of(node);
    defs[0] = (qat_param_def){.name = "weights",
                              .shape = QAT_SHAPE(units, inputs),
                              .init = QAT_INIT_GLOROT,
                              .fan_in = inputs,
                              .fan_out = units,
                              .trainable = true,
                              .decay = true};
    return 1;
}

static qat_status fc_shape(qat_node *node, qat_error *err)
{
    qat_status const st = qat_gemm_prepare(err);
    if (st)
        return st;
    node->shape = QAT_SHAPE(node->inputs[0]->shape.dims[0], (int)qat_attr(node, "units"));
    node->scratch_bytes = (size_t)node->shape.dims[1] * (size_t)inputs_of(node) * sizeof(qat_real);
    return QAT_OK;
}

/** c = op(a) op(b) + beta c, cut into tiles of c. */
struct product {
    qat_transpose ta, tb;
    int m, n, k;
    const qat_real *a, *b;
    int lda, ldb;
    qat_real beta, *c;
};

static void product_tile(void *context, int tile, int thread)
{
    const struct product *p = context;
    int const across = qat_tiles_of((size_t)p->n, TILE_COLUMNS);
    qat_span const rows = qat_tile_span((size_t)p->m, TILE_ROWS, tile / across);
    qat_span const columns = qat_tile_span((size_t)p->n, TILE_COLUMNS, tile % across);
    const qat_real *a = p->a + rows.begin * (p->ta ? 1 : (size_t)p->lda);
    const qat_real *b = p->b + columns.begin * (p->tb ? (size_t)p->ldb : 1);
    qat_gemm(p->ta, p->tb, (int)(rows.end - rows.begin), (int)(columns.end - columns.begin), p->k,
             a, p->lda, b, p->ldb, p->beta, p->c + rows.begin * (size_t)p->n + columns.begin, p->n);
}

static void multiply(struct product p)
{
    int const tiles =
        qat_tiles_of((size_t)p.m, TILE_ROWS) * qat_tiles_of((size_t)p.n, TILE_COLUMNS);
    qat_parallel(tiles, product_tile, &p);
}

static void fc_forward(qat_node *node, const qat_run *run)
{
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    int const batch = node->shape.dims[0], units = node->shape.dims[1], inputs = inputs_of(node);
    multiply((struct product){QAT_AS_IS, QAT_TRANSPOSED, batch, units, inputs, x->value, w->value,
                              inputs, inputs, 0, node->value});
}

static void fc_backward(qat_node *node, const qat_run *run)
{
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    int const batch = node->shape.dims[0], units = node->shape.dims[1], inputs = inputs_of(node);
    if (x->grad)
        multiply((struct product){QAT_AS_IS, QAT_AS_IS, batch, inputs, units, node->grad, w->value,
                                  units, inputs, !qat_grad_is_new(node, 0), x->grad});
    if (w->grad) {
        multiply((struct product){QAT_TRANSPOSED, QAT_AS_IS, units, inputs, batch, node->grad,
                                  x->value, units, inputs, 0, node->scratch});
        qat_accumulate(w->grad, node->scratch, (size_t)units * (size_t)inputs);
    }
}

static const qat_attr_def fc_attrs[] = {
    {"units", QAT_ATTR_INT, 0, 1, 1 << 20, NULL, "number of outputs; must be given"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

const qat_op qat_op_fully_connected = {
    .name = "fully_connected",
    .meaning = "matrix product with the flattened input, without bias",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fc_attrs,
    .params = fc_params,
    .shape = fc_shape,
    .forward = fc_forward,
    .backward = fc_backward,
    .grads = QAT_GRADS_WRITE,
    .forgets_scratch = true,
    .quant = QAT_QUANT(fully_connected),
};
