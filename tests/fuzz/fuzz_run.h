/** Opens and runs a model of unknown origin, in exactly the memory that it asks for. */
#ifndef QAT_TESTS_FUZZ_RUN_H
#define QAT_TESTS_FUZZ_RUN_H

#include "qat/infer.h"

struct fuzz_model {
    uint8_t *qm; /* an aligned copy of exactly the file's bytes */
    size_t qm_bytes;
    void *memory; /* exactly qi_model_bytes() */
    qi_model *model;
};

/** Open a copy of the bytes with the core; what goes wrong must be said. Close after failure too.
 */
qi_status fuzz_model_open(struct fuzz_model *m, const uint8_t *bytes, size_t count);
void fuzz_model_close(struct fuzz_model *m);

/** Are arena and work small? */
int fuzz_is_small(const qi_model *m);

/**
 * If arena and work are small, run the model with core and host and compare every tensor. Otherwise
 * do nothing.
 */
void fuzz_run(const struct fuzz_model *m);

#endif
