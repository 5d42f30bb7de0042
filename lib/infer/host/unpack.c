#include "infer/host/unpack.h"

static size_t align_up(size_t bytes)
{
    return (bytes + QI_ALIGN - 1) / QI_ALIGN * QI_ALIGN;
}

/**
 * Are these bytes of the file the same ones? Tensors may begin at one place and end at several:
 * then each is unpacked by itself.
 */
static int is_same(const qi_tensor *t, const void *data, size_t bytes)
{
    return t->is_packed && t->data == data && t->bytes == bytes;
}

/** The first packed tensor with this tensor's bytes, or the tensor itself. */
static int32_t first_with_data(const qi_model *m, int32_t index)
{
    int32_t i = 0;
    while (i < index && !is_same(&m->tensors[i], m->tensors[index].data, m->tensors[index].bytes))
        i++;
    return i;
}

uint64_t qi_constants_bytes(const qi_model *m)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].is_packed && first_with_data(m, i) == i)
            bytes += align_up(qi_unpacked_bytes(&m->tensors[i]));
    return bytes;
}

/** Give a packed constant, and the later tensors that share it, its unpacked codes. */
static void set_codes(qi_model *m, int32_t index, const uint8_t *codes)
{
    const void *packed = m->tensors[index].data;
    size_t const bytes = m->tensors[index].bytes;
    for (int32_t i = index; i < m->n_tensors; i++) {
        qi_tensor *t = &m->tensors[i];
        if (!is_same(t, packed, bytes))
            continue;
        t->data = codes;
        t->bytes = qi_unpacked_bytes(t);
        t->is_packed = 0;
    }
}

void qi_unpack_constants(qi_model *m, uint8_t *memory)
{
    for (int32_t i = 0; i < m->n_tensors; i++) {
        size_t const bytes = qi_unpacked_bytes(&m->tensors[i]);
        if (!m->tensors[i].is_packed)
            continue;
        qi_unpack(&m->tensors[i], memory);
        set_codes(m, i, memory);
        memory += align_up(bytes);
    }
}
