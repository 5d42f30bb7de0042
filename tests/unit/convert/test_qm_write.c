/** .qm files: the engine and qat_qm_read find what was written, and every limit is named. */
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "infer/model/qm_layout.h"
#include "qat/convert.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** pixels --table--> codes --conv2d--> conv --requantize--> output, int8, weights per channel. */
enum { PIXELS, CODES, CONV, OUTPUT, WEIGHTS, BIAS };

static int activation(qat_qgraph *g, const char *name, qi_type type, int bits, int channels,
                      float scale, int32_t zero_point)
{
    qat_qtensor t = {.type = type,
                     .bits = bits,
                     .rank = 4,
                     .dims = {1, 2, 3, channels},
                     .scale = scale,
                     .zero_point = zero_point,
                     .range_min = -1.25f,
                     .range_max = 3.5f,
                     .source_index = -1};
    snprintf(t.name, sizeof t.name, "%s", name);
    return qat_qgraph_tensor(g, &t, NULL);
}

static void weights(qat_qgraph *g)
{
    int8_t codes[] = {1, -7, 7, 3, 0, -5};
    float scales[] = {0.25f, 0.5f};
    qat_qtensor t = {.type = QI_S8,
                     .bits = 4,
                     .rank = 4,
                     .dims = {2, 1, 1, 3},
                     .scale = scales[0],
                     .channel_scales = scales,
                     .n_channels = 2,
                     .data = codes,
                     .source_index = 17};
    snprintf(t.name, sizeof t.name, "conv/weights");
    ck_assert_int_eq(qat_qgraph_tensor(g, &t, NULL), WEIGHTS);
}

static int constant(qat_qgraph *g, const char *name, int count, const int32_t *values)
{
    return qat_qgraph_constant_s32(g, name, count, 1, values, NULL);
}

static int table(qat_qgraph *g)
{
    qat_qtensor t = {.type = QI_S8, .bits = 4, .rank = 2, .dims = {3, 256}, .source_index = -1};
    snprintf(t.name, sizeof t.name, "table");
    int8_t codes[3 * 256];
    for (int i = 0; i < 3 * 256; i++)
        codes[i] = (int8_t)(i * 7 % 16 - 8);
    t.data = codes;
    return qat_qgraph_tensor(g, &t, NULL);
}

static void add_op(qat_qgraph *g, const char *op, const char *name, qi_rounding rounding,
                   int n_inputs, const int *inputs, int output, int n_params, const int32_t *params,
                   int64_t max_accumulator)
{
    ck_assert_int_ge(qat_qgraph_op(g, op, name, rounding, n_inputs, inputs, 1, &output, n_params,
                                   params, max_accumulator, NULL),
                     0);
}

/** The accumulator reaches 9 (1 + 7 + 7) + 3 at most: codes lie in -8..7 around -2. */
static void add_ops(qat_qgraph *g)
{
    int const codes = table(g);
    int const mult = constant(g, "conv/mult", 2, (const int32_t[]){1 << 30, 1717986918});
    int const shift = constant(g, "conv/shift", 2, (const int32_t[]){0, -1});
    add_op(g, "table", "input", QI_ROUND_NONE, 2, (const int[]){PIXELS, codes}, CODES, 0, NULL, 0);
    add_op(g, "conv2d", "conv", QI_ROUND_TWICE, 5, (const int[]){CODES, WEIGHTS, BIAS, mult, shift},
           CONV, 9, (const int32_t[]){1, 1, 1, 1, 0, 0, 1, -128, 127}, 138);
    add_op(g, "requantize", "out", QI_ROUND_TWICE, 1, (const int[]){CONV}, OUTPUT, 4,
           (const int32_t[]){1 << 30, 0, -128, 127}, 0);
}

static qat_qgraph *make_graph(void)
{
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(activation(g, "pixels", QI_U8, 8, 3, 1.0f, 0), PIXELS);
    ck_assert_int_eq(activation(g, "codes", QI_S8, 4, 3, 0.5f, -2), CODES);
    ck_assert_int_eq(activation(g, "conv", QI_S8, 8, 2, 0.125f, 5), CONV);
    ck_assert_int_eq(activation(g, "output", QI_S8, 8, 2, 0.25f, -9), OUTPUT);
    weights(g);
    ck_assert_int_eq(qat_qgraph_constant_s32(g, "conv/bias", 2, 1, (const int32_t[]){-3, 40}, NULL),
                     BIAS);
    add_ops(g);
    ck_assert_int_eq(
        qat_qgraph_set_io(g, 1, (const int[]){PIXELS}, 2, (const int[]){OUTPUT, CONV}, NULL),
        QAT_OK);
    g->tensors[OUTPUT].border = QI_BORDER_FLOAT32;
    ck_assert_int_eq(qat_qgraph_set_epilogue(g, "what follows", 2, (const int[]){CONV, WEIGHTS}, 3,
                                             (const int32_t[]){7, -8, INT32_MAX}, NULL),
                     QAT_OK);
    return g;
}

static const char *const labels[] = {"cat", "", "cat"};
static const uint8_t kat_input[18] = {1, 2, 3};
static const int8_t kat_output[12] = {-4, 5}, kat_second[12] = {6};

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static qat_qm_metadata make_metadata(void)
{
    static const void *const in[] = {kat_input};
    static const void *const out[] = {kat_output, kat_second};
    qat_qm_metadata m = {.description = "a description",
                         .labels = labels,
                         .n_labels = 3,
                         .kat_inputs = in,
                         .kat_outputs = out};
    m.preprocessing = (qi_preprocessing){
        .kind = 1, .height = 2, .width = 3, .channels = 3, .resize_short = 5, .channel_order = 2};
    for (int c = 0; c < 4; c++) {
        m.preprocessing.mean_bits[c] = bits_of(100.5f + (float)c);
        m.preprocessing.std_bits[c] = bits_of(50.25f + (float)c);
    }
    for (int i = 0; i < 32; i++)
        m.digest[i] = (uint8_t)(i * 5);
    return m;
}

/** A graph written and opened by the engine. */
struct file {
    qat_qgraph *graph;
    qat_qm_metadata metadata;
    uint8_t *bytes;
    size_t count;
    qi_host *host;
};

static void open_form(struct file *f, bool fixed)
{
    qat_error err;
    f->graph = make_graph();
    f->graph->form.fixed = fixed;
    f->metadata = make_metadata();
    ck_assert_msg(qat_qm_write(f->graph, &f->metadata, &f->bytes, &f->count, &err) == QAT_OK, "%s",
                  err.message);
    ck_assert_msg(qi_host_open_bytes(&f->host, f->bytes, f->count, "m", NULL, &err) == QAT_OK, "%s",
                  err.message);
}

static void open_file(struct file *f)
{
    open_form(f, false);
}

static void close_file(struct file *f)
{
    qi_host_close(f->host);
    qat_qgraph_free(f->graph);
    free(f->bytes);
}

static void check_tensor(const qi_model *model, const qat_qtensor *t, int index)
{
    const qi_tensor *q = qi_tensor_at(model, index);
    if (*q->name) /* compact records leave names out that follow from the layer's */
        ck_assert_str_eq(q->name, t->name);
    ck_assert_int_eq(q->type, t->type);
    ck_assert_int_eq(q->kind, t->data ? QI_CONSTANT : QI_ACTIVATION);
    ck_assert_int_eq(q->rank, t->rank);
    ck_assert_int_eq(q->bits, t->bits);
    ck_assert_mem_eq(q->dims, t->dims, sizeof t->dims);
    ck_assert_int_eq(q->zero_point, t->zero_point);
    ck_assert_uint_eq(q->scale_bits, bits_of(t->scale));
    ck_assert_uint_eq(q->range_bits[0], bits_of(t->range_min));
    ck_assert_uint_eq(q->range_bits[1], bits_of(t->range_max));
    ck_assert_int_eq(q->source_index, t->source_index);
    ck_assert_int_eq(q->border, t->border);
    ck_assert_uint_eq(q->bytes, qat_qtensor_bytes(t));
    ck_assert_int_eq(q->channel_scales >= 0, t->channel_scales != NULL);
    if (t->data)
        ck_assert_mem_eq(q->data, t->data, q->bytes);
    if (t->channel_scales)
        ck_assert_mem_eq(qi_tensor_at(model, q->channel_scales)->data, t->channel_scales,
                         (size_t)t->n_channels * sizeof(float));
}

static void check_node(const qi_node *n, const qat_qop *op)
{
    ck_assert_str_eq(n->kernel->name, op->op);
    ck_assert_str_eq(n->name, op->name);
    ck_assert_int_eq(n->rounding, op->rounding);
    ck_assert_int_eq(n->max_accumulator, op->max_accumulator);
    ck_assert_int_eq(n->n_inputs, op->n_inputs);
    ck_assert_int_eq(n->n_outputs, op->n_outputs);
    ck_assert_int_eq(n->n_params, op->n_params);
    ck_assert_mem_eq(n->inputs, op->inputs, (size_t)op->n_inputs * sizeof(int));
    ck_assert_mem_eq(n->outputs, op->outputs, (size_t)op->n_outputs * sizeof(int));
    if (op->n_params)
        ck_assert_mem_eq(n->params, op->params, (size_t)op->n_params * sizeof(int32_t));
}

START_TEST(test_engine_finds_what_was_written)
{
    struct file f;
    open_form(&f, _i);
    const qi_model *m = qi_host_model(f.host);
    for (int i = 0; i < f.graph->n_tensors; i++)
        check_tensor(m, &f.graph->tensors[i], i);
    ck_assert_int_eq(qi_node_count(m), f.graph->n_ops);
    for (int i = 0; i < f.graph->n_ops; i++)
        check_node(qi_node_at(m, i), &f.graph->ops[i]);
    ck_assert_int_eq(qi_input_count(m), 1);
    ck_assert_int_eq(qi_input_at(m, 0), PIXELS);
    ck_assert_int_eq(qi_output_count(m), 2);
    ck_assert_int_eq(qi_output_at(m, 0), OUTPUT);
    ck_assert_int_eq(qi_output_at(m, 1), CONV);
    close_file(&f);
}
END_TEST

/** In the file a central crop is a negative resize_short; more than the whole is refused. */
START_TEST(test_central_crop)
{
    static const int32_t stored[] = {-1, -875000, -1000000, -1000001, INT32_MIN};
    struct file f;
    open_file(&f);
    memcpy(f.bytes + QM_AT_PREPROCESSING + 16, &stored[_i], 4);
    uint32_t const head = qm_crc32(0, f.bytes, QM_AT_CRC);
    uint32_t const crc = qm_crc32(head, f.bytes + QM_AT_CRC + 4, f.count - QM_AT_CRC - 4);
    memcpy(f.bytes + QM_AT_CRC, &crc, 4);
    qi_host *host;
    qat_status const st = qi_host_open_bytes(&host, f.bytes, f.count, "m", NULL, NULL);
    ck_assert_int_eq(st, _i < 3 ? QAT_OK : QAT_ERR_FORMAT);
    if (!st) {
        ck_assert_int_eq(qi_model_preprocessing(qi_host_model(host))->central_crop, -stored[_i]);
        ck_assert_int_eq(qi_model_preprocessing(qi_host_model(host))->resize_short, 0);
    }
    qi_host_close(host);
    close_file(&f);
}
END_TEST

START_TEST(test_engine_finds_metadata)
{
    struct file f;
    open_file(&f);
    const qi_model *m = qi_host_model(f.host);
    ck_assert_str_eq(qi_model_description(m), "a description");
    ck_assert_int_eq(qi_label_count(m), 3);
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(qi_label_at(m, i), labels[i]);
    ck_assert_mem_eq(qi_model_digest(m), f.metadata.digest, 32);
    ck_assert_mem_eq(qi_model_preprocessing(m), &f.metadata.preprocessing,
                     sizeof(qi_preprocessing));
    ck_assert_mem_eq(qi_kat_input(m, 0), kat_input, sizeof kat_input);
    ck_assert_mem_eq(qi_kat_output(m, 0), kat_output, sizeof kat_output);
    ck_assert_mem_eq(qi_kat_output(m, 1), kat_second, sizeof kat_second);
    const qi_epilogue *e = qi_model_epilogue(m);
    ck_assert_str_eq(e->name, "what follows");
    ck_assert_int_eq(e->n_inputs, 2);
    ck_assert_int_eq(e->inputs[0], CONV);
    ck_assert_int_eq(e->inputs[1], WEIGHTS);
    ck_assert_int_eq(e->n_params, 3);
    ck_assert_mem_eq(e->params, f.graph->epilogue.params, 3 * sizeof(int32_t));
    close_file(&f);
}
END_TEST

START_TEST(test_read_is_the_inverse)
{
    struct file f;
    qat_qgraph *again = NULL;
    uint8_t *bytes = NULL;
    size_t count = 0;
    open_form(&f, _i);
    ck_assert_int_eq(qat_qm_read(&again, qi_host_model(f.host), NULL), QAT_OK);
    ck_assert_int_eq(again->n_tensors, f.graph->n_tensors);
    for (int i = 0; i < again->n_tensors; i++)
        ck_assert_str_eq(again->tensors[i].name, f.graph->tensors[i].name);
    again->form.fixed = _i;
    ck_assert_int_eq(qat_qm_write(again, &f.metadata, &bytes, &count, NULL), QAT_OK);
    ck_assert_uint_eq(count, f.count);
    ck_assert_mem_eq(bytes, f.bytes, count);
    free(bytes);
    qat_qgraph_free(again);
    close_file(&f);
}
END_TEST

START_TEST(test_minimal_metadata)
{
    qat_qgraph *g = make_graph();
    qat_qm_metadata const none = {0};
    *g->epilogue.name = 0;
    uint8_t *bytes = NULL;
    size_t count = 0;
    qi_host *host;
    ck_assert_int_eq(qat_qm_write(g, &none, &bytes, &count, NULL), QAT_OK);
    ck_assert_int_eq(qi_host_open_bytes(&host, bytes, count, "m", NULL, NULL), QAT_OK);
    ck_assert_ptr_null(qi_kat_input(qi_host_model(host), 0));
    ck_assert_str_eq(qi_model_description(qi_host_model(host)), "");
    ck_assert_ptr_null(qi_model_epilogue(qi_host_model(host))->name);
    ck_assert_int_eq(qi_model_epilogue(qi_host_model(host))->n_inputs, 0);
    ck_assert_int_eq(qi_label_count(qi_host_model(host)), 0);
    qi_host_close(host);
    free(bytes);
    qat_qgraph_free(g);
}
END_TEST

/* ------------------------------------------------------------------ derived scales */

/** Give conv the multipliers of its scales: M = s_x s_w / s_y. */
static void set_multipliers(qat_qgraph *g, const float scales[2])
{
    int const mult = g->ops[1].inputs[3], shift = g->ops[1].inputs[4];
    for (int c = 0; c < 2; c++) {
        int exponent;
        double const m =
            (double)g->tensors[CODES].scale * (double)scales[c] / (double)g->tensors[CONV].scale;
        double const fraction = frexp(m, &exponent);
        ((int32_t *)g->tensors[mult].data)[c] = (int32_t)round(ldexp(fraction, 31));
        ((int32_t *)g->tensors[shift].data)[c] = exponent;
        g->tensors[WEIGHTS].channel_scales[c] = scales[c];
    }
    g->tensors[WEIGHTS].scale = scales[0];
}

static size_t written(const qat_qgraph *g, uint8_t **bytes)
{
    qat_qm_metadata const m = make_metadata();
    size_t count = 0;
    ck_assert_int_eq(qat_qm_write(g, &m, bytes, &count, NULL), QAT_OK);
    return count;
}

/** Scales that follow from multipliers take no byte, and come back bit for bit; others are stored.
 */
START_TEST(test_scales_follow_from_multipliers)
{
    static const float some[][2] = {
        {0.1f, 0.3f}, {1e-6f, 17.0f}, {0.0076628463f, 0.25f}, {3.4e-3f, 1.1754945e-4f}};
    qat_qgraph *g = make_graph(), *again = NULL;
    uint8_t *bytes = NULL, *other = NULL;
    qi_host *host = NULL;
    set_multipliers(g, some[_i]);
    size_t const count = written(g, &bytes);
    ck_assert_int_eq(qi_host_open_bytes(&host, bytes, count, "m", NULL, NULL), QAT_OK);
    const qi_tensor *w = qi_tensor_at(qi_host_model(host), WEIGHTS);
    const qi_tensor *scales = qi_tensor_at(qi_host_model(host), w->channel_scales);
    ck_assert_int_eq(scales->packing, QI_PACKING_DERIVED);
    ck_assert_uint_eq(qi_bytes_in_file(scales), 0);
    ck_assert_mem_eq(scales->data, some[_i], sizeof some[_i]);
    ck_assert_int_eq(qat_qm_read(&again, qi_host_model(host), NULL), QAT_OK);
    ck_assert_mem_eq(again->tensors[WEIGHTS].channel_scales, some[_i], sizeof some[_i]);
    g->tensors[WEIGHTS].channel_scales[1] = nextafterf(some[_i][1], 1);
    size_t const stored = written(g, &other);
    qi_host_close(host);
    ck_assert_int_eq(qi_host_open_bytes(&host, other, stored, "m", NULL, NULL), QAT_OK);
    w = qi_tensor_at(qi_host_model(host), WEIGHTS);
    scales = qi_tensor_at(qi_host_model(host), w->channel_scales);
    ck_assert_int_eq(scales->packing, QI_PACKING_NONE);
    ck_assert_mem_eq(scales->data, g->tensors[WEIGHTS].channel_scales, sizeof some[_i]);
    qi_host_close(host);
    qat_qgraph_free(again);
    qat_qgraph_free(g);
    free(bytes);
    free(other);
}
END_TEST

/* ------------------------------------------------------------------ what is refused */

typedef void breaker(qat_qgraph *g, qat_qm_metadata *m);

static void break_rank(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[CONV].rank = 5;
}
static void break_dim(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[CONV].dims[2] = 0;
}
static void break_product(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[CONV].dims[1] = g->tensors[CONV].dims[2] = 1 << 15;
}
static void break_unused_dim(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[BIAS].dims[1] = 2;
}
static void break_bits(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[CODES].bits = 9;
}
static void break_zero_point(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[CODES].zero_point = 8;
}
static void break_scale(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[CONV].scale = NAN;
}
static void break_channel_scale(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[WEIGHTS].channel_scales[1] = -0.5f;
}
static void break_channel_count(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[WEIGHTS].n_channels = 1;
    g->tensors[WEIGHTS].dims[0] = 2;
}
static void break_code(qat_qgraph *g, qat_qm_metadata *m)
{
    ((int8_t *)g->tensors[WEIGHTS].data)[4] = 8;
}
static void break_input_order(qat_qgraph *g, qat_qm_metadata *m)
{
    qat_qop const first = g->ops[0];
    g->ops[0] = g->ops[1];
    g->ops[1] = first;
}
static void break_written_twice(qat_qgraph *g, qat_qm_metadata *m)
{
    g->ops[2].outputs[0] = CODES;
}
static void break_never_written(qat_qgraph *g, qat_qm_metadata *m)
{
    g->n_ops = 2;
}
static void break_constant_written(qat_qgraph *g, qat_qm_metadata *m)
{
    g->ops[2].outputs[0] = BIAS;
}
static void break_params(qat_qgraph *g, qat_qm_metadata *m)
{
    g->ops[1].n_params = QI_MAX_PARAMS + 1;
}
static void break_output(qat_qgraph *g, qat_qm_metadata *m)
{
    g->outputs[1] = WEIGHTS;
}
static void break_index(qat_qgraph *g, qat_qm_metadata *m)
{
    g->ops[1].inputs[2] = 99;
}
static void break_border(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[OUTPUT].border = 4;
}
static void break_inner_border(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[CODES].border = QI_BORDER_FLOAT32;
}
static void break_type(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[BIAS].type = QI_TYPES;
}
static void break_few_bits(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[OUTPUT].type = QI_S16;
}
static void break_long_bits(qat_qgraph *g, qat_qm_metadata *m)
{
    g->tensors[OUTPUT].type = QI_S64;
}
static void break_epilogue_input(qat_qgraph *g, qat_qm_metadata *m)
{
    g->epilogue.inputs[0] = CODES;
}
static void break_epilogue_count(qat_qgraph *g, qat_qm_metadata *m)
{
    g->epilogue.n_inputs = 0;
}
static void break_labels(qat_qgraph *g, qat_qm_metadata *m)
{
    m->labels = NULL;
}
static void break_kat(qat_qgraph *g, qat_qm_metadata *m)
{
    m->kat_outputs = NULL;
}
static void break_height(qat_qgraph *g, qat_qm_metadata *m)
{
    m->preprocessing.height = 7;
}
static void break_channel_order(qat_qgraph *g, qat_qm_metadata *m)
{
    m->preprocessing.channel_order = 3;
}
static void break_crop(qat_qgraph *g, qat_qm_metadata *m)
{
    m->preprocessing.resize_short = 0;
    m->preprocessing.central_crop = 1000001;
}
static void break_resizing(qat_qgraph *g, qat_qm_metadata *m)
{
    m->preprocessing.central_crop = 500000; /* beside a resize_short of 5 */
}
static void break_std(qat_qgraph *g, qat_qm_metadata *m)
{
    m->preprocessing.std_bits[1] = 0;
}

static const struct {
    breaker *fn;
    const char *message;
} broken[] = {
    {break_rank, "tensor 2 (conv): its rank is 5"},
    {break_dim, "tensor 2 (conv): a dimension is 0"},
    {break_product, "tensor 2 (conv): its number of values is"},
    {break_unused_dim, "tensor 5 (conv/bias): a dimension is 2"},
    {break_bits, "tensor 1 (codes): bits is 9"},
    {break_zero_point, "tensor 1 (codes): zero_point is 8, the format allows -8..7"},
    {break_scale, "tensor 2 (conv): its scale is nan"},
    {break_channel_scale, "tensor 4 (conv/weights): its scale is -0.5"},
    {break_channel_count, "tensor 4 (conv/weights) has 1 channel scales"},
    {break_code, "tensor 4 (conv/weights): one of its codes is 8, the format allows -8..7"},
    {break_input_order, "node 0 (conv) reads codes before it is written"},
    {break_written_twice, "node 2 (out) writes codes a second time"},
    {break_never_written, "tensor 3 (output) is never written"},
    {break_constant_written, "node 2 (out) writes the constant conv/bias"},
    {break_params, "node 1 (conv): its number of parameters is 25"},
    {break_output, "output 1 is the constant conv/weights"},
    {break_index, "node 1 (conv): a tensor index is 99"},
    {break_border, "tensor 3 (output): border is 4, the format allows 0..3"},
    {break_inner_border, "tensor 1 (codes) has a border, but is neither an input nor an output"},
    {break_type, "tensor 5 (conv/bias): its type is 5, the format allows 0..4"},
    {break_few_bits, "tensor 3 (output): bits is 8, the format allows 9..16"},
    {break_long_bits, "tensor 3 (output): bits is 8, the format allows 64..64"},
    {break_epilogue_input,
     "the epilogue what follows reads codes, which is neither an output nor a constant"},
    {break_epilogue_count, "epilogue 0 (what follows): its number of inputs is 0"},
    {break_labels, "3 labels announced"},
    {break_kat, "both its inputs and its outputs"},
    {break_height, "height is 7, the format allows 2..2"},
    {break_channel_order, "channel_order is 3"},
    {break_crop, "central_crop is 1000001, the format allows 0..1000000"},
    {break_resizing, "resize_short is 5, the format allows 0..0"},
    {break_std, "channel 1 has mean 101.5 and std 0"},
};

START_TEST(test_limits_are_named)
{
    qat_qgraph *g = make_graph();
    qat_qm_metadata m = make_metadata();
    qat_error err = {0};
    uint8_t *bytes = NULL;
    size_t count = 1;
    int const n_ops = g->n_ops;
    broken[_i].fn(g, &m);
    ck_assert_int_eq(qat_qm_write(g, &m, &bytes, &count, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(bytes);
    ck_assert_uint_eq(count, 0);
    ck_assert_msg(strstr(err.message, broken[_i].message) != NULL, "%s", err.message);
    g->n_ops = n_ops;
    qat_qgraph_free(g);
}
END_TEST

START_TEST(test_allocations_may_fail)
{
    struct file f;
    open_file(&f);
    bool failed = true;
    for (long n = 0; failed; n++) {
        uint8_t *bytes = NULL;
        size_t count = 0;
        test_fail_alloc_after(n);
        qat_status const st = qat_qm_write(f.graph, &f.metadata, &bytes, &count, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        free(bytes);
    }
    failed = true;
    for (long n = 0; failed; n++) {
        qat_qgraph *again = NULL;
        test_fail_alloc_after(n);
        qat_status const st = qat_qm_read(&again, qi_host_model(f.host), NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_qgraph_free(again);
    }
    close_file(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("qm_write");
    TCase *tcase = tcase_create("qm_write");
    tcase_add_loop_test(tcase, test_engine_finds_what_was_written, 0, 2);
    tcase_add_test(tcase, test_engine_finds_metadata);
    tcase_add_loop_test(tcase, test_central_crop, 0, 5);
    tcase_add_loop_test(tcase, test_read_is_the_inverse, 0, 2);
    tcase_add_loop_test(tcase, test_scales_follow_from_multipliers, 0, 4);
    tcase_add_test(tcase, test_minimal_metadata);
    tcase_add_loop_test(tcase, test_limits_are_named, 0, (int)(sizeof broken / sizeof *broken));
    tcase_add_test(tcase, test_allocations_may_fail);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
