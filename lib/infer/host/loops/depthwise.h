/**
 * Depthwise convolutions of codes: the contract between the driver (fast_depthwise.c) and the
 * instruction sets.
 *
 *   y[oy, ox, c] = code(c, bias[c] + sum over ky, kx of (x[.., c] - Z_x)(w[ky, kx, c] - Z_w))
 *
 * The driver turns four rows of input into a strip of quads. A quad is a 32-bit word with four taps
 * of one channel, one below the other. Instructions that sum four products take quads:
 *
 *   row 0   a0 b0 c0 ..   channels a b c .. of a pixel, then those of the next
 *   row 1   a1 b1 c1 ..                           quads
 *   row 2   a2 b2 c2 ..          ->      a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3 | ..
 *   row 3   a3 b3 c3 ..
 *
 * A strip serves all output rows whose kernels lie within it. Example: two rows for a 3x3 kernel of
 * stride 1, with weights (w0 w1 w2 0) and (0 w0 w1 w2). It also serves all kernel columns, at
 * offsets of whole pixels. A higher kernel takes several strips. Inner loops work on groups of
 * QI_DEPTHWISE_LANES outputs whose quads lie side by side.
 *
 * Blocks: if a kernel has 3 columns and its rows fit one strip, an inner loop may keep the quads in
 * registers instead. It then works on a block of four groups, 64 channels of a pixel. Their order
 * is the one that interleaving bytes within 128 bits leaves, and that packing int32 to int8
 * reverses:
 *
 *   group j of the block, lane i   is channel   16 (i / 4) + 4 j + i % 4
 *
 * The quads hold the unsigned x' = byte ^ flip. Z_x is folded into the bias when the weights are
 * packed (eq. 7-8, modulo 2^32):
 *
 *   sum (x - Z_x)(w - Z_w) = sum x' (w - Z_w) - Z_x' sum (w - Z_w)
 */
#ifndef QI_HOST_DEPTHWISE_H
#define QI_HOST_DEPTHWISE_H

#include "infer/model/op.h"

enum {
    QI_DEPTHWISE_LANES = 16, /* outputs per group */
    QI_DEPTHWISE_BLOCK = 4,  /* groups per block */
    QI_DEPTHWISE_ROWS = 4,   /* most output rows that share strips */
    QI_DEPTHWISE_OVERRUN =
        64 /* positions that interleave may handle beyond the last one asked for */
};

/** How a group's accumulators become codes. */
typedef enum qi_depthwise_tail {
    QI_DEPTHWISE_CUT,      /* shift + fraction in -23..-1, every negative value is clamped to
                              clamp_lo */
    QI_DEPTHWISE_LEFT_CUT, /* as CUT, of sums 2^left: shift + fraction - left in -23..-1 */
    QI_DEPTHWISE_RIGHT,    /* shifts -31..-1, and the sum before a right shift always fits int32 */
    QI_DEPTHWISE_FINE,     /* as RIGHT, with a fraction */
    QI_DEPTHWISE_EVEN,     /* rounding EVEN, all channels have the constants of even.h */
    QI_DEPTHWISE_ANY       /* any multiplier, of rounding TWICE or EVEN */
} qi_depthwise_tail;

/**
 * A group before it is packed. The codes of the output are signed here: those of QI_U8 are reduced
 * by 128, and y_flip turns them back.
 */
typedef struct qi_depthwise_group {
    int32_t rows, taps;               /* taps: how many quads one output sums */
    int32_t wide;                     /* some weights of the layer may lie outside -128..127 */
    const int16_t *weights;           /* [rows][taps][QI_DEPTHWISE_LANES][4] w - Z_w, -255..254 */
    int32_t bias[QI_DEPTHWISE_LANES]; /* with Z_x folded in */
    int32_t fraction, left;           /* 0 <= left <= fraction, above 0 for LEFT_CUT only */
    int32_t late_bias[QI_DEPTHWISE_LANES]; /* added to sums 2^fraction; 0 without a fraction */
    int32_t mult[QI_DEPTHWISE_LANES], shift[QI_DEPTHWISE_LANES];
    int32_t zero_point, lo, hi;
    uint8_t y_flip;
    qi_depthwise_tail tail;
    int32_t is_even;         /* rounding EVEN */
    int64_t max_accumulator; /* largest |sum|, including the bias */
} qi_depthwise_group;

/** Some output columns of a group. */
typedef struct qi_depthwise_line {
    const void *group;      /* packed */
    const uint32_t *quads;  /* of the group's first lane, under tap 0 of the first column */
    const int32_t *offsets; /* [taps] from there to the quads of each tap */
    int32_t step;           /* quads from one output column to the next */
    int32_t columns;        /* >= 1 */
    int32_t rows;           /* output rows: 1 to the number in the group */
    uint8_t
        *y[QI_DEPTHWISE_ROWS]; /* first code of each row; the codes of a column are side by side */
    int32_t y_step;            /* bytes from one output column to the next */
} qi_depthwise_line;

/** Rows of input for a strip. */
typedef struct qi_depthwise_rows {
    const uint8_t *row[4]; /* first byte of the first pixel */
    size_t pitch[4];       /* bytes from one pixel to the next */
    int32_t pixels;
    int32_t width; /* positions (channels) of a pixel that become quads */
    uint8_t flip;
} qi_depthwise_rows;

/** One or two rows of windows of a block, for kernels of 3 columns. */
typedef struct qi_depthwise_block {
    const void *groups; /* packed; the first of four groups with equal tails and no wide weights */
    size_t group_bytes;
    qi_depthwise_rows x; /* 64 channels of the rows; pixels: columns of the picture */
    int32_t first;   /* border columns to their left; on the right there are as many as needed */
    uint32_t border; /* a quad of the border */
    int32_t columns, stride;       /* of the output; stride is 1, or 2 for one row of outputs */
    int32_t rows;                  /* output rows, 1 or 2; at most the number in the group */
    uint8_t *y[QI_DEPTHWISE_ROWS]; /* 64 codes of column 0 of each row */
    int32_t y_step;
} qi_depthwise_block;

/** The depthwise convolution of an instruction set. */
typedef struct qi_depthwise {
    const char *name;
    /** Bytes that pack fills; a multiple of QI_FAST_ALIGN. */
    size_t (*group_bytes)(int32_t rows, int32_t taps, int32_t wide);
    /** to must be QI_FAST_ALIGN-aligned. */
    void (*pack)(const qi_depthwise_group *group, void *to);
    /**
     * Write quads[p * width + i] for each pixel p and position i. May read and write up to
     * QI_DEPTHWISE_OVERRUN positions after the last.
     */
    void (*interleave)(const qi_depthwise_rows *rows, uint32_t *quads);
    void (*run)(const qi_depthwise_line *line);
    /** NULL: this instruction set has no blocks. */
    void (*run_block)(const qi_depthwise_block *block);
    int32_t block_rows; /* most output rows of run_block: 1 or 2 */
} qi_depthwise;

#endif
