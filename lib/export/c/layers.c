/** Layers: which function runs each, with which parameters. */
#include "export/c/out.h"

#include "infer/host/parts.h"

#include <stdio.h>
#include <string.h>

/** A node as its op sees it: only its constants have a place. */
static qi_call call_of(const co *o, const qi_node *node, const void **in)
{
    for (int32_t i = 0; i < node->n_inputs; i++)
        in[i] = qi_tensor_at(o->model, node->inputs[i])->data;
    return (qi_call){.model = o->model, .node = node, .in = in};
}

/** Is there "scratch" among the parameters of the function? */
static bool takes_scratch(const co_piece *function)
{
    co_span code = function->code;
    for (co_span t = co_token(&code); t.n && *t.at != '{'; t = co_token(&code))
        if (co_span_is(t, "scratch"))
            return true;
    return false;
}

/** "_once" or "_even", or nothing. */
static const char *suffix_of(const qi_node *node)
{
    return node->rounding == QI_ROUND_ONCE   ? "_once"
           : node->rounding == QI_ROUND_EVEN ? "_even"
                                             : "";
}

/** The function that runs the node, as code.h says. */
static const char *function_of(co *o, const qi_code *code, const qi_call *call)
{
    const char *op = call->node->kernel->name;
    char *name = qat_arena_array(&o->arena, CO_NAME_MAX, 1);
    if (!name || code->function)
        return name ? code->function(call) : NULL;
    snprintf(name, CO_NAME_MAX, "qk_%s%s_run", op, suffix_of(call->node));
    if (!co_need(&o->pieces, name))
        snprintf(name, CO_NAME_MAX, "qk_%s_run", op);
    if (!co_need(&o->pieces, name))
        snprintf(name, CO_NAME_MAX, "%s_run", code->type);
    return name;
}

/** Where concat puts an input if its parts lie side by side: the inputs before it. */
static size_t place_in_output(const co *o, const qi_node *node, int32_t input)
{
    size_t at = qi_tensor_at(o->model, node->outputs[0])->offset;
    for (int32_t i = 0; i < input; i++)
        at += qi_tensor_at(o->model, node->inputs[i])->bytes;
    return at;
}

/** Is the input already where the node would copy it? Inputs and outputs overlap nowhere else. */
static bool is_there(const co *o, const qi_node *node, int32_t input)
{
    const qi_tensor *x = qi_tensor_at(o->model, node->inputs[input]);
    const qi_tensor *y = qi_tensor_at(o->model, node->outputs[0]);
    if (x->kind != QI_ACTIVATION)
        return false;
    switch (node->kernel->in_place) {
    case QI_SAME_BYTES:
        return y->offset == x->offset;
    case QI_PART_OF_INPUT:
        return y->offset >= x->offset && y->offset < x->offset + x->bytes;
    case QI_PARTS_OF_OUTPUT:
        return x->offset == place_in_output(o, node, input);
    default:
        return false;
    }
}

/** An op that copies, whose output the planner put where the inputs are. */
static bool is_nothing(const co *o, const qi_node *node)
{
    int32_t const copies = node->kernel->in_place == QI_PARTS_OF_OUTPUT ? node->n_inputs : 1;
    bool is_nothing = true;
    for (int32_t i = 0; i < copies; i++)
        is_nothing = is_nothing && is_there(o, node, i);
    return is_nothing;
}

static qat_status prepare(co *o, co_layer *layer, const qi_node *node)
{
    const void **in = qat_arena_array(&o->arena, (size_t)node->n_inputs + 1, sizeof *in);
    const qi_code *code = qi_host_parts()->code_of(node->kernel);
    if (!code)
        return qat_fail(o->err, QAT_ERR_UNSUPPORTED, "op %s has no C source", node->kernel->name);
    size_t const structs = code->per_input ? (size_t)node->n_inputs : 1;
    void *params = qat_arena_array(&o->arena, structs, code->bytes);
    if (!in || !params)
        return qat_out_of_memory(o->err, NULL);
    *layer = (co_layer){.node = node, .code = code, .is_nothing = is_nothing(o, node)};
    if (layer->is_nothing)
        return QAT_OK;
    qi_call const call = call_of(o, node, in);
    layer->function = function_of(o, code, &call);
    layer->params = params;
    if (!layer->function)
        return qat_out_of_memory(o->err, NULL);
    code->fill(&call, params);
    if (!co_need(&o->pieces, layer->function) || !co_need(&o->pieces, code->type))
        return qat_fail(o->err, QAT_ERR_UNSUPPORTED, "op %s: no header declares %s or %s",
                        node->kernel->name, layer->function, code->type);
    layer->has_scratch =
        takes_scratch(co_piece_of(&o->pieces, (co_span){layer->function, strlen(layer->function)}));
    return QAT_OK;
}

/** The text of a layer's parameters. */
static qat_status describe(co *o, co_layer *layer)
{
    co_pointers const pointers = {co_write_pointer, o};
    bool const is_list = layer->code->per_input;
    qat_status st = QAT_OK;
    qat_write_text(&layer->text, is_list ? "{\n" : "");
    for (int32_t i = 0; i < co_structs_of(layer) && !st; i++) {
        st = co_write_struct(&layer->text, &o->pieces, layer->code->type,
                             (const uint8_t *)layer->params + (size_t)i * layer->code->bytes,
                             layer->code->bytes, &pointers, o->err);
        qat_write_text(&layer->text, is_list ? ",\n" : "");
    }
    qat_write_text(&layer->text, is_list ? "}" : "");
    return st ? st : layer->text.failed ? qat_out_of_memory(o->err, NULL) : QAT_OK;
}

static bool have_same_params(const co_layer *a, const co_layer *b)
{
    return !b->is_nothing && a->code == b->code && a->text.count == b->text.count &&
           memcmp(a->text.bytes, b->text.bytes, a->text.count) == 0;
}

/** Row bands have many layers that are the same but for where their tensors are. */
static qat_status describe_all(co *o)
{
    qat_status st = QAT_OK;
    for (int32_t i = 0; i < qi_node_count(o->model) && !st; i++) {
        co_layer *layer = &o->layers[i];
        layer->same = i;
        if (layer->is_nothing)
            continue;
        st = describe(o, layer);
        for (int32_t k = 0; k < i && !st && layer->same == i; k++)
            if (have_same_params(layer, &o->layers[k]))
                layer->same = k;
    }
    return st;
}

qat_status co_prepare_layers(co *o)
{
    int32_t const n = qi_node_count(o->model);
    if (!n)
        return qat_fail(o->err, QAT_ERR_UNSUPPORTED, "a model without layers");
    o->layers = qat_arena_array(&o->arena, (size_t)n, sizeof *o->layers);
    o->constants =
        qat_arena_array(&o->arena, (size_t)qi_tensor_count(o->model), sizeof *o->constants);
    if (!o->layers || !o->constants)
        return qat_out_of_memory(o->err, NULL);
    qat_status st = QAT_OK;
    for (int32_t i = 0; i < n && !st; i++)
        st = prepare(o, &o->layers[i], qi_node_at(o->model, i));
    if (st)
        return st;
    co_name_constants(o);
    return describe_all(o);
}

/* ------------------------------------------------------------------ parameters */

int32_t co_structs_of(const co_layer *layer)
{
    return layer->code->per_input ? layer->node->n_inputs : 1;
}

static void write_params(co *o, int32_t n)
{
    const co_layer *layer = &o->layers[n];
    if (layer->is_nothing) {
        qat_write_text(&o->c, "/* Its output is there already. */\n\n");
        return;
    }
    if (layer->same != n) {
        qat_write_text(&o->c, "/* Its parameters are those of layer %d. */\n\n",
                       (int)layer->same + 1);
        return;
    }
    qat_write_text(&o->c, "static const %s layer_%d", layer->code->type, (int)n + 1);
    if (layer->code->per_input)
        qat_write_text(&o->c, "[%d]", (int)co_structs_of(layer));
    qat_write_text(&o->c, " = %.*s;\n\n", (int)layer->text.count, (const char *)layer->text.bytes);
}

void co_write_layers(co *o)
{
    for (int32_t i = 0; i < qi_node_count(o->model); i++) {
        co_write_layer_comment(o, &o->layers[i]);
        co_write_constants(o, i);
        write_params(o, i);
    }
}

void co_free_layers(co *o)
{
    for (int32_t i = 0; o->layers && i < qi_node_count(o->model); i++)
        qat_writer_free(&o->layers[i].text);
}

/* ------------------------------------------------------------------ calls */

static void write_place(co *o, const qi_tensor *t)
{
    o->places += t->kind != QI_CONSTANT;
    if (t->kind == QI_CONSTANT)
        co_write_pointer(o, &o->c, t->data, (co_span){"void", 4});
    else
        qat_write_text(&o->c, "place(a, %zu)", t->offset - o->arena_start);
}

/** A call with the inputs first..end-1. */
static void write_call(co *o, const co_layer *layer, int32_t first, int32_t end)
{
    const qi_node *node = layer->node;
    qat_write_text(&o->c, "        %s(&layer_%d", layer->function, (int)layer->same + 1);
    if (layer->code->per_input)
        qat_write_text(&o->c, "[%d]", (int)first);
    for (int32_t i = first; i < end; i++)
        if (i > 31 || !(layer->code->constants >> i & 1)) {
            qat_write_text(&o->c, ", ");
            write_place(o, qi_tensor_at(o->model, node->inputs[i]));
        }
    for (int32_t i = 0; i < node->n_outputs; i++) {
        qat_write_text(&o->c, ", ");
        write_place(o, qi_tensor_at(o->model, node->outputs[i]));
    }
    o->places += layer->has_scratch && node->scratch_bytes;
    if (layer->has_scratch && node->scratch_bytes)
        qat_write_text(&o->c, ", place(a, %zu)", node->scratch_offset - o->arena_start);
    else if (layer->has_scratch)
        qat_write_text(&o->c, ", NULL");
    qat_write_text(&o->c, ");\n");
}

void co_write_calls(co *o, const co_layer *layer)
{
    int32_t const inputs = layer->node->n_inputs;
    if (layer->is_nothing)
        qat_write_text(&o->c, "        /* nothing to do */\n");
    if (layer->is_nothing)
        return;
    for (int32_t i = 0; layer->code->per_input && i < inputs; i++)
        if (!is_there(o, layer->node, i))
            write_call(o, layer, i, i + 1);
    if (!layer->code->per_input)
        write_call(o, layer, 0, inputs);
}
