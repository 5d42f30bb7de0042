/**
 * The task of classifiers: one class of several for each sample. Judged by ranks; of equal scores
 * the lower class comes first.
 */
#include "task/task.h"

#include "autograd/ops/op.h"
#include "base/number.h"
#include "base/words.h"
#include "datasets/dataset_kind.h"
#include "qat/border.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const qat_figure figures[] = {
    [QAT_TOP1] = {.name = "top-1", .column = "top1", .kind = QAT_FIGURE_COUNT},
    [QAT_TOP5] = {.name = "top-5", .column = "top5", .kind = QAT_FIGURE_COUNT, .above = 5},
    [QAT_ONLY_ANSWER] = {.name = "only answer",
                         .column = "only_answer",
                         .kind = QAT_FIGURE_REAL,
                         .optional = true},
};

/* ------------------------------------------------------------------ the network */

static qat_node *cross_entropy(const qat_net_ends *net, const char *name, qat_node *logits,
                               qat_node *labels)
{
    char smoothing[64];
    qat_format(smoothing, sizeof smoothing, "smoothing=%.17g", net->recipe->train.label_smoothing);
    return qat_apply2(net->graph, "softmax_cross_entropy", name, smoothing, logits, labels);
}

/** Add the loss. With an auxiliary classifier it is the sum of two losses. */
static void add_loss(const qat_net_ends *net, qat_node *logits)
{
    char weight[48];
    qat_node *labels = qat_graph_input(net->graph, QAT_LABEL_NAME, QAT_SHAPE(1));
    if (!net->auxiliary) {
        cross_entropy(net, QAT_LOSS_NAME, logits, labels);
        return;
    }
    qat_node *own = cross_entropy(net, QAT_OWN_LOSS_NAME, logits, labels);
    qat_node *other = cross_entropy(net, QAT_LOSS_NAME "/auxiliary", net->auxiliary, labels);
    qat_format(weight, sizeof weight, "weight=%.17g", net->recipe->model.auxiliary);
    qat_apply2(net->graph, "loss_sum", QAT_LOSS_NAME, weight, own, other);
}

/** If the network ends in a softmax or a sigmoid, the loss reads its input. */
static qat_status add_ends(const qat_net_ends *net, qat_error *err)
{
    qat_node *logits, *out = net->last;
    qat_status const st = qat_task_logits(net, &logits, err);
    if (st)
        return st;
    if (logits->op == &qat_op_logistic)
        logits = logits->inputs[0];
    if (logits == out && net->recipe->model.output == 1)
        out = qat_apply1(net->graph, "softmax", "probabilities", "", logits);
    if (out)
        qat_graph_output(net->graph, out);
    add_loss(net, logits);
    return qat_graph_check(net->graph, err);
}

/* ------------------------------------------------------------------ judging */

static void count_rank(qat_accuracy *a, int rank, int answer)
{
    bool const same = a->n == 0 || a->figures[QAT_ONLY_ANSWER] == answer;
    a->figures[QAT_ONLY_ANSWER] = same ? answer : -1;
    a->n++;
    a->figures[QAT_TOP1] += rank < 1;
    a->figures[QAT_TOP5] += rank < 5;
}

/** Rank labels among scores [count, classes]. A NaN score ranks last. */
static void rank_scores(qat_accuracy *a, const float *scores, int count, int classes,
                        const int32_t *labels)
{
    for (int i = 0; i < count; i++, scores += classes) {
        float const own = scores[labels[i]];
        int rank = own == own ? 0 : classes, answer = 0;
        for (int c = 0; c < classes; c++) {
            rank += scores[c] > own || (scores[c] == own && c < labels[i]);
            answer = scores[c] > scores[answer] ? c : answer;
        }
        count_rank(a, rank, answer);
    }
}

static void rank_codes(qat_accuracy *a, const void *scores, qi_type type, int count, int classes,
                       const int32_t *labels)
{
    for (int i = 0; i < count; i++) {
        size_t const first = (size_t)i * (size_t)classes;
        int32_t const own = qat_load_code(type, scores, first + (size_t)labels[i]);
        int32_t most = INT32_MIN;
        int rank = 0, answer = 0;
        for (int c = 0; c < classes; c++) {
            int32_t const other = qat_load_code(type, scores, first + (size_t)c);
            rank += other > own || (other == own && c < labels[i]);
            answer = other > most ? c : answer;
            most = other > most ? other : most;
        }
        count_rank(a, rank, answer);
    }
}

static void count_batch(const qat_input_info *input, const qat_graph *graph, const qat_batch *batch,
                        int64_t *known, int64_t *right)
{
    const qat_node *out = qat_graph_output_at(graph, 0);
    qat_accuracy a = {0};
    rank_scores(&a, out->value, batch->count, qat_shape_channels(&out->shape), batch->labels);
    *known = a.n;
    *right = (int64_t)a.figures[QAT_TOP1];
}

typedef struct pass {
    qat_accuracy accuracy;
    int classes;
} pass;

static qat_status begin(void **to, const qat_input_info *input, qat_error *err)
{
    pass *p = calloc(1, sizeof *p);
    *to = p;
    if (!p)
        return qat_out_of_memory(err, "evaluation");
    p->accuracy.task = &qat_task_classes;
    p->classes = input->classes;
    return QAT_OK;
}

/** Check the scores of a batch: NaN and infinity would be ranked but mean nothing. */
static qat_status check_scores(const qat_output *out, int count, qat_error *err)
{
    for (size_t i = 0; i < (size_t)count * out->n; i++)
        if (!isfinite(out->real[i]))
            return qat_fail(err, QAT_ERR_NUMERIC,
                            "evaluation: the score of class %zu is %s (output %s)", i % out->n,
                            isnan(out->real[i]) ? "NaN" : "infinite", out->name);
    return QAT_OK;
}

static qat_status add(void *to, const qat_outputs *outputs, const qat_batch *batch, int count,
                      qat_error *err)
{
    const qat_output *out = &outputs->at[0];
    pass *p = to;
    if (out->n < (size_t)p->classes)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "evaluation: %zu scores (output %s), but there are %d classes", out->n,
                        out->name, p->classes);
    if (out->real)
        rank_scores(&p->accuracy, out->real, count, (int)out->n, batch->labels);
    else
        rank_codes(&p->accuracy, out->codes, out->type, count, (int)out->n, batch->labels);
    return out->real ? check_scores(out, count, err) : QAT_OK;
}

static qat_status judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    *accuracy = ((const pass *)of)->accuracy;
    return QAT_OK;
}

static int n_scores(const qat_input_info *input)
{
    return input->classes;
}

static qat_status scores(const qat_input_info *input, const qat_outputs *outputs,
                         const qat_batch *batch, int i, float *to, float *truth, qat_error *err)
{
    if (outputs->at[0].n != (size_t)input->classes)
        return qat_fail(err, QAT_ERR_SHAPE, "figures: %zu scores, but there are %d classes",
                        outputs->at[0].n, input->classes);
    qat_output_real(&outputs->at[0], (size_t)i, to);
    truth[0] = (float)batch->labels[i];
    return QAT_OK;
}

/* ------------------------------------------------------------------ telling figures */

static void tell(qat_text *text, const qat_accuracy *a, int classes)
{
    qat_text_add(text, "top-1 %.2f %%", qat_figure_of(a, QAT_TOP1));
    if (classes > figures[QAT_TOP5].above)
        qat_text_add(text, "  top-5 %.2f %%", qat_figure_of(a, QAT_TOP5));
    qat_text_add_count(text, a, "sample");
}

static void tell_json(qat_text *text, const qat_accuracy *a, const char *prefix)
{
    qat_text_add(text, ", \"%stop1\": %.6g, \"%stop5\": %.6g", prefix,
                 qat_figure_of(a, QAT_TOP1) / 100, prefix, qat_figure_of(a, QAT_TOP5) / 100);
}

/** How many test samples the most frequent class has. */
static qat_status most_frequent(const qat_dataset *test, int64_t *most, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(test);
    int64_t *counts = calloc((size_t)info->classes, sizeof *counts);
    *most = 0;
    if (!counts)
        return qat_out_of_memory(err, info->name);
    for (int i = 0; i < info->count; i++) {
        int64_t const n = ++counts[qat_dataset_label(test, i)];
        *most = n > *most ? n : *most;
    }
    free(counts);
    return QAT_OK;
}

/** Has a network learned nothing: is it no better than one answer for everything? */
static qat_status remark(char *text, size_t max, const char *network, const qat_accuracy *a,
                         const qat_dataset *test, qat_error *err)
{
    const char *const *labels = qat_dataset_info_of(test)->labels;
    int const only = (int)a->figures[QAT_ONLY_ANSWER];
    long long const n = (long long)a->n, right = (long long)a->figures[QAT_TOP1];
    char class[64];
    int64_t most;
    qat_status const st = most_frequent(test, &most, err);
    if (st || a->n < 2 || (only < 0 && right > most))
        return st;
    snprintf(class, sizeof class, "%d", only);
    if (only >= 0 && labels)
        snprintf(class, sizeof class, "%.60s", labels[only]);
    if (only >= 0)
        snprintf(text, max, "the %s network answers class %s for all %lld test samples", network,
                 class, n);
    else
        snprintf(text, max,
                 "the %s network answers %lld of %lld test samples right; the most frequent class "
                 "for all of them would be right for %lld",
                 network, right, n, (long long)most);
    return QAT_OK;
}

/* ------------------------------------------------------------------ models */

static const qi_tensor *scores_of(const qi_model *model)
{
    return qi_tensor_at(model, qi_output_at(model, 0));
}

/** Does the first output hold class numbers, one per row, as arg_max gives them? */
static bool is_indices(const qi_tensor *t)
{
    return !qi_type_has_codes(t->type) && t->rank == 1;
}

static bool answers(const qi_model *model)
{
    return qat_is_list(scores_of(model)) || is_indices(scores_of(model));
}

static bool of_model(qat_input_info *input, const qi_model *model)
{
    input->classes = (int)qat_tensor_values(scores_of(model));
    return qi_output_count(model) == 1 && qi_type_has_codes((qi_type)scores_of(model)->type);
}

static int code_at(const qi_tensor *t, const void *codes, size_t i)
{
    return (int)qi_value_at(t->type, codes, i);
}

/** The real number that a code stands for: S (q - Z). */
static double real_at(const qi_tensor *t, const void *codes, size_t i)
{
    float scale;
    memcpy(&scale, &t->scale_bits, sizeof scale);
    return (double)scale * (code_at(t, codes, i) - t->zero_point);
}

/** The best class after the pair (code, class) `after`; -1: none. */
static int next_best(const qi_tensor *t, const void *codes, int after)
{
    int best = -1;
    for (int i = 0; i < (int)qat_tensor_values(t); i++) {
        int const v = code_at(t, codes, (size_t)i);
        int const last = after < 0 ? 0 : code_at(t, codes, (size_t)after);
        bool const comes_later = after < 0 || v < last || (v == last && i > after);
        if (comes_later && (best < 0 || v > code_at(t, codes, (size_t)best)))
            best = i;
    }
    return best;
}

/** Value i of an int32 or int64 output. A class fits int. */
static int index_at(const qi_tensor *t, const void *values, size_t i)
{
    return (int)qi_value_at(t->type, values, i);
}

/** The classes that the model itself chose. */
static void tell_indices(qat_text *text, const qat_answer *a)
{
    const qi_tensor *t = scores_of(a->model);
    size_t const count = qat_tensor_values(t);
    qat_text_add(text, a->json ? ", \"classes\": [" : ":");
    for (size_t i = 0; i < count; i++) {
        int const class = index_at(t, a->outputs[0], i);
        const char *comma = !i ? "" : a->json ? ", " : ",";
        qat_text_add(text, a->json ? "%s{\"class\": %d, \"label\": " : "%s %d ", comma, class);
        qat_text_add_label(text, a->model, class, a->json);
        if (a->json)
            qat_text_add(text, "}");
    }
    qat_text_add(text, a->json ? "]}\n" : "\n");
}

/** The best first. */
static void tell_scores(qat_text *text, const qat_answer *a)
{
    const qi_tensor *t = scores_of(a->model);
    const void *codes = a->outputs[0];
    int class = -1;
    qat_text_add(text, a->json ? ", \"top\": [" : ":");
    for (int64_t k = 0; k < a->top && (class = next_best(t, codes, class)) >= 0; k++) {
        double const real = real_at(t, codes, (size_t) class);
        int const code = code_at(t, codes, (size_t) class);
        const char *comma = !k ? "" : a->json ? ", " : ",";
        qat_text_add(text, a->json ? "%s{\"class\": %d, \"label\": " : "%s %d ", comma, class);
        qat_text_add_label(text, a->model, class, a->json);
        if (a->json)
            qat_text_add(text, ", \"value\": %.6g, \"code\": %d}", real, code);
        else
            qat_text_add(text, " (%.4g, code %d)", real, code);
    }
    qat_text_add(text, a->json ? "]}\n" : "\n");
}

static qat_status answer(qat_text *text, const qat_answer *a, qat_error *err)
{
    (qat_is_list(scores_of(a->model)) ? tell_scores : tell_indices)(text, a);
    return QAT_OK;
}

const qat_task qat_task_classes = {
    .name = "classes",
    .network = "classifier",
    .units = "classes",
    .target = QAT_LABEL_NAME,
    .distills = true,
    .implied = true,
    .main = QAT_TOP1,
    .also = QAT_TOP5,
    .n_figures = 3,
    .figures = figures,
    .ends = add_ends,
    .count = count_batch,
    .begin = begin,
    .add = add,
    .judge = judge,
    .end = free,
    .scored = QAT_SCORES_ONE_OF,
    .n_scores = n_scores,
    .scores = scores,
    .tell = tell,
    .tell_json = tell_json,
    .remark = remark,
    .answers = answers,
    .of_model = of_model,
    .answer = answer,
};
