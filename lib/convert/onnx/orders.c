/** Where values lie in memory: orders of dimensions, other shapes, transposes. */
#include "convert/onnx/import.h"
#include "infer/model/qm_layout.h"

#include <string.h>

qat_status oq_move(oq_importer *q, const char *op, int from, int to, int n_params,
                   const int32_t *params)
{
    qat_emit const e = oq_emit(q, 1, &from, to, NULL);
    return qat_emit_op(&e, op, QI_ROUND_NONE, n_params, params, 0, q->err);
}

int oq_place(int n_last, int rank, int i)
{
    if (!n_last || i == 0)
        return i;
    return i <= n_last ? rank - n_last + i - 1 : i - n_last;
}

qat_status oq_few_dims(const oq_importer *q, int rank)
{
    return rank <= QI_MAX_RANK
               ? QAT_OK
               : fv_refuse(&q->b, "a value of %d dimensions; at most %d are supported here", rank,
                           QI_MAX_RANK);
}

qat_status oq_dims(oq_importer *q, int n_last, int rank, const int64_t *dims,
                   int32_t to[QI_MAX_RANK])
{
    int64_t sizes[QAT_FOREIGN_RANK], count = 1;
    for (int i = 0; i < QI_MAX_RANK; i++)
        to[i] = 1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 1 || dims[i] > QM_MAX_TENSOR_VALUES ||
            (count *= dims[i]) > QM_MAX_TENSOR_VALUES)
            return fv_refuse(&q->b, "a value would be empty, too large, or of unknown size");
        sizes[oq_place(n_last, rank, i)] = dims[i];
    }
    for (int i = 0; i < rank; i++) /* the last one holds all that are left */
        to[i < QI_MAX_RANK ? i : QI_MAX_RANK - 1] *= (int32_t)sizes[i];
    return QAT_OK;
}

/* ------------------------------------------------------------------ moving */

static int engine_rank(int rank)
{
    return rank < 1 ? 1 : rank > QI_MAX_RANK ? QI_MAX_RANK : rank;
}

qat_status oq_reshape_to(oq_importer *q, int *tensor, const char *part, int rank,
                         const int32_t *dims)
{
    const qat_qtensor *t = &q->graph->tensors[*tensor];
    int const from = *tensor;
    if (t->rank == rank && !memcmp(t->dims, dims, (size_t)rank * sizeof *dims))
        return QAT_OK;
    qat_status const st = oq_append_like(q, from, part, rank, dims, tensor);
    return st ? st : oq_move(q, "reshape", from, *tensor, 0, NULL);
}

qat_status oq_pad_middle(oq_importer *q, int *tensor, int32_t a, int32_t c, int32_t n)
{
    enum { AFTER = QI_MAX_RANK + 2, VALUE = 2 * QI_MAX_RANK, PARAMS };
    qat_qtensor const x = q->graph->tensors[*tensor];
    int32_t const before[] = {x.dims[0], a, 1, c}, after[] = {x.dims[0], a, 1 + n, c};
    int32_t params[PARAMS] = {0};
    params[AFTER] = n;
    params[VALUE] = x.zero_point;
    if (!n)
        return QAT_OK;
    qat_status st = oq_reshape_to(q, tensor, "pixels", QI_MAX_RANK, before);
    int const from = *tensor;
    if (!st)
        st = oq_append_like(q, from, "padded", QI_MAX_RANK, after, tensor);
    return st ? st : oq_move(q, "pad", from, *tensor, PARAMS, params);
}

/** Exchange the blocks b and c of the memory [a, b, c, d]. */
static qat_status exchange(oq_importer *q, int *tensor, int64_t a, int64_t b, int64_t c, int64_t d)
{
    static const int32_t middle[QI_MAX_RANK] = {0, 2, 1, 3};
    int32_t const before[] = {(int32_t)a, (int32_t)b, (int32_t)c, (int32_t)d};
    int32_t const after[] = {(int32_t)a, (int32_t)c, (int32_t)b, (int32_t)d};
    qat_status st = oq_reshape_to(q, tensor, "blocks", QI_MAX_RANK, before);
    int const from = *tensor;
    if (!st)
        st = oq_append_like(q, from, "moved", QI_MAX_RANK, after, tensor);
    return st ? st : oq_move(q, "transpose", from, *tensor, QI_MAX_RANK, middle);
}

static int64_t product(int n, const int64_t *sizes)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++)
        all *= sizes[i];
    return all;
}

/**
 * Bring pieces of the memory into another order, block by block: the block that is to lie at i
 * changes places with those before it.
 * @param now     the pieces as they lie, by number; becomes `wanted`
 * @param wanted  the pieces as they are to lie
 * @param size    of a piece, by its number
 */
static qat_status arrange(oq_importer *q, int *tensor, int n, int *now, const int *wanted,
                          const int64_t *size)
{
    for (int i = 0; i < n; i++) {
        int64_t lengths[QAT_FOREIGN_RANK];
        int at = i, run = 1, moved[QAT_FOREIGN_RANK];
        while (now[at] != wanted[i])
            at++;
        if (at == i)
            continue;
        while (at + run < n && now[at + run] == wanted[i + run])
            run++;
        for (int k = 0; k < n; k++)
            lengths[k] = size[now[k]];
        qat_status const st =
            exchange(q, tensor, product(i, lengths), product(at - i, lengths + i),
                     product(run, lengths + at), product(n - at - run, lengths + at + run));
        if (st)
            return st;
        memcpy(moved, now + at, (size_t)run * sizeof *now);
        memmove(now + i + run, now + i, (size_t)(at - i) * sizeof *now);
        memcpy(now + i, moved, (size_t)run * sizeof *now);
    }
    return QAT_OK;
}

/** The dimensions of more than one position, as they lie in memory. Returns their number. */
static int pieces_of(int n_last, const fv *shape, int pieces[QAT_FOREIGN_RANK])
{
    int n = 0;
    for (int at = 0; at < shape->rank; at++)
        for (int i = 0; i < shape->rank; i++)
            if (oq_place(n_last, shape->rank, i) == at && shape->dims[i] != 1)
                pieces[n++] = i;
    return n;
}

static bool lies_as(int n, const int *now, int n_last, const fv *shape)
{
    int wanted[QAT_FOREIGN_RANK];
    return pieces_of(n_last, shape, wanted) == n && !memcmp(now, wanted, (size_t)n * sizeof *now);
}

/** The value has this shape and these pieces of it in memory: bring it into an order. */
static qat_status place(oq_importer *q, oq_operand *x, int n, int *now, int n_last)
{
    int wanted[QAT_FOREIGN_RANK];
    int32_t dims[QI_MAX_RANK], perm[QI_MAX_RANK] = {0, 1, 2, 3};
    const fv *s = &x->shape;
    qat_status st = oq_dims(q, n_last, s->rank, s->dims, dims);
    int const from = x->v.tensor, before = x->v.n_last;
    x->v.n_last = n_last;
    if (st)
        return st;
    if (lies_as(n, now, n_last, s))
        return oq_reshape_to(q, &x->v.tensor, "shape", engine_rank(s->rank), dims);
    if (before >= 0 && s->rank <= QI_MAX_RANK) { /* one transpose of the dimensions as they are */
        st = oq_append_like(q, from, n_last ? "channels_last" : "in_order", s->rank, dims,
                            &x->v.tensor);
        for (int i = 0; i < s->rank; i++)
            perm[oq_place(n_last, s->rank, i)] = oq_place(before, s->rank, i);
        return st ? st : oq_move(q, "transpose", from, x->v.tensor, QI_MAX_RANK, perm);
    }
    pieces_of(n_last, s, wanted);
    st = arrange(q, &x->v.tensor, n, now, wanted, s->dims);
    return st ? st : oq_reshape_to(q, &x->v.tensor, "shape", engine_rank(s->rank), dims);
}

/* ------------------------------------------------------------------ orders in memory */

qat_status oq_order(oq_importer *q, oq_operand *x, int n_last)
{
    int now[QAT_FOREIGN_RANK];
    if (x->shape.rank < 3 || x->v.n_last == n_last) {
        x->v.n_last = x->shape.rank < 3 ? 0 : n_last;
        return QAT_OK;
    }
    return place(q, x, pieces_of(x->v.n_last, &x->shape, now), now, n_last);
}

qat_status oq_picture(oq_importer *q, oq_operand *x, int *tensor)
{
    qat_status st = oq_order(q, x, 1);
    *tensor = x->v.tensor;
    if (st || x->shape.rank == 4)
        return st;
    const int64_t *d = x->shape.dims;
    int32_t const dims[] = {(int32_t)d[0], 1, (int32_t)d[2], (int32_t)d[1]};
    return oq_reshape_to(q, tensor, "picture", 4, dims);
}

/**
 * Channels in several dimensions, or several dimensions as channels: [N, C, H, W] whose channels
 * lie last is [N, 2, C/2, H, W] whose two dimensions behind the first lie last. Returns their
 * number; 0: the new shape does not cut the values so.
 */
static int same_cut(const oq_operand *x, int rank, const int64_t *dims)
{
    int const n = x->v.n_last;
    int64_t const channels = product(n, x->shape.dims + 1);
    if (!n || rank < 3 || dims[0] != x->shape.dims[0])
        return 0;
    for (int k = 1; k + 1 < rank; k++)
        if (product(k, dims + 1) == channels)
            return k;
    return 0;
}

qat_status oq_reshape(oq_importer *q, oq_operand *x, int rank, const int64_t *dims)
{
    int now[QAT_FOREIGN_RANK];
    int32_t to[QI_MAX_RANK];
    int64_t before = 1, after = 1;
    qat_status st = oq_dims(q, 0, rank, dims, to);
    for (int i = 0; i < x->shape.rank; i++)
        before *= x->shape.dims[i];
    for (int i = 0; i < rank && !st; i++)
        after *= dims[i];
    if (!st && before != after)
        return fv_refuse(&q->b, "the new shape has %lld values, the input %lld", (long long)after,
                         (long long)before);
    if (st)
        return st;
    int n_last = 0;
    if (lies_as(pieces_of(x->v.n_last, &x->shape, now), now, 0, &x->shape))
        x->v.n_last = 0;
    else
        n_last = same_cut(x, rank, dims);
    if (!n_last)
        st = oq_order(q, x, 0);
    x->v.n_last = n_last;
    if (!st)
        st = oq_dims(q, n_last, rank, dims, to);
    if (!st)
        st = oq_reshape_to(q, &x->v.tensor, "shape", engine_rank(rank), to);
    if (!st)
        oq_output(q, 0, &x->v, rank, dims);
    return st;
}

qat_status oq_transpose(oq_importer *q, oq_operand *x, const int *perm)
{
    fv const before = x->shape;
    int lies[QAT_FOREIGN_RANK], to[QAT_FOREIGN_RANK], n_last = 0;
    int const rank = before.rank, n = pieces_of(x->v.n_last, &before, lies), was = x->v.n_last;
    bool within = was > 1; /* the dimensions that lie last change places */
    for (int i = 0; i < rank; i++) {
        to[perm[i]] = i;
        x->shape.dims[i] = before.dims[perm[i]];
        within = within && (i == 0 || i > was ? perm[i] == i : perm[i] <= was);
    }
    for (int i = 0; i < n; i++)
        lies[i] = to[lies[i]];
    for (int k = 0; k + 1 < rank; k++)
        if (lies_as(n, lies, k, &x->shape)) {
            n_last = k;
            break;
        }
    if (within && !lies_as(n, lies, n_last, &x->shape))
        n_last = was;
    if (rank <= QI_MAX_RANK && !lies_as(n, lies, n_last, &x->shape)) {
        int32_t dims[QI_MAX_RANK], steps[QI_MAX_RANK] = {0, 1, 2, 3};
        int const from = x->v.tensor;
        qat_status st = oq_dims(q, n_last, rank, x->shape.dims, dims);
        for (int i = 0; i < rank; i++)
            steps[oq_place(n_last, rank, i)] = oq_place(was, rank, perm[i]);
        x->v.n_last = n_last;
        if (!st)
            st = oq_append_like(q, from, "transposed", rank, dims, &x->v.tensor);
        return st ? st : oq_move(q, "transpose", from, x->v.tensor, QI_MAX_RANK, steps);
    }
    x->v.n_last = -1; /* no order of the new dimensions */
    return place(q, x, n, lies, n_last);
}
