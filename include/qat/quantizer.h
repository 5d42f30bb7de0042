/**
 * A quantizer decides where the range of a fake-quantized tensor comes from, and which gradients
 * pass through it. The built-in quantizers (ema, tqt, lsq; pact for activations; dorefa,
 * weight_norm, apot, bwn, twn, fgq, inq for weights) and a user's own are entries of the registry:
 * ops whose quant entry has the role QAT_ROLE_QUANTIZER and names a qat_quantizer. The rewrites
 * place these ops. Recipes choose them by name ([quant] ranges = NAME, also for single layers). A
 * plugin adds a quantizer as it adds a layer.
 *
 *     static const qat_quantizer mine = {.name = "mine", .observer = &my_observer};
 *     static const qat_quant mine_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &mine};
 *     static const qat_op mine_op = QAT_QUANTIZER_OP("mine", "what it does", &mine_quant);
 *
 * Quantizers and observers are constant. Any number of threads may call their functions at the same
 * time, so the functions keep all state in their arguments.
 *
 * The life of a tensor with such an op (learn = quant.learn_delay):
 *
 *     step      0 ........ delay ............ learn .................... export
 *     values    as they are  quantized          quantized                  codes
 *     range     observed, the learned values    learned values trained     frozen
 *               start anew from it each step    by the optimizer
 *
 * A quantizer that learns nothing observes to the end. If it has only seen 0 in a channel, it
 * observes that channel until there is another value, and then learns. Ranges of activations are
 * per tensor. Ranges of weights are per tensor or, in layout int8, per output channel.
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

/** The codes that a tensor, or one channel of weights, will have. */
typedef struct qat_grid {
    int bits;
    int32_t lo, hi;
    bool weights;
    bool symmetric;    /* zero_point in the middle: the range is [-m, m], or [-m - s, m] if the
                          weights' lowest code is used (qat_quantizer.all_codes) */
    bool power_of_two; /* scales must be powers of two */
    size_t count; /* how many values have these parameters: in the channel, or in one sample of the
                     activation */
} qat_grid;

/** What is known about the values. min <= 0 <= max. */
typedef struct qat_statistics {
    float min, max, mean_abs;
} qat_statistics;

/**
 * What to keep of a batch, and what follows from it. Work is cut into tiles: clear starts the
 * numbers of a tile, observe takes its values, join adds a tile to those before it, always in the
 * same order.
 */
typedef struct qat_observer {
    int kept; /* numbers, at most QAT_OBSERVER_KEPT_MAX */
    void (*clear)(double *kept);
    void (*observe)(const float *x, size_t n, double *kept);
    void (*join)(double *kept, const double *more);
    /**
     * The statistics of a batch, or of a channel of weights. min and max may both lie on one side
     * of 0, or be infinite: the caller widens and limits them.
     */
    qat_statistics (*conclude)(const double *kept);
    /**
     * Called once per step, to join the next batch to the `seen` ones before it. NULL: running =
     * decay running + (1 - decay) batch; the first batch replaces running.
     */
    void (*commit)(qat_statistics *running, const qat_statistics *batch, int64_t seen,
                   double decay);
} qat_observer;

/**
 * Observes the smallest and largest value and the mean absolute value; commits by the moving
 * average.
 */
extern const qat_observer qat_observer_min_max;

/**
 * Sums over the values of a channel or an activation, from which the gradients of scale and ends
 * follow. g is the gradient of y = fake quantized x; s is the scale.
 */
typedef struct qat_range_sums {
    double inside; /* sum of g (y - x) / s over values within the range (rounding errors) */
    double below;  /* sum of g over values below it */
    double above;
} qat_range_sums;

/**
 * A quantizer. NULL members have defaults. With all members NULL it is the plain scheme: min and
 * max, with straight-through gradients.
 */
typedef struct qat_quantizer {
    const char *name; /* its name in recipes: at most 31 letters, digits and _ */
    bool weights; /* for weights; otherwise for activations. A quantizer for both needs two entries.
                   */
    bool all_codes; /* weights of fewer than 8 bits use their lowest code too: 2^bits codes, not
                       2^bits - 1 */
    const qat_observer *observer; /* NULL: qat_observer_min_max */

    /* Learned values: float numbers from which qat_qparams are made. */
    int learned_symmetric, learned_asymmetric; /* how many; 0: it learns nothing */
    bool decays;                               /* weight decay applies to them */
    /** Set the values from which learning starts. */
    void (*start)(const qat_grid *grid, const qat_statistics *seen, float *learned);
    /** Called after the optimizer's step: bring the values back into their valid range. */
    void (*limit)(const qat_grid *grid, const qat_statistics *seen, float *learned);
    /**
     * The bits change: turn values that were learned for the codes of `from` into those to go on
     * with for the codes of `to`. limit follows. NULL: the values stay, as ends of ranges may.
     */
    void (*rescale)(const qat_grid *from, const qat_grid *to, const qat_statistics *seen,
                    float *learned);
    /**
     * The quantization parameters. learned is NULL if nothing is learned. NULL:
     * qat_range_qparams(grid, min, max). The result must hold 0 exactly; qat_scale_qparams and
     * qat_range_qparams ensure this.
     */
    qat_qparams (*choose)(const qat_grid *grid, const qat_statistics *seen, const float *learned);
    /** gradient[k] = the gradient of learned value k, from the sums. */
    void (*learn)(const qat_grid *grid, const qat_statistics *seen, const qat_qparams *p,
                  const float *learned, const qat_range_sums *sums, double *gradient);

    /* Quantization of values. */
    /**
     * A value counts as inside up to this many quanta below the lowest code or above the highest: 0
     * clips at the codes themselves, 0.5 where rounding would leave the range.
     */
    float margin;
    /**
     * Weights: y = x on the grid of p, by a rule other than the nearest code of eq. 12. Every y
     * must be p.scale times an integer within the codes; export refuses others.
     */
    void (*forward)(const qat_grid *grid, const qat_qparams *p, const float *x, float *y, size_t n);
    /**
     * Add to dx (may be NULL) and sums. NULL: straight through inside the range, nothing outside.
     */
    void (*backward)(const qat_grid *grid, const qat_qparams *p, const float *x, const float *y,
                     const float *grad, size_t n, float *dx, qat_range_sums *sums);

    /**
     * For ops that do not use the functions below: the current parameters of a channel
     * (activations: 0). NULL: the op is made by QAT_QUANTIZER_OP.
     */
    qat_status (*qparams)(const qat_node *node, int channel, qat_qparams *p, qat_error *err);
    /**
     * For such ops of weights: their output already lies on the grid of these parameters, by their
     * own rule, as with `forward`.
     */
    bool own_values;

    /**
     * The reason why this many bits cannot run on integers, as the subject of "... cannot become
     * integers"; NULL: they can. NULL member: they always can.
     */
    const char *(*no_integers)(int bits);
} qat_quantizer;

/** The scale, rounded up to a power of two if the grid wants that. */
double qat_grid_scale(const qat_grid *grid, double scale);
/**
 * Parameters from scale s and lower end a of the range: zero_point = round(lo - a / s) within
 * lo..hi, or the middle code on a symmetric grid. s is kept above 0.
 */
qat_qparams qat_scale_qparams(const qat_grid *grid, double s, double a);
/**
 * Parameters from [min, max], nudged so that 0 is exact (qat_choose_qparams). A symmetric grid uses
 * the larger of both ends, so that no value is cut; with the lowest code, max lies on hi or min on
 * lo. The scale is a power of two if the grid wants that.
 */
qat_qparams qat_range_qparams(const qat_grid *grid, float min, float max);
/** The largest code minus zero_point on a symmetric grid; on others, hi - lo. */
int32_t qat_grid_steps(const qat_grid *grid);

/* The parts of ops made by QAT_QUANTIZER_OP. */
extern const qat_attr_def qat_quantizer_attrs[];
int qat_quantizer_params(const qat_node *node, qat_param_def *defs, qat_error *err);
qat_status qat_quantizer_shape(qat_node *node, qat_error *err);
void qat_quantizer_forward(qat_node *node, const qat_run *run);
void qat_quantizer_backward(qat_node *node, const qat_run *run);
void qat_quantizer_update(qat_node *node, const qat_run *run);
extern const struct qat_shared qat_quantizer_shared;

#define QAT_QUANTIZER_OP(name_, meaning_, quant_)                                                  \
    {                                                                                              \
        .name = name_, .meaning = meaning_, .min_inputs = 1, .max_inputs = 1,                      \
        .attrs = qat_quantizer_attrs, .params = qat_quantizer_params,                              \
        .shape = qat_quantizer_shape, .forward = qat_quantizer_forward,                            \
        .backward = qat_quantizer_backward, .update = qat_quantizer_update, .quant = quant_,       \
        .shared = &qat_quantizer_shared,                                                           \
    }

/** The op of the quantizer with this name, for weights or for activations; NULL: there is none. */
const qat_op *qat_find_quantizer(const qat_registry *registry, const char *name, bool weights);
/**
 * Check that there is such a quantizer. If not, the message begins with `where` and names the
 * nearest.
 */
qat_status qat_check_quantizer(const qat_registry *registry, const char *where, const char *name,
                               bool weights, qat_error *err);
/** The quantizer of a node; NULL if it has none. */
const qat_quantizer *qat_node_quantizer(const qat_node *node);
/**
 * The parameters of a quantizer node: of a channel of weights (0 .. channels - 1), or of an
 * activation, which must have been observed.
 */
qat_status qat_quantizer_qparams(const qat_node *node, int channel, qat_qparams *p, qat_error *err);
/**
 * The codes of the weights that a planned quantizer node has computed, as they would be exported
 * now: one byte each, two's complement in layout int8.
 */
void qat_quantizer_codes(const qat_node *weights, uint8_t *codes);
/**
 * By its name: does this parameter belong to a quantizer (observed or learned)? Is it a learned
 * one?
 */
bool qat_is_range(const char *param);
bool qat_is_learned_range(const char *param);
/** The parameter with a quantizer node's learned values; NULL: it learns none. */
qat_node *qat_node_learned(const qat_node *node);
/** How many sets of parameters the node has: the channels of per-channel weights, else 1. */
int qat_quantizer_channels(const qat_node *node);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
