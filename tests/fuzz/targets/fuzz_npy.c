/**
 * Fuzz target: NumPy's files, .npy and .npz.
 *
 * Mode 0: the last part is a .npy; what is read is written and read again. Mode 1: the last part is
 * a .npz with weights, from which a small network starts; the first part is train.init_map. Mode 2:
 * a data set of arrays; the first part are labels, the last samples. Options: bit 0 the test split,
 * bit 1 data.split, bit 2 a limit, bit 3 another size, bit 4 samples are a gzip file as they are,
 * bit 5 they are packed first; in mode 1 bits 0 and 1 are train.init_layout.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_network.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/npy_mutate.h"

#include "base/files/npy.h"
#include "finetune/init.h"
#include "recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL, LARGE, PARTS };
enum { MODE_NPY, MODE_NPZ, MODE_DATA, MODES };

/* ------------------------------------------------------------------ .npy */

static void read_npy(const uint8_t *bytes, size_t size)
{
    char path[FUZZ_PATH_MAX];
    qat_npy array, again;
    qat_error err = {0};
    qat_status const st = qat_npy_parse(&array, bytes, size, "input", &err);
    fuzz_check_status(st, &err);
    if (!st && array.rank <= QAT_NPY_MAX_RANK) {
        size_t const n = array.count * qat_npy_item_bytes(array.type);
        fuzz_require(n <= size, "items lie in the file");
        fuzz_require(qat_npy_write(fuzz_path(path, "a.npy"), array.type, array.rank, array.dims,
                                   array.data, &err) == QAT_OK,
                     "what is read can be written");
        fuzz_require(qat_npy_read(&again, path, &err) == QAT_OK, "what is written can be read");
        fuzz_require(again.type == array.type && again.rank == array.rank &&
                         again.count == array.count && !memcmp(again.data, array.data, n),
                     "the same array");
        qat_npy_free(&again);
    }
    qat_npy_free(&array);
}

/* ------------------------------------------------------------------ .npz */

/** A small network with everything that has parameters, and the recipe it comes from. */
static struct network {
    qat_recipe *recipe;
    qat_graph *graph, *training;
} network;

static void free_network(void)
{
    qat_graph_free(network.training);
    qat_graph_free(network.graph);
    qat_recipe_free(network.recipe);
}

static void make_network(void)
{
    static const char text[] =
        "[data]\nkind = digits\nheight = 8\nchannels = 2\nclasses = 3\n"
        "[model]\narch = layers\nconvention = pytorch\n"
        "[layer.conv1]\nop = conv2d\nfilters = 4\nkernel = 3\nstride = 2\n"
        "[layer.bn1]\nop = batch_norm\n[layer.relu1]\nop = relu\n"
        "[layer.dw]\nop = depthwise_conv2d\nkernel = 3\n[layer.bn2]\nop = batch_norm\n"
        "[layer.flat]\nop = flatten\n[layer.fc]\nop = fully_connected\nunits = 3\n"
        "[layer.bias]\nop = bias\n";
    qat_error err = {0};
    qat_input_info input;
    qat_status st = qat_recipe_parse(&network.recipe, text, "network", NULL, 0, &err);
    if (!st)
        st = fuzz_input(&input, network.recipe, &err);
    if (!st)
        st = qat_network_build(&network.graph, fuzz_registry(), network.recipe, &input, &err);
    if (!st)
        st = qat_network_build(&network.training, fuzz_registry(), network.recipe, &input, &err);
    if (!st)
        st = qat_graph_plan(network.training, 1, QAT_PLAN_TRAIN, &err);
    fuzz_require(!st, err.message);
    fuzz_require(atexit(free_network) == 0, "the network goes at exit");
}

static void tell(void *context, const char *text)
{
    size_t *letters = context;
    *letters += strlen(text);
}

static void start_from(const char *path, const char *map, int layout)
{
    size_t letters = 0;
    qat_log const log = {tell, &letters};
    qat_error err = {0};
    if (!network.recipe)
        make_network();
    network.recipe->train.init = path;
    network.recipe->train.init_map = map;
    network.recipe->train.init_layout = layout;
    network.recipe->data.memory = 16;
    qat_graph_init_params(network.training, 1);
    fuzz_check_status(
        qat_init_from_file(network.training, network.graph, network.recipe, &log, &err), &err);
}

/* ------------------------------------------------------------------ data sets */

static void open_data(const struct fuzz_parts *p, size_t size)
{
    static const char *const names[] = {"train_x.npy",   "train_x.npy.gz", "test_x.npy",
                                        "test_x.npy.gz", "train_y.npy",    "test_y.npy"};
    char path[FUZZ_PATH_MAX];
    bool const test = p->options & 1;
    int const limit = p->options & 4 ? 1 : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fuzz_remove(names[i]);
    if (p->options & 32)
        fuzz_file_packed(path, test ? "test_x.npy.gz" : "train_x.npy.gz", p->at[LARGE],
                         p->size[LARGE]);
    else
        fuzz_file(path, names[(test ? 2 : 0) + (p->options & 16 ? 1 : 0)], p->at[LARGE],
                  p->size[LARGE]);
    fuzz_file(path, test ? "test_y.npy" : "train_y.npy", p->at[SMALL], p->size[SMALL]);
    qat_dataset_options const o = {.kind = "npy",
                                   .path = fuzz_folder(),
                                   .train_count = limit,
                                   .test_count = limit,
                                   .classes = p->options & 64 ? 3 : 0,
                                   .height = p->options & 8 ? 5 : 0,
                                   .split = p->options & 2 ? 0.5 : 0};
    fuzz_dataset(&o, test ? QAT_SPLIT_TEST : QAT_SPLIT_TRAIN, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    char path[FUZZ_PATH_MAX];
    fuzz_parts_read(&p, data, size, PARTS);
    if (p.mode % MODES == MODE_NPY) {
        read_npy(p.at[LARGE], p.size[LARGE]);
    } else if (p.mode % MODES == MODE_NPZ) {
        char *map = fuzz_parts_text(&p, SMALL);
        start_from(fuzz_file(path, "w.npz", p.at[LARGE], p.size[LARGE]), map, p.options % 3);
        free(map);
    } else {
        open_data(&p, size);
    }
    return 0;
}

/* ------------------------------------------------------------------ mutations */

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    int const mode = p->mode % MODES;
    if (mode == MODE_DATA && part == LARGE && p->options & 16 && fuzz_below(x, 8))
        return LLVMFuzzerMutate(bytes, size, most);
    if (mode == MODE_NPZ)
        return part == LARGE ? fuzz_npz_mutate(bytes, size, most, x)
                             : fuzz_init_map_mutate(bytes, size, most, x);
    return fuzz_npy_mutate(bytes, size, most, x);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    return fuzz_parts_mutate(data, size, most, seed, PARTS, mutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    return fuzz_parts_cross(a, a_size, b, b_size, out, most, seed, PARTS);
}
