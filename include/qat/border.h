/**
 * What surrounds the integer engine in real numbers: float32 inputs and outputs of imported models,
 * a detector's last step, and that of a network that answers attributes. Part of libqat; the engine
 * itself (infer.h) never computes with them.
 *
 *     qi_host_open(&host, "detector.qm", NULL, message);
 *     qi_host_run(&host, in, out);
 *     if (qat_is_detector(host.model))
 *         qat_detect(&found, host.model, (const void *const *)out, &err);
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

/* ------------------------------------------------------------------ detectors */

/** The epilogue (qi_model_epilogue) of a detector. */
#define QAT_DETECTOR_EPILOGUE "detection_postprocess"

/** Does the model end in an epilogue of this name that qat_detect can compute? */
bool qat_is_detector(const qi_model *model);

/** Classes of a detector, without the background. */
int qat_detector_classes(const qi_model *model);

/** What a detector found, the caller's own: TFLite_Detection_PostProcess's four outputs. */
typedef struct qat_detections {
    int rows;            /* max_detections max_classes_per_detection */
    int found;           /* of them, the others are zeros; the fourth output */
    float *boxes;        /* [rows, 4]: ymin, xmin, ymax, xmax, as shares of the picture */
    float *classes;      /* [rows]: from 0, the background not counted */
    float *scores;       /* [rows], the best first */
    bool *used;          /* [rows]: was something found? Of the other rows all is zero */
    int label_offset;    /* label of class c: line c + label_offset (1 with a background class) */
    int source_index[4]; /* numbers of the four outputs in the source file, or -1 */
} qat_detections;

/**
 * Decode the boxes and choose among them, as TensorFlow Lite's kernel does, in its order of float32
 * and float64 operations; N boxes, C classes.
 *
 *     centre = encoding / scale * anchor size + anchor centre
 *     half   = exp(encoding / scale) / 2 * anchor size
 *     box    = centre -+ half
 *
 * then by falling score: a box is kept unless one already kept overlaps it by more than
 * nms_iou_threshold (intersection over union); each box by its best class (fast), or each class by
 * itself (regular).
 *
 * @param outputs  the codes of the model's outputs, as qi_run gave them
 * @return QAT_ERR_FORMAT for an epilogue that is no detector's, QAT_ERR_NUMERIC for a box whose
 *         corners are the wrong way round; free with qat_detections_free
 */
qat_status qat_detect(qat_detections *found, const qi_model *model, const void *const *outputs,
                      qat_error *err);
/** A zeroed one is fine. */
void qat_detections_free(qat_detections *found);

/* ------------------------------------------------------------------ attributes and a value */

/** The epilogue of a network that answers attributes, and perhaps a value. */
#define QAT_ATTRIBUTES_EPILOGUE "attributes"

/** What such a network answers: scores of attributes, each for itself, and what a real value, such
 *  as an age, is read from. */
typedef struct qat_attributes {
    int count;        /* of attributes, which are the classes; 0: a network of another kind */
    int outputs;      /* what the value is read from; 0: there is none */
    float low, width; /* value = low + width * sum of them */
} qat_attributes;

/** Of a model; false, and zeros, where it has no such epilogue, or one that is not whole. Its
 * output 0 then holds the attributes' scores, its output 1 (if any) what the value is read from. */
bool qat_attributes_of_model(qat_attributes *attributes, const qi_model *model);
/** low + width * sum */
float qat_attributes_value(const qat_attributes *attributes, float sum);
/** The sum of n codes of uint8 or int8 as real numbers: scale * sum (q - zero_point). */
float qat_sum_of_codes(qi_type type, float scale, int32_t zero_point, const void *codes, size_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
