/**
 * Learned ranges: tqt (Jain et al., "Trained Quantization Thresholds") and lsq (Esser et al.,
 * "Learned Step Size Quantization"), for weights and activations; and pact (Choi et al.,
 * "Parameterized Clipping Activation"), for activations.
 *
 *     y = s (clamp(round(x / s) + Z, lo, hi) - Z)
 *
 * Gradients pass straight through the rounding. g = dL/dy. I, B, A are the sums of quantizer.h over
 * all values (rounding errors inside, g below, g above), and e = (y - x) / s:
 *
 *     symmetric, Z in the middle, P = hi - Z, N = Z - lo
 *
 *         dy/ds = e inside, -N below, P above       dL/ds = I + P A - N B
 *
 *     asymmetric, lower end a, Z = round(lo - a/s), n = hi - lo
 *
 *         y = a below, a + n s above                dL/ds = I + n A    dL/da = A + B
 *
 *            learned                        the scale                       gradients
 *     tqt    l = log2 t     symmetric       s = 2^l / 2^(b-1)               dL/dl = s ln2 dL/ds
 *            l, k           [-2^k, 2^l]     s = (2^l + 2^k) / 2^b, a = -2^k
 *                                           dL/dl = 2^l ln2 D,  dL/dk = 2^k ln2 (D - A - B),
 *                                           D = s / (2^l + 2^k) dL/ds
 *     lsq    s              symmetric       s                               dL/ds g
 *            s, a           [a, a + n s]                                    dL/ds g, dL/da g
 *                           g = 1 / sqrt(count P),  P = n for asymmetric ranges
 *     pact   the end t      asymmetric      t / n           dL/dt = A          a = 0
 *                           with two ends   2 t / n         dL/dt = A - B      a = -t
 *
 * For weights, N = P: their lowest code is not used. (Without -128, NEON adds two products in 16
 * bits.) tqt_full and lsq_full are as published, and use it with fewer than 8 bits: N = P + 1.
 *
 * If nothing below 0 was observed (after a ReLU), the lower end is 0 and stays there: tqt and lsq
 * are then the unsigned forms of the papers. So does the upper end of tqt if nothing above 0 was
 * observed; that of lsq and pact follows from what they learn. If neither was, learning waits
 * (quantizer.c). With power_of_two, s is rounded up to a power of two. Gradients treat this as a
 * factor: d s(s0) / d s0 = s / s0. For tqt these are the paper's gradients.
 *
 * tqt and pact start from the observed ends (tqt_full: t is the larger one), lsq from s = 2 mean|x|
 * / sqrt(P); an asymmetric lsq with two ends starts from the ends. Weight decay draws the ends of
 * pact to 0, as in the paper.
 */
#include "fakequant/quantizer.h"

#include <math.h>

static const double LN2 = 0.693147180559945309417;

/** Steps from 0 to the lowest code of a symmetric grid. */
static double steps_below(const qat_grid *grid)
{
    return grid->hi - grid->lo - qat_grid_steps(grid);
}

/** dL/ds at the current scale. */
static double scale_gradient(const qat_grid *grid, const qat_range_sums *sums)
{
    double const above = qat_grid_steps(grid) * sums->above;
    return sums->inside + above - (grid->symmetric ? steps_below(grid) * sums->below : 0);
}

/* ------------------------------------------------------------------ tqt */

enum { TQT_UPPER, TQT_LOWER };

/** 2^(b-1) or 2^b: thresholds over steps. */
static double tqt_codes(const qat_grid *grid)
{
    return ldexp(1, grid->symmetric ? grid->bits - 1 : grid->bits);
}

/** An end from its learned value; 0 if it stays at 0. */
static double tqt_end(const qat_grid *grid, const qat_statistics *seen, const float *learned,
                      int end)
{
    bool const used =
        grid->symmetric ? end == TQT_UPPER : (end == TQT_UPPER ? seen->max > 0 : seen->min < 0);
    return used ? exp2((double)learned[end]) : 0;
}

static void tqt_start(const qat_grid *grid, const qat_statistics *seen, float *learned)
{
    /* so that hi is the observed end; with the lowest code, that this is -t */
    double const stretch =
        tqt_codes(grid) / (grid->symmetric ? steps_below(grid) : qat_grid_steps(grid));
    double upper = (double)seen->max, lower = -(double)seen->min;
    if (grid->symmetric) {
        upper = fmax(upper, lower);
        learned[TQT_UPPER] = upper > 0 ? (float)log2(upper * stretch) : 0;
        return;
    }
    learned[TQT_UPPER] = upper > 0 ? (float)log2(upper * stretch) : 0;
    learned[TQT_LOWER] = lower > 0 ? (float)log2(lower * stretch) : 0;
}

static qat_qparams tqt_choose(const qat_grid *grid, const qat_statistics *seen,
                              const float *learned)
{
    double const upper = tqt_end(grid, seen, learned, TQT_UPPER);
    double const lower = tqt_end(grid, seen, learned, TQT_LOWER);
    if (seen->min == 0 && seen->max == 0)
        return qat_range_qparams(grid, 0, 0);
    return qat_scale_qparams(grid, (upper + lower) / tqt_codes(grid), -lower);
}

static void tqt_learn(const qat_grid *grid, const qat_statistics *seen, const qat_qparams *p,
                      const float *learned, const qat_range_sums *sums, double *gradient)
{
    double const s = (double)p->scale, by_scale = scale_gradient(grid, sums);
    if (grid->symmetric) {
        gradient[TQT_UPPER] = s * LN2 * by_scale;
        return;
    }
    double const upper = tqt_end(grid, seen, learned, TQT_UPPER);
    double const lower = tqt_end(grid, seen, learned, TQT_LOWER);
    double const by_end = upper + lower > 0 ? s / (upper + lower) * by_scale : 0;
    gradient[TQT_UPPER] = upper * LN2 * by_end;
    gradient[TQT_LOWER] = lower * LN2 * (by_end - sums->above - sums->below);
}

static void tqt_limit(const qat_grid *grid, const qat_statistics *seen, float *learned)
{
    int const n = grid->symmetric ? 1 : 2;
    for (int i = 0; i < n; i++)
        learned[i] = fmaxf(-60, fminf(60, learned[i]));
}

/* ------------------------------------------------------------------ lsq */

enum { LSQ_STEP, LSQ_LOWER };

static const float LSQ_LEAST = 0x1p-60f, LSQ_MOST = 0x1p60f;

static void lsq_limit(const qat_grid *grid, const qat_statistics *seen, float *learned)
{
    learned[LSQ_STEP] = fmaxf(LSQ_LEAST, fminf(LSQ_MOST, learned[LSQ_STEP]));
    if (!grid->symmetric)
        learned[LSQ_LOWER] = seen->min < 0 ? fmaxf(-LSQ_MOST, fminf(0, learned[LSQ_LOWER])) : 0;
}

static void lsq_start(const qat_grid *grid, const qat_statistics *seen, float *learned)
{
    double const steps = qat_grid_steps(grid);
    bool const ends = !grid->symmetric && seen->min < 0;
    double const s = ends ? ((double)seen->max - (double)seen->min) / steps
                          : 2 * (double)seen->mean_abs / sqrt(steps);
    learned[LSQ_STEP] = s > 0 ? (float)s : 1;
    if (!grid->symmetric)
        learned[LSQ_LOWER] = seen->min;
    lsq_limit(grid, seen, learned);
}

/** As it starts: a step is learned relative to where it would start. */
static void lsq_rescale(const qat_grid *from, const qat_grid *to, const qat_statistics *seen,
                        float *learned)
{
    float before[2], after[2];
    lsq_start(from, seen, before);
    lsq_start(to, seen, after);
    learned[LSQ_STEP] *= after[LSQ_STEP] / before[LSQ_STEP];
}

static double lsq_lower(const qat_grid *grid, const float *learned)
{
    return grid->symmetric ? 0 : (double)learned[LSQ_LOWER];
}

static qat_qparams lsq_choose(const qat_grid *grid, const qat_statistics *seen,
                              const float *learned)
{
    return qat_scale_qparams(grid, (double)learned[LSQ_STEP], lsq_lower(grid, learned));
}

static void lsq_learn(const qat_grid *grid, const qat_statistics *seen, const qat_qparams *p,
                      const float *learned, const qat_range_sums *sums, double *gradient)
{
    double const factor = 1 / sqrt((double)grid->count * qat_grid_steps(grid));
    double const rounded = grid->power_of_two ? (double)p->scale / (double)learned[LSQ_STEP] : 1;
    gradient[LSQ_STEP] = rounded * scale_gradient(grid, sums) * factor;
    if (!grid->symmetric)
        gradient[LSQ_LOWER] = seen->min < 0 ? (sums->above + sums->below) * factor : 0;
}

/* ------------------------------------------------------------------ pact */

static bool has_two_ends(const qat_statistics *seen)
{
    return seen->min < 0;
}

static void pact_limit(const qat_grid *grid, const qat_statistics *seen, float *learned)
{
    learned[0] = fmaxf(LSQ_LEAST, fminf(LSQ_MOST, learned[0]));
}

static void pact_start(const qat_grid *grid, const qat_statistics *seen, float *learned)
{
    learned[0] = fmaxf(seen->max, -seen->min);
    pact_limit(grid, seen, learned);
}

/** The scale of the end t, before it is rounded to a power of two. */
static double pact_scale(const qat_grid *grid, const qat_statistics *seen, const float *learned)
{
    return (has_two_ends(seen) ? 2 : 1) * (double)learned[0] / qat_grid_steps(grid);
}

static qat_qparams pact_choose(const qat_grid *grid, const qat_statistics *seen,
                               const float *learned)
{
    if (seen->min == 0 && seen->max == 0)
        return qat_range_qparams(grid, 0, 0);
    return qat_scale_qparams(grid, pact_scale(grid, seen, learned),
                             has_two_ends(seen) ? -(double)learned[0] : 0);
}

static void pact_learn(const qat_grid *grid, const qat_statistics *seen, const qat_qparams *p,
                       const float *learned, const qat_range_sums *sums, double *gradient)
{
    double const rounded =
        grid->power_of_two ? (double)p->scale / pact_scale(grid, seen, learned) : 1;
    gradient[0] = rounded * (sums->above - (has_two_ends(seen) ? sums->below : 0));
}

/* ------------------------------------------------------------------ entries */

#define TQT(...)                                                                                   \
    {                                                                                              \
        __VA_ARGS__, .learned_symmetric = 1, .learned_asymmetric = 2, .start = tqt_start,          \
                     .limit = tqt_limit, .choose = tqt_choose, .learn = tqt_learn, .margin = 0.5f  \
    }
#define LSQ(...)                                                                                   \
    {                                                                                              \
        __VA_ARGS__, .learned_symmetric = 1, .learned_asymmetric = 2, .start = lsq_start,          \
                     .limit = lsq_limit, .rescale = lsq_rescale, .choose = lsq_choose,             \
                     .learn = lsq_learn                                                            \
    }

static const qat_quantizer pact = {.name = "pact",
                                   .learned_asymmetric = 1,
                                   .decays = true,
                                   .start = pact_start,
                                   .limit = pact_limit,
                                   .choose = pact_choose,
                                   .learn = pact_learn,
                                   .margin = 0.5f};
static const qat_quantizer tqt = TQT(.name = "tqt"), lsq = LSQ(.name = "lsq"),
                           tqt_weights = TQT(.name = "tqt", .weights = true),
                           lsq_weights = LSQ(.name = "lsq", .weights = true),
                           tqt_full = TQT(.name = "tqt_full", .weights = true, .all_codes = true),
                           lsq_full = LSQ(.name = "lsq_full", .weights = true, .all_codes = true),
                           grid_ema = {.name = "ema"},
                           grid_ema_weights = {.name = "ema", .weights = true};

static const qat_quant pact_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &pact};
static const qat_quant tqt_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &tqt},
                       tqt_weights_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &tqt_weights},
                       lsq_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &lsq},
                       lsq_weights_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &lsq_weights},
                       tqt_full_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &tqt_full},
                       lsq_full_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &lsq_full},
                       grid_ema_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &grid_ema},
                       grid_ema_weights_quant = {.role = QAT_ROLE_QUANTIZER,
                                                 .quantizer = &grid_ema_weights};

const qat_op qat_op_tqt =
    QAT_QUANTIZER_OP("tqt", "the range of an activation, by trained log thresholds", &tqt_quant);
const qat_op qat_op_tqt_weights = QAT_QUANTIZER_OP(
    "tqt_weights", "the range of weights, by trained log thresholds", &tqt_weights_quant);
const qat_op qat_op_pact =
    QAT_QUANTIZER_OP("pact", "the range of an activation, by a learned clip", &pact_quant);
const qat_op qat_op_lsq =
    QAT_QUANTIZER_OP("lsq", "the range of an activation, by a learned step size", &lsq_quant);
const qat_op qat_op_lsq_weights = QAT_QUANTIZER_OP(
    "lsq_weights", "the range of weights, by a learned step size", &lsq_weights_quant);
const qat_op qat_op_tqt_full_weights =
    QAT_QUANTIZER_OP("tqt_full_weights", "like tqt_weights, with the lowest code", &tqt_full_quant);
const qat_op qat_op_lsq_full_weights =
    QAT_QUANTIZER_OP("lsq_full_weights", "like lsq_weights, with the lowest code", &lsq_full_quant);
const qat_op qat_op_ema_grid = QAT_QUANTIZER_OP(
    "ema_grid", "like fake_quant; the scale may be rounded up to a power of two", &grid_ema_quant);
const qat_op qat_op_ema_grid_weights = QAT_QUANTIZER_OP(
    "ema_grid_weights", "like fake_quant_weights; the scale may be rounded up to a power of two",
    &grid_ema_weights_quant);
