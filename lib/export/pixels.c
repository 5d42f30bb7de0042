#include "export/pixels.h"

#include "infer/model/model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { PIXELS = 256, MEANS = 4 };

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int32_t qat_pixels_table(const qi_model *model)
{
    int32_t const pixels = qi_input_at(model, 0);
    int32_t found = -1, readers = 0;
    int32_t const kind = qi_model_preprocessing(model)->kind;
    if (kind != 1 && kind != 3)
        return -1;
    for (int32_t i = 0; i < qi_node_count(model); i++) {
        const qi_node *n = qi_node_at(model, i);
        for (int32_t k = 0; k < n->n_inputs; k++)
            readers += n->inputs[k] == pixels;
        if (n->inputs[0] == pixels && !strcmp(n->kernel->name, "table"))
            found = i;
    }
    for (int32_t i = 0; i < qi_output_count(model); i++)
        readers += qi_output_at(model, i) == pixels;
    return readers == 1 ? found : -1;
}

int qat_pixels_otherwise(const qi_model *model, int32_t table, float (*round)(float), int *pixels)
{
    const qi_preprocessing *p = qi_model_preprocessing(model);
    const qi_node *node = qi_node_at(model, table);
    const qi_tensor *codes = qi_tensor_at(model, node->inputs[1]);
    const qi_tensor *y = qi_tensor_at(model, node->outputs[0]);
    bool const is_signed = y->type != QI_U8;
    float const n = (float)(1 << (y->bits - is_signed)), lo = is_signed ? -n : 0;
    int others = 0;
    *pixels = PIXELS * (codes->rank == 2 ? codes->dims[0] : 1);
    for (int i = 0; i < *pixels; i++) {
        int const c = i / PIXELS % MEANS;
        float const real =
            ((float)(i % PIXELS) - float_of(p->mean_bits[c])) / float_of(p->std_bits[c]);
        float const code = round(real / float_of(y->scale_bits)) + (float)y->zero_point;
        others += fminf(fmaxf(code, lo), n - 1) !=
                  (float)qi_value_at(codes->type, codes->data, (size_t)i);
    }
    return others;
}
