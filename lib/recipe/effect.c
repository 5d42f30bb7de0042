/**
 * Finds keys that are set but have no effect, because no part of the run reads them. Settings that
 * contradict each other are errors (check.c); settings without effect are only reported, so that a
 * run does not silently ignore a part of its recipe. One table lists the conditions of such keys.
 */
#include "recipe/archs.h"
#include "recipe/reader.h"

#include <stdio.h>
#include <stdlib.h>
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

static bool has_head(const qat_recipe *r)
{
    return is_convnet(r) || qat_net_is_imported(r);
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

static bool is_no_mlp(const qat_recipe *r)
{
    return r->model.arch != QAT_ARCH_MLP;
}

static bool is_no_file(const qat_recipe *r)
{
    return !qat_net_is_imported(r);
}

static bool ends_in_a_classifier(const qat_recipe *r)
{
    return !qat_net_is_imported(r) && !detects(r);
}

static bool is_no_detector(const qat_recipe *r)
{
    return !detects(r);
}

/** Lists of layers and networks from files say themselves where batch norm is. */
static bool has_batch_norm(const qat_recipe *r)
{
    return r->model.batch_norm || r->model.arch == QAT_ARCH_LAYERS || qat_net_is_imported(r);
}

static bool cuts_batches(const qat_recipe *r)
{
    return r->train.shards > 1;
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

static bool has_objects(const qat_recipe *r)
{
    return qat_dataset_kind_has_objects(r->data.kind);
}

static bool has_targets(const qat_recipe *r)
{
    return qat_dataset_kind_has_targets(r->data.kind);
}

/** Do the data have objects of pictures in files? */
static bool is_coco(const qat_recipe *r)
{
    return has_objects(r) && qat_dataset_kind_needs_path(r->data.kind);
}

/** Do the data have targets from a table? */
static bool is_table(const qat_recipe *r)
{
    return has_targets(r) && qat_dataset_kind_needs_path(r->data.kind);
}

/** Is it a table, of pictures or of numbers? */
static bool has_columns(const qat_recipe *r)
{
    return is_table(r) || !strcmp(qat_dataset_kind_name(r->data.kind), "numbers");
}

static bool is_huber(const qat_recipe *r)
{
    return r->regression.loss == 2;
}

static bool has_masks(const qat_recipe *r)
{
    return !strcmp(qat_dataset_kind_name(r->data.kind), "masks");
}

static bool draws_objects(const qat_recipe *r)
{
    return has_objects(r) && !qat_dataset_kind_needs_path(r->data.kind);
}

/** Pictures in files of their own, which are read when they are needed. */
static bool has_picture_files(const qat_recipe *r)
{
    return !has_masks(r) && qat_dataset_kind_needs_path(r->data.kind) &&
           qat_dataset_kind_resizes(r->data.kind);
}

/** Such files are decoded at a part of their size; boxes are in pixels of the whole picture. */
static bool has_scaled_files(const qat_recipe *r)
{
    return has_picture_files(r) && !has_objects(r);
}

static bool has_real_values(const qat_recipe *r)
{
    const char *name = qat_dataset_kind_name(r->data.kind);
    return !strcmp(name, "numbers") || !strcmp(name, "npy") || !strcmp(name, "tones");
}

static bool has_wav(const qat_recipe *r)
{
    return !strcmp(qat_dataset_kind_name(r->data.kind), "wav");
}

static bool has_files(const qat_recipe *r)
{
    return has_picture_files(r) || has_wav(r);
}

static bool has_sounds(const qat_recipe *r)
{
    return has_wav(r) || !strcmp(qat_dataset_kind_name(r->data.kind), "keywords");
}

static bool adds_background(const qat_recipe *r)
{
    return r->data.background > 0;
}

static bool names_pictures(const qat_recipe *r)
{
    return is_coco(r) || is_table(r);
}

/** A table has a value only if value names a column. */
static bool has_value(const qat_recipe *r)
{
    return has_targets(r) && (!is_table(r) || *r->data.value);
}

static bool learns_value(const qat_recipe *r)
{
    return has_value(r) && r->attributes.value != QAT_VALUE_NONE;
}

static bool crops_parts(const qat_recipe *r)
{
    return r->data.crop_area.v[0] < 1;
}

/** Asks something of one entry of a [quant.layer] section. */
typedef bool entry_test(const qat_recipe *r, const void *context, const char *key,
                        const char *value);

/** Is it so for any entry of any [quant.layer] section? */
static bool any_layer_entry(const qat_recipe *r, entry_test *is_so, const void *context)
{
    bool found = false;
    for (int i = 0; i < r->n_quant_layers; i++)
        for (int k = 0; k < r->quant_layers[i].n_entries; k++)
            found |= is_so(r, context, r->quant_layers[i].entries[k].key,
                           r->quant_layers[i].entries[k].value);
    return found;
}

static bool is_inq(const qat_recipe *r, const void *context, const char *key, const char *value)
{
    return !strcmp(value, "inq");
}

/** Does inq quantize some weights, of the network or of a section? */
static bool has_inq(const qat_recipe *r)
{
    const char *name = r->quant.weight_ranges;
    return !strcmp(strcmp(name, "auto") ? name : r->quant.ranges, "inq") ||
           any_layer_entry(r, is_inq, NULL);
}

/** Have weights by these ranges codes by a rule of their own? */
static bool is_scheme(const char *ranges)
{
    static const char *const schemes[] = {"dorefa", "weight_norm", "apot", "bwn",
                                          "twn",    "fgq",         "inq"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (!strcmp(ranges, schemes[i]))
            return true;
    return false;
}

/** Names of a plugin's quantizers are not known here: their ranges may be learned. */
static bool is_learned(const char *ranges)
{
    return !is_scheme(ranges) && strcmp(ranges, "auto") != 0 && strcmp(ranges, "ema") != 0 &&
           strcmp(ranges, "none") != 0;
}

static bool are_learned(const qat_recipe *r, const void *context, const char *key,
                        const char *value)
{
    return strstr(key, "ranges") && is_learned(value);
}

static bool learns_ranges(const qat_recipe *r)
{
    return r->quant.enabled &&
           (is_learned(r->quant.ranges) || is_learned(r->quant.weight_ranges) ||
            is_learned(r->quant.activation_ranges) || any_layer_entry(r, are_learned, NULL));
}

static bool freezes(const qat_recipe *r)
{
    return r->quant.freeze_threshold > 0;
}

/** Ranges that a key other than `ranges` can give, and a question about them. */
struct some_ranges {
    const char *key;
    bool (*is_one)(const char *ranges);
};

static bool are_others(const qat_recipe *r, const void *context, const char *key, const char *value)
{
    const struct some_ranges *s = context;
    return (!strcmp(key, s->key) || !strcmp(key, "ranges")) && !s->is_one(value);
}

/** Are some ranges of the network, or of a section, others than these? */
static bool has_other_ranges(const qat_recipe *r, const char *own, const char *key,
                             bool (*is_one)(const char *ranges))
{
    struct some_ranges const s = {key, is_one};
    return !is_one(strcmp(own, "auto") ? own : r->quant.ranges) ||
           any_layer_entry(r, are_others, &s);
}

static bool has_fixed_bits(const char *ranges)
{
    return !strcmp(ranges, "bwn") || !strcmp(ranges, "twn");
}

static bool dampens_weights(const qat_recipe *r)
{
    return has_other_ranges(r, r->quant.weight_ranges, "weight_ranges", is_scheme);
}

static bool is_none(const char *ranges)
{
    return !strcmp(ranges, "none");
}

static bool chooses_weight_bits(const qat_recipe *r)
{
    return has_other_ranges(r, r->quant.weight_ranges, "weight_ranges", has_fixed_bits);
}

static bool quantizes_activations(const qat_recipe *r)
{
    return has_other_ranges(r, r->quant.activation_ranges, "activation_ranges", is_none);
}

static bool may_freeze(const qat_recipe *r, const void *context, const char *key, const char *value)
{
    return !strcmp(key, "weight_bits") && atoi(value) <= r->quant.freeze_bits;
}

static bool has_budget(const qat_recipe *r)
{
    return r->budget.flash || r->budget.ram || r->budget.macs_bits;
}

/** Do some weights have so few bits that they may be frozen? A search may give them so few. */
static bool has_few_bits(const qat_recipe *r)
{
    return has_budget(r) || r->quant.weight_bits <= r->quant.freeze_bits ||
           any_layer_entry(r, may_freeze, NULL);
}

/** A schedule of bits, and the keys of the bits with which it ends. */
struct bits_schedule {
    const char *text, *keys[2];
};

static bool has_fewer(const qat_recipe *r, const void *context, const char *key, const char *value)
{
    const struct bits_schedule *s = context;
    return (!strcmp(key, s->keys[0]) || !strcmp(key, s->keys[1])) && atoi(value) < atoi(s->text);
}

/** Does [quant], or a section, have fewer bits than the schedule begins with? A search may. */
static bool lowers_weights(const qat_recipe *r)
{
    struct bits_schedule const s = {r->quant.weight_bits_schedule, {"weight_bits", "weight_bits"}};
    return has_budget(r) || r->quant.weight_bits < atoi(s.text) ||
           any_layer_entry(r, has_fewer, &s);
}

static bool lowers_activations(const qat_recipe *r)
{
    struct bits_schedule const s = {r->quant.activation_bits_schedule,
                                    {"activation_bits", "input_bits"}};
    int64_t const a = r->quant.activation_bits, in = r->quant.input_bits;
    return has_budget(r) || (in && in < a ? in : a) < atoi(s.text) ||
           any_layer_entry(r, has_fewer, &s);
}

static bool takes_traces(const qat_recipe *r)
{
    return r->budget.sensitivity == QAT_SENSITIVITY_HESSIAN;
}

/** A condition of keys: is it met, which key decides it, and its text in a warning. */
typedef struct condition {
    bool (*met)(const qat_recipe *);
    const char *section, *name;
    const char *text; /* "has no effect " ... */
} condition;

static const condition coco = {is_coco, "data", "kind", "without data.kind = coco"};
static const condition named_pictures = {names_pictures, "data", "kind",
                                         "without data.kind = coco or table"};
static const condition files = {
    has_files, "data", "kind",
    "without data.kind = folder, list, tar, tfrecord, coco, table or wav"};
static const condition scaled_files = {has_scaled_files, "data", "kind",
                                       "without data.kind = folder, list, tar, tfrecord or table"};
static const condition real_values = {
    has_real_values, "data", "kind",
    "without data that have real values (data.kind = numbers, npy or tones)"};
static const condition wav = {has_wav, "data", "kind", "without data.kind = wav"};
static const condition sounds = {has_sounds, "data", "kind", "without data.kind = wav or keywords"};
static const condition background = {adds_background, "data", "background",
                                     "without data.background"};
static const condition table = {is_table, "data", "kind", "without data.kind = table"};
static const condition objects = {has_objects, "data", "kind",
                                  "without data that have boxes (data.kind = coco or scenes)"};
static const condition value = {
    has_value, "data", "kind",
    "without data that have a value (data.kind = faces, or table with data.value)"};
static const condition learnt_value = {
    learns_value, "attributes", "value",
    "without a value to learn (data that have one, and attributes.value other than none)"};
static const condition masks = {has_masks, "data", "kind", "without data.kind = masks"};
static const condition scenes = {draws_objects, "data", "kind", "without data.kind = scenes"};
static const condition parts = {crops_parts, "data", "crop_area", "without data.crop_area below 1"};
static const condition inq = {has_inq, "quant", "weight_ranges",
                              "without quant.weight_ranges = inq"};
static const condition learned = {learns_ranges, "quant", "ranges",
                                  "with ranges that are not learned"};
static const condition freezing = {freezes, "quant", "freeze_threshold",
                                   "without quant.freeze_threshold"};
static const condition quantized_later = {
    trains_quantized, "quant", "enabled",
    "on the training without quant.enabled = yes (qat-export --ptq reads it)"};
static const condition weight_bits = {chooses_weight_bits, "quant", "weight_ranges",
                                      "with quant.weight_ranges = bwn or twn"};
static const condition no_scheme = {
    dampens_weights, "quant", "weight_ranges",
    "with weights by dorefa, weight_norm, apot, bwn, twn, fgq or inq"};
static const condition activations = {quantizes_activations, "quant", "activation_ranges",
                                      "with quant.activation_ranges = none"};
static const condition few_bits = {has_few_bits, "quant", "weight_bits",
                                   "without a quant.weight_bits of at most quant.freeze_bits"};
static const condition fewer_weight_bits = {lowers_weights, "quant", "weight_bits",
                                            "without a quant.weight_bits of fewer bits"};
static const condition fewer_activation_bits = {
    lowers_activations, "quant", "activation_bits",
    "without a quant.activation_bits or quant.input_bits of fewer bits"};
static const condition convnet = {is_convnet, "model", "arch", "without model.arch = convnet"};
static const condition head = {has_head, "model", "arch",
                               "without model.arch = convnet, model.onnx or model.tflite"};
static const condition hidden = {has_hidden, "model", "arch",
                                 "without model.arch = convnet or mlp"};
static const condition resnet = {is_resnet, "model", "arch", "without a model.arch of resnet"};
static const condition mobilenet = {is_mobilenet, "model", "arch",
                                    "without a model.arch of mobilenet"};
static const condition named = {is_no_list_of_layers, "model", "arch",
                                "with model.arch = layers: the layers define this"};
static const condition no_mlp = {is_no_mlp, "model", "arch",
                                 "with model.arch = mlp, which has no convolutions"};
static const condition no_file = {is_no_file, "model", "arch",
                                  "with model.onnx or model.tflite: the file defines this"};
static const condition classifier = {
    ends_in_a_classifier, "model", "arch",
    "with a detector (model.arch = mobilenet_ssd), model.onnx or model.tflite"};
static const condition no_detector = {is_no_detector, "model", "arch",
                                      "with a detector (model.arch = mobilenet_ssd)"};
static const condition batch_norm = {has_batch_norm, "model", "batch_norm",
                                     "with model.batch_norm = no"};
static const condition epochs = {goes_by_epochs, "train", "steps",
                                 "with train.steps, which sets the length of the run"};
static const condition shards = {cuts_batches, "train", "shards", "without train.shards above 1"};
static const condition factor = {
    has_factor, "train", "schedule",
    "without train.schedule = staircase, exponential, piecewise or plateau"};
static const condition period = {has_period, "train", "schedule",
                                 "without train.schedule = staircase or exponential"};
static const condition plateau = {drops_on_plateaus, "train", "schedule",
                                  "without train.schedule = plateau"};
static const condition plateau_or_stop = {
    looks_for_plateaus, "train", "schedule",
    "without train.schedule = plateau or train.stop_patience"};
static const condition final_lr = {ends_at_final_lr, "train", "schedule",
                                   "without train.schedule = cosine or polynomial"};
static const condition polynomial = {is_polynomial, "train", "schedule",
                                     "without train.schedule = polynomial"};
static const condition momentum = {has_momentum, "train", "optimizer",
                                   "without train.optimizer = sgd or rmsprop"};
static const condition rmsprop = {is_rmsprop, "train", "optimizer",
                                  "without train.optimizer = rmsprop"};
static const condition adam = {is_adam, "train", "optimizer",
                               "without train.optimizer = adam or adamw"};
static const condition epsilon = {has_epsilon, "train", "optimizer",
                                  "without train.optimizer = adam, adamw or rmsprop"};
static const condition init = {begins_from_a_file, "train", "init", "without train.init"};
static const condition detector = {detects, "model", "arch",
                                   "without a detector (model.arch = mobilenet_ssd)"};
static const condition teacher = {has_teacher, "distill", "teacher", "without distill.teacher"};
static const condition quantized = {trains_quantized, "quant", "enabled",
                                    "without quant.enabled = yes"};

static const condition budget = {has_budget, "budget", "flash",
                                 "without budget.flash, budget.ram or budget.macs_bits"};
static const condition traces = {takes_traces, "budget", "sensitivity",
                                 "without budget.sensitivity = hessian"};
static const condition tables = {has_columns, "data", "kind",
                                 "without data.kind = table or numbers"};
static const condition huber = {is_huber, "regression", "loss", "without regression.loss = huber"};

/** name NULL: every key of the section. Of several rows of a key the first unmet one is told. */
static const struct need {
    const char *section, *name;
    const condition *condition;
} needs[] = {
    {"data", "train_annotations", &coco},
    {"data", "test_annotations", &coco},
    {"data", "train_images", &named_pictures},
    {"data", "test_images", &named_pictures},
    {"data", "check", &files},
    {"data", "skip_broken", &files},
    {"data", "jpeg_scale", &scaled_files},
    {"data", "seconds", &wav},
    {"data", "words", &wav},
    {"data", "time_shift", &sounds},
    {"data", "gain", &sounds},
    {"data", "background", &sounds},
    {"data", "background_chance", &background},
    {"data", "attributes", &table},
    {"data", "value", &tables},
    {"data", "one_class", &objects},
    {"data", "presence", &objects},
    {"data", "pixels", &scenes},
    {"data", "ignore", &masks},
    {"data", "crop_aspect", &parts},
    {"attributes", "value", &value},
    {"attributes", NULL, &learnt_value},
    {"model", "filters", &convnet},
    {"model", "strides", &convnet},
    {"model", "kernel", &convnet},
    {"model", "head", &head},
    {"model", "hidden", &hidden},
    {"model", "depth", &resnet},
    {"model", "width", &resnet},
    {"model", "multiplier", &mobilenet},
    {"model", "first_stride", &mobilenet},
    {"model", "dropout", &named},
    {"model", "dropout", &classifier},
    {"model", "activation", &named},
    {"model", "activation", &no_file},
    {"model", "batch_norm", &named},
    {"model", "batch_norm", &no_mlp},
    {"model", "batch_norm", &no_file},
    {"model", "bn_momentum", &no_mlp},
    {"model", "bn_momentum", &batch_norm},
    {"model", "bn_epsilon", &no_mlp},
    {"model", "bn_epsilon", &no_file},
    {"model", "bn_epsilon", &batch_norm},
    {"model", "output", &no_detector},
    {"train", "label_smoothing", &no_detector},
    {"train", "epochs", &epochs},
    {"train", "sync_batch_norm", &shards},
    {"train", "factor", &factor},
    {"train", "every", &period},
    {"train", "plateau_patience", &plateau},
    {"train", "plateau_on", &plateau_or_stop},
    {"train", "plateau_threshold", &plateau_or_stop},
    {"train", "final_lr", &final_lr},
    {"train", "power", &polynomial},
    {"train", "momentum", &momentum},
    {"train", "rms_decay", &rmsprop},
    {"train", "beta1", &adam},
    {"train", "beta2", &adam},
    {"train", "epsilon", &epsilon},
    {"train", "eval_simulated", &quantized},
    {"train", "init_map", &init},
    {"train", "init_skip", &init},
    {"train", "init_layout", &init},
    {"detect", NULL, &detector},
    {"regression", "loss", &real_values},
    {"regression", "delta", &huber},
    {"distill", "weight", &teacher},
    {"distill", "temperature", &teacher},
    {"quant", "weight_bits", &quantized_later},
    {"quant", "weight_bits", &weight_bits},
    {"quant", "activation_bits", &quantized_later},
    {"quant", "activation_bits", &activations},
    {"quant", "ranges", &quantized},
    {"quant", "weight_ranges", &quantized},
    {"quant", "activation_ranges", &quantized},
    {"quant", "power_of_two", &quantized},
    {"quant", "ema_decay", &quantized},
    {"quant", "quant_delay", &quantized},
    {"quant", "weight_delay", &quantized},
    {"quant", "activation_delay", &quantized},
    {"quant", "bn_freeze_delay", &quantized},
    {"quant", "bn_fold", &quantized},
    {"quant", "learn_delay", &quantized},
    {"quant", "learn_delay", &learned},
    {"quant", "range_rate", &quantized},
    {"quant", "range_rate", &learned},
    {"quant", "bn_reestimate", &quantized},
    {"quant", "range_log_every", &quantized},
    {"quant", "forward", &quantized},
    {"quant", "dampen", &quantized},
    {"quant", "dampen", &no_scheme},
    {"quant", "inq_stages", &quantized},
    {"quant", "inq_stages", &inq},
    {"quant", "weight_bits_schedule", &quantized},
    {"quant", "weight_bits_schedule", &weight_bits},
    {"quant", "weight_bits_schedule", &fewer_weight_bits},
    {"quant", "activation_bits_schedule", &quantized},
    {"quant", "activation_bits_schedule", &activations},
    {"quant", "activation_bits_schedule", &fewer_activation_bits},
    {"quant", "freeze_threshold", &quantized},
    {"quant", "freeze_threshold", &few_bits},
    {"quant", "freeze_threshold_end", &quantized},
    {"quant", "freeze_threshold_end", &freezing},
    {"quant", "freeze_share", &quantized},
    {"quant", "freeze_share", &freezing},
    {"quant", "freeze_bits", &quantized},
    {"quant", "freeze_bits", &freezing},
    {"budget", "probes", &traces},
    {"budget", "weight_bits", &budget},
    {"budget", "activation_bits", &budget},
    {"budget", "keep", &budget},
    {"budget", "sensitivity", &budget},
    {"budget", "samples", &budget},
    {"budget", "table", &budget},
};

/** The first condition of a key that is not met; NULL: none. */
static const condition *unmet(const qat_recipe *r, const qat_key *key)
{
    bool has_rows = false; /* of its own; then that of the section is not for it */
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        const struct need *need = &needs[i];
        bool const own = need->name && !strcmp(need->name, key->name);
        if (strcmp(need->section, key->section) != 0 || !(own || (!need->name && !has_rows)))
            continue;
        has_rows |= own;
        if (!need->condition->met(r))
            return need->condition;
    }
    return NULL;
}

/* ------------------------------------------------------------------ keys in vain */

static bool is_set(const qat_recipe *r, int index)
{
    return r->private_->given[index] && !r->private_->line_of[index];
}

/** Does --set decide the condition? Then it is intended that keys of the file have no effect. */
static bool is_meant(const qat_recipe *r, int index, const condition *c)
{
    return !is_set(r, index) && is_set(r, qat_recipe_find_key(c->section, c->name));
}

/** Is the key given, with another value than the default? The default asks for nothing. */
static bool is_asked_for(const qat_recipe *r, const qat_recipe *defaults, int index,
                         const qat_key *key)
{
    char here[1024], initial[1024];
    qat_recipe_get_text(r, key, here, sizeof here);
    qat_recipe_get_text(defaults, key, initial, sizeof initial);
    return r->private_->given[index] && strcmp(here, initial) != 0;
}

static void tell(const qat_recipe *r, const qat_key *key, const condition *c, const qat_log *log)
{
    char where[QAT_RECIPE_WHERE_MAX], text[QAT_RECIPE_WHERE_MAX + 256];
    qat_recipe_where(r, key->section, key->name, where);
    snprintf(text, sizeof text, "%s: %s.%s has no effect %s", where, key->section, key->name,
             c->text);
    log->line(log->context, text);
}

/** Why an entry of [quant.layer] has no effect in this layout; NULL: it has. */
static const char *idle_in_layout(const qat_recipe *r, const qat_recipe_entry *entry)
{
    bool const int8 = r->quant.layout == QAT_LAYOUT_INT8;
    if (!int8 && !strcmp(entry->key, "per_channel"))
        return "with quant.layout = uint8: all its weights have one scale";
    return int8 && !strcmp(entry->key, "symmetric")
               ? "with quant.layout = int8: all its weights are symmetric"
               : NULL;
}

static void tell_of_entries(const qat_recipe *r, const qat_recipe_layer *layer, const qat_log *log)
{
    char where[QAT_RECIPE_WHERE_MAX], text[QAT_RECIPE_WHERE_MAX + 256];
    for (int i = 0; i < layer->n_entries; i++) {
        const qat_recipe_entry *entry = &layer->entries[i];
        const char *why = idle_in_layout(r, entry);
        if (!why)
            continue;
        qat_recipe_entry_where(r, layer, entry, where);
        snprintf(text, sizeof text, "%s: [quant.layer %.40s] %.20s has no effect %s", where,
                 layer->name, entry->key, why);
        log->line(log->context, text);
    }
}

/** Sections of layers: in a file whose network stays float, or with keys that the layout ignores.
 */
static void tell_of_layers(const qat_recipe *r, const qat_log *log)
{
    char text[QAT_RECIPE_WHERE_MAX + 256];
    for (int i = 0; r->quant.enabled && i < r->n_quant_layers; i++)
        tell_of_entries(r, &r->quant_layers[i], log);
    for (int i = 0; !r->quant.enabled && i < r->n_quant_layers; i++) {
        const qat_recipe_layer *layer = &r->quant_layers[i];
        if (!layer->line)
            continue;
        snprintf(text, sizeof text,
                 "%.200s:%d: [quant.layer %.40s] has no effect without quant.enabled = yes",
                 r->source, layer->line, layer->name);
        log->line(log->context, text);
    }
}

qat_status qat_recipe_tell_idle(const qat_recipe *recipe, const qat_log *log, qat_error *err)
{
    qat_recipe *defaults;
    int n;
    const qat_key *keys = qat_recipe_keys(&n);
    qat_status const st = qat_recipe_parse(&defaults, "", "default", NULL, 0, err);
    for (int i = 0; !st && i < n; i++) {
        const condition *c = unmet(recipe, &keys[i]);
        if (c && !is_meant(recipe, i, c) && is_asked_for(recipe, defaults, i, &keys[i]))
            tell(recipe, &keys[i], c, log);
    }
    if (!st && !is_set(recipe, qat_recipe_find_key("quant", "enabled")))
        tell_of_layers(recipe, log);
    qat_recipe_free(defaults);
    return st;
}
