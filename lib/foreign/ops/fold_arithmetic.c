/** Arithmetic of constants. */
#include "foreign/ops/fold.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ two or three */

static bool power_of(int64_t x, int64_t y, int64_t *z)
{
    *z = 1;
    bool fits = y >= 0 && y < 64;
    for (int64_t i = 0; fits && i < y; i++)
        fits = !__builtin_mul_overflow(*z, x, z);
    return fits;
}

/** False: the result is no number of 64 bits. */
static bool combine_ints(const char *op, int64_t x, int64_t y, int64_t *z)
{
    bool const divides = y != 0 && !(x == INT64_MIN && y == -1);
    if (!strcmp(op, "Add"))
        return !__builtin_add_overflow(x, y, z);
    if (!strcmp(op, "Sub"))
        return !__builtin_sub_overflow(x, y, z);
    if (!strcmp(op, "Mul"))
        return !__builtin_mul_overflow(x, y, z);
    if (!strcmp(op, "Pow"))
        return power_of(x, y, z);
    if (!strcmp(op, "Div")) {
        *z = divides ? x / y : 0;
        return divides;
    }
    *z = divides ? x % y : 0;
    if (!strcmp(op, "Mod")) /* of the divisor's sign; with fmod = 1 of the dividend's */
        *z += divides && *z != 0 && (*z < 0) != (y < 0) ? y : 0;
    return divides;
}

static float combine_floats(const char *op, float x, float y)
{
    return !strcmp(op, "Add")   ? x + y
           : !strcmp(op, "Sub") ? x - y
           : !strcmp(op, "Mul") ? x * y
           : !strcmp(op, "Div") ? x / y
           : !strcmp(op, "Pow") ? powf(x, y)
                                : fmodf(x, y);
}

/** Expand constants to the dimensions that they have together. */
static qat_status together(builder *b, int n, const qat_foreign_tensor **x)
{
    int64_t dims[QAT_FOREIGN_RANK];
    int rank = 0;
    for (int i = 0; i < n; i++)
        rank = x[i]->rank > rank ? x[i]->rank : rank;
    for (int d = 0; d < rank; d++) {
        dims[d] = 1;
        for (int i = 0; i < n; i++) {
            int const k = d - (rank - x[i]->rank);
            int64_t const is = k < 0 ? 1 : x[i]->dims[k];
            if (is != dims[d] && is != 1 && dims[d] != 1)
                return fv_refuse(b, "of constants of different shapes");
            dims[d] = dims[d] == 1 ? is : dims[d];
        }
    }
    for (int i = 0; i < n; i++) {
        x[i] = fold_expand(b, x[i], rank, dims);
        if (!x[i])
            return fv_graph_error(b);
    }
    return QAT_OK;
}

static qat_status fold_binary(builder *b)
{
    const qat_foreign_tensor *x[] = {fold_input(b, 0), fold_input(b, 1)};
    bool const is_fmod = !strcmp(b->node->op, "Mod") && fv_attr_int(b, "fmod", 0) != 0;
    const char *op = is_fmod ? "fmod" : b->node->op;
    if (x[0]->type != x[1]->type)
        return fv_refuse(b, "of constants of different kinds");
    qat_status const st = together(b, 2, x);
    qat_foreign_tensor *t = st ? NULL : fv_constant(b, x[0]->type, x[0]->rank, x[0]->dims);
    for (size_t i = 0; t && i < t->count; i++) {
        if (t->type == QAT_FOREIGN_FLOAT)
            ((float *)t->floats)[i] = combine_floats(op, x[0]->floats[i], x[1]->floats[i]);
        else if (!combine_ints(op, x[0]->ints[i], x[1]->ints[i], (int64_t *)&t->ints[i]))
            return fv_refuse(b, "of integers that cannot be combined so");
    }
    return st ? st : fold_give(b, t);
}

static qat_status fold_compare(builder *b)
{
    const qat_foreign_tensor *x[] = {fold_input(b, 0), fold_input(b, 1)};
    char const op = *b->node->op;
    qat_status const st = together(b, 2, x);
    qat_foreign_tensor *t = st ? NULL : fv_constant(b, QAT_FOREIGN_INT, x[0]->rank, x[0]->dims);
    for (size_t i = 0; t && i < t->count; i++) {
        double const p = fold_value(x[0], i), q = fold_value(x[1], i);
        bool const ints = x[0]->type == QAT_FOREIGN_INT && x[1]->type == QAT_FOREIGN_INT;
        int const order = ints ? (x[0]->ints[i] > x[1]->ints[i]) - (x[0]->ints[i] < x[1]->ints[i])
                               : (p > q) - (p < q);
        bool const ordered = ints || (!isnan(p) && !isnan(q));
        ((int64_t *)t->ints)[i] = ordered && (op == 'E'   ? order == 0
                                              : op == 'L' ? order < 0
                                                          : order > 0);
    }
    return st ? st : fold_give(b, t);
}

static qat_status fold_where(builder *b)
{
    const qat_foreign_tensor *x[] = {fold_input(b, 0), fold_input(b, 1), fold_input(b, 2)};
    if (x[0]->type != QAT_FOREIGN_INT || x[1]->type != x[2]->type)
        return fv_refuse(b, "of constants of different kinds");
    qat_status const st = together(b, 3, x);
    qat_foreign_tensor *t = st ? NULL : fv_constant(b, x[1]->type, x[0]->rank, x[0]->dims);
    for (size_t i = 0; t && i < t->count; i++)
        fold_copy(t, i, x[0]->ints[i] ? x[1] : x[2], i);
    return st ? st : fold_give(b, t);
}

/* ------------------------------------------------------------------ one */

static float of_float(const char *op, float v)
{
    return !strcmp(op, "Neg")          ? -v
           : !strcmp(op, "Abs")        ? fabsf(v)
           : !strcmp(op, "Floor")      ? floorf(v)
           : !strcmp(op, "Ceil")       ? ceilf(v)
           : !strcmp(op, "Exp")        ? expf(v)
           : !strcmp(op, "Log")        ? logf(v)
           : !strcmp(op, "Reciprocal") ? 1 / v
                                       : sqrtf(v);
}

static qat_status fold_unary(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0);
    const char *op = b->node->op;
    bool const keeps_integers =
        !strcmp(op, "Neg") || !strcmp(op, "Abs") || !strcmp(op, "Floor") || !strcmp(op, "Ceil");
    if (x->type == QAT_FOREIGN_INT && !keeps_integers)
        return fv_refuse(b, "of integers");
    qat_foreign_tensor *t = fv_constant(b, x->type, x->rank, x->dims);
    for (size_t i = 0; t && i < t->count; i++) {
        if (x->type == QAT_FOREIGN_FLOAT) {
            ((float *)t->floats)[i] = of_float(op, x->floats[i]);
            continue;
        }
        int64_t const v = x->ints[i];
        bool const turns = v != INT64_MIN && (!strcmp(op, "Neg") || (!strcmp(op, "Abs") && v < 0));
        ((int64_t *)t->ints)[i] = turns ? -v : v;
    }
    return fold_give(b, t);
}

/** Clip: bounds of inputs 1 and 2, of the same kind. */
static qat_status fold_clip(builder *b)
{
    const qat_foreign_tensor *x = fold_input(b, 0), *ends[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        ends[i] = b->node->n_inputs > 1 + i && fv_input(b, 1 + i) ? fold_input(b, 1 + i) : NULL;
        if (ends[i] && (ends[i]->type != x->type || ends[i]->count != 1))
            return fv_refuse(b, "its bound %d is not one number of the input's kind", i + 1);
    }
    if (fv_attr(b, "min") || fv_attr(b, "max"))
        return fv_refuse(b, "attributes min and max of a constant");
    qat_foreign_tensor *t = fv_constant(b, x->type, x->rank, x->dims);
    for (size_t i = 0; t && i < t->count; i++) {
        fold_copy(t, i, x, i);
        for (int e = 0; e < 2; e++) {
            double const now = fold_value(t, i), end = ends[e] ? fold_value(ends[e], 0) : now;
            if (e ? now > end : now < end)
                fold_copy(t, i, ends[e], 0);
        }
    }
    if (t)
        t->stored = x->stored;
    return fold_give(b, t);
}

const fv_operator fold_arithmetic[] = {
    {"Add", fold_binary},    {"Sub", fold_binary},   {"Mul", fold_binary},
    {"Div", fold_binary},    {"Pow", fold_binary},   {"Mod", fold_binary},
    {"Equal", fold_compare}, {"Less", fold_compare}, {"Greater", fold_compare},
    {"Where", fold_where},   {"Neg", fold_unary},    {"Abs", fold_unary},
    {"Floor", fold_unary},   {"Ceil", fold_unary},   {"Sqrt", fold_unary},
    {"Exp", fold_unary},     {"Log", fold_unary},    {"Reciprocal", fold_unary},
    {"Clip", fold_clip},     {NULL, NULL},
};
