/**
 * SPLIT, SPLIT_V, UNPACK, SLICE and STRIDED_SLICE: parts of a tensor. Each part becomes one
 * strided_slice of the engine. A slice of known integers is folded.
 *
 * STRIDED_SLICE has a begin, an end and a stride for some axes, in order. Bits of its masks change
 * their meaning:
 *
 *     begin, end mask   from the first, to the last position (the first also of a shrunk axis)
 *     ellipsis mask     stands for all axes not named, at least one, taken whole
 *     new axis mask     a new dimension of 1
 *     shrink mask       the position at begin alone, and the dimension goes
 *
 * Entries beyond the axes of x and the new axes are ignored, as in the reference.
 */
#include "convert/tflite/import.h"

#include <inttypes.h>
#include <string.h>

/** What is taken along every axis of x, and which dimensions y has. */
struct slice {
    tfl_shape x, taken; /* of one rank */
    tfl_shape y;
    int32_t begin[TFL_MAX_RANK], stride[TFL_MAX_RANK];
};

static void whole(struct slice *s, const tfl_shape *x)
{
    *s = (struct slice){.x = *x, .taken = *x};
    for (int i = 0; i < TFL_MAX_RANK; i++)
        s->stride[i] = 1;
}

/* ------------------------------------------------------------------ appending */

/** The engine's shapes and parameters of a slice. */
static qat_status merge_slice(tfl_importer *im, const struct slice *s, tfl_merged *x,
                              tfl_shape *taken, int32_t params[2 * QI_MAX_RANK])
{
    static const int32_t all[2 * QI_MAX_RANK] = {0, 0, 0, 0, 1, 1, 1, 1};
    unsigned cut = 0;
    for (int d = 0; d < s->x.rank; d++)
        cut |= (unsigned)(s->taken.dims[d] != s->x.dims[d] || s->stride[d] != 1) << d;
    qat_status const st = tfl_merge_cut(im, &s->x, cut, x);
    memcpy(params, all, sizeof all);
    *taken = x->shape;
    for (int d = 0; d < s->x.rank && !st; d++)
        if (cut >> d & 1u || s->x.rank <= QI_MAX_RANK) {
            taken->dims[x->place[d]] = s->taken.dims[d];
            params[x->place[d]] = s->begin[d];
            params[QI_MAX_RANK + x->place[d]] = s->stride[d];
        }
    return st;
}

static qat_status emit_slice(tfl_importer *im, const struct slice *s, int input, int i)
{
    int sliced = -1, output = -1;
    tfl_merged x;
    tfl_shape taken;
    int32_t params[2 * QI_MAX_RANK];
    qat_status st = merge_slice(im, s, &x, &taken, params);
    bool const direct = !st && tfl_same_shape(&taken, &s->y);
    if (!st)
        st = tfl_output(im, i, &s->y, input, &output);
    if (!st)
        st = tfl_view(im, "whole", &s->x, &x.shape, &input);
    if (!st && !direct)
        st = tfl_between(im, "slice", &taken, input, &sliced);
    qat_emit e = tfl_emit(im, 1, &input, direct ? output : sliced);
    e.name = im->model->tensors[im->op->outputs[i]].name;
    if (!st)
        st = qat_require_same_grid(&e, "strided_slice", 0, im->err);
    if (!st)
        st = qat_emit_op(&e, "strided_slice", QI_ROUND_NONE, 2 * QI_MAX_RANK, params, 0, im->err);
    if (st || direct)
        return st;
    qat_emit reshape = tfl_emit(im, 1, &sliced, output);
    return qat_emit_reshape(&reshape, im->err);
}

/* ------------------------------------------------------------------ SPLIT, SPLIT_V, UNPACK */

/**
 * Cut input i along the axis into the operator's outputs, of these sizes. without_axis: the parts
 * are of size 1, and the dimension goes.
 */
static qat_status emit_parts(tfl_importer *im, int i, int axis, const int64_t *sizes,
                             bool without_axis)
{
    struct slice s;
    int input = -1;
    qat_status st = tfl_input(im, i, &input);
    whole(&s, &tfl_value_of(im, i)->shape);
    for (int part = 0; part < im->op->n_outputs && !st; part++) {
        s.taken.dims[axis] = (int32_t)sizes[part];
        s.y = s.taken;
        for (int d = axis + 1; d < s.y.rank && without_axis; d++)
            s.y.dims[d - 1] = s.y.dims[d];
        s.y.rank -= without_axis;
        st = emit_slice(im, &s, input, part);
        s.begin[axis] += (int32_t)sizes[part];
    }
    return st;
}

static qat_status import_split(tfl_importer *im)
{
    tfl_shape x;
    int64_t value, sizes[TFL_MAX_OPERANDS];
    int axis = 0;
    int const parts = im->op->n_outputs;
    qat_status st = tfl_input_shape(im, 1, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_int(im, 0, "its axis", &value);
    if (!st)
        st = tfl_axis(im, value, x.rank, &axis);
    if (!st && (x.dims[axis] % parts || parts != fb_i32(&im->op->options, SPLIT_COUNT, 0)))
        st = tfl_refuse(im, "dimension %d of %d cannot be split into %d parts", axis,
                        (int)x.dims[axis], parts);
    for (int i = 0; i < parts && !st; i++)
        sizes[i] = x.dims[axis] / parts;
    return st ? st : emit_parts(im, 1, axis, sizes, false);
}

/** One size may be -1, which stands for what the others leave. */
static qat_status import_split_v(tfl_importer *im)
{
    tfl_shape x;
    const int64_t *stated;
    int64_t value, sizes[TFL_MAX_OPERANDS], left;
    int axis, count, rest = -1;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_ints(im, 1, "its sizes", &stated, &count);
    if (!st)
        st = tfl_int(im, 2, "its axis", &value);
    if (!st)
        st = tfl_axis(im, value, x.rank, &axis);
    if (!st && (count != im->op->n_outputs || count != fb_i32(&im->op->options, SPLIT_COUNT, 0)))
        st = tfl_refuse(im, "%d sizes for %d outputs", count, im->op->n_outputs);
    if (st)
        return st;
    left = x.dims[axis];
    for (int i = 0; i < count; i++) {
        if (stated[i] < -1 || stated[i] > left || (stated[i] == -1 && rest >= 0))
            return tfl_refuse(im, "a part of %" PRId64 " of dimension %d of %d", stated[i], axis,
                              (int)x.dims[axis]);
        rest = stated[i] == -1 ? i : rest;
        left -= stated[i] == -1 ? 0 : stated[i];
        sizes[i] = stated[i];
    }
    if (rest >= 0)
        sizes[rest] = left;
    else if (left)
        return tfl_refuse(im, "its parts leave %" PRId64 " of dimension %d", left, axis);
    return emit_parts(im, 0, axis, sizes, false);
}

static qat_status import_unpack(tfl_importer *im)
{
    tfl_shape x;
    int64_t sizes[TFL_MAX_OPERANDS];
    int axis;
    int const parts = im->op->n_outputs;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_axis(im, fb_i32(&im->op->options, PACK_AXIS, 0), x.rank, &axis);
    if (!st && x.dims[axis] != parts)
        st = tfl_refuse(im, "dimension %d of %d has not %d positions", axis, (int)x.dims[axis],
                        parts);
    for (int i = 0; i < parts && !st; i++)
        sizes[i] = 1;
    return st ? st : emit_parts(im, 0, axis, sizes, true);
}

/* ------------------------------------------------------------------ STRIDED_SLICE */

/** The operator's three vectors and its masks. */
struct spec {
    const int64_t *begin, *end, *stride;
    int count;
    uint32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask;
    bool end_is_offset;
};

/** Check the masks: at most one ellipsis, no new axis without an entry. */
static qat_status check_masks(tfl_importer *im, const struct spec *p)
{
    uint32_t const ellipsis = p->ellipsis_mask;
    if (ellipsis & (ellipsis - 1) || (ellipsis | p->new_axis_mask) >> p->count)
        return tfl_refuse(im, "its ellipsis mask is %u, its new axis mask %u, for %d entries",
                          ellipsis, p->new_axis_mask, p->count);
    return QAT_OK;
}

static qat_status read_spec(tfl_importer *im, struct spec *p)
{
    const fb_table *o = &im->op->options;
    int n_end = 0, n_stride = 0;
    qat_status st = tfl_ints(im, 1, "its begin", &p->begin, &p->count);
    if (!st)
        st = tfl_ints(im, 2, "its end", &p->end, &n_end);
    if (!st)
        st = tfl_ints(im, 3, "its strides", &p->stride, &n_stride);
    if (!st && (p->count != n_end || p->count != n_stride || p->count > 2 * TFL_MAX_RANK))
        st = tfl_refuse(im, "%d begins, %d ends and %d strides", p->count, n_end, n_stride);
    p->begin_mask = (uint32_t)fb_i32(o, SLICE_BEGIN_MASK, 0);
    p->end_mask = (uint32_t)fb_i32(o, SLICE_END_MASK, 0);
    p->ellipsis_mask = (uint32_t)fb_i32(o, SLICE_ELLIPSIS_MASK, 0);
    p->new_axis_mask = (uint32_t)fb_i32(o, SLICE_NEW_AXIS_MASK, 0);
    p->shrink_mask = (uint32_t)fb_i32(o, SLICE_SHRINK_MASK, 0);
    p->end_is_offset = fb_u8(o, SLICE_OFFSET, 0) != 0;
    return st ? st : check_masks(im, p);
}

/**
 * A position counted from the start, limited to what a walk in the direction of the stride can
 * reach.
 */
static int64_t position(int64_t at, int64_t dim, int64_t stride)
{
    int64_t const from_start = at < 0 ? at + dim : at;
    int64_t const lo = stride > 0 ? 0 : -1, hi = stride > 0 ? dim : dim - 1;
    return from_start < lo ? lo : from_start > hi ? hi : from_start;
}

/**
 * Entry i of the spec for an axis of x with dim positions: where it begins and how many it takes.
 */
static qat_status take(tfl_importer *im, const struct spec *p, int i, int64_t dim, int64_t *begin,
                       int64_t *count)
{
    int64_t const stride = p->stride[i];
    bool const shrink = p->shrink_mask >> i & 1u;
    if (stride == 0 || stride > INT32_MAX || stride < -INT32_MAX || (shrink && stride < 0))
        return tfl_refuse(im, "the stride %" PRId64, stride);
    int64_t const first = stride > 0 ? 0 : dim - 1, past = stride > 0 ? dim : -1;
    *begin = p->begin_mask >> i & 1u ? first : position(p->begin[i], dim, stride);
    *count = 1;
    if (shrink && *begin >= dim)
        return tfl_refuse(im, "position %" PRId64 " of a dimension of %" PRId64, p->begin[i], dim);
    if (shrink)
        return QAT_OK;
    bool const counted = p->end_is_offset && p->end[i] > INT32_MIN && p->end[i] < INT32_MAX;
    int64_t const stated = p->end[i] + (counted ? *begin : 0);
    int64_t const end = p->end_mask >> i & 1u ? past : position(stated, dim, stride);
    int64_t const span = stride > 0 ? end - *begin : *begin - end;
    int64_t const step = stride > 0 ? stride : -stride;
    *count = span > 0 ? (span + step - 1) / step : 0;
    if (*count < 1)
        return tfl_refuse(im, "it takes nothing of a dimension of %" PRId64, dim);
    return QAT_OK;
}

static qat_status add_dim(tfl_importer *im, tfl_shape *y, int64_t dim)
{
    if (y->rank == TFL_MAX_RANK)
        return tfl_refuse(im, "its output has a rank above %d", TFL_MAX_RANK);
    y->dims[y->rank++] = (int32_t)dim;
    return QAT_OK;
}

/** The number of dimensions before any is removed: those of x and the new ones. */
static int dims_with_new(const struct spec *p, const tfl_shape *x)
{
    int dims = x->rank;
    for (int i = 0; i < p->count; i++)
        dims += p->new_axis_mask >> i & ~p->ellipsis_mask >> i & 1u;
    return dims;
}

/**
 * The number of axes of x for which the ellipsis stands: those that no other entry names, at least
 * one.
 */
static int ellipsis_axes(const struct spec *p, const tfl_shape *x)
{
    int const left_over = dims_with_new(p, x) - (p->count - 1);
    return left_over > 1 ? left_over : 1;
}

static qat_status check_axis(tfl_importer *im, const struct slice *s, int axis)
{
    if (axis >= s->taken.rank)
        return tfl_refuse(im, "it names more than the %d axes of its input", s->taken.rank);
    return QAT_OK;
}

static qat_status add_whole(tfl_importer *im, struct slice *s, int *axis, int n)
{
    qat_status st = QAT_OK;
    for (; n > 0 && !st && *axis < s->taken.rank; n--)
        st = add_dim(im, &s->y, s->taken.dims[(*axis)++]);
    return st;
}

static qat_status add_named(tfl_importer *im, const struct spec *p, int i, struct slice *s,
                            int axis)
{
    int64_t begin = 0, count = 1;
    qat_status const st = take(im, p, i, s->taken.dims[axis], &begin, &count);
    if (st)
        return st;
    s->taken.dims[axis] = (int32_t)count;
    s->begin[axis] = (int32_t)begin;
    s->stride[axis] = count > 1 ? (int32_t)p->stride[i] : 1;
    return p->shrink_mask >> i & 1u ? QAT_OK : add_dim(im, &s->y, count);
}

/**
 * Add entry i, at an axis of x unless it is a new axis. Returns the number of dimensions it stands
 * for.
 */
static qat_status add_entry(tfl_importer *im, const struct spec *p, int i, struct slice *s,
                            int *axis, int *stood_for)
{
    bool const ellipsis = p->ellipsis_mask >> i & 1u;
    *stood_for = 1;
    if (p->new_axis_mask >> i & 1u && !ellipsis)
        return add_dim(im, &s->y, 1);
    qat_status const st = check_axis(im, s, *axis);
    if (st)
        return st;
    if (!ellipsis)
        return add_named(im, p, i, s, (*axis)++);
    *stood_for = ellipsis_axes(p, &s->taken);
    return add_whole(im, s, axis, *stood_for);
}

static qat_status resolve(tfl_importer *im, const struct spec *p, const tfl_shape *x,
                          struct slice *s)
{
    qat_status st = QAT_OK;
    int axis = 0, room = dims_with_new(p, x), stood_for = 0;
    whole(s, x);
    for (int i = 0; i < p->count && room > 0 && !st; i++, room -= stood_for)
        st = add_entry(im, p, i, s, &axis, &stood_for);
    return st ? st : add_whole(im, s, &axis, x->rank);
}

/** Slice known integers, which must be vectors. */
static qat_status fold_slice(tfl_importer *im, const struct slice *s)
{
    int64_t taken[TFL_MAX_KNOWN_INTS];
    const int64_t *values;
    int count;
    qat_status const st = tfl_ints(im, 0, "its input", &values, &count);
    if (st)
        return st;
    if (s->taken.rank != 1)
        return tfl_refuse(im, "its input is an integer constant of rank %d", s->taken.rank);
    for (int i = 0; i < s->taken.dims[0]; i++)
        taken[i] = values[s->begin[0] + i * s->stride[0]];
    return tfl_fold(im, 0, &s->y, taken);
}

static qat_status import_strided_slice(tfl_importer *im)
{
    tfl_shape x;
    struct spec p = {0};
    struct slice s;
    int input = -1;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = read_spec(im, &p);
    if (!st)
        st = resolve(im, &p, &x, &s);
    if (!st && tfl_is_known(im, 0))
        return fold_slice(im, &s);
    if (!st)
        st = tfl_input(im, 0, &input);
    return st ? st : emit_slice(im, &s, input, 0);
}

/* ------------------------------------------------------------------ SLICE */

/** A size of -1 reaches to the end. */
static qat_status import_slice(tfl_importer *im)
{
    tfl_shape x;
    struct slice s;
    const int64_t *begin, *size;
    int n_begin, n_size, input = -1;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_ints(im, 1, "its begin", &begin, &n_begin);
    if (!st)
        st = tfl_ints(im, 2, "its size", &size, &n_size);
    if (!st && (n_begin != x.rank || n_size != x.rank))
        st = tfl_refuse(im, "%d begins and %d sizes for rank %d", n_begin, n_size, x.rank);
    if (st)
        return st;
    whole(&s, &x);
    for (int i = 0; i < x.rank; i++) {
        int64_t const left = begin[i] < 0 || begin[i] > x.dims[i] ? 0 : x.dims[i] - begin[i];
        int64_t const taken = size[i] == -1 ? left : size[i];
        if (taken < 1 || taken > left)
            return tfl_refuse(im, "begin %" PRId64 ", size %" PRId64 " of a dimension of %d",
                              begin[i], size[i], (int)x.dims[i]);
        s.begin[i] = (int32_t)begin[i];
        s.taken.dims[i] = (int32_t)taken;
    }
    s.y = s.taken;
    if (tfl_is_known(im, 0))
        return fold_slice(im, &s);
    st = tfl_input(im, 0, &input);
    return st ? st : emit_slice(im, &s, input, 0);
}

const tfl_handler tfl_slice_handlers[] = {
    {TFL_SPLIT, TFL_OPTIONS_SPLIT, 2, 2, 0, import_split},
    {TFL_SPLIT_V, TFL_OPTIONS_SPLIT_V, 3, 3, 0, import_split_v},
    {TFL_UNPACK, TFL_OPTIONS_UNPACK, 1, 1, 0, import_unpack},
    {TFL_SLICE, TFL_OPTIONS_SLICE, 3, 3, 1, import_slice},
    {TFL_STRIDED_SLICE, TFL_OPTIONS_STRIDED_SLICE, 4, 4, 1, import_strided_slice},
    {0}};
