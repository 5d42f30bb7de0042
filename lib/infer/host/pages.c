/** Allocates pages in one call. They are large pages if at least an eighth of one is used. */
#define _DEFAULT_SOURCE /* madvise */
#include "infer/host/pages.h"

#include "infer/host/loops/fast.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, LARGE_PAGE = 1 << 21 };

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/** How much of it gets large pages. */
static size_t large_bytes(size_t bytes)
{
    return (bytes + LARGE_PAGE / 8 * 7) / LARGE_PAGE * LARGE_PAGE;
}

/** This is only advice. If the system does not take it, page faults do the work later. */
static void advise(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (large_bytes(bytes))
        madvise(memory, large_bytes(bytes), MADV_HUGEPAGE);
#endif
#ifdef MADV_POPULATE_WRITE
    madvise(memory, bytes / PAGE * PAGE, MADV_POPULATE_WRITE);
#endif
}

void *qi_pages_allocate(size_t bytes)
{
    size_t const align = large_bytes(bytes) ? LARGE_PAGE : bytes >= PAGE ? PAGE : QI_FAST_ALIGN;
    void *memory = aligned_alloc(align, round_up(bytes ? bytes : 1, align));
    if (memory && bytes >= PAGE)
        advise(memory, bytes);
    return memory;
}
