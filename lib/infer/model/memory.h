/**
 * The two functions that the core needs from outside. They are declared here because a freestanding
 * compiler need not have <string.h>. On a bare device the firmware defines them; elsewhere the C
 * library does.
 */
#ifndef QI_MEMORY_H
#define QI_MEMORY_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memset(void *to, int byte, size_t count);

#endif
