#include "autograd/graph/pack.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/**
 * Largest first. Equal sizes are ordered by owner and kind, so that the order is the same
 * everywhere.
 */
static int larger_first(const void *pa, const void *pb)
{
    const pack_buffer *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->owner != b->owner)
        return a->owner < b->owner ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

/** Round the sizes up. Returns false if their sum exceeds half the address space. */
static bool align_sizes(pack_buffer *buffers, int n)
{
    size_t left = SIZE_MAX / 2;
    for (int i = 0; i < n; i++) {
        if (left < PACK_ALIGN || buffers[i].bytes > left - PACK_ALIGN)
            return false;
        buffers[i].bytes = (buffers[i].bytes + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
        left -= buffers[i].bytes;
    }
    return true;
}

/** Does b live at some moment in [start, end]? */
static bool lives_in(const pack_buffer *b, int start, int end)
{
    bool const in_pause = b->resume && b->pause < start && end < b->resume;
    return b->start <= end && start <= b->end && !in_pause;
}

static bool live_together(const pack_buffer *a, const pack_buffer *b)
{
    if (!a->resume)
        return lives_in(b, a->start, a->end);
    return lives_in(b, a->start, a->pause) || lives_in(b, a->resume, a->end);
}

/** The lowest free offset for buffer b among the n placed ones, which are ordered by offset. */
static size_t first_fit(const pack_buffer *b, const pack_buffer *placed, int n)
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const pack_buffer *p = &placed[i];
        if (!live_together(p, b))
            continue;
        if (p->offset >= at + b->bytes)
            break;
        if (p->offset + p->bytes > at)
            at = p->offset + p->bytes;
    }
    return at;
}

bool qat_pack_buffers(pack_buffer *buffers, int n, size_t *total)
{
    *total = SIZE_MAX;
    if (!align_sizes(buffers, n))
        return false;
    if (n > 0)
        qsort(buffers, (size_t)n, sizeof *buffers, larger_first);
    size_t end = 0;
    for (int i = 0; i < n; i++) {
        pack_buffer b = buffers[i];
        b.offset = first_fit(&b, buffers, i);
        if (b.offset + b.bytes > end)
            end = b.offset + b.bytes;
        int at = i; /* keep the placed buffers ordered by offset */
        while (at > 0 && buffers[at - 1].offset > b.offset)
            at--;
        memmove(&buffers[at + 1], &buffers[at], (size_t)(i - at) * sizeof b);
        buffers[at] = b;
    }
    *total = end;
    return true;
}
