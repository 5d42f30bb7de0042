/**
 * add, sub and mul of pictures x [N,H,W,C] and a row of channels [N or 1,1,1,C] on a host: the
 * excitation of squeeze-and-excite, batch norm that stayed a product. For one code of the row, the
 * op is a straight line (code_lines.h). The lines of all channels are laid out once, for enough
 * pixels that whole registers are full, and then go over all pixels.
 *
 *   packed   head | lines of all codes | for a constant row: the lines of its channels
 *   scratch  for any other row: the lines of its channels, laid out once for successive tiles
 *
 * Where some code has no line, the row itself is laid out in the scratch, and the op is that of two
 * tensors.
 */
#include "infer/host/lines/code_lines.h"
#include "infer/host/loops/fast.h"

#include <string.h>

enum { TILE = 32768 };

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

static struct rows rows_of(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *in[] = {qi_input(model, node, 0), qi_input(model, node, 1)};
    const qi_tensor *y = qi_output(model, node);
    struct rows r = {.row = is_row(in[1], in[0], y) ? 1 : is_row(in[0], in[1], y) ? 0 : -1};
    if (r.row < 0)
        return r;
    r.count = (size_t)qi_aligned_dim(in[r.row], 0);
    r.is_constant = in[r.row]->kind == QI_CONSTANT && r.count == 1;
    r.channels = (size_t)qi_aligned_dim(y, 3);
    r.pixels = y->bytes / r.channels / r.count;
    r.length = qi_lines_length(r.channels, isa->elementwise->line_block);
    r.tile_pixels = (TILE + r.length - 1) / r.length * (r.length / r.channels);
    r.tiles = (r.pixels + r.tile_pixels - 1) / r.tile_pixels;
    return r;
}

/* ------------------------------------------------------------------ the driver's table */

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    enum { FEWEST = 16 /* pixels for which laying out lines is worth the work */ };
    if (!isa->elementwise || !isa->elementwise->lines || !qi_binary_fits(node))
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
    qi_binary binary; /* if not */
    qi_code_line_table lines;
};

static size_t head_bytes(void)
{
    return (sizeof(struct head) + QI_FAST_ALIGN - 1) / QI_FAST_ALIGN * QI_FAST_ALIGN;
}

static size_t laid_out_bytes(const qi_isa *isa, const struct rows *r)
{
    return qi_lines_bytes(r->length, isa->elementwise->line_block);
}

static void lay_out(const qi_isa *isa, const struct rows *r, const struct head *head,
                    const uint8_t *row, void *at)
{
    qi_lines_lay_out(isa->elementwise, &head->lines, row, r->channels, r->length, at);
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
    return (r.is_constant ? r.length : laid_out_bytes(isa, &r)) + QI_SLACK;
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
    if (!head->has_lines)
        qi_binary_pack(isa->elementwise, model, node, &head->binary);
    if (head->has_lines && r.is_constant)
        lay_out(isa, &r, head, codes, (uint8_t *)packed + head_bytes());
}

/* ------------------------------------------------------------------ running */

/** Some pixels of one row. */
struct tile {
    const uint8_t *row, *x;
    uint8_t *y;
    size_t n; /* codes */
};

static struct tile tile_at(const qi_fast_call *call, const struct rows *r, int32_t index)
{
    size_t const which = (size_t)index / r->tiles;
    size_t const first = (size_t)index % r->tiles * r->tile_pixels;
    size_t const pixels = r->pixels - first < r->tile_pixels ? r->pixels - first : r->tile_pixels;
    size_t const at = (which * r->pixels + first) * r->channels;
    return (struct tile){.row = (const uint8_t *)call->in[r->row] + which * r->channels,
                         .x = (const uint8_t *)call->in[1 - r->row] + at,
                         .y = (uint8_t *)call->out + at,
                         .n = pixels * r->channels};
}

/** Lay out in the scratch what a tile needs of its row: lines, or without these its codes. */
static void lay_out_row(const qi_fast_call *call, const struct rows *r, const uint8_t *row)
{
    const struct head *head = call->packed;
    uint8_t *codes = call->scratch;
    if (head->has_lines && !r->is_constant)
        lay_out(call->isa, r, head, row, call->scratch);
    for (size_t i = 0; i < r->length && !head->has_lines; i += r->channels)
        memcpy(codes + i, row, r->channels);
}

/** Without lines: x, and the codes of the row that lie in the scratch. */
static void run_codes(const qi_fast_call *call, const struct rows *r, const struct tile *t)
{
    const struct head *head = call->packed;
    const uint8_t *row = call->scratch;
    for (size_t i = 0, n; i < t->n; i += n) {
        n = t->n - i < r->length ? t->n - i : r->length;
        qi_binary_run(call->isa->elementwise, call->model, call->node, &head->binary,
                      r->row ? t->x + i : row, r->row ? row : t->x + i, t->y + i, n);
    }
}

static void run_tiles(const qi_fast_call *call, int32_t index, int32_t end)
{
    const struct head *head = call->packed;
    struct rows const r = rows_of(call->isa, call->model, call->node);
    qi_combine const c = qi_combine_of(call->model, call->node);
    const void *lines =
        r.is_constant ? (const uint8_t *)call->packed + head_bytes() : call->scratch;
    const uint8_t *laid_out = NULL;
    for (; index < end; index++) {
        struct tile const t = tile_at(call, &r, index);
        if (t.row != laid_out)
            lay_out_row(call, &r, t.row);
        laid_out = t.row;
        if (head->has_lines)
            qi_lines_run(call->isa->elementwise, &head->lines, lines, r.length, &c.y, t.x, t.y,
                         t.n);
        else
            run_codes(call, &r, &t);
    }
}

#define ROW(op)                                                                                    \
    const qi_fast qi_fast_##op##_row = {.kernel = &qi_kernel_##op,                                 \
                                        .accepts = accepts,                                        \
                                        .packed_bytes = packed_bytes,                              \
                                        .pack = pack,                                              \
                                        .scratch = scratch,                                        \
                                        .tiles = tiles,                                            \
                                        .run_tiles = run_tiles,                                    \
                                        .in_place = 1}
ROW(add);
ROW(sub);
ROW(mul);
