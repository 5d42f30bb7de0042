/** Runs a packed product as the engine does, piece by piece. */
#ifndef QAT_BENCH_GEMM_RUN_H
#define QAT_BENCH_GEMM_RUN_H

#include "infer/host/loops/gemm.h"

/** y [rows][channels] of x [rows][depth], both without gaps; x has QI_SLACK bytes after it. */
static inline void bench_gemm_run(const qi_gemm *gemm, const qi_gemm_layer *layer, int32_t rows,
                                  const void *packed, const uint8_t *x, uint8_t *y, void *scratch)
{
    size_t const depth = (size_t)layer->depth, channels = (size_t)layer->channels;
    qi_gemm_split const split = qi_gemm_split_of(gemm, rows, layer->depth, layer->channels);
    int32_t const tiles = split.blocks * split.groups;
    for (int32_t tile = 0; tile < tiles;) {
        qi_gemm_piece const piece = qi_gemm_pieces(&split, tile, tiles);
        qi_gemm_run const run = {.packed = packed,
                                 .x = x + (size_t)piece.row * depth,
                                 .x_stride = depth,
                                 .rows = piece.rows,
                                 .first_channel = piece.first_channel,
                                 .end_channel = piece.end_channel,
                                 .y = y + (size_t)piece.row * channels,
                                 .y_stride = channels,
                                 .scratch = scratch};
        gemm->run(&run);
        tile = piece.next;
    }
}

#endif
