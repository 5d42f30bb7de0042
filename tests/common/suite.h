/** The end of a Check program. */
#ifndef QAT_TESTS_SUITE_H
#define QAT_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/**
 * ck_assert_msg for loops of thousands and more: Check's own writes to a file each time that it
 * holds.
 */
#define test_assert_in_loop(holds, ...)                                                            \
    do {                                                                                           \
        if (!(holds))                                                                              \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

/**
 * Run a suite, in one process for each test or all in this process, and print as much as asked.
 * Return the exit status of the program.
 */
static inline int test_run_suite_as(Suite *suite, enum fork_status fork, enum print_output print)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, fork);
    srunner_run_all(runner, print);
    int const failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/** Run a suite as the environment says (CK_FORK, CK_VERBOSITY). */
static inline int test_run_suite(Suite *suite)
{
    return test_run_suite_as(suite, CK_FORK_GETENV, CK_ENV);
}

#endif
