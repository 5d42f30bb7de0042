#include "autograd/loops/wide.h"

#include <string.h>

void qat_wide_lay(const qat_real *by_channel, size_t channels, qat_real *pattern)
{
    size_t const length = qat_wide_pattern(channels);
    if (pattern != by_channel)
        memcpy(pattern, by_channel, channels * sizeof *pattern);
    for (size_t at = channels; at < length; at += channels)
        memcpy(pattern + at, pattern, channels * sizeof *pattern);
}

void qat_wide_lay_ints(int32_t *values, size_t channels)
{
    for (size_t i = channels; i < qat_wide_pattern(channels); i++)
        values[i] = values[i - channels];
}
