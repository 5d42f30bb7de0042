/** Gather of rows of a constant table at positions that are data: an embedding, which is trained.
 */
#include "foreign/build.h"

#include <string.h>

enum { ROWS_MOST = 32768 };

/** The table as [rows, values of a row]: its dimension `axis` first, the others in their order. */
static void copy_rows(const qat_foreign_tensor *w, int axis, float *to)
{
    size_t after = 1;
    for (int i = axis + 1; i < w->rank; i++)
        after *= (size_t)w->dims[i];
    size_t const rows = (size_t)w->dims[axis], units = w->count / rows;
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < units; k++)
            to[r * units + k] = w->floats[(k / after * rows + r) * after + k % after];
}

static qat_status check_table(const builder *b, const qat_foreign_tensor *w, int axis, int rank)
{
    if (w->type != QAT_FOREIGN_FLOAT)
        return fv_refuse(b, "its data are constants, but not of floats");
    if (!w->count || w->count / (size_t)w->dims[axis] > 65536)
        return fv_refuse(b, "a table of %lld rows of %zu values", (long long)w->dims[axis],
                         w->dims[axis] ? w->count / (size_t)w->dims[axis] : 0);
    if (w->dims[axis] > ROWS_MOST)
        return fv_refuse(b,
                         "a table of %lld rows; at most %d are possible, because the input's "
                         "codes have at most 16 bits",
                         (long long)w->dims[axis], ROWS_MOST);
    return rank + w->rank - 1 <= QAT_FOREIGN_RANK
               ? QAT_OK
               : fv_refuse(b, "%d dimensions", rank + w->rank - 1);
}

/** The dimensions of the positions stand behind; bring them between those of the table. */
static qat_status put_between(builder *b, fv *y, int axis, int index_rank)
{
    int perm[QAT_FOREIGN_RANK];
    for (int i = 0; i < y->rank; i++)
        perm[i] = i < axis ? index_rank + i : i < axis + index_rank ? i - axis : i;
    return axis ? fv_permute(b, y, perm) : QAT_OK;
}

qat_status fv_embedding(builder *b, const qat_foreign_tensor *w, int axis, const fv *positions)
{
    fv x = *positions, y;
    qat_node *numbers = NULL;
    int64_t dims[QAT_FOREIGN_RANK];
    int rank = x.rank;
    qat_status st = check_table(b, w, axis, rank);
    if (!st)
        st = fv_row(b, &x, true, &numbers);
    if (st)
        return st;
    int const n = (int)fv_count(&x), rows = (int)w->dims[axis], units = (int)w->count / rows;
    fv_name_after(b, 0);
    qat_node *list = fv_add(b, "reshape", "list", numbers, "d1=1 d2=%d d3=1", n);
    qat_node *node =
        list ? fv_add(b, "embedding", "", list, "rows=%d units=%d", rows, units) : NULL;
    float *to = node ? fv_param(b, node, 0) : NULL;
    if (!to)
        return fv_graph_error(b);
    copy_rows(w, axis, to);
    memcpy(dims, x.dims, sizeof dims);
    for (int i = 0; i < w->rank; i++)
        if (i != axis)
            dims[rank++] = w->dims[i];
    y = fv_in_order(b, node, rank, dims);
    st = put_between(b, &y, axis, x.rank);
    if (!st)
        fv_output(b, 0, &y);
    return st;
}
