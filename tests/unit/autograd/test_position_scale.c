/**
 * The kernel of examples/position_scale.c and its exact evaluation, for every shift that
 * docs/adding-a-kernel.md lets a kernel take (-31..31) and multipliers at both ends. Compiled with
 * UBSan where there is one: a sum that overflows ends the test.
 */
#include "../../../examples/position_scale.c"
#include "common/suite.h"
#include "qat/convert.h"

#include <check.h>
#include <string.h>

enum { SIDE = 4, CODES = SIDE * SIDE * 16 };

static int tensor(qat_qgraph *g, qi_type type, int32_t zero_point, bool gain)
{
    qat_error err;
    uint8_t gains[SIDE * SIDE];
    qat_qtensor t = {.name = "t",
                     .type = type,
                     .bits = 8,
                     .rank = gain ? 2 : 4,
                     .dims = {1, SIDE, SIDE, CODES / SIDE / SIDE},
                     .scale = 1,
                     .zero_point = zero_point,
                     .source_index = -1};
    if (gain) {
        t.dims[0] = SIDE;
        t.dims[1] = SIDE;
        t.dims[2] = t.dims[3] = 1;
        t.data = gains;
        for (int i = 0; i < SIDE * SIDE; i++)
            gains[i] = (uint8_t)(i % 3 == 0 ? 1 : i % 3 == 1 ? 0x80 : 0x7f + i);
    }
    return qat_qgraph_tensor(g, &t, &err);
}

/** One op; zero-points at the end of the type that makes the sums largest. */
static qat_qgraph *graph_of(qi_type type, int32_t mult, int shift)
{
    qat_error err;
    int32_t const lo = type == QI_S8 ? -128 : 0, hi = lo + 255;
    qat_qgraph *g = qat_qgraph_new();
    int const x = tensor(g, type, lo, false), y = tensor(g, type, hi, false);
    int const gain = tensor(g, type, lo + 1, true);
    int const inputs[] = {x, gain};
    int32_t const params[N_PARAMS] = {mult, shift, lo, hi};
    ck_assert_int_eq(qat_qgraph_op(g, "position_scale", "gain", QI_ROUND_TWICE, 2, inputs, 1, &y,
                                   N_PARAMS, params, 255 * 255, &err),
                     0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 1, &x, 1, &y, &err), QAT_OK);
    return g;
}

/** What must come out of value i, in 64 bits throughout. */
static uint8_t expected(const qat_qgraph *g, const uint8_t *codes, size_t i)
{
    const qat_qtensor *x = &g->tensors[0], *y = &g->tensors[1], *w = &g->tensors[2];
    const int32_t *p = g->ops[0].params;
    size_t const position = i / (CODES / SIDE / SIDE);
    int32_t const gain = qat_qtensor_code(w, ((const uint8_t *)w->data)[position]) - w->zero_point;
    int32_t const q = qat_qtensor_code(x, codes[i]) - x->zero_point;
    int64_t const code = (int64_t)qi_requantize(q * gain, p[MULT], p[SHIFT]) + y->zero_point;
    return (uint8_t)(code < p[CLAMP_LO] ? p[CLAMP_LO] : code > p[CLAMP_HI] ? p[CLAMP_HI] : code);
}

static void run_engine(const qat_qgraph *g, const uint8_t *codes, uint8_t *out)
{
    static _Alignas(16) uint8_t file[8192], memory[8192], arena[8192];
    static const qi_kernel *const kernels[] = {&gain_kernel};
    qi_kernel_list const custom = {kernels, 1};
    qat_qm_metadata const metadata = {.description = "one op"};
    uint8_t *bytes;
    size_t count;
    qat_error err;
    qi_error failed;
    qi_model *model;
    ck_assert_msg(qat_qm_write(g, &metadata, &bytes, &count, &err) == QAT_OK, "%s", err.message);
    ck_assert_uint_le(count, sizeof file);
    memcpy(file, bytes, count);
    free(bytes);
    ck_assert_msg(qi_model_init(&model, file, count, &custom, memory, sizeof memory, &failed) ==
                      QI_OK,
                  "%s: %d", failed.what, (int)failed.value);
    ck_assert_uint_le(qi_arena_bytes(model), sizeof arena);
    qi_run(model, arena, (const void *[]){codes}, (void *[]){out});
}

static void run_exact(const qat_qgraph *g, const qat_registry *registry, const uint8_t *codes,
                      uint8_t *out)
{
    qat_error err;
    qat_exact *exact;
    ck_assert_msg(qat_exact_create(&exact, g, registry, 1, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_exact_run(exact, (const void *[]){codes}, 1, &err), QAT_OK);
    memcpy(out, qat_exact_tensor(exact, 1), CODES);
    qat_exact_free(exact);
}

static void check_shift(const qat_registry *registry, qi_type type, int32_t mult, int shift)
{
    uint8_t codes[CODES], engine[CODES], exact[CODES];
    qat_qgraph *g = graph_of(type, mult, shift);
    for (int i = 0; i < CODES; i++)
        codes[i] = (uint8_t)i;
    run_engine(g, codes, engine);
    run_exact(g, registry, codes, exact);
    for (size_t i = 0; i < CODES; i++)
        ck_assert_msg(engine[i] == expected(g, codes, i) && exact[i] == engine[i],
                      "type %d, multiplier %d, shift %d, value %zu: engine %d, exact %d, wanted %d",
                      (int)type, (int)mult, shift, i, engine[i], exact[i], expected(g, codes, i));
    qat_qgraph_free(g);
}

START_TEST(every_shift)
{
    static const int32_t mults[] = {0, 1 << 30, INT32_MAX};
    qat_registry *registry;
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&registry, &err), QAT_OK);
    ck_assert_int_eq(qat_registry_add(registry, qat_plugin_entry.ops[0], &err), QAT_OK);
    for (size_t m = 0; m < sizeof mults / sizeof mults[0]; m++)
        for (int shift = -31; shift <= 31; shift++) {
            check_shift(registry, QI_U8, mults[m], shift);
            check_shift(registry, QI_S8, mults[m], shift);
        }
    qat_registry_free(registry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("position_scale");
    TCase *tc = tcase_create("shifts");
    tcase_add_test(tc, every_shift);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
