/**
 * The accuracy with one layer alone in float, and with one layer alone at fewer bits, as a table
 * that grows by a row for each layer. Rows that are there already are not computed again.
 */
#include "tools/debug/sensitivity.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 24, FIGURES = 2 };

/** One layer, or all as they are. */
struct row {
    const char *name;       /* NULL: no layer is changed */
    int place;              /* in the network */
    double figure[FIGURES]; /* with the layer in float; at fewer bits */
};

struct table {
    const sensitivity_wanted *w;
    const qat_task *task;
    char (*names)[QAT_NAME_MAX];
    int n;            /* rows: layers and the first one, of none */
    struct row *rows; /* [n] */
    int known;        /* how many have figures */
};

/* ------------------------------------------------------------------ the file */

/** What must be the same in a table that is continued. */
static void write_head(const struct table *t, qat_writer *out)
{
    const uint8_t *digest = qat_checkpoint_digest(qat_restored_checkpoint(t->w->checkpoint));
    qat_write_text(out, "# checkpoint ");
    for (int i = 0; i < 32; i++)
        qat_write_text(out, "%02x", digest[i]);
    qat_write_text(out, ", %s, samples %lld%s%s\n", qat_dataset_info_of(t->w->data)->name,
                   (long long)t->w->samples, *t->w->settings ? ", " : "", t->w->settings);
    qat_write_text(out, "layer,%s_alone_in_float,%s_alone_at_%d_bits\n",
                   t->task->figures[t->task->main].column, t->task->figures[t->task->main].column,
                   t->w->bits);
}

static void write_table(const struct table *t, qat_writer *out)
{
    write_head(t, out);
    for (int i = 0; i < t->known; i++)
        qat_write_text(out, "%s,%.9g,%.9g\n", t->rows[i].name ? t->rows[i].name : "none",
                       t->rows[i].figure[0], t->rows[i].figure[1]);
}

static qat_status save(const struct table *t, qat_error *err)
{
    qat_writer out = {0};
    write_table(t, &out);
    qat_status const st = out.failed ? qat_out_of_memory(err, t->w->path)
                                     : qat_file_write_atomic(t->w->path, out.bytes, out.count, err);
    qat_writer_free(&out);
    return st;
}

/** Take a line's figures; false: it is not the row that must come next. */
static bool take_row(struct table *t, const char *line)
{
    struct row *row = &t->rows[t->known];
    const char *name = t->known < t->n && row->name ? row->name : "none";
    size_t const length = strlen(name);
    char *end;
    if (t->known == t->n || strncmp(line, name, length) != 0 || line[length] != ',')
        return false;
    row->figure[0] = qat_number_of(line + length + 1, &end);
    if (*end != ',')
        return false;
    row->figure[1] = qat_number_of(end + 1, &end);
    t->known++;
    return *end == '\n';
}

/** Continue with the rows of an earlier run. */
static qat_status take_up(struct table *t, qat_error *err)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    qat_writer head = {0};
    FILE *file = fopen(t->w->path, "rb");
    if (!file)
        return errno == ENOENT ? QAT_OK : qat_file_fail(err, "open", t->w->path, errno);
    fclose(file);
    write_head(t, &head);
    qat_status st = head.failed ? qat_out_of_memory(err, t->w->path)
                                : qat_file_read(t->w->path, MOST_BYTES, &bytes, &count, err);
    bool same = !st && count >= head.count && memcmp(bytes, head.bytes, head.count) == 0;
    const char *line = (const char *)bytes + head.count;
    while (same && *line) {
        same = take_row(t, line);
        line = same ? strchr(line, '\n') + 1 : line;
    }
    if (!st && !same)
        st = qat_fail(err, QAT_ERR_STATE,
                      "%s is not a table of this checkpoint, these data and these settings: give "
                      "another name, or remove it",
                      t->w->path);
    qat_writer_free(&head);
    free(bytes);
    return st;
}

/* ------------------------------------------------------------------ measuring */

/** As the table has it, so that a continued one gives the same. */
static double as_written(double figure)
{
    char text[TOOL_FIGURE_MAX];
    qat_format(text, sizeof text, "%.9g", figure);
    return qat_number_of(text, NULL);
}

static qat_status measure(const struct table *t, struct row *row, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int k = 0; !st && k < FIGURES; k++) {
        qat_accuracy a = {0};
        char label[TOOL_FIGURE_MAX];
        snprintf(label, sizeof label, "%.40s %s", row->name ? row->name : "no layer",
                 k ? "at fewer bits" : "in float");
        st = qat_debug_evaluate(t->w->checkpoint, t->w->deploy, row->name, k ? t->w->bits : 0,
                                t->w->data, t->w->samples, tool_tick, label, &a, err);
        row->figure[k] = st ? NAN : as_written(qat_main_figure(&a));
    }
    return st;
}

static qat_status fill(struct table *t, qat_error *err)
{
    qat_status st = QAT_OK;
    while (!st && t->known < t->n) {
        st = measure(t, &t->rows[t->known], err);
        t->known += !st;
        if (!st)
            st = save(t, err);
    }
    tool_bar_clear();
    return st;
}

/* ------------------------------------------------------------------ telling */

static const struct table *compared; /* qsort has no context */

/** What a layer costs: at fewer bits, then what it would give back in float. */
static int by_cost(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double const sign = compared->task->less_is_better ? -1 : 1;
    double const bits = sign * (x->figure[1] - y->figure[1]);
    double const real = sign * (y->figure[0] - x->figure[0]);
    return bits < 0 ? -1 : bits > 0 ? 1 : real < 0 ? -1 : real > 0 ? 1 : x->place - y->place;
}

static void print(struct table *t)
{
    const struct row all = t->rows[0];
    int width = 5;
    compared = t;
    qsort(t->rows + 1, (size_t)t->n - 1, sizeof *t->rows, by_cost);
    for (int i = 1; i < t->n; i++) {
        int const n = (int)strlen(tool_shown(t->rows[i].name));
        width = n > width ? n : width;
    }
    printf("%s of one layer alone in float (the others simulated), and at %d bits (on integers); "
           "the costliest first\n%-*s %10s %9s %10s %9s\n",
           t->task->figures[t->task->main].name, t->w->bits, width, "layer", "in float", "change",
           "at bits", "change");
    printf("%-*s %10.4f %9s %10.4f\n", width, "none", all.figure[0], "", all.figure[1]);
    for (int i = 1; i < t->n; i++)
        printf("%-*s %10.4f %+9.4f %10.4f %+9.4f\n", width, tool_shown(t->rows[i].name),
               t->rows[i].figure[0], t->rows[i].figure[0] - all.figure[0], t->rows[i].figure[1],
               t->rows[i].figure[1] - all.figure[1]);
}

qat_status sensitivity_run(const sensitivity_wanted *wanted, qat_error *err)
{
    struct table t = {
        .w = wanted,
        .task = qat_task_of(qat_checkpoint_input(qat_restored_checkpoint(wanted->checkpoint)))};
    qat_status st = qat_debug_layer_names(wanted->checkpoint, &t.names, &t.n, err);
    if (st)
        return st;
    t.rows = calloc((size_t)t.n + 1, sizeof *t.rows);
    for (int i = 0; t.rows && i < t.n; i++)
        t.rows[i + 1] = (struct row){.name = t.names[i], .place = i};
    t.n++;
    st = t.rows ? take_up(&t, err) : qat_out_of_memory(err, wanted->path);
    if (!st)
        st = fill(&t, err);
    if (!st)
        print(&t);
    free(t.rows);
    free(t.names);
    return st;
}
