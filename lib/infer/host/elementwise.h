/**
 * Runs of codes: contract between the drivers of everything that is not a product of matrices
 * (fast_map.c, fast_binary.c, fast_pool.c, fast_softmax.c) and the instruction sets.
 *
 * Every function reads and writes its n codes and nothing beyond them, at any alignment. Codes are
 * bytes; q - Z of a byte is (byte ^ flip) - offset (qi_codes).
 */
#ifndef QI_HOST_ELEMENTWISE_H
#define QI_HOST_ELEMENTWISE_H

#include "infer/op.h"

#include <string.h>

enum { QI_TABLE = 256 };

/** Requantization by one multiplier: shift = -right, 0..31, and no sum that leaves int32. */
typedef struct qi_scaling {
    int32_t mult, right;
    int32_t zero_point, lo,
        hi; /* of the output, as signed codes; y_flip makes them those of QI_U8 */
    uint8_t y_flip;
} qi_scaling;

/** add and sub of op_binary.c, y = s(a) +- s(b) on a common scale; mul. Shifts as qi_scaling's. */
typedef struct qi_combine {
    enum { QI_COMBINE_ADD, QI_COMBINE_SUB, QI_COMBINE_MUL } kind;
    qi_codes a, b;
    int32_t left_shift, mult_a, right_a, mult_b, right_b; /* add, sub */
    qi_scaling y;
} qi_combine;

typedef struct qi_elementwise {
    const char *name;
    /** y = table[x]. x and y may be the same. */
    void (*lookup)(const uint8_t *table, const uint8_t *x, uint8_t *y, size_t n);
    /** The same with one table for each of `channels`; n is a multiple of them. */
    void (*lookup_channels)(const uint8_t *tables, size_t channels, const uint8_t *x, uint8_t *y,
                            size_t n);
    /** y = x ^ flip. */
    void (*flip)(uint8_t flip, const uint8_t *x, uint8_t *y, size_t n);
    void (*combine)(const qi_combine *c, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n);
    /** Codes of sums, each requantized. */
    void (*requantize)(const qi_scaling *s, const int32_t *sums, uint8_t *y, size_t n);
    /** sums += x ^ flip, taken as unsigned. At most 257 calls fit. */
    void (*add)(uint8_t flip, const uint8_t *x, uint16_t *sums, size_t n);
    /** most = max(most, x ^ flip), as unsigned. */
    void (*most)(uint8_t flip, const uint8_t *x, uint8_t *most, size_t n);
} qi_elementwise;

#endif
