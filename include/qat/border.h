/**
 * Computations with real numbers before and after the integer engine: float32 inputs and outputs of
 * imported models, and the epilogues of detectors and of networks with attributes. They are part of
 * libqat; the engine itself (infer.h) does not use them.
 *
 *     qi_host_open(&host, "detector.qm", NULL, &err);
 *     qi_host_run(host, in, out);
 *     if (qat_is_detector(qi_host_model(host)))
 *         qat_detect(&found, qi_host_model(host), (const void *const *)out, &err);
 *
 * All functions only read the model: any number of threads may call them at the same time.
 */
#ifndef QAT_BORDER_H
#define QAT_BORDER_H

#include "qat/infer.h"
#include "qat/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** The number of values of a tensor: the product of its dimensions. */
size_t qat_tensor_values(const qi_tensor *tensor);
/** Is it a list of codes, [1, ..., 1, n]? */
bool qat_is_list(const qi_tensor *tensor);

/**
 * Convert real numbers to codes, as TFLite's QUANTIZE: round(x / scale), half away from zero, +
 * zero_point, limited to the tensor's codes, with x / scale in float32. NaN gives zero_point, and
 * so does 0 / 0. With QI_BORDER_TRUNCATED it rounds toward zero, as CAST; with QI_BORDER_EVEN
 * halves to even, as QuantizeLinear.
 * @param values  as many as the tensor has values
 * @param codes   as many codes, in the tensor's type
 */
void qat_border_quantize(const qi_tensor *tensor, const float *values, void *codes);

/** Convert codes to real numbers, as TFLite's DEQUANTIZE: scale (q - zero_point) in float32. */
void qat_border_dequantize(const qi_tensor *tensor, const void *codes, float *values);

/**
 * The same for a tensor that may have a scale for each index of its last dimension
 * (channel_scales), as an input or output of an imported .onnx file may. The two functions above
 * use one scale.
 * @param tensor  its number in the model: qi_input_at, qi_output_at
 */
void qat_border_quantize_at(const qi_model *model, int32_t tensor, const float *values,
                            void *codes);
void qat_border_dequantize_at(const qi_model *model, int32_t tensor, const void *codes,
                              float *values);

/* ------------------------------------------------------------------ classes of pixels */

/** The epilogue (qi_model_epilogue) of a network that answers a class for each pixel. */
#define QAT_PIXELS_EPILOGUE "segmentation"

/** Does the model have this epilogue, and so an output [1, height, width, classes]? */
bool qat_has_pixels(const qi_model *model);

/**
 * The class of each pixel: the one with the highest code; of equal ones the first.
 * @param model    one that qat_has_pixels
 * @param codes    its output, from qi_run
 * @param classes  [height, width]
 */
void qat_pixels_of(const qi_model *model, const void *codes, int32_t *classes);

/* ------------------------------------------------------------------ detectors */

/** The epilogue (qi_model_epilogue) of a detector. */
#define QAT_DETECTOR_EPILOGUE "detection_postprocess"

/** Does the model have an epilogue of this name that qat_detect can compute? */
bool qat_is_detector(const qi_model *model);

/** The number of classes of a detector, without the background. */
int qat_detector_classes(const qi_model *model);

/**
 * Check what qat_detect may take at most. A small file can describe a million boxes, each of which
 * is compared with all others; neither qi_host_open nor qi_model_macs counts that. Call this once
 * for a model that may come from a stranger. A model that is no detector is fine.
 * @param name    of the model, for the message
 * @param limits  memory: bytes that qat_detect allocates; macs: 16 for each comparison of two
 * boxes. Where it has 0, QI_DEFAULT_MEMORY and QI_DEFAULT_MACS count
 * @return        QAT_ERR_LIMIT if it may take more
 */
qat_status qat_detector_limit(const qi_model *model, const char *name, const qi_limits *limits,
                              qat_error *err);

/**
 * The boxes that a detector found: the four outputs of TFLite_Detection_PostProcess. The caller
 * owns it.
 */
typedef struct qat_detections {
    int rows;         /* max_detections max_classes_per_detection */
    int found;        /* how many of the rows are boxes (the fourth output); the others are zeros */
    float *boxes;     /* [rows, 4]: ymin, xmin, ymax, xmax as fractions of the picture */
    float *classes;   /* [rows]: from 0, without the background */
    float *scores;    /* [rows], the best first */
    bool *used;       /* [rows]: is this row a box? All other rows are zeros */
    int label_offset; /* the label of class c is line c + label_offset (1 if there is a background
                         class) */
    int source_index[4]; /* numbers of the four outputs in the source file, or -1 */
} qat_detections;

/**
 * Decode the boxes and choose among them. This has the float32 and float64 operations of TensorFlow
 * Lite's kernel, in the same order.
 *
 *     centre = encoding / scale * anchor size + anchor centre
 *     half   = exp(encoding / scale) / 2 * anchor size
 *     box    = centre -+ half
 *
 * Boxes are then taken by falling score. A box is kept unless a kept box overlaps it by more than
 * nms_iou_threshold (intersection over union). In the fast way each box counts for its best class
 * only; in the regular way each class is treated separately.
 *
 * @param outputs  the codes of the model's outputs, from qi_run
 * @return QAT_ERR_FORMAT if the epilogue is not a detector's, QAT_ERR_NUMERIC if the corners of a
 *         box are reversed, QAT_ERR_NOMEM. Free found with qat_detections_free
 */
qat_status qat_detect(qat_detections *found, const qi_model *model, const void *const *outputs,
                      qat_error *err);
/** Free the arrays. A zeroed struct is fine. */
void qat_detections_free(qat_detections *found);

/* ------------------------------------------------------------------ attributes and a value */

/** The epilogue of a network with attributes, and perhaps a value. */
#define QAT_ATTRIBUTES_EPILOGUE "attributes"

/**
 * The outputs of such a network: a separate score for each attribute, and the outputs from which a
 * real value, for example an age, is computed.
 */
typedef struct qat_attributes {
    int count;   /* number of attributes, which are the classes; 0: a network of another kind */
    int outputs; /* number of outputs for the value; 0: there is no value */
    float low, width; /* value = low + width * sum of these outputs */
} qat_attributes;

/**
 * Get the description from a model. Returns false, and zeros, if it has no such epilogue or an
 * incomplete one. Output 0 of the model has the scores of the attributes, output 1 (if any) the
 * outputs for the value.
 */
bool qat_attributes_of_model(qat_attributes *attributes, const qi_model *model);
/** low + width * sum */
float qat_attributes_value(const qat_attributes *attributes, float sum);
/** The sum of n codes of uint8, int8 or int16 as real numbers: scale * sum (q - zero_point). */
float qat_sum_of_codes(qi_type type, float scale, int32_t zero_point, const void *codes, size_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
