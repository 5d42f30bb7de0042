/** Values of any type, for kernels that do not depend on it. */
#ifndef QK_VALUES_H
#define QK_VALUES_H

#include "infer/kernels/parts/features.h"
#include "infer/kernels/parts/memory.h"
#include "qat/infer.h"
#include "qat/rounding.h"

/** Store value i of an array of codes or of int32. */
QK_INLINE void qi_store_value(int type, void *values, size_t i, int32_t value)
{
    if (type == QI_S32)
        ((int32_t *)values)[i] = value;
    else if (type == QI_S16)
        ((int16_t *)values)[i] = (int16_t)value;
    else
        ((uint8_t *)values)[i] = (uint8_t)value;
}

/** The code of a value without zero_point. */
QK_INLINE int32_t qk_code(int64_t value, int32_t zero_point, int32_t lo, int32_t hi)
{
    return qi_clamp(qi_saturate_i64(value + zero_point), lo, hi);
}

/** Go on to the next position within dims, the last axis first. */
QK_INLINE void qk_next_position(int32_t at[QI_MAX_RANK], const int32_t dims[QI_MAX_RANK])
{
    for (int d = QI_MAX_RANK - 1; d >= 0 && ++at[d] == dims[d]; d--)
        at[d] = 0;
}

/** The value at a position, where `step` values lie between neighbours along each axis. */
QK_INLINE size_t qk_value_of(const int32_t at[QI_MAX_RANK], const int32_t step[QI_MAX_RANK])
{
    size_t value = 0;
    for (int d = 0; d < QI_MAX_RANK; d++)
        value += (size_t)at[d] * (size_t)step[d];
    return value;
}

#endif
