/**
 * Row bands of random networks: every stage that is possible, with several numbers of rows, gives
 * the bytes of the network without bands, takes the RAM that was planned, and leaves the rest
 * alone. So do networks of few bits with any of their tensors packed. A limit of RAM is kept or
 * refused, and the least RAM that the message names is enough.
 */
#include "bands/bands.h"
#include "common/suite.h"
#include "infer/host/host.h"
#include "infer/model/model.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 150, MOST_OPS = 8, MOST_VALUES = 1 << 15 };

/* ------------------------------------------------------------------ random networks */

typedef struct net {
    qat_qgraph *g;
    codes_of c; /* of all activations */
    uint64_t seed;
} net;

static const int32_t *dims_of(const net *n, int tensor)
{
    return n->g->tensors[tensor].dims;
}

/** A window that fits: kernel, stride, dilation and pads of one axis, and the outputs. */
struct axis {
    int32_t kernel, stride, dilation, pad, out;
};

static struct axis random_axis(net *n, int32_t size, bool may_dilate)
{
    struct axis a = {test_random_in(&n->seed, 1, 4), test_random_in(&n->seed, 1, 3), 1, 0, 0};
    a.dilation = may_dilate && test_random(&n->seed) % 3 == 0 ? 2 : 1;
    int32_t const extent = (a.kernel - 1) * a.dilation + 1;
    a.pad = test_random_in(&n->seed, 0, extent - 1);
    int32_t const most = (size - 1 + a.pad) / a.stride + 1; /* the last window begins inside */
    int32_t const same = (size + a.stride - 1) / a.stride;
    a.out = test_random(&n->seed) % 2 && same <= most ? same : most;
    return a;
}

static int64_t bound_of(const net *n, const qat_qtensor *w, const uint8_t *codes, bool is_last,
                        const int32_t *bias)
{
    int32_t const channels = w->dims[is_last ? 3 : 0], lo = codes_lo(n->c), hi = codes_hi(n->c);
    int64_t const far =
        hi - n->c.zero_point > n->c.zero_point - lo ? hi - n->c.zero_point : n->c.zero_point - lo;
    int64_t most = 0;
    size_t const count = qat_qtensor_count(w);
    for (int32_t o = 0; o < channels; o++) {
        int64_t sum = 0;
        for (size_t i = 0; i < count; i++)
            if ((is_last ? i % (size_t)channels : i / (count / (size_t)channels)) == (size_t)o)
                sum += abs((int8_t)codes[i]);
        sum = sum * far + labs(bias[o]);
        most = sum > most ? sum : most;
    }
    return most;
}

static int convolution(net *n, int x, bool is_depthwise)
{
    const int32_t *d = dims_of(n, x);
    struct axis const h = random_axis(n, d[1], true), w = random_axis(n, d[2], true);
    int32_t const times = is_depthwise ? test_random_in(&n->seed, 1, 2) : 1;
    int32_t const outputs = is_depthwise ? d[3] * times : 8 * test_random_in(&n->seed, 1, 3);
    int32_t const kernel[] = {is_depthwise ? 1 : outputs, h.kernel, w.kernel,
                              is_depthwise ? outputs : d[3]};
    int32_t const out[] = {1, h.out, w.out, outputs};
    int32_t const params[] = {h.stride, w.stride, h.dilation,     w.dilation,    h.pad,
                              w.pad,    times,    codes_lo(n->c), codes_hi(n->c)};
    int32_t const mult = test_random_in(&n->seed, 1 << 30, INT32_MAX), shift = -9;
    int32_t bias[128];
    const uint8_t *codes;
    for (int32_t i = 0; i < outputs; i++)
        bias[i] = test_random_in(&n->seed, -3000, 3000);
    int const weights = net_constant(n->g, (codes_of){QI_S8, 8, 0}, 4, kernel, &n->seed, &codes);
    int64_t const bound = bound_of(n, &n->g->tensors[weights], codes, is_depthwise, bias);
    int const inputs[] = {x, weights, net_s32(n->g, outputs, 1, bias), net_s32(n->g, 1, 1, &mult),
                          net_s32(n->g, 1, 1, &shift)};
    int const y = net_activation(n->g, n->c, 4, out);
    net_op(n->g, is_depthwise ? "depthwise_conv2d" : "conv2d", QI_ROUND_TWICE, 5, inputs, y, 9,
           params, bound);
    return y;
}

static int pool(net *n, int x, bool is_max)
{
    const int32_t *d = dims_of(n, x);
    struct axis const h = random_axis(n, d[1], false), w = random_axis(n, d[2], false);
    int32_t const out[] = {1, h.out, w.out, d[3]};
    int32_t const params[] = {h.kernel, w.kernel, h.stride,       w.stride,
                              h.pad,    w.pad,    codes_lo(n->c), codes_hi(n->c)};
    int const y = net_activation(n->g, n->c, 4, out);
    net_op(n->g, is_max ? "max_pool2d" : "average_pool2d", QI_ROUND_NONE, 1, &x, y, 8, params, 0);
    return y;
}

static int pad(net *n, int x)
{
    int32_t params[9] = {0}, out[4];
    memcpy(out, dims_of(n, x), sizeof out);
    for (int axis = 1; axis < 3; axis++) {
        params[axis] = test_random_in(&n->seed, 0, 2);
        params[4 + axis] = test_random_in(&n->seed, 0, 2);
        out[axis] += params[axis] + params[4 + axis];
    }
    params[8] = n->c.zero_point;
    int const y = net_activation(n->g, n->c, 4, out);
    net_op(n->g, "pad", QI_ROUND_NONE, 1, &x, y, 9, params, 0);
    return y;
}

static int requantize(net *n, int x)
{
    int32_t const params[] = {test_random_in(&n->seed, 1 << 30, INT32_MAX), 0, codes_lo(n->c),
                              codes_hi(n->c)};
    int const y = net_activation(n->g, n->c, 4, dims_of(n, x));
    net_op(n->g, "requantize", QI_ROUND_TWICE, 1, &x, y, 4, params, 0);
    return y;
}

/** a + b, where b has a's shape; without b it is a, or a constant row of channels. */
static int add(net *n, int a, int b)
{
    if (b < 0 && test_random(&n->seed) % 2)
        b = a;
    int32_t const params[] = {
        20, 1 << 30, 0, 1 << 30, 0, 1 << 30, -19, codes_lo(n->c), codes_hi(n->c)};
    int32_t const row[] = {dims_of(n, a)[3]};
    int const inputs[] = {a, b >= 0 ? b : net_constant(n->g, n->c, 1, row, &n->seed, NULL)};
    int const y = net_activation(n->g, n->c, 4, dims_of(n, a));
    net_op(n->g, "add", QI_ROUND_TWICE, 2, inputs, y, 9, params, 0);
    return y;
}

/** A tensor of the same shape as x that is not x, or -1. */
static int like(const net *n, int x, const int *made, int count)
{
    for (int i = 0; i < count; i++)
        if (made[i] != x && !memcmp(dims_of(n, made[i]), dims_of(n, x), 4 * sizeof(int32_t)))
            return made[i];
    return -1;
}

static int join(net *n, int a, int b)
{
    int32_t const axis[] = {3};
    int32_t out[4];
    memcpy(out, dims_of(n, a), sizeof out);
    out[3] *= 2;
    int const inputs[] = {a, b}, y = net_activation(n->g, n->c, 4, out);
    net_op(n->g, "concat", QI_ROUND_NONE, 2, inputs, y, 1, axis, 0);
    return y;
}

/** An op without rows, which reads all of x at once. */
static int reshape(net *n, int x)
{
    int32_t const out[] = {1, (int32_t)product_of(dims_of(n, x), 4)};
    int const y = net_activation(n->g, n->c, 2, out);
    net_op(n->g, "reshape", QI_ROUND_NONE, 1, &x, y, 0, NULL, 0);
    return y;
}

static int random_op(net *n, int x, const int *made, int count)
{
    int const other = like(n, x, made, count);
    switch (test_random(&n->seed) % 9) {
    case 0:
        return pad(n, x);
    case 1:
        return requantize(n, x);
    case 2:
        return pool(n, x, test_random(&n->seed) % 2);
    case 3:
        return add(n, x, other);
    case 4:
        return other >= 0 && dims_of(n, x)[3] <= 16 ? join(n, x, other) : add(n, x, other);
    case 5:
    case 6:
        return dims_of(n, x)[3] <= 32 ? convolution(n, x, true) : requantize(n, x);
    default:
        return convolution(n, x, false);
    }
}

static net random_net(int number, int bits)
{
    net n = {qat_qgraph_new(), {QI_S8, bits, 0}, (uint64_t)number + 1};
    int made[MOST_OPS + 1];
    ck_assert_ptr_nonnull(n.g);
    if (number % 4 == 0 || bits == 1)
        n.c = (codes_of){QI_U8, bits, 1 << (bits - 1)};
    else
        n.c.zero_point = test_random_in(&n.seed, codes_lo(n.c), codes_hi(n.c));
    int32_t const dims[] = {1, test_random_in(&n.seed, 6, 24), test_random_in(&n.seed, 2, 8),
                            8 * test_random_in(&n.seed, 1, 2)};
    made[0] = net_activation(n.g, n.c, 4, dims);
    int const count = test_random_in(&n.seed, 2, MOST_OPS);
    for (int i = 1; i <= count; i++)
        made[i] = random_op(&n, made[i - 1], made, i - 1);
    net_io(n.g, made[0], number % 3 ? made[count] : reshape(&n, made[count]));
    return n;
}

/* ------------------------------------------------------------------ bands */

struct run {
    uint8_t in[MOST_VALUES], out[MOST_VALUES];
    size_t bytes;
};

static void run_on(const qi_host *host, struct run *r)
{
    const qi_model *m = qi_host_model(host);
    r->bytes = qi_tensor_at(m, qi_output_at(m, 0))->bytes;
    ck_assert_uint_le(r->bytes, MOST_VALUES);
    ck_assert_uint_le(qi_tensor_at(m, qi_input_at(m, 0))->bytes, MOST_VALUES);
    qi_host_run(host, (const void *[]){r->in}, (void *[]){r->out});
}

/** Open a graph as a device does, or with the best loops of this processor. */
static qi_host *open_as(const qat_qgraph *g, const char *isa)
{
    qi_host_options const how = {.isa = isa};
    qi_host *host = NULL;
    qat_error err;
    size_t count;
    uint8_t *qm = net_write(g, NULL, NULL, &count);
    ck_assert_msg(!qi_host_open_bytes(&host, qm, count, "net", &how, &err), "%s", err.message);
    free(qm);
    return host;
}

/** Run a graph in bands. Its bytes are those of the network, its RAM that which is planned. */
static void check_bands(const qat_banded *banded, const qi_host *device, const struct run *want,
                        const char *what)
{
    static const char *const isas[] = {"scalar", NULL};
    struct run *got = malloc(sizeof *got);
    qat_error err = {0};
    size_t ram;
    int64_t macs;
    ck_assert_ptr_nonnull(got);
    qat_status const st = qat_banded_measure(banded, qi_host_model(device), &ram, &macs, &err);
    ck_assert_msg(!st, "%s", err.message);
    for (int i = 0; i < 2; i++) {
        qi_host *host = open_as(banded->graph, isas[i]);
        memcpy(got->in, want->in, sizeof got->in);
        run_on(host, got);
        ck_assert_uint_eq(got->bytes, want->bytes);
        ck_assert_msg(!memcmp(got->out, want->out, want->bytes), "%s: other bytes (%s)", what,
                      qi_host_isa(host));
        ck_assert_int_eq(qi_model_macs(qi_host_model(host)), macs);
        if (isas[i])
            ck_assert_uint_eq(qi_model_ram(qi_host_model(host)), ram);
        qi_host_close(host);
    }
    free(got);
}

static void check_stage(const net *n, const qi_host *device, const qat_stage *stage,
                        const struct run *want)
{
    qat_banded banded;
    qat_error err = {0};
    char what[80];
    qat_status const st = qat_banded_build(&banded, n->g, stage, 1, &err);
    if (st) { /* a band of padding */
        ck_assert_msg(st == QAT_ERR_UNSUPPORTED, "%s", err.message);
        return;
    }
    snprintf(what, sizeof what, "ops %d to %d in bands of %d rows", stage->first, stage->last,
             (int)stage->rows);
    check_bands(&banded, device, want, what);
    qat_banded_free(&banded);
}

/** Random codes for the input, and what the network makes of them. */
static struct run *run_network(net *n, const qi_host *device)
{
    struct run *want = calloc(1, sizeof *want);
    ck_assert_ptr_nonnull(want);
    fill_codes(want->in, sizeof want->in, n->c, &n->seed);
    run_on(device, want);
    return want;
}

START_TEST(test_every_stage)
{
    net n = random_net(_i, 8);
    qi_host *device = open_as(n.g, "scalar");
    struct run *want = run_network(&n, device);
    for (int first = 0; first < n.g->n_ops; first++)
        for (int last = first; last < n.g->n_ops; last++) {
            qat_stage stage = {first, last, 0};
            int32_t const height = dims_of(&n, qat_stage_output(n.g, &stage))[1];
            if (height < 2 || !qat_stage_is_valid(n.g, first, last))
                continue;
            stage.rows = test_random_in(&n.seed, 1, height - 1);
            check_stage(&n, device, &stage, want);
        }
    qi_host_close(device);
    qat_qgraph_free(n.g);
    free(want);
}
END_TEST

/** Choose all tensors that can be packed, or some of them; how many. */
static int choose(net *n, bool all, bool *chosen)
{
    int count = 0;
    for (int i = 0; i < n->g->n_tensors; i++) {
        chosen[i] = qat_can_pack(n->g, i) && (all || test_random(&n->seed) % 2);
        count += chosen[i];
    }
    return count;
}

static int count_ops(const qat_qgraph *g, const char *op)
{
    int count = 0;
    for (int i = 0; i < g->n_ops; i++)
        count += !strcmp(g->ops[i].op, op);
    return count;
}

START_TEST(test_packed)
{
    net n = random_net(_i, 1 + _i % 4);
    qi_host *device = open_as(n.g, "scalar");
    struct run *want = run_network(&n, device);
    bool *chosen = calloc((size_t)n.g->n_tensors, sizeof *chosen);
    ck_assert_ptr_nonnull(chosen);
    for (int trial = 0; trial < 4; trial++) {
        int32_t const rows = test_random_in(&n.seed, 1, 6);
        int const count = choose(&n, trial == 0, chosen);
        qat_banded packed;
        qat_error err = {0};
        char what[80];
        if (trial == 0)
            ck_assert_int_gt(count, 0);
        ck_assert_msg(!qat_packed_build(&packed, n.g, chosen, rows, &err), "%s", err.message);
        ck_assert_int_ge(count_ops(packed.graph, "pack"), count);
        ck_assert_int_ge(count_ops(packed.graph, "unpack"), count);
        snprintf(what, sizeof what, "%d tensors packed, in bands of %d rows", count, (int)rows);
        check_bands(&packed, device, want, what);
        qat_banded_free(&packed);
    }
    free(chosen);
    free(want);
    qi_host_close(device);
    qat_qgraph_free(n.g);
}
END_TEST

/** No tensor of 8 bits can be packed; of fewer, neither an input nor an output. */
START_TEST(test_not_packed)
{
    for (int bits = 4; bits <= 8; bits += 4) {
        net n = random_net(1, bits);
        for (int i = 0; bits == 8 && i < n.g->n_tensors; i++)
            ck_assert(!qat_can_pack(n.g, i));
        ck_assert(!qat_can_pack(n.g, n.g->inputs[0]));
        ck_assert(!qat_can_pack(n.g, n.g->outputs[0]));
        qat_qgraph_free(n.g);
    }
}
END_TEST

/** The RAM that the network needs with this limit; 0: refused. */
static size_t ram_with(const qi_host *host, size_t limit, qat_error *err)
{
    qi_host *fitted = NULL;
    qat_ram_plan plan;
    qat_status const st = qat_fit_ram(&fitted, host, limit, &plan, err);
    ck_assert_msg(!st || st == QAT_ERR_LIMIT, "%s", err->message);
    if (!st) {
        ck_assert_uint_le(plan.ram, limit);
        ck_assert_int_eq(fitted != NULL, plan.layers > 0 || plan.packed > 0);
        ck_assert(!plan.layers || !plan.packed);
    }
    qi_host_close(fitted);
    return st ? 0 : plan.ram;
}

START_TEST(test_limits)
{
    net n = random_net(_i, _i % 3 ? 8 : 4);
    qi_host *host = open_as(n.g, NULL), *device = open_as(n.g, "scalar");
    size_t const all = qi_model_ram(qi_host_model(device));
    qat_error err;
    ck_assert_uint_eq(ram_with(host, all, &err), all);
    ck_assert_uint_eq(ram_with(host, 1, &err), 0);
    const char *least = strstr(err.message, "made to need ");
    if (least) {
        size_t const bytes = strtoul(least + strlen("made to need "), NULL, 10);
        ck_assert_uint_lt(bytes, all);
        ck_assert_uint_eq(ram_with(host, bytes, &err), bytes);
        ck_assert_uint_eq(ram_with(host, bytes - 1, &err), 0);
        ck_assert_uint_ne(ram_with(host, (bytes + all) / 2, &err), 0);
    } else {
        ck_assert_ptr_nonnull(strstr(err.message, "would save any"));
        ck_assert_uint_eq(ram_with(host, all - 1, &err), 0);
    }
    qi_host_close(host);
    qi_host_close(device);
    qat_qgraph_free(n.g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bands");
    TCase *tcase = tcase_create("bands");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, test_every_stage, 0, GRAPHS);
    tcase_add_loop_test(tcase, test_packed, 0, GRAPHS);
    tcase_add_test(tcase, test_not_packed);
    tcase_add_loop_test(tcase, test_limits, 0, GRAPHS / 3);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
