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

/** memcpy of few bytes, without a call where Helium has a loop of three instructions. */
QK_INLINE void qk_copy(void *to, const void *from, size_t count)
{
#if QK_MVE
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n"
                     "vldrb.8 q0, [%[from]], #16\n"
                     "vstrb.8 q0, [%[to]], #16\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : [from] "+r"(from), [to] "+r"(to)
                     : [n] "r"(count)
                     : "q0", "lr", "memory");
#else
    memcpy(to, from, count);
#endif
}

#endif
