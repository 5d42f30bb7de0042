/**
 * Models that others have published, imported as they are: data/golden/models. The outputs of every
 * picture must equal those of TensorFlow Lite's reference kernels, byte for byte, on every
 * instruction set that runs here, with one thread and with two. For the first two models, every
 * operator's output is compared too (stored, or its CRC-32). MoveNet computes in float32 in its
 * middle; it must be refused, and the message names the operator.
 */
#include "base/files/file.h"
#include "base/files/npy.h"
#include "common/common.h"
#include "common/suite.h"
#include "qat/border.h"
#include "qat/convert.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#ifdef __SANITIZE_ADDRESS__
enum { LEAST_THREADS = 2, PART = 2 }; /* they take long enough: every second picture */
#else
enum { LEAST_THREADS = 1, PART = 1 };
#endif
enum { EMULATED_BYTES = 1 << 20 }; /* of a model small enough for an emulated processor */
enum { MAX_IO = 8, MAX_FILE = 1 << 28, PATH_BYTES = 2048, LINE_BYTES = 512, DETECTOR_OUTPUTS = 4 };

/** An imported model, its golden folder, and what was compared. */
struct model {
    const char *name;
    char folder[PATH_BYTES / 2], golden[PATH_BYTES]; /* golden: golden.txt */
    uint8_t *qm;
    size_t qm_bytes;
    qi_host *host;
    const qi_model *model;
    void *in[MAX_IO], *out[MAX_IO];
    qat_detections found;
    int pictures, outputs, tensors; /* compared, in all runs */
    int outputs_of_picture;         /* how many are compared at least */
    int differing;
    char first[1024];
};

/** CRCs of the tensors of one run, by index in the source file. */
struct dump {
    uint32_t *crc;
    bool *seen;
    int count;
};

static void differs(struct model *m, const char *picture, const char *what)
{
    if (m->differing++ == 0)
        snprintf(m->first, sizeof m->first, "%s: %s, %s: %s", m->name, picture,
                 qi_host_isa(m->host), what);
}

/* ------------------------------------------------------------------ golden.txt */

static bool value_of(const struct model *m, const char *key, char value[LINE_BYTES])
{
    return test_case_value(m->golden, key, value, LINE_BYTES);
}

static int number_of(const struct model *m, const char *key)
{
    char value[LINE_BYTES];
    return value_of(m, key, value) ? (int)strtol(value, NULL, 10) : 0;
}

/** pic<k>.<what><i><rest>, e.g. pic0.out0.ref: the file's path. */
static bool file_of(const struct model *m, int picture, const char *what, int i, const char *rest,
                    char path[PATH_BYTES])
{
    char key[64], name[LINE_BYTES];
    snprintf(key, sizeof key, "pic%d.%s%d%s", picture, what, i, rest);
    if (!value_of(m, key, name))
        return false;
    snprintf(path, PATH_BYTES, "%s/%s", m->folder, name);
    return true;
}

static void read_array(const char *path, qat_npy *array)
{
    qat_error err;
    ck_assert_msg(qat_npy_read(array, path, &err) == QAT_OK, "%s", err.message);
}

/* ------------------------------------------------------------------ comparing */

static void compare(struct model *m, const char *picture, const char *what, const qat_npy *expected,
                    const void *got, size_t bytes)
{
    char why[256];
    size_t const want = expected->count * qat_npy_item_bytes(expected->type);
    if (want != bytes)
        snprintf(why, sizeof why, "%s has %zu bytes, expected %zu", what, bytes, want);
    else if (memcmp(expected->data, got, want) != 0)
        snprintf(why, sizeof why, "%s differs", what);
    else
        return;
    differs(m, picture, why);
}

static void compare_file(struct model *m, int k, const char *picture, const char *what, int i,
                         const void *got, size_t bytes)
{
    char path[PATH_BYTES], label[32];
    qat_npy expected = {0};
    snprintf(label, sizeof label, "%s%d", what, i);
    if (!file_of(m, k, what, i, ".ref", path))
        return;
    read_array(path, &expected);
    compare(m, picture, label, &expected, got, bytes);
    qat_npy_free(&expected);
    m->outputs++;
}

static const qi_tensor *output_at(const struct model *m, int i)
{
    return qi_tensor_at(m->model, qi_output_at(m->model, i));
}

/** A detector: the integer tensors before its last operator, and the four float32 after it. */
static void compare_detections(struct model *m, int k, const char *picture)
{
    qat_error err;
    ck_assert_msg(qat_detect(&m->found, m->model, (const void *const *)m->out, &err) == QAT_OK,
                  "%s", err.message);
    size_t const row = (size_t)m->found.rows * sizeof(float);
    float const count = (float)m->found.found;
    for (int i = 0; i < 2; i++)
        compare_file(m, k, picture, "extra", i, m->out[i], output_at(m, i)->bytes);
    compare_file(m, k, picture, "out", 0, m->found.boxes, 4 * row);
    compare_file(m, k, picture, "out", 1, m->found.classes, row);
    compare_file(m, k, picture, "out", 2, m->found.scores, row);
    compare_file(m, k, picture, "out", 3, &count, sizeof count);
    qat_detections_free(&m->found);
}

static void compare_outputs(struct model *m, int k, const char *picture)
{
    if (qat_is_detector(m->model)) {
        compare_detections(m, k, picture);
        return;
    }
    for (int i = 0; i < qi_output_count(m->model); i++)
        compare_file(m, k, picture, "out", i, m->out[i], output_at(m, i)->bytes);
}

static void note_tensor(void *context, const qi_model *model, int32_t index, const void *data)
{
    struct dump *d = context;
    const qi_tensor *t = qi_tensor_at(model, index);
    if (t->source_index < 0 || t->source_index >= d->count)
        return;
    d->crc[t->source_index] = (uint32_t)crc32(0, data, (uInt)t->bytes);
    d->seen[t->source_index] = true;
}

/** One line: operator index and name, tensor, type, shape, scale, zero point, CRC, file, name. */
static void compare_line(struct model *m, const char *picture, const struct dump *d,
                         const char *line)
{
    char op[64], type[16], shape[64], scale[32], zero_point[16], crc[16], why[256];
    int op_index, tensor;
    ck_assert_int_eq(sscanf(line, "%d %63s %d %15s %63s %31s %15s %15s", &op_index, op, &tensor,
                            type, shape, scale, zero_point, crc),
                     8);
    if (strcmp(type, "float32") == 0)
        return; /* a detector's outputs, compared as such */
    m->tensors++;
    if (tensor >= d->count || !d->seen[tensor])
        snprintf(why, sizeof why, "op %d (%s): no tensor %d", op_index, op, tensor);
    else if (d->crc[tensor] != (uint32_t)strtoul(crc, NULL, 16))
        snprintf(why, sizeof why, "op %d (%s): tensor %d differs", op_index, op, tensor);
    else
        return;
    differs(m, picture, why);
}

static void compare_tensors(struct model *m, const char *list, const char *picture,
                            const struct dump *d)
{
    char path[PATH_BYTES], line[1024];
    snprintf(path, sizeof path, "%s/%s", m->folder, list);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        if (*line != '#')
            compare_line(m, picture, d, line);
    fclose(file);
}

/* ------------------------------------------------------------------ running */

static void read_inputs(struct model *m, int k)
{
    char path[PATH_BYTES];
    for (int i = 0; i < qi_input_count(m->model); i++) {
        const qi_tensor *t = qi_tensor_at(m->model, qi_input_at(m->model, i));
        qat_npy array = {0};
        ck_assert(file_of(m, k, "in", i, "", path));
        read_array(path, &array);
        ck_assert_uint_eq(array.count * qat_npy_item_bytes(array.type), t->bytes);
        memcpy(m->in[i], array.data, t->bytes);
        qat_npy_free(&array);
    }
}

static void run_picture(struct model *m, int k)
{
    char key[64], picture[LINE_BYTES] = "", list[LINE_BYTES];
    struct dump d = {.count = 4096};
    snprintf(key, sizeof key, "pic%d.name", k);
    value_of(m, key, picture);
    read_inputs(m, k);
    d.crc = calloc((size_t)d.count, sizeof *d.crc);
    d.seen = calloc((size_t)d.count, sizeof *d.seen);
    ck_assert(d.crc && d.seen);
    qi_host_run_visit(m->host, NULL, (const void *const *)m->in, m->out, note_tensor, &d);
    m->pictures++;
    compare_outputs(m, k, picture);
    snprintf(key, sizeof key, "pic%d.tensors", k);
    if (value_of(m, key, list))
        compare_tensors(m, list, picture, &d);
    free(d.crc);
    free(d.seen);
}

static void *buffer(const struct model *m, int32_t tensor)
{
    void *memory = malloc(qi_tensor_at(m->model, tensor)->bytes);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/** Two integer tensors and four float32 of a detector, each output of any other. */
static int outputs_compared(const struct model *m)
{
    return qat_is_detector(m->model) ? 2 + DETECTOR_OUTPUTS : qi_output_count(m->model);
}

static void run_on(struct model *m, const char *isa, int threads)
{
    qat_error err;
    qi_host_options const how = {.isa = isa, .threads = threads};
    ck_assert_msg(qi_host_open_bytes(&m->host, m->qm, m->qm_bytes, m->name, &how, &err) == QAT_OK,
                  "%s", err.message);
    m->model = qi_host_model(m->host);
    ck_assert_int_le(qi_input_count(m->model), MAX_IO);
    ck_assert_int_le(qi_output_count(m->model), MAX_IO);
    for (int i = 0; i < qi_input_count(m->model); i++)
        m->in[i] = buffer(m, qi_input_at(m->model, i));
    for (int i = 0; i < qi_output_count(m->model); i++)
        m->out[i] = buffer(m, qi_output_at(m->model, i));
    m->outputs_of_picture = outputs_compared(m);
    int const pictures = number_of(m, "pictures");
    for (int k = 0; k < pictures; k += PART)
        run_picture(m, k);
    for (int i = 0; i < MAX_IO; i++) {
        free(m->in[i]);
        free(m->out[i]);
        m->in[i] = m->out[i] = NULL;
    }
    qi_host_close(m->host);
}

/** The .tflite file to .qm bytes; the data may be absent. */
static bool import(struct model *m, const char *name, qat_status *st, qat_error *err)
{
    char below[LINE_BYTES + 8], path[PATH_BYTES], file[LINE_BYTES];
    uint8_t *bytes = NULL;
    size_t count = 0;
    *m = (struct model){.name = name};
    snprintf(below, sizeof below, "golden/models/%s", name);
    if (!test_data_path(m->folder, sizeof m->folder, below)) {
        test_skip(name, "no golden/models");
        return false;
    }
    snprintf(m->golden, sizeof m->golden, "%s/golden.txt", m->folder);
    ck_assert(value_of(m, "model", file));
    snprintf(below, sizeof below, "models/%s", file);
    if (!test_data_path(path, sizeof path, below)) {
        test_skip(name, "no data/models");
        return false;
    }
    *st = qat_file_read(path, MAX_FILE, &bytes, &count, err);
    if (!*st)
        *st = qat_tflite_to_qm(bytes, count, &(qat_import_options){.known_answers = true}, &m->qm,
                               &m->qm_bytes, err);
    free(bytes);
    return true;
}

static const char *const names[] = {"micro_speech_quantized",
                                    "mobilenet_v1_0.25_128_quant",
                                    "mobilenet_v1_0.75_192_quant",
                                    "mobilenet_v2_1.0_224_quant",
                                    "tf2_mobilenet_v2_1.0_224_ptq",
                                    "person_detect",
                                    "coco_ssd_mobilenet_v1_1.0_quant",
                                    "resnet8_int8",
                                    "kws_ref_model",
                                    "vww_96_int8",
                                    "toycar_int8"};

START_TEST(every_picture_and_tensor)
{
    struct model m;
    qat_error err;
    qat_status st;
    if (!import(&m, names[_i], &st, &err))
        return;
    ck_assert_msg(st == QAT_OK, "%s: %s", names[_i], err.message);
    if (m.qm_bytes < EMULATED_BYTES)
        test_keep_model("model", names[_i], m.qm, m.qm_bytes);
    printf("%s:", names[_i]);
    for (int i = 0; qi_isa_name(i); i++) {
        if (!qi_isa_runs_here(qi_isa_name(i)))
            continue;
        printf(" %s", qi_isa_name(i));
        for (int threads = LEAST_THREADS; threads <= 2; threads++)
            run_on(&m, qi_isa_name(i), threads);
    }
    printf(" (%s2 threads): %d pictures, %d outputs and %d tensors compared, %d differ\n",
           LEAST_THREADS == 1 ? "1 and " : "", m.pictures, m.outputs, m.tensors, m.differing);
    fflush(stdout);
    free(m.qm);
    ck_assert_msg(m.differing == 0, "%d differ, first %s", m.differing, m.first);
    ck_assert_int_ge(m.pictures, 8);
    ck_assert_int_gt(m.tensors, 0);
    ck_assert_int_eq(m.outputs, m.pictures * m.outputs_of_picture);
}
END_TEST

START_TEST(float_islands_are_refused)
{
    struct model m;
    qat_error err;
    qat_status st;
    if (!import(&m, "movenet_single_pose_lightning_ptq", &st, &err))
        return;
    printf("movenet_single_pose_lightning_ptq: refused: %s\n", err.message);
    ck_assert_int_eq(st, QAT_ERR_UNSUPPORTED);
    ck_assert_ptr_null(m.qm);
    ck_assert_str_eq(
        err.message,
        "op 90 (FLOOR_DIV, writes tensor 264, floordiv): the operator FLOOR_DIV is not supported");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_models");
    TCase *tcase = tcase_create("golden");
    tcase_set_timeout(tcase, 600);
    tcase_add_loop_test(tcase, every_picture_and_tensor, 0, (int)(sizeof names / sizeof *names));
    tcase_add_test(tcase, float_islands_are_refused);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
