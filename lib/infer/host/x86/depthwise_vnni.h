/**
 * Depthwise convolutions with VPDPBUSD, in vectors of either width (depthwise_wide.h).
 *
 *   sums[c] += x'[c, 4 rows] . w[c, 4 rows]       u8 * s8, four products a lane, added without
 *                                                 saturation
 *
 * A weight w - Z_w outside -128..127 (only in uint8 models) is split into two that fit, and its
 * group multiplies twice.
 */
#ifndef QI_HOST_X86_DEPTHWISE_VNNI_H
#define QI_HOST_X86_DEPTHWISE_VNNI_H

/** Quads, unchanged. */
typedef vector column;

enum { DOT_BYTES = BYTES, SPLITS = 1 };

INLINE column column_of(vector quads)
{
    return quads;
}

INLINE vector dot(vector sum, const column *c, const uint8_t *w)
{
    return v_dot_bytes(sum, *c, v_load(w));
}

#include "infer/host/x86/depthwise_wide.h"

static size_t group_bytes(int32_t rows, int32_t taps, int32_t wide)
{
    return sizeof(qi_depthwise_head) +
           PARTS * (size_t)rows * (size_t)taps * (wide ? 2 : 1) * DOT_BYTES;
}

/** Write the part of each weight that fits int8; after all of them, the rest of each. */
static void pack(const qi_depthwise_group *group, void *to)
{
    qi_depthwise_head *head = to;
    size_t const taps = (size_t)group->rows * (size_t)group->taps;
    int8_t *fit = (int8_t *)(head + 1), *rest = fit + PARTS * taps * DOT_BYTES;
    qi_depthwise_pack_head(group, head);
    for (size_t part = 0; part < PARTS; part++)
        for (size_t tap = 0; tap < taps; tap++)
            for (size_t i = 0; i < DOT_BYTES; i++) {
                int16_t const w = group->weights[((tap * PARTS + part) * LANES) * 4 + i];
                *fit = (int8_t)qi_clamp(w, INT8_MIN, INT8_MAX);
                int8_t const over = (int8_t)(w - *fit++);
                head->spilled |= over != 0;
                if (group->wide)
                    *rest++ = over;
            }
}

#endif
