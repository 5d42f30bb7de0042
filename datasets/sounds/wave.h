/** Sounds in files: what the readers of data share beside the public functions. */
#ifndef QAT_DATASETS_WAVE_H
#define QAT_DATASETS_WAVE_H

#include "qat/dataset.h"

/** The formats that are read, for messages. */
#define QAT_WAVE_FORMATS "PCM of 8, 16, 24 or 32 bits or float32, of one channel or two"

/** The largest and smallest values of a sample are kept. */
int16_t qat_wave_clamp(int64_t value);

#endif
