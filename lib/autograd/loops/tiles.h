/**
 * How op sources cut their work and lay out their scratch.
 *
 * There are two kinds of pieces; neither depends on the number of threads. A tile has a fixed size;
 * loops that write only their own piece use tiles. A block is one of at most QAT_BLOCKS pieces;
 * loops that need working memory or leave partial sums use blocks. Each block has its own part of
 * the scratch, and partial sums are added in block order. So at most QAT_BLOCKS threads help there,
 * and the size of the scratch does not depend on the number of threads.
 */
#ifndef QAT_AUTOGRAD_TILES_H
#define QAT_AUTOGRAD_TILES_H

#include "base/parallel.h"
#include "qat/graph.h"

enum {
    QAT_BLOCKS = 8,
    QAT_TILE_VALUES =
        16384 /* 64 KB of float: the two or three arrays of a tile stay in the cache */
};

/** How many tiles of `piece` things n things need. */
static inline int qat_tiles_of(size_t n, size_t piece)
{
    return (int)((n + piece - 1) / piece);
}

/**
 * How many blocks to use for n things if a block should hold at least `least` of them. The result
 * is in 1..QAT_BLOCKS and does not fall when n grows.
 */
static inline int qat_blocks_of(size_t n, size_t least)
{
    size_t const blocks = n / least;
    return blocks < 1 ? 1 : blocks > QAT_BLOCKS ? QAT_BLOCKS : (int)blocks;
}

/**
 * How many of so many blocks to use in one of `shards` parts of a batch. Threads can share the
 * parts in place of blocks, and each block costs a sum of its own.
 */
static inline int qat_blocks_in_shard(int blocks, int shards)
{
    int const most = shards < QAT_BLOCKS ? QAT_BLOCKS / shards : 1;
    return blocks < most ? blocks : most;
}

/** The things [begin, end). */
typedef struct qat_span {
    size_t begin, end;
} qat_span;

static inline qat_span qat_tile_span(size_t n, size_t piece, int tile)
{
    size_t const begin = (size_t)tile * piece;
    return (qat_span){begin, begin + piece < n ? begin + piece : n};
}

static inline qat_span qat_block_span(size_t n, int blocks, int block)
{
    return (qat_span){n * (size_t)block / (size_t)blocks, n * (size_t)(block + 1) / (size_t)blocks};
}

/** Rows per tile if a row has `columns` values. */
static inline size_t qat_tile_rows(size_t columns)
{
    return columns < QAT_TILE_VALUES ? QAT_TILE_VALUES / columns : 1;
}

/**
 * Carves scratch into 64-byte aligned arrays. With base NULL it only counts. So one function both
 * sizes the scratch (in shape) and places the arrays (in forward, backward).
 */
typedef struct qat_carve {
    char *base;
    size_t used;
} qat_carve;

static inline void *qat_carve_take(qat_carve *carve, size_t count, size_t size)
{
    size_t const at = carve->used;
    carve->used = at + (count * size + 63) / 64 * 64;
    return carve->base ? carve->base + at : NULL;
}

#endif
