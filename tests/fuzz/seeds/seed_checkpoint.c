/**
 * Writes seeds of fuzz_checkpoint: checkpoints of runs of a few steps with small networks. To keep
 * them small, their recipes have only the keys that were given, and their logs are empty.
 *
 * usage: seed_checkpoint FOLDER
 */
#include "fuzz/seeds/seed.h"

#include "checkpoint/checkpoint.h"
#include "qat/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *recipe;
} runs[] = {
    {"layers",
     "[data]\nkind = digits\ntrain_count = 8\ntest_count = 4\nheight = 8\n"
     "[model]\narch = layers\n"
     "[layer.a]\nop = conv2d\nfilters = 2\nkernel = 3\nstride = 2\n[layer.b]\nop = batch_norm\n"
     "[layer.c]\nop = relu6\n[layer.d]\nop = depthwise_conv2d\nkernel = 3\n"
     "[layer.e]\nop = batch_norm\n[layer.f]\nop = add\ninput = c, e\n"
     "[layer.g]\nop = global_average_pool\n"
     "[layer.h]\nop = fully_connected\nunits = 10\n"
     "[train]\nsteps = 2\nbatch = 4\n[quant]\nenabled = yes\n"},
    {"convnet",
     "[data]\nkind = digits\ntrain_count = 8\ntest_count = 4\nheight = 8\n"
     "[model]\narch = convnet\nfilters = 2\nstrides = 2\n"
     "[train]\nsteps = 2\nbatch = 4\noptimizer = adam\naverage_decay = 0.9\n"
     "[quant]\nenabled = yes\nlayout = int8\nweight_ranges = lsq\nactivation_ranges = tqt\n"
     "[quant.layer *]\nweight_bits = 4\n"},
    {"float",
     "[data]\nkind = shapes\ntrain_count = 8\ntest_count = 4\nheight = 8\n"
     "[model]\narch = mlp\nhidden = 3\n[train]\nsteps = 2\nbatch = 4\n[quant]\nenabled = no\n"},
    {"faces",
     "[data]\nkind = faces\ntrain_count = 4\ntest_count = 2\nheight = 32\n"
     "[model]\narch = convnet\nfilters = 2, 2\nstrides = 2, 2\n[train]\nsteps = 1\nbatch = 2\n"},
    {"scenes", "[data]\nkind = scenes\ntrain_count = 4\ntest_count = 2\nheight = 64\n"
               "[model]\narch = mobilenet_ssd\nmultiplier = 0.05\n[train]\nsteps = 1\nbatch = 2\n"},
};

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    if (copy)
        strcpy(copy, text);
    return copy;
}

/** Train, then write the checkpoint again with short texts. */
static qat_status make(const char *name, const char *text, const char *folder, qat_error *err)
{
    char dir[512], path[600];
    qat_recipe *recipe = NULL;
    qat_checkpoint *c = NULL;
    qat_train_result result;
    snprintf(dir, sizeof dir, "%s/%s.run", folder, name);
    snprintf(path, sizeof path, "%s/last.ckpt", dir);
    qat_train_options const o = {.dir = dir, .overwrite = true};
    qat_status st = qat_recipe_parse(&recipe, text, name, NULL, 0, err);
    if (!st)
        st = qat_train(recipe, &o, &result, err);
    if (!st)
        st = qat_checkpoint_load(&c, path, err);
    if (!st) {
        free(c->recipe);
        free(c->log);
        c->recipe = copy_of(text);
        c->log = copy_of("");
        snprintf(path, sizeof path, "%s/seed-%s", folder, name);
        st = c->recipe && c->log ? qat_checkpoint_save(c, path, err) : qat_out_of_memory(err, name);
    }
    qat_checkpoint_free(c);
    qat_recipe_free(recipe);
    return st;
}

int main(int argc, char **argv)
{
    int failures = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: seed_checkpoint FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        qat_error err;
        if (make(runs[i].name, runs[i].recipe, argv[1], &err)) {
            fprintf(stderr, "seed_checkpoint: %s: %s\n", runs[i].name, err.message);
            failures++;
        }
    }
    return failures != 0;
}
