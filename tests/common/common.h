/** What all tests share: where data lies, small case files, and running a suite. */
#ifndef QAT_TESTS_COMMON_H
#define QAT_TESTS_COMMON_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Make the full path of a data file: $QAT_DATA/<name>; if QAT_DATA is not set,
 * <source>/../shared/data/<name>. Return false if the file does not exist.
 */
bool test_data_path(char *path, size_t max, const char *name);

/**
 * Make the full path of a golden folder or file: $QAT_DATA/golden/<name> if it exists, otherwise
 * tests/golden/data/<name> in the committed subset. Return false if neither exists.
 */
bool test_golden_path(char *path, size_t max, const char *name);

/** Print "SKIP <what>: <why>". test.sh counts these lines. */
void test_skip(const char *what, const char *why);

/**
 * If $QAT_KEEP_MODELS names a folder, write a .qm with a known answer into it, as
 * <group>_<name>.qm. tests/engine/replay.c runs these files on other processors.
 */
void test_keep_model(const char *group, const char *name, const void *qm, size_t count);

/**
 * Find a key in the key=value lines of a case.txt and copy its value. Return false if the key is
 * not there.
 */
bool test_case_value(const char *path, const char *key, char *value, size_t max);

#endif
