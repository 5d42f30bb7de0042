/**
 * The two functions that kernels need from outside. They are declared here because a freestanding
 * compiler need not have <string.h>. On a bare device the firmware defines them; elsewhere the C
 * library does.
 */
#ifndef QI_MEMORY_H
#define QI_MEMORY_H

#include "infer/kernels/parts/features.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *memcpy(void *QK_RESTRICT to, const void *QK_RESTRICT from, size_t count);
void *memset(void *to, int byte, size_t count);

#ifdef __cplusplus
}
#endif

#endif
