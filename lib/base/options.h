/** Options of a caller that may have been compiled with older headers (qat.h). */
#ifndef QAT_BASE_OPTIONS_H
#define QAT_BASE_OPTIONS_H

#include "qat/status.h"

#include <stddef.h>

/** The bytes of a struct up to a member, with it. */
#define QAT_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/**
 * Copy a struct whose first member is struct_size. Members that the caller's headers did not have
 * become zero.
 * @param first  the size that a struct_size of 0 stands for
 * @param name   of the struct, for the error: the caller's is larger than `size`
 */
qat_status qat_options_copy(void *to, size_t size, const void *from, size_t first, const char *name,
                            qat_error *err);

#endif
