/** QUANTIZE and DEQUANTIZE. */
#include "convert/tflite/import.h"

/** Between 8-bit types: a change of grid. */
static qat_status import_quantize(tfl_importer *im)
{
    tfl_shape shape;
    int input, output = -1;
    qat_status st = tfl_input_shape(im, 0, 0, 4, &shape);
    if (!st)
        st = tfl_input(im, 0, &input);
    if (!st)
        st = tfl_output(im, 0, &shape, -1, &output);
    qat_emit const e = tfl_emit(im, 1, &input, output);
    return st ? st : qat_emit_requantize(&e, im->err);
}

const tfl_handler tfl_border_handlers[] = {{TFL_QUANTIZE, 1, 1, 1, import_quantize}, {0}};
