/**
 * Operators whose inputs are known before any data are: computations of shapes, transposed weights.
 * Exporters leave many of them.
 */
#include "foreign/ops/fold.h"

#include <math.h>
#include <string.h>

const qat_foreign_tensor *fold_input(const builder *b, int i)
{
    const fv *v = fv_input(b, i);
    return v ? v->constant : NULL;
}

double fold_value(const qat_foreign_tensor *t, size_t i)
{
    return t->type == QAT_FOREIGN_FLOAT ? (double)t->floats[i] : (double)t->ints[i];
}

qat_status fold_give(builder *b, const qat_foreign_tensor *t)
{
    if (!t)
        return fv_graph_error(b);
    fv_output_constant(b, 0, t);
    return QAT_OK;
}

void fold_copy(const qat_foreign_tensor *to, size_t i, const qat_foreign_tensor *from, size_t k)
{
    if (to->type == QAT_FOREIGN_FLOAT)
        ((float *)to->floats)[i] = from->floats[k];
    else
        ((int64_t *)to->ints)[i] = from->ints[k];
}

/* ------------------------------------------------------------------ sources */

static qat_status fold_constant(builder *b)
{
    const qat_foreign_attr *value = fv_attr(b, "value");
    static const char *const names[] = {"value_int", "value_ints", "value_float", "value_floats"};
    static const int kinds[] = {QAT_FOREIGN_ATTR_INT, QAT_FOREIGN_ATTR_INTS, QAT_FOREIGN_ATTR_FLOAT,
                                QAT_FOREIGN_ATTR_FLOATS};
    if (value && value->kind == QAT_FOREIGN_ATTR_TENSOR)
        return fold_give(b, value->tensor);
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
        return fold_give(b, t);
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
    return fold_give(b, t);
}

static qat_status fold_constant_of_shape(builder *b)
{
    const qat_foreign_tensor *shape = fold_input(b, 0);
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
    return fold_give(b, t);
}

/* ------------------------------------------------------------------ same values */

static qat_status with_shape(builder *b, const qat_foreign_tensor *from, int rank,
                             const int64_t *dims)
{
    qat_foreign_tensor *t = fv_take(b, &b->arena, 1, sizeof *t);
    if (!t)
        return fold_give(b, NULL);
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
               ? fold_give(b, t)
               : fv_refuse(b, "a shape of %zu values for a constant of %zu", count, from->count);
}

static qat_status fold_identity(builder *b)
{
    return fold_give(b, fold_input(b, 0));
}

static qat_status fold_cast(builder *b)
{
    enum { FLOAT = 1, BOOLEAN = 9, FLOAT16 = 10, DOUBLE = 11, BFLOAT16 = 16 };
    const qat_foreign_tensor *x = fold_input(b, 0);
    int64_t const to = fv_attr_int(b, "to", 0);
    bool const is_float = to == FLOAT || to == FLOAT16 || to == DOUBLE || to == BFLOAT16;
    qat_foreign_tensor *t =
        fv_constant(b, is_float ? QAT_FOREIGN_FLOAT : QAT_FOREIGN_INT, x->rank, x->dims);
    for (size_t i = 0; t && i < x->count; i++) {
        double const v = fold_value(x, i);
        if (is_float)
            ((float *)t->floats)[i] = (float)v;
        else if (to == BOOLEAN)
            ((int64_t *)t->ints)[i] = x->type == QAT_FOREIGN_INT ? x->ints[i] != 0 : v != 0;
        else
            ((int64_t *)t->ints)[i] = x->type == QAT_FOREIGN_INT ? x->ints[i]
                                      : fabs(v) < 9e18           ? (int64_t)v
                                                                 : 0;
    }
    return fold_give(b, t);
}

static qat_status fold_reshape(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
    int64_t dims[QAT_FOREIGN_RANK], known = 1;
    int n, unknown = -1;
    qat_status const st = fv_ints(b, 1, "shape", dims, QAT_FOREIGN_RANK, &n);
    bool const zero_copies = !fv_attr_int(b, "allowzero", 0);
    if (st)
        return st;
    for (int i = 0; i < n; i++) {
        dims[i] = dims[i] == 0 && zero_copies && i < x->rank ? x->dims[i] : dims[i];
        if (dims[i] == -1 && unknown < 0)
            unknown = i;
        else if (dims[i] < 0 || dims[i] > INT32_MAX || (known *= dims[i]) > INT32_MAX)
            return fv_refuse(b, "shape: %lld is not a dimension", (long long)dims[i]);
    }
    if (unknown >= 0 && !known)
        return fv_refuse(b, "shape: -1 beside a dimension of 0 may be any number");
    if (unknown >= 0)
        dims[unknown] = (int64_t)x->count / known;
    return with_shape(b, x, n > 0 ? n : 0, dims);
}

static qat_status fold_squeeze(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
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
    const qat_foreign_tensor *x = fold_input(b, 0);
    int64_t dims[QAT_FOREIGN_RANK];
    int rank = x->rank;
    qat_status const st = fv_unsqueezed(b, x->dims, &rank, dims);
    return st ? st : with_shape(b, x, rank, dims);
}

static qat_status fold_flatten(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
    int64_t const axis = fv_attr_int(b, "axis", 1), from = axis < 0 ? axis + x->rank : axis;
    int64_t dims[] = {1, 1};
    if (from < 0 || from > x->rank)
        return fv_refuse(b, "axis %lld of %d dimensions", (long long)axis, x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i >= from] *= x->dims[i];
    return with_shape(b, x, 2, dims);
}

/* ------------------------------------------------------------------ all of them */

static const fv_operator folds[] = {
    {"Constant", fold_constant},
    {"ConstantOfShape", fold_constant_of_shape},
    {"Identity", fold_identity},
    {"Cast", fold_cast},
    {"Reshape", fold_reshape},
    {"Flatten", fold_flatten},
    {"Squeeze", fold_squeeze},
    {"Unsqueeze", fold_unsqueeze},
    {NULL, NULL},
};

static const fv_operator *operator_of(const char *op)
{
    static const fv_operator *const tables[] = {folds, fold_moves, fold_arithmetic};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const fv_operator *o = tables[t]; o->op; o++)
            if (!strcmp(o->op, op))
                return o;
    return NULL;
}

/** How many inputs an operator needs before it can be folded. */
static int least_inputs(const char *op)
{
    static const char *const two[] = {"Gather", "Expand", "Add",   "Sub",  "Mul",    "Div",
                                      "Pow",    "Mod",    "Equal", "Less", "Greater"};
    if (!strcmp(op, "Where"))
        return 3;
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
    const fv_operator *o = operator_of(b->node->op);
    for (int i = 0; o && i < least_inputs(o->op); i++)
        if (!fold_input(b, i))
            return fv_refuse(b, "it has too few inputs");
    if (o)
        return o->build(b);
    return given ? fv_refuse(b, "this operator is not supported on constants")
                 : fv_refuse(b, "this operator has no inputs here");
}
