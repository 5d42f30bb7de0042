/**
 * What libqat uses of the engine beside its public functions (qi_host_parts). libqatinfer exports
 * public names only; libqat reaches these through one table instead.
 */
#ifndef QI_HOST_PARTS_H
#define QI_HOST_PARTS_H

#include "infer/host/loops/fast.h"
#include "infer/host/pool.h"
#include "infer/host/sums.h"
#include "infer/model/code.h"

/** The code of a built-in kernel, or NULL. */
const qi_code *qi_code_of(const qi_kernel *kernel);

struct qi_parts {
    const qi_isa *(*isa_best)(void);
    const qi_fast *(*fast_for)(const qi_isa *isa, const qi_model *model, const qi_node *node);
    qi_sums *(*sums_make)(const qi_window *window, int32_t groups, const qi_type types[2]);
    void (*sums_free)(qi_sums *s);
    qi_status (*sums_set)(qi_sums *s, int32_t n, const int32_t zero_points[2], const uint8_t *w);
    int32_t (*sums_tiles)(const qi_sums *s);
    size_t (*sums_scratch)(const qi_sums *s);
    void (*sums_run)(const qi_sums *s, const uint8_t *x, int32_t *sums, void *scratch,
                     int32_t tile);
    void (*pool_run)(const qi_pool_job *job);
    int (*pool_threads)(int wanted);
    const qi_code *(*code_of)(const qi_kernel *kernel);
    /* of a model whose tensors and nodes are complete; one after the other */
    qi_status (*plan_lifetimes)(qi_model *model, qi_error *err);
    qi_status (*plan_arena)(qi_model *model, qi_error *err);
};

#endif
