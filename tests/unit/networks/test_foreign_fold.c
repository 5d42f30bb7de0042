/**
 * What is computed of constants when a file is read. Each network adds its constant to an input of
 * zeros and ones.
 */
#include "common/foreign_made.h"
#include "common/suite.h"

#include <check.h>
#include <math.h>

enum { MOST = 32 };

/** The last node's constant, plus 0, is this. */
static void folds_to(made_network *n, int count, const float *want)
{
    static const float zeros[MOST];
    made_node(n, "Add", 0, n->output, -1);
    made_gives(n, 1, 1, count, zeros, count, want, 1);
}

static int six(made_network *n)
{
    return made_constant(n, 2, (const int64_t[]){2, 3}, made_counted, NULL);
}

START_TEST(sums_and_products_repeat)
{
    static const float want[] = {1, 2, 3, 2, 4, 6}, quotients[] = {1, 1, 1, 4, 2.5F, 2};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){2, 3});
    int const column = made_constant(&n, 2, (const int64_t[]){2, 1}, made_counted, NULL);
    int const row = made_constant(&n, 1, (const int64_t[]){3}, made_counted, NULL);
    made_node(&n, "Mul", column, row, -1);
    folds_to(&n, 6, want);
    made_begin(&n, 2, (const int64_t[]){2, 3});
    int const all = six(&n);
    made_node(&n, "Div", all, made_constant(&n, 1, (const int64_t[]){3}, made_counted, NULL), -1);
    folds_to(&n, 6, quotients);
}
END_TEST

START_TEST(slices_have_any_dimensions_and_steps)
{
    static const float want[] = {6, 4, 3, 1};
    static int inputs[5];
    made_network n;
    made_begin(&n, 2, (const int64_t[]){2, 2});
    inputs[0] = six(&n);
    inputs[1] = made_list(&n, 2, (const int64_t[]){-1, -1});
    inputs[2] = made_list(&n, 2, (const int64_t[]){-9, -9});
    inputs[3] = made_list(&n, 2, (const int64_t[]){0, 1});
    inputs[4] = made_list(&n, 2, (const int64_t[]){-1, -2});
    made_node(&n, "Slice", 0, -1, -1);
    n.nodes[0].inputs = inputs;
    n.nodes[0].n_inputs = 5;
    folds_to(&n, 4, want);
}
END_TEST

START_TEST(joins_and_gathers_have_any_dimension)
{
    static const float joined[] = {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}, gathered[] = {3, 1, 6, 4};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){2, 6});
    int const a = six(&n);
    made_node(&n, "Concat", a, a, -1);
    folds_to(&n, 12, joined);
    made_begin(&n, 2, (const int64_t[]){2, 2});
    int const b = six(&n);
    made_node(&n, "Gather", b, made_list(&n, 2, (const int64_t[]){-1, 0}), -1);
    made_int(&n, "axis", 1);
    folds_to(&n, 4, gathered);
}
END_TEST

START_TEST(parts_and_repetitions)
{
    static const float part[] = {2, 3, 5, 6}, repeated[] = {1, 1, 2, 2};
    static int outputs[2];
    made_network n;
    made_begin(&n, 2, (const int64_t[]){2, 2});
    int const first = made_node(&n, "Split", six(&n), -1, -1), second = n.graph.n_values++;
    outputs[0] = first;
    outputs[1] = second;
    n.values[second] = (qat_foreign_value){.name = "second"};
    n.nodes[0].outputs = outputs;
    n.nodes[0].n_outputs = 2;
    made_int(&n, "axis", 1);
    made_ints(&n, "split", 2, (const int64_t[]){1, 2});
    n.output = second;
    folds_to(&n, 4, part);
    made_begin(&n, 2, (const int64_t[]){2, 2});
    int const column = made_constant(&n, 2, (const int64_t[]){2, 1}, made_counted, NULL);
    made_node(&n, "Expand", column, made_list(&n, 1, (const int64_t[]){2}), -1);
    folds_to(&n, 4, repeated);
}
END_TEST

/** Exporters write -1 of a shape as 1 so: Where(Equal(shape, -1), 1, shape). */
START_TEST(shapes_are_chosen)
{
    static const float want[] = {1, 2, 3};
    made_network n;
    made_begin(&n, 2, (const int64_t[]){1, 3});
    int const shape = made_list(&n, 2, (const int64_t[]){-1, 3});
    int const unknown = made_list(&n, 1, (const int64_t[]){-1});
    int const one = made_list(&n, 1, (const int64_t[]){1});
    int const row = made_constant(&n, 1, (const int64_t[]){3}, made_counted, NULL);
    int const which = made_node(&n, "Equal", shape, unknown, -1);
    int const is = made_node(&n, "Where", which, one, shape);
    made_node(&n, "Reshape", row, is, -1);
    folds_to(&n, 3, want);
}
END_TEST

/* -7 mod 3, by both rules; 0.5 as a truth. */
START_TEST(remainders_and_truths)
{
    static const float want[] = {2, -1, 1, 0};
    static const float halves[] = {0.5F, 0};
    static int inputs[3];
    made_network n;
    made_begin(&n, 1, (const int64_t[]){4});
    int const x = made_list(&n, 1, (const int64_t[]){-7}),
              y = made_list(&n, 1, (const int64_t[]){3});
    int const of_divisor = made_node(&n, "Mod", x, y, -1);
    int const of_dividend = made_node(&n, "Mod", x, y, -1);
    made_int(&n, "fmod", 1);
    int const two = made_constant(&n, 1, (const int64_t[]){2}, halves, NULL);
    int const truth = made_node(&n, "Cast", two, -1, -1);
    made_int(&n, "to", 9);
    inputs[0] = of_divisor;
    inputs[1] = of_dividend;
    inputs[2] = truth;
    made_node(&n, "Concat", 0, -1, -1);
    n.nodes[3].inputs = inputs;
    n.nodes[3].n_inputs = 3;
    made_int(&n, "axis", 0);
    made_node(&n, "Cast", n.output, -1, -1);
    made_int(&n, "to", 1);
    folds_to(&n, 4, want);
}
END_TEST

START_TEST(what_has_no_result_is_refused)
{
    made_network n;
    made_begin(&n, 1, (const int64_t[]){1});
    int const zero = made_list(&n, 1, (const int64_t[]){0}),
              one = made_list(&n, 1, (const int64_t[]){1});
    made_node(&n, "Mod", one, zero, -1);
    made_node(&n, "Reshape", 0, n.output, -1);
    made_refuses(&n, 1, 1, 1, "cannot be combined");
    made_begin(&n, 1, (const int64_t[]){1});
    int const two = made_list(&n, 1, (const int64_t[]){2});
    made_node(&n, "Pow", two, made_list(&n, 1, (const int64_t[]){63}), -1);
    made_node(&n, "Reshape", 0, n.output, -1);
    made_refuses(&n, 1, 1, 1, "cannot be combined");
    made_begin(&n, 1, (const int64_t[]){1});
    made_node(&n, "Sqrt", made_list(&n, 1, (const int64_t[]){4}), -1, -1);
    made_node(&n, "Reshape", 0, n.output, -1);
    made_refuses(&n, 1, 1, 1, "of integers");
    made_begin(&n, 2, (const int64_t[]){2, 2});
    made_node(&n, "Split", six(&n), -1, -1);
    made_int(&n, "axis", 1);
    made_ints(&n, "split", 1, (const int64_t[]){2});
    made_node(&n, "Add", 0, n.output, -1);
    made_refuses(&n, 1, 2, 2, "its parts have 2 of the 3 positions of dimension 1");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("foreign_fold");
    TCase *tc = tcase_create("foreign_fold");
    tcase_add_test(tc, sums_and_products_repeat);
    tcase_add_test(tc, slices_have_any_dimensions_and_steps);
    tcase_add_test(tc, joins_and_gathers_have_any_dimension);
    tcase_add_test(tc, parts_and_repetitions);
    tcase_add_test(tc, shapes_are_chosen);
    tcase_add_test(tc, remainders_and_truths);
    tcase_add_test(tc, what_has_no_result_is_refused);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
