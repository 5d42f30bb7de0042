/** Lines and fields of CSV tables. */
#include "datasets/readers/csv.h"

#include <string.h>

char *qat_csv_line(char **at)
{
    char *line = *at;
    if (!line || !*line)
        return NULL;
    size_t const n = strcspn(line, "\n");
    *at = line + n + (line[n] == '\n');
    line[n] = 0;
    if (n && line[n - 1] == '\r')
        line[n - 1] = 0;
    return line;
}

/** Read a field in double quotes, in which "" stands for one; returns what follows it. */
static char *quoted(char *at)
{
    char *to = at++;
    for (; *at && (at[0] != '"' || at[1] == '"'); at++) {
        at += at[0] == '"';
        *to++ = *at;
    }
    char *end = *at ? at + 1 : at;
    char const next = *end;
    *to = 0;
    if (next == ',')
        return end + 1;
    return end;
}

int qat_csv_fields(char *line, const char *fields[QAT_CSV_COLUMNS])
{
    int n = 0;
    for (char *at = line; n <= QAT_CSV_COLUMNS; n++) {
        bool const in_quotes = *at == '"';
        size_t const length = strcspn(at, ",");
        char *rest = in_quotes ? quoted(at) : at + length;
        bool const more = in_quotes ? rest[-1] == ',' : *rest == ',';
        if (n < QAT_CSV_COLUMNS)
            fields[n] = at;
        if (!in_quotes && more)
            *rest++ = 0;
        at = rest;
        if (!more)
            return n + 1;
    }
    return n;
}

bool qat_csv_unknown(const char *field)
{
    return !*field || strcmp(field, "NA") == 0;
}

char *qat_csv_text(char *text)
{
    static const char mark[] = "\xef\xbb\xbf";
    return strncmp(text, mark, 3) ? text : text + 3;
}
