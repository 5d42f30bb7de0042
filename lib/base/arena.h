/**
 * An arena is a list of memory blocks that are freed all at once. The memory that it gives is
 * zeroed.
 *
 * Owners of many small things with one lifetime (the nodes of a graph, the strings of a recipe)
 * keep them in an arena. Large planned buffers are single allocations of their owner.
 */
#ifndef QAT_BASE_ARENA_H
#define QAT_BASE_ARENA_H

#include <stddef.h>

typedef struct qat_arena {
    struct qat_arena_block *blocks;
} qat_arena;

/** Free all blocks and leave an empty arena. A zeroed arena is empty. */
void qat_arena_free(qat_arena *arena);

/**
 * Take `bytes` of zeroed memory, aligned to 64. 0 bytes is legal. Returns NULL if memory is
 * exhausted.
 */
void *qat_arena_take(qat_arena *arena, size_t bytes);

/**
 * Like qat_arena_take, for `count` elements of `size` bytes. Also returns NULL if count * size
 * overflows.
 */
void *qat_arena_array(qat_arena *arena, size_t count, size_t size);

/** Copy a string into the arena. */
char *qat_arena_string(qat_arena *arena, const char *text);

/** Allocate zeroed memory aligned to 64. Free it with qat_aligned_free. Returns NULL on failure. */
void *qat_aligned_alloc(size_t bytes);
void qat_aligned_free(void *memory);

#endif
