/** What the search measures: losses with other bits, traces, names, sizes. */
#include "base/words.h"
#include "budget/meter.h"
#include "budget/search.h"
#include "budget/table.h"
#include "common/suite.h"
#include "unit/train/train_runs.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static budget_meter meter;
static budget_network net;
static qat_recipe *recipe;
static qat_budget_options options;
static qat_error err;

static void must(qat_status st)
{
    ck_assert_msg(st == QAT_OK, "%s", err.message);
}

/** A meter of a small run, quantized as `set` says. */
static void open_meter(const char *activation, const char *sensitivity, const char *set)
{
    char dir[TEST_PATH_MAX], init[TEST_PATH_MAX + 32];
    const char *const floats[] = {"quant.enabled=no", "model.filters=2,3",   "model.strides=4,2",
                                  activation,         "model.batch_norm=no", "train.epochs=12",
                                  "model.dropout=0"};
    enum { N = sizeof floats / sizeof *floats };
    if (access(test_temp_path(init, folder, "float/last.ckpt"), F_OK))
        must_train_with("float", floats, N, 0, false);
    snprintf(init, sizeof init, "train.init=%s/last.ckpt", dir_of(dir, "float"));
    const char *const sets[] = {floats[1],
                                floats[2],
                                floats[3],
                                floats[4],
                                floats[6],
                                "quant.enabled=yes",
                                "budget.flash=1M",
                                "budget.samples=100",
                                "budget.activation_bits=8,3",
                                sensitivity,
                                set,
                                init};
    recipe = recipe_with(sets, sizeof sets / sizeof *sets);
    must(budget_meter_open(&meter, recipe, &options, &err));
    must(budget_network_find(&net, recipe, meter.float_graph, meter.simulated, meter.wanted, &err));
    must(budget_meter_prepare(&meter, &net, &err));
}

static void close_meter(void)
{
    budget_network_free(&net);
    budget_meter_close(&meter);
    qat_recipe_free(recipe);
}

static double loss(void)
{
    double found;
    must(budget_meter_loss(&meter, &found, &err));
    ck_assert(isfinite(found) && found > 0);
    return found;
}

START_TEST(items_of_a_network)
{
    open_meter("model.activation=relu", "budget.sensitivity=measured", "quant.layout=int8");
    static const struct {
        const char *layer;
        bool weights;
        int input; /* item */
    } items[] = {{"conv1", true, BUDGET_GIVEN},
                 {"conv1", false, BUDGET_GIVEN},
                 {"conv2", true, 1},
                 {"conv2", false, BUDGET_GIVEN},
                 {"logits", true, 3},
                 {"logits", false, BUDGET_GIVEN}};
    ck_assert_int_eq(net.n_items, 6);
    for (int i = 0; i < net.n_items; i++) {
        ck_assert_str_eq(net.layers[net.tensors[i].layer].name, items[i].layer);
        ck_assert_int_eq(net.tensors[i].weights, items[i].weights);
        ck_assert_int_eq(net.items[i].input, items[i].input); /* also through the pool */
        ck_assert_int_eq(net.items[i].n, items[i].weights ? 4 : 2);
    }
    ck_assert_int_eq(net.items[2].macs, 4 * 4 * 3 * 3 * 3 * 2);
    close_meter();
}
END_TEST

/** Each item has a loss of its own, and afterwards everything is as it was, bit for bit. */
static void check_losses(const char *set)
{
    open_meter("model.activation=relu", "budget.sensitivity=measured", set);
    double const before = loss();
    for (int i = 0; i < net.n_items; i++) {
        const budget_item *item = &net.items[i];
        must(budget_meter_set(&meter, &net, i, item->bits[item->n - 1], &err));
        ck_assert_msg(loss() != before, "item %d", i);
        must(budget_meter_set(&meter, &net, i, item->bits[0], &err));
        ck_assert_double_eq(loss(), before);
    }
    close_meter();
}

START_TEST(bits_come_back)
{
    check_losses("quant.layout=int8");
}
END_TEST

START_TEST(learned_ranges_come_back)
{
    check_losses("quant.ranges=lsq");
}
END_TEST

/** With ranges of the least squared error, weights of few bits have smaller errors. */
START_TEST(errors_of_weights)
{
    double plain, narrow, fine;
    open_meter("model.activation=relu", "budget.sensitivity=measured", "quant.layout=uint8");
    must(budget_meter_error(&meter, &net, 2, 3, &plain, &err));
    must(budget_meter_error(&meter, &net, 2, 8, &fine, &err));
    close_meter();
    open_meter("model.activation=relu", "budget.sensitivity=measured", "quant.weight_ranges=lsq");
    must(budget_meter_error(&meter, &net, 2, 3, &narrow, &err));
    close_meter();
    ck_assert(fine > 0 && fine < plain / 100);
    ck_assert(narrow > fine && narrow < plain);
}
END_TEST

static qat_status add_loss(void *context, qat_graph *graph, double share, qat_error *e)
{
    double *sum = context;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    (void)e;
    qat_graph_forward(graph, &run);
    *sum += share * (double)budget_loss_of(graph)->value[0];
    return QAT_OK;
}

static double float_loss(void)
{
    double sum = 0;
    must(budget_meter_pass(&meter, meter.float_graph, add_loss, &sum, &err));
    return sum;
}

/** The sum of second differences of the loss, weight by weight. */
static double exact_trace(const char *weights)
{
    double const h = 0.05, middle = float_loss();
    double sum = 0;
    qat_node *w = qat_graph_find(meter.float_graph, weights);
    for (size_t i = 0; i < qat_shape_count(&w->shape); i++) {
        float const kept = w->value[i];
        w->value[i] = (float)((double)kept + h);
        double const above = float_loss();
        w->value[i] = (float)((double)kept - h);
        sum += (above - 2 * middle + float_loss()) / (h * h);
        w->value[i] = kept;
    }
    return sum;
}

START_TEST(trace_is_that_of_the_hessian)
{
    enum { PROBES = 100, ITEMS = 6 };
    static const char *const weights[ITEMS] = {"conv1/weights",  NULL, "conv2/weights", NULL,
                                               "logits/weights", NULL};
    double sums[ITEMS] = {0}, squares[ITEMS] = {0}, one[ITEMS] = {0};
    open_meter("model.activation=tanh", "budget.sensitivity=hessian", "quant.layout=int8");
    double const before = float_loss();
    for (int p = 0; p < PROBES; p++) {
        must(budget_probe(&meter, &net, p, one, &err));
        for (int i = 0; i < ITEMS; i++) {
            sums[i] += one[i] / PROBES;
            squares[i] += one[i] * one[i] / PROBES;
        }
    }
    ck_assert_double_eq(float_loss(), before); /* the weights are what they were */
    for (int i = 0; i < ITEMS; i++) {
        if (!weights[i])
            continue;
        double const exact = exact_trace(weights[i]);
        double const deviation = sqrt((squares[i] - sums[i] * sums[i]) / PROBES);
        ck_assert_msg(fabs(sums[i] - exact) < 4 * deviation + 0.02 * fabs(exact),
                      "%s: trace %g, by probes %g, which may be off by %g", weights[i], exact,
                      sums[i], deviation);
        ck_assert_double_lt(deviation, 0.3 * fabs(exact)); /* the probes say something */
    }
    close_meter();
}
END_TEST

START_TEST(packed_bytes)
{
    qat_shape const conv = qat_shape_of((const int[]){16, 3, 3, 3}, 4);
    qat_shape const depthwise = qat_shape_of((const int[]){1, 3, 3, 10}, 4);
    /* rows begin with a byte */
    ck_assert_int_eq(budget_packed_bytes(&conv, 8, 0, false), 16 * 27);
    ck_assert_int_eq(budget_packed_bytes(&conv, 4, 0, false), 16 * 14);
    ck_assert_int_eq(budget_packed_bytes(&conv, 3, 0, false), 16 * 11);
    /* five codes in a byte, and a list of three; four codes, and a list of them */
    ck_assert_int_eq(budget_packed_bytes(&conv, 2, 0, true), 16 * 6 + 16);
    ck_assert_int_eq(budget_packed_bytes(&conv, 2, 4, false), 16 * 7 + 16);
    /* multiples of 16: of 90, of 57, of 3 + 18 */
    ck_assert_int_eq(budget_packed_bytes(&depthwise, 8, 0, false), 96);
    ck_assert_int_eq(budget_packed_bytes(&depthwise, 5, 0, false), 64);
    ck_assert_int_eq(budget_packed_bytes(&depthwise, 2, 0, true), 32);
}
END_TEST

/** A section of a recipe names a layer alone, if 37 characters of its name can. */
START_TEST(patterns)
{
    static const struct {
        const char *name;
        bool found;
    } of[] = {{"conv1", true},
              {"stage1/block1/conv2", true},
              {"a[0]", true},
              {"x = y ;z", true},
              {"a_very_long_name_of_a_layer/in_a_foreign_network/conv", true},
              {"a_very_long_name_of_a_layer/in_a_foreign_network/add", true},
              {"another_long_name_of_a1_layer_that_differs_there_and_nowhere_e", false},
              {"another_long_name_of_a2_layer_that_differs_there_and_nowhere_e", false}};
    enum { N = sizeof of / sizeof *of };
    static qat_budget_layer layers[N];
    budget_network const named = {.n_layers = N, .layers = layers};
    for (int i = 0; i < N; i++)
        snprintf(layers[i].name, sizeof layers[i].name, "%s", of[i].name);
    for (int i = 0; i < N; i++) {
        char pattern[BUDGET_PATTERN_MAX];
        ck_assert_msg(budget_pattern_of(&named, of[i].name, pattern) == of[i].found, "%s",
                      of[i].name);
        ck_assert_uint_lt(strlen(pattern), BUDGET_PATTERN_MAX);
        ck_assert_ptr_null(strpbrk(pattern, "[];="));
        for (int k = 0; of[i].found && k < N; k++)
            ck_assert_int_eq(qat_matches(pattern, of[k].name), k == i);
    }
}
END_TEST

/** Two searches that share a table: none loses what the other one measured. */
START_TEST(tables_are_shared)
{
    char path[TEST_PATH_MAX];
    budget_table first, second, third;
    double one = 1, two = 2, three = 3, found;
    test_temp_path(path, folder, "shared.csv");
    must(budget_table_open(&first, path, "# head", false, &err));
    must(budget_table_open(&second, path, "# head", false, &err));
    must(budget_table_put(&first, "a,weights,4", &one, &err));
    must(budget_table_put(&second, "b,weights,4", &two, &err));
    must(budget_table_put(&first, "c,weights,4", &three, &err));
    ck_assert(budget_table_get(&first, "b,weights,4", &found) && found == 2);
    must(budget_table_open(&third, path, "# head", false, &err));
    ck_assert_uint_eq(third.n, 3);
    ck_assert(budget_table_get(&third, "a,weights,4", &found) && found == 1);
    ck_assert(budget_table_get(&third, "c,weights,4", &found) && found == 3);
    budget_table_free(&third);
    must(budget_table_open(&third, path, "# other", true, &err)); /* forgets what is there */
    must(budget_table_put(&third, "d,weights,4", &one, &err));
    ck_assert_uint_eq(third.n, 1);
    ck_assert_int_eq(budget_table_put(&first, "e,weights,4", &one, &err), QAT_ERR_STATE);
    budget_table_free(&first);
    budget_table_free(&second);
    budget_table_free(&third);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("budget");
    TCase *cases = tcase_create("meter");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, test_folder_make, test_folder_remove);
    tcase_add_test(cases, items_of_a_network);
    tcase_add_test(cases, bits_come_back);
    tcase_add_test(cases, learned_ranges_come_back);
    tcase_add_test(cases, errors_of_weights);
    tcase_add_test(cases, trace_is_that_of_the_hessian);
    tcase_add_test(cases, packed_bytes);
    tcase_add_test(cases, patterns);
    tcase_add_test(cases, tables_are_shared);
    suite_add_tcase(suite, cases);
    return test_run_suite(suite);
}
