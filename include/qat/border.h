/**
 * What surrounds the integer engine in real numbers: float32 inputs and outputs of imported models,
 * and a detector's last step. Part of libqat; the engine itself (infer.h) never computes with them.
 *
 *     qi_host_open(&host, "detector.qm", NULL, message);
 *     qi_host_run(&host, in, out);
 *     if (qat_is_detector(host.model))
 *         qat_detect(&found, host.model, (const void *const *)out, &err);
 */
#ifndef QAT_BORDER_H
#define QAT_BORDER_H

#include "qat/infer.h"
#include "qat/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Number of values of a tensor: the product of its dimensions. */
size_t qat_tensor_values(const qi_tensor *tensor);

/**
 * Real numbers to codes, TFLite's QUANTIZE: round(x / scale), half away from zero, + zero_point,
 * limited to the codes; x / scale in float32. NaN gives zero_point.
 * @param codes  as many as the tensor has values
 */
void qat_border_quantize(const qi_tensor *tensor, const float *values, void *codes);

/** Codes to real numbers, TFLite's DEQUANTIZE: scale (q - zero_point) in float32. */
void qat_border_dequantize(const qi_tensor *tensor, const void *codes, float *values);

#ifdef __cplusplus
}
#endif
#endif
