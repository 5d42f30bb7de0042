/** Where each step of a test takes several times as long, the test does fewer of them. */
#ifndef QAT_TESTS_SLOW_H
#define QAT_TESTS_SLOW_H

/* TEST_IS_EMULATED comes from meson, in cross builds. */
#if defined(__has_feature)
#define TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define TEST_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TEST_HAS_FEATURE(address_sanitizer) ||                        \
    defined(TEST_IS_EMULATED)
enum { TEST_IS_SLOW = 1 };
#else
enum { TEST_IS_SLOW = 0 };
#endif

#endif
