/*
 * Makes a model of one node in memory and runs it with the driver of conv2d and rounding
 * QI_ROUND_NONE.
 */
#include "infer/host/sums.h"
#include "infer/host/loops/fast.h"

#include <stdlib.h>
#include <string.h>

enum { X, W, BIAS, MULT, SHIFT, SUMS, TENSORS };

struct qi_sums {
    qi_window window;
    int32_t groups;
    const qi_isa *isa;
    qi_model model;
    qi_node node;
    qi_tensor tensors[TENSORS];
    int32_t params[QI_CONV_CLAMP_HI + 1], zero; /* zero: a multiplier that is never used */
    int32_t *bias;                              /* [O] zeros */
    void *packed;                               /* NULL: plain loops */
    size_t packed_bytes;
};

static const int32_t inputs[] = {X, W, BIAS, MULT, SHIFT}, outputs[] = {SUMS};

static qi_tensor tensor(qi_tensor_kind kind, qi_type type, int32_t d0, int32_t d1, int32_t d2,
                        int32_t d3, const void *data)
{
    return (qi_tensor){.kind = (uint8_t)kind,
                       .type = (uint8_t)type,
                       .bits = type == QI_S32 ? 32 : 8,
                       .rank = 4,
                       .dims = {d0, d1, d2, d3},
                       .channel_scales = -1,
                       .data = data};
}

static void describe(qi_sums *s, const qi_type types[2])
{
    const qi_window *g = &s->window;
    int32_t const params[] = {
        [QI_CONV_STRIDE_H] = g->stride_h,     [QI_CONV_STRIDE_W] = g->stride_w,
        [QI_CONV_DILATION_H] = g->dilation_h, [QI_CONV_DILATION_W] = g->dilation_w,
        [QI_CONV_PAD_TOP] = g->pad_top,       [QI_CONV_PAD_LEFT] = g->pad_left,
        [QI_CONV_GROUPS] = s->groups,         [QI_CONV_CLAMP_HI] = 0};
    memcpy(s->params, params, sizeof params);
    qi_tensor *t = s->tensors;
    t[X] = tensor(QI_ACTIVATION, types[0], g->n, g->h, g->w, g->c, NULL);
    t[W] = tensor(QI_CONSTANT, types[1], g->o, g->kernel_h, g->kernel_w, g->c / s->groups, NULL);
    t[BIAS] = tensor(QI_CONSTANT, QI_S32, g->o, 1, 1, 1, s->bias);
    t[MULT] = t[SHIFT] = tensor(QI_CONSTANT, QI_S32, 1, 1, 1, 1, &s->zero);
    t[SUMS] = tensor(QI_ACTIVATION, QI_S32, g->n, g->oh, g->ow, g->o, NULL);
    s->node = (qi_node){.kernel = &qi_kernel_conv2d,
                        .name = "sums",
                        .inputs = inputs,
                        .outputs = outputs,
                        .params = s->params,
                        .n_inputs = QI_ACC_INPUTS,
                        .n_outputs = 1,
                        .n_params = QI_CONV_CLAMP_HI + 1,
                        .rounding = QI_ROUND_NONE};
    s->model = (qi_model){.tensors = s->tensors, .nodes = &s->node, .n_tensors = TENSORS};
    s->model.n_nodes = 1;
}

qi_sums *qi_sums_make(const qi_window *window, int32_t groups, const qi_type types[2])
{
    qi_sums *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->window = *window;
    s->groups = groups;
    s->isa = qi_isa_best();
    s->bias = calloc((size_t)window->o, sizeof *s->bias);
    if (!s->bias) {
        qi_sums_free(s);
        return NULL;
    }
    describe(s, types);
    return s;
}

void qi_sums_free(qi_sums *s)
{
    if (!s)
        return;
    free(s->bias);
    free(s->packed);
    free(s);
}

/* ------------------------------------------------------------------ one step's weights */

/** Make room for `need` bytes and the slack after them. */
static qi_status reserve(qi_sums *s, size_t need)
{
    size_t const bytes = (need + QI_SLACK + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
    if (s->packed && s->packed_bytes >= bytes)
        return QI_OK;
    free(s->packed);
    s->packed = aligned_alloc(QI_FAST_ALIGN, bytes);
    s->packed_bytes = bytes;
    return s->packed ? QI_OK : QI_ERR_NOMEM;
}

static int is_product(const qi_sums *s)
{
    return qi_fast_conv2d.accepts(s->isa, &s->model, &s->node);
}

qi_status qi_sums_set(qi_sums *s, int32_t n, const int32_t zero_points[2], const uint8_t *w)
{
    s->window.n = s->tensors[X].dims[0] = s->tensors[SUMS].dims[0] = n;
    s->tensors[X].zero_point = zero_points[0];
    s->tensors[W].zero_point = zero_points[1];
    s->tensors[W].data = w;
    if (!is_product(s))
        return QI_OK;
    qi_status const st = reserve(s, qi_fast_conv2d.packed_bytes(s->isa, &s->model, &s->node));
    if (!st)
        qi_fast_conv2d.pack(s->isa, &s->model, &s->node, s->packed);
    return st;
}

int32_t qi_sums_tiles(const qi_sums *s)
{
    return is_product(s) ? qi_fast_conv2d.tiles(s->isa, &s->model, &s->node)
                         : s->window.n * s->window.oh;
}

size_t qi_sums_scratch(const qi_sums *s)
{
    return is_product(s) ? qi_fast_conv2d.scratch(s->isa, &s->model, &s->node) : 0;
}

/* ------------------------------------------------------------------ plain loops */

static int32_t dot(const uint8_t *x, qi_codes xc, const uint8_t *w, qi_codes wc, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += ((x[i] ^ xc.flip) - xc.offset) * ((w[i] ^ wc.flip) - wc.offset);
    return sum;
}

/** One sum: output channel o of the window whose taps inside the picture are ty and tx. */
static int32_t plain_sum(const qi_sums *s, const uint8_t *picture, qi_taps ty, qi_taps tx,
                         int32_t o)
{
    const qi_window *g = &s->window;
    int32_t const depth = g->c / s->groups, group = o / (g->o / s->groups);
    qi_codes const xc = qi_codes_of(&s->tensors[X]), wc = qi_codes_of(&s->tensors[W]);
    const uint8_t *w = s->tensors[W].data;
    int32_t sum = 0;
    for (int32_t ky = ty.first; ky < ty.end; ky++)
        for (int32_t kx = tx.first; kx < tx.end; kx++) {
            size_t const y = (size_t)(ty.start + ky * g->dilation_h);
            size_t const x = (size_t)(tx.start + kx * g->dilation_w);
            size_t const pixel = (y * (size_t)g->w + x) * (size_t)g->c;
            size_t const tap =
                ((size_t)o * (size_t)g->kernel_h + (size_t)ky) * (size_t)g->kernel_w + (size_t)kx;
            sum += dot(picture + pixel + group * depth, xc, w + tap * (size_t)depth, wc, depth);
        }
    return sum;
}

/** One row of outputs, counted over [N, OH]. */
static void plain_row(const qi_sums *s, const uint8_t *x, int32_t *sums, int32_t row)
{
    const qi_window *g = &s->window;
    size_t const size = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    const uint8_t *picture = x + (size_t)(row / g->oh) * size;
    int32_t *to = sums + (size_t)row * (size_t)g->ow * (size_t)g->o;
    qi_taps const ty =
        qi_taps_at(row % g->oh, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->h);
    for (int32_t ox = 0; ox < g->ow; ox++) {
        qi_taps const tx =
            qi_taps_at(ox, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->w);
        for (int32_t o = 0; o < g->o; o++)
            *to++ = plain_sum(s, picture, ty, tx, o);
    }
}

void qi_sums_run(const qi_sums *s, const uint8_t *x, int32_t *sums, void *scratch, int32_t tile)
{
    if (!is_product(s)) {
        plain_row(s, x, sums, tile);
        return;
    }
    qi_fast_call const call = {.isa = s->isa,
                               .model = &s->model,
                               .node = &s->node,
                               .in = {x, s->tensors[W].data, s->bias, &s->zero, &s->zero},
                               .out = sums,
                               .packed = s->packed,
                               .scratch = scratch};
    qi_fast_run_tiles(&qi_fast_conv2d, &call, tile, tile + 1);
}
