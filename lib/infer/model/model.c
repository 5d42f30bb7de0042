/** Makes a model from bytes, and answers questions about it. */
#include "infer/model/model.h"
#include "infer/kernels/parts/memory.h"
#include "infer/model/packing.h"

qi_status qi_fail(qi_error *err, qi_status status, const char *what, int32_t index, int64_t value,
                  int64_t limit)
{
    if (err) {
        err->status = status;
        err->what = what;
        err->index = index;
        err->value = value;
        err->limit = limit;
    }
    return status;
}

const char *qi_status_name(qi_status status)
{
    switch (status) {
    case QI_OK:
        return "no error";
    case QI_ERR_MAGIC:
        return "not a .qm file";
    case QI_ERR_VERSION:
        return "unknown .qm version";
    case QI_ERR_TRUNCATED:
        return "truncated file";
    case QI_ERR_CRC:
        return "checksum error";
    case QI_ERR_FORMAT:
        return "malformed file";
    case QI_ERR_UNKNOWN_OP:
        return "unknown op";
    case QI_ERR_SHAPE:
        return "tensors that do not fit the op";
    case QI_ERR_PARAM:
        return "parameter out of range";
    case QI_ERR_OVERFLOW:
        return "accumulator overflow";
    case QI_ERR_MEMORY:
        return "memory too small or misaligned";
    case QI_ERR_KAT:
        return "known-answer test failed";
    case QI_ERR_NOMEM:
        return "out of memory";
    case QI_ERR_LIMIT:
        return "over a limit";
    }
    return "unknown status";
}

/* ------------------------------------------------------------------ memory of a model */

static size_t align_up(size_t bytes)
{
    return (bytes + QI_ALIGN - 1) / QI_ALIGN * QI_ALIGN;
}

/** Offsets of a model's arrays in the model memory. */
struct model_memory {
    size_t tensors, nodes, spans, end;
};

/** The counts are within their limits, so nothing here overflows. */
static struct model_memory lay_out(uint32_t n_tensors, uint32_t n_nodes)
{
    struct model_memory m;
    m.tensors = align_up(sizeof(qi_model));
    m.nodes = m.tensors + align_up(n_tensors * sizeof(qi_tensor));
    m.spans = m.nodes + align_up(n_nodes * sizeof(qi_node));
    m.end = m.spans + align_up((n_tensors + n_nodes) * sizeof(qi_span));
    return m;
}

/** The memory of a model, after checking that the file's counts are within limits. */
static qi_status memory_of(const void *qm, struct model_memory *memory, qi_error *err)
{
    uint32_t const n_tensors = qm_u32((const uint8_t *)qm + QM_AT_TENSORS + 4);
    uint32_t const n_nodes = qm_u32((const uint8_t *)qm + QM_AT_NODES + 4);
    if (n_tensors > QM_MAX_TENSORS)
        return qi_fail(err, QI_ERR_FORMAT, "number of tensors", -1, n_tensors, QM_MAX_TENSORS);
    if (n_nodes > QM_MAX_NODES)
        return qi_fail(err, QI_ERR_FORMAT, "number of nodes", -1, n_nodes, QM_MAX_NODES);
    *memory = lay_out(n_tensors, n_nodes);
    return QI_OK;
}

qi_status qi_checked_model_bytes(const void *qm, size_t *need, qi_error *err)
{
    struct model_memory memory = {0};
    *need = 0;
    qi_status const st = memory_of(qm, &memory, err);
    if (!st)
        *need = memory.end;
    return st;
}

qi_status qi_model_bytes(const void *qm, size_t qm_bytes, size_t *need, qi_error *err)
{
    *need = 0;
    qi_status const st = qm_check_file(qm, qm_bytes, qm_crc32, err);
    return st ? st : qi_checked_model_bytes(qm, need, err);
}

static qi_status check_memory(const void *memory, size_t bytes, size_t need, qi_error *err)
{
    if ((uintptr_t)memory % QI_ALIGN)
        return qi_fail(err, QI_ERR_MEMORY, "address of the model memory modulo 16", -1,
                       (int64_t)((uintptr_t)memory % QI_ALIGN), 0);
    if (bytes < need)
        return qi_fail(err, QI_ERR_MEMORY, "bytes of model memory", -1, (int64_t)bytes,
                       (int64_t)need);
    return QI_OK;
}

/* ------------------------------------------------------------------ reading */

/** Run each node's own check, then ask for its scratch. */
static qi_status check_nodes(qi_model *m, qi_error *err)
{
    for (int32_t i = 0; i < m->n_nodes; i++) {
        qi_node *node = &m->nodes[i];
        qi_status const st = node->kernel->check(m, node, i, err);
        if (st)
            return st;
        size_t const scratch = node->kernel->scratch ? node->kernel->scratch(m, node) : 0;
        if (scratch > QM_MAX_ARENA_BYTES - QI_ALIGN)
            return qi_fail(err, QI_ERR_MEMORY, "scratch bytes", i, (int64_t)scratch,
                           QM_MAX_ARENA_BYTES - QI_ALIGN);
        node->scratch_bytes = scratch;
        node->in_place = node->kernel->in_place;
    }
    return QI_OK;
}

qi_status qi_checked_model_read(qi_model **model, const void *qm, const qi_kernel_set *kernels,
                                void *memory, size_t memory_bytes, qi_error *err)
{
    struct model_memory layout = {0};
    *model = NULL;
    qi_status st = memory_of(qm, &layout, err);
    if (!st)
        st = check_memory(memory, memory_bytes, layout.end, err);
    if (st)
        return st;

    qi_model *m = memory;
    memset(m, 0, sizeof *m);
    m->qm = qm;
    m->alignment = QI_ALIGN;
    m->tensors = (qi_tensor *)(void *)((uint8_t *)memory + layout.tensors);
    m->nodes = (qi_node *)(void *)((uint8_t *)memory + layout.nodes);
    m->spans = (qi_span *)(void *)((uint8_t *)memory + layout.spans);

    st = qm_read_header(m, err);
    if (!st)
        st = qm_read_tensors(m, err);
    if (!st)
        st = qm_read_nodes(m, kernels, err);
    if (!st)
        st = qm_read_metadata(m, err);
    if (!st)
        st = qm_check_packed_inputs(m, err);
    if (!st)
        st = qi_plan_lifetimes(m, err);
    if (!st)
        st = check_nodes(m, err);
    if (!st)
        *model = m;
    return st;
}

qi_status qi_model_init_set(qi_model **model, const void *qm, size_t qm_bytes,
                            const qi_kernel_set *kernels, void *memory, size_t memory_bytes,
                            qi_error *err)
{
    *model = NULL;
    qi_status st = qm_check_file(qm, qm_bytes, qm_crc32, err);
    if (!st)
        st = qi_checked_model_read(model, qm, kernels, memory, memory_bytes, err);
    if (!st)
        st = qi_plan_arena(*model, err);
    if (st)
        *model = NULL;
    return st;
}

qi_status qi_model_init_with(qi_model **model, const void *qm, size_t qm_bytes,
                             const qi_kernel_list *kernels, void *memory, size_t memory_bytes,
                             qi_error *err)
{
    qi_kernel_set const set = {kernels, NULL};
    return qi_model_init_set(model, qm, qm_bytes, &set, memory, memory_bytes, err);
}

/* ------------------------------------------------------------------ questions */

size_t qi_arena_bytes(const qi_model *model)
{
    return model->arena_bytes;
}

size_t qi_model_ram(const qi_model *model)
{
    return model->arena_bytes - qi_pointer_bytes(model);
}

int32_t qi_tensor_count(const qi_model *model)
{
    return model->n_tensors;
}

const qi_tensor *qi_tensor_at(const qi_model *model, int32_t index)
{
    return &model->tensors[index];
}

int32_t qi_node_count(const qi_model *model)
{
    return model->n_nodes;
}

const qi_node *qi_node_at(const qi_model *model, int32_t index)
{
    return &model->nodes[index];
}

int32_t qi_state_count(const qi_model *model)
{
    return model->n_states;
}

int32_t qi_input_count(const qi_model *model)
{
    return model->n_inputs;
}

int32_t qi_input_at(const qi_model *model, int32_t i)
{
    return model->inputs[i];
}

int32_t qi_output_count(const qi_model *model)
{
    return model->n_outputs;
}

int32_t qi_output_at(const qi_model *model, int32_t i)
{
    return model->outputs[i];
}

const qi_preprocessing *qi_model_preprocessing(const qi_model *model)
{
    return &model->preprocessing;
}

const qi_epilogue *qi_model_epilogue(const qi_model *model)
{
    return &model->epilogue;
}

int32_t qi_label_count(const qi_model *model)
{
    return model->n_labels;
}

const char *qi_label_at(const qi_model *model, int32_t i)
{
    return model->strings + model->labels[i];
}

const uint8_t *qi_model_digest(const qi_model *model)
{
    return model->qm + QM_AT_DIGEST;
}

const char *qi_model_description(const qi_model *model)
{
    return model->description;
}

int32_t qi_kat_steps(const qi_model *model)
{
    return model->kat_steps;
}

const void *qi_kat_input(const qi_model *model, int32_t i)
{
    return model->kat ? model->data + model->kat[i] : NULL;
}

const void *qi_kat_output(const qi_model *model, int32_t i)
{
    return model->kat ? model->data + model->kat[model->n_inputs + i] : NULL;
}
