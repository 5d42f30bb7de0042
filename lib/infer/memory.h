/**
 * The two functions that the core needs from outside, declared here because a freestanding compiler
 * need not have <string.h>. On a bare device they are the firmware's; elsewhere the C library's.
 */
#ifndef QI_MEMORY_H
#define QI_MEMORY_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memset(void *to, int byte, size_t count);

#endif
