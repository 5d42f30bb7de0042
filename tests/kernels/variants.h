/** Every build of every inner loop that this machine's tests can run. */
#ifndef QAT_TESTS_VARIANTS_H
#define QAT_TESTS_VARIANTS_H

#include "infer/host/depthwise.h"
#include "infer/host/gemm.h"

typedef struct depthwise_entry {
    const char *name;
    int (*runs_here)(void);
    const qi_depthwise *table;
} depthwise_entry;

typedef struct gemm_entry {
    const char *name;
    int (*runs_here)(void);
    const qi_gemm *table;
} gemm_entry;

/** They end with a NULL name. */
extern const depthwise_entry depthwise_variant[];
extern const gemm_entry gemm_variant[];

#endif
