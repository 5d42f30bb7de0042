/** What targets do with a network from another framework's file. */
#ifndef QAT_TESTS_FUZZ_FOREIGN_H
#define QAT_TESTS_FUZZ_FOREIGN_H

#include "foreign/foreign.h"

enum { FUZZ_FOREIGN_MEMORY = 32 << 20 };

/** Build it, as it is and with a new last layer. What is built runs within a limit of memory. */
void fuzz_foreign(const qat_foreign_graph *from);

#endif
