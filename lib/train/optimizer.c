/** The optimizer of a recipe: its options, learning rates by name, averages. */
#include "base/number.h"
#include "finetune/pattern.h"
#include "qat/quantizer.h"
#include "recipe/recipe.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ learning rates by name */

/** One "PATTERN:NUMBER" of train.lr_scale. */
typedef struct rate_rule {
    char pattern[QAT_PATTERN_MAX];
    double scale;
} rate_rule;

static bool parse_rule(const char *item, rate_rule *rule)
{
    const char *colon = strrchr(item, ':');
    char *end;
    if (!colon || colon == item || strcspn(item, " \t") < (size_t)(colon - item))
        return false;
    memcpy(rule->pattern, item, (size_t)(colon - item));
    rule->pattern[colon - item] = 0;
    rule->scale = qat_number_of(colon + 1, &end);
    return end != colon + 1 && !*end && rule->scale >= 0 && rule->scale <= 1e30;
}

/** Apply a rule; returns how many parameters it matches. */
static int apply_rule(qat_trainer *t, const rate_rule *rule)
{
    int matched = 0;
    for (int i = 0; i < qat_graph_nodes(t->training); i++) {
        const qat_node *node = qat_graph_node(t->training, i);
        if (!node->is_param || !node->trainable || !qat_pattern_matches(rule->pattern, node->name))
            continue;
        double const own = qat_is_learned_range(node->name) ? t->quant.range_rate : 1;
        qat_optimizer_set_rate_scale(t->optimizer, node, own * rule->scale);
        matched++;
    }
    return matched;
}

static qat_status scale_rates(qat_trainer *t, qat_error *err)
{
    const char *at = t->recipe->train.lr_scale;
    char item[QAT_PATTERN_MAX];
    while (qat_list_next(&at, item)) {
        rate_rule rule;
        if (!parse_rule(item, &rule))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "%s: train.lr_scale: '%s': expected PATTERN:NUMBER with a number in "
                            "0..1e30",
                            t->recipe->source, item);
        if (!apply_rule(t, &rule))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "%s: train.lr_scale: no trained parameter matches '%s'",
                            t->recipe->source, rule.pattern);
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ the optimizer */

/** Set the separate learning rate of learned ranges. */
static void scale_range_rates(const qat_trainer *t)
{
    for (int i = 0; i < qat_graph_nodes(t->training); i++) {
        const qat_node *learned = qat_node_learned(qat_graph_node(t->training, i));
        if (learned)
            qat_optimizer_set_rate_scale(t->optimizer, learned, t->quant.range_rate);
    }
}

static void set_unless_auto(double *to, double from)
{
    if (!isnan(from))
        *to = from;
}

qat_status qat_trainer_open_optimizer(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    qat_optimizer_options o = qat_optimizer_defaults((qat_optimizer_kind)r->train.optimizer);
    o.momentum = r->train.momentum;
    o.nesterov = r->train.nesterov;
    o.decay = r->train.rms_decay;
    o.beta1 = r->train.beta1;
    o.beta2 = r->train.beta2;
    o.weight_decay = r->train.weight_decay;
    o.clip_norm = r->train.clip_norm;
    o.clip_value = r->train.clip_value;
    o.average_decay = r->train.average_decay;
    o.average_ramp = r->train.average_ramp;
    set_unless_auto(&o.epsilon, r->train.epsilon);
    set_unless_auto(&o.initial, r->train.initial_accumulator);
    qat_status const st = qat_optimizer_create(&t->optimizer, t->training, &o, err);
    if (!st)
        scale_range_rates(t);
    return st ? st : scale_rates(t, err);
}

void qat_trainer_eval_params(const qat_trainer *t, qat_graph *eval)
{
    qat_graph_copy_params(eval, t->training);
    for (int i = 0; i < qat_graph_nodes(t->training); i++) {
        const qat_node *node = qat_graph_node(t->training, i);
        bool const averaged = node->is_param && !qat_is_learned_range(node->name);
        const float *average = averaged ? qat_optimizer_average(t->optimizer, node) : NULL;
        qat_node *to = average ? qat_graph_find(eval, node->name) : NULL;
        if (to && to->is_param && qat_shape_equal(&to->shape, &node->shape))
            memcpy(to->value, average, qat_shape_count(&node->shape) * sizeof *average);
    }
}
