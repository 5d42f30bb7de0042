/**
 * Writes a float network as ONNX: its nodes as they are, batch norm too, with the names and the
 * values of its parameters. A state is one more input, and what it becomes one more output.
 */
#include "autograd/loops/window.h"
#include "export/onnx/layout.h"
#include "layer/layer.h"
#include "qat/export.h"

#include <math.h>
#include <string.h>

typedef struct float_value {
    onnx_value value;
    onnx_node *product; /* a layer without a bias that only one node reads */
    onnx_node *last;    /* a pool */
    int readers;
} float_value;

typedef struct float_writer {
    onnx_model m;
    float_value *values; /* by node of the graph */
    qat_error *err;
} float_writer;

typedef qat_status float_fn(float_writer *w, const qat_node *node);

static onnx_value *value_of(const float_writer *w, const qat_node *node)
{
    return &w->values[node->index].value;
}

static onnx_value *in(const float_writer *w, const qat_node *node, int i)
{
    return value_of(w, node->inputs[i]);
}

static qat_status refuse(const float_writer *w, const qat_node *node, const char *why)
{
    return qat_fail(w->err, QAT_ERR_UNSUPPORTED, "layer '%.80s' (%s) cannot be written as ONNX: %s",
                    node->name, node->op->name, why);
}

static bool is_picture(const qat_node *node)
{
    return node->shape.rank == ONNX_RANK;
}

/** The form for an op that keeps the shape of its input. */
static onnx_form form_in(const float_writer *w, const qat_node *node)
{
    const onnx_value *x = in(w, node, 0);
    memcpy(value_of(w, node)->picture, x->picture, sizeof x->picture);
    return onnx_form_of(x);
}

static void take(float_writer *w, const qat_node *node, onnx_node *made, onnx_form form)
{
    onnx_set(value_of(w, node), form, onnx_output(&w->m, made, onnx_name(&w->m, node->name)));
}

static onnx_node *apply(float_writer *w, const qat_node *node, const char *op, onnx_form form)
{
    return onnx_add(&w->m, op, (const char *const[]){onnx_as(&w->m, in(w, node, 0), form), NULL});
}

/** A parameter as it is; or [C] as [C, 1, 1] beside planes. */
static const char *param(float_writer *w, const qat_node *p, bool beside_planes)
{
    int64_t dims[ONNX_RANK] = {1, 1, 1, 1};
    for (int i = 0; i < p->shape.rank; i++)
        dims[i] = p->shape.dims[i];
    return onnx_constant(&w->m, p->name, ONNX_FLOAT, beside_planes ? 3 : p->shape.rank, dims,
                         p->value);
}

/* ------------------------------------------------------------------ layers */

static const char *permuted(float_writer *w, const qat_node *p, const int *perm)
{
    int64_t from[ONNX_RANK], to[ONNX_RANK];
    for (int i = 0; i < ONNX_RANK; i++)
        from[i] = p->shape.dims[i];
    for (int i = 0; i < ONNX_RANK; i++)
        to[i] = from[perm[i]];
    const void *values = onnx_permuted(&w->m, p->value, sizeof(float), from, perm);
    return values ? onnx_constant(&w->m, p->name, ONNX_FLOAT, ONNX_RANK, to, values) : "";
}

/** The window of the layer's gradient; ONNX's pads may be fewer, and then it adds positions. */
static qat_status transpose_conv2d(float_writer *w, const qat_node *node)
{
    qat_window g;
    onnx_window window;
    int64_t more[2];
    qat_status const st = qat_transposed_window_of(&g, node, w->err);
    if (st)
        return st;
    window = (onnx_window){.kernel = {g.kernel_h, g.kernel_w},
                           .strides = {g.stride_h, g.stride_w},
                           .dilations = {1, 1},
                           .pads = {g.pad_top, g.pad_left}};
    for (int i = 0; i < 2; i++) {
        int64_t const in = node->inputs[0]->shape.dims[1 + i], out = node->shape.dims[1 + i];
        int64_t const behind =
            (in - 1) * window.strides[i] + window.kernel[i] - window.pads[i] - out;
        window.pads[2 + i] = behind > 0 ? behind : 0;
        more[i] = behind < 0 ? -behind : 0;
        if (more[i] >= window.strides[i])
            return refuse(w, node, "its output is more than a stride larger than its input");
    }
    onnx_node *made = apply(w, node, "ConvTranspose", ONNX_PLANES);
    onnx_input(&w->m, made, permuted(w, node->inputs[1], onnx_last_first));
    onnx_attr_window(&w->m, made, &window, true);
    if (more[0] || more[1])
        onnx_attr_ints(&w->m, made, "output_padding", 2, more);
    w->values[node->index].product = made;
    take(w, node, made, ONNX_PLANES);
    return QAT_OK;
}

static qat_status window_of(float_writer *w, const qat_node *node, onnx_window *to)
{
    qat_window g;
    qat_status const st = qat_window_of(&g, node, w->err);
    if (st)
        return st;
    *to = (onnx_window){
        .kernel = {g.kernel_h, g.kernel_w},
        .strides = {g.stride_h, g.stride_w},
        .dilations = {g.dilation_h, g.dilation_w},
        .pads = {
            g.pad_top, g.pad_left,
            onnx_pad_behind(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top),
            onnx_pad_behind(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)}};
    return to->pads[2] < 0 || to->pads[3] < 0
               ? refuse(w, node, "it leaves more than a stride of its input unread")
               : QAT_OK;
}

static qat_status write_conv(float_writer *w, const qat_node *node, bool depthwise)
{
    onnx_window window;
    qat_status const st = window_of(w, node, &window);
    if (st)
        return st;
    onnx_node *made = apply(w, node, "Conv", ONNX_PLANES);
    onnx_input(&w->m, made,
               permuted(w, node->inputs[1], depthwise ? onnx_last_first : onnx_to_planes));
    onnx_attr_window(&w->m, made, &window, true);
    onnx_attr_int(&w->m, made, "group",
                  depthwise ? node->inputs[0]->shape.dims[3] : (int64_t)qat_attr(node, "groups"));
    w->values[node->index].product = made;
    take(w, node, made, ONNX_PLANES);
    return QAT_OK;
}

static qat_status conv2d(float_writer *w, const qat_node *node)
{
    return write_conv(w, node, false);
}

static qat_status depthwise_conv2d(float_writer *w, const qat_node *node)
{
    return write_conv(w, node, true);
}

static qat_status fully_connected(float_writer *w, const qat_node *node)
{
    onnx_value *x = in(w, node, 0), rows = *x;
    const qat_node *p = node->inputs[1];
    int64_t const dims[] = {p->shape.dims[0], p->shape.dims[1]};
    onnx_form order = onnx_form_of(x);
    const char *name = onnx_as(&w->m, x, order);
    if (x->rank != 2) {
        rows = (onnx_value){.rank = 2, .dims = {x->dims[0], dims[1]}};
        if (!onnx_is_flattened(x, &rows, &order))
            name = onnx_as(&w->m, x, order = ONNX_PLAIN);
        name = onnx_reshape(&w->m, "rows", name, 2, rows.dims);
    }
    const void *values = order == ONNX_FLAT
                             ? onnx_columns(&w->m, &rows, p->value, sizeof(float), dims[0])
                             : p->value;
    const char *weights = values ? onnx_constant(&w->m, p->name, ONNX_FLOAT, 2, dims, values) : "";
    onnx_node *made = onnx_add(&w->m, "Gemm", (const char *const[]){name, weights, NULL});
    onnx_attr_int(&w->m, made, "transB", 1);
    w->values[node->index].product = made;
    take(w, node, made, ONNX_PLAIN);
    return QAT_OK;
}

/** The nearest whole number, within the table, as a position of Gather. */
static qat_status embedding(float_writer *w, const qat_node *node)
{
    const qat_node *p = node->inputs[1];
    onnx_value *y = value_of(w, node);
    int64_t const dims[] = {p->shape.dims[0], p->shape.dims[1]};
    float const first = 0, last = (float)(dims[0] - 1), half = 0.5f;
    onnx_node *clip = apply(w, node, "Clip", ONNX_PLAIN);
    onnx_input(&w->m, clip, onnx_scalar(&w->m, "bound", ONNX_FLOAT, &first));
    onnx_input(&w->m, clip, onnx_scalar(&w->m, "bound", ONNX_FLOAT, &last));
    const char *number = onnx_output(&w->m, clip, onnx_name(&w->m, "number"));
    number =
        onnx_apply(&w->m, "Add", "number", number, onnx_scalar(&w->m, "half", ONNX_FLOAT, &half));
    onnx_node *cast = onnx_add(&w->m, "Cast", (const char *const[]){number, NULL});
    onnx_attr_int(&w->m, cast, "to", ONNX_S64); /* cuts off what is behind the point */
    const char *const inputs[] = {onnx_constant(&w->m, p->name, ONNX_FLOAT, 2, dims, p->value),
                                  onnx_output(&w->m, cast, onnx_name(&w->m, "position")), NULL};
    onnx_node *gather = onnx_add(&w->m, "Gather", inputs);
    const char *rows = onnx_output(&w->m, gather, onnx_name(&w->m, "row"));
    onnx_set(y, ONNX_PLAIN, onnx_reshape(&w->m, node->name, rows, y->rank, y->dims));
    return QAT_OK;
}

/** Part of the layer before it, if nothing else reads that. */
static qat_status bias(float_writer *w, const qat_node *node)
{
    const float_value *x = &w->values[node->inputs[0]->index];
    onnx_form const form = is_picture(node) ? ONNX_PLANES : ONNX_PLAIN;
    if (x->product && x->readers == 1) {
        onnx_input(&w->m, x->product, param(w, node->inputs[1], false));
        onnx_set(value_of(w, node), form, x->value.as[form]);
        return QAT_OK;
    }
    onnx_node *made = apply(w, node, "Add", form);
    onnx_input(&w->m, made, param(w, node->inputs[1], is_picture(node)));
    take(w, node, made, form);
    return QAT_OK;
}

static qat_status batch_norm(float_writer *w, const qat_node *node)
{
    onnx_form const form = is_picture(node) ? ONNX_PLANES : ONNX_PLAIN;
    onnx_node *made = apply(w, node, "BatchNormalization", form);
    if (node->shape.rank == 3)
        return refuse(w, node, "its input has three dimensions");
    for (int i = 1; i <= 4; i++)
        onnx_input(&w->m, made, param(w, node->inputs[i], false));
    onnx_attr_float(&w->m, made, "epsilon", (float)qat_attr(node, "epsilon"));
    onnx_attr_float(&w->m, made, "momentum", (float)qat_attr(node, "momentum"));
    take(w, node, made, form);
    return QAT_OK;
}

/* ------------------------------------------------------------------ functions */

static qat_status write_clip(float_writer *w, const qat_node *node, float lo, float hi)
{
    onnx_form const form = form_in(w, node);
    onnx_node *made = apply(w, node, lo == 0 && isinf(hi) ? "Relu" : "Clip", form);
    if (lo != 0 || !isinf(hi)) {
        onnx_input(&w->m, made, onnx_scalar(&w->m, "bound", ONNX_FLOAT, &lo));
        onnx_input(&w->m, made, onnx_scalar(&w->m, "bound", ONNX_FLOAT, &hi));
    }
    take(w, node, made, form);
    return QAT_OK;
}

static qat_status clamp(float_writer *w, const qat_node *node)
{
    return write_clip(w, node, node->op->quant->clamp_min, node->op->quant->clamp_max);
}

static qat_status clip(float_writer *w, const qat_node *node)
{
    return write_clip(w, node, (float)qat_attr(node, "min"), (float)qat_attr(node, "max"));
}

static qat_status write_function(float_writer *w, const qat_node *node, const char *op)
{
    onnx_form const form = form_in(w, node);
    take(w, node, apply(w, node, op, form), form);
    return QAT_OK;
}

static qat_status logistic(float_writer *w, const qat_node *node)
{
    return write_function(w, node, "Sigmoid");
}

static qat_status tanh_(float_writer *w, const qat_node *node)
{
    return write_function(w, node, "Tanh");
}

static qat_status hard_swish(float_writer *w, const qat_node *node)
{
    if (w->m.opset < 14)
        return refuse(w, node, "HardSwish needs opset 14");
    return write_function(w, node, "HardSwish");
}

static qat_status same(float_writer *w, const qat_node *node)
{
    return write_function(w, node, "Identity");
}

static qat_status silu(float_writer *w, const qat_node *node)
{
    onnx_form const form = form_in(w, node);
    const char *x = onnx_as(&w->m, in(w, node, 0), form);
    const char *s = onnx_apply(&w->m, "Sigmoid", node->name, x, NULL);
    onnx_set(value_of(w, node), form, onnx_apply(&w->m, "Mul", node->name, x, s));
    return QAT_OK;
}

/** x (1 + erf(x / sqrt(2))) / 2; opset 20 has it as one operator. */
static qat_status gelu(float_writer *w, const qat_node *node)
{
    float const half = 0.5f, one = 1, root_half = 0.70710678f;
    onnx_form const form = form_in(w, node);
    const char *x = onnx_as(&w->m, in(w, node, 0), form);
    if (w->m.opset >= 20)
        return write_function(w, node, "Gelu");
    const char *scaled = onnx_apply(&w->m, "Mul", node->name, x,
                                    onnx_scalar(&w->m, "root_half", ONNX_FLOAT, &root_half));
    const char *erf = onnx_apply(&w->m, "Erf", node->name, scaled, NULL);
    const char *sum =
        onnx_apply(&w->m, "Add", node->name, erf, onnx_scalar(&w->m, "one", ONNX_FLOAT, &one));
    const char *part =
        onnx_apply(&w->m, "Mul", node->name, x, onnx_scalar(&w->m, "half", ONNX_FLOAT, &half));
    onnx_set(value_of(w, node), form, onnx_apply(&w->m, "Mul", node->name, part, sum));
    return QAT_OK;
}

static qat_status leaky_relu(float_writer *w, const qat_node *node)
{
    onnx_form const form = form_in(w, node);
    onnx_node *made = apply(w, node, "LeakyRelu", form);
    onnx_attr_float(&w->m, made, "alpha", (float)qat_attr(node, "alpha"));
    take(w, node, made, form);
    return QAT_OK;
}

static qat_status hard_sigmoid(float_writer *w, const qat_node *node)
{
    onnx_form const form = form_in(w, node);
    onnx_node *made = apply(w, node, "HardSigmoid", form);
    onnx_attr_float(&w->m, made, "alpha", (float)qat_attr(node, "alpha"));
    onnx_attr_float(&w->m, made, "beta", (float)qat_attr(node, "beta"));
    take(w, node, made, form);
    return QAT_OK;
}

static qat_status softmax(float_writer *w, const qat_node *node)
{
    onnx_node *made = apply(w, node, "Softmax", ONNX_PLAIN);
    onnx_attr_int(&w->m, made, "axis", -1);
    take(w, node, made, ONNX_PLAIN);
    return QAT_OK;
}

/* ------------------------------------------------------------------ several inputs, pools, moves
 */

static qat_status write_both(float_writer *w, const qat_node *node, const char *op)
{
    bool const pictures = is_picture(node->inputs[0]) && is_picture(node->inputs[1]);
    onnx_form const form = pictures ? ONNX_PLANES : ONNX_PLAIN;
    onnx_set(value_of(w, node), form,
             onnx_apply(&w->m, op, node->name, onnx_as(&w->m, in(w, node, 0), form),
                        onnx_as(&w->m, in(w, node, 1), form)));
    return QAT_OK;
}

static qat_status add(float_writer *w, const qat_node *node)
{
    return write_both(w, node, "Add");
}

static qat_status sub(float_writer *w, const qat_node *node)
{
    return write_both(w, node, "Sub");
}

static qat_status mul(float_writer *w, const qat_node *node)
{
    return write_both(w, node, "Mul");
}

static qat_status concat(float_writer *w, const qat_node *node)
{
    onnx_form const form = is_picture(node) ? ONNX_PLANES : ONNX_PLAIN;
    const char **names = onnx_take(&w->m, (size_t)node->n_data + 1, sizeof *names);
    for (int i = 0; names && i < node->n_data; i++)
        names[i] = onnx_as(&w->m, in(w, node, i), form);
    onnx_node *made = names ? onnx_add(&w->m, "Concat", names) : NULL;
    int const axis = (int)qat_attr(node, "axis");
    onnx_attr_int(&w->m, made, "axis", onnx_axis(form, axis < 0 ? axis + node->shape.rank : axis));
    take(w, node, made, form);
    return QAT_OK;
}

static qat_status write_pool(float_writer *w, const qat_node *node, const char *op)
{
    onnx_window window;
    qat_status const st = window_of(w, node, &window);
    if (st)
        return st;
    onnx_node *made = apply(w, node, op, ONNX_PLANES);
    onnx_attr_window(&w->m, made, &window, false);
    w->values[node->index].last = made;
    take(w, node, made, ONNX_PLANES);
    return QAT_OK;
}

static qat_status max_pool2d(float_writer *w, const qat_node *node)
{
    return write_pool(w, node, "MaxPool");
}

static qat_status average_pool2d(float_writer *w, const qat_node *node)
{
    qat_status const st = write_pool(w, node, "AveragePool");
    if (!st && qat_attr(node, "count_padding") > 0)
        onnx_attr_int(&w->m, w->values[node->index].last, "count_include_pad", 1);
    return st;
}

static qat_status global_average_pool(float_writer *w, const qat_node *node)
{
    onnx_node *made = apply(w, node, "GlobalAveragePool", ONNX_PLANES);
    const char *name = onnx_output(&w->m, made, onnx_name(&w->m, node->name));
    onnx_value *y = value_of(w, node);
    if (is_picture(node))
        onnx_set(y, ONNX_PLANES, name);
    else
        onnx_set(y, ONNX_PLAIN, onnx_reshape(&w->m, node->name, name, y->rank, y->dims));
    return QAT_OK;
}

static qat_status reshape(float_writer *w, const qat_node *node)
{
    onnx_value *x = in(w, node, 0), *y = value_of(w, node);
    onnx_form order = ONNX_PLAIN;
    bool const flattened = onnx_is_flattened(x, y, &order);
    const char *name = onnx_as(&w->m, x, flattened ? ONNX_PLANES : ONNX_PLAIN);
    onnx_set(y, order, onnx_reshape(&w->m, node->name, name, y->rank, y->dims));
    return QAT_OK;
}

/** The form in which values move: planes, if they stay a picture. */
static onnx_form form_moved(const qat_node *node)
{
    return is_picture(node) && is_picture(node->inputs[0]) ? ONNX_PLANES : ONNX_PLAIN;
}

static const char *ints(float_writer *w, const char *name, int64_t n, const int64_t *values)
{
    return onnx_vector(&w->m, name, ONNX_S64, n, values);
}

static qat_status strided_slice(float_writer *w, const qat_node *node)
{
    onnx_form const form = form_moved(node);
    int const of = (int)qat_attr(node, "axis");
    int64_t const begin = (int64_t)qat_attr(node, "begin"), step = (int64_t)qat_attr(node, "step");
    int64_t const end = begin + step * (node->shape.dims[of] - 1) + 1, axis = onnx_axis(form, of);
    onnx_node *made = apply(w, node, "Slice", form);
    onnx_input(&w->m, made, ints(w, "starts", 1, &begin));
    onnx_input(&w->m, made, ints(w, "ends", 1, &end));
    onnx_input(&w->m, made, ints(w, "axes", 1, &axis));
    onnx_input(&w->m, made, ints(w, "steps", 1, &step));
    take(w, node, made, form);
    return QAT_OK;
}

static qat_status transpose(float_writer *w, const qat_node *node)
{
    static const char *const names[] = {"d1", "d2", "d3"};
    int64_t perm[ONNX_RANK] = {0};
    for (int i = 0; i < 3; i++)
        perm[onnx_axis(ONNX_PLANES, i + 1)] = onnx_axis(ONNX_PLANES, (int)qat_attr(node, names[i]));
    onnx_node *made = apply(w, node, "Transpose", ONNX_PLANES);
    onnx_attr_ints(&w->m, made, "perm", ONNX_RANK, perm);
    take(w, node, made, ONNX_PLANES);
    return QAT_OK;
}

static qat_status pad(float_writer *w, const qat_node *node)
{
    static const char *const before[] = {"top", "left", "front"}, *const behind[] = {
                                                                      "bottom", "right", "back"};
    int64_t pads[2 * ONNX_RANK] = {0};
    for (int i = 0; i < 3; i++) {
        int const axis = onnx_axis(ONNX_PLANES, i + 1);
        pads[axis] = (int64_t)qat_attr(node, before[i]);
        pads[ONNX_RANK + axis] = (int64_t)qat_attr(node, behind[i]);
    }
    onnx_node *made = apply(w, node, "Pad", ONNX_PLANES);
    onnx_input(&w->m, made, ints(w, "pads", 2 * ONNX_RANK, pads));
    take(w, node, made, ONNX_PLANES);
    return QAT_OK;
}

static qat_status write_resize(float_writer *w, const qat_node *node, bool nearest)
{
    const int *x = node->inputs[0]->shape.dims, *y = node->shape.dims;
    bool const corners = qat_attr(node, "align_corners") != 0,
               half = qat_attr(node, "half_pixel_centers") != 0;
    float const factors[] = {1, 1, onnx_factor(x[1], y[1]), onnx_factor(x[2], y[2])};
    onnx_node *made = apply(w, node, "Resize", ONNX_PLANES);
    onnx_input(&w->m, made, "");
    onnx_input(&w->m, made, onnx_vector(&w->m, "factors", ONNX_FLOAT, 4, factors));
    onnx_attr_text(&w->m, made, "mode", nearest ? "nearest" : "linear");
    onnx_attr_text(&w->m, made, "coordinate_transformation_mode",
                   corners ? "align_corners"
                   : half  ? "half_pixel"
                           : "asymmetric");
    if (nearest)
        onnx_attr_text(&w->m, made, "nearest_mode",
                       corners || half ? "round_prefer_ceil" : "floor");
    take(w, node, made, ONNX_PLANES);
    return QAT_OK;
}

static qat_status resize_bilinear(float_writer *w, const qat_node *node)
{
    return write_resize(w, node, false);
}

static qat_status resize_nearest(float_writer *w, const qat_node *node)
{
    return write_resize(w, node, true);
}

static const struct {
    const char *name;
    float_fn *write;
} ops[] = {{"conv2d", conv2d},
           {"depthwise_conv2d", depthwise_conv2d},
           {"transpose_conv2d", transpose_conv2d},
           {"fully_connected", fully_connected},
           {"embedding", embedding},
           {"bias", bias},
           {"batch_norm", batch_norm},
           {"logistic", logistic},
           {"tanh", tanh_},
           {"hard_swish", hard_swish},
           {"silu", silu},
           {"gelu", gelu},
           {"clip", clip},
           {"leaky_relu", leaky_relu},
           {"hard_sigmoid", hard_sigmoid},
           {"softmax", softmax},
           {"add", add},
           {"sub", sub},
           {"mul", mul},
           {"concat", concat},
           {"max_pool2d", max_pool2d},
           {"average_pool2d", average_pool2d},
           {"global_average_pool", global_average_pool},
           {"reshape", reshape},
           {"flatten", reshape},
           {"strided_slice", strided_slice},
           {"transpose", transpose},
           {"pad", pad},
           {"resize_nearest", resize_nearest},
           {"resize_bilinear", resize_bilinear},
           {"dropout", same},
           {"carry", same}};

/* ------------------------------------------------------------------ the whole */

static float_fn *writer_of(const qat_op *op)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, op->name) == 0)
            return ops[i].write;
    return op->quant && op->quant->role == QAT_ROLE_CLAMP ? clamp : NULL;
}

static void describe(float_writer *w, const qat_node *node)
{
    onnx_value *v = value_of(w, node);
    *v = (onnx_value){.name = node->name, .type = ONNX_FLOAT, .rank = node->shape.rank};
    for (int i = 0; i < node->shape.rank; i++)
        v->dims[i] = node->shape.dims[i];
}

static void write_end(float_writer *w, const qat_node *node, bool is_output)
{
    onnx_value *v = value_of(w, node);
    onnx_form const form = is_picture(node) ? ONNX_PLANES : ONNX_PLAIN;
    int64_t dims[ONNX_RANK];
    if (!is_output)
        onnx_set(v, form, onnx_name(&w->m, node->name));
    onnx_dims(v, form, dims);
    const char *name = onnx_as(&w->m, v, form);
    onnx_end(&w->m, is_output, name, ONNX_FLOAT, v->rank, dims);
}

/** Count who reads each node on the way to an output or to a state. */
static void count_readers(const float_writer *w, const qat_graph *graph)
{
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        w->values[qat_graph_output_at(graph, i)->index].readers += 2;
    for (int i = qat_graph_nodes(graph); i-- > 0;) {
        const qat_node *node = qat_graph_node(graph, i);
        w->values[i].readers += 2 * qat_is_carry(node);
        for (int k = 0; w->values[i].readers && k < node->n_inputs; k++)
            w->values[node->inputs[k]->index].readers++;
    }
}

static const char *name_of(const float_writer *w, const qat_node *node)
{
    const onnx_value *v = value_of(w, node);
    return v->as[onnx_form_of(v)];
}

static void write_states(float_writer *w, const qat_graph *graph)
{
    qat_writer text = {0};
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *state = qat_graph_node(graph, i), *next = qat_carry_of(state);
        if (!qat_has_role(state, QAT_ROLE_STATE))
            continue;
        write_end(w, next, true);
        onnx_tell_state(&text, name_of(w, state), name_of(w, next), 0);
    }
    onnx_metadata_text(&w->m, "states", &text);
}

static qat_status write_graph(float_writer *w, const qat_graph *graph)
{
    int const n = qat_graph_nodes(graph);
    w->values = onnx_take(&w->m, (size_t)n, sizeof *w->values);
    if (!w->values)
        return qat_out_of_memory(w->err, "writing ONNX");
    count_readers(w, graph);
    for (int i = 0; i < n; i++) {
        const qat_node *node = qat_graph_node(graph, i);
        describe(w, node);
        if (!w->values[i].readers || node->is_param)
            continue;
        bool const is_input = !node->op || qat_has_role(node, QAT_ROLE_STATE);
        float_fn *write = is_input ? NULL : writer_of(node->op);
        if (is_input)
            write_end(w, node, false);
        else if (!write)
            return refuse(w, node, "no operator of ONNX is known for it");
        qat_status const st = write ? write(w, node) : QAT_OK;
        if (st)
            return st;
    }
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        write_end(w, qat_graph_output_at(graph, i), true);
    write_states(w, graph);
    return QAT_OK;
}

qat_status qat_onnx_write_float(const qat_graph *graph, const qat_write_options *options,
                                uint8_t **bytes, size_t *count, qat_error *err)
{
    float_writer w = {.err = err};
    *bytes = NULL;
    *count = 0;
    w.m.batched = true;
    qat_status st = onnx_begin(&w.m, options, err);
    if (!st)
        st = write_graph(&w, graph);
    if (!st)
        st = onnx_pack(&w.m, "", bytes, count, err);
    qat_arena_free(&w.m.arena);
    return st;
}
