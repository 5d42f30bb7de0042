#include "tools/common/limits.h"

tool_limits tool_limits_given;

qi_limits tool_limits_of(void)
{
    return (qi_limits){.memory = (uint64_t)tool_limits_given.memory << 20,
                       .macs = (uint64_t)tool_limits_given.macs};
}

uint64_t tool_max_memory(void)
{
    uint64_t const given = tool_limits_of().memory;
    return given ? given : QI_DEFAULT_MEMORY;
}

void tool_limit_recipe(qat_recipe *recipe)
{
    if (recipe && tool_limits_given.memory)
        recipe->data.memory = tool_limits_given.memory;
    if (recipe && tool_limits_given.pixels)
        recipe->data.max_pixels = tool_limits_given.pixels;
}

qat_status tool_limit_restored(qat_restored *restored, qat_error *err)
{
    qi_limits const limits = tool_limits_of();
    tool_limit_recipe(restored->recipe);
    return qat_restored_limit(restored, &limits, err);
}
