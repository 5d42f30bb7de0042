#define _DEFAULT_SOURCE /* madvise */
#include "base/arena.h"

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
    for (arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        qat_aligned_free(block);
    }
    *arena = (qat_arena){0};
}

static arena_block *new_block(size_t rounded)
{
    size_t const capacity = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;
    arena_block *block = qat_aligned_alloc(ALIGNMENT + capacity);
    if (block)
        block->capacity = capacity;
    return block;
}

/** The bytes of a block begin behind its header. */
static unsigned char *bytes_of(const arena_block *block)
{
    return (unsigned char *)block + ALIGNMENT;
}

void *qat_arena_take(qat_arena *arena, size_t bytes)
{
    size_t const rounded = round_up(bytes);
    arena_block **at = arena->current ? &arena->current : &arena->blocks;
    if (!rounded)
        return NULL;
    while (*at && (*at)->capacity - (*at)->used < rounded)
        at = &(*at)->next;
    arena_block *block = *at ? *at : new_block(rounded);
    if (!block)
        return NULL;
    *at = arena->current = block;
    void *taken = bytes_of(block) + block->used;
    block->used += rounded;
    return taken;
}

bool qat_arena_holds(const qat_arena *arena, const void *memory)
{
    uintptr_t const at = (uintptr_t)memory;
    for (const arena_block *block = arena->blocks; block; block = block->next) {
        uintptr_t const first = (uintptr_t)bytes_of(block);
        if (at >= first && at < first + block->capacity)
            return true;
    }
    return false;
}

qat_arena_mark qat_arena_now(const qat_arena *arena)
{
    return (qat_arena_mark){arena->current, arena->current ? arena->current->used : 0};
}

void qat_arena_back(qat_arena *arena, qat_arena_mark mark)
{
    size_t kept = mark.used;
    for (arena_block *b = mark.block ? mark.block : arena->blocks; b; b = b->next, kept = 0) {
        memset(bytes_of(b) + kept, 0, b->used - kept);
        b->used = kept;
    }
    arena->current = mark.block;
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
