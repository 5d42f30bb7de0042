/**
 * A pair of NumPy arrays per split: {train,test}_x.npy and {train,test}_y.npy (or .npy.gz).
 *
 *     x  [N, L]        a signal of one channel      height 1, width L, channels 1
 *        [N, W, C]     a signal                     height 1
 *        [N, H, W, C]  pictures
 *        u8: pixels; f32, f64, i8, i16: real values (as float32)
 *     y  [N]           labels, any integer type
 *        [N, K]        labels that may occur together: 0 or 1, any integer type
 *        [N, ...]      real values, f32 or f64, of any shape; NaN: not known
 */
#include "base/files/npy.h"
#include "datasets/dataset_kind.h"
#include "datasets/readers/files.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MAX_LABELS = 65536 };

static qat_status x_shape(const char *path, const qat_npy *x, int64_t hwc[3], qat_error *err)
{
    if (x->rank < 2 || x->rank > 4)
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%s: rank %d, expected 2 [N, L], 3 [N, W, C] or 4 [N, H, W, C]", path,
                        x->rank);
    hwc[0] = x->rank == 4 ? x->dims[1] : 1;
    hwc[1] = x->rank == 2 ? x->dims[1] : x->dims[x->rank - 2];
    hwc[2] = x->rank == 2 ? 1 : x->dims[x->rank - 1];
    return QAT_OK;
}

/** Item i as float32; i8 and i16 are exact, f64 is rounded. */
static float real_at(const qat_npy *x, size_t i)
{
    switch (x->type) {
    case QAT_NPY_F32:
        return ((const float *)x->data)[i];
    case QAT_NPY_F64:
        return (float)((const double *)x->data)[i];
    case QAT_NPY_I8:
        return ((const int8_t *)x->data)[i];
    default:
        return ((const int16_t *)x->data)[i];
    }
}

/** Convert all values and find their range. A value that is not finite is an error. */
static qat_status keep_real(qat_dataset *dataset, const char *path, const qat_npy *x,
                            qat_error *err)
{
    size_t const each = dataset->sample_bytes / sizeof(float);
    size_t const count = each * (size_t)dataset->info.count;
    float *values = dataset->values;
    float least = real_at(x, 0), most = least;
    for (size_t i = 0; i < count; i++) {
        float const v = real_at(x, i);
        if (!isfinite(v))
            return qat_fail(err, QAT_ERR_NUMERIC, "%s: value %zu of sample %zu is %g", path,
                            i % each, i / each, (double)v);
        least = v < least ? v : least;
        most = v > most ? v : most;
        values[i] = v;
    }
    dataset->info.min = least;
    dataset->info.max = most;
    return QAT_OK;
}

static int64_t label_at(const void *labels, int64_t index)
{
    const qat_npy *y = labels;
    switch (y->type) {
    case QAT_NPY_U8:
        return ((const uint8_t *)y->data)[index];
    case QAT_NPY_I8:
        return ((const int8_t *)y->data)[index];
    case QAT_NPY_I16:
        return ((const int16_t *)y->data)[index];
    case QAT_NPY_I32:
        return ((const int32_t *)y->data)[index];
    default:
        return ((const int64_t *)y->data)[index];
    }
}

static qat_status check_x(qat_dataset *dataset, const char *path, const qat_npy *x, qat_error *err)
{
    int64_t hwc[3];
    bool const bytes = x->type == QAT_NPY_U8;
    if (x->type == QAT_NPY_I32 || x->type == QAT_NPY_I64)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "%s: type %s, expected |u1 (pixels) or <f4 <f8 |i1 <i2 (real values)", path,
                        qat_npy_type_name(x->type));
    qat_status st = x_shape(path, x, hwc, err);
    if (!st)
        st = qat_dataset_set_shape(dataset, path, x->dims[0], hwc,
                                   bytes ? QAT_SAMPLE_U8 : QAT_SAMPLE_F32, err);
    return st;
}

static bool is_real(const qat_npy *y)
{
    return y->type == QAT_NPY_F32 || y->type == QAT_NPY_F64;
}

/** Keep real values as targets. */
static qat_status keep_targets(qat_dataset *dataset, const char *path, const qat_npy *y,
                               qat_error *err)
{
    size_t const each = (size_t)y->count / (size_t)y->dims[0];
    qat_status const st = qat_dataset_allocate_values(dataset, QAT_TARGETS_VALUES, each, err);
    for (size_t i = 0; !st && i < (size_t)dataset->info.count * each; i++) {
        float const v = real_at(y, i);
        if (isinf(v))
            return qat_fail(err, QAT_ERR_NUMERIC, "%s: value %zu of sample %zu is infinite", path,
                            i % each, i / each);
        dataset->targets[i] = v;
        if (i % each == 0)
            dataset->labels[i / each] = 0;
    }
    return st;
}

static bool are_labels(const qat_npy *y)
{
    return !is_real(y) && y->rank == 2;
}

/** Keep labels that may occur together as targets. */
static qat_status keep_labels(qat_dataset *dataset, const char *path, const qat_npy *y,
                              qat_error *err)
{
    size_t const each = (size_t)y->dims[1];
    qat_status st = qat_dataset_allocate_values(dataset, QAT_TARGETS_LABELS, each, err);
    for (size_t i = 0; !st && i < (size_t)dataset->info.count * each; i++) {
        int64_t const v = label_at(y, (int64_t)i);
        if (v < 0 || v > 1)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: label %zu of sample %zu is %lld, not 0 or 1",
                            path, i % each, i / each, (long long)v);
        dataset->targets[i] = (float)v;
        dataset->labels[i / each] = 0;
    }
    return st;
}

static qat_status check_y(qat_dataset *dataset, const char *path, const qat_npy *y,
                          const char *x_path, int classes, qat_error *err)
{
    if (y->rank < 1 || (!is_real(y) && y->rank > 2))
        return qat_fail(err, QAT_ERR_SHAPE, "%s: rank %d, labels must have rank 1 or 2", path,
                        y->rank);
    if (y->dims[0] != dataset->info.count)
        return qat_fail(err, QAT_ERR_FORMAT, "%s holds %lld labels, but %s holds %d samples", path,
                        (long long)y->dims[0], x_path, dataset->info.count);
    if (are_labels(y) && (y->dims[1] < 1 || y->dims[1] > MAX_LABELS))
        return qat_fail(err, QAT_ERR_SHAPE, "%s: %lld labels of a sample, not in 1..%d", path,
                        (long long)y->dims[1], MAX_LABELS);
    if (are_labels(y))
        dataset->info.classes = (int)y->dims[1];
    if (is_real(y) || are_labels(y))
        return QAT_OK;
    return qat_dataset_set_classes(dataset, path, y, label_at, y->dims[0], classes, err);
}

static qat_status keep(qat_dataset *dataset, const char *path, const qat_npy *x, const char *y_path,
                       const qat_npy *y, int limit, qat_error *err)
{
    dataset->info.count = qat_dataset_limit(dataset->info.count, limit);
    qat_status st = qat_dataset_allocate(dataset, err);
    if (st)
        return st;
    for (int i = 0; y->rank == 1 && !is_real(y) && i < dataset->info.count; i++)
        dataset->labels[i] = (int32_t)label_at(y, i);
    if (is_real(y))
        st = keep_targets(dataset, y_path, y, err);
    else if (are_labels(y))
        st = keep_labels(dataset, y_path, y, err);
    if (st)
        return st;
    if (dataset->info.type == QAT_SAMPLE_F32)
        return keep_real(dataset, path, x, err);
    memcpy(dataset->values, x->data, dataset->sample_bytes * (size_t)dataset->info.count);
    return QAT_OK;
}

/** Is folder/name there, packed or not? */
static bool is_there(qat_dataset *dataset, const char *folder, const char *name)
{
    const char *path;
    return qat_dataset_find(dataset, folder, name, &path, NULL) == QAT_OK;
}

/** The names of a split's two files. */
static qat_status name_files(qat_dataset *dataset, const qat_dataset_options *o, qat_split split,
                             const char **x, const char **y, qat_error *err)
{
    bool const train = split == QAT_SPLIT_TRAIN, whole = o->split > 0;
    bool const has_test = (whole || !train) && is_there(dataset, o->path, "test_x.npy");
    *x = train ? "train_x.npy" : "test_x.npy";
    *y = train ? "train_y.npy" : "test_y.npy";
    if (whole && has_test)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s/test_x.npy is there already: data.split would make another test split",
                        o->path);
    if (whole && is_there(dataset, o->path, "x.npy")) {
        *x = "x.npy";
        *y = "y.npy";
    }
    if (!train && !has_test && is_there(dataset, o->path, "train_x.npy"))
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: no test_x.npy; data.split = 0.8 trains on 80 %% of train_x.npy and "
                        "tests on the rest",
                        o->path);
    return QAT_OK;
}

static uint64_t array_bytes(const qat_npy *array)
{
    return array->data ? (uint64_t)array->count * qat_npy_item_bytes(array->type) : 0;
}

/** Read an array within what the data may still take, and hold it. */
static qat_status read_array(qat_dataset *dataset, qat_npy *array, const char *path, qat_error *err)
{
    uint64_t const left = dataset->memory - dataset->held;
    qat_status const st = qat_npy_read_within(
        array, path, left, "data.memory; --max-memory where there is no recipe", err);
    return st ? st : qat_dataset_hold(dataset, path, array_bytes(array), err);
}

static qat_status npy_open(qat_dataset *dataset, const qat_dataset_options *options,
                           qat_split split, qat_error *err)
{
    const char *x_name, *y_name, *x_path = NULL, *y_path = NULL;
    qat_npy x = {0}, y = {0};
    qat_status st = name_files(dataset, options, split, &x_name, &y_name, err);
    if (!st)
        st = qat_dataset_find(dataset, options->path, x_name, &x_path, err);
    if (!st)
        st = qat_dataset_find(dataset, options->path, y_name, &y_path, err);
    if (!st)
        st = read_array(dataset, &x, x_path, err);
    if (!st)
        st = read_array(dataset, &y, y_path, err);
    if (!st)
        st = check_x(dataset, x_path, &x, err);
    if (!st)
        st = check_y(dataset, y_path, &y, x_path, options->classes, err);
    if (!st)
        st = keep(dataset, x_path, &x, y_path, &y, qat_split_count(options, split), err);
    if (!st && !is_real(&y))
        st = qat_files_class_names(dataset, options->path, "classes.txt", err);
    qat_dataset_release(dataset, array_bytes(&x) + array_bytes(&y));
    qat_npy_free(&x);
    qat_npy_free(&y);
    return st;
}

const qat_dataset_kind qat_kind_npy = {.name = "npy",
                                       .needs_path = true,
                                       .splits = true,
                                       .open = npy_open,
                                       .get = qat_dataset_get_kept};
