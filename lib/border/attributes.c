/** The epilogue of a network with attributes and a value: turns codes into real numbers. */
#include "qat/border.h"

#include <string.h>

enum { LOW, WIDTH, PARAMS };

/** Is tensor i of the epilogue the model's output i, and a list of codes? */
static bool is_list(const qi_model *model, int i)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    return qi_output_at(model, i) == e->inputs[i] && qat_is_list(qi_tensor_at(model, e->inputs[i]));
}

static bool is_whole(const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    if (!e->name || strcmp(e->name, QAT_ATTRIBUTES_EPILOGUE) != 0 || e->n_params != PARAMS ||
        e->n_inputs > 2 || qi_output_count(model) != e->n_inputs)
        return false;
    for (int i = 0; i < (int)e->n_inputs; i++)
        if (!is_list(model, i))
            return false;
    return true;
}

static int values_of_output(const qi_model *model, int i)
{
    return (int)qat_tensor_values(qi_tensor_at(model, qi_output_at(model, i)));
}

bool qat_attributes_of_model(qat_attributes *attributes, const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    *attributes = (qat_attributes){0};
    if (!is_whole(model))
        return false;
    attributes->count = values_of_output(model, 0);
    attributes->outputs = e->n_inputs == 2 ? values_of_output(model, 1) : 0;
    memcpy(&attributes->low, &e->params[LOW], sizeof attributes->low);
    memcpy(&attributes->width, &e->params[WIDTH], sizeof attributes->width);
    return true;
}

float qat_attributes_value(const qat_attributes *attributes, float sum)
{
    return attributes->low + attributes->width * sum;
}

float qat_sum_of_codes(qi_type type, float scale, int32_t zero_point, const void *codes, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += qi_value_at(type, codes, i) - zero_point;
    return scale * (float)sum;
}
