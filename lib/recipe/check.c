/** Checks keys that are valid on their own but not together. */
#include "recipe/reader.h"
#include "rewrite/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void qat_recipe_where(const qat_recipe *r, const char *section, const char *name,
                      char where[QAT_RECIPE_WHERE_MAX])
{
    char value[128];
    int n;
    int const index = qat_recipe_find_key(section, name);
    if (r->private_->line_of[index]) {
        snprintf(where, QAT_RECIPE_WHERE_MAX, "%.200s:%d", r->source, r->private_->line_of[index]);
    } else if (r->private_->given[index]) {
        qat_recipe_get_text(r, &qat_recipe_keys(&n)[index], value, sizeof value);
        snprintf(where, QAT_RECIPE_WHERE_MAX, "--set %s.%s=%s", section, name, value);
    } else {
        snprintf(where, QAT_RECIPE_WHERE_MAX, "%.200s", r->source);
    }
}

/** Is it a section [quant.layer NAME]? */
static bool is_of_quant(const qat_recipe *r, const qat_recipe_layer *layer)
{
    for (int i = 0; i < r->n_quant_layers; i++)
        if (layer == &r->quant_layers[i])
            return true;
    return false;
}

void qat_recipe_entry_where(const qat_recipe *r, const qat_recipe_layer *layer,
                            const qat_recipe_entry *entry, char where[QAT_RECIPE_WHERE_MAX])
{
    int const line = entry ? entry->line : layer->line;
    if (line)
        snprintf(where, QAT_RECIPE_WHERE_MAX, "%.200s:%d", r->source, line);
    else
        snprintf(where, QAT_RECIPE_WHERE_MAX, "--set %s%.50s.%.60s=%.100s",
                 is_of_quant(r, layer) ? "quant.layer " : "layer.", layer->name, entry->key,
                 entry->value);
}

/** "nesterov = yes" */
static void setting_of(const qat_recipe *r, const char *section, const char *name, char *text,
                       size_t max)
{
    char value[160];
    int n;
    int const index = qat_recipe_find_key(section, name);
    qat_recipe_get_text(r, &qat_recipe_keys(&n)[index], value, sizeof value);
    snprintf(text, max, "%s = %s", name, value);
}

static qat_status clash_in(const char *section, const qat_recipe *r, const char *key,
                           const char *other, const char *why, qat_error *err)
{
    char a[256], b[256], where[QAT_RECIPE_WHERE_MAX];
    setting_of(r, section, key, a, sizeof a);
    setting_of(r, section, other, b, sizeof b);
    qat_recipe_where(r, section, key, where);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: %s.%s cannot be combined with %s.%s: %s", where,
                    section, a, section, b, why);
}

static qat_status clash(const qat_recipe *r, const char *key, const char *other, const char *why,
                        qat_error *err)
{
    return clash_in("train", r, key, other, why, err);
}

/* ------------------------------------------------------------------ [quant] forward = integer */

/** The key that names a quantizer which does not fit; NULL: it fits. */
static const char *key_of_ranges(const qat_recipe *r, const char *key, const char *value,
                                 bool (*fits)(const char *quantizer))
{
    bool const general = strcmp(value, "auto") == 0;
    if (fits(general ? r->quant.ranges : value))
        return NULL;
    return general ? "ranges" : key;
}

static qat_status check_layers_forward(const qat_recipe *r, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < r->n_quant_layers; i++) {
        qat_quant_options one = qat_quant_defaults();
        one.forward = QAT_FORWARD_INTEGER;
        one.n_layers = 1;
        st = qat_recipe_quant_layer(one.layers, r, &r->quant_layers[i], err);
        if (!st)
            st = qat_quant_check_forward(&one, err);
    }
    return st;
}

static qat_status check_forward(const qat_recipe *r, qat_error *err)
{
    static const char coded[] =
        "with none and inq some values have no code, and with fgq a channel has several scales";
    if (!r->quant.enabled || r->quant.forward != QAT_FORWARD_INTEGER)
        return QAT_OK;
    const char *key =
        key_of_ranges(r, "weight_ranges", r->quant.weight_ranges, qat_quant_has_integers);
    if (!key)
        key = key_of_ranges(r, "activation_ranges", r->quant.activation_ranges,
                            qat_quant_has_integers);
    return key ? clash_in("quant", r, key, "forward", coded, err) : check_layers_forward(r, err);
}

/* ------------------------------------------------------------------ [quant] activation_bits = 16
 */

static qat_status check_layers_wide(const qat_recipe *r, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < r->n_quant_layers; i++) {
        qat_quant_options one = qat_quant_defaults();
        one.layout = (qat_layout)r->quant.layout;
        one.activation_bits = (int)r->quant.activation_bits;
        one.n_layers = 1;
        st = qat_recipe_quant_layer(one.layers, r, &r->quant_layers[i], err);
        if (!st)
            st = qat_quant_check_wide(&one, err);
    }
    return st;
}

static bool is_observed(const char *quantizer)
{
    return strcmp(quantizer, "ema") == 0;
}

static qat_status check_wide(const qat_recipe *r, qat_error *err)
{
    static const char why[] = "16-bit activations are TensorFlow Lite's, which have int8 weights "
                              "and its roundings; their scales are observed";
    char where[QAT_RECIPE_WHERE_MAX];
    int const bits = (int)r->quant.activation_bits;
    if (bits != QAT_WIDE_BITS && bits <= 8)
        return check_layers_wide(r, err);
    if (bits != QAT_WIDE_BITS) {
        qat_recipe_where(r, "quant", "activation_bits", where);
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: quant.activation_bits = %d: expected 2 to 8, or %d", where, bits,
                        QAT_WIDE_BITS);
    }
    const char *key =
        r->quant.layout != QAT_LAYOUT_INT8        ? "layout"
        : r->quant.profile != QAT_PROFILE_TFLITE  ? "profile"
        : r->quant.forward == QAT_FORWARD_INTEGER ? "forward"
        : r->quant.power_of_two                   ? "power_of_two"
        : r->quant.input_bits                     ? "input_bits"
        : qat_recipe_fraction(r) > 0
            ? "fraction"
            : key_of_ranges(r, "activation_ranges", r->quant.activation_ranges, is_observed);
    return key ? clash_in("quant", r, key, "activation_bits", why, err) : check_layers_wide(r, err);
}

/** ONNX Runtime's sums have no fractional bits. */
static qat_status check_profile_onnx(const qat_recipe *r, qat_error *err)
{
    if (r->quant.profile != QAT_PROFILE_ONNX || qat_recipe_fraction(r) <= 0)
        return QAT_OK;
    return clash_in("quant", r, "fraction", "profile",
                    "sums of ONNX Runtime have no fractional bits", err);
}

/** Check a key with a least and a largest value. */
static qat_status check_interval(const qat_recipe *r, const char *key, const qat_real_list *list,
                                 qat_error *err)
{
    char setting[256], where[QAT_RECIPE_WHERE_MAX];
    if (list->n <= 2 && (list->n < 2 || list->v[0] <= list->v[1]))
        return QAT_OK;
    setting_of(r, "data", key, setting, sizeof setting);
    qat_recipe_where(r, "data", key, where);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: data.%s: expected a least and a largest value",
                    where, setting);
}

/** Check that there is one step for each share of the weights. */
static qat_status check_stages(const qat_recipe *r, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    int const n = r->quant.inq_stages.n;
    if (n == 0 || n == QAT_INQ_STAGES)
        return QAT_OK;
    qat_recipe_where(r, "quant", "inq_stages", where);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: quant.inq_stages: %d moments, not %d", where, n,
                    QAT_INQ_STAGES);
}

static qat_status check_bits_schedules(const qat_recipe *r, qat_error *err)
{
    qat_recipe_stage stages[QAT_BITS_STAGES];
    int n;
    qat_status const st = qat_recipe_stages(r, "weight_bits_schedule",
                                            r->quant.weight_bits_schedule, stages, &n, err);
    return st ? st
              : qat_recipe_stages(r, "activation_bits_schedule", r->quant.activation_bits_schedule,
                                  stages, &n, err);
}

/** Check that the scales of anchors grow from map to map. */
static qat_status check_scales(const qat_recipe *r, qat_error *err)
{
    if (r->detect.min_scale <= r->detect.max_scale)
        return QAT_OK;
    return clash_in("detect", r, "max_scale", "min_scale", "the largest value is below the least",
                    err);
}

/** Check that no number of bits is given twice, which would be two names for one choice. */
static qat_status check_bits_once(const qat_recipe *r, const char *key, const qat_int_list *bits,
                                  qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX], setting[256];
    for (int i = 0; i < bits->n; i++)
        for (int k = 0; k < i; k++) {
            if (bits->v[i] != bits->v[k])
                continue;
            qat_recipe_where(r, "budget", key, where);
            setting_of(r, "budget", key, setting, sizeof setting);
            return qat_fail(err, QAT_ERR_ARGUMENT, "%s: budget.%s: %d is given twice", where,
                            setting, (int)bits->v[i]);
        }
    return QAT_OK;
}

static qat_status check_budget(const qat_recipe *r, qat_error *err)
{
    qat_status const st = check_bits_once(r, "weight_bits", &r->budget.weight_bits, err);
    return st ? st : check_bits_once(r, "activation_bits", &r->budget.activation_bits, err);
}

/** Check that steps of the same unit are in order. */
static qat_status check_milestones(const qat_recipe *r, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX], setting[256];
    const qat_steps_list *m = &r->train.milestones;
    for (int i = 1; i < m->n; i++) {
        if (m->v[i].unit != m->v[i - 1].unit || m->v[i].amount >= m->v[i - 1].amount)
            continue;
        qat_recipe_where(r, "train", "milestones", where);
        setting_of(r, "train", "milestones", setting, sizeof setting);
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: train.%s: step %d of the list is not later than the one before", where,
                        setting, i + 1);
    }
    return QAT_OK;
}

/** Check that there are evaluations if the run watches for plateaus. */
static qat_status check_plateaus(const qat_recipe *r, qat_error *err)
{
    static const char why[] = "it needs evaluations";
    if (r->train.eval_every.unit != QAT_UNIT_NEVER)
        return QAT_OK;
    if (r->train.schedule == QAT_SCHEDULE_PLATEAU)
        return clash(r, "eval_every", "schedule", why, err);
    return r->train.stop_patience > 0 ? clash(r, "eval_every", "stop_patience", why, err) : QAT_OK;
}

static qat_status check_input_bits(const qat_recipe *r, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    if (r->quant.input_bits != 1)
        return QAT_OK;
    qat_recipe_where(r, "quant", "input_bits", where);
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s: quant.input_bits = 1: expected 0 or 2 to 8", where);
}

static qat_status check_attributes(const qat_recipe *r, qat_error *err)
{
    if (r->attributes.low < r->attributes.high)
        return QAT_OK;
    return clash_in("attributes", r, "high", "low", "the range of the value is empty", err);
}

qat_status qat_recipe_check(const qat_recipe *r, qat_error *err)
{
    int const kind = r->train.optimizer;
    bool const accumulates = kind == QAT_OPTIMIZER_RMSPROP || kind == QAT_OPTIMIZER_ADAGRAD;
    bool const piecewise = r->train.schedule == QAT_SCHEDULE_PIECEWISE;
    if (r->train.nesterov && kind != QAT_OPTIMIZER_SGD)
        return clash(r, "nesterov", "optimizer", "only sgd has Nesterov's momentum", err);
    if (!isnan(r->train.initial_accumulator) && !accumulates)
        return clash(r, "initial_accumulator", "optimizer", "only rmsprop and adagrad use it", err);
    if (r->train.clip_norm > 0 && r->train.clip_value > 0)
        return clash(r, "clip_value", "clip_norm", "clip by the norm or by value, not by both",
                     err);
    if (r->train.shards > r->train.batch)
        return clash(r, "shards", "batch", "each part of a batch has at least one sample", err);
    if (r->train.asynchronous && r->train.shards > 1)
        return clash(r, "asynchronous", "shards", "each rank takes whole batches", err);
    if (piecewise && r->train.milestones.n == 0)
        return clash(r, "schedule", "milestones", "give at least one step", err);
    if (!piecewise && r->train.milestones.n > 0)
        return clash(r, "milestones", "schedule", "milestones need schedule = piecewise", err);
    if (r->train.average_ramp && r->train.average_decay == 0)
        return clash(r, "average_ramp", "average_decay",
                     "there is no average without average_decay", err);
    qat_status st = check_interval(r, "crop_area", &r->data.crop_area, err);
    if (!st)
        st = check_interval(r, "crop_aspect", &r->data.crop_aspect, err);
    if (!st)
        st = check_stages(r, err);
    if (!st)
        st = check_bits_schedules(r, err);
    if (!st)
        st = check_attributes(r, err);
    if (!st)
        st = check_input_bits(r, err);
    if (!st)
        st = check_scales(r, err);
    if (!st)
        st = check_milestones(r, err);
    if (!st)
        st = check_plateaus(r, err);
    if (!st)
        st = check_budget(r, err);
    if (!st)
        st = check_wide(r, err);
    if (!st)
        st = check_profile_onnx(r, err);
    return st ? st : check_forward(r, err);
}
