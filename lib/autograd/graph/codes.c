/**
 * Values that are kept as codes: one byte each instead of four (backend.h). In a training plan the
 * reals of such a node have memory only while a node reads them. They are made again each time:
 *
 *     node x                codes  [m ......................................... 2n - 1 - i]
 *     its own forward       reals  [i]                                [2n - 1 - i]
 *     consumer c            reals       [c]                 [2n - 1 - c]
 *                                       forward, unless     backward
 *                                       it reads codes
 *
 * m is where the codes are made: i, or before (backend.h, makes_codes).
 *
 * Neighbouring nodes whose only data input is the same (the two convolutions of a two_pass layer)
 * share its reals in backward. The later node runs first and makes them.
 *
 * Notes live as long as codes. If backward reads notes instead of a value, that value ends with the
 * forward of its last reader.
 */
#include "autograd/graph/core.h"
#include "autograd/loops/tail.h"

static bool reads_codes(const qat_graph *graph, const qat_node *node, int input)
{
    return graph->backend->reads_codes(graph->backend_context, node, input);
}

/** Does the plan keep only what the backend wants of values? */
static bool keeps_for_itself(const qat_graph *graph)
{
    return graph->backend && graph->plan == QAT_PLAN_TRAIN &&
           graph->backend->always(graph->backend_context);
}

static void find_at(const qat_graph *graph, core_node *core)
{
    const qat_backend *backend = graph->backend;
    core->has_codes = backend && backend->has_codes(graph->backend_context, &core->node);
    core->coded =
        core->has_codes && !core->is_output && core->consumers > 0 && keeps_for_itself(graph);
    core->last_reader = keeps_for_itself(graph) && backend->last_reader
                            ? backend->last_reader(graph->backend_context, &core->node)
                            : NULL;
    core->outlives_readers = backend && backend->outlives_readers &&
                             backend->outlives_readers(graph->backend_context, &core->node);
}

qat_status qat_core_find_coded(qat_graph *graph, qat_error *err)
{
    for (int i = 0; i < graph->count; i++) {
        core_node *core = graph->nodes[i];
        find_at(graph, core);
        if (!graph->backend || !core->node.n_data)
            continue;
        core->borrowed =
            qat_arena_array(&graph->arena, 2 * (size_t)core->node.n_data, sizeof(qat_real *));
        if (!core->borrowed)
            return qat_out_of_memory(err, "plan");
    }
    return QAT_OK;
}

bool qat_core_ends_with_backward(const core_node *core)
{
    const qat_graph *graph = core->node.graph;
    return core->node.op && !core->is_output && core->consumers > 0 && !core->outlives_readers &&
           keeps_for_itself(graph);
}

static void add(pack_buffer *buffers, int *n, const core_node *of, int owner, int kind, int moment)
{
    buffers[(*n)++] = (pack_buffer){.bytes = qat_shape_count(&of->node.shape) * sizeof(qat_real),
                                    .start = moment,
                                    .end = moment,
                                    .owner = owner,
                                    .kind = kind};
}

/** Do nodes i and i + 1 share the reals of their only data input in backward? */
static bool share_input(const qat_graph *graph, int i)
{
    if (i < 0 || i + 1 >= graph->count)
        return false;
    const qat_node *a = &graph->nodes[i]->node, *b = &graph->nodes[i + 1]->node;
    return a->n_data == 1 && b->n_data == 1 && a->inputs[0] == b->inputs[0] && a->op->backward &&
           b->op->backward && !core_of(a)->head && !core_of(b)->head;
}

/** The node whose buffer has them: the last of those that share, which runs first in backward. */
static int holder_of(const qat_graph *graph, int i)
{
    while (share_input(graph, i))
        i++;
    return i;
}

/** Has another node made the reals of node i's input in this backward? */
static bool is_made(const qat_graph *graph, int i)
{
    for (int k = holder_of(graph, i); k > i; k--)
        if (graph->nodes[k]->active && !graph->nodes[k]->idle)
            return true;
    return false;
}

/** List the reals that node borrows while it runs at moment i. */
static int borrowed_by(const qat_graph *graph, const core_node *core, int i, pack_buffer *buffers)
{
    const qat_node *node = &core->node;
    int n = 0;
    for (int k = 0; k < node->n_data; k++) {
        const core_node *input = core_of(node->inputs[k]);
        if (!input->coded)
            continue;
        if (!reads_codes(graph, node, k))
            add(buffers, &n, input, node->index, CORE_BORROWED + 2 * k, i);
        if (!node->op->backward || holder_of(graph, node->index) != node->index)
            continue;
        add(buffers, &n, input, node->index, CORE_BORROWED + 2 * k + 1, 2 * graph->count - 1 - i);
        for (int first = node->index; share_input(graph, first - 1); first--)
            buffers[n - 1].end++;
    }
    return n;
}

/** Does backward read the node's own value? Elementwise ops in strips do not. */
static bool looks_at_own(const core_node *core)
{
    return core->coded && !core->node.op->elementwise;
}

static size_t note_bytes(const qat_graph *graph, const qat_node *node)
{
    const qat_backend *backend = graph->backend;
    return keeps_for_itself(graph) && backend->note_bytes
               ? backend->note_bytes(graph->backend_context, node)
               : 0;
}

/** The moment at which a node's codes are made, which may be before its value is. */
static int codes_made_at(const qat_graph *graph, const core_node *core, int at)
{
    const qat_backend *backend = graph->backend;
    const qat_node *by =
        backend->makes_codes ? backend->makes_codes(graph->backend_context, &core->node) : NULL;
    return by ? by->index : at;
}

int qat_core_code_buffers(const qat_graph *graph, pack_buffer *buffers)
{
    int n = 0;
    for (int i = 0; i < graph->count; i++) {
        const core_node *core = graph->nodes[i];
        int const at = core->head ? core->head->index : i, last = 2 * graph->count;
        bool const train = graph->plan == QAT_PLAN_TRAIN;
        int const made = core->has_codes ? codes_made_at(graph, core, at) : at;
        if (core->has_codes)
            buffers[n++] =
                (pack_buffer){.bytes = qat_shape_count(&core->node.shape) + CORE_CODES_SLACK,
                              .start = train ? made : 0,
                              .end = train ? last - 1 - at : last,
                              .owner = i,
                              .kind = CORE_CODES};
        if (note_bytes(graph, &core->node))
            buffers[n++] = (pack_buffer){.bytes = note_bytes(graph, &core->node),
                                         .start = at,
                                         .end = last - 1 - at,
                                         .owner = i,
                                         .kind = CORE_NOTES};
        if (core->coded)
            add(buffers, &n, core, i, CORE_OWN_REALS, at);
        if (looks_at_own(core))
            add(buffers, &n, core, i, CORE_OWN_REALS_AGAIN, last - 1 - at);
        n += borrowed_by(graph, core, at, buffers + n);
    }
    return n;
}

int qat_core_most_code_buffers(const qat_graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph->count; i++)
        n += 4 + 2 * graph->nodes[i]->node.n_data;
    return n;
}

void qat_core_hand_out_codes(qat_graph *graph, const pack_buffer *b)
{
    core_node *core = graph->nodes[b->owner];
    unsigned char *memory = graph->memory + b->offset;
    if (b->kind == CORE_CODES)
        core->codes = memory;
    else if (b->kind == CORE_NOTES)
        core->notes = memory;
    else if (b->kind == CORE_OWN_REALS)
        core->node.value = core->own_reals = (qat_real *)(void *)memory;
    else if (b->kind == CORE_OWN_REALS_AGAIN)
        core->own_reals_again = (qat_real *)(void *)memory;
    else
        core->borrowed[b->kind - CORE_BORROWED] = (qat_real *)(void *)memory;
}

uint8_t *qat_node_codes(const qat_node *node)
{
    return core_of(node)->codes;
}

void *qat_node_notes(const qat_node *node)
{
    return core_of(node)->notes;
}

bool qat_node_is_coded(const qat_node *node)
{
    return core_of(node)->coded;
}

void qat_core_borrow(qat_graph *graph, qat_node *node, qat_pass pass)
{
    bool const backward = pass == QAT_PASS_BACKWARD;
    core_node *last = core_of(qat_tail_last(node));
    for (int k = 0; k < node->n_data; k++) {
        qat_node *input = node->inputs[k];
        if (!core_of(input)->coded || (!backward && reads_codes(graph, node, k)))
            continue;
        int const holder = backward ? holder_of(graph, node->index) : node->index;
        input->value = graph->nodes[holder]->borrowed[2 * k + backward];
        if (!backward || !is_made(graph, node->index))
            graph->backend->decode(graph->backend_context, input);
    }
    if (last->coded && !backward)
        last->node.value = last->own_reals;
    if (backward && looks_at_own(core_of(node))) {
        node->value = core_of(node)->own_reals_again;
        graph->backend->decode(graph->backend_context, node);
    }
}
