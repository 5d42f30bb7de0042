/** Short records: the same model in fewer bytes, and what is refused. */
#include "common/suite.h"
#include "infer/model/records.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { X, WEIGHTS, BIAS, MULT, SHIFT, Y, TENSORS, INPUTS = 5, OUTPUTS = 3 };

/** fully_connected with 4-bit weights. */
static qat_qgraph *network(void)
{
    codes_of const x = {QI_U8, 8, 100}, w = {QI_S8, 4, 0};
    int32_t const in[] = {1, INPUTS}, of[] = {OUTPUTS, INPUTS}, out[] = {1, OUTPUTS};
    int32_t const bias[OUTPUTS] = {1, -2, 3}, mult = 1 << 30, shift = -5, clamp[] = {0, 255};
    uint64_t seed = 5;
    int64_t most = 0;
    const uint8_t *codes;
    qat_qgraph *g = qat_qgraph_new();
    net_activation(g, x, 2, in);
    net_constant(g, w, 2, of, &seed, &codes);
    for (int o = 0; o < OUTPUTS; o++) {
        int64_t sum = labs((long)bias[o]);
        for (int i = 0; i < INPUTS; i++)
            sum += 155 * labs((long)code_at(codes, (size_t)(o * INPUTS + i), w));
        most = sum > most ? sum : most;
    }
    net_s32(g, OUTPUTS, 1, bias);
    net_s32(g, 1, 1, &mult);
    net_s32(g, 1, 1, &shift);
    net_activation(g, x, 2, out);
    net_op(g, "fully_connected", QI_ROUND_TWICE, 5, (const int[]){X, WEIGHTS, BIAS, MULT, SHIFT}, Y,
           2, clamp, most);
    net_io(g, X, Y);
    return g;
}

static uint8_t *write_form(qat_qm_form form, size_t *count)
{
    qat_qgraph *g = network();
    g->form = form;
    uint8_t *qm = net_write(g, NULL, NULL, count);
    ck_assert_int_eq(net_status(qm, *count), QI_OK);
    qat_qgraph_free(g);
    return qm;
}

/** With records of a fixed length: short ones if names and scales are left out. */
static uint8_t *write_as(int without, size_t *count)
{
    return write_form((qat_qm_form){.fixed = true, .without = without}, count);
}

/** Fields that a short record has become those of the long one. */
START_TEST(short_records_mean_the_same)
{
    size_t count, short_count;
    uint8_t *qm = write_as(0, &count);
    uint8_t *short_qm = write_as(QAT_QM_NAMES | QAT_QM_SCALES, &short_count);
    uint8_t room[QM_TENSOR_BYTES], short_room[QM_TENSOR_BYTES];
    qm_walk walk = qm_walk_tensors(qm), short_walk = qm_walk_tensors(short_qm);
    ck_assert_uint_eq(qm_form(qm), 0);
    ck_assert_uint_eq(qm_form(short_qm), QM_FLAG_SHORT);
    ck_assert_uint_lt(short_count + TENSORS * 32 + 24, count);
    for (int32_t i = 0; i < TENSORS; i++) {
        const uint8_t *a = qm_next_tensor(&walk, room);
        const uint8_t *b = qm_next_tensor(&short_walk, short_room);
        ck_assert_mem_eq(a + QM_TENSOR_TYPE, b + QM_TENSOR_TYPE, QM_TENSOR_DATA - QM_TENSOR_TYPE);
        ck_assert_mem_eq(a + QM_TENSOR_BORDER, b + QM_TENSOR_BORDER,
                         QM_TENSOR_BYTES - QM_TENSOR_BORDER);
    }
    walk = qm_walk_nodes(qm);
    short_walk = qm_walk_nodes(short_qm);
    const uint8_t *node = qm_next_node(&walk, room);
    const uint8_t *short_node = qm_next_node(&short_walk, short_room);
    ck_assert_mem_eq(node + QM_NODE_INPUTS, short_node + QM_NODE_INPUTS,
                     QM_NODE_BYTES - QM_NODE_INPUTS);
    free(qm);
    free(short_qm);
}
END_TEST

static qi_status changed(uint8_t *qm, size_t count, size_t at, uint8_t value)
{
    uint8_t const before = qm[at];
    qm[at] = value;
    net_reseal(qm, count);
    qi_status const st = net_status(qm, count);
    qm[at] = before;
    return st;
}

START_TEST(wrong_short_records_are_refused)
{
    size_t count;
    uint8_t *qm = write_as(QAT_QM_ALL_PARTS, &count);
    size_t const x = QM_HEADER_BYTES, bias = x + BIAS * (size_t)QM_SHORT_TENSOR_BYTES;
    size_t const node = qm_u32(qm + QM_AT_NODES);
    ck_assert_int_eq(changed(qm, count, QM_AT_FLAGS, 0), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, QM_AT_FLAGS, QM_FLAG_SHORT | QM_FLAG_COMPACT),
                     QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, QM_AT_FLAGS, QM_FLAG_SHORT | 8), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, x + QM_SHORT_TENSOR_KIND, 16 * QI_BORDER_FLOAT32), QI_OK);
    ck_assert_int_eq(changed(qm, count, x + QM_SHORT_TENSOR_KIND, 16 * 4), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, x + QM_SHORT_TENSOR_KIND, 3), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, x + QM_SHORT_TENSOR_DATA, 4), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, x + QM_SHORT_TENSOR_ZERO_POINT + 1, 0x80), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, x + QM_SHORT_TENSOR_PACKING, 8), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, x + QM_SHORT_TENSOR_LISTED, 1), QI_ERR_FORMAT);
    for (uint8_t by = 1; by < 4; by++) /* int32 at an odd place */
        ck_assert_int_eq(changed(qm, count, bias + QM_SHORT_TENSOR_DATA,
                                 (uint8_t)(qm[bias + QM_SHORT_TENSOR_DATA] + by)),
                         QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, node + QM_SHORT_NODE_RESERVED, 1), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, node + QM_SHORT_NODE_RESERVED + 1, 1), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, node + QM_SHORT_NODE_FIRST + 3, 0xff), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, node + QM_SHORT_NODE_N_INPUTS + 1, 0xff), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, node + QM_SHORT_NODE_N_OUTPUTS, 0), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, node + QM_SHORT_NODE_ROUNDING, QI_ROUND_ONCE + 1),
                     QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, node + QM_SHORT_NODE_FRACTION, 16), QI_ERR_FORMAT);
    free(qm);
}
END_TEST

/* ------------------------------------------------------------------ compact records */

/** All fields but those of places are those of long records; so is what the engine computes. */
START_TEST(compact_records_mean_the_same)
{
    size_t count, compact_count;
    uint8_t *qm = write_as(0, &count);
    uint8_t *compact = write_form((qat_qm_form){0}, &compact_count);
    uint8_t room[QM_TENSOR_BYTES], other_room[QM_TENSOR_BYTES];
    qm_walk walk = qm_walk_tensors(qm), other = qm_walk_tensors(compact);
    ck_assert_uint_eq(qm_form(compact), QM_FLAG_COMPACT);
    ck_assert_uint_lt(compact_count + TENSORS * 40 + 30, count);
    for (int32_t i = 0; i < TENSORS; i++) {
        const uint8_t *a = qm_next_tensor(&walk, room);
        const uint8_t *b = qm_next_tensor(&other, other_room);
        ck_assert_ptr_nonnull(b);
        ck_assert_mem_eq(a + QM_TENSOR_TYPE, b + QM_TENSOR_TYPE, QM_TENSOR_DATA - QM_TENSOR_TYPE);
        ck_assert_mem_eq(a + QM_TENSOR_RANGE_MIN, b + QM_TENSOR_RANGE_MIN, 9);
        ck_assert_int_eq(b[QM_TENSOR_PACKING],
                         i == SHIFT ? QI_PACKING_NARROW : a[QM_TENSOR_PACKING]);
    }
    walk = qm_walk_nodes(qm);
    other = qm_walk_nodes(compact);
    const uint8_t *a = qm_next_node(&walk, room), *b = qm_next_node(&other, other_room);
    ck_assert_mem_eq(a + QM_NODE_INPUTS, b + QM_NODE_INPUTS, QM_NODE_BYTES - QM_NODE_INPUTS);
    free(qm);
    free(compact);
}
END_TEST

/** The status of a compact file of which one byte of tensor `index`'s record is another. */
static qi_status changed_record(uint8_t *qm, size_t count, int index, size_t at, int by)
{
    uint8_t room[QM_TENSOR_BYTES];
    qm_walk walk = qm_walk_tensors(qm);
    for (int i = 0; i < index; i++)
        (void)qm_next_tensor(&walk, room);
    size_t const place = (size_t)(walk.at - qm) + at;
    return changed(qm, count, place, (uint8_t)(qm[place] + by));
}

START_TEST(wrong_compact_records_are_refused)
{
    enum { HEAD, FIELDS, DIMS };
    size_t count;
    uint8_t *qm = write_form((qat_qm_form){.without = QAT_QM_ALL_PARTS}, &count);
    ck_assert_int_eq(changed(qm, count, QM_AT_FLAGS, 0), QI_ERR_FORMAT);
    ck_assert_int_eq(changed(qm, count, QM_AT_FLAGS, QM_FLAG_SHORT), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_record(qm, count, X, HEAD, 5), QI_ERR_FORMAT);    /* a type of 5 */
    ck_assert_int_eq(changed_record(qm, count, X, FIELDS, 64), QI_ERR_FORMAT); /* no such field */
    ck_assert_int_eq(changed_record(qm, count, X, FIELDS, 128), QI_ERR_FORMAT);
    ck_assert_int_eq(changed_record(qm, count, BIAS, DIMS, -3), QI_ERR_FORMAT);  /* no value */
    ck_assert_int_eq(changed_record(qm, count, BIAS, DIMS, 125), QI_ERR_FORMAT); /* 2 bytes: 0 */
    /* a bias cannot be narrow, nor have its bytes elsewhere than at a multiple of 4 */
    size_t const bias = DIMS + 1;
    for (int by = 2; by < 5; by++)
        ck_assert_int_eq(changed_record(qm, count, BIAS, bias, by), QI_ERR_FORMAT);
    size_t const after = (size_t)qm_u32(qm + QM_AT_NODES) - 1;
    ck_assert_int_eq(changed(qm, count, after, 1), QI_ERR_FORMAT); /* padding */
    free(qm);
}
END_TEST

/** 128 + b, 0 would be a second form of b; 32 bits end in the fifth byte. */
START_TEST(numbers_have_one_form)
{
    static const struct {
        uint8_t bytes[6];
        bool is_good;
        uint32_t value;
    } cases[] = {{{0}, true, 0},
                 {{127}, true, 127},
                 {{128, 1}, true, 128},
                 {{128, 0}, false, 0},
                 {{255, 255, 255, 255, 15}, true, UINT32_MAX},
                 {{255, 255, 255, 255, 16}, false, 0},
                 {{255, 255, 255, 255, 143, 0}, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t record[24] = {QI_ACTIVATION}, room[QM_TENSOR_BYTES];
        memcpy(record + 2, cases[i].bytes, sizeof cases[i].bytes);
        qm_walk walk = {.at = record, .end = record + sizeof record, .form = QM_FLAG_COMPACT};
        const uint8_t *p = qm_next_tensor(&walk, room);
        ck_assert_msg(!p == !cases[i].is_good, "case %d", (int)i);
        if (p)
            ck_assert_uint_eq(qm_u32(p + QM_TENSOR_DIMS), cases[i].value);
    }
}
END_TEST

/** Whatever a byte of the records becomes, the core gives an answer. */
START_TEST(every_byte_is_checked)
{
    size_t count;
    uint8_t *qm = write_form((qat_qm_form){.fixed = _i, .without = QAT_QM_ALL_PARTS}, &count);
    size_t const end = qm_u32(qm + QM_AT_INTS);
    int refused = 0;
    for (size_t at = QM_HEADER_BYTES; at < end; at++)
        for (int bit = 0; bit < 8; bit++)
            refused += changed(qm, count, at, (uint8_t)(qm[at] ^ 1 << bit)) != QI_OK;
    ck_assert_int_gt(refused, _i ? 1000 : 400);
    free(qm);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("records");
    TCase *tc = tcase_create("short records");
    tcase_add_test(tc, short_records_mean_the_same);
    tcase_add_test(tc, wrong_short_records_are_refused);
    tcase_add_loop_test(tc, every_byte_is_checked, 0, 2);
    tcase_add_test(tc, compact_records_mean_the_same);
    tcase_add_test(tc, wrong_compact_records_are_refused);
    tcase_add_test(tc, numbers_have_one_form);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
