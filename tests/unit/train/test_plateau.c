/**
 * Plateaus: what is counted, and runs whose learning rate falls and which end because of it,
 * interrupted or not.
 */
#include "base/parallel.h"
#include "checkpoint/checkpoint.h"
#include "common/suite.h"
#include "train/plateau.h"
#include "unit/train/train_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void setup(void)
{
    test_folder_make();
    qat_set_threads(1);
}

/* ------------------------------------------------------------------ counting */

START_TEST(drops_and_ends_are_counted)
{
    qat_patience const patience = {.threshold = 0.5, .drop = 2, .stop = 5};
    double const figures[] = {50, 50.5, 51, 51.4, 51.5, 40, 41, 42};
    int const since[] = {0, 1, 0, 1, 2, 3, 4, 5}, drops[] = {0, 0, 0, 0, 1, 1, 2, 2};
    qat_plateau p = {0};
    for (int i = 0; i < 8; i++) {
        ck_assert(!p.ended);
        qat_plateau_see(&p, &patience, figures[i], 0, true);
        ck_assert_int_eq(p.since, since[i]);
        ck_assert_int_eq(p.drops, drops[i]);
    }
    ck_assert(p.ended && p.best == 51);
}
END_TEST

/** Two steps of these losses, and an evaluation. */
static void see_losses(qat_plateau *p, const qat_patience *patience, double a, double b)
{
    qat_plateau_add_loss(p, a);
    qat_plateau_add_loss(p, b);
    qat_plateau_see(p, patience, 50, 0, true);
    ck_assert(p->losses == 0 && p->loss_sum == 0);
}

START_TEST(of_a_loss_less_is_better)
{
    qat_patience const patience = {.of_loss = true, .less = true, .threshold = 10, .stop = 1};
    qat_plateau p = {0};
    see_losses(&p, &patience, 1, 3);
    see_losses(&p, &patience, 1.79, 1.79);
    ck_assert(p.best == 1.79 && !p.ended && p.drops == 0);
    see_losses(&p, &patience, 2.24, 1);
    ck_assert(p.best == 1.79 && p.ended);
}
END_TEST

/** 10 percent of 2: below -2.2 is better than -2. What is not known is no evaluation. */
START_TEST(less_than_a_figure_below_zero_is_better)
{
    qat_patience const patience = {.less = true, .threshold = 10, .drop = 2};
    double const figures[] = {NAN, -2, -2.19, NAN, -2.21, -2.2};
    int const since[] = {0, 0, 1, 1, 0, 1};
    qat_plateau p = {0};
    for (int i = 0; i < 6; i++) {
        qat_plateau_see(&p, &patience, figures[i], 0, true);
        ck_assert_int_eq(p.since, since[i]);
    }
    ck_assert(p.best == -2.21 && p.drops == 0);
}
END_TEST

START_TEST(a_new_stage_begins_anew_and_only_the_last_ends)
{
    qat_patience const patience = {.drop = 3, .stop = 2};
    qat_plateau p = {0};
    for (int i = 0; i < 5; i++)
        qat_plateau_see(&p, &patience, 90, 0, false);
    ck_assert(p.since == 4 && p.drops == 1 && !p.ended);
    qat_plateau_see(&p, &patience, 70, 1, true);
    ck_assert(p.since == 0 && p.best == 70 && p.drops == 1);
    qat_plateau_see(&p, &patience, 70, 1, true);
    qat_plateau_see(&p, &patience, 70, 1, true);
    ck_assert(p.ended);
}
END_TEST

/* ------------------------------------------------------------------ runs */

enum { SETS_MAX = 10 };

/* Nothing is better by 100 points than the first evaluation: a plateau from the start. */
static const struct {
    const char *sets[SETS_MAX];
    int end;           /* step of the end */
    const char *rates; /* of the steps, a row each */
} runs[] = {
    {{"train.schedule=plateau", "train.lr=0.08", "train.factor=0.5", "train.plateau_threshold=100",
      "train.plateau_patience=1", "train.stop_patience=3", "train.eval_every=2"},
     8,
     "0.08 0.08 0.08 0.08 0.04 0.04 0.02 0.02 "},
    {{"train.schedule=constant", "train.lr=0.08", "train.plateau_threshold=100",
      "train.plateau_on=loss", "train.stop_patience=3", "train.eval_every=2", "quant.enabled=yes",
      "quant.weight_delay=0", "quant.activation_delay=6"},
     14,
     "0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 "},
    /* A run does not end before everything has begun: batch norm's averages, and the last stage. */
    {{"train.schedule=constant", "train.lr=0.08", "train.plateau_threshold=100",
      "train.stop_patience=2", "train.eval_every=2", "quant.enabled=yes", "quant.quant_delay=0",
      "quant.bn_freeze_delay=8"},
     14,
     "0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 "},
    {{"train.schedule=constant", "train.lr=0.08", "train.plateau_threshold=100",
      "train.stop_patience=2", "train.eval_every=2", "quant.enabled=yes", "quant.weight_ranges=inq",
      "quant.activation_ranges=none", "quant.weight_bits=5", "quant.inq_stages=0, 2, 4, 8"},
     14,
     "0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08 "},
    /* The loss of every step counts, even if rows are logged between two evaluations. */
    {{"train.schedule=constant", "train.lr=0.08", "train.plateau_threshold=100",
      "train.plateau_on=loss", "train.stop_patience=2", "train.eval_every=4", "train.log_every=3"},
     12,
     NULL},
};

/** The third column of each row. */
static void rates_of(char text[256], const char *name)
{
    char *log = log_of(name);
    text[0] = 0;
    for (const char *line = strchr(log, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        double rate;
        ck_assert_int_eq(sscanf(line + 1, "%*[^,],%*[^,],%lf", &rate), 1);
        snprintf(text + strlen(text), 256 - strlen(text), "%g ", rate);
    }
    free(log);
}

static int count(const char *const *sets)
{
    int n = 0;
    while (n < SETS_MAX && sets[n])
        n++;
    return n;
}

START_TEST(runs_end_on_a_plateau_interrupted_or_not)
{
    const char *const *sets = runs[_i].sets;
    int const n = count(sets);
    char rates[256];
    must_train_with("whole", sets, n, 0, false);
    must_train_with("parts", sets, n, 3, false);
    must_train_with("parts", sets, n, 4, true);
    must_train_with("parts", sets, n, 0, true);
    same_logs("whole", "parts");
    same_checkpoints("whole", "parts");
    same_files("whole", "parts", "last.ckpt");
    qat_checkpoint *c = checkpoint_of("whole");
    ck_assert_int_eq(c->step, runs[_i].end);
    ck_assert(c->plateau.ended);
    qat_checkpoint_free(c);
    rates_of(rates, "whole");
    if (runs[_i].rates)
        ck_assert_str_eq(rates, runs[_i].rates);
    must_train_with("parts", sets, n, 0, true); /* over is over */
    same_files("whole", "parts", "last.ckpt");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plateau");
    TCase *tc = tcase_create("plateau");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_add_test(tc, drops_and_ends_are_counted);
    tcase_add_test(tc, of_a_loss_less_is_better);
    tcase_add_test(tc, less_than_a_figure_below_zero_is_better);
    tcase_add_test(tc, a_new_stage_begins_anew_and_only_the_last_ends);
    tcase_add_loop_test(tc, runs_end_on_a_plateau_interrupted_or_not, 0,
                        (int)(sizeof runs / sizeof *runs));
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
