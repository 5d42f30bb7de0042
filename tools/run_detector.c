#include "tools/run_detector.h"

#include "base/files/npy.h"

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
