/** Where the bytes of a .qm are: a row a layer, and what belongs to no layer. */
#include "tools/inspect/inspect.h"

#include "infer/model/qm_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What bytes are for. Record: of nodes, tensors and their lists. */
enum { WEIGHTS, BIAS, MULTIPLIERS, SCALES, TABLES, RECORD, KINDS };

static const char *const titles[KINDS] = {"weights", "bias",   "multipliers",
                                          "scales",  "tables", "record"};

/** The rows: one for each node, then the model's. */
typedef struct bytes_of {
    const qi_model *m;
    size_t (*rows)[KINDS];
    int32_t *owner;                      /* by tensor: a node, or the model's row */
    int *kind;                           /* by tensor: what its data are for */
    uint32_t *tensor_bytes, *node_bytes; /* of their records */
    int32_t nodes;
    size_t text, answers, padding;
} bytes_of;

_Static_assert((int)INSPECT_HEAD_BYTES == (int)QM_HEADER_BYTES, "the header of a .qm");

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ------------------------------------------------------------------ which layer, and what for */

static int kind_of_input(const qi_node *node, int32_t i)
{
    const qi_op *row = qi_op_named(node->kernel->name);
    const char *role = row && i < QI_OP_INPUTS && row->inputs[i] ? row->inputs[i] : "";
    return *role == 'w'                                              ? WEIGHTS
           : strcmp(role, "bias") == 0                               ? BIAS
           : strcmp(role, "mult") == 0 || strcmp(role, "shift") == 0 ? MULTIPLIERS
                                                                     : TABLES;
}

/** Constants belong to the first node that reads them, activations to the one that writes them. */
static void find_owners(bytes_of *b)
{
    for (int32_t i = 0; i < qi_tensor_count(b->m); i++) {
        b->owner[i] = b->nodes;
        b->kind[i] = TABLES;
    }
    for (int32_t n = b->nodes - 1; n >= 0; n--) {
        const qi_node *node = qi_node_at(b->m, n);
        for (int32_t i = 0; i < node->n_inputs; i++) {
            int32_t const t = node->inputs[i];
            if (qi_tensor_at(b->m, t)->kind != QI_CONSTANT)
                continue;
            b->owner[t] = n;
            b->kind[t] = kind_of_input(node, i);
        }
        for (int32_t i = 0; i < node->n_outputs; i++)
            b->owner[node->outputs[i]] = n;
    }
    for (int32_t i = qi_tensor_count(b->m) - 1; i >= 0; i--) {
        int32_t const scales = qi_tensor_at(b->m, i)->channel_scales;
        if (scales >= 0) {
            b->owner[scales] = b->owner[i];
            b->kind[scales] = SCALES;
        }
    }
}

/** Is it the first tensor with its numbers? */
static bool has_own_data(const qi_model *m, int32_t index)
{
    for (int32_t i = 0; i < index; i++)
        if (qi_tensor_at(m, i)->data == qi_tensor_at(m, index)->data)
            return false;
    return true;
}

/** Count the tensors and the bytes between them and the nodes; returns the bytes of all constants.
 */
static size_t count_tensors(bytes_of *b)
{
    size_t constants = 0;
    for (int32_t i = 0; i < qi_tensor_count(b->m); i++) {
        const qi_tensor *t = qi_tensor_at(b->m, i);
        size_t *row = b->rows[b->owner[i]];
        row[RECORD] += b->tensor_bytes[i];
        if (t->kind != QI_CONSTANT || !has_own_data(b->m, i))
            continue;
        row[b->kind[i]] += qi_bytes_in_file(t);
        constants += qi_bytes_in_file(t);
    }
    return constants;
}

/** Count the nodes; returns how many ints they have. */
static size_t count_nodes(bytes_of *b)
{
    size_t all = 0;
    for (int32_t n = 0; n < b->nodes; n++) {
        const qi_node *node = qi_node_at(b->m, n);
        size_t const ints = (size_t)(node->n_inputs + node->n_outputs + node->n_params);
        b->rows[n][RECORD] += b->node_bytes[n] + sizeof(int32_t) * ints;
        all += ints;
    }
    return all;
}

static size_t count_answers(const qi_model *m)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < qi_input_count(m); i++)
        bytes += qi_tensor_at(m, qi_input_at(m, i))->bytes;
    for (int32_t i = 0; i < qi_output_count(m); i++)
        bytes += qi_tensor_at(m, qi_output_at(m, i))->bytes;
    return bytes * (size_t)qi_kat_steps(m);
}

static size_t sum_of(const uint32_t *bytes, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += bytes[i];
    return sum;
}

/** The bytes before a section, of those that follow a section of so many bytes. */
static size_t gap_before(const uint8_t *head, int section, int before, size_t bytes)
{
    return u32_at(head + section) - u32_at(head + before) - bytes;
}

/** What is left of a section. A file whose nodes share numbers, or whose answers lie in constants
 * has them counted more than once: nothing is left then. */
static size_t left_of(size_t section, size_t counted)
{
    return section > counted ? section - counted : 0;
}

static qat_status count_bytes(bytes_of *b, const inspected *x, qat_error *err)
{
    const uint8_t *head = x->head;
    size_t const tensors = (size_t)qi_tensor_count(b->m), nodes = (size_t)b->nodes;
    b->rows = calloc(nodes + 1, sizeof *b->rows);
    b->owner = calloc(tensors, sizeof *b->owner);
    b->kind = calloc(tensors, sizeof *b->kind);
    b->tensor_bytes = calloc(tensors, sizeof *b->tensor_bytes);
    b->node_bytes = calloc(nodes + 1, sizeof *b->node_bytes);
    if (!b->rows || !b->owner || !b->kind || !b->tensor_bytes || !b->node_bytes)
        return qat_out_of_memory(err, x->path);
    qi_record_bytes(b->m, b->tensor_bytes, b->node_bytes);
    find_owners(b);
    size_t const constants = count_tensors(b), ints = count_nodes(b);
    size_t const n_ints = u32_at(head + QM_AT_INTS + 4);
    b->rows[nodes][RECORD] += QM_HEADER_BYTES + sizeof(int32_t) * left_of(n_ints, ints);
    b->text = u32_at(head + QM_AT_STRINGS + 4);
    b->answers = count_answers(b->m);
    b->padding = gap_before(head, QM_AT_NODES, QM_AT_TENSORS, sum_of(b->tensor_bytes, tensors)) +
                 gap_before(head, QM_AT_INTS, QM_AT_NODES, sum_of(b->node_bytes, nodes)) +
                 gap_before(head, QM_AT_STRINGS, QM_AT_INTS, sizeof(int32_t) * n_ints) +
                 gap_before(head, QM_AT_DATA, QM_AT_STRINGS, b->text) +
                 left_of(u32_at(head + QM_AT_DATA + 4), constants + b->answers);
    return QAT_OK;
}

static void release(bytes_of *b)
{
    free(b->rows);
    free(b->owner);
    free(b->kind);
    free(b->tensor_bytes);
    free(b->node_bytes);
}

static size_t row_bytes(const size_t row[KINDS])
{
    size_t sum = 0;
    for (int k = 0; k < KINDS; k++)
        sum += row[k];
    return sum;
}

static size_t total_bytes(const bytes_of *b)
{
    size_t sum = b->text + b->answers + b->padding;
    for (int32_t n = 0; n <= b->nodes; n++)
        sum += row_bytes(b->rows[n]);
    return sum;
}

/* ------------------------------------------------------------------ printing */

static void print_row(const char *name, const size_t row[KINDS])
{
    printf("%-32s", name);
    for (int k = 0; k < KINDS; k++)
        printf(" %11zu", row[k]);
    printf(" %11zu\n", row_bytes(row));
}

static void print_rest(const char *name, size_t bytes)
{
    printf("%-32s %*zu\n", name, 12 * (KINDS + 1) - 1, bytes);
}

/** A layer's name; a stripped file has none. */
static const char *row_name(const qi_model *m, int32_t node)
{
    const qi_node *n = qi_node_at(m, node);
    return *n->name ? n->name : n->kernel->name;
}

void inspect_print_bytes(const inspected *x)
{
    bytes_of b = {.m = x->model.model, .nodes = qi_node_count(x->model.model)};
    if (count_bytes(&b, x, NULL)) {
        release(&b);
        return;
    }
    printf("\nbytes of the file, by layer\n%-32s", "");
    for (int k = 0; k < KINDS; k++)
        printf(" %11s", titles[k]);
    printf(" %11s\n", "total");
    for (int32_t n = 0; n < b.nodes; n++)
        print_row(tool_shown(row_name(b.m, n)), b.rows[n]);
    print_row("the model", b.rows[b.nodes]);
    print_rest("names, description, labels", b.text);
    print_rest("known answers", b.answers);
    print_rest("padding", b.padding);
    print_rest("total", total_bytes(&b));
    release(&b);
}

static void json_row(const size_t row[KINDS])
{
    for (int k = 0; k < KINDS; k++)
        printf("%s\"%s\": %zu", k ? ", " : "", titles[k], row[k]);
    printf(", \"total\": %zu}", row_bytes(row));
}

void inspect_json_bytes(const inspected *x)
{
    bytes_of b = {.m = x->model.model, .nodes = qi_node_count(x->model.model)};
    if (count_bytes(&b, x, NULL)) {
        release(&b);
        return;
    }
    printf(",\n \"file_bytes\": {\"layers\": [");
    for (int32_t n = 0; n < b.nodes; n++) {
        printf(n ? ",\n  {\"name\": " : "\n  {\"name\": ");
        tool_json_string(qi_node_at(b.m, n)->name);
        printf(", ");
        json_row(b.rows[n]);
    }
    printf("],\n  \"model\": {");
    json_row(b.rows[b.nodes]);
    printf(", \"text\": %zu, \"known_answers\": %zu, \"padding\": %zu, \"total\": %zu}", b.text,
           b.answers, b.padding, total_bytes(&b));
    release(&b);
}
