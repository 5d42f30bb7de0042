/**
 * Draws a table as a heat map, OUT.png and OUT.svg.
 *
 *     heat_map OUT TITLE X-TITLE Y-TITLE VALUE-TITLE     reads lines `row column value`
 *
 * Rows and columns have names, and are in the order in which their names come first. A field
 * without a value is drawn as missing.
 */
#include "tools/plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 32, NAME = 32 };

typedef struct names {
    char text[MOST][NAME];
    const char *at[MOST];
    int n;
} names;

typedef struct table {
    names rows, columns;
    double values[MOST][MOST];
    bool any; /* is there a value? */
} table;

/** The number of a name, which is new or known; -1: there are too many. */
static int number_of(names *of, const char *name)
{
    for (int i = 0; i < of->n; i++)
        if (!strcmp(of->text[i], name))
            return i;
    if (of->n == MOST)
        return -1;
    snprintf(of->text[of->n], NAME, "%s", name);
    of->at[of->n] = of->text[of->n];
    return of->n++;
}

/** A line's field; blank lines have none. */
static qat_status read_line(table *t, const char *line, int number, qat_error *err)
{
    char row[NAME], column[NAME], end;
    double value;
    int const fields = sscanf(line, "%31s %31s %lf %c", row, column, &value, &end);
    if (fields == EOF)
        return QAT_OK;
    if (fields != 3 || isinf(value))
        return qat_fail(err, QAT_ERR_FORMAT,
                        "line %d: expected row, column (at most %d letters each) and a number",
                        number, NAME - 1);
    int const y = number_of(&t->rows, row), x = number_of(&t->columns, column);
    if (x < 0 || y < 0)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "line %d: more than %d rows or columns", number,
                        MOST);
    if (!isnan(t->values[y][x]))
        return qat_fail(err, QAT_ERR_FORMAT, "line %d: row %s, column %s has a value already",
                        number, row, column);
    t->values[y][x] = value;
    t->any |= !isnan(value);
    return QAT_OK;
}

static qat_status read_table(table *t, FILE *file, qat_error *err)
{
    char line[256];
    qat_status st = QAT_OK;
    for (int i = 0; i < MOST * MOST; i++)
        t->values[i / MOST][i % MOST] = NAN;
    for (int number = 1; !st && fgets(line, sizeof line, file); number++)
        st = read_line(t, line, number, err);
    return st || t->any ? st : qat_fail(err, QAT_ERR_FORMAT, "no value was given");
}

int main(int argc, char **argv)
{
    static table t;
    static double values[MOST * MOST];
    qat_error err;
    if (argc != 6) {
        fprintf(stderr, "usage: heat_map OUT TITLE X-TITLE Y-TITLE VALUE-TITLE\n");
        return 2;
    }
    qat_status st = read_table(&t, stdin, &err);
    for (int i = 0; !st && i < t.rows.n * t.columns.n; i++)
        values[i] = t.values[i / t.columns.n][i % t.columns.n];
    plot_heat const heat = {argv[2],  argv[3],      argv[4],   argv[5], t.columns.n,
                            t.rows.n, t.columns.at, t.rows.at, values};
    if (!st)
        st = plot_heat_write(&heat, argv[1], &err);
    if (st)
        fprintf(stderr, "heat_map: %s\n", err.message);
    return st != QAT_OK;
}
