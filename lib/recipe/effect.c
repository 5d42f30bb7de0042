/**
 * Keys that are set in vain: values that no part of the run will look at. What contradicts itself
 * is refused (check.c); what is merely without effect is told, so that a run does not silently lack
 * what its recipe seems to ask for. One table says what each such key needs.
 */
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ what keys need */

static bool trains_quantized(const qat_recipe *r)
{
    return r->quant.enabled;
}

static bool begins_from_a_file(const qat_recipe *r)
{
    return *r->train.init != 0;
}

static bool has_teacher(const qat_recipe *r)
{
    return *r->distill.teacher != 0;
}

static bool detects(const qat_recipe *r)
{
    return qat_net_arch_of(r)->detects;
}

static bool is_convnet(const qat_recipe *r)
{
    return r->model.arch == QAT_ARCH_CONVNET;
}

static bool has_hidden(const qat_recipe *r)
{
    return is_convnet(r) || r->model.arch == QAT_ARCH_MLP;
}

static bool is_called(const qat_recipe *r, const char *prefix)
{
    return !strncmp(qat_net_arch_of(r)->name, prefix, strlen(prefix));
}

static bool is_resnet(const qat_recipe *r)
{
    return is_called(r, "resnet");
}

static bool is_mobilenet(const qat_recipe *r)
{
    return is_called(r, "mobilenet");
}

static bool is_no_list_of_layers(const qat_recipe *r)
{
    return r->model.arch != QAT_ARCH_LAYERS;
}

static bool goes_by_epochs(const qat_recipe *r)
{
    return r->train.steps == 0;
}

static bool drops_on_plateaus(const qat_recipe *r)
{
    return r->train.schedule == QAT_SCHEDULE_PLATEAU;
}

static bool has_factor(const qat_recipe *r)
{
    return r->train.schedule == QAT_SCHEDULE_STAIRCASE ||
           r->train.schedule == QAT_SCHEDULE_EXPONENTIAL ||
           r->train.schedule == QAT_SCHEDULE_PIECEWISE || drops_on_plateaus(r);
}

static bool has_period(const qat_recipe *r)
{
    return r->train.schedule == QAT_SCHEDULE_STAIRCASE ||
           r->train.schedule == QAT_SCHEDULE_EXPONENTIAL;
}

static bool looks_for_plateaus(const qat_recipe *r)
{
    return drops_on_plateaus(r) || r->train.stop_patience > 0;
}

static bool ends_at_final_lr(const qat_recipe *r)
{
    return r->train.schedule == QAT_SCHEDULE_COSINE || r->train.schedule == QAT_SCHEDULE_POLYNOMIAL;
}

static bool is_polynomial(const qat_recipe *r)
{
    return r->train.schedule == QAT_SCHEDULE_POLYNOMIAL;
}

static bool is_adam(const qat_recipe *r)
{
    return r->train.optimizer == QAT_OPTIMIZER_ADAM || r->train.optimizer == QAT_OPTIMIZER_ADAMW;
}

static bool is_rmsprop(const qat_recipe *r)
{
    return r->train.optimizer == QAT_OPTIMIZER_RMSPROP;
}

static bool has_epsilon(const qat_recipe *r)
{
    return is_adam(r) || is_rmsprop(r);
}

static bool has_momentum(const qat_recipe *r)
{
    return is_rmsprop(r) || r->train.optimizer == QAT_OPTIMIZER_SGD;
}

static bool is_table(const qat_recipe *r)
{
    return !strcmp(qat_dataset_kind_name(r->data.kind), "table");
}

static bool is_coco(const qat_recipe *r)
{
    return !strcmp(qat_dataset_kind_name(r->data.kind), "coco");
}

static bool names_pictures(const qat_recipe *r)
{
    return is_coco(r) || is_table(r);
}

static bool has_targets(const qat_recipe *r)
{
    return is_table(r) || !strcmp(qat_dataset_kind_name(r->data.kind), "faces");
}

/** name NULL: every key of the section but those named above it. */
static const struct need {
    const char *section, *name;
    bool (*met)(const qat_recipe *);
    const char *text; /* "has no effect " ... */
} needs[] = {
    {"data", "train_annotations", is_coco, "without data.kind = coco"},
    {"data", "test_annotations", is_coco, "without data.kind = coco"},
    {"data", "train_images", names_pictures, "without data.kind = coco or table"},
    {"data", "test_images", names_pictures, "without data.kind = coco or table"},
    {"data", "attributes", is_table, "without data.kind = table"},
    {"data", "value", is_table, "without data.kind = table"},
    {"attributes", NULL, has_targets,
     "without data that have attributes, data.kind = faces or table"},
    {"model", "filters", is_convnet, "without model.arch = convnet"},
    {"model", "strides", is_convnet, "without model.arch = convnet"},
    {"model", "kernel", is_convnet, "without model.arch = convnet"},
    {"model", "head", is_convnet, "without model.arch = convnet"},
    {"model", "hidden", has_hidden, "without model.arch = convnet or mlp"},
    {"model", "depth", is_resnet, "without a model.arch of resnet"},
    {"model", "width", is_resnet, "without a model.arch of resnet"},
    {"model", "multiplier", is_mobilenet, "without a model.arch of mobilenet"},
    {"model", "first_stride", is_mobilenet, "without a model.arch of mobilenet"},
    {"model", "dropout", is_no_list_of_layers, "with model.arch = layers: its layers say it"},
    {"model", "activation", is_no_list_of_layers, "with model.arch = layers: its layers say it"},
    {"model", "batch_norm", is_no_list_of_layers, "with model.arch = layers: its layers say it"},
    {"train", "epochs", goes_by_epochs, "with train.steps, the run's length"},
    {"train", "factor", has_factor,
     "without train.schedule = staircase, exponential, piecewise or plateau"},
    {"train", "every", has_period, "without train.schedule = staircase or exponential"},
    {"train", "plateau_patience", drops_on_plateaus, "without train.schedule = plateau"},
    {"train", "plateau_on", looks_for_plateaus,
     "without train.schedule = plateau or train.stop_patience"},
    {"train", "plateau_threshold", looks_for_plateaus,
     "without train.schedule = plateau or train.stop_patience"},
    {"train", "final_lr", ends_at_final_lr, "without train.schedule = cosine or polynomial"},
    {"train", "power", is_polynomial, "without train.schedule = polynomial"},
    {"train", "momentum", has_momentum, "without train.optimizer = sgd or rmsprop"},
    {"train", "rms_decay", is_rmsprop, "without train.optimizer = rmsprop"},
    {"train", "beta1", is_adam, "without train.optimizer = adam or adamw"},
    {"train", "beta2", is_adam, "without train.optimizer = adam or adamw"},
    {"train", "epsilon", has_epsilon, "without train.optimizer = adam, adamw or rmsprop"},
    {"train", "init_map", begins_from_a_file, "without train.init"},
    {"train", "init_skip", begins_from_a_file, "without train.init"},
    {"detect", NULL, detects, "without a detector, model.arch = mobilenet_ssd"},
    {"distill", "weight", has_teacher, "without distill.teacher"},
    {"distill", "temperature", has_teacher, "without distill.teacher"},
    {"quant", "ema_decay", trains_quantized, "without quant.enabled = yes"},
    {"quant", "quant_delay", trains_quantized, "without quant.enabled = yes"},
    {"quant", "weight_delay", trains_quantized, "without quant.enabled = yes"},
    {"quant", "activation_delay", trains_quantized, "without quant.enabled = yes"},
    {"quant", "bn_freeze_delay", trains_quantized, "without quant.enabled = yes"},
    {"quant", "bn_fold", trains_quantized, "without quant.enabled = yes"},
    {"quant", "learn_delay", trains_quantized, "without quant.enabled = yes"},
    {"quant", "range_rate", trains_quantized, "without quant.enabled = yes"},
    {"quant", "bn_reestimate", trains_quantized, "without quant.enabled = yes"},
    {"quant", "range_log_every", trains_quantized, "without quant.enabled = yes"},
    {"quant", "forward", trains_quantized, "without quant.enabled = yes"},
};

static const struct need *need_of(const qat_key *key)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (!strcmp(needs[i].section, key->section) &&
            (!needs[i].name || !strcmp(needs[i].name, key->name)))
            return &needs[i];
    return NULL;
}

/* ------------------------------------------------------------------ keys in vain */

/** Given, and other than the default? The default does no harm: it asks for nothing. */
static bool is_asked_for(const qat_recipe *r, const qat_recipe *defaults, int index,
                         const qat_key *key)
{
    char here[1024], initial[1024];
    qat_recipe_get_text(r, key, here, sizeof here);
    qat_recipe_get_text(defaults, key, initial, sizeof initial);
    return r->private_->given[index] && strcmp(here, initial) != 0;
}

static void tell(const qat_recipe *r, const qat_key *key, const struct need *need,
                 const qat_log *log)
{
    char where[QAT_RECIPE_WHERE_MAX], text[QAT_RECIPE_WHERE_MAX + 256];
    qat_recipe_where(r, key->section, key->name, where);
    snprintf(text, sizeof text, "%s: %s.%s has no effect %s", where, key->section, key->name,
             need->text);
    log->line(log->context, text);
}

qat_status qat_recipe_tell_idle(const qat_recipe *recipe, const qat_log *log, qat_error *err)
{
    qat_recipe *defaults;
    int n;
    const qat_key *keys = qat_recipe_keys(&n);
    qat_status const st = qat_recipe_parse(&defaults, "", "default", NULL, 0, err);
    for (int i = 0; !st && i < n; i++) {
        const struct need *need = need_of(&keys[i]);
        if (need && !need->met(recipe) && is_asked_for(recipe, defaults, i, &keys[i]))
            tell(recipe, &keys[i], need, log);
    }
    qat_recipe_free(defaults);
    return st;
}
