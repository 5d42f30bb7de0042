/**
 * Operators that move codes: PAD, PADV2, TRANSPOSE, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR,
 * GATHER; and ARG_MAX, which gives the position of the largest.
 *
 * Others are made of these. TILE and MIRROR_PAD gather along one axis after the other. Blocks of
 * pixels become channels or batches, and back, as two neighbouring dims change places:
 *
 *     SPACE_TO_DEPTH     [N h, b, w, b C]   -> [N h, w, b, b C]
 *     DEPTH_TO_SPACE     [N h, w, b, b C]   -> [N h, b, w, b C]
 *     SPACE_TO_BATCH_ND  [N h b, w, c, C]   -> [N h b, c, w, C],   [N h, b c, w C] -> [b c, N h, w
 * C] BATCH_TO_SPACE_ND  [b c, N h, w C] -> [N h, b c, w C],       [N h b, c, w, C] -> [N h b, w, c,
 * C]
 */
#include "convert/tflite/import.h"

#include <inttypes.h>
#include <string.h>

/** Codes do not change: the op ignores scales, but not zero points. */
static qat_status emit_move(tfl_importer *im, const char *op, int input, int output, int n_params,
                            const int32_t *params)
{
    qat_emit const e = tfl_emit(im, 1, &input, output);
    qat_status const st = qat_require_same_grid(&e, op, 0, im->err);
    return st ? st : qat_emit_op(&e, op, QI_ROUND_NONE, n_params, params, 0, im->err);
}

/** Take *tensor as [a, b, c, d], and let b and c change places. */
static qat_status swap(tfl_importer *im, int32_t a, int32_t b, int32_t c, int32_t d, int *tensor)
{
    static const int32_t perm[] = {0, 2, 1, 3};
    int const input = *tensor;
    int before = -1, after = -1;
    qat_status st = tfl_between(im, "blocks", &(tfl_shape){4, {a, b, c, d}}, input, &before);
    qat_emit const view = tfl_emit(im, 1, &input, before);
    if (!st)
        st = qat_emit_reshape(&view, im->err);
    if (!st)
        st = tfl_between(im, "swapped", &(tfl_shape){4, {a, c, b, d}}, input, &after);
    if (!st)
        st = emit_move(im, "transpose", before, after, QI_MAX_RANK, perm);
    *tensor = after;
    return st;
}

/* ------------------------------------------------------------------ PAD, PADV2 */

enum { PAD_BEFORE = 0, PAD_AFTER = QI_MAX_RANK, PAD_VALUE = 2 * QI_MAX_RANK, PAD_PARAMS };

/** Read before and after of `axes` axes from `first` on, input i; y is x enlarged by them. */
static qat_status read_pads(tfl_importer *im, int input, int first, int axes, const tfl_shape *x,
                            tfl_shape *y, int32_t params[PAD_PARAMS])
{
    const int64_t *pads;
    int count = 0;
    qat_status const st = tfl_ints(im, input, "its paddings", &pads, &count);
    if (st)
        return st;
    if (count != 2 * axes)
        return tfl_refuse(im, "%d paddings for rank %d", count, x->rank);
    *y = *x;
    for (int i = first; i < first + axes; i++) {
        int64_t const before = pads[2 * (i - first)], after = pads[2 * (i - first) + 1];
        if (before < 0 || after < 0 || before > INT16_MAX || after > INT16_MAX)
            return tfl_refuse(im, "paddings %" PRId64 " and %" PRId64 " of dimension %d", before,
                              after, i);
        params[PAD_BEFORE + i] = (int32_t)before;
        params[PAD_AFTER + i] = (int32_t)after;
        y->dims[i] += (int32_t)(before + after);
    }
    return QAT_OK;
}

/** Read PADV2's third input: one code on the output's grid. */
static qat_status read_pad_value(tfl_importer *im, int output, int32_t *code)
{
    int value;
    *code = im->graph->tensors[output].zero_point;
    if (im->op->code == TFL_PAD)
        return QAT_OK;
    qat_status const st = tfl_input(im, 2, &value);
    if (st)
        return st;
    const qat_qtensor *v = &im->graph->tensors[value], *y = &im->graph->tensors[output];
    if (!v->data || qat_qtensor_count(v) != 1 || v->type != y->type ||
        v->zero_point != y->zero_point)
        return tfl_refuse(im, "its value, %s, is not a constant on the grid of its output",
                          v->name);
    *code = (int32_t)qi_value_at(v->type, v->data, 0);
    return QAT_OK;
}

static qat_status import_pad(tfl_importer *im)
{
    tfl_shape x, y;
    int32_t params[PAD_PARAMS] = {0};
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = read_pads(im, 1, 0, x.rank, &x, &y, params);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    if (!st)
        st = read_pad_value(im, output, &params[PAD_VALUE]);
    return st ? st : emit_move(im, "pad", input, output, PAD_PARAMS, params);
}

/* ------------------------------------------------------------------ TRANSPOSE */

static qat_status read_permutation(tfl_importer *im, const tfl_shape *x, tfl_shape *y,
                                   int32_t perm[TFL_MAX_RANK])
{
    const int64_t *values;
    int count, axis;
    unsigned seen = 0;
    qat_status st = tfl_ints(im, 1, "its permutation", &values, &count);
    if (!st && count != x->rank)
        st = tfl_refuse(im, "a permutation of %d axes for rank %d", count, x->rank);
    y->rank = x->rank;
    for (int i = 0; i < TFL_MAX_RANK; i++)
        perm[i] = i;
    for (int i = 0; i < count && !st; i++) {
        st = tfl_axis(im, values[i], x->rank, &axis);
        if (st)
            break;
        if (seen >> axis & 1u)
            return tfl_refuse(im, "its permutation names axis %d twice", axis);
        seen |= 1u << axis;
        perm[i] = axis;
        y->dims[i] = x->dims[axis];
    }
    return st;
}

/** Axes that stay neighbours become one. order: the merged axes, as they come in the output. */
static void merge_permuted(const tfl_shape *x, const int32_t perm[], tfl_merged *m,
                           int order[TFL_MAX_RANK])
{
    int kinds[TFL_MAX_RANK] = {0}, rank = 0, from[TFL_MAX_RANK], number[TFL_MAX_RANK] = {0};
    unsigned seen = 0;
    for (int d = 0, n = 0; d < x->rank; d++)
        number[d] = x->dims[d] > 1 ? n++ : n; /* among the axes that are not 1 */
    for (int i = 0; i < x->rank; i++)
        if (x->dims[perm[i]] > 1)
            from[rank++] = perm[i];
    for (int i = 0; i < rank; i++)
        kinds[from[i]] = TFL_MAX_RANK + i - number[from[i]];
    tfl_merge(x, kinds, m);
    for (int i = 0, n = 0; i < rank; i++) {
        int const axis = m->place[from[i]];
        if (!(seen >> axis & 1u))
            order[n++] = axis;
        seen |= 1u << axis;
    }
}

/** The last axis of the output comes to the front first, then the one before it, and so on. */
static qat_status permute(tfl_importer *im, const tfl_shape *x, const int order[], int *tensor)
{
    tfl_shape now = *x;
    int axes[TFL_MAX_RANK];
    qat_status st = QAT_OK;
    for (int d = 0; d < x->rank; d++)
        axes[d] = d;
    for (int i = x->rank - 1; i >= 0 && !st; i--) {
        int32_t before = 1, behind = 1;
        int at = 0;
        while (axes[at] != order[i])
            before *= now.dims[at++];
        for (int d = at + 1; d < now.rank; d++)
            behind *= now.dims[d];
        st = swap(im, 1, before, now.dims[at], behind, tensor);
        memmove(axes + 1, axes, (size_t)at * sizeof *axes);
        memmove(now.dims + 1, now.dims, (size_t)at * sizeof *now.dims);
        axes[0] = order[i];
        now.dims[0] = x->dims[order[i]];
    }
    return st;
}

/** A permutation of more axes than the engine has. */
static qat_status transpose_many(tfl_importer *im, const tfl_shape *x, const tfl_shape *y,
                                 const int32_t perm[], int input)
{
    tfl_merged m;
    tfl_shape moved;
    int order[TFL_MAX_RANK] = {0}, output;
    int32_t params[QI_MAX_RANK] = {0, 1, 2, 3};
    qat_status st = QAT_OK;
    merge_permuted(x, perm, &m, order);
    moved = m.shape;
    if (m.shape.rank > QI_MAX_RANK) {
        st = permute(im, &m.shape, order, &input);
        return st ? st : tfl_view_output(im, 0, y, input);
    }
    for (int i = 0; i < m.shape.rank; i++) {
        params[i] = order[i];
        moved.dims[i] = m.shape.dims[order[i]];
    }
    st = tfl_view(im, "whole", x, &m.shape, &input);
    if (!st)
        st = tfl_between(im, "moved", &moved, input, &output);
    if (!st)
        st = emit_move(im, "transpose", input, output, QI_MAX_RANK, params);
    return st ? st : tfl_view_output(im, 0, y, output);
}

static qat_status import_transpose(tfl_importer *im)
{
    tfl_shape x, y;
    int32_t perm[TFL_MAX_RANK];
    int input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = read_permutation(im, &x, &y, perm);
    if (st || x.rank > QI_MAX_RANK)
        return st ? st : transpose_many(im, &x, &y, perm, input);
    st = tfl_output(im, 0, &y, input, &output);
    return st ? st : emit_move(im, "transpose", input, output, QI_MAX_RANK, perm);
}

/* ------------------------------------------------------------------ REVERSE_V2 */

/** Slices from the last position to the first. */
static qat_status import_reverse(tfl_importer *im)
{
    tfl_shape x;
    const int64_t *axes;
    int count, axis, input = -1, output = -1;
    int32_t params[2 * QI_MAX_RANK] = {0, 0, 0, 0, 1, 1, 1, 1};
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_ints(im, 1, "its axes", &axes, &count);
    for (int i = 0; !st && i < count; i++) {
        st = tfl_axis(im, axes[i], x.rank, &axis);
        if (!st) {
            params[axis] = x.dims[axis] - 1;
            params[QI_MAX_RANK + axis] = -1;
        }
    }
    if (!st)
        st = tfl_output(im, 0, &x, input, &output);
    return st ? st : emit_move(im, "strided_slice", input, output, 2 * QI_MAX_RANK, params);
}

/* ------------------------------------------------------------------ RESIZE */

static qat_status import_resize(tfl_importer *im, const char *op, int align_corners,
                                int half_pixel_centers)
{
    const fb_table *o = &im->op->options;
    int32_t const params[] = {fb_u8(o, align_corners, 0) != 0,
                              fb_u8(o, half_pixel_centers, 0) != 0};
    tfl_shape x;
    const int64_t *size;
    int count, input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 4, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_ints(im, 1, "its new size", &size, &count);
    if (!st &&
        (count != 2 || size[0] < 1 || size[1] < 1 || size[0] > UINT16_MAX || size[1] > UINT16_MAX))
        st = tfl_refuse(im, "its new size is not two numbers of 1 to %d", UINT16_MAX);
    if (st)
        return st;
    x.dims[1] = (int32_t)size[0];
    x.dims[2] = (int32_t)size[1];
    st = tfl_output(im, 0, &x, input, &output);
    return st ? st : emit_move(im, op, input, output, 2, params);
}

static qat_status import_resize_bilinear(tfl_importer *im)
{
    return import_resize(im, "resize_bilinear", RESIZE_BILINEAR_ALIGN_CORNERS,
                         RESIZE_BILINEAR_HALF_PIXEL);
}

static qat_status import_resize_nearest(tfl_importer *im)
{
    return import_resize(im, "resize_nearest", RESIZE_NEAREST_ALIGN_CORNERS,
                         RESIZE_NEAREST_HALF_PIXEL);
}

/* ------------------------------------------------------------------ GATHER, GATHER_ND */

static qat_status emit_gather(tfl_importer *im, int input, int indices, int axis, int batch_dims,
                              int output)
{
    int const inputs[] = {input, indices};
    int32_t const params[] = {axis, batch_dims};
    qat_emit const e = tfl_emit(im, 2, inputs, output);
    qat_status const st = qat_require_same_grid(&e, "gather", 0, im->err);
    return st ? st : qat_emit_op(&e, "gather", QI_ROUND_NONE, 2, params, 0, im->err);
}

/** Make a constant of indices; the caller fills it. */
static qat_status new_indices(tfl_importer *im, int32_t count, int32_t **values, int *tensor)
{
    qat_qtensor t = {.type = QI_S32, .bits = 32, .scale = 1.0f, .source_index = -1};
    size_t const bytes = (size_t)count * sizeof **values;
    qat_status const st = tfl_take_room(im, im->op->inputs[0], bytes, &t.data);
    qat_part_name(t.name, im->model->tensors[im->op->outputs[0]].name, "indices");
    *values = t.data;
    return st ? st : tfl_append(im, &t, &(tfl_shape){1, {count}}, tensor);
}

/** Input i: integers of an activation, or of a constant, which must be positions. */
static qat_status read_indices(tfl_importer *im, int i, int32_t length, int *tensor)
{
    const int64_t *known = NULL;
    int count = 0;
    qat_status st = tfl_is_known(im, i) ? tfl_ints(im, i, "its indices", &known, &count) : QAT_OK;
    for (int k = 0; k < count && !st; k++)
        if (known[k] < 0 || known[k] >= length)
            st = tfl_refuse(im, "index %" PRId64 " of a dimension of %d", known[k], (int)length);
    if (!st)
        st = tfl_integers(im, i, tensor);
    if (!st && qi_type_has_codes(im->graph->tensors[*tensor].type))
        st = tfl_refuse(im, "its indices are %s", tfl_type_name(tfl_tensor_of(im, i)->type));
    return st;
}

/** The first batch_dims dims of indices and x are the same, and are one in y. */
static qat_status gathered_shape(tfl_importer *im, const tfl_shape *x, const tfl_shape *indices,
                                 int axis, int batch_dims, tfl_shape *y)
{
    if (batch_dims < 0 || batch_dims > axis || batch_dims > indices->rank ||
        memcmp(x->dims, indices->dims, (size_t)batch_dims * sizeof *x->dims) != 0)
        return tfl_refuse(im, "%d batch dimensions, which its inputs do not share", batch_dims);
    *y = (tfl_shape){.rank = x->rank - 1 + indices->rank - batch_dims};
    if (y->rank > TFL_MAX_RANK)
        return tfl_refuse(im, "its output has rank %d; at most %d is supported", y->rank,
                          TFL_MAX_RANK);
    for (int d = 0; d < y->rank; d++) {
        int const of_indices = d - axis + batch_dims, behind = d - y->rank + x->rank;
        y->dims[d] = d < axis         ? x->dims[d]
                     : behind <= axis ? indices->dims[of_indices]
                                      : x->dims[behind];
    }
    return QAT_OK;
}

static qat_status import_gather(tfl_importer *im)
{
    tfl_shape x, shape, y;
    int axis, batch_dims = fb_i32(&im->op->options, GATHER_BATCH_DIMS, 0);
    int input = -1, indices = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input_shape(im, 1, 0, 4, &shape);
    if (!st)
        st = tfl_axis(im, fb_i32(&im->op->options, GATHER_AXIS, 0), x.rank, &axis);
    if (st)
        return st;
    batch_dims += batch_dims < 0 ? shape.rank : 0;
    st = gathered_shape(im, &x, &shape, axis, batch_dims, &y);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = read_indices(im, 1, x.dims[axis], &indices);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    return st ? st : emit_gather(im, input, indices, axis, batch_dims, output);
}

/** Rows of a table, input 1, by their numbers, input 0. */
static qat_status import_embedding_lookup(tfl_importer *im)
{
    tfl_shape rows, x, y;
    int input = -1, indices = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, 1, &rows);
    if (!st)
        st = tfl_input_shape(im, 1, 2, QI_MAX_RANK, &x);
    if (!st)
        st = tfl_input(im, 1, &input);
    if (!st)
        st = read_indices(im, 0, x.dims[0], &indices);
    if (st)
        return st;
    y = x;
    y.dims[0] = rows.dims[0];
    st = tfl_output(im, 0, &y, input, &output);
    return st ? st : emit_gather(im, input, indices, 0, 0, output);
}

/** Each row of input 1 holds a position in the first `depth` axes of x: one position in them as one
 * axis. */
static qat_status flat_indices(tfl_importer *im, const tfl_shape *x, int depth, int *tensor)
{
    const int64_t *at;
    int32_t *values = NULL;
    int count;
    qat_status st = tfl_ints(im, 1, "its indices", &at, &count);
    if (!st)
        st = new_indices(im, count / depth, &values, tensor);
    for (int i = 0; i < count && !st; i++) {
        int32_t const length = x->dims[i % depth], before = i % depth ? values[i / depth] : 0;
        if (at[i] < 0 || at[i] >= length)
            return tfl_refuse(im, "index %" PRId64 " of a dimension of %d", at[i], (int)length);
        values[i / depth] = before * length + (int32_t)at[i];
    }
    return st;
}

static qat_status import_gather_nd(tfl_importer *im)
{
    tfl_shape x, shape, y, rows = {2, {1, 1}};
    int input = -1, indices = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_input_shape(im, 1, 1, TFL_MAX_RANK, &shape);
    if (st)
        return st;
    int const depth = shape.dims[shape.rank - 1];
    if (depth < 1 || depth > x.rank || shape.rank - 1 + x.rank - depth > TFL_MAX_RANK)
        return tfl_refuse(im, "indices of %d of %d axes, in rank %d", depth, x.rank, shape.rank);
    y = shape;
    y.rank--;
    for (int d = 0; d < x.rank; d++) {
        rows.dims[d >= depth] *= x.dims[d];
        if (d >= depth)
            y.dims[y.rank++] = x.dims[d];
    }
    st = tfl_input(im, 0, &input);
    if (!st)
        st = depth == 1 ? read_indices(im, 1, x.dims[0], &indices)
                        : flat_indices(im, &x, depth, &indices);
    if (!st)
        st = tfl_output(im, 0, &y, input, &output);
    if (!st)
        st = tfl_view(im, "rows", &x, &rows, &input);
    return st ? st : emit_gather(im, input, indices, 0, 0, output);
}

/* ------------------------------------------------------------------ TILE, MIRROR_PAD */

/** What lies behind the ends of an axis. The first two are MIRROR_PAD's modes. */
enum { REFLECTED, SYMMETRIC, AGAIN };

/** The position of an axis of n whose codes come to position `at`, counted from its begin. */
static int32_t source_of(int mode, int32_t at, int32_t n)
{
    int32_t const edge = mode == SYMMETRIC; /* the outermost code comes twice */
    if (mode == AGAIN)
        return at % n;
    return at < 0 ? -at - edge : at < n ? at : 2 * n - 2 + edge - at;
}

/** Enlarge input 0 of shape x to y, axis by axis; `before` positions lie before its begin. */
static qat_status enlarge(tfl_importer *im, int mode, const tfl_shape *x, const tfl_shape *y,
                          const int32_t before[])
{
    int input = -1, output = -1, indices = -1, left = 0;
    unsigned cut = 0;
    int32_t *values;
    tfl_merged m;
    for (int d = 0; d < x->rank; d++) {
        cut |= (unsigned)(x->dims[d] != y->dims[d]) << d;
        left += x->dims[d] != y->dims[d];
    }
    qat_status st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_output(im, 0, y, input, &output);
    if (!st)
        st = tfl_merge_cut(im, y, cut, &m);
    for (int d = 0; d < x->rank && !st; d++)
        if (cut >> d & 1u)
            m.shape.dims[m.place[d]] = x->dims[d];
    qat_emit const same = tfl_emit(im, 1, &input, output);
    if (!st && !left)
        return qat_emit_reshape(&same, im->err);
    if (!st)
        st = tfl_view(im, "whole", &tfl_value_of(im, 0)->shape, &m.shape, &input);
    for (int d = 0; d < x->rank && !st; d++) {
        int to = output;
        if (!(cut >> d & 1u))
            continue;
        m.shape.dims[m.place[d]] = y->dims[d];
        st = new_indices(im, y->dims[d], &values, &indices);
        for (int32_t i = 0; i < y->dims[d] && !st; i++)
            values[i] = source_of(mode, i - before[d], x->dims[d]);
        if (!st && --left)
            st = tfl_between(im, "part", &m.shape, input, &to);
        if (!st)
            st = emit_gather(im, input, indices, m.place[d], 0, to);
        input = to;
    }
    return st;
}

static qat_status import_tile(tfl_importer *im)
{
    enum { MAX_DIM = 1 << 28 };
    static const int32_t none[TFL_MAX_RANK];
    tfl_shape x, y;
    const int64_t *multiples;
    int count = 0;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_ints(im, 1, "its multiples", &multiples, &count);
    if (!st && count != x.rank)
        st = tfl_refuse(im, "%d multiples for rank %d", count, x.rank);
    y = x;
    for (int i = 0; i < count && !st; i++) {
        if (multiples[i] < 1 || multiples[i] > MAX_DIM / x.dims[i])
            return tfl_refuse(im, "%" PRId64 " times a dimension of %d", multiples[i],
                              (int)x.dims[i]);
        y.dims[i] *= (int32_t)multiples[i];
    }
    return st ? st : enlarge(im, AGAIN, &x, &y, none);
}

/** New axes come first; each of 1 may grow. */
static qat_status import_broadcast_to(tfl_importer *im)
{
    static const int32_t none[QI_MAX_RANK];
    tfl_shape given, x, y, both;
    qat_status st = tfl_input_shape(im, 0, 0, QI_MAX_RANK, &given);
    if (!st)
        st = tfl_read_shape(im, 1, &y);
    if (!st && (y.rank > QI_MAX_RANK || y.rank < given.rank))
        st = tfl_refuse(im, "from rank %d to %d", given.rank, y.rank);
    if (!st)
        st = tfl_broadcast(im, &given, &y, &both);
    if (!st && !tfl_same_shape(&both, &y))
        st = tfl_refuse(im, "its input does not broadcast to its shape");
    if (st)
        return st;
    x.rank = y.rank;
    for (int d = 0; d < y.rank; d++)
        x.dims[d] = d < y.rank - given.rank ? 1 : given.dims[d - (y.rank - given.rank)];
    return enlarge(im, AGAIN, &x, &y, none);
}

static qat_status import_mirror_pad(tfl_importer *im)
{
    tfl_shape x, y;
    int32_t params[PAD_PARAMS] = {0};
    int const mode = fb_u8(&im->op->options, MIRROR_PAD_MODE, REFLECTED);
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st && mode != REFLECTED && mode != SYMMETRIC)
        st = tfl_refuse(im, "its mode is %d", mode);
    if (!st)
        st = read_pads(im, 1, 0, x.rank, &x, &y, params);
    for (int i = 0; i < x.rank && !st; i++) {
        int32_t const most = x.dims[i] - (mode == REFLECTED);
        if (params[PAD_BEFORE + i] > most || params[PAD_AFTER + i] > most)
            st =
                tfl_refuse(im, "paddings %d and %d of a dimension of %d",
                           (int)params[PAD_BEFORE + i], (int)params[PAD_AFTER + i], (int)x.dims[i]);
    }
    return st ? st : enlarge(im, mode, &x, &y, params + PAD_BEFORE);
}

/* ------------------------------------------------------------------ blocks */

static qat_status import_space_to_depth(tfl_importer *im)
{
    tfl_shape x;
    int input = -1;
    int32_t const b = fb_i32(&im->op->options, BLOCK_SIZE, 0);
    qat_status st = tfl_input_shape(im, 0, 4, 4, &x);
    if (!st && (b < 1 || x.dims[1] % b || x.dims[2] % b))
        st = tfl_refuse(im, "%dx%d pixels in blocks of %d", (int)x.dims[1], (int)x.dims[2], (int)b);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (st)
        return st;
    int32_t const h = x.dims[1] / b, w = x.dims[2] / b, c = x.dims[3];
    st = swap(im, x.dims[0] * h, b, w, b * c, &input);
    return st ? st : tfl_view_output(im, 0, &(tfl_shape){4, {x.dims[0], h, w, b * b * c}}, input);
}

static qat_status import_depth_to_space(tfl_importer *im)
{
    tfl_shape x;
    int input = -1;
    int32_t const b = fb_i32(&im->op->options, BLOCK_SIZE, 0);
    qat_status st = tfl_input_shape(im, 0, 4, 4, &x);
    if (!st && (b < 1 || b > x.dims[3] || x.dims[3] % ((int64_t)b * b)))
        st = tfl_refuse(im, "%d channels in blocks of %dx%d", (int)x.dims[3], (int)b, (int)b);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (st)
        return st;
    int32_t const h = x.dims[1], w = x.dims[2], c = x.dims[3] / (b * b);
    st = swap(im, x.dims[0] * h, w, b, b * c, &input);
    return st ? st : tfl_view_output(im, 0, &(tfl_shape){4, {x.dims[0], h * b, w * b, c}}, input);
}

/** Blocks of h x w pixels that are batches; x has rank 4, or 3 and no columns. */
struct blocks {
    tfl_shape x;
    int sides; /* 1 or 2 */
    int32_t h, w;
    int input;
};

static qat_status read_blocks(tfl_importer *im, struct blocks *b)
{
    const int64_t *sizes;
    int count = 0;
    qat_status st = tfl_input_shape(im, 0, 3, 4, &b->x);
    if (!st)
        st = tfl_ints(im, 1, "its block shape", &sizes, &count);
    if (!st)
        st = tfl_input(im, 0, &b->input);
    if (st)
        return st;
    b->sides = b->x.rank - 2;
    if (count != b->sides)
        return tfl_refuse(im, "a block of %d sides for rank %d", count, b->x.rank);
    for (int i = 0; i < count; i++)
        if (sizes[i] < 1 || sizes[i] > INT16_MAX)
            return tfl_refuse(im, "a block with a side of %" PRId64, sizes[i]);
    b->h = (int32_t)sizes[0];
    b->w = b->sides == 2 ? (int32_t)sizes[1] : 1;
    return QAT_OK;
}

/** Columns of a shape of rank 4; of rank 3, 1. */
static int32_t columns_of(const tfl_shape *s)
{
    return s->rank == 4 ? s->dims[2] : 1;
}

/** The padding is the zero point. */
static qat_status pad_blocks(tfl_importer *im, struct blocks *b, tfl_shape *y)
{
    int32_t params[PAD_PARAMS] = {0};
    int padded = -1;
    qat_status st = read_pads(im, 2, 1, b->sides, &b->x, y, params);
    if (st || memcmp(y->dims, b->x.dims, sizeof y->dims) == 0)
        return st;
    params[PAD_VALUE] = im->graph->tensors[b->input].zero_point;
    st = tfl_between(im, "padded", y, b->input, &padded);
    if (!st)
        st = emit_move(im, "pad", b->input, padded, PAD_PARAMS, params);
    b->input = padded;
    return st;
}

static qat_status import_space_to_batch(tfl_importer *im)
{
    struct blocks b;
    tfl_shape y;
    qat_status st = read_blocks(im, &b);
    if (!st)
        st = pad_blocks(im, &b, &y);
    if (!st && (y.dims[1] % b.h || columns_of(&y) % b.w))
        st = tfl_refuse(im, "%dx%d pixels in blocks of %dx%d", (int)y.dims[1], (int)columns_of(&y),
                        (int)b.h, (int)b.w);
    if (st)
        return st;
    int32_t const rows = y.dims[0] * (y.dims[1] / b.h), w = columns_of(&y) / b.w;
    int32_t const c = y.dims[y.rank - 1];
    y.dims[0] *= b.h * b.w;
    y.dims[1] /= b.h;
    y.dims[2] = b.sides == 2 ? w : c;
    st = swap(im, rows * b.h, w, b.w, c, &b.input);
    if (!st)
        st = swap(im, 1, rows, b.h * b.w, w * c, &b.input);
    return st ? st : tfl_view_output(im, 0, &y, b.input);
}

/** Cut the crops off, which lie around y in x. */
static qat_status crop_blocks(tfl_importer *im, const struct blocks *b, const tfl_shape *x)
{
    int32_t pads[PAD_PARAMS] = {0}, params[2 * QI_MAX_RANK] = {0, 0, 0, 0, 1, 1, 1, 1};
    tfl_shape y;
    int whole = -1, output = -1;
    qat_status st = read_pads(im, 2, 1, b->sides, x, &y, pads);
    for (int d = 0; d < x->rank && !st; d++) {
        params[d] = pads[PAD_BEFORE + d];
        y.dims[d] = x->dims[d] - params[d] - pads[PAD_AFTER + d];
    }
    if (!st && memcmp(y.dims, x->dims, sizeof y.dims) == 0)
        return tfl_view_output(im, 0, &y, b->input);
    if (!st)
        st = tfl_output(im, 0, &y, b->input, &output);
    if (!st)
        st = tfl_between(im, "whole", x, b->input, &whole);
    qat_emit const e = tfl_emit(im, 1, &b->input, whole);
    if (!st)
        st = qat_emit_reshape(&e, im->err);
    return st ? st : emit_move(im, "strided_slice", whole, output, 2 * QI_MAX_RANK, params);
}

static qat_status import_batch_to_space(tfl_importer *im)
{
    struct blocks b;
    qat_status st = read_blocks(im, &b);
    if (!st && b.x.dims[0] % (b.h * b.w))
        st = tfl_refuse(im, "a batch of %d in blocks of %dx%d", (int)b.x.dims[0], (int)b.h,
                        (int)b.w);
    if (st)
        return st;
    tfl_shape y = b.x;
    int32_t const n = b.h * b.w, w = columns_of(&b.x), c = b.x.dims[b.x.rank - 1];
    int32_t const rows = b.x.dims[0] / n * b.x.dims[1];
    y.dims[0] /= n;
    y.dims[1] *= b.h;
    y.dims[2] *= b.w;
    st = swap(im, 1, n, rows, w * c, &b.input);
    if (!st)
        st = swap(im, rows * b.h, b.w, w, c, &b.input);
    return st ? st : crop_blocks(im, &b, &y);
}

/* ------------------------------------------------------------------ ARG_MAX, ARG_MIN, TOPK_V2 */

/** Make output i of positions, int32 or int64, without a scale. */
static qat_status position_output(tfl_importer *im, int i, const tfl_shape *shape, int *output)
{
    const tfl_tensor *t = &im->model->tensors[im->op->outputs[i]];
    if (!tfl_is_plain(t) || (t->type != TFL_INT32 && t->type != TFL_INT64))
        return tfl_refuse(im, "its output is %s with %u scales", tfl_type_name(t->type),
                          t->scales.count);
    return tfl_integer_output(im, i, shape, -1, output);
}

/** A table that reverses the order of the codes: the smallest becomes the largest. */
static qat_status reverse(tfl_importer *im, const tfl_shape *shape, int *tensor)
{
    uint8_t codes[256];
    int const input = *tensor;
    qat_status const st = tfl_between(im, "reversed", shape, input, tensor);
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)~qat_code_at(im->graph->tensors[input].type, i);
    qat_emit const e = tfl_emit(im, 1, &input, *tensor);
    return st ? st : qat_emit_table(&e, 1, codes, im->err);
}

static qat_status import_arg_max(tfl_importer *im)
{
    tfl_shape x, y = {0};
    int64_t value;
    int axis, input = -1, output = -1;
    qat_status st = tfl_input_shape(im, 0, 1, 4, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_int(im, 1, "its axis", &value);
    if (!st)
        st = tfl_axis(im, value, x.rank, &axis);
    for (int i = 0; !st && i < x.rank; i++)
        if (i != axis)
            y.dims[y.rank++] = x.dims[i];
    if (!st && im->op->code == TFL_ARG_MIN)
        st = reverse(im, &x, &input);
    if (!st)
        st = position_output(im, 0, &y, &output);
    if (st)
        return st;
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return qat_emit_op(&e, "arg_max", QI_ROUND_NONE, 1, &(int32_t){axis}, 0, im->err);
}

/** The largest codes of each row are gathered by their positions. */
static qat_status import_top_k(tfl_importer *im)
{
    tfl_shape x, y;
    int64_t k = 0;
    int input = -1, values = -1, positions = -1;
    qat_status st = tfl_input_shape(im, 0, 1, TFL_MAX_RANK, &x);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_int(im, 1, "the number of codes that it takes", &k);
    if (!st && im->graph->tensors[input].type == QI_S16)
        st = tfl_refuse(im, "only int8 and uint8 are supported");
    if (!st && (k < 1 || k > x.dims[x.rank - 1]))
        st = tfl_refuse(im, "it takes %" PRId64 " of %d codes", k, (int)x.dims[x.rank - 1]);
    if (st)
        return st;
    y = x;
    y.dims[y.rank - 1] = (int32_t)k;
    st = position_output(im, 1, &y, &positions);
    if (!st)
        st = tfl_output(im, 0, &y, input, &values);
    qat_emit const e = tfl_emit(im, 1, &input, positions);
    if (!st)
        st = qat_emit_op(&e, "top_k", QI_ROUND_NONE, 0, NULL, 0, im->err);
    int const last = im->graph->tensors[input].rank - 1;
    return st ? st : emit_gather(im, input, positions, last, last, values);
}

const tfl_handler tfl_move_handlers[] = {
    {TFL_PAD, TFL_OPTIONS_PAD, 2, 2, 1, import_pad},
    {TFL_PADV2, TFL_OPTIONS_PADV2, 3, 3, 1, import_pad},
    {TFL_TRANSPOSE, TFL_OPTIONS_TRANSPOSE, 2, 2, 1, import_transpose},
    {TFL_REVERSE_V2, TFL_OPTIONS_REVERSE_V2, 2, 2, 1, import_reverse},
    {TFL_RESIZE_BILINEAR, TFL_OPTIONS_RESIZE_BILINEAR, 2, 2, 1, import_resize_bilinear},
    {TFL_RESIZE_NEAREST_NEIGHBOR, TFL_OPTIONS_RESIZE_NEAREST_NEIGHBOR, 2, 2, 1,
     import_resize_nearest},
    {TFL_ARG_MAX, TFL_OPTIONS_ARG_MAX, 2, 2, 1, import_arg_max},
    {TFL_ARG_MIN, TFL_OPTIONS_ARG_MIN, 2, 2, 1, import_arg_max},
    {TFL_TOPK_V2, TFL_OPTIONS_TOPK_V2, 2, 2, 2, import_top_k},
    {TFL_EMBEDDING_LOOKUP, TFL_NO_OPTIONS, 2, 2, 1, import_embedding_lookup},
    {TFL_GATHER, TFL_OPTIONS_GATHER, 2, 2, 1, import_gather},
    {TFL_GATHER_ND, TFL_OPTIONS_GATHER_ND, 2, 2, 1, import_gather_nd},
    {TFL_TILE, TFL_OPTIONS_TILE, 2, 2, 1, import_tile},
    {TFL_BROADCAST_TO, TFL_OPTIONS_BROADCAST_TO, 2, 2, 1, import_broadcast_to},
    {TFL_MIRROR_PAD, TFL_OPTIONS_MIRROR_PAD, 2, 2, 1, import_mirror_pad},
    {TFL_SPACE_TO_DEPTH, TFL_OPTIONS_SPACE_TO_DEPTH, 1, 1, 1, import_space_to_depth},
    {TFL_DEPTH_TO_SPACE, TFL_OPTIONS_DEPTH_TO_SPACE, 1, 1, 1, import_depth_to_space},
    {TFL_SPACE_TO_BATCH_ND, TFL_OPTIONS_SPACE_TO_BATCH_ND, 3, 3, 1, import_space_to_batch},
    {TFL_BATCH_TO_SPACE_ND, TFL_OPTIONS_BATCH_TO_SPACE_ND, 3, 3, 1, import_batch_to_space},
    {0}};
