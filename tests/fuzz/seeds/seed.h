/**
 * Seeds are inputs of a fuzz target. Programs that are run by hand write them as files into a
 * folder.
 */
#ifndef QAT_TESTS_SEED_H
#define QAT_TESTS_SEED_H

#include <stddef.h>
#include <stdint.h>

/** Write bytes to folder/name. If that fails, print a message and end the program. */
void seed_write(const char *folder, const char *name, const uint8_t *bytes, size_t n);

/** One part of an input (fuzz_parts.h). */
struct seed_part {
    const void *bytes;
    size_t size;
};
/** A part that is a text. */
struct seed_part seed_text(const char *text);
/** Write an input of n parts to folder/name. */
void seed_parts(const char *folder, const char *name, int mode, int options, int n,
                const struct seed_part *parts);

/** The seeds of a target that reads texts; 0: it is none of them. */
int seed_texts(const char *target, const char *folder);

#endif
