/**
 * Operators whose inputs are known before any data are: computations of shapes, transposed weights.
 * Exporters leave many of them.
 */
#include "foreign/build.h"

#include <math.h>
#include <string.h>

static const qat_foreign_tensor *constant(const builder *b, int i)
{
    const fv *v = fv_input(b, i);
    return v ? v->constant : NULL;
}

static double value_at(const qat_foreign_tensor *t, size_t i)
{
    return t->type == QAT_FOREIGN_FLOAT ? (double)t->floats[i] : (double)t->ints[i];
}

static qat_status give(builder *b, const qat_foreign_tensor *t)
{
    if (!t)
        return fv_graph_error(b);
    fv_output_constant(b, 0, t);
    return QAT_OK;
}

/* ------------------------------------------------------------------ sources */

static qat_status fold_constant(builder *b)
{
    const qat_foreign_attr *value = fv_attr(b, "value");
    static const char *const names[] = {"value_int", "value_ints", "value_float", "value_floats"};
    static const int kinds[] = {QAT_FOREIGN_ATTR_INT, QAT_FOREIGN_ATTR_INTS, QAT_FOREIGN_ATTR_FLOAT,
                                QAT_FOREIGN_ATTR_FLOATS};
    if (value && value->kind == QAT_FOREIGN_ATTR_TENSOR)
        return give(b, value->tensor);
    for (int i = 0; i < 4; i++) {
        const qat_foreign_attr *a = fv_attr(b, names[i]);
        if (!a)
            continue;
        if ((int)a->kind != kinds[i])
            return fv_refuse(b, "attribute %s is of another type", names[i]);
        bool const list = i % 2 != 0, is_float = i >= 2;
        int64_t const n = list ? (int64_t)a->n : 1;
        qat_foreign_tensor *t =
            fv_constant(b, is_float ? QAT_FOREIGN_FLOAT : QAT_FOREIGN_INT, list, &n);
        for (int64_t k = 0; t && k < n; k++) {
            if (is_float)
                ((float *)t->floats)[k] = list ? a->floats[k] : a->f;
            else
                ((int64_t *)t->ints)[k] = list ? a->ints[k] : a->i;
        }
        return give(b, t);
    }
    return fv_refuse(b, "a constant of texts or of a sparse tensor");
}

static qat_status fold_shape(builder *b)
{
    const fv *x = fv_input(b, 0);
    int const rank = x->node ? x->rank : x->constant->rank;
    const int64_t *dims = x->node ? x->dims : x->constant->dims;
    int64_t begin = fv_attr_int(b, "start", 0), end = fv_attr_int(b, "end", rank);
    begin = begin < 0 ? begin + rank : begin;
    end = end < 0 ? end + rank : end > rank ? rank : end;
    if (begin < 0 || begin > end)
        return fv_refuse(b, "attributes start, end: an empty shape");
    int64_t const n = end - begin;
    qat_foreign_tensor *t = fv_constant(b, QAT_FOREIGN_INT, 1, &n);
    for (int64_t i = 0; t && i < n; i++)
        ((int64_t *)t->ints)[i] = dims[begin + i];
    return give(b, t);
}

static qat_status fold_constant_of_shape(builder *b)
{
    const qat_foreign_tensor *shape = constant(b, 0);
    const qat_foreign_attr *a = fv_attr(b, "value");
    const qat_foreign_tensor *value = a && a->kind == QAT_FOREIGN_ATTR_TENSOR ? a->tensor : NULL;
    if (shape->type != QAT_FOREIGN_INT || shape->count > QAT_FOREIGN_RANK ||
        (value && (value->type == QAT_FOREIGN_OTHER || value->count != 1)))
        return fv_refuse(b, "a shape of %zu dimensions", shape->count);
    int64_t count = 1;
    for (size_t i = 0; i < shape->count; i++) {
        if (shape->ints[i] < 0 || (shape->ints[i] && count > 65536 / shape->ints[i]))
            return fv_refuse(b, "more than 65536 values");
        count *= shape->ints[i];
    }
    bool const ints = value && value->type == QAT_FOREIGN_INT;
    qat_foreign_tensor *t =
        fv_constant(b, ints ? QAT_FOREIGN_INT : QAT_FOREIGN_FLOAT, (int)shape->count, shape->ints);
    for (size_t i = 0; t && i < t->count; i++) {
        if (ints)
            ((int64_t *)t->ints)[i] = value->ints[0];
        else
            ((float *)t->floats)[i] = value ? value->floats[0] : 0;
    }
    return give(b, t);
}

/* ------------------------------------------------------------------ same values */

static qat_status with_shape(builder *b, const qat_foreign_tensor *from, int rank,
                             const int64_t *dims)
{
    qat_foreign_tensor *t = fv_take(b, &b->arena, 1, sizeof *t);
    if (!t)
        return give(b, NULL);
    *t = *from;
    t->rank = rank;
    size_t count = 1;
    for (int i = 0; i < rank; i++) {
        t->dims[i] = dims[i];
        if (dims[i] < 0 || (dims[i] && count > (size_t)(INT32_MAX / dims[i])))
            return fv_refuse(b, "%lld is not a dimension", (long long)dims[i]);
        count *= (size_t)dims[i];
    }
    return count == from->count
               ? give(b, t)
               : fv_refuse(b, "a shape of %zu values for a constant of %zu", count, from->count);
}

static qat_status fold_identity(builder *b)
{
    return give(b, constant(b, 0));
}

static qat_status fold_cast(builder *b)
{
    enum { FLOAT = 1, FLOAT16 = 10, DOUBLE = 11, BFLOAT16 = 16 };
    const qat_foreign_tensor *x = constant(b, 0);
    int64_t const to = fv_attr_int(b, "to", 0);
    bool const is_float = to == FLOAT || to == FLOAT16 || to == DOUBLE || to == BFLOAT16;
    qat_foreign_tensor *t =
        fv_constant(b, is_float ? QAT_FOREIGN_FLOAT : QAT_FOREIGN_INT, x->rank, x->dims);
    for (size_t i = 0; t && i < x->count; i++) {
        double const v = value_at(x, i);
        if (is_float)
            ((float *)t->floats)[i] = (float)v;
        else
            ((int64_t *)t->ints)[i] = x->type == QAT_FOREIGN_INT ? x->ints[i]
                                      : fabs(v) < 9e18           ? (int64_t)v
                                                                 : 0;
    }
    return give(b, t);
}

static qat_status fold_reshape(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0);
    int64_t dims[QAT_FOREIGN_RANK], known = 1;
    int n, unknown = -1;
    qat_status const st = fv_ints(b, 1, "shape", dims, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    for (int i = 0; i < n; i++) {
        dims[i] = dims[i] == 0 && i < x->rank ? x->dims[i] : dims[i];
        if (dims[i] == -1)
            unknown = i;
        else if (dims[i] <= 0 || dims[i] > INT32_MAX || (known *= dims[i]) > INT32_MAX)
            return fv_refuse(b, "shape: %lld is not a dimension", (long long)dims[i]);
    }
    if (unknown >= 0)
        dims[unknown] = (int64_t)x->count / known;
    return with_shape(b, x, n > 0 ? n : 0, dims);
}

static qat_status fold_squeeze(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0);
    int64_t axes[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    int n, rank = 0;
    bool removed[QAT_FOREIGN_RANK] = {false};
    qat_status st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, &n);
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], x->rank, &axis);
        if (!st)
            removed[axis] = true;
    }
    for (int i = 0; i < x->rank && !st; i++)
        if (!(n < 0 ? x->dims[i] == 1 : removed[i]))
            dims[rank++] = x->dims[i];
    return st ? st : with_shape(b, x, rank, dims);
}

static qat_status fold_unsqueeze(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0);
    int64_t axes[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    int n;
    bool added[QAT_FOREIGN_RANK] = {false};
    qat_status st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, &n);
    int const rank = x->rank + (n > 0 ? n : 0);
    if (!st && rank > QAT_FOREIGN_RANK)
        return fv_refuse(b, "axes: %d dimensions would be too many", rank);
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], rank, &axis);
        if (!st && added[axis])
            return fv_refuse(b, "axes: %d is named twice", axis);
        if (!st)
            added[axis] = true;
    }
    for (int i = 0, k = 0; i < rank && !st; i++)
        dims[i] = added[i] ? 1 : x->dims[k++];
    return st ? st : with_shape(b, x, rank, dims);
}

/* ------------------------------------------------------------------ moved values */

static void copy_value(const qat_foreign_tensor *to, size_t i, const qat_foreign_tensor *from,
                       size_t k)
{
    if (to->type == QAT_FOREIGN_FLOAT)
        ((float *)to->floats)[i] = from->floats[k];
    else
        ((int64_t *)to->ints)[i] = from->ints[k];
}

static qat_status fold_transpose(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0);
    int64_t perm[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    size_t step[QAT_FOREIGN_RANK], next = 1;
    int const n = fv_attr_ints(b, "perm", perm, QAT_FOREIGN_RANK);
    int seen = 0;
    for (int i = x->rank - 1; i >= 0; i--) {
        step[i] = next;
        next *= (size_t)x->dims[i];
    }
    for (int i = 0; i < x->rank; i++) {
        perm[i] = n ? perm[i] : x->rank - 1 - i;
        if ((n && n != x->rank) || perm[i] < 0 || perm[i] >= x->rank || seen >> perm[i] & 1)
            return fv_refuse(b, "attribute perm does not list the %d dimensions", x->rank);
        seen |= 1 << perm[i];
        dims[i] = x->dims[perm[i]];
    }
    qat_foreign_tensor *t = fv_constant(b, x->type, x->rank, dims);
    for (size_t i = 0; t && i < t->count; i++) {
        size_t rest = i, from = 0;
        for (int k = x->rank - 1; k >= 0; k--) {
            from += rest % (size_t)dims[k] * step[perm[k]];
            rest /= (size_t)dims[k];
        }
        copy_value(t, i, x, from);
    }
    return give(b, t);
}

/** Along the first dimension. */
static qat_status fold_gather(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0), *index = constant(b, 1);
    int64_t dims[2 * QAT_FOREIGN_RANK];
    int rank = 0, axis;
    qat_status const st = fv_axis(b, fv_attr_int(b, "axis", 0), x->rank, &axis);
    if (st)
        return st;
    if (axis != 0 || index->type != QAT_FOREIGN_INT || index->rank + x->rank - 1 > QAT_FOREIGN_RANK)
        return fv_refuse(b, "of a constant, along another dimension than the first");
    for (int i = 0; i < index->rank; i++)
        dims[rank++] = index->dims[i];
    for (int i = 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    size_t const piece = x->dims[0] ? x->count / (size_t)x->dims[0] : 0;
    qat_foreign_tensor *t = fv_constant(b, x->type, rank, dims);
    for (size_t i = 0; t && i < index->count; i++) {
        int64_t const at = index->ints[i] < 0 ? index->ints[i] + x->dims[0] : index->ints[i];
        if (at < 0 || at >= x->dims[0])
            return fv_refuse(b, "an index outside the constant");
        for (size_t k = 0; k < piece; k++)
            copy_value(t, i * piece + k, x, (size_t)at * piece + k);
    }
    return give(b, t);
}

static qat_status fold_concat(builder *b)
{
    const qat_foreign_tensor *first = constant(b, 0);
    int axis;
    int64_t dims[QAT_FOREIGN_RANK], length = 0;
    qat_status const st = fv_axis(b, fv_attr_int(b, "axis", 1), first->rank, &axis);
    if (st)
        return st;
    if (axis != 0)
        return fv_refuse(b, "of constants, along another dimension than the first");
    for (int i = 0; i < b->node->n_inputs; i++) {
        const qat_foreign_tensor *x = constant(b, i);
        if (!x || x->rank != first->rank || x->type != first->type)
            return fv_refuse(b, "constants of different kinds or dimensions");
        for (int d = 1; d < x->rank; d++)
            if (x->dims[d] != first->dims[d])
                return fv_refuse(b, "constants that differ in dimension %d", d);
        length += x->dims[0];
    }
    memcpy(dims, first->dims, sizeof dims);
    dims[0] = length;
    qat_foreign_tensor *t = fv_constant(b, first->type, first->rank, dims);
    size_t at = 0;
    for (int i = 0; t && i < b->node->n_inputs; i++)
        for (size_t k = 0; k < constant(b, i)->count; k++)
            copy_value(t, at++, constant(b, i), k);
    return give(b, t);
}

/** Of a list. */
static qat_status fold_slice(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0);
    int64_t begin[1], end[1], axis[1] = {0}, step[1] = {1};
    int n, n_ends, n_axes, n_steps;
    qat_status st = fv_ints(b, 1, "starts", begin, 1, &n);
    if (!st)
        st = fv_ints(b, 2, "ends", end, 1, &n_ends);
    if (!st)
        st = fv_ints(b, 3, "axes", axis, 1, &n_axes);
    if (!st)
        st = fv_ints(b, 4, "steps", step, 1, &n_steps);
    if (st)
        return st;
    if (x->rank != 1 || n != 1 || n_ends != 1 || (axis[0] != 0 && axis[0] != -1) || step[0] < 1)
        return fv_refuse(b, "of a constant of %d dimensions; 1 is possible", x->rank);
    int64_t const d = x->dims[0];
    int64_t from = begin[0] < 0 ? begin[0] + d : begin[0], to = end[0] < 0 ? end[0] + d : end[0];
    from = from < 0 ? 0 : from > d ? d : from;
    to = to < 0 ? 0 : to > d ? d : to;
    int64_t const count = to > from ? (to - from - 1) / step[0] + 1 : 0;
    qat_foreign_tensor *t = fv_constant(b, x->type, 1, &count);
    for (int64_t i = 0; t && i < count; i++)
        copy_value(t, (size_t)i, x, (size_t)(from + i * step[0]));
    return give(b, t);
}

/* ------------------------------------------------------------------ arithmetic */

static bool combine_ints(char op, int64_t x, int64_t y, int64_t *z)
{
    switch (op) {
    case 'A':
        return !__builtin_add_overflow(x, y, z);
    case 'S':
        return !__builtin_sub_overflow(x, y, z);
    case 'M':
        return !__builtin_mul_overflow(x, y, z);
    default:
        if (y == 0 || (x == INT64_MIN && y == -1))
            return false;
        *z = x / y;
        return true;
    }
}

static float combine_floats(char op, float x, float y)
{
    return op == 'A' ? x + y : op == 'S' ? x - y : op == 'M' ? x * y : x / y;
}

/** Add, Sub, Mul, Div of equal shapes, or with one number. */
static qat_status fold_binary(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0), *y = constant(b, 1);
    char const op = b->node->op[0];
    const qat_foreign_tensor *shape = x->count == 1 && y->rank >= x->rank ? y : x;
    const qat_foreign_tensor *other = shape == x ? y : x;
    bool const same =
        x->rank == y->rank &&
        (x->rank == 0 || !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims));
    bool const fits = same || (other->count == 1 && other->rank <= shape->rank);
    if (!fits || x->type != y->type)
        return fv_refuse(b, "of constants of different shapes or kinds");
    qat_foreign_tensor *t = fv_constant(b, x->type, shape->rank, shape->dims);
    for (size_t i = 0; t && i < t->count; i++) {
        size_t const p = x->count == 1 ? 0 : i, q = y->count == 1 ? 0 : i;
        if (x->type == QAT_FOREIGN_FLOAT)
            ((float *)t->floats)[i] = combine_floats(op, x->floats[p], y->floats[q]);
        else if (!combine_ints(op, x->ints[p], y->ints[q], (int64_t *)&t->ints[i]))
            return fv_refuse(b, "of integers that cannot be combined so");
    }
    return give(b, t);
}

static qat_status fold_unary(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0);
    const char *op = b->node->op;
    qat_foreign_tensor *t = fv_constant(b, x->type, x->rank, x->dims);
    for (size_t i = 0; t && i < t->count; i++) {
        if (x->type == QAT_FOREIGN_INT) {
            ((int64_t *)t->ints)[i] =
                *op == 'N' && x->ints[i] != INT64_MIN ? -x->ints[i] : x->ints[i];
            continue;
        }
        float const v = x->floats[i];
        ((float *)t->floats)[i] = *op == 'N'   ? -v
                                  : *op == 'F' ? floorf(v)
                                  : *op == 'C' ? ceilf(v)
                                               : sqrtf(v);
    }
    return give(b, t);
}

/** Clip: bounds of inputs 1 and 2, of the same kind. */
static qat_status fold_clip(builder *b)
{
    const qat_foreign_tensor *x = constant(b, 0), *ends[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        ends[i] = b->node->n_inputs > 1 + i && fv_input(b, 1 + i) ? constant(b, 1 + i) : NULL;
        if (ends[i] && (ends[i]->type != x->type || ends[i]->count != 1))
            return fv_refuse(b, "its bound %d is not one number of the input's kind", i + 1);
    }
    if (fv_attr(b, "min") || fv_attr(b, "max"))
        return fv_refuse(b, "attributes min and max of a constant");
    qat_foreign_tensor *t = fv_constant(b, x->type, x->rank, x->dims);
    for (size_t i = 0; t && i < t->count; i++) {
        copy_value(t, i, x, i);
        for (int e = 0; e < 2; e++) {
            double const now = value_at(t, i), end = ends[e] ? value_at(ends[e], 0) : now;
            if (e ? now > end : now < end)
                copy_value(t, i, ends[e], 0);
        }
    }
    if (t)
        t->stored = x->stored;
    return give(b, t);
}

static const fv_operator folds[] = {
    {"Constant", fold_constant},
    {"ConstantOfShape", fold_constant_of_shape},
    {"Identity", fold_identity},
    {"Cast", fold_cast},
    {"Reshape", fold_reshape},
    {"Squeeze", fold_squeeze},
    {"Unsqueeze", fold_unsqueeze},
    {"Transpose", fold_transpose},
    {"Gather", fold_gather},
    {"Concat", fold_concat},
    {"Slice", fold_slice},
    {"Add", fold_binary},
    {"Sub", fold_binary},
    {"Mul", fold_binary},
    {"Div", fold_binary},
    {"Neg", fold_unary},
    {"Floor", fold_unary},
    {"Ceil", fold_unary},
    {"Sqrt", fold_unary},
    {"Clip", fold_clip},
    {NULL, NULL},
};

/** How many inputs an operator needs before it can be folded. */
static int least_inputs(const char *op)
{
    static const char *const two[] = {"Gather", "Add", "Sub", "Mul", "Div"};
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (!strcmp(two[i], op))
            return 2;
    return strcmp(op, "Constant") != 0;
}

qat_status fv_fold(builder *b, bool *done)
{
    int given = 0;
    *done = true;
    if (!strcmp(b->node->op, "Shape") && fv_input(b, 0))
        return fold_shape(b);
    for (int i = 0; i < b->node->n_inputs; i++) {
        const fv *v = fv_input(b, i);
        *done = *done && (!v || v->constant);
        given += v != NULL;
        if (v && v->constant && v->constant->type == QAT_FOREIGN_OTHER)
            return fv_refuse(b, "its input %d does not hold numbers", i);
    }
    if (!*done)
        return QAT_OK;
    for (const fv_operator *o = folds; o->op; o++)
        if (!strcmp(o->op, b->node->op)) {
            if (given < least_inputs(o->op) || (least_inputs(o->op) && !constant(b, 0)) ||
                (least_inputs(o->op) > 1 && !constant(b, 1)))
                return fv_refuse(b, "it has too few inputs");
            return o->build(b);
        }
    return given ? fv_refuse(b, "this operator is not supported on constants")
                 : fv_refuse(b, "this operator has no inputs here");
}
