# Sourced by mutants.sh: from a sample to the codes of the network's input.

export_mutant input-std lib/convert/input_table.c 's/return centred \/ std;/return centred \/ (std * 1.05f);/'
export_mutant input-pixel-plus-1 lib/convert/input_table.c 's/= (float)pixel - mean;/= (float)(pixel + 1) - mean;/'
export_mutant input-first-mean lib/convert/input_table.c 's/pixel_value(pixel, mean\[c\], std\[c\])/pixel_value(pixel, mean[0], std[c])/'
export_mutant input-first-std lib/convert/input_table.c 's/pixel_value(pixel, mean\[c\], std\[c\])/pixel_value(pixel, mean[c], std[0])/'
export_mutant input-means-reversed lib/convert/input_table.c 's/pixel_value(pixel, mean\[c\], std\[c\])/pixel_value(pixel, mean[channels - 1 - c], std[channels - 1 - c])/'
export_mutant input-white-is-254 lib/convert/input_table.c 's/= (float)pixel - mean;/= (float)(pixel < 255 ? pixel : 253) - mean;/'
export_mutant input-0-to-1 lib/convert/input_table.c 's/return centred \/ std;/return centred \/ std \/ 255.0f;/'
export_mutant input-table-alone lib/convert/input_table.c 's/qat_code(input, pixel_value(pixel, mean\[c\], std\[c\])));/qat_code(input, pixel_value(pixel, mean[c], std[c]) + (c == 1 ? 1.01f * input->scale : 0)));/'
export_mutant input-mean-and-std-of-the-table lib/deploy/deploy.c 's/\.std = in->std,/.std = in->mean,/'
