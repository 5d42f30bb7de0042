/**
 * The self-test: it runs the known answer, and compares a digest of each layer. A digest covers the
 * constants that a layer is the first to need, the multipliers among its parameters if no layer
 * before it has the same, and the bytes of its outputs.
 */
#include "export/c/out.h"

#include <stdio.h>

static void write_inputs(co *o)
{
    for (int32_t i = 0; i < qi_input_count(o->model); i++) {
        const qi_tensor *t = qi_tensor_at(o->model, qi_input_at(o->model, i));
        size_t const n = t->bytes * (size_t)o->steps;
        const uint8_t *bytes = o->answers[i];
        qat_write_text(&o->c, "\nstatic const uint8_t known_%d[%zu] %s_SECTION = {", (int)i, n,
                       o->upper);
        for (size_t k = 0; k < n; k++)
            qat_write_text(&o->c, k % 20 ? " %d," : "\n    %d,", bytes[k]);
        qat_write_text(&o->c, "\n};\n");
    }
}

static void write_digests(co *o)
{
    int32_t const layers = qi_node_count(o->model);
    qat_write_text(&o->c, "\nstatic const uint32_t digests[%d] = {", (int)(layers * o->steps));
    for (int32_t i = 0; i < layers * o->steps; i++)
        qat_write_text(&o->c, i % 6 ? " 0x%08xu," : "\n    0x%08xu,", (unsigned)o->digests[i]);
    qat_write_text(&o->c, "\n};\n");
}

static void write_part(co *o, const qi_tensor *t)
{
    o->parts++;
    qat_write_text(&o->c, "        d = digest_of(d, ");
    if (t->kind == QI_CONSTANT)
        co_write_pointer(o, &o->c, t->data, (co_span){"void", 4});
    else
        qat_write_text(&o->c, "a + %zu", t->offset - o->arena_start);
    qat_write_text(&o->c, ", %zu);\n", t->bytes);
}

/** Where the lines for a layer's multipliers go, and the name of its struct. */
typedef struct struct_name {
    co *o;
    const char *name;
} struct_name;

static void write_multiplier(void *context, const char *path, const void *value)
{
    const struct_name *s = context;
    (void)value;
    s->o->parts++;
    qat_write_text(&s->o->c, "        d = digest_of(d, &%s.%s, 4);\n", s->name, path);
}

static void write_multipliers(co *o, int32_t n)
{
    const co_layer *layer = &o->layers[n];
    int32_t const structs = layer->params && layer->same == n ? co_structs_of(layer) : 0;
    for (int32_t i = 0; i < structs; i++) {
        char name[CO_NAME_MAX];
        struct_name s = {o, name};
        if (layer->code->per_input)
            snprintf(name, sizeof name, "layer_%d[%d]", (int)n + 1, (int)i);
        else
            snprintf(name, sizeof name, "layer_%d", (int)n + 1);
        co_each_multiplier(&o->pieces, layer->code->type,
                           (const uint8_t *)layer->params + (size_t)i * layer->code->bytes,
                           write_multiplier, &s);
    }
}

static void write_layer_digest(co *o)
{
    qat_write_text(
        &o->c, "\n/* The digest of a layer that has run. A compiler that moves this into the loop "
               "below adds some hundred bytes. */\n"
               "#ifdef __GNUC__\n__attribute__((noinline))\n#endif\n"
               "static uint32_t digest_of_layer(const uint8_t *a, int layer)\n{\n"
               "    uint32_t d = 2166136261u;\n    switch (layer) {\n");
    for (int32_t n = 0; n < qi_node_count(o->model); n++) {
        const qi_node *node = o->layers[n].node;
        qat_write_text(
            &o->c, n + 1 < qi_node_count(o->model) ? "    case %d:\n" : "    default: /* %d */\n",
            (int)n + 1);
        for (int32_t i = 0; i < qi_tensor_count(o->model); i++)
            if (o->constants[i].name[0] && o->constants[i].layer == n)
                write_part(o, qi_tensor_at(o->model, i));
        write_multipliers(o, n);
        for (int32_t i = 0; i < node->n_outputs; i++)
            write_part(o, qi_tensor_at(o->model, node->outputs[i]));
        qat_write_text(&o->c, "        break;\n");
    }
    qat_write_text(&o->c, "    }\n    return d;\n}\n");
}

static void write_function(co *o)
{
    bool const has_states = qi_state_count(o->model) > 0;
    const char *arena = o->options.caller_arena ? "arena" : "";
    qat_write_text(&o->c, "\nint %s_self_test(%s)\n{\n", o->name,
                   o->options.caller_arena ? "void *arena" : "void");
    qat_write_text(&o->c, o->options.caller_arena ? "    uint8_t *a = (uint8_t *)arena;\n"
                                                  : "    uint8_t *a = arena.bytes;\n");
    qat_write_text(&o->c, "    int wrong = 0;\n");
    if (has_states)
        qat_write_text(&o->c, "    %s_reset(%s);\n", o->name, arena);
    qat_write_text(&o->c,
                   "    for (int step = 0; step < %d && wrong == 0; step++) {\n"
                   "        put_inputs(a",
                   (int)o->steps);
    for (int32_t i = 0; i < qi_input_count(o->model); i++)
        qat_write_text(&o->c, ", known_%d + step * %zu", (int)i,
                       qi_tensor_at(o->model, qi_input_at(o->model, i))->bytes);
    qat_write_text(
        &o->c,
        ");\n        for (int layer = 1; layer <= %s_LAYERS && wrong == 0; layer++) {\n"
        "            run_layer(a, layer);\n"
        "            if (digest_of_layer(a, layer) != digests[step * %s_LAYERS + layer - 1]) {\n"
        "                wrong = layer;\n            }\n        }\n",
        o->upper, o->upper);
    if (has_states)
        qat_write_text(&o->c, "        carry_on(a);\n");
    qat_write_text(&o->c, "    }\n");
    if (has_states)
        qat_write_text(&o->c, "    %s_reset(%s);\n", o->name, arena);
    qat_write_text(&o->c, "    return wrong;\n}\n");
}

void co_write_test(co *o)
{
    if (!o->digests)
        return;
    qat_write_text(
        &o->c,
        "\n/* ---- self-test: %s. The digest (FNV-1a) of a layer covers the\n"
        "   constants that it is the first to need, its multipliers, and the bytes of its\n"
        "   outputs. */\n",
        qi_kat_steps(o->model) ? "the known answer of the model"
                               : "any bytes, as the model has no known answer");
    write_inputs(o);
    write_digests(o);
    qat_write_text(&o->c,
                   "\nstatic uint32_t digest_of(uint32_t d, const void *bytes, uint32_t n)\n{\n"
                   "    const uint8_t *from = (const uint8_t *)bytes;\n"
                   "    for (uint32_t i = 0; i < n; i++) {\n"
                   "        d = (d ^ from[i]) * %uu;\n    }\n    return d;\n}\n",
                   (unsigned)CO_DIGEST_PRIME);
    write_layer_digest(o);
    write_function(o);
}
