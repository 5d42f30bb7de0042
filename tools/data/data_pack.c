/** qat-data pack. */
#include "tools/data/data.h"

#include "base/words.h"

#include <stdio.h>

static bool tick(void *context, int64_t done, int64_t total)
{
    (void)context;
    return tool_tick("packing", done, total);
}

static void tell_broken(void *context, const char *message)
{
    (void)context;
    tool_bar_clear();
    fprintf(stderr, "left out: %s\n", tool_shown(message));
}

qat_status data_pack(const data_source *s, const qat_pack_options *options, qat_error *err)
{
    static const char *const names[] = {"train", "val"};
    const qat_dataset *const splits[] = {s->splits[0], s->splits[1]};
    qat_pack_options o = *options;
    qat_pack_report report;
    double const start = tool_now();
    o.tick = tick;
    o.broken = tell_broken;
    qat_status const st = qat_dataset_pack(splits, &o, &report, err);
    tool_bar_clear();
    if (st)
        return st;
    for (int i = 0; i < 2; i++) {
        if (!splits[i])
            continue;
        printf("%s: %lld pictures in %d shard%s of %llu bytes together", names[i],
               (long long)report.samples[i], report.shards[i], qat_plural(report.shards[i]),
               (unsigned long long)report.bytes[i]);
        if (report.skipped[i])
            printf("; %lld left out, which cannot be read", (long long)report.skipped[i]);
        printf("\n");
    }
    printf("packed in %.1f s; a recipe reads this with data.kind = tar, data.path = %s\n",
           tool_now() - start, tool_shown(o.folder));
    return QAT_OK;
}
