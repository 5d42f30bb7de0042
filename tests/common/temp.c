#include "common/temp.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/** If the files of a test cannot be made, the test fails. */
static void require(int fine, const char *what, const char *path)
{
    if (fine)
        return;
    fprintf(stderr, "cannot %s %s\n", what, path);
    abort();
}

void test_temp_make(char *path)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, TEST_PATH_MAX, "%s/qat-test-XXXXXX", base && *base ? base : "/tmp");
    require(mkdtemp(path) != NULL, "create", path);
}

char folder[TEST_PATH_MAX];

void test_folder_make(void)
{
    test_temp_make(folder);
}

void test_folder_remove(void)
{
    test_temp_remove(folder);
}

char *test_temp_path(char *path, const char *under, const char *name)
{
    int const length = snprintf(path, TEST_PATH_MAX, "%s/%s", under, name);
    require(length > 0 && length < TEST_PATH_MAX, "name", name);
    return path;
}

void test_temp_remove(const char *path)
{
    char inner[TEST_PATH_MAX];
    DIR *dir = opendir(path);
    if (!dir) {
        (void)unlink(path);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            test_temp_remove(test_temp_path(inner, path, e->d_name));
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

int test_temp_count(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    require(dir != NULL, "list", path);
    for (struct dirent *e; (e = readdir(dir));)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    (void)closedir(dir);
    return count;
}

void test_temp_write(const char *under, const char *name, const void *bytes, size_t count)
{
    char path[TEST_PATH_MAX];
    test_temp_path(path, under, name);
    for (char *slash = path + strlen(under) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    size_t const length = strlen(path);
    /* mode T: no gzip wrapping */
    gzFile file = gzopen(path, length > 3 && strcmp(path + length - 3, ".gz") == 0 ? "wb" : "wbT");
    require(file != NULL, "open", path);
    require(count == 0 || gzwrite(file, bytes, (unsigned)count) == (int)count, "write", path);
    require(gzclose(file) == Z_OK, "close", path);
}
