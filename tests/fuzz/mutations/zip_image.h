/**
 * Takes a zip archive apart, and puts it together again. CRCs come out right, and so do sizes,
 * unless an entry states another size.
 */
#ifndef QAT_TESTS_ZIP_IMAGE_H
#define QAT_TESTS_ZIP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZIP_ENTRIES = 24, ZIP_NAME = 96, ZIP_BYTES = 1 << 15 };

struct zip_entry {
    char name[ZIP_NAME];
    size_t name_bytes, size;
    bool packed;     /* deflated in the archive */
    uint32_t stated; /* the size that both headers state; 0: the right one */
    uint8_t *bytes;  /* room for ZIP_BYTES; owned */
};

struct zip_image {
    int n;
    struct zip_entry entries[ZIP_ENTRIES];
};

/** Take the entries that can be read; false: there is none. Free it in both cases. */
bool zip_image_read(struct zip_image *z, const uint8_t *bytes, size_t size);
/** An entry more, of these bytes; NULL: there is no room. */
struct zip_entry *zip_image_add(struct zip_image *z, const char *name, const uint8_t *bytes,
                                size_t size);
/** Write the archive; its size, 0: more than most. */
size_t zip_image_write(const struct zip_image *z, uint8_t *bytes, size_t most);
void zip_image_free(struct zip_image *z);

#endif
