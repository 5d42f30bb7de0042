/**
 * Goes through the float graph node by node, in its order, and finds for each node the op of the
 * file that it must be.
 *
 *     float node                      op of the file            writes
 *     conv2d .. relu                  conv2d "conv"             "relu/q"
 *     batch_norm of its own           depthwise_conv2d "bn/depthwise"  "bn/q"
 *     relu of its own                 requantize "relu"         "relu/q"
 *     max_pool2d, reshape, flatten    max_pool2d, reshape       "<node>"
 *     strided_slice                   strided_slice             "<node>"
 *     state                           none                      a state "<node>/q"
 *     carry                           none                      what its state becomes
 *     embedding                       reshape, table, cast, gather "<node>/q"
 *     all others                      an op of the same name    "<node>/q"
 *     an input of pixels              table "<input>/q"         "<input>/q"
 *     what input_bits make narrower   requantize "<layer>/in/q" "<layer>/in/q"
 *
 * In profile onnx each requantize is a table, and sub is a table "<layer>/negated" and an add.
 *
 * Tensors are found by their names, and ops by the tensors that they write. An op must read exactly
 * the tensors that were found for the inputs of the float node. In the end every op of the file
 * must have been found.
 */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX = 2 * QAT_NAME_MAX };

static const char *with(char name[NAME_MAX], const char *base, const char *suffix)
{
    snprintf(name, NAME_MAX, "%s%s", base, suffix);
    return name;
}

/** The file's tensors that a float node reads; NULL: out of memory, which check_op reports. */
static int *inputs_of(cert *c, const qat_node *node)
{
    int *inputs = qat_arena_array(&c->arena, (size_t)node->n_data + 1, sizeof *inputs);
    for (int i = 0; inputs && i < node->n_data; i++)
        inputs[i] = cert_info(c, node->inputs[i])->tensor;
    return inputs;
}

typedef qat_status check_fn(cert *c, const cert_op *op);

/** What an op of the file must be. */
struct wanted {
    const char *tensor, *kernel, *name;
    const qat_shape *shape;
    const cert_layer *layer;
    const qat_node *head;
    int n_inputs;
    const int *inputs;
    int origin;
    check_fn *check;
};

static qat_status check_op(cert *c, const struct wanted *w, int *tensor)
{
    cert_op op = {.layer = w->layer,
                  .head = w->head,
                  .name = w->name,
                  .act_min = -INFINITY,
                  .act_max = INFINITY};
    if (w->layer && w->layer->activation)
        cert_is_activation(w->layer->activation, &op.act_min, &op.act_max);
    if (w->n_inputs && !w->inputs)
        return qat_out_of_memory(c->err, "certificate");
    qat_status st =
        cert_find_op(c, w->tensor, w->kernel, w->name, w->n_inputs, w->inputs, &op.node);
    if (st)
        return st;
    *tensor = op.node->outputs[0];
    cert_grid grid;
    st = cert_check_activation(c, *tensor, w->shape, w->origin);
    if (!st)
        st = cert_activation_grid(c, w->origin, &grid);
    if (st)
        return st;
    if (grid.empty) /* every value is 0 */
        op.act_min = op.act_max = 0;
    return w->check(c, &op);
}

/** The op that changes a scale. */
static const char *requantize_of(const cert *c)
{
    return c->source->profile == QAT_PROFILE_ONNX ? "table" : "requantize";
}

/* ------------------------------------------------------------------ layers */

static const struct {
    const char *op;
    check_fn *check;
} layer_checks[] = {
    {"conv2d", cert_check_accumulate},
    {"depthwise_conv2d", cert_check_accumulate},
    {"transpose_conv2d", cert_check_accumulate},
    {"fully_connected", cert_check_accumulate},
    {"add", cert_check_add},
    {"sub", cert_check_add},
    {"mul", cert_check_mul},
};

static check_fn *check_of(const char *op)
{
    for (size_t i = 0; i < sizeof layer_checks / sizeof *layer_checks; i++)
        if (strcmp(layer_checks[i].op, op) == 0)
            return layer_checks[i].check;
    return cert_check_custom;
}

static const cert_member *find_member(const cert *c, const qat_node *node, int root)
{
    for (int i = 0; i < c->n_members; i++)
        if (c->members[i].node == node && c->members[i].root == root)
            return &c->members[i];
    return NULL;
}

/**
 * What a layer with input_bits reads: its input, requantized once for all layers that do so. There
 * is no such op if the input has these codes already, as inside a schedule of bits.
 */
static qat_status walk_narrow(cert *c, const qat_node *head, int root, int *tensor)
{
    char name[NAME_MAX];
    const qat_node *node = head->inputs[0];
    const cert_member *known = find_member(c, node, root);
    int const from = *tensor;
    struct wanted const w = {.tensor = with(name, cert_first_reader(c, head)->name, "/in/q"),
                             .kernel = requantize_of(c),
                             .name = name,
                             .shape = &node->shape,
                             .n_inputs = 1,
                             .inputs = &from,
                             .origin = root,
                             .check = cert_check_requantize};
    if (known) {
        *tensor = known->tensor;
        return QAT_OK;
    }
    qat_status const st = cert_find_tensor(c, name) < 0
                              ? cert_check_activation(c, from, &node->shape, root)
                              : check_op(c, &w, tensor);
    c->members[c->n_members++] = (cert_member){node, root, *tensor};
    return st;
}

/** The negative of the second input of a difference. *tensor: that input, then the negative. */
static qat_status walk_negated(cert *c, const qat_node *head, int *tensor)
{
    char name[QAT_NAME_MAX];
    const qi_node *op = NULL;
    cert_part_name(name, head->name, "negated");
    qat_status const st = cert_find_op(c, name, "table", name, 1, tensor, &op);
    if (st)
        return st;
    *tensor = op->outputs[0];
    return cert_check_negated(c, op, name);
}

static qat_status walk_head(cert *c, const cert_layer *l)
{
    char tensor[NAME_MAX];
    check_fn *check = check_of(l->head->op->name);
    int *inputs = inputs_of(c, l->head);
    int const narrow = cert_input_of(c, l->head);
    bool const negates = c->source->profile == QAT_PROFILE_ONNX && qat_node_is_op(l->head, "sub");
    qat_status st = inputs && narrow >= 0 ? walk_narrow(c, l->head, narrow, &inputs[0]) : QAT_OK;
    if (!st && inputs && negates)
        st = walk_negated(c, l->head, &inputs[1]);
    if (st)
        return st;
    struct wanted const w = {.tensor = with(tensor, l->last->name, "/q"),
                             .kernel = check == cert_check_custom ? NULL
                                       : negates                  ? "add"
                                                                  : l->head->op->name,
                             .name = l->head->name,
                             .shape = &l->last->shape,
                             .layer = l,
                             .head = l->head,
                             .n_inputs = l->head->n_data,
                             .inputs = inputs,
                             .origin = l->last->index,
                             .check = check};
    return check_op(c, &w, &c->nodes[l->last->index].tensor);
}

static qat_status walk_activation(cert *c, const cert_layer *l)
{
    char tensor[NAME_MAX];
    struct wanted const w = {.tensor = with(tensor, l->last->name, "/q"),
                             .kernel = requantize_of(c),
                             .name = l->last->name,
                             .shape = &l->last->shape,
                             .layer = l,
                             .n_inputs = 1,
                             .inputs = inputs_of(c, l->last),
                             .origin = l->last->index,
                             .check = cert_check_requantize};
    return check_op(c, &w, &c->nodes[l->last->index].tensor);
}

/** A change of shape before or after a batch norm of its own. */
static qat_status walk_reshape(cert *c, const char *name, const qat_shape *shape, int origin,
                               int *tensor)
{
    struct wanted const w = {.tensor = name,
                             .kernel = "reshape",
                             .name = name,
                             .shape = shape,
                             .n_inputs = 1,
                             .inputs = tensor,
                             .origin = origin,
                             .check = cert_check_reshape};
    return check_op(c, &w, tensor);
}

/** Batch norm or bias that belongs to no convolution. */
static qat_status walk_affine(cert *c, const cert_layer *l)
{
    char tensor[NAME_MAX], name[NAME_MAX], back[NAME_MAX];
    const qat_node *from = l->first->inputs[0];
    const qat_shape *s = &from->shape;
    qat_shape const rank4 =
        s->rank == 4 ? *s : QAT_SHAPE(1, 1, s->rank == 3 ? s->dims[1] : 1, qat_shape_channels(s));
    int x = cert_info(c, from)->tensor;
    qat_status st = QAT_OK;
    if (s->rank != 4)
        st = walk_reshape(c, with(name, l->first->name, "/rank4"), &rank4,
                          cert_info(c, from)->origin, &x);
    int y = -1;
    struct wanted const w = {.tensor = with(tensor, l->last->name, "/q"),
                             .kernel = "depthwise_conv2d",
                             .name = with(name, l->first->name, "/depthwise"),
                             .shape = &rank4,
                             .layer = l,
                             .n_inputs = 1,
                             .inputs = &x,
                             .origin = l->last->index,
                             .check = cert_check_accumulate};
    if (!st)
        st = check_op(c, &w, &y);
    if (!st && s->rank != 4)
        st = walk_reshape(c, with(back, l->first->name, "/back"), &l->last->shape, l->last->index,
                          &y);
    c->nodes[l->last->index].tensor = y;
    return st;
}

static qat_status walk_layer(cert *c, const cert_layer *l)
{
    if (l->head)
        return walk_head(c, l);
    return l->first == l->activation ? walk_activation(c, l) : walk_affine(c, l);
}

/* ------------------------------------------------------------------ other nodes */

/** A state is no op's output: it is found by its name. */
static qat_status walk_state(cert *c, const qat_node *node)
{
    char name[NAME_MAX];
    int *tensor = &c->nodes[node->index].tensor;
    with(name, node->name, "/q");
    for (int i = 0; i < qi_tensor_count(c->model); i++)
        if (cert_tensor(c, i)->kind == QI_STATE && strcmp(cert_tensor(c, i)->name, name) == 0)
            *tensor = i;
    if (*tensor < 0)
        return qat_fail(c->err, QAT_ERR_MISMATCH, "%s: the file has no state %s", node->name, name);
    return cert_check_activation(c, *tensor, &node->shape, node->index);
}

/** The state that is its second input becomes the tensor of the first. */
static qat_status walk_carry(cert *c, const qat_node *node, int *tensor)
{
    const qat_node *state = node->inputs[1];
    *tensor = cert_info(c, node->inputs[0])->tensor;
    return cert_equal(c, state->name, "the tensor that it becomes",
                      cert_tensor(c, cert_info(c, state)->tensor)->next, *tensor);
}

/** Every state of the file is one of the network. */
static qat_status count_states(cert *c)
{
    int states = 0;
    for (int i = 0; i < c->count; i++)
        states += c->nodes[i].kind == CERT_STATE && c->nodes[i].copied;
    return cert_equal(c, "the model", "the number of states", qi_state_count(c->model), states);
}

static const struct {
    const char *op, *kernel;
    check_fn *check;
} passes[] = {
    {"max_pool2d", "max_pool2d", cert_check_pool},
    {"resize_nearest", "resize_nearest", cert_check_resize},
    {"strided_slice", "strided_slice", cert_check_slice},
    {"reshape", "reshape", cert_check_reshape},
    {"flatten", "reshape", cert_check_reshape},
};

/**
 * An op that is not in the file: its readers read its input. A plugin's op says itself whether it
 * leaves the codes as they are; if not, they are another function's.
 */
static qat_status walk_left_out(cert *c, const qat_node *node)
{
    char why[QAT_NAME_MAX];
    const qat_quant *quant = node->op->quant;
    c->nodes[node->index].tensor = cert_info(c, node->inputs[0])->tensor;
    if (qat_node_is_op(node, "dropout") || quant->is_view || quant->training_factor)
        return QAT_OK;
    snprintf(why, sizeof why, "op %s, which the file leaves out", node->op->name);
    cert_uncertified(c, node->name, why);
    return QAT_OK;
}

/** Ops that pass codes on. Dropout is not in the file. */
static qat_status walk_pass(cert *c, const qat_node *node)
{
    int *tensor = &c->nodes[node->index].tensor;
    struct wanted w = {.tensor = node->name,
                       .name = node->name,
                       .shape = &node->shape,
                       .head = node,
                       .n_inputs = 1,
                       .origin = cert_info(c, node)->origin,
                       .check = cert_check_custom};
    if (qat_node_is_op(node, "carry"))
        return walk_carry(c, node, tensor);
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (strcmp(passes[i].op, node->op->name) == 0) {
            w.kernel = passes[i].kernel;
            w.check = passes[i].check;
        }
    if (qat_node_is_op(node, "dropout") ||
        (!w.kernel && node->op->quant && !node->op->quant->freeze))
        return walk_left_out(c, node);
    w.inputs = inputs_of(c, node);
    return check_op(c, &w, tensor);
}

static bool has_tensor(const cert *c, const char *name)
{
    for (int i = 0; i < qi_tensor_count(c->model); i++)
        if (strcmp(cert_tensor(c, i)->name, name) == 0)
            return true;
    return false;
}

/**
 * A member of a concatenation that has another range. It is brought into the class by a
 * requantization, once for each class. There is no requantization if scale and zero point happen to
 * be equal.
 */
static qat_status walk_member(cert *c, const qat_node *concat, int slot, int *tensor)
{
    char name[NAME_MAX];
    const qat_node *node = concat->inputs[slot];
    int const root = cert_root(c, concat->index), from = cert_info(c, node)->tensor;
    const cert_member *known = find_member(c, node, root);
    snprintf(name, sizeof name, "%s/in%d/q", concat->name, slot);
    struct wanted const w = {.tensor = name,
                             .kernel = requantize_of(c),
                             .name = name,
                             .shape = &node->shape,
                             .n_inputs = 1,
                             .inputs = &from,
                             .origin = concat->index,
                             .check = cert_check_requantize};
    *tensor = known ? known->tensor : from;
    qat_status const st = !known && has_tensor(c, name) ? check_op(c, &w, tensor) : QAT_OK;
    if (!known)
        c->members[c->n_members++] = (cert_member){node, root, *tensor};
    return st;
}

static qat_status walk_concat(cert *c, const qat_node *node)
{
    char tensor[NAME_MAX];
    qat_status st = QAT_OK;
    int *inputs = inputs_of(c, node);
    for (int i = 0; inputs && !st && i < node->n_data; i++) {
        const cert_node *member = cert_info(c, node->inputs[i]);
        bool const joined = member->range == CERT_OBSERVED &&
                            cert_root(c, member->origin) == cert_root(c, node->index);
        if (!joined)
            st = walk_member(c, node, i, &inputs[i]);
    }
    struct wanted const w = {.tensor = with(tensor, node->name, "/q"),
                             .kernel = "concat",
                             .name = node->name,
                             .shape = &node->shape,
                             .head = node,
                             .n_inputs = node->n_data,
                             .inputs = inputs,
                             .origin = node->index,
                             .check = cert_check_concat};
    return st ? st : check_op(c, &w, &c->nodes[node->index].tensor);
}

/** The op that pads, for an average that counts its padding. *tensor: its input before the call,
 * its output after it. */
static qat_status walk_padded(cert *c, const qat_node *pool, int *tensor)
{
    char name[NAME_MAX];
    qat_shape const shape = cert_padded_shape(pool);
    int const from = *tensor;
    struct wanted const w = {.tensor = with(name, pool->name, "/padded"),
                             .kernel = "pad",
                             .name = name,
                             .shape = &shape,
                             .head = pool,
                             .n_inputs = 1,
                             .inputs = &from,
                             .origin = cert_info(c, pool->inputs[0])->origin,
                             .check = cert_check_pad};
    return check_op(c, &w, tensor);
}

const char *cert_numbers_kernel(bool is_wide)
{
    return is_wide ? "requantize" : "table";
}

/** Pools that average, softmax, curves, tables, custom ops. */
static qat_status walk_plain(cert *c, const qat_node *node)
{
    char tensor[NAME_MAX];
    bool const paper = c->source->profile == QAT_PROFILE_PAPER;
    bool const wide = c->source->quant.activation_bits == QAT_WIDE_BITS;
    const cert_curve *curve = cert_curve_of(node);
    int *inputs = inputs_of(c, node);
    qat_status const st =
        inputs && cert_counts_padding(node) ? walk_padded(c, node, &inputs[0]) : QAT_OK;
    if (st)
        return st;
    struct wanted w = {.tensor = with(tensor, node->name, "/q"),
                       .name = node->name,
                       .shape = &node->shape,
                       .head = node,
                       .n_inputs = node->n_data,
                       .inputs = inputs,
                       .origin = cert_info(c, node)->origin,
                       .check = cert_check_custom};
    if (qat_node_is_op(node, "embedding")) { /* its inputs are a constant and what it makes of x */
        w.kernel = "gather", w.check = cert_check_embedding;
        w.n_inputs = 0;
    } else if (qat_node_is_op(node, "global_average_pool") && !paper)
        w.kernel = "mean", w.check = cert_check_mean;
    else if (qat_node_is_op(node, "global_average_pool") || qat_node_is_op(node, "average_pool2d"))
        w.kernel = "average_pool2d", w.check = cert_check_pool;
    else if (qat_node_is_op(node, "resize_bilinear"))
        w.kernel = "resize_bilinear", w.check = cert_check_resize;
    else if (qat_node_is_op(node, "softmax") && wide)
        w.kernel = "softmax16", w.check = cert_check_wide_softmax;
    else if (curve && wide)
        w.kernel = curve->op, w.check = cert_check_wide_sigmoid;
    else if (qat_node_is_op(node, "leaky_relu") && wide)
        w.kernel = "prelu", w.check = cert_check_wide_leaky_relu;
    else if (qat_node_is_op(node, "softmax"))
        w.kernel = "softmax", w.check = cert_check_softmax;
    else if (curve && curve->paper && paper)
        w.kernel = curve->op, w.check = curve->paper;
    else if (curve)
        w.kernel = "table", w.check = cert_check_curve;
    else if ((!node->op->quant->freeze || qat_node_is_op(node, "leaky_relu")) &&
             (cert_info(c, node)->kind == CERT_TABLE || cert_info(c, node)->kind == CERT_FIXED))
        w.kernel = "table", w.check = cert_check_custom_table;
    return check_op(c, &w, &c->nodes[node->index].tensor);
}

/* ------------------------------------------------------------------ inputs, outputs */

static qat_status walk_input(cert *c, const qat_node *node, int number)
{
    char name[NAME_MAX], pixels[NAME_MAX];
    int *tensor = &c->nodes[node->index].tensor;
    const qi_node *op = NULL;
    if (number >= qi_input_count(c->model))
        return qat_fail(
            c->err, QAT_ERR_MISMATCH,
            "%s: the checkpoint's network has this input, but the file has only %d inputs",
            node->name, (int)qi_input_count(c->model));
    int const from = qi_input_at(c->model, number);
    with(name, node->name, "/q");
    if (number > 0 || c->source->channels <= 0) {
        *tensor = from;
        qat_status const st = cert_equal_text(c, node->name, "the name of its tensor",
                                              cert_tensor(c, from)->name, name);
        return st ? st : cert_check_activation(c, from, &node->shape, node->index);
    }
    snprintf(pixels, sizeof pixels, "%.*s/pixels", QAT_NAME_MAX - 8, name);
    qat_status st = cert_equal_text(c, node->name, "the name of its tensor",
                                    cert_tensor(c, from)->name, pixels);
    if (!st)
        st = cert_find_op(c, name, "table", name, 1, &from, &op);
    if (st)
        return st;
    *tensor = op->outputs[0];
    st = cert_check_activation(c, *tensor, &node->shape, node->index);
    return st ? st : cert_check_pixels(c, op);
}

static qat_status walk_outputs(cert *c)
{
    int const n = qat_graph_outputs(c->graph);
    qat_status st =
        cert_equal(c, "the model", "the number of outputs", qi_output_count(c->model), n);
    for (int i = 0; !st && i < n; i++) {
        const qat_node *node = qat_graph_output_at(c->graph, i);
        st = cert_equal_text(c, node->name, "the output",
                             cert_tensor(c, qi_output_at(c->model, i))->name,
                             cert_tensor(c, cert_info(c, node)->tensor)->name);
        if (!st)
            st = cert_equal(c, node->name, "the output", qi_output_at(c->model, i),
                            cert_info(c, node)->tensor);
    }
    return st;
}

static qat_status walk_node(cert *c, const qat_node *node)
{
    const cert_node *info = cert_info(c, node);
    if (info->layer >= 0) {
        const cert_layer *l = &c->layers[info->layer];
        return node == l->last ? walk_layer(c, l) : QAT_OK;
    }
    switch (info->kind) {
    case CERT_PASS:
        return walk_pass(c, node);
    case CERT_CONCAT:
        return walk_concat(c, node);
    case CERT_STATE:
        return walk_state(c, node);
    case CERT_NONE:
        return qat_fail(c->err, QAT_ERR_MISMATCH,
                        "%s: the checkpoint's network has this layer with the op %s, for which no "
                        "op of a file exists",
                        node->name, node->op->name);
    default:
        return walk_plain(c, node);
    }
}

qat_status cert_walk(cert *c)
{
    qat_status st = cert_check_origins(c);
    int n_inputs = 0;
    for (int i = 0; !st && i < c->count; i++) {
        const qat_node *node = qat_graph_node(c->graph, i);
        if (node->is_param || !c->nodes[i].copied)
            continue;
        st = qat_node_is_input(node) ? walk_input(c, node, n_inputs++) : walk_node(c, node);
    }
    if (!st)
        st = cert_equal(c, "the model", "the number of inputs", qi_input_count(c->model), n_inputs);
    if (!st)
        st = walk_outputs(c);
    if (!st)
        st = count_states(c);
    for (int i = 0; !st && i < qi_node_count(c->model); i++)
        if (!c->seen[i])
            st = qat_fail(
                c->err, QAT_ERR_MISMATCH,
                "%s: the file has this op (%s), but the checkpoint's network has no such layer",
                qi_node_at(c->model, i)->name, qi_node_at(c->model, i)->kernel->name);
    return st;
}
