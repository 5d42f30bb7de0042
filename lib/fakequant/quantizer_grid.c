/**
 * Turns learned scales and ends into quantization parameters, and finds registered quantizers.
 *
 *     Z = clamp(round(lo - a / s), lo, hi)      range [(lo - Z) s, (hi - Z) s], 0 among its values
 */
#include "fakequant/ops.h"
#include "fakequant/quantizer_op.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Scales are kept between these limits, which a run does not come near. */
static const double LEAST = 0x1p-100, MOST = 0x1p100;

double qat_grid_scale(const qat_grid *grid, double scale)
{
    int exponent;
    double const s = !(scale > LEAST) ? LEAST : scale > MOST ? MOST : scale;
    if (!grid->power_of_two)
        return s;
    double const part = frexp(s, &exponent); /* s = part 2^exponent, part in [0.5, 1) */
    return ldexp(1, part > 0.5 ? exponent : exponent - 1);
}

/** The code of 0 on a symmetric grid: as many codes lie above it as below, or one more below. */
static int32_t middle_of(const qat_grid *grid)
{
    return (grid->lo + grid->hi + 1) / 2;
}

int32_t qat_grid_steps(const qat_grid *grid)
{
    return grid->symmetric ? grid->hi - middle_of(grid) : grid->hi - grid->lo;
}

static int32_t zero_point_at(const qat_grid *grid, double z)
{
    return z <= grid->lo ? grid->lo : z >= grid->hi ? grid->hi : (int32_t)round(z);
}

qat_qparams qat_scale_qparams(const qat_grid *grid, double s, double a)
{
    double const scale = qat_grid_scale(grid, s);
    int32_t const zero_point =
        grid->symmetric ? middle_of(grid) : zero_point_at(grid, grid->lo - a / scale);
    return qat_given_qparams((float)scale, zero_point, grid->lo, grid->hi);
}

qat_qparams qat_range_qparams(const qat_grid *grid, float min, float max)
{
    float const bound = -min > max ? -min : max;
    int32_t const above = qat_grid_steps(grid), below = grid->hi - grid->lo - above;
    if (grid->symmetric && bound > 0 && below > above)
        return qat_scale_qparams(grid, fmax((double)max / above, -(double)min / below), 0);
    bool const is_centered = grid->symmetric && middle_of(grid) == 0; /* Z = 0, of no range, too */
    if (grid->symmetric) {
        min = -bound;
        max = bound;
    }
    qat_qparams const p = is_centered ? qat_choose_symmetric(bound, grid->hi)
                                      : qat_choose_qparams(min, max, grid->lo, grid->hi, true);
    if (!grid->power_of_two || qat_is_empty_range(&p))
        return p;
    return qat_scale_qparams(grid, (double)p.scale, (double)min);
}

/* ------------------------------------------------------------------ entries */

static bool has_role(const qat_node *node, qat_quant_role role)
{
    return node->op && node->op->quant && node->op->quant->role == role;
}

float qat_tie_of(const qat_node *fake_quant, int bits)
{
    const qat_node *node = fake_quant->inputs[0];
    while (has_role(node, QAT_ROLE_CLAMP) || has_role(node, QAT_ROLE_PASS))
        node = node->inputs[0];
    bool const by_table =
        qat_node_is_input(node) || has_role(node, QAT_ROLE_TABLE) || has_role(node, QAT_ROLE_FIXED);
    return bits < 8 && !by_table ? QAT_TIE : 0;
}

const qat_quantizer *qat_op_quantizer(const qat_op *op)
{
    return op && op->quant && op->quant->role == QAT_ROLE_QUANTIZER ? op->quant->quantizer : NULL;
}

const qat_quantizer *qat_node_quantizer(const qat_node *node)
{
    return node ? qat_op_quantizer(node->op) : NULL;
}

bool qat_node_quantizes(const qat_node *node, bool weights)
{
    const qat_quantizer *quantizer = qat_node_quantizer(node);
    return quantizer && quantizer->weights == weights;
}

const qat_op *qat_find_quantizer(const qat_registry *registry, const char *name, bool weights)
{
    for (int i = 0; i < qat_registry_count(registry); i++) {
        const qat_op *op = qat_registry_at(registry, i);
        const qat_quantizer *q = qat_op_quantizer(op);
        if (q && q->weights == weights && strcmp(q->name, name) == 0)
            return op;
    }
    return NULL;
}

static bool ends_in(const char *name, const char *end)
{
    size_t const n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

bool qat_is_learned_range(const char *param)
{
    return ends_in(param, "/q/learned");
}

bool qat_is_range(const char *param)
{
    static const char *const parts[] = {"/q/range", "/q/frozen", "/q/exponent", "/q/oscillation"};
    bool is_part = qat_is_learned_range(param);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        is_part |= ends_in(param, parts[i]);
    return is_part;
}

qat_node *qat_node_learned(const qat_node *node)
{
    bool const learns = qat_is_quantizer_op(node->op);
    return learns && qz_learned_values(node) > 0 ? node->inputs[QZ_LEARNED] : NULL;
}

int qat_quantizer_channels(const qat_node *node)
{
    return qat_node_quantizes(node, true) ? qat_weight_view_of(node).channels : 1;
}

qat_status qat_quantizer_qparams(const qat_node *node, int channel, qat_qparams *p, qat_error *err)
{
    if (!qat_node_quantizes(node, true))
        return qat_node_qparams(node, p, err);
    *p = qat_weight_qparams(node, channel);
    return QAT_OK;
}
