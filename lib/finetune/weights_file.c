#include "finetune/weights_file.h"

#include "base/files/npz.h"
#include "checkpoint/checkpoint.h"
#include "qat/quantizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool qat_is_quantizer_state(const char *name)
{
    static const char codes[] = "/q/codes"; /* quant_log.c stores them */
    size_t const n = strlen(name), m = sizeof codes - 1;
    return qat_is_range(name) || (n > m && !strcmp(name + n - m, codes));
}

/* ------------------------------------------------------------------ checkpoints */

/** Move the tensors; the checkpoint keeps empty ones. */
static void take_params(qat_weights_file *file, qat_checkpoint *c)
{
    for (int i = 0; i < c->n_params; i++)
        if (!qat_is_quantizer_state(c->params[i].name)) {
            file->tensors[file->count++] = c->params[i];
            c->params[i].values = NULL;
        }
}

static qat_status read_checkpoint(qat_weights_file *file, const char *path, qat_error *err)
{
    qat_checkpoint *c;
    qat_status const st = qat_checkpoint_load(&c, path, err);
    if (st)
        return st;
    qat_checkpoint_swap_averages(c);
    file->tensors = calloc((size_t)c->n_params + 1, sizeof *file->tensors);
    if (file->tensors)
        take_params(file, c);
    qat_checkpoint_free(c);
    return file->tensors ? QAT_OK : qat_out_of_memory(err, path);
}

/* ------------------------------------------------------------------ .npz */

/** PyTorch's count of a batch norm's batches: one int64. */
static bool is_count(const qat_npz_entry *e)
{
    static const char end[] = "num_batches_tracked";
    size_t const n = strlen(e->name), m = sizeof end - 1;
    return n >= m && !strcmp(e->name + n - m, end) && e->array.type == QAT_NPY_I64 &&
           e->array.count == 1;
}

static qat_status check_array(const char *path, const qat_npz_entry *e, qat_error *err)
{
    if (strlen(e->name) >= QAT_NAME_MAX)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s: the name '%.40s...' has %zu characters, but at most %d are possible",
                        path, e->name, strlen(e->name), QAT_NAME_MAX - 1);
    if (is_count(e))
        return QAT_OK;
    if (e->array.type != QAT_NPY_F32 && e->array.type != QAT_NPY_F64)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: array '%s' has type %s; <f4 or <f8 is needed",
                        path, e->name, qat_npy_type_name(e->array.type));
    if (e->array.rank < 1 || e->array.rank > QAT_MAX_RANK)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: array '%s' has rank %d, which is not in 1..%d",
                        path, e->name, e->array.rank, QAT_MAX_RANK);
    for (int i = 0; i < e->array.rank; i++)
        if (e->array.dims[i] < 1 || e->array.dims[i] > INT32_MAX)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: array '%s' has a dimension of %lld", path,
                            e->name, (long long)e->array.dims[i]);
    return QAT_OK;
}

static float value_of(const qat_npy *array, size_t i)
{
    return array->type == QAT_NPY_I64 ? (float)((const int64_t *)array->data)[i]
                                      : (float)((const double *)array->data)[i];
}

/** Take an array: its memory where it is float32, else a copy. The entry keeps no values. */
static qat_status take_array(qat_weights_file *file, const char *path, qat_npz_entry *e,
                             qat_error *err)
{
    qat_named_tensor *t = &file->tensors[file->count];
    int dims[QAT_MAX_RANK];
    qat_status const st = check_array(path, e, err);
    if (st)
        return st;
    for (int i = 0; i < e->array.rank; i++)
        dims[i] = (int)e->array.dims[i];
    t->shape = is_count(e) ? QAT_SHAPE(1) : qat_shape_of(dims, e->array.rank);
    snprintf(t->name, sizeof t->name, "%s", e->name);
    if (e->array.type == QAT_NPY_F32) {
        t->values = e->array.data;
        e->array.data = NULL;
        file->count++;
        return QAT_OK;
    }
    t->values = malloc(e->array.count * sizeof *t->values);
    if (!t->values)
        return qat_out_of_memory(err, path);
    for (size_t i = 0; i < e->array.count; i++)
        t->values[i] = value_of(&e->array, i);
    qat_npy_free(&e->array);
    file->count++;
    return QAT_OK;
}

static qat_status read_npz(qat_weights_file *file, const char *path, uint64_t most, qat_error *err)
{
    qat_npz npz;
    qat_status st = qat_npz_read(&npz, path, most, "data.memory", err);
    if (st)
        return st;
    file->tensors = calloc((size_t)npz.count + 1, sizeof *file->tensors);
    if (!file->tensors)
        st = qat_out_of_memory(err, path);
    for (int i = 0; i < npz.count && !st; i++)
        st = take_array(file, path, &npz.entries[i], err);
    qat_npz_free(&npz);
    return st;
}

/* ------------------------------------------------------------------ both */

enum { START_BYTES = 8 };

/** The first bytes of a file, and 0 behind its end. */
static qat_status read_start(const char *path, uint8_t start[START_BYTES], qat_error *err)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return qat_fail(err, QAT_ERR_IO, "%s: %s", path, strerror(errno));
    size_t const n = fread(start, 1, START_BYTES, file);
    memset(start + n, 0, START_BYTES - n);
    bool const failed = ferror(file) != 0;
    fclose(file);
    return failed ? qat_fail(err, QAT_ERR_IO, "%s: cannot read it", path) : QAT_OK;
}

/** Neither of the two kinds: say what it is, if it is a file of this program. */
static qat_status refuse(const char *path, const uint8_t start[START_BYTES], qat_error *err)
{
    bool const is_qm = !memcmp(start, "\x89QATQM", 6);
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: weights come from a checkpoint or a .npz, but this is %s", path,
                    is_qm ? "a .qm, whose weights are integers" : "neither");
}

qat_status qat_weights_read(qat_weights_file *file, const char *path, uint64_t most, qat_error *err)
{
    uint8_t start[START_BYTES] = {0};
    *file = (qat_weights_file){0};
    qat_status st = read_start(path, start, err);
    bool const checkpoint = qat_checkpoint_magic(start, START_BYTES);
    if (!st && !checkpoint && memcmp(start, "PK", 2))
        st = refuse(path, start, err);
    if (!st)
        st = checkpoint ? read_checkpoint(file, path, err) : read_npz(file, path, most, err);
    file->is_npz = !checkpoint;
    if (st)
        qat_weights_free(file);
    return st;
}

void qat_weights_free(qat_weights_file *file)
{
    for (int i = 0; i < file->count; i++)
        free(file->tensors[i].values);
    free(file->tensors);
    *file = (qat_weights_file){0};
}

const qat_named_tensor *qat_weights_find(const qat_weights_file *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}
