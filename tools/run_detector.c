#include "run_detector.h"

#include "base/npy.h"

#include <stdio.h>

qat_status run_detector_write(const qat_detections *found, int i, const char *path, qat_error *err)
{
    float const count = (float)found->found;
    const float *const values[DETECTOR_OUTPUTS] = {found->boxes, found->classes, found->scores,
                                                   &count};
    static const int ranks[DETECTOR_OUTPUTS] = {3, 2, 2, 1};
    int64_t const dims[] = {1, found->rows, 4};
    return qat_npy_write(path, QAT_NPY_F32, ranks[i], dims, values[i], err);
}

qat_status run_detector_dump(const qat_detections *found, const char *dir, qat_error *err)
{
    static const char *const names[DETECTOR_OUTPUTS] = {"boxes", "classes", "scores", "count"};
    qat_status st = QAT_OK;
    for (int i = 0; i < DETECTOR_OUTPUTS && !st; i++) {
        char path[1024];
        int const source = found->source_index[i];
        int const n = source < 0 ? snprintf(path, sizeof path, "%s/%s.npy", dir, names[i])
                                 : snprintf(path, sizeof path, "%s/t%d.npy", dir, source);
        if (n < 0 || (size_t)n >= sizeof path)
            return qat_fail(err, QAT_ERR_ARGUMENT, "%s: the path is too long", dir);
        st = run_detector_write(found, i, path, err);
    }
    return st;
}

static const char *label_of(const qat_detections *found, const qi_model *model, int class)
{
    int const line = class + found->label_offset;
    return line < (int)qi_label_count(model) ? qi_label_at(model, line) : "";
}

static bool shown(const qat_detections *found, int i, double least)
{
    return found->used[i] && (double)found->scores[i] >= least;
}

static void print_json(const qat_detections *found, const qi_model *model, double least,
                       const char *name)
{
    printf("{\"input\": ");
    tool_json_string(name);
    printf(", \"found\": [");
    for (int i = 0, n = 0; i < found->rows; i++) {
        const float *box = found->boxes + 4 * (size_t)i;
        if (!shown(found, i, least))
            continue;
        printf("%s{\"class\": %d, \"label\": ", n++ ? ", " : "", (int)found->classes[i]);
        tool_json_string(label_of(found, model, (int)found->classes[i]));
        printf(", \"score\": %.9g, \"box\": [%.9g, %.9g, %.9g, %.9g]}", (double)found->scores[i],
               (double)box[0], (double)box[1], (double)box[2], (double)box[3]);
    }
    printf("]}\n");
}

void run_detector_print(const qat_detections *found, const qi_model *model, double least,
                        const char *name, bool json)
{
    if (json) {
        print_json(found, model, least, name);
        return;
    }
    printf("%s:\n", tool_shown(name));
    for (int i = 0; i < found->rows; i++) {
        const float *box = found->boxes + 4 * (size_t)i;
        if (!shown(found, i, least))
            continue;
        printf("  %.3f  class %d %s  rows %.3f..%.3f, columns %.3f..%.3f of the picture\n",
               (double)found->scores[i], (int)found->classes[i],
               tool_shown(label_of(found, model, (int)found->classes[i])), (double)box[0],
               (double)box[2], (double)box[1], (double)box[3]);
    }
}
