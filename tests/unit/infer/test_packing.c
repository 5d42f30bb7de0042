/**
 * Packed codes: the bytes of docs/qm-format.md, every form against a second, simple reader and
 * against the same layer unpacked, on the core and on every instruction set; and what is refused.
 */
#include "base/arena.h"
#include "common/common.h"
#include "common/suite.h"
#include "infer/host/host.h"
#include "infer/model/packing.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ layers */

/** A layer of one op; its weights are tensor WEIGHTS of its graph. */
enum { X, WEIGHTS, BIAS, MULT, SHIFT, Y };

typedef struct layer {
    qat_qgraph *graph;
    codes_of w;
    int32_t dims[4];
    int rank, channels;
    size_t count; /* of weights */
    const uint8_t *codes;
} layer;

static int constant(qat_qgraph *g, codes_of c, int rank, const int32_t *dims, const uint8_t *codes)
{
    qat_error err;
    qat_qtensor t = {.name = "w",
                     .type = c.type,
                     .bits = c.bits,
                     .rank = rank,
                     .scale = 0.5f,
                     .zero_point = c.zero_point,
                     .data = (void *)(uintptr_t)codes,
                     .source_index = -1};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    int const index = qat_qgraph_tensor(g, &t, &err);
    ck_assert_msg(index >= 0, "%s", err.message);
    return index;
}

/** The largest accumulator of inputs -128..127 with zero_point 3, without biases. */
static int64_t largest(const layer *l, bool depthwise)
{
    size_t const run = depthwise ? 1 : l->count / (size_t)l->channels;
    int64_t sums[64] = {0}, most = 0;
    for (size_t i = 0; i < l->count; i++)
        sums[i / run % (size_t)l->channels] +=
            labs((long)code_at(l->codes, i, l->w) - l->w.zero_point);
    for (int c = 0; c < l->channels; c++)
        most = sums[c] * 131 > most ? sums[c] * 131 : most;
    return most;
}

/** Which op, by number. */
enum { FULLY_CONNECTED, CONV2D, DEPTHWISE, TRANSPOSE, OPS };

static layer make_layer(int op, codes_of w, int channels, int depth, const uint8_t *codes)
{
    static const char *const names[] = {"fully_connected", "conv2d", "depthwise_conv2d",
                                        "transpose_conv2d"};
    codes_of const x = {QI_S8, 8, 3};
    int32_t const of[OPS][4] = {{channels, depth, 1, 1},
                                {channels, 2, 1, depth},
                                {1, 2, 2, channels},
                                {channels, 2, 2, depth}};
    int32_t const in[OPS][4] = {
        {3, depth, 1, 1}, {1, 3, 3, depth}, {1, 3, 3, channels}, {1, 2, 2, depth}};
    int32_t const out[OPS][4] = {
        {3, channels, 1, 1}, {1, 2, 3, channels}, {1, 2, 2, channels}, {1, 4, 4, channels}};
    int32_t const params[OPS][9] = {{-128, 127},
                                    {1, 1, 1, 1, 0, 0, 1, -128, 127},
                                    {1, 1, 1, 1, 0, 0, 1, -128, 127},
                                    {2, 2, 0, 0, -128, 127}};
    static const int n_params[OPS] = {2, 9, 9, 6};
    int const rank = op == FULLY_CONNECTED ? 2 : 4;
    int32_t const mult = 1 << 30, shift = -6, bias[64] = {0};
    layer l = {
        .graph = qat_qgraph_new(), .w = w, .rank = rank, .channels = channels, .codes = codes};
    l.graph->form.fixed = true; /* tests change fields in their places */
    memcpy(l.dims, of[op], sizeof l.dims);
    l.count = product_of(l.dims, 4);
    net_activation(l.graph, x, rank, in[op]);
    constant(l.graph, w, rank, of[op], codes);
    net_s32(l.graph, channels, 1, bias);
    net_s32(l.graph, 1, 1, &mult);
    net_s32(l.graph, 1, 1, &shift);
    net_activation(l.graph, x, rank, out[op]);
    net_op(l.graph, names[op], QI_ROUND_TWICE, 5, (const int[]){X, WEIGHTS, BIAS, MULT, SHIFT}, Y,
           n_params[op], params[op], largest(&l, op == DEPTHWISE));
    net_io(l.graph, X, Y);
    return l;
}

/* ------------------------------------------------------------------ files */

/** A .qm that the core has read. */
typedef struct device {
    uint8_t *qm, *memory, *arena;
    qi_model *model;
} device;

static device open_core(const uint8_t *qm, size_t count)
{
    device d = {.qm = aligned_alloc(QI_ALIGN, (count / QI_ALIGN + 1) * QI_ALIGN)};
    qi_error err;
    size_t need = 0;
    memcpy(d.qm, qm, count);
    ck_assert_int_eq(qi_model_bytes(d.qm, count, &need, NULL), QI_OK);
    d.memory = aligned_alloc(QI_ALIGN, need);
    ck_assert_msg(qi_model_init(&d.model, d.qm, count, NULL, d.memory, need, &err) == QI_OK, "%s",
                  err.what);
    d.arena = aligned_alloc(QI_ALIGN, qi_arena_bytes(d.model));
    return d;
}

static void close_core(device *d)
{
    free(d->qm);
    free(d->memory);
    free(d->arena);
}

static const uint8_t *record_of(const uint8_t *qm, int tensor)
{
    return qm + QM_HEADER_BYTES + (size_t)tensor * QM_TENSOR_BYTES;
}

static uint32_t u32_at(const uint8_t *p)
{
    return qm_u32(p);
}

/** The bytes of the weights in a file. */
static const uint8_t *weights_in(const uint8_t *qm)
{
    return qm + u32_at(qm + QM_AT_DATA) + u32_at(record_of(qm, WEIGHTS) + QM_TENSOR_DATA);
}

/* ------------------------------------------------------------------ the document's bytes */

typedef struct example {
    codes_of w;
    int n;
    int8_t codes[6];
    uint8_t packing, listed;
    uint32_t size;
    uint8_t bytes[16];
} example;

static const example examples[] = {
    {{QI_S8, 4, 0}, 3, {-7, 0, 5}, 4, 0, 2, {0x81, 0x0d}},
    {{QI_S8, 3, 0}, 4, {-3, 0, 3, -1}, 3, 0, 2, {0xe1, 0x07}},
    {{QI_S8, 2, 0}, 3, {-1, 1, 1}, 2, 0, 1, {0x3d}},
    {{QI_U8, 4, 8}, 3, {1, 0, 15}, 4, 0, 2, {0x01, 0x0f}},
};

START_TEST(examples_are_written)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const example *e = &examples[i];
        size_t count;
        layer l = make_layer(FULLY_CONNECTED, e->w, 1, e->n, (const uint8_t *)e->codes);
        uint8_t *qm = net_write(l.graph, NULL, NULL, &count);
        const uint8_t *record = record_of(qm, WEIGHTS);
        ck_assert_int_eq(record[QM_TENSOR_PACKING], e->packing);
        ck_assert_int_eq(record[QM_TENSOR_LISTED], e->listed);
        ck_assert_uint_eq(u32_at(record + QM_TENSOR_SIZE), e->size);
        ck_assert_mem_eq(weights_in(qm), e->bytes, e->size);
        free(qm);
        qat_qgraph_free(l.graph);
    }
}
END_TEST

/** Rows so long that a list pays. */
START_TEST(lists_are_written)
{
    static const int8_t powers[] = {-8, -4, -2, -1, 0, 1, 2, 4, 8}, trits[] = {-1, 0, 1},
                        signs[] = {-1, 1};
    static const struct {
        const int8_t *values;
        int n, bits;
        uint8_t packing, listed;
        size_t row;
        uint8_t first; /* byte of a row, whose indices rise from 0 */
    } cases[] = {{powers, 9, 5, 4, 9, 50, 0x10},
                 {trits, 3, 2, QI_PACKING_TRITS, 3, 20, 0 + 3 + 2 * 9 + 0 + 81},
                 {signs, 2, 2, 1, 2, 13, 0xaa}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count;
        uint8_t codes[200];
        for (int k = 0; k < 200; k++)
            codes[k] = (uint8_t)cases[i].values[k % 100 % cases[i].n];
        layer l = make_layer(FULLY_CONNECTED, (codes_of){QI_S8, cases[i].bits, 0}, 2, 100, codes);
        uint8_t *qm = net_write(l.graph, NULL, NULL, &count);
        const uint8_t *record = record_of(qm, WEIGHTS), *at = weights_in(qm);
        ck_assert_int_eq(record[QM_TENSOR_PACKING], cases[i].packing);
        ck_assert_int_eq(record[QM_TENSOR_LISTED], cases[i].listed);
        ck_assert_uint_eq(u32_at(record + QM_TENSOR_SIZE), (size_t)cases[i].n + 2 * cases[i].row);
        ck_assert_mem_eq(at, cases[i].values, (size_t)cases[i].n);
        ck_assert_int_eq(at[cases[i].n], cases[i].first);
        ck_assert_int_eq(at[(size_t)cases[i].n + cases[i].row], cases[i].first);
        free(qm);
        qat_qgraph_free(l.graph);
    }
}
END_TEST

/* ------------------------------------------------------------------ packed and unpacked */

/** Every code, and any part of a row. */
static void check_codes(const layer *l, const qi_tensor *t, uint64_t *seed)
{
    uint8_t *codes = malloc(l->count);
    qi_rows const rows = qi_rows_of(t, t->data);
    ck_assert_uint_eq(qi_unpacked_bytes(t), l->count);
    qi_unpack(t, codes);
    ck_assert_mem_eq(codes, l->codes, l->count);
    for (int i = 0; i < 40; i++) {
        size_t const row = test_random(seed) % (uint32_t)t->dims[0];
        size_t const at = test_random(seed) % (uint32_t)rows.values;
        size_t const n = 1 + test_random(seed) % (uint32_t)(rows.values - at);
        qi_unpack_row(&rows, row, at, n, codes);
        ck_assert_mem_eq(codes, l->codes + row * rows.values + at, n);
    }
    free(codes);
}

/** The output of one run of the core. */
static void run_core(const uint8_t *qm, size_t count, const void *x, void *y)
{
    device d = open_core(qm, count);
    memset(d.arena, 0xa5, qi_arena_bytes(d.model));
    qi_run(d.model, d.arena, &x, &y);
    close_core(&d);
}

static void run_host(const uint8_t *qm, size_t count, const qi_host_options *o, size_t unpacked,
                     const void *x, void *y)
{
    qat_error err;
    qi_host *host = NULL;
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "layer", o, &err), "%s", err.message);
    ck_assert_uint_eq(qi_host_unpacked_bytes(host), (unpacked + 15) / 16 * 16);
    ck_assert_int_eq(qi_tensor_at(qi_host_model(host), WEIGHTS)->is_packed, o->keep_packed);
    qi_host_run(host, &x, &y);
    qi_host_close(host);
}

enum { MOST_VALUES = 4096 };

/** Keep the packed layer with its answer, for the engine on other processors (engine/replay.c). */
static void keep(layer *l, int number, const uint8_t *x, const uint8_t *y)
{
    char name[32];
    size_t count;
    l->graph->form = (qat_qm_form){0}; /* compact: narrow shifts, too */
    uint8_t *qm = net_write(l->graph, x, y, &count);
    l->graph->form.fixed = true;
    snprintf(name, sizeof name, "packed_%d", number);
    test_keep_model("unit", name, qm, count);
    free(qm);
}

/** The layer packed and unpacked, everywhere. Returns the packing. */
static int compare(layer *l, int number, uint64_t *seed)
{
    uint8_t x[MOST_VALUES], y[MOST_VALUES], expected[MOST_VALUES];
    size_t packed_bytes, plain_bytes, outputs = qat_qtensor_bytes(&l->graph->tensors[Y]);
    uint8_t *packed = net_write(l->graph, NULL, NULL, &packed_bytes);
    l->graph->form.unpacked = true;
    uint8_t *plain = net_write(l->graph, NULL, NULL, &plain_bytes);
    ck_assert_int_eq(record_of(plain, WEIGHTS)[QM_TENSOR_PACKING], 0);
    int const packing = record_of(packed, WEIGHTS)[QM_TENSOR_PACKING];
    device d = open_core(packed, packed_bytes);
    if (packing)
        check_codes(l, qi_tensor_at(d.model, WEIGHTS), seed);
    ck_assert_uint_eq(qi_bytes_in_file(qi_tensor_at(d.model, WEIGHTS)),
                      u32_at(record_of(packed, WEIGHTS) + QM_TENSOR_SIZE));
    close_core(&d);
    fill_codes(x, sizeof x, (codes_of){QI_S8, 8, 0}, seed);
    run_core(plain, plain_bytes, x, expected);
    run_core(packed, packed_bytes, x, y);
    ck_assert_mem_eq(y, expected, outputs);
    for (int i = 0; qi_isa_name(i); i++) {
        qi_host_options o = {.struct_size = sizeof o, .isa = qi_isa_name(i)};
        if (!qi_isa_runs_here(o.isa))
            continue;
        run_host(packed, packed_bytes, &o, packing ? l->count : 0, x, y);
        ck_assert_mem_eq(y, expected, outputs);
        o.keep_packed = packing && strcmp(o.isa, "scalar") == 0;
        if (o.keep_packed)
            run_host(packed, packed_bytes, &o, 0, x, y);
        ck_assert_mem_eq(y, expected, outputs);
    }
    if (packing && number % 8 == 0)
        keep(l, number, x, expected);
    free(packed);
    free(plain);
    return packing;
}

/** Random codes, of at most `different` values. */
static void fill_few(uint8_t *codes, size_t n, codes_of w, int different, uint64_t *seed)
{
    uint8_t some[256];
    for (int i = 0; i < different; i++)
        some[i] = (uint8_t)test_random_in(seed, codes_lo(w), codes_hi(w));
    for (size_t i = 0; i < n; i++)
        codes[i] = some[test_random(seed) % (uint32_t)different];
}

START_TEST(packed_layers_are_equal)
{
    enum { LAYERS = 1200 };
    uint64_t seed = 11;
    int met[QI_PACKING_TRITS + 1] = {0};
    static uint8_t codes[MOST_VALUES];
    for (int i = 0; i < LAYERS; i++) {
        codes_of w = {test_random(&seed) & 1 ? QI_S8 : QI_U8, 0, 0};
        w.bits = w.type == QI_S8 ? 2 + i % 7 : 1 + i % 8;
        w.zero_point = test_random_in(&seed, codes_lo(w), codes_hi(w));
        int const op = (int)(test_random(&seed) % OPS), channels = test_random_in(&seed, 1, 9);
        int const depth = i % 10                  ? test_random_in(&seed, 1, 40)
                          : op == FULLY_CONNECTED ? test_random_in(&seed, 230, 400)
                                                  : test_random_in(&seed, 100, 110);
        int const different = i % 3 ? 1 << w.bits : 1 + (int)(test_random(&seed) % 12);
        fill_few(codes, sizeof codes, w, different, &seed);
        layer l = make_layer(op, w, channels, depth, codes);
        met[compare(&l, i, &seed)]++;
        qat_qgraph_free(l.graph);
    }
    printf("%d layers, packed and not, on every instruction set; not packed %d, by bits", LAYERS,
           met[0]);
    for (int p = 1; p < QI_PACKING_TRITS; p++)
        printf(" %d: %d", p, met[p]);
    printf(", of three values %d; 0 bytes differing\n", met[QI_PACKING_TRITS]);
    for (int p = 0; p <= QI_PACKING_TRITS; p++)
        ck_assert_int_gt(met[p], 10);
}
END_TEST

/* ------------------------------------------------------------------ what is refused */

/** A layer [2, 7], packed in this way; one value of its rows is in the padding. */
typedef struct packed_file {
    uint8_t *qm;
    size_t count;
} packed_file;

static packed_file file_of(int bits, int different)
{
    uint8_t codes[2 * 7 * 10];
    packed_file f;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)((int)(i % (size_t)different) - different / 2);
    layer l = make_layer(FULLY_CONNECTED, (codes_of){QI_S8, bits, 0}, 2, 7 * 9, codes);
    f.qm = net_write(l.graph, NULL, NULL, &f.count);
    qat_qgraph_free(l.graph);
    return f;
}

static qi_status changed_at(packed_file f, uint8_t *byte, uint8_t value)
{
    uint8_t const before = *byte;
    *byte = value;
    net_reseal(f.qm, f.count);
    qi_status const st = net_status(f.qm, f.count);
    *byte = before;
    return st;
}

static qi_status changed_field(packed_file f, int tensor, int at, uint8_t value)
{
    return changed_at(f, (uint8_t *)(uintptr_t)record_of(f.qm, tensor) + at, value);
}

static qi_status changed_data(packed_file f, size_t at, uint8_t value)
{
    return changed_at(f, (uint8_t *)(uintptr_t)weights_in(f.qm) + at, value);
}

START_TEST(wrong_fields_are_refused)
{
    packed_file f = file_of(4, 16);
    ck_assert_int_eq(record_of(f.qm, WEIGHTS)[QM_TENSOR_PACKING], 4);
    ck_assert_int_eq(net_status(f.qm, f.count), QI_OK);
    for (int packing = 0; packing < 256; packing++)
        if (packing != 4)
            ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_PACKING, (uint8_t)packing),
                             QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_LISTED, 1), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_LISTED, 17), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_RESERVED, 1), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_BITS, 5), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_SIZE, 14), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, X, QM_TENSOR_PACKING, 8), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, X, QM_TENSOR_LISTED, 3), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, BIAS, QM_TENSOR_PACKING, 4), QI_ERR_FORMAT);
    free(f.qm);
}
END_TEST

/** Scales of channels have 32 bits each: as many bytes would be read beyond narrow ones. */
START_TEST(narrow_scales_are_refused)
{
    enum { CHANNELS = 10, SCALES = Y + 1 };
    uint8_t codes[CHANNELS * 7] = {0};
    float scales[CHANNELS];
    packed_file f;
    for (int i = 0; i < CHANNELS; i++)
        scales[i] = 0.5F;
    layer l = make_layer(FULLY_CONNECTED, (codes_of){QI_S8, 8, 0}, CHANNELS, 7, codes);
    l.graph->tensors[WEIGHTS].channel_scales = scales;
    l.graph->tensors[WEIGHTS].n_channels = CHANNELS;
    f.qm = net_write(l.graph, NULL, NULL, &f.count);
    qat_qgraph_free(l.graph);
    ck_assert_int_eq(net_status(f.qm, f.count), QI_OK);
    uint8_t *record = (uint8_t *)(uintptr_t)record_of(f.qm, SCALES);
    ck_assert_int_eq(record[QM_TENSOR_TYPE], QI_S32);
    record[QM_TENSOR_SIZE] = CHANNELS;
    ck_assert_int_eq(changed_at(f, record + QM_TENSOR_PACKING, QM_NARROW), QI_ERR_FORMAT);
    free(f.qm);
}
END_TEST

START_TEST(wrong_bytes_are_refused)
{
    packed_file f = file_of(4, 16); /* 63 values: 4 bits of padding in byte 31 */
    ck_assert_int_eq(changed_data(f, 31, (uint8_t)(weights_in(f.qm)[31] | 0x10)), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_data(f, 63, (uint8_t)(weights_in(f.qm)[63] | 0x80)), QI_ERR_FORMAT);
    int overflows = 0; /* other codes, whose sums are not the ones that the file says */
    for (size_t i = 0; i < 31; i++)
        overflows += changed_data(f, i, 0) == QI_ERR_OVERFLOW;
    ck_assert_int_gt(overflows, 0);
    free(f.qm);

    f = file_of(5, 9); /* a list of 9 */
    ck_assert_int_eq(record_of(f.qm, WEIGHTS)[QM_TENSOR_LISTED], 9);
    ck_assert_int_eq(changed_data(f, 0, 0xfe), QI_ERR_FORMAT); /* does not rise */
    ck_assert_int_eq(changed_data(f, 8, 3), QI_ERR_FORMAT);    /* twice */
    ck_assert_int_eq(changed_data(f, 8, 16), QI_ERR_FORMAT);   /* has 6 bits */
    ck_assert_int_eq(changed_data(f, 0, 0xef), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_data(f, 9, 0x09), QI_ERR_FORMAT); /* index 9 */
    ck_assert_int_eq(changed_data(f, 9, 0x90), QI_ERR_FORMAT);
    free(f.qm);

    f = file_of(2, 3); /* five digits a byte; 63 values: the last byte has three */
    ck_assert_int_eq(record_of(f.qm, WEIGHTS)[QM_TENSOR_PACKING], QI_PACKING_TRITS);
    ck_assert_int_eq(changed_data(f, 3, 243), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_data(f, 3, 255), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_data(f, 3 + 12, 27), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_LISTED, 0), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_field(f, WEIGHTS, QM_TENSOR_LISTED, 4), QI_ERR_FORMAT);
    free(f.qm);

    f = file_of(2, 2); /* bits: 1, and a bit of padding */
    ck_assert_int_eq(record_of(f.qm, WEIGHTS)[QM_TENSOR_PACKING], 1);
    ck_assert_int_eq(changed_data(f, 2 + 7, (uint8_t)(weights_in(f.qm)[2 + 7] | 0x80)),
                     QI_ERR_FORMAT);
    free(f.qm);
}
END_TEST

/** Three values of which the file lists two: digit 2 is no index. */
START_TEST(digits_beyond_the_list_are_refused)
{
    packed_file f = file_of(2, 2);
    uint8_t *record = (uint8_t *)(uintptr_t)record_of(f.qm, WEIGHTS);
    uint8_t *data = (uint8_t *)(uintptr_t)weights_in(f.qm);
    uint8_t before[2 + 2 * 8];
    memcpy(before, data, sizeof before);
    record[QM_TENSOR_PACKING] = QI_PACKING_TRITS;
    record[QM_TENSOR_SIZE] = 2 + 2 * 13;
    net_reseal(f.qm, f.count);
    ck_assert_int_ne(net_status(f.qm, f.count), QI_OK);
    free(f.qm);
}
END_TEST

/** Codes that other inputs read are not packed; a file that packs them is refused. */
START_TEST(only_weights_are_packed)
{
    codes_of const x = {QI_S8, 8, 0}, few = {QI_S8, 4, 0};
    int32_t const dims[] = {4, 16}, params[] = {0, 1 << 30, 0, 1 << 30, 0, 1 << 30, 1, -128, 127};
    uint64_t seed = 3;
    size_t count;
    qat_qgraph *g = qat_qgraph_new();
    g->form.fixed = true; /* tests change fields in their places */
    int const a = net_activation(g, x, 2, dims), b = net_constant(g, few, 2, dims, &seed, NULL);
    int const y = net_activation(g, x, 2, dims);
    net_op(g, "add", QI_ROUND_TWICE, 2, (const int[]){a, b}, y, 9, params, 0);
    net_io(g, a, y);
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    uint8_t *record = (uint8_t *)(uintptr_t)record_of(qm, b);
    ck_assert_int_eq(record[QM_TENSOR_PACKING], 0);
    record[QM_TENSOR_PACKING] = 4;
    record[QM_TENSOR_SIZE] = 4 * 8;
    net_reseal(qm, count);
    ck_assert_int_eq(net_status(qm, count), QI_ERR_SHAPE);
    free(qm);
    qat_qgraph_free(g);
}
END_TEST

/** A second tensor of the same packed bytes must mean the same codes. */
START_TEST(shared_codes_are_packed_in_one_way)
{
    uint8_t codes[2 * 64];
    size_t count;
    qat_error err;
    memset(codes, 3, sizeof codes);
    codes[0] = 0xf8;
    layer l = make_layer(FULLY_CONNECTED, (codes_of){QI_S8, 4, 0}, 2, 64, codes);
    qat_qtensor const of = l.graph->tensors[WEIGHTS];
    int const twin = qat_qgraph_tensor(l.graph, &of, &err);
    l.graph->ops[0].inputs[1] = WEIGHTS;
    uint8_t *qm = net_write(l.graph, NULL, NULL, &count);
    ck_assert_int_eq(record_of(qm, twin)[QM_TENSOR_PACKING],
                     record_of(qm, WEIGHTS)[QM_TENSOR_PACKING]);
    ck_assert_int_ne(record_of(qm, WEIGHTS)[QM_TENSOR_PACKING], 0);
    ck_assert_int_eq(net_status(qm, count), QI_OK);
    packed_file const f = {qm, count};
    ck_assert_int_eq(changed_field(f, twin, QM_TENSOR_TYPE, QI_U8), QI_ERR_FORMAT);
    free(qm);
    l.graph->tensors[twin].dims[0] = 4; /* another first dimension: not packed at all */
    l.graph->tensors[twin].dims[1] = 32;
    qm = net_write(l.graph, NULL, NULL, &count);
    ck_assert_int_eq(record_of(qm, WEIGHTS)[QM_TENSOR_PACKING], 0);
    ck_assert_int_eq(record_of(qm, twin)[QM_TENSOR_PACKING], 0);
    ck_assert_int_eq(net_status(qm, count), QI_OK);
    free(qm);
    qat_qgraph_free(l.graph);
}
END_TEST

/** Constants that begin at one place and end at two. */
START_TEST(beginnings_of_codes_are_constants_of_their_own)
{
    enum { ROWS = 2, DEPTH = 16 };
    uint8_t codes[ROWS * DEPTH], back[ROWS * DEPTH];
    size_t count;
    qat_error err;
    qi_host *host = NULL;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)((int)(i * 7 % 15) - 7);
    layer l = make_layer(FULLY_CONNECTED, (codes_of){QI_S8, 4, 0}, ROWS, DEPTH, codes);
    qat_qtensor const of = l.graph->tensors[WEIGHTS];
    int const twin = qat_qgraph_tensor(l.graph, &of, &err);
    l.graph->ops[0].inputs[1] = twin;
    uint8_t *qm = net_write(l.graph, NULL, NULL, &count);
    uint8_t *record = (uint8_t *)(uintptr_t)record_of(qm, WEIGHTS);
    record[QM_TENSOR_DIMS] = 1;
    record[QM_TENSOR_SIZE] /= ROWS;
    net_reseal(qm, count);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "net", NULL, &err), "%s", err.message);
    ck_assert_uint_eq(qi_host_unpacked_bytes(host), (1 + ROWS) * DEPTH);
    const qi_model *m = qi_host_model(host);
    ck_assert_uint_eq(qi_tensor_at(m, WEIGHTS)->bytes, DEPTH);
    ck_assert_mem_eq(qi_tensor_at(m, WEIGHTS)->data, codes, DEPTH);
    ck_assert_uint_eq(qi_tensor_at(m, twin)->bytes, ROWS * DEPTH);
    ck_assert_mem_eq(qi_tensor_at(m, twin)->data, codes, ROWS * DEPTH);
    qi_unpack(qi_tensor_at(m, twin), back); /* which the host has unpacked already */
    ck_assert_mem_eq(back, codes, ROWS * DEPTH);
    qi_host_close(host);
    free(qm);
    qat_qgraph_free(l.graph);
}
END_TEST

/** What a host unpacks counts as memory. */
START_TEST(unpacked_codes_are_limited)
{
    enum { CHANNELS = 8, DEPTH = 400 };
    static uint8_t codes[CHANNELS * DEPTH];
    size_t count;
    qat_error err;
    qi_host *host = NULL;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = i % 2 ? 1 : 0xff;
    layer l = make_layer(FULLY_CONNECTED, (codes_of){QI_S8, 2, 0}, CHANNELS, DEPTH, codes);
    uint8_t *qm = net_write(l.graph, NULL, NULL, &count);
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", NULL, &err), QAT_OK);
    size_t const model = qi_host_sizes(host).model;
    ck_assert_uint_eq(qi_host_unpacked_bytes(host), CHANNELS * DEPTH);
    qi_host_close(host);
    qi_host_options const o = {.limits = {.memory = model + CHANNELS * DEPTH - 1}};
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &o, &err), QAT_ERR_LIMIT);
    qi_host_options const kept = {.struct_size = sizeof kept, .keep_packed = 1};
    ck_assert_int_eq(qi_host_open_bytes(&host, qm, count, "net", &kept, &err), QAT_ERR_ARGUMENT);
    free(qm);
    qat_qgraph_free(l.graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("packing");
    TCase *tc = tcase_create("packing");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, examples_are_written);
    tcase_add_test(tc, lists_are_written);
    tcase_add_test(tc, packed_layers_are_equal);
    tcase_add_test(tc, wrong_fields_are_refused);
    tcase_add_test(tc, narrow_scales_are_refused);
    tcase_add_test(tc, wrong_bytes_are_refused);
    tcase_add_test(tc, digits_beyond_the_list_are_refused);
    tcase_add_test(tc, only_weights_are_packed);
    tcase_add_test(tc, shared_codes_are_packed_in_one_way);
    tcase_add_test(tc, beginnings_of_codes_are_constants_of_their_own);
    tcase_add_test(tc, unpacked_codes_are_limited);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
