/**
 * The library as a whole: its version, and how many threads it uses.
 *
 *     printf("libqat %s\n", qat_version());
 *     qat_set_threads(4);
 */
#ifndef QAT_RUNTIME_H
#define QAT_RUNTIME_H

#include "qat/version.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Version of the library that the program runs with: "0.1.0". Static text. QAT_VERSION is that of
 *  the headers. Any thread may call it. */
const char *qat_version(void);
/** The same as one number, as QAT_VERSION_NUMBER. Any thread may call it. */
int qat_version_number(void);

/**
 * Set how many threads the library uses for calls that the calling thread makes from now on, at
 * least 1. Each thread of a program has its own setting. The start is what OpenMP says: the
 * variable OMP_NUM_THREADS, or one thread for each processor. A library that was built without
 * OpenMP always uses 1. Results do not depend on the number: not one bit of them. The threads of a
 * loader (dataset.h) and of a qi_host (infer.h) are separate settings.
 *
 * libqat sets OpenBLAS to one thread, for the whole process, when it first multiplies matrices.
 */
void qat_set_threads(int threads);
/** How many threads the library uses for calls of the calling thread, at least 1. */
int qat_threads(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
