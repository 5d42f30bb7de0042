/**
 * The loops of bn_fold_train over values, in strips, with coefficients per channel (fold_train.h):
 *
 *     forward     y = slope z + offset, then the tail
 *     backward    dy masked by the tail, then summed with z
 *                 dz   += slope dy [+ z_slope z + z_offset: one_pass]
 *                 draw += raw_slope raw + raw_offset               two_pass
 *
 * z and raw are read from values, or, after integer forward, from notes (fold_notes.h).
 */
#include "autograd/graph/backend.h"
#include "autograd/loops/column_sums.h"
#include "autograd/loops/tail.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/vector.h"
#include "autograd/loops/wide.h"
#include "fold/fold_train.h"

#include <string.h>

/** A loop over values [at, at + n) of [rows, channels]: where its coefficients begin. */
static qat_stretch stretch_of(const qat_fold_train *f, size_t at, size_t n)
{
    return qat_stretch_of((size_t)f->bn.channels, at, n);
}

/** out = in slope + offset */
QAT_VECTOR static void affine(qat_stretch s, const qat_real *restrict in,
                              const qat_real *restrict slope, const qat_real *restrict offset,
                              qat_real *restrict out)
{
    slope += s.first, offset += s.first;
    for (size_t i = 0; i < s.n; i += s.wide, in += s.wide, out += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            out[c] = in[c] * slope[c] + offset[c];
}

/** out += in slope + offset */
QAT_VECTOR static void add_affine(qat_stretch s, const qat_real *restrict in,
                                  const qat_real *restrict slope, const qat_real *restrict offset,
                                  qat_real *restrict out)
{
    slope += s.first, offset += s.first;
    for (size_t i = 0; i < s.n; i += s.wide, in += s.wide, out += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            out[c] += in[c] * slope[c] + offset[c];
}

/** g *= slope */
QAT_VECTOR static void scale(qat_stretch s, const qat_real *restrict slope, qat_real *restrict g)
{
    slope += s.first;
    for (size_t i = 0; i < s.n; i += s.wide, g += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            g[c] *= slope[c];
}

/** g = g slope + (z z_slope + z_offset) */
QAT_VECTOR static void through_batch(qat_stretch s, const qat_fold_train *f,
                                     const qat_real *restrict z, qat_real *restrict g)
{
    const qat_real *restrict slope = f->slope + s.first;
    const qat_real *restrict z_slope = f->z_slope + s.first;
    const qat_real *restrict z_offset = f->z_offset + s.first;
    for (size_t i = 0; i < s.n; i += s.wide, z += s.wide, g += s.wide)
        for (size_t c = 0; c < (s.n - i < s.wide ? s.n - i : s.wide); c++)
            g[c] = g[c] * slope[c] + (z[c] * z_slope[c] + z_offset[c]);
}

/* ------------------------------------------------------------------ values, or their notes */

static size_t values_of(const qat_fold_train *f)
{
    return f->bn.rows * (size_t)f->bn.channels;
}

/** Notes of z, then of raw. NULL: the values hold them (z's on the grid of notes). */
static uint16_t *notes_of(const qat_fold_train *f, int input)
{
    uint16_t *notes = *f->has_notes ? qat_node_notes(f->node) : NULL;
    return notes && input == FOLDT_RAW ? notes + values_of(f) : notes;
}

/** z [at, at + n): its value, or computed into `room`. */
static const qat_real *z_at(const qat_fold_train *f, size_t at, size_t n, qat_real *room)
{
    const uint16_t *notes = notes_of(f, FOLDT_Z);
    if (!notes)
        return qat_fold_input(f, FOLDT_Z) + at;
    qat_note_read(&f->z_grid, notes + at, at, n, room);
    return room;
}

/** The same of raw, for a strip. */
static const qat_real *raw_at(const qat_fold_train *f, size_t at, size_t n, qat_real *room)
{
    uint16_t strip[QAT_STRIP_VALUES];
    const uint16_t *notes = notes_of(f, FOLDT_RAW);
    const qat_real *raw = qat_fold_input(f, FOLDT_RAW) + at;
    if (!*f->has_notes)
        return raw;
    if (!notes)
        qat_note_reals(&f->raw_grid, raw, at, n, strip);
    qat_note_read(&f->raw_grid, notes ? notes + at : strip, at, n, room);
    return room;
}

/* ------------------------------------------------------------------ forward */

static void forward_strip(void *context, size_t at, size_t n)
{
    const qat_fold_train *f = context;
    qat_real room[QAT_STRIP_VALUES];
    qat_real *y = qat_tail_last(f->node)->value + at;
    affine(stretch_of(f, at, n), z_at(f, at, n, room), f->slope, f->offset, y);
    qat_tail_forward(f->node, at, y, n);
}

void qat_fold_run_forward(qat_fold_train *f)
{
    qat_run_strips(values_of(f), forward_strip, f);
}

static void note_raw_strip(void *context, size_t at, size_t n)
{
    const qat_fold_train *f = context;
    qat_note_reals(&f->raw_grid, qat_fold_input(f, FOLDT_RAW) + at, at, n,
                   notes_of(f, FOLDT_RAW) + at);
}

void qat_fold_note_raw(qat_fold_train *f)
{
    qat_note_set_reals(&f->raw_grid, qat_fold_input(f, FOLDT_RAW), f->bn.rows,
                       (qat_real *)(void *)f->bn.partial);
    if (notes_of(f, FOLDT_RAW))
        qat_run_strips(values_of(f), note_raw_strip, f);
}

/* ------------------------------------------------------------------ backward */

/** Mask dy by the node's tail. The input of the tail is computed again. */
static void mask_strip(const qat_fold_train *f, const qat_real *z, size_t at, size_t n)
{
    qat_real y[QAT_STRIP_VALUES];
    affine(stretch_of(f, at, n), z, f->slope, f->offset, y);
    qat_tail_backward(f->node, y, f->node->grad + at, n);
}

/** Mask dy before dy and z are summed. */
static const qat_real *mask_strips(void *context, size_t at, size_t n, qat_real *room)
{
    const qat_fold_train *f = context;
    const qat_real *z = z_at(f, at, n, room);
    for (size_t i = 0; f->node->tail && i < n; i += QAT_STRIP_VALUES)
        mask_strip(f, z + i, at + i, n - i < QAT_STRIP_VALUES ? n - i : QAT_STRIP_VALUES);
    return z;
}

void qat_fold_sum_gradient(qat_fold_train *f)
{
    bool const batch = f->phase == QAT_FOLD_BATCH;
    qat_columns const columns = {.a = f->node->grad,
                                 .b = batch ? qat_fold_input(f, FOLDT_Z) : NULL,
                                 .rows = f->bn.rows,
                                 .columns = f->bn.channels,
                                 .prepare = mask_strips,
                                 .context = f};
    qat_column_sums(&columns, f->bn.partial, f->bn.sum, f->bn.sum_product);
    *f->bn.total = (double)f->bn.rows;
}

/** dz = slope dy (slope is 1 when frozen), and in one_pass's BATCH + z_slope z + z_offset. */
static void z_strip(void *context, size_t at, size_t n)
{
    const qat_fold_train *f = context;
    const qat_node *z = f->node->inputs[FOLDT_Z];
    const qat_real *dy = f->node->grad + at;
    qat_stretch const s = stretch_of(f, at, n);
    qat_real sum[QAT_STRIP_VALUES], room[QAT_STRIP_VALUES];
    qat_real *g = qat_grad_is_new(f->node, FOLDT_Z) ? z->grad + at : sum;
    if (g != dy)
        memcpy(g, dy, n * sizeof *g);
    if (f->phase == QAT_FOLD_BATCH && qat_fold_raw(f->node))
        scale(s, f->slope, g);
    else if (f->phase == QAT_FOLD_BATCH)
        through_batch(s, f, z_at(f, at, n, room), g);
    if (g == sum)
        qat_vector_add(z->grad + at, sum, n);
}

/** draw = raw_slope raw + raw_offset */
static void raw_strip(void *context, size_t at, size_t n)
{
    const qat_fold_train *f = context;
    const qat_node *raw = qat_fold_raw(f->node);
    qat_stretch const s = stretch_of(f, at, n);
    qat_real room[QAT_STRIP_VALUES];
    const qat_real *value = raw_at(f, at, n, room);
    if (qat_grad_is_new(f->node, FOLDT_RAW))
        affine(s, value, f->raw_slope, f->raw_offset, raw->grad + at);
    else
        add_affine(s, value, f->raw_slope, f->raw_offset, raw->grad + at);
}

void qat_fold_run_backward(qat_fold_train *f)
{
    const qat_node *z = f->node->inputs[FOLDT_Z], *raw = qat_fold_raw(f->node);
    bool const in_place = qat_grad_is_new(f->node, FOLDT_Z) && z->grad == f->node->grad;
    if (z->grad && !(f->phase == QAT_FOLD_FROZEN && in_place))
        qat_run_strips(values_of(f), z_strip, f);
    if (f->phase == QAT_FOLD_BATCH && raw && raw->grad)
        qat_run_strips(values_of(f), raw_strip, f);
}
