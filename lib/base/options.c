#include "base/options.h"

#include <string.h>

qat_status qat_options_copy(void *to, size_t size, const void *from, size_t first, const char *name,
                            qat_error *err)
{
    size_t given;
    memcpy(&given, from, sizeof given);
    if (given > size)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: of a later version of the library", name);
    memset(to, 0, size);
    memcpy(to, from, given ? given : first);
    return QAT_OK;
}
