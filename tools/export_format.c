#include "tools/export_format.h"

#include "base/files/file.h"
#include "tools/common/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The first is that of names without a known ending. */
static const export_format formats[] = {
    {"qm", ".qm", NULL, NULL, false},
    {"onnx", ".onnx", qat_onnx_write, qat_onnx_write_float, false},
    {"tflite", ".tflite", qat_tflite_write, qat_tflite_write_float, true},
    {"npz", ".npz", NULL, qat_npz_write_float, false},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static bool ends_in(const char *path, const char *ending)
{
    size_t const n = strlen(path), end = strlen(ending);
    return n > end && !strcmp(path + n - end, ending);
}

const export_format *export_format_of(const tool *me, const char *name, const char *path)
{
    char known[64] = "";
    for (int i = 0; i < FORMATS; i++)
        if (name ? !strcmp(name, formats[i].name) : ends_in(path, formats[i].ending))
            return &formats[i];
    for (int i = 0; i < FORMATS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 formats[i].name);
    if (name)
        tool_usage(me, "--format %s: only %s can be written", name, known);
    return &formats[0];
}

qat_status export_put(const export_made *made, const char *path, const uint8_t *bytes,
                      qat_error *err)
{
    tool_file there = TOOL_FILE_OTHER;
    if (!tool_file_kind(path, &there, NULL) &&
        (there == TOOL_FILE_CHECKPOINT || there == TOOL_FILE_QM))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s is a %s; it would be overwritten: give another name for the %s file",
                        path, there == TOOL_FILE_QM ? ".qm" : "checkpoint", made->format->name);
    return qat_file_write_atomic(path, bytes, made->bytes, err);
}

qat_status export_write(void *context, const qi_host *model, const char *path, qat_error *err)
{
    export_made *made = context;
    qat_write_options options = made->how;
    uint8_t *bytes = NULL;
    options.struct_size = sizeof options;
    options.log = &tool_log;
    qat_status st = made->format->write(model, &options, &bytes, &made->bytes, err);
    if (!st)
        st = export_put(made, path, bytes, err);
    free(bytes);
    return st;
}
