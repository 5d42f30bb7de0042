/**
 * Finds what a device needs to run a network before it is trained. Memory depends only on shapes,
 * so the network is exported with random parameters, and with ranges that follow from the range of
 * the input.
 */
#include "deploy/device.h"

#include "deploy/integer_model.h"
#include "fakequant/weights.h"
#include "recipe/recipe.h"
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

/** Set ranges from one sample with all values from the input's least to its largest. */
static qat_status calibrate(qat_graph *eval, const qat_input_info *input, qat_error *err)
{
    qat_calibrator *calibrator;
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        qat_node *node = qat_graph_node(eval, i);
        size_t const n = qat_node_is_input(node) ? qat_shape_count(&node->shape) : 0;
        for (size_t k = 0; k < n; k++)
            node->value[k] = input->min + (input->max - input->min) * ((float)k / (float)n);
    }
    qat_status const st = qat_calibrator_create(&calibrator, eval, err);
    if (st)
        return st;
    qat_calibrator_extents(calibrator);
    qat_calibrator_count(calibrator);
    qat_calibrator_commit(calibrator, qat_estimator_find("minmax"), 0);
    qat_calibrator_free(calibrator);
    return QAT_OK;
}

/** Do the weights by this quantizer get their codes, or their range, from updates? */
static bool is_updated(const qat_node *node)
{
    return qat_node_quantizes(node, true) && node->op->update &&
           (qat_node_quantizer(node)->own_values || qat_node_quantizer(node)->all_codes);
}

/** The float value of a weight such that its quantizer reads this one; batch norm may be a factor.
 */
static void set_weight(const qat_node *quantizer, size_t at, float value)
{
    const qat_node *w = quantizer->inputs[0];
    float const read = w->value[at];
    while (!w->is_param && w->n_inputs)
        w = w->inputs[0];
    w->value[at] = read < 0 || read > 0 ? value * (w->value[at] / read) : value;
}

/** Let all codes occur: random weights do not reach the lowest one of 2 bits, trained ones do. */
static void spread_weights(const qat_node *quantizer)
{
    qat_weight_view const v = qat_weight_view_of(quantizer);
    qat_qparams const p = qat_weight_qparams(quantizer, 0);
    for (int i = 0; i < v.outer * v.inner && p.lo + i <= p.hi; i++)
        set_weight(quantizer, qat_weight_run(&v, i / v.inner, 0) + (size_t)(i % v.inner),
                   p.scale * (float)(p.lo + i - p.zero_point));
}

/** Give all these weights their codes. One update does, because stages begin at step 0. */
static void update_weights(qat_graph *eval)
{
    qat_run const run = {.mode = QAT_MODE_TRAIN};
    bool computed = false;
    for (int i = 0; i < qat_graph_nodes(eval); i++) {
        qat_node *node = qat_graph_node(eval, i);
        if (!is_updated(node))
            continue;
        if (!computed)
            qat_graph_forward(eval, &(qat_run){.mode = QAT_MODE_EVAL});
        computed = true;
        node->op->update(node, &run);
        if (qat_node_quantizer(node)->all_codes)
            spread_weights(node);
    }
}

/** Make an eval graph for one sample, with some parameters and ranges. */
static qat_status make_eval(qat_graph **eval, const qat_graph *network,
                            const qat_quant_options *options, const qat_input_info *input,
                            qat_error *err)
{
    qat_status st = qat_create_eval_graph(eval, network, options, err);
    if (!st)
        st = qat_graph_plan(*eval, 1, QAT_PLAN_KEEP, err);
    if (!st) {
        qat_graph_init_params(*eval, 0);
        update_weights(*eval);
        if (qat_worst_case_ranges(*eval, NULL)) /* a user's op: find its range by running it */
            st = calibrate(*eval, input, err);
    }
    return st;
}

/** Add the epilogue if the network has one. */
static qat_status finish(qat_qgraph *graph, const qat_graph *network, const qat_recipe *recipe,
                         const qat_input_info *input, qat_error *err)
{
    qat_input_info opened = *input;
    qat_status st = qat_task_open(&opened, network, recipe, err);
    if (!st)
        st = qat_finish_network(graph, &opened, err);
    qat_task_close(&opened);
    return st;
}

/** Arrays of zeros in the place of the inputs and outputs of a known-answer test. */
typedef struct no_answers {
    const void **inputs, **outputs;
    void *zeros;
} no_answers;

static size_t largest(const qat_qgraph *graph, const int *tensors, int n, size_t most)
{
    for (int i = 0; i < n; i++) {
        size_t const bytes = qat_qtensor_bytes(&graph->tensors[tensors[i]]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool make_no_answers(no_answers *a, const qat_qgraph *graph)
{
    size_t const most = largest(graph, graph->outputs, graph->n_outputs,
                                largest(graph, graph->inputs, graph->n_inputs, 1));
    *a = (no_answers){.inputs = calloc((size_t)graph->n_inputs + 1, sizeof *a->inputs),
                      .outputs = calloc((size_t)graph->n_outputs + 1, sizeof *a->outputs),
                      .zeros = calloc(most, 1)};
    if (!a->inputs || !a->outputs || !a->zeros)
        return false;
    for (int i = 0; i < graph->n_inputs; i++)
        a->inputs[i] = a->zeros;
    for (int i = 0; i < graph->n_outputs; i++)
        a->outputs[i] = a->zeros;
    return true;
}

static void free_no_answers(no_answers *a)
{
    free(a->inputs);
    free(a->outputs);
    free(a->zeros);
}

/** Write the network as a file and open it, as an engine does. qm_bytes: of the file, or NULL. */
static qat_status open_file(qi_host **host, int64_t *qm_bytes, const qat_qgraph *graph,
                            const qat_qm_metadata *metadata, const qi_kernel_list *kernels,
                            qat_error *err)
{
    uint8_t *qm = NULL;
    size_t bytes = 0;
    qi_host_options const options = {.custom = kernels, .isa = "scalar", .limits = QI_NO_LIMITS};
    qat_status st = qat_qm_write(graph, metadata, &qm, &bytes, err);
    if (!st)
        st = qi_host_open_bytes(host, qm, bytes, "the network", &options, err);
    if (!st && qm_bytes)
        *qm_bytes = (int64_t)bytes;
    free(qm);
    return st;
}

/**
 * Have weights by this quantizer codes by a rule of its own, which it finds without training, or
 * all codes?
 */
static bool is_scheme(const qat_registry *registry, const char *weight_ranges)
{
    const qat_op *op = qat_find_quantizer(registry, weight_ranges, true);
    return op && (op->quant->quantizer->own_values || op->quant->quantizer->all_codes);
}

/** Observed ranges, but weights keep their scheme, whose stages begin at step 0. */
static qat_quant_options observed_with_schemes(const qat_registry *registry,
                                               const qat_quant_options *options)
{
    qat_quant_options o = qat_quant_observed(options);
    memset(o.inq_stages, 0, sizeof o.inq_stages);
    if (is_scheme(registry, options->weight_ranges))
        strcpy(o.weight_ranges, options->weight_ranges);
    for (int i = 0; i < o.n_layers; i++) {
        const char *ranges = options->layers[i].weight_ranges;
        if (*ranges)
            strcpy(o.layers[i].weight_ranges, is_scheme(registry, ranges) ? ranges : "ema");
    }
    return o;
}

/** schemes: do weights keep theirs? Otherwise they have the bits that are asked for. */
static qat_status freeze(qat_qgraph **graph, const qat_recipe *recipe, const qat_graph *network,
                         const qat_input_info *input, bool schemes, qat_error *err)
{
    qat_quant_options options;
    qat_graph *eval = NULL;
    qat_status st =
        qat_recipe_quant_options(&options, recipe, qat_graph_registry(network), input, 0, 0, err);
    if (!st)
        st = qat_check_integers(network, &options, err);
    if (!st) {
        options = schemes ? observed_with_schemes(qat_graph_registry(network), &options)
                          : qat_quant_observed(&options);
        st = make_eval(&eval, network, &options, input, err);
    }
    if (!st)
        st = qat_freeze(graph, eval, (qat_profile)recipe->quant.profile, NULL, err);
    if (!st && input->type != QAT_SAMPLE_F32)
        st = qat_qgraph_add_input_table(*graph, input->channels, input->mean, input->std, err);
    if (!st)
        st = finish(*graph, network, recipe, input, err);
    qat_graph_free(eval);
    return st;
}

/** Open the network as an engine does, without a name, labels, answers. */
static qat_status open_plain(qi_host **host, int64_t *qm_bytes, const qat_recipe *recipe,
                             const qat_plugins *plugins, const qat_graph *network,
                             const qat_input_info *input, bool schemes, qat_error *err)
{
    qat_qm_metadata const metadata = {.description = ""};
    qat_qgraph *graph = NULL;
    *host = NULL;
    qat_status st = freeze(&graph, recipe, network, input, schemes, err);
    if (!st)
        st = open_file(host, qm_bytes, graph, &metadata, qat_plugins_kernels(plugins), err);
    qat_qgraph_free(graph);
    return st;
}

qat_status qat_device_needs_of(qat_device_needs *needs, const qat_recipe *recipe,
                               const qat_plugins *plugins, const qat_graph *network,
                               const qat_input_info *input, qat_error *err)
{
    qi_host *host;
    *needs = (qat_device_needs){0};
    qat_status const st = open_plain(&host, NULL, recipe, plugins, network, input, false, err);
    if (!st) {
        qi_sizes const sizes = qi_host_sizes(host);
        *needs = (qat_device_needs){(int64_t)sizes.arena, (int64_t)sizes.model};
    }
    qi_host_close(host);
    return st;
}

qat_status qat_device_qm_bytes_of(int64_t *qm_bytes, const qat_recipe *recipe,
                                  const qat_plugins *plugins, const qat_graph *network,
                                  const qat_input_info *input, qat_error *err)
{
    qi_host *host;
    *qm_bytes = 0;
    qat_status const st = open_plain(&host, qm_bytes, recipe, plugins, network, input, true, err);
    qi_host_close(host);
    return st;
}

qat_status qat_device_c_sizes_of(qat_c_sizes *sizes, const qat_recipe *recipe,
                                 const qat_plugins *plugins, const qat_graph *network,
                                 const qat_input_info *input, qat_error *err)
{
    qi_host *host;
    *sizes = (qat_c_sizes){0};
    qat_status st = open_plain(&host, NULL, recipe, plugins, network, input, false, err);
    if (!st)
        st = qat_c_measure(host, NULL, sizes, err);
    qi_host_close(host);
    return st;
}

qat_status qat_device_fit_of(qat_ram_plan *plan, const qat_recipe *recipe,
                             const qat_plugins *plugins, const qat_graph *network,
                             const qat_input_info *input, int64_t ram, qat_error *err)
{
    qi_host *host;
    size_t const limit = ram ? (size_t)ram : SIZE_MAX;
    *plan = (qat_ram_plan){0};
    qat_status st = open_plain(&host, NULL, recipe, plugins, network, input, false, err);
    if (!st) {
        st = qat_fit_ram(NULL, host, limit, plan, err);
        if (st == QAT_ERR_LIMIT && plan->ram > limit)
            st = QAT_OK;
    }
    qi_host_close(host);
    return st;
}

qat_c_preprocessing qat_device_preprocessing_of(const qat_input_info *input)
{
    qi_preprocessing const preprocessing = qat_preprocessing_of(input);
    return qat_c_preprocessing_of(&preprocessing);
}

qat_status qat_device_file_of(int64_t *qm_bytes, const qat_recipe *recipe,
                              const qat_plugins *plugins, const qat_graph *network,
                              const qat_input_info *input, const char *const *labels, int n_labels,
                              qat_error *err)
{
    qat_qm_metadata metadata = {.description = *recipe->model.name ? recipe->model.name
                                                                   : "trained by qat-train",
                                .labels = labels,
                                .n_labels = n_labels,
                                .preprocessing = qat_preprocessing_of(input)};
    qat_qgraph *graph = NULL;
    no_answers answers = {0};
    qi_host *host = NULL;
    *qm_bytes = 0;
    qat_status st = freeze(&graph, recipe, network, input, false, err);
    if (!st && !make_no_answers(&answers, graph))
        st = qat_out_of_memory(err, "costs");
    metadata.kat_inputs = answers.inputs;
    metadata.kat_outputs = answers.outputs;
    if (!st)
        st = open_file(&host, qm_bytes, graph, &metadata, qat_plugins_kernels(plugins), err);
    qi_host_close(host);
    free_no_answers(&answers);
    qat_qgraph_free(graph);
    return st;
}
