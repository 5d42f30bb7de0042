/** Plots of a sweep's results, each asked for by a short text. */
#ifndef QAT_TOOLS_SWEEP_PLOT_H
#define QAT_TOOLS_SWEEP_PLOT_H

#include "common/plot.h"
#include "sweep.h"

/**
 * A curve plot, OUT/plot-SPEC.png and .svg. SPEC: "[log:]X,Y[@KEY=VALUE][+X,Y...][/KEY...]": means
 * of figure Y over those of X, of the cells with the setting that stands behind '@'; a curve for
 * each pair and each choice of values of the KEYs; deviations of Y as bars. Points are joined where
 * at most one setting changes along a curve. X and Y are columns of the results, or settings whose
 * values are numbers. log: a logarithmic x axis.
 */
qat_status sweep_plot(const sweep *s, const qat_results *r, const char *spec, qat_error *err);

/**
 * Heat maps, OUT/heat-SPEC.png and .svg. SPEC: "VALUE[:OTHER],KEY,KEY": the mean of a figure, or
 * its relative change against OTHER of the same run in percent, over the first key's values
 * (columns) and the second's (rows). A map for each choice of the other settings.
 */
qat_status sweep_heat(const sweep *s, const qat_results *r, const char *spec, qat_error *err);

/** Find what is wrong with a SPEC before anything runs: its form, its keys, settings on axes that
 * are no numbers. */
qat_status sweep_check_plot(const sweep *s, const char *spec, qat_error *err);
qat_status sweep_check_heat(const sweep *s, const char *spec, qat_error *err);

/** One figure of one run, as it is plotted (shares in percent, multiply-adds in millions); NaN: not
 *  known. A name that is neither column nor setting is an error. */
qat_status sweep_figure(const sweep *s, const qat_results *r, int row, const char *name,
                        double *value, qat_error *err);
/** Is it no setting, or one whose values are numbers? */
qat_status sweep_check_axis(const sweep *s, const char *name, qat_error *err);
/** What an axis of this figure is called, with its unit. */
void sweep_title(const char *name, char *text, size_t max);
/** "float" or "integer": whose figure it is; *figure: which, without "float_". */
const char *sweep_network_of(const char *name, const char **figure);
/** The title of a figure of both networks. */
void sweep_title_of_both(const char *figure, char *text, size_t max);
/** The same without the unit. */
void sweep_title_without_unit(const char *name, char *text, size_t max);
/** "quickstart, mean of 3 seeds" */
void sweep_plot_title(const sweep *s, char *text, size_t max);
/** OUT/KIND-SPEC, fit for a file's name. */
void sweep_plot_path(const sweep *s, const char *kind, const char *spec, char *path, size_t max);

#endif
