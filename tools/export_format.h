/** The formats that qat-export writes: a .qm, and files of other tools that are made of one. */
#ifndef QAT_TOOLS_EXPORT_FORMAT_H
#define QAT_TOOLS_EXPORT_FORMAT_H

#include "tools/common/tool.h"

enum { EXPORT_PATH_MAX = 4096 };

typedef struct export_format {
    const char *name, *ending;
    qat_write_fn *write;             /* NULL: not of this kind */
    qat_write_float_fn *write_float; /* --float; NULL: the format has no float networks */
    /* So must the model, if --profile does not say otherwise. As ONNX Runtime: not in the form
       integer, which has the model's own roundings. */
    bool rounds_as_tflite, rounds_as_onnx;
    bool is_qm, is_source; /* the .qm itself; C source, which is several files */
} export_format;

/** The format of --format (NULL: not given), else of the output's name, else the .qm. */
const export_format *export_format_of(const tool *me, const char *name, const char *path);

/** C source: what the options say, and what was written. */
typedef struct export_source {
    qat_c_options how;
    bool is_asked; /* is there an option of C source? */
    size_t header_bytes, weights_bytes;
} export_source;

/** --ram: the limit (0: none) and what became of it. */
typedef struct export_ram {
    size_t limit;
    qat_ram_plan plan;
} export_ram;

/** A model on its way into a file of a format. */
typedef struct export_made {
    const export_format *format;
    qat_write_options how; /* as the options say */
    export_source source;  /* of C source: the same */
    export_ram ram;
    bool again;       /* a .qm in another form than the one that was verified */
    qat_qm_form form; /* that form */
    size_t bytes;     /* of the file, when it is written */
} export_made;

/** The form that --pack, --compact and --strip ask for (NULL: not given). */
void export_set_form(const tool *me, const char *pack, const char *compact, const char *strip,
                     export_made *made);
/** The limit of --ram (NULL: not given): bytes, or with K or M behind them 2^10 or 2^20 bytes.
 * After export_set_form. */
void export_set_ram(const tool *me, const char *ram, export_made *made);
/** What the bands cost: lines, or members of a JSON object. */
void export_print_ram(const export_made *made);
void export_json_ram(const export_made *made);
/** Check that the options of C source are given for C source alone. */
void export_set_source(const tool *me, const export_source *source, export_made *made);
/** The path of a file of C source: OUT with the ending, in place of .c if it has that. */
void export_source_path(const char *path, const char *ending, char to[EXPORT_PATH_MAX]);
/** The parts that a form leaves out, with commas: "names, labels". */
void export_parts(const qat_qm_form *form, char text[96]);

/** Write the bytes of a file, of which made has the number. Models and checkpoints that lie there
 * stay. */
qat_status export_put(const export_made *made, const char *path, const uint8_t *bytes,
                      qat_error *err);
/** Write a model to path. Models and checkpoints that lie there stay. @param context export_made */
qat_status export_write(void *context, const qi_host *model, const char *path, qat_error *err);

#endif
