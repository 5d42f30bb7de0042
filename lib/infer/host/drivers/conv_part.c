/** Runs the parts of convolutions: copies what they read, and cuts their products into tiles. */
#include "infer/host/drivers/conv_part.h"
#include "infer/host/drivers/patches.h"

/** Are the rows of the matrix pixels of the input, one after the other? */
static int is_matrix(const qi_window *g)
{
    return g->kernel_h == 1 && g->kernel_w == 1 && g->stride_h == 1 && g->stride_w == 1 &&
           g->pad_top == 0 && g->pad_left == 0 && g->oh == g->h && g->ow == g->w;
}

/** Do the outputs of a line end where the next line begins, and those of a picture likewise? */
static int is_dense(const qi_conv_part *p)
{
    return p->y_line == (size_t)p->g.ow * p->y_pixel && p->y_picture == (size_t)p->g.oh * p->y_line;
}

/** A row's output. */
static uint8_t *output_of(const qi_conv_part *p, void *y, int32_t row)
{
    int32_t const line = row / p->g.ow, picture = line / p->g.oh;
    return (uint8_t *)y + p->y_at + (size_t)picture * p->y_picture +
           (size_t)(line % p->g.oh) * p->y_line + (size_t)(row % p->g.ow) * p->y_pixel;
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
    int32_t const fit = (int32_t)(BYTES / pitch) - g->kernel_h;
    int32_t const count = fit < 0 ? 1 : fit / g->stride_h + 1;
    return (struct lines){.run = (size_t)g->kernel_w * (size_t)g->c,
                          .pitch = pitch,
                          .count = count < g->oh ? count : g->oh};
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
    return qi_conv_align((size_t)lines_for(g, l.count) * l.pitch + QI_SLACK);
}

void qi_conv_part_segment(const qi_gemm *gemm, const qi_conv_part *part, qi_gemm_layer *product)
{
    if (!reads_lines(gemm, &part->g))
        return;
    struct lines const l = lines_of(&part->g);
    product->segment = (int32_t)l.run;
    product->segment_stride = l.pitch;
}

/** Copy the part's channels of successive pixels. */
static void copy_pixels(const qi_isa *isa, const qi_conv_part *part, uint8_t flip, uint8_t *to,
                        const uint8_t *from, size_t pixels)
{
    size_t const c = (size_t)part->g.c;
    if (part->x_pixel == c) {
        qi_copy_codes(isa, to, from, pixels * c, flip);
        return;
    }
    for (size_t i = 0; i < pixels; i++, to += c, from += part->x_pixel)
        qi_copy_codes(isa, to, from, c, flip);
}

/** Which columns of the picture a line in scratch has. */
struct columns {
    size_t first, count; /* of the picture */
    size_t left, line;   /* columns outside before them, and of the whole line */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct columns columns_of(const qi_window *g)
{
    struct columns c = {.line = (size_t)((g->ow - 1) * g->stride_w + g->kernel_w)};
    c.left = least(g->pad_left > 0 ? (size_t)g->pad_left : 0, c.line);
    c.first = least(g->pad_left < 0 ? (size_t)-g->pad_left : 0, (size_t)g->w);
    c.count = least((size_t)g->w - c.first, c.line - c.left);
    return c;
}

/** Copy the lines for output lines first..first + count - 1 of one picture. */
static void copy_lines(const qi_fast_call *call, const qi_conv_part *part, uint8_t flip,
                       const uint8_t *picture, int32_t first, int32_t count)
{
    const qi_window *g = &part->g;
    struct columns const columns = columns_of(g);
    size_t const c = (size_t)g->c, pitch = columns.line * c, left = columns.left * c;
    size_t const inside = columns.count * c;
    int const outside = qi_zero_byte(part->x_codes) ^ flip;
    uint8_t *to = call->scratch;
    int32_t const y = first * g->stride_h - g->pad_top, end = y + lines_for(g, count);
    for (int32_t i = y; i < end; i++, to += pitch) {
        if (i < 0 || i >= g->h) {
            memset(to, outside, pitch);
            continue;
        }
        size_t const pixel = (size_t)i * (size_t)g->w + columns.first;
        memset(to, outside, left);
        copy_pixels(call->isa, part, flip, to + left, picture + pixel * part->x_pixel,
                    columns.count);
        memset(to + left + inside, outside, pitch - left - inside);
    }
}

/* ------------------------------------------------------------------ tiles */

/** How a part is cut if it is the only one. */
static qi_gemm_split split_alone(const qi_gemm *gemm, const qi_window *g)
{
    int32_t const depth = (int32_t)qi_conv_depth(g);
    if (reads_lines(gemm, g))
        return qi_gemm_split_lines(gemm, g->n * g->oh, g->ow,
                                   (size_t)g->stride_h * lines_of(g).pitch, depth, g->o);
    return qi_gemm_split_of(gemm, g->n * g->oh * g->ow, depth, g->o);
}

static qi_gemm_split split_of(const qi_gemm *gemm, const qi_conv_part *part, int32_t parts)
{
    const qi_window *g = &part->g;
    qi_gemm_split const s = split_alone(gemm, g);
    if (parts == 1)
        return s;
    int64_t const x = (int64_t)g->h * g->w * (int64_t)part->x_pixel;
    return qi_gemm_split_among(s, parts, g->n * (x + g->oh * (int64_t)part->y_line));
}

/** The first part says into how many blocks all are cut. */
static qi_conv_tiles tiles_of(const qi_conv_layer *layer, const qi_isa *isa, const qi_model *model,
                              const qi_node *node)
{
    int32_t const parts = layer->parts(isa, model, node);
    qi_conv_part const first = layer->part(isa, model, node, 0);
    qi_gemm_split const s = split_of(isa->gemm, &first, parts);
    return (qi_conv_tiles){.parts = parts, .blocks = s.blocks, .groups = s.groups};
}

/** How one of the parts is cut. A part with few rows has no work in the last blocks. */
static qi_gemm_split split_as(const qi_gemm *gemm, const qi_conv_part *part,
                              const qi_conv_tiles *tiles)
{
    qi_gemm_split s = split_of(gemm, part, tiles->parts);
    s.blocks = tiles->blocks < s.row_tiles ? tiles->blocks : s.row_tiles;
    s.groups = tiles->groups;
    return s;
}

int32_t qi_conv_tile_count(const qi_conv_layer *layer, const qi_isa *isa, const qi_model *model,
                           const qi_node *node)
{
    qi_conv_tiles const t = tiles_of(layer, isa, model, node);
    return t.blocks * t.parts * t.groups;
}

/* ------------------------------------------------------------------ scratch */

/** Bytes of the copied rows of a piece; 0 if the input is the matrix. */
static size_t copied_bytes(const qi_gemm *gemm, const qi_conv_part *part,
                           const qi_gemm_split *split)
{
    const qi_window *g = &part->g;
    if (reads_lines(gemm, g))
        return lines_bytes(g);
    return is_matrix(g) && !qi_gemm_flip(gemm, part->x_codes)
               ? 0
               : qi_gemm_copy_bytes(split, qi_conv_depth(g));
}

size_t qi_conv_scratch(const qi_conv_layer *layer, const qi_isa *isa, const qi_model *model,
                       const qi_node *node)
{
    qi_conv_tiles const tiles = tiles_of(layer, isa, model, node);
    size_t most = 0;
    for (int32_t i = 0; i < tiles.parts; i++) {
        qi_conv_part const part = layer->part(isa, model, node, i);
        qi_gemm_layer const product = layer->product(isa, model, node, i);
        qi_gemm_split const split = split_as(isa->gemm, &part, &tiles);
        size_t const bytes =
            copied_bytes(isa->gemm, &part, &split) + qi_gemm_scratch(isa->gemm, &product);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ------------------------------------------------------------------ plans */

/** How a part runs. */
struct plan {
    qi_conv_part part;
    qi_gemm_split split;
    int has_lines;
    uint8_t flip;
    size_t copied; /* bytes of scratch before the product's own */
};

/** Start of a packed layer. */
struct head {
    qi_conv_tiles tiles;
    struct plan plans[]; /* of all parts */
};

size_t qi_conv_plan_bytes(int32_t parts)
{
    return qi_conv_align(sizeof(struct head) + (size_t)parts * sizeof(struct plan));
}

void qi_conv_plan(const qi_conv_layer *layer, const qi_isa *isa, const qi_model *model,
                  const qi_node *node, void *packed)
{
    struct head *head = packed;
    head->tiles = tiles_of(layer, isa, model, node);
    for (int32_t i = 0; i < head->tiles.parts; i++) {
        struct plan *p = &head->plans[i];
        *p = (struct plan){.part = layer->part(isa, model, node, i)};
        p->split = split_as(isa->gemm, &p->part, &head->tiles);
        p->has_lines = reads_lines(isa->gemm, &p->part.g);
        p->flip = qi_gemm_flip(isa->gemm, p->part.x_codes);
        p->copied = copied_bytes(isa->gemm, &p->part, &p->split);
    }
}

const void *qi_conv_product(const void *packed)
{
    const struct head *head = packed;
    return (const uint8_t *)packed + head->plans[0].part.packed_at;
}

/* ------------------------------------------------------------------ products */

/** A part of a call. */
struct job {
    const qi_fast_call *call;
    const struct plan *plan;
    const qi_conv_part *part;
    const uint8_t *x; /* its first channel */
};

/**
 * Run the rows first..first + product.rows - 1, whose x is set. Those of each output line are a
 * product of their own if outputs have others in between.
 */
static void run_product(const struct job *j, qi_gemm_run product, int32_t first)
{
    int32_t const end = first + product.rows, ow = j->part->g.ow;
    size_t const line_stride = product.line ? product.line_stride : (size_t)ow * product.x_stride;
    product.packed = (const uint8_t *)j->call->packed + j->part->packed_at;
    product.y_stride = j->part->y_pixel;
    product.scratch = (uint8_t *)j->call->scratch + j->plan->copied;
    if (is_dense(j->part)) {
        product.y = output_of(j->part, j->call->out, first);
        j->call->isa->gemm->run(&product);
        return;
    }
    product.line = 0;
    for (int32_t row = first, count; row < end; row += count) {
        count = ow - row % ow < end - row ? ow - row % ow : end - row;
        product.rows = count;
        product.y = output_of(j->part, j->call->out, row);
        j->call->isa->gemm->run(&product);
        product.x += count == ow ? line_stride : (size_t)count * product.x_stride;
    }
}

/** Write what the product reads of a piece's rows, if that is neither the input nor flipped by it.
 */
static void copy_rows(const struct job *j, int32_t row, int32_t rows)
{
    const qi_conv_part *p = j->part;
    if (is_matrix(&p->g))
        copy_pixels(j->call->isa, p, j->plan->flip, j->call->scratch,
                    j->x + (size_t)row * p->x_pixel, (size_t)rows);
    else
        qi_fill_patches(j->call->isa, p, j->plan->flip, j->x, j->call->scratch, row, rows);
}

/** Run a piece of whole lines, some lines of one picture at a time. */
static void run_lines(const struct job *j, const qi_gemm_piece *piece)
{
    const qi_window *g = &j->part->g;
    struct lines const l = lines_of(g);
    size_t const picture = (size_t)g->h * (size_t)g->w * j->part->x_pixel;
    int32_t const end = (piece->row + piece->rows) / g->ow;
    for (int32_t line = piece->row / g->ow, count; line < end; line += count) {
        int32_t const oy = line % g->oh;
        count = g->oh - oy < end - line ? g->oh - oy : end - line;
        count = count < l.count ? count : l.count;
        copy_lines(j->call, j->part, j->plan->flip, j->x + (size_t)(line / g->oh) * picture, oy,
                   count);
        run_product(j,
                    (qi_gemm_run){.x = j->call->scratch,
                                  .x_stride = (size_t)g->stride_w * (size_t)g->c,
                                  .rows = count * g->ow,
                                  .line = g->ow,
                                  .line_stride = (size_t)g->stride_h * l.pitch,
                                  .first_channel = piece->first_channel,
                                  .end_channel = piece->end_channel},
                    line * g->ow);
    }
}

/** Run a piece of rows that are copied, or lie in the input. */
static void run_rows(const struct job *j, const qi_gemm_piece *piece)
{
    const qi_conv_part *p = j->part;
    const uint8_t *input = j->x + (size_t)piece->row * p->x_pixel;
    size_t const depth = qi_conv_depth(&p->g);
    int const flips = is_matrix(&p->g) && j->plan->flip && j->call->isa->gemm->flips &&
                      p->x_pixel == depth && is_dense(p);
    if (j->plan->copied && !flips)
        copy_rows(j, piece->row, piece->rows);
    run_product(j,
                (qi_gemm_run){.x = j->plan->copied ? j->call->scratch : input,
                              .x_stride = j->plan->copied ? depth : p->x_pixel,
                              .codes = flips ? input : NULL,
                              .rows = piece->rows,
                              .first_channel = piece->first_channel,
                              .end_channel = piece->end_channel},
                piece->row);
}

/** Run the tiles of a part from `first` on that are one piece; returns the next tile. */
static int32_t run_piece(const struct job *j, const qi_conv_tiles *tiles, int32_t first,
                         int32_t end)
{
    const qi_gemm_split *split = &j->plan->split;
    int32_t const group = first % tiles->groups, left = tiles->groups - group;
    int32_t const block = first / tiles->groups / tiles->parts, at = block * tiles->groups + group;
    int32_t const count = tiles->parts > 1 && left < end - first ? left : end - first;
    if (block >= split->blocks)
        return first + count;
    qi_gemm_piece const piece = qi_gemm_pieces(split, at, at + count);
    if (j->plan->has_lines)
        run_lines(j, &piece);
    else
        run_rows(j, &piece);
    return first + piece.next - at;
}

void qi_conv_run_tiles(const qi_fast_call *call, int32_t first, int32_t end)
{
    const struct head *head = call->packed;
    while (first < end) {
        const struct plan *plan = &head->plans[first / head->tiles.groups % head->tiles.parts];
        struct job const job = {.call = call,
                                .plan = plan,
                                .part = &plan->part,
                                .x = (const uint8_t *)call->in[0] + plan->part.x_at};
        first = run_piece(&job, &head->tiles, first, end);
    }
}
