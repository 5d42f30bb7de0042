/** Finds the kernel for the name of an op. */
#include "infer/model.h"

static const qi_kernel *const built_in[] = {
    &qi_kernel_conv2d,
    &qi_kernel_depthwise_conv2d,
    &qi_kernel_fully_connected,
    &qi_kernel_add,
    &qi_kernel_sub,
    &qi_kernel_mul,
    &qi_kernel_concat,
    &qi_kernel_average_pool2d,
    &qi_kernel_max_pool2d,
    &qi_kernel_mean,
    &qi_kernel_softmax,
    &qi_kernel_logistic,
    &qi_kernel_tanh,
    &qi_kernel_requantize,
    &qi_kernel_table,
    &qi_kernel_reshape,
    &qi_kernel_transpose_conv2d,
    &qi_kernel_maximum,
    &qi_kernel_minimum,
    &qi_kernel_prelu,
    &qi_kernel_l2_normalization,
    &qi_kernel_pad,
    &qi_kernel_resize_bilinear,
    &qi_kernel_resize_nearest,
    &qi_kernel_arg_max,
    &qi_kernel_strided_slice,
    &qi_kernel_transpose,
};

static int equal(const char *a, const char *b)
{
    for (; *a && *a == *b; a++)
        b++;
    return *a == *b;
}

const qi_kernel *qi_find_kernel(const char *name, const qi_kernel_list *custom)
{
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
        if (equal(built_in[i]->name, name))
            return built_in[i];
    for (size_t i = 0; custom && i < custom->count; i++)
        if (equal(custom->kernels[i]->name, name))
            return custom->kernels[i];
    return NULL;
}
