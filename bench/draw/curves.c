/**
 * Draws curves, OUT.png and OUT.svg.
 *
 *     curves OUT TITLE X-TITLE Y-TITLE [--log-x]     reads lines `x y name of the curve`
 *
 * Curves are in the order in which their names come first, points in that of the lines.
 */
#include "tools/plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 256 };

typedef struct curves {
    plot_curve of[PLOT_MAX_CURVES];
    double x[PLOT_MAX_CURVES][POINTS], y[PLOT_MAX_CURVES][POINTS];
    int n;
} curves;

/** The curve of this name, which is new or known; NULL: there are too many. */
static plot_curve *curve_of(curves *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->of[i].name, name))
            return &c->of[i];
    if (c->n == PLOT_MAX_CURVES)
        return NULL;
    plot_curve *new = &c->of[c->n];
    *new = (plot_curve){.x = c->x[c->n], .y = c->y[c->n], .colour = c->n};
    snprintf(new->name, sizeof new->name, "%s", name);
    c->n++;
    return new;
}

/** A line's point; blank lines have none. */
static qat_status read_line(curves *c, const char *line, int number, bool log_x, qat_error *err)
{
    char name[128];
    double x, y;
    int const fields = sscanf(line, "%lf %lf %127[^\n]", &x, &y, name);
    if (fields == EOF)
        return QAT_OK;
    if (fields != 3 || !isfinite(x) || !isfinite(y) || (log_x && x <= 0))
        return qat_fail(err, QAT_ERR_FORMAT, "line %d: expected x, y%s and a name", number,
                        log_x ? " (x > 0)" : "");
    plot_curve *curve = curve_of(c, name);
    if (!curve || curve->n == POINTS)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "line %d: at most %d curves of at most %d points are drawn", number,
                        PLOT_MAX_CURVES, POINTS);
    curve->x[curve->n] = x;
    curve->y[curve->n++] = y;
    return QAT_OK;
}

int main(int argc, char **argv)
{
    static curves all;
    char line[512];
    qat_error err;
    qat_status st = QAT_OK;
    bool const log_x = argc == 6 && !strcmp(argv[5], "--log-x");
    if (argc != 5 && !log_x) {
        fputs("usage: curves OUT TITLE X-TITLE Y-TITLE [--log-x]\n", stderr);
        return 2;
    }
    for (int number = 1; !st && fgets(line, sizeof line, stdin); number++)
        st = read_line(&all, line, number, log_x, &err);
    plot_curves const p = {.title = argv[2],
                           .x_title = argv[3],
                           .y_title = argv[4],
                           .log_x = log_x,
                           .joined = true,
                           .n = all.n,
                           .curves = all.of};
    if (!st)
        st = plot_curves_write(&p, argv[1], &err);
    if (st)
        fprintf(stderr, "curves: %s\n", err.message);
    return st != QAT_OK;
}
