/** Mutations of texts: words of a format, numbers that break readers, lines that move. */
#ifndef QAT_TESTS_TEXT_MUTATE_H
#define QAT_TESTS_TEXT_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/** Change a text of `size` bytes in place, at most to `most` bytes; returns its new size. words:
 *  words of the format, the last one NULL. */
size_t fuzz_text_mutate(uint8_t *text, size_t size, size_t most, uint64_t *x,
                        const char *const *words);

/** A text in place of `cut` bytes at `at`; returns the new size (the old one if there is no room).
 */
size_t fuzz_replace(uint8_t *bytes, size_t size, size_t most, size_t at, size_t cut,
                    const void *with, size_t n);

#endif
