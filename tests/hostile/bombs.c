/**
 * bombs write DIR              writes small files that ask for much memory or work
 * bombs run SECONDS MIB CMD..  runs a command; exits with its status, or with 99 and a sentence if
 * it took more seconds of processor time, or more MiB of memory at its peak bombs graph CKPT OUT A
 * B     copies a checkpoint with B in place of A in the text of its graph
 */
#define _DEFAULT_SOURCE /* wait4 */
#include "hostile/bombs.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "qat/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXCEEDED = 99, FAILED = 98 };

void bomb_write(const char *dir, const char *name, const void *bytes, size_t count)
{
    char path[4096];
    qat_error err;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    qat_status st = qat_make_dirs(path, &err);
    *slash = '/';
    if (!st)
        st = qat_file_write_atomic(path, bytes, count, &err);
    if (st) {
        fprintf(stderr, "bombs: %s\n", err.message);
        exit(FAILED);
    }
}

static double seconds_of(const struct rusage *use)
{
    return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
           1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

static int run(double seconds, long mib, char **command)
{
    struct rusage use;
    int status;
    pid_t const child = fork();
    if (child == 0) {
        execvp(command[0], command);
        _exit(FAILED);
    }
    if (child < 0 || wait4(child, &status, 0, &use) < 0)
        return FAILED;
    fprintf(stderr, "\n(%.1f s, %ld MiB)\n", seconds_of(&use), use.ru_maxrss / 1024);
    if (seconds_of(&use) > seconds || use.ru_maxrss / 1024 > mib) {
        fprintf(stderr, "more than %.0f s or %ld MiB\n", seconds, mib);
        return EXCEEDED;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

/** The text with `to` in place of every `from`; free() it. */
static char *replaced(const char *text, const char *from, const char *to)
{
    qat_writer w = {0};
    for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
        qat_write_bytes(&w, text, (size_t)(at - text));
        qat_write_bytes(&w, to, strlen(to));
    }
    qat_write_bytes(&w, text, strlen(text) + 1);
    return (char *)w.bytes;
}

static int change_graph(char **arguments)
{
    qat_checkpoint *c = NULL;
    qat_error err;
    qat_status st = qat_checkpoint_load(&c, arguments[0], &err);
    if (!st) {
        char *graph = replaced(c->graph, arguments[2], arguments[3]);
        free(c->graph);
        c->graph = graph;
        st = qat_checkpoint_save(c, arguments[1], &err);
    }
    if (st)
        fprintf(stderr, "bombs: %s\n", err.message);
    qat_checkpoint_free(c);
    return st ? FAILED : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "write")) {
        bomb_models(argv[2]);
        bomb_archives(argv[2]);
        return 0;
    }
    if (argc > 4 && !strcmp(argv[1], "run"))
        return run(atof(argv[2]), atol(argv[3]), argv + 4);
    if (argc == 6 && !strcmp(argv[1], "graph"))
        return change_graph(argv + 2);
    fprintf(stderr, "usage: bombs write DIR | run SECONDS MIB COMMAND... | graph CKPT OUT A B\n");
    return FAILED;
}
