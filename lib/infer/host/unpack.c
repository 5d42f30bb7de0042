#include "infer/host/unpack.h"
#include "infer/arithmetic/scale_bits.h"
#include "infer/model/op.h"

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
    return data && t->is_packed && t->data == data && t->bytes == bytes;
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
        if (i > index && !is_same(t, packed, bytes))
            continue;
        t->data = codes;
        t->bytes = qi_unpacked_bytes(t);
        t->is_packed = 0;
    }
}

static int32_t shift_at(const qi_tensor *shift, int32_t channel)
{
    int32_t const at = qi_count(shift) > 1 ? channel : 0;
    return shift->is_packed ? ((const int8_t *)shift->data)[at]
                            : ((const int32_t *)shift->data)[at];
}

/** Write the derived scales of tensor `scales`, as bits. */
static void derive(const qi_model *model, int32_t scales, int32_t *bits)
{
    const qi_node *node = qm_scaled_node(model, scales);
    const int32_t *mult = qi_input(model, node, 3)->data;
    uint32_t const x = qi_input(model, node, 0)->scale_bits;
    uint32_t const y = qi_output(model, node)->scale_bits;
    for (int32_t i = 0; i < model->tensors[scales].dims[0]; i++)
        bits[i] = (int32_t)qi_scale_bits(mult[i], shift_at(qi_input(model, node, 4), i),
                                         node->fraction, x, y);
}

void qi_unpack_constants(qi_model *m, uint8_t *memory)
{
    for (int32_t i = 0; i < m->n_tensors; i++) {
        size_t const bytes = qi_unpacked_bytes(&m->tensors[i]);
        if (!m->tensors[i].is_packed)
            continue;
        if (m->tensors[i].packing == QM_DERIVED)
            derive(m, i, (int32_t *)(void *)memory);
        else
            qi_unpack(&m->tensors[i], memory);
        set_codes(m, i, memory);
        memory += align_up(bytes);
    }
}
