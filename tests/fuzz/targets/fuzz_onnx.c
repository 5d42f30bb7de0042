/**
 * Fuzz target: the reader, builder and importer of .onnx files, from bytes to a graph that runs, or
 * to the bytes of a .qm.
 *
 * If a file is refused, there is a message. If it is built, the graph is planned within a limit of
 * memory, gets the file's parameters and runs forward. If it is imported, the engine must accept
 * the .qm; a small one runs. Mutations: onnx_mutate.c.
 */
#include "convert/onnx/import.h"
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_foreign.h"
#include "fuzz/fuzz_run.h"
#include "qat/convert.h"

#include <stdlib.h>
#include <string.h>

static void import(const qat_foreign_graph *from)
{
    qat_qgraph *graph = NULL;
    qat_error err = {0};
    uint8_t *qm = NULL;
    size_t count = 0;
    struct fuzz_model m;
    qat_qm_metadata const metadata = {0};
    qat_status const st = oq_import(&graph, from, &err);
    fuzz_require((st == QAT_OK) == (graph != NULL), "a graph exactly where nothing is wrong");
    fuzz_require(st == QAT_OK || strlen(err.message) > 0, "a message where something is wrong");
    if (graph && !qat_qm_write(graph, &metadata, &qm, &count, &err)) {
        if (fuzz_model_open(&m, qm, count) == QI_OK)
            fuzz_run(&m);
        fuzz_model_close(&m);
    }
    free(qm);
    qat_qgraph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qat_foreign_graph *g = NULL;
    qat_error err = {0};
    qat_status const st = qat_onnx_parse(&g, data, size, "fuzz", FUZZ_FOREIGN_MEMORY, &err);
    fuzz_require((st == QAT_OK) == (g != NULL), "a graph exactly where nothing is wrong");
    fuzz_require(st == QAT_OK || strlen(err.message) > 0, "a message where something is wrong");
    if (g) {
        import(g);
        fuzz_foreign(g);
    }
    qat_foreign_free(g);
    return 0;
}
