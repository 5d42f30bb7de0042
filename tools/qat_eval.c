/** qat-eval: the accuracy of a checkpoint (float and exact-quantized) or of a .qm. */
#include "tools/common/evaluate.h"
#include "tools/common/limits.h"
#include "tools/common/model_data.h"
#include "tools/common/plugins.h"
#include "tools/common/ptq.h"
#include "tools/eval.h"

#include "base/bytes.h"
#include "base/number.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVAL_BATCH = 100 };

static const char *recipe_path, *data, *ranges_text, *crop_text, *dump_dir, *isa, *figures_dir,
    *predictions;
static tool_list plugins;
static int64_t samples, threads, batch;
static bool json, raw_params;
static qat_ranges ranges; /* --ranges */

#define KIND_WORD(name) " " #name

static const tool_option options[] = {
    {"--recipe", TOOL_TEXT, &recipe_path, "R.ini",
     "take the test data of this recipe (not its plugins: --plugin)", 0, 0},
    {"--data", TOOL_TEXT, &data, "KIND[:PATH]",
     "test data; KIND is one of" QAT_DATASET_KINDS(
         KIND_WORD) "; PATH: its folder or file, if it has one",
     0, 0},
    {"--central-crop", TOOL_TEXT, &crop_text, "SHARE",
     "for --data folder or list and a .qm: cut out the centre, this share of\n"
     "the largest fitting rectangle, and resize it with prefiltering",
     0, 0},
    TOOL_PIXELS_OPTION,
    {"--dump-inputs", TOOL_TEXT, &dump_dir, "DIR",
     "for a .qm: write its input bytes, as DIR/<sample>.npy and DIR/labels.txt", 0, 0},
    {"--figures", TOOL_TEXT, &figures_dir, "DIR",
     "write figures.json, figures.txt, and the confusion, reliability, ROC and\n"
     "precision-recall curves as PNG and SVG",
     0, 0},
    {"--predictions", TOOL_TEXT, &predictions, "FILE.csv",
     "write what is true and what the network answers for each sample", 0, 0},
    {"--samples", TOOL_INT, &samples, "N", "at most N samples", 1, INT64_C(1) << 40},
    TOOL_PTQ_OPTIONS,
    {"--ranges", TOOL_TEXT, &ranges_text, "observed|batch|worst-case",
     "for a checkpoint: quantize activations by the observed ranges (default),\n"
     "by the range of each batch, or by the largest possible range. The last two\n"
     "are simulated in float32, for comparison",
     0, 0},
    {"--raw-params", TOOL_FLAG, &raw_params, NULL,
     "for a checkpoint with averaged parameters: use those of the last step\n"
     "instead",
     0, 0},
    {"--batch", TOOL_INT, &batch, "N", "samples per batch of --ranges batch (default 100)", 1,
     65536},
    {"--plugin", TOOL_LIST, &plugins, "FILE.so",
     "load custom layers and tasks from this file (repeatable)", 0, 0},
    {"--threads", TOOL_INT, &threads, "N",
     "compute threads (default: OMP_NUM_THREADS, or one per processor)", 1, TOOL_THREADS_MAX},
    {"--isa", TOOL_TEXT, &isa, "NAME", "instruction set (default: the best of this processor)", 0,
     0},
    TOOL_MEMORY_OPTION(
        "the most memory that a model, and a data set, may take, in MiB\n(default 4096)"),
    TOOL_MACS_OPTION,
    {"--json", TOOL_FLAG, &json, NULL,
     "print one JSON object; accuracies are fractions of 1, not percent", 0, 0},
    {0}};

static const tool me = {
    "qat-eval",
    "CKPT [--recipe R.ini] [--data KIND[:PATH]] [--samples N]\n"
    "                [--ptq KIND[:PATH] [--ptq-samples N] [--observer O] [--equalize]\n"
    "                [--correct-bias]] [--ranges R] [--batch N] [--set quant.KEY=VALUE]...\n"
    "                [--raw-params] [--figures DIR] [--predictions FILE.csv] [--plugin FILE.so]... "
    "[--threads N] [--max-memory MIB]\n"
    "                [--max-macs N] [--max-pixels N] [--json]\n"
    "       qat-eval MODEL.qm (--recipe R.ini | --data KIND[:PATH]) [--samples N]\n"
    "                [--central-crop SHARE] [--max-pixels N] [--dump-inputs DIR]\n"
    "                [--figures DIR] [--predictions FILE.csv]\n"
    "                [--isa NAME] [--plugin FILE.so]... [--threads N] [--max-memory MIB]\n"
    "                [--max-macs N] [--json]",
    "Prints the accuracy on test data. A .qm runs on the integer engine. A checkpoint runs as the\n"
    "float network and as the quantized one, with exactly the arithmetic of the engine.",
    options,
    1,
    1};

static void print_accuracy(const char *what, const qat_accuracy *a, int classes)
{
    qat_text text = {0};
    if (!a->n)
        return;
    qat_text_add(&text, "%-10s ", what);
    a->task->tell(&text, a, classes);
    qat_text_add(&text, "\n");
    tool_print_text(&text);
}

static void print_json(const eval_results *r)
{
    int64_t const n = r->quantized.n ? r->quantized.n : r->floating.n;
    printf("{\"data\": ");
    tool_json_string(r->data);
    printf(", \"n\": %lld", (long long)n);
    tool_json_figures(r->no_integers.status ? "simulated_" : "", &r->quantized);
    if (*r->left_in_float) {
        printf(", \"left_in_float\": ");
        tool_json_string(r->left_in_float);
    }
    if (r->no_integers.status) {
        printf(", \"why_simulated\": ");
        tool_json_string(r->no_integers.message);
    }
    tool_json_figures("float_", &r->floating);
    if (r->isa)
        printf(", \"isa\": \"%s\"", r->isa);
    if (ranges != QAT_RANGES_OBSERVED)
        printf(", \"ranges\": \"%s\"", ranges_text);
    printf("}\n");
}

/** Lines of figures below the accuracy. */
static void print_lines(const figures *f)
{
    qat_text text = {0};
    if (!f->n)
        return;
    figures_tell(&text, f);
    tool_print_text(&text);
}

static void print_results(const eval_results *r)
{
    if (json) {
        print_json(r);
        return;
    }
    tool_ptq_print();
    printf("%s\n", tool_shown(r->data));
    if (ranges != QAT_RANGES_OBSERVED)
        printf("ranges %s, simulated in float32: for comparison, not exported\n", ranges_text);
    print_accuracy("float", &r->floating, r->classes);
    print_lines(&r->float_figures);
    print_accuracy(r->no_integers.status ? "simulated" : "quantized", &r->quantized, r->classes);
    print_lines(&r->quantized_figures);
    if (r->no_integers.status)
        printf("simulated in float32: %s\n", tool_shown(r->no_integers.message));
    if (r->isa)
        printf("%-10s %s\n", "engine", r->isa);
}

/** Write --figures and --predictions. */
static qat_status write_files(const eval_results *r, qat_error *err)
{
    figures_run runs[2];
    int n = 0;
    qat_status st = QAT_OK;
    if (r->floating.n)
        runs[n++] = (figures_run){"float_", &r->float_figures};
    if (r->quantized.n)
        runs[n++] = (figures_run){r->no_integers.status ? "simulated_" : "", &r->quantized_figures};
    if (figures_dir)
        st = figures_write(runs, n, r->data, figures_dir, err);
    if (st == QAT_ERR_UNSUPPORTED) { /* a build without pictures */
        fprintf(stderr, "%s: warning: %s\n", me.name, tool_shown(err->message));
        st = QAT_OK;
    }
    return st || !predictions ? st : figures_write_predictions(runs, n, predictions, err);
}

/* ------------------------------------------------------------------ checkpoints */

static qat_status evaluate_quantized(const qat_restored *c, const qat_input_info *input,
                                     const qat_dataset *d, eval_results *r, qat_error *err)
{
    qat_accuracy *a = &r->quantized;
    qat_deploy_options o = {.log = &tool_log};
    qat_graph *eval = NULL;
    qat_qgraph *graph = NULL;
    char label[] = "quantized";
    int const at_once = qat_batch_that_fits(qat_restored_graph(c), EVAL_BATCH);
    tool_ptq_apply(&me, &o);
    if (!qat_checkpoint_quantized(qat_restored_checkpoint(c)) && !o.calibrate)
        return QAT_OK;
    qat_quant_options const *quant = qat_checkpoint_quant(qat_restored_checkpoint(c));
    qat_quant_options const observed = qat_quant_observed(quant);
    qat_status st = qat_float_layers(qat_restored_graph(c), o.calibrate ? &observed : quant,
                                     r->left_in_float, sizeof r->left_in_float, err);
    qat_error *why = &r->no_integers;
    if (!st && *r->left_in_float)
        (void)qat_check_integers(qat_restored_graph(c), quant, why);
    if (!st)
        st = qat_restored_eval_graph(c, &o, at_once, &eval, err);
    if (!st && !why->status && qat_restored_freeze(c, &o, eval, &graph, why) &&
        why->status != QAT_ERR_NUMERIC) /* a weight of inq that has no code yet */
        st = qat_fail(err, why->status, "%s", why->message);
    if (!st && why->status)
        st = qat_evaluate_graph(eval, input, d, at_once, samples, tool_tick, label, a, err);
    else if (!st)
        st = qat_evaluate_exact(graph, qat_restored_registry(c), input, d, at_once, samples,
                                tool_tick, label, a, err);
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    return st;
}

/** Evaluate with ranges that an exported model never has, by the float32 simulation. */
static qat_status evaluate_baseline(const qat_restored *c, const qat_input_info *input,
                                    const qat_dataset *d, qat_accuracy *a, qat_error *err)
{
    qat_graph *eval = NULL;
    char label[] = "quantized";
    qat_status st = qat_restored_baseline_graph(c, ranges, (int)batch, &eval, err);
    if (!st)
        st = qat_evaluate_graph(eval, input, d, (int)batch, samples, tool_tick, label, a, err);
    qat_graph_free(eval);
    return st;
}

static qat_status evaluate_both(const qat_restored *c, const qat_dataset *d, eval_results *r,
                                qat_error *err)
{
    qat_input_info floating = *qat_checkpoint_input(qat_restored_checkpoint(c)),
                   quantized = floating;
    qat_status st = eval_look_on(r, &r->float_figures, &floating, d, err);
    if (!st)
        st = tool_evaluate_float(c, &floating, d, samples, &r->floating, err);
    if (!st && r->looks)
        st = figures_end(&r->float_figures, err);
    if (!st)
        st = eval_look_on(r, &r->quantized_figures, &quantized, d, err);
    if (!st)
        st = ranges == QAT_RANGES_OBSERVED
                 ? evaluate_quantized(c, &quantized, d, r, err)
                 : evaluate_baseline(c, &quantized, d, &r->quantized, err);
    return st || !r->looks || !r->quantized.n ? st : figures_end(&r->quantized_figures, err);
}

static const char *class_of_checkpoint(const void *of, int i)
{
    return qat_checkpoint_label(of, i);
}

static qat_status evaluate_checkpoint(const char *path, const qat_recipe *other, eval_results *r,
                                      qat_error *err)
{
    qat_restored *c = NULL;
    qat_dataset *d = NULL;
    qat_status st = tool_restore(&c, path, &plugins, err);
    if (!st && raw_params)
        st = tool_use_raw_params(c, path, err);
    if (!st)
        st = qat_restored_set_quant(c, tool_ptq_given.sets.items, tool_ptq_given.sets.count, err);
    if (!st)
        st = qat_recipe_open_data(&d, other ? other : qat_restored_recipe(c), data, QAT_SPLIT_TEST,
                                  err);
    if (!st)
        st = qat_input_agrees(qat_checkpoint_input(qat_restored_checkpoint(c)),
                              other ? other : qat_restored_recipe(c), err);
    if (!st)
        st = tool_check_class_names(d, class_of_checkpoint, qat_restored_checkpoint(c),
                                    qat_checkpoint_input(qat_restored_checkpoint(c))->classes, err);
    if (!st)
        eval_note_data(r, d, qat_checkpoint_input(qat_restored_checkpoint(c))->classes);
    if (!st)
        st = evaluate_both(c, d, r, err);
    qat_dataset_close(d);
    qat_restored_free(c);
    return st;
}

/* ------------------------------------------------------------------ the command */

/** The value of --central-crop; 0: not given. */
static double crop_share(void)
{
    char *end;
    double const share = crop_text ? qat_number_of(crop_text, &end) : 0.0;
    if (crop_text && (*end || end == crop_text || !(share > 0.0 && share <= 1.0)))
        tool_usage(&me, "--central-crop %s: expected a share above 0, up to 1", crop_text);
    return share;
}

static qat_status evaluate_qm(const char *path, const qat_recipe *recipe, eval_results *r,
                              qat_error *err)
{
    eval_request const request = {.data = data,
                                  .dump_dir = dump_dir,
                                  .isa = isa,
                                  .central_crop = crop_share(),
                                  .samples = samples,
                                  .plugins = &plugins};
    return eval_model(path, recipe, &request, r, err);
}

static qat_status neither(const char *path, qat_error *err)
{
    qat_fail(err, QAT_ERR_FORMAT, "%.400s: neither a checkpoint nor a .qm", path);
    return tool_not_opened(path, err);
}

/** --set can only change quantization. */
static void check_sets(void)
{
    const tool_list *sets = &tool_ptq_given.sets;
    for (int i = 0; i < sets->count; i++)
        if (strncmp(sets->items[i], "quant.", 6))
            tool_usage(&me, "--set %s: only quant.KEY can be set here; --samples N limits the data",
                       sets->items[i]);
}

static void set_ranges(void)
{
    check_sets();
    if (!ranges_text || !strcmp(ranges_text, "observed"))
        ranges = QAT_RANGES_OBSERVED;
    else if (!strcmp(ranges_text, "batch"))
        ranges = QAT_RANGES_BATCH;
    else if (!strcmp(ranges_text, "worst-case"))
        ranges = QAT_RANGES_WORST_CASE;
    else
        tool_usage(&me, "--ranges %s: expected observed, batch or worst-case", ranges_text);
    if (ranges != QAT_RANGES_OBSERVED && tool_ptq_given.data)
        tool_usage(&me, "--ranges %s cannot be combined with --ptq: nothing is observed",
                   ranges_text);
    if (ranges == QAT_RANGES_OBSERVED && batch)
        tool_usage(&me, "--batch needs --ranges batch or worst-case");
    batch = batch ? batch : EVAL_BATCH;
    if (ranges == QAT_RANGES_OBSERVED && tool_ptq_given.sets.count && !tool_ptq_given.data)
        tool_usage(&me, "--set needs --ptq, or --ranges other than observed");
}

/** Refuse options that choose ranges: a .qm has its ranges. */
static void spare_models(void)
{
    const char *what = tool_ptq_given.data         ? "--ptq"
                       : ranges_text               ? "--ranges"
                       : tool_ptq_given.sets.count ? "--set"
                                                   : NULL;
    if (what)
        tool_usage(&me, "%s works with checkpoints only: a .qm has its ranges", what);
}

/** Are the samples of this --data picture files? */
static bool names_pictures(const char *spec)
{
    size_t const n = strcspn(spec, ":");
    for (int i = 0; i < qat_dataset_kinds(); i++) {
        const char *kind = qat_dataset_kind_name(i);
        if (strlen(kind) == n && !memcmp(kind, spec, n))
            return qat_dataset_kind_needs_path(i) && qat_dataset_kind_resizes(i);
    }
    return false;
}

/** Refuse options that would be ignored, before anything is read. */
static void check_options(tool_file kind)
{
    bool const qm = kind == TOOL_FILE_QM, checkpoint = kind == TOOL_FILE_CHECKPOINT;
    tool_check_isa(&me, isa);
    tool_check_data(&me, "--data", data, NULL);
    tool_ptq_check(&me);
    crop_share();
    if (qm && !recipe_path && !data)
        tool_usage(&me, "a .qm needs --recipe or --data");
    if (qm)
        spare_models();
    if (qm && raw_params)
        tool_usage(&me,
                   "--raw-params works with checkpoints only: a .qm has one set of parameters");
    if (checkpoint && isa)
        tool_usage(&me, "--isa works with a .qm only: a checkpoint does not run on the engine");
    if (checkpoint && crop_text)
        tool_usage(
            &me,
            "--central-crop works with a .qm only: for a checkpoint the recipe says how to crop");
    if (checkpoint && dump_dir)
        tool_usage(&me, "--dump-inputs works with a .qm only");
    if (qm && crop_text && !tool_picture_kind(data))
        tool_usage(&me, "--central-crop needs --data folder:DIR or list:FILE");
    if (tool_limits_given.pixels && data && !names_pictures(data))
        tool_usage(&me, "--max-pixels: %s has no picture files", data);
}

int main(int argc, char **argv)
{
    tool_list args;
    tool_file kind = TOOL_FILE_OTHER;
    qat_recipe *recipe = NULL;
    qat_error err;
    eval_results r = {0};
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    tool_threads(threads);
    set_ranges();
    r.looks = figures_dir || predictions;
    qat_status st = tool_file_kind(args.items[0], &kind, &err);
    if (!st)
        check_options(kind);
    if (!st && recipe_path)
        st = qat_recipe_load(&recipe, recipe_path, NULL, 0, &err);
    if (!st)
        st = tool_limit_recipe(recipe, &err);
    if (!st && kind == TOOL_FILE_CHECKPOINT)
        st = evaluate_checkpoint(args.items[0], recipe, &r, &err);
    else if (!st && kind == TOOL_FILE_QM)
        st = evaluate_qm(args.items[0], recipe, &r, &err);
    else if (!st)
        st = neither(args.items[0], &err);
    tool_bar_clear();
    if (!st && r.looks)
        st = write_files(&r, &err);
    if (!st)
        print_results(&r);
    figures_free(&r.quantized_figures);
    figures_free(&r.float_figures);
    qat_recipe_free(recipe);
    return st ? tool_failed(&me, &err) : 0;
}
