#include "common/toy_ops.h"
#include "autograd/graph/registry.h"

#include <check.h>

static size_t count_of(const qat_node *node)
{
    return qat_shape_count(&node->shape);
}

static qat_status same_shape(qat_node *node, qat_error *err)
{
    char a[64], b[64];
    for (int i = 1; i < node->n_data; i++)
        if (!qat_shape_equal(&node->inputs[0]->shape, &node->inputs[i]->shape))
            return qat_fail(err, QAT_ERR_SHAPE, "inputs of shape %s and %s do not fit",
                            qat_shape_text(&node->inputs[0]->shape, a),
                            qat_shape_text(&node->inputs[i]->shape, b));
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

/* square: its scratch holds the derivative until backward */

static qat_status square_shape(qat_node *node, qat_error *err)
{
    qat_status const st = same_shape(node, err);
    node->scratch_bytes = count_of(node) * sizeof(qat_real);
    return st;
}

static void square_forward(qat_node *node, const qat_run *run)
{
    const qat_real *x = node->inputs[0]->value;
    qat_real *slope = node->scratch;
    for (size_t i = 0; i < count_of(node); i++) {
        node->value[i] = x[i] * x[i];
        slope[i] = 2 * x[i];
    }
}

static void square_backward(qat_node *node, const qat_run *run)
{
    const qat_real *slope = node->scratch;
    for (size_t i = 0; i < count_of(node); i++)
        node->inputs[0]->grad[i] += slope[i] * node->grad[i];
}

static const qat_op op_square = {.name = "square",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .shape = square_shape,
                                 .forward = square_forward,
                                 .backward = square_backward};

/* plus */

static void plus_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node); i++)
        node->value[i] = node->inputs[0]->value[i] + node->inputs[1]->value[i];
}

static void plus_backward(qat_node *node, const qat_run *run)
{
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; node->inputs[k]->grad && i < count_of(node); i++)
            node->inputs[k]->grad[i] += node->grad[i];
}

static const qat_op op_plus = {.name = "plus",
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .shape = same_shape,
                               .forward = plus_forward,
                               .backward = plus_backward};

/* linear */

enum { LINEAR_UNITS, LINEAR_GAIN, LINEAR_MODE };

static const qat_attr_def linear_attrs[] = {
    {"units", QAT_ATTR_INT, 0, 1, 1000, NULL, "outputs"},
    {"gain", QAT_ATTR_REAL, 1, -10, 10, NULL, "factor"},
    {"mode", QAT_ATTR_CHOICE, 0, 0, 0, "plain|doubled", "twice the gain"},
    {0}};

static int linear_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    int const units = (int)node->attrs[LINEAR_UNITS], in = node->inputs[0]->shape.dims[1];
    if (node->inputs[0]->shape.rank != 2)
        return qat_fail(err, QAT_ERR_SHAPE, "rank %d, needs 2", node->inputs[0]->shape.rank) ? -1
                                                                                             : 0;
    defs[0] = (qat_param_def){.name = "weights",
                              .shape = QAT_SHAPE(units, in),
                              .init = QAT_INIT_HE,
                              .fan_in = in,
                              .fan_out = units,
                              .trainable = true,
                              .decay = true};
    defs[1] = (qat_param_def){
        .name = "offset", .shape = QAT_SHAPE(units), .scale = 0.125, .trainable = true};
    return 2;
}

static qat_status linear_shape(qat_node *node, qat_error *err)
{
    node->shape = QAT_SHAPE(node->inputs[0]->shape.dims[0], (int)node->attrs[LINEAR_UNITS]);
    return QAT_OK;
}

static qat_real linear_gain(const qat_node *node)
{
    return (qat_real)(node->attrs[LINEAR_GAIN] * (1 + node->attrs[LINEAR_MODE]));
}

static void linear_forward(qat_node *node, const qat_run *run)
{
    int const in = node->inputs[0]->shape.dims[1], units = node->shape.dims[1];
    for (int n = 0; n < node->shape.dims[0]; n++)
        for (int u = 0; u < units; u++) {
            qat_real sum = node->inputs[2]->value[u];
            for (int c = 0; c < in; c++)
                sum += node->inputs[1]->value[u * in + c] * node->inputs[0]->value[n * in + c];
            node->value[n * units + u] = linear_gain(node) * sum;
        }
}

static void linear_backward(qat_node *node, const qat_run *run)
{
    qat_node *x = node->inputs[0], *w = node->inputs[1], *b = node->inputs[2];
    int const in = x->shape.dims[1], units = node->shape.dims[1];
    for (int n = 0; n < node->shape.dims[0]; n++)
        for (int u = 0; u < units; u++) {
            qat_real const g = linear_gain(node) * node->grad[n * units + u];
            if (b->grad)
                b->grad[u] += g;
            for (int c = 0; c < in; c++) {
                if (w->grad)
                    w->grad[u * in + c] += g * x->value[n * in + c];
                if (x->grad)
                    x->grad[n * in + c] += g * w->value[u * in + c];
            }
        }
}

static const qat_op op_linear = {.name = "linear",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .attrs = linear_attrs,
                                 .params = linear_params,
                                 .shape = linear_shape,
                                 .forward = linear_forward,
                                 .backward = linear_backward};

/* total */

static qat_status total_shape(qat_node *node, qat_error *err)
{
    node->shape = QAT_SHAPE(1);
    return QAT_OK;
}

static void total_forward(qat_node *node, const qat_run *run)
{
    node->value[0] = 0;
    for (size_t i = 0; i < count_of(node->inputs[0]); i++)
        node->value[0] += node->inputs[0]->value[i];
}

static void total_backward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node->inputs[0]); i++)
        node->inputs[0]->grad[i] += node->grad[0];
}

static const qat_op op_total = {.name = "total",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .shape = total_shape,
                                .forward = total_forward,
                                .backward = total_backward};

/* stop */

static void stop_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node); i++)
        node->value[i] = node->inputs[0]->value[i];
}

static const qat_op op_stop = {
    .name = "stop", .min_inputs = 1, .max_inputs = 1, .shape = same_shape, .forward = stop_forward};

/* centre: its scratch holds the batch's mean until update */

static int centre_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    defs[0] = (qat_param_def){.name = "mean", .shape = QAT_SHAPE(1)};
    return 1;
}

static qat_status centre_shape(qat_node *node, qat_error *err)
{
    node->scratch_bytes = sizeof(qat_real);
    return same_shape(node, err);
}

static void centre_forward(qat_node *node, const qat_run *run)
{
    qat_real *mean = node->scratch;
    *mean = 0;
    for (size_t i = 0; i < count_of(node); i++) {
        *mean += node->inputs[0]->value[i] / (qat_real)count_of(node);
        node->value[i] = node->inputs[0]->value[i] - node->inputs[1]->value[0];
    }
}

static void centre_backward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node); i++)
        node->inputs[0]->grad[i] += node->grad[i];
}

static void centre_update(qat_node *node, const qat_run *run)
{
    const qat_real *mean = node->scratch;
    node->inputs[1]->value[0] = *mean;
}

static const qat_op op_centre = {.name = "centre",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .params = centre_params,
                                 .shape = centre_shape,
                                 .forward = centre_forward,
                                 .backward = centre_backward,
                                 .update = centre_update};

/* join */

static int join_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    defs[0] =
        (qat_param_def){.name = "gain", .shape = QAT_SHAPE(1), .scale = 0.5, .trainable = true};
    return 1;
}

static void join_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node); i++) {
        node->value[i] = 0;
        for (int k = 0; k < node->n_data; k++)
            node->value[i] += node->inputs[node->n_data]->value[0] * node->inputs[k]->value[i];
    }
}

static void join_backward(qat_node *node, const qat_run *run)
{
    qat_node *gain = node->inputs[node->n_data];
    for (int k = 0; k < node->n_data; k++)
        for (size_t i = 0; i < count_of(node); i++) {
            gain->grad[0] += node->inputs[k]->value[i] * node->grad[i];
            if (node->inputs[k]->grad)
                node->inputs[k]->grad[i] += gain->value[0] * node->grad[i];
        }
}

static const qat_op op_join = {.name = "join",
                               .min_inputs = 1,
                               .max_inputs = -1,
                               .params = join_params,
                               .shape = same_shape,
                               .forward = join_forward,
                               .backward = join_backward};

/* gate */

static bool gate_reads(const qat_node *node, int input, const qat_run *run)
{
    return input == 0 || run->step >= 2;
}

static void gate_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node); i++)
        node->value[i] =
            node->inputs[0]->value[i] + (gate_reads(node, 1, run) ? node->inputs[1]->value[i] : 0);
}

static void gate_backward(qat_node *node, const qat_run *run)
{
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; node->inputs[k]->grad && gate_reads(node, k, run) && i < count_of(node);
             i++)
            node->inputs[k]->grad[i] += node->grad[i];
}

static const qat_op op_gate = {.name = "gate",
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .shape = same_shape,
                               .forward = gate_forward,
                               .backward = gate_backward,
                               .reads = gate_reads};

/* ops that break rules */

static void lying_forward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node); i++)
        node->value[i] = 2 * node->inputs[0]->value[i];
}

static void lying_backward(qat_node *node, const qat_run *run)
{
    for (size_t i = 0; i < count_of(node); i++)
        node->inputs[0]->grad[i] += (qat_real)2.5 * node->grad[i];
}

static const qat_op op_lying = {.name = "lying",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .shape = same_shape,
                                .forward = lying_forward,
                                .backward = lying_backward};

static qat_status hoarder_shape(qat_node *node, qat_error *err)
{
    node->scratch_bytes = 1000 / (size_t)node->inputs[0]->shape.dims[0];
    return same_shape(node, err);
}

static const qat_op op_hoarder = {.name = "hoarder",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .shape = hoarder_shape,
                                  .forward = stop_forward};

static int batch_bound_params(const qat_node *node, qat_param_def *defs, qat_error *err)
{
    defs[0] = (qat_param_def){.name = "each", .shape = QAT_SHAPE(node->inputs[0]->shape.dims[0])};
    return 1;
}

static const qat_op op_batch_bound = {.name = "batch_bound",
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .params = batch_bound_params,
                                      .shape = same_shape,
                                      .forward = stop_forward};

qat_registry *toy_registry(void)
{
    static const qat_op *const ops[] = {&op_square, &op_plus,    &op_linear,     &op_total,
                                        &op_stop,   &op_centre,  &op_join,       &op_lying,
                                        &op_gate,   &op_hoarder, &op_batch_bound};
    qat_registry *registry;
    qat_error err;
    ck_assert_int_eq(qat_registry_create_empty(&registry, &err), QAT_OK);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        ck_assert_msg(qat_registry_add(registry, ops[i], &err) == QAT_OK, "%s", err.message);
    return registry;
}

void toy_fill(qat_node *node, unsigned seed)
{
    unsigned state = 12345u + 977u * seed;
    for (size_t i = 0; i < count_of(node); i++) {
        state = state * 1664525u + 1013904223u;
        node->value[i] = (qat_real)((double)(state >> 8) / (1 << 23) - 1);
    }
}
