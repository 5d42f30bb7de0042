/** Instead of onnx.c, in a build without protobuf-c. */
#include "foreign/graph.h"

static qat_status missing(const char *name, qat_error *err)
{
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: this program was built without protobuf-c, so it cannot read ONNX files "
                    "(Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)",
                    name);
}

qat_status qat_onnx_read(qat_foreign_graph **graph, const char *path, uint64_t memory,
                         qat_error *err)
{
    *graph = NULL;
    return missing(path, err);
}

qat_status qat_onnx_parse(qat_foreign_graph **graph, const void *bytes, size_t count,
                          const char *name, uint64_t memory, qat_error *err)
{
    *graph = NULL;
    return missing(name, err);
}

qat_status qat_onnx_parse_tensor(const qat_foreign_tensor **tensor, qat_arena *arena,
                                 const void *bytes, size_t count, const char *name, qat_error *err)
{
    return missing(name, err);
}
