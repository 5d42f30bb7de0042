/**
 * Preloaded into a command (LD_PRELOAD): allocation number FAIL_AT, counted from 0, that the
 * command or libqat asks for fails. At the end it prints how many of their blocks were not freed.
 * Other libraries' allocations are neither counted nor refused.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 1 << 18, EARLY_BYTES = 1 << 14 };

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static void (*real_free)(void *);

static _Alignas(16) char early[EARLY_BYTES]; /* what dlsym itself asks for */
static size_t early_used;
static enum { NEW, STARTING, READY } state;
static long fail_at;
static atomic_long asked;

static void *live[PLACES]; /* open addressing; &live[0] where a block was */
static long n_live;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void start(void)
{
    if (state != NEW)
        return;
    state = STARTING;
    const char *text = getenv("FAIL_AT");
    fail_at = text ? atol(text) : -1;
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
    state = READY;
}

static void *early_block(size_t bytes)
{
    void *block = early + early_used;
    early_used += (bytes + 15) / 16 * 16;
    return early_used <= EARLY_BYTES ? block : NULL;
}

/** Is the caller the command or one of our libraries? */
static bool is_ours(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname &&
           (strstr(info.dli_fname, "/libqat") || strstr(info.dli_fname, "/qat-"));
}

static bool fails(bool ours)
{
    if (!ours || atomic_fetch_add(&asked, 1) != fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

static void **place_of(const void *block)
{
    size_t at = ((uintptr_t)block >> 4) * 2654435761U % PLACES;
    while (live[at] && live[at] != block)
        at = (at + 1) % PLACES;
    return &live[at];
}

/** Note that `before` (or NULL) is gone, and that `now` is a block of ours. */
static void note(const void *before, void *now)
{
    while (atomic_flag_test_and_set(&lock))
        ;
    void **place = before ? place_of(before) : NULL;
    if (place && *place) {
        *place = &live[0];
        n_live--;
    }
    if (now) {
        *place_of(now) = now;
        n_live++;
    }
    atomic_flag_clear(&lock);
}

/* The names that every other object finds first; the build hides names otherwise. */
#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
    if (state == STARTING)
        return early_block(bytes);
    start();
    bool const ours = is_ours(__builtin_return_address(0));
    void *block = fails(ours) ? NULL : real_malloc(bytes);
    if (ours && block)
        note(NULL, block);
    return block;
}

void *calloc(size_t count, size_t bytes)
{
    if (state == STARTING)
        return early_block(count * bytes);
    start();
    bool const ours = is_ours(__builtin_return_address(0));
    void *block = fails(ours) ? NULL : real_calloc(count, bytes);
    if (ours && block)
        note(NULL, block);
    return block;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    start();
    bool const ours = is_ours(__builtin_return_address(0));
    void *block = fails(ours) ? NULL : real_aligned_alloc(alignment, bytes);
    if (ours && block)
        note(NULL, block);
    return block;
}

void *realloc(void *before, size_t bytes)
{
    start();
    bool const ours = is_ours(__builtin_return_address(0));
    uintptr_t const old = (uintptr_t)before;
    void *block = fails(ours) ? NULL : real_realloc(before, bytes);
    if (block)
        note((const void *)old, ours ? block : NULL);
    return block;
}

void free(void *block)
{
    if ((char *)block >= early && (char *)block < early + EARLY_BYTES)
        return;
    start();
    if (block)
        note(block, NULL);
    real_free(block);
}

#pragma GCC visibility pop

__attribute__((destructor)) static void report(void)
{
    if (n_live)
        fprintf(stderr, "blocks that were not freed: %ld\n", n_live);
}
