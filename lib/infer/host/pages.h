/** Large memory that a run or a model keeps: packed weights, the arena. */
#ifndef QI_HOST_PAGES_H
#define QI_HOST_PAGES_H

#include <stddef.h>

/**
 * At least one byte, aligned to QI_FAST_ALIGN or more, content undefined; NULL: exhausted. free()
 * it. The pages are there when it returns: made at once they cost a fraction of what a fault each
 * costs.
 */
void *qi_pages_allocate(size_t bytes);

#endif
