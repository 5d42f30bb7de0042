/** The formats that qat-export writes: a .qm, and files of other tools that are made of one. */
#ifndef QAT_TOOLS_EXPORT_FORMAT_H
#define QAT_TOOLS_EXPORT_FORMAT_H

#include "tools/common/tool.h"

typedef struct export_format {
    const char *name, *ending;
    qat_write_fn *write;             /* NULL: the .qm itself, or of float networks only */
    qat_write_float_fn *write_float; /* --float; NULL: the format has no float networks */
    bool rounds_as_tflite;           /* so must the model, if --profile does not say otherwise */
} export_format;

/** The format of --format (NULL: not given), else of the output's name, else the .qm. */
const export_format *export_format_of(const tool *me, const char *name, const char *path);

/** A model on its way into a file of a format. */
typedef struct export_made {
    const export_format *format;
    qat_write_options how; /* as the options say */
    bool again;            /* a .qm in another form than the one that was verified */
    qat_qm_form form;      /* that form */
    size_t bytes;          /* of the file, when it is written */
} export_made;

/** The form that --pack and --strip ask for (NULL: not given). */
void export_set_form(const tool *me, const char *pack, const char *strip, export_made *made);
/** The parts that a form leaves out, with commas: "names, labels". */
void export_parts(const qat_qm_form *form, char text[96]);

/** Write the bytes of a file, of which made has the number. Models and checkpoints that lie there
 * stay. */
qat_status export_put(const export_made *made, const char *path, const uint8_t *bytes,
                      qat_error *err);
/** Write a model to path. Models and checkpoints that lie there stay. @param context export_made */
qat_status export_write(void *context, const qi_host *model, const char *path, qat_error *err);

#endif
