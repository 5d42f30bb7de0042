/** Tasks that are added to a registry: what their tables must have, so that all others may ask. */
#include "task/task.h"

#include "autograd/graph/registry.h"

#include <string.h>

/** The first member that must not be NULL but is; NULL: there is none. */
static const char *missing_member(const qat_task *t)
{
    const struct {
        const char *name;
        bool there;
    } members[] = {
        {"network", t->network},
        {"target", t->target},
        {"missing", t->missing},
        {"unwanted", t->unwanted},
        {"figures", t->figures},
        {"takes", t->takes},
        {"close", !t->open || t->close},
        {"begin", t->begin},
        {"add", t->add},
        {"judge", t->judge},
        {"end", t->end},
        {"n_scores", t->scored == QAT_SCORES_NONE || t->n_scores},
        {"scores", t->scored == QAT_SCORES_NONE || t->scores},
        {"tell", t->tell},
        {"tell_json", t->tell_json},
        {"answers", t->answers},
        {"of_model", t->of_model},
        {"answer", t->answer},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!members[i].there)
            return members[i].name;
    return NULL;
}

/** The other task whose networks have the same target; NULL: there is none. */
static const qat_task *same_target(const qat_registry *registry, const qat_task *t)
{
    for (int i = 0; i < qat_tasks(registry); i++)
        if (!strcmp(qat_task_at(registry, i)->target, t->target))
            return qat_task_at(registry, i);
    return NULL;
}

static qat_status check_name(const qat_registry *registry, const qat_task *t, qat_error *err)
{
    if (!t || !t->name || !*t->name)
        return qat_fail(err, QAT_ERR_ARGUMENT, "a task without a name");
    if (strlen(t->name) >= QAT_NAME_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %.20s...: its name has more than %d bytes",
                        t->name, QAT_NAME_MAX - 1);
    if (qat_task_find(registry, t->name))
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: there is another one of this name",
                        t->name);
    if (t->implied)
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: only built-in tasks are implied", t->name);
    return QAT_OK;
}

static qat_status check_figures(const qat_task *t, qat_error *err)
{
    if (t->n_figures < 1 || t->n_figures > QAT_MAX_FIGURES)
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: %d figures, but there may be 1 to %d",
                        t->name, t->n_figures, QAT_MAX_FIGURES);
    for (int i = 0; i < t->n_figures; i++)
        if (!t->figures[i].name || !t->figures[i].column)
            return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: no %s of figure %d", t->name,
                            t->figures[i].name ? "column" : "name", i);
    if (t->main < 0 || t->main >= t->n_figures)
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: main = %d, but there are %d figures",
                        t->name, t->main, t->n_figures);
    if (t->also < (t->logs_both ? 0 : -1) || t->also >= t->n_figures)
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: also = %d, but there are %d figures",
                        t->name, t->also, t->n_figures);
    return QAT_OK;
}

static qat_status check_task(const qat_registry *registry, const qat_task *t, qat_error *err)
{
    qat_status const st = check_name(registry, t, err);
    if (st)
        return st;
    const char *member = missing_member(t);
    if (member)
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: no %s", t->name, member);
    const qat_task *other = same_target(registry, t);
    if (other)
        return qat_fail(err, QAT_ERR_ARGUMENT, "task %s: its target %s is that of task %s", t->name,
                        t->target, other->name);
    return check_figures(t, err);
}

qat_status qat_registry_add_task(qat_registry *registry, const qat_task *task, qat_error *err)
{
    qat_status const st = check_task(registry, task, err);
    return st ? st : qat_registry_keep_task(registry, task, err);
}
