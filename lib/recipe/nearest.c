/**
 * Guesses the key that was meant by a name that does not exist: a name that other programs use for
 * the key, or the most similar key.
 */
#include "recipe/reader.h"

#include <string.h>

/** Names that other programs use, one line per key. Names that resemble ours are not listed. */
static const struct {
    const char *names, *section, *key;
} other_names[] = {
    {"learning_rate|initial_learning_rate|base_lr|initial_lr|lr0|eta|step_size", "train", "lr"},
    {"min_lr|lr_min|end_lr|eta_min", "train", "final_lr"},
    {"gamma|lr_decay|lr_factor|decay_rate", "train", "factor"},
    {"scheduler|lr_scheduler|lr_schedule|lr_policy", "train", "schedule"},
    {"batch_size|bs|minibatch|mini_batch_size|train_batch_size|samples_per_batch", "train",
     "batch"},
    {"eval_batch_size|test_batch_size|val_batch_size", "train", "eval_batch"},
    {"num_epochs|n_epochs|nb_epochs|max_epochs|epoch_count", "train", "epochs"},
    {"num_steps|max_steps|iterations|max_iter|max_iters|iters|num_iterations", "train", "steps"},
    {"optim|optimiser|solver", "train", "optimizer"},
    {"wd|l2|decay|l2_regularization|regularization", "train", "weight_decay"},
    {"rho|alpha|smoothing_constant", "train", "rms_decay"},
    {"max_norm|grad_clip|gradient_clip|clip_grad_norm|max_grad_norm|clipnorm", "train",
     "clip_norm"},
    {"clipvalue|clip_grad_value", "train", "clip_value"},
    {"ema|ema_decay|moving_average", "train", "average_decay"},
    {"warmup_steps|warmup_epochs|num_warmup_steps", "train", "warmup"},
    {"patience|early_stopping|early_stopping_patience", "train", "stop_patience"},
    {"log_interval|log_freq|print_freq|display", "train", "log_every"},
    {"eval_interval|eval_freq|val_interval|test_interval", "train", "eval_every"},
    {"save_every|save_interval|save_freq|snapshot", "train", "checkpoint_every"},
    {"pretrained|pretrained_weights|weights|finetune|fine_tune|checkpoint|resume_from", "train",
     "init"},
    {"num_threads|n_threads|cpus|jobs", "train", "threads"},
    {"random_seed|manual_seed", "train", "seed"},
    {"num_workers|workers|loader_threads", "data", "threads"},
    {"dataset|type|format", "data", "kind"},
    {"root|folder|dir|data_dir|directory|data_path", "data", "path"},
    {"num_classes|n_classes|nb_classes", "data", "classes"},
    {"image_size|img_size|input_size|resolution|size|imgsz", "data", "height"},
    {"hflip|horizontal_flip|random_flip|mirror", "data", "flip"},
    {"random_crop|padding|pad", "data", "crop_pad"},
    {"arch_name|architecture|network|backbone", "model", "arch"},
    {"width_mult|width_multiplier|depth_multiplier", "model", "multiplier"},
    {"dropout_rate|drop_rate|drop|keep_prob", "model", "dropout"},
    {"bn|batchnorm|batch_normalization", "model", "batch_norm"},
    {"bits|wbits|w_bits|num_bits|n_bits|bit_width", "quant", "weight_bits"},
    {"abits|a_bits|act_bits", "quant", "activation_bits"},
    {"per_channel|scheme|dtype|symmetric", "quant", "layout"},
    {"observer|quantizer|estimator", "quant", "ranges"},
    {"delay|start_step|freeze_delay", "quant", "quant_delay"},
    {"enable|on|quantize|qat", "quant", "enabled"},
    {"out|out_dir|output_dir|save_dir|log_dir|workdir|directory|folder|path", "output", "dir"},
};

/** Names that other programs use for sections. */
static const struct {
    const char *names, *section;
} other_sections[] = {
    {"training|trainer|optimizer|optim|hyperparameters|solver", "train"},
    {"dataset|datasets|input|augmentation|augment|dataloader", "data"},
    {"network|arch|architecture|net", "model"},
    {"quantization|quantize|quantizer|quantisation|qat", "quant"},
    {"detection|detector|ssd", "detect"},
    {"distillation|teacher", "distill"},
    {"plugins|custom", "plugin"},
    {"log|logging|checkpoint|save", "output"},
};

/** Is name one of "a|b|c"? */
static bool among(const char *names, const char *name)
{
    size_t const length = strlen(name);
    for (const char *at = names; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strcspn(at, "|") == length && !strncmp(at, name, length))
            return true;
    }
    return false;
}

/** The section that a word may stand for; the section itself if it exists. */
static const char *section_meant(const char *section)
{
    for (size_t i = 0; i < sizeof other_sections / sizeof other_sections[0]; i++)
        if (among(other_sections[i].names, section))
            return other_sections[i].section;
    return section;
}

static const qat_key *key_at(const char *section, const char *name)
{
    int const index = qat_recipe_find_key(section, name);
    return index < 0 ? NULL : &qat_recipe_keys(&(int){0})[index];
}

/** Look the name up in the table. If it may stand for several keys, the section decides. */
static const qat_key *known_elsewhere(const char *section, const char *name)
{
    const qat_key *found = NULL;
    for (size_t i = 0; i < sizeof other_names / sizeof other_names[0]; i++)
        if (among(other_names[i].names, name) &&
            (!found || !strcmp(other_names[i].section, section)))
            found = key_at(other_names[i].section, other_names[i].key);
    return found;
}

const qat_key *qat_nearest_key(const char *section, const char *name)
{
    enum { ELSEWHERE = 2, FARTHEST_ELSEWHERE = 5 };
    char small[64];
    int n, distance = 1 << 20;
    const qat_key *keys = qat_recipe_keys(&n), *best = NULL;
    qat_small_letters(name, small, sizeof small);
    section = section_meant(section);
    if (key_at(section, small))
        return key_at(section, small);
    best = known_elsewhere(section, small);
    if (best)
        return best;
    for (int i = 0; i < n; i++) {
        int const elsewhere = strcmp(keys[i].section, section) ? ELSEWHERE : 0;
        int const d = qat_name_distance(name, keys[i].name) + elsewhere;
        if (d < distance && (!elsewhere || d <= FARTHEST_ELSEWHERE)) {
            distance = d;
            best = &keys[i];
        }
    }
    return best;
}

const char *qat_nearest_section(const char *section)
{
    char small[64];
    int n, distance;
    const qat_key *keys = qat_recipe_keys(&n);
    const char *best = "layer.NAME";
    qat_small_letters(section, small, sizeof small);
    if (!strncmp(small, "quant", 5) && strstr(small, "layer"))
        return "quant.layer PATTERN";
    const char *meant = section_meant(small);
    distance = strncmp(meant, "layer", 5) ? qat_edit_distance(meant, "layer") : 0;
    for (int i = 0; i < n; i++) {
        int const d = qat_edit_distance(meant, keys[i].section);
        if (d < distance) {
            distance = d;
            best = keys[i].section;
        }
    }
    return best;
}
