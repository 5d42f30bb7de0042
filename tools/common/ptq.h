/** Options of post-training quantization, the same in all commands that calibrate. */
#ifndef QAT_TOOLS_PTQ_H
#define QAT_TOOLS_PTQ_H

#include "tools/common/tool.h"

typedef struct tool_ptq {
    const char *data;     /* --ptq; NULL: not given */
    const char *observer; /* --observer */
    int64_t samples;      /* --ptq-samples */
    bool equalize, correct_bias;
    tool_list sets;
    qat_ptq_report report;
} tool_ptq;

extern tool_ptq tool_ptq_given;

/** Entries for a tool's table of options. */
#define TOOL_PTQ_OPTIONS                                                                           \
    {"--ptq",                                                                                      \
     TOOL_TEXT,                                                                                    \
     &tool_ptq_given.data,                                                                         \
     "KIND[:PATH]",                                                                                \
     "post-training quantization: find the activations' ranges on this training data;\n"           \
     "KIND 'recipe': the training data of the checkpoint's own recipe",                            \
     0,                                                                                            \
     0},                                                                                           \
        {"--ptq-samples",                                                                          \
         TOOL_INT,                                                                                 \
         &tool_ptq_given.samples,                                                                  \
         "N",                                                                                      \
         "calibrate on N samples (default 1000)",                                                  \
         1,                                                                                        \
         INT64_C(1) << 40},                                                                        \
        {"--observer",                                                                             \
         TOOL_TEXT,                                                                                \
         &tool_ptq_given.observer,                                                                 \
         "minmax|percentile[:P]|mse",                                                              \
         "how to find the ranges (default minmax)",                                                \
         0,                                                                                        \
         0},                                                                                       \
        {"--equalize",                                                                             \
         TOOL_FLAG,                                                                                \
         &tool_ptq_given.equalize,                                                                 \
         NULL,                                                                                     \
         "first make the weights' ranges of neighbouring layers equal",                            \
         0,                                                                                        \
         0},                                                                                       \
        {"--correct-bias",                                                                         \
         TOOL_FLAG,                                                                                \
         &tool_ptq_given.correct_bias,                                                             \
         NULL,                                                                                     \
         "then subtract the mean error of quantization from the biases",                           \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        "--set", TOOL_LIST, &tool_ptq_given.sets, "quant.KEY=VALUE",                               \
            "change layout, profile, weight_bits, activation_bits or fraction of "                 \
            "the recipe (repeatable)",                                                             \
            0, 0                                                                                   \
    }

/**
 * Call tool_usage if one of these options was given without --ptq, or if --ptq has a wrong value.
 */
void tool_ptq_check(const tool *t);
/** Check as tool_ptq_check does, then set the fields that calibration needs. */
void tool_ptq_apply(const tool *t, qat_deploy_options *o);
/** Print what calibration did; prints nothing without --ptq. */
void tool_ptq_print(void);

#endif
