/** Takes a checkpoint apart into its sections, and puts it together again. */
#ifndef QAT_TESTS_CHECKPOINT_IMAGE_H
#define QAT_TESTS_CHECKPOINT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

enum { CHECKPOINT_SECTIONS = 12, CHECKPOINT_TAG = 4 };

/** Sections as they lie in some bytes: each is its tag and its content. */
struct checkpoint_image {
    uint32_t version, stated; /* as the header states them */
    int n;
    char tag[CHECKPOINT_SECTIONS][CHECKPOINT_TAG];
    const uint8_t *at[CHECKPOINT_SECTIONS];
    size_t size[CHECKPOINT_SECTIONS];
};

/** Find the sections; n is 0 where there is none. */
void checkpoint_image_read(struct checkpoint_image *c, const uint8_t *bytes, size_t size);
/** Write header, sections and a place for the CRC; the size, 0: more than most. */
size_t checkpoint_image_write(const struct checkpoint_image *c, uint8_t *bytes, size_t most);
/** Make magic, size and CRC right, so that changes reach the parser. */
void checkpoint_seal(uint8_t *bytes, size_t size);

#endif
