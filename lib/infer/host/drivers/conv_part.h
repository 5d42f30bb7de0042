/**
 * Convolutions as matrix products (gemm.h), for the drivers of conv2d and transpose_conv2d. A layer
 * is one part or several: each is an ordinary convolution that reads some channels of x, and writes
 * some of the channels, or of the pixels, of y. The rows of its matrix are output positions, and
 * K = KH KW C.
 *
 * A 1x1 convolution of stride 1 uses its input directly as the matrix. If its codes must be flipped
 * (gemm.h, unsigned_x), they go to the thread's scratch: the product copies them if it can (flips).
 * Other convolutions first copy what they read into the scratch, and flip it on the way. Pixels
 * outside the picture get the code Z_x. There are two ways:
 *
 * Lines: some lines of the picture with their borders. The product reads windows where they lie. A
 * row of the matrix has KH segments of KW C bytes, and the rows of an output line overlap:
 *
 *   scratch  | line 0 | line 1 | .. | slack | the product's own |
 *
 * Patches: the windows of a piece's rows as rows of K bytes, if output lines are so short that
 * tiles would have few rows, and for products that cannot read lines:
 *
 *   scratch  | patch of row 0 | patch of row 1 | .. | slack | the product's own |
 *
 * Copies move whole words and may run past the end of a patch, or of a line's pixel. The bytes
 * after it belong to the next one, which is written later, or to the slack.
 */
#ifndef QI_HOST_CONV_PART_H
#define QI_HOST_CONV_PART_H

#include "infer/host/loops/gemm.h"

typedef struct qi_conv_part {
    /* c and o: of the part. Padding may be negative, which leaves out pixels, and windows may lie
     * outside the picture */
    qi_window g;
    qi_codes x_codes;
    size_t x_at, x_pixel; /* bytes of x before its first channel; from a pixel to the next one */
    size_t y_at, y_pixel, y_line, y_picture; /* of y before its first output; from an output to the
                                                next one of the line, to the next line, picture */
    size_t packed_at;                        /* bytes of the packed layer before its weights */
} qi_conv_part;

/** How the work of all parts is cut: there are blocks * parts * groups tiles. */
typedef struct qi_conv_tiles {
    int32_t parts, blocks, groups;
} qi_conv_tiles;

/** What a driver tells of a layer. */
typedef struct qi_conv_layer {
    int32_t (*parts)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    qi_conv_part (*part)(const qi_isa *isa, const qi_model *model, const qi_node *node, int32_t i);
    /** The product of part i; without weights, unless they lie in the model as it needs them. */
    qi_gemm_layer (*product)(const qi_isa *isa, const qi_model *model, const qi_node *node,
                             int32_t i);
} qi_conv_layer;

/** If the part reads lines, its product has the segments of their rows. */
void qi_conv_part_segment(const qi_gemm *gemm, const qi_conv_part *part, qi_gemm_layer *product);

/** The functions of a driver. */
size_t qi_conv_scratch(const qi_conv_layer *layer, const qi_isa *isa, const qi_model *model,
                       const qi_node *node);
int32_t qi_conv_tile_count(const qi_conv_layer *layer, const qi_isa *isa, const qi_model *model,
                           const qi_node *node);
void qi_conv_run_tiles(const qi_fast_call *call, int32_t first, int32_t end);

/** The bytes at the start of a packed layer that say how its parts run. */
size_t qi_conv_plan_bytes(int32_t parts);
/** Fill them. */
void qi_conv_plan(const qi_conv_layer *layer, const qi_isa *isa, const qi_model *model,
                  const qi_node *node, void *packed);
/** The packed product of the first part. */
const void *qi_conv_product(const void *packed);

/** Bytes, aligned for what follows them. */
static inline size_t qi_conv_align(size_t bytes)
{
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

/** K of a part. */
static inline size_t qi_conv_depth(const qi_window *g)
{
    return (size_t)g->kernel_h * (size_t)g->kernel_w * (size_t)g->c;
}

#endif
