/** The end of a Check program. */
#ifndef QAT_TESTS_SUITE_H
#define QAT_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/** Run a suite; the exit status of its program. */
static inline int test_run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int const failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
