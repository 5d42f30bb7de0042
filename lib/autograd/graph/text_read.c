/** Reads graphs from text, the reverse of text.c. */
#include "autograd/graph/core.h"
#include "autograd/graph/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ words */

typedef struct parser {
    qat_graph *graph;
    const char *source;
    int line;
    char *at;        /* rest of the line */
    qat_node **list; /* inputs of the op being read */
    size_t capacity; /* of list */
    qat_error *err;
} parser;

static qat_status fail(const parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static qat_status fail(const parser *p, const char *format, ...)
{
    char message[QAT_ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return qat_fail(p->err, QAT_ERR_FORMAT, "%s:%d: %s", p->source, p->line, message);
}

/** Cut the next word out of the line; "" at its end. */
static char *word(parser *p)
{
    p->at += strspn(p->at, " \t\r");
    char *start = p->at;
    p->at += strcspn(p->at, " \t\r");
    if (*p->at)
        *p->at++ = 0;
    return start;
}

static qat_status end_of_line(parser *p)
{
    const char *rest = word(p);
    return *rest ? fail(p, "'%.80s' is more than this line may have", rest) : QAT_OK;
}

/** Read a whole number in min..INT_MAX. Returns false unless it is all of text. */
static bool whole(const char *text, int min, int *value)
{
    double number;
    if (!qat_core_number(text, &number) || !(number >= min && number <= INT_MAX))
        return false;
    *value = (int)number;
    return *value == number;
}

/** "[1,28,28,1]" */
static qat_status parse_shape(parser *p, qat_shape *shape)
{
    char *text = word(p), copy[64];
    size_t const length = strlen(text);
    int dims[QAT_MAX_RANK], rank = 0;
    bool good = length > 2 && length < sizeof copy && text[0] == '[' && text[length - 1] == ']';
    if (good) {
        memcpy(copy, text + 1, length - 2);
        copy[length - 2] = 0;
    }
    for (char *at = copy; good && at; rank++) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = 0;
        good = rank < QAT_MAX_RANK && whole(at, 1, &dims[rank]);
        at = comma;
    }
    if (!good)
        return fail(p, "'%.80s' is not a shape of 1 to %d dimensions, as [1,28,28,1]", text,
                    QAT_MAX_RANK);
    *shape = qat_shape_of(dims, rank);
    return QAT_OK;
}

/** The text after "key=" in the next word. */
static qat_status parse_key(parser *p, const char *key, const char **value)
{
    const char *text = word(p);
    size_t const length = strlen(key);
    *value = "";
    if (strncmp(text, key, length) != 0 || text[length] != '=')
        return fail(p, "'%.80s' instead of %s=...", text, key);
    *value = text + length + 1;
    return QAT_OK;
}

static qat_status parse_whole(parser *p, const char *key, int max, int *value)
{
    const char *text = "";
    qat_status st = parse_key(p, key, &text);
    if (!st && (!whole(text, 0, value) || *value > max))
        st = fail(p, "%s: '%.80s' is not a whole number 0..%d", key, text, max);
    return st;
}

static qat_status parse_node(const parser *p, const char *name, qat_node **node)
{
    *node = qat_graph_find(p->graph, name);
    return *node ? QAT_OK : fail(p, "no node '%.95s' above this line", name);
}

/* ------------------------------------------------------------------ lines */

static qat_status read_input(parser *p)
{
    const char *name = word(p);
    qat_shape shape;
    qat_status st = parse_shape(p, &shape);
    if (st)
        return st;
    qat_node *node = qat_graph_input(p->graph, name, shape);
    const char *flag = word(p);
    if (!*flag)
        return QAT_OK;
    if (strcmp(flag, "gradient") != 0)
        return fail(p, "'%.80s' instead of 'gradient' or the end of the line", flag);
    qat_graph_want_gradient(p->graph, node);
    return end_of_line(p);
}

static qat_status parse_init(parser *p, qat_init *init)
{
    const char *text;
    qat_status const st = parse_key(p, "init", &text);
    for (int i = 0; !st && i <= QAT_INIT_GLOROT; i++)
        if (strcmp(text, qat_core_text_inits[i]) == 0) {
            *init = (qat_init)i;
            return QAT_OK;
        }
    return st ? st : fail(p, "init: '%.80s' is not constant, he or glorot", text);
}

static qat_status parse_scale(parser *p, double *scale)
{
    const char *text;
    qat_status st = parse_key(p, "scale", &text);
    if (!st && !qat_core_number(text, scale))
        st = fail(p, "scale: '%.80s' is not a number", text);
    return st;
}

static qat_status read_param(parser *p)
{
    qat_param_def def = {.name = word(p)};
    int trainable = 0, decay = 0;
    qat_status st = parse_shape(p, &def.shape);
    if (!st)
        st = parse_init(p, &def.init);
    if (!st)
        st = parse_scale(p, &def.scale);
    if (!st)
        st = parse_whole(p, "fan_in", INT_MAX, &def.fan_in);
    if (!st)
        st = parse_whole(p, "fan_out", INT_MAX, &def.fan_out);
    if (!st)
        st = parse_whole(p, "trainable", 1, &trainable);
    if (!st)
        st = parse_whole(p, "decay", 1, &decay);
    if (!st)
        st = end_of_line(p);
    if (st)
        return st;
    def.trainable = trainable;
    def.decay = decay;
    qat_graph_param(p->graph, &def);
    return QAT_OK;
}

/** Make room for `count` nodes in the list; nodes already there stay. */
static qat_status reserve(parser *p, size_t count)
{
    if (count <= p->capacity)
        return QAT_OK;
    qat_node **list = realloc(p->list, 2 * count * sizeof *list);
    if (!list)
        return qat_out_of_memory(p->err, p->source);
    p->list = list;
    p->capacity = 2 * count;
    return QAT_OK;
}

/** Read "(a,b)" and append its nodes to the n that the list holds. */
static qat_status parse_list(parser *p, int *n)
{
    char *text = word(p);
    size_t const length = strlen(text);
    if (length < 2 || text[0] != '(' || text[length - 1] != ')')
        return fail(p, "'%.80s' is not a list of nodes, as (a,b)", text);
    text[length - 1] = 0;
    qat_status st = QAT_OK;
    for (char *at = length > 2 ? text + 1 : NULL; !st && at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = 0;
        st = *n < CORE_MAX_NODES ? reserve(p, (size_t)*n + 1) : fail(p, "too many inputs");
        if (!st)
            st = parse_node(p, at, &p->list[*n]);
        *n += !st;
        at = comma;
    }
    return st;
}

static qat_status read_op(parser *p)
{
    const char *name = word(p), *op_name = word(p);
    double attrs[QAT_MAX_ATTRS] = {0};
    int n_data = 0, n_inputs = 0;
    qat_error inner;
    const qat_op *op = qat_registry_find(p->graph->registry, op_name);
    if (!op)
        return fail(p, "no op is named '%.80s'", op_name);
    qat_status st = parse_list(p, &n_inputs);
    n_data = n_inputs;
    if (!st)
        st = parse_list(p, &n_inputs);
    if (st)
        return st;
    if (qat_core_attrs_parse(op, p->at, attrs, &inner))
        return fail(p, "node '%.95s' (%s): %s", name, op->name, inner.message);
    const qat_node *node = qat_core_apply(p->graph, op, name, attrs, n_data, n_inputs, p->list);
    if (node && node->n_inputs != n_inputs)
        return fail(p, "node '%s' (%s): %d parameters must be listed", name, op->name,
                    node->n_inputs - n_data);
    return QAT_OK;
}

static qat_status read_output(parser *p)
{
    qat_node *node = NULL;
    qat_status st = parse_node(p, word(p), &node);
    if (!st)
        st = end_of_line(p);
    if (!st)
        qat_graph_output(p->graph, node);
    return st;
}

static qat_status read_line(parser *p)
{
    static const struct {
        const char *word;
        qat_status (*read)(parser *p);
    } kinds[] = {
        {"input", read_input}, {"param", read_param}, {"op", read_op}, {"output", read_output}};
    const char *kind = word(p);
    qat_status st = QAT_ERR_FORMAT;
    size_t i = 0;
    if (!*kind || *kind == '#')
        return QAT_OK;
    while (i < sizeof kinds / sizeof *kinds && strcmp(kind, kinds[i].word) != 0)
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return fail(p, "'%.80s' is not input, param, op or output", kind);
    st = kinds[i].read(p);
    if (st || !p->graph->error.status)
        return st;
    st = p->graph->error.status;
    if (st != QAT_ERR_NOMEM)
        return fail(p, "%s", p->graph->error.message);
    return qat_fail(p->err, st, "%s:%d: %s", p->source, p->line, p->graph->error.message);
}

/** Words are cut out of text in place, so text is a copy. */
static qat_status read_lines(parser *p, char *text)
{
    qat_status st = QAT_OK;
    while (!st && text) {
        char *next = strchr(text, '\n');
        if (next)
            *next++ = 0;
        p->line++;
        p->at = text;
        text[strcspn(text, "\r")] = 0;
        if (p->line > 1)
            st = read_line(p);
        else if (strcmp(text, qat_core_text_first_line) != 0)
            st = fail(p, "'%.80s' instead of '%s'", text, qat_core_text_first_line);
        text = next;
    }
    return st;
}

qat_status qat_graph_read(qat_graph **graph, const qat_registry *registry, const char *text,
                          const char *source, qat_error *err)
{
    size_t const bytes = strlen(text) + 1;
    parser p = {.source = source, .err = err};
    char *copy = malloc(bytes);
    *graph = NULL;
    qat_status st =
        copy ? qat_graph_create(&p.graph, registry, err) : qat_out_of_memory(err, source);
    if (!st) {
        memcpy(copy, text, bytes);
        st = read_lines(&p, copy);
    }
    if (!st) {
        *graph = p.graph;
        p.graph = NULL;
    }
    qat_graph_free(p.graph);
    free(p.list);
    free(copy);
    return st;
}
