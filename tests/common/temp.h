/** Temporary folders and small files for tests that write. */
#ifndef QAT_TESTS_TEMP_H
#define QAT_TESTS_TEMP_H

#include <stddef.h>

enum { TEST_PATH_MAX = 512 };

/** A new folder under $TMPDIR (/tmp); its path into path[TEST_PATH_MAX]. Aborts the test on
 * failure. */
void test_temp_make(char *path);

/** Remove a folder and all in it. */
void test_temp_remove(const char *path);

/** The folder of a program's tests, and a fixture that makes it and removes it. */
extern char folder[TEST_PATH_MAX];
void test_folder_make(void);
void test_folder_remove(void);

/** Entries of a folder, without . and .. */
int test_temp_count(const char *path);

/** under/name into path[TEST_PATH_MAX], which is also returned. */
char *test_temp_path(char *path, const char *under, const char *name);

/** Write bytes to under/name, making the folders in name; gzip where the name ends in .gz. */
void test_temp_write(const char *under, const char *name, const void *bytes, size_t count);

#endif
