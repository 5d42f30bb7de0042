/** Checks of qat_quant_options. */
#ifndef QAT_FAKEQUANT_OPTIONS_H
#define QAT_FAKEQUANT_OPTIONS_H

#include "qat/quant.h"

/** QAT_ERR_ARGUMENT with the value concerned, where one is outside its range or two contradict. */
qat_status qat_quant_check(const qat_quant_options *options, qat_error *err);

#endif
