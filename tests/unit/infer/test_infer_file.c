/**
 * Damaged .qm files. Every single byte is changed to every other value, the file is cut at every
 * place, and bytes are added at the end: all are refused. Then the file is damaged tens of
 * thousands of times and its checksum made right again. The validator refuses it, or the model runs
 * without a fault (run this under ASan and UBSan). Also tests files that are not files.
 */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"
#include "infer/host/host.h"
#include "infer/model/qm_layout.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUTATIONS = 60000, MOST_ARENA = 1 << 20 };

/* ------------------------------------------------------------------ models to damage */

/** One requantize and a known answer: about a kilobyte. */
static uint8_t *small_model(size_t *count)
{
    codes_of const c = {QI_U8, 8, 3};
    int32_t const dims[] = {1, 4}, params[] = {1 << 30, 0, 0, 255};
    uint8_t const in[4] = {0, 1, 2, 255}, out[4] = {2, 2, 3, 129};
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, c, 2, dims), y = net_activation(g, c, 2, dims);
    net_op(g, "requantize", QI_ROUND_TWICE, 1, &x, y, 4, params, 0);
    net_io(g, x, y);
    uint8_t *qm = net_write(g, in, out, count);
    qat_qgraph_free(g);
    return qm;
}

/** Inputs 1..4 of a layer whose weights are all `code`, with zero_point 0. */
static void layer_inputs(qat_qgraph *g, int inputs[5], codes_of c, int rank, const int32_t *dims,
                         int channels, int code)
{
    static const int32_t zeros[8] = {0}, shift = -9, mult = 1 << 30;
    const uint8_t *data;
    uint64_t seed = 1;
    inputs[1] = net_constant(g, c, rank, dims, &seed, &data);
    memset((uint8_t *)(uintptr_t)data, code, qat_qtensor_bytes(&g->tensors[inputs[1]]));
    inputs[2] = net_s32(g, channels, 1, zeros);
    inputs[3] = net_s32(g, 1, 1, &mult);
    inputs[4] = net_s32(g, 1, 1, &shift);
}

static int unary(qat_qgraph *g, const char *op, int x, codes_of c, int rank, const int32_t *dims,
                 qi_rounding rounding, int n_params, const int32_t *params)
{
    int const y = net_activation(g, c, rank, dims);
    net_op(g, op, rounding, 1, &x, y, n_params, params, 0);
    return y;
}

static int table(qat_qgraph *g, int x, codes_of c, const int32_t *dims)
{
    int32_t const rows[] = {dims[3], 256};
    uint64_t seed = 3;
    int const inputs[] = {x, net_constant(g, c, 2, rows, &seed, NULL)};
    int const y = net_activation(g, c, 4, dims);
    net_op(g, "table", QI_ROUND_NONE, 2, inputs, y, 0, NULL, 0);
    return y;
}

/** A convolution of 3x3 (or depthwise) on [1,6,6,2], SAME. */
static int convolution(qat_qgraph *g, int x, codes_of c, bool depthwise)
{
    int32_t const dims[] = {1, 6, 6, 2}, w[] = {depthwise ? 1 : 2, 3, 3, 2};
    int32_t const params[] = {1, 1, 1, 1, 1, 1, 1, 0, 255};
    int inputs[5] = {x};
    layer_inputs(g, inputs, c, 4, w, 2, 40);
    int const y = net_activation(g, c, 4, dims);
    net_op(g, depthwise ? "depthwise_conv2d" : "conv2d", QI_ROUND_TWICE, 5, inputs, y, 9, params,
           (int64_t)255 * 40 * 9 * (depthwise ? 1 : 2));
    return y;
}

static int binary(qat_qgraph *g, const char *op, int a, int b, codes_of c, const int32_t *dims)
{
    int32_t const add[] = {20, 1 << 30, 0, 1 << 30, 0, 1 << 30, -19, 0, 255};
    int32_t const mul[] = {1 << 30, -7, 0, 255};
    bool const is_mul = strcmp(op, "mul") == 0;
    int const inputs[] = {a, b};
    int const y = net_activation(g, c, 4, dims);
    net_op(g, op, QI_ROUND_TWICE, 2, inputs, y, is_mul ? 4 : 9, is_mul ? mul : add, 0);
    return y;
}

/** The ops that imported models bring, from a [1,6,6,2]; the index of the largest code of each
 * pixel. */
static int imported_ops(qat_qgraph *g, int x, codes_of c)
{
    int32_t const dims[] = {1, 6, 6, 2}, half[] = {1, 3, 3, 2}, wide[] = {1, 8, 8, 2};
    int32_t const w[] = {2, 3, 3, 2}, alpha_dims[] = {2}, turned[] = {1, 2, 6, 6};
    int32_t const resize[] = {0, 1}, transposed[] = {2, 2, 0, 0, 0, 255}, perm[] = {0, 3, 1, 2};
    int32_t const prelu[] = {1 << 30, 1, 1 << 30, -7, 0, 255}, pad[] = {0, 1, 1, 0, 0, 1, 1, 0, 0};
    int32_t const slice[] = {0, 7, 6, 0, 1, -1, -1, 1}, axis = 1, indices[] = {1, 6, 6};
    codes_of const middle = {QI_U8, 8, 128};
    uint64_t seed = 4;
    int inputs[5] = {unary(g, "resize_nearest", x, c, 4, half, QI_ROUND_NONE, 2, resize)};
    layer_inputs(g, inputs, c, 4, w, 2, 40);
    int const y = net_activation(g, c, 4, dims);
    net_op(g, "transpose_conv2d", QI_ROUND_TWICE, 5, inputs, y, 6, transposed, 255 * 40 * 18);
    int a = unary(g, "resize_bilinear", y, c, 4, dims, QI_ROUND_NONE, 2, resize);
    int const b = net_activation(g, c, 4, dims), d = net_activation(g, c, 4, dims);
    net_op(g, "maximum", QI_ROUND_NONE, 2, (const int[]){a, x}, b, 0, NULL, 0);
    net_op(g, "minimum", QI_ROUND_NONE, 2, (const int[]){b, y}, d, 0, NULL, 0);
    int const alpha = net_constant(g, middle, 1, alpha_dims, &seed, NULL);
    int const e = net_activation(g, c, 4, dims);
    net_op(g, "prelu", QI_ROUND_TWICE, 2, (const int[]){d, alpha}, e, 6, prelu, 0);
    a = unary(g, "pad", e, c, 4, wide, QI_ROUND_NONE, 9, pad);
    a = unary(g, "strided_slice", a, c, 4, dims, QI_ROUND_NONE, 8, slice);
    a = unary(g, "l2_normalization", a, middle, 4, dims, QI_ROUND_NONE, 0, NULL);
    a = unary(g, "transpose", a, middle, 4, turned, QI_ROUND_NONE, 4, perm);
    return unary(g, "arg_max", a, (codes_of){QI_S64, 64, 0}, 3, indices, QI_ROUND_NONE, 1, &axis);
}

/** Every built-in op once, an output that is real numbers outside, and an epilogue. */
static uint8_t *full_model(size_t *count)
{
    codes_of const c = {QI_U8, 8, 0};
    int32_t const dims[] = {1, 6, 6, 2}, half[] = {1, 3, 3, 2}, wide[] = {1, 3, 3, 4};
    int32_t const one[] = {1, 1, 1, 4}, flat[] = {1, 4}, fc[] = {3, 4}, scores[] = {1, 3};
    int32_t const pool[] = {2, 2, 2, 2, 0, 0, 0, 255}, mean[] = {6, 1 << 30, -3, 0, 255};
    int32_t const re[] = {1 << 30, 1, 0, 255}, sigmoid[] = {1 << 30, 22, 480};
    int32_t const softmax[] = {1 << 30, 23, -248}, axis = 3, fc_clamp[] = {0, 255};
    codes_of const middle = {QI_U8, 8, 128};
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, c, 4, dims);
    int const a = convolution(g, table(g, x, c, dims), c, false);
    int const b = convolution(g, a, c, true);
    int const d = binary(g, "sub", binary(g, "add", a, b, c, dims), b, c, dims);
    int const e = binary(g, "mul", d, a, c, dims);
    int const parts[] = {unary(g, "max_pool2d", e, c, 4, half, QI_ROUND_NONE, 8, pool),
                         unary(g, "average_pool2d", d, c, 4, half, QI_ROUND_NONE, 8, pool)};
    int const joined = net_activation(g, c, 4, wide);
    net_op(g, "concat", QI_ROUND_NONE, 2, parts, joined, 1, &axis, 0);
    int y = unary(g, "requantize", joined, c, 4, wide, QI_ROUND_TWICE, 4, re);
    y = unary(g, "logistic", y, c, 4, wide, QI_ROUND_NONE, 3, sigmoid);
    y = unary(g, "tanh", y, middle, 4, wide, QI_ROUND_NONE, 3, sigmoid);
    y = unary(g, "mean", y, c, 4, one, QI_ROUND_TWICE, 5, mean);
    int inputs[5] = {unary(g, "reshape", y, c, 2, flat, QI_ROUND_NONE, 0, NULL)};
    layer_inputs(g, inputs, c, 2, fc, 3, 40);
    int const logits = net_activation(g, c, 2, scores);
    net_op(g, "fully_connected", QI_ROUND_TWICE, 5, inputs, logits, 2, fc_clamp, 255 * 40 * 4);
    int const out[] = {unary(g, "softmax", logits, c, 2, scores, QI_ROUND_NONE, 3, softmax),
                       imported_ops(g, d, c)};
    int const tail[] = {out[0], inputs[1]};
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 2, out, NULL), QAT_OK);
    g->tensors[out[0]].border = QI_BORDER_FLOAT32;
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "tail", 2, tail, 3, softmax, NULL), QAT_OK);
    uint8_t *qm = net_write(g, NULL, NULL, count);
    qat_qgraph_free(g);
    return qm;
}

/* ------------------------------------------------------------------ trying */

/** Open bytes; if that succeeds and the arena is small, run them on noise. */
static qi_status try_bytes(const uint8_t *qm, size_t count, uint64_t *seed)
{
    qi_host *host = NULL;
    qat_error err;
    qi_status const st = net_status(qm, count);
    ck_assert_int_eq(!qi_host_open_bytes(&host, qm, count, "damaged", NULL, &err), !st);
    if (st) {
        ck_assert_ptr_null(host);
        ck_assert_ptr_nonnull(strstr(err.message, "damaged"));
        return st;
    }
    if (qi_arena_bytes(host->model) <= MOST_ARENA) {
        const void *in[QM_MAX_IO];
        void *out[QM_MAX_IO] = {NULL};
        uint8_t *noise = malloc(MOST_ARENA);
        ck_assert_ptr_nonnull(noise);
        for (size_t i = 0; i < qi_arena_bytes(host->model); i++)
            noise[i] = (uint8_t)test_random(seed);
        for (int i = 0; i < qi_input_count(host->model); i++)
            in[i] = noise;
        qi_run(host->model, host->arena, in, out);
        qi_self_test(host->model, host->arena, NULL);
        free(noise);
    }
    qi_host_close(host);
    return QI_OK;
}

START_TEST(test_every_byte)
{
    size_t count;
    uint64_t seed = 1;
    uint8_t *qm = small_model(&count);
    ck_assert_int_eq(try_bytes(qm, count, &seed), QI_OK);
    for (size_t i = 0; i < count; i++) {
        uint8_t const was = qm[i];
        for (int change = 1; change < 256; change++) {
            qm[i] = (uint8_t)(was ^ change);
            test_assert_in_loop(try_bytes(qm, count, &seed) != QI_OK, "byte %zu ^ %d accepted", i,
                                change);
        }
        qm[i] = was;
    }
    free(qm);
}
END_TEST

START_TEST(test_every_length)
{
    size_t count;
    uint64_t seed = 1;
    uint8_t *qm = full_model(&count);
    ck_assert_int_eq(try_bytes(qm, count, &seed), QI_OK);
    for (size_t n = 0; n < count; n++) {
        qi_status const st = try_bytes(qm, n, &seed);
        test_assert_in_loop(st == QI_ERR_TRUNCATED, "%zu of %zu bytes: %s", n, count,
                            qi_status_name(st));
    }
    uint8_t *longer = calloc(1, count + 16);
    ck_assert_ptr_nonnull(longer);
    memcpy(longer, qm, count);
    for (size_t n = count + 1; n <= count + 16; n++)
        ck_assert_int_eq(try_bytes(longer, n, &seed), QI_ERR_FORMAT);
    free(longer);
    free(qm);
}
END_TEST

/** What a mutation chooses from: the bytes before the data section say most. */
struct target {
    uint8_t *qm;
    size_t count, data;
};

static size_t random_place(const struct target *t, uint64_t *seed)
{
    size_t const end = test_random(seed) % 8 ? t->data : t->count;
    return QM_MAGIC_BYTES + test_random(seed) % (end - QM_MAGIC_BYTES);
}

/** One field made small, large, extreme or equal to another one. */
static void mutate(const struct target *t, uint64_t *seed)
{
    uint8_t *qm = t->qm;
    size_t const count = t->count;
    static const uint32_t values[] = {0,          1,          2,          3,          15,
                                      16,         255,        256,        65535,      65536,
                                      0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0, 1u << 28};
    size_t const at = random_place(t, seed);
    size_t const word = at / 4 * 4;
    switch (test_random(seed) % 5) {
    case 0:
        qm[at] = (uint8_t)test_random(seed);
        break;
    case 1:
        qm[at] ^= (uint8_t)(1 << (test_random(seed) % 8));
        break;
    case 2:
        qm[at] = (uint8_t)(qm[at] + (test_random(seed) & 1 ? 1 : -1));
        break;
    case 3:
        if (word + 4 <= count)
            memcpy(qm + word, &values[test_random(seed) % 15], 4);
        break;
    default: {
        size_t const other = random_place(t, seed) / 4 * 4;
        if (word + 4 <= count && other + 4 <= count)
            memcpy(qm + word, qm + other, 4);
    }
    }
}

START_TEST(test_resealed_mutations)
{
    size_t count, accepted = 0;
    uint64_t seed = 20240607;
    uint8_t *qm = full_model(&count);
    uint8_t *bad = malloc(count);
    ck_assert_ptr_nonnull(bad);
    struct target const target = {bad, count,
                                  (size_t)qm[QM_AT_DATA] | (size_t)qm[QM_AT_DATA + 1] << 8};
    printf("mutations of a resealed .qm: seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < MUTATIONS; i++) {
        memcpy(bad, qm, count);
        int const n = test_random_in(&seed, 1, 3);
        for (int j = 0; j < n; j++)
            mutate(&target, &seed);
        net_reseal(bad, count);
        accepted += try_bytes(bad, count, &seed) == QI_OK;
    }
    printf("%d mutations, %zu accepted and run\n", MUTATIONS, accepted);
    ck_assert_uint_gt(accepted, MUTATIONS / 100); /* both ways are taken */
    ck_assert_uint_lt(accepted, MUTATIONS);
    free(bad);
    free(qm);
}
END_TEST

/** Where a record of a section begins. */
static size_t record(const uint8_t *qm, int section, size_t bytes, size_t index)
{
    uint32_t offset;
    memcpy(&offset, qm + section, 4);
    return offset + index * bytes;
}

/** A model with an epilogue of five ints: name, 2 inputs, tensor 1 (output), 2 (constant), 77. */
static uint8_t *model_with_epilogue(size_t *count)
{
    codes_of const c = {QI_U8, 8, 3};
    int32_t const dims[] = {1, 4}, params[] = {1 << 30, 0, 0, 255}, extra = 77;
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, c, 2, dims), y = net_activation(g, c, 2, dims);
    int const inputs[] = {y, net_s32(g, 1, 1, &extra)};
    net_op(g, "requantize", QI_ROUND_TWICE, 1, &x, y, 4, params, 0);
    net_io(g, x, y);
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "tail", 2, inputs, 1, &extra, NULL), QAT_OK);
    uint8_t *qm = net_write(g, NULL, NULL, count);
    qat_qgraph_free(g);
    return qm;
}

static const struct {
    size_t at;
    uint32_t value;
    qi_status status;
} epilogues[] = {
    {0, 1 << 20, QI_ERR_FORMAT},
    {0, 0xffffffff, QI_ERR_FORMAT},
    {0, 0, QI_ERR_FORMAT}, /* the empty string */
    {1, 0, QI_ERR_FORMAT},
    {1, 4, QI_ERR_FORMAT},
    {1, 0xffffffff, QI_ERR_FORMAT},
    {1, 1, QI_OK},
    {1, 3, QI_ERR_FORMAT}, /* 77 is no tensor */
    {2, 0, QI_ERR_FORMAT}, /* not an output */
    {2, 2, QI_OK},
    {2, 3, QI_ERR_FORMAT},
    {3, 0xffffffff, QI_ERR_FORMAT},
    {4, 0xffffffff, QI_OK},
};

START_TEST(test_epilogue_limits)
{
    size_t count;
    uint32_t first;
    uint64_t seed = 1;
    uint8_t *qm = model_with_epilogue(&count);
    ck_assert_int_eq(try_bytes(qm, count, &seed), QI_OK);
    memcpy(&first, qm + QM_AT_EPILOGUE, 4);
    size_t const at = record(qm, QM_AT_INTS, 4, first + epilogues[_i].at);
    memcpy(qm + at, &epilogues[_i].value, 4);
    net_reseal(qm, count);
    ck_assert_int_eq(try_bytes(qm, count, &seed), epilogues[_i].status);
    free(qm);
}
END_TEST

/** One 32-bit field of the small model spoiled: tensors 0 (input), 1 (output), node 0. */
static const struct spoiled {
    int section; /* QM_AT_TENSORS, QM_AT_NODES, QM_AT_INTS; 0: the header */
    size_t index, field;
    uint32_t value;
    qi_status status;
} spoiled[] = {
    {0, 0, QM_AT_VERSION, 2, QI_ERR_VERSION},
    {0, 0, QM_AT_FLAGS, 3, QI_ERR_FORMAT},
    {0, 0, QM_AT_FLAGS, 0, QI_ERR_FORMAT}, /* kat without its flag */
    {0, 0, QM_AT_TENSORS, 208, QI_ERR_FORMAT},
    {0, 0, QM_AT_TENSORS + 4, 0, QI_ERR_FORMAT},
    {0, 0, QM_AT_TENSORS + 4, QM_MAX_TENSORS + 1, QI_ERR_FORMAT},
    {0, 0, QM_AT_NODES + 4, QM_MAX_NODES + 1, QI_ERR_FORMAT},
    {0, 0, QM_AT_INTS + 4, QM_MAX_INTS + 1, QI_ERR_FORMAT},
    {0, 0, QM_AT_INTS + 4, QM_MAX_INTS, QI_ERR_FORMAT},
    {0, 0, QM_AT_STRINGS + 4, 0, QI_ERR_FORMAT},
    {0, 0, QM_AT_DATA + 4, 0, QI_ERR_FORMAT},
    {0, 0, QM_AT_INPUTS, 1000, QI_ERR_FORMAT},
    {0, 0, QM_AT_INPUTS + 4, 0, QI_ERR_FORMAT},
    {0, 0, QM_AT_INPUTS + 4, 60, QI_ERR_FORMAT},
    {0, 0, QM_AT_OUTPUTS + 4, QM_MAX_IO + 1, QI_ERR_FORMAT},
    {0, 0, QM_AT_LABELS + 4, 60, QI_ERR_FORMAT},
    {0, 0, QM_AT_KAT, 1000, QI_ERR_FORMAT},
    {0, 0, QM_AT_DESCRIPTION, 1 << 20, QI_ERR_FORMAT},
    {0, 0, QM_AT_PREPROCESSING, 4, QI_ERR_FORMAT},
    {0, 0, QM_AT_PREPROCESSING, 3, QI_ERR_FORMAT}, /* frames 0 */
    {0, 0, QM_AT_PREPROCESSING, 2, QI_ERR_FORMAT}, /* channels 0 */
    {0, 0, QM_AT_PREPROCESSING, 1, QI_ERR_FORMAT}, /* height 0 */
    {0, 0, QM_AT_EPILOGUE + 4, 1, QI_ERR_FORMAT},
    {0, 0, QM_AT_EPILOGUE + 4, 1000, QI_ERR_FORMAT},
    {0, 0, QM_AT_EPILOGUE, 1000, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_NAME, 1 << 20, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x08020003, QI_ERR_FORMAT}, /* bits, rank, kind, type */
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x08020200, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x08000000, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x08050000, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x00020000, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x01020001, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x08020004, QI_ERR_FORMAT}, /* int16 of 8 bits */
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x10020004, QI_ERR_FORMAT}, /* int16: size */
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x10020005, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x09020000, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x08020001, QI_OK}, /* int8 */
    {QM_AT_TENSORS, 0, QM_TENSOR_DIMS, 0, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_DIMS, 0xffffffff, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_DIMS, 1 << 28, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_DIMS + 8, 2, QI_ERR_FORMAT}, /* beyond the rank */
    {QM_AT_TENSORS, 0, QM_TENSOR_ZERO_POINT, 256, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_ZERO_POINT, 0xffffffff, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_SCALE, 0x7f800000, QI_ERR_FORMAT}, /* infinity */
    {QM_AT_TENSORS, 0, QM_TENSOR_SCALE, 0x80000001, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_CHANNEL_SCALES, 2, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_CHANNEL_SCALES, 1, QI_ERR_FORMAT}, /* an activation */
    {QM_AT_TENSORS, 0, QM_TENSOR_SOURCE_INDEX, 0xfffffffe, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_DATA, 16, QI_ERR_FORMAT}, /* of an activation */
    {QM_AT_TENSORS, 0, QM_TENSOR_SIZE, 5, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_BORDER, QI_BORDER_FLOAT32, QI_OK},
    {QM_AT_TENSORS, 0, QM_TENSOR_BORDER, QI_BORDER_TRUNCATED, QI_OK},
    {QM_AT_TENSORS, 0, QM_TENSOR_BORDER, QI_BORDER_EVEN, QI_OK},
    {QM_AT_TENSORS, 0, QM_TENSOR_BORDER, 4, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 0, QM_TENSOR_BORDER, 0x100, QI_ERR_FORMAT},    /* the byte behind it */
    {QM_AT_TENSORS, 0, QM_TENSOR_TYPE, 0x40020003, QI_ERR_FORMAT}, /* int64: size */
    {QM_AT_TENSORS, 0, QM_TENSOR_NEXT, 1, QI_ERR_FORMAT},
    {QM_AT_TENSORS, 1, QM_TENSOR_DIMS + 4, 5, QI_ERR_FORMAT}, /* size */
    {QM_AT_NODES, 0, QM_NODE_OP, 0, QI_ERR_UNKNOWN_OP},
    {QM_AT_NODES, 0, QM_NODE_OP, 1 << 20, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_NAME, 1 << 20, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_INPUTS, 0xffffffff, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_INPUTS + 4, 0, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_INPUTS + 4, 200, QI_ERR_FORMAT}, /* beyond the ints */
    {QM_AT_NODES, 0, QM_NODE_INPUTS + 4, QM_MAX_NODE_INPUTS + 1, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_OUTPUTS + 4, QM_MAX_NODE_OUTPUTS + 1, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_PARAMS + 4, QI_MAX_PARAMS + 1, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_PARAMS + 4, 3, QI_ERR_PARAM},
    {QM_AT_NODES, 0, QM_NODE_ROUNDING, QI_ROUND_LONG, QI_ERR_PARAM},
    {QM_AT_NODES, 0, QM_NODE_ROUNDING, QI_ROUND_EVEN, QI_ERR_PARAM},
    {QM_AT_NODES, 0, QM_NODE_ROUNDING, 6, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_ROUNDING, QI_ROUND_NONE, QI_ERR_PARAM},
    {QM_AT_NODES, 0, QM_NODE_FRACTION, 1, QI_ERR_FORMAT}, /* of an op that has none */
    {QM_AT_NODES, 0, QM_NODE_FRACTION, 0xffffffff, QI_ERR_FORMAT},
    {QM_AT_NODES, 0, QM_NODE_MAX_ACCUMULATOR + 4, 0x80000000, QI_ERR_FORMAT},
    {QM_AT_INTS, 0, 0, 1, QI_ERR_FORMAT}, /* the node reads its own output */
    {QM_AT_INTS, 0, 0, 2, QI_ERR_FORMAT},
    {QM_AT_INTS, 0, 0, 0xffffffff, QI_ERR_FORMAT},
    {QM_AT_INTS, 0, 4, 0, QI_ERR_FORMAT},         /* it writes the model's input */
    {QM_AT_INTS, 0, 8, 0x80000000, QI_ERR_PARAM}, /* mult */
    {QM_AT_INTS, 0, 12, 32, QI_ERR_PARAM},        /* shift */
    {QM_AT_INTS, 0, 12, 31, QI_OK},
};
enum { N_SPOILED = sizeof spoiled / sizeof spoiled[0] };

START_TEST(test_field_limits)
{
    const struct spoiled *s = &spoiled[_i];
    size_t count;
    uint64_t seed = 1;
    uint8_t *qm = small_model(&count);
    size_t const bytes = s->section == QM_AT_TENSORS ? QM_TENSOR_BYTES : QM_NODE_BYTES;
    size_t const at = (s->section ? record(qm, s->section, bytes, s->index) : 0) + s->field;
    memcpy(qm + at, &s->value, 4);
    net_reseal(qm, count);
    qi_status const st = try_bytes(qm, count, &seed);
    ck_assert_msg(st == s->status, "case %d, %08x at byte %zu: %s, expected %s", _i,
                  (unsigned)s->value, at, qi_status_name(st), qi_status_name(s->status));
    free(qm);
}
END_TEST

/* ------------------------------------------------------------------ the host's files */

START_TEST(test_host_files)
{
    char path[TEST_PATH_MAX];
    qat_error err;
    size_t count;
    qi_host *host = NULL;
    uint8_t *qm = small_model(&count);
    test_folder_make();
    test_temp_path(path, folder, "model.qm");

    ck_assert_int_eq(qi_host_open(&host, path, NULL, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "model.qm"));
    ck_assert_ptr_null(host);
    ck_assert_int_eq(qi_host_open(&host, folder, NULL, &err), QAT_ERR_IO);
    ck_assert_int_eq(qi_host_open(&host, path, NULL, NULL), QAT_ERR_IO);
    test_temp_write(folder, "model.qm", qm, 0);
    ck_assert_int_eq(qi_host_open(&host, path, NULL, &err), QAT_ERR_FORMAT);
    test_temp_write(folder, "model.qm", qm, count - 1);
    ck_assert_int_eq(qi_host_open(&host, path, NULL, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "truncated"));
    test_temp_write(folder, "model.qm", "GIF89a, and more that is no model", 33);
    ck_assert_int_eq(qi_host_open(&host, path, NULL, &err), QAT_ERR_FORMAT);

    test_temp_write(folder, "model.qm", qm, count);
    ck_assert_msg(qi_host_open(&host, path, NULL, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qi_self_test(host->model, host->arena, NULL), QI_OK);
    ck_assert_int_eq(qi_label_count(host->model), 2);
    ck_assert_str_eq(qi_label_at(host->model, 1), "second");
    ck_assert_str_eq(qi_model_description(host->model), "a test");
    qi_host_close(host);
    qi_host_options later = {.struct_size = sizeof later};
    ck_assert_int_eq(qi_host_open(&host, path, &later, NULL), QAT_OK);
    qi_host_close(host);
    later.struct_size++;
    ck_assert_int_eq(qi_host_open(&host, path, &later, NULL), QAT_ERR_UNSUPPORTED);
    qi_host_close(NULL);
    test_folder_remove();
    free(qm);
}
END_TEST

/**
 * Each allocation of the host fails once. The file is refused, nothing leaks (ASan), and host is
 * zeroed.
 */
START_TEST(test_allocations_may_fail)
{
    char path[TEST_PATH_MAX];
    qat_error err;
    size_t count;
    qi_host *host = NULL;
    uint8_t *qm = full_model(&count);
    test_folder_make();
    test_temp_path(path, folder, "model.qm");
    test_temp_write(folder, "model.qm", qm, count);
    for (int from_file = 0; from_file < 2; from_file++) {
        bool failed = true;
        int failures = 0;
        for (long n = 0; failed; n++) {
            test_fail_alloc_after(n);
            qat_status const st = from_file
                                      ? qi_host_open(&host, path, NULL, &err)
                                      : qi_host_open_bytes(&host, qm, count, "bytes", NULL, &err);
            failed = test_fail_alloc_stop();
            failures += failed;
            ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
            ck_assert(!failed || !host);
            qi_host_close(host);
        }
        ck_assert_int_eq(failures,
                         from_file ? 8 : 9); /* the host, the copy, model, equal nodes and the table
                                                that finds them, readers, steps, memory */
    }
    test_folder_remove();
    free(qm);
}
END_TEST

/** The core itself: memory too small, misaligned. */
START_TEST(test_model_memory)
{
    size_t count, need = 0;
    uint8_t *qm = small_model(&count);
    uint8_t *aligned = aligned_alloc(16, (count + 31) / 16 * 16);
    ck_assert_ptr_nonnull(aligned);
    memcpy(aligned, qm, count);
    qi_error err;
    qi_model *model;
    ck_assert_int_eq(qi_model_bytes(aligned, count, &need, &err), QI_OK);
    uint8_t *memory = aligned_alloc(16, need + 16);
    ck_assert_ptr_nonnull(memory);
    ck_assert_int_eq(qi_model_init(&model, aligned, count, NULL, memory, need - 1, &err),
                     QI_ERR_MEMORY);
    ck_assert_ptr_null(model);
    ck_assert_int_eq(err.limit, (int64_t)need);
    ck_assert_int_eq(qi_model_init(&model, aligned, count, NULL, memory + 8, need, &err),
                     QI_ERR_MEMORY);
    ck_assert_int_eq(qi_model_init(&model, aligned, count, NULL, memory, need, NULL), QI_OK);
    memmove(aligned + 1, aligned, count);
    ck_assert_int_eq(qi_model_bytes(aligned + 1, count, &need, &err), QI_ERR_MEMORY);
    free(memory);
    free(aligned);
    free(qm);
}
END_TEST

/**
 * A program gives its own list of kernels. The model gets these. If one is missing, its op is
 * named.
 */
START_TEST(test_chosen_kernels)
{
    static const qi_kernel *const all[] = {
#define POINTER(name) &qi_kernel_##name,
        QI_KERNELS(POINTER)};
    size_t count, need = 0;
    uint8_t *qm = small_model(&count);
    uint8_t *aligned = aligned_alloc(16, (count + 31) / 16 * 16);
    ck_assert_ptr_nonnull(aligned);
    memcpy(aligned, qm, count);
    qi_error err;
    qi_model *model;
    ck_assert_int_eq(qi_model_bytes(aligned, count, &need, &err), QI_OK);
    uint8_t *memory = aligned_alloc(16, (need + 15) / 16 * 16);
    ck_assert_ptr_nonnull(memory);
    qi_kernel_list list = {all, sizeof all / sizeof all[0]};
    ck_assert_int_eq(qi_model_init_with(&model, aligned, count, &list, memory, need, &err), QI_OK);
    const qi_kernel *one = qi_node_at(model, 0)->kernel;
    size_t const arena = qi_arena_bytes(model);
    list = (qi_kernel_list){&one, 1}; /* the model has one kind of op */
    ck_assert_int_eq(qi_model_init_with(&model, aligned, count, &list, memory, need, &err), QI_OK);
    ck_assert_ptr_eq(qi_node_at(model, 0)->kernel, one);
    ck_assert_uint_eq(qi_arena_bytes(model), arena);
    list.count = 0;
    ck_assert_int_eq(qi_model_init_with(&model, aligned, count, &list, memory, need, &err),
                     QI_ERR_UNKNOWN_OP);
    ck_assert_str_eq(err.what, one->name);
    ck_assert_int_eq(qi_model_init_with(&model, aligned, count, NULL, memory, need, &err),
                     QI_ERR_UNKNOWN_OP);
    free(memory);
    free(aligned);
    free(qm);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_file");
    TCase *tcase = tcase_create("file");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, test_every_byte);
    tcase_add_test(tcase, test_every_length);
    tcase_add_loop_test(tcase, test_field_limits, 0, N_SPOILED);
    tcase_add_loop_test(tcase, test_epilogue_limits, 0,
                        (int)(sizeof epilogues / sizeof epilogues[0]));
    tcase_add_test(tcase, test_resealed_mutations);
    tcase_add_test(tcase, test_host_files);
    tcase_add_test(tcase, test_allocations_may_fail);
    tcase_add_test(tcase, test_model_memory);
    tcase_add_test(tcase, test_chosen_kernels);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
