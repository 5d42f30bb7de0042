/**
 * Operators of other frameworks' files that move values, and inputs with and without a batch
 * dimension: what the ONNX project's own tests do not have.
 */
#include "common/foreign_made.h"
#include "common/suite.h"

#include <check.h>
#include <math.h>

/* ------------------------------------------------------------------ without a batch dimension */

START_TEST(a_list_is_one_sample)
{
    made_network n;
    made_begin(&n, 1, (const int64_t[]){4});
    int const w = made_constant(&n, 2, (const int64_t[]){4, 2},
                                (const float[]){1, 0, 0, 1, 1, 0, 0, 1}, NULL);
    made_node(&n, "MatMul", 0, w, -1);
    made_gives(&n, 1, 1, 4, made_counted, 2, (const float[]){4, 6}, 2);
}
END_TEST

START_TEST(a_picture_is_one_sample)
{
    /* [2, 2, 3] as [H, W, C]; flattened along dimension 0 it is in the file's order. */
    static const float want[] = {1, 3, 5, 7, 9, 11, 2, 4, 6, 8, 10, 12};
    made_network n;
    made_begin(&n, 3, (const int64_t[]){2, 2, 3});
    made_node(&n, "Flatten", 0, -1, -1);
    made_int(&n, "axis", 0);
    made_gives(&n, 2, 3, 2, made_counted, 12, want, 1);
}
END_TEST

START_TEST(frames_are_one_sample)
{
    made_network n;
    made_begin(&n, 2, (const int64_t[]){3, 2});
    int const axes = made_list(&n, 1, (const int64_t[]){0});
    made_node(&n, "ReduceMean", 0, axes, -1);
    made_int(&n, "keepdims", 0);
    made_gives(&n, 1, 3, 2, made_counted, 2, (const float[]){3, 4}, 1);
}
END_TEST

START_TEST(rows_have_any_dimensions)
{
    static const float want[] = {1, 5, 2, 6, 3, 7, 4, 8};
    made_network n;
    made_begin(&n, 5, (const int64_t[]){1, 2, 2, 1, 2});
    made_node(&n, "Transpose", 0, -1, -1);
    made_ints(&n, "perm", 5, (const int64_t[]){3, 2, 4, 1, 0});
    made_gives(&n, 1, 1, 8, made_counted, 8, want, 1);
}
END_TEST

START_TEST(dimensions_that_do_not_fit_are_named)
{
    made_network n;
    made_begin(&n, 3, (const int64_t[]){2, 3, 4});
    made_node(&n, "Relu", 0, -1, -1);
    made_refuses(&n, 1, 1, 23, "is [2, 3, 4], but the data have height 1, width 1, 23");
}
END_TEST

START_TEST(a_batch_of_any_size_is_not_squeezed)
{
    made_network n;
    made_begin(&n, 3, (const int64_t[]){-1, 1, 3});
    made_node(&n, "Squeeze", 0, -1, -1);
    int const w = made_constant(&n, 2, (const int64_t[]){3, 1}, (const float[]){1, 1, 1}, NULL);
    made_node(&n, "Gemm", n.output, w, -1);
    made_gives(&n, 1, 3, 1, made_counted, 1, (const float[]){6}, 3);
}
END_TEST

/* ------------------------------------------------------------------ parts */

/** A list of n values from the last to the first. */
static void turn_round(made_network *n, int64_t count)
{
    static const int64_t back = -1, axis = 1;
    static int64_t end, dims[2];
    static int inputs[5];
    end = -count - 1;
    dims[0] = 1;
    dims[1] = count;
    made_begin(n, 2, dims);
    inputs[1] = made_list(n, 1, &back);
    inputs[2] = made_list(n, 1, &end);
    inputs[3] = made_list(n, 1, &axis);
    inputs[4] = inputs[1];
    made_node(n, "Slice", 0, -1, -1);
    n->nodes[0].inputs = inputs;
    n->nodes[0].n_inputs = 5;
}

START_TEST(positions_are_turned_round)
{
    static float x[QAT_FOREIGN_RUNS_MAX], want[QAT_FOREIGN_RUNS_MAX];
    made_network n;
    for (int i = 0; i < QAT_FOREIGN_RUNS_MAX; i++) {
        x[i] = (float)i;
        want[i] = (float)(QAT_FOREIGN_RUNS_MAX - 1 - i);
    }
    turn_round(&n, QAT_FOREIGN_RUNS_MAX);
    made_gives(&n, 1, 1, QAT_FOREIGN_RUNS_MAX, x, QAT_FOREIGN_RUNS_MAX, want, 1);
    turn_round(&n, QAT_FOREIGN_RUNS_MAX + 1);
    made_refuses(&n, 1, 1, QAT_FOREIGN_RUNS_MAX + 1, "in more than 1024 runs");
}
END_TEST

START_TEST(padding_continues_or_takes_away)
{
    /* Rows 1 2 3 / 4 5 6: one row in front, of the other end; a column less, one more behind. */
    static const float want[] = {5, 6, 5, 2, 3, 2, 5, 6, 5};
    made_network n;
    made_begin(&n, 4, (const int64_t[]){1, 1, 2, 3});
    int const pads = made_list(&n, 8, (const int64_t[]){0, 0, 1, -1, 0, 0, 0, 1});
    made_node(&n, "Pad", 0, pads, -1);
    made_text(&n, "mode", "wrap");
    made_gives(&n, 2, 3, 1, made_counted, 9, want, 1);
}
END_TEST

START_TEST(padding_with_a_number_has_any_dimension)
{
    static const float want[] = {9, 9, 1, 2, 3, 4};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){2, 2});
    int const pads = made_list(&n, 4, (const int64_t[]){1, 0, 0, 0});
    int const value = made_constant(&n, 0, NULL, (const float[]){9}, NULL);
    made_node(&n, "Pad", 0, pads, value);
    made_gives(&n, 1, 1, 4, made_counted, 6, want, NAN);
}
END_TEST

START_TEST(five_dimensions_in_any_order)
{
    float want[32];
    made_network n;
    made_begin(&n, 5, (const int64_t[]){2, 2, 2, 2, 2});
    made_node(&n, "Transpose", 0, -1, -1);
    made_ints(&n, "perm", 5, (const int64_t[]){3, 0, 4, 2, 1});
    for (int i = 0; i < 32; i++) {
        int const d[] = {i >> 4 & 1, i >> 3 & 1, i >> 2 & 1, i >> 1 & 1, i & 1};
        want[i] = made_counted[d[1] * 16 + d[4] * 8 + d[3] * 4 + d[0] * 2 + d[2]];
    }
    made_gives(&n, 1, 1, 32, made_counted, 32, want, 1);
}
END_TEST

/** Two parts of the data, of these dimensions, are added. */
static void add_parts(made_network *n, const int64_t *lengths, int rank, const int64_t *first,
                      const int64_t *second)
{
    made_begin(n, 1, (const int64_t[]){lengths[0] + lengths[1]});
    int const a = made_node(n, "Split", 0, -1, -1), b = n->graph.n_values++;
    n->values[b] = (qat_foreign_value){.name = "z"};
    static int outputs[2];
    outputs[0] = a;
    outputs[1] = b;
    n->nodes[0].outputs = outputs;
    n->nodes[0].n_outputs = 2;
    made_ints(n, "split", 2, lengths);
    int const x = made_node(n, "Reshape", a, made_list(n, rank, first), -1);
    int const y = made_node(n, "Reshape", b, made_list(n, rank, second), -1);
    made_node(n, "Add", x, y, -1);
}

START_TEST(values_repeat_each_other)
{
    static const float want[] = {4, 5, 6, 7, 5, 6, 7, 8};
    made_network n;
    int64_t const first[] = {2, 1, 1, 1, 1}, second[] = {1, 1, 2, 1, 2};
    add_parts(&n, (const int64_t[]){2, 4}, 5, first, second);
    made_gives(&n, 1, 1, 6, made_counted, 8, want, 2);
}
END_TEST

START_TEST(four_repetitions_are_too_many)
{
    made_network n;
    int64_t const first[] = {2, 1, 2, 1}, second[] = {1, 2, 1, 2};
    add_parts(&n, (const int64_t[]){4, 4}, 4, first, second);
    made_refuses(&n, 1, 1, 8, "repeat each other in more than three parts");
}
END_TEST

START_TEST(a_constant_repeats_a_value)
{
    static const float want[] = {2, 3, 4, 3, 4, 5};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){2, 1});
    int const c = made_constant(&n, 1, (const int64_t[]){3}, made_counted, NULL);
    made_node(&n, "Add", 0, c, -1);
    made_gives(&n, 1, 1, 2, made_counted, 6, want, 1);
}
END_TEST

/* ------------------------------------------------------------------ without values */

static void slice(made_network *n, int from, int64_t begin, int64_t end, int64_t step)
{
    int64_t *at = n->cuts[n->graph.n_nodes];
    at[0] = begin;
    at[1] = end;
    at[2] = 1;
    at[3] = step;
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    made_node(n, "Slice", from, -1, -1);
    for (int i = 0; i < 4; i++)
        made_ints(n, names[i], 1, &at[i]);
}

/** A part of no values joins nothing. */
START_TEST(parts_without_values_join)
{
    static const float twice[] = {1, 2, 3, 4, 1, 2, 3, 4};
    static int outputs[2];
    made_network n;
    made_begin(&n, 2, (const int64_t[]){1, 4});
    int const first = made_node(&n, "Split", 0, -1, -1), second = n.graph.n_values++;
    outputs[0] = first;
    outputs[1] = second;
    n.values[second] = (qat_foreign_value){.name = "second"};
    n.nodes[0].outputs = outputs;
    n.nodes[0].n_outputs = 2;
    made_int(&n, "axis", 1);
    made_ints(&n, "split", 2, (const int64_t[]){0, 4});
    made_node(&n, "Concat", first, second, -1);
    made_gives(&n, 1, 1, 4, made_counted, 4, made_counted, 1);
    made_begin(&n, 2, (const int64_t[]){1, 4});
    slice(&n, 0, 9, 9, 1);
    made_node(&n, "Concat", 0, n.output, 0);
    made_gives(&n, 1, 1, 4, made_counted, 8, twice, 1);
    made_begin(&n, 2, (const int64_t[]){1, 4});
    slice(&n, 0, 2, 2, -1);
    slice(&n, n.output, -1, -9, -1); /* of no values there is no last one */
    made_node(&n, "Concat", 0, n.output, 0);
    made_gives(&n, 1, 1, 4, made_counted, 8, twice, 1);
}
END_TEST

START_TEST(parts_without_values_are_refused)
{
    made_network n;
    made_begin(&n, 2, (const int64_t[]){1, 4});
    slice(&n, 0, 9, 9, 1);
    made_refuses(&n, 1, 1, 4, "its output has no values");
    made_begin(&n, 2, (const int64_t[]){1, 4});
    slice(&n, 0, 9, 9, 1);
    made_node(&n, "Reshape", n.output, made_list(&n, 2, (const int64_t[]){0, 1}), -1);
    made_int(&n, "allowzero", 1);
    made_node(&n, "Concat", 0, n.output, -1);
    made_refuses(&n, 1, 1, 4, "an input without values that does not fit the others");
    made_begin(&n, 2, (const int64_t[]){1, 4});
    slice(&n, 0, 9, 9, 1);
    made_node(&n, "Reshape", n.output, made_list(&n, 2, (const int64_t[]){0, -1}), -1);
    made_int(&n, "allowzero", 1);
    made_node(&n, "Concat", 0, n.output, -1);
    made_refuses(&n, 1, 1, 4, "-1 beside a dimension of 0");
}
END_TEST

/* ------------------------------------------------------------------ an embedding */

START_TEST(rows_of_a_table)
{
    static const float positions[] = {0, 2}, far[] = {-3, 9};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){1, 2});
    int table = made_constant(&n, 2, (const int64_t[]){4, 2}, made_counted, NULL);
    made_node(&n, "Gather", table, 0, -1);
    made_gives(&n, 1, 1, 2, positions, 4, (const float[]){1, 5, 2, 6},
               2);                                                   /* [N, W, C] of [N, C, W] */
    made_gives(&n, 1, 1, 2, far, 4, (const float[]){1, 7, 2, 8}, 0); /* the nearest ones */
    made_begin(&n, 2, (const int64_t[]){1, 2});
    table = made_constant(&n, 2, (const int64_t[]){2, 4}, made_counted, NULL);
    made_node(&n, "Gather", table, 0, -1);
    made_int(&n, "axis", -1);
    made_gives(&n, 1, 1, 2, positions, 4, (const float[]){1, 3, 5, 7}, 1);
    made_begin(&n, 2, (const int64_t[]){1, 2});
    table = made_constant(&n, 3, (const int64_t[]){2, 4, 2}, made_counted, NULL);
    made_node(&n, "Gather", table, 0, -1);
    made_int(&n, "axis", 1);
    made_gives(&n, 1, 1, 2, positions, 8, (const float[]){1, 2, 5, 6, 9, 10, 13, 14}, 2);
}
END_TEST

START_TEST(tables_that_are_none_are_refused)
{
    static const int64_t whole[] = {1, 2, 3, 4};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){1, 2});
    made_node(&n, "Gather", made_constant(&n, 2, (const int64_t[]){2, 2}, NULL, whole), 0, -1);
    made_refuses(&n, 1, 1, 2, "its data are constants, but not of floats");
    made_begin(&n, 2, (const int64_t[]){1, 2});
    made_node(&n, "Gather", made_constant(&n, 2, (const int64_t[]){0, 2}, made_counted, NULL), 0,
              -1);
    made_refuses(&n, 1, 1, 2, "a table of 0 rows");
    made_begin(&n, 2, (const int64_t[]){1, 2});
    made_node(&n, "Gather", made_constant(&n, 2, (const int64_t[]){2, 2}, made_counted, NULL), 0,
              -1);
    made_int(&n, "axis", 2);
    made_refuses(&n, 1, 1, 2, "axis 2 of 2 dimensions");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("foreign_moves");
    TCase *tc = tcase_create("foreign_moves");
    tcase_add_test(tc, a_list_is_one_sample);
    tcase_add_test(tc, a_picture_is_one_sample);
    tcase_add_test(tc, frames_are_one_sample);
    tcase_add_test(tc, rows_have_any_dimensions);
    tcase_add_test(tc, dimensions_that_do_not_fit_are_named);
    tcase_add_test(tc, a_batch_of_any_size_is_not_squeezed);
    tcase_add_test(tc, positions_are_turned_round);
    tcase_add_test(tc, padding_continues_or_takes_away);
    tcase_add_test(tc, padding_with_a_number_has_any_dimension);
    tcase_add_test(tc, five_dimensions_in_any_order);
    tcase_add_test(tc, values_repeat_each_other);
    tcase_add_test(tc, four_repetitions_are_too_many);
    tcase_add_test(tc, a_constant_repeats_a_value);
    tcase_add_test(tc, parts_without_values_join);
    tcase_add_test(tc, parts_without_values_are_refused);
    tcase_add_test(tc, rows_of_a_table);
    tcase_add_test(tc, tables_that_are_none_are_refused);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
