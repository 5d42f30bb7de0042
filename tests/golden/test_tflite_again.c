/**
 * .tflite -> .qm -> .tflite -> .qm: every golden case of an operator, written again and read back,
 * is the same integer graph: ops, parameters, tensors, constants. What differs is said here: the
 * names of constants that TensorFlow Lite has not (multipliers) and of ops that had no operator of
 * their own, the numbers of tensors in their file, and the order of constants.
 */
#include "base/files/file.h"
#include "common/common.h"
#include "common/suite.h"
#include "qat/export.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 24, PATH_BYTES = 1024 };

static qat_error err;

static bool same_numbers(const qat_qtensor *a, const qat_qtensor *b)
{
    return (a->data != NULL) == (b->data != NULL) &&
           (!a->data || memcmp(a->data, b->data, qat_qtensor_bytes(a)) == 0);
}

static bool same_scales(const qat_qtensor *a, const qat_qtensor *b)
{
    return a->scale == b->scale && a->zero_point == b->zero_point &&
           (a->channel_scales != NULL) == (b->channel_scales != NULL) &&
           (!a->channel_scales || (a->n_channels == b->n_channels &&
                                   memcmp(a->channel_scales, b->channel_scales,
                                          (size_t)a->n_channels * sizeof *a->channel_scales) == 0));
}

/** A bias of the source may have any scale; it is written with that of its products. */
static bool same_tensor(const qat_qtensor *a, const qat_qtensor *b)
{
    return a->type == b->type && a->bits == b->bits && a->rank == b->rank &&
           memcmp(a->dims, b->dims, sizeof a->dims) == 0 && a->border == b->border &&
           same_numbers(a, b) && (a->type == QI_S32 || a->type == QI_S64 || same_scales(a, b));
}

static bool same_op(const qat_qgraph *ga, const qat_qop *a, const qat_qgraph *gb, const qat_qop *b)
{
    bool same = strcmp(a->op, b->op) == 0 && a->rounding == b->rounding &&
                a->n_params == b->n_params &&
                memcmp(a->params, b->params, (size_t)a->n_params * sizeof *a->params) == 0 &&
                a->max_accumulator == b->max_accumulator && a->n_inputs == b->n_inputs &&
                a->n_outputs == b->n_outputs;
    for (int i = 0; same && i < a->n_inputs; i++)
        same = same_tensor(&ga->tensors[a->inputs[i]], &gb->tensors[b->inputs[i]]);
    for (int i = 0; same && i < a->n_outputs; i++)
        same = same_tensor(&ga->tensors[a->outputs[i]], &gb->tensors[b->outputs[i]]);
    return same;
}

static bool same_graph(const qat_qgraph *a, const qat_qgraph *b)
{
    bool same = a->n_ops == b->n_ops && a->n_tensors == b->n_tensors &&
                a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs;
    for (int i = 0; same && i < a->n_ops; i++)
        same = same_op(a, &a->ops[i], b, &b->ops[i]);
    return same;
}

/** The file's bytes as a model that runs. */
static qat_status open_imported(qi_host **host, const uint8_t *bytes, size_t count)
{
    uint8_t *qm = NULL;
    size_t qm_bytes;
    qat_import_options const options = {.known_answers = true, .limits = QI_NO_LIMITS};
    qat_status st = qat_tflite_to_qm(bytes, count, &options, &qm, &qm_bytes, &err);
    if (!st)
        st = qi_host_open_bytes(host, qm, qm_bytes, "imported", NULL, &err);
    free(qm);
    return st;
}

static qat_status write_again(const char *path)
{
    uint8_t *first = NULL, *again = NULL;
    size_t count = 0, again_count = 0;
    qi_host *host = NULL;
    qat_qgraph *a = NULL, *b = NULL;
    qat_status st = qat_file_read(path, MAX_FILE, &first, &count, &err);
    if (!st)
        st = open_imported(&host, first, count);
    if (!st)
        st = qat_tflite_write(host, NULL, &again, &again_count, &err);
    if (!st)
        st = qat_tflite_import(&a, first, count, &err);
    if (!st)
        st = qat_tflite_import(&b, again, again_count, &err);
    if (!st && !same_graph(a, b))
        st = qat_fail(&err, QAT_ERR_MISMATCH, "another graph");
    qat_qgraph_free(a);
    qat_qgraph_free(b);
    qi_host_close(host);
    free(first);
    free(again);
    return st;
}

START_TEST(test_written_again)
{
    static const char *const sets[] = {"ops", "ops2"};
    int cases = 0, failed = 0;
    for (int set = 0; set < 2; set++) {
        char ops[PATH_BYTES], path[PATH_BYTES + 200], line[512], name[128];
        ck_assert(test_golden_path(ops, sizeof ops, sets[set]));
        snprintf(path, sizeof path, "%s/index.txt", ops);
        FILE *index = fopen(path, "r");
        ck_assert_ptr_nonnull(index);
        while (fgets(line, sizeof line, index)) {
            if (sscanf(line, "%127s", name) != 1)
                continue;
            snprintf(path, sizeof path, "%s/%s/model.tflite", ops, name);
            qat_status const st = write_again(path);
            cases++;
            failed += st != QAT_OK;
            if (st)
                printf("%s: %s\n", name, err.message);
        }
        fclose(index);
    }
    printf("%d cases written again, %d refused or another graph\n", cases, failed);
    fflush(stdout);
    ck_assert_int_eq(failed, 0);
    ck_assert_int_gt(cases, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tflite_again");
    TCase *tcase = tcase_create("golden");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, test_written_again);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
