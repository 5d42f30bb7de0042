#include "autograd/loops/padding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BASE = QAT_PADDING_MAX + 1, SIDES = 4, FIRST_EXPLICIT = QAT_PADDING_EXPLICIT };

bool qat_padding_is_legal(double value)
{
    double const end = FIRST_EXPLICIT + pow(BASE, SIDES);
    return value >= 0 && value < end && value == floor(value);
}

qat_padding qat_padding_of(double value)
{
    if (value < FIRST_EXPLICIT)
        return (qat_padding){.kind = (qat_padding_kind)value};
    int64_t const sides = (int64_t)value - FIRST_EXPLICIT;
    return (qat_padding){.kind = QAT_PADDING_EXPLICIT,
                         .top = (int)(sides / BASE / BASE / BASE),
                         .bottom = (int)(sides / BASE / BASE % BASE),
                         .left = (int)(sides / BASE % BASE),
                         .right = (int)(sides % BASE)};
}

double qat_padding_value(const qat_padding *p)
{
    if (p->kind != QAT_PADDING_EXPLICIT)
        return p->kind;
    int64_t const rows = (int64_t)p->top * BASE + p->bottom;
    int64_t const columns = (int64_t)p->left * BASE + p->right;
    return (double)(FIRST_EXPLICIT + rows * BASE * BASE + columns);
}

qat_padding qat_attr_padding(const qat_node *node, const char *name)
{
    return qat_padding_of(qat_attr(node, name));
}

void qat_padding_text(double value, char text[QAT_PADDING_TEXT])
{
    qat_padding const p = qat_padding_of(value);
    bool const even = p.top == p.bottom && p.left == p.right;
    if (p.kind != QAT_PADDING_EXPLICIT)
        snprintf(text, QAT_PADDING_TEXT, "%s", p.kind == QAT_PADDING_SAME ? "same" : "valid");
    else if (even && p.top == p.left)
        snprintf(text, QAT_PADDING_TEXT, "%d", p.top);
    else if (even)
        snprintf(text, QAT_PADDING_TEXT, "%d,%d", p.top, p.left);
    else
        snprintf(text, QAT_PADDING_TEXT, "%d,%d,%d,%d", p.top, p.bottom, p.left, p.right);
}

/** Read up to four numbers separated by commas. Returns how many, or 0 if the text is wrong. */
static int parse_numbers(const char *text, int numbers[SIDES])
{
    for (int n = 0; n < SIDES; n++) {
        char *end;
        if (*text < '0' || *text > '9')
            return 0;
        long const number = strtol(text, &end, 10);
        if (number > QAT_PADDING_MAX)
            return 0;
        numbers[n] = (int)number;
        if (!*end)
            return n + 1;
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

bool qat_padding_parse(const char *text, double *value)
{
    int v[SIDES];
    qat_padding p = {.kind = QAT_PADDING_SAME};
    if (!strcmp(text, "valid")) {
        p.kind = QAT_PADDING_VALID;
    } else if (strcmp(text, "same") != 0) {
        int const n = parse_numbers(text, v);
        if (n == 0 || n == 3)
            return false;
        p = n == 4 ? (qat_padding){QAT_PADDING_EXPLICIT, v[0], v[1], v[2], v[3]}
                   : (qat_padding){QAT_PADDING_EXPLICIT, v[0], v[0], v[n - 1], v[n - 1]};
    }
    *value = qat_padding_value(&p);
    return true;
}
