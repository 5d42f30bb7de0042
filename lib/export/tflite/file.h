/** What a .tflite file holds, before it is bytes: tensors, operators, buffers of constants. */
#ifndef QAT_EXPORT_TFLITE_FILE_H
#define QAT_EXPORT_TFLITE_FILE_H

#include "base/arena.h"
#include "base/flatbuffers/flatbuffer_write.h"
#include "convert/tflite/codes.h"
#include "convert/tflite/model.h"
#include "qat/graph.h"
#include "qat/infer.h"

enum { TFO_OPTIONS = 8, TFO_INTERMEDIATES = 5 };

typedef struct tfo_tensor {
    char name[QAT_NAME_MAX]; /* UTF-8 without control characters */
    int type;                /* tfl_type */
    int rank;
    int32_t dims[QI_MAX_RANK];
    int n_scales; /* with one zero_point; 0: no quantization parameters */
    float scale;
    const float *scales; /* n_scales of them; NULL: the one */
    int32_t zero_point;
    int dimension; /* along which the scales are */
    int buffer;    /* 0: no constant */
    bool variable; /* kept from run to run by its operator */
} tfo_tensor;

typedef struct tfo_buffer {
    const void *data;
    size_t bytes;
} tfo_buffer;

/** A scalar of an operator's options: a number, or the bits of a float. */
typedef struct tfo_option {
    int field;
    uint32_t bits;
} tfo_option;

typedef struct tfo_operator {
    int code, version;
    int options_type; /* tfl_options */
    int n_options;
    tfo_option options[TFO_OPTIONS];
    int n_inputs, *inputs; /* tensors; -1: absent */
    int output;
    int n_intermediates, intermediate; /* tensors that only have scales; all are the same one */
} tfo_operator;

typedef struct tfo_metadata {
    const char *name;
    int buffer;
} tfo_metadata;

enum { TFO_METADATA = 2, TFO_DESCRIPTION_MAX = 512 };

typedef struct tfo_file {
    qat_arena arena; /* owns what the members point to, but for constants of the graph */
    int n_tensors, n_operators, n_buffers, n_inputs, n_outputs, n_metadata;
    int max_tensors, max_operators, max_buffers;
    tfo_tensor *tensors;
    tfo_operator *operators;
    tfo_buffer *buffers; /* the first is empty */
    int *inputs, *outputs;
    tfo_metadata metadata[TFO_METADATA];
    char description[TFO_DESCRIPTION_MAX];
    bool failed; /* memory ran out */
} tfo_file;

/** Room for so many tensors and operators; a buffer for each tensor and each metadata. */
qat_status tfo_file_init(tfo_file *f, int max_tensors, int max_operators, int n_inputs,
                         int n_outputs, qat_error *err);
void tfo_file_free(tfo_file *f);
/** Each gives an index. The name of a tensor may have any bytes; equal data share a buffer. */
int tfo_add_tensor(tfo_file *f, const char *name, const tfo_tensor *tensor);
int tfo_add_buffer(tfo_file *f, const void *data, size_t bytes);
/** NULL: memory ran out. */
tfo_operator *tfo_add_operator(tfo_file *f, int code, int n_inputs, const int *inputs, int output);

/** The offsets of a FlatBuffer reach that far. */
#define TFO_MAX_BYTES ((size_t)INT32_MAX)

/** Append the file. It may take at most `most` bytes. */
qat_status tfo_file_write(const tfo_file *f, qat_writer *w, size_t most, qat_error *err);

#endif
