/** The jobs of a sweep. Each has a folder, which holds the recipe that it was started with. */
#include "tools/sweep/sweep.h"

#include "base/files/file.h"
#include "tools/sweep/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

void sweep_free(sweep *s)
{
    for (int i = 0; s->jobs && i < s->n_jobs; i++) {
        free(s->jobs[i].dir);
        free(s->jobs[i].recipe);
        free(s->jobs[i].plugins);
    }
    free(s->jobs);
    qat_sweep_grid_free(&s->grid);
}

qat_status sweep_lock(const char *out, qat_error *err)
{
    char path[SWEEP_PATH_MAX];
    snprintf(path, sizeof path, "%.1000s/lock", out);
    int const file = open(path, O_RDWR | O_CREAT, 0666); /* the started commands inherit it */
    if (file < 0)
        return qat_fail(err, QAT_ERR_IO, "%.400s: %s", path, strerror(errno));
    if (flock(file, LOCK_EX | LOCK_NB))
        return qat_fail(err, QAT_ERR_STATE, "another qat-sweep is working in %.400s", out);
    return QAT_OK;
}

/* ------------------------------------------------------------------ recipes */

/** The settings of the cell as "key=value", and the seed. */
static int settings_of(const sweep *s, int job, char **sets)
{
    int const cell = job / s->seeds;
    int n = 0;
    for (int i = 1; i <= s->grid.n_axes; i++) {
        bool const seed = i == s->grid.n_axes;
        const char *key = seed ? "train.seed" : s->grid.axes[i].key;
        char number[16];
        snprintf(number, sizeof number, "%d", job % s->seeds + 1);
        const char *value = seed ? number : qat_sweep_grid_value(&s->grid, cell, i);
        size_t const size = strlen(key) + strlen(value) + 2;
        sets[n] = malloc(size);
        if (!sets[n])
            break;
        snprintf(sets[n++], size, "%s=%s", key, value);
    }
    return n;
}

/**
 * Why a recipe could not be read. QAT_ERR_ARGUMENT if it can be read without the settings: then
 * they are the cause.
 */
static qat_status blame(const char *path, qat_status st)
{
    qat_recipe *plain = NULL;
    bool const readable = !qat_recipe_load(&plain, path, NULL, 0, NULL);
    qat_recipe_free(plain);
    return readable ? QAT_ERR_ARGUMENT : st == QAT_ERR_ARGUMENT ? QAT_ERR_FORMAT : st;
}

static qat_status load_recipe(const sweep *s, int job, qat_recipe **recipe, qat_error *err)
{
    char *sets[QAT_SWEEP_MAX_AXES];
    const char *path = qat_sweep_grid_value(&s->grid, job / s->seeds, 0);
    int const n = settings_of(s, job, sets);
    qat_status st = n < s->grid.n_axes ? qat_out_of_memory(err, "settings") : QAT_OK;
    if (!st && qat_recipe_load(recipe, path, (const char *const *)sets, n, err))
        st = blame(path, err->status);
    for (int i = 0; i < n; i++)
        free(sets[i]);
    return st;
}

/** A folder that was started holds its recipe. Refuse it if that recipe gives another run. */
static qat_status check_begun(const sweep_job *job, const qat_recipe *now, qat_error *err)
{
    char path[SWEEP_PATH_MAX];
    qat_recipe *then = NULL;
    qat_error why;
    snprintf(path, sizeof path, "%.1000s/recipe.ini", job->dir);
    if (access(path, F_OK))
        return QAT_OK;
    qat_status st = qat_recipe_load(&then, path, NULL, 0, err);
    if (!st && qat_recipe_same_run(then, now, &why))
        st = qat_fail(err, QAT_ERR_STATE,
                      "%.150s was started with other settings (%.200s); use another --out, or "
                      "remove that folder",
                      job->dir, why.message);
    qat_recipe_free(then);
    return st;
}

static qat_status prepare_job(sweep *s, int index, qat_error *err)
{
    char name[QAT_SWEEP_NAME_MAX], dir[SWEEP_PATH_MAX], plugins[QAT_RECIPE_VALUE_MAX];
    sweep_job *job = &s->jobs[index];
    qat_recipe *recipe = NULL;
    qat_status st = qat_sweep_grid_name(&s->grid, index / s->seeds, name, err);
    if (!st)
        st = load_recipe(s, index, &recipe, err);
    if (st)
        return st;
    snprintf(dir, sizeof dir, "%.700s/%s/seed-%d", s->out, name, index % s->seeds + 1);
    job->dir = strdup(dir);
    job->quantized = qat_recipe_number(recipe, "quant.enabled") != 0;
    job->budgeted = qat_recipe_number(recipe, "budget.flash") > 0 ||
                    qat_recipe_number(recipe, "budget.ram") > 0 ||
                    qat_recipe_number(recipe, "budget.macs_bits") > 0;
    job->plugins = strdup(qat_recipe_get(recipe, "plugin.path", plugins));
    st = job->dir && job->plugins ? sweep_check_plugins(job->plugins, err)
                                  : qat_out_of_memory(err, dir);
    if (!st)
        st = check_begun(job, recipe, err);
    if (!st && s->predict && !job->budgeted)
        st = qat_fail(err, QAT_ERR_ARGUMENT, "--predict: %.100s has no budget: set budget.flash",
                      name);
    if (!st)
        st = qat_recipe_write(recipe, &job->recipe, err);
    qat_recipe_free(recipe);
    return st;
}

qat_status sweep_prepare(sweep *s, qat_error *err)
{
    s->n_jobs = qat_sweep_grid_cells(&s->grid) * s->seeds;
    s->jobs = calloc((size_t)s->n_jobs, sizeof *s->jobs);
    qat_status st =
        s->jobs ? qat_sweep_grid_check_names(&s->grid, err) : qat_out_of_memory(err, "jobs");
    for (int i = 0; i < s->n_jobs && !st; i++)
        st = prepare_job(s, i, err);
    return st;
}
