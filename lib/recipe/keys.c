/** The one table of recipe keys: validation, defaults, `qat-train --keys` and canonical text. */
#include "recipe/recipe.h"

#include "base/bytes.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#define AT(member) offsetof(qat_recipe, member)
#define INT_BIG    2147483647.0

#define BOOL(s, n, initial, meaning)                                                               \
    {                                                                                              \
#s, #n, QAT_KEY_BOOL, initial, 0, 1, NULL, false, AT(s.n), meaning                         \
    }
#define FREE_BOOL(s, n, initial, meaning)                                                          \
    {                                                                                              \
#s, #n, QAT_KEY_BOOL, initial, 0, 1, NULL, true, AT(s.n), meaning                          \
    }
#define INT(s, n, initial, min, max, meaning)                                                      \
    {                                                                                              \
#s, #n, QAT_KEY_INT, initial, min, max, NULL, false, AT(s.n), meaning                      \
    }
#define FREE_INT(s, n, initial, min, max, meaning)                                                 \
    {                                                                                              \
#s, #n, QAT_KEY_INT, initial, min, max, NULL, true, AT(s.n), meaning                       \
    }
#define REAL(s, n, initial, min, max, meaning)                                                     \
    {                                                                                              \
#s, #n, QAT_KEY_REAL, initial, min, max, NULL, false, AT(s.n), meaning                     \
    }
#define CHOICE(s, n, initial, choices, meaning)                                                    \
    {                                                                                              \
#s, #n, QAT_KEY_CHOICE, initial, 0, 0, choices, false, AT(s.n), meaning                    \
    }
#define TEXT(s, n, initial, free_on_resume, meaning)                                               \
    {                                                                                              \
#s, #n, QAT_KEY_TEXT, initial, 0, 0, NULL, free_on_resume, AT(s.n), meaning                \
    }
#define INTS(s, n, initial, min, max, meaning)                                                     \
    {                                                                                              \
#s, #n, QAT_KEY_INTS, initial, min, max, NULL, false, AT(s.n), meaning                     \
    }
#define REALS(s, n, initial, min, max, meaning)                                                    \
    {                                                                                              \
#s, #n, QAT_KEY_REALS, initial, min, max, NULL, false, AT(s.n), meaning                    \
    }
#define STEPS(s, n, initial, free_on_resume, meaning)                                              \
    {                                                                                              \
#s, #n, QAT_KEY_STEPS, initial, 0, 1e15, NULL, free_on_resume, AT(s.n), meaning            \
    }

#define STEPS_LIST(s, n, initial, meaning)                                                         \
    {                                                                                              \
#s, #n, QAT_KEY_STEPS_LIST, initial, 0, 1e15, NULL, false, AT(s.n), meaning                \
    }

static const qat_key keys[] = {
    CHOICE(data, kind, "digits", QAT_DATASET_KINDS_TEXT,
           "where the data come from: two procedural sets, MNIST's and CIFAR-10's binary formats, "
           "folders of pictures, a list of pictures, NumPy arrays; with boxes: COCO's annotation "
           "files, a procedural set; with attributes and a value: a procedural set, a table of "
           "pictures"),
    TEXT(data, path, "", true,
         "idx, cifar10, folder, npy, coco: the folder; list, table: the file; ${QAT_DATA} stands "
         "for the environment's value, by default " QAT_DATA_DEFAULT),
    INT(data, seed, "1", 0, 9e15, "procedural sets: which ones are drawn"),
    INT(data, train_count, "0", 0, INT_BIG,
        "training samples: how many a procedural set draws, at most how many of a file; 0: all"),
    INT(data, test_count, "0", 0, INT_BIG, "test samples, likewise"),
    INT(data, classes, "0", 0, 65536,
        "idx, npy, list: number of classes; 0: largest label + 1; other kinds know theirs"),
    TEXT(data, train_annotations, "instances_train.json", true, "coco: file in path"),
    TEXT(data, test_annotations, "instances_val.json", true, "coco: file in path"),
    TEXT(data, train_images, "images", true,
         "coco, table: folder in path, or beside it, that file names are from"),
    TEXT(data, test_images, "images", true, "likewise"),
    TEXT(data, attributes, "", false,
         "table: COLUMN=TEXT, ...: attributes, there where the column reads so"),
    TEXT(data, value, "", false, "table: column of a number that is learned as well"),
    BOOL(data, one_class, "no", "coco, scenes: all categories are one class"),
    INT(data, height, "0", 0, 4096,
        "pictures are resized to this; 0: as they are, of folder, list, coco, table 32; scenes, "
        "faces: their side"),
    INT(data, width, "0", 0, 4096, "likewise; 0: as height"),
    INT(data, channels, "0", 0, 4, "folder, list, coco, table: 1 grey, 3 RGB; 0: 3"),
    INT(data, resize_short, "0", 0, 8192,
        "folder, list, table: resize the short side to this, then crop the centre; 0: squash"),
    REAL(data, central_crop, "0", 0, 1,
         "folder, list, table: of the largest rectangle of the shape the middle, this share of its "
         "sides, resized with prefiltering; 0: resize_short says how"),
    REALS(data, mean, "auto", -1e30, 1e30,
          "subtracted from every pixel (0..255) or value: one number, or one a channel; auto: "
          "127.5 for pixels, 0 for real values"),
    REALS(data, std, "auto", 1e-30, 1e30, "then divided by; auto: 127.5 for pixels, 1 otherwise"),
    INT(data, crop_pad, "0", 0, 256,
        "augmentation: pad by this many pixels, crop back at a random place"),
    REALS(data, crop_area, "1", 1e-6, 1,
          "augmentation: a part of the picture with so much of its area, least and most (1 if not "
          "given), is brought to size, in place of the whole; 1: the whole"),
    REALS(data, crop_aspect, "0.75, 1.3333333333", 0.1, 10,
          "crop_area: width / height of the part, least and most"),
    BOOL(data, ssd_crop, "no",
         "augmentation with boxes: SSD's: cut out a part in which some object keeps a drawn IoU"),
    REAL(
        data, ssd_expand, "1", 1, QAT_SSD_EXPAND_MAX,
        "augmentation with boxes: SSD's: with probability 1/2 on a grey canvas up to so many times "
        "as high and wide"),
    BOOL(data, flip, "no", "augmentation: mirror left-right with probability 1/2"),
    REAL(data, brightness, "0", 0, 1, "augmentation: brightness times 1 +- this"),
    REAL(data, contrast, "0", 0, 1, "augmentation: contrast times 1 +- this"),
    REAL(data, saturation, "0", 0, 1, "augmentation: colour saturation times 1 +- this"),
    REAL(data, hue, "0", 0, 0.5, "augmentation: hue turned by +- this share of the circle"),
    REAL(data, noise, "0", 0, 1e30, "augmentation of real values: uniform +- this is added"),
    FREE_INT(data, threads, "1", 1, 64, "threads that decode and augment in the background"),
    FREE_INT(data, prefetch, "4", 1, 1024, "batches prepared ahead"),

    TEXT(model, name, "", true, "a description, stored in the .qm"),
    CHOICE(
        model, arch, "convnet", QAT_ARCHS,
        "layers: the [layer.NAME] sections, in order; or a network by name, with the keys below; "
        "resnet: CIFAR's form; a name with numbers decides the keys they stand for, "
        "MobileNet's last one the size of the pictures"),
    INTS(model, filters, "16, 32, 64", 1, 65536, "convnet: output channels of each convolution"),
    INTS(model, strides, "2", 1, 16,
         "convnet: stride of each convolution; one number stands for all"),
    INT(model, kernel, "3", 1, 31, "convnet: kernel size (on signals of height 1: 1 x kernel)"),
    INTS(model, hidden, "", 1, 65536,
         "mlp, convnet: sizes of fully connected layers before the last; may be empty"),
    CHOICE(model, head, "average", "average|flatten",
           "convnet: global average pooling or flattening after the convolutions"),
    INT(model, depth, "20", 8, 1202, "resnet: 6n + 2 layers"),
    INT(model, width, "16", 1, 1024,
        "resnets: channels of the first stage; resnet50, 101, 152: 64 if not given"),
    REAL(model, multiplier, "0.25", 0.01, 4, "mobilenet_*: width multiplier of all channels"),
    INT(model, first_stride, "2", 1, 2, "mobilenet_*: stride of the first convolution"),
    REAL(model, auxiliary, "0", 0, 1,
         "inception_v3: weight of its auxiliary classifier's loss in training; 0: none"),
    BOOL(model, batch_norm, "yes", "batch norm after each convolution (else a bias)"),
    CHOICE(model, activation, "relu", "relu|relu6", "after each layer but the last"),
    REAL(model, dropout, "0", 0, 0.95, "rate of the dropout before the last layer; 0: none"),
    CHOICE(model, output, "logits", "logits|softmax", "what the exported model answers"),
    REAL(
        model, bn_momentum, "0.99", 0, 0.99999,
        "smoothing of batch norm's averages: the share that stays at each step; the first 9 / (1 - "
        "momentum) steps keep less (docs/arithmetic.md, section 14)"),
    REAL(model, bn_epsilon, "0.001", 1e-8, 1, "added to batch norm's variance"),

    REAL(train, epochs, "10", 0, 1e6, "length of the run, where steps = 0; 0.5 is half an epoch"),
    INT(train, steps, "0", 0, 9e15, "length of the run in steps; 0: by epochs"),
    INT(train, batch, "64", 1, 65536, "samples in a step"),
    INT(train, eval_batch, "100", 1, 65536, "samples evaluated at once"),
    INT(train, seed, "1", 0, 9e15, "of initial weights, order of the data, augmentation, dropout"),
    FREE_INT(train, threads, "0", 0, 256,
             "compute threads, 0: one a processor; results do not depend on it"),
    CHOICE(train, optimizer, "sgd", "sgd|adam|adamw|rmsprop|adagrad",
           "how gradients change weights; docs/recipes.md has the equations"),
    REAL(train, lr, "0.05", 0, 1e30, "learning rate"),
    CHOICE(train, schedule, "cosine",
           "constant|staircase|exponential|cosine|polynomial|piecewise|plateau",
           "how the learning rate changes: lr; lr factor^floor(step / every); lr factor^(step / "
           "every); half a cosine from lr to final_lr; final_lr + (lr - final_lr) (1 - share of "
           "the run)^power; lr factor^(milestones reached); lr factor^(plateaus so far)"),
    REAL(train, factor, "0.1", 1e-9, 1, "staircase, exponential, piecewise, plateau: see schedule"),
    STEPS(train, every, "1 epochs", false, "staircase, exponential: see schedule"),
    STEPS_LIST(train, milestones, "", "piecewise: moments of the run, separated by commas"),
    REAL(train, final_lr, "0", 0, 1e30, "cosine, polynomial: the learning rate at the end"),
    REAL(train, power, "1", 0.01, 100, "polynomial: see schedule; 1: a line"),
    CHOICE(
        train, plateau_on, "test", "test|loss",
        "plateaus: the figure looked at with each evaluation: that of the test split (a quantized "
        "network's where there is one), or the mean loss of the steps since the one before"),
    REAL(train, plateau_threshold, "0", 0, 100,
         "plateaus: better is better by more than this: points of percent, or percent of the loss"),
    INT(train, plateau_patience, "5", 1, 1e6,
        "plateau: the rate is multiplied by factor after so many evaluations without a better one"),
    INT(train, stop_patience, "0", 0, 1e6,
        "the run ends after so many evaluations without a better one, once all that is quantized "
        "is; 0: not before its length"),
    STEPS(train, warmup, "0", false, "linear rise of the learning rate at the beginning"),
    TEXT(train, lr_scale, "", false,
         "PATTERN:NUMBER, ...: the learning rate of layers or parameters that the pattern matches "
         "is multiplied; the last one that matches counts; e.g. conv1:0.1, */bias:2"),
    REAL(train, momentum, "0.9", 0, 0.99999, "sgd, rmsprop"),
    BOOL(train, nesterov, "no", "sgd: Nesterov's momentum"),
    REAL(train, rms_decay, "0.9", 0, 0.9999999, "rmsprop: smoothing of the mean square"),
    REAL(train, beta1, "0.9", 0, 0.99999, "adam, adamw"),
    REAL(train, beta2, "0.999", 0, 0.9999999, "adam, adamw"),
    REAL(train, epsilon, "auto", 1e-30, 1e30,
         "adam, adamw: beside the root, auto: 1e-8; rmsprop: below the root, auto: 1"),
    REAL(train, initial_accumulator, "auto", 1e-30, 1e30,
         "what the sum of squares begins with; auto: rmsprop 1, adagrad 0.1"),
    REAL(train, weight_decay, "0.0005", 0, 1,
         "times the weight, added to its gradient; adamw: times lr, taken off the weight"),
    REAL(train, clip_norm, "0", 0, 1e30,
         "gradients are scaled down to this global norm where theirs is larger; 0: not"),
    REAL(train, clip_value, "0", 0, 1e30,
         "each value of a gradient is kept within +- this; 0: not"),
    REAL(train, average_decay, "0", 0, 0.9999999,
         "moving average of trained parameters, used for evaluation and export; 0: none; the "
         "paper's: 0.9999"),
    BOOL(train, average_ramp, "no",
         "its decay is at most (1 + steps) / (10 + steps), so that it forgets the beginning"),
    REAL(train, label_smoothing, "0", 0, 0.99,
         "share of the target that all classes have in common; 0: the class alone"),
    STEPS(train, eval_every, "1 epochs", false, "evaluate on the test split this often"),
    STEPS(train, log_every, "auto", false,
          "a row of log.csv this often; auto: with each evaluation"),
    STEPS(train, checkpoint_every, "1 epochs", true, "write the checkpoint this often"),
    TEXT(train, init, "", true,
         "fine-tuning: begin with the weights and averages of this checkpoint or .npz, by name; "
         "ranges are observed anew"),
    TEXT(train, init_map, "", false,
         "OLD:NEW, ...: a name of that file that begins with OLD begins with NEW here"),
    TEXT(train, init_skip, "", false,
         "patterns, separated by commas: layers that do not take their weights from there, such "
         "as a replaced head"),
    TEXT(train, freeze, "", false,
         "patterns likewise: layers whose weights and batch norm do not train"),

    INTS(detect, extra, "512, 256, 256, 128", 1, 65536,
         "mobilenet_ssd: channels of the layers behind MobileNet, times model.multiplier; as many "
         "as there are before a feature map of one cell"),
    CHOICE(detect, finest, "1/16", "1/16|1/8",
           "mobilenet_ssd: the finest feature map with a head, of the picture's height and width"),
    REAL(detect, min_scale, "0.2", 0.01, 1, "anchors: scale on the finest feature map"),
    REAL(detect, max_scale, "0.95", 0.01, 1, "anchors: scale on the coarsest one"),
    BOOL(detect, reduced_lowest, "yes", "anchors: three a cell on the finest map, not six"),
    REAL(detect, match_iou, "0.5", 0.01, 1, "an anchor learns an object from this IoU on"),
    CHOICE(detect, classification, "sigmoid", "sigmoid|softmax",
           "cross-entropy of the scores, and what the network answers"),
    REAL(detect, negatives, "3", 0, 1e9, "hard negatives that count, to each matched anchor"),
    INT(detect, least_negatives, "0", 0, 1e6, "and at least so many a picture"),
    REAL(detect, box_weight, "1", 0, 1e6, "factor of the boxes' part of the loss"),
    REAL(detect, score_threshold, "0.01", 0, 1, "boxes of lower scores are dropped"),
    REAL(detect, nms_iou, "0.6", 0.01, 1, "so is what overlaps a better box of its class by more"),
    INT(detect, max_detections, "100", 1, 10000, "boxes of a picture at most"),

    CHOICE(
        attributes, value, "ordered", "ordered|smooth_l1|l2|none",
        "data with attributes: how the value that comes with them (an age) is learned: as steps, "
        "each above or not; as a real number by one of two distances; not at all"),
    REAL(attributes, low, "0", -1e9, 1e9, "the value's range: where the first step begins"),
    REAL(attributes, high, "100", -1e9, 1e9, "and the last one ends"),
    INT(attributes, steps, "20", 1, 1000,
        "how many; smooth_l1, l2: the unit of their distance is one step"),
    REAL(attributes, value_weight, "1", 0, 1e6, "factor of the value's part of the loss"),
    REAL(attributes, within, "5", 0, 1e9, "evaluation: a value this near is right"),

    TEXT(distill, teacher, "", true,
         "checkpoint of a float network whose answers are learned too; empty: none"),
    REAL(distill, weight, "0.5", 0, 1,
         "w of the loss (1 - w) cross-entropy + w temperature^2 KL(teacher, student)"),
    REAL(distill, temperature, "4", 0.01, 1000, "what both networks' logits are divided by in KL"),

    BOOL(quant, enabled, "no", "train with simulated quantization"),
    CHOICE(quant, layout, "uint8", "uint8|int8",
           "uint8: asymmetric activations and weights, per tensor (the paper's); int8: symmetric "
           "weights per output channel (TFLite's)"),
    CHOICE(quant, profile, "paper", "paper|tflite",
           "how the integer model rounds: as the paper, or as TFLite's reference kernels"),
    INT(quant, weight_bits, "8", 2, 8, "bits of a weight"),
    INT(quant, activation_bits, "8", 2, 8, "bits of an activation"),
    REAL(quant, ema_decay, "0.99", 0, 0.999999, "smoothing of the observed activation ranges"),
    STEPS(quant, quant_delay, "0", false,
          "quantization starts here; until then the run equals the float run bit for bit"),
    STEPS(quant, weight_delay, "auto", false, "for weights; auto: quant_delay"),
    STEPS(quant, activation_delay, "auto", false, "for activations; auto: quant_delay"),
    STEPS(quant, bn_freeze_delay, "never", false,
          "from here on batch norm uses its averages, no longer the batch's statistics"),
    CHOICE(quant, bn_fold, "two_pass", "two_pass|one_pass",
           "where a folded batch norm's statistics come from: a float convolution of its own, or "
           "the quantized one scaled back"),
    TEXT(
        quant, ranges, "ema", false,
        "where ranges come from: ema (activations: moving average of min and max; weights: min and "
        "max), tqt (trained log thresholds), lsq (learned step size), or a plugin's"),
    TEXT(quant, weight_ranges, "auto", false,
         "for weights; auto: ranges; also bwn (binary), twn (ternary), fgq (ternary in groups of "
         "four), inq (powers of two, in stages)"),
    TEXT(quant, activation_ranges, "auto", false,
         "for activations; auto: ranges; also none (float: such networks are not exported)"),
    BOOL(quant, power_of_two, "no", "scales that are not fixed are rounded up to powers of two"),
    STEPS(quant, learn_delay, "auto", false,
          "learned ranges start here from what was observed; auto: after one epoch, or where "
          "quantization starts if that is later"),
    REAL(quant, range_rate, "1", 0, 1e6, "learning rate of learned ranges, times train.lr"),
    STEPS_LIST(quant, inq_stages, "",
               "inq: the four moments from which on 50, 75, 87.5 and 100 % of the weights are "
               "frozen; empty: the quarters of the run"),
    INT(quant, bn_reestimate, "0", 0, 1e9,
        "training batches over which export averages batch norm's statistics anew, with quantized "
        "weights; 0: as trained"),
    STEPS(quant, range_log_every, "never", true,
          "write ranges, scales and changed weight codes of every layer to quant.csv this often"),
    CHOICE(quant, forward, "simulated", "simulated|integer",
           "what a training step's forward computes with, once all delays are past: float32 and "
           "fake quantization, or the integers of the deployed model"),
    REAL(quant, input_min, "auto", -1e30, 1e30,
         "real range of the network's input; auto: from mean and std, or from the training data"),
    REAL(quant, input_max, "auto", -1e30, 1e30, "likewise"),

    TEXT(plugin, path, "", true, "shared objects with custom layers, separated by commas"),

    TEXT(output, dir, "runs/qat", true, "folder for the checkpoints and log.csv"),
    FREE_INT(
        output, keep, "0", 0, 1000000,
        "the checkpoints of the last so many savings stay, as step-N.ckpt; 0: last.ckpt alone"),
    FREE_BOOL(output, best, "yes",
              "the checkpoint of the best evaluation stays, as best.ckpt: the quantized network's "
              "where there is one, on the test split"),
};

const qat_key *qat_recipe_keys(int *count)
{
    _Static_assert(sizeof keys / sizeof keys[0] <= QAT_RECIPE_KEYS_MAX, "line_of is too small");
    *count = (int)(sizeof keys / sizeof keys[0]);
    return keys;
}

int qat_recipe_find_key(const char *section, const char *name)
{
    int const n = (int)(sizeof keys / sizeof keys[0]);
    for (int i = 0; i < n; i++)
        if (!strcmp(keys[i].section, section) && !strcmp(keys[i].name, name))
            return i;
    return -1;
}

/** "a|b|c", many of them over several lines. */
static void write_choices(qat_writer *w, const char *choices)
{
    enum { INDENT = 4, WIDTH = 96 };
    bool const many = strlen(choices) > WIDTH;
    size_t column = WIDTH;
    for (const char *c = choices; *c;) {
        size_t const n = strcspn(c, "|") + 1, length = n - !c[n - 1];
        if (many && column + n > WIDTH) {
            qat_write_text(w, "\n%*s", INDENT, "");
            column = INDENT;
        }
        qat_write_text(w, "%.*s", (int)length, c);
        column += length;
        c += length;
    }
}

static void write_type(qat_writer *w, const qat_key *k)
{
    char lo[32], hi[32];
    qat_real_text(k->min, lo, sizeof lo);
    qat_real_text(k->max, hi, sizeof hi);
    switch (k->type) {
    case QAT_KEY_BOOL:
        qat_write_text(w, "yes|no");
        break;
    case QAT_KEY_INT:
        qat_write_text(w, "integer %.0f..%.0f", k->min, k->max);
        break;
    case QAT_KEY_REAL:
        qat_write_text(w, "number %s..%s", lo, hi);
        break;
    case QAT_KEY_CHOICE:
        write_choices(w, k->choices);
        break;
    case QAT_KEY_TEXT:
        qat_write_text(w, "text");
        break;
    case QAT_KEY_INTS:
        qat_write_text(w, "integers %.0f..%.0f, up to %d", k->min, k->max, QAT_LIST_MAX);
        break;
    case QAT_KEY_REALS:
        qat_write_text(w, "numbers %s..%s, up to %d", lo, hi, QAT_CHANNEL_VALUES);
        break;
    case QAT_KEY_STEPS:
        qat_write_text(w, "N | N epochs | N%% | never");
        break;
    case QAT_KEY_STEPS_LIST:
        qat_write_text(w, "N | N epochs | N%%, up to %d", QAT_MAX_MILESTONES);
        break;
    }
}

qat_status qat_recipe_keys_text(char **text, qat_error *err)
{
    qat_writer w = {0};
    const char *section = "";
    int n;
    const qat_key *k = qat_recipe_keys(&n);
    for (int i = 0; i < n; i++, k++) {
        if (strcmp(section, k->section))
            qat_write_text(&w, "%s[%s]\n", i ? "\n" : "", section = k->section);
        qat_write_text(&w, "%s = %s", k->name, k->initial);
        qat_write_text(&w, "  (");
        write_type(&w, k);
        qat_write_text(&w, ")\n    %s\n", k->meaning);
    }
    qat_write_text(&w,
                   "\n[layer.NAME]\n"
                   "    One layer of a network with arch = layers, in the file's order.\n"
                   "op = (any registered op)\n"
                   "input = (names of layers, separated by commas; default: the one before)\n"
                   "bias = no, batch_norm = no  (yes|no)\n"
                   "activation = none  (any op of one input)\n"
                   "    and every attribute of the op by its name, see --ops\n"
                   "\n[quant.layer PATTERN]\n"
                   "    Other settings for layers whose name matches; * any characters, ? one;\n"
                   "    @first, @last: the first, last convolution or fully connected layer.\n"
                   "    Of several that match, the last one in the file counts.\n"
                   "weight_bits, activation_bits  (integer 2..8)\n"
                   "ranges, weight_ranges, activation_ranges  (name of a quantizer)\n"
                   "power_of_two  (yes|no)\n"
                   "per_channel  (yes|no; layout int8: no is one scale for all weights)\n"
                   "symmetric  (yes|no; layout uint8: yes is a zero-point in the middle)\n"
                   "float = no  (yes|no; for analysis only: qat-export refuses)\n");
    qat_write_u8(&w, 0);
    if (w.failed) {
        qat_writer_free(&w);
        *text = NULL;
        return qat_fail(err, QAT_ERR_NOMEM, "out of memory writing the list of keys");
    }
    *text = (char *)w.bytes;
    return QAT_OK;
}
