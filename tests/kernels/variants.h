/** Every build of every inner loop that this machine's tests can run. */
#ifndef QAT_TESTS_VARIANTS_H
#define QAT_TESTS_VARIANTS_H

#include "infer/host/loops/depthwise.h"
#include "infer/host/loops/elementwise.h"
#include "infer/host/loops/gemm.h"

typedef struct variant {
    const char *name;
    int (*runs_here)(void);
    const qi_depthwise *depthwise;
    const qi_elementwise *elementwise;
} variant;

typedef struct gemm_entry {
    const char *name;
    int (*runs_here)(void);
    const qi_gemm *table;
} gemm_entry;

/** They end with a NULL name. */
extern const variant variants[];
extern const gemm_entry gemm_variant[];

#endif
