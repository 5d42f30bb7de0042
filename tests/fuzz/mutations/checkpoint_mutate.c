/**
 * Mutations that know the sections of a checkpoint. Texts get words of recipes and graphs, other
 * sections get other numbers, and two checkpoints are mixed. Sizes and CRC are right afterwards.
 */
#include "fuzz/fuzz.h"
#include "fuzz/mutations/checkpoint_image.h"
#include "fuzz/mutations/text_mutate.h"

#include <stdlib.h>
#include <string.h>

enum { RECIPE, GRAPH, LOG = 7 };

static const char *const recipe_words[] = {"[data]\n",
                                           "[model]\n",
                                           "[train]\n",
                                           "[quant]\n",
                                           "[detect]\n",
                                           "kind = ",
                                           "digits",
                                           "shapes",
                                           "scenes",
                                           "faces",
                                           "train_count = ",
                                           "height = ",
                                           "resize_short = ",
                                           "central_crop = ",
                                           "classes = ",
                                           "arch = ",
                                           "layers",
                                           "convnet",
                                           "mobilenet_ssd",
                                           "average_decay = ",
                                           "bn_reestimate = 1",
                                           "weight_ranges = ",
                                           "lsq",
                                           "tqt",
                                           "lsq_full",
                                           "tqt_full",
                                           "dorefa",
                                           "apot",
                                           "inq",
                                           "twn",
                                           "pact",
                                           "ema",
                                           "minmax",
                                           "[quant.layer *]\n",
                                           "\n",
                                           NULL};

static const char *const graph_words[] = {"input ",
                                          "param ",
                                          "op ",
                                          "output ",
                                          "input",
                                          "label",
                                          "loss",
                                          "conv2d",
                                          "depthwise_conv2d",
                                          "fully_connected",
                                          "batch_norm",
                                          "bias",
                                          "relu",
                                          "relu6",
                                          "add",
                                          "sub",
                                          "mul",
                                          "concat",
                                          "flatten",
                                          "reshape",
                                          "average_pool2d",
                                          "max_pool2d",
                                          "global_average_pool",
                                          "mean",
                                          "softmax",
                                          "sigmoid",
                                          "tanh",
                                          "dropout",
                                          "softmax_cross_entropy",
                                          "fake_quant",
                                          "()",
                                          "(input)",
                                          "(input,input)",
                                          "[1,1,1,1]",
                                          "[1,2147483647]",
                                          "[65536,32767]",
                                          "init=he",
                                          "init=constant",
                                          "scale=1",
                                          "fan_in=1",
                                          "fan_out=1",
                                          "trainable=0",
                                          "trainable=1",
                                          "decay=0",
                                          "padding=same",
                                          "padding=valid",
                                          "padding=1,2,3,4",
                                          "stride=2",
                                          "groups=2",
                                          "kernel=3",
                                          "filters=4",
                                          "units=3",
                                          "axis=3",
                                          "multiplier=2",
                                          "dilation=2",
                                          "gradient",
                                          "qat-graph 1\n",
                                          NULL};

/** Some number of 4 or 8 bytes, or a string's letters, or bytes more or less. */
static size_t mutate_numbers(uint8_t *bytes, size_t size, size_t most, uint64_t *x)
{
    static const uint64_t wide[] = {0,
                                    1,
                                    INT64_MAX,
                                    (uint64_t)INT64_MIN,
                                    UINT64_MAX,
                                    UINT64_C(0x7ff0000000000000),
                                    UINT64_C(0x7ff8000000000000),
                                    UINT64_C(0x3ff0000000000000),
                                    UINT64_C(0x7fefffffffffffff),
                                    UINT64_C(1) << 32};
    static const uint8_t zeros[16];
    size_t at = fuzz_below(x, size + 1);
    uint64_t value = 0;
    int width = 4;
    at -= fuzz_below(x, 4) ? at % 4 : 0;
    switch (fuzz_below(x, 8)) {
    case 0:
        return fuzz_replace(bytes, size, most, at, 0, zeros, 4 * (1 + fuzz_below(x, 4)));
    case 1:
        return fuzz_replace(bytes, size, most, at, fuzz_below(x, size - at + 1), NULL, 0);
    case 2:
        return LLVMFuzzerMutate(bytes, size, most);
    case 3:
        value = wide[fuzz_below(x, sizeof wide / sizeof *wide)];
        width = 8;
        break;
    default:
        for (size_t i = 0; i < 4 && at + i < size; i++)
            value |= (uint64_t)bytes[at + i] << (8 * i);
        value = fuzz_number(x, (uint32_t)value);
    }
    for (int i = 0; i < width && at + (size_t)i < size; i++)
        bytes[at + (size_t)i] = (uint8_t)(value >> (8 * i));
    return size;
}

static size_t mutate_section(uint8_t *bytes, size_t size, size_t most, int section, uint64_t *x)
{
    if (section == RECIPE)
        return fuzz_text_mutate(bytes, size, most, x, recipe_words);
    if (section == GRAPH)
        return fuzz_text_mutate(bytes, size, most, x, graph_words);
    return section == LOG ? LLVMFuzzerMutate(bytes, size, most)
                          : mutate_numbers(bytes, size, most, x);
}

/** The numbers of the header, or a section less or twice. */
static void mutate_frame(struct checkpoint_image *c, uint64_t *x)
{
    int const i = (int)fuzz_below(x, (size_t)c->n);
    switch (fuzz_below(x, 3)) {
    case 0:
        c->version = (uint32_t)fuzz_below(x, 6);
        c->n -= c->n > 1 && fuzz_below(x, 2);
        c->stated = (uint32_t)c->n;
        break;
    case 1:
        c->stated = fuzz_number(x, c->stated);
        break;
    default:
        c->size[i] = fuzz_below(x, 2) ? 0 : c->size[i] / 2;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    struct checkpoint_image c;
    uint64_t x = seed;
    checkpoint_image_read(&c, data, size);
    if (!c.n || fuzz_below(&x, 24) == 0)
        return LLVMFuzzerMutate(data, size, most);
    uint8_t *part = fuzz_allocate(sizeof(void *), most + 1);
    uint8_t *out = fuzz_allocate(sizeof(void *), most + 1);
    if (fuzz_below(&x, 16) == 0) {
        mutate_frame(&c, &x);
    } else {
        int const i = (int)fuzz_below(&x, (size_t)c.n);
        memcpy(part, c.at[i], c.size[i]);
        c.size[i] = mutate_section(part, c.size[i], most, i, &x);
        c.at[i] = part;
    }
    size_t const made = checkpoint_image_write(&c, out, most);
    if (made)
        memcpy(data, out, made);
    free(part);
    free(out);
    return made ? made : LLVMFuzzerMutate(data, size, most);
}

/** The first checkpoint with a section of the second. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    struct checkpoint_image c, other;
    uint64_t x = seed;
    checkpoint_image_read(&c, a, a_size);
    checkpoint_image_read(&other, b, b_size);
    if (!c.n || !other.n)
        return 0;
    int const i = (int)fuzz_below(&x, (size_t)(c.n < other.n ? c.n : other.n));
    c.at[i] = other.at[i];
    c.size[i] = other.size[i];
    return checkpoint_image_write(&c, out, most);
}
