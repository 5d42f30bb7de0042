/**
 * A verification that ranks share: each has verified its samples, and here they join what they
 * found. Counts are added up, of the largest distances the largest counts, and a code that one rank
 * has seen is seen. So all ranks have the figures that one process has that verified all samples.
 */
#include "convert/verify.h"

#include "base/checksums/sha256.h"
#include "base/gather.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNEL = 3 };

/** What a rank found; behind it, its layers and the codes of its tensors. */
struct found {
    uint8_t model[32]; /* SHA-256 of the file that it verified */
    int64_t samples;
    qat_compare counts;
};

static size_t layers_bytes(const qat_verifier *v)
{
    return (size_t)qat_verifier_layers(v) * sizeof(qat_layer_check);
}

static size_t seen_bytes(const qat_verifier *v)
{
    return (size_t)v->graph->n_tensors * QAT_VERIFY_CODES;
}

static size_t part_bytes(const qat_verifier *v)
{
    size_t const bytes = sizeof(struct found) + layers_bytes(v) + seen_bytes(v);
    return (bytes + 15) / 16 * 16;
}

static void add_seen(const qat_verifier *v, uint8_t *seen, const uint8_t *more)
{
    for (size_t i = 0; i < seen_bytes(v); i++)
        seen[i] |= more[i];
}

/** Write down what this rank found. `part` is zeroed. */
static void put_own(const qat_verifier *v, const uint8_t model[32], uint8_t *part)
{
    struct found f = {.samples = v->samples, .counts = v->result};
    memcpy(f.model, model, sizeof f.model);
    memcpy(part, &f, sizeof f);
    part += sizeof f;
    for (int i = 0; i < qat_verifier_layers(v); i++)
        memcpy(part + (size_t)i * sizeof(qat_layer_check), qat_verifier_layer(v, i),
               sizeof(qat_layer_check));
    part += layers_bytes(v);
    for (int lane = 0; lane < QAT_VERIFY_LANES; lane++)
        add_seen(v, part, v->lanes[lane].seen[0]);
}

/** Add what another rank found. */
static void take(qat_verifier *v, const uint8_t *part)
{
    struct found f;
    memcpy(&f, part, sizeof f);
    part += sizeof f;
    v->samples += f.samples;
    qat_compare_add(&v->result, &f.counts);
    if (!v->result.first[0])
        memcpy(v->result.first, f.counts.first, sizeof v->result.first);
    for (int i = 0; i < qat_verifier_layers(v); i++) {
        qat_layer_check other;
        memcpy(&other, part + (size_t)i * sizeof other, sizeof other);
        qat_layers_join(v->layers, i, &other);
    }
    part += layers_bytes(v);
    add_seen(v, v->lanes[0].seen[0], part);
}

static qat_status join(qat_verifier *v, const qat_ranks *ranks, uint8_t *all, size_t bytes,
                       const uint8_t model[32], qat_error *err)
{
    put_own(v, model, all + (size_t)ranks->rank * bytes);
    qat_status const st = qat_ranks_gather(ranks, CHANNEL, all, bytes, err);
    for (int rank = 0; !st && rank < ranks->count; rank++) {
        const uint8_t *part = all + (size_t)rank * bytes;
        if (memcmp(part, all, sizeof(uint8_t[32])))
            return qat_fail(err, QAT_ERR_STATE,
                            "rank %d has made another model than rank 0: give all ranks the same "
                            "checkpoint, data, options and programs",
                            rank);
        if (rank != ranks->rank)
            take(v, part);
    }
    return st;
}

qat_status qat_verifier_join(qat_verifier *v, const qat_ranks *ranks, const void *qm,
                             size_t qm_bytes, int64_t *samples, qat_error *err)
{
    size_t const bytes = part_bytes(v);
    uint8_t model[32];
    uint8_t *all = calloc((size_t)ranks->count, bytes);
    if (!all)
        return qat_out_of_memory(err, "verify");
    qat_sha256(qm, qm_bytes, model);
    qat_status const st = join(v, ranks, all, bytes, model, err);
    free(all);
    *samples = v->samples;
    return st;
}
