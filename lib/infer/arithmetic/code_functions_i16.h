/**
 * Functions of 16-bit codes, as TensorFlow Lite defines them: straight lines between the entries of
 * tables. logistic and tanh share one table, which belongs to their definition. The other tables
 * come with the model.
 */
#ifndef QI_CODE_FUNCTIONS_I16_H
#define QI_CODE_FUNCTIONS_I16_H

#include "infer/arithmetic/transcendental.h"

/**
 * 1 / (1 + exp(-i / 24)) with 16 fractional bits, i = 0..255. 44 of these entries are by one above
 * the nearest integer; so they are in TensorFlow Lite.
 */
static inline uint32_t qi_sigmoid_entry(uint32_t i)
{
    static const uint16_t table[256] = {
        32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794,
        41432, 42064, 42688, 43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443,
        48964, 49475, 49975, 50464, 50942, 51409, 51865, 52311, 52745, 53169, 53581, 53983, 54374,
        54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433, 57724, 58007, 58280, 58544,
        58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110, 61279,
        61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990,
        63090, 63186, 63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030,
        64090, 64148, 64204, 64257, 64308, 64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652,
        64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900, 64926, 64950, 64974, 64997, 65019,
        65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208, 65221, 65234,
        65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360,
        65367, 65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433,
        65438, 65442, 65445, 65449, 65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476,
        65479, 65481, 65483, 65485, 65488, 65489, 65491, 65493, 65495, 65497, 65498, 65500, 65501,
        65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513, 65514, 65515, 65516,
        65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
        65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529,
        65529, 65530, 65530, 65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532,
        65532, 65532, 65532, 65533, 65533, 65533, 65533, 65533, 65533, 65533, 65533, 65534, 65534,
        65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535};
    return table[i];
}

/** Its line at x, with `bits` more fractional bits. x has `bits` fractional bits, x < 255 2^bits.
 */
static inline uint32_t qi_sigmoid_line(uint32_t x, int bits)
{
    uint32_t const i = x >> bits, part = x & ((UINT32_C(1) << bits) - 1);
    uint32_t const low = qi_sigmoid_entry(i);
    return (low << bits) + part * (qi_sigmoid_entry(i + 1) - low);
}

static inline uint32_t qi_magnitude(int32_t x)
{
    return x < 0 ? UINT32_C(0) - (uint32_t)x : (uint32_t)x;
}

/** logistic(x / (24 * 2^9)) with 15 fractional bits. Example: 0 -> 16384. */
static inline int32_t qi_logistic_i16_line(int32_t x)
{
    uint32_t const size = qi_magnitude(x);
    uint32_t const y =
        size >> 9 < 255 ? qi_sigmoid_line(size, 9) : UINT32_C(0x7fff) << 10; /* 25 bits */
    uint32_t const half = 1 << 9;
    return (int32_t)((x >= 0 ? y + half : (UINT32_C(1) << 25) - y + half - 1) >> 10);
}

/** tanh(x / (48 * 2^8)) with 15 fractional bits, as 2 logistic(2 t) - 1. Example: 0 -> 0. */
static inline int32_t qi_tanh_i16_line(int32_t x)
{
    uint32_t const size = qi_magnitude(x);
    int32_t const y =
        size >> 8 < 255 ? (int32_t)qi_sigmoid_line(size, 8) : 0xffff << 8; /* 24 bits */
    int32_t const middle = 1 << 23, half = 1 << 7;
    return (x >= 0 ? y - middle + half : middle - y + half - 1) >> 8;
}

enum { QI_LINES = 512 }; /* of a table: it has one more entry */

/**
 * The line of a table over all 16-bit codes at code q, rounded half up; 128 codes to an entry. Its
 * slope has 16 bits, as in TensorFlow Lite: one that does not fit keeps its low bits.
 */
static inline int32_t qi_lookup_i16(const int16_t *table, int32_t q)
{
    const int16_t *low = table + QI_LINES / 2 + (q >> 7);
    int16_t const slope = (int16_t)(low[1] - low[0]);
    return low[0] + ((slope * (q & 127) + 64) >> 7);
}

#endif
