/**
 * add, sub and mul on a host, if each operand has the output's last dimension or is repeated along
 * it. They become runs of codes for qi_elementwise.combine. The core runs nodes with left shifts
 * after the high multiply (but for rounding EVEN), and shapes that runs do not cover.
 */
#include "infer/host/lines/even_pairs.h"
#include "infer/host/lines/pair_line.h"
#include "infer/host/lines/product_line.h"
#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"

enum { TILE = 32768 };

/* ------------------------------------------------------------------ shapes */

/**
 * How the outputs are cut into runs. The last axes along which each operand is either complete or
 * one repeated value form one run. The other axes are walked.
 */
struct runs {
    size_t run;                  /* codes of one run */
    size_t count;                /* runs */
    size_t piece, pieces;        /* long runs are cut: codes per piece, pieces per run */
    int32_t outer;               /* axes that are walked: 0..outer-1 */
    size_t dim[QI_MAX_RANK];     /* of the output */
    size_t step[2][QI_MAX_RANK]; /* of each operand along the walked axes */
};

static int is_whole(const qi_tensor *t, const qi_tensor *y, int d)
{
    return qi_aligned_dim(t, d) == qi_aligned_dim(y, d);
}

static struct runs runs_of(const qi_model *model, const qi_node *node)
{
    const qi_tensor *a = qi_input(model, node, 0), *b = qi_input(model, node, 1);
    const qi_tensor *y = qi_output(model, node);
    struct runs r = {.run = 1, .count = 1, .outer = QI_MAX_RANK};
    for (int d = QI_MAX_RANK - 1; d >= 0; d--)
        r.dim[d] = (size_t)qi_aligned_dim(y, d);
    while (r.outer > 0 && is_whole(a, y, r.outer - 1) && is_whole(b, y, r.outer - 1))
        r.run *= r.dim[--r.outer];
    for (int d = 0; d < r.outer; d++)
        r.count *= r.dim[d];
    r.pieces = (r.run + TILE - 1) / TILE;
    r.piece = r.pieces > 1 ? TILE : r.run;
    qi_broadcast_strides(a, r.step[0]);
    qi_broadcast_strides(b, r.step[1]);
    return r;
}

/* ------------------------------------------------------------------ the driver's table */

static int is_right(const int32_t *params, int at)
{
    return params[at] <= 0;
}

int qi_binary_fits(const qi_node *node)
{
    const int32_t *p = node->params;
    if (node->rounding == QI_ROUND_EVEN)
        return 1;
    if (node->kernel == &qi_kernel_mul)
        return is_right(p, QI_MUL_SHIFT);
    return is_right(p, QI_ADD_SHIFT_A) && is_right(p, QI_ADD_SHIFT_B) &&
           is_right(p, QI_ADD_SHIFT_Y);
}

/** Without left shifts every sum fits int32: |q - Z| 2^20 < 2^28, and 2^30 is added to 2^29. */
static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    enum { SHORTEST = 16 /* a shorter run gains nothing */ };
    return isa->elementwise && runs_of(model, node).run >= SHORTEST && qi_binary_fits(node);
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    struct runs const r = runs_of(model, node);
    size_t const runs_a_tile = r.run < TILE ? TILE / r.run : 1;
    return (int32_t)((r.count + runs_a_tile - 1) / runs_a_tile * r.pieces);
}

/* ------------------------------------------------------------------ running */

qi_combine qi_combine_of(const qi_model *model, const qi_node *node)
{
    const int32_t *p = node->params;
    const qi_tensor *y = qi_output(model, node);
    int const is_mul = node->kernel == &qi_kernel_mul;
    int32_t const flip = y->type == QI_U8 ? 0x80 : 0;
    int const mult = is_mul ? QI_MUL_MULT : QI_ADD_MULT_Y,
              clamp = is_mul ? QI_MUL_CLAMP_LO : QI_ADD_CLAMP_LO;
    qi_combine c = {.kind = is_mul                           ? QI_COMBINE_MUL
                            : node->kernel == &qi_kernel_sub ? QI_COMBINE_SUB
                                                             : QI_COMBINE_ADD,
                    .a = qi_codes_of(qi_input(model, node, 0)),
                    .b = qi_codes_of(qi_input(model, node, 1)),
                    .y = {.mult = p[mult],
                          .right = -p[mult + 1],
                          .once = node->rounding == QI_ROUND_ONCE,
                          .zero_point = y->zero_point - flip,
                          .lo = p[clamp] - flip,
                          .hi = p[clamp + 1] - flip,
                          .y_flip = (uint8_t)flip}};
    if (is_mul)
        return c;
    c.left_shift = p[QI_ADD_LEFT_SHIFT];
    c.mult_a = p[QI_ADD_MULT_A];
    c.right_a = -p[QI_ADD_SHIFT_A];
    c.mult_b = p[QI_ADD_MULT_B];
    c.right_b = -p[QI_ADD_SHIFT_B];
    return c;
}

/** Where the run of an operand begins. */
static const uint8_t *operand_at(const qi_fast_call *call, const struct runs *r, int which,
                                 size_t index)
{
    size_t at = 0;
    for (int d = r->outer - 1; d >= 0; d--) {
        at += index % r->dim[d] * r->step[which][d];
        index /= r->dim[d];
    }
    return (const uint8_t *)call->in[which] + at;
}

void qi_binary_pack(const qi_elementwise *inner, const qi_model *model, const qi_node *node,
                    qi_binary *binary)
{
    if (!inner->pair_line)
        binary->has_line = 0;
    else if (node->kernel == &qi_kernel_mul)
        binary->has_line = qi_product_line_of_node(model, node, &binary->line.product);
    else
        binary->has_line = qi_pair_line_of_node(model, node, &binary->line.pair);
}

int32_t qi_scaled(const qi_scaling *s, int32_t acc)
{
    return s->once ? qi_requantize_near_ties_up(acc, s->mult, -s->right)
                   : qi_requantize(acc, s->mult, -s->right);
}

/** What add and sub bring to their common scale. */
static int32_t rescaled(const qi_combine *c, int which, uint8_t byte)
{
    qi_codes const codes = which ? c->b : c->a;
    int32_t const x = ((byte ^ codes.flip) - codes.offset) * (1 << c->left_shift);
    if (c->kind == QI_COMBINE_MUL)
        return x;
    return which ? qi_requantize(x, c->mult_b, -c->right_b)
                 : qi_requantize(x, c->mult_a, -c->right_a);
}

/** Rounding ONCE, where no line was found. */
static void combine_once(const qi_combine *c, const uint8_t *a, const uint8_t *b, uint8_t *y,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t const p = rescaled(c, 0, a[i]), q = rescaled(c, 1, b[i]);
        int32_t const acc = c->kind == QI_COMBINE_MUL   ? p * q
                            : c->kind == QI_COMBINE_SUB ? p - q
                                                        : p + q;
        int64_t const code = (int64_t)qi_scaled(&c->y, acc) + c->y.zero_point;
        y[i] = (uint8_t)(qi_clamp(qi_saturate_i64(code), c->y.lo, c->y.hi) ^ c->y.y_flip);
    }
}

void qi_binary_run(const qi_elementwise *inner, const qi_model *model, const qi_node *node,
                   const qi_binary *binary, const uint8_t *a, const uint8_t *b, uint8_t *y,
                   size_t n)
{
    if (!binary->has_line && node->rounding == QI_ROUND_EVEN) {
        (node->kernel == &qi_kernel_mul ? qi_even_products : qi_even_sums)(model, node, a, b, y, n);
    } else if (!binary->has_line) {
        qi_combine const c = qi_combine_of(model, node);
        (c.y.once ? combine_once : inner->combine)(&c, a, b, y, n);
    } else if (node->kernel == &qi_kernel_mul) {
        inner->product_line(&binary->line.product, a, b, y, n);
    } else {
        inner->pair_line(&binary->line.pair, a, b, y, n);
    }
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return sizeof(qi_binary);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *packed)
{
    qi_binary_pack(isa->elementwise, model, node, packed);
}

static void run(const qi_fast_call *call, int32_t index)
{
    struct runs const r = runs_of(call->model, call->node);
    size_t const each = r.run < TILE ? TILE / r.run : 1;
    size_t const first = (size_t)index / r.pieces * each, from = (size_t)index % r.pieces * r.piece;
    size_t const end = first + each < r.count ? first + each : r.count;
    size_t const n = r.run - from < r.piece ? r.run - from : r.piece;
    for (size_t i = first; i < end; i++)
        qi_binary_run(call->isa->elementwise, call->model, call->node, call->packed,
                      operand_at(call, &r, 0, i) + from, operand_at(call, &r, 1, i) + from,
                      (uint8_t *)call->out + i * r.run + from, n);
}

#define BINARY(op)                                                                                 \
    const qi_fast qi_fast_##op = {.kernel = &qi_kernel_##op,                                       \
                                  .accepts = accepts,                                              \
                                  .packed_bytes = packed_bytes,                                    \
                                  .pack = pack,                                                    \
                                  .zeros_do = 1, /* has_line = 0 */                                \
                                  .tiles = tiles,                                                  \
                                  .run = run,                                                      \
                                  .in_place = 1}
BINARY(add);
BINARY(sub);
BINARY(mul);
