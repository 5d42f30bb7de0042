/** What a qi_host holds. */
#ifndef QI_HOST_HOST_H
#define QI_HOST_HOST_H

#include "infer/host/loops/fast.h"

struct qi_host {
    qi_model *model;
    void *memory;    /* of the model */
    void *constants; /* those that the file holds packed, unpacked; NULL: there are none */
    size_t unpacked; /* their bytes */
    void *arena;     /* the steps own it */
    qi_steps *steps; /* how each node runs here */
    const char *isa;
    int threads;
    qi_sizes sizes;
    const void *qm;
    int mapped; /* how qm is owned: 1 mmap, 0 malloc */
};

#endif
