/** How fast_depthwise.c computes a layer: found when its weights are packed, kept ahead of them. */
#ifndef QI_HOST_DEPTHWISE_PLAN_H
#define QI_HOST_DEPTHWISE_PLAN_H

#include "infer/host/depthwise.h"
#include "infer/host/fast.h"

/**
 * Geometry of the strips. A strip is `width` pixels of `block` channels: the columns of the picture
 * that windows touch, `first` columns of border to their left, the rest of the border to their
 * right.
 *
 * Wide layers (16 channels and more): a group is 16 channels of a pixel; where the channels are no
 * multiple of 16 the last group overlaps the one before it, and both write the same codes there.
 *
 * Narrow layers: a group is 16 neighbours in a row of outputs [OW, C], so that no lane idles. The
 * pattern of channels repeats every `period` = lcm(C, 16) outputs, after period / 16 groups. As
 * neighbours among outputs must be neighbours among quads, strides put the columns of equal
 * remainder next to each other: column x of the strip lies at (x mod stride) * phase + x / stride.
 *
 * Blocks (depthwise.h) need no strip.
 *
 * Layers with a channel multiplier repeat each channel in the strip. Where columns are moved or
 * channels repeated, rows are copied first.
 */
typedef struct qi_depthwise_plan {
    qi_window g;
    qi_codes x_codes;
    int32_t multiplier;
    int32_t strips, rows, taps, bands; /* strips of a band, output rows of a band, quads of a sum */
    int32_t width, first, inside;      /* columns: all, left border, of the picture */
    int32_t narrow, copies, period;
    int32_t blocked; /* groups come in blocks of four */
    int32_t phases, phase;
    int32_t block, blocks; /* channels in a strip, and how many such blocks */
    int32_t groups;
    int32_t wide_weights; /* some w - Z_w lies outside int8 */
    int32_t fits;         /* and all within -255..254, so that two int8 hold each */
    size_t strip_quads, group_bytes;
    size_t border_bytes, copy_bytes, line_bytes; /* scratch: a row of zero-points, one copied row,
                                                    one row of outputs of a narrow layer */
} qi_depthwise_plan;

/** Bytes kept for it at the start of a packed layer. */
enum { QI_DEPTHWISE_PLAN_BYTES = 256 };

qi_depthwise_plan qi_depthwise_plan_of(const qi_isa *isa, const qi_model *model,
                                       const qi_node *node);
/** Bytes of a thread's scratch, or -1: too many, or weights that do not fit. */
int64_t qi_depthwise_scratch(const qi_depthwise_plan *p);
/** Bytes of all packed groups, and of one before it is packed. */
size_t qi_depthwise_packed(const qi_depthwise_plan *p);
/** All groups, one behind the other, as isa has them. */
void qi_depthwise_pack(const qi_isa *isa, const qi_model *model, const qi_node *node,
                       const qi_depthwise_plan *p, uint8_t *groups);

/** Quads of `channels` a pixel from the first under an output to those of kernel column kx. */
static inline int32_t qi_depthwise_offset(const qi_depthwise_plan *p, int32_t kx, int32_t channels)
{
    int32_t const x = kx * p->g.dilation_w;
    return (x % p->phases * p->phase + x / p->phases) * channels;
}

/** First channel of a group (narrow: of its lane 0), counted over the layer. Not for blocks. */
static inline int32_t qi_depthwise_first(const qi_depthwise_plan *p, int32_t group)
{
    int32_t const at = group * QI_DEPTHWISE_LANES, last = p->g.o - QI_DEPTHWISE_LANES;
    return p->narrow || at < last ? at : last;
}

#endif
