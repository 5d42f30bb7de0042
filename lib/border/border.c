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

static float scale_of(const qi_tensor *t)
{
    float scale;
    memcpy(&scale, &t->scale_bits, sizeof scale);
    return scale;
}

/** The nearest whole number of lo..hi to one that is whole. */
static int32_t limit(float x, int64_t lo, int64_t hi)
{
    return (int32_t)(x <= (float)lo ? lo : x >= (float)hi ? hi : (int64_t)x);
}

void qat_border_quantize(const qi_tensor *tensor, const float *values, void *codes)
{
    int64_t const lo = tensor->type == QI_U8 ? 0 : -(INT64_C(1) << (tensor->bits - 1));
    int64_t const hi = lo + (INT64_C(1) << tensor->bits) - 1;
    float const scale = scale_of(tensor);
    size_t const count = qat_tensor_values(tensor);
    for (size_t i = 0; i < count; i++) {
        /* Limit the steps before they become an integer: they may lie beyond every code. */
        float const exact = isnan(values[i]) ? 0.0f : values[i] / scale;
        float const steps = tensor->border == QI_BORDER_TRUNCATED ? truncf(exact)
                            : tensor->border == QI_BORDER_EVEN    ? rintf(exact)
                                                                  : roundf(exact);
        int32_t const code =
            limit(steps, lo - tensor->zero_point, hi - tensor->zero_point) + tensor->zero_point;
        if (tensor->type == QI_S32)
            ((int32_t *)codes)[i] = code;
        else if (tensor->type == QI_S16)
            ((int16_t *)codes)[i] = (int16_t)code;
        else
            ((uint8_t *)codes)[i] = (uint8_t)code;
    }
}

void qat_border_dequantize(const qi_tensor *tensor, const void *codes, float *values)
{
    float const scale = scale_of(tensor);
    size_t const count = qat_tensor_values(tensor);
    for (size_t i = 0; i < count; i++) {
        int32_t const code = (int32_t)qi_value_at(tensor->type, codes, i);
        values[i] = scale * (float)(code - tensor->zero_point);
    }
}
