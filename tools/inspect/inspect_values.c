/**
 * Prints the values of one tensor: codes and what they stand for, int32 numbers, or real
 * parameters.
 */
#include "tools/inspect/inspect.h"

#include "base/words.h"
#include "qat/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t shown_of(size_t count, int64_t limit)
{
    return limit > 0 && (size_t)limit < count ? (size_t)limit : count;
}

static void print_rest(size_t count, size_t shown)
{
    if (shown < count)
        printf("... %zu more; --limit 0 shows all\n", count - shown);
}

/* ------------------------------------------------------------------ tensors as text */

/** Does it hold plain integers: biases, multipliers? */
static bool has_integers(const qat_qtensor *t)
{
    return !qi_type_has_codes(t->type) && t->data;
}

static void print_integers(const qat_qtensor *t, size_t shown)
{
    for (size_t i = 0; i < shown; i++)
        printf("%6zu %12lld\n", i, (long long)qi_value_at(t->type, t->data, i));
}

static double value_of(const qat_qtensor *t, const uint8_t *codes, size_t i)
{
    return (double)inspect_scale(t, i) * (inspect_code(t, codes, i) - t->zero_point);
}

/** If the real value is known, print it, its code, what the code stands for, and the difference. */
static void print_codes(const inspected *x, int index, size_t shown)
{
    const qat_qtensor *t = &x->graph->tensors[index];
    const float *real = x->real[index];
    printf(real ? "%6s %6s %14s %14s %12s\n" : "%6s %6s %14s\n", "i", "q", "S(q - Z)", "real",
           "difference");
    for (size_t i = 0; i < shown; i++) {
        double const value = value_of(t, x->codes[index], i);
        printf("%6zu %6d ", i, inspect_code(t, x->codes[index], i));
        if (inspect_has_scale(t))
            printf("%14.8g", value);
        else
            printf("%14s", "-");
        if (real)
            printf(" %14.8g %12.4g", (double)real[i], value - (double)real[i]);
        printf("\n");
    }
}

static void print_head(const inspected *x, int index)
{
    const qat_qtensor *t = &x->graph->tensors[index];
    char dims[64], label[TOOL_LABEL_MAX], scale[32], range[64];
    inspect_scale_text(t, scale);
    inspect_range_text(t, range);
    inspect_dims_text(t, dims, sizeof dims);
    inspect_label(x->graph, index, label);
    printf("%s %s: %s %s, S %s%s, Z %d, range %s\n", label, inspect_name(t->name),
           inspect_type_name(t), dims, scale, t->channel_scales ? " (per channel)" : "",
           (int)t->zero_point, range);
    if (!t->data)
        printf("for %s\n", tool_shown(x->sample));
}

static void print_tensor(const inspected *x, int index, int64_t limit)
{
    const qat_qtensor *t = &x->graph->tensors[index];
    size_t const count = qat_qtensor_count(t), shown = shown_of(count, limit);
    print_head(x, index);
    if (has_integers(t))
        print_integers(t, shown);
    else if (x->codes[index])
        print_codes(x, index, shown);
    print_rest(count, shown);
}

/* ------------------------------------------------------------------ tensors as JSON */

static void json_reals(const char *name, const float *values, size_t count)
{
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%.9g", i ? ", " : "", (double)values[i]);
    printf("]");
}

static void json_codes(const inspected *x, int index, size_t shown)
{
    const qat_qtensor *t = &x->graph->tensors[index];
    printf(", \"codes\": [");
    for (size_t i = 0; i < shown; i++)
        printf("%s%d", i ? ", " : "", inspect_code(t, x->codes[index], i));
    printf(inspect_has_scale(t) ? "], \"values\": [" : "], \"values\": null");
    for (size_t i = 0; i < shown && inspect_has_scale(t); i++)
        printf("%s%.9g", i ? ", " : "", value_of(t, x->codes[index], i));
    printf(inspect_has_scale(t) ? "]" : "");
    if (x->real[index])
        json_reals("real", x->real[index], shown);
}

static void json_integers(const qat_qtensor *t, size_t shown)
{
    printf(", \"values\": [");
    for (size_t i = 0; i < shown; i++)
        printf("%s%lld", i ? ", " : "", (long long)qi_value_at(t->type, t->data, i));
    printf("]");
}

static void json_tensor(const inspected *x, int index, int64_t limit)
{
    const qat_qtensor *t = &x->graph->tensors[index];
    size_t const count = qat_qtensor_count(t), shown = shown_of(count, limit);
    inspect_json_tensor(x->graph, index);
    printf(", \"count\": %zu", count);
    if (!t->data) {
        printf(", \"sample\": ");
        tool_json_string(x->sample);
    }
    if (has_integers(t))
        json_integers(t, shown);
    else if (x->codes[index])
        json_codes(x, index, shown);
    printf("}\n");
}

/* ------------------------------------------------------------------ parameters of a checkpoint */

static const qat_named_tensor *find_param(const inspected *x, const char *name)
{
    const qat_checkpoint *c = x->restored ? qat_restored_checkpoint(x->restored) : NULL;
    int n = 0;
    const qat_named_tensor *params = c ? qat_checkpoint_tensors(c, &n) : NULL;
    for (int i = 0; i < n; i++)
        if (!strcmp(params[i].name, name))
            return &params[i];
    return NULL;
}

bool inspect_is_observed_range(const qat_named_tensor *param)
{
    static const char end[] = "/q/range";
    size_t const n = strlen(param->name), m = sizeof end - 1;
    return n > m && !strcmp(param->name + n - m, end) && qat_shape_count(&param->shape) == 3;
}

static void print_param(const qat_named_tensor *p, int64_t limit)
{
    if (inspect_is_observed_range(p)) {
        printf("observed range %s: min %.8g, max %.8g, over %.0f steps\n", tool_shown(p->name),
               (double)p->values[0], (double)p->values[1], (double)p->values[2]);
        return;
    }
    char shape[64];
    size_t const count = qat_shape_count(&p->shape), shown = shown_of(count, limit);
    printf("parameter %s: %s\n%6s %14s\n", tool_shown(p->name), qat_shape_text(&p->shape, shape),
           "i", "real");
    for (size_t i = 0; i < shown; i++)
        printf("%6zu %14.8g\n", i, (double)p->values[i]);
    print_rest(count, shown);
}

static void json_param(const qat_named_tensor *p, int64_t limit)
{
    size_t const count = qat_shape_count(&p->shape);
    printf("{\"name\": ");
    tool_json_string(p->name);
    printf(", \"kind\": \"parameter\", \"shape\": [");
    for (int i = 0; i < p->shape.rank; i++)
        printf("%s%d", i ? ", " : "", p->shape.dims[i]);
    printf("], \"count\": %zu", count);
    if (inspect_is_observed_range(p))
        printf(", \"min\": %.9g, \"max\": %.9g, \"steps\": %.0f", (double)p->values[0],
               (double)p->values[1], (double)p->values[2]);
    else
        json_reals("real", p->values, shown_of(count, limit));
    printf("}\n");
}

/* ------------------------------------------------------------------ finding it */

static void keep_nearer(const char *name, const char *which, const char **best, int *distance)
{
    int const d = qat_edit_distance(which, name);
    if (!*name || d >= *distance)
        return;
    *distance = d;
    *best = name;
}

static qat_status unknown(const inspected *x, const char *which, qat_error *err)
{
    const qat_checkpoint *c = x->restored ? qat_restored_checkpoint(x->restored) : NULL;
    const char *best = "";
    int distance = 1 << 20;
    for (int i = 0; x->graph && i < x->graph->n_tensors; i++)
        keep_nearer(x->graph->tensors[i].name, which, &best, &distance);
    int n = 0;
    const qat_named_tensor *params = c ? qat_checkpoint_tensors(c, &n) : NULL;
    for (int i = 0; i < n; i++)
        keep_nearer(params[i].name, which, &best, &distance);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: no tensor %s (there are %d; give an index, a number or a name); %s%s",
                    x->path, which, x->graph ? x->graph->n_tensors : 0,
                    *best ? "the nearest name is " : "names were left out (qat-export --strip)",
                    best);
}

qat_status inspect_print_tensor(inspected *x, const char *which, int64_t limit, bool json,
                                qat_error *err)
{
    const qat_named_tensor *param = find_param(x, which);
    int const index = x->graph ? inspect_find(x, which) : -1;
    if (index < 0 && !param)
        return unknown(x, which, err);
    if (index < 0) {
        (json ? json_param : print_param)(param, limit);
        return QAT_OK;
    }
    qat_status const st = inspect_run(x, err);
    if (!st)
        (json ? json_tensor : print_tensor)(x, index, limit);
    return st;
}
