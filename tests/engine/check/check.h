/**
 * The part of Check's interface that the tests of kernels use. It is for builds of the engine
 * alone, because cross compilers have no Check. Tests run one after another in this process. The
 * first test that fails ends it.
 */
#ifndef QAT_TESTS_ENGINE_CHECK_H
#define QAT_TESTS_ENGINE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

enum { MOST_TESTS = 64 };
enum fork_status { CK_FORK_GETENV };
enum print_output { CK_ENV };

typedef struct TTest {
    const char *name;
    void (*run)(int i); /* i: of a loop test */
} TTest;

/** The tests of one case, from first to end - 1 each. */
typedef struct TCase {
    const TTest *tests[MOST_TESTS];
    int first[MOST_TESTS], end[MOST_TESTS];
    int count;
} TCase;

typedef struct Suite {
    const char *name;
    TCase *cases[MOST_TESTS];
    int count;
} Suite;

typedef struct SRunner {
    Suite *suite;
} SRunner;

#define START_TEST(function)                                                                       \
    static void function##_run(int _i);                                                            \
    static const TTest function##_test = {#function, function##_run};                              \
    static const TTest *const function = &function##_test;                                         \
    static void function##_run(int _i)                                                             \
    {                                                                                              \
        (void)_i;
#define END_TEST }

#define ck_assert_msg(holds, ...)                                                                  \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            printf("not ok - %s:%d: %s: ", __FILE__, __LINE__, #holds);                            \
            printf("" __VA_ARGS__);                                                                \
            printf("\n");                                                                          \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)
#define ck_assert(holds)         ck_assert_msg(holds, "failed")
#define ck_assert_ptr_nonnull(p) ck_assert((p) != NULL)
#define ck_assert_int_eq(a, b)   ck_assert((a) == (b))
#define ck_assert_int_gt(a, b)   ck_assert((a) > (b))
#define ck_assert_uint_le(a, b)  ck_assert((a) <= (b))

/** Never NULL. */
static inline void *check_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static inline Suite *suite_create(const char *name)
{
    Suite *s = check_memory(sizeof *s);
    s->name = name;
    return s;
}

static inline TCase *tcase_create(const char *name)
{
    (void)name;
    return check_memory(sizeof(TCase));
}

static inline void suite_add_tcase(Suite *s, TCase *c)
{
    ck_assert(s->count < MOST_TESTS);
    s->cases[s->count++] = c;
}

/** The process that starts this one watches the time. */
static inline void tcase_set_timeout(TCase *c, double seconds)
{
    (void)c;
    (void)seconds;
}

static inline void tcase_add_loop_test(TCase *c, const TTest *test, int first, int end)
{
    ck_assert(c->count < MOST_TESTS);
    c->tests[c->count] = test;
    c->first[c->count] = first;
    c->end[c->count++] = end;
}

static inline void tcase_add_test(TCase *c, const TTest *test)
{
    tcase_add_loop_test(c, test, 0, 1);
}

static inline SRunner *srunner_create(Suite *s)
{
    SRunner *r = check_memory(sizeof *r);
    r->suite = s;
    return r;
}

/** There is one process. */
static inline void srunner_set_fork_status(SRunner *r, enum fork_status fork)
{
    (void)r;
    (void)fork;
}

static inline void srunner_run_all(SRunner *r, enum print_output how)
{
    (void)how;
    for (int i = 0; i < r->suite->count; i++) {
        const TCase *c = r->suite->cases[i];
        for (int t = 0; t < c->count; t++) {
            for (int k = c->first[t]; k < c->end[t]; k++)
                c->tests[t]->run(k);
            printf("ok - %s: %s\n", r->suite->name, c->tests[t]->name);
        }
    }
}

/** The first failure ended the process. */
static inline int srunner_ntests_failed(const SRunner *r)
{
    (void)r;
    return 0;
}

static inline void srunner_free(SRunner *r)
{
    for (int i = 0; i < r->suite->count; i++)
        free(r->suite->cases[i]);
    free(r->suite);
    free(r);
}

#endif
