#include "qat/status.h"
#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>

const char *qat_status_name(qat_status status)
{
    switch (status) {
    case QAT_OK:
        return "success";
    case QAT_ERR_NOMEM:
        return "out of memory";
    case QAT_ERR_IO:
        return "input/output error";
    case QAT_ERR_FORMAT:
        return "malformed file";
    case QAT_ERR_ARGUMENT:
        return "invalid argument";
    case QAT_ERR_SHAPE:
        return "shape mismatch";
    case QAT_ERR_NUMERIC:
        return "numeric failure";
    case QAT_ERR_STATE:
        return "wrong order of calls";
    case QAT_ERR_UNSUPPORTED:
        return "unsupported";
    case QAT_ERR_MISMATCH:
        return "results differ";
    case QAT_ERR_LIMIT:
        return "over a limit";
    }
    return "unknown status";
}

qat_status qat_fail(qat_error *err, qat_status status, const char *format, ...)
{
    if (!err)
        return status;
    err->status = status;
    va_list args;
    va_start(args, format);
    int written = qat_vformat(err->message, sizeof err->message, format, args);
    va_end(args);
    if (written < 0)
        err->message[0] = '\0';
    return status;
}

qat_status qat_out_of_memory(qat_error *err, const char *what)
{
    return qat_fail(err, QAT_ERR_NOMEM, "%s%sout of memory", what ? what : "", what ? ": " : "");
}
