/**
 * Turns real numbers into the codes of a model's input i, as the program around the engine does.
 *
 *     preprocessing kind 2   code((value - mean) / std) by the fake-quant formula, as in training
 *     a float32 border       round(value / scale) + zero_point, half away from zero
 *
 * Everything is in float32, with each operation rounded (docs/qm-format.md).
 */
#include "qat/border.h"
#include "qat/convert.h"

#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static qat_qparams params_of(const qi_tensor *t)
{
    return qat_stored_qparams((qi_type)t->type, t->bits, float_of(t->scale_bits), t->zero_point);
}

static void normalised_codes(const qi_preprocessing *p, const qi_tensor *t, const float *values,
                             void *codes)
{
    qat_qparams const params = params_of(t);
    size_t const channels = (size_t)p->channels;
    for (size_t i = 0; i < qat_tensor_values(t); i++) {
        size_t const c = channels <= 4 ? i % channels : 0;
        float const centred = values[i] - float_of(p->mean_bits[c]);
        qat_store_code((qi_type)t->type, codes, i,
                       qat_code(&params, centred / float_of(p->std_bits[c])));
    }
}

qat_status qat_model_codes(const qi_model *model, int input, const float *values, void *codes,
                           qat_error *err)
{
    const qi_preprocessing *p = qi_model_preprocessing(model);
    int32_t const at = qi_input_at(model, input);
    const qi_tensor *t = qi_tensor_at(model, at);
    if (input == 0 && p->kind == 2) {
        normalised_codes(p, t, values, codes);
        return QAT_OK;
    }
    if (!t->border)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "input %d of the model, %s, takes codes, not real numbers", input, t->name);
    qat_border_quantize_at(model, at, values, codes);
    return QAT_OK;
}
