/**
 * host_locale LOCALE DIR: a program that, unlike the commands, has set a locale. It uses libqat as
 * any program would: trains, stops, resumes, exports, reads a table and a COCO file. What it leaves
 * in DIR must not depend on the locale; locales.sh compares. Prints how printf writes one half
 * here.
 */
#include "qat/qat.h"

#include "base/number.h"
#include "checkpoint/restore.h"
#include "tools/sweep/results.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 1000 };

static const char *dir;

static void must(qat_status st, const qat_error *err, const char *what)
{
    if (!st)
        return;
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

static const char *in_dir(char path[PATH], const char *name)
{
    snprintf(path, PATH, "%.900s/%s", dir, name);
    return path;
}

static void write_file(const char *name, const char *text, size_t count)
{
    char path[PATH];
    FILE *file = fopen(in_dir(path, name), "wb");
    if (!file || fwrite(text, 1, count, file) != count || fclose(file))
        exit(3);
}

/* ------------------------------------------------------------------ training */

static const char text[] =
    "[data]\nkind = digits\ntrain_count = 64\ntest_count = 30\nbrightness = 0.125\n"
    "[model]\nfilters = 4, 8\nstrides = 2\ndropout = 0.2\nbn_momentum = 0.95\n"
    "[train]\nsteps = 12\nbatch = 16\nlr = 0.05\nlog_every = 1\nlabel_smoothing = 0.1\n"
    "lr_scale = logits:0.5\n"
    "[quant]\nenabled = yes\nema_decay = 0.9\nquant_delay = 33.5%\nrange_log_every = 1\n";

static bool halfway(void *context)
{
    return *(int64_t *)context >= 6;
}

static void count(void *context, const qat_train_progress *p)
{
    *(int64_t *)context = p->step;
}

static void train(const qat_recipe *recipe, bool resume)
{
    char run[PATH];
    int64_t step = 0;
    qat_error err;
    qat_train_options const o = {.dir = in_dir(run, "run"),
                                 .resume = resume,
                                 .progress = count,
                                 .stop = resume ? NULL : halfway,
                                 .context = &step};
    must(qat_train(recipe, &o, NULL, &err), &err, resume ? "resume" : "train");
}

static void export_model(void)
{
    char path[PATH];
    qat_restored *model;
    qat_deploy_options const o = {.samples = 16};
    qat_deploy_result result;
    qat_error err;
    must(qat_restore(&model, in_dir(path, "run/last.ckpt"), NULL, 0, &err), &err, "restore");
    must(qat_deploy(model, in_dir(path, "model.qm"), &o, &result, &err), &err, "export");
    qat_restored_free(model);
}

static void run(void)
{
    const char *percent[] = {"train.momentum=0.875"};
    char *again;
    qat_recipe *recipe, *second;
    qat_error err;
    must(qat_recipe_parse(&recipe, text, "text", percent, 1, &err), &err, "recipe");
    must(qat_recipe_write(recipe, &again, &err), &err, "recipe as text");
    write_file("recipe.ini", again, strlen(again));
    must(qat_recipe_parse(&second, again, "recipe.ini", NULL, 0, &err), &err, "recipe again");
    must(qat_recipe_same_run(recipe, second, &err), &err, "the recipe read again");
    train(second, false);
    train(recipe, true);
    export_model();
    free(again);
    qat_recipe_free(recipe);
    qat_recipe_free(second);
}

/* ------------------------------------------------------------------ data */

static qat_dataset *open_data(const qat_dataset_options *options)
{
    qat_dataset *d;
    qat_error err;
    must(qat_dataset_open(&d, options, QAT_SPLIT_TRAIN, &err), &err, options->kind);
    return d;
}

/** One picture with a value that has decimals. */
static void read_table(void)
{
    static const char ppm[] = "P6\n2 2\n255\n____________";
    static const char table[] = "file,split,age,sex\nI.PPM,train,24.5,male\n";
    char path[PATH];
    write_file("I.PPM", ppm, sizeof ppm - 1);
    write_file("table.csv", table, sizeof table - 1);
    qat_dataset_options const o = {.kind = "table",
                                   .path = in_dir(path, "table.csv"),
                                   .images = {dir, dir},
                                   .attributes = "sex=male",
                                   .value = "age",
                                   .height = 4,
                                   .width = 4};
    qat_dataset *d = open_data(&o);
    if (qat_dataset_targets(d, 0)[1] != 24.5f)
        fprintf(stderr, "the table's 24.5 is another number\n"), exit(1);
    qat_dataset_close(d);
}

/** JSON both ways: a result with decimals is read, and written again. */
static void read_results(void)
{
    static const char json[] = "{\"top1\": 0.125, \"n\": 1e-3}\n";
    char path[PATH], *written = NULL;
    qat_sweep_grid grid = {0};
    qat_results r;
    qat_error err;
    must(qat_sweep_grid_add(&grid, "train.lr=0.5", &err), &err, "grid");
    write_file("result.json", json, sizeof json - 1);
    qat_results_init(&r, &grid, 1);
    must(qat_results_read(&r, 0, in_dir(path, "result.json"), &err), &err, "results");
    must(qat_results_json(&r, -1, &written, &err), &err, "results.json");
    write_file("results.json", written, strlen(written));
    qat_results_free(&r);
    qat_sweep_grid_free(&grid);
    free(written);
}

/** Every kind of number that the library formats or parses by itself. */
static void round_trips(void)
{
    static const double values[] = {0.05, -1.5e-300, 1234567.875, 0.1, 3e22};
    char number[64], *end;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        qat_format(number, sizeof number, "%.17g", values[i]);
        if (qat_number_of(number, &end) != values[i] || *end || strchr(number, ','))
            fprintf(stderr, "%s is not the number that was written\n", number), exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3 || !setlocale(LC_ALL, argv[1]))
        return 77;
    dir = argv[2];
    printf("%.1f\n", 0.5);
    round_trips();
    read_table();
    read_results();
    run();
    return 0;
}
