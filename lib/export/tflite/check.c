/**
 * What was written, as TensorFlow Lite computes it: the file is imported, its multipliers are
 * compared with the model's, and both models run.
 */
#include "export/tflite/out.h"

#include "export/pixels.h"

#include "base/number.h"
#include "base/rng.h"
#include "convert/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 16, SAMPLES_OF_LARGE = 4 };
static int64_t const large_macs = INT64_C(1) << 28;

/** Multipliers of one network rounded in two ways are nearer than this; other ones are wrong. */
static double const rounding_error = 0x1p-20;

/** TensorFlow Lite stores larger ones as about this one. */
static double const most_multiplier = 0x1p30;

struct check {
    const tfo *o;
    const qat_qgraph *read; /* from the file */
    int layers, otherwise;  /* layers with a multiplier, and those that round otherwise */
    char first[QAT_NAME_MAX];
    int samples, max_quanta;
    int fractions;    /* layers whose accumulators have fractional bits */
    int fed, *states; /* of the graph, which the file has as inputs and outputs */
    int64_t bytes, differing;
    qat_error *err;
};

/* ------------------------------------------------------------------ multipliers */

/** The op that writes this tensor of the file; NULL: there is none. */
static const qat_qop *writer_of(const qat_qgraph *g, int source_index)
{
    for (int i = 0; i < g->n_ops; i++)
        if (g->tensors[g->ops[i].outputs[0]].source_index == source_index)
            return &g->ops[i];
    return NULL;
}

/** Multiplier c of a layer's sums, and how many it has. */
static double product_multiplier(const qat_qgraph *g, const qat_qop *op, size_t c, size_t *n)
{
    const qat_qtensor *mult = &g->tensors[op->inputs[QAT_IN_MULT]];
    const qat_qtensor *shift = &g->tensors[op->inputs[QAT_IN_SHIFT]];
    const int32_t *m = mult->data, *s = shift->data;
    *n = qat_qtensor_count(shift);
    c = c < *n ? c : 0;
    if (op->rounding != QI_ROUND_DOUBLE)
        return ldexp(m[c], s[c] + op->fraction - 31);
    int64_t const significand = (int64_t)m[2 * c + 1] * (INT64_C(1) << 32) + (uint32_t)m[2 * c];
    return ldexp((double)significand, s[c] - 53);
}

/** The next pair of parameters "mult..." and "shift..." from `at` on; false: there is none. */
static bool param_multiplier(const qat_qop *op, int *at, double *real)
{
    const qi_op *row = qi_op_named(op->op);
    for (; *at + 1 < op->n_params; ++*at)
        if (!strncmp(row->params[*at].name, "mult", 4) &&
            !strncmp(row->params[*at + 1].name, "shift", 5)) {
            *real = ldexp(op->params[*at], op->params[*at + 1] - 31);
            *at += 2;
            return true;
        }
    return false;
}

/** Does every sum of a layer times this become 0? Then the .qm may have 0 for a tiny multiplier. */
static bool vanishes(const qat_qop *op, double multiplier)
{
    return qat_qop_accumulates(op) && fabs(multiplier) * (double)op->max_accumulator < 0.5;
}

static qat_status judge(struct check *c, const qat_qop *op, double ours, double theirs, bool *same)
{
    if (vanishes(op, ours) && vanishes(op, theirs))
        return QAT_OK;
    *same = *same && ours == theirs;
    if (fmax(ours, theirs) > most_multiplier && fmin(ours, theirs) > most_multiplier / 2)
        return qat_fail(c->err, QAT_ERR_UNSUPPORTED,
                        "layer %s: a unit of its sum is %.9g codes of its output, but TensorFlow "
                        "Lite's multipliers end at %.9g",
                        op->name, fmax(ours, theirs), most_multiplier);
    if (fabs(ours - theirs) <= rounding_error * fabs(ours))
        return QAT_OK;
    return qat_fail(c->err, QAT_ERR_MISMATCH,
                    "%s: its multiplier is %.9g, but of its scales TensorFlow Lite makes %.9g",
                    op->name, ours, theirs);
}

/** Compare the multipliers of two ops of one kind. */
static qat_status compare_numbers(struct check *c, const qat_qop *op, const qat_qop *read,
                                  bool *same)
{
    qat_status st = QAT_OK;
    double ours, theirs;
    if (qat_qop_accumulates(op)) {
        size_t n = 1, of_read;
        for (size_t i = 0; i < n && !st; i++) {
            ours = product_multiplier(c->o->graph, op, i, &n);
            theirs = product_multiplier(c->read, read, i, &of_read);
            st = judge(c, op, ours, theirs, same);
        }
        return st;
    }
    for (int i = 0, j = 0;
         !st && param_multiplier(op, &i, &ours) && param_multiplier(read, &j, &theirs);)
        st = judge(c, op, ours, theirs, same);
    return st;
}

/** A sum of rounding EVEN has other multipliers than TensorFlow Lite's, of the same scales. */
static bool has_other_numbers(const qat_qop *op)
{
    return op->rounding == QI_ROUND_EVEN && strcmp(op->op, "add") == 0;
}

static qat_status compare_op(struct check *c, int i)
{
    const qat_qop *op = &c->o->graph->ops[i];
    if (c->o->written[i] < 0)
        return QAT_OK;
    const qat_qop *read = writer_of(c->read, c->o->written[i]);
    if (!read)
        return qat_fail(c->err, QAT_ERR_MISMATCH, "%s: it is not in the file", op->name);
    bool const alike = !strcmp(op->op, read->op);
    bool same = alike && op->rounding == read->rounding && op->fraction == 0;
    bool const is_compared = alike && !has_other_numbers(op);
    qat_status const st = is_compared ? compare_numbers(c, op, read, &same) : QAT_OK;
    c->layers++;
    c->fractions += op->fraction > 0;
    if (!same && !c->otherwise++ && *op->name)
        snprintf(c->first, sizeof c->first, "%s", op->name);
    else if (!same && c->otherwise == 1)
        snprintf(c->first, sizeof c->first, "op %d", i);
    return st;
}

/* ------------------------------------------------------------------ answers */

/** The known question first, then random bytes: also what is no code, which the engine limits. */
static void fill_inputs(const struct check *c, int sample, void *const *in)
{
    const qi_model *m = c->o->model;
    for (int32_t i = 0; i < qi_input_count(m); i++) {
        size_t const bytes = qi_tensor_at(m, qi_input_at(m, i))->bytes;
        qat_rng rng = qat_rng_at((uint64_t)sample, qat_hash_name("tflite"), (uint64_t)i);
        if (!sample && qi_kat_input(m, i))
            memcpy(in[i], qi_kat_input(m, i), bytes);
        else
            for (size_t j = 0; j < bytes; j++)
                ((uint8_t *)in[i])[j] = (uint8_t)qat_rng_below(&rng, 256);
    }
}

static void compare_outputs(struct check *c, void *const *ours, void *const *theirs)
{
    const qat_qgraph *g = c->o->graph;
    for (int i = 0; i < g->n_outputs; i++) {
        const qat_qtensor *t = &g->tensors[g->outputs[i]];
        const uint8_t *a = ours[i], *b = theirs[i];
        size_t const bytes = qat_qtensor_bytes(t), count = qat_qtensor_count(t);
        c->bytes += (int64_t)bytes;
        for (size_t j = 0; j < bytes; j++)
            c->differing += a[j] != b[j];
        for (size_t j = 0; j < count; j++) {
            int64_t const apart = qi_value_at(t->type, a, j) - qi_value_at(t->type, b, j);
            int const quanta = (int)(apart < 0 ? -apart : apart);
            c->max_quanta = quanta > c->max_quanta ? quanta : c->max_quanta;
        }
    }
}

static void release(void **all)
{
    for (int i = 0; all && all[i]; i++)
        free(all[i]);
    free(all);
}

static void **allocate(const qat_qgraph *g, int n, const int *tensors)
{
    void **all = calloc((size_t)n + 1, sizeof *all);
    bool good = all != NULL;
    for (int i = 0; good && i < n; i++)
        good = (all[i] = calloc(1, qat_qtensor_bytes(&g->tensors[tensors[i]]) + 1)) != NULL;
    if (good)
        return all;
    release(all);
    return NULL;
}

/** What states begin with. */
static void fill_states(const struct check *c, void *const *in)
{
    for (int i = 0; i < c->fed; i++) {
        const qat_qtensor *t = &c->o->graph->tensors[c->states[i]];
        for (size_t j = 0; j < qat_qtensor_count(t); j++)
            if (t->type == QI_S16)
                ((int16_t *)in[i])[j] = (int16_t)t->zero_point;
            else
                ((uint8_t *)in[i])[j] = (uint8_t)t->zero_point;
    }
}

/**
 * What the file takes instead of pixels: their codes. A QUANTIZE makes them of real numbers. The
 * last pixel is first, because a code may take more bytes.
 */
static void codes_of_pixels(const struct check *c, void *pixels)
{
    enum { PIXELS = 256 };
    const qat_qop *op = &c->o->graph->ops[c->o->pixels_table];
    const qat_qtensor *table = &c->o->graph->tensors[op->inputs[1]];
    size_t const rows = table->rank > 1 ? (size_t)table->dims[0] : 1;
    size_t const n = qat_qtensor_count(&c->o->graph->tensors[op->inputs[0]]);
    for (size_t i = n; i-- > 0;) {
        size_t const entry = i % rows * PIXELS + ((const uint8_t *)pixels)[i];
        qat_store_code(table->type, pixels, i, qat_load_code(table->type, table->data, entry));
    }
}

/** Both run; what states became goes in again. */
static qat_status run_both(struct check *c, const qi_host *host, const qi_host *read)
{
    const qat_qgraph *g = c->o->graph;
    int const n = g->n_inputs, m = g->n_outputs;
    void **in = allocate(c->read, c->read->n_inputs, c->read->inputs);
    void **ours = allocate(g, m, g->outputs);
    void **theirs = allocate(c->read, c->read->n_outputs, c->read->outputs);
    bool const good = in && ours && theirs;
    c->samples = qi_model_macs(c->o->model) > large_macs ? SAMPLES_OF_LARGE : SAMPLES;
    qi_host_reset(host, NULL);
    if (good)
        fill_states(c, in + n);
    for (int i = 0; good && i < c->samples; i++) {
        fill_inputs(c, i, in);
        qi_host_run(host, (const void *const *)in, ours);
        if (c->o->float_io && c->o->pixels_table >= 0)
            codes_of_pixels(c, in[0]);
        qi_host_run(read, (const void *const *)in, theirs);
        compare_outputs(c, ours, theirs);
        for (int s = 0; s < c->fed; s++)
            memcpy(in[n + s], theirs[m + s], qat_qtensor_bytes(&g->tensors[c->states[s]]));
    }
    qi_host_reset(host, NULL);
    release(in);
    release(ours);
    release(theirs);
    return good ? QAT_OK : qat_out_of_memory(c->err, NULL);
}

/** Has b as many values as a, of as many bytes? May it have another type? */
static bool same_size(const qi_tensor *a, const qi_tensor *b, bool any_type)
{
    size_t const width_a = qi_type_bytes((qi_type)a->type),
                 width_b = qi_type_bytes((qi_type)b->type);
    return a->bytes / width_a == b->bytes / width_b && (any_type || width_a == width_b);
}

/**
 * Have both models inputs and outputs of the same sizes, in the same order? b: fed states, too.
 * pixels: b takes codes of pixels, as input 0.
 */
static bool same_border(const qi_model *a, const qi_model *b, int fed, bool pixels)
{
    bool same = qi_input_count(a) + fed == qi_input_count(b) &&
                qi_output_count(a) + fed == qi_output_count(b);
    for (int32_t i = 0; same && i < qi_input_count(a); i++)
        same = same_size(qi_tensor_at(a, qi_input_at(a, i)), qi_tensor_at(b, qi_input_at(b, i)),
                         pixels && i == 0);
    for (int32_t i = 0; same && i < qi_output_count(a); i++)
        same = same_size(qi_tensor_at(a, qi_output_at(a, i)), qi_tensor_at(b, qi_output_at(b, i)),
                         false);
    return same;
}

static qat_status compare_answers(struct check *c, const qi_host *host)
{
    uint8_t *qm = NULL;
    size_t count;
    qi_host *read = NULL;
    qat_status st = qat_qm_write(c->read, &(qat_qm_metadata){0}, &qm, &count, c->err);
    if (!st)
        st = qat_engine_open(&read, qm, count, NULL, NULL, c->err);
    free(qm);
    bool const pixels = c->o->float_io && c->o->pixels_table >= 0;
    if (!st && !same_border(c->o->model, qi_host_model(read), c->fed, pixels))
        st = qat_fail(c->err, QAT_ERR_MISMATCH, "its inputs or outputs have other sizes");
    if (!st)
        st = run_both(c, host, read);
    qi_host_close(read);
    return st;
}

/* ------------------------------------------------------------------ the whole */

/** QUANTIZE rounds half away from zero, so a few pixels may get the code beside the table's. */
static void count_other_pixels(const tfo *o, const qat_log *log)
{
    char text[256];
    int pixels, others = qat_pixels_otherwise(o->model, o->pixels_table, roundf, &pixels);
    qat_format(text, sizeof text,
               "real numbers at the input: %d of %d pixels get another code than in the .qm, "
               "because TensorFlow Lite rounds half away from zero",
               others, pixels);
    if (others && log && log->line)
        log->line(log->context, text);
}

/** Say what roundings change; where none does, answers are equal. */
static qat_status conclude(const struct check *c, const qat_log *log)
{
    char text[QAT_NAME_MAX + 512];
    if (!c->otherwise && c->differing)
        return qat_fail(c->err, QAT_ERR_MISMATCH,
                        "the file computes something else: of %lld bytes of answers %lld differ",
                        (long long)c->bytes, (long long)c->differing);
    if (!c->otherwise || !log || !log->line)
        return QAT_OK;
    char fractions[128] = "";
    if (c->fractions)
        snprintf(fractions, sizeof fractions,
                 "; accumulators of %d have fractional bits, which it has not: their biases are "
                 "rounded",
                 c->fractions);
    qat_format(
        text, sizeof text,
        "%d of %d layers round otherwise in TensorFlow Lite (the first: %s%s): of the output "
        "bytes for %d random inputs %.3f %% differ, by at most %d. Exported from its "
        "checkpoint with --profile tflite, a model has equal bytes",
        c->otherwise, c->layers, c->first, fractions, c->samples,
        100.0 * (double)c->differing / (double)c->bytes, c->max_quanta);
    log->line(log->context, text);
    return QAT_OK;
}

qat_status tfo_check(const tfo *o, const qi_host *host, const qat_writer *w, const qat_log *log,
                     qat_error *err)
{
    qat_error inner = {0};
    qat_qgraph *read = NULL;
    struct check c = {
        .o = o, .states = calloc((size_t)o->graph->n_tensors, sizeof(int)), .err = err};
    if (!c.states)
        return qat_out_of_memory(err, NULL);
    c.fed = tfo_fed_states(o->graph, c.states);
    qat_status st = qat_tflite_import(&read, w->bytes, w->count, &inner);
    if (st) {
        free(c.states);
        return qat_fail(err, st == QAT_ERR_NOMEM ? st : QAT_ERR_UNSUPPORTED,
                        "TensorFlow Lite does not run it: %.400s", inner.message);
    }
    c.read = read;
    for (int i = 0; !st && i < o->graph->n_ops; i++)
        st = compare_op(&c, i);
    if (!st)
        st = compare_answers(&c, host);
    if (!st)
        st = conclude(&c, log);
    if (!st && o->float_io && o->pixels_table >= 0)
        count_other_pixels(o, log);
    qat_qgraph_free(read);
    free(c.states);
    return st;
}
