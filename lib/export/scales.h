/** What a model must have that becomes a file of another tool. */
#ifndef QAT_EXPORT_SCALES_H
#define QAT_EXPORT_SCALES_H

#include "qat/infer.h"

/**
 * QAT_ERR_UNSUPPORTED if the scales of weights were left out when the file was written (qat-export
 * --strip): other tools' formats need them. Also if an input or output has several scales.
 */
qat_status qat_export_needs_scales(const qi_model *model, qat_error *err);

#endif
