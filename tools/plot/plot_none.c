/** Replaces the plot functions in a build without cairo. */
#include "tools/plot/plot.h"

static qat_status no_cairo(const char *path, qat_error *err)
{
    return qat_fail(
        err, QAT_ERR_UNSUPPORTED,
        "%.300s: this build cannot draw plots: it was made without cairo (libcairo2-dev)", path);
}

qat_status plot_curves_write(const plot_curves *p, const char *path, qat_error *err)
{
    return no_cairo(path, err);
}

qat_status plot_histogram_write(const plot_histogram *p, const char *path, qat_error *err)
{
    return no_cairo(path, err);
}

qat_status plot_heat_write(const plot_heat *p, const char *path, qat_error *err)
{
    return no_cairo(path, err);
}

qat_status plot_curves_svg(const plot_curves *p, qat_writer *svg, qat_error *err)
{
    return no_cairo("a page", err);
}

qat_status plot_heat_svg(const plot_heat *p, qat_writer *svg, qat_error *err)
{
    return no_cairo("a page", err);
}

qat_status plot_histogram_svg(const plot_histogram *p, qat_writer *svg, qat_error *err)
{
    return no_cairo("a page", err);
}
