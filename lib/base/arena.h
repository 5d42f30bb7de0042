/**
 * Arena: one block, or a growing list of blocks, freed all at once. What is taken is zeroed.
 *
 * Owners of many small things with one lifetime (a graph's nodes, a recipe's strings) keep them
 * here; big planned buffers are single allocations of their owner.
 */
#ifndef QAT_BASE_ARENA_H
#define QAT_BASE_ARENA_H

#include <stddef.h>

typedef struct qat_arena {
    struct qat_arena_block *blocks;
} qat_arena;

/** A zeroed arena is an empty one. */
void qat_arena_free(qat_arena *arena);

/** bytes of zeroed memory aligned to 64, or NULL when memory is exhausted. 0 bytes is legal. */
void *qat_arena_take(qat_arena *arena, size_t bytes);

/** As qat_arena_take for count elements; NULL as well where count * size overflows. */
void *qat_arena_array(qat_arena *arena, size_t count, size_t size);

/** A copy of a string. */
char *qat_arena_string(qat_arena *arena, const char *text);

/** Zeroed single allocation aligned to 64; free with qat_aligned_free. NULL on failure. */
void *qat_aligned_alloc(size_t bytes);
void qat_aligned_free(void *memory);

#endif
