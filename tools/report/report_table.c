/** Tables that a run writes: numbers and names, separated by commas, without quotes. */
#include "tools/report/report.h"

#include "base/files/file.h"
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_BYTES = 1 << 24, MOST_COLUMNS = 64 };

static int count_of(const char *text, size_t n, char wanted)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += text[i] == wanted;
    return count;
}

/** Cut the text into cells. */
static qat_status cut(report_table *t, const char *path, int lines, qat_error *err)
{
    char *at = t->text;
    for (int line = 0; line < lines; line++) {
        char *const end = strchr(at, '\n');
        if (!end || count_of(at, (size_t)(end - at), ',') + 1 != t->columns)
            return qat_fail(err, QAT_ERR_FORMAT, "%.300s:%d: not a row of %d columns", path,
                            line + 1, t->columns);
        *end = 0;
        for (int c = 0; c < t->columns; c++) {
            char *const comma = strchr(at, ',');
            t->cells[line * t->columns + c] = at;
            if (comma)
                *comma = 0;
            at = comma ? comma + 1 : end + 1;
        }
    }
    t->rows = lines - 1;
    return QAT_OK;
}

qat_status report_table_read(report_table *t, const char *path, qat_error *err)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    *t = (report_table){0};
    if (access(path, F_OK))
        return QAT_OK;
    qat_status st = qat_file_read(path, TABLE_BYTES, &bytes, &count, err);
    if (st)
        return st;
    t->text = calloc(1, count + 1);
    if (t->text && count)
        memcpy(t->text, bytes, count);
    free(bytes);
    if (!t->text)
        return qat_out_of_memory(err, path);
    int const lines = count_of(t->text, count, '\n');
    if (!lines || strlen(t->text) != count)
        return qat_fail(err, QAT_ERR_FORMAT, "%.300s: not a table with a head", path);
    t->columns = count_of(t->text, strcspn(t->text, "\n"), ',') + 1;
    if (t->columns > MOST_COLUMNS)
        return qat_fail(err, QAT_ERR_FORMAT, "%.300s: more than %d columns", path, MOST_COLUMNS);
    t->cells = calloc((size_t)lines * (size_t)t->columns, sizeof *t->cells);
    if (!t->cells)
        return qat_out_of_memory(err, path);
    st = cut(t, path, lines, err);
    if (!st && report_column(t, "step") < 0)
        st = qat_fail(err, QAT_ERR_FORMAT, "%.300s:1: no column \"step\"", path);
    return st;
}

void report_table_free(report_table *t)
{
    free(t->text);
    free((void *)t->cells);
    *t = (report_table){0};
}

int report_column(const report_table *t, const char *name)
{
    for (int c = 0; t->cells && c < t->columns; c++)
        if (!strcmp(t->cells[c], name))
            return c;
    return -1;
}

const char *report_cell(const report_table *t, int row, int column)
{
    return column < 0 ? "" : t->cells[(row + 1) * t->columns + column];
}

double report_value(const report_table *t, int row, int column)
{
    char *end;
    const char *text = report_cell(t, row, column);
    double const value = qat_number_of(text, &end);
    return end == text || *end || !isfinite(value) ? NAN : value;
}
