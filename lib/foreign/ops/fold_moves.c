/** Constants whose values move: each position of a dimension comes from one of a dimension before.
 */
#include "foreign/ops/fold.h"

#include <string.h>

/** Where a dimension's positions come from: begin + i step, or at[i] step, in values of the source.
 */
struct source {
    int64_t begin, step;
    const int64_t *at; /* NULL: i */
};

static qat_foreign_tensor *moved(builder *b, const qat_foreign_tensor *x, int rank,
                                 const int64_t *dims, const struct source *from)
{
    qat_foreign_tensor *t = fv_constant(b, x->type, rank, dims);
    for (size_t i = 0; t && i < t->count; i++) {
        size_t rest = i;
        int64_t at = 0;
        for (int k = rank - 1; k >= 0; k--) {
            int64_t const place = (int64_t)(rest % (size_t)dims[k]);
            rest /= (size_t)dims[k];
            at += from[k].begin + (from[k].at ? from[k].at[place] : place) * from[k].step;
        }
        fold_copy(t, i, x, (size_t)at);
    }
    if (t)
        t->stored = x->stored;
    return t;
}

/** The dimensions as they are. */
static void as_they_are(const qat_foreign_tensor *x, struct source *from)
{
    int64_t next = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        from[i] = (struct source){0, next, NULL};
        next *= x->dims[i];
    }
}

static qat_status fold_transpose(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
    int64_t perm[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    struct source now[QAT_FOREIGN_RANK], from[QAT_FOREIGN_RANK];
    int const n = fv_attr_ints(b, "perm", perm, QAT_FOREIGN_RANK);
    int seen = 0;
    as_they_are(x, now);
    for (int i = 0; i < x->rank; i++) {
        perm[i] = n ? perm[i] : x->rank - 1 - i;
        if ((n && n != x->rank) || perm[i] < 0 || perm[i] >= x->rank || seen >> perm[i] & 1)
            return fv_refuse(b, "attribute perm does not list the %d dimensions", x->rank);
        seen |= 1 << perm[i];
        dims[i] = x->dims[perm[i]];
        from[i] = now[perm[i]];
    }
    return fold_give(b, moved(b, x, x->rank, dims, from));
}

static qat_status fold_gather(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0), *index = fold_input(b, 1);
    int64_t dims[2 * QAT_FOREIGN_RANK];
    struct source from[QAT_FOREIGN_RANK];
    int axis, rank = 0;
    qat_status const st = fv_axis(b, fv_attr_int(b, "axis", 0), x->rank, &axis);
    if (st)
        return st;
    if (index->type != QAT_FOREIGN_INT || index->rank + x->rank - 1 > QAT_FOREIGN_RANK)
        return fv_refuse(b, "of a constant, at positions of %d dimensions", index->rank);
    int64_t *at = fv_take(b, &b->arena, index->count, sizeof *at);
    if (!at)
        return fold_give(b, NULL);
    for (size_t i = 0; i < index->count; i++) {
        at[i] = index->ints[i] < 0 ? index->ints[i] + x->dims[axis] : index->ints[i];
        if (at[i] < 0 || at[i] >= x->dims[axis])
            return fv_refuse(b, "an index outside the constant");
    }
    as_they_are(x, from);
    from[axis].at = at;
    memcpy(dims, x->dims, sizeof x->dims);
    dims[axis] = (int64_t)index->count;
    qat_foreign_tensor *t = moved(b, x, x->rank, dims, from);
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < index->rank; i++)
        dims[rank++] = index->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    if (t) {
        t->rank = rank;
        memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    }
    return fold_give(b, t);
}

static qat_status fold_concat(builder *b)
{
    const qat_foreign_tensor *first = fold_input(b, 0);
    int axis;
    int64_t dims[QAT_FOREIGN_RANK], length = 0;
    size_t after = 1, at = 0;
    qat_status const st = fv_axis(b, fv_attr_int(b, "axis", 1), first->rank, &axis);
    if (st)
        return st;
    for (int i = 0; i < b->node->n_inputs; i++) {
        const qat_foreign_tensor *x = fold_input(b, i);
        if (!x || x->rank != first->rank || x->type != first->type)
            return fv_refuse(b, "constants of different kinds or dimensions");
        for (int d = 0; d < x->rank; d++)
            if (d != axis && x->dims[d] != first->dims[d])
                return fv_refuse(b, "constants that differ in dimension %d", d);
        length += x->dims[axis];
    }
    memcpy(dims, first->dims, sizeof dims);
    dims[axis] = length;
    for (int i = axis + 1; i < first->rank; i++)
        after *= (size_t)dims[i];
    qat_foreign_tensor *t = fv_constant(b, first->type, first->rank, dims);
    while (t && at < t->count)
        for (int i = 0; i < b->node->n_inputs; i++) {
            const qat_foreign_tensor *x = fold_input(b, i);
            size_t const piece = (size_t)x->dims[axis] * after;
            size_t const from = at / ((size_t)length * after) * piece;
            for (size_t k = 0; k < piece; k++)
                fold_copy(t, at + k, x, from + k);
            at += piece; /* of one more input; the row ends with the last */
        }
    return fold_give(b, t);
}

static qat_status fold_slice(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
    int64_t dims[QAT_FOREIGN_RANK];
    struct source from[QAT_FOREIGN_RANK];
    fv_slice s;
    qat_status st = fv_slice_of(b, x->rank, &s);
    if (st)
        return st;
    memcpy(dims, x->dims, sizeof dims);
    as_they_are(x, from);
    for (int i = 0; i < s.n; i++) {
        fv_cut cut;
        int const axis = s.axes[i];
        st = fv_cut_of(b, dims[axis], s.begins[i], s.ends[i], s.steps[i], &cut);
        if (st)
            return st;
        dims[axis] = cut.count;
        from[axis].begin += cut.begin * from[axis].step;
        from[axis].step *= cut.step;
    }
    return fold_give(b, moved(b, x, x->rank, dims, from));
}

static qat_status fold_split(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
    enum { MOST = 64 };
    int64_t lengths[MOST], dims[QAT_FOREIGN_RANK], at = 0;
    struct source from[QAT_FOREIGN_RANK];
    int n, axis;
    qat_status st = fv_axis(b, fv_attr_int(b, "axis", 0), x->rank, &axis);
    if (!st)
        st = fv_ints(b, 1, "split", lengths, MOST, &n);
    int const parts = b->node->n_outputs;
    if (st)
        return st;
    if (parts > MOST || (n > 0 && n != parts))
        return fv_refuse(b, "%d parts", parts);
    int64_t const each = (x->dims[axis] + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        int64_t const rest = x->dims[axis] - at;
        int64_t const length = n > 0 ? lengths[i] : each < rest ? each : rest;
        if (length < 0 || length > rest)
            return fv_refuse(b, "a part of %lld of the %lld left in dimension %d",
                             (long long)length, (long long)rest, axis);
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = length;
        as_they_are(x, from);
        from[axis].begin = at * from[axis].step;
        const qat_foreign_tensor *t = moved(b, x, x->rank, dims, from);
        if (!t)
            return fold_give(b, NULL);
        fv_output_constant(b, i, t);
        at += length;
    }
    if (at != x->dims[axis])
        return fv_refuse(b, "its parts have %lld of the %lld positions of dimension %d",
                         (long long)at, (long long)x->dims[axis], axis);
    return QAT_OK;
}

const qat_foreign_tensor *fold_expand(builder *b, const qat_foreign_tensor *x, int rank,
                                      const int64_t *dims)
{
    struct source now[QAT_FOREIGN_RANK], from[QAT_FOREIGN_RANK];
    as_they_are(x, now);
    for (int i = 0; i < rank; i++) {
        int const k = i - (rank - x->rank);
        from[i] = k < 0 || x->dims[k] == 1 ? (struct source){0, 0, NULL} : now[k];
    }
    return moved(b, x, rank, dims, from);
}

static qat_status fold_expand_node(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
    int64_t shape[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    int n;
    qat_status const st = fv_ints(b, 1, "shape", shape, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    int const rank = n > x->rank ? n : x->rank;
    for (int i = 0; i < rank; i++) {
        int64_t const is = i < rank - x->rank ? 1 : x->dims[i - (rank - x->rank)];
        int64_t const to = i < rank - n ? 1 : shape[i - (rank - n)];
        if (is != to && is != 1 && to != 1)
            return fv_refuse(b, "%lld positions do not become %lld", (long long)is, (long long)to);
        dims[i] = is == 1 ? to : is;
    }
    return fold_give(b, fold_expand(b, x, rank, dims));
}

const fv_operator fold_moves[] = {
    {"Transpose", fold_transpose},
    {"Gather", fold_gather},
    {"Concat", fold_concat},
    {"Slice", fold_slice},
    {"Split", fold_split},
    {"Expand", fold_expand_node},
    {NULL, NULL},
};
