/**
 * Runs models with known answers on every instruction set of this processor, with one thread and
 * with two. All bytes of all outputs must equal the answers stored in the files. The scalar kernels
 * read packed codes as a device does with one thread, and unpacked ones with two.
 *
 *     replay FOLDER        every .qm in it; by default the folder that $QAT_REPLAY names
 *
 * The program needs only the engine, so it runs where nothing else does. The files come from tests
 * that know the answers from elsewhere (common/common.h: test_keep_model). For one-op models of
 * every operator the answers are TensorFlow Lite's. For random layers they are computed directly
 * from the formulas.
 */
#include "infer/host/host.h"
#include "infer/host/loops/fast.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What came of all models on one instruction set. */
struct tally {
    const char *isa;
    int models, differing;
    int nodes, fast; /* ops, and those that inner loops of this set ran */
    char first[QAT_ERROR_MESSAGE_MAX];
};

static void wrong(struct tally *t, const char *message)
{
    if (t->differing++ == 0)
        snprintf(t->first, sizeof t->first, "%s", message);
}

/* ------------------------------------------------------------------ one model */

enum { MOST_PORTS = 64 };

static size_t output_bytes(const qi_model *m, int32_t i)
{
    return qi_tensor_at(m, qi_output_at(m, i))->bytes;
}

/** The first byte that differs from the answers, into t. */
static void compare(struct tally *t, const char *path, const qi_host *host, int32_t step,
                    void *const *out)
{
    char message[QAT_ERROR_MESSAGE_MAX];
    for (int32_t i = 0; i < qi_output_count(host->model); i++) {
        size_t const at = (size_t)step * output_bytes(host->model, i);
        const uint8_t *want = (const uint8_t *)qi_kat_output(host->model, i) + at, *got = out[i];
        for (size_t b = 0; b < output_bytes(host->model, i); b++)
            if (got[b] != want[b]) {
                snprintf(message, sizeof message,
                         "%.300s: %s, %d threads: run %d, output %d, byte %zu is %d, expected %d",
                         path, qi_host_isa(host), qi_host_threads(host), (int)step, (int)i, b,
                         got[b], want[b]);
                wrong(t, message);
                return;
            }
    }
}

static void run(struct tally *t, const char *path, const qi_host *host)
{
    const qi_model *m = host->model;
    const void *in[MOST_PORTS];
    void *out[MOST_PORTS];
    for (int32_t i = 0; i < qi_output_count(m); i++) {
        out[i] = malloc(output_bytes(m, i));
        if (!out[i])
            abort();
        memset(out[i], 0xa5, output_bytes(m, i));
    }
    for (int32_t step = 0; step < qi_kat_steps(m); step++) {
        for (int32_t i = 0; i < qi_input_count(m); i++)
            in[i] = (const uint8_t *)qi_kat_input(m, i) +
                    (size_t)step * qi_tensor_at(m, qi_input_at(m, i))->bytes;
        qi_host_run(host, in, out);
        compare(t, path, host, step, out);
    }
    for (int32_t i = 0; i < qi_output_count(m); i++)
        free(out[i]);
}

static void replay(struct tally *t, const char *path, int threads)
{
    qat_error err;
    qi_host *host = NULL;
    int const as_device = strcmp(t->isa, "scalar") == 0 && threads == 1;
    qi_host_options const options = {
        .struct_size = sizeof options, .isa = t->isa, .threads = threads, .keep_packed = as_device};
    if (qi_host_open(&host, path, &options, &err)) {
        wrong(t, err.message);
        return;
    }
    if (!qi_kat_input(host->model, 0) || qi_input_count(host->model) > MOST_PORTS ||
        qi_output_count(host->model) > MOST_PORTS) {
        snprintf(err.message, sizeof err.message, "%.400s: holds no known answer, or too many",
                 path);
        wrong(t, err.message);
    } else {
        run(t, path, host);
        for (int32_t i = 0; i < qi_node_count(host->model); i++)
            t->fast += host->steps->steps[i].fast != NULL;
        t->nodes += qi_node_count(host->model);
        t->models++;
    }
    qi_host_close(host);
}

/* ------------------------------------------------------------------ all models */

static int is_model(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".qm") == 0;
}

/** True: all answers are right. */
static int replay_all(const char *folder, struct dirent *const *names, int count, const char *isa)
{
    char path[1024];
    struct tally t = {.isa = isa};
    for (int i = 0; i < count; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
            replay(&t, path, threads);
        }
    printf("%s replay on %s: %d models by 1 and 3 threads, %d of %d ops by its own inner loops, %d "
           "wrong\n",
           t.differing ? "not ok -" : "ok -", isa, t.models / 2, t.fast / 2, t.nodes / 2,
           t.differing);
    if (t.differing)
        printf("%s\n", t.first);
    return t.differing == 0;
}

enum { EXIT_SKIPPED = 77 }; /* meson's */

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : getenv("QAT_REPLAY");
    struct dirent **names = NULL;
    if (!folder || !*folder) {
        printf("SKIP replay: no folder of models is given (QAT_REPLAY)\n");
        return EXIT_SKIPPED;
    }
    int const count = scandir(folder, &names, is_model, alphasort);
    if (count <= 0) {
        printf("not ok - replay: no models in %s\n", folder);
        return 1;
    }
    int fine = 1;
    for (int i = 0; qi_isa_name(i); i++)
        if (qi_isa_runs_here(qi_isa_name(i)))
            fine &= replay_all(folder, names, count, qi_isa_name(i));
        else
            printf("not on this processor: %s\n", qi_isa_name(i));
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return !fine;
}
