/** Plots of a sweep's results. A short text, SPEC, says what to draw. */
#ifndef QAT_TOOLS_SWEEP_PLOT_H
#define QAT_TOOLS_SWEEP_PLOT_H

#include "tools/plot/plot.h"
#include "tools/sweep/sweep.h"

/**
 * Draw a curve plot, OUT/plot-SPEC.png and .svg. SPEC is "[log:]X,Y[@KEY=VALUE][+X,Y...][/KEY...]".
 * It plots the mean of column Y against the mean of column X, with a curve for each pair and each
 * choice of values of the KEYs. Bars show the standard deviation of Y. @KEY=VALUE: only cells with
 * that setting. A line joins points if at most one setting changes along the curve. X and Y are
 * columns of the results, or settings whose values are numbers. log: a logarithmic x axis.
 */
qat_status sweep_plot(const sweep *s, const qat_results *r, const char *spec, qat_error *err);

/**
 * Draw heat maps, OUT/heat-SPEC.png and .svg. SPEC is "VALUE[:OTHER],KEY,KEY": the mean of a
 * column, or its change relative to the column OTHER of the same run in percent. The first key's
 * values are the columns of the map, the second's its rows. There is one map for each choice of the
 * other settings.
 */
qat_status sweep_heat(const sweep *s, const qat_results *r, const char *spec, qat_error *err);

/** Check a SPEC before anything runs: its form, its keys, and that settings on axes are numbers. */
qat_status sweep_check_plot(const sweep *s, const char *spec, qat_error *err);
qat_status sweep_check_heat(const sweep *s, const char *spec, qat_error *err);

/**
 * The value of one column in one run as it is plotted (accuracies in percent, multiply-adds in
 * millions); NaN: not known. It is an error if the name is neither a column nor a setting.
 */
qat_status sweep_figure(const sweep *s, const qat_results *r, int row, const char *name,
                        double *value, qat_error *err);
/** Can this name be on an axis? A setting can if its values are numbers. */
qat_status sweep_check_axis(const sweep *s, const char *name, qat_error *err);
/** The title of an axis with this column, with its unit. */
void sweep_title(const char *name, char *text, size_t max);
/**
 * "float" or "integer", the network that a column belongs to; *figure: its name without "float_".
 */
const char *sweep_network_of(const char *name, const char **figure);
/** The title of a column that stands for both networks. */
void sweep_title_of_both(const char *figure, char *text, size_t max);
/** The title without the unit. */
void sweep_title_without_unit(const char *name, char *text, size_t max);
/** "quickstart, mean of 3 seeds" */
void sweep_plot_title(const sweep *s, char *text, size_t max);
/** OUT/KIND-SPEC, with characters that a file name can have; a long SPEC is cut, and has a hash. */
void sweep_plot_path(const sweep *s, const char *kind, const char *spec, char *path, size_t max);

#endif
