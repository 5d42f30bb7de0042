/** Reads the tensors that another runtime has written. */
#include "debug/debug.h"

#include "base/files/npy.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_LIMIT = 1200 };

/** "conv1/relu/q" is in the file conv1_relu_q.npy. */
static qat_status path_of(const char *folder, const char *tensor, char path[PATH_LIMIT],
                          qat_error *err)
{
    int const n = snprintf(path, PATH_LIMIT, "%s/%.120s.npy", folder, tensor);
    if (n < 0 || n >= PATH_LIMIT)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%.300s...: the name of this folder is too long",
                        folder);
    for (char *c = path + strlen(folder) + 1; c < path + n; c++)
        if (!qat_is_letter(*c) && !qat_is_digit(*c) && *c != '.' && *c != '-')
            *c = '_';
    return QAT_OK;
}

static double value_at(const qat_npy *a, size_t i)
{
    switch (a->type) {
    case QAT_NPY_U8:
        return ((const uint8_t *)a->data)[i];
    case QAT_NPY_I8:
        return ((const int8_t *)a->data)[i];
    case QAT_NPY_I16:
        return ((const int16_t *)a->data)[i];
    case QAT_NPY_I32:
        return ((const int32_t *)a->data)[i];
    case QAT_NPY_I64:
        return (double)((const int64_t *)a->data)[i];
    case QAT_NPY_F32:
        return (double)((const float *)a->data)[i];
    default:
        return ((const double *)a->data)[i];
    }
}

/** Codes become real numbers by the model's scale and zero_point; real numbers stay. */
static qat_status take(qat_debug *d, debug_tensor *t, const qat_npy *a, const char *path,
                       qat_error *err)
{
    bool const real = a->type == QAT_NPY_F32 || a->type == QAT_NPY_F64;
    int64_t const samples = a->rank > 0 && a->dims[0] > 0 ? a->dims[0] : 0;
    if (!samples || a->count != (size_t)samples * t->count)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%.300s: %zu values in %lld samples, but %.60s has %zu a sample", path,
                        a->count, (long long)samples, t->t->name, t->count);
    /* Room for a whole batch more, of which the last samples are not read. */
    t->foreign = calloc(a->count + t->count * DEBUG_BATCH, sizeof *t->foreign);
    if (!t->foreign)
        return qat_out_of_memory(err, path);
    for (size_t i = 0; i < a->count; i++) {
        double const v = value_at(a, i);
        t->foreign[i] = (float)(real ? v : (double)qat_real_scale(t->t) * (v - t->t->zero_point));
        if (!isfinite(t->foreign[i]))
            return qat_fail(err, QAT_ERR_NUMERIC, "%.300s: value %zu is not a finite number", path,
                            i);
    }
    d->dumped = d->dumped && d->dumped < samples ? d->dumped : samples;
    return QAT_OK;
}

qat_status debug_read_dump(qat_debug *d, const char *folder, uint64_t most, qat_error *err)
{
    qat_status st = QAT_OK;
    char path[PATH_LIMIT] = "";
    for (int i = 0; !st && i < d->n_tensors; i++) {
        debug_tensor *t = &d->tensors[i];
        qat_npy array = {0};
        if (!t->engine)
            continue;
        st = path_of(folder, t->t->name, path, err);
        if (st || access(path, F_OK))
            continue;
        st = qat_npy_read_within(&array, path, most ? most : UINT64_MAX, "--max-memory", err);
        if (!st)
            st = take(d, t, &array, path, err);
        qat_npy_free(&array);
    }
    if (!st && !d->dumped)
        st = qat_fail(err, QAT_ERR_FORMAT,
                      "%.300s holds no tensor of the model: %.160s was the last that was looked "
                      "for",
                      folder, path + (*path ? strlen(folder) + 1 : 0));
    return st;
}
