/**
 * Fuzz target: checkpoints, and what qat-inspect shows of them.
 *
 * The bytes are read twice: as they are, and with magic, size and CRC made right, so that changes
 * reach the parser. If a checkpoint is accepted, it is written and read again, its weights are read
 * as train.init reads them, and it is restored. If its network is small, everything that
 * qat-inspect prints is printed. A checkpoint that names a plugin is refused, because none is
 * given. Mutations: checkpoint_mutate.c.
 */
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_data.h"
#include "fuzz/fuzz_files.h"
#include "fuzz/fuzz_network.h"
#include "fuzz/mutations/checkpoint_image.h"

#include "checkpoint/restore.h"
#include "finetune/weights_file.h"
#include "recipe/recipe.h"
#include "tools/inspect/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 18 };

static qat_checkpoint *parse(const uint8_t *bytes, size_t size)
{
    qat_checkpoint *c = NULL;
    qat_error err = {0};
    qat_status const st = qat_checkpoint_parse(&c, bytes, size, "input", &err);
    fuzz_check_status(st, &err);
    fuzz_require((st == QAT_OK) == (c != NULL), "a checkpoint exactly where nothing is wrong");
    return c;
}

/**
 * A checkpoint that was read and written again is accepted. A second writing gives the same bytes.
 */
static void write_again(const qat_checkpoint *c)
{
    static uint8_t first[MOST_BYTES], second[MOST_BYTES];
    char path[FUZZ_PATH_MAX];
    qat_checkpoint *again = NULL;
    fuzz_require(qat_checkpoint_save(c, fuzz_path(path, "b.ckpt"), NULL) == QAT_OK,
                 "an accepted checkpoint can be written");
    fuzz_require(qat_checkpoint_load(&again, path, NULL) == QAT_OK, "what is written is accepted");
    size_t const n = fuzz_file_read(path, first, sizeof first);
    fuzz_require(qat_checkpoint_save(again, path, NULL) == QAT_OK, "and written again");
    size_t const m = fuzz_file_read(path, second, sizeof second);
    fuzz_require(n == m && memcmp(first, second, n) == 0, "with the same bytes");
    qat_checkpoint_free(again);
}

static void read_weights(const char *path)
{
    qat_weights_file file;
    qat_error err = {0};
    fuzz_check_status(qat_weights_read(&file, path, QAT_DEFAULT_DATA_MEMORY, &err), &err);
    qat_weights_free(&file);
}

/* ------------------------------------------------------------------ what qat-inspect shows */

static void ignore(void *context, const char *text)
{
    fuzz_require(strlen(text) > 0, "a warning says something");
}

/** Stands in for tool_log (see meson.build), which would write warnings to standard error. */
extern const qat_log __wrap_tool_log;
const qat_log __wrap_tool_log = {ignore, NULL};

static void print_tensors(inspected *x)
{
    enum { VALUES = 4, TENSORS = 3 };
    const qat_checkpoint *c = x->restored->checkpoint;
    qat_error err = {0};
    for (int i = 0; i < c->n_params && i < TENSORS; i++)
        fuzz_check_status(inspect_print_tensor(x, c->params[i].name, VALUES, i % 2, &err), &err);
    fuzz_check_status(inspect_print_tensor(x, "0", VALUES, false, &err), &err);
    fuzz_check_status(inspect_print_tensor(x, "no such tensor", VALUES, true, &err), &err);
}

static void inspect(const char *path)
{
    static const tool_list no_plugins;
    static const char *const stages[] = {"float", "all"};
    inspected x;
    qat_error err = {0};
    qat_status const st = inspect_open(&x, path, TOOL_FILE_CHECKPOINT, &no_plugins, &err);
    fuzz_check_status(st, &err);
    if (!st) {
        inspect_print(&x);
        inspect_print_json(&x);
        if (x.graph)
            inspect_print_integer_graph(x.graph, true);
        print_tensors(&x);
    }
    inspect_close(&x);
    for (int i = 0; i < 2; i++)
        fuzz_check_status(
            inspect_graphs(path, TOOL_FILE_CHECKPOINT, &no_plugins, stages[i], i == 0, &err), &err);
}

/** Skip networks for which inspecting would train or read data. */
static bool may_be_inspected(const qat_restored *r)
{
    return fuzz_network_is_small(r->float_graph) && r->recipe->quant.bn_reestimate <= 0;
}

/** Ask a restored checkpoint what the commands ask of it after restoring. */
static void change_settings(qat_restored *r)
{
    static const char *const sets[] = {"quant.layout=int8", "quant.weight_bits=4"};
    static const char *const refused[] = {"quant.enabled=no"};
    qat_error err = {0};
    qat_restored_use_raw(r);
    fuzz_check_status(qat_restored_set_quant(r, sets, 2, &err), &err);
    fuzz_require(qat_restored_set_quant(r, refused, 1, &err) == QAT_ERR_ARGUMENT,
                 "a key that cannot change after training is refused");
}

static void restore(const char *path)
{
    qat_restored *r = NULL;
    qat_error err = {0};
    qat_status const st = qat_restore(&r, path, NULL, 0, &err);
    fuzz_check_status(st, &err);
    bool const shown = r && may_be_inspected(r);
    if (r)
        change_settings(r);
    qat_restored_free(r);
    if (shown) {
        fuzz_mute();
        inspect(path);
        fuzz_unmute();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH_MAX];
    qat_checkpoint_free(parse(data, size));
    uint8_t *sealed = fuzz_allocate(sizeof(void *), size);
    if (size)
        memcpy(sealed, data, size);
    checkpoint_seal(sealed, size);
    qat_checkpoint *c = parse(sealed, size);
    if (c) {
        write_again(c);
        read_weights(fuzz_file(path, "a.ckpt", sealed, size));
        restore(path);
    }
    qat_checkpoint_free(c);
    free(sealed);
    return 0;
}
