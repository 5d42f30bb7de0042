#include "autograd/graph/registry.h"

#include <stdlib.h>
#include <string.h>

struct qat_registry {
    const qat_op **ops;
    int count, capacity;
    uint64_t memory; /* of one graph; 0: no limit */
    const struct qat_task **tasks;
    int n_tasks;
};

qat_status qat_registry_create_empty(qat_registry **registry, qat_error *err)
{
    *registry = calloc(1, sizeof **registry);
    return *registry ? QAT_OK : qat_out_of_memory(err, "registry");
}

void qat_registry_free(qat_registry *registry)
{
    if (!registry)
        return;
    free(registry->ops);
    free(registry->tasks);
    free(registry);
}

/** A name is a word of the text format: letters, digits and '_'. */
static bool is_word(const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return name && *name && strspn(name, legal) == strlen(name);
}

static qat_status check_attrs(const qat_op *op, qat_error *err)
{
    for (int i = 0; op->attrs && op->attrs[i].name; i++) {
        qat_attr_def const *def = &op->attrs[i];
        if (i == QAT_MAX_ATTRS)
            return qat_fail(err, QAT_ERR_ARGUMENT, "op '%s' has more than %d attributes", op->name,
                            QAT_MAX_ATTRS);
        if (!is_word(def->name))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "op '%s': attribute name '%s' is not letters, digits and _", op->name,
                            def->name);
        if (def->type == QAT_ATTR_CHOICE ? !def->choices || !*def->choices
                                         : !(def->min <= def->max))
            return qat_fail(err, QAT_ERR_ARGUMENT, "op '%s': attribute '%s' has no legal value",
                            op->name, def->name);
        for (int k = 0; k < i; k++)
            if (strcmp(op->attrs[k].name, def->name) == 0)
                return qat_fail(err, QAT_ERR_ARGUMENT, "op '%s' has two attributes '%s'", op->name,
                                def->name);
    }
    return QAT_OK;
}

static qat_status check_op(const qat_registry *registry, const qat_op *op, qat_error *err)
{
    if (!op || !is_word(op->name))
        return qat_fail(err, QAT_ERR_ARGUMENT, "op name '%s' is not letters, digits and _",
                        op && op->name ? op->name : "");
    if (qat_registry_find(registry, op->name))
        return qat_fail(err, QAT_ERR_ARGUMENT, "an op '%s' is already registered", op->name);
    if (!op->shape || !op->forward)
        return qat_fail(err, QAT_ERR_ARGUMENT, "op '%s' has no %s function", op->name,
                        op->shape ? "forward" : "shape");
    if (op->min_inputs < 0 || (op->max_inputs != -1 && op->max_inputs < op->min_inputs))
        return qat_fail(err, QAT_ERR_ARGUMENT, "op '%s' takes %d to %d inputs", op->name,
                        op->min_inputs, op->max_inputs);
    return check_attrs(op, err);
}

qat_status qat_registry_add(qat_registry *registry, const qat_op *op, qat_error *err)
{
    qat_status const st = check_op(registry, op, err);
    if (st)
        return st;
    if (registry->count == registry->capacity) {
        int const capacity = registry->capacity ? 2 * registry->capacity : 64;
        const qat_op **ops = realloc(registry->ops, (size_t)capacity * sizeof *ops);
        if (!ops)
            return qat_out_of_memory(err, op->name);
        registry->ops = ops;
        registry->capacity = capacity;
    }
    registry->ops[registry->count++] = op;
    return QAT_OK;
}

const qat_op *qat_registry_find(const qat_registry *registry, const char *name)
{
    for (int i = 0; i < registry->count; i++)
        if (strcmp(registry->ops[i]->name, name) == 0)
            return registry->ops[i];
    return NULL;
}

void qat_registry_set_memory(qat_registry *registry, uint64_t bytes)
{
    registry->memory = bytes;
}

uint64_t qat_registry_memory(const qat_registry *registry)
{
    return registry->memory;
}

int qat_registry_count(const qat_registry *registry)
{
    return registry->count;
}

const qat_op *qat_registry_at(const qat_registry *registry, int i)
{
    return registry->ops[i];
}

qat_status qat_registry_keep_task(qat_registry *registry, const struct qat_task *task,
                                  qat_error *err)
{
    size_t const n = (size_t)registry->n_tasks + 1;
    const struct qat_task **tasks = realloc(registry->tasks, n * sizeof *tasks);
    if (!tasks)
        return qat_out_of_memory(err, "registry");
    registry->tasks = tasks;
    tasks[registry->n_tasks++] = task;
    return QAT_OK;
}

int qat_registry_tasks(const qat_registry *registry)
{
    return registry->n_tasks;
}

const struct qat_task *qat_registry_task_at(const qat_registry *registry, int i)
{
    return registry->tasks[i];
}
