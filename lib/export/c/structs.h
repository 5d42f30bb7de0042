/**
 * Structs of parameters as C source. Their declarations are read from the text of the headers, so
 * that a struct's members are named in one place only.
 */
#ifndef QAT_EXPORT_C_STRUCTS_H
#define QAT_EXPORT_C_STRUCTS_H

#include "base/bytes.h"
#include "export/c/pieces.h"

/** Writes the constant at an address: the name of an array, and a cast to the pointer's type. */
typedef struct co_pointers {
    void (*write)(void *context, qat_writer *w, const void *address, co_span type);
    void *context;
} co_pointers;

/**
 * Write the initialiser of a struct, a line for each member, with its name in a comment.
 * @param type    the name of the struct
 * @param values  a struct of this type, of `bytes` bytes
 * QAT_ERR_UNSUPPORTED names what in the declaration is not understood.
 */
qat_status co_write_struct(qat_writer *w, const co_pieces *p, const char *type, const void *values,
                           size_t bytes, const co_pointers *pointers, qat_error *err);

/** Bytes of a struct on a processor of 32 bits; 0: its declaration is not understood. */
size_t co_device_bytes(const co_pieces *p, const char *type);

/**
 * Visit the multipliers of a struct, and their shifts: members of type int32_t, also those of
 * members that are structs. Arrays of the model, to which members point, are not among them.
 * @param path   the member's name behind the struct's, for example "of_a.mult"
 * @param value  its four bytes
 */
typedef void co_multiplier_fn(void *context, const char *path, const void *value);
void co_each_multiplier(const co_pieces *p, const char *type, const void *values,
                        co_multiplier_fn *visit, void *context);

#endif
