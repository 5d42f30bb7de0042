#include "base/gather.h"

#include <stdint.h>
#include <stdlib.h>

qat_status qat_ranks_gather(const qat_ranks *ranks, int channel, void *all, size_t bytes,
                            qat_error *err)
{
    size_t const n = (size_t)ranks->count;
    uint8_t *parts = all;
    qat_piece *pieces = calloc(2 * n, sizeof *pieces);
    qat_exchange x = {.channel = channel, .send = pieces, .receive = pieces + n};
    bool done;
    if (!pieces)
        return qat_out_of_memory(err, "ranks");
    for (int rank = 0; rank < ranks->count; rank++) {
        if (rank == ranks->rank)
            continue;
        x.send[x.n_send++] = (qat_piece){rank, parts + (size_t)ranks->rank * bytes, bytes};
        x.receive[x.n_receive++] = (qat_piece){rank, parts + (size_t)rank * bytes, bytes};
    }
    qat_status st = ranks->begin(ranks->context, &x, err);
    if (!st)
        st = ranks->done(ranks->context, &x, true, &done, err);
    free(pieces);
    return st;
}
