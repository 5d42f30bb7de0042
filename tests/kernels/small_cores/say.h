/** Lines of text, on a computer and on a processor that qemu emulates. */
#ifndef QAT_TESTS_SAY_H
#define QAT_TESTS_SAY_H

#include <stdint.h>

/** Print "what index digest". */
void say(const char *what, uint32_t index, uint32_t digest);

#endif
