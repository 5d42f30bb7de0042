/** The exact solver of budgets against trying every choice. */
#include "base/rng.h"
#include "budget/solve.h"
#include "common/fail_alloc.h"
#include "common/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, INSTANCES = 2000, CUTS = 3 };

typedef struct instance {
    budget_item items[MOST];
    int n;
    budget_limits limits;
    int cuts[CUTS * MOST];
} instance;

static int64_t below(qat_rng *rng, uint32_t n)
{
    return (int64_t)qat_rng_below(rng, n);
}

/** Weights and activations in turn, as in a network. coarse: many equal numbers, so many ties. */
static void draw_item(qat_rng *rng, instance *in, int i, bool coarse)
{
    static const int all[] = {8, 6, 5, 4, 3, 2};
    budget_item *item = &in->items[i];
    bool const weights = below(rng, 3) > 0;
    int64_t const values = 1 + below(rng, coarse ? 3 : 5000);
    *item = (budget_item){.input = BUDGET_GIVEN, .input_bits = 8};
    for (int b = 0; b < 6; b++)
        if (item->n < 4 && below(rng, 2))
            item->bits[item->n++] = all[b];
    if (!item->n)
        item->bits[item->n++] = 8;
    if (weights)
        item->macs = below(rng, coarse ? 3 : 100000);
    for (int k = i - 1; weights && k >= 0; k--)
        if (!in->items[k].macs && in->items[k].bytes[0] == 0 && below(rng, 2)) {
            item->input = k;
            break;
        }
    for (int c = 0; c < item->n; c++) {
        item->loss[c] = below(rng, coarse ? 4 : 1000000);
        item->bytes[c] = weights ? values * item->bits[c] : 0;
    }
}

static int64_t limit_between(qat_rng *rng, int64_t least, int64_t most)
{
    if (!below(rng, 4))
        return BUDGET_NO_LIMIT;
    return least + (int64_t)(qat_rng_uniform(rng) * (double)(most - least)) - !below(rng, 10);
}

/** Cuts of some items; a few of them cannot be met. */
static void draw_cuts(qat_rng *rng, instance *in)
{
    in->limits.cuts = in->cuts;
    in->limits.n_cuts = (int)below(rng, CUTS + 1);
    for (int k = 0; k < in->limits.n_cuts * in->n; k++) {
        int const last = in->items[k % in->n].n - 1;
        in->cuts[k] = below(rng, 2) ? (int)below(rng, (uint32_t)last + 1) : 0;
        if (!below(rng, 100))
            in->cuts[k] = last + 1;
    }
}

static void draw(uint64_t seed, instance *in)
{
    qat_rng rng = qat_rng_at(20, seed, 0);
    *in = (instance){.n = 1 + (int)below(&rng, MOST)};
    int most[MOST] = {0}, least[MOST];
    for (int i = 0; i < in->n; i++)
        draw_item(&rng, in, i, seed % 2);
    budget_least(in->items, in->n, least);
    budget_sums const low = budget_sums_of(in->items, in->n, least);
    budget_sums const high = budget_sums_of(in->items, in->n, most);
    in->limits.bytes = limit_between(&rng, low.bytes, high.bytes);
    in->limits.macs_bits = limit_between(&rng, low.macs_bits, high.macs_bits);
    draw_cuts(&rng, in);
}

static bool better(const budget_sums *a, const budget_sums *b)
{
    if (a->loss != b->loss)
        return a->loss < b->loss;
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->macs_bits < b->macs_bits;
}

/** Does one item of each cut have few bits? */
static bool meets_cuts(const instance *in, const int *choice)
{
    int met = 0;
    for (int k = 0; k < in->limits.n_cuts; k++)
        for (int i = 0; i < in->n; i++) {
            int const from = in->cuts[k * in->n + i];
            if (from && choice[i] >= from) {
                met++;
                break;
            }
        }
    return met == in->limits.n_cuts;
}

/** Every choice, in the order in which the first of equal ones counts. */
static bool try_all(const instance *in, int *best, budget_sums *sums)
{
    int choice[MOST] = {0};
    bool found = false;
    for (;;) {
        budget_sums const s = budget_sums_of(in->items, in->n, choice);
        if (s.bytes <= in->limits.bytes && s.macs_bits <= in->limits.macs_bits &&
            meets_cuts(in, choice) && (!found || better(&s, sums))) {
            found = true;
            *sums = s;
            memcpy(best, choice, sizeof choice);
        }
        int i = in->n - 1;
        while (i >= 0 && ++choice[i] == in->items[i].n)
            choice[i--] = 0;
        if (i < 0)
            return found;
    }
}

START_TEST(equals_trying_all)
{
    int possible = 0, impossible = 0, limited = 0, joined = 0, cut = 0;
    for (int seed = 0; seed < INSTANCES; seed++) {
        instance in;
        int expected[MOST] = {0}, found[MOST] = {0};
        draw((uint64_t)seed, &in);
        budget_sums best = {0}, sums;
        qat_error err;
        bool const there = try_all(&in, expected, &best);
        qat_status const st = budget_solve(in.items, in.n, &in.limits, found, &sums, &err);
        ck_assert_msg(st == (there ? QAT_OK : QAT_ERR_ARGUMENT), "instance %d: status %d", seed,
                      st);
        possible += there;
        cut += there && in.limits.n_cuts;
        impossible += !there;
        limited += in.limits.bytes != BUDGET_NO_LIMIT && in.limits.macs_bits != BUDGET_NO_LIMIT;
        for (int i = 0; i < in.n; i++)
            joined += in.items[i].input != BUDGET_GIVEN;
        if (!there) {
            budget_least(in.items, in.n, expected);
            best = budget_sums_of(in.items, in.n, expected);
        }
        for (int i = 0; i < in.n; i++)
            ck_assert_msg(found[i] == expected[i], "instance %d: item %d has choice %d, not %d",
                          seed, i, found[i], expected[i]);
        ck_assert_int_eq(sums.loss, best.loss);
        ck_assert_int_eq(sums.bytes, best.bytes);
        ck_assert_int_eq(sums.macs_bits, best.macs_bits);
    }
    ck_assert_int_gt(possible, INSTANCES / 2); /* the test draws all kinds */
    ck_assert_int_gt(impossible, INSTANCES / 100);
    ck_assert_int_gt(cut, INSTANCES / 4);
    ck_assert_int_gt(limited, INSTANCES / 4);
    ck_assert_int_gt(joined, INSTANCES / 2);
}
END_TEST

/** As many layers as large networks have: the answer is at least as good as each of its changes. */
START_TEST(large_networks)
{
    enum { N = 300 };
    static budget_item items[N];
    int choice[N];
    qat_error err;
    qat_rng rng = qat_rng_at(7, 7, 7);
    for (int i = 0; i < N; i++) {
        static const int bits[] = {8, 4, 3, 2};
        bool const weights = i % 2;
        int64_t const values = 16 << below(&rng, 14);
        double sensitivity = qat_rng_uniform(&rng);
        items[i] = (budget_item){.n = weights ? 4 : 2,
                                 .input = weights ? i - 1 : BUDGET_GIVEN,
                                 .input_bits = 8,
                                 .macs = weights ? 1 + below(&rng, 100000000) : 0};
        for (int c = 0; c < items[i].n; c++) {
            items[i].bits[c] = bits[c];
            items[i].bytes[c] = weights ? values * bits[c] / 8 : 0;
            items[i].loss[c] = c ? (int64_t)(sensitivity * 1e8) : 0;
            sensitivity *= 2 + 4 * qat_rng_uniform(&rng);
        }
    }
    int const all[N] = {0};
    budget_sums const most = budget_sums_of(items, N, all);
    budget_limits const limits = {.bytes = most.bytes / 2, .macs_bits = most.macs_bits / 3};
    budget_sums sums;
    ck_assert_msg(budget_solve(items, N, &limits, choice, &sums, &err) == QAT_OK, "%s",
                  err.message);
    ck_assert(sums.bytes <= limits.bytes && sums.macs_bits <= limits.macs_bits);
    for (int i = 0; i < N; i++)
        for (int c = 0, old = choice[i]; c < items[i].n; c++, choice[i] = old) {
            choice[i] = c;
            budget_sums const s = budget_sums_of(items, N, choice);
            if (s.bytes <= limits.bytes && s.macs_bits <= limits.macs_bits)
                ck_assert(!better(&s, &sums));
        }
}
END_TEST

/** All activations first, then the weights that multiply them: so many are open at once. */
START_TEST(too_many_open)
{
    enum { N = BUDGET_MOST_OPEN + 1 };
    static budget_item items[2 * N];
    int choice[2 * N];
    budget_sums sums;
    qat_error err;
    budget_limits const limits = {.bytes = BUDGET_NO_LIMIT, .macs_bits = 1000000};
    for (int n = N - 1; n <= N; n++) {
        for (int i = 0; i < 2 * n; i++) {
            bool const weights = i >= n;
            items[i] = (budget_item){.n = 1,
                                     .bits = {8},
                                     .input = weights ? i - n : BUDGET_GIVEN,
                                     .macs = weights ? 1 : 0};
        }
        ck_assert_int_eq(budget_solve(items, 2 * n, &limits, choice, &sums, &err),
                         n < N ? QAT_OK : QAT_ERR_LIMIT);
    }
    ck_assert_str_eq(err.message, "more than 21 activations are read later at one place of the "
                                  "network");
}
END_TEST

/** Each byte saved costs as much loss: no partial choice is better than another one. */
START_TEST(too_many_states)
{
    enum { N = 12 };
    static budget_item items[N];
    int choice[N];
    budget_sums sums;
    qat_error err;
    budget_limits limits = {.bytes = 1365, .macs_bits = BUDGET_NO_LIMIT, .states = 100};
    for (int i = 0; i < N; i++)
        items[i] = (budget_item){.n = 2,
                                 .bits = {8, 4},
                                 .loss = {0, INT64_C(1) << i},
                                 .bytes = {INT64_C(1) << i, 0},
                                 .input = BUDGET_GIVEN};
    ck_assert_int_eq(budget_solve(items, N, &limits, choice, &sums, &err), QAT_ERR_LIMIT);
    ck_assert_str_eq(err.message, "the choice has more than 100 partial choices that may be best");
    limits.states = 0; /* BUDGET_MOST_STATES */
    ck_assert_int_eq(budget_solve(items, N, &limits, choice, &sums, &err), QAT_OK);
    ck_assert_int_eq(sums.bytes, 1365);
}
END_TEST

static qat_status solve_one(qat_error *err)
{
    instance in;
    int choice[MOST];
    budget_sums sums;
    draw(4, &in);
    return budget_solve(in.items, in.n, &in.limits, choice, &sums, err);
}

START_TEST(without_memory)
{
    qat_error err;
    long n = 0;
    bool failed;
    do {
        test_fail_alloc_after(n++);
        qat_status const st = solve_one(&err);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
    } while (failed);
    ck_assert_int_gt(n, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("budget");
    TCase *cases = tcase_create("solve");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, equals_trying_all);
    tcase_add_test(cases, large_networks);
    tcase_add_test(cases, too_many_open);
    tcase_add_test(cases, too_many_states);
    tcase_add_test(cases, without_memory);
    suite_add_tcase(suite, cases);
    return test_run_suite(suite);
}
