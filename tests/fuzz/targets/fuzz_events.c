/**
 * Fuzz target: event files that a run continues.
 *
 * The input is an old file. Options of its first byte: the step up to which it stays. Whatever it
 * holds, it is cut to whole records, and what is written behind them can be read again.
 */
#include "base/checksums/crc32c.h"
#include "board/event_file.h"
#include "board/events.h"
#include "fuzz/fuzz.h"
#include "fuzz/fuzz_files.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

static qat_writer head_of_run(void)
{
    qat_writer w = {0};
    qat_event_version(&w);
    return w;
}

/** Every record must be whole; returns their number. */
static int read_records(const uint8_t *bytes, size_t size)
{
    qat_reader r = qat_reader_of(bytes, size);
    int n = 0;
    for (; r.at < r.end; n++) {
        const uint8_t *head = r.at;
        uint64_t const length = qat_read_u64(&r);
        qat_event_look look;
        fuzz_require(qat_read_u32(&r) == qat_masked_crc32c(head, 8), "a length has its checksum");
        const void *event = qat_read_bytes(&r, (size_t)length);
        fuzz_require(event && qat_event_see(&look, event, (size_t)length), "an event is one");
        fuzz_require(qat_read_u32(&r) == qat_masked_crc32c(event, (size_t)length),
                     "an event has its checksum");
    }
    fuzz_require(!r.bad, "the file ends with a record");
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t after[MOST];
    char path[FUZZ_PATH_MAX];
    qat_writer head = head_of_run();
    qat_event_file f;
    if (size < 1 || size > MOST / 2)
        return 0;
    fuzz_file(path, "events", data + 1, size - 1);
    qat_status st = qat_event_file_open(&f, fuzz_folder(), "events", &head, data[0], NULL);
    fuzz_require(st == QAT_OK, "any old file can be opened");
    size_t const kept = (size_t)f.size;
    fuzz_require(kept >= head.count, "the head is there");
    qat_event_scalar(&f.waiting, data[0], "loss", 1);
    fuzz_require(qat_event_file_flush(&f, NULL) == QAT_OK, "records can be added");
    qat_event_file_close(&f);
    size_t const n = fuzz_file_read(path, after, sizeof after);
    fuzz_require(read_records(after, n) >= 2, "head and record are there");
    fuzz_require(kept <= head.count || (kept <= size - 1 && !memcmp(after, data + 1, kept)),
                 "what is kept is the old file's");
    qat_writer_free(&head);
    return 0;
}

/* ------------------------------------------------------------------ mutations */

/** Make the checksums of the record at `at` right, as far as it has any. Returns the next one. */
static size_t repair(uint8_t *bytes, size_t size, size_t at)
{
    uint64_t length = 0;
    qat_writer crc = {0};
    if (size - at < QAT_RECORD_HEAD + QAT_RECORD_TAIL)
        return size;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[at + (size_t)i];
    qat_write_u32(&crc, qat_masked_crc32c(bytes + at, 8));
    memcpy(bytes + at + 8, crc.bytes, 4);
    size_t next = size;
    if (length <= size - at - QAT_RECORD_HEAD - QAT_RECORD_TAIL) {
        size_t const end = at + QAT_RECORD_HEAD + (size_t)length;
        qat_write_u32(&crc, qat_masked_crc32c(bytes + at + QAT_RECORD_HEAD, (size_t)length));
        memcpy(bytes + end, crc.bytes + 4, 4);
        next = end + QAT_RECORD_TAIL;
    }
    qat_writer_free(&crc);
    return next;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    size_t const n = LLVMFuzzerMutate(data, size, most);
    if (n > 1 && fuzz_below(&x, 4) > 0)
        for (size_t at = 1; at < n;)
            at = repair(data, n, at);
    return n;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned int seed)
{
    uint64_t x = seed;
    return fuzz_join(a, fuzz_below(&x, a_size + 1), b, b_size, fuzz_below(&x, b_size + 1), out,
                     most);
}
