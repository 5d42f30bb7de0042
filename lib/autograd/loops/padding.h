/**
 * The values of QAT_ATTR_PADDING attributes. One double holds four numbers:
 *
 *     0  same      1  valid      2 + ((top 1024 + bottom) 1024 + left) 1024 + right  pixels
 *
 * The largest value is below 2^41, so a double holds each exactly.
 */
#ifndef QAT_AUTOGRAD_PADDING_H
#define QAT_AUTOGRAD_PADDING_H

#include "qat/graph.h"

/** Definition of the attribute "padding" of a windowed op; initial: 0 (same) or 1 (valid). */
#define QAT_PADDING_ATTR(initial)                                                                  \
    {                                                                                              \
        "padding", QAT_ATTR_PADDING, initial, 0, 0, NULL,                                          \
            "same: output is ceil(input / stride), TensorFlow's padding; valid: none; or pixels: " \
            "N | rows,columns | top,bottom,left,right, PyTorch's padding"                          \
    }

bool qat_padding_is_legal(double value);
qat_padding qat_padding_of(double value);
double qat_padding_value(const qat_padding *padding);

enum { QAT_PADDING_TEXT = 32 };
/** Write "same", "valid", "1", "1,2" or "1,2,3,4": the shortest form that has the value. */
void qat_padding_text(double value, char text[QAT_PADDING_TEXT]);
/** The reverse of qat_padding_text; false: the text is none of these. */
bool qat_padding_parse(const char *text, double *value);

#endif
