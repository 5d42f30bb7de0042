/**
 * Private to lib/certify: what is known about each node of the float graph, what a tensor of the
 * file must look like, and one function for each kind of layer.
 *
 * Nothing here may include lib/convert, lib/integer or the engine's inner headers (a test reads
 * the includes). The certificate is worth something only if it computes everything by itself.
 *
 * Float32 has 24 bits. U = 2^-24 is the largest relative error of one rounding. Every slack below
 * counts the roundings in the converter's float32 formula and multiplies them by U. The float64
 * computation here has errors too, but they are too small to matter.
 */
#ifndef QAT_CERTIFY_CERTIFY_H
#define QAT_CERTIFY_CERTIFY_H

#include "base/arena.h"
#include "qat/certify.h"

#define CERT_U 0x1p-24

/** What an op is to the certificate. Built-in ops are known by name, others by their entry. */
typedef enum cert_kind {
    CERT_NONE, /* an input, a parameter, a loss */
    CERT_ACCUMULATE,
    CERT_FUSED,
    CERT_BINARY,
    CERT_CONCAT,
    CERT_POOL,
    CERT_PASS,
    CERT_FIXED,
    CERT_TABLE,
    CERT_STATE,
    CERT_CUSTOM
} cert_kind;

/** Where a tensor's range comes from. */
typedef enum cert_range { CERT_UNQUANTIZED, CERT_FLOAT, CERT_GIVEN, CERT_OBSERVED } cert_range;

/** Float nodes that become one op; NULL where absent. */
typedef struct cert_layer {
    const qat_node *head, *bias, *bn, *activation, *first, *last;
} cert_layer;

/** How the layer of a node is quantized. */
typedef struct cert_settings {
    int weight_bits, activation_bits, input_bits;
    bool per_channel, symmetric, power_of_two, is_float; /* the first two: of weights */
    const char *weights, *activations;                   /* names of quantizers */
} cert_settings;

typedef struct cert_node {
    cert_kind kind;
    int layer;                   /* or -1 */
    const qat_node *sole_reader; /* NULL: none, or several */
    bool is_output, copied, feeds;
    cert_range range;
    int origin; /* the node whose codes it hands on */
    int parent; /* union-find over origins */
    cert_settings settings;
    int tensor; /* of the file: what readers of this node read; -1: not known yet */
} cert_node;

/** What scale and zero point must be. */
typedef struct cert_grid {
    bool unknown;        /* a plugin's quantizer: the file's word is taken */
    bool empty;          /* nothing but 0 is representable: scale 1, zero point `lowest` */
    bool symmetric;      /* the zero point lies in the middle of the codes */
    bool power_of_two;   /* the scale is the next power of two at or above `scale` */
    double scale, slack; /* slack: relative, of scale and of lower */
    double lower;        /* lower end of the range: zero point = lo - lower / scale */
    int32_t lowest, lo, hi;
} cert_grid;

/** A tensor that was brought into another class: a concatenation's, or what a layer reads. */
typedef struct cert_member {
    const qat_node *node;
    int root, tensor;
} cert_member;

typedef struct cert {
    const qat_certify_source *source;
    const qat_graph *graph;
    int count;        /* nodes of the float graph */
    cert_node *nodes; /* then by node, what a layer with input_bits reads (narrow.c) */
    cert_layer *layers;
    int n_layers;
    const qi_model *model;
    bool *seen;  /* by op of the file: it belongs to a layer */
    int *writer; /* by tensor of the file: the op that writes it, or -1 */
    cert_member *members;
    int n_members;
    int *class_first; /* by root: the first tensor of its class, or -1 */
    qat_certificate *result;
    qat_arena arena;
    qat_error *err;
} cert;

/* ------------------------------------------------------------------ the float graph */

/** Makes nodes and layers: kinds, settings, classes. */
qat_status cert_analyse(cert *c);
qat_status cert_fuse(cert *c);
/** Is it a clamp? Then these are its bounds. */
bool cert_is_activation(const qat_node *node, double *min, double *max);
qat_status cert_settle(cert *c);
void cert_classify(cert *c);
/** Let tensors of which no reader wants all bits have fewer; part of cert_settle. */
qat_status cert_narrow(cert *c);
/** What layers with input_bits read; part of cert_classify. */
void cert_classify_inputs(cert *c);
/** The first head that reads the same tensor in the same way. What both read is named after it. */
const qat_node *cert_first_reader(const cert *c, const qat_node *head);
/** The class of what the layer of this head reads; -1: its input as it comes. */
int cert_input_of(const cert *c, const qat_node *head);
/** May tensors with these settings have one range? */
bool cert_same_codes(const cert_settings *a, const cert_settings *b);
/** Bits of these settings in the file: inside a schedule of bits there may be more. */
int cert_weight_bits(const cert *c, const cert_settings *settings);
int cert_activation_bits(const cert *c, const cert_settings *settings);
/** The node of which this one, NAME@t, is a copy in a later step: NAME; else the node itself. */
const qat_node *cert_first_step(const cert *c, const qat_node *node);
int cert_root(const cert *c, int node);
static inline const cert_node *cert_info(const cert *c, const qat_node *node)
{
    return &c->nodes[node->index];
}

/** Find a parameter of the source. A length other than `count` is an error. */
qat_status cert_values(const cert *c, const char *name, size_t count, const float **values);
/** NULL: there is none. */
const float *cert_find_values(const cert *c, const char *name, size_t *count);

/* ------------------------------------------------------------------ refusing, counting */

/** QAT_ERR_MISMATCH, unless the two are equal. */
qat_status cert_equal(const cert *c, const char *layer, const char *field, int64_t in_file,
                      int64_t expected);
qat_status cert_equal_text(const cert *c, const char *layer, const char *field, const char *in_file,
                           const char *expected);
/** Name a layer that cannot be checked. */
void cert_uncertified(cert *c, const char *name, const char *why);

/* ------------------------------------------------------------------ scales and codes */

void cert_codes(qat_layout layout, int bits, bool weights, int32_t *lo, int32_t *hi);
/** The codes of an activation of the file. */
void cert_codes_of(const qi_tensor *t, int32_t *lo, int32_t *hi);

/** What was seen of a tensor or channel, and what was learned of it. */
typedef struct cert_seen {
    double min, max, mean_abs;
    const float *learned; /* NULL: learning would start from what was seen */
} cert_seen;
/**
 * The grid of a built-in quantizer: ema, tqt, lsq, tqt_full, lsq_full, pact. slack: relative error
 * of what was seen.
 */
cert_grid cert_grid_of_quantizer(const char *name, cert_seen seen, bool symmetric,
                                 bool power_of_two, int32_t lo, int32_t hi, double slack);
/** How many values a channel learns. */
int cert_learned_values(const char *name, bool symmetric);

/** "<node>/q/range" or "<node>/q/learned" of a class; where a concatenation's first quantizer is
 *  that of an input brought into its class, "<node>/in<i>/q/..."; of what a layer reads,
 *  "<node>/in/q/...". NULL: there is none. */
const float *cert_class_values(const cert *c, int root, const char *part, size_t *count);
/** The node that a class is named after. */
static inline const qat_node *cert_class_node(const cert *c, int root)
{
    return qat_graph_node(c->graph, root < c->count ? root : root - c->count);
}
/** The grid of an activation: of the tensor that `origin` writes, or of what a layer reads. */
qat_status cert_activation_grid(const cert *c, int origin, cert_grid *grid);
/** Is this scale, with this zero point, the grid's? */
qat_status cert_check_grid(const cert *c, const char *name, const cert_grid *grid, float scale,
                           int32_t zero_point);
/** Is this code the nearest to value / scale + zero_point, or, within `slack` of a tie, one of the
 *  two nearest? NaN has none. */
bool cert_near_code(double value, double scale, int32_t zero_point, int32_t lo, int32_t hi,
                    double slack, int32_t code);
/** Check the codes of an activation's bounds in the same way. */
qat_status cert_check_clamp(const cert *c, const char *layer, const qi_tensor *output, double min,
                            double max, int32_t lo, int32_t hi);

/** The code of a real value on a tensor's scale: eq. 12 in float32, each operation rounded. */
int32_t cert_code_in_float32(const qi_tensor *t, float value);
/** The same where also what is 2^-15 below a tie goes up: of the values of layers of few bits. */
int32_t cert_code_with_ties(const qi_tensor *t, float value);
/** The code of an activation's bound, which may be infinite, in float32. */
int32_t cert_code_of_bound(const qi_tensor *t, double bound);

/** mult in [2^30, 2^31) and shift of a real multiplier. */
void cert_multiplier(double real, int32_t *mult, int32_t *shift);
/** The same, limited to 2^30: what requantizations store. */
void cert_requantize_multiplier(double real, int32_t *mult, int32_t *shift);
qat_status cert_check_multiplier(cert *c, const char *layer, const char *field, double real,
                                 int32_t mult, int32_t shift);

/* ------------------------------------------------------------------ the file */

static inline const qi_tensor *cert_tensor(const cert *c, int32_t index)
{
    return qi_tensor_at(c->model, index);
}
float cert_float(uint32_t bits);
static inline float cert_scale(const qi_tensor *t)
{
    return cert_float(t->scale_bits);
}
/** The code of value i of a constant of 8-bit or 16-bit codes. */
int32_t cert_code(const qi_tensor *t, size_t i);
size_t cert_count(const qi_tensor *t);

/** Index of the activation of this name, or -1. */
int cert_find_tensor(const cert *c, const char *name);
/**
 * The op that writes the tensor of this name: of this kernel (NULL: any), for this layer, reading
 * these tensors first. Each op is found once.
 */
qat_status cert_find_op(cert *c, const char *tensor, const char *kernel, const char *layer,
                        int n_inputs, const int *inputs, const qi_node **op);
/** Type, bits, shape and grid of an activation; `shape` is a float node's. */
qat_status cert_check_activation(cert *c, int tensor, const qat_shape *shape, int origin);
/** Name, type and shape of a constant. */
qat_status cert_check_constant(const cert *c, const qi_tensor *t, const char *layer,
                               const char *part, qi_type type, int rows, int columns);
/** How an op without weights rounds that has the `usual` rounding if all its codes have 8 bits. */
qi_rounding cert_rounding(const cert *c, const qi_node *op, qi_rounding usual);
/** How many inputs and parameters an op has, how it rounds, the largest accumulator. */
qat_status cert_check_form(const cert *c, const char *layer, const qi_node *op, int n_inputs,
                           int n_params, qi_rounding rounding, int64_t max_accumulator);
/**
 * The scale of a channel of weights. Where the file does not store it, it follows from the layer's
 * multiplier (docs/qm-format.md, "Derived scales").
 */
float cert_channel_scale(const qi_model *model, const qi_tensor *weights, int channel);
/** A scale that means nothing is 1. */
qat_status cert_check_scale_1(const cert *c, const qi_tensor *t);
qat_status cert_check_range(const cert *c, const char *name, const qi_tensor *t, int32_t lo,
                            int32_t hi);
qat_status cert_check_origins(const cert *c);
/** "<layer>/<part>", as long as a tensor's name may be. */
void cert_part_name(char name[QAT_NAME_MAX], const char *layer, const char *part);
/** A constant of a layer has this name, or none: a file need not store what the layer's name tells.
 */
qat_status cert_check_name(const cert *c, const char *layer, const qi_tensor *t, const char *name);

/* ------------------------------------------------------------------ layers */

/** One op of the file and the float layer it must be. */
typedef struct cert_op {
    const qi_node *node;
    const cert_layer *layer; /* NULL: the op has none */
    const qat_node *head;    /* the float node, or NULL */
    const char *name;        /* the layer's */
    double act_min, act_max; /* bounds of its activation; both 0: its range is empty */
} cert_op;

static inline const qi_tensor *cert_input(const cert *c, const cert_op *op, int i)
{
    return cert_tensor(c, op->node->inputs[i]);
}
static inline const qi_tensor *cert_output(const cert *c, const cert_op *op)
{
    return cert_tensor(c, op->node->outputs[0]);
}

/** An activation that is no clamp. */
typedef struct cert_curve {
    const char *op;
    double min, max; /* the range of its output in 2^b codes; both 0: it is observed */
    double (*value)(double x);
    qat_status (*paper)(cert *c, const cert_op *op);  /* profile paper: checks the kernel that has
                                                         the op's name; NULL: it is a table */
    int32_t (*tflite)(int32_t x, float sx, float sy); /* profile tflite: the entry for q = Z_x + x,
                                                         less Z_y; NULL: the nearest to value */
} cert_curve;
/** NULL: the node is none. */
const cert_curve *cert_curve_of(const qat_node *node);

typedef struct cert_bias {
    double real, slack; /* how far the converter's float32 may be from it */
    float in_float32;   /* the same formula in float32 */
} cert_bias;

/** Weights and bias of a conv, depthwise conv, fully connected, or of a batch norm of its own. */
typedef struct cert_weights {
    const qat_node *param; /* NULL: ones */
    qat_shape shape;
    const char *base; /* "conv1/weights" */
    const cert_settings *settings;
    const qat_node *bias, *bn;
    int channels, axis;
    const cert_bias *biases; /* for silent channels (section 3); NULL: none may be silent */
    double bias_unit;        /* of such a channel's bias, for a scale of 1 */
    double reach;            /* codes by which a weight of 1 can move the output */
} cert_weights;

/** Is it one of the built-in ops that multiply by weights? */
bool cert_has_weights(const qat_node *head);
cert_weights cert_weights_of(const cert *c, const cert_layer *layer, char base[2 * QAT_NAME_MAX]);
qat_status cert_check_weights(cert *c, const cert_op *op, const cert_weights *w,
                              const qi_tensor *tensor);
/** Their real values. values: as many as w->shape says. */
qat_status cert_folded_weights(cert *c, const cert_weights *w, double *values);

/** biases: one for each channel. */
qat_status cert_real_biases(cert *c, const cert_weights *w, cert_bias *biases);

/** Of convolutions and pools: [0] rows, [1] columns. */
typedef struct cert_window {
    int kernel[2], stride[2], dilation[2], pad[2];
} cert_window;
void cert_window_of(const qat_node *node, cert_window *window);
/** pad: what is cut off the output's beginning. */
void cert_transposed_window_of(const qat_node *node, cert_window *window);

qat_status cert_check_accumulate(cert *c, const cert_op *op);
qat_status cert_check_add(cert *c, const cert_op *op);
qat_status cert_check_mul(cert *c, const cert_op *op);
qat_status cert_check_requantize(cert *c, const cert_op *op);
/** Is it an average that counts its padding? Its input is padded by an op of its own. */
bool cert_counts_padding(const qat_node *node);
/** The shape of that op's output. */
qat_shape cert_padded_shape(const qat_node *pool);
qat_status cert_check_pad(cert *c, const cert_op *op);
qat_status cert_check_pool(cert *c, const cert_op *op);
qat_status cert_check_mean(cert *c, const cert_op *op);
qat_status cert_check_softmax(cert *c, const cert_op *op);
qat_status cert_check_sigmoid(cert *c, const cert_op *op);
qat_status cert_check_wide_softmax(cert *c, const cert_op *op);
qat_status cert_check_wide_sigmoid(cert *c, const cert_op *op);
qat_status cert_check_wide_leaky_relu(cert *c, const cert_op *op);
qat_status cert_check_embedding(cert *c, const cert_op *op);
qat_status cert_check_row_numbers(cert *c, const cert_op *op);
/** The op that gives an embedding's row numbers of codes. */
const char *cert_numbers_kernel(bool is_wide);
qat_status cert_check_curve(cert *c, const cert_op *op);
qat_status cert_check_custom_table(cert *c, const cert_op *op);
qat_status cert_check_resize(cert *c, const cert_op *op);
qat_status cert_check_concat(cert *c, const cert_op *op);
qat_status cert_check_reshape(cert *c, const cert_op *op);
qat_status cert_check_slice(cert *c, const cert_op *op);
qat_status cert_check_custom(cert *c, const cert_op *op);
qat_status cert_check_pixels(cert *c, const qi_node *op);
/** Profile onnx: a change of scale, and the negative second input of a difference, by tables. */
qat_status cert_check_even_table(cert *c, const cert_op *op);
qat_status cert_check_negated(cert *c, const qi_node *op, const char *name);

/**
 * Post-training quantization folds batch norm into a float graph first: are its weights and biases
 * those of the original?
 * @param folded  planned, values set
 */
qat_status cert_folded_graph(const qat_certify_source *original, const qat_graph *folded,
                             qat_error *err);

/* ------------------------------------------------------------------ calibration */

/** Values, and how often each occurs. */
typedef struct cert_spread {
    const double *values, *counts; /* counts NULL: once */
    size_t n;
    double total; /* the sum of counts */
} cert_spread;

/** The codes that a range is divided into. */
typedef struct cert_codes_of_range {
    int32_t lo, hi;
    bool symmetric; /* the range's larger end counts for both */
} cert_codes_of_range;

enum { CERT_BINS = 4096 }; /* that estimators count values in, between smallest and largest */

/** Root mean square distance of the values from the numbers that the range's codes stand for. */
double cert_range_error(const cert_spread *x, const cert_codes_of_range *codes, double min,
                        double max);
/** The least one of all ranges that the estimator mse chooses from. min, max: the extents. */
double cert_least_error(const cert_spread *x, const cert_codes_of_range *codes, double min,
                        double max);

/** The values that each class of tensors takes in a float graph (extents.c), and what ranges
 *  may follow from them (calibrated.c). */
typedef struct cert_extents cert_extents;
/** @param graph  without batch norms, planned QAT_PLAN_KEEP; borrowed. Free *extents even after a
 *                failure. */
qat_status cert_extents_create(cert_extents **extents, qat_graph *graph,
                               const qat_quant_options *quant, qat_error *err);
void cert_extents_free(cert_extents *extents);
/** Run the graph on the inputs that it was given (they are quantized in place). First all batches
 *  for the smallest and largest values; then, for estimators other than minmax, all of them again
 *  to count values. */
void cert_extents_batch(cert_extents *extents);
qat_status cert_extents_count(cert_extents *extents, qat_error *err);
/** @param eval       has the ranges
 *  @param estimator  minmax, percentile or mse, which chose them; parameter: percentile's */
qat_status cert_extents_check(const cert_extents *extents, const qat_graph *eval,
                              const char *estimator, double parameter, qat_error *err);

/** Weights that the estimator mse clipped, and all other parameters but corrected biases: what they
 *  are in eval, against what they were in the folded graph (clipped.c). */
qat_status cert_clipped_weights(const qat_graph *folded, const qat_graph *eval,
                                const qat_quant_options *quant, bool clips, bool corrects,
                                qat_error *err);

/** Corrected biases: the means of the layers that have them (means.c). */
typedef struct cert_means cert_means;
/** Both graphs planned QAT_PLAN_KEEP, borrowed. Free *means even after a failure. */
qat_status cert_means_create(cert_means **means, qat_graph *folded, qat_graph *eval,
                             qat_error *err);
void cert_means_free(cert_means *means);
/** Run both graphs on the inputs that they were given. */
void cert_means_batch(cert_means *means);
qat_status cert_means_check(const cert_means *means, qat_error *err);
/** Is it a bias that correction changes? */
bool cert_is_corrected(const qat_node *bias);

/** All layers, then what of the file belongs to none. */
qat_status cert_walk(cert *c);

#endif
