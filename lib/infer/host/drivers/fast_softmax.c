/**
 * softmax on a host. It has the arithmetic of qi_softmax_row, but computes it once for each of the
 * 256 differences from a row's highest code instead of once for each code.
 *
 *     packed    exp of differences 0..-255 (0 below diff_min), and how much each adds to the sum
 *     a row     highest code; sum of what each code adds; 256 answers; each code's looked up
 */
#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/fast.h"

enum { SHORTEST = 64 /* least codes of a row for which 256 answers are worth the work */ };

struct packed {
    qi_softmax s;
    int32_t exp[QI_TABLE], addend[QI_TABLE]; /* by the difference from the highest code */
};

static int accepts(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0);
    return isa->elementwise && !qi_is_wide(qi_output(model, node)) &&
           x->dims[x->rank - 1] >= SHORTEST;
}

static size_t packed_bytes(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    return sizeof(struct packed);
}

static void pack(const qi_isa *isa, const qi_model *model, const qi_node *node, void *to)
{
    const qi_tensor *x = qi_input(model, node, 0), *y = qi_output(model, node);
    const int32_t *p = node->params;
    struct packed *packed = to;
    *packed = (struct packed){.s = {.mult = p[QI_SOFTMAX_MULT],
                                    .shift = p[QI_SOFTMAX_SHIFT],
                                    .diff_min = p[QI_SOFTMAX_DIFF_MIN],
                                    .in_signed = x->type == QI_S8,
                                    .lowest = qi_code_lo(y),
                                    .bits = y->bits}};
    for (int32_t d = 0; d < QI_TABLE && -d >= packed->s.diff_min; d++) {
        packed->exp[d] = qi_softmax_exp(-d, &packed->s);
        packed->addend[d] = qi_rdbp(packed->exp[d], 12);
    }
}

static int32_t tiles(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    const qi_tensor *x = qi_input(model, node, 0);
    return (int32_t)(x->bytes / (size_t)x->dims[x->rank - 1]);
}

static uint8_t highest_of(const uint8_t *x, size_t n, uint8_t flip)
{
    uint8_t highest = 0;
    for (size_t i = 0; i < n; i++)
        highest = (x[i] ^ flip) > highest ? (uint8_t)(x[i] ^ flip) : highest;
    return highest;
}

/** Four sums, so that an addition need not wait for the one before. */
static uint32_t sum_of(const struct packed *p, const uint8_t *x, size_t n, uint8_t flip,
                       int highest)
{
    uint32_t sum[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += (uint32_t)p->addend[highest - (x[i + (size_t)j] ^ flip)];
    for (; i < n; i++)
        sum[0] += (uint32_t)p->addend[highest - (x[i] ^ flip)];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/** Compute the answers by byte, for codes up to the highest. */
static void answer(const struct packed *p, uint32_t sum, uint8_t flip, int highest,
                   uint8_t answers[QI_TABLE])
{
    int over;
    int32_t const r = qi_reciprocal_q12(sum, &over);
    int const right = over + 31 - p->s.bits;
    memset(answers, p->s.lowest, QI_TABLE);
    for (int d = 0; d <= highest && right <= 31; d++) { /* as in qi_softmax_row */
        if (-d < p->s.diff_min)
            break;
        int32_t const value = qi_rdbp(qi_srdhm(r, p->exp[d]), right);
        answers[(highest - d) ^ flip] =
            (uint8_t)(p->s.lowest + qi_clamp(value, 0, (1 << p->s.bits) - 1));
    }
}

static void run(const qi_fast_call *call, int32_t index)
{
    const qi_tensor *x = qi_input(call->model, call->node, 0);
    const struct packed *p = call->packed;
    uint8_t const flip = p->s.in_signed ? 0x80 : 0;
    size_t const n = (size_t)x->dims[x->rank - 1], at = (size_t)index * n;
    const uint8_t *row = (const uint8_t *)call->in[0] + at;
    uint8_t answers[QI_TABLE];
    int const highest = highest_of(row, n, flip);
    answer(p, sum_of(p, row, n, flip, highest), flip, highest, answers);
    call->isa->elementwise->lookup(answers, row, (uint8_t *)call->out + at, n);
}

const qi_fast qi_fast_softmax = {.kernel = &qi_kernel_softmax,
                                 .accepts = accepts,
                                 .packed_bytes = packed_bytes,
                                 .pack = pack,
                                 .tiles = tiles,
                                 .run = run,
                                 .in_place = 1};
