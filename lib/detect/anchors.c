/** Makes SSD's anchors, placed as qat_anchor_spec describes. */
#include "qat/detect.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_ANCHORS = 1 << 24, REDUCED = 3, MAX_CELLS = 1 << 12 };

qat_anchor_spec qat_anchor_defaults(void)
{
    return (qat_anchor_spec){.min_scale = 0.2,
                             .max_scale = 0.95,
                             .n_ratios = 5,
                             .ratios = {1, 2, 0.5, 3, 1.0 / 3},
                             .extra_square = true,
                             .reduced_lowest = true};
}

static qat_status check_range(const char *what, int layer, double value, double lo, double hi,
                              qat_error *err)
{
    if (value >= lo && value <= hi)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "anchors: %s %g (number %d), not in %g..%g", what, value,
                    layer, lo, hi);
}

static qat_status check_spec(const qat_anchor_spec *s, qat_error *err)
{
    double const least = 1e-4;
    qat_status st = check_range("number of layers", 0, s->n_layers, 1, QAT_MAX_ANCHOR_LAYERS, err);
    if (!st)
        st = check_range("number of aspect ratios", 0, s->n_ratios, 0, QAT_MAX_ASPECT_RATIOS, err);
    if (!st && s->n_ratios == 0 && !s->extra_square)
        st = qat_fail(err, QAT_ERR_ARGUMENT, "anchors: neither aspect ratios nor extra squares");
    if (!st)
        st = check_range("min_scale", 0, s->min_scale, least, 1, err);
    if (!st)
        st = check_range("max_scale", 0, s->max_scale, s->min_scale, 1, err);
    for (int i = 0; !st && i < s->n_ratios; i++)
        st = check_range("aspect ratio", i, s->ratios[i], 0.01, 100, err);
    for (int i = 0; !st && i < s->n_layers; i++) {
        st = check_range("feature map's height", i, s->height[i], 1, MAX_CELLS, err);
        if (!st)
            st = check_range("feature map's width", i, s->width[i], 1, MAX_CELLS, err);
    }
    return st;
}

int qat_anchors_per_cell(const qat_anchor_spec *spec, int layer)
{
    return layer == 0 && spec->reduced_lowest ? REDUCED : spec->n_ratios + spec->extra_square;
}

int qat_anchors_count(const qat_anchor_spec *spec)
{
    int64_t count = 0;
    if (check_spec(spec, NULL))
        return -1;
    for (int i = 0; i < spec->n_layers && count <= MAX_ANCHORS; i++)
        count += (int64_t)spec->height[i] * spec->width[i] * qat_anchors_per_cell(spec, i);
    return count <= MAX_ANCHORS ? (int)count : -1;
}

/** The scale of layer i; for i = n_layers it is 1. */
static double scale_of(const qat_anchor_spec *s, int i)
{
    int const last = s->n_layers - 1;
    if (i > last)
        return 1;
    return last ? s->min_scale + (s->max_scale - s->min_scale) * i / last : s->min_scale;
}

static qat_centre_box shape_of(double scale, double ratio)
{
    return (qat_centre_box){.height = (float)(scale / sqrt(ratio)),
                            .width = (float)(scale * sqrt(ratio))};
}

/** The anchor shapes of a layer; returns how many there are. */
static int shapes_of(const qat_anchor_spec *s, int layer,
                     qat_centre_box shapes[QAT_MAX_ASPECT_RATIOS + 1])
{
    double const scale = scale_of(s, layer);
    int n = 0;
    if (layer == 0 && s->reduced_lowest) {
        shapes[0] = shape_of(0.1, 1);
        shapes[1] = shape_of(scale, 2);
        shapes[2] = shape_of(scale, 0.5);
        return REDUCED;
    }
    for (; n < s->n_ratios; n++)
        shapes[n] = shape_of(scale, s->ratios[n]);
    if (s->extra_square)
        shapes[n++] = shape_of(sqrt(scale * scale_of(s, layer + 1)), 1);
    return n;
}

static qat_centre_box *fill_layer(const qat_anchor_spec *s, int layer, qat_centre_box *to)
{
    qat_centre_box shapes[QAT_MAX_ASPECT_RATIOS + 1];
    int const n = shapes_of(s, layer, shapes), height = s->height[layer], width = s->width[layer];
    for (int cell = 0; cell < height * width; cell++) {
        for (int i = 0; i < n; i++, to++) {
            *to = shapes[i];
            to->y = (float)((cell / width + 0.5) / height);
            to->x = (float)((cell % width + 0.5) / width);
        }
    }
    return to;
}

qat_status qat_anchors_create(qat_centre_box **anchors, const qat_anchor_spec *spec, qat_error *err)
{
    *anchors = NULL;
    qat_status const st = check_spec(spec, err);
    if (st)
        return st;
    int const count = qat_anchors_count(spec);
    if (count < 0)
        return qat_fail(err, QAT_ERR_ARGUMENT, "anchors: more than %d of them", MAX_ANCHORS);
    qat_centre_box *to = malloc((size_t)count * sizeof *to);
    if (!to)
        return qat_out_of_memory(err, "anchors");
    *anchors = to;
    for (int i = 0; i < spec->n_layers; i++)
        to = fill_layer(spec, i, to);
    return QAT_OK;
}
