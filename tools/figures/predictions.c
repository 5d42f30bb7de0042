/** All answers as CSV: a line for each sample and network. */
#include "tools/figures/figures.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/shown.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** One row of one network; the columns are those of write_head. */
static void write_row(qat_writer *w, const figures *f, size_t i)
{
    if (f->kind == QAT_SCORES_ONE_OF) {
        double p;
        int const answer = figures_answer(f, i, &p), truth = (int)f->truth[i];
        qat_write_text(w, ",%d,", truth);
        qat_write_csv(w, f->units[truth].name);
        qat_write_text(w, ",%d,", answer);
        qat_write_csv(w, f->units[answer].name);
        qat_write_text(w, ",%.9g", p);
    }
    for (int k = 0; k < f->n_units && f->kind != QAT_SCORES_ONE_OF; k++) {
        float const truth = f->truth[i * (size_t)f->n_units + (size_t)k];
        qat_write_text(w, isnan(truth) ? "," : ",%.9g", (double)truth);
        qat_write_text(w, ",%.9g", figures_score(f, i, k));
    }
    qat_write_text(w, "\n");
}

static void write_head(qat_writer *w, const figures *f)
{
    qat_write_text(w, f->kind == QAT_SCORES_ONE_OF
                          ? "network,sample,true,true_name,answer,answer_name,probability"
                          : "network,sample");
    for (int k = 0; k < f->n_units && f->kind != QAT_SCORES_ONE_OF; k++) {
        char name[FIGURES_NAME_MAX + 16];
        snprintf(name, sizeof name, "true %s", f->units[k].name);
        qat_write_text(w, ",");
        qat_write_csv(w, name);
        snprintf(name, sizeof name, "answer %s", f->units[k].name);
        qat_write_text(w, ",");
        qat_write_csv(w, name);
    }
    qat_write_text(w, "\n");
}

qat_status figures_write_predictions(const figures_run *runs, int n, const char *path,
                                     qat_error *err)
{
    qat_writer w = {0};
    for (int r = 0; r < n; r++) {
        if (!r)
            write_head(&w, runs[r].of);
        for (size_t i = 0; i < runs[r].of->n; i++) {
            qat_write_text(&w, "%.*s,%zu", *runs[r].prefix ? (int)strlen(runs[r].prefix) - 1 : 9,
                           *runs[r].prefix ? runs[r].prefix : "quantized", i);
            write_row(&w, runs[r].of, i);
        }
    }
    qat_status const st = w.failed ? qat_out_of_memory(err, path)
                                   : qat_file_write_atomic(path, w.bytes, w.count, err);
    qat_writer_free(&w);
    return st;
}
