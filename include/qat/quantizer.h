/**
 * Quantizers: where the range of a fake-quantized tensor comes from, and which gradients pass
 * through it. The built-in ones (ema, tqt, lsq; bwn, twn, fgq, inq for weights) and a user's own
 * are entries of one table, the registry: an op whose quant entry has the role QAT_ROLE_QUANTIZER
 * and names a qat_quantizer. The rewrites place these ops; recipes choose them by name ([quant]
 * ranges = NAME, also for single layers), plugins bring them as they bring layers.
 *
 *     static const qat_quantizer mine = {.name = "mine", .observer = &my_observer};
 *     static const qat_quant mine_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &mine};
 *     static const qat_op mine_op = QAT_QUANTIZER_OP("mine", "what it does", &mine_quant);
 *
 * Quantizers and observers are constant. Any number of threads may call their functions at the same
 * time, so these keep what they know in their arguments.
 *
 * A tensor's life under such an op (learn = quant.learn_delay):
 *
 *     step      0 ........ delay ............ learn .................... export
 *     values    as they are  quantized          quantized                  codes
 *     range     observed, the learned values    learned values trained     frozen
 *               start anew from it each step    by the optimizer
 *
 * A quantizer that learns nothing observes to the end. One that has seen nothing but 0 of a channel
 * goes on observing it until there is another value, and then learns. Everything is per tensor for
 * activations; for weights per tensor or, in layout int8, by output channel.
 */
#ifndef QAT_QUANTIZER_H
#define QAT_QUANTIZER_H

#include "qat/quant.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum {
    QAT_QUANTIZER_LEARNED_MAX = 4, /* learned values of a tensor, or of a channel */
    QAT_OBSERVER_KEPT_MAX = 8      /* numbers that an observer keeps of a batch */
};

/** The codes on which a tensor, or one channel of weights, is to be brought. */
typedef struct qat_grid {
    int bits;
    int32_t lo, hi;
    bool weights;
    bool symmetric;    /* zero_point in the middle: the range is [-m, m] */
    bool power_of_two; /* scales shall be powers of two */
    size_t count; /* values with these parameters: of the channel; of one sample's activation */
} qat_grid;

/** What is known of the values. min <= 0 <= max. */
typedef struct qat_statistics {
    float min, max, mean_abs;
} qat_statistics;

/**
 * What is kept of a batch, and what that says about it. Work is cut into tiles: clear starts the
 * numbers of a tile, observe takes its values, join adds a tile to those before it, always in the
 * same order.
 */
typedef struct qat_observer {
    int kept; /* numbers, at most QAT_OBSERVER_KEPT_MAX */
    void (*clear)(double *kept);
    void (*observe)(const float *x, size_t n, double *kept);
    void (*join)(double *kept, const double *more);
    /** Of a batch, or of a channel of weights. min, max may lie on one side of 0 and infinite: the
     *  caller widens and cuts. */
    qat_statistics (*conclude)(const double *kept);
    /** Once a step: what `seen` batches said, and the next. NULL: running = decay running + (1 -
     *  decay) batch, the first batch as it is. */
    void (*commit)(qat_statistics *running, const qat_statistics *batch, int64_t seen,
                   double decay);
} qat_observer;

/** Smallest, largest, mean absolute value; committed by the moving average. */
extern const qat_observer qat_observer_min_max;

/** Sums over a channel's or an activation's values, from which gradients of scale and ends follow.
 *  g: gradient of y = fake quantized x; s: scale. */
typedef struct qat_range_sums {
    double inside; /* sum of g (y - x) / s over values within the range: rounding errors */
    double below;  /* sum of g over values below it */
    double above;
} qat_range_sums;

/**
 * A quantizer. NULL members have defaults: all of them NULL is the plain scheme, min and max with
 * straight-through gradients.
 */
typedef struct qat_quantizer {
    const char *name; /* what recipes call it, at most 31 letters, digits and _ */
    bool weights;     /* for weights; else for activations. One entry for each it can do. */
    const qat_observer *observer; /* NULL: qat_observer_min_max */

    /* Learned values: float numbers that become qat_qparams. */
    int learned_symmetric, learned_asymmetric; /* how many; 0: it learns nothing */
    /** What learning starts from. */
    void (*start)(const qat_grid *grid, const qat_statistics *seen, float *learned);
    /** After the optimizer's step: bring them back to where they mean something. */
    void (*limit)(const qat_grid *grid, const qat_statistics *seen, float *learned);
    /** Parameters; learned is NULL where nothing is. NULL: qat_range_qparams(grid, min, max). What
     *  it gives must hold 0 exactly: qat_scale_qparams and qat_range_qparams do. */
    qat_qparams (*choose)(const qat_grid *grid, const qat_statistics *seen, const float *learned);
    /** gradient[k] = what the sums say of learned value k. */
    void (*learn)(const qat_grid *grid, const qat_statistics *seen, const qat_qparams *p,
                  const float *learned, const qat_range_sums *sums, double *gradient);

    /* Values. */
    /** Values count as inside from so many quanta below the lowest code to as many above the
     *  highest: 0 clips at the codes themselves, 0.5 where rounding would leave the range. */
    float margin;
    /** Weights: y = x on the grid of p, by another rule than eq. 12's nearest code. Every y must be
     *  p.scale times an integer within the codes; export refuses others. */
    void (*forward)(const qat_grid *grid, const qat_qparams *p, const float *x, float *y, size_t n);
    /** Add into dx (may be NULL) and sums. NULL: straight through inside, nothing outside. */
    void (*backward)(const qat_grid *grid, const qat_qparams *p, const float *x, const float *y,
                     const float *grad, size_t n, float *dx, qat_range_sums *sums);

    /** Ops that do not use the functions below: parameters of a channel (activations: 0) at
     *  present. NULL: the op is made by QAT_QUANTIZER_OP. */
    qat_status (*qparams)(const qat_node *node, int channel, qat_qparams *p, qat_error *err);
    /** Such ops for weights: what they compute is on the grid of these parameters already, by a
     * rule of their own, as with `forward`. */
    bool own_values;

    /** What of this many bits no integer engine runs: the subject of "... cannot become integers",
     *  with the reason; NULL: it can. NULL member: it always can. */
    const char *(*no_integers)(int bits);
} qat_quantizer;

/** The scale, rounded up to a power of two where the grid wants that. */
double qat_grid_scale(const qat_grid *grid, double scale);
/** Scale s and lower end a of the range: zero_point = round(lo - a / s) within lo..hi, the middle
 *  code on a symmetric grid. s is kept above 0. */
qat_qparams qat_scale_qparams(const qat_grid *grid, double s, double a);
/** [min, max], nudged so that 0 is exact (qat_choose_qparams); symmetric: the larger of both; the
 *  scale as the grid wants it. */
qat_qparams qat_range_qparams(const qat_grid *grid, float min, float max);
/** Largest code minus zero_point of a symmetric grid, all steps of another. */
int32_t qat_grid_steps(const qat_grid *grid);

/* What ops made by QAT_QUANTIZER_OP are made of. */
extern const qat_attr_def qat_quantizer_attrs[];
int qat_quantizer_params(const qat_node *node, qat_param_def *defs, qat_error *err);
qat_status qat_quantizer_shape(qat_node *node, qat_error *err);
void qat_quantizer_forward(qat_node *node, const qat_run *run);
void qat_quantizer_backward(qat_node *node, const qat_run *run);
void qat_quantizer_update(qat_node *node, const qat_run *run);

#define QAT_QUANTIZER_OP(name_, meaning_, quant_)                                                  \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .min_inputs = 1, .max_inputs = 1,                      \
        .attrs = qat_quantizer_attrs, .params = qat_quantizer_params,                              \
        .shape = qat_quantizer_shape, .forward = qat_quantizer_forward,                            \
        .backward = qat_quantizer_backward, .update = qat_quantizer_update, .quant = quant_,       \
    }

/** The op of the quantizer of this name for weights, or for activations; NULL: there is none. */
const qat_op *qat_find_quantizer(const qat_registry *registry, const char *name, bool weights);
/** Is there one? If not, the message begins with `where` and names the nearest. */
qat_status qat_check_quantizer(const qat_registry *registry, const char *where, const char *name,
                               bool weights, qat_error *err);
/** A node's entry; NULL where it is no quantizer. */
const qat_quantizer *qat_node_quantizer(const qat_node *node);
/** Parameters of a quantizer node: of a channel of weights (0 .. channels - 1), or of an
 *  activation, which must have been observed. */
qat_status qat_quantizer_qparams(const qat_node *node, int channel, qat_qparams *p, qat_error *err);
/** Codes of the weights that a planned quantizer node has computed, as they would be exported now:
 *  one byte each, two's complement in layout int8. */
void qat_quantizer_codes(const qat_node *weights, uint8_t *codes);
/** By its name: is this parameter a quantizer's, observed or learned; a learned one? */
bool qat_is_range(const char *param);
bool qat_is_learned_range(const char *param);
/** The parameter that holds a quantizer node's learned values; NULL: it learns none. */
qat_node *qat_node_learned(const qat_node *node);
/** How many sets of parameters the node has. */
int qat_quantizer_channels(const qat_node *node);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
