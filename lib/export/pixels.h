/** What a model begins with, where it takes pixels: a table, which other tools replace by a float
 * formula. */
#ifndef QAT_EXPORT_PIXELS_H
#define QAT_EXPORT_PIXELS_H

#include "qat/infer.h"

/**
 * The index of the node that turns pixels into codes by a table, and alone reads them. -1: there is
 * none.
 */
int32_t qat_pixels_table(const qi_model *model);

/**
 * Of the pixels of all channels, how many get another code than the table's, if the code is
 * round((pixel - mean) / std / scale) + zero point in float32.
 * @param pixels  how many there are: 256 for each channel
 */
int qat_pixels_otherwise(const qi_model *model, int32_t table, float (*round)(float), int *pixels);

#endif
