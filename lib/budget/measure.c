/** Measures what the bits of each tensor cost. */
#include "budget/search.h"

#include "base/bytes.h"
#include "recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEY_MAX = QAT_NAME_MAX + 64 };

typedef struct measuring {
    qat_budget *b;
    budget_meter *m;
    budget_table *table;
    int64_t done, all;
} measuring;

static const char *name_of(const qat_budget *b, int item)
{
    return b->net.layers[b->net.tensors[item].layer].name;
}

qat_status budget_tick(const budget_meter *m, int64_t done, int64_t all, qat_error *err)
{
    const qat_budget_options *o = m->options;
    if (!o->tick || o->tick(o->context, done, all))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_STATE,
                    "stopped; what was measured is kept: run the same command again to continue");
}

static qat_status tick(measuring *g, qat_error *err)
{
    g->done++;
    return budget_tick(g->m, g->done, g->all, err);
}

static void set_loss(budget_item *item, int c, double added)
{
    double const most = 9e15;
    double const units = fmin(fmax(added, 0) / BUDGET_LOSS_UNIT, most);
    item->loss[c] = isnan(units) ? (int64_t)most : (int64_t)floor(units + 0.5);
}

/**
 * What was measured has noise, which may hide a small loss. So fewer bits never lose less; and they
 * lose a little even where nothing was seen: 4^(8 - bits) billionths, as rounding errors grow.
 */
static void smooth(budget_item *item)
{
    for (int c = 1; c < item->n; c++) {
        int64_t const least = (int64_t)1 << (2 * (8 - item->bits[c]));
        int64_t const before = item->loss[c - 1];
        item->loss[c] = item->loss[c] < least ? least : item->loss[c];
        item->loss[c] = item->loss[c] < before ? before : item->loss[c];
    }
}

/* ------------------------------------------------------------------ the loss itself */

static qat_status loss_with(measuring *g, int item, int bits, double *loss, qat_error *err)
{
    char key[KEY_MAX];
    const budget_network *net = &g->b->net;
    snprintf(key, sizeof key, "%s,%s,%d", name_of(g->b, item),
             net->tensors[item].weights ? "weights" : "activation", bits);
    if (budget_table_get(g->table, key, loss))
        return QAT_OK;
    qat_status st = budget_meter_set(g->m, net, item, bits, err);
    if (!st)
        st = budget_meter_loss(g->m, loss, err);
    if (!st)
        st = budget_meter_set(g->m, net, item, net->items[item].bits[0], err);
    return st ? st : budget_table_put(g->table, key, loss, err);
}

static qat_status measure_item(measuring *g, int item, qat_error *err)
{
    budget_item *it = &g->b->net.items[item];
    qat_status st = QAT_OK;
    for (int c = 1; !st && c < it->n; c++) {
        double loss = 0;
        st = loss_with(g, item, it->bits[c], &loss, err);
        set_loss(it, c, loss - g->b->base_loss);
        if (!st)
            st = tick(g, err);
    }
    smooth(it);
    return st;
}

static qat_status measure_base(measuring *g, qat_error *err)
{
    if (budget_table_get(g->table, "none,loss,0", &g->b->base_loss))
        return QAT_OK;
    qat_status const st = budget_meter_loss(g->m, &g->b->base_loss, err);
    if (!st && !isfinite(g->b->base_loss))
        return qat_fail(err, QAT_ERR_NUMERIC,
                        "%s: the loss of the network with the most bits is %g: no bits can be "
                        "compared with it",
                        g->b->recipe->source, g->b->base_loss);
    return st ? st : budget_table_put(g->table, "none,loss,0", &g->b->base_loss, err);
}

/* ------------------------------------------------------------------ by the Hessian */

static bool is_traced(const qat_budget *b, int item)
{
    return b->net.tensors[item].weights && b->net.items[item].n > 1;
}

static const char *trace_key(const qat_budget *b, int item, int probe, char key[KEY_MAX])
{
    snprintf(key, KEY_MAX, "%s,trace,%d", name_of(b, item), probe);
    return key;
}

/** One probe gives a number for each layer. It is done again if one of them is missing. */
static qat_status probe(measuring *g, int number, double *traces, qat_error *err)
{
    char key[KEY_MAX];
    bool known = true;
    int const n = g->b->net.n_items;
    for (int i = 0; i < n; i++)
        if (is_traced(g->b, i))
            known =
                budget_table_get(g->table, trace_key(g->b, i, number, key), &traces[i]) && known;
    qat_status st = known ? QAT_OK : budget_probe(g->m, &g->b->net, number, traces, err);
    for (int i = 0; !st && !known && i < n; i++) {
        double found;
        if (!is_traced(g->b, i))
            continue;
        trace_key(g->b, i, number, key);
        if (budget_table_get(g->table, key, &found))
            traces[i] = found;
        else
            st = budget_table_put(g->table, key, &traces[i], err);
    }
    return st ? st : tick(g, err);
}

/**
 * loss = trace / weights x ||dW||^2 / 2, the second term of a Taylor series. A trace is negative
 * only where weights are not at a minimum; its size then says how much the loss changes.
 */
static qat_status set_by_trace(measuring *g, int item, double trace, qat_error *err)
{
    budget_item *it = &g->b->net.items[item];
    double const weights = (double)g->b->net.layers[g->b->net.tensors[item].layer].weights;
    qat_status st = QAT_OK;
    for (int c = 1; !st && c < it->n; c++) {
        char key[KEY_MAX];
        double squares = 0;
        snprintf(key, sizeof key, "%s,error,%d", name_of(g->b, item), it->bits[c]);
        if (!budget_table_get(g->table, key, &squares)) {
            st = budget_meter_error(g->m, &g->b->net, item, it->bits[c], &squares, err);
            if (!st)
                st = budget_table_put(g->table, key, &squares, err);
        }
        set_loss(it, c, fabs(trace) / weights * squares / 2);
    }
    smooth(it);
    return st;
}

static qat_status measure_traces(measuring *g, int64_t probes, qat_error *err)
{
    size_t const n = (size_t)g->b->net.n_items;
    double *one = calloc(n + 1, sizeof *one), *sums = calloc(n + 1, sizeof *sums);
    qat_status st = one && sums ? QAT_OK : qat_out_of_memory(err, "budget");
    for (int p = 0; !st && p < probes; p++) {
        st = probe(g, p, one, err);
        for (size_t i = 0; !st && i < n; i++)
            sums[i] += one[i];
    }
    for (size_t i = 0; !st && i < n; i++)
        if (is_traced(g->b, (int)i))
            st = set_by_trace(g, (int)i, sums[i] / (double)probes, err);
    free(one);
    free(sums);
    return st;
}

/* ------------------------------------------------------------------ all */

qat_status budget_measure(qat_budget *b, budget_meter *m, budget_table *table, qat_error *err)
{
    bool const hessian = b->recipe->budget.sensitivity == QAT_SENSITIVITY_HESSIAN;
    int64_t const probes = hessian ? b->recipe->budget.probes : 0;
    measuring g = {.b = b, .m = m, .table = table, .all = probes};
    for (int i = 0; i < b->net.n_items; i++)
        if (!hessian || !b->net.tensors[i].weights)
            g.all += b->net.items[i].n - 1;
    qat_status st = measure_base(&g, err);
    if (!st && hessian)
        st = measure_traces(&g, probes, err);
    for (int i = 0; !st && i < b->net.n_items; i++)
        if (!hessian || !b->net.tensors[i].weights)
            st = measure_item(&g, i, err);
    return st;
}

/** "choice,simulated,conv1 w8 conv1 a8 conv2 w4 ...": the bits of all items, also of those kept. */
static qat_status simulated_key(const qat_budget *b, const int *choice, char **key, qat_error *err)
{
    qat_writer w = {0};
    qat_write_text(&w, "choice,simulated,");
    for (int i = 0; i < b->net.n_items; i++)
        qat_write_text(&w, "%s%s %c%d", i ? " " : "", name_of(b, i),
                       b->net.tensors[i].weights ? 'w' : 'a', b->net.items[i].bits[choice[i]]);
    qat_write_u8(&w, 0);
    *key = w.failed ? NULL : (char *)w.bytes;
    if (w.failed)
        qat_writer_free(&w);
    return *key ? QAT_OK : qat_out_of_memory(err, "budget");
}

qat_status budget_simulate(qat_budget *b, budget_meter *m, budget_table *table, const int *choice,
                           double *added, qat_error *err)
{
    char *key;
    double loss = 0;
    qat_status st = simulated_key(b, choice, &key, err);
    if (!st && !budget_table_get(table, key, &loss)) {
        for (int i = 0; !st && i < b->net.n_items; i++)
            st = budget_meter_set(m, &b->net, i, b->net.items[i].bits[choice[i]], err);
        if (!st)
            st = budget_meter_loss(m, &loss, err);
        if (!st)
            st = budget_table_put(table, key, &loss, err);
    }
    *added = loss - b->base_loss;
    free(key);
    return st;
}
