/** qat_tflite_import: makes an integer graph from a .tflite file, operator by operator. */
#include "convert/tflite/import.h"
#include "qat/border.h"
#include "qat/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Constants of a model may share bytes of the file, but only up to this limit. */
enum { CONSTANT_COPIES = 16, CONSTANT_SLACK = 1 << 20 };

static const tfl_handler *const families[] = {
    tfl_conv_handlers,      tfl_binary_handlers, tfl_pool_handlers,  tfl_elementwise_handlers,
    tfl_shape_handlers,     tfl_move_handlers,   tfl_slice_handlers, tfl_border_handlers,
    tfl_detection_handlers, tfl_state_handlers,  tfl_lstm_handlers,  tfl_known_handlers,
};

static const tfl_handler *find_handler(int code)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const tfl_handler *h = families[i]; h->run; h++)
            if (h->code == code)
                return h;
    return NULL;
}

/** Put "op 12 (GATHER_ND, writes tensor 200 name): " before the message of a handler. */
static qat_status blame(tfl_importer *im, qat_status st)
{
    char why[QAT_ERROR_MESSAGE_MAX];
    const tfl_op *op = im->op;
    int const output = op->n_outputs ? op->outputs[0] : -1;
    snprintf(why, sizeof why, "%s", im->err->message);
    return qat_fail(im->err, st, "op %d (%s, writes tensor %d, %s): %.300s",
                    (int)(op - im->model->ops), op->name, output,
                    output >= 0 ? im->model->tensors[output].name : "none", why);
}

static qat_status refuse_unknown(tfl_importer *im)
{
    const tfl_op *op = im->op;
    int const type = op->n_outputs ? im->model->tensors[op->outputs[0]].type : TFL_UINT8;
    return tfl_refuse(im, "the operator %s is not supported%s", op->name,
                      type == TFL_FLOAT32 ? " (and needs floating point at run time)" : "");
}

static qat_status run_handler(tfl_importer *im)
{
    const tfl_op *op = im->op;
    const tfl_handler *h = tfl_folding(im);
    h = h ? h : tfl_real(im);
    h = h ? h : find_handler(op->code);
    if (!h)
        return refuse_unknown(im);
    if (op->n_inputs < h->min_inputs || op->n_inputs > h->max_inputs)
        return tfl_refuse(im, "it has %d inputs; %d to %d are possible", op->n_inputs,
                          h->min_inputs, h->max_inputs);
    int const outputs = h->outputs == TFL_NO_OUTPUTS ? 0 : h->outputs;
    if (h->outputs ? op->n_outputs != outputs : op->n_outputs < 1)
        return tfl_refuse(im, "it has %d outputs instead of %d", op->n_outputs, outputs);
    if (op->options_type != TFL_NO_OPTIONS && op->options_type != h->options)
        return tfl_refuse(im,
                          "its options are table %d of the schema's BuiltinOptions instead of %d",
                          op->options_type, h->options);
    return h->run(im);
}

static qat_status walk(tfl_importer *im)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < im->model->n_ops && !st; i++) {
        im->op = &im->model->ops[i];
        st = tfl_is_table(im) ? tfl_table(im) : run_handler(im);
        if (st)
            st = blame(im, st);
    }
    return st;
}

/* ------------------------------------------------------------------ tensors before the walk */

/** The shape of a constant is the one in the file. */
static void know_constant(tfl_importer *im, int index)
{
    const tfl_tensor *t = &im->model->tensors[index];
    tfl_value *v = &im->values[index];
    v->tensor = v->real_of = -1;
    if (!t->data)
        return;
    v->known = true;
    v->shape.rank = t->rank;
    memcpy(v->shape.dims, t->dims, sizeof v->shape.dims);
}

static qat_status check_input(tfl_importer *im, int index)
{
    const tfl_tensor *t = &im->model->tensors[index];
    tfl_shape shape = {.rank = t->rank};
    if (t->data || im->values[index].known)
        return tfl_refuse(im, "model input: tensor %d (%s) already has a value", index, t->name);
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 1)
            return tfl_refuse(im,
                              "model input: tensor %d (%s) has the dimension %d: dynamic "
                              "shapes are not supported",
                              index, t->name, (int)t->dims[i]);
    memcpy(shape.dims, t->dims, sizeof shape.dims);
    if (tfl_count(&shape) < 1)
        return tfl_refuse(im, "model input: tensor %d (%s) is too large", index, t->name);
    return QAT_OK;
}

static qat_status add_input(tfl_importer *im, int i)
{
    int const index = im->model->inputs[i];
    const tfl_tensor *t = &im->model->tensors[index];
    tfl_value *v = &im->values[index];
    qat_qtensor q;
    qat_status st = check_input(im, index);
    if (st)
        return st;
    v->known = true;
    v->shape.rank = t->rank;
    memcpy(v->shape.dims, t->dims, sizeof v->shape.dims);
    im->inputs[i] = -1;
    if (t->type == TFL_FLOAT32)
        return QAT_OK; /* unless a QUANTIZE or a CAST reads it, the operator that does is an error
                        */
    st = tfl_describe_integers(im, index, &q);
    if (!st && t->scales.count > 1)
        st = tfl_refuse(im, "model input: tensor %d (%s) has several scales", index, t->name);
    if (!st)
        st = tfl_append(im, &q, &v->shape, &im->inputs[i]);
    v->tensor = im->inputs[i];
    return st;
}

/** No tensor has codes: a network that was never quantized. */
static bool is_float(const tfl_model *m)
{
    bool floats = false;
    for (int i = 0; i < m->n_tensors; i++) {
        int const type = m->tensors[i].type;
        if (m->tensors[i].scales.count || type == TFL_INT8 || type == TFL_UINT8 ||
            type == TFL_INT16)
            return false;
        floats = floats || type == TFL_FLOAT32;
    }
    return floats && m->n_ops > 0 && m->n_inputs > 0 &&
           m->tensors[m->inputs[0]].type == TFL_FLOAT32;
}

static qat_status begin(tfl_importer *im)
{
    const tfl_model *m = im->model;
    qat_status st = QAT_OK;
    im->values = qat_arena_array(&im->arena, (size_t)m->n_tensors + 1, sizeof *im->values);
    im->inputs = qat_arena_array(&im->arena, (size_t)m->n_inputs + 1, sizeof *im->inputs);
    im->graph = qat_qgraph_new();
    if (is_float(m))
        return tfl_refuse(im, "a model of floats, which has to be quantized: a recipe with "
                              "[model] tflite = FILE trains it or, with train.epochs = 0, "
                              "qat-export --ptq calibrates it (docs/from-other-tools.md)");
    im->constant_room = CONSTANT_COPIES * m->file.count + CONSTANT_SLACK;
    if (!im->values || !im->inputs || !im->graph)
        return qat_out_of_memory(im->err, NULL);
    st = tfl_know_readers(im);
    for (int i = 0; i < m->n_tensors; i++)
        know_constant(im, i);
    for (int i = 0; i < m->n_inputs && !st; i++)
        st = add_input(im, i);
    return st;
}

/* ------------------------------------------------------------------ outputs, the whole */

/** Check that a QUANTIZE or a CAST read every float32 input. */
static qat_status check_inputs(tfl_importer *im)
{
    for (int i = 0; i < im->model->n_inputs; i++)
        if (im->inputs[i] < 0)
            return tfl_refuse(im, "model input %d: tensor %d (%s) is %s and is never quantized", i,
                              im->model->inputs[i], im->model->tensors[im->model->inputs[i]].name,
                              tfl_type_name(im->model->tensors[im->model->inputs[i]].type));
    return QAT_OK;
}

static qat_status find_output(tfl_importer *im, int i, int *tensor)
{
    int const index = im->model->outputs[i];
    const tfl_value *v = &im->values[index];
    *tensor = v->tensor;
    if (v->real_of >= 0)
        return tfl_real_output(im, index, tensor);
    if (v->tensor < 0 || im->graph->tensors[v->tensor].data)
        return tfl_refuse(
            im, "model output %d: tensor %d (%s) is a constant, or no operator computes it", i,
            index, im->model->tensors[index].name);
    return QAT_OK;
}

/**
 * The engine's outputs: those of the model; for a detector, first the inputs of its last operator.
 */
static qat_status find_outputs(tfl_importer *im, int *outputs, int *count)
{
    const tfl_detection *d = &im->detection;
    qat_status st = QAT_OK;
    *count = 0;
    if (d->present) {
        outputs[(*count)++] = d->boxes;
        outputs[(*count)++] = d->scores;
    }
    for (int i = 0; i < im->model->n_outputs && !st; i++)
        if (!im->values[im->model->outputs[i]].detection)
            st = find_output(im, i, &outputs[(*count)++]);
    return st;
}

static qat_status finish(tfl_importer *im)
{
    const tfl_model *m = im->model;
    const tfl_detection *d = &im->detection;
    int *outputs = qat_arena_array(&im->arena, (size_t)m->n_outputs + 2, sizeof *outputs);
    int count = 0;
    qat_status st = outputs ? check_inputs(im) : qat_out_of_memory(im->err, NULL);
    if (!st)
        st = find_outputs(im, outputs, &count);
    if (!st)
        st = qat_qgraph_set_io(im->graph, m->n_inputs, im->inputs, count, outputs, im->err);
    if (st || !d->present)
        return st;
    return qat_qgraph_set_epilogue(im->graph, QAT_DETECTOR_EPILOGUE, 3,
                                   (const int[]){d->boxes, d->scores, d->anchors},
                                   TFL_DETECTION_PARAMS, d->params, im->err);
}

qat_status qat_tflite_import(qat_qgraph **graph, const void *bytes, size_t count, qat_error *err)
{
    qat_error ignored;
    tfl_model model = {0};
    tfl_importer im = {.model = &model, .err = err ? err : &ignored};
    *graph = NULL;
    qat_status st = tfl_model_parse(&model, bytes, count, im.err);
    if (!st)
        st = begin(&im);
    if (!st)
        st = walk(&im);
    if (!st)
        st = tfl_end_variables(&im);
    if (!st)
        st = finish(&im);
    if (!st) {
        *graph = im.graph;
        im.graph = NULL;
    }
    qat_qgraph_free(im.graph);
    qat_arena_free(&im.arena);
    tfl_model_free(&im.once);
    tfl_model_free(&model);
    return st;
}
