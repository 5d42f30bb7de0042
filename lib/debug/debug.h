/** Private to lib/debug: what is known of each layer while data run through the networks. */
#ifndef QAT_DEBUG_DEBUG_H
#define QAT_DEBUG_DEBUG_H

#include "debug/real_graph.h"
#include "qat/debug.h"

enum { DEBUG_BATCH = 8, DEBUG_CODES = 256, DEBUG_NUMBER_MAX = 16 };

/** Sums over the values of a tensor: r of the reference, v of what is compared with it. */
typedef struct debug_sums {
    int64_t n;
    double signal, values, products, noise, largest;
} debug_sums;

/** Which values a layer's are fitted to; each time from the same inputs. */
typedef enum debug_fitted {
    DEBUG_OF_FLOAT,     /* those of the model's parameters to the float layer's */
    DEBUG_OF_SIMULATED, /* to those with weights as the simulation has them: rounded in both */
    DEBUG_OF_FOREIGN,   /* the other runtime's to those of the model's parameters */
    DEBUG_FITS
} debug_fitted;

/** Pairs (a, b) that lie within the activation's bounds: is b = gain a + offset? */
typedef struct debug_fit {
    int64_t n;
    double a, b, aa, ab, bb;
} debug_fit;

/** Of one channel of a layer's output. */
typedef struct debug_channel {
    int64_t n, beyond; /* values; those whose reference lies beyond the ends of the codes */
    double noise;      /* own */
    double foreign_noise;
    debug_fit fits[DEBUG_FITS];
    double foreign_size; /* sum of r^2 that foreign_noise is beside */
    float least, most;   /* of the engine's values */
    float widest;        /* |weight|, of the model */
} debug_channel;

/** A tensor that an op writes. */
typedef struct debug_tensor {
    const qi_tensor *t;
    int index;
    size_t count;   /* values of a sample */
    float *engine;  /* [DEBUG_BATCH, count]: the engine's real values; NULL: not watched */
    float *real;    /* the float layer's, from the engine's inputs; NULL: there is none */
    float *foreign; /* the other runtime's, all samples; NULL: its dump has none */
    int channels;
    debug_channel *of;
    debug_sums whole, simulated, own, rounding, others; /* others: the other runtime */
    int64_t differing, compared, foreign_differing, foreign_compared;
    uint8_t seen[DEBUG_CODES];
    float reference[2]; /* extent of the own reference */
} debug_tensor;

/** A network of real numbers beside the engine. */
typedef struct debug_view {
    qat_graph *graph;
    const qat_node **of; /* by tensor: its node, or NULL */
    int *tensor;         /* by node: its tensor, or -1 */
} debug_view;

struct qat_debug {
    qi_host *made; /* of the checkpoint; NULL: host is borrowed */
    const qi_host *host;
    const qi_model *model;
    qat_real_graph own;                   /* of the model's parameters */
    qat_graph *folded, *real, *simulated; /* real may be folded; simulated: NULL for a .qm alone */
    debug_view by_own, by_real, by_simulated;
    debug_tensor *tensors;       /* by tensor of the model */
    const qat_input_info *input; /* of the reference; NULL: there is none */
    bool trained;                /* with quantization: the network is used to its roundings */
    bool calibrated;             /* its ranges come from data after the training */
    bool corrected;              /* and its biases too */
    int n_tensors, n_layers, batch;
    int64_t samples, dumped; /* dumped: samples of the dump; 0: there is none */
    qat_debug_layer *layers;
    const qi_node **ops;               /* by layer */
    char (*numbers)[DEBUG_NUMBER_MAX]; /* by op: "op 3", for a model without names */
    int *order;                        /* of layers, the worst first */
};

/* debug.c */

/** The model of a checkpoint, without a verification: what is wrong with it shall be seen. */
qat_status debug_make_model(qi_host **host, const qat_restored *r, const qat_deploy_options *o,
                            qat_graph *eval, qat_error *err);

/* compare.c */

/** Add a value and its reference. */
void debug_add(debug_sums *sums, double reference, double value);
/** What they say. */
qat_debug_error debug_error_of(const debug_sums *sums, double scale);
void debug_add_fit(debug_fit *fit, double a, double b);
/** b = gain a + offset; gain 1 if the values of a are too near to each other to tell. */
void debug_solve_fit(const debug_fit *fit, double scale, double *gain, double *offset);
/** Is b - a nearly the same for all pairs? Only then it is an offset: clamped values have none. */
bool debug_is_offset(const debug_fit *fit);
/** The real numbers of the least and the largest code of a tensor. */
void debug_ends(const qi_tensor *t, double ends[2]);
/** Run the networks of real numbers on a batch that the engine has run, and compare. */
qat_status debug_compare_batch(qat_debug *d, const float *real_input, int batch, qat_error *err);

/* foreign.c */

/** Read the tensors that the dump has, each within `most` bytes; 0: no limit. */
qat_status debug_read_dump(qat_debug *d, const char *folder, uint64_t most, qat_error *err);

/* judge.c */

/** Fill in the layers from the sums, and order them. */
qat_status debug_judge(qat_debug *d, qat_error *err);

#endif
