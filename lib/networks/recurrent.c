/** Layers with a state, as what they compute in one step. */
#include "networks/network.h"

#include <stdio.h>
#include <string.h>

/** A cell that is being built. */
typedef struct cell {
    qat_graph *graph;
    const char *name;
    int units;
} cell;

static const char *full_name(const cell *c, const char *part, char name[2 * QAT_NAME_MAX])
{
    snprintf(name, 2 * QAT_NAME_MAX, "%s/%s", c->name, part);
    return name;
}

static qat_node *apply1(const cell *c, const char *op, const char *part, qat_node *a)
{
    char name[2 * QAT_NAME_MAX];
    return qat_apply1(c->graph, op, full_name(c, part, name), "", a);
}

static qat_node *apply2(const cell *c, const char *op, const char *part, qat_node *a, qat_node *b)
{
    char name[2 * QAT_NAME_MAX];
    return qat_apply2(c->graph, op, full_name(c, part, name), "", a, b);
}

static qat_node *dense(const cell *c, const char *part, qat_node *x)
{
    char name[2 * QAT_NAME_MAX], attrs[32];
    snprintf(attrs, sizeof attrs, "units=%d", c->units);
    return qat_apply1(c->graph, "fully_connected", full_name(c, part, name), attrs, x);
}

static qat_node *with_bias(const cell *c, const char *part, qat_node *x, double start)
{
    char name[2 * QAT_NAME_MAX], values[3 * QAT_NAME_MAX];
    full_name(c, part, name);
    snprintf(values, sizeof values, "%s/bias", name);
    qat_param_def const def = {.name = values,
                               .shape = QAT_SHAPE(c->units),
                               .init = QAT_INIT_CONSTANT,
                               .scale = start,
                               .trainable = true};
    qat_node *const inputs[] = {x, qat_graph_param(c->graph, &def)};
    return qat_apply(c->graph, "bias", name, "", 2, inputs);
}

/** W x + b + U h; gate: "z", for example. */
static qat_node *gate_sum(const cell *c, const char *gate, qat_node *x, qat_node *h, double start)
{
    char part[32];
    snprintf(part, sizeof part, "%s_x", gate);
    x = dense(c, part, x);
    snprintf(part, sizeof part, "%s_x/bias", gate);
    x = with_bias(c, part, x, start);
    snprintf(part, sizeof part, "%s_h", gate);
    h = dense(c, part, h);
    snprintf(part, sizeof part, "%s_sum", gate);
    return apply2(c, "add", part, x, h);
}

/**
 * z, r = logistic(W x + b + U h); n = tanh(W x + b + r (U h + c)); the next h is n + z (h - n).
 */
static qat_node *gru(const cell *c, qat_node *x, qat_node *h)
{
    qat_node *z = apply1(c, "logistic", "z", gate_sum(c, "z", x, h, 0));
    qat_node *r = apply1(c, "logistic", "r", gate_sum(c, "r", x, h, 0));
    qat_node *n_x = with_bias(c, "n_x/bias", dense(c, "n_x", x), 0);
    qat_node *n_h = with_bias(c, "n_h/bias", dense(c, "n_h", h), 0);
    n_h = apply2(c, "mul", "n_r", r, n_h);
    qat_node *n = apply1(c, "tanh", "n", apply2(c, "add", "n_sum", n_x, n_h));
    qat_node *kept = apply2(c, "mul", "kept", z, apply2(c, "sub", "change", h, n));
    return apply2(c, "carry", "carry", apply2(c, "add", "next", n, kept), h);
}

/**
 * i, f, o = logistic(W x + b + U h); g = tanh(W x + b + U h); the next m is f m + i g, the next h
 * is o tanh(m). f's bias starts at 1, so that a new network remembers.
 */
static qat_node *lstm(const cell *c, qat_node *x, qat_node *h)
{
    char name[2 * QAT_NAME_MAX], attrs[32];
    snprintf(attrs, sizeof attrs, "units=%d", c->units);
    qat_node *m = qat_apply1(c->graph, "state", full_name(c, "m", name), attrs, x);
    qat_node *i = apply1(c, "logistic", "i", gate_sum(c, "i", x, h, 0));
    qat_node *f = apply1(c, "logistic", "f", gate_sum(c, "f", x, h, 1));
    qat_node *o = apply1(c, "logistic", "o", gate_sum(c, "o", x, h, 0));
    qat_node *g = apply1(c, "tanh", "g", gate_sum(c, "g", x, h, 0));
    qat_node *kept = apply2(c, "mul", "kept", f, m), *taken = apply2(c, "mul", "taken", i, g);
    m = apply2(c, "carry", "m_carry", apply2(c, "add", "m_next", kept, taken), m);
    qat_node *next = apply2(c, "mul", "next", o, apply1(c, "tanh", "m_tanh", m));
    return apply2(c, "carry", "carry", next, h);
}

static const qat_attr_def attrs[] = {
    {"units", QAT_ATTR_INT, 0, 1, 65536, NULL, "number of values; must be given"},
    {NULL, QAT_ATTR_INT, 0, 0, 0, NULL, NULL},
};

/** Named as ops, so that a recipe's keys are checked alike; but they are several nodes. */
static const struct {
    qat_op op;
    qat_node *(*build)(const cell *c, qat_node *x, qat_node *h);
} cells[] = {
    {{.name = "gru", .attrs = attrs}, gru},
    {{.name = "lstm", .attrs = attrs}, lstm},
};

const qat_op *qat_net_cell_at(int i)
{
    return i < (int)(sizeof cells / sizeof *cells) ? &cells[i].op : NULL;
}

const qat_op *qat_net_cell_named(const char *name)
{
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (strcmp(cells[i].op.name, name) == 0)
            return &cells[i].op;
    return NULL;
}

qat_node *qat_net_cell(const qat_net *net, const char *op, const char *name, const char *attributes,
                       qat_node *x)
{
    char state[2 * QAT_NAME_MAX];
    cell c = {.graph = net->graph, .name = name};
    qat_node *h = qat_apply1(net->graph, "state", full_name(&c, "h", state), attributes, x);
    if (!h)
        return NULL;
    c.units = h->shape.dims[1];
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (!strcmp(cells[i].op.name, op))
            return cells[i].build(&c, x, h);
    return NULL;
}
