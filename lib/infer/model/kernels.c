/**
 * All built-in kernels, and the functions that start a model with all of them. Nothing else in the
 * core names this table, so a program that calls qi_model_init_with does not link it.
 */
#include "infer/model/model.h"

#define POINTER(name) &qi_kernel_##name,
static const qi_kernel *const built_in[] = {QI_KERNELS(POINTER)};

const qi_kernel_list qi_built_in_kernels = {built_in, sizeof built_in / sizeof built_in[0]};

qi_status qi_model_init(qi_model **model, const void *qm, size_t qm_bytes,
                        const qi_kernel_list *custom, void *memory, size_t memory_bytes,
                        qi_error *err)
{
    qi_kernel_set const set = {&qi_built_in_kernels, custom};
    return qi_model_init_set(model, qm, qm_bytes, &set, memory, memory_bytes, err);
}
