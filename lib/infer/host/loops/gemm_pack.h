/**
 * Packed layers, shared by all matrix products.
 *
 *   packed | header | panel 0 | panel 1 | ..
 *   panel  | columns: bias' mult .., `channels` int32 each | weights |
 *
 * A panel holds vectors * lanes output channels; channels after the layer's last have weight 0. The
 * last panel is narrow if the remaining channels fit. Its weights are [groups][channels][group], so
 * that one load fetches a group of consecutive k for as many channels as a register has lanes.
 * Channels are ordered so that packing int32 to int16 to int8 within 128 bits puts them side by
 * side:
 *
 *   vector v, lane 4 i + j   holds channel   i (4 vectors) + 4 v + j
 */
#ifndef QI_HOST_GEMM_PACK_H
#define QI_HOST_GEMM_PACK_H

#include "infer/host/loops/gemm.h"

/** The shape of an inner loop's panels. */
typedef struct qi_panel_shape {
    int32_t vectors;     /* registers of accumulators in a row: 1, 2 or 4 */
    int32_t narrow;      /* vectors of a narrow last panel; 0: no panel is narrow */
    int32_t lanes;       /* int32 in a register */
    int32_t group;       /* consecutive k that one instruction sums */
    int32_t weight_size; /* bytes of a packed weight: 1, or 2 (and then c = Z_w) */
    int32_t
        one_tail; /* NEON: one tail for all multipliers of rounding TWICE; EVEN: doubled (even.h) */
} qi_panel_shape;

/**
 * How the accumulators of a layer become codes. Rounding TWICE has three ways:
 *
 * - LINE: one line a channel (sum_line.h), right for s >= 0. Codes below the zero_point are clamped
 *   (lo >= zero_point), every n >= 1, and lines are found. Or, in a layer with a fraction, one that
 *   is right for all s.
 * - LINES: two lines a channel. Every n >= 1, and lines are found.
 * - TWICE: any multiplier.
 *
 * Rounding EVEN has tail EVEN, if every channel has its constants (even.h). SCALAR is for the other
 * layers of this rounding, and for rounding DOUBLE: one sum after the other. SUMS is for rounding
 * NONE: they do not; y holds int32 (gemm.h).
 *
 * With a fraction f, sums are multiplied by 2^f first, and LATE_BIAS is added: the line's B, or the
 * file's bias. Most layers with a fraction have lines of whole sums, and need neither.
 */
typedef enum qi_gemm_tail {
    QI_TAIL_LINE,
    QI_TAIL_LINES,
    QI_TAIL_TWICE,
    QI_TAIL_EVEN,
    QI_TAIL_SCALAR,
    QI_TAIL_SUMS
} qi_gemm_tail;

/**
 * The start of a packed layer. The codes of the output are signed here: those of QI_U8 are reduced
 * by 128, and y_flip turns them back.
 */
typedef struct qi_packed {
    int32_t depth, channels;
    int32_t panel_channels;
    int32_t
        narrow_channels; /* channels of a narrow last panel, or 0: it is as wide as the others */
    int32_t groups;      /* groups of k; the last is padded with zero weights */
    int32_t row_factor;  /* d */
    int32_t x_flip;      /* four bytes: 0 or 0x80 each */
    int32_t y_flip;      /* four bytes */
    int32_t zero_point, lo, hi;
    int32_t tail;     /* qi_gemm_tail */
    int32_t fraction; /* by which sums are multiplied: the layer's, or 0 with lines of whole sums */
    int32_t
        entries; /* entries of the longest list if panels hold lists (avx2_bytes_gemm.c), else 0 */
    int32_t has_planes;        /* panels hold bits of weights (avx512vbmi_gemm.c) */
    int32_t segments, segment; /* a row of x is so many runs of so many bytes */
    size_t segment_stride;
    size_t panel_bytes;
    qi_requant requant;
} qi_packed;

/**
 * The columns of a panel. Products are formed separately for even and odd lanes, as 64-bit lanes:
 * MULT_ODD has the multipliers of the odd lanes in even lanes. With LINES, the bias holds the line
 * of s >= 0, and NEGATIVE columns have what changes for sums below BOUND, that is s < 0.
 */
enum {
    QI_COLUMN_BIAS,
    QI_COLUMN_MULT,
    QI_COLUMN_MULT_ODD,
    QI_COLUMN_OFFSET, /* zero_point - t in int16, in the order in which two registers of a row (or
                         one of two rows) are packed to int16 */
    QI_COLUMN_SHIFT,  /* LINE, LINES: of the products' high words. It is n - 1, and less by the
                         layer's fraction with lines of whole sums */
    QI_COLUMN_BOUND,
    QI_COLUMN_NEGATIVE_ADD,
    QI_COLUMN_NEGATIVE_OFFSET,
    QI_COLUMN_LATE_BIAS, /* if `fraction` is not 0 */
    QI_COLUMNS,
    QI_COLUMN_RIGHT = QI_COLUMN_SHIFT, /* TWICE: the file's right shift; EVEN: of h */
    QI_COLUMN_LEFT = QI_COLUMN_BOUND,
    QI_COLUMN_EVEN_ADD = QI_COLUMN_NEGATIVE_ADD,
    QI_COLUMN_EVEN_SPAN = QI_COLUMN_NEGATIVE_OFFSET
};

enum { QI_PACKED_HEADER = 192 }; /* bytes, >= sizeof(qi_packed) */

size_t qi_packed_bytes(const qi_gemm_layer *layer, const qi_panel_shape *shape);
void qi_pack(const qi_gemm_layer *layer, const qi_panel_shape *shape, void *packed);

/**
 * The parts of packing, for inner loops that pack their weights themselves: the header, and then
 * the columns of all panels.
 */
void qi_pack_header(qi_packed *h, const qi_gemm_layer *layer, const qi_panel_shape *shape);
void qi_pack_columns(qi_packed *h, const qi_gemm_layer *layer, const qi_panel_shape *shape);

static inline int32_t qi_panels(const qi_packed *p)
{
    return (p->channels - 1) / p->panel_channels + 1;
}

/** Panel number i: its columns. Its weights follow after QI_COLUMNS * channels of them. */
static inline const int32_t *qi_panel_at(const qi_packed *p, int32_t i)
{
    return (const int32_t *)((const uint8_t *)p + QI_PACKED_HEADER + (size_t)i * p->panel_bytes);
}

/** How many channels fit panel i. */
static inline int32_t qi_panel_room(const qi_packed *p, int32_t i)
{
    int const is_last = i == (p->channels - 1) / p->panel_channels;
    return is_last && p->narrow_channels ? p->narrow_channels : p->panel_channels;
}

/** SCALAR: turn one row of sums of a panel into values, in place, by the scalar function. */
void qi_requantize_row_scalar(const qi_packed *p, int32_t panel, int32_t lanes, int32_t *sums);

/**
 * EVEN: take the values of the lanes that `which` has a bit for from the scalar function.
 * @param first  the position of lane 0 in the panel
 * @param sums   of the same lanes, before requantization
 */
void qi_requantize_ties(const qi_packed *p, int32_t panel, int32_t lanes, int32_t first,
                        uint32_t which, const int32_t *sums, int32_t *values);

/**
 * SUMS: store rows of a panel's sums, `stride` of them apart, for the first `channels` of its
 * channels in y.
 */
void qi_store_sums(const qi_packed *p, int32_t panel, int32_t lanes, const int32_t *sums,
                   int32_t rows, int32_t stride, int32_t channels, uint8_t *y, size_t y_stride);

/** The channel of a panel that lies at position i. */
static inline int32_t qi_panel_channel(int32_t vectors, int32_t lanes, int32_t i)
{
    int32_t const v = i / lanes, lane = i % lanes;
    return lane / 4 * 4 * vectors + 4 * v + lane % 4;
}

#endif
