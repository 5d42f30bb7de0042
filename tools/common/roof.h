/**
 * The roof: how many multiply-adds a second one core can do with the instruction sequence of an
 * inner loop, when all operands are in registers. No kernel that uses the sequence can be faster.
 */
#ifndef QAT_TOOLS_ROOF_H
#define QAT_TOOLS_ROOF_H

#include <stdint.h>

typedef struct tool_roof {
    const char *sequence; /* instructions, one chain of them an accumulator */
    const char *isa;      /* the engine's instruction set that uses it */
    int in_use;           /* 1: by the engine's matrix products; 0: measured beside them */
    int macs;             /* 8-bit multiply-adds of one round */
    void (*run)(int64_t rounds);
} tool_roof;

/** Sequences of this build, those of one instruction set side by side; NULL behind the last. */
const tool_roof *tool_roof_at(int i);

/** GMAC/s of one core, best of several measurements; 0: not on this processor. */
double tool_roof_measure(const tool_roof *roof);

/** The fastest sequence in use of an instruction set, and its GMAC/s; NULL and 0: none is known. */
const tool_roof *tool_roof_of(const char *isa, double *gmacs);

#endif
