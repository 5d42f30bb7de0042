#include "run_attributes.h"

#include <stdio.h>
#include <string.h>

bool run_answers_attributes(const qi_model *model)
{
    qat_attributes attributes;
    return qat_attributes_of_model(&attributes, model);
}

/** The sum of values [from, from + n) of an output, as a real number. */
static float sum_at(const qi_model *model, int output, const void *codes, int from, int n)
{
    const qi_tensor *t = qi_tensor_at(model, qi_output_at(model, output));
    float scale;
    memcpy(&scale, &t->scale_bits, sizeof scale);
    return qat_sum_of_codes((qi_type)t->type, scale, t->zero_point, (const uint8_t *)codes + from,
                            (size_t)n);
}

static float value_of(const qat_attributes *a, const qi_model *model, const void *const *outputs)
{
    return qat_attributes_value(a, sum_at(model, 1, outputs[1], 0, a->outputs));
}

static const char *label_of(const qi_model *model, int attribute)
{
    return attribute < (int)qi_label_count(model) ? qi_label_at(model, attribute) : "";
}

static void print_json(const qat_attributes *a, const qi_model *model, const void *const *outputs,
                       const char *name)
{
    printf("{\"input\": ");
    tool_json_string(name);
    printf(", \"attributes\": [");
    for (int i = 0; i < a->count; i++) {
        printf("%s{\"attribute\": %d, \"label\": ", i ? ", " : "", i);
        tool_json_string(label_of(model, i));
        printf(", \"score\": %.9g}", (double)sum_at(model, 0, outputs[0], i, 1));
    }
    printf("]");
    if (a->outputs)
        printf(", \"value\": %.9g", (double)value_of(a, model, outputs));
    printf("}\n");
}

void run_attributes_print(const qi_model *model, const void *const *outputs, const char *name,
                          bool json)
{
    qat_attributes a;
    int found = 0;
    qat_attributes_of_model(&a, model);
    if (json) {
        print_json(&a, model, outputs, name);
        return;
    }
    printf("%s:", tool_shown(name));
    for (int i = 0; i < a.count; i++) {
        float const score = sum_at(model, 0, outputs[0], i, 1);
        if (score >= 0.5f)
            printf("%s %s %.2f", found++ ? "," : "", tool_shown(label_of(model, i)), (double)score);
    }
    if (a.outputs)
        printf("%s value %.1f", found ? ";" : "", (double)value_of(&a, model, outputs));
    printf("\n");
}
