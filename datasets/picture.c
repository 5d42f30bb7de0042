/**
 * Reads picture files with stb_image. If a file is cut off, stb_image fills the missing part with
 * zeros. So a file that ends before the decoder has all the bytes it needs is an error. But a JPEG
 * may lack its end marker, if its picture does not depend on what follows.
 */
#include "qat/dataset.h"

#include "base/file.h"
#include "datasets/jpeg_scans.h"

#include <stb_image.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 1 << 30, MAX_PIXELS = 1 << 28 };

/** A file in memory, from which stb_image reads. */
typedef struct source {
    const uint8_t *bytes;
    int count, at;
    bool cut; /* more bytes were needed than there are */
} source;

enum {
    READ_AHEAD = 128
}; /* size of stb_image's buffer: it reads this many bytes whether it needs them or not */

static int source_read(void *user, char *to, int wanted)
{
    source *s = user;
    int const left = s->count - s->at, n = wanted < left ? wanted : left;
    s->cut |= wanted > 0 && (left == 0 || (n < wanted && wanted > READ_AHEAD));
    memcpy(to, s->bytes + s->at, (size_t)n);
    s->at += n;
    return n;
}

static void source_skip(void *user, int n)
{
    source *s = user;
    int64_t const to = (int64_t)s->at + n;
    s->at = to < 0 ? 0 : to > s->count ? s->count : (int)to;
}

static int source_at_end(void *user)
{
    const source *s = user;
    return s->at == s->count;
}

static qat_status truncated(const char *path, int count, qat_error *err)
{
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: truncated, the file ends before the picture does (%d bytes)", path, count);
}

/** Decode a file that is complete, and find what marks its end. */
static qat_status decode_whole(qat_picture *p, const uint8_t *bytes, int count, const char *path,
                               int channels, qat_error *err)
{
    static const stbi_io_callbacks calls = {source_read, source_skip, source_at_end};
    source s = {.bytes = bytes, .count = count};
    int found;
    p->pixels = stbi_load_from_callbacks(&calls, &s, &p->width, &p->height, &found, channels);
    if (s.cut)
        return truncated(path, count, err);
    if (!p->pixels)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: broken picture (%s)", path,
                        stbi_failure_reason());
    return QAT_OK;
}

/* ------------------------------------------------------------------ JPEG without an end */

enum { FOLLOWING = 64 }; /* bytes: more than stb_image reads ahead of what it needs */

/** Decode `count` bytes of a JPEG as if these two bytes (in turn) and the end marker followed. */
static uint8_t *decode_followed(uint8_t *bytes, int count, const uint8_t following[2], int channels)
{
    int height, width, found;
    for (int i = 0; i < FOLLOWING; i++)
        bytes[count + i] = following[i % 2];
    bytes[count + FOLLOWING] = 0xff;
    bytes[count + FOLLOWING + 1] = 0xd9;
    return stbi_load_from_memory(bytes, count + FOLLOWING + 2, &width, &height, &found, channels);
}

/**
 * Does the decoder need another Huffman code? No code consists of only 1s, whatever its length: if
 * 1s follow, the decoder stops there. If it needs no code, it looks for the next marker; 0xff 0x00
 * (1s as data) is not a marker.
 */
static bool wants_code(uint8_t *bytes, int count, int channels)
{
    uint8_t *pixels = decode_followed(bytes, count, (const uint8_t[2]){0xff, 0}, channels);
    bool const stopped = !pixels && strcmp(stbi_failure_reason(), "unknown marker") != 0;
    free(pixels);
    return stopped;
}

/** Is the picture the same for all bits that may follow? */
static bool is_settled(qat_picture *p, uint8_t *bytes, int count, int channels)
{
    size_t const values = (size_t)p->height * (size_t)p->width * (size_t)channels;
    if (wants_code(bytes, count, channels))
        return false;
    p->pixels = decode_followed(bytes, count, (const uint8_t[2]){0, 0}, channels);
    uint8_t *other =
        p->pixels ? decode_followed(bytes, count, (const uint8_t[2]){0xfe, 0xfe}, channels) : NULL;
    bool const alike = other && memcmp(p->pixels, other, values) == 0;
    free(other);
    return alike;
}

/** Decode a JPEG that lacks only its end marker. */
static qat_status decode_endless(qat_picture *p, const uint8_t *bytes, int count, const char *path,
                                 int channels, qat_error *err)
{
    int const whole = count;
    while (count > 0 && bytes[count - 1] == 0xff) /* part of the marker, or fill bytes before it */
        count--;
    uint8_t *longer = malloc((size_t)count + FOLLOWING + 2);
    if (!longer)
        return qat_fail(err, QAT_ERR_NOMEM, "%s: no memory to decode", path);
    memcpy(longer, bytes, (size_t)count);
    bool const settled = is_settled(p, longer, count, channels);
    free(longer);
    return settled ? QAT_OK : truncated(path, whole, err);
}

/* ------------------------------------------------------------------ files */

static qat_status decode_bytes(qat_picture *p, const uint8_t *bytes, int count, const char *path,
                               int channels, qat_error *err)
{
    return qat_jpeg_lacks_end(bytes, (size_t)count)
               ? decode_endless(p, bytes, count, path, channels, err)
               : decode_whole(p, bytes, count, path, channels, err);
}

qat_status qat_picture_read(qat_picture *p, const char *path, int channels, qat_error *err)
{
    uint8_t *bytes;
    size_t count;
    int found;
    *p = (qat_picture){0};
    qat_status st = qat_file_read(path, MAX_FILE_BYTES, &bytes, &count, err);
    if (st)
        return st;
    if (count == 0)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: empty file", path);
    else if (!stbi_info_from_memory(bytes, (int)count, &p->width, &p->height, &found))
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: not a picture that stb_image can read (%s)", path,
                      stbi_failure_reason());
    else if (p->width < 1 || p->height < 1 || p->width > MAX_PIXELS / p->height)
        st = qat_fail(err, QAT_ERR_FORMAT, "%s: %d x %d pixels, more than %d", path, p->height,
                      p->width, MAX_PIXELS);
    if (!st)
        st = decode_bytes(p, bytes, (int)count, path, channels, err);
    free(bytes);
    return st;
}
