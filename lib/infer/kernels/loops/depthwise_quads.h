/**
 * depthwise_conv2d of 8-bit codes on processors without vectors, where the quick requantization
 * serves all channels and no channel is repeated.
 *
 * Four neighbouring channels, a quad, are summed over all taps in registers. The weights of a quad
 * lie together, tap after tap. What is left over of the channels is summed one by one:
 *
 *   scratch  | ... | quad 0: 4 weights of tap 0, of tap 1, .. | quad 1 | .. | channel, tap after
 * tap |
 *
 * With QK_DSP the four stand in the order 0, 2, 1, 3, in which four codes are widened.
 */
#ifndef QK_DEPTHWISE_QUADS_H
#define QK_DEPTHWISE_QUADS_H

#include "infer/kernels/loops/arm_dsp.h"
#include "infer/kernels/loops/requant_quick.h"
#include "infer/kernels/parts/depthwise_layer.h"

QK_INLINE int qk_depthwise_is_quick(const qk_depthwise_conv2d *p)
{
    int is_quick = p->multiplier == 1 && !(QK_WIDE && p->x_codes.is_wide);
    for (int32_t o = 0; is_quick && o < p->window.o; o++)
        is_quick = qk_is_quick(&p->requant, o);
    return is_quick;
}

QK_INLINE size_t qk_depthwise_taps(const qk_depthwise_conv2d *p)
{
    return (size_t)p->window.kernel_h * (size_t)p->window.kernel_w;
}

/** Bring the weights into their order. */
QK_INLINE void qk_depthwise_order(const qk_depthwise_conv2d *p, int16_t *to)
{
    size_t const taps = qk_depthwise_taps(p), channels = (size_t)p->window.c;
    qi_codes const code = p->weight_codes;
    for (size_t c = 0; c < channels;) {
        size_t const n = channels - c < 4 ? 1 : 4;
        for (size_t tap = 0; tap < taps; tap++, to += n) {
            uint8_t bytes[4];
            int16_t d[4];
            const uint8_t *from = p->weights.first + tap * channels + c;
            if (QK_PACKED && p->weights.packing) {
                qi_unpack_row(&p->weights, 0, tap * channels + c, n, bytes);
                from = bytes;
            }
            qi_widen(d, from, n, code);
            to[0] = d[0];
            if (n == 1)
                continue;
            to[1] = QK_DSP ? d[2] : d[1];
            to[2] = QK_DSP ? d[1] : d[2];
            to[3] = d[3];
        }
        c += n;
    }
}

/** The taps of a window inside the picture, and what lies between them. */
typedef struct qk_tap_range {
    int32_t lines, columns;
    size_t first_x, line_x, column_x; /* bytes of x: to the first tap; between neighbours */
    size_t first_tap, line_taps;
} qk_tap_range;

QK_INLINE qk_tap_range qk_tap_range_of(const qi_window *g, qi_taps ty, int32_t ox)
{
    qi_taps const tx = qi_taps_of_column(g, ox);
    size_t const row = (size_t)g->w * (size_t)g->c, dilation = (size_t)g->dilation_h;
    size_t const iy = (size_t)(ty.start + ty.first * g->dilation_h);
    size_t const ix = (size_t)(tx.start + tx.first * g->dilation_w);
    qk_tap_range r;
    r.lines = ty.end - ty.first;
    r.columns = tx.end - tx.first;
    r.column_x = (size_t)g->dilation_w * (size_t)g->c;
    r.line_x = dilation * row;
    r.first_x = iy * row + ix * (size_t)g->c;
    r.first_tap = (size_t)ty.first * (size_t)g->kernel_w + (size_t)tx.first;
    r.line_taps = (size_t)g->kernel_w;
    if (r.lines <= 0 || r.columns <= 0)
        r.lines = 0;
    return r;
}

/** What is the same for all quads of an output pixel. */
typedef struct qk_depthwise_job {
    const qi_requant *requant;
    qk_tap_range range;
    qi_codes codes;       /* of x */
    uint32_t minus;       /* -Z_x in both halves, if the codes are taken as their type says */
    qk_clamping clamping; /* to all codes of a type or not */
} qk_depthwise_job;

typedef struct qk_channel_sums {
    int32_t a, b, c, d;
} qk_channel_sums;

/** One tap of a quad. */
QK_HOT void qk_depthwise_tap(qk_channel_sums *s, const uint8_t *x, const int16_t *w,
                             const qk_depthwise_job *j, int is_signed)
{
    if (!QK_DSP) {
        int32_t const minus = (int16_t)(j->minus & 0xffff);
        s->a += ((is_signed ? (int8_t)x[0] : x[0]) + minus) * w[0];
        s->b += ((is_signed ? (int8_t)x[1] : x[1]) + minus) * w[1];
        s->c += ((is_signed ? (int8_t)x[2] : x[2]) + minus) * w[2];
        s->d += ((is_signed ? (int8_t)x[3] : x[3]) + minus) * w[3];
        return;
    }
    qk_pair const values = qk_differences4(qk_word(x), j->minus, is_signed);
    qk_pair const weights = qk_pair_at(w);
    s->a = qk_smlabb(values.first, weights.first, s->a);
    s->c = qk_smlatt(values.first, weights.first, s->c);
    s->b = qk_smlabb(values.second, weights.second, s->b);
    s->d = qk_smlatt(values.second, weights.second, s->d);
}

QK_HOT qk_channel_sums qk_depthwise_sum(const qk_depthwise_job *j, const uint8_t *x,
                                        const int16_t *w, int is_signed)
{
    const qk_tap_range *r = &j->range;
    size_t const step = r->column_x;
    qk_channel_sums s = {0, 0, 0, 0};
    x += r->first_x;
    w += 4 * r->first_tap;
    for (int32_t i = r->lines; i > 0; i--) {
        const uint8_t *column = x;
        const int16_t *taps = w, *const end = w + 4 * r->columns;
        do {
            qk_depthwise_tap(&s, column, taps, j, is_signed);
            column += step;
            taps += 4;
        } while (taps != end);
        x += r->line_x;
        w += 4 * r->line_taps;
    }
    return s;
}

/** The codes of four channels from channel o on. */
QK_HOT void qk_depthwise_store(const qi_requant *r, int32_t o, const qk_channel_sums *s, uint8_t *y,
                               qk_clamping clamping)
{
    const int32_t *bias = r->bias + o, *mult = r->mult + o * r->mult_step;
    int32_t const mult_step = r->mult_step, shift_step = r->shift_step;
    const int32_t *shift = r->shift; /* as qi_requant_shift, but read once: y may lie anywhere */
    const int8_t *narrow_shift = QK_NARROW_SHIFT ? r->narrow_shift : NULL;
    int32_t at = o * shift_step;
    int32_t const sums[4] = {s->a, s->b, s->c, s->d};
    qk_quick q = {0, 0, 0, r->zero_point, r->lo, r->hi};
    for (int i = 0; i < 4; i++) {
        q.twice_bias = 2 * bias[i];
        q.mult = *mult;
        q.right = ~(narrow_shift ? narrow_shift[at] : shift[at]);
        y[i] = qk_quick_code(&q, clamping, sums[i]);
        mult += mult_step;
        at += shift_step;
    }
}

/** Four channels from channel o on. */
QK_HOT void qk_depthwise_quad(const qk_depthwise_job *j, int32_t o, const uint8_t *x,
                              const int16_t *w, uint8_t *y, int is_signed)
{
    qk_channel_sums const s = qk_depthwise_sum(j, x + o, w, is_signed);
    if (j->clamping == QK_CLAMP_S8)
        qk_depthwise_store(j->requant, o, &s, y + o, QK_CLAMP_S8);
    else
        qk_depthwise_store(j->requant, o, &s, y + o, QK_CLAMP_ANY);
}

QK_APART void qk_depthwise_quad_s8(const qk_depthwise_job *j, int32_t o, const uint8_t *x,
                                   const int16_t *w, uint8_t *y)
{
    qk_depthwise_quad(j, o, x, w, y, 1);
}
QK_APART void qk_depthwise_quad_u8(const qk_depthwise_job *j, int32_t o, const uint8_t *x,
                                   const int16_t *w, uint8_t *y)
{
    qk_depthwise_quad(j, o, x, w, y, 0);
}

/** Channel o alone. */
QK_APART void qk_depthwise_channel(const qk_depthwise_job *j, int32_t o, const uint8_t *x,
                                   const int16_t *w, uint8_t *y)
{
    const qk_tap_range *r = &j->range;
    int32_t sum = 0;
    x += r->first_x + (size_t)o;
    w += r->first_tap;
    for (int32_t i = 0; i < r->lines; i++, x += r->line_x, w += r->line_taps)
        for (int32_t k = 0; k < r->columns; k++)
            sum += ((x[(size_t)k * r->column_x] ^ j->codes.flip) - j->codes.offset) * w[k];
    qk_quick const q = qk_quick_of(j->requant, o);
    y[o] = qk_quick_code(&q, QK_CLAMP_ANY, sum);
}

/** One output pixel; x: the picture. */
QK_INLINE void qk_depthwise_pixel(const qk_depthwise_conv2d *p, const qk_depthwise_job *j,
                                  const uint8_t *x, const int16_t *w, uint8_t *y)
{
    size_t const taps = qk_depthwise_taps(p);
    int32_t const channels = p->window.c, quads = channels / 4 * 4;
    int const is_signed = p->x_codes.flip != 0;
    int32_t o = 0;
    for (; o < quads; o += 4, w += 4 * taps)
        if (is_signed)
            qk_depthwise_quad_s8(j, o, x, w, y);
        else
            qk_depthwise_quad_u8(j, o, x, w, y);
    for (; o < channels; o++, w += taps)
        qk_depthwise_channel(j, o, x, w, y);
}

QK_INLINE void qk_depthwise_quads(const qk_depthwise_conv2d *p, const uint8_t *x, uint8_t *y,
                                  void *scratch)
{
    const qi_window *g = &p->window;
    size_t const picture = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    int32_t const zero_point = p->x_codes.offset - p->x_codes.flip;
    int16_t *weights = (int16_t *)scratch;
    qk_depthwise_job j;
    j.requant = &p->requant;
    j.codes = p->x_codes;
    j.minus = qk_halves(-zero_point, -zero_point);
    j.clamping = qk_clamping_of(&p->requant);
    qk_depthwise_order(p, weights);
    for (int32_t n = 0; n < g->n; n++, x += picture)
        for (int32_t oy = 0; oy < g->oh; oy++) {
            qi_taps const ty = qi_taps_of_line(g, oy);
            for (int32_t ox = 0; ox < g->ow; ox++, y += g->o) {
                j.range = qk_tap_range_of(g, ty, ox);
                qk_depthwise_pixel(p, &j, x, weights, y);
            }
        }
}

#endif
