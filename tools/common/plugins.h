/**
 * The plugins of a command. Loading a plugin runs its code, so only two things load one: --plugin,
 * and training with a recipe that names it (docs/security.md).
 */
#ifndef QAT_TOOLS_PLUGINS_H
#define QAT_TOOLS_PLUGINS_H

#include "tools/common/tool.h"

/**
 * Load a checkpoint with the files of --plugin, within --max-memory and --max-macs. What differs
 * from its plugins is a warning.
 */
qat_status tool_restore(qat_restored **restored, const char *path, const tool_list *plugins,
                        qat_error *err);

/**
 * Create a registry with the built-in ops and those of --plugin. If there is none, but the recipe
 * (NULL: none) names plugins, the error says which.
 */
qat_status tool_open_registry(qat_registry **registry, qat_plugins **plugins,
                              const qat_recipe *recipe, const tool_list *given, qat_error *err);

/**
 * Take the next item of a recipe's plugin.path into path, with ${QAT_DATA} replaced, and move *list
 * behind it. path "": there is none.
 */
qat_status tool_next_plugin(const char **list, char *path, size_t max, qat_error *err);

#endif
