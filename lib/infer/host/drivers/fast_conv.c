/**
 * conv2d as a matrix product (see gemm.h). Its rows are output positions, and K = KH KW C.
 *
 * A 1x1 convolution of stride 1 uses its input directly as the matrix. If its codes must be flipped
 * (gemm.h, unsigned_x), they go to the thread's scratch: the product copies them if it can (flips).
 * Other convolutions first copy what they read into the scratch, and flip it on the way. Pixels
 * outside the picture get the code Z_x. There are two ways:
 *
 * Lines: some lines of the picture with their borders. The product reads windows where they lie. A
 * row of the matrix has KH segments of KW C bytes, and the rows of an output line overlap:
 *
 *   scratch  | line 0 | line 1 | .. | slack | the product's own |
 *
 * Patches: the windows of a piece's rows as rows of K bytes, if output lines are so short that
 * tiles would have few rows, and for products that cannot read lines:
 *
 *   scratch  | patch of row 0 | patch of row 1 | .. | slack | the product's own |
 *
 * Copies of patches move whole words and may run past the end of a patch. The bytes after it belong
 * to the next patch, which is written later, or to the slack.
 */
#include "infer/host/loops/gemm.h"

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return isa->gemm && qi_input(model, node, 0)->kind != QI_CONSTANT &&
           node->params[QI_CONV_GROUPS] == 1;
}

static size_t depth_of(const qi_window *g)
{
    return (size_t)g->kernel_h * (size_t)g->kernel_w * (size_t)g->c;
}

/** Are the rows of the matrix pixels of the input, one after the other? */
static int is_matrix(const qi_window *g)
{
    return g->kernel_h == 1 && g->kernel_w == 1 && g->stride_h == 1 && g->stride_w == 1 &&
           g->oh == g->h && g->ow == g->w;
}

/* ------------------------------------------------------------------ lines */

/** The lines of the picture in scratch. */
struct lines {
    size_t run;    /* bytes of one kernel row */
    size_t pitch;  /* bytes of a line */
    int32_t count; /* output lines that are computed at once */
};

/** Lines of the picture for `count` output lines. */
static int32_t lines_for(const qi_window *g, int32_t count)
{
    return (count - 1) * g->stride_h + g->kernel_h;
}

static struct lines lines_of(const qi_window *g)
{
    enum { BYTES = 1 << 16 };
    size_t const pitch = (size_t)((g->ow - 1) * g->stride_w + g->kernel_w) * (size_t)g->c;
    int32_t count = 1;
    while (count < g->oh && (size_t)lines_for(g, count + 1) * pitch <= BYTES)
        count++;
    return (struct lines){
        .run = (size_t)g->kernel_w * (size_t)g->c, .pitch = pitch, .count = count};
}

/** Does the product read windows where they are in lines of the picture? Else they are copied. */
static int reads_lines(const qi_gemm *gemm, const qi_window *g)
{
    enum { MOST = 1 << 30 }; /* bytes of a segment's offset */
    int32_t const tiles = (g->ow + gemm->row_tile - 1) / gemm->row_tile;
    return (int64_t)lines_of(g).pitch * g->kernel_h <= MOST && gemm->line_rows &&
           g->kernel_h * g->kernel_w > 1 && g->dilation_h == 1 && g->dilation_w == 1 &&
           g->stride_h <= g->kernel_h && g->stride_w <= g->kernel_w &&
           g->kernel_w * g->c % 4 == 0 && g->ow >= tiles * gemm->line_rows;
}

/** Bytes of the lines of one piece. */
static size_t lines_bytes(const qi_window *g)
{
    struct lines const l = lines_of(g);
    size_t const bytes = (size_t)lines_for(g, l.count) * l.pitch + QI_SLACK;
    return (bytes + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

/** Copy the lines for output lines first..first + count - 1 of one picture. */
static void copy_lines(const qi_fast_call *call, const qi_window *g, uint8_t flip,
                       const uint8_t *picture, int32_t first, int32_t count)
{
    struct lines const l = lines_of(g);
    size_t const c = (size_t)g->c, row = (size_t)g->w * c;
    int const outside = qi_input(call->model, call->node, 0)->zero_point ^ flip;
    uint8_t *to = call->scratch;
    size_t const left = (size_t)g->pad_left * c < l.pitch ? (size_t)g->pad_left * c : l.pitch;
    size_t const inside = row < l.pitch - left ? row : l.pitch - left;
    int32_t const y = first * g->stride_h - g->pad_top, end = y + lines_for(g, count);
    for (int32_t i = y; i < end; i++, to += l.pitch) {
        if (i < 0 || i >= g->h) {
            memset(to, outside, l.pitch);
            continue;
        }
        memset(to, outside, left);
        qi_copy_codes(call->isa, to + left, picture + (size_t)i * row, inside, flip);
        memset(to + left + inside, outside, l.pitch - left - inside);
    }
}

/* ------------------------------------------------------------------ layers */

static qi_gemm_layer layer_of(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_conv_window(model, node);
    qi_gemm_layer layer = qi_gemm_layer_of(model, node, QI_CONV_CLAMP_LO);
    if (reads_lines(isa->gemm, &g)) {
        struct lines const l = lines_of(&g);
        layer.segment = (int32_t)l.run;
        layer.segment_stride = l.pitch;
    }
    return layer;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_gemm_layer const layer = layer_of(isa, model, node);
    return isa->gemm->packed_bytes(&layer);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    qi_gemm_layer const layer = layer_of(isa, model, node);
    isa->gemm->pack(&layer, packed);
}

static qi_gemm_split split_of(const qi_isa *isa, const qi_window *g)
{
    if (reads_lines(isa->gemm, g))
        return qi_gemm_split_lines(isa->gemm, g->n * g->oh, g->ow,
                                   (size_t)g->stride_h * lines_of(g).pitch, (int32_t)depth_of(g),
                                   g->o);
    return qi_gemm_split_of(isa->gemm, g->n * g->oh * g->ow, (int32_t)depth_of(g), g->o);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_conv_window(model, node);
    qi_gemm_split const split = split_of(isa, &g);
    return split.blocks * split.groups;
}

/** Bytes of the copied rows of a piece; 0 if the input is the matrix. */
static size_t copied_bytes(const qi_gemm *gemm, const qi_window *g, const qi_gemm_split *split,
                           uint8_t flip)
{
    if (reads_lines(gemm, g))
        return lines_bytes(g);
    return is_matrix(g) && !flip ? 0 : qi_gemm_copy_bytes(split, depth_of(g));
}

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    qi_window const g = qi_conv_window(model, node);
    qi_gemm_split const split = split_of(isa, &g);
    qi_gemm_layer const layer = layer_of(isa, model, node);
    return copied_bytes(isa->gemm, &g, &split, qi_gemm_flip(isa->gemm, layer.x_codes)) +
           qi_gemm_scratch(isa->gemm, &layer);
}

/* ------------------------------------------------------------------ patches */

/** What is the same for all patches of a call. */
struct patches {
    qi_window g;
    const uint8_t *x;
    uint8_t *to; /* the next patch */
    size_t run;  /* bytes of one kernel row */
    const qi_isa *isa;
    uint8_t flip;    /* bits of every byte that change */
    uint8_t outside; /* the code of pixels outside, flipped */
    int32_t first_inside,
        end_inside; /* columns whose windows do not leave the picture at the left or right */
};

/** Write one kernel row of a patch. row: row of the picture; tx: taps inside it. */
static void patch_row(const struct patches *p, uint8_t *to, const uint8_t *row, qi_taps tx)
{
    const qi_window *g = &p->g;
    size_t const c = (size_t)g->c;
    memset(to, p->outside, p->run);
    for (int32_t kx = tx.first; kx < tx.end; kx++) {
        const uint8_t *pixel = row + (size_t)(tx.start + kx * g->dilation_w) * c;
        for (size_t i = 0; i < c; i++)
            to[(size_t)kx * c + i] = pixel[i] ^ p->flip;
    }
}

/** Write a patch at the border of the picture, or with dilation. */
static void patch_at_border(struct patches *p, const uint8_t *picture, qi_taps ty, int32_t ox)
{
    const qi_window *g = &p->g;
    size_t const row = (size_t)g->w * (size_t)g->c;
    qi_taps const tx = qi_taps_at(ox, g->stride_w, g->pad_left, g->dilation_w, g->kernel_w, g->w);
    for (int32_t ky = 0; ky < g->kernel_h; ky++, p->to += p->run)
        if (ky >= ty.first && ky < ty.end)
            patch_row(p, p->to, picture + (size_t)(ty.start + ky * g->dilation_h) * row, tx);
        else
            memset(p->to, p->outside, p->run);
}

/** Write the patches of columns first..end-1, whose windows lie inside the picture. */
static void patches_inside(struct patches *p, const uint8_t *picture, qi_taps ty, int32_t first,
                           int32_t end)
{
    const qi_window *g = &p->g;
    size_t const c = (size_t)g->c, row = (size_t)g->w * c;
    size_t const below = (size_t)g->dilation_h * row, step = (size_t)g->stride_w * c;
    if (first >= end)
        return; /* in this case ty may begin outside the picture */
    const uint8_t *x =
        picture + (size_t)ty.start * row + (size_t)(first * g->stride_w - g->pad_left) * c;
    for (int32_t ox = first; ox < end; ox++, x += step) {
        const uint8_t *from = x;
        for (int32_t ky = 0; ky < g->kernel_h; ky++, from += below, p->to += p->run)
            qi_copy_codes(p->isa, p->to, from, p->run, p->flip);
    }
}

/** Write the patches of columns first..end-1 of one output line, counted over [N,OH]. */
static void patches_of_line(struct patches *p, int32_t line, int32_t first, int32_t end)
{
    const qi_window *g = &p->g;
    size_t const size = (size_t)g->h * (size_t)g->w * (size_t)g->c;
    const uint8_t *picture = p->x + (size_t)(line / g->oh) * size;
    qi_taps const ty =
        qi_taps_at(line % g->oh, g->stride_h, g->pad_top, g->dilation_h, g->kernel_h, g->h);
    int const is_whole = ty.first == 0 && ty.end == g->kernel_h && g->dilation_w == 1;
    int32_t const inside = is_whole ? qi_clamp(p->first_inside, first, end) : end;
    int32_t const border = is_whole ? qi_clamp(p->end_inside, inside, end) : end;
    for (int32_t ox = first; ox < inside; ox++)
        patch_at_border(p, picture, ty, ox);
    patches_inside(p, picture, ty, inside, border);
    for (int32_t ox = border; ox < end; ox++)
        patch_at_border(p, picture, ty, ox);
}

/** Write the patches of rows first..first+rows-1 of the matrix. */
static void fill_patches(struct patches *p, int32_t first, int32_t rows)
{
    int32_t const ow = p->g.ow, end = first + rows;
    for (int32_t row = first; row < end;) {
        int32_t const line = row / ow, ox = row % ow;
        int32_t const count = ow - ox < end - row ? ow - ox : end - row;
        patches_of_line(p, line, ox, ox + count);
        row += count;
    }
}

static struct patches patches_for(const qi_fast_call *call, const qi_window *g, uint8_t flip)
{
    int32_t const last =
        g->w - g->kernel_w + g->pad_left; /* last start of a window inside the picture */
    return (struct patches){.g = *g,
                            .x = call->in[0],
                            .to = call->scratch,
                            .run = (size_t)g->kernel_w * (size_t)g->c,
                            .isa = call->isa,
                            .flip = flip,
                            .outside =
                                (uint8_t)qi_input(call->model, call->node, 0)->zero_point ^ flip,
                            .first_inside = (g->pad_left + g->stride_w - 1) / g->stride_w,
                            .end_inside = last < 0 ? 0 : last / g->stride_w + 1};
}

/* ------------------------------------------------------------------ products */

/** Bytes of one output: a code, or the int32 sum itself for training. */
static size_t output_bytes(const qi_node *node)
{
    return node->rounding == QI_ROUND_NONE ? sizeof(int32_t) : 1;
}

/** Write what the product reads of a piece's rows, if that is neither the input nor flipped by it.
 */
static void copy_rows(const qi_fast_call *call, const qi_window *g, uint8_t flip, int32_t row,
                      int32_t rows)
{
    size_t const depth = depth_of(g);
    if (is_matrix(g)) {
        qi_copy_codes(call->isa, call->scratch, (const uint8_t *)call->in[0] + (size_t)row * depth,
                      (size_t)rows * depth, flip);
        return;
    }
    struct patches p = patches_for(call, g, flip);
    fill_patches(&p, row, rows);
}

/** Run a piece of whole lines, some lines of one picture at a time. */
static void run_lines(const qi_fast_call *call, const qi_window *g, uint8_t flip,
                      const qi_gemm_piece *piece)
{
    struct lines const l = lines_of(g);
    size_t const y_stride = (size_t)g->o * output_bytes(call->node), c = (size_t)g->c;
    size_t const picture = (size_t)g->h * (size_t)g->w * c;
    int32_t const end = (piece->row + piece->rows) / g->ow;
    for (int32_t line = piece->row / g->ow, count; line < end; line += count) {
        int32_t const oy = line % g->oh;
        count = g->oh - oy < end - line ? g->oh - oy : end - line;
        count = count < l.count ? count : l.count;
        copy_lines(call, g, flip, (const uint8_t *)call->in[0] + (size_t)(line / g->oh) * picture,
                   oy, count);
        qi_gemm_run const product = {.packed = call->packed,
                                     .x = call->scratch,
                                     .x_stride = (size_t)g->stride_w * c,
                                     .rows = count * g->ow,
                                     .line = g->ow,
                                     .line_stride = (size_t)g->stride_h * l.pitch,
                                     .first_channel = piece->first_channel,
                                     .end_channel = piece->end_channel,
                                     .y = (uint8_t *)call->out +
                                          (size_t)line * (size_t)g->ow * y_stride,
                                     .y_stride = y_stride,
                                     .scratch = (uint8_t *)call->scratch + lines_bytes(g)};
        call->isa->gemm->run(&product);
    }
}

/** Run a piece of rows that are copied, or lie in the input. */
static void run_rows(const qi_fast_call *call, const qi_window *g, uint8_t flip, size_t copied,
                     const qi_gemm_piece *piece)
{
    size_t const y_stride = (size_t)g->o * output_bytes(call->node), row = (size_t)piece->row;
    const uint8_t *input = (const uint8_t *)call->in[0] + row * depth_of(g);
    int const flips = is_matrix(g) && flip && call->isa->gemm->flips;
    if (copied && !flips)
        copy_rows(call, g, flip, piece->row, piece->rows);
    qi_gemm_run const product = {.packed = call->packed,
                                 .x = copied ? call->scratch : input,
                                 .x_stride = depth_of(g),
                                 .codes = flips ? input : NULL,
                                 .rows = piece->rows,
                                 .first_channel = piece->first_channel,
                                 .end_channel = piece->end_channel,
                                 .y = (uint8_t *)call->out + row * y_stride,
                                 .y_stride = y_stride,
                                 .scratch = (uint8_t *)call->scratch + copied};
    call->isa->gemm->run(&product);
}

static void run_tiles(const qi_fast_call *call, int32_t first, int32_t end)
{
    qi_window const g = qi_conv_window(call->model, call->node);
    qi_gemm_split const split = split_of(call->isa, &g);
    uint8_t const flip =
        qi_gemm_flip(call->isa->gemm, qi_codes_of(qi_input(call->model, call->node, 0)));
    size_t const copied = copied_bytes(call->isa->gemm, &g, &split, flip);
    while (first < end) {
        qi_gemm_piece const piece = qi_gemm_pieces(&split, first, end);
        if (reads_lines(call->isa->gemm, &g))
            run_lines(call, &g, flip, &piece);
        else
            run_rows(call, &g, flip, copied, &piece);
        first = piece.next;
    }
}

const qi_fast qi_fast_conv2d = {.kernel = &qi_kernel_conv2d,
                                .accepts = accepts,
                                .packed_bytes = packed_bytes,
                                .pack = pack,
                                .scratch = scratch,
                                .tiles = tiles,
                                .run_tiles = run_tiles};
