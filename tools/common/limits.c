#include "tools/common/limits.h"

#include <stdio.h>

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

static qat_status limit(qat_recipe *recipe, const char *key, int64_t given, qat_error *err)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)given);
    return recipe && given ? qat_recipe_set(recipe, key, text, err) : QAT_OK;
}

qat_status tool_limit_recipe(qat_recipe *recipe, qat_error *err)
{
    qat_status const st = limit(recipe, "data.memory", tool_limits_given.memory, err);
    return st ? st : limit(recipe, "data.max_pixels", tool_limits_given.pixels, err);
}

qat_status tool_limit_restored(qat_restored *restored, qat_error *err)
{
    qi_limits const limits = tool_limits_of();
    qat_status const st = tool_limit_recipe(qat_restored_recipe(restored), err);
    return st ? st : qat_restored_limit(restored, &limits, err);
}
