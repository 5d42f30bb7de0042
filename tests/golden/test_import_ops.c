/**
 * TensorFlow Lite's operators from their .tflite files. Every case of data/golden/ops and ops2 is
 * imported, written as a .qm and run on every instruction set that runs here. Every byte must equal
 * the recorded one. QUANTIZE from float32 and DEQUANTIZE to float32 happen at the border. If the
 * golden data are not there, the committed subset is used. A case of ops2 may have several runs;
 * states carry on between them. What is equal is kept for other processors (tests/engine/replay.c).
 *
 * uint8 RESIZE_BILINEAR is float arithmetic in the reference, so its values are counted separately.
 */
#include "base/files/file.h"
#include "base/files/npy.h"
#include "common/common.h"
#include "common/suite.h"
#include "convert/convert.h"
#include "qat/border.h"
#include "qat/convert.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IO = 16, MAX_RUNS = 16, MAX_KINDS = 128, MAX_FILE = 1 << 24, PATH_BYTES = 1024 };

/** One case: its model, and arrays for the model's inputs and outputs. */
struct op_case {
    char folder[PATH_BYTES + 160], text[PATH_BYTES + 192]; /* text: case.txt */
    int n_inputs, n_outputs, n_runs;
    qat_npy inputs[MAX_RUNS][MAX_IO], outputs[MAX_RUNS][MAX_IO];
    uint8_t *file, *qm;
    size_t file_bytes, qm_bytes;
};

/** The cases of an operator and type: those whose names differ only in their number. */
struct kind {
    char name[128];
    int cases, refused, differing;
};

/** What came of the cases. */
struct tally {
    int cases, refused, runs, differing;
    int exact;                       /* cases of 16-bit codes that the exact evaluation has, too */
    long resized, resized_differing; /* values of uint8 RESIZE_BILINEAR */
    char first[1024], first_refused[1024];
    struct kind kinds[MAX_KINDS];
    int n_kinds;
};

static void differs(struct tally *t, const char *name, const char *isa, const char *why)
{
    t->differing++;
    if (!*t->first)
        snprintf(t->first, sizeof t->first, "%s: %s: %s", name, isa, why);
}

static void is_refused(struct tally *t, const char *name, const char *why)
{
    t->refused++;
    if (!*t->first_refused)
        snprintf(t->first_refused, sizeof t->first_refused, "%s: %s", name, why);
}

/** The kind of a case: conv_2d_s16_03 is of conv_2d_s16. */
static struct kind *kind_of(struct tally *t, const char *name)
{
    size_t const length = (size_t)(strrchr(name, '_') - name);
    for (int i = 0; i < t->n_kinds; i++)
        if (strlen(t->kinds[i].name) == length && strncmp(t->kinds[i].name, name, length) == 0)
            return &t->kinds[i];
    ck_assert_int_lt(t->n_kinds, MAX_KINDS);
    struct kind *kind = &t->kinds[t->n_kinds++];
    snprintf(kind->name, sizeof kind->name, "%.*s", (int)length, name);
    return kind;
}

/* ------------------------------------------------------------------ loading a case */

static bool value_of(const struct op_case *c, const char *kind, int i, const char *key, char *value)
{
    char full[64];
    snprintf(full, sizeof full, "%s%d.%s", kind, i, key);
    return test_case_value(c->text, full, value, 256);
}

static int number_of(const struct op_case *c, const char *key)
{
    char value[256];
    return test_case_value(c->text, key, value, sizeof value) ? (int)strtol(value, NULL, 10) : 0;
}

static qat_status read_array(const struct op_case *c, const char *kind, int i, int run,
                             qat_npy *array, qat_error *err)
{
    char path[PATH_BYTES + 192], suffix[16] = "";
    if (run)
        snprintf(suffix, sizeof suffix, "_run%d", run);
    snprintf(path, sizeof path, "%s/%s%d%s.npy", c->folder, kind, i, suffix);
    return qat_npy_read(array, path, err);
}

/** Arrays of the inputs that are neither constants nor states, and of all outputs, for one run. */
static qat_status read_arrays(struct op_case *c, int run, qat_error *err)
{
    char role[256];
    qat_status st = QAT_OK;
    int const n = number_of(c, "inputs");
    c->n_inputs = c->n_outputs = 0;
    for (int i = 0; i < n && !st; i++)
        if (value_of(c, "in", i, "role", role) && strcmp(role, "input") == 0)
            st = read_array(c, "in", i, run, &c->inputs[run][c->n_inputs++], err);
    int const outputs = number_of(c, "outputs");
    for (int i = 0; i < outputs && !st; i++)
        st = read_array(c, "out", i, run, &c->outputs[run][c->n_outputs++], err);
    return st;
}

static qat_status load(struct op_case *c, const char *ops, const char *name, qat_error *err)
{
    char path[PATH_BYTES + 192];
    *c = (struct op_case){0};
    snprintf(c->folder, sizeof c->folder, "%s/%s", ops, name);
    snprintf(c->text, sizeof c->text, "%s/case.txt", c->folder);
    snprintf(path, sizeof path, "%s/model.tflite", c->folder);
    qat_status st = qat_file_read(path, MAX_FILE, &c->file, &c->file_bytes, err);
    if (!st)
        st = qat_tflite_to_qm(c->file, c->file_bytes, &(qat_import_options){.description = name},
                              &c->qm, &c->qm_bytes, err);
    c->n_runs = number_of(c, "runs");
    c->n_runs = c->n_runs ? c->n_runs : 1;
    ck_assert_int_le(c->n_runs, MAX_RUNS);
    for (int run = 0; run < c->n_runs && !st; run++)
        st = read_arrays(c, run, err);
    return st;
}

static void release(struct op_case *c)
{
    for (int run = 0; run < MAX_RUNS; run++)
        for (int i = 0; i < MAX_IO; i++) {
            qat_npy_free(&c->inputs[run][i]);
            qat_npy_free(&c->outputs[run][i]);
        }
    free(c->file);
    free(c->qm);
}

/* ------------------------------------------------------------------ running it */

/** The codes of an input: the array's, or made of its real numbers at the border. */
static void *input_codes(const qi_tensor *t, const qat_npy *array)
{
    size_t const bytes = array->count * qat_npy_item_bytes(array->type);
    void *codes = malloc(t->bytes + 1);
    ck_assert_ptr_nonnull(codes);
    if (t->border) {
        ck_assert_int_eq(array->type, QAT_NPY_F32);
        ck_assert_uint_eq(array->count, qat_tensor_values(t));
        qat_border_quantize(t, array->data, codes);
    } else {
        ck_assert_uint_eq(bytes, t->bytes);
        memcpy(codes, array->data, bytes);
    }
    return codes;
}

/** Count the bytes that differ; "" or what the first is goes to why. */
static size_t count_differing(const qat_npy *expected, const uint8_t *got, char why[96])
{
    const uint8_t *want = expected->data;
    size_t n = 0;
    *why = 0;
    for (size_t i = 0; i < expected->count * qat_npy_item_bytes(expected->type); i++) {
        if (want[i] == got[i])
            continue;
        if (n++ == 0)
            snprintf(why, 96, "byte %zu is %d, expected %d", i, got[i], want[i]);
    }
    return n;
}

static void compare_output(struct tally *t, const char *name, const char *op, const char *isa,
                           const qi_tensor *tensor, const qat_npy *expected, const uint8_t *codes)
{
    char why[96];
    uint8_t *got = (uint8_t *)codes, *reals = NULL;
    size_t bytes = tensor->bytes;
    if (tensor->border) {
        bytes = qat_tensor_values(tensor) * sizeof(float);
        got = reals = malloc(bytes);
        ck_assert_ptr_nonnull(reals);
        qat_border_dequantize(tensor, codes, (float *)(void *)reals);
    }
    if (bytes != expected->count * qat_npy_item_bytes(expected->type)) {
        differs(t, name, isa, "another number of bytes");
    } else {
        size_t const n = count_differing(expected, got, why);
        if (strcmp(op, "RESIZE_BILINEAR") == 0 && tensor->type == QI_U8) {
            t->resized += (long)expected->count;
            t->resized_differing += (long)n;
        }
        if (n)
            differs(t, name, isa, why);
    }
    free(reals);
}

/** One of the runs of a case, on a host that is open. */
static void run_once(struct tally *t, const struct op_case *c, int run, const char *name,
                     const char *op, const qi_host *host)
{
    const qi_model *m = qi_host_model(host);
    void *in[MAX_IO] = {0}, *out[MAX_IO] = {0};
    for (int i = 0; i < c->n_inputs; i++)
        in[i] = input_codes(qi_tensor_at(m, qi_input_at(m, i)), &c->inputs[run][i]);
    for (int i = 0; i < c->n_outputs; i++) {
        out[i] = malloc(qi_tensor_at(m, qi_output_at(m, i))->bytes);
        ck_assert_ptr_nonnull(out[i]);
    }
    qi_host_run(host, (const void *const *)in, out);
    t->runs++;
    for (int i = 0; i < c->n_outputs; i++)
        compare_output(t, name, op, qi_host_isa(host), qi_tensor_at(m, qi_output_at(m, i)),
                       &c->outputs[run][i], out[i]);
    for (int i = 0; i < MAX_IO; i++) {
        free(in[i]);
        free(out[i]);
    }
}

static void run_on(struct tally *t, const struct op_case *c, const char *name, const char *op,
                   const char *isa)
{
    qat_error err;
    qi_host *host;
    if (qi_host_open_bytes(&host, c->qm, c->qm_bytes, name, &(qi_host_options){.isa = isa}, &err)) {
        differs(t, name, isa, err.message);
        return;
    }
    ck_assert_int_eq(qi_input_count(qi_host_model(host)), c->n_inputs);
    ck_assert_int_eq(qi_output_count(qi_host_model(host)), c->n_outputs);
    for (int run = 0; run < c->n_runs; run++)
        run_once(t, c, run, name, op, host);
    qi_host_close(host);
}

/** Keep the model with the case's inputs, whose answers are right. Without states one run fits. */
static void keep(const struct op_case *c, const char *name)
{
    qat_error err;
    qat_qgraph *g = NULL;
    uint8_t *inputs[MAX_IO] = {0}, *qm = NULL;
    size_t count, arena_bytes;
    if (!getenv("QAT_KEEP_MODELS"))
        return;
    qi_host *host = NULL;
    ck_assert_int_eq(qi_host_open_bytes(&host, c->qm, c->qm_bytes, name, NULL, &err), QAT_OK);
    const qi_model *m = qi_host_model(host);
    int const steps = qi_state_count(m) ? c->n_runs : 1;
    for (int i = 0; i < c->n_inputs; i++) {
        const qi_tensor *t = qi_tensor_at(m, qi_input_at(m, i));
        inputs[i] = malloc((size_t)steps * t->bytes + 1);
        ck_assert_ptr_nonnull(inputs[i]);
        for (int run = 0; run < steps; run++) {
            void *codes = input_codes(t, &c->inputs[run][i]);
            memcpy(inputs[i] + (size_t)run * t->bytes, codes, t->bytes);
            free(codes);
        }
    }
    qi_host_close(host);
    ck_assert_int_eq(qat_tflite_import(&g, c->file, c->file_bytes, &err), QAT_OK);
    qat_status const st =
        qat_qm_write_answered(g, &(qat_qm_metadata){.description = name, .kat_steps = steps}, NULL,
                              (const void *const *)inputs, &qm, &count, &arena_bytes, &err);
    ck_assert_msg(st == QAT_OK, "%s: %s", name, err.message);
    test_keep_model("import", name, qm, count);
    for (int i = 0; i < MAX_IO; i++)
        free(inputs[i]);
    free(qm);
    qat_qgraph_free(g);
}

/** Has the graph tensors of 16-bit codes, and no states? */
static bool is_wide(const qat_qgraph *g)
{
    bool wide = false;
    for (int i = 0; i < g->n_tensors; i++) {
        if (g->tensors[i].is_state)
            return false;
        wide |= g->tensors[i].type == QI_S16;
    }
    return wide;
}

/** The exact evaluation of 16-bit codes; the others' is in test_golden_ops.c. */
static void run_exact(struct tally *t, const struct op_case *c, const char *name, const char *op)
{
    qat_error err;
    qat_qgraph *g = NULL;
    qat_exact *exact = NULL;
    qi_host *host = NULL;
    void *in[MAX_IO] = {0};
    ck_assert_int_eq(qat_tflite_import(&g, c->file, c->file_bytes, &err), QAT_OK);
    if (is_wide(g) && qat_exact_create(&exact, g, NULL, 1, &err) == QAT_OK) {
        ck_assert_int_eq(qi_host_open_bytes(&host, c->qm, c->qm_bytes, name, NULL, &err), QAT_OK);
        const qi_model *m = qi_host_model(host);
        for (int i = 0; i < c->n_inputs; i++)
            in[i] = input_codes(qi_tensor_at(m, qi_input_at(m, i)), &c->inputs[0][i]);
        ck_assert_int_eq(qat_exact_run(exact, (const void *const *)in, 1, &err), QAT_OK);
        for (int i = 0; i < c->n_outputs; i++)
            compare_output(t, name, op, "exact evaluation", qi_tensor_at(m, qi_output_at(m, i)),
                           &c->outputs[0][i], qat_exact_tensor(exact, g->outputs[i]));
        t->exact++;
    }
    for (int i = 0; i < MAX_IO; i++)
        free(in[i]);
    qi_host_close(host);
    qat_exact_free(exact);
    qat_qgraph_free(g);
}

static void run_case(struct tally *t, const char *ops, const char *name, const char *op)
{
    static struct op_case c;
    struct kind *kind = kind_of(t, name);
    int const differing = t->differing, refused = t->refused;
    qat_error err;
    t->cases++;
    if (load(&c, ops, name, &err))
        is_refused(t, name, err.message);
    else
        for (int i = 0; qi_isa_name(i); i++)
            if (qi_isa_runs_here(qi_isa_name(i)))
                run_on(t, &c, name, op, qi_isa_name(i));
    kind->cases++;
    if (c.qm)
        run_exact(t, &c, name, op);
    if (c.qm && t->differing == differing)
        keep(&c, name);
    kind->refused += t->refused > refused;
    kind->differing += t->differing > differing;
    release(&c);
}

/** Run all cases of golden/<folder>; false: they are not there. */
static bool run_all(struct tally *t, const char *folder)
{
    char ops[PATH_BYTES], index[PATH_BYTES + 16], name[128], op[128];
    if (!test_golden_path(ops, sizeof ops, folder)) {
        test_skip("operators from .tflite files", folder);
        return false;
    }
    snprintf(index, sizeof index, "%s/index.txt", ops);
    FILE *file = fopen(index, "r");
    ck_assert_ptr_nonnull(file);
    while (fscanf(file, "%127s %127s", name, op) == 2)
        run_case(t, ops, name, op);
    fclose(file);
    return true;
}

/* ------------------------------------------------------------------ tests */

static void print_tally(const struct tally *t)
{
    printf("operators from .tflite files: %d cases, %d refused, %d runs, %d differ; "
           "instruction sets:",
           t->cases, t->refused, t->runs, t->differing);
    for (int i = 0; qi_isa_name(i); i++)
        if (qi_isa_runs_here(qi_isa_name(i)))
            printf(" %s", qi_isa_name(i));
    printf("; exact evaluation of 16-bit codes: %d cases\n", t->exact);
    if (t->refused)
        printf("the first that is refused: %s\n", t->first_refused);
    if (t->resized)
        printf("uint8 RESIZE_BILINEAR: %ld of %ld values differ from the reference's float32\n",
               t->resized_differing, t->resized);
    fflush(stdout);
}

/** A line for each operator and type. */
static void print_kinds(const struct tally *t)
{
    for (int i = 0; i < t->n_kinds; i++) {
        const struct kind *k = &t->kinds[i];
        printf("  %-32s %3d cases, %3d equal", k->name, k->cases,
               k->cases - k->refused - k->differing);
        if (k->refused)
            printf(", %d refused", k->refused);
        if (k->differing)
            printf(", %d differ", k->differing);
        printf("\n");
    }
}

START_TEST(every_case_from_its_file)
{
    static struct tally t;
    if (!run_all(&t, "ops"))
        return;
    print_tally(&t);
    ck_assert_msg(t.differing == 0, "%d differ, first %s", t.differing, t.first);
    ck_assert_msg(t.refused == 0, "%d are refused, first %s", t.refused, t.first_refused);
    ck_assert_int_gt(t.cases, 50);
    ck_assert_int_gt(t.resized, 0);
    ck_assert_int_eq(t.resized_differing, 0);
}
END_TEST

START_TEST(every_further_case)
{
    static struct tally t;
    if (!run_all(&t, "ops2"))
        return;
    print_kinds(&t);
    print_tally(&t);
    ck_assert_msg(t.differing == 0, "%d differ, first %s", t.differing, t.first);
    ck_assert_msg(t.refused == 0, "%d are refused, first %s", t.refused, t.first_refused);
    ck_assert_int_gt(t.cases, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_ops");
    TCase *tcase = tcase_create("golden");
    tcase_add_test(tcase, every_case_from_its_file);
    tcase_add_test(tcase, every_further_case);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
