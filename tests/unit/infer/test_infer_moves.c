/**
 * Ops that move codes (strided_slice, transpose, pad, gather, pack, unpack), arg_max and top_k, on
 * random shapes of every rank. They are compared with their definitions, written index by index.
 * Also what they refuse.
 */
#include "common/suite.h"
#include "unit/infer/test_infer_build.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 300, MOST_SIDE = 7, MOST_VALUES = 3000 };

/** A shape; all four dims are set, those beyond the rank to 1. */
struct shape {
    int rank;
    int32_t dims[4];
};

static struct shape random_shape(uint64_t *seed)
{
    struct shape s = {test_random_in(seed, 1, 4), {1, 1, 1, 1}};
    for (int d = 0; d < s.rank; d++)
        s.dims[d] = test_random_in(seed, 1, MOST_SIDE);
    return s;
}

static size_t values_of(const struct shape *s)
{
    return product_of(s->dims, 4);
}

/** Position of value i along every axis. */
static void unravel(const struct shape *s, size_t i, int32_t at[4])
{
    for (int d = 3; d >= 0; d--) {
        at[d] = (int32_t)(i % (size_t)s->dims[d]);
        i /= (size_t)s->dims[d];
    }
}

static size_t ravel(const struct shape *s, const int32_t at[4])
{
    size_t i = 0;
    for (int d = 0; d < 4; d++)
        i = i * (size_t)s->dims[d] + (size_t)at[d];
    return i;
}

/** One op under test. */
struct trial {
    int number;
    uint64_t seed;
    codes_of c;
    struct shape x, y;
    uint8_t in[MOST_VALUES], want[MOST_VALUES], got[MOST_VALUES];
};

static struct trial trial_new(int number)
{
    struct trial t = {.number = number, .seed = (uint64_t)number * 7919 + 3};
    t.c = random_codes(&t.seed);
    t.x = random_shape(&t.seed);
    t.y = t.x;
    fill_codes(t.in, values_of(&t.x), t.c, &t.seed);
    return t;
}

static void trial_end(struct trial *t, const char *op, int n_params, const int32_t *params)
{
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, t->c, t->x.rank, t->x.dims);
    int const y = net_activation(g, t->c, t->y.rank, t->y.dims);
    net_op(g, op, QI_ROUND_NONE, 1, &x, y, n_params, params, 0);
    net_io(g, x, y);
    net_run_kept(g, (const void *[]){t->in}, (void *[]){t->got}, op, t->number);
    ck_assert_mem_eq(t->got, t->want, values_of(&t->y));
    qat_qgraph_free(g);
}

static void trial_strided_slice(int number)
{
    struct trial t = trial_new(number);
    int32_t params[8] = {0, 0, 0, 0, 1, 1, 1, 1}, at[4];
    for (int d = 0; d < t.x.rank; d++) {
        int32_t const first = test_random_in(&t.seed, 0, t.x.dims[d] - 1);
        int32_t const stride = test_random_in(&t.seed, 1, 3) * (test_random(&t.seed) & 1 ? 1 : -1);
        int32_t const room = stride > 0 ? t.x.dims[d] - 1 - first : first;
        params[d] = first;
        params[4 + d] = stride;
        t.y.dims[d] = 1 + test_random_in(&t.seed, 0, room / abs(stride));
    }
    for (size_t i = 0; i < values_of(&t.y); i++) {
        unravel(&t.y, i, at);
        for (int d = 0; d < 4; d++)
            at[d] = params[d] + at[d] * params[4 + d];
        t.want[i] = t.in[ravel(&t.x, at)];
    }
    trial_end(&t, "strided_slice", 8, params);
}

static void trial_transpose(int number)
{
    struct trial t = trial_new(number);
    int32_t perm[4] = {0, 1, 2, 3}, to[4], from[4];
    for (int d = t.x.rank - 1; d > 0; d--) {
        int const other = test_random_in(&t.seed, 0, d);
        int32_t const was = perm[d];
        perm[d] = perm[other];
        perm[other] = was;
    }
    for (int d = 0; d < 4; d++)
        t.y.dims[d] = t.x.dims[perm[d]];
    for (size_t i = 0; i < values_of(&t.y); i++) {
        unravel(&t.y, i, to);
        for (int d = 0; d < 4; d++)
            from[perm[d]] = to[d];
        t.want[i] = t.in[ravel(&t.x, from)];
    }
    trial_end(&t, "transpose", 4, perm);
}

static void trial_pad(int number)
{
    struct trial t = trial_new(number);
    int32_t params[9] = {0}, at[4];
    for (int d = 0; d < t.x.rank; d++) {
        t.x.dims[d] = test_random_in(&t.seed, 1, 3);
        params[d] = test_random_in(&t.seed, 0, 2);
        params[4 + d] = test_random_in(&t.seed, 0, 2);
        t.y.dims[d] = params[d] + t.x.dims[d] + params[4 + d];
    }
    params[8] = test_random_in(&t.seed, codes_lo(t.c), codes_hi(t.c));
    for (size_t i = 0; i < values_of(&t.y); i++) {
        bool inside = true;
        unravel(&t.y, i, at);
        for (int d = 0; d < 4; d++) {
            at[d] -= params[d];
            inside = inside && at[d] >= 0 && at[d] < t.x.dims[d];
        }
        t.want[i] = inside ? t.in[ravel(&t.x, at)] : (uint8_t)params[8];
    }
    trial_end(&t, "pad", 9, params);
}

/* ------------------------------------------------------------------ pack, unpack */

/** Run op on t->in, and evaluate it exactly; x and y have codes of their own. */
static void trial_end_of_bits(struct trial *t, const char *op, codes_of cx, codes_of cy)
{
    qat_error err;
    qat_exact *exact;
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, cx, t->x.rank, t->x.dims);
    int const y = net_activation(g, cy, t->y.rank, t->y.dims);
    net_op(g, op, QI_ROUND_NONE, 1, &x, y, 0, NULL, 0);
    net_io(g, x, y);
    net_run_kept(g, (const void *[]){t->in}, (void *[]){t->got}, op, t->number);
    ck_assert_mem_eq(t->got, t->want, values_of(&t->y));
    ck_assert_int_eq(qat_exact_create(&exact, g, NULL, 1, &err), QAT_OK);
    ck_assert_int_eq(qat_exact_run(exact, (const void *[]){t->in}, 1, &err), QAT_OK);
    ck_assert_mem_eq(qat_exact_tensor(exact, y), t->want, values_of(&t->y));
    qat_exact_free(exact);
    qat_qgraph_free(g);
}

/** A trial with a tensor of 1 to 4 bits, t->x, and the shape of the bytes that hold it, t->y. */
static struct trial trial_of_bits(int number, int *per_byte)
{
    struct trial t = trial_new(number);
    t.c.bits = test_random_in(&t.seed, t.c.type == QI_U8 ? 1 : 2, 4);
    t.c.zero_point = test_random_in(&t.seed, codes_lo(t.c), codes_hi(t.c));
    *per_byte = t.c.bits <= 2 ? 4 : 2;
    t.y.dims[t.y.rank - 1] = (t.x.dims[t.x.rank - 1] + *per_byte - 1) / *per_byte;
    return t;
}

static const codes_of shared_bytes = {QI_U8, 8, 0};

static void trial_pack(int number)
{
    int n;
    struct trial t = trial_of_bits(number, &n);
    int const last = t.x.rank - 1;
    int32_t at[4];
    fill_codes(t.in, values_of(&t.x), t.c, &t.seed);
    memset(t.want, 0, sizeof t.want);
    for (size_t i = 0; i < values_of(&t.x); i++) {
        unravel(&t.x, i, at);
        int32_t const place = at[last] % n * (8 / n);
        at[last] /= n;
        t.want[ravel(&t.y, at)] += (uint8_t)((code_at(t.in, i, t.c) - codes_lo(t.c)) << place);
    }
    trial_end_of_bits(&t, "pack", t.c, shared_bytes);
}

/** Of any bytes, also those that pack does not make. */
static void trial_unpack(int number)
{
    int n;
    struct trial t = trial_of_bits(number, &n);
    struct shape const codes = t.x;
    int const last = t.x.rank - 1;
    int32_t at[4];
    t.x = t.y;
    t.y = codes;
    for (size_t i = 0; i < values_of(&t.x); i++)
        t.in[i] = (uint8_t)test_random(&t.seed);
    for (size_t i = 0; i < values_of(&t.y); i++) {
        unravel(&t.y, i, at);
        int32_t const place = at[last] % n * (8 / n);
        at[last] /= n;
        int32_t const field = t.in[ravel(&t.x, at)] >> place;
        t.want[i] = (uint8_t)(field % (1 << t.c.bits) + codes_lo(t.c));
    }
    trial_end_of_bits(&t, "unpack", shared_bytes, t.c);
}

/* ------------------------------------------------------------------ gather */

/** x, indices -> y with these params. */
static qat_qgraph *gather_graph(codes_of c, const struct shape *x, codes_of of_indices,
                                const struct shape *indices, const struct shape *y, int n_params,
                                const int32_t *params)
{
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const in[] = {net_activation(g, c, x->rank, x->dims),
                      net_activation(g, of_indices, indices->rank, indices->dims)};
    int const out = net_activation(g, c, y->rank, y->dims);
    net_op(g, "gather", QI_ROUND_NONE, 2, in, out, n_params, params, 0);
    ck_assert_int_eq(qat_qgraph_set_io(g, 2, in, 1, &out, &err), QAT_OK);
    return g;
}

/** An index of 2 dims, of which batch_dims are x's; some indices are no positions. */
static void trial_gather(int number)
{
    enum { MOST_INDICES = MOST_SIDE * MOST_SIDE };
    struct trial t = trial_new(number);
    bool const is_long = test_random(&t.seed) & 1;
    codes_of const index = {is_long ? QI_S64 : QI_S32, is_long ? 64 : 32, 0};
    int32_t const axis = test_random_in(&t.seed, 0, t.x.rank - 1);
    int32_t const batch_dims = test_random_in(&t.seed, 0, axis < 2 ? axis : 2);
    int32_t const params[] = {axis, batch_dims};
    struct shape indices = {2,
                            {test_random_in(&t.seed, 1, 3), test_random_in(&t.seed, 1, 3), 1, 1}};
    int32_t narrow[MOST_INDICES];
    int64_t wide[MOST_INDICES];
    memcpy(indices.dims, t.x.dims, (size_t)batch_dims * sizeof *indices.dims);
    t.y = (struct shape){4, {1, 1, 1, 1}}; /* batches, dims up to the axis, indices, dims behind */
    for (int d = 0; d < 4; d++)
        if (d != axis)
            t.y.dims[d < batch_dims ? 0 : d < axis ? 1 : 3] *= t.x.dims[d];
    t.y.dims[2] = (int32_t)product_of(indices.dims + batch_dims, 4 - batch_dims);
    for (size_t i = 0; i < values_of(&indices); i++)
        wide[i] = narrow[i] = test_random_in(&t.seed, -1, t.x.dims[axis]);
    if (is_long && number % 3 == 0)
        wide[0] = number % 2 ? INT64_MAX : INT64_MIN;
    for (size_t i = 0; i < values_of(&t.y); i++) {
        int32_t at[4];
        unravel(&t.y, i, at);
        size_t const which = (size_t)(at[0] * t.y.dims[2] + at[2]);
        int64_t const stated = is_long ? wide[which] : narrow[which], last = t.x.dims[axis] - 1;
        int64_t const from = stated < 0 ? 0 : stated > last ? last : stated;
        size_t const outer = (size_t)(at[0] * t.y.dims[1] + at[1]) * (size_t)t.x.dims[axis];
        t.want[i] = t.in[(outer + (size_t)from) * (size_t)t.y.dims[3] + (size_t)at[3]];
    }
    qat_qgraph *g = gather_graph(t.c, &t.x, index, &indices, &t.y, 2, params);
    net_run_kept(g, (const void *[]){t.in, is_long ? (void *)wide : (void *)narrow},
                 (void *[]){t.got}, "gather", number);
    ck_assert_mem_eq(t.got, t.want, values_of(&t.y));
    qat_qgraph_free(g);
}

/* ------------------------------------------------------------------ arg_max */

/** Index of the largest code along the axis, the lowest of several. */
static int64_t first_largest(const struct trial *t, int axis, const int32_t at[4])
{
    int64_t best = 0;
    int32_t most = INT32_MIN;
    for (int32_t i = 0; i < t->x.dims[axis]; i++) {
        int32_t place[4];
        memcpy(place, at, sizeof place);
        place[axis] = i;
        int32_t const code = code_at(t->in, ravel(&t->x, place), t->c);
        if (code > most) {
            most = code;
            best = i;
        }
    }
    return best;
}

static void trial_arg_max(int number)
{
    struct trial t = trial_new(number);
    int const axis = test_random_in(&t.seed, 0, t.x.rank - 1);
    bool const is_long = test_random(&t.seed) & 1;
    union {
        int32_t narrow[MOST_VALUES];
        int64_t wide[MOST_VALUES];
    } got;
    struct shape y = {t.x.rank > 1 ? t.x.rank - 1 : 1, {1, 1, 1, 1}};
    for (int d = 0, to = 0; d < t.x.rank; d++)
        if (d != axis)
            y.dims[to++] = t.x.dims[d];
    for (size_t i = 0; i < values_of(&t.x); i++) /* few codes: ties */
        if (number % 2)
            t.in[i] = (uint8_t)(codes_lo(t.c) + (int)(test_random(&t.seed) % 3));
    qat_qgraph *g = qat_qgraph_new();
    codes_of const index = {is_long ? QI_S64 : QI_S32, is_long ? 64 : 32, 0};
    int const in = net_activation(g, t.c, t.x.rank, t.x.dims);
    int const out = net_activation(g, index, y.rank, y.dims);
    net_op(g, "arg_max", QI_ROUND_NONE, 1, &in, out, 1, &(int32_t){axis}, 0);
    net_io(g, in, out);
    net_run_kept(g, (const void *[]){t.in}, (void *[]){&got}, "arg_max", number);
    for (size_t i = 0; i < values_of(&y); i++) {
        int32_t short_at[4], at[4] = {0};
        unravel(&y, i, short_at);
        for (int d = 0, from = 0; d < t.x.rank; d++)
            if (d != axis)
                at[d] = short_at[from++];
        ck_assert_int_eq(is_long ? got.wide[i] : got.narrow[i], first_largest(&t, axis, at));
    }
    qat_qgraph_free(g);
}

static void trial_top_k(int number)
{
    struct trial t = trial_new(number);
    int const last = t.x.rank - 1;
    int32_t const n = t.x.dims[last], k = test_random_in(&t.seed, 1, n);
    codes_of const index = {QI_S32, 32, 0};
    struct shape y = t.x;
    int32_t got[MOST_VALUES];
    bool taken[MOST_VALUES] = {false};
    y.dims[last] = k;
    for (size_t i = 0; i < values_of(&t.x); i++) /* few codes: ties */
        if (number % 2)
            t.in[i] = (uint8_t)(codes_lo(t.c) + (int)(test_random(&t.seed) % 3));
    qat_qgraph *g = qat_qgraph_new();
    int const in = net_activation(g, t.c, t.x.rank, t.x.dims);
    int const out = net_activation(g, index, y.rank, y.dims);
    net_op(g, "top_k", QI_ROUND_NONE, 1, &in, out, 0, NULL, 0);
    net_io(g, in, out);
    net_run_kept(g, (const void *[]){t.in}, (void *[]){got}, "top_k", number);
    for (size_t i = 0; i < values_of(&y); i++) {
        size_t const row = i / (size_t)k * (size_t)n;
        int32_t best = -1; /* the first of the largest that were not taken */
        for (int32_t j = 0; j < n; j++)
            if (!taken[row + (size_t)j] && (best < 0 || code_at(t.in, row + (size_t)j, t.c) >
                                                            code_at(t.in, row + (size_t)best, t.c)))
                best = j;
        taken[row + (size_t)best] = true;
        ck_assert_int_eq(got[i], best);
    }
    qat_qgraph_free(g);
}

/* ------------------------------------------------------------------ refusals */

/** A node with one input that a test may spoil. */
struct one_input {
    const char *op;
    struct shape x, y;
    codes_of cx, cy;
    qi_rounding rounding;
    int n_params;
    int32_t params[10];
};

static void try_node(const struct one_input *v, qi_status expected)
{
    qat_qgraph *g = qat_qgraph_new();
    ck_assert_ptr_nonnull(g);
    int const x = net_activation(g, v->cx, v->x.rank, v->x.dims);
    int const y = net_activation(g, v->cy, v->y.rank, v->y.dims);
    net_op(g, v->op, v->rounding, 1, &x, y, v->n_params, v->params, 0);
    net_io(g, x, y);
    qi_host *host = NULL;
    net_open(&host, g, expected);
    qi_host_close(host);
    qat_qgraph_free(g);
}

#define TRY(good, expected, ...)                                                                   \
    do {                                                                                           \
        struct one_input v = good;                                                                 \
        __VA_ARGS__;                                                                               \
        try_node(&v, expected);                                                                    \
    } while (0)

static const codes_of u8 = {QI_U8, 8, 5}, s8 = {QI_S8, 8, 5}, s32 = {QI_S32, 32, 0},
                      s64 = {QI_S64, 64, 0};

/** What every op that keeps codes refuses. */
static void try_codes(const struct one_input *good)
{
    TRY(*good, QI_OK, (void)v);
    TRY(*good, QI_ERR_SHAPE, v.cy = s8);
    TRY(*good, QI_ERR_SHAPE, v.cy.zero_point = 6);
    TRY(*good, QI_ERR_SHAPE, v.cy.bits = 7);
    TRY(*good, QI_ERR_SHAPE, v.cx = v.cy = s32);
    TRY(*good, QI_ERR_SHAPE, v.cx = v.cy = s64);
    TRY(*good, QI_ERR_SHAPE, v.y.rank = 2);
    TRY(*good, QI_ERR_PARAM, v.n_params--);
    TRY(*good, QI_ERR_PARAM, v.n_params++);
    TRY(*good, QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
}

START_TEST(test_slice_refused)
{
    struct one_input const good = {.op = "strided_slice",
                                   .x = {3, {4, 5, 6, 1}},
                                   .y = {3, {2, 1, 3, 1}},
                                   .cx = u8,
                                   .cy = u8,
                                   .n_params = 8,
                                   .params = {3, 0, 1, 0, -2, 1, 2, 1}};
    try_codes(&good);
    TRY(good, QI_ERR_PARAM, v.params[0] = 4);
    TRY(good, QI_ERR_PARAM, v.params[0] = -1);
    TRY(good, QI_ERR_PARAM, v.params[3] = 1); /* beyond the rank */
    TRY(good, QI_ERR_PARAM, v.params[4] = 0);
    TRY(good, QI_ERR_PARAM, v.params[7] = 2);
    TRY(good, QI_ERR_PARAM, v.params[7] = -1);
    TRY(good, QI_ERR_SHAPE, v.params[4] = -4);
    TRY(good, QI_ERR_SHAPE, v.params[4] = 1);
    TRY(good, QI_ERR_SHAPE, v.params[6] = INT32_MAX);
    TRY(good, QI_ERR_SHAPE, v.params[6] = INT32_MIN);
    TRY(good, QI_ERR_SHAPE, v.y.dims[2] = 4);
    TRY(good, QI_OK, v.y.dims[1] = 5);
    TRY(good, QI_ERR_SHAPE, v.y.dims[1] = 6);
}
END_TEST

START_TEST(test_transpose_refused)
{
    struct one_input const good = {.op = "transpose",
                                   .x = {3, {4, 5, 6, 1}},
                                   .y = {3, {6, 4, 5, 1}},
                                   .cx = u8,
                                   .cy = u8,
                                   .n_params = 4,
                                   .params = {2, 0, 1, 3}};
    try_codes(&good);
    TRY(good, QI_ERR_PARAM, v.params[0] = 3);
    TRY(good, QI_ERR_PARAM, v.params[0] = -1);
    TRY(good, QI_ERR_PARAM, v.params[0] = INT32_MAX);
    TRY(good, QI_ERR_PARAM, v.params[2] = 2; v.y.dims[2] = 6); /* twice */
    TRY(good, QI_ERR_PARAM, v.params[3] = 0);
    TRY(good, QI_ERR_SHAPE, v.y.dims[1] = 5);
}
END_TEST

START_TEST(test_pad_refused)
{
    struct one_input const good = {.op = "pad",
                                   .x = {3, {4, 5, 6, 1}},
                                   .y = {3, {7, 5, 8, 1}},
                                   .cx = u8,
                                   .cy = u8,
                                   .n_params = 9,
                                   .params = {1, 0, 2, 0, 2, 0, 0, 0, 5}};
    try_codes(&good);
    TRY(good, QI_ERR_PARAM, v.params[0] = -1; v.y.dims[0] = 5);
    TRY(good, QI_ERR_PARAM, v.params[4] = -1; v.y.dims[0] = 4);
    TRY(good, QI_ERR_PARAM, v.params[3] = 1);
    TRY(good, QI_ERR_PARAM, v.params[7] = 1);
    TRY(good, QI_ERR_PARAM, v.params[8] = 256);
    TRY(good, QI_ERR_PARAM, v.params[8] = -1);
    TRY(good, QI_ERR_SHAPE, v.y.dims[1] = 6);
    TRY(good, QI_ERR_SHAPE, v.params[0] = INT32_MAX);
}
END_TEST

/** What pack refuses of a tensor of few bits and its bytes, unpack refuses of the two exchanged. */
static void try_packed(struct one_input good, bool is_pack)
{
#define TRY_PACKED(expected, ...)                                                                  \
    do {                                                                                           \
        struct one_input v = good;                                                                 \
        __VA_ARGS__;                                                                               \
        struct one_input const turned = {v.op, v.y, v.x, v.cy, v.cx, v.rounding, v.n_params, {0}}; \
        try_node(is_pack ? &v : &turned, expected);                                                \
    } while (0)
    TRY_PACKED(QI_OK, (void)v);
    TRY_PACKED(QI_ERR_PARAM, v.cx.bits = 5);
    TRY_PACKED(QI_ERR_SHAPE, v.cx.bits = 2); /* four to a byte */
    TRY_PACKED(QI_ERR_SHAPE, v.cy.type = QI_S8);
    TRY_PACKED(QI_ERR_SHAPE, v.cy.bits = 7);
    TRY_PACKED(QI_ERR_PARAM, v.cy.zero_point = 1);
    TRY_PACKED(QI_ERR_SHAPE, v.cx = s32);
    TRY_PACKED(QI_ERR_SHAPE, v.y.dims[0] = 3);
    TRY_PACKED(QI_ERR_SHAPE, v.y.dims[2] = 3);
    TRY_PACKED(QI_ERR_SHAPE, v.y.rank = 4);
    TRY_PACKED(QI_ERR_PARAM, v.n_params = 1);
    TRY_PACKED(QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
#undef TRY_PACKED
}

START_TEST(test_pack_refused)
{
    struct one_input good = {.op = _i ? "pack" : "unpack",
                             .x = {3, {4, 5, 7, 1}},
                             .y = {3, {4, 5, 4, 1}},
                             .cx = {QI_S8, 4, -1},
                             .cy = shared_bytes};
    try_packed(good, _i);
}
END_TEST

START_TEST(test_arg_max_refused)
{
    struct one_input const good = {.op = "arg_max",
                                   .x = {3, {4, 5, 6, 1}},
                                   .y = {2, {4, 6, 1, 1}},
                                   .cx = u8,
                                   .cy = s64,
                                   .n_params = 1,
                                   .params = {1}};
    TRY(good, QI_OK, (void)v);
    TRY(good, QI_OK, v.cy = s32);
    TRY(good, QI_OK, v.x = (struct shape){1, {9, 1, 1, 1}}; v.y = (struct shape){1, {1, 1, 1, 1}};
        v.params[0] = 0);
    TRY(good, QI_ERR_SHAPE, v.cy = u8);
    TRY(good, QI_ERR_SHAPE, v.cx = s32);
    TRY(good, QI_ERR_PARAM, v.params[0] = 3);
    TRY(good, QI_ERR_PARAM, v.params[0] = -1);
    TRY(good, QI_ERR_SHAPE, v.params[0] = 0);
    TRY(good, QI_ERR_SHAPE, v.y.rank = 3);
    TRY(good, QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
    TRY(good, QI_ERR_PARAM, v.n_params = 0);
}
END_TEST

START_TEST(test_top_k_refused)
{
    struct one_input const good = {
        .op = "top_k", .x = {3, {4, 5, 6, 1}}, .y = {3, {4, 5, 6, 1}}, .cx = u8, .cy = s32};
    TRY(good, QI_OK, (void)v);
    TRY(good, QI_OK, v.y.dims[2] = 1);
    TRY(good, QI_ERR_SHAPE, v.y.dims[2] = 7);
    TRY(good, QI_ERR_SHAPE, v.y.dims[0] = 3);
    TRY(good, QI_ERR_SHAPE, v.y.rank = 2);
    TRY(good, QI_ERR_SHAPE, v.cy = s64);
    TRY(good, QI_ERR_SHAPE, v.cy = u8);
    TRY(good, QI_ERR_SHAPE, v.cx = s32);
    TRY(good, QI_ERR_PARAM, v.rounding = QI_ROUND_TWICE);
    TRY(good, QI_ERR_PARAM, v.n_params = 1);
}
END_TEST

START_TEST(test_gather_refused)
{
    struct {
        struct shape x, indices, y;
        codes_of of_indices;
        int n_params;
        int32_t params[3];
        qi_status status;
    } tries[] = {
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 2, 6, 1}}, s32, 2, {1, 1}, QI_OK},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {1, {48, 1, 1, 1}}, s64, 2, {1, 1}, QI_OK},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 2, 6, 1}}, u8, 2, {1, 1}, QI_ERR_SHAPE},
        {{3, {4, 5, 6, 1}}, {2, {3, 2, 1, 1}}, {3, {4, 2, 6, 1}}, s32, 2, {1, 1}, QI_ERR_SHAPE},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 3, 6, 1}}, s32, 2, {1, 1}, QI_ERR_SHAPE},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 2, 6, 1}}, s32, 2, {3, 1}, QI_ERR_PARAM},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 2, 6, 1}}, s32, 2, {-1, 1}, QI_ERR_PARAM},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 2, 6, 1}}, s32, 2, {1, -1}, QI_ERR_PARAM},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 2, 6, 1}}, s32, 2, {1, 2}, QI_ERR_PARAM},
        {{3, {4, 5, 6, 1}}, {2, {4, 2, 1, 1}}, {3, {4, 2, 6, 1}}, s32, 3, {1, 1}, QI_ERR_PARAM},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        qi_host *host = NULL;
        qat_qgraph *g = gather_graph(u8, &tries[i].x, tries[i].of_indices, &tries[i].indices,
                                     &tries[i].y, tries[i].n_params, tries[i].params);
        net_open(&host, g, tries[i].status);
        qi_host_close(host);
        qat_qgraph_free(g);
    }
}
END_TEST

/** What arg_max wrote are no codes: of the ops that move codes, none reads it as such. */
START_TEST(test_indices_are_read_by_nothing)
{
    static const char *const ops[] = {"concat", "logistic", "arg_max"};
    static const int32_t dims[] = {6}, params[] = {0, 0, 0};
    static const int n_params[] = {1, 3, 1};
    struct one_input const v = {.op = ops[_i],
                                .x = {1, {dims[0], 1, 1, 1}},
                                .y = {1, {dims[0], 1, 1, 1}},
                                .cx = s64,
                                .cy = s64,
                                .n_params = n_params[_i],
                                .params = {params[0], params[1], params[2]}};
    try_node(&v, QI_ERR_SHAPE);
}
END_TEST

/** Each on TRIALS numbers, which seed it. */
static const net_trial trials[] = {{"strided_slice", trial_strided_slice},
                                   {"transpose", trial_transpose},
                                   {"pad", trial_pad},
                                   {"pack", trial_pack},
                                   {"unpack", trial_unpack},
                                   {"gather", trial_gather},
                                   {"arg_max", trial_arg_max},
                                   {"top_k", trial_top_k}};

START_TEST(test_trials)
{
    net_try(&trials[_i], TRIALS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_moves");
    TCase *tcase = tcase_create("moves");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, test_trials, 0, (int)(sizeof trials / sizeof trials[0]));
    tcase_add_test(tcase, test_slice_refused);
    tcase_add_test(tcase, test_transpose_refused);
    tcase_add_test(tcase, test_pad_refused);
    tcase_add_loop_test(tcase, test_pack_refused, 0, 2);
    tcase_add_test(tcase, test_arg_max_refused);
    tcase_add_test(tcase, test_top_k_refused);
    tcase_add_test(tcase, test_gather_refused);
    tcase_add_loop_test(tcase, test_indices_are_read_by_nothing, 0, 3);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
