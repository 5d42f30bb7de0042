/** Programs whose steps take several times as long do fewer of them. */
#ifndef QAT_TESTS_SLOW_H
#define QAT_TESTS_SLOW_H

/** Under AddressSanitizer, or on another processor than x86-64: those are mostly emulated. */
#if defined(__has_feature)
#define TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define TEST_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TEST_HAS_FEATURE(address_sanitizer) || !defined(__x86_64__)
enum { TEST_IS_SLOW = 1 };
#else
enum { TEST_IS_SLOW = 0 };
#endif

#endif
