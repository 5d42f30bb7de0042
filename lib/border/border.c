/** Converts float32 model inputs and outputs to codes and back. */
#include "qat/border.h"

#include <math.h>
#include <string.h>

size_t qat_tensor_values(const qi_tensor *tensor)
{
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= (size_t)tensor->dims[i];
    return count;
}

bool qat_is_list(const qi_tensor *t)
{
    return qi_type_has_codes(t->type) && qat_tensor_values(t) == (size_t)t->dims[t->rank - 1];
}

/** The nearest whole number of lo..hi to one that is whole. */
static int32_t limit(float x, int64_t lo, int64_t hi)
{
    return (int32_t)(x <= (float)lo ? lo : x >= (float)hi ? hi : (int64_t)x);
}

/** The scales of a tensor: one, or one for each index of the last dimension. */
struct scales {
    const void *bits;
    size_t n;
};

static struct scales one_scale(const qi_tensor *t)
{
    return (struct scales){&t->scale_bits, 1};
}

static struct scales scales_at(const qi_model *model, const qi_tensor *t)
{
    size_t const n = (size_t)t->dims[t->rank - 1];
    const qi_tensor *many = t->channel_scales < 0 ? NULL : qi_tensor_at(model, t->channel_scales);
    return many && many->data && (size_t)many->dims[0] == n ? (struct scales){many->data, n}
                                                            : one_scale(t);
}

static float scale_of(const struct scales *s, size_t i)
{
    float scale;
    memcpy(&scale, (const uint8_t *)s->bits + i % s->n * sizeof scale, sizeof scale);
    return scale;
}

static float rounded(float steps, int border)
{
    return border == QI_BORDER_TRUNCATED ? truncf(steps)
           : border == QI_BORDER_EVEN    ? rintf(steps)
                                         : roundf(steps);
}

static void quantize(const qi_tensor *t, struct scales scales, const float *values, void *codes)
{
    int64_t const lo = t->type == QI_U8 ? 0 : -(INT64_C(1) << (t->bits - 1));
    int64_t const hi = lo + (INT64_C(1) << t->bits) - 1;
    size_t const count = qat_tensor_values(t);
    for (size_t i = 0; i < count; i++) {
        /* Limit the steps before they become an integer: they may lie beyond every code. */
        float const steps = values[i] / scale_of(&scales, i); /* NaN of 0 / 0, too */
        float const exact = isnan(steps) ? 0.0f : steps;
        int32_t const code =
            limit(rounded(exact, t->border), lo - t->zero_point, hi - t->zero_point) +
            t->zero_point;
        if (t->type == QI_S32)
            ((int32_t *)codes)[i] = code;
        else if (t->type == QI_S16)
            ((int16_t *)codes)[i] = (int16_t)code;
        else
            ((uint8_t *)codes)[i] = (uint8_t)code;
    }
}

static void dequantize(const qi_tensor *t, struct scales scales, const void *codes, float *values)
{
    size_t const count = qat_tensor_values(t);
    for (size_t i = 0; i < count; i++) {
        int32_t const code = (int32_t)qi_value_at(t->type, codes, i);
        values[i] = scale_of(&scales, i) * (float)(code - t->zero_point);
    }
}

void qat_border_quantize(const qi_tensor *tensor, const float *values, void *codes)
{
    quantize(tensor, one_scale(tensor), values, codes);
}

void qat_border_dequantize(const qi_tensor *tensor, const void *codes, float *values)
{
    dequantize(tensor, one_scale(tensor), codes, values);
}

void qat_border_quantize_at(const qi_model *model, int32_t tensor, const float *values, void *codes)
{
    const qi_tensor *t = qi_tensor_at(model, tensor);
    quantize(t, scales_at(model, t), values, codes);
}

void qat_border_dequantize_at(const qi_model *model, int32_t tensor, const void *codes,
                              float *values)
{
    const qi_tensor *t = qi_tensor_at(model, tensor);
    dequantize(t, scales_at(model, t), codes, values);
}
