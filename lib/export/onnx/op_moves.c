/** Ops that move codes. */
#include "export/onnx/write.h"

/** Pictures stay planes; others keep our order. */
static onnx_form form_moved(const onnx_writer *w, const qi_node *node)
{
    bool const pictures =
        onnx_in(w, node, 0)->value.rank == ONNX_RANK && onnx_out(w, node)->value.rank == ONNX_RANK;
    return pictures ? ONNX_PLANES : ONNX_PLAIN;
}

static void take_moved(onnx_writer *w, const qi_node *node, onnx_node *made, onnx_form form)
{
    onnx_arrived(w, node, form,
                 onnx_output(&w->m, made, onnx_name(&w->m, onnx_out(w, node)->of->name)));
}

/** An operator whose first input is the node's. */
static onnx_node *moving(onnx_writer *w, const qi_node *node, const char *op, onnx_form form)
{
    return onnx_add(&w->m, op, (const char *const[]){onnx_moved(w, node, 0, form), NULL});
}

static qat_status concat(onnx_writer *w, const qi_node *node)
{
    onnx_form const form = form_moved(w, node);
    const char **inputs = onnx_take(&w->m, (size_t)node->n_inputs + 1, sizeof *inputs);
    for (int i = 0; inputs && i < node->n_inputs; i++)
        inputs[i] = onnx_moved(w, node, i, form);
    onnx_node *made = inputs ? onnx_add(&w->m, "Concat", inputs) : NULL;
    onnx_attr_int(&w->m, made, "axis", onnx_axis(form, onnx_param(node, "axis")));
    take_moved(w, node, made, form);
    return QAT_OK;
}

static qat_status reshape(onnx_writer *w, const qi_node *node)
{
    onnx_value *x = &onnx_in(w, node, 0)->value, *y = &onnx_out(w, node)->value;
    onnx_form order = ONNX_PLAIN;
    bool const flattened = onnx_is_flattened(x, y, &order);
    const char *moved = onnx_moved(w, node, 0, flattened ? ONNX_PLANES : ONNX_PLAIN);
    onnx_arrived(w, node, order, onnx_reshape(&w->m, y->name, moved, y->rank, y->dims));
    return QAT_OK;
}

/** A constant of one number for each axis, in the form's order. */
static void add_axes(onnx_writer *w, onnx_node *made, const char *name, int rank, onnx_form form,
                     const int64_t *values, int n)
{
    int64_t ordered[2 * ONNX_RANK];
    for (int k = 0; k < n; k++)
        for (int i = 0; i < rank; i++)
            ordered[k * rank + onnx_axis(form, i)] = values[k * ONNX_RANK + i];
    onnx_input(&w->m, made, onnx_vector(&w->m, name, ONNX_S64, (int64_t)n * rank, ordered));
}

static qat_status pad(onnx_writer *w, const qi_node *node)
{
    onnx_form const form = form_moved(w, node);
    const onnx_tensor *y = onnx_out(w, node);
    int64_t pads[2 * ONNX_RANK];
    int32_t const code = onnx_param(node, "value");
    float const real = y->scale * (float)(code - y->of->zero_point);
    onnx_node *made = moving(w, node, "Pad", form);
    for (int i = 0; i < 2 * ONNX_RANK; i++)
        pads[i] = node->params[i];
    add_axes(w, made, "pads", y->value.rank, form, pads, 2);
    onnx_input(&w->m, made,
               onnx_moves_reals(w, node) ? onnx_scalar(&w->m, "value", ONNX_FLOAT, &real)
                                         : onnx_code(w, y, "value", code));
    take_moved(w, node, made, form);
    return QAT_OK;
}

static qat_status strided_slice(onnx_writer *w, const qi_node *node)
{
    onnx_form const form = form_moved(w, node);
    const onnx_value *y = &onnx_out(w, node)->value;
    int64_t starts[ONNX_RANK], ends[ONNX_RANK], axes[ONNX_RANK], steps[ONNX_RANK];
    int n = 0;
    for (int i = 0; i < y->rank; i++) {
        int64_t const begin = node->params[i], step = node->params[ONNX_RANK + i];
        int64_t const end = begin + step * (y->dims[i] - 1) + (step > 0 ? 1 : -1);
        if (begin == 0 && step == 1 && y->dims[i] == onnx_in(w, node, 0)->value.dims[i])
            continue;
        starts[n] = begin;
        ends[n] = end < 0 ? INT64_MIN + 1 : end;
        axes[n] = onnx_axis(form, i);
        steps[n++] = step;
    }
    onnx_node *made = moving(w, node, n ? "Slice" : "Identity", form);
    if (n) {
        onnx_input(&w->m, made, onnx_vector(&w->m, "starts", ONNX_S64, n, starts));
        onnx_input(&w->m, made, onnx_vector(&w->m, "ends", ONNX_S64, n, ends));
        onnx_input(&w->m, made, onnx_vector(&w->m, "axes", ONNX_S64, n, axes));
        onnx_input(&w->m, made, onnx_vector(&w->m, "steps", ONNX_S64, n, steps));
    }
    take_moved(w, node, made, form);
    return QAT_OK;
}

static qat_status transpose(onnx_writer *w, const qi_node *node)
{
    onnx_form const form = form_moved(w, node);
    int const rank = onnx_out(w, node)->value.rank;
    int64_t perm[ONNX_RANK];
    for (int i = 0; i < rank; i++)
        perm[onnx_axis(form, i)] = onnx_axis(form, node->params[i]);
    onnx_node *made = moving(w, node, "Transpose", form);
    onnx_attr_ints(&w->m, made, "perm", rank, perm);
    take_moved(w, node, made, form);
    return QAT_OK;
}

static qat_status write_resize(onnx_writer *w, const qi_node *node, bool nearest)
{
    const onnx_value *x = &onnx_in(w, node, 0)->value, *y = &onnx_out(w, node)->value;
    bool const corners = onnx_param(node, "align_corners"),
               half = onnx_param(node, "half_pixel_centers");
    float const factors[] = {1, 1, onnx_factor(x->dims[1], y->dims[1]),
                             onnx_factor(x->dims[2], y->dims[2])};
    onnx_node *made =
        nearest
            ? moving(w, node, "Resize", ONNX_PLANES)
            : onnx_add(&w->m, "Resize",
                       (const char *const[]){onnx_real(w, onnx_in(w, node, 0), ONNX_PLANES), NULL});
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
    const char *name = onnx_output(&w->m, made, onnx_name(&w->m, y->name));
    (nearest ? onnx_arrived : onnx_quantized)(w, node, ONNX_PLANES, name);
    return QAT_OK;
}

static qat_status blending_resize(onnx_writer *w, const qi_node *node)
{
    return write_resize(w, node, false);
}

static qat_status resize_bilinear(onnx_writer *w, const qi_node *node)
{
    return onnx_of_codes(w, node, blending_resize);
}

static qat_status resize_nearest(onnx_writer *w, const qi_node *node)
{
    return write_resize(w, node, true);
}

/** The position of the largest code; of several, the first. */
static qat_status arg_max(onnx_writer *w, const qi_node *node)
{
    onnx_value *x = &onnx_in(w, node, 0)->value, *y = &onnx_out(w, node)->value;
    onnx_node *made =
        onnx_add(&w->m, "ArgMax", (const char *const[]){onnx_as(&w->m, x, ONNX_PLAIN), NULL});
    onnx_attr_int(&w->m, made, "axis", onnx_param(node, "axis"));
    onnx_attr_int(&w->m, made, "keepdims", x->rank == 1);
    const char *name = onnx_output(&w->m, made, onnx_name(&w->m, y->name));
    if (y->type != ONNX_S64) {
        onnx_node *cast = onnx_add(&w->m, "Cast", (const char *const[]){name, NULL});
        onnx_attr_int(&w->m, cast, "to", y->type);
        name = onnx_output(&w->m, cast, onnx_name(&w->m, y->name));
    }
    onnx_set(y, ONNX_PLAIN, name);
    return QAT_OK;
}

const onnx_op onnx_moves[] = {{"concat", concat},
                              {"reshape", reshape},
                              {"pad", pad},
                              {"strided_slice", strided_slice},
                              {"transpose", transpose},
                              {"resize_bilinear", resize_bilinear},
                              {"resize_nearest", resize_nearest},
                              {"arg_max", arg_max},
                              {NULL, NULL}};
