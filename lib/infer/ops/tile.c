/** The loops over tiles, once for all ops that multiply matrices: infer/kernels/tile.h. */
#include "infer/kernels/tile.h"

void qi_tile_row(qi_tile *t, int32_t r, const void *x, size_t at)
{
    qk_tile_row(t, r, x, at);
}

void qi_run_tile(const qi_tile *t)
{
    qk_tile_run(t);
}
