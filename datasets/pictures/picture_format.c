/** The formats of picture files that can be read, and how files of other formats are named. */
#include "datasets/pictures/picture.h"

#include <string.h>
#include <strings.h>

static bool starts_with(const uint8_t *bytes, size_t count, const char *start, size_t n)
{
    return count >= n && memcmp(bytes, start, n) == 0;
}

static bool matches_png(const uint8_t *bytes, size_t count)
{
    return starts_with(bytes, count, "\x89PNG\r\n\x1a\n", 8);
}

static bool matches_jpeg(const uint8_t *bytes, size_t count)
{
    return starts_with(bytes, count, "\xff\xd8\xff", 3);
}

static bool matches_bmp(const uint8_t *bytes, size_t count)
{
    return starts_with(bytes, count, "BM", 2);
}

/** "P1" to "P6", then white space or a comment. */
static bool matches_pnm(const uint8_t *bytes, size_t count)
{
    return count >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' && bytes[2] &&
           strchr(" \t\n\v\f\r#", bytes[2]);
}

#define READER_PNG  matches_png, qat_picture_read_png
#define READER_JPEG matches_jpeg, qat_picture_read_jpeg
#define READER_BMP  matches_bmp, qat_picture_read_bmp
#define READER_PNM  matches_pnm, qat_picture_read_pnm
#define ENTRY(name) {#name, READER_##name},
static const qat_picture_format formats[] = {QAT_PICTURE_FORMATS(ENTRY, ENTRY)};

const qat_picture_format *qat_picture_format_of(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].matches(bytes, count))
            return &formats[i];
    return NULL;
}

/* ------------------------------------------------------------------ names of files */

const char qat_picture_endings[] = ".png .jpg .jpeg .bmp .pbm .pgm .ppm .pnm";

bool qat_picture_has_ending(const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t const n = dot ? strlen(dot) : 0;
    for (const char *e = qat_picture_endings; dot && *e;) {
        size_t const m = strcspn(e, " ");
        if (m == n && strncasecmp(e, dot, n) == 0)
            return true;
        e += m + (e[m] == ' ');
    }
    return false;
}

/* ------------------------------------------------------------------ other formats */

/** Formats that people meet and that cannot be read: some bytes, and where in the file they are. */
static const struct {
    const char *name, *start;
    size_t n, at;
} others[] = {{"a GIF file", "GIF8", 4, 0},
              {"a WebP file", "WEBP", 4, 8},
              {"a TIFF file", "II*\0", 4, 0},
              {"a TIFF file", "MM\0*", 4, 0},
              {"a Photoshop file", "8BPS", 4, 0},
              {"a HEIC or AVIF file", "ftyp", 4, 4},
              {"a PIC file", "\x53\x80\xf6\x34", 4, 0},
              {"an HDR file", "#?RADIANCE", 10, 0},
              {"a PAM file", "P7", 2, 0},
              {"a PFM file", "PF", 2, 0},
              {"a PDF file", "%PDF", 4, 0},
              {"a JPEG 2000 file", "jP  ", 4, 4},
              {"a JPEG XL file", "\xff\x0a", 2, 0}};

qat_status qat_picture_unknown(const qat_picture_file *file, qat_error *err)
{
    const char *what = "not a picture";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t const at = others[i].at;
        if (file->count > at &&
            starts_with(file->bytes + at, file->count - at, others[i].start, others[i].n)) {
            what = others[i].name;
            break;
        }
    }
    return qat_fail(err, QAT_ERR_FORMAT,
                    "%s: %s; these formats can be read: " QAT_PICTURE_FORMATS_TEXT, file->path,
                    what);
}
