/** The classes of pixels, from the codes of a segmentation's output. */
#include "qat/border.h"

#include <string.h>

bool qat_has_pixels(const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    if (!e->name || strcmp(e->name, QAT_PIXELS_EPILOGUE) != 0 || e->n_inputs != 1 ||
        e->n_params != 0 || qi_output_count(model) != 1 || e->inputs[0] != qi_output_at(model, 0))
        return false;
    const qi_tensor *t = qi_tensor_at(model, e->inputs[0]);
    return qi_type_has_codes(t->type) && t->rank == 4 && t->dims[0] == 1;
}

void qat_pixels_of(const qi_model *model, const void *codes, int32_t *classes)
{
    const qi_tensor *t = qi_tensor_at(model, qi_output_at(model, 0));
    size_t const k = (size_t)t->dims[3], pixels = (size_t)t->dims[1] * (size_t)t->dims[2];
    for (size_t i = 0; i < pixels; i++) {
        size_t best = 0;
        for (size_t c = 1; c < k; c++)
            if (qi_value_at(t->type, codes, i * k + c) > qi_value_at(t->type, codes, i * k + best))
                best = c;
        classes[i] = (int32_t)best;
    }
}
