#include "train/first_look.h"

#include "checkpoint/checkpoint.h"

#include "datasets/dataset_kind.h"
#include "recipe/recipe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(const qat_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const qat_log *log, const char *format, ...)
{
    char text[1024];
    va_list args;
    if (!log)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log->line(log->context, text);
}

/* ------------------------------------------------------------------ what they are */

/** Samples of each class; NULL: no memory. */
static int *count_classes(const qat_dataset *d, int classes)
{
    int *n = calloc((size_t)classes + 1, sizeof *n);
    for (int i = 0; n && i < qat_dataset_info_of(d)->count; i++) {
        int const label = qat_dataset_label(d, i);
        if (label < classes)
            n[label]++;
    }
    return n;
}

static const char *class_name(const qat_dataset_info *info, int class, char text[16])
{
    (void)snprintf(text, 16, "%d", class);
    return info->labels ? info->labels[class] : text;
}

static qat_status one_class(const qat_recipe *r, const qat_dataset_info *info, int class,
                            qat_error *err)
{
    char number[16];
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: %s: all %d training samples are of one class (%.100s), a classifier needs "
                    "two; is data.path the folder, file or list that was meant?",
                    r->source, info->name, info->count, class_name(info, class, number));
}

/** Classes that one split has and the other has not. */
static void tell_missing(const qat_dataset_info *info, const int *train, const int *test,
                         const char *judged, const qat_log *warnings)
{
    char number[16];
    int untrained = 0, untested = 0, first_untrained = 0, first_untested = 0;
    for (int c = info->classes - 1; c >= 0; c--) {
        if (!train[c] && test[c]) {
            untrained++;
            first_untrained = c;
        }
        if (train[c] && !test[c]) {
            untested++;
            first_untested = c;
        }
    }
    if (untrained)
        note(warnings, "data: %d class%s of the %s samples (first: %.100s) %s no training samples",
             untrained, untrained == 1 ? "" : "es", judged,
             class_name(info, first_untrained, number), untrained == 1 ? "has" : "have");
    if (untested)
        note(warnings, "data: %d class%s (first: %.100s) %s no %s samples", untested,
             untested == 1 ? "" : "es", class_name(info, first_untested, number),
             untested == 1 ? "has" : "have", judged);
}

static qat_status look_at_classes(const qat_recipe *r, const qat_dataset *train,
                                  const qat_dataset *test, const qat_log *warnings, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(train);
    if (info->has_objects || info->n_targets || !qat_dataset_kind_needs_path(r->data.kind))
        return QAT_OK;
    int *in_train = count_classes(train, info->classes);
    int *in_test = test ? count_classes(test, info->classes) : NULL;
    qat_status st = in_train && (in_test || !test) ? QAT_OK : qat_out_of_memory(err, info->name);
    int present = 0, last = 0;
    for (int c = 0; !st && c < info->classes; c++) {
        present += in_train[c] > 0;
        last = in_train[c] ? c : last;
    }
    if (!st && present < 2)
        st = one_class(r, info, last, err);
    if (!st && test)
        tell_missing(info, in_train, in_test, qat_split_name(test->split), warnings);
    free(in_train);
    free(in_test);
    return st;
}

qat_status qat_recipe_tell_data(const qat_recipe *recipe, const qat_dataset *train,
                                const qat_dataset *test, const qat_log *notes,
                                const qat_log *warnings, qat_error *err)
{
    char *text;
    qat_status st = qat_dataset_describe(train, test, &text, err);
    if (st)
        return st;
    if (notes) {
        char line[2048];
        (void)snprintf(line, sizeof line, "data: %s", text);
        notes->line(notes->context, line);
    }
    free(text);
    return look_at_classes(recipe, train, test, warnings, err);
}

/* ------------------------------------------------------------------ of a run */

/** A warning goes where the run's warnings go. */
static void warn(void *context, const char *text)
{
    const qat_trainer *t = context;
    qat_train_progress const p = {.event = QAT_EVENT_WARNING, .message = text};
    if (t->options->progress)
        t->options->progress(t->options->context, &p);
}

static bool tick(void *context, int64_t done, int64_t total)
{
    const qat_trainer *t = context;
    qat_train_progress const p = {.event = QAT_EVENT_DATA, .done = done, .total = total};
    if (t->options->progress)
        t->options->progress(t->options->context, &p);
    return !t->options->stop || !t->options->stop(t->options->context);
}

/** Pictures that were left out, by name. */
static void tell_faults(const qat_log *log, const char *what, const qat_faults *f)
{
    for (int i = 0; i < f->count && i < QAT_FAULTS_TOLD; i++)
        note(log, "data: %s: %s", what, f->told[i]);
    if (f->count > QAT_FAULTS_TOLD)
        note(log, "data: %s: and %d more", what, f->count - QAT_FAULTS_TOLD);
}

qat_status qat_skip_broken(qat_dataset *data, const qat_data_look *look, qat_error *err)
{
    qat_faults faults;
    qat_status st = qat_dataset_check(data, true, look ? look->tick : NULL,
                                      look ? look->context : NULL, &faults, err);
    if (st)
        return st;
    if (look)
        tell_faults(look->log, "skipped", &faults);
    st = qat_dataset_skip(data, &faults, err);
    qat_faults_free(&faults);
    return st;
}

/** A checkpoint holds them, and a .qm after it. */
static qat_status check_labels(const qat_dataset_info *info, qat_error *err)
{
    for (int i = 0; info->labels && i < info->classes; i++) {
        size_t const n = strlen(info->labels[i]);
        if (n > QAT_LABEL_MAX)
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "%s: the label of class %d has %zu bytes, but a checkpoint holds %d: "
                            "\"%.40s...\"",
                            info->name, i, n, QAT_LABEL_MAX, info->labels[i]);
    }
    return QAT_OK;
}

qat_status qat_trainer_open_data(qat_trainer *t, qat_error *err)
{
    const qat_recipe *r = t->recipe;
    qat_log const warnings = {warn, t};
    qat_data_look const look = {tick, t, t->options->log, false};
    qat_split const judged = r->data.validation > 0 ? QAT_SPLIT_VALIDATION : QAT_SPLIT_TEST;
    qat_status st = qat_open_data_looking(&t->train_data, r, NULL, QAT_SPLIT_TRAIN, &look, err);
    if (!st)
        st = qat_open_data_looking(&t->test_data, r, NULL, judged, &look, err);
    if (!st)
        st = check_labels(qat_dataset_info_of(t->train_data), err);
    if (!st)
        st = qat_recipe_tell_data(r, t->train_data, t->test_data, t->options->log, &warnings, err);
    if (!st)
        st = qat_dataset_digest(t->train_data, &t->digests[QAT_SPLIT_TRAIN], err);
    if (!st)
        st = qat_dataset_digest(t->test_data, &t->digests[QAT_SPLIT_TEST], err);
    return st;
}

/* ------------------------------------------------------------------ every picture */

static qat_status broken(const qat_dataset *d, const qat_faults *f, qat_error *err)
{
    int const count = qat_dataset_info_of(d)->count;
    if (f->count == 1)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%.300s; 1 of %d %ss of %.60s cannot be read (data.skip_broken = yes "
                        "goes on without it)",
                        f->told[0], count, qat_dataset_unit(qat_dataset_info_of(d)),
                        qat_dataset_info_of(d)->name);
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%.280s; %d of %d %ss of %.60s cannot be read (data.skip_broken = yes goes "
                    "on without them)",
                    f->told[0], f->count, count, qat_dataset_unit(qat_dataset_info_of(d)),
                    qat_dataset_info_of(d)->name);
}

static qat_status check_split(qat_trainer *t, qat_split split, bool decode, qat_error *err)
{
    const qat_dataset *d = split == QAT_SPLIT_TRAIN ? t->train_data : t->test_data;
    qat_faults faults;
    qat_status st = qat_dataset_check(d, decode, tick, t, &faults, err);
    if (st)
        return st;
    if (faults.count > 1)
        tell_faults(t->options->log, "cannot be read", &faults);
    if (faults.count)
        st = broken(d, &faults, err);
    qat_faults_free(&faults);
    return st;
}

qat_status qat_trainer_check_pictures(qat_trainer *t, qat_error *err)
{
    qat_check_level const level = (qat_check_level)t->recipe->data.check;
    int64_t const n = t->digests[QAT_SPLIT_TRAIN].count + t->digests[QAT_SPLIT_TEST].count;
    bool const decode =
        level == QAT_CHECK_FULL || (level == QAT_CHECK_AUTO && n <= QAT_CHECK_DECODED_MAX);
    bool const in_files = t->train_data->kind->file != NULL;
    if (!in_files || level == QAT_CHECK_NO || t->recipe->data.skip_broken ||
        (level == QAT_CHECK_AUTO && t->data_checked))
        return QAT_OK;
    qat_status st = check_split(t, QAT_SPLIT_TRAIN, decode, err);
    if (!st)
        st = check_split(t, QAT_SPLIT_TEST, decode, err);
    if (!st)
        note(t->options->log,
             decode ? "data: all %lld %ss can be read"
                    : "data: the first and last bytes of all %lld %ss are whole "
                      "(data.check = full decodes them)",
             (long long)n, qat_dataset_unit(qat_dataset_info_of(t->train_data)));
    return st;
}

/* ------------------------------------------------------------------ the same as before */

qat_status qat_trainer_same_data(qat_trainer *t, const qat_checkpoint *c, qat_error *err)
{
    const qat_dataset *const data[] = {t->train_data, t->test_data};
    if (!c->data[QAT_SPLIT_TRAIN].count)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: an older version of this program began the run, and its log has other "
                        "columns. Start a run in another folder with these weights: train.init "
                        "(qat-train --init)",
                        t->checkpoint_path);
    qat_status const st = qat_dataset_compare(data, t->digests, c->data, err);
    t->data_checked = !st;
    return st;
}

static qat_status copy_digest(qat_data_digest *to, const qat_data_digest *from, qat_error *err)
{
    size_t const bytes = ((size_t)from->n + 1) * sizeof *to->names;
    *to = *from;
    to->names = malloc(bytes);
    to->contents = malloc(bytes);
    if (!to->names || !to->contents) {
        qat_data_digest_free(to);
        return qat_out_of_memory(err, "checkpoint");
    }
    memcpy(to->names, from->names, (size_t)from->n * sizeof *to->names);
    memcpy(to->contents, from->contents, (size_t)from->n * sizeof *to->contents);
    return QAT_OK;
}

qat_status qat_trainer_copy_digests(qat_checkpoint *c, const qat_trainer *t, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int s = 0; !st && s < 2; s++)
        st = copy_digest(&c->data[s], &t->digests[s], err);
    return st;
}
