/**
 * Builds networks of ONNX files as training does, runs them in float, and compares with the answers
 * beside them (input_0.pb ..., output_0.pb, as in ONNX's own tests).
 *
 *     onnx_compare [-r TOLERANCE] FOLDER...     each holds model.onnx and test_data_set_0
 *
 * Prints a line for each folder, with the network's operators: "ok NAME [Conv,Relu]: how much",
 * "refused NAME [...]: why", "differs NAME [...]: how much". All outputs of floats are compared
 * that can be built. A quantized network is imported, and its codes are compared: "exact NAME", or
 * "differs NAME", "refused NAME". Where there are no floats, or no values, all inputs are
 * constants, and what is computed of them is compared: "known NAME". "parsed NAME [...]: why"
 * compares nothing. How a network gets its inputs, node_test.h says: the first way that builds it
 * counts. Differences are relative to the largest value; without -r, to 1 where that is larger.
 */
#include "base/words.h"
#include "integers.h"
#include "known.h"
#include "node_test.h"
#include "quantized.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double tolerance = 1e-5;
static double least = 1; /* of the largest value, in a relative difference */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/** The start of a test's line: "ok test_add [Add]" */
static void tell(const char *what, const node_test *t)
{
    printf("%s %s [", what, base_of(t->folder));
    for (int i = 0; t->graph && i < t->graph->n_nodes; i++) {
        bool told = false;
        for (int k = 0; k < i; k++)
            told = told || !strcmp(t->graph->nodes[k].op, t->graph->nodes[i].op);
        if (!told)
            printf("%s%s", i ? "," : "", t->graph->nodes[i].op);
    }
    printf("]");
}

/* ------------------------------------------------------------------ networks of floats */

/** The largest difference, as a share of the largest value, or of `least`. drops: of those values
 *  alone that neither has dropped. Infinity: one is no number. */
static double difference(const qat_node *y, const qat_foreign_tensor *want, bool drops)
{
    const qat_shape *s = &y->shape;
    size_t const c = s->rank == 4 ? (size_t)s->dims[3] : 1;
    size_t const n = (size_t)s->dims[0], pixels = qat_shape_count(s) / n / c;
    double worst = 0, largest = least;
    for (size_t i = 0; i < want->count; i++)
        largest = fmax(largest, fabs((double)want->floats[i]));
    for (size_t b = 0; b < n; b++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t k = 0; k < c; k++) {
                double const is = (double)y->value[(b * pixels + p) * c + k];
                double const wanted = (double)want->floats[(b * c + k) * pixels + p];
                double const d = drops && (is == 0 || wanted == 0) ? 0 : fabs(is - wanted);
                if (isnan(d))
                    return INFINITY;
                worst = fmax(worst, d);
            }
    return worst / largest;
}

/** Dropout that the file has at work: which values it drops is chance. */
static bool is_dropping(const node_test *t)
{
    const qat_foreign_node *n = t->graph->n_nodes == 1 ? t->graph->nodes : NULL;
    const qat_foreign_tensor *trains =
        n && n->n_inputs > 2 && n->inputs[2] >= 0 ? t->graph->values[n->inputs[2]].constant : NULL;
    return n && !strcmp(n->op, "Dropout") && trains && trains->type == QAT_FOREIGN_INT &&
           trains->ints[0];
}

/** Batch norms of the file that normalize with the averages of the data? */
static bool is_training(const qat_foreign_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_attrs; k++)
            if (!strcmp(g->nodes[i].attrs[k].name, "training_mode") && g->nodes[i].attrs[k].i)
                return true;
    return false;
}

/** What became of one output. */
struct result {
    double worst; /* difference */
    int way;
    int64_t bytes, differing; /* of the integers that were compared */
    qat_error no_integers;    /* why there are none */
};

static qat_status run(const node_test *t, qat_registry *registry, const qat_foreign_tensor *want,
                      struct result *r, qat_error *err)
{
    qat_foreign_options o;
    qat_graph *graph = NULL;
    qat_node *last = NULL;
    qat_foreign_params params = {0};
    bool const drops = is_dropping(t), trains = drops || is_training(t->graph);
    if (!t->inputs[0]->count || !want->count)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "an input or an output without values");
    node_test_sizes(t, &o);
    qat_status st = qat_graph_create(&graph, registry, err);
    if (st)
        return st;
    qat_node *input = qat_graph_input(graph, "input", QAT_SHAPE(1, o.height, o.width, o.channels));
    st = qat_foreign_build(t->graph, graph, input, &o, &last, &params, err);
    if (!st) {
        qat_graph_output(graph, last);
        st = qat_graph_plan(graph, t->is_batch ? (int)t->inputs[0]->dims[0] : 1,
                            trains ? QAT_PLAN_TRAIN : QAT_PLAN_EVAL, err);
    }
    if (!st) {
        qat_graph_init_params(graph, 1);
        if (qat_foreign_fill(&params, graph) != params.count)
            st = qat_fail(err, QAT_ERR_STATE, "not all parameters are in the graph");
        node_test_write(t, input);
        qat_graph_forward(graph, &(qat_run){.mode = trains ? QAT_MODE_TRAIN : QAT_MODE_EVAL});
        if (qat_shape_count(&last->shape) != want->count)
            st = qat_fail(err, QAT_ERR_MISMATCH, "%zu values instead of %zu",
                          qat_shape_count(&last->shape), want->count);
        else
            r->worst = difference(last, want, drops);
        node_test_write(t, input); /* its memory was used again */
        if (!st && integers_compare(registry, graph, input->shape.dims[0], &r->bytes, &r->differing,
                                    &r->no_integers))
            r->bytes = 0;
    }
    qat_foreign_params_free(&params);
    qat_graph_free(graph);
    return st;
}

/** Run output `which` in the first way that builds it. */
static qat_status run_ways(const char *folder, qat_registry *registry, int which, struct result *r,
                           qat_error *err)
{
    qat_status st = QAT_ERR_UNSUPPORTED;
    qat_error last = {0};
    for (r->way = 0; node_test_way(r->way); r->way++) {
        node_test t;
        st = node_test_read(&t, folder, &last);
        if (!st)
            t.graph->outputs[0] = t.graph->outputs[which];
        if (!st && !node_test_feed(&t, r->way))
            st = QAT_ERR_UNSUPPORTED;
        else if (!st)
            st = run(&t, registry, t.outputs[which], r, &last);
        node_test_free(&t);
        /* Constants are what most networks have; the batch is in the way of others. */
        bool const tells_more =
            !*err->message || r->way == 2 || strstr(err->message, "first dimension");
        if (st && *last.message && tells_more)
            *err = last;
        if (!st || st == QAT_ERR_MISMATCH)
            break;
    }
    *err = st == QAT_ERR_MISMATCH ? last : *err;
    return st;
}

static bool test_floats(const node_test *t, qat_registry *registry)
{
    struct result r = {0};
    int compared = 0;
    qat_error err = {0};
    qat_status const st = run_ways(t->folder, registry, 0, &r, &err);
    if (st) {
        tell(st == QAT_ERR_MISMATCH ? "differs" : "refused", t);
        printf(": %s\n", err.message);
        return st != QAT_ERR_MISMATCH && *err.message;
    }
    for (int i = 1; i < t->n_outputs; i++) {
        struct result other = {0};
        if (!node_test_floats(t->outputs[i]))
            continue;
        qat_status const s = run_ways(t->folder, registry, i, &other, &err);
        compared += !s;
        r.worst = s == QAT_ERR_MISMATCH ? INFINITY : fmax(r.worst, other.worst);
        r.differing += other.differing;
    }
    bool const good = r.worst <= tolerance && !r.differing;
    tell(good ? "ok" : "differs", t);
    printf(": %.3g, %s", r.worst, node_test_way(r.way));
    if (compared)
        printf(", and %d further outputs", compared);
    if (!*r.no_integers.message && !r.bytes)
        printf("; it computes nothing\n");
    else if (r.bytes)
        printf("; in integers %lld of %lld bytes differ\n", (long long)r.differing,
               (long long)r.bytes);
    else
        printf("; no integers: %s\n", r.no_integers.message);
    return good;
}

/* ------------------------------------------------------------------ other networks */

static bool test_quantized(const node_test *t)
{
    size_t differing = 0;
    int inputs = 0;
    qat_error err = {0};
    qat_status const st = quantized_compare(t->folder, &inputs, &differing, &err);
    tell(st ? "refused" : differing ? "differs" : "exact", t);
    if (st)
        printf(": %s\n", err.message);
    else
        printf(": %zu of %zu, of %d input%s\n", differing, t->outputs[0]->count, inputs,
               qat_plural(inputs));
    return !differing && (!st || *err.message);
}

static bool has_all_tensors(const node_test *t)
{
    bool all = t->n_outputs > 0 && t->n_outputs == t->graph->n_outputs;
    for (int i = 0; all && i < t->n_inputs; i++)
        all = t->inputs[i] != NULL;
    for (int i = 0; all && i < t->n_outputs; i++)
        all = t->outputs[i] != NULL;
    return all;
}

/** All inputs are constants; what is computed of them must be the answer. */
static bool test_known(const char *folder, const qat_registry *registry)
{
    node_test t;
    double worst = INFINITY;
    qat_error err = {0};
    qat_status st = node_test_read(&t, folder, &err);
    if (!st && !has_all_tensors(&t)) {
        tell("parsed", &t);
        printf(": sequences, optionals or texts, which are no tensors of numbers\n");
        node_test_free(&t);
        return true;
    }
    node_test_feed_all(&t);
    st = known_compare(&t, registry, &worst, &err);
    tell(st ? "parsed" : worst <= tolerance ? "known" : "differs", &t);
    if (st)
        printf(": %s\n", err.message);
    else
        printf(": %.3g, computed without data\n", worst);
    node_test_free(&t);
    return st || worst <= tolerance;
}

static bool has_values(const node_test *t)
{
    return t->n_inputs && t->n_outputs && node_test_floats(t->inputs[0]) &&
           node_test_floats(t->outputs[0]) && t->inputs[0]->count && t->outputs[0]->count;
}

static bool test_folder(qat_registry *registry, const char *folder)
{
    node_test t;
    qat_error err = {0};
    size_t differing = 0;
    int inputs = 0;
    bool good = true;
    qat_status const st = node_test_read(&t, folder, &err);
    bool const has_tensors = !st && t.n_inputs && t.n_outputs && t.inputs[0] && t.outputs[0];
    if (st) {
        tell("refused", &t);
        printf(": %s\n", err.message);
        good = *err.message;
    } else if (has_tensors &&
               (quantized_is(&t) ||
                (quantized_has_codes(&t) && !quantized_compare(folder, &inputs, &differing, &err))))
        good = test_quantized(&t);
    else if (has_values(&t))
        good = test_floats(&t, registry);
    else
        good = test_known(folder, registry);
    node_test_free(&t);
    return good;
}

int main(int argc, char **argv)
{
    qat_registry *registry = NULL;
    qat_error err;
    int first = 1, bad = 0;
    if (argc > 2 && !strcmp(argv[1], "-r")) {
        tolerance = strtod(argv[2], NULL);
        least = 1e-30;
        first = 3;
    }
    if (qat_registry_create(&registry, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = first; i < argc; i++)
        bad += !test_folder(registry, argv[i]);
    qat_registry_free(registry);
    return bad > 0;
}
