#include "integers.h"
#include "qat/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct frozen {
    qat_graph *training, *eval;
    qat_qgraph *integers;
    qat_verifier *verifier;
    uint8_t *qm, *codes;
    size_t count;
};

static void release(struct frozen *f)
{
    qat_verifier_free(f->verifier);
    qat_qgraph_free(f->integers);
    qat_graph_free(f->eval);
    qat_graph_free(f->training);
    free(f->qm);
    free(f->codes);
}

static qat_status observe(struct frozen *f, const qat_graph *graph, const qat_node *input,
                          int batch, const qat_quant_options *options, qat_error *err)
{
    qat_run const run = {.mode = QAT_MODE_TRAIN, .seed = 1};
    qat_status st = qat_create_training_graph(&f->training, graph, options, err);
    if (!st)
        st = qat_graph_plan(f->training, batch, QAT_PLAN_TRAIN, err);
    if (st)
        return st;
    qat_graph_init_params(f->training, 1);
    qat_graph_copy_params(f->training, graph);
    qat_node *x = qat_graph_find(f->training, "input");
    memcpy(x->value, input->value, qat_shape_count(&input->shape) * sizeof *x->value);
    qat_graph_forward(f->training, &run);
    qat_graph_update(f->training, &run);
    return QAT_OK;
}

static qat_status freeze(struct frozen *f, const qat_graph *graph, int batch,
                         const qat_quant_options *options, qat_error *err)
{
    qat_qm_metadata const metadata = {0};
    qat_status st = qat_create_eval_graph(&f->eval, graph, options, err);
    if (!st)
        st = qat_graph_plan(f->eval, batch, QAT_PLAN_KEEP, err);
    if (st)
        return st;
    qat_graph_init_params(f->eval, 0);
    qat_graph_copy_params(f->eval, f->training);
    st = qat_freeze(&f->integers, f->eval, QAT_PROFILE_PAPER, NULL, err);
    return st ? st : qat_qm_write(f->integers, &metadata, &f->qm, &f->count, err);
}

static qat_status compare(struct frozen *f, const qat_registry *registry, const qat_node *input,
                          int batch, qat_error *err)
{
    const qat_qtensor *t = &f->integers->tensors[f->integers->inputs[0]];
    size_t const n = qat_shape_count(&input->shape);
    int32_t lo, hi;
    qat_code_range(t->type == QI_U8 ? QAT_LAYOUT_UINT8 : QAT_LAYOUT_INT8, 8, false, &lo, &hi);
    f->codes = malloc(n);
    if (!f->codes)
        return qat_out_of_memory(err, NULL);
    for (size_t i = 0; i < n; i++) {
        double const q = round((double)(input->value[i] / t->scale)) + t->zero_point;
        f->codes[i] = (uint8_t)(int)fmin(fmax(q, lo), hi);
    }
    qat_status const st = qat_verifier_create(&f->verifier, f->integers, NULL, f->qm, f->count,
                                              NULL, registry, batch, err);
    return st ? st
              : qat_verifier_batch(f->verifier, (const void *const[]){f->codes}, NULL, batch, err);
}

qat_status integers_compare(const qat_registry *registry, const qat_graph *graph, int batch,
                            int64_t *bytes, int64_t *differing, qat_error *err)
{
    static const qat_layout layouts[] = {QAT_LAYOUT_UINT8, QAT_LAYOUT_INT8};
    const qat_node *input = qat_graph_find(graph, "input");
    qat_quant_options options = qat_quant_defaults();
    qat_status st = QAT_OK;
    options.input_min = options.input_max = 0;
    for (size_t i = 0; i < qat_shape_count(&input->shape); i++) {
        options.input_min = fminf(options.input_min, input->value[i]);
        options.input_max = fmaxf(options.input_max, input->value[i]);
    }
    *bytes = *differing = 0;
    for (int i = 0; i < 2 && !st; i++) {
        struct frozen f = {0};
        options.layout = layouts[i];
        st = observe(&f, graph, input, batch, &options, err);
        if (!st)
            st = freeze(&f, graph, batch, &options, err);
        if (!st)
            st = compare(&f, registry, input, batch, err);
        if (!st) {
            *bytes += qat_verifier_result(f.verifier)->bytes;
            *differing += qat_verifier_result(f.verifier)->differing;
        }
        release(&f);
    }
    return st;
}
