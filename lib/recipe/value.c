/** Values of recipe keys: parses text into members, writes members as text. */
#include "base/number.h"
#include "recipe/reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *member(qat_recipe *recipe, const qat_key *key)
{
    return (char *)recipe + key->offset;
}

static bool is_auto_key(const qat_key *key)
{
    return !strcmp(key->initial, "auto");
}

static const char *skip_blanks(const char *p)
{
    while (qat_is_blank(*p))
        p++;
    return p;
}

/** Parse a finite decimal number; *end is the text after it. */
static bool number_at(const char *text, double *value, const char **end)
{
    char *stop;
    *value = qat_number_of(text, &stop);
    *end = stop;
    return stop != text && isfinite(*value);
}

static bool integer_at(const char *text, int64_t *value, const char **end)
{
    char *stop;
    errno = 0;
    *value = (int64_t)strtoll(text, &stop, 10);
    *end = stop;
    return stop != text && errno == 0;
}

/** By what the letter after an integer multiplies it; 0: not a letter of this kind of key. */
static int64_t factor_of(qat_key_type type, char letter)
{
    static const char letters[] = "KMG";
    int64_t const step = type == QAT_KEY_BYTES ? 1024 : 1000;
    if (type == QAT_KEY_MIB)
        return letter == 'M' ? 1 : letter == 'G' ? 1024 : 0;
    const char *found = letter ? strchr(letters, letter) : NULL;
    int64_t factor = 1;
    if (!found || (type == QAT_KEY_BYTES && letter == 'G'))
        return 0;
    for (const char *l = letters; l <= found; l++)
        factor *= step;
    return factor;
}

/** "32K" */
static bool amount_at(qat_key_type type, const char *text, int64_t *value, const char **end)
{
    if (!integer_at(text, value, end))
        return false;
    int64_t const factor = factor_of(type, **end);
    if (!factor)
        return true;
    ++*end;
    if (*value > INT64_MAX / factor || *value < -(INT64_MAX / factor))
        return false;
    *value *= factor;
    return true;
}

static bool in_range(const qat_key *key, double value)
{
    return value >= key->min && value <= key->max;
}

bool qat_recipe_parse_bool(bool *out, const char *text)
{
    static const char *const yes[] = {"yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (!strcmp(text, yes[i]))
            return *out = true;
        if (!strcmp(text, no[i])) {
            *out = false;
            return true;
        }
    }
    return false;
}

static bool parse_choice(int *out, const char *choices, const char *text)
{
    size_t const length = strlen(text);
    int index = 0;
    for (const char *c = choices; length > 0;) {
        size_t const n = strcspn(c, "|");
        if (n == length && !memcmp(c, text, n)) {
            *out = index;
            return true;
        }
        if (!c[n])
            break;
        c += n + 1;
        index++;
    }
    return false;
}

/**
 * After a value of a list: go to the next one, or to the end. Returns false if there is something
 * else.
 */
static bool list_goes_on(const char **p)
{
    *p = skip_blanks(*p);
    bool const comma = **p == ',';
    if (comma)
        *p = skip_blanks(*p + 1);
    return comma || !**p;
}

static bool parse_ints(qat_int_list *out, const qat_key *key, const char *text)
{
    qat_int_list list = {0};
    for (const char *p = skip_blanks(text); *p;) {
        int64_t value;
        if (list.n == QAT_LIST_MAX || !integer_at(p, &value, &p) || !in_range(key, (double)value))
            return false;
        list.v[list.n++] = value;
        if (!list_goes_on(&p))
            return false;
    }
    *out = list;
    return true;
}

static bool parse_reals(qat_real_list *out, const qat_key *key, const char *text)
{
    qat_real_list list = {0};
    bool const automatic = is_auto_key(key) && !strcmp(text, "auto");
    for (const char *p = automatic ? "" : skip_blanks(text); *p;) {
        double value;
        if (list.n == QAT_CHANNEL_VALUES || !number_at(p, &value, &p) || !in_range(key, value))
            return false;
        list.v[list.n++] = value;
        if (!list_goes_on(&p))
            return false;
    }
    *out = list;
    return automatic || list.n > 0;
}

static bool parse_steps(qat_steps *out, const qat_key *key, const char *text)
{
    qat_steps steps = {0, QAT_UNIT_STEPS};
    const char *end = text;
    if (!strcmp(text, "never") || (is_auto_key(key) && !strcmp(text, "auto"))) {
        steps.unit = *text == 'n' ? QAT_UNIT_NEVER : QAT_UNIT_AUTO;
        *out = steps;
        return true;
    }
    if (!number_at(text, &steps.amount, &end) || !in_range(key, steps.amount))
        return false;
    end = skip_blanks(end);
    if (!strcmp(end, "epochs") || !strcmp(end, "epoch"))
        steps.unit = QAT_UNIT_EPOCHS;
    else if (!strcmp(end, "%") && steps.amount <= 100)
        steps.unit = QAT_UNIT_PERCENT;
    else if ((*end && strcmp(end, "steps")) || steps.amount != floor(steps.amount))
        return false;
    *out = steps;
    return true;
}

bool qat_recipe_parse_moment(qat_steps *out, const char *text)
{
    static const qat_key moment = {.initial = "", .min = 0, .max = 1e15};
    return parse_steps(out, &moment, text) && out->unit != QAT_UNIT_NEVER;
}

static bool parse_steps_list(qat_steps_list *out, const qat_key *key, const char *text)
{
    qat_steps_list list = {0};
    for (const char *p = skip_blanks(text); *p;) {
        char word[64];
        size_t const n = strcspn(p, ",");
        size_t length = n;
        while (length && qat_is_blank(p[length - 1]))
            length--;
        if (list.n == QAT_MAX_MILESTONES || length >= sizeof word)
            return false;
        memcpy(word, p, length);
        word[length] = 0;
        if (!parse_steps(&list.v[list.n], key, word) || list.v[list.n++].unit == QAT_UNIT_NEVER)
            return false;
        p = p[n] ? skip_blanks(p + n + 1) : p + n;
    }
    *out = list;
    return true;
}

static void choice_text(const char *choices, int index, char *text, size_t max)
{
    const char *c = choices;
    while (index-- > 0)
        c += strcspn(c, "|") + 1;
    snprintf(text, max, "%.*s", (int)strcspn(c, "|"), c);
}

/** "one of a|b". With many choices the nearest is added, or shown alone. */
static void expected_choice(const char *choices, const char *given, char *text, size_t max)
{
    enum { MANY = 120 };
    int distance = 1 << 20, count = 1;
    bool const many = strlen(choices) >= MANY;
    for (const char *c = strchr(choices, '|'); c; c = strchr(c + 1, '|'))
        count++;
    if (count == 2) {
        snprintf(text, max, "one of %s", choices);
        return;
    }
    for (int i = 0; i < count; i++) {
        char name[64];
        choice_text(choices, i, name, sizeof name);
        if (qat_name_distance(given, name) >= distance)
            continue;
        distance = qat_name_distance(given, name);
        snprintf(text, max, "%s%s; the nearest is %s", many ? "" : "one of ",
                 many ? "what qat-train --keys lists" : choices, name);
    }
}

/** "a number in 0..1", for messages. */
static void expectation(const qat_key *key, const char *given, char *text, size_t max)
{
    const char *or_auto = is_auto_key(key) ? ", or auto" : "";
    char lo[32], hi[32];
    qat_real_text(key->min, lo, sizeof lo);
    qat_real_text(key->max, hi, sizeof hi);
    switch (key->type) {
    case QAT_KEY_BOOL:
        snprintf(text, max, "yes or no");
        break;
    case QAT_KEY_INT:
        qat_format(text, max, "an integer in %.0f..%.0f", key->min, key->max);
        break;
    case QAT_KEY_BYTES:
        qat_format(text, max, "bytes in %.0f..%.0f, such as 32K or 1M", key->min, key->max);
        break;
    case QAT_KEY_MIB:
        qat_format(text, max, "MiB in %.0f..%.0f, such as 512, 512M or 2G", key->min, key->max);
        break;
    case QAT_KEY_COUNT:
        qat_format(text, max, "an integer in %.0f..%.0f, such as 2500K, 40M or 3G", key->min,
                   key->max);
        break;
    case QAT_KEY_REAL:
        snprintf(text, max, "a number in %s..%s%s", lo, hi, or_auto);
        break;
    case QAT_KEY_CHOICE:
        expected_choice(key->choices, given, text, max);
        break;
    case QAT_KEY_TEXT:
        snprintf(text, max, "text");
        break;
    case QAT_KEY_INTS:
        qat_format(text, max, "at most %d integers in %.0f..%.0f, separated by commas",
                   QAT_LIST_MAX, key->min, key->max);
        break;
    case QAT_KEY_REALS:
        snprintf(text, max, "1 to %d numbers in %s..%s, separated by commas%s", QAT_CHANNEL_VALUES,
                 lo, hi, or_auto);
        break;
    case QAT_KEY_STEPS:
        snprintf(text, max, "a number of steps, for example 1200, '2.5 epochs', '60%%' or never%s",
                 or_auto);
        break;
    case QAT_KEY_STEPS_LIST:
        snprintf(text, max, "at most %d numbers of steps, for example 1200, '2.5 epochs' or '60%%'",
                 QAT_MAX_MILESTONES);
        break;
    }
}

static bool parse_value(qat_recipe *recipe, const qat_key *key, const char *text)
{
    void *to = member(recipe, key);
    const char *end = text;
    switch (key->type) {
    case QAT_KEY_BOOL:
        return qat_recipe_parse_bool(to, text);
    case QAT_KEY_CHOICE:
        return parse_choice(to, key->choices, text);
    case QAT_KEY_INTS:
        return parse_ints(to, key, text);
    case QAT_KEY_REALS:
        return parse_reals(to, key, text);
    case QAT_KEY_STEPS:
        return parse_steps(to, key, text);
    case QAT_KEY_STEPS_LIST:
        return parse_steps_list(to, key, text);
    case QAT_KEY_INT: {
        int64_t value;
        if (!integer_at(text, &value, &end) || *end || !in_range(key, (double)value))
            return false;
        *(int64_t *)to = value;
        return true;
    }
    case QAT_KEY_BYTES:
    case QAT_KEY_MIB:
    case QAT_KEY_COUNT: {
        int64_t value;
        if (!amount_at(key->type, text, &value, &end) || *end || !in_range(key, (double)value))
            return false;
        *(int64_t *)to = value;
        return true;
    }
    case QAT_KEY_REAL: {
        double value = NAN;
        bool const automatic = is_auto_key(key) && !strcmp(text, "auto");
        if (!automatic && (!number_at(text, &value, &end) || *end || !in_range(key, value)))
            return false;
        *(double *)to = value;
        return true;
    }
    default:
        return false;
    }
}

qat_status qat_recipe_check_line(const char *name, const char *text, const char *where,
                                 qat_error *err)
{
    const char *dot = strrchr(name, '.'); /* the line has no section's name */
    size_t const n = strlen(text);
    if (strlen(dot ? dot + 1 : name) + n + 3 > QAT_RECIPE_LINE_MAX)
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %s is longer than a line of a recipe can be",
                        where, name);
    if (strpbrk(text, "\r\n"))
        return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %s contains a line break", where, name);
    if (*text == ';' || strstr(text, " ;") || strstr(text, "\t;"))
        return qat_fail(
            err, QAT_ERR_ARGUMENT,
            "%s: %s begins with ';' or contains ' ;', which starts a comment in a recipe", where,
            name);
    if (n && (qat_is_blank(text[0]) || qat_is_blank(text[n - 1])))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: %s begins or ends with a blank, which a recipe cannot keep", where,
                        name);
    return QAT_OK;
}

static qat_status set_text(qat_recipe *recipe, const qat_key *key, const char *text,
                           const char *where, qat_error *err)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", key->section, key->name);
    qat_status const st = qat_recipe_check_line(name, text, where, err);
    if (st)
        return st;
    char *copy = qat_arena_string(&recipe->private_->arena, text);
    if (!copy)
        return qat_out_of_memory(err, where);
    *(const char **)member(recipe, key) = copy;
    return QAT_OK;
}

qat_status qat_recipe_set_value(qat_recipe *recipe, const qat_key *key, const char *text,
                                const char *where, qat_error *err)
{
    if (key->type == QAT_KEY_TEXT)
        return set_text(recipe, key, text, where, err);
    if (parse_value(recipe, key, text))
        return QAT_OK;
    char expected[256];
    expectation(key, text, expected, sizeof expected);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %s.%s = %s: expected %s", where, key->section,
                    key->name, text, expected);
}

void qat_real_text(double value, char *text, size_t max)
{
    if (value == floor(value) && fabs(value) < 1e15) {
        qat_format(text, max, "%.0f", value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        qat_format(text, max, "%.*g", digits, value);
        if (qat_number_of(text, NULL) == value)
            return;
    }
}

static void steps_text(const qat_steps *steps, char *text, size_t max)
{
    char number[32];
    qat_real_text(steps->amount, number, sizeof number);
    switch (steps->unit) {
    case QAT_UNIT_STEPS:
        snprintf(text, max, "%s", number);
        break;
    case QAT_UNIT_EPOCHS:
        snprintf(text, max, "%s epochs", number);
        break;
    case QAT_UNIT_PERCENT:
        snprintf(text, max, "%s%%", number);
        break;
    case QAT_UNIT_NEVER:
        snprintf(text, max, "never");
        break;
    case QAT_UNIT_AUTO:
        snprintf(text, max, "auto");
        break;
    }
}

static void reals_text(const qat_real_list *list, char *text, size_t max)
{
    size_t at = (size_t)snprintf(text, max, "%s", list->n ? "" : "auto");
    for (int i = 0; i < list->n && at < max; i++) {
        char number[32];
        qat_real_text(list->v[i], number, sizeof number);
        at += (size_t)snprintf(text + at, max - at, "%s%s", i ? ", " : "", number);
    }
}

static void ints_text(const qat_int_list *list, char *text, size_t max)
{
    size_t at = 0;
    *text = 0;
    for (int i = 0; i < list->n && at < max; i++)
        at += (size_t)snprintf(text + at, max - at, "%s%lld", i ? "," : "", (long long)list->v[i]);
}

static void steps_list_text(const qat_steps_list *list, char *text, size_t max)
{
    size_t at = 0;
    *text = 0;
    for (int i = 0; i < list->n && at < max; i++) {
        char moment[48];
        steps_text(&list->v[i], moment, sizeof moment);
        at += (size_t)snprintf(text + at, max - at, "%s%s", i ? "," : "", moment);
    }
}

void qat_recipe_get_text(const qat_recipe *recipe, const qat_key *key, char *text, size_t max)
{
    const void *from = (const char *)recipe + key->offset;
    switch (key->type) {
    case QAT_KEY_BOOL:
        snprintf(text, max, "%s", *(const bool *)from ? "yes" : "no");
        break;
    case QAT_KEY_INT:
    case QAT_KEY_BYTES:
    case QAT_KEY_MIB:
    case QAT_KEY_COUNT:
        snprintf(text, max, "%lld", (long long)*(const int64_t *)from);
        break;
    case QAT_KEY_REAL:
        if (isnan(*(const double *)from))
            snprintf(text, max, "auto");
        else
            qat_real_text(*(const double *)from, text, max);
        break;
    case QAT_KEY_CHOICE:
        choice_text(key->choices, *(const int *)from, text, max);
        break;
    case QAT_KEY_TEXT:
        snprintf(text, max, "%s", *(const char *const *)from);
        break;
    case QAT_KEY_INTS:
        ints_text(from, text, max);
        break;
    case QAT_KEY_REALS:
        reals_text(from, text, max);
        break;
    case QAT_KEY_STEPS:
        steps_text(from, text, max);
        break;
    case QAT_KEY_STEPS_LIST:
        steps_list_text(from, text, max);
        break;
    }
}

int64_t qat_steps_resolve(const qat_steps *steps, int64_t per_epoch, int64_t total,
                          int64_t automatic)
{
    double value = steps->amount;
    switch (steps->unit) {
    case QAT_UNIT_NEVER:
        return INT64_MAX;
    case QAT_UNIT_AUTO:
        return automatic;
    case QAT_UNIT_EPOCHS:
        value *= (double)per_epoch;
        break;
    case QAT_UNIT_PERCENT:
        value *= (double)total / 100;
        break;
    case QAT_UNIT_STEPS:
        break;
    }
    return value < 9e15 ? (int64_t)floor(value + 0.5) : INT64_MAX;
}
