/**
 * Packs buffers with lifetimes into one block of memory.
 *
 * Time is counted in whole steps. Two buffers may share bytes if their lifetimes [start, end] have
 * no step in common. A lifetime may have a pause: [start, pause] and [resume, end]. The content is
 * then lost in between, but the buffer keeps its place. The largest buffers are placed first, each
 * at the lowest free offset:
 *
 *     offset  |  A A A A . . C C
 *             |  . B B . . C? no: B's gap is too small
 *             +-------------------> time
 */
#ifndef QAT_AUTOGRAD_PACK_H
#define QAT_AUTOGRAD_PACK_H

#include <stdbool.h>
#include <stddef.h>

enum { PACK_ALIGN = 64 };

typedef struct pack_buffer {
    size_t bytes;      /* > 0 */
    int start, end;    /* lifetime, both ends included */
    int pause, resume; /* resume 0: no pause; else start <= pause < resume <= end */
    int owner;         /* set and used by the caller */
    int kind;          /* set and used by the caller */
    size_t offset;     /* result: a multiple of PACK_ALIGN */
} pack_buffer;

/**
 * Place n buffers; their order changes. Deterministic.
 * @param total  bytes of the block that holds all of them
 * @return       false if the block would be larger than half the address space; total is then
 *               SIZE_MAX
 */
bool qat_pack_buffers(pack_buffer *buffers, int n, size_t *total);

#endif
