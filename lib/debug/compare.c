/** Runs the networks of real numbers beside the engine, and adds up how far values are apart. */
#include "debug/debug.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ sums */

void debug_add(debug_sums *s, double reference, double value)
{
    double const apart = value - reference;
    s->n++;
    s->signal += reference * reference;
    s->values += value * value;
    s->products += reference * value;
    s->noise += apart * apart;
    s->largest = fmax(s->largest, fabs(apart));
}

qat_debug_error debug_error_of(const debug_sums *s, double scale)
{
    qat_debug_error e = {NAN, NAN, NAN};
    if (s->n == 0)
        return e;
    double const length = sqrt(s->signal) * sqrt(s->values);
    e.snr = qat_decibels(s->signal, s->noise);
    e.cosine = length > 0 ? s->products / length : s->signal == s->values;
    e.largest = s->largest / scale;
    return e;
}

void debug_add_fit(debug_fit *f, double a, double b)
{
    f->n++;
    f->a += a;
    f->b += b;
    f->aa += a * a;
    f->ab += a * b;
    f->bb += b * b;
}

void debug_solve_fit(const debug_fit *f, double scale, double *gain, double *offset)
{
    double const n = (double)f->n, spread = f->aa / n - f->a / n * (f->a / n);
    bool const wide = spread > 4 * scale * scale;
    *gain = wide ? (f->ab / n - f->a / n * (f->b / n)) / spread : 1;
    *offset = f->b / n - f->a / n;
}

bool debug_is_offset(const debug_fit *f)
{
    double const n = (double)f->n, mean = (f->b - f->a) / n;
    double const variance = (f->bb - 2 * f->ab + f->aa) / n - mean * mean;
    return 16 * variance <= mean * mean;
}

void debug_ends(const qi_tensor *t, double ends[2])
{
    double const scale = (double)qat_real_scale(t);
    int32_t const least = t->type == QI_U8 ? 0 : -(1 << (t->bits - 1));
    ends[0] = scale * (least - t->zero_point);
    ends[1] = scale * (least + (1 << t->bits) - 1 - t->zero_point);
}

/* ------------------------------------------------------------------ whole networks */

static qat_status feed(qat_debug *d, debug_view *v, const float *input, int batch, qat_error *err)
{
    qat_status const st = qat_graph_set_batch(v->graph, batch, err);
    if (st)
        return st;
    for (int i = 0; i < d->n_tensors; i++) {
        const qat_node *node = v->of[i];
        if (node && qat_node_is_input(node) && v == &d->by_own)
            memcpy(node->value, d->tensors[i].engine,
                   qat_shape_count(&node->shape) * sizeof *node->value);
    }
    qat_node *x = v == &d->by_own ? NULL : qat_graph_find(v->graph, QAT_INPUT_NAME);
    if (x)
        memcpy(x->value, input, qat_shape_count(&x->shape) * sizeof *x->value);
    return QAT_OK;
}

static qat_status run_whole(qat_debug *d, debug_view *v, const float *input, int batch,
                            qat_error *err)
{
    qat_status const st = feed(d, v, input, batch, err);
    if (st)
        return st;
    qat_simulate_integers(v->graph, true);
    qat_graph_forward(v->graph, &(qat_run){.mode = QAT_MODE_EVAL});
    qat_simulate_integers(v->graph, false);
    return qat_graph_run_status(v->graph, err);
}

static void compare_simulation(debug_tensor *t, const float *simulated, size_t n)
{
    float const scale = qat_real_scale(t->t);
    for (size_t i = 0; i < n; i++)
        t->differing += fabsf(simulated[i] - t->engine[i]) > scale / 2;
    t->compared += (int64_t)n;
}

/** Errors that hold those of all layers before. */
static void compare_whole(const qat_debug *d, int batch)
{
    const debug_view *reference = d->real ? &d->by_real : &d->by_own;
    for (int i = 0; i < d->n_tensors; i++) {
        debug_tensor *t = &d->tensors[i];
        const qat_node *r = t->engine ? reference->of[i] : NULL;
        const qat_node *s = t->engine && d->simulated ? d->by_simulated.of[i] : NULL;
        size_t const n = t->count * (size_t)batch;
        for (size_t k = 0; r && k < n; k++)
            debug_add(&t->whole, (double)r->value[k], (double)t->engine[k]);
        for (size_t k = 0; r && s && k < n; k++)
            debug_add(&t->simulated, (double)r->value[k], (double)s->value[k]);
        if (s)
            compare_simulation(t, s->value, n);
    }
}

/* ------------------------------------------------------------------ single layers */

/** Goes through a network; each layer starts from given values instead of those before it. */
struct walk {
    qat_debug *d;
    debug_view *view;
    int batch;
    bool foreign; /* from the other runtime's values */
    void (*look)(const struct walk *w, debug_tensor *t, const float *values); /* or NULL */
};

static const float *given_to(const struct walk *w, const debug_tensor *t)
{
    size_t const first = t->count * (size_t)w->d->samples;
    return !w->foreign ? t->engine : t->foreign ? t->foreign + first : NULL;
}

static void start_from(const struct walk *w, const qat_node *node, const debug_tensor *t)
{
    const float *values = given_to(w, t);
    if (values)
        memcpy(node->value, values, t->count * (size_t)w->batch * sizeof *values);
}

static void visit(void *context, qat_node *node)
{
    struct walk *w = context;
    int const index = w->view->tensor[node->index];
    if (index < 0)
        return;
    if (w->look)
        w->look(w, &w->d->tensors[index], node->value);
    start_from(w, node, &w->d->tensors[index]);
}

static void walk(struct walk *w)
{
    for (int i = 0; i < w->d->n_tensors; i++)
        if (w->view->of[i] && qat_node_is_input(w->view->of[i]))
            start_from(w, w->view->of[i], &w->d->tensors[i]);
    qat_graph_forward_visit(w->view->graph, &(qat_run){.mode = QAT_MODE_EVAL}, visit, w);
}

/** Values of the reference that no code can hold, by more than the rounding to the last one. */
static bool is_beyond(const double ends[2], double scale, double reference)
{
    return reference < ends[0] - scale || reference > ends[1] + scale;
}

static void add_own(debug_tensor *t, const float *reference, int batch)
{
    double ends[2], scale = (double)qat_real_scale(t->t);
    debug_ends(t->t, ends);
    for (size_t i = 0; i < t->count * (size_t)batch; i++) {
        debug_channel *c = &t->of[i % (size_t)t->channels];
        double const r = (double)reference[i], v = (double)t->engine[i];
        debug_add(&t->own, r, v);
        c->n++;
        c->noise += (v - r) * (v - r);
        c->beyond += is_beyond(ends, scale, r);
        c->least = fminf(c->least, t->engine[i]);
        c->most = fmaxf(c->most, t->engine[i]);
        t->reference[0] = fminf(t->reference[0], reference[i]);
        t->reference[1] = fmaxf(t->reference[1], reference[i]);
    }
}

static void look_at_real(const struct walk *w, debug_tensor *t, const float *values)
{
    memcpy(t->real, values, t->count * (size_t)w->batch * sizeof *values);
    add_own(t, values, w->batch);
}

/** Neither at a bound of the activation nor beyond it, for both. */
static bool is_inside(const float bounds[2], float a, float b)
{
    return a > bounds[0] && a < bounds[1] && b > bounds[0] && b < bounds[1];
}

/** Fit a layer's values to those that the model's parameters give. */
static void fit_own(const struct walk *w, debug_tensor *t, debug_fitted to, const float *reference,
                    const float *values)
{
    const float *bounds = w->d->own.bounds[t->index];
    for (size_t i = 0; i < t->count * (size_t)w->batch; i++)
        if (is_inside(bounds, reference[i], values[i]))
            debug_add_fit(&t->of[i % (size_t)t->channels].fits[to], (double)reference[i],
                          (double)values[i]);
}

static void look_at_own(const struct walk *w, debug_tensor *t, const float *values)
{
    const qat_node *s = t->real ? w->d->by_simulated.of[t->index] : NULL;
    for (size_t i = 0; i < t->count * (size_t)w->batch; i++)
        debug_add(&t->rounding, (double)values[i], (double)t->engine[i]);
    if (t->real)
        fit_own(w, t, DEBUG_OF_FLOAT, t->real, values);
    else
        add_own(t, values, w->batch);
    if (s && qat_node_quantizes(s, false)) /* before its range ends and its own rounding */
        fit_own(w, t, DEBUG_OF_SIMULATED, s->inputs[0]->value, values);
}

static void look_at_foreign(const struct walk *w, debug_tensor *t, const float *values)
{
    const float *bounds = w->d->own.bounds[t->index], *foreign = given_to(w, t);
    double ends[2], scale = (double)qat_real_scale(t->t);
    debug_ends(t->t, ends);
    for (size_t i = 0; foreign && i < t->count * (size_t)w->batch; i++) {
        debug_channel *c = &t->of[i % (size_t)t->channels];
        double const r = fmin(fmax((double)values[i], ends[0]), ends[1]), v = (double)foreign[i];
        debug_add(&t->others, r, v);
        c->foreign_noise += (v - r) * (v - r);
        c->foreign_size += r * r;
        t->foreign_compared++;
        t->foreign_differing += fabs(v - r) > scale;
        if (is_inside(bounds, values[i], foreign[i]) && v < ends[1] - scale / 2 &&
            (v > ends[0] + scale / 2 || bounds[0] > -INFINITY))
            debug_add_fit(&c->fits[DEBUG_OF_FOREIGN], (double)values[i], v);
    }
}

qat_status debug_compare_batch(qat_debug *d, const float *real_input, int batch, qat_error *err)
{
    struct walk real = {d, &d->by_real, batch, false, look_at_real};
    struct walk simulated = {d, &d->by_simulated, batch, false, NULL};
    struct walk own = {d, &d->by_own, batch, false, look_at_own};
    struct walk foreign = {d, &d->by_own, batch, true, look_at_foreign};
    qat_status st = run_whole(d, &d->by_own, real_input, batch, err);
    if (!st && d->real)
        st = run_whole(d, &d->by_real, real_input, batch, err);
    if (!st && d->simulated)
        st = run_whole(d, &d->by_simulated, real_input, batch, err);
    if (st)
        return st;
    compare_whole(d, batch);
    if (d->real) {
        walk(&real);
        walk(&simulated);
    }
    walk(&own);
    if (d->dumped)
        walk(&foreign);
    return QAT_OK;
}
