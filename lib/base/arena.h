/**
 * An arena is a list of memory blocks that are freed all at once. The memory that it gives is
 * zeroed.
 *
 * Owners of many small things with one lifetime (the nodes of a graph, the strings of a recipe)
 * keep them in an arena. Large planned buffers are single allocations of their owner.
 *
 * What was taken since a mark can be given back. The blocks stay, so what takes the same amounts
 * again and again allocates only the first time.
 */
#ifndef QAT_BASE_ARENA_H
#define QAT_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct qat_arena {
    struct qat_arena_block *blocks, *current; /* in the order of use; NULL: nothing is taken */
} qat_arena;

/** A moment in an arena's life. A zeroed mark is its beginning. */
typedef struct qat_arena_mark {
    struct qat_arena_block *block;
    size_t used;
} qat_arena_mark;

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

/** Does the memory lie in the arena? */
bool qat_arena_holds(const qat_arena *arena, const void *memory);

/** Mark what is taken now, and give back everything that was taken since a mark. */
qat_arena_mark qat_arena_now(const qat_arena *arena);
void qat_arena_back(qat_arena *arena, qat_arena_mark mark);

/** Allocate zeroed memory aligned to 64. Free it with qat_aligned_free. Returns NULL on failure. */
void *qat_aligned_alloc(size_t bytes);
void qat_aligned_free(void *memory);

#endif
