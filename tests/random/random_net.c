#include "random/random_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FEATURES = 48, MAX_VALUES = 700, MAX_SIDE = 11 };

/** A network that is being made, with the tensors that may still be inputs of new layers. */
struct builder {
    random_net *net;
    qat_graph *g;
    qat_rng rng, pads;
    qat_node *features[MAX_FEATURES]; /* 4-D: [1, H, W, C] */
    int n_features;
    int n_names;
    char name[32];
};

/* ------------------------------------------------------------------ choices */

static int below(struct builder *b, int n)
{
    return (int)qat_rng_below(&b->rng, (uint32_t)n);
}

static int between(struct builder *b, int lo, int hi)
{
    return lo + below(b, hi - lo + 1);
}

static bool chance(struct builder *b, int percent)
{
    return below(b, 100) < percent;
}

static float uniform(qat_rng *rng, float lo, float hi)
{
    return lo + (hi - lo) * (float)qat_rng_uniform(rng);
}

static const char *next_name(struct builder *b, const char *op)
{
    snprintf(b->name, sizeof b->name, "%s%d", op, b->n_names++);
    return b->name;
}

static int dim(const qat_node *x, int axis)
{
    return x->shape.dims[axis];
}

static qat_node *keep(struct builder *b, qat_node *x)
{
    if (x && x->shape.rank == 4 && b->n_features < MAX_FEATURES)
        b->features[b->n_features++] = x;
    return x;
}

/**
 * Choose an earlier feature. A recent one is likely, but an old one is possible: this makes
 * branches.
 */
static qat_node *pick(struct builder *b)
{
    int const window = chance(b, 75) ? 2 : b->n_features;
    int const n = window < b->n_features ? window : b->n_features;
    return b->features[b->n_features - 1 - below(b, n)];
}

/* ------------------------------------------------------------------ pieces of layers */

/** Has the network 16-bit activations? Every fifth has. */
static bool is_wide(const struct builder *b)
{
    return b->net->index % 5 == 4;
}

/**
 * Every fourth network has hard_swish where others have tanh or hard_tanh; of 16-bit activations it
 * is leaky_relu.
 */
static qat_node *apply(struct builder *b, const char *op, const char *attrs, qat_node *x)
{
    if (b->net->index % 4 == 2 && strstr(op, "tanh")) {
        op = is_wide(b) ? "leaky_relu" : "hard_swish";
        attrs = is_wide(b) ? b->n_names % 2 ? "alpha=0.1" : "alpha=-0.3" : attrs;
    }
    return qat_apply1(b->g, op, next_name(b, op), attrs, x);
}

static qat_node *activation(struct builder *b, qat_node *x)
{
    static const char *const op[] = {"relu", "relu", "relu", "relu6", "relu6", "hard_tanh"};
    return chance(b, 50) ? apply(b, op[below(b, 6)], "", x) : x;
}

/** Add nothing, a bias or a batch norm. Then perhaps add an activation. */
static qat_node *finish_layer(struct builder *b, qat_node *x)
{
    int const kind = below(b, 5);
    if (kind < 2)
        x = apply(b, "batch_norm", chance(b, 30) ? "momentum=0.5 epsilon=0.01" : "", x);
    else if (kind < 4)
        x = apply(b, "bias", "", x);
    return activation(b, x);
}

/**
 * Choose "same", "valid" or sometimes numbers of pixels. Each number is less than the window's
 * extent, so that each window has a part of the image. The random numbers are separate ones, so
 * that the rest of the network does not change.
 */
static void padding_text(struct builder *b, const qat_node *x, bool same, const int extent[2],
                         char text[32])
{
    qat_rng const others = b->rng;
    int const h = extent[0] - 1, w = extent[1] - 1;
    snprintf(text, 32, "%s", same ? "same" : "valid");
    if (h >= dim(x, 1) || w >= dim(x, 2))
        return;
    b->rng = b->pads;
    if (chance(b, 25))
        snprintf(text, 32, "%d,%d", h / 2, w / 2);
    else if (chance(b, 10))
        snprintf(text, 32, "%d,%d,%d,%d", between(b, 0, h), between(b, 0, h), between(b, 0, w),
                 between(b, 0, w));
    b->pads = b->rng;
    b->rng = others;
}

/** "kernel=.. stride=.. ..." of a window that fits into x. */
static void window_attrs(struct builder *b, const qat_node *x, char text[128])
{
    bool const same = chance(b, 60);
    int kernel[2], stride[2], dilation[2], extent[2];
    char padding[32];
    for (int i = 0; i < 2; i++) {
        int const size = dim(x, 1 + i);
        int const most = same ? 5 : size < 5 ? size : 5;
        kernel[i] = between(b, 1, most);
        stride[i] = between(b, 1, 3);
        dilation[i] = chance(b, 25) && stride[i] == 1 ? 2 : 1;
        if (!same && (kernel[i] - 1) * dilation[i] + 1 > size)
            dilation[i] = 1;
    }
    if (stride[0] > 1 || stride[1] > 1)
        dilation[0] = dilation[1] = 1;
    for (int i = 0; i < 2; i++)
        extent[i] = (kernel[i] - 1) * dilation[i] + 1;
    padding_text(b, x, same, extent, padding);
    snprintf(text, 128,
             "kernel=%d kernel_w=%d stride=%d stride_w=%d dilation=%d dilation_w=%d padding=%s",
             kernel[0], kernel[1], stride[0], stride[1], dilation[0], dilation[1], padding);
}

static qat_node *conv_to(struct builder *b, qat_node *x, int filters)
{
    char attrs[48];
    snprintf(attrs, sizeof attrs, "filters=%d kernel=%d", filters, chance(b, 50) ? 1 : 3);
    return apply(b, "conv2d", attrs, x);
}

/** The random numbers are separate ones, so that the rest of the network does not change. */
static qat_node *transposed_conv(struct builder *b, qat_node *x, int filters)
{
    static const char *const paddings[] = {"same", "valid"};
    qat_rng const others = b->rng;
    char attrs[192], padding[32] = "";
    b->rng = b->pads;
    int const kernel[] = {between(b, 1, 4), between(b, 1, 4)};
    int const stride[] = {between(b, 1, 3), between(b, 1, 2)};
    if (chance(b, 70) || dim(x, 1) < 3 || dim(x, 2) < 3)
        snprintf(padding, sizeof padding, "%s", paddings[below(b, 2)]);
    else
        snprintf(padding, sizeof padding, "%d,%d extra=%d", between(b, 0, kernel[0] - 1) / 2,
                 between(b, 0, kernel[1] - 1) / 2, below(b, stride[0]));
    b->pads = b->rng;
    b->rng = others;
    snprintf(attrs, sizeof attrs,
             "filters=%d kernel=%d kernel_w=%d stride=%d stride_w=%d padding=%s", filters,
             kernel[0], kernel[1], stride[0], stride[1], padding);
    return apply(b, "transpose_conv2d", attrs, x);
}

/** Every sixth network has transposed convolutions. */
static qat_node *layer_conv(struct builder *b)
{
    qat_node *x = pick(b);
    char window[128], attrs[192];
    int const channels = dim(x, 3);
    int groups = between(b, 1, channels);
    while (channels % groups != 0)
        groups--;
    if (chance(b, 60))
        groups = 1;
    int const filters = groups * between(b, 1, groups > 2 ? 2 : 8 / groups);
    window_attrs(b, x, window);
    if (b->net->index % 6 == 1 && groups == 1 && qat_shape_count(&x->shape) < MAX_VALUES / 4)
        return finish_layer(b, transposed_conv(b, x, filters));
    snprintf(attrs, sizeof attrs, "filters=%d groups=%d %s", filters, groups, window);
    return finish_layer(b, apply(b, "conv2d", attrs, x));
}

static qat_node *layer_depthwise(struct builder *b)
{
    qat_node *x = pick(b);
    char window[128], attrs[192];
    window_attrs(b, x, window);
    snprintf(attrs, sizeof attrs, "multiplier=%d %s", dim(x, 3) > 6 ? 1 : between(b, 1, 3), window);
    return finish_layer(b, apply(b, "depthwise_conv2d", attrs, x));
}

/** "factor=.." or sides, and where pixels lie; random numbers of their own. */
static qat_node *resize(struct builder *b, qat_node *x)
{
    static const char *const where[] = {"", "half_pixel_centers=no",
                                        "half_pixel_centers=no align_corners=yes"};
    qat_rng const others = b->rng;
    char attrs[96];
    b->rng = b->pads;
    const char *op = chance(b, 50) ? "resize_nearest" : "resize_bilinear";
    if (chance(b, 50))
        snprintf(attrs, sizeof attrs, "factor=2 %s", where[below(b, 3)]);
    else
        snprintf(attrs, sizeof attrs, "height=%d width=%d %s", between(b, 1, MAX_SIDE),
                 between(b, 1, MAX_SIDE), where[below(b, 3)]);
    b->pads = b->rng;
    b->rng = others;
    return apply(b, op, attrs, x);
}

/** Every third network resizes instead; there are no resizes of 16-bit activations. */
static qat_node *layer_pool(struct builder *b)
{
    qat_node *x = pick(b);
    if (b->net->index % 3 == 0 && dim(x, 3) < 9 && !is_wide(b))
        return resize(b, x);
    char attrs[128];
    int const h = dim(x, 1), w = dim(x, 2);
    int const kernel[] = {between(b, 1, h < 3 ? h : 3), between(b, 1, w < 3 ? w : 3)};
    int const stride[] = {between(b, 1, 2), between(b, 1, 3)};
    char padding[32];
    padding_text(b, x, chance(b, 50), kernel, padding);
    snprintf(attrs, sizeof attrs, "kernel=%d kernel_w=%d stride=%d stride_w=%d padding=%s",
             kernel[0], kernel[1], stride[0], stride[1], padding);
    bool const max = chance(b, 50);
    size_t const n = strlen(attrs);
    if (!max && kernel[0] % 2) /* so that random numbers stay those of other networks */
        snprintf(attrs + n, sizeof attrs - n, " count_padding=yes");
    x = apply(b, max ? "max_pool2d" : "average_pool2d", attrs, x);
    return chance(b, 15) ? activation(b, x) : x;
}

/** Add batch norm, bias or ReLU to a tensor that other layers may read too. */
static qat_node *layer_standalone(struct builder *b)
{
    static const char *const op[] = {"batch_norm", "bias", "relu", "relu6", "hard_tanh", "dropout"};
    return apply(b, op[below(b, 6)], "", pick(b));
}

/**
 * Add an op with a fixed output range, mostly behind a layer. Softmax is possible if there are
 * several values.
 */
static qat_node *layer_fixed(struct builder *b)
{
    static const char *const op[] = {"logistic", "tanh", "softmax"};
    qat_node *x = pick(b);
    if (chance(b, 70))
        x = conv_to(b, x, between(b, 1, 6));
    return apply(b, op[below(b, dim(x, 3) > 1 ? 3 : 2)], "", x);
}

static qat_node *layer_reshape(struct builder *b)
{
    qat_node *x = pick(b);
    char attrs[64];
    snprintf(attrs, sizeof attrs, "d1=%d d2=%d d3=%d", dim(x, 2), dim(x, 1), dim(x, 3));
    return apply(b, "reshape", attrs, x);
}

/** Find another tensor of x's shape. If there is none, make a 1x1 or 3x3 convolution of x. */
static qat_node *partner(struct builder *b, qat_node *x)
{
    for (int tries = 0; tries < 4; tries++) {
        qat_node *y = b->features[below(b, b->n_features)];
        if (y != x && qat_shape_equal(&x->shape, &y->shape))
            return y;
    }
    qat_node *y = conv_to(b, x, dim(x, 3));
    return chance(b, 60) ? finish_layer(b, y) : y;
}

static qat_node *layer_binary(struct builder *b)
{
    qat_node *x = pick(b), *y;
    if (chance(b, 30)) { /* one value a channel: squeeze and excite */
        y = apply(b, "global_average_pool", "", x);
        if (chance(b, 50))
            y = apply(b, "logistic", "", conv_to(b, y, dim(x, 3)));
    } else {
        y = partner(b, x);
    }
    static const char *const ops[] = {"add", "add", "sub", "mul", "mul"};
    const char *op = ops[below(b, 5)];
    qat_node *z = chance(b, 30) ? qat_apply2(b->g, op, next_name(b, op), "", y, x)
                                : qat_apply2(b->g, op, next_name(b, op), "", x, y);
    return activation(b, z);
}

static bool is_one_of(const qat_node *node, const char *const *ops)
{
    for (int i = 0; node->op && ops[i]; i++)
        if (strcmp(node->op->name, ops[i]) == 0)
            return true;
    return false;
}

/**
 * Does the tensor have a range of its own? Inputs, sigmoids and ops that pass on their codes do.
 * Concatenations mostly avoid them, so that most of their inputs need not be requantized.
 */
static bool has_fixed_range(const qat_node *x)
{
    static const char *const fixed[] = {"logistic", "tanh", "softmax", NULL};
    static const char *const passing[] = {"max_pool2d", "average_pool2d", "global_average_pool",
                                          "reshape",    "flatten",        "dropout",
                                          NULL};
    while (is_one_of(x, passing))
        x = x->inputs[0];
    return !x->op || is_one_of(x, fixed);
}

static qat_node *layer_concat(struct builder *b)
{
    qat_node *parts[4];
    int n = 0;
    parts[n++] = pick(b);
    for (int tries = 0; tries < 8 && n < 3; tries++) {
        qat_node *y = b->features[below(b, b->n_features)];
        if (dim(y, 1) == dim(parts[0], 1) && dim(y, 2) == dim(parts[0], 2))
            parts[n++] = y;
    }
    if (n == 1)
        parts[n++] = finish_layer(b, conv_to(b, parts[0], between(b, 1, 4)));
    for (int i = 0; i < n; i++)
        if (has_fixed_range(parts[i]) && chance(b, 85))
            parts[i] = finish_layer(b, conv_to(b, parts[i], dim(parts[i], 3)));
    bool equal = true;
    for (int i = 1; i < n; i++)
        equal &= qat_shape_equal(&parts[0]->shape, &parts[i]->shape);
    char attrs[24];
    snprintf(attrs, sizeof attrs, "axis=%d", equal && chance(b, 30) ? between(b, 1, 2) : 3);
    qat_node *x = qat_apply(b->g, "concat", next_name(b, "concat"), attrs, n, parts);
    return chance(b, 20) ? activation(b, x) : x;
}

static void add_layer(struct builder *b)
{
    typedef qat_node *layer_fn(struct builder *);
    static layer_fn *const layers[] = {
        layer_conv,      layer_conv,   layer_conv,   layer_conv,       layer_depthwise,
        layer_depthwise, layer_binary, layer_binary, layer_concat,     layer_concat,
        layer_pool,      layer_pool,   layer_fixed,  layer_standalone, layer_reshape};
    qat_node *x = layers[below(b, (int)(sizeof layers / sizeof *layers))](b);
    if (x && qat_shape_count(&x->shape) > MAX_VALUES)
        x = apply(b, "max_pool2d", "kernel=2 padding=same", x);
    keep(b, x);
}

/* ------------------------------------------------------------------ the ends */

/** Turn a feature into [N, I], by flattening or a global average. */
static qat_node *to_vector(struct builder *b, qat_node *x)
{
    if (qat_shape_count(&x->shape) > 400 || chance(b, 10))
        x = apply(b, "global_average_pool", "", x);
    return apply(b, "flatten", "", x);
}

static qat_node *fully_connected(struct builder *b, qat_node *x, int units)
{
    char attrs[24];
    snprintf(attrs, sizeof attrs, "units=%d", units);
    return finish_layer(b, apply(b, "fully_connected", attrs, x));
}

/** Features nobody uses. */
static int open_ends(const struct builder *b, qat_node **ends)
{
    int n = 0;
    for (int i = 0; i < b->n_features; i++)
        if (qat_node_consumers(b->features[i]) == 0)
            ends[n++] = b->features[i];
    return n;
}

/** Join all ends into one vector: by a concatenation, or by a sum after a layer for each. */
static qat_node *join(struct builder *b, int n, qat_node **ends)
{
    bool const sum = chance(b, 50);
    int const units = between(b, 2, 12);
    for (int i = 0; i < n; i++) {
        ends[i] = to_vector(b, ends[i]);
        if (n > 1 && (sum || (has_fixed_range(ends[i]) && chance(b, 85))))
            ends[i] = fully_connected(b, ends[i], units);
    }
    if (!sum && n > 1)
        return qat_apply(b->g, "concat", next_name(b, "concat"), "axis=1", n, ends);
    for (int i = 1; i < n; i++)
        ends[0] = qat_apply2(b->g, "add", next_name(b, "add"), "", ends[0], ends[i]);
    return ends[0];
}

static void end_joined(struct builder *b, int n, qat_node **ends)
{
    static const char *const op[] = {"softmax", "logistic", "tanh"};
    random_net *net = b->net;
    qat_node *x = join(b, n, ends);
    if (chance(b, 40))
        x = fully_connected(b, x, between(b, 2, 12));
    net->classes = between(b, 2, 10);
    x = fully_connected(b, x, net->classes);
    if (chance(b, 50)) {
        net->label = qat_graph_input(b->g, "label", QAT_SHAPE(1));
        net->loss = qat_apply2(b->g, "softmax_cross_entropy", "loss", "", x, net->label);
    }
    if (chance(b, 50))
        x = apply(b, op[below(b, 3)], "", x);
    qat_graph_output(b->g, x);
    if (!net->loss)
        net->loss = qat_apply1(b->g, "l2_loss", "loss", "", x);
}

static void end_open(struct builder *b, int n, qat_node **ends)
{
    for (int i = 0; i < n; i++)
        qat_graph_output(b->g, ends[i]);
    b->net->loss = qat_apply1(b->g, "l2_loss", "loss", "", ends[n - 1]);
}

/* ------------------------------------------------------------------ everything else */

static void choose_options(struct builder *b)
{
    random_net *net = b->net;
    qat_quant_options *o = &net->options;
    *o = qat_quant_defaults();
    o->layout = chance(b, 50) ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
    net->profile = chance(b, 50) ? QAT_PROFILE_TFLITE : QAT_PROFILE_PAPER;
    o->weight_bits = chance(b, 40) ? 8 : between(b, 2, 8);
    o->activation_bits = chance(b, 40) ? 8 : between(b, 2, 8);
    o->ema_decay = chance(b, 50) ? 0.9 : 0.5;
    o->bn_fold = chance(b, 50) ? QAT_FOLD_ONE_PASS : QAT_FOLD_TWO_PASS;
    o->weight_delay = between(b, 0, 2);
    o->activation_delay = between(b, 0, 2);
    if (chance(b, 50))
        o->bn_freeze_delay = o->weight_delay + between(b, 0, 2);
    net->calibration_steps = between(b, 1, 2);
    net->training_steps = between(b, 0, 3);
    /* With a stream of its own, so that all else stays. Most networks for TensorFlow Lite have
     * none, so that their answers are equal there. */
    qat_rng rng = qat_rng_at(net->seed, 3, net->index);
    bool const asked = qat_rng_below(&rng, net->profile == QAT_PROFILE_TFLITE ? 4 : 2) == 0;
    o->fraction = asked ? (int)qat_rng_below(&rng, QI_MAX_FRACTION + 1) : QAT_FRACTION_AUTO;
    if (is_wide(b)) {
        o->layout = QAT_LAYOUT_INT8;
        net->profile = QAT_PROFILE_TFLITE;
        o->activation_bits = QAT_WIDE_BITS;
        o->fraction = QAT_FRACTION_AUTO;
    }
    rng = qat_rng_at(net->seed, 25, net->index); /* likewise */
    if (!is_wide(b) && qat_rng_below(&rng, 3) == 0)
        o->input_bits = 2 + (int)qat_rng_below(&rng, 7);
    rng = qat_rng_at(net->seed, 33, net->index); /* likewise */
    if (!is_wide(b) && qat_rng_below(&rng, 4) == 0)
        net->profile = QAT_PROFILE_ONNX;
}

/** Add ops whose outputs have size 1, or another size than their inputs. */
static bool needs_ordinary_values(const qat_graph *graph)
{
    static const char *const ops[] = {"logistic", "tanh", "softmax", "sub", "mul", "relu6", NULL};
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        if (is_one_of(qat_graph_node(graph, i), ops))
            return true;
    return false;
}

/**
 * Choose the input: pixels with a mean and std of their own, or real numbers whose range is wide,
 * one-sided or tiny.
 */
static void choose_input(struct builder *b)
{
    static const float ranges[][2] = {{-1, 1},       {0, 1},          {0.2f, 3},  {-2.5f, -0.1f},
                                      {-1.5f, 0.5f}, {-1e-4f, 1e-4f}, {0, 3e-5f}, {-128, 127}};
    random_net *net = b->net;
    net->ordinary = needs_ordinary_values(b->g);
    int const range = below(b, net->ordinary ? 5 : 8);
    net->options.input_min = ranges[range][0];
    net->options.input_max = ranges[range][1];
    net->pixels = chance(b, 50);
    if (!net->pixels)
        return;
    bool const symmetric = chance(b, 50);
    net->options.input_min = symmetric ? -1.0f : -0.5f;
    net->options.input_max = symmetric ? 1.0f : 2.5f;
    for (int c = 0; c < dim(net->inputs[0], 3); c++) {
        net->mean[c] = symmetric ? 127.5f : uniform(&b->rng, 30, 120);
        net->std[c] = symmetric ? 127.5f : uniform(&b->rng, 50, 90);
    }
}

static void add_inputs(struct builder *b)
{
    random_net *net = b->net;
    int const h = chance(b, 15) ? 1 : between(b, 3, MAX_SIDE);
    int const w = between(b, 3, MAX_SIDE), c = between(b, 1, 6);
    net->n_inputs = chance(b, 20) ? 2 : 1;
    static const char *const names[] = {"image", "second"};
    for (int i = 0; i < net->n_inputs; i++) {
        net->inputs[i] =
            qat_graph_input(b->g, names[i], QAT_SHAPE(1, h, w, i ? between(b, 1, 3) : c));
        keep(b, net->inputs[i]);
    }
}

qat_status random_net_create(random_net *net, uint64_t seed, uint64_t index,
                             const qat_registry *registry, qat_error *err)
{
    struct builder b = {
        .net = net, .rng = qat_rng_at(seed, 1, index), .pads = qat_rng_at(seed, 2, index)};
    qat_node *ends[MAX_FEATURES];
    *net = (random_net){.seed = seed, .index = index};
    qat_status const st = qat_graph_create(&net->graph, registry, err);
    if (st)
        return st;
    b.g = net->graph;
    choose_options(&b);
    add_inputs(&b);
    keep(&b, layer_conv(&b));
    for (int layers = between(&b, 1, 7); layers > 0; layers--)
        add_layer(&b);
    int const n = open_ends(&b, ends);
    if (n <= 3 && chance(&b, 25))
        end_open(&b, n, ends);
    else
        end_joined(&b, n, ends);
    choose_input(&b);
    qat_status const built = qat_graph_check(net->graph, err);
    if (!built)
        random_net_choose_ranges(net);
    return built;
}

void random_net_free(random_net *net)
{
    qat_graph_free(net->graph);
    net->graph = NULL;
}

/* ------------------------------------------------------------------ data */

/** A place in 0..1: a picture of its own brightness and contrast, with a gradient and noise. */
static float picture(qat_rng *rng, float brightness, float contrast, float slope, float position)
{
    float const v = brightness + contrast * (uniform(rng, -1, 1) + slope * (position - 0.5f));
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static float adversarial_place(qat_rng *rng, int sample)
{
    switch (sample % 4) {
    case 0:
        return (float)(sample / 4 % 2); /* all lowest, all highest */
    case 1:
        return (float)qat_rng_below(rng, 2); /* extremes mixed */
    case 2:
        return uniform(rng, -0.5f, 1.5f); /* beyond the range */
    default:
        return uniform(rng, 0, 1);
    }
}

void random_net_sample(const random_net *net, uint64_t stream, int sample, bool adversarial,
                       int input, uint8_t *bytes, float *values)
{
    qat_rng rng = qat_rng_at(qat_hash(net->seed, net->index), qat_hash(stream, (uint64_t)input),
                             (uint64_t)sample);
    const qat_shape *shape = &net->inputs[input]->shape;
    int const channels = shape->dims[3];
    int const n = shape->dims[1] * shape->dims[2] * channels;
    float const brightness = uniform(&rng, 0, 1), contrast = uniform(&rng, 0.05f, 0.6f);
    float const slope = uniform(&rng, -2, 2);
    float const lo = net->options.input_min, hi = net->options.input_max;
    for (int i = 0; i < n; i++) {
        float const v = adversarial
                            ? adversarial_place(&rng, sample)
                            : picture(&rng, brightness, contrast, slope, (float)i / (float)n);
        if (net->pixels && input == 0) {
            float const pixel = v * 255.0f + 0.5f;
            bytes[i] = (uint8_t)(pixel < 0 ? 0 : pixel > 255 ? 255 : pixel);
            values[i] = ((float)bytes[i] - net->mean[i % channels]) / net->std[i % channels];
        } else {
            values[i] = lo + (hi - lo) * v;
        }
    }
}
