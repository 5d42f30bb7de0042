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

static uint8_t *write_as(int without, size_t *count)
{
    qat_qgraph *g = network();
    g->form.without = without;
    uint8_t *qm = net_write(g, NULL, NULL, count);
    ck_assert_int_eq(net_status(qm, *count), QI_OK);
    qat_qgraph_free(g);
    return qm;
}

/** Fields that a short record has become those of the long one. */
START_TEST(short_records_mean_the_same)
{
    size_t count, short_count;
    uint8_t *qm = write_as(0, &count);
    uint8_t *short_qm = write_as(QAT_QM_NAMES | QAT_QM_SCALES, &short_count);
    uint8_t room[QM_TENSOR_BYTES], short_room[QM_TENSOR_BYTES];
    ck_assert_uint_eq(qm_tensor_record_bytes(qm), QM_TENSOR_BYTES);
    ck_assert_uint_eq(qm_tensor_record_bytes(short_qm), QM_SHORT_TENSOR_BYTES);
    ck_assert_uint_eq(qm_node_record_bytes(short_qm), QM_SHORT_NODE_BYTES);
    ck_assert_uint_lt(short_count + TENSORS * 32 + 24, count);
    for (int32_t i = 0; i < TENSORS; i++) {
        const uint8_t *a = qm_tensor_record(qm, i, room);
        const uint8_t *b = qm_tensor_record(short_qm, i, short_room);
        ck_assert_mem_eq(a + QM_TENSOR_TYPE, b + QM_TENSOR_TYPE, QM_TENSOR_DATA - QM_TENSOR_TYPE);
        ck_assert_mem_eq(a + QM_TENSOR_BORDER, b + QM_TENSOR_BORDER,
                         QM_TENSOR_BYTES - QM_TENSOR_BORDER);
    }
    const uint8_t *node = qm_node_record(qm, 0, room);
    const uint8_t *short_node = qm_node_record(short_qm, 0, short_room);
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
    ck_assert_int_eq(changed(qm, count, QM_AT_FLAGS, 6), QI_ERR_FORMAT);
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

/** Whatever a byte of the records becomes, the core gives an answer. */
START_TEST(every_byte_is_checked)
{
    size_t count;
    uint8_t *qm = write_as(QAT_QM_ALL_PARTS, &count);
    size_t const end = qm_u32(qm + QM_AT_INTS);
    int refused = 0;
    for (size_t at = QM_HEADER_BYTES; at < end; at++)
        for (int bit = 0; bit < 8; bit++)
            refused += changed(qm, count, at, (uint8_t)(qm[at] ^ 1 << bit)) != QI_OK;
    ck_assert_int_gt(refused, 1000);
    free(qm);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("records");
    TCase *tc = tcase_create("short records");
    tcase_add_test(tc, short_records_mean_the_same);
    tcase_add_test(tc, wrong_short_records_are_refused);
    tcase_add_test(tc, every_byte_is_checked);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
