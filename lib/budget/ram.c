/**
 * Keeps choices within the RAM of a device, as qat-export --ram makes the network fit: in row
 * bands, or with tensors of at most 4 bits packed.
 *
 * RAM is no sum over layers, so the solver does not know it. A choice that it finds is exported
 * with random weights. If that needs too much RAM, the reason becomes a cut (solve.h), and the
 * solver finds another choice. To find the reason, items get fewer bits as long as the network is
 * still too large. Those that cannot get their fewest bits are the reason:
 *
 *     the best choice               a 8   b 8   c 8     too large
 *     as few bits as possible       a 8   b 2   c 8     too large, but not with a 4, nor with c 4
 *     so every choice that fits has a 4   or    c 4     or fewer bits
 *
 * This is true if fewer bits never need more RAM. Then the choice that is found is the best one
 * that fits. It fits in any case.
 */
#include "budget/search.h"

#include "deploy/device.h"
#include "recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

static qat_status plan_ram(qat_ram_plan *plan, const qat_budget *b, const budget_meter *m,
                           const int *choice, qat_error *err)
{
    qat_recipe *recipe = NULL;
    qat_status st = budget_tick(m, 0, 0, err);
    if (!st)
        st = budget_recipe_of(&recipe, b->recipe, &b->net, choice, BUDGET_CHOSEN, err);
    if (!st)
        st = qat_device_fit_of(plan, recipe, m->plugins, m->float_graph, &m->input,
                               b->recipe->budget.ram, err);
    qat_recipe_free(recipe);
    return st;
}

qat_status budget_find_ram(qat_ram_plan *plan, bool *does_fit, const qat_budget *b,
                           const budget_meter *m, const int *choice, qat_error *err)
{
    int64_t const limit = b->recipe->budget.ram;
    budget_export *known = budget_export_of(b, choice);
    qat_status st = known ? QAT_OK : qat_out_of_memory(err, "budget");
    *plan = (qat_ram_plan){0};
    if (known && known->has_ram)
        *plan = known->ram;
    else if (known)
        st = plan_ram(plan, b, m, choice, err);
    if (!st) {
        known->ram = *plan;
        known->has_ram = true;
    }
    *does_fit = !limit || plan->ram <= (uint64_t)limit;
    return st;
}

static qat_status refuse(const qat_budget *b, const qat_ram_plan *least, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    qat_recipe_where(b->recipe, "budget", "ram", where);
    return qat_fail(
        err, QAT_ERR_ARGUMENT,
        "%s: budget.ram = %lld: the network needs at least %zu bytes of RAM with any of "
        "these bits, also in row bands or with packed tensors",
        where, (long long)b->recipe->budget.ram, least->ram);
}

qat_status budget_check_ram(const qat_budget *b, const budget_meter *m, qat_error *err)
{
    qat_ram_plan least;
    bool does_fit;
    if (!b->recipe->budget.ram)
        return QAT_OK;
    int *choice = calloc((size_t)b->net.n_items + 1, sizeof *choice);
    if (!choice)
        return qat_out_of_memory(err, "budget");
    budget_least(b->net.items, b->net.n_items, choice);
    qat_status st = budget_find_ram(&least, &does_fit, b, m, choice, err);
    if (!st && !does_fit)
        st = refuse(b, &least, err);
    free(choice);
    return st;
}

/* ------------------------------------------------------------------ cuts */

/** A choice that is too large, on its way to fewer bits. */
typedef struct fall {
    const qat_budget *b;
    const budget_meter *m;
    int *choice;
    int *cut; /* by item: the first choice that would fit; 0: the item is not part of the reason */
} fall;

static qat_status is_too_large(const fall *f, bool *large, qat_error *err)
{
    qat_ram_plan plan;
    qat_status const st = budget_find_ram(&plan, large, f->b, f->m, f->choice, err);
    *large = !*large;
    return st;
}

/** Find the first choice of an item that fits. The last one does. */
static qat_status first_that_fits(const fall *f, int item, int *first, qat_error *err)
{
    int const last = f->b->net.items[item].n - 1;
    qat_status st = QAT_OK;
    bool large = true;
    for (; !st && *first < last; (*first)++) {
        f->choice[item] = *first;
        st = is_too_large(f, &large, err);
        if (!large)
            break;
    }
    return st;
}

/** Let an item fall as far as the network stays too large. With its fewest bits it is not. */
static qat_status fall_item(const fall *f, int item, qat_error *err)
{
    int first = f->choice[item] + 1;
    qat_status const st = first_that_fits(f, item, &first, err);
    f->cut[item] = first;
    f->choice[item] = first - 1;
    return st;
}

/** Give items their fewest bits. Returns whether that changes any. */
static bool lower(const fall *f, int begin, int end)
{
    bool changed = false;
    for (int i = begin; i < end; i++) {
        int const last = f->b->net.items[i].n - 1;
        changed |= f->choice[i] != last;
        f->choice[i] = last;
    }
    return changed;
}

/**
 * Let the items begin .. end - 1 fall, many at once where that is possible: so few exports find the
 * reason.
 * @param known  is it known that the network fits if all of them get their fewest bits?
 * @param fell   receives whether all of them did: it is too large even so
 */
static qat_status fall_range(const fall *f, int begin, int end, bool known, bool *fell,
                             qat_error *err)
{
    size_t const bytes = (size_t)(end - begin) * sizeof *f->choice;
    int *before = malloc(bytes);
    qat_status st = QAT_OK;
    if (!before)
        return qat_out_of_memory(err, "budget");
    memcpy(before, f->choice + begin, bytes);
    *fell = !known;
    if (lower(f, begin, end) && !known)
        st = is_too_large(f, fell, err);
    if (!st && !*fell)
        memcpy(f->choice + begin, before, bytes);
    free(before);
    if (st || *fell)
        return st;
    if (end - begin == 1)
        return fall_item(f, begin, err);
    int const middle = begin + (end - begin) / 2;
    bool left;
    st = fall_range(f, begin, middle, false, &left, err);
    if (!st)
        st = fall_range(f, middle, end, left, fell, err);
    *fell = false;
    return st;
}

static qat_status add_cut(qat_budget *b, const budget_meter *m, const int *choice, qat_error *err)
{
    int const n = b->net.n_items;
    if (b->limits.n_cuts == BUDGET_MOST_CUTS)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "more than %d choices that seem best need too much RAM: set a larger "
                        "budget.ram, or name layers in budget.keep",
                        BUDGET_MOST_CUTS);
    fall f = {b, m, calloc((size_t)n + 1, sizeof(int)), b->cuts + b->limits.n_cuts * n};
    if (!f.choice)
        return qat_out_of_memory(err, "budget");
    memcpy(f.choice, choice, (size_t)n * sizeof *f.choice);
    bool fell;
    qat_status const st = fall_range(&f, 0, n, true, &fell, err);
    free(f.choice);
    b->limits.cuts = b->cuts;
    b->limits.n_cuts += !st;
    return st;
}

bool budget_cut_activations(qat_budget *b, const int *choice)
{
    size_t const n = (size_t)b->net.n_items;
    bool any = false;
    if (b->limits.n_cuts == BUDGET_MOST_CUTS)
        return false;
    int *cut = b->cuts + (size_t)b->limits.n_cuts * n;
    for (size_t i = 0; i < n; i++) {
        bool const falls = !b->net.tensors[i].weights && choice[i] + 1 < b->net.items[i].n;
        cut[i] = falls ? choice[i] + 1 : 0;
        any |= falls;
    }
    b->limits.cuts = b->cuts;
    if (any)
        b->flash_cuts |= UINT64_C(1) << b->limits.n_cuts++;
    return any;
}

void budget_forget_flash_cuts(qat_budget *b)
{
    size_t const n = (size_t)b->net.n_items;
    int kept = 0;
    for (int k = 0; k < b->limits.n_cuts; k++)
        if (!(b->flash_cuts >> k & 1))
            memmove(b->cuts + (size_t)kept++ * n, b->cuts + (size_t)k * n, n * sizeof *b->cuts);
    b->limits.n_cuts = kept;
    b->flash_cuts = 0;
}

int64_t budget_flash_for_ram(const qat_budget *b, const qat_ram_plan *plan)
{
    return b->recipe->budget.ram ? (int64_t)plan->bytes - (int64_t)plan->bytes_before : 0;
}

qat_status budget_fit_or_cut(qat_budget *b, const budget_meter *m, const int *choice,
                             bool *does_fit, int64_t *added, qat_error *err)
{
    qat_ram_plan plan;
    *does_fit = true;
    *added = 0;
    if (!b->recipe->budget.ram)
        return QAT_OK;
    if (!b->cuts)
        b->cuts = calloc((size_t)b->net.n_items * BUDGET_MOST_CUTS + 1, sizeof *b->cuts);
    if (!b->cuts)
        return qat_out_of_memory(err, "budget");
    qat_status const st = budget_find_ram(&plan, does_fit, b, m, choice, err);
    if (st || !*does_fit)
        return st ? st : add_cut(b, m, choice, err);
    *added = budget_flash_for_ram(b, &plan);
    return QAT_OK;
}
