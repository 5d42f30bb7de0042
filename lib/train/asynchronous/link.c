#include "train/asynchronous/link.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ values of a graph */

/** The values of a node that a message has; NULL: none. */
static qat_real *values_of(const qat_node *node, bool gradients)
{
    if (!node->is_param)
        return NULL;
    return gradients ? node->trainable ? node->grad : NULL : node->value;
}

size_t async_count(const qat_graph *g, bool gradients)
{
    size_t n = 0;
    for (int i = 0; i < qat_graph_nodes(g); i++)
        if (values_of(qat_graph_node(g, i), gradients))
            n += qat_shape_count(&qat_graph_node(g, i)->shape);
    return n;
}

void async_pack(const qat_graph *g, bool gradients, qat_real *to)
{
    for (int i = 0; i < qat_graph_nodes(g); i++) {
        const qat_node *node = qat_graph_node(g, i);
        const qat_real *from = values_of(node, gradients);
        size_t const n = from ? qat_shape_count(&node->shape) : 0;
        if (n)
            memcpy(to, from, n * sizeof *to);
        to += n;
    }
}

void async_unpack(qat_graph *g, bool gradients, const qat_real *from)
{
    for (int i = 0; i < qat_graph_nodes(g); i++) {
        const qat_node *node = qat_graph_node(g, i);
        qat_real *to = values_of(node, gradients);
        size_t const n = to ? qat_shape_count(&node->shape) : 0;
        if (n)
            memcpy(to, from, n * sizeof *to);
        from += n;
    }
}

/* ------------------------------------------------------------------ messages */

static void add_piece(async_link *link, int way, void *at, size_t bytes)
{
    link->ways[way].bytes += bytes;
    link->ways[way].pieces[link->ways[way].n++] = (qat_piece){link->rank, at, bytes};
}

qat_status async_link_open(const qat_async *a, async_link *link, int rank, qat_error *err)
{
    *link = (async_link){.rank = rank};
    link->params = malloc((a->n_params + 1) * sizeof *link->params);
    link->gradients = malloc((a->n_gradients + 1) * sizeof *link->gradients);
    link->observed = calloc(a->n_observed + 1, sizeof *link->observed);
    if (!link->params || !link->gradients || !link->observed)
        return qat_out_of_memory(err, "train.asynchronous");
    add_piece(link, LINK_DOWN, &link->order, sizeof link->order);
    add_piece(link, LINK_DOWN, link->params, a->n_params * sizeof *link->params);
    add_piece(link, LINK_UP, &link->report, sizeof link->report);
    add_piece(link, LINK_UP, link->observed, a->n_observed * sizeof *link->observed);
    add_piece(link, LINK_UP, link->gradients, a->n_gradients * sizeof *link->gradients);
    return QAT_OK;
}

bool async_link_free(async_link *link)
{
    if (link->ways[LINK_DOWN].on_its_way || link->ways[LINK_UP].on_its_way)
        return false;
    free(link->params);
    free(link->gradients);
    free(link->observed);
    return true;
}

qat_status async_link_begin(const qat_async *a, async_link *link, int way, bool sends,
                            qat_error *err)
{
    qat_exchange *x = &link->ways[way].x;
    *x = (qat_exchange){.channel = way};
    if (sends) {
        x->send = link->ways[way].pieces;
        x->n_send = link->ways[way].n;
    } else {
        x->receive = link->ways[way].pieces;
        x->n_receive = link->ways[way].n;
    }
    link->ways[way].on_its_way = true;
    return a->ranks->begin(a->ranks->context, x, err);
}

qat_status async_link_done(const qat_async *a, async_link *link, int way, bool wait, bool *done,
                           qat_error *err)
{
    *done = true;
    if (!link->ways[way].on_its_way)
        return QAT_OK;
    qat_status const st = a->ranks->done(a->ranks->context, &link->ways[way].x, wait, done, err);
    link->ways[way].on_its_way = st || !*done;
    return st;
}
