/**
 * Shapes of more axes than the engine has. Neighbouring axes that an operator treats alike are one
 * axis of the same codes, so that most of these shapes fit:
 *
 *     [1, 4, 4, 4, 4, 8] with axes 2 and 3 swapped is [4, 4, 4, 32] with axes 1 and 2 swapped
 */
#include "convert/tflite/import.h"

#include <inttypes.h>
#include <string.h>

/** An axis of 1 joins any neighbour. */
static void merge(const tfl_shape *x, const int kinds[], tfl_merged *m)
{
    int kind = 0;
    *m = (tfl_merged){0};
    for (int d = 0; d < x->rank; d++) {
        tfl_shape *s = &m->shape;
        bool const joins =
            s->rank && (x->dims[d] == 1 || s->dims[s->rank - 1] == 1 || kinds[d] == kind);
        if (!joins)
            s->dims[s->rank++] = 1;
        if (!joins || x->dims[d] > 1)
            kind = kinds[d];
        s->dims[s->rank - 1] *= x->dims[d];
        m->place[d] = s->rank - 1;
    }
}

void tfl_merge(const tfl_shape *x, const int kinds[], tfl_merged *m)
{
    if (x->rank > QI_MAX_RANK) {
        merge(x, kinds, m);
        return;
    }
    m->shape = *x;
    for (int d = 0; d < x->rank; d++)
        m->place[d] = d;
}

qat_status tfl_merge_cut(tfl_importer *im, const tfl_shape *x, unsigned cut, tfl_merged *m)
{
    int kinds[TFL_MAX_RANK];
    for (int d = 0; d < TFL_MAX_RANK; d++)
        kinds[d] = cut >> d & 1u ? d + 1 : 0;
    tfl_merge(x, kinds, m);
    if (m->shape.rank > QI_MAX_RANK)
        return tfl_refuse(im, "its rank of %d would be %d in the engine, which supports %d",
                          x->rank, m->shape.rank, QI_MAX_RANK);
    return QAT_OK;
}

bool tfl_same_shape(const tfl_shape *a, const tfl_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

qat_status tfl_view(tfl_importer *im, const char *part, const tfl_shape *from,
                    const tfl_shape *shape, int *tensor)
{
    int const input = *tensor;
    if (tfl_same_shape(from, shape))
        return QAT_OK;
    qat_status const st = tfl_between(im, part, shape, input, tensor);
    qat_emit const e = tfl_emit(im, 1, &input, *tensor);
    return st ? st : qat_emit_reshape(&e, im->err);
}

qat_status tfl_view_output(tfl_importer *im, int i, const tfl_shape *shape, int tensor)
{
    int output = -1;
    qat_status const st = tfl_integer_output(im, i, shape, tensor, &output);
    qat_emit e = tfl_emit(im, 1, &tensor, output);
    e.name = im->model->tensors[im->op->outputs[i]].name;
    return st ? st : qat_emit_reshape(&e, im->err);
}
