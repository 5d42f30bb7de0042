/** qat_tflite_write: writes a model as a .tflite file, op by op. */
#include "export/scales.h"
#include "export/tflite/out.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

enum { TENSORS_PER_OP = 16, OPERATORS_PER_OP = 6 };

static qat_status begin(tfo *o)
{
    const qat_qgraph *g = o->graph;
    int const fed = tfo_fed_states(g, NULL);
    int const borders = g->n_inputs + g->n_outputs + fed;
    qat_status const st = tfo_file_init(
        &o->file, g->n_tensors + TENSORS_PER_OP * (g->n_ops + borders),
        OPERATORS_PER_OP * (g->n_ops + borders), g->n_inputs + fed, g->n_outputs + fed, o->err);
    if (st)
        return st;
    o->index = qat_arena_array(&o->file.arena, (size_t)g->n_tensors, sizeof *o->index);
    o->written = qat_arena_array(&o->file.arena, (size_t)g->n_ops, sizeof *o->written);
    if (!o->index || !o->written)
        return qat_out_of_memory(o->err, NULL);
    for (int i = 0; i < g->n_tensors; i++)
        o->index[i] = -1;
    for (int i = 0; i < g->n_ops; i++)
        o->written[i] = -1;
    tfo_find_pixels_table(o);
    return QAT_OK;
}

/* ------------------------------------------------------------------ inputs and outputs */

/** A float32 tensor for a tensor of codes that leaves or enters as real numbers. */
static int add_real(tfo *o, const qat_qtensor *t)
{
    char name[QAT_NAME_MAX];
    tfo_tensor d = tfo_describe(t);
    d.type = TFL_FLOAT32;
    d.n_scales = 0;
    qat_part_name(name, t->name, "real");
    return tfo_add_tensor(&o->file, name, &d);
}

/**
 * Pixels that are codes: the input has the parameters of the codes. Of uint8 codes it is the same
 * tensor.
 */
static int add_pixels(tfo *o, const qat_qtensor *pixels)
{
    int const tensor = o->graph->ops[o->pixels_table].outputs[0];
    const qat_qtensor *codes = &o->graph->tensors[tensor];
    tfo_tensor d = tfo_describe(pixels);
    d.scale = codes->scale;
    d.zero_point = codes->zero_point + (codes->type == QI_S8 ? 128 : 0);
    int const index = tfo_add_tensor(&o->file, pixels->name, &d);
    if (codes->type == QI_U8)
        o->index[tensor] = index;
    return index;
}

/** Is CAST what makes these codes of real numbers, or real numbers of them? */
static bool is_cast(const qat_qgraph *g, int tensor)
{
    const qat_qtensor *t = &g->tensors[tensor];
    if (t->border == QI_BORDER_TRUNCATED)
        return true;
    for (int i = 0; i < g->n_ops && t->border == QI_BORDER_FLOAT32; i++)
        if (g->ops[i].outputs[0] == tensor)
            return !strcmp(g->ops[i].op, "cast") && t->scale == 1.0f && t->zero_point == 0;
    return false;
}

/** Are these codes real numbers outside? Those of states are not. */
static bool is_real(const tfo *o, const qat_qtensor *t, bool is_state)
{
    return t->border == QI_BORDER_FLOAT32 ||
           (o->float_io && !is_state && qi_type_has_codes(t->type) && !tfo_is_truth(t));
}

/** Bytes that are no codes become codes, as in the engine. */
static void write_input(tfo *o, int i, int tensor)
{
    bool const instead = i == 0 && o->pixels_table >= 0 && o->float_io; /* of the table's input */
    int const pixels = tensor;
    tensor = instead ? o->graph->ops[o->pixels_table].outputs[0] : tensor;
    const qat_qtensor *t = &o->graph->tensors[tensor];
    if (is_cast(o->graph, tensor)) {
        o->file.inputs[i] = o->index[tensor] = add_real(o, t);
        return;
    }
    if (i == 0 && o->pixels_table >= 0 && !instead)
        o->index[tensor] = add_pixels(o, t);
    int const codes = o->index[pixels] = tfo_tensor_index(o, tensor);
    int from = codes;
    if (t->bits < tfo_with_all_bits(t).bits) {
        int32_t lo, hi;
        qat_tensor_codes(t, &lo, &hi);
        from = tfo_between(o, t, "any");
        tfo_limit(o, t, from, codes, lo, hi);
    }
    o->file.inputs[i] = from;
    if (!is_real(o, t, i >= o->graph->n_inputs))
        return;
    o->file.inputs[i] = add_real(o, t);
    tfo_append(o, TFL_QUANTIZE, 1, &o->file.inputs[i], from);
}

static void write_output(tfo *o, int i, int tensor)
{
    const qat_qtensor *t = &o->graph->tensors[tensor];
    int const codes = tfo_tensor_index(o, tensor);
    o->file.outputs[i] = codes;
    if (!is_real(o, t, i >= o->graph->n_outputs) || o->file.tensors[codes].type == TFL_FLOAT32)
        return;
    o->file.outputs[i] = add_real(o, t);
    tfo_append(o, TFL_DEQUANTIZE, 1, &codes, o->file.outputs[i]);
}

/* ------------------------------------------------------------------ the whole */

static qat_status blame(const tfo *o, qat_status st)
{
    char why[QAT_ERROR_MESSAGE_MAX];
    snprintf(why, sizeof why, "%s", o->err->message);
    return qat_fail(o->err, st, "layer %s (%s): %.300s", o->op->name, o->op->op, why);
}

static qat_status walk(tfo *o)
{
    const qat_qgraph *g = o->graph;
    int *states = qat_arena_array(&o->file.arena, (size_t)g->n_tensors, sizeof *states);
    if (!states)
        return qat_out_of_memory(o->err, NULL);
    int const fed = tfo_fed_states(g, states);
    for (int i = 0; i < g->n_inputs; i++)
        write_input(o, i, g->inputs[i]);
    for (int i = 0; i < fed; i++)
        write_input(o, g->n_inputs + i, states[i]);
    for (int i = 0; i < g->n_outputs; i++)
        if (is_cast(g, g->outputs[i]))
            o->index[g->outputs[i]] = add_real(o, &g->tensors[g->outputs[i]]);
    for (int i = 0; i < g->n_ops; i++) {
        o->op = &g->ops[i];
        qat_status const st = tfo_write_op(o);
        if (st)
            return blame(o, st);
    }
    for (int i = 0; i < g->n_outputs; i++)
        write_output(o, i, g->outputs[i]);
    for (int i = 0; i < fed; i++)
        write_output(o, g->n_outputs + i, g->tensors[states[i]].next);
    return o->file.failed ? qat_out_of_memory(o->err, NULL) : QAT_OK;
}

/** QUANTIZE does not round halves to even: inputs of which the .qm wants that. */
static void tell_even(const tfo *o, const qat_log *log)
{
    char text[QAT_NAME_MAX + 256];
    for (int i = 0; i < o->graph->n_inputs && log && log->line; i++) {
        const qat_qtensor *t = &o->graph->tensors[o->graph->inputs[i]];
        if (t->border != QI_BORDER_EVEN)
            continue;
        qat_format(text, sizeof text,
                   o->float_io ? "input %s: TensorFlow Lite rounds half away from zero, and the "
                                 ".qm half to even: real numbers halfway between two codes may get "
                                 "another code"
                               : "input %s takes codes, not real numbers as of the .qm: TensorFlow "
                                 "Lite does not round half to even. --float-io makes it real "
                                 "numbers, with its rounding",
                   t->name);
        log->line(log->context, text);
    }
}

static qat_status write_checked(tfo *o, const qi_host *host, const qat_log *log, qat_writer *w)
{
    qat_status st = qat_export_needs_scales(o->model, o->err);
    if (!st)
        st = qat_qm_read(&o->graph, o->model, o->err);
    if (!st)
        st = begin(o);
    if (!st)
        st = walk(o);
    if (!st)
        st = tfo_add_metadata(o, o->err);
    if (!st)
        st = tfo_file_write(&o->file, w, TFO_MAX_BYTES, o->err);
    if (!st)
        tfo_append_labels(o, w);
    if (!st && w->failed)
        st = qat_out_of_memory(o->err, NULL);
    if (!st)
        st = tfo_check(o, host, w, log, o->err);
    if (!st)
        tell_even(o, log);
    return st;
}

qat_status qat_tflite_write(const qi_host *model, const qat_write_options *options, uint8_t **bytes,
                            size_t *count, qat_error *err)
{
    qat_error inner = {0};
    qat_writer w = {0};
    tfo o = {.pixels_table = -1,
             .model = qi_host_model(model),
             .float_io = options && options->float_io,
             .err = &inner};
    *bytes = NULL;
    *count = 0;
    if (options && options->struct_size > sizeof *options)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "qat_write_options: of a later version of the library");
    qat_status const st = write_checked(&o, model, options ? options->log : NULL, &w);
    tfo_file_free(&o.file);
    qat_qgraph_free(o.graph);
    if (st) {
        qat_writer_free(&w);
        return qat_fail(err, st, "cannot be written as .tflite: %s", inner.message);
    }
    *bytes = w.bytes;
    *count = w.count;
    return QAT_OK;
}
