/** Compares a model that was made to fit with the model itself. */
#include "bands/bands.h"

#include "base/rng.h"
#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 8 };

/** Run both models on the same random inputs, one after the other, and compare their outputs. */
typedef struct comparison {
    const qi_host *hosts[2];
    void **in, **out[2];
} comparison;

static void **tensors_of(int32_t n, int32_t (*at)(const qi_model *, int32_t), const qi_model *m)
{
    void **all = calloc((size_t)n + 1, sizeof *all);
    for (int32_t i = 0; all && i < n; i++)
        all[i] = malloc(qi_tensor_at(m, at(m, i))->bytes);
    return all;
}

static void free_tensors(void **all, int32_t n)
{
    for (int32_t i = 0; all && i < n; i++)
        free(all[i]);
    free(all);
}

static bool are_there(void *const *all, int32_t n)
{
    for (int32_t i = 0; all && i < n; i++)
        if (!all[i])
            return false;
    return all;
}

/** Random codes; of 8-bit types, such as the tensor's bits have. */
static void fill_input(uint8_t *bytes, const qi_tensor *t, qat_rng *rng)
{
    bool const is_narrow = qi_type_bytes(t->type) == 1;
    unsigned const codes = is_narrow ? 1u << t->bits : 256;
    unsigned const lowest = is_narrow && t->type == QI_S8 ? 256 - codes / 2 : 0;
    for (size_t k = 0; k < t->bytes; k++)
        bytes[k] = (uint8_t)(lowest + (unsigned)qat_rng_next(rng) % codes);
}

static bool compare_run(const comparison *c, qat_rng *rng)
{
    const qi_model *m = qi_host_model(c->hosts[0]);
    bool same = true;
    for (int32_t i = 0; i < qi_input_count(m); i++)
        fill_input(c->in[i], qi_tensor_at(m, qi_input_at(m, i)), rng);
    for (int h = 0; h < 2; h++)
        qi_host_run(c->hosts[h], (const void *const *)c->in, c->out[h]);
    for (int32_t i = 0; i < qi_output_count(m); i++)
        same =
            same && !memcmp(c->out[0][i], c->out[1][i], qi_tensor_at(m, qi_output_at(m, i))->bytes);
    return same;
}

static qat_status compare(const qi_host *a, const qi_host *b, qat_error *err)
{
    const qi_model *m = qi_host_model(a);
    int32_t const n_in = qi_input_count(m), n_out = qi_output_count(m);
    comparison c = {.hosts = {a, b}, .in = tensors_of(n_in, qi_input_at, m)};
    qat_rng rng = qat_rng_at(1, 0, 0);
    bool same = true;
    for (int h = 0; h < 2; h++) {
        c.out[h] = tensors_of(n_out, qi_output_at, m);
        qi_host_reset(c.hosts[h], NULL);
    }
    qat_status st =
        are_there(c.in, n_in) && are_there(c.out[0], n_out) && are_there(c.out[1], n_out)
            ? QAT_OK
            : qat_out_of_memory(err, "bands");
    for (int i = 0; !st && same && i < RUNS; i++)
        same = compare_run(&c, &rng);
    free_tensors(c.in, n_in);
    for (int h = 0; h < 2; h++) {
        free_tensors(c.out[h], n_out);
        qi_host_reset(c.hosts[h], NULL);
    }
    return same ? st
                : qat_fail(err, QAT_ERR_MISMATCH,
                           "the model that was made to fit gives other bytes than the model");
}

qat_status qat_banded_check(const qi_host *host, const uint8_t *bytes, size_t count, size_t ram,
                            const qi_kernel_list *kernels, qat_error *err)
{
    static const char *const isas[] = {NULL, "scalar"};
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < 2; i++) {
        qi_host *banded = NULL;
        st = qat_engine_open(&banded, bytes, count, kernels, isas[i], err);
        if (!st)
            st = compare(host, banded, err);
        if (!st && isas[i] && qi_model_ram(qi_host_model(banded)) > ram)
            st = qat_fail(err, QAT_ERR_MISMATCH,
                          "the model that was made to fit takes more RAM than planned");
        qi_host_close(banded);
    }
    return st;
}
