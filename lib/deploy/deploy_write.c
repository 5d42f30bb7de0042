/** The .qm file: what it may replace, and whether it holds the bytes that were certified. */
#include "deploy/deploy.h"

#include "base/checksums/sha256.h"
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/** Does the file hold the bytes that were certified? */
static qat_status check_written(const void *context, const char *path, qat_error *err)
{
    const qat_certificate *c = context;
    uint8_t *bytes = NULL, digest[32];
    size_t count = 0;
    qat_status const st = qat_file_read(path, SIZE_MAX, &bytes, &count, err);
    if (st)
        return st;
    qat_sha256(bytes, count, digest);
    free(bytes);
    return memcmp(digest, c->sha256, sizeof digest) == 0
               ? QAT_OK
               : qat_fail(err, QAT_ERR_MISMATCH,
                          "export refused: the bytes that were written are not those that were "
                          "certified");
}

qat_status qat_deploy_write(const char *path, const qat_export_result *made, qat_error *err)
{
    return qat_file_write_checked(path, made->qm, made->qm_bytes, check_written, &made->certificate,
                                  err);
}

qat_status qat_deploy_spare_checkpoints(const char *path, qat_error *err)
{
    uint8_t start[8];
    struct stat info;
    if (stat(path, &info) || !S_ISREG(info.st_mode))
        return QAT_OK;
    FILE *file = fopen(path, "rb");
    size_t const n = file ? fread(start, 1, sizeof start, file) : 0;
    if (file)
        fclose(file);
    if (!qat_checkpoint_magic(start, n))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s is a checkpoint; it would be overwritten: give another name for the model",
                    path);
}
