/** Opens the file that qat-inspect shows, and runs one input through it. */
#include "tools/inspect/inspect.h"

#include "tools/common/limits.h"

#include "base/files/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ opening */

/** The first bytes of a .qm that was opened. */
static qat_status read_head(const char *path, uint8_t head[INSPECT_HEAD_BYTES], qat_error *err)
{
    qat_file_source source;
    size_t got = 0;
    qat_status st = qat_source_open(&source, path, err);
    if (!st)
        st = qat_source_read(&source, head, INSPECT_HEAD_BYTES, &got, err);
    qat_source_close(&source);
    if (!st && got != INSPECT_HEAD_BYTES)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: it has become shorter", path);
    return st;
}

static qat_status open_qm(inspected *x, const tool_list *plugins, qat_error *err)
{
    qat_status st = tool_model_open(&x->model, x->path, &(tool_run){.plugins = plugins}, err);
    if (!st)
        st = qat_qm_read(&x->graph, x->model.model, err);
    if (!st)
        st = read_head(x->path, x->head, err);
    if (!st)
        x->size = qat_qgraph_size_of(x->graph);
    return st;
}

qat_status inspect_integers(const inspected *x, qat_error *err)
{
    *err = x->no_integers;
    return err->status;
}

/** Make the integers of a quantized checkpoint, if it has any: layers may be left in float, and inq
 * may be half done. */
static qat_status make_integers(inspected *x, qat_error *err)
{
    qat_deploy_options const o = {.log = &tool_log};
    const qat_quant_options *quant = qat_checkpoint_quant(qat_restored_checkpoint(x->restored));
    qat_error why;
    qat_status st = qat_check_integers(qat_restored_graph(x->restored), quant, &why);
    bool const possible = !st;
    if (possible)
        st = qat_restored_eval_graph(x->restored, &o, 1, &x->eval, &why);
    if (possible && !st)
        st = qat_restored_freeze(x->restored, &o, x->eval, &x->graph, &why);
    if (st == (possible ? QAT_ERR_NUMERIC : QAT_ERR_UNSUPPORTED)) {
        x->no_integers = why;
        return QAT_OK;
    }
    return st ? qat_fail(err, st, "%s", why.message) : QAT_OK;
}

static qat_status open_checkpoint(inspected *x, const tool_list *plugins, qat_error *err)
{
    qat_status st = tool_restore(&x->restored, x->path, plugins, err);
    if (!st)
        st = qat_network_size_of(qat_restored_graph(x->restored), &x->size, err);
    return st || !qat_checkpoint_quantized(qat_restored_checkpoint(x->restored))
               ? st
               : make_integers(x, err);
}

static qat_status allocate_values(inspected *x, qat_error *err)
{
    size_t const n = x->graph ? (size_t)x->graph->n_tensors : 0;
    x->codes = calloc(n + 1, sizeof *x->codes);
    x->real = calloc(n + 1, sizeof *x->real);
    return x->codes && x->real ? QAT_OK : qat_out_of_memory(err, NULL);
}

qat_status inspect_open(inspected *x, const char *path, tool_file kind, const tool_list *plugins,
                        qat_error *err)
{
    struct stat st_file;
    *x = (inspected){.path = path, .room = tool_max_memory()};
    x->file_bytes = stat(path, &st_file) ? 0 : (size_t)st_file.st_size;
    qat_status st =
        kind == TOOL_FILE_QM ? open_qm(x, plugins, err) : open_checkpoint(x, plugins, err);
    if (!st)
        st = allocate_values(x, err);
    return st;
}

void inspect_close(inspected *x)
{
    for (int i = 0; x->graph && i < x->graph->n_tensors; i++) {
        if (x->codes && x->codes[i] != x->graph->tensors[i].data)
            free(x->codes[i]);
        if (x->real)
            free(x->real[i]);
    }
    free(x->codes);
    free(x->real);
    qat_qgraph_free(x->graph);
    qat_graph_free(x->eval);
    qat_restored_free(x->restored);
    tool_model_close(&x->model);
}

/* ------------------------------------------------------------------ values */

/** Keep a copy of an activation's codes; all copies together take at most --max-memory. */
static qat_status keep_codes(inspected *x, int tensor, const void *from, qat_error *err)
{
    size_t const bytes = qat_qtensor_bytes(&x->graph->tensors[tensor]);
    if (bytes > x->room)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "%s: the values of its tensors take more than %llu MiB of memory "
                        "(--max-memory)",
                        x->path, (unsigned long long)(tool_max_memory() >> 20));
    x->codes[tensor] = malloc(bytes + 1);
    if (!x->codes[tensor])
        return qat_out_of_memory(err, x->path);
    x->room -= bytes;
    memcpy(x->codes[tensor], from, bytes);
    return QAT_OK;
}

static bool is_codes(const qat_qtensor *t)
{
    return qi_type_has_codes(t->type);
}

/** The codes of constants are those of the graph. */
static void keep_constants(inspected *x)
{
    for (int i = 0; i < x->graph->n_tensors; i++) {
        const qat_qtensor *t = &x->graph->tensors[i];
        if (t->data && is_codes(t))
            x->codes[i] = t->data;
    }
}

static void keep_visited(void *context, const qi_model *model, int32_t tensor, const void *data)
{
    inspected *x = context;
    (void)model;
    if (!x->kept && !x->codes[tensor] && is_codes(&x->graph->tensors[tensor]))
        x->kept = keep_codes(x, tensor, data, &x->why);
}

/** Run a .qm on its known-answer input, or on zeros if it has none. */
static qat_status run_engine(inspected *x, qat_error *err)
{
    const qi_model *m = x->model.model;
    int32_t const n = qi_input_count(m);
    const void **inputs = calloc((size_t)n + 1, sizeof *inputs);
    void **outputs = calloc((size_t)qi_output_count(m) + 1, sizeof *outputs);
    void **zeros = calloc((size_t)n + 1, sizeof *zeros);
    bool good = inputs && outputs && zeros;
    for (int32_t i = 0; good && i < n; i++) {
        zeros[i] = calloc(1, qi_tensor_at(m, qi_input_at(m, i))->bytes);
        inputs[i] = qi_kat_input(m, i) ? qi_kat_input(m, i) : zeros[i];
        good = zeros[i] != NULL;
    }
    snprintf(x->sample, sizeof x->sample, "%s",
             qi_kat_input(m, 0) ? "the known-answer input" : "zeros");
    if (good)
        qi_host_run_visit(x->model.host, NULL, inputs, outputs, keep_visited, x);
    for (int32_t i = 0; zeros && i < n; i++)
        free(zeros[i]);
    free(zeros);
    free(inputs);
    free(outputs);
    if (x->kept)
        return qat_fail(err, x->kept, "%s", x->why.message);
    return good ? QAT_OK : qat_out_of_memory(err, NULL);
}

/** The node that a fake_quant node quantizes, found by the name of the integer tensor. */
static const qat_node *quantized_node(const inspected *x, const qat_qtensor *t)
{
    const qat_node *node = qat_graph_find(x->eval, t->name);
    return node && qat_node_quantizer(node) ? node->inputs[0] : NULL;
}

static qat_status keep_real(inspected *x, qat_error *err)
{
    for (int i = 0; i < x->graph->n_tensors; i++) {
        const qat_qtensor *t = &x->graph->tensors[i];
        const qat_node *node = is_codes(t) ? quantized_node(x, t) : NULL;
        size_t const n = qat_qtensor_count(t);
        if (!node || qat_shape_count(&node->shape) != n)
            continue;
        x->real[i] = malloc(n * sizeof *x->real[i]);
        if (!x->real[i])
            return qat_out_of_memory(err, NULL);
        memcpy(x->real[i], node->value, n * sizeof *x->real[i]);
    }
    return QAT_OK;
}

/**
 * Run a checkpoint on the first test sample: its eval graph in float, its integer graph exactly.
 */
static qat_status run_exact(inspected *x, const void *codes, const float *real, qat_error *err)
{
    qat_exact *exact = NULL;
    qat_node *input = qat_graph_find(x->eval, QAT_INPUT_NAME);
    qat_run const run = {.mode = QAT_MODE_EVAL};
    const void *in[1] = {codes};
    qat_status st = qat_graph_set_batch(x->eval, 1, err);
    if (st)
        return st;
    memcpy(input->value, real, qat_shape_count(&input->shape) * sizeof *real);
    qat_graph_forward(x->eval, &run);
    st = qat_exact_create(&exact, x->graph, qat_restored_registry(x->restored), 1, err);
    if (!st)
        st = qat_exact_run(exact, in, 1, err);
    for (int i = 0; !st && i < x->graph->n_tensors; i++) {
        const void *values = qat_exact_tensor(exact, i);
        if (values && !x->codes[i] && is_codes(&x->graph->tensors[i]))
            st = keep_codes(x, i, values, err);
    }
    qat_exact_free(exact);
    return st ? st : keep_real(x, err);
}

/** The first test sample as real values. Pixels are also given as bytes. */
static qat_status first_sample(const inspected *x, const qat_batch **batch, qat_dataset **data,
                               qat_loader **loader, qat_error *err)
{
    const qat_input_info *in = qat_checkpoint_input(qat_restored_checkpoint(x->restored));
    qat_loader_options const o = {.batch = 1, .threads = 1, .prefetch = 1};
    qat_status st =
        qat_recipe_open_data(data, qat_restored_recipe(x->restored), NULL, QAT_SPLIT_TEST, err);
    if (!st)
        st = qat_open_loader(loader, *data, in, &o, err);
    return st ? st : qat_loader_next(*loader, batch, err);
}

static qat_status run_checkpoint(inspected *x, qat_error *err)
{
    const qat_batch *batch = NULL;
    qat_dataset *data = NULL;
    qat_loader *loader = NULL;
    void *codes = NULL;
    const qat_qtensor *in = &x->graph->tensors[x->graph->inputs[0]];
    size_t const n = qat_qtensor_count(in);
    qat_status st = first_sample(x, &batch, &data, &loader, err);
    if (!st && !(codes = malloc(qat_qtensor_bytes(in) + 1)))
        st = qat_out_of_memory(err, NULL);
    for (size_t i = 0; !st && i < n; i++) {
        qat_qparams const p = qat_stored_qparams(in->type, in->bits, in->scale, in->zero_point);
        qat_store_code(in->type, codes, i,
                       batch->bytes ? batch->bytes[i] : qat_code(&p, batch->real[i]));
    }
    if (!st) {
        snprintf(x->sample, sizeof x->sample, "the first sample of %s",
                 qat_dataset_info_of(data)->name);
        st = run_exact(x, codes, batch->real, err);
    }
    free(codes);
    qat_loader_free(loader);
    qat_dataset_close(data);
    return st;
}

qat_status inspect_run(inspected *x, qat_error *err)
{
    if (!x->graph && qat_checkpoint_quantized(qat_restored_checkpoint(x->restored)))
        return inspect_integers(x, err);
    if (!x->graph)
        return qat_fail(err, QAT_ERR_STATE,
                        "%s comes from a float run: it has no quantized tensors", x->path);
    keep_constants(x);
    return x->restored ? run_checkpoint(x, err) : run_engine(x, err);
}

/* ------------------------------------------------------------------ looking things up */

bool inspect_is_numbered(const qat_qgraph *g)
{
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].source_index >= 0)
            return true;
    return false;
}

void inspect_label(const qat_qgraph *g, int i, char label[TOOL_LABEL_MAX])
{
    tool_tensor_label(label, inspect_is_numbered(g), g->tensors[i].source_index, i);
}

int inspect_find(const inspected *x, const char *which)
{
    char label[TOOL_LABEL_MAX];
    char *end;
    long const index = strtol(which, &end, 10);
    if (*which && !*end)
        return index >= 0 && index < x->graph->n_tensors ? (int)index : -1;
    for (int i = 0; i < x->graph->n_tensors; i++)
        if (!strcmp(x->graph->tensors[i].name, which))
            return i;
    for (int i = 0; i < x->graph->n_tensors; i++) {
        inspect_label(x->graph, i, label);
        if (!strcmp(label, which))
            return i;
    }
    return -1;
}

int inspect_code(const qat_qtensor *t, const uint8_t *codes, size_t i)
{
    return (int)qi_value_at(t->type, codes, i);
}

float inspect_scale(const qat_qtensor *t, size_t i)
{
    if (!t->channel_scales)
        return t->scale;
    /* output channels: the first dimension of weights, the last of depthwise ones [1, ...] */
    size_t const count = qat_qtensor_count(t), channels = (size_t)t->n_channels;
    bool const first = t->dims[0] == t->n_channels;
    return t->channel_scales[first ? i / (count / channels) : i % channels];
}

bool inspect_has_scale(const qat_qtensor *t)
{
    return t->channel_scales || t->scale > 0;
}

bool inspect_range(const qat_qtensor *t, double range[2])
{
    bool const is_stored = t->range_min < 0 || t->range_max > 0;
    if (!qi_type_has_codes(t->type) || (!is_stored && !inspect_has_scale(t)))
        return false;
    int32_t const codes = (int32_t)1 << t->bits, lowest = t->type == QI_U8 ? 0 : -(codes / 2);
    range[0] = is_stored ? (double)t->range_min : (double)t->scale * (lowest - t->zero_point);
    range[1] =
        is_stored ? (double)t->range_max : (double)t->scale * (lowest + codes - 1 - t->zero_point);
    return true;
}

void inspect_range_text(const qat_qtensor *t, char text[64])
{
    double range[2];
    strcpy(text, "-");
    if (inspect_range(t, range))
        snprintf(text, 64, "%.6g..%.6g", range[0], range[1]);
}

void inspect_scale_text(const qat_qtensor *t, char text[32])
{
    strcpy(text, "-");
    if (inspect_has_scale(t))
        snprintf(text, 32, "%.9g", (double)t->scale);
}

const char *inspect_name(const char *name)
{
    return *name ? tool_shown(name) : "-";
}

const int32_t *inspect_multipliers(const qat_qgraph *g, const qat_qop *op, int *count,
                                   const int32_t **shifts)
{
    if (!qat_qop_accumulates(op))
        return NULL;
    const qat_qtensor *shift = &g->tensors[op->inputs[4]];
    *count = (int)qat_qtensor_count(shift);
    *shifts = shift->data;
    return g->tensors[op->inputs[3]].data;
}

const char *inspect_param_name(const char *op, int i)
{
    const qi_op *row = qi_op_named(op);
    const char *name = row && i < QI_OP_PARAMS ? row->params[i].name : NULL;
    return !name ? "" : strcmp(name, "mult") == 0 ? "M0" : name;
}
