#include "common/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static const char *source_root(void)
{
    const char *root = getenv("QAT_SOURCE_ROOT");
    return root && *root ? root : ".";
}

bool test_data_path(char *path, size_t max, const char *name)
{
    const char *data = getenv("QAT_DATA");
    if (data && *data)
        snprintf(path, max, "%s/%s", data, name);
    else
        snprintf(path, max, "%s/../shared/data/%s", source_root(), name);
    return exists(path);
}

bool test_golden_path(char *path, size_t max, const char *name)
{
    char below[512];
    snprintf(below, sizeof below, "golden/%s", name);
    if (test_data_path(path, max, below))
        return true;
    snprintf(path, max, "%s/tests/golden/data/%s", source_root(), name);
    return exists(path);
}

void test_skip(const char *what, const char *why)
{
    printf("SKIP %s: %s\n", what, why);
    fflush(stdout);
}

void test_keep_model(const char *group, const char *name, const void *qm, size_t count)
{
    const char *folder = getenv("QAT_KEEP_MODELS");
    if (!folder || !*folder)
        return;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s_%s.qm", folder, group, name);
    FILE *file = fopen(path, "wb");
    bool const whole = file && fwrite(qm, 1, count, file) == count;
    if (!file || fclose(file) || !whole) {
        fprintf(stderr, "cannot write %s\n", path);
        abort();
    }
}

bool test_case_value(const char *path, const char *key, char *value, size_t max)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    char line[8192];
    size_t const key_length = strlen(key);
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (strncmp(line, key, key_length) == 0 && line[key_length] == '=') {
            snprintf(value, max, "%s", line + key_length + 1);
            found = true;
        }
    }
    fclose(file);
    return found;
}
