/**
 * depthwise_conv2d of 8-bit codes on processors with Helium, where accumulators are rounded
 * twice and never shifted left, no channel is repeated, weights have no zero_point, and columns are
 * not dilated.
 *
 * An instruction sums sixteen products of neighbouring bytes. So a block of up to 16 channels, of
 * some output pixels of a line, is first turned: the KH bytes that a column of x has under the
 * kernel lie one after the other, and columns lie so too. The bytes under a window are then
 * together, and windows overlap. Weights are turned alike.
 *
 *   scratch  | quad 0: its numbers, weights of 4 channels | quad 1 | ..
 *            | channel 0: KH bytes of column 0, of column 1, .. | channel 1 | .. | 16 bytes |
 *
 * Zeros follow the weights of a channel, up to a whole number of vectors. Is that one vector, then
 * channels are QK_TURN_PITCH bytes apart, which an instruction for loading may contain.
 *
 * s_x, s_w and a are those of tile_mve.h. Columns and lines outside the picture have the byte Z_x.
 */
#ifndef QK_DEPTHWISE_MVE_H
#define QK_DEPTHWISE_MVE_H

#include "infer/kernels/loops/requant_mve.h"
#include "infer/kernels/parts/depthwise_layer.h"

/*
 * The most channels of a block, the most output pixels, and the bytes of scratch that a layer may
 * take for them where it would need less on another processor.
 */
enum { QK_TURN_CHANNELS = 16, QK_TURN_PIXELS = 16, QK_TURN_BYTES = 1280, QK_TURN_PITCH = 42 };

/** The most bytes between channels: the places of 16 channels have 16 bits. */
enum { QK_TURN_APART = UINT16_MAX / (QK_TURN_CHANNELS - 1) };

/** Bytes of a quad's numbers: what is added, mult, shift, lo, hi. */
enum { QK_TURN_NUMBERS = 5 * 16 };

/** The channels of a block, in quads. */
QK_INLINE size_t qk_turn_channels(const qk_depthwise_conv2d *p)
{
    return p->window.c < QK_TURN_CHANNELS ? (size_t)(p->window.c + 3) / 4 * 4
                                          : (size_t)QK_TURN_CHANNELS;
}

/** Bytes of a channel's weights: whole vectors. */
QK_INLINE size_t qk_turn_weights(const qk_depthwise_conv2d *p)
{
    return ((size_t)p->window.kernel_h * (size_t)p->window.kernel_w + 15) / 16 * 16;
}

/** Columns of x under so many output pixels. */
QK_INLINE size_t qk_turn_columns(const qk_depthwise_conv2d *p, int32_t pixels)
{
    return (size_t)(pixels - 1) * (size_t)p->window.stride_w + (size_t)p->window.kernel_w;
}

/** Bytes of a channel's columns. */
QK_INLINE size_t qk_turn_pitch(const qk_depthwise_conv2d *p, int32_t pixels)
{
    size_t const bytes = qk_turn_columns(p, pixels) * (size_t)p->window.kernel_h;
    return qk_turn_weights(p) == 16 && bytes < QK_TURN_PITCH ? (size_t)QK_TURN_PITCH : bytes;
}

QK_INLINE size_t qk_turn_bytes(const qk_depthwise_conv2d *p, int32_t pixels)
{
    size_t const channels = qk_turn_channels(p);
    return channels * (QK_TURN_NUMBERS / 4 + qk_turn_weights(p) + qk_turn_pitch(p, pixels)) + 16;
}

/** Do so many output pixels fit, in their memory and between channels? */
QK_INLINE int qk_turn_fits(const qk_depthwise_conv2d *p, int32_t pixels, size_t scratch)
{
    uint64_t const bytes =
        (uint64_t)qk_turn_columns(p, pixels) * (uint64_t)p->window.kernel_h; /* may exceed size_t */
    return bytes <= QK_TURN_APART && qk_turn_weights(p) <= QK_TURN_APART &&
           qk_turn_bytes(p, pixels) <= scratch &&
           (qk_turn_weights(p) > 16 || qk_turn_pitch(p, pixels) == QK_TURN_PITCH);
}

/** The output pixels for which there is scratch, or 0. */
QK_INLINE int32_t qk_turn_pixels(const qk_depthwise_conv2d *p, size_t scratch)
{
    int32_t n = p->window.ow < QK_TURN_PIXELS ? p->window.ow : (int32_t)QK_TURN_PIXELS;
    while (n > 0 && !qk_turn_fits(p, n, scratch))
        n--;
    return n;
}

/** Bytes of scratch; least: what other loops need. It is the same on all processors. */
QK_INLINE size_t qk_turn_scratch(const qk_depthwise_conv2d *p, size_t least)
{
    size_t const room = least < QK_TURN_BYTES ? (size_t)QK_TURN_BYTES : least;
    int32_t const n = qk_turn_pixels(p, room);
    size_t const need = n && !(QK_WIDE && p->x_codes.is_wide) ? qk_turn_bytes(p, n) : 0;
    return need < least ? least : need;
}

#if QK_MVE

/** Where a block is in scratch. */
typedef struct qk_turn {
    uint8_t *quads, *columns;
    size_t weights, pitch; /* bytes of a channel */
    int32_t pixels;
    uint8_t zeros[QK_TURN_CHANNELS];
} qk_turn;

QK_INLINE int qk_turn_serves(const qk_depthwise_conv2d *p)
{
    int serves = p->multiplier == 1 && p->window.c >= 4 && !(QK_WIDE && p->x_codes.is_wide) &&
                 p->weight_codes.offset == 128 && p->window.dilation_w == 1 &&
                 qk_mve_way_of(&p->requant) == QK_MVE_QUICK;
    for (int32_t o = 0; serves && o < p->window.o; o++)
        serves = qi_requant_shift(&p->requant, o) < 0;
    return serves;
}

/**
 * Write byte c of n pixels, `step` apart, to to[c pitch], to[c pitch + to_step], ..; c < count, at
 * most 16.
 */
QK_INLINE void qk_turn_line(const uint8_t *x, size_t step, int32_t n, int32_t count, uint8_t flip,
                            uint8_t *to, size_t pitch, size_t to_step)
{
    uint16x8_t const places = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)pitch);
    uint16x8_t const places_8 = vaddq_n_u16(places, (uint16_t)(8 * pitch));
    uint16x8_t const flips = vdupq_n_u16(flip);
    if (count == 16 && !flip) {
        for (int32_t i = 0; i < n; i++, x += step, to += to_step) {
            vstrbq_scatter_offset_u16(to, places, vldrbq_u16(x));
            vstrbq_scatter_offset_u16(to, places_8, vldrbq_u16(x + 8));
        }
        return;
    }
    for (; count > 0; count -= 8, x += 8, to += 8 * pitch) {
        mve_pred16_t const some = vctp16q((uint32_t)count);
        for (int32_t i = 0; i < n; i++) {
            uint16x8_t const bytes = vldrbq_z_u16(x + (size_t)i * step, some);
            vstrbq_scatter_offset_p_u16(to + (size_t)i * to_step, places, veorq_u16(bytes, flips),
                                        some);
        }
    }
}

/** Turn the weights of line ky of the kernel, of the channels o..o+3. */
QK_INLINE void qk_turn_weights_line(const qk_depthwise_conv2d *p, int32_t o, int32_t ky,
                                    uint8_t *to, size_t pitch)
{
    int32_t const wide = p->window.kernel_w;
    size_t const channels = (size_t)p->window.c, step = (size_t)p->window.kernel_h;
    size_t at = (size_t)ky * (size_t)wide * channels + (size_t)o;
    uint8_t const flip = qk_mve_flip(p->weight_codes);
    uint8_t pixel[4];
    if (!QK_PACKED || !p->weights.packing) {
        qk_turn_line(p->weights.first + at, channels, wide, 4, flip, to, pitch, step);
        return;
    }
    for (int32_t kx = 0; kx < wide; kx++, at += channels, to += step) {
        qi_unpack_row(&p->weights, 0, at, 4, pixel);
        qk_turn_line(pixel, 0, 1, 4, flip, to, pitch, step);
    }
}

/** Write the numbers and weights of the channels o..o+3. */
QK_INLINE void qk_turn_quad(const qk_depthwise_conv2d *p, const qk_turn *t, int32_t o, uint8_t *to)
{
    const qi_requant *r = &p->requant;
    int32_t *numbers = (int32_t *)(void *)to;
    uint8_t *w = to + QK_TURN_NUMBERS;
    memset(w, 0, 4 * t->weights);
    for (int32_t ky = 0; ky < p->window.kernel_h; ky++)
        qk_turn_weights_line(p, o, ky, w + ky, t->weights);
    for (int32_t c = 0; c < 4; c++)
        numbers[c] = r->bias[o + c] +
                     (128 - p->x_codes.offset) * qk_mve_sum(w + (size_t)c * t->weights, t->weights);
    vstrwq_s32(numbers + 4, qk_mve_numbers(r->mult, o, r->mult_step));
    vstrwq_s32(numbers + 8, qk_mve_shifts(r, o));
    vstrwq_s32(numbers + 12, vdupq_n_s32(r->lo));
    vstrwq_s32(numbers + 16, vdupq_n_s32(r->hi));
}

/** Turn what n output pixels from pixel ox of line oy on need; x: a picture's channel o. */
QK_INLINE void qk_turn_columns_of(const qk_depthwise_conv2d *p, const qk_turn *t, const uint8_t *x,
                                  int32_t count, int32_t oy, int32_t ox, int32_t n)
{
    const qi_window *g = &p->window;
    size_t const c = (size_t)g->c, high = (size_t)g->kernel_h, pitch = t->pitch;
    int32_t const columns = (int32_t)qk_turn_columns(p, n), from = ox * g->stride_w - g->pad_left;
    int32_t const left = qi_clamp(-from, 0, columns), end = qi_clamp(g->w - from, left, columns);
    uint8_t const flip = qk_mve_flip(p->x_codes);
    for (int32_t ky = 0; ky < g->kernel_h; ky++) {
        int32_t const iy = oy * g->stride_h - g->pad_top + ky * g->dilation_h;
        int const is_inside = iy >= 0 && iy < g->h && left < columns;
        int32_t const first = is_inside ? left : columns;
        uint8_t *to = t->columns + ky;
        if (first)
            qk_turn_line(t->zeros, 0, first, count, flip, to, pitch, high);
        if (!is_inside)
            continue;
        qk_turn_line(x + ((size_t)iy * (size_t)g->w + (size_t)(from + first)) * c, c, end - first,
                     count, flip, to + (size_t)first * high, pitch, high);
        if (end < columns)
            qk_turn_line(t->zeros, 0, columns - end, count, flip, to + (size_t)end * high, pitch,
                         high);
    }
}

/** Where a quad's pixels are. */
typedef struct qk_turn_pixels_at {
    const uint8_t *x;
    uint8_t *y;
    size_t x_step, y_step;
    int32_t n; /* pixels */
} qk_turn_pixels_at;

/** n pixels of a quad whose weights are one vector. */
QK_HOT void qk_turn_short(const uint8_t *quad, qk_turn_pixels_at at, int32_t zero_point)
{
    const uint8_t *x = at.x;
    uint8_t *y = at.y;
    int32_t a = at.n, b, c, d; /* at first */
    __asm__ volatile(
        "vldrw.32 q6, [%[quad]]\n"
        "vldrw.32 q4, [%[quad], #16]\n"
        "vldrw.32 q5, [%[quad], #32]\n"
        "vldrw.32 q0, [%[quad], #80]\n"
        "vldrw.32 q1, [%[quad], #96]\n"
        "vldrw.32 q2, [%[quad], #112]\n"
        "dls lr, %[a]\n"
        "1:\n"
        "vldrb.8 q7, [%[x]]\n"
        "vmladav.s8 %[a], q7, q0\n"
        "vldrb.8 q3, [%[x], #42]\n"
        "vmladav.s8 %[b], q3, q1\n"
        "vldrb.8 q7, [%[x], #84]\n"
        "vmladav.s8 %[c], q7, q2\n"
        "vldrb.8 q3, [%[x], #126]\n"
        "vldrw.32 q7, [%[quad], #128]\n"
        "vmladav.s8 %[d], q3, q7\n"
        "add %[x], %[x_step]\n"
        "vmov q7[2], q7[0], %[a], %[c]\n"
        "vmov q7[3], q7[1], %[b], %[d]\n"
        "vadd.i32 q7, q7, q6\n"
        "vqrdmulh.s32 q7, q7, q4\n"
        "vshr.s32 q3, q7, #31\n"
        "vadd.i32 q7, q7, q3\n"
        "vrshl.s32 q7, q7, q5\n"
        "vldrw.32 q3, [%[quad], #48]\n"
        "vadd.i32 q7, q7, %[zero]\n"
        "vmax.s32 q7, q7, q3\n"
        "vldrw.32 q3, [%[quad], #64]\n"
        "vmin.s32 q7, q7, q3\n"
        "vstrb.32 q7, [%[y]]\n"
        "add %[y], %[y_step]\n"
        "le lr, 1b\n"
        : [x] "+&r"(x), [y] "+&r"(y), [a] "+&Te"(a), [b] "=&Te"(b), [c] "=&Te"(c), [d] "=&Te"(d)
        : [quad] "r"(quad), [x_step] "r"(at.x_step), [y_step] "r"(at.y_step), [zero] "r"(zero_point)
        : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "lr", "memory");
}

/** n pixels of any quad; weights: bytes of a channel; pitch: of its columns. */
QK_APART void qk_turn_long(const uint8_t *quad, qk_turn_pixels_at at, int32_t zero_point,
                           size_t weights, size_t pitch)
{
    const int32_t *numbers = (const int32_t *)(const void *)quad;
    const uint8_t *w = quad + QK_TURN_NUMBERS;
    qk_mve_limits const limits = qk_mve_limits_of(zero_point, numbers[12], numbers[16]);
    for (int32_t i = 0; i < at.n; i++, at.x += at.x_step, at.y += at.y_step) {
        int32_t sums[4];
        for (size_t c = 0; c < 4; c++)
            sums[c] = numbers[c] + qk_mve_dot(w + c * weights, at.x + c * pitch, weights);
        int32x4_t const product = vqrdmulhq_s32(vldrwq_s32(sums), vldrwq_s32(numbers + 4));
        int32x4_t const value = qk_mve_divide(product, vldrwq_s32(numbers + 8));
        vstrbq_s32((int8_t *)at.y, qk_mve_limit(&limits, value));
    }
}

/** The channels o..o+count-1 of one picture. */
QK_INLINE void qk_turn_picture(const qk_depthwise_conv2d *p, const qk_turn *t, const uint8_t *x,
                               int32_t count, uint8_t *y)
{
    const qi_window *g = &p->window;
    qk_turn_pixels_at at;
    at.x_step = (size_t)g->stride_w * (size_t)g->kernel_h;
    at.y_step = (size_t)g->c;
    for (int32_t oy = 0; oy < g->oh; oy++)
        for (int32_t ox = 0; ox < g->ow; ox += at.n, y += (size_t)at.n * at.y_step) {
            const uint8_t *quad = t->quads;
            at.n = g->ow - ox < t->pixels ? g->ow - ox : t->pixels;
            qk_turn_columns_of(p, t, x, count, oy, ox, at.n);
            for (int32_t next = 0; next < count; next += 4) { /* the last one may overlap */
                int32_t const c = next < count - 4 ? next : count - 4;
                at.x = t->columns + (size_t)c * t->pitch;
                at.y = y + c;
                if (t->weights == 16)
                    qk_turn_short(quad, at, p->requant.zero_point);
                else
                    qk_turn_long(quad, at, p->requant.zero_point, t->weights, t->pitch);
                quad += QK_TURN_NUMBERS + 4 * t->weights;
            }
        }
}

QK_INLINE void qk_turn_run(const qk_depthwise_conv2d *p, const uint8_t *x, uint8_t *y,
                           void *scratch, int32_t pixels)
{
    const qi_window *g = &p->window;
    size_t const picture = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    size_t const picture_y = (size_t)g->oh * (size_t)g->ow * (size_t)g->c;
    int32_t const channels = (int32_t)qk_turn_channels(p);
    qk_turn t;
    t.quads = (uint8_t *)scratch;
    t.weights = qk_turn_weights(p);
    t.pitch = qk_turn_pitch(p, pixels);
    size_t const quad = QK_TURN_NUMBERS + 4 * t.weights;
    t.columns = t.quads + (size_t)channels / 4 * quad;
    t.pixels = pixels;
    memset(t.zeros, p->x_codes.offset ^ p->x_codes.flip, sizeof t.zeros);
    for (int32_t next = 0; next < g->c; next += channels) {
        int32_t const o = next < g->c - 4 ? next : g->c - 4;
        int32_t const count = g->c - o < channels ? g->c - o : channels;
        for (int32_t c = 0; c < count; c += 4)
            qk_turn_quad(p, &t, o + (c < count - 4 ? c : count - 4),
                         t.quads + (size_t)c / 4 * quad);
        for (int32_t n = 0; n < g->n; n++)
            qk_turn_picture(p, &t, x + (size_t)n * picture + o, count,
                            y + (size_t)n * picture_y + o);
    }
}

#else

QK_INLINE int qk_turn_serves(const qk_depthwise_conv2d *p)
{
    (void)p;
    return 0;
}
QK_INLINE void qk_turn_run(const qk_depthwise_conv2d *p, const uint8_t *x, uint8_t *y,
                           void *scratch, int32_t pixels)
{
    (void)p;
    (void)x;
    (void)y;
    (void)scratch;
    (void)pixels;
}

#endif

#endif
