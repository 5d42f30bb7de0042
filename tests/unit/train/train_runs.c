#include "unit/train/train_runs.h"

#include "base/files/file.h"
#include "checkpoint/restore.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Two epochs of eight steps on drawn digits. */
const char small[] = "[data]\nkind = digits\ntrain_count = 128\ntest_count = 60\n"
                     "flip = yes\ncrop_pad = 2\n"
                     "[model]\nfilters = 4, 8\nstrides = 2\ndropout = 0.2\n"
                     "[train]\nepochs = 2\nbatch = 16\nlr = 0.05\nlog_every = 1\n"
                     "[quant]\nema_decay = 0.9\n";

qat_recipe *recipe_with(const char *const *sets, int n)
{
    qat_recipe *r;
    qat_error err;
    ck_assert_msg(qat_recipe_parse(&r, small, "small.ini", sets, n, &err) == QAT_OK, "%s",
                  err.message);
    return r;
}

char *dir_of(char *path, const char *name)
{
    return test_temp_path(path, folder, name);
}

bool at_step(void *context)
{
    const int *left = context;
    return *left == 0;
}

void count_steps(void *context, const qat_train_progress *p)
{
    int *left = context;
    *left -= p->event == QAT_EVENT_STEP;
}

qat_status train_with(const char *name, const char *const *sets, int n, int stop, bool resume,
                      qat_error *err)
{
    char dir[TEST_PATH_MAX];
    qat_recipe *r = recipe_with(sets, n);
    stop = stop ? stop : -1;
    qat_train_options const o = {.dir = dir_of(dir, name),
                                 .resume = resume,
                                 .progress = count_steps,
                                 .stop = at_step,
                                 .context = &stop};
    qat_train_result result;
    qat_status const st = qat_train(r, &o, &result, err);
    qat_recipe_free(r);
    return st;
}

qat_status train(const char *name, const char *set, int stop, bool resume, qat_error *err)
{
    return train_with(name, &set, set != NULL, stop, resume, err);
}

void must_train_with(const char *name, const char *const *sets, int n, int stop, bool resume)
{
    qat_error err;
    ck_assert_msg(train_with(name, sets, n, stop, resume, &err) == QAT_OK, "%s", err.message);
}

void must_train(const char *name, const char *set, int stop, bool resume)
{
    must_train_with(name, &set, set != NULL, stop, resume);
}

/** A file of a run; free() it. */
static uint8_t *file_of(const char *name, const char *file, size_t *count)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    uint8_t *bytes;
    qat_error err;
    dir_of(dir, name);
    test_temp_path(path, dir, file);
    ck_assert_msg(qat_file_read(path, 1 << 24, &bytes, count, &err) == QAT_OK, "%s", err.message);
    return bytes;
}

char *log_of(const char *name)
{
    size_t count;
    return (char *)file_of(name, "log.csv", &count);
}

void same_files(const char *a, const char *b, const char *file)
{
    size_t n, m;
    uint8_t *x = file_of(a, file, &n), *y = file_of(b, file, &m);
    ck_assert_uint_eq(n, m);
    ck_assert_mem_eq(x, y, n);
    free(x);
    free(y);
}

qat_checkpoint *checkpoint_of(const char *name)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_checkpoint *c;
    qat_error err;
    dir_of(dir, name);
    test_temp_path(path, dir, "last.ckpt");
    ck_assert_msg(qat_checkpoint_load(&c, path, &err) == QAT_OK, "%s", err.message);
    return c;
}

void same_logs(const char *a, const char *b)
{
    char *x = log_of(a), *y = log_of(b);
    ck_assert_str_eq(x, y);
    free(x);
    free(y);
}

static void same_tensors(const qat_named_tensor *a, int n, const qat_named_tensor *b, int m)
{
    ck_assert_int_eq(n, m);
    for (int i = 0; i < n; i++) {
        ck_assert_str_eq(a[i].name, b[i].name);
        ck_assert_mem_eq(a[i].values, b[i].values, qat_shape_count(&a[i].shape) * sizeof(float));
    }
}

void same_checkpoints(const char *a, const char *b)
{
    qat_checkpoint *x = checkpoint_of(a), *y = checkpoint_of(b);
    ck_assert_int_eq(x->step, y->step);
    same_tensors(x->params, x->n_params, y->params, y->n_params);
    same_tensors(x->slots, x->n_slot_tensors, y->slots, y->n_slot_tensors);
    qat_checkpoint_free(x);
    qat_checkpoint_free(y);
}

qat_restored *restored(const char *name)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    qat_restored *r;
    qat_error err;
    dir_of(dir, name);
    test_temp_path(path, dir, "last.ckpt");
    ck_assert_msg(qat_restore(&r, path, NULL, 0, &err) == QAT_OK, "%s", err.message);
    return r;
}
