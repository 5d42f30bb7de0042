/** Codes and real numbers: what the writers of ops share. */
#include "export/onnx/write.h"

#include <math.h>
#include <string.h>

onnx_tensor *onnx_in(const onnx_writer *w, const qi_node *node, int i)
{
    return &w->tensors[node->inputs[i]];
}

onnx_tensor *onnx_out(const onnx_writer *w, const qi_node *node)
{
    return &w->tensors[node->outputs[0]];
}

/** The place of a parameter; -1: the op has none of this name. */
static int place_of(const qi_node *node, const char *name)
{
    const qi_op *row = qi_op_named(node->kernel->name);
    for (int i = 0; row && i < node->n_params && row->params[i].name; i++)
        if (strcmp(row->params[i].name, name) == 0)
            return i;
    return -1;
}

int32_t onnx_param(const qi_node *node, const char *name)
{
    int const i = place_of(node, name);
    return i < 0 ? 0 : node->params[i];
}

qat_status onnx_refuse(const onnx_writer *w, const qi_node *node, const char *why)
{
    return qat_fail(w->err, QAT_ERR_UNSUPPORTED, "layer '%.80s' (%s) cannot be written as ONNX: %s",
                    node->name, node->kernel->name, why);
}

/* ------------------------------------------------------------------ scales */

const char *onnx_scale(onnx_writer *w, onnx_tensor *t)
{
    if (!t->scale_name)
        t->scale_name = onnx_scalar(&w->m, "scale", ONNX_FLOAT, &t->scale);
    return t->scale_name;
}

const char *onnx_code(onnx_writer *w, const onnx_tensor *t, const char *wanted, int32_t code)
{
    int16_t const wide = (int16_t)code;
    uint8_t const byte = (uint8_t)(code + t->carry);
    return onnx_scalar(&w->m, wanted, t->value.type,
                       t->of->type == QI_S16 ? (const void *)&wide : &byte);
}

const char *onnx_zero_point(onnx_writer *w, onnx_tensor *t)
{
    if (!t->zero_point)
        t->zero_point = onnx_code(w, t, "zero_point", t->of->zero_point);
    return t->zero_point;
}

const char *onnx_dequantized(onnx_writer *w, onnx_tensor *t, const char *codes, const char *wanted)
{
    const char *const inputs[] = {codes, onnx_scale(w, t),
                                  t->of->type == QI_S32 ? NULL : onnx_zero_point(w, t), NULL};
    return onnx_output(&w->m, onnx_add(&w->m, "DequantizeLinear", inputs), wanted);
}

const char *onnx_real(onnx_writer *w, onnx_tensor *t, onnx_form form)
{
    const char *codes = onnx_as(&w->m, &t->value, form);
    return onnx_dequantized(w, t, codes, onnx_name(&w->m, t->of->name));
}

typedef struct grid {
    const char *scale, *zero_point;
} grid;

/** Set what the file says of a tensor's codes. Returns what it said before. */
static grid set_grid(onnx_tensor *t, grid to)
{
    grid const was = {t->scale_name, t->zero_point};
    t->scale_name = to.scale;
    t->zero_point = to.zero_point;
    return was;
}

static grid codes_themselves(onnx_writer *w, const onnx_tensor *t)
{
    return (grid){onnx_scalar(&w->m, "scale", ONNX_FLOAT, &(float){1}),
                  onnx_scalar(&w->m, "zero_point", t->value.type, &(uint8_t){0})};
}

qat_status onnx_of_codes(onnx_writer *w, const qi_node *node, onnx_op_fn *write)
{
    onnx_tensor *x = onnx_in(w, node, 0), *y = onnx_out(w, node);
    if (node->rounding != QI_ROUND_EVEN)
        return write(w, node);
    grid const x_was = set_grid(x, codes_themselves(w, x));
    grid const y_was = set_grid(y, codes_themselves(w, y));
    qat_status const st = write(w, node);
    set_grid(x, x_was);
    set_grid(y, y_was);
    return st;
}

/* ------------------------------------------------------------------ limits */

static onnx_clamp ends_of(const qi_tensor *t)
{
    return t->type == QI_U8   ? (onnx_clamp){0, UINT8_MAX}
           : t->type == QI_S8 ? (onnx_clamp){INT8_MIN, INT8_MAX}
                              : (onnx_clamp){INT16_MIN, INT16_MAX};
}

static bool limits_nothing(const onnx_tensor *t, onnx_clamp c)
{
    onnx_clamp const ends = ends_of(t->of);
    return c.lo <= ends.lo && c.hi >= ends.hi;
}

onnx_clamp onnx_all_codes(const qi_tensor *t)
{
    bool const is_signed = t->type != QI_U8;
    if (!qi_type_has_codes(t->type))
        return (onnx_clamp){INT32_MIN, INT32_MAX};
    int32_t const n = INT32_C(1) << (t->bits - is_signed);
    return (onnx_clamp){is_signed ? -n : 0, n - 1};
}

onnx_clamp onnx_clamp_of(const onnx_writer *w, const qi_node *node)
{
    int const at = place_of(node, "clamp_lo");
    return at >= 0 ? (onnx_clamp){node->params[at], node->params[at + 1]}
                   : onnx_all_codes(onnx_out(w, node)->of);
}

const char *onnx_limited(onnx_writer *w, const onnx_tensor *t, onnx_clamp c, const char *codes)
{
    if (limits_nothing(t, c))
        return codes;
    /* 16 bits are not among Clip's types of ONNX Runtime, but of ONNX */
    const char *const inputs[] = {codes, onnx_code(w, t, "code", c.lo),
                                  onnx_code(w, t, "code", c.hi), NULL};
    return onnx_output(&w->m, onnx_add(&w->m, "Clip", inputs), onnx_name(&w->m, t->of->name));
}

static const char *bound(onnx_writer *w, const onnx_tensor *t, int32_t code)
{
    float const value = t->scale * (float)(code - t->of->zero_point);
    return onnx_scalar(&w->m, "bound", ONNX_FLOAT, &value);
}

/** Limit real numbers that then become codes. */
static const char *clipped(onnx_writer *w, const onnx_tensor *t, onnx_clamp c, const char *reals)
{
    onnx_clamp const ends = ends_of(t->of);
    if (limits_nothing(t, c))
        return reals;
    if (c.lo == t->of->zero_point && c.hi >= ends.hi)
        return onnx_apply(&w->m, "Relu", t->of->name, reals, NULL);
    const char *const inputs[] = {reals, bound(w, t, c.lo), bound(w, t, c.hi), NULL};
    return onnx_output(&w->m, onnx_add(&w->m, "Clip", inputs), onnx_name(&w->m, t->of->name));
}

/* ------------------------------------------------------------------ outputs */

static const char *quantize(onnx_writer *w, onnx_tensor *t, const char *reals)
{
    const char *const inputs[] = {reals, onnx_scale(w, t), onnx_zero_point(w, t), NULL};
    return onnx_output(&w->m, onnx_add(&w->m, "QuantizeLinear", inputs),
                       onnx_name(&w->m, t->of->name));
}

void onnx_quantized(onnx_writer *w, const qi_node *node, onnx_form form, const char *name)
{
    onnx_tensor *t = onnx_out(w, node);
    onnx_clamp const clamp = onnx_clamp_of(w, node);
    const char *codes = w->even ? onnx_limited(w, t, clamp, quantize(w, t, name))
                                : quantize(w, t, clipped(w, t, clamp, name));
    onnx_set(&t->value, form, codes);
}

void onnx_coded(onnx_writer *w, const qi_node *node, onnx_form form, const char *name)
{
    onnx_tensor *t = onnx_out(w, node);
    onnx_set(&t->value, form, onnx_limited(w, t, onnx_clamp_of(w, node), name));
}

/** Does a node only limit its output to what are codes anyway? */
static bool limits_to_codes(const onnx_writer *w, const qi_node *node)
{
    onnx_clamp const all = onnx_all_codes(onnx_out(w, node)->of), c = onnx_clamp_of(w, node);
    return c.lo == all.lo && c.hi == all.hi;
}

bool onnx_moves_reals(const onnx_writer *w, const qi_node *node)
{
    const onnx_tensor *y = onnx_out(w, node);
    bool same = !w->operators && limits_to_codes(w, node);
    for (int i = 0; i < node->n_inputs; i++)
        same &= onnx_in(w, node, i)->scale == y->scale;
    return same;
}

const char *onnx_moved(onnx_writer *w, const qi_node *node, int i, onnx_form form)
{
    onnx_tensor *x = onnx_in(w, node, i);
    return onnx_moves_reals(w, node) ? onnx_real(w, x, form) : onnx_as(&w->m, &x->value, form);
}

void onnx_arrived(onnx_writer *w, const qi_node *node, onnx_form form, const char *name)
{
    if (onnx_moves_reals(w, node))
        onnx_set(&onnx_out(w, node)->value, form, quantize(w, onnx_out(w, node), name));
    else if (limits_to_codes(w, node))
        onnx_set(&onnx_out(w, node)->value, form, name);
    else
        onnx_coded(w, node, form, name);
}

const char *onnx_recoded(onnx_writer *w, const char *x, int32_t by, onnx_type type)
{
    return onnx_cast(w, onnx_with(w, "Add", onnx_cast(w, x, ONNX_S64), by), type);
}

const char *onnx_looked_up(onnx_writer *w, const char *x, const char *added, const char *entries,
                           const char *wanted)
{
    const char *position = onnx_cast(w, x, ONNX_S32);
    if (added)
        position = onnx_apply(&w->m, "Add", "position", position, added);
    return onnx_apply(&w->m, "Gather", wanted, entries, position);
}

onnx_node *onnx_qlinear(onnx_writer *w, const qi_node *node, const char *op, int inputs,
                        onnx_form form)
{
    const char *names[9] = {NULL};
    for (int i = 0; i < inputs; i++) {
        onnx_tensor *x = onnx_in(w, node, i);
        names[3 * i] = onnx_as(&w->m, &x->value, form);
        names[3 * i + 1] = onnx_scale(w, x);
        names[3 * i + 2] = onnx_zero_point(w, x);
    }
    names[3 * inputs] = onnx_scale(w, onnx_out(w, node));
    names[3 * inputs + 1] = onnx_zero_point(w, onnx_out(w, node));
    onnx_node *n = onnx_add(&w->m, op, names);
    onnx_microsoft(&w->m, n);
    return n;
}
