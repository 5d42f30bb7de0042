/**
 * Fuzz target: the engine's reader of .qm files and, if a file is accepted, everything that uses
 * it.
 *
 * The bytes are read twice: as they are, and with magic, version, file_bytes and CRC made right, so
 * that changes reach the parser. Every function is called on an accepted model. It is read as an
 * integer graph and written again, and must be accepted again. If its arena and its work are small,
 * it runs, and every tensor is compared:
 *
 *     core, arena of zeros  =  core, arena of ones  =  host, an instruction set and threads
 *
 * Such a model is also written as C source, and made to fit less RAM.
 *
 * Mutations: qm_mutate.c.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_run.h"

#include "fuzz/mutations/qm_image.h"
#include "infer/model/model.h"
#include "qat/convert.h"
#include "qat/export.h"

#include <stdlib.h>
#include <string.h>

/** A pointer to text is readable up to its end. */
static size_t touch(const char *text)
{
    fuzz_require(text != NULL, "text is never NULL");
    return strlen(text);
}

static size_t ask_tensors(const qi_model *m)
{
    size_t sum = 0;
    for (int32_t i = 0; i < qi_tensor_count(m); i++) {
        const qi_tensor *t = qi_tensor_at(m, i);
        sum += touch(t->name);
        if (t->kind == QI_CONSTANT && t->packing == QI_PACKING_DERIVED)
            fuzz_require(t->bytes == 0 && !t->data, "derived scales have no byte");
        else if (t->kind == QI_CONSTANT)
            sum += ((const uint8_t *)t->data)[0] + ((const uint8_t *)t->data)[t->bytes - 1];
        else
            fuzz_require(t->offset + t->bytes <= qi_arena_bytes(m), "a tensor lies in the arena");
    }
    return sum;
}

static size_t ask_nodes(const qi_model *m)
{
    size_t sum = 0;
    for (int32_t i = 0; i < qi_node_count(m); i++) {
        const qi_node *n = qi_node_at(m, i);
        sum += touch(n->name) + touch(n->kernel->name);
        fuzz_require(n->scratch_offset + n->scratch_bytes <= qi_arena_bytes(m),
                     "scratch lies in the arena");
    }
    return sum;
}

/** The known answers' first and last bytes. */
static size_t ask_answers(const qi_model *m)
{
    size_t sum = 0, steps = (size_t)qi_kat_steps(m);
    for (int32_t i = 0; qi_kat_input(m, 0) && i < qi_input_count(m); i++)
        sum += ((const uint8_t *)qi_kat_input(
            m, i))[steps * qi_tensor_at(m, qi_input_at(m, i))->bytes - 1];
    for (int32_t i = 0; qi_kat_input(m, 0) && i < qi_output_count(m); i++)
        sum += ((const uint8_t *)qi_kat_output(
            m, i))[steps * qi_tensor_at(m, qi_output_at(m, i))->bytes - 1];
    return sum;
}

/** Name and tensors of what is computed behind the model. */
static size_t ask_epilogue(const qi_model *m)
{
    const qi_epilogue *e = qi_model_epilogue(m);
    size_t sum = e->name ? touch(e->name) : 0;
    for (int32_t i = 0; e->name && i < e->n_inputs; i++)
        sum += touch(qi_tensor_at(m, e->inputs[i])->name);
    for (int32_t i = 0; e->name && i < e->n_params; i++)
        sum += (size_t)e->params[i];
    return sum;
}

static void ask_everything(const qi_model *m)
{
    size_t sum = ask_tensors(m) + ask_nodes(m) + ask_answers(m) + ask_epilogue(m) +
                 touch(qi_model_description(m));
    for (int32_t i = 0; i < qi_label_count(m); i++)
        sum += touch(qi_label_at(m, i));
    sum += qi_model_digest(m)[0] + (size_t)qi_model_preprocessing(m)->kind;
    fuzz_require(sum != SIZE_MAX, "no read is optimized away");
}

/** Turn a model into a graph and write it again. The engine must accept the result. */
static void write_again(const qi_model *m)
{
    qat_error err;
    qat_qgraph *graph = NULL;
    qat_qm_metadata const metadata = {.description = qi_model_description(m)};
    uint8_t *bytes = NULL;
    size_t count = 0;
    fuzz_require(qat_qm_read(&graph, m, &err) == QAT_OK, "an accepted model is readable");
    if (qat_qm_write(graph, &metadata, &bytes, &count, &err) == QAT_OK) {
        struct fuzz_model again;
        fuzz_require(fuzz_model_open(&again, bytes, count) == QI_OK,
                     "what is read and written again is accepted");
        fuzz_model_close(&again);
    }
    free(bytes);
    qat_qgraph_free(graph);
}

/** Host and core give the same answer about a file. */
static void open_on_host(const uint8_t *qm, size_t size, qi_status expected)
{
    qat_error err = {0};
    qi_host *host;
    qat_status const st = qi_host_open_bytes(&host, qm, size, "input", NULL, &err);
    fuzz_require((st != QAT_OK) == (expected != QI_OK), "host and core agree on the file");
    fuzz_require((st != QAT_OK) == (err.message[0] != 0), "a message where something is wrong");
    qi_host_close(host);
}

/** A model as C source: it is written, or a message says why it cannot be. */
static void write_c(const qi_host *host, uint32_t seed)
{
    qat_c_options const options = {.no_self_test = seed & 1,
                                   .caller_arena = seed & 2,
                                   .separate_weights = seed & 4,
                                   .strict = seed & 8,
                                   .no_preprocessing = seed & 16};
    qat_error err = {0};
    qat_c_files files;
    qat_status const st = qat_c_write(host, &options, &files, &err);
    fuzz_require(st ? err.message[0] != 0 : files.source_bytes > 0 && files.header_bytes > 0,
                 "C source, or a message");
    fuzz_require(!files.weights || options.separate_weights, "weights only if they were asked for");
    qat_c_files_free(&files);
}

/** A quarter less RAM: the model fits, or the message's least is above the limit. */
static void fit_ram(const qi_model *device, const qi_host *host)
{
    qat_error err = {0};
    qat_ram_plan plan = {0};
    qi_host *fitted = NULL;
    size_t const limit = qi_model_ram(device) / 4 * 3;
    qat_status const st = qat_fit_ram(&fitted, host, limit, &plan, &err);
    fuzz_require(st ? err.message[0] != 0 && !fitted : plan.ram <= limit, "it fits, or a message");
    qi_host_close(fitted);
}

/** What is made of an accepted model. It takes long: of mutations, every 32nd. */
static void convert(const struct fuzz_model *m)
{
    uint32_t const seed = qm_crc32(0, m->qm, m->qm_bytes);
    qi_host *host = NULL;
    if (!fuzz_is_small(m->model) || (!fuzz_thorough && seed / 32 % 32))
        return;
    fuzz_require(qi_host_open_bytes(&host, m->qm, m->qm_bytes, "input", NULL, NULL) == QAT_OK,
                 "the host opens what the core opens");
    write_c(host, seed);
    fit_ram(m->model, host);
    qi_host_close(host);
}

static void read_sealed(const uint8_t *data, size_t size)
{
    struct fuzz_model m;
    uint8_t *qm = fuzz_allocate(QI_ALIGN, size);
    memcpy(qm, data, size);
    qm_seal(qm, size);
    qi_status const st = fuzz_model_open(&m, qm, size);
    if (!st) {
        ask_everything(m.model);
        write_again(m.model);
        fuzz_run(&m);
        convert(&m);
    } else if (size % 8 == 0) {
        open_on_host(qm, size, st);
    }
    fuzz_model_close(&m);
    free(qm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_model m;
    fuzz_model_open(&m, data, size);
    fuzz_model_close(&m);
    read_sealed(data, size);
    return 0;
}
