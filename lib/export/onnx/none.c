/** Instead of all other files, in a build without protobuf-c. */
#include "qat/export.h"

static qat_status missing(uint8_t **bytes, size_t *count, qat_error *err)
{
    *bytes = NULL;
    *count = 0;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "this program was built without protobuf-c, so it cannot write ONNX files "
                    "(Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)");
}

qat_status qat_onnx_write(const qi_host *host, const qat_write_options *options, uint8_t **bytes,
                          size_t *count, qat_error *err)
{
    return missing(bytes, count, err);
}

qat_status qat_onnx_write_float(const qat_graph *graph, const qat_write_options *options,
                                uint8_t **bytes, size_t *count, qat_error *err)
{
    return missing(bytes, count, err);
}
