/** Private to libqat: a checkpoint beside a run, such as a teacher. */
#ifndef QAT_CHECKPOINT_RESTORE_H
#define QAT_CHECKPOINT_RESTORE_H

#include "qat/train.h"

/**
 * Like qat_restore, with the ops and plugins of a run instead of files. Nothing is opened: the
 * checkpoint's plugins must be among those of the run. registry and plugins (may be NULL) are
 * borrowed until the result is freed.
 */
qat_status qat_restore_with(qat_restored **restored, const char *path, qat_registry *registry,
                            qat_plugins *plugins, qat_error *err);

#endif
