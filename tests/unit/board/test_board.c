/**
 * Event files of TensorBoard: checksums against known ones, histograms, records that are read back,
 * files that are continued, and runs that write them. tests/foreign/events/tensorboard.sh reads
 * them with TensorBoard itself.
 */
#include "base/checksums/crc32c.h"
#include "base/files/file.h"
#include "base/parallel.h"
#include "board/event_file.h"
#include "board/events.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "unit/train/train_runs.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define EVENTS "tensorboard/events.out.tfevents.0.qat"

static void setup(void)
{
    test_folder_make();
    qat_set_threads(2);
}

/* ------------------------------------------------------------------ checksums, histograms */

/** The vectors of RFC 3720 (iSCSI), section B.4. */
START_TEST(the_checksum_is_crc32c)
{
    uint8_t bytes[32] = {0};
    ck_assert_uint_eq(qat_crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    ck_assert_uint_eq(qat_crc32c(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(qat_crc32c(bytes, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    ck_assert_uint_eq(qat_crc32c(bytes, 32), 0x113fdb5c);
    ck_assert_uint_eq(qat_crc32c("123456789", 9), 0xe3069283);
    ck_assert_uint_eq(qat_crc32c("", 0), 0);
}
END_TEST

START_TEST(histograms_count_every_value_once)
{
    float const values[] = {-1, 0, 0.5f, 1, 1, 3};
    qat_board_histogram h = {0};
    qat_board_measure(&h, values, 2); /* in parts */
    qat_board_measure(&h, values + 2, 4);
    qat_board_count(&h, values, 6);
    ck_assert(h.min == -1 && h.max == 3 && h.n == 6 && h.sum == 4.5 && h.sum_squares == 12.25);
    ck_assert(h.counts[0] == 1 && h.counts[16] == 1 && h.counts[24] == 1 && h.counts[32] == 2 &&
              h.counts[QAT_BOARD_BINS - 1] == 1);
    qat_board_histogram same = {0};
    qat_board_measure(&same, values + 3, 2);
    qat_board_count(&same, values + 3, 2);
    ck_assert(same.min == 1 && same.max == 1 && same.counts[0] == 2);
}
END_TEST

/* ------------------------------------------------------------------ reading */

typedef struct content {
    int events, ends;
    int64_t steps[512];
} content;

/** Read a file whole; every checksum must be right. */
static content read_events(const uint8_t *bytes, size_t count)
{
    content c = {0};
    qat_reader r = qat_reader_of(bytes, count);
    while (r.at < r.end) {
        const uint8_t *head = r.at;
        uint64_t const n = qat_read_u64(&r);
        qat_event_look look;
        ck_assert_uint_eq(qat_read_u32(&r), qat_masked_crc32c(head, 8));
        const void *event = qat_read_bytes(&r, n);
        ck_assert_ptr_nonnull(event);
        ck_assert_uint_eq(qat_read_u32(&r), qat_masked_crc32c(event, n));
        ck_assert(qat_event_see(&look, event, n) && c.events < 512);
        c.steps[c.events++] = look.step;
        c.ends += look.end;
        ck_assert(!c.ends || look.end); /* the end is the last */
    }
    ck_assert(!r.bad);
    return c;
}

static content events_of(const char *run)
{
    char path[TEST_PATH_MAX], name[128];
    uint8_t *bytes;
    size_t count;
    snprintf(name, sizeof name, "%s/" EVENTS, run);
    ck_assert_int_eq(qat_file_read(dir_of(path, name), 1 << 26, &bytes, &count, NULL), QAT_OK);
    content const c = read_events(bytes, count);
    free(bytes);
    return c;
}

/* ------------------------------------------------------------------ files */

static qat_writer head_of(const char *setting)
{
    qat_writer w = {0};
    qat_board_setting const s = {"train.lr", (char *)setting, QAT_SETTING_TEXT, 0};
    qat_event_version(&w);
    qat_event_settings(&w, &s, 1);
    return w;
}

static void open_file(qat_event_file *f, const qat_writer *head, int64_t until)
{
    qat_error err;
    ck_assert_msg(qat_event_file_open(f, folder, "events", head, until, &err) == QAT_OK, "%s",
                  err.message);
}

static void write_steps(int64_t from, int64_t to, int64_t until, qat_writer *head)
{
    qat_event_file f;
    open_file(&f, head, until);
    for (int64_t step = from; step <= to; step++)
        qat_event_scalar(&f.waiting, step, "loss", 1.0 / (double)step);
    ck_assert_int_eq(qat_event_file_flush(&f, NULL), QAT_OK);
    qat_event_file_close(&f);
}

static content whole_file(void)
{
    char path[TEST_PATH_MAX];
    uint8_t *bytes;
    size_t count;
    test_temp_path(path, folder, "events");
    ck_assert_int_eq(qat_file_read(path, 1 << 20, &bytes, &count, NULL), QAT_OK);
    content const c = read_events(bytes, count);
    free(bytes);
    return c;
}

START_TEST(files_are_cut_behind_the_last_step_that_counts)
{
    qat_writer head = head_of("0.1"), other = head_of("0.2");
    write_steps(1, 9, -1, &head);
    ck_assert_int_eq(whole_file().events, 11);
    write_steps(5, 6, 4, &head);
    content c = whole_file();
    ck_assert_int_eq(c.events, 8);
    ck_assert(c.steps[5] == 4 && c.steps[6] == 5 && c.steps[7] == 6);
    write_steps(7, 7, 100, &head);
    ck_assert_int_eq(whole_file().events, 9);
    write_steps(8, 8, 7, &other); /* another head: another run's file */
    ck_assert_int_eq(whole_file().events, 3);
    qat_writer_free(&head);
    qat_writer_free(&other);
}
END_TEST

/** Each byte of a file is changed once, and each length is tried: what stays is whole. */
START_TEST(broken_files_are_cut_before_the_damage)
{
    qat_writer head = head_of("0.1");
    char path[TEST_PATH_MAX];
    uint8_t *bytes;
    size_t count;
    write_steps(1, 3, -1, &head);
    test_temp_path(path, folder, "events");
    ck_assert_int_eq(qat_file_read(path, 1 << 20, &bytes, &count, NULL), QAT_OK);
    size_t const record = (count - head.count) / 3;
    for (size_t i = 0; i < count; i++) {
        size_t const kept = i < head.count ? 0 : (i - head.count) / record;
        bytes[i] ^= 0x40;
        test_temp_write(folder, "events", bytes, count);
        bytes[i] ^= 0x40;
        write_steps(1, 0, 3, &head);
        ck_assert_int_eq(whole_file().events, 2 + (int)kept);
        test_temp_write(folder, "events", bytes, i);
        write_steps(1, 0, 3, &head);
        ck_assert_int_eq(whole_file().events, 2 + (int)kept);
    }
    free(bytes);
    qat_writer_free(&head);
}
END_TEST

/** A file that may not grow keeps whole records; the others wait, and come when there is room. */
START_TEST(what_cannot_be_written_waits)
{
    qat_writer head = head_of("0.1");
    qat_event_file f;
    qat_error err;
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    open_file(&f, &head, -1);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = head.count + 20;
    setrlimit(RLIMIT_FSIZE, &limit);
    qat_event_scalar(&f.waiting, 1, "loss", 1);
    qat_status const st = qat_event_file_flush(&f, &err); /* an assertion writes to a file, too */
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(st, QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "cannot write "));
    ck_assert_int_eq(whole_file().events, 2);
    qat_event_scalar(&f.waiting, 2, "loss", 1);
    ck_assert_int_eq(qat_event_file_flush(&f, &err), QAT_OK);
    ck_assert_int_eq(whole_file().events, 4);
    qat_event_file_close(&f);
    qat_writer_free(&head);
}
END_TEST

/* ------------------------------------------------------------------ runs */

static const char *const with[] = {"output.tensorboard=yes", "quant.enabled=yes",
                                   "quant.quant_delay=4", "train.eval_every=4",
                                   "quant.layout=int8"};
enum { WITH = sizeof with / sizeof *with };

static void same_run(const char *a, const char *b)
{
    same_files(a, b, "last.ckpt");
    same_files(a, b, "best.ckpt");
    same_files(a, b, "log.csv");
}

START_TEST(a_run_is_the_one_without)
{
    must_train_with("with", with, WITH, 0, false);
    must_train_with("without", with + 1, WITH - 1, 0, false);
    same_run("with", "without");
    content const c = events_of("with");
    ck_assert_int_eq(c.ends, 1);
    ck_assert_int_eq(c.steps[c.events - 1], 16);
}
END_TEST

/** Stopped after each step, with other numbers of threads: the same bytes. */
START_TEST(an_interrupted_run_writes_the_same_file)
{
    must_train_with("whole", with, WITH, 0, false);
    must_train_with("parts", with, WITH, 1, false);
    for (int step = 2; step <= 16; step++) {
        qat_set_threads(1 + step % 3);
        must_train_with("parts", with, WITH, 1, true);
    }
    must_train_with("parts", with, WITH, 0, true);
    must_train_with("parts", with, WITH, 0, true); /* nothing is left to do */
    same_files("whole", "parts", EVENTS);
    same_run("whole", "parts");
}
END_TEST

/** A float network with attributes and a value has other figures, and no ranges. */
START_TEST(a_run_of_another_task_writes_one_too)
{
    static const char *const sets[] = {"output.tensorboard=yes", "data.kind=faces", "data.flip=no"};
    must_train_with("faces", sets, 3, 0, false);
    ck_assert_int_eq(events_of("faces").ends, 1);
}
END_TEST

static void write_some(qat_writer *w, const qat_graph *graph)
{
    qat_board_setting const s = {"a", "b", QAT_SETTING_BOOL, 1};
    qat_event_version(w);
    qat_event_graph(w, graph);
    qat_event_settings(w, &s, 1);
    qat_event_text(w, 1, "t", "text");
    qat_event_end(w, 3);
}

/** Each allocation of the records fails once. */
START_TEST(without_memory_a_record_fails)
{
    qat_registry *registry;
    qat_graph *graph;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&graph, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(graph, "x", QAT_SHAPE(1, 8, 8, 1));
    x = qat_apply1(graph, "conv2d", "conv", "filters=2 kernel=3 padding=1,2", x);
    ck_assert_ptr_nonnull(qat_apply1(graph, "relu", "conv/relu", "", x));
    bool failed;
    long n = 0;
    do {
        qat_writer w = {0};
        test_fail_alloc_after(n++);
        write_some(&w, graph);
        failed = test_fail_alloc_stop();
        ck_assert(w.failed == failed);
        if (!failed)
            ck_assert_int_eq(read_events(w.bytes, w.count).events, 5);
        qat_writer_free(&w);
    } while (failed);
    ck_assert_int_gt(n, 10);
    qat_graph_free(graph);
    qat_registry_free(registry);
}
END_TEST

/** The same of a run: it ends with a message, or does without. */
START_TEST(without_memory_a_run_says_so)
{
    char dir[TEST_PATH_MAX];
    qat_recipe *r = recipe_with(with, WITH);
    qat_train_options const o = {.dir = dir_of(dir, "little"), .overwrite = true};
    for (long n = 0; n < 6000; n += 1 + n / 7) {
        qat_error err = {0};
        test_fail_alloc_after(n);
        qat_status const st = qat_train(r, &o, NULL, &err);
        (void)test_fail_alloc_stop();
        ck_assert_msg(st == QAT_OK || (st == QAT_ERR_NOMEM && strstr(err.message, "out of memory")),
                      "allocation %ld: %s", n, err.message);
    }
    qat_recipe_free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("board");
    TCase *tc = tcase_create("board");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, the_checksum_is_crc32c);
    tcase_add_test(tc, histograms_count_every_value_once);
    tcase_add_test(tc, files_are_cut_behind_the_last_step_that_counts);
    tcase_add_test(tc, broken_files_are_cut_before_the_damage);
    tcase_add_test(tc, what_cannot_be_written_waits);
    tcase_add_test(tc, a_run_is_the_one_without);
    tcase_add_test(tc, an_interrupted_run_writes_the_same_file);
    tcase_add_test(tc, a_run_of_another_task_writes_one_too);
    tcase_add_test(tc, without_memory_a_record_fails);
    tcase_add_test(tc, without_memory_a_run_says_so);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
