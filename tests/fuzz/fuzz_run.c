#include "fuzz/fuzz_run.h"
#include "fuzz/fuzz.h"

#include "infer/host/host.h"
#include "infer/model/qm_layout.h"
#include "qat/border.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ARENA = 1 << 20,
    MOST_WORK = 1 << 20, /* values and products of one run, about */
    HARD_VALUE = 32      /* work of one value that is no product: exponentials, divisions */
};

/* ------------------------------------------------------------------ opening */

/** Every refusal has a status, its text, and a message. */
static qi_status refused(qi_status status, const qi_error *err)
{
    qat_error told = {0};
    fuzz_require(err->status == status && err->what != NULL, "an error says what is wrong");
    fuzz_require(qi_error_tell(err, "input", &told) != QAT_OK, "an error has a kind");
    fuzz_require(strlen(told.message) > 7, "an error has a sentence");
    return status;
}

qi_status fuzz_model_open(struct fuzz_model *m, const uint8_t *bytes, size_t count)
{
    qi_error err = {0};
    size_t need = 0;
    *m = (struct fuzz_model){.qm = fuzz_allocate(QI_ALIGN, count), .qm_bytes = count};
    memcpy(m->qm, bytes, count);
    qi_status st = qi_model_bytes(m->qm, count, &need, &err);
    if (st)
        return refused(st, &err);
    m->memory = fuzz_allocate(QI_ALIGN, need);
    st = qi_model_init(&m->model, m->qm, count, NULL, m->memory, need, &err);
    fuzz_require(!st == (m->model != NULL), "a model exactly where nothing is wrong");
    return st ? refused(st, &err) : QI_OK;
}

void fuzz_model_close(struct fuzz_model *m)
{
    free(m->memory);
    free(m->qm);
}

/* ------------------------------------------------------------------ how much work is it? */

static int64_t count_of(const qi_tensor *t)
{
    return (int64_t)t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

/** Values before the last dimension. */
static int64_t pixels_of(const qi_tensor *t)
{
    return count_of(t) / t->dims[t->rank - 1];
}

static int64_t clipped(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/** Products of a layer with weights, at most: each weight at each pixel of x or y. */
static int64_t products(const qi_tensor *x, const qi_tensor *w, const qi_tensor *y)
{
    if (w->rank == 2)
        return count_of(y) * w->dims[1];
    int64_t const pixels = pixels_of(x) > pixels_of(y) ? pixels_of(x) : pixels_of(y);
    return count_of(w) > INT64_MAX / pixels ? INT64_MAX : pixels * count_of(w);
}

static int64_t window_values(const qi_node *n, const qi_tensor *x, const qi_tensor *y)
{
    return count_of(y) * clipped(n->params[0], x->dims[1]) * clipped(n->params[1], x->dims[2]);
}

static int64_t work_of(const qi_model *m, const qi_node *n)
{
    const qi_tensor *x = qi_tensor_at(m, n->inputs[0]), *y = qi_tensor_at(m, n->outputs[0]);
    int64_t work = HARD_VALUE * (count_of(x) + count_of(y));
    if (n->n_inputs == 5 && n->max_accumulator)
        work += clipped(products(x, qi_tensor_at(m, n->inputs[1]), y), MOST_WORK);
    if (n->kernel->products == QI_PRODUCTS_MATRIX) /* at most all values of x for each of y */
        work +=
            clipped(count_of(y) * x->dims[x->rank - 1] * (x->rank > 1 ? x->dims[x->rank - 2] : 1),
                    MOST_WORK);
    if (n->kernel->products == QI_PRODUCTS_RECURRENT)
        work += clipped(qi_model_macs(m), MOST_WORK);
    if (strstr(n->kernel->name, "_pool2d"))
        work += clipped(window_values(n, x, y), MOST_WORK);
    return work;
}

int fuzz_is_small(const qi_model *m)
{
    int64_t work = 0;
    if (qi_arena_bytes(m) > MOST_ARENA)
        return 0;
    for (int32_t i = 0; i < qi_node_count(m) && work <= MOST_WORK; i++)
        work += work_of(m, qi_node_at(m, i));
    return work <= MOST_WORK;
}

/* ------------------------------------------------------------------ running */

/**
 * Make inputs that depend only on the file, and memory for outputs of exactly the size that they
 * need.
 */
struct io {
    int32_t n_in, n_out;
    void *in[QM_MAX_IO], *out[QM_MAX_IO];
};

static void *noise(size_t n, uint64_t seed)
{
    uint8_t *bytes = fuzz_allocate(sizeof(void *), n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)fuzz_random(&seed);
    return bytes;
}

static void io_make(struct io *io, const qi_model *m, uint32_t seed)
{
    io->n_in = qi_input_count(m);
    io->n_out = qi_output_count(m);
    for (int32_t i = 0; i < io->n_in; i++)
        io->in[i] = noise(qi_tensor_at(m, qi_input_at(m, i))->bytes, seed + (uint64_t)i);
    for (int32_t i = 0; i < io->n_out; i++)
        io->out[i] = fuzz_allocate(sizeof(void *), qi_tensor_at(m, qi_output_at(m, i))->bytes);
}

static void io_free(struct io *io)
{
    for (int32_t i = 0; i < io->n_in; i++)
        free(io->in[i]);
    for (int32_t i = 0; i < io->n_out; i++)
        free(io->out[i]);
}

/** Compute a digest of every tensor, and then of the outputs. */
static void digest_tensor(void *digest, const qi_model *m, int32_t tensor, const void *data)
{
    *(uint32_t *)digest = qm_crc32(*(uint32_t *)digest, data, qi_tensor_at(m, tensor)->bytes);
}

static uint32_t digest_outputs(uint32_t digest, const qi_model *m, const struct io *io)
{
    for (int32_t i = 0; i < io->n_out; i++)
        digest = qm_crc32(digest, io->out[i], qi_tensor_at(m, qi_output_at(m, i))->bytes);
    return digest;
}

/** States carry on from run to run. */
static int runs_of(const qi_model *m)
{
    return qi_state_count(m) ? 2 : 1;
}

static uint32_t run_core(const qi_model *m, struct io *io, int fill)
{
    uint32_t digest = 0;
    void *arena = fuzz_allocate(QI_ALIGN, qi_arena_bytes(m));
    memset(arena, fill, qi_arena_bytes(m));
    qi_reset(m, arena);
    for (int run = 0; run < runs_of(m); run++)
        qi_run_visit(m, arena, (const void *const *)io->in, io->out, digest_tensor, &digest);
    if (qi_kat_input(m, 0))
        qi_self_test(m, arena, NULL);
    free(arena);
    return digest_outputs(digest, m, io);
}

static uint32_t run_host(const struct fuzz_model *m, struct io *io, const char *isa, int threads)
{
    qi_host_options const options = {.isa = isa, .threads = threads};
    uint32_t digest = 0;
    qi_host *host = NULL;
    fuzz_require(qi_host_open_bytes(&host, m->qm, m->qm_bytes, "input", &options, NULL) == QAT_OK,
                 "the host opens what the core opens");
    memset(host->arena, 0x5a, qi_host_sizes(host).host_arena);
    qi_host_reset(host, NULL);
    for (int run = 0; run < runs_of(host->model); run++)
        qi_host_run_visit(host, NULL, (const void *const *)io->in, io->out, digest_tensor, &digest);
    digest = digest_outputs(digest, host->model, io);
    qi_host_close(host);
    return digest;
}

/** With one of the instruction sets that run here, or with all. */
static void run_hosts(const struct fuzz_model *m, struct io *io, uint32_t seed, uint32_t expected)
{
    enum { MOST_SETS = 16, MOST_THREADS = 3 };
    const char *here[MOST_SETS];
    uint32_t n = 0;
    for (int i = 0; qi_isa_name(i) && n < MOST_SETS; i++)
        if (qi_isa_runs_here(qi_isa_name(i)))
            here[n++] = qi_isa_name(i);
    for (uint32_t i = 0; i < n; i++)
        if (fuzz_thorough || i == seed % n)
            fuzz_require(run_host(m, io, here[i], 1 + (int)(seed / MOST_SETS % MOST_THREADS)) ==
                             expected,
                         "host and core give the same bytes");
}

/** What surrounds the engine: the first input and output as real numbers, a detector's end. */
static void run_outside(const qi_model *m, const struct io *io)
{
    const qi_tensor *x = qi_tensor_at(m, qi_input_at(m, 0)),
                    *y = qi_tensor_at(m, qi_output_at(m, 0));
    size_t const nx = qat_tensor_values(x), ny = qat_tensor_values(y);
    float *values = fuzz_allocate(sizeof(void *), (nx > ny ? nx : ny) * sizeof *values);
    qat_detections found;
    qat_error err;
    memset(values, 0x3f, nx * sizeof *values);
    if (x->border)
        qat_border_quantize_at(m, qi_input_at(m, 0), values, io->in[0]);
    if (y->border)
        qat_border_dequantize_at(m, qi_output_at(m, 0), io->out[0], values);
    if (qat_is_detector(m) && qat_detector_limit(m, "fuzz", &(qi_limits){0}, &err) == QAT_OK &&
        qat_detect(&found, m, (const void *const *)io->out, &err) == QAT_OK)
        qat_detections_free(&found);
    free(values);
}

void fuzz_run(const struct fuzz_model *m)
{
    struct io io;
    uint32_t const seed = qm_crc32(0, m->qm, m->qm_bytes);
    if (!fuzz_is_small(m->model))
        return;
    io_make(&io, m->model, seed);
    uint32_t const first = run_core(m->model, &io, 0);
    fuzz_require(run_core(m->model, &io, 0xff) == first, "the arena's old content does not matter");
    run_hosts(m, &io, seed, first);
    run_outside(m->model, &io);
    io_free(&io);
}
