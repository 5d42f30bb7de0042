/** The grid of an activation, from the range that training or calibration observed. */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEEN_MIN, SEEN_MAX, SEEN_STEPS, SEEN_MEAN };

const float *cert_class_values(const cert *c, int root, const char *part, size_t *count)
{
    char name[2 * QAT_NAME_MAX];
    const qat_node *node = cert_class_node(c, root);
    bool const input = root >= c->count, concat = cert_info(c, node)->kind == CERT_CONCAT;
    snprintf(name, sizeof name, "%s%s/%s", node->name, input ? "/in/q" : "/q", part);
    const float *values = cert_find_values(c, name, count);
    for (int i = 0; !values && !input && concat && i < node->n_data; i++) {
        snprintf(name, sizeof name, "%s/in%d/q/%s", node->name, i, part);
        values = cert_find_values(c, name, count);
    }
    return values;
}

static qat_status observed_grid(const cert *c, int root, cert_grid *grid)
{
    size_t n = 0, n_learned = 0;
    const cert_settings *s = &c->nodes[root].settings;
    const float *seen = cert_class_values(c, root, "range", &n);
    const float *learned = cert_class_values(c, root, "learned", &n_learned);
    int32_t lo, hi;
    cert_codes(c->source->quant.layout, cert_activation_bits(c, s), false, &lo, &hi);
    cert_seen from = {0};
    if (seen && n > SEEN_STEPS && seen[SEEN_STEPS] > 0)
        from = (cert_seen){(double)seen[SEEN_MIN], (double)seen[SEEN_MAX],
                           n > SEEN_MEAN ? (double)seen[SEEN_MEAN] : 0, NULL};
    *grid = cert_grid_of_quantizer(s->activations, from, false, s->power_of_two, lo, hi, 0);
    if (grid->unknown)
        return QAT_OK;
    if (!seen || n <= SEEN_STEPS || !(seen[SEEN_STEPS] > 0))
        return qat_fail(
            c->err, QAT_ERR_MISMATCH,
            "%s: the checkpoint holds no range of this tensor, so its scale cannot be computed",
            cert_class_node(c, root)->name);
    if ((int)n_learned >= cert_learned_values(s->activations, false) && learned)
        from.learned = learned;
    *grid = cert_grid_of_quantizer(s->activations, from, false, s->power_of_two, lo, hi, 0);
    return QAT_OK;
}

/**
 * [min, max) in 2^b codes: [0, 1) of softmax; an op of a plugin says it itself. 16-bit codes are
 * symmetric.
 */
static cert_grid fixed_grid(const qat_node *node, int bits, int32_t lo, int32_t hi)
{
    const cert_curve *curve = cert_curve_of(node);
    double min = 0, max = 1;
    if (curve) {
        min = curve->min;
        max = curve->max;
    } else if (!qat_node_is_op(node, "softmax")) {
        min = (double)node->op->quant->fixed_min;
        max = (double)node->op->quant->fixed_max;
    }
    double const wide = ldexp(fmax(-min, max), 1 - bits);
    if (bits == QAT_WIDE_BITS)
        return (cert_grid){
            .symmetric = true, .scale = wide, .lower = lo * wide, .lo = lo, .hi = hi};
    return (cert_grid){
        .scale = ldexp(max - min, -bits), .lower = min, .lo = lo, .hi = hi, .lowest = lo};
}

qat_status cert_activation_grid(const cert *c, int origin, cert_grid *grid)
{
    const cert_node *info = &c->nodes[origin];
    const qat_node *node = cert_class_node(c, origin);
    const qat_quant_options *o = &c->source->quant;
    int32_t lo, hi;
    int const bits = cert_activation_bits(c, &info->settings);
    cert_codes(o->layout, bits, false, &lo, &hi);
    if (info->range == CERT_OBSERVED)
        return observed_grid(c, cert_root(c, origin), grid);
    if (info->range != CERT_GIVEN)
        return qat_fail(c->err, QAT_ERR_MISMATCH,
                        "%s: this tensor stays in float by the recipe's settings, so the file "
                        "cannot have codes of it",
                        node->name);
    if (!qat_node_is_input(node)) {
        *grid = fixed_grid(node, bits, lo, hi);
        return QAT_OK;
    }
    cert_seen const given = {(double)o->input_min, (double)o->input_max, 0, NULL};
    *grid = cert_grid_of_quantizer("ema", given, false, false, lo, hi, 0);
    return QAT_OK;
}

qat_status cert_check_clamp(const cert *c, const char *layer, const qi_tensor *output, double min,
                            double max, int32_t lo, int32_t hi)
{
    int32_t lowest, highest;
    double const scale = (double)cert_scale(output);
    cert_codes_of(output, &lowest, &highest);
    if (c->source->profile != QAT_PROFILE_TFLITE && output->bits < 8) {
        qat_status const st =
            cert_equal(c, layer, "the parameter clamp_lo", lo, cert_code_of_bound(output, min));
        return st ? st
                  : cert_equal(c, layer, "the parameter clamp_hi", hi,
                               cert_code_of_bound(output, max));
    }
    double const slack = (highest - lowest + 1) * CERT_U;
    bool const right = cert_near_code(min, scale, output->zero_point, lowest, highest, slack, lo) &&
                       cert_near_code(max, scale, output->zero_point, lowest, highest, slack, hi);
    if (right)
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: the file limits its codes to %d..%d, but an output in %g..%g with scale "
                    "%g and zero point %d has other limits",
                    layer, (int)lo, (int)hi, min, max, scale, (int)output->zero_point);
}
