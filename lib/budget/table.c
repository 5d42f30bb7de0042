/** The file of measured numbers. */
#include "budget/table.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { NUMBER_MAX = 40 };

static const char columns[] = "layer,what,of,value\n";

static qat_status add(budget_table *t, const char *key, size_t length, double value, qat_error *err)
{
    if (t->n == t->capacity) {
        size_t const wanted = t->capacity ? 2 * t->capacity : 64;
        budget_row *bigger = realloc(t->rows, wanted * sizeof *bigger);
        if (!bigger)
            return qat_out_of_memory(err, t->path);
        t->rows = bigger;
        t->capacity = wanted;
    }
    t->rows[t->n] = (budget_row){strndup(key, length), value};
    if (!t->rows[t->n].key)
        return qat_out_of_memory(err, t->path);
    t->n++;
    return QAT_OK;
}

/** A line "key,value": names of layers may have commas, so the last one counts. */
static qat_status take_line(budget_table *t, const char *line, size_t length, bool *good,
                            qat_error *err)
{
    size_t comma = length;
    char *end;
    while (comma && line[comma - 1] != ',')
        comma--;
    double const value = comma ? qat_number_of(line + comma, &end) : 0;
    *good = comma > 1 && end == line + length && length > comma;
    return *good ? add(t, line, comma - 1, value, err) : QAT_OK;
}

static qat_status take_all(budget_table *t, const char *text, qat_error *err)
{
    size_t const head = strlen(t->head);
    bool good = !strncmp(text, t->head, head) && text[head] == '\n' &&
                !strncmp(text + head + 1, columns, sizeof columns - 1);
    const char *line = text + (good ? head + sizeof columns : 0);
    qat_status st = QAT_OK;
    while (!st && good && *line) {
        size_t const n = strcspn(line, "\n");
        good = line[n] == '\n';
        if (good)
            st = take_line(t, line, n, &good, err);
        line += good ? n + 1 : 0;
    }
    if (!st && !good)
        st = qat_fail(err, QAT_ERR_STATE,
                      "%s was measured with other weights, data or settings: remove it, or name "
                      "another file (budget.table)",
                      t->path);
    return st;
}

/** Read the rows of the file, if there is one. */
static qat_status read_file(budget_table *t, qat_error *err)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    if (access(t->path, F_OK))
        return QAT_OK;
    qat_status st = qat_file_read(t->path, BUDGET_TABLE_BYTES, &bytes, &count, err);
    if (!st && memchr(bytes, 0, count))
        st = qat_fail(err, QAT_ERR_STATE, "%s: a byte of it is 0, so it is no table: remove it",
                      t->path);
    char *text = st ? NULL : strndup((const char *)bytes, count);
    if (!st)
        st = text ? take_all(t, text, err) : qat_out_of_memory(err, t->path);
    free(text);
    free(bytes);
    return st;
}

qat_status budget_table_open(budget_table *t, const char *path, const char *head, bool forget,
                             qat_error *err)
{
    *t = (budget_table){.path = strdup(path), .head = strdup(head), .replaces = forget};
    if (!t->path || !t->head)
        return qat_out_of_memory(err, path);
    return forget ? QAT_OK : read_file(t, err);
}

void budget_table_free(budget_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->rows[i].key);
    free(t->rows);
    free(t->path);
    free(t->head);
    *t = (budget_table){0};
}

bool budget_table_get(const budget_table *t, const char *key, double *value)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->rows[i].key, key)) {
            *value = t->rows[i].value;
            return true;
        }
    return false;
}

/* ------------------------------------------------------------------ tables that processes share */

/**
 * Wait until no other process holds the folder of the table; -1: it cannot be held. Processes that
 * share the table may then lose each other's rows, and measure them again.
 */
static int hold_folder(const budget_table *t)
{
    const char *slash = strrchr(t->path, '/');
    char *folder = slash ? strndup(t->path, (size_t)(slash - t->path) + 1) : strdup(".");
    int const fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    int failed = fd < 0;
    while (!failed && flock(fd, LOCK_EX))
        failed = errno != EINTR;
    if (fd >= 0 && failed)
        close(fd);
    return failed ? -1 : fd;
}

/** Take what other processes have put into the file since it was read. */
static qat_status merge(budget_table *t, qat_error *err)
{
    budget_table there;
    double value;
    qat_status st = budget_table_open(&there, t->path, t->head, t->replaces, err);
    for (size_t i = 0; !st && i < there.n; i++)
        if (!budget_table_get(t, there.rows[i].key, &value))
            st = add(t, there.rows[i].key, strlen(there.rows[i].key), there.rows[i].value, err);
    budget_table_free(&there);
    return st;
}

static qat_status write_file(const budget_table *t, qat_error *err)
{
    qat_writer w = {0};
    qat_write_text(&w, "%s\n%s", t->head, columns);
    for (size_t i = 0; i < t->n; i++)
        qat_write_text(&w, "%s,%.9g\n", t->rows[i].key, t->rows[i].value);
    qat_status const st = w.failed ? qat_out_of_memory(err, t->path)
                                   : qat_file_write_atomic(t->path, w.bytes, w.count, err);
    qat_writer_free(&w);
    return st;
}

static qat_status save(budget_table *t, qat_error *err)
{
    int const held = hold_folder(t);
    qat_status st = merge(t, err);
    if (!st)
        st = write_file(t, err);
    t->replaces = t->replaces && st;
    if (held >= 0)
        close(held);
    return st;
}

qat_status budget_table_put(budget_table *t, const char *key, double *value, qat_error *err)
{
    char text[NUMBER_MAX];
    qat_format(text, sizeof text, "%.9g", *value);
    *value = qat_number_of(text, NULL);
    qat_status const st = add(t, key, strlen(key), *value, err);
    return st ? st : save(t, err);
}
