#define _GNU_SOURCE /* sched_setaffinity */
/* lib/base without .npy: random numbers, digests, arenas, byte buffers, files, tiles, errors. */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/checksums/sha256.h"
#include "base/files/file.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/shown.h"
#include "base/words.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_error(const qat_error *err, const char *part)
{
    ck_assert_msg(strstr(err->message, part) != NULL, "\"%s\" lacks \"%s\"", err->message, part);
}

/* Names, and an ending that some have. */

START_TEST(test_without_end)
{
    char cut[8];
    ck_assert(qat_without_end("relu/q", "/q", cut, sizeof cut));
    ck_assert_str_eq(cut, "relu");
    ck_assert(qat_without_end("pool", "/q", cut, sizeof cut));
    ck_assert_str_eq(cut, "pool");
    ck_assert(qat_without_end("/q", "/q", cut, sizeof cut)); /* something must be left */
    ck_assert_str_eq(cut, "/q");
    ck_assert(qat_without_end("1234567/q", "/q", cut, sizeof cut));
    ck_assert_str_eq(cut, "1234567");
    ck_assert(!qat_without_end("12345678/q", "/q", cut, sizeof cut));
    ck_assert(!qat_without_end("12345678", "/q", cut, sizeof cut));
}
END_TEST

START_TEST(test_decibels)
{
    ck_assert_double_eq_tol(qat_decibels(100, 1), 20, 1e-12);
    ck_assert_double_eq(qat_decibels(1, 0), 999);
    ck_assert_double_eq(qat_decibels(0, 1), -999);
    ck_assert(isnan(qat_decibels(NAN, 1)) && isnan(qat_decibels(1, NAN)));
    ck_assert(isnan(qat_decibels(INFINITY, 1)) && isnan(qat_decibels(1, INFINITY)));
}
END_TEST

/* A stranger's text. */

START_TEST(test_shown)
{
    static const struct {
        const char *text, *shown, *quoted;
    } cases[] = {
        {"", "", ""},
        {"conv1/weights", "conv1/weights", "conv1/weights"},
        {"a\033[31m\n\t\177", "a\\x1b[31m\\x0a\\x09\\x7f", "a\\\\x1b[31m\\\\x0a\\\\x09\\\\x7f"},
        {"\"\\", "\"\\", "\\\"\\\\"},
        {"Br\xc3\xb6tchen \xe7\x8c\xab \xf0\x9f\x90\x88",
         "Br\xc3\xb6tchen \xe7\x8c\xab \xf0\x9f\x90\x88",
         "Br\xc3\xb6tchen \xe7\x8c\xab \xf0\x9f\x90\x88"},
        {"\xc2\x9b\xc2\xa0", "\\xc2\\x9b\xc2\xa0", "\\\\xc2\\\\x9b\xc2\xa0"}, /* U+009B: CSI */
        {"\x9b\xff\xfe", "\\x9b\\xff\\xfe", "\\\\x9b\\\\xff\\\\xfe"},         /* not UTF-8 */
        {"\xc0\x9b\xe0\x80\x9b", "\\xc0\\x9b\\xe0\\x80\\x9b", /* longer than needed */
         "\\\\xc0\\\\x9b\\\\xe0\\\\x80\\\\x9b"},
        {"\xed\xa0\x80\xf5\x80\x80\x80", "\\xed\\xa0\\x80\\xf5\\x80\\x80\\x80", /* no characters */
         "\\\\xed\\\\xa0\\\\x80\\\\xf5\\\\x80\\\\x80\\\\x80"},
        {"\xe2\x80\xae\xe2\x80\xa6",
         "\\xe2\\x80\\xae\xe2\x80\xa6", /* U+202E turns the line; U+2026 */
         "\\\\xe2\\\\x80\\\\xae\xe2\x80\xa6"},
        {"\xe2\x80", "\\xe2\\x80", "\\\\xe2\\\\x80"}, /* cut */
        {"\xd8\x9c\xd8\x9d\xc2\xad",
         "\\xd8\\x9c\xd8\x9d\\xc2\\xad", /* U+061C turns, U+00AD hides */
         "\\\\xd8\\\\x9c\xd8\x9d\\\\xc2\\\\xad"},
        {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81", /* U+E0041, a letter of a tag, hides */
         "\\\\xf3\\\\xa0\\\\x81\\\\x81"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[128];
        qat_shown(shown, sizeof shown, cases[i].text, false);
        ck_assert_str_eq(shown, cases[i].shown);
        ck_assert_int_eq(qat_is_plain(cases[i].text), !strcmp(cases[i].text, cases[i].shown));
        qat_shown(shown, sizeof shown, cases[i].text, true);
        ck_assert_str_eq(shown, cases[i].quoted);
        ck_assert_uint_le(strlen(cases[i].quoted), QAT_SHOWN_PER_BYTE * strlen(cases[i].text));
    }
    for (size_t max = 1; max < 10; max++) { /* cut at a whole character */
        char shown[10];
        qat_shown(shown, max, "a\033b\xc3\xb6", false);
        ck_assert_str_eq(shown, max < 2   ? ""
                                : max < 6 ? "a"
                                : max < 7 ? "a\\x1b"
                                : max < 9 ? "a\\x1b"
                                            "b"
                                          : "a\\x1b"
                                            "b\xc3\xb6");
    }
}
END_TEST

/* Errors. */

START_TEST(test_status)
{
    qat_error err;
    for (int s = QAT_OK; s <= QAT_ERR_MISMATCH; s++) {
        ck_assert_str_ne(qat_status_name((qat_status)s), "unknown status");
        for (int t = QAT_OK; t < s; t++)
            ck_assert_str_ne(qat_status_name((qat_status)s), qat_status_name((qat_status)t));
    }
    ck_assert_int_eq(qat_fail(NULL, QAT_ERR_SHAPE, "nobody listens"), QAT_ERR_SHAPE);
    ck_assert_int_eq(qat_fail(&err, QAT_ERR_IO, "%s at %d", "cut", 7), QAT_ERR_IO);
    ck_assert_int_eq(err.status, QAT_ERR_IO);
    ck_assert_str_eq(err.message, "cut at 7");
    (void)qat_fail(&err, QAT_ERR_IO, "%600d", 1);
    ck_assert_uint_eq(strlen(err.message), QAT_ERROR_MESSAGE_MAX - 1);
}
END_TEST

/* Random numbers. */

START_TEST(test_rng_known)
{
    static const uint64_t expected[] = {11520,
                                        0,
                                        1509978240,
                                        UINT64_C(1215971899390074240),
                                        UINT64_C(1216172134540287360),
                                        UINT64_C(607988272756665600)};
    qat_rng rng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        ck_assert_uint_eq(qat_rng_next(&rng), expected[i]);
    ck_assert_uint_eq(qat_hash_name(""), UINT64_C(0xcbf29ce484222325));
    ck_assert_uint_eq(qat_hash_name("a"), UINT64_C(0xaf63dc4c8601ec8c));
    ck_assert_uint_eq(qat_hash_name("foobar"), UINT64_C(0x85944171f73967e8));
}
END_TEST

START_TEST(test_rng_keys)
{
    ck_assert_uint_ne(qat_hash(1, 2), qat_hash(2, 1));
    ck_assert_uint_ne(qat_hash(0, 0), qat_hash(0, 1));
    qat_rng a = qat_rng_at(1, 2, 3), again = qat_rng_at(1, 2, 3);
    ck_assert_mem_eq(&a, &again, sizeof a);
    uint64_t seen[8 * 8 * 8];
    size_t count = 0;
    for (uint64_t s = 0; s < 8; s++) {
        for (uint64_t t = 0; t < 8; t++) {
            for (uint64_t i = 0; i < 8; i++) {
                qat_rng rng = qat_rng_at(s, t, i);
                seen[count] = qat_rng_next(&rng);
                for (size_t k = 0; k < count; k++)
                    ck_assert_uint_ne(seen[k], seen[count]);
                count++;
            }
        }
    }
}
END_TEST

/* Each of n values should occur draws / n times. 6 standard deviations are allowed. */
START_TEST(test_rng_below)
{
    enum { DRAWS = 120000 };
    static const uint32_t sizes[] = {1, 2, 3, 7, 10, 97};
    qat_rng rng = qat_rng_at(5, 0, 0);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int counts[97] = {0};
        for (int i = 0; i < DRAWS; i++) {
            uint32_t const v = qat_rng_below(&rng, sizes[s]);
            ck_assert_uint_lt(v, sizes[s]);
            counts[v]++;
        }
        double const mean = (double)DRAWS / sizes[s];
        for (uint32_t v = 0; v < sizes[s]; v++)
            ck_assert_double_le((counts[v] - mean) * (counts[v] - mean), 36 * mean);
    }
    uint64_t high = 0; /* n just above 2^31: rejection happens half of the time */
    for (int i = 0; i < 1000; i++)
        high += qat_rng_below(&rng, UINT32_C(0x80000001)) >= UINT32_C(0x40000000);
    ck_assert_uint_gt(high, 400);
    ck_assert_uint_lt(high, 600);
}
END_TEST

START_TEST(test_rng_uniform)
{
    qat_rng rng = qat_rng_at(6, 0, 0);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double const u = qat_rng_uniform(&rng);
        ck_assert(u >= 0 && u < 1);
        sum += u;
    }
    ck_assert_double_eq_tol(sum / 100000, 0.5, 0.006);
}
END_TEST

START_TEST(test_rng_shuffle)
{
    int first[5] = {0};
    for (uint64_t k = 0; k < 5000; k++) {
        uint32_t order[5], mask = 0;
        qat_rng rng = qat_rng_at(1, 2, k);
        qat_rng_shuffle(&rng, order, 5);
        for (int i = 0; i < 5; i++)
            mask |= 1U << order[i];
        ck_assert_uint_eq(mask, 31);
        first[order[0]]++;
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_lt(abs(first[i] - 1000), 180);
}
END_TEST

/* SHA-256: the examples of FIPS 180-4 and the lengths around a block's end. */

static void expect_digest(const void *bytes, size_t count, const char *hex)
{
    uint8_t digest[32];
    char text[65];
    qat_sha256(bytes, count, digest);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    ck_assert_str_eq(text, hex);
}

START_TEST(test_sha256)
{
    expect_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    ck_assert_ptr_nonnull(million);
    memset(million, 'a', 1000000);
    expect_digest(million, 1000000,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    expect_digest(million, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    expect_digest(million, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    free(million);
}
END_TEST

/* Arenas. */

START_TEST(test_arena)
{
    qat_arena arena = {0};
    unsigned char *last = NULL;
    for (size_t bytes = 0; bytes < 300000; bytes = bytes * 2 + 1) {
        unsigned char *p = qat_arena_take(&arena, bytes);
        ck_assert_ptr_nonnull(p);
        ck_assert_ptr_ne(p, last);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < bytes; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xff, bytes);
        last = p;
    }
    ck_assert_str_eq(qat_arena_string(&arena, "layer/weights"), "layer/weights");
    ck_assert_ptr_null(qat_arena_array(&arena, SIZE_MAX / 8, 16));
    ck_assert_ptr_null(qat_arena_take(&arena, SIZE_MAX));
    ck_assert_ptr_null(qat_arena_take(&arena, SIZE_MAX - 200));
    ck_assert_ptr_nonnull(qat_arena_array(&arena, 0, 16));
    qat_arena_free(&arena);
    qat_arena_free(&arena);
    ck_assert_ptr_null(arena.blocks);
    qat_arena_mark const nothing = {0};
    unsigned char *first = qat_arena_take(&arena, 100);
    qat_arena_mark const one = qat_arena_now(&arena);
    for (int i = 0; i < 3; i++) { /* the same amounts get the same memory, zeroed */
        static unsigned char *second, *third;
        unsigned char *p = qat_arena_take(&arena, 70000), *q = qat_arena_take(&arena, 10);
        ck_assert(i == 0 || (p == second && q == third));
        ck_assert(p[0] == 0 && p[69999] == 0 && q[9] == 0 && first[0] == (i ? 7 : 0));
        memset(p, 0xff, 70000);
        memset(q, 0xff, 10);
        first[0] = 7;
        second = p;
        third = q;
        ck_assert(qat_arena_holds(&arena, p + 69999) && !qat_arena_holds(&arena, &arena));
        qat_arena_back(&arena, one);
    }
    qat_arena_back(&arena, nothing);
    ck_assert_ptr_eq(qat_arena_take(&arena, 1), first);
    ck_assert_uint_eq(first[0], 0);
    qat_arena_free(&arena);
    void *zero = qat_aligned_alloc(0);
    ck_assert_ptr_nonnull(zero);
    qat_aligned_free(zero);
    ck_assert_ptr_null(qat_aligned_alloc(SIZE_MAX - 1));
    ck_assert_ptr_null(qat_aligned_alloc(SIZE_MAX - ((size_t)4 << 20)));
}
END_TEST

/* From 8 MB on memory lies on large pages; all of it can be written (a sanitizer looks). */
START_TEST(test_large_memory)
{
    size_t const bytes = ((size_t)8 << 20) + (size_t)_i;
    unsigned char *memory = qat_aligned_alloc(bytes);
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq((uintptr_t)memory % 64, 0);
    memset(memory, 1, bytes);
    qat_aligned_free(memory);
}
END_TEST

/* Readers and writers. */

START_TEST(test_bytes_round_trip)
{
    static const uint8_t start[] = {0x12, 0x34, 0x12, 0xef, 0xcd, 0xab, 0x89};
    qat_writer w = {0};
    qat_write_u8(&w, 0x12);
    qat_write_u16(&w, 0x1234);
    qat_write_u32(&w, 0x89abcdef);
    qat_write_u64(&w, UINT64_C(0x0123456789abcdef));
    qat_write_f32(&w, -1.5f);
    qat_write_f64(&w, 0.1);
    qat_write_string(&w, "conv1");
    qat_write_align(&w, 16);
    ck_assert_uint_eq(w.count % 16, 0);
    qat_write_text(&w, "%s=%d", "batch", 32);
    qat_patch_u32(&w, 3, 0x89abcdef);
    qat_patch_u32(&w, w.count - 3, 0); /* outside: nothing happens */
    ck_assert(!w.failed);
    ck_assert_mem_eq(w.bytes, start, sizeof start);

    char text[16];
    qat_reader r = qat_reader_of(w.bytes, w.count);
    ck_assert_uint_eq(qat_read_u8(&r), 0x12);
    ck_assert_uint_eq(qat_read_u16(&r), 0x1234);
    ck_assert_uint_eq(qat_read_u32(&r), 0x89abcdef);
    ck_assert_uint_eq(qat_read_u64(&r), UINT64_C(0x0123456789abcdef));
    ck_assert(qat_read_f32(&r) == -1.5f);
    ck_assert(qat_read_f64(&r) == 0.1);
    qat_read_string(&r, text, sizeof text);
    ck_assert_str_eq(text, "conv1");
    ck_assert(!r.bad);
    ck_assert_mem_eq(w.bytes + w.count - 8, "batch=32", 8);
    qat_writer_free(&w);
    ck_assert_ptr_null(w.bytes);
}
END_TEST

START_TEST(test_bytes_bounds)
{
    static const uint8_t three[3] = {1, 2, 3};
    qat_reader r = qat_reader_of(three, 3);
    ck_assert_uint_eq(qat_read_u32(&r), 0);
    ck_assert(r.bad);
    ck_assert_uint_eq(qat_read_u8(&r), 0); /* stays bad */
    r = qat_reader_of(three, 3);
    ck_assert_ptr_eq(qat_read_bytes(&r, 3), three);
    ck_assert_ptr_null(qat_read_bytes(&r, SIZE_MAX));
    ck_assert(r.bad);
    r = qat_reader_of(NULL, 0);
    ck_assert_uint_eq(qat_read_u8(&r), 0);
    ck_assert(r.bad);
}
END_TEST

START_TEST(test_bytes_strings)
{
    static const uint8_t with_nul[] = {3, 0, 0, 0, 'a', 0, 'b'}, beyond[] = {9, 0, 0, 0, 'a'};
    static const uint8_t five[] = {5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'};
    char text[16];
    qat_reader r = qat_reader_of(with_nul, sizeof with_nul);
    qat_read_string(&r, text, sizeof text);
    ck_assert(r.bad);
    ck_assert_str_eq(text, "");
    r = qat_reader_of(beyond, sizeof beyond);
    qat_read_string(&r, text, sizeof text);
    ck_assert(r.bad);
    r = qat_reader_of(five, sizeof five);
    qat_read_string(&r, text, 5); /* no room for the NUL */
    ck_assert(r.bad);
    ck_assert_str_eq(text, "");
    r = qat_reader_of(five, sizeof five);
    qat_read_string(&r, text, 6);
    ck_assert(!r.bad);
    ck_assert_str_eq(text, "hello");
}
END_TEST

START_TEST(test_bytes_out_of_memory)
{
    bool failed;
    long n = 0;
    do {
        qat_writer w = {0};
        test_fail_alloc_after(n++);
        for (int i = 0; i < 1000; i++)
            qat_write_u32(&w, (uint32_t)i);
        qat_write_text(&w, "%d", 1);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(w.failed, failed);
        qat_write_align(&w, 64);
        qat_patch_u32(&w, 0, 1);
        qat_writer_free(&w);
    } while (failed);
    ck_assert_int_gt(n, 3);
}
END_TEST

/* Files. */

static char path[TEST_PATH_MAX];

static void expect_content(const char *name, const void *bytes, size_t count)
{
    uint8_t *got;
    size_t got_count;
    qat_error err;
    qat_status st =
        qat_file_read(test_temp_path(path, folder, name), SIZE_MAX, &got, &got_count, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    ck_assert_uint_eq(got_count, count);
    if (count)
        ck_assert_mem_eq(got, bytes, count);
    ck_assert_uint_eq(got[count], 0);
    free(got);
}

static void refuse(const char *name, size_t max, qat_status status, const char *part)
{
    uint8_t *got;
    size_t count;
    qat_error err = {0};
    ck_assert_int_eq(qat_file_read(test_temp_path(path, folder, name), max, &got, &count, &err),
                     status);
    ck_assert_ptr_null(got);
    expect_error(&err, path);
    expect_error(&err, part);
}

static uint8_t *noise(size_t count)
{
    uint8_t *bytes = malloc(count);
    ck_assert_ptr_nonnull(bytes);
    qat_rng rng = qat_rng_at(9, 9, 9);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)qat_rng_next(&rng);
    return bytes;
}

START_TEST(test_file_round_trip)
{
    enum { MANY = 3000000 };
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, MANY};
    uint8_t *bytes = noise(MANY);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        qat_error err;
        test_temp_path(path, folder, "plain");
        ck_assert_int_eq(qat_file_write_atomic(path, bytes, sizes[i], &err), QAT_OK);
        expect_content("plain", bytes, sizes[i]);
        test_temp_write(folder, "packed.gz", bytes, sizes[i]);
        expect_content("packed.gz", bytes, sizes[i]);
    }
    free(bytes);
    ck_assert_int_eq(test_temp_count(folder), 2); /* no temporary file is left */
}
END_TEST

/**
 * Move a file onto nothing, onto another file, onto itself, and onto another name of the same file.
 * Also from another file system (if /dev/shm is one), where bytes must be copied instead of names.
 */
START_TEST(test_file_copy)
{
    char from[TEST_PATH_MAX], to[TEST_PATH_MAX], shm[64];
    test_temp_write(folder, "from", "new", 3);
    test_temp_write(folder, "other", "older", 5);
    test_temp_path(from, folder, "from");
    ck_assert_int_eq(qat_file_copy_atomic(from, test_temp_path(to, folder, "to"), NULL), QAT_OK);
    expect_content("to", (const uint8_t *)"new", 3);
    ck_assert_int_eq(qat_file_copy_atomic(from, to, NULL), QAT_OK);
    expect_content("to", (const uint8_t *)"new", 3);
    ck_assert_int_eq(qat_file_copy_atomic(from, from, NULL), QAT_OK);
    ck_assert_int_eq(qat_file_copy_atomic(from, test_temp_path(to, folder, "other"), NULL), QAT_OK);
    expect_content("other", (const uint8_t *)"new", 3);
    ck_assert_int_eq(qat_file_write_atomic(from, "newest", 6, NULL), QAT_OK);
    expect_content("other", (const uint8_t *)"new", 3);
    snprintf(shm, sizeof shm, "/dev/shm/qat-test-base.%ld", (long)getpid());
    if (qat_file_write_atomic(shm, "foreign", 7, NULL) == QAT_OK) {
        ck_assert_int_eq(qat_file_copy_atomic(shm, to, NULL), QAT_OK);
        expect_content("other", (const uint8_t *)"foreign", 7);
        ck_assert_int_eq(remove(shm), 0);
    }
    ck_assert_int_eq(test_temp_count(folder), 3); /* no temporary file is left */
}
END_TEST

START_TEST(test_file_copy_fails)
{
    qat_error err;
    char from[TEST_PATH_MAX], to[TEST_PATH_MAX];
    ck_assert_int_eq(qat_file_copy_atomic(test_temp_path(from, folder, "nothing"),
                                          test_temp_path(to, folder, "to"), &err),
                     QAT_ERR_IO);
    expect_error(&err, "nothing");
    test_temp_write(folder, "from", "new", 3);
    ck_assert_int_eq(qat_file_copy_atomic(test_temp_path(from, folder, "from"),
                                          test_temp_path(to, folder, "none/to"), &err),
                     QAT_ERR_IO);
    expect_error(&err, "none/to");
    ck_assert_int_eq(test_temp_count(folder), 1);
}
END_TEST

START_TEST(test_file_limits)
{
    uint8_t *bytes = noise(5000);
    test_temp_write(folder, "a", bytes, 5000);
    test_temp_write(folder, "a.gz", bytes, 5000);
    refuse("a", 4999, QAT_ERR_LIMIT, "4999");
    refuse("a.gz", 4999, QAT_ERR_LIMIT, "4999");
    uint8_t *got;
    size_t count;
    ck_assert_int_eq(qat_file_read(test_temp_path(path, folder, "a"), 5000, &got, &count, NULL),
                     QAT_OK);
    ck_assert_uint_eq(count, 5000);
    free(got);
    free(bytes);
}
END_TEST

START_TEST(test_file_unreadable)
{
    refuse("nothing", SIZE_MAX, QAT_ERR_IO, "No such file");
    refuse("nothing.gz", SIZE_MAX, QAT_ERR_IO, "No such file");
    refuse(".", SIZE_MAX, QAT_ERR_IO, "directory");
}
END_TEST

/** Make these bytes, as they are, folder/cut.gz. */
static void write_cut(const void *bytes, size_t count)
{
    char plain[TEST_PATH_MAX];
    test_temp_write(folder, "cut", bytes, count);
    ck_assert_int_eq(
        rename(test_temp_path(plain, folder, "cut"), test_temp_path(path, folder, "cut.gz")), 0);
}

/* A gzip file that is cut at any length, or has one changed byte, is never accepted. */
START_TEST(test_file_broken_gzip)
{
    uint8_t *bytes = noise(300), *packed;
    size_t length;
    test_temp_write(folder, "whole.gz", bytes, 300);
    ck_assert_int_eq(rename(test_temp_path(path, folder, "whole.gz"),
                            test_temp_path((char[TEST_PATH_MAX]){0}, folder, "whole")),
                     0);
    ck_assert_int_eq(
        qat_file_read(test_temp_path(path, folder, "whole"), SIZE_MAX, &packed, &length, NULL),
        QAT_OK);
    for (size_t cut = 0; cut < length; cut++) {
        write_cut(packed, cut);
        refuse("cut.gz", SIZE_MAX, QAT_ERR_FORMAT, "gzip file");
    }
    write_cut(packed, length - 1);
    refuse("cut.gz", SIZE_MAX, QAT_ERR_FORMAT, "truncated gzip file");
    packed[length / 2] ^= 0x10;
    write_cut(packed, length);
    refuse("cut.gz", SIZE_MAX, QAT_ERR_FORMAT, "damaged gzip file");
    write_cut("no gzip at all", 14);
    refuse("cut.gz", SIZE_MAX, QAT_ERR_FORMAT, "not a gzip file");
    free(packed);
    free(bytes);
}
END_TEST

static void refuse_write(const char *target, const char *part)
{
    qat_error err = {0};
    ck_assert_int_eq(qat_file_write_atomic(target, "abc", 3, &err), QAT_ERR_IO);
    expect_error(&err, target);
    expect_error(&err, part);
}

START_TEST(test_file_unwritable)
{
    test_temp_write(folder, "file", "x", 1);
    refuse_write(test_temp_path(path, folder, "no/such/folder"), "No such file");
    refuse_write(test_temp_path(path, folder, "file/inside"), "Not a directory");
    refuse_write(folder, "directory");
    struct stat there;
    if (stat("/dev/full", &there) == 0 && S_ISCHR(there.st_mode)) {
        refuse_write("/dev/full", "No space left");
        ck_assert_int_eq(qat_file_write_atomic("/dev/null", "abc", 3, NULL), QAT_OK);
        ck_assert(stat("/dev/null", &there) == 0 && S_ISCHR(there.st_mode)); /* not replaced */
    }
    ck_assert_int_eq(test_temp_count(folder), 1);
}
END_TEST

START_TEST(test_file_modes)
{
    struct stat there;
    mode_t const before = umask(027);
    ck_assert_int_eq(qat_file_write_atomic(test_temp_path(path, folder, "m"), "x", 1, NULL),
                     QAT_OK);
    umask(before);
    ck_assert_int_eq(stat(path, &there), 0);
    ck_assert_int_eq(there.st_mode & 0777, 0640);
}
END_TEST

START_TEST(test_make_dirs)
{
    qat_error err;
    struct stat there;
    ck_assert_int_eq(qat_make_dirs(test_temp_path(path, folder, "a/b//c/"), &err), QAT_OK);
    ck_assert_int_eq(stat(path, &there), 0);
    ck_assert(S_ISDIR(there.st_mode));
    ck_assert_int_eq(qat_make_dirs(path, &err), QAT_OK);
    ck_assert_int_eq(qat_make_dirs("/", &err), QAT_OK);
    test_temp_write(folder, "a/file", "x", 1);
    ck_assert_int_eq(qat_make_dirs(test_temp_path(path, folder, "a/file/d"), &err), QAT_ERR_IO);
    expect_error(&err, "a/file");
}
END_TEST

START_TEST(test_file_out_of_memory)
{
    bool failed;
    long n = 0;
    uint8_t *bytes = noise(200000);
    test_temp_write(folder, "f", bytes, 200000);
    test_temp_write(folder, "f.gz", bytes, 200000);
    do {
        uint8_t *got = NULL, *unpacked = NULL;
        size_t count;
        test_fail_alloc_after(n++);
        qat_status st =
            qat_file_read(test_temp_path(path, folder, "f"), SIZE_MAX, &got, &count, NULL);
        if (!st)
            st = qat_file_read(test_temp_path(path, folder, "f.gz"), SIZE_MAX, &unpacked, &count,
                               NULL);
        if (!st)
            st = qat_file_write_atomic(test_temp_path(path, folder, "g"), bytes, 100, NULL);
        if (!st)
            st = qat_make_dirs(test_temp_path(path, folder, "d/e"), NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        free(got);
        free(unpacked);
    } while (failed);
    ck_assert_int_gt(n, 4);
    free(bytes);
}
END_TEST

/* Tiles. */

typedef struct tiles {
    int visits[1000];
    int bad_thread;
} tiles;

static void visit(void *context, int tile, int thread)
{
    tiles *t = context;
    t->visits[tile]++;
    if (thread < 0 || thread >= qat_threads())
        t->bad_thread = 1;
}

START_TEST(test_parallel)
{
    static const int counts[] = {0, 1, 2, 3, 7, 64, 1000};
    for (int threads = 0; threads <= 5; threads++) {
        qat_set_threads(threads);
        ck_assert_int_ge(qat_threads(), 1);
        ck_assert_int_le(qat_threads(), threads < 1 ? 1 : threads);
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            tiles t = {0};
            qat_parallel(counts[k], visit, &t);
            for (int i = 0; i < 1000; i++)
                ck_assert_int_eq(t.visits[i], i < counts[k]);
            ck_assert_int_eq(t.bad_thread, 0);
        }
    }
}
END_TEST

static void *threads_of_another(void *start)
{
    int const before = qat_threads();
    qat_set_threads(2);
    *(int *)start = before;
    return NULL;
}

/** The setting belongs to the calling thread, as qat_set_threads says. */
START_TEST(test_threads_setting)
{
    pthread_t other;
    int start = 0;
    qat_set_threads(3);
    int const ours = qat_threads(); /* 1 without threads */
    ck_assert_int_eq(pthread_create(&other, NULL, threads_of_another, &start), 0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    ck_assert_int_ge(start, 1);
    ck_assert_int_eq(qat_threads(), ours);
    ck_assert_int_eq(qat_version_number(), QAT_VERSION_NUMBER);
    ck_assert_str_eq(qat_version(), QAT_VERSION);
}
END_TEST

#ifdef __linux__
/** Bound to one processor, a thread that has no setting has one. OMP_NUM_THREADS says another. */
static void *threads_of_bound(void *threads)
{
    int *n = threads;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    *n = qat_threads();
    return NULL;
}

START_TEST(test_threads_default)
{
    pthread_t thread;
    int bound = 0, told = 0;
    unsetenv("OMP_NUM_THREADS");
    ck_assert_int_eq(pthread_create(&thread, NULL, threads_of_bound, &bound), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    setenv("OMP_NUM_THREADS", "3,2", 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, threads_of_bound, &told), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    unsetenv("OMP_NUM_THREADS");
    qat_set_threads(3);
    ck_assert_int_eq(bound, 1);
    ck_assert_int_eq(told, qat_threads()); /* 1 without threads */
}
END_TEST
#endif

static TCase *plain_case(void)
{
    TCase *tc = tcase_create("memory");
    tcase_add_test(tc, test_without_end);
    tcase_add_test(tc, test_decibels);
    tcase_add_test(tc, test_shown);
    tcase_add_test(tc, test_status);
    tcase_add_test(tc, test_rng_known);
    tcase_add_test(tc, test_rng_keys);
    tcase_add_test(tc, test_rng_below);
    tcase_add_test(tc, test_rng_uniform);
    tcase_add_test(tc, test_rng_shuffle);
    tcase_add_test(tc, test_sha256);
    tcase_add_test(tc, test_arena);
    tcase_add_loop_test(tc, test_large_memory, -1, 2);
    tcase_add_test(tc, test_bytes_round_trip);
    tcase_add_test(tc, test_bytes_bounds);
    tcase_add_test(tc, test_bytes_strings);
    tcase_add_test(tc, test_bytes_out_of_memory);
    tcase_add_test(tc, test_parallel);
    tcase_add_test(tc, test_threads_setting);
#ifdef __linux__
    tcase_add_test(tc, test_threads_default);
#endif
    return tc;
}

static TCase *file_case(void)
{
    TCase *tc = tcase_create("files");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, test_folder_make, test_folder_remove);
    tcase_add_test(tc, test_file_round_trip);
    tcase_add_test(tc, test_file_limits);
    tcase_add_test(tc, test_file_unreadable);
    tcase_add_test(tc, test_file_copy);
    tcase_add_test(tc, test_file_copy_fails);
    tcase_add_test(tc, test_file_broken_gzip);
    tcase_add_test(tc, test_file_unwritable);
    tcase_add_test(tc, test_file_modes);
    tcase_add_test(tc, test_make_dirs);
    tcase_add_test(tc, test_file_out_of_memory);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("base");
    suite_add_tcase(suite, plain_case());
    suite_add_tcase(suite, file_case());
    return test_run_suite(suite);
}
