/**
 * Calibration: runs an eval graph in float and measures the input of every observed fake_quant.
 *
 * All fake_quant nodes with observed ranges, and those of weights, are made transparent: after such
 * a node has run, its value is overwritten by its input. Nodes that share a range (concatenations,
 * pools) are measured together.
 */
#include "fakequant/ops.h"
#include "fakequant/range.h"
#include "qat/ptq.h"

#include <stdlib.h>
#include <string.h>

/** One range parameter, and what is known about the tensors that use it. */
typedef struct tensor_class {
    const qat_node *first; /* one of its fake_quant nodes; gives codes and layout */
    qat_node *range;
    qat_interval extents;
    qat_histogram *histogram; /* allocated when counting begins */
} tensor_class;

struct qat_calibrator {
    qat_graph *graph;
    int n_classes;
    tensor_class *classes;
    int *class_of; /* by node; -1: none */
    qat_histogram *histograms;
    bool counts; /* this run fills histograms; otherwise it finds extents */
};

static int class_with(qat_calibrator *c, const qat_node *node)
{
    for (int i = 0; i < c->n_classes; i++)
        if (c->classes[i].range == node->inputs[1])
            return i;
    c->classes[c->n_classes] = (tensor_class){
        .first = node, .range = node->inputs[1], .extents = qat_interval_of(NULL, 0)};
    return c->n_classes++;
}

qat_status qat_calibrator_create(qat_calibrator **calibrator, qat_graph *eval, qat_error *err)
{
    size_t const nodes = (size_t)qat_graph_nodes(eval);
    qat_calibrator *c = calloc(1, sizeof *c);
    *calibrator = c;
    if (c) {
        c->graph = eval;
        c->classes = calloc(nodes + 1, sizeof *c->classes);
        c->class_of = calloc(nodes + 1, sizeof *c->class_of);
    }
    for (size_t i = 0; c && c->classes && c->class_of && i < nodes; i++) {
        const qat_node *node = qat_graph_node(eval, (int)i);
        c->class_of[i] = qat_fake_quant_is_observed(node) ? class_with(c, node) : -1;
    }
    if (c && c->n_classes)
        c->histograms = calloc((size_t)c->n_classes, sizeof *c->histograms);
    if (c && c->classes && c->class_of && (c->histograms || !c->n_classes))
        return QAT_OK;
    qat_calibrator_free(c);
    *calibrator = NULL;
    return qat_out_of_memory(err, "calibration");
}

void qat_calibrator_free(qat_calibrator *calibrator)
{
    if (!calibrator)
        return;
    free(calibrator->classes);
    free(calibrator->class_of);
    free(calibrator->histograms);
    free(calibrator);
}

/* ------------------------------------------------------------------ running */

static void measure(const qat_calibrator *c, tensor_class *class_, const float *x, size_t n)
{
    if (c->counts)
        qat_histogram_add(class_->histogram, x, n);
    else
        class_->extents = qat_interval_join(class_->extents, qat_interval_of(x, n));
}

static void visit(void *context, qat_node *node)
{
    qat_calibrator *c = context;
    bool const observed = c->class_of[node->index] >= 0;
    if (!observed && node->op != &qat_op_fake_quant_weights)
        return;
    const float *x = node->inputs[0]->value;
    size_t const n = qat_shape_count(&node->shape);
    if (observed)
        measure(c, &c->classes[c->class_of[node->index]], x, n);
    memcpy(node->value, x, n * sizeof *x);
}

static void run(qat_calibrator *c, bool counts)
{
    qat_run const how = {.mode = QAT_MODE_EVAL};
    c->counts = counts;
    qat_graph_forward_visit(c->graph, &how, visit, c);
}

void qat_calibrator_extents(qat_calibrator *calibrator)
{
    run(calibrator, false);
}

static void begin_histograms(qat_calibrator *c)
{
    for (int i = 0; i < c->n_classes; i++) {
        tensor_class *class_ = &c->classes[i];
        if (class_->histogram)
            continue;
        class_->histogram = &c->histograms[i];
        qat_interval const e = class_->extents;
        qat_histogram_begin(class_->histogram, e.min <= e.max ? e.min : 0,
                            e.min <= e.max ? e.max : 0);
    }
}

void qat_calibrator_count(qat_calibrator *calibrator)
{
    begin_histograms(calibrator);
    run(calibrator, true);
}

/* ------------------------------------------------------------------ ranges */

/** An estimator may give a symmetric range, but no value may lie at its other end. */
static qat_interval within(qat_interval range, const qat_histogram *h)
{
    return (qat_interval){range.min > h->min ? range.min : h->min,
                          range.max < h->max ? range.max : h->max};
}

void qat_calibrator_commit(qat_calibrator *calibrator, const qat_estimator *estimator,
                           double parameter)
{
    begin_histograms(calibrator);
    for (int i = 0; i < calibrator->n_classes; i++) {
        const tensor_class *class_ = &calibrator->classes[i];
        int const bits = (int)class_->first->attrs[FQ_BITS];
        qat_code_grid grid = {.symmetric = bits == QAT_WIDE_BITS};
        qat_interval range;
        qat_code_range((qat_layout)class_->first->attrs[FQ_LAYOUT], bits, false, &grid.lo,
                       &grid.hi);
        estimator->estimate(class_->histogram, &grid, parameter, &range.min, &range.max);
        range = qat_interval_widen(grid.symmetric ? within(range, class_->histogram) : range);
        class_->range->value[RANGE_MIN] = range.min;
        class_->range->value[RANGE_MAX] = range.max;
        class_->range->value[RANGE_STEPS] = 1;
    }
}
