/** Every way the host has to compute a CRC-32 equals the core's four bits at a time. */
#include "common/suite.h"
#include "infer/host/loops/crc32.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 400, LONG = (1 << 17) + 77 };

static uint8_t *bytes;

static void fill(void)
{
    bytes = malloc(LONG);
    ck_assert_ptr_nonnull(bytes);
    uint32_t x = 1;
    for (int i = 0; i < LONG; i++, x = x * 1664525u + 1013904223u)
        bytes[i] = (uint8_t)(x >> 24);
}

static void release(void)
{
    free(bytes);
}

static void check_one(const qi_crc32_way *way, uint32_t start, size_t at, size_t count)
{
    uint32_t const got = way->crc32(start, bytes + at, count);
    uint32_t const want = qm_crc32(start, bytes + at, count);
    ck_assert_msg(got == want, "%s: %zu bytes at %zu from %08x: %08x, not %08x", way->name, count,
                  at, (unsigned)start, (unsigned)got, (unsigned)want);
}

static void check_way(const qi_crc32_way *way)
{
    static const uint32_t starts[] = {0, 1, 0x80000000, 0xdeadbeef, UINT32_MAX};
    for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++)
        for (size_t count = 0; count <= SHORT; count++)
            for (size_t at = 0; at < 17; at += 4)
                check_one(way, starts[s], at, count);
    for (size_t cut = 0; cut < 80; cut++)
        check_one(way, 7, cut, LONG - 2 * cut);
}

START_TEST(test_known_answer)
{
    ck_assert_uint_eq(qm_crc32(0, "123456789", 9), 0xcbf43926);
}
END_TEST

START_TEST(test_ways)
{
    const qi_crc32_way *way;
    int ran = 0;
    for (int i = 0; (way = qi_crc32_way_at(i)); i++) {
        int const here = way->runs_here();
        printf("CRC-32 by %s: %s\n", way->name, here ? "checked" : "not on this processor");
        if (here)
            check_way(way);
        ran += here;
    }
    ck_assert_int_ge(ran, 1);
    ck_assert_ptr_null(qi_crc32_way_at(-1));
}
END_TEST

START_TEST(test_chosen)
{
    for (size_t count = 0; count < LONG; count += 997)
        ck_assert_uint_eq(qi_crc32(count & 1, bytes, count), qm_crc32(count & 1, bytes, count));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("crc32");
    TCase *t = tcase_create("crc32");
    tcase_add_checked_fixture(t, fill, release);
    tcase_add_test(t, test_known_answer);
    tcase_add_test(t, test_ways);
    tcase_add_test(t, test_chosen);
    suite_add_tcase(s, t);
    return test_run_suite(s);
}
