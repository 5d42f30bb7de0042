/**
 * Runs a fuzz target without libFuzzer. It executes every given file (and every file in the given
 * folders) once. Then it executes N more inputs that the target's own mutations make (--mutations
 * N), always from the same seeds.
 *
 * usage: TARGET_replay [--mutations N] FILE|FOLDER...
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 16, MOST_FILES = 1 << 16, PATH_BYTES = 4096 };

struct replay {
    long mutations;
    long files, executions, failures;
    uint8_t bytes[MOST_BYTES], last[MOST_BYTES];
    size_t n_last; /* the file before, for crossing */
};

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    static uint64_t x = 1; /* a driver runs once */
    if (size < most && fuzz_below(&x, 4) == 0)
        data[size++] = (uint8_t)fuzz_random(&x);
    for (size_t n = size ? 1 + fuzz_below(&x, 4) : 0; n > 0; n--)
        data[fuzz_below(&x, size)] = (uint8_t)fuzz_random(&x);
    return size;
}

/** Give the target exactly n bytes, so that a sanitizer notices if it reads one too many. */
static void execute(struct replay *r, const uint8_t *bytes, size_t n)
{
    uint8_t *exact = fuzz_allocate(sizeof(void *), n);
    memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    r->executions++;
}

/** One mutated copy of the n bytes of r->bytes; each fourth crossed with the file before. */
static void execute_mutated(struct replay *r, size_t n, unsigned int seed)
{
    uint8_t *copy = fuzz_allocate(sizeof(void *), MOST_BYTES);
    memcpy(copy, r->bytes, n);
    if (seed % 4 == 0 && r->n_last) {
        size_t const crossed =
            LLVMFuzzerCustomCrossOver(r->bytes, n, r->last, r->n_last, copy, MOST_BYTES, seed);
        n = crossed ? crossed : n;
    }
    n = LLVMFuzzerCustomMutator(copy, n, MOST_BYTES, seed);
    execute(r, copy, n);
    free(copy);
}

static void replay_file(struct replay *r, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t const n = file ? fread(r->bytes, 1, MOST_BYTES, file) : 0;
    int const whole = file && !ferror(file) && fgetc(file) == EOF;
    if (file)
        fclose(file);
    if (!whole) {
        fprintf(stderr, "%s: cannot be read, or is larger than %d bytes\n", path, MOST_BYTES);
        r->failures++;
        return;
    }
    r->files++;
    fuzz_thorough = 1;
    execute(r, r->bytes, n);
    fuzz_thorough = 0;
    for (long i = 0; i < r->mutations; i++)
        execute_mutated(r, n, (unsigned int)(r->files * 7919 + i));
    memcpy(r->last, r->bytes, n);
    r->n_last = n;
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_path(struct replay *r, const char *path)
{
    struct dirent **entries;
    int const n = scandir(path, &entries, is_file, alphasort);
    if (n < 0) {
        replay_file(r, path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char inner[PATH_BYTES];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        replay_file(r, inner);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    struct replay *r = calloc(1, sizeof *r);
    int first = 1;
    if (!r)
        return 1;
    if (argc > 2 && strcmp(argv[1], "--mutations") == 0) {
        r->mutations = strtol(argv[2], NULL, 10);
        first = 3;
    }
    for (int i = first; i < argc; i++)
        replay_path(r, argv[i]);
    int const ok = r->files > 0 && r->failures == 0;
    printf("%s - %s: %ld files, %ld executions\n", ok ? "ok" : "not ok", argv[0], r->files,
           r->executions);
    free(r);
    return !ok;
}
