#include "fuzz/mutations/qm_packing.h"
#include "fuzz/fuzz.h"

#include "qat/infer.h"

#include <string.h>

enum { MOST_BYTES = 8192 };

/** A form, and the bytes of a constant in it. */
struct packed {
    uint64_t *x;
    unsigned packing, listed, indices; /* indices: how many there are */
    size_t rows, values;
    uint8_t bytes[MOST_BYTES];
};

static unsigned at_most(unsigned x, unsigned limit)
{
    return x < limit ? x : limit;
}

/** Choose packing and list. Without a list, the tensor gets as many bits. */
static void choose(struct packed *p, uint8_t *tensor)
{
    unsigned const is_signed = tensor[QM_TENSOR_TYPE] == QI_S8;
    p->packing = 1 + (unsigned)fuzz_below(p->x, QI_TRITS);
    int const has_list =
        p->packing == QI_TRITS || fuzz_below(p->x, 2) || (is_signed && p->packing < 2);
    if (!has_list)
        tensor[QM_TENSOR_BITS] = (uint8_t)p->packing;
    unsigned const codes = 1u << (tensor[QM_TENSOR_BITS] & 7 ? tensor[QM_TENSOR_BITS] & 7 : 8);
    unsigned const most = p->packing == QI_TRITS ? QM_MOST_TRITS : at_most(1u << p->packing, 255);
    p->listed = has_list ? 1 + (unsigned)fuzz_below(p->x, at_most(most, codes)) : 0;
    p->indices = has_list ? p->listed : 1u << p->packing;
    unsigned const lowest = is_signed ? 256 - codes / 2 : 0;
    for (unsigned i = 0; i < p->listed; i++)
        p->bytes[i] = (uint8_t)(lowest + i * (codes / p->listed));
}

static void write_value(const struct packed *p, uint8_t *row, size_t i, unsigned index)
{
    static const uint8_t power[QI_TRITS_OF_BYTE] = {1, 3, 9, 27, 81};
    if (p->packing == QI_TRITS)
        row[i / QI_TRITS_OF_BYTE] += (uint8_t)(index * power[i % QI_TRITS_OF_BYTE]);
    for (size_t b = 0; b < p->packing && p->packing != QI_TRITS; b++)
        row[(i * p->packing + b) / 8] |= (uint8_t)((index >> b & 1) << (i * p->packing + b) % 8);
}

static void write_rows(struct packed *p)
{
    size_t const row_bytes = qm_packed_row_bytes((int)p->packing, p->values);
    for (size_t r = 0; r < p->rows; r++)
        for (size_t i = 0; i < p->values; i++)
            write_value(p, p->bytes + p->listed + r * row_bytes, i,
                        (unsigned)fuzz_below(p->x, p->indices));
}

/** Append a constant's new bytes at an aligned place, and let its record name them; 0: no room. */
static int move_data(qm_image *image, uint8_t *tensor, const uint8_t *bytes, size_t size)
{
    size_t const used = image->part[QM_DATA].count % QM_ALIGNMENT;
    if (qm_append(image, QM_DATA, NULL, used ? QM_ALIGNMENT - used : 0) < 0)
        return 0;
    long const at = qm_append(image, QM_DATA, bytes, size);
    if (at < 0)
        return 0;
    qm_put(tensor + QM_TENSOR_DATA, (uint32_t)at);
    qm_put(tensor + QM_TENSOR_SIZE, (uint32_t)size);
    return 1;
}

void qm_pack_weights(qm_image *image, uint8_t *tensor, uint64_t *x)
{
    struct packed p = {.x = x, .rows = qm_get(tensor + QM_TENSOR_DIMS), .values = 1};
    for (int d = 1; d < 4; d++)
        p.values *= qm_get(tensor + QM_TENSOR_DIMS + 4 * d) & 0xffff;
    if (!p.rows || !p.values || p.rows > MOST_BYTES || p.values > MOST_BYTES)
        return;
    choose(&p, tensor);
    size_t const size = p.listed + p.rows * qm_packed_row_bytes((int)p.packing, p.values);
    if (size > MOST_BYTES)
        return;
    write_rows(&p);
    if (fuzz_below(x, 16) == 0) /* a byte of padding, perhaps */
        p.bytes[size - 1] |= 0x80;
    if (!move_data(image, tensor, p.bytes, size))
        return;
    tensor[QM_TENSOR_PACKING] = (uint8_t)p.packing;
    tensor[QM_TENSOR_LISTED] = (uint8_t)p.listed;
}

void qm_narrow(qm_image *image, uint8_t *tensor, uint64_t *x)
{
    static uint8_t bytes[MOST_BYTES];
    size_t const at = qm_get(tensor + QM_TENSOR_DATA), n = qm_get(tensor + QM_TENSOR_SIZE) / 4;
    size_t const there = image->part[QM_DATA].count;
    if (tensor[QM_TENSOR_PACKING] || at > there || n > (there - at) / 4 || n > MOST_BYTES)
        return;
    const uint8_t *values = qm_record(image, QM_DATA, at);
    for (size_t i = 0; i < n; i++)
        bytes[i] = fuzz_below(x, 64) ? values[4 * i] : (uint8_t)fuzz_below(x, 256);
    if (move_data(image, tensor, bytes, n))
        tensor[QM_TENSOR_PACKING] = QM_NARROW;
}

void qm_derive(uint8_t *tensor)
{
    tensor[QM_TENSOR_PACKING] = QM_DERIVED;
    qm_put(tensor + QM_TENSOR_SIZE, 0);
}
