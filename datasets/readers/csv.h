/** Lines and fields of CSV tables, cut in place. */
#ifndef QAT_DATASETS_CSV_H
#define QAT_DATASETS_CSV_H

#include <stdbool.h>

enum { QAT_CSV_COLUMNS = 256 };

/** The text after the byte-order mark that some programs write before UTF-8. */
char *qat_csv_text(char *text);
/** Cut off the next line; NULL: there is none. */
char *qat_csv_line(char **at);
/** Cut a line into its fields. Returns their number, or QAT_CSV_COLUMNS + 1. */
int qat_csv_fields(char *line, const char *fields[QAT_CSV_COLUMNS]);
/** Is a field empty or NA? */
bool qat_csv_unknown(const char *field);

#endif
