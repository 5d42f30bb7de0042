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

static float limit(float x, int32_t lo, int32_t hi)
{
    return x < (float)lo ? (float)lo : x > (float)hi ? (float)hi : x;
}

void qat_border_quantize(const qi_tensor *tensor, const float *values, void *codes)
{
    int32_t const lo = tensor->type == QI_U8 ? 0 : -(1 << (tensor->bits - 1));
    int32_t const hi = lo + (1 << tensor->bits) - 1;
    float const scale = scale_of(tensor);
    size_t const count = qat_tensor_values(tensor);
    for (size_t i = 0; i < count; i++) {
        /* Limit the steps before they become an integer: they may lie beyond every code. */
        float const exact = isnan(values[i]) ? 0.0f : values[i] / scale;
        float const steps = tensor->border == QI_BORDER_TRUNCATED ? truncf(exact) : roundf(exact);
        int32_t const code =
            (int32_t)limit(steps, lo - tensor->zero_point, hi - tensor->zero_point) +
            tensor->zero_point;
        if (tensor->type == QI_S16)
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
