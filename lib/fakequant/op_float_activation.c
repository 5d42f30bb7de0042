/**
 * float_activation: y = x. `activation_ranges = none` selects it: activations stay float and batch
 * norms are not folded. The rewrites insert no node for it. Such a network cannot become integers.
 */
#include "autograd/loops/vector.h"
#include "fakequant/schemes.h"

#include <string.h>

static qat_status same_shape(qat_node *node, qat_error *err)
{
    node->shape = node->inputs[0]->shape;
    return QAT_OK;
}

static void copy_forward(qat_node *node, const qat_run *run)
{
    memcpy(node->value, node->inputs[0]->value,
           qat_shape_count(&node->shape) * sizeof *node->value);
}

static void copy_backward(qat_node *node, const qat_run *run)
{
    qat_accumulate(node->inputs[0]->grad, node->grad, qat_shape_count(&node->shape));
}

static const char *no_integers(int bits)
{
    return "layers of float activations (activation_ranges = none)";
}

static const qat_quantizer none = {.name = "none", .no_integers = no_integers};
static const qat_quant none_quant = {.role = QAT_ROLE_QUANTIZER, .quantizer = &none};

const qat_op qat_op_float_activation = {
    .name = "float_activation",
    .meaning = "an activation that is not quantized",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = same_shape,
    .forward = copy_forward,
    .backward = copy_backward,
    .quant = &none_quant,
};
