#include "infer/host/parts.h"

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
};

const struct qi_parts *qi_host_parts(void)
{
    return &parts;
}
