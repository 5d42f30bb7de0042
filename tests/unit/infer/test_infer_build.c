#include "unit/infer/test_infer_build.h"

#include "base/arena.h"
#include "common/common.h"
#include "infer/host/host.h"
#include "infer/model/qm_layout.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t test_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

int32_t test_random_in(uint64_t *seed, int32_t lo, int32_t hi)
{
    return lo + (int32_t)(test_random(seed) % ((uint32_t)hi - (uint32_t)lo + 1));
}

/* ------------------------------------------------------------------ codes */

int32_t codes_lo(codes_of c)
{
    return c.type == QI_U8 ? 0 : -(1 << (c.bits - 1));
}

int32_t codes_hi(codes_of c)
{
    return codes_lo(c) + (1 << c.bits) - 1;
}

codes_of random_codes(uint64_t *seed)
{
    codes_of c = {test_random(seed) & 1 ? QI_S8 : QI_U8, 8, 0};
    if (test_random(seed) % 4 == 0)
        c.bits = test_random_in(seed, 2, 8);
    c.zero_point = test_random_in(seed, codes_lo(c), codes_hi(c));
    return c;
}

int32_t code_at(const void *codes, size_t i, codes_of c)
{
    return c.type == QI_S8 ? ((const int8_t *)codes)[i] : ((const uint8_t *)codes)[i];
}

size_t product_of(const int32_t *dims, int rank)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    return n;
}

void fill_codes(uint8_t *bytes, size_t n, codes_of c, uint64_t *seed)
{
    uint32_t const how = test_random(seed) % 6; /* mostly noise */
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(how == 0   ? codes_lo(c)
                             : how == 1 ? codes_hi(c)
                                        : test_random_in(seed, codes_lo(c), codes_hi(c)));
}

/* ------------------------------------------------------------------ graphs */

static int append(qat_qgraph *g, codes_of c, int rank, const int32_t *dims, void *data)
{
    qat_error err;
    qat_qtensor t = {.type = c.type,
                     .bits = c.bits,
                     .rank = rank,
                     .dims = {1, 1, 1, 1},
                     .scale = 0.5f,
                     .zero_point = c.zero_point,
                     .data = data,
                     .source_index = -1};
    snprintf(t.name, sizeof t.name, "t%d", g->n_tensors);
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    int const index = qat_qgraph_tensor(g, &t, &err);
    ck_assert_msg(index >= 0, "%s", err.message);
    return index;
}

int net_activation(qat_qgraph *g, codes_of c, int rank, const int32_t *dims)
{
    return append(g, c, rank, dims, NULL);
}

int net_constant(qat_qgraph *g, codes_of c, int rank, const int32_t *dims, uint64_t *seed,
                 const uint8_t **data)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    uint8_t *bytes = qat_arena_take(g->memory, n);
    ck_assert_ptr_nonnull(bytes);
    fill_codes(bytes, n, c, seed);
    if (data)
        *data = bytes;
    return append(g, c, rank, dims, bytes);
}

int net_s32(qat_qgraph *g, int rows, int columns, const int32_t *values)
{
    qat_error err;
    int const index = qat_qgraph_constant_s32(g, "s32", rows, columns, values, &err);
    ck_assert_msg(index >= 0, "%s", err.message);
    return index;
}

void net_op(qat_qgraph *g, const char *op, qi_rounding rounding, int n_inputs, const int *inputs,
            int output, int n_params, const int32_t *params, int64_t max_accumulator)
{
    qat_error err;
    int const st = qat_qgraph_op(g, op, "layer", rounding, n_inputs, inputs, 1, &output, n_params,
                                 params, max_accumulator, &err);
    ck_assert_msg(st >= 0, "%s", err.message);
}

void net_io(qat_qgraph *g, int input, int output)
{
    qat_error err;
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &input, 1, &output, &err), QAT_OK);
}

/* ------------------------------------------------------------------ files */

uint8_t *net_write(const qat_qgraph *g, const void *kat_input, const void *kat_output,
                   size_t *count)
{
    static const char *const labels[] = {"first", "second"};
    qat_qm_metadata const metadata = {.description = "a test",
                                      .labels = labels,
                                      .n_labels = 2,
                                      .kat_inputs = kat_input ? &kat_input : NULL,
                                      .kat_outputs = kat_input ? &kat_output : NULL};
    qat_error err;
    uint8_t *qm = NULL;
    ck_assert_msg(qat_qm_write(g, &metadata, &qm, count, &err) == QAT_OK, "%s", err.message);
    return qm;
}

qi_status net_status(const uint8_t *qm, size_t count)
{
    size_t need = 0;
    uint8_t *aligned = aligned_alloc(QI_ALIGN, (count / QI_ALIGN + 1) * QI_ALIGN);
    ck_assert_ptr_nonnull(aligned);
    memcpy(aligned, qm, count);
    qi_model *model;
    qi_status st = qi_model_bytes(aligned, count, &need, NULL);
    void *memory = aligned_alloc(QI_ALIGN, (need / QI_ALIGN + 1) * QI_ALIGN);
    ck_assert_ptr_nonnull(memory);
    if (!st)
        st = qi_model_init(&model, aligned, count, NULL, memory, need, NULL);
    free(memory);
    free(aligned);
    return st;
}

void net_open(qi_host **host, const qat_qgraph *g, qi_status expected)
{
    qat_error err;
    size_t count;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    qi_status const st = net_status(qm, count);
    ck_assert_msg(st == expected, "status %s, expected %s", qi_status_name(st),
                  qi_status_name(expected));
    ck_assert_msg(!qi_host_open_bytes(host, qm, count, "net", NULL, &err) == !st, "%s",
                  err.message);
    free(qm);
}

void net_run(const qat_qgraph *g, const void *const *inputs, void *const *outputs)
{
    qi_host *host = NULL;
    net_open(&host, g, QI_OK);
    memset(host->arena, 0xa5, qi_arena_bytes(host->model));
    qi_run(host->model, host->arena, inputs, outputs);
    qi_host_close(host);
}

void net_run_kept(const qat_qgraph *g, const void *const *inputs, void *const *outputs,
                  const char *name, int number)
{
    qat_error err;
    char full[64];
    uint8_t *qm = NULL;
    size_t count;
    net_run(g, inputs, outputs);
    qat_qm_metadata const metadata = {.kat_inputs = inputs,
                                      .kat_outputs = (const void *const *)outputs};
    ck_assert_msg(qat_qm_write(g, &metadata, &qm, &count, &err) == QAT_OK, "%s", err.message);
    snprintf(full, sizeof full, "%s_%d", name, number);
    test_keep_model("unit", full, qm, count);
    free(qm);
}

void net_reseal(uint8_t *qm, size_t count)
{
    uint32_t crc = qm_crc32(0, qm, QM_AT_CRC);
    crc = qm_crc32(crc, qm + QM_AT_CRC + 4, count - QM_AT_CRC - 4);
    for (int i = 0; i < 4; i++)
        qm[QM_AT_CRC + i] = (uint8_t)(crc >> (8 * i));
}

void net_try(const net_trial *of, int count)
{
    for (int i = 0; i < count; i++)
        of->trial(i);
    printf("%s: %d trials\n", of->op, count);
}
