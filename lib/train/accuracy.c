/**
 * Top-1 and top-5, or the figures that replace them: average precision, share of values that are
 * right.
 */
#include "qat/train.h"

double qat_top1(const qat_accuracy *accuracy)
{
    if (accuracy->detects)
        return 100.0 * accuracy->ap50;
    if (accuracy->attributes)
        return 100.0 * accuracy->category_ap;
    return accuracy->n ? 100.0 * (double)accuracy->top1 / (double)accuracy->n : 0;
}

const char *qat_top1_name(const qat_accuracy *accuracy)
{
    return accuracy->detects ? "AP50" : accuracy->attributes ? "category AP" : "top-1";
}

double qat_top5(const qat_accuracy *accuracy)
{
    if (accuracy->detects)
        return 100.0 * accuracy->ap;
    if (accuracy->attributes)
        return 100.0 * accuracy->within;
    return accuracy->n ? 100.0 * (double)accuracy->top5 / (double)accuracy->n : 0;
}

double qat_accuracy_score(const qat_accuracy *accuracy)
{
    bool const both = accuracy->attributes && accuracy->within >= 0;
    return both ? (qat_top1(accuracy) + qat_top5(accuracy)) / 2 : qat_top1(accuracy);
}

static void count_rank(qat_accuracy *accuracy, int rank, int answer)
{
    accuracy->only = accuracy->n == 0 || accuracy->only == answer ? answer : -1;
    accuracy->n++;
    accuracy->top1 += rank < 1;
    accuracy->top5 += rank < 5;
}

void qat_accuracy_add(qat_accuracy *accuracy, const float *scores, int count, int classes,
                      const int32_t *labels)
{
    for (int i = 0; i < count; i++, scores += classes) {
        float const own = scores[labels[i]];
        int rank = own == own ? 0 : classes, answer = 0;
        for (int c = 0; c < classes; c++) {
            rank += scores[c] > own || (scores[c] == own && c < labels[i]);
            answer = scores[c] > scores[answer] ? c : answer;
        }
        count_rank(accuracy, rank, answer);
    }
}

void qat_accuracy_add_codes(qat_accuracy *accuracy, const void *codes, qi_type type, int count,
                            int classes, const int32_t *labels)
{
    const uint8_t *scores = codes;
    uint8_t const sign = type == QI_S8 ? 0x80 : 0; /* signed codes then compare as unsigned ones */
    for (int i = 0; i < count; i++, scores += classes) {
        int const own = scores[labels[i]] ^ sign;
        int rank = 0, answer = 0;
        for (int c = 0; c < classes; c++) {
            int const other = scores[c] ^ sign;
            rank += other > own || (other == own && c < labels[i]);
            answer = other > (scores[answer] ^ sign) ? c : answer;
        }
        count_rank(accuracy, rank, answer);
    }
}
