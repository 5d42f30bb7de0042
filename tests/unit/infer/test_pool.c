/* The pool of threads: every part once, rounds in order, several callers, forks, no threads to be
 * had. */
#include "common/suite.h"
#include "infer/host/pool.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PARTS = 512, MOST_THREADS = 8 };

/* ------------------------------------------------------------------ failing pthread_create */

static atomic_int creations, allowed = 1 << 30;

int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *context)
{
    atomic_fetch_add(&creations, 1);
    if (atomic_fetch_sub(&allowed, 1) <= 0)
        return EAGAIN;
    return __real_pthread_create(id, attr, fn, context);
}

/* ------------------------------------------------------------------ a job that checks itself */

typedef struct checked {
    int threads, pieces, rounds;
    atomic_int round;              /* which is running */
    atomic_int ended;              /* parts of it */
    atomic_int visits[MOST_PARTS]; /* of each part, in all rounds */
    atomic_int busy[MOST_THREADS]; /* is this thread number at work? */
    atomic_int used[MOST_THREADS]; /* parts that it did */
    atomic_int wrong;              /* one bit for each kind of mistake */
    int sums[MOST_PARTS];          /* plain memory, which a round reads from the round before */
    int next[MOST_PARTS];
    long sleep_ns; /* in each call */
    pthread_t caller;
} checked;

static void nap(long ns)
{
    if (ns > 0)
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void visit(void *context, int32_t round, int32_t first, int32_t end, int thread)
{
    checked *c = context;
    int const parts = c->threads * c->pieces;
    if (thread < 0 || thread >= c->threads || first < 0 || first >= end || end > parts) {
        atomic_fetch_or(&c->wrong, 1);
        return;
    }
    if (atomic_exchange(&c->busy[thread], 1))
        atomic_fetch_or(&c->wrong, 2); /* two calls with one number at the same time */
    if ((thread == 0) != (pthread_equal(pthread_self(), c->caller) != 0))
        atomic_fetch_or(&c->wrong, 4);
    if (atomic_load(&c->round) != round)
        atomic_fetch_or(&c->wrong, 8); /* a round began too early */
    /* Each round adds up its neighbours of the round before: the order of rounds is the result's.
     */
    const int *from = round % 2 ? c->next : c->sums;
    int *to = round % 2 ? c->sums : c->next;
    for (int p = first; p < end; p++) {
        atomic_fetch_add(&c->visits[p], 1);
        to[p] = (from[p] + 3 * from[(p + 1) % parts] + p + round) & 0xffff;
    }
    nap(c->sleep_ns);
    atomic_fetch_add(&c->used[thread], end - first);
    atomic_store(&c->busy[thread], 0);
    if (atomic_fetch_add(&c->ended, end - first) + end - first == parts) {
        atomic_store(&c->ended, 0);
        atomic_fetch_add(&c->round, 1);
    }
}

/** What the job's arrays hold in the end, computed by loops. */
static const int *expected_of(const checked *c)
{
    static _Thread_local int sums[2][MOST_PARTS];
    int const parts = c->threads * c->pieces;
    memset(sums, 0, sizeof sums);
    for (int r = 0; r < c->rounds; r++)
        for (int p = 0; p < parts; p++)
            sums[(r + 1) % 2][p] =
                (sums[r % 2][p] + 3 * sums[r % 2][(p + 1) % parts] + p + r) & 0xffff;
    return sums[c->rounds % 2];
}

/** Run a job, and return what was wrong with it: 0 is nothing. */
static int run_checked(checked *c, int threads, int pieces, int rounds, long sleep_ns)
{
    memset(c, 0, sizeof *c);
    c->threads = threads;
    c->pieces = pieces;
    c->rounds = rounds;
    c->sleep_ns = sleep_ns;
    c->caller = pthread_self();
    qi_pool_run(&(qi_pool_job){
        .fn = visit, .context = c, .rounds = rounds, .threads = threads, .pieces = pieces});
    for (int p = 0; p < MOST_PARTS; p++)
        if (atomic_load(&c->visits[p]) != (p < threads * pieces ? rounds : 0))
            atomic_fetch_or(&c->wrong, 16);
    const int *result = rounds % 2 ? c->next : c->sums;
    if (memcmp(result, expected_of(c), (size_t)(threads * pieces) * sizeof *result) != 0)
        atomic_fetch_or(&c->wrong, 32);
    return atomic_load(&c->wrong);
}

/* ------------------------------------------------------------------ one caller */

START_TEST(test_counts)
{
    static checked c;
    static const int pieces[] = {1, 2, 3, 4, 7, QI_POOL_MOST_PIECES};
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++)
            for (int rounds = 0; rounds <= 9; rounds += 3)
                ck_assert_int_eq(run_checked(&c, threads, pieces[k], rounds, 0), 0);
}
END_TEST

/** Threads come and go between jobs; none of them may take part in a job that is over. */
START_TEST(test_changing_counts)
{
    static checked c;
    unsigned state = 1;
    for (int i = 0; i < 2000; i++) {
        state = state * 1664525u + 1013904223u;
        int const threads = 1 + (int)(state >> 16) % 4, pieces = 1 + (int)(state >> 20) % 5;
        ck_assert_int_eq(run_checked(&c, threads, pieces, 1 + i % 7, 0), 0);
        if (i % 100 == 0)
            nap(300000); /* so that they sleep */
    }
}
END_TEST

/** While a part waits, other threads do the rest, if there are any. */
START_TEST(test_shared_work)
{
    static checked c;
    ck_assert_int_eq(run_checked(&c, 2, 4, 20, 2000000), 0);
    ck_assert_int_gt(atomic_load(&c.used[0]), 0);
    if (qi_pool_threads(2) == 2)
        ck_assert_int_gt(atomic_load(&c.used[1]), 0);
}
END_TEST

START_TEST(test_threads)
{
    int const most = qi_pool_threads(1 << 20);
    ck_assert_int_eq(qi_pool_threads(1), 1);
    ck_assert(most == 1 || most == QI_POOL_MOST_THREADS);
    ck_assert_int_ge(qi_pool_threads(0), 1);
    ck_assert_int_le(qi_pool_threads(0), most);
}
END_TEST

static void add_parts(void *context, int32_t round, int32_t first, int32_t end, int thread)
{
    (void)round;
    (void)thread;
    atomic_fetch_add((atomic_int *)context, end - first);
}

START_TEST(test_most_threads)
{
    atomic_int sum = 0;
    for (int i = 0; i < 3; i++)
        qi_pool_run(&(qi_pool_job){.fn = add_parts,
                                   .context = &sum,
                                   .rounds = 2,
                                   .threads = QI_POOL_MOST_THREADS,
                                   .pieces = QI_POOL_MOST_PIECES});
    ck_assert_int_eq(atomic_load(&sum), 3 * 2 * QI_POOL_MOST_THREADS * QI_POOL_MOST_PIECES);
}
END_TEST

/* ------------------------------------------------------------------ callers inside of jobs */

static void start_another(void *context, int32_t round, int32_t first, int32_t end, int thread)
{
    (void)round;
    (void)thread;
    for (int p = first; p < end; p++) {
        checked *c = malloc(sizeof *c);
        if (!c || run_checked(c, 3, 2, 3, 0))
            atomic_fetch_add((atomic_int *)context, 1);
        free(c);
    }
}

START_TEST(test_nested)
{
    atomic_int wrong = 0;
    for (int i = 0; i < 50; i++)
        qi_pool_run(&(qi_pool_job){
            .fn = start_another, .context = &wrong, .rounds = 2, .threads = 3, .pieces = 2});
    ck_assert_int_eq(atomic_load(&wrong), 0);
}
END_TEST

/* ------------------------------------------------------------------ several callers */

static void *call_often(void *context)
{
    checked *c = malloc(sizeof *c);
    int wrong = !c;
    for (int i = 0; i < 200 && !wrong; i++)
        wrong = run_checked(c, 1 + i % 3, 1 + i % 4, 1 + i % 5, 0);
    free(c);
    *(int *)context = wrong;
    return NULL;
}

/** More callers than the pool has teams: some of them run alone. */
START_TEST(test_callers)
{
    enum { CALLERS = 40 };
    pthread_t ids[CALLERS];
    int wrong[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(__real_pthread_create(&ids[i], NULL, call_often, &wrong[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(pthread_join(ids[i], NULL), 0);
        ck_assert_int_eq(wrong[i], 0);
    }
}
END_TEST

/* ------------------------------------------------------------------ forks */

/** Fork; the child's exit status is 0 if its own job is right, done by threads of its own. */
static void check_child(int threads)
{
    pid_t const child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        static checked c;
        atomic_store(&creations, 0);
        int const wrong = run_checked(&c, threads, 4, 20, 0) || run_checked(&c, threads, 2, 5, 0);
        int const started = qi_pool_threads(threads) - 1;
        _exit(wrong ? 1 : atomic_load(&creations) == started ? 0 : 2);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

START_TEST(test_fork)
{
    static checked c;
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(run_checked(&c, 3, 4, 5, 0), 0);
        if (i % 2)
            nap(300000); /* they sleep, or still spin */
        check_child(1 + i % 4);
    }
    ck_assert_int_eq(run_checked(&c, 3, 4, 5, 0), 0); /* the parent's are as before */
}
END_TEST

static void *fork_beside(void *context)
{
    atomic_int *stop = context;
    checked *c = malloc(sizeof *c);
    while (c && !atomic_load(stop))
        if (run_checked(c, 2, 3, 3, 0))
            abort();
    free(c);
    return NULL;
}

/** A process is forked while another thread is in the middle of a job. */
START_TEST(test_fork_beside)
{
    atomic_int stop = 0;
    pthread_t other;
    ck_assert_int_eq(__real_pthread_create(&other, NULL, fork_beside, &stop), 0);
    for (int i = 0; i < 20; i++)
        check_child(2);
    atomic_store(&stop, 1);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
}
END_TEST

/* ------------------------------------------------------------------ no threads */

START_TEST(test_refused)
{
    static checked c;
    for (int got = 0; got < 4;
         got++) { /* so many of 7 workers, each time in a process of its own */
        pid_t const child = fork();
        if (child == 0) {
            atomic_store(&allowed, got);
            atomic_store(&creations, 0);
            for (int i = 0; i < 100; i++)
                if (run_checked(&c, 8, 3, 4, 0))
                    _exit(1);
            if (qi_pool_threads(8) > 1 && atomic_load(&creations) != got + 1)
                _exit(2); /* it asks the system again and again */
            atomic_store(&allowed, 100);
            for (int i = 0; i < 2000; i++)
                if (run_checked(&c, 8, 1, 1, 0))
                    _exit(3);
            _exit(qi_pool_threads(8) > 1 && atomic_load(&creations) != 8 ? 4 : 0);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tc = tcase_create("pool");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, test_counts);
    tcase_add_test(tc, test_changing_counts);
    tcase_add_test(tc, test_shared_work);
    tcase_add_test(tc, test_threads);
    tcase_add_test(tc, test_most_threads);
    tcase_add_test(tc, test_nested);
    tcase_add_test(tc, test_callers);
    tcase_add_test(tc, test_fork);
    tcase_add_test(tc, test_fork_beside);
    tcase_add_test(tc, test_refused);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
