#include "detect/select.h"

#include "base/rank.h"

#include <stdlib.h>
#include <string.h>

bool qat_candidates_init(struct candidates *c, int n, int classes, int most)
{
    size_t const boxes = (size_t)n, room = boxes + (size_t)most;
    size_t const order = room > (size_t)classes ? room : (size_t)classes;
    *c = (struct candidates){.boxes = calloc(boxes, sizeof *c->boxes),
                             .keys = calloc(boxes * (size_t)classes, sizeof *c->keys),
                             .values = calloc(room, sizeof *c->values),
                             .order = calloc(order, sizeof *c->order),
                             .passed = calloc(boxes, sizeof *c->passed),
                             .kept = calloc(boxes, sizeof *c->kept),
                             .alive = calloc(boxes, 1)};
    return c->boxes && c->keys && c->values && c->order && c->passed && c->kept && c->alive;
}

void qat_candidates_free(struct candidates *c)
{
    free(c->boxes);
    free(c->keys);
    free(c->values);
    free(c->order);
    free(c->passed);
    free(c->kept);
    free(c->alive);
    *c = (struct candidates){0};
}

/* ------------------------------------------------------------------ a heap whose root is smallest
 */

/** Put `index` into the hole or above it, but below `top`. Larger values move down. */
static void rise(const int32_t *values, int *heap, int hole, int top, int index)
{
    while (hole > top && values[heap[(hole - 1) / 2]] > values[index]) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = index;
}

/**
 * Fill the hole at `top` with `index`: move the smaller children up to the bottom, then let index
 * rise.
 */
static void refill(const int32_t *values, int *heap, int top, int n, int index)
{
    int hole = top;
    for (int right = 2 * hole + 2; right <= n; right = 2 * hole + 2) {
        int const left = right - 1;
        int const child = right == n || values[heap[right]] > values[heap[left]] ? left : right;
        heap[hole] = heap[child];
        hole = child;
    }
    rise(values, heap, hole, top, index);
}

/** Collect the k largest as a heap in the first k places. */
static void gather(const int32_t *values, int n, int k, int *order)
{
    for (int i = k / 2 - 1; i >= 0; i--)
        refill(values, order, i, k, order[i]);
    for (int i = k; i < n; i++)
        if (values[order[i]] > values[order[0]]) {
            int const index = order[i];
            order[i] = order[0];
            refill(values, order, 0, k, index);
        }
}

static int first_largest(const int32_t *values, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

void qat_select_largest(const int32_t *values, int n, int k, int *order)
{
    if (k == 1) {
        order[0] = first_largest(values, n);
        return;
    }
    for (int i = 0; i < n; i++)
        order[i] = i;
    gather(values, n, k, order);
    for (int last = k - 1; last > 0; last--) {
        int const index = order[last];
        order[last] = order[0];
        refill(values, order, 0, last, index);
    }
}

/* ------------------------------------------------------------------ suppression */

int qat_suppress(struct candidates *c, int n, int32_t threshold, float overlap, int most)
{
    int passed = 0, kept = 0;
    for (int i = 0; i < n; i++)
        if (c->values[i] >= threshold)
            c->passed[passed++] = i;
    qat_rank_falling(c->values, c->passed, c->order, passed);
    memset(c->alive, 1, (size_t)passed);
    for (int i = 0; i < passed && kept < most; i++) {
        if (!c->alive[i])
            continue;
        c->kept[kept++] = c->passed[i];
        for (int j = i + 1; j < passed; j++)
            if (c->alive[j] &&
                qat_box_iou(&c->boxes[c->passed[i]], &c->boxes[c->passed[j]]) > overlap)
                c->alive[j] = 0;
    }
    return kept;
}
