#include "infer/host/lines/ask.h"

#include "infer/host/loops/fast.h"

void qi_ask(const qi_model *model, const qi_node *node, qi_tensor *tensors, const void *const *in,
            uint8_t *answers)
{
    int32_t indices[QI_FAST_MAX_INPUTS + 1];
    int32_t scratch[2 * QI_TABLE];
    qi_model small = *model;
    qi_node one = *node;
    for (int32_t i = 0; i <= node->n_inputs; i++)
        indices[i] = i;
    small.tensors = tensors;
    one.inputs = indices;
    one.outputs = indices + node->n_inputs;
    void *out[] = {answers};
    qi_call const call = {&small, &one, in, out, scratch};
    one.kernel->run(&call);
}

/** Make a tensor of codes one of rows x columns. */
static void reshape(qi_tensor *t, int32_t rows, int32_t columns)
{
    t->rank = 2;
    for (int d = 0; d < QI_MAX_RANK; d++)
        t->dims[d] = d == 0 ? rows : d == 1 ? columns : 1;
    t->bytes = (size_t)rows * (size_t)columns;
}

void qi_ask_bytes(const qi_model *model, const qi_node *node, const void *const *in,
                  uint8_t answers[QI_TABLE])
{
    qi_tensor tensors[QI_FAST_MAX_INPUTS + 1];
    for (int32_t i = 0; i <= node->n_inputs; i++) {
        tensors[i] = i < node->n_inputs ? *qi_input(model, node, i) : *qi_output(model, node);
        if (qi_count(&tensors[i]) > 1)
            reshape(&tensors[i], 1, QI_TABLE);
    }
    qi_ask(model, node, tensors, in, answers);
}

void qi_ask_pairs(const qi_model *model, const qi_node *node, int row, int first,
                  uint8_t answers[QI_TABLE][QI_CHUNK])
{
    uint8_t x[QI_TABLE], codes[QI_CHUNK];
    qi_tensor tensors[] = {*qi_input(model, node, 0), *qi_input(model, node, 1),
                           *qi_output(model, node)};
    uint8_t const flip = qi_codes_of(&tensors[1 - row]).flip;
    for (int u = 0; u < QI_TABLE; u++)
        x[u] = (uint8_t)u ^ flip;
    for (int i = 0; i < QI_CHUNK; i++)
        codes[i] = (uint8_t)(first + i);
    reshape(&tensors[row], 1, QI_CHUNK);
    reshape(&tensors[1 - row], QI_TABLE, 1);
    reshape(&tensors[2], QI_TABLE, QI_CHUNK);
    const void *const in[] = {row ? (const void *)x : codes, row ? (const void *)codes : x};
    qi_ask(model, node, tensors, in, answers[0]);
}
