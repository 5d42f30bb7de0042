#include "foreign/ops/resize.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ positions */

double fv_resize_place(const fv_resize *r, int axis, int64_t i, int64_t in)
{
    double const scale = r->scale[axis], whole = scale * (double)in, n = (double)(in - 1);
    int64_t const out = r->dims[axis];
    if (!strcmp(r->place, "align_corners"))
        return whole == 1 ? 0 : (double)i * n / (whole - 1);
    if (!strcmp(r->place, "asymmetric"))
        return (double)i / scale;
    if (!strcmp(r->place, "tf_half_pixel_for_nn"))
        return ((double)i + 0.5) / scale;
    if (!strcmp(r->place, "tf_crop_and_resize")) {
        double const begin = r->begin[axis], end = r->end[axis];
        return out > 1 ? begin * n + (double)i * (end - begin) * n / (double)(out - 1)
                       : 0.5 * (begin + end) * n;
    }
    if (!strcmp(r->place, "pytorch_half_pixel") && out < 2)
        return 0;
    double const half = ((double)i + 0.5) / scale - 0.5;
    return strcmp(r->place, "half_pixel_symmetric") != 0
               ? half
               : half + (double)in / 2 * (1 - (double)out / whole);
}

int64_t fv_resize_nearest(const fv_resize *r, double p, int64_t in)
{
    double const v = !strcmp(r->rounding, "floor")               ? floor(p)
                     : !strcmp(r->rounding, "ceil")              ? ceil(p)
                     : !strcmp(r->rounding, "round_prefer_ceil") ? floor(p + 0.5)
                                                                 : ceil(p - 0.5);
    return v < 0 ? 0 : v >= (double)in ? in - 1 : (int64_t)v;
}

/* ------------------------------------------------------------------ those of the ops */

/** Positions as autograd/ops/op_resize.c has them. */
struct choice {
    bool align, half;
};

static const struct choice choices[] = {{false, true}, {true, false}, {false, false}};

/** The op's position for output i; bilinear: before it is cut into pixels and shares. */
static double op_place(struct choice c, bool nearest, int64_t i, int64_t in, int64_t out)
{
    bool const align = c.align && out > 1;
    float const ratio = align ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    float const p = (c.half ? (float)i + 0.5F : (float)i) * ratio;
    if (!nearest)
        return c.half ? (double)p - 0.5 : (double)p;
    double const near = (double)(c.align ? roundf(p) : floorf(p));
    return near < (double)in ? near : (double)(in - 1);
}

/** No position that lies outside and is no edge, no other weights than those of two pixels. */
static bool is_plain(const fv_resize *r)
{
    return r->filter != FV_CUBIC && !r->antialias && !r->excludes &&
           strcmp(r->place, "tf_crop_and_resize") != 0;
}

static bool agrees(const fv_resize *r, struct choice c, int axis, int64_t in)
{
    bool const nearest = r->filter == FV_NEAREST;
    for (int64_t i = 0; i < r->dims[axis]; i++) {
        double const p = fv_resize_place(r, axis, i, in);
        double const q = op_place(c, nearest, i, in, r->dims[axis]);
        if (nearest ? (double)fv_resize_nearest(r, p, in) != q : fabs(p - q) > 1e-4)
            return false;
    }
    return true;
}

static void find_op(const fv *x, fv_resize *r)
{
    bool const pictures = x->rank == 3 || x->rank == 4;
    r->is_op = false;
    for (int i = 0; i < 2 && i < x->rank; i++)
        if (!pictures || r->dims[i] != x->dims[i])
            return;
    for (size_t i = 0; i < sizeof choices / sizeof *choices && is_plain(r) && !r->is_op; i++) {
        r->is_op = pictures;
        for (int d = 2; d < x->rank; d++)
            r->is_op = r->is_op && agrees(r, choices[i], d, x->dims[d]);
        r->align_corners = choices[i].align;
        r->half_pixel_centers = choices[i].half;
    }
}

/* ------------------------------------------------------------------ sizes */

/** What is given for each of some dimensions: sizes, scales, the begin and end of a part. */
struct given {
    int n; /* dimensions */
    int axes[QAT_FOREIGN_RANK];
    bool are_sizes;
    double numbers[QAT_FOREIGN_RANK];
};

static qat_status check_count(const builder *b, const struct given *g, const char *what, size_t n)
{
    return n == (size_t)g->n ? QAT_OK : fv_refuse(b, "%zu %s for %d dimensions", n, what, g->n);
}

/** Sizes of input 3; or scales of input 2 (of old versions 1), or of an attribute. */
static qat_status numbers_of(builder *b, struct given *g)
{
    int64_t sizes[QAT_FOREIGN_RANK];
    const qat_foreign_tensor *scales = NULL;
    const qat_foreign_attr *listed = fv_attr(b, "scales");
    int n;
    qat_status st = fv_ints(b, 3, "sizes", sizes, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    g->are_sizes = n > 0;
    if (g->are_sizes) {
        st = check_count(b, g, "sizes", (size_t)n);
        for (int i = 0; i < n && !st; i++)
            g->numbers[i] = (double)sizes[i];
        return st;
    }
    st = fv_floats(b, b->node->n_inputs > 2 ? 2 : 1, "scales", &scales);
    if (st)
        return st;
    bool const is_attr =
        !(scales && scales->count) && listed && listed->kind == QAT_FOREIGN_ATTR_FLOATS;
    const float *by = is_attr ? listed->floats : scales ? scales->floats : NULL;
    st = check_count(b, g, "scales", is_attr ? listed->n : scales ? scales->count : 0);
    for (int i = 0; i < g->n && !st; i++)
        g->numbers[i] = (double)by[i];
    return st;
}

/** One scale for all: that of the dimension that grows least, or most. */
static void keep_ratio(const builder *b, const fv *x, struct given *g, bool smaller)
{
    double scale = 0;
    for (int i = 0; i < g->n; i++) {
        double const s = g->numbers[i] / (double)x->dims[g->axes[i]];
        scale = i == 0 || (smaller ? s < scale : s > scale) ? s : scale;
    }
    for (int i = 0; i < g->n; i++)
        g->numbers[i] = floor(scale * (double)x->dims[g->axes[i]] + 0.5);
}

/** The first number that is none; NULL: all are finite. */
static const float *not_finite(const float *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(numbers[i]))
            return &numbers[i];
    return NULL;
}

static qat_status sizes_of(builder *b, const fv *x, fv_resize *r)
{
    int64_t axes[QAT_FOREIGN_RANK];
    const qat_foreign_tensor *roi = NULL;
    const char *policy = fv_attr_text(b, "keep_aspect_ratio_policy", "stretch");
    bool const crops = !strcmp(r->place, "tf_crop_and_resize");
    struct given g = {.n = x->rank};
    int const n_axes = fv_attr_ints(b, "axes", axes, QAT_FOREIGN_RANK);
    qat_status st = n_axes > x->rank ? fv_refuse(b, "attribute axes: %d numbers", n_axes) : QAT_OK;
    g.n = n_axes ? n_axes : x->rank;
    for (int i = 0; i < g.n && !st; i++)
        st = fv_axis(b, n_axes ? axes[i] : i, x->rank, &g.axes[i]);
    if (!st)
        st = numbers_of(b, &g);
    if (!st && crops)
        st = fv_floats(b, 1, "roi", &roi);
    if (!st && crops)
        st = check_count(b, &g, "pairs of roi", roi ? roi->count / 2 : 0);
    if (!st && crops && not_finite(roi->floats, roi->count))
        st = fv_refuse(b, "roi holds %g", (double)*not_finite(roi->floats, roi->count));
    if (st)
        return st;
    if (g.are_sizes && strcmp(policy, "stretch") != 0)
        keep_ratio(b, x, &g, !strcmp(policy, "not_larger"));
    memcpy(r->dims, x->dims, sizeof x->dims);
    for (int i = 0; i < x->rank; i++)
        r->scale[i] = r->end[i] = 1;
    for (int i = 0; i < g.n; i++) {
        int const axis = g.axes[i];
        double const in = (double)x->dims[axis];
        double const size = g.are_sizes ? g.numbers[i] : in * g.numbers[i];
        if (!(size >= 0.5) || !(size < 65535.5))
            return fv_refuse(b, "dimension %d would have %g positions", axis, size);
        r->dims[axis] = (int64_t)floor(size + 1e-4) > 0 ? (int64_t)floor(size + 1e-4) : 1;
        r->scale[axis] = g.are_sizes ? (double)r->dims[axis] / in : g.numbers[i];
        if (crops) {
            r->begin[axis] = (double)roi->floats[i];
            r->end[axis] = (double)roi->floats[g.n + i];
        }
        if (axis < fv_first(x) && r->dims[axis] != x->dims[axis])
            return fv_refuse(b, "it changes the batch, the first dimension");
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ all of it */

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(text, *list))
            return true;
    return false;
}

static qat_status check_texts(const builder *b, const fv_resize *r, const char *mode)
{
    static const char *const modes[] = {"nearest", "linear", "bilinear", "cubic", NULL};
    static const char *const places[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    if (!is_one_of(mode, modes))
        return fv_refuse(b, "attribute mode = %.20s", mode);
    if (!is_one_of(r->place, places))
        return fv_refuse(b, "attribute coordinate_transformation_mode = %.24s", r->place);
    if (!is_one_of(r->rounding, roundings))
        return fv_refuse(b, "attribute nearest_mode = %.24s", r->rounding);
    return QAT_OK;
}

qat_status fv_resize_of(builder *b, const fv *x, fv_resize *r)
{
    bool const old = b->from->opset < 11;
    const char *mode = fv_attr_text(b, "mode", "nearest");
    *r = (fv_resize){
        .filter = !strcmp(mode, "nearest") ? FV_NEAREST
                  : !strcmp(mode, "cubic") ? FV_CUBIC
                                           : FV_LINEAR,
        .place =
            fv_attr_text(b, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
        .rounding = fv_attr_text(b, "nearest_mode", old ? "floor" : "round_prefer_floor"),
        .cubic_a = fv_attr_real(b, "cubic_coeff_a", -0.75),
        .excludes = fv_attr_int(b, "exclude_outside", 0) != 0,
        .antialias = fv_attr_int(b, "antialias", 0) != 0,
        .outside = (float)fv_attr_real(b, "extrapolation_value", 0)};
    qat_status st = check_texts(b, r, mode);
    if (!st && !(isfinite(r->cubic_a) && isfinite(r->outside)))
        st = fv_refuse(b, "attribute cubic_coeff_a or extrapolation_value: %g, %g", r->cubic_a,
                       (double)r->outside);
    if (!st)
        st = sizes_of(b, x, r);
    if (!st)
        find_op(x, r);
    return st;
}
