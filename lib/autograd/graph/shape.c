#include "autograd/graph/core.h"

#include <limits.h>
#include <stdio.h>

qat_shape qat_shape_of(const int *dims, int rank)
{
    qat_shape shape = {rank, {1, 1, 1, 1}};
    for (int i = 0; i < rank && i < QAT_MAX_RANK; i++)
        shape.dims[i] = dims[i];
    return shape;
}

size_t qat_shape_count(const qat_shape *shape)
{
    size_t count = 1;
    for (int i = 0; i < shape->rank && i < QAT_MAX_RANK; i++)
        count *= (size_t)shape->dims[i];
    return count;
}

bool qat_shape_equal(const qat_shape *a, const qat_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank && i < QAT_MAX_RANK; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

const char *qat_shape_text(const qat_shape *shape, char text[64])
{
    int at = snprintf(text, 64, "[");
    for (int i = 0; i < shape->rank && i < QAT_MAX_RANK; i++)
        at += snprintf(text + at, 64 - (size_t)at, "%s%d", i ? ", " : "", shape->dims[i]);
    snprintf(text + at, 64 - (size_t)at, shape->rank > QAT_MAX_RANK ? ", ...]" : "]");
    return text;
}

bool qat_core_shape_bad(const qat_shape *shape, char why[128])
{
    if (shape->rank < 1 || shape->rank > QAT_MAX_RANK) {
        snprintf(why, 128, "rank %d is outside 1..%d", shape->rank, QAT_MAX_RANK);
        return true;
    }
    char text[64];
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 1) {
            snprintf(why, 128, "shape %s has a dimension below 1", qat_shape_text(shape, text));
            return true;
        }
        count *= shape->dims[i]; /* below 2^31 before, so below 2^62 now */
        if (count > INT_MAX) {
            snprintf(why, 128, "shape %s has more than %d values", qat_shape_text(shape, text),
                     INT_MAX);
            return true;
        }
    }
    return false;
}
