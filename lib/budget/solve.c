/**
 * Solves the choice of bits exactly, by dynamic programming over the items in their order.
 *
 * A *state* is a partial choice of the first items: its sums, the bits of the *open* items, which
 * are activations that a later item multiplies, and the cuts that it does not meet yet. Of two
 * states with the same open bits and the same cuts, one is dropped if it is not better in any sum
 * that has a limit, nor in the order of answers (solve.h): whatever completes it completes the
 * other one as well. States are also dropped if no completion can be as good as a choice that is
 * known (bound.c). Nothing else is dropped, so the answer is exact. The choice that is known comes
 * from a first pass, which also drops all but the most promising states.
 *
 *     item      a0      w0 (reads a0)    a1        w1 (reads a1)
 *     open      a0      -                a1        -
 */
#include "budget/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_BITS = 3, BEAM = 2000 };

typedef struct state {
    budget_sums sums;
    double bound;  /* of the loss of its completions */
    uint64_t open; /* the choice of each open item, OPEN_BITS each, at its slot */
    uint64_t cuts; /* a bit for each cut that is not met */
    int32_t from;  /* the state of the level before; also its place in the order of choices */
    int32_t choice;
} state;

/** How a state came about. */
typedef struct step {
    int32_t from, choice;
} step;

/** An activation that is open after some items, and the first later item that multiplies it. */
typedef struct open_item {
    int item, reader;
} open_item;

typedef struct solver {
    const budget_item *items;
    int n;
    const budget_limits *limits;
    budget_bound bound;
    int64_t known; /* the loss of a choice that fits */
    int *last_use; /* by item: the last item that multiplies it; itself: none */
    int *slot;     /* by item: where its choice is in state.open; -1: it is never open */
    step **levels; /* by item */
    state *states; /* of the last level, in the order of choices */
    int64_t count;
    state *next; /* room, `capacity` states */
    int64_t n_next, capacity, all;
    bool narrow; /* the first pass */
    int n_open;
    open_item open[BUDGET_MOST_OPEN]; /* after the items of the next level */
    uint64_t *passed;                 /* after k items: the cuts that have no item left */
} solver;

budget_sums budget_sums_of(const budget_item *items, int n, const int *choice)
{
    budget_sums s = {0};
    for (int i = 0; i < n; i++) {
        const budget_item *item = &items[i];
        int const by = item->input == BUDGET_GIVEN ? item->input_bits
                                                   : items[item->input].bits[choice[item->input]];
        s.loss += item->loss[choice[i]];
        s.bytes += item->bytes[choice[i]];
        s.macs_bits += item->macs * item->bits[choice[i]] * by;
    }
    return s;
}

bool budget_meets_cuts(const budget_limits *limits, int n, const int *choice)
{
    bool all = true;
    for (int k = 0; k < limits->n_cuts; k++) {
        const int *cut = limits->cuts + (size_t)k * (size_t)n;
        bool met = false;
        for (int i = 0; i < n; i++)
            met |= cut[i] && choice[i] >= cut[i];
        all &= met;
    }
    return all;
}

void budget_least(const budget_item *items, int n, int *choice)
{
    for (int i = 0; i < n; i++)
        choice[i] = items[i].n - 1;
}

/* ------------------------------------------------------------------ open items */

static void find_last_uses(const solver *v)
{
    for (int i = 0; i < v->n; i++)
        v->last_use[i] = i;
    for (int i = 0; i < v->n; i++)
        if (v->items[i].input != BUDGET_GIVEN)
            v->last_use[v->items[i].input] = i;
}

static qat_status find_slots(solver *v, qat_error *err)
{
    find_last_uses(v);
    for (int i = 0; i < v->n; i++) {
        bool used[BUDGET_MOST_OPEN + 1] = {false};
        int at = 0;
        for (int k = 0; k < i; k++)
            if (v->slot[k] >= 0 && v->last_use[k] >= i)
                used[v->slot[k]] = true;
        while (used[at])
            at++;
        v->slot[i] = v->last_use[i] == i ? -1 : at;
        if (v->slot[i] == BUDGET_MOST_OPEN)
            return qat_fail(err, QAT_ERR_LIMIT,
                            "more than %d activations are read later at one place of the network",
                            BUDGET_MOST_OPEN);
    }
    return QAT_OK;
}

/** What is open after the first k items. */
static void find_open(solver *v, int k)
{
    v->n_open = 0;
    for (int i = 0; i < k; i++) {
        if (v->slot[i] < 0 || v->last_use[i] < k)
            continue;
        int reader = k;
        while (v->items[reader].input != i)
            reader++;
        v->open[v->n_open++] = (open_item){i, reader};
    }
}

static int open_choice(const solver *v, const state *s, int item)
{
    return (int)(s->open >> (OPEN_BITS * v->slot[item]) & ((1 << OPEN_BITS) - 1));
}

/** What is open after item i, of which `choice` was chosen. */
static uint64_t open_after(const solver *v, uint64_t open, int i, int choice)
{
    int const read = v->items[i].input;
    if (v->slot[i] >= 0)
        open |= (uint64_t)choice << (OPEN_BITS * v->slot[i]);
    if (read != BUDGET_GIVEN && v->last_use[read] == i)
        open &= ~((((uint64_t)1 << OPEN_BITS) - 1) << (OPEN_BITS * v->slot[read]));
    return open;
}

/* ------------------------------------------------------------------ cuts */

static uint64_t all_cuts(const solver *v)
{
    return v->limits->n_cuts < 64 ? ((uint64_t)1 << v->limits->n_cuts) - 1 : UINT64_MAX;
}

static void find_passed(const solver *v)
{
    for (int k = 0; k < v->limits->n_cuts; k++) {
        int end = v->n; /* behind the last item of the cut */
        while (end && !v->limits->cuts[k * v->n + end - 1])
            end--;
        for (int i = end; i <= v->n; i++)
            v->passed[i] |= (uint64_t)1 << k;
    }
}

/** The cuts that are not met after item i, of which `choice` was chosen. */
static uint64_t cuts_after(const solver *v, uint64_t cuts, int i, int choice)
{
    for (int k = 0; k < v->limits->n_cuts; k++) {
        int const from = v->limits->cuts[k * v->n + i];
        if (from && choice >= from)
            cuts &= ~((uint64_t)1 << k);
    }
    return cuts;
}

/* ------------------------------------------------------------------ states */

/** Can a completion fit, and be as good as what is known? k items are chosen. Sets its bound. */
static bool promises(const solver *v, state *s, int k)
{
    const budget_sums *sums = &s->sums;
    double bound = (double)sums->loss + v->bound.rest[k];
    for (int i = 0; i < v->n_open; i++)
        bound += v->bound.tail[v->open[i].reader][open_choice(v, s, v->open[i].item)];
    if (v->limits->bytes != BUDGET_NO_LIMIT)
        bound -= v->bound.price[0] * (double)(v->limits->bytes - sums->bytes);
    if (v->limits->macs_bits != BUDGET_NO_LIMIT)
        bound -= v->bound.price[1] * (double)(v->limits->macs_bits - sums->macs_bits);
    s->bound = bound;
    /* the bound's own roundings are far below this slack */
    double const size = fabs(v->bound.rest[0]) + (double)v->known + (double)sums->loss;
    return !(s->cuts & v->passed[k]) && sums->bytes <= v->limits->bytes &&
           sums->macs_bits <= v->limits->macs_bits && sums->loss <= v->known &&
           bound <= (double)v->known + 1 + 1e-9 * size;
}

static int64_t most_states(const solver *v)
{
    return v->limits->states ? v->limits->states : BUDGET_MOST_STATES;
}

/** Is there room for so many states? */
static qat_status check_states(const solver *v, int64_t count, qat_error *err)
{
    int64_t const most = most_states(v);
    return count <= most
               ? QAT_OK
               : qat_fail(err, QAT_ERR_LIMIT,
                          "the choice has more than %lld partial choices that may be best",
                          (long long)most);
}

static qat_status add(solver *v, const state *s, qat_error *err)
{
    if (v->n_next == v->capacity) {
        int64_t const more = v->capacity ? 2 * v->capacity : 1024, most = most_states(v);
        int64_t const wanted = more < most ? more : most;
        qat_status const st = check_states(v, v->n_next + 1, err);
        state *bigger = st ? NULL : realloc(v->next, (size_t)wanted * sizeof *bigger);
        if (!bigger)
            return st ? st : qat_out_of_memory(err, "budget");
        v->next = bigger;
        v->capacity = wanted;
    }
    v->next[v->n_next++] = *s;
    return QAT_OK;
}

/** All states with one more item. */
static qat_status extend(solver *v, int i, qat_error *err)
{
    const budget_item *item = &v->items[i];
    qat_status st = QAT_OK;
    v->n_next = 0;
    find_open(v, i + 1);
    for (int64_t k = 0; !st && k < v->count; k++)
        for (int c = 0; !st && c < item->n; c++) {
            const state *old = &v->states[k];
            int const by = item->input == BUDGET_GIVEN
                               ? item->input_bits
                               : v->items[item->input].bits[open_choice(v, old, item->input)];
            state s = {.sums = {old->sums.loss + item->loss[c], old->sums.bytes + item->bytes[c],
                                old->sums.macs_bits + item->macs * item->bits[c] * by},
                       .open = open_after(v, old->open, i, c),
                       .cuts = cuts_after(v, old->cuts, i, c),
                       .from = (int32_t)k,
                       .choice = c};
            if (promises(v, &s, i + 1))
                st = add(v, &s, err);
        }
    return st;
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/** The order of choices: that of the states before, then of the choices of this item. */
static int by_choice(const void *a, const void *b)
{
    const state *x = a, *y = b;
    int const from = compare(x->from, y->from);
    return from ? from : compare(x->choice, y->choice);
}

static int by_answer(const state *x, const state *y)
{
    int const loss = compare(x->sums.loss, y->sums.loss);
    int const bytes = compare(x->sums.bytes, y->sums.bytes);
    int const macs = compare(x->sums.macs_bits, y->sums.macs_bits);
    return loss ? loss : bytes ? bytes : macs ? macs : by_choice(x, y);
}

/** States of the same open bits and cuts together, the better answer first. */
static int by_open(const void *a, const void *b)
{
    const state *x = a, *y = b;
    if (x->open != y->open)
        return x->open < y->open ? -1 : 1;
    if (x->cuts != y->cuts)
        return x->cuts < y->cuts ? -1 : 1;
    return by_answer(x, y);
}

/** A staircase: pairs of sums of which none is above another in both. */
typedef struct corner {
    int64_t bytes, macs_bits;
} corner;

/**
 * Is a corner at or below (bytes, macs_bits)? Otherwise add it, and remove those above it. Corners
 * have rising bytes and falling macs_bits.
 */
static bool is_covered(corner *stair, int64_t *n, int64_t bytes, int64_t macs_bits)
{
    int64_t low = 0, high = *n;
    while (low < high) { /* the first corner with more bytes */
        int64_t const middle = low + (high - low) / 2;
        if (stair[middle].bytes <= bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low && stair[low - 1].macs_bits <= macs_bits)
        return true;
    int64_t const begin = low && stair[low - 1].bytes == bytes ? low - 1 : low;
    int64_t end = low;
    while (end < *n && stair[end].macs_bits >= macs_bits)
        end++;
    memmove(stair + begin + 1, stair + end, (size_t)(*n - end) * sizeof *stair);
    stair[begin] = (corner){bytes, macs_bits};
    *n += begin + 1 - end;
    return false;
}

static int by_bound(const void *a, const void *b)
{
    const state *x = a, *y = b;
    return x->bound < y->bound ? -1 : x->bound > y->bound ? 1 : by_choice(a, b);
}

/** Drop states that another one makes needless; in the first pass also the less promising ones. */
static qat_status reduce(solver *v, qat_error *err)
{
    corner *stair = malloc((size_t)(v->n_next + 1) * sizeof *stair);
    int64_t n = 0, corners = 0;
    if (!stair)
        return qat_out_of_memory(err, "budget");
    qsort(v->next, (size_t)v->n_next, sizeof *v->next, by_open);
    for (int64_t i = 0; i < v->n_next; i++) {
        state const s = v->next[i];
        if (!n || v->next[n - 1].open != s.open || v->next[n - 1].cuts != s.cuts)
            corners = 0;
        int64_t const bytes = v->limits->bytes == BUDGET_NO_LIMIT ? 0 : s.sums.bytes;
        int64_t const macs = v->limits->macs_bits == BUDGET_NO_LIMIT ? 0 : s.sums.macs_bits;
        if (!is_covered(stair, &corners, bytes, macs))
            v->next[n++] = s;
    }
    free(stair);
    if (v->narrow && n > BEAM) {
        qsort(v->next, (size_t)n, sizeof *v->next, by_bound);
        n = BEAM;
    }
    v->n_next = n;
    qsort(v->next, (size_t)n, sizeof *v->next, by_choice);
    return QAT_OK;
}

/** Note how the states came about, and make them those of the last level. */
static qat_status note(solver *v, int i, qat_error *err)
{
    v->all += v->n_next;
    qat_status const st = check_states(v, v->all, err);
    v->levels[i] = st ? NULL : malloc((size_t)(v->n_next + 1) * sizeof(step));
    if (!v->levels[i])
        return st ? st : qat_out_of_memory(err, "budget");
    for (int64_t k = 0; k < v->n_next; k++)
        v->levels[i][k] = (step){v->next[k].from, v->next[k].choice};
    state *swapped = realloc(v->states, (size_t)(v->n_next + 1) * sizeof *swapped);
    if (!swapped)
        return qat_out_of_memory(err, "budget");
    v->states = swapped;
    memcpy(v->states, v->next, (size_t)v->n_next * sizeof *v->states);
    v->count = v->n_next;
    return QAT_OK;
}

static void read_answer(const solver *v, int *choice, budget_sums *sums)
{
    int32_t at = 0;
    for (int64_t k = 1; k < v->count; k++)
        if (by_answer(&v->states[k], &v->states[at]) < 0)
            at = (int32_t)k;
    *sums = v->states[at].sums;
    for (int i = v->n - 1; i >= 0; i--) {
        choice[i] = v->levels[i][at].choice;
        at = v->levels[i][at].from;
    }
}

static void forget_levels(solver *v)
{
    for (int i = 0; v->levels && i < v->n; i++) {
        free(v->levels[i]);
        v->levels[i] = NULL;
    }
    v->all = 0;
}

/** Go through all items. The first pass may lose all its states: then nothing changes. */
static qat_status pass(solver *v, int *choice, budget_sums *sums, qat_error *err)
{
    qat_status st = QAT_OK;
    forget_levels(v);
    v->states[0] = (state){.cuts = all_cuts(v)};
    v->count = 1;
    for (int i = 0; !st && i < v->n && v->count; i++) {
        st = extend(v, i, err);
        if (!st)
            st = reduce(v, err);
        if (!st)
            st = note(v, i, err);
    }
    if (!st && v->count)
        read_answer(v, choice, sums);
    return st;
}

static void solver_free(solver *v)
{
    forget_levels(v);
    free(v->levels);
    free(v->last_use);
    free(v->slot);
    free(v->passed);
    free(v->states);
    free(v->next);
    budget_bound_free(&v->bound);
}

static qat_status prepare(solver *v, int *choice, qat_error *err)
{
    size_t const room = (size_t)v->n + 1;
    v->last_use = calloc(room, sizeof *v->last_use);
    v->slot = calloc(room, sizeof *v->slot);
    v->levels = calloc(room, sizeof *v->levels);
    v->passed = calloc(room, sizeof *v->passed);
    v->states = calloc(1, sizeof *v->states);
    if (!v->last_use || !v->slot || !v->passed || !v->levels || !v->states ||
        !budget_bound_find(&v->bound, v->items, v->n, v->limits, choice))
        return qat_out_of_memory(err, "budget");
    find_passed(v);
    return find_slots(v, err);
}

qat_status budget_solve(const budget_item *items, int n, const budget_limits *limits, int *choice,
                        budget_sums *sums, qat_error *err)
{
    solver v = {.items = items, .n = n, .limits = limits};
    budget_least(items, n, choice);
    *sums = budget_sums_of(items, n, choice);
    if (sums->bytes > limits->bytes || sums->macs_bits > limits->macs_bits ||
        !budget_meets_cuts(limits, n, choice))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "nothing fits: the least is %lld bytes, %lld macs_bits",
                        (long long)sums->bytes, (long long)sums->macs_bits);
    qat_status st = prepare(&v, choice, err);
    for (int i = 0; !st && i < 2; i++) {
        *sums = budget_sums_of(items, n, choice);
        v.known = sums->loss;
        v.narrow = i == 0;
        st = pass(&v, choice, sums, err);
    }
    solver_free(&v);
    return st;
}
