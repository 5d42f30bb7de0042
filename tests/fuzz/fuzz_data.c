#include "fuzz/fuzz_data.h"

#include "fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 40, MOST_VALUES = 1 << 16 };

void fuzz_check_status(qat_status status, const qat_error *err)
{
    fuzz_require(status == QAT_OK || strlen(err->message) > 0,
                 "a message where something is wrong");
    fuzz_require(status == QAT_OK || err->status == status, "the status of the message");
}

static void check_info(const qat_dataset_info *info)
{
    size_t letters = 0;
    fuzz_require(info->count > 0 && (info->classes > 0 || info->has_value),
                 "samples, and classes or a value");
    fuzz_require(info->height > 0 && info->width > 0 && info->channels > 0, "a size");
    fuzz_require(info->min <= info->max && isfinite(info->min) && isfinite(info->max), "a range");
    for (int i = 0; info->labels && i < info->classes; i++)
        letters += strlen(info->labels[i]);
    fuzz_require(letters + strlen(info->name) > 0, "a name");
}

static void check_objects(const qat_dataset_info *info, const qat_objects *o)
{
    fuzz_require((o != NULL) == info->has_objects, "objects where they are promised");
    for (int i = 0; o && i < o->count; i++) {
        const qat_truth *t = &o->truth[i];
        fuzz_require(t->label >= 0 && t->label < info->classes, "an object has a class");
        fuzz_require(isfinite(t->box.ymin) && isfinite(t->box.xmax) && t->area >= 0, "a box");
    }
}

static void check_targets(const qat_dataset_info *info, const float *targets)
{
    fuzz_require((targets != NULL) == info->has_targets, "targets where they are promised");
    for (int i = 0; targets && i < info->classes; i++)
        fuzz_require(isnan(targets[i]) || targets[i] == 0 || targets[i] == 1, "yes or no");
    fuzz_require(!targets || !isinf(targets[info->classes]), "a value");
}

static void get_samples(const qat_dataset *d, const qat_dataset_info *info)
{
    size_t const n = (size_t)info->height * (size_t)info->width * (size_t)info->channels;
    float *values = n <= MOST_VALUES ? malloc(n * sizeof *values) : NULL;
    for (int i = 0; i < info->count && i < MOST_SAMPLES; i++) {
        int label = -1;
        qat_error err = {0};
        qat_status const st = values ? qat_dataset_get(d, i, values, &label, &err) : QAT_OK;
        fuzz_check_status(st, &err);
        fuzz_require(st || !values || label == 0 || (label > 0 && label < info->classes),
                     "a sample's class");
        check_objects(info, qat_dataset_objects(d, i));
        check_targets(info, qat_dataset_targets(d, i));
    }
    free(values);
}

/** The first look, and the digest, twice. */
static void look_at(const qat_dataset *d, qat_split split)
{
    qat_error err = {0};
    qat_data_digest first, second;
    char *text = NULL;
    if (split == QAT_SPLIT_TRAIN && qat_dataset_describe(d, d, &text, &err) == QAT_OK)
        fuzz_require(strlen(text) > 0, "a description");
    free(text);
    fuzz_require(qat_dataset_digest(d, &first, &err) == QAT_OK, "a digest");
    fuzz_require(qat_dataset_digest(d, &second, &err) == QAT_OK, "a second digest");
    fuzz_require(memcmp(first.sha256, second.sha256, sizeof first.sha256) == 0, "the same digest");
    qat_data_digest_free(&first);
    qat_data_digest_free(&second);
}

/** One batch. Its loader has a thread, so not at every execution. */
static void load_batch(const qat_dataset *d)
{
    qat_loader_options const o = {.batch = 2, .shuffle = true, .threads = 1, .prefetch = 1};
    qat_loader *loader = NULL;
    const qat_batch *batch;
    qat_error err = {0};
    qat_status st = qat_loader_create(&loader, d, &o, &err);
    if (!st)
        st = qat_loader_next(loader, &batch, &err);
    fuzz_check_status(st, &err);
    qat_loader_free(loader);
}

/** Leave out what cannot be read, as data.skip_broken does. */
static void skip_broken(qat_dataset *d)
{
    qat_faults faults;
    qat_error err = {0};
    qat_status st = qat_dataset_check(d, false, NULL, NULL, &faults, &err);
    if (!st)
        st = qat_dataset_skip(d, &faults, &err);
    fuzz_check_status(st, &err);
    qat_faults_free(&faults);
}

void fuzz_dataset(const qat_dataset_options *options, qat_split split, size_t size)
{
    enum { USUAL = 16 << 20, SCARCE = 2000 };
    qat_dataset *d = NULL;
    qat_error err = {0};
    qat_dataset_options o = *options;
    o.memory = size % 16 ? USUAL : SCARCE;
    qat_status const st = qat_dataset_open(&d, &o, split, &err);
    fuzz_check_status(st, &err);
    fuzz_require((st == QAT_OK) == (d != NULL), "a data set exactly where nothing is wrong");
    if (st)
        return;
    const qat_dataset_info *info = qat_dataset_info_of(d);
    check_info(info);
    get_samples(d, info);
    look_at(d, split);
    if (info->count <= MOST_SAMPLES)
        skip_broken(d);
    if (fuzz_thorough && info->height * info->width <= MOST_VALUES / info->channels)
        load_batch(d);
    qat_dataset_close(d);
}
