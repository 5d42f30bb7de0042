/**
 * The roof: how many multiply-adds per second one core can do with the instruction sequence of an
 * inner loop when all operands are in registers. No kernel that uses the sequence can be faster.
 */
#ifndef QAT_TOOLS_ROOF_H
#define QAT_TOOLS_ROOF_H

#include <stdint.h>

typedef struct tool_roof {
    const char *sequence; /* instructions; there is one chain of them per accumulator */
    const char *isa;      /* the engine's instruction set that uses the sequence */
    int usual; /* 1: the engine's products use it unless they name another; 0: few or none do */
    int macs;  /* multiply-adds of one round */
    void (*run)(int64_t rounds);
} tool_roof;

/** The sequences of this build, grouped by instruction set; NULL after the last one. */
const tool_roof *tool_roof_at(int i);

/**
 * GMAC/s of one core, the best of several measurements; 0 if this processor lacks the instructions.
 */
double tool_roof_measure(const tool_roof *roof);

/**
 * The fastest sequence in use of an instruction set, and its GMAC/s; NULL and 0 if none is known.
 */
const tool_roof *tool_roof_of(const char *isa, double *gmacs);

#endif
