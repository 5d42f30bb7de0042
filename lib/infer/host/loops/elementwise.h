/**
 * Runs of codes: the contract between the instruction sets and the drivers of all ops that are not
 * matrix products (fast_map.c, fast_binary.c, fast_pool.c, fast_resize.c, fast_softmax.c).
 *
 * Every function but blends (blend.h) reads and writes exactly n codes, at any alignment. Codes are
 * bytes. For a byte, q - Z is (byte ^ flip) - offset (qi_codes).
 */
#ifndef QI_HOST_ELEMENTWISE_H
#define QI_HOST_ELEMENTWISE_H

#include "infer/host/loops/blend.h"
#include "infer/model/op.h"

#include <string.h>

enum { QI_TABLE = 256 };

/** Requantization with one multiplier. shift = -right, 0..31; sums always fit int32. */
typedef struct qi_scaling {
    int32_t mult, right;
    int32_t once; /* rounding ONCE, which inner loops do not have; else TWICE */
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

/**
 * add and sub as one line (pair_line.h). x = 256 (a ^ flip[0]) and y = 256 (b ^ flip[1]) as signed
 * bytes; no sum overflows.
 *
 *   low  = x low[0] + y low[1] + add_low
 *   high = x high[0] + y high[1] + add_high + (low >> 16)
 *   code = clamp(high >> 16) ^ y_flip
 */
typedef struct qi_pair_line {
    int16_t high[2], low[2];
    int32_t add_high, add_low;
    uint8_t flip[2], y_flip;
    int8_t lo, hi;
} qi_pair_line;

/**
 * mul as one line (product_line.h). p is the product of both differences, minus centre; it has 16
 * bits.
 *
 *   part = (p low >> 16) + (p < -centre ? jump : 0)       also 16 bits
 *   code = clamp((p high + part + add) >> 16) ^ y_flip
 */
typedef struct qi_product_line {
    qi_codes a, b;
    int16_t centre, high, low, jump;
    int32_t add;
    uint8_t y_flip;
    int8_t lo, hi;
} qi_product_line;

/** Is add, sub or mul without left shifts, as qi_combine wants it, or of rounding EVEN, which
 * does not use it? (fast_binary.c) */
int qi_binary_fits(const qi_node *node);
qi_combine qi_combine_of(const qi_model *model, const qi_node *node);

/** A sum or a product by the multiplier of a scaling, without its zero_point. */
int32_t qi_scaled(const qi_scaling *s, int32_t acc);

/**
 * How add, sub or mul of two runs of codes is computed: by a line, or else by qi_combine; of the
 * roundings ONCE and EVEN, code by code.
 */
typedef struct qi_binary {
    int32_t has_line;
    union {
        qi_pair_line pair;       /* add, sub */
        qi_product_line product; /* mul */
    } line;
} qi_binary;

struct qi_elementwise;
void qi_binary_pack(const struct qi_elementwise *inner, const qi_model *model, const qi_node *node,
                    qi_binary *binary);
void qi_binary_run(const struct qi_elementwise *inner, const qi_model *model, const qi_node *node,
                   const qi_binary *binary, const uint8_t *a, const uint8_t *b, uint8_t *y,
                   size_t n);

/**
 * A straight line for each of `length` codes (code_lines.h), which are those of the codes behind
 * them, too. With u = x ^ flip as signed,
 *
 *   part  = first + (u >= from ? change : 0)                       a byte
 *   value = ((256 u + part) mult >> 16) + add                      saturating at 16 bits
 *   y     = clamp(value >> right) ^ y_flip
 */
typedef struct qi_lines {
    const int16_t *mult, *add; /* rounded up to whole blocks, as the others; both in the order of
                                  qi_elementwise.join */
    const uint8_t *flip, *from, *first, *change; /* from: as signed */
    size_t length;                               /* whole blocks, or all codes of a pixel */
    int32_t right, jumps;                        /* jumps: some change is not 0 */
    int8_t lo, hi;
    uint8_t y_flip;
} qi_lines;

/**
 * The mean of n codes, half away from zero, from the sum s of their bytes ^ flip. With v = 2 s + n,
 * or one less if s < n flip (so that halves go down there),
 *
 *   mean = floor(v / (2 n)) - flip
 *
 * Inner loops multiply by m = ceil(2^(15 + l) / n), n <= 2^l: floor(v / (2 n)) = v m >> (16 + l).
 * With e = m n - 2^(15 + l) < n and v < 2^9 n, the product is too large by v e / n < 2^9 n <=
 * 2^(15 + l) / n for n <= 64; and v has 16 bits.
 */
enum { QI_SMALL_COUNT = 64 };

typedef struct qi_divisor {
    int32_t n, lo, hi;
    uint8_t flip; /* 0 or 128 */
} qi_divisor;

typedef struct qi_reciprocal {
    uint16_t m;
    int l;
} qi_reciprocal;

static inline qi_reciprocal qi_reciprocal_of(int32_t n)
{
    qi_reciprocal r = {0, 0};
    while (n > 1 << r.l)
        r.l++;
    r.m = (uint16_t)(((1 << (15 + r.l)) + n - 1) / n);
    return r;
}

typedef struct qi_elementwise {
    const char *name;
    /** y = the lines of x, or NULL: combine is as fast. */
    void (*lines)(const qi_lines *l, const uint8_t *x, uint8_t *y, size_t n);
    size_t line_block; /* 32 or 64 */
    /** Make words of their lower and upper bytes, in an order of its own; n is whole blocks. */
    void (*join)(const uint8_t *lower, const uint8_t *upper, int16_t *words, size_t n);
    /** y = the line of a and b; both or neither are NULL. */
    void (*pair_line)(const qi_pair_line *l, const uint8_t *a, const uint8_t *b, uint8_t *y,
                      size_t n);
    void (*product_line)(const qi_product_line *l, const uint8_t *a, const uint8_t *b, uint8_t *y,
                         size_t n);
    size_t fast_tables; /* lookups in up to so many tables are as fast as lines */
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
    /** sums = the sum of x[r step] ^ flip over rows r, as unsigned; 1..257 rows fit the sums. */
    void (*sum_rows)(uint8_t flip, const uint8_t *x, size_t step, size_t rows, uint16_t *sums,
                     size_t n);
    /** The same of sums: total = the sum of sums[r step] over rows r. */
    void (*sum_sums)(const uint16_t *sums, size_t step, size_t rows, uint16_t *total, size_t n);
    /** y = clamp(mean of d->n codes) from their sums; d->n = 1..QI_SMALL_COUNT. */
    void (*divide)(const uint16_t *sums, const qi_divisor *d, uint8_t *y, size_t n);
    /** most = the largest x[r step] ^ flip over rows r, as unsigned. */
    void (*most_rows)(uint8_t flip, const uint8_t *x, size_t step, size_t rows, uint8_t *most,
                      size_t n);
    /** Dot products of 16-bit codes and widened weights (op.h). */
    qi_dots_fn *dots;
    /** Bilinear blends with sums of 16 and of 32 bits (blend.h). */
    qi_blend_loops words, lanes;
} qi_elementwise;

#endif
