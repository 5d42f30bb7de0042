/** The table of recipe keys: validation, defaults, `qat-train --keys` and canonical text use it. */
#include "recipe/reader.h"

#include "autograd/ops/curves.h"
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
#define BYTES(s, n, initial, min, max, meaning)                                                    \
    {                                                                                              \
#s, #n, QAT_KEY_BYTES, initial, min, max, NULL, false, AT(s.n), meaning                    \
    }
#define FREE_MIB(s, n, initial, min, max, meaning)                                                 \
    {                                                                                              \
#s, #n, QAT_KEY_MIB, initial, min, max, NULL, true, AT(s.n), meaning                       \
    }
#define COUNT(s, n, initial, min, max, meaning)                                                    \
    {                                                                                              \
#s, #n, QAT_KEY_COUNT, initial, min, max, NULL, false, AT(s.n), meaning                    \
    }
#define REAL(s, n, initial, min, max, meaning)                                                     \
    {                                                                                              \
#s, #n, QAT_KEY_REAL, initial, min, max, NULL, false, AT(s.n), meaning                     \
    }
#define CHOICE(s, n, initial, choices, meaning)                                                    \
    {                                                                                              \
#s, #n, QAT_KEY_CHOICE, initial, 0, 0, choices, false, AT(s.n), meaning                    \
    }
#define CHOICE_OF(op, ...) "|" #op
#define FREE_CHOICE(s, n, initial, choices, meaning)                                               \
    {                                                                                              \
#s, #n, QAT_KEY_CHOICE, initial, 0, 0, choices, true, AT(s.n), meaning                     \
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
           "where the data come from. Pictures with a class: digits, shapes, patterns (drawn by a "
           "program), "
           "idx (MNIST's format), cifar10, cifar100 (binary format), folder (folders of pictures), "
           "list (a list of pictures), tar, tfrecord (shards of pictures). Arrays: npy. Words as "
           "frames of a spectrum: words (drawn). "
           "Sounds: wav (folders of WAV files), keywords (drawn words). "
           "Pictures with boxes: coco (COCO's annotation "
           "files), scenes (drawn). Pictures with a class for each pixel: masks (folders), scenes "
           "with pixels = yes. Pictures with attributes and a value: table (a table of "
           "pictures), faces (drawn). Samples with real values: npy, numbers (a table of numbers), "
           "tones (drawn)"),
    TEXT(data, path, "", true,
         "idx, cifar10, cifar100, folder, wav, npy, coco, masks: the folder; list, table, numbers: "
         "the "
         "file; tar, tfrecord: the folder with the shards, or a pattern with * ? [..]. "
         "${QAT_DATA} is replaced by the value of the environment variable, or "
         "by " QAT_DATA_DEFAULT),
    INT(data, seed, "1", 0, 9e15,
        "digits, shapes, patterns, words, keywords, scenes, faces, tones: seed of what is drawn; "
        "also of "
        "data.split"),
    REAL(data, split, "0", 0, 0.999,
         "folder, tar, tfrecord, wav, list, table, numbers, npy, coco, masks: for data without a "
         "test "
         "split: this share of the samples is the training split, the rest is the test split (0.8, "
         "for "
         "example); 0: the data have "
         "a test split"),
    REAL(data, validation, "0", 0, 0.9,
         "this share of the training samples is not trained on. The evaluations of a run, and with "
         "them best.ckpt and plateaus, are then on these samples, and the test split is left to "
         "qat-eval and qat-export; 0: they are on the test split"),
    FREE_CHOICE(
        data, check, "auto", "auto|full|ends|no",
        "how files of pictures or sounds are checked before the first step. full: decode each one; "
        "ends: "
        "look at the first and last bytes; auto: full for up to 20,000 pictures, else ends"),
    BOOL(data, skip_broken, "no",
         "yes: decode every file of a picture or sound at the start, and leave out those that "
         "cannot be read; "
         "no: they are an error"),
    FREE_INT(data, max_pixels, "178956970", 1, QAT_PICTURE_MOST_PIXELS,
             "picture files of more pixels are an error, which is found before they are decoded; "
             "decoding takes 3 bytes for each pixel allowed. Pixels of a progressive JPEG count 3 "
             "times"),
    CHOICE(data, jpeg_scale, "no", "no|auto",
           "folder, list, tar, tfrecord, table: auto decodes a JPEG at 1/2, 1/4 or 1/8 of its size "
           "if that has at least the pixels that a sample needs (of which crop_area cuts a part: "
           "twice as many in both directions). It is faster, and gives other pixels"),
    FREE_MIB(data, memory, "4096", 1, 1073741824,
             "the most memory in MiB (512, 512M or 2G) that one split of the data may take, "
             "decoded, with the batches that are prepared in advance; also the arrays "
             "of train.init. A file that would take more is refused before it is read"),
    INT(data, train_count, "0", 0, INT_BIG,
        "number of training samples to draw, or the most to take from files; 0: all"),
    INT(data, test_count, "0", 0, INT_BIG,
        "number of test samples to draw, or the most to take from files; 0: all"),
    INT(data, classes, "0", 0, 65536,
        "patterns: number of classes; 0: 1000. idx, npy, list, tar, tfrecord, masks: the same; 0: "
        "largest label + 1. Other kinds know "
        "their number"),
    TEXT(data, train_annotations, "instances_train.json", true, "coco: name of the file in path"),
    TEXT(data, test_annotations, "instances_val.json", true, "coco: name of the file in path"),
    TEXT(data, train_images, "images", true,
         "coco, table: folder with the pictures, relative to path or to the folder that contains "
         "it"),
    TEXT(data, test_images, "images", true, "the same for the test pictures"),
    TEXT(data, attributes, "", false,
         "table: COLUMN=TEXT, ...: one attribute each; a sample has it if its column reads TEXT"),
    TEXT(data, value, "", false,
         "table: name of a column with a number that is learned; numbers: names of such columns, "
         "separated by commas"),
    BOOL(data, one_class, "no", "coco, scenes: treat all categories as one class"),
    BOOL(data, presence, "no",
         "coco, scenes: learn which categories are in a picture, as labels, and no boxes"),
    BOOL(data, pixels, "no", "scenes: learn the class of each pixel, and no boxes"),
    INT(data, ignore, "255", -1, 255,
        "masks: pixels of this value are not known, and count nowhere; -1: all are known"),
    INT(data, height, "0", 0, 4096,
        "height of the pictures; they are resized to it. 0: their own height; for folder, list, "
        "tar, tfrecord, coco, table, masks 32. scenes, faces, patterns: height and width"),
    INT(data, width, "0", 0, 4096, "width of the pictures; 0: same as height"),
    INT(data, channels, "0", 0, 4,
        "folder, list, tar, tfrecord, coco, table, masks: 1 grey, 3 RGB; 0: 3"),
    INT(data, resize_short, "0", 0, 8192,
        "folder, list, tar, tfrecord, table: resize the short side to this, then crop the centre; "
        "0: resize to height x width without cropping"),
    REAL(data, central_crop, "0", 0, 1,
         "folder, list, tar, tfrecord, table: crop the centre, then resize with prefiltering; this "
         "share of the "
         "sides of the largest fitting rectangle is kept; 0: as resize_short says"),
    REALS(data, mean, "auto", -1e30, 1e30,
          "subtracted from every pixel (0..255) or value: one number, or one per channel; auto: "
          "127.5 for pixels, 0 for real values"),
    REALS(data, std, "auto", 1e-30, 1e30,
          "the result is divided by this; auto: 127.5 for pixels, 1 for real values"),
    INT(data, crop_pad, "0", 0, 256,
        "augmentation: pad by this many pixels, then crop at a random place"),
    REALS(data, crop_area, "1", 1e-6, 1,
          "augmentation: crop a random part of the picture and resize it; smallest and largest "
          "area as a share of the picture; 1: no crop"),
    REALS(data, crop_aspect, "0.75, 1.3333333333", 0.1, 10,
          "crop_area: smallest and largest width / height of the part"),
    BOOL(data, ssd_crop, "no",
         "augmentation with boxes, as in SSD: crop a part in which some object keeps a randomly "
         "drawn IoU"),
    REAL(data, ssd_expand, "1", 1, QAT_SSD_EXPAND_MAX,
         "augmentation with boxes, as in SSD: with probability 1/2, place the picture on a grey "
         "canvas that is up to this many times as high and wide"),
    BOOL(data, flip, "no", "augmentation: mirror left-right with probability 1/2"),
    REAL(data, brightness, "0", 0, 1,
         "augmentation: multiply brightness by a random factor in 1 +- this"),
    REAL(data, contrast, "0", 0, 1,
         "augmentation: multiply contrast by a random factor in 1 +- this"),
    REAL(data, saturation, "0", 0, 1,
         "augmentation: multiply colour saturation by a random factor in 1 +- this"),
    REAL(data, hue, "0", 0, 0.5,
         "augmentation: turn the hue by a random share of the colour circle in +- this"),
    INT(data, cutout, "0", 0, 65536,
        "augmentation: a square of this side in pixels, at a random place, gets the picture's "
        "mean"),
    REAL(data, noise, "0", 0, 1e30, "augmentation of real values: add uniform noise in +- this"),
    REAL(data, seconds, "1", 0.032, 60,
         "wav: length of a sound; shorter ones end with silence, longer ones are cut off"),
    TEXT(data, words, "", false,
         "wav: the words to tell apart, separated by commas; all others together are the class "
         "_unknown_, pieces of _background_noise_ the class _silence_. Empty: each folder is a "
         "class"),
    INT(data, time_shift, "0", 0, 10000,
        "augmentation of sounds: begin up to this many milliseconds later or earlier"),
    REAL(data, gain, "0", 0, 1, "augmentation of sounds: random factor of loudness in 1 +- this"),
    REAL(data, background, "0", 0, 1,
         "augmentation of sounds: add a piece of background noise, its loudness times a random "
         "factor up to this; wav: from the folder _background_noise_"),
    REAL(data, background_chance, "0.8", 0, 1, "to this share of the sounds"),
    FREE_INT(data, threads, "1", 1, 64,
             "threads that decode and augment pictures in the background"),
    FREE_INT(data, prefetch, "4", 1, 1024,
             "number of batches to prepare in advance; fewer if data.memory says so"),

    TEXT(model, name, "", true, "a description, which is stored in the .qm"),
    CHOICE(model, task, "auto", "auto|anomaly",
           "what the network learns. auto: what the data have; anomaly: to give samples of class 0 "
           "back, by which samples of other classes are told from them"),
    CHOICE(model, arch, "convnet", QAT_ARCHS,
           "layers: the [layer.NAME] sections, in order. Otherwise the name of a network, which "
           "the keys below adjust. resnet is CIFAR's form. A name with numbers (resnet20, "
           "mobilenet_v1_0.5_160) sets the keys for these numbers itself; leave those keys out. "
           "The last number of a MobileNet is the size of its pictures"),
    INTS(model, filters, "16, 32, 64", 1, 65536, "convnet: output channels of each convolution"),
    INTS(model, strides, "2", 1, 16,
         "convnet: stride of each convolution; one number is used for all"),
    INT(model, kernel, "3", 1, 31, "convnet: kernel size (on signals of height 1: 1 x kernel)"),
    INTS(model, hidden, "", 1, 65536,
         "mlp, convnet: sizes of the fully connected layers before the last one; may be empty"),
    TEXT(
        model, onnx, "", true,
        "the .onnx file of a float network, which is trained from its weights. ${QAT_DATA} is "
        "replaced as in data.path. A checkpoint has the network inside and does not need the file"),
    TEXT(model, tflite, "", true, "the .tflite file of a float network, as model.onnx"),
    TEXT(model, head, "average", false,
         "convnet: what follows the convolutions: average (global average pooling) or flatten. "
         "onnx, tflite: a number: the last layer is replaced by a new one with this many outputs"),
    INT(model, depth, "20", 8, 1202, "resnet: number of layers, 6n + 2"),
    INT(model, width, "16", 1, 1024,
        "resnet*: channels of the first stage; default for resnet18, 34, 50, 101, 152: 64"),
    CHOICE(
        model, convention, "auto", "auto|tensorflow|pytorch",
        "convnet, resnet*, mobilenet_*: padding and defaults. tensorflow: padding SAME. pytorch: "
        "(kernel - 1) / 2 pixels on every side; resnet50, 101, 152 have their stride in the 3x3 "
        "convolutions; bn_epsilon is 1e-5 and bn_momentum 0.9 by default, and mobilenet_v2 has "
        "relu6 and multiplier 1. auto: pytorch if train.init_layout is pytorch, else tensorflow"),
    INT(model, steps, "0", 0, 4096,
        "networks with a state (layers gru, lstm, state): how many steps a sample has. It is cut "
        "into so many frames; training runs all of them, the exported model one frame a run; 0: "
        "no steps"),
    REAL(model, multiplier, "0.25", 0.01, 4, "mobilenet_*: width multiplier of all channels"),
    INT(model, first_stride, "2", 1, 2, "mobilenet_*: stride of the first convolution"),
    REAL(model, auxiliary, "0", 0, 1,
         "inception_v3: weight of the auxiliary classifier's loss in training; 0: no auxiliary "
         "classifier"),
    BOOL(model, batch_norm, "yes", "batch norm after each convolution; no: a bias instead"),
    CHOICE(model, activation, "relu", &("" QAT_ACTIVATIONS(CHOICE_OF))[1],
           "activation after each layer but the last"),
    REAL(model, dropout, "0", 0, 0.95, "rate of the dropout before the last layer; 0: none"),
    CHOICE(model, output, "logits", "logits|softmax", "output of the exported model"),
    REAL(model, bn_momentum, "0.99", 0, 0.99999,
         "smoothing of the averages of batch norm: the share of the old value that stays at each "
         "step; the first 9 / (1 - momentum) steps keep less (docs/arithmetic.md, section 14)"),
    REAL(model, bn_epsilon, "0.001", 1e-8, 1, "added to the variance in batch norm"),

    REAL(train, epochs, "10", 0, 1e6,
         "length of the run if steps = 0; 0.5 is half an epoch; 0, with init: only evaluate the "
         "weights from init and write the checkpoint"),
    INT(train, steps, "0", 0, 9e15, "length of the run in steps; 0: epochs counts"),
    INT(train, batch, "64", 1, 65536, "samples per step"),
    INT(train, shards, "1", 1, 65536,
        "parts into which a batch is cut, at most one a sample. What is added up over a batch is "
        "added up in each part first. The result depends on this number, but not on how many ranks "
        "(mpirun -n) share the parts"),
    BOOL(
        train, sync_batch_norm, "yes",
        "with shards: batch norm by the mean and variance of the whole batch; no: each part by its "
        "own, which saves messages between ranks"),
    BOOL(train, asynchronous, "no",
         "under mpirun: rank 0 keeps the parameters, the other ranks each send it gradients of "
         "whole batches, which it applies as they come. The result is not reproducible"),
    INT(train, eval_batch, "100", 1, 65536, "samples per batch of an evaluation"),
    INT(train, seed, "1", 0, 9e15,
        "seed of initial weights, order of the data, augmentation and dropout"),
    FREE_INT(
        train, threads, "0", 0, 256,
        "compute threads; 0: OMP_NUM_THREADS, or one per processor. Results do not depend on it"),
    CHOICE(train, optimizer, "sgd", "sgd|adam|adamw|rmsprop|adagrad",
           "how gradients change weights; docs/recipes.md has the equations"),
    REAL(train, lr, "0.05", 0, 1e30, "learning rate"),
    CHOICE(train, schedule, "cosine",
           "constant|staircase|exponential|cosine|polynomial|piecewise|plateau",
           "how the learning rate changes. constant: lr; staircase: lr factor^floor(step / every); "
           "exponential: lr factor^(step / every); cosine: half a cosine from lr to final_lr; "
           "polynomial: final_lr + (lr - final_lr) (1 - share of the run)^power; piecewise: lr "
           "factor^(milestones reached); plateau: lr factor^(plateaus so far)"),
    REAL(train, factor, "0.1", 1e-9, 1, "staircase, exponential, piecewise, plateau: see schedule"),
    STEPS(train, every, "1 epochs", false, "staircase, exponential: see schedule"),
    STEPS_LIST(train, milestones, "",
               "piecewise: steps at which the rate falls, separated by commas"),
    REAL(train, final_lr, "0", 0, 1e30, "cosine, polynomial: the learning rate at the end"),
    REAL(train, power, "1", 0.01, 100, "polynomial: see schedule; 1: a straight line"),
    CHOICE(train, plateau_on, "test", "test|loss",
           "plateaus: the figure that must improve. test: the figure of the test split (of the "
           "quantized network if there is one); loss: the mean loss of the steps since the last "
           "evaluation"),
    REAL(train, plateau_threshold, "0", 0, 100,
         "plateaus: how much a figure must improve to count: points of percent, or percent of the "
         "loss"),
    INT(train, plateau_patience, "5", 1, 1e6,
        "plateau: the rate is multiplied by factor after this many evaluations without "
        "improvement"),
    INT(train, stop_patience, "0", 0, 1e6,
        "end the run after this many evaluations without improvement, but not before everything is "
        "quantized that will be; 0: do not end it early"),
    STEPS(train, warmup, "0", false,
          "the learning rate rises linearly for this long at the beginning"),
    TEXT(train, lr_scale, "", false,
         "PATTERN:NUMBER, ...: multiply the learning rate of layers or parameters that match "
         "PATTERN; the last match counts. Example: conv1:0.1, */bias:2"),
    REAL(train, momentum, "0.9", 0, 0.99999, "sgd, rmsprop: momentum"),
    BOOL(train, nesterov, "no", "sgd: use Nesterov's momentum"),
    REAL(train, rms_decay, "0.9", 0, 0.9999999, "rmsprop: smoothing of the mean square"),
    REAL(train, beta1, "0.9", 0, 0.99999, "adam, adamw: smoothing of the gradient"),
    REAL(train, beta2, "0.999", 0, 0.9999999, "adam, adamw: smoothing of its square"),
    REAL(train, epsilon, "auto", 1e-30, 1e30,
         "adam, adamw: added to the root, auto: 1e-8; rmsprop: added under the root, auto: 1"),
    REAL(train, initial_accumulator, "auto", 1e-30, 1e30,
         "rmsprop, adagrad: initial value of the squares; auto: rmsprop 1, adagrad 0.1"),
    REAL(train, weight_decay, "0.0005", 0, 1,
         "weight decay: this times the weight is added to its gradient; adamw: this times lr times "
         "the weight is subtracted from the weight"),
    REAL(train, clip_norm, "0", 0, 1e30,
         "if the norm of all gradients together is larger, scale them down to it; 0: off"),
    REAL(train, clip_value, "0", 0, 1e30, "limit each value of a gradient to +- this; 0: off"),
    REAL(train, average_decay, "0", 0, 0.9999999,
         "decay of a moving average of the trained parameters, which evaluation and export then "
         "use; 0: no average. The paper uses 0.9999"),
    BOOL(train, average_ramp, "no",
         "limit that decay to (1 + steps) / (10 + steps), so that the average forgets the "
         "beginning"),
    REAL(train, label_smoothing, "0", 0, 0.99,
         "share of the target that is spread over all classes; 0: the target is the class alone"),
    STEPS(train, eval_every, "1 epochs", false,
          "how often to evaluate, on the test split or the validation split"),
    BOOL(train, eval_simulated, "no",
         "also evaluate the float32 simulation of the quantized network, beside its integers"),
    STEPS(train, log_every, "auto", false,
          "how often to write a row of log.csv; auto: with each evaluation"),
    STEPS(train, checkpoint_every, "1 epochs", true, "how often to write the checkpoint"),
    TEXT(train, init, "", true,
         "fine-tuning: start with the weights and averages of this checkpoint or .npz, matched by "
         "name; ranges are observed again"),
    CHOICE(
        train, init_layout, "auto", "auto|qat|pytorch",
        "names and order of the arrays in that .npz. qat: as qat-inspect lists them; pytorch: as "
        "in PyTorch's state_dict, which is converted (docs/from-pytorch.md); auto: qat, but "
        "PyTorch's names are an error"),
    TEXT(train, init_map, "", false,
         "OLD:NEW, ...: in names of that file, replace OLD at the beginning by NEW"),
    TEXT(train, init_skip, "", false,
         "patterns, separated by commas: layers that do not take their weights from that file, for "
         "example a replaced head"),
    TEXT(train, freeze, "", false,
         "patterns, separated by commas: layers whose weights and batch norm are not trained"),

    INTS(detect, extra, "512, 256, 256, 128", 1, 65536,
         "mobilenet_ssd: channels of the layers after MobileNet, before model.multiplier; only as "
         "many are used as it takes to reach a feature map of one cell"),
    CHOICE(detect, finest, "1/16", "1/16|1/8",
           "mobilenet_ssd: size of the finest feature map with a head, relative to the picture"),
    REAL(detect, min_scale, "0.2", 0.01, 1, "anchors: scale on the finest feature map"),
    REAL(detect, max_scale, "0.95", 0.01, 1, "anchors: scale on the coarsest one"),
    BOOL(detect, reduced_lowest, "yes", "anchors: three per cell on the finest map instead of six"),
    REAL(detect, match_iou, "0.5", 0.01, 1,
         "an anchor learns an object if their IoU is at least this"),
    CHOICE(detect, classification, "sigmoid", "sigmoid|softmax",
           "output of the network for the scores, and its cross-entropy in the loss"),
    REAL(detect, negatives, "3", 0, 1e9, "hard negatives in the loss for each matched anchor"),
    INT(detect, least_negatives, "0", 0, 1e6, "least number of hard negatives per picture"),
    REAL(detect, box_weight, "1", 0, 1e6, "weight of the boxes' part of the loss"),
    REAL(detect, score_threshold, "0.01", 0, 1, "drop boxes with a lower score"),
    REAL(detect, nms_iou, "0.6", 0.01, 1,
         "drop a box that overlaps a better box of its class by a larger IoU"),
    INT(detect, max_detections, "100", 1, 10000, "most boxes per picture"),

    CHOICE(attributes, value, "ordered", "ordered|smooth_l1|l2|none",
           "data with attributes: how to learn the value of a sample (an age, for example). "
           "ordered: as steps, each with the probability that the value lies above it; smooth_l1, "
           "l2: as a real number, by one of two distances; none: not at all"),
    REAL(attributes, low, "0", -1e9, 1e9,
         "low end of the value's range: where the first step begins"),
    REAL(attributes, high, "100", -1e9, 1e9,
         "high end of the value's range: where the last step ends"),
    INT(attributes, steps, "20", 1, 1000,
        "number of steps; for smooth_l1 and l2 a step is the unit of the distance"),
    REAL(attributes, value_weight, "1", 0, 1e6, "weight of the value's part of the loss"),
    REAL(attributes, within, "5", 0, 1e9, "evaluation: a value counts as right if it is this near"),

    CHOICE(regression, loss, "l2", "l2|l1|huber",
           "data with real values: the distance from them, summed over a sample's values. l2: half "
           "the square; l1: the absolute value; huber: the square up to delta, then straight"),
    REAL(regression, delta, "1", 1e-6, 1e6,
         "huber: where the distance becomes straight, in standard deviations of the training "
         "values"),

    TEXT(distill, teacher, "", true,
         "checkpoint of a float network whose answers are learned too; empty: no teacher"),
    REAL(distill, weight, "0.5", 0, 1,
         "w of the loss (1 - w) cross-entropy + w temperature^2 KL(teacher, student)"),
    REAL(distill, temperature, "4", 0.01, 1000,
         "the logits of both networks are divided by this in KL"),

    BOOL(quant, enabled, "no", "train with simulated quantization; no: train in float"),
    CHOICE(quant, layout, "uint8", "uint8|int8",
           "uint8: asymmetric activations and weights, per tensor (the paper's); int8: symmetric "
           "weights per output channel (TFLite's)"),
    CHOICE(quant, profile, "paper", "paper|tflite|onnx",
           "how the integer model rounds: as in the paper, as TFLite's reference kernels, or as "
           "ONNX Runtime's kernels for quantized operators"),
    INT(quant, weight_bits, "8", 2, 8, "bits per weight"),
    INT(quant, activation_bits, "8", 2, QAT_WIDE_BITS,
        "bits per activation: 2 to 8; or 16, TFLite's 16x8, with layout = int8 and profile = "
        "tflite"),
    INT(quant, input_bits, "0", 0, 8,
        "bits of what convolutions and fully connected layers read: 2 to 8; a tensor with more is "
        "quantized again before them; 0: they read tensors as they come"),
    TEXT(
        quant, weight_bits_schedule, "", false,
        "weights begin with more bits: BITS until WHEN, ..., for example 8 until 30%, 4 until 60%; "
        "after that each layer has its own. Layers with more bits keep them"),
    TEXT(quant, activation_bits_schedule, "", false,
         "the same for activations, and for input_bits"),
    REAL(quant, ema_decay, "0.99", 0, 0.999999, "smoothing of the observed ranges of activations"),
    STEPS(quant, quant_delay, "0", false,
          "when quantization starts; until then the run equals the float run bit for bit"),
    STEPS(quant, weight_delay, "auto", false,
          "when the quantization of weights starts; auto: quant_delay"),
    STEPS(quant, activation_delay, "auto", false,
          "when the quantization of activations starts; auto: quant_delay"),
    STEPS(quant, bn_freeze_delay, "never", false,
          "when batch norm starts to use its averages instead of the statistics of the batch"),
    CHOICE(quant, bn_fold, "two_pass", "two_pass|one_pass",
           "where the statistics of a folded batch norm come from. two_pass: from an additional "
           "float convolution; one_pass: from the quantized convolution, scaled back"),
    TEXT(quant, ranges, "ema", false,
         "where ranges come from: ema (activations: moving average of min and max; weights: min "
         "and max), tqt (trained log thresholds), lsq (learned step size), or the name of a "
         "plugin's quantizer"),
    TEXT(quant, weight_ranges, "auto", false,
         "ranges of weights; auto: as ranges. Also: tqt_full and lsq_full (as tqt and lsq, with "
         "the lowest code: four codes of 2 bits, not three), dorefa (through tanh, without 0), "
         "weight_norm "
         "(mean 0, steps by the standard deviation), apot (the same, on sums of powers of "
         "two), bwn (binary), twn (ternary), fgq (ternary in "
         "groups of four), inq (powers of two, in stages)"),
    TEXT(quant, activation_ranges, "auto", false,
         "ranges of activations; auto: as ranges. Also: pact (the end of the range is learned), "
         "none (activations stay float; such a "
         "network cannot be exported)"),
    BOOL(quant, power_of_two, "no",
         "round scales up to powers of two, except those that are fixed"),
    STEPS(quant, learn_delay, "auto", false,
          "when learned ranges start to learn, from the observed range; auto: after one epoch, or "
          "when quantization starts if that is later"),
    REAL(quant, range_rate, "1", 0, 1e6,
         "learning rate of learned ranges, as a multiple of train.lr"),
    REAL(quant, dampen, "0", 0, 1e6,
         "how strongly weights are drawn to their codes at the end of the run, so that they do not "
         "oscillate between two; it rises from 0 when their quantization starts. 0: not at all"),
    REAL(
        quant, freeze_threshold, "0", 0, 1,
        "a weight is frozen if the frequency of its oscillations, a share of steps, is above this; "
        "0: none is"),
    REAL(quant, freeze_threshold_end, "auto", 0, 1,
         "the same at the end of the run, reached along half a cosine; auto: as at first"),
    REAL(quant, freeze_share, "0.01", 0.000001, 1,
         "share of each step in the averages of oscillations and codes; thresholds below it freeze "
         "a weight the first time"),
    INT(quant, freeze_bits, "4", 2, 8, "the most bits of weights that are frozen"),
    STEPS_LIST(quant, inq_stages, "",
               "inq: the four steps from which on 50, 75, 87.5 and 100 % of the weights are "
               "frozen; empty: where the quarters of the steps with quantized weights begin"),
    INT(quant, bn_reestimate, "0", 0, 1e9,
        "at export, average the statistics of batch norm again over this many training batches, "
        "with quantized weights; 0: keep those of training"),
    CHOICE(quant, fraction, "auto", "auto|0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15",
           "fractional bits of accumulators, at most, as far as int32 has room; auto: profile "
           "paper, where weights or input of a layer have fewer than 8 bits: 15, otherwise 0"),
    STEPS(quant, range_log_every, "never", true,
          "how often to write the ranges, scales and changed weight codes of every layer to "
          "quant.csv"),
    CHOICE(quant, forward, "simulated", "simulated|integer|fake_quant",
           "arithmetic of the forward pass in training, after all delays. simulated: float32 with "
           "fake quantization, and with fewer than 8 bits the roundings of the integers; integer: "
           "the integers of the deployed model; fake_quant: float32 with fake quantization alone"),
    REAL(quant, input_min, "auto", -1e30, 1e30,
         "low end of the real range of the network's input; auto: from mean and std, or from the "
         "training data"),
    REAL(quant, input_max, "auto", -1e30, 1e30, "high end of that range; auto: in the same way"),

    BYTES(budget, flash, "0", 0, INT_BIG,
          "qat-train --budget chooses the bits of each layer within this: the most bytes of the "
          ".qm, whose weights are packed, with what makes it fit budget.ram; 0: no limit"),
    BYTES(budget, ram, "0", 0, INT_BIG,
          "the RAM on a device, without the engine's model memory, that qat-export --ram must be "
          "able to reach; 0: no limit"),
    COUNT(budget, macs_bits, "0", 0, 9e15,
          "the most of the sum over layers of multiply-adds x weight bits x bits of the "
          "activations that they multiply; 0: no limit"),
    INTS(budget, weight_bits, "2, 3, 4, 8", 2, 8,
         "bits of weights to choose from; empty: all layers keep theirs"),
    INTS(budget, activation_bits, "", 2, 8,
         "bits of activations to choose from; empty: all layers keep theirs"),
    TEXT(budget, keep, "", false,
         "layers that keep the bits that [quant] and [quant.layer] give them: patterns of names, "
         "separated by commas; also @first, @last"),
    CHOICE(budget, sensitivity, "measured", "measured|hessian",
           "what a layer's bits cost. measured: the loss with this layer alone at these bits; "
           "hessian: for weights the trace of the loss's Hessian, times the squared rounding "
           "errors (HAWQ-V2)"),
    INT(budget, samples, "1000", 1, INT_BIG, "training samples on which that is measured"),
    INT(budget, probes, "16", 1, 100000, "hessian: random vectors for the trace"),
    TEXT(budget, table, "", true,
         "file with what was measured, which runs share; empty: sensitivity.csv in the run's "
         "folder"),

    TEXT(plugin, path, "", true,
         "shared objects with custom layers and tasks, separated by commas; only training loads "
         "them"),

    TEXT(output, dir, "runs/qat", true, "folder for the checkpoints and log.csv"),
    FREE_INT(output, keep, "0", 0, 1000000,
             "how many of the last checkpoints to keep as step-N.ckpt; 0: only last.ckpt"),
    FREE_BOOL(output, best, "yes",
              "keep the checkpoint of the best evaluation as best.ckpt; the "
              "quantized network counts if there is one"),
    FREE_BOOL(output, tensorboard, "no",
              "write event files for TensorBoard into the folder tensorboard: curves, histograms "
              "and the worst answers of each evaluation, the graph, the settings"),
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
    case QAT_KEY_BYTES:
        qat_write_text(w, "bytes %.0f..%.0f, such as 32K or 1M", k->min, k->max);
        break;
    case QAT_KEY_MIB:
        qat_write_text(w, "MiB %.0f..%.0f, such as 512, 512M or 2G", k->min, k->max);
        break;
    case QAT_KEY_COUNT:
        qat_write_text(w, "integer %.0f..%.0f, such as 2500K, 40M or 3G", k->min, k->max);
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
    qat_write_text(
        &w, "\n[layer.NAME]\n"
            "    One layer of a network with arch = layers. Layers follow each other in the file's "
            "order.\n"
            "op = (any registered op)\n"
            "input = (names of layers, separated by commas; default: the one before)\n"
            "bias = no, batch_norm = no  (yes|no)\n"
            "activation = none  (any op of one input)\n"
            "    and every attribute of the op by its name; see --ops\n"
            "\n[quant.layer PATTERN]\n"
            "    Other settings for the layers whose names match PATTERN: * is any characters, ? "
            "is one;\n"
            "    @first and @last are the first and last convolution or fully connected layer.\n"
            "    If several sections match a layer, the last one in the file counts.\n"
            "weight_bits, activation_bits, input_bits  (integer 2..8; activation_bits also 16)\n"
            "ranges, weight_ranges, activation_ranges  (name of a quantizer)\n"
            "power_of_two  (yes|no)\n"
            "per_channel  (yes|no; layout int8; no: one scale for all weights of the layer)\n"
            "symmetric  (yes|no; layout uint8; yes: zero_point is in the middle)\n"
            "float = no  (yes|no; yes: leave the layer in float, for analysis only; qat-export "
            "refuses it)\n");
    qat_write_u8(&w, 0);
    if (w.failed) {
        qat_writer_free(&w);
        *text = NULL;
        return qat_out_of_memory(err, "list of keys");
    }
    *text = (char *)w.bytes;
    return QAT_OK;
}
