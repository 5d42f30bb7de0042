/** The table of tasks, which one it is, and what is the same for all. */
#include "task/task.h"

#include <math.h>
#include <string.h>

#define ENTRY(name) &qat_task_##name,
static const qat_task *const tasks[] = {QAT_TASKS(ENTRY)};
#undef ENTRY

static int added(const qat_registry *registry)
{
    return registry ? qat_registry_tasks(registry) : 0;
}

int qat_tasks(const qat_registry *registry)
{
    return added(registry) + (int)(sizeof tasks / sizeof *tasks);
}

const qat_task *qat_task_at(const qat_registry *registry, int i)
{
    int const n = added(registry);
    return i < n ? qat_registry_task_at(registry, i) : tasks[i - n];
}

const qat_task *qat_task_find(const qat_registry *registry, const char *name)
{
    for (int i = 0; i < qat_tasks(registry); i++)
        if (!strcmp(qat_task_at(registry, i)->name, name))
            return qat_task_at(registry, i);
    return NULL;
}

const qat_task *qat_task_for(const qat_registry *registry, const qat_recipe *recipe,
                             const qat_dataset_info *data)
{
    int i = 0;
    const qat_task *task = qat_task_at(registry, i);
    while (task->takes && (!task->takes(recipe, data) || (task->by_recipe && !recipe)))
        task = qat_task_at(registry, ++i);
    return task;
}

const qat_task *qat_task_of_graph(const qat_graph *graph)
{
    const qat_registry *registry = qat_graph_registry(graph);
    int i = 0;
    const qat_task *task = qat_task_at(registry, i);
    while (task->takes && !qat_graph_find(graph, task->target))
        task = qat_task_at(registry, ++i);
    return task;
}

const qat_task *qat_task_of_model(const qat_registry *registry, const qi_model *model)
{
    for (int i = 0; i < qat_tasks(registry); i++)
        if (qat_task_at(registry, i)->answers(model))
            return qat_task_at(registry, i);
    return NULL;
}

const qat_task *qat_task_of(const qat_input_info *input)
{
    return input->task ? input->task : &qat_task_classes;
}

qat_status qat_task_open(qat_input_info *input, const qat_graph *graph, const qat_recipe *recipe,
                         qat_error *err)
{
    const qat_task *task = qat_task_of(input);
    void *state = NULL;
    qat_status const st = task->open ? task->open(&state, graph, recipe, input, err) : QAT_OK;
    input->state = state;
    return st;
}

void qat_task_close(qat_input_info *input)
{
    if (input->state)
        qat_task_of(input)->close(input->state);
    input->state = NULL;
}

/** Are data checked here for this task: where they are read, or (judged) where answers are? */
static bool is_checked(const qat_task *task, bool judged)
{
    return task->takes && task->checks_loaders != judged;
}

qat_status qat_task_check_data(const qat_input_info *input, const qat_dataset_info *data,
                               bool judged, qat_error *err)
{
    const qat_task *task = qat_task_of(input), *theirs = qat_task_for(NULL, NULL, data);
    bool const unwanted = is_checked(theirs, judged);
    bool const missing = is_checked(task, judged) && (judged || !theirs->takes);
    bool const fits = task->takes ? task->takes(NULL, data) : task == theirs;
    if (fits || (!unwanted && !missing))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_SHAPE, "%s: %s", data->name,
                    missing ? task->missing : theirs->unwanted);
}

/* ------------------------------------------------------------------ figures */

double qat_figure_of(const qat_accuracy *a, int figure)
{
    if (!a->n || !a->task)
        return NAN;
    const qat_figure *f = &a->task->figures[figure];
    double const v = a->figures[figure];
    if (f->optional && v < 0)
        return NAN;
    return f->kind == QAT_FIGURE_COUNT   ? 100.0 * v / (double)a->n
           : f->kind == QAT_FIGURE_SHARE ? 100.0 * v
                                         : v;
}

double qat_main_figure(const qat_accuracy *accuracy)
{
    return accuracy->n && accuracy->task ? qat_figure_of(accuracy, accuracy->task->main) : NAN;
}

double qat_score(const qat_accuracy *accuracy)
{
    bool const own = accuracy->n && accuracy->task && accuracy->task->score;
    return own ? accuracy->task->score(accuracy) : qat_main_figure(accuracy);
}

bool qat_score_is_better(const qat_task *task, double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) && !isnan(a);
    return task->less_is_better ? a < b : a > b;
}
