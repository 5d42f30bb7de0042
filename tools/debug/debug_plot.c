/** The errors by layer, as curves over the layers' positions. */
#include "tools/debug/debug_tool.h"
#include "tools/plot/plot.h"

#include <math.h>
#include <stdlib.h>

enum { CURVES = 3, ARRAYS = 3 }; /* of a curve: x, y, deviation */

static int fill(const qat_debug *d, plot_curve *curve, int which)
{
    for (int i = 0; i < qat_debug_layers(d); i++) {
        const qat_debug_layer *l = qat_debug_layer_at(d, i);
        double const y = which == 0 ? l->whole.snr : which == 1 ? l->simulated.snr : l->own.snr;
        if (isnan(y) || y >= 999)
            continue;
        curve->x[curve->n] = i + 1;
        curve->deviation[curve->n] = NAN;
        curve->y[curve->n++] = y;
    }
    return curve->n;
}

qat_status debug_plot(const debug_told *t, const char *path, qat_writer *svg, qat_error *err)
{
    size_t const n = (size_t)qat_debug_layers(t->debug) + 1;
    double *room = calloc(ARRAYS * CURVES * n, sizeof *room);
    plot_curve curves[CURVES] = {
        {.name = "integer"}, {.name = "simulated"}, {.name = "each layer alone", .dashes = 1}};
    plot_curves plot = {.title = "signal over quantization noise, layer by layer",
                        .x_title = "layer, in the order of execution",
                        .y_title = "signal-to-noise ratio [dB]",
                        .joined = true,
                        .curves = curves};
    if (!room)
        return qat_out_of_memory(err, "plot");
    for (int i = 0; i < CURVES; i++) {
        plot_curve *curve = &curves[plot.n];
        *curve = curves[i];
        curve->n = 0;
        curve->colour = i;
        curve->x = room + (size_t)(ARRAYS * i) * n;
        curve->y = curve->x + n;
        curve->deviation = curve->y + n;
        plot.n += fill(t->debug, curve, i) > 0;
    }
    qat_status const st = plot.n && path ? plot_curves_write(&plot, path, err)
                          : plot.n       ? plot_curves_svg(&plot, svg, err)
                                         : qat_fail(err, QAT_ERR_STATE, "nothing was compared");
    free(room);
    return st;
}
