/**
 * Files for readers that take a path. They are in a folder in memory, if the system has one. The
 * folder belongs to this process and is removed at its end.
 */
#ifndef QAT_TESTS_FUZZ_FILES_H
#define QAT_TESTS_FUZZ_FILES_H

#include <stddef.h>
#include <stdint.h>

enum { FUZZ_PATH_MAX = 256 };

/** The folder's path. The first call makes it. */
const char *fuzz_folder(void);
/** The path of a name in the folder, in path[], which is also returned. */
const char *fuzz_path(char path[FUZZ_PATH_MAX], const char *name);
/** Write a file of the folder; it replaces an older one. Returns its path as above. */
const char *fuzz_file(char path[FUZZ_PATH_MAX], const char *name, const uint8_t *bytes, size_t n);
/** The same, packed with gzip. */
const char *fuzz_file_packed(char path[FUZZ_PATH_MAX], const char *name, const uint8_t *bytes,
                             size_t n);
/** Remove a file of the folder, or a folder with all in it, if it is there. */
void fuzz_remove(const char *name);
/** Read a file of at most `most` bytes; its size. Aborts if it is larger. */
size_t fuzz_file_read(const char *path, uint8_t *bytes, size_t most);
/** Write a small picture, 5 x 4 pixels in RGB, as a PNG; once in a process. */
void fuzz_picture(const char *name);

/** Standard output goes to /dev/null between the two calls. */
void fuzz_mute(void);
void fuzz_unmute(void);

#endif
