/** .onnx files for tests, written field by field. */
#ifndef QAT_TESTS_ONNX_BUILD_H
#define QAT_TESTS_ONNX_BUILD_H

#include "base/bytes.h"

/** Fields of a GraphProto. */
enum { ONNX_NODE = 1, ONNX_INITIALIZER = 5, ONNX_INPUT = 11, ONNX_OUTPUT = 12 };

/** Append a field. */
void onnx_number(qat_writer *w, int field, uint64_t v);
void onnx_bytes(qat_writer *w, int field, const void *at, size_t n);
void onnx_text(qat_writer *w, int field, const char *t);
/** Append a message as a field, and free it. */
void onnx_message(qat_writer *w, int field, qat_writer *m);

/** in2 may be NULL. */
qat_writer onnx_node(const char *op, const char *in, const char *in2, const char *out);
void onnx_value(qat_writer *g, int field, const char *name);
qat_writer onnx_floats(const char *name, int rank, const int64_t *dims, int n, const float *values);

#endif
