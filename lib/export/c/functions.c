/** The functions that the header declares, and the arena. */
#include "export/c/out.h"

#include <stdio.h>

/** An address in the arena. */
static size_t place_of(const co *o, const qi_tensor *t)
{
    return t->offset - o->arena_start;
}

void co_parameter(char name[CO_NAME_MAX], const char *kind, int32_t i, int32_t count)
{
    if (count == 1)
        snprintf(name, CO_NAME_MAX, "%s", kind);
    else
        snprintf(name, CO_NAME_MAX, "%s%d", kind, (int)i);
}

void co_write_run_parameters(co *o, qat_writer *w)
{
    int32_t const inputs = qi_input_count(o->model), outputs = qi_output_count(o->model);
    char name[CO_NAME_MAX];
    if (o->options.caller_arena)
        qat_write_text(w, "void *arena, ");
    for (int32_t i = 0; i < inputs; i++) {
        co_parameter(name, "in", i, inputs);
        qat_write_text(w, "const %s *%s, ",
                       co_type_of(qi_tensor_at(o->model, qi_input_at(o->model, i))), name);
    }
    for (int32_t i = 0; i < outputs; i++) {
        co_parameter(name, "out", i, outputs);
        qat_write_text(w, "%s%s *%s", i ? ", " : "",
                       co_type_of(qi_tensor_at(o->model, qi_output_at(o->model, i))), name);
    }
}

/** The line that says where the arena is. */
static void write_arena_start(co *o)
{
    qat_write_text(&o->c, o->options.caller_arena ? "    uint8_t *a = (uint8_t *)arena;\n"
                                                  : "    uint8_t *a = arena.bytes;\n");
}

static void write_arena(co *o)
{
    if (o->options.caller_arena)
        return;
    qat_write_text(&o->c,
                   "/* All activations, states and scratch. Those that are not needed at the same "
                   "time\n   share memory. */\n"
                   "static union {\n    int64_t alignment;\n    uint8_t bytes[%s_ARENA_BYTES];\n} "
                   "arena;\n\n",
                   o->upper);
}

/* ------------------------------------------------------------------ layers */

bool co_has_places(const co *o)
{
    bool computes = false;
    for (int32_t i = 0; i < qi_node_count(o->model); i++)
        computes = computes || !o->layers[i].is_nothing;
    return computes;
}

static void write_place_function(co *o)
{
    if (!co_has_places(o))
        return;
    qat_write_text(&o->c,
                   "/* A place in the arena. The compiler must not see that two of them are in one "
                   "array: gcc 12 with\n   -O1 then makes wrong code of loops over both. */\n"
                   "static uint8_t *place(uint8_t *a, uint32_t offset)\n{\n    a += offset;\n"
                   "#ifdef __GNUC__\n    __asm__(\"\" : \"+r\"(a));\n#endif\n    return a;\n}\n\n");
}

static void write_run_layer(co *o)
{
    qat_write_text(
        &o->c,
        "/* Runs one layer; a: the arena. */\n"
        "static void run_layer(uint8_t *a, int layer)\n{\n    (void)a;\n    switch (layer) {\n");
    for (int32_t i = 0; i < qi_node_count(o->model); i++) {
        qat_write_text(
            &o->c, i + 1 < qi_node_count(o->model) ? "    case %d:\n" : "    default: /* %d */\n",
            (int)i + 1);
        co_write_calls(o, &o->layers[i]);
        qat_write_text(&o->c, "        break;\n");
    }
    qat_write_text(&o->c, "    }\n}\n\n");
}

/* ------------------------------------------------------------------ states */

/** Set a state to real zero. */
static void write_reset(co *o, const qi_tensor *t)
{
    size_t const item = qi_type_bytes(t->type), at = place_of(o, t);
    if (item == 1 || t->zero_point == 0)
        qat_write_text(&o->c, "    (void)memset(a + %zu, %d, %zu);\n", at,
                       (int)(uint8_t)t->zero_point, t->bytes);
    else
        qat_write_text(
            &o->c,
            "    for (int i = 0; i < %zu; i++) {\n        ((%s *)(void *)(a + %zu))[i] = %d;\n"
            "    }\n",
            t->bytes / item, co_type_of(t), at, (int)t->zero_point);
}

static bool has_states(const co *o)
{
    return qi_state_count(o->model) > 0;
}

static void write_states(co *o)
{
    if (!has_states(o))
        return;
    qat_write_text(&o->c, "void %s_reset(%s)\n{\n", o->name,
                   o->options.caller_arena ? "void *arena" : "void");
    write_arena_start(o);
    for (int32_t i = 0; i < qi_tensor_count(o->model); i++)
        if (qi_tensor_at(o->model, i)->kind == QI_STATE)
            write_reset(o, qi_tensor_at(o->model, i));
    qat_write_text(&o->c, "}\n\n/* The end of a run: what the states become. */\n"
                          "static void carry_on(uint8_t *a)\n{\n");
    for (int32_t i = 0; i < qi_tensor_count(o->model); i++) {
        const qi_tensor *t = qi_tensor_at(o->model, i);
        if (t->kind == QI_STATE)
            qat_write_text(&o->c, "    (void)memcpy(a + %zu, a + %zu, %zu);\n", place_of(o, t),
                           place_of(o, qi_tensor_at(o->model, t->next)), t->bytes);
    }
    qat_write_text(&o->c, "}\n\n");
}

/* ------------------------------------------------------------------ inputs and outputs */

/** An input with fewer bits than its type: other values are limited to its codes. */
static void write_limit(co *o, const qi_tensor *t)
{
    const char *type = co_type_of(t);
    int const bits = t->bits;
    if (t->bits >= 8 * qi_type_bytes(t->type))
        return;
    int32_t const hi = t->type == QI_U8 ? (1 << bits) - 1 : (1 << (bits - 1)) - 1;
    qat_write_text(&o->c,
                   "    for (int i = 0; i < %zu; i++) {\n"
                   "        %s *x = (%s *)(void *)(a + %zu) + i;\n"
                   "        *x = (%s)(*x > %d ? %d : *x);\n",
                   t->bytes / qi_type_bytes(t->type), type, type, place_of(o, t), type, (int)hi,
                   (int)hi);
    if (t->type != QI_U8)
        qat_write_text(&o->c, "        *x = (%s)(*x < %d ? %d : *x);\n", type, (int)(-hi - 1),
                       (int)(-hi - 1));
    qat_write_text(&o->c, "    }\n");
}

static void write_put_inputs(co *o)
{
    int32_t const n = qi_input_count(o->model);
    char name[CO_NAME_MAX];
    qat_write_text(&o->c, "static void put_inputs(uint8_t *a");
    for (int32_t i = 0; i < n; i++) {
        co_parameter(name, "in", i, n);
        qat_write_text(&o->c, ", const void *%s", name);
    }
    qat_write_text(&o->c, ")\n{\n");
    for (int32_t i = 0; i < n; i++) {
        const qi_tensor *t = qi_tensor_at(o->model, qi_input_at(o->model, i));
        co_parameter(name, "in", i, n);
        qat_write_text(&o->c, "    (void)memcpy(a + %zu, %s, %zu);\n", place_of(o, t), name,
                       t->bytes);
        write_limit(o, t);
    }
    qat_write_text(&o->c, "}\n\n");
}

static void write_run(co *o)
{
    int32_t const inputs = qi_input_count(o->model), outputs = qi_output_count(o->model);
    char name[CO_NAME_MAX];
    qat_write_text(&o->c, "int %s_run(", o->name);
    co_write_run_parameters(o, &o->c);
    qat_write_text(&o->c, ")\n{\n");
    write_arena_start(o);
    qat_write_text(&o->c, "    put_inputs(a");
    for (int32_t i = 0; i < inputs; i++) {
        co_parameter(name, "in", i, inputs);
        qat_write_text(&o->c, ", %s", name);
    }
    qat_write_text(&o->c,
                   ");\n    for (int layer = 1; layer <= %s_LAYERS; layer++) {\n"
                   "        run_layer(a, layer);\n    }\n",
                   o->upper);
    if (has_states(o))
        qat_write_text(&o->c, "    carry_on(a);\n");
    for (int32_t i = 0; i < outputs; i++) {
        const qi_tensor *t = qi_tensor_at(o->model, qi_output_at(o->model, i));
        co_parameter(name, "out", i, outputs);
        qat_write_text(&o->c, "    if (%s) {\n        (void)memcpy(%s, ", name, name);
        if (t->kind == QI_CONSTANT)
            co_write_pointer(o, &o->c, t->data, (co_span){"void", 4});
        else
            qat_write_text(&o->c, "a + %zu", place_of(o, t));
        qat_write_text(&o->c, ", %zu);\n    }\n", t->bytes);
    }
    qat_write_text(&o->c, "    return 0;\n}\n");
}

void co_write_functions(co *o)
{
    write_arena(o);
    write_place_function(o);
    write_run_layer(o);
    write_states(o);
    write_put_inputs(o);
    write_run(o);
}
