/**
 * Prints a graph for people: one line per node, or Graphviz. Nodes that a rewrite inserted have a
 * `+` or a colour.
 *
 *       image            input               [1, 28, 28, 1]
 *     + image/q          fake_quant          [1, 28, 28, 1]    <- image | bits=8 ... scale ...
 *       conv1            conv2d              [1, 14, 14, 16]   <- image/q (conv1/weights/q) | ...
 */
#include "autograd/loops/padding.h"
#include "base/bytes.h"
#include "fakequant/ops.h"

#include <string.h>

/** Endings of the names of nodes that the rewrites insert with ordinary ops (rewrite.h). */
static const char *const inserted_ends[] = {"/raw", "/depthwise", "/rank4", "/back"};

static bool ends_in(const char *name, const char *end)
{
    size_t const n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static bool is_inserted(const qat_node *node)
{
    bool inserted = node->op && qat_is_fake_quant_op(node->op);
    for (size_t i = 0; i < sizeof inserted_ends / sizeof *inserted_ends; i++)
        inserted |= node->op && qat_graph_quant_options(node->graph) &&
                    ends_in(node->name, inserted_ends[i]);
    return inserted;
}

static const char *op_name(const qat_node *node)
{
    return node->op ? node->op->name : node->is_param ? "parameter" : "input";
}

/* ------------------------------------------------------------------ attributes */

static void write_value(qat_writer *w, const qat_attr_def *def, double value)
{
    const char *word = def->choices;
    if (def->type == QAT_ATTR_PADDING) {
        char text[QAT_PADDING_TEXT];
        qat_padding_text(value, text);
        qat_write_text(w, "%s", text);
        return;
    }
    if (def->type != QAT_ATTR_CHOICE) {
        qat_write_text(w, "%.9g", value);
        return;
    }
    for (int i = 0; i < (int)value && strchr(word, '|'); i++)
        word = strchr(word, '|') + 1;
    qat_write_text(w, "%.*s", (int)strcspn(word, "|"), word);
}

/** Write name=value of the attributes that differ from their defaults. */
static void write_attrs(qat_writer *w, const qat_node *node, const char *separator)
{
    for (int i = 0; node->op && node->op->attrs && node->op->attrs[i].name; i++) {
        const qat_attr_def *def = &node->op->attrs[i];
        if (node->attrs[i] == def->initial)
            continue;
        qat_write_text(w, "%s%s=", separator, def->name);
        write_value(w, def, node->attrs[i]);
    }
}

/**
 * Write the current parameters of a fake_quant if they are known: ranges have values after
 * planning.
 */
static void write_params(qat_writer *w, const qat_node *node, const char *separator)
{
    qat_qparams p;
    if (!qat_node_quantizes(node, false) || (node->n_inputs > 1 && !node->inputs[1]->value))
        return;
    if (qat_node_qparams(node, &p, NULL) == QAT_OK)
        qat_write_text(w, "%srange [%.6g, %.6g] scale %.9g zero_point %d", separator, (double)p.min,
                       (double)p.max, (double)p.scale, p.zero_point);
    else
        qat_write_text(w, "%snot observed", separator);
}

/* ------------------------------------------------------------------ text */

/** The names of inputs from..to-1. An input of the graph has no array of inputs. */
static void write_names(qat_writer *w, const qat_node *node, int from, int to, const char *before,
                        const char *after)
{
    for (int i = from; i < to; i++)
        qat_write_text(w, "%s%s%s", i > from ? ", " : before, node->inputs[i]->name,
                       i == to - 1 ? after : "");
}

static void write_line(qat_writer *w, const qat_node *node)
{
    char shape[64];
    qat_write_text(w, "%c %-32s %-20s %-18s", is_inserted(node) ? '+' : ' ', node->name,
                   op_name(node), qat_shape_text(&node->shape, shape));
    write_names(w, node, 0, node->n_data, " <- ", "");
    write_names(w, node, node->n_data, node->n_inputs, " (", ")");
    write_attrs(w, node, " ");
    write_params(w, node, " ");
    qat_write_text(w, "\n");
}

static void write_lines(qat_writer *w, const qat_graph *graph)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        if (!qat_graph_node(graph, i)->is_param)
            write_line(w, qat_graph_node(graph, i));
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        qat_write_text(w, "  output %d: %s\n", i, qat_graph_output_at(graph, i)->name);
}

/* ------------------------------------------------------------------ dot */

static bool is_output(const qat_graph *graph, const qat_node *node)
{
    for (int i = 0; i < qat_graph_outputs(graph); i++)
        if (qat_graph_output_at(graph, i) == node)
            return true;
    return false;
}

/** Colour by kind of node: inserted, parameter, or from the float graph. */
static const char *style_of(const qat_node *node)
{
    if (node->is_param)
        return "shape=ellipse, color=gray60, fontcolor=gray40";
    if (is_inserted(node))
        return "style=filled, fillcolor=orange";
    return node->op ? "style=filled, fillcolor=white" : "style=filled, fillcolor=lightblue";
}

static void write_dot_node(qat_writer *w, const qat_node *node)
{
    char shape[64];
    qat_write_text(w, "  n%d [label=\"%s\\n%s %s", node->index, node->name, op_name(node),
                   qat_shape_text(&node->shape, shape));
    write_attrs(w, node, "\\n");
    write_params(w, node, "\\n");
    qat_write_text(w, "\", %s%s];\n", style_of(node),
                   is_output(node->graph, node) ? ", peripheries=2" : "");
    for (int i = 0; i < node->n_inputs; i++)
        qat_write_text(w, "  n%d -> n%d%s;\n", node->inputs[i]->index, node->index,
                       node->inputs[i]->is_param ? " [color=gray60]" : "");
}

static void write_dot(qat_writer *w, const qat_graph *graph)
{
    qat_write_text(w, "digraph qat {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        write_dot_node(w, qat_graph_node(graph, i));
    qat_write_text(w, "}\n");
}

qat_status qat_graph_describe(const qat_graph *graph, bool dot, char **text, qat_error *err)
{
    qat_writer w = {0};
    *text = NULL;
    qat_status const st = qat_graph_check(graph, err);
    if (st)
        return st;
    if (dot)
        write_dot(&w, graph);
    else
        write_lines(&w, graph);
    qat_write_u8(&w, 0);
    if (w.failed) {
        qat_writer_free(&w);
        return qat_out_of_memory(err, "text of a graph");
    }
    *text = (char *)w.bytes;
    return QAT_OK;
}
