#include "tools/import_labels.h"

#include "base/files/file.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LABEL_BYTES = 1 << 24, MAX_LABELS = 65536 };

/** Cut off the line at `at`; returns what follows it. */
static char *cut_line(char *at)
{
    char *next = at + strcspn(at, "\r\n");
    char const first = *next;
    *next = 0;
    next += first != 0;
    return first == '\r' && *next == '\n' ? next + 1 : next;
}

static qat_status split_lines(import_labels *l, const char *path, qat_error *err)
{
    l->lines = calloc(MAX_LABELS, sizeof *l->lines);
    if (!l->lines)
        return qat_out_of_memory(err, path);
    for (char *at = l->text; *at;) {
        if (l->count == MAX_LABELS)
            return qat_fail(err, QAT_ERR_FORMAT, "%s: more than %d labels", path, MAX_LABELS);
        l->lines[l->count++] = at;
        at = cut_line(at);
    }
    return QAT_OK;
}

qat_status import_labels_read(import_labels *l, const char *path, qat_error *err)
{
    size_t count;
    uint8_t *text;
    *l = (import_labels){0};
    qat_status const st = qat_file_read(path, MAX_LABEL_BYTES, &text, &count, err);
    l->text = (char *)text;
    if (st)
        return st;
    const char *zero = count ? memchr(l->text, 0, count) : NULL;
    if (zero)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: not a text file (byte %zu is 0)", path,
                        (size_t)(zero - l->text));
    return split_lines(l, path, err);
}

void import_labels_free(import_labels *l)
{
    free(l->text);
    free(l->lines);
    *l = (import_labels){0};
}
