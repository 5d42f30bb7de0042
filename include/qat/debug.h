/**
 * What quantization did to each layer of a model: the engine's values beside those of the float
 * network, of its simulation and of another runtime, on data.
 *
 *     qat_debug_source const source = {.checkpoint = restored};
 *     qat_debug *debug;
 *     const qat_input_info *input = qat_checkpoint_input(qat_restored_checkpoint(restored));
 *     if (qat_debug_create(&debug, &source, &err) == QAT_OK &&
 *         qat_debug_run(debug, input, data, 64, NULL, NULL, &err) == QAT_OK)
 *         puts(qat_debug_layer_at(debug, qat_debug_worst(debug, 0))->finding);
 *     qat_debug_free(debug);
 *
 * Two kinds of errors are told apart. The *whole* error of a layer compares its values in the
 * engine with those of the float network: it holds the errors of all layers before it. Its *own*
 * error compares them with those that the float layer has for the engine's inputs: so a layer is
 * not blamed for what came before. docs/debugging.md explains the figures. A handle is for one
 * thread at a time.
 */
#ifndef QAT_DEBUG_H
#define QAT_DEBUG_H

#include "qat/train.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** What is compared. Everything is borrowed until the handle is freed. */
typedef struct qat_debug_source {
    const qi_host *model;           /* NULL: the model that an export of the checkpoint makes */
    const qat_restored *checkpoint; /* NULL: there is only `model`. Without `against` it is compared
                                       with the real numbers of its own weights, without rounding */
    const qat_restored *against;    /* the float network to compare with; NULL: the checkpoint's */
    const qat_deploy_options *deploy; /* for a checkpoint: profile, calibration; NULL: none */
    const qat_registry *registry;     /* of ops; NULL: that of `checkpoint`, or else of `against` */
    const char *dump;                 /* folder with tensors of another runtime, or NULL */
} qat_debug_source;

/** How far values are from a reference, over all data. NaN: not compared. */
typedef struct qat_debug_error {
    double snr;     /* 10 log10(sum r^2 / sum (v - r)^2), in dB; 999: equal; NaN also where a
                       value is not finite */
    double cosine;  /* of the angle between both */
    double largest; /* |v - r| / scale */
} qat_debug_error;

enum { QAT_DEBUG_CHANNELS = 3, QAT_DEBUG_TEXT = 400 };

typedef enum qat_debug_kind {
    QAT_DEBUG_NOTHING,
    QAT_DEBUG_SCALE,      /* weights or multipliers are not those of the float layer */
    QAT_DEBUG_BIAS,       /* a channel is moved by a constant */
    QAT_DEBUG_WIDE,       /* the weights of a channel are 100 times as wide as the others' */
    QAT_DEBUG_RANGE,      /* values lie beyond the ends of the codes */
    QAT_DEBUG_DEAD,       /* the layer's values are all the same */
    QAT_DEBUG_COARSE,     /* few of the codes are used */
    QAT_DEBUG_NOT_FINITE, /* values of the float layer are not finite numbers */
    QAT_DEBUG_COSTLY      /* the signal-to-noise of the whole falls much in this layer */
} qat_debug_kind;

typedef struct qat_debug_layer {
    const char *name, *op, *tensor; /* the layer's, the integer op's, its output's; borrowed */
    int channels;
    double scale;              /* of its output: one quantum */
    qat_debug_error whole;     /* the engine against the float network */
    qat_debug_error simulated; /* the simulation in float32 against the float network */
    qat_debug_error own;       /* the engine against the float layer, from the same inputs */
    qat_debug_error rounding;  /* the same with the weights and biases of the model: what rounding
                                  and the ends of the range cost */
    qat_debug_error foreign;   /* the other runtime against this layer, from its own inputs */
    double weights_snr;        /* of the codes of weights, dB; NaN: not known */
    double bias_error;         /* the largest of a bias, in quanta of the output; NaN: not known */
    double saturated;          /* share of values beyond the ends of the codes */
    int codes, used;           /* how many codes there are, and how many occurred */
    double differing;          /* share of codes that differ from the simulation's; NaN: unknown */
    double foreign_differing;  /* from those of the other runtime, from its own inputs */
    double loss; /* noise of the worst channel over that of one rounding, dB: layers are ordered by
                    it */
    int worst[QAT_DEBUG_CHANNELS]; /* its channels with the largest own error; -1: no more */
    double worst_loss[QAT_DEBUG_CHANNELS];
    qat_debug_kind kind;
    char finding[QAT_DEBUG_TEXT]; /* what is wrong and what to do; "" if nothing is */
} qat_debug_layer;

typedef struct qat_debug qat_debug;

/**
 * Plans all networks. A model with states is QAT_ERR_UNSUPPORTED; neither a model nor a checkpoint,
 * or no registry, is QAT_ERR_ARGUMENT.
 */
qat_status qat_debug_create(qat_debug **debug, const qat_debug_source *source, qat_error *err);
void qat_debug_free(qat_debug *debug);
/** The model that is compared, and what its samples must be. */
const qi_model *qat_debug_model(const qat_debug *debug);
/**
 * Compare at most `samples` samples (0: all), and judge. A handle does so once; the second time is
 * QAT_ERR_STATE.
 * @param input  how samples become the input, as qat_evaluate_model takes it. QAT_ERR_SHAPE if the
 *               float network takes another size, type, mean or std
 */
qat_status qat_debug_run(qat_debug *debug, const qat_input_info *input, const qat_dataset *data,
                         int64_t samples, qat_tick *tick, void *context, qat_error *err);
int64_t qat_debug_samples(const qat_debug *debug);

/** The layers in the order of execution. */
int qat_debug_layers(const qat_debug *debug);
const qat_debug_layer *qat_debug_layer_at(const qat_debug *debug, int i);
/**
 * The layer with the largest loss is worst 0. Layers whose weights or biases are not those of the
 * float network come before all others; then those in which the whole falls by 10 dB or more, to 20
 * dB or less.
 */
int qat_debug_worst(const qat_debug *debug, int rank);

/** Where two of the networks first part. */
typedef enum qat_debug_pair {
    QAT_DEBUG_FLOAT_INTEGER,     /* a layer with more than four times the noise of one rounding */
    QAT_DEBUG_SIMULATED_INTEGER, /* a code that differs */
    QAT_DEBUG_FOREIGN_INTEGER,   /* the same, from the other runtime's own inputs */
    QAT_DEBUG_PAIRS
} qat_debug_pair;
/** The first layer in the order of execution, or -1: they do not part, or are not compared. */
int qat_debug_parts(const qat_debug *debug, qat_debug_pair pair);

/* ------------------------------------------------------------------ one layer at a time */

/** The names of a checkpoint's quantized layers, in their order; free() the array. */
qat_status qat_debug_layer_names(const qat_restored *checkpoint, char (**names)[QAT_NAME_MAX],
                                 int *n, qat_error *err);
/**
 * How well a checkpoint answers if one layer alone is quantized otherwise: its weights and its
 * output have `bits` bits, and the network runs on the integer engine; or bits is 0: they stay in
 * float, and the network is simulated in float32. layer NULL: all layers as they are, evaluated in
 * the same way.
 */
qat_status qat_debug_evaluate(const qat_restored *checkpoint, const qat_deploy_options *deploy,
                              const char *layer, int bits, const qat_dataset *data, int64_t samples,
                              qat_tick *tick, void *context, qat_accuracy *accuracy,
                              qat_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
