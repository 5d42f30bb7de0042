/**
 * A training step allocates nothing (graph.h), whatever is simulated, on integers or learned from a
 * teacher. Runs of qat_train on the network of data/every_layer.ini are stopped after each step,
 * and what was asked for since the first step is counted: every malloc, calloc, realloc and
 * aligned allocation of any thread and of any library, OpenBLAS too. (It maps its own buffers when
 * it is first called; these are not seen.) Evaluations and checkpoints are not steps: the runs have
 * none between. Nor do their loaders cut parts out of pictures and resize them (crop_area, and all
 * augmentation of pictures with boxes): that takes memory for each picture, and gives it back.
 */
#define _GNU_SOURCE
#include "base/files/file.h"
#include "base/parallel.h"
#include "common/suite.h"
#include "common/temp.h"
#include "qat/train.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 14, EARLY_BYTES = 1 << 14 };

/* ------------------------------------------------------------------ counting */

static atomic_bool counting;
static atomic_long asked;
static _Atomic(void *) first; /* who asked first */

static _Alignas(16) char early[EARLY_BYTES]; /* what dlsym itself asks for */
static size_t early_used;
static bool looking;

static void *real(const char *name)
{
    looking = true;
    void *function = dlsym(RTLD_NEXT, name);
    looking = false;
    return function;
}

static void *early_block(size_t bytes)
{
    void *block = early + early_used;
    early_used += (bytes + 15) / 16 * 16;
    return early_used <= EARLY_BYTES ? block : NULL;
}

static void count(void *caller)
{
    if (atomic_load(&counting) && atomic_fetch_add(&asked, 1) == 0)
        atomic_store(&first, caller);
}

/* The names that every library finds first; the build hides names otherwise. */
#pragma GCC visibility push(default)

#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes)
{
    static void *(*next)(size_t);
    if (!next && !looking)
        *(void **)&next = real("malloc");
    count(CALLER);
    return next ? next(bytes) : early_block(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    static void *(*next)(size_t, size_t);
    if (!next && !looking)
        *(void **)&next = real("calloc");
    count(CALLER);
    return next ? next(n, bytes) : early_block(n * bytes);
}

void *realloc(void *block, size_t bytes)
{
    static void *(*next)(void *, size_t);
    if (!next)
        *(void **)&next = real("realloc");
    count(CALLER);
    return next(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        *(void **)&next = real("aligned_alloc");
    count(CALLER);
    return next(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    static int (*next)(void **, size_t, size_t);
    if (!next)
        *(void **)&next = real("posix_memalign");
    count(CALLER);
    return next(block, alignment, bytes);
}

void free(void *block)
{
    static void (*next)(void *);
    if (!next && !looking)
        *(void **)&next = real("free");
    if (next && ((char *)block < early || (char *)block >= early + EARLY_BYTES))
        next(block);
}

#pragma GCC visibility pop

/* ------------------------------------------------------------------ runs */

/** Called after each step: count from the end of the first to the end of the last. */
static bool after_step(void *context)
{
    int *steps = context;
    bool const ends = ++*steps == STEPS;
    atomic_store(&counting, !ends);
    return ends;
}

#define RUN                                                                                        \
    "[train]\nbatch = 8\nsteps = 100\neval_every = 100\ncheckpoint_every = 100\nlog_every = 100\n" \
    "lr = 0.01\n[quant]\nenabled = yes\nquant_delay = 4\nbn_freeze_delay = 8\n"

/** Train a network and expect no allocation. The settings are separated by commas. */
static void steps_without(const char *text, const char *settings)
{
    char words[512], *sets[32], dir[TEST_PATH_MAX];
    int n = 0, steps = 0;
    qat_recipe *recipe;
    qat_error err;
    Dl_info who = {0};
    snprintf(words, sizeof words, "%s", settings);
    for (char *at = words, *word; (word = strtok_r(at, ",", &at)); n++)
        sets[n] = word;
    ck_assert_msg(!qat_recipe_parse(&recipe, text, "net.ini", (const char *const *)sets, n, &err),
                  "%s", err.message);
    qat_train_options const o = {.dir = test_temp_path(dir, folder, "run"),
                                 .overwrite = true,
                                 .stop = after_step,
                                 .context = &steps};
    atomic_store(&asked, 0);
    qat_status const st = qat_train(recipe, &o, NULL, &err);
    atomic_store(&counting, false);
    ck_assert_msg(!st, "%s: %s", settings, err.message);
    ck_assert_int_eq(steps, STEPS);
    if (asked && dladdr(first, &who))
        printf("the first is at %p of %s\n", (void *)((char *)first - (char *)who.dli_fbase),
               who.dli_fname);
    ck_assert_msg(asked == 0, "%s: %ld allocations in %d steps", settings, (long)asked, STEPS - 1);
    qat_recipe_free(recipe);
}

/** A file of the source tree behind a text; free() it. */
static char *with_file(const char *text, const char *name)
{
    char path[TEST_PATH_MAX];
    uint8_t *bytes;
    size_t n, m = strlen(text);
    snprintf(path, sizeof path, "%s/%s", getenv("QAT_SOURCE_ROOT"), name);
    ck_assert_int_eq(qat_file_read(path, 1 << 16, &bytes, &n, NULL), QAT_OK);
    char *all = calloc(m + n + 1, 1);
    memcpy(all, text, m);
    memcpy(all + m, bytes, n);
    free(bytes);
    return all;
}

static const char *const forwards[] = {
    "quant.enabled=no",
    "quant.layout=uint8",
    "quant.layout=int8,quant.profile=tflite",
    "quant.bn_fold=one_pass",
    "quant.quant_delay=0",
    "quant.weight_bits=4,quant.activation_bits=6",
    "quant.weight_ranges=tqt,quant.activation_ranges=tqt",
    "quant.weight_ranges=lsq,quant.activation_ranges=lsq",
    "quant.weight_ranges=bwn,quant.activation_ranges=none",
    "quant.weight_ranges=twn,quant.activation_ranges=none",
    "quant.weight_ranges=fgq,quant.activation_ranges=none,quant.layer dw.weight_ranges=ema",
    "quant.weight_ranges=inq,quant.weight_bits=4,quant.bn_freeze_delay=4",
    "quant.power_of_two=yes",
    "quant.forward=integer",
    "quant.forward=integer,quant.quant_delay=0",
    "quant.forward=integer,quant.quant_delay=0,quant.learn_delay=1,quant.ranges=tqt",
    "quant.forward=integer,quant.bn_fold=one_pass",
    "quant.forward=integer,quant.layout=int8,quant.profile=tflite",
    "data.threads=1,data.prefetch=2",
    "train.optimizer=adam,train.average_decay=0.9",
};

START_TEST(test_forward)
{
    char *text = with_file("[data]\nkind = shapes\ntrain_count = 40\ntest_count = 8\nflip = yes\n"
                           "crop_pad = 2\nbrightness = 0.2\n" RUN,
                           "tests/e2e/data/every_layer.ini");
    steps_without(text, forwards[_i]);
    free(text);
}
END_TEST

/** Boxes need targets for their anchors. */
START_TEST(test_boxes)
{
    steps_without("[data]\nkind = scenes\nheight = 64\ntrain_count = 40\ntest_count = 8\n"
                  "[model]\narch = mobilenet_ssd\nmultiplier = 0.05\n" RUN,
                  _i ? "quant.forward=integer" : "quant.layout=int8");
}
END_TEST

START_TEST(test_attributes)
{
    char *text = with_file("", "recipes/faces.ini");
    steps_without(text, "data.train_count=40,data.test_count=8,train.batch=8,train.steps=100,"
                        "train.eval_every=100,train.checkpoint_every=100,train.log_every=100,"
                        "quant.quant_delay=4,quant.bn_freeze_delay=8");
    free(text);
}
END_TEST

/** A student's step has its teacher's answers. */
START_TEST(test_distillation)
{
    static const char student[] =
        "[data]\nkind = shapes\ntrain_count = 40\ntest_count = 8\n[model]\nfilters = 4\n" RUN;
    char dir[TEST_PATH_MAX], set[TEST_PATH_MAX + 32];
    const char *const sets[] = {"train.steps=2", "quant.enabled=no"};
    qat_recipe *recipe;
    qat_error err;
    ck_assert(!qat_recipe_parse(&recipe, student, "teacher.ini", sets, 2, &err));
    qat_train_options const o = {.dir = test_temp_path(dir, folder, "teacher")};
    ck_assert_msg(!qat_train(recipe, &o, NULL, &err), "%s", err.message);
    qat_recipe_free(recipe);
    snprintf(set, sizeof set, "distill.teacher=%s/last.ckpt", dir);
    steps_without(student, set);
}
END_TEST

int main(void)
{
    qat_set_threads(2);
    Suite *suite = suite_create("step memory");
    TCase *tcase = tcase_create("steps");
    tcase_add_checked_fixture(tcase, test_folder_make, test_folder_remove);
    tcase_add_loop_test(tcase, test_forward, 0, sizeof forwards / sizeof *forwards);
    tcase_add_loop_test(tcase, test_boxes, 0, 2);
    tcase_add_test(tcase, test_attributes);
    tcase_add_test(tcase, test_distillation);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
