/**
 * Single operators of .tflite files that are made here. TensorFlow Lite's reference kernels accept
 * some things that others do not, and refuse some things that could be computed. The importer does
 * the same.
 */
#include "common/suite.h"
#include "common/tflite_import.h"
#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 64, MOST_TENSORS = 5 };

/** Tensors, one operator on them; the last tensor is the output, the first the model's input. */
struct net {
    build_tensor tensors[MOST_TENSORS];
    int n_tensors;
    build_op op;
};

static build_model model_of(const struct net *n)
{
    return (build_model){.n_tensors = n->n_tensors,
                         .tensors = n->tensors,
                         .n_ops = 1,
                         .ops = &n->op,
                         .n_inputs = 1,
                         .inputs = {0},
                         .n_outputs = 1,
                         .outputs = {n->n_tensors - 1}};
}

static void refuse(const struct net *n, const char *says)
{
    build_model const m = model_of(n);
    test_refuse_built(&m, says);
}

/** What must import; its output on 0, 1, 2 ... as the first input. */
static void run(const struct net *n, int rank, const int32_t *dims, const int8_t *expected)
{
    build_model const m = model_of(n);
    int8_t x[MOST_VALUES], y[MOST_VALUES];
    qi_host *h = NULL;
    for (int i = 0; i < MOST_VALUES; i++)
        x[i] = (int8_t)i;
    test_open_built(&h, &m);
    const qi_tensor *t = qi_tensor_at(qi_host_model(h), qi_output_at(qi_host_model(h), 0));
    ck_assert_int_eq(t->rank, rank);
    ck_assert_int_eq(memcmp(t->dims, dims, (size_t)rank * sizeof *dims), 0);
    qi_host_run(h, (const void *const[]){x}, (void *const[]){y});
    ck_assert_int_eq(memcmp(y, expected, t->bytes), 0);
    qi_host_close(h);
}

static void import(const struct net *n)
{
    build_model const m = model_of(n);
    qi_host *h = NULL;
    test_open_built(&h, &m);
    qi_host_close(h);
}

static build_tensor activation(int type, int rank, const int32_t *dims, float scale, int zero_point)
{
    build_tensor t = {
        .name = "t", .type = type, .rank = rank, .scale = scale, .zero_point = zero_point};
    for (int i = 0; i < rank; i++)
        t.dims[i] = dims[i];
    return t;
}

static build_tensor constant(build_tensor t, const void *data, size_t bytes)
{
    t.data = data;
    t.bytes = bytes;
    return t;
}

/* ------------------------------------------------------------------ STRIDED_SLICE */

/** x holds 0, 1, 2 ...; the masks in the order of their fields: begin, end, ellipsis, new, shrink.
 */
static const struct slice {
    int rank_x;
    int32_t x[4];
    int count;
    int32_t begin[3], end[3];
    unsigned masks[5];
    const char *says; /* NULL: it has an answer */
    int rank_y;
    int32_t y[4];
    int8_t expected[12];
} slices[] = {
    {.rank_x = 2, /* begin's mask also holds where the axis goes */
     .x = {4, 3},
     .count = 2,
     .begin = {2, 0},
     .end = {3, 3},
     .masks = {1, 0, 0, 0, 1},
     .rank_y = 1,
     .y = {3},
     .expected = {0, 1, 2}},
    {.rank_x = 2, /* an ellipsis takes one axis at least, so that the last entry has none */
     .x = {4, 3},
     .count = 3,
     .begin = {0, 0, 1},
     .end = {1, 0, 2},
     .masks = {0, 0, 2},
     .rank_y = 2,
     .y = {1, 3},
     .expected = {0, 1, 2}},
    {.rank_x = 2, /* a new axis, the ellipsis for axis 0, position 1 of axis 1 */
     .x = {4, 3},
     .count = 3,
     .begin = {0, 0, 1},
     .end = {0, 0, 2},
     .masks = {0, 0, 2, 1},
     .rank_y = 3,
     .y = {1, 4, 1},
     .expected = {1, 4, 7, 10}},
    {.rank_x = 3, /* the ellipsis for two axes */
     .x = {2, 2, 3},
     .count = 2,
     .end = {0, 1},
     .masks = {0, 0, 1, 0, 2},
     .rank_y = 2,
     .y = {2, 2},
     .expected = {0, 3, 6, 9}},
    {.rank_x = 1, /* more entries than axes */
     .x = {3},
     .count = 2,
     .begin = {1, 0},
     .end = {3, 1},
     .rank_y = 1,
     .y = {2},
     .expected = {1, 2}},
    {.rank_x = 1, /* the ellipsis would take axis 1 of 1 */
     .x = {3},
     .count = 3,
     .end = {1, 0, 0},
     .masks = {0, 0, 2, 4},
     .says = "it names more than the 1 axes of its input"},
    {.rank_x = 2, .x = {4, 3}, .count = 2, .masks = {0, 0, 3}, .says = "its ellipsis mask is 3"},
    {.rank_x = 2,
     .x = {4, 3},
     .count = 1,
     .end = {1},
     .masks = {0, 0, 0, 2},
     .says = "its new axis mask 2, for 1 entries"},
};

START_TEST(slices_are_the_references)
{
    static const int32_t ones[] = {1, 1, 1};
    const struct slice *s = &slices[_i];
    size_t const bytes = (size_t)s->count * sizeof *s->begin;
    build_tensor const x = activation(TFL_INT8, s->rank_x, s->x, 0.5f, 3);
    build_tensor const entries = activation(TFL_INT32, 1, &s->count, 0, 0);
    struct net n = {.tensors = {x, constant(entries, s->begin, bytes),
                                constant(entries, s->end, bytes), constant(entries, ones, bytes),
                                activation(TFL_INT8, 0, NULL, 0.5f, 3)},
                    .n_tensors = 5,
                    .op = {.code = TFL_STRIDED_SLICE,
                           .n_inputs = 4,
                           .inputs = {0, 1, 2, 3},
                           .n_outputs = 1,
                           .outputs = {4},
                           .options_type = TFL_OPTIONS_STRIDED_SLICE,
                           .n_options = 5}};
    for (int i = 0; i < 5; i++)
        n.op.options[i] = (build_option){i, s->masks[i]};
    if (s->says)
        refuse(&n, s->says);
    else
        run(&n, s->rank_y, s->y, s->expected);
}
END_TEST

/* ------------------------------------------------------------------ other moves */

/** x holds 0, 1, 2 ...; the operator's other inputs are constants. What works is golden data's. */
static const struct move {
    int code, options_type;
    int rank_x;
    int32_t x[4];
    int counts[2]; /* of the constants, 0: none */
    int32_t values[2][8];
    build_option options[2];
    const char *says;
} moves[] = {
    {TFL_GATHER, 23, 1, {4}, {2}, {{3, 4}}, {{0}}, "index 4 of a dimension of 4"},
    {TFL_GATHER, 23, 1, {4}, {1}, {{-1}}, {{0}}, "index -1 of a dimension of 4"},
    {TFL_GATHER, 23, 1, {4}, {1}, {{0}}, {{0, 1}}, "axis 1 of a tensor of rank 1"},
    {TFL_GATHER, 23, 2, {4, 4}, {3}, {{0}}, {{0, 1}, {1, 1}}, "1 batch dimensions"},
    {TFL_GATHER, 23, 2, {4, 4}, {4}, {{0}}, {{0, 0}, {1, 1}}, "1 batch dimensions"},
    {TFL_GATHER, 23, 2, {4, 4}, {4}, {{0}}, {{0, 1}, {1, (uint32_t)-2}}, "-1 batch dimensions"},
    {TFL_GATHER_ND, 83, 2, {2, 3}, {2}, {{1, 3}}, {{0}}, "index 3 of a dimension of 3"},
    {TFL_GATHER_ND, 83, 2, {2, 3}, {2}, {{-1, 0}}, {{0}}, "index -1 of a dimension of 2"},
    {TFL_GATHER_ND, 83, 2, {2, 3}, {1}, {{2}}, {{0}}, "index 2 of a dimension of 2"},
    {TFL_GATHER_ND, 83, 2, {2, 3}, {3}, {{0}}, {{0}}, "indices of 3 of 2 axes, in rank 1"},
    {TFL_TILE, 0, 1, {4}, {1}, {{0}}, {{0}}, "0 times a dimension of 4"},
    {TFL_TILE, 0, 1, {4}, {1}, {{INT32_MAX}}, {{0}}, "2147483647 times a dimension of 4"},
    {TFL_TILE, 0, 1, {4}, {2}, {{1, 1}}, {{0}}, "2 multiples for rank 1"},
    {TFL_TILE, 0, 1, {4}, {1}, {{1 << 26}}, {{0}}, "take more than 16 times the size"},
    {TFL_MIRROR_PAD, 77, 1, {4}, {2}, {{4, 0}}, {{0}}, "paddings 4 and 0 of a dimension of 4"},
    {TFL_MIRROR_PAD, 77, 1, {4}, {2}, {{4, 5}}, {{0, 1}}, "paddings 4 and 5 of a dimension of 4"},
    {TFL_MIRROR_PAD, 77, 1, {4}, {2}, {{1, 1}}, {{0, 2}}, "its mode is 2"},
    {TFL_MIRROR_PAD, 77, 1, {4}, {2}, {{-1, 1}}, {{0}}, "paddings -1 and 1"},
    {TFL_SPACE_TO_DEPTH, 19, 4, {1, 4, 3, 2}, {0}, {{0}}, {{0, 2}}, "4x3 pixels in blocks of 2"},
    {TFL_SPACE_TO_DEPTH, 19, 4, {1, 4, 4, 2}, {0}, {{0}}, {{0}}, "4x4 pixels in blocks of 0"},
    {TFL_SPACE_TO_DEPTH, 19, 2, {4, 4}, {0}, {{0}}, {{0, 2}}, "input 0 has rank 2"},
    {TFL_DEPTH_TO_SPACE, 94, 4, {1, 2, 2, 6}, {0}, {{0}}, {{0, 2}}, "6 channels in blocks of 2x2"},
    {TFL_DEPTH_TO_SPACE, 94, 4, {1, 2, 2, 4}, {0}, {{0}}, {{0, 1 << 16}}, "4 channels in blocks"},
    {TFL_DEPTH_TO_SPACE, 94, 4, {1, 2, 2, 4}, {0}, {{0}}, {{0, ~0u}}, "4 channels in blocks of -1"},
    {TFL_SPACE_TO_BATCH_ND, 25, 4, {1, 3, 4, 2}, {2, 4}, {{2, 2}, {0}}, {{0}}, "3x4 pixels in"},
    {TFL_SPACE_TO_BATCH_ND, 25, 4, {1, 4, 4, 2}, {2, 4}, {{0, 2}, {0}}, {{0}}, "a side of 0"},
    {TFL_SPACE_TO_BATCH_ND, 25, 4, {1, 4, 4, 2}, {1, 2}, {{2}, {0}}, {{0}}, "a block of 1 sides"},
    {TFL_SPACE_TO_BATCH_ND, 25, 4, {1, 4, 4, 2}, {2, 2}, {{2, 2}, {0}}, {{0}}, "2 paddings"},
    {TFL_BATCH_TO_SPACE_ND, 24, 4, {6, 2, 2, 1}, {2, 4}, {{2, 2}, {0}}, {{0}}, "a batch of 6 in"},
    {TFL_BATCH_TO_SPACE_ND, 24, 4, {4, 2, 2, 1}, {2, 4}, {{2, 2}, {2, 2}}, {{0}}, "be empty"},
    {TFL_SLICE, 48, 1, {4}, {1, 1}, {{1}, {4}}, {{0}}, "begin 1, size 4 of a dimension of 4"},
    {TFL_SLICE, 48, 1, {4}, {1, 1}, {{-1}, {1}}, {{0}}, "begin -1, size 1 of a dimension of 4"},
    {TFL_SLICE, 48, 1, {4}, {1, 1}, {{4}, {-1}}, {{0}}, "begin 4, size -1 of a dimension of 4"},
    {TFL_SLICE, 48, 1, {4}, {2, 1}, {{0, 0}, {1}}, {{0}}, "2 begins and 1 sizes for rank 1"},
    {TFL_SPLIT_V, 79, 1, {4}, {1, 1}, {{3}, {0}}, {{0, 1}}, "its parts leave 1 of dimension 0"},
    {TFL_SPLIT_V, 79, 1, {4}, {1, 1}, {{5}, {0}}, {{0, 1}}, "a part of 5 of dimension 0 of 4"},
    {TFL_SPLIT_V, 79, 1, {4}, {1, 1}, {{-2}, {0}}, {{0, 1}}, "a part of -2 of dimension 0 of 4"},
    {TFL_SPLIT_V, 79, 1, {4}, {2, 1}, {{2, 2}, {0}}, {{0, 2}}, "2 sizes for 1 outputs"},
    {TFL_UNPACK, 64, 1, {4}, {0}, {{0}}, {{0, 4}}, "dimension 0 of 4 has not 1 positions"},
    {TFL_PACK, 59, 1, {4}, {0}, {{0}}, {{0, 1}, {1, 2}}, "axis 2 of a tensor of rank 2"},
};

static struct net net_of(const struct move *m)
{
    struct net n = {.tensors = {activation(TFL_INT8, m->rank_x, m->x, 0.5f, 3)},
                    .n_tensors = 1,
                    .op = {.code = m->code,
                           .n_outputs = 1,
                           .options_type = m->options_type,
                           .n_options = m->options_type ? 2 : 0,
                           .options = {m->options[0], {1, m->options[1].bits}}}};
    for (int i = 0; i < 2 && m->counts[i]; i++)
        n.tensors[n.n_tensors++] = constant(activation(TFL_INT32, 1, &m->counts[i], 0, 0),
                                            m->values[i], (size_t)m->counts[i] * sizeof(int32_t));
    n.op.n_inputs = n.op.outputs[0] = n.n_tensors;
    for (int i = 0; i < n.n_tensors; i++)
        n.op.inputs[i] = i;
    n.tensors[n.n_tensors++] = activation(TFL_INT8, 0, NULL, 0.5f, 3);
    return n;
}

START_TEST(moves_are_refused)
{
    struct net const n = net_of(&moves[_i]);
    refuse(&n, moves[_i].says);
}
END_TEST

/** Forms that the golden data lack: -1 for a size that the others leave, blocks of one side. */
START_TEST(moves_of_other_forms)
{
    static const int32_t six[] = {6}, two[] = {2}, three[] = {3}, swapped[] = {2, 3, 1};
    static const int8_t last[] = {4, 5}, even_odd[] = {0, 2, 4, 1, 3, 5};
    struct move const slice = {TFL_SLICE, TFL_OPTIONS_SLICE, 1,     {6},
                               {1, 1},    {{4}, {-1}},       {{0}}, ""};
    struct net n = net_of(&slice);
    run(&n, 1, two, last);
    struct move const split = {TFL_SPLIT_V, TFL_OPTIONS_SPLIT_V, 1,        {6},
                               {1, 1},      {{-1}, {0}},         {{0, 1}}, ""};
    n = net_of(&split);
    run(&n, 1, six, (const int8_t[]){0, 1, 2, 3, 4, 5});
    struct move const blocks = {TFL_SPACE_TO_BATCH_ND,
                                TFL_OPTIONS_SPACE_TO_BATCH_ND,
                                3,
                                {1, 6, 1},
                                {1, 2},
                                {{2}, {0, 0}},
                                {{0}},
                                ""};
    n = net_of(&blocks);
    run(&n, 3, swapped, even_odd);
    struct move const row = {
        TFL_GATHER_ND, TFL_OPTIONS_GATHER_ND, 3, {2, 2, 3}, {2}, {{1, 0}}, {{0}}, ""};
    n = net_of(&row);
    run(&n, 1, three, (const int8_t[]){6, 7, 8});
}
END_TEST

/* ------------------------------------------------------------------ convolutions */

/** TRANSPOSE_CONV of 2x2 by a kernel of 2x2, stride 2. */
static struct net transposed(const int32_t stated[4], int padding)
{
    static const int32_t x[] = {1, 2, 2, 1}, four[] = {4};
    static const int8_t weights[] = {1, 2, 3, 4};
    return (struct net){
        .tensors = {activation(TFL_INT8, 4, x, 0.5f, 3),
                    constant(activation(TFL_INT32, 1, four, 0, 0), stated, 16),
                    constant(activation(TFL_INT8, 4, x, 0.5f, 0), weights, sizeof weights),
                    activation(TFL_INT8, 4, stated, 0.5f, 3)},
        .n_tensors = 4,
        .op = {.code = TFL_TRANSPOSE_CONV,
               .n_inputs = 3,
               .inputs = {1, 2, 0},
               .n_outputs = 1,
               .outputs = {3},
               .options_type = TFL_OPTIONS_TRANSPOSE_CONV,
               .n_options = 3,
               .options = {{TRANSPOSE_CONV_PADDING, (uint32_t)padding},
                           {TRANSPOSE_CONV_STRIDE_W, 2},
                           {TRANSPOSE_CONV_STRIDE_H, 2}}}};
}

START_TEST(a_transposed_convolution_has_the_input_of_its_stated_output)
{
    static const int32_t good[][4] = {{1, 4, 4, 1}, {1, 3, 4, 1}}, bad[] = {1, 6, 4, 1};
    struct net n = transposed(good[0], TFL_SAME);
    import(&n);
    n = transposed(good[0], TFL_VALID);
    import(&n);
    n = transposed(good[1], TFL_SAME);
    import(&n);
    n = transposed(good[1], TFL_VALID);
    refuse(&n, "its output has the shape 3x4; for an input of 2x2 it must be 1x2");
    n = transposed(bad, TFL_SAME);
    refuse(&n, "its output has the shape 6x4; for an input of 2x2 it must be 3x2");
}
END_TEST

/** x [1,1,1,2] and one row of weights; S_x S_w / S_y = 0.25. */
static struct net biased(int code, int type, float bias_scale)
{
    static const int32_t x[] = {1, 1, 1, 2}, y[] = {1, 1, 1, 1};
    static const uint8_t weights[] = {1, 2};
    static const int32_t bias[] = {5};
    int const connected = code == TFL_FULLY_CONNECTED;
    struct net n = {
        .tensors = {activation(type, 4, x, 0.5f, 3),
                    constant(activation(type, connected ? 2 : 4, connected ? x + 2 : x, 0.5f, 0),
                             weights, sizeof weights),
                    constant(activation(TFL_INT32, 1, y, bias_scale, 0), bias, sizeof bias),
                    activation(type, 4, y, 1, 3)},
        .n_tensors = 4,
        .op = {.code = code,
               .n_inputs = 3,
               .inputs = {0, 1, 2},
               .n_outputs = 1,
               .outputs = {3},
               .options_type = connected ? TFL_OPTIONS_FULLY_CONNECTED : TFL_OPTIONS_CONV_2D,
               .n_options = connected ? 0 : 2,
               .options = {{CONV_STRIDE_W, 1}, {CONV_STRIDE_H, 1}}}};
    return n;
}

START_TEST(a_bias_has_the_scale_of_the_products)
{
    static const int types[] = {TFL_UINT8, TFL_INT8}, codes[] = {TFL_CONV_2D, TFL_FULLY_CONNECTED};
    for (int i = 0; i < 4; i++) {
        int const type = types[i & 1], code = codes[i >> 1];
        struct net n = biased(code, type, 0.25f);
        import(&n);
        n = biased(code, type, 0.26f); /* 0.01 of a step */
        import(&n);
        n = biased(code, type, 0.28f);
        if (code == TFL_CONV_2D && type == TFL_INT8)
            import(&n);
        else
            refuse(&n, "its bias, t, has the scale 0.28, but its products have 0.25");
    }
}
END_TEST

/** A channel of a scale next to nothing gives the zero point, whatever its bias is. */
START_TEST(a_bias_that_nothing_sees_is_dropped)
{
    static const int32_t largest[] = {INT32_MAX}, y[] = {1, 1, 1, 1};
    for (int i = 0; i < 2; i++) {
        struct net n = biased(i ? TFL_FULLY_CONNECTED : TFL_CONV_2D, TFL_INT8, 0);
        n.tensors[2].data = largest;
        n.tensors[1].scale = 0.25f;
        n.tensors[2].scale = 0.125f; /* that of the products */
        refuse(&n, "beyond int32");
        n.tensors[1].scale = 1e-41f;
        n.tensors[2].scale = 0;
        run(&n, i ? 2 : 4, y, (const int8_t[]){3});
    }
}
END_TEST

START_TEST(weights_alone_are_not_enough)
{
    struct net n = biased(TFL_CONV_2D, TFL_INT8, 0.25f);
    n.tensors[0].type = n.tensors[3].type = TFL_FLOAT32;
    n.tensors[0].scale = n.tensors[3].scale = 0;
    refuse(&n, "its weights are int8, but tensor 0 (t), its input, is float32: only the weights "
               "were quantized");
}
END_TEST

/** Its pixels would be divided by infinity. */
START_TEST(a_picture_of_the_smallest_scale_has_no_preprocessing)
{
    static const int32_t dims[] = {1, 2, 2, 1};
    struct net n = {.tensors = {activation(TFL_UINT8, 4, dims, 1e-41f, 9),
                                activation(TFL_UINT8, 4, dims, 1, 3)},
                    .n_tensors = 2,
                    .op = {.code = TFL_RELU, .n_inputs = 1, .n_outputs = 1, .outputs = {1}}};
    run(&n, 4, dims, (const int8_t[]){3, 3, 3, 3});
    build_model const m = model_of(&n);
    qi_host *h = NULL;
    test_open_built(&h, &m);
    ck_assert_int_eq(qi_model_preprocessing(qi_host_model(h))->kind, 0);
    qi_host_close(h);
}
END_TEST

/* ------------------------------------------------------------------ one tensor in */

static struct net elementwise(int code, int options_type, float scale, int zero_point)
{
    static const int32_t dims[] = {1, 4};
    return (struct net){.tensors = {activation(TFL_INT8, 2, dims, 0.5f, 3),
                                    activation(TFL_INT8, 2, dims, scale, zero_point)},
                        .n_tensors = 2,
                        .op = {.code = code,
                               .n_inputs = 1,
                               .inputs = {0},
                               .n_outputs = 1,
                               .outputs = {1},
                               .options_type = options_type}};
}

START_TEST(some_operators_end_on_one_grid)
{
    struct net n = elementwise(TFL_LOGISTIC, 0, 1.0f / 256, -128);
    import(&n);
    n = elementwise(TFL_LOGISTIC, 0, 1.0f / 128, 0);
    refuse(&n, "its output has the scale 0.0078125; only 1/256 is supported");
    n = elementwise(TFL_TANH, 0, 1.0f / 100, 7);
    import(&n);
}
END_TEST

START_TEST(l2_normalization_has_no_activation)
{
    struct net n = elementwise(TFL_L2_NORMALIZATION, TFL_OPTIONS_L2_NORM, 1.0f / 128, 0);
    import(&n);
    n.op.n_options = 1;
    n.op.options[0] = (build_option){L2_NORM_ACTIVATION, TFL_ACT_RELU};
    refuse(&n, "fused activation 1 is not supported (only NONE is)");
}
END_TEST

START_TEST(options_are_of_the_operators_own_table)
{
    struct net n = elementwise(TFL_RELU, TFL_OPTIONS_CONV_2D, 0.5f, 3);
    refuse(&n, "op 0 (RELU, writes tensor 1, t): its options are table 1");
    n = elementwise(TFL_L2_NORMALIZATION, TFL_OPTIONS_ADD, 1.0f / 128, 0);
    refuse(&n, "its options are table 11 of the schema's BuiltinOptions instead of 12");
    n = elementwise(TFL_L2_NORMALIZATION, TFL_NO_OPTIONS, 1.0f / 128, 0);
    n.op.n_options = 1; /* a table that is none of the schema's is not read */
    n.op.options[0] = (build_option){L2_NORM_ACTIVATION, TFL_ACT_RELU};
    import(&n);
}
END_TEST

START_TEST(zero_as_the_new_shape_is_a_scalar)
{
    static const int32_t one[] = {1};
    static const int8_t first[] = {0};
    struct net n = elementwise(TFL_RESHAPE, TFL_OPTIONS_RESHAPE, 0.5f, 3);
    n.tensors[0] = activation(TFL_INT8, 1, one, 0.5f, 3);
    n.op.n_ints = 1; /* [0] */
    run(&n, 1, one, first);
    n.op.n_ints = 2;
    refuse(&n, "its new shape has a dimension of 0");
}
END_TEST

START_TEST(an_axis_of_nothing_is_refused)
{
    static const int32_t axis[] = {1};
    struct net n = elementwise(TFL_ARG_MAX, TFL_OPTIONS_ARG_MAX, 0.5f, 3);
    n.tensors[2] = n.tensors[1];
    n.tensors[1] = constant(activation(TFL_INT32, 0, NULL, 0, 0), axis, sizeof axis);
    n.n_tensors = 3;
    n.op.n_inputs = 2;
    n.op.inputs[0] = n.op.outputs[0] = 2;
    n.op.inputs[1] = 1;
    refuse(&n, "input 0 is not written yet");
}
END_TEST

/* ------------------------------------------------------------------ two tensors in */

/** x [2,1,2] and a constant. */
static struct net binary(int code, int options_type, int rank, const int32_t *dims, const int8_t *b)
{
    static const int32_t x[] = {2, 1, 2};
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    return (struct net){.tensors = {activation(TFL_INT8, 3, x, 0.5f, 3),
                                    constant(activation(TFL_INT8, rank, dims, 0.25f, -9), b, count),
                                    activation(TFL_INT8, 3, x, 2, 77)},
                        .n_tensors = 3,
                        .op = {.code = code,
                               .n_inputs = 2,
                               .inputs = {0, 1},
                               .n_outputs = 1,
                               .outputs = {2},
                               .options_type = options_type}};
}

START_TEST(extremes_are_of_codes_whatever_they_mean)
{
    static const int32_t dims[] = {2}, y[] = {2, 1, 2};
    static const int8_t b[] = {1, 2}, larger[] = {1, 2, 2, 3}, smaller[] = {0, 1, 1, 2};
    struct net n = binary(TFL_MAXIMUM, TFL_OPTIONS_MAXIMUM_MINIMUM, 1, dims, b);
    run(&n, 3, y, larger);
    n.op.code = TFL_MINIMUM;
    run(&n, 3, y, smaller);
}
END_TEST

START_TEST(alpha_stretches_to_its_input)
{
    static const int32_t fits[] = {1, 2}, wider[] = {3, 2}, deeper[] = {1, 1, 1, 2};
    static const int8_t b[6] = {0};
    struct net n = binary(TFL_PRELU, 0, 2, fits, b);
    import(&n);
    n = binary(TFL_PRELU, 0, 2, wider, b);
    refuse(&n, "its alpha has a dimension of 3, but its input has 1");
    n = binary(TFL_PRELU, 0, 4, deeper, b);
    refuse(&n, "input 1 has rank 4");
}
END_TEST

START_TEST(comparisons_make_truth_values)
{
    static const int32_t dims[] = {2}, y[] = {2, 1, 2};
    static const int8_t b[] = {-15, -9}; /* -1.5 and 0; x is -1.5, -1, -0.5, 0 */
    static const int8_t equal[] = {1, 0, 0, 1}, less[] = {0, 1, 0, 0};
    struct net n = binary(TFL_EQUAL, TFL_OPTIONS_EQUAL, 1, dims, b);
    n.tensors[2] = activation(TFL_BOOL, 3, y, 0, 0);
    run(&n, 3, y, equal);
    n.op.code = TFL_LESS;
    n.op.options_type = TFL_OPTIONS_LESS;
    run(&n, 3, y, less);
    n.tensors[2].type = TFL_INT8;
    refuse(&n, "its output is int8 instead of bool");
    n.tensors[2].type = TFL_BOOL;
    n.tensors[0].scale = 1.0f;
    refuse(&n, "t is int8 with scale 1; only int8 and uint8 with scales below 1 are supported");
    n.tensors[0].type = TFL_UINT8;
    refuse(&n, "its inputs have different types");
}
END_TEST

/** A condition, one constant for where it holds, one for elsewhere. */
static struct net selection(int code, int options_type)
{
    static const int32_t x[] = {2, 2}, one[] = {1};
    static const int8_t a[] = {5}, b[] = {1, 2, 3, 4};
    return (struct net){.tensors = {activation(TFL_BOOL, 2, x, 0, 0),
                                    constant(activation(TFL_INT8, 1, one, 0.5f, 3), a, 1),
                                    constant(activation(TFL_INT8, 2, x, 0.5f, 3), b, 4),
                                    activation(TFL_INT8, 2, x, 0.5f, 3)},
                        .n_tensors = 4,
                        .op = {.code = code,
                               .n_inputs = 3,
                               .inputs = {0, 1, 2},
                               .n_outputs = 1,
                               .outputs = {3},
                               .options_type = options_type}};
}

START_TEST(select_takes_truth_values)
{
    static const int32_t y[] = {2, 2};
    static const int8_t picked[] = {1, 5, 5, 5}; /* 0 is false; what is above 1 is no code */
    struct net n = selection(TFL_SELECT_V2, TFL_OPTIONS_SELECT_V2);
    run(&n, 2, y, picked);
    n.tensors[0].type = TFL_INT8;
    refuse(&n, "input 0 is int8 instead of bool");
    n = selection(TFL_SELECT, TFL_OPTIONS_SELECT);
    refuse(&n, "its inputs have different shapes");
    n.op.inputs[1] = 2;
    import(&n);
    n.tensors[3].type = TFL_UINT8;
    refuse(&n, "tensor 3 (t) is uint8, but its input is not");
}
END_TEST

START_TEST(casts_keep_the_stored_integers)
{
    static const int32_t dims[] = {1, 4};
    static const int8_t same[] = {0, 1, 2, 3}, truths[] = {0, 1, 1, 1};
    struct net n = elementwise(TFL_CAST, TFL_OPTIONS_CAST, 2.0f, 77);
    run(&n, 2, dims, same);
    n.tensors[1] = activation(TFL_BOOL, 2, dims, 0, 0);
    run(&n, 2, dims, truths);
    n.tensors[0].type = TFL_INT32;
    n.tensors[0].zero_point = 0;
    n.tensors[1] = activation(TFL_FLOAT32, 2, dims, 0, 0);
    import(&n);
    n.tensors[0].type = TFL_INT64;
    refuse(&n, "it makes float32 of t, which is int64");
    n.tensors[0] = activation(TFL_FLOAT32, 2, dims, 0, 0);
    n.tensors[1] = activation(TFL_UINT8, 2, dims, 0, 0);
    import(&n);
}
END_TEST

START_TEST(arithmetic_needs_a_scale)
{
    static const int32_t dims[] = {1, 4};
    struct net n = elementwise(TFL_TANH, 0, 0.5f, 3);
    n.tensors[0] = activation(TFL_INT8, 2, dims, 0, 0);
    refuse(&n, "tensor 0 (t) has no quantization parameters");
    n.tensors[0] = activation(TFL_BOOL, 2, dims, 0, 0);
    refuse(&n, "tensor 0 (t) is bool; only uint8, int8 and int16 run in integers");
}
END_TEST

START_TEST(some_functions_are_of_int8)
{
    static const int32_t dims[] = {1, 4};
    static const struct {
        int code, options;
    } ops[] = {
        {TFL_ELU, 0}, {TFL_LOG, 0}, {TFL_SQRT, 0}, {TFL_RSQRT, 0}, {TFL_EXP, TFL_OPTIONS_EXP}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct net n = elementwise(ops[i].code, ops[i].options, 0.5f, 3);
        import(&n);
        n.tensors[0].type = n.tensors[1].type = TFL_UINT8;
        refuse(&n, "only int8");
        n.tensors[0].type = n.tensors[1].type = TFL_INT16;
        n.tensors[0].zero_point = n.tensors[1].zero_point = 0;
        if (ops[i].code == TFL_ELU || ops[i].code == TFL_SQRT)
            refuse(&n, "only int8");
        else
            import(&n);
    }
    struct net n = elementwise(TFL_LOG_SOFTMAX, TFL_OPTIONS_LOG_SOFTMAX, 1.0f / 16, 127);
    import(&n);
    n.tensors[1].scale = 1.0f / 8;
    refuse(&n, "its output has scale 0.125 and zero point 127; only 1/16 and 127 are supported");
    n = elementwise(TFL_SQRT, 0, 0.25f, -128); /* sqrt(0.5 (q - 3)) */
    n.tensors[0].zero_point = -2;
    run(&n, 2, dims, (const int8_t[]){-124, -124, -123, -122}); /* 4, 4.9, 5.7, 6.3 steps */
    n = elementwise(TFL_NEG, TFL_OPTIONS_NEG, 0.5f, 3);
    run(&n, 2, dims, (const int8_t[]){0, -1, -2, -3}); /* whatever the zero point */
}
END_TEST

START_TEST(reductions_keep_the_grid)
{
    static const int32_t axis[] = {-1}, y[] = {1, 1};
    struct net n = elementwise(TFL_REDUCE_MAX, TFL_OPTIONS_REDUCER, 0.5f, 3);
    n.tensors[2] = activation(TFL_INT8, 2, y, 0.5f, 3);
    n.tensors[1] = constant(activation(TFL_INT32, 0, NULL, 0, 0), axis, sizeof axis);
    n.n_tensors = 3;
    n.op.n_inputs = 2;
    n.op.inputs[1] = 1;
    n.op.outputs[0] = 2;
    n.op.n_options = 1;
    n.op.options[0] = (build_option){REDUCER_KEEP_DIMS, 1};
    run(&n, 2, y, (const int8_t[]){3});
    n.op.code = TFL_REDUCE_MIN;
    run(&n, 2, y, (const int8_t[]){0});
    n.op.code = TFL_SUM; /* 0.5 (-3 - 2 - 1 - 0) */
    run(&n, 2, y, (const int8_t[]){-3});
    n.op.code = TFL_REDUCE_ALL;
    refuse(&n, "its input is int8 instead of bool");
    n.op.code = TFL_REDUCE_MAX;
    n.tensors[2].zero_point = 4;
    refuse(&n, "its output has another grid than its input");
}
END_TEST

/* ------------------------------------------------------------------ SVDF, LSTM */

/** The model's outputs are y and, as a RESHAPE behind the operator reads it, one of its variables.
 */
struct recurrent {
    build_tensor tensors[8];
    build_op ops[2];
    build_model model;
};

static void end_recurrent(struct recurrent *r, int n_tensors, int y, int variable, int copy)
{
    r->tensors[variable].variable = 1;
    r->ops[1] = (build_op){.code = TFL_RESHAPE,
                           .n_inputs = 1,
                           .inputs = {variable},
                           .n_outputs = 1,
                           .outputs = {copy},
                           .options_type = TFL_OPTIONS_RESHAPE,
                           .n_ints = 1,
                           .ints = {-1}};
    r->model = (build_model){.n_tensors = n_tensors,
                             .tensors = r->tensors,
                             .n_ops = 2,
                             .ops = r->ops,
                             .n_inputs = 1,
                             .n_outputs = 2,
                             .outputs = {y, copy}};
}

/** One filter, which remembers two features; all scales are 1. */
static void make_svdf(struct recurrent *r)
{
    enum { X, W, TIME, STATE, Y, COPY, TENSORS };
    static const int32_t two[] = {1, 2}, one[] = {1, 1};
    static const int8_t w[] = {1, 2};
    static const int16_t time[] = {3, 10};
    *r = (struct recurrent){
        .tensors = {[X] = activation(TFL_INT8, 2, two, 1, 0),
                    [W] = constant(activation(TFL_INT8, 2, two, 1, 0), w, sizeof w),
                    [TIME] = constant(activation(TFL_INT16, 2, two, 1, 0), time, sizeof time),
                    [STATE] = activation(TFL_INT16, 2, two, 1, 0),
                    [Y] = activation(TFL_INT8, 2, one, 1, 0),
                    [COPY] = activation(TFL_INT16, 1, two + 1, 1, 0)},
        .ops = {{.code = TFL_SVDF,
                 .n_inputs = 5,
                 .inputs = {X, W, TIME, -1, STATE},
                 .n_outputs = 1,
                 .outputs = {Y},
                 .options_type = TFL_OPTIONS_SVDF,
                 .n_options = 2,
                 .options = {{SVDF_RANK, 1}, {SVDF_ACTIVATION, TFL_ACT_RELU}}}}};
    end_recurrent(r, TENSORS, Y, STATE, COPY);
}

/** One unit, whose gates share weights and bias. */
static void make_lstm(struct recurrent *r)
{
    enum { X, W, BIAS, H, C, Y, HIDDEN, COPY, TENSORS };
    static const int32_t one[] = {1, 1, 1}, bias[] = {500};
    static const int8_t w[] = {100};
    *r = (struct recurrent){
        .tensors = {[X] = activation(TFL_INT8, 3, one, 0.05f, 0),
                    [W] = constant(activation(TFL_INT8, 2, one, 0.01f, 0), w, sizeof w),
                    [BIAS] = constant(activation(TFL_INT32, 1, one, 0, 0), bias, sizeof bias),
                    [H] = activation(TFL_INT8, 2, one, 0.01f, 3),
                    [C] = activation(TFL_INT16, 2, one, 1.0f / 2048, 0),
                    [Y] = activation(TFL_INT8, 3, one, 0.01f, 3),
                    [HIDDEN] = activation(TFL_INT8, 1, one, 0.01f, 3),
                    [COPY] = activation(TFL_INT8, 1, one, 0.01f, 3)},
        .ops = {{.code = TFL_UNIDIRECTIONAL_SEQUENCE_LSTM,
                 .n_inputs = 24,
                 .inputs = {X,    W,    W,    W,    W,  W,  W, W, W,  -1, -1, -1,
                            BIAS, BIAS, BIAS, BIAS, -1, -1, H, C, -1, -1, -1, -1},
                 .n_outputs = 1,
                 .outputs = {Y},
                 .options_type = TFL_OPTIONS_UNIDIRECTIONAL_SEQUENCE_LSTM,
                 .n_options = 1,
                 .options = {{LSTM_ACTIVATION, TFL_ACT_TANH}},
                 .n_intermediates = 5,
                 .intermediates = {HIDDEN, HIDDEN, HIDDEN, HIDDEN, HIDDEN}}}};
    r->tensors[C].variable = 1;
    end_recurrent(r, TENSORS, Y, H, COPY);
}

START_TEST(a_variable_has_its_new_value_behind_its_operator)
{
    static struct recurrent r;
    int8_t const x[] = {3, 4};
    int8_t y = 0, h = 0;
    int16_t state[2] = {-1, -1};
    qi_host *host = NULL;
    make_svdf(&r);
    test_open_built(&host, &r.model);
    qi_host_run(host, (const void *const[]){x}, (void *const[]){&y, state});
    ck_assert_int_eq(y, 110);
    ck_assert_int_eq(state[0], 0);
    ck_assert_int_eq(state[1], 11);
    qi_host_close(host);
    make_lstm(&r);
    test_open_built(&host, &r.model);
    qi_host_run(host, (const void *const[]){x}, (void *const[]){&y, &h});
    ck_assert_int_gt(y, 3);
    ck_assert_int_eq(h, y);
    qi_host_close(host);
}
END_TEST

/** One step of one sequence is the same, whichever dimension comes first. */
START_TEST(a_sequence_may_have_its_time_first)
{
    static struct recurrent r;
    int8_t const x[] = {3};
    int8_t y[2] = {0}, h = 0;
    for (int i = 0; i < 2; i++) {
        qi_host *host = NULL;
        make_lstm(&r);
        r.ops[0].n_options = 2;
        r.ops[0].options[1] = (build_option){LSTM_TIME_MAJOR, (uint32_t)i};
        test_open_built(&host, &r.model);
        qi_host_run(host, (const void *const[]){x}, (void *const[]){&y[i], &h});
        qi_host_close(host);
    }
    ck_assert_int_eq(y[0], y[1]);
}
END_TEST

START_TEST(recurrent_operators_have_dense_constants_with_one_scale)
{
    enum { W = 1, TIME_OR_BIAS = 2 };
    static const float scales[] = {0, -1, INFINITY, NAN};
    static struct recurrent r;
    make_svdf(&r);
    r.model.scales_of = W;
    r.model.n_scales = 2;
    test_refuse_built(&r.model, "its weights, tensor 1 (t), have several scales");
    r.model.scales_of = TIME_OR_BIAS;
    test_refuse_built(&r.model, "its weights, tensor 2 (t), have several scales");
    make_lstm(&r);
    r.tensors[W].sparse = 1;
    test_refuse_built(&r.model, "input 1, weights of a gate, is not an int8 constant [1, 1]");
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        make_lstm(&r);
        r.tensors[W].scale = scales[i];
        test_refuse_built(&r.model, "input 1, weights of a gate, is not an int8 constant [1, 1]");
    }
    make_lstm(&r);
    r.tensors[TIME_OR_BIAS].sparse = 1;
    test_refuse_built(&r.model, "input 12, the bias of a gate, is not a dense int32 constant");
}
END_TEST

/** The multiplier is of S beta as float32, divided in float64; the tables are of float64. */
START_TEST(softmax_of_16_bits_has_the_references_constants)
{
    float const scale = 0.000345678f, beta = 0.4f;
    static const int32_t dims[] = {1, 4};
    struct net n = elementwise(TFL_SOFTMAX, TFL_OPTIONS_SOFTMAX, 0.5f, 0);
    uint32_t bits;
    qi_host *h = NULL;
    n.tensors[0] = activation(TFL_INT16, 2, dims, scale, 0);
    n.tensors[1] = activation(TFL_INT16, 2, dims, 1.0f / 32768, 0);
    memcpy(&bits, &beta, sizeof bits);
    n.op.n_options = 1;
    n.op.options[0] = (build_option){SOFTMAX_BETA, bits};
    build_model const m = model_of(&n);
    test_open_built(&h, &m);
    float const product = scale * beta;
    double const real = (double)product / (10.0 / 65535.0);
    const qi_node *node = qi_node_at(qi_host_model(h), 0);
    const int32_t *params = node->params;
    const int16_t *reciprocals = qi_tensor_at(qi_host_model(h), node->inputs[2])->data;
    ck_assert_int_eq(reciprocals[160], 24967); /* 24966 and 20816 in float32 */
    ck_assert_int_eq(reciprocals[294], 20815);
    ck_assert_int_eq(params[0], (int32_t)round(real * 0x1p31)); /* between 1/2 and 1 */
    ck_assert_int_eq(params[1], 0);
    ck_assert_int_ne(params[0],
                     (int32_t)round((double)scale * (double)beta / (10.0 / 65535.0) * 0x1p31));
    qi_host_close(h);
}
END_TEST

START_TEST(softmax_of_8_bits_may_have_16)
{
    static const int32_t dims[] = {1, 4};
    struct net n = elementwise(TFL_SOFTMAX, TFL_OPTIONS_SOFTMAX, 0.5f, 0);
    float const beta = 1;
    int8_t const x[] = {0, 1, 2, 3};
    int16_t y[4];
    double sum = 0;
    uint32_t bits;
    qi_host *h = NULL;
    memcpy(&bits, &beta, sizeof bits);
    n.op.n_options = 1;
    n.op.options[0] = (build_option){SOFTMAX_BETA, bits};
    n.tensors[1] = activation(TFL_INT16, 2, dims, 1.0f / 65536, INT16_MIN);
    build_model const m = model_of(&n);
    test_open_built(&h, &m);
    qi_host_run(h, (const void *const[]){x}, (void *const[]){y});
    qi_host_close(h);
    for (int i = 0; i < 4; i++)
        sum += exp(0.5 * x[i]);
    for (int i = 0; i < 4; i++)
        ck_assert_int_le(abs(y[i] - INT16_MIN - (int)round(65536 * exp(0.5 * x[i]) / sum)), 2);
    n.tensors[1].scale = 1.0f / 32768;
    refuse(&n, "only 1/65536 and -32768 are supported");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tflite_ops");
    TCase *tc = tcase_create("operators");
    tcase_add_loop_test(tc, slices_are_the_references, 0, (int)(sizeof slices / sizeof *slices));
    tcase_add_loop_test(tc, moves_are_refused, 0, (int)(sizeof moves / sizeof *moves));
    tcase_add_test(tc, moves_of_other_forms);
    tcase_add_test(tc, a_transposed_convolution_has_the_input_of_its_stated_output);
    tcase_add_test(tc, a_bias_has_the_scale_of_the_products);
    tcase_add_test(tc, a_bias_that_nothing_sees_is_dropped);
    tcase_add_test(tc, weights_alone_are_not_enough);
    tcase_add_test(tc, a_picture_of_the_smallest_scale_has_no_preprocessing);
    tcase_add_test(tc, some_operators_end_on_one_grid);
    tcase_add_test(tc, l2_normalization_has_no_activation);
    tcase_add_test(tc, options_are_of_the_operators_own_table);
    tcase_add_test(tc, zero_as_the_new_shape_is_a_scalar);
    tcase_add_test(tc, an_axis_of_nothing_is_refused);
    tcase_add_test(tc, extremes_are_of_codes_whatever_they_mean);
    tcase_add_test(tc, alpha_stretches_to_its_input);
    tcase_add_test(tc, comparisons_make_truth_values);
    tcase_add_test(tc, select_takes_truth_values);
    tcase_add_test(tc, casts_keep_the_stored_integers);
    tcase_add_test(tc, arithmetic_needs_a_scale);
    tcase_add_test(tc, some_functions_are_of_int8);
    tcase_add_test(tc, reductions_keep_the_grid);
    tcase_add_test(tc, a_variable_has_its_new_value_behind_its_operator);
    tcase_add_test(tc, a_sequence_may_have_its_time_first);
    tcase_add_test(tc, recurrent_operators_have_dense_constants_with_one_scale);
    tcase_add_test(tc, softmax_of_16_bits_has_the_references_constants);
    tcase_add_test(tc, softmax_of_8_bits_may_have_16);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
