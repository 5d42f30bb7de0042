/** Pad: zeros or another number around a value, or its own values reflected, repeated, continued.
 */
#include "foreign/build.h"

#include <math.h>
#include <string.h>

enum { PADDING_MOST = 65536 };

/** x + c, a bias. */
static qat_node *shifted(builder *b, const char *part, qat_node *x, float c)
{
    qat_node *y = fv_add(b, "bias", part, x, " ");
    float *to = y ? fv_param(b, y, 0) : NULL;
    for (int i = 0; to && i < qat_shape_channels(&y->shape); i++)
        to[i] = c;
    return to ? y : NULL;
}

/** What Pad does to each dimension. */
struct padding {
    int64_t before[QAT_FOREIGN_RANK], after[QAT_FOREIGN_RANK];
    const char *mode;
    float with;
};

static qat_status padding_of(builder *b, const fv *x, struct padding *p)
{
    int n, n_axes = -1;
    int64_t pads[2 * QAT_FOREIGN_RANK], axes[QAT_FOREIGN_RANK];
    const qat_foreign_tensor *value = NULL;
    qat_status st = fv_ints(b, 1, "pads", pads, 2 * QAT_FOREIGN_RANK, &n);
    *p = (struct padding){.mode = fv_attr_text(b, "mode", "constant")};
    if (!st)
        st = fv_floats(b, 2, "value", &value);
    if (!st && b->node->n_inputs > 3)
        st = fv_ints(b, 3, "axes", axes, QAT_FOREIGN_RANK, &n_axes);
    if (st)
        return st;
    int const listed = n_axes < 0 ? x->rank : n_axes;
    p->with = value && value->count ? value->floats[0] : (float)fv_attr_real(b, "value", 0);
    if (!(fabsf(p->with) < 1e30F))
        return fv_refuse(b, "padding with %g is not supported", (double)p->with);
    if (n != 2 * listed)
        return fv_refuse(b, "pads has %d numbers for %d dimensions", n, listed);
    for (int i = 0; i < listed && !st; i++) {
        int axis;
        st = fv_axis(b, n_axes < 0 ? i : axes[i], x->rank, &axis);
        if (st)
            return st;
        p->before[axis] = pads[i];
        p->after[axis] = pads[i + listed];
        for (int k = i; k < i + listed + 1; k += listed)
            if (pads[k] < -PADDING_MOST || pads[k] > PADDING_MOST)
                return fv_refuse(b, "pads: %lld is outside -%d..%d", (long long)pads[k],
                                 PADDING_MOST, PADDING_MOST);
        if (axis < fv_first(x) && (pads[i] != 0 || pads[i + listed] != 0))
            return fv_refuse(b, "it pads the batch, the first dimension");
    }
    return st;
}

/** Padding below 0 takes positions away. */
static qat_status cut(builder *b, fv *x, struct padding *p)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < x->rank && !st; i++) {
        int64_t const first = p->before[i] < 0 ? -p->before[i] : 0;
        int64_t const last = p->after[i] < 0 ? -p->after[i] : 0;
        if (first + last > 0)
            st = fv_part(b, x, i, first, 1, x->dims[i] - first - last, x);
        p->before[i] = first ? 0 : p->before[i];
        p->after[i] = last ? 0 : p->after[i];
    }
    return st;
}

/* ------------------------------------------------------------------ a number */

static bool pads(const struct padding *p, int i)
{
    return p->before[i] + p->after[i] > 0;
}

/** Zeros around pictures and signals, in one node. */
static qat_status pad_picture(builder *b, const struct padding *p, fv *x)
{
    qat_node *from;
    int64_t dims[QAT_FOREIGN_RANK];
    qat_status const st = fv_picture(b, x, &from);
    if (st)
        return st;
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i] + p->before[i] + p->after[i];
    int const h = x->rank == 4 ? 2 : 0, w = x->rank - 1; /* dimension 0 is not padded */
    qat_node *y = fv_add(b, "pad", "", from, "top=%d bottom=%d left=%d right=%d front=%d back=%d",
                         (int)p->before[h], (int)p->after[h], (int)p->before[w], (int)p->after[w],
                         (int)p->before[1], (int)p->after[1]);
    *x = fv_channels_last(b, y, x->rank, dims);
    return y ? QAT_OK : fv_graph_error(b);
}

/** Zeros around one dimension of any value. */
static qat_status pad_dimension(builder *b, int64_t before, int64_t after, int axis, fv *x)
{
    static const char *const sides[][2] = {{"top", "bottom"}, {"left", "right"}, {"front", "back"}};
    qat_shape shape;
    int at;
    qat_status const st = fv_around(b, x, axis, &shape, &at);
    if (st)
        return st;
    if (shape.rank < 4) {
        shape = QAT_SHAPE(1, 1, (int)(fv_count(x) / x->dims[axis]), (int)x->dims[axis]);
        at = 3;
    }
    qat_node *from = fv_shaped(b, x, shape);
    const char *const *side = sides[at - 1];
    qat_node *y =
        from ? fv_add(b, "pad", "", from, "%s=%d %s=%d", side[0], (int)before, side[1], (int)after)
             : NULL;
    *x = fv_resized(x, y, axis, x->dims[axis] + before + after);
    return y ? QAT_OK : fv_graph_error(b);
}

/** Padding with another number than 0 is padding with 0 of values that are smaller by it. */
static qat_status pad_with_number(builder *b, const struct padding *p, fv *x)
{
    qat_status st = QAT_OK;
    if (p->with != 0)
        x->node = shifted(b, "below", x->node, -p->with);
    if (!x->node)
        return fv_graph_error(b);
    if ((x->rank == 3 || x->rank == 4) && !fv_is_stack(x) && !pads(p, 0))
        st = pad_picture(b, p, x);
    else
        for (int i = 0; i < x->rank && !st; i++)
            if (pads(p, i))
                st = pad_dimension(b, p->before[i], p->after[i], i, x);
    if (!st && p->with != 0)
        x->node = shifted(b, "above", x->node, p->with);
    return st ? st : x->node ? QAT_OK : fv_graph_error(b);
}

/* ------------------------------------------------------------------ its own values */

/** Where position i of a padded dimension of length d comes from. */
static int64_t source_of(const char *mode, int64_t i, int64_t d)
{
    if (!strcmp(mode, "edge") || d == 1)
        return i < 0 ? 0 : i >= d ? d - 1 : i;
    bool const reflects = !strcmp(mode, "reflect");
    int64_t const period = reflects ? 2 * (d - 1) : d;
    int64_t const at = (i % period + period) % period;
    return at < d ? at : period - at;
}

static qat_status pad_with_own(builder *b, const struct padding *p, int axis, fv *x)
{
    int64_t const d = x->dims[axis], n = p->before[axis] + d + p->after[axis];
    int64_t *at = fv_take(b, &b->arena, (size_t)n, sizeof *at);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = source_of(p->mode, i - p->before[axis], d);
    return at ? fv_gather(b, x, axis, at, n, x) : fv_graph_error(b);
}

static qat_status build_pad(builder *b)
{
    fv *in, x;
    struct padding p;
    bool any = false;
    qat_status st = fv_data(b, 0, &in);
    if (!st)
        st = padding_of(b, in, &p);
    if (st)
        return st;
    x = *in;
    bool const own =
        !strcmp(p.mode, "reflect") || !strcmp(p.mode, "edge") || !strcmp(p.mode, "wrap");
    if (!own && strcmp(p.mode, "constant") != 0)
        return fv_refuse(b, "attribute mode = %.20s is not supported", p.mode);
    st = cut(b, &x, &p);
    for (int i = 0; i < x.rank; i++)
        any = any || pads(&p, i);
    if (!st && any && !own)
        st = pad_with_number(b, &p, &x);
    for (int i = 0; i < x.rank && own && !st; i++)
        if (pads(&p, i))
            st = pad_with_own(b, &p, i, &x);
    if (!st)
        fv_output(b, 0, &x);
    return st;
}

const fv_operator fv_pad_operators[] = {
    {"Pad", build_pad},
    {NULL, NULL},
};
