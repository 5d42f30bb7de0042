/**
 * Table lookups by shuffles. VPSHUFB selects from 16 bytes by the low four bits of an index, and
 * gives 0 if the top bit of the index is set. An index below 128 takes part of the first x / 16 + 1
 * of eight steps, since subtraction saturates at -128:
 *
 *   step h:   index x - 16 h, in the table  t[16 h + i] ^ t[16 (h - 1) + i]   (h = 0: t[i])
 *
 * The exclusive or of all steps is t[x]. Eight more steps with x - 128 do the same for the upper
 * half. With its sum and its exclusive or a step takes three instructions. Include wide256.h or
 * wide512.h first.
 */
#ifndef QI_HOST_X86_LOOKUP_SHUFFLE_H
#define QI_HOST_X86_LOOKUP_SHUFFLE_H

enum { TABLE_VECTORS = 16 };

INLINE void load_table(const uint8_t *table, vector t[TABLE_VECTORS])
{
    __m128i before = _mm_setzero_si128();
    for (int h = 0; h < TABLE_VECTORS; h++) {
        __m128i const own = _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * h));
        int const is_first = h % (TABLE_VECTORS / 2) == 0;
        t[h] = v_broadcast128(is_first ? own : _mm_xor_si128(own, before));
        before = own;
    }
}

INLINE vector look_up(const vector t[TABLE_VECTORS], vector x)
{
    vector const step = V(set1_epi8)(16);
    vector upper = v_xor(x, V(set1_epi8)((char)0x80));
    vector y = V(shuffle_epi8)(t[0], x), z = V(shuffle_epi8)(t[8], upper);
    UNROLL for (int h = 1; h < TABLE_VECTORS / 2; h++)
    {
        x = V(subs_epi8)(x, step);
        upper = V(subs_epi8)(upper, step);
        y = v_xor(y, V(shuffle_epi8)(t[h], x));
        z = v_xor(z, V(shuffle_epi8)(t[8 + h], upper));
    }
    return v_xor(y, z);
}

#endif
