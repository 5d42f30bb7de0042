#include "base/shown.h"

#include <stdio.h>
#include <string.h>

/** A character of UTF-8 at s, whose bytes are counted in *n; -1: the first byte begins none. */
static int32_t character_at(const unsigned char *s, size_t *n)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t const more = s[0] < 0x80 ? 0 : s[0] >> 5 == 6 ? 1 : s[0] >> 4 == 14 ? 2 : 3;
    int32_t c = more == 0 ? s[0] : s[0] & (0x3f >> more);
    *n = 1;
    if (s[0] >= 0xf8 || (s[0] >= 0x80 && s[0] < 0xc0))
        return -1;
    for (size_t i = 1; i <= more; i++) {
        if (s[i] >> 6 != 2)
            return -1;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[more + 1] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return -1;
    *n = more + 1;
    return c;
}

/** Can a person see it, and does it leave the others where they are? */
static bool can_be_seen(int32_t c)
{
    static const struct {
        int32_t first, last;
    } hidden[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},       /* controls */
        {0xad, 0xad},                         /* soft hyphen */
        {0x61c, 0x61c},   {0x180e, 0x180e},   /* marks of direction and of Mongolian */
        {0x200b, 0x200f}, {0x2028, 0x202e},   /* no width, direction, ends of lines */
        {0x2060, 0x206f}, {0xfeff, 0xfeff},   /* joiners, isolates, byte-order mark */
        {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}, /* annotations, tags */
    };
    bool seen = c >= 0;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        seen = seen && (c < hidden[i].first || c > hidden[i].last);
    return seen;
}

int32_t qat_character(const char *text, size_t *n, bool *plain)
{
    int32_t const c = character_at((const unsigned char *)text, n);
    *plain = can_be_seen(c);
    return c;
}

bool qat_is_plain(const char *text)
{
    bool plain = true;
    for (size_t n; *text && plain; text += n)
        (void)qat_character(text, &n, &plain);
    return plain;
}

/** Write the n bytes of a character; the number of bytes written. */
static size_t show(char out[4 * QAT_SHOWN_PER_BYTE + 1], const char *text, size_t n, bool plain,
                   bool quoted)
{
    size_t at = 0;
    if (plain && quoted && (*text == '"' || *text == '\\'))
        out[at++] = '\\';
    if (plain) {
        memcpy(out + at, text, n);
        return at + n;
    }
    for (size_t i = 0; i < n; i++)
        at += (size_t)sprintf(out + at, quoted ? "\\\\x%02x" : "\\x%02x", (unsigned char)text[i]);
    return at;
}

void qat_shown(char *to, size_t max, const char *text, bool quoted)
{
    char out[4 * QAT_SHOWN_PER_BYTE + 1]; /* sprintf ends it */
    size_t at = 0;
    for (size_t n; *text; text += n) {
        bool plain;
        (void)qat_character(text, &n, &plain);
        size_t const length = show(out, text, n, plain, quoted);
        if (at + length >= max)
            break;
        memcpy(to + at, out, length);
        at += length;
    }
    to[at] = 0;
}

void qat_write_json(qat_writer *w, const char *text)
{
    bool plain;
    qat_write_u8(w, '"');
    for (size_t n; *text; text += n) {
        int32_t const c = qat_character(text, &n, &plain);
        if (c == '"' || c == '\\')
            qat_write_text(w, "\\%c", (char)c);
        else if (!plain && c > 0xffff) /* a pair of surrogates: 0xd800 - (0x10000 >> 10) = 0xd7c0 */
            qat_write_text(w, "\\u%04x\\u%04x", 0xd7c0U + ((unsigned)c >> 10),
                           0xdc00U + (c & 0x3ffU));
        else if (!plain)
            qat_write_text(w, "\\u%04x", c < 0 ? 0xfffdU : (unsigned)c);
        else
            qat_write_bytes(w, text, n);
    }
    qat_write_u8(w, '"');
}

void qat_write_csv(qat_writer *w, const char *text)
{
    bool const quoted = strpbrk(text, ",\"\r\n") != NULL;
    qat_write_text(w, quoted ? "\"" : "");
    for (const char *at = text; *at; at++)
        qat_write_text(w, *at == '"' ? "\"%c" : "%c", *at);
    qat_write_text(w, quoted ? "\"" : "");
}
