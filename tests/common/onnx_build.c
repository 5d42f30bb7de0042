#include "common/onnx_build.h"

#include <string.h>

static void varint(qat_writer *w, uint64_t v)
{
    for (; v > 127; v >>= 7)
        qat_write_u8(w, (uint8_t)(v | 128));
    qat_write_u8(w, (uint8_t)v);
}

void onnx_number(qat_writer *w, int field, uint64_t v)
{
    varint(w, (uint64_t)field << 3);
    varint(w, v);
}

void onnx_bytes(qat_writer *w, int field, const void *at, size_t n)
{
    varint(w, (uint64_t)field << 3 | 2);
    varint(w, n);
    qat_write_bytes(w, at, n);
}

void onnx_text(qat_writer *w, int field, const char *t)
{
    onnx_bytes(w, field, t, strlen(t));
}

void onnx_message(qat_writer *w, int field, qat_writer *m)
{
    onnx_bytes(w, field, m->bytes, m->count);
    qat_writer_free(m);
    *m = (qat_writer){0};
}

qat_writer onnx_node(const char *op, const char *in, const char *in2, const char *out)
{
    qat_writer n = {0};
    onnx_text(&n, 1, in);
    if (in2)
        onnx_text(&n, 1, in2);
    onnx_text(&n, 2, out);
    onnx_text(&n, 3, "the node");
    onnx_text(&n, 4, op);
    return n;
}

void onnx_value(qat_writer *g, int field, const char *name)
{
    qat_writer v = {0};
    onnx_text(&v, 1, name);
    onnx_message(g, field, &v);
}

qat_writer onnx_floats(const char *name, int rank, const int64_t *dims, int n, const float *values)
{
    qat_writer t = {0};
    for (int i = 0; i < rank; i++)
        onnx_number(&t, 1, (uint64_t)dims[i]);
    onnx_number(&t, 2, 1);
    onnx_text(&t, 8, name);
    onnx_bytes(&t, 9, values, (size_t)n * sizeof *values);
    return t;
}
