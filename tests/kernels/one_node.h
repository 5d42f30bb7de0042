/**
 * One node in memory, without a file. The core's scalar kernel computes it, and then a driver of
 * the host with given inner loops, as in dav1d's checkasm. If a byte differs, the test fails.
 *
 * Guard bytes surround everything that a driver may write (output, scratch, packed weights), and
 * must survive. Scratch is full of garbage before each tile. Tiles run in random order. Inputs and
 * outputs begin at any alignment.
 */
#ifndef QAT_TESTS_ONE_NODE_H
#define QAT_TESTS_ONE_NODE_H

#include "infer/host/loops/fast.h"
#include "infer/model/op.h"

#include <stdbool.h>

/** Random numbers that are the same everywhere. */
uint32_t node_random(uint64_t *seed);
/** lo..hi */
int32_t node_random_in(uint64_t *seed, int32_t lo, int32_t hi);

/** Lowest code of a type of that many bits; any of its codes. */
int32_t node_lowest(qi_type type, int bits);
int32_t node_zero_point(uint64_t *seed, qi_type type, int bits);
/** How many outputs a window has along an axis: as SAME, as VALID, or as many as there may be. */
int32_t node_outputs(int32_t size, int32_t pad, int32_t kernel, int32_t dilation, int32_t stride,
                     uint64_t *seed);

/** How bytes of codes are filled. */
typedef enum node_fill {
    FILL_RANDOM,
    FILL_LOWEST,
    FILL_HIGHEST,
    FILL_EXTREMES, /* each code the lowest or the highest */
    FILLS,
    FILL_SIGNS = FILLS /* each -1 or 1, of signed codes: not one that is drawn at random */
} node_fill;

typedef struct one_node {
    qi_model model;
    qi_node node;
    qi_tensor tensors[QI_FAST_MAX_INPUTS + 1]; /* the output last added */
    int32_t inputs[QI_FAST_MAX_INPUTS], output;
    int32_t params[QI_MAX_PARAMS];
    uint8_t *memory[QI_FAST_MAX_INPUTS + 1]; /* of tensors: their bytes, and QI_SLACK of garbage */
    const void *in[QI_FAST_MAX_INPUTS];
    uint64_t *seed;
} one_node;

/** An empty node; release with node_free. seed is borrowed. */
void node_init(one_node *n, const qi_kernel *kernel, qi_rounding rounding, uint64_t *seed);
void node_free(one_node *n);

/** Append an input of codes, at a random alignment unless it is constant. */
void node_codes(one_node *n, qi_tensor_kind kind, qi_type type, int bits, int32_t zero_point,
                int rank, const int32_t *dims, node_fill fill);
/** Append a constant of int32. */
void node_s32(one_node *n, int32_t count, const int32_t *values);
/** Append bias, mult and shift of an accumulating layer: one multiplier a channel, or one for all;
 *  shifts in shift_lo..shift_hi. */
void node_requantization(one_node *n, int32_t channels, int32_t shift_lo, int32_t shift_hi);
/** The output; after the inputs. */
void node_output(one_node *n, qi_type type, int bits, int32_t zero_point, int rank,
                 const int32_t *dims);
void node_params(one_node *n, int count, const int32_t *params);

/** Does the core accept it? Fills in max_accumulator. The reason of a refusal goes to stderr. */
bool node_check(one_node *n);

/**
 * Compare the driver with the core. If the driver may run in place, compare it also with out ==
 * in[0] where the planner would place them so. Return false if a byte differs or a guard byte was
 * written; `what` then explains it on stderr. A node that the driver leaves to the core is false as
 * well, unless this is allowed.
 */
bool node_compare(one_node *n, const qi_fast *fast, const qi_isa *isa, const char *what,
                  bool may_leave);

#endif
