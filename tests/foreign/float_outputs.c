/*
 * Writes the outputs of a checkpoint's float network, to compare them with another framework.
 *
 *     float_outputs CHECKPOINT X.npy Y.npy     x: float32 [N, H, W, C], normalised; y: [N, outputs]
 *
 * Of a network with states, a sample is a sequence, and the answer that of its last step.
 */
#include "base/files/npy.h"
#include "checkpoint/restore.h"
#include "qat/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const qat_error *err)
{
    fprintf(stderr, "float_outputs: %s\n", err->message);
    return 1;
}

/** One sample at a time: the outputs of all, one after another. */
static qat_status answer(qat_graph *graph, const qat_npy *x, float *y, size_t outputs,
                         qat_error *err)
{
    qat_node *input = qat_graph_find(graph, QAT_INPUT_NAME);
    const qat_node *out = qat_graph_output_at(graph, 0);
    size_t const n = (size_t)x->dims[0], each = x->count / n;
    qat_run const run = {.mode = QAT_MODE_EVAL};
    if (qat_shape_count(&input->shape) != each)
        return qat_fail(err, QAT_ERR_SHAPE, "samples of %zu values for a network of %zu", each,
                        qat_shape_count(&input->shape));
    for (size_t i = 0; i < n; i++) {
        memcpy(input->value, (const float *)x->data + i * each, each * sizeof(float));
        qat_graph_forward(graph, &run);
        memcpy(y + i * outputs, out->value, outputs * sizeof *y);
    }
    return QAT_OK;
}

static qat_status run(qat_graph *graph, const qat_checkpoint *c, const qat_npy *x, const char *path,
                      qat_error *err)
{
    qat_status st = qat_graph_plan(graph, 1, QAT_PLAN_EVAL, err);
    if (st)
        return st;
    qat_graph_init_params(graph, 0);
    st = qat_checkpoint_params(c, graph, err);
    if (st)
        return st;
    size_t const outputs = qat_shape_count(&qat_graph_output_at(graph, 0)->shape);
    int64_t const dims[] = {x->dims[0], (int64_t)outputs};
    float *y = calloc((size_t)(dims[0] * dims[1]), sizeof *y);
    if (!y)
        return qat_out_of_memory(err, NULL);
    st = answer(graph, x, y, outputs, err);
    if (!st)
        st = qat_npy_write(path, QAT_NPY_F32, 2, dims, y, err);
    free(y);
    return st;
}

int main(int argc, char **argv)
{
    qat_restored *r = NULL;
    qat_npy x = {0};
    qat_error err = {0};
    if (argc != 4) {
        fprintf(stderr, "usage: float_outputs CHECKPOINT X.npy Y.npy\n");
        return 2;
    }
    qat_status st = qat_restore(&r, argv[1], NULL, 0, &err);
    if (!st)
        st = qat_npy_read(&x, argv[2], &err);
    if (!st && x.type != QAT_NPY_F32)
        st = qat_fail(&err, QAT_ERR_FORMAT, "%s is not float32", argv[2]);
    if (!st)
        st = run(r->float_graph, r->checkpoint, &x, argv[3], &err);
    qat_npy_free(&x);
    qat_restored_free(r);
    return st ? failed(&err) : 0;
}
