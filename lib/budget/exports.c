/** What exports with single choices have shown, so that none is made twice. */
#include "budget/search.h"

#include <stdlib.h>
#include <string.h>

static bool grow(budget_exports *e)
{
    int const wanted = e->capacity ? 2 * e->capacity : 64;
    if (e->n < e->capacity)
        return true;
    budget_export *bigger = realloc(e->of, (size_t)wanted * sizeof *bigger);
    if (!bigger)
        return false;
    e->of = bigger;
    e->capacity = wanted;
    return true;
}

budget_export *budget_export_of(const qat_budget *b, const int *choice)
{
    budget_exports *e = b->exports;
    size_t const bytes = (size_t)b->net.n_items * sizeof *choice;
    for (int i = 0; i < e->n; i++)
        if (!memcmp(e->of[i].choice, choice, bytes))
            return &e->of[i];
    int *copy = malloc(bytes + 1);
    if (!copy || !grow(e)) {
        free(copy);
        return NULL;
    }
    memcpy(copy, choice, bytes);
    e->of[e->n] = (budget_export){.choice = copy, .other = -1};
    return &e->of[e->n++];
}

void budget_exports_free(budget_exports *e)
{
    for (int i = 0; e && i < e->n; i++)
        free(e->of[i].choice);
    if (e)
        free(e->of);
    free(e);
}
