/**
 * Imports .tflite files that are made here: what is folded, what happens at float32 borders, a
 * detector's last step, what is refused and with which words. A file that is cut or changed does no
 * harm.
 */
#include "common/suite.h"
#include "common/tflite_import.h"
#include "convert/tflite/model.h"
#include "qat/border.h"
#include "qat/convert.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 0, F16 = 1, I32 = 2, U8 = 3, I64 = 4, I16 = 7, I8 = 9 }; /* TensorType */
enum {
    ADD = 0,
    MUL = 18,
    DEQUANTIZE = 6,
    RELU = 19,
    RESHAPE = 22,
    CUSTOM = 32,
    STRIDED_SLICE = 45,
    SHAPE = 77,
    PACK = 83,
    QUANTIZE = 114,
    CUMSUM = 128
};

static qat_error err;

static const qi_tensor *input_of(const qi_host *h, int i)
{
    return qi_tensor_at(qi_host_model(h), qi_input_at(qi_host_model(h), i));
}

static const qi_tensor *output_of(const qi_host *h, int i)
{
    return qi_tensor_at(qi_host_model(h), qi_output_at(qi_host_model(h), i));
}

/* ------------------------------------------------------------------ folding */

static const int32_t zero[] = {0}, one[] = {1}, forty_eight[] = {48};

/** x [2,4,6,2] -> SHAPE -> [0:1] -> PACK with 48 -> the shape of a RESHAPE. */
static const build_tensor chain_tensors[] = {
    {"x", U8, 4, {2, 4, 6, 2}, 0.5f, 10, NULL, 0, 0, 0},
    {"shape", I32, 1, {4}, 0, 0, NULL, 0, 0, 0},
    {"begin", I32, 1, {1}, 0, 0, zero, 4, 0, 0},
    {"end", I32, 1, {1}, 0, 0, one, 4, 0, 0},
    {"stride", I32, 1, {1}, 0, 0, one, 4, 0, 0},
    {"batch", I32, 0, {0}, 0, 0, NULL, 0, 0, 0},
    {"rest", I32, 0, {0}, 0, 0, forty_eight, 4, 0, 0},
    {"new_shape", I32, 1, {2}, 0, 0, NULL, 0, 0, 0},
    {"y", U8, 2, {7, 7}, 0.5f, 10, NULL, 0, 0, 0}}; /* a stale shape: the importer computes it */
static const build_op chain_ops[] = {
    {.code = SHAPE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}},
    {.code = STRIDED_SLICE,
     .n_inputs = 4,
     .inputs = {1, 2, 3, 4},
     .n_outputs = 1,
     .outputs = {5},
     .options_type = 32,
     .n_options = 1,
     .options = {{4, 1}}}, /* shrink_axis_mask */
    {.code = PACK,
     .n_inputs = 2,
     .inputs = {5, 6},
     .n_outputs = 1,
     .outputs = {7},
     .options_type = 59,
     .n_options = 1,
     .options = {{0, 2}}},
    {.code = RESHAPE, .n_inputs = 2, .inputs = {0, 7}, .n_outputs = 1, .outputs = {8}}};
static const build_model chain = {.n_tensors = 9,
                                  .tensors = chain_tensors,
                                  .n_ops = 4,
                                  .ops = chain_ops,
                                  .n_inputs = 1,
                                  .inputs = {0},
                                  .n_outputs = 1,
                                  .outputs = {8}};

START_TEST(known_shapes_are_folded)
{
    qi_host *h = NULL;
    test_open_built(&h, &chain);
    ck_assert_int_eq(qi_node_count(qi_host_model(h)), 1);
    const qi_tensor *y = output_of(h, 0);
    ck_assert(y->rank == 2 && y->dims[0] == 2 && y->dims[1] == 48);
    ck_assert_int_eq(y->source_index, 8);
    ck_assert_str_eq(y->name, "y");
    qi_host_close(h);
}
END_TEST

/* ------------------------------------------------------------------ borders */

/** a (float32) -> QUANTIZE -> q -> DEQUANTIZE -> b (float32). */
static const build_tensor border_tensors[] = {{"a", F32, 2, {1, 4}, 0, 0, NULL, 0, 0, 0},
                                              {"q", I8, 2, {1, 4}, 0.25f, -3, NULL, 0, 0, 0},
                                              {"b", F32, 2, {1, 4}, 0, 0, NULL, 0, 0, 0},
                                              {"r", U8, 2, {1, 4}, 0.5f, 100, NULL, 0, 0, 0}};
static const build_op border_ops[] = {
    {.code = QUANTIZE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}},
    {.code = DEQUANTIZE, .n_inputs = 1, .inputs = {1}, .n_outputs = 1, .outputs = {2}},
    {.code = QUANTIZE, .n_inputs = 1, .inputs = {2}, .n_outputs = 1, .outputs = {3}}};

START_TEST(float_inputs_and_outputs_are_borders)
{
    build_model const m = {.n_tensors = 4,
                           .tensors = border_tensors,
                           .n_ops = 3,
                           .ops = border_ops,
                           .n_inputs = 1,
                           .inputs = {0},
                           .n_outputs = 3,
                           .outputs = {2, 1, 3}};
    /* 0.125 is half a step: away from zero; 1000 and NaN are limited, and the zero point */
    float const a[] = {0.125f, -0.3f, 1000.0f, NAN};
    int8_t const q[] = {-2, -4, 127, -3};
    float const b[] = {0.25f, -0.25f, 32.5f, 0.0f};
    uint8_t const r[] = {101, 99, 165, 100}; /* b / 0.5 + 100, half away from zero */
    int8_t in[4], codes[4];
    uint8_t table[4], bordered[4];
    float real[4];
    qi_host *h = NULL;
    test_open_built(&h, &m);
    ck_assert_int_eq(input_of(h, 0)->border, QI_BORDER_FLOAT32);
    ck_assert_int_eq(output_of(h, 0)->border, QI_BORDER_FLOAT32);
    ck_assert_int_eq(output_of(h, 1)->border, QI_BORDER_NONE);
    qat_border_quantize(input_of(h, 0), a, in);
    ck_assert_int_eq(memcmp(in, q, sizeof q), 0);
    qi_host_run(h, (const void *const[]){in}, (void *const[]){bordered, codes, table});
    qat_border_dequantize(output_of(h, 0), bordered, real);
    ck_assert_int_eq(memcmp(real, b, sizeof b), 0);
    ck_assert_int_eq(memcmp(codes, q, sizeof q), 0);
    ck_assert_int_eq(memcmp(table, r, sizeof r), 0);
    qi_host_close(h);
}
END_TEST

/* ------------------------------------------------------------------ a detector */

enum { BOXES = 3 };

/** Anchors (y, x, h, w): two that overlap, one apart. */
static const float anchors[] = {0.5f, 0.5f, 0.5f,   0.5f,   0.5f,  0.5625f,
                                0.5f, 0.5f, 0.125f, 0.125f, 0.25f, 0.25f};

/** Encodings and scores are int8 codes that DEQUANTIZE makes float32, the anchors float32. */
static const build_tensor detector_tensors[] = {
    {"boxes_q", I8, 3, {1, BOXES, 4}, 0.5f, 0, NULL, 0, 0, 0},
    {"scores_q", I8, 3, {1, BOXES, 3}, 0.0078125f, 0, NULL, 0, 0, 0},
    {"boxes", F32, 3, {1, BOXES, 4}, 0, 0, NULL, 0, 0, 0},
    {"scores", F32, 3, {1, BOXES, 3}, 0, 0, NULL, 0, 0, 0},
    {"anchors", F32, 2, {BOXES, 4}, 0, 0, anchors, sizeof anchors, 0, 0},
    {"found_boxes", F32, 0, {0}, 0, 0, NULL, 0, 0, 0},
    {"found_classes", F32, 0, {0}, 0, 0, NULL, 0, 0, 0},
    {"found_scores", F32, 0, {0}, 0, 0, NULL, 0, 0, 0},
    {"found", F32, 0, {0}, 0, 0, NULL, 0, 0, 0}};

/** scale: of the centres and sides of boxes; 0: as usual. */
static void open_detector(qi_host **h, bool regular, float scale)
{
    build_number const numbers[] = {{"h_scale", scale > 0 ? scale : 5},
                                    {"max_classes_per_detection", 1},
                                    {"max_detections", 4},
                                    {"nms_iou_threshold", 0.5f},
                                    {"nms_score_threshold", 0.125f},
                                    {"num_classes", 2},
                                    {"use_regular_nms", (float)regular},
                                    {"w_scale", 5},
                                    {"x_scale", 10},
                                    {"y_scale", scale > 0 ? scale : 10}};
    size_t bytes;
    uint8_t *options = build_flex_map(numbers, 10, &bytes);
    build_op const ops[] = {
        {.code = DEQUANTIZE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {2}},
        {.code = DEQUANTIZE, .n_inputs = 1, .inputs = {1}, .n_outputs = 1, .outputs = {3}},
        {.code = CUSTOM,
         .custom = "TFLite_Detection_PostProcess",
         .n_inputs = 3,
         .inputs = {2, 3, 4},
         .n_outputs = 4,
         .outputs = {5, 6, 7, 8},
         .custom_options = options,
         .custom_bytes = bytes}};
    build_model const m = {.n_tensors = 9,
                           .tensors = detector_tensors,
                           .n_ops = 3,
                           .ops = ops,
                           .n_inputs = 2,
                           .inputs = {0, 1},
                           .n_outputs = 4,
                           .outputs = {5, 6, 7, 8}};
    test_open_built(h, &m);
    free(options);
}

static void detect(qat_detections *found, const qi_host *h, const int8_t *scores)
{
    int8_t const boxes[BOXES * 4] = {0}; /* the anchors themselves */
    int8_t out_boxes[BOXES * 4], out_scores[BOXES * 3];
    void *const out[] = {out_boxes, out_scores};
    ck_assert(qat_is_detector(qi_host_model(h)));
    qi_host_run(h, (const void *const[]){boxes, scores}, out);
    ck_assert_msg(qat_detect(found, qi_host_model(h), (const void *const *)out, &err) == QAT_OK,
                  "%s", err.message);
    ck_assert_int_eq(found->rows, 4);
    ck_assert_int_eq(found->label_offset, 1);
    ck_assert_int_eq(found->source_index[3], 8);
}

/* Background, then two classes, for each box; in 1/128. */
static const int8_t scores[BOXES * 3] = {127, 64, 32, 127, 48, 80, 0, 16, 8};

START_TEST(a_detector_keeps_one_of_boxes_that_overlap)
{
    qi_host *h = NULL;
    qat_detections f;
    open_detector(&h, false, 0);
    detect(&f, h, scores);
    ck_assert_int_eq(f.found, 2); /* box 1 by class 1 suppresses box 0; box 2 reaches 0.125 */
    ck_assert(f.classes[0] == 1.0f && f.scores[0] == 0.625f);
    ck_assert(f.boxes[0] == 0.25f && f.boxes[1] == 0.3125f && f.boxes[2] == 0.75f &&
              f.boxes[3] == 0.8125f);
    ck_assert(f.classes[1] == 0.0f && f.scores[1] == 0.125f);
    ck_assert(f.boxes[4] == 0.0f && f.boxes[7] == 0.25f);
    ck_assert(f.scores[2] == 0.0f && f.boxes[8] == 0.0f);
    ck_assert(f.used[0] && f.used[1] && !f.used[2] && !f.used[3]);
    qat_detections_free(&f);
    qi_host_close(h);
}
END_TEST

START_TEST(a_detector_may_look_at_each_class_by_itself)
{
    qi_host *h = NULL;
    qat_detections f;
    open_detector(&h, true, 0);
    detect(&f, h, scores);
    ck_assert_int_eq(f.found, 3); /* class 1: box 1; class 0: box 0, box 2 */
    ck_assert(f.classes[0] == 1.0f && f.scores[0] == 0.625f && f.boxes[1] == 0.3125f);
    ck_assert(f.classes[1] == 0.0f && f.scores[1] == 0.5f && f.boxes[5] == 0.25f);
    ck_assert(f.classes[2] == 0.0f && f.scores[2] == 0.125f);
    qat_detections_free(&f);
    qi_host_close(h);
}
END_TEST

/** A centre and a side that are infinite have corners that are not numbers. */
START_TEST(corners_that_are_not_numbers_are_refused)
{
    int8_t const boxes[BOXES * 4] = {127, 0, 127, 0};
    int8_t out_boxes[BOXES * 4], out_scores[BOXES * 3];
    void *const out[] = {out_boxes, out_scores};
    qi_host *h = NULL;
    qat_detections f = {0};
    open_detector(&h, false, 1e-38f);
    qi_host_run(h, (const void *const[]){boxes, scores}, out);
    ck_assert_int_eq(qat_detect(&f, qi_host_model(h), (const void *const *)out, &err),
                     QAT_ERR_NUMERIC);
    ck_assert_msg(strstr(err.message, "the corners of box 0 are reversed, or not numbers") != NULL,
                  "%s", err.message);
    qat_detections_free(&f);
    qi_host_close(h);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

/** One operator on `in` that writes a uint8 "y". */
static build_model one_op(build_tensor tensors[2], build_op *op, int code, build_tensor in)
{
    tensors[0] = in;
    tensors[1] = (build_tensor){"y", U8, 2, {1, 4}, 0.5f, 0, NULL, 0, 0, 0};
    *op = (build_op){.code = code, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}};
    return (build_model){.n_tensors = 2,
                         .tensors = tensors,
                         .n_ops = 1,
                         .ops = op,
                         .n_inputs = 1,
                         .inputs = {0},
                         .n_outputs = 1,
                         .outputs = {1}};
}

static const struct {
    int code;
    build_tensor in;
    const char *says;
} refused[] = {
    {CUMSUM,
     {"x", U8, 2, {1, 4}, 1, 0, NULL, 0, 0, 0},
     "op 0 (CUMSUM, writes tensor 1, y): the operator CUMSUM is not supported"},
    {RELU,
     {"x", F32, 2, {1, 4}, 0, 0, NULL, 0, 0, 0},
     "op 0 (RELU, writes tensor 1, y): tensor 0 (x) is float32"},
    {RELU, {"x", U8, 2, {1, 4}, 0, 0, NULL, 0, 0, 0}, "tensor 0 (x) has no quantization"},
    {RELU, {"x", F16, 2, {1, 4}, 1, 0, NULL, 0, 0, 0}, "tensor 0 (x) is float16"},
    {RELU,
     {"x", I8, 2, {1, 4}, 1, 0, NULL, 0, 0, 0},
     "tensor 1 (y) is uint8, but its input is not"},
    {RELU, {"x", U8, 2, {1, 4}, 1, 256, NULL, 0, 0, 0}, "has the zero point 256"},
    {RELU, {"x", U8, 2, {1, 4}, -1, 0, NULL, 0, 0, 0}, "has the scale -1"},
    {RELU, {"x", U8, 2, {-1, 4}, 1, 0, NULL, 0, 0, 0}, "dimension -1: dynamic shapes"},
    {RELU, {"x", U8, 2, {1, 4}, 1, 0, NULL, 0, 1, 0}, "tensor 0 (x) is sparse"},
    {RELU, {"x", U8, 2, {1, 4}, 1, 0, NULL, 0, 0, 1}, "is a variable"},
    {RELU, {"x", U8, 2, {1, 4}, 1, 0, "abcd", 4, 0, 0}, "already has a value"},
    {ADD, {"x", U8, 2, {1, 4}, 1, 0, NULL, 0, 0, 0}, "it has 1 inputs; 2 to 2 are possible"},
    {RESHAPE, {"x", U8, 2, {65536, 65536}, 1, 0, NULL, 0, 0, 0}, "tensor 0 (x) is too large"},
    {DEQUANTIZE,
     {"x", U8, 2, {1, 4}, 1, 0, NULL, 0, 0, 0},
     "its output is uint8 instead of float32"},
};

START_TEST(what_is_not_supported_is_named)
{
    build_tensor tensors[2];
    build_op op;
    build_model const m = one_op(tensors, &op, refused[_i].code, refused[_i].in);
    test_refuse_built(&m, refused[_i].says);
}
END_TEST

START_TEST(counts_have_limits)
{
    static build_tensor tensors[TFL_MAX_TENSORS + 1];
    static build_op ops[TFL_MAX_OPS + 1];
    char says[80];
    build_tensor const x = {"x", U8, 2, {1, 4}, 1, 0, NULL, 0, 0, 0};
    build_model m = one_op(tensors, ops, RELU, x);
    for (int i = 1; i <= TFL_MAX_TENSORS; i++)
        tensors[i] = tensors[0];
    for (int i = 1; i <= TFL_MAX_OPS; i++)
        ops[i] = ops[0];
    m.n_ops = TFL_MAX_OPS + 1;
    snprintf(says, sizeof says, "%d operators; at most %d are supported", m.n_ops, TFL_MAX_OPS);
    test_refuse_built(&m, says);
    m.n_tensors = TFL_MAX_TENSORS + 1;
    snprintf(says, sizeof says, "%d tensors; at most %d are supported", m.n_tensors,
             TFL_MAX_TENSORS);
    test_refuse_built(&m, says);
}
END_TEST

START_TEST(other_kinds_of_files_are_refused)
{
    build_tensor tensors[2];
    build_op op;
    build_tensor const x = {"x", U8, 2, {1, 4}, 1, 0, NULL, 0, 0, 0};
    build_model m = one_op(tensors, &op, RELU, x);
    m.version = 2;
    test_refuse_built(&m, "schema version 2");
    m.version = 3;
    m.outputs[0] = 7;
    test_refuse_built(&m, "one of the outputs of the model is tensor 7; the file has 2 tensors");
    m.outputs[0] = 1;
    op.inputs[0] = -2;
    test_refuse_built(&m, "one of the inputs of an operator is tensor -2");
    op.inputs[0] = 1;
    test_refuse_built(&m, "op 0 (RELU, writes tensor 1, y): input 0 is not written yet");
    uint8_t *qm;
    size_t count;
    ck_assert_int_eq(qat_tflite_to_qm("TFL3", 4, &(qat_import_options){0}, &qm, &count, &err),
                     QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "not a .tflite file"));
}
END_TEST

/* ------------------------------------------------------------------ cut and changed files */

/**
 * For all bytes there is a .qm or a message. The bytes are at the end of their memory, so that a
 * read past them is noticed.
 */
static void import_bytes(const uint8_t *bytes, size_t count)
{
    uint8_t *qm = NULL, *copy = malloc(count ? count : 1);
    size_t qm_bytes;
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, count);
    err = (qat_error){0};
    qat_status const st =
        qat_tflite_to_qm(copy, count, &(qat_import_options){0}, &qm, &qm_bytes, &err);
    ck_assert((st == QAT_OK) == (qm != NULL));
    ck_assert(st == QAT_OK || *err.message);
    free(qm);
    free(copy);
}

START_TEST(no_cut_or_changed_file_does_harm)
{
    static const uint8_t changes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    size_t count;
    uint8_t *bytes = build_tflite(&chain, &count);
    for (size_t n = 0; n < count; n++)
        import_bytes(bytes, n);
    for (size_t i = 0; i < count; i++) {
        uint8_t const was = bytes[i];
        for (size_t k = 0; k < sizeof changes; k++) {
            bytes[i] = changes[k];
            import_bytes(bytes, count);
        }
        bytes[i] = was;
    }
    free(bytes);
}
END_TEST

/** An int8 picture [1,2,2,3] of scale 1/4 and zero point 3, as it is. */
static uint8_t *picture_model(int border, int rank, size_t *count)
{
    const build_tensor tensors[] = {
        {.name = "real", .type = F32, .rank = rank, .dims = {1, 2, 2, 3}},
        {.name = "x",
         .type = I8,
         .rank = rank,
         .dims = {1, 2, 2, 3},
         .scale = 0.25f,
         .zero_point = 3},
        {.name = "y",
         .type = I8,
         .rank = rank,
         .dims = {1, 2, 2, 3},
         .scale = 0.25f,
         .zero_point = 3}};
    const build_op ops[] = {
        {.code = QUANTIZE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}},
        {.code = QUANTIZE, .n_inputs = 1, .inputs = {1}, .n_outputs = 1, .outputs = {2}}};
    build_model const m = {.n_tensors = 3,
                           .tensors = tensors,
                           .n_ops = 1 + border,
                           .ops = ops + !border,
                           .n_inputs = 1,
                           .inputs = {!border},
                           .n_outputs = 1,
                           .outputs = {2}};
    return build_tflite(&m, count);
}

/** (pixel - 2) / 4 on steps of 1/4 is pixel - 2; the zero point makes it pixel + 1. */
START_TEST(pixels_become_codes)
{
    static const uint8_t pixels[12] = {0, 1, 2, 3, 100, 126, 127, 255, 9, 10, 11, 12};
    static const int8_t codes[12] = {1, 2, 3, 4, 101, 127, 127, 127, 10, 11, 12, 13};
    qat_import_options const how = {
        .known_answers = true, .means = 1, .mean = (const float[]){2}, .std = (const float[]){4}};
    size_t count, qm_bytes;
    int8_t got[12];
    uint8_t *qm, *file = picture_model(_i, 4, &count);
    qi_host *host = NULL;
    ck_assert_msg(!qat_tflite_to_qm(file, count, &how, &qm, &qm_bytes, &err), "%s", err.message);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, qm_bytes, "", NULL, &err), "%s", err.message);
    const qi_preprocessing *p = qi_model_preprocessing(qi_host_model(host));
    const float two = 2, four = 4;
    ck_assert_int_eq(p->kind, 1);
    ck_assert_int_eq(p->channels, 3);
    ck_assert_mem_eq(&p->mean_bits[2], &two, sizeof two);
    ck_assert_mem_eq(&p->std_bits[2], &four, sizeof four);
    ck_assert_int_eq(qi_tensor_at(qi_host_model(host), qi_input_at(qi_host_model(host), 0))->border,
                     QI_BORDER_NONE);
    qi_host_run(host, (const void *const[]){pixels}, (void *const[]){got});
    ck_assert_mem_eq(got, codes, sizeof codes);
    qi_host_close(host);
    free(qm);
    free(file);
}
END_TEST

START_TEST(pixels_of_other_inputs_are_refused)
{
    size_t count, qm_bytes;
    uint8_t *qm, *file = picture_model(0, 3, &count);
    qat_import_options how = {
        .means = 2, .mean = (const float[]){2, 2}, .std = (const float[]){4, 4}};
    ck_assert_int_eq(qat_tflite_to_qm(file, count, &how, &qm, &qm_bytes, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "the model's input x is not 8-bit"));
    free(file);
    file = picture_model(0, 4, &count);
    ck_assert_int_eq(qat_tflite_to_qm(file, count, &how, &qm, &qm_bytes, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "2 means for the 3 channels"));
    how.means = 1;
    how.std = (const float[]){0};
    ck_assert_int_eq(qat_tflite_to_qm(file, count, &how, &qm, &qm_bytes, &err), QAT_ERR_ARGUMENT);
    ck_assert_ptr_null(qm);
    free(file);
}
END_TEST

/** TensorFlow Lite runs models with scales near 1e-35 and 1e-41: such a layer gives its zero point.
 */
START_TEST(a_tiny_scale_is_zero)
{
    const build_tensor tensors[] = {
        {.name = "x", .type = I8, .rank = 2, .dims = {1, 4}, .scale = 1e-41f},
        {.name = "y", .type = I8, .rank = 2, .dims = {1, 4}, .scale = 0.5f, .zero_point = 7},
        {.name = "z", .type = I8, .rank = 2, .dims = {1, 4}, .scale = 1e-35f}};
    const build_op ops[] = {
        {.code = QUANTIZE, .n_inputs = 1, .inputs = {0}, .n_outputs = 1, .outputs = {1}},
        {.code = MUL, .n_inputs = 2, .inputs = {1, 0}, .n_outputs = 1, .outputs = {2}}};
    build_model const m = {.n_tensors = 3,
                           .tensors = tensors,
                           .n_ops = 2,
                           .ops = ops,
                           .n_inputs = 1,
                           .inputs = {0},
                           .n_outputs = 2,
                           .outputs = {1, 2}};
    qi_host *host = NULL;
    int8_t y[4], z[4];
    test_open_built(&host, &m);
    qi_host_run(host, (const void *const[]){(const int8_t[]){-128, 0, 1, 127}},
                (void *const[]){y, z});
    ck_assert_mem_eq(y, ((const int8_t[]){7, 7, 7, 7}), 4);
    ck_assert_mem_eq(z, ((const int8_t[]){0, 0, 0, 0}), 4);
    qi_host_close(host);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tflite");
    TCase *tc = tcase_create("import");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, known_shapes_are_folded);
    tcase_add_test(tc, float_inputs_and_outputs_are_borders);
    tcase_add_test(tc, a_detector_keeps_one_of_boxes_that_overlap);
    tcase_add_test(tc, a_detector_may_look_at_each_class_by_itself);
    tcase_add_test(tc, corners_that_are_not_numbers_are_refused);
    tcase_add_loop_test(tc, what_is_not_supported_is_named, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tc, counts_have_limits);
    tcase_add_test(tc, other_kinds_of_files_are_refused);
    tcase_add_loop_test(tc, pixels_become_codes, 0, 2);
    tcase_add_test(tc, pixels_of_other_inputs_are_refused);
    tcase_add_test(tc, a_tiny_scale_is_zero);
    tcase_add_test(tc, no_cut_or_changed_file_does_harm);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
