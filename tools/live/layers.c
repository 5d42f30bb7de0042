#include "tools/live/layers.h"

#include "tools/common/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Add the time since the node before. What lies between two passes belongs to no layer. */
static void see(void *context, const qat_node *node, qat_pass pass)
{
    live_layers *l = context;
    double const now = tool_now();
    if (pass == l->pass)
        l->layers[l->of_node[node->index]].seconds += now - l->last;
    l->pass = pass;
    l->last = now;
}

/** The outermost node around one: "conv1" of "conv1/relu/q", if there is a node of each name. */
static const qat_node *owner_of(const qat_graph *graph, const qat_node *node)
{
    char name[QAT_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s", node->name);
    for (char *slash; (slash = strrchr(name, '/'));) {
        *slash = 0;
        const qat_node *outer = qat_graph_find(graph, name);
        if (!outer)
            break;
        node = outer;
    }
    return node;
}

bool live_layers_watch(live_layers *l, qat_graph *graph)
{
    int const n = qat_graph_nodes(graph);
    *l = (live_layers){.n = n, .pass = QAT_PASS_UPDATE};
    l->layers = calloc((size_t)n + 1, sizeof *l->layers);
    l->of_node = calloc((size_t)n + 1, sizeof *l->of_node);
    if (!l->layers || !l->of_node) {
        live_layers_free(l);
        return false;
    }
    for (int i = 0; i < n; i++) {
        const qat_node *owner = owner_of(graph, qat_graph_node(graph, i));
        l->of_node[i] = owner->index;
        (void)snprintf(l->layers[owner->index].name, QAT_NAME_MAX, "%s", owner->name);
    }
    qat_graph_watch(graph, see, l);
    return true;
}

void live_layers_free(live_layers *l)
{
    free(l->layers);
    free(l->of_node);
    *l = (live_layers){0};
}

int live_layers_slowest(const live_layers *l, int most, const live_layer **at)
{
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        const live_layer *layer = &l->layers[i];
        int k = n < most ? n++ : most;
        for (; k > 0 && at[k - 1]->seconds < layer->seconds; k--)
            if (k < most)
                at[k] = at[k - 1];
        if (k < most)
            at[k] = layer;
    }
    while (n > 0 && at[n - 1]->seconds <= 0)
        n--;
    return n;
}
