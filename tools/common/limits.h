/** The options --max-memory, --max-macs and --max-pixels, the same in all commands. */
#ifndef QAT_TOOLS_LIMITS_H
#define QAT_TOOLS_LIMITS_H

#include "tools/common/tool.h"

typedef struct tool_limits {
    int64_t memory; /* --max-memory, MiB; 0: not given */
    int64_t macs;   /* --max-macs; 0: not given */
    int64_t pixels; /* --max-pixels; 0: not given */
} tool_limits;

extern tool_limits tool_limits_given;

enum { TOOL_MAX_MEMORY = 1 << 30 }; /* MiB */

/** Entries for a tool's table of options. */
#define TOOL_MEMORY_OPTION(meaning)                                                                \
    {                                                                                              \
        "--max-memory", TOOL_INT, &tool_limits_given.memory, "MIB", meaning, 1, TOOL_MAX_MEMORY    \
    }
#define TOOL_MACS_OPTION                                                                           \
    {                                                                                              \
        "--max-macs", TOOL_INT, &tool_limits_given.macs, "N",                                      \
            "refuse a model with more multiply-adds for one input (default 2^40)", 1, INT64_MAX    \
    }
#define TOOL_PIXELS_OPTION                                                                         \
    {                                                                                              \
        "--max-pixels", TOOL_INT, &tool_limits_given.pixels, "N",                                  \
            "refuse pictures of more pixels (default 178956970)", 1, QAT_PICTURE_MOST_PIXELS       \
    }

/** What was given, for the library; 0 where an option was not given. */
qi_limits tool_limits_of(void);
/** --max-memory in bytes, or the library's default. */
uint64_t tool_max_memory(void);
/**
 * --max-memory and --max-pixels, if they were given, take the place of a recipe's data.memory and
 * data.max_pixels (NULL: no recipe).
 */
qat_status tool_limit_recipe(qat_recipe *recipe, qat_error *err);
/** Apply the options to a checkpoint that was just opened. */
qat_status tool_limit_restored(qat_restored *restored, qat_error *err);

#endif
