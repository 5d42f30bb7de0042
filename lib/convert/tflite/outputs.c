/** The outputs of operators: activations of the integer graph, or integers known at import. */
#include "convert/tflite/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ outputs */

static qat_status check_new(tfl_importer *im, int index)
{
    if (im->model->tensors[index].data || im->values[index].known)
        return tfl_refuse(im, "it writes tensor %d (%s), which already has a value", index,
                          im->model->tensors[index].name);
    return QAT_OK;
}

/** What moves real numbers that DEQUANTIZE made moves codes of the same grid. */
static void describe_like(tfl_importer *im, int index, int like, qat_qtensor *t)
{
    *t = im->graph->tensors[like];
    t->data = NULL;
    t->channel_scales = NULL;
    t->n_channels = 0;
    t->is_state = false;
    t->border = QI_BORDER_NONE;
    t->source_index = index;
    snprintf(t->name, sizeof t->name, "%s", im->model->tensors[index].name);
}

typedef qat_status describe_fn(tfl_importer *im, int index, qat_qtensor *t);

static qat_status add_output(tfl_importer *im, int i, const tfl_shape *shape, int like,
                             describe_fn *describe, int *tensor)
{
    int const index = im->op->outputs[i];
    tfl_value *v = &im->values[index];
    qat_qtensor t;
    *tensor = -1;
    qat_status st = check_new(im, index);
    bool const real = like >= 0 && im->model->tensors[index].type == TFL_FLOAT32 &&
                      tfl_moves(im->op->code) && tfl_is_real(im);
    if (!st && real)
        describe_like(im, index, like, &t);
    else if (!st)
        st = describe(im, index, &t);
    if (!st && im->model->tensors[index].scales.count > 1)
        st = tfl_refuse(im, "tensor %d (%s) has several scales", index,
                        im->model->tensors[index].name);
    if (!st && like >= 0 && t.type != im->graph->tensors[like].type)
        st = tfl_refuse(im, "tensor %d (%s) is %s, but its input is not", index,
                        im->model->tensors[index].name,
                        tfl_type_name(im->model->tensors[index].type));
    if (!st && tfl_count(shape) < 1)
        st = tfl_refuse(im, "its output, tensor %d (%s), would be empty or too large", index,
                        im->model->tensors[index].name);
    if (st)
        return st;
    st = tfl_append(im, &t, shape, tensor);
    v->known = !st;
    v->shape = *shape;
    v->tensor = *tensor;
    v->real_of = real ? index : -1;
    return st;
}

qat_status tfl_output(tfl_importer *im, int i, const tfl_shape *shape, int like, int *tensor)
{
    return add_output(im, i, shape, like, tfl_describe, tensor);
}

qat_status tfl_integer_output(tfl_importer *im, int i, const tfl_shape *shape, int like,
                              int *tensor)
{
    return add_output(im, i, shape, like, tfl_describe_integers, tensor);
}

qat_status tfl_check_known(tfl_importer *im, const tfl_shape *shape)
{
    int64_t const count = tfl_count(shape);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 0)
            return tfl_refuse(im, "it makes no values");
    return count >= 1 && count <= TFL_MAX_KNOWN_INTS
               ? QAT_OK
               : tfl_refuse(im, "it would make more than %d integers", TFL_MAX_KNOWN_INTS);
}

qat_status tfl_fold(tfl_importer *im, int i, const tfl_shape *shape, const int64_t *values)
{
    int const index = im->op->outputs[i];
    tfl_value *v = &im->values[index];
    int64_t const count = tfl_count(shape);
    qat_status st = check_new(im, index);
    if (!st)
        st = tfl_check_known(im, shape);
    if (st)
        return st;
    int64_t *copy = qat_arena_array(&im->arena, (size_t)count, sizeof *copy);
    if (!copy)
        return qat_out_of_memory(im->err, NULL);
    memcpy(copy, values, (size_t)count * sizeof *copy);
    *v = (tfl_value){.known = true,
                     .shape = *shape,
                     .tensor = -1,
                     .ints = copy,
                     .n_ints = (int)count,
                     .real_of = -1};
    return QAT_OK;
}

qat_status tfl_between(tfl_importer *im, const char *part, const tfl_shape *shape, int like,
                       int *tensor)
{
    qat_qtensor t;
    describe_like(im, im->op->outputs[0], like, &t);
    t.source_index = -1;
    qat_part_name(t.name, im->model->tensors[im->op->outputs[0]].name, part);
    if (tfl_count(shape) < 1)
        return tfl_refuse(im, "its %s would be empty or too large", part);
    return tfl_append(im, &t, shape, tensor);
}
