/**
 * Writes a .qm as ONNX, in one of three forms:
 *
 *     QDQ         DequantizeLinear, an operator of real numbers, QuantizeLinear. Programs that know
 *                 this form run the three as one operator of integers
 *     QOperator   QLinearConv and so on, of ONNX and of com.microsoft
 *     integer     ConvInteger, MatMulInteger, and the .qm's roundings in operators of int64
 *
 * Codes, scales, zero points and biases are the .qm's. What differs in the first two forms is how
 * an accumulator becomes a code: ONNX multiplies by a float32 and rounds half to even. A .qm of
 * profile onnx does the same.
 */
#include "export/onnx/write.h"

#include "base/bytes.h"
#include "base/shown.h"
#include "export/pixels.h"
#include "export/scales.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void warn(const onnx_writer *w, const char *text)
{
    const qat_log *log = w->options->log;
    if (log && log->line)
        log->line(log->context, text);
}

/* ------------------------------------------------------------------ tensors */

static onnx_type type_of(const qi_tensor *t)
{
    static const onnx_type types[QI_TYPES] = {ONNX_U8, ONNX_S8, ONNX_S32, ONNX_S64, ONNX_S16};
    return types[t->type];
}

/** Does the .qm round as ONNX Runtime's kernels? */
static bool rounds_even(const qi_model *from)
{
    for (int32_t i = 0; i < qi_node_count(from); i++)
        if (qi_node_at(from, i)->rounding == QI_ROUND_EVEN)
            return true;
    return false;
}

/** How many layers round, but not as ONNX Runtime's kernels? */
static int rounding_otherwise(const qi_model *from)
{
    int n = 0;
    for (int32_t i = 0; i < qi_node_count(from); i++) {
        int32_t const rounding = qi_node_at(from, i)->rounding;
        n += rounding != QI_ROUND_NONE && rounding != QI_ROUND_EVEN;
    }
    return n;
}

/** Is a tensor the weights of a layer? */
static bool is_weights(const qi_model *from, int32_t tensor)
{
    for (int32_t i = 0; i < qi_node_count(from); i++) {
        const qi_node *node = qi_node_at(from, i);
        for (const onnx_op *op = onnx_layers; op->name && node->n_inputs > 1; op++)
            if (node->inputs[1] == tensor && strcmp(node->kernel->name, op->name) == 0)
                return true;
    }
    return false;
}

/**
 * The kernels of ONNX Runtime for products of integers take uint8, with any zero point. It also
 * makes operators of integers of the form QDQ only where codes are uint8.
 */
static bool is_carried(const onnx_writer *w, int32_t tensor)
{
    bool const is_code = qi_tensor_at(w->from, tensor)->type == QI_S8;
    bool const fuses = w->even && !w->operators;
    return is_code && (w->integer || (fuses && !is_weights(w->from, tensor)));
}

static void carry_as_u8(onnx_writer *w, onnx_tensor *t)
{
    uint8_t *codes = t->of->data ? onnx_take(&w->m, t->of->bytes, 1) : NULL;
    for (size_t i = 0; codes && i < t->of->bytes; i++)
        codes[i] = (uint8_t)(((const uint8_t *)t->of->data)[i] ^ 0x80);
    t->carry = 128;
    t->value.type = ONNX_U8;
    t->value.data = codes;
}

static qat_status describe_tensors(onnx_writer *w)
{
    int32_t const n = qi_tensor_count(w->from);
    w->tensors = onnx_take(&w->m, (size_t)n, sizeof *w->tensors);
    for (int32_t i = 0; w->tensors && i < n; i++) {
        const qi_tensor *of = qi_tensor_at(w->from, i);
        onnx_tensor *t = &w->tensors[i];
        t->of = of;
        t->scale = float_of(of->scale_bits);
        t->value =
            (onnx_value){.name = of->name, .type = type_of(of), .rank = of->rank, .data = of->data};
        for (int d = 0; d < of->rank; d++)
            t->value.dims[d] = of->dims[d];
        if (is_carried(w, i))
            carry_as_u8(w, t);
    }
    return w->tensors ? QAT_OK : qat_out_of_memory(w->err, "writing ONNX");
}

/** May one run of the file have several samples? No op may mix what their first dimension counts.
 */
static bool may_be_batched(const qi_model *from)
{
    for (int32_t i = 0; i < qi_tensor_count(from); i++) {
        const qi_tensor *t = qi_tensor_at(from, i);
        if (t->kind != QI_CONSTANT && (t->rank < 2 || t->dims[0] != 1))
            return false;
    }
    for (int32_t i = 0; i < qi_node_count(from); i++) {
        const qi_node *n = qi_node_at(from, i);
        const qi_op *row = qi_op_named(n->kernel->name);
        for (int p = 0; row && p < n->n_params && row->params[p].name; p++) {
            const char *name = row->params[p].name;
            if ((strcmp(name, "axis") == 0 && n->params[p] == 0) ||
                (strcmp(name, "axis_mask") == 0 && n->params[p] & 1) ||
                (strcmp(name, "perm_0") == 0 && n->params[p] != 0))
                return false;
        }
        const qi_tensor *y = qi_tensor_at(from, n->outputs[0]);
        for (int32_t k = 0; k < n->n_inputs; k++) { /* ones that are repeated, or stand alone */
            const qi_tensor *x = qi_tensor_at(from, n->inputs[k]);
            const qi_tensor *first = qi_tensor_at(from, n->inputs[0]);
            bool const is_same_kind = (x->kind == QI_CONSTANT) == (first->kind == QI_CONSTANT);
            if (row && !row->inputs[1] && !is_same_kind)
                return false;
            if (row && row->inputs[1] && strcmp(row->inputs[1], "b") == 0 &&
                x->kind != QI_CONSTANT && x->rank != y->rank)
                return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ input and output */

/** Are these codes real numbers outside? QuantizeLinear rounds halves to even. */
static bool is_real(const onnx_writer *w, const onnx_tensor *t)
{
    bool const outside = t->of->border == QI_BORDER_FLOAT32 || t->of->border == QI_BORDER_EVEN;
    return qi_type_has_codes(t->of->type) && t->scale > 0 && (w->options->float_io || outside);
}

static void count_other_pixels(const onnx_writer *w, int32_t table)
{
    char text[200];
    int pixels, others = qat_pixels_otherwise(w->from, table, rintf, &pixels);
    snprintf(text, sizeof text,
             "real numbers at the input: %d of %d pixels get another code than in the .qm, because "
             "ONNX rounds half to even",
             others, pixels);
    if (others)
        warn(w, text);
}

static const char *real_input(onnx_writer *w, onnx_tensor *t, onnx_form form)
{
    int64_t dims[ONNX_RANK];
    const char *name = onnx_name(&w->m, t->of->name);
    onnx_dims(&t->value, form, dims);
    onnx_end(&w->m, false, name, ONNX_FLOAT, t->value.rank, dims);
    onnx_node *node =
        onnx_add(&w->m, "QuantizeLinear",
                 (const char *const[]){name, onnx_scale(w, t), onnx_zero_point(w, t), NULL});
    return onnx_output(&w->m, node, onnx_name(&w->m, t->of->name));
}

static const char *coded_input(onnx_writer *w, onnx_tensor *t, onnx_form form)
{
    int64_t dims[ONNX_RANK];
    const char *name = onnx_name(&w->m, t->of->name);
    onnx_dims(&t->value, form, dims);
    onnx_end(&w->m, false, name, type_of(t->of), t->value.rank, dims);
    t->coded = name;
    return t->carry ? onnx_recoded(w, name, t->carry, t->value.type) : name;
}

static void write_inputs(onnx_writer *w)
{
    for (int32_t i = 0; i < qi_input_count(w->from); i++) {
        onnx_tensor *t = &w->tensors[qi_input_at(w->from, i)];
        int32_t const table = i == 0 && is_real(w, t) ? qat_pixels_table(w->from) : -1;
        if (table >= 0) {
            t = onnx_out(w, qi_node_at(w->from, table));
            count_other_pixels(w, table);
        }
        onnx_form const form = t->value.rank == 4 ? ONNX_PLANES : ONNX_PLAIN;
        const char *codes = is_real(w, t) ? real_input(w, t, form) : coded_input(w, t, form);
        onnx_set(&t->value, form, onnx_limited(w, t, onnx_all_codes(t->of), codes));
    }
}

static void write_output(onnx_writer *w, onnx_tensor *t, const char *name, bool real)
{
    onnx_form const form = t->value.rank == 4 ? ONNX_PLANES : ONNX_PLAIN;
    const char *codes = onnx_as(&w->m, &t->value, form);
    int64_t dims[ONNX_RANK];
    onnx_dims(&t->value, form, dims);
    if (t->carry && !real)
        codes = onnx_recoded(w, codes, -t->carry, type_of(t->of));
    if (real)
        onnx_dequantized(w, t, codes, name);
    else
        onnx_output(&w->m, onnx_add(&w->m, "Identity", (const char *const[]){codes, NULL}), name);
    onnx_end(&w->m, true, name, real ? ONNX_FLOAT : type_of(t->of), t->value.rank, dims);
}

/** A state is one more input, and what it becomes one more output, as codes. */
static void write_states_in(onnx_writer *w)
{
    for (int32_t i = 0; i < qi_tensor_count(w->from); i++) {
        onnx_tensor *t = &w->tensors[i];
        onnx_form const form = t->value.rank == 4 ? ONNX_PLANES : ONNX_PLAIN;
        if (t->of->kind == QI_STATE)
            onnx_set(&t->value, form, coded_input(w, t, form));
    }
}

static void write_states_out(onnx_writer *w)
{
    qat_writer text = {0};
    for (int32_t i = 0; i < qi_tensor_count(w->from); i++) {
        const qi_tensor *state = qi_tensor_at(w->from, i);
        char wanted[256];
        if (state->kind != QI_STATE)
            continue;
        snprintf(wanted, sizeof wanted, "%.200s/next", state->name);
        const char *name = onnx_name(&w->m, wanted);
        write_output(w, &w->tensors[state->next], name, false);
        onnx_tell_state(&text, w->tensors[i].coded, name, state->zero_point);
    }
    onnx_metadata_text(&w->m, "states", &text);
}

/* ------------------------------------------------------------------ metadata */

static void write_labels(onnx_writer *w)
{
    qat_writer text = {0};
    char shown[1024];
    for (int32_t i = 0; i < qi_label_count(w->from); i++) {
        qat_shown(shown, sizeof shown, qi_label_at(w->from, i), false);
        qat_write_text(&text, "%s%s", i ? "\n" : "", shown);
    }
    onnx_metadata_text(&w->m, "labels", &text);
}

static void write_floats(qat_writer *text, const char *key, int n, const uint32_t *bits)
{
    qat_write_text(text, ", \"%s\": [", key);
    for (int i = 0; i < n; i++)
        qat_write_text(text, "%s%.9g", i ? ", " : "", (double)float_of(bits[i]));
    qat_write_text(text, "]");
}

static void write_preprocessing(onnx_writer *w)
{
    static const char *const orders[] = {"grey", "RGB", "BGR"};
    static const char *const kinds[] = {"", "pixels", "numbers", "sound"};
    const qi_preprocessing *p = qi_model_preprocessing(w->from);
    int const n = p->channels < 4 ? p->channels : 4;
    qat_writer text = {0};
    if (!p->kind)
        return;
    qat_write_text(&text, "{\"kind\": \"%s\"", kinds[p->kind % 4]);
    if (p->kind == 1)
        qat_write_text(&text,
                       ", \"height\": %d, \"width\": %d, \"channels\": \"%s\", \"resize_short\": "
                       "%d, \"central_crop\": %.9g",
                       p->height, p->width, orders[p->channel_order % 3], p->resize_short,
                       p->central_crop / 1e6);
    if (p->kind == 3)
        qat_write_text(&text, ", \"frames\": %d, \"bands\": %d", p->height, p->width);
    write_floats(&text, "mean", n, p->mean_bits);
    write_floats(&text, "std", n, p->std_bits);
    qat_write_text(&text, "}");
    onnx_metadata_text(&w->m, "preprocessing", &text);
}

static void write_hex(onnx_writer *w, const char *key, const uint8_t *bytes, size_t count)
{
    qat_writer text = {0};
    for (size_t i = 0; i < count; i++)
        qat_write_text(&text, "%02x", bytes[i]);
    onnx_metadata_text(&w->m, key, &text);
}

static void write_answer(onnx_writer *w, const char *what, int32_t i, const onnx_tensor *t,
                         const void *codes)
{
    const void *in_order = t->value.rank == 4
                               ? onnx_permuted(&w->m, codes, onnx_type_bytes(t->value.type),
                                               t->value.dims, onnx_to_planes)
                               : codes;
    char key[64];
    snprintf(key, sizeof key, "known_answer/%s_%d", what, (int)i);
    if (in_order)
        write_hex(w, key, in_order, t->of->bytes);
}

/** The known answer, as hexadecimal bytes of inputs and outputs, where these are codes. */
static void write_known_answer(onnx_writer *w)
{
    const qi_model *from = w->from;
    bool coded = qi_kat_input(from, 0) != NULL;
    for (int32_t i = 0; i < qi_input_count(from); i++)
        coded &= !is_real(w, &w->tensors[qi_input_at(from, i)]);
    for (int32_t i = 0; i < qi_output_count(from); i++)
        coded &= !is_real(w, &w->tensors[qi_output_at(from, i)]);
    for (int32_t i = 0; coded && i < qi_input_count(from); i++)
        write_answer(w, "input", i, &w->tensors[qi_input_at(from, i)], qi_kat_input(from, i));
    for (int32_t i = 0; coded && i < qi_output_count(from); i++)
        write_answer(w, "output", i, &w->tensors[qi_output_at(from, i)], qi_kat_output(from, i));
}

static void write_metadata(onnx_writer *w)
{
    static const uint8_t none[32];
    const uint8_t *digest = qi_model_digest(w->from);
    const qi_epilogue *epilogue = qi_model_epilogue(w->from);
    write_labels(w);
    write_preprocessing(w);
    if (memcmp(digest, none, sizeof none) != 0)
        write_hex(w, "checkpoint_sha256", digest, sizeof none);
    write_known_answer(w);
    if (epilogue->name)
        warn(w, "what is computed from the outputs (the .qm's epilogue) is not part of the .onnx");
}

/* ------------------------------------------------------------------ the whole */

static onnx_op_fn *writer_of(const onnx_writer *w, const char *name)
{
    static const onnx_op *const tables[] = {onnx_integers, onnx_layers, onnx_values, onnx_moves};
    for (size_t k = !w->integer; k < sizeof tables / sizeof tables[0]; k++)
        for (const onnx_op *op = tables[k]; op->name; op++)
            if (strcmp(name, op->name) == 0)
                return op->write;
    return NULL;
}

/** Codes of 16 bits came with opset 21, and only to QuantizeLinear. */
static qat_status check_types(const onnx_writer *w, const qi_node *node)
{
    for (int32_t i = 0; i <= node->n_inputs; i++) {
        const qi_tensor *t =
            qi_tensor_at(w->from, i < node->n_inputs ? node->inputs[i] : node->outputs[0]);
        if (t->type == QI_S16 && (w->m.opset < 21 || w->operators))
            return onnx_refuse(w, node, "16-bit codes need opset 21 and the form qdq");
        if (qi_type_has_codes(t->type) && !(float_of(t->scale_bits) > 0))
            return onnx_refuse(w, node, "a tensor has the scale 0");
    }
    return QAT_OK;
}

static qat_status write_node(onnx_writer *w, const qi_node *node)
{
    onnx_op_fn *write = writer_of(w, node->kernel->name);
    onnx_value *y = &onnx_out(w, node)->value;
    if (y->as[ONNX_PLAIN] || y->as[ONNX_PLANES])
        return QAT_OK; /* the table of pixels, where the input is real numbers */
    if (!write || node->n_outputs != 1)
        return onnx_refuse(w, node, "ONNX has no operator for it");
    qat_status const st = check_types(w, node);
    return st ? st : write(w, node);
}

static void tell_roundings(const onnx_writer *w)
{
    char text[320];
    int const others = rounding_otherwise(w->from);
    snprintf(
        text, sizeof text,
        "%d of %d layers round otherwise in ONNX Runtime: some codes are quanta apart. The "
        "form integer has equal bytes, and so has a model that was exported from its checkpoint "
        "with --profile onnx",
        others, (int)qi_node_count(w->from));
    if (others && !w->integer)
        warn(w, text);
}

static qat_status write_model(onnx_writer *w)
{
    int32_t const n = qi_output_count(w->from);
    const char **names = onnx_take(&w->m, (size_t)n, sizeof *names);
    qat_status st = names ? describe_tensors(w) : qat_out_of_memory(w->err, "writing ONNX");
    if (st)
        return st;
    w->m.batched = may_be_batched(w->from);
    for (int32_t i = 0; i < n; i++)
        names[i] = onnx_name(&w->m, qi_tensor_at(w->from, qi_output_at(w->from, i))->name);
    write_inputs(w);
    write_states_in(w);
    for (int32_t i = 0; !st && i < qi_node_count(w->from); i++)
        st = write_node(w, qi_node_at(w->from, i));
    if (st)
        return st;
    for (int32_t i = 0; i < n; i++) {
        onnx_tensor *t = &w->tensors[qi_output_at(w->from, i)];
        write_output(w, t, names[i], is_real(w, t));
    }
    write_states_out(w);
    write_metadata(w);
    tell_roundings(w);
    return QAT_OK;
}

qat_status qat_onnx_write(const qi_host *host, const qat_write_options *options, uint8_t **bytes,
                          size_t *count, qat_error *err)
{
    onnx_writer w = {.from = qi_host_model(host), .options = options, .err = err};
    *bytes = NULL;
    *count = 0;
    w.operators = options->form != QAT_ONNX_QDQ;
    w.integer = options->form == QAT_ONNX_INTEGER;
    w.even = rounds_even(w.from);
    qat_status st = onnx_begin(&w.m, options, err);
    if (!st)
        st = qat_export_needs_scales(w.from, err);
    if (!st)
        st = write_model(&w);
    if (!st)
        st = onnx_pack(&w.m, qi_model_description(w.from), bytes, count, err);
    qat_arena_free(&w.m.arena);
    return st;
}
