#include "fold/fold_notes.h"

#include "autograd/loops/column_sums.h"
#include "autograd/loops/real.h"
#include "autograd/loops/tiles.h"
#include "autograd/loops/wide.h"

#include <string.h>

enum { MOST = UINT16_MAX };

static qat_stretch stretch_of(const qat_note_grid *g, size_t at, size_t n)
{
    return qat_stretch_of((size_t)g->channels, at, n);
}

static void lay_reals(const qat_note_grid *g)
{
    qat_wide_lay(g->step, (size_t)g->channels, g->step);
    qat_wide_lay(g->least, (size_t)g->channels, g->least);
    if (g->per_step)
        qat_wide_lay(g->per_step, (size_t)g->channels, g->per_step);
}

/* ------------------------------------------------------------------ sums */

void qat_note_set_sums(const qat_note_grid *g, const qat_sum_range *s, int channel, int32_t least,
                       int32_t most, qat_real scale, qat_real offset)
{
    uint32_t const range = (uint32_t)most - (uint32_t)least;
    int shift = 0;
    while (range >> shift > MOST)
        shift++;
    double const width = (double)(INT64_C(1) << shift);
    s->smallest[channel] = least;
    s->shift[channel] = shift;
    g->step[channel] = (qat_real)((double)scale * width);
    g->least[channel] =
        (qat_real)((double)scale * ((double)least + (width - 1) / 2) + (double)offset);
}

void qat_note_lay_sums(const qat_note_grid *g, const qat_sum_range *s)
{
    qat_wide_lay_ints(s->smallest, (size_t)g->channels);
    qat_wide_lay_ints(s->shift, (size_t)g->channels);
    lay_reals(g);
}

QAT_VECTOR static void note_sums(qat_stretch t, const int32_t *restrict sums,
                                 const int32_t *restrict smallest, const int32_t *restrict shift,
                                 uint16_t *restrict q)
{
    smallest += t.first, shift += t.first;
    for (size_t i = 0; i < t.n; i += t.wide, sums += t.wide, q += t.wide)
        for (size_t c = 0; c < (t.n - i < t.wide ? t.n - i : t.wide); c++)
            q[c] = (uint16_t)(((uint32_t)sums[c] - (uint32_t)smallest[c]) >> shift[c]);
}

void qat_note_sums(const qat_note_grid *g, const qat_sum_range *s, const int32_t *sums, size_t at,
                   size_t n, uint16_t *q)
{
    note_sums(stretch_of(g, at, n), sums, s->smallest, s->shift, q);
}

/* ------------------------------------------------------------------ reals */

struct limits {
    const qat_note_grid *g;
    const qat_real *x;
    size_t rows, wide;
    int blocks;
    qat_real *partial; /* [blocks][2][wide]: least, most */
};

QAT_VECTOR static void add_limits(const qat_real *restrict x, size_t n, qat_real *restrict least,
                                  qat_real *restrict most)
{
    for (size_t i = 0; i < n; i++) {
        least[i] = x[i] < least[i] ? x[i] : least[i];
        most[i] = x[i] > most[i] ? x[i] : most[i];
    }
}

static void limits_block(void *context, int block, int thread)
{
    const struct limits *l = context;
    size_t const channels = (size_t)l->g->channels, wide = l->wide;
    qat_span const rows = qat_block_span(l->rows, l->blocks, block);
    size_t const end = rows.end * channels;
    qat_real *least = l->partial + 2 * (size_t)block * wide, *most = least + wide;
    for (size_t i = 0; i < wide; i++)
        least[i] = most[i] = l->x[rows.begin * channels + i % channels];
    for (size_t at = rows.begin * channels; at < end; at += wide)
        add_limits(l->x + at, end - at < wide ? end - at : wide, least, most);
}

static void set_limits(const struct limits *l, size_t channel)
{
    qat_real least = l->partial[channel], most = l->partial[l->wide + channel];
    for (int b = 0; b < l->blocks; b++)
        for (size_t i = channel; i < l->wide; i += (size_t)l->g->channels) {
            const qat_real *at = l->partial + 2 * (size_t)b * l->wide + i;
            least = at[0] < least ? at[0] : least;
            most = at[l->wide] > most ? at[l->wide] : most;
        }
    l->g->least[channel] = least;
    l->g->step[channel] = (most - least) / MOST;
    l->g->per_step[channel] = most > least ? MOST / (most - least) : 0;
}

void qat_note_set_reals(const qat_note_grid *g, const qat_real *x, size_t rows, qat_real *partial)
{
    size_t const wide = qat_wide_of((size_t)g->channels);
    struct limits l = {g, x, rows, wide, 1, partial};
    l.blocks = (int)(qat_column_partials(rows, g->channels) / (2 * wide));
    qat_parallel(l.blocks, limits_block, &l);
    for (int c = 0; c < g->channels; c++)
        set_limits(&l, (size_t)c);
    lay_reals(g);
}

QAT_VECTOR static void note_reals(qat_stretch t, const qat_real *restrict x,
                                  const qat_real *restrict per_step, const qat_real *restrict least,
                                  uint16_t *restrict q)
{
    per_step += t.first, least += t.first;
    for (size_t i = 0; i < t.n; i += t.wide, x += t.wide, q += t.wide)
        for (size_t c = 0; c < (t.n - i < t.wide ? t.n - i : t.wide); c++) {
            qat_real const steps = (x[c] - least[c]) * per_step[c] + QAT_REAL(0.5);
            q[c] = (uint16_t)(int32_t)(steps < MOST ? steps : MOST); /* MOST for NaN */
        }
}

void qat_note_reals(const qat_note_grid *g, const qat_real *x, size_t at, size_t n, uint16_t *q)
{
    note_reals(stretch_of(g, at, n), x, g->per_step, g->least, q);
}

QAT_VECTOR static void read_notes(qat_stretch t, const uint16_t *restrict q,
                                  const qat_real *restrict step, const qat_real *restrict least,
                                  qat_real *restrict x)
{
    step += t.first, least += t.first;
    for (size_t i = 0; i < t.n; i += t.wide, x += t.wide, q += t.wide)
        for (size_t c = 0; c < (t.n - i < t.wide ? t.n - i : t.wide); c++)
            x[c] = (qat_real)(int32_t)q[c] * step[c] + least[c];
}

void qat_note_read(const qat_note_grid *g, const uint16_t *q, size_t at, size_t n, qat_real *x)
{
    read_notes(stretch_of(g, at, n), q, g->step, g->least, x);
}
