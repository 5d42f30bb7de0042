/** Collects and judges a network's answers for attributes and values in a data set. */
#include "task/attributes.h"

#include "qat/border.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct qat_answers {
    qat_attributes attributes;
    float within;
    int n, capacity;
    float *rows; /* each row: scores [count], the value, targets [count + 1] */
};

static size_t row_values(const qat_answers *a)
{
    return 2 * ((size_t)a->attributes.count + 1);
}

qat_status qat_answers_begin(void **answers, const qat_input_info *input, qat_error *err)
{
    qat_answers *a = calloc(1, sizeof *a);
    *answers = a;
    if (!a)
        return qat_out_of_memory(err, "evaluation");
    a->attributes = input->attributes;
    a->within = input->within;
    return QAT_OK;
}

void qat_answers_end(void *answers)
{
    if (answers)
        free(((qat_answers *)answers)->rows);
    free(answers);
}

static bool grow(qat_answers *a)
{
    int const capacity = a->capacity ? 2 * a->capacity : 256;
    float *rows = realloc(a->rows, (size_t)capacity * row_values(a) * sizeof *rows);
    if (!rows)
        return false;
    a->rows = rows;
    a->capacity = capacity;
    return true;
}

qat_status qat_answers_add(qat_answers *a, const float *scores, float sum, const float *targets,
                           qat_error *err)
{
    size_t const count = (size_t)a->attributes.count;
    if (a->n == a->capacity && !grow(a))
        return qat_out_of_memory(err, "evaluation");
    float *row = a->rows + (size_t)a->n++ * row_values(a);
    memcpy(row, scores, count * sizeof *row);
    row[count] = qat_attributes_value(&a->attributes, sum);
    memcpy(row + count + 1, targets, (count + 1) * sizeof *row);
    return QAT_OK;
}

float qat_output_sum(const qat_output *o, size_t i)
{
    double sum = 0;
    if (o->codes)
        return qat_sum_of_codes(o->type, o->scale, o->zero_point, qat_output_codes(o, i), o->n);
    for (size_t k = 0; k < o->n; k++)
        sum += (double)o->real[i * o->n + k];
    return (float)sum;
}

qat_status qat_answers_add_outputs(void *to, const qat_outputs *outputs, const qat_batch *batch,
                                   int count, qat_error *err)
{
    qat_answers *answers = to;
    size_t const n = outputs->at[0].n;
    if (n != (size_t)answers->attributes.count)
        return qat_fail(err, QAT_ERR_SHAPE, "evaluation: %zu scores, but %d attributes", n,
                        answers->attributes.count);
    if (!batch->targets || (size_t)batch->n_targets != n + 1)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "evaluation: %d targets of a sample, but %zu attributes and a value",
                        batch->n_targets, n);
    float *scores = malloc(n * sizeof *scores);
    qat_status st = scores ? QAT_OK : qat_out_of_memory(err, "evaluation");
    for (size_t i = 0; !st && i < (size_t)count; i++) {
        qat_output_real(&outputs->at[0], i, scores);
        st = qat_answers_add(answers, scores,
                             outputs->n > 1 ? qat_output_sum(&outputs->at[1], i) : 0,
                             batch->targets + i * (n + 1), err);
    }
    free(scores);
    return st;
}

static qat_status mean_precision(const qat_answers *a, double *mean, qat_error *err)
{
    int const count = a->attributes.count, stride = (int)row_values(a);
    double sum = 0;
    int judged = 0;
    qat_status st = QAT_OK;
    for (int k = 0; !st && k < count; k++) {
        double ap = -1;
        st = qat_category_precision(a->rows + k, a->rows + count + 1 + k, a->n, stride, stride, &ap,
                                    err);
        sum += ap < 0 ? 0 : ap;
        judged += ap >= 0;
    }
    *mean = judged ? sum / judged : -1;
    return st;
}

static void judge_values(const qat_answers *a, qat_accuracy *accuracy)
{
    size_t const at = (size_t)a->attributes.count;
    double error = 0;
    int known = 0, near = 0;
    for (int i = 0; i < a->n && a->attributes.outputs; i++) {
        const float *row = a->rows + (size_t)i * row_values(a);
        double const off = fabs((double)row[at] - (double)row[2 * at + 1]);
        if (isnan(row[2 * at + 1]))
            continue;
        known++;
        near += off <= (double)a->within;
        error += off;
    }
    accuracy->figures[QAT_WITHIN] = known ? (double)near / known : -1;
    accuracy->figures[QAT_MEAN_ERROR] = known ? error / known : -1;
}

qat_status qat_answers_judge(const void *of, qat_accuracy *accuracy, qat_error *err)
{
    const qat_answers *a = of;
    for (size_t i = 0; i < (size_t)a->n * row_values(a); i++)
        if (i % row_values(a) <= (size_t)a->attributes.count && !isfinite(a->rows[i]))
            return qat_fail(err, QAT_ERR_NUMERIC, "evaluation: an answer for sample %zu is %s",
                            i / row_values(a), isnan(a->rows[i]) ? "NaN" : "infinite");
    *accuracy = (qat_accuracy){.n = a->n, .task = &qat_task_attributes};
    judge_values(a, accuracy);
    return mean_precision(a, &accuracy->figures[QAT_CATEGORY_AP], err);
}
