/** Turns real values into codes of an input tensor, for data that are not bytes. */
#include "evaluate/evaluate.h"

#include <stdlib.h>

qat_status qat_input_coder_init(qat_input_coder *c, const qat_input_info *input, qi_type type,
                                int bits, float scale, int32_t zero_point, size_t values, int batch,
                                qat_error *err)
{
    size_t const expected = (size_t)input->height * (size_t)input->width * (size_t)input->channels;
    *c = (qat_input_coder){.type = input->type, .stored = type, .values = values};
    if (values != expected)
        return qat_fail(err, QAT_ERR_SHAPE, "the model's input has %zu values, a sample %zu",
                        values, expected);
    if (input->type == QAT_SAMPLE_F32) {
        c->params = qat_stored_qparams(type, bits, scale, zero_point);
        c->codes = malloc(values * (size_t)batch * qi_type_bytes(type));
        if (!c->codes)
            return qat_out_of_memory(err, "evaluation");
    }
    return QAT_OK;
}

const void *qat_input_coder_codes(qat_input_coder *c, const qat_batch *batch, int count)
{
    if (c->type != QAT_SAMPLE_F32)
        return batch->bytes;
    for (size_t i = 0; i < c->values * (size_t)count; i++)
        qat_store_code(c->stored, c->codes, i, qat_code(&c->params, batch->real[i]));
    return c->codes;
}
