/**
 * Matrix products of codes: the contract between the drivers that need them (conv_part.c,
 * fast_fully_connected.c) and the instruction sets.
 *
 *   y[r, n] = code(n, bias[n] + sum over k < K of (x[r, k] - Z_x)(w[n, k] - Z_w))   r < rows, n < N
 *
 * Instructions multiply unsigned by signed bytes. Let x' = byte ^ flip, unsigned, and w' = w - c,
 * signed, with a c that the inner loop chooses, and d = c - Z_w. Then the sum is (eq. 7-8, all
 * modulo 2^32, which can hold the true sum)
 *
 *   sum x' w'  +  d sum x'  +  bias'[n]          bias'[n] = bias[n] - Z_x (sum w' + K d)
 *              one for a row   folded when packed
 *
 * Layers of int8 weights have Z_w = 0 = c, so d = 0 and there is no term per row.
 *
 * With rounding QI_ROUND_NONE, y holds the int32 sums themselves. Training uses this; a file
 * cannot.
 */
#ifndef QI_HOST_GEMM_H
#define QI_HOST_GEMM_H

#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"
#include "infer/model/op.h"

#include <string.h>

/** A layer as the file describes it, which an inner loop gets when it packs. */
typedef struct qi_gemm_layer {
    int32_t depth, channels;   /* K, N; >= 1 */
    const uint8_t *weights;    /* [N, K] codes; NULL: only its size is asked for */
    qi_codes x_codes, w_codes; /* w: (byte ^ flip) - offset = q - zero_point */
    int32_t x_bits;            /* of the codes of x; 0: of any byte */
    int y_is_signed;
    int64_t max_accumulator; /* largest |sum|, including the bias */
    qi_requant requant;      /* borrowed from the model */
    /* A row of x is K / segment runs of `segment` bytes, segment_stride apart. segment is a
     * multiple of 4. 0: one run. Only an inner loop with line_rows reads several */
    int32_t segment;
    size_t segment_stride;
} qi_gemm_layer;

/** One piece of a product: the rows of x with the channels first_channel..end_channel - 1. */
typedef struct qi_gemm_run {
    const void *packed; /* what pack made */
    const uint8_t *x;   /* row r is at x + r * x_stride, at any alignment; QI_SLACK bytes after the
                           last row's K must be readable. Codes, or x' (unsigned_x) */
    size_t x_stride;
    /* NULL; or x is still to be written, which run does when it is about to read it: x' of these
     * codes. Then rows follow each other without a gap, and x is memory of the thread,
     * QI_FAST_ALIGN- aligned, with QI_SLACK bytes after the last row */
    const uint8_t *codes;
    int32_t rows; /* >= 1 */
    int32_t line; /* 0, or rows lie in lines of this many: row r is at
                     x + r / line * line_stride + r % line * x_stride */
    size_t line_stride;
    int32_t first_channel,
        end_channel; /* first: a multiple of channel_tile; end: a multiple, or N */
    uint8_t *y;      /* of the first row and channel 0; only the codes of this piece are written */
    size_t y_stride; /* bytes */
    void *scratch; /* of the thread, QI_FAST_ALIGN-aligned, of the size that `scratch` below returns
                    */
} qi_gemm_run;

/** The matrix product of an instruction set. */
typedef struct qi_gemm {
    const char *name;
    int32_t row_tile;       /* rows that share a pass over the weights */
    int32_t channel_tile;   /* channels per panel of packed weights */
    int32_t least_channels; /* of the narrowest panel: fewer take as long */
    int32_t line_rows;      /* a tile of so many rows keeps the multipliers busy; 0: run takes rows
                               of one segment at one stride alone */
    int joins;              /* it gets several blocks of rows at once: reads of weights are what it
                               waits for */
    int unsigned_x;         /* run reads x' itself: its caller flips signed codes */
    int flips;              /* run can flip them where rows follow each other (qi_gemm_run.codes) */
    /** Bytes that pack fills; without weights, as many as any weights need. */
    size_t (*packed_bytes)(const qi_gemm_layer *layer);
    /**
     * Pack the weights in reading order, with everything that run needs. packed is
     * QI_FAST_ALIGN-aligned and has QI_SLACK readable bytes after it.
     */
    void (*pack)(const qi_gemm_layer *layer, void *packed);
    /** Bytes of scratch for one run; without weights, as many as any weights need. NULL: none. */
    size_t (*scratch)(const qi_gemm_layer *layer);
    void (*run)(const qi_gemm_run *run);
    /**
     * The instructions that multiply a packed layer, by their name in bench/roof. NULL: those with
     * the highest roof of the instruction set.
     */
    const char *(*sequence)(const void *packed);
} qi_gemm;

/** What is left of qi_gemm_run.codes. */
typedef struct qi_gemm_flips {
    const uint8_t *codes; /* the next ones */
    uint8_t *to;          /* their x' */
    const uint8_t *end;   /* of x'; not after `to`: there are no codes left */
} qi_gemm_flips;

static inline qi_gemm_flips qi_gemm_flips_of(const qi_gemm_run *run)
{
    uint8_t *to = (uint8_t *)(uintptr_t)run->x;
    return (qi_gemm_flips){run->codes, to,
                           to + (run->codes ? (size_t)run->rows * run->x_stride : 0)};
}

/** Write x' at least up to here, or to its end. Whole cache lines are read and written. */
static inline void qi_gemm_flip_until(qi_gemm_flips *f, const uint8_t *until)
{
    enum { WORDS = 8 };
    uint64_t words[WORDS];
    const uint8_t *from = f->codes, *end = until < f->end ? until : f->end;
    uint8_t *to = f->to;
    for (; to < end; to += sizeof words, from += sizeof words) {
        memcpy(words, from, sizeof words);
        for (int i = 0; i < WORDS; i++)
            words[i] ^= UINT64_C(0x8080808080808080);
        memcpy(to, words, sizeof words);
    }
    f->codes = from;
    f->to = to;
}

/** A row of a piece. */
static inline const uint8_t *qi_gemm_row(const qi_gemm_run *run, int32_t row)
{
    int32_t const line = run->line ? run->line : run->rows;
    return run->x + (size_t)(row / line) * run->line_stride + (size_t)(row % line) * run->x_stride;
}

/** Some rows of a piece, which its inner loop takes together: lines of the same length. */
typedef struct qi_gemm_chunk {
    int32_t row, rows; /* rows = lines * line */
    int32_t lines, line;
    const uint8_t *x; /* of the first row */
} qi_gemm_chunk;

/** The chunk that begins with this row: whole lines, or a part of one, of at most `most` rows. */
static inline qi_gemm_chunk qi_gemm_chunk_at(const qi_gemm_run *run, int32_t row, int32_t most)
{
    int32_t const line = run->line ? run->line : run->rows;
    int32_t const left = line - row % line, lines = (run->rows - row) / line;
    qi_gemm_chunk c = {.row = row, .lines = 1, .line = left < most ? left : most};
    if (line <= most) /* and so a line begins here */
        c.lines = most / line < lines ? most / line : lines;
    c.rows = c.lines * c.line;
    c.x = qi_gemm_row(run, row);
    return c;
}

static inline size_t qi_gemm_scratch(const qi_gemm *gemm, const qi_gemm_layer *layer)
{
    return gemm->scratch ? gemm->scratch(layer) : 0;
}

/**
 * The layer of a conv2d or fully_connected node whose weights are [N, .., K]. clamp: index of
 * clamp_lo among its parameters.
 */
qi_gemm_layer qi_gemm_layer_of(const qi_model *model, const qi_node *node, int32_t clamp);

/**
 * How a product of rows * N is cut into pieces: blocks of row tiles, and groups of panels if there
 * are few rows. This depends only on the layer and the inner loop.
 */
typedef struct qi_gemm_split {
    int32_t rows, channels;
    int32_t row_tiles, panels, channel_tile;
    int32_t blocks,
        groups;    /* there are blocks * groups pieces; those of one block follow each other */
    int32_t joins; /* so many successive blocks may be one piece, >= 1 */
    int32_t least_blocks; /* so many does the size of x ask for */
} qi_gemm_split;

qi_gemm_split qi_gemm_split_of(const qi_gemm *gemm, int32_t rows, int32_t depth, int32_t channels);
/** The same for rows that lie in lines; a piece has whole lines. bytes: of one line of x. */
qi_gemm_split qi_gemm_split_lines(const qi_gemm *gemm, int32_t lines, int32_t line, size_t bytes,
                                  int32_t depth, int32_t channels);

/**
 * The same as one of `products` that threads share, whose x and y have so many bytes together.
 * Their blocks take turns: what all products read of x and write of y stays in the second-level
 * cache.
 */
qi_gemm_split qi_gemm_split_among(qi_gemm_split s, int32_t products, int64_t bytes);

/** What the caller of run has to flip in codes of x: 0, or 0x80. */
static inline uint8_t qi_gemm_flip(const qi_gemm *gemm, qi_codes x)
{
    return gemm->unsigned_x ? x.flip : 0;
}

/** Bytes of scratch for a copy of the rows of any piece, aligned, with QI_SLACK bytes after them.
 */
size_t qi_gemm_copy_bytes(const qi_gemm_split *s, size_t depth);

/**
 * Copy n codes, with the bits of flip changed in each. Whole words are moved: up to 15 bytes more
 * are read and written.
 */
static inline void qi_copy_flipped(uint8_t *to, const uint8_t *from, size_t n, uint8_t flip)
{
    uint64_t const flips = flip * UINT64_C(0x0101010101010101);
    for (size_t i = 0; i < n; i += 16) {
        uint64_t word[2];
        memcpy(word, from + i, sizeof word);
        word[0] ^= flips;
        word[1] ^= flips;
        memcpy(to + i, word, sizeof word);
    }
}

/** The same for any n; long runs are copied by the instruction set, and exactly. */
static inline void qi_copy_codes(const qi_isa *isa, uint8_t *to, const uint8_t *from, size_t n,
                                 uint8_t flip)
{
    enum { LONG = 64 };
    if (n >= LONG && isa->elementwise)
        isa->elementwise->flip(flip, from, to, n);
    else
        qi_copy_flipped(to, from, n, flip);
}

/** Successive pieces of one block, as one. */
typedef struct qi_gemm_piece {
    int32_t row, rows, first_channel, end_channel;
    int32_t next; /* the number of the first piece after them */
} qi_gemm_piece;

/** The pieces first..end - 1 as far as they belong to the block of the first, or are whole blocks.
 */
qi_gemm_piece qi_gemm_pieces(const qi_gemm_split *s, int32_t first, int32_t end);
/** The largest number of rows of a piece. */
int32_t qi_gemm_most_rows(const qi_gemm_split *s);

#endif
