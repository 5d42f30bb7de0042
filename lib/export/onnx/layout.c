#include "export/onnx/layout.h"

#include <math.h>
#include <string.h>

const int onnx_to_planes[ONNX_RANK] = {0, 3, 1, 2}, onnx_last_first[ONNX_RANK] = {3, 0, 1, 2};
static const int to_plain[ONNX_RANK] = {0, 2, 3, 1};

void onnx_dims(const onnx_value *v, onnx_form form, int64_t dims[ONNX_RANK])
{
    for (int i = 0; i < v->rank; i++)
        dims[i] = v->dims[form == ONNX_PLANES ? onnx_to_planes[i] : i];
}

int onnx_axis(onnx_form form, int axis)
{
    return form == ONNX_PLANES ? to_plain[axis] : axis;
}

void onnx_widen(onnx_value *v, int rank)
{
    int const more = rank - v->rank;
    if (more <= 0)
        return;
    memmove(v->dims + more, v->dims, (size_t)v->rank * sizeof v->dims[0]);
    for (int i = 0; i < more; i++)
        v->dims[i] = 1;
    v->rank = rank;
}

const void *onnx_permuted(onnx_model *m, const void *values, size_t bytes, const int64_t *dims,
                          const int *perm)
{
    size_t step[ONNX_RANK], n[ONNX_RANK], count = 1, at[ONNX_RANK] = {0};
    for (int i = ONNX_RANK; i-- > 0;) {
        step[i] = count * bytes;
        count *= (size_t)dims[i];
    }
    for (int i = 0; i < ONNX_RANK; i++)
        n[i] = (size_t)dims[perm[i]];
    uint8_t *to = onnx_take(m, count, bytes), *next = to;
    for (size_t k = 0; to && k < count; k++, next += bytes) {
        size_t from = 0;
        for (int i = 0; i < ONNX_RANK; i++)
            from += at[i] * step[perm[i]];
        memcpy(next, (const uint8_t *)values + from, bytes);
        for (int i = ONNX_RANK; i-- > 0 && ++at[i] == n[i];)
            at[i] = 0;
    }
    return to;
}

/* ------------------------------------------------------------------ forms */

const char *onnx_reshape(onnx_model *m, const char *wanted, const char *value, int rank,
                         const int64_t *dims)
{
    int64_t shape[ONNX_RANK];
    memcpy(shape, dims, (size_t)rank * sizeof *shape);
    if (m->batched)
        shape[0] = -1;
    return onnx_apply(m, "Reshape", wanted, value, onnx_vector(m, "shape", ONNX_S64, rank, shape));
}

const char *onnx_transpose(onnx_model *m, const char *wanted, const char *value, int rank,
                           const int *perm)
{
    int64_t order[ONNX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = perm[i];
    onnx_node *node = onnx_add(m, "Transpose", (const char *const[]){value, NULL});
    onnx_attr_ints(m, node, "perm", rank, order);
    return onnx_output(m, node, onnx_name(m, wanted));
}

void onnx_set(onnx_value *v, onnx_form form, const char *name)
{
    v->as[form] = name;
}

onnx_form onnx_form_of(const onnx_value *v)
{
    if (v->data)
        return v->rank == ONNX_RANK ? ONNX_PLANES : ONNX_PLAIN;
    return v->as[ONNX_PLANES] ? ONNX_PLANES : v->as[ONNX_FLAT] ? ONNX_FLAT : ONNX_PLAIN;
}

static const char *constant_as(onnx_model *m, const onnx_value *v, onnx_form form)
{
    int64_t dims[ONNX_RANK];
    onnx_dims(v, form, dims);
    const void *data = form == ONNX_PLANES ? onnx_permuted(m, v->data, onnx_type_bytes(v->type),
                                                           v->dims, onnx_to_planes)
                                           : v->data;
    return data ? onnx_constant(m, v->name, v->type, v->rank, dims, data) : "";
}

/** From flattened planes: the planes, the picture, our order. */
static const char *unflatten(onnx_model *m, const onnx_value *v)
{
    int64_t const planes[] = {v->dims[0], v->picture[2], v->picture[0], v->picture[1]};
    const char *name = onnx_reshape(m, v->name, v->as[ONNX_FLAT], 4, planes);
    return onnx_reshape(m, v->name, onnx_transpose(m, v->name, name, 4, to_plain), v->rank,
                        v->dims);
}

const char *onnx_as(onnx_model *m, onnx_value *v, onnx_form form)
{
    if (!v->as[form])
        v->as[form] =
            v->data               ? constant_as(m, v, form)
            : form == ONNX_PLANES ? onnx_transpose(m, v->name, v->as[ONNX_PLAIN], 4, onnx_to_planes)
            : v->as[ONNX_PLANES]  ? onnx_transpose(m, v->name, v->as[ONNX_PLANES], 4, to_plain)
                                  : unflatten(m, v);
    return v->as[form];
}

bool onnx_is_flattened(const onnx_value *x, onnx_value *y, onnx_form *form)
{
    if (!x->as[ONNX_PLANES] || x->data || y->rank != 2 || x->dims[0] != y->dims[0])
        return false;
    memcpy(y->picture, x->dims + 1, sizeof y->picture);
    *form = x->dims[3] == 1 || x->dims[1] * x->dims[2] == 1 ? ONNX_PLAIN : ONNX_FLAT;
    return true;
}

const void *onnx_columns(onnx_model *m, const onnx_value *x, const void *weights, size_t bytes,
                         int64_t rows)
{
    int64_t const picture[] = {rows, x->picture[0], x->picture[1], x->picture[2]};
    return onnx_permuted(m, weights, bytes, picture, onnx_to_planes);
}

/* ------------------------------------------------------------------ windows */

int64_t onnx_pad_behind(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                        int64_t before)
{
    int64_t const behind = (out - 1) * stride + (kernel - 1) * dilation + 1 - in - before;
    return behind >= 0 ? behind : behind > -stride ? 0 : -1;
}

void onnx_attr_window(onnx_model *m, onnx_node *node, const onnx_window *w, bool dilated)
{
    onnx_attr_ints(m, node, "kernel_shape", 2, w->kernel);
    onnx_attr_ints(m, node, "strides", 2, w->strides);
    onnx_attr_ints(m, node, "pads", 4, w->pads);
    if (dilated)
        onnx_attr_ints(m, node, "dilations", 2, w->dilations);
}

float onnx_factor(int64_t in, int64_t out)
{
    float f = (float)out / (float)in;
    while ((int64_t)floorf(f * (float)in) < out)
        f = nextafterf(f, INFINITY);
    return f;
}
