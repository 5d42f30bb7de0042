/**
 * The steps of a job: commands of this project, one after the other. When step NAME has succeeded,
 * its standard output is in DIR/NAME.out, and it is not repeated. Its standard error is in
 * DIR/NAME.log.
 */
#include "tools/common/plugins.h"
#include "tools/sweep/sweep.h"

#include "base/files/file.h"
#include "tools/sweep/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_PLUGINS = 64, /* a checkpoint names no more */
    MOST_ARGUMENTS = 24 + 2 * MOST_PLUGINS
};

/** The command line being built; one at a time. */
typedef struct command_line {
    char text[MOST_ARGUMENTS][SWEEP_PATH_MAX];
    char *argv[MOST_ARGUMENTS + 1];
    int n;
    char output[SWEEP_PATH_MAX], log[SWEEP_PATH_MAX];
} command_line;

static void add(command_line *c, const char *text)
{
    snprintf(c->text[c->n], SWEEP_PATH_MAX, "%s", text);
    c->argv[c->n] = c->text[c->n];
    c->argv[++c->n] = NULL;
}

static void add_file(command_line *c, const char *dir, const char *name)
{
    char path[SWEEP_PATH_MAX];
    snprintf(path, sizeof path, "%.900s/%s", dir, name);
    add(c, path);
}

static void add_number(command_line *c, const char *option, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    add(c, option);
    add(c, text);
}

/** Add a command from the folder in which this program is. */
static void add_tool(command_line *c, const char *name)
{
    char path[SWEEP_PATH_MAX - 32];
    ssize_t const n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    add_file(c, n > 0 ? path : ".", name);
}

static bool is_there(const char *dir, const char *name)
{
    char path[SWEEP_PATH_MAX];
    snprintf(path, sizeof path, "%.900s/%s", dir, name);
    return access(path, F_OK) == 0;
}

qat_status sweep_check_plugins(const char *list, qat_error *err)
{
    char path[SWEEP_PATH_MAX];
    int n = -1;
    qat_status st;
    do {
        st = tool_next_plugin(&list, path, sizeof path, err);
        n++;
    } while (!st && *path);
    return st || n <= MOST_PLUGINS
               ? st
               : qat_fail(err, QAT_ERR_LIMIT, "plugin.path: %d plugins; at most %d", n,
                          MOST_PLUGINS);
}

/** The plugins of the job's recipe, which only training loads by itself. */
static void add_plugins(command_line *c, const sweep_job *job)
{
    char path[SWEEP_PATH_MAX];
    const char *list = job->plugins;
    while (!tool_next_plugin(&list, path, sizeof path, NULL) && *path) {
        add(c, "--plugin");
        add(c, path);
    }
}

/* ------------------------------------------------------------------ steps */

/** Search the bits of a budget, and train nothing. */
static void predict(command_line *c, const sweep *s, const sweep_job *job)
{
    add_tool(c, "qat-train");
    add_file(c, job->dir, "recipe.ini");
    add(c, "--budget");
    add(c, "--dry-run");
    add(c, "--out");
    add(c, job->dir);
    if (s->threads)
        add_number(c, "--threads", s->threads);
}

static void train(command_line *c, const sweep *s, const sweep_job *job)
{
    add_tool(c, "qat-train");
    add_file(c, job->dir, "recipe.ini");
    add(c, "--out");
    add(c, job->dir);
    if (job->budgeted)
        add(c, "--budget");
    if (is_there(job->dir, "last.ckpt"))
        add(c, "--resume");
    if (s->threads)
        add_number(c, "--threads", s->threads);
}

static void export(command_line *c, const sweep *s, const sweep_job *job)
{
    add_tool(c, "qat-export");
    add_file(c, job->dir, "last.ckpt");
    add_file(c, job->dir, "model.qm");
    add_number(c, "--samples", s->verify);
    add(c, "--json");
    add_plugins(c, job);
    if (s->threads)
        add_number(c, "--threads", s->threads);
}

static void evaluate(command_line *c, const sweep *s, const sweep_job *job, const char *file)
{
    add_tool(c, "qat-eval");
    add_file(c, job->dir, file);
    add(c, "--json");
    add_plugins(c, job);
    if (s->threads)
        add_number(c, "--threads", s->threads);
}

static void evaluate_qm(command_line *c, const sweep *s, const sweep_job *job)
{
    evaluate(c, s, job, "model.qm");
    add(c, "--recipe");
    add_file(c, job->dir, "recipe.ini");
}

static void evaluate_checkpoint(command_line *c, const sweep *s, const sweep_job *job)
{
    evaluate(c, s, job, "last.ckpt");
}

static void measure(command_line *c, const sweep *s, const sweep_job *job, const char *file)
{
    add_tool(c, "qat-bench");
    add_file(c, job->dir, file);
    add(c, "--threads");
    add(c, "1,2");
    add(c, "--seconds");
    add(c, s->bench_seconds);
    add(c, "--json");
    add_plugins(c, job);
}

static void bench(command_line *c, const sweep *s, const sweep_job *job)
{
    measure(c, s, job, "model.qm");
}

static void bench_float(command_line *c, const sweep *s, const sweep_job *job)
{
    measure(c, s, job, "last.ckpt");
}

typedef struct step {
    const char *name;
    bool of_models; /* only for jobs with a .qm */
    bool alone;     /* a measurement: it runs while nothing else does */
    void (*build)(command_line *c, const sweep *s, const sweep_job *job);
} step;

/** All that --predict does. */
static const step prediction = {"predict", false, false, predict};

static const step steps[] = {
    {"train", false, false, train},        {"export", true, false, export},
    {"eval-qm", true, false, evaluate_qm}, {"eval", false, false, evaluate_checkpoint},
    {"bench", true, true, bench},          {"bench-float", false, true, bench_float},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

/** The first step of this pass that is not done; NULL: none. */
static const step *next_step(const sweep *s, const sweep_job *job, bool alone)
{
    char file[32];
    if (s->predict)
        return alone || is_there(job->dir, "predict.out") ? NULL : &prediction;
    for (int i = 0; i < STEPS; i++) {
        snprintf(file, sizeof file, "%s.out", steps[i].name);
        if (steps[i].alone == alone && (job->quantized || !steps[i].of_models) &&
            !is_there(job->dir, file))
            return &steps[i];
    }
    return NULL;
}

int sweep_unfinished(const sweep *s)
{
    int n = 0;
    for (int i = 0; i < s->n_jobs; i++)
        n += next_step(s, &s->jobs[i], false) || (s->bench && next_step(s, &s->jobs[i], true));
    return n;
}

/* ------------------------------------------------------------------ a pass over all jobs */

typedef struct pass {
    sweep *s;
    bool alone;
    command_line line;
    qat_error err; /* of a job that could not be started */
} pass;

static qat_status begin(const sweep_job *job, qat_error *err)
{
    char path[SWEEP_PATH_MAX];
    if (is_there(job->dir, "recipe.ini"))
        return QAT_OK;
    snprintf(path, sizeof path, "%.900s/recipe.ini", job->dir);
    qat_status const st = qat_make_dirs(job->dir, err);
    return st ? st : qat_file_write_atomic(path, job->recipe, strlen(job->recipe), err);
}

static bool next(void *context, int index, qat_command *command)
{
    pass *p = context;
    sweep_job *job = &p->s->jobs[index];
    const step *todo = job->failed ? NULL : next_step(p->s, job, p->alone);
    if (!todo)
        return false;
    if (begin(job, &p->err)) {
        fprintf(stderr, "qat-sweep: %s\n", tool_shown(p->err.message));
        job->failed = true;
        return false;
    }
    p->line.n = 0;
    todo->build(&p->line, p->s, job);
    snprintf(p->line.output, SWEEP_PATH_MAX, "%.900s/%s.part", job->dir, todo->name);
    snprintf(p->line.log, SWEEP_PATH_MAX, "%.900s/%s.log", job->dir, todo->name);
    *command = (qat_command){p->line.argv, p->line.output, p->line.log};
    fprintf(stderr, "%d/%d %s: %s\n", index + 1, p->s->n_jobs, job->dir, todo->name);
    return true;
}

/** Print the last lines of the log. */
static void show_log(const char *path)
{
    char text[1500] = "";
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    if (fseek(f, -(long)sizeof text + 1, SEEK_END))
        rewind(f);
    size_t const n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    fprintf(stderr, "%s", text);
}

static bool ended(void *context, int index, int status)
{
    pass *p = context;
    sweep_job *job = &p->s->jobs[index];
    const step *done = next_step(p->s, job, p->alone);
    char part[SWEEP_PATH_MAX], path[SWEEP_PATH_MAX];
    snprintf(part, sizeof part, "%.900s/%s.part", job->dir, done->name);
    snprintf(path, sizeof path, "%.900s/%s.%s", job->dir, done->name, status ? "log" : "out");
    if (status == 0 && !qat_file_move(part, path, &p->err))
        return true;
    job->failed = true;
    if (status == 0) {
        fprintf(stderr, "qat-sweep: %s\n", p->err.message);
        return false;
    }
    (void)unlink(part); /* what the command printed until it failed */
    show_log(path);
    fprintf(stderr, "qat-sweep: %s: %s failed with status %d; see %s\n", job->dir, done->name,
            status, path);
    return false;
}

static qat_status run_pass(pass *p, int slots, bool *stopped, qat_error *err)
{
    qat_pool const pool = {slots, p->s->n_jobs, p, next, ended};
    return qat_pool_run(&pool, stopped, err);
}

qat_status sweep_run(sweep *s, int *failed, bool *stopped, qat_error *err)
{
    pass *p = calloc(1, sizeof *p);
    if (!p)
        return qat_out_of_memory(err, "a command line");
    p->s = s;
    qat_status st = run_pass(p, s->slots, stopped, err);
    p->alone = true;
    if (!st && !*stopped && s->bench)
        st = run_pass(p, 1, stopped, err);
    *failed = 0;
    for (int i = 0; i < s->n_jobs; i++)
        *failed += s->jobs[i].failed;
    free(p);
    return st;
}
