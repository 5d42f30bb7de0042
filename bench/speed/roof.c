/**
 * Prints the roofs of the engine's instruction sequences: the GMAC/s of one core if every operand
 * is in a register. One JSON object a line.
 *
 *     roof
 */
#include "tools/common/roof.h"

#include <stdio.h>

int main(void)
{
    const tool_roof *roof;
    for (int i = 0; (roof = tool_roof_at(i)); i++) {
        double const gmacs = tool_roof_measure(roof);
        if (gmacs > 0)
            printf("{\"isa\": \"%s\", \"sequence\": \"%s\", \"usual\": %s, "
                   "\"roof_gmac_per_s\": %.1f}\n",
                   roof->isa, roof->sequence, roof->usual ? "true" : "false", gmacs);
    }
    return 0;
}
