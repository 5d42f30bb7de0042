/**
 * Fuzz target: labels for qat-import, one per line.
 *
 * One part, the file. Options: bit 0 packed. What is read must be the text's lines.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_parts.h"
#include "fuzz/mutations/text_mutate.h"

#include "tools/import_labels.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 1 };

/** The length of the line at `at`; *next: where the next one begins. */
static size_t line_at(const uint8_t *text, size_t size, size_t at, size_t *next)
{
    size_t end = at;
    while (end < size && text[end] != '\r' && text[end] != '\n')
        end++;
    size_t const two = end + 1 < size && text[end] == '\r' && text[end + 1] == '\n';
    *next = end < size ? end + 1 + two : end;
    return end - at;
}

static void compare(const import_labels *l, const uint8_t *text, size_t size)
{
    int n = 0;
    for (size_t at = 0, next; at < size; at = next, n++) {
        size_t const length = line_at(text, size, at, &next);
        fuzz_require(n < l->count, "no line is lost");
        fuzz_require(strlen(l->lines[n]) == length && !memcmp(l->lines[n], text + at, length),
                     "a label is its line");
    }
    fuzz_require(n == l->count, "no label is made up");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_parts p;
    char path[FUZZ_PATH_MAX];
    qat_error err = {0};
    import_labels l;
    fuzz_parts_read(&p, data, size, PARTS);
    if (p.options & 1)
        fuzz_file_packed(path, "l.txt.gz", p.at[0], p.size[0]);
    else
        fuzz_file(path, "l.txt", p.at[0], p.size[0]);
    int const has_zero = p.size[0] && memchr(p.at[0], 0, p.size[0]);
    qat_status const st = import_labels_read(&l, path, &err);
    fuzz_require((st == QAT_OK) == !has_zero, "a text is read, and nothing else");
    fuzz_require(st == QAT_OK || strlen(err.message) > 0, "a message where something is wrong");
    if (!st)
        compare(&l, p.at[0], p.size[0]);
    import_labels_free(&l);
    return 0;
}

static size_t mutate(uint8_t *bytes, size_t size, size_t most, const struct fuzz_parts *p, int part,
                     uint64_t *x)
{
    static const char *const words[] = {"cat\n",    "dog\r\n", "\r",  "\n", "\n\n", "\r\r\n",
                                        "\xc3\xa4", "\x1b[2J", "???", " ",  NULL};
    return fuzz_text_mutate(bytes, size, most, x, words);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    return fuzz_parts_mutate(data, size, most, seed, PARTS, mutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    return fuzz_parts_cross(a, a_size, b, b_size, out, most, seed, PARTS);
}
