/**
 * Bounded readers and writers of little-endian numbers. A reader never passes its end: it then
 * returns 0 and sets `bad`, which stays set. A parser may therefore check once after several reads.
 */
#ifndef QAT_BASE_BYTES_H
#define QAT_BASE_BYTES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qat_reader {
    const uint8_t *at, *end;
    bool bad;
} qat_reader;

qat_reader qat_reader_of(const void *bytes, size_t count);
uint8_t qat_read_u8(qat_reader *r);
uint16_t qat_read_u16(qat_reader *r);
uint32_t qat_read_u32(qat_reader *r);
uint64_t qat_read_u64(qat_reader *r);
float qat_read_f16(qat_reader *r);
float qat_read_f32(qat_reader *r);
double qat_read_f64(qat_reader *r);
/** The value of a half: IEEE 754 binary16. */
float qat_half(uint16_t bits);
/** A pointer to the next count bytes inside the buffer. Past the end: NULL, and bad is set. */
const void *qat_read_bytes(qat_reader *r, size_t count);
/**
 * Read a u32 length and that many bytes into text[max]. Sets bad if they contain a NUL or do not
 * fit.
 */
void qat_read_string(qat_reader *r, char *text, size_t max);

/** A growing buffer. After a failed allocation, `failed` stays set and writes do nothing. */
typedef struct qat_writer {
    uint8_t *bytes;
    size_t count, capacity;
    bool failed;
} qat_writer;

void qat_writer_free(qat_writer *w);
void qat_write_u8(qat_writer *w, uint8_t v);
void qat_write_u16(qat_writer *w, uint16_t v);
void qat_write_u32(qat_writer *w, uint32_t v);
void qat_write_u64(qat_writer *w, uint64_t v);
void qat_write_f32(qat_writer *w, float v);
void qat_write_f64(qat_writer *w, double v);
void qat_write_bytes(qat_writer *w, const void *bytes, size_t count);
void qat_write_string(qat_writer *w, const char *text);
/** Append zero bytes until count is a multiple of alignment. */
void qat_write_align(qat_writer *w, size_t alignment);
/** Overwrite four bytes written earlier. */
void qat_patch_u32(qat_writer *w, size_t at, uint32_t v);
/** Append text as printf formats it, without its NUL. */
void qat_write_text(qat_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void qat_write_vtext(qat_writer *w, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#endif
