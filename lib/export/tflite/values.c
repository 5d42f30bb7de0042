/**
 * Ops that look at single codes: comparisons, truth values, CAST; sums and largest codes along
 * axes; SOFTMAX; lines of 16-bit codes.
 */
#include "export/tflite/out.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ truth values, CAST */

qat_status tfo_extreme(tfo *o, int code)
{
    if (tfo_is_truth(tfo_output(o)))
        code = code == TFL_MAXIMUM ? TFL_LOGICAL_OR : TFL_LOGICAL_AND;
    return tfo_plain(o, code);
}

qat_status tfo_compare(tfo *o, int code)
{
    static const int codes[] = {[QI_EQUAL] = TFL_EQUAL,     [QI_NOT_EQUAL] = TFL_NOT_EQUAL,
                                [QI_GREATER] = TFL_GREATER, [QI_GREATER_EQUAL] = TFL_GREATER_EQUAL,
                                [QI_LESS] = TFL_LESS,       [QI_LESS_EQUAL] = TFL_LESS_EQUAL};
    (void)code;
    return tfo_plain(o, codes[o->op->params[0]]);
}

qat_status tfo_cast(tfo *o, int code)
{
    int const from = tfo_input_index(o, 0), to = tfo_output_index(o);
    tfo_operator *cast = tfo_append(o, code, 1, &from, to);
    tfo_option_int(cast, CAST_FROM, o->file.tensors[from].type);
    tfo_option_int(cast, CAST_TO, o->file.tensors[to].type);
    return QAT_OK;
}

/* ------------------------------------------------------------------ along axes */

static bool has_dims(const qat_qtensor *t, int rank, const int32_t *dims)
{
    return t->rank == rank && !memcmp(t->dims, dims, (size_t)rank * sizeof *dims);
}

/**
 * Dimensions of the axes stay as 1 or go; any other shape is one RESHAPE more. The first param of
 * the op is the mask of its axes.
 */
static qat_status write_along_axes(tfo *o, int code, tfo_clamp c)
{
    const qat_qtensor *x = tfo_input(o, 0), *y = tfo_output(o);
    int32_t axes[QI_MAX_RANK], kept[QI_MAX_RANK], left[QI_MAX_RANK];
    int n_axes = 0, n_left = 0;
    for (int i = 0; i < x->rank; i++) {
        bool const goes = o->op->params[0] >> i & 1;
        kept[i] = goes ? 1 : x->dims[i];
        if (goes)
            axes[n_axes++] = i;
        else
            left[n_left++] = x->dims[i];
    }
    bool const goes =
        n_left > 0 ? has_dims(y, n_left, left) : y->rank == 1; /* a scalar has one value */
    bool const fits = goes || has_dims(y, x->rank, kept);
    int const inputs[] = {tfo_input_index(o, 0), tfo_ints(o, "axes", n_axes, axes)};
    if (!fits && c.direct != tfo_output_index(o))
        return tfo_refuse(o, "it has a clamp, and its output another shape than its axes leave");
    if (!fits) {
        qat_qtensor other = *y;
        other.rank = x->rank;
        memcpy(other.dims, kept, sizeof other.dims);
        c.direct = tfo_between(o, &other, "kept");
    }
    tfo_option_int(tfo_append(o, code, 2, inputs, c.direct), REDUCER_KEEP_DIMS, !goes);
    tfo_writes(o, c.direct);
    if (!fits)
        tfo_reshape(o, c.direct);
    else
        tfo_end_clamp(o, &c);
    return QAT_OK;
}

qat_status tfo_mean(tfo *o, int code)
{
    return write_along_axes(o, code, tfo_begin_own_clamp(o, false));
}

qat_status tfo_reduce(tfo *o, int code)
{
    bool const largest = o->op->params[1] == QI_LARGEST;
    if (tfo_is_truth(tfo_output(o)))
        code = largest ? TFL_REDUCE_ANY : TFL_REDUCE_ALL;
    else
        code = largest ? code : TFL_REDUCE_MIN;
    return write_along_axes(o, code, (tfo_clamp){.direct = tfo_output_index(o)});
}

/* ------------------------------------------------------------------ SOFTMAX */

/** beta unit = mult 2^(shift - 31); beta is 1 but in models that others made. */
qat_status tfo_softmax(tfo *o, int code)
{
    const int32_t *p = o->op->params;
    float const scale = tfo_input(o, 0)->scale;
    bool const wide = tfo_input(o, 0)->type == QI_S16;
    double const unit = wide ? (double)scale / (10.0 / 65535.0) : (double)scale * (1 << 26);
    int const x = tfo_input_index(o, 0);
    int32_t mult, shift;
    float beta = 1.0f;
    if (wide)
        qat_requantize_multiplier(unit, &mult, &shift);
    else
        qat_quantize_multiplier(fmin(unit, (double)INT32_MAX), &mult, &shift);
    if ((mult != p[0] || shift != p[1]) && (wide || shift >= 0))
        beta = (float)(ldexp(p[0], p[1] - 31) / unit);
    tfo_option_float(tfo_append(o, code, 1, &x, tfo_output_index(o)), SOFTMAX_BETA, beta);
    return QAT_OK;
}

/* ------------------------------------------------------------------ 16-bit lines */

static bool is_param(const tfo *o, int at, double real)
{
    int32_t mult, shift;
    qat_requantize_multiplier(real, &mult, &shift);
    return mult == o->op->params[at] && shift == o->op->params[at + 1];
}

/** The slope below zero with the fewest digits that gives the op's multiplier; -1: none. */
static float slope_of(const tfo *o)
{
    const int32_t *p = o->op->params;
    float const x = tfo_input(o, 0)->scale, y = tfo_output(o)->scale;
    double const slope = ldexp(p[2], p[3] - 31) * (double)y / (double)x;
    if (p[2] == 0)
        return 0;
    for (int digits = 1; digits <= 9; digits++) {
        double const unit = pow(10, floor(log10(slope)) - digits + 1);
        float const alpha = (float)(round(slope / unit) * unit);
        if (is_param(o, 2, (double)(x * alpha / y)))
            return alpha;
    }
    return -1;
}

/** Of 16-bit codes, the one code 1 as alpha is LEAKY_RELU, -1 is ABS. */
qat_status tfo_prelu(tfo *o, int code)
{
    const qat_qtensor *alpha = tfo_input(o, 1);
    float const x = tfo_input(o, 0)->scale, y = tfo_output(o)->scale;
    tfo_clamp const c = tfo_begin_own_clamp(o, false);
    int const from = tfo_input_index(o, 0);
    if (tfo_output(o)->type != QI_S16) {
        tfo_append_all(o, code, c.direct);
    } else {
        int64_t const side =
            alpha->data && qat_qtensor_count(alpha) == 1 ? qi_value_at(QI_S16, alpha->data, 0) : 0;
        float const slope = side == 1 ? slope_of(o) : -1;
        bool const is_abs = side == -1 && is_param(o, 2, (double)(x / y));
        if (!is_param(o, 0, (double)(x / y)) || (slope < 0 && !is_abs))
            return tfo_refuse(o, "PRELU has no 16-bit codes");
        tfo_operator *to = tfo_append(o, is_abs ? TFL_ABS : TFL_LEAKY_RELU, 1, &from, c.direct);
        if (!is_abs)
            tfo_option_float(to, LEAKY_RELU_ALPHA, slope);
    }
    tfo_end_clamp(o, &c);
    return QAT_OK;
}
