#define _GNU_SOURCE /* dladdr, gnu_get_libc_version */
#include "train/agree.h"

#include "autograd/conv/product.h"
#include "base/checksums/sha256.h"
#include "base/files/file.h"
#include "base/gather.h"
#include "recipe/recipe.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

enum { BUILD_MAX = 1 << 28, CHANNEL = 3 };

/** What a rank sends to all others. Texts end with NUL, and all bytes behind it are 0. */
typedef struct record {
    int64_t failed, step, tensorboard;
    uint8_t recipe[32], data[2][32], build[32], state[32];
    char processor[192];
    char name[160];
    char message[QAT_ERROR_MESSAGE_MAX];
} record;

static void put_text(char *to, size_t max, const char *text)
{
    (void)snprintf(to, max, "%s", text);
}

static qat_status digest_recipe(const qat_trainer *t, uint8_t digest[32], qat_error *err)
{
    char *text = NULL;
    qat_status const st = qat_recipe_write_run(t->recipe, &text, err);
    if (!st)
        qat_sha256(text, strlen(text), digest);
    free(text);
    return st;
}

/** All that a checkpoint would hold now: weights, optimizer, network, teacher, plugins. */
static qat_status digest_state(const qat_trainer *t, uint8_t digest[32], qat_error *err)
{
    qat_writer w = {0};
    qat_status const st = qat_trainer_state_bytes(t, &w, err);
    if (!st)
        qat_sha256(w.bytes, w.count, digest);
    qat_writer_free(&w);
    return st;
}

/** The bytes of the file that has this function: the library, or a program that contains it. */
static void digest_build(uint8_t digest[32])
{
    Dl_info found;
    uint8_t *bytes = NULL;
    size_t count = 0;
    void *here;
    qat_status (*const function)(qat_trainer *, qat_status, qat_error *) = qat_trainer_agree;
    memcpy(&here, &function, sizeof here);
    if (dladdr(here, &found) && found.dli_fname &&
        !qat_file_read(found.dli_fname, BUILD_MAX, &bytes, &count, NULL))
        qat_sha256(bytes, count, digest);
    free(bytes);
}

/** All that chooses code at run time, and what else computes: the C library. */
static void describe_processor(char *text, size_t max)
{
    const qat_product_isa *product = qat_product_at(0);
    for (int i = 0; !product->runs_here(); i++)
        product = qat_product_at(i + 1);
#ifdef __GLIBC__
    const char *libc = gnu_get_libc_version();
#else
    const char *libc = "another C library";
#endif
    (void)snprintf(text, max, "products %s, OpenBLAS %s for %s, C library %s", product->name,
                   openblas_get_config(), openblas_get_corename(), libc);
}

/** Describe this rank; a failure becomes part of it. */
static void describe(const qat_trainer *t, qat_status st, const qat_error *why, record *r)
{
    qat_error err = {0};
    *r = (record){.failed = st, .step = t->step, .tensorboard = t->recipe->output.tensorboard};
    put_text(r->name, sizeof r->name, t->ranks->name(t->ranks->context));
    if (st && why)
        put_text(r->message, sizeof r->message, why->message);
    if (st)
        return;
    r->failed = digest_recipe(t, r->recipe, &err);
    if (!r->failed)
        r->failed = digest_state(t, r->state, &err);
    if (r->failed)
        put_text(r->message, sizeof r->message, err.message);
    memcpy(r->data[0], t->digests[0].sha256, sizeof r->data[0]);
    memcpy(r->data[1], t->digests[1].sha256, sizeof r->data[1]);
    digest_build(r->build);
    describe_processor(r->processor, sizeof r->processor);
}

static qat_status differs(const record *r, const record *first, const char *what,
                          const char *advice, qat_error *err)
{
    return qat_fail(err, QAT_ERR_STATE, "%.150s has another %s than %.150s: %s", r->name, what,
                    first->name, advice);
}

/** async: no result depends on who computes what alone, so processors may differ. */
static qat_status compare(const record *r, const record *first, bool async, qat_error *err)
{
    if (r->failed)
        return qat_fail(err, (qat_status)r->failed, "%.150s: %.800s", r->name, r->message);
    if (memcmp(r->build, first->build, sizeof r->build))
        return differs(r, first, "build of libqat", "copy the same files to all machines", err);
    if (!async && strcmp(r->processor, first->processor))
        return qat_fail(err, QAT_ERR_STATE,
                        "%.150s computes with %.190s, but %.150s with %.190s: the result would "
                        "depend on who computes what. OPENBLAS_CORETYPE makes OpenBLAS alike",
                        r->name, r->processor, first->name, first->processor);
    if (memcmp(r->recipe, first->recipe, sizeof r->recipe))
        return differs(r, first, "recipe", "give all ranks the same file and options", err);
    if (r->tensorboard != first->tensorboard)
        return differs(r, first, "output.tensorboard", "give all ranks the same one", err);
    for (int s = 0; s < 2; s++)
        if (memcmp(r->data[s], first->data[s], sizeof r->data[s]))
            return differs(r, first, s ? "test split" : "training split",
                           "all must read the same data", err);
    if (r->step != first->step)
        return qat_fail(err, QAT_ERR_STATE,
                        "%.150s continues at step %lld, but %.150s at step %lld: all must read the "
                        "same last.ckpt",
                        r->name, (long long)r->step, first->name, (long long)first->step);
    if (memcmp(r->state, first->state, sizeof r->state))
        return differs(r, first, "network to begin with",
                       "train.init, the teacher, plugins and last.ckpt must be the same files",
                       err);
    return QAT_OK;
}

qat_status qat_trainer_agree(qat_trainer *t, qat_status st, qat_error *err)
{
    record *all = calloc((size_t)t->ranks->count, sizeof *all);
    if (!all)
        return qat_out_of_memory(err, "ranks");
    t->agreed = true;
    describe(t, st, err, &all[t->ranks->rank]);
    qat_status agreed = qat_ranks_gather(t->ranks, CHANNEL, all, sizeof *all, err);
    if (!agreed && all[0].failed) /* as without other ranks */
        agreed = qat_fail(err, (qat_status)all[0].failed, "%s", all[0].message);
    for (int rank = 1; !agreed && rank < t->ranks->count; rank++)
        agreed = compare(&all[rank], &all[0], t->async, err);
    free(all);
    return agreed;
}
