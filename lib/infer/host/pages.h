/** Large memory that a run or a model keeps: packed weights, the arena. */
#ifndef QI_HOST_PAGES_H
#define QI_HOST_PAGES_H

#include <stddef.h>

/**
 * Allocate at least one byte, aligned to QI_FAST_ALIGN or more, with undefined content. NULL:
 * memory is exhausted. Free it with free(). The pages exist when the function returns: made at once
 * they cost a fraction of the time of one fault each.
 */
void *qi_pages_allocate(size_t bytes);

#endif
