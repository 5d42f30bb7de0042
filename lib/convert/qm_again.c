/** Writes an open model again in another form, and checks that it has the same integers. */
#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

/** A model, as what the writer takes. */
struct again {
    const qi_model *model;
    qat_qgraph *graph;
    bool owns_graph;
    qat_qm_metadata metadata;
    const char **labels;
    const void **answers; /* inputs, then outputs */
    const qi_kernel **kernels;
    qi_kernel_list list;
};

static void release(struct again *a)
{
    if (a->owns_graph)
        qat_qgraph_free(a->graph);
    free(a->labels);
    free(a->answers);
    free(a->kernels);
}

static qat_status allocate(struct again *a, qat_error *err)
{
    const qi_model *m = a->model;
    size_t const ports = (size_t)qi_input_count(m) + (size_t)qi_output_count(m);
    a->labels = calloc((size_t)qi_label_count(m) + 1, sizeof *a->labels);
    a->answers = calloc(ports + 1, sizeof *a->answers);
    a->kernels = calloc((size_t)qi_node_count(m) + 1, sizeof *a->kernels);
    return a->labels && a->answers && a->kernels ? QAT_OK : qat_out_of_memory(err, ".qm");
}

/* ------------------------------------------------------------------ what is kept */

static void keep_labels(struct again *a)
{
    a->metadata.n_labels = (int)qi_label_count(a->model);
    a->metadata.labels = a->labels;
    for (int32_t i = 0; i < qi_label_count(a->model); i++)
        a->labels[i] = qi_label_at(a->model, i);
}

static void keep_answers(struct again *a)
{
    int32_t const n_in = qi_input_count(a->model), n_out = qi_output_count(a->model);
    if (!qi_kat_steps(a->model))
        return;
    for (int32_t i = 0; i < n_in; i++)
        a->answers[i] = qi_kat_input(a->model, i);
    for (int32_t i = 0; i < n_out; i++)
        a->answers[n_in + i] = qi_kat_output(a->model, i);
    a->metadata.kat_inputs = a->answers;
    a->metadata.kat_outputs = a->answers + n_in;
    a->metadata.kat_steps = (int)qi_kat_steps(a->model);
}

/** Take everything from the model but the parts that the form leaves out. */
static qat_status take(struct again *a, const qat_qm_form *form, qat_error *err)
{
    qat_status st = allocate(a, err);
    a->owns_graph = !a->graph;
    if (!st && a->owns_graph)
        st = qat_qm_read(&a->graph, a->model, err);
    if (st)
        return st;
    a->graph->form = *form;
    a->metadata.preprocessing = *qi_model_preprocessing(a->model);
    memcpy(a->metadata.digest, qi_model_digest(a->model), sizeof a->metadata.digest);
    if (!(form->without & QAT_QM_DESCRIPTION))
        a->metadata.description = qi_model_description(a->model);
    if (!(form->without & QAT_QM_LABELS))
        keep_labels(a);
    if (!(form->without & QAT_QM_TEST))
        keep_answers(a);
    for (int32_t i = 0; i < qi_node_count(a->model); i++)
        a->kernels[a->list.count++] = qi_node_at(a->model, i)->kernel;
    a->list.kernels = a->kernels;
    return QAT_OK;
}

/* ------------------------------------------------------------------ are the integers the same? */

static bool are_equal_lists(int n, const int *a, int m, const int *b)
{
    return n == m && (n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0);
}

static bool are_equal_tensors(const qat_qtensor *a, const qat_qtensor *b)
{
    bool const same = a->type == b->type && a->bits == b->bits && a->rank == b->rank &&
                      a->zero_point == b->zero_point && a->border == b->border &&
                      a->is_state == b->is_state && a->next == b->next && !a->data == !b->data &&
                      memcmp(a->dims, b->dims, sizeof a->dims) == 0;
    return same && (!a->data || memcmp(a->data, b->data, qat_qtensor_bytes(a)) == 0);
}

static bool are_equal_texts(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool are_equal_ops(const qat_qop *a, const qat_qop *b)
{
    return are_equal_texts(a->op, b->op) && a->rounding == b->rounding &&
           a->fraction == b->fraction && a->max_accumulator == b->max_accumulator &&
           are_equal_lists(a->n_inputs, a->inputs, b->n_inputs, b->inputs) &&
           are_equal_lists(a->n_outputs, a->outputs, b->n_outputs, b->outputs) &&
           a->n_params == b->n_params &&
           memcmp(a->params, b->params, (size_t)a->n_params * sizeof *a->params) == 0;
}

static bool are_equal_graphs(const qat_qgraph *a, const qat_qgraph *b)
{
    bool same = a->n_tensors == b->n_tensors && a->n_ops == b->n_ops &&
                are_equal_lists(a->n_inputs, a->inputs, b->n_inputs, b->inputs) &&
                are_equal_lists(a->n_outputs, a->outputs, b->n_outputs, b->outputs);
    for (int i = 0; same && i < a->n_tensors; i++)
        same = are_equal_tensors(&a->tensors[i], &b->tensors[i]);
    for (int i = 0; same && i < a->n_ops; i++)
        same = are_equal_ops(&a->ops[i], &b->ops[i]);
    return same;
}

/** Open what was written as a device does, compare its integers, and let it compute its answers. */
static qat_status check(const struct again *a, const uint8_t *bytes, size_t count, qat_error *err)
{
    qi_host *device = NULL, *host = NULL;
    qat_qgraph *read = NULL;
    qat_status st = qat_engine_open(&device, bytes, count, &a->list, "scalar", err);
    if (!st && qi_kat_steps(qi_host_model(device)))
        st = qi_host_self_test(device, "the model that was written again", err);
    if (!st)
        st = qat_engine_open(&host, bytes, count, &a->list, NULL, err);
    if (!st)
        st = qat_qm_read(&read, qi_host_model(host), err);
    if (!st && !are_equal_graphs(a->graph, read))
        st = qat_fail(err, QAT_ERR_MISMATCH,
                      "the model that was written again has other integers than the one before");
    qat_qgraph_free(read);
    qi_host_close(host);
    qi_host_close(device);
    return st;
}

qat_status qat_qm_write_graph(const qi_host *host, qat_qgraph *graph, const qat_qm_form *form,
                              uint8_t **bytes, size_t *count, qat_error *err)
{
    struct again a = {.model = qi_host_model(host), .graph = graph};
    *bytes = NULL;
    *count = 0;
    qat_status st = take(&a, form, err);
    if (!st)
        st = qat_qm_write(a.graph, &a.metadata, bytes, count, err);
    if (!st)
        st = check(&a, *bytes, *count, err);
    release(&a);
    if (st) {
        free(*bytes);
        *bytes = NULL;
        *count = 0;
    }
    return st;
}

qat_status qat_qm_write_again(const qi_host *host, const qat_qm_form *form, uint8_t **bytes,
                              size_t *count, qat_error *err)
{
    return qat_qm_write_graph(host, NULL, form, bytes, count, err);
}
