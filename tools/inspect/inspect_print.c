/** Prints an integer graph as tables or JSON. */
#include "tools/inspect/inspect.h"

#include "base/bytes.h"

#include "base/words.h"
#include "qat/quantizer.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_BYTES = 32, LABELS_SHOWN = 5 };

const char *inspect_type_name(const qat_qtensor *t)
{
    static const char *const names[] = {"uint8", "int8", "int32", "int64", "int16"};
    return names[t->type];
}

static const char *rounding_name(qi_rounding r)
{
    return r == QI_ROUND_TWICE    ? "twice"
           : r == QI_ROUND_DOUBLE ? "double"
           : r == QI_ROUND_LONG   ? "long"
           : r == QI_ROUND_EVEN   ? "even"
           : r == QI_ROUND_ONCE   ? "once"
                                  : "-";
}

void inspect_dims_text(const qat_qtensor *t, char *text, size_t max)
{
    size_t at = 0;
    for (int i = 0; i < t->rank && at < max; i++)
        at += (size_t)snprintf(text + at, max - at, "%s%d", i ? "x" : "", (int)t->dims[i]);
}

static bool contains(const int *list, int count, int value)
{
    for (int i = 0; i < count; i++)
        if (list[i] == value)
            return true;
    return false;
}

static const char *tensor_kind(const qat_qgraph *g, int i)
{
    return contains(g->inputs, g->n_inputs, i)     ? "input"
           : contains(g->outputs, g->n_outputs, i) ? "output"
           : g->tensors[i].data                    ? "const"
           : g->tensors[i].is_state                ? "state"
                                                   : "act";
}

/* ------------------------------------------------------------------ tables */

/** The bytes of a tensor: of packed codes, in the file. */
static size_t tensor_bytes(const inspected *x, int i)
{
    return x->restored ? qat_qtensor_bytes(&x->graph->tensors[i])
                       : qi_bytes_in_file(qi_tensor_at(x->model.model, i));
}

static void print_tensors(const inspected *x)
{
    const qat_qgraph *g = x->graph;
    bool const numbered = inspect_is_numbered(g);
    printf("\n%5s %s%-6s %-7s %-16s %-13s %5s %-25s %9s  %s\n", "t", numbered ? "  .qm " : "",
           "kind", "type", "shape", "S", "Z", "range", "bytes", "name");
    for (int i = 0; i < g->n_tensors; i++) {
        const qat_qtensor *t = &g->tensors[i];
        char label[TOOL_LABEL_MAX], dims[64], range[64] = "", scale[32] = "", zero[16] = "",
                                              type[16];
        inspect_dims_text(t, dims, sizeof dims);
        snprintf(type, sizeof type, t->bits == 8 * (int)qi_type_bytes(t->type) ? "%s" : "%s:%d",
                 inspect_type_name(t), t->bits);
        if (qi_type_has_codes(t->type)) {
            inspect_scale_text(t, scale);
            strcat(scale, t->channel_scales ? "*" : "");
            snprintf(zero, sizeof zero, "%d", (int)t->zero_point);
            inspect_range_text(t, range);
        }
        inspect_label(g, i, label);
        printf("%5s ", label);
        if (numbered)
            printf("%5d ", i);
        printf("%-6s %-7s %-16s %-13s %5s %-25s %9zu  %s\n", tensor_kind(g, i), type, dims, scale,
               zero, range, tensor_bytes(x, i), inspect_name(t->name));
    }
    if (numbered)
        printf("(t: the tensor's number in the source file; qat-run --dump-tensors names its files "
               "after it; q: the source file has no such tensor; .qm: the index in the .qm)\n");
    printf("(S with *: one scale per output channel; the list shows the first one, --tensor shows "
           "all)\n");
}

static void print_labels_of(const qat_qgraph *g, const int *list, int count)
{
    char label[TOOL_LABEL_MAX];
    for (int i = 0; i < count; i++) {
        inspect_label(g, list[i], label);
        printf("%s%s", i ? "," : "", label);
    }
}

static void print_multipliers(const qat_qgraph *g, const qat_qop *op)
{
    int n = 0;
    const int32_t *shifts = NULL, *mults = inspect_multipliers(g, op, &n, &shifts);
    if (!mults)
        return;
    if (op->rounding == QI_ROUND_DOUBLE) {
        uint64_t const significand = (uint64_t)(uint32_t)mults[0] | (uint64_t)(uint32_t)mults[1]
                                                                        << 32;
        printf(" M=%llu*2^(%d-53)%s", (unsigned long long)significand, (int)shifts[0],
               n > 1 ? "*" : "");
        return;
    }
    printf(" M0=%d shift=%d%s", (int)mults[0], (int)shifts[0], n > 1 ? "*" : "");
}

static void print_ops(const qat_qgraph *g)
{
    printf("\n"
           "ops, in order (M0 and shift with *: one per output channel; the list shows the first "
           "one)\n");
    for (int i = 0; i < g->n_ops; i++) {
        const qat_qop *op = &g->ops[i];
        printf("%3d %-17s %-24s ", i, tool_shown(op->op), inspect_name(op->name));
        print_labels_of(g, op->inputs, op->n_inputs);
        printf(" -> ");
        print_labels_of(g, op->outputs, op->n_outputs);
        print_multipliers(g, op);
        for (int k = 0; k < op->n_params; k++) {
            const char *name = inspect_param_name(op->op, k);
            printf(*name ? " %s=" : " %sp=", name);
            printf("%d", (int)op->params[k]);
        }
        printf(" round=%s", rounding_name(op->rounding));
        if (op->fraction)
            printf(" fraction=%d", op->fraction);
        if (op->max_accumulator)
            printf(" max|acc|=%lld", (long long)op->max_accumulator);
        printf("\n");
    }
}

static void print_digest(const uint8_t *digest)
{
    for (int i = 0; i < DIGEST_BYTES; i++)
        printf("%02x", digest[i]);
}

/** Was the model made from a checkpoint? The digest of an imported one is zeros. */
static bool has_digest(const qi_model *m)
{
    static const uint8_t none[DIGEST_BYTES];
    return memcmp(qi_model_digest(m), none, DIGEST_BYTES) != 0;
}

static void print_statistics(const char *name, const uint32_t bits[4], int channels)
{
    float v[4];
    memcpy(v, bits, sizeof v);
    printf("%s", name);
    for (int c = 0; c < channels && c < 4; c++)
        printf(" %g", (double)v[c]);
}

static void print_preprocessing(const qi_preprocessing *p)
{
    if (p->kind == 0)
        return;
    if (p->kind == 1 && p->central_crop)
        printf("input: %d x %d x %d pixels, central_crop %g, (pixel - mean) / std with", p->height,
               p->width, p->channels, p->central_crop / 1e6);
    else if (p->kind == 1)
        printf("input: %d x %d x %d pixels, resize_short %d, (pixel - mean) / std with", p->height,
               p->width, p->channels, p->resize_short);
    else if (p->kind == 3)
        printf("input: a sound of 16 kHz, %d frame%s of %d bands, (code - mean) / std with",
               p->height, qat_plural(p->height), p->width);
    else
        printf("input: real numbers in %d channels, (value - mean) / std with", p->channels);
    print_statistics(" mean", p->mean_bits, p->channels);
    print_statistics(", std", p->std_bits, p->channels);
    printf("\n");
}

static void print_first_labels(const qi_model *m)
{
    int32_t const count = qi_label_count(m), shown = count < LABELS_SHOWN ? count : LABELS_SHOWN;
    if (!count)
        return;
    printf("labels: %d:", (int)count);
    for (int32_t i = 0; i < shown; i++)
        printf("%s %s", i ? "," : "", tool_shown(qi_label_at(m, i)));
    printf(shown < count ? ", ... (--labels shows all)\n" : "\n");
}

static void print_epilogue(const inspected *x)
{
    const qi_model *m = x->model.model;
    const qi_epilogue *e = qi_model_epilogue(m);
    const qat_task *task = qat_task_of_model(x->model.registry, m);
    qat_text text = {0};
    if (!e->name)
        return;
    printf("epilogue, computed outside the engine: %s of ", tool_shown(e->name));
    print_labels_of(x->graph, e->inputs, (int)e->n_inputs);
    if (task && task->tell_epilogue)
        task->tell_epilogue(&text, m);
    else
        qat_text_add(&text, ", %d parameters", (int)e->n_params);
    tool_print_text(&text);
    printf("\n");
}

void inspect_print_labels(const inspected *x)
{
    const qi_model *m = x->model.model;
    if (!qi_label_count(m))
        tool_log.line(tool_log.context, "the model has no labels");
    for (int32_t i = 0; i < qi_label_count(m); i++)
        printf("%d %s\n", (int)i, tool_shown(qi_label_at(m, i)));
}

static void print_size(const qat_network_size *size, const char *parameters)
{
    printf("%lld %s", (long long)size->parameters, parameters);
    if (size->training_parameters > size->parameters)
        printf(" (%lld with the parameters that only training uses)",
               (long long)size->training_parameters);
    printf(", %lld multiply-adds\n", (long long)size->macs);
}

/** The op that needs most scratch on a device: fewer bits of activations do not make it less. */
static void print_scratch(const qi_model *m)
{
    size_t most = 0;
    int32_t at = 0;
    for (int32_t i = 0; i < qi_node_count(m); i++) {
        const qi_node *op = qi_node_at(m, i);
        size_t const bytes = op->kernel->scratch ? op->kernel->scratch(m, op) : 0;
        at = bytes > most ? i : at;
        most = bytes > most ? bytes : most;
    }
    const char *name = most ? qi_node_at(m, at)->name : "";
    if (most && *name)
        printf("most scratch in the device arena: %zu bytes, in %s\n", most, tool_shown(name));
    else if (most)
        printf("most scratch in the device arena: %zu bytes, in op %d\n", most, (int)at);
}

static void print_model_head(const inspected *x)
{
    const qi_model *m = x->model.model;
    const qi_preprocessing *p = qi_model_preprocessing(m);
    qi_sizes const sizes = qi_host_sizes(x->model.host);
    printf(
        "%s: .qm, %zu bytes, device arena %zu bytes\nmodel memory %zu bytes on this machine\n%s\n",
        tool_shown(x->path), x->file_bytes, sizes.arena, sizes.model,
        *qi_model_description(m) ? tool_shown(qi_model_description(m)) : "no description");
    print_size(&x->size, "weights and biases");
    print_scratch(m);
    printf("checkpoint: ");
    if (has_digest(m))
        print_digest(qi_model_digest(m));
    else
        printf("none: this model was not trained with qat-train");
    printf("\n");
    print_preprocessing(p);
    print_first_labels(m);
    print_epilogue(x);
    printf("known-answer test: %s", qi_kat_steps(m) ? "stored" : "none");
    if (qi_kat_steps(m) > 1)
        printf(", %d runs", (int)qi_kat_steps(m));
    printf("\n");
}

/** Print the observed ranges: min, max, and the number of steps. */
static void print_ranges(const qat_checkpoint *c)
{
    bool any = false;
    int n;
    const qat_named_tensor *all = qat_checkpoint_tensors(c, &n);
    for (const qat_named_tensor *t = all; t < all + n; t++) {
        if (!inspect_is_observed_range(t))
            continue;
        if (!any)
            printf("\n%-40s %12s %12s %12s\n", "observed range", "min", "max", "steps");
        any = true;
        printf("%-40s %12.6g %12.6g %12.0f\n", tool_shown(t->name), (double)t->values[0],
               (double)t->values[1], (double)t->values[2]);
    }
}

static void print_params(const qat_checkpoint *c)
{
    printf("\n%-40s %-18s %12s %12s %12s\n", "parameter", "shape", "least", "largest", "mean");
    int n_tensors;
    const qat_named_tensor *all = qat_checkpoint_tensors(c, &n_tensors);
    for (const qat_named_tensor *t = all; t < all + n_tensors; t++) {
        if (inspect_is_observed_range(t))
            continue;
        char shape[64];
        size_t const n = qat_shape_count(&t->shape);
        double least = INFINITY, largest = -INFINITY, sum = 0;
        for (size_t k = 0; k < n; k++) {
            least = fmin(least, (double)t->values[k]);
            largest = fmax(largest, (double)t->values[k]);
            sum += (double)t->values[k];
        }
        printf("%-40s %-18s %12.6g %12.6g %12.6g\n", tool_shown(t->name),
               qat_shape_text(&t->shape, shape), least, largest, sum / (double)n);
    }
}

static void print_figure(const char *of, const qat_accuracy *a)
{
    char text[TOOL_FIGURE_MAX];
    if (a->n)
        printf("%s %s %s", of, a->task->figures[a->task->main].name,
               tool_figure(text, a, a->task->main));
}

/** ", 4-bit weights", or ", weights of 3 to 8 bits" if the layers differ. */
static void print_bits(const qat_graph *eval, bool weights)
{
    const char *what = weights ? "weights" : "activations";
    int least = INT_MAX, most = 0;
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        const qat_node *node = qat_graph_node(eval, i);
        const qat_quantizer *q = qat_node_quantizer(node);
        int const bits = q && q->weights == weights ? (int)qat_attr(node, "bits") : 0;
        least = bits && bits < least ? bits : least;
        most = bits > most ? bits : most;
    }
    if (!most)
        printf(", float %s", what);
    else if (least == most)
        printf(", %d-bit %s", most, what);
    else
        printf(", %s of %d to %d bits", what, least, most);
}

static void print_quantization(const inspected *x)
{
    const qat_quant_options *quant = qat_checkpoint_quant(qat_restored_checkpoint(x->restored));
    qat_graph *eval = NULL;
    qat_error err;
    printf("quantized: layout %s", quant->layout == QAT_LAYOUT_UINT8 ? "uint8" : "int8");
    if (!qat_create_eval_graph(&eval, qat_restored_graph(x->restored), quant, &err)) {
        print_bits(eval, true);
        print_bits(eval, false);
    }
    qat_graph_free(eval);
    printf("\n");
    if (inspect_integers(x, &err))
        printf("%s\n", tool_shown(err.message));
}

static void print_checkpoint_head(const inspected *x)
{
    const qat_checkpoint *c = qat_restored_checkpoint(x->restored);
    int n_plugins;
    const qat_plugin_file *plugins = qat_checkpoint_plugins(c, &n_plugins);
    printf("%s: checkpoint, %zu bytes, step %lld\n", tool_shown(x->path), x->file_bytes,
           (long long)qat_checkpoint_step(c));
    print_size(&x->size, "trainable parameters");
    print_figure("float", qat_checkpoint_accuracy(c, QAT_JUDGED_FLOAT));
    print_figure(", on integers", qat_checkpoint_accuracy(c, QAT_JUDGED_INTEGER));
    print_figure(", simulated", qat_checkpoint_accuracy(c, QAT_JUDGED_SIMULATED));
    printf("\nSHA-256 ");
    print_digest(qat_checkpoint_digest(c));
    printf("\n");
    for (int i = 0; i < n_plugins; i++) {
        printf("plugin %s, SHA-256 ", tool_shown(plugins[i].name));
        print_digest(plugins[i].sha256);
        printf("\n");
    }
    if (qat_checkpoint_quantized(c))
        print_quantization(x);
    else
        printf("float: no quantization\n");
    print_params(c);
    print_ranges(c);
}

void inspect_print(const inspected *x)
{
    if (x->restored) {
        print_checkpoint_head(x);
    } else {
        print_model_head(x);
        tool_print_source(x->model.host);
    }
    if (!x->graph)
        return;
    print_tensors(x);
    print_ops(x->graph);
    if (!x->restored)
        inspect_print_bytes(x);
}

/* ------------------------------------------------------------------ JSON */

static void json_ints(const char *name, const int32_t *values, int count)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%d", i ? ", " : "", (int)values[i]);
    printf("]");
}

/** A member that is a number, or null: not known. */
static void json_known(const char *name, bool is_known, double value)
{
    if (is_known)
        printf(", \"%s\": %.9g", name, value);
    else
        printf(", \"%s\": null", name);
}

void inspect_json_tensor(const qat_qgraph *g, int i)
{
    const qat_qtensor *t = &g->tensors[i];
    double range[2] = {0};
    bool const has_range = inspect_range(t, range);
    printf("{\"index\": %d, \"name\": ", i);
    tool_json_string(t->name);
    printf(", \"kind\": \"%s\", \"type\": \"%s\", \"bits\": %d", tensor_kind(g, i),
           inspect_type_name(t), t->bits);
    json_ints("shape", t->dims, t->rank);
    json_known("scale", inspect_has_scale(t), (double)t->scale);
    printf(", \"zero_point\": %d", (int)t->zero_point);
    json_known("min", has_range, range[0]);
    json_known("max", has_range, range[1]);
    printf(", \"bytes\": %zu, \"source_index\": %d", qat_qtensor_bytes(t), t->source_index);
    if (t->is_state)
        printf(", \"next\": %d", t->next);
}

static void json_op(const qat_qgraph *g, int i)
{
    const qat_qop *op = &g->ops[i];
    int n = 0;
    const int32_t *shifts = NULL, *mults = inspect_multipliers(g, op, &n, &shifts);
    printf("%s{\"op\": ", i ? ",\n  " : "\n  ");
    tool_json_string(op->op);
    printf(", \"name\": ");
    tool_json_string(op->name);
    json_ints("inputs", op->inputs, op->n_inputs);
    json_ints("outputs", op->outputs, op->n_outputs);
    json_ints("params", op->params, op->n_params);
    if (mults) {
        json_ints("M0", mults, op->rounding == QI_ROUND_DOUBLE ? 2 * n : n);
        json_ints("shift", shifts, n);
    }
    printf(", \"rounding\": \"%s\", \"fraction\": %d, \"max_accumulator\": %lld}",
           rounding_name(op->rounding), op->fraction, (long long)op->max_accumulator);
}

static void json_model(const inspected *x)
{
    const qi_model *m = x->model.model;
    const qi_epilogue *e = qi_model_epilogue(m);
    printf(", \"arena_bytes\": %zu, \"description\": ", qi_host_sizes(x->model.host).arena);
    tool_json_string(qi_model_description(m));
    printf(has_digest(m) ? ", \"checkpoint\": \"" : ", \"checkpoint\": null");
    if (has_digest(m)) {
        print_digest(qi_model_digest(m));
        printf("\"");
    }
    printf(", \"labels\": [");
    for (int32_t i = 0; i < qi_label_count(m); i++) {
        printf(i ? ", " : "");
        tool_json_string(qi_label_at(m, i));
    }
    printf(e->name ? "], \"epilogue\": {\"name\": " : "], \"epilogue\": null");
    if (!e->name)
        return;
    tool_json_string(e->name);
    json_ints("inputs", e->inputs, (int)e->n_inputs);
    json_ints("params", e->params, (int)e->n_params);
    printf("}");
}

/** How a constant of few bits lies in the file. */
static void json_packing(const qi_tensor *t)
{
    if (t->packing)
        printf(", \"packing\": %d, \"listed\": %d, \"bytes_in_file\": %zu", t->packing, t->listed,
               qi_bytes_in_file(t));
}

void inspect_print_json(const inspected *x)
{
    const qat_qgraph *g = x->graph;
    printf("{\"path\": ");
    tool_json_string(x->path);
    printf(", \"bytes\": %zu", x->file_bytes);
    if (g) {
        json_ints("inputs", g->inputs, g->n_inputs);
        json_ints("outputs", g->outputs, g->n_outputs);
        if (!x->restored)
            json_model(x);
        printf(", \"tensors\": [");
        for (int i = 0; i < g->n_tensors; i++) {
            printf(i ? ",\n  " : "\n  ");
            inspect_json_tensor(g, i);
            if (!x->restored)
                json_packing(qi_tensor_at(x->model.model, i));
            printf("}");
        }
        printf("],\n \"ops\": [");
        for (int i = 0; i < g->n_ops; i++)
            json_op(g, i);
        printf("]");
        if (!x->restored)
            inspect_json_bytes(x);
    }
    printf(", \"parameters\": %lld, \"training_parameters\": %lld, \"multiply_adds\": %lld}\n",
           (long long)x->size.parameters, (long long)x->size.training_parameters,
           (long long)x->size.macs);
}
