/**
 * Private to libqat: the plugins that a checkpoint names, and the files that the user gives. The
 * names only say which files are wanted. Nothing here opens one.
 */
#ifndef QAT_PLUGIN_PLUGIN_NAMES_H
#define QAT_PLUGIN_PLUGIN_NAMES_H

#include "qat/train.h"

/**
 * Check that each plugin of the checkpoint is among the files given: the file with its content, or
 * else the one with its name. Checkpoints of versions 1 to 3 hold the path that their recipe named;
 * then the path's last part counts.
 * @param recipe   the checkpoint's
 * @param name     the checkpoint's name in messages
 * @param given    NULL: no file
 * @param warning  what differs in content, or NULL; free()
 */
qat_status qat_check_plugins(const qat_checkpoint *checkpoint, const qat_recipe *recipe,
                             const char *name, const qat_plugins *given, char **warning,
                             qat_error *err);

#endif
