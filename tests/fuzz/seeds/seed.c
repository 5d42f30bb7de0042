#include "fuzz/seeds/seed.h"

#include "fuzz/fuzz.h"
#include "fuzz/fuzz_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seeds are not mutated. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    return size;
}

void seed_write(const char *folder, const char *name, const uint8_t *bytes, size_t n)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    size_t const written = file ? fwrite(bytes, 1, n, file) : 0;
    if (!file || fclose(file) || written != n) {
        fprintf(stderr, "%s: cannot be written\n", path);
        exit(1);
    }
}

struct seed_part seed_text(const char *text)
{
    return (struct seed_part){text, strlen(text)};
}

void seed_parts(const char *folder, const char *name, int mode, int options, int n,
                const struct seed_part *parts)
{
    static uint8_t bytes[1 << 16];
    struct fuzz_parts p = {.mode = (uint8_t)mode, .options = (uint8_t)options, .n = n};
    for (int i = 0; i < n; i++) {
        p.at[i] = parts[i].bytes;
        p.size[i] = parts[i].size;
    }
    seed_write(folder, name, bytes, fuzz_parts_write(&p, bytes, sizeof bytes));
}
