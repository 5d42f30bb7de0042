/** The header of a C file: its functions, and what a program must know of inputs and outputs. */
#include "export/c/out.h"

#include "base/shown.h"

#include <stdio.h>
#include <string.h>

/** A line of the comment above the functions. */
static void write_tensor_line(co *o, const char *kind, int32_t i, int32_t count, int32_t tensor)
{
    const qi_tensor *t = qi_tensor_at(o->model, tensor);
    char name[CO_NAME_MAX];
    co_parameter(name, kind, i, count);
    qat_write_text(&o->h, " *   %-4s  ", name);
    co_write_tensor(o, &o->h, t);
    if (t->name && *t->name) {
        qat_write_text(&o->h, ", \"");
        co_write_words(&o->h, t->name);
        qat_write_text(&o->h, "\"");
    }
    qat_write_text(&o->h, "\n");
}

static void write_about(co *o)
{
    const char *description = qi_model_description(o->model);
    int32_t const inputs = qi_input_count(o->model), outputs = qi_output_count(o->model);
    qat_write_text(&o->h, "/*\n * A neural network of integers");
    if (description && *description) {
        qat_write_text(&o->h, ": ");
        co_write_words(&o->h, description);
    }
    qat_write_text(
        &o->h,
        "\n *\n * Written by qat-export %s. It needs memcpy and memset, and a compiler of "
        "C99 or C++17.\n *\n",
        qi_version());
    for (int32_t i = 0; i < inputs; i++)
        write_tensor_line(o, "in", i, inputs, qi_input_at(o->model, i));
    for (int32_t i = 0; i < outputs; i++)
        write_tensor_line(o, "out", i, outputs, qi_output_at(o->model, i));
    qat_write_text(&o->h, " *\n * The real value of a code is scale * (code - zero point).\n */\n");
}

/* ------------------------------------------------------------------ constants */

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void write_floats(co *o, const char *name, const uint32_t *bits, int32_t n)
{
    qat_write_text(&o->h, "#define %s_%s {", o->upper, name);
    for (int32_t i = 0; i < n; i++)
        qat_write_text(&o->h, i ? ", %.9ef" : "%.9ef", (double)float_of(bits[i]));
    qat_write_text(&o->h, "}\n");
}

/** A scale for each index of the last dimension, with zero point 0. */
static void write_scales(co *o, const char *name, const qi_tensor *scales)
{
    char macro[CO_NAME_MAX + sizeof "_SCALES"];
    snprintf(macro, sizeof macro, "%s_SCALES", name);
    write_floats(o, macro, scales->data, scales->dims[0]);
}

/** How many values, their type, scale and their zero_point. */
static void write_tensor_macros(co *o, const char *kind, int32_t i, int32_t count, int32_t tensor)
{
    const qi_tensor *t = qi_tensor_at(o->model, tensor);
    char name[CO_NAME_MAX];
    co_parameter(name, kind, i, count);
    size_t const n = strlen(name);
    for (size_t k = 0; k < n; k++)
        name[k] = (char)(name[k] >= 'a' ? name[k] - 'a' + 'A' : name[k]);
    qat_write_text(&o->h, "#define %s_%s_COUNT %zu\n#define %s_%s_TYPE %s\n", o->upper, name,
                   t->bytes / qi_type_bytes(t->type), o->upper, name, co_type_of(t));
    if (t->channel_scales >= 0) {
        write_scales(o, name, qi_tensor_at(o->opened, t->channel_scales));
        return;
    }
    if (!qi_type_has_codes(t->type) || !t->scale_bits)
        return;
    qat_write_text(&o->h, "#define %s_%s_SCALE %.9ef\n", o->upper, name,
                   (double)float_of(t->scale_bits));
    qat_write_text(&o->h, "#define %s_%s_ZERO_POINT %s%d%s\n", o->upper, name,
                   t->zero_point < 0 ? "(" : "", (int)t->zero_point, t->zero_point < 0 ? ")" : "");
}

static void write_int(co *o, const char *name, int32_t value)
{
    qat_write_text(&o->h, "#define %s_%s %d\n", o->upper, name, (int)value);
}

/** What becomes of a picture, a sound or real numbers before they are input 0. */
static void write_preprocessing(co *o)
{
    static const char *const comments[] = {NULL,
                                           "input 0: the bytes of a picture's pixels, row by row",
                                           "input 0: real numbers, (value - MEAN) / STD, as codes",
                                           "input 0: a sound's log-mel spectrogram "
                                           "(docs/preprocessing.md): HEIGHT frames of WIDTH bands"};
    const qi_preprocessing *p = qi_model_preprocessing(o->model);
    if (p->kind < 1 || p->kind > 3)
        return;
    qat_write_text(&o->h, "\n/* Preprocessing, %s. */\n", comments[p->kind]);
    write_int(o, "HEIGHT", p->height);
    write_int(o, "WIDTH", p->width);
    write_int(o, "CHANNELS", p->channels);
    if (p->kind == 1) {
        qat_write_text(&o->h,
                       "/* The short side is resized to RESIZE_SHORT, then the centre is cut out; "
                       "0: no crop. CENTRAL_CROP: the\n   share of the picture that is kept, in "
                       "millionths; 0: all. CHANNEL_ORDER: 0 grey, 1 RGB, 2 BGR. */\n");
        write_int(o, "RESIZE_SHORT", p->resize_short);
        write_int(o, "CENTRAL_CROP", p->central_crop);
        write_int(o, "CHANNEL_ORDER", p->channel_order);
        qat_write_text(&o->h,
                       "/* The network takes the pixels themselves: MEAN and STD are part of "
                       "its first layer. */\n");
    }
    if (p->kind != 3) {
        int32_t const n = p->channels < 1 ? 1 : p->channels > 4 ? 4 : p->channels;
        write_floats(o, "MEAN", p->mean_bits, n);
        write_floats(o, "STD", p->std_bits, n);
    }
}

static void write_labels(co *o)
{
    int32_t const n = qi_label_count(o->model);
    if (!n)
        return;
    qat_write_text(&o->h, "\n/* Names of the classes: const char *const names[] = %s_LABELS; */\n",
                   o->upper);
    write_int(o, "LABEL_COUNT", n);
    qat_write_text(&o->h, "#define %s_LABELS {", o->upper);
    for (int32_t i = 0; i < n; i++) {
        char shown[512];
        qat_shown(shown, sizeof shown, qi_label_at(o->model, i), false);
        qat_write_text(&o->h, i ? ", \\\n    \"" : " \\\n    \"");
        for (const char *at = shown; *at; at++)
            qat_write_text(&o->h, *at == '"' || *at == '\\' || *at == '?' ? "\\%c" : "%c", *at);
        qat_write_text(&o->h, "\"");
    }
    qat_write_text(&o->h, " \\\n}\n");
}

static void write_constants(co *o)
{
    int32_t const inputs = qi_input_count(o->model), outputs = qi_output_count(o->model);
    qat_write_text(&o->h, "\n/* Values of the inputs and outputs, their types; scales and zero "
                          "points of their codes. */\n");
    for (int32_t i = 0; i < inputs; i++)
        write_tensor_macros(o, "in", i, inputs, qi_input_at(o->model, i));
    for (int32_t i = 0; i < outputs; i++)
        write_tensor_macros(o, "out", i, outputs, qi_output_at(o->model, i));
    qat_write_text(&o->h, "\n#define %s_LAYERS %d\n#define %s_ARENA_BYTES %zu%s\n", o->upper,
                   (int)qi_node_count(o->model), o->upper, o->arena_bytes,
                   o->options.caller_arena ? " /* aligned to 8 */" : "");
    write_preprocessing(o);
    write_labels(o);
}

/* ------------------------------------------------------------------ functions */

static void write_functions(co *o)
{
    const char *arena = o->options.caller_arena ? "void *arena" : "void";
    if (o->options.separate_weights)
        qat_write_text(
            &o->h,
            "/* The constants, %zu bytes, are in a file of their own. A program that has it in "
            "flash gives its\n   address: it defines this symbol, or compiles the C file with "
            "-D%s_WEIGHTS_AT=0x...; aligned to 16. */\nextern const uint8_t %s_weights[];\n\n",
            o->weights.count, o->upper, o->name);
    if (qi_state_count(o->model))
        qat_write_text(
            &o->h,
            "/* Before the first run, and before a new sequence: the states become zero. */\n"
            "void %s_reset(%s);\n\n",
            o->name, arena);
    qat_write_text(
        &o->h,
        "/* Runs the network. An output that is NULL is left out. Returns 0. */\nint %s_run(",
        o->name);
    co_write_run_parameters(o, &o->h);
    qat_write_text(&o->h, ");\n");
    if (o->digests)
        qat_write_text(
            &o->h,
            "\n/* Runs the known answer. Returns 0, or the number of the first layer whose "
            "constants or outputs\n   are not what they must be: 1 to %s_LAYERS. %s*/\n"
            "int %s_self_test(%s);\n",
            o->upper, qi_state_count(o->model) ? "Afterwards the states are reset. " : "", o->name,
            arena);
    co_write_preprocessing_header(o);
}

/** What it takes, as a comment of one line for each core. */
static void write_sizes(co *o)
{
    const qat_c_sizes *s = &o->sizes;
    size_t const data = s->constants + s->parameters + s->test;
    qat_write_text(
        &o->h,
        "\n/* Bytes on a processor of 32 bits. Flash: %zu of constants, %zu of "
        "parameters, %zu for the self-test, and code;\n   RAM: the arena, and stack. Code "
        "by gcc 12 with -Os, within some percent; stack, at most:\n",
        s->constants, s->parameters, s->test);
    for (int i = 0; i < QAT_C_CORES; i++)
        qat_write_text(&o->h, "     %-14s flash %zu, of it code %zu; RAM %zu, of it stack %zu\n",
                       qat_c_core_names[i], data + s->code[i], s->code[i], s->arena + s->stack[i],
                       s->stack[i]);
    qat_write_text(&o->h, "*/\n");
}

void co_write_header(co *o)
{
    write_about(o);
    qat_write_text(&o->h, "#ifndef %s_H\n#define %s_H\n\n#include <stdint.h>\n", o->upper,
                   o->upper);
    write_constants(o);
    write_sizes(o);
    qat_write_text(&o->h, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    write_functions(o);
    qat_write_text(&o->h, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}
