/**
 * Inception: v3 (Szegedy, Vanhoucke, Ioffe, Shlens, Wojna: Rethinking the Inception Architecture
 * for Computer Vision, 2015; layers as its authors released them), and a small one for pictures of
 * about 32 x 32.
 *
 * A block is a table of rows. A row is a convolution or pool that reads the block's input or
 * another row. The rows that no other row reads are concatenated in order:
 *
 *     input --+-- 1x1 ------------------+
 *             +-- 1x1 -- 5x5 -----------+-- concat    all members and the concat have one range
 *             +-- 1x1 -- 3x3 -- 3x3 ----+
 *             +-- average pool -- 1x1 --+
 *
 * Each convolution has batch norm and the recipe's activation; pools in branches average only
 * pixels inside the picture.
 */
#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>

enum { CONV, AVERAGE, MAX };
enum { SAME, VALID };
enum { INPUT = -1, BEFORE = -2, ROWS_MAX = 16 };
enum { OWN = 0 }; /* as filters: the number of the block */

/** from: a row's number, INPUT, or BEFORE (the row before). */
typedef struct row {
    const char *name;
    int from, op, filters, height, width, stride, padding;
} row;

typedef struct block {
    const char *name;
    const row *rows;
    int n_rows, filters;
} block;

#define ROWS(r) r, (int)(sizeof r / sizeof *r)

/* ------------------------------------------------------------------ v3 */

static const row v3_stem[] = {
    {"conv1", INPUT, CONV, 32, 3, 3, 2, VALID},  {"conv2", BEFORE, CONV, 32, 3, 3, 1, VALID},
    {"conv3", BEFORE, CONV, 64, 3, 3, 1, SAME},  {"pool1", BEFORE, MAX, 0, 3, 3, 2, VALID},
    {"conv4", BEFORE, CONV, 80, 1, 1, 1, VALID}, {"conv5", BEFORE, CONV, 192, 3, 3, 1, VALID},
    {"pool2", BEFORE, MAX, 0, 3, 3, 2, VALID},
};

/* 35 x 35; the block's number: filters of the pool branch */
static const row v3_a[] = {
    {"a1", INPUT, CONV, 64, 1, 1, 1, SAME},   {"b1", INPUT, CONV, 48, 1, 1, 1, SAME},
    {"b2", BEFORE, CONV, 64, 5, 5, 1, SAME},  {"c1", INPUT, CONV, 64, 1, 1, 1, SAME},
    {"c2", BEFORE, CONV, 96, 3, 3, 1, SAME},  {"c3", BEFORE, CONV, 96, 3, 3, 1, SAME},
    {"d1", INPUT, AVERAGE, 0, 3, 3, 1, SAME}, {"d2", BEFORE, CONV, OWN, 1, 1, 1, SAME},
};

static const row v3_a_to_b[] = {
    {"a1", INPUT, CONV, 384, 3, 3, 2, VALID}, {"b1", INPUT, CONV, 64, 1, 1, 1, SAME},
    {"b2", BEFORE, CONV, 96, 3, 3, 1, SAME},  {"b3", BEFORE, CONV, 96, 3, 3, 2, VALID},
    {"c1", INPUT, MAX, 0, 3, 3, 2, VALID},
};

/* 17 x 17; the block's number: filters inside */
static const row v3_b[] = {
    {"a1", INPUT, CONV, 192, 1, 1, 1, SAME},  {"b1", INPUT, CONV, OWN, 1, 1, 1, SAME},
    {"b2", BEFORE, CONV, OWN, 1, 7, 1, SAME}, {"b3", BEFORE, CONV, 192, 7, 1, 1, SAME},
    {"c1", INPUT, CONV, OWN, 1, 1, 1, SAME},  {"c2", BEFORE, CONV, OWN, 7, 1, 1, SAME},
    {"c3", BEFORE, CONV, OWN, 1, 7, 1, SAME}, {"c4", BEFORE, CONV, OWN, 7, 1, 1, SAME},
    {"c5", BEFORE, CONV, 192, 1, 7, 1, SAME}, {"d1", INPUT, AVERAGE, 0, 3, 3, 1, SAME},
    {"d2", BEFORE, CONV, 192, 1, 1, 1, SAME},
};

static const row v3_b_to_c[] = {
    {"a1", INPUT, CONV, 192, 1, 1, 1, SAME},  {"a2", BEFORE, CONV, 320, 3, 3, 2, VALID},
    {"b1", INPUT, CONV, 192, 1, 1, 1, SAME},  {"b2", BEFORE, CONV, 192, 1, 7, 1, SAME},
    {"b3", BEFORE, CONV, 192, 7, 1, 1, SAME}, {"b4", BEFORE, CONV, 192, 3, 3, 2, VALID},
    {"c1", INPUT, MAX, 0, 3, 3, 2, VALID},
};

/* 8 x 8; two branches end in two convolutions of the same input */
static const row v3_c[] = {
    {"a1", INPUT, CONV, 320, 1, 1, 1, SAME},  {"b1", INPUT, CONV, 384, 1, 1, 1, SAME},
    {"b2", 1, CONV, 384, 1, 3, 1, SAME},      {"b3", 1, CONV, 384, 3, 1, 1, SAME},
    {"c1", INPUT, CONV, 448, 1, 1, 1, SAME},  {"c2", BEFORE, CONV, 384, 3, 3, 1, SAME},
    {"c3", 5, CONV, 384, 1, 3, 1, SAME},      {"c4", 5, CONV, 384, 3, 1, 1, SAME},
    {"d1", INPUT, AVERAGE, 0, 3, 3, 1, SAME}, {"d2", BEFORE, CONV, 192, 1, 1, 1, SAME},
};

static const block v3[] = {
    {"stem", ROWS(v3_stem), 0},     {"mixed1", ROWS(v3_a), 32},     {"mixed2", ROWS(v3_a), 64},
    {"mixed3", ROWS(v3_a), 64},     {"mixed4", ROWS(v3_a_to_b), 0}, {"mixed5", ROWS(v3_b), 128},
    {"mixed6", ROWS(v3_b), 160},    {"mixed7", ROWS(v3_b), 160},    {"mixed8", ROWS(v3_b), 192},
    {"mixed9", ROWS(v3_b_to_c), 0}, {"mixed10", ROWS(v3_c), 0},     {"mixed11", ROWS(v3_c), 0},
};
enum { V3_BLOCKS = sizeof v3 / sizeof *v3, V3_AUXILIARY = 8 /* the block after which it comes */ };

/* ------------------------------------------------------------------ small */

/* One or two of each kind of v3's blocks, with padding and about a tenth of the filters. */
static const row small_stem[] = {
    {"conv1", INPUT, CONV, 32, 3, 3, 1, SAME},
    {"conv2", BEFORE, CONV, 48, 3, 3, 2, SAME},
};

/* 16 x 16 */
static const row small_a[] = {
    {"a1", INPUT, CONV, 16, 1, 1, 1, SAME},   {"b1", INPUT, CONV, 16, 1, 1, 1, SAME},
    {"b2", BEFORE, CONV, 24, 5, 5, 1, SAME},  {"c1", INPUT, CONV, 16, 1, 1, 1, SAME},
    {"c2", BEFORE, CONV, 24, 3, 3, 1, SAME},  {"c3", BEFORE, CONV, 24, 3, 3, 1, SAME},
    {"d1", INPUT, AVERAGE, 0, 3, 3, 1, SAME}, {"d2", BEFORE, CONV, 16, 1, 1, 1, SAME},
};

static const row small_a_to_b[] = {
    {"a1", INPUT, CONV, 64, 3, 3, 2, SAME},  {"b1", INPUT, CONV, 32, 1, 1, 1, SAME},
    {"b2", BEFORE, CONV, 48, 3, 3, 1, SAME}, {"b3", BEFORE, CONV, 48, 3, 3, 2, SAME},
    {"c1", INPUT, MAX, 0, 3, 3, 2, SAME},
};

/* 8 x 8 */
static const row small_b[] = {
    {"a1", INPUT, CONV, 48, 1, 1, 1, SAME},   {"b1", INPUT, CONV, OWN, 1, 1, 1, SAME},
    {"b2", BEFORE, CONV, OWN, 1, 7, 1, SAME}, {"b3", BEFORE, CONV, 48, 7, 1, 1, SAME},
    {"c1", INPUT, CONV, OWN, 1, 1, 1, SAME},  {"c2", BEFORE, CONV, OWN, 7, 1, 1, SAME},
    {"c3", BEFORE, CONV, OWN, 1, 7, 1, SAME}, {"c4", BEFORE, CONV, OWN, 7, 1, 1, SAME},
    {"c5", BEFORE, CONV, 48, 1, 7, 1, SAME},  {"d1", INPUT, AVERAGE, 0, 3, 3, 1, SAME},
    {"d2", BEFORE, CONV, 48, 1, 1, 1, SAME},
};

static const row small_b_to_c[] = {
    {"a1", INPUT, CONV, 48, 1, 1, 1, SAME},  {"a2", BEFORE, CONV, 80, 3, 3, 2, SAME},
    {"b1", INPUT, CONV, 48, 1, 1, 1, SAME},  {"b2", BEFORE, CONV, 48, 1, 7, 1, SAME},
    {"b3", BEFORE, CONV, 48, 7, 1, 1, SAME}, {"b4", BEFORE, CONV, 48, 3, 3, 2, SAME},
    {"c1", INPUT, MAX, 0, 3, 3, 2, SAME},
};

/* 4 x 4 */
static const row small_c[] = {
    {"a1", INPUT, CONV, 80, 1, 1, 1, SAME},   {"b1", INPUT, CONV, 96, 1, 1, 1, SAME},
    {"b2", 1, CONV, 96, 1, 3, 1, SAME},       {"b3", 1, CONV, 96, 3, 1, 1, SAME},
    {"c1", INPUT, CONV, 112, 1, 1, 1, SAME},  {"c2", BEFORE, CONV, 96, 3, 3, 1, SAME},
    {"c3", 5, CONV, 96, 1, 3, 1, SAME},       {"c4", 5, CONV, 96, 3, 1, 1, SAME},
    {"d1", INPUT, AVERAGE, 0, 3, 3, 1, SAME}, {"d2", BEFORE, CONV, 48, 1, 1, 1, SAME},
};

static const block small[] = {
    {"stem", ROWS(small_stem), 0}, {"mixed1", ROWS(small_a), 0},  {"mixed2", ROWS(small_a_to_b), 0},
    {"mixed3", ROWS(small_b), 32}, {"mixed4", ROWS(small_b), 32}, {"mixed5", ROWS(small_b_to_c), 0},
    {"mixed6", ROWS(small_c), 0},
};

/* ------------------------------------------------------------------ building */

static qat_node *add_row(const qat_net *net, qat_node *x, const char *block_name, const row *r,
                         int filters)
{
    char name[48], attrs[80];
    snprintf(name, sizeof name, "%s/%s", block_name, r->name);
    if (r->op == CONV)
        return qat_net_conv_block(
            net, x, name,
            (qat_net_conv){.filters = r->filters == OWN ? filters : r->filters,
                           .kernel = r->height,
                           .kernel_w = r->width,
                           .stride = r->stride,
                           .activation = true,
                           .valid = r->padding == VALID});
    snprintf(attrs, sizeof attrs, "kernel=%d stride=%d padding=%s", r->height, r->stride,
             r->padding == VALID ? "valid" : "same");
    return qat_apply1(net->graph, r->op == MAX ? "max_pool2d" : "average_pool2d", name, attrs, x);
}

static qat_node *add_block(const qat_net *net, qat_node *x, const block *b)
{
    qat_node *ends[ROWS_MAX], *open[ROWS_MAX];
    bool read[ROWS_MAX] = {false};
    char name[48];
    int n = 0;
    for (int i = 0; i < b->n_rows; i++) {
        int const from = b->rows[i].from == BEFORE ? i - 1 : b->rows[i].from;
        if (from >= 0)
            read[from] = true;
        ends[i] = add_row(net, from >= 0 ? ends[from] : x, b->name, &b->rows[i], b->filters);
    }
    for (int i = 0; i < b->n_rows; i++)
        if (!read[i])
            open[n++] = ends[i];
    snprintf(name, sizeof name, "%s/concat", b->name);
    return n == 1 ? open[0] : qat_apply(net->graph, "concat", name, "", n, open);
}

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

/**
 * The auxiliary classifier, which helps training: average pool 5x5 stride 3, 1x1 conv, a
 * convolution over the remaining pixels, logits.
 */
static qat_node *auxiliary_logits(const qat_net *net, qat_node *x)
{
    qat_net_conv const narrow = {.filters = 128, .kernel = 1, .stride = 1, .activation = true};
    char attrs[80];
    if (!x)
        return NULL;
    snprintf(attrs, sizeof attrs, "kernel=%d kernel_w=%d stride=3", at_most(x->shape.dims[1], 5),
             at_most(x->shape.dims[2], 5));
    x = qat_apply1(net->graph, "average_pool2d", "auxiliary/pool", attrs, x);
    x = qat_net_conv_block(net, x, "auxiliary/conv1", narrow);
    if (!x)
        return NULL;
    qat_net_conv const whole = {.filters = 768,
                                .kernel = x->shape.dims[1],
                                .kernel_w = x->shape.dims[2],
                                .stride = 1,
                                .activation = true,
                                .valid = true};
    x = qat_net_conv_block(net, x, "auxiliary/conv2", whole);
    x = qat_apply1(net->graph, "flatten", "auxiliary/flatten", "", x);
    return qat_net_dense_block(net, x, "auxiliary/logits", net->input->classes, false);
}

qat_node *qat_net_inception_v3(const qat_net *net, qat_node *x)
{
    for (int i = 0; i < V3_BLOCKS; i++) {
        x = add_block(net, x, &v3[i]);
        if (i == V3_AUXILIARY && net->recipe->model.auxiliary > 0)
            *net->auxiliary = auxiliary_logits(net, x);
    }
    return qat_net_pooled_classifier(net, x);
}

qat_node *qat_net_inception_small(const qat_net *net, qat_node *x)
{
    for (int i = 0; i < (int)(sizeof small / sizeof *small); i++)
        x = add_block(net, x, &small[i]);
    return qat_net_pooled_classifier(net, x);
}
