/*
 * Checkpoints are the same after writing and reading. Every damage is found and named. Memory may
 * run out at every place.
 */
#include "base/files/file.h"
#include "base/rng.h"
#include "checkpoint/checkpoint.h"
#include "common/common.h"
#include "common/fail_alloc.h"
#include "common/suite.h"
#include "common/temp.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static char path[TEST_PATH_MAX];

static void setup(void)
{
    test_folder_make();
    test_temp_path(path, folder, "c.ckpt");
}

static char *copy(const char *text)
{
    char *c = malloc(strlen(text) + 1);
    ck_assert_ptr_nonnull(c);
    return strcpy(c, text);
}

static void add_tensor(qat_named_tensor *t, const char *name, qat_shape shape, float first)
{
    size_t const n = qat_shape_count(&shape);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->shape = shape;
    t->values = malloc(n * sizeof(float));
    ck_assert_ptr_nonnull(t->values);
    for (size_t i = 0; i < n; i++)
        t->values[i] = first + (float)i;
}

static qat_data_digest digest_of(int count, int n)
{
    qat_data_digest d = {.count = count,
                         .bytes = 1000000000000 + count,
                         .n = n,
                         .names = calloc((size_t)n + 1, sizeof *d.names),
                         .contents = calloc((size_t)n + 1, sizeof *d.contents)};
    ck_assert(d.names && d.contents);
    memset(d.sha256, count, sizeof d.sha256);
    for (int i = 0; i < n; i++) {
        d.names[i] = 0xfffffff0U + (uint32_t)i;
        d.contents[i] = (uint32_t)i;
    }
    return d;
}

static void same_digest(const qat_data_digest *a, const qat_data_digest *b)
{
    ck_assert(a->count == b->count && a->bytes == b->bytes && a->n == b->n);
    ck_assert_mem_eq(a->sha256, b->sha256, sizeof a->sha256);
    for (int i = 0; i < a->n; i++)
        ck_assert(a->names[i] == b->names[i] && a->contents[i] == b->contents[i]);
}

static qat_accuracy figures_of(int top1, int top5)
{
    return (qat_accuracy){
        .n = 100, .task = qat_task_find(NULL, "classes"), .figures = {top1, top5, -1}};
}

/** Something in every field. */
static qat_checkpoint *make(void)
{
    qat_checkpoint *c = qat_checkpoint_new();
    ck_assert_ptr_nonnull(c);
    c->recipe = copy("[train]\nlr = 1\n");
    c->graph = copy("graph text\n");
    c->log = copy("step\n1\n");
    c->input = (qat_input_info){.height = 1,
                                .width = 2,
                                .channels = 3,
                                .classes = 2,
                                .mean = {1, 2, 3, 4},
                                .std = {1, 2, 3, 4},
                                .min = -1,
                                .max = 2,
                                .resize_short = 5};
    c->labels = calloc(2, sizeof *c->labels);
    ck_assert_ptr_nonnull(c->labels);
    c->labels[0] = copy("cat");
    c->labels[1] = copy("");
    c->quantized = true;
    c->quant = qat_quant_defaults();
    c->quant.weight_bits = 4;
    c->quant.weight_delay = 123456789012;
    strcpy(c->quant.weight_ranges, "lsq");
    c->quant.learn_delay = 5000000000;
    c->quant.range_rate = 0.25;
    c->quant.power_of_two = true;
    c->quant.freeze_bits = 5;
    c->quant.least_weight_bits = 8;
    c->quant.least_activation_bits = 6;
    c->quant.n_layers = 2;
    c->quant.layers[0] = qat_quant_layer_defaults("conv*");
    c->quant.layers[0].activation_bits = 6;
    c->quant.layers[0].input_bits = 3;
    c->quant.layers[1] = qat_quant_layer_defaults("@last");
    c->quant.layers[1].is_float = 1;
    c->quant.layers[1].symmetric = 0;
    strcpy(c->quant.layers[1].where, "r.ini:12");
    strcpy(c->quant.layers[1].activation_ranges, "tqt");
    c->profile = QAT_PROFILE_TFLITE;
    c->params = calloc(2, sizeof *c->params);
    c->slots = calloc(1, sizeof *c->slots);
    ck_assert(c->params && c->slots);
    add_tensor(&c->params[c->n_params++], "a/weights", QAT_SHAPE(2, 3), 0.5f);
    add_tensor(&c->params[c->n_params++], "b", QAT_SHAPE(1), -7);
    add_tensor(&c->slots[c->n_slot_tensors++], "a/weights", QAT_SHAPE(2, 3), 9);
    c->n_slots = 1;
    c->averaged = true;
    memset(c->teacher, 7, sizeof c->teacher);
    c->step = 77;
    c->optimizer_steps = 78;
    c->loss_sum = 1.25;
    c->gradient_norm = 12.5;
    c->loss_count = 3;
    c->sample_count = 30;
    c->correct_count = 20;
    c->float_accuracy = figures_of(90, 99);
    c->simulated_accuracy = figures_of(89, 98);
    c->integer_accuracy = figures_of(88, 97);
    c->last_loss = 0.125;
    c->plateau = (qat_plateau){.watched = true,
                               .stage = 2,
                               .best = 71.5,
                               .since = 4,
                               .since_drop = 1,
                               .drops = 3,
                               .loss_sum = 6.5,
                               .losses = 2};
    c->data[0] = digest_of(2, 2);
    c->data[1] = digest_of(5, 0);
    c->plugins = calloc(2, sizeof *c->plugins);
    ck_assert_ptr_nonnull(c->plugins);
    c->n_plugins = 2;
    strcpy(c->plugins[0].name, "liba.so");
    strcpy(c->plugins[1].name, "libb.so");
    memset(c->plugins[1].sha256, 9, sizeof c->plugins[1].sha256);
    return c;
}

static uint8_t *saved(size_t *count)
{
    qat_checkpoint *c = make();
    uint8_t *bytes;
    ck_assert_int_eq(qat_checkpoint_save(c, path, NULL), QAT_OK);
    qat_checkpoint_free(c);
    ck_assert_int_eq(qat_file_read(path, 1 << 20, &bytes, count, NULL), QAT_OK);
    return bytes;
}

static void same_tensor(const qat_named_tensor *a, const qat_named_tensor *b)
{
    ck_assert_str_eq(a->name, b->name);
    ck_assert(qat_shape_equal(&a->shape, &b->shape));
    ck_assert_mem_eq(a->values, b->values, qat_shape_count(&a->shape) * sizeof(float));
}

START_TEST(test_round_trip)
{
    qat_checkpoint *a = make(), *b;
    ck_assert_int_eq(qat_checkpoint_save(a, path, NULL), QAT_OK);
    ck_assert_int_eq(qat_checkpoint_load(&b, path, NULL), QAT_OK);
    ck_assert_str_eq(a->recipe, b->recipe);
    ck_assert_str_eq(a->graph, b->graph);
    ck_assert_str_eq(a->log, b->log);
    ck_assert_int_eq(b->input.width, 2);
    ck_assert_int_eq(b->input.resize_short, 5);
    ck_assert_mem_eq(a->input.mean, b->input.mean, sizeof a->input.mean);
    ck_assert_mem_eq(a->input.std, b->input.std, sizeof a->input.std);
    ck_assert_float_eq(b->input.max, 2);
    ck_assert_str_eq(b->labels[0], "cat");
    ck_assert_str_eq(b->labels[1], "");
    ck_assert_int_eq(b->quant.weight_bits, 4);
    ck_assert_int_eq(b->quant.activation_bits, 8);
    ck_assert_int_eq(b->quant.weight_delay, 123456789012);
    ck_assert_int_eq(b->quant.bn_freeze_delay, a->quant.bn_freeze_delay);
    ck_assert_double_eq(b->quant.ema_decay, a->quant.ema_decay);
    ck_assert_float_eq(b->quant.input_min, a->quant.input_min);
    ck_assert_str_eq(b->quant.weight_ranges, "lsq");
    ck_assert_str_eq(b->quant.activation_ranges, "ema");
    ck_assert_int_eq(b->quant.learn_delay, 5000000000);
    ck_assert_double_eq(b->quant.range_rate, 0.25);
    ck_assert(b->quant.power_of_two);
    ck_assert_int_eq(b->quant.freeze_bits, 5);
    ck_assert_int_eq(b->quant.least_weight_bits, 8);
    ck_assert_int_eq(b->quant.least_activation_bits, 6);
    ck_assert_int_eq(b->quant.n_layers, 2);
    for (int i = 0; i < 2; i++) {
        const qat_quant_layer *x = &a->quant.layers[i], *y = &b->quant.layers[i];
        ck_assert_str_eq(x->pattern, y->pattern);
        ck_assert_str_eq(x->where, y->where);
        ck_assert_int_eq(x->weight_bits, y->weight_bits);
        ck_assert_int_eq(x->activation_bits, y->activation_bits);
        ck_assert_int_eq(x->input_bits, y->input_bits);
        ck_assert_int_eq(x->per_channel, y->per_channel);
        ck_assert_int_eq(x->symmetric, y->symmetric);
        ck_assert_int_eq(x->power_of_two, y->power_of_two);
        ck_assert_int_eq(x->is_float, y->is_float);
        ck_assert_str_eq(x->weight_ranges, y->weight_ranges);
        ck_assert_str_eq(x->activation_ranges, y->activation_ranges);
    }
    ck_assert(b->quantized);
    ck_assert_int_eq(b->profile, QAT_PROFILE_TFLITE);
    ck_assert_int_eq(b->n_params, 2);
    same_tensor(&a->params[0], &b->params[0]);
    same_tensor(&a->params[1], &b->params[1]);
    ck_assert_int_eq(b->n_slot_tensors, 1);
    same_tensor(&a->slots[0], &b->slots[0]);
    ck_assert_int_eq(b->step, 77);
    ck_assert_int_eq(b->optimizer_steps, 78);
    ck_assert_double_eq(b->loss_sum, 1.25);
    ck_assert_int_eq(b->correct_count, 20);
    ck_assert_double_eq(b->gradient_norm, 12.5);
    ck_assert_int_eq(b->simulated_accuracy.figures[QAT_TOP1], 89);
    ck_assert_int_eq(b->integer_accuracy.figures[QAT_TOP1], 88);
    ck_assert_int_eq(b->integer_accuracy.figures[QAT_TOP5], 97);
    ck_assert_double_eq(b->last_loss, 0.125);
    ck_assert(b->averaged);
    ck_assert(b->plateau.watched && !b->plateau.ended && b->plateau.stage == 2);
    ck_assert(b->plateau.best == 71.5 && b->plateau.since == 4);
    ck_assert(b->plateau.since_drop == 1 && b->plateau.drops == 3);
    ck_assert(b->plateau.loss_sum == 6.5 && b->plateau.losses == 2);
    ck_assert_mem_eq(b->teacher, a->teacher, sizeof a->teacher);
    same_digest(&a->data[0], &b->data[0]);
    same_digest(&a->data[1], &b->data[1]);
    ck_assert_int_eq(b->n_plugins, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(a->plugins[i].name, b->plugins[i].name);
        ck_assert_mem_eq(a->plugins[i].sha256, b->plugins[i].sha256, 32);
    }
    qat_checkpoint_free(a);
    qat_checkpoint_free(b);
}
END_TEST

/** Parameters and the last slots change places; what has no average stays. */
START_TEST(test_swap_averages)
{
    qat_checkpoint *c = make();
    ck_assert(qat_checkpoint_swap_averages(c));
    ck_assert_float_eq(c->params[0].values[0], 9);
    ck_assert_float_eq(c->slots[0].values[0], 0.5f);
    ck_assert_float_eq(c->params[1].values[0], -7);
    ck_assert(qat_checkpoint_swap_averages(c));
    ck_assert_float_eq(c->params[0].values[0], 0.5f);
    c->averaged = false;
    ck_assert(!qat_checkpoint_swap_averages(c));
    ck_assert_float_eq(c->params[0].values[0], 0.5f);
    qat_checkpoint_free(c);
}
END_TEST

static qat_status parse(const uint8_t *bytes, size_t count, qat_error *err)
{
    qat_checkpoint *c;
    qat_status const st = qat_checkpoint_parse(&c, bytes, count, "c.ckpt", err);
    ck_assert((st == QAT_OK) == (c != NULL));
    qat_checkpoint_free(c);
    return st;
}

/** Take n bytes off a section's content; `kept` bytes follow them. */
static void cut_out(uint8_t *bytes, size_t *count, const char *tag, size_t n, size_t kept)
{
    size_t at = 0;
    while (memcmp(bytes + at, tag, 4) != 0)
        ck_assert_uint_lt(++at, *count);
    uint32_t const size = (uint32_t)bytes[at + 4] | (uint32_t)bytes[at + 5] << 8;
    size_t const end = at + 12 + size - kept;
    memmove(bytes + end - n, bytes + end, *count - end);
    *count -= n;
    for (int i = 0; i < 2; i++) {
        bytes[at + 4 + (size_t)i] = (uint8_t)((size - n) >> (8 * i));
        bytes[16 + i] = (uint8_t)(*count >> (8 * i));
    }
}

/** Take the last n bytes off a section's content. */
static void shorten(uint8_t *bytes, size_t *count, const char *tag, size_t n)
{
    cut_out(bytes, count, tag, n, 0);
}

/* The last two sections of make's checkpoint. */
enum { PLUGINS = 12 + 4 + 2 * (4 + 7 + 32), DIGESTS = 12 + 2 * (8 + 8 + 32 + 4) + 2 * 8 };

/** Take the last sections off, of which `left` remain: versions 1 and 2 had 8, version 3 had 9. */
static void cut_sections(uint8_t *bytes, size_t *count, uint8_t left)
{
    *count -= left == 9 ? PLUGINS : PLUGINS + DIGESTS;
    bytes[12] = left;
    for (int i = 0; i < 2; i++)
        bytes[16 + i] = (uint8_t)(*count >> (8 * i));
}

/** An older version number, and the CRC of what was cut. */
static void seal_as(uint8_t *bytes, size_t count, uint8_t version)
{
    bytes[8] = version;
    uint32_t const crc = (uint32_t)crc32(0, bytes, (unsigned)count - 4);
    for (int i = 0; i < 4; i++)
        bytes[count - 4 + (size_t)i] = (uint8_t)(crc >> (8 * i));
}

/* The evaluation on integers, in section PROG: three numbers before the loss and the teacher. */
enum { INTEGER_EVALUATION = 3 * 8, LOSS = 8, TEACHER = 32 };

/** Version 3 named no plugins: they were paths in the recipe. */
START_TEST(test_version_3)
{
    size_t count;
    uint8_t *bytes = saved(&count);
    qat_checkpoint *c;
    qat_error err;
    cut_sections(bytes, &count, 9);
    seal_as(bytes, count, 3);
    ck_assert_msg(!qat_checkpoint_parse(&c, bytes, count, "c.ckpt", &err), "%s", err.message);
    ck_assert_int_eq(c->n_plugins, 0);
    ck_assert_int_eq(c->data[1].count, 5);
    qat_checkpoint_free(c);
    free(bytes);
}
END_TEST

/** A name that is a path, or empty, and more names than there may be. */
START_TEST(test_plugin_names)
{
    static const char *const names[] = {"../x.so", "/x/y.so", ""};
    qat_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        qat_checkpoint *c = make(), *b;
        strcpy(c->plugins[1].name, names[i]);
        ck_assert_int_eq(qat_checkpoint_save(c, path, NULL), QAT_OK);
        ck_assert_int_eq(qat_checkpoint_load(&b, path, &err), QAT_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(err.message, "section PLUG: a plugin's name"));
        qat_checkpoint_free(c);
    }
    size_t count;
    uint8_t *bytes = saved(&count);
    bytes[count - 4 - PLUGINS + 12] = QAT_CHECKPOINT_MAX_PLUGINS + 1;
    seal_as(bytes, count, 4);
    ck_assert_int_eq(parse(bytes, count, &err), QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "section PLUG: more plugins"));
    free(bytes);
}
END_TEST

/** A task that is not built in is named; what it noted of its answers is kept, its figures too. */
START_TEST(test_named_task)
{
    static const char *const names[] = {"mine", "classes", "boxes", "attributes"};
    for (int i = 0; i < 4; i++) {
        qat_task const task = {.name = names[i]};
        qat_checkpoint *c = make(), *b;
        qat_error err;
        c->input.task = &task;
        c->input.attributes =
            (qat_attributes){.count = 5, .outputs = 3, .low = -1.5f, .width = 0.25f};
        c->integer_accuracy = (qat_accuracy){.n = 10, .task = &task, .figures = {-7.5, 1e9}};
        ck_assert_int_eq(qat_checkpoint_save(c, path, NULL), QAT_OK);
        ck_assert_int_eq(qat_checkpoint_load(&b, path, &err), i ? QAT_ERR_FORMAT : QAT_OK);
        if (i) {
            ck_assert_ptr_nonnull(strstr(err.message, "section DATA"));
        } else {
            ck_assert_str_eq(b->task, "mine");
            ck_assert_mem_eq(&b->input.attributes, &c->input.attributes, sizeof(qat_attributes));
            ck_assert(b->integer_accuracy.n == 10 && b->integer_accuracy.figures[0] == -7.5);
            ck_assert(b->integer_accuracy.figures[1] == 1e9 && !b->integer_accuracy.task);
        }
        qat_checkpoint_free(b);
        qat_checkpoint_free(c);
    }
}
END_TEST

/** One class more than there may be, without names. */
START_TEST(test_classes)
{
    for (int more = 0; more < 2; more++) {
        qat_checkpoint *c = make(), *b;
        free(c->labels[0]);
        free(c->labels[1]);
        free(c->labels);
        c->labels = NULL;
        c->input.classes = QAT_CHECKPOINT_MAX_CLASSES + more;
        ck_assert_int_eq(qat_checkpoint_save(c, path, NULL), QAT_OK);
        ck_assert_int_eq(qat_checkpoint_load(&b, path, NULL), more ? QAT_ERR_FORMAT : QAT_OK);
        qat_checkpoint_free(b);
        qat_checkpoint_free(c);
    }
}
END_TEST

/** A clipped step of an infinite gradient is a step; one that is no number is none. */
START_TEST(test_gradient_norm)
{
    for (int good = 0; good < 2; good++) {
        qat_checkpoint *c = make(), *b;
        c->gradient_norm = good ? INFINITY : NAN;
        ck_assert_int_eq(qat_checkpoint_save(c, path, NULL), QAT_OK);
        ck_assert_int_eq(qat_checkpoint_load(&b, path, NULL), good ? QAT_OK : QAT_ERR_FORMAT);
        ck_assert(!good || isinf(b->gradient_norm));
        qat_checkpoint_free(b);
        qat_checkpoint_free(c);
    }
}
END_TEST

/** Version 2 evaluated the simulation alone, and said nothing of the data. */
START_TEST(test_version_2)
{
    size_t count;
    uint8_t *bytes = saved(&count);
    qat_checkpoint *c;
    qat_error err;
    cut_sections(bytes, &count, 8);
    cut_out(bytes, &count, "PROG", INTEGER_EVALUATION, LOSS + TEACHER);
    seal_as(bytes, count, 2);
    ck_assert_msg(!qat_checkpoint_parse(&c, bytes, count, "c.ckpt", &err), "%s", err.message);
    ck_assert_int_eq(c->simulated_accuracy.figures[QAT_TOP1], 89);
    ck_assert_int_eq(c->integer_accuracy.n, 0);
    ck_assert_double_eq(c->last_loss, 0.125);
    ck_assert_int_eq(c->teacher[0], 7);
    ck_assert_int_eq(c->data[0].count, 0);
    ck_assert_str_eq(c->log, "step\n1\n");
    qat_checkpoint_free(c);
    free(bytes);
}
END_TEST

/** Version 1 had neither averages, a teacher nor ranges of several kinds. */
START_TEST(test_version_1)
{
    size_t count;
    uint8_t *bytes = saved(&count);
    qat_checkpoint *c;
    qat_error err;
    static const uint8_t none[sizeof c->teacher] = {0};
    cut_sections(bytes, &count, 8);
    enum {
        OPTIONS = 7 + 7 + 4 + 8 + 8 + 4,
        OVERRIDES = (9 + 4 + 24 + 4 + 4) + (9 + 12 + 24 + 4 + 7),
        INPUT_BITS = 3 * 4,
        FREEZE_BITS = 4,
        LEAST_BITS = 2 * 4,
        PLATEAU = 4 + 7 * 8
    };
    shorten(bytes, &count, "QUAN", OPTIONS + OVERRIDES + INPUT_BITS + FREEZE_BITS + LEAST_BITS);
    shorten(bytes, &count, "OPTM", 4 + PLATEAU);
    shorten(bytes, &count, "PROG", TEACHER);
    cut_out(bytes, &count, "PROG", INTEGER_EVALUATION, LOSS);
    seal_as(bytes, count, 1);
    ck_assert_msg(!qat_checkpoint_parse(&c, bytes, count, "c.ckpt", &err), "%s", err.message);
    ck_assert_str_eq(c->quant.weight_ranges, "ema");
    ck_assert_int_eq(c->quant.n_layers, 0);
    ck_assert(!c->averaged);
    ck_assert_mem_eq(c->teacher, none, sizeof none);
    ck_assert_int_eq(c->optimizer_steps, 78);
    ck_assert_double_eq(c->last_loss, 0.125);
    qat_checkpoint_free(c);
    free(bytes);
}
END_TEST

START_TEST(test_any_byte_changed)
{
    size_t count;
    uint8_t *bytes = saved(&count);
    for (size_t i = 0; i < count; i++) {
        for (int bit = 0; bit < 8; bit++) {
            qat_error err;
            bytes[i] ^= (uint8_t)(1 << bit);
            ck_assert_int_eq(parse(bytes, count, &err), QAT_ERR_FORMAT);
            ck_assert(!strncmp(err.message, "c.ckpt: ", 8));
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    ck_assert_int_eq(parse(bytes, count, NULL), QAT_OK);
    free(bytes);
}
END_TEST

START_TEST(test_cut_anywhere)
{
    size_t count;
    uint8_t *bytes = saved(&count);
    for (size_t n = 0; n < count; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, for the sanitizers */
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, bytes, n);
        ck_assert_int_eq(parse(cut, n, NULL), QAT_ERR_FORMAT);
        free(cut);
    }
    free(bytes);
}
END_TEST

/** Damage under a correct CRC and size. The checks find it, or it does no harm; nothing crashes. */
START_TEST(test_damage_under_the_crc)
{
    size_t count;
    uint8_t *bytes = saved(&count), *work = malloc(count);
    ck_assert_ptr_nonnull(work);
    qat_rng rng = qat_rng_at(1, 2, 3);
    int refused = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(work, bytes, count);
        int const changes = 1 + (int)qat_rng_below(&rng, 4);
        for (int k = 0; k < changes; k++) {
            uint32_t const at = 24 + qat_rng_below(&rng, (uint32_t)count - 28);
            work[at] = qat_rng_below(&rng, 2) ? 0xff : (uint8_t)qat_rng_next(&rng);
        }
        uint32_t const crc = (uint32_t)crc32(0, work, (unsigned)count - 4);
        for (int i = 0; i < 4; i++)
            work[count - 4 + (size_t)i] = (uint8_t)(crc >> (8 * i));
        refused += parse(work, count, NULL) != QAT_OK;
    }
    ck_assert_int_gt(refused, 5000);
    free(work);
    free(bytes);
}
END_TEST

START_TEST(test_messages)
{
    size_t count;
    uint8_t *bytes = saved(&count);
    qat_error err;
    qat_checkpoint *c;
    bytes[0] = 'q';
    parse(bytes, count, &err);
    ck_assert_str_eq(err.message, "c.ckpt: not a checkpoint (it does not begin with QATCKPT)");
    bytes[0] = 'Q';
    bytes[8] = 9;
    parse(bytes, count, &err);
    ck_assert_str_eq(err.message, "c.ckpt: version 9, but this program reads 4");
    bytes[8] = 4;
    parse(bytes, count - 1, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "its header says"));
    bytes[40] ^= 1;
    parse(bytes, count, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "c.ckpt: damaged: its CRC-32 is "));
    ck_assert_int_eq(qat_checkpoint_load(&c, "no/such.ckpt", &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "no/such.ckpt"));
    free(bytes);
}
END_TEST

/** A list of n tensors of one value. */
static qat_named_tensor *many_tensors(int n)
{
    qat_named_tensor *tensors = calloc((size_t)n, sizeof *tensors);
    ck_assert_ptr_nonnull(tensors);
    for (int i = 0; i < n; i++)
        add_tensor(&tensors[i], "w", QAT_SHAPE(1), 0);
    return tensors;
}

static void free_tensors(qat_named_tensor *tensors, int n)
{
    for (int i = 0; i < n; i++)
        free(tensors[i].values);
    free(tensors);
}

/* Names of tensors are compared one by one, so a file may not have any number of them. */
START_TEST(test_too_many_tensors)
{
    bool const slots = _i == 1;
    int const most = slots ? QAT_CHECKPOINT_MAX_SLOTS : QAT_CHECKPOINT_MAX_PARAMETERS;
    qat_checkpoint *c = make();
    char expected[80];
    qat_error err;
    qat_named_tensor **list = slots ? &c->slots : &c->params;
    int *count = slots ? &c->n_slot_tensors : &c->n_params;
    free_tensors(*list, *count);
    *count = most + 1;
    *list = many_tensors(most + 1);
    ck_assert_int_eq(qat_checkpoint_save(c, path, NULL), QAT_OK);
    qat_checkpoint_free(c);
    ck_assert_int_eq(qat_checkpoint_load(&c, path, &err), QAT_ERR_FORMAT);
    snprintf(expected, sizeof expected, "section %s: %d tensors, at most %d",
             slots ? "OPTM" : "PARM", most + 1, most);
    ck_assert_ptr_nonnull(strstr(err.message, expected));
}
END_TEST

START_TEST(test_unwritable)
{
    qat_checkpoint *c = make();
    qat_error err;
    char below[TEST_PATH_MAX];
    ck_assert_int_eq(qat_checkpoint_save(c, path, NULL), QAT_OK);
    test_temp_path(below, folder, "c.ckpt/x.ckpt"); /* a file is no folder */
    ck_assert_int_eq(qat_checkpoint_save(c, below, &err), QAT_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, below));
    ck_assert_int_eq(test_temp_count(folder), 1);
    qat_checkpoint_free(c);
}
END_TEST

START_TEST(test_params)
{
    static const float expected[2] = {0.5f, 1.5f};
    qat_checkpoint *c = make();
    qat_registry *registry;
    qat_graph *g;
    qat_error err;
    ck_assert_int_eq(qat_registry_create(&registry, NULL), QAT_OK);
    ck_assert_int_eq(qat_graph_create(&g, registry, NULL), QAT_OK);
    qat_node *x = qat_graph_input(g, "x", QAT_SHAPE(1, 3));
    x = qat_apply1(g, "fully_connected", "a", "units=2", x);
    qat_graph_output(g, qat_apply1(g, "bias", "c", "", x));
    ck_assert_int_eq(qat_graph_plan(g, 1, QAT_PLAN_EVAL, NULL), QAT_OK);
    ck_assert_int_eq(qat_checkpoint_params(c, g, &err), QAT_ERR_FORMAT);
    ck_assert_str_eq(err.message, "the checkpoint has no parameter c/bias");
    strcpy(c->params[1].name, "c/bias");
    ck_assert_int_eq(qat_checkpoint_params(c, g, &err), QAT_ERR_SHAPE);
    ck_assert_str_eq(err.message, "parameter c/bias is [1] in the checkpoint, but [2] here");
    c->params[1].shape = QAT_SHAPE(2);
    free(c->params[1].values);
    add_tensor(&c->params[1], "c/bias", QAT_SHAPE(2), 0.5f);
    ck_assert_int_eq(qat_checkpoint_params(c, g, &err), QAT_OK);
    ck_assert_mem_eq(qat_graph_find(g, "c/bias")->value, expected, sizeof expected);
    qat_graph_free(g);
    qat_registry_free(registry);
    qat_checkpoint_free(c);
}
END_TEST

START_TEST(test_out_of_memory)
{
    qat_checkpoint *a = make(), *b;
    long n = 0;
    bool failed;
    do {
        b = NULL;
        test_fail_alloc_after(n++);
        qat_status st = qat_checkpoint_save(a, path, NULL);
        if (!st)
            st = qat_checkpoint_load(&b, path, NULL);
        failed = test_fail_alloc_stop();
        ck_assert_int_eq(st, failed ? QAT_ERR_NOMEM : QAT_OK);
        qat_checkpoint_free(b);
    } while (failed);
    ck_assert_int_gt(n, 10);
    qat_checkpoint_free(a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tc = tcase_create("checkpoint");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_round_trip);
    tcase_add_test(tc, test_swap_averages);
    tcase_add_test(tc, test_version_1);
    tcase_add_test(tc, test_version_2);
    tcase_add_test(tc, test_version_3);
    tcase_add_test(tc, test_plugin_names);
    tcase_add_test(tc, test_classes);
    tcase_add_test(tc, test_gradient_norm);
    tcase_add_test(tc, test_named_task);
    tcase_add_test(tc, test_any_byte_changed);
    tcase_add_test(tc, test_cut_anywhere);
    tcase_add_test(tc, test_damage_under_the_crc);
    tcase_add_test(tc, test_messages);
    tcase_add_loop_test(tc, test_too_many_tensors, 0, 2);
    tcase_add_test(tc, test_unwritable);
    tcase_add_test(tc, test_params);
    tcase_add_test(tc, test_out_of_memory);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
