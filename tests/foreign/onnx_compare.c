/**
 * Builds networks of ONNX files as training does, runs them in float, and compares with the answers
 * beside them (input_0.pb ..., output_0.pb, as in ONNX's own tests).
 *
 *     onnx_compare [-r TOLERANCE] FOLDER...     each holds model.onnx and test_data_set_0
 *
 * Prints a line for each folder: "ok NAME", "refused NAME: why", "differs NAME: how much",
 * "parsed NAME" (it has no answer of floats). A quantized network is imported, and its codes are
 * compared: "exact NAME", or "differs NAME", "refused NAME". Several inputs of one kind are
 * computed: they are parts of the data, which a Split in front of the network makes. If that is
 * refused, those behind the first are constants. Differences are relative to the largest value;
 * without -r, to 1 where that is larger.
 */
#include "base/files/file.h"
#include "convert/onnx/import.h"
#include "qat/qat.h"

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

/** NULL: there is no such file, or it holds no tensor. */
static const qat_foreign_tensor *read_tensor(qat_arena *arena, const char *folder, const char *kind,
                                             int i)
{
    char path[2048];
    uint8_t *bytes = NULL;
    size_t count = 0;
    const qat_foreign_tensor *tensor = NULL;
    qat_error err;
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
    if (!qat_file_read(path, (size_t)1 << 30, &bytes, &count, &err) &&
        qat_onnx_parse_tensor(&tensor, arena, bytes, count, path, &err))
        tensor = NULL;
    free(bytes);
    return tensor && tensor->type != QAT_FOREIGN_OTHER ? tensor : NULL;
}

/** The data's sizes that place_input takes for these dimensions. */
static bool sizes_of(const qat_foreign_tensor *x, qat_foreign_options *o)
{
    *o = (qat_foreign_options){.height = 1, .width = 1, .channels = 1, .bn_momentum = 0.9};
    if (x->rank == 4) {
        o->channels = (int)x->dims[1];
        o->height = (int)x->dims[2];
        o->width = (int)x->dims[3];
    } else if (x->rank == 3) {
        o->channels = (int)x->dims[1];
        o->width = (int)x->dims[2];
    } else if (x->rank == 2) {
        o->channels = (int)x->dims[1];
    }
    return x->rank >= 1 && x->rank <= 4 && x->count > 0;
}

/** From the file's order to channels last. */
static void write_input(qat_node *node, const qat_foreign_tensor *x)
{
    size_t const c = x->rank > 1 ? (size_t)x->dims[1] : 1;
    size_t const n = (size_t)x->dims[0], pixels = x->count / n / c;
    for (size_t b = 0; b < n; b++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t k = 0; k < c; k++)
                node->value[(b * pixels + p) * c + k] = x->floats[(b * c + k) * pixels + p];
}

/** The largest difference, as a share of the largest value, or of `least`. */
static double difference(const qat_node *y, const qat_foreign_tensor *want, double *largest)
{
    const qat_shape *s = &y->shape;
    size_t const c = s->rank == 4 ? (size_t)s->dims[3] : 1;
    size_t const n = (size_t)s->dims[0], pixels = qat_shape_count(s) / n / c;
    double worst = 0;
    *largest = least;
    for (size_t i = 0; i < want->count; i++)
        *largest = fmax(*largest, fabs((double)want->floats[i]));
    for (size_t b = 0; b < n; b++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t k = 0; k < c; k++) {
                double const is = (double)y->value[(b * pixels + p) * c + k];
                double const d = fabs(is - (double)want->floats[(b * c + k) * pixels + p]);
                worst = d > worst || isnan(d) ? d : worst;
            }
    return worst / *largest;
}

/** Numbers that float32 has? Some tests of the archive hold 64-bit rubbish. */
static bool are_floats(const qat_foreign_tensor *t)
{
    bool good = t && t->type == QAT_FOREIGN_FLOAT;
    for (size_t i = 0; good && i < t->count; i++)
        good = fabs((double)t->floats[i]) < 1e30;
    return good;
}

struct test {
    const char *folder;
    qat_registry *registry;
    qat_arena arena;
    qat_foreign_graph *graph;
    const qat_foreign_tensor *inputs[64];
    int n_inputs;
    const qat_foreign_tensor *want;
};

/** Can the inputs be parts of one array, along dimension 1? */
static bool can_join(const struct test *t)
{
    const qat_foreign_tensor *first = t->inputs[0];
    bool good = t->n_inputs > 1 && t->n_inputs == t->graph->n_inputs && first->rank > 1;
    for (int i = 1; good && i < t->n_inputs; i++) {
        const qat_foreign_tensor *x = t->inputs[i];
        good = are_floats(x) && x->rank == first->rank;
        for (int d = 0; good && d < x->rank; d++)
            good = d == 1 || x->dims[d] == first->dims[d];
    }
    return good;
}

/** The inputs side by side along dimension 1. */
static qat_foreign_tensor *joined(struct test *t, int64_t *lengths)
{
    qat_foreign_tensor *all = qat_arena_array(&t->arena, 1, sizeof *all);
    *all = *t->inputs[0];
    all->dims[1] = 0;
    all->count = 0;
    for (int i = 0; i < t->n_inputs; i++) {
        lengths[i] = t->inputs[i]->dims[1];
        all->dims[1] += lengths[i];
        all->count += t->inputs[i]->count;
    }
    float *to = qat_arena_array(&t->arena, all->count, sizeof *to);
    all->floats = to;
    for (int64_t b = 0; b < all->dims[0]; b++)
        for (int i = 0; i < t->n_inputs; i++) {
            size_t const n = t->inputs[i]->count / (size_t)all->dims[0];
            memcpy(to, t->inputs[i]->floats + (size_t)b * n, n * sizeof *to);
            to += n;
        }
    return all;
}

/** Put a Split in front of the network, whose parts are its inputs. */
static void split_data(struct test *t)
{
    qat_foreign_graph *g = t->graph;
    int64_t *lengths = qat_arena_array(&t->arena, (size_t)t->n_inputs, sizeof *lengths);
    qat_foreign_attr *attrs = qat_arena_array(&t->arena, 2, sizeof *attrs);
    qat_foreign_node *nodes = qat_arena_array(&t->arena, (size_t)g->n_nodes + 1, sizeof *nodes);
    qat_foreign_value *values = qat_arena_array(&t->arena, (size_t)g->n_values + 1, sizeof *values);
    int *data = qat_arena_array(&t->arena, 1, sizeof *data);
    const qat_foreign_tensor *all = joined(t, lengths);
    *data = g->n_values;
    attrs[0] = (qat_foreign_attr){.name = "axis", .kind = QAT_FOREIGN_ATTR_INT, .i = 1};
    attrs[1] = (qat_foreign_attr){
        .name = "split", .kind = QAT_FOREIGN_ATTR_INTS, .n = (size_t)t->n_inputs, .ints = lengths};
    nodes[0] = (qat_foreign_node){.op = "Split",
                                  .domain = "",
                                  .name = "parts",
                                  .n_inputs = 1,
                                  .n_outputs = t->n_inputs,
                                  .n_attrs = 2,
                                  .inputs = data,
                                  .outputs = g->inputs,
                                  .attrs = attrs};
    memcpy(nodes + 1, g->nodes, (size_t)g->n_nodes * sizeof *nodes);
    memcpy(values, g->values, (size_t)g->n_values * sizeof *values);
    values[g->n_values] = (qat_foreign_value){.name = "data", .is_input = true};
    g->nodes = nodes;
    g->values = values;
    g->inputs = data;
    g->n_nodes++;
    g->n_values++;
    g->n_inputs = t->n_inputs = 1;
    t->inputs[0] = all;
}

/** Give the inputs behind the first their values as constants. */
static void bind(struct test *t)
{
    for (int i = 1; i < t->n_inputs && i < t->graph->n_inputs; i++)
        if (t->inputs[i])
            t->graph->values[t->graph->inputs[i]].constant = t->inputs[i];
    qat_foreign_value *first = &t->graph->values[t->graph->inputs[0]];
    first->rank = t->inputs[0]->rank;
    memcpy(first->dims, t->inputs[0]->dims, sizeof first->dims);
}

static qat_status run(struct test *t, double *worst, qat_error *err)
{
    qat_foreign_options o;
    qat_graph *graph = NULL;
    qat_node *last = NULL;
    qat_foreign_params params = {0};
    const qat_foreign_tensor *x = t->inputs[0];
    if (!sizes_of(x, &o))
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "an input of %d dimensions", x->rank);
    qat_status st = qat_graph_create(&graph, t->registry, err);
    if (st)
        return st;
    qat_node *input = qat_graph_input(graph, "input", QAT_SHAPE(1, o.height, o.width, o.channels));
    st = qat_foreign_build(t->graph, graph, input, &o, &last, &params, err);
    if (!st) {
        qat_graph_output(graph, last);
        st = qat_graph_plan(graph, (int)x->dims[0], QAT_PLAN_EVAL, err);
    }
    if (!st) {
        double largest;
        qat_graph_init_params(graph, 1);
        if (qat_foreign_fill(&params, graph) != params.count)
            st = qat_fail(err, QAT_ERR_STATE, "not all parameters are in the graph");
        write_input(input, x);
        qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
        if (qat_shape_count(&last->shape) != t->want->count)
            st = qat_fail(err, QAT_ERR_MISMATCH, "%zu values instead of %zu",
                          qat_shape_count(&last->shape), t->want->count);
        else
            *worst = difference(last, t->want, &largest);
    }
    qat_foreign_params_free(&params);
    qat_graph_free(graph);
    return st;
}

/* ------------------------------------------------------------------ quantized networks */

static bool is_quantized(const qat_foreign_graph *g)
{
    bool found = false;
    for (int i = 0; i < g->n_nodes; i++)
        found = found || strstr(g->nodes[i].op, "uantizeLinear") ||
                strstr(g->nodes[i].op, "QLinear") || strstr(g->nodes[i].op, "Integer");
    return found;
}

/** Value i of a tensor in the file's order, from channels last if it is a picture. */
static double value_of(const qat_foreign_tensor *t, size_t i)
{
    return t->type == QAT_FOREIGN_FLOAT ? (double)t->floats[i] : (double)t->ints[i];
}

static size_t place(const qat_foreign_tensor *t, size_t i)
{
    size_t const c = t->rank == 4 ? (size_t)t->dims[1] : 1;
    size_t const pixels = t->rank == 4 ? (size_t)(t->dims[2] * t->dims[3]) : 1;
    return i / (c * pixels) * c * pixels + i % pixels * c + i / pixels % c;
}

/** Run the .qm of the graph on input 0, and count the values that differ. */
static qat_status run_codes(const struct test *t, const qat_qgraph *g, size_t *differing,
                            qat_error *err)
{
    static uint8_t codes[1 << 16], answers[1 << 16];
    static float reals[1 << 16];
    const qat_foreign_tensor *x = t->inputs[0], *want = t->want;
    qat_qm_metadata const metadata = {0};
    uint8_t *qm = NULL;
    size_t count = 0;
    qi_host *host = NULL;
    if (x->count > sizeof codes || want->count > sizeof codes)
        return qat_fail(err, QAT_ERR_LIMIT, "a test of %zu values", x->count);
    qat_status st = qat_qm_write(g, &metadata, &qm, &count, err);
    if (!st)
        st = qi_host_open_bytes(&host, qm, count, t->folder, NULL, err);
    if (!st) {
        const qi_model *m = qi_host_model(host);
        const qi_tensor *in = qi_tensor_at(m, qi_input_at(m, 0));
        const qi_tensor *out = qi_tensor_at(m, qi_output_at(m, 0));
        for (size_t i = 0; i < x->count; i++) {
            codes[place(x, i)] = (uint8_t)(int)value_of(x, i);
            reals[place(x, i)] = (float)value_of(x, i);
        }
        if (in->border)
            qat_border_quantize(in, reals, codes);
        qi_host_run(host, (const void *[]){codes}, (void *[]){answers});
        if (out->border)
            qat_border_dequantize(out, answers, reals);
        for (size_t i = 0; i < want->count; i++) {
            size_t const at = place(want, i);
            double const code = (double)qi_value_at(out->type, answers, at);
            *differing += (out->border ? (double)reals[at] : code) != value_of(want, i);
        }
    }
    qi_host_close(host);
    free(qm);
    return st;
}

/** Its inputs behind the first are constants. */
static bool test_quantized(struct test *t)
{
    qat_qgraph *g = NULL;
    size_t differing = 0;
    qat_error err = {0};
    bind(t);
    t->graph->n_inputs = 1;
    qat_status st = oq_import(&g, t->graph, &err);
    if (!st)
        st = run_codes(t, g, &differing, &err);
    qat_qgraph_free(g);
    if (st)
        printf("refused %s: %s\n", base_of(t->folder), err.message);
    else
        printf("%s %s: %zu of %zu\n", differing ? "differs" : "exact", base_of(t->folder),
               differing, t->want->count);
    return !differing && (!st || *err.message);
}

static bool test_folder(qat_registry *registry, const char *folder)
{
    char path[2048];
    double worst = 0;
    bool good = true;
    qat_error err = {0};
    struct test t = {.folder = folder, .registry = registry};
    bool computed = false;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    qat_status st = qat_onnx_read(&t.graph, path, 0, &err);
    for (; !st && t.n_inputs < 64 && t.n_inputs < t.graph->n_inputs; t.n_inputs++)
        t.inputs[t.n_inputs] = read_tensor(&t.arena, folder, "input", t.n_inputs);
    t.want = st ? NULL : read_tensor(&t.arena, folder, "output", 0);
    bool const floats = are_floats(t.want) && t.n_inputs && are_floats(t.inputs[0]);
    if (!st && t.want && t.n_inputs && t.inputs[0] && is_quantized(t.graph)) {
        good = test_quantized(&t);
    } else if (!st && !floats) {
        printf("parsed %s\n", base_of(folder));
    } else {
        if (!st && can_join(&t)) {
            struct test parts = t;
            st = qat_onnx_read(&parts.graph, path, 0, &err);
            if (!st) {
                split_data(&parts);
                bind(&parts);
                st = run(&parts, &worst, &err);
                qat_foreign_free(parts.graph);
            }
            t.arena = parts.arena;
            computed = st == QAT_OK || st == QAT_ERR_MISMATCH;
            st = computed ? st : QAT_OK;
        }
        if (!st && !computed) {
            bind(&t);
            st = run(&t, &worst, &err);
        }
        if (st == QAT_ERR_MISMATCH)
            printf("differs %s: %s\n", base_of(folder), err.message);
        else if (st)
            printf("refused %s: %s\n", base_of(folder), err.message);
        else
            printf("%s %s: %.3g%s\n", worst <= tolerance ? "ok" : "differs", base_of(folder), worst,
                   computed ? ", of computed inputs" : "");
        good = st != QAT_ERR_MISMATCH && worst <= tolerance && (!st || *err.message);
    }
    qat_foreign_free(t.graph);
    qat_arena_free(&t.arena);
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
