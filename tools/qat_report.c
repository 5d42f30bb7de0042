/** qat-report: one page of what runs did, with charts, that a browser opens without a network. */
#include "tools/common/limits.h"
#include "tools/report/report.h"

#include "base/files/file.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 64, ANSWERS = 1000, MOST_BYTES = 3000000, MOST_RUNS = 8, CHARTS = 24 };

static const char *out;
static tool_list plugins;
static int64_t samples = SAMPLES, answers = ANSWERS, threads;

static const tool_option options[] = {
    {"-o", TOOL_TEXT, &out, "FILE.html", "write the page to this file", 0, 0},
    {"--samples", TOOL_INT, &samples, "N",
     "run at most N samples of the test data through each network (default 64)", 1, 1 << 20},
    {"--answers", TOOL_INT, &answers, "N",
     "count at most N answers of the integer model (default 1000)", 1, 1 << 24},
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
    "qat-report",
    "RUN... -o FILE.html [--samples N] [--answers N] [--plugin FILE.so]...\n"
    "                  [--threads N] [--max-memory MIB] [--max-macs N] [--max-pixels N]",
    "Writes one page about runs, each a folder of qat-train or a checkpoint: settings, curves,\n"
    "ranges, what quantization did to each layer, figures, confusion, the worst answers, costs,\n"
    "the certificate, histograms; several runs side by side. The page needs no network and no\n"
    "script.",
    options,
    1,
    MOST_RUNS};

static qat_status write_page(qat_writer *page, const report_run *runs, int n, int charts,
                             qat_error *err)
{
    char title[200];
    snprintf(title, sizeof title, n > 1 ? "%d runs" : "%d run", n);
    if (n == 1)
        snprintf(title, sizeof title, "Run %.160s", runs->name);
    html_begin(page, title);
    qat_status st = report_compare(page, runs, n, err);
    for (int i = 0; !st && i < n; i++)
        st = report_section(page, &runs[i], charts, err);
    html_end(page);
    return st || !page->failed ? st : qat_out_of_memory(err, out);
}

/** With as many charts as a page of MOST_BYTES has room for. */
static qat_status make(const report_run *runs, int n, qat_error *err)
{
    qat_writer page = {0};
    qat_status st = QAT_OK;
    for (int charts = CHARTS; !st && (charts == CHARTS || page.count > MOST_BYTES); charts /= 2) {
        qat_writer_free(&page);
        page = (qat_writer){0};
        st = write_page(&page, runs, n, charts, err);
        if (!charts)
            break;
    }
    if (!st && page.count > MOST_BYTES)
        st = qat_fail(err, QAT_ERR_LIMIT,
                      "%.300s: the page would have more than 3 MB: give fewer "
                      "runs",
                      out);
    if (!st)
        st = qat_file_write_atomic(out, page.bytes, page.count, err);
    if (!st)
        printf("%s: %zu bytes\n", tool_shown(out), page.count);
    qat_writer_free(&page);
    return st;
}

/** The page must not take the place of a run's files. */
static qat_status check_out(qat_error *err)
{
    tool_file kind = TOOL_FILE_OTHER;
    if (tool_file_kind(out, &kind, NULL) || kind == TOOL_FILE_OTHER)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "-o %.400s: this is a checkpoint, a model or a recipe",
                    out);
}

int main(int argc, char **argv)
{
    tool_list args;
    qat_error err;
    qat_status st = QAT_OK;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    if (!out)
        tool_usage(&me, "where to? give -o FILE.html");
    tool_threads(threads);
    st = check_out(&err);
    report_run *runs = calloc((size_t)args.count, sizeof *runs);
    if (!st && !runs)
        st = qat_out_of_memory(&err, "runs");
    report_wanted const wanted = {
        .plugins = &plugins, .samples = samples, .answers = answers, .out = out};
    for (int i = 0; !st && i < args.count; i++)
        st = report_open(&runs[i], args.items[i], &wanted, &err);
    if (!st)
        st = make(runs, args.count, &err);
    for (int i = 0; runs && i < args.count; i++)
        report_close(&runs[i]);
    free(runs);
    return st ? tool_failed(&me, &err) : 0;
}
