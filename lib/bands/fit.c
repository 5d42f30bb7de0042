/**
 * Chooses how a model fits: by the first layers in row bands, or by tensors of few bits packed.
 * Writes the model.
 */
#include "bands/bands.h"

#include "base/arena.h"
#include "convert/convert.h"
#include "infer/model/model.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_BANDS = 64,
    MOST_MORE_OPS = 1024 /* each takes some flash */
};

/** One way. The stage in bands, or, of packed tensors, the rows of their bands. */
typedef struct choice {
    qat_stage stage;
    size_t least_bytes; /* tensors of so many bytes or more are packed; 0: none is */
    size_t ram;
    int64_t macs;
    int64_t ops; /* more than the model has */
    bool is_there;
} choice;

typedef struct search {
    const qat_qgraph *graph;
    const qi_model *device;
    size_t limit;
    bool *chosen; /* by tensor: is it packed? */
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

/** Choose the tensors to be packed. Returns how many they are. */
static int choose_tensors(const search *s, size_t least_bytes)
{
    int count = 0;
    for (int i = 0; i < s->graph->n_tensors; i++) {
        s->chosen[i] =
            qat_qtensor_bytes(&s->graph->tensors[i]) >= least_bytes && qat_can_pack(s->graph, i);
        count += s->chosen[i];
    }
    return count;
}

static qat_status build(const search *s, const choice *c, qat_banded *banded, qat_error *err)
{
    if (!c->least_bytes)
        return qat_banded_build(banded, s->graph, &c->stage, 1, err);
    choose_tensors(s, c->least_bytes);
    return qat_packed_build(banded, s->graph, s->chosen, c->stage.rows, err);
}

static qat_status try_choice(search *s, choice c, qat_error *err)
{
    qat_banded banded;
    qat_status st = build(s, &c, &banded, err);
    if (st == QAT_ERR_UNSUPPORTED)
        return QAT_OK;
    if (!st)
        st = qat_banded_measure(&banded, s->device, &c.ram, &c.macs, err);
    if (!st)
        c.ops = banded.graph->n_ops - s->graph->n_ops;
    qat_banded_free(&banded);
    if (st || c.ops > MOST_MORE_OPS)
        return st;
    c.is_there = true;
    if (is_smaller(&c, &s->least))
        s->least = c;
    if (c.ram <= s->limit && is_better(&c, &s->best))
        s->best = c;
    return QAT_OK;
}

static qat_status try_stage(search *s, const qat_stage *stage, qat_error *err)
{
    int32_t const bands = qat_stage_bands(s->graph, stage);
    bool const is_much = (int64_t)bands * (stage->last - stage->first + 1) > MOST_MORE_OPS;
    return bands > MOST_BANDS || is_much ? QAT_OK : try_choice(s, (choice){.stage = *stage}, err);
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
static qat_status try_stages(search *s, qat_error *err)
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

/** The bands in which the chosen tensors are made, and the height of the highest one. */
static int64_t count_bands(const search *s, int32_t rows, int32_t *highest)
{
    int64_t bands = 0;
    *highest = 0;
    for (int i = 0; i < s->graph->n_tensors; i++) {
        int32_t const height = s->graph->tensors[i].dims[1];
        if (!s->chosen[i])
            continue;
        bands += (height + rows - 1) / rows;
        *highest = height > *highest ? height : *highest;
    }
    return bands;
}

/** The tensors that can be packed and have so many bytes or more, in bands of 1, 2, 4 .. all rows.
 */
static qat_status try_packed(search *s, size_t least_bytes, qat_error *err)
{
    qat_status st = QAT_OK;
    int32_t rows = 1, highest;
    choose_tensors(s, least_bytes);
    while (!st) {
        if (count_bands(s, rows, &highest) <= MOST_MORE_OPS)
            st = try_choice(s, (choice){.stage.rows = rows, .least_bytes = least_bytes}, err);
        if (rows >= highest)
            break;
        rows = 2 * rows < highest ? 2 * rows : highest;
    }
    return st;
}

/** Every size of those tensors. */
static qat_status try_sizes(search *s, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < s->graph->n_tensors; i++) {
        size_t const bytes = qat_qtensor_bytes(&s->graph->tensors[i]);
        bool is_new = qat_can_pack(s->graph, i);
        for (int k = 0; is_new && k < i; k++)
            is_new =
                qat_qtensor_bytes(&s->graph->tensors[k]) != bytes || !qat_can_pack(s->graph, k);
        if (is_new)
            st = try_packed(s, bytes, err);
    }
    return st;
}

/* ------------------------------------------------------------------ writing */

static qat_status write_best(const qi_host *host, const search *s, uint8_t **bytes, size_t *count,
                             qat_error *err)
{
    static const qat_qm_form form;
    qat_banded banded;
    qat_status st = build(s, &s->best, &banded, err);
    if (st)
        return st;
    st = qat_qm_write_graph(host, banded.graph, &form, bytes, count, err);
    qat_banded_free(&banded);
    return st;
}

/* ------------------------------------------------------------------ all */

static qat_status refuse(const search *s, qat_ram_plan *plan, qat_error *err)
{
    size_t const ram = plan->ram_before;
    if (!s->least.is_there || s->least.ram >= ram)
        return qat_fail(
            err, QAT_ERR_LIMIT,
            "the model needs %zu bytes of RAM, but only %zu are allowed; nothing would save any",
            ram, s->limit);
    plan->ram = s->least.ram;
    return qat_fail(
        err, QAT_ERR_LIMIT,
        "the model needs %zu bytes of RAM, but only %zu are allowed; it can be made to need %zu",
        ram, s->limit, s->least.ram);
}

static void tell(qat_ram_plan *plan, const search *s)
{
    const choice *c = &s->best;
    plan->ram = c->ram;
    plan->macs = c->macs;
    plan->rows = c->stage.rows;
    if (c->least_bytes) {
        plan->packed = choose_tensors(s, c->least_bytes);
        return;
    }
    plan->layers = c->stage.last - c->stage.first + 1;
    plan->bands = qat_stage_bands(s->graph, &c->stage);
    memcpy(plan->last, s->graph->ops[c->stage.last].name, sizeof plan->last);
}

/** Search and write, with the model opened as a device has it. */
static qat_status fit(const qi_host *host, const qi_host *device, size_t limit, uint8_t **bytes,
                      size_t *count, qat_ram_plan *plan, qat_error *err)
{
    qat_qgraph *graph = NULL;
    search s = {.device = qi_host_model(device), .limit = limit};
    *plan = (qat_ram_plan){.ram = qi_model_ram(s.device),
                           .bytes = qm_u32(s.device->qm + QM_AT_FILE_BYTES),
                           .macs = qi_model_macs(s.device)};
    plan->ram_before = plan->ram;
    plan->bytes_before = plan->bytes;
    plan->macs_before = plan->macs;
    if (plan->ram <= limit)
        return QAT_OK;
    qat_status st = qat_qm_read(&graph, qi_host_model(host), err);
    s.graph = graph;
    if (!st &&
        !(s.chosen = qat_arena_array(graph->memory, (size_t)graph->n_tensors + 1, sizeof(bool))))
        st = qat_out_of_memory(err, "bands");
    if (!st)
        st = try_stages(&s, err);
    if (!st)
        st = try_sizes(&s, err);
    if (!st && !s.best.is_there)
        st = refuse(&s, plan, err);
    if (!st)
        st = write_best(host, &s, bytes, count, err);
    if (!st) {
        tell(plan, &s);
        plan->bytes = *count;
    }
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
    if (fitted)
        *fitted = NULL;
    *plan = (qat_ram_plan){0};
    qat_status st = kernels_of(model, &list, err);
    if (!st)
        st = qat_engine_open(&device, model->qm, qm_u32(model->qm + QM_AT_FILE_BYTES), &list,
                             "scalar", err);
    if (!st)
        st = fit(host, device, limit, &bytes, &count, plan, err);
    bool const is_wanted = bytes && fitted;
    if (!st && is_wanted)
        st = qat_banded_check(host, bytes, count, plan->ram, &list, err);
    if (!st && is_wanted)
        st = qat_engine_open(fitted, bytes, count, &list, NULL, err);
    qi_host_close(device);
    free((void *)list.kernels);
    free(bytes);
    return st;
}
