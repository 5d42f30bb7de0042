/**
 * The rows of the built-in ops. There is one for each kernel, it says what docs/qm-format.md says,
 * and the kernel refuses what it excludes. The nodes come from the corpus of fuzz_qm, which has all
 * ops.
 */
#include "common/suite.h"
#include "infer/model/model.h"

#include <check.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void in_source(char path[512], const char *name)
{
    const char *root = getenv("QAT_SOURCE_ROOT");
    snprintf(path, 512, "%s/%s", root ? root : ".", name);
}

static int count_inputs(const qi_op *row)
{
    int n = 0;
    while (row->inputs[n])
        n++;
    return n;
}

static int count_params(const qi_op *row)
{
    int n = 0;
    while (row->params[n].name)
        n++;
    return n;
}

START_TEST(test_every_kernel)
{
    for (size_t i = 0; i < qi_built_in_kernels.count; i++) {
        const qi_kernel *kernel = qi_built_in_kernels.kernels[i];
        const qi_op *row = qi_op_named(kernel->name);
        ck_assert_msg(row && row->kernel == kernel, "%s has no row", kernel->name);
        bool const weights = kernel->products != QI_PRODUCTS_NONE &&
                             kernel->products != QI_PRODUCTS_POOL &&
                             kernel->products != QI_PRODUCTS_MATRIX;
        if (kernel->products == QI_PRODUCTS_RECURRENT)
            continue;
        ck_assert_msg(weights == (count_inputs(row) == 5), "%s: products of weights", kernel->name);
    }
    ck_assert_ptr_null(qi_op_named("no_op"));
}
END_TEST

/* ------------------------------------------------------------------ the document */

/** The names of a cell: "begin 0..3 (0), value (a code)" are begin_0 .. begin_3, value. */
static void compare_names(const qi_op *row, const char *cell)
{
    const char *op = row->kernel->name;
    char text[512], name[64], *rest;
    int n = 0;
    snprintf(text, sizeof text, "%s", cell);
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char word[32], range[8] = "";
        ck_assert_int_ge(sscanf(item, "%31s %7s", word, range), 1);
        int const axes = strcmp(range, "0..3") == 0 ? QI_MAX_RANK : 1;
        for (int d = 0; d < axes && strcmp(word, "none") != 0; d++, n++) {
            snprintf(name, sizeof name, axes > 1 ? "%s_%d" : "%s", word, d);
            ck_assert_msg(row->params[n].name && strcmp(row->params[n].name, name) == 0,
                          "%s: parameter %d is %s in docs/qm-format.md", op, n, name);
        }
    }
    ck_assert_msg(n == count_params(row), "%s: %d parameters in docs/qm-format.md", op, n);
}

/** Compare a line of the table; returns the number of its ops. */
static int compare_line(char *line)
{
    char *cells, *names, *rest;
    int ops = 0;
    const char *first = strtok_r(line, "|", &cells);
    (void)strtok_r(NULL, "|", &cells); /* inputs */
    const char *params = strtok_r(NULL, "|", &cells);
    char copy[256];
    snprintf(copy, sizeof copy, "%s", first);
    for (names = strtok_r(copy, " ,`", &rest); names; names = strtok_r(NULL, " ,`", &rest), ops++) {
        const qi_op *row = qi_op_named(names);
        ck_assert_msg(row && params, "%s of docs/qm-format.md has no row", names);
        compare_names(row, params);
    }
    return ops;
}

START_TEST(test_document)
{
    char path[512], line[2048];
    bool inside = false;
    size_t ops = 0;
    in_source(path, "docs/qm-format.md");
    FILE *file = fopen(path, "r");
    ck_assert_msg(file, "%s", path);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "| op | inputs | params |", 24) == 0)
            inside = true;
        else if (line[0] != '|')
            inside = false;
        else if (inside && line[1] == ' ')
            ops += (size_t)compare_line(line);
    }
    fclose(file);
    ck_assert_uint_eq(ops, qi_built_in_kernels.count);
}
END_TEST

/* ------------------------------------------------------------------ the kernels' checks */

static bool is_refused(const qi_model *model, qi_node node, int32_t index, const int32_t *params)
{
    node.params = params;
    return node.kernel->check(model, &node, index, NULL) != QI_OK;
}

/** Can nothing but its own bounds exclude a value of this parameter? */
static bool is_free(const char *name)
{
    return (strstr(name, "shift") && strcmp(name, "left_shift") != 0) ||
           strcmp(name, "radius") == 0 ||
           (strncmp(name, "mult", 4) == 0 && strcmp(name, "multiplier") != 0);
}

/** An end of the bounds of a free parameter is not what the node is refused for, if it is. */
static void try_end(const qi_model *model, qi_node node, int32_t index, int32_t *params, int k,
                    const qi_param *p, int32_t end)
{
    qi_error err = {.value = (int64_t)end + 1};
    params[k] = end;
    node.params = params;
    (void)node.kernel->check(model, &node, index, &err);
    ck_assert_msg(!is_free(p->name) || err.value != end, "%s: %s may not be %d", node.kernel->name,
                  p->name, end);
}

/** What the row excludes is refused, one value and one input at a time. */
static void try_node(const qi_model *model, int32_t index, const qi_op *row)
{
    qi_node const node = *qi_node_at(model, index);
    int32_t params[QI_OP_PARAMS];
    ck_assert_int_eq(node.n_params, count_params(row));
    ck_assert_int_ge(node.n_inputs, count_inputs(row));
    memcpy(params, node.params, (size_t)node.n_params * sizeof *params);
    ck_assert(!is_refused(model, node, index, params));
    for (int k = 0; k < node.n_params; k++) {
        const qi_param *p = &row->params[k];
        ck_assert_msg(node.params[k] >= p->lo && node.params[k] <= p->hi, "%s: %s is %d",
                      row->kernel->name, p->name, node.params[k]);
        params[k] = p->lo - (p->lo > INT32_MIN);
        ck_assert_msg(p->lo == INT32_MIN || is_refused(model, node, index, params),
                      "%s: %s may be %d", row->kernel->name, p->name, params[k]);
        params[k] = p->hi < INT32_MAX ? p->hi + 1 : p->hi;
        ck_assert_msg(p->hi == INT32_MAX || is_refused(model, node, index, params),
                      "%s: %s may be %d", row->kernel->name, p->name, params[k]);
        try_end(model, node, index, params, k, p, p->lo);
        try_end(model, node, index, params, k, p, p->hi);
        params[k] = node.params[k];
    }
    qi_node fewer = node;
    fewer.n_inputs = count_inputs(row) - 1;
    ck_assert_msg(is_refused(model, fewer, index, node.params), "%s: %d inputs", row->kernel->name,
                  fewer.n_inputs);
}

static void try_file(const char *path, bool *seen)
{
    qi_host *host = NULL;
    qat_error err;
    if (qi_host_open(&host, path, NULL, &err))
        return; /* the corpus has broken files, too */
    for (int32_t i = 0; i < qi_node_count(qi_host_model(host)); i++) {
        const qi_op *row = qi_op_named(qi_node_at(qi_host_model(host), i)->kernel->name);
        ck_assert_ptr_nonnull(row);
        try_node(qi_host_model(host), i, row);
        for (size_t k = 0; k < qi_built_in_kernels.count; k++)
            seen[k] |= qi_built_in_kernels.kernels[k] == row->kernel;
    }
    qi_host_close(host);
}

START_TEST(test_checks)
{
    char pattern[512];
    bool seen[64] = {false};
    glob_t found;
    in_source(pattern, "tests/fuzz/corpus/fuzz_qm/*");
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        try_file(found.gl_pathv[i], seen);
    globfree(&found);
    for (size_t k = 0; k < qi_built_in_kernels.count; k++)
        ck_assert_msg(seen[k], "%s is not in the corpus", qi_built_in_kernels.kernels[k]->name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_rows");
    TCase *tests = tcase_create("op_rows");
    tcase_add_test(tests, test_every_kernel);
    tcase_add_test(tests, test_document);
    tcase_add_test(tests, test_checks);
    suite_add_tcase(suite, tests);
    return test_run_suite(suite);
}
