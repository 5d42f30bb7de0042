/** Histograms as PNG and SVG: one for each tensor of 8-bit codes and each float parameter. */
#include "tools/inspect/inspect.h"
#include "tools/plot/plot.h"

#include "base/files/file.h"
#include "qat/quantizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BINS = 256, PATH_LIMIT = 1024 };

/** Write the plot; print its name only after that succeeded. */
static qat_status write_plot(const plot_histogram *p, const char *path, const char *what,
                             qat_error *err)
{
    qat_status const st = plot_histogram_write(p, path, err);
    if (!st)
        printf("%s.png, %s.svg: %s\n", tool_shown(path), tool_shown(path), what);
    return st;
}

static qat_status plot_codes(const inspected *x, int index, const char *dir, qat_error *err)
{
    const qat_qtensor *t = &x->graph->tensors[index];
    int const lowest = t->type == QI_U8 ? 0 : t->type == QI_S8 ? INT8_MIN : INT16_MIN;
    int const width = t->type == QI_S16 ? 256 : 1; /* codes of a bin */
    int64_t bins[BINS] = {0};
    char path[PATH_LIMIT], label[TOOL_LABEL_MAX], what[5 * QAT_NAME_MAX + 96], axis[80], mark[32];
    size_t const n = qat_qtensor_count(t);
    for (size_t i = 0; i < n; i++)
        bins[(inspect_code(t, x->codes[index], i) - lowest) / width]++;
    inspect_label(x->graph, index, label);
    snprintf(path, sizeof path, "%.900s/%s", dir, label);
    snprintf(what, sizeof what, "%s, %zu codes", *t->name ? tool_shown(t->name) : label, n);
    if (inspect_has_scale(t))
        snprintf(axis, sizeof axis, "%s code q; the real value is S (q - Z), S = %.4g%s",
                 inspect_type_name(t), (double)t->scale, t->channel_scales ? " ..." : "");
    else
        snprintf(axis, sizeof axis, "%s code q", inspect_type_name(t));
    snprintf(mark, sizeof mark, "Z = %d", (int)t->zero_point);
    plot_histogram const p = {.title = what,
                              .x_title = axis,
                              .n = BINS,
                              .counts = bins,
                              .low = lowest - 0.5,
                              .high = lowest + BINS * width - 0.5,
                              .mark = t->zero_point,
                              .mark_name = mark};
    return write_plot(&p, path, what, err);
}

/** Number of the interval that x lies in. */
static int bin_of(double x, double least, double largest)
{
    double const at = (x - least) / (largest - least) * BINS;
    return at < 0 ? 0 : at > BINS - 1 ? BINS - 1 : (int)at;
}

static qat_status plot_param(const qat_named_tensor *t, int index, const char *dir, qat_error *err)
{
    double least = INFINITY, largest = -INFINITY;
    int64_t bins[BINS] = {0};
    char path[PATH_LIMIT], what[5 * QAT_NAME_MAX + 96];
    size_t const n = qat_shape_count(&t->shape);
    for (size_t i = 0; i < n; i++) {
        least = fmin(least, (double)t->values[i]);
        largest = fmax(largest, (double)t->values[i]);
    }
    snprintf(path, sizeof path, "%.900s/p%d", dir, index);
    snprintf(what, sizeof what, "%s, %zu values %g..%g", tool_shown(t->name), n, least, largest);
    if (!(least < largest)) { /* all values are equal: use an interval around them */
        least -= fmax(fabs(least), 1) / 2;
        largest += fmax(fabs(largest), 1) / 2;
    }
    for (size_t i = 0; i < n; i++)
        bins[bin_of((double)t->values[i], least, largest)]++;
    plot_histogram const p = {.title = what,
                              .x_title = "value",
                              .n = BINS,
                              .counts = bins,
                              .low = least,
                              .high = largest,
                              .mark = least <= 0 && largest >= 0 ? 0 : NAN,
                              .mark_name = "0"};
    return write_plot(&p, path, what, err);
}

/**
 * The state of a quantizer (ends of a range, number of observations) has no histogram: it is not a
 * sample.
 */
static qat_status plot_params(const qat_checkpoint *c, const char *dir, qat_error *err)
{
    qat_status st = QAT_OK;
    int n;
    const qat_named_tensor *params = qat_checkpoint_tensors(c, &n);
    for (int i = 0; !st && i < n; i++)
        if (!qat_is_range(params[i].name))
            st = plot_param(&params[i], i, dir, err);
    return st;
}

qat_status inspect_plot(inspected *x, const char *dir, qat_error *err)
{
    if (strlen(dir) > 900)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%.80s...: the path is too long", dir);
    qat_status st = qat_make_dirs(dir, err);
    if (!st && x->graph)
        st = inspect_run(x, err);
    for (int i = 0; !st && x->graph && i < x->graph->n_tensors; i++)
        if (x->codes[i])
            st = plot_codes(x, i, dir, err);
    return st || !x->restored ? st : plot_params(qat_restored_checkpoint(x->restored), dir, err);
}
