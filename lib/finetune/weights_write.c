/** The parameters of a float network as a NumPy archive, which train.init reads. */
#include "base/files/npz.h"
#include "finetune/weights_file.h"
#include "qat/export.h"

#include <stdlib.h>

static qat_npy array_of(const qat_node *node)
{
    qat_npy array = {.type = QAT_NPY_F32, .rank = node->shape.rank, .data = node->value};
    for (int i = 0; i < array.rank; i++)
        array.dims[i] = node->shape.dims[i];
    return array;
}

qat_status qat_npz_write_float(const qat_graph *graph, const qat_write_options *options,
                               uint8_t **bytes, size_t *count, qat_error *err)
{
    int const nodes = qat_graph_nodes(graph);
    const char **names = calloc((size_t)nodes + 1, sizeof *names);
    qat_npy *arrays = calloc((size_t)nodes + 1, sizeof *arrays);
    int n = 0;
    (void)options;
    qat_status st = names && arrays ? QAT_OK : qat_out_of_memory(err, "an archive of parameters");
    for (int i = 0; i < nodes && !st; i++) {
        const qat_node *node = qat_graph_node(graph, i);
        if (!node->is_param || qat_is_quantizer_state(node->name))
            continue;
        names[n] = node->name;
        arrays[n++] = array_of(node);
    }
    if (!st)
        st = qat_npz_bytes(n, names, arrays, "an archive of parameters", bytes, count, err);
    free(names);
    free(arrays);
    return st;
}
