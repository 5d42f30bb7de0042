/** The models among the bombs: small files that ask for much memory or much work. */
#include "hostile/bombs.h"

#include "base/bytes.h"
#include "infer/model/qm_layout.h"

#include <stdlib.h>
#include <string.h>

/** A .qm while it is made. Tensors may name any place of the data section. */
typedef struct model {
    qat_writer tensors, nodes, ints, strings, data;
} model;

static uint32_t add_string(model *m, const char *text)
{
    uint32_t const at = (uint32_t)m->strings.count;
    qat_write_bytes(&m->strings, text, strlen(text) + 1);
    return at;
}

static uint32_t add_data(model *m, const void *bytes, size_t count)
{
    qat_write_align(&m->data, QM_ALIGNMENT);
    uint32_t const at = (uint32_t)m->data.count;
    qat_write_bytes(&m->data, bytes, count);
    return at;
}

enum { U8, S8, S32 }; /* qi_type */
static const uint32_t ACTIVATION = UINT32_MAX;

/** Append a tensor; its constant is at `data`, or it is an activation. */
static void add_tensor(model *m, uint8_t type, uint8_t bits, const int32_t dims[4], uint32_t data)
{
    qat_writer *w = &m->tensors;
    uint32_t bytes = type == S32 ? 4 : 1;
    uint8_t rank = 4;
    for (int i = 0; i < 4; i++)
        bytes *= (uint32_t)dims[i];
    while (rank > 1 && dims[rank - 1] == 1)
        rank--;
    qat_write_u32(w, 0);
    qat_write_u8(w, type);
    qat_write_u8(w, data != ACTIVATION);
    qat_write_u8(w, dims[3] == 1 && dims[2] == 1 ? rank : 4);
    qat_write_u8(w, bits);
    for (int i = 0; i < 4; i++)
        qat_write_u32(w, (uint32_t)dims[i]);
    qat_write_u32(w, 0);
    qat_write_f32(w, 1);
    qat_write_u32(w, UINT32_MAX); /* no channel scales */
    qat_write_u32(w, UINT32_MAX); /* no source */
    qat_write_u32(w, data == ACTIVATION ? 0 : data);
    qat_write_u32(w, bytes);
    qat_write_f32(w, 0);
    qat_write_f32(w, 0);
    qat_write_u64(w, 0);
}

static void add_range(qat_writer *to, qat_writer *ints, int n, const int32_t *values)
{
    qat_write_u32(to, (uint32_t)(ints->count / 4));
    qat_write_u32(to, (uint32_t)n);
    for (int i = 0; i < n; i++)
        qat_write_u32(ints, (uint32_t)values[i]);
}

static void add_node(model *m, uint32_t op, int n_in, const int32_t *in, int32_t out, int n_params,
                     const int32_t *params, uint32_t rounding, uint64_t max_accumulator)
{
    qat_write_u32(&m->nodes, op);
    qat_write_u32(&m->nodes, 0);
    add_range(&m->nodes, &m->ints, n_in, in);
    add_range(&m->nodes, &m->ints, 1, &out);
    add_range(&m->nodes, &m->ints, n_params, params);
    qat_write_u32(&m->nodes, rounding);
    qat_write_u32(&m->nodes, 0);
    qat_write_u64(&m->nodes, max_accumulator);
}

static void add_section(qat_writer *w, size_t place, const qat_writer *section, size_t record)
{
    qat_write_align(w, QM_ALIGNMENT);
    qat_patch_u32(w, place, (uint32_t)w->count);
    qat_patch_u32(w, place + 4, (uint32_t)(section->count / record));
    qat_write_bytes(w, section->bytes, section->count);
}

/** Put the file together with the tensors that are its inputs and outputs, and write it. */
static void finish_with(model *m, int n, const int32_t *inputs, const int32_t *outputs,
                        int n_epilogue, const int32_t *epilogue, const char *dir, const char *name)
{
    qat_writer w = {0};
    uint8_t header[QM_HEADER_BYTES] = {0};
    memcpy(header, QM_MAGIC, QM_MAGIC_BYTES);
    qat_write_bytes(&w, header, sizeof header);
    qat_patch_u32(&w, QM_AT_VERSION, QM_VERSION);
    qat_writer io = {0}, after = {0};
    add_range(&io, &m->ints, n, inputs);
    add_range(&io, &m->ints, n, outputs);
    memcpy(w.bytes + QM_AT_INPUTS, io.bytes, io.count);
    if (n_epilogue)
        add_range(&after, &m->ints, n_epilogue, epilogue);
    if (n_epilogue)
        memcpy(w.bytes + QM_AT_EPILOGUE, after.bytes, after.count);
    add_section(&w, QM_AT_TENSORS, &m->tensors, QM_TENSOR_BYTES);
    add_section(&w, QM_AT_NODES, &m->nodes, QM_NODE_BYTES);
    add_section(&w, QM_AT_INTS, &m->ints, 4);
    add_section(&w, QM_AT_STRINGS, &m->strings, 1);
    add_section(&w, QM_AT_DATA, &m->data, 1);
    qat_patch_u32(&w, QM_AT_FILE_BYTES, (uint32_t)w.count);
    uint32_t crc = qm_crc32(0, w.bytes, QM_AT_CRC);
    crc = qm_crc32(crc, w.bytes + QM_AT_CRC + 4, w.count - QM_AT_CRC - 4);
    qat_patch_u32(&w, QM_AT_CRC, crc);
    bomb_write(dir, name, w.bytes, w.count);
    qat_writer *all[] = {&w, &io, &after, &m->tensors, &m->nodes, &m->ints, &m->strings, &m->data};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        qat_writer_free(all[i]);
}

static void finish(model *m, int32_t input, int32_t output, const char *dir, const char *name)
{
    finish_with(m, 1, &input, &output, 0, NULL, dir, name);
}

/* ------------------------------------------------------------------ shared weights */

enum { SIDE = 1024, LAYERS = 4096, BIAS = 1 };

/** Constants of a fully connected layer of SIDE x SIDE; returns the largest accumulator. */
static uint64_t add_layer_constants(model *m, int layers_of_bias)
{
    int8_t *weights = malloc(SIDE * SIDE);
    int32_t *numbers = calloc(SIDE, sizeof *numbers);
    uint32_t most = 0;
    for (int o = 0; o < SIDE; o++) {
        uint32_t sum = 0;
        for (int i = 0; i < SIDE; i++) {
            int const w = (o * 31 + i * 17 + o * i) % 15 - 7;
            weights[o * SIDE + i] = (int8_t)w;
            sum += (uint32_t)abs(w);
        }
        most = sum > most ? sum : most;
    }
    add_tensor(m, S8, 8, (const int32_t[]){SIDE, SIDE, 1, 1}, add_data(m, weights, SIDE * SIDE));
    int32_t const one = 1 << 30, shift = -9;
    add_tensor(m, S32, 32, (const int32_t[]){1, 1, 1, 1}, add_data(m, &one, sizeof one));
    add_tensor(m, S32, 32, (const int32_t[]){1, 1, 1, 1}, add_data(m, &shift, sizeof shift));
    for (int i = 0; i < layers_of_bias; i++) {
        for (int o = 0; o < SIDE; o++)
            numbers[o] = (o + i) % 2 ? BIAS : -BIAS;
        add_tensor(m, S32, 32, (const int32_t[]){SIDE, 1, 1, 1},
                   add_data(m, numbers, SIDE * sizeof *numbers));
    }
    free(weights);
    free(numbers);
    return UINT64_C(255) * most + BIAS;
}

/**
 * LAYERS layers with the same weights, with one bias for all of them or one for each, and with one
 * clamp or, as 64 x 64 are LAYERS, one for each.
 */
static void shared_weights(const char *dir, const char *name, int biases, int clamps)
{
    model m = {0};
    qat_write_u8(&m.strings, 0);
    uint32_t const op = add_string(&m, "fully_connected");
    uint64_t const most = add_layer_constants(&m, biases);
    int32_t const first = 3 + biases;
    for (int i = 0; i <= LAYERS; i++)
        add_tensor(&m, U8, 8, (const int32_t[]){1, SIDE, 1, 1}, ACTIVATION);
    for (int i = 0; i < LAYERS; i++) {
        int32_t const in[] = {first + i, 0, 3 + i % biases, 1, 2};
        int32_t const clamp[] = {i % clamps / 64, 255 - i % clamps % 64};
        add_node(&m, op, 5, in, first + i + 1, 2, clamp, 1, most);
    }
    finish(&m, first, first + LAYERS, dir, name);
}

/* ------------------------------------------------------------------ shared constants */

enum { CONSTANT = 17 << 20, SHARERS = 860 };

/** SHARERS tensors with the same constant, or with one that begins `step` bytes later each. */
static void shared_constants(const char *dir, const char *name, uint32_t step)
{
    model m = {0};
    int32_t const dims[] = {1, 4, 1, 1}, shape[] = {CONSTANT - (int32_t)(step * SHARERS), 1, 1, 1};
    uint8_t *zeros = calloc(CONSTANT, 1);
    qat_write_u8(&m.strings, 0);
    uint32_t const op = add_string(&m, "reshape");
    uint32_t const data = add_data(&m, zeros, CONSTANT);
    add_tensor(&m, U8, 8, dims, ACTIVATION);
    add_tensor(&m, U8, 8, dims, ACTIVATION);
    for (uint32_t i = 0; i < SHARERS; i++)
        add_tensor(&m, U8, 4, shape, data + step * i);
    add_node(&m, op, 1, (const int32_t[]){0}, 1, 0, NULL, 0, 0);
    finish(&m, 0, 1, dir, name);
    free(zeros);
}

/* ------------------------------------------------------------------ work */

/** A max pool of one window of 2^22 pixels for each of 2^28 values, about 2^50 comparisons. */
static void long_work(const char *dir, const char *name)
{
    model m = {0};
    int32_t const dims[] = {1, 1 << 14, 1 << 14, 1};
    int32_t const params[] = {1 << 11, 1 << 11, 1, 1, 1 << 10, 1 << 10, 0, 255};
    qat_write_u8(&m.strings, 0);
    uint32_t const op = add_string(&m, "max_pool2d");
    for (int i = 0; i < 2; i++)
        add_tensor(&m, U8, 8, dims, ACTIVATION);
    add_node(&m, op, 1, (const int32_t[]){0}, 1, 8, params, 0, 0);
    finish(&m, 0, 1, dir, name);
}

/* ------------------------------------------------------------------ a detector */

/** The bits of a real number, as an epilogue has them. */
static int32_t bits_of(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** Boxes and scores are the inputs, reshaped. Nothing suppresses a box, so each meets all others.
 */
static void detector(const char *dir, const char *name, int32_t boxes, int32_t classes,
                     int32_t most, int32_t regular)
{
    model m = {0};
    int32_t const boxes_dims[] = {1, boxes, 4, 1}, scores_dims[] = {1, boxes, classes, 1};
    enum { RANK = 6, OF_BOXES = 3, PARTS = 2 };
    uint8_t *zeros = calloc((size_t)boxes * 4, 1);
    qat_write_u8(&m.strings, 0);
    uint32_t const op = add_string(&m, "reshape");
    int32_t const epilogue_name = (int32_t)add_string(&m, "detection_postprocess");
    for (int32_t i = 0; i < 2 * PARTS; i++) {
        add_tensor(&m, U8, 8, i % PARTS ? scores_dims : boxes_dims, ACTIVATION);
        m.tensors.bytes[m.tensors.count - QM_TENSOR_BYTES + RANK] = OF_BOXES;
    }
    add_tensor(&m, U8, 8, (const int32_t[]){boxes, 4, 1, 1},
               add_data(&m, zeros, 4 * (size_t)boxes));
    for (int32_t i = 0; i < PARTS; i++)
        add_node(&m, op, 1, (const int32_t[]){i}, PARTS + i, 0, NULL, 0, 0);
    int32_t const epilogue[] = {epilogue_name, 3,          2,          3,          4,
                                most,          1,          most,       regular,    classes,
                                bits_of(-1),   bits_of(1), bits_of(1), bits_of(1), bits_of(1),
                                bits_of(1),    -1,         -1,         -1,         -1};
    finish_with(&m, PARTS, (const int32_t[]){0, 1}, (const int32_t[]){2, 3},
                (int)(sizeof epilogue / sizeof *epilogue), epilogue, dir, name);
    free(zeros);
}

void bomb_models(const char *dir)
{
    detector(dir, "detector.qm", 1 << 20, 1, 1 << 20, 0);
    detector(dir, "regular.qm", 1 << 18, 16, 1 << 18, 1);
    detector(dir, "scores.qm", 1 << 18, 1 << 10, 10, 0);
    detector(dir, "usual.qm", 1917, 90, 100, 1);
    shared_weights(dir, "shared.qm", 1, 1);
    shared_weights(dir, "biases.qm", LAYERS, 1);
    shared_weights(dir, "clamps.qm", 1, LAYERS);
    shared_constants(dir, "constants.qm", 0);
    shared_constants(dir, "overlap.qm", 16);
    long_work(dir, "work.qm");
}
