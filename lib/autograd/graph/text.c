/** Writes graphs as text. docs/graph-text.md describes each line. */
#include "autograd/graph/text.h"
#include "autograd/graph/core.h"
#include "base/bytes.h"

const char qat_core_text_first_line[] = "qat-graph 1";
const char *const qat_core_text_inits[3] = {"constant", "he", "glorot"};

static void write_shape(qat_writer *w, const qat_shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        qat_write_text(w, "%s%d", i ? "," : "[", shape->dims[i]);
    qat_write_text(w, "]");
}

static void write_list(qat_writer *w, qat_node *const *nodes, int n)
{
    qat_write_text(w, " (");
    for (int i = 0; i < n; i++)
        qat_write_text(w, "%s%s", i ? "," : "", nodes[i]->name);
    qat_write_text(w, ")");
}

static void write_op(qat_writer *w, const qat_node *node)
{
    char value[128];
    qat_write_text(w, "op %s %s", node->name, node->op->name);
    write_list(w, node->inputs, node->n_data);
    write_list(w, node->inputs + node->n_data, node->n_inputs - node->n_data);
    for (int i = 0; node->op->attrs && node->op->attrs[i].name; i++) {
        qat_core_attr_text(&node->op->attrs[i], node->attrs[i], value, sizeof value);
        qat_write_text(w, " %s=%s", node->op->attrs[i].name, value);
    }
}

static void write_node(qat_writer *w, const core_node *core)
{
    const qat_node *node = &core->node;
    if (node->op) {
        write_op(w, node);
    } else {
        qat_write_text(w, "%s %s ", node->is_param ? "param" : "input", node->name);
        write_shape(w, &core->built);
    }
    if (node->is_param)
        qat_write_text(w, " init=%s scale=%.17g fan_in=%d fan_out=%d trainable=%d decay=%d",
                       qat_core_text_inits[node->init.init], node->init.scale, node->init.fan_in,
                       node->init.fan_out, node->trainable, node->decay);
    qat_write_text(w, core->wanted ? " gradient\n" : "\n");
}

qat_status qat_graph_write(const qat_graph *graph, char **text, qat_error *err)
{
    *text = NULL;
    qat_status const st = qat_graph_check(graph, err);
    if (st)
        return st;
    qat_writer w = {0};
    qat_write_text(&w, "%s\n", qat_core_text_first_line);
    for (int i = 0; i < graph->count; i++)
        write_node(&w, graph->nodes[i]);
    for (int i = 0; i < graph->n_outputs; i++)
        qat_write_text(&w, "output %s\n", graph->outputs[i]->name);
    qat_write_u8(&w, 0);
    if (w.failed) {
        qat_writer_free(&w);
        return qat_out_of_memory(err, "text of a graph");
    }
    *text = (char *)w.bytes;
    return QAT_OK;
}
