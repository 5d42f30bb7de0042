/** Private to lib/convert: tensors and nodes as the records of a .qm (docs/qm-format.md). */
#ifndef QAT_CONVERT_QM_RECORDS_H
#define QAT_CONVERT_QM_RECORDS_H

#include "base/bytes.h"
#include "qat/convert.h"

typedef enum qm_record_form { QM_LONG, QM_SHORT, QM_COMPACT } qm_record_form;

/** What the record of a tensor says beside the tensor's own fields. */
typedef struct qm_tensor_place {
    uint32_t name;  /* offset of a string; 0: none */
    uint32_t data;  /* offset of a constant's bytes */
    bool follows;   /* they begin where the constants before it end */
    int32_t scales; /* tensor with its channel scales, or -1 */
    float scale;
    uint32_t bytes;
    uint8_t packing, listed;
    bool is_bare; /* no ranges, no number in a source file */
} qm_tensor_place;

/** Where the strings and ints of a node are. */
typedef struct qm_node_place {
    uint32_t op, name;                /* offsets of strings */
    uint32_t inputs, outputs, params; /* first of each range */
} qm_node_place;

void qm_write_tensor(qat_writer *w, qm_record_form form, const qat_qtensor *t,
                     const qm_tensor_place *place);
void qm_write_node(qat_writer *w, qm_record_form form, const qat_qop *op,
                   const qm_node_place *place);

/** The first node that reads a tensor. */
typedef struct qm_reader {
    const char *name; /* of the node, in the graph; NULL: nothing reads the tensor */
    const char *part; /* what freezing calls a constant that is this to it; NULL: nothing */
} qm_reader;

/** Find the readers of all tensors; free() them, also after a failure. */
qat_status qm_readers_find(qm_reader **readers, const qat_qgraph *graph, qat_error *err);
/** The name that a tensor without one has in a file with compact records; false: none. */
bool qm_name_of(const qm_reader *reader, const qat_qtensor *t, char name[QAT_NAME_MAX]);

#endif
