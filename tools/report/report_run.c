/** What a run left: its tables, its checkpoint; and what its model is measured to do. */
#include "tools/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TIMED_RUNS = 20 };

/** In place of writing the model: time it. */
static qat_status time_model(void *context, const qi_host *host, const char *path, qat_error *err)
{
    report_run *run = context;
    const qi_model *model = qi_host_model(host);
    tool_model m = {.host = (qi_host *)host, .model = model};
    bench_result bench = {0};
    (void)path;
    qat_status const st = bench_measure(&bench, &m, &(bench_protocol){.runs = TIMED_RUNS}, err);
    run->layers = calloc((size_t)qi_node_count(model) + 1, sizeof *run->layers);
    for (int32_t i = 0; !st && run->layers && i < qi_node_count(model); i++) {
        report_layer *layer = &run->layers[run->n_layers++];
        const qi_node *node = qi_node_at(model, i);
        snprintf(layer->name, sizeof layer->name, "%.*s", QAT_NAME_MAX - 1, node->name);
        snprintf(layer->op, sizeof layer->op, "%.47s", node->kernel->name);
        layer->macs = bench.layers[i].macs;
        layer->ms = bench.layers[i].ms;
    }
    snprintf(run->isa, sizeof run->isa, "%.31s", qi_host_isa(host));
    run->ms = bench.times.median_ms;
    (void)report_answer(&run->answers, host, run->inspected.restored, run->most_answers,
                        &run->why_no_answers);
    bench_result_free(&bench);
    return st || run->layers ? st : qat_out_of_memory(err, "layers");
}

/** What cannot be measured of this run is told in the page, in a sentence. */
static void measure(report_run *run, const report_wanted *wanted)
{
    const qat_restored *c = run->inspected.restored;
    char label[] = "compare";
    qat_deploy_options const plain = {.log = &tool_log};
    qat_deploy_options const deploy = {.struct_size = sizeof deploy,
                                       .log = &tool_log,
                                       .samples = wanted->samples,
                                       .write = time_model,
                                       .write_context = run};
    qat_debug_source const source = {.checkpoint = c, .deploy = &plain};
    qat_dataset *data = NULL;
    if (!qat_checkpoint_quantized(qat_restored_checkpoint(c))) {
        qat_fail(&run->why_not, QAT_ERR_STATE, "It is a float run: nothing is quantized.");
        run->why_no_debug = run->why_no_values = run->why_no_answers = run->why_not;
        return;
    }
    run->most_answers = wanted->answers;
    if (qat_deploy(c, wanted->out, &deploy, &run->deployed, &run->why_not))
        run->why_no_answers = run->why_not;
    (void)inspect_run(&run->inspected, &run->why_no_values);
    qat_error *why = &run->why_no_debug;
    qat_status st = qat_recipe_open_data(&data, qat_restored_recipe(c), NULL, QAT_SPLIT_TEST, why);
    if (!st)
        st = qat_debug_create(&run->debug, &source, why);
    if (!st)
        (void)qat_debug_run(run->debug, qat_checkpoint_input(qat_restored_checkpoint(c)), data,
                            wanted->samples, tool_tick, label, why);
    tool_bar_clear();
    qat_dataset_close(data);
}

/** A folder's checkpoint, and the folder of a checkpoint. */
static qat_status find(report_run *run, char folder[1024], const char *path, qat_error *err)
{
    struct stat st;
    if (strlen(path) > 900)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s...: the path is too long", path);
    if (stat(path, &st))
        return qat_fail(err, QAT_ERR_IO, "%.900s: there is no such run", path);
    if (!S_ISDIR(st.st_mode)) {
        const char *slash = strrchr(path, '/');
        snprintf(run->checkpoint, sizeof run->checkpoint, "%s", path);
        snprintf(folder, 1024, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
        return QAT_OK;
    }
    snprintf(folder, 1024, "%s", path);
    snprintf(run->checkpoint, sizeof run->checkpoint, "%.900s/last.ckpt", path);
    if (stat(run->checkpoint, &st))
        snprintf(run->checkpoint, sizeof run->checkpoint, "%.900s/best.ckpt", path);
    return stat(run->checkpoint, &st) ? qat_fail(err, QAT_ERR_FORMAT,
                                                 "%.900s: not a run: it has neither last.ckpt nor "
                                                 "best.ckpt",
                                                 path)
                                      : QAT_OK;
}

static qat_status read_tables(report_run *run, const char *folder, qat_error *err)
{
    char path[1100];
    snprintf(path, sizeof path, "%.1023s/log.csv", folder);
    qat_status st = report_table_read(&run->log, path, err);
    snprintf(path, sizeof path, "%.1023s/quant.csv", folder);
    return st ? st : report_table_read(&run->quant, path, err);
}

qat_status report_open(report_run *run, const char *path, const report_wanted *wanted,
                       qat_error *err)
{
    char folder[1024];
    tool_file kind = TOOL_FILE_OTHER;
    *run = (report_run){.path = path};
    qat_status st = find(run, folder, path, err);
    snprintf(run->name, sizeof run->name, "%.150s", tool_shown(path));
    if (!st)
        st = tool_file_kind(run->checkpoint, &kind, err);
    if (!st && kind != TOOL_FILE_CHECKPOINT)
        st = qat_fail(err, QAT_ERR_FORMAT, "%.400s: not a checkpoint", run->checkpoint);
    if (!st)
        st = read_tables(run, folder, err);
    if (!st)
        st = inspect_open(&run->inspected, run->checkpoint, kind, wanted->plugins, err);
    if (!st)
        st = qat_recipe_write_run(qat_restored_recipe(run->inspected.restored), &run->recipe, err);
    if (!st)
        measure(run, wanted);
    return st;
}

void report_close(report_run *run)
{
    report_table_free(&run->log);
    report_table_free(&run->quant);
    qat_debug_free(run->debug);
    inspect_close(&run->inspected);
    free(run->recipe);
    free(run->layers);
    report_answers_free(&run->answers);
}
