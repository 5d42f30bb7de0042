#include "fuzz/mutations/qm_image.h"

#include <string.h>

static const struct {
    size_t record_bytes;
    int at; /* field of the header */
} parts[QM_PARTS] = {{QM_TENSOR_BYTES, QM_AT_TENSORS},
                     {QM_NODE_BYTES, QM_AT_NODES},
                     {4, QM_AT_INTS},
                     {1, QM_AT_STRINGS},
                     {1, QM_AT_DATA}};

size_t qm_record_bytes(qm_part part)
{
    return parts[part].record_bytes;
}

uint8_t *qm_record(qm_image *image, qm_part part, size_t index)
{
    return image->part[part].bytes + index * parts[part].record_bytes;
}

uint32_t qm_get(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void qm_put(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* ------------------------------------------------------------------ apart and together */

static void split_part(qm_section *section, qm_part part, const uint8_t *file, size_t size)
{
    size_t const offset = qm_get(file + parts[part].at), record = parts[part].record_bytes;
    size_t count = qm_get(file + parts[part].at + 4);
    size_t const there = offset < size ? (size - offset) / record : 0;
    count = count < there ? count : there;
    count = count * record <= QM_IMAGE_BYTES ? count : QM_IMAGE_BYTES / record;
    section->count = count;
    if (count)
        memcpy(section->bytes, file + offset, count * record);
}

int qm_split(qm_image *image, const uint8_t *file, size_t size)
{
    if (size < QM_HEADER_BYTES || file[QM_AT_FLAGS] & (QM_FLAG_SHORT | QM_FLAG_COMPACT))
        return 0; /* short and compact records change as bytes */
    memcpy(image->header, file, QM_HEADER_BYTES);
    for (int i = 0; i < QM_PARTS; i++)
        split_part(&image->part[i], (qm_part)i, file, size);
    return 1;
}

size_t qm_join(const qm_image *image, uint8_t *file, size_t most)
{
    size_t end = QM_HEADER_BYTES;
    if (end > most)
        return 0;
    memcpy(file, image->header, end);
    for (int i = 0; i < QM_PARTS; i++) {
        size_t const start = (end + QM_ALIGNMENT - 1) / QM_ALIGNMENT * QM_ALIGNMENT;
        size_t const bytes = image->part[i].count * parts[i].record_bytes;
        if (start + bytes > most)
            return 0;
        memset(file + end, 0, start - end);
        memcpy(file + start, image->part[i].bytes, bytes);
        qm_put(file + parts[i].at, (uint32_t)start);
        qm_put(file + parts[i].at + 4, (uint32_t)image->part[i].count);
        end = start + bytes;
    }
    qm_seal(file, end);
    return end;
}

/* ------------------------------------------------------------------ records */

static int has_room(const qm_image *image, qm_part part, size_t n)
{
    size_t const record = parts[part].record_bytes;
    return n <= QM_IMAGE_BYTES && (image->part[part].count + n) * record <= QM_IMAGE_BYTES;
}

long qm_append(qm_image *image, qm_part part, const uint8_t *from, size_t n)
{
    size_t const first = image->part[part].count, record = parts[part].record_bytes;
    if (!has_room(image, part, n))
        return -1;
    uint8_t *to = qm_record(image, part, first);
    if (from)
        memmove(to, from, n * record);
    else
        memset(to, 0, n * record);
    image->part[part].count += n;
    return (long)first;
}

int qm_insert_copy(qm_image *image, qm_part part, size_t index, size_t from)
{
    uint8_t copy[QM_TENSOR_BYTES];
    size_t const record = parts[part].record_bytes;
    if (!has_room(image, part, 1))
        return 0;
    memcpy(copy, qm_record(image, part, from), record);
    uint8_t *at = qm_record(image, part, index);
    memmove(at + record, at, (image->part[part].count - index) * record);
    memcpy(at, copy, record);
    image->part[part].count++;
    return 1;
}

void qm_remove(qm_image *image, qm_part part, size_t index)
{
    size_t const record = parts[part].record_bytes;
    uint8_t *at = qm_record(image, part, index);
    image->part[part].count--;
    memmove(at, at + record, (image->part[part].count - index) * record);
}

/* ------------------------------------------------------------------ seal */

void qm_seal(uint8_t *file, size_t size)
{
    if (size < QM_HEADER_BYTES)
        return;
    memcpy(file, QM_MAGIC, QM_MAGIC_BYTES);
    qm_put(file + QM_AT_VERSION, QM_VERSION);
    qm_put(file + QM_AT_FILE_BYTES, (uint32_t)size);
    uint32_t const crc = qm_crc32(0, file, QM_AT_CRC);
    qm_put(file + QM_AT_CRC, qm_crc32(crc, file + QM_AT_CRC + 4, size - QM_AT_CRC - 4));
}
