/** Resizing in the form integer: Gather of the engine's positions, and its weights. */
#include "export/onnx/write.h"
#include "infer/arithmetic/positions.h"

#include <math.h>

enum { ROWS = 2, COLUMNS }; /* axes of planes */

static qi_axis axis_of(const onnx_writer *w, const qi_node *node, int axis)
{
    return (qi_axis){.in = (int32_t)onnx_in(w, node, 0)->value.dims[axis - 1],
                     .out = (int32_t)onnx_out(w, node)->value.dims[axis - 1],
                     .align_corners = onnx_param(node, "align_corners"),
                     .half_pixel = onnx_param(node, "half_pixel_centers")};
}

/** The rows or columns of x at these positions. */
static const char *taken(onnx_writer *w, const char *x, int axis, int n, const int64_t *positions)
{
    const char *const inputs[] = {x, onnx_vector(&w->m, "positions", ONNX_S64, n, positions), NULL};
    onnx_node *node = onnx_add(&w->m, "Gather", inputs);
    onnx_attr_int(&w->m, node, "axis", axis);
    return onnx_output(&w->m, node, onnx_name(&w->m, "Gather"));
}

qat_status onnx_integer_nearest(onnx_writer *w, const qi_node *node)
{
    const char *x = onnx_as(&w->m, &onnx_in(w, node, 0)->value, ONNX_PLANES);
    for (int axis = ROWS; axis <= COLUMNS; axis++) {
        qi_axis const a = axis_of(w, node, axis);
        int64_t *positions = onnx_take(&w->m, (size_t)a.out, sizeof *positions);
        for (int i = 0; positions && i < a.out; i++)
            positions[i] = qi_nearest_position(&a, i);
        if (positions)
            x = taken(w, x, axis, a.out, positions);
    }
    onnx_coded(w, node, ONNX_PLANES, x);
    return QAT_OK;
}

/** Of an axis: what lies before and behind each output position, and the two weights. */
typedef struct places {
    int axis, n;
    int64_t *at[2], whole;  /* the sum of two weights */
    const char *weights[2]; /* constants; of float for uint8, whose rule has floats */
} places;

typedef qi_place place_fn(const qi_axis *a, int32_t i);

/** Weights are float with qi_float_place. */
static places places_of(onnx_writer *w, const qi_node *node, int axis, place_fn *place_of)
{
    onnx_type const type = place_of == qi_float_place ? ONNX_FLOAT : ONNX_S64;
    qi_axis const a = axis_of(w, node, axis);
    int64_t const dims[] = {a.out, 1};
    places p = {.axis = axis, .n = a.out, .weights = {"", ""}};
    for (int side = 0; side < 2; side++) {
        int64_t *fixed = onnx_take(&w->m, (size_t)a.out, sizeof *fixed);
        float *real = onnx_take(&w->m, (size_t)a.out, sizeof *real);
        p.at[side] = onnx_take(&w->m, (size_t)a.out, sizeof *p.at[side]);
        if (w->m.failed)
            return p;
        for (int i = 0; i < a.out; i++) {
            qi_place const place = place_of(&a, i);
            p.whole = (int64_t)place.fixed[0] + place.fixed[1];
            p.at[side][i] = side ? place.upper : place.lower;
            fixed[i] = place.fixed[side];
            real[i] = ldexpf((float)place.weight[side].mant, place.weight[side].exp);
        }
        p.weights[side] = onnx_constant(&w->m, "weights", type, axis == ROWS ? 2 : 1, dims,
                                        type == ONNX_FLOAT ? (const void *)real : fixed);
    }
    return p;
}

/** x at the places before or behind, times the weights. */
static const char *share(onnx_writer *w, const places *p, int side, const char *x)
{
    return w->m.failed
               ? ""
               : onnx_both(w, "Mul", taken(w, x, p->axis, p->n, p->at[side]), p->weights[side]);
}

/** The sum of codes times two weights each; whole: what the weights sum to. */
static const char *blended(onnx_writer *w, const qi_node *node, place_fn *place_of, const char *x,
                           int64_t *whole)
{
    *whole = 1;
    for (int axis = ROWS; axis <= COLUMNS; axis++) {
        places const p = places_of(w, node, axis, place_of);
        x = onnx_both(w, "Add", share(w, &p, 0, x), share(w, &p, 1, x));
        *whole *= p.whole;
    }
    return x;
}

/** 10 fractional bits along each axis. */
static const char *blend_fixed(onnx_writer *w, const qi_node *node, const char *x)
{
    int64_t whole;
    x = blended(w, node, qi_fixed_place, x, &whole);
    int64_t const half = whole / 2;
    return onnx_divided(w, x, onnx_scalar(&w->m, "number", ONNX_S64, &half),
                        onnx_scalar(&w->m, "number", ONNX_S64, &whole));
}

/** Exact weights, half up: (2 x + whole + 256 whole) / (2 whole) - 128 of no negative numbers. */
static const char *blend_exact(onnx_writer *w, const qi_node *node, const char *x)
{
    int64_t whole;
    x = onnx_with(w, "Mul", blended(w, node, qi_exact_place, x, &whole), 2);
    x = onnx_with(w, "Div", onnx_with(w, "Add", x, 257 * whole), 2 * whole);
    return onnx_with(w, "Sub", x, 128);
}

/** Exact weights, half to the even code; float64 holds the sums. */
static const char *blend_even(onnx_writer *w, const qi_node *node, const char *x)
{
    int64_t whole;
    x = onnx_cast(w, blended(w, node, qi_exact_place, x, &whole), ONNX_DOUBLE);
    double const by = (double)whole;
    return onnx_nearest_even(
        w, onnx_both(w, "Div", x, onnx_scalar(&w->m, "number", ONNX_DOUBLE, &by)));
}

/** The reference's operations of float32, in its order. */
static const char *blend_float(onnx_writer *w, const qi_node *node, const char *x)
{
    places const v = places_of(w, node, ROWS, qi_float_place);
    places const h = places_of(w, node, COLUMNS, qi_float_place);
    float const half = 0.5f;
    const char *sum = NULL;
    const char *lines[] = {share(w, &v, 0, x), share(w, &v, 1, x)};
    for (int i = 0; i < 4; i++) {
        const char *term = share(w, &h, i / 2, lines[i % 2]);
        sum = sum ? onnx_both(w, "Add", sum, term) : term;
    }
    sum = onnx_both(w, "Add", sum, onnx_scalar(&w->m, "number", ONNX_FLOAT, &half));
    return onnx_cast(w, onnx_both(w, "Floor", sum, NULL), ONNX_S64);
}

qat_status onnx_integer_bilinear(onnx_writer *w, const qi_node *node)
{
    onnx_tensor *x = onnx_in(w, node, 0), *y = onnx_out(w, node);
    bool const is_exact = node->rounding != QI_ROUND_NONE;
    const char *blend =
        is_exact || x->of->type == QI_S8
            ? (node->rounding == QI_ROUND_ONCE ? blend_exact
               : node->rounding == QI_ROUND_EVEN
                   ? blend_even
                   : blend_fixed)(w, node, onnx_codes_from(w, x, ONNX_PLANES, 0))
            : blend_float(w, node,
                          onnx_cast(w, onnx_as(&w->m, &x->value, ONNX_PLANES), ONNX_FLOAT));
    onnx_coded(w, node, ONNX_PLANES, onnx_code_of(w, y, 0, blend));
    return QAT_OK;
}
