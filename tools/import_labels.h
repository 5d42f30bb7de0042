/** The labels that qat-import gives a model: a text file, one label per line. */
#ifndef QAT_TOOLS_IMPORT_LABELS_H
#define QAT_TOOLS_IMPORT_LABELS_H

#include "qat/status.h"

/** A zeroed struct has no labels. */
typedef struct import_labels {
    char *text; /* owns the characters */
    const char **lines;
    int count;
} import_labels;

/**
 * Read a file of labels; a gzip file is unpacked. Lines end with LF, CR LF or CR. An empty line is
 * a label, too. A byte 0 is an error: the rest of its line would be lost. Free the labels also
 * after an error.
 */
qat_status import_labels_read(import_labels *labels, const char *path, qat_error *err);
void import_labels_free(import_labels *labels);

#endif
