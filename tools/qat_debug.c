/** qat-debug: what quantization did to each layer, and which layer to look at first. */
#include "tools/common/evaluate.h"
#include "tools/common/limits.h"
#include "tools/common/model_data.h"
#include "tools/common/plugins.h"
#include "tools/common/ptq.h"
#include "tools/debug/debug_tool.h"
#include "tools/debug/sensitivity.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SAMPLES = 64, BITS = 4 };

static const char *recipe_path, *data, *against, *csv, *json, *plot, *sensitivity;
static tool_list plugins;
static int64_t samples, threads, bits;

static const tool_option options[] = {
    {"--recipe", TOOL_TEXT, &recipe_path, "R.ini", "take the test data of this recipe", 0, 0},
    {"--data", TOOL_TEXT, &data, "KIND[:PATH]", "test data, as of qat-eval", 0, 0},
    {"--samples", TOOL_INT, &samples, "N",
     "compare at most N samples (default 64; for --sensitivity all)", 1, INT64_C(1) << 40},
    {"--against", TOOL_TEXT, &against, "DIR|CKPT",
     "compare with the tensors of another runtime, one .npy file each in DIR,\n"
     "or with the float network of this checkpoint",
     0, 0},
    {"--csv", TOOL_TEXT, &csv, "FILE", "write the table as CSV", 0, 0},
    {"--json", TOOL_TEXT, &json, "FILE", "write all figures as JSON", 0, 0},
    {"--plot", TOOL_TEXT, &plot, "NAME", "draw the errors by layer as NAME.png and NAME.svg", 0, 0},
    {"--sensitivity", TOOL_TEXT, &sensitivity, "OUT.csv",
     "instead: the accuracy with one layer alone in float, and with one layer\n"
     "alone at fewer bits, for each layer; a table that is there is continued",
     0, 0},
    {"--bits", TOOL_INT, &bits, "N", "bits of that layer's weights and output (default 4)", 2, 8},
    TOOL_PTQ_OPTIONS,
    {"--plugin", TOOL_LIST, &plugins, "FILE.so",
     "load custom layers and tasks from this file (repeatable)", 0, 0},
    {"--threads", TOOL_INT, &threads, "N",
     "compute threads (default: OMP_NUM_THREADS, or one per processor)", 1, TOOL_THREADS_MAX},
    TOOL_MEMORY_OPTION(
        "the most memory that a model, and a data set, may take, in MiB\n(default 4096)"),
    TOOL_MACS_OPTION,
    TOOL_PIXELS_OPTION,
    {0}};

static const tool me = {
    "qat-debug",
    "CKPT [--recipe R.ini] [--data KIND[:PATH]] [--samples N]\n"
    "                 [--against DIR|CKPT] [--ptq KIND[:PATH] [--ptq-samples N]\n"
    "                 [--observer O] [--equalize] [--correct-bias]]\n"
    "                 [--set quant.KEY=VALUE]... [--csv FILE] [--json FILE] [--plot NAME]\n"
    "                 [--plugin FILE.so]... [--threads N] [--max-memory MIB] [--max-macs N]\n"
    "                 [--max-pixels N]\n"
    "       qat-debug CKPT --sensitivity OUT.csv [--bits N] [the options above but --against,\n"
    "                 --csv, --json, --plot]\n"
    "       qat-debug MODEL.qm (--recipe R.ini | --data KIND[:PATH]) [--samples N]\n"
    "                 [--against DIR|CKPT] [--csv FILE] [--json FILE] [--plot NAME]\n"
    "                 [--plugin FILE.so]... [--threads N] [--max-memory MIB] [--max-macs N]\n"
    "                 [--max-pixels N]",
    "Runs data through the integer engine, the simulation and the float network, and prints for\n"
    "each layer how far they are apart, where they first part, and what is wrong. A .qm alone is\n"
    "compared with the real numbers of its own weights.",
    options,
    1,
    1};

/** Everything that is open. */
struct session {
    tool_model model;
    tool_model_data of_model;
    qat_restored *checkpoint, *against;
    qat_dataset *data; /* of a checkpoint */
    qat_recipe *recipe;
    qat_debug *debug;
};

/* ------------------------------------------------------------------ opening */

/** A folder is a dump; a file must be a checkpoint. */
static qat_status open_against(struct session *s, qat_debug_source *source, qat_error *err)
{
    struct stat st;
    tool_file kind = TOOL_FILE_OTHER;
    if (!against)
        return QAT_OK;
    if (!stat(against, &st) && S_ISDIR(st.st_mode)) {
        source->dump = against;
        return QAT_OK;
    }
    qat_status status = tool_file_kind(against, &kind, err);
    if (!status && kind != TOOL_FILE_CHECKPOINT)
        return qat_fail(err, QAT_ERR_FORMAT, "--against %.400s: neither a folder nor a checkpoint",
                        against);
    if (!status)
        status = tool_restore(&s->against, against, &plugins, err);
    source->against = s->against;
    return status;
}

static qat_status open_checkpoint(struct session *s, const char *path, qat_debug_source *source,
                                  qat_error *err)
{
    qat_status st = tool_restore(&s->checkpoint, path, &plugins, err);
    if (!st)
        st = qat_restored_set_quant(s->checkpoint, tool_ptq_given.sets.items,
                                    tool_ptq_given.sets.count, err);
    const qat_recipe *recipe = st          ? NULL
                               : s->recipe ? s->recipe
                                           : qat_restored_recipe(s->checkpoint);
    if (!st)
        st = qat_recipe_open_data(&s->data, recipe, data, QAT_SPLIT_TEST, err);
    if (!st)
        st = qat_input_agrees(qat_checkpoint_input(qat_restored_checkpoint(s->checkpoint)), recipe,
                              err);
    source->checkpoint = s->checkpoint;
    return st;
}

static qat_status open_model(struct session *s, const char *path, qat_debug_source *source,
                             qat_error *err)
{
    tool_run const how = {.plugins = &plugins};
    qat_status st = tool_model_open(&s->model, path, &how, err);
    if (!st)
        qat_registry_set_memory(s->model.registry, tool_max_memory());
    if (!st)
        st = tool_model_data_open(&s->of_model, &s->model, s->recipe, data, 0, err);
    source->model = s->model.host;
    source->registry = s->model.registry;
    return st;
}

static qat_status open_all(struct session *s, const char *path, tool_file kind,
                           qat_debug_source *source, qat_error *err)
{
    qat_status st = recipe_path ? qat_recipe_load(&s->recipe, recipe_path, NULL, 0, err) : QAT_OK;
    if (!st)
        st = tool_limit_recipe(s->recipe, err);
    if (!st)
        st = kind == TOOL_FILE_QM ? open_model(s, path, source, err)
                                  : open_checkpoint(s, path, source, err);
    return st ? st : open_against(s, source, err);
}

static void close_all(struct session *s)
{
    qat_debug_free(s->debug);
    tool_model_data_close(&s->of_model);
    tool_model_close(&s->model);
    qat_dataset_close(s->data);
    qat_restored_free(s->checkpoint);
    qat_restored_free(s->against);
    qat_recipe_free(s->recipe);
}

/* ------------------------------------------------------------------ comparing */

static qat_status tell(const struct session *s, const qat_debug_source *source, const char *path,
                       const qat_dataset *of, qat_error *err)
{
    debug_told const told = {.debug = s->debug,
                             .path = path,
                             .data = qat_dataset_info_of(of)->name,
                             .against = against,
                             .has_float = source->checkpoint || source->against,
                             .has_dump = source->dump != NULL};
    qat_status st = csv ? debug_write_csv(&told, csv, err) : QAT_OK;
    if (!st && json)
        st = debug_write_json(&told, json, err);
    if (!st && plot)
        st = debug_plot(&told, plot, NULL, err);
    if (st)
        return st;
    tool_ptq_print();
    debug_print(&told);
    return QAT_OK;
}

static qat_status compare(struct session *s, const qat_debug_source *source, const char *path,
                          qat_error *err)
{
    char label[] = "compare";
    bool const qm = source->model != NULL;
    const qat_dataset *of = qm ? s->of_model.data : s->data;
    const qat_input_info *input =
        qm ? &s->of_model.input : qat_checkpoint_input(qat_restored_checkpoint(s->checkpoint));
    qat_status st = qat_debug_create(&s->debug, source, err);
    if (!st)
        st = qat_debug_run(s->debug, input, of, samples ? samples : SAMPLES, tool_tick, label, err);
    tool_bar_clear();
    return st ? tool_name_file(path, err) : tell(s, source, path, of, err);
}

/** The most bits that weights of the checkpoint have; 0: not known. */
static int most_weight_bits(const struct session *s)
{
    const qat_quant_options *quant = qat_checkpoint_quant(qat_restored_checkpoint(s->checkpoint));
    qat_graph *eval = NULL;
    int most = 0;
    qat_error ignored;
    if (qat_create_eval_graph(&eval, qat_restored_graph(s->checkpoint), quant, &ignored))
        return 0;
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        const qat_node *node = qat_graph_node(eval, i);
        const qat_quantizer *q = qat_node_quantizer(node);
        int const own = q && q->weights ? (int)qat_attr(node, "bits") : 0;
        most = own > most ? own : most;
    }
    qat_graph_free(eval);
    return most;
}

/** What fewer bits cost is asked for: are these fewer? */
static void warn_of_bits(const struct session *s)
{
    int const asked = bits ? (int)bits : BITS, most = most_weight_bits(s);
    if (most && asked >= most)
        fprintf(stderr,
                "qat-debug: warning: the weights of this checkpoint have at most %d bits, so "
                "--bits %d takes none from them\n",
                most, asked);
}

/** One layer after the other. */
static qat_status measure(const struct session *s, const qat_deploy_options *deploy, qat_error *err)
{
    const tool_ptq *p = &tool_ptq_given;
    qat_writer settings = {0};
    warn_of_bits(s);
    if (p->data)
        qat_write_text(&settings, "ptq %s, samples %lld, observer %s%s%s", p->data,
                       (long long)p->samples, p->observer ? p->observer : "minmax",
                       p->equalize ? ", equalized" : "",
                       p->correct_bias ? ", biases corrected" : "");
    for (int i = 0; i < p->sets.count; i++)
        qat_write_text(&settings, ", %s", p->sets.items[i]);
    qat_write_u8(&settings, 0);
    qat_status const st =
        settings.failed
            ? qat_out_of_memory(err, sensitivity)
            : sensitivity_run(&(sensitivity_wanted){.path = sensitivity,
                                                    .checkpoint = s->checkpoint,
                                                    .deploy = deploy,
                                                    .data = s->data,
                                                    .samples = samples,
                                                    .bits = bits ? (int)bits : BITS,
                                                    .settings = (const char *)settings.bytes},
                              err);
    qat_writer_free(&settings);
    return st;
}

/** Refuse options that would be ignored, before anything is read. */
static void check_options(tool_file kind)
{
    bool const qm = kind == TOOL_FILE_QM;
    tool_check_data(&me, "--data", data, NULL);
    tool_ptq_check(&me);
    if (qm && !recipe_path && !data)
        tool_usage(&me, "a .qm needs --recipe or --data");
    if (qm && (tool_ptq_given.data || tool_ptq_given.sets.count))
        tool_usage(&me, "%s works with checkpoints only: a .qm has its ranges",
                   tool_ptq_given.data ? "--ptq" : "--set");
    if (qm && sensitivity)
        tool_usage(&me, "--sensitivity works with checkpoints only: a .qm has its bits");
    if (sensitivity && (against || csv || json || plot))
        tool_usage(&me, "--sensitivity writes its own table: give it without --against, --csv, "
                        "--json and --plot");
    if (bits && !sensitivity)
        tool_usage(&me, "--bits needs --sensitivity");
    if (tool_ptq_given.sets.count && !tool_ptq_given.data)
        tool_usage(&me, "--set needs --ptq");
}

int main(int argc, char **argv)
{
    tool_list args;
    tool_file kind = TOOL_FILE_OTHER;
    struct session s = {0};
    qat_deploy_options deploy = {.log = &tool_log};
    qat_debug_source source = {.deploy = &deploy};
    qat_error err;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    tool_threads(threads);
    const char *path = args.items[0];
    qat_status st = tool_file_kind(path, &kind, &err);
    if (!st && kind != TOOL_FILE_CHECKPOINT && kind != TOOL_FILE_QM) {
        qat_fail(&err, QAT_ERR_FORMAT, "%.400s: neither a checkpoint nor a .qm", path);
        st = tool_not_opened(path, &err);
    }
    if (!st) {
        check_options(kind);
        tool_ptq_apply(&me, &deploy);
        st = open_all(&s, path, kind, &source, &err);
    }
    if (!st)
        st = sensitivity ? measure(&s, &deploy, &err) : compare(&s, &source, path, &err);
    tool_bar_clear();
    close_all(&s);
    return st ? tool_failed(&me, &err) : 0;
}
