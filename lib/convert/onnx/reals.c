/**
 * Results of operators that the file does not quantize where they are needed as codes.
 *
 *     what moves them comes first      Conv -> Flatten -> QuantizeLinear: the codes of the latter
 *     their range follows from codes   Add, Concat, means ...: 256 codes of their own
 */
#include "convert/onnx/import.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ what quantizes it later */

static bool is_among(int value, int n, const int *values)
{
    for (int i = 0; i < n; i++)
        if (values[i] == value)
            return value >= 0;
    return false;
}

static bool is_monotone_move(const char *op)
{
    return oq_step_named(oq_moves, op) || oq_step_named(oq_picture_moves, op) ||
           !strcmp(op, "Relu") || !strcmp(op, "Clip");
}

bool oq_grid_behind(oq_importer *q, int value, oq_target *grid)
{
    enum { MOST = 16 };
    const qat_foreign_node *node = q->b.node;
    qat_error ignored, *err = q->err;
    int moved[MOST] = {value}, n_moved = 1;
    bool found = false;
    q->err = q->b.err = &ignored;
    for (const qat_foreign_node *n = q->b.from->nodes;
         n < q->b.from->nodes + q->b.from->n_nodes && !found; n++) {
        if (!n->n_inputs || !n->n_outputs || !is_among(n->inputs[0], n_moved, moved))
            continue;
        q->b.node = n;
        if (!strcmp(n->op, "QuantizeLinear"))
            found = !oq_grid(q, 1, 2, grid);
        else if (is_monotone_move(n->op) && n_moved < MOST)
            moved[n_moved++] = n->outputs[0];
    }
    q->b.node = node;
    q->err = q->b.err = err;
    return found;
}

/* ------------------------------------------------------------------ what it can be */

typedef struct range {
    float lo, hi;
} range;

/** Of a function of codes, or of a constant; with 0. */
static bool range_of(oq_importer *q, const oq_operand *x, range *r)
{
    *r = (range){0, 0};
    if (x->v.tensor < 0)
        return false;
    for (int row = 0; row < oq_rows(&x->v); row++)
        for (int i = 0; i < OQ_BYTES; i++) {
            float const real = oq_real_of(q, &x->v, row, i);
            if (!isfinite(real))
                return false;
            r->lo = real < r->lo ? real : r->lo;
            r->hi = real > r->hi ? real : r->hi;
        }
    return true;
}

bool oq_range(oq_importer *q, const oq_operand *x, float *lo, float *hi)
{
    range r;
    bool const known = range_of(q, x, &r);
    *lo = r.lo;
    *hi = r.hi;
    return known;
}

static range widest(range a, range b)
{
    return (range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

/** Of a product of two. */
static range product_of(range a, range b)
{
    float const all[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    range r = {0, 0};
    for (int i = 0; i < 4; i++)
        r = widest(r, (range){all[i], all[i]});
    return r;
}

/** The range of a noted operator, if it follows from those of its operands. */
static bool range_of_noted(oq_importer *q, const qat_foreign_node *op, range *r)
{
    static const char *const keep[] = {"GlobalAveragePool", "ReduceMean", "AveragePool", "Concat",
                                       NULL};
    const qat_foreign_node *node = q->b.node;
    bool known = op->n_inputs > 0, is_same = false;
    *r = (range){0, 0};
    q->b.node = op;
    for (int i = 0; keep[i]; i++)
        is_same = is_same || !strcmp(op->op, keep[i]);
    if (!strcmp(op->op, "Softmax")) {
        *r = (range){0, 1};
    } else if (is_same) {
        int const n = strcmp(op->op, "Concat") ? 1 : op->n_inputs;
        for (int i = 0; i < n && known; i++) {
            oq_operand const x = oq_input(q, i);
            range of_input;
            known = range_of(q, &x, &of_input);
            *r = known ? widest(*r, of_input) : *r;
        }
    } else if (op->n_inputs == 2) {
        oq_operand const x = oq_input(q, 0), y = oq_input(q, 1);
        range a, b;
        bool const is_sub = !strcmp(op->op, "Sub"), is_mul = !strcmp(op->op, "Mul");
        known = (is_sub || is_mul || !strcmp(op->op, "Add")) && range_of(q, &x, &a) &&
                range_of(q, &y, &b);
        if (known)
            *r = is_mul   ? product_of(a, b)
                 : is_sub ? (range){a.lo - b.hi, a.hi - b.lo}
                          : (range){a.lo + b.lo, a.hi + b.hi};
    } else {
        known = false;
    }
    q->b.node = node;
    return known && isfinite(r->hi - r->lo);
}

oq_target oq_grid_of(float lo, float hi)
{
    enum { STEPS = 255 };
    oq_target grid = {.type = QI_U8, .scale = 1, .lo = -INFINITY, .hi = INFINITY, .value = -1};
    lo = lo < 0 ? lo : 0;
    hi = hi > 0 ? hi : 0;
    if (hi - lo > 0)
        grid.scale = (hi - lo) / STEPS;
    if (!(grid.scale > 0)) /* the range is too small for a float */
        grid.scale = 1;
    float const zero = rintf(-lo / grid.scale);
    grid.zero_point = zero > STEPS ? STEPS : (int32_t)zero;
    return grid;
}

/* ------------------------------------------------------------------ codes of its own */

/** The node's name, or else that of its output. */
static const char *name_of(const oq_importer *q, const qat_foreign_node *n)
{
    bool const has_output = n->n_outputs > 0 && n->outputs[0] >= 0;
    return *n->name ? n->name : has_output ? q->b.from->values[n->outputs[0]].name : n->op;
}

bool oq_can_be_wide(const qat_foreign_node *op)
{
    static const char *const layers[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (!strcmp(op->op, layers[i]))
            return true;
    return false;
}

qat_status oq_settle(oq_importer *q, int value, bool is_output, oq_operand *x)
{
    oq_target grid;
    range r;
    if (!oq_grid_behind(q, value, &grid)) {
        bool const has_range = range_of_noted(q, x->v.op, &r);
        if (!has_range && (!is_output || !oq_can_be_wide(x->v.op)))
            return fv_refuse(&q->b,
                             "'%.60s' is the result of '%.60s', which is computed in reals and not "
                             "quantized (no QuantizeLinear behind it)",
                             q->b.from->values[value].name, name_of(q, x->v.op));
        grid = has_range
                   ? oq_grid_of(r.lo < x->v.lo ? x->v.lo : r.lo, r.hi > x->v.hi ? x->v.hi : r.hi)
                   : (oq_target){.type = QI_S16}; /* the layer finds its scale */
    }
    grid.value = q->b.from->n_values; /* a place for what is between */
    qat_status const st = oq_emit_noted(q, &x->v, &grid);
    if (!st)
        *x = (oq_operand){q->values[grid.value], q->b.values[grid.value]};
    x->v.is_real = true;
    return st;
}

qat_status oq_own_grid(oq_importer *q, oq_operand *x)
{
    range r;
    if (!range_of(q, x, &r) || !isfinite(r.hi - r.lo))
        return fv_refuse(&q->b, "its input is a function of codes that has no finite value for "
                                "some of them, and is not quantized before it");
    oq_target grid = oq_grid_of(r.lo, r.hi);
    grid.value = q->b.from->n_values;
    qat_status const st = oq_quantize(q, x, &grid);
    if (!st)
        *x = (oq_operand){q->values[grid.value], q->b.values[grid.value]};
    x->v.is_real = true;
    return st;
}
