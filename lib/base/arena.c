#define _DEFAULT_SOURCE /* madvise */
#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGNMENT = 64,
    BLOCK_BYTES = 64 * 1024,
    LARGE_PAGE = 1 << 21,
    LARGE_PAGES = 4 /* least memory that gets them: rounding up wastes less than a quarter */
};

/*
 * A block. The first ALIGNMENT bytes hold this header. `capacity` bytes follow, of which `used` are
 * taken; both are multiples of ALIGNMENT.
 *
 *     | header | taken | taken | free ...      |
 *     0        64              64 + used       64 + capacity
 */
typedef struct qat_arena_block {
    struct qat_arena_block *next;
    size_t capacity, used;
} arena_block;

_Static_assert(sizeof(arena_block) <= ALIGNMENT, "the header fits its slot");

/**
 * Round bytes up to the alignment, to at least one ALIGNMENT. Returns 0 for more than half of the
 * address space, which no object can have.
 */
static size_t round_up(size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return 0;
    return bytes == 0 ? ALIGNMENT : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/** Ask for large pages: a pass over much memory takes a few percent less time. It is only advice.
 */
static void *allocate(size_t bytes)
{
    bool const large = bytes >= (size_t)LARGE_PAGES * LARGE_PAGE;
    size_t const align = large ? LARGE_PAGE : ALIGNMENT;
    size_t const rounded = (bytes + align - 1) / align * align;
    void *memory = aligned_alloc(align, rounded);
#ifdef MADV_HUGEPAGE
    if (memory && large)
        madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return memory;
}

void *qat_aligned_alloc(size_t bytes)
{
    size_t const rounded = round_up(bytes);
    void *memory = rounded ? allocate(rounded) : NULL;
    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

void qat_aligned_free(void *memory)
{
    free(memory);
}

void qat_arena_free(qat_arena *arena)
{
    while (arena->blocks) {
        arena_block *next = arena->blocks->next;
        qat_aligned_free(arena->blocks);
        arena->blocks = next;
    }
}

/** Add a block with room for `rounded` bytes at the front of the list; NULL on failure. */
static arena_block *add_block(qat_arena *arena, size_t rounded)
{
    size_t const capacity = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;
    arena_block *block = qat_aligned_alloc(ALIGNMENT + capacity);
    if (!block)
        return NULL;
    block->capacity = capacity;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *qat_arena_take(qat_arena *arena, size_t bytes)
{
    size_t const rounded = round_up(bytes);
    if (!rounded)
        return NULL;
    arena_block *block = arena->blocks;
    if (!block || block->capacity - block->used < rounded)
        block = add_block(arena, rounded);
    if (!block)
        return NULL;
    void *taken = (unsigned char *)block + ALIGNMENT + block->used;
    block->used += rounded;
    return taken;
}

void *qat_arena_array(qat_arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return qat_arena_take(arena, count * size);
}

char *qat_arena_string(qat_arena *arena, const char *text)
{
    size_t const bytes = strlen(text) + 1;
    char *copy = qat_arena_take(arena, bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
