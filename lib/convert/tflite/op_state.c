/**
 * What is kept from run to run: SVDF's state, and variables of resources. VAR_HANDLE names one,
 * READ_VARIABLE and ASSIGN_VARIABLE read and write it, CALL_ONCE runs the subgraph that sets them
 * before the first run. Each becomes a state of the graph, which begins at real zero: so must the
 * variable.
 */
#include "convert/tflite/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { X, W, W_TIME, BIAS, STATE, INPUTS };
/** Parameters of the engine's op. */
enum { RANK, MULT_STATE, SHIFT_STATE, MULT_Y, SHIFT_Y, CLAMP_LO, CLAMP_HI, PARAMS };

/** The engine's tensors, and their shapes in the file. */
struct svdf {
    int inputs[INPUTS], outputs[2];
    tfl_shape x, w, time, state;
    int rank;
};

/** S_a S_b / S_c in float32, as TensorFlow Lite has it, as a multiplier. */
static void multiplier_of(const tfl_importer *im, int a, int b, int c, int32_t *mult,
                          int32_t *shift)
{
    const qat_qtensor *t = im->graph->tensors;
    float const product = t[a].scale * t[b].scale, m = product / t[c].scale;
    qat_requantize_multiplier((double)m, mult, shift);
}

/** Its multipliers are for all filters. */
static qat_status load_weights(tfl_importer *im, int i, int *tensor)
{
    const tfl_tensor *t = tfl_tensor_of(im, i);
    if (t && t->scales.count > 1)
        return tfl_refuse(im, "its weights, tensor %d (%s), have several scales", im->op->inputs[i],
                          t->name);
    return tfl_weights(im, i, 0, tensor);
}

static qat_status load_tensors(tfl_importer *im, struct svdf *s)
{
    qat_status st = tfl_input(im, X, &s->inputs[X]);
    if (!st)
        st = tfl_input_shape(im, X, 2, 2, &s->x);
    if (!st)
        st = tfl_input_shape(im, W, 2, 2, &s->w);
    if (!st)
        st = tfl_input_shape(im, W_TIME, 2, 2, &s->time);
    if (!st)
        st = load_weights(im, W, &s->inputs[W]);
    if (!st)
        st = load_weights(im, W_TIME, &s->inputs[W_TIME]);
    if (!st)
        st = tfl_state(im, STATE, &s->inputs[STATE]);
    if (!st)
        st = tfl_input_shape(im, STATE, 2, 2, &s->state);
    return st;
}

/** Without a bias it is zeros. */
static qat_status load_bias(tfl_importer *im, struct svdf *s, int32_t units)
{
    qat_status const st = tfl_bias(im, BIAS, units, false, &s->inputs[BIAS]);
    if (st || s->inputs[BIAS] >= 0)
        return st;
    int32_t *zeros = calloc((size_t)units, sizeof *zeros);
    char name[QAT_NAME_MAX];
    if (!zeros)
        return qat_out_of_memory(im->err, NULL);
    qat_part_name(name, im->model->tensors[im->op->outputs[0]].name, "bias");
    s->inputs[BIAS] = qat_qgraph_constant_s32(im->graph, name, units, 1, zeros, im->err);
    free(zeros);
    return qat_append_status(s->inputs[BIAS], im->err);
}

static qat_status load(tfl_importer *im, struct svdf *s)
{
    qat_status st = load_tensors(im, s);
    if (st)
        return st;
    s->rank = fb_i32(&im->op->options, SVDF_RANK, 0);
    if (fb_u8(&im->op->options, SVDF_ACTIVATION, TFL_ACT_NONE) != TFL_ACT_RELU)
        return tfl_refuse(im, "its activation is not RELU, which the integer kernel asks for");
    if (s->rank < 1 || s->w.dims[0] % s->rank)
        return tfl_refuse(im, "rank %d of %d filters", s->rank, (int)s->w.dims[0]);
    int32_t const units = s->w.dims[0] / s->rank;
    st = load_bias(im, s, units);
    if (!st)
        st =
            tfl_output(im, 0, &(tfl_shape){2, {s->x.dims[0], units}}, s->inputs[X], &s->outputs[0]);
    return st ? st : tfl_between(im, "state", &s->state, s->inputs[STATE], &s->outputs[1]);
}

/** The engine checks types and shapes once more. */
static qat_status import_svdf(tfl_importer *im)
{
    struct svdf s = {0};
    int32_t params[PARAMS] = {0};
    qat_status const st = load(im, &s);
    if (st)
        return st;
    params[RANK] = s.rank;
    multiplier_of(im, s.inputs[X], s.inputs[W], s.inputs[STATE], &params[MULT_STATE],
                  &params[SHIFT_STATE]);
    multiplier_of(im, s.inputs[STATE], s.inputs[W_TIME], s.outputs[0], &params[MULT_Y],
                  &params[SHIFT_Y]);
    qat_tensor_codes(&im->graph->tensors[s.outputs[0]], &params[CLAMP_LO], &params[CLAMP_HI]);
    tfl_next(im, STATE, s.outputs[1]);
    int const op =
        qat_qgraph_op(im->graph, "svdf", im->model->tensors[im->op->outputs[0]].name,
                      QI_ROUND_TWICE, INPUTS, s.inputs, 2, s.outputs, PARAMS, params, 0, im->err);
    return qat_append_status(op, im->err);
}

/* ------------------------------------------------------------------ variables */

/** A variable by its name, which lies in the file. */
struct tfl_variable {
    fb_vector name;
    int state, now; /* engine tensors: before the run, and after what ran so far; -1: none */
    const tfl_tensor *first; /* what CALL_ONCE sets it to; NULL: nothing */
    tfl_variable *next;
};

/** The variable that a VAR_HANDLE names, of which there is one for each name. */
static qat_status find_variable(tfl_importer *im, const tfl_op *op, tfl_variable **variable)
{
    fb_vector const name = fb_string(&op->options, VAR_HANDLE_NAME);
    for (tfl_variable *v = im->variables; v; v = v->next)
        if (v->name.count == name.count &&
            (!name.count || memcmp(fb_bytes(&v->name), fb_bytes(&name), name.count) == 0)) {
            *variable = v;
            return QAT_OK;
        }
    *variable = qat_arena_array(&im->arena, 1, sizeof **variable);
    if (!*variable)
        return qat_out_of_memory(im->err, NULL);
    **variable = (tfl_variable){.name = name, .state = -1, .now = -1, .next = im->variables};
    im->variables = *variable;
    return QAT_OK;
}

static qat_status import_var_handle(tfl_importer *im)
{
    tfl_value *v = &im->values[im->op->outputs[0]];
    return v->known ? tfl_refuse(im, "its output already has a value")
                    : find_variable(im, im->op, &v->variable);
}

static qat_status variable_of(tfl_importer *im, tfl_variable **variable)
{
    const tfl_value *v = tfl_value_of(im, 0);
    *variable = v ? v->variable : NULL;
    return *variable ? QAT_OK : tfl_refuse(im, "its input 0 is no variable of a VAR_HANDLE");
}

/* ------------------------------------------------------------------ reading, writing */

/** Does the variable begin at the zero point of its codes, as states do? */
static qat_status check_first(tfl_importer *im, const tfl_variable *v, const qat_qtensor *t)
{
    if (!v->first)
        return QAT_OK;
    int const shown = v->name.count < QAT_NAME_MAX ? (int)v->name.count : QAT_NAME_MAX - 1;
    const char *name = shown ? (const char *)fb_bytes(&v->name) : "";
    if (v->first->data_bytes != qat_qtensor_bytes(t))
        return tfl_refuse(im, "variable '%.*s' begins with %zu bytes, but %zu are read", shown,
                          name, v->first->data_bytes, qat_qtensor_bytes(t));
    bool zero = true;
    for (size_t i = 0; zero && i < v->first->data_bytes / qi_type_bytes(t->type); i++)
        zero = qi_value_at(t->type, v->first->data, i) == t->zero_point;
    return zero ? QAT_OK : tfl_refuse(im, "variable '%.*s' does not begin with zeros", shown, name);
}

/** The codes of a variable as the operator's output: they pass unchanged. */
static qat_status read_again(tfl_importer *im, const tfl_variable *v, const tfl_shape *shape)
{
    int output = -1;
    qat_status const st = tfl_integer_output(im, 0, shape, v->now, &output);
    qat_emit const e = tfl_emit(im, 1, &v->now, output);
    return st ? st : qat_emit_op(&e, "cast", QI_ROUND_NONE, 0, NULL, 0, im->err);
}

static qat_status import_read(tfl_importer *im)
{
    int const index = im->op->outputs[0];
    const tfl_tensor *t = &im->model->tensors[index];
    tfl_value *value = &im->values[index];
    tfl_variable *v;
    tfl_shape shape = {.rank = t->rank};
    qat_qtensor q;
    qat_status st = variable_of(im, &v);
    memcpy(shape.dims, t->dims, sizeof shape.dims);
    if (!st && (value->known || t->data || tfl_count(&shape) < 1))
        st = tfl_refuse(im, "its output has a value already, or no fixed shape");
    if (!st && v->now >= 0)
        return read_again(im, v, &shape);
    if (!st)
        st = tfl_describe(im, index, &q);
    if (st)
        return st;
    q.is_state = true;
    st = tfl_append(im, &q, &shape, &v->state);
    if (!st)
        st = check_first(im, v, &im->graph->tensors[v->state]);
    v->now = v->state;
    value->known = !st;
    value->shape = shape;
    value->tensor = v->state;
    return st;
}

static qat_status import_assign(tfl_importer *im)
{
    tfl_variable *v;
    int value = -1;
    qat_status st = variable_of(im, &v);
    if (!st)
        st = tfl_input(im, 1, &value);
    if (!st && im->graph->tensors[value].data)
        st = tfl_refuse(im, "it writes a constant");
    if (!st)
        v->now = value;
    return st;
}

qat_status tfl_end_variables(tfl_importer *im)
{
    qat_status st = QAT_OK;
    for (const tfl_variable *v = im->variables; v && !st; v = v->next) {
        if (v->state < 0)
            continue; /* no run reads what another wrote */
        qat_qtensor t = im->graph->tensors[v->state];
        const qat_qtensor *now = &im->graph->tensors[v->now];
        if (now->type != t.type || qat_qtensor_count(now) != qat_qtensor_count(&t))
            return tfl_refuse(im, "variable %s is written with another type or shape than it has",
                              t.name);
        int const from = v->now;
        t.is_state = false;
        t.source_index = -1;
        qat_part_name(t.name, im->graph->tensors[v->state].name, "next");
        int const to = qat_qgraph_tensor(im->graph, &t, im->err);
        st = qat_append_status(to, im->err);
        qat_emit const e = {.graph = im->graph,
                            .profile = QAT_PROFILE_TFLITE,
                            .name = t.name,
                            .n_inputs = 1,
                            .inputs = &from,
                            .output = to,
                            .act_min = -INFINITY,
                            .act_max = INFINITY};
        if (!st)
            st = qat_emit_op(&e, "cast", QI_ROUND_NONE, 0, NULL, 0, im->err);
        if (!st)
            im->graph->tensors[v->state].next = to;
    }
    return st;
}

/* ------------------------------------------------------------------ CALL_ONCE */

/** Remember what the subgraph sets variables to; it may do nothing else. */
static qat_status import_call_once(tfl_importer *im)
{
    tfl_model *once = &im->once;
    uint32_t const index = (uint32_t)fb_i32(&im->op->options, CALL_ONCE_SUBGRAPH, 0);
    if (once->file.bytes)
        return tfl_refuse(im, "only one operator may set variables");
    qat_status st = tfl_model_parse_subgraph(once, im->model->file.bytes, im->model->file.count,
                                             index, im->err);
    if (st)
        return st;
    tfl_variable **of = qat_arena_array(&im->arena, (size_t)once->n_tensors + 1, sizeof *of);
    if (!of)
        return qat_out_of_memory(im->err, NULL);
    for (int i = 0; i < once->n_ops && !st; i++) {
        const tfl_op *op = &once->ops[i];
        bool const writes = op->code == TFL_ASSIGN_VARIABLE && op->n_inputs == 2 &&
                            op->inputs[0] >= 0 && op->inputs[1] >= 0 && of[op->inputs[0]];
        if (op->code == TFL_VAR_HANDLE && op->n_outputs == 1)
            st = find_variable(im, op, &of[op->outputs[0]]);
        else if (writes && once->tensors[op->inputs[1]].data)
            of[op->inputs[0]]->first = &once->tensors[op->inputs[1]];
        else
            st = tfl_refuse(im,
                            "its operator %d, %s, does more than to set a variable to a "
                            "constant",
                            i, op->name);
    }
    return st;
}

const tfl_handler tfl_state_handlers[] = {
    {TFL_SVDF, TFL_OPTIONS_SVDF, 5, 5, 1, import_svdf},
    {TFL_VAR_HANDLE, TFL_OPTIONS_VAR_HANDLE, 0, 0, 1, import_var_handle},
    {TFL_READ_VARIABLE, TFL_OPTIONS_READ_VARIABLE, 1, 1, 1, import_read},
    {TFL_ASSIGN_VARIABLE, TFL_OPTIONS_ASSIGN_VARIABLE, 2, 2, TFL_NO_OUTPUTS, import_assign},
    {TFL_CALL_ONCE, TFL_OPTIONS_CALL_ONCE, 0, 0, TFL_NO_OUTPUTS, import_call_once},
    {0}};
