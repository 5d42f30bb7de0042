/**
 * Fuzz target: the reader and importer of .tflite files, from bytes to an integer graph to the
 * bytes of a .qm.
 *
 * If a file is refused, there is a message. If it is imported, the engine must accept the .qm. If
 * the model is small, it runs, and core and host must give the same bytes. The file is also read as
 * a network of floats. Mutations: tflite_mutate.c.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_foreign.h"
#include "fuzz/fuzz_run.h"
#include "infer/host/host.h"

#include "qat/convert.h"

#include <stdlib.h>
#include <string.h>

/** Run it; is it small enough to be imported with known answers? */
static int run_imported(const uint8_t *qm, size_t count)
{
    struct fuzz_model m;
    fuzz_require(fuzz_model_open(&m, qm, count) == QI_OK, "an imported model is accepted");
    fuzz_run(&m);
    int const small = fuzz_is_small(m.model);
    fuzz_model_close(&m);
    return small;
}

/** Import it again with known answers. The engine must give these answers. */
static void import_answered(const uint8_t *data, size_t size)
{
    static const char *const labels[] = {"a", "b"};
    qat_import_options const options = {.labels = labels, .n_labels = 2, .known_answers = true};
    uint8_t *qm = NULL;
    size_t count = 0;
    qi_host *host = NULL;
    fuzz_require(qat_tflite_to_qm(data, size, &options, &qm, &count, NULL) == QAT_OK,
                 "what is imported is imported with known answers");
    fuzz_require(qi_host_open_bytes(&host, qm, count, "answered", NULL, NULL) == QAT_OK,
                 "and opens");
    fuzz_require(qi_self_test(host->model, host->arena, NULL) == QI_OK, "known answers are given");
    qi_host_close(host);
    free(qm);
}

static void read_floats(const uint8_t *data, size_t size)
{
    qat_foreign_graph *g = NULL;
    qat_error err = {0};
    qat_status const st = qat_float_tflite_parse(&g, data, size, "fuzz", FUZZ_FOREIGN_MEMORY, &err);
    fuzz_require((st == QAT_OK) == (g != NULL), "a graph exactly where nothing is wrong");
    fuzz_require(st == QAT_OK || strlen(err.message) > 0, "a message where something is wrong");
    if (g)
        fuzz_foreign(g);
    qat_foreign_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qat_import_options const options = {.description = "fuzz"};
    qat_error err = {0};
    uint8_t *qm = NULL;
    size_t count = 0;
    qat_status const st = qat_tflite_to_qm(data, size, &options, &qm, &count, &err);
    fuzz_require((st == QAT_OK) == (qm != NULL), "bytes exactly where nothing is wrong");
    fuzz_require(st == QAT_OK || strlen(err.message) > 0, "a message where something is wrong");
    if (qm && run_imported(qm, count) && (fuzz_thorough || size % 16 == 0))
        import_answered(data, size);
    free(qm);
    read_floats(data, size);
    return 0;
}
