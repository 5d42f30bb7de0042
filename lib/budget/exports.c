/** What exports with single choices have shown, so that none is made twice. */
#include "budget/search.h"

#include <stdlib.h>
#include <string.h>

budget_export *budget_export_of(const qat_budget *b, const int *choice)
{
    size_t const bytes = (size_t)b->net.n_items * sizeof *choice;
    for (budget_export *e = *b->exports; e; e = e->next)
        if (!memcmp(e->choice, choice, bytes))
            return e;
    budget_export *made = calloc(1, sizeof *made + bytes);
    if (!made)
        return NULL;
    memcpy(made->choice, choice, bytes);
    made->other = -1;
    made->next = *b->exports;
    return *b->exports = made;
}

void budget_exports_free(budget_export **exports)
{
    while (exports && *exports) {
        budget_export *const first = *exports;
        *exports = first->next;
        free(first);
    }
    free(exports);
}
