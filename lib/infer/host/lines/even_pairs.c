#include "infer/host/lines/even_pairs.h"

#include "infer/kernels/add.h"
#include "infer/kernels/binary.h"

qk_pairs qi_even_pairs_of(const qi_model *model, const qi_node *node)
{
    const int32_t *params = node->params;
    int const is_mul = node->kernel == &qi_kernel_mul;
    int const clamp = is_mul ? QI_MUL_CLAMP_LO : QI_ADD_CLAMP_LO;
    qk_pairs p = {.a = {.zero_point = qi_input(model, node, 0)->zero_point},
                  .b = {.zero_point = qi_input(model, node, 1)->zero_point},
                  .zero_point = qi_output(model, node)->zero_point,
                  .lo = params[clamp],
                  .hi = params[clamp + 1]};
    if (is_mul) {
        p.mult = params[QI_MUL_MULT];
        p.shift = params[QI_MUL_SHIFT];
        qk_mul_even_prepare(&p);
        return p;
    }
    p.of_a = (qk_rescaling){.mult = params[QI_ADD_MULT_A], .shift = params[QI_ADD_SHIFT_A]};
    p.of_b = (qk_rescaling){.mult = params[QI_ADD_MULT_B], .shift = params[QI_ADD_SHIFT_B]};
    qk_add_even_prepare(&p);
    return p;
}

static int32_t code_of(const qi_tensor *t, uint8_t byte)
{
    return t->type == QI_S8 ? (int8_t)byte : byte;
}

void qi_even_pairs_run(const qi_model *model, const qi_node *node, const uint8_t *a,
                       const uint8_t *b, uint8_t *y, size_t n)
{
    const qi_tensor *of_a = qi_input(model, node, 0), *of_b = qi_input(model, node, 1);
    qk_pairs const p = qi_even_pairs_of(model, node);
    int const is_mul = node->kernel == &qi_kernel_mul;
    for (size_t i = 0; i < n; i++) {
        int32_t const u = code_of(of_a, a[i]), v = code_of(of_b, b[i]);
        y[i] = (uint8_t)(is_mul ? qk_product_even(&p, u - of_a->zero_point, v - of_b->zero_point)
                                : qk_add_even(&p, u, v));
    }
}
