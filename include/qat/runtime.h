/**
 * Settings of the whole library: its version, and how many threads it uses.
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

/**
 * The version of the library that the program runs with, for example "0.1.0". Static text.
 * QAT_VERSION is the version of the headers. Any thread may call it.
 */
const char *qat_version(void);
/** The version as one number, like QAT_VERSION_NUMBER. Any thread may call it. */
int qat_version_number(void);

/**
 * Set how many threads (at least 1) the library uses for later calls of the calling thread. Each
 * thread of a program has its own setting. The initial value is the first number in the variable
 * OMP_NUM_THREADS, or one thread for each processor that the process may use. The most is 256. A
 * library built without threads always uses 1. No bit of a result depends on this number. The
 * threads of a loader (dataset.h) and of a qi_host (infer.h) are separate settings.
 *
 * The threads start when they are first needed, and sleep between calls until the program ends. If
 * the system refuses a thread, fewer do the same work. After fork, the child starts its own.
 *
 * When libqat first multiplies matrices, it sets OpenBLAS to one thread for the whole process.
 */
void qat_set_threads(int threads);
/** How many threads the library uses for calls of the calling thread, at least 1. */
int qat_threads(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
