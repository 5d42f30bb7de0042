/** Chooses the stage and the rows of its bands, and writes the model. */
#include "bands/bands.h"

#include "convert/convert.h"
#include "infer/model/model.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_BANDS = 64,
    MOST_MORE_OPS = 1024 /* each takes some flash */
};

typedef struct choice {
    qat_stage stage;
    size_t ram;
    int64_t macs;
    int64_t ops; /* in bands */
    bool is_there;
} choice;

typedef struct search {
    const qat_qgraph *graph;
    const qi_model *device;
    size_t limit;
    choice best;  /* of those that fit */
    choice least; /* with the least RAM */
} search;

/* ------------------------------------------------------------------ search */

/** Fewest multiply-adds, then fewest ops, then least RAM. */
static bool is_better(const choice *a, const choice *b)
{
    if (!b->is_there || a->macs != b->macs)
        return !b->is_there || a->macs < b->macs;
    return a->ops != b->ops ? a->ops < b->ops : a->ram < b->ram;
}

static bool is_smaller(const choice *a, const choice *b)
{
    return !b->is_there || a->ram < b->ram || (a->ram == b->ram && is_better(a, b));
}

static qat_status try_stage(search *s, const qat_stage *stage, qat_error *err)
{
    qat_banded banded;
    int32_t const bands = qat_stage_bands(s->graph, stage);
    choice c = {.stage = *stage,
                .ops = (int64_t)bands * (stage->last - stage->first + 1),
                .is_there = true};
    if (bands > MOST_BANDS || c.ops > MOST_MORE_OPS)
        return QAT_OK;
    qat_status st = qat_banded_build(&banded, s->graph, stage, err);
    if (st == QAT_ERR_UNSUPPORTED)
        return QAT_OK;
    if (!st)
        st = qat_banded_measure(&banded, s->device, &c.ram, &c.macs, err);
    qat_banded_free(&banded);
    if (st)
        return st;
    if (is_smaller(&c, &s->least))
        s->least = c;
    if (c.ram <= s->limit && is_better(&c, &s->best))
        s->best = c;
    return QAT_OK;
}

/** All numbers of bands that differ in rows. */
static qat_status try_rows(search *s, int first, int last, qat_error *err)
{
    qat_stage stage = {first, last, 0};
    int32_t const height = s->graph->tensors[qat_stage_output(s->graph, &stage)].dims[1];
    qat_status st = QAT_OK;
    for (int32_t bands = 2; !st && bands <= height && bands <= MOST_BANDS; bands++) {
        int32_t const rows = (height + bands - 1) / bands;
        if (rows == stage.rows)
            continue;
        stage.rows = rows;
        st = try_stage(s, &stage, err);
    }
    return st;
}

/** Every stage that begins where a run of ops that have rows does. */
static qat_status try_all(search *s, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int first = 0; !st && first < s->graph->n_ops; first++) {
        int last = first;
        for (; !st && last < s->graph->n_ops && qat_op_has_rows(s->graph, &s->graph->ops[last]);
             last++)
            if (qat_stage_is_valid(s->graph, first, last))
                st = try_rows(s, first, last, err);
        first = last;
    }
    return st;
}

/* ------------------------------------------------------------------ writing */

static qat_status write_choice(const qi_host *host, const qat_qgraph *graph, const choice *c,
                               const qi_kernel_list *kernels, uint8_t **bytes, size_t *count,
                               qat_error *err)
{
    static const qat_qm_form form;
    qat_banded banded;
    qat_status st = qat_banded_build(&banded, graph, &c->stage, err);
    if (st)
        return st;
    st = qat_qm_write_graph(host, banded.graph, &form, bytes, count, err);
    qat_banded_free(&banded);
    if (!st)
        st = qat_banded_check(host, *bytes, *count, c->ram, kernels, err);
    return st;
}

/* ------------------------------------------------------------------ all */

static qat_status refuse(const search *s, size_t ram, qat_error *err)
{
    if (!s->least.is_there || s->least.ram >= ram)
        return qat_fail(
            err, QAT_ERR_LIMIT,
            "the model needs %zu bytes of RAM, but only %zu are allowed; row bands of its first "
            "layers would save none",
            ram, s->limit);
    return qat_fail(
        err, QAT_ERR_LIMIT,
        "the model needs %zu bytes of RAM, but only %zu are allowed; in row bands it needs at "
        "least %zu",
        ram, s->limit, s->least.ram);
}

static void tell(qat_ram_plan *plan, const search *s)
{
    const choice *c = &s->best;
    plan->ram = c->ram;
    plan->macs = c->macs;
    plan->layers = c->stage.last - c->stage.first + 1;
    plan->bands = qat_stage_bands(s->graph, &c->stage);
    plan->rows = c->stage.rows;
    memcpy(plan->last, s->graph->ops[c->stage.last].name, sizeof plan->last);
}

/** Search and write, with the model opened as a device has it. */
static qat_status fit(const qi_host *host, const qi_host *device, size_t limit,
                      const qi_kernel_list *kernels, uint8_t **bytes, size_t *count,
                      qat_ram_plan *plan, qat_error *err)
{
    qat_qgraph *graph = NULL;
    search s = {.device = qi_host_model(device), .limit = limit};
    *plan = (qat_ram_plan){.ram = qi_model_ram(s.device), .macs = qi_model_macs(s.device)};
    plan->ram_before = plan->ram;
    plan->macs_before = plan->macs;
    if (plan->ram <= limit)
        return QAT_OK;
    qat_status st = qat_qm_read(&graph, qi_host_model(host), err);
    s.graph = graph;
    if (!st)
        st = try_all(&s, err);
    if (!st && !s.best.is_there)
        st = refuse(&s, plan->ram, err);
    if (!st)
        st = write_choice(host, graph, &s.best, kernels, bytes, count, err);
    if (!st)
        tell(plan, &s);
    qat_qgraph_free(graph);
    return st;
}

/** The kernels of a model: those that are not built in are needed to open it again. */
static qat_status kernels_of(const qi_model *model, qi_kernel_list *list, qat_error *err)
{
    size_t const n = (size_t)qi_node_count(model);
    const qi_kernel **kernels = calloc(n + 1, sizeof *kernels);
    if (!kernels)
        return qat_out_of_memory(err, "bands");
    for (size_t i = 0; i < n; i++)
        kernels[i] = qi_node_at(model, (int32_t)i)->kernel;
    *list = (qi_kernel_list){kernels, n};
    return QAT_OK;
}

qat_status qat_fit_ram(qi_host **fitted, const qi_host *host, size_t limit, qat_ram_plan *plan,
                       qat_error *err)
{
    const qi_model *model = qi_host_model(host);
    uint8_t *bytes = NULL;
    size_t count = 0;
    qi_kernel_list list = {NULL, 0};
    qi_host *device = NULL;
    qat_error ignored;
    err = err ? err : &ignored;
    *fitted = NULL;
    *plan = (qat_ram_plan){0};
    qat_status st = kernels_of(model, &list, err);
    if (!st)
        st = qat_engine_open(&device, model->qm, qm_u32(model->qm + QM_AT_FILE_BYTES), &list,
                             "scalar", err);
    if (!st)
        st = fit(host, device, limit, &list, &bytes, &count, plan, err);
    if (!st && bytes)
        st = qat_engine_open(fitted, bytes, count, &list, NULL, err);
    qi_host_close(device);
    free((void *)list.kernels);
    free(bytes);
    return st;
}
