/** Runs of codes with AVX-512 VBMI: tables of up to four channels lie in registers. */
#include "infer/host/x86/x86.h"

#include "infer/host/x86/wide512.h"

enum { TABLE_VECTORS = 4, MOST_CHANNELS = 4 };

INLINE void load_table(const uint8_t *table, vector t[TABLE_VECTORS])
{
    for (int i = 0; i < TABLE_VECTORS; i++)
        t[i] = v_load(table + BYTES * i);
}

/** VPERMI2B selects from two registers by seven bits. */
INLINE vector look_up(const vector t[TABLE_VECTORS], vector x)
{
    return v_blend8(_mm512_movepi8_mask(x), _mm512_permutex2var_epi8(t[0], x, t[1]),
                    _mm512_permutex2var_epi8(t[2], x, t[3]));
}

#include "infer/host/x86/elementwise_wide.h"

/** Look up every byte in all tables and take the answer of its own channel, of 2 or 4. */
INLINE void lookup_even_channels(const uint8_t *tables, size_t channels, const uint8_t *x,
                                 uint8_t *y, size_t n)
{
    uint64_t const first_channel = UINT64_MAX / ((UINT64_C(1) << channels) - 1);
    vector t[MOST_CHANNELS][TABLE_VECTORS];
    for (size_t c = 0; c < channels; c++)
        load_table(tables + c * QI_TABLE, t[c]);
    for (size_t i = 0; i < n; i += BYTES) {
        vector const bytes = v_load_first(x + i, n - i);
        vector answers = look_up(t[0], bytes);
        for (size_t c = 1; c < channels; c++)
            answers = v_blend8(first_channel << c, answers, look_up(t[c], bytes));
        v_store_first(y + i, answers, n - i);
    }
}

static void lookup_few_channels(const uint8_t *tables, size_t channels, const uint8_t *x,
                                uint8_t *y, size_t n)
{
    if (channels == 2)
        lookup_even_channels(tables, 2, x, y, n);
    else if (channels == 4)
        lookup_even_channels(tables, 4, x, y, n);
    else
        lookup_channels(tables, channels, x, y, n);
}

const qi_elementwise QI_VARIANT(qi_elementwise_avx512vbmi) = {
    .name = "avx512vbmi",
    ELEMENTWISE_WIDE,
    .lookup_channels = lookup_few_channels,
    .fast_tables = 3};
