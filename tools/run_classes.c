/**
 * Prints classes: the best first, each with the real number S (q - Z) of a classifier's code; or
 * the classes that the model itself chose.
 */
#include "run_classes.h"

#include <stdio.h>
#include <string.h>

static const qi_tensor *answer_of(const qi_model *model)
{
    return qi_tensor_at(model, qi_output_at(model, 0));
}

bool run_answers_classes(const qi_model *model)
{
    const qi_tensor *t = answer_of(model);
    return t->type <= QI_S8 && qat_tensor_values(t) == (size_t)t->dims[t->rank - 1];
}

bool run_answers_indices(const qi_model *model)
{
    const qi_tensor *t = answer_of(model);
    return t->type > QI_S8 && t->rank == 1;
}

/** A code as an unsigned number with the same order. */
static int ordered(const qi_tensor *t, const uint8_t *codes, size_t i)
{
    return t->type == QI_S8 ? codes[i] ^ 0x80 : codes[i];
}

static int code_at(const qi_tensor *t, const uint8_t *codes, size_t i)
{
    return t->type == QI_S8 ? (int)((const int8_t *)codes)[i] : (int)codes[i];
}

/** The real number that a code stands for: S (q - Z). */
static double real_at(const qi_tensor *t, const uint8_t *codes, size_t i)
{
    float scale;
    memcpy(&scale, &t->scale_bits, sizeof scale);
    return (double)scale * (code_at(t, codes, i) - t->zero_point);
}

/** The best class after the pair (code, class) `after`; -1: none. */
static int next_best(const qi_tensor *t, const uint8_t *codes, int after)
{
    int best = -1;
    for (int i = 0; i < (int)t->bytes; i++) {
        int const v = ordered(t, codes, (size_t)i);
        int const last = after < 0 ? 0 : ordered(t, codes, (size_t)after);
        bool const comes_later = after < 0 || v < last || (v == last && i > after);
        if (comes_later && (best < 0 || v > ordered(t, codes, (size_t)best)))
            best = i;
    }
    return best;
}

static const char *label_of(const qi_model *model, int class)
{
    return class < (int)qi_label_count(model) ? qi_label_at(model, class) : "";
}

/* ------------------------------------------------------------------ classes themselves */

/** Value i of an int32 or int64 output. A class fits int. */
static int index_at(const qi_model *model, const void *values, size_t i)
{
    return answer_of(model)->type == QI_S64 ? (int)((const int64_t *)values)[i]
                                            : (int)((const int32_t *)values)[i];
}

static void print_json_indices(const qi_model *model, const void *values, const char *name,
                               size_t count)
{
    printf("{\"input\": ");
    tool_json_string(name);
    printf(", \"classes\": [");
    for (size_t i = 0; i < count; i++) {
        int const class = index_at(model, values, i);
        printf("%s{\"class\": %d, \"label\": ", i ? ", " : "", class);
        tool_json_string(label_of(model, class));
        printf("}");
    }
    printf("]}\n");
}

void run_indices_print(const qi_model *model, const void *values, const char *name, bool json)
{
    size_t const count = qat_tensor_values(answer_of(model));
    if (json) {
        print_json_indices(model, values, name, count);
        return;
    }
    printf("%s:", tool_shown(name));
    for (size_t i = 0; i < count; i++) {
        int const class = index_at(model, values, i);
        printf("%s %d %s", i ? "," : "", class, tool_shown(label_of(model, class)));
    }
    printf("\n");
}

/* ------------------------------------------------------------------ scores of classes */

static void print_json_classes(const qi_model *model, const uint8_t *codes, const char *name,
                               int64_t top)
{
    const qi_tensor *t = answer_of(model);
    printf("{\"input\": ");
    tool_json_string(name);
    printf(", \"top\": [");
    int class = -1;
    for (int64_t k = 0; k < top && (class = next_best(t, codes, class)) >= 0; k++) {
        printf("%s{\"class\": %d, \"label\": ", k ? ", " : "", class);
        tool_json_string(label_of(model, class));
        printf(", \"value\": %.6g, \"code\": %d}", real_at(t, codes, (size_t) class),
               code_at(t, codes, (size_t) class));
    }
    printf("]}\n");
}

void run_classes_print(const qi_model *model, const void *codes, const char *name, int64_t top,
                       bool json)
{
    const qi_tensor *t = answer_of(model);
    int class = -1;
    if (json) {
        print_json_classes(model, codes, name, top);
        return;
    }
    printf("%s:", tool_shown(name));
    for (int64_t k = 0; k < top && (class = next_best(t, codes, class)) >= 0; k++)
        printf("%s %d %s (%.4g, code %d)", k ? "," : "", class, tool_shown(label_of(model, class)),
               real_at(t, codes, (size_t) class), code_at(t, codes, (size_t) class));
    printf("\n");
}
