/** Operators that move values or rename dimensions. */
#include "foreign/build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ other dimensions */

static qat_status give_reshaped(builder *b, const fv *in, int rank, const int64_t *dims)
{
    fv x = *in;
    qat_status const st = fv_reshape(b, &x, rank, dims);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

/** A shape that counts the outputs of the old last layer counts those of the new one. */
static void follow_head(const builder *b, const fv *x, int n, int64_t *dims)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++)
        product =
            dims[i] > 0 && dims[i] <= INT32_MAX && product <= INT32_MAX ? product * dims[i] : 0;
    if (!b->head_was || product == fv_count(x) * x->size[0])
        return;
    for (int i = 0; i < n; i++) { /* dimension 0 last: it may be a batch of as many */
        int64_t *dim = &dims[(i + 1) % n];
        if (*dim == b->head_was && (dim > dims || !fv_first(x))) {
            *dim = b->options->head;
            return;
        }
    }
}

static qat_status build_reshape(builder *b)
{
    fv *x;
    int n, unknown = -1;
    int64_t dims[QAT_FOREIGN_RANK], known = 1;
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_ints(b, 1, "shape", dims, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    if (n < 1)
        return fv_refuse(b, "it has no shape");
    bool const zero_copies = !fv_attr_int(b, "allowzero", 0);
    for (int i = 0; i < n; i++) {
        if (dims[i] == 0 && zero_copies && i < x->rank)
            dims[i] = x->dims[i];
        if (dims[i] == -1)
            unknown = i;
    }
    follow_head(b, x, n, dims);
    for (int i = 0; i < n; i++)
        if (i != unknown && (dims[i] <= 0 || dims[i] > INT32_MAX || (known *= dims[i]) > INT32_MAX))
            return fv_refuse(b, "shape: %lld is not a dimension", (long long)dims[i]);
    if (unknown >= 0)
        dims[unknown] = fv_count(x) * x->size[0] / known;
    return give_reshaped(b, x, n, dims);
}

static qat_status build_flatten(builder *b)
{
    fv *x;
    int axis;
    qat_status st = fv_data(b, 0, &x);
    if (st)
        return st;
    int64_t const given = fv_attr_int(b, "axis", 1);
    st = given == x->rank ? QAT_OK : fv_axis(b, given, x->rank, &axis);
    if (st)
        return st;
    axis = given == x->rank ? x->rank : axis;
    if (fv_first(x) && axis != 1 && (axis == 0 || axis == x->rank))
        return fv_refuse(b, "attribute axis = %lld: it would flatten the batch", (long long)given);
    int64_t dims[] = {1, 1};
    for (int i = 0; i < x->rank; i++)
        dims[i >= axis] *= x->dims[i];
    return give_reshaped(b, x, 2, dims);
}

static qat_status build_squeeze(builder *b)
{
    fv *x;
    int n = 0, rank = 0;
    int64_t axes[QAT_FOREIGN_RANK], dims[QAT_FOREIGN_RANK];
    bool removed[QAT_FOREIGN_RANK] = {false};
    qat_status st = fv_data(b, 0, &x);
    if (!st)
        st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, &n);
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], x->rank, &axis);
        if (!st && x->dims[axis] != 1)
            return fv_refuse(b, "axes: dimension %d is %lld", axis, (long long)x->dims[axis]);
        if (!st)
            removed[axis] = true;
    }
    if (st)
        return st;
    for (int i = 0; i < x->rank; i++)
        if (!(n < 0 ? x->dims[i] == 1 && (i > 0 || !b->is_open) : removed[i]))
            dims[rank++] = x->dims[i];
    return give_reshaped(b, x, rank, dims);
}

qat_status fv_unsqueezed(builder *b, const int64_t *from, int *rank, int64_t *dims)
{
    int n;
    int64_t axes[QAT_FOREIGN_RANK];
    bool added[QAT_FOREIGN_RANK] = {false};
    qat_status st = fv_ints(b, 1, "axes", axes, QAT_FOREIGN_RANK, &n);
    if (st)
        return st;
    if (n < 0)
        return fv_refuse(b, "axes are not given");
    *rank += n;
    if (*rank > QAT_FOREIGN_RANK)
        return fv_refuse(b, "axes: %d dimensions would be too many", *rank);
    for (int i = 0; i < n && !st; i++) {
        int axis;
        st = fv_axis(b, axes[i], *rank, &axis);
        if (!st && added[axis])
            return fv_refuse(b, "axes: %d is named twice", axis);
        if (!st)
            added[axis] = true;
    }
    for (int i = 0, k = 0; i < *rank && !st; i++)
        dims[i] = added[i] ? 1 : from[k++];
    return st;
}

static qat_status build_unsqueeze(builder *b)
{
    fv *x;
    int64_t dims[QAT_FOREIGN_RANK];
    qat_status st = fv_data(b, 0, &x);
    int rank = st ? 0 : x->rank;
    if (!st)
        st = fv_unsqueezed(b, x->dims, &rank, dims);
    return st ? st : give_reshaped(b, x, rank, dims);
}

static qat_status build_transpose(builder *b)
{
    fv *in, x;
    int64_t given[QAT_FOREIGN_RANK];
    int perm[QAT_FOREIGN_RANK], seen = 0;
    qat_status st = fv_data(b, 0, &in);
    if (st)
        return st;
    x = *in;
    int const n = fv_attr_ints(b, "perm", given, QAT_FOREIGN_RANK);
    for (int i = 0; i < x.rank; i++) {
        int64_t const axis = n ? given[i < n ? i : 0] : x.rank - 1 - i;
        if (axis < 0 || axis >= x.rank || (n && n != x.rank) || seen >> axis & 1)
            return fv_refuse(b, "attribute perm does not list the %d dimensions of the input",
                             x.rank);
        perm[i] = (int)axis;
        seen |= 1 << axis;
    }
    st = fv_permute(b, &x, perm);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

/* ------------------------------------------------------------------ blocks of pixels */

/** Reshape to six dimensions, reorder these, and reshape again. */
static qat_status regroup(builder *b, fv *x, const int64_t six[6], const int perm[6],
                          const int64_t four[4])
{
    qat_status st = fv_reshape(b, x, 6, six);
    if (!st)
        st = fv_permute(b, x, perm);
    if (!st)
        st = fv_reshape(b, x, 4, four);
    if (!st)
        fv_output(b, 0, x);
    return st;
}

/** A picture, and the side of its blocks, which divides two of its dimensions or the channels. */
static qat_status blocks_of(builder *b, bool divides_channels, fv *x, int64_t *side)
{
    fv *in;
    qat_status const st = fv_data(b, 0, &in);
    if (st)
        return st;
    *x = *in;
    *side = fv_attr_int(b, "blocksize", 0);
    bool const good = x->rank == 4 && *side >= 1 && *side <= 1024 &&
                      (divides_channels ? x->dims[1] % (*side * *side) == 0
                                        : x->dims[2] % *side == 0 && x->dims[3] % *side == 0);
    return good ? QAT_OK
                : fv_refuse(b, "attribute blocksize = %lld for an input of %d dimensions",
                            (long long)*side, x->rank);
}

static qat_status build_depth_to_space(builder *b)
{
    fv x;
    int64_t s;
    qat_status const st = blocks_of(b, true, &x, &s);
    if (st)
        return st;
    const int64_t *d = x.dims;
    int64_t const c = d[1] / (s * s), four[] = {d[0], c, d[2] * s, d[3] * s};
    if (!strcmp(fv_attr_text(b, "mode", "DCR"), "CRD"))
        return regroup(b, &x, (const int64_t[]){d[0], c, s, s, d[2], d[3]},
                       (const int[]){0, 1, 4, 2, 5, 3}, four);
    return regroup(b, &x, (const int64_t[]){d[0], s, s, c, d[2], d[3]},
                   (const int[]){0, 3, 4, 1, 5, 2}, four);
}

static qat_status build_space_to_depth(builder *b)
{
    fv x;
    int64_t s;
    qat_status const st = blocks_of(b, false, &x, &s);
    if (st)
        return st;
    const int64_t *d = x.dims;
    int64_t const h = d[2] / s, w = d[3] / s;
    return regroup(b, &x, (const int64_t[]){d[0], d[1], h, s, w, s},
                   (const int[]){0, 3, 5, 1, 2, 4}, (const int64_t[]){d[0], d[1] * s * s, h, w});
}

const fv_operator fv_shape_operators[] = {
    {"Reshape", build_reshape},
    {"Flatten", build_flatten},
    {"Squeeze", build_squeeze},
    {"Unsqueeze", build_unsqueeze},
    {"Transpose", build_transpose},
    {"DepthToSpace", build_depth_to_space},
    {"SpaceToDepth", build_space_to_depth},
    {NULL, NULL},
};
