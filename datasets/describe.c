/** What was found in the data, as one sentence for people. */
#include "datasets/dataset_kind.h"

#include "base/bytes.h"
#include "base/words.h"
#include "qat/sound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_SHOWN = 10 };

const char *qat_dataset_unit(const qat_dataset_info *info)
{
    if (info->type == QAT_SAMPLE_SOUND)
        return "sound";
    if (info->type == QAT_SAMPLE_F32)
        return info->height == 1 ? "signal" : "sample";
    return info->height == 1 ? "sample" : "picture";
}

/** info.name without its split. */
static void write_name(qat_writer *w, const char *name)
{
    const char *slash = strrchr(name, '/');
    qat_write_text(w, "%.*s", (int)(slash ? (size_t)(slash - name) : strlen(name)), name);
}

static void write_count(qat_writer *w, const qat_dataset *d)
{
    bool const train = d->split == QAT_SPLIT_TRAIN;
    qat_write_text(w, "%s%d %s %s%s", train ? ": " : ", ", d->info.count,
                   train ? "training" : qat_split_name(d->split), qat_dataset_unit(&d->info),
                   qat_plural(d->info.count));
}

/* ------------------------------------------------------------------ classes */

/** Samples, objects or attributes that are there, of each class; known: what is not NaN. */
typedef struct counts {
    int64_t *of; /* [classes] */
    int64_t total, values, known;
    int classes;
} counts;

static void count_one(counts *c, int label)
{
    if (label >= 0 && label < c->classes)
        c->of[label]++;
    c->total++;
}

static void count_targets(counts *c, const float *targets, int n)
{
    for (int k = 0; k < c->classes; k++) {
        c->known += !isnan(targets[k]);
        if (targets[k] == 1)
            count_one(c, k);
    }
    c->values += n > c->classes && !isnan(targets[c->classes]);
}

static void count_pixels(counts *c, const float *targets, int n)
{
    for (int k = 0; k < n; k++)
        if (!isnan(targets[k]))
            count_one(c, (int)targets[k]);
}

static void count_split(counts *c, const qat_dataset *d)
{
    for (int i = 0; i < d->info.count; i++) {
        const qat_objects *o = qat_dataset_objects(d, i);
        for (int k = 0; o && k < o->count; k++)
            count_one(c, o->truth[k].label);
        if (d->info.targets == QAT_TARGETS_PIXELS)
            count_pixels(c, qat_dataset_targets(d, i), d->info.n_targets);
        else if (d->info.n_targets)
            count_targets(c, qat_dataset_targets(d, i), d->info.n_targets);
        else if (!o)
            count_one(c, qat_dataset_label(d, i));
    }
}

/** Of an undrawn set only the classes of samples that have one are known. */
static bool can_count(const qat_dataset *d)
{
    if (d->undrawn)
        return !d->info.has_objects && !d->info.n_targets;
    return d->labels || d->info.has_objects || d->targets;
}

/** "name" without bytes that would disturb a terminal. */
static void write_label(qat_writer *w, const qat_dataset_info *info, int class)
{
    if (!info->labels) {
        qat_write_text(w, "%d:", class);
        return;
    }
    for (const char *c = info->labels[class]; *c; c++)
        qat_write_u8(w, (unsigned char)*c < ' ' || *c == 127 ? '?' : (uint8_t)*c);
}

/** " (cat 100, dog 120, and 3 more)" */
static void write_classes(qat_writer *w, const qat_dataset_info *info, const counts *c)
{
    int const shown = c->classes > CLASSES_SHOWN + 1 ? CLASSES_SHOWN : c->classes;
    for (int i = 0; i < shown; i++) {
        qat_write_text(w, i ? ", " : " (");
        write_label(w, info, i);
        qat_write_text(w, " %lld", (long long)c->of[i]);
    }
    if (shown < c->classes)
        qat_write_text(w, ", and %d more", c->classes - shown);
    qat_write_text(w, ")");
}

/** ", 20 objects of 3 classes"; without the number if they were not counted. */
static void write_things(qat_writer *w, const counts *c, const char *thing)
{
    if (c->of)
        qat_write_text(w, ", %lld %s%s", (long long)c->total, thing, qat_plural(c->total));
    else
        qat_write_text(w, ", %ss", thing);
    qat_write_text(w, " of %d class%s", c->classes, c->classes == 1 ? "" : "es");
}

static void write_values(qat_writer *w, const qat_dataset *d)
{
    const qat_dataset_info *info = &d->info;
    qat_write_text(w, ", %d value%s each", info->n_targets, qat_plural(info->n_targets));
    if (!d->undrawn)
        qat_write_text(w, " (mean %g, standard deviation %g)", (double)info->target_mean,
                       (double)info->target_deviation);
}

static void write_contents(qat_writer *w, const qat_dataset *d, const counts *c)
{
    const qat_dataset_info *info = &d->info;
    int const n = c->classes;
    if (info->has_objects)
        write_things(w, c, "object");
    else if (info->has_targets && n)
        qat_write_text(w, ", %d attribute%s", n, qat_plural(n));
    else if (info->targets == QAT_TARGETS_VALUES)
        write_values(w, d);
    else if (info->targets == QAT_TARGETS_LABELS)
        qat_write_text(w, ", %d label%s", n, qat_plural(n));
    else if (info->targets == QAT_TARGETS_PIXELS)
        write_things(w, c, "pixel");
    else if (!info->has_targets)
        qat_write_text(w, ", %d class%s", n, n == 1 ? "" : "es");
    if (c->of && n)
        write_classes(w, info, c);
    if (info->has_value && c->of)
        qat_write_text(w, ", a value of %lld", (long long)c->values);
    else if (info->has_value)
        qat_write_text(w, ", a value");
}

/** What is made of sounds of another length. */
static void write_length(qat_writer *w, const qat_dataset *d)
{
    if (d->info.type != QAT_SAMPLE_SOUND)
        return;
    qat_write_text(w, ", of %d frames (%g s)", d->info.height,
                   (double)qat_wave_samples(d->info.height) / QI_SOUND_RATE);
    if (d->kind->file)
        qat_write_text(w, ": shorter ones end with silence, longer ones are cut off");
}

/* ------------------------------------------------------------------ what is left out */

/** Of both splits; parts of one set passed over the same files. */
static qat_ignored ignored_of(const qat_dataset *train, const qat_dataset *test)
{
    qat_ignored all = train->ignored;
    if (!test || test->is_part)
        return all;
    const qat_ignored *more = &test->ignored;
    qat_ignored_join(&all, more);
    all.rows = train->ignored.rows; /* of the same table */
    return all;
}

static void write_left_out(qat_writer *w, const qat_dataset *train, const qat_dataset *test)
{
    char text[512];
    qat_ignored const all = ignored_of(train, test);
    int const skipped = train->info.skipped + (test ? test->info.skipped : 0);
    qat_ignored_text(&all, text, sizeof text);
    if (*text)
        qat_write_text(w, "; ignored: %s", text);
    if (skipped)
        qat_write_text(w, "; skipped: %d %s%s that cannot be read", skipped,
                       qat_dataset_unit(&train->info), qat_plural(skipped));
}

qat_status qat_dataset_describe(const qat_dataset *train, const qat_dataset *test, char **text,
                                qat_error *err)
{
    qat_writer w = {0};
    counts c = {.classes = train->info.classes};
    *text = NULL;
    if (can_count(train)) {
        c.of = calloc((size_t)c.classes + 1, sizeof *c.of);
        if (!c.of)
            return qat_out_of_memory(err, train->info.name);
        count_split(&c, train);
        if (test && can_count(test))
            count_split(&c, test);
    }
    write_name(&w, train->info.name);
    write_count(&w, train);
    if (test)
        write_count(&w, test);
    write_contents(&w, train, &c);
    write_length(&w, train);
    write_left_out(&w, train, test);
    qat_write_u8(&w, 0);
    free(c.of);
    if (w.failed) {
        qat_writer_free(&w);
        return qat_out_of_memory(err, train->info.name);
    }
    *text = (char *)w.bytes;
    return QAT_OK;
}
