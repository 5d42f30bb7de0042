/** Copies windows to patches, those inside the picture in long runs. */
#include "infer/host/drivers/patches.h"

/** What is the same for all patches of a call. */
struct patches {
    qi_window g;
    const uint8_t *x;
    uint8_t *to;  /* the next patch */
    size_t pixel; /* bytes from one pixel to the next */
    size_t run;   /* bytes of one kernel row */
    const qi_isa *isa;
    uint8_t flip;    /* bits of every byte that change */
    uint8_t outside; /* the code of pixels outside, flipped */
    int32_t first_inside,
        end_inside; /* columns whose windows do not leave the picture at the left or right */
};

/** The taps inside the picture; none of a window that begins after it. */
static qi_taps taps_of(int32_t out, int32_t stride, int32_t pad, int32_t dilation, int32_t kernel,
                       int32_t size)
{
    qi_taps taps = qi_taps_at(out, stride, pad, dilation, kernel, size);
    if (taps.start >= size)
        taps.first = taps.end = 0;
    return taps;
}

/** Write one kernel row of a patch. row: row of the picture; tx: taps inside it. */
static void patch_row(const struct patches *p, uint8_t *to, const uint8_t *row, qi_taps tx)
{
    const qi_window *g = &p->g;
    size_t const c = (size_t)g->c;
    memset(to, p->outside, p->run);
    for (int32_t kx = tx.first; kx < tx.end; kx++) {
        const uint8_t *pixel = row + (size_t)(tx.start + kx * g->dilation_w) * p->pixel;
        for (size_t i = 0; i < c; i++)
            to[(size_t)kx * c + i] = pixel[i] ^ p->flip;
    }
}

/** Write a patch at the border of the picture, or with dilation. */
static void patch_at_border(struct patches *p, const uint8_t *picture, qi_taps ty, int32_t ox)
{
    const qi_window *g = &p->g;
    size_t const row = (size_t)g->w * p->pixel;
    qi_taps const tx = taps_of(ox, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->w);
    for (int32_t ky = 0; ky < g->kernel_h; ky++, p->to += p->run)
        if (ky >= ty.first && ky < ty.end)
            patch_row(p, p->to, picture + (size_t)(ty.start + ky * g->dilation_h) * row, tx);
        else
            memset(p->to, p->outside, p->run);
}

/** Copy a kernel row that lies inside the picture. */
static void copy_row(const struct patches *p, const uint8_t *from)
{
    size_t const c = (size_t)p->g.c;
    if (p->pixel == c) {
        qi_copy_codes(p->isa, p->to, from, p->run, p->flip);
        return;
    }
    for (size_t at = 0; at < p->run; at += c, from += p->pixel)
        qi_copy_codes(p->isa, p->to + at, from, c, p->flip);
}

/** Write the patches of columns first..end-1, whose windows lie inside the picture. */
static void patches_inside(struct patches *p, const uint8_t *picture, qi_taps ty, int32_t first,
                           int32_t end)
{
    const qi_window *g = &p->g;
    size_t const row = (size_t)g->w * p->pixel;
    size_t const below = (size_t)g->dilation_h * row, step = (size_t)g->stride_w * p->pixel;
    if (first >= end)
        return; /* in this case ty may begin outside the picture */
    const uint8_t *x =
        picture + (size_t)ty.start * row + (size_t)(first * g->stride_w - g->pad_left) * p->pixel;
    for (int32_t ox = first; ox < end; ox++, x += step) {
        const uint8_t *from = x;
        for (int32_t ky = 0; ky < g->kernel_h; ky++, from += below, p->to += p->run)
            copy_row(p, from);
    }
}

/** Write the patches of columns first..end-1 of one output line, counted over [N,OH]. */
static void patches_of_line(struct patches *p, int32_t line, int32_t first, int32_t end)
{
    const qi_window *g = &p->g;
    size_t const size = (size_t)g->h * (size_t)g->w * p->pixel;
    const uint8_t *picture = p->x + (size_t)(line / g->oh) * size;
    qi_taps const ty =
        taps_of(line % g->oh, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->h);
    int const is_whole = ty.first == 0 && ty.end == g->kernel_h && g->dilation_w == 1;
    int32_t const inside = is_whole ? qi_clamp(p->first_inside, first, end) : end;
    int32_t const border = is_whole ? qi_clamp(p->end_inside, inside, end) : end;
    for (int32_t ox = first; ox < inside; ox++)
        patch_at_border(p, picture, ty, ox);
    patches_inside(p, picture, ty, inside, border);
    for (int32_t ox = border; ox < end; ox++)
        patch_at_border(p, picture, ty, ox);
}

void qi_fill_patches(const qi_isa *isa, const qi_conv_part *part, uint8_t flip, const uint8_t *x,
                     uint8_t *to, int32_t first, int32_t rows)
{
    const qi_window *g = &part->g;
    int32_t const ow = g->ow, end = first + rows;
    int32_t const last =
        g->w - g->kernel_w + g->pad_left; /* last start of a window inside the picture */
    struct patches p = {.g = *g,
                        .x = x,
                        .to = to,
                        .pixel = part->x_pixel,
                        .run = (size_t)g->kernel_w * (size_t)g->c,
                        .isa = isa,
                        .flip = flip,
                        .outside = qi_zero_byte(part->x_codes) ^ flip,
                        .first_inside = (g->pad_left + g->stride_w - 1) / g->stride_w,
                        .end_inside = last < 0 ? 0 : last / g->stride_w + 1};
    for (int32_t row = first; row < end;) {
        int32_t const line = row / ow, ox = row % ow;
        int32_t const count = ow - ox < end - row ? ow - ox : end - row;
        patches_of_line(&p, line, ox, ox + count);
        row += count;
    }
}
