/**
 * Prints graphs as text or for Graphviz: the nodes that rewrites inserted, and the integer graph.
 */
#include "tools/inspect/inspect.h"

#include "tools/common/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A float graph, with the options of its rewrites. */
typedef struct source {
    qat_restored *restored;
    qat_recipe *recipe;
    qat_plugins *plugins;
    qat_registry *registry;
    qat_dataset *data;
    qat_graph *built;
    const qat_graph *graph;
    qat_quant_options quant;
} source;

static void source_close(source *s)
{
    qat_graph_free(s->built);
    qat_dataset_close(s->data);
    qat_registry_free(s->registry);
    qat_plugins_free(s->plugins);
    qat_recipe_free(s->recipe);
    qat_restored_free(s->restored);
}

static qat_status open_checkpoint(source *s, const char *path, const tool_list *plugins,
                                  qat_error *err)
{
    qat_status const st = tool_restore(&s->restored, path, plugins, err);
    if (st)
        return st;
    s->graph = qat_restored_graph(s->restored);
    s->quant = *qat_checkpoint_quant(qat_restored_checkpoint(s->restored));
    return QAT_OK;
}

/** A recipe's network takes its size from the data, so the data must be there. */
static qat_status open_recipe(source *s, const char *path, const tool_list *plugins, qat_error *err)
{
    qat_input_info in;
    qat_status st = qat_recipe_load(&s->recipe, path, NULL, 0, err);
    if (!st)
        st = tool_limit_recipe(s->recipe, err);
    if (!st)
        st = tool_open_registry(&s->registry, &s->plugins, s->recipe, plugins, err);
    if (!st)
        st = qat_recipe_open_undrawn(&s->data, s->recipe, QAT_SPLIT_TRAIN, err);
    if (!st)
        st = qat_input_info_of(&in, s->registry, s->recipe, qat_dataset_info_of(s->data), err);
    if (!st)
        st = qat_network_build(&s->built, s->registry, s->recipe, &in, err);
    if (st)
        return st;
    s->graph = s->built;
    return qat_recipe_quant_options(&s->quant, s->recipe, s->registry, &in, 0, 0, err);
}

static qat_status describe(const qat_graph *graph, const char *title, bool dot, qat_error *err)
{
    char *text = NULL;
    qat_status const st = qat_graph_describe(graph, dot, &text, err);
    if (!st)
        printf(dot ? "// %s graph\n%s" : "%s graph\n%s\n", title, text);
    free(text);
    return st;
}

static qat_status describe_rewritten(const source *s, bool training, bool dot, qat_error *err)
{
    qat_graph *graph = NULL;
    qat_status st = training ? qat_create_training_graph(&graph, s->graph, &s->quant, err)
                             : qat_create_eval_graph(&graph, s->graph, &s->quant, err);
    if (!st && s->restored) { /* so that ranges are shown */
        st = qat_graph_plan(graph, 1, QAT_PLAN_EVAL, err);
        if (!st)
            st = qat_checkpoint_params(qat_restored_checkpoint(s->restored), graph, err);
    }
    if (!st)
        st = describe(graph, training ? "training" : "eval", dot, err);
    qat_graph_free(graph);
    return st;
}

qat_status inspect_graphs(const char *path, tool_file kind, const tool_list *plugins,
                          const char *stage, bool dot, qat_error *err)
{
    source s = {0};
    bool const all = !strcmp(stage, "all");
    qat_status st = kind == TOOL_FILE_CHECKPOINT ? open_checkpoint(&s, path, plugins, err)
                                                 : open_recipe(&s, path, plugins, err);
    if (!st && !strcmp(stage, "float"))
        st = describe(s.graph, "float", dot, err);
    if (!st && (all || !strcmp(stage, "training")))
        st = describe_rewritten(&s, true, dot, err);
    if (!st && (all || !strcmp(stage, "eval")))
        st = describe_rewritten(&s, false, dot, err);
    source_close(&s);
    return st;
}

/* ------------------------------------------------------------------ integer graphs */

static void print_dot_tensor(const qat_qgraph *g, int index)
{
    const qat_qtensor *t = &g->tensors[index];
    char label[TOOL_LABEL_MAX];
    inspect_label(g, index, label);
    printf("  t%d [label=\"%s\\nS %.6g Z %d\", shape=ellipse];\n", index, label, (double)t->scale,
           (int)t->zero_point);
}

static void print_dot(const qat_qgraph *g)
{
    char label[TOOL_LABEL_MAX];
    printf("digraph integer {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (int i = 0; i < g->n_inputs; i++) {
        inspect_label(g, g->inputs[i], label);
        printf("  t%d [label=\"input %s\", shape=ellipse];\n", g->inputs[i], label);
    }
    for (int i = 0; i < g->n_ops; i++) {
        const qat_qop *op = &g->ops[i];
        printf("  op%d [label=\"%s\\n%s\"];\n", i, tool_shown_quoted(op->op),
               tool_shown_quoted(op->name));
        for (int k = 0; k < op->n_inputs; k++)
            if (!g->tensors[op->inputs[k]].data)
                printf("  t%d -> op%d;\n", op->inputs[k], i);
        for (int k = 0; k < op->n_outputs; k++) {
            print_dot_tensor(g, op->outputs[k]);
            printf("  op%d -> t%d;\n", i, op->outputs[k]);
        }
    }
    printf("}\n");
}

/** Its name, or its number if the name was left out. */
static void print_text_tensor(const qat_qgraph *g, int index)
{
    char label[TOOL_LABEL_MAX];
    inspect_label(g, index, label);
    printf(" %s", *g->tensors[index].name ? tool_shown(g->tensors[index].name) : label);
}

void inspect_print_integer_graph(const qat_qgraph *g, bool dot)
{
    if (dot) {
        print_dot(g);
        return;
    }
    for (int i = 0; i < g->n_ops; i++) {
        const qat_qop *op = &g->ops[i];
        printf("%s %s:", tool_shown(op->op), inspect_name(op->name));
        for (int k = 0; k < op->n_inputs; k++)
            print_text_tensor(g, op->inputs[k]);
        printf(" ->");
        for (int k = 0; k < op->n_outputs; k++)
            print_text_tensor(g, op->outputs[k]);
        printf("\n");
    }
}
