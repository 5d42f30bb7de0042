/** Attributes of ops: converts text to values and back. */
#include "autograd/graph/core.h"
#include "autograd/loops/padding.h"
#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool qat_core_number(const char *text, double *value)
{
    char *end;
    *value = qat_number_of(text, &end);
    return end != text && *end == 0 && isfinite(*value);
}

static int attr_index(const qat_op *op, const char *name, size_t length)
{
    for (int i = 0; op->attrs && op->attrs[i].name; i++)
        if (strlen(op->attrs[i].name) == length && memcmp(op->attrs[i].name, name, length) == 0)
            return i;
    return -1;
}

double qat_attr(const qat_node *node, const char *name)
{
    int const i = node->op ? attr_index(node->op, name, strlen(name)) : -1;
    assert(i >= 0 && "the op has no such attribute");
    return node->attrs[i];
}

/** Find word number i of "same|valid": its start and length. Returns false after the last word. */
static bool choice_at(const char *choices, int i, const char **word, size_t *length)
{
    for (; i > 0; i--) {
        choices = strchr(choices, '|');
        if (!choices)
            return false;
        choices++;
    }
    *word = choices;
    *length = strcspn(choices, "|");
    return true;
}

static int choice_index(const char *choices, const char *text)
{
    const char *word;
    size_t length;
    for (int i = 0; choice_at(choices, i, &word, &length); i++)
        if (strlen(text) == length && memcmp(word, text, length) == 0)
            return i;
    return -1;
}

void qat_core_attr_text(const qat_attr_def *def, double value, char *text, size_t max)
{
    const char *word;
    size_t length;
    char padding[QAT_PADDING_TEXT];
    if (def->type == QAT_ATTR_PADDING) {
        qat_padding_text(value, padding);
        snprintf(text, max, "%s", padding);
    } else if (def->type == QAT_ATTR_CHOICE && choice_at(def->choices, (int)value, &word, &length))
        snprintf(text, max, "%.*s", (int)length, word);
    else
        qat_format(text, max, "%.17g", value);
}

static qat_status not_padding(const qat_attr_def *def, const char *text, qat_error *err)
{
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "attribute '%s': '%s' is not same, valid, or pixels 0..%d: N | rows,columns | "
                    "top,bottom,left,right",
                    def->name, text, QAT_PADDING_MAX);
}

static qat_status check_padding(const qat_attr_def *def, double value, qat_error *err)
{
    char text[32];
    qat_format(text, sizeof text, "%.9g", value);
    return qat_padding_is_legal(value) ? QAT_OK : not_padding(def, text, err);
}

static qat_status check_value(const qat_attr_def *def, double value, qat_error *err)
{
    const char *word;
    size_t length;
    if (def->type == QAT_ATTR_PADDING)
        return check_padding(def, value, err);
    bool legal = value >= def->min && value <= def->max && isfinite(value);
    if (def->type == QAT_ATTR_CHOICE)
        legal = value >= 0 && value < 1e3 && value == floor(value) &&
                choice_at(def->choices, (int)value, &word, &length);
    if (!legal && def->type == QAT_ATTR_CHOICE)
        return qat_fail(err, QAT_ERR_ARGUMENT, "attribute '%s': %.9g is not a choice of %s",
                        def->name, value, def->choices);
    if (!legal)
        return qat_fail(err, QAT_ERR_ARGUMENT, "attribute '%s': %.9g is outside %.9g..%.9g",
                        def->name, value, def->min, def->max);
    if (def->type == QAT_ATTR_INT && value != floor(value))
        return qat_fail(err, QAT_ERR_ARGUMENT, "attribute '%s': %.9g is not a whole number",
                        def->name, value);
    return QAT_OK;
}

qat_status qat_core_attrs_check(const qat_op *op, const double *values, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && op->attrs && op->attrs[i].name; i++)
        st = check_value(&op->attrs[i], values[i], err);
    return st;
}

static qat_status parse_value(const qat_attr_def *def, const char *text, double *value,
                              qat_error *err)
{
    if (def->type == QAT_ATTR_CHOICE) {
        int const choice = choice_index(def->choices, text);
        if (choice < 0)
            return qat_fail(err, QAT_ERR_ARGUMENT, "attribute '%s': '%s' is not one of %s",
                            def->name, text, def->choices);
        *value = choice;
        return QAT_OK;
    }
    if (def->type == QAT_ATTR_PADDING)
        return qat_padding_parse(text, value) ? QAT_OK : not_padding(def, text, err);
    if (!qat_core_number(text, value))
        return qat_fail(err, QAT_ERR_ARGUMENT, "attribute '%s': '%s' is not a number", def->name,
                        text);
    return check_value(def, *value, err);
}

/** "it has filters, kernel, stride", cut to fit, for the message about an unknown attribute. */
static void list_attrs(const qat_op *op, char *list, size_t max)
{
    size_t at = 0;
    list[0] = 0;
    for (int i = 0; op->attrs && op->attrs[i].name && at < max; i++)
        at += (size_t)snprintf(list + at, max - at, "%s%s", i ? ", " : "", op->attrs[i].name);
    if (!at)
        snprintf(list, max, "none");
}

/** Parse one "name=value" word of `length` characters. */
static qat_status parse_word(const qat_op *op, const char *word, size_t length, double *values,
                             bool *given, qat_error *err)
{
    char text[128], list[256];
    const char *equals = memchr(word, '=', length);
    if (!equals || length >= sizeof text)
        return qat_fail(err, QAT_ERR_ARGUMENT, "'%.*s' is not name=value",
                        (int)(length < 60 ? length : 60), word);
    int const i = attr_index(op, word, (size_t)(equals - word));
    if (i < 0) {
        list_attrs(op, list, sizeof list);
        return qat_fail(err, QAT_ERR_ARGUMENT, "no attribute '%.*s'; its attributes: %s",
                        (int)(equals - word), word, list);
    }
    if (given[i])
        return qat_fail(err, QAT_ERR_ARGUMENT, "attribute '%s' is given twice", op->attrs[i].name);
    given[i] = true;
    size_t const n = length - (size_t)(equals + 1 - word);
    memcpy(text, equals + 1, n);
    text[n] = 0;
    return parse_value(&op->attrs[i], text, &values[i], err);
}

qat_status qat_core_attrs_parse(const qat_op *op, const char *text, double *values, qat_error *err)
{
    static const char blanks[] = " \t";
    bool given[QAT_MAX_ATTRS] = {false};
    for (int i = 0; op->attrs && op->attrs[i].name; i++)
        values[i] = op->attrs[i].initial;
    text = text ? text : "";
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        size_t const length = strcspn(text, blanks);
        qat_status const st = parse_word(op, text, length, values, given, err);
        if (st)
            return st;
        text += length;
    }
    for (int i = 0; op->attrs && op->attrs[i].name; i++)
        if (!given[i] && check_value(&op->attrs[i], values[i], NULL))
            return qat_fail(err, QAT_ERR_ARGUMENT, "attribute '%s' must be given",
                            op->attrs[i].name);
    return QAT_OK;
}
