/**
 * Bounds for the search. With prices p, q >= 0 of bytes and macs_bits, and limits B, Q, each choice
 * that fits has
 *
 *     loss >= loss + p (bytes - B) + q (macs_bits - Q) >= sum of minima over groups - p B - q Q
 *
 * A group is an activation with all weights that multiply it, or weights whose activation is given.
 * No two groups share a cost, and the least cost of a group is found by trying: for each choice of
 * the activation, each of the weights takes its own cheapest.
 */
#include "budget/solve.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6, HALVINGS = 60, DOUBLINGS = 200 };

/** What prices are found for. */
typedef struct pricing {
    const budget_item *items;
    int n;
    const budget_limits *limits;
    budget_bound *bound;
    int *first;  /* by item: its first reader; -1: none */
    int *choice; /* at the prices */
    budget_sums sums;
    int *good; /* the best choice so far that fits */
    int64_t loss;
} pricing;

static void find_readers(const pricing *p)
{
    for (int i = 0; i < p->n; i++)
        p->first[i] = p->bound->next[i] = -1;
    for (int i = p->n - 1; i >= 0; i--) {
        int const read = p->items[i].input;
        if (read == BUDGET_GIVEN)
            continue;
        p->bound->next[i] = p->first[read];
        p->first[read] = i;
    }
}

/** The choice of item i that is cheapest if it multiplies `by` bits; the first of equal ones. */
static int cheapest(const pricing *p, int i, int by, double *least)
{
    int best = 0;
    const budget_item *item = &p->items[i];
    const double *price = p->bound->price;
    *least = DBL_MAX;
    for (int c = 0; c < item->n; c++) {
        double const cost = (double)item->loss[c] + price[0] * (double)item->bytes[c] +
                            price[1] * (double)item->macs * by * item->bits[c];
        if (cost < *least) {
            *least = cost;
            best = c;
        }
    }
    return best;
}

/** The least cost of the group that item i begins, and its choices; 0: it begins none. */
static double choose_group(const pricing *p, int i)
{
    const budget_item *item = &p->items[i];
    const int *next = p->bound->next;
    double least = DBL_MAX, one;
    if (item->input != BUDGET_GIVEN)
        return 0;
    for (int c = 0; c < item->n; c++) {
        double cost = (double)item->loss[c] + p->bound->price[0] * (double)item->bytes[c] +
                      p->bound->price[1] * (double)item->macs * item->input_bits * item->bits[c];
        for (int r = p->first[i]; r >= 0; r = next[r]) {
            (void)cheapest(p, r, item->bits[c], &one);
            cost += one;
        }
        if (cost < least) {
            least = cost;
            p->choice[i] = c;
        }
    }
    for (int r = p->first[i]; r >= 0; r = next[r])
        p->choice[r] = cheapest(p, r, item->bits[p->choice[i]], &one);
    return least;
}

/* ------------------------------------------------------------------ prices */

static bool keeps(const pricing *p, int dimension)
{
    return dimension ? p->sums.macs_bits <= p->limits->macs_bits
                     : p->sums.bytes <= p->limits->bytes;
}

static bool fits(const pricing *p)
{
    return keeps(p, 0) && keeps(p, 1) && budget_meets_cuts(p->limits, p->n, p->choice);
}

/** Choose by the prices; keep the choice if it fits and is better. */
static void choose(pricing *p)
{
    for (int i = 0; i < p->n; i++)
        (void)choose_group(p, i);
    p->sums = budget_sums_of(p->items, p->n, p->choice);
    if (!fits(p) || p->sums.loss >= p->loss)
        return;
    p->loss = p->sums.loss;
    memcpy(p->good, p->choice, (size_t)p->n * sizeof *p->good);
}

/** The least price of one dimension, by halving, at which its limit is kept. */
static void find_price(pricing *p, int dimension)
{
    double *price = &p->bound->price[dimension];
    double low = 0, high = 1e-12;
    *price = 0;
    choose(p);
    if (keeps(p, dimension))
        return;
    for (int i = 0; i < DOUBLINGS && !keeps(p, dimension); i++) {
        *price = high *= 2;
        choose(p);
    }
    for (int i = 0; i < HALVINGS; i++) {
        *price = low / 2 + high / 2;
        choose(p);
        if (keeps(p, dimension))
            high = *price;
        else
            low = *price;
    }
    *price = high;
}

static void find_prices(pricing *p)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (p->limits->bytes != BUDGET_NO_LIMIT)
            find_price(p, 0);
        if (p->limits->macs_bits != BUDGET_NO_LIMIT)
            find_price(p, 1);
    }
}

/* ------------------------------------------------------------------ the bound */

static void fill(const pricing *p)
{
    budget_bound *b = p->bound;
    for (int i = p->n - 1; i >= 0; i--) {
        const budget_item *read = p->items[i].input < 0 ? NULL : &p->items[p->items[i].input];
        b->rest[i] = b->rest[i + 1] + choose_group(p, i);
        for (int c = 0; read && c < read->n; c++) {
            double least;
            (void)cheapest(p, i, read->bits[c], &least);
            b->tail[i][c] = least + (b->next[i] < 0 ? 0 : b->tail[b->next[i]][c]);
        }
    }
}

bool budget_bound_find(budget_bound *b, const budget_item *items, int n,
                       const budget_limits *limits, int *good)
{
    size_t const room = (size_t)n + 1;
    pricing p = {.items = items, .n = n, .limits = limits, .bound = b, .good = good};
    *b = (budget_bound){.rest = calloc(room, sizeof *b->rest),
                        .tail = calloc(room, sizeof *b->tail),
                        .next = calloc(room, sizeof *b->next)};
    p.first = calloc(room, sizeof *p.first);
    p.choice = calloc(room, sizeof *p.choice);
    bool const there = b->rest && b->tail && b->next && p.first && p.choice;
    if (there) {
        budget_least(items, n, good);
        p.loss = budget_sums_of(items, n, good).loss;
        find_readers(&p);
        find_prices(&p);
        fill(&p);
    }
    free(p.first);
    free(p.choice);
    return there;
}

void budget_bound_free(budget_bound *b)
{
    free(b->rest);
    free(b->tail);
    free(b->next);
    *b = (budget_bound){0};
}
