/**
 * Fuzz target: the reader and builder of .onnx files, from bytes to a graph that runs.
 *
 * If a file is refused, there is a message. If it is built, the graph is planned within a limit of
 * memory, gets the file's parameters and runs forward. Mutations: onnx_mutate.c.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_foreign.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qat_foreign_graph *g = NULL;
    qat_error err = {0};
    qat_status const st = qat_onnx_parse(&g, data, size, "fuzz", FUZZ_FOREIGN_MEMORY, &err);
    fuzz_require((st == QAT_OK) == (g != NULL), "a graph exactly where nothing is wrong");
    fuzz_require(st == QAT_OK || strlen(err.message) > 0, "a message where something is wrong");
    if (g)
        fuzz_foreign(g);
    qat_foreign_free(g);
    return 0;
}
