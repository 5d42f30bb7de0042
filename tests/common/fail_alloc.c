#include "common/fail_alloc.h"

#include "base/arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/*
 * The linker's --wrap sends calls of malloc to __wrap_malloc. The C library's own malloc is
 * __real_malloc.
 */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__real_qat_arena_take(qat_arena *arena, size_t bytes);
void *__real_qat_arena_array(qat_arena *arena, size_t count, size_t size);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_qat_arena_take(qat_arena *arena, size_t bytes);
void *__wrap_qat_arena_array(qat_arena *arena, size_t count, size_t size);

static atomic_bool counting, failed;
static atomic_long left; /* allocations that still succeed */

void test_fail_alloc_after(long n)
{
    atomic_store(&left, n);
    atomic_store(&failed, false);
    atomic_store(&counting, true);
}

bool test_fail_alloc_stop(void)
{
    atomic_store(&counting, false);
    return atomic_load(&failed);
}

static bool fails(void)
{
    if (!atomic_load(&counting) || atomic_fetch_sub(&left, 1) != 0)
        return false;
    atomic_store(&failed, true);
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

void *__wrap_qat_arena_take(qat_arena *arena, size_t bytes)
{
    return fails() ? NULL : __real_qat_arena_take(arena, bytes);
}

void *__wrap_qat_arena_array(qat_arena *arena, size_t count, size_t size)
{
    return fails() ? NULL : __real_qat_arena_array(arena, count, size);
}
