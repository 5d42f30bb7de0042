/**
 * Training: recipes, networks by name or layer by layer, the loop, checkpoints, metrics, logs.
 */
#ifndef QAT_TRAIN_H
#define QAT_TRAIN_H

#include "qat/convert.h"
#include "qat/dataset.h"
#include "qat/plugin.h"
#include "qat/quant.h"

#endif
