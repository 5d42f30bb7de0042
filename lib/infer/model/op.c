/** Checks and arithmetic that the op files share; see op.h. */
#include "infer/model/op.h"

/* ------------------------------------------------------------------ tensors */

const qi_tensor *qi_input(const qi_model *model, const qi_node *node, int32_t i)
{
    return &model->tensors[node->inputs[i]];
}

const qi_tensor *qi_output(const qi_model *model, const qi_node *node)
{
    return qi_node_output(model, node, 0);
}

const qi_tensor *qi_node_output(const qi_model *model, const qi_node *node, int32_t i)
{
    return &model->tensors[node->outputs[i]];
}

void qi_strides(const qi_tensor *t, size_t stride[QI_MAX_RANK])
{
    size_t distance = 1;
    for (int d = QI_MAX_RANK - 1; d >= 0; d--) {
        stride[d] = distance;
        distance *= (size_t)t->dims[d];
    }
}

int32_t qi_aligned_dim(const qi_tensor *t, int d)
{
    int const i = d - (QI_MAX_RANK - t->rank);
    return i < 0 ? 1 : t->dims[i];
}

void qi_broadcast_strides(const qi_tensor *t, size_t stride[QI_MAX_RANK])
{
    size_t distance = 1;
    for (int d = QI_MAX_RANK - 1; d >= 0; d--) {
        int32_t const dim = qi_aligned_dim(t, d);
        stride[d] = dim == 1 ? 0 : distance;
        distance *= (size_t)dim;
    }
}

int64_t qi_count(const qi_tensor *t)
{
    return (int64_t)t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

int32_t qi_code_lo(const qi_tensor *t)
{
    return t->type == QI_S32 ? INT32_MIN : qi_lowest_code(t->type != QI_U8, t->bits);
}

int32_t qi_code_hi(const qi_tensor *t)
{
    return t->type == QI_S32 ? INT32_MAX : qi_code_lo(t) + (1 << t->bits) - 1;
}

int32_t qi_largest_difference(const qi_tensor *t)
{
    int32_t const up = qi_code_hi(t) - t->zero_point, down = t->zero_point - qi_code_lo(t);
    return up > down ? up : down;
}

/* ------------------------------------------------------------------ rules */

int qi_rule(qi_checker *c, int ok, qi_status status, const char *what, int64_t value, int64_t limit)
{
    if (!ok && !c->status)
        c->status = qi_fail(c->err, status, what, c->index, value, limit);
    return !c->status;
}

int qi_rule_range(qi_checker *c, const char *what, int64_t value, int64_t lo, int64_t hi)
{
    return qi_rule(c, value >= lo && value <= hi, QI_ERR_PARAM, what, value, value < lo ? lo : hi);
}

int qi_rule_counts(qi_checker *c, int32_t least_inputs, int32_t most_inputs, int32_t params,
                   int32_t rounding)
{
    return qi_rule_counts_outputs(c, least_inputs, most_inputs, 1, params, rounding);
}

int qi_rule_counts_outputs(qi_checker *c, int32_t least_inputs, int32_t most_inputs,
                           int32_t outputs, int32_t params, int32_t rounding)
{
    const qi_node *n = c->node;
    qi_rule(c, n->n_inputs >= least_inputs && n->n_inputs <= most_inputs, QI_ERR_SHAPE,
            "number of inputs", n->n_inputs, most_inputs);
    qi_rule(c, n->n_outputs == outputs, QI_ERR_SHAPE, "number of outputs", n->n_outputs, outputs);
    qi_rule(c, n->n_params == params, QI_ERR_PARAM, "number of params", n->n_params, params);
    return qi_rule(c, n->rounding == rounding, QI_ERR_PARAM, "rounding", n->rounding, rounding);
}

static int rule_code_tensor(qi_checker *c, const qi_tensor *t)
{
    return qi_rule(c, t->type <= QI_S8, QI_ERR_SHAPE, "type, not of 8 bits", t->type, QI_S8);
}

int qi_rule_codes(qi_checker *c, int32_t first, int32_t last)
{
    for (int32_t i = first; i <= last; i++)
        rule_code_tensor(c, qi_input(c->model, c->node, i));
    return rule_code_tensor(c, qi_output(c->model, c->node));
}

static int rule_has_codes(qi_checker *c, const qi_tensor *t)
{
    return qi_rule(c, qi_type_has_codes(t->type), QI_ERR_SHAPE, "type, not of codes", t->type,
                   QI_S8);
}

int qi_rule_any_codes(qi_checker *c, int32_t first, int32_t last)
{
    for (int32_t i = first; i <= last; i++)
        rule_has_codes(c, qi_input(c->model, c->node, i));
    return rule_has_codes(c, qi_output(c->model, c->node));
}

static int rule_wide_tensor(qi_checker *c, const qi_tensor *t)
{
    qi_rule(c, qi_is_wide(t), QI_ERR_SHAPE, "type, not of 16 bits as another", t->type, QI_S16);
    return qi_rule(c, t->zero_point == 0, QI_ERR_SHAPE, "zero_point of 16-bit codes", t->zero_point,
                   0);
}

int qi_rule_codes_or_wide(qi_checker *c, int32_t first, int32_t last)
{
    if (!qi_is_wide(qi_output(c->model, c->node)))
        return qi_rule_codes(c, first, last);
    for (int32_t i = first; i <= last; i++)
        rule_wide_tensor(c, qi_input(c->model, c->node, i));
    return rule_wide_tensor(c, qi_output(c->model, c->node));
}

int qi_rule_truth(qi_checker *c, const qi_tensor *t)
{
    qi_rule(c, t->type == QI_U8, QI_ERR_SHAPE, "type of a truth value", t->type, QI_U8);
    return qi_rule(c, t->bits == 1, QI_ERR_SHAPE, "bits of a truth value", t->bits, 1);
}

void qi_rule_broadcast(qi_checker *c, int32_t first, int32_t last)
{
    const qi_tensor *y = qi_output(c->model, c->node);
    for (int d = 0; d < QI_MAX_RANK; d++) {
        int32_t common = 1;
        for (int32_t i = first; i <= last; i++) {
            int32_t const dim = qi_aligned_dim(qi_input(c->model, c->node, i), d);
            qi_rule(c, dim == common || dim == 1 || common == 1, QI_ERR_SHAPE,
                    "dimensions of the inputs", dim, common);
            common = dim == 1 ? common : dim;
        }
        qi_rule(c, qi_aligned_dim(y, d) == common, QI_ERR_SHAPE, "dimension of the output",
                qi_aligned_dim(y, d), common);
    }
}

int qi_rule_same_shape(qi_checker *c, int32_t i)
{
    const qi_tensor *x = qi_input(c->model, c->node, i), *y = qi_output(c->model, c->node);
    qi_rule(c, x->rank == y->rank, QI_ERR_SHAPE, "rank of the output", y->rank, x->rank);
    for (int d = 0; d < QI_MAX_RANK; d++)
        qi_rule(c, x->dims[d] == y->dims[d], QI_ERR_SHAPE, "dimension of the output", y->dims[d],
                x->dims[d]);
    return !c->status;
}

int qi_rule_same_type(qi_checker *c, int32_t i)
{
    const qi_tensor *x = qi_input(c->model, c->node, i), *y = qi_output(c->model, c->node);
    qi_rule(c, x->type == y->type, QI_ERR_SHAPE, "type of the output", y->type, x->type);
    return qi_rule(c, x->bits == y->bits, QI_ERR_SHAPE, "bits of the output", y->bits, x->bits);
}

int qi_rule_same_codes(qi_checker *c, int32_t i)
{
    const qi_tensor *x = qi_input(c->model, c->node, i), *y = qi_output(c->model, c->node);
    qi_rule_same_type(c, i);
    return qi_rule(c, x->zero_point == y->zero_point, QI_ERR_SHAPE, "zero_point of the output",
                   y->zero_point, x->zero_point);
}

int qi_rule_multiplier(qi_checker *c, int32_t at)
{
    qi_rule_range(c, "mult", c->node->params[at], 0, INT32_MAX);
    return qi_rule_range(c, "shift", c->node->params[at + 1], -31, 31);
}

int qi_rule_clamp(qi_checker *c, int32_t at)
{
    if (c->status)
        return 0;
    const qi_tensor *y = qi_output(c->model, c->node);
    int32_t const lo = c->node->params[at], hi = c->node->params[at + 1];
    qi_rule_range(c, "clamp_lo", lo, qi_code_lo(y), qi_code_hi(y));
    return qi_rule_range(c, "clamp_hi", hi, lo, qi_code_hi(y));
}

int qi_rule_tensor(qi_checker *c, const qi_tensor *t, qi_type type, int rank, const int32_t dims[])
{
    qi_rule(c, t->type == type, QI_ERR_SHAPE, "type", t->type, type);
    qi_rule(c, t->rank == rank, QI_ERR_SHAPE, "rank", t->rank, rank);
    for (int d = 0; d < rank; d++)
        qi_rule(c, t->dims[d] == dims[d], QI_ERR_SHAPE, "dimension", t->dims[d], dims[d]);
    return !c->status;
}

int qi_rule_weights(qi_checker *c, int32_t i, qi_type type, int rank, const int32_t dims[])
{
    const qi_tensor *t = qi_input(c->model, c->node, i);
    qi_rule(c, t->kind == QI_CONSTANT, QI_ERR_SHAPE, "weights: not constant", t->kind, QI_CONSTANT);
    qi_rule(c, t->zero_point == 0, QI_ERR_SHAPE, "zero_point", t->zero_point, 0);
    return qi_rule_tensor(c, t, type, rank, dims);
}

int qi_rule_s32(qi_checker *c, int32_t i, int64_t values, const char *what)
{
    const qi_tensor *t = qi_input(c->model, c->node, i);
    qi_rule(c, t->kind == QI_CONSTANT && t->type == QI_S32, QI_ERR_SHAPE, what, t->type, QI_S32);
    return qi_rule(c, qi_count(t) == values, QI_ERR_SHAPE, what, qi_count(t), values);
}

/* ------------------------------------------------------------------ accumulating layers */

int qi_rule_layer(qi_checker *c)
{
    int const is_wide = qi_is_wide(qi_output(c->model, c->node));
    rule_code_tensor(c, qi_input(c->model, c->node, 1));
    qi_rule(c, is_wide || c->node->rounding != QI_ROUND_LONG, QI_ERR_PARAM,
            "rounding of 8-bit codes", c->node->rounding, QI_ROUND_TWICE);
    qi_rule(c, !is_wide || c->node->rounding != QI_ROUND_EVEN, QI_ERR_PARAM,
            "rounding of 16-bit codes", c->node->rounding, QI_ROUND_TWICE);
    int32_t const most = is_wide || c->node->rounding != QI_ROUND_TWICE ? 0 : QI_MAX_FRACTION;
    qi_rule(c, c->node->fraction <= most, QI_ERR_PARAM, "fraction", c->node->fraction, most);
    return qi_rule_codes_or_wide(c, 0, 0);
}

int32_t qi_layer_rounding(const qi_node *node, int may_be_double)
{
    int const is_double = may_be_double && node->rounding == QI_ROUND_DOUBLE;
    int const is_other = node->rounding == QI_ROUND_LONG || node->rounding == QI_ROUND_EVEN;
    return is_double || is_other ? node->rounding : QI_ROUND_TWICE;
}

int32_t qi_rounding_or(const qi_model *model, const qi_node *node, int32_t rounding,
                       unsigned others)
{
    int const is_other = node->n_outputs && qi_type_bytes(qi_output(model, node)->type) == 1 &&
                         (others >> node->rounding & 1);
    return is_other ? node->rounding : rounding;
}

/** May the accumulators have more than 32 bits? */
static int has_long_sums(const qi_checker *c)
{
    return qi_is_wide(qi_output(c->model, c->node)) && c->node->rounding != QI_ROUND_TWICE;
}

/** The largest |accumulator| that the rounding takes. */
static int64_t most_accumulator(const qi_checker *c)
{
    return has_long_sums(c) ? (INT64_C(1) << 47) - 1 : INT32_MAX;
}

static int rule_bias(qi_checker *c, int64_t channels)
{
    const qi_tensor *t = qi_input(c->model, c->node, 2);
    if (!has_long_sums(c) || t->type == QI_S32)
        return qi_rule_s32(c, 2, channels, "bias");
    qi_rule(c, t->kind == QI_CONSTANT && t->type == QI_S64, QI_ERR_SHAPE, "bias", t->type, QI_S64);
    return qi_rule(c, qi_count(t) == channels, QI_ERR_SHAPE, "bias", qi_count(t), channels);
}

/** Return channels or 1: how many multipliers input i holds. Each takes `each` int32. */
static int64_t multiplier_count(const qi_checker *c, int32_t i, int64_t channels, int64_t each)
{
    return qi_count(qi_input(c->model, c->node, i)) == each ? each : channels * each;
}

/** Check that each significand is 0 or in [2^52, 2^53): its low 32 bits, then its high 21. */
static int rule_significands(qi_checker *c, int64_t channels)
{
    const qi_tensor *mult = qi_input(c->model, c->node, 3);
    int64_t const n = multiplier_count(c, 3, channels, 2);
    if (!qi_rule_s32(c, 3, n, "significands") ||
        !qi_rule(c, mult->rank == 2 && mult->dims[1] == 2, QI_ERR_SHAPE, "columns of mult",
                 mult->dims[mult->rank - 1], 2))
        return 0;
    const int32_t *v = mult->data;
    for (int64_t i = 0; i < n; i += 2)
        if (v[i] || v[i + 1])
            qi_rule_range(c, "high bits of a significand", v[i + 1], 1 << 20, (1 << 21) - 1);
    return !c->status;
}

static int rule_mults(qi_checker *c, int64_t channels)
{
    int64_t const n = multiplier_count(c, 3, channels, 1);
    if (!qi_rule_s32(c, 3, n, "mult"))
        return 0;
    const int32_t *mult = qi_input(c->model, c->node, 3)->data;
    for (int64_t i = 0; i < n; i++)
        qi_rule_range(c, "mult", mult[i], 0, INT32_MAX);
    return !c->status;
}

static int rule_shifts(qi_checker *c, int64_t channels, int32_t lo, int32_t hi)
{
    int64_t const n = multiplier_count(c, 4, channels, 1);
    if (!qi_rule_s32(c, 4, n, "shift"))
        return 0;
    const qi_tensor *shift = qi_input(c->model, c->node, 4);
    for (int64_t i = 0; i < n; i++)
        qi_rule_range(c, "shift",
                      shift->is_packed ? ((const int8_t *)shift->data)[i]
                                       : ((const int32_t *)shift->data)[i],
                      lo, hi);
    return !c->status;
}

/*
 * |w - Z_w| = |u - z| for the unsigned bytes u = byte ^ flip and z. The loops below can be
 * vectorized.
 */
static inline uint32_t weight_size(uint8_t byte, uint8_t flip, uint8_t z)
{
    int32_t const d = (uint8_t)(byte ^ flip) - z;
    return (uint32_t)(d < 0 ? -d : d);
}

uint32_t qi_weight_sum(const uint8_t *codes, int64_t n, qi_codes c)
{
    uint8_t const flip = c.flip, z = (uint8_t)c.offset;
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += weight_size(codes[i], flip, z);
    return sum;
}

enum { COLUMNS = 64, UNPACKED = 240 /* codes at a time */ };

/** Some codes of a row: where they lie or, if they are packed, unpacked. */
static const uint8_t *codes_at(const qi_rows *rows, int64_t row, int64_t at, int64_t n,
                               uint8_t *unpacked)
{
    if (!rows->packing)
        return rows->first + (size_t)row * rows->bytes + at;
    qi_unpack_row(rows, (size_t)row, (size_t)at, (size_t)n, unpacked);
    return unpacked;
}

/** The sum of one channel, which is a row. */
static uint32_t row_sum(const qi_rows *w, int64_t row, qi_codes c)
{
    uint8_t unpacked[UNPACKED];
    int64_t const values = (int64_t)w->values, step = w->packing ? UNPACKED : values;
    uint32_t sum = 0;
    for (int64_t at = 0; at < values; at += step) {
        int64_t const n = values - at < step ? values - at : step;
        sum += qi_weight_sum(codes_at(w, row, at, n, unpacked), n, c);
    }
    return sum;
}

/** The sums of n <= COLUMNS neighbouring channels from `first` on; all weights are one row. */
static void column_sums(uint32_t sums[COLUMNS], const qi_rows *w, int64_t first, int32_t n,
                        int64_t channels, qi_codes c)
{
    uint8_t unpacked[COLUMNS];
    uint8_t const flip = c.flip, z = (uint8_t)c.offset;
    for (int32_t i = 0; i < n; i++)
        sums[i] = 0;
    for (int64_t at = first; at < (int64_t)w->values; at += channels) {
        const uint8_t *codes = codes_at(w, 0, at, n, unpacked);
        for (int32_t i = 0; i < n; i++)
            sums[i] += weight_size(codes[i], flip, z);
    }
}

/** The sums of at most COLUMNS channels from `first` on; returns how many. */
static int32_t some_weight_sums(uint32_t sums[COLUMNS], const qi_tensor *w, int64_t channels,
                                int64_t first)
{
    qi_rows const rows = qi_rows_of(w, w->data);
    int64_t const left = channels - first;
    int const is_row = w->dims[0] == channels;
    int32_t const n = is_row ? 1 : left < COLUMNS ? (int32_t)left : COLUMNS;
    if (is_row)
        sums[0] = row_sum(&rows, first, qi_codes_of(w));
    else
        column_sums(sums, &rows, first, n, channels, qi_codes_of(w));
    return n;
}

/** The maximum over channels of D sum |w - Z_w| 2^fraction + |bias|. */
static int64_t largest_accumulator(const qi_checker *c, int64_t channels)
{
    const qi_tensor *w = qi_input(c->model, c->node, 1);
    const qi_tensor *bias = qi_input(c->model, c->node, 2);
    int64_t const largest = qi_largest_difference(qi_input(c->model, c->node, 0));
    uint32_t sums[COLUMNS];
    int64_t most = 0;
    for (int64_t o = 0; o < channels;) {
        int32_t const n = some_weight_sums(sums, w, channels, o);
        for (int32_t i = 0; i < n; i++, o++) {
            int64_t const b = qi_value_at(bias->type, bias->data, (size_t)o);
            if (b <= -INT64_MAX / 2 || b >= INT64_MAX / 2)
                return INT64_MAX;
            int64_t const sum = (largest * sums[i]) << c->node->fraction; /* below 2^63 */
            int64_t const bound = sum + (b < 0 ? -b : b);
            most = bound > most ? bound : most;
        }
    }
    return most;
}

/** Do two constants hold the same numbers in the same places? */
static int are_equal(const qi_tensor *a, const qi_tensor *b)
{
    int equal = a->data == b->data && a->bytes == b->bytes && a->type == b->type &&
                a->zero_point == b->zero_point && a->packing == b->packing;
    for (int d = 0; d < QI_MAX_RANK; d++)
        equal = equal && a->dims[d] == b->dims[d];
    return equal;
}

/** Do two nodes of one kind, with weights at the same place, have the same largest accumulator? */
static int sum_alike(const qi_model *m, const qi_node *a, const qi_node *b)
{
    return are_equal(qi_input(m, a, 1), qi_input(m, b, 1)) &&
           are_equal(qi_input(m, a, 2), qi_input(m, b, 2)) && a->fraction == b->fraction &&
           qi_largest_difference(qi_input(m, a, 0)) == qi_largest_difference(qi_input(m, b, 0));
}

/**
 * The largest accumulator of an earlier, checked node that has the same weights and biases and
 * inputs of the same size; -1: there is none. Layers that share their weights are summed once, and
 * once more for each change of what goes with them: *changes counts these. The search is bounded by
 * the time that it may save.
 */
static int64_t known_accumulator(const qi_checker *c, int32_t *changes)
{
    enum { BYTES_PER_NODE = 16 }; /* that a sum adds in the time of one comparison, about */
    const qi_model *m = c->model;
    const qi_tensor *w = qi_input(m, c->node, 1);
    const qi_node *last = c->node;
    int64_t const reach = qi_count(w) / BYTES_PER_NODE;
    *changes = 0;
    for (int32_t i = c->index - 1; i >= 0 && c->index - i <= reach; i--) {
        const qi_node *n = &m->nodes[i];
        if (n->kernel != c->node->kernel || qi_input(m, n, 1)->data != w->data)
            continue;
        if (sum_alike(m, n, c->node))
            return n->max_accumulator;
        *changes += !sum_alike(m, n, last);
        last = n;
    }
    return -1;
}

int qi_rule_accumulator(qi_checker *c, int64_t channels)
{
    enum { MOST_DEPTH = 1 << 24 }; /* the scratch of QI_TILE rows then fits 32 bits */
    const qi_tensor *w = qi_input(c->model, c->node, 1);
    int const is_double = c->node->rounding == QI_ROUND_DOUBLE;
    qi_rule(c, w->kind == QI_CONSTANT, QI_ERR_SHAPE, "weights: not constant", w->kind, QI_CONSTANT);
    qi_rule(c, qi_count(w) / channels <= MOST_DEPTH, QI_ERR_SHAPE, "weights of a channel",
            qi_count(w) / channels, MOST_DEPTH);
    rule_bias(c, channels);
    if (!c->status && is_double)
        rule_significands(c, channels);
    else if (!c->status)
        rule_mults(c, channels);
    if (!c->status)
        rule_shifts(c, channels, is_double ? -1000 : -31,
                    is_double                            ? 1000
                    : c->node->rounding == QI_ROUND_LONG ? 7
                                                         : 31);
    if (c->status)
        return 0;
    int32_t changes;
    int64_t const known = known_accumulator(c, &changes);
    if (!qi_rule(c, known >= 0 || changes < QM_MAX_BIASES, QI_ERR_FORMAT,
                 "biases for the same weights", changes + 1, QM_MAX_BIASES))
        return 0;
    int64_t const most = known < 0 ? largest_accumulator(c, channels) : known;
    qi_rule(c, most <= most_accumulator(c), QI_ERR_OVERFLOW, "largest accumulator", most,
            most_accumulator(c));
    return qi_rule(c, most == c->node->max_accumulator, QI_ERR_OVERFLOW,
                   "max_accumulator, not what the weights say", c->node->max_accumulator, most);
}

qi_requant qi_requant_of(const qi_call *call, int32_t at)
{
    const qi_tensor *mult = qi_input(call->model, call->node, 3);
    const qi_tensor *shift = qi_input(call->model, call->node, 4);
    int const is_s64 = qi_input(call->model, call->node, 2)->type == QI_S64;
    int const each = call->node->rounding == QI_ROUND_DOUBLE ? 2 : 1;
    return (qi_requant){.bias = is_s64 ? NULL : call->in[2],
                        .bias_s64 = is_s64 ? call->in[2] : NULL,
                        .mult = call->in[3],
                        .shift = shift->is_packed ? NULL : call->in[4],
                        .narrow_shift = shift->is_packed ? call->in[4] : NULL,
                        .mult_step = qi_count(mult) > each,
                        .shift_step = qi_count(shift) > 1,
                        .rounding = call->node->rounding,
                        .fraction = call->node->fraction,
                        .zero_point = qi_output(call->model, call->node)->zero_point,
                        .lo = call->node->params[at],
                        .hi = call->node->params[at + 1],
                        .is_quick = call->node->rounding == QI_ROUND_TWICE && !is_s64 &&
                                    call->node->fraction == 0 &&
                                    call->node->max_accumulator < INT32_C(1) << 30};
}

/* ------------------------------------------------------------------ windows */

void qi_window_dims(qi_window *w, const qi_tensor *x, const qi_tensor *y)
{
    w->n = x->dims[0];
    w->h = x->dims[1];
    w->w = x->dims[2];
    w->c = x->dims[3];
    w->oh = y->dims[1];
    w->ow = y->dims[2];
    w->o = y->dims[3];
}

qi_window qi_conv_window(const qi_model *model, const qi_node *node)
{
    const int32_t *p = node->params;
    const qi_tensor *w = qi_input(model, node, 1);
    qi_window g = {.kernel_h = w->dims[1],
                   .kernel_w = w->dims[2],
                   .stride_h = p[QI_CONV_STRIDE_H],
                   .stride_w = p[QI_CONV_STRIDE_W],
                   .dilation_h = p[QI_CONV_DILATION_H],
                   .dilation_w = p[QI_CONV_DILATION_W],
                   .pad_top = p[QI_CONV_PAD_TOP],
                   .pad_left = p[QI_CONV_PAD_LEFT]};
    qi_window_dims(&g, qi_input(model, node, 0), qi_output(model, node));
    return g;
}

qi_window qi_transpose_window(const qi_model *model, const qi_node *node)
{
    const int32_t *p = node->params;
    const qi_tensor *w = qi_input(model, node, 1);
    qi_window g = {.kernel_h = w->dims[1],
                   .kernel_w = w->dims[2],
                   .stride_h = p[QI_TRANSPOSE_STRIDE_H],
                   .stride_w = p[QI_TRANSPOSE_STRIDE_W],
                   .dilation_h = 1,
                   .dilation_w = 1,
                   .pad_top = p[QI_TRANSPOSE_PAD_TOP],
                   .pad_left = p[QI_TRANSPOSE_PAD_LEFT]};
    qi_window_dims(&g, qi_input(model, node, 0), qi_output(model, node));
    return g;
}

qi_window qi_pool_window(const qi_model *model, const qi_node *node)
{
    const int32_t *p = node->params;
    qi_window g = {.kernel_h = p[QI_POOL_KERNEL_H],
                   .kernel_w = p[QI_POOL_KERNEL_W],
                   .stride_h = p[QI_POOL_STRIDE_H],
                   .stride_w = p[QI_POOL_STRIDE_W],
                   .dilation_h = 1,
                   .dilation_w = 1,
                   .pad_top = p[QI_POOL_PAD_TOP],
                   .pad_left = p[QI_POOL_PAD_LEFT]};
    qi_window_dims(&g, qi_input(model, node, 0), qi_output(model, node));
    return g;
}

/** Check one axis: `size` pixels in, `out` positions. */
static void rule_axis(qi_checker *c, int32_t size, int32_t out, int32_t kernel, int32_t stride,
                      int32_t dilation, int32_t pad)
{
    enum { MOST_EXTENT = 1 << 24 };
    qi_rule_range(c, "kernel", kernel, 1, QM_MAX_SIDE);
    qi_rule_range(c, "stride", stride, 1, QM_MAX_SIDE);
    qi_rule_range(c, "dilation", dilation, 1, QM_MAX_SIDE);
    int64_t const extent = ((int64_t)kernel - 1) * dilation + 1;
    qi_rule_range(c, "extent of the dilated kernel", extent, 1, MOST_EXTENT);
    qi_rule_range(c, "pad", pad, 0, extent - 1 < QM_MAX_SIDE ? extent - 1 : QM_MAX_SIDE);
    qi_rule(c, ((int64_t)out - 1) * stride - pad < size, QI_ERR_SHAPE,
            "first pixel of the last window", ((int64_t)out - 1) * stride - pad, size - 1);
}

int qi_rule_window(qi_checker *c, const qi_window *w)
{
    const qi_tensor *x = qi_input(c->model, c->node, 0), *y = qi_output(c->model, c->node);
    qi_rule(c, x->rank == 4, QI_ERR_SHAPE, "rank of the input", x->rank, 4);
    qi_rule(c, y->rank == 4, QI_ERR_SHAPE, "rank of the output", y->rank, 4);
    qi_rule(c, x->dims[0] == y->dims[0], QI_ERR_SHAPE, "batch of the output", y->dims[0],
            x->dims[0]);
    rule_axis(c, w->h, w->oh, w->kernel_h, w->stride_h, w->dilation_h, w->pad_top);
    rule_axis(c, w->w, w->ow, w->kernel_w, w->stride_w, w->dilation_w, w->pad_left);
    return !c->status;
}
