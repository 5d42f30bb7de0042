/** What the sums say of each layer: its figures, what is wrong with it, and which layer is worst.
 */
#include "debug/debug.h"

#include "base/number.h"
#include "base/rank.h"
#include "integer/quant_ops.h"
#include "layer/layer.h"
#include "qat/quantizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From which on a figure is told. */
static const double WIDE = 100;      /* |weight| of a channel over the median of all */
static const double GAIN = 2;        /* of a channel */
static const double OFFSET = 4;      /* quanta of an output of 8 bits or fewer */
static const double BEYOND = 0.005;  /* share of values beyond the ends of the codes */
static const double COARSE = 0.125;  /* share of codes that occur */
static const double PARTS = 6;       /* dB over the noise of one rounding */
static const double FALL = 10;       /* dB that the whole loses in one layer, */
static const double LOW = 20;        /* and what is left then */
static const double SAME = 0.001;    /* of a step: weights that float32 alone tells apart */
static const double MOST_CUT = 0.25; /* share of weights that a sensible range cuts off */
static const double EQUAL = 999;     /* qat_decibels without noise */

/** One layer while it is judged. */
struct judged {
    const qat_debug *d;
    const qi_node *op;
    debug_tensor *y;
    qat_debug_layer *layer;
    double bias_off;              /* quanta: of the bias that is furthest from the reference's */
    int bias_channel, biases_off; /* which; how many are off */
    double before;                /* the signal-to-noise of its worst input, dB */
    int bits, simulated_bits; /* of its weights, if they are the reference's but rounded to others;
                                 otherwise 0 */
};

/** From how many quanta on an offset is told: of 16-bit codes, as many as make that of 8-bit ones.
 */
static double offset_told(const struct judged *j)
{
    return OFFSET * (j->y->t->bits > 8 ? exp2(j->y->t->bits - 8) : 1);
}

/* ------------------------------------------------------------------ parameters */

static qat_layout layout_of(const qi_tensor *weights)
{
    return weights->type == QI_S8 ? QAT_LAYOUT_INT8 : QAT_LAYOUT_UINT8;
}

/** How a weight of the model is related to the reference's. */
typedef enum kinship {
    OTHER,
    ROUNDED,
    CUT /* the last code, which the reference's is beyond */
} kinship;

/** v is a multiple of the scale. */
static kinship kinship_of(const qi_tensor *w, double scale, double v, double r)
{
    int32_t lo, hi;
    double const half = scale * (0.5 + SAME);
    qat_code_range(layout_of(w), w->bits, true, &lo, &hi);
    if (fabs(v - r) <= half)
        return ROUNDED;
    double const least = scale * (lo - w->zero_point), most = scale * (hi - w->zero_point);
    return (r < least && v <= least + half) || (r > most && v >= most - half) ? CUT : OTHER;
}

/** The codes of weights against the real numbers that they were made of. */
static void judge_weights(struct judged *j, const qi_tensor *w)
{
    const qat_graph *graph = j->d->simulated;
    char name[QAT_NAME_MAX];
    qat_part_name(name, j->op->name, "weights/q"); /* a .qm may leave it out */
    const qat_node *node = graph ? qat_graph_find(graph, *w->name ? w->name : name) : NULL;
    bool const known = node && qat_node_quantizes(node, true) &&
                       qat_shape_count(&node->shape) == qat_real_count(w);
    double signal = 0, noise = 0;
    bool nearest = known;
    size_t cut = 0;
    for (size_t i = 0; i < qat_real_count(w); i++) {
        int const c = qat_real_channel_of(j->op, w, i);
        double const scale = (double)qat_real_weight_scale(j->d->model, w, c);
        double const v = scale * (double)(qi_value_at(w->type, w->data, i) - w->zero_point);
        double const r = known ? (double)node->inputs[0]->value[i] : v;
        debug_channel *of = &j->y->of[c < j->y->channels ? c : 0];
        of->widest = fmaxf(of->widest, (float)fabs(v));
        signal += r * r;
        noise += (v - r) * (v - r);
        kinship const k = kinship_of(w, scale, v, r);
        nearest = nearest && k != OTHER;
        cut += k == CUT;
    }
    if (known)
        j->layer->weights_snr = qat_decibels(signal, noise);
    bool const rounded = nearest && cut <= MOST_CUT * (double)qat_real_count(w);
    int const bits = rounded ? qat_weight_bits(node, layout_of(w)) : w->bits;
    if (bits != w->bits) {
        j->bits = w->bits;
        j->simulated_bits = bits;
    }
}

static void judge_bias(struct judged *j, const qi_tensor *w)
{
    const qi_tensor *codes = qi_tensor_at(j->d->model, j->op->inputs[QAT_IN_BIAS]);
    const qat_node *node = j->d->simulated ? qat_graph_find(j->d->simulated, j->y->t->name) : NULL;
    if (!node || !qat_node_quantizes(node, false))
        return;
    const qat_node *bias = qat_layer_before(node).bias;
    const qat_node *values = bias ? bias->inputs[bias->n_data] : NULL;
    int const n = qat_real_channels(j->op, w);
    if (values && qat_shape_count(&values->shape) != (size_t)n)
        return;
    for (int c = 0; c < n; c++) {
        const qi_tensor *x = qi_tensor_at(j->d->model, j->op->inputs[QAT_IN_X]);
        double const unit =
            ldexp((double)qat_real_scale(x) * (double)qat_real_weight_scale(j->d->model, w, c),
                  -j->op->fraction);
        double const v = unit * (double)qi_value_at(codes->type, codes->data, (size_t)c);
        double const off = (v - (values ? (double)values->value[c] : 0)) / j->layer->scale;
        j->biases_off += fabs(off) > offset_told(j) + unit / j->layer->scale / 2;
        if (fabs(off) > fabs(j->bias_off)) {
            j->bias_off = off;
            j->bias_channel = c;
        }
    }
    j->layer->bias_error = fabs(j->bias_off);
}

static void judge_parameters(struct judged *j)
{
    const qi_tensor *w = j->op->n_inputs > QAT_IN_WEIGHTS
                             ? qi_tensor_at(j->d->model, j->op->inputs[QAT_IN_WEIGHTS])
                             : NULL;
    j->layer->weights_snr = j->layer->bias_error = NAN;
    if (!w || !qat_real_accumulates(j->d->model, j->op))
        return;
    judge_weights(j, w);
    judge_bias(j, w);
}

/* ------------------------------------------------------------------ channels */

/** Noise of one channel over that of one rounding. */
static double loss_of(const struct judged *j, const debug_channel *c)
{
    double const rounding = j->layer->scale * j->layer->scale / 12;
    double const noise = j->d->dumped ? c->foreign_noise : c->noise;
    int64_t const n = c->n;
    bool const known = n && noise > 0 && isfinite(noise);
    return known ? fmax(-99, 10 * log10(noise / (double)n / rounding)) : -99;
}

static void judge_channels(const struct judged *j)
{
    qat_debug_layer *layer = j->layer;
    for (int i = 0; i < QAT_DEBUG_CHANNELS; i++)
        layer->worst[i] = -1;
    for (int c = 0; c < j->y->channels; c++) {
        int at = QAT_DEBUG_CHANNELS;
        double const loss = loss_of(j, &j->y->of[c]);
        while (at > 0 && (layer->worst[at - 1] < 0 || loss > layer->worst_loss[at - 1]))
            at--;
        for (int i = QAT_DEBUG_CHANNELS - 1; i > at; i--) {
            layer->worst[i] = layer->worst[i - 1];
            layer->worst_loss[i] = layer->worst_loss[i - 1];
        }
        if (at < QAT_DEBUG_CHANNELS) {
            layer->worst[at] = c;
            layer->worst_loss[at] = loss;
        }
    }
    layer->loss = layer->worst_loss[0];
}

/** The worst signal-to-noise of the whole among what the layer reads; INFINITY: none is known. */
static double snr_before(const struct judged *j)
{
    double least = INFINITY;
    for (int i = 0; i < j->op->n_inputs; i++) {
        const debug_tensor *x = j->op->inputs[i] < 0 ? NULL : &j->d->tensors[j->op->inputs[i]];
        if (x && x->whole.n)
            least = fmin(least, debug_error_of(&x->whole, 1).snr);
    }
    return least;
}

/** Does the whole network lose most of its precision here? With a dump, another one is judged. */
static bool is_costly(const struct judged *j)
{
    double const after = j->layer->whole.snr;
    return !j->d->dumped && after <= LOW && j->before >= after + FALL && isfinite(j->before);
}

/** Channels whose values follow b = gain a + offset, most unlike b = a. */
struct misfit {
    int scaled, moved, unlike;                /* how many; unlike: neither, but far from b = a */
    int most_scaled, most_moved, most_unlike; /* which */
    double gain, offset;                      /* of these; offset in quanta */
    double told;                              /* the offset from which on it is told */
};

/** Large gains come first: beside a wide channel, the others' weights may all become 0. */
static bool is_further(double gain, double than)
{
    if ((gain > GAIN) != (than > GAIN))
        return gain > GAIN;
    return gain > GAIN ? gain > than : gain < than;
}

static void note_channel(struct misfit *m, int channel, double gain, double offset)
{
    bool const scaled = gain > GAIN || gain < 1 / GAIN;
    if (scaled && (!m->scaled || is_further(gain, m->gain))) {
        m->gain = gain;
        m->most_scaled = channel;
    } else if (!scaled && fabs(offset) > fmax(m->told, fabs(m->offset))) {
        m->offset = offset;
        m->most_moved = channel;
    }
    m->scaled += scaled;
    m->moved += !scaled && fabs(offset) > m->told;
}

/** Are the other runtime's values more than rounding away from what they should be? */
static bool is_unlike(const debug_channel *c, double scale)
{
    return c->foreign_noise > fmax(c->foreign_size / 4, 16 * (double)c->n * scale * scale);
}

static struct misfit misfit_of(const struct judged *j, debug_fitted to)
{
    enum { ENOUGH = 8 };
    bool const foreign = to == DEBUG_OF_FOREIGN;
    struct misfit m = {.told = offset_told(j)};
    for (int c = 0; c < j->y->channels; c++) {
        const debug_channel *of = &j->y->of[c];
        const debug_fit *f = &of->fits[to];
        double gain = 1, offset = 0;
        if (f->n >= ENOUGH)
            debug_solve_fit(f, j->layer->scale, &gain, &offset);
        offset *= foreign && f->n >= ENOUGH && !debug_is_offset(f) ? 0 : 1 / j->layer->scale;
        if (foreign && is_unlike(of, j->layer->scale)) {
            m.most_unlike = m.unlike ? m.most_unlike : c;
            m.unlike++;
        }
        note_channel(&m, c, gain, offset);
    }
    return m;
}

/* ------------------------------------------------------------------ findings */

static void find(qat_debug_layer *layer, qat_debug_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The first finding is the gravest one: it gives the kind. */
static void find(qat_debug_layer *layer, qat_debug_kind kind, const char *format, ...)
{
    size_t const n = strlen(layer->finding);
    va_list args;
    if (layer->kind == QAT_DEBUG_NOTHING)
        layer->kind = kind;
    va_start(args, format);
    if (n + 2 < sizeof layer->finding) {
        memcpy(layer->finding + n, n ? "; " : "", n ? 3 : 1);
        qat_vformat(layer->finding + n + (n ? 2 : 0), sizeof layer->finding - n - (n ? 2 : 0),
                    format, args);
    }
    va_end(args);
}

static const char *more(char text[48], int channels)
{
    *text = 0;
    if (channels > 1)
        qat_format(text, 48, " (and %d more)", channels - 1);
    return text;
}

/** Channels that are a multiple of what they should be. */
static void find_scaled(const struct judged *j, const struct misfit *m, const char *whose)
{
    char others[48];
    find(j->layer, QAT_DEBUG_SCALE,
         "channel %d%s: %s values are %.4g times those that they should be: its weights or "
         "multipliers are wrong",
         m->most_scaled, more(others, m->scaled), whose, m->gain);
}

static void find_moved(const struct judged *j, const struct misfit *m, const char *whose,
                       const char *advice)
{
    char others[48];
    find(j->layer, QAT_DEBUG_BIAS, "channel %d%s: %s values are off by %+.1f quanta on average: %s",
         m->most_moved, more(others, m->moved), whose, m->offset, advice);
}

static int by_value(const void *a, const void *b)
{
    float const x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/** The channel with the widest weights, and how wide they and the middle one of all are. */
struct width {
    int channel;
    double most, median;
};

static struct width width_of(const struct judged *j)
{
    int const n = j->y->channels;
    float *widths = calloc((size_t)n, sizeof *widths);
    struct width w = {0};
    for (int c = 0; widths && c < n; c++) {
        widths[c] = j->y->of[c].widest;
        w.channel = widths[c] > widths[w.channel] ? c : w.channel;
    }
    if (!widths)
        return w;
    w.most = (double)widths[w.channel];
    qsort(widths, (size_t)n, sizeof *widths, by_value);
    w.median = (double)widths[(n - 1) / 2];
    free(widths);
    return w;
}

/** Does one channel's weights need far more room than the others'? */
static bool is_wide(const struct judged *j)
{
    struct width const w = width_of(j);
    return j->y->channels > 1 && w.most > 0 && w.most >= WIDE * w.median;
}

static void find_wide(const struct judged *j)
{
    struct width const width = width_of(j);
    const qi_tensor *w = qi_tensor_at(j->d->model, j->op->inputs[QAT_IN_WEIGHTS]);
    if (width.median > 0)
        find(j->layer, QAT_DEBUG_WIDE,
             "channel %d: its weights are %.3g times as wide as the others' (their median)",
             width.channel, width.most / width.median);
    else
        find(j->layer, QAT_DEBUG_WIDE,
             "channel %d: its weights are so wide that most of the other channels' are 0",
             width.channel);
    find(j->layer, QAT_DEBUG_WIDE,
         w->channel_scales < 0 ? "give each channel a scale (layout int8), or make their ranges "
                                 "equal (--ptq with --equalize)"
                               : "its values take the range from the others: make their ranges "
                                 "equal (--ptq with --equalize)");
}

static double share(int64_t part, int64_t all)
{
    return all ? (double)part / (double)all : NAN;
}

/** The channel with the largest share of values beyond the codes. */
static int most_beyond(const debug_tensor *y)
{
    int most = 0;
    for (int c = 1; c < y->channels; c++)
        if (share(y->of[c].beyond, y->of[c].n) > share(y->of[most].beyond, y->of[most].n))
            most = c;
    return most;
}

/** What can be done about a range: it depends on where it comes from. */
static const char *advice_on_range(const struct judged *j)
{
    const qat_debug *d = j->d;
    const qat_node *node = d->simulated ? qat_graph_find(d->simulated, j->y->t->name) : NULL;
    const qat_quantizer *q =
        node && qat_node_quantizes(node, false) ? node->op->quant->quantizer : NULL;
    if (d->calibrated)
        return "give it a wider range: another --observer, or more samples (--ptq-samples)";
    if (d->trained && q && (q->learned_symmetric || q->learned_asymmetric))
        return "training chose this range: it gave up what lies beyond for finer steps within";
    return d->simulated ? "give it a wider range, or more steps to observe it"
                        : "give it a wider range, unless training chose this one";
}

static void find_range(const struct judged *j)
{
    qat_debug_layer *layer = j->layer;
    int const most = most_beyond(j->y);
    double const of_most = share(j->y->of[most].beyond, j->y->of[most].n);
    double ends[2];
    debug_ends(j->y->t, ends);
    if (j->y->own.n == 0 || (layer->saturated < BEYOND && of_most < 20 * BEYOND))
        return;
    find(layer, QAT_DEBUG_RANGE,
         "%.1f %% of its values lie beyond its codes (channel %d: %.1f %%): they reach from %.4g "
         "to %.4g, its codes from %.4g to %.4g: %s",
         100 * layer->saturated, most, 100 * of_most, (double)j->y->reference[0],
         (double)j->y->reference[1], ends[0], ends[1], advice_on_range(j));
}

static int dead_channels(const debug_tensor *y)
{
    int n = 0;
    for (int c = 0; c < y->channels; c++)
        n += y->of[c].n > 1 && y->of[c].least >= y->of[c].most;
    return n;
}

/** Of ops with a fixed range (softmax), and of answers that are rare, few codes are no fault. */
static void find_codes(const struct judged *j)
{
    qat_debug_layer *layer = j->layer;
    size_t const values = j->y->count * (size_t)j->d->samples;
    int const dead = dead_channels(j->y);
    bool const weights = qat_real_accumulates(j->d->model, j->op);
    if (layer->used == 1 && values > 1)
        find(layer, QAT_DEBUG_DEAD, "dead: all of its values are the same");
    else if (weights && 2 * dead >= j->y->channels && j->y->channels > 1)
        find(layer, QAT_DEBUG_DEAD, "%d of its %d channels are dead: each has one value only", dead,
             j->y->channels);
    else if (weights && layer->used < COARSE * layer->codes && values >= (size_t)layer->codes)
        find(layer, QAT_DEBUG_COARSE,
             "only %d of its %d codes occur: its range is wider than its values: observe it again "
             "(--ptq with --observer percentile or mse)",
             layer->used, layer->codes);
}

/** The other runtime's values end earlier. */
static void find_foreign_range(const struct judged *j)
{
    const debug_tensor *y = j->y;
    float extent[2] = {INFINITY, -INFINITY};
    double ends[2];
    debug_ends(y->t, ends);
    for (size_t i = 0; i < y->count * (size_t)j->d->samples; i++) {
        extent[0] = fminf(extent[0], y->foreign[i]);
        extent[1] = fmaxf(extent[1], y->foreign[i]);
    }
    double const most = fmin((double)y->reference[1], ends[1]);
    double const least = fmax((double)y->reference[0], ends[0]);
    if ((double)extent[1] < most / 2 || (double)extent[0] > least / 2 + j->layer->scale)
        find(j->layer, QAT_DEBUG_RANGE,
             "the other runtime's values reach from %.4g to %.4g only, this model's from %.4g to "
             "%.4g: its range is too narrow",
             (double)extent[0], (double)extent[1], least, most);
}

static void find_foreign(const struct judged *j)
{
    struct misfit const m = misfit_of(j, DEBUG_OF_FOREIGN);
    char others[48];
    find_foreign_range(j);
    if (m.scaled)
        find_scaled(j, &m, "the other runtime's");
    if (m.moved)
        find_moved(j, &m, "the other runtime's", "its bias is another one");
    if (m.unlike && j->layer->kind == QAT_DEBUG_NOTHING)
        find(j->layer, QAT_DEBUG_SCALE,
             "channel %d%s: the other runtime's values are unlike those that they should be: its "
             "weights or multipliers are others",
             m.most_unlike, more(others, m.unlike));
    if (j->layer->kind == QAT_DEBUG_NOTHING)
        find(j->layer, QAT_DEBUG_SCALE,
             "the other runtime computes something else: %.3g %% of its values are apart by more "
             "than one quantum",
             100 * j->layer->foreign_differing);
}

/** Parameters that are not the float network's, which no rounding of weights explains. */
static void find_mistakes(const struct judged *j, bool wide)
{
    struct misfit const m = misfit_of(j, DEBUG_OF_SIMULATED);
    bool const other_bits = j->bits != 0; /* whose roundings are no mistakes */
    char others[48];
    if (!isfinite(j->y->own.noise))
        find(j->layer, QAT_DEBUG_NOT_FINITE, "the float network's values are not finite");
    if (!other_bits && m.scaled && (m.gain > GAIN || !wide))
        find_scaled(j, &m, "the model's");
    if (j->biases_off && !wide)
        find(j->layer, QAT_DEBUG_BIAS, "channel %d%s: its bias is off by %+.1f quanta",
             j->bias_channel, more(others, j->biases_off), j->bias_off);
    if (!other_bits && m.moved && !wide && j->layer->kind == QAT_DEBUG_NOTHING)
        find(j->layer, QAT_DEBUG_SCALE,
             "channel %d%s: the model's values are off by %+.1f quanta on average: its weights are "
             "wrong",
             m.most_moved, more(others, m.moved), m.offset);
}

/** What the codes of weights move on average. Biases make up for it, as does training. */
static void find_roundings(const struct judged *j)
{
    struct misfit const m = misfit_of(j, DEBUG_OF_FLOAT);
    char why[80] = "its weights are rounded";
    if (!m.moved || j->layer->kind != QAT_DEBUG_NOTHING)
        return;
    if (j->bits)
        qat_format(why, sizeof why, "its weights are rounded to %d bits, the checkpoint's to %d",
                   j->bits, j->simulated_bits);
    else if (j->d->calibrated && !j->d->corrected)
        qat_format(why, sizeof why, "correct the biases (--correct-bias)");
    else if (j->d->trained)
        qat_format(why, sizeof why, "its weights are rounded, and training has adapted to that");
    find_moved(j, &m, "the model's", why);
}

static void find_costly(const struct judged *j)
{
    char from[32] = "";
    if (!is_costly(j))
        return;
    if (j->before < EQUAL)
        qat_format(from, sizeof from, "from %.1f ", j->before);
    find(j->layer, QAT_DEBUG_COSTLY,
         "the signal-to-noise of the whole falls %sto %.1f dB here: --sensitivity of the "
         "checkpoint says what this layer costs",
         from, j->layer->whole.snr);
}

/** Mistakes first, then what costs accuracy. */
static void find_all(const struct judged *j)
{
    bool const wide = qat_real_accumulates(j->d->model, j->op) && is_wide(j);
    find_mistakes(j, wide);
    if (wide)
        find_wide(j);
    else
        find_range(j);
    find_roundings(j);
    find_costly(j);
    find_codes(j);
}

/* ------------------------------------------------------------------ layers */

static void judge_layer(struct judged *j)
{
    qat_debug_layer *layer = j->layer;
    const debug_tensor *y = j->y;
    int64_t beyond = 0;
    layer->channels = y->channels;
    layer->scale = (double)qat_real_scale(y->t);
    layer->whole = debug_error_of(&y->whole, layer->scale);
    layer->simulated = debug_error_of(&y->simulated, layer->scale);
    layer->own = debug_error_of(&y->own, layer->scale);
    layer->rounding = debug_error_of(&y->rounding, layer->scale);
    layer->foreign = debug_error_of(&y->others, layer->scale);
    layer->differing = share(y->differing, y->compared);
    layer->foreign_differing = share(y->foreign_differing, y->foreign_compared);
    for (int c = 0; c < y->channels; c++)
        beyond += y->of[c].beyond;
    layer->saturated = share(beyond, y->own.n);
    layer->codes = y->t->bits <= 8 ? 1 << y->t->bits : 0;
    for (int i = 0; i < DEBUG_CODES; i++)
        layer->used += y->seen[i];
    judge_parameters(j);
    judge_channels(j);
    j->before = snr_before(j);
    if (!y->foreign)
        find_all(j);
    else if (layer->foreign_differing > 0)
        find_foreign(j);
}

/**
 * A layer whose parameters are not those of the float network, or not numbers, comes before all
 * others; then one at which the whole loses most.
 */
static int32_t key_of(const struct judged *j)
{
    enum { MISTAKE = 1000, COSTLY = 500 };
    bool const mistake = j->layer->kind == QAT_DEBUG_SCALE ||
                         j->layer->kind == QAT_DEBUG_NOT_FINITE || j->biases_off;
    return qat_rank_key((float)(j->layer->loss + (mistake ? MISTAKE : is_costly(j) ? COSTLY : 0)));
}

qat_status debug_judge(qat_debug *d, qat_error *err)
{
    size_t const n = (size_t)d->n_layers;
    int32_t *keys = calloc(n + 1, sizeof *keys);
    int *room = calloc(n + 1, sizeof *room);
    if (keys && room)
        for (int i = 0; i < d->n_layers; i++) {
            struct judged j = {.d = d,
                               .op = d->ops[i],
                               .y = &d->tensors[d->ops[i]->outputs[0]],
                               .layer = &d->layers[i]};
            judge_layer(&j);
            keys[i] = key_of(&j);
        }
    if (keys && room)
        qat_rank_falling(keys, d->order, room, d->n_layers);
    qat_status const st = keys && room ? QAT_OK : qat_out_of_memory(err, "debugger");
    free(keys);
    free(room);
    return st;
}

/** Is the layer's own error more than rounding explains? */
static bool is_off(const qat_debug *d, int i, qat_debug_pair pair)
{
    const qat_debug_layer *layer = &d->layers[i];
    const debug_tensor *y = &d->tensors[d->ops[i]->outputs[0]];
    double const rounding = layer->scale * layer->scale / 12;
    if (pair == QAT_DEBUG_SIMULATED_INTEGER)
        return layer->differing > 0;
    if (pair == QAT_DEBUG_FOREIGN_INTEGER)
        return layer->foreign_differing > 0;
    return y->own.n && !(qat_decibels(y->own.noise / (double)y->own.n, rounding) <= PARTS);
}

int qat_debug_parts(const qat_debug *d, qat_debug_pair pair)
{
    for (int i = 0; i < d->n_layers; i++)
        if (is_off(d, i, pair))
            return i;
    return -1;
}
