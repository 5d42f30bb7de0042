/**
 * How fast_depthwise.c computes a layer. The plan is made when the weights are packed, and stored
 * before them.
 */
#ifndef QI_HOST_DEPTHWISE_PLAN_H
#define QI_HOST_DEPTHWISE_PLAN_H

#include "infer/host/loops/depthwise.h"
#include "infer/host/loops/fast.h"

/**
 * Geometry of the strips. A strip is `width` pixels of `block` channels: `first` columns of left
 * border, the columns of the picture under the windows, and the rest of the border on the right.
 *
 * Wide layers (16 channels and more): a group is 16 channels of a pixel. If the number of channels
 * is not a multiple of 16, the last group overlaps the one before it, and both write the same codes
 * there.
 *
 * Narrow layers: a group is 16 neighbours in a row of outputs [OW, C], so that every lane is used.
 * The pattern of channels repeats every `period` = lcm(C, 16) outputs, that is after period / 16
 * groups. Neighbouring outputs need neighbouring quads. With a stride, columns with equal remainder
 * are therefore placed next to each other: column x of the strip lies at (x mod stride) * phase + x
 * / stride.
 *
 * Blocks (depthwise.h) need no strip.
 *
 * Layers with a channel multiplier repeat each channel in the strip. Rows are copied first if
 * columns are moved or channels repeated.
 */
typedef struct qi_depthwise_plan {
    qi_window g;
    qi_codes x_codes;
    int32_t multiplier;
    int32_t strips, rows, taps, bands; /* strips per band, output rows per band, quads per sum */
    int32_t width, first, inside;      /* columns: all, left border, in the picture */
    int32_t narrow, copies, period;
    int32_t blocked; /* groups come in blocks of four */
    int32_t phases, phase;
    int32_t block, blocks; /* channels per strip, and number of such blocks */
    int32_t groups;
    int32_t wide_weights; /* some w - Z_w does not fit int8 */
    int32_t fits;         /* all w - Z_w are within -255..254, so two int8 can hold each */
    size_t strip_quads, group_bytes;
    size_t border_bytes, copy_bytes, line_bytes; /* sizes of scratch: a row of zero-points, a copied
                                                    row, a row of outputs of a narrow layer */
} qi_depthwise_plan;

/** Bytes for the plan at the start of a packed layer. */
enum { QI_DEPTHWISE_PLAN_BYTES = 256 };

qi_depthwise_plan qi_depthwise_plan_of(const qi_isa *isa, const qi_model *model,
                                       const qi_node *node);
/** Bytes of scratch per thread, or -1: too many, or weights that do not fit. */
int64_t qi_depthwise_scratch(const qi_depthwise_plan *p);
/** Bytes of all packed groups, and of one group before it is packed. */
size_t qi_depthwise_packed(const qi_depthwise_plan *p);
/** Pack all groups, one after the other, in the form of isa. */
void qi_depthwise_pack(const qi_isa *isa, const qi_model *model, const qi_node *node,
                       const qi_depthwise_plan *p, uint8_t *groups);

/**
 * How many quads of `channels` per pixel lie between the first quad under an output and those of
 * kernel column kx.
 */
static inline int32_t qi_depthwise_offset(const qi_depthwise_plan *p, int32_t kx, int32_t channels)
{
    int32_t const x = kx * p->g.dilation_w;
    return (x % p->phases * p->phase + x / p->phases) * channels;
}

/**
 * The first channel of a group (narrow layers: of its lane 0), counted over the layer. Not for
 * blocks.
 */
static inline int32_t qi_depthwise_first(const qi_depthwise_plan *p, int32_t group)
{
    int32_t const at = group * QI_DEPTHWISE_LANES, last = p->g.o - QI_DEPTHWISE_LANES;
    return p->narrow || at < last ? at : last;
}

#endif
