/** MatMul of two values of codes: a product of matrices for each sample, head, ... */
#include "convert/onnx/import.h"

#include <math.h>
#include <string.h>

/** The operands and the result as matrices: shapes of at least two dimensions. */
struct product {
    fv a, b;
    int rank; /* of the result, with the dimensions that a list was given */
    int64_t dims[QAT_FOREIGN_RANK];
    bool a_is_list, b_is_list;
};

/** A list as one row, or as one column. */
static fv as_matrix(const fv *list, bool is_row)
{
    fv m = {.rank = 2};
    m.dims[is_row] = list->dims[0];
    m.dims[!is_row] = 1;
    return m;
}

/** Dimension i before the last two, from the last of them on; 1 beyond the first. */
static int64_t batch_dim(const fv *x, int i)
{
    return i + 3 <= x->rank ? x->dims[x->rank - 3 - i] : 1;
}

static qat_status shapes_of(const oq_importer *q, const oq_operand *in, struct product *p)
{
    *p = (struct product){.a = in[0].shape,
                          .b = in[1].shape,
                          .a_is_list = in[0].shape.rank == 1,
                          .b_is_list = in[1].shape.rank == 1};
    if (p->a.rank < 1 || p->b.rank < 1)
        return fv_refuse(&q->b, "a product of a single number");
    if (p->a_is_list)
        p->a = as_matrix(&in[0].shape, true);
    if (p->b_is_list)
        p->b = as_matrix(&in[1].shape, false);
    const fv *a = &p->a, *b = &p->b;
    int const rank = a->rank > b->rank ? a->rank : b->rank;
    qat_status const st = oq_few_dims(q, rank);
    if (st)
        return st;
    if (a->dims[a->rank - 1] != b->dims[b->rank - 2])
        return fv_refuse(&q->b, "rows of %lld times columns of %lld",
                         (long long)a->dims[a->rank - 1], (long long)b->dims[b->rank - 2]);
    for (int i = 0; i < rank - 2; i++) {
        int64_t const x = batch_dim(a, i), y = batch_dim(b, i);
        if (x != y && x != 1 && y != 1)
            return fv_refuse(&q->b, "%lld matrices times %lld", (long long)x, (long long)y);
        p->dims[rank - 3 - i] = x == 1 ? y : x;
    }
    p->dims[rank - 2] = a->dims[a->rank - 2];
    p->dims[rank - 1] = b->dims[b->rank - 1];
    p->rank = rank;
    return QAT_OK;
}

/** Operand i as a tensor of its matrices. */
static qat_status operand(oq_importer *q, oq_operand *x, int i, const fv *shape, int *tensor)
{
    int32_t dims[QI_MAX_RANK];
    if (x->v.constant.codes) {
        x->shape.rank = shape->rank;
        memcpy(x->shape.dims, shape->dims, sizeof x->shape.dims);
        qat_status const appended = oq_append_operand(q, x, shape->rank, 0);
        *tensor = x->v.tensor;
        return appended;
    }
    qat_status st = oq_codes(q, x, i ? "second input" : "first input");
    if (!st)
        st = oq_order(q, x, 0);
    if (!st)
        st = oq_dims(q, 0, shape->rank, shape->dims, dims);
    *tensor = st ? -1 : x->v.tensor;
    return st ? st : oq_reshape_to(q, tensor, "matrix", shape->rank, dims);
}

/**
 * A product that the file does not quantize has 16-bit codes, which reach to the largest sum that
 * it can have; so have its operands.
 */
static qat_status widen(oq_importer *q, int inputs[2], int64_t depth, oq_target *target)
{
    double reach = (double)depth;
    if (target->type != QI_S16)
        return QAT_OK;
    for (int i = 0; i < 2; i++) {
        const qat_qtensor *t = &q->graph->tensors[inputs[i]];
        reach *= (double)t->scale * (double)qat_largest_difference(t);
    }
    if (!(target->scale > 0))
        target->scale = (float)(reach / INT16_MAX);
    if (!(target->scale > 0 && isfinite(target->scale)))
        target->scale = 1;
    qat_status const st = oq_widen(q, &inputs[0]);
    return st ? st : oq_widen(q, &inputs[1]);
}

/** The result without the dimensions that lists were given. */
static int dims_of_result(const struct product *p, int64_t dims[QAT_FOREIGN_RANK])
{
    int n = 0;
    for (int i = 0; i < p->rank; i++)
        if (!(p->a_is_list && i == p->rank - 2) && !(p->b_is_list && i == p->rank - 1))
            dims[n++] = p->dims[i];
    return n;
}

qat_status oq_matrix_product(oq_importer *q, oq_operand *in, const oq_target *wanted)
{
    enum { MOST = 33025 }; /* products of 255^2 whose sum fits int32 */
    oq_target own = *wanted;
    struct product p;
    int64_t dims[QAT_FOREIGN_RANK];
    int32_t matrices[QI_MAX_RANK];
    int inputs[2], output = 0, product;
    if (wanted->affine)
        return fv_refuse(&q->b, "constants behind a product of two inputs");
    if (in[0].v.constant.codes && in[1].v.constant.codes)
        return fv_refuse(&q->b, "both inputs are constants");
    qat_status st = shapes_of(q, in, &p);
    int64_t const depth = st ? 0 : p.a.dims[p.a.rank - 1];
    if (!st && depth > MOST)
        return fv_refuse(&q->b, "sums of %lld products; at most %d are supported", (long long)depth,
                         MOST);
    if (!st)
        st = operand(q, &in[0], 0, &p.a, &inputs[0]);
    if (!st)
        st = operand(q, &in[1], 1, &p.b, &inputs[1]);
    if (!st)
        st = widen(q, inputs, depth, &own);
    if (!st)
        st = oq_dims(q, 0, p.rank, p.dims, matrices);
    int const rank = st ? 0 : dims_of_result(&p, dims);
    if (!st)
        st = oq_append_output(q, &own, 0, rank, dims, &output);
    product = output;
    if (!st && (p.a_is_list || p.b_is_list))
        st = oq_append_like(q, output, "product", p.rank, matrices, &product);
    if (st)
        return st;
    qat_emit const e = oq_emit(q, 2, inputs, product, &own);
    st = qat_emit_batch_matmul(&e, false, false, q->err);
    return st || product == output ? st : oq_move(q, "reshape", product, output, 0, NULL);
}
