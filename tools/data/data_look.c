/** qat-data list, check. */
#include "tools/data/data.h"

#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const split_names[] = {"training", "test"};

qat_status data_list(const data_source *s, qat_error *err)
{
    const qat_dataset *first = s->splits[0] ? s->splits[0] : s->splits[1];
    char *text = NULL;
    qat_status st = qat_dataset_describe(first, s->splits[0] ? s->splits[1] : NULL, &text, err);
    if (!st)
        printf("%s\n", tool_shown(text));
    free(text);
    for (int i = 0; !st && i < 2; i++) {
        qat_data_digest digest;
        if (!s->splits[i])
            continue;
        st = qat_dataset_digest(s->splits[i], &digest, err);
        if (st)
            break;
        if (digest.n)
            printf("%s: %lld bytes, %.0f a %s\n", split_names[i], (long long)digest.bytes,
                   (double)digest.bytes / (double)digest.count,
                   qat_dataset_unit(qat_dataset_info_of(s->splits[i])));
        qat_data_digest_free(&digest);
    }
    return st;
}

/** Name the samples that cannot be read: to read them again says why. */
static qat_status name_faults(const qat_dataset *d, const qat_faults *faults, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(d);
    void *values =
        malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels * sizeof(float));
    if (!values)
        return qat_out_of_memory(err, info->name);
    for (int i = 0; i < faults->count; i++) {
        qat_error why = {0};
        int label;
        if (qat_dataset_get(d, faults->samples[i], values, &label, &why))
            printf("broken: %s\n", tool_shown(why.message));
    }
    free(values);
    return QAT_OK;
}

static qat_status check_split(const qat_dataset *d, const char *name, int *broken, qat_error *err)
{
    qat_faults faults;
    int const count = qat_dataset_info_of(d)->count;
    const char *unit = qat_dataset_unit(qat_dataset_info_of(d));
    double const start = tool_now();
    qat_status st = qat_dataset_check(d, true, tool_tick, (void *)name, &faults, err);
    if (st)
        return st;
    double const seconds = tool_now() - start;
    st = name_faults(d, &faults, err);
    printf("%s: %d %s%s, %d broken", name, count, unit, qat_plural(count), faults.count);
    if (faults.height[1])
        printf("; %d x %d to %d x %d pixels (height x width), %.0f %ss/s", faults.height[0],
               faults.width[0], faults.height[1], faults.width[1],
               count / (seconds > 0 ? seconds : 1), unit);
    printf("\n");
    *broken += faults.count;
    qat_faults_free(&faults);
    return st;
}

qat_status data_check(const data_source *s, int *broken, qat_error *err)
{
    qat_status st = QAT_OK;
    *broken = 0;
    for (int i = 0; !st && i < 2; i++)
        st = s->splits[i] ? check_split(s->splits[i], split_names[i], broken, err) : QAT_OK;
    return st;
}
