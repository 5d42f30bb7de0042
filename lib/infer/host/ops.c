/** All that a host has for the built-in ops: their rows and their drivers. */
#include "infer/host/loops/fast.h"

#include <string.h>

/* clang-format off */
#define MULT(name)   {name, 0, INT32_MAX}
#define SHIFT(name)  {name, -31, 31}
#define MULTIPLIER   MULT("mult"), SHIFT("shift")
#define SIDE(name)   {name, 1, QM_MAX_SIDE} /* of a kernel, a stride, a dilation */
#define PADS         {"pad_top", 0, QM_MAX_SIDE}, {"pad_left", 0, QM_MAX_SIDE}
#define CODE(name)   {name, INT16_MIN, INT16_MAX}
#define CLAMP        CODE("clamp_lo"), CODE("clamp_hi")
#define AXIS(name)   {name, 0, QI_MAX_RANK - 1}
#define POSITION(name) {name, 0, INT32_MAX}
#define INTEGER(name) {name, INT32_MIN, INT32_MAX}
#define STEP(name)   INTEGER(name) /* but 0 */
#define FLAG(name)   {name, 0, 1}
#define AXES(kind, name) kind(name "_0"), kind(name "_1"), kind(name "_2"), kind(name "_3")

#define LAYER  {"x", "w", "bias", "mult", "shift"}
#define CONV   SIDE("stride_h"), SIDE("stride_w"), SIDE("dilation_h"), SIDE("dilation_w"), PADS
#define POOL   SIDE("kernel_h"), SIDE("kernel_w"), SIDE("stride_h"), SIDE("stride_w"), PADS, CLAMP
#define ADD    {"left_shift", 0, 20}, MULT("mult_a"), SHIFT("shift_a"), \
               MULT("mult_b"), SHIFT("shift_b"), MULT("mult_y"), SHIFT("shift_y"), CLAMP
#define AXIS_MASK {"axis_mask", 1, (1 << QI_MAX_RANK) - 1}
#define EXP    MULT("mult"), {"shift", 0, 31}, {"diff_min", -(31 << 26), 0}
#define BINARY32(name) {name "_mant", 1 - (1 << 24), (1 << 24) - 1}, {name "_exp", -200, 200}
#define RADIUS {"radius", 0, 1 << 30}
#define NONE   {NULL, 0, 0}

/** The table of docs/qm-format.md. Each kernel's check refuses what lies outside these bounds. */
static const qi_op rows[] = {
    {&qi_kernel_conv2d, LAYER, {CONV, {"groups", 1, INT32_MAX}, CLAMP}},
    {&qi_kernel_depthwise_conv2d, LAYER, {CONV, {"multiplier", 1, INT32_MAX}, CLAMP}},
    {&qi_kernel_transpose_conv2d, LAYER, {SIDE("stride_h"), SIDE("stride_w"), PADS, CLAMP}},
    {&qi_kernel_fully_connected, LAYER, {CLAMP}},
    {&qi_kernel_add, {"a", "b"}, {ADD}},
    {&qi_kernel_sub, {"a", "b"}, {ADD}},
    {&qi_kernel_mul, {"a", "b"}, {MULTIPLIER, CLAMP}},
    {&qi_kernel_div, {"a", "b"}, {MULT("mult"), {"shift", -31, 23}, CLAMP}},
    {&qi_kernel_batch_matmul, {"a", "b"},
     {FLAG("transpose_a"), FLAG("transpose_b"), MULTIPLIER, CLAMP}},
    {&qi_kernel_squared_difference, {"a", "b"}, {ADD}},
    {&qi_kernel_compare, {"a", "b"},
     {{"kind", QI_EQUAL, QI_LESS_EQUAL}, {"left_shift", 0, 20}, MULT("mult_a"), SHIFT("shift_a"),
      MULT("mult_b"), SHIFT("shift_b")}},
    {&qi_kernel_select, {"condition", "a", "b"}, {NONE}},
    {&qi_kernel_maximum, {"a", "b"}, {NONE}},
    {&qi_kernel_minimum, {"a", "b"}, {NONE}},
    {&qi_kernel_prelu, {"x", "alpha"},
     {MULT("mult_pos"), SHIFT("shift_pos"), MULT("mult_neg"), SHIFT("shift_neg"), CLAMP}},
    {&qi_kernel_average_pool2d, {"x"}, {POOL}},
    {&qi_kernel_max_pool2d, {"x"}, {POOL}},
    {&qi_kernel_mean, {"x"}, {AXIS_MASK, MULTIPLIER, CLAMP}},
    {&qi_kernel_sum, {"x"}, {AXIS_MASK, BINARY32("scale"), BINARY32("bias"), CLAMP}},
    {&qi_kernel_reduce, {"x"}, {AXIS_MASK, {"kind", QI_LARGEST, QI_SMALLEST}}},
    {&qi_kernel_softmax, {"x"}, {EXP}},
    {&qi_kernel_log_softmax, {"x"}, {EXP, MULT("reverse_mult"), {"reverse_shift", -31, 0}}},
    {&qi_kernel_softmax16, {"x", "exp", "reciprocal"}, {MULTIPLIER}},
    {&qi_kernel_lstm, {"x", "h", "c", "w_x", "w_h", "bias"},
     {AXES(MULT, "mult_x"), AXES(SHIFT, "shift_x"), AXES(MULT, "mult_h"), AXES(SHIFT, "shift_h"),
      MULT("mult_y"), SHIFT("shift_y"), {"tanh_bits", 0, 4}, {"cell_clip", 0, INT16_MAX}}},
    {&qi_kernel_svdf, {"x", "w", "w_time", "bias", "state"},
     {{"rank", 1, INT32_MAX}, MULT("mult_state"), SHIFT("shift_state"),
      MULT("mult_y"), SHIFT("shift_y"), CLAMP}},
    {&qi_kernel_l2_normalization, {"x"}, {NONE}},
    {&qi_kernel_logistic, {"x"}, {MULTIPLIER, RADIUS}},
    {&qi_kernel_tanh, {"x"}, {MULTIPLIER, RADIUS}},
    {&qi_kernel_requantize, {"x"}, {MULTIPLIER, INTEGER("clamp_lo"), INTEGER("clamp_hi")}},
    {&qi_kernel_cast, {"x"}, {NONE}},
    {&qi_kernel_table, {"x", "table"}, {NONE}},
    {&qi_kernel_concat, {"x"}, {AXIS("axis")}},
    {&qi_kernel_reshape, {"x"}, {NONE}},
    {&qi_kernel_pad, {"x"}, {AXES(POSITION, "before"), AXES(POSITION, "after"), CODE("value")}},
    {&qi_kernel_resize_bilinear, {"x"}, {FLAG("align_corners"), FLAG("half_pixel_centers")}},
    {&qi_kernel_resize_nearest, {"x"}, {FLAG("align_corners"), FLAG("half_pixel_centers")}},
    {&qi_kernel_arg_max, {"x"}, {AXIS("axis")}},
    {&qi_kernel_top_k, {"x"}, {NONE}},
    {&qi_kernel_strided_slice, {"x"}, {AXES(POSITION, "begin"), AXES(STEP, "stride")}},
    {&qi_kernel_transpose, {"x"}, {AXES(AXIS, "perm")}},
    {&qi_kernel_gather, {"x", "indices"}, {AXIS("axis"), AXIS("batch_dims")}},
    {&qi_kernel_pack, {"x"}, {NONE}},
    {&qi_kernel_unpack, {"x"}, {NONE}},
};
/* clang-format on */

const qi_op *qi_op_named(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].kernel->name, name) == 0)
            return &rows[i];
    return NULL;
}

/** The drivers; of those of one kernel, the first that accepts a node runs it. */
static const qi_fast *const drivers[] = {
    &qi_fast_conv2d,
    &qi_fast_depthwise_conv2d,
    &qi_fast_transpose_conv2d,
    &qi_fast_fully_connected,
    &qi_fast_wide_conv2d,
    &qi_fast_wide_fully_connected,
    &qi_fast_add_function,
    &qi_fast_sub_function,
    &qi_fast_mul_function,
    &qi_fast_add_row,
    &qi_fast_sub_row,
    &qi_fast_mul_row,
    &qi_fast_add,
    &qi_fast_sub,
    &qi_fast_mul,
    &qi_fast_average_pool2d,
    &qi_fast_max_pool2d,
    &qi_fast_mean,
    &qi_fast_softmax,
    &qi_fast_requantize,
    &qi_fast_logistic,
    &qi_fast_tanh,
    &qi_fast_table,
    &qi_fast_concat,
    &qi_fast_pad,
    &qi_fast_resize_bilinear,
    &qi_fast_resize_float,
    &qi_fast_resize_nearest,
};

/** Does a node read and write bytes, or wider values? */
static int has_bytes(const qi_model *model, const qi_node *node)
{
    return qi_type_bytes(model->tensors[node->inputs[0]].type) == 1 &&
           qi_type_bytes(model->tensors[node->outputs[0]].type) == 1;
}

const qi_fast *qi_fast_for(const qi_isa *isa, const qi_model *model, const qi_node *node)
{
    if (node->n_inputs > QI_FAST_MAX_INPUTS || node->n_outputs != 1)
        return NULL;
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (drivers[i]->kernel == node->kernel && drivers[i]->is_wide != has_bytes(model, node) &&
            drivers[i]->accepts(isa, model, node))
            return drivers[i];
    return NULL;
}
