/**
 * An op as C source: which kernel of infer/kernels runs a node, and with which parameters. The
 * writer of C files (lib/export/c) asks this for each node. Each op file has the row of its ops.
 */
#ifndef QI_CODE_H
#define QI_CODE_H

#include "qat/infer.h"

typedef struct qi_code {
    const char *type; /* the struct of parameters, for example "qk_mean" */
    size_t bytes;     /* its size */
    /** Fill the struct from a node. Of call->in only constants are read. */
    void (*fill)(const qi_call *call, void *params);
    /**
     * The name of the function that runs the node. NULL: "qk_add_run" of op add, where there is one
     * for the node's rounding "qk_add_once_run" or "qk_add_even_run", else the type and "_run".
     */
    const char *(*function)(const qi_call *call);
    uint32_t constants; /* bit i: the struct points at input i, which is no argument */
    int per_input;      /* nonzero: a struct and a call for each input; fill writes all structs */
} qi_code;

#define QI_DECLARE_CODE_(name) extern const qi_code qi_code_##name;
QI_KERNELS(QI_DECLARE_CODE_)

#endif
