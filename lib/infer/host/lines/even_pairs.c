#include "infer/host/lines/even_pairs.h"

#include "infer/kernels/add.h"
#include "infer/kernels/binary.h"

/** The zero_points, and the clamp at params[clamp_at]. */
static qk_pairs codes_of(const qi_model *model, const qi_node *node, int clamp_at)
{
    return (qk_pairs){.a = {.zero_point = qi_input(model, node, 0)->zero_point},
                      .b = {.zero_point = qi_input(model, node, 1)->zero_point},
                      .zero_point = qi_output(model, node)->zero_point,
                      .lo = node->params[clamp_at],
                      .hi = node->params[clamp_at + 1]};
}

qk_pairs qi_even_sum_of(const qi_model *model, const qi_node *node)
{
    const int32_t *params = node->params;
    qk_pairs p = codes_of(model, node, QI_ADD_CLAMP_LO);
    p.of_a = (qk_rescaling){.mult = params[QI_ADD_MULT_A], .shift = params[QI_ADD_SHIFT_A]};
    p.of_b = (qk_rescaling){.mult = params[QI_ADD_MULT_B], .shift = params[QI_ADD_SHIFT_B]};
    qk_add_even_prepare(&p);
    return p;
}

qk_pairs qi_even_product_of(const qi_model *model, const qi_node *node)
{
    qk_pairs p = codes_of(model, node, QI_MUL_CLAMP_LO);
    p.mult = node->params[QI_MUL_MULT];
    p.shift = node->params[QI_MUL_SHIFT];
    qk_mul_even_prepare(&p);
    return p;
}

static int32_t code_of(const qi_tensor *t, uint8_t byte)
{
    return t->type == QI_S8 ? (int8_t)byte : byte;
}

void qi_even_sums(const qi_model *model, const qi_node *node, const uint8_t *a, const uint8_t *b,
                  uint8_t *y, size_t n)
{
    const qi_tensor *of_a = qi_input(model, node, 0), *of_b = qi_input(model, node, 1);
    qk_pairs const p = qi_even_sum_of(model, node);
    for (size_t i = 0; i < n; i++)
        y[i] = (uint8_t)qk_add_even(&p, code_of(of_a, a[i]), code_of(of_b, b[i]));
}

void qi_even_products(const qi_model *model, const qi_node *node, const uint8_t *a,
                      const uint8_t *b, uint8_t *y, size_t n)
{
    const qi_tensor *of_a = qi_input(model, node, 0), *of_b = qi_input(model, node, 1);
    qk_pairs const p = qi_even_product_of(model, node);
    for (size_t i = 0; i < n; i++)
        y[i] = (uint8_t)qk_product_even(&p, code_of(of_a, a[i]) - of_a->zero_point,
                                        code_of(of_b, b[i]) - of_b->zero_point);
}
