/** The outputs of networks, whatever runs them, and the logits among the ends of a body. */
#include "task/task.h"

#include "autograd/ops/op.h"
#include "qat/border.h"
#include "recipe/recipe.h"

#include <string.h>

qat_output qat_output_of_exact(const qat_exact *exact, const qat_qgraph *graph, int output)
{
    const qat_qtensor *t = &graph->tensors[graph->outputs[output]];
    return (qat_output){.name = t->name,
                        .n = qat_qtensor_count(t),
                        .codes = qat_exact_tensor(exact, graph->outputs[output]),
                        .type = t->type,
                        .scale = t->scale,
                        .zero_point = t->zero_point};
}

qat_output qat_output_of_model(const qi_model *model, int output, const void *codes)
{
    const qi_tensor *t = qi_tensor_at(model, qi_output_at(model, output));
    qat_output o = {.name = t->name,
                    .n = qat_tensor_values(t),
                    .codes = codes,
                    .type = (qi_type)t->type,
                    .zero_point = t->zero_point};
    memcpy(&o.scale, &t->scale_bits, sizeof o.scale);
    return o;
}

/** Where value `at` of all lies. */
static const void *codes_from(const qat_output *o, size_t at)
{
    return (const uint8_t *)o->codes + at * qi_type_bytes(o->type);
}

const void *qat_output_codes(const qat_output *o, size_t i)
{
    return codes_from(o, i * o->n);
}

void qat_output_real(const qat_output *o, size_t i, float *real)
{
    if (!o->codes)
        memcpy(real, o->real + i * o->n, o->n * sizeof *real);
    for (size_t k = 0; o->codes && k < o->n; k++)
        real[k] =
            qat_sum_of_codes(o->type, o->scale, o->zero_point, codes_from(o, i * o->n + k), 1);
}

qat_status qat_task_logits(const qat_net_ends *net, qat_node **logits, qat_error *err)
{
    char text[64];
    int const classes = net->input->classes;
    *logits = net->last->op == &qat_op_softmax ? net->last->inputs[0] : net->last;
    const qat_shape *shape = &(*logits)->shape;
    if (shape->rank == 2 && shape->dims[1] == classes)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: the last layer, %s, gives %s, but %d %s need [1, %d]", net->recipe->source,
                    (*logits)->name, qat_shape_text(shape, text), classes,
                    qat_task_of(net->input)->units, classes);
}

int32_t qat_task_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
