/**
 * Failing allocations, for programs linked with the `fail_alloc` flags of tests/meson.build (third
 * column): malloc, calloc, realloc, aligned_alloc and what is taken from arenas (of which few need
 * a new block) in our own code go through here.
 *
 *     long n = 0;
 *     do {
 *         test_fail_alloc_after(n++);      // n allocations succeed, the next one fails
 *         st = make_something(&thing, &err);
 *         failed = test_fail_alloc_stop(); // did it come to that?
 *         ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
 *         free_something(thing);
 *     } while (failed);
 */
#ifndef QAT_TESTS_FAIL_ALLOC_H
#define QAT_TESTS_FAIL_ALLOC_H

#include <stdbool.h>

/** Let n more allocations succeed, and then one fail. Allocations of all threads are counted. */
void test_fail_alloc_after(long n);

/** Let allocations succeed again. Return whether one failed since test_fail_alloc_after. */
bool test_fail_alloc_stop(void);

#endif
