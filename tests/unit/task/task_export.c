#include "unit/task/task_export.h"
#include "checkpoint/restore.h"
#include "common/temp.h"

#include <check.h>
#include <string.h>

qat_recipe *recipe_of(const char *text)
{
    qat_recipe *r;
    qat_error err;
    qat_status const st = qat_recipe_parse(&r, text, "test.ini", NULL, 0, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return r;
}

void refuses_recipe(const char *text, const char *says)
{
    qat_train_options const o = {.dir = folder};
    qat_recipe *r = NULL;
    qat_error err;
    qat_status st = qat_recipe_parse(&r, text, "test.ini", NULL, 0, &err);
    if (!st)
        st = qat_train(r, &o, NULL, &err);
    ck_assert_int_ne(st, QAT_OK);
    ck_assert_msg(strstr(err.message, says), "\"%s\" lacks \"%s\"", err.message, says);
    qat_recipe_free(r);
}

qat_accuracy export_task(const qat_restored *c, const qat_dataset *data, const char *path)
{
    qat_deploy_options const o = {.samples = 4};
    qat_deploy_result deployed;
    qat_graph *eval;
    qat_qgraph *graph;
    qat_accuracy exact;
    qat_error err;
    qat_status st = qat_deploy(c, path, &o, &deployed, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    ck_assert_int_eq(deployed.compare.differing, 0);
    ck_assert_int_eq(qat_restored_eval_graph(c, &o, 4, &eval, NULL), QAT_OK);
    ck_assert_int_eq(qat_restored_freeze(c, &o, eval, &graph, NULL), QAT_OK);
    st = qat_evaluate_exact(graph, c->registry, &c->checkpoint->input, data, 4, 0, NULL, NULL,
                            &exact, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    return exact;
}

qi_host *open_model(const char *path, qat_input_info *in)
{
    qat_error err;
    qi_host *host = NULL;
    ck_assert_msg(qi_host_open(&host, path, NULL, &err) == QAT_OK, "%s", err.message);
    ck_assert_int_eq(qat_input_info_of_model(in, NULL, qi_host_model(host), NULL), QAT_OK);
    return host;
}

qat_accuracy judge_model(const qi_host *host, const qat_input_info *in, const qat_dataset *data)
{
    qat_accuracy a;
    qat_error err;
    qat_status const st = qat_evaluate_model(host, in, data, 0, NULL, NULL, &a, &err);
    ck_assert_msg(st == QAT_OK, "%s", err.message);
    return a;
}
