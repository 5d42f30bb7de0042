/**
 * Private to lib/budget: numbers that take time to measure, kept in a file. A search that was
 * interrupted finds them again, and so does one with another budget. Several processes may share a
 * file: each adds its numbers to those that it finds.
 *
 *     # network 5d41..., digits: 12000 training pictures, samples 1000, settings 7c9e...
 *     layer,what,of,value
 *     none,loss,0,0.0912
 *     conv1,weights,4,0.0931
 */
#ifndef QAT_BUDGET_TABLE_H
#define QAT_BUDGET_TABLE_H

#include "qat/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { BUDGET_TABLE_BYTES = 67108864 }; /* of the file, at most */

typedef struct budget_row {
    char *key; /* "conv1,weights,4" */
    double value;
} budget_row;

typedef struct budget_table {
    char *path, *head; /* head: the first line, which says what the numbers are of */
    budget_row *rows;
    size_t n, capacity;
    bool replaces; /* what the file holds is forgotten when the first number is written */
} budget_table;

/** Read the file, if there is one. Another head is an error, unless forget is set. */
qat_status budget_table_open(budget_table *table, const char *path, const char *head, bool forget,
                             qat_error *err);
void budget_table_free(budget_table *table);
/** Has it this number? */
bool budget_table_get(const budget_table *table, const char *key, double *value);
/**
 * Add a number, write the file anew with what others have added to it, and give back the number as
 * it is written: so a search that continues goes on with the same bits.
 */
qat_status budget_table_put(budget_table *table, const char *key, double *value, qat_error *err);

#endif
