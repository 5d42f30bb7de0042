/**
 * Writes seeds of fuzz_tflite that the golden operator cases do not have: detectors, float32
 * borders, shapes that operators compute and the importer folds, SQUEEZE, EXPAND_DIMS, floats.
 *
 * A description (tensors, operators) becomes a FlatBuffer, written from front to back: every table
 * comes before the things that it refers to, so all offsets lead forwards.
 *
 * usage: seed_tflite OUT-FOLDER
 */
#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 8192, MOST_ITEMS = 12, PATH_BYTES = 1024, MAP_BYTES = 1024 };

/** A tensor: a constant where it has data. scale 0: no quantization. */
struct tensor {
    tfl_type type;
    int rank;
    int32_t dims[4];
    float scale;
    const void *data;
    size_t bytes;
};

/** An operator of one code of its own. options: a table of so many int32 fields, of this type. */
struct op {
    int code;
    int n_inputs, n_outputs;
    int32_t inputs[4], outputs[4];
    int options_type; /* tfl_options */
    int n_options;
    int32_t options[6];
    const char *custom;
    const uint8_t *custom_options;
    size_t custom_bytes;
};

struct description {
    int n_tensors, n_ops, n_inputs, n_outputs;
    struct tensor tensors[MOST_ITEMS];
    struct op ops[MOST_ITEMS];
    int32_t inputs[4], outputs[4];
};

/* ------------------------------------------------------------------ a FlatBuffer, front to back */

struct buffer {
    uint8_t bytes[MOST_BYTES];
    size_t count;
};

static void put(struct buffer *b, size_t at, size_t width, uint64_t value)
{
    for (size_t i = 0; i < width && at + i < MOST_BYTES; i++)
        b->bytes[at + i] = (uint8_t)(value >> (8 * i));
}

/** n zero bytes at a multiple of 8. */
static size_t take(struct buffer *b, size_t n)
{
    size_t const at = (b->count + 7) / 8 * 8;
    b->count = at + n;
    return at;
}

/** The offset at `at` leads to `target`. */
static void point(struct buffer *b, size_t at, size_t target)
{
    put(b, at, 4, target - at);
}

/** Place of field i of a table made by make_table: each has 8 bytes. */
static size_t field(size_t table, int i)
{
    return table + 8 + 8 * (size_t)i;
}

/** A table of n fields, those of the mask there; its vtable lies before it. */
static size_t make_table(struct buffer *b, int n, unsigned mask)
{
    size_t const vtable = take(b, 4 + 2 * (size_t)n), table = take(b, 8 + 8 * (size_t)n);
    put(b, vtable, 2, 4 + 2 * (uint64_t)n);
    put(b, vtable + 2, 2, 8 + 8 * (uint64_t)n);
    for (int i = 0; i < n; i++)
        put(b, vtable + 4 + 2 * (size_t)i, 2, mask >> i & 1u ? field(0, i) : 0);
    put(b, table, 4, table - vtable);
    return table;
}

/** A vector, referred to at `from`; its first item. The count lies 4 bytes before it. */
static size_t make_vector(struct buffer *b, size_t from, size_t count, size_t item_bytes)
{
    size_t const start = take(b, 8 + count * item_bytes) + 4;
    put(b, start, 4, count);
    point(b, from, start);
    return start + 4;
}

static void make_bytes(struct buffer *b, size_t from, const void *bytes, size_t count)
{
    size_t const at = make_vector(b, from, count, 1);
    if (at + count <= MOST_BYTES)
        memcpy(b->bytes + at, bytes, count);
}

static void make_ints(struct buffer *b, size_t from, const int32_t *values, int count)
{
    size_t const at = make_vector(b, from, (size_t)count, sizeof *values);
    for (int i = 0; i < count; i++)
        put(b, at + 4 * (size_t)i, 4, (uint64_t)values[i]);
}

/* ------------------------------------------------------------------ the schema's tables */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static size_t make_tensor(struct buffer *b, const struct tensor *t, int index)
{
    size_t const table = make_table(b, 5, t->scale > 0 ? 0x1f : 0xf);
    put(b, field(table, TENSOR_TYPE), 1, t->type);
    put(b, field(table, TENSOR_BUFFER), 4, t->data ? (uint64_t)index + 1 : 0);
    make_ints(b, field(table, TENSOR_SHAPE), t->dims, t->rank);
    make_bytes(b, field(table, TENSOR_NAME), "t", 1);
    if (t->scale > 0) {
        size_t const q = make_table(b, 7, 0x4c);
        point(b, field(table, TENSOR_QUANTIZATION), q);
        put(b, make_vector(b, field(q, QUANTIZATION_SCALE), 1, 4), 4, bits_of(t->scale));
        put(b, make_vector(b, field(q, QUANTIZATION_ZERO_POINT), 1, 8), 8, 0);
    }
    return table;
}

static size_t make_code(struct buffer *b, const struct op *op)
{
    size_t const table = make_table(b, 4, op->custom ? 0xf : 0xd);
    put(b, field(table, CODE_DEPRECATED), 1, (uint64_t)op->code);
    put(b, field(table, CODE_BUILTIN), 4, (uint64_t)op->code);
    if (op->custom)
        make_bytes(b, field(table, CODE_CUSTOM), op->custom, strlen(op->custom));
    return table;
}

static size_t make_op(struct buffer *b, const struct op *op, int index)
{
    size_t const table = make_table(b, 6, op->custom ? 0x2f : 0x1f);
    put(b, field(table, OPERATOR_CODE), 4, (uint64_t)index);
    make_ints(b, field(table, OPERATOR_INPUTS), op->inputs, op->n_inputs);
    make_ints(b, field(table, OPERATOR_OUTPUTS), op->outputs, op->n_outputs);
    if (op->custom) {
        make_bytes(b, field(table, OPERATOR_CUSTOM_OPTIONS), op->custom_options, op->custom_bytes);
        return table;
    }
    size_t const options = make_table(b, 6, (1u << op->n_options) - 1);
    put(b, field(table, OPERATOR_OPTIONS_TYPE), 1, (uint64_t)op->options_type);
    point(b, field(table, OPERATOR_OPTIONS), options);
    for (int i = 0; i < op->n_options; i++)
        put(b, field(options, i), 4, (uint64_t)op->options[i]);
    return table;
}

static void make_subgraph(struct buffer *b, size_t from, const struct description *d)
{
    size_t const table = make_table(b, 4, 0xf);
    point(b, from, table);
    size_t const tensors = make_vector(b, field(table, SUBGRAPH_TENSORS), (size_t)d->n_tensors, 4);
    for (int i = 0; i < d->n_tensors; i++)
        point(b, tensors + 4 * (size_t)i, make_tensor(b, &d->tensors[i], i));
    make_ints(b, field(table, SUBGRAPH_INPUTS), d->inputs, d->n_inputs);
    make_ints(b, field(table, SUBGRAPH_OUTPUTS), d->outputs, d->n_outputs);
    size_t const ops = make_vector(b, field(table, SUBGRAPH_OPERATORS), (size_t)d->n_ops, 4);
    for (int i = 0; i < d->n_ops; i++)
        point(b, ops + 4 * (size_t)i, make_op(b, &d->ops[i], i));
}

/** Buffer 0 is empty, buffer i + 1 holds the data of tensor i. */
static void make_buffers(struct buffer *b, size_t from, const struct description *d)
{
    size_t const list = make_vector(b, from, (size_t)d->n_tensors + 1, 4);
    for (int i = 0; i <= d->n_tensors; i++) {
        const struct tensor *t = i > 0 ? &d->tensors[i - 1] : NULL;
        size_t const table = make_table(b, 1, t && t->data ? 1 : 0);
        point(b, list + 4 * (size_t)i, table);
        if (t && t->data)
            make_bytes(b, field(table, BUFFER_DATA), t->data, t->bytes);
    }
}

static void make_model(struct buffer *b, const struct description *d)
{
    memset(b, 0, sizeof *b);
    take(b, 8);
    memcpy(b->bytes + 4, "TFL3", 4);
    size_t const root = make_table(b, 5, 0x17);
    point(b, 0, root);
    put(b, field(root, MODEL_VERSION), 4, 3);
    size_t const codes = make_vector(b, field(root, MODEL_OPERATOR_CODES), (size_t)d->n_ops, 4);
    for (int i = 0; i < d->n_ops; i++)
        point(b, codes + 4 * (size_t)i, make_code(b, &d->ops[i]));
    make_subgraph(b, make_vector(b, field(root, MODEL_SUBGRAPHS), 1, 4), d);
    make_buffers(b, field(root, MODEL_BUFFERS), d);
}

static int write_model(const struct description *d, const char *folder, const char *name)
{
    static struct buffer b;
    char path[PATH_BYTES];
    make_model(&b, d);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    int const ok = b.count <= MOST_BYTES && file && fwrite(b.bytes, 1, b.count, file) == b.count;
    return file && fclose(file) == 0 && ok;
}

/* ------------------------------------------------------------------ a FlexBuffer map */

/** A number, by name; the names in alphabetical order. */
struct option {
    const char *key;
    float value;
};

/** keys, their offsets, the values, their types, the root: everything 4 bytes wide. */
static size_t make_map(uint8_t *to, const struct option *options, size_t n)
{
    enum { MOST_OPTIONS = 16, FLOAT_OF_4 = 3 << 2 | 2, MAP_OF_4 = 9 << 2 | 2 };
    static struct buffer b;
    size_t at[MOST_OPTIONS];
    memset(&b, 0, sizeof b);
    for (size_t i = 0; i < n; i++) {
        at[i] = b.count;
        memcpy(b.bytes + b.count, options[i].key, strlen(options[i].key) + 1);
        b.count += strlen(options[i].key) + 1;
    }
    size_t const keys = take(&b, 4 * n + 12) + 4;
    put(&b, keys - 4, 4, n);
    for (size_t i = 0; i < n; i++)
        put(&b, keys + 4 * i, 4, keys + 4 * i - at[i]);
    size_t const values = keys + 4 * n + 12;
    put(&b, values - 12, 4, values - 12 - keys);
    put(&b, values - 8, 4, 4);
    put(&b, values - 4, 4, n);
    for (size_t i = 0; i < n; i++) {
        put(&b, values + 4 * i, 4, bits_of(options[i].value));
        b.bytes[values + 4 * n + i] = FLOAT_OF_4;
    }
    size_t const root = values + 5 * n;
    put(&b, root, 4, root - values);
    b.bytes[root + 4] = MAP_OF_4;
    b.bytes[root + 5] = 4;
    memcpy(to, b.bytes, root + 6);
    return root + 6;
}

/* ------------------------------------------------------------------ the seeds */

/** What the detector's last operator is told. */
static size_t make_detector_map(uint8_t map[MAP_BYTES], int regular)
{
    struct option const options[] = {{"detections_per_class", 5},
                                     {"h_scale", 5},
                                     {"max_classes_per_detection", 1},
                                     {"max_detections", 4},
                                     {"nms_iou_threshold", 0.6f},
                                     {"nms_score_threshold", 0.1f},
                                     {"num_classes", 2},
                                     {"use_regular_nms", (float)regular},
                                     {"w_scale", 5},
                                     {"x_scale", 10},
                                     {"y_scale", 10}};
    return make_map(map, options, sizeof options / sizeof *options);
}

/** Boxes, scores, anchors, the four outputs; boxes and scores dequantized. */
static struct description detector_tensors(int real)
{
    static const float real_anchors[24] = {0.5f, 0.5f, 0.25f, 0.25f, 0.25f, 0.5f, 0.5f, 0.5f};
    static const uint8_t anchors[24] = {9, 9, 9, 9, 120, 30, 20, 50, 77, 77, 30, 30};
    struct description d = {.n_tensors = 9,
                            .tensors = {{TFL_UINT8, 3, {1, 6, 4}, 0.05f, NULL, 0},
                                        {TFL_UINT8, 3, {1, 6, 3}, 0.00390625f, NULL, 0},
                                        {TFL_UINT8, 2, {6, 4}, 0.0625f, anchors, sizeof anchors},
                                        {TFL_FLOAT32, 3, {1, 4, 4}, 0, NULL, 0},
                                        {TFL_FLOAT32, 2, {1, 4}, 0, NULL, 0},
                                        {TFL_FLOAT32, 2, {1, 4}, 0, NULL, 0},
                                        {TFL_FLOAT32, 1, {1}, 0, NULL, 0},
                                        {TFL_FLOAT32, 3, {1, 6, 4}, 0, NULL, 0},
                                        {TFL_FLOAT32, 3, {1, 6, 3}, 0, NULL, 0}},
                            .n_inputs = 2,
                            .inputs = {0, 1},
                            .n_outputs = 4,
                            .outputs = {3, 4, 5, 6}};
    if (real)
        d.tensors[2] =
            (struct tensor){TFL_FLOAT32, 2, {6, 4}, 0, real_anchors, sizeof real_anchors};
    return d;
}

/** Boxes and scores on codes, or dequantized before; each box's best class, or each class. */
static int write_detector(int real, int regular, const char *folder, const char *name)
{
    uint8_t map[MAP_BYTES];
    struct description d = detector_tensors(real);
    for (int i = 0; real && i < 2; i++)
        d.ops[d.n_ops++] = (struct op){.code = TFL_DEQUANTIZE,
                                       .n_inputs = 1,
                                       .inputs = {i},
                                       .n_outputs = 1,
                                       .outputs = {7 + i}};
    d.ops[d.n_ops++] = (struct op){.code = TFL_CUSTOM,
                                   .n_inputs = 3,
                                   .inputs = {real ? 7 : 0, real ? 8 : 1, 2},
                                   .n_outputs = 4,
                                   .outputs = {3, 4, 5, 6},
                                   .custom = "TFLite_Detection_PostProcess",
                                   .custom_options = map,
                                   .custom_bytes = make_detector_map(map, regular)};
    return write_model(&d, folder, name);
}

/** float32 -> QUANTIZE -> RELU -> DEQUANTIZE -> float32 */
static int write_borders(const char *folder)
{
    struct description const d = {
        .n_tensors = 4,
        .tensors = {{TFL_FLOAT32, 2, {2, 3}, 0, NULL, 0},
                    {TFL_INT8, 2, {2, 3}, 0.5f, NULL, 0},
                    {TFL_INT8, 2, {2, 3}, 0.25f, NULL, 0},
                    {TFL_FLOAT32, 2, {2, 3}, 0, NULL, 0}},
        .n_ops = 3,
        .ops =
            {{.code = TFL_QUANTIZE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}},
             {.code = TFL_RELU, .n_inputs = 1, .inputs = {1}, .n_outputs = 1, .outputs = {2}},
             {.code = TFL_DEQUANTIZE,
              .n_inputs = 1,
              .inputs = {2},
              .n_outputs = 1,
              .outputs = {3}}},
        .n_inputs = 1,
        .inputs = {0},
        .n_outputs = 1,
        .outputs = {3}};
    return write_model(&d, folder, "borders");
}

/** RESHAPE to a shape that SHAPE, STRIDED_SLICE and PACK compute from the input's. */
static int write_folded(const char *folder)
{
    static const int32_t zero[] = {0}, one[] = {1}, rest[] = {-1};
    struct description const d = {
        .n_tensors = 8,
        .tensors = {{TFL_UINT8, 4, {2, 3, 1, 4}, 0.5f, NULL, 0},
                    {TFL_INT32, 1, {4}, 0, NULL, 0},
                    {TFL_INT32, 1, {1}, 0, zero, sizeof zero},
                    {TFL_INT32, 1, {1}, 0, one, sizeof one},
                    {TFL_INT32, 0, {0}, 0, NULL, 0},
                    {TFL_INT32, 0, {0}, 0, rest, sizeof rest},
                    {TFL_INT32, 1, {2}, 0, NULL, 0},
                    {TFL_UINT8, 2, {2, 12}, 0.5f, NULL, 0}},
        .n_ops = 4,
        .ops = {{.code = TFL_SHAPE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}},
                {.code = TFL_STRIDED_SLICE,
                 .n_inputs = 4,
                 .inputs = {1, 2, 3, 3},
                 .n_outputs = 1,
                 .outputs = {4},
                 .options_type = TFL_OPTIONS_STRIDED_SLICE,
                 .n_options = 5,
                 .options = {0, 0, 0, 0, 1}},
                {.code = TFL_PACK,
                 .n_inputs = 2,
                 .inputs = {4, 5},
                 .n_outputs = 1,
                 .outputs = {6},
                 .options_type = TFL_OPTIONS_PACK,
                 .n_options = 2,
                 .options = {2, 0}},
                {.code = TFL_RESHAPE,
                 .n_inputs = 2,
                 .inputs = {0, 6},
                 .n_outputs = 1,
                 .outputs = {7}}},
        .n_inputs = 1,
        .inputs = {0},
        .n_outputs = 1,
        .outputs = {7}};
    return write_model(&d, folder, "folded");
}

/** A network of floats: CONV_2D, PAD, CONCATENATION, MEAN, FULLY_CONNECTED, SOFTMAX. */
static int write_floats(const char *folder)
{
    static const float weights[12] = {1, -1, 0.5f, 0.25f}, rows[16] = {0.5f, 2, -1};
    static const int32_t pads[8] = {0, 0, 1, 0, 0, 1, 0, 0}, axes[2] = {1, 2};
    struct description const d = {
        .n_tensors = 11,
        .tensors = {{TFL_FLOAT32, 4, {1, 3, 3, 3}, 0, NULL, 0},
                    {TFL_FLOAT32, 4, {4, 1, 1, 3}, 0, weights, sizeof weights},
                    {TFL_FLOAT32, 4, {1, 3, 3, 4}, 0, NULL, 0},
                    {TFL_INT32, 2, {4, 2}, 0, pads, sizeof pads},
                    {TFL_FLOAT32, 4, {1, 4, 4, 4}, 0, NULL, 0},
                    {TFL_FLOAT32, 4, {1, 4, 4, 8}, 0, NULL, 0},
                    {TFL_INT32, 1, {2}, 0, axes, sizeof axes},
                    {TFL_FLOAT32, 2, {1, 8}, 0, NULL, 0},
                    {TFL_FLOAT32, 2, {2, 8}, 0, rows, sizeof rows},
                    {TFL_FLOAT32, 2, {1, 2}, 0, NULL, 0},
                    {TFL_FLOAT32, 2, {1, 2}, 0, NULL, 0}},
        .n_ops = 6,
        .ops = {{.code = TFL_CONV_2D,
                 .n_inputs = 3,
                 .inputs = {0, 1, -1},
                 .n_outputs = 1,
                 .outputs = {2},
                 .options_type = TFL_OPTIONS_CONV_2D,
                 .n_options = 6,
                 .options = {TFL_SAME, 1, 1, TFL_ACT_RELU6, 1, 1}},
                {.code = TFL_PAD,
                 .n_inputs = 2,
                 .inputs = {2, 3},
                 .n_outputs = 1,
                 .outputs = {4},
                 .options_type = TFL_OPTIONS_PAD},
                {.code = TFL_CONCATENATION,
                 .n_inputs = 2,
                 .inputs = {4, 4},
                 .n_outputs = 1,
                 .outputs = {5},
                 .options_type = TFL_OPTIONS_CONCATENATION,
                 .n_options = 1,
                 .options = {-1}},
                {.code = TFL_MEAN,
                 .n_inputs = 2,
                 .inputs = {5, 6},
                 .n_outputs = 1,
                 .outputs = {7},
                 .options_type = TFL_OPTIONS_REDUCER},
                {.code = TFL_FULLY_CONNECTED,
                 .n_inputs = 3,
                 .inputs = {7, 8, -1},
                 .n_outputs = 1,
                 .outputs = {9},
                 .options_type = TFL_OPTIONS_FULLY_CONNECTED},
                {.code = TFL_SOFTMAX,
                 .n_inputs = 1,
                 .inputs = {9},
                 .n_outputs = 1,
                 .outputs = {10},
                 .options_type = TFL_OPTIONS_SOFTMAX,
                 .n_options = 1,
                 .options = {0x3f800000}}},
        .n_inputs = 1,
        .inputs = {0},
        .n_outputs = 1,
        .outputs = {10}};
    return write_model(&d, folder, "floats");
}

/** SQUEEZE, then EXPAND_DIMS along the last axis. */
static int write_squeezed(const char *folder)
{
    static const int32_t axis[] = {-1};
    struct description const d = {
        .n_tensors = 4,
        .tensors = {{TFL_INT8, 4, {1, 3, 1, 4}, 0.5f, NULL, 0},
                    {TFL_INT8, 2, {3, 4}, 0.5f, NULL, 0},
                    {TFL_INT32, 0, {0}, 0, axis, sizeof axis},
                    {TFL_INT8, 3, {3, 4, 1}, 0.5f, NULL, 0}},
        .n_ops = 2,
        .ops = {{.code = TFL_SQUEEZE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}},
                {.code = TFL_EXPAND_DIMS,
                 .n_inputs = 2,
                 .inputs = {1, 2},
                 .n_outputs = 1,
                 .outputs = {3}}},
        .n_inputs = 1,
        .inputs = {0},
        .n_outputs = 1,
        .outputs = {3}};
    return write_model(&d, folder, "squeezed");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: seed_tflite OUT-FOLDER\n");
        return 2;
    }
    int const ok = write_detector(0, 0, argv[1], "detector") &
                   write_detector(0, 1, argv[1], "detector_regular") &
                   write_detector(1, 0, argv[1], "detector_real") &
                   write_detector(1, 1, argv[1], "detector_real_regular") & write_borders(argv[1]) &
                   write_folded(argv[1]) & write_squeezed(argv[1]) & write_floats(argv[1]);
    return !ok;
}
