/** What flows through a network: histograms of its activations on the first samples of data. */
#ifndef QAT_BOARD_PROBE_H
#define QAT_BOARD_PROBE_H

#include "base/bytes.h"
#include "qat/train.h"

enum { QAT_PROBE_SAMPLES = 16 };

typedef struct qat_probe qat_probe;

/** Plan a graph (taken, also after an error) for one sample at a time. NULL is fine to free. */
qat_status qat_probe_open(qat_probe **probe, qat_graph *graph, qat_error *err);
void qat_probe_free(qat_probe *probe);
/** Its graph, which needs the parameters of the moment. */
qat_graph *qat_probe_graph(const qat_probe *probe);
/** Append a histogram "activations/NODE" of each value that depends on the sample. */
qat_status qat_probe_write(qat_probe *probe, const qat_input_info *input, const qat_dataset *data,
                           int64_t step, qat_writer *to, qat_error *err);

#endif
