/**
 * Files are replaced as a whole or not at all: with each system call failing in turn, after a kill,
 * by several processes at once, and without becoming readable by more users.
 */
#include "base/files/file.h"
#include "common/suite.h"
#include "common/temp.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 300000 };

static char path[TEST_PATH_MAX], temporary[TEST_PATH_MAX + 16];

/* ------------------------------------------------------------------ calls that fail */

/* Given by the linker's --wrap, as in common/fail_alloc.c. */
ssize_t __real_write(int fd, const void *bytes, size_t count);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_link(const char *from, const char *to);
int __real_mkdir(const char *name, mode_t mode);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __wrap_mkdir(const char *name, mode_t mode);

static int left = -1;                    /* calls that still succeed; -1: all */
static int synced_files, synced_folders; /* calls of fsync that succeeded */
static int renames_of_synced;            /* renames right after an fsync of a file */
static bool last_was_sync, kill_at_rename;
static mode_t widest; /* of files that were written */

static bool fails(void)
{
    if (left < 0 || left-- > 0)
        return false;
    errno = ENOSPC;
    return true;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    struct stat there;
    if (fails())
        return -1;
    if (fstat(fd, &there) == 0 && S_ISREG(there.st_mode))
        widest |= there.st_mode & 0777;
    last_was_sync = false;
    return __real_write(fd, bytes, count > 100000 ? 100000 : count); /* a part, as disks may do */
}

int __wrap_fsync(int fd)
{
    struct stat there;
    if (fails())
        return -1;
    bool const is_folder = fstat(fd, &there) == 0 && S_ISDIR(there.st_mode);
    synced_folders += is_folder;
    synced_files += !is_folder;
    last_was_sync = !is_folder;
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    if (kill_at_rename)
        raise(SIGKILL);
    if (fails())
        return -1;
    renames_of_synced += last_was_sync;
    return __real_rename(from, to);
}

int __wrap_link(const char *from, const char *to)
{
    return fails() ? -1 : __real_link(from, to);
}

int __wrap_mkdir(const char *name, mode_t mode)
{
    return fails() ? -1 : __real_mkdir(name, mode);
}

static void setup(void)
{
    test_folder_make();
    test_temp_path(path, folder, "target");
    snprintf(temporary, sizeof temporary, "%s.qat.tmp", path);
    left = -1;
    kill_at_rename = false;
    synced_files = synced_folders = renames_of_synced = 0;
    widest = 0;
}

/* ------------------------------------------------------------------ helpers */

static void expect_content(const char *file, const char *text)
{
    uint8_t *bytes;
    size_t count;
    ck_assert_int_eq(qat_file_read(file, SIZE_MAX, &bytes, &count, NULL), QAT_OK);
    ck_assert_str_eq((char *)bytes, text);
    free(bytes);
}

static mode_t mode_of(const char *file)
{
    struct stat there;
    ck_assert_int_eq(stat(file, &there), 0);
    return there.st_mode & 0777;
}

static void write_ok(const char *text)
{
    qat_error err;
    ck_assert_msg(qat_file_write_atomic(path, text, strlen(text), &err) == QAT_OK, "%s",
                  err.message);
    expect_content(path, text);
    ck_assert_int_ne(access(temporary, F_OK), 0);
}

/* ------------------------------------------------------------------ tests */

START_TEST(it_is_on_disk_before_it_gets_its_name)
{
    write_ok("old");
    ck_assert_int_eq(synced_files, 1);
    ck_assert_int_eq(synced_folders, 1);
    ck_assert_int_eq(renames_of_synced, 1);
}
END_TEST

/** write, fsync, rename, fsync of the folder: each fails once. */
START_TEST(each_call_may_fail)
{
    bool failed = true;
    for (int n = 0; failed; n++) {
        qat_error err = {0};
        left = -1;
        write_ok("old");
        left = n;
        qat_status const st = qat_file_write_atomic(path, "new", 3, &err);
        failed = left < 0;
        left = -1;
        ck_assert_int_eq(st, failed ? QAT_ERR_IO : QAT_OK);
        ck_assert(!failed || strstr(err.message, "No space left"));
        expect_content(path, !failed || n == 3 ? "new" : "old"); /* 3: of the folder */
        ck_assert_int_eq(test_temp_count(folder), 1);
        ck_assert(failed || n == 4);
    }
}
END_TEST

/** The same for a second name, and where the file system has none, for the copy. */
START_TEST(each_call_of_a_copy_may_fail)
{
    char from[TEST_PATH_MAX];
    test_temp_write(folder, "from", "new", 3);
    test_temp_path(from, folder, "from");
    bool failed = true;
    for (int n = 0; failed; n++) {
        qat_error err = {0};
        left = -1;
        write_ok("old");
        left = n;
        qat_status const st = qat_file_copy_atomic(from, path, &err);
        failed = left < 0;
        left = -1;
        ck_assert_int_eq(st, failed && n > 0 ? QAT_ERR_IO : QAT_OK); /* 0: the link */
        expect_content(path, st && n < 2 ? "old" : "new");
        ck_assert_int_eq(test_temp_count(folder), 2);
    }
}
END_TEST

START_TEST(a_file_keeps_its_mode)
{
    mode_t const modes[] = {0600, 0640, 0755, 0444};
    mode_t const before = umask(022);
    write_ok("new files obey the umask");
    ck_assert_int_eq(mode_of(path), 0644);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        ck_assert_int_eq(chmod(path, modes[i]), 0);
        widest = 0;
        write_ok("replaced");
        ck_assert_int_eq(mode_of(path), modes[i]);
        ck_assert_int_eq(widest & ~modes[i] & 077, 0); /* at no moment was it wider */
    }
    umask(before);
}
END_TEST

START_TEST(a_file_keeps_its_owner)
{
    struct stat there;
    write_ok("mine");
    if (geteuid() != 0 || chown(path, 1234, 1235) || chmod(path, 0640))
        return; /* only root can give files away */
    write_ok("still theirs");
    ck_assert_int_eq(stat(path, &there), 0);
    ck_assert(there.st_uid == 1234 && there.st_gid == 1235 && (there.st_mode & 0777) == 0640);
}
END_TEST

/** What a killed process has left is removed, and what a name leads to stays as it is. */
START_TEST(what_is_left_over_is_removed)
{
    char other[TEST_PATH_MAX];
    test_temp_write(folder, "other", "precious", 8);
    test_temp_path(other, folder, "other");
    test_temp_write(folder, "target.qat.tmp", "half", 4);
    write_ok("after a file");
    ck_assert_int_eq(symlink(other, temporary), 0);
    write_ok("after a symbolic link");
    ck_assert_int_eq(link(other, temporary), 0);
    write_ok("after a second name");
    ck_assert_int_eq(link(other, temporary), 0);
    ck_assert_int_eq(qat_file_copy_atomic(other, path, NULL), QAT_OK);
    expect_content(path, "precious");
    expect_content(other, "precious");
    ck_assert_int_eq(test_temp_count(folder), 2);
}
END_TEST

START_TEST(a_kill_leaves_one_file_at_most)
{
    write_ok("old");
    for (int i = 0; i < 3; i++) {
        pid_t const child = fork();
        if (child == 0) {
            kill_at_rename = true;
            (void)qat_file_write_atomic(path, "new", 3, NULL);
            _exit(0);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status));
        expect_content(path, "old");
        ck_assert_int_eq(test_temp_count(folder), 2);
    }
    write_ok("new");
    ck_assert_int_eq(test_temp_count(folder), 1);
}
END_TEST

/** A child: writes whole files of one letter. */
static void write_letters(char letter)
{
    char *text = malloc(BIG);
    memset(text, letter, BIG);
    for (int i = 0; i < 30; i++)
        if (qat_file_write_atomic(path, text, BIG, NULL))
            _exit(1);
    _exit(0);
}

START_TEST(several_processes_write_one_file)
{
    enum { CHILDREN = 4 };
    int running = CHILDREN, status;
    uint8_t *bytes;
    size_t count;
    ck_assert_int_eq(qat_file_write_atomic(path, "", 0, NULL), QAT_OK);
    for (int i = 0; i < CHILDREN; i++)
        if (fork() == 0)
            write_letters((char)('a' + i));
    while (running) {
        ck_assert_int_eq(qat_file_read(path, SIZE_MAX, &bytes, &count, NULL), QAT_OK);
        ck_assert(count == 0 || count == BIG);
        ck_assert(count == 0 || memcmp(bytes, bytes + 1, BIG - 1) == 0); /* of one child */
        free(bytes);
        if (waitpid(-1, &status, WNOHANG) > 0) {
            ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            running--;
        }
    }
    ck_assert_int_eq(test_temp_count(folder), 1);
}
END_TEST

static qat_status refuse(const void *context, const char *file, qat_error *err)
{
    expect_content(file, "new");
    ck_assert_str_eq(file, temporary);
    return qat_fail(err, QAT_ERR_MISMATCH, "%s", (const char *)context);
}

START_TEST(a_check_may_refuse_it)
{
    qat_error err;
    write_ok("old");
    ck_assert_int_eq(qat_file_write_checked(path, "new", 3, refuse, "no", &err), QAT_ERR_MISMATCH);
    ck_assert_str_eq(err.message, "no");
    expect_content(path, "old");
    ck_assert_int_eq(test_temp_count(folder), 1);
}
END_TEST

START_TEST(a_file_of_another_program_is_moved)
{
    char part[TEST_PATH_MAX];
    test_temp_write(folder, "target.part", "all", 3);
    test_temp_path(part, folder, "target.part");
    ck_assert_int_eq(qat_file_move(part, path, NULL), QAT_OK);
    expect_content(path, "all");
    ck_assert(synced_files == 1 && synced_folders == 1 && renames_of_synced == 1);
    ck_assert_int_eq(test_temp_count(folder), 1);
}
END_TEST

/** Each folder that was made is on disk: the folder in which it lies was synced. */
START_TEST(folders_are_durable)
{
    qat_error err;
    char deep[TEST_PATH_MAX];
    ck_assert_int_eq(qat_make_dirs(test_temp_path(deep, folder, "a/b//c/"), &err), QAT_OK);
    ck_assert_int_eq(synced_folders, 3);
    ck_assert_int_eq(qat_make_dirs(deep, &err), QAT_OK);
    ck_assert_int_eq(synced_folders, 3);
    test_temp_path(deep, folder, "d");
    int slashes = 0;
    for (const char *c = deep; *c; c++)
        slashes += *c == '/';
    left = slashes - 1; /* the last mkdir, then the fsync behind it */
    ck_assert_int_eq(qat_make_dirs(deep, &err), QAT_ERR_IO);
    left = slashes;
    ck_assert_int_eq(qat_make_dirs(deep, &err), QAT_ERR_IO);
    left = -1;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_write");
    TCase *tc = tcase_create("file_write");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_add_test(tc, it_is_on_disk_before_it_gets_its_name);
    tcase_add_test(tc, each_call_may_fail);
    tcase_add_test(tc, each_call_of_a_copy_may_fail);
    tcase_add_test(tc, a_file_keeps_its_mode);
    tcase_add_test(tc, a_file_keeps_its_owner);
    tcase_add_test(tc, what_is_left_over_is_removed);
    tcase_add_test(tc, a_kill_leaves_one_file_at_most);
    tcase_add_test(tc, several_processes_write_one_file);
    tcase_add_test(tc, a_check_may_refuse_it);
    tcase_add_test(tc, a_file_of_another_program_is_moved);
    tcase_add_test(tc, folders_are_durable);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
