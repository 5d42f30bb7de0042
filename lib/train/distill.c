#include "train/distill.h"

#include "autograd/ops/op.h"
#include "base/number.h"
#include "checkpoint/restore.h"
#include "evaluate/data.h"
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The input of a student's graph that takes the teacher's logits. */
static const char ANSWERS[] = QAT_LOSS_NAME "/teacher";

struct qat_teacher {
    qat_restored *restored; /* with the graph that runs */
    const qat_recipe *recipe;
    qat_node *logits; /* its output */
};

/* ------------------------------------------------------------------ does it fit? */

static qat_status unequal(const qat_teacher *t, const char *what, double theirs, double ours,
                          qat_error *err)
{
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "distill.teacher = %s: its %s is %.9g, but the student's is %.9g: both must "
                    "see the same batch",
                    t->recipe->distill.teacher, what, theirs, ours);
}

static qat_status check_task(const qat_recipe *student, const char *which,
                             const qat_input_info *input, qat_error *err)
{
    const qat_task *task = qat_task_of(input);
    if (task->distills)
        return QAT_OK;
    return qat_fail(
        err, QAT_ERR_UNSUPPORTED,
        "distill.teacher = %s: the %s is a %s; distillation works with classifiers only",
        student->distill.teacher, which, task->network);
}

/**
 * Check what a network sees of a sample, and the classes. How pictures of other sizes become
 * samples may differ: both networks get the student's.
 */
static qat_status check_input(const qat_teacher *t, const qat_input_info *student, qat_error *err)
{
    static const char *const values[] = {"pixels", "real values", "sounds"};
    const qat_input_info *teacher = &t->restored->checkpoint->input;
    const struct {
        const char *what;
        int theirs, ours;
    } numbers[] = {{"height", teacher->height, student->height},
                   {"width", teacher->width, student->width},
                   {"number of channels", teacher->channels, student->channels},
                   {"number of classes", teacher->classes, student->classes}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].theirs != numbers[i].ours)
            return unequal(t, numbers[i].what, numbers[i].theirs, numbers[i].ours, err);
    if (teacher->type != student->type)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "distill.teacher = %s: it takes %s, but the student takes %s",
                        t->recipe->distill.teacher, values[teacher->type], values[student->type]);
    for (int i = 0; i < QAT_CHANNEL_VALUES; i++) {
        if (teacher->mean[i] != student->mean[i])
            return unequal(t, "mean", (double)teacher->mean[i], (double)student->mean[i], err);
        if (teacher->std[i] != student->std[i])
            return unequal(t, "std", (double)teacher->std[i], (double)student->std[i], err);
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ opening */

/** The input of the output's softmax, or the output. */
static qat_node *logits_of(const qat_graph *graph)
{
    qat_node *out = qat_graph_output_at(graph, 0);
    return out->op == &qat_op_softmax ? out->inputs[0] : out;
}

static qat_status plan(qat_teacher *t, int batch, qat_error *err)
{
    qat_graph *graph = t->restored->float_graph;
    t->logits = logits_of(graph);
    if (t->logits != qat_graph_output_at(graph, 0))
        qat_graph_output(graph, t->logits); /* keeps the value of this node */
    qat_status st = qat_graph_plan(graph, batch, QAT_PLAN_EVAL, err);
    return st ? st : qat_checkpoint_params(t->restored->checkpoint, graph, err);
}

qat_status qat_teacher_open(qat_teacher **teacher, const qat_recipe *recipe,
                            const qat_input_info *input, int batch, qat_registry *registry,
                            qat_plugins *plugins, const qat_log *log, qat_error *err)
{
    char path[512];
    qat_error inner = {0};
    *teacher = NULL;
    qat_status st = check_task(recipe, "student", input, err);
    qat_teacher *t = st ? NULL : calloc(1, sizeof *t);
    if (!t)
        return st ? st : qat_out_of_memory(err, "distill.teacher");
    t->recipe = recipe;
    st = qat_expand_path(recipe->distill.teacher, path, sizeof path, &inner);
    if (!st)
        st = qat_restore_with(&t->restored, path, registry, plugins, &inner);
    if (st)
        qat_fail(err, st, "distill.teacher: %.480s%s", inner.message,
                 st == QAT_ERR_STATE ? ", or name it in plugin.path" : "");
    if (!st && t->restored->warning && log)
        log->line(log->context, t->restored->warning);
    if (!st)
        st = check_task(recipe, "teacher", &t->restored->checkpoint->input, err);
    if (!st)
        st = check_input(t, input, err);
    if (!st)
        st = plan(t, batch, err);
    if (st)
        qat_teacher_free(t);
    else
        *teacher = t;
    return st;
}

void qat_teacher_free(qat_teacher *teacher)
{
    if (!teacher)
        return;
    qat_restored_free(teacher->restored);
    free(teacher);
}

const uint8_t *qat_teacher_digest(const qat_teacher *teacher)
{
    return teacher->restored->checkpoint->digest;
}

/* ------------------------------------------------------------------ training */

qat_node *qat_teacher_join(qat_teacher *t, qat_graph *training)
{
    char attrs[96];
    qat_node *loss = qat_graph_find(training, QAT_LOSS_NAME);
    qat_node *own = qat_graph_find(training, QAT_OWN_LOSS_NAME);
    qat_node *logits = (own ? own : loss)->inputs[0];
    qat_node *answers = qat_graph_input(training, ANSWERS, logits->shape);
    qat_format(attrs, sizeof attrs, "temperature=%.17g weight=%.17g",
               t->recipe->distill.temperature, t->recipe->distill.weight);
    return qat_apply(training, "distillation", QAT_LOSS_NAME "/distilled", attrs, 3,
                     (qat_node *[]){loss, logits, answers});
}

qat_status qat_teacher_answer(qat_teacher *t, qat_graph *training, const qat_batch *batch,
                              qat_error *err)
{
    qat_run const run = {.mode = QAT_MODE_EVAL};
    qat_status const st = qat_feed_graph(t->restored->float_graph, batch, batch->count, err);
    if (st)
        return st;
    qat_graph_forward(t->restored->float_graph, &run);
    memcpy(qat_graph_find(training, ANSWERS)->value, t->logits->value,
           qat_shape_count(&t->logits->shape) * sizeof *t->logits->value);
    return QAT_OK;
}
