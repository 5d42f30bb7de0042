/**
 * Integer forward: the values of a graph are those of the deployed integers. Backward stays float,
 * with straight-through gradients.
 *
 *     x codes --+                                batch statistics
 *               +--> sums (int32) ---------------------+--> multiplier, int32 bias
 *     w codes --'        |                                       |
 *                        '---------------------------------> requantize --> codes of fake_quant
 *                        '--> z = S1 S2 sums, noted in 16 bits: what backward reads
 *
 * The sums are computed on integers (quant.h, QAT_FORWARD_INTEGER), or in float32 and rounded to
 * whole ones (QAT_FORWARD_SIMULATED, if anything has few bits), so that the simulation is of other
 * sums than the engine's:
 *
 *     x, w in float32 --> the layer's own forward --> z / (S1 S2) --> sums (int32)
 *
 * Layers whose sums may be too large for that have integers in a simulation, too.
 *
 * When the graph is planned, live_plan.c finds which fake_quant node ends which layer. A run
 * goes node after node (live.c). Layers that accumulate get their sums from lib/infer
 * (live_sums.c) and their codes from the shared rounding (live_codes.c). Other layers are
 * frozen as export freezes them (live_other.c), and run by the engine's inner loops if it has
 * any (live_fast.c), otherwise evaluated exactly. They are all frozen once before the first run, so
 * that the memory for them is there: runs allocate nothing but room for packed weights, on
 * processors where that depends on the weights (AVX2).
 *
 * A network that has no integers is an error if they are asked for; its simulation is fake
 * quantization alone.
 */
#ifndef QAT_LIVE_LIVE_H
#define QAT_LIVE_LIVE_H

#include "autograd/loops/wide.h"
#include "autograd/loops/window.h"
#include "base/arena.h"
#include "fakequant/ops.h"
#include "fakequant/quantizer.h"
#include "fold/fold.h"
#include "infer/host/sums.h"
#include "qat/quant.h"

/** Codes of a node's value. */
typedef struct fwd_codes {
    bool has;
    int bits;       /* of a code */
    uint8_t *bytes; /* set when memory is planned */
    qat_qparams p;
    bool live;    /* set in this run */
    bool dropped; /* after a dropout, whose scaling is not part of the deployed network */
} fwd_codes;

typedef enum fwd_kind {
    FWD_NONE,
    FWD_INPUT,      /* fake_quant of a graph input */
    FWD_ACCUMULATE, /* conv, depthwise, FC, with bias, batch norm, ReLU */
    FWD_OTHER,      /* any other op that can be frozen */
    FWD_REQUANTIZE, /* of a tensor that already has codes */
    FWD_PASS        /* no fake_quant: the op passes codes on */
} fwd_kind;

/** Coefficients of an accumulating layer, per channel, repeated as in wide.h. */
typedef struct fwd_wide {
    int32_t *bias, *mult, *left, *right;
    int32_t *even;                /* of QI_ROUND_EVEN: the bits of M in float32 */
    qat_real *z_scale, *z_offset; /* z = sum z_scale + z_offset */
    qat_real *per_z;              /* in_float: sum = per_z (the convolution's z) */
} fwd_wide;

/** A layer: the nodes that end in one fake_quant. */
typedef struct fwd_layer {
    fwd_kind kind;
    qat_node *head, *bias, *bn, *output; /* output: the fake_quant; PASS: the op */
    const qat_node *activation;          /* the last activation, or NULL */
    float act_min, act_max;
    bool freezes; /* OTHER, REQUANTIZE: it froze on the grids of the rehearsal */
    /* ACCUMULATE: */
    const qat_node *weights; /* fake_quant_weights */
    bool depthwise, fully_connected;
    bool in_float; /* its sums are computed in float32 */
    int channels;
    int64_t depth;                /* products per sum */
    int fraction;                 /* fractional bits of the accumulator in this step */
    double *biases, *multipliers; /* [channels] in units of sums; M */
    qat_window window;
    int spread_h, spread_w; /* transposed conv: its stride, and `window` has 1; otherwise 0 */
    uint8_t *spread;        /* its input for `window`: codes a stride apart, zero_points between */
    qi_sums *sums;          /* conv, FC */
    uint8_t *weight_codes;  /* [w] */
    int16_t *differences;   /* depthwise: [KH, KW] laid out: w - Z_w */
    float *weight_scales;   /* [channels] */
    int32_t weight_zero_point;
    double *sum, *squares; /* [channels] of sums */
    double *total;         /* [1] behind them: the rows that were summed */
    int32_t *least, *most; /* [channels] */
    void *partial;         /* of blocks */
    bool is_noted;         /* with bn: only bn reads z and raw */
    qat_sum_range range;
    fwd_wide wide;
    int64_t *significand; /* rounding DOUBLE: [channels] */
} fwd_layer;

typedef struct fwd_graph {
    qat_arena memory; /* of the plan */
    qat_graph *graph;
    const qat_quant_options *options;
    bool simulates; /* sums are computed in float32, as far as they are exact */
    bool off;       /* an eval graph that was not asked to (qat_simulate_integers) */
    bool refused;   /* a network that has no integers is only simulated: it takes no part */
    int nodes, n_layers;
    fwd_codes *codes;        /* by node */
    fwd_layer *layers;       /* n_layers */
    fwd_layer **ends;        /* by node: the layer whose output it is */
    fwd_layer **heads;       /* by node: the accumulating layer with this head */
    fwd_layer **batch_norms; /* by node: the layer with this bn, or with this bias before a bn */
    fwd_layer **raws;        /* by node: the layer with this raw */
    bool *outlives;          /* by node: is it read after backward? */
    void *scratch;           /* of all threads */
    size_t scratch_bytes;
    qat_qgraph *frozen; /* the layer that runs; the next one takes its memory */
    bool rehearsed;
    int64_t start; /* the first step after all delays */
    qat_error error;
} fwd_graph;

/* ------------------------------------------------------------------ the parts */

/** Find the layers and allocate. A layer that cannot run on integers is an error. */
qat_status fwd_find(fwd_graph *f, qat_error *err);
/** After fwd_find has failed: no node has codes, and there is no layer. */
void fwd_find_nothing(fwd_graph *f);
void fwd_free_layers(fwd_graph *f);

/**
 * Compute the sums of a layer whose input has codes, into head->value as int32. Returns false if
 * out of memory.
 */
bool fwd_sums(fwd_graph *f, fwd_layer *l, const qat_run *run);
/** The bytes of a transposed convolution's spread input. */
size_t fwd_spread_bytes(const fwd_layer *l);
/** Compute sum, squares (if asked for), least and most of the layer's sums. */
void fwd_statistics(fwd_layer *l, bool squares);
/** Set multipliers and biases for y = slope z + offset (NULL: y = z + bias) on the grid p. */
void fwd_set_multipliers(fwd_graph *f, fwd_layer *l, const qat_real *slope, const qat_real *offset,
                         const qat_qparams *p);
/** Set z_scale and z_offset, which turn sums into reals. */
void fwd_set_reals(fwd_graph *f, fwd_layer *l);
/** Set the grid of z's notes from the layer's statistics. */
void fwd_set_notes(fwd_layer *l, const qat_note_grid *grid);
/**
 * Make the codes of all sums if `codes`. Also z: as line says, or (NULL, no batch norm) in place of
 * the sums.
 */
void fwd_requantize(fwd_graph *f, fwd_layer *l, const qat_qparams *p, bool codes,
                    const qat_fold_line *line);

/** Make the codes of a layer of kind OTHER or REQUANTIZE. */
qat_status fwd_other(fwd_graph *f, fwd_layer *l, const qat_qparams *p, qat_error *err);
/** Freeze such a layer on the grids that its nodes have, and take all memory that running needs. */
qat_status fwd_rehearse_other(fwd_graph *f, fwd_layer *l, qat_error *err);
/**
 * The engine's inner loops for the frozen layer, which is one op, in its memory; NULL: they cannot
 * run it.
 */
typedef struct fwd_fast fwd_fast;
fwd_fast *fwd_fast_make(fwd_graph *f, int batch);
void fwd_fast_run(fwd_fast *fast, const void *const *codes, uint8_t *out);

/** Reserve aligned scratch for every thread. Returns false if out of memory. */
bool fwd_reserve(fwd_graph *f, size_t bytes_of_thread);
/** Reserve the memory that fwd_sums needs. Returns false if out of memory. */
bool fwd_reserve_sums(fwd_graph *f, fwd_layer *l);

/** Convert a node's value on the grid of p to codes; convert codes to reals. */
void fwd_encode(fwd_graph *f, const qat_node *node, const qat_qparams *p);
void fwd_decode(fwd_graph *f, const qat_node *node);

/**
 * Is it a quantizer of activations with learned ranges, or a user's? Other than fake_quant, it is
 * no part of a chain, and its backward reads what it quantized.
 */
static inline bool fwd_quantizes_alone(const qat_node *node)
{
    return qat_is_quantizer_op(node->op) && qat_node_quantizes(node, false);
}

/** The codes of this run have the parameters p, and as many bits as p's codes need. */
static inline void fwd_set_grid(fwd_codes *codes, const qat_qparams *p)
{
    codes->p = *p;
    codes->bits = 0;
    while (p->hi - p->lo >= 1 << codes->bits)
        codes->bits++;
    codes->live = true;
}

static inline fwd_codes *fwd_codes_of(const fwd_graph *f, const qat_node *node)
{
    return &f->codes[node->index];
}

/** The number of rows of the sums [rows, channels]. */
static inline size_t fwd_rows(const fwd_layer *l)
{
    return qat_shape_count(&l->head->shape) / (size_t)l->channels;
}

/** The convolution with raw weights, for two_pass; NULL: none. */
static inline qat_node *fwd_raw_of(const fwd_layer *l)
{
    return l->bn && l->bn->n_inputs > FOLDT_RAW ? l->bn->inputs[FOLDT_RAW] : NULL;
}

static inline int32_t *fwd_sums_of(const fwd_layer *l)
{
    return (int32_t *)(void *)l->head->value;
}

#endif
