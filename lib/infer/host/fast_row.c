/**
 * add, sub and mul of pictures x [N,H,W,C] and a row of channels [N or 1,1,1,C] on a host: the
 * excitation of squeeze-and-excite, batch norm that stayed a product. For one code of the row, the
 * op is a straight line (code_lines.h). The lines of all channels are laid out once, for enough
 * pixels that whole registers are full, and then go over all pixels.
 *
 *   packed   head | lines of all codes | for a constant row: the lines of its channels
 *   scratch  for any other row: the lines of its channels, laid out by each tile
 *
 * Where some code has no line, combine runs pixel after pixel.
 */
#include "infer/host/code_lines.h"
#include "infer/host/fast.h"

/* ------------------------------------------------------------------ shapes */

/** How many codes and pixels there are, and how they are cut into tiles. */
struct rows {
    int row;            /* which input is the row; -1: none */
    int is_constant;    /* and there is only one */
    size_t channels;    /* of a pixel, and of the row */
    size_t pixels;      /* that one row is for */
    size_t length;      /* codes whose lines are laid out: whole pixels */
    size_t tile_pixels; /* a multiple of the pixels of `length` */
    size_t tiles;       /* for one row */
    size_t count;       /* of rows */
};

static int is_row(const qi_tensor *row, const qi_tensor *x, const qi_tensor *y)
{
    for (int d = 0; d < QI_MAX_RANK; d++)
        if (qi_aligned_dim(x, d) != qi_aligned_dim(y, d))
            return 0;
    return qi_aligned_dim(row, 1) == 1 && qi_aligned_dim(row, 2) == 1 &&
           qi_aligned_dim(row, 3) == qi_aligned_dim(y, 3);
}

static size_t greatest_divisor(size_t a, size_t b)
{
    while (b) {
        size_t const rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** Codes of the fewest whole pixels that fill whole blocks; or of one pixel if those are many. */
static size_t length_of(size_t channels, size_t block, size_t least)
{
    enum { MOST = 4096 };
    size_t const length = channels * (block / greatest_divisor(channels, block));
    if (length > MOST)
        return channels;
    return length * ((least + length - 1) / length);
}

static struct rows rows_of(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *in[] = {qi_input(model, node, 0), qi_input(model, node, 1)};
    const qi_tensor *y = qi_output(model, node);
    struct rows r = {.row = is_row(in[1], in[0], y) ? 1 : is_row(in[0], in[1], y) ? 0 : -1};
    if (r.row < 0)
        return r;
    r.count = (size_t)qi_aligned_dim(in[r.row], 0);
    r.is_constant = in[r.row]->kind == QI_CONSTANT && r.count == 1;
    size_t const tile = r.is_constant ? 16384 : 65536;
    r.channels = (size_t)qi_aligned_dim(y, 3);
    r.pixels = y->bytes / r.channels / r.count;
    r.length = length_of(r.channels, isa->elementwise->line_block, r.is_constant ? 1024 : 256);
    r.tile_pixels = (tile + r.length - 1) / r.length * (r.length / r.channels);
    r.tiles = (r.pixels + r.tile_pixels - 1) / r.tile_pixels;
    return r;
}

/* ------------------------------------------------------------------ the driver's table */

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    enum { FEWEST = 16 /* pixels for which laying out lines is worth the work */ };
    if (!isa->elementwise || !isa->elementwise->lines || !qi_shifts_right(node))
        return 0;
    struct rows const r = rows_of(isa, model, node);
    return r.row >= 0 && r.pixels >= FEWEST;
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    struct rows const r = rows_of(isa, model, node);
    return (int32_t)(r.tiles * r.count);
}

/* ------------------------------------------------------------------ lines of all channels */

struct head {
    int32_t has_lines;
    qi_code_line_table lines;
};

static size_t head_bytes(void)
{
    return (sizeof(struct head) + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

/** Codes of r.length, rounded up to whole blocks. */
static size_t padded(const qi_isa *isa, const struct rows *r)
{
    size_t const block = isa->elementwise->line_block;
    return (r->length + block - 1) / block * block;
}

static size_t laid_out_bytes(const qi_isa *isa, const struct rows *r)
{
    return padded(isa, r) * (2 * sizeof(int32_t) + 2);
}

/** What laid_out_bytes holds: mult | add | from | step. */
struct laid_out {
    int32_t *mult, *add;
    uint8_t *from, *step;
};

static struct laid_out laid_out_at(void *at, size_t codes)
{
    int32_t *mult = at;
    uint8_t *from = (uint8_t *)(mult + 2 * codes);
    return (struct laid_out){mult, mult + codes, from, from + codes};
}

static void lay_out(const qi_isa *isa, const struct rows *r, const qi_code_line_table *lines,
                    const uint8_t *row, void *at)
{
    size_t const codes = padded(isa, r), block = isa->elementwise->line_block;
    struct laid_out const to = laid_out_at(at, codes);
    for (size_t i = 0, c = 0; i < codes; i++, c = c + 1 == r->channels ? 0 : c + 1) {
        const qi_code_line *line = &lines->of[row[c]];
        size_t const place = qi_line_place(i, block);
        to.mult[place] = (int32_t)((uint32_t)line->high << 16 | (uint16_t)line->low);
        to.add[place] = line->add;
        to.from[i] = line->from;
        to.step[i] = line->step;
    }
}

/* ------------------------------------------------------------------ packing */

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    struct rows const r = rows_of(isa, model, node);
    return head_bytes() + (r.is_constant ? laid_out_bytes(isa, &r) : 0);
}

static size_t scratch(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    struct rows const r = rows_of(isa, model, node);
    return r.is_constant ? 0 : laid_out_bytes(isa, &r);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    struct rows const r = rows_of(isa, model, node);
    const qi_tensor *row = qi_input(model, node, r.row);
    const uint8_t *codes = row->data;
    struct head *head = packed;
    uint8_t needed[QI_TABLE] = {0};
    for (size_t i = 0; i < r.channels && r.is_constant; i++)
        needed[codes[i]] = 1;
    for (int32_t q = qi_code_lo(row); q <= qi_code_hi(row) && !r.is_constant; q++)
        needed[(uint8_t)q] = 1;
    head->has_lines = qi_code_lines_of_node(model, node, r.row, needed, &head->lines);
    if (head->has_lines && r.is_constant)
        lay_out(isa, &r, &head->lines, codes, (uint8_t *)packed + head_bytes());
}

/* ------------------------------------------------------------------ running */

/** Some pixels of one row. */
struct tile {
    const uint8_t *row, *x;
    uint8_t *y;
    size_t n; /* codes */
};

static void run_lines(const qi_fast_call *call, const struct rows *r, const struct tile *t)
{
    const qi_elementwise *inner = call->isa->elementwise;
    const struct head *head = call->packed;
    qi_combine const c = qi_combine_of(call->model, call->node);
    void *at = call->scratch;
    if (r->is_constant)
        at = (uint8_t *)(uintptr_t)call->packed + head_bytes();
    else
        lay_out(call->isa, r, &head->lines, t->row, at);
    struct laid_out const lines = laid_out_at(at, padded(call->isa, r));
    qi_lines const l = {.mult = lines.mult,
                        .add = lines.add,
                        .from = lines.from,
                        .step = lines.step,
                        .flip = r->row ? c.a.flip : c.b.flip,
                        .y_flip = c.y.y_flip,
                        .right = head->lines.right,
                        .lo = c.y.lo,
                        .hi = c.y.hi};
    for (size_t i = 0; i < t->n; i += r->length)
        inner->lines(&l, t->x + i, t->y + i, t->n - i < r->length ? t->n - i : r->length);
}

static void run_pixels(const qi_fast_call *call, const struct rows *r, const struct tile *t)
{
    qi_combine const c = qi_combine_of(call->model, call->node);
    for (size_t i = 0; i < t->n; i += r->channels)
        call->isa->elementwise->combine(&c, r->row ? t->x + i : t->row, r->row ? t->row : t->x + i,
                                        t->y + i, r->channels);
}

static void run(const qi_fast_call *call, int32_t index)
{
    struct rows const r = rows_of(call->isa, call->model, call->node);
    size_t const which = (size_t)index / r.tiles, first = (size_t)index % r.tiles * r.tile_pixels;
    size_t const pixels = r.pixels - first < r.tile_pixels ? r.pixels - first : r.tile_pixels;
    size_t const at = (which * r.pixels + first) * r.channels;
    struct tile const t = {.row = (const uint8_t *)call->in[r.row] + which * r.channels,
                           .x = (const uint8_t *)call->in[1 - r.row] + at,
                           .y = (uint8_t *)call->out + at,
                           .n = pixels * r.channels};
    if (((const struct head *)call->packed)->has_lines)
        run_lines(call, &r, &t);
    else
        run_pixels(call, &r, &t);
}

#define ROW(op)                                                                                    \
    const qi_fast qi_fast_##op##_row = {.kernel = &qi_kernel_##op,                                 \
                                        .accepts = accepts,                                        \
                                        .packed_bytes = packed_bytes,                              \
                                        .pack = pack,                                              \
                                        .scratch = scratch,                                        \
                                        .tiles = tiles,                                            \
                                        .run = run,                                                \
                                        .in_place = 1}
ROW(add);
ROW(sub);
ROW(mul);
