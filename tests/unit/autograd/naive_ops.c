#include "unit/autograd/naive_ops.h"

#include "autograd/ops/clamps.h"

#include <math.h>
#include <string.h>

typedef void naive_fn(const qat_node *node, const qat_run *run, double *y);

static int dim(const qat_node *node, int i)
{
    return i < node->shape.rank ? node->shape.dims[i] : 1;
}

/* Value [n,h,w,c]; 0 outside the image. */
static double at(const qat_node *x, int n, int h, int w, int c)
{
    if (h < 0 || h >= dim(x, 1) || w < 0 || w >= dim(x, 2))
        return 0;
    return (double)x->value[((n * dim(x, 1) + h) * dim(x, 2) + w) * dim(x, 3) + c];
}

static size_t count(const qat_node *node)
{
    return qat_shape_count(&node->shape);
}

/* ------------------------------------------------------------------ windows */

struct window {
    int kernel[2], stride[2], dilation[2], pad[2]; /* of height, width */
};

static int attr_or(const qat_node *node, const char *name, int fallback)
{
    for (int i = 0; node->op->attrs[i].name; i++)
        if (strcmp(node->op->attrs[i].name, name) == 0 && node->attrs[i] != 0)
            return (int)node->attrs[i];
    return fallback;
}

/*
 * TensorFlow's rule for SAME in the words of its documentation, which looks at the rest of the
 * input.
 */
static int same_padding(int in, int kernel, int stride, int dilation)
{
    int const reach = (kernel - 1) * dilation + 1, rest = in % stride;
    int const along = rest == 0 ? reach - stride : reach - rest;
    return along > 0 ? along / 2 : 0;
}

static struct window window_of(const qat_node *node)
{
    static const char *const names[2][3] = {{"kernel", "stride", "dilation"},
                                            {"kernel_w", "stride_w", "dilation_w"}};
    qat_padding const p = qat_attr_padding(node, "padding");
    struct window w;
    for (int i = 0; i < 2; i++) {
        w.kernel[i] = attr_or(node, names[i][0], attr_or(node, "kernel", 0));
        w.stride[i] = attr_or(node, names[i][1], attr_or(node, "stride", w.kernel[i]));
        w.dilation[i] = attr_or(node, names[i][2], attr_or(node, "dilation", 1));
        w.pad[i] = i ? p.left : p.top;
        if (p.kind == QAT_PADDING_SAME)
            w.pad[i] =
                same_padding(dim(node->inputs[0], 1 + i), w.kernel[i], w.stride[i], w.dilation[i]);
    }
    return w;
}

/* The output pixel and channel that value i of node is. */
struct place {
    int n, h, w, c;
};

static struct place place_of(const qat_node *node, size_t i)
{
    struct place p;
    p.c = (int)(i % (size_t)dim(node, 3));
    i /= (size_t)dim(node, 3);
    p.w = (int)(i % (size_t)dim(node, 2));
    i /= (size_t)dim(node, 2);
    p.h = (int)(i % (size_t)dim(node, 1));
    p.n = (int)(i / (size_t)dim(node, 1));
    return p;
}

static int row_of(const struct window *w, const struct place *p, int k)
{
    return p->h * w->stride[0] + k * w->dilation[0] - w->pad[0];
}

static int column_of(const struct window *w, const struct place *p, int k)
{
    return p->w * w->stride[1] + k * w->dilation[1] - w->pad[1];
}

static void conv2d(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0], *f = node->inputs[1];
    struct window const w = window_of(node);
    int const depth = dim(f, 3), filters = dim(node, 3), groups = (int)qat_attr(node, "groups");
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        int const first = p.c / (filters / groups) * depth;
        y[i] = 0;
        for (int k = 0; k < w.kernel[0]; k++)
            for (int l = 0; l < w.kernel[1]; l++)
                for (int c = 0; c < depth; c++)
                    y[i] += at(x, p.n, row_of(&w, &p, k), column_of(&w, &p, l), first + c) *
                            at(f, p.c, k, l, c);
    }
}

static void depthwise_conv2d(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0], *f = node->inputs[1];
    struct window const w = window_of(node);
    int const multiplier = dim(node, 3) / dim(x, 3);
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        y[i] = 0;
        for (int k = 0; k < w.kernel[0]; k++)
            for (int l = 0; l < w.kernel[1]; l++)
                y[i] += at(x, p.n, row_of(&w, &p, k), column_of(&w, &p, l), p.c / multiplier) *
                        at(f, 0, k, l, p.c);
    }
}

/* Each input pixel scatters a window, as the op's definition says. */
static void transpose_conv2d(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0], *f = node->inputs[1];
    struct window w = window_of(node);
    memset(y, 0, count(node) * sizeof *y);
    for (int i = 0; i < 2 && qat_attr_padding(node, "padding").kind == QAT_PADDING_SAME; i++)
        w.pad[i] = w.kernel[i] > w.stride[i] ? (w.kernel[i] - w.stride[i]) / 2 : 0;
    for (size_t i = 0; i < count(x); i++) {
        struct place const p = place_of(x, i);
        for (int k = 0; k < w.kernel[0]; k++)
            for (int l = 0; l < w.kernel[1]; l++) {
                int const row = p.h * w.stride[0] + k - w.pad[0];
                int const column = p.w * w.stride[1] + l - w.pad[1];
                if (row < 0 || row >= dim(node, 1) || column < 0 || column >= dim(node, 2))
                    continue;
                double *to =
                    y + ((p.n * dim(node, 1) + row) * dim(node, 2) + column) * dim(node, 3);
                for (int o = 0; o < dim(node, 3); o++)
                    to[o] += (double)x->value[i] * at(f, o, k, l, p.c);
            }
    }
}

/* Where output i of an axis lies among its inputs, in the words of the op's attributes. */
static double position_of(const qat_node *node, int axis, int i, bool bilinear)
{
    int const in = dim(node->inputs[0], axis), out = dim(node, axis);
    bool const align = qat_attr(node, "align_corners") != 0 && out > 1;
    bool const half = qat_attr(node, "half_pixel_centers") != 0;
    double const ratio = align ? (double)(in - 1) / (out - 1) : (double)in / out;
    return (i + (half ? 0.5 : 0)) * ratio - (half && bilinear ? 0.5 : 0);
}

static double clamped(const qat_node *x, int n, int h, int w, int c)
{
    h = h < 0 ? 0 : h >= dim(x, 1) ? dim(x, 1) - 1 : h;
    w = w < 0 ? 0 : w >= dim(x, 2) ? dim(x, 2) - 1 : w;
    return at(x, n, h, w, c);
}

static void resize_nearest(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        double const h = position_of(node, 1, p.h, false), w = position_of(node, 2, p.w, false);
        bool const rounds = qat_attr(node, "align_corners") != 0;
        y[i] = clamped(node->inputs[0], p.n, (int)floor(rounds ? h + 0.5 : h + 1e-6),
                       (int)floor(rounds ? w + 0.5 : w + 1e-6), p.c);
    }
}

/* Hat functions: each input has a share of 1 - its distance. */
static void resize_bilinear(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        double const h = position_of(node, 1, p.h, true), w = position_of(node, 2, p.w, true);
        y[i] = 0;
        for (int k = (int)floor(h); k <= (int)floor(h) + 1; k++)
            for (int l = (int)floor(w); l <= (int)floor(w) + 1; l++)
                y[i] += (1 - fabs(h - k)) * (1 - fabs(w - l)) *
                        clamped(node->inputs[0], p.n, k, l, p.c);
    }
}

static bool inside(const qat_node *x, int h, int w)
{
    return h >= 0 && h < dim(x, 1) && w >= 0 && w < dim(x, 2);
}

static void pool(const qat_node *node, bool max, double *y)
{
    const qat_node *x = node->inputs[0];
    struct window const w = window_of(node);
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        double highest = -INFINITY, sum = 0;
        int n = 0;
        for (int k = 0; k < w.kernel[0]; k++)
            for (int l = 0; l < w.kernel[1]; l++)
                if (inside(x, row_of(&w, &p, k), column_of(&w, &p, l))) {
                    double const v = at(x, p.n, row_of(&w, &p, k), column_of(&w, &p, l), p.c);
                    highest = fmax(highest, v);
                    sum += v;
                    n++;
                }
        if (!max && qat_attr(node, "count_padding") > 0)
            n = w.kernel[0] * w.kernel[1];
        y[i] = max ? highest : sum / n;
    }
}

static void max_pool2d(const qat_node *node, const qat_run *run, double *y)
{
    pool(node, true, y);
}

static void average_pool2d(const qat_node *node, const qat_run *run, double *y)
{
    pool(node, false, y);
}

static void global_average_pool(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0];
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        y[i] = 0;
        for (int h = 0; h < dim(x, 1); h++)
            for (int w = 0; w < dim(x, 2); w++)
                y[i] += at(x, p.n, h, w, p.c) / (dim(x, 1) * dim(x, 2));
    }
}

/* ------------------------------------------------------------------ rows */

static void fully_connected(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    int const units = dim(node, 1), inputs = dim(w, 1);
    for (size_t i = 0; i < count(node); i++) {
        int const n = (int)i / units, u = (int)i % units;
        y[i] = 0;
        for (int k = 0; k < inputs; k++)
            y[i] += (double)x->value[n * inputs + k] * (double)w->value[u * inputs + k];
    }
}

static void bias(const qat_node *node, const qat_run *run, double *y)
{
    size_t const channels = count(node->inputs[1]);
    for (size_t i = 0; i < count(node); i++)
        y[i] = (double)node->inputs[0]->value[i] + (double)node->inputs[1]->value[i % channels];
}

/* Mean and biased variance of one channel, in two passes. */
static void statistics(const qat_node *x, size_t channels, size_t c, double *mean, double *variance)
{
    double const rows = (double)(count(x) / channels);
    *mean = *variance = 0;
    for (size_t i = c; i < count(x); i += channels)
        *mean += (double)x->value[i] / rows;
    for (size_t i = c; i < count(x); i += channels)
        *variance += ((double)x->value[i] - *mean) * ((double)x->value[i] - *mean) / rows;
}

static void batch_norm(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0];
    size_t const channels = count(node->inputs[1]);
    for (size_t c = 0; c < channels; c++) {
        double mean = (double)node->inputs[3]->value[c];
        double variance = (double)node->inputs[4]->value[c];
        if (run->mode == QAT_MODE_TRAIN)
            statistics(x, channels, c, &mean, &variance);
        for (size_t i = c; i < count(x); i += channels)
            y[i] = ((double)x->value[i] - mean) / sqrt(variance + qat_attr(node, "epsilon")) *
                       (double)node->inputs[1]->value[c] +
                   (double)node->inputs[2]->value[c];
    }
}

static void softmax(const qat_node *node, const qat_run *run, double *y)
{
    const qat_real *x = node->inputs[0]->value;
    size_t const columns = (size_t)node->shape.dims[node->shape.rank - 1];
    for (size_t i = 0; i < count(node); i++) {
        double sum = 0;
        for (size_t k = i / columns * columns, end = k + columns; k < end; k++)
            sum += exp((double)x[k]);
        y[i] = exp((double)x[i]) / sum;
    }
}

/** Position of value i along the four dimensions. */
static void place(const qat_node *x, size_t i, int to[4])
{
    for (int d = 3; d >= 0; d--) {
        to[d] = (int)(i % (size_t)dim(x, d));
        i /= (size_t)dim(x, d);
    }
}

static double value(const qat_node *x, const int p[4])
{
    return at(x, p[0], p[1], p[2], p[3]);
}

static void zeros(const qat_node *node, const qat_run *run, double *y)
{
    memset(y, 0, count(node) * sizeof *y);
}

static void embedding(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0], *w = node->inputs[1];
    int const rows = w->shape.dims[0], units = w->shape.dims[1];
    for (size_t i = 0; i < count(node); i++) {
        double const nearest = floor((double)x->value[i / (size_t)units] + 0.5);
        int const row = (int)fmin(fmax(nearest, 0), rows - 1);
        y[i] = (double)w->value[(size_t)(row * units) + i % (size_t)units];
    }
}

static void strided_slice(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        int p[4];
        place(node, i, p);
        int *axis = &p[(int)qat_attr(node, "axis")];
        *axis = (int)qat_attr(node, "begin") + *axis * (int)qat_attr(node, "step");
        y[i] = value(node->inputs[0], p);
    }
}

static void transpose(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        int p[4], q[4];
        place(node, i, p);
        q[0] = p[0];
        q[(int)qat_attr(node, "d1")] = p[1];
        q[(int)qat_attr(node, "d2")] = p[2];
        q[(int)qat_attr(node, "d3")] = p[3];
        y[i] = value(node->inputs[0], q);
    }
}

static void pad(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0];
    for (size_t i = 0; i < count(node); i++) {
        int p[4];
        place(node, i, p);
        p[1] -= (int)qat_attr(node, "top");
        p[2] -= (int)qat_attr(node, "left");
        p[3] -= (int)qat_attr(node, "front");
        y[i] = p[3] < 0 || p[3] >= dim(x, 3) ? 0 : value(x, p);
    }
}

static void leaky_relu(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        double const x = (double)node->inputs[0]->value[i];
        y[i] = fmax(x, 0) + qat_attr(node, "alpha") * fmin(x, 0);
    }
}

static void hard_sigmoid(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        double const x = (double)node->inputs[0]->value[i];
        y[i] = fmax(0, fmin(1, qat_attr(node, "alpha") * x + qat_attr(node, "beta")));
    }
}

static void clip(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        double const x = (double)node->inputs[0]->value[i];
        y[i] = fmin(qat_attr(node, "max"), fmax(qat_attr(node, "min"), x));
    }
}

static void concat(const qat_node *node, const qat_run *run, double *y)
{
    int const given = (int)qat_attr(node, "axis");
    int const axis = given < 0 ? node->shape.rank - 1 : given;
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        int index[QAT_MAX_RANK] = {p.n, p.h, p.w, p.c}, input = 0;
        while (index[axis] >= dim(node->inputs[input], axis))
            index[axis] -= dim(node->inputs[input++], axis);
        y[i] = at(node->inputs[input], index[0], index[1], index[2], index[3]);
    }
}

/* ------------------------------------------------------------------ elementwise */

#define CLAMP(op, MIN, MAX, text)                                                                  \
    static void op(const qat_node *node, const qat_run *run, double *y)                            \
    {                                                                                              \
        for (size_t i = 0; i < count(node); i++)                                                   \
            y[i] = fmin(fmax((double)node->inputs[0]->value[i], (double)(MIN)), (double)(MAX));    \
    }
QAT_CLAMPS(CLAMP)

static void logistic(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++)
        y[i] = 1 / (1 + exp(-(double)node->inputs[0]->value[i]));
}

static void hyperbolic_tangent(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++)
        y[i] = tanh((double)node->inputs[0]->value[i]);
}

static void hard_swish(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        double const x = (double)node->inputs[0]->value[i];
        y[i] = x * fmin(fmax(x + 3, 0), 6) / 6;
    }
}

static void silu(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        double const x = (double)node->inputs[0]->value[i];
        y[i] = x / (1 + exp(-x));
    }
}

static void gelu(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        double const x = (double)node->inputs[0]->value[i];
        y[i] = x * (0.5 + 0.5 * erf(x / sqrt(2)));
    }
}

static void copy(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++)
        y[i] = (double)node->inputs[0]->value[i];
}

/* Value of an input at a place of the output, where its dimensions of 1 are repeated. */
static double repeated(const qat_node *x, const struct place *p)
{
    return at(x, p->n, p->h % dim(x, 1), p->w % dim(x, 2), p->c % dim(x, 3));
}

static void add(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        y[i] = repeated(node->inputs[0], &p) + repeated(node->inputs[1], &p);
    }
}

static void sub(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        y[i] = repeated(node->inputs[0], &p) - repeated(node->inputs[1], &p);
    }
}

static void mul(const qat_node *node, const qat_run *run, double *y)
{
    for (size_t i = 0; i < count(node); i++) {
        struct place const p = place_of(node, i);
        y[i] = repeated(node->inputs[0], &p) * repeated(node->inputs[1], &p);
    }
}

/* ------------------------------------------------------------------ losses */

static void softmax_cross_entropy(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *z = node->inputs[0], *label = node->inputs[1];
    double const smoothing = qat_attr(node, "smoothing");
    int const classes = dim(z, z->shape.rank - 1), rows = (int)count(label);
    *y = 0;
    for (int n = 0; n < rows; n++) {
        const qat_real *row = z->value + n * classes;
        double sum = 0;
        for (int k = 0; k < classes; k++)
            sum += exp((double)row[k]);
        for (int k = 0; k < classes; k++) {
            double const target =
                (1 - smoothing) * (k == (int)label->value[n]) + smoothing / classes;
            *y -= target * log(exp((double)row[k]) / sum) / rows;
        }
    }
}

/* Row n of softmax(x / temperature), class k. */
static double softened(const qat_node *x, int n, int k, double temperature)
{
    const qat_real *row = x->value + n * dim(x, 1);
    double sum = 0;
    for (int i = 0; i < dim(x, 1); i++)
        sum += exp((double)row[i] / temperature);
    return exp((double)row[k] / temperature) / sum;
}

static void distillation(const qat_node *node, const qat_run *run, double *y)
{
    double const t = qat_attr(node, "temperature"), w = qat_attr(node, "weight");
    const qat_node *student = node->inputs[1], *teacher = node->inputs[2];
    *y = (1 - w) * (double)node->inputs[0]->value[0];
    for (int n = 0; n < dim(student, 0); n++)
        for (int k = 0; k < dim(student, 1); k++) {
            double const p = softened(teacher, n, k, t), q = softened(student, n, k, t);
            *y += w * t * t * p * log(p / q) / dim(student, 0);
        }
}

static void loss_sum(const qat_node *node, const qat_run *run, double *y)
{
    *y = (double)node->inputs[0]->value[0] +
         qat_attr(node, "weight") * (double)node->inputs[1]->value[0];
}

static void sigmoid_cross_entropy(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *z = node->inputs[0];
    *y = 0;
    for (size_t i = 0; i < count(z); i++) {
        double const p = 1 / (1 + exp(-(double)z->value[i]));
        double const t = (double)node->inputs[1]->value[i];
        *y -= (t * log(p) + (1 - t) * log(1 - p)) / dim(z, 0);
    }
}

static void l2_loss(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0];
    *y = 0;
    for (size_t i = 0; i < count(x); i++) {
        double const t = node->n_data > 1 ? (double)node->inputs[1]->value[i] : 0;
        *y += pow((double)x->value[i] - t, 2) / 2 / dim(x, 0);
    }
}

static double smooth_l1(double d, double beta)
{
    return fabs(d) < beta ? d * d / (2 * beta) : fabs(d) - beta / 2;
}

static void smooth_l1_loss(const qat_node *node, const qat_run *run, double *y)
{
    const qat_node *x = node->inputs[0], *t = node->inputs[1];
    *y = 0;
    for (size_t i = 0; i < count(x); i++)
        *y += smooth_l1((double)x->value[i] - (double)t->value[i], qat_attr(node, "beta")) /
              dim(x, 0);
}

/* The class loss of anchor a; classes count from 1. */
static double anchor_loss(const qat_node *node, int a)
{
    const qat_node *scores = node->inputs[1];
    int const k = dim(scores, 2), class = (int)node->inputs[3]->value[a];
    const qat_real *z = scores->value + a * k;
    double loss = 0, sum = 0;
    for (int i = 0; i < k; i++)
        sum += exp((double)z[i]);
    if (qat_attr(node, "classification") > 0)
        return -log(exp((double)z[class]) / sum);
    for (int i = 0; i < k; i++)
        loss -= log(1 / (1 + exp((i == class - 1 ? -1 : 1) * (double)z[i])));
    return loss;
}

/*
 * Count the backgrounds of the picture that come before anchor a: their loss is larger, or equal
 * and they are earlier.
 */
static int harder(const qat_node *node, int a, int anchors)
{
    int n = 0;
    for (int b = a / anchors * anchors; b < (a / anchors + 1) * anchors; b++) {
        double const own = anchor_loss(node, a), other = anchor_loss(node, b);
        n += (int)node->inputs[3]->value[b] == 0 && (other > own || (other == own && b < a));
    }
    return n;
}

static void detection_loss(const qat_node *node, const qat_run *run, double *y)
{
    const qat_real *class = node->inputs[3]->value;
    int const anchors = dim(node->inputs[0], 1), n = dim(node->inputs[0], 0) * anchors;
    double matches = 0;
    *y = 0;
    for (int a = 0; a < n; a++) {
        double own = 0;
        for (int b = a / anchors * anchors; b < (a / anchors + 1) * anchors; b++)
            own += class[b] > 0;
        double const most =
            fmax(own * qat_attr(node, "negatives"), qat_attr(node, "least_negatives"));
        matches += class[a] > 0;
        if (class[a] > 0 || harder(node, a, anchors) < floor(most))
            *y += anchor_loss(node, a);
        for (int i = 4 * a; class[a] > 0 && i < 4 * a + 4; i++)
            *y += qat_attr(node, "box_weight") *
                  smooth_l1((double)node->inputs[0]->value[i] - (double)node->inputs[2]->value[i],
                            qat_attr(node, "beta"));
    }
    *y /= fmax(matches, 1);
}

static void weight_decay(const qat_node *node, const qat_run *run, double *y)
{
    *y = 0;
    for (int k = 0; k < node->n_inputs; k++)
        for (size_t i = 0; i < count(node->inputs[k]); i++)
            *y += qat_attr(node, "rate") * pow((double)node->inputs[k]->value[i], 2) / 2;
}

#define ROW(op, MIN, MAX, text) {#op, op},

static const struct {
    const char *op;
    naive_fn *fn;
} functions[] = {
    {"conv2d", conv2d},
    {"depthwise_conv2d", depthwise_conv2d},
    {"transpose_conv2d", transpose_conv2d},
    {"resize_nearest", resize_nearest},
    {"resize_bilinear", resize_bilinear},
    {"fully_connected", fully_connected},
    {"bias", bias},
    {"batch_norm", batch_norm},
    QAT_CLAMPS(ROW){"logistic", logistic},
    {"tanh", hyperbolic_tangent},
    {"hard_swish", hard_swish},
    {"silu", silu},
    {"gelu", gelu},
    {"softmax", softmax},
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"concat", concat},
    {"strided_slice", strided_slice},
    {"embedding", embedding},
    {"transpose", transpose},
    {"pad", pad},
    {"leaky_relu", leaky_relu},
    {"hard_sigmoid", hard_sigmoid},
    {"clip", clip},
    {"max_pool2d", max_pool2d},
    {"average_pool2d", average_pool2d},
    {"global_average_pool", global_average_pool},
    {"state", zeros},
    {"carry", copy},
    {"reshape", copy},
    {"flatten", copy},
    {"dropout", copy},
    {"softmax_cross_entropy", softmax_cross_entropy},
    {"distillation", distillation},
    {"loss_sum", loss_sum},
    {"sigmoid_cross_entropy", sigmoid_cross_entropy},
    {"l2_loss", l2_loss},
    {"weight_decay", weight_decay},
    {"smooth_l1_loss", smooth_l1_loss},
    {"detection_loss", detection_loss},
};

bool naive_forward(const qat_node *node, const qat_run *run, double *y)
{
    if (strcmp(node->op->name, "dropout") == 0 && run->mode == QAT_MODE_TRAIN)
        return false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(node->op->name, functions[i].op) == 0) {
            functions[i].fn(node, run, y);
            return true;
        }
    return false;
}
