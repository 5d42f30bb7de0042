/**
 * Makes quantization options from a recipe: from the keys of [quant], and from the sections
 * [quant.layer PATTERN] in the file's order.
 */
#include "recipe/reader.h"

#include "qat/quantizer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ [quant.layer PATTERN] */

typedef enum override_type {
    OVERRIDE_BITS,
    OVERRIDE_ACTIVATION_BITS,
    OVERRIDE_BOOL,
    OVERRIDE_NAME
} override_type;

/** The keys of such a section. offset: of the member of qat_quant_layer. */
static const struct override_key {
    const char *name;
    override_type type;
    size_t offset, offset2; /* `ranges` sets both; 0: only one */
} override_keys[] = {
    {"weight_bits", OVERRIDE_BITS, offsetof(qat_quant_layer, weight_bits), 0},
    {"activation_bits", OVERRIDE_ACTIVATION_BITS, offsetof(qat_quant_layer, activation_bits), 0},
    {"input_bits", OVERRIDE_BITS, offsetof(qat_quant_layer, input_bits), 0},
    {"per_channel", OVERRIDE_BOOL, offsetof(qat_quant_layer, per_channel), 0},
    {"symmetric", OVERRIDE_BOOL, offsetof(qat_quant_layer, symmetric), 0},
    {"power_of_two", OVERRIDE_BOOL, offsetof(qat_quant_layer, power_of_two), 0},
    {"float", OVERRIDE_BOOL, offsetof(qat_quant_layer, is_float), 0},
    {"ranges", OVERRIDE_NAME, offsetof(qat_quant_layer, weight_ranges),
     offsetof(qat_quant_layer, activation_ranges)},
    {"weight_ranges", OVERRIDE_NAME, offsetof(qat_quant_layer, weight_ranges), 0},
    {"activation_ranges", OVERRIDE_NAME, offsetof(qat_quant_layer, activation_ranges), 0},
};

enum { OVERRIDE_KEYS = sizeof override_keys / sizeof *override_keys };

const char *qat_quant_layer_pattern(const char *section)
{
    static const char prefix[] = "quant.layer";
    size_t const n = sizeof prefix - 1;
    if (strncmp(section, prefix, n) != 0 || section[n] != ' ')
        return NULL;
    section += n + strspn(section + n, " ");
    return *section ? section : NULL;
}

static const struct override_key *find_key(const char *name)
{
    for (int i = 0; i < OVERRIDE_KEYS; i++)
        if (strcmp(override_keys[i].name, name) == 0)
            return &override_keys[i];
    return NULL;
}

static qat_status unknown_key(const char *pattern, const char *name, const char *where,
                              qat_error *err)
{
    const struct override_key *best = override_keys;
    for (int i = 1; i < OVERRIDE_KEYS; i++)
        if (qat_name_distance(name, override_keys[i].name) < qat_name_distance(name, best->name))
            best = &override_keys[i];
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: unknown key %s in [quant.layer %s]; the nearest is %s", where, name,
                    pattern, best->name);
}

static qat_status bad_value(const char *pattern, const char *key, const char *value,
                            const char *expected, const char *where, qat_error *err)
{
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: [quant.layer %s] %s = %s: expected %s", where,
                    pattern, key, value, expected);
}

static bool parse_bits(const char *text, int *bits)
{
    *bits = text[0] >= '2' && text[0] <= '8' && !text[1] ? text[0] - '0' : 0;
    return *bits != 0;
}

qat_status qat_quant_layer_set(qat_quant_layer *layer, const char *name, const char *value,
                               const char *where, qat_error *err)
{
    const struct override_key *key = find_key(name);
    bool flag = false;
    if (!key)
        return unknown_key(layer->pattern, name, where, err);
    char *to = (char *)layer + key->offset;
    switch (key->type) {
    case OVERRIDE_BITS:
        if (!parse_bits(value, (int *)(void *)to))
            return bad_value(layer->pattern, name, value, "an integer in 2..8", where, err);
        break;
    case OVERRIDE_ACTIVATION_BITS:
        if (strcmp(value, "16") == 0)
            *(int *)(void *)to = QAT_WIDE_BITS;
        else if (!parse_bits(value, (int *)(void *)to))
            return bad_value(layer->pattern, name, value, "an integer in 2..8, or 16", where, err);
        break;
    case OVERRIDE_BOOL:
        if (!qat_recipe_parse_bool(&flag, value))
            return bad_value(layer->pattern, name, value, "yes or no", where, err);
        *(int *)(void *)to = flag;
        break;
    case OVERRIDE_NAME:
        if (!*value || strlen(value) >= QAT_QUANTIZER_NAME_MAX)
            return bad_value(layer->pattern, name, value, "the name of a quantizer", where, err);
        strcpy(to, value);
        if (key->offset2)
            strcpy((char *)layer + key->offset2, value);
        break;
    }
    return QAT_OK;
}

qat_status qat_recipe_quant_layer(qat_quant_layer *layer, const qat_recipe *r,
                                  const qat_recipe_layer *from, qat_error *err)
{
    /* without the folder: checkpoints have this text, and do not depend on where a recipe lies */
    const char *slash = strrchr(r->source, '/'), *file = slash ? slash + 1 : r->source;
    qat_status st = QAT_OK;
    *layer = qat_quant_layer_defaults(from->name);
    bool set = !from->line;
    for (int i = 0; i < from->n_entries; i++)
        set = set || !from->entries[i].line;
    if (from->line)
        snprintf(layer->where, sizeof layer->where, "%.38s:%d%s", file, from->line,
                 set ? " and --set" : "");
    else
        snprintf(layer->where, sizeof layer->where, "--set");
    for (int i = 0; !st && i < from->n_entries; i++)
        st = qat_quant_layer_set(layer, from->entries[i].key, from->entries[i].value, r->source,
                                 err);
    return st;
}

/* ------------------------------------------------------------------ [quant] */

static bool is_auto(const char *text)
{
    return strcmp(text, "auto") == 0;
}

/** Copy the name of a quantizer, which the registry must have. */
static qat_status set_ranges(char *to, const qat_recipe *r, const char *key, const char *value,
                             bool weights, const qat_registry *registry, qat_error *err)
{
    char where[300], place[QAT_RECIPE_WHERE_MAX];
    bool const general = is_auto(value);
    const char *name = general ? r->quant.ranges : value;
    qat_recipe_where(r, "quant", general ? "ranges" : key, place);
    snprintf(where, sizeof where, "%s: quant.%s", place, general ? "ranges" : key);
    qat_status const st = qat_check_quantizer(registry, where, name, weights, err);
    snprintf(to, QAT_QUANTIZER_NAME_MAX, "%s", name);
    return st;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** The later step, but for one that never comes. */
static int64_t later_if_ever(int64_t start, int64_t delay)
{
    return delay == INT64_MAX ? start : later(start, delay);
}

/** Learning begins with the second epoch, or when quantization starts if that is later. */
static int64_t learn_delay(const qat_recipe *r, const qat_quant_options *q, int64_t per_epoch,
                           int64_t total)
{
    int64_t const start =
        later_if_ever(later_if_ever(per_epoch, q->weight_delay), q->activation_delay);
    return later(1, qat_steps_resolve(&r->quant.learn_delay, per_epoch, total, start));
}

int qat_recipe_fraction(const qat_recipe *r)
{
    return QAT_FRACTION_AUTO + r->quant.fraction;
}

/** A moment of a run as a step. Outside of a run, what happens at all has happened. */
static int64_t step_of(const qat_steps *moment, int64_t per_epoch, int64_t total, int64_t automatic)
{
    int64_t const step = qat_steps_resolve(moment, per_epoch, total, automatic);
    return per_epoch || step == INT64_MAX ? step : 0;
}

static void set_delays(qat_quant_options *q, const qat_recipe *r, int64_t per_epoch, int64_t total)
{
    int64_t const delay = step_of(&r->quant.quant_delay, per_epoch, total, 0);
    q->weight_delay = step_of(&r->quant.weight_delay, per_epoch, total, delay);
    q->activation_delay = step_of(&r->quant.activation_delay, per_epoch, total, delay);
    q->bn_freeze_delay = step_of(&r->quant.bn_freeze_delay, per_epoch, total, INT64_MAX);
    q->learn_delay = learn_delay(r, q, per_epoch, total);
    int64_t const start = later_if_ever(0, q->weight_delay);
    int64_t const left = total > start ? total - start : 0;
    for (int i = 0; i < QAT_INQ_STAGES; i++)
        q->inq_stages[i] = r->quant.inq_stages.n
                               ? qat_steps_resolve(&r->quant.inq_stages.v[i], per_epoch, total, 0)
                               : start + left * i / QAT_INQ_STAGES;
}

/** "quant_delay = 60%, step 12" */
static void moment_of(const qat_recipe *r, const char *key, int64_t step, char text[192])
{
    char value[128];
    int n;
    qat_recipe_get_text(r, &qat_recipe_keys(&n)[qat_recipe_find_key("quant", key)], value,
                        sizeof value);
    if (step == INT64_MAX)
        snprintf(text, 192, "quant.%s = %s", key, value);
    else
        snprintf(text, 192, "quant.%s = %s, step %" PRId64, key, value, step);
}

/** Weights must be quantized before batch norm freezes. */
static qat_status check_delays(const qat_quant_options *q, const qat_recipe *r, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX], freeze[192], start[192];
    bool const is_general = r->quant.weight_delay.unit == QAT_UNIT_AUTO;
    if (!r->quant.enabled || q->bn_freeze_delay >= q->weight_delay)
        return QAT_OK;
    qat_recipe_where(r, "quant", "bn_freeze_delay", where);
    moment_of(r, "bn_freeze_delay", q->bn_freeze_delay, freeze);
    moment_of(r, is_general ? "quant_delay" : "weight_delay", q->weight_delay, start);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: %s: batch norm can freeze only when weights are quantized (%s)", where,
                    freeze, start);
}

static void set_freezing(qat_quant_options *q, const qat_recipe *r)
{
    double const end = r->quant.freeze_threshold_end;
    if (r->quant.freeze_threshold <= 0)
        return;
    q->freeze_bits = (int)r->quant.freeze_bits;
    q->freeze_threshold = r->quant.freeze_threshold;
    q->freeze_threshold_end = isnan(end) ? q->freeze_threshold : end;
    q->freeze_share = r->quant.freeze_share;
}

qat_status qat_recipe_quant_options(qat_quant_options *q, const qat_recipe *r,
                                    const qat_registry *registry, const qat_input_info *input,
                                    int64_t per_epoch, int64_t total, qat_error *err)
{
    *q = qat_quant_defaults();
    q->layout = (qat_layout)r->quant.layout;
    q->weight_bits = (int)r->quant.weight_bits;
    q->activation_bits = (int)r->quant.activation_bits;
    q->input_bits = (int)r->quant.input_bits;
    q->ema_decay = r->quant.ema_decay;
    q->bn_fold = (qat_bn_fold)r->quant.bn_fold;
    q->forward = (qat_forward)r->quant.forward;
    q->profile = (qat_profile)r->quant.profile;
    q->input_min = input->min;
    q->input_max = input->max;
    q->power_of_two = r->quant.power_of_two;
    q->range_rate = r->quant.range_rate;
    q->dampen = r->quant.dampen;
    q->dampened = total;
    set_freezing(q, r);
    q->fraction = qat_recipe_fraction(r);
    set_delays(q, r, per_epoch, total);
    qat_status st = set_ranges(q->weight_ranges, r, "weight_ranges", r->quant.weight_ranges, true,
                               registry, err);
    if (!st)
        st = set_ranges(q->activation_ranges, r, "activation_ranges", r->quant.activation_ranges,
                        false, registry, err);
    if (!st)
        st = qat_recipe_bits_stages(r, "weight_bits_schedule", r->quant.weight_bits_schedule,
                                    per_epoch, total, q->weight_stages, &q->n_weight_stages, err);
    if (!st)
        st = qat_recipe_bits_stages(r, "activation_bits_schedule",
                                    r->quant.activation_bits_schedule, per_epoch, total,
                                    q->activation_stages, &q->n_activation_stages, err);
    for (int i = 0; !st && i < r->n_quant_layers; i++) /* at most QAT_QUANT_LAYERS_MAX */
        st = qat_recipe_quant_layer(&q->layers[q->n_layers++], r, &r->quant_layers[i], err);
    return st ? st : check_delays(q, r, err);
}
