/** How long each layer takes in a training step. Measured only while somebody looks. */
#ifndef QAT_TOOLS_LIVE_LAYERS_H
#define QAT_TOOLS_LIVE_LAYERS_H

#include "qat/qat.h"

/** A layer: a node, and the nodes whose names begin with its name and '/'. */
typedef struct live_layer {
    char name[QAT_NAME_MAX];
    double seconds; /* of all steps */
} live_layer;

typedef struct live_layers {
    int n;
    live_layer *layers;
    int *of_node;
    double last;   /* the time when the node before was done */
    qat_pass pass; /* and its pass */
} live_layers;

/** Watch a graph from now on. false: no memory. */
bool live_layers_watch(live_layers *layers, qat_graph *graph);
void live_layers_free(live_layers *layers);
/** The slowest ones, at most `most`, the first one first, into at[]. Returns their number. */
int live_layers_slowest(const live_layers *layers, int most, const live_layer **at);

#endif
