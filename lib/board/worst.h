/** The worst answers of an evaluation: it looks on, and writes their pictures and a table. */
#ifndef QAT_BOARD_WORST_H
#define QAT_BOARD_WORST_H

#include "base/bytes.h"
#include "qat/train.h"

enum { QAT_WORST = 8 };

/** An answer. It is worse the larger `by` is. */
typedef struct qat_bad_answer {
    double by; /* classes: the best other score less the true one's; else the sum of distances */
    int64_t sample;
    int is, said; /* classes; -1: the answer is none */
} qat_bad_answer;

typedef struct qat_worst {
    qat_witness witness; /* for the input of the evaluation */
    const qat_input_info *input;
    float *scores, *truth;
    int64_t seen;
    int n;
    qat_bad_answer at[QAT_WORST]; /* the worst one first */
} qat_worst;

/** Can the answers of a task be ordered in this way? */
bool qat_worst_possible(const qat_input_info *input);
/** For such a task. The input (borrowed) is the network's. */
qat_status qat_worst_open(qat_worst *worst, const qat_input_info *input, qat_error *err);
void qat_worst_close(qat_worst *worst);
/** Forget the answers: an evaluation begins. */
void qat_worst_begin(qat_worst *worst);
/** Append "worst/1" ... and "worst/table". data are those of the evaluation. */
qat_status qat_worst_write(const qat_worst *worst, const qat_dataset *data, int64_t step,
                           qat_writer *to, qat_error *err);

#endif
