/**
 * Runs a model: resolves pointers and calls kernels. Nothing here can fail.
 *
 * The start of the arena holds the pointers of the running op: to its inputs, then to its outputs.
 */
#include "infer/kernels/parts/memory.h"
#include "infer/model/model.h"
#include "infer/model/op.h"

static void *arena_at(void *arena, size_t offset)
{
    return (uint8_t *)arena + offset;
}

static const void *bytes_of(const qi_model *m, void *arena, int32_t tensor)
{
    const qi_tensor *t = &m->tensors[tensor];
    return t->kind == QI_CONSTANT ? t->data : arena_at(arena, t->offset);
}

void *qi_tensor_bytes_in(const qi_model *m, void *arena, int32_t tensor)
{
    return (void *)(uintptr_t)bytes_of(m, arena, tensor);
}

/**
 * Copy one model input into the arena. With fewer bits than its type has, a value may not be a
 * code; it is then limited to the range of codes. Every accumulator bound relies on that.
 */
static void put_input(const qi_tensor *t, const void *input, void *arena)
{
    void *codes = arena_at(arena, t->offset);
    size_t const item = qi_type_bytes(t->type);
    memcpy(codes, input, t->bytes);
    if (t->bits >= 8 * item)
        return;
    int32_t const lo = qi_code_lo(t), hi = qi_code_hi(t);
    for (size_t i = 0; i < t->bytes / item; i++)
        qi_store_value(t->type, codes, i,
                       qi_clamp((int32_t)qi_value_at(t->type, codes, i), lo, hi));
}

void qi_run_node(const qi_model *m, const qi_node *node, void *arena)
{
    const void **in = arena;
    void **out = (void **)arena + node->n_inputs;
    for (int32_t i = 0; i < node->n_inputs; i++)
        in[i] = bytes_of(m, arena, node->inputs[i]);
    for (int32_t i = 0; i < node->n_outputs; i++)
        out[i] = arena_at(arena, m->tensors[node->outputs[i]].offset);
    qi_call const call = {.model = m,
                          .node = node,
                          .in = in,
                          .out = out,
                          .scratch = arena_at(arena, node->scratch_offset)};
    node->kernel->run(&call);
}

void qi_put_inputs(const qi_model *m, void *arena, const void *const *inputs)
{
    for (int32_t i = 0; i < m->n_inputs; i++)
        put_input(&m->tensors[m->inputs[i]], inputs[i], arena);
}

void qi_get_outputs(const qi_model *m, void *arena, void *const *outputs)
{
    for (int32_t i = 0; i < m->n_outputs; i++)
        if (outputs[i])
            memcpy(outputs[i], bytes_of(m, arena, m->outputs[i]), m->tensors[m->outputs[i]].bytes);
}

/** Like qi_run_visit, of inputs that are in the arena; the outputs stay there. */
static void run_all(const qi_model *m, void *arena, qi_visit *visit, void *context)
{
    for (int32_t i = 0; visit && i < m->n_inputs; i++)
        visit(context, m, m->inputs[i], bytes_of(m, arena, m->inputs[i]));
    for (int32_t i = 0; i < m->n_nodes; i++) {
        const qi_node *node = &m->nodes[i];
        qi_run_node(m, node, arena);
        for (int32_t j = 0; visit && j < node->n_outputs; j++)
            visit(context, m, node->outputs[j], bytes_of(m, arena, node->outputs[j]));
    }
    qi_carry_on(m, arena);
}

void qi_run_visit(const qi_model *m, void *arena, const void *const *inputs, void *const *outputs,
                  qi_visit *visit, void *context)
{
    qi_put_inputs(m, arena, inputs);
    run_all(m, arena, visit, context);
    qi_get_outputs(m, arena, outputs);
}

void qi_run(const qi_model *m, void *arena, const void *const *inputs, void *const *outputs)
{
    qi_run_visit(m, arena, inputs, outputs, NULL, NULL);
}

/** Values of input or output `tensor` in a step, behind those of the steps before it. */
static const uint8_t *kat_at(const qi_model *m, const void *first, int32_t tensor, int32_t step)
{
    return (const uint8_t *)first + (size_t)step * m->tensors[tensor].bytes;
}

static qi_status test_step(const qi_model *m, void *arena, int32_t step, qi_error *err)
{
    for (int32_t i = 0; i < m->n_inputs; i++)
        put_input(&m->tensors[m->inputs[i]], kat_at(m, qi_kat_input(m, i), m->inputs[i], step),
                  arena);
    run_all(m, arena, NULL, NULL);
    for (int32_t i = 0; i < m->n_outputs; i++) {
        const uint8_t *got = bytes_of(m, arena, m->outputs[i]);
        const uint8_t *want = kat_at(m, qi_kat_output(m, i), m->outputs[i], step);
        for (size_t j = 0; j < m->tensors[m->outputs[i]].bytes; j++)
            if (got[j] != want[j])
                return qi_fail(err, QI_ERR_KAT, "a byte of a known answer differs", m->outputs[i],
                               got[j], want[j]);
    }
    return QI_OK;
}

qi_status qi_self_test(const qi_model *m, void *arena, qi_error *err)
{
    qi_status st = QI_OK;
    if (!m->kat)
        return qi_fail(err, QI_ERR_KAT, "no known-answer test is stored", -1, 0, 1);
    qi_reset(m, arena);
    for (int32_t step = 0; step < m->kat_steps && !st; step++)
        st = test_step(m, arena, step, err);
    qi_reset(m, arena);
    return st;
}
