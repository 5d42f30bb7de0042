/** Resize, Upsample: to other heights and widths, where the op has the file's positions. */
#include "foreign/build.h"
#include "foreign/window.h"

#include <math.h>
#include <string.h>

/** What the file says of positions. */
struct resizing {
    const char *place, *rounding; /* coordinate_transformation_mode, nearest_mode */
    bool nearest;
};

/** Positions as autograd/ops/op_resize.c has them. */
struct choice {
    bool align, half;
};

static const struct choice choices[] = {{false, true}, {true, false}, {false, false}};

/** Where ONNX finds output i along an axis. */
static double place_of(const struct resizing *r, int64_t i, int64_t in, int64_t out)
{
    double const ratio = (double)in / (double)out;
    if (!strcmp(r->place, "align_corners"))
        return out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
    if (!strcmp(r->place, "asymmetric"))
        return (double)i * ratio;
    if (!strcmp(r->place, "pytorch_half_pixel") && out < 2)
        return 0;
    return ((double)i + 0.5) * ratio - 0.5;
}

static int64_t rounded(const struct resizing *r, double p, int64_t in)
{
    double const v = !strcmp(r->rounding, "floor")               ? floor(p)
                     : !strcmp(r->rounding, "ceil")              ? ceil(p)
                     : !strcmp(r->rounding, "round_prefer_ceil") ? floor(p + 0.5)
                                                                 : ceil(p - 0.5);
    return v < 0 ? 0 : v >= (double)in ? in - 1 : (int64_t)v;
}

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

static bool agrees(const struct resizing *r, struct choice c, int64_t in, int64_t out)
{
    for (int64_t i = 0; i < out; i++) {
        double const p = place_of(r, i, in, out), q = op_place(c, r->nearest, i, in, out);
        if (r->nearest ? (double)rounded(r, p, in) != q : fabs(p - q) > 1e-4)
            return false;
    }
    return true;
}

/** Sizes of the output: of input 3 or an attribute, or by scales, which must give whole pixels. */
static qat_status sizes_of(builder *b, const fv *x, int64_t *dims)
{
    int64_t given[QAT_FOREIGN_RANK], axes[QAT_FOREIGN_RANK];
    const qat_foreign_tensor *scales = NULL;
    const qat_foreign_attr *listed = fv_attr(b, "scales"); /* of old versions */
    int n;
    qat_status st = fv_ints(b, 3, "sizes", given, QAT_FOREIGN_RANK, &n);
    if (!st && n <= 0)
        st = fv_floats(b, b->node->n_inputs > 2 ? 2 : 1, "scales", &scales);
    if (st)
        return st;
    int const n_axes = fv_attr_ints(b, "axes", axes, QAT_FOREIGN_RANK);
    const float *by = scales ? scales->floats : NULL;
    size_t count = scales ? scales->count : 0;
    if (!count && listed && listed->kind == QAT_FOREIGN_ATTR_FLOATS) {
        by = listed->floats;
        count = listed->n;
    }
    int const numbers = n > 0 ? n : (int)count;
    if (numbers != (n_axes ? n_axes : x->rank))
        return fv_refuse(b, "%d sizes or scales for %d dimensions", numbers, x->rank);
    memcpy(dims, x->dims, sizeof x->dims);
    for (int i = 0; i < numbers; i++) {
        int axis;
        st = fv_axis(b, n_axes ? axes[i] : i, x->rank, &axis);
        if (st)
            return st;
        double const size = n > 0 ? (double)given[i] : (double)x->dims[axis] * (double)by[i];
        dims[axis] = size >= 0.5 && size < 65535.5 ? (int64_t)floor(size + 1e-4) : 0;
        if (fabs(size - (double)dims[axis]) > 1e-3)
            return fv_refuse(b, "dimension %d would have %g positions", axis, size);
        if (axis < 2 && dims[axis] != x->dims[axis])
            return fv_refuse(b, "it changes the batch or the channels");
    }
    return QAT_OK;
}

qat_status fv_resize_of(builder *b, const fv *x, fv_resize *to)
{
    bool const old = b->from->opset < 11;
    struct resizing r = {
        .place =
            fv_attr_text(b, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
        .rounding = fv_attr_text(b, "nearest_mode", old ? "floor" : "round_prefer_floor")};
    const char *mode = fv_attr_text(b, "mode", "nearest");
    r.nearest = to->nearest = !strcmp(mode, "nearest");
    if (x->rank < 3 || x->rank > 4 ||
        (!r.nearest && strncmp(mode, "linear", 6) != 0 && strcmp(mode, "bilinear") != 0))
        return fv_refuse(b, "attribute mode = %.20s for %d dimensions", mode, x->rank);
    if (!strcmp(r.place, "tf_crop_and_resize") || !strcmp(r.place, "half_pixel_symmetric") ||
        fv_attr_int(b, "antialias", 0) ||
        strcmp(fv_attr_text(b, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return fv_refuse(b,
                         "attributes coordinate_transformation_mode = %.24s, antialias, "
                         "keep_aspect_ratio_policy",
                         r.place);
    qat_status const st = sizes_of(b, x, to->dims);
    if (st)
        return st;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        bool agreed = true;
        for (int d = 2; d < x->rank; d++)
            agreed = agreed && agrees(&r, choices[i], x->dims[d], to->dims[d]);
        to->align_corners = choices[i].align;
        to->half_pixel_centers = choices[i].half;
        if (agreed)
            return QAT_OK;
    }
    return fv_refuse(b,
                     "no op has the positions of coordinate_transformation_mode = %.24s and "
                     "nearest_mode = %.24s here",
                     r.place, r.rounding);
}

static qat_status build_resize(builder *b)
{
    qat_node *from;
    fv *in, x;
    fv_resize r;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    st = fv_resize_of(b, &x, &r);
    if (!st)
        st = fv_picture(b, &x, &from);
    if (st)
        return st;
    qat_node *y = fv_add(b, r.nearest ? "resize_nearest" : "resize_bilinear", "", from,
                         "height=%d width=%d align_corners=%s half_pixel_centers=%s",
                         x.rank == 4 ? (int)r.dims[2] : 1, (int)r.dims[x.rank - 1],
                         r.align_corners ? "yes" : "no", r.half_pixel_centers ? "yes" : "no");
    fv const out = fv_channels_last(b, y, x.rank, r.dims);
    fv_output(b, 0, &out);
    return y ? QAT_OK : fv_graph_error(b);
}

const fv_operator fv_resize_operators[] = {
    {"Resize", build_resize},
    {"Upsample", build_resize},
    {NULL, NULL},
};
