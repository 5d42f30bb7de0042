/**
 * From a model to a C file and its header: what the files of this folder share.
 *
 * The C file has three parts: the pieces of the engine's kernels that the network reaches; for each
 * layer a comment, its constants and its parameters; and the functions that the header declares.
 */
#ifndef QAT_EXPORT_C_OUT_H
#define QAT_EXPORT_C_OUT_H

#include "export/c/structs.h"
#include "infer/model/code.h"
#include "qat/export.h"

enum { CO_NAME_MAX = 64 };

/** A node. Its number in the file is one more than its index. */
typedef struct co_layer {
    const qi_node *node;
    const qi_code *code;
    const char *function; /* that runs it */
    bool has_scratch;     /* does the function take scratch memory? */
    bool is_nothing;      /* its output is there already, for example where its input is */
    void *params;         /* the struct, or one for each input */
    qat_writer text;      /* their initialisers */
    int32_t same;         /* the first layer whose parameters are the same; mostly itself */
} co_layer;

/** A constant that a layer needs. */
typedef struct co_constant {
    char name[CO_NAME_MAX]; /* "": it is not needed */
    int32_t layer;          /* the first that needs it */
    size_t at;              /* in the file of weights */
} co_constant;

typedef struct co {
    qat_c_options options;
    const char *name;        /* the prefix of all names */
    const char *file;        /* the name of the header, without .h */
    char upper[CO_NAME_MAX]; /* the same in capitals, of macros */
    const qi_model *model;   /* as a device has it: packed, planned for the core's kernels */
    const qi_model *opened;  /* the same one as a host has it: with the scales of channels */
    void *memory;            /* of the model */
    size_t arena_start;      /* what the engine keeps at the start of its arena, and the file not */
    size_t arena_bytes;
    co_pieces pieces;
    co_layer *layers;
    co_constant *constants; /* by tensor */
    uint32_t *digests;      /* [steps, layers] of the known answer; NULL: no test */
    const void **answers;   /* inputs of the known answer */
    int32_t steps;
    bool only_sizes;   /* nobody wants the files: values and digests are left out */
    int places, parts; /* in the C file: addresses that the calls of layers name, and digests */
    qat_c_sizes sizes;
    qat_arena arena;
    qat_writer c, h, weights;
    qat_error *err;
} co;

/* ------------------------------------------------------------------ write.c */

/** Does the network need a feature of the kernels, for example QK_WIDE? */
bool co_needs_feature(const co *o, const char *feature);

/* ------------------------------------------------------------------ layers.c */

/** Find the code of each node and what it needs of the pieces. */
qat_status co_prepare_layers(co *o);
/** A comment, the constants and the parameters of each layer. */
void co_write_layers(co *o);
void co_free_layers(co *o);
/** How many structs of parameters a layer has. */
int32_t co_structs_of(const co_layer *layer);
/** The calls that run a layer, indented by eight. */
void co_write_calls(co *o, const co_layer *layer);

/* ------------------------------------------------------------------ comments.c */

/** The comment above a layer. */
void co_write_layer_comment(co *o, const co_layer *layer);
/** Any text inside a comment: on one line, without the end of a comment. */
void co_write_words(qat_writer *w, const char *text);
/** A tensor's type, dims, scale and zero_point. */
void co_write_tensor(co *o, qat_writer *w, const qi_tensor *t);
/** The type of a tensor's values, for example "int8_t". */
const char *co_type_of(const qi_tensor *t);

/* ------------------------------------------------------------------ constants.c */

/** Is a tensor of integers stored with a byte each? */
bool co_is_narrow(const qi_tensor *t);
/** Give each constant that a layer needs its name. */
void co_name_constants(co *o);
/** The arrays of the constants that belong to this layer. */
void co_write_constants(co *o, int32_t layer);
/** A pointer to the constant at an address. @param context  co */
void co_write_pointer(void *context, qat_writer *w, const void *address, co_span type);

/* ------------------------------------------------------------------ answers.c */

/** Run the known answer on the engine, and keep the digest of each layer. */
qat_status co_compute_digests(co *o);
/** The digest of one more byte, and of more bytes: FNV-1a. */
enum { CO_DIGEST_PRIME = 16777619 };
#define CO_DIGEST_START UINT32_C(2166136261)

/* ------------------------------------------------------------------ functions.c */

/** The arena, and the functions that the header declares. */
void co_write_functions(co *o);
/** Is there a function for places in the arena? A layer that computes has one. */
bool co_has_places(const co *o);
/** The parameters of NAME_run. */
void co_write_run_parameters(co *o, qat_writer *w);
/** Names of parameters: "in" and "out", or "in0", "in1" .. if there are more. */
void co_parameter(char name[CO_NAME_MAX], const char *kind, int32_t i, int32_t count);

/* ------------------------------------------------------------------ strict.c */

/** A piece, with every body in braces, and with memcpy and memset as statements without a value. */
void co_write_strict(qat_writer *w, const co_piece *piece);

/* ------------------------------------------------------------------ sizes.c */

/** What the C file takes on a processor of 32 bits; after it was written. */
void co_measure(co *o);

/** Bytes of a function of the kernels in a network with some features: bits in the order of
 * co_features. */
typedef struct co_code_row {
    const char *name;
    int features; /* CO_ANY: as in most networks */
    uint16_t bytes[QAT_C_CORES];
} co_code_row;
enum { CO_ANY = -1, CO_FEATURES = 8, CO_TERMS = 7 };
extern const char *const co_features[CO_FEATURES];
/* code_bytes.c; sorted by names, the last one is NULL */
extern const co_code_row co_code_rows[];
/** Bytes of what is not a kernel: times 1, layers, places, parts, inputs and outputs, states, 1 if
 * there is a test. */
extern const float co_code_terms[QAT_C_CORES][CO_TERMS];

/* ------------------------------------------------------------------ preprocessing.c */

/** Mark what it needs of the pieces. Where there is nothing to do, these functions do nothing. */
void co_need_preprocessing(co *o);
/** Its functions, and their declarations. */
qat_status co_write_preprocessing(co *o);
void co_write_preprocessing_header(co *o);

/* ------------------------------------------------------------------ header.c */

void co_write_header(co *o);

/* ------------------------------------------------------------------ test.c */

/** The data of the self-test and the function; nothing without a test. */
void co_write_test(co *o);

#endif
