/**
 * Names that a file with compact records does not store: a constant without a name has that of the
 * first node that reads it, and of what it is to this node (docs/qm-format.md, "Names").
 */
#include "convert/convert.h"
#include "convert/qm_records.h"
#include "integer/quant_ops.h"

#include <stdlib.h>
#include <string.h>

/** What freezing calls the constants of these roles. */
static const char *part_of(const char *role)
{
    static const char *const parts[][2] = {
        {"w", "weights/q"}, {"bias", "bias_codes"}, {"mult", "mult"},
        {"shift", "shift"}, {"table", "table"},
    };
    for (size_t i = 0; role && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i][0], role) == 0)
            return parts[i][1];
    return NULL;
}

qat_status qm_readers_find(qm_reader **readers, const qat_qgraph *graph, qat_error *err)
{
    *readers = calloc((size_t)graph->n_tensors + 1, sizeof **readers);
    if (!*readers)
        return qat_out_of_memory(err, ".qm");
    for (int i = graph->n_ops - 1; i >= 0; i--) {
        const qat_qop *op = &graph->ops[i];
        const qi_op *row = qi_op_named(op->op);
        for (int k = op->n_inputs - 1; k >= 0; k--)
            (*readers)[op->inputs[k]] =
                (qm_reader){op->name, row && k < QI_OP_INPUTS ? part_of(row->inputs[k]) : NULL};
    }
    return QAT_OK;
}

bool qm_name_of(const qm_reader *reader, const qat_qtensor *t, char name[QAT_NAME_MAX])
{
    if (!t->data || !reader->part || !*reader->name)
        return false;
    qat_part_name(name, reader->name, reader->part);
    return true;
}
