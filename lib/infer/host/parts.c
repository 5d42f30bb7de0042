#include "infer/host/parts.h"

const qi_code *qi_code_of(const qi_kernel *kernel)
{
    static const struct {
        const qi_kernel *kernel;
        const qi_code *code;
    } rows[] = {
#define ROW(name) {&qi_kernel_##name, &qi_code_##name},
        QI_KERNELS(ROW)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kernel == kernel)
            return rows[i].code;
    return NULL;
}

static const struct qi_parts parts = {
    .isa_best = qi_isa_best,
    .fast_for = qi_fast_for,
    .sums_make = qi_sums_make,
    .sums_free = qi_sums_free,
    .sums_set = qi_sums_set,
    .sums_tiles = qi_sums_tiles,
    .sums_scratch = qi_sums_scratch,
    .sums_run = qi_sums_run,
    .pool_run = qi_pool_run,
    .pool_threads = qi_pool_threads,
    .code_of = qi_code_of,
    .plan_lifetimes = qi_plan_lifetimes,
    .plan_arena = qi_plan_arena,
};

const struct qi_parts *qi_host_parts(void)
{
    return &parts;
}
