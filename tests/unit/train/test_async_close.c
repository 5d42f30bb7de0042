/** Closing asynchronous training: memory into which a message may still come is not freed. */
#include "tests/common/suite.h"
#include "train/asynchronous.h"
#include "train/asynchronous/link.h"

#include <malloc.h>
#include <string.h>

/* The linker's --wrap sends calls of free to __wrap_free. */
void __real_free(void *memory);
void __wrap_free(void *memory);

enum { LINKS = 2, MOST = 4 };

/** What is on its way, by the ranks below; how many of these pieces were freed. */
static struct {
    qat_piece pieces[MOST];
    int n, freed;
} post;

void __wrap_free(void *memory)
{
    const char *begin = memory;
    for (int i = 0; memory && i < post.n; i++) {
        const char *at = post.pieces[i].at;
        post.freed += at >= begin && at < begin + malloc_usable_size(memory);
    }
    __real_free(memory);
}

static qat_status begin(void *context, qat_exchange *x, qat_error *err)
{
    (void)context;
    (void)err;
    for (int i = 0; i < x->n_receive; i++)
        post.pieces[post.n++] = x->receive[i];
    return QAT_OK;
}

/** Fails if the context says so; else it has come. */
static qat_status done(void *context, qat_exchange *x, bool wait, bool *is_done, qat_error *err)
{
    const bool *fails = context;
    (void)x;
    (void)wait;
    *is_done = !*fails;
    return *fails ? qat_fail(err, QAT_ERR_STATE, "another rank is dead") : QAT_OK;
}

static qat_async *open_links(const qat_ranks *ranks)
{
    qat_async *a = calloc(1, sizeof *a);
    ck_assert_ptr_nonnull(a);
    *a = (qat_async){.ranks = ranks, .n_params = 100, .n_gradients = 60, .n_observed = 7};
    a->links = calloc(LINKS, sizeof *a->links);
    ck_assert_ptr_nonnull(a->links);
    for (; a->n_links < LINKS; a->n_links++)
        ck_assert(!async_link_open(a, &a->links[a->n_links], a->n_links + 1, NULL));
    return a;
}

/** The server ends, and the second worker has not yet reported. */
START_TEST(receive_on_its_way)
{
    bool fails = _i == 1, came;
    qat_ranks const ranks = {.count = LINKS + 1, .context = &fails, .begin = begin, .done = done};
    qat_async *a = open_links(&ranks);
    async_link *links = a->links;
    ck_assert(!async_link_begin(a, &a->links[1], LINK_UP, false, NULL));
    ck_assert_int_eq(post.n, 3);
    if (fails) /* and asking for it fails */
        ck_assert(async_link_done(a, &a->links[1], LINK_UP, true, &came, NULL));
    qat_async_close(a);
    ck_assert_int_eq(post.freed, 0);
    for (int i = 0; i < post.n; i++)
        memset(post.pieces[i].at, 1, post.pieces[i].bytes);
    post.n = 0; /* it has come */
    links[1].ways[LINK_UP].on_its_way = false;
    ck_assert(async_link_free(&links[1]));
    free(links);
}
END_TEST

/** All has come: everything is freed. */
START_TEST(nothing_on_its_way)
{
    bool fails = false, came;
    qat_ranks const ranks = {.count = LINKS + 1, .context = &fails, .begin = begin, .done = done};
    qat_async *a = open_links(&ranks);
    ck_assert(!async_link_begin(a, &a->links[1], LINK_UP, false, NULL));
    ck_assert(!async_link_done(a, &a->links[1], LINK_UP, true, &came, NULL));
    qat_async_close(a);
    ck_assert_int_eq(post.freed, 3);
    post.n = post.freed = 0;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("async close");
    TCase *tcase = tcase_create("async close");
    tcase_add_loop_test(tcase, receive_on_its_way, 0, 2);
    tcase_add_test(tcase, nothing_on_its_way);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
