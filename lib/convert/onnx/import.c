/** qat_onnx_import: makes an integer graph from a quantized .onnx file, node by node. */
#include "convert/onnx/import.h"
#include "qat/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const oq_operator *const families[] = {oq_layer_operators, oq_value_operators,
                                              oq_picture_operators};

/** The operator with this name among those of reals, or of QLinear operators. */
static const oq_operator *operator_named(const char *name, bool quantized)
{
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const oq_operator *o = families[f]; o->op; o++)
            if (!quantized ? !strcmp(o->op, name) : o->quantized && !strcmp(o->quantized, name))
                return o;
    return NULL;
}

const fv_operator *oq_step_named(const fv_operator *list, const char *name)
{
    for (; list->op; list++)
        if (!strcmp(list->op, name))
            return list;
    return NULL;
}

static void set_node(oq_importer *q, const qat_foreign_node *node)
{
    int const out = node->n_outputs ? node->outputs[0] : -1;
    q->b.node = node;
    q->b.wrong_attr = NULL;
    snprintf(q->b.name, sizeof q->b.name, "%s",
             *node->name ? node->name
             : out >= 0  ? q->b.from->values[out].name
                         : node->op);
}

/* ------------------------------------------------------------------ operators of reals */

/** Emit an operator; too many operands are those of Concat. */
static qat_status emit(oq_importer *q, const oq_operator *o, oq_operand *in, int n,
                       const oq_target *target)
{
    qat_status const st = o->emit(q, in, n, target);
    if (!st && q->b.wrong_attr)
        return fv_refuse(&q->b, "attribute %s is of another type", q->b.wrong_attr);
    return st;
}

qat_status oq_emit_noted(oq_importer *q, const oq_value *noted, const oq_target *target)
{
    const qat_foreign_node *node = q->b.node, *op = noted->op;
    const oq_operator *o = operator_named(op->op, false);
    oq_operand in[OQ_OPERANDS];
    oq_target limited = *target;
    int const n = op->n_inputs > 3 || o->operands < 0 ? op->n_inputs : 3;
    limited.lo = noted->lo;
    limited.hi = noted->hi;
    limited.affine = noted->affine;
    set_node(q, op);
    for (int i = 0; i < n; i++)
        in[i] = oq_input(q, i);
    qat_status const st = emit(q, o, in, n, &limited);
    set_node(q, node);
    return st;
}

/** Note an operator until its result is quantized. */
static qat_status note(oq_importer *q, const oq_operator *o)
{
    oq_value v = {.tensor = -1, .is_real = true, .op = q->b.node, .lo = -INFINITY, .hi = INFINITY};
    int const n = q->b.node->n_inputs;
    if (n < (o->operands < 0 ? 1 : o->operands) || n > OQ_OPERANDS)
        return fv_refuse(&q->b, "it has %d inputs", n);
    for (int i = 0; i < n; i++) {
        oq_operand x = oq_input(q, i);
        oq_operand const other = oq_input(q, !i);
        bool const is_added = !strcmp(o->op, "Add") && other.v.tensor >= 0 && other.v.is_real;
        if (x.v.op && !(is_added && oq_can_be_wide(x.v.op))) {
            qat_status const st = oq_settle(q, q->b.node->inputs[i], false, &x);
            if (st)
                return st;
            oq_set(q, q->b.node->inputs[i], &x.v, x.shape.rank, x.shape.dims);
        }
        if (x.v.tensor >= 0 && !x.v.is_real)
            return fv_refuse(&q->b, "its input %d is of codes, without a DequantizeLinear", i);
    }
    oq_output(q, 0, &v, 0, NULL);
    return QAT_OK;
}

/** Concat of codes, which keep their scale. */
static qat_status join_codes(oq_importer *q, const oq_operator *o)
{
    oq_operand in[OQ_OPERANDS];
    int n = 0;
    if (q->b.node->n_inputs > OQ_OPERANDS)
        return fv_refuse(&q->b, "it has %d inputs", q->b.node->n_inputs);
    for (int i = 0; i < q->b.node->n_inputs; i++) {
        oq_operand const x = oq_input(q, i);
        if (oq_is_empty(&x))
            continue;
        in[n++] = x;
        if (x.v.tensor < 0 || x.v.is_real ||
            !qat_same_grid(&q->graph->tensors[x.v.tensor], &q->graph->tensors[in[0].v.tensor]))
            return fv_refuse(&q->b, "its input %d is not of the codes of the first", i);
    }
    if (!n)
        return fv_refuse(&q->b, "none of its inputs has values");
    oq_target const target = oq_same_codes(q, &in[0], q->b.node->outputs[0]);
    return emit(q, o, in, n, &target);
}

/** Is an input codes, which no DequantizeLinear made reals? */
static bool has_codes(oq_importer *q)
{
    for (int i = 0; i < q->b.node->n_inputs; i++) {
        oq_operand const x = oq_input(q, i);
        if (x.v.tensor >= 0 && !x.v.is_real)
            return true;
    }
    return false;
}

/** A QLinear operator: operands in triples, the output's scale, a bias. */
static qat_status run_quantized(oq_importer *q, const oq_operator *o)
{
    const qat_foreign_node *node = q->b.node;
    oq_operand in[OQ_OPERANDS] = {0};
    oq_target target;
    bool const list = o->operands < 0;
    int const n = list ? (node->n_inputs - 2) / 3 : o->operands, first = list ? 2 : 0;
    if (n < 1 || n > OQ_OPERANDS || node->n_inputs < first + 3 * n || node->n_outputs < 1)
        return fv_refuse(&q->b, "it has %d inputs and %d outputs", node->n_inputs, node->n_outputs);
    if (!strcmp(o->op, "Gemm") && (o->output >= node->n_inputs || node->inputs[o->output] < 0))
        return fv_refuse(&q->b, "its output is not quantized");
    if (fv_attr_int(&q->b, "channels_last", 0))
        return fv_refuse(&q->b, "attribute channels_last = 1 is not supported");
    qat_status st = oq_grid(q, o->output, o->output + 1, &target);
    for (int i = 0; i < n && !st; i++) {
        st = oq_real_input(q, first + 3 * i, &in[i]);
        if (i == 1) /* weights: one scale for each output, along the first dimension or the last */
            in[i].v.constant.axis =
                !strcmp(o->op, "Conv") || fv_attr_int(&q->b, "transB", 0) ? 0 : 1;
    }
    if (!list)
        in[n] = oq_input(q, o->bias < 0 ? node->n_inputs : o->bias);
    target.value = node->outputs[0];
    return st ? st : emit(q, o, in, n, &target);
}

/** QLinearSigmoid and QLinearLeakyRelu: a function between two scales. */
static qat_status run_function(oq_importer *q, const fv_operator *f)
{
    const qat_foreign_node *node = q->b.node;
    oq_target target;
    int const at = node->n_inputs ? node->inputs[0] : -1;
    if (at < 0 || node->n_outputs < 1 || node->outputs[0] < 0)
        return fv_refuse(&q->b, "it has no input or no output");
    oq_value const before = q->values[at];
    oq_operand x;
    qat_status st = oq_grid(q, 3, 4, &target);
    if (!st)
        st = oq_real_input(q, 0, &x);
    if (st)
        return st;
    q->values[at] = x.v;
    st = f->build(&q->b);
    q->values[at] = before;
    x = (oq_operand){q->values[node->outputs[0]], q->b.values[node->outputs[0]]};
    target.value = node->outputs[0];
    return st ? st : oq_quantize(q, &x, &target);
}

/* ------------------------------------------------------------------ nodes */

/** The type of codes that a QuantizeLinear gives; stored: that of its zero point, or 0. */
static qat_status quantize_channels(oq_importer *q, oq_constant *c, int stored, oq_operand *x)
{
    int64_t const type = stored ? stored : fv_attr_int(&q->b, "output_dtype", OQ_UINT8);
    if (type != OQ_UINT8 && type != OQ_INT8)
        return fv_refuse(&q->b, "codes of type %s; activations of uint8 and int8 are supported",
                         oq_type_name(type));
    return oq_quantize_channels(q, c, type == OQ_INT8 ? QI_S8 : QI_U8, x);
}

static qat_status run_quantize(oq_importer *q)
{
    oq_operand x = oq_input(q, 0);
    oq_target target;
    if (!oq_is_given(&x) || q->b.node->n_outputs < 1)
        return fv_refuse(&q->b, "its input is not known");
    if (fv_attr_int(&q->b, "block_size", 0))
        return fv_refuse(&q->b, "attribute block_size is not supported");
    if (oq_is_constant(&x))
        return oq_quantize_constant(q, &x);
    oq_constant c = {0};
    int stored = 0;
    qat_status st = oq_scales(q, 1, 2, &c, &stored);
    if (!st && c.n_scales > 1)
        return quantize_channels(q, &c, stored, &x);
    if (!st)
        st = oq_grid(q, 1, 2, &target);
    target.value = q->b.node->outputs[0];
    return st || target.value < 0 ? st : oq_quantize(q, &x, &target);
}

static qat_status run_dequantize(oq_importer *q)
{
    oq_operand x;
    qat_status const st = oq_real_input(q, 0, &x);
    if (!st)
        oq_output(q, 0, &x.v, x.shape.rank, x.shape.dims);
    return st;
}

/** The dimensions of a value are known, too. */
static qat_status run_shape(oq_importer *q)
{
    oq_operand const x = oq_input(q, 0);
    const qat_foreign_tensor *c = x.shape.constant;
    int const rank = c ? c->rank : x.shape.rank;
    int64_t begin = fv_attr_int(&q->b, "start", 0), end = fv_attr_int(&q->b, "end", rank);
    begin = begin < 0 ? begin + rank : begin;
    end = end < 0 ? end + rank : end > rank ? rank : end;
    if (x.v.op || !oq_is_given(&x) || begin < 0 || begin > end)
        return fv_refuse(&q->b, "the shape of its input is not known");
    int64_t const n = end - begin;
    qat_foreign_tensor *t = fv_constant(&q->b, QAT_FOREIGN_INT, 1, &n);
    if (!t)
        return fv_graph_error(&q->b);
    if (n)
        memcpy((int64_t *)t->ints, (c ? c->dims : x.shape.dims) + begin,
               (size_t)n * sizeof *t->ints);
    fv_output_constant(&q->b, 0, t);
    return QAT_OK;
}

/** Are all inputs constants of the file, or computed from them? */
static bool is_constant(const oq_importer *q)
{
    for (int i = 0; i < q->b.node->n_inputs; i++) {
        const fv *v = fv_input(&q->b, i);
        if (v && !v->constant)
            return false;
    }
    return true;
}

/** Positions of another type are the same ones. */
static qat_status move_positions(oq_importer *q, const oq_operand *x)
{
    const char *op = q->b.node->op;
    if (strcmp(op, "Identity") != 0 && strcmp(op, "Cast") != 0)
        return fv_refuse(&q->b,
                         "its input is of int32 or int64, which only Gather takes as indices");
    oq_output(q, 0, &x->v, x->shape.rank, x->shape.dims);
    return QAT_OK;
}

/** Is it an operator of ONNX, or one of com.microsoft that means what is done here? */
static bool has_known_domain(const qat_foreign_node *node)
{
    static const char *const microsoft[] = {"QuantizeLinear", "DequantizeLinear", "QGemm", "Gelu"};
    bool known = !strncmp(node->op, "QLinear", 7);
    for (size_t i = 0; i < sizeof microsoft / sizeof *microsoft; i++)
        known = known || !strcmp(node->op, microsoft[i]);
    return !*node->domain || (known && !strcmp(node->domain, "com.microsoft"));
}

static qat_status run_node(oq_importer *q)
{
    const char *op = q->b.node->op;
    if (!has_known_domain(q->b.node))
        return fv_refuse(&q->b, "this operator of the domain '%.60s' is not supported",
                         q->b.node->domain);
    if (!strcmp(op, "QuantizeLinear"))
        return run_quantize(q);
    if (!strcmp(op, "DequantizeLinear"))
        return run_dequantize(q);
    if (!strcmp(op, "Shape"))
        return run_shape(q);
    bool done;
    if (is_constant(q) && strncmp(op, "QLinear", 7) != 0)
        return fv_fold(&q->b, &done);
    oq_operand const first = oq_input(q, 0);
    if (first.v.index)
        return move_positions(q, &first);
    const oq_operator *o = operator_named(op, true);
    if (o)
        return run_quantized(q, o);
    if (!strncmp(op, "QLinear", 7) && oq_step_named(oq_functions, op + 7))
        return run_function(q, oq_step_named(oq_functions, op + 7));
    qat_status const st = oq_with_constants(q, &done);
    if (st || done)
        return st;
    const fv_operator *step = oq_step_named(oq_moves, op);
    step = step ? step : oq_step_named(oq_picture_moves, op);
    step = step ? step : oq_step_named(oq_functions, op);
    if (step)
        return step->build(&q->b);
    o = operator_named(op, false);
    if (o && o->operands < 0 && has_codes(q) && q->b.node->n_outputs)
        return join_codes(q, o);
    return o ? note(q, o)
             : fv_refuse(&q->b, "this operator is not supported in quantized networks");
}

static qat_status walk(oq_importer *q)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < q->b.from->n_nodes && !st; i++) {
        set_node(q, &q->b.from->nodes[i]);
        st = run_node(q);
        if (!st && q->b.wrong_attr)
            st = fv_refuse(&q->b, "attribute %s is of another type", q->b.wrong_attr);
    }
    return st;
}

/* ------------------------------------------------------------------ inputs, outputs */

static bool is_among(int value, int n, const int *values)
{
    for (int i = 0; i < n; i++)
        if (values[i] == value)
            return value >= 0;
    return false;
}

static oq_target find_grid(oq_importer *q, int value)
{
    enum { MOST = 16 };
    qat_error ignored, *err = q->err;
    oq_target grid = {.scale = 1};
    int moved[MOST] = {value}, n_moved = 1;
    q->err = q->b.err = &ignored;
    for (int i = 0; i < q->b.from->n_nodes; i++) {
        const qat_foreign_node *n = &q->b.from->nodes[i];
        oq_target found;
        bool const reads = strstr(n->op, "QLinear") || !strcmp(n->op, "DequantizeLinear") ||
                           !strcmp(n->op, "QGemm");
        set_node(q, n);
        for (int k = 0; reads && k + 1 < n->n_inputs; k++)
            if (is_among(n->inputs[k], n_moved, moved) && !oq_grid(q, k + 1, k + 2, &found)) {
                q->err = q->b.err = err;
                return found;
            }
        bool const moves = oq_step_named(oq_moves, n->op) ||
                           oq_step_named(oq_picture_moves, n->op) || !strcmp(n->op, "Concat") ||
                           !strcmp(n->op, "Clip");
        if (n_moved < MOST && n->n_inputs && n->n_outputs && moves &&
            is_among(n->inputs[0], n_moved, moved))
            moved[n_moved++] = n->outputs[0];
    }
    q->err = q->b.err = err;
    return grid;
}

oq_target oq_grid_read(oq_importer *q, int value)
{
    const qat_foreign_node *node = q->b.node;
    char name[sizeof q->b.name];
    memcpy(name, q->b.name, sizeof name);
    oq_target const grid = find_grid(q, value);
    q->b.node = node;
    memcpy(q->b.name, name, sizeof name);
    return grid;
}

/** Is all that reads the value, quantized or not, a transpose from [N, H, W, C]? */
static bool is_packed(const oq_importer *q, int value)
{
    enum { MOST = 8 };
    static const int64_t to_planes[] = {0, 3, 1, 2};
    int same[MOST] = {value}, n_same = 1, transposes = 0;
    for (int i = 0; i < q->b.from->n_nodes; i++) {
        const qat_foreign_node *n = &q->b.from->nodes[i];
        if (!n->n_inputs || !n->n_outputs || !is_among(n->inputs[0], n_same, same))
            continue;
        if (strstr(n->op, "uantizeLinear") || !strcmp(n->op, "Identity")) {
            if (n_same < MOST)
                same[n_same++] = n->outputs[0];
            continue;
        }
        bool found = false;
        for (int k = 0; k < n->n_attrs && !strcmp(n->op, "Transpose"); k++)
            found = found || (!strcmp(n->attrs[k].name, "perm") && n->attrs[k].n == 4 &&
                              n->attrs[k].kind == QAT_FOREIGN_ATTR_INTS &&
                              !memcmp(n->attrs[k].ints, to_planes, sizeof to_planes));
        if (!found)
            return false;
        transposes++;
    }
    return transposes > 0;
}

/** Input i of the file is positions for Gather: integers, no codes. */
static qat_status add_positions(oq_importer *q, int i, qi_type type, int rank, const int64_t *dims)
{
    int const value = q->b.from->inputs[i];
    qat_qtensor t = {.type = type,
                     .bits = 8 * (int)qi_type_bytes(type),
                     .rank = rank < 1 ? 1 : rank,
                     .scale = 1,
                     .source_index = value};
    snprintf(t.name, sizeof t.name, "%s", q->b.from->values[value].name);
    qat_status const st = oq_dims(q, 0, rank, dims, t.dims);
    q->inputs[i] = st ? -1 : qat_qgraph_tensor(q->graph, &t, q->err);
    if (q->inputs[i] < 0)
        return st ? st : qat_append_status(q->inputs[i], q->err);
    oq_value const v = {.tensor = -1, .index = 1 + q->inputs[i]};
    oq_set(q, value, &v, rank, dims);
    return QAT_OK;
}

static qat_status add_input(oq_importer *q, int i)
{
    int const value = q->b.from->inputs[i];
    const qat_foreign_value *v = &q->b.from->values[value];
    int64_t dims[QAT_FOREIGN_RANK];
    for (int d = 0; d < v->rank; d++)
        dims[d] = d == 0 && v->dims[d] < 0 ? 1 : v->dims[d];
    bool const is_codes = v->stored == OQ_UINT8 || v->stored == OQ_INT8;
    bool const is_index = v->stored == OQ_INT32 || v->stored == OQ_INT64;
    int32_t checked[QI_MAX_RANK];
    static const qat_foreign_node input = {.op = "input", .domain = "", .name = ""};
    q->b.node = &input;
    snprintf(q->b.name, sizeof q->b.name, "%s", v->name);
    if (v->is_other)
        return fv_refuse(&q->b, "it is a sequence or an optional; data are tensors");
    if (v->rank < 0 || (!is_codes && !is_index && v->stored != OQ_FLOAT))
        return fv_refuse(&q->b,
                         "the network's input is not of uint8, int8, int32, int64 or float, or its "
                         "shape is not known");
    qat_status st = oq_few_dims(q, v->rank);
    if (!st)
        st = oq_dims(q, 0, v->rank, dims, checked);
    if (st)
        return st;
    q->inputs[i] = -1;
    q->packed = q->packed || (v->rank == 4 && is_packed(q, value));
    if (is_index)
        return add_positions(q, i, v->stored == OQ_INT64 ? QI_S64 : QI_S32, v->rank, dims);
    oq_value const real = {.tensor = OQ_FIRST_INPUT - i, .is_real = true};
    if (!is_codes) {
        oq_set(q, value, &real, v->rank, dims);
        return QAT_OK;
    }
    oq_target grid = oq_grid_read(q, value);
    grid.type = v->stored == OQ_INT8 ? QI_S8 : QI_U8;
    grid.value = value;
    return oq_append_output(q, &grid, v->rank == 4 && !q->packed, v->rank, dims, &q->inputs[i]);
}

static bool is_input(const oq_importer *q, int tensor)
{
    for (int i = 0; i < q->b.from->n_inputs; i++)
        if (q->inputs[i] == tensor)
            return true;
    return false;
}

/** A picture leaves with channels last, everything else in the file's order. */
static qat_status find_output(oq_importer *q, int i, int *outputs)
{
    int const value = q->b.from->outputs[i];
    static const qat_foreign_node output = {.op = "output", .domain = "", .name = ""};
    q->b.node = &output;
    snprintf(q->b.name, sizeof q->b.name, "%s", value < 0 ? "" : q->b.from->values[value].name);
    oq_operand x = {.v = {.tensor = -1}};
    if (value >= 0)
        x = (oq_operand){q->values[value], q->b.values[value]};
    qat_status st = x.v.op ? oq_settle(q, value, true, &x) : QAT_OK;
    if (!st && x.v.tensor < 0)
        return fv_refuse(&q->b, "the network's output is not quantized");
    if (!st && oq_has_real_channels(q, &x))
        st = oq_real_channels(q, &x);
    else if (!st && x.v.function)
        st = oq_own_grid(q, &x);
    if (!st)
        st = oq_order(q, &x, x.shape.rank == 4 && !q->packed);
    if (st)
        return st;
    /* It has a tensor of its own, because it may be exchanged as reals. */
    bool taken = is_input(q, x.v.tensor);
    for (int k = 0; k < i; k++)
        taken = taken || outputs[k] == x.v.tensor;
    outputs[i] = x.v.tensor;
    if (taken) {
        const qat_qtensor *t = &q->graph->tensors[x.v.tensor];
        int32_t dims[QI_MAX_RANK];
        memcpy(dims, t->dims, sizeof dims);
        st = oq_append_like(q, x.v.tensor, "output", t->rank, dims, &outputs[i]);
        if (!st)
            st = oq_move(q, "reshape", x.v.tensor, outputs[i], 0, NULL);
    }
    if (!st && x.v.is_real)
        q->graph->tensors[outputs[i]].border = QI_BORDER_FLOAT32;
    return st;
}

static qat_status finish(oq_importer *q)
{
    const qat_foreign_graph *g = q->b.from;
    int *outputs = fv_take(&q->b, &q->b.arena, (size_t)g->n_outputs + 1, sizeof *outputs);
    if (!outputs)
        return qat_out_of_memory(q->err, g->source);
    for (int i = 0; i < g->n_inputs; i++)
        if (q->inputs[i] < 0)
            return qat_fail(q->err, QAT_ERR_UNSUPPORTED,
                            "%s: its input '%.80s' is never quantized; a float network is trained: "
                            "[model] onnx = FILE in a recipe",
                            g->source, g->values[g->inputs[i]].name);
    qat_status st = QAT_OK;
    for (int i = 0; i < g->n_outputs && !st; i++)
        st = find_output(q, i, outputs);
    if (!st)
        st = qat_qgraph_set_io(q->graph, g->n_inputs, q->inputs, g->n_outputs, outputs, q->err);
    return st;
}

static qat_status begin(oq_importer *q)
{
    const qat_foreign_graph *g = q->b.from;
    size_t const n = (size_t)g->n_values + 1; /* and a place for what is between */
    q->b.values = fv_take(&q->b, &q->b.arena, n, sizeof *q->b.values);
    q->values = fv_take(&q->b, &q->b.arena, n, sizeof *q->values);
    q->inputs = fv_take(&q->b, &q->b.arena, (size_t)g->n_inputs + 1, sizeof *q->inputs);
    q->graph = qat_qgraph_new();
    if (!q->b.values || !q->values || !q->inputs || !q->graph)
        return qat_out_of_memory(q->err, g->source);
    for (int i = 0; i < g->n_values; i++) {
        q->values[i].tensor = -1;
        q->b.values[i].constant = g->values[i].constant;
    }
    q->values[n - 1].tensor = -1;
    for (int i = 0; i < g->n_inputs; i++)
        q->inputs[i] = -1;
    qat_status st = QAT_OK;
    for (int i = 0; i < g->n_inputs && !st; i++)
        st = add_input(q, i);
    return st;
}

qat_status oq_import(qat_qgraph **graph, const qat_foreign_graph *from, qat_error *err)
{
    oq_importer q = {.b = {.from = from, .room = from->room, .err = err, .head_node = -1},
                     .err = err};
    *graph = NULL;
    qat_status st = begin(&q);
    if (!st)
        st = walk(&q);
    if (!st)
        st = finish(&q);
    if (!st) {
        *graph = q.graph;
        q.graph = NULL;
    }
    qat_qgraph_free(q.graph);
    qat_arena_free(&q.b.arena);
    return st;
}

qat_status qat_onnx_import(qat_qgraph **graph, const void *bytes, size_t count, qat_error *err)
{
    qat_error ignored;
    qat_foreign_graph *from = NULL;
    *graph = NULL;
    err = err ? err : &ignored;
    qat_status st = qat_onnx_parse(&from, bytes, count, "the model", 0, err);
    if (!st)
        st = oq_import(graph, from, err);
    qat_foreign_free(from);
    return st;
}
