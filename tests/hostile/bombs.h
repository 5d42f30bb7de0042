/** Bombs: small files that ask for much memory or much work. See bombs.sh. */
#ifndef QAT_TESTS_BOMBS_H
#define QAT_TESTS_BOMBS_H

#include <stddef.h>
#include <stdint.h>

/** Write a file; ends the program if that fails. */
void bomb_write(const char *dir, const char *name, const void *bytes, size_t count);
/** Write all models into a folder. */
void bomb_models(const char *dir);
/** Write archives and packed files into a folder. */
void bomb_archives(const char *dir);

#endif
