/**
 * Runs of codes: the contract between the instruction sets and the drivers of all ops that are not
 * matrix products (fast_map.c, fast_binary.c, fast_pool.c, fast_softmax.c).
 *
 * Every function reads and writes exactly n codes, at any alignment. Codes are bytes. For a byte, q
 * - Z is (byte ^ flip) - offset (qi_codes).
 */
#ifndef QI_HOST_ELEMENTWISE_H
#define QI_HOST_ELEMENTWISE_H

#include "infer/op.h"

#include <string.h>

enum { QI_TABLE = 256 };

/** Requantization with one multiplier. shift = -right, 0..31; sums always fit int32. */
typedef struct qi_scaling {
    int32_t mult, right;
    int32_t zero_point, lo,
        hi; /* of the output, as signed codes; y_flip turns them into QI_U8 codes */
    uint8_t y_flip;
} qi_scaling;

/**
 * add and sub of op_binary.c, y = s(a) +- s(b) on a common scale; also mul. Shifts are as in
 * qi_scaling.
 */
typedef struct qi_combine {
    enum { QI_COMBINE_ADD, QI_COMBINE_SUB, QI_COMBINE_MUL } kind;
    qi_codes a, b;
    int32_t left_shift, mult_a, right_a, mult_b, right_b; /* add, sub */
    qi_scaling y;
} qi_combine;

typedef struct qi_elementwise {
    const char *name;
    /** y = table[x]. x and y may be the same array. */
    void (*lookup)(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n);
    /** The same with one table per channel; n is a multiple of `channels`. */
    void (*lookup_channels)(const uint8_t *tables, size_t channels, const uint8_t *x, uint8_t *y,
                            size_t n);
    /** y = x ^ flip. */
    void (*flip)(uint8_t flip, const uint8_t *x, uint8_t *y, size_t n);
    void (*combine)(const qi_combine *c, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n);
    /** Requantize sums to codes. */
    void (*requantize)(const qi_scaling *s, const int32_t *sums, uint8_t *y, size_t n);
    /** sums += x ^ flip, as unsigned. At most 257 calls fit the sums. */
    void (*add)(uint8_t flip, const uint8_t *x, uint16_t *sums, size_t n);
    /** most = max(most, x ^ flip), as unsigned. */
    void (*most)(uint8_t flip, const uint8_t *x, uint8_t *most, size_t n);
} qi_elementwise;

#endif
