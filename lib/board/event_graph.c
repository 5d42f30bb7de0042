/** A graph as TensorBoard shows it: TensorFlow's GraphDef. */
#include "base/arena.h"
#include "base/number.h"
#include "board/events.h"
#include "board/messages.h"

#include <string.h>

enum { PRODUCER = 21, TEXT_MAX = 64 }; /* PRODUCER: a version that TensorBoard takes */

/** A message that the arena holds; NULL: no memory, now or before. */
#define TAKE(arena, type, init) ((type *)initialized(qat_arena_take(arena, sizeof(type)), init))

static void *initialized(void *message, void (*init)(void *))
{
    if (message)
        init(message);
    return message;
}

/* protobuf-c's functions, of void */
#define INIT(type, name)                                                                           \
    static void init_##name(void *m)                                                               \
    {                                                                                              \
        board__##name##__init((type *)m);                                                          \
    }
INIT(Board__Node, node)
INIT(Board__Attribute, attribute)
INIT(Board__AttributeValue, attribute_value)
INIT(Board__Shapes, shapes)
INIT(Board__Shape, shape)
INIT(Board__Dim, dim)

/** A shape of the arena. */
static Board__Shape *shape_of(qat_arena *arena, const qat_shape *of)
{
    Board__Shape *shape = TAKE(arena, Board__Shape, init_shape);
    Board__Dim **dims = qat_arena_array(arena, (size_t)of->rank + 1, sizeof *dims);
    for (int i = 0; shape && dims && i < of->rank; i++) {
        dims[i] = TAKE(arena, Board__Dim, init_dim);
        if (!dims[i])
            return NULL;
        dims[i]->size = of->dims[i];
    }
    if (!shape || !dims)
        return NULL;
    shape->n_dim = (size_t)of->rank;
    shape->dim = dims;
    return shape;
}

static Board__Attribute *attribute(qat_arena *arena, const char *name)
{
    Board__Attribute *a = TAKE(arena, Board__Attribute, init_attribute);
    if (!a || !(a->value = TAKE(arena, Board__AttributeValue, init_attribute_value)))
        return NULL;
    a->key = (char *)name;
    return a;
}

/** The shape of the node's value, as TensorBoard writes it on edges. */
static Board__Attribute *output_shapes(qat_arena *arena, const qat_node *node)
{
    Board__Attribute *a = attribute(arena, "_output_shapes");
    Board__Shapes *list = TAKE(arena, Board__Shapes, init_shapes);
    Board__Shape **one = qat_arena_take(arena, sizeof *one);
    if (!a || !list || !one || !(*one = shape_of(arena, &node->shape)))
        return NULL;
    list->n_shape = 1;
    list->shape = one;
    a->value->value_case = BOARD__ATTRIBUTE_VALUE__VALUE_LIST;
    a->value->list = list;
    return a;
}

static void padding_text(char text[TEXT_MAX], const qat_padding *p)
{
    if (p->kind == QAT_PADDING_EXPLICIT)
        qat_format(text, TEXT_MAX, "%d,%d,%d,%d", p->top, p->bottom, p->left, p->right);
    else
        qat_format(text, TEXT_MAX, p->kind == QAT_PADDING_SAME ? "same" : "valid");
}

static void choice_text(char text[TEXT_MAX], const char *choices, int index)
{
    for (; index > 0 && strchr(choices, '|'); index--)
        choices = strchr(choices, '|') + 1;
    qat_format(text, TEXT_MAX, "%.*s", (int)strcspn(choices, "|"), choices);
}

/** An attribute of the op, in the type that it has. */
static Board__Attribute *value_of(qat_arena *arena, const qat_node *node, int i)
{
    const qat_attr_def *def = &node->op->attrs[i];
    Board__Attribute *a = attribute(arena, def->name);
    char text[TEXT_MAX] = "";
    if (!a)
        return NULL;
    if (def->type == QAT_ATTR_INT && node->attrs[i] < 9e15) {
        a->value->value_case = BOARD__ATTRIBUTE_VALUE__VALUE_I;
        a->value->i = (int64_t)node->attrs[i];
        return a;
    }
    if (def->type == QAT_ATTR_REAL) {
        a->value->value_case = BOARD__ATTRIBUTE_VALUE__VALUE_F;
        a->value->f = (float)node->attrs[i];
        return a;
    }
    if (def->type == QAT_ATTR_PADDING) {
        qat_padding const padding = qat_attr_padding(node, def->name);
        padding_text(text, &padding);
    } else if (def->type == QAT_ATTR_CHOICE)
        choice_text(text, def->choices, (int)node->attrs[i]);
    else
        qat_format(text, sizeof text, "never");
    a->value->value_case = BOARD__ATTRIBUTE_VALUE__VALUE_S;
    a->value->s.len = strlen(text);
    a->value->s.data = (uint8_t *)qat_arena_string(arena, text);
    return a->value->s.data ? a : NULL;
}

static bool add_attributes(qat_arena *arena, Board__Node *to, const qat_node *node)
{
    to->attr = qat_arena_array(arena, QAT_MAX_ATTRS + 1, sizeof *to->attr);
    if (!to->attr || !(to->attr[to->n_attr++] = output_shapes(arena, node)))
        return false;
    for (int i = 0; node->op && node->op->attrs && node->op->attrs[i].name; i++)
        if (!(to->attr[to->n_attr++] = value_of(arena, node, i)))
            return false;
    return true;
}

static Board__Node *node_of(qat_arena *arena, const qat_node *node)
{
    Board__Node *to = TAKE(arena, Board__Node, init_node);
    if (!to || !(to->input = qat_arena_array(arena, (size_t)node->n_inputs + 1, sizeof *to->input)))
        return NULL;
    to->name = (char *)node->name;
    to->op = (char *)(node->op ? node->op->name : node->is_param ? "Variable" : "Placeholder");
    for (int i = 0; i < node->n_inputs; i++)
        to->input[to->n_input++] = (char *)node->inputs[i]->name;
    return add_attributes(arena, to, node) ? to : NULL;
}

/** The event with the packed graph. */
static void write_graph(qat_writer *to, qat_arena *arena, const Board__Graph *graph)
{
    Board__Event event = BOARD__EVENT__INIT;
    event.graph_def.len = board__graph__get_packed_size(graph);
    event.graph_def.data = qat_arena_take(arena, event.graph_def.len + 1);
    event.what_case = BOARD__EVENT__WHAT_GRAPH_DEF;
    to->failed |= !event.graph_def.data;
    if (event.graph_def.data) {
        (void)board__graph__pack(graph, event.graph_def.data);
        qat_board_record(to, &event);
    }
}

void qat_event_graph(qat_writer *to, const qat_graph *graph)
{
    qat_arena arena = {0};
    Board__Graph g = BOARD__GRAPH__INIT;
    Board__Versions versions = BOARD__VERSIONS__INIT;
    int const n = qat_graph_nodes(graph);
    versions.producer = PRODUCER;
    g.versions = &versions;
    g.node = qat_arena_array(&arena, (size_t)n + 1, sizeof *g.node);
    to->failed |= !g.node;
    for (int i = 0; i < n && !to->failed; i++)
        to->failed |= !(g.node[g.n_node++] = node_of(&arena, qat_graph_node(graph, i)));
    if (!to->failed)
        write_graph(to, &arena, &g);
    qat_arena_free(&arena);
}
