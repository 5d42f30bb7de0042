/**
 * States: tensors that the engine keeps between runs. Nodes read a state like any activation, and
 * write what it becomes to another tensor, its next one. After the last node the engine copies:
 *
 *   run 1   state = zero_point      -> nodes -> next, copied to the state
 *   run 2   state = next of run 1   -> nodes -> next, copied to the state
 */
#include "infer/kernels/parts/memory.h"
#include "infer/model/op.h"

static int have_same_codes(const qi_tensor *a, const qi_tensor *b)
{
    int same = a->type == b->type && a->bits == b->bits && a->rank == b->rank &&
               a->zero_point == b->zero_point;
    for (int d = 0; d < QI_MAX_RANK; d++)
        same = same && a->dims[d] == b->dims[d];
    return same;
}

qi_status qm_check_states(const qi_model *m, qi_error *err)
{
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const qi_tensor *t = &m->tensors[i];
        if (t->kind != QI_STATE)
            continue;
        qi_status const st = qm_check_indices(m, &t->next, 1, 1, "next tensor of a state", i, err);
        if (st)
            return st;
        if (!have_same_codes(t, &m->tensors[t->next]))
            return qi_fail(err, QI_ERR_FORMAT, "next tensor of a state: other codes or dims", i,
                           t->next, m->n_tensors - 1);
    }
    return QI_OK;
}

void qi_reset(const qi_model *m, void *arena)
{
    for (int32_t i = 0, left = m->n_states; left > 0; i++) {
        const qi_tensor *t = &m->tensors[i];
        if (t->kind != QI_STATE)
            continue;
        void *values = qi_tensor_bytes_in(m, arena, i);
        left--;
        memset(values, 0, t->bytes);
        for (size_t k = 0; t->zero_point && k < t->bytes / qi_type_bytes(t->type); k++)
            qi_store_value(t->type, values, k, t->zero_point);
    }
}

void qi_carry_on(const qi_model *m, void *arena)
{
    for (int32_t i = 0, left = m->n_states; left > 0; i++) {
        const qi_tensor *t = &m->tensors[i];
        if (t->kind != QI_STATE)
            continue;
        left--;
        memcpy(qi_tensor_bytes_in(m, arena, i), qi_tensor_bytes_in(m, arena, t->next), t->bytes);
    }
}
