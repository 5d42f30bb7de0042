/** What the comments of the C file say about tensors and layers. */
#include "export/c/out.h"

#include "base/shown.h"
#include "base/words.h"

#include <string.h>

const char *co_type_of(const qi_tensor *t)
{
    static const char *const names[QI_TYPES] = {[QI_U8] = "uint8_t",
                                                [QI_S8] = "int8_t",
                                                [QI_S32] = "int32_t",
                                                [QI_S64] = "int64_t",
                                                [QI_S16] = "int16_t"};
    return names[t->type];
}

void co_write_words(qat_writer *w, const char *text)
{
    char shown[512];
    qat_shown(shown, sizeof shown, text, false);
    for (const char *at = shown; *at; at++) {
        bool const ends = (at[0] == '*' && at[1] == '/') || (at[0] == '/' && at[1] == '*');
        qat_write_text(w, ends ? "%c " : "%c", *at);
    }
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** The scale, or the smallest and the largest of those of channels. */
static void write_scale(co *o, qat_writer *w, const qi_tensor *t)
{
    if (t->channel_scales < 0) {
        bool const is_code = qi_type_has_codes(t->type) || float_of(t->scale_bits) != 1.0F;
        if (t->scale_bits && is_code)
            qat_write_text(w, ", scale %.9g", (double)float_of(t->scale_bits));
        return;
    }
    const qi_tensor *scales = qi_tensor_at(o->opened, t->channel_scales);
    float least = 0, most = 0;
    for (size_t i = 0; i < scales->bytes / sizeof(int32_t); i++) {
        float const s = float_of((uint32_t)qi_value_at(QI_S32, scales->data, i));
        least = i == 0 || s < least ? s : least;
        most = s > most ? s : most;
    }
    qat_write_text(w, ", scales %.9g to %.9g", (double)least, (double)most);
}

void co_write_tensor(co *o, qat_writer *w, const qi_tensor *t)
{
    const char *type = co_type_of(t);
    qat_write_text(w, "%.*s [", (int)(strlen(type) - 2), type);
    for (int d = 0; d < t->rank; d++)
        qat_write_text(w, d ? ", %d" : "%d", (int)t->dims[d]);
    qat_write_text(w, "]");
    if (qi_type_has_codes(t->type) && t->bits < 8 * qi_type_bytes(t->type))
        qat_write_text(w, ", %d bit%s", t->bits, qat_plural(t->bits));
    if (t->is_packed)
        qat_write_text(w, " packed in %zu bytes", t->bytes);
    write_scale(o, w, t);
    if (qi_type_has_codes(t->type) && (t->kind != QI_CONSTANT || t->zero_point))
        qat_write_text(w, ", zero point %d", (int)t->zero_point);
}

static const char *rounding_of(const qi_node *node)
{
    switch (node->rounding) {
    case QI_ROUND_TWICE:
        return "rounded twice";
    case QI_ROUND_DOUBLE:
        return "rounded as a product of doubles is";
    case QI_ROUND_LONG:
        return "rounded once, from 64 bits";
    case QI_ROUND_EVEN:
        return "rounded to even, as binary32 is";
    case QI_ROUND_ONCE:
        return "rounded once";
    default:
        return NULL;
    }
}

/** The bound of the accumulator, which the engine's reader proves from the weights. */
static void write_bound(co *o, const qi_node *node)
{
    const char *rounding = rounding_of(node);
    if (node->max_accumulator)
        qat_write_text(&o->c, " *   sum    |accumulator| <= %lld for every input",
                       (long long)node->max_accumulator);
    if (node->max_accumulator && node->max_accumulator <= INT32_MAX)
        qat_write_text(&o->c, ", 1/%lld of int32", (long long)(INT32_MAX / node->max_accumulator));
    if (node->fraction)
        qat_write_text(&o->c, ", %d fractional bit%s", (int)node->fraction,
                       qat_plural(node->fraction));
    if (rounding)
        qat_write_text(&o->c, "%s%s", node->max_accumulator ? "; " : " *   ", rounding);
    if (rounding || node->max_accumulator)
        qat_write_text(&o->c, "\n");
}

/** A line about each tensor of a layer. */
static void write_tensor_line(co *o, const char *role, int32_t tensor)
{
    qat_write_text(&o->c, " *   %-5s  ", role);
    co_write_tensor(o, &o->c, qi_tensor_at(o->model, tensor));
    qat_write_text(&o->c, "\n");
}

void co_write_layer_comment(co *o, const co_layer *layer)
{
    const qi_node *node = layer->node;
    const qi_op *op = qi_op_named(node->kernel->name);
    qat_write_text(&o->c, "/*\n * Layer %d: %s", (int)(layer - o->layers) + 1, node->kernel->name);
    if (node->name && *node->name) {
        qat_write_text(&o->c, " \"");
        co_write_words(&o->c, node->name);
        qat_write_text(&o->c, "\"");
    }
    qat_write_text(&o->c, "\n");
    for (int32_t i = 0; i < node->n_inputs; i++)
        write_tensor_line(o, i < QI_OP_INPUTS && op->inputs[i] ? op->inputs[i] : "x",
                          node->inputs[i]);
    for (int32_t i = 0; i < node->n_outputs; i++)
        write_tensor_line(o, i == 0 ? "y" : "next", node->outputs[i]);
    write_bound(o, node);
    qat_write_text(&o->c, " */\n");
}
