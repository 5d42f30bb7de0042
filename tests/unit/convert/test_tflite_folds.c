/**
 * .tflite files in which several operators become one op, or none: shapes of more axes than the
 * engine has, integers that are known at import, float32 functions of one code, variables of
 * resources. The files are made here; the answers are computed by hand.
 */
#include "common/suite.h"
#include "common/tflite_import.h"
#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { MOST_TENSORS = 20, MOST_OPS = 10, MOST_VALUES = 256 };

/** A model that is made tensor by tensor and operator by operator. */
struct net {
    build_tensor tensors[MOST_TENSORS];
    build_op ops[MOST_OPS];
    build_model model;
};

static void begin(struct net *n)
{
    *n = (struct net){.model = {.n_inputs = 1, .n_outputs = 1}};
    n->model.tensors = n->tensors;
    n->model.ops = n->ops;
}

/** Append a tensor of any type; of int8 its scale is 1/2 and its zero point 3. */
static int tensor(struct net *n, int type, int rank, const int32_t *dims)
{
    build_tensor *t = &n->tensors[n->model.n_tensors];
    ck_assert_int_lt(n->model.n_tensors, MOST_TENSORS);
    *t = (build_tensor){.name = "t", .type = type, .rank = rank};
    if (type == TFL_INT8) {
        t->scale = 0.5f;
        t->zero_point = 3;
    }
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    return n->model.n_tensors++;
}

static int ints(struct net *n, int count, const int32_t *values)
{
    int const t = tensor(n, TFL_INT32, 1, &(int32_t){count});
    n->tensors[t].data = values;
    n->tensors[t].bytes = (size_t)count * sizeof *values;
    return t;
}

/** A scalar. */
static int number(struct net *n, int type, const void *value)
{
    int const t = tensor(n, type, 0, NULL);
    n->tensors[t].data = value;
    n->tensors[t].bytes = type == TFL_INT8 ? 1 : 4;
    return t;
}

/** Append an operator with up to three inputs (-1: not that many) and one output (-1: none). */
static build_op *op(struct net *n, int code, int a, int b, int c, int y)
{
    build_op *o = &n->ops[n->model.n_ops++];
    int const inputs[] = {a, b, c};
    ck_assert_int_le(n->model.n_ops, MOST_OPS);
    *o = (build_op){.code = code, .n_outputs = y >= 0, .outputs = {y}};
    while (o->n_inputs < 3 && inputs[o->n_inputs] >= 0) {
        o->inputs[o->n_inputs] = inputs[o->n_inputs];
        o->n_inputs++;
    }
    return o;
}

static void option(build_op *o, int table, int field, uint32_t value)
{
    o->options_type = table;
    o->options[o->n_options++] = (build_option){field, value};
}

/** The model's output on the codes 0, 1, 2 ... */
static void answer(struct net *n, int x, int y, int8_t *codes, size_t count)
{
    int8_t in[MOST_VALUES];
    qi_host *h = NULL;
    n->model.inputs[0] = x;
    n->model.outputs[0] = y;
    for (int i = 0; i < MOST_VALUES; i++)
        in[i] = (int8_t)i;
    test_open_built(&h, &n->model);
    ck_assert_uint_eq(qi_tensor_at(qi_host_model(h), qi_output_at(qi_host_model(h), 0))->bytes,
                      count);
    qi_host_run(h, (const void *const[]){in}, (void *const[]){codes});
    qi_host_close(h);
}

static void refuse(struct net *n, int x, int y, const char *says)
{
    n->model.inputs[0] = x;
    n->model.outputs[0] = y;
    test_refuse_built(&n->model, says);
}

/* ------------------------------------------------------------------ many axes */

enum { AXES = 5, VALUES = 2 * 3 * 2 * 2 * 4 };
static const int32_t many[AXES] = {2, 3, 2, 2, 4};

/** The value at a position of `many`. */
static int8_t value_at(const int32_t at[AXES])
{
    int32_t v = 0;
    for (int d = 0; d < AXES; d++)
        v = v * many[d] + at[d];
    return (int8_t)v;
}

/** The position behind, in a shape; false behind the last. */
static bool next(int32_t at[AXES], const int32_t dims[AXES])
{
    for (int d = AXES - 1; d >= 0; d--) {
        if (++at[d] < dims[d])
            return true;
        at[d] = 0;
    }
    return false;
}

/** Permutations whose axes the engine can have, and one that it can have only in steps. */
static const int32_t permutations[][AXES] = {
    {0, 2, 1, 3, 4}, {0, 1, 4, 2, 3}, {4, 3, 2, 1, 0}, {1, 0, 2, 4, 3}, {2, 4, 1, 3, 0}};

START_TEST(many_axes_are_permuted)
{
    const int32_t *perm = permutations[_i];
    struct net n;
    int8_t got[VALUES];
    int32_t dims[AXES], at[AXES] = {0};
    for (int d = 0; d < AXES; d++)
        dims[d] = many[perm[d]];
    begin(&n);
    int const x = tensor(&n, TFL_INT8, AXES, many), y = tensor(&n, TFL_INT8, AXES, dims);
    op(&n, TFL_TRANSPOSE, x, ints(&n, AXES, perm), -1, y);
    answer(&n, x, y, got, sizeof got);
    size_t i = 0;
    do {
        int32_t from[AXES];
        for (int d = 0; d < AXES; d++)
            from[perm[d]] = at[d];
        ck_assert_int_eq(got[i++], value_at(from));
    } while (next(at, dims));
}
END_TEST

START_TEST(many_axes_are_cut)
{
    static const int32_t first[AXES] = {0, 1, 0, 0, 3}, past[AXES] = {2, 3, 2, 2, 0};
    static const int32_t stride[AXES] = {1, 1, 1, 1, -2}, dims[AXES] = {2, 2, 2, 2, 2};
    struct net n;
    int8_t got[32];
    int32_t at[AXES] = {0};
    begin(&n);
    int const x = tensor(&n, TFL_INT8, AXES, many), y = tensor(&n, TFL_INT8, AXES, dims);
    op(&n, TFL_STRIDED_SLICE, x, ints(&n, AXES, first), ints(&n, AXES, past), y);
    n.ops[0].inputs[n.ops[0].n_inputs++] = ints(&n, AXES, stride);
    answer(&n, x, y, got, sizeof got);
    size_t i = 0;
    do {
        int32_t from[AXES];
        for (int d = 0; d < AXES; d++)
            from[d] = first[d] + at[d] * stride[d];
        ck_assert_int_eq(got[i++], value_at(from));
    } while (next(at, dims));
}
END_TEST

/** Parts are joined again, repeated and reduced. */
START_TEST(many_axes_are_joined_repeated_and_reduced)
{
    static const int32_t two = 2, axes[] = {1, 4}, times[AXES] = {1, 1, 1, 2, 1};
    static const int32_t half[AXES] = {2, 3, 1, 2, 4}, longer[AXES] = {2, 3, 2, 4, 4};
    static const int32_t less[] = {2, 2, 4};
    struct net n;
    int8_t got[16];
    begin(&n);
    int const x = tensor(&n, TFL_INT8, AXES, many), a = tensor(&n, TFL_INT8, AXES, half);
    int const b = tensor(&n, TFL_INT8, AXES, half), swapped = tensor(&n, TFL_INT8, AXES, many);
    int const again = tensor(&n, TFL_INT8, AXES, longer), y = tensor(&n, TFL_INT8, 3, less);
    build_op *split = op(&n, TFL_SPLIT, number(&n, TFL_INT32, &two), x, -1, a);
    split->outputs[split->n_outputs++] = b;
    option(split, TFL_OPTIONS_SPLIT, SPLIT_COUNT, 2);
    option(op(&n, TFL_CONCATENATION, b, a, -1, swapped), TFL_OPTIONS_CONCATENATION,
           CONCATENATION_AXIS, 2);
    op(&n, TFL_TILE, swapped, ints(&n, AXES, times), -1, again);
    op(&n, TFL_REDUCE_MAX, again, ints(&n, 2, axes), -1, y);
    answer(&n, x, y, got, sizeof got);
    for (int i = 0; i < 16; i++) {
        int32_t const from[AXES] = {i / 8, 2, 1 - i / 4 % 2, i % 2, 3};
        ck_assert_int_eq(got[i], value_at(from));
    }
}
END_TEST

/** Axes that the engine sees as one broadcast only together. */
START_TEST(many_axes_broadcast)
{
    static const int32_t row[] = {1, 1, 2, 1, 4}, other[] = {1, 3, 1, 1, 4};
    static const int8_t codes[24] = {3, 3, 3, 3, 5, 5, 5, 5};
    struct net n;
    int8_t got[VALUES];
    begin(&n);
    int const x = tensor(&n, TFL_INT8, AXES, many), y = tensor(&n, TFL_INT8, AXES, many);
    int const w = tensor(&n, TFL_INT8, AXES, row);
    n.tensors[w].data = codes;
    n.tensors[w].bytes = 8;
    op(&n, TFL_ADD, x, w, -1, y);
    answer(&n, x, y, got, sizeof got);
    for (int i = 0; i < VALUES; i++)
        ck_assert_int_eq(got[i], i + 2 * (i / 8 % 2)); /* (5 - 3) more in the second half */
    memcpy(n.tensors[w].dims, other, sizeof other);
    n.tensors[w].bytes = 12;
    refuse(&n, x, y, "its shapes broadcast along more axes than the engine has");
}
END_TEST

/* ------------------------------------------------------------------ known integers */

/** A function of 7 and 2, and of -7 and 2, is the shape of a RESHAPE of 21 or -... values. */
static const struct {
    int code, options;
    int32_t a, b, y;
} functions[] = {
    {TFL_ADD, TFL_OPTIONS_ADD, 5, 2, 7},
    {TFL_SUB, TFL_OPTIONS_SUB, 9, 2, 7},
    {TFL_MUL, TFL_OPTIONS_MUL, -1, -7, 7},
    {TFL_DIV, TFL_OPTIONS_DIV, -15, -2, 7},
    {TFL_FLOOR_DIV, TFL_OPTIONS_FLOOR_DIV, 22, 3, 7},
    {TFL_FLOOR_MOD, TFL_OPTIONS_FLOOR_MOD, -1, 8, 7},
    {TFL_MAXIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 7, -9, 7},
    {TFL_MINIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 7, 9, 7},
    {TFL_REDUCE_PROD, TFL_OPTIONS_REDUCER, 7, 0, 7},
    {TFL_SUM, TFL_OPTIONS_REDUCER, 7, 0, 7},
    {TFL_FILL, TFL_OPTIONS_FILL, 1, 7, 7},
    {TFL_GATHER, TFL_OPTIONS_GATHER, 7, 0, 7},
};

START_TEST(functions_of_known_integers_are_known)
{
    static const int32_t dims[] = {1, 21};
    struct net n;
    int8_t got[21];
    begin(&n);
    int const x = tensor(&n, TFL_INT8, 2, dims), y = tensor(&n, TFL_INT8, 2, dims);
    int const a = ints(&n, 1, &functions[_i].a), b = number(&n, TFL_INT32, &functions[_i].b);
    int const first = tensor(&n, TFL_INT32, 1, dims), shape = tensor(&n, TFL_INT32, 1, dims);
    int const rest = ints(&n, 1, &(const int32_t){-1});
    build_op *o = op(&n, functions[_i].code, a, b, -1, first);
    option(o, functions[_i].options, 0,
           functions[_i].code == TFL_REDUCE_PROD || functions[_i].code == TFL_SUM);
    if (functions[_i].code == TFL_FILL || functions[_i].code == TFL_GATHER)
        o->n_options = 0;
    op(&n, TFL_CONCATENATION, first, rest, -1, shape);
    op(&n, TFL_RESHAPE, x, shape, -1, y);
    n.model.inputs[0] = x;
    if (functions[_i].code == TFL_GATHER) { /* of a scalar index is a scalar */
        n.tensors[b].rank = 1;
        n.tensors[b].dims[0] = 1;
    }
    answer(&n, x, y, got, sizeof got);
    qi_host *h = NULL;
    test_open_built(&h, &n.model);
    ck_assert_int_eq(qi_node_count(qi_host_model(h)), 1);
    const qi_tensor *t = qi_tensor_at(qi_host_model(h), qi_output_at(qi_host_model(h), 0));
    ck_assert_int_eq(t->dims[0], functions[_i].y);
    ck_assert_int_eq(t->dims[1], 3);
    qi_host_close(h);
}
END_TEST

START_TEST(what_is_not_known_is_refused)
{
    static const int32_t dims[] = {1, 4}, zero = 0, one = 1, large[] = {INT32_MAX, INT32_MAX, 2};
    struct net n;
    begin(&n);
    int const x = tensor(&n, TFL_INT8, 2, dims), y = tensor(&n, TFL_INT8, 2, dims);
    int const shape = tensor(&n, TFL_INT32, 1, dims);
    int const a = number(&n, TFL_INT32, &one), b = number(&n, TFL_INT32, &zero);
    op(&n, TFL_FLOOR_DIV, a, b, -1, shape);
    op(&n, TFL_RESHAPE, x, shape, -1, y);
    refuse(&n, x, y, "it divides by 0");
    n.ops[0].code = TFL_ADD;
    option(&n.ops[0], TFL_OPTIONS_ADD, BINARY_ACTIVATION, TFL_ACT_RELU);
    refuse(&n, x, y, "fused activation 1 is not supported");
    n.ops[0].options_type = n.ops[0].n_options = 0;
    n.ops[0].code = 250;
    refuse(&n, x, y, "op 0 (number 250, writes");
    n.ops[0].code = TFL_RANGE;
    n.ops[0].n_inputs = 3;
    n.ops[0].inputs[2] = b;
    refuse(&n, x, y, "from 1 to 0 by 0");
    n.ops[0].inputs[2] = a;
    refuse(&n, x, y, "it makes no values");
    n.ops[0].code = TFL_REDUCE_PROD;
    n.ops[0].n_inputs = 2;
    n.ops[0].inputs[0] = ints(&n, 3, large);
    refuse(&n, x, y, "its numbers are too large");
    n.ops[0].code = TFL_FILL;
    n.ops[0].inputs[0] = b;
    refuse(&n, x, y, "a shape with a dimension of 0");
    n.ops[0].code = TFL_GATHER;
    n.ops[0].inputs[0] = ints(&n, 1, dims);
    n.ops[0].inputs[1] = ints(&n, 1, &one);
    refuse(&n, x, y, "index 1 of a dimension of 1");
}
END_TEST

/** FILL of a code makes a constant. */
START_TEST(codes_are_filled)
{
    static const int32_t dims[] = {2, 4};
    static const int8_t five = 5;
    struct net n;
    int8_t got[8];
    begin(&n);
    int const x = tensor(&n, TFL_INT8, 2, dims), y = tensor(&n, TFL_INT8, 2, dims);
    int const filled = tensor(&n, TFL_INT8, 2, dims);
    op(&n, TFL_FILL, ints(&n, 2, dims), number(&n, TFL_INT8, &five), -1, filled);
    op(&n, TFL_ADD, x, filled, -1, y);
    answer(&n, x, y, got, sizeof got);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(got[i], i + 2);
    n.tensors[filled].zero_point = 4;
    refuse(&n, x, y, "is not a constant on the grid of its output");
}
END_TEST

/* ------------------------------------------------------------------ real functions */

/** 0.25 (x^2 + x), as DEQUANTIZE and float32 operators have it, and moved as real numbers. */
START_TEST(real_functions_of_a_code_are_tables)
{
    static const int32_t dims[] = {2, 4}, turned[] = {4, 2}, perm[] = {1, 0};
    static const float quarter = 0.25f;
    struct net n;
    int8_t got[8];
    begin(&n);
    int const x = tensor(&n, TFL_INT8, 2, dims), y = tensor(&n, TFL_INT8, 2, turned);
    int real[5];
    for (int i = 0; i < 5; i++)
        real[i] = tensor(&n, TFL_FLOAT32, 2, i ? turned : dims);
    op(&n, TFL_DEQUANTIZE, x, -1, -1, real[0]);
    op(&n, TFL_TRANSPOSE, real[0], ints(&n, 2, perm), -1, real[1]);
    op(&n, TFL_SQUARE, real[1], -1, -1, real[2]);
    op(&n, TFL_ADD, real[2], real[1], -1, real[3]);
    op(&n, TFL_MUL, number(&n, TFL_FLOAT32, &quarter), real[3], -1, real[4]);
    op(&n, TFL_QUANTIZE, real[4], -1, -1, y);
    answer(&n, x, y, got, sizeof got);
    for (int i = 0; i < 8; i++) {
        float const r = 0.5f * (float)(i % 2 * 4 + i / 2 - 3);
        ck_assert_int_eq(got[i], (int)roundf(0.25f * (r * r + r) / 0.5f) + 3);
    }
    n.ops[4].inputs[0] = real[0];
    n.ops[4].inputs[1] = x; /* another number of operators reads float32 */
    refuse(&n, x, y, "is float32, and not a function of one 8-bit code");
    n.model.n_ops = 4;
    refuse(&n, x, real[3], "is computed in floating point");
}
END_TEST

/* ------------------------------------------------------------------ variables */

/** y = x + v, v = y: a sum over runs. */
START_TEST(a_variable_is_a_state)
{
    static const int32_t dims[] = {1, 4};
    struct net n;
    int8_t const in[] = {4, 5, 3, 2}; /* minus the zero point: 1, 2, 0, -1 */
    int8_t got[4];
    qi_host *h = NULL;
    begin(&n);
    int const x = tensor(&n, TFL_INT8, 2, dims), y = tensor(&n, TFL_INT8, 2, dims);
    int const v = tensor(&n, TFL_INT8, 2, dims), handle = tensor(&n, 13, 0, NULL);
    op(&n, TFL_VAR_HANDLE, -1, -1, -1, handle);
    op(&n, TFL_READ_VARIABLE, handle, -1, -1, v);
    op(&n, TFL_ADD, x, v, -1, y);
    op(&n, TFL_ASSIGN_VARIABLE, handle, y, -1, -1);
    n.model.inputs[0] = x;
    n.model.outputs[0] = y;
    test_open_built(&h, &n.model);
    for (int run = 1; run <= 3; run++) {
        qi_host_run(h, (const void *const[]){in}, (void *const[]){got});
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(got[i], 3 + run * (in[i] - 3));
    }
    qi_host_close(h);
    n.ops[3].inputs[0] = x;
    refuse(&n, x, y, "its input 0 is no variable of a VAR_HANDLE");
    n.ops[3].inputs[0] = handle;
    option(op(&n, TFL_CALL_ONCE, -1, -1, -1, -1), TFL_OPTIONS_CALL_ONCE, CALL_ONCE_SUBGRAPH, 1);
    refuse(&n, x, y, "no subgraph 1, but 1 subgraphs");
    n.model.subgraphs = 2; /* of the same operators */
    refuse(&n, x, y, "does more than to set a variable to a constant");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tflite_folds");
    TCase *tcase = tcase_create("made here");
    tcase_add_loop_test(tcase, many_axes_are_permuted, 0,
                        (int)(sizeof permutations / sizeof *permutations));
    tcase_add_test(tcase, many_axes_are_cut);
    tcase_add_test(tcase, many_axes_are_joined_repeated_and_reduced);
    tcase_add_test(tcase, many_axes_broadcast);
    tcase_add_loop_test(tcase, functions_of_known_integers_are_known, 0,
                        (int)(sizeof functions / sizeof *functions));
    tcase_add_test(tcase, what_is_not_known_is_refused);
    tcase_add_test(tcase, codes_are_filled);
    tcase_add_test(tcase, real_functions_of_a_code_are_tables);
    tcase_add_test(tcase, a_variable_is_a_state);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
