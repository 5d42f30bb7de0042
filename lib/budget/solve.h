/**
 * The choice of bits under a budget, as a problem of integers, and its exact solution.
 *
 * An *item* is a tensor whose bits are chosen: the weights of a layer, or an activation. Each
 * choice of an item has a loss and, of weights, bytes. Multiply-adds join two items: their cost is
 * macs x bits of the weights x bits of the activation that they multiply. Wanted is
 *
 *     one choice for each item, so that    sum of bytes <= limit,    sum of macs_bits <= limit,
 *                                          and each cut is met,
 *
 * with the least sum of losses; of equal ones, that with the fewest bytes, then the least
 * macs_bits, then the first in the order of items and choices. So there is one answer, and no
 * rounding.
 *
 *     budget_item const items[] = {{.n = 2, .bits = {8, 4}, .loss = {0, 10}, .bytes = {80, 40},
 *                                   .input = BUDGET_GIVEN}};
 *     budget_limits const limits = {.bytes = 50, .macs_bits = BUDGET_NO_LIMIT};
 *     budget_solve(items, 1, &limits, choice, &sums, &err);        // choice[0] is 1
 */
#ifndef QAT_BUDGET_SOLVE_H
#define QAT_BUDGET_SOLVE_H

#include "qat/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BUDGET_CHOICES = 7, /* 2 to 8 bits */
    BUDGET_GIVEN = -1,
    BUDGET_MOST_OPEN = 21, /* activations that are read later, at one place */
    BUDGET_MOST_CUTS = 64,
    BUDGET_MOST_STATES = 1 << 24 /* partial choices that are kept */
};
#define BUDGET_NO_LIMIT INT64_MAX

typedef struct budget_item {
    int n; /* choices, 1..BUDGET_CHOICES, by falling bits */
    int bits[BUDGET_CHOICES];
    int64_t loss[BUDGET_CHOICES];  /* >= 0 */
    int64_t bytes[BUDGET_CHOICES]; /* >= 0, not rising */
    int64_t macs;                  /* of weights: how often they are multiplied; otherwise 0 */
    int input; /* of weights: the item of what they multiply, an earlier one, or BUDGET_GIVEN */
    int input_bits; /* with BUDGET_GIVEN */
} budget_item;

/**
 * A cut says that some items cannot all have many bits: one of them must have the choice cut[item],
 * or one of fewer bits. 0: the item is not one of them.
 */
typedef struct budget_limits {
    int64_t bytes, macs_bits; /* BUDGET_NO_LIMIT: none */
    const int *cuts;          /* [n_cuts][items] */
    int n_cuts;               /* 0..BUDGET_MOST_CUTS */
    int64_t states;           /* of partial choices; 0: BUDGET_MOST_STATES */
} budget_limits;

typedef struct budget_sums {
    int64_t loss, bytes, macs_bits;
} budget_sums;

/** The sums of a choice. */
budget_sums budget_sums_of(const budget_item *items, int n, const int *choice);
/** Is each cut met by this choice? */
bool budget_meets_cuts(const budget_limits *limits, int n, const int *choice);
/** The choice with the fewest bits everywhere, which has both the fewest bytes and macs_bits. */
void budget_least(const budget_item *items, int n, int *choice);

/**
 * Solve. choice[n] and *sums receive the answer.
 * @return QAT_ERR_ARGUMENT if nothing fits (then they hold budget_least), QAT_ERR_NOMEM,
 *         QAT_ERR_LIMIT if it would take too much memory
 */
qat_status budget_solve(const budget_item *items, int n, const budget_limits *limits, int *choice,
                        budget_sums *sums, qat_error *err);

/* ------------------------------------------------------------------ bound.c */

/**
 * Prices of a byte and of a unit of macs_bits (Lagrange multipliers), and what follows from them:
 * no completion of a choice of the first k items that fits has a loss below
 *
 *     loss + rest[k] + sum over open items of tail[their first reader from k on][their choice]
 *          - bytes price (limit - bytes) - macs_bits price (limit - macs_bits)
 */
typedef struct budget_bound {
    double price[2];
    double *rest;                   /* [n + 1] */
    double (*tail)[BUDGET_CHOICES]; /* by item that reads another: of it and the readers after it */
    int *next;                      /* by item that reads another: the next reader; -1: none */
} budget_bound;

/**
 * Find good prices, and with their help a choice that fits (budget_least must fit). Everything is
 * correct with any prices; good ones save time. Cuts count for `good` alone.
 * @param good  receives a choice that fits; its loss is an upper bound
 */
bool budget_bound_find(budget_bound *bound, const budget_item *items, int n,
                       const budget_limits *limits, int *good);
void budget_bound_free(budget_bound *bound);

#endif
