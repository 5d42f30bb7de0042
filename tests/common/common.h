/** What all tests share: where data lies, small case files, and running a suite. */
#ifndef QAT_TESTS_COMMON_H
#define QAT_TESTS_COMMON_H

#include <stdbool.h>
#include <stddef.h>

/** Full path of a data file: $QAT_DATA/<name>, by default <source>/../shared/data/<name>; false if
 * it is not there. */
bool test_data_path(char *path, size_t max, const char *name);

/** Full path of a golden folder or file: $QAT_DATA/golden/<name> if there, else the committed
 *  subset tests/golden/data/<name>; false if in neither. */
bool test_golden_path(char *path, size_t max, const char *name);

/** Print "SKIP <what>: <why>", counted by test.sh. */
void test_skip(const char *what, const char *why);

/** Where $QAT_KEEP_MODELS names a folder: write a .qm that holds a known answer into it, as
 *  <group>_<name>.qm, for tests/engine/replay.c to run on other processors. */
void test_keep_model(const char *group, const char *name, const void *qm, size_t count);

/** key=value lines of a case.txt: value of key copied into value, or false. */
bool test_case_value(const char *path, const char *key, char *value, size_t max);

#endif
