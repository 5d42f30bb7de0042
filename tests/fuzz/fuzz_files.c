#include "fuzz/fuzz_files.h"

#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char folder[FUZZ_PATH_MAX / 2];

/** Remove a folder and all in it. */
static void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        char inner[2 * FUZZ_PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%.*s/%s", FUZZ_PATH_MAX - 1, path, e->d_name);
        if (unlink(inner))
            remove_all(inner);
    }
    if (dir)
        closedir(dir);
    (void)rmdir(path);
}

static void remove_folder(void)
{
    remove_all(folder);
}

const char *fuzz_folder(void)
{
    const char *elsewhere = getenv("TMPDIR");
    if (*folder)
        return folder;
    snprintf(folder, sizeof folder, "/dev/shm/qat-fuzz-XXXXXX");
    if (!mkdtemp(folder)) {
        snprintf(folder, sizeof folder, "%.80s/qat-fuzz-XXXXXX", elsewhere ? elsewhere : "/tmp");
        fuzz_require(mkdtemp(folder) != NULL, "a folder for files");
    }
    fuzz_require(atexit(remove_folder) == 0, "the folder is removed at exit");
    return folder;
}

const char *fuzz_path(char path[FUZZ_PATH_MAX], const char *name)
{
    snprintf(path, FUZZ_PATH_MAX, "%s/%s", fuzz_folder(), name);
    return path;
}

const char *fuzz_file(char path[FUZZ_PATH_MAX], const char *name, const uint8_t *bytes, size_t n)
{
    int const fd = open(fuzz_path(path, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    fuzz_require(fd >= 0, "a file can be made");
    fuzz_require(write(fd, bytes, n) == (ssize_t)n, "a file can be written");
    close(fd);
    return path;
}

const char *fuzz_file_packed(char path[FUZZ_PATH_MAX], const char *name, const uint8_t *bytes,
                             size_t n)
{
    enum { GZIP = 16 + MAX_WBITS };
    z_stream z = {0};
    fuzz_require(deflateInit2(&z, 1, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
    size_t const most = deflateBound(&z, n);
    uint8_t *packed = fuzz_allocate(sizeof(void *), most);
    z.next_in = (uint8_t *)bytes;
    z.avail_in = (unsigned)n;
    z.next_out = packed;
    z.avail_out = (unsigned)most;
    fuzz_require(deflate(&z, Z_FINISH) == Z_STREAM_END, "zlib packs");
    fuzz_file(path, name, packed, z.total_out);
    deflateEnd(&z);
    free(packed);
    return path;
}

void fuzz_remove(const char *name)
{
    char path[FUZZ_PATH_MAX];
    if (unlink(fuzz_path(path, name)) && errno != ENOENT)
        remove_all(path);
}

size_t fuzz_file_read(const char *path, uint8_t *bytes, size_t most)
{
    int const fd = open(path, O_RDONLY);
    ssize_t n = 0;
    size_t at = 0;
    fuzz_require(fd >= 0, "a file can be opened");
    while (at < most && (n = read(fd, bytes + at, most - at)) > 0)
        at += (size_t)n;
    fuzz_require(n == 0 || at < most, "a file is not too large");
    close(fd);
    return at;
}

void fuzz_picture(const char *name)
{
    static const uint8_t png[] = {
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
        0x52, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x04, 0x08, 0x02, 0x00, 0x00, 0x00, 0xc9,
        0x51, 0x62, 0x17, 0x00, 0x00, 0x00, 0x4b, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x01, 0x40,
        0x00, 0xbf, 0xff, 0x00, 0x00, 0x14, 0x28, 0x32, 0x46, 0x5a, 0x64, 0x78, 0x8c, 0x96, 0xaa,
        0xbe, 0xc8, 0xdc, 0xf0, 0x00, 0x07, 0x1b, 0x2f, 0x39, 0x4d, 0x61, 0x6b, 0x7f, 0x93, 0x9d,
        0xb1, 0xc5, 0xcf, 0xe3, 0xf7, 0x00, 0x0e, 0x22, 0x36, 0x40, 0x54, 0x68, 0x72, 0x86, 0x9a,
        0xa4, 0xb8, 0xcc, 0xd6, 0xea, 0xfe, 0x00, 0x15, 0x29, 0x3d, 0x47, 0x5b, 0x6f, 0x79, 0x8d,
        0xa1, 0xab, 0xbf, 0xd3, 0xdd, 0xf1, 0x05, 0x67, 0xed, 0x1d, 0x97, 0xbb, 0x6a, 0x81, 0x3f,
        0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    static bool made;
    char path[FUZZ_PATH_MAX];
    if (!made)
        fuzz_file(path, name, png, sizeof png);
    made = true;
}

/* ------------------------------------------------------------------ standard output */

static int spoken = -1; /* a copy of standard output while it is muted */

void fuzz_mute(void)
{
    static int nowhere = -1;
    if (nowhere < 0)
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(stdout);
    spoken = dup(STDOUT_FILENO);
    fuzz_require(nowhere >= 0 && spoken >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0, "a muted run");
}

void fuzz_unmute(void)
{
    fflush(stdout);
    fuzz_require(dup2(spoken, STDOUT_FILENO) >= 0, "standard output comes back");
    close(spoken);
}
