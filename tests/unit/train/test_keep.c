/**
 * Which checkpoints are kept does not depend on kills, stops and full disks: a run is killed before
 * each rename and link, stopped after each step, and cannot write for a while; its folder then
 * equals an undisturbed run's.
 */
#include "base/files/file.h"
#include "common/suite.h"
#include "train/log/run_folder.h"
#include "unit/train/train_runs.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FILES = 32 };

/* ------------------------------------------------------------------ calls that kill, or fail */

/* Given by the linker's --wrap. */
int __real_rename(const char *from, const char *to);
int __real_link(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);

static long kill_after = -1; /* calls until the process is killed; -1: never */
static long fail_from,
    fail_to;                 /* calls for last.ckpt of these numbers fail, and the ones between */
static long writes;          /* of last.ckpt, also failed ones */
static const char *full_for; /* the file that can never be written */

static void count_down(void)
{
    if (kill_after >= 0 && kill_after-- == 0)
        raise(SIGKILL);
}

static bool ends_with(const char *text, const char *end)
{
    size_t const n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

int __wrap_rename(const char *from, const char *to)
{
    count_down();
    bool const last = ends_with(to, "/last.ckpt");
    writes += last;
    if ((full_for && ends_with(to, full_for)) ||
        (last && writes > fail_from && writes <= fail_to)) {
        errno = ENOSPC;
        return -1;
    }
    return __real_rename(from, to);
}

int __wrap_link(const char *from, const char *to)
{
    count_down();
    return __real_link(from, to);
}

/* ------------------------------------------------------------------ runs */

static const char *const sets[] = {
    "train.epochs=1", "train.eval_every=3", "train.checkpoint_every=2",
    "output.keep=2",  "data.test_count=20", "data.train_count=64",
    "train.batch=8",  "model.filters=2,4"};
enum { SETS = sizeof sets / sizeof sets[0], STEPS = 8 };

/** Train in a process of its own, which may be killed. Returns how it ended. */
static int train_apart(const char *name, bool resume, int stop, long kill)
{
    int status;
    pid_t const child = fork();
    if (child == 0) {
        qat_error err = {0};
        kill_after = kill;
        qat_status const st = train_with(name, sets, SETS, stop, resume, &err);
        test_temp_write(folder, "message", err.message, st ? strlen(err.message) : 0);
        _exit(st);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static void train_whole(void)
{
    ck_assert_int_eq(train_apart("whole", false, 0, -1), 0);
}

static bool has_checkpoint(const char *name)
{
    char dir[TEST_PATH_MAX], path[TEST_PATH_MAX];
    return access(test_temp_path(path, dir_of(dir, name), "last.ckpt"), F_OK) == 0;
}

/** The same names, and the same bytes in each of them; times.csv apart, which holds the clock's. */
static void same_folders(const char *a, const char *b)
{
    char dir[TEST_PATH_MAX], other[TEST_PATH_MAX];
    dir_of(dir, a);
    ck_assert_int_eq(test_temp_count(dir), test_temp_count(dir_of(other, b)));
    DIR *folder_of = opendir(dir);
    ck_assert_ptr_nonnull(folder_of);
    for (struct dirent *e; (e = readdir(folder_of));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "times.csv") != 0)
            same_files(a, b, e->d_name);
    closedir(folder_of);
}

static void remove_run(const char *name)
{
    char dir[TEST_PATH_MAX];
    test_temp_remove(dir_of(dir, name));
}

/* ------------------------------------------------------------------ tests */

START_TEST(a_kill_at_any_file)
{
    bool killed = true;
    long kills = 0;
    train_whole();
    for (long n = 0; killed; n++, kills += killed) {
        killed = WIFSIGNALED(train_apart("killed", false, 0, n));
        if (killed)
            ck_assert_int_eq(train_apart("killed", has_checkpoint("killed"), 0, -1), 0);
        same_folders("whole", "killed");
        remove_run("killed");
    }
    ck_assert_int_ge(kills, 2 * STEPS / 2); /* last.ckpt and step-N.ckpt of every second step */
}
END_TEST

START_TEST(a_stop_after_any_step)
{
    train_whole();
    for (int n = 1; n <= STEPS; n++) {
        ck_assert_int_eq(train_apart("stopped", false, n, -1), 0);
        ck_assert_int_eq(train_apart("stopped", true, 0, -1), 0);
        same_folders("whole", "stopped");
        remove_run("stopped");
    }
}
END_TEST

/** A full disk, from any write of last.ckpt, for one or several writes. */
START_TEST(a_full_disk_for_a_while)
{
    train_whole();
    for (fail_from = 0; fail_from < 4; fail_from++)
        for (fail_to = fail_from + 1; fail_to < 5; fail_to++) {
            ck_assert_int_eq(train_apart("full", false, 0, -1), 0);
            same_folders("whole", "full");
            remove_run("full");
        }
    fail_from = fail_to = 0;
}
END_TEST

/** The best checkpoint can never be written: the run must say so. */
START_TEST(a_best_checkpoint_that_is_lost)
{
    char message[TEST_PATH_MAX];
    uint8_t *text;
    size_t count;
    full_for = "/best.ckpt";
    int const status = train_apart("lost", false, 0, -1);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == QAT_ERR_IO);
    test_temp_path(message, folder, "message");
    ck_assert_int_eq(qat_file_read(message, SIZE_MAX, &text, &count, NULL), QAT_OK);
    ck_assert_msg(strstr((char *)text, "best.ckpt: No space left"), "%s", (char *)text);
    free(text);
    full_for = NULL;
    ck_assert_int_eq(train_apart("lost", has_checkpoint("lost"), 0, -1), 0);
    train_whole();
    same_folders("whole", "lost");
}
END_TEST

/** Files that a run could have written go, others stay. */
START_TEST(only_names_that_a_run_writes_are_removed)
{
    static const char *const names[] = {"step-0002.ckpt", "step-00.ckpt",
                                        "step-99999999999999999999.ckpt", "step-0.ckpt",
                                        "step-2.ckpt"};
    char path[TEST_PATH_MAX];
    for (int i = 0; i < 5; i++)
        test_temp_write(folder, names[i], "x", 1);
    ck_assert_int_eq(qat_run_prune(folder, INT64_MAX, 1, NULL), QAT_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(access(test_temp_path(path, folder, names[i]), F_OK), i == 3 ? -1 : 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keep");
    TCase *tc = tcase_create("keep");
    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, a_kill_at_any_file);
    tcase_add_test(tc, a_stop_after_any_step);
    tcase_add_test(tc, a_full_disk_for_a_while);
    tcase_add_test(tc, a_best_checkpoint_that_is_lost);
    tcase_add_test(tc, only_names_that_a_run_writes_are_removed);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
